"""The list of operators, and what each refuses and gives at the ends of what it is defined for."""
import builtins
import inspect
import json
import math

import numpy as np
import pytest

import sheaf as sf
from sheaf import ShapeError, ops, tensor

INF, NAN = math.inf, math.nan


def signature(function):
    """As `sheaf help operators` writes it."""
    parts = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            parts.append(f"{name}...")
        elif parameter.default is inspect.Parameter.empty:
            parts.append(name)
        else:
            default = {("axis", None): "none", ("scale", None): "1/sqrt(d)", ("stride", None): "size"}.get(
                (name, parameter.default), repr(parameter.default))
            parts.append(f"{name}={default}")
    return f"{function.__sheaf_operator__}({', '.join(parts)})"


def test_every_operator_is_here(sheaf):
    listed = {row["name"]: row["signature"]
              for row in json.loads(sheaf("help", "operators", "--json").stdout)["rows"]}
    assert {name: signature(function) for name, function in ops.OPERATORS.items()} == listed
    for function in ops.OPERATORS.values():
        assert getattr(sf, function.__name__) is function
        assert not hasattr(__builtins__, function.__name__) or function.__name__ not in sf.__all__


def test_a_star_hides_nothing_of_python():
    space = {}
    exec("from sheaf import *", space)
    assert not set(space) & set(dir(builtins)) - {"__build_class__", "__doc__", "__name__"}
    assert {"Module", "softmax", "Float32", "from_torch"} <= set(space)


def test_methods_are_the_operators():
    x = tensor([[1.0, 2.0], [3.0, 5.0]])
    for name, function in ops.OPERATORS.items():
        assert not function.is_method or callable(getattr(x, name))
    assert x.sum(0).tolist() == [4, 7] and x.mean().item() == 2.75 and x.argmax().tolist() == [1, 1]
    assert x.reshape(4).tolist() == x.reshape((4,)).tolist() == [1, 2, 3, 5]
    assert x.T.tolist() == [[1, 3], [2, 5]] and x.max(axis=1).tolist() == [2, 5]
    assert x[0].softmax().sum().item() == 1 and (x @ x.T).shape == (2, 2)


def test_f32_stays_f32():
    x = tensor([1.0, 2.0])
    s = x.sum()
    made = [x + 1, 2.0 * x, x / 3, x ** 2, 1 - x, x.mean() * 2.0, s + 0.1, s * s, s ** 0.5, -s, x[0] * 3.0,
            x + np.float64(0.1), np.array([0.1, 0.2]) + x, np.arange(2.0) @ x, x @ np.eye(2), np.tanh(x),
            np.sum(x), np.multiply(x, 2.0), np.add(s, 1.5), sf.sqrt(s), sf.exp(2), sf.full(0.5, 2), abs(x)]
    for value in made:
        assert type(value) is sf.Tensor and value.dtype == np.float32, value
    for row in x:
        assert type(row) is sf.Tensor and row.shape == ()
    assert isinstance(s.item(), float) and isinstance(x.argmax().item(), int) and (x > 1).tolist() == [
        False, True]
    assert tensor([1, 2]).dtype == np.int32 and tensor([2 ** 40]).dtype == np.int64
    assert tensor(np.arange(3.0).astype(">f8")).dtype.isnative and tensor(np.uint8([3])).dtype == np.int32


def test_values_never_change():
    x = tensor([1.0, 2.0])
    y = x
    y += 1
    assert x.tolist() == [1, 2] and y.tolist() == [2, 3]
    with pytest.raises(TypeError, match="never change"):
        x[0] = 3
    with pytest.raises(TypeError, match="never change"):
        np.add(x, 1, out=x)


