"""What docs/python.md shows of training runs as it stands there."""
import pathlib
import re

import numpy as np
import pytest

import sheaf as sf
from conftest import trees
from sheaf import Float32, Module, Param, cross_entropy, mean, normal

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "python.md"


def blocks():
    text = PAGE.read_text()
    section = text[text.index("## Training\n"):text.index("## Processes and threads")]
    return re.findall(r"```python\n(.*?)```", section, re.S)


class Reader(Module):
    def __init__(self):
        self.w = Param(4, 3, init=normal(0.5))

    def forward(self, x: Float32["4"]) -> Float32["3"]:
        return x @ self.w

    def loss(self, xs: Float32["n 4"], label: int) -> Float32[""]:
        return cross_entropy(mean(xs @ self.w, 0), label)


def test_page(fast, data, capsys, tmp_path, monkeypatch):
    steps, gradients, saliency, saved, torchs = blocks()
    some, labels = data
    train = fast.loss.encode(*trees(70, seed=2))
    space = {"sf": sf, "np": np, "fast": fast, "data": train, "train": train, "dev": fast.loss.encode(*data),
             "seed": 1, "trees": some, "labels": labels}
    exec(steps.replace("epochs=10", "epochs=2"), space)
    assert len(capsys.readouterr().out.splitlines()) == 4
    exec(gradients.replace("fast.encode_all, xs", "fast.vector, trees").replace(
        "grads = back(", "cotangents = results\ngrads = back("), space)
    assert space["grads"]["w"].any()
    reader = sf.jit(Reader())
    exec(saliency, {"sf": sf, "np": np, "fast": reader, "labels": [0, 2],
                    "xs": [np.ones((n, 4), np.float32) for n in (2, 5)]})
    assert len(capsys.readouterr().out.splitlines()) == 2
    monkeypatch.chdir(tmp_path)
    types = "\nLeaf, Node = model.types.Leaf, model.types.Node\ntrees = trees_of(Leaf, Node)\nfor step"
    exec(saved.replace("\nfor step", types), {**space, "trees_of": lambda leaf, node: [leaf(1), node(leaf(2), leaf(3))],
                                              "labels": [0, 1]})
    torch = pytest.importorskip("torch")
    first, second = torchs.split("\nscores = ")
    exec(first, {**space, "torch": torch})
    space = {"fast": reader, "below": torch.nn.Linear(2, 4), "above": torch.nn.Linear(3, 2), "x": torch.randn(6, 2)}
    exec("scores = " + second, space)
    space["scores"].sum().backward()
    assert space["below"].weight.grad.abs().sum() > 0
