#!/usr/bin/env python3
"""A session takes no more of a process than its memory limit: run_resident.py RESIDENT COMPILER

What the machine counts, the peak of resident memory from the session's begin on, is within the limit,
a twentieth of it and 30 MB, for each model, in inference and in training, with more data than the
limit holds at once. Of all models with SHEAF_FULL=1, else of some. `--table` prints what was counted.
"""
import argparse
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import models  # noqa: E402

FULL = os.environ.get("SHEAF_FULL") == "1"
SOME = ["treelstm", "bilstm"]
MB = 1 << 20
SPARE = 30 * MB


def format_of(path):
    name = os.path.basename(path)
    return "tagged" if "tagged" in name else "trees" if "tree" in name else \
        "jsonl" if name.endswith("jsonl") else "text"


class Case:
    def __init__(self, given, name, what, directory):
        self.given, self.what, self.name = given, what, name
        data = models.data_of(name)
        self.format = format_of(data)
        self.data = os.path.join(directory, "data")
        with open(data, encoding="utf-8") as stream:
            lines = [line.rstrip("\n") for line in stream if line.strip()]
        with open(self.data, "w", encoding="utf-8") as stream:
            stream.write("".join(line + "\n" for line in (lines * given.instances)[:given.instances]))
        self.entry = "main"
        self.model = os.path.join(os.path.dirname(models.path_of(name)), "..", "models",
                                  name + ".sheaf")
        if what == "train":
            self.entry = "loss"
            self.model = os.path.join(directory, name + ".sheaf")
            with open(models.path_of(name), encoding="utf-8") as stream:
                text = stream.read() + "\n" + models.LOSSES[name] + "\n"
            with open(self.model, "w", encoding="utf-8") as stream:
                stream.write(text)

    def measure(self, limit):
        done = subprocess.run(
            [self.given.resident, self.given.compiler, self.model, self.entry, self.data,
             self.format, self.what, str(self.given.instances), str(limit)], capture_output=True,
            text=True, stdin=subprocess.DEVNULL, timeout=600)
        if done.returncode:
            raise AssertionError(f"{self.name}, {self.what}: exit {done.returncode}: {done.stderr}")
        used, failed = map(int, done.stdout.split())
        return used, failed, done.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("resident")
    parser.add_argument("compiler")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--instances", type=int, default=1024 if FULL else 512)
    parser.add_argument("--share", type=float, help="of what is taken without a limit")
    given = parser.parse_intermixed_args()
    failures = 0
    for name in given.names or (models.names() if FULL else SOME):
        for what in ("run", "train"):
            if what == "train" and name not in models.LOSSES:
                continue
            with tempfile.TemporaryDirectory() as directory:
                case = Case(given, name, what, directory)
                free = case.measure(0)[0]
                # Of inference weights are most.
                limit = int((given.share or (0.35 if what == "train" else 0.8)) * free)
                used, failed, told = case.measure(limit)
                if given.table:
                    print(f"{name:18} {what:5} {free / MB:7.1f} MB; limit {limit / MB:6.1f} MB: "
                          f"{used / MB:7.1f} MB, {failed} failed {told.strip()[:110]}", flush=True)
                if used > 1.05 * limit + SPARE:
                    failures += 1
                    print(f"FAILED: {name}, {what}: {used / MB:.1f} MB under a limit of "
                          f"{limit / MB:.1f} MB", flush=True)
    sys.exit(1 if failures else 0)


main()
