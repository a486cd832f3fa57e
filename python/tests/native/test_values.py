"""What models take, and what they refuse: with the place, the right exception, and nothing lost."""

import array
import collections
import dataclasses
import gc
import pickle
import sys
import typing
from dataclasses import dataclass

import numpy as np
import pytest
import sheaf as sf

SOURCE = """
dim vocab
data Tree = Leaf(word: token) | Node(left: Tree, right: Tree)
data Shape = Point | Ring(points: list<(int, float)>, closed: bool, inner: list<Shape>)
data Option = None | Some(value: f32[2])
fn tree(trees: Tree) -> Tree = trees
fn shape(s: Shape) -> Shape = s
fn option(o: list<Option>) -> list<Option> = o
fn words(w: token[n]) -> token[n] = w
fn same(a: f32[n, 2], b: f32[n]) -> f32[n, 2] = a
fn numbers(i: int, x: float, p: bool, t: token) -> (int, float, bool, token) = (i, x, p, t)
fn longs(a: i64[2]) -> i64[2] = a
fn halves(a: f16[n]) -> f16[n] = a
fn bools(a: bool[n]) -> bool[n] = a
fn three(a: list<int>[3]) -> list<int> = a
fn pair(a: (int, list<token>)) -> (int, list<token>) = a
fn scalar(a: f32) -> f32 = a
"""
WORDS = ["<unk>", "a", "b", "é"]
models = {}


def model(entry):
    if entry not in models:
        models[entry] = sf.compile(SOURCE, vocab=WORDS, entry=entry)
    return models[entry]


def classes(entry="tree"):
    types = model(entry).types
    return types.Leaf, types.Node


def refuses(kind, message, entry, *columns):
    with pytest.raises(kind) as raised:
        model(entry)(*columns)
    text = "\n".join([str(raised.value), *getattr(raised.value, "__notes__", [])])
    assert message in text, text
    return raised.value


@dataclass
class Leaf:
    word: object


@dataclass
class Node:
    left: object
    right: object


class Tuples:
    Leaf = collections.namedtuple("Leaf", "word")
    Node = collections.namedtuple("Node", "left right")


def shape_of(tree):
    return tree.word if hasattr(tree, "word") else (shape_of(tree.left), shape_of(tree.right))


def test_classes_are_told_by_their_names():
    Slot, Branch = classes()
    assert dataclasses.is_dataclass(Slot) and Slot.__slots__ == ("word",)

    class Deeper(Branch):
        pass

    class Leafy(Leaf):
        @property
        def word(self):
            return "b"

        @word.setter
        def word(self, value):
            pass

    class Asked:
        def __getattr__(self, name):
            if name == "word":
                return 3
            raise AttributeError(name)

    Asked.__name__ = "Leaf"
    for tree, expected in ((Node(Leaf("a"), Slot(2)), (1, 2)),
                           (Tuples.Node(Tuples.Leaf("a"), Leaf("é")), (1, 3)),
                           (Deeper(Leaf("nothing"), Leafy(1)), (0, 2)),
                           (Branch(Asked(), Leaf(np.int8(2))), (3, 2))):
        [found] = model("tree")([tree])
        assert shape_of(found) == expected and type(found) is Branch


def test_classes_that_are_given_are_the_only_ones():
    Slot, _ = classes()
    bound = sf.compile(SOURCE, vocab=WORDS, entry="tree", classes={"Leaf": Leaf, "Node": Node})
    [found] = bound([Node(Leaf(1), Leaf(2))])
    assert type(found) is Node and found == Node(Leaf(1), Leaf(2))
    with pytest.raises(TypeError, match="trees\\[0\\].left: 'Tree' belongs here"):
        bound([Node(Slot(1), Leaf(2))])
    with pytest.raises(TypeError, match="word 1 of the vocabulary of token is 3, and no str"):
        sf.compile(SOURCE, vocab=["<unk>", 3], entry="tree")
    with pytest.raises(ValueError, match="no constructor 'Twig'"):
        sf.compile(SOURCE, vocab=WORDS, entry="tree", classes={"Twig": Leaf})


