#!/usr/bin/env python3
"""Random programs against the oracle: run_random.py SHEAF [--seeds N] [--first SEED] [OPTION ...]

Each seed makes a program and data (generate.py) and runs `sheaf run --verify` on them twice: as it
is, and with some optimisations left out, another batch size and sometimes another processor. Then
it runs under a memory limit that may be too small: each result is what it is without, or there is an
error of memory that names the instance and the line. A program that fails is kept in --keep, made
smaller, and the command that repeats the failure is printed.
"""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import generate
from program import Expr

TARGETS = ["host", "host", "host", "x86-64-v3", "x86-64-v2"]


def optimisations(sheaf, directory):
    """The names that --without takes, as the command tells them."""
    path = os.path.join(directory, "empty.sheaf")
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("fn main(x: int) -> int = x\n")
    result = subprocess.run([sheaf, "check", path, "--without", "?"], capture_output=True,
                            text=True)
    names = re.search(r"--without takes (.*)", result.stderr)
    return names.group(1).split(", ") if names else []


def settings(seed, names):
    """The options of a seed's two runs."""
    r = random.Random(seed * 7919 + 1)
    seeds = ["--seed", str(seed), "--sample-seed", str(seed), "--dropout"]
    first = [*seeds, "--batch", str(r.choice([1, 2, 3, 4, 64]))]
    second = [*seeds, "--batch", str(r.choice([1, 2, 5, 64]))]
    for name in names:
        if r.random() < r.choice([0.2, 0.5]):
            second += ["--without", name]
    second += ["--target-cpu", r.choice(TARGETS)]
    second += ["--row-reuse", r.choice(["worth", "always", "never"])]
    second += ["--policy", r.choice(["depth", "memory", "agenda", "lookahead", "search"])]
    if r.random() < 0.5:
        second.append("--hostile")
    second += ["--share-rows", r.choice(["always", "never"])]
    return [first, second]


class Failure:
    def __init__(self, kind, text, options):
        self.kind, self.text, self.options = kind, text, options


def command(sheaf, name, options):
    return [sheaf, "run", name + ".sheaf", "--data", name + ".jsonl", "--verify", *options]


def classify(result):
    """What sort of failure: a smaller program must fail in the same way."""
    if result is None:
        return "timeout"
    text = result.stderr + result.stdout
    if result.returncode < 0:
        return f"signal {-result.returncode}"
    if result.returncode == 3 or "internal error" in text:
        first = text[text.find("internal error"):]
        return "internal: " + re.sub(r"[0-9%@\"'].*", "", first.split("\n")[0][15:60])
    if re.search(r"\.sheaf:\d+:\d+: error", text):
        return "rejected: " + re.sub(r"'[^']*'|[0-9]+", "", re.search(
            r"\.sheaf:\d+:\d+: error: (.{0,24})", text).group(1))
    for words in ("disagree", "differ", "the oracle fails", "the compiled program fails"):
        if words in text:
            return words
    return f"exit {result.returncode}"


