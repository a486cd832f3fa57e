#!/usr/bin/env python3
"""Bounds of `sheaf check --fits` against what is counted.

    run_fits.py SHEAF models [--tightness]     each instance of the models' data by itself
    run_fits.py SHEAF programs [NAME ...]      the text programs, all instances at once
    run_fits.py SHEAF random --seeds N         random programs
    run_fits.py SHEAF limits --seeds N         random programs, under limits around their bound

The sizes of the data are the bounds that are asked for. Then no kernel may make more records than
the answer says, nor promise more rows, and a run with that much memory must pass. Of `limits` the
peaks of `run --stats` and `explain --memory` are within the bound of what no limit holds back, too;
what is said to fit in a limit passes under it, and of what is not, half of all fail.
"""
import argparse
import collections
import glob
import json
import os
import random
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
for directory in ("..", "../programs", "../random"):
    sys.path.insert(0, os.path.join(HERE, directory))

import generate  # noqa: E402
import models  # noqa: E402
import programs  # noqa: E402

# Of models whose number of calls depends on what is computed.
CALLS = {"parse.calls": 200}


# ---------------------------------------------------------------------------- sizes of data


def everything(value):
    """More than any length in it."""
    if isinstance(value, dict):
        return sum(1 + everything(part) for part in value.values())
    if isinstance(value, list):
        return sum(1 + everything(part) for part in value)
    return len(value.split()) + 1 if isinstance(value, str) else 1


def largest_number(value):
    if isinstance(value, (dict, list)):
        parts = value.values() if isinstance(value, dict) else value
        return max((largest_number(part) for part in parts), default=0)
    return int(value) if isinstance(value, int) else 0


def count_constructor(value, name):
    if isinstance(value, dict):
        return sum((key == name) + count_constructor(part, name) for key, part in value.items())
    if isinstance(value, list):
        return sum(count_constructor(part, name) for part in value)
    return int(value == name)


def parts_at(arguments, path):
    """The values at `xs[].1`, or None where that goes through data."""
    name = re.match(r"\w+", path).group()
    values = [arguments[name]]
    for step in re.findall(r"\[\]|\.\w+", path[len(name):]):
        if step == "[]":
            values = [part for value in values
                      for part in (value.split() if isinstance(value, str) else value)]
        elif step[1:].isdigit() and all(isinstance(value, list) for value in values):
            values = [value[int(step[1:])] for value in values]
        else:
            return None
    return values


def length(value):
    return len(value.split()) if isinstance(value, str) else len(value)


def extents(value, axis):
    for _ in range(axis):
        value = value[0] if isinstance(value, list) and value else []
    return length(value) if isinstance(value, (list, str)) else 0


def size_of(what, arguments):
    """What the instance has of a size, or what is at least as much."""
    found = re.match(r"how many '(\w+)' there are in '(\w+)[^']*'", what)
    if found:
        return count_constructor(arguments[found.group(2)], found.group(1))
    path = re.search(r"'([^']*)'", what).group(1)
    whole = arguments[re.match(r"\w+", path).group()]
    try:
        values = parts_at(arguments, path)
        if values is not None:
            if what.startswith("axis "):
                return sum(extents(value, int(what.split()[1])) for value in values)
            if what.startswith("the length"):
                return sum(length(value) for value in values)
    except (IndexError, TypeError, KeyError):
        pass
    return max(largest_number(whole), 0) if "number" in what else everything(whole)


def tree_of(text):
    """A bracket tree as the data value that it is. A bracket may begin with a label."""
    words = re.findall(r"[()]|[^\s()]+", text)

    def read(at):
        if words[at] != "(":
            return {"Leaf": [words[at]]}, at + 1
        at += 1
        parts, raw = [], []
        while words[at] != ")":
            raw.append(words[at] != "(")
            part, at = read(at)
            parts.append(part)
        if raw[0] and len(parts) > 1 and (len(parts) == 2 or not any(raw[1:])):
            parts = parts[1:]
        leaf = len(parts) == 1 and "Leaf" in parts[0]
        return (parts[0] if leaf else {"Node": parts}), at + 1

    return read(0)[0]