def test_values_of_all_types_come_back():
    types = model("shape").types
    ring = types.Ring([(1, 2.5), [3, 4]], True, [types.Point(), types.Ring((), np.False_, ())])
    [found] = model("shape")([ring])
    assert found.points == [(1, 2.5), (3, 4.0)] and found.closed is True
    assert type(found.inner[0]) is types.Point and found.inner[1].inner == []
    Some = model("option").types.Some
    [[none, some]] = model("option")([[None, Some([1, 2])]])
    assert none is None and some.value.tolist() == [1, 2]
    numbers = model("numbers")([1, np.int16(2)], [0.5, 3], [True, np.True_], ["a", 2])
    assert [part.tolist() for part in numbers] == [[1, 2], [0.5, 3.0], [True, True], [1, 2]]
    assert [part.dtype.kind for part in numbers] == ["i", "f", "b", "i"]
    columns = np.array([5, 6]), np.array([1, 2], np.float32), np.array([True, False]), np.array([1, 0], np.uint8)
    assert model("numbers")(*columns)[0].tolist() == [5, 6]
    ints, lists = model("pair")([(1, ["a", "zz"]), (2, np.array([3], np.int8))])
    assert ints.tolist() == [1, 2] and lists == [[1, 0], [3]]


def test_arrays_of_any_kind():
    grid = np.arange(12, dtype=np.float32).reshape(3, 4)
    for a in (grid[:, ::2], grid.T[::2].T, grid[::-1, 1:3], np.asfortranarray(grid[:, :2]),
              grid[:, :2].tolist(), grid[:0, :2]):
        [found] = model("same")([a], [np.zeros(len(a), np.float32)])
        np.testing.assert_array_equal(found, np.array(a, np.float32).reshape(-1, 2))
    for w in (["a", "é", "?"], [1, 3, 0], np.array([1, 3, 0]), np.array([1, 3, 0], np.uint16),
              array.array("h", [1, 3, 0]), (1, "é", np.int32(0)), memoryview(array.array("q", [1, 3, 0]))):
        assert model("words")([w])[0].tolist() == [1, 3, 0]
    assert model("words")([[]])[0].shape == (0,)
    assert model("longs")([[1, 2**62], np.array([5, 6], np.uint8)]).tolist() == [[1, 2**62], [5, 6]]
    assert model("halves")([[1, 2.5], np.array([3], np.float16)])[0].tolist() == [1, 2.5]
    assert model("bools")([[True, False], np.array([True])])[0].tolist() == [True, False]
    assert model("scalar")([np.float32(2), 3, np.array(4, np.float32)]).tolist() == [2, 3, 4]

    class Lent:  # as torch's tensors are, by DLPack alone
        def __init__(self, array):
            self.array = array

        def __dlpack__(self):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    [found] = model("same")([Lent(grid[:, ::2])], [Lent(np.zeros(3, np.float32))])
    np.testing.assert_array_equal(found, grid[:, ::2])


def test_results_may_be_kept_and_given():
    held = [model("same")([np.full((2, 2), i, np.float32)], [[0, 0]])[0] for i in range(50)]
    gc.collect()
    assert [a[0, 0] for a in held] == list(range(50))
    again = model("same")(held, [[0, 0]] * 50)
    np.testing.assert_array_equal(again[7], held[7])


