"""Random programs give compiled what they give in plain Python. `random_programs.py SEED` prints one."""
import pytest

import random_programs
from conftest import agree
from sheaf import jit

pytest.importorskip("sheaf._native")


@pytest.mark.parametrize("seed", range(12))
def test_agrees(module, seed):
    found = module(random_programs.program(seed), head="")
    Leaf, Node = found.Leaf, found.Node
    tree = Node(Node(Leaf(1), Leaf(-2)), Leaf(5))
    inputs = [(3, [1, 2, 3], tree, None), (-5, [], Leaf(4), 7), (12, [9, -9, 0, 4], Node(Leaf(0), tree), 0)]

    def plain(arguments):
        try:
            return found.f(*arguments)
        except (AssertionError, IndexError, ValueError, ZeroDivisionError) as error:
            return error
    wanted = list(map(plain, inputs))
    got = jit(found.f)(*zip(*inputs), errors="return")
    for arguments, a, b in zip(inputs, wanted, got):
        assert agree(a, b), (arguments, a, b)
