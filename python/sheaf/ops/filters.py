"""Logits from which samples are drawn: what is left out is -inf."""
import numpy as np

from .normalise import softmax
from .reductions import widened
from .registry import operator
from .selection import in_order
from .tensors import ShapeError, as_array, describe, give, host_kind, is_float, need_extent, need_float, type_of


def _logits(x):
    x = need_float(x, "filter")
    if not x.ndim:
        raise ShapeError(f"cannot filter {type_of(x)}: it has no axes")
    return x


def _from(x, least):
    return give(np.where(x < least, x.dtype.type(-np.inf), x))


@operator(shape="first", method=False)
def top_k_filter(logits, k):
    x, k = _logits(logits), need_extent(k, "k")
    if k < 1:
        raise ShapeError(f"'top_k_filter' keeps at least 1 element, not {k}")
    if not x.size:
        return give(x)
    kth = min(k, x.shape[-1]) - 1
    return _from(x, in_order(x, -1, True)[..., kth:kth + 1])


@operator(shape="first", method=False)
def top_p_filter(logits, p):
    x, share = _logits(logits), as_array(p)
    if share is None:
        if host_kind(p) not in (int, float):
            raise TypeError(f"the share that 'top_p_filter' keeps is a float, not {describe(p)}")
        share = np.array(p, x.dtype)
    if share.shape or not is_float(share.dtype):
        raise TypeError(f"the share that 'top_p_filter' keeps is a float, not {type_of(share)}")
    if not x.size:
        return give(x)
    row = widened(in_order(x, -1, True))
    shares = softmax(row).view(np.ndarray)
    before = np.cumsum(shares, axis=-1, dtype=shares.dtype) - shares
    stays = (before < widened(share)) | (np.arange(row.shape[-1]) == 0)
    least = np.min(np.where(stays, row, np.inf), axis=-1, keepdims=True)
    return _from(x, least.astype(x.dtype))
