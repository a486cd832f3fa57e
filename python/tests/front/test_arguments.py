"""Errors about arguments and positions say what was written; values that may be None go in and out."""
from dataclasses import dataclass

import numpy as np
import pytest

import sheaf as sf
from sheaf import *
from sheaf import jit

pytest.importorskip("sheaf._native")


class Shift(Module):
    def __init__(self):
        self.t = Param(3)

    def forward(self, t: Float32["3"]) -> Float32["3"]:
        return self.t + t

    def loss(self, x: Float32["3"], t: Float32["3"]) -> Float32[""]:
        return sum(square(self.t + x - t))


def third(xs: list[int]) -> int:
    return xs[-3]


def cell(x: Float32["n m"], i: int) -> Float32[""]:
    return x[1, i]


def row(x: Float32["n m"], i: int) -> Float32["m"]:
    return element(x, i)


def ints(let: int, n: int = 3) -> int:
    return let + n


BAD = np.ones(4, np.float32)
GOOD = np.ones(3, np.float32)


@pytest.mark.parametrize("call, kind, message", [
    (lambda f: f([BAD]), ValueError, r"^t\[0\]: an array of shape \[4\]"),
    (lambda f: f([GOOD], [1]), TypeError, r"^'forward' takes 1 list \(t\), and 2 are given"),
    (lambda f: f(), TypeError, r"^'forward' takes 1 list \(t\), and 0 are given"),
    (lambda f: f(t=[GOOD]), TypeError, r"'forward' takes its lists by their places, as in forward\(t\), and 't'"),
    (lambda f: f.loss([GOOD]), TypeError, r"^'loss' takes 2 lists \(x, t\), and 1 is given"),
    (lambda f: f.loss([GOOD], t=[GOOD]), TypeError, r"as in loss\(x, t\), and 't'"),
    (lambda f: f.loss([GOOD], [GOOD, GOOD]), ValueError, r"^t has 2 values, and x has 1"),
    (lambda f: f.loss.encode([GOOD], [BAD]), ValueError, r"^t\[0\]: "),
    (lambda f: sf.value_and_grad(f.loss)([GOOD], [BAD]), ValueError, r"^t\[0\]: "),
    (lambda f: sf.value_and_grad(f.loss)([GOOD]), TypeError, r"^'loss' takes 2 lists"),
    (lambda f: jit(ints)([1], [2], [3]), TypeError, r"^'ints' takes 2 lists \(let, n\), and 3 are given"),
    (lambda f: jit(ints)(["a"]), TypeError, r"^let\[0\]: "),
    (lambda f: jit(ints)(n=[1]), TypeError, r"as in ints\(let, n\), and 'n'"),
])
def test_arguments(call, kind, message):
    with pytest.raises(kind, match=message):
        call(jit(Shift()))


@pytest.mark.parametrize("function, arguments, index", [
    (third, ([1, 2],), -3), (cell, (np.ones((2, 2), np.float32), -4), -4),
    (cell, (np.ones((2, 2), np.float32), 2), 2), (row, (np.ones((2, 2), np.float32), -1), -1),
])
def test_positions(function, arguments, index):
    error, = jit(function)(*[[x] for x in arguments], errors="return")
    assert f"index {index} is out of range" in str(error)


def test_slices_of_eager_code():
    with pytest.raises(IndexError, match=r"the slice \[-4:\] is out of range for axis 0 of f32\[3\]"):
        sf.tensor(GOOD)[-4:]


@pytest.mark.parametrize("make, says", [
    (lambda: nn.GRU(3, 4, batch_first=True), "GRU has no argument 'batch_first' .*one sequence"),
    (lambda: nn.LSTM(3, 4, dropout=0.1), "dropout\\(x, p\\)"),
    (lambda: nn.Linear(3, 4, device="cuda"), "Linear has no argument 'device'"),
])
def test_arguments_of_torch(make, says):
    with pytest.raises(TypeError, match=says):
        make()


@dataclass(slots=True)
class Chain:
    value: int
    rest: "Chain | None" = None


@dataclass
class Bag:
    numbers: list[int | None]
    pair: tuple[int, Chain | None]
    vector: "Float32['?'] | None" = None


class Raises(Chain):
    def __getattribute__(self, name):
        if name == "rest":
            raise KeyError("boom")
        return object.__getattribute__(self, name)


@sf.jit
def rest(chain: Chain | None) -> Chain | None:
    return None if chain is None else chain.rest


@sf.jit
def bag(b: Bag) -> tuple[list[int | None], Chain | None]:
    return b.numbers, b.pair[1]


@sf.jit
def total(b: Bag) -> Float32[""]:
    return zeros() if b.vector is None else sum(square(b.vector))


def endless():
    chain = Chain(1)
    chain.rest = chain
    return chain


def test_what_may_be_none():
    assert rest([None, Chain(1), Chain(1, Chain(2, Chain(3)))]) == [None, None, Chain(2, Chain(3))]
    assert bag([Bag([1, None], (1, None)), Bag(np.array([4, 5]), [2, Chain(6)])]) == (
        [[1, None], [4, 5]], [None, Chain(6)])
    data = rest.encode([Chain(1, Chain(2)), None])
    assert rest(data + data[:1]) == [Chain(2), None, Chain(2)]
    loss, _, (of_bags,) = sf.value_and_grad(total, inputs=True)([Bag([], (0, None), GOOD), Bag([], (0, None))])
    assert loss == 1.5 and of_bags[0].vector.tolist() == [1, 1, 1] and of_bags[1].vector is None


def test_a_long_chain_of_what_may_be_none():
    chain = None
    for i in range(1_000_000):
        chain = Chain(i, chain)
    assert rest([chain])[0].value == 999_998


@pytest.mark.parametrize("call, kind, message", [
    (lambda: rest([Chain(1), Chain(1, Chain(2, 3))]), TypeError, r"^chain\[1\]\.rest\.rest: 'Chain' belongs here"),
    (lambda: rest([Chain(1, Chain("a"))]), TypeError, r"^chain\[0\]\.rest\.value: an int belongs here, not str"),
    (lambda: rest([Chain(1, Raises(2))]), KeyError, "boom"),
    (lambda: rest([endless()]), ValueError, r"^chain\[0\]\.rest.*the object is inside of itself"),
    (lambda: rest(iter([None])), TypeError, r"^chain: a list .* belongs here"),
    (lambda: bag([Bag((i for i in range(3)), (1, None))]), TypeError,
     r"^b\[0\]\.numbers: a list \('list\[int \| None\]'\) belongs here, not generator: make a list of it"),
    (lambda: bag([Bag("abc", (1, None))]), TypeError, r"^b\[0\]\.numbers: a list .* not str"),
    (lambda: bag([Bag([2**70], (1, None))]), OverflowError, r"^b\[0\]\.numbers\[0\]: "),
    (lambda: bag([Bag([1], (1,))]), ValueError, r"^b\[0\]\.pair: a tuple of 2"),
])
def test_what_may_be_none_and_is_wrong(call, kind, message):
    with pytest.raises(kind, match=message) as raised:
        call()
    if kind is KeyError:
        assert raised.value.__notes__ == ["while chain[0].rest.rest was read"]
