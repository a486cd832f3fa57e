#!/usr/bin/env python3
"""Trainings that were killed, damaged, changed or met each other: run_resuming.py SHEAF"""
import json
import os
import random
import shutil
import signal
import subprocess
import time

from trainings import MODELS, expect, main

TREES = os.path.join(MODELS, "data", "trees.txt")
DATA = "train.txt"


# Ends of names of what is measured, and another number each time.
TIMES = ("_ms", "seconds", "_second", "_mb", "gflops", "_of_peak")

def train(*more, epochs=6, accumulate=2):
    return ["train", "tree.sheaf", "--data", DATA, "--dim", "hidden=12", "--epochs", str(epochs),
            "--batch", "5", "--optimizer", "adam", "--lr", "0.01", "--ema", "0.9", "--accumulate",
            str(accumulate), "--log-every", "1", *more]


def write(runner):
    with open(os.path.join(MODELS, "treelstm.sheaf"), encoding="utf-8") as stream:
        runner.write("tree.sheaf", stream.read())
    with open(TREES, encoding="utf-8") as stream:
        runner.write(DATA, stream.read())


def kept(runner, directory):
    return sorted((f for f in os.listdir(runner.path(directory)) if f.startswith("checkpoint-")
                   and f.endswith(".safetensors")), key=lambda f: int(f[11:].split(".")[0]))


def lines(runner, directory):
    try:
        with open(runner.path(directory + "/log.jsonl"), "rb") as stream:
            return stream.read().count(b"\n")
    except FileNotFoundError:
        return 0


def untimed(runner, directory):
    return [{k: v for k, v in line.items() if not k.endswith(TIMES)}
            for line in runner.log(directory)]


def until_often(what, runner, least):
    """A fast machine may be done before it is disturbed: then by a longer training."""
    write(runner)
    for epochs in 6, 24, 96, 384:
        count = what(runner, epochs)
        print(f"{epochs} epochs, {what.__name__} {count} times")
        if count >= least:
            return
        for name in os.listdir(runner.directory):
            if os.path.isdir(runner.path(name)):
                shutil.rmtree(runner.path(name))
    expect(False, f"{what.__name__} only {count} times")


def killed(runner):
    """SIGKILL at random moments, again and again, until the training is done. The training is long
    enough for memoised records to be looked for no more, and then again."""
    until_often(kills_of, runner, 3)


