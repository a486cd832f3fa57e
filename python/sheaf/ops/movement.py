"""Joining tensors and rearranging them."""
import math

import numpy as np

from .registry import operator
from .tensors import (ShapeError, as_array, describe, give, host_kind, need_axis, need_extent,
                      need_extents, need_tensor, type_of)


@operator(method=False)
def concat(*tensors, axis=0):
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) and any(
            isinstance(x, np.ndarray) for x in tensors[0]):
        raise TypeError("'concat' takes tensors one by one, concat(a, b), and not a list of them")
    if tensors and all(isinstance(x, list) for x in tensors):
        return [element for x in tensors for element in x]
    if not tensors:
        raise TypeError("'concat' needs at least one tensor")
    arrays = [need_tensor(x, "join", "stack takes a list" if isinstance(x, (list, tuple)) else "")
              for x in tensors]
    axis = need_axis(axis, arrays[0].ndim, type_of(arrays[0]))
    for array in arrays[1:]:
        _same_but(arrays[0], array, axis, f"cannot join {type_of(arrays[0])} and {type_of(array)} "
                                          f"along axis {axis}: ")
    return give(np.concatenate(arrays, axis))


@operator(method=False)
def append(x, part):
    if isinstance(x, _list):
        return [*x, part]
    x = need_tensor(x, "append to")
    y = as_array(part)
    if y is None:
        kind = host_kind(part)
        if kind is None:
            raise TypeError(f"cannot append {describe(part)}: it is not a tensor")
        y = np.array(part, x.dtype)
    what = f"cannot append {type_of(y)} to {type_of(x)}: "
    if not x.ndim:
        raise ShapeError(what + "it has no axes")
    if x.dtype != y.dtype:
        raise TypeError(what + "the element types differ")
    if y.ndim + 1 != x.ndim:
        raise ShapeError(what + f"a part of it has {x.ndim - 1} {'axis' if x.ndim == 2 else 'axes'}"
                         + (" (concat joins tensors with equally many axes)" if x.ndim == y.ndim else ""))
    for i, (a, b) in enumerate(zip(x.shape[1:], y.shape)):
        if a != b:
            raise ShapeError(what + f"the extents of axis {i} of the part differ ({a}, {b})")
    return give(np.concatenate([x, y[None]]))


def _same_but(first, other, axis, what):
    """An error unless two arrays agree in all but one axis (None: in all)."""
    if first.dtype != other.dtype:
        raise TypeError(what + "the element types differ")
    if first.ndim != other.ndim:
        raise ShapeError(what + "the numbers of axes differ")
    for i, (x, y) in enumerate(zip(first.shape, other.shape)):
        if i != axis and x != y:
            raise ShapeError(what + f"the extents of axis {i} differ ({x}, {y})")


@operator
def split(x, parts, axis=0):
    x = need_tensor(x, "split")
    axis, parts = need_axis(axis, x.ndim, type_of(x)), need_extent(parts, "the number of parts")
    if not 1 <= parts <= 4096:
        raise ShapeError(f"cannot split {type_of(x)} into {parts} parts: from 1 to 4096 are possible")
    if x.shape[axis] % parts:
        raise ShapeError(f"cannot split axis {axis} of {type_of(x)} into {parts} equal parts: "
                         f"{x.shape[axis]} is not a multiple of {parts}")
    return tuple(map(give, np.split(x, parts, axis)))


@operator(method=False)
def stack(list, axis=0):
    if not isinstance(list, (_list, tuple)):
        raise TypeError(f"cannot stack {describe(list)}: 'stack' takes a list of tensors")
    if not list:
        raise ShapeError("cannot stack an empty list in eager code: what shape its elements would "
                         "have is known to compiled code alone")
    if all(host_kind(x) is int for x in list):
        return give(np.array(list, np.int32))
    arrays = [need_tensor(x, "stack") for x in list]
    for array in arrays[1:]:
        _same_but(arrays[0], array, None,
                  f"cannot stack {type_of(arrays[0])} and {type_of(array)}: ")
    return give(np.stack(arrays, need_axis(axis, arrays[0].ndim + 1, "the result")))


_list = type([])


@operator
def transpose(x, axis1=-2, axis2=-1):
    x = need_tensor(x, "transpose")
    if x.ndim < 2:
        raise ShapeError(f"cannot transpose {type_of(x)}: it has {x.ndim} "
                         f"{'axis' if x.ndim == 1 else 'axes'}, and at least 2 are needed")
    return give(np.swapaxes(x, need_axis(axis1, x.ndim, type_of(x)),
                            need_axis(axis2, x.ndim, type_of(x))))


@operator
def reshape(x, *dims):
    x = need_tensor(x, "reshape")
    given = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, _list)) else dims
    if any(host_kind(dim) is int and dim == -1 for dim in given):
        raise ShapeError(f"cannot reshape {type_of(x)} to {tuple(given)}: extents are written, none "
                         "is -1 (x.shape has those that are there)")
    shape = need_extents(dims)
    if math.prod(shape) != x.size:
        raise ShapeError(f"cannot reshape {type_of(x)} to [{', '.join(map(str, shape))}]: the "
                         f"numbers of elements differ ({x.size}, {math.prod(shape)})")
    return give(np.reshape(x, shape))


@operator
def broadcast_to(x, *dims):
    shape, array = need_extents(dims), as_array(x)
    if array is None:
        kind = host_kind(x)
        if kind is None:
            raise TypeError(f"cannot broadcast {describe(x)}: it is not a tensor")
        array = np.array(x, {float: np.float32, int: np.int64, bool: np.bool_}[kind])
    if array.ndim > len(shape) or any(a not in (1, b) for a, b in
                                      zip(array.shape[::-1], shape[::-1])):
        raise ShapeError(f"cannot broadcast {type_of(array)} to [{', '.join(map(str, shape))}]")
    return give(np.broadcast_to(array, shape))


@operator
def expand_dims(x, axis=0):
    x = need_tensor(x, "expand")
    return give(np.expand_dims(x, need_axis(axis, x.ndim + 1, "the result")))


@operator
def squeeze(x, axis=0):
    x = need_tensor(x, "squeeze")
    axis = need_axis(axis, x.ndim, type_of(x))
    if x.shape[axis] != 1:
        raise ShapeError(f"cannot squeeze axis {axis} of {type_of(x)}: its extent is "
                         f"{x.shape[axis]}, not 1")
    return give(np.squeeze(x, axis))


@operator(shape="first")
def flip(x, axis=0):
    x = need_tensor(x, "turn around")
    return give(np.flip(x, need_axis(axis, x.ndim, type_of(x))))


@operator
def pad(x, before, after, axis=0, value=0):
    x = need_tensor(x, "pad")
    axis = need_axis(axis, x.ndim, type_of(x))
    width = [(0, 0)] * x.ndim
    width[axis] = (need_extent(before, "what is padded"), need_extent(after, "what is padded"))
    # Of ints the whole part, of bools whether it is 0.
    filled = np.asarray(float(value)).astype(x.dtype)
    return give(np.pad(x, width, constant_values=filled))


def _triangle(x, k, keep):
    x = need_tensor(x, "take a triangle of")
    if x.ndim < 2:
        raise ShapeError(f"cannot take a triangle of {type_of(x)}: it is no matrix")
    if host_kind(k) is not int:
        raise TypeError(f"k is an int, not {describe(k)}")
    return give(keep(x, k))


@operator(shape="first")
def tril(x, k=0):
    return _triangle(x, k, np.tril)


@operator(shape="first")
def triu(x, k=0):
    return _triangle(x, k, np.triu)
