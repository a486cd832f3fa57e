"""A binary TreeLSTM (Tai, Socher, Manning 2015) that classifies bracket trees."""
from dataclasses import dataclass

from sheaf import (Float32, Module, Param, Token, concat, cross_entropy, glorot, normal, sigmoid, split,
                   tanh)


@dataclass(slots=True)
class Leaf:
    word: Token


@dataclass(slots=True)
class Node:
    left: "Tree"
    right: "Tree"


Tree = Leaf | Node


class TreeLSTM(Module):
    def __init__(self, vocab, hidden=256, classes=5):
        self.vocab, self.hidden, self.classes = vocab, hidden, classes
        self.embedding = Param(vocab, hidden, init=normal(0.1))
        self.leaf_w, self.leaf_b = Param(hidden, 3 * hidden, init=glorot), Param(3 * hidden)
        self.node_w, self.node_b = Param(2 * hidden, 5 * hidden, init=glorot), Param(5 * hidden)
        self.out_w, self.out_b = Param(hidden, classes, init=glorot), Param(classes)

    def encode(self, t: Tree) -> tuple[Float32["hidden"], Float32["hidden"]]:
        match t:
            case Leaf(word):
                i, o, u = split(self.embedding[word] @ self.leaf_w + self.leaf_b, 3)
                c = sigmoid(i) * tanh(u)
            case Node(left, right):
                hl, cl = self.encode(left)
                hr, cr = self.encode(right)
                i, o, u, fl, fr = split(concat(hl, hr) @ self.node_w + self.node_b, 5)
                c = sigmoid(i) * tanh(u) + sigmoid(fl) * cl + sigmoid(fr) * cr
        return sigmoid(o) * tanh(c), c

    def forward(self, t: Tree) -> Float32["classes"]:
        h, _ = self.encode(t)
        return h @ self.out_w + self.out_b

    def loss(self, t: Tree, label: int) -> Float32[""]:
        return cross_entropy(self.forward(t), label)

    def accuracy(self, t: Tree, label: int) -> bool:
        return self.forward(t).argmax().item() == label
