#!/usr/bin/env python3
"""What hoisting is worth, against the same program by hand: hoisted.py SHEAF [ROUNDS [PROGRAM ...]]

A BiLSTM over 64 sentences of 5 to 45 vectors (bench/hoisted/written.sheaf), the same with the
products of its inputs taken out of the recursion in the source (by_hand.sheaf), and the first with
--without hoist-products,hoist-invariants, in turn, on the core that runs it; and likewise an LSTM
that is conditioned on a vector (captured.sheaf), a map that makes something of one vector and of all
of them (invariant.sheaf), and a cell over matrices of two rows (matrices.sheaf). A line has the
shortest times, and the medians of the rounds' ratios with the least and the greatest.
"""
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


# The program, the same by hand, and the rows of a list's elements if these are matrices.
PROGRAMS = (("written", "by_hand", 0), ("captured", "captured_by_hand", 0),
            ("invariant", "invariant_by_hand", 0), ("matrices", "matrices_by_hand", 2))


def write_data(path, hidden, rows):
    draw = random.Random(1)
    with open(path, "w", encoding="utf-8") as stream:
        for _ in range(64):
            def vector():
                return [round(draw.gauss(0, 1), 3) for _ in range(hidden)]

            sentence = [[vector() for _ in range(rows)] if rows else vector()
                        for _ in range(draw.randint(5, 45))]
            stream.write(json.dumps({"xs": sentence}) + "\n")


def measure(sheaf, program, data, hidden, batch, *more):
    done = subprocess.run(
        [sheaf, "bench", os.path.join(HERE, "hoisted", program + ".sheaf"), "--data", data, "--dim",
         f"hidden={hidden}", "--engine", "batched", "--batch", str(batch), "--without",
         ",".join(["memoise-records", *more]), "--seconds", "0.3", "--format", "json"],
        text=True, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)[0]["ms_min"]


def spread(ratios):
    return f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"


def main():
    sheaf, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5
    print(f"{'':9} {'hidden':>6} {'batch':>5} {'ms':>9} {'by hand':>9} {'joined':>9}  "
          f"{'over by hand':24} over joined")
    with tempfile.TemporaryDirectory() as directory:
        for program, by_hand, rows in PROGRAMS:
            if sys.argv[3:] and program not in sys.argv[3:]:
                continue
            for hidden in (64, 256, 512):
                data = os.path.join(directory, f"{hidden}.jsonl")
                write_data(data, hidden, rows)
                for batch in (1, 8, 64):
                    times = [(measure(sheaf, program, data, hidden, batch),
                              measure(sheaf, by_hand, data, hidden, batch),
                              measure(sheaf, program, data, hidden, batch, "hoist-invariants",
                                      "hoist-products"))
                             for _ in range(rounds)]
                    own, hand, joined = (min(column) for column in zip(*times))
                    print(f"{program:9} {hidden:6} {batch:5} {own:9.3f} {hand:9.3f} {joined:9.3f}  "
                          f"{spread([t[0] / t[1] for t in times]):24} "
                          f"{spread([t[0] / t[2] for t in times])}", flush=True)


main()
