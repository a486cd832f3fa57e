#!/usr/bin/env python3
"""Runs the text tests of the command.

A test file holds cases; each runs in an empty directory of its own:

    === name of the case
    --- file m.sheaf
    text of the file
    --- run sheaf check m.sheaf
    --- exit 1
    --- stdout
    text
    --- stderr
    text

`run` is a shell command with `sheaf` in the path and $MODELS naming the model directory; exit (0 by
default), stdout and stderr speak of the run before them. With SHEAF_CASES=N one case in N runs. An
output without a section is not compared. In expected text a line `...` stands for any lines,
`{{regex}}` for a part of a line.
"""
import difflib
import os
import re
import subprocess
import sys
import tempfile


class Run:
    def __init__(self, command, line):
        self.command, self.line = command, line
        self.exit, self.stdout, self.stderr = 0, None, None


def parse(path):
    cases = []
    body = None
    with open(path, encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            if line.startswith("=== "):
                cases.append((line[4:].strip(), [], []))
                body = None
            elif line.startswith("--- "):
                name, files, runs = cases[-1]
                kind, _, rest = line[4:].strip().partition(" ")
                body = None
                if kind == "file":
                    body = []
                    files.append((rest, body))
                elif kind == "run":
                    runs.append(Run(rest, number))
                elif kind == "exit":
                    runs[-1].exit = int(rest)
                elif kind in ("stdout", "stderr"):
                    body = []
                    setattr(runs[-1], kind, body)
                else:
                    sys.exit(f"{path}:{number}: unknown section '{kind}'")
            elif body is not None:
                body.append(line)
            elif line.strip() and not line.startswith("#"):
                sys.exit(f"{path}:{number}: text outside of a section")
    return cases


def trim(lines):
    """Drops the blank lines that separate cases."""
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def line_matches(expected, actual):
    if "{{" not in expected:
        return expected == actual
    pattern = "".join(
        part[2:-2] if part.startswith("{{") else re.escape(part)
        for part in re.split(r"(\{\{.*?\}\})", expected)
    )
    return re.fullmatch(pattern, actual) is not None


def matches(expected, actual):
    """Greedy matching with `...` for any lines."""
    at, resume = 0, None  # resume: where to try again after the last `...`
    i = 0
    while True:
        if i < len(expected) and expected[i] == "...":
            i += 1
            resume = (i, at)
            continue
        if i == len(expected) and at == len(actual):
            return True
        if i < len(expected) and at < len(actual) and line_matches(expected[i], actual[at]):
            i, at = i + 1, at + 1
            continue
        if resume is None or resume[1] >= len(actual):
            return False
        i, at = resume[0], resume[1] + 1
        resume = (i, at)


def compare(what, expected, actual):
    expected = [line.rstrip("\n") for line in trim(list(expected))]
    actual = actual.rstrip("\n").split("\n") if actual.strip() else []
    if matches(expected, actual):
        return ""
    diff = difflib.unified_diff(expected, actual, f"expected {what}", f"actual {what}", lineterm="")
    return "\n".join(diff) + "\n"


def main():
    sheaf, models, path = sys.argv[1:4]
    only = sys.argv[4] if len(sys.argv) > 4 else ""
    environment = dict(os.environ, LC_ALL="C.UTF-8", MODELS=os.path.abspath(models))
    # Whatever the program is called, the cases call it sheaf.
    names = tempfile.TemporaryDirectory()
    os.symlink(os.path.abspath(sheaf), os.path.join(names.name, "sheaf"))
    environment["PATH"] = names.name + ":" + environment["PATH"]
    failed = 0
    cases = [case for case in parse(path) if only in case[0]]
    if not only:
        cases = cases[::int(os.environ.get("SHEAF_CASES", "1"))]
    for name, files, runs in cases:
        problems = ""
        with tempfile.TemporaryDirectory() as directory:
            for file, lines in files:
                target = os.path.join(directory, file)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                with open(target, "w", encoding="utf-8") as stream:
                    stream.write("".join(trim(list(lines))))
            for run in runs:
                try:
                    result = subprocess.run(
                        ["bash", "-c", run.command], cwd=directory, env=environment, text=True,
                        errors="replace", capture_output=True, stdin=subprocess.DEVNULL, timeout=120)
                except subprocess.TimeoutExpired:
                    problems += f"{path}:{run.line}: {run.command}\ndoes not end\n"
                    break
                found = ""
                if result.returncode != run.exit:
                    found += f"exit code {result.returncode}, expected {run.exit}\n"
                    found += result.stderr
                if run.stdout is not None:
                    found += compare("stdout", run.stdout, result.stdout)
                if run.stderr is not None:
                    found += compare("stderr", run.stderr, result.stderr)
                if found:
                    problems += f"{path}:{run.line}: {run.command}\n{found}"
        if problems:
            failed += 1
            print(f"FAILED: {name}\n{problems}")
    print(f"{len(cases) - failed} of {len(cases)} cases passed")
    sys.exit(1 if failed else 0)


main()
