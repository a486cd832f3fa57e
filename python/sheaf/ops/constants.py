"""Tensors of numbers that are known."""
import numpy as np

from .registry import operator
from .tensors import as_array, describe, give, host_kind, need_extent, need_extents


@operator(method=False)
def zeros(*dims):
    return give(np.zeros(need_extents(dims), np.float32))


@operator(method=False)
def ones(*dims):
    return give(np.ones(need_extents(dims), np.float32))


@operator(method=False)
def full(value, *dims):
    if host_kind(value) not in (int, float):
        raise TypeError(f"full fills with a number, not with {describe(value)} "
                        "(x * ones(...) has a number that is computed)")
    return give(np.full(need_extents(dims), value, np.float32))


@operator(method=False)
def iota(size):
    return give(np.arange(need_extent(size), dtype=np.int32))


@operator(method=False)
def one_hot(index, size):
    indices = as_array(index)
    if indices is None:
        if host_kind(index) is not int:
            raise TypeError(f"cannot make 'one_hot' of {describe(index)}: the index is an int, a "
                            "token or a tensor of ints")
        indices = np.array(index, np.int64)
    elif indices.dtype.kind != "i":
        raise TypeError(f"cannot make 'one_hot' of {describe(index)}: the index is an int, a token "
                        "or a tensor of ints")
    places = np.arange(need_extent(size), dtype=np.int64)
    return give((indices[..., None] == places).astype(np.float32))