def test_wrong_types_say_where():
    Slot, Branch = classes()
    path = "trees[1].left.right.word: "
    for word, kind, message in (
            (None, TypeError, "a token belongs here, an int or a str, not None"),
            (1.0, TypeError, "not float"), (b"a", TypeError, "not bytes"), (True, TypeError, "bool"),
            ([1], TypeError, "not list"), (10**30, OverflowError, "more than 64 bits"),
            (2**63, OverflowError, "64 bits"), (-1, ValueError, "token -1 is none of the 4"),
            (4, ValueError, "token 4"), ("\ud800", ValueError, "lone surrogate")):
        for kinds in ((Slot, Branch), (Leaf, Node), (Tuples.Leaf, Tuples.Node)):
            one, two = kinds
            refuses(kind, path, "tree", [one(1), two(two(one(1), one(word)), one(2))])
            refuses(kind, message, "tree", [one(1), two(two(one(1), one(word)), one(2))])
    refuses(TypeError, "trees[0]: 'Tree' belongs here (Leaf, Node), not int", "tree", [3])
    refuses(TypeError, "trees[0].right: 'Tree' belongs here", "tree", [Branch(Slot(1), object())])
    refuses(AttributeError, "while trees[0].right was read", "tree", [_without(Branch, Slot)])
    refuses(TypeError, "s[0].points[1]: a tuple of 2 belongs here", "shape",
            [model("shape").types.Ring([(1, 2.0), 3], True, [])])
    refuses(ValueError, "s[0].points[0]: a tuple of 2 belongs here, not one of 3", "shape",
            [model("shape").types.Ring([(1, 2.0, 3)], True, [])])
    refuses(TypeError, "s[0].points[0][1]: a float belongs here, not str", "shape",
            [model("shape").types.Ring([(1, "2")], True, [])])
    refuses(TypeError, "s[0].closed: a bool belongs here, not int", "shape",
            [model("shape").types.Ring([], 1, [])])
    refuses(OverflowError, "x: an int that is too large"[3:], "numbers", [1], [10**400], [True], [1])
    refuses(ValueError, "a[0]: a list of 2 elements is no 'list<int>[3]'", "three", [[1, 2]])


def _without(Branch, Slot):
    node = Branch(Slot(1), Slot(2))
    del node.right
    return node


def test_wrong_arrays_say_where():
    good = np.zeros((3, 2), np.float32), np.zeros(3, np.float32)
    same = lambda a, b=good[1]: ("same", [good[0], a], [good[1], b])
    refuses(TypeError, 'a[1]: an array of float64 where', *same(good[0].astype(np.float64)))
    refuses(TypeError, 'a.astype("float32")', *same(good[0].astype(np.float64)))
    refuses(TypeError, "a[1]: the array has its bytes in the other order", *same(good[0].astype(">f4")))
    refuses(TypeError, "a[1]: an array with elements of format", *same(good[0].astype(complex)))
    refuses(TypeError, "a[1]: an array with elements of format", *same(good[0].astype(object)))
    refuses(ValueError, "a[1]: an array of shape [3] is no 'f32[n, 2]'", *same(good[1]))
    refuses(ValueError, "a[1]: an array of shape [2, 3]", *same(good[0].T))
    refuses(ValueError, "lists of 2 and of 1 elements", *same([[1, 2], [3]]))
    refuses(TypeError, "a[1]: a float belongs here, not None", *same([[1, None]]))
    refuses(TypeError, "numpy.stack", *same([np.zeros(2, np.float32)]))
    refuses(TypeError, "a[1]: an array belongs here ('f32[n, 2]'), not str", *same("ab"))
    refuses(TypeError, "not generator", *same(x for x in [[1, 2]]))
    refuses(ValueError, "instance 1: the extent n", *same(good[0], [0, 0]))
    refuses(ValueError, "w[0]: token 9", "words", [np.array([1, 9])])
    refuses(ValueError, "w[0]: token -1", "words", [np.array([1, -1], np.int8)])
    refuses(OverflowError, "a[0]: ", "longs", [np.array([1, 2**63], np.uint64)])

    class Away:
        device = "cuda:1"

        def __dlpack__(self):
            raise AssertionError

        def __dlpack_device__(self):
            return 2, 1

    refuses(ValueError, "a[1]: the tensor is on device 'cuda:1'", *same(Away()))

    class Grad:
        requires_grad = True

        def __dlpack__(self):
            raise RuntimeError("Can't export tensors that require gradient")

        def __dlpack_device__(self):
            return 1, 0

    refuses(ValueError, "t.detach()", *same(Grad()))
    Grad.requires_grad = False
    refuses(RuntimeError, "while a[1] was read", *same(Grad()))


def test_tensors_of_pytorch_that_are_not_lent():
    torch = pytest.importorskip("torch")
    b = [np.zeros(3, np.float32)]
    refuses(ValueError, "t.detach()", "same", [torch.zeros(3, 2, requires_grad=True)], b)
    refuses(RuntimeError, "while a[0] was read", "same", [torch.zeros(3, 2).to_sparse()], b)
    for given in [torch.zeros(3, 2).double()], torch.zeros(1, 3, 2).double():
        refuses(TypeError, "t.to(torch.float32)", "same", given, b)


