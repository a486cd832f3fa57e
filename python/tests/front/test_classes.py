"""What isinstance and `is None` say of a variable is known where they hold."""
from dataclasses import dataclass

import pytest

from conftest import Cases, compare

pytest.importorskip("sheaf._native")

case = Cases()


@dataclass
class Leaf:
    word: int


@dataclass
class Node:
    left: "Tree"
    right: "Tree"


@dataclass
class Empty:
    pass


Tree = Leaf | Node | Empty
I = [(Leaf(3),), (Node(Leaf(1), Node(Empty(), Leaf(5))),), (Empty(),)]


@case(*I)
def size(t: Tree) -> int:
    if isinstance(t, Leaf):
        return t.word
    if isinstance(t, Node):
        l = size(t.left)
        return l + size(t.right) * 2
    return -1


@case(*I)
def joins(t: Tree) -> int:
    n = 0
    if not isinstance(t, (Leaf, Empty)):
        n = 5
        t = t.left
    elif isinstance(t, Leaf) and t.word > 2:
        n = t.word
    else:
        n = 7
    x = t.word if isinstance(t, Leaf) else 0
    return n + x + (1 if isinstance(t, Node) and isinstance(t, Node) and size(t.left) > 0 else 0)


@case(*I)
def bools(t: Tree) -> tuple[bool, bool]:
    return isinstance(t, Leaf), not isinstance(t, Leaf) or t.word > 4


@case(*I)
def loops(t: Tree) -> int:
    n = 0
    while isinstance(t, Node):
        t = t.right
        n += 1
    return n


@dataclass
class Cell:
    value: int
    next: "Cell | None"


@case((Cell(1, Cell(2, Cell(3, None))),), (None,))
def walk(c: Cell | None) -> int:
    total = 0
    while c is not None and total < 3:
        total += c.value
        c = c.next
    return total


@case((Cell(1, Cell(2, Cell(3, None))),), (Cell(4, None),))
def after(c: Cell) -> int:
    match c:
        case Cell(next=Cell() as x):
            return x.value * 10 + after(x)
        case Cell(value):
            return value


@case.each
def test_agrees(function, inputs):
    assert not any(isinstance(w, Exception) for w in compare(function, inputs))