def arguments_of(line, format, names):
    """An instance's arguments by name."""
    if format == "jsonl":
        value = json.loads(line)
        if isinstance(value, dict) and set(names) & set(value):
            return {name: value.get(name) for name in names}
        return {names[0]: value} if len(names) == 1 else dict(zip(names, value))
    if format == "trees":  # and a label
        return {**{name: 100 for name in names}, names[0]: tree_of(line)}
    if format == "tagged":
        return {name: [word for word in line.split()] for name in names}
    return {names[0]: line.split()}


# ---------------------------------------------------------------------------- runs


class Case:
    def __init__(self, sheaf, path, options, directory):
        self.sheaf, self.path, self.options, self.directory = sheaf, path, options, directory

    def execute(self, *arguments):
        return subprocess.run([self.sheaf, *arguments], capture_output=True, text=True,
                              cwd=self.directory, stdin=subprocess.DEVNULL, errors="replace")

    def ask(self, most, batch, limit="64G"):
        text = ", ".join([f"batch={batch}"] + [f"{name}<={number}" for name, number in most.items()])
        done = self.execute("check", self.path, *self.options, "--fits", text, "--memory-limit",
                            str(limit), "--format", "json")
        if done.returncode not in (0, 1) or not done.stdout:
            raise AssertionError(f"--fits '{text}': {done.stderr[:2000]}")
        return json.loads(done.stdout)

    def sizes(self, question, instances):
        """The largest of each size among the instances."""
        most = {}
        for size in question["sizes"]:
            if not size["names"]:
                continue
            name = size["names"][0]
            if name.endswith(".calls"):
                if name in CALLS:
                    most[name] = CALLS[name]
                continue
            number = max(size_of(size["what"], arguments) for arguments in instances)
            if number < 1 << 59:
                most[name] = number
        return most

    def stats(self, data, format, batch, *extra):
        done = self.execute("run", self.path, *self.options, "--data", data, "--data-format",
                            format, "--batch", str(batch), "--row-reuse", "always",
                            "--fold-memory", "0", "--waves", "0", "--stats", "json", *extra)
        start = done.stderr.find("{\n")
        if start < 0:
            return done, None
        return done, json.JSONDecoder().raw_decode(done.stderr[start:])[0]

    def compare(self, data, format, batch, most):
        """What is wrong, and how near the bounds are; None where there is no bound."""
        report = self.ask(most, batch)
        done, stats = self.stats(data, format, batch)
        if stats is None:
            return "no statistics: " + done.stderr[:500], None
        wrong = ""
        counted = {kernel["kernel"]: kernel["records"] for kernel in stats["kernels"]}
        bounds = {kernel["kernel"]: kernel for kernel in report["kernels"]}
        folded = self.folded
        for kernel, records in counted.items():
            bound = bounds.get(kernel)
            if bound is None:
                if records and kernel not in folded:
                    wrong += f"kernel {kernel} has {records} records and no bound\n"
            elif bound["records"] is not None and records > bound["records"]:
                wrong += f"{bound['place']} ({bound['name']}): {records} records, at most " \
                         f"{bound['records']}\n"
        rows = [kernel["row_bytes"] for kernel in report["kernels"]]
        promised = stats["row_plans"]["promised_bytes"]
        tight = None
        if None not in rows:
            if promised > sum(rows):
                wrong += f"{promised} bytes promised, at most {sum(rows)}\n"
            records = sum(bounds[k]["records"] for k in bounds)
            tight = {"records": (sum(counted.values()), records), "rows": (promised, sum(rows)),
                     "peak": (stats["memory"]["rows"]["peak"], report["memory"]["rows"]),
                     "total": report["bytes"]}
            if report["memory"]["rows"] < stats["memory"]["rows"]["peak"] and not promised:
                wrong += f"{stats['memory']['rows']['peak']} bytes of rows, at most " \
                         f"{report['memory']['rows']}\n"
        if report["bytes"] is not None:
            limited, _ = self.stats(data, format, batch, "--memory-limit", str(report["bytes"]))
            if (limited.returncode, limited.stdout) != (done.returncode, done.stdout):
                wrong += f"with --memory-limit {report['bytes']}: {limited.stderr[:600]}\n"
        return wrong, tight

    @property
    def folded(self):
        """Kernels of what depends on parameters alone, which no instance makes."""
        done = self.execute("compile", self.path, *self.options, "--emit=blocks")
        return range(64) if "sheaf.folded" in done.stdout else ()


