#!/usr/bin/env python3
"""What calling models from Python costs.

    PYTHONPATH=build/python /usr/bin/python3 bench/python.py [PART ...]

Parts: convert (nanoseconds a node of 64 trees of 2,496 nodes, again and again; of 20,000 trees in random
order, 64 at a time; of all of these at once), run
(a call over the session's run inside of it, encoded and with conversion, by width), call (the smallest
model), import, epoch (of a training over that of `sheaf train`, in turn), first (result of a source, new and from
the store), torch (a step of its Adam through `to_torch` over one of Sheaf's own). Medians; the least as well, for a busy machine.
"""
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

import sheaf as sf

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
COMMAND = os.path.join(os.environ.get("SHEAF_BUILD", os.path.join(ROOT, "build")), "bin", "sheaf")
TREES, LEAVES = 64, 20
SOURCE = """
dim vocab, hidden
data Tree = Leaf(word: token) | Node(left: Tree, right: Tree)
param embedding : f32[vocab, hidden] = normal(0.1)
param leaf_w : f32[hidden, 3*hidden] = glorot
param leaf_b : f32[3*hidden] = zeros
param node_w : f32[2*hidden, 5*hidden] = glorot
param node_b : f32[5*hidden] = zeros
param out_w : f32[hidden, 5] = glorot
fn encode(t: Tree) -> (f32[hidden], f32[hidden]) = match t {
  Leaf(word) => {
    let (i, o, u) = split(embedding[word] @ leaf_w + leaf_b, 3)
    let c = sigmoid(i) * tanh(u)
    (sigmoid(o) * tanh(c), c)
  }
  Node(l, r) => {
    let (hl, cl) = encode(l)
    let (hr, cr) = encode(r)
    let (i, o, u, fl, fr) = split(concat(hl, hr) @ node_w + node_b, 5)
    let c = sigmoid(i) * tanh(u) + sigmoid(fl) * cl + sigmoid(fr) * cr
    (sigmoid(o) * tanh(c), c)
  }
}
fn main(t: Tree) -> f32[5] = {
  let (h, _) = encode(t)
  h @ out_w
}
"""
WORDS = ["<unk>"] + [f"word{i}" for i in range(1, 5000)]


class Slots:
    @dataclass(slots=True)
    class Leaf:
        word: object

    @dataclass(slots=True)
    class Node:
        left: object
        right: object


class Plain:
    @dataclass
    class Leaf:
        word: object

    @dataclass
    class Node:
        left: object
        right: object


def forest(kind, texts, trees, rng):
    """Trees of 20 words each, which lean to either side."""
    def word():
        number = rng.randrange(len(WORDS))
        return "word" + str(number) if texts else number

    def tree(leaves):
        if leaves == 1:
            return kind.Leaf(word())
        left = rng.randrange(1, leaves)
        return kind.Node(tree(left), tree(leaves - left))
    return [tree(LEAVES) for _ in range(trees)]


