"""Odd programs: shadowed names, jumps out of nested loops, None, generics, aliases, mixed numbers."""
import math
from dataclasses import dataclass
from typing import Generic, Optional, TypeVar

import numpy as np
import pytest

from conftest import Cases, compare
from sheaf import *
from test_programs import Leaf, Node, Tree, inc

pytest.importorskip("sheaf._native")

T = TypeVar("T")
case = Cases()


def even(n: int) -> bool:
    return True if n == 0 else odd_(n - 1)


def odd_(n: int) -> bool:
    return False if n == 0 else even(n - 1)


@case((4,), (7,))
def mutual(n: int) -> bool:
    return even(n)


def check_it(x: int) -> None:
    assert x > 0, "positive"
    if x == 5:
        return
    assert x < 10


@case((4,), (-1,), (5,), (11,))
def nones(x: int) -> int:
    check_it(x)
    return x


shadowed, nothing, many = 1, None, [1, 2]  # parameters of these names are others


@case((1, 2), (2, 1), (0, 0))
def shadowing(shadowed: int, many: int) -> int:
    if shadowed == 1:
        return 10
    while shadowed == 1:
        return 20
    match shadowed:
        case 1:
            return 30
        case 2:
            return 40 + many
        case _:
            many += 1
    for shadowed in range(many):
        pass
    return shadowed


@case((1,), (None,))
def shadowing_none(nothing: Optional[int]) -> int:
    if nothing is None:
        return 5
    return nothing


@dataclass
class Stack(Generic[T]):
    top: T
    below: "Optional[Stack[T]]" = None


@case(([1, 2, 3],), ([],))
def linked(xs: list[int]) -> int:
    s: Optional[Stack[int]] = None
    for x in xs:
        s = Stack(x, s)
    n = 0
    for _ in range(len(xs)):
        if s is not None:
            n = n * 10 + s.top
            s = s.below
    return n


@case((Stack(3, Stack(4, None)),), (None,))
def opt_data(s: Optional[Stack[int]]) -> Optional[int]:
    match s:
        case None:
            return None
        case Stack(top, None):
            return top
        case Stack(top, below) as whole:
            r = opt_data(below)
            if r is None or r < 0:
                return whole.top
            return top + r


def first(xs: list[T], default: T) -> T:
    for x in xs:
        return x
    return default


@case(([1, 2],), ([],))
def generic(xs: list[int]) -> tuple[int, float]:
    return first(xs, 7), first([x * 0.5 for x in xs], 0.25)


@case((3, 4),)
def shadowing(f: int, len_: int) -> int:
    range_ = [f for f in range(len_)]
    max = sum(range_)
    return max + f


@case(([[1.0, 2.0], [3.0]],))
def nested_tuple(xss: list[list[float]]) -> tuple[tuple[int, float], list[tuple[int, list[float]]]]:
    pairs = [(len(xs), xs) for xs in xss]
    best = (0, 0.0)
    for n, xs in pairs:
        if n > best[0]:
            best = (n, max(xs))
    return best, pairs


@case((2,), (0,), (10,))
def deep_jumps(n: int) -> int:
    total = 0
    for i in range(n):
        for j in range(i):
            if j == 3:
                continue
            if j > 5:
                break
            total += j
        else:
            total += 100
            continue
        if i > 8:
            return -total
        total += 1000
    else:
        total += 1
    return total


@case((0,), (1,), (2,), (3,))
def many_returns(n: int) -> int:
    if n == 0:
        return 1
    elif n == 1:
        x = 5
    else:
        if n == 3:
            return 9
        x = 6
    x += 1
    for i in range(3):
        if i == n:
            return x * 10
    return x


@case((np.float32([1, -2, 3]),),)
def tensor_and(x: Float32["n"]) -> bool:
    return x[0] > 0 and x[1].item() < 0 and not (x.sum() > 100)