def entry_names(path, options=()):
    """The names of the entry's arguments."""
    entry = options[options.index("--entry") + 1] if "--entry" in options else "main"
    with open(path, encoding="utf-8") as stream:
        text = re.sub(r"//[^\n]*", "", stream.read())
    found = re.search(rf"\bfn {entry}\s*(?:<[^>]*>)?\(", text)
    depth, names, at, word = 1, [], found.end(), ""
    start = True
    while depth:
        c = text[at]
        if start and re.match(r"\w+\s*:", text[at:]):
            names.append(re.match(r"\w+", text[at:]).group())
            start = False
        depth += c in "([<{"
        depth -= c in ")]}" or (c == ">" and text[at - 1] != "-")
        if c == "," and depth == 1:
            start = True
        at += 1
    return names


# ---------------------------------------------------------------------------- cases


FULL = os.environ.get("SHEAF_FULL") == "1"


def check_models(sheaf, names, tightness):
    failures = 0
    for name in names or models.names():
        path, data = os.path.abspath(models.path_of(name)), os.path.abspath(models.data_of(name))
        with open(data, encoding="utf-8") as stream:
            lines = [line.strip() for line in stream if line.strip()][:8 if FULL else 2]
        format = "jsonl" if data.endswith("jsonl") else \
            "trees" if "tree" in os.path.basename(data) else \
            "tagged" if "tagged" in data else "text"
        with tempfile.TemporaryDirectory() as directory:
            case = Case(sheaf, path, [], directory)
            with open(path, encoding="utf-8") as stream:
                words = ["", "word"] if "token<word>" in stream.read() else [""]
            for vocabulary in words:
                file = f"vocab{vocabulary}.txt"
                case.execute("vocab", data, "--model", path, "--data-format", format, "-o", file,
                             *(["--name", vocabulary] if vocabulary else []))
                case.options += ["--vocab", f"{vocabulary}={file}" if vocabulary else file]
            question, arguments = case.ask({}, 1), entry_names(path)
            found = []
            for line in lines:
                with open(os.path.join(directory, "data"), "w", encoding="utf-8") as stream:
                    stream.write(line + "\n")
                most = case.sizes(question, [arguments_of(line, format, arguments)])
                wrong, tight = case.compare("data", format, 1, most)
                if not wrong and tight is None:
                    wrong = "it has no bound"
                if wrong:
                    failures += 1
                    print(f"FAILED: {name}: {line[:100]}\n{most}\n{wrong}")
                    break
                found.append(tight)
            if tightness and found:
                print(f"{name}: {tightness_of(found)}")
    return failures


def tightness_of(found):
    """How many times as much the bounds allow as was counted."""
    def ratio(key):
        counted = sum(tight[key][0] for tight in found)
        bound = sum(tight[key][1] for tight in found)
        return f"{key} {bound / counted:.2f}" if counted else f"{key} -"
    return ", ".join(ratio(key) for key in ("records", "rows", "peak"))


def check_program(sheaf, path, options, files, lines, format, directory):
    for name, text in {**files, "data": "".join(line + "\n" for line in lines)}.items():
        with open(os.path.join(directory, name), "w", encoding="utf-8") as stream:
            stream.write(text)
    case = Case(sheaf, path, options, directory)
    given = " ".join(options)
    with open(path, encoding="utf-8") as stream:
        declared = " ".join(re.findall(r"^dim .*", stream.read(), re.M))
    dims = re.findall(r"\b(\w*vocab)\b(?!\s*=)", declared)
    for dim in sorted(set(dims)) if "--vocab" not in given else []:
        name = dim.removesuffix("vocab").removesuffix("_")
        if re.search(rf"\b{dim}=", given):
            continue
        made = case.execute("vocab", "data", "--data-format", format, "-o", dim,
                            *(["--name", name] if name else []))
        case.options = [*case.options, *(["--dim", f"{dim}=9"] if made.returncode else
                                         ["--vocab", f"{name}={dim}" if name else dim])]
    question, arguments = case.ask({}, 1), entry_names(path, options)
    if not arguments:
        return case.compare("data", format, len(lines), {})
    instances = [arguments_of(line, format, arguments) for line in lines]
    return case.compare("data", format, len(lines), case.sizes(question, instances))


# What only `run` takes, with a value or without.
RUN_ONLY = {"--max-depth": 1, "--max-steps": 1, "--memory-limit": 1, "--batch": 1, "--seed": 1,
            "--sample-seed": 1, "--strict-data": 0, "--weights": 1, "--fibers": 1, "--check-nan": 0}


