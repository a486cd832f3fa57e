#!/usr/bin/env python3
"""A step of training through one layer of attention: attention_training.py SHEAF [ROWS ...]

8 heads of 64, one thread, one instance a step; the shortest of 4 steps, and the peak of the whole process. Scores are
made again in the backward pass, some rows at a time; `--without row-blocks` makes them again whole.

    taskset -c 1 bench/attention_training.py build/bin/sheaf 2048 8192
"""
import json
import os
import random
import subprocess
import sys
import tempfile

MODEL = """
param w : f32[512, 1536] = normal(0.05)
fn parts(x: f32[n, 512]) -> f32[8, n, 64] = transpose(reshape(x, n, 8, 64), 0, 1)
fn loss(x: f32[n, 512]) -> f32 = {
  let (q, k, v) = split(x @ w, 3, axis=1)
  let y = attention(parts(q), parts(k), parts(v)MORE)
  sum(y * y)
}
"""
FORMS = {"full": ("", []), "causal": (", causal=1", []), "causal, scores whole": (", causal=1", ["--without", "row-blocks"])}


def step(sheaf, more, options, rows, directory):
    model, data = os.path.join(directory, "m.sheaf"), os.path.join(directory, "d.jsonl")
    with open(model, "w", encoding="utf-8") as stream:
        stream.write(MODEL.replace("MORE", more))
    draw = random.Random(0)
    with open(data, "w", encoding="utf-8") as stream:
        stream.write(json.dumps({"x": [[round(draw.gauss(0, 1), 3) for _ in range(512)] for _ in range(rows)]}))
    out = os.path.join(directory, "out")
    process = subprocess.Popen([sheaf, "train", model, "--data", data, "-o", out, "--epochs", "4", "--keep", "0", *options],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read().decode()
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(errors)
    with open(os.path.join(out, "log.jsonl"), encoding="utf-8") as stream:
        seconds = [line["seconds"] for line in map(json.loads, stream) if "seconds" in line]
    subprocess.run(["rm", "-r", out], check=True)
    return min(seconds), used.ru_maxrss / 1024


def main(sheaf, sizes):
    with tempfile.TemporaryDirectory() as directory:
        for rows in sizes:
            for name, (more, options) in FORMS.items():
                seconds, peak = step(sheaf, more, options, rows, directory)
                print(f"{rows:6} rows, {name:22} {seconds * 1e3:9.1f} ms a step, {peak:7.0f} MB at the peak", flush=True)


main(sys.argv[1], [int(size) for size in sys.argv[2:]] or [512, 2048])
