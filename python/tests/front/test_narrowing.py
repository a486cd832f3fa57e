"""What conditions say of paths such as `t.left` holds until their variable is assigned."""
from dataclasses import dataclass
from typing import Optional

import pytest

from conftest import Cases, compare
from sheaf import CompileError, jit

pytest.importorskip("sheaf._native")

case = Cases()


@dataclass
class T:
    v: int
    left: "Optional[T]" = None
    right: "Optional[T]" = None


@dataclass
class L:
    word: int


@dataclass
class N:
    a: "Tree"
    b: "Tree"
    extra: "Optional[Tree]" = None


Tree = L | N


@dataclass
class Pair:
    tree: Tree
    t: Optional[T]
    n: Optional[int] = None


@dataclass
class Outer:
    pair: Optional[Pair]


TS = [(T(1),), (T(2, T(3)),), (T(4, None, T(5)),), (T(6, T(7, T(8, T(9), T(1))), T(10, None, T(2))),),
      (T(3, T(0, None, T(4)), T(-5)),)]
TREES = [(L(3),), (N(L(1), N(L(4), L(2))),), (N(N(L(7), L(1), L(2)), L(5), N(L(1), L(2), L(3))),)]
PAIRS = [(Pair(L(2), T(4), 3),), (Pair(N(L(1), L(2)), None),), (Pair(N(N(L(3), L(4)), L(5)), T(1, T(2)), 0),)]
OUTERS = [(Outer(None),), *((Outer(p),) for p, in PAIRS)]


@case(*TS)
def total(t: T) -> int:
    s = t.v
    if t.left is not None:
        s += total(t.left)
    if t.right is not None:
        s += 2 * total(t.right)
    return s


@case(*TS)
def early(t: T) -> int:
    if t.left is None:
        return t.v
    return t.left.v * 10 + early(t.left)


@case(*TS)
def both_branches(t: T) -> int:
    if t.left is None:
        s = 1
    else:
        s = t.left.v
    if not t.right is None:
        s = s * 3 + t.right.v
    else:
        s = -s
    return s


@case(*TS)
def nested_paths(t: T) -> int:
    if t.left is not None and t.left.left is not None and t.left.left.right is not None:
        return t.left.left.right.v + t.left.left.v
    if t.left is not None:
        if t.left.right is not None:
            return t.left.right.v
        return -t.left.v
    return 0


@case(*TS)
def expression(t: T) -> int:
    a = t.left.v if t.left is not None else -1
    b = 0 if t.right is None else t.right.v
    c = t.left.left.v if t.left is not None and t.left.left is not None else 100
    d = 7 if t.left is None or t.left.right is None else t.left.right.v
    return a + 10 * b + 100 * c + 1000 * d


@case(*TS)
def truth(t: T) -> int:
    s = t.left.v if t.left else 5
    if t.right and t.right.v > 3:
        s += t.right.v
    if not t.left:
        return s
    if not (t.left and t.right):
        return s + t.left.v
    return s * t.left.v + t.right.v


@case(*TS)
def negated(t: T) -> int:
    if not (t.left is None or t.right is None):
        return t.left.v + t.right.v
    if not (t.left is not None and t.left.v > 2):
        return -1
    return t.left.v


@case(*TS)
def later_in_chain(t: T) -> int:
    if t.v > 1 and t.left is not None:
        return t.left.v
    if t.v > 100 or t.right is None:
        return -2
    return t.right.v


@case(*TS)
def negated_in_chain(t: T) -> tuple[bool, int]:
    deep = not (t.left is None or t.left.right is None) and t.left.right.v > 3
    return deep, 1 if (t.v > 1 and t.left is not None) and t.left.v > 2 else 0


@case(*[(t, k) for t, in TS for k in (0, 1, 4, 9)])
def many_arms(t: T, k: int) -> int:
    if k == 0 and t.left is not None:
        s = t.left.v
    elif k == 1 and t.right is not None:
        s = t.right.v * 2
    elif k == 4 and t.left is not None and t.left.right is not None or t.right is None:
        s = 5
    elif k != 4 or t.left is None:
        return -k
    else:
        s = t.left.v + 100
    return s + (t.left.v if k == 0 and t.left else t.right.v * 3 if k > 3 and t.right is not None
                else t.left.v * 7 if t.left is not None and t.v > 2 else 1)


def test_arms_are_made_once():
    fast = jit(many_arms)
    assert len(fast.source()) < 4000


