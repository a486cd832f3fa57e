#!/usr/bin/env python3
"""What `sheaf train` leaves behind: run_training.py SHEAF"""
import json
import math
import os
import shutil

from trainings import MODELS, expect, main


# ---------------------------------------------------------------- optimisers, by hand

QUADRATIC = """
param w : f32[3] = uniform(0.5, 1.5)
param table : f32[4, 3] = uniform(0.5, 1.5)
fn loss(x: f32[3], i: int) -> f32 = sum(square(w) * x) + sum(square(table[i]) * x)
"""


def update(kind, w, g, state, step, lr, decay):
    if kind not in ("adamw", "lamb"):
        g = g + decay * w
    m, v = state
    if kind == "sgd":
        return w - lr * g, state
    if kind == "momentum":
        m = 0.9 * m + g
        return w - lr * m, (m, v)
    if kind == "adagrad":
        v = v + g * g
        return w - lr * g / (math.sqrt(v) + 1e-8), (m, v)
    if kind == "rmsprop":
        v = 0.99 * v + 0.01 * g * g
        return w - lr * g / (math.sqrt(v) + 1e-8), (m, v)
    expect(kind in ("adam", "adamw"), f"no update of {kind} is known")
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    change = m / (1 - 0.9 ** step) / (math.sqrt(v / (1 - 0.999 ** step)) + 1e-8)
    if kind == "adamw":
        change += decay * w
    return w - lr * change, (m, v)


def optimisers(runner):
    runner.write("q.sheaf", QUADRATIC)
    runner.write("q.jsonl", '{"x": [1.0, 2.0, -0.5], "i": 2}\n')
    runner.run("init", "q.sheaf", "--entry", "loss", "--seed", "3", "-o", "q.safetensors")
    x = [1.0, 2.0, -0.5]
    start = runner.tensors("q.safetensors")
    steps, lr, warmup, clip = 6, 0.05, 2, 4.0
    listed = json.loads(runner.run("help", "optimisers", "--json", stderr=False))
    for kind in (row["name"] for row in listed["rows"] if row["name"] != "lamb"):  # it is below
        shutil.rmtree(runner.path("q"), ignore_errors=True)
        runner.run("train", "q.sheaf", "--data", "q.jsonl", "--seed", "3", "--optimizer", kind,
                   "--lr", str(lr), "--schedule", "cosine", "--warmup", str(warmup), "--clip",
                   str(clip), "--weight-decay", "0.1", "--no-decay", "tab*", "--epochs",
                   str(steps), "--log-every", "1", "-o", "q")
        w = {"w": start["w"][:], "table": start["table"][:]}
        state = {k: [(0.0, 0.0)] * len(v) for k, v in w.items()}
        for step in range(1, steps + 1):
            done = (step - 1 - warmup) / (steps - warmup)
            rate = lr * step / warmup if step <= warmup else lr * 0.5 * (1 + math.cos(math.pi * done))
            # Of the table one row has a gradient; the others do not move.
            parts = [("w", i, 2 * w["w"][i] * x[i], 0.1) for i in range(3)]
            parts += [("table", 6 + i, 2 * w["table"][6 + i] * x[i], 0.0) for i in range(3)]
            norm = math.sqrt(sum(g * g for _, _, g, _ in parts))
            scale = min(1.0, clip / norm)
            for name, i, g, decay in parts:
                w[name][i], state[name][i] = update(kind, w[name][i], g * scale, state[name][i],
                                                    step, rate, decay)
            line = [each for each in runner.log("q") if "norm" in each][step - 1]
            expect(abs(line["norm"] - norm) < 1e-4 * norm, f"{kind}: norm {line['norm']} {norm}")
            expect(abs(line["lr"] - rate) < 1e-9, f"{kind}: rate {line['lr']}, not {rate}")
        actual = runner.tensors("q/last.safetensors")
        for name, values in w.items():
            for i, value in enumerate(values):
                expect(abs(actual[name][i] - value) < 1e-5,
                       f"{kind}: {name}[{i}] is {actual[name][i]}, not {value}")
    shutil.rmtree(runner.path("q"), ignore_errors=True)
    runner.run("train", "q.sheaf", "--data", "q.jsonl", "--seed", "3", "--optimizer", "lamb", "--lr",
               "0.01", "--epochs", "1", "-o", "q")
    # The first change of LAMB is as long as the learning rate times the parameter.
    for name, some in (("w", slice(0, 3)), ("table", slice(6, 9))):
        before, after = start[name][some], runner.tensors("q/last.safetensors")[name][some]
        length = math.sqrt(sum(a * a for a in before))
        moved = math.sqrt(sum((a - b) ** 2 for a, b in zip(before, after)))
        expect(abs(moved - 0.01 * length) < 1e-5, f"lamb: {name} moved {moved} of {length}")