def test_columns_are_lists():
    Slot, _ = classes()
    refuses(TypeError, "trees: a list with a value for each instance belongs here, not generator: "
            "make a list", "tree", (Slot(1) for _ in range(3)))
    for wrong in (Slot(1), {1: Slot(1)}, {Slot(1)}, None, 3):
        refuses(TypeError, "trees: a list with a value for each instance", "tree", wrong)
    refuses(TypeError, "a list with a value for each instance", "three", "abc")
    refuses(TypeError, "i: an array of float64 has no 'int'", "numbers", np.zeros(1), [1.0], [True], [1])
    assert len(model("tree")(collections.deque([Slot(1), Slot(2)]))) == 2
    assert len(model("tree")(np.array([Slot(1), Slot(2)], object))) == 2


def test_what_objects_raise_comes_through():
    Slot, Branch = classes()

    class Failing:
        def __getattr__(self, name):
            raise ZeroDivisionError("of the object")

    Failing.__name__ = "Leaf"
    error = refuses(ZeroDivisionError, "while trees[0].left.word was read", "tree",
                    [Branch(Failing(), Slot(1))])
    assert str(error) == "of the object"

    class Index:
        def __index__(self):
            raise KeyError("index")

    refuses(KeyError, "while trees[0].word was read", "tree", [Slot(Index())])

    class Interrupted:
        def __index__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model("tree")([Slot(Interrupted())])


def test_objects_that_change_while_they_are_read():
    Slot, Branch = classes()
    shared = []

    class Shrinking:
        def __index__(self):
            shared.clear()
            gc.collect()
            return 1

    shared += [1, Shrinking(), 3, 4]
    refuses(RuntimeError, "the list changed while it was read", "pair", [(1, shared)])
    column = []

    class Clearing:
        def __index__(self):
            column.clear()
            return 1

    column += [Slot(Clearing()), Slot(2)]
    refuses(RuntimeError, "the list changed", "tree", column)

    class Cutting:  # lets go what is read next, and what is being read
        def __init__(self, node):
            self.node = node

        def __index__(self):
            if self.node:
                self.node.left = self.node.right = None
                self.node = None
                gc.collect()
            return 1

    inner = Branch(None, None)
    outer = Branch(inner, Slot(2))
    inner.left, inner.right = Slot(Cutting(outer)), Branch(Slot(1), Slot(3))
    del inner
    refuses(TypeError, "trees[0].right: 'Tree' belongs here", "tree", [outer])


def test_cycles_and_shared_parts():
    Slot, Branch = classes()
    for kind in (Branch, Node):
        round = kind(Slot(1), None)
        round.right = kind(Slot(2), round)
        refuses(ValueError, "the object is inside of itself", "tree", [round])
        round.right = None
    doubled = Slot(1)
    for _ in range(60):  # a tree of 2 ** 60 leaves in 61 objects
        doubled = Branch(doubled, doubled)
    data = model("tree").encode([doubled])
    assert data.nbytes < 10_000_000
    rest, depth = model("tree")(data)[0], 0
    while type(rest) is Branch:
        rest, depth = rest.right, depth + 1
    assert depth == 60


def test_shared_parts_of_two_types():
    text = """
data Box<T> = Box(value: T)
data All = All(many: list<Box<int>>, a: Box<int>, b: Box<float>)
fn main(x: All) -> float = float(x.a.value) + x.b.value
"""
    made = sf.compile(text)
    Box, All = made.types.Box, made.types.All
    both = Box(3)
    # So many that it is looked for what is shared.
    assert made([All([Box(i) for i in range(70_000)], both, both)])[0] == 6.0


def test_endless_objects_end():
    class Endless:
        __slots__ = ()

        @property
        def left(self):
            return Endless()

        right = left

    Endless.__name__ = "Node"
    gc.disable()  # it would look through millions of objects again and again
    try:
        refuses(ValueError, "has it no end?", "tree", [Endless()])
    finally:
        gc.enable()


