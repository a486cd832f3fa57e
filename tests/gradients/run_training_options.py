#!/usr/bin/env python3
"""Accumulated gradients, averaged weights, scaled losses, anomalies, weighted losses, event files:
run_training_options.py SHEAF"""
import glob
import math
import os
import random
import struct

from trainings import expect, main

LINEAR = """
param w : f32[3] = uniform(0.5, 1.5)
param table : f32[4, 3] = uniform(0.5, 1.5)
fn loss(x: f32[3], i: int, weight: f32) -> f32 = weight * (sum(square(w) * x) + sum(square(table[i]) * x))
"""


def close(a, b, tolerance=1e-5):
    return all(len(a[k]) == len(b[k]) and
               all(abs(p - q) <= tolerance * max(1, abs(q)) for p, q in zip(a[k], b[k])) for k in b)


def write_linear(runner):
    """24 instances; of the table every row is read, some in one mini-batch only."""
    source = random.Random(5)
    runner.write("l.sheaf", LINEAR)
    data = [([source.uniform(-1, 1) for _ in range(3)], source.randrange(4), source.choice([0, 1, 2.5]))
            for _ in range(24)]
    runner.write("l.jsonl", "".join(f'{{"x": {x}, "i": {i}, "weight": {weight}}}\n'
                                    for x, i, weight in data))
    runner.run("init", "l.sheaf", "--entry", "loss", "--seed", "3", "-o", "l.safetensors")
    return data


def accumulate(runner):
    data = write_linear(runner)
    train = ["train", "l.sheaf", "--data", "l.jsonl", "--seed", "3", "--epochs", "3", "--log-every",
             "1", "--clip", "0.5"]
    for optimizer in ("sgd", "adam"):
        for reduction in ("mean", "sum"):
            common = [*train, "--optimizer", optimizer, "--lr", "0.02", "--reduction", reduction]
            name = optimizer + reduction
            runner.run(*common, "--batch", "12", "-o", "whole" + name)
            for batch, times in ((4, 3), (3, 4), (1, 12), (5, 3)):
                if batch * times != 12:  # the last of an epoch is smaller
                    continue
                parts = f"parts{name}{batch}"
                runner.run(*common, "--batch", str(batch), "--accumulate", str(times), "-o", parts)
                whole, some = runner.log("whole" + name), runner.log(parts)
                expect(len(whole) == len(some), f"{parts}: as many steps")
                expect(all(abs(a["loss"] - b["loss"]) < 1e-5 and abs(a["norm"] - b["norm"]) < 1e-4
                           for a, b in zip(whole, some) if "norm" in a), f"{parts}: losses, norms")
                expect(close(runner.tensors(parts + "/last.safetensors"),
                             runner.tensors(f"whole{name}/last.safetensors")), f"{parts}: weights")
    # Not all mini-batches of an epoch's last step are there, nor all instances of the last.
    runner.run(*train, "--batch", "5", "--accumulate", "2", "-o", "odd")
    runner.run(*train, "--batch", "10", "-o", "even")
    expect(close(runner.tensors("odd/last.safetensors"), runner.tensors("even/last.safetensors")),
           "24 instances by 2 mini-batches of 5")

    # The weights that a seed draws, read from a file; the seed orders the instances.
    runner.run(*train, "--batch", "10", "--weights", "l.safetensors", "-o", "read")
    expect(runner.tensors("read/last.safetensors") == runner.tensors("even/last.safetensors"),
           "--weights and --seed")

    # Weights of instances are a factor of the loss: one step by hand.
    for reduction in ("mean", "sum"):
        name = "weighted" + reduction
        runner.run("train", "l.sheaf", "--data", "l.jsonl", "--seed", "3", "--epochs", "1", "--batch",
                   "24", "--optimizer", "sgd", "--lr", "0.1", "--reduction", reduction, "-o", name)
        start = runner.tensors("l.safetensors")
        share = 1 / len(data) if reduction == "mean" else 1
        w, table = start["w"][:], start["table"][:]
        for x, row, weight in data:
            for j in range(3):
                w[j] -= 0.1 * share * weight * 2 * start["w"][j] * x[j]
                table[3 * row + j] -= 0.1 * share * weight * 2 * start["table"][3 * row + j] * x[j]
        expect(close(runner.tensors(name + "/last.safetensors"), {"w": w, "table": table}), name)


LOW_RANK = """
param w : f32[6, 4] = glorot
param a : f32[6, 2] = glorot
param b : f32[2, 4] = glorot
param table : f32[5, 6] = normal(0.7)
fn loss(xs: list<int>, y: f32) -> f32 =
  square(sum(fold(|s, i| tanh((table * 1.5)[i] @ (w + a @ b) + s), zeros(4), xs)) - y)
"""


