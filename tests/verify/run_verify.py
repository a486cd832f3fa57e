#!/usr/bin/env python3
"""What `sheaf run --verify` makes of what programs read: run_verify.py SHEAF MODELS CASE

The oracle takes what the compiled program read (compiler/oracle/Replay.h). CASE is `near_ties`:
decisions that rounding turns around, with much that depends on them, agree, and are counted;
`conditioning`: programs that lose digits agree, and none of the faults that are planted in them
does (SHEAF is sheaf-faulty);
`gradients`: and grad-check goes the same way; `order`: reads are found again in the program as it
was written, however it was taken apart and in whatever order they were made; `models`: every model that reads, in bf16; `faults`: a decision that
is wrong is found and told with its instance and place (SHEAF is sheaf-faulty).
"""
import json
import os
import random
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from models import MODELS as DATA_OF

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


# All that comes after a number read as 0.5, which is 0.5 + 1e-9 in f64, depends on it.
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


# Numbers of decisions behind one int: how many, whether any, and where one stands after another.
SEVERAL = """
dim h = 8
param v : f32[h, h] = uniform(-1, 1)
fn many(x: f32[h], y: f32[h]) -> f32 = sum(v[read(sum(i32(x + y > 1.0)))] * x)
fn any(x: f32[h], y: f32[h]) -> f32 = sum(v[read(max(i32(x + y > 1.0)))] * x)
fn one(x: f32[h], y: f32[h]) -> (f32, i32) = {
  let p = argmax(x + y)
  (sum(v[read(p + 1)] * x), 2 * p)
}
"""

# A float that follows from a place is read before the place is.
BEFORE = """
dim h = 8
param v : f32[h, h] = uniform(-1, 1)
fn main(x: f32[h], y: f32[h]) -> (float, int) = {
  let p = argmax(x + y)
  let r = read(sum(v[p]))
  (r, read(p))
}
"""

# Decisions that are told apart in f64 and not in f32, by less than what f32 loses on the way and by
# more than 1e-5.
ILL = """
dim h = 4
param v : f32[h, h] = uniform(-1, 1)
fn loss(x: f32[h]) -> f32 = {
  let z = (x + 3000.0) - 3000.0
  sum(v[read(argmax(z))] * x)
}
fn over(x: f32[h]) -> int = read(argmax(where(x > 0.0, x * 1e30 * 1e30, -1.0)))
"""

# Many decisions in a row, each of which follows all that was computed before.
CHAIN = """
dim h = 64, words = 300
param table : f32[words, h] = uniform(-0.001, 0.001)
param out   : f32[h, words] = uniform(-0.001, 0.001)
param mix   : f32[h, h] = uniform(-0.5, 0.5)
fn go(state: f32[h], written: list<int>, left: int) -> (list<int>, f32[h]) =
  if left == 0 { (written, state) } else {
    let word = read(argmax(state @ out))
    let z = state @ mix + 300 * table[word]
    go(where(z > 0.0, z, 0.1 * z) * 0.7, append(written, word), left - 1)
  }
fn main(x: f32[h]) -> (list<int>, f32[h]) = go(x, [], 300)
"""

# Reads that lose what they are made of, one after the other: the narrow oracle's error of one may
# happen to be small.
LOOP = """
dim h = 64
fn main(x: f32[h]) -> list<float> = map(|i| read(sum(x + float(i) * 0.001)), range(50))
"""

# Near-ties of one tensor with much after it.
SPREAD = """
dim n = 2000, h = 16
param w : f32[h, h] = uniform(-1, 1)
param table : f32[h, h] = uniform(-1, 1)
fn main(x: f32[n, 2], y: f32[n, 2]) -> (list<int>, i32[n], f32[n, h]) = {
  let p = argmax(x + y)
  (map(|i| read(p[i]), range(n)), p, tanh(tanh(table[p] @ w) @ w))
}
"""

ONES = [1, 1, 0, 0, 0, 0, 0, 0]
# 1 + 1e-9 is 1 in f32.
TIES = [{"x": ONES, "y": [1e-9, 1e-9, 0, 0, 0, 0, 0, 0]}, {"x": ONES, "y": [0, 1e-9, 0, 0, 0, 0, 0, 0]},
        {"x": ONES, "y": [0, 1e-3, 0, 0, 0, 0, 0, 0]}]


