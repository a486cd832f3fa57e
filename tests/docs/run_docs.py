#!/usr/bin/env python3
"""Runs a text's programs and commands, so that what it shows is true.

    run_docs.py SHEAF TEXT.md FOLDER

A code block that begins with ```LANGUAGE NAME shows a part of the file NAME of FOLDER: its lines
stand there, one after the other; a line `...` stands for any lines. In a block that begins with
```console, a line `$ COMMAND` is run in a copy of FOLDER, and the lines after it are what it
prints, standard error before standard output; `...` stands for any lines, and decimal numbers need
agree to 1e-4 only. In ```console times numbers may be any. A command that needs a Python package that
is not here is left out.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def blocks(text):
    """(line, info, lines) of each block of code."""
    block = None
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            if block is None:
                block = (number, line[3:].split(), [])
            else:
                yield block
                block = None
        elif block is not None:
            block[2].append(line)


def same_line(expected, actual, times):
    if NUMBER.sub("#", expected).split() != NUMBER.sub("#", actual).split():
        return False
    if times:
        return True
    for a, b in zip(NUMBER.findall(expected), NUMBER.findall(actual)):
        if a != b and (not re.search(r"[.e]", a + b) or abs(float(a) - float(b)) > 1e-4):
            return False
    return True


def same(expected, actual, agree):
    """Whether `actual` is as `expected` says, where `...` stands for any lines."""
    reached = {0}  # how many lines of `actual` what is read of `expected` may stand for
    for line in expected:
        if line == "...":
            reached = set(range(min(reached), len(actual) + 1)) if reached else set()
        else:
            reached = {i + 1 for i in reached if i < len(actual) and agree(line, actual[i])}
    return len(actual) in reached


def commands(lines):
    """(command, lines that it prints) of a block."""
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
    for command, expected in found:
        while expected and not expected[-1].strip():
            expected.pop()
    return found


def missing_package(command, folder):
    """The first package that a `python3 FILE` takes and that is not installed."""
    program = re.match(r"python3 (\S+)", command)
    if not program:
        return None
    source = open(os.path.join(folder, program[1]), encoding="utf-8").read()
    for package in re.findall(r"^(?:import|from) (\w+)", source, re.M):
        found = subprocess.run(["python3", "-c", f"import {package}"], capture_output=True)
        if found.returncode:
            return package
    return None


def main():
    sheaf, text, folder = sys.argv[1:4]
    environment = dict(os.environ, LC_ALL="C.UTF-8")
    environment["PATH"] = os.path.dirname(os.path.abspath(sheaf)) + ":" + environment["PATH"]
    problems, ran, shown = [], 0, 0
    with tempfile.TemporaryDirectory() as directory:
        work = os.path.join(directory, "work")
        shutil.copytree(folder, work)
        for number, info, lines in blocks(open(text, encoding="utf-8").read()):
            place = f"{text}:{number}"
            if info[:1] == ["console"]:
                for command, expected in commands(lines):
                    package = missing_package(command, work)
                    if package:
                        print(f"{place}: {command}: left out, there is no package {package}")
                        continue
                    ran += 1
                    result = subprocess.run(["bash", "-c", command], cwd=work, env=environment,
                                            text=True, capture_output=True, timeout=300,
                                            stdin=subprocess.DEVNULL)
                    actual = (result.stderr + result.stdout).rstrip("\n").split("\n")
                    if result.returncode or (expected and not same(
                            expected, actual, lambda a, b: same_line(a, b, info[1:] == ["times"]))):
                        problems.append("\n".join(
                            [f"{place}: {command}: exit code {result.returncode}, prints"] + actual))
            elif len(info) > 1:
                shown += 1
                file = open(os.path.join(folder, info[1]), encoding="utf-8").read().split("\n")
                if not same(["..."] + lines + ["..."], file, lambda a, b: a == b):
                    problems.append(f"{place}: {info[1]} has no such lines")
    for problem in problems:
        print(problem)
    print(f"{ran} commands, {shown} programs, {len(problems)} problems")
    if not shown:
        print(f"{text} has no programs")
    sys.exit(1 if problems or not shown else 0)


main()
