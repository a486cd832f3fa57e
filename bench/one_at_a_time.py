#!/usr/bin/env python3
"""Whether batching ever costs: every model, batched against one instance at a time.

    bench/one_at_a_time.py [--batches 1,2,4,8,16] [--rounds N] [--seconds S] [--models a,b]

Needs build/bin/sheaf (./demo makes it) and an otherwise idle core. One thread; the first instances
of models/data, at the sizes that the models have by default. Records that are the same are computed
each time (--without memoise-records,fold-weights), so both sides do the same work.

A cell is the time of one at a time over the time batched: the median of so many pairs of runs in
turn, and where the median is below 1 the pairs' interval of 95 % (of few pairs, all).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
import models
from medians import interval

SHEAF = os.path.join(models.ROOT, "build", "bin", "sheaf")


def times(model, batches, seconds):
    """{(engine, batch): milliseconds} of one run that takes the engines in turn."""
    command = [SHEAF, "bench", models.path_of(model), "--data", models.data_of(model), "--batch",
               ",".join(map(str, batches)), "--repetitions", "5", "--seconds", str(seconds),
               "--without", "memoise-records,fold-weights", "--format", "json"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{' '.join(command)}\n{run.stderr}")
    return {(row["engine"], row["batch"]): row["ms"] for row in json.loads(run.stdout)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", default="1,2,4,8,16")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--models")
    arguments = parser.parse_args()
    batches = [int(b) for b in arguments.batches.split(",")]
    print("| model | " + " | ".join(f"batch {b}" for b in batches) + " |")
    print("|---|" + "---:|" * len(batches))
    for model in arguments.models.split(",") if arguments.models else models.names():
        rounds = [times(model, batches, arguments.seconds) for _ in range(arguments.rounds)]
        cells = []
        for batch in batches:
            ratios = [r["unbatched", batch] / r["batched", batch] for r in rounds]
            middle = statistics.median(ratios)
            low, high = interval(ratios)
            cells.append(f"{middle:.2f}" + (f" ({low:.2f} to {high:.2f})" if middle < 1 else ""))
        print(f"| {model} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