def weights_of_weights(runner):
    """What follows from weights is computed anew for every mini-batch, and no one's to keep."""
    source = random.Random(6)
    runner.write("d.sheaf", LOW_RANK)
    runner.write("d.jsonl", "".join(
        f'{{"xs": {[source.randrange(5) for _ in range(source.randrange(4))]}, '
        f'"y": {source.uniform(-1, 1)}}}\n' for _ in range(24)))
    common = ["train", "d.sheaf", "--data", "d.jsonl", "--dev", "d.jsonl", "--seed", "3", "--epochs",
              "3", "--log-every", "1", "--lr", "0.05"]
    plain = [*common, "--batch", "12"]

    def last(name, *options, of=plain):
        runner.run(*of, *options, "-o", name)
        return runner.tensors(name + "/last.safetensors")

    for optimizer in ("sgd", "adam", "lamb"):
        more = ["--optimizer", optimizer, "--clip", "0.5"]
        mine = last("d" + optimizer, *more)
        expect(set(mine) == {"w", "a", "b", "table"}, f"what is saved: {sorted(mine)}")
        expect(close(mine, last("e" + optimizer, *more, "--without", "fold-weights"), 1e-4),
               f"{optimizer}: weights as when each instance computes it")
        norms = [[line["norm"] for line in runner.log(name + optimizer) if "norm" in line]
                 for name in "de"]
        expect(len(norms[0]) == 6 and all(abs(p - q) < 1e-4 for p, q in zip(*norms)),
               f"{optimizer}: norms count params alone")
    mine = last("d1")
    expect(mine == last("d2", "--threads", "2"), "the same bits on two threads")
    expect(mine == last("d3", "--memory-limit", "1G"), "the same bits with a limit")
    expect(close(mine, last("d4", "--batch", "4", "--accumulate", "3", of=common)),
           "sums of several mini-batches")
    last("d5", "--ema", "0.9", "--checkpoint-every", "1", "--keep", "99")
    whole = runner.tensors("d5/last.safetensors")
    for step in (4, 5, 6):
        os.remove(runner.path(f"d5/checkpoint-{step}.safetensors"))
    runner.run("train", "--resume", "d5")
    expect(runner.tensors("d5/last.safetensors") == whole, "it is resumed with the same bits")
    text = runner.run("eval", "d.sheaf", "--metric", "loss", "--data", "d.jsonl", "--weights",
                      "d5/last.safetensors")
    epochs = [line for line in runner.log("d5") if "dev_loss" in line]
    expect(abs(float(text.split()[1]) - epochs[-1]["dev_loss"]) < 1e-5, "and what is measured")
    runner.run("init", "d.sheaf", "--entry", "loss", "--seed", "3", "-o", "d.safetensors")
    first = runner.tensors("d.safetensors")
    for frozen in (["w"], ["w", "a", "b"], ["table"]):
        options = [part for name in frozen for part in ("--freeze", name)]
        some = last("f" + "".join(frozen), *options)
        expect(all((some[name] == first[name]) == (name in frozen) for name in first),
               f"frozen: {frozen}")
        expect(close(some, last("g" + "".join(frozen), *options, "--without", "fold-weights"), 1e-4),
               f"others than {frozen} move as they did")


def average(runner):
    write_linear(runner)
    train = ["train", "l.sheaf", "--data", "l.jsonl", "--seed", "3", "--epochs", "6", "--batch", "8",
             "--optimizer", "adam", "--lr", "0.05", "--checkpoint-every", "1", "--keep", "99"]
    decay = 0.6
    runner.run(*train, "-o", "plain")
    text = runner.run(*train, "--dev", "l.jsonl", "--ema", str(decay), "-o", "mean")
    # The weights themselves are those of a training without average.
    mean = None
    for step in range(1, 19):
        weights = runner.tensors(f"plain/checkpoint-{step}.safetensors")
        same = runner.tensors(f"mean/checkpoint-{step}.safetensors")
        expect(all(weights[name] == same[name] for name in weights), f"weights of step {step}")
        keep = min(decay, step / (step + 9)) if step > 1 else 0
        mean = {name: [keep * m + (1 - keep) * w
                       for m, w in zip(mean[name] if mean else weights[name], weights[name])]
                for name in ("w", "table")}
        expect(close({name: same["average of " + name] for name in mean}, mean),
               f"average of step {step}")
    last = runner.tensors("mean/last.safetensors")
    expect(close(last, mean) and set(last) == set(mean), "the average is what is saved")
    text = runner.run("eval", "l.sheaf", "--metric", "loss", "--data", "l.jsonl", "--weights",
                      "mean/last.safetensors")
    epochs = [line for line in runner.log("mean") if "dev_loss" in line]
    expect(abs(float(text.split()[1]) - epochs[-1]["dev_loss"]) < 1e-5, "and what is measured")
    for step in range(8, 19):
        os.remove(runner.path(f"mean/checkpoint-{step}.safetensors"))
    runner.run("train", "--resume", "mean")
    expect(runner.tensors("mean/last.safetensors") == last, "it is resumed with the same bits")
    text = runner.run(*train, "--ema", "1", "-o", "wrong", code=2)
    expect("--ema takes a number from 0 to less than 1" in text, text)


