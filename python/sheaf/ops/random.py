"""Random tensors.

What a compiled program draws follows from the seed, the number of the instance and the way of calls
that leads to a draw. Eager code does not know that way, so it draws only when told to:

    with sheaf.draws(seed=0):
        model.loss(tree)

Then the n-th draw in the block has the key of the n-th site of a function. For a function that
draws, and neither calls nor loops, these are the numbers of the compiled program.
"""
import contextlib
import contextvars
import math

import numpy as np

from .registry import operator
from .tensors import ShapeError, give, host_kind, need_extents, need_float, type_of

_MASK = 0xFFFFFFFFFFFFFFFF
_drawing = contextvars.ContextVar("sheaf.draws", default=None)


class _Draws:
    def __init__(self, key, dropout):
        self.key, self.dropout, self.made = key, dropout, 0

    def next(self):
        self.made += 1
        return split_key(self.key, self.made - 1)


@contextlib.contextmanager
def draws(seed=0, instance=0, step=0, dropout=False):
    """Lets eager code draw, with numbers that follow from these alone; with `dropout`, dropout
    drops."""
    key = split_key(split_key(split_key(0, seed), step), instance)
    token = _drawing.set(_Draws(key, dropout))
    try:
        yield
    finally:
        _drawing.reset(token)


def split_key(key, number):
    """Output `number` of the SplitMix64 generator whose state is `key` (runtime/model/keys.h)."""
    z = key + (number + 1) * 0x9E3779B97F4A7C15 & _MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _MASK
    return z ^ z >> 31


def _next_key(name):
    drawing = _drawing.get()
    if drawing is None:
        raise RuntimeError(
            f"'{name}' draws, and eager code does not know the key that the compiled program has "
            "here. Run it compiled (sheaf.jit), or let eager code draw numbers of its own: "
            "with sheaf.draws(seed=0): ...")
    return drawing.next()


def _philox(count, key):
    """The first two words of Philox4x32-10 (Salmon and others 2011) for the counters 0 to count."""
    counter = [np.arange(count, dtype=np.uint64)] + [np.zeros(count, np.uint64) for _ in range(3)]
    low, high, mask = key & 0xFFFFFFFF, key >> 32, np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = counter[0] * np.uint64(0xD2511F53), counter[2] * np.uint64(0xCD9E8D57)
        counter = [b >> np.uint64(32) ^ counter[1] ^ np.uint64(low), b & mask,
                   a >> np.uint64(32) ^ counter[3] ^ np.uint64(high), a & mask]
        low, high = low + 0x9E3779B9 & 0xFFFFFFFF, high + 0xBB67AE85 & 0xFFFFFFFF
    return counter[0], counter[1]


def _uniform(shape, key):
    """Two tensors of numbers from 0 to 1, which f32 holds exactly."""
    words = _philox(math.prod(shape), key)
    return [((w >> np.uint64(8)).astype(np.float64) * 2.0 ** -24).astype(np.float32).reshape(shape)
            for w in words]


@operator(method=False)
def random(*dims):
    shape = need_extents(dims)
    return give(_uniform(shape, _next_key("random"))[0])


@operator(method=False)
def random_normal(*dims):
    shape = need_extents(dims)
    u, v = _uniform(shape, _next_key("random_normal"))
    length = np.sqrt(np.float32(-2) * np.log(np.float32(1) - u))
    return give(length * np.cos(np.float32(2 * math.pi) * v))


@operator(shape="first")
def dropout(x, p):
    x = need_float(x, "apply 'dropout' to")
    if host_kind(p) not in (int, float) or not 0 <= p < 1:
        raise ValueError("the probability 'p' of 'dropout' must be at least 0 and below 1")
    drawing = _drawing.get()
    if drawing is None:
        return give(x)
    key = drawing.next()
    if not drawing.dropout or p == 0:
        return give(x)
    kept = _uniform(x.shape, key)[0] >= np.float32(math.ceil(p * 2 ** 24) * 2.0 ** -24)
    return give(np.where(kept, x * np.float32(1 / (1 - p)), np.float32(0)).astype(x.dtype))


@operator
def sample(logits):
    x = need_float(logits, "sample from")
    if not x.ndim or not x.shape[-1]:
        raise ShapeError(f"cannot sample from {type_of(x)}: it has no elements")
    u = np.maximum(_uniform(x.shape, _next_key("sample"))[0], np.float32(2.0 ** -25))
    noise = np.log(-np.log(u))
    return give(np.asarray(np.argmax(x.astype(np.float32) - noise, axis=-1), np.int32))


