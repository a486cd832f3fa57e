#!/usr/bin/env python3
"""What a weight on the left costs: the time of `w @ x` over that of `x @ transpose(w)`.

    bench/weights_left.py [--hidden 64,256] [--batches 1,8,64] [--rounds N] [--seconds S]
                          [--options "--precision bf16"] [--only vector,picked]

Programs of bench/worth/weights-right.sheaf over 64 instances of 20 vectors each: vectors, in a
recursion, too; (v @ x) @ x; matrices that an index picks, of the host or of a tensor; matrices of
20 columns, over the form with transposes written out and over `x @ transpose(w)`. Both sides run in
turn, several rounds; the median of the ratios of their shortest times is printed, with the least
and the greatest. Needs build/bin/sheaf (./demo makes it) and an otherwise idle machine. One thread.
"""
import argparse
import json
import os
import random
import statistics
import tempfile

import ablation

PROGRAM = os.path.join(ablation.ROOT, "bench", "worth", "weights-right.sheaf")
# What is compared: both sides, and the data of each.
PAIRS = [("vector", "vector_left", "vector_right"), ("fold", "fold_left", "fold_right"),
         ("bilinear", "bilinear_left", "bilinear_right"),
         ("picked", "picked_left", "picked_right"), ("gathered", "gathered_left", "gathered_right"),
         ("matrix", "matrix_left", "matrix_written"), ("matrix", "matrix_left", "matrix_right")]
INSTANCES, VECTORS, MATRICES = 64, 20, 8


def kind_of(entry):
    if entry in ("matrix_left", "matrix_written"):
        return "columns"
    for name in ("picked", "gathered"):
        if entry.startswith(name):
            return name
    return "rows" if entry == "matrix_right" else "vectors"


def write_data(directory, hidden):
    draw = random.Random(1)
    files = {kind: open(os.path.join(directory, f"{kind}_{hidden}.jsonl"), "w", encoding="utf-8")
             for kind in ("vectors", "picked", "gathered", "columns", "rows")}
    for _ in range(INSTANCES):
        xs = [[round(draw.uniform(-1, 1), 3) for _ in range(hidden)] for _ in range(VECTORS)]
        picks = [draw.randrange(MATRICES) for _ in xs]
        for kind, values in {"vectors": {"xs": xs}, "picked": {"picks": picks, "xs": xs},
                             "gathered": {"k": picks, "x": xs}, "rows": {"x": xs},
                             "columns": {"y": list(map(list, zip(*xs)))}}.items():
            files[kind].write(json.dumps(values) + "\n")
    for stream in files.values():
        stream.close()


def main():
    numbers = lambda text: [int(word) for word in text.split(",")]
    parser = argparse.ArgumentParser()
    parser.add_argument("--hidden", type=numbers, default=[64, 256])
    parser.add_argument("--batches", type=numbers, default=[1, 8, 64])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", default="0.2")
    parser.add_argument("--options", default="")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    only = [word for word in args.only.split(",") if word]
    print(f"{'':10} {'hidden':>6} {'batch':>5}  {'over':16} {'ratio':>6}  {'least':>6} {'most':>6}"
          f"  {'GFLOP/s':>8}")
    with tempfile.TemporaryDirectory() as directory:
        for hidden in args.hidden:
            write_data(directory, hidden)

            def rows(entry):
                data = os.path.join(directory, f"{kind_of(entry)}_{hidden}.jsonl")
                text = ablation.sheaf(
                    "bench", PROGRAM, "--entry", entry, "--data", data, "--dim", f"hidden={hidden}",
                    "--engine", "batched", "--without", "memoise-records", "--seconds",
                    args.seconds, "--batch", ",".join(map(str, args.batches)), "--format", "json",
                    *args.options.split())
                return json.loads(text)

            for name, left, right in PAIRS:
                if only and name not in only:
                    continue
                rounds = [(rows(left), rows(right)) for _ in range(args.rounds)]
                for i, batch in enumerate(args.batches):
                    ratios = [a[i]["ms_min"] / b[i]["ms_min"] for a, b in rounds]
                    speed = max(a[i]["gflop"] / a[i]["ms_min"] * 1e3 for a, _ in rounds)
                    print(f"{name:10} {hidden:6} {batch:5}  {right:16} "
                          f"{statistics.median(ratios):6.2f}  {min(ratios):6.2f} {max(ratios):6.2f}"
                          f"  {speed:8.1f}", flush=True)


main()
