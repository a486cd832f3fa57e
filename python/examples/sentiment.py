"""The TreeLSTM with a loss at every phrase, for training."""
from dataclasses import dataclass

from sheaf import (Float32, Module, Param, Token, concat, cross_entropy, dropout, glorot, normal, sigmoid,
                   split, tanh)


@dataclass(slots=True)
class Leaf:
    label: int
    word: Token


@dataclass(slots=True)
class Node:
    label: int
    left: "Tree"
    right: "Tree"


Tree = Leaf | Node


class Sentiment(Module):
    def __init__(self, vocab, hidden=128, classes=5):
        self.vocab, self.hidden, self.classes = vocab, hidden, classes
        self.embedding = Param(vocab, hidden, init=normal(0.1))
        self.leaf_w, self.leaf_b = Param(hidden, 3 * hidden, init=glorot), Param(3 * hidden)
        self.node_w, self.node_b = Param(2 * hidden, 5 * hidden, init=glorot), Param(5 * hidden)
        self.out_w, self.out_b = Param(hidden, classes, init=glorot), Param(classes)

    def score(self, h: Float32["hidden"]) -> Float32["classes"]:
        return dropout(h, 0.5) @ self.out_w + self.out_b

    def encode(self, t: Tree) -> tuple[Float32["hidden"], Float32["hidden"], Float32[""], int]:
        """State and cell, the sum of the phrases' losses, and how many they are."""
        match t:
            case Leaf(label, word):
                i, o, u = split(dropout(self.embedding[word], 0.5) @ self.leaf_w + self.leaf_b, 3)
                c = sigmoid(i) * tanh(u)
                h = sigmoid(o) * tanh(c)
                return h, c, cross_entropy(self.score(h), label), 1
            case Node(label, left, right):
                hl, cl, el, nl = self.encode(left)
                hr, cr, er, nr = self.encode(right)
                i, fl, fr, o, u = split(concat(hl, hr) @ self.node_w + self.node_b, 5)
                c = sigmoid(i) * tanh(u) + sigmoid(fl + 1.0) * cl + sigmoid(fr + 1.0) * cr
                h = sigmoid(o) * tanh(c)
                return h, c, el + er + cross_entropy(self.score(h), label), nl + nr + 1

    def forward(self, t: Tree) -> Float32["classes"]:
        h, _, _, _ = self.encode(t)
        return self.score(h)

    def loss(self, t: Tree) -> Float32[""]:
        _, _, total, phrases = self.encode(t)
        return total / float(phrases)

    def accuracy(self, t: Tree, label: int) -> bool:
        return self.forward(t).argmax().item() == label
