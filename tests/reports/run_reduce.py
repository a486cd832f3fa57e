#!/usr/bin/env python3
"""What internal errors leave, and that it can be replayed and reduced.

    run_reduce.py SHEAF-FAULTY MODELS CASE

CASE is `dumps`, `reproducers` or `reductions`.
"""
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile

import jsonschema

SHEAF, MODELS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
MODEL, DATA = os.path.join(MODELS, "treelstm.sheaf"), os.path.join(MODELS, "data", "trees.txt")

CHECKS = """param w : f32[2] = ones
fn deep(x: int) -> int = { check x != 3, "three is forbidden, größe"; check x > 0; x }
fn main(x: int) -> f32[] = { let y = deep(x); check y != 2, "two is forbidden"; w[y] + sum(w) }
"""

GRADIENT = """param w : f32[2] = ones
fn both(a: f32, b: f32) -> f32 = tanh(a * b)
fn loss(x: f32[n]) -> f32 = { check n > 0, "empty"; let y = x * w[0]; both(both(y[0], y[1]), y[2]) }
"""


USED = {
    "models/m.sheaf": """use "../shared/a.sheaf" as a
use "lib/linear.sheaf"
dim h = 4
let layer_ = Linear(h, h)
fn unused(x: f32[h]) -> f32[h] = x + x
fn main(x: f32[h]) -> f32[h] = layer_.run(a.squash(x)) + a.more(x)
""",
    "shared/a.sheaf": """use "more/b.sheaf"
fn squash(x: f32[n]) -> f32[n] = tanh(x * 0.5) + 1.0
fn more(x: f32[n]) -> f32[n] = twice(x)
""",
    "shared/more/b.sheaf": "fn twice(x: f32[n]) -> f32[n] = x + x\n",
    "d.jsonl": "[1, 2, 3]\n[3, 2, 1]\n",
}


def write_used(directory):
    for name, text in USED.items():
        path = os.path.join(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as stream:
            stream.write(text)


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
    # Files that the model uses lie as they did; the library is the command's own.
    with tempfile.TemporaryDirectory() as directory:
        write_used(directory)
        command = ["run", "models/m.sheaf", "--data", "d.jsonl", "--dim", "h=3"]
        sheaf(directory, *command)
        sheaf(directory, *command, fault="internal", exit=3)
        found = glob.glob(os.path.join(directory, "sheaf-reproducer-*"))[0]
        kept = sorted(os.path.relpath(p, found) for p in
                      glob.glob(os.path.join(found, "files", "**", "*.sheaf"), recursive=True))
        assert kept == ["files/m/models/m.sheaf", "files/m/shared/a.sheaf",
                        "files/m/shared/more/b.sheaf"], kept
        for name in ("models", "shared"):
            os.rename(os.path.join(directory, name), os.path.join(directory, name + ".gone"))
        sheaf("/", "replay", found, fault="internal", exit=3)
        sheaf("/", "replay", found)
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
    # Of several files each is made smaller, and those go that nothing uses any more.
    with tempfile.TemporaryDirectory() as directory:
        write_used(directory)
        done = sheaf(directory, "reduce", "models/m.sheaf", "--data", "d.jsonl", "--command",
                     "run --verify --dim h=3", fault="miscompile")
        command = done.stdout.splitlines()[-1].split()[1:]
        failing = sheaf(directory, *command, fault="miscompile", exit=1)
        assert "oracle (f64) and compiled program disagree" in failing.stdout
        left = {os.path.relpath(p, os.path.join(directory, "reduced")): size_of(p) for p in
                glob.glob(os.path.join(directory, "reduced", "**", "*.sheaf"), recursive=True)}
        assert "models/m.sheaf" in left and "shared/more/b.sheaf" not in left, left
        assert sum(left.values()) < 200, left
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
        done = sheaf(directory, "reduce", MODEL, "--data", DATA, "--check", "echo why >&2; exit 9",
                     exit=1)
        assert "exit code 9: why" in done.stderr, done.stderr
    # An instance's error is kept, not another one of an instance.
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "m.sheaf"), "w") as stream:
            stream.write(CHECKS)
        with open(os.path.join(directory, "d.jsonl"), "w") as stream:
            stream.write("1\n3\n2\n0\n")
        sheaf(directory, "reduce", "m.sheaf", "--data", "d.jsonl", "--command", "run")
        done = sheaf(directory, "run", "reduced/m.sheaf", "--data", "reduced/d.jsonl", exit=1)
        assert "three is forbidden, größe" in done.stderr, done.stderr
        assert size_of(os.path.join(directory, "reduced", "m.sheaf")) < 150
    # What a report on standard output says is kept, too: a wrong gradient, and not an index that is
    # out of range in all instances that are left.
    for form in "", " --format json":
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "m.sheaf"), "w") as stream:
                stream.write(GRADIENT)
            with open(os.path.join(directory, "d.jsonl"), "w") as stream:
                stream.write("[0.5, -0.25, 1]\n[0.75, 0.5, 2]\n[1, 2, 3]\n")
            done = sheaf(directory, "reduce", "m.sheaf", "--data", "d.jsonl", "--command",
                         "grad-check" + form, fault="gradient")
            assert "what is kept: exit code 1: the gradient of the oracle is wrong" in done.stderr, \
                done.stderr
            failing = sheaf(directory, "grad-check", "reduced/m.sheaf", "--data",
                            "reduced/d.jsonl", fault="gradient", exit=1)
            assert "the oracle's gradient is" in failing.stdout, failing.stdout
            assert size_of(os.path.join(directory, "reduced", "m.sheaf")) < 130
    # Interrupted, it leaves what it has, and nothing else.
    with tempfile.TemporaryDirectory() as directory:
        places = dict(os.environ, TMPDIR=directory)
        child = subprocess.Popen([SHEAF, "reduce", MODEL, "--data", DATA, "--check",
                                  "sleep 0.1; grep -q sigmoid $MODEL", "-o", "out"],
                                 cwd=directory, env=places, stderr=subprocess.PIPE)
        assert b"what is kept" in child.stderr.readline()
        child.send_signal(signal.SIGINT)
        child.communicate()
        assert child.returncode == -signal.SIGINT, child.returncode
        assert sorted(os.listdir(directory)) in (["out"], []), os.listdir(directory)


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
        write_used(directory)
        sheaf(directory, "compile", "models/m.sheaf", "--dump", "u", "-o", "out")
        assert sorted(os.listdir(directory + "/u/used")) == ["1-a.sheaf", "2-linear.sheaf",
                                                            "3-b.sheaf"]
        # What came before the fault is there.
        sheaf(directory, "compile", MODEL, "--dim", "vocab=9", "--dump", "e", fault="internal", exit=3)
        assert os.path.exists(directory + "/e/program.mlir")
        assert not os.path.exists(directory + "/e/blocks.mlir")


{"dumps": dumps, "reproducers": reproducers, "reductions": reductions}[sys.argv[3]]()