@case((np.float32([1, -2, 3]),),)
def ifexp_tensor(x: Float32["n"]) -> Float32["n"]:
    y = x if x[0] > 0 else -x
    z = 0.0
    for v in x:
        z = z + v * v
    return y / z


@case((np.float32([[1, -2], [3, 4]]), 1), (np.float32([[1, -2], [3, 4]]), -1))
def dyn_index(x: Float32["n m"], i: int) -> tuple[Float32["m"], Float32["n"], Float32["? m"], float]:
    return x[i], x[:, i], x[i:], x[i, i].item() + x[-1, -2].item()


@case(([3, 4],), ([],), ([1],))
def orlist(xs: list[int]) -> int:
    if xs and xs[0] > 2:
        return 1
    if not xs:
        return 2
    return len(xs) or 5


@case((5, 2.5))
def mixed(i: int, x: float) -> tuple[float, bool, bool, float, float]:
    return i * x - i, i < x, i == x, max(i, x), min(x, i, 1)


@case((True,), (False,))
def boolint(b: bool) -> int:
    n = 3
    if b:
        n = b
    return n + b * 2


@case((7,))
def consts(n: int) -> tuple[int, float, float, int]:
    K = 4
    a = n // K
    return a, math.pi, math.inf, -3 // 2 + (-7) % 3


@case(([5, 3, 8],))
def maxes(xs: list[int]) -> tuple[int, int, int]:
    return max(xs), min(x * 2 for x in xs), max([], default=3) if False else max(xs, default=0)


@case(([1, 2, 3, 4, 5],), ([],))
def slices(xs: list[int]) -> tuple[list[int], list[int], list[int], list[int]]:
    return xs[1:3], xs[-2:], xs[5:9], xs[:-10]


@case((Node(Leaf(1), Node(Leaf(5), Leaf(2))),))
def collect(t: Tree) -> list[int]:
    match t:
        case Leaf(w):
            return [w]
        case Node(l, r):
            return collect(l) + collect(r)


@case((Node(Leaf(1), Node(Leaf(5), Leaf(2))),))
def leaves(t: Tree) -> list[Tree]:
    todo = [t]
    out: list[Tree] = []
    for _ in range(10):
        if not todo:
            break
        x = todo[-1]
        todo.pop()
        match x:
            case Leaf():
                out.append(x)
            case Node(l, r):
                todo.append(r)
                todo.append(l)
    return out


@case((3,))
def unused(n: int) -> int:
    "doc"
    x = 1 // n
    y = [x] * n
    z = [0, 1] * 2
    pass
    ...
    return sum(y) + sum(z)


@case((3, 4))
def tuple_eq(a: int, b: int) -> bool:
    p = (a, (b, True))
    return p == (3, (4, True)) and p != (3, (4, False)) and a in (1, 2, 3) and b not in [1, 2]


@case((np.float32([1, 2, 3, 4]), 3),)
def per_dim(x: Float32["n"], k: int) -> Float32["n"]:
    y = zeros(len(x)) + ones(x.shape[0])
    z = zeros(k)
    return x + y + concat(z, zeros(len(x) - k))


@case((np.float32([[1, 2], [3, 4], [5, 6]]),),)
def scan_like(xs: Float32["n h"]) -> tuple[Float32["n h"], Float32["h"]]:
    h = zeros(xs.shape[1])
    hs = []
    for x in xs:
        h = tanh(h + x)
        hs.append(h)
    return stack(hs), h


@case((np.float32([[1, 2], [3, 4], [5, 6]]),),)
def map_like(xs: Float32["n h"]) -> Float32["n h"]:
    out = []
    for x in xs:
        y = x * 2
        if y.sum() > 4:
            y = y + 1
        out.append(y)
    return stack(out)


@case((np.float32([[1, 2], [3, 4], [5, 6]]),),)
def zips(xs: Float32["n h"]) -> Float32["h"]:
    total = zeros(xs.shape[1])
    for i, (a, b) in enumerate(zip(xs, reversed(list(xs)))):
        total += a * b * i
    return total


