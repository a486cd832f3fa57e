"""What sf.from_torch makes, compiled: alone, and inside a model."""
import os
import sys

import numpy as np
import pytest

import sheaf as sf
from sheaf import Float32, Module

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "eager"))
pytest.importorskip("torch")
from test_from_torch import FUNCTIONS, Function, arrays, draw, from_torch, same, torch


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "made"])
def test_functions(name):
    module = Function(FUNCTIONS[name])
    made = from_torch(module, (draw(3, 4), draw(3, 4)), longer=(draw(5, 4), draw(5, 4)), name="Made")
    given = [arrays((draw(n, 4), draw(n, 4))) for n in (2, 5)]
    result = sf.jit(made)(*zip(*given))
    for i, one in enumerate(given):
        def of(part):
            return tuple(map(of, part)) if isinstance(part, tuple) else np.asarray(part[i])
        same(of(result), arrays(made(*one)))


class Reader(Module):
    """A model around a cell of torch's."""

    def __init__(self, cell, size):
        self.cell, self.size = cell, size

    def forward(self, xs: list[Float32["4"]]) -> Float32["size"]:
        h, c = sf.zeros(self.size), sf.zeros(self.size)
        for x in xs:
            h, c = self.cell(x, (h, c))
        return h


def test_a_cell_inside_a_model():
    theirs = torch.nn.LSTMCell(4, 3)
    model = Reader(from_torch(theirs, (draw(4), (draw(3), draw(3)))), 3)
    sentences = [[draw(4) for _ in range(n)] for n in (1, 4, 2)]
    got = sf.jit(model)([[x.numpy() for x in xs] for xs in sentences])
    for i, xs in enumerate(sentences):
        h = c = torch.zeros(3)
        with torch.no_grad():
            for x in xs:
                h, c = theirs(x, (h, c))
        np.testing.assert_allclose(got[i], h.numpy(), rtol=1e-4, atol=1e-5)
