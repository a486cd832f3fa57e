#!/usr/bin/env python3
"""How long a start takes, with nothing kept and with the code of an earlier start:
second_start.py BUILD [REPETITIONS]

Each model of models/ runs over its data of models/data, a few dozen instances; the shortest of the
repetitions counts, from typing to the end. The last column is the second start with hidden 48: what
large weights and products take beyond it belongs to no start.
"""
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
import models


def shortest(command, repetitions):
    """In ms."""
    best = float("inf")
    for _ in range(repetitions):
        begin = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        best = min(best, (time.perf_counter() - begin) * 1e3)
    return best


def main():
    sheaf = os.path.join(sys.argv[1], "bin", "sheaf")
    repetitions = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    print(f"sheaf version: {shortest([sheaf, 'version'], repetitions):.0f} ms\n\n"
          f"{'':20} {'first, ms':>10} {'second, ms':>10} {'hidden 48':>10}")
    with tempfile.TemporaryDirectory() as work:
        for name in models.names():
            command = [sheaf, "run", models.path_of(name), "--data", models.data_of(name),
                       "--format", "none"]
            small = command + ["--dim", "hidden=48"]
            store = ["--store", os.path.join(work, "store")]
            first = shortest(command + ["--store", "none"], 2)
            shortest(command + store, 1)
            shortest(small + store, 1)
            print(f"{name:20} {first:10.0f} "
                  f"{shortest(command + store, repetitions):10.0f} "
                  f"{shortest(small + store, repetitions):10.0f}", flush=True)


main()
