"""A bidirectional recurrent network (Schuster, Paliwal 1997): a class for each word, by the states
before and after it."""
from sheaf import (Float32, Int32, Module, Param, Token, argmax, concat, glorot, normal, sigmoid, zeros)


class RNN(Module):
    def __init__(self, size):
        self.size = size
        self.w, self.b = Param(2 * size, size, init=glorot), Param(size)

    def forward(self, xs: list[Float32["size"]]) -> list[Float32["size"]]:
        h = zeros(self.size)
        states = []
        for x in xs:
            h = sigmoid(concat(x, h) @ self.w + self.b)
            states.append(h)
        return states


class Tagger(Module):
    def __init__(self, vocab, hidden=256, classes=16):
        self.vocab, self.hidden, self.classes = vocab, hidden, classes
        self.ahead, self.back = RNN(hidden), RNN(hidden)
        self.embedding = Param(vocab, hidden, init=normal(1.0))
        self.out_w, self.out_b = Param(2 * hidden, classes, init=glorot), Param(classes)

    def forward(self, words: list[Token]) -> list[Int32[""]]:
        xs = [self.embedding[word] for word in words]
        fs = self.ahead(xs)
        bs = list(reversed(self.back(list(reversed(xs)))))
        return [argmax(concat(f, b) @ self.out_w + self.out_b) for f, b in zip(fs, bs, strict=True)]