@pytest.mark.parametrize("make, said", [
    (lambda x, m: x + sf.zeros(4), r"cannot add f32\[3\] and f32\[4\]: .*\(3, 4\)"),
    (lambda x, m: m - sf.zeros(4), r"cannot subtract f32\[4\] from f32\[2, 3\]: the last extents"),
    (lambda x, m: m @ x[:2], r"cannot multiply f32\[2, 3\] by f32\[2\]: the inner extents differ \(3, 2\)"),
    (lambda x, m: sf.ones(2, 2, 3) @ sf.ones(3, 3, 4), r"batch extents differ \(2, 3\)"),
    (lambda x, m: sf.concat(x, m), r"f32\[3\] and f32\[2, 3\] along axis 0: the numbers of axes"),
    (lambda x, m: sf.concat(m, sf.ones(2, 4)), r"the extents of axis 1 differ \(3, 4\)"),
    (lambda x, m: sf.stack([x, x[1:]]), r"cannot stack f32\[3\] and f32\[2\]"),
    (lambda x, m: sf.stack([]), "empty list"), (lambda x, m: sf.split(x, 2), "3 is not a multiple of 2"),
    (lambda x, m: x.reshape(2, 2), r"cannot reshape f32\[3\] to \[2, 2\]"),
    (lambda x, m: x.reshape(-1), "none is -1"), (lambda x, m: x.T, "1 axis, and at least 2"),
    (lambda x, m: m.sum(2), "axis 2 is out of range"), (lambda x, m: sf.squeeze(m), "extent is 2, not 1"),
    (lambda x, m: sf.layer_norm(m, x[:2], x), r"\(3, 2\)"), (lambda x, m: sf.dot(m, x), "not a vector"),
    (lambda x, m: sf.broadcast_to(x, 2, 2), r"f32\[3\] to \[2, 2\]"),
    (lambda x, m: sf.cross_entropy(m, tensor([0])), "one label for each row"),
    (lambda x, m: sf.attention(m, m[:, :2], m), r"queries and keys differ \(3, 2\)"),
    (lambda x, m: sf.attention(m, m, sf.ones(3, 3)), r"one value for each key \(2, 3\)"),
    (lambda x, m: sf.masked_attention(m, m, m, sf.ones(3, 2) > 0), r"\(2, 3\)"),
    (lambda x, m: sf.attention(x, m, m, causal=1), "single query"),
    (lambda x, m: sf.top_k(x, 4), "axis 0 has 3"), (lambda x, m: sf.rope(x), "3 is not even"),
    (lambda x, m: sf.take_along(m, tensor([0])), "numbers of axes"), (lambda x, m: sf.zeros(-1), "at least 0"),
    (lambda x, m: sf.scatter_add(m, tensor([0]), sf.ones(1, 2)), r"axis 1 differ \(3, 2\)"),
    (lambda x, m: sf.segment_sum(m, tensor([0]), 1), r"\(2, 1\)"), (lambda x, m: m[0, 0, 0], "2 axes"),
    (lambda x, m: sf.einsum("ij,ij->i", m, sf.ones(2, 2)), "'j' stands for extents that differ"),
    (lambda x, m: sf.kl_div(x, m), "shapes differ"), (lambda x, m: sf.tril(x), "no matrix"),
    (lambda x, m: sf.read(x), "3 elements"), (lambda x, m: sf.read_all(m), "2 axes")])
def test_shapes_that_do_not_fit(make, said):
    with pytest.raises(ShapeError, match=said):
        make(tensor([1.0, 2.0, 3.0]), sf.ones(2, 3))


