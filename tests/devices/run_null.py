#!/usr/bin/env python3
"""Programs that read, on the null device: run_null.py SHEAF RUN_NULL [PROGRAM ...]

Models and text programs that read tensors are built, and run_null compares what they launch and hold
on the null device, with numbers from a log, with what they do on the processor.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("..", "../configs", "../programs"):
    sys.path.insert(0, os.path.join(HERE, folder))
import programs
from models import MODELS
from run_configs import model


def main():
    sheaf, runner = map(os.path.abspath, sys.argv[1:3])
    failed = count = 0
    for path in sys.argv[3:] or readers():
        is_model = os.path.basename(os.path.dirname(os.path.abspath(path))) == "models"
        program = model(path) if is_model else programs.Program(path)
        problem = compare(sheaf, runner, program)
        count += 1
        if problem:
            failed += 1
            print(f"FAILED: {path}\n{problem}", flush=True)
    print(f"{count - failed} of {count} programs launch and hold the same on the null device")
    sys.exit(1 if failed or not count else 0)


def readers():
    """Models and programs that read tensors."""
    found = glob.glob(os.path.join(HERE, "..", "programs", "*.sheaf")) + [
        os.path.join(HERE, "..", "..", "models", name + ".sheaf") for name in MODELS]
    return sorted(path for path in found if re.search(r"\bread(_all)?\(", open(path).read()))


def compare(sheaf, runner, program):
    """What is wrong with it, if anything."""
    with tempfile.TemporaryDirectory() as work:
        for name, text in program.files.items():
            with open(os.path.join(work, name), "w", encoding="utf-8") as stream:
                stream.write(text)
        data = os.path.join(work, "data." + ("jsonl" if program.format == "jsonl" else "txt"))
        with open(data, "w", encoding="utf-8") as stream:
            stream.write("".join(line + "\n" for line in program.lines))
        path = os.path.abspath(program.path)
        words = vocabulary_options(sheaf, path, data, program, work)
        given = list(zip(program.options[::2], program.options[1::2]))
        build = [word for name, value in given if name in ("--dim", "--seed")
                 for word in (name, value)]
        built = run([sheaf, "build", path, *words, *build, "-o", "model.sheafc"], work)
        if built.returncode:
            return built.stderr
        steps = [value for name, value in given if name == "--max-steps"]
        ran = run([runner, "model.sheafc", data, program.format, *steps], work)
        return "" if ran.returncode == 0 else ran.stdout + ran.stderr


def vocabulary_options(sheaf, path, data, program, work):
    """The options that name vocabularies of the data, made in a folder."""
    with open(path, encoding="utf-8") as stream:
        names = sorted(set(re.findall(r"\btoken\b(?:<(\w+)>)?", stream.read())))
    options = []
    for name in names:
        file = os.path.join(work, "vocabulary" + name)
        made = run([sheaf, "vocab", data, "--data-format", program.format, "--model", path, "-o",
                    file] + (["--name", name] if name else []), work)
        if made.returncode == 0:
            options += ["--vocab", f"{name}={file}"]
    return options


def run(command, folder):
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder)


if __name__ == "__main__":
    main()
