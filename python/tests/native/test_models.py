"""Loading, compiling, running."""

import gc
import json
import os
import pickle
import subprocess
import traceback

import numpy as np
import pytest
import sheaf as sf
from sheaf.errors import ArtefactError

ROOT = os.path.join(os.path.dirname(__file__), *[os.pardir] * 3)
SQUARE = "fn main(x: f32[3]) -> f32 = sum(x * x)"
TREES = """
dim vocab
data Tree = Leaf(word: token) | Node(left: Tree, right: Tree)
param embedding : f32[vocab, 4] = normal(1.0)
param w : f32[8, 4] = glorot
fn encode(t: Tree) -> f32[4] = match t {
  Leaf(word) => embedding[word]
  Node(l, r) => tanh(concat(encode(l), encode(r)) @ w)
}
fn main(t: Tree) -> f32[4] = encode(t)
fn both(t: Tree, k: int) -> (f32[4], int) = (encode(t), k + 1)
fn flip(t: Tree) -> Tree = match t {
  Leaf(word) => Leaf(word)
  Node(l, r) => Node(flip(r), flip(l))
}
fn third(xs: list<int>) -> int = xs[2]
"""
WORDS = ["<unk>", "a", "b", "c"]


@pytest.fixture(scope="module")
def trees():
    return sf.compile(TREES, vocab=WORDS)


def test_a_list_in_one_array_out():
    model = sf.compile(SQUARE)
    xs = np.arange(12, dtype=np.float32).reshape(4, 3)
    expected = (xs * xs).sum(1)
    for given in (xs, list(xs), xs.tolist(), tuple(xs), xs[::-1][::-1]):
        found = model(given)
        assert found.dtype == np.float32 and found.shape == (4,)
        np.testing.assert_allclose(found, expected)
    assert model([]).shape == (0,)
    assert repr(model) == "<sheaf.Model model: main(x: f32[3]) -> f32>"


def test_an_instance_does_not_depend_on_the_others(trees):
    Leaf, Node = trees.types.Leaf, trees.types.Node
    some = [Leaf("a"), Node(Leaf("b"), Node(Leaf("c"), Leaf(1))), Node(Leaf("a"), Leaf("zzz"))]
    together = trees(some)
    for i, one in enumerate(some):
        assert trees([one])[0].tobytes() == together[i].tobytes()
    assert trees([Leaf("zzz")]).tobytes() == trees([Leaf(0)]).tobytes()


def test_columns_and_rows(trees):
    model = sf.compile(TREES, vocab=WORDS, entry="both")
    Leaf = model.types.Leaf
    arrays, numbers = model([Leaf("a"), Leaf("b")], [5, 6])
    assert arrays.shape == (2, 4) and numbers.tolist() == [6, 7]
    again = model.run([(Leaf("a"), 5), (Leaf("b"), 6)])
    assert again[0].tobytes() == arrays.tobytes() and again[1].tolist() == [6, 7]
    with pytest.raises(ValueError, match="k has 1 values, and t has 2"):
        model([Leaf("a"), Leaf("b")], [5])
    with pytest.raises(TypeError, match="takes 2 lists \\(t, k\\), and 1 is given"):
        model([Leaf("a")])
    with pytest.raises(TypeError, match="instance 1: a tuple of 2"):
        model.run([(Leaf("a"), 5), Leaf("b")])


def test_results_of_data_are_objects():
    model = sf.compile(TREES, vocab=WORDS, entry="flip")
    Leaf, Node = model.types.Leaf, model.types.Node
    flipped, leaf = model([Node(Leaf("a"), Node(Leaf("b"), Leaf("c"))), Leaf("a")])
    assert type(flipped) is Node and type(leaf) is Leaf
    assert (flipped.left.left.word, flipped.left.right.word, flipped.right.word) == (3, 2, 1)
    assert leaf.word == 1 and model.words()[leaf.word] == "a"


