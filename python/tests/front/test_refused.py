"""What is no part of the compiled language is an error that says so, at its place, with what to do.

Each snippet has a line of carets below the place. What follows it are parts of the message and of the
help. Those of the first table are found by the front end, those of the second by the checker.
"""
import linecache
import re

import pytest

from conftest import HEAD, checked, lowered
from sheaf.errors import CompileError

FRONT = [
    # What would give another value than Python.
    ("""
def f(xs: list[int]) -> list[int]:
    ys = [1]
    ys.extend(x + len(ys) for x in xs)
#            ^^^^^^^^^^^^^^^^^^^^^^^^^
    return ys
""", "read while 'ys' grows", "[f(x) for x in xs]"),
    ("""
def f(xs: list[int]) -> list[int]:
    ys = [1]
    ys += map(lambda x: x + len(ys), xs)
#         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    return ys
""", "read while 'ys' grows", "[f(x) for x in xs]"),
    ("""
def f(n: int) -> int:
    x = 1
    match n:
        case x if x > 5:
#            ^
            return 0
        case _:
            return x
""", "'x' is read later", "another name"),
    ("""
@dataclass
class A:
    x: int
@dataclass
class B(A):
    y: int
def f(x: A | B) -> int:
#        ^^^^^
    return 0
""", "B and its base A are in one union", "a base that is not in the union"),
    ("""
def f(n: int) -> bool:
    return 1 in (n, 2) == True
#          ^^^^^^^^^^^^^^^^^^^
""", "at the end of a chain", "with 'and'"),
    ("""
def f(n: int) -> int:
    return n + int(math.inf)
#              ^^^^^^^^^^^^^
""", "cannot convert float infinity", ""),
    # Statements.
    ("""
def f(x: int) -> int:
    try:
#   ^^^^
        return x
    except ValueError:
        return 0
""", "'try' is not compiled", 'errors="return"'),
    ("""
def f(x: int) -> int:
    with open("a"):
#   ^^^^^^^^^^^^^^^
        return x
""", "'with' is not compiled", "around the call"),
    ("""
def f(x: int) -> int:
    def g(y):
#   ^^^^^^^^^
        return y
    return g(x)
""", "a function inside a function", "make it a method"),
    ("""
def f(x: int) -> int:
    global y
#   ^^^^^^^^
    return x
""", "'global' is not compiled", "result"),
    ("""
def f(x: int) -> int:
    import math
#   ^^^^^^^^^^^
    return x
""", "'import' inside", "top of the file"),
    ("""
def f(x: int) -> int:
    del x
#   ^^^^^
    return 0
""", "'del' is not compiled", ""),
    ("""
def f(x: Float32["n"]) -> Float32["?"]:
    return concat([x, x])
#                 ^^^^^^
""", "one by one", "concat(a, b)"),
    ("""
def f(xs: list[int]) -> int:
    xs[0] = 1
#   ^^^^^
    return 0
""", "an element is assigned", "xs[:i] + [x] + xs[i + 1:]"),
    ("""
class M(Module):
    def __init__(self):
        self.count = 0
    def forward(self, x: int) -> int:
        self.count = x
#       ^^^^^^^^^^
        return x
f = M()
""", "'self.count' is assigned", "count = ..."),
    ("""
class M(Module):
    def __init__(self):
        self.count = 0
    def forward(self, x: int) -> int:
        self.count += x
#       ^^^^^^^^^^
        return x
f = M()
""", "'self.count' is assigned", ""),
    ("""
def f(x: int) -> int:
    if x > 0:
        raise
#       ^^^^^
    return x
""", "names no error", "raise ValueError"),
    ("""
def f(x: int) -> int:
    if x > 0:
        return x
    else:
        raise ValueError("no")
#       ^^^^^^^^^^^^^^^^^^^^^^
""", "'raise' stands for no value", "assert"),
    ("""
def f(x: int) -> int:
    assert (x, x)
#          ^^^^^^
    return x
""", "always true", ""),
    ("""
def f(x: int) -> int:
    assert x > 0, f"{x}"
#                 ^^^^^^
    return x
""", "the words of an assert", ""),
    ("""
def f(x: int) -> int:
    x + 1
#   ^^^^^
    return x
""", "this value is not used", "assign it"),
    ("""
def f(x: int) -> int:
#^^^^^^^^^^^^^^^^^^^^
    while x > 0:
        return 1
""", "'f' may end without a return", ""),
    # Expressions.
    ("""
def f(x: int) -> int:
    return {1: x}[1]
#          ^^^^^^
""", "a dict is no value", "list of tuples"),
    ("""
def f(x: int) -> int:
    return len({x})
#              ^^^
""", "a set is no value", ""),
    ("""
def f(x: int) -> int:
    print(x)
#   ^^^^^^^^
    return x
""", "'print' is not compiled", "eager Python"),
    ("""
def f(x: int) -> int:
    y = "word"
#   ^^^^^^^^^^
    return x
""", "words of Python", "Token"),
    ("""
def f(x: int) -> int:
    return (lambda y: y)(x)
#           ^^^^^^^^^^^
""", "a lambda is not a value", ""),
    ("""
def f(xs: list[int]) -> int:
    return max(*xs)
#              ^^^
""", "'*' in a call", "stack(xs)"),
    ("""
def f(x: int) -> int:
    return (y := x) + y
#           ^^^^^^
""", "':=' is not compiled", "a line of its own"),
    ("""
def f(xs: list[int]) -> list[int]:
    return sorted(xs)
#          ^^^^^^^^^^
""", "'sorted' is not compiled", "sort(x)"),
    ("""
def f(x: Float32["n"]) -> Float32["n"]:
    return np.tanh(x)
#          ^^^^^^^
""", "'np.tanh' is not compiled", "sheaf.tanh is the same"),
    ("""
class M(Module):
    def __init__(self):
        self.layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
    def forward(self, xs: list[Float32["2"]]) -> list[Float32["2"]]:
        return [layer(x) for layer, x in zip(self.layers, xs)]
#                                        ^^^^^^^^^^^^^^^^^^^^
f = M()
""", "have an element beside them", "strict=True"),
    ("""
class M(Module):
    def __init__(self):
        self.layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
    def forward(self, x: Float32["2"], xs: list[Float32["2"]]) -> Float32["2"]:
        for layer, y in zip(self.layers, xs):
#                       ^^^^^^^^^^^^^^^^^^^^
            if y.sum() > 0:
                break
            x = layer(x + y)
        return x
f = M()
""", "other ends, too", "strict=True"),
    ("""
def f(xs: list[int], b: bool) -> list[int]:
    return [x + y for x, y in zip(xs, xs, strict=b)]
#                                                ^
""", "whether 'zip' is strict", "strict=True"),
    ("""
def f(x: int) -> int:
    sf.debug.print(x)
#   ^^^^^^^^
    return x
""", "'sf' has no 'debug'", "print in eager code"),
    ("""
def f(x: Float32["n"]) -> int:
    return sf.shape(x)[0]
#          ^^^^^^^^
""", "'sf' has no 'shape'", "x.shape[axis]"),
    ("""
def f(x: Float32["n"]) -> Float32["n"]:
    return x.matmul(x)
#          ^^^^^^^^
""", "no method 'matmul'", "matmul(x, ...)"),
    ("""
def f(x: Float32["n"]) -> Float32["n"]:
    return x.unsqueeze(0)
#          ^^^^^^^^^^^
""", "no method 'unsqueeze'", "expand_dims"),
    ("""
def f(x: Float32["n"]) -> Float32["n"]:
    return softmax(x, dim=-1)
#                         ^^
""", "no argument 'dim'", "axis=..."),
    ("""
def f(x: Float32["n m"]) -> Float32["n"]:
    return x[..., 0]
#            ^^^
""", "'...'", "':' for each axis"),
    ("""
def f(x: Float32["n"]) -> Float32["1 n"]:
    return x[None]
#            ^^^^
""", "a new axis", "expand_dims"),
    ("""
def f(x: Float32["n"]) -> Float32["?"]:
    return x[::2]
#            ^^^
""", "no step", "flip"),
    ("""
def f(a: float, b: float) -> float:
    return a // b
#          ^^^^^^
""", "'//' of floats", "floor(a / b)"),
    ("""
def f(a: Float32["n"]) -> Float32["n"]:
    return a % 2
#          ^^^^^
""", "of ints, not of tensors", ""),
    ("""
def f(a: int, b: int) -> int:
    return a << b
#          ^^^^^^
""", "'<<' of ints", ""),
    ("""
def f(a: int, b: int) -> int:
    return a ** b
#          ^^^^^^
""", "exponents from 0 to 16", "float(a) ** b"),
    ("""
def f(a: int) -> int:
    return a + 1 // 0
#              ^^^^^^
""", "division by zero", ""),
    ("""
def f(a: int) -> int:
    return a + 99999999999999999999
#              ^^^^^^^^^^^^^^^^^^^^
""", "more than 64 bits", ""),
    ("""
def f(a: list[int], b: list[int]) -> bool:
    return a == b
#          ^^^^^^
""", "not compared as a whole", "len(xs) == 0"),
    ("""
def f(a: int, b: int) -> bool:
    return a is b
#          ^^^^^^
""", "'is' compares with None only", "=="),
    ("""
def f(a: int | None) -> int:
    return a + 1
#          ^^^^^
""", "may be None", "if x is not None"),
    ("""
def f(a: int | None) -> int:
    if a:
#      ^
        return 1
    return 0
""", "two questions", "x is not None"),
    ("""
def f(a: int) -> int:
    return b
#          ^
""", "name 'b' is not defined", ""),
    ("""
def f(a: int) -> int:
    if a > 0:
        b = a
    return b
#          ^
""", "'b' may have no value here", "for all cases"),
    ("""
def f(a: list[int]) -> int:
    for x in a:
        y = x
    return y
#          ^
""", "'y' may have no value here: the loop of line", ""),
    ("""
def f(a: list[int]) -> int:
    for x in a:
        pass
    return x
#          ^
""", "'x' may have no value here: the loop", ""),
    ("""
def f(a: list[int]) -> int:
    b = c
#       ^
    c = 1
    return b
""", "'c' has no value here", "before"),
    ("""
def f(x: int) -> bool:
    return isinstance(x, int)
#          ^^^^^^^^^^^^^^^^^^
""", "the type of 'x' is known", ""),
    ("""
@dataclass
class A:
    x: int
@dataclass
class B:
    y: int
AB = A | B
def f(p: AB) -> int:
    if isinstance(p, A):
        return p.y
#              ^^^
    return p.y
""", "A has no field 'y'", ""),
    # Lists that others may see.
    ("""
def f(xs: list[int]) -> list[int]:
    xs.append(1)
#   ^^
    return xs
""", "'append' changes the list that 'xs' is, and others may see it: it is a parameter", "[*xs, x]"),
    ("""
def f(n: int) -> int:
    xs = [n]
    ys = xs
    xs.append(1)
#   ^^
    return len(ys)
""", "others may see it: it is used in line 4", "list(xs)"),
    ("""
def f(n: int) -> list[list[int]]:
    row = []
    rows = []
    for i in range(n):
        row.append(i)
#       ^^^
        rows.append(row)
    return rows
""", "'append' changes the list that 'row' is", "list(row)"),
    ("""
def f(xs: list[int]) -> list[int]:
    xs += [1]
#   ^^
    return xs
""", "changes the list that 'xs' is", "xs = xs + ..."),
    ("""
def f(xs: list[int]) -> int:
    return xs.pop()
#          ^^^^^^^^
""", "stands in a line of its own", "x = xs[-1]"),
    ("""
def f(n: int) -> int:
    xs = [n]
    for i, x in enumerate(xs):
#                         ^^
        if x > 0:
            xs.append(x - 1)
    return len(xs)
""", "'xs' is changed while the loop goes through it", "while i < len(xs)"),
    # Types.
    ("""
def f(x) -> int:
#     ^
    return 1
""", "the parameter 'x' of 'f' has no type", "Float32"),
    ("""
def f(x: int):
#^^^^^^^^^^^^^
    return 1
""", "the result of 'f' has no type", "-> None"),
    ("""
def f(x: str) -> int:
#        ^^^
    return 1
""", "str is not a type of Sheaf", "a word is a Token"),
    ("""
def f(x: np.ndarray) -> int:
#        ^^^^^^^^^^
    return 1
""", "ndarray is not a type of Sheaf", 'Float32["n hidden"]'),
    ("""
def f(x: dict[int, int]) -> int:
#        ^^^^^^^^^^^^^^
    return 1
""", "dict[int, int] is not a type of Sheaf", "list[tuple[K, V]]"),
    ("""
def f(x: Float32) -> int:
#        ^^^^^^^
    return 1
""", "Float32 says no extents", 'Float32["n hidden"]'),
    ("""
def f(x: tuple[int, ...]) -> int:
#        ^^^^^^^^^^^^^^^
    return 1
""", "a tuple of any length", "list[T]"),
    ("""
def f(x: int | float) -> int:
#        ^^^^^^^^^^^
    return 1
""", "int is no dataclass", "Leaf | Node"),
    ("""
@dataclass
class A:
    x: int
@dataclass
class B:
    x: int
AB = A | B
def f(x: A) -> int:
#        ^
    return 1
""", "A alone is not a type: it is one of AB", "AB"),
    ("""
def f(*xs: int) -> int:
#      ^^^^^^^
    return 1
""", "any number of arguments", "list"),
    # Calls.
    ("""
def g(x: int, y: int) -> int:
    return x
def f(x: int) -> int:
    return g(x)
#          ^^^^
""", "'g' needs its argument 'y'", ""),
    ("""
def g(x: int) -> int:
    return x
def f(x: int) -> int:
    return g(x, z=3)
#                 ^
""", "'g' has no parameter 'z'", ""),
    ("""
class M(Module):
    def __init__(self):
        self.table = {}
    def forward(self, x: int) -> int:
        return self.table[x]
#              ^^^^^^^^^^
f = M()
""", "'table' is a dict", "Params, Modules"),
    ("""
class M(Module):
    def forward(self, x: int) -> int:
        return self.missing
#              ^^^^^^^^^^^^
f = M()
""", "M has no attribute 'missing'", ""),
    ("""
class L(Module):
    def forward(self, x: int) -> int:
        return x
class M(Module):
    def forward(self, x: int) -> int:
        return L()(x)
#              ^^^
f = M()
""", "layers are made in the constructor", "__init__"),
    ("""
WORDS = ["a", "b"]
def f(x: int) -> int:
    return len(WORDS)
#              ^^^^^
""", "'WORDS' is no value of a model", ""),
    # match.
    ("""
def f(x: int) -> int:
    match x:
        case {"a": 1}:
#            ^^^^^^^^
            return 1
        case _:
            return 0
""", "this pattern is not compiled", ""),
    ("""
def f(xs: list[int]) -> int:
    match xs:
        case [*rest, last]:
#             ^^^^^
            return last
        case _:
            return 0
""", "'*' stands at the end", "xs[-1]"),
    ("""
@dataclass
class P:
    x: int
def f(p: P) -> int:
    match p:
        case P(y=1):
#                ^
            return 1
        case _:
            return 0
""", "P has no field 'y'", ""),
    ("""
@dataclass
class A:
    x: int
@dataclass
class B:
    y: int
AB = A | B
def f(p: AB) -> int:
    return p.x
#          ^^^
""", "which of A | B", "case A"),
]

