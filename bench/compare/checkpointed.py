#!/usr/bin/env python3
"""Steps of training in less memory beside PyTorch: checkpointed.py [--layers N] [--sequences N]

Layers of encoder.py, ragged lengths, SGD, f32, one thread. PyTorch packed by hand, as it is, with
torch.utils.checkpoint around each layer, and keeping the results of products alone (selective
checkpointing); Sheaf without a limit, and with limits under which it takes no more than each of
these, or the least that it can. Each in a process of its own, in which the shortest of `--steps`
steps is taken; memory is the peak of the resident size above that before the first step, which has
weights and data.

    PYTHONPATH=build/python taskset -c 1 python3 bench/compare/checkpointed.py
"""
import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np
import torch
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

import sheaf as sf
from encoder import WIDTH, Layer, Packed
from sheaf import Float32, Module, mean, square

MB = 1 << 20


def status(field):
    with open("/proc/self/status", encoding="utf-8") as stream:
        return next(int(line.split()[1]) * 1024 for line in stream if line.startswith(field + ":"))


class Encoder(Module):
    def __init__(self, layers):
        self.width = WIDTH
        self.layers = [Layer() for _ in range(layers)]

    def loss(self, x: Float32["n width"]) -> Float32[""]:
        for layer in self.layers:
            x = layer.forward(x)
        return mean(square(x))


def measure(step, steps):
    """The shortest time of a step, and what the peak is above the beginning. `step` runs some."""
    with open("/proc/self/clear_refs", "w", encoding="utf-8") as stream:
        stream.write("5")  # the peak begins anew
    before = status("VmRSS")
    times = [step() for _ in range(steps)]
    return {"seconds": min(times), "bytes": status("VmHWM") - before}


def torch_run(given, xs, lengths):
    torch.manual_seed(0)
    layers = []
    for _ in range(given.layers):
        layer = Layer()
        layers.append(Packed({name: np.array(value) for name, value in layer.state_dict().items()}, given.compiled))
    parameters = [p for layer in layers for p in layer.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=1e-3)
    x = torch.tensor(np.concatenate(xs))
    products = [torch.ops.aten.mm.default, torch.ops.aten.addmm.default]

    def policy(context, op, *args, **kwargs):
        return CheckpointPolicy.MUST_SAVE if op in products else CheckpointPolicy.PREFER_RECOMPUTE

    def run(layer, y):
        if given.run == "checkpoint":
            return checkpoint(layer, y, lengths, use_reentrant=False)
        if given.run == "selective":
            return checkpoint(layer, y, lengths, use_reentrant=False,
                              context_fn=lambda: create_selective_checkpoint_contexts(policy))
        return layer(y, lengths)

    def step():
        begin = time.perf_counter()
        optimizer.zero_grad()
        y = x
        for layer in layers:
            y = run(layer, y)
        torch.stack([part.square().mean() for part in torch.split(y, lengths)]).mean().backward()
        optimizer.step()
        return time.perf_counter() - begin

    return measure(step, given.steps)


def sheaf_run(given, xs):
    fast = sf.jit(Encoder(given.layers), **({"memory_limit": given.limit} if given.limit else {}))
    optimizer = sf.optim.SGD(fast, lr=1e-3)
    fit = iter(fast.fit(fast.loss.encode(xs), optimizer=optimizer, epochs=given.steps, batch=len(xs)))

    def step():
        begin = time.perf_counter()
        next(fit)
        return time.perf_counter() - begin

    return measure(step, given.steps)


def elsewhere(given, **changes):
    """The same script for one run, in a process of its own."""
    options = {**vars(given), **changes}
    words = [word for name, value in options.items() if value not in (None, False)
             for word in ([f"--{name}"] if value is True else [f"--{name}", str(value)])]
    run = subprocess.run([sys.executable, os.path.abspath(__file__), *words], capture_output=True, text=True)
    return json.loads(run.stdout) if run.returncode == 0 else {"error": run.stderr.strip().split("\n")[-1]}


def within(given, most, unlimited):
    """Sheaf's run under a limit that keeps its peak at or below `most`, or the least that was found."""
    least, fails, limit = unlimited, 0, most + 64 * MB  # limits count weights as well
    for _ in range(8):
        found = elsewhere(given, run="sheaf", limit=int(limit))
        if "error" in found:
            fails = limit
        elif found["bytes"] < least["bytes"]:
            least = found
        if least["bytes"] <= most or ("limit" in least and least["limit"] < 1.05 * fails):
            break
        if "error" not in found:
            found["limit"] = limit
        holds = least.get("limit")
        limit = 1.25 * limit if not holds else (fails + holds) / 2 if fails else limit - (found["bytes"] - most)
    return least


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--sequences", type=int, default=8)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--compiled", action="store_true", help="PyTorch compiles all of a layer but attention")
    parser.add_argument("--run", choices=["plain", "checkpoint", "selective", "sheaf"], help=argparse.SUPPRESS)
    parser.add_argument("--limit", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    draws = np.random.default_rng(0)
    lengths = [int(n) for n in draws.integers(16, 513, given.sequences)]
    xs = [draws.standard_normal((n, WIDTH), dtype=np.float32) for n in lengths]
    if given.run:
        print(json.dumps(sheaf_run(given, xs) if given.run == "sheaf" else torch_run(given, xs, lengths)))
        return
    print(f"{given.layers} layers, {len(lengths)} sequences of {min(lengths)} to {max(lengths)} rows, {sum(lengths)} in all")
    print(f"{'':24} PyTorch: s a step    MB   Sheaf: s a step    MB   times as long")
    unlimited = elsewhere(given, run="sheaf")
    for name in ("plain", "checkpoint", "selective"):
        theirs = elsewhere(given, run=name)
        if "error" in theirs:
            print(f"{name:24} {theirs['error']}")
            continue
        ours = unlimited if unlimited["bytes"] <= theirs["bytes"] else within(given, theirs["bytes"], unlimited)
        print(f"{name:24} {theirs['seconds']:19.2f} {theirs['bytes'] / MB:5.0f} {ours['seconds']:17.2f} {ours['bytes'] / MB:5.0f}"
              f" {theirs['seconds'] / ours['seconds']:15.2f}", flush=True)
    print(f"{'Sheaf without a limit':24} {'':25} {unlimited['seconds']:17.2f} {unlimited['bytes'] / MB:5.0f}")


if __name__ == "__main__":
    main()