@case(([1, 2, 3], [4, 5]), ([], [1]), ([1, 2], [3, 4]))
def shorter(xs: list[int], ys: list[int]) -> tuple[list[int], list[int], int]:
    k = 0
    for i, (x, y) in enumerate(zip(xs, ys)):
        k = k * 10 + x * y + i
    return [x * y for x, y in zip(xs, ys)], list(map(lambda x, y, z: x + y - z, xs, ys, [7, 7])), k


@case(([1, 2, 3],))
def aliasing(xs: list[int]) -> tuple[list[int], list[int]]:
    ys = list(xs)
    zs = ys[:]
    ys.append(4)
    zs += [9]
    ys.extend(zs)
    ys.reverse()
    return ys, zs


@case((2,), (9,))
def chained_calls(n: int) -> int:
    return inc(inc(n, by=inc(1)), inc(by=3, x=1))


@case((4,))
def strange_names(fn: int) -> int:
    let = fn
    data = let + 1
    true = data
    N = true
    π = N * 2
    _x = π
    main = _x + 1
    py_floor_div = main // 2
    Option = py_floor_div
    return Option


@case((3,), (1,))
def augmented(n: int) -> float:
    x = 1
    x += n; x -= 1; x *= 3; x //= 2; x %= 5; x **= 2
    y = 1.5
    y /= n
    return x + y


@case(([1, 2, 3], [4, 5]), ([], []))
def loops_no_carry(xs: list[int], ys: list[int]) -> int:
    for x in xs:
        assert x != 7
    for y in ys:
        pass
    return len(xs)


@case((1,),(2,),(3,))
def guards(n: int) -> int:
    match (n, n + 1):
        case (1, m) if m == 2:
            return m
        case (a, b) if a > 5:
            return a
        case (2, _) | (_, 9):
            return 22
        case _:
            return 0


@case((0.5,), (1.0,))
def float_match(x: float) -> int:
    match x:
        case 0.5:
            return 1
        case 1:
            return 2
        case _:
            return 3


@case((True, 1), (False, 2))
def bool_match(b: bool, n: int) -> int:
    match b, n:
        case True, k:
            return k
        case False, k:
            return -k


@case((3,))
def join_alias(n: int) -> list[int]:
    xs = [n]
    if n > 2:
        xs.append(4)
    else:
        xs = xs + [5]
    for i in range(2):
        xs.append(i)
    return xs


@case((3,), (0,))
def first_in_loop(n: int) -> int:
    x = 0
    for i in range(n):
        y = i * 2
        x = y
    for i in range(n):
        z = x
        x = z + i
    return x


@case((5,))
def nested_if_join(n: int) -> tuple[int, int]:
    a = b = 0
    if n > 1:
        if n > 3:
            a = 1
            if n > 4: b = 2
        else:
            b = 3
    return a, b


@case((3,), (None,), (-1,))
def narrow(x: Optional[int]) -> int:
    if x is not None and x > 0:
        return x
    if x is None or x == -1:
        y = 5
    else:
        y = x
    z = x if x is not None and x > 3 else 7
    return y + z


@case((3,), (None,), (-1,))
def narrow2(x: Optional[int]) -> int:
    assert x is not None and x > 0, "no x"
    return x + 1


@case((3, 4), (None, 4), (1, None))
def narrow3(x: Optional[int], y: Optional[int]) -> bool:
    return x is not None and y is not None and x < y


@case((3,), (0,))
def opt_state(n: int) -> int:
    last2: Optional[int] = None
    for i in range(n):
        if last2 is not None and last2 > 1: break
        last2 = i
    if not last2 is None:
        return last2
    return -1


@case(([1, 2],), ([],))
def target_after(xs: list[int]) -> int:
    x = 5
    for x in xs:
        pass
    return x


@case(([1, 2],), ([],))
def target_changed(xs: list[int]) -> list[int]:
    out = []
    x = 0
    for x in xs:
        x = x * 2
        for x in range(x):
            out.append(x)
        out.append(x)
    out.append(x)
    return out


