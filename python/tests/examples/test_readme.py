"""The program of README.md."""
import os
import runpy

import numpy as np

GUIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[".."] * 3, "examples", "guide")


def test_tree():
    made = runpy.run_path(os.path.join(GUIDE, "tree.py"))
    scores, model = made["scores"], made["model"]
    assert scores.shape == (2, 5)
    for tree, row in zip(made["trees"], scores):
        np.testing.assert_allclose(row, model(tree), rtol=1e-5, atol=1e-6)
