#!/usr/bin/env python3
"""The memory of a training step of models/treelstm.sheaf over the least that must be kept for it.

    bench/training_memory.py TREES [--hidden H] [--batch N]

One mini-batch of the first N trees. The least: what the products and non-linearities of the backward
pass read, at a leaf i, o, u, c, h, at an inner node i, o, u, fl, fr, c, h, of H floats each. Memory:
the peak of everything that Sheaf allocates for the step but the parameters and their gradients,
which are as large.
"""
import argparse
import json
import os
import struct
import subprocess
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
SHEAF = os.path.join(ROOT, "build", "bin", "sheaf")


def main():
    arguments = argparse.ArgumentParser(description=__doc__,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("trees")
    arguments.add_argument("--hidden", type=int, default=256)
    arguments.add_argument("--batch", type=int, default=64)
    given = arguments.parse_args()
    with open(given.trees, encoding="utf-8") as stream:
        trees = [line for line in stream.read().split("\n") if line.strip()][:given.batch]
    # A node has one bracket; of binary trees one more are leaves than are not.
    nodes = sum(tree.count("(") for tree in trees)
    leaves = (nodes + len(trees)) // 2
    inner = nodes - leaves
    with tempfile.TemporaryDirectory() as work:
        with open(work + "/trees.txt", "w", encoding="utf-8") as stream:
            stream.write("\n".join(trees) + "\n")
        subprocess.run([SHEAF, "train", ROOT + "/models/treelstm.sheaf", "--data",
                        work + "/trees.txt", "--dim", f"hidden={given.hidden}", "--batch",
                        str(len(trees)), "--epochs", "2", "--without", "memoise-records", "-o",
                        work + "/run"], check=True, capture_output=True)
        with open(work + "/run/last.safetensors", "rb") as stream:
            header = json.loads(stream.read(struct.unpack("<Q", stream.read(8))[0]))
        with open(work + "/run/log.jsonl", encoding="utf-8") as stream:
            line = json.loads(stream.readlines()[-1])
    floats = 0
    for name, tensor in header.items():
        if name != "__metadata__":
            *outer, width = tensor["shape"]
            rows = 1
            for extent in outer:
                rows *= extent
            floats += rows * ((width + 15) // 16 * 16)
    gradients = floats * 4 / 2 ** 20
    least = (5 * leaves + 7 * inner) * given.hidden * 4 / 2 ** 20
    rows = line["rows_mb"] - gradients
    total = rows + line["records_mb"] + line["scratch_mb"]
    print(f"{len(trees)} trees, {leaves} leaves, {inner} inner nodes, hidden {given.hidden}")
    print(f"least that must be kept: (5 * {leaves} + 7 * {inner}) * {given.hidden} * 4 bytes = "
          f"{least:.2f} MB")
    print(f"rows {rows:.2f} MB ({rows / least:.2f} of it), records, values and stacks "
          f"{line['records_mb']:.2f} MB, scratch {line['scratch_mb']:.2f} MB")
    print(f"together {total:.2f} MB, {total / least:.2f} of the least")


if __name__ == "__main__":
    main()
