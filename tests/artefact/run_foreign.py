#!/usr/bin/env python3
"""Artefacts for AArch64 under an emulator: run_foreign.py SHEAF RUNNER [MODEL ...]

RUNNER is tests/artefact/run_artefact.cpp, built for AArch64; scripts/aarch64.sh sets what the
emulator needs. Every model of models/ is built here for that architecture, with products in f32 and
in bf16, and run there over its data, with batches of one, of seven and of all, on one and two
threads, and with the runtime's checks. All have to give the same bytes, and numbers as code for
x86-64-v3 on this machine does: of the same class, so the same bits, but for host code that calls
the C library's functions of floats.
"""
import glob
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from models import MODELS
from run_models import vocabulary_options

ROOT = os.path.join(HERE, "..", "..")
# Batch, threads, checks.
SETTINGS = [["1"], ["7", "2"], ["1000"], ["1000", "1", "hostile"]]


def main():
    sheaf, runner = sys.argv[1:3]
    names = sys.argv[3:] or sorted(MODELS)
    jobs = [(name, precision) for name in names for precision in ("f32", "bf16")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = list(pool.map(lambda job: compare(sheaf, runner, *job), jobs))
    for (name, precision), problem in zip(jobs, problems):
        if problem:
            print(f"FAILED: {name}, {precision}\n{problem}", flush=True)
    failed = sum(map(bool, problems))
    print(f"{len(jobs) - failed} of {len(jobs)} artefacts for AArch64 have the bits of x86-64")
    sys.exit(1 if failed else 0)


def compare(sheaf, runner, name, precision):
    path = os.path.join(ROOT, "models", name + ".sheaf")
    data = os.path.join(ROOT, "models", "data", MODELS[name])
    with tempfile.TemporaryDirectory() as work:
        words = vocabulary_options(sheaf, path, data, work)
        if isinstance(words, str):
            return words
        words += ["--dim", "hidden=24", "--seed", "1", "--precision", precision]
        artefact = os.path.join(work, "model.sheafc")
        built = run([sheaf, "build", path, *words, "--target-cpu", "neoverse-n1", "-o", artefact])
        if built.returncode:
            return built.stderr
        here = run([sheaf, "run", path, *words, "--target-cpu", "x86-64-v3", "--data", data])
        for setting in SETTINGS:
            there = run(["qemu-aarch64", runner, artefact, data, *setting])
            if (there.returncode, there.stdout) != (here.returncode, here.stdout):
                return f"with {setting}: {there.stderr}\n" + difference(here.stdout, there.stdout)
    return ""


def difference(here, there):
    for number, (a, b) in enumerate(zip(here.splitlines(), there.splitlines())):
        if a != b:
            return f"instance {number}:\n{a[:400]}\n{b[:400]}"
    return f"{len(here.splitlines())} and {len(there.splitlines())} lines"


def run(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


main()