# ---------------------------------------------------------------- courses of trainings

TREES = ["train", "tree.sheaf", "--loss", "dropped", "--data", os.path.join(MODELS, "data", "trees.txt"), "--dim",
         "hidden=12", "--epochs", "5", "--batch", "5", "--optimizer", "adamw", "--lr", "0.01",
         "--weight-decay", "0.01", "--clip", "1", "--schedule", "linear", "--warmup", "3"]


def courses(runner):
    with open(os.path.join(MODELS, "treelstm.sheaf"), encoding="utf-8") as stream:
        model = stream.read()
    # What is dropped follows from the step.
    runner.write("tree.sheaf", model + """
fn dropped(t: Tree, label: int) -> f32 = {
  let (h, _) = encode(t)
  cross_entropy(dropout(h, 0.2) @ out_w + out_b, label)
}
""")
    runner.run(*TREES, "-o", "one")
    runner.run(*TREES, "--threads", "2", "-o", "two")
    same = runner.tensors("one/last.safetensors")
    expect(same == runner.tensors("two/last.safetensors"), "two threads train as one does")
    epochs = [line for line in runner.log("one") if "train_loss" in line]
    expect(len(epochs) == 5, "a line for each epoch")
    expect(epochs[-1]["train_loss"] < epochs[0]["train_loss"], "the loss falls")
    expect(len([f for f in os.listdir(runner.path("one")) if f.startswith("checkpoint-")]) == 2,
           "two checkpoints are kept")
    # Taken up again from its first checkpoints, in the middle of an epoch or at its end.
    steps = epochs[0]["step"]
    shutil.rmtree(runner.path("two"))
    runner.run(*TREES, "--checkpoint-every", "2", "--keep", "99", "-o", "two")
    kept = sorted(f for f in os.listdir(runner.path("two")) if f.startswith("checkpoint-"))
    for stop in (2, steps, steps + 2):
        shutil.rmtree(runner.path("three"), ignore_errors=True)
        shutil.copytree(runner.path("two"), runner.path("three"))
        for name in kept:
            if int(name.split("-")[1].split(".")[0]) > stop:
                os.remove(runner.path("three/" + name))
        runner.run("train", "--resume", "three", "--threads", "2")
        expect(same == runner.tensors("three/last.safetensors"), f"resumed behind step {stop}")
        again = [{k: v for k, v in line.items() if k in ("step", "train_loss")}
                 for line in runner.log("three") if "train_loss" in line]
        expect(again == [{k: line[k] for k in ("step", "train_loss")} for line in epochs],
               f"the log of one resumed behind step {stop}")
    # A half-written checkpoint is none.
    runner.write("three/checkpoint-9999.safetensors.tmp", "half")
    runner.run("train", "--resume", "three")
    text = runner.run("train", "--resume", "three", "--batch", "1", code=2)
    expect("--batch is given with --resume" in text, "--resume takes no other options")
    text = runner.run(*TREES, "-o", "one", code=1)
    expect("one holds a training" in text, "a training is not overwritten")

    # What is frozen, or behind stop_gradient alone, stays.
    runner.run("init", "tree.sheaf", "--entry", "dropped", "--dim", "hidden=12", "--vocab",
               "one/last.vocab.txt", "-o", "start.safetensors")
    runner.run(*TREES, "--freeze", "leaf_*", "--freeze", "embedding", "-o", "frozen")
    start, end = runner.tensors("start.safetensors"), runner.tensors("frozen/last.safetensors")
    for name in start:
        stays = name.startswith("leaf_") or name == "embedding"
        expect((start[name] == end[name]) == stays, f"{name} is {'not ' if stays else ''}frozen")
    text = runner.run(*TREES, "--freeze", "nothing*", "-o", "frozen2", code=2)
    expect("no parameter of the model is called 'nothing*'" in text, "a pattern without match")

    # --dev and a measure; `eval` gives the same.
    runner.run(*TREES, "--dev", os.path.join(MODELS, "data", "trees.txt"), "--metric", "accuracy",
               "-o", "measured")
    lines = [line for line in runner.log("measured") if "dev_accuracy" in line]
    best = max(line["dev_accuracy"] for line in lines)
    text = runner.run("eval", "tree.sheaf", "--dim", "hidden=12", "--weights",
                      "measured/best.safetensors", "--data",
                      os.path.join(MODELS, "data", "trees.txt"), "--metric", "accuracy")
    expect(abs(float(text.split()[1]) - best) < 1e-5, f"eval gives {text}, the log {best}")


