#!/usr/bin/env python3
"""What internal errors leave, and that it can be replayed and reduced.

    run_reduce.py SHEAF-FAULTY MODELS CASE

CASE is `dumps`, `reproducers` or `reductions`.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

import jsonschema

SHEAF, MODELS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
MODEL, DATA = os.path.join(MODELS, "treelstm.sheaf"), os.path.join(MODELS, "data", "trees.txt")


def sheaf(cwd, *arguments, fault=None, exit=0, stdin=None):
    environment = dict(os.environ)
    environment.pop("SHEAF_REPRODUCERS", None)
    if fault:
        environment["SHEAF_FAULT"] = fault
    done = subprocess.run([SHEAF, *arguments], cwd=cwd, env=environment, text=True,
                          capture_output=True, timeout=500, input=stdin or "")
    assert done.returncode == exit, (arguments, done.returncode, done.stdout, done.stderr)
    return done


def size_of(path):
    with open(path) as stream:
        return len(stream.read())


def reproducers():
    """Weights with their vocabulary, standard input, an output: all stand in for themselves."""
    for fault, code in (("internal", 3), ("crash", -11)):
        with tempfile.TemporaryDirectory() as directory:
            sheaf(directory, "vocab", DATA, "-o", "w.vocab.txt")
            sheaf(directory, "init", MODEL, "--vocab", "w.vocab.txt", "--dim", "hidden=8", "-o",
                  "w.safetensors")
            command = ["run", MODEL, "--data", DATA, "--dim", "hidden=8", "--weights",
                       "w.safetensors", "-o", "out.jsonl"]
            for attempt in range(2):  # the same failure leaves one directory
                done = sheaf(directory, *command, fault=fault, exit=code)
                assert "sheaf replay sheaf-reproducer-" in done.stderr, done.stderr
            found = glob.glob(os.path.join(directory, "sheaf-reproducer-*"))
            assert len(found) == 1, found
            with open(os.path.join(found[0], "command.json")) as stream:
                kept = json.load(stream)
            schema = os.path.join(MODELS, "..", "docs", "schemas", "reproducer.schema.json")
            with open(schema) as stream:
                jsonschema.validate(kept, json.load(stream))
            assert kept["arguments"][1] == "files/treelstm.sheaf", kept
            assert os.path.exists(os.path.join(found[0], "files", "w.vocab.txt"))
            assert "specialise" in kept["passes"]
            # What it needs is in it, wherever it is.
            moved = tempfile.mkdtemp(dir=directory) + "/moved"
            os.rename(found[0], moved)
            os.remove(os.path.join(directory, "w.safetensors"))
            done = sheaf("/", "replay", moved, fault=fault, exit=code)
            assert ("a fault that was asked for" in done.stderr) == (fault == "internal")
            sheaf("/", "replay", moved)  # without the fault all is well
            assert os.path.exists(os.path.join(moved, "output", "out.jsonl"))
            if fault == "internal":
                sheaf(directory, "reduce", moved, "-o", "small", fault=fault)
                assert size_of(os.path.join(directory, "small", "treelstm.sheaf")) < 700
                assert size_of(os.path.join(directory, "small", "trees.txt")) < 40
    with open(DATA) as stream:
        text = stream.read()
    for fault, code in (("internal", 3), ("crash", -11)):
        with tempfile.TemporaryDirectory() as directory:
            sheaf(directory, "run", MODEL, "--data", "-", fault=fault, exit=code, stdin=text)
            found = glob.glob(os.path.join(directory, "sheaf-reproducer-*"))[0]
            with open(os.path.join(found, "files", "standard_input")) as stream:
                assert stream.read() == text
            sheaf(directory, "replay", found, fault=fault, exit=code)
            sheaf(directory, "replay", found)


def reductions():
    # Data, functions and parameters that the failure does not need go.
    with tempfile.TemporaryDirectory() as directory:
        done = sheaf(directory, "reduce", MODEL, "--data", DATA, "--command",
                     "run --verify --dim hidden=8", fault="miscompile")
        with open(os.path.join(directory, "reduced", "treelstm.sheaf")) as stream:
            text = stream.read()
        assert "tanh" in text and "Node" not in text and len(text) < 600, text
        assert size_of(os.path.join(directory, "reduced", "trees.txt")) < 10
        # It still fails, in the same way, and only through the fault.
        command = done.stdout.splitlines()[-1].split()[1:]
        failing = sheaf(directory, *command, fault="miscompile", exit=1)
        assert "oracle (f64) and compiled program disagree" in failing.stdout
        sheaf(directory, *command)
    # Any question can be asked.
    with tempfile.TemporaryDirectory() as directory:
        sheaf(directory, "reduce", MODEL, "--data", DATA, "--check",
              f'{SHEAF} check "$MODEL" && grep -q sigmoid "$MODEL" && grep -q "(" "$DATA"')
        with open(os.path.join(directory, "reduced", "treelstm.sheaf")) as stream:
            text = stream.read()
        assert "sigmoid" in text and len(text) < 250, text
        assert size_of(os.path.join(directory, "reduced", "trees.txt")) < 12
        done = sheaf(directory, "reduce", MODEL, "--data", DATA, exit=1)
        assert "there is nothing to reduce" in done.stderr


def dumps():
    with tempfile.TemporaryDirectory() as directory:
        sheaf(directory, "run", MODEL, "--data", DATA, "--dump", "d", "--format", "none")
        names = {os.path.relpath(p, directory + "/d")
                 for p in glob.glob(directory + "/d/**", recursive=True)}
        for wanted in ("treelstm.sheaf", "options.txt", "ast.sheaf", "program.mlir", "blocks.mlir",
                       "host.ll", "host.s", "passes/01-inline.mlir", "kernels/encode.0.txt",
                       "kernels/encode.0.mlir", "kernels/encode.0.ll", "kernels/encode.0.s"):
            assert wanted in names, (wanted, sorted(names))
        with open(directory + "/d/kernels/encode.1.txt") as stream:
            assert "tile" in stream.read()
        # What came before the fault is there.
        sheaf(directory, "compile", MODEL, "--dim", "vocab=9", "--dump", "e", fault="internal", exit=3)
        assert os.path.exists(directory + "/e/program.mlir")
        assert not os.path.exists(directory + "/e/blocks.mlir")


{"dumps": dumps, "reproducers": reproducers, "reductions": reductions}[sys.argv[3]]()
