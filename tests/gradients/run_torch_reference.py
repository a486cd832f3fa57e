#!/usr/bin/env python3
"""Losses and gradients against those that PyTorch computed: run_torch_reference.py SHEAF

torch_reference.json was written by bench/compare/train_torch.py --write, which says what the models
and their data are. It has to be written anew when initialisers draw other numbers.
"""
import json
import math
import os

from trainings import HERE, MODELS, expect, main


def compare(runner, name, model, reference):
    with open(os.path.join(MODELS, name + ".sheaf"), encoding="utf-8") as stream:
        runner.write(name + ".sheaf", stream.read() + "\n" + model["source"])
    with open(os.path.join(MODELS, "data", model["data"]), encoding="utf-8") as stream:
        lines = stream.read().split("\n")[:reference["instances"]]
    runner.write(name + ".txt", "\n".join(lines) + "\n")
    runner.run("vocab", name + ".txt", "-o", name + ".vocab.txt")
    common = [name + ".sheaf", "--dim", f"hidden={reference['hidden']}", "--vocab",
              name + ".vocab.txt"]
    runner.run("init", *common, "--seed", "7", "-o", name + ".safetensors")

    def train(optimizer, rate, steps):
        run = f"{name}-{optimizer}{rate}"
        runner.run("train", *common, "--data", name + ".txt", "--weights", name + ".safetensors",
                   "--optimizer", optimizer, "--lr", str(rate), "--batch", str(len(lines)),
                   "--epochs", str(steps), "--log-every", "1", "-o", run)
        return run, [line["loss"] for line in runner.log(run) if "lr" in line]

    run, (loss,) = train("sgd", reference["rate"], 1)
    expect(abs(loss - model["loss"]) <= 1e-6 * abs(model["loss"]),
           f"{name}: the loss is {loss}, PyTorch's {model['loss']}")
    before, after = runner.tensors(name + ".safetensors"), runner.tensors(run + "/last.safetensors")
    expect(set(before) == set(model["gradients"]), f"{name}: the parameters")
    for param, want in model["gradients"].items():
        have = [(a - b) / reference["rate"] for a, b in zip(before[param], after[param])]
        length = math.sqrt(sum(g * g for g in have))
        expect(abs(length - want["length"]) <= 1e-5 * want["length"],
               f"{name}: the gradient of {param} has length {length}, not {want['length']}")
        for i, element in want["elements"].items():
            expect(abs(have[int(i)] - element) <= 1e-5 * want["greatest"],
                   f"{name}: the gradient of {param}[{i}] is {have[int(i)]}, not {element}")
    for optimizer, curve in model["curves"].items():
        steps = (len(curve["losses"]) - 1) * curve["every"] + 1
        _, losses = train(optimizer, curve["rate"], steps)
        for i, want in enumerate(curve["losses"]):
            have = losses[i * curve["every"]]
            expect(abs(have - want) <= 1e-3 * abs(want),
                   f"{name}: the loss of step {i * curve['every']} of {optimizer} is {have}, not {want}")


def references(runner):
    with open(os.path.join(HERE, "torch_reference.json"), encoding="utf-8") as stream:
        reference = json.load(stream)
    for name, model in reference["models"].items():
        compare(runner, name, model, reference)


if __name__ == "__main__":
    main(references)
