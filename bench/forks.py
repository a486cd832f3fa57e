#!/usr/bin/env python3
"""What forked calls are worth, and cost: "Calls side by side" in
docs/benchmarks/loops.md.

    bench/forks.py SENTENCES [--seconds S] [--batches 1,8,64]

SENTENCES: text, one a line, of which the first 64 are read. Searches as they are written
(bench/forks: beam search over a copy network, best-first search, speculative decoding; `beam`), and
`drnn`. Columns: the time of a mini-batch, calls that were forked and that ran in place when all
instances run, and how many times as long it takes with --without fork-calls, the median of pairs of
mini-batches in turn with its interval of 95 % (`sheaf bench --against`). One thread; needs
build/bin/sheaf.
"""
import argparse
import json
import os
import tempfile

import ablation

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = [os.path.join(HERE, "forks", "copy_beam"), os.path.join(HERE, "forks", "best_first"),
            os.path.join(HERE, "forks", "speculative"), "beam", "drnn"]


def counts_of(program, data, batch):
    """How calls of all instances ran."""
    counts = data + ".stats.json"
    path = os.path.join(ablation.ROOT, "models", program + ".sheaf")
    ablation.sheaf("run", path, "--data", data, "--seed", "1", "--batch", str(batch), "--format",
                   "none", "--stats", "json", "--stats-file", counts)
    with open(counts, encoding="utf-8") as stream:
        return json.load(stream)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sentences")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--batches", default="1,8,64")
    arguments = parser.parse_args()
    print("| program | batch | ms | forked | in place | time without |")
    print("|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as work:
        data = os.path.join(work, "data.txt")
        with open(arguments.sentences, encoding="utf-8") as stream:
            lines = stream.readlines()
        with open(data, "w", encoding="utf-8") as stream:
            stream.writelines((lines * (64 // len(lines) + 1))[:64])
        for program in PROGRAMS:
            name = os.path.basename(program)
            for batch in map(int, arguments.batches.split(",")):
                row = ablation.measure(program, data, [], batch, arguments.seconds, "--against",
                                       "fork-calls")
                counts, without = counts_of(program, data, batch), row["against"][0]
                print(f"| {name} | {batch} | {row['ms_min']:.3f} | {counts['forked']} | "
                      f"{counts['in_place']} | {without['median']:.2f} ({without['low']:.2f} to "
                      f"{without['high']:.2f}) |", flush=True)


if __name__ == "__main__":
    main()
