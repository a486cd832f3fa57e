"""Functions of many kinds give compiled what they give in plain Python.

They stand here as they are run: pytest rewrites the asserts of this file, which the front end sees through.
"""
import math
from dataclasses import dataclass
from typing import Callable, Generic, NamedTuple, Optional, TypeVar

import numpy as np
import pytest

from conftest import Cases, compare
from sheaf import *

pytest.importorskip("sheaf._native")

T = TypeVar("T")

@dataclass
class Leaf:
    word: int
@dataclass
class Node:
    left: "Tree"
    right: "Tree"
Tree = Leaf | Node

class Point(NamedTuple):
    x: float
    y: float

@dataclass
class Rose(Generic[T]):
    value: T
    kids: "list[Rose[T]]"

case = Cases()


@case((Node(Leaf(1), Node(Leaf(2), Leaf(3))),), (Leaf(7),))
def depth(t: Tree) -> int:
    match t:
        case Leaf():
            return 1
        case Node(left=l, right=r):
            return 1 + max(depth(l), depth(r))


@case((7, 2), (-7, 2), (7, -2), (-7, -2), (0, 3))
def floors(a: int, b: int) -> tuple[int, int, float]:
    return a // b, a % b, a / b


@case(([1, 2, 3],), ([],), ([-5, 4],))
def sums(xs: list[int]) -> int:
    total = 0
    for x in xs:
        if x > 1:
            total += x
    return total


@case(([1, 2, 3],), ([],), ([-5, 4],))
def average(xs: list[int]) -> float:
    total = 0
    n = 0
    for x in xs:
        total = total + x * 0.5
        n += 1
    if n == 0:
        return 0
    return total / n


@case(([1, 2, 3], 2), ([], 2), ([5], 2))
def find(xs: list[int], y: int) -> int:
    for i, x in enumerate(xs):
        if x == y:
            return i
    return -1


@case(([1, 2, 3], 2), ([], 2), ([5], 2))
def find2(xs: list[int], y: int) -> int:
    where = -1
    for i, x in enumerate(xs):
        if x == y:
            where = i
            break
    else:
        where = -2
    return where


@case(([1, 2, 3, 4, 5, 6],))
def skip(xs: list[int]) -> list[int]:
    out = []
    for x in xs:
        if x % 2 == 0:
            continue
        if x == 5:
            break
        out.append(x * x)
    return out


@case((5,), (0,))
def chain(n: int) -> bool:
    return 0 < n < 10 and not n == 3 or n in (0, 20)


@case(([3, 1, 2],), ([3],))
def negative(xs: list[int]) -> tuple[int, list[int], list[int], list[int]]:
    return xs[-1], xs[1:], xs[:-1], xs[::-1]


@case(([3, 1, 2], -2), ([3], 0))
def negindex(xs: list[int], i: int) -> int:
    return xs[i]


@case(([3.0, 1.0, 2.0],), ([3.0],))
def comps(xs: list[float]) -> tuple[list[float], float, bool, bool, float]:
    return [x * 2 for x in xs if x > 1], sum(x for x in xs), any(x > 2 for x in xs), all(x > 2 for x in xs), max(xs)


@case(([1, 2], [3, 4, 5]))
def nested(xs: list[int], ys: list[int]) -> list[int]:
    return [x * y for x in xs for y in ys if x != y]


@case((3,), (0,))
def early(n: int) -> int:
    if n > 2:
        if n > 5:
            return 1
        x = 2
    else:
        x = 3
    y = x + 1
    if y == 3:
        return x
    return y * 10


@case((Point(1.0, 2.0),))
def points(p: Point) -> float:
    x, y = p
    q = Point(y, x=x) if False else Point(y, x)
    return q.x - q[1] + p[-1]


@case((3,), (None,))
def optional(n: Optional[int]) -> int:
    if n is None:
        return -1
    return n + 1


@case((3,), (None,))
def optional2(n: int | None) -> int:
    x = 10 if n is None else n
    best: int | None = None
    for i in range(x):
        if best is None:
            best = i
        else:
            best = best + i
    return 0 if best is None else best


