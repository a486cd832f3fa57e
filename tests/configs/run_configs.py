#!/usr/bin/env python3
"""The text programs and models under hostile settings: run_configs.py SHEAF CONFIG [PROGRAM ...]

CONFIG is a name of CONFIGS. Each program is verified under about two of the settings, always the
same ones; with SHEAF_FULL=1 in the environment, or when programs are named, under all.
"""
import glob
import os
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "programs"))
import programs

OFF = ["inline", "specialise", "simplify", "weights-right", "fold-weights", "fold-constants",
       "read-elements", "spread-loops", "reduce-folds", "hoist-products", "hoist-rows", "code-motion", "fork-calls", "keep-joined", "blocks",
       "split-blocks", "identical-records", "ghosts", "phases", "fuse", "merge", "panels",
       "serpentine", "flat-rows", "share-temporaries", "tuned"]

CONFIGS = {f"without-{name}": ["--without", name] for name in OFF}
CONFIGS["plain"] = []
CONFIGS["without-all"] = [word for name in OFF for word in ("--without", name)]
CONFIGS["batch-1-threads-2"] = ["--batch", "1", "--threads", "2"]
CONFIGS["hostile"] = ["--hostile"]
CONFIGS["fibers-1"] = ["--fibers", "1"]
CONFIGS["fibers-3"] = ["--fibers", "3", "--hostile"]
CONFIGS["forks-always"] = ["--forks", "always", "--hostile"]
CONFIGS["forks-never"] = ["--forks", "never", "--hostile"]
CONFIGS["forks-alternately"] = ["--forks", "alternately", "--fibers", "5"]
CONFIGS["hostile-without-all"] = CONFIGS["hostile"] + CONFIGS["without-all"]
CONFIGS["policy-agenda"] = ["--policy", "agenda", "--hostile"]
CONFIGS["policy-lookahead"] = ["--policy", "lookahead", "--without", "phases"]
CONFIGS["policy-search"] = ["--policy", "search", "--batch", "5"]
CONFIGS["policy-auto"] = ["--policy", "auto", "--batch", "1"]
CONFIGS["little-fold-memory"] = ["--fold-memory", "2K", "--hostile"]
CONFIGS["bf16"] = ["--precision", "bf16"]
CONFIGS["bf16-hostile"] = CONFIGS["bf16"] + CONFIGS["hostile-without-all"]
CONFIGS["bf16-x86-64-v3"] = CONFIGS["bf16"] + ["--target-cpu", "x86-64-v3"]
CONFIGS["x86-64-v3"] = ["--target-cpu", "x86-64-v3"]
CONFIGS["x86-64-v2"] = ["--target-cpu", "x86-64-v2"]
CONFIGS["x86-64-v2-without-all"] = CONFIGS["x86-64-v2"] + CONFIGS["without-all"]
# Products by each library, alone.
LIBRARIES = ["onednn", "libxsmm", "openblas"]
for name in LIBRARIES:
    others = ["generated"] + [other for other in LIBRARIES if other != name]
    CONFIGS[name] = ["--numeric-class", "any", "--without", ",".join(others)]
CONFIGS["onednn-hostile-without-all"] = CONFIGS["onednn"] + CONFIGS["hostile-without-all"]
CONFIGS["libxsmm-x86-64-v2"] = CONFIGS["libxsmm"] + CONFIGS["x86-64-v2"]
CONFIGS["openblas-hostile"] = CONFIGS["openblas"] + CONFIGS["hostile"]

SHARE = int(os.environ.get("SHEAF_SHARE", "6"))  # one program of so many under each setting

MODELS = {"treelstm": "trees.txt", "sentiment": "trees.txt", "treelstm_childsum": "nary_trees.txt", "treegru": "trees.txt",
          "treernn": "trees.txt", "mvrnn": "trees.txt", "lstm": "sentences.txt",
          "bilstm": "tagged.txt", "transformer": "sentences.txt", "dagrnn": "dags.jsonl",
          "ponder": "sentences.txt", "drnn": "sentences.txt", "generate": "sentences.txt",
          "beam": "sentences.txt", "berxit": "sentences.txt", "birnn": "sentences.txt",
          "earlyexit": "sentences.txt", "nestedrnn": "sentences.txt",
          "stackrnn": "sentences.txt", "lattice": "lattices.jsonl"}


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
    everything = bool(sys.argv[3:]) or os.environ.get("SHEAF_FULL", "") not in ("", "0")
    failed = count = 0
    for path in paths:
        name = os.path.splitext(os.path.basename(path))[0]
        waits = config.startswith(("fibers", "forks"))
        if waits and not everything and "read(" not in open(path).read():
            continue
        if not everything and not waits and zlib.crc32(f"{name} {config}".encode()) % SHARE:
            continue
        is_model = os.path.basename(os.path.dirname(os.path.abspath(path))) == "models"
        if is_model and name not in MODELS:
            sys.exit(f"{path}: MODELS does not name its data")
        program = model(path) if is_model else programs.Program(path)
        # --verify runs batches of 1 and 2 threads itself: there the plain run is what is new.
        problems = runner.run(program, CONFIGS[config], verify=config != "batch-1-threads-2",
                              results=config == "batch-1-threads-2")
        count += 1
        if problems:
            failed += 1
            print(f"FAILED: {path}\n{problems}", flush=True)
    print(f"{count - failed} of {count} programs passed under {config}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
