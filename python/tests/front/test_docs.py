"""The program of docs/python.md that shows what sf.jit does runs as it stands there."""
import pathlib
import re

import numpy as np
import pytest

pytest.importorskip("sheaf._native")
PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "python.md"


def test_page(module):
    text = PAGE.read_text()
    section = text[text.index("## Compiling what is written in Python"):]
    program = re.search(r"```python\n(.*?)```", section, re.S)[1]
    head, tail = program.split("model = TreeRNN(vocab=1000)\n")
    found = module(head, head="")
    Leaf, Node = found.Leaf, found.Node
    space = vars(found)
    space["trees"], space["labels"] = [Leaf(1), Node(Leaf(2), Leaf(3))], [0, 4]
    space["print"] = lambda text: space.__setitem__("shown", text)
    exec("model = TreeRNN(vocab=1000)\n" + tail.replace("\nfast([", "\nscores = fast([").replace(
        "\nfast.loss", "\nlosses = fast.loss"), space)
    assert space["scores"].shape == (2, 5) and "data Tree = Leaf" in space["shown"]
    model = space["model"]
    assert np.allclose(space["losses"], [model.loss(t, i) for t, i in zip(space["trees"], space["labels"])],
                       rtol=1e-5)
