#!/usr/bin/env python3
"""What the command lists has its tests: run_listed.py SHEAF CASE

passes: each has a lit test of its own name. operators: each that has a gradient has a line in
tests/gradients/operators.txt, and each has values, there, in tests/ops/reference_test.cpp or in a
program tests/programs/ops_*.sheaf. models: tests know the data and the bits of each in models/.
"""
import glob
import json
import os
import re
import subprocess
import sys

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, TESTS)
from models import data_of

SHEAF = os.path.abspath(sys.argv[1])


def listed(table):
    done = subprocess.run([SHEAF, "help", table, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["rows"]


def read(*path):
    try:
        with open(os.path.join(TESTS, *path), encoding="utf-8") as stream:
            return stream.read()
    except FileNotFoundError:
        return ""


def passes():
    for row in listed("passes"):
        path = f"passes/{row['name']}.mlir"
        if "RUN: sheaf" not in read(path):
            yield f"the pass {row['name']} has no test tests/{path}"


def operators():
    lines = [line.split("#")[0] for line in read("gradients", "operators.txt").splitlines()]
    lines = [line for line in lines if line.strip()]
    # A line is followed by the values that it gives, if any are stated.
    cases = [line.split("|", 1)[1] for line in lines if not line.startswith(" ")]
    cases.append(re.search(r'HELPERS = """.*?"""', read("gradients", "run_gradients.py"), re.S).group())
    values = [line.split("|", 1)[1] for line, below in zip(lines, lines[1:])
              if below.startswith(" ") and not line.startswith(" ")]
    reference = read("ops", "reference_test.cpp")
    programs = "".join(open(path, encoding="utf-8").read()
                       for path in glob.glob(os.path.join(TESTS, "programs", "ops_*.sheaf")))
    for row in listed("operators"):
        # As a call, or `a + b`, as its description has it.
        call = re.compile(rf"\b{row['name']}\(")
        sign = re.search(r"also written `\w*\s*(.)", row["description"])

        def has(text):
            return call.search(text) or sign and sign.group(1) in text

        if row["gradient"] != "none" and not any(map(has, cases)):
            yield f"the operator {row['name']} has no line in tests/gradients/operators.txt"
        if not (any(map(has, values)) or f'"{row["name"]}"' in reference or call.search(programs)):
            yield f"the operator {row['name']} has no test of its values"


def models():
    digests = json.loads(read("digests", "digests.json"))
    for path in sorted(glob.glob(os.path.join(TESTS, "..", "models", "*.sheaf"))):
        name = os.path.splitext(os.path.basename(path))[0]
        if os.path.isdir(os.path.join(TESTS, "checkpoints", name)):
            continue
        if not os.path.exists(data_of(name)):
            yield f"models/{name}.sheaf names data that is not there"
        for kind, kept in digests.items():
            if name not in kept:
                yield f"tests/digests/digests.json has nothing of {name}, {kind}"


def main():
    cases = {"models": models, "passes": passes, "operators": operators}
    missing = list(cases[sys.argv[2]]())
    for text in missing:
        print(text)
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
