#!/usr/bin/env python3
"""sheaf train against PyTorch: what a TreeLSTM has learnt, with both from the same weights.

    bench/compare/accuracy_torch.py sst TRAIN DEV [--seeds 1,2,3] [--epochs N]
    bench/compare/accuracy_torch.py listops [--seeds 1,2,3] [--epochs N]

sst: models/sentiment.sheaf, a loss at every phrase, the root's accuracy on DEV after each epoch.
listops: models/treelstm.sheaf on made expressions, with the options of ./demo. PyTorch computes all
nodes of one height in a mini-batch together, on one thread. The order of the instances and what
is dropped differ, so accuracies agree up to noise. Needs PyTorch and build/bin/sheaf.
"""
import argparse
import math
import os
import sys
import tempfile
import time

import torch

from common import (MODELS, parse_tree, read_lines, read_log, read_vocabulary, read_weights, sheaf)


class Flat:
    """A tree's nodes, children first: label, word, places of the children, height."""

    def __init__(self, tree, words):
        self.label, self.word, self.left, self.right, self.height = [], [], [], [], []
        work, done = [(tree, False)], []
        while work:
            node, children_done = work.pop()
            if len(node) == 3 and not children_done:
                work += [(node, True), (node[2], False), (node[1], False)]
                continue
            left = right = height = 0
            if len(node) == 3:
                right, left = done.pop(), done.pop()
                height = 1 + max(self.height[left], self.height[right])
            done.append(len(self.label))
            self.label.append(node[0])
            self.word.append(words.get(node[1], 0) if len(node) == 2 else 0)
            self.left.append(left)
            self.right.append(right)
            self.height.append(height)


class Batch:
    """The nodes of several trees by height."""

    def __init__(self, trees):
        joined = {name: [] for name in ("label", "word", "left", "right", "height", "weight")}
        roots, offset = [], 0
        for tree in trees:
            n = len(tree.label)
            for name in ("label", "word", "height"):
                joined[name] += getattr(tree, name)
            joined["left"] += [offset + i for i in tree.left]
            joined["right"] += [offset + i for i in tree.right]
            joined["weight"] += [1 / (n * len(trees))] * n
            offset += n
            roots.append(offset - 1)
        height = torch.tensor(joined["height"])
        order = torch.argsort(height, stable=True)
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order))
        self.label = torch.tensor(joined["label"])[order]
        self.weight = torch.tensor(joined["weight"])[order]
        self.root = place[torch.tensor(roots)]
        counts = torch.bincount(height).tolist()
        self.words = torch.tensor(joined["word"])[order[:counts[0]]]
        left = place[torch.tensor(joined["left"])][order]
        right = place[torch.tensor(joined["right"])][order]
        self.children, at = [], counts[0]
        for count in counts[1:]:
            self.children.append((left[at:at + count], right[at:at + count]))
            at += count


class TreeLstm(torch.nn.Module):
    def __init__(self, weights, every_node):
        super().__init__()
        self.every_node = every_node  # and the gates in the order of sentiment.sheaf
        for name, value in weights.items():
            self.register_parameter(name, torch.nn.Parameter(value.clone()))

    def drop(self, x):
        return torch.nn.functional.dropout(x, 0.5, self.training and self.every_node)

    def states(self, batch):
        x = self.drop(self.embedding[batch.words])
        i, o, u = (x @ self.leaf_w + self.leaf_b).chunk(3, 1)
        c = i.sigmoid() * u.tanh()
        h = o.sigmoid() * c.tanh()
        for left, right in batch.children:
            gates = torch.cat([h[left], h[right]], 1) @ self.node_w + self.node_b
            if self.every_node:
                i, fl, fr, o, u = gates.chunk(5, 1)
                fl, fr = fl + 1, fr + 1
            else:
                i, o, u, fl, fr = gates.chunk(5, 1)
            cell = i.sigmoid() * u.tanh() + fl.sigmoid() * c[left] + fr.sigmoid() * c[right]
            c = torch.cat([c, cell])
            h = torch.cat([h, o.sigmoid() * cell.tanh()])
        return h

    def loss(self, batch):
        h = self.states(batch)
        if self.every_node:
            losses = torch.nn.functional.cross_entropy(
                self.drop(h) @ self.out_w + self.out_b, batch.label, reduction="none")
            return (losses * batch.weight).sum()
        return torch.nn.functional.cross_entropy(h[batch.root] @ self.out_w + self.out_b,
                                                 batch.label[batch.root])

    def right(self, batch):
        scores = self.states(batch)[batch.root] @ self.out_w + self.out_b
        return (scores.argmax(1) == batch.label[batch.root]).sum().item()


