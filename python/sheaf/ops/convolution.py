"""Convolution and pooling along a sequence [places, channels]."""
import numpy as np

from .registry import operator
from .reductions import widened
from .tensors import ShapeError, give, host_kind, need_float, type_of


def _step(value, what, name, least):
    if host_kind(value) is not int:
        raise TypeError(f"the {what} of '{name}' is an int, not {value!r}")
    if value < least:
        raise ShapeError(f"the {what} of '{name}' is at least {least}, not {value}")
    return int(value)


def _sequence(x, action):
    x = need_float(x, action)
    if x.ndim < 2:
        raise ShapeError(f"cannot {action} {type_of(x)}: it has {x.ndim} "
                         f"{'axis' if x.ndim == 1 else 'axes'}, and places and channels are needed")
    return x


def _taps(x, taps, stride, padding, dilation, filling, what):
    """x at every tap of all windows."""
    places, reach = x.shape[-2], (taps - 1) * dilation
    rest = places + 2 * padding - reach
    if rest < 0:
        raise ShapeError(f"{what}a window of {reach + 1} does not fit into a sequence of {places} with "
                         f"{padding} before and after it")
    count = (rest + stride - 1) // stride
    width = [(0, 0)] * x.ndim
    width[-2] = (padding, padding)
    x = np.pad(x, width, constant_values=filling)
    return [x[..., tap * dilation:tap * dilation + stride * count:stride, :][..., :count, :]
            for tap in range(taps)]


@operator(method=False)
def conv1d(x, weight, stride=1, padding=0, dilation=1, groups=1):
    x, weight = _sequence(x, "convolve"), need_float(weight, "convolve with")
    what = f"cannot convolve {type_of(x)} with {type_of(weight)}: "
    if x.dtype != weight.dtype:
        raise TypeError(what + "the element types differ")
    if weight.ndim != 3:
        raise ShapeError(what + "a weight is [taps, channels of a group that come in, channels that "
                                "come out]")
    stride = _step(stride, "stride", "conv1d", 1)
    padding = _step(padding, "padding", "conv1d", 0)
    dilation = _step(dilation, "dilation", "conv1d", 1)
    groups = _step(groups, "number of groups", "conv1d", 1)
    taps, per_group, out = weight.shape
    if x.shape[-1] != per_group * groups:
        raise ShapeError(what + f"there are {x.shape[-1]} channels, and the weight is for "
                         + (f"{groups} groups of " if groups > 1 else "") + f"{per_group}"
                         + (" (channels are the last axis: transpose the sequence)"
                            if x.shape[-2] == per_group * groups else ""))
    if out % groups:
        raise ShapeError(what + f"{out} channels do not come out of {groups} groups alike")
    if not taps:
        raise ShapeError(what + "there are no taps")
    parts = _taps(widened(x), taps, stride, padding, dilation, 0, what)
    by_group = widened(weight).reshape(taps, per_group, groups, out // groups)
    total = np.zeros(parts[0].shape[:-1] + (groups, out // groups), parts[0].dtype)
    for tap, part in enumerate(parts):
        rows = part.reshape(part.shape[:-1] + (groups, per_group))
        total += np.einsum("...gi,igo->...go", rows, by_group[tap])
    return give(total.reshape(total.shape[:-2] + (out,)).astype(x.dtype))


def _windows(x, size, stride, padding, name, filling):
    x = _sequence(x, "pool")
    if not 1 <= _step(size, "size", name, 1) <= 4096:
        raise ShapeError(f"the size of '{name}' is from 1 to 4096, not {size}")
    stride = _step(size if stride is None else stride, "stride", name, 1)
    padding = _step(padding, "padding", name, 0)
    if 2 * padding > size:
        raise ShapeError(f"the padding of '{name}' is at most half its size, not {padding} of {size}")
    return x, np.stack(_taps(widened(x), size, stride, padding, 1, filling,
                             f"cannot pool {type_of(x)}: "))


@operator(method=False)
def max_pool1d(x, size, stride=None, padding=0):
    x, windows = _windows(x, size, stride, padding, "max_pool1d", -np.inf)
    return give(np.max(windows, axis=0).astype(x.dtype))


@operator(method=False)
def avg_pool1d(x, size, stride=None, padding=0):
    x, windows = _windows(x, size, stride, padding, "avg_pool1d", 0)
    return give((np.sum(windows, axis=0, dtype=windows.dtype) / windows.dtype.type(size)).astype(x.dtype))
