#!/usr/bin/env python3
"""Lattices for models/lattice.sheaf: lines of 3 to 14 words without spaces, and what stands in them.

    bench/lattices.py COUNT SEED > lattices.jsonl
"""
import json
import os
import random
import sys

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models", "data")


def lattice(line, words):
    """The characters, each with the words that end there and where they begin."""
    return [[character, [[begin, line[begin:end + 1]] for begin in range(end)
                         if line[begin:end + 1] in words]]
            for end, character in enumerate(line)]


def main():
    count, seed = map(int, sys.argv[1:])
    with open(os.path.join(DATA, "lattices.jsonl"), encoding="utf-8") as stream:
        words = sorted({word for line in stream for _, ending in json.loads(line)
                        for _, word in ending})
    draw = random.Random(seed)
    for _ in range(count):
        line = "".join(draw.choice(words) for _ in range(draw.randint(3, 14)))
        print(json.dumps(lattice(line, set(words))))


main()
