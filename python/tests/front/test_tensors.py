"""Functions of tensors: state in dataclasses, lists of tensors, what may be None, decisions that read."""
import math
from dataclasses import dataclass
from typing import Callable, NamedTuple

import numpy as np
import pytest

from conftest import Cases, compare
from sheaf import *
from sheaf import jit

pytest.importorskip("sheaf._native")

case = Cases()


A = np.float32
X = A([[1, 2, 3], [4, 5, 6], [-1, 0, 2]])


@dataclass
class State:
    h: Float32["3"]
    n: int
    seen: list[Float32["3"]]


@case((X,), (X[:0],))
def dataclass_state(xs: Float32["n 3"]) -> tuple[Float32["3"], int]:
    s = State(zeros(3), 0, [])
    for x in xs:
        if s.n > 1 and x.sum() < 3:
            break
        s = State(tanh(s.h + x), s.n + 1, [*s.seen, x])
    return s.h, len(s.seen)


@case((X,), (X[:0],))
def opt_tensor(xs: Float32["n h"]) -> tuple[Float32["?"], bool]:
    best: Float32["?"] | None = None
    for x in xs:
        if best is None or x.sum().item() > best.sum().item():
            best = x
    if best is None:
        return zeros(1), False
    return best, True


def turned(words: Tokens["n"]) -> Tokens["n"]:
    return flip(words)


def tokens_of_a_list(words: list[Token], last: Token) -> tuple[Tokens["?"], Tokens["2"], Token]:
    seen = [last]
    for word in words:
        seen.append(word)
    return turned(stack(seen)), stack([last, words[0]]), Token(i32(stack(words)).max().item())


@case((X, 0.5), (X, 100.0))
def early(xs: Float32["n h"], limit: float) -> tuple[int, Float32["h"]]:
    h = zeros(xs.shape[1])
    for i, x in enumerate(xs):
        h = h + sigmoid(x)
        if h.max().item() > limit:
            return i, h
    return -1, h * 2


@case((X,))
def lists_of_tensors(xs: Float32["n h"]) -> Float32["h"]:
    rows_ = [x for x in xs]
    pairs = [(a, b) for a, b in zip(rows_, rows_[::-1])]
    sums = [a * 2 + b for a, b in pairs]
    total = sum(sums)
    nested = [[a + b for b in rows_] for a in rows_]
    flat = [y for ys in nested for y in ys]
    return total + sum(flat) + sums[-1] + nested[0][-1]


@case((X, [0, 2, 1]))
def pointers(xs: Float32["n h"], where_: list[int]) -> tuple[Float32["h"], Float32["? h"]]:
    acc = zeros(xs.shape[1])
    for w in where_:
        acc = acc + xs[w] * xs[-w - 1]
    picked = xs[where_]
    return acc, picked


@case((X,))
def attention_loop(xs: Float32["n h"]) -> Float32["n h"]:
    q, k, v = xs, xs * 0.5, xs + 1
    for _ in range(2):
        s = softmax(q @ k.T / math.sqrt(xs.shape[1]), axis=-1)
        q = s @ v
    mask = q > 0.5
    return where(mask, q, -q)


@case((X,))
def window(xs: Float32["n h"]) -> list[Float32["? h"]]:
    out = []
    for i in range(len(xs)):
        lo = max(0, i - 1)
        hi = min(len(xs), i + 2)
        out.append(xs[lo:hi])
    return out


@case((X,))
def growing_list(xs: Float32["n h"]) -> list[Float32["? h"]]:
    parts = []
    cur = xs[0:1]
    for x in xs:
        cur = concat(cur, expand_dims(x))
        parts.append(cur)
    return parts


@case((X, 3), (X, 0))
def power_iter(m: Float32["n n"], k: int) -> Float32["n"]:
    v = ones(len(m))
    while k > 0:
        v = m @ v
        size = norm(v).item()
        if size > 100:
            v = v / size
        k -= 1
    return v


@case((X,))
def unpack_rows(x: Float32["3 h"]) -> Float32["h"]:
    a, b, c = x
    (p, q), r = (a, b), c
    return p - q * r


@case((X, A([1., 2.])))
def bcast(x: Float32["n 3"], y: Float32["2"]) -> Float32["n 3 2"]:
    return expand_dims(x, axis=2) * y


@case(([[1.0, 2.0], [3.0]],))
def from_lists(xss: list[list[float]]) -> list[Float32["?"]]:
    return [stack([f32(x) for x in xs]) for xs in xss]


