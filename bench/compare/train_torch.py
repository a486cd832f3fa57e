#!/usr/bin/env python3
"""sheaf train against PyTorch: gradients and loss curves of the TreeLSTM.

    bench/compare/train_torch.py TREES [--instances N] [--hidden H]

TREES: labelled binary bracket trees. One mini-batch of the first N, the same initial weights, the
same optimiser; PyTorch evaluates one tree at a time by autograd. Prints, for every parameter, the
greatest difference of the gradients over the greatest gradient, and the greatest relative
difference of the losses over 200 steps of SGD and 20 of Adam. Gradients are read off the weights
after one step of SGD with a learning rate of 1, so their last digits are lost where weights are
large. Needs PyTorch (Debian's python3-torch will do) and build/bin/sheaf.
"""
import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile

import torch

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SHEAF = os.path.join(ROOT, "build", "bin", "sheaf")
MODEL = os.path.join(ROOT, "models", "treelstm.sheaf")


def sheaf(*words):
    run = subprocess.run([SHEAF, *map(str, words)], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"sheaf {' '.join(map(str, words))}\n{run.stderr}")


def read_weights(path):
    """The f32 tensors of a safetensors file."""
    with open(path, "rb") as stream:
        header = json.loads(stream.read(struct.unpack("<Q", stream.read(8))[0]))
        data = stream.read()
    header.pop("__metadata__", None)
    return {name: torch.frombuffer(bytearray(data[slice(*entry["data_offsets"])]),
                                   dtype=torch.float32).reshape(entry["shape"])
            for name, entry in header.items()}


def parse(text):
    """(label, word) or (label, left, right), without recursion."""
    stack = [[]]
    for part in text.replace("(", " ( ").replace(")", " ) ").split():
        if part == "(":
            stack.append([])
        elif part == ")":
            done = stack.pop()
            stack[-1].append((int(done[0]), *done[1:]))
        else:
            stack[-1].append(part)
    return stack[0][0]


class TreeLstm:
    def __init__(self, weights, dtype):
        self.w = {name: value.to(dtype).clone().requires_grad_() for name, value in weights.items()}

    def encode(self, tree, words):
        w = self.w
        if len(tree) == 2:
            row = w["embedding"][words.get(tree[1], 0)]
            i, o, u = (row @ w["leaf_w"] + w["leaf_b"]).chunk(3)
            c = i.sigmoid() * u.tanh()
        else:
            (hl, cl), (hr, cr) = (self.encode(child, words) for child in tree[1:])
            i, o, u, fl, fr = (torch.cat([hl, hr]) @ w["node_w"] + w["node_b"]).chunk(5)
            c = i.sigmoid() * u.tanh() + fl.sigmoid() * cl + fr.sigmoid() * cr
        return o.sigmoid() * c.tanh(), c

    def loss(self, trees, words):
        scores = torch.stack([self.encode(t, words)[0] @ self.w["out_w"] + self.w["out_b"]
                              for t in trees])
        return torch.nn.functional.cross_entropy(scores, torch.tensor([t[0] for t in trees]))


def curve(model, trees, words, optimizer, steps):
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model.loss(trees, words)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    arguments = argparse.ArgumentParser(description=__doc__,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("trees")
    arguments.add_argument("--instances", type=int, default=16)
    arguments.add_argument("--hidden", type=int, default=32)
    given = arguments.parse_args()
    sys.setrecursionlimit(100000)
    with tempfile.TemporaryDirectory() as work:
        def at(name):
            return os.path.join(work, name)
        with open(given.trees, encoding="utf-8") as stream:
            lines = stream.read().splitlines()[:given.instances]
        with open(at("trees.txt"), "w", encoding="utf-8") as stream:
            stream.write("\n".join(lines) + "\n")
        sheaf("vocab", at("trees.txt"), "-o", at("vocab.txt"))
        with open(at("vocab.txt"), encoding="utf-8") as stream:
            words = {word: i for i, word in enumerate(stream.read().splitlines())}
        dims = ["--dim", f"hidden={given.hidden}", "--vocab", at("vocab.txt")]
        sheaf("init", MODEL, "--dim", f"hidden={given.hidden}", "--dim", f"vocab={len(words)}",
              "--seed", 7, "-o", at("w.safetensors"))
        weights = read_weights(at("w.safetensors"))
        trees = [parse(line) for line in lines]

        def train(name, optimizer, rate, steps):
            sheaf("train", MODEL, "--data", at("trees.txt"), *dims, "--weights",
                  at("w.safetensors"), "--optimizer", optimizer, "--lr", rate, "--batch",
                  len(trees), "--epochs", steps, "--log-every", 1, "-o", at(name))
            with open(at(name) + "/log.jsonl", encoding="utf-8") as stream:
                steps = [json.loads(line) for line in stream]
            return [step["loss"] for step in steps if "step" in step and "lr" in step]

        train("one", "sgd", 1, 1)
        after = read_weights(at("one") + "/last.safetensors")
        model = TreeLstm(weights, torch.float64)
        model.loss(trees, words).backward()
        print("gradients: greatest difference from PyTorch (f64) over the greatest gradient")
        for name, before in weights.items():
            want = model.w[name].grad
            have = (before - after[name]).double()
            print(f"  {name:10} {((have - want).abs().max() / want.abs().max()).item():.1e}")
        for optimizer, rate, steps in (("sgd", 0.5, 200), ("adam", 1e-3, 20)):
            have = train(optimizer, optimizer, rate, steps)
            for dtype in (torch.float32, torch.float64):
                model = TreeLstm(weights, dtype)
                kind = torch.optim.SGD if optimizer == "sgd" else torch.optim.Adam
                want = curve(model, trees, words, kind(model.w.values(), lr=rate), steps)
                worst = max(abs(a - b) / abs(b) for a, b in zip(have, want))
                print(f"losses of {len(have)} steps of {optimizer} against PyTorch in {dtype}: "
                      f"from {want[0]:.4f} to {want[-1]:.4f}, greatest relative difference {worst:.1e}")


if __name__ == "__main__":
    main()