@case(*TS)
def reassigned(t: T) -> int:
    s = 0
    if t.left is not None:
        s = t.left.v
        t = t.left
        if t.left is not None:
            s += 10 * t.left.v
        else:
            s += 1000
    return s + t.v


@case(*TS)
def reassigned_in_one(t: T) -> int:
    if t.left is None:
        return -1
    if t.v > 2:
        t = t.left
    return t.v + (t.left.v if t.left is not None else 50)


@case(*TS)
def in_loop(t: T) -> int:
    s = 0
    while t.left is not None:
        s += t.left.v
        t = t.left
    return s * 10 + t.v


@case(*TS)
def loop_both(t: T) -> int:
    s = 0
    while t.left is not None or t.right is not None:
        if t.left is not None:
            s += t.left.v
            t = t.left
        elif t.right is not None:
            s -= t.right.v
            t = t.right
    return s


@case(*TS)
def loop_break(t: T) -> int:
    s = 0
    while True:
        s += t.v
        if t.left is None:
            break
        t = t.left
        if t.right is None:
            continue
        s += t.right.v
    return s


@case(*TS)
def cursor(t: T) -> int:
    c: Optional[T] = t
    n = 0
    while c is not None:
        n += c.v
        c = c.left
    return n


@case(*TS)
def cursor_truth(t: T) -> int:
    c: Optional[T] = t
    n = 0
    while c:
        n += c.v if c.right is None else c.right.v
        c = c.left
    return n


@case(*TS)
def follow(t: Optional[T]) -> int:
    n = 0
    while t is None:
        n += 1
        t = T(n)
    return t.v + n


@case(*TS)
def loop_returns(t: T) -> int:
    while t.left is not None:
        if t.left.v > 7:
            return t.left.v
        t = t.left
    return -t.v


@case(*TREES)
def spine(x: Tree) -> int:
    n = 0
    while isinstance(x, N):
        n += 1
        x = x.b
    return x.word * 10 + n


@case(*TREES)
def spine_returns(x: Tree) -> int:
    n = 0
    while isinstance(x, N):
        n += 1
        if n > 1:
            return -n
        x = x.b
    else:
        n += 100
    return x.word + n


@case(*TREES)
def spine_until(x: Tree) -> int:
    while not isinstance(x, L):
        x = x.a
    return x.word


@case(*TREES)
def classes(x: Tree) -> int:
    if isinstance(x, L):
        return x.word
    if isinstance(x.a, L):
        s = x.a.word
    else:
        s = 100 + classes(x.a.a)
    return s + (x.b.word if isinstance(x.b, L) else classes(x.b.b) * 2)


@case(*TREES)
def optional_class(x: Tree) -> int:
    if isinstance(x, L):
        return 0
    if isinstance(x.extra, L):
        return x.extra.word
    if x.extra is not None and isinstance(x.extra.b, L):
        return x.extra.b.word + 50
    return 7 if x.extra is None else 8


@case(*PAIRS)
def fields(p: Pair) -> int:
    s = 0
    if isinstance(p.tree, N) and isinstance(p.tree.a, N) and p.t is not None and p.t.left is not None:
        s = classes(p.tree.a.b) + p.t.left.v
    elif isinstance(p.tree, L) and p.n is not None:
        s = p.tree.word + p.n
    return s


@case(*OUTERS)
def outer(o: Outer) -> int:
    if o.pair is None:
        return -1
    if o.pair.n is None or o.pair.n > 2:
        return 1 if o.pair.t is None else o.pair.t.v
    return o.pair.n + 5


@case(*OUTERS)
def values(o: Outer) -> tuple[bool, bool]:
    return (o.pair is not None and o.pair.n is not None and o.pair.n > 1,
            o.pair is None or not isinstance(o.pair.tree, L) or o.pair.tree.word > 2)


@case(([T(1), T(2, T(3)), T(4, T(5, None, T(6)))],), ([],))
def lists(ts: list[T]) -> tuple[int, int, list[int]]:
    a = sum(t.left.v for t in ts if t.left is not None)
    b = sum([x.left.right.v for x in ts if x.left is not None if x.left.right is not None])
    c = [t.left.v for t in ts if t.v > 1 and t.left is not None and t.left.v > 2]
    return a, b, c


