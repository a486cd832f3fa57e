"""fit: the course of a training, its bits beside the command's, files, interrupts, what is refused."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import types

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
    halves = step(500_000, parts=1)[0]
    assert halves.halved and halves.ended.halved == 1 and limited.ended.halved == 0
    with pytest.raises(ValueError, match="parts is 0"):
        step(0, parts=0)


def test_a_loss_that_is_not_finite_is_named():
    fast = sf.jit(Labelled())
    xs, labels = np.zeros((12, 2, 3), np.float32), np.arange(24, dtype=np.int32).reshape(12, 2) % 3
    labels[7, 1] = 7
    steps = list(fast.fit((xs, labels), batch=4, epochs=2))
    told = [step.error for step in steps if step.error]
    assert sum(np.isnan(step.loss) for step in steps) == 2 and len(told) == 1  # it is looked for once
    assert told[0].startswith("input 7 of the data has the loss nan: a label or an index out of range")
    step = fast.train_step(sf.optim.SGD(fast, lr=0.1), "loss", xs[5:8], labels[5:8])
    assert np.isnan(step.loss) and step.error.startswith("input 2 has the loss nan") and not step.failed
    assert fast.train_step(sf.optim.SGD(fast, lr=0.1), "loss", xs[:3], labels[:3]).error is None


class Labelled(sf.Module):
    def __init__(self):
        self.w = sf.Param(3, 3)

    def loss(self, x: sf.Float32["2 3"], labels: sf.Int32["2"]) -> sf.Float32[""]:
        return sf.cross_entropy(x @ self.w, labels).mean()


def test_a_closed_training_gives_back_what_it_held(fast, module, train):
    with fast.fit(train, batch=20, optimizer=sf.optim.SGD(fast, lr=0.5)) as run:
        next(run)
        after = np.array(module.w.value)
    assert list(run) == [] and np.array_equal(module.w.value, after) and "0 of 10 epochs" in repr(run)
    run.close()
    for asks in (run.checkpoint, run.restore_best, lambda: run.save("w.safetensors"), run.__enter__):
        with pytest.raises(RuntimeError, match="the training is closed"):
            asks()


def test_weights_of_rate_zero_stay(fast, module, train):
    before = {name: np.array(p.value) for name, p in module.named_parameters()}
    opt = sf.optim.AdamW(fast, lr=0.1, updates={"emb*": {"rate": 0.0}})
    fast.train_step(opt, "loss", *train)
    for _ in fast.fit(train, optimizer=opt, epochs=1):
        pass
    assert np.array_equal(module.embedding.value, before["embedding"]) and not np.array_equal(module.w.value, before["w"])


def test_frozen_weights_stay_with_the_bits_of_the_command(tmp_path, fast, module, train, data, files):
    files(*BEGIN, "--epochs", 2, "-o", "command", "--freeze", "emb*", "--freeze", "out")
    before = {name: np.array(p.value) for name, p in module.named_parameters()}
    steps = list(fit(fast, train, data, epochs=2, directory=tmp_path / "python", freeze=["emb*", "out"]))
    theirs, ours = (weights(tmp_path / d / "last.safetensors") for d in ("command", "python"))
    assert all(np.array_equal(theirs[n], ours[n]) for n in theirs)
    assert {n for n in ours if not np.array_equal(ours[n], before[n])} == {"w"} and len(steps) == 10
    # They are frozen in these steps alone.
    for _ in fast.fit(train, epochs=1):
        pass
    assert {n for n, p in module.named_parameters() if not np.array_equal(p.value, ours[n])} == {"embedding", "w", "out"}


def test_norm_and_clip_count_no_frozen_weights(fast, module, train):
    _, grads = sf.value_and_grad(fast.loss, dense=True)(*train)
    begin, sgd = np.array(module.w.value), sf.optim.SGD(fast, lr=1.0, clip=1e-3)
    run = fast.fit(train, batch=40, epochs=1, optimizer=sgd, freeze=["embedding", "out"])
    (step,) = run
    assert step.norm == pytest.approx(np.linalg.norm(grads["w"]), rel=1e-5)
    assert step.norm < 0.9 * np.sqrt(sum(np.sum(np.square(g)) for g in grads.values()))
    assert np.linalg.norm(module.w.value - begin) == pytest.approx(1e-3, rel=1e-3)
    # What others ask for while it is under way has all gradients.
    run = fast.fit(train, batch=20, epochs=1, freeze=["embedding"])
    next(run)
    _, grads = sf.value_and_grad(fast.loss, dropout=True, dense=True)(*train)
    assert np.any(grads["embedding"]) and np.any(grads["w"])


def test_freeze_takes_names_of_the_module():
    model = Layered()
    fast, xs = sf.jit(model), np.ones((4, 3), np.float32)
    assert "layers.0.weight" in dict(model.named_parameters()) and "layers.0.weight" not in fast.state_dict()
    before = {name: np.array(p.value) for name, p in model.named_parameters()}
    for _ in fast.fit((xs,), epochs=1, freeze=["layers.0.*", "_W", "spare"]):
        pass
    assert {n for n, p in model.named_parameters() if not np.array_equal(p.value, before[n])} == {
        "layers.1.weight", "layers.1.bias"}
    # Those of optimisers go by them, too: the first that matches counts.
    before = {name: np.array(p.value) for name, p in model.named_parameters()}
    opt = sf.optim.SGD(fast, lr=0.1, updates={"layers.1.bias": {"rate": 1.0}, "layers.*": {"rate": 0.0}})
    fast.train_step(opt, "loss", xs)
    assert {n for n, p in model.named_parameters() if not np.array_equal(p.value, before[n])} == {"W", "layers.1.bias"}
    for names, words in ((["layer.0.weight"], r"freeze: no weight is called 'layer.0.weight'; did you mean 'layers.0.weight'"),
                         (["w", "zz*"], r"no weight is called 'w'; there are W, "), ("*", "leaves no weight"),
                         (["layers.?.weight"], "did you mean 'layers.")):
        with pytest.raises(ValueError, match=words):
            fast.fit((xs,), freeze=names)
    for names in (3, [3], None, {"W": 1}):
        with pytest.raises(TypeError, match="freeze is a list of names of weights"):
            fast.fit((xs,), freeze=names)


class Layered(sf.Module):
    def __init__(self):
        self.W = sf.Param(3, 3, init="identity")
        self.layers = [sf.nn.Linear(3, 3), sf.nn.Linear(3, 1)]
        self.spare = sf.Param(2)

    def loss(self, x: sf.Float32["3"]) -> sf.Float32[""]:
        return self.layers[1](self.layers[0](x @ self.W)).sum().square()

    def other(self, x: sf.Float32["2"]) -> sf.Float32["2"]:
        return x * self.spare


def test_an_interrupt_writes_a_checkpoint_and_goes_on(tmp_path, train, data):
    def made(directory, interrupts):
        fast = sf.jit(TreeRNN())
        many = [trees(3000, seed=4), data]
        run, seen = fit(fast, many[0], many[1], epochs=6, directory=directory), []
        if interrupts:
            def interrupt():
                while len(seen) < 20:
                    time.sleep(0.001)
                os.kill(os.getpid(), signal.SIGINT)
            other = threading.Thread(target=interrupt)
            other.start()
            with pytest.raises(KeyboardInterrupt):
                for step in run:
                    seen.append(step)
                while True:
                    time.sleep(0.01)
            other.join()
            assert 20 <= len(seen) < len(run)
            run.checkpoint()
            assert list(directory.glob("checkpoint-*.safetensors"))
        for _ in run:
            pass
        return fast.module
    plain, stopped = made(tmp_path / "plain", False), made(tmp_path / "stopped", True)
    assert same(stopped, {name: p.value for name, p in plain.named_parameters()})


def test_what_is_refused(tmp_path, fast, train, data):
    for options, error, words in (
            ({"dev": data, "metric": "accurracy"}, ValueError, r"the metric is a compiled method of TreeRNN .*not 'accurracy'"),
            ({"metric": "accuracy"}, ValueError, "over other data: dev"),
            ({"dev": data, "metric": "size"}, ValueError, "the metric 'size' has other arguments than the loss: t: Tree"),
            ({"dev": data, "metric": "accuracy:best"}, ValueError, "accuracy, precision, recall or f1"),
            ({"loss": "losses"}, ValueError, "the loss is a compiled method"), ({"loss": "accuracy"}, TypeError, "is no loss"),
            ({"batch": 0}, ValueError, "batch is 0"), ({"epochs": 1.5}, ValueError, "epochs is 1.5"),
            ({"schedule": "step"}, ValueError, "'constant', 'linear' or 'cosine'"),
            ({"average": 1.0}, ValueError, "less than 1"), ({"resume": True}, ValueError, "with a directory"),
            ({"patience": 0}, ValueError, "patience is 0"), ({"optimizer": "adam"}, TypeError, "sf.optim.AdamW"),
            ({"reduce": None}, ValueError, "'mean' or 'sum'"), ({"steps": 3}, TypeError, "steps")):
        with pytest.raises(error, match=words):
            fast.fit(train, **options)
    with pytest.raises(ValueError, match="no data"):
        fast.fit(([], []))
    with pytest.raises(TypeError, match="label"):
        fast.fit((train[0],))
    with pytest.raises(TypeError, match="the data is a Dataset, or a tuple"):
        fast.fit("train.txt")
    with pytest.raises(ValueError, match="the data has not the arguments of 'loss', which are t: Tree, label: int"):
        fast.fit(fast.vector.encode(train[0]))
    (tmp_path / "file").write_text("")
    with pytest.raises(Exception, match="file"):
        fast.fit(train, directory=tmp_path / "file")


def test_progress_by_what_is_installed(fast, train, data, monkeypatch, capsys):
    told = []

    class Bar:  # as tqdm is called
        def __init__(self, total, unit):
            self.total, self.n = total, 0

        def set_postfix(self, values, refresh):
            told.append(dict(values))

        def update(self, count):
            self.n += count

        def close(self):
            told.append((self.n, self.total))

    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    auto = types.ModuleType("tqdm.auto")
    auto.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm.auto", auto)
    options = {"dev": data, "metric": "accuracy", "epochs": 2, "batch": 8, "progress": True}
    with fast.fit(train, **options) as fit:
        steps = list(fit)
    assert told[-1] == (len(steps), len(steps)) and list(told[-2]) == ["epoch", "loss", "accuracy"]
    assert list(told[0]) == ["epoch", "loss"] and told[-2]["epoch"] == 2
    for name in "tqdm", "tqdm.auto", "rich", "rich.progress":
        monkeypatch.setitem(sys.modules, name, None)
    for step in fast.fit(train, **options):
        pass
    assert [line.split()[::2] for line in capsys.readouterr().err.splitlines()] == [["epoch", "loss", "accuracy"]] * 2


def test_progress_by_rich(fast, train, monkeypatch):
    progress = pytest.importorskip("rich.progress")
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    stopped = []
    monkeypatch.setattr(progress.Progress, "stop", lambda self: stopped.append(self.tasks[0].completed))
    list(fast.fit(train, epochs=1, batch=8, progress=True))
    assert stopped[0] == 5
