"""Losses and measures of distributions."""
import numpy as np

from .elementwise import elementwise
from .functions import wide
from .reductions import along, mean, widened
from .registry import operator
from .tensors import ShapeError, give, need_float, type_of


@operator(method=False)
def mse(x, target):
    difference = elementwise(wide(lambda x, y: np.square(x - y)), (x, target), "mse",
                             "take the mean squared error of {0} and {1}", "floats")
    return mean(difference)


@operator(shape="all", method=False)
def huber(x, target, delta=1):
    if not delta > 0:
        raise ValueError("delta of 'huber' is greater than 0")

    def compute(x, target):
        of = x.dtype.type
        d = np.abs(x - target)
        return np.where(d <= of(delta), of(0.5) * d * d, of(delta) * (d - of(delta / 2)))
    return elementwise(wide(compute), (x, target), "huber",
                       "take the Huber loss of {0} and {1}", "floats")


def _times_log(x, y):
    return np.where((x == 0) & ~np.isnan(y), x.dtype.type(0), x * np.log(y))


def _total(terms, axis, dtype):
    return give(np.sum(terms, axis=axis, dtype=terms.dtype).astype(dtype))


@operator
def entropy(p, axis=-1):
    p = need_float(p, "take the entropy of")
    axis, x = along(p, axis), widened(p)
    return _total(-_times_log(x, x), axis, p.dtype)


@operator(method=False)
def kl_div(p, q, axis=-1):
    p, q = (need_float(x, "take the divergence of") for x in (p, q))
    what = f"cannot take the divergence of {type_of(p)} and {type_of(q)}: "
    if p.dtype != q.dtype:
        raise TypeError(what + "the element types differ")
    if p.shape != q.shape:
        raise ShapeError(what + "the shapes differ")
    x, y = widened(p), widened(q)
    return _total(_times_log(x, x) - _times_log(x, y), along(p, axis), p.dtype)
