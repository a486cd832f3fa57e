#!/usr/bin/env python3
"""What the products of a training step could reach: each alone, by Sheaf and by the best library.

    bench/training_bound.py TREES [--hidden N] [--batch N]

TREES: binary bracket trees, such as those of the Stanford Sentiment Treebank. The products are those
of models/treelstm.sheaf for the first mini-batch: forward by height, back by height with transposed
weights, and the weights' gradients over all rows. `sheaf bench kernels` times each with nothing
else around it (no gates, no bias, no sums of gradients), the libraries with rows in order. All nodes
count, also equal ones; the few products of the output layer do not. A share is that of the peak of
the same moment, each product weighted by the time that it takes. One thread; needs build/bin/sheaf
(./demo makes it), built where at least one library is, and an otherwise idle core.
"""
import argparse
import collections
import json
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
SHEAF = os.path.join(ROOT, "build", "bin", "sheaf")


def heights(path, batch):
    """How many nodes have each height; leaves have 0."""
    count, stack = collections.Counter(), []
    with open(path, encoding="utf-8") as stream:
        lines = stream.read().splitlines()[:batch]
    for token in re.findall(r"[()]|[^()\s]+", "\n".join(lines)):
        if token == "(":
            stack.append([])
        elif token == ")":
            below = stack.pop()
            height = 1 + max(below, default=-1)
            count[height] += 1
            if stack:
                stack[-1].append(height)
    return count


def speeds(k, n, rows):
    """{rows: (Sheaf's GFLOP/s, the best library's, the peak)} of x[rows, k] @ w[k, n]."""
    run = subprocess.run([SHEAF, "bench", "kernels", "product", "--shape", str(k), str(n), "--rows",
                          ",".join(map(str, sorted(rows))), "--format", "json"],
                         capture_output=True, text=True, check=True)
    lines = json.loads(run.stdout)["lines"]
    if not all(line["others"] for line in lines):
        sys.exit("this build of Sheaf knows no library of products")
    return {line["rows"]: (line["sheaf"], max(line["others"].values()),
                           line["peak"])
            for line in lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--batch", type=int, default=64)
    given = parser.parse_args()
    h, count = given.hidden, heights(given.trees, given.batch)
    leaves, inner = count.pop(0), sum(count.values())
    launches = collections.Counter(count.values())  # how often a launch has so many rows
    products = [("leaves forward", h, 3 * h, {leaves: 1}),
                ("inner nodes forward", 2 * h, 5 * h, launches),
                ("inner nodes back", 5 * h, 2 * h, launches),
                ("leaves back", 3 * h, h, {leaves: 1}),
                ("inner weights' gradients", inner, 5 * h, {2 * h: 1}),
                ("leaf weights' gradients", leaves, 3 * h, {h: 1})]
    print(f"| hidden {h}, batch {given.batch} | GFLOP | Sheaf | best library |\n|---|---:|---:|---:|")
    whole = [0, 0, 0, 0]
    for name, k, n, rows in products:
        measured = speeds(k, n, rows)
        gflop = ideal = mine = best = 0
        for m, times in rows.items():
            each = 2e-9 * m * k * n * times
            sheaf, library, peak = measured[m]
            gflop += each
            ideal += each / peak
            mine += each / sheaf
            best += each / library
        whole = [a + b for a, b in zip(whole, (gflop, ideal, mine, best))]
        print(f"| {name} | {gflop:.2f} | {ideal / mine:.0%} | {ideal / best:.0%} |", flush=True)
    gflop, ideal, mine, best = whole
    print(f"| all | {gflop:.2f} | {ideal / mine:.0%} | {ideal / best:.0%} |")


if __name__ == "__main__":
    main()
