#!/usr/bin/env python3
"""What `sheaf run --verify` makes of what programs read: run_verify.py SHEAF MODELS CASE

The oracle takes what the compiled program read (compiler/oracle/Replay.h). CASE is `near_ties`:
decisions that rounding turns around, with much that depends on them, agree, and are counted;
`order`: reads are found again in the program as it was written, however it was taken apart and in
whatever order they were made; `models`: every model that reads, in bf16; `faults`: a decision that
is wrong is found and told with its instance and place (SHEAF is sheaf-faulty).
"""
import json
import os
import subprocess
import sys
import tempfile

SHEAF, MODELS, CASE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]


def verify(text, instances, *options, fault=None, command="run"):
    """The report of --verify of a program on these instances."""
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "m.sheaf"), "w", encoding="utf-8") as stream:
            stream.write(text)
        with open(os.path.join(directory, "d.jsonl"), "w", encoding="utf-8") as stream:
            stream.writelines(json.dumps(each) + "\n" for each in instances)
        return report("m.sheaf", "--data", "d.jsonl", *options, fault=fault, directory=directory,
                      command=command)


def report(*arguments, fault=None, directory=None, command="run"):
    environment = dict(os.environ)
    if fault:
        environment["SHEAF_FAULT"] = fault
    form = ["--verify"] if command == "run" else []
    done = subprocess.run([SHEAF, command, *arguments, *form, "--format", "json", "--store", "none"],
                          text=True, capture_output=True, timeout=500, cwd=directory,
                          env=environment, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        sys.exit(f"{arguments}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def expect(condition, what):
    if not condition:
        sys.exit(str(what))


def good(found, ties=None, reads=None):
    expect(found["ok"], found)
    expect(ties is None or found["near_ties"] == ties, f"{ties} near-ties: {found}")
    expect(reads is None or found["reads"] == reads, f"{reads} reads: {found}")


# All that comes behind a number read as 0.5, which is 0.5 + 1e-9 in f64, depends on it.
THRESHOLD = """
dim h = 2
param w : f32[h, h] = uniform(-0.3, 0.3)
fn go(x: f32[h], y: f32[h], left: int, over: float) -> (list<float>, f32[h]) =
  if left == 0 { ([], y) } else {
    let r = read(sum(x))
    let (way, next) = if r - over > 0.0 { (1.0, tanh(y @ w) + 0.3) } else { (0.0, y @ w - 0.3) }
    let (ways, last) = go(x, next, left - 1, over)
    (way :: ways, last)
  }
fn main(x: f32[h], over: float) -> (list<float>, f32[h]) = go(x, x, 30, over)
"""

# The greatest of equals, in a list of numbers that products make: what is written next follows.
GREEDY = """
dim h = 8, words = 300
param table : f32[words, h] = uniform(-0.001, 0.001)
param out   : f32[h, words] = uniform(-0.001, 0.001)
param mix   : f32[h, h] = uniform(-0.5, 0.5)
fn go(state: f32[h], written: list<int>, left: int) -> (list<int>, f32[h]) =
  if left == 0 { (written, state) } else {
    let word = read(argmax(state @ out))
    go(tanh(state @ mix + 300 * table[word]), append(written, word), left - 1)
  }
fn main(x: f32[h]) -> (list<int>, f32[h]) = go(x, [], 50)
"""

# Places that are used as a tensor before they are read, and those that never are but in results.
PLACES = """
dim h = 6, k = 3
param table : f32[h, 2] = uniform(-1, 1)
fn main(x: f32[h], y: f32[h]) -> (list<int>, f32[k, 2], i32, f32[2], i32[k], bool[h]) = {
  let sums = x + y
  let (best, places) = top_k(sums, k)
  let rows = table[places]
  let first = argmax(sums)
  (map(|i| read(places[i]), range(k)), rows + expand_dims(best, axis=1), first, table[first], places,
   sums > 1.0)
}
"""


def near_ties():
    good(verify(THRESHOLD, [{"x": [0.5, 1e-9], "over": 0.5}, {"x": [0.5, 0.25], "over": 0.5},
                            {"x": [0.25, 0.25], "over": 0.5}]), ties=1, reads=90)
    # Not by this much: then it is no tie, and what is read is not what is there.
    good(verify(THRESHOLD, [{"x": [0.5, 1e-4], "over": 0.5}]), ties=0)
    inputs = [{"x": [((i * 7 + j * 3) % 11) / 11 - 0.5 for j in range(8)]} for i in range(9)]
    for batch in "1", "4":
        found = verify(GREEDY, inputs, "--precision", "bf16", "--seed", "2", "--batch", batch)
        good(found, reads=450)
        expect(found["near_ties"] > 0 and found["by_conditioning"] == 0, found)
    # 1 + 1e-9 is 1 in f32: the first of equals is another one than the greatest.
    tie = {"x": [1, 1, 0, 0.5, 1, -1], "y": [0, 1e-9, 0, 0, 2e-9, 0]}
    clear = {"x": [1, 2, 0, 0.5, 3, -1], "y": [0, 0, 0, 0, 0, 0]}
    good(verify(PLACES, [tie, clear]), ties=1, reads=6)


# Everything that moves reads about: functions that are inlined at several places, or only in part
# used; children and elements that are forked; one tensor that is read twice; loops; branches.
ORDER = """
dim h = 3
data Tree = Leaf(x: f32[h]) | Node(l: Tree, r: Tree)
param w : f32[h, h] = uniform(-0.5, 0.5)

fn value(x: f32[h]) -> float = read(sum(x * x))
fn both(x: f32[h]) -> (float, float) = (read(x[0]), value(x + 0.1))

fn walk(t: Tree) -> (f32[h], float) = match t {
  Leaf(x) => { let (a, b) = both(x)
               (x @ w, if b > 0.4 { 1.0 } else { 0.0 }) }
  Node(l, r) => {
    let (x, a) = walk(l)
    let (y, b) = walk(r)
    let z = tanh(x + y @ w)
    let (c, unused) = both(z)
    (z, a + 3 * b + (if c > 0.0 { value(z) } else { value(y) }) + value(x))
  }
}

fn main(t: Tree, xs: list<f32[h]>) -> (f32[h], float, list<float>, float, list<int>) = {
  let (x, a) = walk(t)
  let seen = map(|x| value(x) + (if read(x[1]) > 0.0 { value(x @ w) } else { 2.0 }), xs)
  let same = (if value(x) > 0.3 { 1.0 } else { 0.0 }) + (if value(x) > 0.3 { 10.0 } else { 0.0 })
  let total = fold(|acc, x| acc + x @ w * (if read(sum(acc)) > 0.0 { 1.0 } else { -1.0 }), x, xs)
  (total, a, seen, same, map(|x| read(argmax(x)), filter(|x| value(x) > 0.5, xs)))
}
"""


def tree(n, seed):
    if n == 0:
        return {"Leaf": [[((seed * 13 + i * 7) % 17) / 10 - 0.8 for i in range(3)]]}
    return {"Node": [tree(n - 1, 2 * seed), tree(n - 1 - seed % 2 if n > 1 else 0, 2 * seed + 1)]}


def order():
    instances = [{"t": tree(4, i), "xs": [[((i + 1) * (j + 2) * (k + 3) % 13) / 10 - 0.6
                                          for k in range(3)] for j in range(i)]}
                 for i in range(7)]
    # Sums that are on the boundary in f64 and not in f32.
    instances.append({"t": {"Leaf": [[0.5, 1e-9, 0]]}, "xs": [[0.5, 1e-9, 0.5], [0.5, 0.5, 1e-9]]})
    for options in [], ["--precision", "bf16"], ["--fibers", "1"], ["--fibers", "3", "--hostile"], \
            ["--without", "inline"], ["--without", "fork-calls"], ["--without", "simplify"], \
            ["--without", "inline,simplify,specialise,fork-calls,fold-constants"], \
            ["--batch", "1"], ["--policy", "agenda"]:
        found = verify(ORDER, instances, "--seed", "4", *options)
        good(found)
        expect(found["reads"] > 200, found)


# With their data; what is small enough for the oracle.
WITH_READS = {"generate": "sentences.txt", "beam": "sentences.txt", "earlyexit": "sentences.txt",
              "ponder": "sentences.txt", "drnn": "sentences.txt", "stackrnn": "sentences.txt",
              "nestedrnn": "sentences.txt", "berxit": "sentences.txt"}


def models():
    # One that samples as well.
    with open(os.path.join(MODELS, "generate.sheaf"), encoding="utf-8") as stream:
        text = stream.read()
    expect("argmax(scores)" in text, "generate.sheaf is another")
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "sampled.sheaf")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text.replace("argmax(scores)", "sample(scores)"))
        paths = {os.path.join(MODELS, name + ".sheaf"): data for name, data in WITH_READS.items()}
        paths[path] = "sentences.txt"
        for path, data in paths.items():
            with open(os.path.join(MODELS, "data", data), encoding="utf-8") as stream:
                lines = stream.readlines()[:8]
            with open(os.path.join(directory, data), "w", encoding="utf-8") as stream:
                stream.writelines(lines)
            for batch in "1", "64":
                found = report(path, "--data", os.path.join(directory, data), "--dim", "hidden=24",
                               "--seed", "1", "--precision", "bf16", "--batch", batch)
                good(found)
                expect(found["reads"] > 0, f"{path} reads nothing: {found}")