CHECKED = [
    ("""
def f(x: int) -> Float32["n"]:
#                ^^^^^^^^^^^^
    return zeros(x)
""", "tells what dim 'n' is", "self.n = ..."),
    ("""
def f(x: Float32["n"]) -> float:
    return x.sum()
#          ^^^^^^^
""", "must be 'float', but this is 'Float32[\"\"]'", "x.item() waits"),
    ("""
def f(x: int | None) -> int:
    match x:
#   ^^^^^^^^
        case None:
            return 0
""", "these cases do not cover what is not None", "add: case _: ..."),
    ("""
def f(xs: list[Float32["3"]]) -> Float32["3"]:
    best = xs[0]
    for x in xs:
        if x.sum() > best:
#          ^^^^^^^^^^^^^^
            best = x
    return best
""", "one element, but this is 'Bool[\"3\"]'", "x[0].item()"),
    ("""
def f(x: Float32["?"], y: Float32["?"]) -> Float32["?"]:
    return x + y
#              ^
""", "the extents of axis 0 differ (?, ?)", "say so before: assert a.shape[0] == b.shape[0]"),
    ("""
def f(x: Float32["n 3"]) -> Float32["4"]:
    return x[0] + x[:, 1]
#                 ^^^^^^^
""", """cannot add Float32["3"] and Float32["n"]""", "assert 3 == n, where a name stands for x.shape[...]"),
    ("""
class M(Module):
    def __init__(self):
        self.w = Param(3, 5)
        self.hidden = 3
    def forward(self, x: Float32["hidden"]) -> Float32["hidden"]:
        return x @ self.w
#              ^^^^^^^^^^
f = M()
""", """the result of 'forward' must be 'Float32["3"]', but this is 'Float32["5"]'""", ""),
    ("""
@dataclass
class Leaf:
    word: Token
@dataclass
class Node:
    left: "Tree"
    right: "Tree"
Tree = Leaf | Node
def f(t: Tree) -> int:
    match t:
#   ^^^^^^^^
        case Leaf(word):
            return 1
""", "these cases do not cover Node(_, _)", ""),
    ("""
def f(x: Float32["n"], y: Float32["m"]) -> Float32["n"]:
    z = x * 2
    return z + y
#              ^
""", """cannot add Float32["n"] and Float32["m"]""", ""),
    ("""
def f(x: Float32["n"]) -> int:
    y = x
    return y
#          ^
""", "must be 'int', but this is 'Float32[\"n\"]'", ""),
    ("""
def f(xs: list[float]) -> list[int]:
    return [x for x in xs]
#                      ^^
""", "'list[int]', but this is 'list[float]'", ""),
]