def processor_time():
    """Of the commands that have ended: other work on the machine adds nothing."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def near_ties():
    for entry, ties in ("many", 2), ("any", 2), ("one", 1):
        good(verify(SEVERAL, TIES, "--entry", entry), ties=ties, reads=3)
    good(verify(BEFORE, TIES), ties=1, reads=6)
    found = verify(ILL, [{"x": [0, 0.00005, 0.0001, 0]}], "--entry", "loss")
    good(found, ties=1)
    expect(found["by_conditioning"] == 1, found)
    found = verify(ILL, [{"x": [1, 2, 3, -1]}], "--entry", "over")
    good(found, ties=1)
    expect(found["by_conditioning"] == 1, found)
    draws = random.Random(1)
    halves = [[draws.uniform(-1000, 1000) for i in range(32)] for j in range(4)]
    found = verify(LOOP, [{"x": half + [-each for each in half]} for half in halves])
    good(found)
    expect(found["by_conditioning"] > 0, found)
    start = processor_time()
    good(verify(SPREAD, [{"x": [[1, 1]] * 2000, "y": [[0, 1e-9]] * 2000}]), ties=1, reads=2000)
    inputs = [{"x": [((i * 7 + j * 3) % 11) / 11 - 0.5 for j in range(64)]} for i in range(3)]
    good(verify(CHAIN, inputs, "--precision", "bf16"), reads=900)
    expect(processor_time() - start < 120, "a chain of decisions takes too long")
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
    # A sum of squares that is 0.5 in f32, and more in f64.
    instances.append({"t": {"Leaf": [[0.5, 1e-9, 0]]}, "xs": [[0.5, 1e-9, 0.5], [0.5, 0.5, 1e-5]]})
    for options in [], ["--precision", "bf16"], ["--fibers", "1"], ["--fibers", "3", "--hostile"], \
            ["--without", "inline"], ["--without", "fork-calls"], ["--without", "simplify"], \
            ["--without", "inline,simplify,specialise,fork-calls,fold-constants"], \
            ["--batch", "1"], ["--policy", "agenda"]:
        found = verify(ORDER, instances, "--seed", "4", *options)
        good(found, ties=None if "bf16" in options else 1)
        expect(found["reads"] > 200 and found["near_ties"] > 0, found)


# What is small enough for the oracle.
WITH_READS = ["generate", "beam", "earlyexit", "ponder", "drnn", "stackrnn", "nestedrnn", "berxit"]


def models():
    # One that samples as well.
    with open(os.path.join(MODELS, "generate.sheaf"), encoding="utf-8") as stream:
        text = stream.read()
    expect("argmax(scores)" in text, "generate.sheaf is another")
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "sampled.sheaf")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text.replace("argmax(scores)", "sample(scores)"))
        paths = {os.path.join(MODELS, name + ".sheaf"): DATA_OF[name] for name in WITH_READS}
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


# What is constant to gradients, and follows from a decision that turns around.
STOPPED = """
dim h = 8
param v : f32[h, h] = uniform(-1, 1)
param w : f32[h, h] = uniform(-1, 1)
fn loss(x: f32[h], y: f32[h]) -> f32 = {
  let t = x + y
  let p = argmax(t)
  let q = stop_gradient(sum(v[p] * v[p]))
  let r = read(p)
  q * sum(x @ w) + sum(v[r] * x)
}
"""


# What `where` chooses next to 0 is elsewhere, or as steep as one likes; but not the last one.
BESIDE = """
param w : f32[3] = zeros
fn value(x: f32[3]) -> f32[3] = where(w == 0, x * w, sin(w) / w)
fn pole(x: f32[3]) -> f32[3] = where(w == 0, x * w, 1 / w)
fn even(x: f32[3]) -> f32[3] = where(w == 0, x * w, square(1 / w))
fn right(x: f32[3]) -> f32[3] = where(w <= 0, x * w, 1 / sqrt(w))
fn root(x: f32[3]) -> f32[3] = where(w > 0, sqrt(w), w)
fn smooth(x: f32[3]) -> f32[3] = where(w == 0, x * w, x * sin(w))
fn kept(x: f32[3]) -> f32[3] = where(x > 5, 1 / w + log(w), x * w)
"""
BESIDES = {"value": 2, "pole": 2, "even": 2, "right": 2, "root": 2, "smooth": 0, "kept": 0}


def gradients():
    for name, left_out in BESIDES.items():
        found = verify(f"{BESIDE}fn loss(x: f32[3]) -> f32 = sum({name}(x))\n",
                       [{"x": [1, -2, 3]}, {"x": [0, 1, 2]}], command="grad-check")
        good(found)
        expect(found["params"][0]["left_out"] == left_out, f"{name}: {found}")
    for text, entry in (SEVERAL, "many"), (SEVERAL, "any"), (STOPPED, "loss"):
        good(verify(text, TIES, "--loss", entry, command="grad-check"))
    good(verify(ILL, [{"x": [0, 0.00005, 0.0001, 0]}], "--loss", "loss", command="grad-check"))


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


# One kind of decision each; numbers beside those that meet do not matter: a mask, another row.
KINDS = """dim h = 4
fn greatest(x: f32[h], y: f32[2, h]) -> int = read(argmax(where(x > 0.15, tanh(x) * tanh(x), -1000000000.0)))
fn sampled(x: f32[h], y: f32[2, h]) -> int = read(sample(where(x > 0.15, 30.0 * tanh(x), -1000000000.0)))
fn top(x: f32[h], y: f32[2, h]) -> (int, int) = {
  let (best, places) = top_k(where(x > 0.15, tanh(x), -1000000000.0), 2)
  (read(places[0]), read(places[1]))
}
fn cast(x: f32[h], y: f32[2, h]) -> int = read(sum(i32(where(x > 0.15, 10.0 * x + 0.4, -1000000000.0))[2:4]))
fn compared(x: f32[h], y: f32[2, h]) -> bool = read((where(x > 0.15, x * x, -1000000000.0) > 0.3)[1])
fn greatests(x: f32[h], y: f32[2, h]) -> i32[2] = argmax(y * y)
fn tops(x: f32[h], y: f32[2, h]) -> i32[2, 2] = {
  let (best, places) = top_k(y, 2)
  places
}
fn casts(x: f32[h], y: f32[2, h]) -> i32[2, h] = i32(10.0 * y + 0.4)
fn comparisons(x: f32[h], y: f32[2, h]) -> bool[2, h] = y * y > 0.3
fn over(x: f32[h], y: f32[2, h]) -> int = read(argmax(where(x > 0.15, x * 1e30 * 1e30, -1.0)))
"""
FAULTS = {"greatest": "decision", "sampled": "decision", "top": "decision", "cast": "cast",
          "compared": "comparison", "greatests": "decision", "tops": "decision", "casts": "cast",
          "comparisons": "comparison", "over": "decision"}


def faults():
    small = [0.1, 0.5, 0.9, 0.2]
    instance = {"x": small, "y": [small, [1e6 * each for each in small]]}
    for entry, fault in FAULTS.items():
        for precision in "f32", "bf16":
            options = ["--entry", entry, "--precision", precision]
            good(verify(KINDS, [instance], *options, fault="none"), ties=entry == "over")
            found = verify(KINDS, [instance], *options, fault=fault)
            told = "the result holds the decision " if entry.endswith("s") else \
                "the compiled program reads "
            expect(not found["ok"] and not found["agrees_with_oracle"] and told in found.get("problem", ""),
                   f"{entry}, {precision}: {found}")
    clear = {"x": [1, 2, 3, 4]}
    for entry, fault, told in ("loss", "decision", "m.sheaf:4: the compiled program reads 0, the "
                               "oracle 3: 0.38 of max(1, |b|) from deciding so"), \
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
    # The steps of an instance are no part of the oracle; what it read before is not wrong.
    found = report(os.path.join(MODELS, "drnn.sheaf"), "--data",
                   os.path.join(MODELS, "data", "sentences.txt"), "--dim", "hidden=8",
                   "--max-steps", "3")
    expect(": the compiled program fails" in found["problem"] and
           "the compiled program reads" not in found["problem"], found)
    # Gradients of another way are not compared.
    good(verify(CHOICE, [clear], "--loss", "loss", fault="none", command="grad-check"))
    found = verify(CHOICE, [clear], "--loss", "loss", fault="decision", command="grad-check")
    expect(not found["ok"] and "instance 0: m.sheaf:4: the compiled program reads 0"
           in found["problem"], found)


# Right programs that lose more than 1e-5: differences of near-equals times much, error estimates of
# embedded Runge-Kutta steps (Bogacki and Shampine 3(2), Heun and Euler), what is too large for 16
# bits, sums that cancel in orders of their own, what is next to nothing.
ILL_CONDITIONED = {
    "slope": """