def measure(work, rounds):
    """Median and least seconds."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times), min(times)


def compiled(hidden):
    return sf.compile(SOURCE, dims={"hidden": hidden}, vocab=WORDS)


def convert():
    model = compiled(32)
    nodes = 2 * LEAVES - 1
    print("conversion, ns a node           median  least  shuffled  at once")
    for name, kind, texts in (("slots, int words", Slots, False), ("plain, int words", Plain, False),
                              ("slots, str words", Slots, True), ("plain, str words", Plain, True)):
        rng = random.Random(1)
        few = forest(kind, texts, TREES, rng)
        model.encode(few)
        median, least = measure(lambda: model.encode(few), 400)
        many = forest(kind, texts, 20000, rng)
        rng.shuffle(many)
        begins = iter(range(0, 20000 - TREES, TREES))

        def next_batch():
            begin = next(begins)
            model.encode(many[begin:begin + TREES])
        cold, _ = measure(next_batch, 300)
        all_at_once, _ = measure(lambda: model.encode(many), 5)
        scale = 1e9 / (TREES * nodes)
        print(f"  {name:28} {median * scale:7.1f} {least * scale:6.1f} {cold * scale:9.1f} "
              f"{all_at_once * 1e9 / (20000 * nodes):8.1f}")


def run():
    print("a call over the session's run, medians")
    for hidden in (32, 256):
        model = compiled(hidden)
        few = forest(Slots, False, TREES, random.Random(1))
        data = model.encode(few)
        for name, given in (("encoded", data), ("with conversion", few)):
            ratios, inner = [], []
            for _ in range(400 if hidden == 32 else 60):
                begin = time.perf_counter()
                model(given)
                took = time.perf_counter() - begin
                inner.append(model._session.last_run / 1e9)
                ratios.append(took / inner[-1])
            print(f"  hidden {hidden:3}, {name:16} {statistics.median(ratios):6.3f} of "
                  f"{statistics.median(inner) * 1e6:8.1f} us")


def call():
    model = sf.compile("fn main(x: int) -> int = x + 1")
    beyond, inner = [], []
    for _ in range(20000):
        begin = time.perf_counter()
        model([1])
        took = time.perf_counter() - begin
        inner.append(model._session.last_run / 1e3)
        beyond.append(took * 1e6 - inner[-1])
    print(f"the smallest model: {statistics.median(beyond):.2f} us more than the session's "
          f"{statistics.median(inner):.2f} us")


def imports():
    def seconds(text):
        command = [sys.executable, "-c", text]
        return measure(lambda: subprocess.run(command, check=True), 15)[0]
    base = seconds("import numpy")
    print(f"import sheaf: {seconds('import sheaf; sheaf.load') - base:.3f} s beyond Python and NumPy "
          f"({base:.3f} s)")


def bracket_trees(path, count, rng):
    def tree(leaves):
        label = rng.randrange(5)
        if leaves == 1:
            return f"({label} word{rng.randrange(1000)})"
        left = rng.randrange(1, leaves)
        return f"({label} {tree(left)} {tree(leaves - left)})"
    with open(path, "w", encoding="utf-8") as out:
        out.writelines(tree(LEAVES) + "\n" for _ in range(count))


def epoch():
    """Epochs after the first, of wall time: those of a longer training less those of a shorter one."""
    sys.path.insert(0, os.path.join(ROOT, "python", "examples"))
    import reading
    import sentiment
    few, many = 2, 6
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "trees.txt")
        bracket_trees(path, 2000, random.Random(1))
        trees, words = reading.trees(path, sentiment.Leaf, lambda label, kids: sentiment.Node(label, *kids))
        fast = sf.jit(sentiment.Sentiment(vocab=len(words)))
        source = os.path.join(directory, "sentiment.sheaf")
        with open(source, "w", encoding="utf-8") as out:
            out.write(fast.source())
        data = fast.loss.encode(trees)

        def by_command(epochs):
            with tempfile.TemporaryDirectory() as made:
                subprocess.run([COMMAND, "train", source, "--loss", "loss", "--data", path, "--batch", "64", "--epochs",
                                str(epochs), "--checkpoint-every", "0", "-o", made], check=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def by_fit(epochs):
            with tempfile.TemporaryDirectory() as made:
                for _ in fast.fit(data, batch=64, epochs=epochs, directory=made):
                    pass

        ratios, seconds = [], []
        for _ in range(7):
            times = {}
            for work in (by_command, by_fit):
                for epochs in (few, many):
                    begin = time.perf_counter()
                    work(epochs)
                    times[work, epochs] = time.perf_counter() - begin
            one, other = ((times[work, many] - times[work, few]) / (many - few) for work in (by_command, by_fit))
            ratios.append(other / one)
            seconds.append(one)
        print(f"an epoch of fit over one of `sheaf train`: {statistics.median(ratios):.3f} of "
              f"{statistics.median(seconds):.3f} s (from {min(ratios):.3f} to {max(ratios):.3f})")


def first():
    """From a source to its first result: in a process that has Python and NumPy, and by the command."""
    with tempfile.TemporaryDirectory() as directory:
        source, words, data = (os.path.join(directory, name) for name in ("tree.sheaf", "words.txt", "trees.txt"))
        for path, text in (source, SOURCE), (words, "\n".join(WORDS) + "\n"):
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
        bracket_trees(data, TREES, random.Random(1))
        python = [sys.executable, "-c", f"""