def kills_of(runner, epochs):
    often = train("--checkpoint-every", "1", epochs=epochs)
    # The code is there from now on, so that all of a start's time is the training's.
    runner.run(*often, "-o", "first")
    begin = time.time()
    runner.run(*often, "-o", "whole")
    seconds = time.time() - begin
    want = runner.tensors("whole/last.safetensors")
    log = untimed(runner, "whole")
    moments = random.Random(7)
    kills = 0
    for attempt in range(60):
        begun = os.path.exists(runner.path("killed/config.json"))
        command = ["train", "--resume", "killed"] if begun else [*often, "-o", "killed"]
        process = subprocess.Popen([runner.sheaf, *command], cwd=runner.directory,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        # Some while they start, most within a few steps of where they went on.
        if attempt % 4 == 1:
            time.sleep(seconds * moments.uniform(0, 0.5))
        else:
            until = lines(runner, "killed") + moments.randint(1, max(1, len(log) // 8))
            while process.poll() is None and lines(runner, "killed") < until:
                time.sleep(0.0005)
            time.sleep(moments.uniform(0, 0.003))
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate()
        if process.returncode != -signal.SIGKILL:
            expect(process.returncode == 0, f"attempt {attempt} ends with {errors}")
            if process.returncode:
                return kills
            break
        kills += 1
    expect(runner.tensors("killed/last.safetensors") == want, f"the weights after {kills} kills")
    expect(untimed(runner, "killed") == log, f"the log after {kills} kills")
    leftovers = [f for f in os.listdir(runner.path("killed")) if ".tmp" in f]
    expect(not leftovers, f"left behind: {leftovers}")
    return kills


def damaged(runner):
    write(runner)
    runner.run(*train("--keep", "99", "--checkpoint-every", "1"), "-o", "base")
    want = runner.tensors("base/last.safetensors")
    names = kept(runner, "base")
    size = os.path.getsize(runner.path("base/" + names[-1]))

    def change(name, how):
        path = runner.path("copy/" + name)
        with open(path, "rb") as stream:
            data = bytearray(stream.read())
        how(data)
        with open(path, "wb") as stream:
            stream.write(data)

    def flip(at):
        def how(data):
            data[at] ^= 16
        return how

    for what, how in (("cut", lambda data: data.__delitem__(slice(size // 2, None))),
                      ("empty", lambda data: data.clear()),
                      ("a weight", flip(-5)),
                      ("the header", flip(40)),
                      ("its length", flip(3))):
        shutil.rmtree(runner.path("copy"), ignore_errors=True)
        shutil.copytree(runner.path("base"), runner.path("copy"))
        for name in names[10:]:
            os.remove(runner.path("copy/" + name))
        change(names[9], how)
        text = runner.run("train", "--resume", "copy")
        expect(f"note: copy/{names[9]}" in text and "going on from the checkpoint before" in text,
               f"{what}: {text}")
        expect(runner.tensors("copy/last.safetensors") == want, f"{what}: the weights")
    for name in kept(runner, "copy"):
        change(name, flip(-9))
    text = runner.run("train", "--resume", "copy", code=1)
    expect("copy has no whole checkpoint" in text, f"all damaged: {text}")
    # Checkpoints without options are another training's.
    os.remove(runner.path("base/config.json"))
    text = runner.run(*train(), "-o", "base", code=1)
    expect("base holds a training" in text, f"checkpoints alone: {text}")


def changed(runner):
    write(runner)
    runner.run(*train(), "-o", "run")
    text = runner.run("train", "--resume", "run")
    expect("changed" not in text, f"nothing has changed: {text}")
    with open(runner.path(DATA), "a", encoding="utf-8") as stream:
        stream.write("(2 yes)\n")
    text = runner.run("train", "--resume", "run")
    expect(f"note: {DATA} has changed since this training began" in text, f"data: {text}")
    with open(runner.path("tree.sheaf"), encoding="utf-8") as stream:
        model = stream.read()
    runner.write("tree.sheaf", model + "// more\n")
    text = runner.run("train", "--resume", "run")
    expect("note: tree.sheaf has changed since this training began" in text, f"model: {text}")
    runner.write("tree.sheaf", model.replace("f32[3*hidden] = zeros", "f32[1, 3*hidden] = zeros")
                 .replace("+ leaf_b", "+ leaf_b[0]"))
    text = runner.run("train", "--resume", "run", code=1)
    expect("'leaf_b' is F32[36], which is not what the model has" in text, f"shape: {text}")


def together(runner):
    write(runner)
    runner.run(*train(), "-o", "one")
    for name in kept(runner, "one"):
        os.remove(runner.path("one/" + name))
    # The one that comes second does not touch what the first one writes.
    first = subprocess.Popen([runner.sheaf, *train(epochs=2000), "-o", "both"],
                             cwd=runner.directory, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    while not os.path.exists(runner.path("both/log.jsonl")) and first.poll() is None:
        time.sleep(0.002)
    # Stopped, it holds what it holds, however fast it would have been done.
    first.send_signal(signal.SIGSTOP)
    expect(first.poll() is None, "the first is done before it was looked at")
    text = runner.run("train", "--resume", "both", code=1)
    expect("both: another training writes there" in text, text)
    first.kill()
    first.wait()
    # Temporary files of processes that are no more go; others stay.
    dead = subprocess.Popen(["true"])
    dead.wait()
    for name in (f"last.safetensors.tmp{dead.pid}-0", f"log.jsonl.tmp{os.getpid()}-1", "notes.tmp"):
        runner.write("one/" + name, "half")
    runner.run("train", "--resume", "one")
    left = sorted(f for f in os.listdir(runner.path("one")) if "tmp" in f)
    expect(left == [f"log.jsonl.tmp{os.getpid()}-1", "notes.tmp"], f"temporary files: {left}")
    text = runner.run(*train(epochs=2 ** 63 - 1), "-o", "long", code=2)
    expect("too many steps to count" in text, text)
    text = runner.run(*train(accumulate=2 ** 63 - 1), "-o", "long", code=2)
    expect("--batch times --accumulate is too large" in text, text)
    expect(not os.path.exists(runner.path("long")), "a mistake leaves no directory")


def interrupted(runner):
    """SIGINT and SIGTERM at random moments, while it measures as well: the step ends, a checkpoint
    is written, and nothing is different in the end."""
    until_often(stops_of, runner, 1)


def stops_of(runner, epochs):
    often = train("--dev", DATA, "--metric", "accuracy", "--patience", "999", epochs=epochs)
    runner.run(*often, "-o", "calm")
    want = runner.tensors("calm/last.safetensors")
    log = untimed(runner, "calm")
    moments = random.Random(5)
    stops = 0
    for attempt in range(60):
        begun = os.path.exists(runner.path("hasty/config.json"))
        command = ["train", "--resume", "hasty"] if begun else [*often, "-o", "hasty"]
        process = subprocess.Popen([runner.sheaf, *command], cwd=runner.directory,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        until = lines(runner, "hasty") + moments.randint(1, epochs)
        while process.poll() is None and lines(runner, "hasty") < until:
            time.sleep(0.0005)
        time.sleep(moments.uniform(0, 0.004))
        signal_ = signal.SIGINT if attempt % 2 else signal.SIGTERM
        process.send_signal(signal_)
        _, errors = process.communicate()
        if process.returncode == 0:
            break
        expect(process.returncode in (128 + signal_, -signal_), f"{process.returncode}: {errors}")
        if process.returncode > 0:
            name = "interrupted" if signal_ == signal.SIGINT else "SIGTERM"
            newest = "hasty/" + kept(runner, "hasty")[-1]
            steps = newest.split("-")[1].split(".")[0]
            expect(f"note: {name}: stopped after step {steps} of {4 * epochs}; {newest} holds it"
                   in errors, errors)
            stops += 1
    expect(runner.tensors("hasty/last.safetensors") == want, f"the weights after {stops} stops")
    expect(untimed(runner, "hasty") == log, f"the log after {stops} stops")
    return stops


def longer(runner):
    """A training goes on with more epochs and other numbers, and what is missing is made again."""
    write(runner)
    runner.run(*train(epochs=6), "-o", "six")
    runner.run(*train(epochs=3), "-o", "three")
    text = runner.run("train", "--resume", "three")
    expect("note: three: this training has ended, after 3 epochs of --epochs 3; more --epochs go on"
           in text, text)
    runner.run("train", "--resume", "three", "--epochs", "6", "--memory-limit", "2G")
    expect(runner.tensors("three/last.safetensors") == runner.tensors("six/last.safetensors"),
           "more epochs are as if there had been so many from the first")
    with open(runner.path("three/config.json"), encoding="utf-8") as stream:
        config = json.load(stream)
    expect(config["epochs"] == "6" and config["memory_limit"] == "2G", "what is written down")
    expect(config["history"] == ['after step 12: --memory-limit "2G" instead of "", '
                                 '--epochs "6" instead of "3"'], str(config["history"]))
    runner.run("train", "--resume", "three", "--epochs", "7", "--lr", "0", code=1)
    expect(runner.tensors("three/checkpoint-28.safetensors")["node_b"] ==
           runner.tensors("six/checkpoint-24.safetensors")["node_b"], "another rate")
    # What was begun when gradients were summed in another order says so from then on, and so does
    # what changes an option that there was not yet.
    del config["sums"], config["parts"], config["patience"]
    with open(runner.path("three/config.json"), "w", encoding="utf-8") as stream:
        json.dump(config, stream)
    runner.run("train", "--resume", "three", "--epochs", "8", "--lr", "0", "--patience", "30", code=1)
    config = runner.config("three")
    expect('--patience "30" instead of "0"' in config["history"][-1], str(config["history"]))
    expect("gradients summed in order 3 instead of 1" in config["history"][-1] and
           config["parts"] == "auto" and config["sums"] == 3, str(config["history"]))
    text = runner.run("train", "--resume", "three", "--accumulate", "3", code=2)
    expect("--accumulate is given with --resume" in text, text)
    # The best weights, while their checkpoint is there.
    best = runner.tensors("six/best.safetensors")
    os.remove(runner.path("six/best.safetensors"))
    os.remove(runner.path("six/last.safetensors"))
    text = runner.run("train", "--resume", "six")
    expect("six/best.safetensors was missing: made again of six/checkpoint-24.safetensors" in text,
           text)
    expect(runner.tensors("six/best.safetensors") == best, "the best weights")
    expect(os.path.exists(runner.path("six/last.safetensors")), "the last weights")
    # No checkpoint is kept.
    runner.run(*train(epochs=6), "--keep", "0", "-o", "none")
    expect(not kept(runner, "none"), "none is kept")
    expect(runner.tensors("none/last.safetensors") == runner.tensors("six/last.safetensors"), "keep")
    text = runner.run("train", "--resume", "none")
    expect("this training has ended and kept no checkpoint" in text, text)
    runner.run("train", "--resume", "none", "--epochs", "9", code=1)
    text = runner.run(*train(epochs=6), "-o", "none", code=1)
    expect("none holds the weights of a training" in text, text)
    # What came to nothing is in nobody's way.
    runner.run(*train(epochs=6), "--dev", DATA, "--metric", "node_b", "-o", "again", code=2)
    runner.run(*train(epochs=1), "-o", "again")


if __name__ == "__main__":
    main(killed, damaged, changed, together, interrupted, longer)
