"""Sums, means, greatest and least, along an axis or of all elements."""
import builtins

import numpy as np

from .registry import operator
from .tensors import (flag, give, host_kind, is_float, need_axis, need_float, need_numbers, type_of)


def along(x, axis):
    return None if axis is None else need_axis(axis, x.ndim, type_of(x))


def widened(x):
    """Sums of f16 are in f32, and rounded once."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


def lowest(dtype):
    return -np.inf if is_float(dtype) else np.iinfo(dtype).min


def highest(dtype):
    return np.inf if is_float(dtype) else np.iinfo(dtype).max


def greatest(x, axis, keepdims=False):
    return np.max(x, axis=axis, keepdims=keepdims, initial=lowest(x.dtype))


@operator
def sum(x, axis=None, keepdims=0):
    if isinstance(x, (list, tuple)):
        raise TypeError("sum is of a tensor's elements; Python's own sum adds up a list, and "
                        "sum(stack(xs), axis=0) the tensors of one")
    x = need_numbers(x, "take the sum of")
    wide = widened(x)
    total = np.sum(wide, axis=along(x, axis), keepdims=flag(keepdims, "keepdims"), dtype=wide.dtype)
    return give(total.astype(x.dtype))


@operator
def mean(x, axis=None, keepdims=0):
    x = need_float(x, "take the mean of")
    axis, wide = along(x, axis), widened(x)
    total = np.sum(wide, axis=axis, keepdims=flag(keepdims, "keepdims"), dtype=wide.dtype)
    count = x.size if axis is None else x.shape[axis]
    return give((total / wide.dtype.type(count)).astype(x.dtype))


@operator
def max(x, axis=None, keepdims=0):
    return _extreme(x, axis, keepdims, "max", builtins.max, np.max, lowest)


@operator
def min(x, axis=None, keepdims=0):
    return _extreme(x, axis, keepdims, "min", builtins.min, np.min, highest)


def _extreme(x, axis, keepdims, name, of_host, compute, start):
    """`max(a, b)` of two numbers of the host is Python's, and NaN if one is NaN."""
    if host_kind(x) in (int, float) and host_kind(axis) in (int, float):
        return x if x != x else axis if axis != axis else of_host(x, axis)
    x = need_numbers(x, f"take the {name} of")
    return give(compute(x, axis=along(x, axis), keepdims=flag(keepdims, "keepdims"),
                        initial=start(x.dtype)))


@operator
def argmax(x, axis=-1, keepdims=0):
    x = need_numbers(x, "take the argmax of")
    axis, keepdims = along(x, axis), flag(keepdims, "keepdims")
    if x.shape[axis] == 0:
        shape = [extent for i, extent in enumerate(x.shape) if i != axis]
        places = np.zeros(shape, np.int32)
        return give(np.expand_dims(places, axis) if keepdims else places)
    places = np.argmax(x, axis=axis)
    return give(np.asarray(np.expand_dims(places, axis) if keepdims else places, np.int32))


@operator
def logsumexp(x, axis=None, keepdims=0):
    x = need_float(x, "take the logsumexp of")
    axis, keepdims = along(x, axis), flag(keepdims, "keepdims")
    return give(log_sum_exp(widened(x), axis, keepdims).astype(x.dtype))


def log_sum_exp(x, axis, keepdims=False):
    most = greatest(x, axis, True)
    total = np.sum(np.exp(x - most), axis=axis, keepdims=True, dtype=x.dtype)
    result = np.where(np.isinf(most), most, np.log(total) + most)
    if keepdims:
        return result
    return result.reshape(()) if axis is None else np.squeeze(result, axis)


@operator
def norm(x, axis=None, keepdims=0):
    x = need_float(x, "take the norm of")
    axis, wide = along(x, axis), widened(x)
    total = np.sum(wide * wide, axis=axis, keepdims=flag(keepdims, "keepdims"), dtype=wide.dtype)
    return give(np.sqrt(total).astype(x.dtype))
