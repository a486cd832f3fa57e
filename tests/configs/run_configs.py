#!/usr/bin/env python3
"""The text programs and models under hostile settings: run_configs.py SHEAF CONFIG [PROGRAM ...]

CONFIG is a name of `configs`, or `without-2-of-4`: the second, sixth, ... of what can be left out.
Each program is verified under a few of the settings, always the same ones; with SHEAF_FULL=1 in
the environment, or when programs are named, under all.
"""
import glob
import json
import os
import re
import subprocess
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("..", "../programs"):
    sys.path.insert(0, os.path.join(HERE, folder))
import programs
from models import MODELS


def configs(sheaf):
    """The options of each setting. What can be left out is asked of the command."""
    listed = subprocess.run([sheaf, "help", "optimisations", "--json"], capture_output=True,
                            text=True, check=True)
    rows = json.loads(listed.stdout)["rows"]
    off = [row["name"] for row in rows if row["kind"] != "library"]
    computers = [row["name"] for row in rows if row["kind"] == "library"]
    without_all = [word for name in off for word in ("--without", name)]
    hostile, v2 = ["--hostile"], ["--target-cpu", "x86-64-v2"]
    bf16, v3 = ["--precision", "bf16"], ["--target-cpu", "x86-64-v3"]

    def products_by(name):
        others = ",".join(other for other in computers if other != name)
        return ["--numeric-class", "any", "--without", others]

    return {f"without-{name}": ["--without", name] for name in off} | {
        "plain": [],
        "without-all": without_all,
        "batch-1-threads-2": ["--batch", "1", "--threads", "2"],
        "hostile": hostile,
        "fibers-1": ["--fibers", "1"],
        "fibers-3": ["--fibers", "3", *hostile],
        "forks-always": ["--forks", "always", *hostile],
        "forks-never": ["--forks", "never", *hostile],
        "forks-alternately": ["--forks", "alternately", "--fibers", "5"],
        "hostile-without-all": hostile + without_all,
        "policy-agenda": ["--policy", "agenda", *hostile],
        "policy-lookahead": ["--policy", "lookahead", "--without", "phases"],
        "policy-search": ["--policy", "search", "--batch", "5"],
        "policy-memory": ["--policy", "memory", *hostile],
        "policy-auto": ["--policy", "auto", "--batch", "1"],
        "little-fold-memory": ["--fold-memory", "2K", *hostile],
        "bf16": bf16,
        "bf16-hostile": bf16 + hostile + without_all,
        "bf16-x86-64-v3": bf16 + v3,
        "x86-64-v3": v3,
        "x86-64-v2": v2,
        "x86-64-v2-without-all": v2 + without_all,
        "onednn": products_by("onednn"),
        "libxsmm": products_by("libxsmm"),
        "openblas": products_by("openblas"),
        "onednn-hostile-without-all": products_by("onednn") + hostile + without_all,
        "libxsmm-x86-64-v2": products_by("libxsmm") + v2,
        "openblas-hostile": products_by("openblas") + hostile,
    }


def chosen(sheaf, config):
    """The settings that CONFIG stands for, by name."""
    known = configs(sheaf)
    part = re.fullmatch(r"without-(\d+)-of-(\d+)", config)
    if not part:
        return {config: known[config]}
    number, parts = map(int, part.groups())
    names = [name for name in known if name.startswith("without-") and name != "without-all"]
    return {name: known[name] for name in names[number - 1::parts]}


SHARE = int(os.environ.get("SHEAF_SHARE", "40"))  # one program of so many under each setting



def model(path):
    """A model of models/ as a program, with the first of its data and small dims."""
    program = programs.Program(path)
    data = MODELS[program.name]
    with open(os.path.join(os.path.dirname(path), "data", data), encoding="utf-8") as stream:
        program.lines = stream.read().splitlines()[:12]
    program.format = {"jsonl": "jsonl"}.get(data.rpartition(".")[2]) or \
        {"sentences.txt": "text", "tagged.txt": "tagged"}.get(data, "trees")
    program.options = ["--dim", "hidden=24", "--seed", "1"]
    return program


def main():
    sheaf, config = sys.argv[1:3]
    runner = programs.Runner(sheaf)
    paths = sys.argv[3:] or sorted(glob.glob(os.path.join(HERE, "..", "programs", "*.sheaf")) +
                                   glob.glob(os.path.join(HERE, "..", "..", "models", "*.sheaf")))
    everything = bool(sys.argv[3:]) or os.environ.get("SHEAF_FULL") == "1"
    failed = count = 0
    for setting, options in chosen(sheaf, config).items():
        share = 4 * SHARE // 3 if config != setting else SHARE
        for path in paths:
            name = os.path.splitext(os.path.basename(path))[0]
            waits = setting.startswith(("fibers", "forks"))
            if waits and not everything and "read(" not in open(path).read():
                continue
            one_of = max(1, share // 6) if waits else share  # few programs read
            if not everything and zlib.crc32(f"{name} {setting}".encode()) % one_of:
                continue
            is_model = os.path.basename(os.path.dirname(os.path.abspath(path))) == "models"
            if is_model and os.path.isdir(os.path.join(HERE, "..", "checkpoints", name)):
                continue
            if is_model and name not in MODELS:
                sys.exit(f"{path}: tests/models.py does not name its data")
            program = model(path) if is_model else programs.Program(path)
            if program.long and not everything:
                continue
            # --verify runs batches of 1 and 2 threads itself: there the plain run is what is new.
            problems = runner.run(program, options, verify=setting != "batch-1-threads-2",
                                  results=setting == "batch-1-threads-2")
            count += 1
            if problems:
                failed += 1
                print(f"FAILED: {path} under {setting}\n{problems}", flush=True)
    print(f"{count - failed} of {count} programs passed under {config}")
    sys.exit(1 if failed or not count else 0)


if __name__ == "__main__":
    main()