param w : f32[n] = uniform(0.5, 1.5)
dim n = 16
fn main(x: f32[n]) -> f32 = 1e3 * (mean(exp(x * w)) - mean(exp(x * w + 1e-3)))
""",
    "step": """
dim n = 16
param a : f32[n, n] = uniform(-0.5, 0.5)
fn f(y: f32[n]) -> f32[n] = tanh(y @ a)
fn go(y: f32[n], left: int) -> (f32[n], list<f32>) = if left == 0 { (y, []) } else {
  let h = 0.05
  let k1 = f(y)
  let k2 = f(y + 0.5 * h * k1)
  let k3 = f(y + 0.75 * h * k2)
  let next = y + h * (2.0 / 9.0 * k1 + 1.0 / 3.0 * k2 + 4.0 / 9.0 * k3)
  let k4 = f(next)
  let error = h * (k1 * (2.0 / 9.0 - 7.0 / 24.0) + k2 * (1.0 / 3.0 - 0.25)
                   + k3 * (4.0 / 9.0 - 1.0 / 3.0) - 0.125 * k4)
  let scaled = error / (1e-7 + 1e-6 * maximum(abs(y), abs(next)))
  let (last, errors) = go(next, left - 1)
  (last, sqrt(mean(square(scaled))) :: errors)
}
fn main(x: f32[n]) -> (f32[n], list<f32>) = go(x, 4)
""",
    "euler": """
