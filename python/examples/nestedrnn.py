"""Two recurrences, one inside the other: at every word an inner GRU (Cho and others 2014) turns around
until its state says that it has settled, and an outer network goes on from there."""
from sheaf import Float32, Module, Param, Token, concat, glorot, normal, sigmoid, split, squeeze, tanh, zeros


class Nested(Module):
    def __init__(self, vocab, hidden=256, classes=5, turns=8):
        self.vocab, self.hidden, self.classes, self.turns = vocab, hidden, classes, turns
        self.embedding = Param(vocab, hidden, init=normal(0.5))
        self.outer_w, self.outer_b = Param(2 * hidden, hidden, init=glorot), Param(hidden)
        self.gates_w, self.gates_b = Param(2 * hidden, 2 * hidden, init=glorot), Param(2 * hidden)
        self.new_w, self.new_b = Param(2 * hidden, hidden, init=glorot), Param(hidden)
        self.settled_w = Param(hidden, 1, init=glorot)
        self.out_w = Param(hidden, classes, init=glorot)

    def gru(self, x: Float32["hidden"], h: Float32["hidden"]) -> Float32["hidden"]:
        z, r = split(sigmoid(concat(x, h) @ self.gates_w + self.gates_b), 2)
        return (1 - z) * h + z * tanh(concat(x, r * h) @ self.new_w + self.new_b)

    def settle(self, x: Float32["hidden"], h: Float32["hidden"]) -> tuple[Float32["hidden"], int]:
        """The settled state, and how many turns it took."""
        h, turn = self.gru(x, h), 1
        while turn < self.turns and squeeze(h @ self.settled_w).item() <= 0.1:
            h, turn = self.gru(x, h), turn + 1
        return h, turn

    def forward(self, words: list[Token]) -> tuple[Float32["classes"], int]:
        """The scores of the classes, and the number of inner turns."""
        h, total = zeros(self.hidden), 0
        for word in words:
            x = tanh(concat(self.embedding[word], h) @ self.outer_w + self.outer_b)
            h, taken = self.settle(x, h)
            total += taken
        return h @ self.out_w, total