def test_a_chain_of_a_million(request):
    model = sf.compile(TREES, vocab=WORDS, entry="flip")
    Leaf, Node = model.types.Leaf, model.types.Node
    gc.disable()  # it would look through millions of objects again and again
    request.addfinalizer(gc.enable)
    chain = Leaf("a")
    for _ in range(1_000_000):
        chain = Node(chain, Leaf("b"))
    [flipped] = model([chain])
    depth = 0
    while type(flipped) is Node:
        assert flipped.left.word == 2
        flipped, depth = flipped.right, depth + 1
    assert depth == 1_000_000 and flipped.word == 1


def test_an_instance_fails_alone():
    model = sf.compile(TREES, vocab=WORDS, entry="third")
    assert model([[1, 2, 3], np.arange(5)]).tolist() == [3, 2]
    with pytest.raises(sf.InstanceErrors) as raised:
        model([[1, 2, 3], [1], [4, 5, 6], []])
    assert isinstance(raised.value, ExceptionGroup)
    assert [e.instance for e in raised.value.exceptions] == [1, 3]
    first = raised.value.exceptions[0]
    assert first.cause == "program" and first.file == "model.sheaf" and first.line == 16, first
    one, two, three = model([[1, 2, 3], [1], [4, 5, 6]], errors="return")
    assert one == 3 and three == 6 and isinstance(two, sf.InstanceError) and two.instance == 1
    with pytest.raises(ValueError, match="errors is 'ignore'"):
        model([], errors="ignore")


def test_a_source_with_errors_is_a_syntax_error():
    with pytest.raises(SyntaxError) as raised:
        sf.compile("fn main(x: f32[3]) -> f32[4] =\n  x\n", name="bad.sheaf")
    error = raised.value
    assert isinstance(error, sf.CompileError)
    assert (error.filename, error.lineno, error.offset, error.end_offset) == ("bad.sheaf", 2, 3, 4)
    assert error.text == "  x" and "must be 'f32[4]'" in error.msg
    [diagnostic] = error.diagnostics
    assert diagnostic.severity == "error" and diagnostic.line == 2 and diagnostic.end_column == 4
    drawn = "".join(traceback.format_exception(error))
    assert 'File "bad.sheaf", line 2' in drawn and "\n    x\n    ^\n" in drawn
    again = pickle.loads(pickle.dumps(error))
    assert again.diagnostics == error.diagnostics and again.lineno == 2


def test_what_a_source_uses():
    text = 'use "cell.sheaf"\nfn main(x: f32) -> f32 = cell(x)\n'
    cell = "fn cell(x: f32) -> f32 = x + 1\n"
    assert sf.compile(text, uses={"cell.sheaf": cell})([1.0]).tolist() == [2.0]
    asked = []

    def find(name, by):
        asked.append((name, by))
        return "elsewhere", cell

    assert sf.compile(text, uses=find)([1.0]).tolist() == [2.0]
    assert asked == [("cell.sheaf", "model.sheaf")]

    def fail(name, by):
        raise KeyError(name)

    with pytest.raises(KeyError, match="cell.sheaf"):
        sf.compile(text, uses=fail)
    with pytest.raises(TypeError, match="None or"):
        sf.compile(text, uses=lambda name, by: 3)
    with pytest.raises(sf.CompileError):
        sf.compile(text, uses={})


def test_weights_are_arrays(tmp_path):
    weights = {"embedding": np.ones((4, 4), np.float32), "w": np.zeros((4, 8), np.float32).T}
    model = sf.compile(TREES, vocab=WORDS, weights=weights)
    Leaf, Node = model.types.Leaf, model.types.Node
    assert model([Leaf("a"), Node(Leaf("a"), Leaf("b"))]).tolist() == [[1] * 4, [0] * 4]
    held = model.parameters
    assert set(held) == {"embedding", "w"} and not held["w"].flags.writeable
    np.testing.assert_array_equal(held["embedding"], weights["embedding"])
    del model
    np.testing.assert_array_equal(held["w"], weights["w"])
    with pytest.raises(TypeError, match="weight 'w'"):
        sf.compile(TREES, vocab=WORDS, weights={**weights, "w": "zeros"})
    with pytest.raises(ValueError):
        sf.compile(TREES, vocab=WORDS, weights={"embedding": weights["embedding"]})


