"""Errors about arguments and positions say what was written."""
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
