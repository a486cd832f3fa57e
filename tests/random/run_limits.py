#!/usr/bin/env python3
"""Random programs under limits of memory: run_limits.py SHEAF run|train [--seeds N] [--first SEED]

Each seed makes a program that may read, and data. It runs, or is trained, without a limit, and then
under limits from next to nothing to more than all, on one and two threads, hostile and not, with
other batches, policies, uses of rows, and rows of the forward pass dropped and not. Each such run
must end with the bits of the one without a limit, or with an error of memory that names the
instance and, of tensors and records, the line. Of a training the weights are those of one without a
limit in as many parts, unless something was halved. A program that fails is kept in --keep.
"""
import argparse
import collections
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import generate
from losses import loss_of

FULL = os.environ.get("SHEAF_FULL") == "1"
TIMEOUT = 180
# A run that ends before its first instance: nothing that is needed for all of them fits.
WHOLE = re.compile(
    r"^error: (the memory limit of .* does not hold (the weights: .*|the packed weights: .*|the"
    r" kernels' scratch memory|.*: .* are needed beside .*)|computing what follows from the weights"
    r" alone failed: .*out of memory.*)$", re.M)
# Lists, data, arguments and the recursion itself belong to no line (docs/language.md).
MEMORY = re.compile(r"out of memory for (tensors|records|data values and lists|the host stack|"
                    r"kernels' scratch memory|gradients)")


class Wrong(Exception):
    pass