def train_torch(weights, train, dev, seed, options, every_node):
    torch.manual_seed(seed)
    model = TreeLstm(weights, every_node)
    kind = torch.optim.AdamW if options["optimizer"] == "adamw" else torch.optim.Adam
    optimizer = kind(model.parameters(), lr=options["lr"],
                     weight_decay=options.get("weight-decay", 0))
    batch, epochs = options["batch"], options["epochs"]
    total, warmup = math.ceil(len(train) / batch) * epochs, options.get("warmup", 0)

    def rate(step):
        if step < warmup:
            return (step + 1) / warmup
        if options.get("schedule") != "cosine":
            return 1
        return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    tests = [Batch(dev[i:i + 256]) for i in range(0, len(dev), 256)]
    accuracies, seconds = [], 0
    for _ in range(epochs):
        begin = time.time()
        model.train()
        order = torch.randperm(len(train)).tolist()
        for i in range(0, len(train), batch):
            optimizer.zero_grad()
            model.loss(Batch([train[j] for j in order[i:i + batch]])).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), options["clip"])
            optimizer.step()
            schedule.step()
        seconds += time.time() - begin
        model.eval()
        with torch.no_grad():
            accuracies.append(sum(model.right(test) for test in tests) / len(dev))
    return accuracies, seconds / epochs


def main():
    arguments = argparse.ArgumentParser(description=__doc__,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("task", choices=["sst", "listops"])
    arguments.add_argument("data", nargs="*")
    arguments.add_argument("--seeds", default=[1, 2, 3], metavar="N,...",
                           type=lambda text: [int(seed) for seed in text.split(",")])
    arguments.add_argument("--epochs", type=int)
    given = arguments.parse_args()
    torch.set_num_threads(1)
    every_node = given.task == "sst"
    with tempfile.TemporaryDirectory() as work:
        def at(name):
            return os.path.join(work, name)
        if every_node:
            model = os.path.join(MODELS, "sentiment.sheaf")
            train, dev = given.data
            dims = {"hidden": 128}
            options = {"optimizer": "adamw", "lr": 1e-3, "weight-decay": 0.01, "clip": 1,
                       "batch": 32, "epochs": given.epochs or 10}
        else:
            model = os.path.join(MODELS, "treelstm.sheaf")
            train, dev = at("train.txt"), at("dev.txt")
            for path, count, seed in ((train, 20000, 1), (dev, 1000, 2)):
                sheaf("make", "listops", "-n", count, "--max-depth", 3, "--max-args", 4, "--seed",
                      seed, "-o", path)
            dims = {"hidden": 64, "classes": 10}
            options = {"optimizer": "adam", "lr": 3e-3, "schedule": "cosine", "warmup": 100,
                       "clip": 1, "batch": 64, "epochs": given.epochs or 24}
        sheaf("vocab", train, "-o", at("vocab.txt"))
        words = read_vocabulary(at("vocab.txt"))
        sizes = [x for name, size in dims.items() for x in ("--dim", f"{name}={size}")]
        flat = [[Flat(parse_tree(line), words) for line in read_lines(path)]
                for path in (train, dev)]
        print(f"{given.task}: {len(flat[0])} trees, {len(flat[1])} others; accuracy of both, the "
              "best of the epochs and the last")
        for seed in given.seeds:
            sheaf("init", model, "--entry", "loss", *sizes, "--vocab", at("vocab.txt"), "--seed",
                  seed, "-o", at("w.safetensors"))
            run = at(f"run{seed}")
            flags = [x for name, value in options.items() for x in (f"--{name}", value)]
            sheaf("train", model, "--data", train, "--dev", dev, "--metric", "accuracy", *sizes,
                  "--vocab", at("vocab.txt"), "--seed", seed, "--sample-seed", seed, *flags, "-o", run)
            epochs = [line for line in read_log(run) if "dev_accuracy" in line]
            mine = [line["dev_accuracy"] for line in epochs]
            theirs, seconds = train_torch(read_weights(at("w.safetensors")), *flat, seed, options,
                                          every_node)
            print(f"  seed {seed}: Sheaf {max(mine):.4f} {mine[-1]:.4f} "
                  f"({sum(line['seconds'] for line in epochs) / len(epochs):.1f} s an epoch), "
                  f"PyTorch {max(theirs):.4f} {theirs[-1]:.4f} ({seconds:.1f} s)", flush=True)


if __name__ == "__main__":
    sys.exit(main())