def test_named_tuples_that_are_short():
    short = tuple.__new__(Tuples.Node, (Leaf(1),))
    refuses(TypeError, "has only 1 elements", "tree", [short])


def test_nothing_is_lost():
    Slot, Branch = classes()
    word = 123456789
    good = [Branch(Slot("a"), Branch(Slot(1), Slot("b"))), Node(Leaf(2), Leaf("é"))]
    bad = [Branch(Slot(1), Branch(Slot(word), Slot(2)))]
    grid = np.zeros((2, 2), np.float32)

    def rounds():
        for _ in range(50):
            model("tree")(good)
            model("tree").encode(good)[::-1]
            model("same")([grid], [np.zeros(2, np.float32)])
            with pytest.raises(ValueError):
                model("tree")(bad)
            with pytest.raises(TypeError):
                model("same")([grid.astype(float)], [grid])

    rounds()
    watched = [*good, bad[0], bad[0].right.left, word, grid, Slot, Leaf]
    gc.collect()
    before = [sys.getrefcount(one) for one in watched]
    blocks = sys.getallocatedblocks()
    rounds()
    gc.collect()
    after = [sys.getrefcount(one) for one in watched]
    assert all(count <= was for count, was in zip(after, before)), (before, after)
    assert sys.getallocatedblocks() - blocks < 200


def test_none_and_a_value_by_itself():
    text = ("data Option<T> = Nothing | Just(value: T)\n"
            "fn main(x: Option<int>, y: list<Option<f32[2]>>) -> (list<Option<f32[2]>>, Option<int>) = (y, x)")
    model = sf.compile(text, classes={"Nothing": type(None), "Just": typing.Optional})
    rows = [[None, np.ones(2, np.float32)], []]
    found, numbers = model([3, None], rows)
    assert numbers == [3, None] and found[0][0] is None and found[0][1].tolist() == [1, 1] and found[1] == []
    assert pickle.loads(pickle.dumps(model))([None], [[]]) == ([[]], [None])
    with pytest.raises(ValueError, match="'Node' has not one field, beside a constructor without any"):
        sf.compile("data T = Leaf | Node(a: int, b: int)\nfn main(t: T) -> int = 1",
                      classes={"Node": typing.Optional})


def test_attributes_of_plain_objects():
    """However Python has them: in an array, in a dict, in the class, by code."""
    @dataclass
    class Pair:
        a: int
        b: int = 7

    class Shown(Pair):
        @property
        def b(self):
            return 5

        @b.setter
        def b(self, value):
            pass

    class Lazy(Pair):
        def __getattr__(self, name):
            return 40 if name == "a" else object.__getattribute__(self, name)

    class Swaps(Pair):
        def __getattribute__(self, name):
            return 1 if name == "b" else object.__getattribute__(self, name)

    class Late:
        pass
    Late.__name__ = "Pair"

    model = sf.compile("data P = Pair(a: int, b: int)\nfn main(p: P) -> int = match p { Pair(a, b) => 10 * a + b }")
    asked, without, many, turned = Pair(1, 2), Pair(3, 4), Pair(5, 6), Pair(7, 8)
    asked.__dict__["a"] = 2  # has a dict from now on
    del without.b  # the class has one
    for i in range(40):
        setattr(many, f"other{i}", i)
    late = Late()
    late.b, late.a = 1, 2
    lazy = Lazy(1, 2)
    del lazy.a
    turned.__class__ = Shown
    given = [Pair(1, 2), asked, without, many, late, Shown(3, 4), lazy, Swaps(2, 2), turned, Pair(9, 9)]
    expected = [12, 22, 37, 56, 21, 35, 402, 21, 75, 99]
    for _ in range(3):
        assert model(given).tolist() == expected
    del late.a
    with pytest.raises(AttributeError, match="'a'") as raised:
        model([given[0], late])
    assert raised.value.__notes__ == ["while p[1].a was read"]
    before = [sys.getrefcount(one) for one in given]
    model(given[:4] + given[5:])
    assert [sys.getrefcount(one) for one in given] == before