@pytest.mark.parametrize("make, said", [
    (lambda x, k: k + 0.5, "elements are ints"), (lambda x, k: x + k, "element types differ"),
    (lambda x, k: k / 2, "takes floats, not i32"), (lambda x, k: x * True, "element types differ"),
    (lambda x, k: (x > 0) + 1, "takes numbers, not bool"), (lambda x, k: k @ x, "are not floats"),
    (lambda x, k: sf.where(x, x, x), "bool condition"), (lambda x, k: x & x, "takes bools"),
    (lambda x, k: sf.mean(k), "not floats"), (lambda x, k: x // 2, "//"), (lambda x, k: x % 2, "%"),
    (lambda x, k: sf.sum([x, x]), "Python's own sum"), (lambda x, k: sf.tanh([1.0]), "not a tensor"),
    (lambda x, k: sf.concat([x], x), "not a tensor"), (lambda x, k: sf.concat([x, x]), "one by one"), (lambda x, k: x[0.5], "ints and slices"),
    (lambda x, k: x[None], "expand_dims"), (lambda x, k: x[::-1], "flip"), (lambda x, k: x[x], "a tensor of ints"),
    (lambda x, k: x + np.array(["a"]), "no tensor"), (lambda x, k: x + np.zeros(2, complex), "no tensor"),
    (lambda x, k: sf.one_hot(0.5, 3), "int, a token"), (lambda x, k: x + None, "unsupported operand"),
    (lambda x, k: sf.full(x, 3), "fills with a number"), (lambda x, k: sf.f32([1.0]), "cannot convert"),
    (lambda x, k: range(x[0]), "f32 is no int"), (lambda x, k: sf.zeros(2.0), "is an int"),
    (lambda x, k: sf.einsum("ii->i", sf.ones(2, 2)), "each once"), (lambda x, k: bool(x), "not one answer")])
def test_operands_of_the_wrong_kind(make, said):
    with pytest.raises((TypeError, ValueError), match=said):
        make(tensor([1.0, 2.0]), tensor([1, 2]))


def test_indices_mean_what_python_means():
    x, m = tensor([1.0, 2.0, 3.0]), tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x[-1].item() == 3 and x[-2:].tolist() == [2, 3] and x[:-1].tolist() == [1, 2]
    assert m[:, 1].tolist() == [2, 4] and m[-1, 0:1].tolist() == [3] and x[3:3].tolist() == []
    assert x[x.argmax()].item() == 3 and x[[2, 0]].tolist() == [3, 1]
    assert [10, 20][tensor(1)] == 20 and list(range(tensor(2))) == [0, 1]
    for wrong in (lambda: x[3], lambda: x[-4], lambda: x[1:5], lambda: m[0, 2], lambda: x[[0, 3]],
                  lambda: sf.index(x, -1), lambda: sf.element(m, 2, axis=1), lambda: sf.slice(x, 2, 2),
                  lambda: sf.cross_entropy(x, 3), lambda: sf.cross_entropy(x, -1), lambda: x[2:1]):
        with pytest.raises(IndexError, match="out of range"):
            wrong()


def test_numbers_of_the_host():
    assert sf.max(2, 5) == 5 and sf.min(2.0, 5.0) == 2.0 and sf.abs(-3) == 3
    assert math.isnan(sf.max(NAN, 1.0)) and math.isnan(sf.min(1.0, NAN))
    assert sf.sqrt(2.0) == math.sqrt(2) and sf.exp(1.0) == math.e and sf.floor(-0.5) == -1.0
    assert sf.log(0.0) == -INF and sf.pow(0.0, -1.0) == INF and type(sf.exp(1.0)) is float
    assert sf.exp(1).dtype == np.float32 and round(sf.read(sf.exp(1)), 5) == 2.71828


def test_ints_wrap():
    k = tensor(np.int32([2 ** 31 - 1, -2 ** 31]))
    assert (k + 1).tolist() == [-2 ** 31, -2 ** 31 + 1] and (-k).tolist() == [-2 ** 31 + 1, -2 ** 31]
    assert abs(k).tolist() == [2 ** 31 - 1, -2 ** 31] and k.sum().item() == -1
    assert (k * 2).tolist() == [-2, 0] and (k + 2 ** 32).tolist() == k.tolist()


def test_draws_are_asked_for():
    for draw in (lambda: sf.random(2), lambda: sf.random_normal(2), lambda: sf.sample(sf.ones(3))):
        with pytest.raises(RuntimeError, match="sheaf.draws"):
            draw()
    x = sf.ones(1000)
    assert np.array_equal(sf.dropout(x, 0.25), x)
    with sf.draws(seed=1):
        one, two, same = sf.random(4), sf.random(4), sf.dropout(x, 0.5)
    with sf.draws(seed=1, dropout=True):
        again = sf.random(4)
        dropped = sf.dropout(x, 0.25)
    assert one.tolist() == again.tolist() != two.tolist() and np.array_equal(same, x)
    assert set(dropped.tolist()) == {0, np.float32(1 / 0.75)} and 700 < np.count_nonzero(dropped) < 800
    with pytest.raises(ValueError, match="probability"):
        sf.dropout(x, 1.0)


def test_draws_are_those_of_a_function_without_calls(sheaf, tmp_path):
    (tmp_path / "d.sheaf").write_text(
        "fn main(x: f32[4]) -> (f32[3, 5], f32[100], i32, f32[4]) =\n"
        "  (random(3, 5), random_normal(100), sample(x), dropout(x, 0.5))\n")
    (tmp_path / "d.jsonl").write_text("[0, 1, 2, 3]\n[1, 1, 1, 1]\n")
    run = sheaf("run", tmp_path / "d.sheaf", "--data", tmp_path / "d.jsonl", "--sample-seed", 7, "--dropout")
    for instance, line in enumerate(run.stdout.splitlines()):
        a, b, c, d = json.loads(line)
        x = tensor([[0.0, 1, 2, 3], [1.0, 1, 1, 1]][instance])
        with sf.draws(seed=7, instance=instance, dropout=True):
            drawn = sf.random(3, 5), sf.random_normal(100), sf.sample(x), sf.dropout(x, 0.5)
        assert np.array_equal(drawn[0], np.float32(a)) and drawn[2].item() == c
        np.testing.assert_allclose(drawn[1], b, atol=1e-5)
        assert np.array_equal(drawn[3], np.float32(d))
