#!/usr/bin/env python3
"""The models of ACRoBat, and what every optimisation is worth: the tables of
docs/benchmarks/acrobat.md and optimisations.md.

    bench/ablation.py TREES [--sizes] [--models a,b] [--batches 8,64] [--rounds N] [--seconds S]

TREES: binary bracket trees, such as those of the Stanford Sentiment Treebank, of which the first
are taken; models of sentences read their words. Needs build/bin/sheaf (./demo makes it) and an
otherwise idle machine. One thread.

A table a model: for each batch the launches of a mini-batch, its shortest time, the products'
GFLOP/s at that time, and how many times as long it takes as with everything on: the median of pairs
of mini-batches in turn, with its interval of 95 % (`sheaf bench --against`). Of what compiles to
the same code the first is timed, which tells how much is chance. With --sizes one table of all
models at both sizes with everything on, the best of several rounds, and the share of the time that
is spent inside kernels.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
SHEAF = os.path.join(ROOT, "build", "bin", "sheaf")

# What the models read, and their smaller and larger sizes.
MODELS = {"treelstm": ("trees", ["hidden=256"], ["hidden=512"]),
          "birnn": ("trees", ["hidden=256"], ["hidden=512"]),
          "mvrnn": ("trees", ["hidden=64"], ["hidden=128"]),
          "nestedrnn": ("trees", ["hidden=256"], ["hidden=512"]),
          "drnn": ("trees", ["hidden=256"], ["hidden=512"]),
          "stackrnn": ("trees", ["hidden=256"], ["hidden=512"]),
          "berxit": ("long", ["hidden=768"], ["hidden=1024", "heads=16"])}
LONG = 128  # words of berxit's inputs


def sheaf(*words):
    run = subprocess.run([SHEAF, *words], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"sheaf {' '.join(words)}\n{run.stderr}")
    return run.stdout


def optimisations():
    """The names that --without takes, in the order of the pipeline."""
    text = sheaf("explain", os.path.join(ROOT, "models", "treelstm.sheaf"), "--dim", "vocab=10")
    names = text.split("leave one out with --without NAME\n", 1)[1].split("\n\n", 1)[0]
    # What a tuner chose, and who else could compute products, is not part of what is compared here.
    others = ("tuned", "generated", "onednn", "libxsmm", "openblas")
    return [name for name in (line.split()[0] for line in names.splitlines()) if name not in others]


def first_trees(path, instances=None):
    """Lines of a file of trees."""
    with open(path, encoding="utf-8") as stream:
        return stream.read().splitlines()[:instances]


def words_of(trees):
    """Of all trees, in order."""
    return re.findall(r"[^\s()]+(?=\))", "\n".join(trees))


def write_data(trees, instances, short, long):
    """The first trees, and so many sentences of one length, of the words of all."""
    lines = first_trees(trees)
    with open(short, "w", encoding="utf-8") as stream:
        stream.write("\n".join(lines[:instances]) + "\n")
    words = words_of(lines)
    with open(long, "w", encoding="utf-8") as stream:
        for begin in range(0, min(len(words), (instances + 1) * LONG) - LONG, LONG):
            stream.write(" ".join(words[begin:begin + LONG]) + "\n")


def fastest(model, data, dims, batch, rounds, seconds):
    """The best row with everything on."""
    rows = [measure(model, data, dims, batch, seconds) for _ in range(rounds)]
    return min(rows, key=lambda row: row["ms_min"])


def rounds_of(model, rounds):
    """A mini-batch of berxit takes seconds, and there is little in it to be unlucky with."""
    return 1 if model == "berxit" else rounds


def measure(model, data, dims, batch, seconds, *more):
    repetitions = rounds_of(model, 10)
    words = ["bench", os.path.join(ROOT, "models", model + ".sheaf"), "--data", data, "--seed", "1",
             "--batch", str(batch), "--engine", "batched", "--format", "json",
             "--repetitions", str(repetitions), "--seconds", str(seconds)]
    for dim in dims:
        words += ["--dim", dim]
    return json.loads(sheaf(*words, *more))[0]


def code(model, dims, *more):
    """What a model compiles to."""
    words = ["compile", os.path.join(ROOT, "models", model + ".sheaf"), "--emit", "asm", "--store",
             "none"]
    for dim in dims:
        words += ["--dim", dim]
    return sheaf(*words, *more)


def table(model, data, dims, batches, rounds, seconds):
    print(f"\n{model}, {', '.join(dims)}\n")
    print("| left out |" + "".join(f" batch {b}: launches | ms | GFLOP/s | time |" for b in batches))
    print("|---|" + "---:|---:|---:|---:|" * len(batches))
    complete = ["vocab=1000", *dims]
    everything = code(model, complete)
    names = optimisations()
    others = [name for name in names if code(model, complete, "--without", name) != everything]
    same = [name for name in names if name not in others]
    rows = {name: "" for name in [None, *same[:1], *others]}
    for batch in batches:
        against = measure(model, data, dims, batch, rounds * seconds, "--against",
                          ",".join([*same[:1], *others]))
        times = {other["what"]: other for other in against["against"]}
        for name in rows:
            row = measure(model, data, dims, batch, seconds, *(["--without", name] if name else []))
            time = times.get(name, {"median": 1})
            rows[name] += (f" {row['launches']} | {row['ms_min']:.2f} | "
                           f"{row['gflop'] / row['ms_min'] * 1e3:.0f} | {time['median']:.2f}" +
                           (f" ({time['low']:.2f} to {time['high']:.2f}) |" if name else " |"))
    for name, cells in rows.items():
        chance = " (the same code)" if name in same else ""
        print(f"| {name or '(nothing)'}{chance} |{cells}", flush=True)
    print(f"\nThe same code without: {', '.join(same)}.", flush=True)


def sizes(models, data, batches, rounds, seconds):
    print("| model | dims |" +
          "".join(f" batch {b}: launches | ms | GFLOP/s | in kernels |" for b in batches))
    print("|---|---|" + "---:|---:|---:|---:|" * len(batches))
    for model in models:
        kind, *both = MODELS[model]
        for dims in both:
            cells = ""
            for batch in batches:
                row = fastest(model, data[kind], dims, batch, rounds_of(model, rounds), seconds)
                cells += (f" {row['launches']} | {row['ms_min']:.2f} | "
                          f"{row['gflop'] / row['ms_min'] * 1e3:.0f} | {row['in_kernels']:.0%} |")
            print(f"| {model} | {', '.join(dims)} |{cells}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trees")
    parser.add_argument("--sizes", action="store_true")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--batches", default="8,64")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.15)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        batches = [int(b) for b in arguments.batches.split(",")]
        data = {kind: os.path.join(work, kind + ".txt") for kind in ("trees", "long")}
        write_data(arguments.trees, max(batches), data["trees"], data["long"])
        models = arguments.models.split(",")
        if arguments.sizes:
            sizes(models, data, batches, arguments.rounds, arguments.seconds)
            return
        for model in models:
            kind, small, _ = MODELS[model]
            table(model, data[kind], small, batches, rounds_of(model, arguments.rounds),
                  arguments.seconds)


if __name__ == "__main__":
    main()
