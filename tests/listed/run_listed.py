#!/usr/bin/env python3
"""What the command lists has its tests: run_listed.py SHEAF CASE

passes: each has a lit test of its own name.
"""
import json
import os
import subprocess
import sys

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
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


def main():
    cases = {"passes": passes}
    missing = list(cases[sys.argv[2]]())
    for text in missing:
        print(text)
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
