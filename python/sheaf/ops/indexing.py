"""Parts of a tensor by position.

An index of the host that is out of range is an IndexError. One that stands in a tensor gives NaN
(of ints the least one, of bools False), as it does in kernels, where no instance can end.
"""
import numpy as np

from .registry import operator
from .tensors import (ShapeError, as_array, describe, give, host_kind, is_float, need_axis,
                      need_extent, need_tensor, type_of)


def nothing(dtype):
    """What stands where an index in a tensor is out of range."""
    return np.nan if is_float(dtype) else np.iinfo(dtype).min if dtype.kind == "i" else False


def _indexed(x):
    x = need_tensor(x, "index")
    if not x.ndim:
        raise ShapeError(f"cannot index {type_of(x)}: it has no axes")
    return x


def _indices(index, x, what):
    array = as_array(index)
    if array is None or array.dtype.kind != "i":
        raise TypeError(f"cannot index {type_of(x)} with {describe(index)}: {what}")
    return array


def _gather(x, indices):
    inside = (indices >= 0) & (indices < x.shape[0])
    if inside.all():
        return give(np.take(x, indices, axis=0))
    if not x.shape[0]:
        return give(np.full(indices.shape + x.shape[1:], nothing(x.dtype), x.dtype))
    taken = np.take(x, np.where(inside, indices, 0), axis=0)
    taken[~inside] = nothing(x.dtype)
    return give(taken)


def _position(index, x, axis):
    if not 0 <= index < x.shape[axis]:
        raise IndexError(f"index {index} is out of range for axis {axis} of {type_of(x)}")
    return index


def _at(x, index):
    x = _indexed(x)
    if host_kind(index) is int:
        return give(x[_position(index, x, 0)])
    return _gather(x, _indices(index, x, "the index is an int, a token or a tensor of ints"))


@operator(method=False)
def index(x, index):
    return _at(x, index)


@operator(method=False)
def embedding(table, index):
    return _at(table, index)


@operator
def gather(x, indices):
    x = _indexed(x)
    return _gather(x, _indices(indices, x, "the indices are a tensor of ints or tokens"))


@operator
def element(x, index, axis=0):
    x = _indexed(x)
    if host_kind(index) is not int:
        raise TypeError(f"cannot index {type_of(x)} with {describe(index)}: the index is an int or "
                        "a token")
    axis = need_axis(axis, x.ndim, type_of(x))
    return give(np.take(x, _position(index, x, axis), axis=axis))


@operator
def slice(x, start, size, axis=0):
    x = need_tensor(x, "slice")
    axis = need_axis(axis, x.ndim, type_of(x))
    start, size = need_extent(start, "the start of a slice"), need_extent(size, "the size of a slice")
    return give(_window(x, start, start + size, axis))


def _window(x, start, end, axis, written=None):
    if not 0 <= start <= end <= x.shape[axis]:
        which = f"[{written}]" if written else f"from {start} to {end}"
        raise IndexError(f"the slice {which} is out of range for axis {axis} of {type_of(x)}")
    return x[(_ALL,) * axis + (_slice(start, end),)]


_slice = type(np.s_[:])
_ALL = _slice(None)


@operator
def rows(x):
    x = need_tensor(x, "take the rows of")
    if not x.ndim:
        raise ShapeError(f"cannot take the rows of {type_of(x)}: it has no axes")
    return [give(row) for row in x]


def subscript(x, index):
    """x[index] with Python's meaning: `x[-1]`, `x[i, :, a:b]`, `x[indices]`, `x[[word]]`."""
    x = _indexed(x)
    if isinstance(index, list):
        index = _list_of_ints(index, x)
    if not isinstance(index, tuple):
        array = as_array(index)
        if array is not None and array.dtype == np.bool_ and array.shape == x.shape[:array.ndim]:
            # NumPy's own functions choose so; compiled code does not.
            return give(x[array])
        if array is not None:
            return _gather(x, _indices(index, x, "the index is an int, a token or a tensor of ints"))
        index = (index,)
    if len(index) > x.ndim:
        raise ShapeError(f"cannot index {type_of(x)} with {len(index)} positions: it has {x.ndim} "
                         f"{'axis' if x.ndim == 1 else 'axes'}")
    axis, original = 0, x
    for part in index:
        if isinstance(part, _slice):
            x = _window(x, *_bounds(part, x, axis), axis, _written(part))
            axis += 1
        elif host_kind(part) is int or _is_read(part):
            part = part.__index__()
            place = part + x.shape[axis] if part < 0 else part
            if not 0 <= place < x.shape[axis]:
                raise IndexError(f"index {part} is out of range for axis {axis} of {type_of(original)}")
            x = x[(_ALL,) * axis + (place,)]
        else:
            raise TypeError(f"cannot index {type_of(original)} with {_called(part)}: positions are "
                            "ints and slices" + _instead(part))
    return give(x)


def _is_read(part):
    array = as_array(part)
    return array is not None and not array.ndim and array.dtype.kind == "i"


def _list_of_ints(index, x):
    if not all(host_kind(i) is int for i in index):
        raise TypeError(f"cannot index {type_of(x)} with a list of anything but ints")
    for i in index:
        _position(i, x, 0)
    return np.array(index, np.int32)


def _bounds(part, x, axis):
    if part.step not in (None, 1):
        raise TypeError(f"a slice of a tensor has no step, as {part.step} here (x[::-1] is flip(x))")
    extent, ends = x.shape[axis], []
    for end, default in ((part.start, 0), (part.stop, extent)):
        end = default if end is None else end.__index__()
        ends.append(end + extent if end < 0 else end)
    return ends


def _written(part):
    return ":".join("" if end is None else str(end.__index__()) for end in (part.start, part.stop))


def _called(part):
    return "None" if part is None else "..." if part is Ellipsis else describe(part)


def _instead(part):
    if part is None:
        return " (a new axis is made by expand_dims)"
    if isinstance(part, (bool, np.bool_)) or getattr(part, "dtype", None) == np.bool_:
        return " (elements are chosen by where)"
    return ""