dim n = 16
param a : f32[n, n] = uniform(-0.5, 0.5)
fn main(x: f32[n]) -> f32 = {
  let k1 = tanh(x @ a)
  let low = x + 1e-3 * k1
  let high = x + 0.5e-3 * (k1 + tanh(low @ a))
  max(abs(high - low)) / 1e-7
}
""",
    "half": "dim n = 16\nfn main(x: f32[n]) -> (f32[n], f32[?]) = (f32(f16(x * 40000.0)), f32(f16(stack([f32(65520.0)]))))\n",
    "orders": "dim n = 16\nfn main(x: f32[n]) -> f32 = 1e4 * (sum(x * x) - dot(x, x))\n",
    "variance": "dim n = 16\nfn main(x: f32[n]) -> f32 = 1e3 * (mean(square(x + 9.0)) - square(mean(x + 9.0)))\n",
    "gelu": "dim n = 16\nfn main(x: f32[n]) -> f32[n] = 1e4 * (gelu(x) - gelu(x + 1e-4))\n",
    "nothing": "dim n = 16\nfn main(x: f32[n]) -> f32[n] = log(exp(-87.0 - abs(x)))\n",
}


def many(count, scale=1.0):
    draws = random.Random(2)
    return [{"x": [draws.uniform(-scale, scale) for i in range(16)]} for j in range(count)]


def conditioning():
    for name, text in ILL_CONDITIONED.items():
        for seed in "0", "1":
            found = verify(text, many(64), "--seed", seed, fault="none")
            good(found)
            if name != "orders":
                expect(found["by_conditioning"] > 0, f"{name}: {found}")
    # A real error of 4 times what is allowed fails; less than that may be rounding.
    text = ILL_CONDITIONED["slope"].rstrip() + " + tanh(sum(x) * 0.0)\n"
    allowed = verify(text, many(64), fault="none")["conditioned_error"]
    expect(1e-5 < allowed < 1e-2, allowed)
    bad(verify(text, many(64), fault=f"shift={4 * allowed}"))
    # A product that lacks its last summand, and a function that is another.
    for name in "step", "euler":
        bad(verify(ILL_CONDITIONED[name], many(8), fault="last-k"))
        bad(verify(ILL_CONDITIONED[name], many(8), fault="miscompile"))
    for text, data in LOSSES:
        found = verify(text, data, "--loss", "loss", fault="none", command="grad-check")
        good(found)
        # The record of a function is wrong by 1e-5: the oracle's gradients are, too.
        found = verify(text, data, "--loss", "loss", fault="gradient", command="grad-check")
        expect(not found["ok"] and any(each["wrong_oracle"] for each in found["params"]), found)
        if "@" in text:
            found = verify(text, data, "--loss", "loss", fault="last-k", command="grad-check")
            expect(not found["ok"] and any(each["wrong"] for each in found["params"]), found)


def bad(found):
    expect(not found["ok"] and not found["agrees_with_oracle"] and found["problem"], found)


# Losses that lose digits: slopes, and squares of error estimates.
LOSSES = [("""
dim n = 16
param w : f32[n] = uniform(0.5, 1.5)
fn loss(x: f32[n]) -> f32 = 1e3 * (mean(tanh(x * w)) - mean(tanh(x * w + 1e-3)))
""", many(64)), ("""
dim n = 16
param a : f32[n, n] = uniform(-0.5, 0.5)
fn loss(x: f32[n]) -> f32 = {
  let k1 = tanh(x @ a)
  let low = x + 1e-3 * k1
  let high = x + 0.5e-3 * (k1 + tanh(low @ a))
  mean(square((high - low) / 1e-6))
}
""", many(16))]

{"near_ties": near_ties, "conditioning": conditioning, "gradients": gradients, "order": order, "models": models, "faults": faults}[CASE]()