@case(([(1, 2), (3, 4)],), ([],))
def tuple_target(xs: list[tuple[int, int]]) -> tuple[int, int]:
    a, b = -1, -2
    for a, b in xs:
        if a > 2: break
    else:
        a = 100
    return a, b


@case((3,), (0,))
def while_locals(n: int) -> int:
    t = 0
    while n > 0:
        m = n * 2
        n -= 1
        if m == 4: continue
        t += m
    return t + n


@case((3,), (0,))
def comp_scope(n: int) -> int:
    x = 7
    ys = [x for x in range(n)]
    zs = [x + y for y in ys]
    return x + sum(zs) + sum(x for x in ys)


@case((3,), (0,))
def cond_list(n: int) -> list[int]:
    xs = [1] if n > 1 else []
    if n > 2:
        xs = [*xs, n]
    ys = xs
    xs = xs + [9]
    return ys + xs


@case((3,), (0,))
def float_join(n: int) -> float:
    x = 0
    if n > 1:
        x = 0.5
    y = 1
    for i in range(n):
        y = y / 2
    return x + y


@case((3,), (0,))
def opt_join(n: int) -> Optional[int]:
    x = None if n > 1 else n
    y = x
    if y is None and n == 3:
        y = 10
    return y


@case((3,), (-3,))
def ret_in_while(n: int) -> int:
    while True:
        n += 1
        if n > 4:
            while n > 0:
                n -= 2
                if n == 1:
                    return 77
            return n


@case(([[1, 2], [3]],))
def deep(xss: list[list[int]]) -> int:
    for i, xs in enumerate(xss):
        for x in xs:
            if x == 3:
                return i * 10 + x
        if len(xs) > 5: break
    return -1


@case((3,))
def shadow_fn(deep: int) -> int:
    target_after = deep + 1
    return target_after + comp_scope(deep)


@case((True, None), (False, 3))
def bool_opt(b: bool, x: Optional[int]) -> int:
    y = x if b else 4
    z = 0 if y is None else y
    w: int | None = z if z else None
    return -1 if w is None else w


@case(([3, 1,2],))
def swap_list(xs: list[int]) -> list[int]:
    ys = list(xs)
    for i in range(len(ys)):
        for j in range(len(ys) - 1):
            if ys[j] > ys[j + 1]:
                ys = ys[:j] + [ys[j + 1], ys[j]] + ys[j + 2:]
    return ys


INF, NAN = math.inf, math.nan


@case(*[(a, b) for a in (2.5, -8.0, 0.0, -0.0, INF, -INF, NAN, 1.0, -1.0)
        for b in (2.0, 3.0, 0.5, -0.5, -1.0, 0.0, INF, -INF, NAN)])
def powers(a: float, b: float) -> tuple[float, float]:
    return math.pow(a, b), 2.0 ** b + a ** 2


@case((0.0,), (-1.0,), (2.0,), (NAN,), (INF,))
def negative_powers(x: float) -> float:
    return x ** -1


@case((0.0,), (-1.0,), (2.0,), (NAN,), (INF,))
def roots_and_logs(x: float) -> tuple[float, float]:
    return math.sqrt(x), math.log(x + 1.0)


@case((1.5,), (-1.5,), (NAN,), (INF,), (-INF,), (-2.0 ** 63,), (2.0 ** 63 - 1024,))
def ints_of_floats(x: float) -> list[int]:
    return [int(x), math.floor(x), math.ceil(x), math.trunc(x)]


@case((1,), (7,))
def guarded_names(n: int) -> int:
    x = 3
    match n:
        case x if x > 5:
            return x
        case x:
            pass
    return x


@case(([1, 2],), ([],))
def extended(xs: list[int]) -> list[int]:
    ys = [1, 2]
    ys += [x + len(ys) for x in xs]
    ys.extend(x + 1 for x in xs)
    return ys


@case.each
def test_agrees(function, inputs):
    compare(function, inputs)