def details(runner):
    runner.write("s.sheaf", """
param a : f32[3] = ones
param b : f32[3] = ones
param c : f32[2, 3] = ones
fn loss(x: f32[3], ok: bool) -> f32 = {
  check ok, "not this one"
  sum(a * x) + sum(stop_gradient(b * 2.0) * x) + 0 * sum(c[1])
}
""")
    runner.write("s.jsonl", '{"x": [1, 2, 3], "ok": true}\n{"x": [1, 2, 3], "ok": false}\n')
    text = runner.run("train", "s.sheaf", "--data", "s.jsonl", "--optimizer", "sgd", "--lr", "0.1",
                      "--epochs", "1", "-o", "s", code=1)
    expect("1 instances failed" in text and "not this one" in text, f"a failed instance: {text}")
    end = runner.tensors("s/last.safetensors")
    expect(all(abs(p - q) < 1e-6 for p, q in zip(end["a"], [0.9, 0.8, 0.7])),
           f"an instance that failed has no part in the mean: {end['a']}")
    expect(end["b"] == [1, 1, 1], "nothing goes through stop_gradient")
    runner.run("train", "s.sheaf", "--data", "s.jsonl", "--optimizer", "sgd", "--lr", "0.1",
               "--epochs", "1", "--reduction", "sum", "-o", "s2", code=1)
    expect(end == runner.tensors("s2/last.safetensors"), "the sum over one is its mean")

    # Nor has a step of which every instance failed, whatever momentum there is.
    runner.run("train", "s.sheaf", "--data", "s.jsonl", "--optimizer", "momentum", "--lr", "0.1",
               "--epochs", "2", "--batch", "1", "--ema", "0.5", "-o", "s3", code=1)
    end = runner.tensors("s3/last.safetensors")
    # Velocities x and 1.9 x; the average takes min(0.5, t / (t + 9)) of what it was.
    one, two = 1 - 0.1, 1 - 0.29
    expect(abs(end["a"][0] - (2 / 11 * one + 9 / 11 * two)) < 1e-6,
           f"a step without gradients changes nothing: {end['a']}")

    # A mini-batch that memory does not hold goes in parts; only what is too large alone fails.
    recursion = """
dim h = 2
param w : f32[h, h] = identity
param b : f32[h] = normal(0.1)
fn go(i: int, x: f32[h]) -> f32[h] = if i == 0 { x } else { go(i - 1, tanh(x @ w + b)) }
"""
    runner.write("g.sheaf", recursion + "fn loss(i: int, x: f32[h]) -> f32 = sum(go(i, x))\n")
    runner.write("g.jsonl", "".join(f'{{"i": {2000 * i}, "x": [0.1, 0.2]}}\n' for i in range(1, 7)))
    runner.write("g7.jsonl", '{"i": 1000000, "x": [0.1, 0.2]}\n' + "".join(
        f'{{"i": {2000 * i}, "x": [0.1, 0.2]}}\n' for i in range(1, 7)))
    common = ["train", "g.sheaf", "--optimizer", "sgd", "--lr", "0.1", "--epochs", "1"]
    text = runner.run(*common, "--data", "g.jsonl", "--batch", "6", "-o", "g")
    expect("parts" not in text and all("halved" not in line for line in runner.log("g")),
           f"nothing is halved: {text}")
    whole = runner.tensors("g/last.safetensors")
    # Of several parts each is halved that memory does not hold, where their number is given.
    for name, limit, more, halved, failed in (
            ("g1", "6M", ["--data", "g.jsonl", "--batch", "6", "--parts", "1"], True, None),
            ("g2", "6M", ["--data", "g.jsonl", "--batch", "3", "--accumulate", "2"], False, None),
            ("g3", "6M", ["--data", "g7.jsonl", "--batch", "7", "--parts", "1"], True,
             "1 instances failed"),
            ("g4", "5M", ["--data", "g.jsonl", "--batch", "6", "--parts", "2"], True, None)):
        text = runner.run(*common, *more, "--memory-limit", limit, "--log-every", "1", "-o", name,
                          code=1 if failed else 0)
        expect("failed" not in text if failed is None else
               failed in text and "g7.jsonl:1: instance 0" in text and "out of memory" in text,
               f"{name}, in parts: {text}")
        step, epoch = runner.log(name)[-2:]
        told = [f"note: step 1: --memory-limit {limit} does not hold" in text,
                "1 steps halved" in text, "halved" in step, "halved" in epoch]
        expect(told == 4 * [halved], f"{name}, what is told: {told} {text} {step} {epoch}")
        parts = runner.tensors(f"{name}/last.safetensors")
        expect(all(abs(p - q) < 1e-5 for k in whole for p, q in zip(whole[k], parts[k])),
               f"{name}: {whole} in parts: {parts}")

    # Else the first step finds out how many parts the limit asks for, and they are part of the
    # training from then on: their bits do not depend on the limit, nor on where it was stopped.
    runner.write("g8.jsonl", "".join(f'{{"i": {2000 * i}, "x": [0.1, 0.2]}}\n'
                                     for i in (6, 5, 6, 4, 5, 6, 4, 6)))
    common = ["train", "g.sheaf", "--optimizer", "adam", "--lr", "0.01", "--data", "g8.jsonl",
              "--batch", "6", "--log-every", "1"]
    text = runner.run(*common, "--memory-limit", "6M", "--epochs", "2", "-o", "limited")
    parts = runner.config("limited")["parts"]
    expect(int(parts) > 1 and f"each goes in {parts} parts" in text and "halved" not in text,
           f"parts by the limit: {parts} {text}")
    expect([line["parts"] for line in runner.log("limited") if line["event"] == "step"] ==
           2 * [int(parts), min(int(parts), 2)], "in the log; an epoch's last step has two instances")
    runner.run(*common, "--parts", parts, "--epochs", "2", "-o", "unlimited")
    expect(runner.same("limited", "unlimited"), "the limit changes no bit")
    runner.run(*common, "--memory-limit", "6M", "--epochs", "1", "-o", "resumed")
    runner.run("train", "--resume", "resumed", "--epochs", "2", "--memory-limit", "1G")
    expect(runner.same("limited", "resumed"), "nor does a resume without it")
    # Mini-batches that make a step are parts of it: of instances that are alike, the same ones.
    runner.write("even.jsonl", "".join(f'{{"i": 40, "x": [0.1, {i}]}}\n' for i in range(8)))
    even = [*common[:6], "--data", "even.jsonl", "--epochs", "2"]
    runner.run(*even, "--batch", "2", "--accumulate", "4", "-o", "even1")
    runner.run(*even, "--batch", "4", "--accumulate", "2", "--parts", "2", "-o", "even2")
    runner.run(*even, "--batch", "8", "--parts", "4", "-o", "even4")
    expect(runner.same("even1", "even2") and runner.same("even1", "even4"), "--accumulate and --parts")
    text = runner.run(*common, "--parts", "0", "-o", "none", code=2)
    expect("--parts" in text, text)
    # An instance that is too large by itself fails alone, and makes the parts no smaller than it.
    text = runner.run(*common[:6], "--data", "g7.jsonl", "--batch", "7", "--epochs", "1",
                      "--memory-limit", "6M", "-o", "large", code=1)
    expect("1 instances failed" in text and runner.config("large")["parts"] in ("2", "4"), text)

    # What stays from step to step counts, too: two of Adam's and the average of each weight.
    runner.write("large.sheaf", """
param e : f32[2000, 64] = normal(0.1)
param w : f32[64, 64] = glorot
fn loss(x: i32) -> f32 = mean(tanh(e[x] @ w))
""")
    runner.write("large.jsonl", 20 * '{"x": 7}\n')
    adam = ["train", "large.sheaf", "--data", "large.jsonl", "--optimizer", "adam", "--ema", "0.9",
            "--batch", "5", "--epochs", "1"]
    runner.run(*adam, "--memory-limit", "8M", "-o", "fits")
    with open(runner.path("fits/profile.json"), encoding="utf-8") as stream:
        held = json.load(stream)["memory"]["training"]
    expect(held == 3 * 4 * (2000 * 64 + 64 * 64), f"what a training holds: {held}")
    text = runner.run(*adam, "--memory-limit", "2M", "-o", "short", code=1)
    expect("the memory limit of 2.0 MB does not hold what the optimiser remembers" in text, text)

    # What is told of a step that is skipped needs no more memory than the step did.
    runner.write("gn.sheaf", recursion + "fn loss(i: int, s: float) -> f32 = "
                 "sum(log(go(i, ones(h)) * s))\n")
    runner.write("gn.jsonl", '{"i": 20000, "s": 1}\n{"i": 2000, "s": 0}\n')
    text = runner.run("train", "gn.sheaf", "--data", "gn.jsonl", "--epochs", "1", "--batch", "2",
                      "--memory-limit", "8M", "--detect-anomaly", "-o", "gn", code=1)
    expect("1 steps skipped" in text and "in instance" in text and "out of memory" not in text,
           f"a step in parts that is skipped: {text}")

    # Gradients that are not finite change nothing.
    runner.write("n.sheaf", "param a : f32[3] = ones\n"
                 "fn loss(x: f32[3]) -> f32 = sum(log(a * x))\n")
    runner.write("n.jsonl", '{"x": [0, 1, 1]}\n')
    text = runner.run("train", "n.sheaf", "--data", "n.jsonl", "--epochs", "2", "-o", "n", code=1)
    expect(text.count("1 steps skipped") == 2, f"steps are skipped: {text}")
    expect(runner.tensors("n/last.safetensors")["a"] == [1, 1, 1], "a skipped step changes nothing")
    runner.write("v.sheaf", "param a : f32[3] = ones\nfn loss(x: f32[3]) -> f32[3] = a * x\n")
    text = runner.run("train", "v.sheaf", "--data", "n.jsonl", "-o", "m", code=1)
    expect("'loss' is no loss: its result must be f32 without axes" in text, text)


if __name__ == "__main__":
    main(optimisers, courses, details)