def loss_scale(runner):
    write_linear(runner)
    train = ["train", "l.sheaf", "--data", "l.jsonl", "--seed", "3", "--epochs", "2", "--batch", "8",
             "--optimizer", "momentum", "--lr", "0.02"]
    runner.run(*train, "-o", "unscaled")
    runner.run(*train, "--loss-scale", "1024", "-o", "scaled")
    expect(runner.tensors("unscaled/last.safetensors") == runner.tensors("scaled/last.safetensors"),
           "a power of two as loss scale changes no bits in f32")
    runner.run(*train, "--loss-scale", "dynamic", "-o", "dynamic")
    expect(runner.tensors("unscaled/last.safetensors") == runner.tensors("dynamic/last.safetensors"),
           "nor does a dynamic one")
    # In f16 the gradient of a tiny factor vanishes unless it is scaled; one that is too large
    # skips steps until it fits.
    runner.write("h.sheaf", """
param w : f32[4] = ones
fn loss(x: f32[4]) -> f32 = sum(f32(f16(w) * f16(x)) * 0.00000002)
""")
    runner.write("h.jsonl", '{"x": [1, 2, 3, 4]}\n')
    train = ["train", "h.sheaf", "--data", "h.jsonl", "--optimizer", "sgd", "--lr", "1000000",
             "--epochs", "1", "--log-every", "1"]
    runner.run(*train, "--loss-scale", "1", "-o", "h1", code=1)
    expect(runner.tensors("h1/last.safetensors")["w"] == [1, 1, 1, 1], "2e-8 is 0 in f16")
    runner.run(*train, "-o", "h2")
    moved = runner.tensors("h2/last.safetensors")["w"]
    expect(all(abs(w - (1 - 0.02 * x)) < 1e-4 for w, x in zip(moved, (1, 2, 3, 4))),
           f"scaled it is there, and a model in f16 is scaled unasked: {moved}")
    expect(runner.log("h2")[0]["loss_scale"] == 65536, "the scale is in the log")
    runner.write("o.sheaf", "param w : f32[4] = ones\n"
                 "fn loss(x: f32[4]) -> f32 = sum(f32(f16(w) * f16(x)) * 10)\n")
    runner.run("train", "o.sheaf", "--data", "h.jsonl", "--optimizer", "sgd", "--lr", "0.01",
               "--epochs", "10", "--log-every", "1", "--checkpoint-every", "1", "-o", "o")
    steps = [line for line in runner.log("o") if "loss_scale" in line]
    skipped = [line for line in steps if line.get("skipped")]
    # 10 times the scale must be less than 65520.
    expect(len(skipped) == 4 and steps[-1]["loss_scale"] == 4096,
           f"the scale is halved until gradients fit: {[s['loss_scale'] for s in steps]}")
    moved = runner.tensors("o/last.safetensors")["w"]
    times = 10 - len(skipped)
    expect(all(abs(w - (1 - 0.1 * x * times)) < 1e-2 for w, x in zip(moved, (1, 2, 3, 4))),
           f"and those that fit are taken: {moved}")
    for wrong in ("0", "-1", "inf", "nan", "x", ""):
        text = runner.run(*train, "--loss-scale", wrong, "-o", "wrong", code=2)
        expect("--loss-scale takes a positive number, dynamic or auto" in text, text)


