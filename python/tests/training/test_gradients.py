"""value_and_grad and vjp, against differences of the losses and each other."""
from typing import NamedTuple

import numpy as np
import pytest

import sheaf as sf
from conftest import Leaf, Node, TreeRNN
from sheaf import Float32, Module, Param, normal, tanh


def difference(fast, module, name, data, direction, step=1e-2):
    """The slope of the mean loss along a direction of one weight."""
    param = dict(module.named_parameters())[name]
    start, losses = np.array(param.value), []
    for sign in (1, -1):
        param.value = start + np.float32(sign * step) * direction
        losses.append(np.mean(fast.loss(*data), dtype=np.float64))
    param.value = start
    return (losses[0] - losses[1]) / (2 * step)


def test_gradients_are_those_of_differences(fast, module, data):
    loss, grads = sf.value_and_grad(fast.loss)(*data)
    assert loss == pytest.approx(np.mean(fast.loss(*data)), rel=1e-6)
    assert list(grads) == [name for name, _ in module.named_parameters() ]
    assert isinstance(grads["embedding"], sf.gradients.Rows) and isinstance(grads["w"], np.ndarray)
    rng = np.random.default_rng(3)
    for name, grad in grads.items():
        shape = dict(module.named_parameters())[name].shape
        if isinstance(grad, sf.gradients.Rows):
            assert list(grad.indices) == sorted(set(grad.indices)) and grad.rows.shape == (len(grad.indices), 6)
            grad = grad.dense(shape)
        direction = rng.standard_normal(shape).astype(np.float32)
        assert np.vdot(grad, direction) == pytest.approx(difference(fast, module, name, data, direction), rel=2e-3,
                                                         abs=2e-4)


def test_sums_and_single_losses(fast, data):
    mean, of_mean = sf.value_and_grad(fast.loss, dense=True)(*data)
    total, of_sum = sf.value_and_grad(fast.loss, reduce="sum", dense=True)(fast.loss.encode(*data))
    each, of_each = sf.value_and_grad(fast.loss, reduce=None, dense=True)(*data)
    assert np.array_equal(each, fast.loss(*data)) and total == pytest.approx(24 * mean)
    for name in of_mean:
        assert np.allclose(of_mean[name] * 24, of_sum[name], atol=1e-5)
        assert np.array_equal(of_sum[name], of_each[name])


class Pair(NamedTuple):
    x: Float32["3"]
    n: int


class Reader(Module):
    def __init__(self):
        self.w = Param(3, 3, init=normal(0.5))

    def read(self, pair: Pair, xs: list[Float32["3"]], k: int) -> Float32["3"]:
        h = tanh(pair.x @ self.w) * float(pair.n)
        for x in xs:
            h = tanh((h + x) @ self.w)
        return h * float(k)

    def loss(self, pair: Pair, xs: list[Float32["3"]], k: int) -> Float32[""]:
        return sf.sum(self.read(pair, xs, k) * self.read(pair, xs, k))

    def maybe(self, x: Float32["3"] | None) -> Float32[""]:
        if x is None:
            return sf.sum(self.w)
        return sf.sum(x * x)

    def lists(self, xs: list[Float32["3"]]) -> list[Pair]:
        return [Pair(x @ self.w, 1) for x in xs]


@pytest.fixture
def reader():
    return sf.jit(Reader())


def vectors(count, seed=0):
    return list(np.random.default_rng(seed).standard_normal((count, 3)).astype(np.float32))


def test_gradients_of_inputs(reader):
    pairs = [Pair(x, 2 + i) for i, x in enumerate(vectors(4))]
    lists = [vectors(i, seed=i) for i in range(4)]
    columns = pairs, lists, [1, 2, 3, 4]
    loss, grads, inputs = sf.value_and_grad(reader.loss, inputs=True, reduce="sum")(*columns)
    of_pairs, of_lists, of_k = inputs
    assert of_k is None and [type(p) for p in of_pairs] == [Pair] * 4 and [p.n for p in of_pairs] == [2, 3, 4, 5]
    assert [len(xs) for xs in of_lists] == [0, 1, 2, 3]
    step = 1e-2
    for i, j in ((1, 0), (3, 2)):
        direction = np.float32([1, -1, 0.5])
        losses = []
        for sign in (1, -1):
            changed = [list(xs) for xs in lists]
            changed[i][j] = changed[i][j] + np.float32(sign * step) * direction
            losses.append(np.sum(reader.loss(pairs, changed, columns[2]), dtype=np.float64))
        assert np.vdot(of_lists[i][j], direction) == pytest.approx((losses[0] - losses[1]) / (2 * step), rel=5e-3,
                                                                   abs=2e-3)
    # What an input's are depends on nothing else in the call.
    alone = sf.value_and_grad(reader.loss, inputs=True, reduce="sum")(pairs[3:], lists[3:], [4])[2]
    assert np.array_equal(alone[0][0].x, of_pairs[3].x)
    assert all(np.array_equal(a, b) for a, b in zip(alone[1][0], of_lists[3]))


def test_gradients_of_inputs_that_may_be_none(reader):
    x = np.float32([1, 2, 3])
    loss, grads, (of_x,) = sf.value_and_grad(reader.maybe, inputs=True, reduce="sum")([x, None])
    assert np.array_equal(of_x[0], 2 * x) and of_x[1] is None and np.array_equal(grads["w"], np.ones((3, 3)))


