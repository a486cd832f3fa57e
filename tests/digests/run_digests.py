#!/usr/bin/env python3
"""Digests of what every model gives: run_digests.py SHEAF [--share N | --write]

A change of structure changes no bit. For each model of models/ digests.json holds one of its
results, of its weights after one step of plain descent over all its data (its gradients), and of
its weights after a short training, or, of those that read files of others, the results of each entry
with the files of tests/checkpoints, by numeric class: precision, how factors of products in bf16 are
summed, and whether the processor has fused multiply-adds (docs/numerics.md). What this machine can
run is compared. Where bits change on purpose, --write makes the file anew for the classes that this
machine has; the change says why. With --share one of so many is compared.
"""
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
FILE = os.path.join(HERE, "digests.json")
CHECKPOINTS = os.path.join(HERE, "..", "checkpoints")
sys.path[:0] = [os.path.join(HERE, ".."), CHECKPOINTS]
from run_checkpoints import instances
from models import LOSSES, MODELS

INSTANCES = "12"
# Far from those of any machine: plans follow from the sizes of caches, and no bit does.
CACHES = [["--target-cache", "L1=1K,L2=1K"], ["--target-cache", "L1=1G,L2=1G"]]
COURSES = {
    "gradients": ["--optimizer", "sgd", "--lr", "1", "--epochs", "1", "--batch", INSTANCES],
    "training": ["--optimizer", "adamw", "--lr", "0.01", "--epochs", "2", "--batch", "5", "--clip", "1"],
}


def classes(sheaf):
    """Of each numeric class that runs here its name and the options that choose it."""
    host = json.loads(command([sheaf, "version", "--format", "json"]).stdout)
    products = "bf16 in tiles" if host["tiles"] else "bf16 in pairs"
    found = {}
    if host["fma"]:
        found["f32, fused"] = []
        found[products + ", fused"] = ["--precision", "bf16"]
    # The least processor of the other class, wherever its code runs.
    if host["cpu"] and not host["fma"]:
        found["f32, not fused"] = []
    elif "x86" in os.uname().machine:
        found["f32, not fused"] = ["--target-cpu", "x86-64-v2"]
    return found


def results(sheaf, name, options, work):
    path = os.path.join(ROOT, "models", name + ".sheaf")
    made = command([sheaf, "run", path, "--data", data(MODELS[name], work), *options])
    return digest(made.stdout.encode()) if made.returncode == 0 else made.stderr


def checkpoint_results(sheaf, name, options, work):
    """What all its entries give of the texts that PyTorch was asked of."""
    directory = os.path.join(CHECKPOINTS, name)
    with open(os.path.join(directory, "expected.json"), encoding="utf-8") as stream:
        expected = json.load(stream)
    answers = ""
    for entry in sorted(set(expected) - {"by", "texts"}):
        path = os.path.join(work, "data.jsonl")
        with open(path, "w", encoding="utf-8") as stream:
            stream.writelines(json.dumps(given) + "\n" for given, _ in instances(expected, entry))
        made = command([sheaf, "run", os.path.join(ROOT, "models", name + ".sheaf"), "--entry", entry,
                        "--data", path, "--weights", directory + "/", *options])
        if made.returncode:
            return made.stderr
        answers += made.stdout
    return digest(answers.encode())


def weights(sheaf, name, loss, course, options, work):
    with open(os.path.join(ROOT, "models", name + ".sheaf"), encoding="utf-8") as stream:
        text = stream.read()
    path = os.path.join(work, name + ".sheaf")
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text + "\n" + loss + "\n")
    directory = os.path.join(work, "run")
    made = command([sheaf, "train", path, "--data", data(MODELS[name], work), "-o", directory,
                    *COURSES[course], *options])
    if made.returncode:
        return made.stderr
    with open(os.path.join(directory, "last.safetensors"), "rb") as stream:
        content = stream.read()
    # The header has a note of who wrote it.
    return digest(content[8 + int.from_bytes(content[:8], "little"):])


def data(name, work):
    """The first instances, in a file of their own."""
    path = os.path.join(work, name)
    with open(os.path.join(ROOT, "models", "data", name), encoding="utf-8") as stream:
        lines = stream.read().splitlines()
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("".join(line + "\n" for line in lines[:int(INSTANCES)]))
    return path


def digest(content):
    return hashlib.sha256(content).hexdigest()[:16]


def command(words):
    return subprocess.run(words, capture_output=True, text=True, timeout=600)


def main():
    sheaf = os.path.abspath(sys.argv[1])
    full = os.environ.get("SHEAF_FULL") == "1"
    # One of so many; the plans for odd caches are a second look at the same bits.
    share = 1 if full or "--share" not in sys.argv else int(sys.argv[sys.argv.index("--share") + 1])
    caches_share = 1 if full else 36
    with open(FILE, encoding="utf-8") as stream:
        kept = json.load(stream)
    jobs = []
    for kind, options in classes(sheaf).items():
        if kind not in kept and "--write" not in sys.argv:
            print(f"no digests are kept of {kind}")  # made on a machine of another class
            continue
        made_here = options + ["--dim", "hidden=24", "--seed", "1"]
        for caches in [[]] + ([] if "--write" in sys.argv else CACHES):
            planned = made_here + caches
            some = [(kind, name, "results", results, (sheaf, name, planned)) for name in sorted(MODELS)]
            some += [(kind, name, "results", checkpoint_results, (sheaf, name, options + caches))
                     for name in sorted(os.listdir(CHECKPOINTS))
                     if os.path.isdir(os.path.join(CHECKPOINTS, name))]
            for name, loss in LOSSES.items():
                for course in ["gradients"] if caches else COURSES:
                    some.append((kind, name, course, weights, (sheaf, name, loss, course, planned)))
            each = caches_share if caches else share
            jobs += some[len(jobs) % each::each]  # others for each kind

    def run(job):
        with tempfile.TemporaryDirectory() as work:
            return job[3](*job[4], work)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(run, jobs))
    different = 0
    for (kind, name, what, _, _), value in zip(jobs, found):
        entry = kept.setdefault(kind, {}).setdefault(name, {})
        if len(value) != 16:
            sys.exit(f"FAILED: {kind}: {name}: {what}: {value}")
        if "--write" not in sys.argv and entry.get(what) != value:
            different += 1
            print(f"FAILED: {kind}: {name}: {what}: {value}, not {entry.get(what)}")
        entry[what] = value
    if "--write" in sys.argv:
        with open(FILE, "w", encoding="utf-8") as stream:
            json.dump(kept, stream, indent=1, sort_keys=True)
            stream.write("\n")
    print(f"{len(jobs) - different} of {len(jobs)} digests are as they were")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
