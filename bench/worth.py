#!/usr/bin/env python3
"""For each optimisation a program that it makes fast: "For each a program" in
docs/benchmarks/optimisations.md.

    bench/worth.py TREES [--only a,b] [--seconds S]

TREES: binary bracket trees, such as those of the Stanford Sentiment Treebank, of which the first 64
or their words are read. Needs build/bin/sheaf (./demo makes it) and an otherwise idle machine. One
thread.

Programs are models, or where none is named, of bench/worth and of the optimisation's name. Columns:
launches of a mini-batch with the optimisation and without it, and how many times as long it takes
without it: the median of pairs of mini-batches in turn, with its interval of 95 % (`sheaf bench
--against`). To compile: how many times as much of the processor's time it takes without, the median
of five pairs.
"""
import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import tempfile

import ablation

INSTANCES = 64
WORTH = os.path.join(ablation.ROOT, "bench", "worth")

# The optimisation; its model; what it reads; dims; batches.
PROGRAMS = [
    ("inline", "birnn", "trees", [], [8, 64]),
    ("specialise", None, "trees", [], [8, 64]),
    ("simplify", "drnn", "trees", [], [8]),
    ("branch-weights", None, "vectors", [], [8, 64]),
    ("weights-right", None, "vectors", [], [8, 64]),
    ("fold-weights", None, "trees", [], [8, 64]),
    ("spread-loops", None, "trees", [], [1, 8]),
    ("reduce-folds", "treelstm_childsum", "listops", [], [8, 64]),
    ("hoist-products", "lstm", "trees", [], [8, 64]),
    ("sink-into-branches", None, "trees", [], [8, 64]),
    ("fold-constants", "stackrnn", "trees", [], [8]),
    ("code-motion", "lattice", "lattices", ["hidden=64"], [8, 64]),
    ("blocks", "treelstm", "trees", [], [8, 64]),
    ("split-blocks", None, "trees", [], [8, 64]),
    ("memoise-records", "treelstm", "trees", [], [8, 64]),
    ("ghosts", None, "kinds", [], [2, 8]),
    ("phases", None, "trees", [], [8, 64]),
    ("fork-calls", "drnn", "trees", [], [8, 64]),
    ("fuse", None, "rows", [], [1, 8]),
    ("merge", None, "trees", [], [8, 64]),
    ("panels", "treelstm", "trees", [], [8, 64]),
    ("flat-rows", None, "trees", [], [8, 64]),
    ("share-temporaries", None, "rows", [], [1, 8]),
]

# The extents that data give, for compiling without them.
EXTENTS = {"rows": [], "vectors": [], "lattices": ["vocab=1000", "word_vocab=1000"]}


def write_data(kind, stream, trees, instances):
    """`kinds` are sentences of 24 words, each long or short by chance; `rows` 4096 numbers each;
    `vectors` 20 vectors of 256 numbers."""
    draw = random.Random(1)
    if kind == "lattices":
        subprocess.run([os.path.join(ablation.ROOT, "bench", "lattices.py"), str(instances), "1"],
                       stdout=stream, check=True)
    elif kind == "listops":
        stream.write(ablation.sheaf("make", "listops", "-n", str(instances), "--seed", "1"))
    elif kind == "trees":
        stream.writelines(line + "\n" for line in trees)
    elif kind == "kinds":
        words = sorted(set(ablation.words_of(trees)))
        for _ in range(instances):
            sentence = [{draw.choice(["Long", "Short"]): [draw.choice(words)]} for _ in range(24)]
            stream.write(json.dumps({"words": sentence}) + "\n")
    elif kind == "vectors":
        for _ in range(instances):
            xs = [[round(draw.gauss(0, 1), 3) for _ in range(256)] for _ in range(20)]
            stream.write(json.dumps({"xs": xs}) + "\n")
    else:
        for _ in range(instances):
            row = [round(draw.gauss(0, 1), 3) for _ in range(4096)]
            stream.write(json.dumps({"x": row}) + "\n")


def processor_time(program, dims, *more):
    """Seconds that compiling takes, of all its threads."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ablation.code(program, dims, *more)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trees")
    parser.add_argument("--only", default=",".join(name for name, *_ in PROGRAMS))
    parser.add_argument("--seconds", type=float, default=2)
    arguments = parser.parse_args()
    chosen = arguments.only.split(",")
    trees = ablation.first_trees(arguments.trees, INSTANCES)
    print("| left out | program | batch | launches | without | time | to compile |")
    print("|---|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as work:
        for name, program, kind, dims, batches in PROGRAMS:
            if name not in chosen:
                continue
            program = program or os.path.join(WORTH, name)
            suffix = ".txt" if kind in ("trees", "listops") else ".jsonl"
            data = os.path.join(work, kind + suffix)
            if not os.path.exists(data):
                with open(data, "w", encoding="utf-8") as stream:
                    write_data(kind, stream, trees, INSTANCES)
            complete = [*EXTENTS.get(kind, ["vocab=1000"]), *dims]
            compiling = statistics.median(processor_time(program, complete, "--without", name) /
                                          processor_time(program, complete) for _ in range(5))
            for batch in batches:
                row = ablation.measure(program, data, dims, batch, arguments.seconds, "--against",
                                       name)
                without = ablation.measure(program, data, dims, batch, 0.1, "--without", name)
                time = row["against"][0]
                print(f"| {name} | `{os.path.basename(program)}` | {batch} | {row['launches']} | "
                      f"{without['launches']} | {time['median']:.2f} ({time['low']:.2f} to "
                      f"{time['high']:.2f}) | {compiling:.2f} |", flush=True)


if __name__ == "__main__":
    main()
