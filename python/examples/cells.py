"""What several of the models are made of, as lib/*.sheaf has it."""
from sheaf import Float32, Module, Param, concat, glorot, reshape, sigmoid, split, tanh, transpose, zeros


def lstm_cell(gates: Float32["4*n"], c: Float32["n"]) -> tuple[Float32["n"], Float32["n"]]:
    """State and cell after one step: of the four gates, one after the other, and the cell before."""
    i, f, o, u = split(gates, 4)
    c2 = sigmoid(f) * c + sigmoid(i) * tanh(u)
    return sigmoid(o) * tanh(c2), c2


def tree_lstm_cell(gates: Float32["3*n"], kept: Float32["n"]) -> tuple[Float32["n"], Float32["n"]]:
    """State and cell: of the three gates, and of what of the children's cells is kept."""
    i, o, u = split(gates, 3)
    c = sigmoid(i) * tanh(u) + kept
    return sigmoid(o) * tanh(c), c


class LSTM(Module):
    """The LSTM over a list of vectors."""

    def __init__(self, input, state):
        self.input, self.state = input, state
        self.w = Param(input + state, 4 * state, init=glorot)
        self.b = Param(4 * state)

    def start(self) -> tuple[Float32["state"], Float32["state"]]:
        return zeros(self.state), zeros(self.state)

    def step(self, state: tuple[Float32["state"], Float32["state"]],
             x: Float32["input"]) -> tuple[Float32["state"], Float32["state"]]:
        h, c = state
        return lstm_cell(concat(x, h) @ self.w + self.b, c)

    def states(self, xs: list[Float32["input"]]) -> list[tuple[Float32["state"], Float32["state"]]]:
        """State and cell after each element."""
        state = self.start()
        made = []
        for x in xs:
            state = self.step(state, x)
            made.append(state)
        return made

    def forward(self, xs: list[Float32["input"]]) -> list[Float32["state"]]:
        """The state after each element."""
        return [h for h, _ in self.states(xs)]


class Heads(Module):
    """Rows of `size` elements as those of `count` heads, and back."""

    def __init__(self, size, count):
        self.size, self.count, self.each = size, count, size // count

    def split_rows(self, x: Float32["n size"]) -> Float32["count n each"]:
        return transpose(reshape(x, len(x), self.count, self.each), 0, 1)

    def join(self, x: Float32["count n each"]) -> Float32["n size"]:
        return reshape(transpose(x, 0, 1), x.shape[1], self.size)
