"""Recurrent cells, and the layers that run them over the rows of a sequence.

Gates stand in torch's order: i, f, g, o of an LSTM, r, z, n of a GRU.
"""
import math

from ..initializers import uniform
from ..module import Module, Param
from ..ops import concat, flip, sigmoid, split, stack, tanh, zeros
from ..ops.registry import EAGER
from ..types import Float32


class _Cell(Module):
    """The weights of a cell with so many gates."""

    def __init__(self, input_size, hidden_size, bias, gates):
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        init = uniform(1 / math.sqrt(hidden_size))
        self.weight_ih = Param(gates * hidden_size, input_size, init=init)
        self.weight_hh = Param(gates * hidden_size, hidden_size, init=init)
        if bias:
            self.bias_ih = Param(gates * hidden_size, init=init)
            self.bias_hh = Param(gates * hidden_size, init=init)


class LSTMCell(_Cell):
    """A step of an LSTM (Hochreiter, Schmidhuber 1997)."""

    def __init__(self, input_size, hidden_size, bias=True):
        super().__init__(input_size, hidden_size, bias, 4)

    def forward(self, x: Float32["input_size"],
                state: tuple[Float32["hidden_size"], Float32["hidden_size"]]) -> tuple[
                    Float32["hidden_size"], Float32["hidden_size"]]:
        h, c = state
        gates = x @ self.weight_ih.T + h @ self.weight_hh.T
        if self.bias:
            gates = gates + (self.bias_ih + self.bias_hh)
        i, f, g, o = split(gates, 4)
        c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        return sigmoid(o) * tanh(c), c

    def sequence(self, x: Float32["n input_size"]) -> tuple[
            Float32["n hidden_size"], Float32["hidden_size"], Float32["hidden_size"]]:
        """The states after each row of x; the last state and the last cell."""
        h, c = zeros(self.hidden_size), zeros(self.hidden_size)
        states = []
        for row in x:
            h, c = self.forward(row, (h, c))
            states.append(h)
        if EAGER and not states:  # a list of nothing has no shape there
            return zeros(0, self.hidden_size), h, c
        return stack(states), h, c


class GRUCell(_Cell):
    """A step of a GRU (Cho and others 2014), with the reset gate after the product as torch has it."""

    def __init__(self, input_size, hidden_size, bias=True):
        super().__init__(input_size, hidden_size, bias, 3)

    def forward(self, x: Float32["input_size"], h: Float32["hidden_size"]) -> Float32["hidden_size"]:
        inner, outer = x @ self.weight_ih.T, h @ self.weight_hh.T
        if self.bias:
            inner, outer = inner + self.bias_ih, outer + self.bias_hh
        r_x, z_x, n_x = split(inner, 3)
        r_h, z_h, n_h = split(outer, 3)
        z = sigmoid(z_x + z_h)
        n = tanh(n_x + sigmoid(r_x + r_h) * n_h)
        return (1 - z) * n + z * h

    def sequence(self, x: Float32["n input_size"]) -> tuple[Float32["n hidden_size"],
                                                            Float32["hidden_size"]]:
        """The states after each row of x, and the last."""
        h = zeros(self.hidden_size)
        states = []
        for row in x:
            h = self.forward(row, h)
            states.append(h)
        if EAGER and not states:
            return zeros(0, self.hidden_size), h
        return stack(states), h


class _Layers(Module):
    """Cells over each other, perhaps in both directions. Weights are called as torch calls them:
    `weight_ih_l0`, `bias_hh_l1_reverse`."""

    def __init__(self, cell, input_size, hidden_size, num_layers, bias, bidirectional):
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bidirectional = bidirectional
        self.output_size = hidden_size * (2 if bidirectional else 1)
        self.states = num_layers * (2 if bidirectional else 1)
        sizes = [input_size] + [self.output_size] * (num_layers - 1)
        self.cells = [cell(size, hidden_size, bias) for size in sizes]
        self.reverse_cells = [cell(size, hidden_size, bias) for size in sizes] if bidirectional else []

    def public_name(self, name):
        cells, layer, weight = name.split(".")
        return f"{weight}_l{layer}" + ("_reverse" if cells == "reverse_cells" else "")


class LSTM(_Layers):
    """The LSTM over a sequence [n, input_size]: (the states [n, output_size], (the last states, the
    last cells)), these as [layers, hidden_size], with the reverse direction after the forward one."""

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, bidirectional=False):
        super().__init__(LSTMCell, input_size, hidden_size, num_layers, bias, bidirectional)

    def forward(self, x: Float32["n input_size"]) -> tuple[
            Float32["n output_size"],
            tuple[Float32["states hidden_size"], Float32["states hidden_size"]]]:
        hs, cs = [], []
        if self.bidirectional:
            for cell, reverse_cell in zip(self.cells, self.reverse_cells):
                ahead, h, c = cell.sequence(x)
                back, h_back, c_back = reverse_cell.sequence(flip(x))
                x = concat(ahead, flip(back), axis=1)
                hs, cs = hs + [h, h_back], cs + [c, c_back]
        else:
            for cell in self.cells:
                x, h, c = cell.sequence(x)
                hs, cs = hs + [h], cs + [c]
        return x, (stack(hs), stack(cs))


class GRU(_Layers):
    """The GRU over a sequence [n, input_size]: (the states [n, output_size], the last states
    [layers, hidden_size])."""

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, bidirectional=False):
        super().__init__(GRUCell, input_size, hidden_size, num_layers, bias, bidirectional)

    def forward(self, x: Float32["n input_size"]) -> tuple[Float32["n output_size"],
                                                           Float32["states hidden_size"]]:
        hs = []
        if self.bidirectional:
            for cell, reverse_cell in zip(self.cells, self.reverse_cells):
                ahead, h = cell.sequence(x)
                back, h_back = reverse_cell.sequence(flip(x))
                x = concat(ahead, flip(back), axis=1)
                hs = hs + [h, h_back]
        else:
            for cell in self.cells:
                x, h = cell.sequence(x)
                hs = hs + [h]
        return x, stack(hs)