@case((Rose(1, [Rose(2, []), Rose(3, [Rose(4, [])])]),))
def rose(t: Rose[int]) -> int:
    return t.value + sum(rose(k) for k in t.kids)


@case((np.float32([1, 2, 3]),), (np.float32([-1.5]),))
def tensor_if(x: Float32["n"]) -> int:
    if x.sum() > 0:
        return int(x[0].item() * 2)
    elif x[-1]:
        return len(x)
    return 0


@case((np.float32([[1, 2, 3], [4, 5, 6]]),))
def shapes(x: Float32["n m"]) -> tuple[int, int, Float32["m"], Float32["?"]]:
    n, m = x.shape
    return n, x.shape[1], x[-1], x[:, -1]


@case((np.float32([[1, 2, 3], [4, 5, 6]]),))
def grow(x: Float32["n m"]) -> Float32["? m"]:
    y = x
    for i in range(2):
        y = concat(y, x * i)
    return y


@case((np.float32([[1, 2, 3], [4, 5, 6]]),))
def rowsum(x: Float32["n m"]) -> Float32["m"]:
    total = 0
    for row in x:
        total = total + row
    return total


@case((1, 2), (2, 1))
def swap(a: int, b: int) -> tuple[int, int]:
    if a < b:
        a, b = b, a
    return a, b


@case((2, 3))
def shadow(n: int, sum_: int) -> int:
    sum = n + sum_
    let = sum * 2
    fn = [let for n in range(3)]
    N = len(fn)
    match_ = N
    return match_ + n


@case((4,))
def ranges(n: int) -> list[int]:
    return [*range(n), *range(1, n), *range(0, 10, 3), *range(n, 0, -2), *reversed(range(n))]


@case(([1, 2, 3, 4],), ([],), ([1],))
def lists(xs: list[int]) -> int:
    match xs:
        case []:
            return 0
        case [x]:
            return x
        case [x, y, *rest] if x > y:
            return x
        case [x, *rest]:
            return x + lists(rest)


@case((1,), (2,), (5,), (-1,))
def ors(n: int) -> int:
    match n:
        case 1 | 2:
            return 10
        case -1:
            return 20
        case x if x > 4:
            return x
        case _:
            return 0


@case((Node(Leaf(1), Leaf(2)),), (Node(Leaf(1), Node(Leaf(3), Leaf(4))),), (Leaf(3),))
def nested_patterns(t: Tree) -> int:
    match t:
        case Node(Leaf(a) as l, Leaf(b)) as whole:
            return a * 100 + b + depth(l) + depth(whole)
        case Node(Leaf(a) | Node(Leaf(a), _), _):
            return a
        case other:
            return depth(other)


@case((Node(Leaf(1), Leaf(2)),), (Node(Node(Leaf(1), Leaf(5)), Leaf(7)),), (Node(Leaf(2), Node(
    Leaf(3), Leaf(4))),), (Leaf(3),))
def named_patterns(t: Tree) -> int:
    match t:
        case Node(Node(_, Leaf(5)) as x, _):
            return depth(x.left) + depth(x.right) * 10
        case Node(Leaf() as l, right=Leaf(w) as r) if l.word < r.word:
            return l.word * 100 + r.word + w
        case Node(left) as whole:
            return named_patterns(whole.right) + depth(left)
        case Leaf() as x:
            return x.word


@case((Node(Leaf(1), Leaf(2)),), (Leaf(3),))
def build(t: Tree) -> Tree:
    match t:
        case Leaf(w):
            return Node(Leaf(w + 1), t)
        case Node(l, r):
            return Node(left=build(r), right=build(l))


@case((3, 0), (0, 5))
def boolops(a: int, b: int) -> int:
    return a or b and 7


@case((3.0,), (0.0,))
def floats(a: float) -> float:
    x = -a ** 2
    y = abs(x) + 1
    return math.sqrt(y) + math.floor(a + 0.5) + 2 ** 3 + y ** 0.5


@case(([[1, 2], [], [3]],))
def flatten(xss: list[list[int]]) -> list[int]:
    out = []
    for xs in xss:
        for x in xs:
            out.append(x)
    return out


