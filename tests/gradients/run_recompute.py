#!/usr/bin/env python3
"""Rows of forward passes that are dropped and made again change no bit: run_recompute.py SHEAF

Trainings of models, and of programs written for this, with all rows kept, as few as may be, some by
turns (hostile) and under memory limits. Of all models with SHEAF_FULL=1, else of some."""
import json
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from models import LOSSES, MODELS
from trainings import MODELS as FOLDER
from trainings import expect, main

FEW = bool(os.environ.get("SHEAF_FEW"))  # where everything takes long
SOME = ["treelstm"] if FEW else ["treelstm", "bilstm", "transformer", "mvrnn", "dagrnn"]

# Lists of states whose elements others read, views of a dropped tensor, sizes from the data, an
# instance that fails, records that no gradient goes through, and weights whose product reads what is
# kept for the gradient of another.
WINDOWS = """
dim h = 24
param table : f32[7, h] = normal(0.5)
param w : f32[h, 2*h] = glorot
param v : f32[2*h, h] = glorot
param u : f32[h, h] = glorot
fn step(s: f32[h], x: f32[h]) -> f32[h] = tanh(gelu(x @ w) @ v + s @ u)
fn loss(xs: list<int>, y: f32) -> f32 = {
  check len(xs) > 0
  let states = scan(|s, i| step(s, table[i]), zeros(h), xs)
  let all = stack(states)
  let scores = softmax(all @ transpose(all))
  let mixed = scores @ all
  square(sum(mixed[0]) + sum(fold(|s, x| s + x * 0.1, zeros(h), states)) - y)
}
"""
TREES = """
dim h = 17
param e : f32[9, h] = normal(0.5)
param w : f32[2*h, h] = glorot
param g : f32[2*h, h] = glorot
data Tree = Leaf(word: int) | Node(left: Tree, right: Tree)
fn walk(t: Tree) -> (f32[h], f32[h]) = match t {
  Leaf(i) => (e[i], tanh(e[i]))
  Node(a, b) => {
    let (x, p) = walk(a)
    let (y, q) = walk(b)
    let z = sigmoid(concat(x, y) @ g)
    (tanh(concat(x, q) @ w) * z + y, p * z)
  }
}
fn loss(t: Tree, y: f32) -> f32 = { let (a, b) = walk(t)
  square(sum(a) * 0.1 + mean(b) - y) }
"""


def tree(source, depth):
    if depth == 0 or source.random() < 0.2:
        return {"Leaf": [source.randrange(9)]}
    return {"Node": [tree(source, depth - 1), tree(source, depth - 1)]}


def write_programs(runner):
    source = random.Random(8)
    runner.write("windows.sheaf", WINDOWS)
    runner.write("windows.data", "".join(json.dumps(
        {"xs": [source.randrange(7) for _ in range(0 if i == 5 else 1 + source.randrange(30))],
         "y": source.uniform(-1, 1)}) + "\n" for i in range(24)))
    runner.write("trees.sheaf", TREES)
    runner.write("trees.data", "".join(json.dumps(
        {"t": tree(source, source.randrange(7)), "y": source.uniform(-1, 1)}) + "\n"
        for _ in range(24)))


def write_model(runner, name):
    with open(os.path.join(FOLDER, name + ".sheaf"), encoding="utf-8") as stream:
        runner.write(name + ".sheaf", stream.read() + "\n" + LOSSES[name] + "\n")
    with open(os.path.join(FOLDER, "data", MODELS[name]), encoding="utf-8") as stream:
        runner.write(name + ".data", "".join(stream.readlines()[:24]))


