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

    common += ["--data", name + ".txt", "--weights", name + ".safetensors", "--batch",
               str(len(lines))]
    run = name + "-run"
    runner.run("train", *common, "--optimizer", "sgd", "--lr", str(reference["rate"]), "--epochs",
               "1", "--log-every", "1", "-o", run)
    loss, = (line["loss"] for line in runner.log(run) if "lr" in line)
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
        report = json.loads(runner.run(
            "grad-check", *common, "--limit", str(len(lines)), "--directions", "1", "--optimizer",
            optimizer, "--lr", str(curve["rate"]), "--steps", str(steps), "--format", "json", stderr=False))
        for i, want in enumerate(curve["losses"]):
            at = i * curve["every"]
            for kind, allowed in (("loss", 1e-3), ("oracle_loss", 1e-9)):
                have = report["training"]["steps"][at][kind]
                expect(abs(have - want) <= allowed * abs(want),
                       f"{name}: the {kind} of step {at} of {optimizer} is {have}, not {want}")


def references(runner):
    with open(os.path.join(HERE, "torch_reference.json"), encoding="utf-8") as stream:
        reference = json.load(stream)
    for name, model in reference["models"].items():
        compare(runner, name, model, reference)


if __name__ == "__main__":
    main(references)