class Case:
    def __init__(self, sheaf, seed, directory, counts):
        self.sheaf, self.seed, self.directory, self.counts = sheaf, seed, directory, counts
        self.r = random.Random(seed * 104729 + 7)
        self.program = generate.generate(seed, wide=5 if seed % 3 == 2 else 1,
                                         reads=0.25 if seed % 2 else 0)
        text = self.program.text()
        times = self.r.choice([1, 1, 6, 30])
        self.write("program.sheaf", text + loss_of(self.program))
        self.write("program.jsonl", self.program.jsonl() * times)
        self.instances = len(self.program.instances) * times
        self.many = str(self.r.choice([3, 16, 64, 512]))
        self.reads = "read(" in text
        self.ran = []

    def write(self, name, text):
        with open(os.path.join(self.directory, name), "w", encoding="utf-8") as stream:
            stream.write(text)

    def execute(self, *arguments):
        self.ran = [self.sheaf, *arguments]
        try:
            done = subprocess.run(self.ran, cwd=self.directory, capture_output=True, text=True,
                                  errors="replace", timeout=TIMEOUT, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            raise Wrong("no end") from None
        if done.returncode not in (0, 1) or "internal error" in done.stderr:
            raise Wrong(f"exit {done.returncode}\n{done.stderr[-1500:]}")
        return done

    def count(self, what):
        self.counts[what] += 1


class Runs(Case):
    """`sheaf run`: results line by line."""

    def run(self, *options):
        return self.execute("run", "program.sheaf", "--data", "program.jsonl", "--seed",
                            str(self.seed), "--sample-seed", str(self.seed), *options)

    def check(self):
        free = self.run("--batch", self.many)
        for batch in ("1", self.many):
            stats = self.run("--batch", batch, "--stats", "json").stderr
            start = stats.find("{\n")
            if start < 0:
                return self.count("all instances fail without a limit")
            peaks = json.JSONDecoder().raw_decode(stats[start:])[0]["memory"]
            most = sum(kind["peak"] for kind in peaks.values())
            least = sum(peaks[kind]["peak"] for kind in ("weights", "packed", "scratch"))
            for _ in range(3 if FULL else 2):
                self.limited(free, batch, int(least + (self.r.random() ** 2) * 1.1 * (most - least)))

    def limited(self, free, batch, limit):
        options = ["--memory-limit", str(limit + 1), "--batch", batch,
                   "--row-reuse", self.r.choice(["worth", "always", "never"]),
                   "--policy", self.r.choice(["depth", "memory", "agenda", "lookahead", "search", "auto"]),
                   "--threads", self.r.choice("12"),
                   *self.r.choice([[], [], ["--hostile"]]),
                   *self.r.choice([[], [], ["--waves", "4K"], ["--waves", "0"]]),
                   *self.r.choice([[], [], ["--fibers", "3"], ["--forks", "always"]])]
        done = self.run(*options)
        if WHOLE.search(done.stderr):
            if done.returncode != 1 or done.stdout:
                raise Wrong("results beside an error of the whole run")
            return self.count("nothing fits")
        expected, got = free.stdout.splitlines(), done.stdout.splitlines()
        before, errors = errors_of(free.stderr), errors_of(done.stderr)
        if len(expected) != len(got):
            raise Wrong(f"{len(got)} results of {len(expected)}\n{done.stderr[-1500:]}")
        short = 0
        for number, (a, b) in enumerate(zip(expected, got)):
            if a == b and errors.get(number) == before.get(number):
                continue
            if b != "null" or number not in errors:
                raise Wrong(f"another result of instance {number}:\n{a[:300]}\n{b[:300]}\n"
                            f"{errors.get(number)}")
            if not MEMORY.search(errors[number]):
                raise Wrong(f"instance {number}: another error: {errors[number]}\n"
                            f"without a limit: {before.get(number)}")
            short += 1
        if done.returncode != (1 if errors else 0):
            raise Wrong(f"exit {done.returncode} with {len(errors)} errors")
        self.count("all instances fit" if not short else
                   "some instances fit" if short < len(expected) else "no instance fits")


def errors_of(text):
    """By instance what the run tells."""
    return {int(number): error for number, error in
            re.findall(r"^program\.jsonl:\d+: error: instance (\d+): (.*)$", text, re.M)}


class Trainings(Case):
    """`sheaf train`: weights."""

    def train(self, name, *options):
        path = os.path.join(self.directory, name)
        shutil.rmtree(path, ignore_errors=True)
        done = self.execute(
            "train", "program.sheaf", "--data", "program.jsonl", "--seed", str(self.seed),
            "--epochs", "2", "--lr", "0.01", "--keep", "0", "--without", "hoist-rows", *options,
            "-o", name)
        log, config = [], {}
        if os.path.exists(os.path.join(path, "log.jsonl")):
            with open(os.path.join(path, "log.jsonl"), encoding="utf-8") as stream:
                log = [json.loads(line) for line in stream]
            with open(os.path.join(path, "config.json"), encoding="utf-8") as stream:
                config = json.load(stream)
        return done, log, config

    def weights(self, name):
        path = os.path.join(self.directory, name, "last.safetensors")
        if not os.path.exists(path):
            return None
        with open(path, "rb") as stream:
            return stream.read()

    def check(self):
        common = ["--optimizer", self.r.choice(["sgd", "adam", "momentum"]),
                  *self.r.choice([[], [], ["--accumulate", "2"]]),
                  *self.r.choice([[], [], ["--clip", "1"]])]
        for batch in ("1", self.many):
            hostile = self.r.choice([[], [], ["--hostile"]])
            fixed = [*common, "--batch", batch, *hostile]
            free = {1: self.free(fixed, 1)}
            epochs = [line for line in free[1][1] if line["event"] == "epoch"]
            if not epochs:
                self.count("no training without a limit")
                continue
            peaks = epochs[-1]
            most = sum(peaks.get(each, 0) for each in
                       ("rows_mb", "records_mb", "scratch_mb", "training_mb"))
            for _ in range(3 if FULL else 2):
                limit = int(most * (1 << 20) * (0.2 + 1.5 * self.r.random()))
                self.limited(free, fixed, limit)

    def free(self, fixed, parts):
        result = self.train("free", *fixed, "--parts", str(parts), "--recompute", "never")
        return (*result, self.weights("free"))

    def limited(self, free, fixed, limit):
        options = [*fixed, "--memory-limit", str(limit),
                   "--recompute", self.r.choice(["worth", "always", "never"]),
                   "--row-reuse", self.r.choice(["worth", "always", "never"]),
                   "--threads", self.r.choice("12"),
                   *self.r.choice([[], [], ["--parts", "1"], ["--parts", "3"]])]
        done, log, config = self.train("limited", *options)
        ran = self.ran
        if WHOLE.search(done.stderr):
            if done.returncode != 1:
                raise Wrong(f"exit {done.returncode}\n{done.stderr[-800:]}")
            return self.count("nothing fits")
        memory = re.search(r"out of memory|memory limit.* does not hold (?!a mini-batch:)|"
                           r"memory", re.sub(r"^note: --memory-limit .*$", "", done.stderr,
                                             flags=re.M))
        epochs = [line for line in log if line["event"] == "epoch"]
        if any("halved" in line for line in epochs):
            return self.count("halved")
        parts = config.get("parts", "auto")
        parts = 1 if parts == "auto" else int(parts)
        if parts not in free:
            free[parts] = self.free(fixed, parts)
            self.ran = ran
        without, _, _, weights = free[parts]
        if memory and not re.search("memory", without.stderr):
            if done.returncode != 1:
                raise Wrong(f"exit {done.returncode} with an error of memory\n{done.stderr[-800:]}")
            if not re.search(r"program\.jsonl:\d+: .*" + MEMORY.pattern, done.stderr):
                raise Wrong(f"an error of memory without a place\n{done.stderr[-800:]}")
            return self.count("some instances do not fit")
        if done.returncode != without.returncode:
            raise Wrong(f"exit {done.returncode}, without a limit {without.returncode}\n"
                        f"{done.stderr[-800:]}\n{without.stderr[-800:]}")
        if self.weights("limited") != weights:
            raise Wrong(f"other weights than in {parts} parts without a limit\n"
                        f"{done.stderr[-800:]}")
        dropped = any("recomputed" in line for line in epochs)
        self.count(("the same weights" if parts == 1 else "the same weights in parts") +
                   (", rows dropped" if dropped else ""))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sheaf")
    parser.add_argument("case", choices=["run", "train"])
    parser.add_argument("--seeds", type=int, default=500 if FULL else 8)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", default="limits-failures")
    given = parser.parse_args()
    counts, failed = collections.Counter(), 0

    with tempfile.TemporaryDirectory() as root:
        os.environ["SHEAF_STORE"] = os.path.join(root, "store")

        def one(seed):
            with tempfile.TemporaryDirectory(dir=root) as directory:
                kind = Runs if given.case == "run" else Trainings
                case = kind(os.path.abspath(given.sheaf), seed, directory, counts)
                try:
                    case.check()
                except Wrong as error:
                    keep = os.path.join(os.path.abspath(given.keep), f"{given.case}{seed}")
                    os.makedirs(keep, exist_ok=True)
                    for name in ("program.sheaf", "program.jsonl"):
                        shutil.copy(os.path.join(directory, name), keep)
                    return f"seed {seed}: {error}\nto repeat: cd {keep} && {' '.join(case.ran)}"
            return None

        with ThreadPoolExecutor(given.jobs) as pool:
            for failure in pool.map(one, range(given.first, given.first + given.seeds)):
                if failure:
                    failed += 1
                    print(f"FAILED: {failure}", flush=True)
    for what, number in counts.most_common():
        print(f"{number:6d} {what}")
    print(f"{given.seeds - failed} of {given.seeds} seeds passed")
    sys.exit(1 if failed else 0)


main()