@case(([T(1), T(2, T(3)), T(4, T(5, None, T(6)))],), ([T(2, T(-3))],), ([],))
def decided(ts: list[T]) -> tuple[bool, bool]:
    return (any(t.left.v > 4 for t in ts if t.left is not None),
            all(t.left is None or t.left.v > 0 for t in ts if t.v > 1))


@case(([1, None, 5, 0],), ([None],), ([],))
def there(xs: list[Optional[int]]) -> tuple[int, list[int], int]:
    ys = [x for x in xs if x is not None]
    return sum(x * 2 for x in xs if x is not None and x > 0), ys, len([y for x in xs if x is not None for y in [x]])


@case(([L(1), N(L(2), L(3)), L(4)],), ([N(L(2), L(3))],))
def words(xs: list[Tree]) -> list[int]:
    return [x.word for x in xs if isinstance(x, L)] + [classes(x.b) for x in xs if not isinstance(x, L)]


@case(*[([t for t, in TS],), ([],)])
def loop_over(ts: list[T]) -> int:
    s = 0
    for t in ts:
        if t.left is None:
            continue
        s += t.left.v
        if t.left.left is not None:
            s += 100 * t.left.left.v
            t = t.left.left
            s += t.v if t.left is None else t.left.v
    return s


@case(*TS)
def asserted(t: T) -> int:
    assert t.left is not None, "no left"
    assert t.left.right is None or t.left.right.v > 3
    return t.left.v


@case(*TS)
def raised(t: T) -> int:
    if t.left is None or t.left.v == 3:
        raise ValueError("no left")
    return t.left.v


@case(*TREES)
def asserted_class(x: Tree) -> int:
    assert isinstance(x, N) and isinstance(x.a, L), "no node of a leaf"
    return x.a.word + classes(x.b)


@case(*TREES)
def raised_class(x: Tree) -> int:
    if not isinstance(x, N):
        raise ValueError("leaf")
    return classes(x.a)


@case((3,), (None,), (0,))
def last_decides(x: Optional[int]) -> int:
    return x is not None and x


@case(*TS)
def shadowed(t: T) -> int:
    ts = [t, T(50, T(60))]
    if t.left is not None:
        return sum([t.left.v for t in ts if t.left is not None]) + t.left.v
    return sum(0 if t.left is None else t.left.v for t in ts)


@case(*TS)
def unpacked(t: T) -> int:
    s = 0
    if t.left is not None and t.right is not None:
        s = t.left.v
        t, other = t.right, t.left
        s += other.v + (t.right.v if t.right is not None else 0)
    return s


@case(*TS)
def matched(t: T) -> int:
    if t.left is not None:
        match t.left:
            case T(v, None, right):
                return v + (right.v if right is not None else 1)
            case T(left=T() as inner):
                return inner.v if inner.left is None else inner.left.v
    return -3


@case.each
def test_agrees(function, inputs):
    assert not all(isinstance(w, Exception) for w in compare(function, inputs, singly=True))


def of_new_variable(t: T) -> int:
    if t.left is not None:
        t = T(1)
        return t.left.v
    return 0


def of_loop(t: T) -> int:
    s = 0
    if t.left is not None:
        for i in range(3):
            s += t.left.v
            t = T(i)
    return s


def of_some_ways(t: T) -> int:
    if t.left is not None:
        if t.v > 3:
            t = T(1)
        return t.left.v
    return 0


def of_another(t: T) -> int:
    if t.left is not None:
        return t.right.v
    return 0


def of_or(t: T) -> int:
    if t.left is not None or t.v > 3:
        return t.left.v
    return 0


def of_first_turn(x: Tree) -> Tree:
    if isinstance(x, N):
        for i in range(2):
            x = x.a
    return x


def of_first_turn_asserted(x: Tree) -> Tree:
    assert isinstance(x, N)
    for i in range(2):
        x = x.a
    return x


@pytest.mark.parametrize("function", [of_first_turn, of_first_turn_asserted], ids=lambda f: f.__name__)
def test_classes_of_first_turn(function):
    with pytest.raises(CompileError, match="which of L . N this is decides whether it has 'a'"):
        jit(function)([L(1)])


def after_break(t: T) -> int:
    while t.left is None:
        t = T(1)
        if t.v > 0:
            break
    return t.left.v


@pytest.mark.parametrize("function", [of_new_variable, of_loop, of_some_ways, of_another, of_or, after_break],
                         ids=lambda f: f.__name__)
def test_refused(function):
    with pytest.raises(CompileError, match="this may be None, which has no 'v'"):
        jit(function)([T(1)])
