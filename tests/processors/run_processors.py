#!/usr/bin/env python3
"""`sheaf run` as ten processors, by an emulator: run_processors.py SHEAF [PROCESSOR ...]

QEMU's user emulation shows a program another processor: its name, its family, its features. As each
of them a treelstm runs over 20 trees, in f32 and in bf16, one at a time and all at once, with code
for `host`. Equal bits are expected within a numeric class, which is whether the processor has fused
multiply-adds: of all processors, of both batches, and of code for that class on this machine where
it can run it. One class and the other agree to 1e-4. (No AVX-512: QEMU's emulator knows none.)
"""
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# What the program is shown, from the least that there is; Opteron_G4 and _G5 are AMD's family 15h,
# Denverton an Atom without AVX, and max is all that the emulator has.
PROCESSORS = ["qemu64", "Conroe", "Denverton", "Westmere", "SandyBridge", "Opteron_G4",
              "Opteron_G5", "Haswell", "EPYC", "max"]
# Of each class the processor that stands for it in --target-cpu.
CLASSES = {True: "x86-64-v3", False: "x86-64-v2"}
PRECISIONS = ["f32", "bf16"]
BATCHES = ["1", "1000"]


def main():
    sheaf = os.path.abspath(sys.argv[1])
    names = sys.argv[2:] or PROCESSORS
    with tempfile.TemporaryDirectory() as work:
        data = os.path.join(work, "trees.txt")
        with open(os.path.join(ROOT, "models", "data", "trees.txt"), encoding="utf-8") as stream:
            trees = stream.read().splitlines()[:20]
        with open(data, "w", encoding="utf-8") as stream:
            stream.write("\n".join(trees) + "\n")
        command = [sheaf, "run", os.path.join(ROOT, "models", "treelstm.sheaf"), "--data", data,
                   "--dim", "hidden=16", "--seed", "1", "--store", os.path.join(work, "store")]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            runs = list(pool.map(lambda name: as_processor(name, sheaf, command), names))
        for fma, cpu in CLASSES.items():
            runs.append(here(cpu, fma, command))
    problems = compare([run for run in runs if run], len(trees))
    for problem in problems:
        print(f"FAILED: {problem}", flush=True)
    print(f"{len(names)} processors, {len(problems)} problems")
    sys.exit(1 if problems else 0)


def as_processor(name, sheaf, command):
    emulator = ["qemu-x86_64", "-cpu", name]
    version = run(emulator + [sheaf, "version", "--format", "json"])
    if version.returncode:
        return name, None, {}, version.stderr
    fma = json.loads(version.stdout)["fma"]
    return outputs(name, fma, emulator + command)


def here(cpu, fma, command):
    made = outputs(f"--target-cpu {cpu} here", fma, command + ["--target-cpu", cpu])
    return None if "cannot run on this machine" in made[3] else made


def outputs(name, fma, command):
    """The processor's name, its class, what it printed by precision and batch, and an error."""
    printed = {}
    for precision in PRECISIONS:
        for batch in BATCHES:
            made = run(command + ["--precision", precision, "--batch", batch])
            if made.returncode:
                return name, fma, printed, made.stderr
            printed[precision, batch] = made.stdout
    return name, fma, printed, ""


def compare(runs, count):
    problems = [f"{name}: {error}" for name, _, _, error in runs if error]
    runs = [run for run in runs if not run[3]]
    for precision in PRECISIONS:
        firsts = {}
        for name, fma, printed, _ in runs:
            for batch in BATCHES:
                text = printed[precision, batch]
                if len(text.splitlines()) != count:
                    problems.append(f"{name} printed {len(text.splitlines())} lines of {count}")
                first, expected = firsts.setdefault(fma, (name, text))
                if text != expected:
                    problems.append(f"{precision}: {name} with batch {batch} and {first} differ: "
                                    + difference(expected, text))
        if len(firsts) == 2 and precision == "f32":
            (a, left), (b, right) = firsts.values()
            apart = max(abs(x - y) for x, y in zip(numbers(left), numbers(right)))
            if apart > 1e-4:
                problems.append(f"{a} and {b} are {apart} apart")
    return problems


def numbers(text):
    return [number for line in text.splitlines() for number in flat(json.loads(line))]


def flat(value):
    if isinstance(value, list):
        return [number for part in value for number in flat(part)]
    if isinstance(value, dict):
        return flat(list(value.values()))
    return [value]


def difference(a, b):
    for number, (left, right) in enumerate(zip(a.splitlines(), b.splitlines())):
        if left != right:
            return f"instance {number}:\n{left[:300]}\n{right[:300]}"
    return "in the number of lines"


def run(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


main()
