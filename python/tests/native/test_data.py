"""Datasets: converted once, sliced, joined, pickled, and what they refuse."""

import pickle

import numpy as np
import pytest
import sheaf as sf

SOURCE = """
dim vocab
data Tree = Leaf(word: token, at: f32[2]) | Node(left: Tree, right: Tree)
fn total(t: Tree) -> f32[2] = match t {
  Leaf(word, at) => at
  Node(l, r) => total(l) * 2 + total(r)
}
fn main(t: Tree, xs: list<f32[?]>, n: int, y: float) -> (f32[2], int, float, int) = (total(t), n, y, len(xs))
fn other(t: Tree, xs: list<f32[?]>, n: int, y: float) -> int = n
fn less(t: Tree) -> f32[2] = total(t)
"""


@pytest.fixture(scope="module")
def model():
    return sf.compile(SOURCE, vocab=10)


@pytest.fixture(scope="module")
def columns(model):
    Leaf, Node = model.types.Leaf, model.types.Node
    trees, rng = [], np.random.default_rng(1)
    for i in range(20):
        tree = Leaf(i % 10, rng.random(2, np.float32))
        for k in range(i % 4):
            tree = Node(tree, Leaf(k, rng.random(2, np.float32)))
        trees.append(tree)
    lists = [[np.zeros(k, np.float32) for k in range(i % 3)] for i in range(20)]
    return trees, lists, list(range(20)), [i / 2 for i in range(20)]


def same(found, expected):
    return all(a.tobytes() == b.tobytes() for a, b in zip(found, expected, strict=True))


def part(columns, which):
    return [[column[i] for i in which] for column in columns]


def test_slices_and_orders(model, columns):
    data = model.encode(*columns)
    assert len(data) == 20 and data.nbytes > 0 and "20 instances" in repr(data)
    assert same(model(data), model(*columns))
    kept = pickle.loads(pickle.dumps(data))
    for given, which in ((slice(3, 9), range(3, 9)), (slice(None, None, -2), range(19, -1, -2)),
                         ([5, 5, -1], [5, 5, 19]), (np.arange(20) % 3 == 0, range(0, 20, 3)),
                         (slice(4, 4), []), (7, [7]), (np.int64(-2), [18])):
        expected = model(*part(columns, which))
        for one in (data, kept, pickle.loads(pickle.dumps(kept[:]))):
            assert same(model(one[given]), expected), given
            assert same(model(pickle.loads(pickle.dumps(one[given]))), expected)
    order = np.random.default_rng(5).permutation(20)
    assert same(model(data.shuffled(5)), model(*part(columns, order)))
    assert [len(batch) for batch in data.batches(8)] == [8, 8, 4]
    assert sum(map(len, data)) == 20


def test_joining(model, columns):
    data = model.encode(*columns)
    fresh = pickle.loads(pickle.dumps(data))
    expected = model(*part(columns, [*range(3), *range(10, 12)]))
    for first in (data[:3], fresh[:3]):
        for second in (data[10:12], pickle.loads(pickle.dumps(data[10:12]))):
            assert same(model(first + second), expected)
            assert same(model(data.collate([first, second])), expected)
    assert data.collate(data[:2]).nbytes == data[:2].nbytes
    assert same(model(data.collate(data.__getitems__([0, 1, 2, 10, 11]))), expected)


def test_models_with_the_same_arguments_share(model, columns):
    data = model.encode(*columns)
    other = sf.compile(SOURCE, vocab=10, entry="other")
    assert other(data).tolist() == columns[2]
    assert other(pickle.loads(pickle.dumps(data)))[4] == 4
    for wrong in (sf.compile(SOURCE, vocab=10, entry="less"),
                  sf.compile(SOURCE, vocab=11, entry="other")):
        for given in (data, pickle.loads(pickle.dumps(data))):
            with pytest.raises(ValueError, match="other arguments"):
                wrong(given)


def test_a_dataset_outlives_its_model(columns):
    made = sf.compile(SOURCE, vocab=10)
    data = made.encode(*columns)
    expected = made(data)
    del made
    assert same(sf.compile(SOURCE, vocab=10)(data), expected)


def test_wrong_indices_and_states(model, columns):
    data = model.encode(*columns)
    for wrong in (20, -21, [0, 20], [1.5], np.zeros((2, 2), int), np.ones(3, bool), "ab"):
        with pytest.raises(IndexError):
            data[wrong]
    with pytest.raises(ValueError):
        list(data.batches(0))
    with pytest.raises(ValueError):
        data.collate([])
    signature, count, arrays = data.__getstate__()
    for name in ("heads", "numbers", "floats", "shapes", "elements"):
        changes = [lambda a: a[:-1], lambda a: np.concatenate([a, a[-1:]]),
                   lambda a: a.astype(np.float16), lambda a: "none"]
        if name in ("heads", "shapes"):  # other numbers are numbers
            changes.append(lambda a: a + 77)
        for change in changes:
            for k in range(len(arrays)):
                if not len(arrays[k][name]):
                    continue
                broken = [dict(column) for column in arrays]
                broken[k][name] = change(arrays[k][name])
                with pytest.raises(ValueError):
                    model(sf.Dataset(arrays=(signature, count, broken)))
    with pytest.raises(ValueError):
        model(sf.Dataset(arrays=(signature, count + 1, arrays)))
