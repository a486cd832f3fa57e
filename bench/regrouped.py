#!/usr/bin/env python3
"""What a reduction across a reshape takes, over the same along an axis.

    bench/regrouped.py SHEAF [ROUNDS] [--columns N] [--operators NAMES] [--train]

Tensors of 6 x n x COLUMNS elements (36 by default) of 64 instances, n from 20 to 60, to which a
weight is added, are reduced along their last axis, and across reshapes that join axes, divide one, or
do both. A line is an operator: nanoseconds an element along the last axis, then for each form the
median of the rounds' ratios to it, in turn. --train: steps of training, forward and back. One thread;
run it on an otherwise idle core.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

# What is reduced, of extents 6 x n x c; "row" is that of the last axis, which others are held against.
FORMS = {
    "row": ("x: f32[6, n, {c}]", "w + x", 2),
    "joined": ("x: f32[6, n, {c}]", "reshape(w + x, 6, n*{c})", 1),
    "all": ("x: f32[6, n, {c}]", "reshape(w + x, 6*n*{c})", 0),
    "across": ("x: f32[n, 6, {c}]", "reshape(w + x, 6, n*{c})", 1),
    "argument": ("x: f32[6, n, {c}]", "reshape(x, 6, n*{c}) * s", 1),
    "divided": ("x: f32[6, n*{c}]", "reshape(x + s, 6, n, {c}) + w", 2),
    "outer": ("x: f32[6, n*{c}]", "reshape(x + s, 6, n, {c}) + w", 1),
}
OPERATORS = {
    "max": "max({x}, axis={axis})",
    "sum": "sum({x}, axis={axis})",
    "argmax": "f32(argmax({x}, axis={axis}))",
    "logsumexp": "logsumexp({x}, axis={axis})",
    "softmax": "softmax({x}, axis={axis})",
    "norm": "norm({x}, axis={axis})",
}


def write_data(path, declared, columns):
    draw = random.Random(1)
    shape = [part.strip() for part in declared[declared.index("[") + 1:-1].split(",")]

    def tensor(extents):
        if not extents:
            return round(draw.gauss(0, 1), 2)
        return [tensor(extents[1:]) for _ in range(extents[0])]

    count = 0
    with open(path, "w", encoding="utf-8") as stream:
        for _ in range(64):
            n = draw.randint(20, 60)
            count += 6 * n * columns
            stream.write(json.dumps({"x": tensor([eval(e, {}, {"n": n}) for e in shape]), "r": [0] * n}) + "\n")
    return count


def measure(sheaf, program, data, train):
    done = subprocess.run(
        [sheaf, "bench", program, "--data", data, "--batch", "64", "--seed", "1", "--seconds", "0.1",
         "--format", "json", "--repetitions", "5",
         *(["--train"] if train else ["--engine", "batched"])],
        text=True, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)[0]["ms_min"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sheaf")
    parser.add_argument("rounds", type=int, nargs="?", default=3)
    parser.add_argument("--columns", type=int, default=36)
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--operators", default=",".join(OPERATORS))
    given = parser.parse_args()
    print(f"{'':10} {'ns':>7}" + "".join(f"{name:>10}" for name in list(FORMS)[1:]))
    with tempfile.TemporaryDirectory() as directory:
        count, data = 0, {}
        for declared in {form[0] for form in FORMS.values()}:
            declared = declared.format(c=given.columns)
            data[declared] = os.path.join(directory, f"{len(data)}.jsonl")
            count = write_data(data[declared], declared, given.columns)
        for operator in given.operators.split(","):
            if given.train and operator == "argmax":
                continue
            programs = {}
            for name, (declared, x, axis) in FORMS.items():
                declared = declared.format(c=given.columns)
                body = OPERATORS[operator].format(x=x.format(c=given.columns), axis=axis)
                text = (f"param w : f32[{given.columns}] = normal(1)\nparam s : f32[1] = ones\n"
                        f"fn main({declared}, r: f32[n]) -> f32 = sum(square({body}))\n"
                        f"fn loss({declared}, r: f32[n]) -> f32 = main(x, r)\n")
                path = os.path.join(directory, f"{operator}.{name}.sheaf")
                with open(path, "w", encoding="utf-8") as stream:
                    stream.write(text)
                programs[name] = (path, data[declared])
            times = [{name: measure(os.path.abspath(given.sheaf), *program, given.train)
                      for name, program in programs.items()} for _ in range(given.rounds)]
            row = min(each["row"] for each in times)
            ratios = [statistics.median(each[name] / each["row"] for each in times)
                      for name in list(FORMS)[1:]]
            print(f"{operator:10} {row * 1e6 / count:7.3f}" + "".join(f"{r:10.2f}" for r in ratios),
                  flush=True)


main()
