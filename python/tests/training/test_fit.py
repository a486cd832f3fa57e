"""fit: the course of a training, its bits beside the command's, files, interrupts, what is refused."""
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

import numpy as np
import pytest

import sheaf as sf
from conftest import Leaf, TreeRNN, trees

ROOT = pathlib.Path(os.environ.get("SHEAF_BUILD", "build"))
COMMAND = os.path.abspath(os.environ.get("SHEAF", ROOT / "bin" / "sheaf"))


@pytest.fixture
def train():
    return trees(40, seed=4)


def as_json(tree):
    return {"Leaf": [tree.word]} if isinstance(tree, Leaf) else {"Node": [as_json(tree.left), as_json(tree.right)]}


@pytest.fixture
def files(tmp_path, fast, train, data):
    """The model, its weights and data for the command; gives a function that trains with it."""
    (tmp_path / "model.sheaf").write_text(fast.source())
    sf.safetensors.save_file({name: p.value for name, p in fast.module.named_parameters()},
                             tmp_path / "begin.safetensors")
    for name, (some, labels) in (("train", train), ("dev", data)):
        (tmp_path / f"{name}.jsonl").write_text("".join(
            json.dumps({"t": as_json(t), "label": label}) + "\n" for t, label in zip(some, labels)))

    def run(*options):
        done = subprocess.run([COMMAND, "train", *map(str, options)], cwd=tmp_path, capture_output=True, text=True,
                              timeout=100)
        assert done.returncode == 0, done.stderr
        return done
    return run


BEGIN = ["model.sheaf", "--data", "train.jsonl", "--dev", "dev.jsonl", "--metric", "accuracy", "--weights",
         "begin.safetensors", "--batch", 8, "--seed", 5, "--optimizer", "adamw", "--weight-decay", 0.01, "--lr", 0.02,
         "--clip", 1]


def fit(fast, train, dev, **options):
    opt = sf.optim.AdamW(fast, lr=0.02, clip=1.0)
    return fast.fit(train, dev=dev, metric="accuracy", optimizer=opt, batch=8, seed=5, **options)


def weights(path):
    return {name: np.array(value) for name, value in sf.safetensors.load_file(path).items()}


def same(module, expected):
    return all(np.array_equal(p.value, expected[name]) for name, p in module.named_parameters())


def test_the_bits_are_those_of_the_command(tmp_path, fast, module, train, data, files):
    files(*BEGIN, "--epochs", 3, "-o", "command")
    run, seen = fit(fast, train, data, epochs=3, directory=tmp_path / "python"), []
    assert len(run) == 15
    for step in run:
        seen.append(step)
        last = {name: np.array(p.value) for name, p in module.named_parameters()}
    assert [s.step for s in seen] == list(range(1, 16)) and seen[0].steps == 15
    assert [s.epoch for s in seen if s.ended] == [1, 2, 3] and run.epochs == [s.ended for s in seen if s.ended]
    assert all(s.lr == 0.02 and s.instances == 8 and not s.failed and s.error is None for s in seen)
    for name in ("last", "best"):
        theirs, ours = (weights(tmp_path / d / f"{name}.safetensors") for d in ("command", "python"))
        assert all(np.array_equal(theirs[n], ours[n]) for n in theirs)
    # When it has ended the model has the best weights.
    assert same(module, theirs) and {n: v.tobytes() for n, v in last.items()} == {
        n: v.tobytes() for n, v in weights(tmp_path / "command" / "last.safetensors").items()}
    log = [json.loads(line) for line in (tmp_path / "command" / "log.jsonl").read_text().splitlines()]
    for ours, theirs in zip(run.epochs, [e for e in log if e["event"] == "epoch"]):
        assert ours.loss == pytest.approx(theirs["train_loss"], rel=1e-6)
    assert run.best.measures["accuracy"] == max(e.measures["accuracy"] for e in run.epochs) == run.best.value
    assert run.best.measures["accuracy"] == np.mean(fast.accuracy(*data))
    assert run.best.measures["loss"] == pytest.approx(np.mean(fast.loss(*data)), rel=1e-6)
    assert list(run.best.measures) == ["loss", "accuracy"]


def test_goes_on_where_the_command_stopped_and_back(tmp_path, fast, module, train, data, files):
    files(*BEGIN, "--epochs", 3, "-o", "whole")
    files(*BEGIN, "--epochs", 1, "-o", "shared")
    steps = [s.step for s in fit(fast, train, data, epochs=2, directory=tmp_path / "shared", resume=True)]
    assert steps == list(range(6, 11))
    files("--resume", "shared", "--epochs", 3)
    one, other = (weights(tmp_path / d / "last.safetensors") for d in ("whole", "shared"))
    assert all(np.array_equal(one[name], other[name]) for name in one)
    files("model.sheaf", "--data", "train.jsonl", "--weights", "shared", "--epochs", 1, "-o", "again")


def test_training_lowers_the_loss_and_others_see_each_step(fast, module, train):
    before = np.mean(fast.loss(*train))
    run = fast.fit(fast.loss.encode(*train), optimizer=sf.optim.Adam(fast, lr=0.03), batch=16, epochs=8)
    for step in run:
        assert np.isfinite(np.mean(fast.loss(*train)))
        if step.step == 3:
            assert np.allclose(fast(train[0][:1])[0], module(train[0][0]), atol=1e-5)
    assert np.mean(fast.loss(*train)) < 0.7 * before and run.best in run.epochs
    assert not run.epochs[0].measures and not any(e.diverges or e.nothing_changed for e in run.epochs)


def test_patience_and_what_is_left_of_a_loop(fast, module, train, data):
    run = fast.fit(train, dev=data, optimizer=sf.optim.SGD(fast, lr=0.0), batch=20, epochs=50, patience=2)
    steps = list(run)
    assert len(steps) == 4 and len(run.epochs) == 2 and run.epochs[0].nothing_changed and run.best is None
    assert list(run) == []
    run = fast.fit(train, batch=20, optimizer=sf.optim.SGD(fast, lr=0.5))
    before = np.array(module.w.value)
    for step in run:
        break
    assert step.ended is None and not np.array_equal(module.w.value, before)


def test_failures_are_told(fast, train):
    labels = [9, *train[1][1:]]
    steps = list(fast.fit((train[0], labels), batch=40, epochs=1))
    assert steps[0].failed == 1 and steps[0].instances == 39 and "no such class" in steps[0].error
    assert steps[0].ended.failed == 1


def test_what_memory_does_not_hold_goes_in_parts(module):
    many = trees(400, seed=4)
    start = [(param, np.array(param.value)) for _, param in module.named_parameters()]

    def step(limit, parts=None):
        for param, value in start:
            param.value = value
        (step,) = sf.jit(module, memory_limit=limit).fit(many, batch=400, epochs=1, parts=parts)
        assert step.instances == 400 and not step.failed
        return step, np.array(module.w.value)

    assert step(0)[0].parts == 1
    limited, weights = step(500_000)
    assert limited.parts > 1 and not limited.halved
    assert np.array_equal(step(0, limited.parts)[1], weights)  # the limit changes no bit after that
    assert step(500_000, parts=1)[0].halved
    with pytest.raises(ValueError, match="parts is 0"):
        step(0, parts=0)
