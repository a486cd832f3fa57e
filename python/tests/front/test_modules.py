"""Modules in Modules: lists of layers that differ, tied names, constants that choose, early exits."""
from types import MappingProxyType

import numpy as np
import pytest

import sheaf as sf

from conftest import agree, eager
from sheaf import *
from sheaf import jit

pytest.importorskip("sheaf._native")

class Lin(Module):
    def __init__(self, n, m, bias=True):
        self.n, self.m = n, m
        self.w = Param(n, m, init=normal(0.3))
        self.b = Param(m) if bias else None

    def forward(self, x: Float32["n"]) -> Float32["m"]:
        y = x @ self.w
        if self.b is not None:
            y = y + self.b
        return y


class Zoo(Module):
    K = 2

    def __init__(self):
        self.layers = [Lin(3, 4), Lin(4, 4, bias=False), Lin(4, 3)]
        self.same = [Lin(3, 3) for _ in range(3)]
        self.ws = [Param(3, init=normal(1.0)), Param(3, init=normal(1.0))]
        self.none = []
        self.mode = "mean"
        self.sizes = [1, 2, 3]
        self.norm, self.sum = Lin(3, 3), 5
        self.deep = Zoo2(self.K)

    def a(self, x: Float32["3"]) -> Float32["3"]:
        for layer in self.layers:
            x = layer(x)
        for w in self.ws:
            x = x * w
        for layer in self.none:
            x = layer(x)
        return x

    def b(self, x: Float32["3"]) -> tuple[Float32["3"], Float32["3"]]:
        for i in range(len(self.same)):
            x = self.same[i](x)
        ys = [self.same[i](x) for i in range(2)]
        zs = [l(x) for l in self.same[1:]]
        return sum(ys), sum(zs)

    def c(self, x: Float32["3"], i: int) -> Float32["3"]:
        return self.same[i](x) + self.same[-1].w[0] + self.ws[1]

    def d(self, x: Float32["n"]) -> float:
        match self.mode:
            case "mean":
                y = x.mean()
            case "sum" | "total":
                y = x.sum() + undefined_here
        if self.mode == "sum":
            y = nothing(x)
        return y.item() + self.sum + sum(self.sizes) + self.K + Zoo.K

    def e(self, x: Float32["3"]) -> Float32["3"]:
        norm = self.norm
        sum = norm(x)
        w = self.norm.w
        for i, layer in enumerate(self.same):
            if i == 1:
                continue
            if (x.sum() > 100 * i).item():
                break
            sum = sum + layer(x) * i
        else:
            sum = sum * 2
        return sum + w[0]

    def f(self, x: Float32["3"], cut: float) -> tuple[int, Float32["3"]]:
        for i, layer in enumerate(self.same):
            x = layer(x)
            if x.sum() > cut:
                return i, x
        return -1, x

    def g(self, x: Float32["3"]) -> Float32["3"]:
        return self.deep(x) + self.deep.inner.helper(x, times=2)

    def h(self, x: Float32["a"], y: Float32["b"]) -> Float32["a"]:
        assert x.shape == y.shape and len(x) > 0
        return x + y


class Zoo2(Module):
    def __init__(self, k):
        self.k = k
        self.inner = Zoo3()

    def forward(self, x: Float32["n"]) -> Float32["n"]:
        return self.inner.helper(x) * self.k + self.twice(x)

    @staticmethod
    def twice(x: Float32["n"]) -> Float32["n"]:
        return x * 2


class Zoo3(Module):
    def helper(self, x: Float32["n"], times: int = 1) -> Float32["n"]:
        for _ in range(times):
            x = tanh(x)
        return x


X = np.float32([0.1, -0.2, 0.4])
CALLS = {"a": [(X,)], "b": [(X,)], "c": [(X, 1), (X, -3)], "d": [(X,)], "e": [(X,)],
         "f": [(X, 0.0), (X, 5.0), (X, -5.0)], "g": [(X,)], "h": [(X, X), (X, X[:2])]}


