"""Functions of each element: roots, powers of e, logarithms, trigonometry, what neurons do."""
import functools
import math

import numpy as np

from .elementwise import elementwise
from .registry import operator
from .tensors import host_kind, need_float


def of_floats(compute, x, name):
    return elementwise(compute, (x,), name, f"apply '{name}' to {{0}}", "floats")


def of_host_too(compute, x, name):
    """A float of the host stays one, in double precision."""
    if host_kind(x) is float:
        return compute(np.float64(x)).item()
    return of_floats(compute, x, name)


def wide(compute):
    """f16 is computed in f32 and rounded once."""
    def call(*arrays):
        if arrays[0].dtype != np.float16:
            return compute(*arrays)
        return np.asarray(compute(*(x.astype(np.float32) for x in arrays))).astype(np.float16)
    return call


def number(x, value):
    """A constant of the element type of x."""
    return x.dtype.type(value)


@operator(shape="first")
def exp(x):
    return of_host_too(np.exp, x, "exp")


@operator(shape="first")
def log(x):
    return of_host_too(np.log, x, "log")


@operator(shape="first")
def sqrt(x):
    return of_host_too(np.sqrt, x, "sqrt")


@operator(shape="first")
def floor(x):
    return of_host_too(np.floor, x, "floor")


@operator(shape="first")
def ceil(x):
    return of_host_too(np.ceil, x, "ceil")


@operator(shape="first")
def rsqrt(x):
    return of_floats(wide(lambda x: number(x, 1) / np.sqrt(x)), x, "rsqrt")


@operator(shape="first")
def sin(x):
    return of_floats(np.sin, x, "sin")


@operator(shape="first")
def cos(x):
    return of_floats(np.cos, x, "cos")


@operator(shape="first")
def erf(x):
    return of_floats(wide(_erf), x, "erf")


@operator(shape="first")
def tanh(x):
    return of_floats(np.tanh, x, "tanh")


@operator(shape="first")
def sigmoid(x):
    return of_floats(wide(_sigmoid), x, "sigmoid")


@operator(shape="first")
def relu(x):
    return elementwise(lambda x: np.maximum(number(x, 0), x), (x,), "relu",
                       "apply 'relu' to {0}", "numbers")


@operator(shape="first")
def leaky_relu(x, slope=0.01):
    need_float(x, "apply 'leaky_relu' to")
    return of_floats(lambda x: np.where(x < 0, x * number(x, slope), x), x, "leaky_relu")


@operator(shape="first")
def silu(x):
    return of_floats(wide(lambda x: x * _sigmoid(x)), x, "silu")


@operator(shape="first")
def gelu(x):
    return of_floats(wide(lambda x: number(x, 0.5) * x *
                          (number(x, 1) + _erf(x * number(x, math.sqrt(0.5))))), x, "gelu")


@operator(shape="first")
def gelu_tanh(x):
    def compute(x):
        inner = (number(x, math.sqrt(2 / math.pi)) * x *
                 (number(x, 1) + number(x, 0.044715) * (x * x)))
        return number(x, 0.5) * x * (number(x, 1) + np.tanh(inner))
    return of_floats(wide(compute), x, "gelu_tanh")


@operator(shape="first")
def softplus(x):
    return of_floats(wide(lambda x: np.maximum(x, number(x, 0)) + _log_of_tail(x)), x, "softplus")


@operator(shape="first")
def log1p(x):
    return of_floats(np.log1p, x, "log1p")


@operator(shape="first")
def expm1(x):
    return of_floats(np.expm1, x, "expm1")


@operator(shape="all", method=False)
def xlogy(x, y):
    def compute(x, y):
        return np.where((x == 0) & ~np.isnan(y), number(x, 0), x * np.log(y))
    return elementwise(wide(compute), (x, y), "xlogy", "apply 'xlogy' to {0} and {1}", "floats")


@operator(shape="first")
def log_sigmoid(x):
    return of_floats(wide(lambda x: np.minimum(x, number(x, 0)) - _log_of_tail(x)), x,
                     "log_sigmoid")


@operator(shape="all", method=False)
def bce_with_logits(x, target):
    return elementwise(
        wide(lambda x, y: np.maximum(x, number(x, 0)) - x * y + _log_of_tail(x)), (x, target),
        "bce_with_logits", "take the binary cross entropy of {0} and {1}", "floats")


def _sigmoid(x):
    return number(x, 1) / (number(x, 1) + np.exp(-x))


def _log_of_tail(x):
    """log(1 + exp(-|x|)), which cannot overflow."""
    return np.log1p(np.exp(-np.abs(x)))


@functools.lru_cache(maxsize=None)
def _erf_series():
    """erf(x) / x in x^2 on [0, 16], by its values at Chebyshev's points: NumPy has no erf."""
    def values(u):
        x = np.sqrt((u + 1) * 8)
        return np.array([math.erf(v) / v for v in x])
    return np.polynomial.chebyshev.chebinterpolate(values, 40)


def _erf(x):
    near = np.clip(x.astype(np.float64), -4, 4)
    value = near * np.polynomial.chebyshev.chebval(near * near / 8 - 1, _erf_series())
    return np.where(np.isnan(x), x, np.clip(value, -1, 1)).astype(x.dtype)