def anomalies(runner):
    runner.write("n.sheaf", """param a : f32[3] = ones
param b : f32[3] = ones
fn double(x: f32[3]) -> f32[3] = 2 * x
fn loss(x: f32[3]) -> f32 = {
  let y = double(x)
  let z = if read(sum(x)) > 100 { sqrt(a * y - 600) } else {
    if read(sum(x)) < 0 { log(a * y) } else { a * y }
  }
  sum(z) + sum(b)
}
""")
    runner.write("forward.jsonl", '{"x": [1, 1, 1]}\n{"x": [2, 1, 1]}\n{"x": [-3, 0, 1]}\n{"x": [3, 1, 1]}\n')
    runner.write("back.jsonl", '{"x": [1, 1, 1]}\n{"x": [300, 300, 300]}\n')
    common = ["train", "n.sheaf", "--epochs", "1", "--batch", "4", "--data"]
    text = runner.run(*common, "forward.jsonl", "--detect-anomaly", "-o", "n1", code=1)
    expect("step 1: the gradient of 'a' is not finite: in instance 2, the block" in text and
           "n.sheaf:7) makes " in text and "1 steps skipped" in text, f"forward: {text}")
    text = runner.run(*common, "back.jsonl", "--detect-anomaly", "-o", "n2", code=1)
    expect("step 1: the gradient of 'a' is not finite: in instance 1, in the backward pass the block" in text
           and "n.sheaf:6) makes infinity" in text, f"back: {text}")
    text = runner.run(*common, "back.jsonl", "--detect-anomaly", "--hostile", "-o", "n2h", code=1)
    expect("n.sheaf:6) makes infinity" in text, f"back, with rows poisoned behind use: {text}")
    text = runner.run(*common, "back.jsonl", "-o", "n3", code=1)
    expect("instance" not in text.split("instances/s")[0] and "1 steps skipped" in text,
           f"only when asked for: {text}")
    runner.write("sum.sheaf", "param a : f32 = ones\nfn loss(x: f32) -> f32 = a * x\n")
    runner.write("sum.jsonl", '{"x": 3e38}\n{"x": 3e38}\n')
    text = runner.run("train", "sum.sheaf", "--epochs", "1", "--data", "sum.jsonl", "--detect-anomaly",
                      "-o", "n4", code=1)
    expect("but that of each instance is: their sum overflows" in text, f"sum: {text}")


# ---------------------------------------------------------------- event files

def crc32c(data):
    """Bit by bit, by the definition."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of a protocol buffer."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(wire)
            if size is None:
                size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        yield number, value


def read_events(path):
    with open(path, "rb") as stream:
        data = stream.read()
    at = 0
    while at < len(data):
        length, of_length = struct.unpack_from("<QI", data, at)
        event = data[at + 12:at + 12 + length]
        of_event, = struct.unpack_from("<I", data, at + 12 + length)
        for part, crc in ((data[at:at + 8], of_length), (event, of_event)):
            raw = crc32c(part)
            expect((((raw >> 15) | (raw << 17)) + 0xA282EAD8) & 0xFFFFFFFF == crc, f"{path}: checksum")
        yield dict(fields(event))
        at += 16 + length


def tensorboard(runner):
    write_linear(runner)
    runner.run("train", "l.sheaf", "--data", "l.jsonl", "--dev", "l.jsonl", "--epochs", "2", "--batch",
               "8", "--log-every", "1", "--tensorboard", "--keep", "9", "--checkpoint-every", "1",
               "-o", "board")
    files = glob.glob(runner.path("board/events.out.tfevents.*"))
    expect(len(files) == 1, "an event file")
    first, start, *events = list(read_events(files[0]))
    expect(first[3] == b"brain.Event:2" and start[2] == 1, "its beginning")
    told = {}
    for event in events:
        for number, value in fields(event[5]):
            entry = dict(fields(value))
            told[(event[2], entry[1].decode())] = struct.unpack("<f", entry[2])[0]
    lines = runner.log("board")
    expect(len(events) == len(lines), "as many events as lines")
    for line in lines:
        for name, value in line.items():
            if name not in ("report", "version", "event", "step"):
                have = told.pop((line["step"], f"{line['event']}/{name}"), math.nan)
                expect(abs(have - value) <= 1e-6 * max(1, abs(value)), f"event {name}: {have} {value}")
    expect(not told, f"no other events: {told}")
    for step in (5, 6):
        os.remove(runner.path(f"board/checkpoint-{step}.safetensors"))
    os.rename(files[0], runner.path("board/events.out.tfevents.0.0.sheaf"))
    runner.run("train", "--resume", "board")
    again, = glob.glob(runner.path("board/events.out.tfevents.[1-9]*"))
    _, start, *events = list(read_events(again))
    expect(start[2] == 5 and start[7] == b"\x08\x01", "what is made again is void")
    expect([event[2] for event in events] == [5, 6, 6], "and is made again")


if __name__ == "__main__":
    main(accumulate, weights_of_weights, average, loss_scale, anomalies, tensorboard)