# The line of what is wrong is that of the read.
CHOICE = """dim h = 4
param w : f32[h, h] = uniform(-1, 1)
fn loss(x: f32[h]) -> f32 = {
  let place = read(argmax(x))
  sum(x @ w) * float(place)
}
fn failing(x: f32[h]) -> f32 = {
  let place = read(argmax(x))
  check place == 2, "elsewhere"
  sum(x)
}
fn value(x: f32[h]) -> f32 = {
  let r = read(sum(tanh(x)))
  if r > 0.0 { sum(x @ w) } else { f32(1.0) }
}
"""


def faults():
    clear = {"x": [1, 2, 3, 4]}
    for entry, fault, told in ("loss", "decision", "m.sheaf:4: the compiled program reads 0, the "
                               "oracle 3, which is 0.38 of max(1, max|b|) from that"), \
                              ("value", "miscompile", "m.sheaf:13: the compiled program reads "):
        good(verify(CHOICE, [{"x": [0, 0, 0, 0]}, clear], "--entry", entry, fault="none"))
        found = verify(CHOICE, [clear], "--entry", entry, fault=fault)
        expect(not found["ok"] and not found["agrees_with_oracle"], found)
        expect(found["problem"].startswith("instance 0: " + told), found["problem"])
    # Failing, in the oracle as well, but not for the same reason.
    least = {"x": [1, 0, 3, 4]}
    found = verify(CHOICE, [least, {"x": [0, 1, 3, 2]}, {"x": [5, 5, 0, 5]}], "--entry", "failing",
                   fault="none")
    good(found)
    expect(found["failed"] == 2, found)
    found = verify(CHOICE, [least], "--entry", "failing", fault="decision")
    expect(found["problem"].startswith("instance 0: m.sheaf:8: the compiled program reads 1"),
           found["problem"])
    # Gradients of another way are not compared.
    good(verify(CHOICE, [clear], "--loss", "loss", fault="none", command="grad-check"))
    found = verify(CHOICE, [clear], "--loss", "loss", fault="decision", command="grad-check")
    expect(not found["ok"] and "instance 0: m.sheaf:4: the compiled program reads 0"
           in found["problem"], found)


{"near_ties": near_ties, "order": order, "models": models, "faults": faults}[CASE]()
