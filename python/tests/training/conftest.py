"""A small model of trees, and data for it."""
from dataclasses import dataclass

import numpy as np
import pytest

pytest.importorskip("sheaf._native")
import sheaf as sf
from sheaf import Float32, Module, Param, Token, concat, cross_entropy, dropout, normal, tanh


@dataclass(slots=True)
class Leaf:
    word: Token


@dataclass(slots=True)
class Node:
    left: "Tree"
    right: "Tree"


Tree = Leaf | Node


class TreeRNN(Module):
    def __init__(self, vocab=12, hidden=6, classes=3):
        self.vocab, self.hidden, self.classes = vocab, hidden, classes
        self.embedding = Param(vocab, hidden, init=normal(0.5))
        self.w, self.out = Param(2 * hidden, hidden, init=normal(0.4)), Param(hidden, classes, init=normal(0.5))
        self.unused = Param(3)

    def vector(self, t: Tree) -> Float32["hidden"]:
        match t:
            case Leaf(word):
                return self.embedding[word]
            case Node(left, right):
                return tanh(concat(self.vector(left), self.vector(right)) @ self.w)

    def forward(self, t: Tree) -> Float32["classes"]:
        return self.vector(t) @ self.out

    def both(self, t: Tree) -> tuple[Float32["hidden"], int]:
        return self.vector(t), 7

    def all(self, t: Tree, n: int) -> list[Float32["hidden"]]:
        return [self.vector(t) * float(i) for i in range(n)]

    def loss(self, t: Tree, label: int) -> Float32[""]:
        assert label < 3, "no such class"
        return cross_entropy(self(t), label)

    def accuracy(self, t: Tree, label: int) -> bool:
        return self(t).argmax().item() == label

    def size(self, t: Tree) -> int:
        return 1

    def dropped(self, t: Tree, label: int) -> Float32[""]:
        return cross_entropy(dropout(self.vector(t), 0.5) @ self.out, label)


def trees(count, seed=1, vocab=12):
    """Trees, and labels that follow from their words."""
    rng = np.random.default_rng(seed)

    def tree(leaves):
        if leaves == 1:
            word = int(rng.integers(vocab))
            return Leaf(word), word
        cut = int(rng.integers(1, leaves))
        (a, x), (b, y) = tree(cut), tree(leaves - cut)
        return Node(a, b), x + y
    made = [tree(int(rng.integers(1, 6))) for _ in range(count)]
    return [t for t, _ in made], [n % 3 for _, n in made]


@pytest.fixture
def module():
    return TreeRNN()


@pytest.fixture
def fast(module):
    return sf.jit(module)


@pytest.fixture
def data():
    return trees(24)
