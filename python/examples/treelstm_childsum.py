"""A Child-Sum TreeLSTM (Tai, Socher, Manning 2015): a node has any number of children."""
from dataclasses import dataclass

from cells import tree_lstm_cell
from sheaf import Float32, Module, Param, Token, glorot, normal, ones, sigmoid, zeros


@dataclass(slots=True)
class Leaf:
    word: Token


@dataclass(slots=True)
class Node:
    children: "list[Tree]"


Tree = Leaf | Node


class ChildSum(Module):
    def __init__(self, vocab, hidden=256, classes=5):
        self.vocab, self.hidden, self.classes = vocab, hidden, classes
        self.embedding = Param(vocab, hidden, init=normal(0.1))
        self.leaf_w, self.leaf_b = Param(hidden, 3 * hidden, init=glorot), Param(3 * hidden)
        self.node_w, self.node_b = Param(hidden, 3 * hidden, init=glorot), Param(3 * hidden)
        self.forget_w, self.forget_b = Param(hidden, hidden, init=glorot), Param(hidden, init=ones)
        self.out_w, self.out_b = Param(hidden, classes, init=glorot), Param(classes)

    def total(self, xs: list[Float32["hidden"]]) -> Float32["hidden"]:
        result = zeros(self.hidden)
        for x in xs:
            result = result + x
        return result

    def encode(self, t: Tree) -> tuple[Float32["hidden"], Float32["hidden"]]:
        match t:
            case Leaf(word):
                return tree_lstm_cell(self.embedding[word] @ self.leaf_w + self.leaf_b, zeros(self.hidden))
            case Node(children):
                states = [self.encode(child) for child in children]
                h = self.total([h for h, _ in states])
                # Each child has a forget gate of its own.
                kept = self.total([sigmoid(h @ self.forget_w + self.forget_b) * c for h, c in states])
                return tree_lstm_cell(h @ self.node_w + self.node_b, kept)

    def forward(self, t: Tree) -> Float32["classes"]:
        h, _ = self.encode(t)
        return h @ self.out_w + self.out_b