import numpy, pickle, random, sys, time
begin = time.perf_counter()
import sheaf as sf
model = sf.load({source!r}, dims={{"hidden": 256}}, vocab={words!r})
Leaf, Node = model.types.Leaf, model.types.Node
def tree(leaves):
    return Leaf("word1") if leaves == 1 else Node(tree(leaves // 2), tree(leaves - leaves // 2))
model([tree({LEAVES}) for _ in range({TREES})])
print(time.perf_counter() - begin)"""]
        command = [COMMAND, "run", source, "--data", data, "--dim", "hidden=256", "--vocab", words]
        for name, rounds in ("a new model", 7), ("from the store", 15):
            times = {"python": [], "command": []}
            for number in range(rounds):
                store = os.path.join(directory, "store" if name == "from the store" else f"store{number}")
                for what, run_it in ("python", python), ("command", command):
                    place = store if name == "from the store" else store + what
                    begin = time.perf_counter()
                    done = subprocess.run(run_it, check=True, capture_output=True, text=True,
                                          env={**os.environ, "SHEAF_STORE": place})
                    took = time.perf_counter() - begin
                    times[what].append(float(done.stdout) if what == "python" else took)
            print(f"first result of {name}: {statistics.median(times['python'][1:]):.3f} s after Python and NumPy, "
                  f"{statistics.median(times['command'][1:]):.3f} s by the command")


def torch_step():
    """A step of torch's Adam through `to_torch`, over one of Sheaf's own, in turn."""
    import torch
    sys.path.insert(0, os.path.join(ROOT, "python", "examples"))
    import sentiment
    torch.set_num_threads(1)
    rng = random.Random(1)

    def tree(leaves):
        if leaves == 1:
            return sentiment.Leaf(rng.randrange(5), rng.randrange(5000))
        left = rng.randrange(1, leaves)
        return sentiment.Node(rng.randrange(5), tree(left), tree(leaves - left))
    trees = [tree(LEAVES) for _ in range(TREES)]
    own, lent = (sf.jit(sentiment.Sentiment(vocab=5000, hidden=256)) for _ in range(2))
    data = own.loss.encode(trees)
    optimizer = sf.optim.Adam(own, lr=1e-3)
    net = lent.to_torch("loss")
    adam = torch.optim.Adam(net.parameters(), lr=1e-3)

    def by_torch():
        adam.zero_grad(set_to_none=True)
        net(data).mean().backward()
        adam.step()

    works = (lambda: own.train_step(optimizer, "loss", data), by_torch)
    times = [[], []]
    for _ in range(40):
        for work, found in zip(works, times):
            begin = time.perf_counter()
            work()
            found.append(time.perf_counter() - begin)
    ratios = [b / a for a, b in zip(*times)][5:]
    print(f"a step of torch's Adam over Sheaf's, hidden 256: {statistics.median(ratios):.3f} of "
          f"{statistics.median(times[0]) * 1e3:.1f} ms; of the least {min(times[1]) / min(times[0]):.3f}")


PARTS = {"convert": convert, "run": run, "call": call, "import": imports, "epoch": epoch, "first": first,
         "torch": torch_step}
for part in sys.argv[1:] or PARTS:
    if part not in PARTS:
        sys.exit(f"there is no part '{part}' but {', '.join(PARTS)}")
    PARTS[part]()