def check_programs(sheaf, names, tightness):
    failures, bounded, found = 0, 0, []
    paths = sorted(glob.glob(os.path.join(HERE, "..", "programs", "*.sheaf")))
    share = 1 if FULL or names else 3
    for path in paths[::share]:
        name = os.path.splitext(os.path.basename(path))[0]
        if names and name not in names:
            continue
        program = programs.Program(path)
        if not program.lines or name.startswith("deep_") or any(
                option in RUN_ONLY for option in program.options):
            continue
        with tempfile.TemporaryDirectory() as directory:
            try:
                wrong, tight = check_program(sheaf, os.path.abspath(path), program.options,
                                             program.files, program.lines, program.format, directory)
            except AssertionError as error:
                wrong, tight = str(error), None
        if wrong:
            failures += 1
            print(f"FAILED: {name}: {wrong}")
        if tight:
            bounded += 1
            found.append(tight)
            if tightness:
                print(f"{name}: {tightness_of([tight])}")
        elif tightness and not wrong:
            print(f"{name}: no bound")
    print(f"{bounded} programs have a bound")
    # Others count calls by what they compute.
    if not names and bounded < (165 if share == 1 else 48):
        failures += 1
        print("FAILED: some that had a bound have none any more")
    return failures


def check_random(sheaf, first, seeds):
    failures, bounded = 0, 0
    for seed in range(first, first + seeds):
        program = generate.generate(seed)
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "program.sheaf")
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(program.text())
            lines = program.jsonl().splitlines()
            try:
                wrong, tight = check_program(sheaf, path, [], {}, lines, "jsonl", directory)
            except AssertionError as error:
                wrong, tight = str(error), None
        bounded += tight is not None
        if wrong:
            failures += 1
            print(f"FAILED: seed {seed}: {wrong}")
    print(f"{bounded} of {seeds} programs have a bound")
    if 4 * bounded < 3 * seeds:
        failures += 1
        print("FAILED: too few of them")
    return failures


# ---------------------------------------------------------------------------- limits


def peaks_of(case, report, batch, counts):
    """What is wrong with the peaks of runs that no limit holds back."""
    wrong = ""
    run = ["--data", "data", "--data-format", "jsonl", "--batch", str(batch), "--fold-memory", "0",
           "--waves", "0"]
    for reuse in ("never", "always", "worth"):
        done = case.execute("run", case.path, *case.options, *run, "--row-reuse", reuse, "--stats",
                            "json")
        memory = json.JSONDecoder().raw_decode(done.stderr[done.stderr.find("{\n"):])[0]["memory"]
        held = sum(kind["peak"] for kind in memory.values())
        counts["peaks"] += 1
        if held > report["unlimited_bytes"]:
            wrong += f"--row-reuse {reuse}: {held} bytes, at most {report['unlimited_bytes']}\n"
    done = case.execute("explain", case.path, *case.options, *run, "--memory", "--format", "json")
    if done.stdout.startswith("{"):
        held = sum(json.loads(done.stdout)["peaks"].values())
        counts["peaks"] += 1
        if held > report["unlimited_bytes"]:
            wrong += f"explain: {held} bytes, at most {report['unlimited_bytes']}\n"
    return wrong


def named(report):
    """Whether an answer of no says what it depends on: sizes of arguments, or a place."""
    blamed = report["unbounded"] if report["bytes"] is None else \
        [size for term in report["terms"] for size in term["sizes"]]
    sizes = [report["sizes"][number] for number in blamed]
    return all(size["names"] or size["place"] for size in sizes) and \
        bool(sizes or report["bytes"] is not None and report["terms"])


POLICIES = "depth", "memory", "agenda", "lookahead", "search", "auto"