def parts(snippet):
    """(text without the line of carets, line, column, end column)"""
    lines, place = [], None
    for line in snippet.split("\n"):
        if line.startswith("#") and line.strip("# ^") == "" and "^" in line:
            column = line.index("^") + 1
            if column == 2 and lines[-1].startswith("def"):
                column = 1  # the mark of the line's beginning stands in the way
            place = (len(lines), column, line.rindex("^") + 2)
        else:
            lines.append(line)
    return "\n".join(lines), place


def failure(module, snippet, check):
    text, (line, column, end) = parts(snippet)
    found = module(text)
    target = found.f
    with pytest.raises(CompileError) as caught:
        if callable(target) and not hasattr(target, "forward"):
            program = lowered(target)
        else:
            program = lowered(target, "forward")
        assert check, "nothing is wrong with it: " + program.text
        checked(program)
    error = caught.value
    first = HEAD.count("\n")
    assert (error.filename, error.lineno - first, error.offset, error.end_offset) == (
        found.__file__, line, column, end), (error.msg, error.lineno - first, error.offset, error.end_offset)
    assert error.text.rstrip("\n") == linecache.getline(found.__file__, error.lineno).rstrip("\n")
    return error


@pytest.mark.parametrize("snippet, message, help", FRONT, ids=range(len(FRONT)))
def test_front(module, snippet, message, help):
    error = failure(module, snippet, False)
    first = HEAD.count("\n")
    shifted = re.sub(r"in line (\d+)", lambda m: f"in line {int(m[1]) + first}", message)
    assert shifted in error.msg
    assert help in error.msg


@pytest.mark.parametrize("snippet, message, help", CHECKED, ids=range(len(CHECKED)))
def test_checked(module, snippet, message, help):
    error = failure(module, snippet, True)
    assert message in error.msg
    assert help in error.msg