@case(([[1, 2], [], [3]],))
def lens(xss: list[list[int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for i, xs in enumerate(xss):
        t = 0
        for x in xs:
            t += x
        out.append((i, t))
    return out


def apply(f: Callable[[int], int], x: int) -> int:
    return f(f(x))

def inc(x: int, by: int = 2) -> int:
    return x + by


@case((3,))
def higher(n: int) -> tuple[int, int, list[int]]:
    return apply(inc, n), apply(lambda x: x * n, 2), list(map(lambda x: x + n, range(3)))


@case(([1, 5, 2],))
def whiles(xs: list[int]) -> int:
    i = 0
    while i < len(xs) and xs[i] < 4:
        i += 1
    return i


@case((10,), (1,))
def collatz(n: int) -> int:
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
        if steps > 100:
            break
    return steps


@case((10,), (3,))
def whiletrue(n: int) -> int:
    k = 0
    while True:
        k += 1
        if k * k >= n:
            return k
        if k > 50:
            break
    return -1


@case((7,), (1,))
def endless(n: int) -> tuple[int, int]:
    k = 0
    while True:
        if n % 2 == 0 or k > 3:
            return n, k
        n = n // 2
        k += 1


@case(([1, 2, 3],), ([],))
def whileelse(xs: list[int]) -> list[int]:
    out = []
    i = 0
    while i < len(xs):
        j = 0
        while True:
            j += 1
            if j > i:
                break
            out.append(i * j)
        i += 1
        if len(out) > 100:
            break
    else:
        out.append(-1)
    return out


@case((np.float32([1, 2, 3]),), (np.float32([-1, 0]),))
def growing(x: Float32["n"]) -> tuple[Float32["?"], int]:
    turns = 0
    y = x
    while y.sum() < 20 and turns < 4:
        y = concat(y, x * 2)
        turns += 1
    short = y
    while len(short) > 2:
        short = short[1:]
    return concat(y, short), turns


@case((True, False), (False, False))
def bools(a: bool, b: bool) -> tuple[bool, int, bool, bool]:
    return a & b | a, a + b + 1, a == b, not (a and b)


@case(([1, 2, 3, 4],))
def parts(xs: list[int]) -> tuple[int, list[int], int]:
    first, *middle, last = xs
    return first, middle, last


@case((np.int32([0, 2]), np.float32([[1, 2], [3, 4], [5, 6]])))
def gather_(idx: Int32["k"], x: Float32["n m"]) -> tuple[Float32["k m"], Float32["2 m"], Float32["? m"]]:
    return x[idx], x[[1, -1 + 2]], x[1:len(x)]


@case((np.float32([1, 2, 3]),))
def methods(x: Float32["n"]) -> tuple[Float32[""], Float32["n"], int, float, Float32["n"]]:
    return x.sum(), x.softmax(), x.argmax().item(), x.max().item(), -x ** 2 + 1 / x


@case((1, 2, 3))
def tuples(a: int, b: int, c: int) -> int:
    t = (a, (b, c))
    u, (v, w) = t
    p = t[1]
    return p[0] + p[-1] * 10 + t[0] * 100 + (u, v)[1] + (1 if (a, b) == (u, v) else 0)


@case((4,),(0,))
def join_none(n: int) -> int:
    if n > 3:
        y = n
    elif n > 1:
        y = 2
    else:
        y = -1
    z = 0
    if y > 0: z = 1
    return y + z


@case(([3, 1, 2],))
def nested_loops(xs: list[int]) -> int:
    best = 0
    for i in range(len(xs)):
        for j in range(i + 1, len(xs)):
            if xs[i] > xs[j]:
                best += 1
            if best > 10:
                return -1
    return best


@case(([3, 1, 2],))
def loop_in_branch(xs: list[int]) -> int:
    if len(xs) > 2:
        s = 1
        for x in xs:
            s *= x
        return s
    s = 0
    for x in xs:
        s -= x
    return s


@case((3,), (100,))
def asserts(n: int) -> int:
    assert n < 50, "too \"large\"\n"
    if n == 40:
        raise ValueError("no")
    return n


@case(([1.5, 2.5],))
def stacks(xs: list[float]) -> Float32["?"]:
    return stack([f32(x) * 2 for x in xs])


@case.each
def test_agrees(function, inputs):
    compare(function, inputs)
