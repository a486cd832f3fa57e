"""Modules: names, weights in and out, copies."""
import copy
import pickle
import threading

import numpy as np
import pytest

import sheaf as sf
from sheaf import Module, Param, ShapeError, glorot, normal


class Inner(Module):
    def __init__(self, n):
        self.n, self.w, self.b = n, Param(n, n, init=glorot), Param(n)

    def forward(self, x):
        return x @ self.w + self.b


class Outer(Module):
    def __init__(self, n=3, layers=2):
        self.n, self.rate, self.name = n, 0.5, "outer"
        self.table = Param(5, n, init=normal(0.1))
        self.layers = [Inner(n) for _ in range(layers)]
        self.last = Inner(n)

    def forward(self, words):
        x = self.table[words]
        for layer in self.layers:
            x = layer(x)
        return self.last(x.mean(0))


NAMES = ["table", "layers.0.w", "layers.0.b", "layers.1.w", "layers.1.b", "last.w", "last.b"]


def test_names():
    model = Outer()
    assert [name for name, _ in model.named_parameters()] == NAMES
    assert [name for name, _ in model.named_modules()] == ["", "layers.0", "layers.1", "last"]
    assert list(model.children()) == [*model.layers, model.last]
    assert len(list(model.parameters())) == 7 and list(model.modules())[0] is model
    assert [name for name, _ in model.named_parameters("m.")][0] == "m.table"
    assert "(layers.1): Inner(n=3" in repr(model) and "Param(5, 3, init=normal(0.1))" in repr(model)


def test_runs():
    model, words = Outer(), [0, 3, 3]
    x = model.table.value[words]
    for layer in model.layers:
        x = x @ layer.w.value + layer.b.value
    wanted = x.mean(0) @ model.last.w.value + model.last.b.value
    got = model(words)
    assert isinstance(got, sf.Tensor) and got.dtype == np.float32
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_a_param_is_its_value_in_expressions():
    w = Param(init=np.arange(6).reshape(2, 3))
    assert w.shape == (2, 3) and w.value.dtype == np.float32 and len(w) == 2 and w.size == 6
    assert (np.ones(2) @ w).tolist() == [3, 5, 7] and (w @ np.ones(3)).tolist() == [3, 12]
    assert (2 * w - 1)[1, -1].item() == 9 and w.T.shape == (3, 2) and w[0:1].shape == (1, 3)
    assert w.sum().item() == 15 and np.asarray(w).sum() == 15 and (-w).min().item() == -5
    assert [row.tolist() for row in w] == [[0, 1, 2], [3, 4, 5]]


def test_state_dict_goes_out_and_in():
    one, other = Outer(), Outer().initialize(seed=5)
    state = one.state_dict()
    assert list(state) == NAMES and state["table"] is one.table.value
    kept = other.table.value
    assert other.load_state_dict(state) == ([], [])
    assert other.table.value is kept, "written to the memory that is there"
    assert all(np.array_equal(a.value, b.value) for a, b in zip(one.parameters(), other.parameters()))
    other.table.value[...] = 0
    assert one.table.value.any()


def test_load_state_dict_refuses_whole():
    model = Outer()
    before = {name: value.copy() for name, value in model.state_dict().items()}
    state = {name: value + 1 for name, value in before.items()}
    state["last.w"] = np.zeros((2, 2))
    del state["table"]
    state["more"] = np.zeros(1)
    with pytest.raises(ValueError) as error:
        model.load_state_dict(state)
    for said in ("missing: table", "not of this model: more", "'last.w' has the shape (2, 2)", "(3, 3)"):
        assert said in str(error.value)
    assert all(np.array_equal(before[name], value) for name, value in model.state_dict().items())
    state["last.w"] = np.zeros((3, 3), np.float64)
    assert model.load_state_dict(state, strict=False) == (["table"], ["more"])
    assert not model.last.w.value.any() and model.last.w.value.dtype == np.float32
    state["last.w"] = np.array(["a"])
    with pytest.raises(ValueError, match="elements of"):
        model.load_state_dict(state, strict=False)


def test_one_param_with_two_names():
    class Tied(Module):
        def __init__(self):
            self.a = Param(2, 2, init=normal(1.0))
            self.b = self.a

    model = Tied()
    assert [name for name, _ in model.named_parameters()] == ["a"]
    assert list(model.state_dict()) == ["a", "b"]
    other = copy.deepcopy(model)
    assert other.a is other.b and other.a is not model.a


def test_copies_and_pickles():
    model = Outer()
    # A view of memory that something else lays out, as that of a session.
    rows = np.zeros((5, 16), np.float32)
    rows[:, :3] = model.table.value
    model.table.value = rows[:, :3]
    assert model.table.value.base is rows, "taken without a copy"
    other, again = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    for made in (other, again):
        assert [name for name, _ in made.named_parameters()] == NAMES and made.rate == 0.5
        assert np.array_equal(made([1, 2]), model([1, 2]))
        assert made.table.value.flags.c_contiguous
        made.table.value[...] = 0
    assert rows.any() and copy.copy(model).table is model.table


def test_values_that_a_param_refuses():
    param = Param(2, 3)
    with pytest.raises(RuntimeError, match="no value yet"):
        param.value
    with pytest.raises(ShapeError, match=r"\(2, 3\).*\(3, 2\)"):
        param.value = np.zeros((3, 2))
    with pytest.raises(TypeError, match="complex"):
        param.value = np.zeros((2, 3), complex)
    param.value = np.zeros((2, 3), ">f8")
    assert param.value.dtype == np.float32
    with pytest.raises(TypeError, match="never change"):
        param[0] = 1
    with pytest.raises(ShapeError):
        Param(2, init=np.zeros(3))


