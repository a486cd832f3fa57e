#!/usr/bin/env python3
"""However a text is divided, decoders give the same bits: run_divided.py SHEAF MODELS

The caches and the scores that follow a text, of gpt2 and llama, in f32 and with --precision bf16:
in random parts, and in chunks of every size that the model is compiled with, beside the text at once.
"""
import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

DIMS = {"gpt2": {"hidden": 16, "heads": 2, "layers": 2, "positions": 256, "vocab": 16},
        "llama": {"hidden": 16, "heads": 4, "groups": 2, "layers": 2, "inner": 24, "vocab": 16}}
# An entry beside the model's own: the text in parts of these many words, and what is left.
PARTS = """
fn divided(text: token[n], sizes: list<int>) -> (f32[vocab], list<f32[?, WIDTH]>) =
  after(text, sizes, nothing())
fn after(text: token[n], sizes: list<int>, caches: list<f32[?, WIDTH]>)
    -> (f32[vocab], list<f32[?, WIDTH]>) = match sizes {
  [] => follow(text, caches)
  size :: rest => {
    let (_, seen) = follow(text[0:size], caches)
    after(text[size:n], rest, seen)
  }
}
"""
WIDTH = {"gpt2": "2*hidden", "llama": "2*groups*size"}
# Attention computes 48 rows at a time, and sums run in 64 lanes.
LENGTHS = [1, 2, 5, 17, 47, 48, 49, 63, 64, 65, 97, 130, 150]


def divided(length, random):
    """Sizes of parts that leave at least a word."""
    sizes = []
    while length > 1 and random.random() < 0.8:
        sizes.append(random.randint(1, min(length - 1, random.choice([1, 4, 64, 150]))))
        length -= sizes[-1]
    return sizes


def check(sheaf, models, place, name, precision):
    rng = random.Random(name + precision)
    texts = [[rng.randrange(16) for _ in range(length)] for length in LENGTHS]
    model, files = os.path.join(place, f"{name}_{precision}.sheaf"), {}
    with open(os.path.join(models, name + ".sheaf")) as source, open(model, "w") as stream:
        stream.write(source.read() + PARTS.replace("WIDTH", WIDTH[name]))
    for kind, sizes in (("once", lambda text: []), ("parts", lambda text: divided(len(text), rng))):
        files[kind] = f"{model}.{kind}.jsonl"
        with open(files[kind], "w") as stream:
            stream.writelines(json.dumps({"text": text, "sizes": sizes(text)}) + "\n" for text in texts)

    def run(kind, chunk, *more):
        command = [sheaf, "run", model, "--entry", "divided", "--data", files[kind], "--precision", precision,
                   "--dim", f"chunk={chunk}", *more]
        for dim, value in DIMS[name].items():
            command += ["--dim", f"{dim}={value}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{name}, {kind}, chunk={chunk}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout.splitlines()

    run("parts", 20, "--verify", "--hostile")
    wanted = run("once", 1000)
    assert len(wanted) == len(texts)
    for kind, chunk, *more in (("parts", 1000), ("parts", 7, "--hostile"), ("once", 1), ("once", 16),
                               ("once", 48), ("once", 50, "--hostile"), ("once", 64)):
        for text, one, other in zip(texts, wanted, run(kind, chunk, *more), strict=True):
            if one != other:
                return f"{name}, {precision}, {kind}, chunk={chunk}: {len(text)} words have other bits"
    return None


def main():
    _, sheaf, models = sys.argv
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(2) as pool:
        cases = [(name, precision) for name in DIMS for precision in ("f32", "bf16")]
        errors = [error for error in pool.map(lambda case: check(sheaf, models, place, *case), cases) if error]
    print("\n".join(errors) or "the same bits")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