def check_limit(case, most, batch, limit, expected, counts):
    report = case.ask(most, batch, limit)
    done = case.execute("run", case.path, *case.options, "--data", "data", "--data-format",
                        "jsonl", "--batch", str(batch), "--memory-limit", str(limit), "--policy",
                        POLICIES[limit % len(POLICIES)], "--stats", "json", "--stats-file", "stats")
    passes = (done.returncode, done.stdout) == (expected.returncode, expected.stdout)
    if report["fits"] != (report["bytes"] is not None and report["bytes"] <= limit):
        return f"under {limit}: fits {report['fits']}, of {report['bytes']} bytes\n"
    if report["fits"]:
        counts["yes"] += 1
        if not passes:
            return f"it fits in {limit}, and fails: {done.stderr[:600]}\n"
        # No instance ran once more, alone.
        with open(os.path.join(case.directory, "stats"), encoding="utf-8") as stream:
            ran = json.load(stream)["mini_batches"]
        return "" if ran == 1 else f"it fits in {limit}, and took {ran} mini-batches\n"
    if not named(report):
        return f"does not fit in {limit}, and nothing is named\n"
    if not passes and (done.returncode != 1 or "memory" not in done.stderr):
        return f"does not fit in {limit}: exit {done.returncode}: {done.stderr[:600]}\n"
    counts["no, passes" if passes else "no, fails"] += 1
    return ""


def check_limits_of(program, seed, directory, sheaf, counts):
    draws = random.Random(seed * 7919 + 5)
    with open(os.path.join(directory, "program.sheaf"), "w", encoding="utf-8") as stream:
        stream.write(program.text())
    case = Case(sheaf, os.path.join(directory, "program.sheaf"), [], directory)
    lines = program.jsonl().splitlines()
    # All of them, and the largest alone, which no smaller wave helps.
    for kept in lines, [max(lines, key=len)]:
        with open(os.path.join(directory, "data"), "w", encoding="utf-8") as stream:
            stream.write("".join(line + "\n" for line in kept))
        case.options = []
        if re.search(r"^dim .*\bvocab\b", program.text(), re.M):
            made = case.execute("vocab", "data", "--data-format", "jsonl", "-o", "words")
            case.options = ["--dim", "vocab=9"] if made.returncode else ["--vocab", "words"]
        question = case.ask({}, 1)
        instances = [arguments_of(line, "jsonl", entry_names(case.path)) for line in kept]
        most = case.sizes(question, instances)
        report = case.ask(most, len(kept))
        for answer in question, report:
            if answer["bytes"] is None and not named(answer):
                return "it is unbounded, and nothing is named\n"
        if report["bytes"] is None:
            counts["no bound"] += 1
            return ""
        counts["bounds"] += 1
        counts["used again"] += report["bytes"] < report["unlimited_bytes"]
        wrong = peaks_of(case, report, len(kept), counts)
        expected = case.execute("run", case.path, *case.options, "--data", "data", "--data-format",
                                "jsonl")
        for _ in range(2 if FULL else 1):
            # The bound itself, or less.
            share = 1 if draws.random() < 0.3 else 50 ** -draws.random()
            wrong += check_limit(case, most, len(kept), int(report["bytes"] * share), expected,
                                 counts)
        if wrong:
            return wrong
    return ""


def check_limits(sheaf, first, seeds):
    failures, counts = 0, collections.Counter()
    for seed in range(first, first + seeds):
        with tempfile.TemporaryDirectory() as directory:
            try:
                wide = (1, 8)[seed % 2]
                wrong = check_limits_of(generate.generate(seed, wide=wide), seed, directory, sheaf,
                                        counts)
            except AssertionError as error:
                wrong = str(error)
        if wrong:
            failures += 1
            print(f"FAILED: seed {seed}: {wrong}", flush=True)
    print(f"{counts['bounds']} bounds of {seeds} programs, {counts['used again']} with rows used "
          f"again; {counts['no bound']} have none; "
          f"{counts['peaks']} peaks are within; of limits " +
          ", ".join(f"{counts[what]} {what}" for what in ("yes", "no, fails", "no, passes")))
    if counts["no, passes"] > counts["no, fails"]:
        failures += 1
        print("FAILED: the bounds are too far off")
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sheaf")
    parser.add_argument("case", choices=["models", "programs", "random", "limits"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--tightness", action="store_true")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int,
                        default=300 if FULL else 12)
    given = parser.parse_intermixed_args()
    sheaf = os.path.abspath(given.sheaf)
    if given.case == "models":
        failures = check_models(sheaf, given.names, given.tightness)
    elif given.case == "programs":
        failures = check_programs(sheaf, given.names, given.tightness)
    elif given.case == "random":
        failures = check_random(sheaf, given.first, given.seeds)
    else:
        failures = check_limits(sheaf, given.first, given.seeds)
    sys.exit(1 if failures else 0)


main()
