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