def test_files(tmp_path, trees):
    Leaf, Node = trees.types.Leaf, trees.types.Node
    path = tmp_path / "trees.sheafc"
    trees.save(path)
    loaded = sf.load(path)
    some = [Node(Leaf("a"), Leaf("c")), Leaf("b")]
    assert loaded(some).tobytes() == trees(some).tobytes()
    with pytest.raises(TypeError, match="compiled already: dims"):
        sf.load(path, dims={"hidden": 3})
    with pytest.raises(FileNotFoundError):
        sf.load(tmp_path / "none.sheaf")
    damaged = tmp_path / "damaged.sheafc"
    damaged.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ArtefactError):
        sf.load(damaged)
    with pytest.raises(ArtefactError):
        sf.load(path, sha256="0" * 64)
    with pytest.raises(TypeError, match="no option 'hidden'"):
        sf.compile(SQUARE, hidden=3)


def test_the_command_gives_the_same(tmp_path):
    sheaf = os.path.join(os.environ["SHEAF_BUILD"], "bin", "sheaf")
    sentences = ["a b c", "b", "c a"]
    (tmp_path / "words").write_text("\n".join(sentences) + "\n")
    (tmp_path / "v.txt").write_text("\n".join(WORDS) + "\n")
    source = os.path.join(ROOT, "models", "lstm.sheaf")
    told = subprocess.run([sheaf, "run", source, "--data", tmp_path / "words", "--vocab",
                           tmp_path / "v.txt", "--dim", "hidden=16", "--seed", "3"],
                          capture_output=True, text=True, check=True).stdout
    expected = np.array([eval(line) for line in told.splitlines()], np.float32)
    model = sf.load(source, dims={"hidden": 16}, vocab=tmp_path / "v.txt", weights_seed=3)
    np.testing.assert_array_equal(model([s.split() for s in sentences]), expected)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_weights_of_others(name):
    """A directory as Hugging Face has it, for a model whose file says what things are called there."""
    directory = os.path.join(ROOT, "tests", "checkpoints", name)
    with open(os.path.join(directory, "expected.json")) as stream:
        expected = json.load(stream)
    model = sf.load(os.path.join(ROOT, "models", name + ".sheaf"), weights=directory)
    np.testing.assert_allclose(model(expected["texts"]), np.array(expected["main"]), rtol=1e-4, atol=1e-4)
    assert any("converted" in str(said.message) and said.severity == "note" for said in model.warnings)
    with pytest.raises(ValueError, match="config.json|missing|does not fit"):
        sf.load(os.path.join(ROOT, "models", name + ".sheaf"), weights=directory, dims={"layers": 3})


@pytest.mark.parametrize("options, words", [
    ({"threads": -1}, "threads is -1, and no int of at least 0"), ({"memory_limit": "2G"}, "memory_limit is '2G'"),
    ({"max_depth": 1.5}, "max_depth is 1.5"), ({"dims": {"h": "x"}}, "dim h is 'x'"),
    ({"vocab": 3.5}, "the vocabulary of token is 3.5: a file"), ({"store_limit": None}, "store_limit is None")])
def test_options_of_wrong_types(options, words):
    with pytest.raises(TypeError, match=words):
        sf.compile("dim h = 2\nfn main(x: int) -> int = x + h", **options)


def test_options_of_numpy_and_one_name():
    model = sf.compile("dim h = 2\nfn main(x: int) -> int = x + h", dims={"h": np.int64(5)}, without="fuse",
                       threads=np.int32(1))
    assert model([1]) == [6]