@pytest.fixture(scope="module")
def zoo():
    model = Zoo()
    return model, jit(model)


@pytest.mark.parametrize("name", CALLS)
def test_agrees(zoo, name):
    model, fast = zoo
    got = getattr(fast, name)(*zip(*CALLS[name]), errors="return")
    for arguments, result in zip(CALLS[name], got):
        assert agree(eager(getattr(model, name), arguments), result), (arguments, result)


class Up(Module):
    def __init__(self, n):
        self.n, self.w, self.b = n, Param(n, n, init=normal(0.3)), Param(n)

    def forward(self, x: Float32["*rows n"]) -> Float32["*rows n"]:
        return x @ self.w + self.b


class Tied(Module):
    """Weights and layers that stand at several places."""

    def __init__(self, vocab=7, n=3):
        self.vocab, self.n = vocab, n
        self.embed, self.out = nn.Embedding(vocab, n), nn.Linear(n, vocab, bias=False)
        self.out.weight = self.embed.weight
        self.block = Up(n)
        self.blocks = [self.block, Up(n), self.block]
        self.last = self.blocks[1]
        self.ws = [self.block.b, Param(n, init=ones)]

    def forward(self, words: Tokens["k"]) -> Float32["k vocab"]:
        x = self.embed(words)
        for b in self.blocks:
            x = tanh(b(x))
        return self.out(self.last(x) + self.ws[0] * self.ws[1])


def test_a_weight_of_several_places_is_one():
    model = Tied()
    model.block.b.value = np.float32([0.1, -0.2, 0.3])
    fast = jit(model)
    assert sorted(fast.program.weights) == ["block.w", "blocks_1.b", "blocks_1.w", "embed.weight", "ws_0", "ws_1"]
    words = [np.int32([1, 2, 3]), np.int32([0, 6])]
    for x, y in zip(words, fast(words)):
        assert agree(model(x), y)


class Deep(Module):
    """A Param of more than two axes, which has padding between its rows in a session."""

    def __init__(self):
        self.w = Param(3, 2, 5, init=normal(1.0))

    def forward(self, x: Float32["5"]) -> Float32["3 2 5"]:
        return self.w + x


def test_weights_of_more_axes():
    model = Deep()
    fast, x = jit(model), np.arange(5, dtype=np.float32)
    assert np.array_equal(fast([x])[0], model(x))
    model.w.value = np.arange(30, dtype=np.float32).reshape(3, 2, 5)
    assert np.array_equal(fast([x])[0], np.arange(30).reshape(3, 2, 5) + x)
    assert np.array_equal(fast.state_dict()["w"], model.w.value)


class Renamed(Module):
    """Attributes whose names the text cannot have."""

    def __init__(self, n=3):
        self.n, self.let, self.W = n, Param(n), nn.Linear(n, n)
        self.lstm, self.unlike = nn.LSTM(n, n), [nn.Linear(n, 2), nn.Linear(2, n)]

    def forward(self, x: Float32["k n"]) -> Float32["k n"]:
        for layer in self.unlike:
            x = layer(x)
        return self.W(self.lstm(x)[0]) + self.let


def test_weights_by_the_names_of_the_text(tmp_path):
    model, other = Renamed(), Renamed().initialize(seed=1)
    fast, second = jit(model), jit(other)
    xs = [np.float32([[1, -2, 3], [0, 1, 2]])]
    want = fast(xs)
    fast.save(tmp_path / "model.sheafc")
    saved = sf.load(tmp_path / "model.sheafc").parameters
    assert set(saved) == set(fast.state_dict()) != set(model.state_dict())
    assert not np.array_equal(second(xs)[0], want[0])
    assert second.load_state_dict(saved) == ([], [])
    assert np.array_equal(second(xs)[0], want[0])
    for name, value in model.state_dict().items():
        assert np.array_equal(other.state_dict()[name], value), name
    assert np.array_equal(sf.compile(fast.source(), weights=fast.state_dict())(xs)[0], want[0])
    with pytest.raises(ValueError, match="missing: .*not of this model: .*W.bias"):
        second.load_state_dict(model.state_dict())


