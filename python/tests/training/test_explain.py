"""fast.explain, and what objects look like in notebooks."""
import numpy as np
import pytest
import sheaf as sf
from sheaf import Float32

TEXT = """dim n = 3
param scale : f32[n] = constant(2.0)
fn main(xs: list<f32[n]>) -> f32[n] = fold(|a, x| tanh(a * scale + x), zeros(n), xs)
"""
LISTS = [[np.ones(3, "f4")] * k for k in (1, 4, 2, 0)]


class Chain(sf.Module):
    def __init__(self):
        self.cell = sf.nn.Linear(3, 3)

    def forward(self, xs: list[Float32[3]]) -> Float32[3]:
        state = sf.zeros(3)
        for x in xs:
            state = sf.tanh(self.cell(state) + x)
        return state

    def loss(self, xs: list[Float32[3]]) -> Float32[""]:
        return sf.sum(self.forward(xs) ** 2)


def test_explain_tells_the_model_and_the_mini_batch():
    model = sf.compile(TEXT)
    alone = model.explain()
    assert alone.page is None and "mini_batch" not in alone.report
    assert str(alone) == alone.text and "kernel" in alone.text
    told = model.explain(LISTS, repetitions=2)
    assert told.report["mini_batch"]["instances"] == 4 and told.page.startswith("<!")
    assert alone.text.split("\n", 1)[0] in told.text
    encoded = model.explain(model.encode(LISTS), repetitions=2)
    launches = [{k: one[k] for k in ("kernel", "rows")} for one in told.report["mini_batch"]["launches"]]
    assert [{k: one[k] for k in ("kernel", "rows")} for one in encoded.report["mini_batch"]["launches"]] == launches
    assert 'srcdoc="&lt;!' in told._repr_html_() and alone._repr_html_().startswith("<pre>")


def test_explain_has_the_weights_of_the_moment():
    """A loop that ends by its state takes as many launches as the weights have it take."""

    class Climb(sf.Module):
        def __init__(self):
            self.step = sf.Param((), init=sf.constant(1.0))

        def forward(self, x: Float32[""]) -> Float32[""]:
            while float(x) <= 8.0:
                x = x + self.step
            return x

    climb = Climb()
    fast = sf.jit(climb)
    few = len(fast.explain([0.0, 0.5], repetitions=1).report["mini_batch"]["launches"])
    climb.step.value = np.float32(4.0)
    fewer = len(fast.explain([0.0, 0.5], repetitions=1).report["mini_batch"]["launches"])
    assert fewer < few


def test_explain_of_jitted_methods():
    fast = sf.jit(Chain())
    assert fast.loss.explain(LISTS, repetitions=1).report["mini_batch"]["instances"] == 4
    assert fast.explain(fast.encode(LISTS), repetitions=1).report["mini_batch"]["instances"] == 4

    @sf.jit
    def twice(x: Float32[3]) -> Float32[3]:
        return x * 2.0

    assert twice.explain().text
    with pytest.raises(ValueError, match="instances"):
        twice.explain([])
    with pytest.raises(TypeError, match="x"):
        twice.explain(["no tensor"])
    with pytest.raises(TypeError, match="repetitions"):
        twice.explain(repetitions=-1)


def test_what_was_built_cannot_be_explained(tmp_path):
    sf.compile(TEXT).save(tmp_path / "m.sheafc")
    with pytest.raises(TypeError, match="load the source"):
        sf.load(tmp_path / "m.sheafc").explain()


def test_html_of_models_and_trainings():
    chain = Chain()
    fast = sf.jit(chain)
    shown = fast._repr_html_()
    assert "12 weights" in shown and "cell" in shown and "3 × 3" in shown
    assert "scale" in sf.compile(TEXT)._repr_html_()
    fit = fast.fit((LISTS,), epochs=2, batch=2)
    for _ in fit:
        pass
    assert fit._repr_html_().count("<tr>") == 3


def test_cells(tmp_path):
    testing = pytest.importorskip("IPython.testing.globalipapp")
    shell = testing.start_ipython() or testing.get_ipython()
    shell.run_line_magic("load_ext", "sheaf")
    shell.run_cell_magic("sheaf", "scaled --dim n=2", TEXT)
    out = shell.user_ns["scaled"]([[np.ones(2, "f4")]])
    assert out.shape == (1, 2)
    with pytest.raises(sf.CompileError, match="nowhere"):
        shell.run_cell_magic("sheaf", "broken", "fn main(x: int) -> int = nowhere\n")
    with pytest.raises(ValueError, match="NAME=N"):
        shell.run_cell_magic("sheaf", "scaled --dim n", TEXT)
    with pytest.raises(ValueError, match="NAME"):
        shell.run_cell_magic("sheaf", "", TEXT)