@case((X,))
def total_loss(xs: Float32["n h"]) -> Float32[""]:
    loss = 0
    for i in range(len(xs) - 1):
        loss += mse(xs[i], xs[i + 1])
    loss = loss / max(len(xs) - 1, 1)
    return loss


@case((X,))
def total_zero(xs: Float32["n h"]) -> Float32[""]:
    loss = 0.0
    for x in xs:
        if x[0] > 0:
            loss = loss + x.sum() * 2
    return loss + 1


@case((X,))
def methods2(x: Float32["n h"]) -> tuple[Float32["h"], Float32["n"], Float32["h n"], Float32["n h"],
                                         Float32["n 2"], Int32["n 2"]]:
    v, i = x.top_k(2)
    return x.mean(axis=0), x.sum(-1), x.T, x.reshape(x.shape[0], x.shape[1]).softmax(axis=0), v, i


class Pt(NamedTuple):
    x: Float32["2"]
    w: float = 1.0


@case(([Pt(A([1, 2]), 0.5), Pt(A([3, 4]))],), ([],))
def points(ps: list[Pt]) -> Float32["2"]:
    total = zeros(2)
    weight = 0.0
    for x, w in ps:
        total = total + x * w
        weight += w
    if weight == 0:
        return total
    return total / weight


@case((X,))
def callable_(xs: Float32["n h"]) -> Float32["n h"]:
    return stack(list(map(lambda x: apply(act, x), xs)))


def act(x: Float32["h"]) -> Float32["h"]:
    return relu(x) - 1


def apply(f: Callable[[Float32["h"]], Float32["h"]], x: Float32["h"]) -> Float32["h"]:
    return f(f(x))


@case((A([3, 1, 2]),))
def cond_tensor(x: Float32["n"]) -> Float32["n"]:
    y = x if x[0] > x[1] else -x
    z = y if (y.argmax() == 0) else zeros(len(y))
    if not (z == 0).i32().sum():
        z = z + 1
    return z * float(x[0] > 2) + int(x[1])


@case((np.int32([1, 2, 0]), A([5, 6, 7])))
def int_tensors(i: Int32["n"], x: Float32["m"]) -> tuple[Float32["n"], int, list[int]]:
    s = i.sum().item() % 4
    return x[i] * f32(i), s, [j * 2 for j in i.tolist()]


@case((5,), (0,))
def made(n: int) -> tuple[Float32["?"], int]:
    x = iota(n).f32() if n > 2 else ones(n + 1)
    return x, len(x)


@case((X,))
def chained_tensor(x: Float32["n h"]) -> bool:
    return bool(0 < x[0, 0] < 5 and x[1][2].item() in (6.0, 7.0))


@case((X,))
def slices(x: Float32["n h"]) -> tuple[Float32["? h"], Float32["n ?"], Float32["h"], Float32["2 2"]]:
    return x[1:-1], x[:, 1:], x[len(x) - 1], x[-2:, :2]


@case((X, X[:1], X[:2]), (X, X[:0], X), (X, X, X[:0]), (X, X[:2], X[:1]))
def runs_of_rows(x: Float32["n h"], before: Float32["k h"], y: Float32["m h"]) -> tuple[
        Float32["m h"], Float32["m"], Float32["h ?"]]:
    """x[a:a + len(y)] has as many rows as y, wherever they begin."""
    a = len(before)
    return y + x[a:a + len(y)], y[:, 0] + x[a:a + len(y), 1], x.T[:, a:a + len(y)]


@case((X, X[:1]), (X, X[:0]))
def lengths_together(x: Float32["n h"], y: Float32["m h"]) -> tuple[Float32["n 1 h"], Float32["m h"], int, int]:
    """a, b = e, f are what a = e and b = f are; names that others read change at once."""
    n, a = len(x), len(y)
    rows = reshape(x, n, 1, x.shape[1])
    part, y = x[a:a + len(y)], 2 * y
    y, part = part + y, y
    n, a = a, n
    return rows, y - part, n, a


@case.each
def test_agrees(function, inputs):
    assert not any(isinstance(w, Exception) for w in compare(function, inputs))


def test_tokens_of_a_list():
    inputs = [([3, 1, 2], 4), ([7], 0)]
    for got, words in zip(jit(tokens_of_a_list, vocab=9)(*zip(*inputs), errors="return"), inputs):
        assert [np.asarray(part).tolist() for part in got] == [
            np.asarray(part).tolist() for part in tokens_of_a_list(*words)]
