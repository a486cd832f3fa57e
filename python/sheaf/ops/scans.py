"""Running sums, and sums of rows by number: in order, from 0."""
import numpy as np

from .reductions import widened
from .registry import operator
from .tensors import (ShapeError, as_array, describe, give, need_axis, need_extent, need_numbers,
                      type_of)


@operator(shape="first")
def cumsum(x, axis=0):
    x = need_numbers(x, "take running sums of")
    wide = widened(x)
    sums = np.cumsum(wide, axis=need_axis(axis, x.ndim, type_of(x)), dtype=wide.dtype)
    return give(sums.astype(x.dtype))


def _numbers(rows, numbers):
    what = f"cannot add up rows of {type_of(rows)} by {describe(numbers)}: "
    if not rows.ndim:
        raise ShapeError(f"cannot add up rows of {type_of(rows)}: it has no axes")
    indices = as_array(numbers)
    if indices is None or indices.dtype.kind != "i" or indices.ndim != 1:
        raise TypeError(what + "their numbers are a vector of ints or tokens")
    if len(indices) != len(rows):
        raise ShapeError(what + f"there must be one number for each row ({len(rows)}, {len(indices)})")
    return indices


def _add_up(rows, indices, count):
    wide = widened(rows)
    sums = np.zeros((count, *rows.shape[1:]), wide.dtype)
    inside = (indices >= 0) & (indices < count)
    np.add.at(sums, indices[inside], wide[inside])
    return sums


@operator
def segment_sum(x, segments, size):
    x = need_numbers(x, "add up rows of")
    sums = _add_up(x, _numbers(x, segments), need_extent(size))
    return give(sums.astype(x.dtype))


@operator
def scatter_add(x, indices, rows):
    x, rows = need_numbers(x, "add rows to"), need_numbers(rows, "add up rows of")
    numbers = _numbers(rows, indices)
    what = f"cannot add rows of {type_of(rows)} to {type_of(x)}: "
    if rows.dtype != x.dtype:
        raise TypeError(what + "the element types differ")
    if rows.ndim != x.ndim:
        raise ShapeError(what + "the numbers of axes differ")
    for axis in range(1, x.ndim):
        if x.shape[axis] != rows.shape[axis]:
            raise ShapeError(what + f"the extents of axis {axis} differ ({x.shape[axis]}, "
                             f"{rows.shape[axis]})")
    return give((widened(x) + _add_up(rows, numbers, len(x))).astype(x.dtype))