def compare(runner, name, fails=False):
    extension = {"windows": "jsonl", "trees": "jsonl"}.get(name)
    extension = extension or os.path.splitext(MODELS[name])[1][1:]
    file = f"{name}.{extension}"
    os.rename(runner.path(name + ".data"), runner.path(file))
    kind = "tagged" if name in MODELS and MODELS[name] == "tagged.txt" else None
    common = ["train", name + ".sheaf", "--data", file, "--seed", "2", "--epochs", "2", "--batch",
              "12", "--parts", "1", "--lr", "0.01", "--clip", "1", "--keep", "0"]
    if kind:
        common += ["--data-format", kind]

    def run(what, *options):
        runner.run(*common, *options, "-o", what, code=1 if fails else 0)
        return [line for line in runner.log(what) if line["event"] == "epoch"][-1]

    kept = run(name, "--recompute", "never")
    expect("dropped_mb" not in kept, f"{name}: all is kept")
    reads = "recomputed" not in run(name + "-all", "--recompute", "always")
    expect(runner.same(name, name + "-all"), f"{name}: the same with as little kept as may be")
    run(name + "-threads", "--recompute", "always", "--threads", "2")
    expect(runner.same(name, name + "-threads"), f"{name}: on two threads")
    run(name + "-hostile", "--recompute", "never", "--hostile")
    for when in ("always", "worth"):
        run(f"{name}-hostile-{when}", "--recompute", when, "--hostile")
        expect(runner.same(name + "-hostile", f"{name}-hostile-{when}"), f"{name}: hostile, {when}")
    # Limits from what holds all down to what holds too little.
    dropped, fitted = 0, 0
    least = sum(kept[each] for each in ("rows_mb", "records_mb", "scratch_mb", "training_mb"))
    for share in (2.4, 2.0, 1.7, 1.5, 1.35, 1.2, 1.1):
        what = f"{name}-{share}"
        limit = str(int(share * least * (1 << 20)))
        free = [*common, "--without", "hoist-rows"]
        limited = subprocess.run([runner.sheaf, *free, "--memory-limit", limit, "-o", what],
                                 cwd=runner.directory, capture_output=True, text=True, timeout=300)
        if limited.returncode != (1 if fails else 0) or "error: the memory limit" in limited.stderr:
            expect("memory" in limited.stderr, f"{name}: {limit}: {limited.stderr}")
            continue
        line = [line for line in runner.log(what) if line["event"] == "epoch"][-1]
        if "halved" in line:
            continue
        if fitted == 0:
            runner.run(*free, "-o", name + "-free", code=1 if fails else 0)
        expect(runner.same(what, name + "-free"), f"{name}: under a limit of {limit}")
        fitted += 1
        dropped += "recomputed" in line
    return reads, fitted, dropped


# Instances without a tensor: nothing is promised, so nothing can be dropped.
TRIVIAL = """
dim h = 256
param w : f32[h, h] = glorot
param v : f32[h, h] = glorot
fn loss(k: int, y: f32) -> f32 = if k <= 0 { y } else { square(sum(tanh(ones(h) @ w) @ v) - y) }
"""


def check_ends(runner):
    """Where dropping helps no more, tries end: within the time that a run may take."""
    runner.write("trivial.sheaf", TRIVIAL)
    runner.write("trivial.jsonl", "".join(json.dumps({"k": int(i > 5), "y": 0.5}) + "\n"
                                          for i in range(12)))
    for limit in range(1600, 3000, 200):
        what = f"trivial-{limit}"
        ended = subprocess.run(
            [runner.sheaf, "train", "trivial.sheaf", "--data", "trivial.jsonl", "--optimizer",
             "sgd", "--batch", "1", "--epochs", "1", "--keep", "0", "--memory-limit",
             f"{limit}K", "-o", what], cwd=runner.directory, capture_output=True, text=True,
            timeout=100)
        expect(ended.returncode in (0, 1), f"{what}: exit {ended.returncode}: {ended.stderr}")


def check(runner):
    if not FEW:
        check_ends(runner)
    write_programs(runner)
    names = list(LOSSES) if os.environ.get("SHEAF_FULL") == "1" else SOME
    for name in names:
        write_model(runner, name)
    results = {name: compare(runner, name, fails=name == "windows")
               for name in ["windows", "trees", *names]}
    for name in {"windows", "trees", "treelstm", "bilstm", "transformer"} & results.keys():
        expect(not results[name][0], f"{name}: something is dropped")
    expect(any(fitted for _, fitted, _ in results.values()), "some limits hold a mini-batch")
    for name, (_, fitted, dropped) in results.items():
        print(f"{name}: {fitted} limits held a mini-batch, {dropped} of them as rows were dropped")


if __name__ == "__main__":
    main(check)