def test_vjp(fast, data):
    results, back = sf.vjp(fast.vector, data[0])
    arriving = np.random.default_rng(2).standard_normal(results.shape).astype(np.float32)
    grads = back(arriving)
    again = back(np.asfortranarray(arriving.astype(np.float64)))
    sf.vjp(fast.vector, data[0][:3])[1](arriving[:3])
    later = back(arriving)
    for other in (again, later):
        assert np.array_equal(grads["w"], other["w"])
        assert np.array_equal(grads["embedding"].rows, other["embedding"].rows)
    # The same by a loss: through `out`, whose part is known.
    each, of_loss = sf.value_and_grad(fast.loss, reduce="sum", dense=True)(*data)
    scores = np.asarray(fast(data[0]), np.float64)
    at_scores = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    at_scores[np.arange(24), data[1]] -= 1
    at_vectors = (at_scores @ fast.module.out.value.T).astype(np.float32)
    assert np.allclose(sf.vjp(fast.vector, data[0], dense=True)[1](at_vectors)["w"], of_loss["w"], atol=1e-5)


def test_vjp_of_structures(fast, reader, data):
    (vectors_, sevens), back = sf.vjp(fast.both, data[0])
    plain = sf.vjp(fast.vector, data[0])[1](vectors_)
    assert np.array_equal(back((vectors_, None))["w"], plain["w"])
    assert not back((None, None))["w"].rows.size
    with pytest.raises(TypeError, match=r"\[1\]: nothing arrives at int"):
        back((vectors_, sevens))
    # Lists: what arrives at i times a vector is i times that at the vector.
    lists, back = sf.vjp(fast.all, data[0], [3] * 24)
    found = back([[None, v, None] for v in vectors_])
    assert np.array_equal(found["w"], plain["w"])
    found = back([[v, v, v] for v in vectors_])
    assert np.allclose(found["w"], 3 * plain["w"], atol=1e-5)
    # Objects.
    xs = [vectors(2), vectors(3, seed=5)]
    pairs, back = sf.vjp(reader.lists, xs, inputs=True)
    grads, (of_xs,) = back([[Pair(np.ones(3), 1) for _ in p] for p in pairs])
    w = reader.module.w.value
    assert all(np.allclose(x, w.sum(1), atol=1e-6) for one in of_xs for x in one)
    assert np.allclose(grads["w"], sum(x for one in xs for x in one)[:, None] * np.ones(3), atol=1e-5)


def test_results_of_other_weights_have_no_gradients_any_more(fast, module, data):
    results, back = sf.vjp(fast.vector, data[0])
    module.w.value = np.array(module.w.value) * 2
    with pytest.raises(RuntimeError, match="the weights have changed"):
        back(results)


def test_models_of_sheaf_have_gradients_too():
    source = "param w: f32[3] = zeros\nfn loss(x: f32[3]) -> f32 = sum(w * x * x)"
    model = sf.compile(source, entry="loss", weights={"w": np.float32([1, 2, 3])}, training=True, input_gradients=True)
    x = np.float32([[1, 2, 3], [0, 1, 0]])
    loss, grads, (of_x,) = sf.value_and_grad(model, inputs=True, reduce="sum")(x)
    assert loss == 38 and np.array_equal(grads["w"], [1, 5, 9]) and np.array_equal(of_x, 2 * x * [1, 2, 3])
    with pytest.raises(TypeError, match="training=True"):
        sf.value_and_grad(sf.compile(source, entry="loss"))


class Saved(Module):
    def save(self, x: Float32["3"]) -> Float32["3"]:
        return x * 2


def test_what_is_refused(fast, module, data):
    with pytest.raises(TypeError, match="sf.value_and_grad takes a compiled method or function"):
        sf.value_and_grad(module.loss)
    with pytest.raises(TypeError, match=r"fast.methods\['save'\]"):
        sf.value_and_grad(sf.jit(Saved()).save)
    with pytest.raises(TypeError, match=r"'vector' gives f32\[6\], and is no loss"):
        sf.value_and_grad(fast.vector)(data[0])
    with pytest.raises(ValueError, match="reduce is 'max'"):
        sf.value_and_grad(fast.loss, reduce="max")
    with pytest.raises(TypeError, match="label"):
        sf.value_and_grad(fast.loss)(data[0])
    with pytest.raises(ValueError, match="other arguments"):
        sf.value_and_grad(fast.loss)(fast.vector.encode(data[0]))
    with pytest.raises(sf.InstanceErrors) as failed:
        sf.value_and_grad(fast.loss)(data[0][:2], [0, 5])
    assert failed.value.exceptions[0].instance == 1 and "no such class" in str(failed.value.exceptions[0])
    results, back = sf.vjp(fast.vector, data[0])
    with pytest.raises(ValueError):
        back(results[:5])
    with pytest.raises(TypeError, match="the cotangent is str"):
        back("ones")


def test_no_inputs(fast):
    loss, grads = sf.value_and_grad(fast.loss, dense=True)([], [])
    assert np.isnan(loss) and not any(g.any() for g in grads.values())
