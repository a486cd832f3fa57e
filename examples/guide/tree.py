from dataclasses import dataclass

import sheaf as sf
from sheaf import Float32, Module, Param, Token, concat, normal, tanh


@dataclass(slots=True)
class Leaf:
    word: Token


@dataclass(slots=True)
class Node:
    left: "Tree"
    right: "Tree"


Tree = Leaf | Node


class TreeRNN(Module):
    def __init__(self, vocab, hidden=64, classes=5):
        self.vocab, self.hidden, self.classes = vocab, hidden, classes
        self.embedding = Param(vocab, hidden, init=normal(0.1))
        self.join, self.out = sf.nn.Linear(2 * hidden, hidden), sf.nn.Linear(hidden, classes)

    def encode(self, t: Tree) -> Float32["hidden"]:
        match t:
            case Leaf(word):
                return self.embedding[word]
            case Node(left, right):
                return tanh(self.join(concat(self.encode(left), self.encode(right))))

    def forward(self, t: Tree) -> Float32["classes"]:
        return self.out(self.encode(t))


trees = [Node(Leaf(3), Node(Leaf(4), Leaf(5))), Leaf(1)]

model = TreeRNN(vocab=5000)
model(trees[0])                # ordinary Python on NumPy, for one input: pdb and print work
fast = sf.jit(model)           # all of it is read and checked now, every branch and recursion
scores = fast(trees)           # compiled: all trees together, each with the bits that it has alone
