"""Attention and rotary positions."""
import math

import numpy as np

from .reductions import greatest, widened
from .registry import operator
from .tensors import (NAMES, ShapeError, describe, flag, give, mismatch, need_extent, need_float,
                      need_tensor, type_of)


@operator
def attention(q, k, v, causal=0, scale=None):
    return _attend(q, k, v, None, causal, scale)


@operator(method=False)
def masked_attention(q, k, v, mask, causal=0, scale=None):
    return _attend(q, k, v, need_tensor(mask, "mask with"), causal, scale)


def _attend(q, k, v, mask, causal, scale):
    what = f"cannot attend with {describe(q)} to {describe(k)} and {describe(v)}: "
    q, k, v = (need_float(x, "attend with") for x in (q, k, v))
    k, v = _shared(q, k, v, what)
    _check(q, k, v, what)
    dtype, single = q.dtype, q.ndim == 1
    q, k, v = widened(q), widened(k), widened(v)
    if flag(causal, "causal") and single:
        raise ShapeError(f"cannot attend causally with {type_of(q)}: a single query has no place "
                         "among the keys")
    if single:
        q = q[None]
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = np.matmul(q, np.swapaxes(k, -1, -2)) * q.dtype.type(factor)
    if mask is not None:
        scores = _masked(scores, mask, single, dtype)
    if causal:
        n, m = scores.shape[-2:]
        seen = np.arange(m) <= np.arange(n)[:, None] + (m - n)
        scores = np.where(seen, scores, scores.dtype.type(-np.inf))
    # A query that sees no key gives zeros. Divided last, as compiled code does.
    most = greatest(scores, -1, True)
    none = most == -np.inf
    powers = np.exp(scores - np.where(none, most.dtype.type(0), most))
    whole = np.where(none, most.dtype.type(1), np.sum(powers, -1, keepdims=True, dtype=powers.dtype))
    result = _seen(powers, v) / whole
    return give((result[..., 0, :] if single else result).astype(dtype))


def _shared(q, k, v, what):
    """Keys and values with as many heads as the queries where several of these share one."""
    if min(q.ndim, k.ndim, v.ndim) < 3:
        return k, v
    heads, *own = (x.shape[-3] for x in (q, k, v))
    shares = [1 < of < heads and heads % of == 0 for of in own]
    if not any(shares):
        return k, v
    if own[0] != own[1]:
        raise ShapeError(what + f"keys and values have different numbers of heads ({describe(k)}, {describe(v)})")
    return np.repeat(k, heads // own[0], -3), np.repeat(v, heads // own[0], -3)


def _seen(weights, values):
    """Their product without the values whose weight is 0, whatever they hold."""
    result = np.matmul(weights, values)
    if np.isnan(result).any():
        terms = weights[..., None] * values[..., None, :, :]
        result = np.sum(np.where(weights[..., None] == 0, 0, terms), -2, dtype=result.dtype)
    return result


def _check(q, k, v, what):
    for x, called, least in ((q, "queries", 1), (k, "keys", 2), (v, "values", 2)):
        if x.dtype != q.dtype:
            raise TypeError(what + "the element types differ")
        if x.ndim < least:
            raise ShapeError(what + f"the {called} have {x.ndim} {'axis' if x.ndim == 1 else 'axes'}, "
                             f"and at least {least} are needed")
    if q.shape[-1] != k.shape[-1]:
        raise ShapeError(what + "the last extents of queries and keys differ "
                         f"({q.shape[-1]}, {k.shape[-1]})")
    if k.shape[-2] != v.shape[-2]:
        raise ShapeError(what + f"there must be one value for each key ({k.shape[-2]}, {v.shape[-2]})")
    for a, b in ((q, k), (q, v), (k, v)):
        if why := mismatch(a.shape[:-2], b.shape[:-2]):
            raise ShapeError(what + "the batch extents differ" + why[why.rindex(" ("):])


def _masked(scores, mask, single, dtype):
    what = f"cannot mask scores {type_of(scores)} with {type_of(mask)}: "
    if mask.dtype != np.bool_ and mask.dtype != dtype:
        raise TypeError(what + "a mask is of bools (whether a query sees a key) or of "
                        f"{NAMES[dtype]} (added to the scores)")
    if single and mask.ndim > 1:
        mask = np.expand_dims(mask, -2)
    if why := mismatch(scores.shape, mask.shape):
        raise ShapeError(what + why)
    if np.broadcast_shapes(scores.shape, mask.shape) != scores.shape:
        raise ShapeError(what + "the mask has more elements than there are scores")
    if mask.dtype == np.bool_:
        return np.where(mask, scores, scores.dtype.type(-np.inf))
    added = mask.astype(scores.dtype)
    return np.where(added == -np.inf, added, scores + added)


@operator(shape="first")
def rope(x, start=0, base=10000):
    x = need_float(x, "rotate")
    if not x.ndim:
        raise ShapeError(f"cannot rotate {type_of(x)}: it has no axes")
    d, start = x.shape[-1], need_extent(start, "the start of 'rope'")
    if d % 2:
        raise ShapeError(f"cannot rotate {type_of(x)}: the last extent {d} is not even")
    if not 1 <= base <= 2.0 ** 32:
        raise ValueError("the base of 'rope' is from 1 to 2^32")
    wide = widened(x)
    places = np.arange(x.shape[-2] if x.ndim > 1 else 1, dtype=np.float64)[:, None] + start
    angles = places * float(base) ** (-2.0 * np.arange(d // 2) / max(d, 1))
    sine, cosine = np.sin(angles).astype(wide.dtype), np.cos(angles).astype(wide.dtype)
    if x.ndim == 1:
        sine, cosine = sine[0], cosine[0]
    first, second = wide[..., :d // 2], wide[..., d // 2:]
    turned = [first * cosine - second * sine, first * sine + second * cosine]
    return give(np.concatenate(turned, -1).astype(x.dtype))
