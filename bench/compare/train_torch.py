#!/usr/bin/env python3
"""sheaf train against PyTorch: the loss, every gradient, and loss curves.

    bench/compare/train_torch.py [--instances N] [--hidden H] [--trees FILE] [--write FILE]

TreeLSTM, MV-RNN, LSTM tagger and a model that exits early; one mini-batch of the first N instances
of models/data (--trees: of another file of labelled binary trees), the same initial weights.
PyTorch evaluates one instance at a time by autograd, in f64. For every parameter prints the
greatest difference of the gradients over the greatest gradient; for every model the greatest
relative difference of the losses over 200 steps of SGD and 20 of Adam, as Sheaf compiles them and
as its oracle trains in f64 (`sheaf grad-check --steps`). Gradients are read off the
weights after one step of SGD with a learning rate so large that what was there before is lost in
it. --write keeps PyTorch's numbers for tests/gradients/run_torch_reference.py. Needs PyTorch
(Debian's python3-torch will do) and build/bin/sheaf.
"""
import argparse
import json
import os
import sys
import tempfile

import torch

from common import MODELS, read_lines, read_log, read_vocabulary, read_weights, sheaf
from torch_models import ALL

RATE = 2 ** 20
CURVES = (("sgd", 0.1, 200), ("adam", 1e-3, 20))


def curve(model, instances, words, optimizer, rate, steps):
    kind = torch.optim.SGD if optimizer == "sgd" else torch.optim.Adam
    optimizer, losses = kind(model.w.values(), lr=rate), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model.loss(instances, words)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def compare(kind, given, directory):
    def at(name):
        return os.path.join(directory, kind.name + name)

    trees = given.trees and kind.data == "trees.txt"
    lines = read_lines(given.trees if trees else os.path.join(MODELS, "data", kind.data),
                       given.instances)
    with open(at(".txt"), "w", encoding="utf-8") as stream:
        stream.write("\n".join(lines) + "\n")
    with open(os.path.join(MODELS, kind.name + ".sheaf"), encoding="utf-8") as source:
        with open(at(".sheaf"), "w", encoding="utf-8") as stream:
            stream.write(source.read() + "\n" + kind.source)
    sheaf("vocab", at(".txt"), "-o", at(".vocab.txt"))
    words = read_vocabulary(at(".vocab.txt"))
    common = [at(".sheaf"), "--dim", f"hidden={given.hidden}", "--vocab", at(".vocab.txt")]
    sheaf("init", *common, "--seed", 7, "-o", at(".safetensors"))
    weights = read_weights(at(".safetensors"))
    instances = [kind.parse(line) for line in lines]

    common += ["--data", at(".txt"), "--weights", at(".safetensors"), "--batch", len(lines)]
    sheaf("train", *common, "--optimizer", "sgd", "--lr", RATE, "--epochs", 1, "--log-every", 1,
          "-o", at(".run"))
    loss, = (line["loss"] for line in read_log(at(".run")) if "lr" in line)
    after = read_weights(at(".run/last.safetensors"))
    model = kind(weights, torch.float64)
    want = model.loss(instances, words)
    want.backward()
    print(f"{kind.name}: loss {loss:.6f}, PyTorch {want.item():.6f}, relative difference "
          f"{abs(loss - want.item()) / abs(want.item()):.1e}")
    reference = {"loss": want.item(), "gradients": {}, "curves": {}}
    for name, before in weights.items():
        grad = model.w[name].grad
        if grad is None:  # it had no part in the loss: layers that were not reached
            grad = torch.zeros_like(model.w[name])
        have = (before - after[name]).double() / RATE
        most = grad.abs().max().item()
        worst = (have - grad).abs().max().item()
        print(f"  {name:20} {worst / most if most else worst:.1e}")
        flat = grad.flatten()
        places = sorted({int(i * (len(flat) - 1) / 15) for i in range(16)})
        reference["gradients"][name] = {
            "length": flat.norm().item(), "greatest": most,
            "elements": {str(i): flat[i].item() for i in places}}
    for optimizer, rate, steps in CURVES:
        steps_taken = json.loads(sheaf(
            "grad-check", *common, "--limit", len(lines), "--directions", 1, "--optimizer",
            optimizer, "--lr", rate, "--steps", steps, "--format", "json"))["training"]["steps"]
        have = {name: [step[name] for step in steps_taken] for name in ("loss", "oracle_loss")}
        for name, dtype in (("loss", torch.float32), ("loss", torch.float64),
                            ("oracle_loss", torch.float64)):
            want = curve(kind(weights, dtype), instances, words, optimizer, rate, steps)
            worst = max(abs(a - b) / abs(b) for a, b in zip(have[name], want))
            print(f"  {len(want)} steps of {optimizer} in {'f64' if name != 'loss' else 'f32'} "
                  f"against {str(dtype)[6:]}: losses from {want[0]:.4f} to {want[-1]:.4f}, "
                  f"greatest relative difference {worst:.1e}", flush=True)
        reference["curves"][optimizer] = {"rate": rate, "losses": want[::max(1, steps // 20)],
                                          "every": max(1, steps // 20)}
    return {"source": kind.source, "data": kind.data, **reference}


def main():
    arguments = argparse.ArgumentParser(description=__doc__,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--instances", type=int, default=8)
    arguments.add_argument("--hidden", type=int, default=16)
    arguments.add_argument("--trees")
    arguments.add_argument("--write")
    given = arguments.parse_args()
    sys.setrecursionlimit(100000)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as directory:
        models = {kind.name: compare(kind, given, directory) for kind in ALL}
    if given.write:
        with open(given.write, "w", encoding="utf-8") as stream:
            json.dump({"instances": given.instances, "hidden": given.hidden, "rate": RATE,
                       "models": models}, stream, indent=1)
            stream.write("\n")


if __name__ == "__main__":
    main()
