#!/usr/bin/env python3
"""Artefacts against just-in-time: run_models.py SHEAF RUN_ARTEFACT MODELS [MODEL ...]

Every model of models/ is built into an artefact and run over its data, on one and two threads, with
a batch of one and of all, and by an engine; the output has to have the same bytes as that of the
source.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from models import MODELS


def main():
    sheaf, runner, models = sys.argv[1:4]
    paths = [os.path.join(models, name + ".sheaf") for name in sys.argv[4:]] or sorted(
        path for path in glob.glob(os.path.join(models, "*.sheaf"))
        if os.path.splitext(os.path.basename(path))[0] in MODELS)
    failed = 0
    for path in paths:
        name = os.path.splitext(os.path.basename(path))[0]
        data = os.path.join(models, "data", MODELS[name])
        problem = compare(sheaf, runner, path, data)
        if problem:
            failed += 1
            print(f"FAILED: {name}\n{problem}", flush=True)
    print(f"{len(paths) - failed} of {len(paths)} models have the same bits")
    sys.exit(1 if failed else 0)


def compare(sheaf, runner, path, data):
    with tempfile.TemporaryDirectory() as work:
        artefact = os.path.join(work, "model.sheafc")
        words = vocabulary_options(sheaf, path, data, work)
        if isinstance(words, str):
            return words
        words += ["--dim", "hidden=24", "--seed", "1"]
        built = run([sheaf, "build", path, *words, "-o", artefact])
        if built.returncode:
            return built.stderr
        source = run([sheaf, "run", path, *words, "--data", data])
        for options in ([], ["--batch", "1"], ["--batch", "1000", "--threads", "2"], ["--hostile"]):
            loaded = run([sheaf, "run", artefact, "--data", data, *options])
            if (loaded.returncode, loaded.stdout) != (source.returncode, source.stdout):
                return f"with {options}: {loaded.stderr}"
        for options in (["1"], ["2"], ["1", "hostile"]):
            served = run([runner, artefact, data, "engine", *options])
            if (served.returncode, served.stdout) != (source.returncode, source.stdout):
                return f"by an engine with {options}: {served.stderr}"
    return ""


def vocabulary_options(sheaf, path, data, work):
    """The options that name vocabularies of the data, made in a folder; the message of an error."""
    with open(path, encoding="utf-8") as stream:
        names = sorted(set(re.findall(r"\btoken\b(?:<(\w+)>)?", stream.read())))
    options = []
    for name in names:
        file = os.path.join(work, "vocabulary" + name)
        made = run([sheaf, "vocab", data, "--model", path, "-o", file] +
                   (["--name", name] if name else []))
        if made.returncode:
            return made.stderr
        options += ["--vocab", f"{name}={file}"]
    return options


def run(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


if __name__ == "__main__":
    main()
