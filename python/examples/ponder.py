"""Adaptive computation (Graves 2016): every word of a recurrent network is thought over until the network
says that it has thought enough. A halting probability is read after every thought."""
from sheaf import Float32, Module, Param, Token, concat, dot, glorot, normal, sigmoid, tanh, zeros


class Ponder(Module):
    def __init__(self, vocab, hidden=256, classes=5):
        self.vocab, self.hidden, self.classes = vocab, hidden, classes
        self.embedding = Param(vocab, hidden, init=normal(0.5))
        self.w, self.b = Param(2 * hidden, hidden, init=glorot), Param(hidden)
        self.halt_w = Param(hidden, init=normal(0.1))
        self.out_w = Param(hidden, classes, init=glorot)

    def think(self, h: Float32["hidden"], x: Float32["hidden"]) -> tuple[int, Float32["hidden"]]:
        thoughts = 0
        while True:
            h = tanh(concat(x, h) @ self.w + self.b)
            thoughts += 1
            if thoughts == 10 or sigmoid(dot(h, self.halt_w)).item() > 0.5:
                break
        return thoughts, h

    def forward(self, words: list[Token]) -> tuple[int, Float32["classes"]]:
        """The number of thoughts, and the scores of the classes."""
        total, h = 0, zeros(self.hidden)
        for word in words:
            thoughts, h = self.think(h, self.embedding[word])
            total += thoughts
        return total, h @ self.out_w
