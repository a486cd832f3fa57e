#!/usr/bin/env python3
"""What counting and tracing cost: interleaved pairs of `sheaf bench`.

    bench/counting.py build [PAIRS]

Builds both programs first: one that is older than the other compares two commits.
Prints for each case the ratio of the time with counters to that without them, and of the time with
a trace to that without: the median of the pairs and the 95 % interval of the median.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

from medians import interval

BUILD = os.path.abspath(sys.argv[1])
PAIRS = int(sys.argv[2]) if len(sys.argv) > 2 else 21
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CASES = [("treelstm", 32, 64), ("treelstm", 256, 64), ("stackrnn", 64, 32), ("drnn", 64, 32),
         ("lattice", 64, 25)]


def milliseconds(program, model, hidden, batch, data, *more):
    out = subprocess.run(
        ["taskset", "-c", "1", program, "bench", os.path.join(ROOT, "models", model + ".sheaf"),
         "--data", data, "--dim", f"hidden={hidden}", "--batch", str(batch), "--engine", "batched",
         "--format", "json", "--seed", "1", "--seconds", "0.2", *more],
        text=True, capture_output=True, check=True).stdout
    return json.loads(out)[0]["ms"]


def main():
    subprocess.run(["ninja", "--quiet", "-C", BUILD, "sheaf", "sheaf-uncounted"], check=True)
    sheaf = os.path.join(BUILD, "bin", "sheaf")
    uncounted = os.path.join(BUILD, "bin", "sheaf-uncounted")
    print(f"{'case':<24} {'counters':>9} {'95 %':>17} {'trace':>9} {'95 %':>17}")
    with tempfile.TemporaryDirectory() as directory:
        trees = os.path.join(directory, "trees.txt")
        subprocess.run([sheaf, "make", "listops", "-n", "64", "-o", trees], check=True)
        for model, hidden, batch in CASES:
            data = trees if model == "treelstm" else os.path.join(
                ROOT, "models", "data", "lattices.jsonl" if model == "lattice" else "sentences.txt")
            counters, trace = [], []
            for _ in range(PAIRS):
                without = milliseconds(uncounted, model, hidden, batch, data)
                plain = milliseconds(sheaf, model, hidden, batch, data)
                traced = milliseconds(sheaf, model, hidden, batch, data, "--traced")
                counters.append(plain / without)
                trace.append(traced / plain)
            row = f"{model + ' ' + str(hidden) + ', batch ' + str(batch):<24}"
            for ratios in (counters, trace):
                low, high = interval(ratios)
                row += f" {statistics.median(ratios):>9.3f} {low:>8.3f}-{high:.3f}"
            print(row, flush=True)


main()