def test_params_where_nothing_finds_them():
    class Hidden(Module):
        def __init__(self, what):
            self.what = what

    for what in ({"a": Param(2)}, [[Inner(2)]], {"x": Inner(2)}):
        with pytest.raises(TypeError, match="'what"):
            Hidden(what)

    class Round(Module):
        def __init__(self):
            self.inside = self

    with pytest.raises(ValueError, match="inside itself"):
        Round()


def test_constructors_side_by_side():
    """What one thread makes does not keep another from giving values."""
    class Slow(Module):
        def __init__(self, wait):
            wait()
            self.w = Param(2)

    began, go = threading.Event(), threading.Event()
    thread = threading.Thread(target=Slow, args=(lambda: (began.set(), go.wait()),))
    thread.start()
    began.wait()
    assert Inner(2).w.initialized
    go.set()
    thread.join()


def test_without_forward():
    with pytest.raises(NotImplementedError, match="Empty"):
        type("Empty", (Module,), {})()(1)


class Typed(Module):
    def __init__(self, hidden=3):
        self.hidden = hidden
        self.w = Param(hidden, hidden, init=glorot)

    def forward(self, x: sf.Float32["n hidden"], y: sf.Float32["2*n"] = None, k: sf.Tokens["n"] = (),
                scale: float = 1.0) -> sf.Float32["n hidden"]:
        self.seen = type(x), x.dtype
        return x @ self.w * scale


def test_inputs_are_checked_by_annotations():
    model = Typed()
    for given in (np.ones((2, 3)), [[1, 2, 3], [4.5, 5, 6]], sf.ones(2, 3), np.ones((2, 3), ">f4")):
        assert model(given).shape == (2, 3) and model.seen == (sf.Tensor, np.float32)
    assert model(np.ones((2, 3)), np.ones(4), [1, 2], scale=2.0).dtype == np.float32
    assert model(x=np.ones((2, 3)), y=np.ones(4)).shape == (2, 3)
    for wrong, said in (
            (lambda: model(np.ones((2, 4))), r"'x' is Float32\[\"n hidden\"\], and is f32\[2, 4\]: hidden is 3"),
            (lambda: model(np.ones(3)), r"and is f32\[3\]"),
            (lambda: model(np.ones((2, 3)), np.ones(5)), r"2\*n is 4"),
            (lambda: model(np.ones((2, 3)), np.ones(4), [1]), r"n is 2"),
            (lambda: model([[1.0, 2, 3], [4.0]]), "not equally long")):
        with pytest.raises(ShapeError, match=said):
            wrong()
    with pytest.raises(TypeError, match="elements of bool"):
        model(np.ones((2, 3), bool))
    with pytest.raises(TypeError, match="elements of f32|float64"):
        model(np.ones((2, 3)), np.ones(4), [1.5, 2.0])
    with pytest.raises(TypeError, match="str was given"):
        model("words")
    with pytest.raises(OverflowError):
        model(np.ones((1, 3)), np.ones(2), [2 ** 40])

    class Wrong(Typed):
        def forward(self, x: sf.Float32["n hidden"]) -> sf.Float32["hidden"]:
            return x

    with pytest.raises(ShapeError, match="the result"):
        Wrong()(np.ones((2, 3)))


def test_lists_of_inputs_are_taken_and_not_changed():
    class Sum(Module):
        def forward(self, xs: list[sf.Float32["n"]], pair: tuple[sf.Float32["2"], int] = ((0, 0), 0)
                    ) -> sf.Float32["n"]:
            total = xs[0]
            total += pair[1]
            for x in xs[1:]:
                total += x
            return total

    given = [np.ones(2), np.ones(2, np.float32), [2, 3]]
    assert Sum()(given).tolist() == [4, 5] and given[0].tolist() == given[1].tolist() == [1, 1]
    assert Sum()(given, (np.zeros(2), 5)).tolist() == [9, 10]
    assert Sum()(np.ones((3, 2))).tolist() == [3, 3]
    with pytest.raises(ShapeError, match="part 0"):
        Sum()(given, (np.zeros(3), 5))
    with pytest.raises(TypeError, match="element 1.*str"):
        Sum()([given[0], "a"])
    with pytest.raises(TypeError, match="tuple of 2, and 3"):
        Sum()(given, (np.zeros(2), 5, 5))


def test_names_of_pytorch_say_what_to_write():
    x, model = sf.ones(2, 3), Outer()
    for make, said in ((lambda: x.unsqueeze(0), "expand_dims"), (lambda: x.view(3, 2), "reshape"),
                       (lambda: sf.cat, "concat"), (lambda: sf.nn.Parameter, "sheaf.Param"),
                       (lambda: sf.nn.ModuleList, "a list of Modules"), (lambda: model.eval(), "dropout drops in training"),
                       (lambda: model.table.detach(), "stop_gradient"), (lambda: x.masked_fill, "where"),
                       (lambda: sf.nn.functional, "sf.relu"), (lambda: model.nothing, "'Outer' object has no attribute 'nothing'$")):
        with pytest.raises(AttributeError, match=said):
            make()
    assert not hasattr(model, "missing") and getattr(x, "missing", 3) == 3 and not hasattr(sf, "missing_")
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist() and np.asarray(x).view(np.int32).dtype == np.int32


def test_hints_are_of_names_that_are_not_here():
    """And what they say to write is."""
    from sheaf import hints, nn
    for name in hints.FUNCTIONS:
        assert not hasattr(sf, name) or name in ("float", "type"), name
    assert not [name for name in hints.LAYERS if hasattr(nn, name)]
    assert not [name for name in hints.METHODS if hasattr(Module, name)]
