#!/usr/bin/env python3
"""What attention costs whose scores spread widely, over one whose scores do not.

    bench/attention_spread.py [--queries N] [--width N] [--pairs N]

Exponentials of scores far below the greatest would be subnormal numbers, on which arithmetic is many
times slower; exp is 0 there instead (docs/numerics.md). Causal attention over the same values and
keys, once with queries whose scores spread over 200 and once over 2, forward and in a step of
training, in turn; the median of the ratios of the shortest times. Exit code 1 above 1.05. One
thread; needs build/bin/sheaf (./demo makes it) and an otherwise idle core.
"""
import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile

SHEAF = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "bin", "sheaf")
LIMIT = 1.05
PROGRAM = """
dim d = %d
param w : f32[d, d] = identity
fn main(q: f32[n, d], k: f32[n, d], v: f32[n, d]) -> f32[n, d] =
  attention(q @ w, k, v, causal=1)
fn loss(q: f32[n, d], k: f32[n, d], v: f32[n, d]) -> f32 = sum(square(main(q, k, v)))
"""


def data(path, given, spread):
    """Keys differ in length along one direction, so that scores are spread evenly."""
    values = random.Random(1)
    matrix = lambda scale: [[scale * values.gauss(0, 1) for _ in range(given.width)]
                            for _ in range(given.queries)]
    with open(path, "w", encoding="utf-8") as stream:
        for _ in range(8):
            q, k, v = matrix(0.01), matrix(0.01), matrix(1)
            for row in q:
                row[0] = spread * math.sqrt(given.width)
            for row in k:
                row[0] = values.random()
            stream.write(json.dumps({"q": q, "k": k, "v": v}) + "\n")


def shortest(program, source, more):
    run = subprocess.run([SHEAF, "bench", program, "--data", source, "--batch", "8", "--seconds", "0.3",
                          "--format", "json", *more], capture_output=True, text=True, check=True)
    report = json.loads(run.stdout)
    found = []

    def visit(value):
        if isinstance(value, dict):
            if "ms_min" in value:
                found.append(value["ms_min"])
            for each in value.values():
                visit(each)
        elif isinstance(value, list):
            for each in value:
                visit(each)

    visit(report)
    return min(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=128)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--pairs", type=int, default=20)
    given = parser.parse_args()
    worst = 0
    with tempfile.TemporaryDirectory() as directory:
        program = os.path.join(directory, "attention.sheaf")
        with open(program, "w", encoding="utf-8") as stream:
            stream.write(PROGRAM % given.width)
        wide, narrow = (os.path.join(directory, f"{name}.jsonl") for name in ("wide", "narrow"))
        data(wide, given, 200)
        data(narrow, given, 2)
        for name, more in (("forward", ["--engine", "batched"]), ("training", ["--train"])):
            ratios = [shortest(program, wide, more) / shortest(program, narrow, more)
                      for _ in range(given.pairs)]
            ratio = statistics.median(ratios)
            worst = max(worst, ratio)
            print(f"{name}: scores over 200 take {ratio:.3f} of the time of scores over 2 "
                  f"({min(ratios):.3f} to {max(ratios):.3f})")
    sys.exit(worst > LIMIT)


if __name__ == "__main__":
    main()