class Zips(Module):
    def __init__(self):
        self.layers = [Lin(3, 3) for _ in range(3)]

    def shortest(self, x: Float32["3"], ys: list[Float32["3"]]) -> tuple[list[Float32["3"]], int]:
        seen, k = [], 0
        for i, (layer, y) in enumerate(zip(self.layers, ys), 2):
            x = layer(x + y)
            if x.sum() > 0:
                k = k * 10 + i
            seen.append(x)
        else:
            k += 1000
        return seen, k

    def same(self, x: Float32["3"], ys: list[Float32["3"]]) -> Float32["3"]:
        for layer, y in zip(self.layers, ys, strict=True):
            x = layer(x + y)
        return x + sum(layer(y) for layer, y in zip(self.layers, ys, strict=True))


@pytest.mark.parametrize("name", ["shortest", "same"])
def test_layers_beside_a_list(name):
    model = Zips()
    calls = [(X, [X * i for i in range(count)]) for count in range(5)]
    got = getattr(jit(model), name)(*zip(*calls), errors="return")
    for arguments, result in zip(calls, got):
        wanted = eager(getattr(model, name), arguments)
        assert isinstance(wanted, Exception) == (name == "same" and len(arguments[1]) != 3)
        assert agree(wanted, result), (arguments, wanted, result)


class Words(Module):
    def __init__(self, words, tags):
        self.vocab, self.tag_vocab, self.size = words, tags, 2
        self.embedding = Param(len(words), 2, init=normal(1.0))

    def forward(self, word: Token, tag: Token["tag"]) -> Float32["size"]:
        return self.embedding[word] + one_hot(tag, 2)

    def hot(self, word: Token) -> Float32["vocab"]:
        return one_hot(word, 3)

    def other(self, x: Float32["n"]) -> Float32["n"]:
        return x + 1


def test_vocabularies_are_attributes(tmp_path):
    words, tags = ["<unk>", "good", "bad"], ("<unk>", "N")
    model = Words(words, tags)
    fast = jit(model)
    wanted = [model(1, 0), model(2, 1), model(0, 0)]
    assert np.allclose(fast(["good", 2, "none"], ["x", "N", 0]), wanted)
    assert fast.hot(["bad"]).tolist() == [[0, 0, 1]] == [model.hot(2).tolist()]
    assert fast.other([X[:1]])[0] == X[0] + 1
    fast.save(tmp_path / "words.sheafc")
    assert np.allclose(sf.load(tmp_path / "words.sheafc")(["good"], ["x"]), wanted[:1])
    assert np.allclose(jit(model, vocab=["<unk>", "gut", "schlecht"])(["gut"], ["x"]), wanted[:1])
    for given in ({"vocab": MappingProxyType({"": ["<unk>", "gut", "schlecht"]})},
                  {"vocabularies": {"": ["<unk>", "gut", "schlecht"]}}):
        assert np.allclose(jit(model, **given)(["gut"], ["x"]), wanted[:1])
    model.vocab = ["<unk>", "other", "words"]
    with pytest.raises(RuntimeError, match="'vocab' has changed"):
        fast(["good"], ["N"])


class Around(Module):
    def __init__(self, words):
        self.words = Words(words, ["<unk>"])

    def forward(self, word: Token) -> Float32["?"]:
        return self.words.hot(word)


def test_words_of_a_layer_are_watched():
    model = Around(["<unk>", "good", "bad"])
    fast = jit(model, vocab=3)
    assert fast([1])[0].tolist() == [0, 1, 0]
    model.words.vocab = ["<unk>", "good", "bad", "more"]
    with pytest.raises(RuntimeError, match="'vocab' has changed"):
        fast([1])


def test_vocabularies_begin_with_what_is_unknown():
    with pytest.raises(ValueError, match="<unk>"):
        jit(Words(["good", "bad", "so"], ["<unk>", "N"]))(["good"], ["N"])
