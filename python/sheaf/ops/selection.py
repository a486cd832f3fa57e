"""The greatest elements, elements in order, elements by their places.

NaN is greater than every number; of equals the first comes first.
"""
import numpy as np

from .registry import operator
from .tensors import (ShapeError, as_array, describe, flag, give, need_axis, need_extent,
                      need_numbers, need_tensor, type_of)


def _places(x, axis, descending):
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    # Turned around twice, so that of equals the first stays first.
    turned = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - turned, axis)


def in_order(x, axis, descending):
    return np.take_along_axis(x, _places(x, axis, descending), axis)


def _chosen(x, places, axis):
    return (give(np.take_along_axis(x, places, axis)), give(places.astype(np.int32)))


@operator
def top_k(x, k, axis=-1):
    x = need_numbers(x, "take the greatest of")
    axis, k = need_axis(axis, x.ndim, type_of(x)), need_extent(k, "k")
    if k < 1:
        raise ShapeError("top_k takes at least 1 element")
    if x.shape[axis] < k:
        raise ShapeError(f"cannot take the {k} greatest of {type_of(x)}: axis {axis} has "
                         f"{x.shape[axis]}")
    places = np.take(_places(x, axis, True), np.arange(k), axis=axis)
    return _chosen(x, places, axis)


@operator
def sort(x, axis=-1, descending=0):
    x = need_numbers(x, "sort")
    axis = need_axis(axis, x.ndim, type_of(x))
    return _chosen(x, _places(x, axis, flag(descending, "descending")), axis)


@operator(method=False)
def argsort(x, axis=-1, descending=0):
    return sort(x, axis, descending)[1]


@operator
def take_along(x, indices, axis=-1):
    x, places = need_tensor(x, "take elements of"), as_array(indices)
    what = f"cannot take elements of {type_of(x)} at {describe(indices)}: "
    if places is None or places.dtype.kind != "i":
        raise TypeError(what + "the places are a tensor of ints")
    axis = need_axis(axis, x.ndim, type_of(x))
    if places.ndim != x.ndim:
        raise ShapeError(what + "the numbers of axes differ")
    for i, (a, b) in enumerate(zip(x.shape, places.shape)):
        if i != axis and a != b:
            raise ShapeError(what + f"the extents of axis {i} differ ({a}, {b})")
    if not x.shape[axis] and places.size:
        raise IndexError(what + "the axis has no elements")
    held = np.clip(places, 0, max(x.shape[axis] - 1, 0)).astype(np.intp)
    return give(np.take_along_axis(x, held, axis))
