"""What was saved to be trained: without a compiler, with the bits of the jitted model."""
import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import sheaf as sf
from conftest import Leaf, Node, TreeRNN, trees

COMMAND = os.path.abspath(os.environ.get("SHEAF", pathlib.Path(os.environ.get("SHEAF_BUILD", "build")) / "bin" / "sheaf"))
CLASSES = {"Leaf": Leaf, "Node": Node}


def arrays(model):
    return {name: np.array(value) for name, value in model.parameters.items()}


def equal(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def load(path):
    return sf.load(path, classes=CLASSES)


@pytest.fixture
def saved(tmp_path, fast):
    fast.save(tmp_path / "train.sheafc", train=True)
    fast.accuracy.save(tmp_path / "accuracy.sheafc")
    fast.loss.save(tmp_path / "loss.sheafc")
    fast.save(tmp_path / "main.sheafc")
    return tmp_path


def test_trains_with_the_bits_of_the_jitted_model(saved, fast, module, data):
    train = trees(40, seed=4)
    options = {"batch": 8, "epochs": 3, "seed": 2, "schedule": "linear"}
    model, accuracy, loss = (load(saved / f"{name}.sheafc") for name in ("train", "accuracy", "loss"))
    ours = model.fit(train, dev=data, metric=[accuracy, loss], optimizer=sf.optim.AdamW(model, lr=0.02, clip=1.0), **options)
    theirs = fast.fit(train, dev=data, metric="accuracy", optimizer=sf.optim.AdamW(fast, lr=0.02, clip=1.0), **options)
    for one, other in zip(ours, theirs, strict=True):
        assert (one.step, one.loss, one.norm, one.lr) == (other.step, other.loss, other.norm, other.lr)
    assert [e.measures for e in ours.epochs] == [e.measures for e in theirs.epochs] and ours.best.epoch == theirs.best.epoch
    assert equal(arrays(model), {name: np.array(p.value) for name, p in module.named_parameters()})
    # What others compute with them.
    main = load(saved / "main.sheafc")
    before = main(data[0])
    main.load_state_dict(model.parameters)
    assert np.array_equal(main(data[0]), fast(data[0])) and not np.array_equal(main(data[0]), before)


def test_steps_gradients_and_directories(saved, tmp_path, fast, module, data):
    model = load(saved / "train.sheafc")
    for one in (model, fast):
        opt = sf.optim.SGD(one, lr=0.5, momentum=0.9)
        for _ in range(3):
            step = one.train_step(opt, *data) if one is model else fast.train_step(opt, "loss", *data)
    assert step.step == 3 and equal(arrays(model), {n: np.array(p.value) for n, p in module.named_parameters()})
    (loss, grads), (expected, others) = sf.value_and_grad(model)(*data), sf.value_and_grad(fast.loss)(*data)
    assert loss == expected and np.array_equal(grads["w"], others["w"])
    with model.fit(model.encode(*data), epochs=2, batch=12, directory=tmp_path / "run", freeze="emb*") as run:
        assert len(list(run)) == 4 and run.best
    kept = dict(sf.safetensors.load_file(tmp_path / "run" / "best.safetensors"))
    assert equal(arrays(model), kept) and np.array_equal(kept["embedding"], module.embedding.value)
    assert len(list(model.fit(data, epochs=3, batch=12, directory=tmp_path / "run", resume=True))) == 2
    # Copies, pickles and the child of a fork have what it has come to.
    for copied in (pickle.loads(pickle.dumps(model)), __import__("copy").deepcopy(model)):
        assert equal(arrays(copied), arrays(model)) and not equal(arrays(copied), kept)
        copied.train_step(sf.optim.SGD(copied, lr=0.5), *data)
        assert not equal(arrays(copied), arrays(model))
    child = os.fork()
    if not child:
        os._exit(not np.array_equal(model(*data), fresh_losses(model, data)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with pytest.raises(RuntimeError, match="the weights have changed"):
        model.save(tmp_path / "again.sheafc")


def fresh_losses(model, data):
    fresh = pickle.loads(pickle.dumps(model))
    return fresh(*data)


def test_what_the_command_built_trains(saved, tmp_path, fast, data):
    (tmp_path / "m.sheaf").write_text(fast.source())
    sf.safetensors.save_file(fast.state_dict(), tmp_path / "w.safetensors")
    subprocess.run([COMMAND, "build", "m.sheaf", "--train", "--weights", "w.safetensors", "-o", "built.sheafc"], check=True,
                   cwd=tmp_path, timeout=100)
    losses = []
    for name in ("built", "train"):
        model = load(tmp_path / f"{name}.sheafc")
        losses.append([step.loss for step in model.fit(data, epochs=2, batch=8)])
    assert losses[0] == losses[1]


def test_needs_no_compiler(saved, data):
    program = f"""
import sheaf as sf, sheaf.model
def none(): raise AssertionError("the compiler is asked for")
sheaf.model._open_compiler = none
model = sf.load({str(saved / "train.sheafc")!r})
Leaf, Node = model.types.Leaf, model.types.Node
first, last = [step.loss for step in model.fit(([Leaf(1), Node(Leaf(2), Leaf(3))], [0, 2]), epochs=30,
                                               optimizer=sf.optim.Adam(model, lr=0.05))][::29]
assert last < first / 2, (first, last)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_files_have_the_weights_that_the_module_has(tmp_path, fast, module, data):
    fast(data[0])
    fast.train_step(sf.optim.SGD(fast, lr=0.5), "loss", *data)
    fast.save(tmp_path / "m.sheafc")
    fast.save(tmp_path / "t.sheafc", train=True)
    assert np.array_equal(load(tmp_path / "m.sheafc")(data[0]), fast(data[0]))
    assert equal(arrays(load(tmp_path / "t.sheafc")), {n: np.array(p.value) for n, p in module.named_parameters()})


def test_functions_and_other_methods(tmp_path, fast, data):
    fast.dropped.save(tmp_path / "d.sheafc", train=True)
    assert len(list(load(tmp_path / "d.sheafc").fit(data, epochs=1, batch=12))) == 2


def test_what_is_refused(saved, tmp_path, fast, data):
    model, accuracy = load(saved / "train.sheafc"), load(saved / "accuracy.sheafc")
    with pytest.raises(TypeError, match="'vector' gives f32.6., and is no loss"):
        fast.vector.save(tmp_path / "v.sheafc", train=True)
    with pytest.raises(TypeError, match="has no method 'loss': fast.method.save"):
        sf.jit(NoLoss()).save(tmp_path / "n.sheafc", train=True)
    assert not (tmp_path / "v.sheafc").exists() and not (tmp_path / "n.sheafc").exists()
    for options, error, words in (
            ({"loss": "accuracy"}, ValueError, "the loss is 'loss', what the model was compiled for"),
            ({"dev": data}, ValueError, "metric=sf.load"), ({"metric": accuracy}, ValueError, "over other data: dev"),
            ({"dev": data, "metric": "accuracy"}, TypeError, "the metric of a loaded model is another one"),
            ({"dev": data, "metric": model}, ValueError, "saved without train"),
            ({"dev": data, "metric": load(saved / "main.sheafc")}, ValueError, "has other arguments than the loss: t: Tree"),
            ({"optimizer": sf.optim.Adam(fast)}, ValueError, "of another model"),
            ({"freeze": ["embeding"]}, ValueError, "did you mean 'embedding'")):
        with pytest.raises(error, match=words):
            model.fit(data, **options)
    with pytest.raises(TypeError, match="'accuracy' was compiled without what goes back: fast.save"):
        accuracy.fit(data)
    with pytest.raises(TypeError, match="compiled without what goes back"):
        accuracy.train_step(sf.optim.SGD(accuracy), *data)
    state = dict(arrays(model))
    for wrong, words in (({**state, "v": state["w"]}, "not of this model: v"), ({"w": state["w"]}, "missing: embedding, out"),
                         ({**state, "w": state["w"][:3]}, r"'w' has the shape \(3, 6\), and the model's has \(12, 6\)")):
        with pytest.raises(ValueError, match=words):
            model.load_state_dict(wrong)
    assert equal(arrays(model), state)


class NoLoss(sf.Module):
    def __init__(self):
        self.w = sf.Param(2)

    def forward(self, x: sf.Float32["2"]) -> sf.Float32["2"]:
        return x * self.w
