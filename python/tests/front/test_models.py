"""The models of python/examples run compiled, and give what they give in eager Python."""
import pathlib
import sys

import numpy as np
import pytest

from conftest import agree

import sheaf as sf

pytest.importorskip("sheaf._native")
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))
from catalogue import EXAMPLES as examples  # noqa: E402


# A chain of a few, as each costs a compilation; tests/examples has all of them and their bits.
@pytest.mark.parametrize("name", ["treelstm", "sentiment", "earlyexit", "dagrnn", "encoder"])
def test_example(name):
    model, inputs = examples[name].load()
    inputs = inputs[:8]
    fast = sf.jit(model)
    got = fast(inputs, errors="return")
    for x, result in zip(inputs, got):
        assert agree(model(x), result, 1e-4)
    alone = [fast([x], errors="return")[0] for x in inputs[:2]]
    for a, b in zip(alone, got):
        assert agree(a, b, 0)


def test_methods():
    model, trees = examples["treelstm"].load()
    trees = trees[:6]
    fast = sf.jit(model)
    labels = [0, 1, 2, 3, 4, 0]
    losses = fast.loss(trees, labels)
    assert np.allclose(losses, [model.loss(t, i) for t, i in zip(trees, labels)], rtol=1e-5)
    assert list(fast.accuracy(trees, labels)) == [model.accuracy(t, i) for t, i in zip(trees, labels)]
    assert "fn encode(t: Tree)" in fast.source() and "fn main(t: Tree)" in fast.source()
    with pytest.raises(AttributeError, match="no compiled method 'missing'; there are forward, encode"):
        fast.missing


def test_weights_are_those_of_the_module():
    model, trees = examples["treelstm"].load()
    trees = trees[:3]
    fast = sf.jit(model)
    before = np.array(fast(trees))
    assert agree(model(trees[0]), before[0])  # eager code reads what compiled code reads
    model.out_w.value = model.out_w.value * 2
    after = np.array(fast(trees))
    assert not np.array_equal(before, after)
    for t, row in zip(trees, after):
        assert agree(model(t), row)
    assert np.allclose(fast.loss(trees, [0, 0, 0]), [model.loss(t, 0) for t in trees], rtol=1e-5)


def test_failures_name_the_line_in_python(module):
    found = module("""
def f(x: int) -> int:
    y = x * 2
    assert y < 10, "too large"
    return [1, 2][y]
""")
    fast = sf.jit(found.f)
    results = fast([0, 7, 2], errors="return")
    assert results[0] == 1
    first = results[1], results[2]
    source = open(found.__file__).read().split("\n")
    assert [source[e.line - 1].strip() for e in first] == ['assert y < 10, "too large"', "return [1, 2][y]"]
    assert all(e.file == found.__file__ for e in first) and "too large" in str(first[0])
    with pytest.raises(sf.InstanceErrors) as caught:
        fast([0, 7, 2])
    assert [e.instance for e in caught.value.exceptions] == [1, 2]
    assert caught.value.exceptions[0].line == first[0].line


def test_defaults_pickles_and_decorators(module):
    import pickle
    found = module("""
@sf.jit
def f(x: int, by: int = 3) -> int:
    return x * by
@sf.jit(threads=1)
def g(x: int) -> int:
    return f(x) + 1
class M(Module):
    def __init__(self):
        self.w = Param(3, init=ones)
    def forward(self, x: Float32["3"], scale: float = 2.0) -> Float32["3"]:
        return x * self.w * scale
    def describe(self, path: str) -> str:
        return path
""")
    assert list(found.f([1, 2])) == [3, 6] and list(found.f([1, 2], [1, 1])) == [1, 2]
    assert list(found.g([1, 2])) == [4, 7]
    assert pickle.loads(pickle.dumps(found.f)) is found.f
    fast = sf.jit(found.M())
    again = pickle.loads(pickle.dumps(fast))
    x = [np.float32([1, 2, 3])]
    assert np.array_equal(fast(x), again(x)) and fast(x)[0].tolist() == [2, 4, 6]
    with pytest.raises(TypeError, match="compiles a model, not a class"):
        sf.jit(found.M)
    with pytest.raises(TypeError, match=r"sf.jit\(model\), and then fast.forward"):
        sf.jit(found.M().forward)


def test_encoded_inputs_and_files(tmp_path):
    model, trees = examples["treelstm"].load()
    trees, labels = trees[:5], [0, 1, 2, 3, 4]
    fast = sf.jit(model)
    data = fast.encode(trees, labels)
    assert np.array_equal(fast.loss(data), fast.loss(trees, labels))
    assert np.array_equal(fast.loss(data[1:3]), fast.loss(trees, labels)[1:3])
    assert np.array_equal(fast(fast.encode(trees)), fast(trees))
    # A method of the model is called `encode` too.
    h, _ = fast.methods["encode"](trees)
    assert agree(model.encode(trees[0])[0], h[0])
    with pytest.raises(TypeError, match="no method of 3 arguments; there are forward of 1"):
        fast.encode(trees, labels, labels)
    fast.save(tmp_path / "tree.sheafc")
    saved = sf.load(tmp_path / "tree.sheafc")
    assert np.array_equal(saved(trees), fast(trees))


def test_a_call_of_its_own_is_not_left_out():
    class Doubling(sf.Module):
        def __call__(self, x):
            return 2.0 * super().__call__(x)

        def forward(self, x: sf.Float32["3"]) -> sf.Float32["3"]:
            return x + 1.0

    fast = sf.jit(Doubling())
    with pytest.raises(TypeError, match="'__call__' of its own"):
        fast([np.zeros(3, np.float32)])
    assert np.asarray(fast.forward([np.zeros(3, np.float32)])).tolist() == [[1.0, 1.0, 1.0]]