def attempt(sheaf, program, options, directory, name="program", timeout=120):
    """Runs one program; a Failure, or None."""
    with open(os.path.join(directory, name + ".sheaf"), "w", encoding="utf-8") as stream:
        stream.write(program.text())
    with open(os.path.join(directory, name + ".jsonl"), "w", encoding="utf-8") as stream:
        stream.write(program.jsonl())
    try:
        result = subprocess.run(command(sheaf, name, options), cwd=directory, capture_output=True,
                                text=True, errors="replace", timeout=timeout,
                                stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return Failure("timeout", f"no result in {timeout} seconds", options)
    # That all instances fail, in both ways alike, happens now and then.
    if result.returncode == 0 or "all instances fail: there is no result" in result.stdout:
        return None
    return Failure(classify(result), result.stdout[-1500:] + result.stderr[-1500:], options)


def run(sheaf, options, directory, timeout=120):
    return subprocess.run([sheaf, "run", "program.sheaf", "--data", "program.jsonl", *options],
                          cwd=directory, capture_output=True, text=True, errors="replace",
                          timeout=timeout, stdin=subprocess.DEVNULL)


def attempt_limited(sheaf, seed, directory):
    """Runs the program of attempt() under limits of memory; a Failure, or None."""
    r = random.Random(seed * 104729 + 3)
    options = ["--seed", str(seed), "--sample-seed", str(seed), "--batch", r.choice(["3", "64"])]
    try:
        free = run(sheaf, [*options, "--stats", "json"], directory)
        start = free.stderr.find("{")
        if start < 0:
            return None  # all fails without a limit
        peaks = json.JSONDecoder().raw_decode(free.stderr[start:])[0]["memory"]
        most = sum(kind["peak"] for kind in peaks.values())
        least = peaks["weights"]["peak"] + peaks["packed"]["peak"] + peaks["scratch"]["peak"]
        for _ in range(4 if os.environ.get("SHEAF_FULL") == "1" else 2):
            limited = [*options, "--memory-limit", str(int(least + r.random() * (most - least)) + 1),
                       "--row-reuse", r.choice(["worth", "always", "never"]),
                       "--policy", r.choice(["depth", "agenda"]), "--threads", r.choice("12")]
            result = run(sheaf, limited, directory)
            if why := difference(free, result):
                return Failure("limited: " + why, result.stdout[-700:] + result.stderr[-1500:],
                               limited)
    except subprocess.TimeoutExpired:
        return Failure("timeout", "no result under a limit", options)
    return None


def difference(free, limited):
    """What is wrong with a run under a limit, if anything is."""
    if re.search("does not hold|from the weights alone", limited.stderr) and not limited.stdout:
        return None
    if limited.returncode not in (0, 1):
        return f"exit {limited.returncode}"
    expected, got = free.stdout.splitlines(), limited.stdout.splitlines()
    if len(expected) != len(got):
        return "results are missing"
    for number, (a, b) in enumerate(zip(expected, got)):
        if a == b:
            continue
        error = re.search(rf"error: instance {number}: (.*)", limited.stderr)
        if b != "null" or not error:
            return "another result"
        if not re.search("memory|too deep|stack", error.group(1)):
            return "another error"
    return None


class Shrinker:
    """Replaces parts of a program by simpler ones as long as it fails in the same way."""

    def __init__(self, sheaf, program, failure, directory, seconds):
        self.sheaf, self.program, self.failure = sheaf, program, failure
        self.directory, self.until = directory, time.time() + seconds
        self.generator = generate.Generator(0)
        self.generator.p = program

    def fails(self):
        if time.time() > self.until:
            return False
        found = attempt(self.sheaf, self.program, self.failure.options, self.directory, "smaller",
                        60)
        return found is not None and found.kind == self.failure.kind

    def run(self):
        self.instances()
        while time.time() < self.until and (self.round() | self.options()):
            pass
        self.instances()

    def instances(self):
        every = self.program.instances
        for i in range(len(every)):
            self.program.instances = [every[i]]
            if self.fails():
                return
        self.program.instances = every

    def options(self):
        """Leaves options out."""
        changed, at = False, 0
        options = self.failure.options
        while at < len(options):
            size = 1 if options[at] == "--hostile" else 2
            shorter = options[:at] + options[at + size:]
            self.failure.options = shorter
            if options[at] != "--seed" and self.fails():
                changed, options = True, shorter
            else:
                at += size
            self.failure.options = options
        return changed

    def round(self):
        changed = False
        for function in self.program.functions:
            todo = [function.body]
            while todo and time.time() < self.until:
                expr = todo.pop()
                if self.shrink(expr):
                    changed = True
                    todo.append(expr)
                else:
                    todo += [p for p in expr.parts if isinstance(p, Expr)]
        return changed

    def shrink(self, expr):
        before = expr.parts
        params = list(self.program.params)
        candidates = []
        simple = self.simplest(expr.type)
        if simple and expr.text() != simple:
            candidates.append([simple])
        inner = [e for e in expr.walk() if e is not expr and e.type == expr.type]
        candidates += [[e] for e in sorted(inner, key=lambda e: len(e.text()))[:6]]
        for candidate in candidates:
            if len("".join(p if isinstance(p, str) else p.text() for p in candidate)) >= \
                    len(expr.text()):
                continue
            expr.parts = candidate
            if self.fails():
                return True
            expr.parts, self.program.params = before, list(params)
        return False

    @staticmethod
    def simplest(ty):
        if ty[0] == "f32":
            return f"ones({', '.join(ty[1])})" if ty[1] else "f32(1)"
        if ty[0] == "tuple":
            fields = [Shrinker.simplest(t) for t in ty[1]]
            return None if None in fields else f"({', '.join(fields)})"
        if ty[0] == "list":
            element = Shrinker.simplest(ty[1])
            return element and f"[{element}]"
        return {"int": "1", "float": "1.0", "bool": "true"}.get(ty[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sheaf")
    parser.add_argument("--seeds", type=int, default=25)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--size", type=float, default=1.0, help="depth of expressions")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", default="random-failures")
    parser.add_argument("--shrink", type=float, default=60, help="seconds for each failure")
    arguments = parser.parse_args()
    sheaf = os.path.abspath(arguments.sheaf)
    failed = 0

    with tempfile.TemporaryDirectory() as root:
        names = optimisations(sheaf, root)
        if not names:
            sys.exit("the command does not tell the names of its optimisations")

        def one(seed):
            with tempfile.TemporaryDirectory(dir=root) as directory:
                for options in settings(seed, names):
                    program = generate.generate(seed, arguments.size)
                    failure = attempt(sheaf, program, options, directory)
                    if failure:
                        return seed, program, failure
                failure = attempt_limited(sheaf, seed, directory)
                if failure:
                    return seed, program, failure
            return seed, None, None

        with ThreadPoolExecutor(arguments.jobs) as pool:
            for seed, program, failure in pool.map(
                    one, range(arguments.first, arguments.first + arguments.seeds)):
                if not failure:
                    continue
                failed += 1
                keep = os.path.abspath(arguments.keep)
                os.makedirs(keep, exist_ok=True)
                name = f"seed{seed}"
                attempt(sheaf, program, failure.options, keep, name)
                if failure.kind.startswith("limited") or "--memory-limit" in failure.options:
                    print(f"FAILED: seed {seed}: {failure.kind}\n{failure.text}\nto repeat, and the "
                          f"same without a limit: cd {keep} && {sheaf} run {name}.sheaf --data "
                          f"{name}.jsonl " + " ".join(failure.options), flush=True)
                    continue
                print(f"FAILED: seed {seed}: {failure.kind}\n{failure.text}\n"
                      f"to repeat: cd {keep} && "
                      + " ".join(command(sheaf, name, failure.options)), flush=True)
                if arguments.shrink > 0 and failure.kind != "timeout":
                    Shrinker(sheaf, program, failure, keep, arguments.shrink).run()
                    attempt(sheaf, program, failure.options, keep, name + ".smaller")
                    print(f"smaller:   cd {keep} && "
                          + " ".join(command(sheaf, name + ".smaller", failure.options)) + "\n"
                          + program.text() + program.jsonl()[:2000], flush=True)
    print(f"{arguments.seeds - failed} of {arguments.seeds} seeds passed")
    sys.exit(1 if failed else 0)


main()
