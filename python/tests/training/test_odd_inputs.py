"""What a trial found: values and texts that went wrong without a word."""
import gc
import sys

import numpy as np
import pytest
import sheaf as sf
from sheaf import Float32


class Twice(sf.Module):
    def __init__(self):
        self.scale = sf.Param(3, init=sf.constant(2.0))

    def forward(self, x: Float32[3]) -> Float32[3]:
        return x * self.scale

    def loss(self, x: Float32[3]) -> Float32[""]:
        return sf.sum(self.forward(x) ** 2)


def test_numbers_too_large_for_an_element():
    fast = sf.jit(Twice())
    for large in (1e39, 2 ** 200, -1e300):
        with pytest.raises(OverflowError, match=r"x\[0\].*too large for f32"):
            fast([[large, 1, 1]])
    assert np.isinf(fast([[float("inf"), 1, 1]])[0, 0])
    half = sf.compile("fn main(x: f16[1]) -> f32[1] = f32(x)")
    with pytest.raises(OverflowError, match="f16"):
        half([[70000.0]])


def test_texts_and_paths_that_are_none(tmp_path):
    fast = sf.jit(Twice())
    with pytest.raises(ValueError, match="NUL"):
        fast.save(str(tmp_path / "a\0b.sheafc"))
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="NUL"):
        sf.load("a\0b.sheafc")
    source = "fn main(x: int) -> int = x"
    for option in ({"entry": "\ud800"}, {"name": "\ud800"}, {"dims": {"\ud800": 3}}, {"without": ["\ud800"]},
                   {"vocab": ["<unk>", "\ud800"]}, {"weights": {"\ud800": np.zeros(1, "f4")}},
                   {"weights": "\udcff.safetensors"}, {"store": "\udcff"}):
        with pytest.raises(ValueError, match="UTF-8"):
            sf.compile(source, **option)
    with pytest.raises(TypeError, match="str, not bytes"):
        sf.compile(source.encode())
    fast.save(str(tmp_path / "m.sheafc").encode())  # bytes are paths, too
    assert (sf.load(str(tmp_path / "m.sheafc").encode())([[1, 2, 3]]) == [[2, 4, 6]]).all()


def test_params_written_between_steps_of_fit():
    model = Twice()
    fast = sf.jit(model)
    xs = np.ones((4, 3), "f4")
    scales = []
    for step in fast.fit((xs,), batch=4, epochs=3, optimizer=sf.optim.SGD(fast, lr=0.0)):
        scales.append(float(np.asarray(model.scale.value)[0]))
        model.scale.value = np.full(3, 10.0 + step.step, "f4")
        assert fast(xs)[0, 0] == 10.0 + step.step
    assert scales == [2.0, 11.0, 12.0]


def test_views_of_torch_with_another_sign():
    torch = pytest.importorskip("torch")
    view = torch.tensor([1 + 2j, 3 + 4j, 5 + 6j]).conj().imag
    fast = sf.jit(Twice())
    with pytest.raises(ValueError, match="resolve_neg"):
        fast([view])
    assert (fast([view.resolve_neg()]) == [[-4, -8, -12]]).all()


def test_gradients_of_gradients_are_an_error():
    torch = pytest.importorskip("torch")
    net = sf.jit(Twice()).to_torch()
    x = torch.ones(2, 3, requires_grad=True)
    gradient, = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    assert (gradient == 2.0).all()
    with pytest.raises(RuntimeError, match="differentiable once"):
        gradient.square().sum().backward()


def test_trainings_lose_nothing(fast, data):
    trees, labels = data[0][:6], data[1][:6]
    opt, gradients = sf.optim.SGD(fast, lr=0.01), sf.value_and_grad(fast.loss)

    def rounds():
        for _ in range(15):
            gradients(trees, labels)
            fast.train_step(opt, "loss", trees, labels)
            sf.vjp(fast.vector, trees)[1](np.ones((6, 6), np.float32))
            with fast.fit((trees, labels), dev=(trees, labels), metric="accuracy", batch=3, epochs=1) as fit:
                next(fit)
            for wrong in ((trees, labels[:5]), (trees, ["a"] * 6)):
                with pytest.raises((TypeError, ValueError)):
                    fast.train_step(opt, "loss", *wrong)

    rounds()
    watched = [trees, trees[0], labels, fast.module, opt]
    gc.collect()
    before, blocks = [sys.getrefcount(one) for one in watched], sys.getallocatedblocks()
    rounds()
    gc.collect()
    after = [sys.getrefcount(one) for one in watched]
    assert all(count <= was for count, was in zip(after, before)), (before, after)
    assert sys.getallocatedblocks() - blocks < 200
