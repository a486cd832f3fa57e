"""Arithmetic, comparisons and choices, element by element, with broadcasting."""
import builtins

import numpy as np

from .registry import operator
from .tensors import broadcast, describe, give, host_kind, promote


def elementwise(compute, operands, name, phrase, accepts, condition=None):
    """`compute` of the operands as arrays of one type, once they fit."""
    arrays = promote(operands, phrase, accepts, name, condition)
    shape = arrays[0].shape
    for array in arrays:
        if array.shape != shape:
            broadcast([array.shape for array in arrays],
                      lambda: phrase.format(*map(describe, operands)))
            break
    return give(compute(*arrays))


@operator(shape="all", method=False)
def add(a, b):
    return elementwise(np.add, (a, b), "add", "add {0} and {1}", "numbers")


@operator(shape="all", method=False)
def sub(a, b):
    return elementwise(np.subtract, (a, b), "sub", "subtract {1} from {0}", "numbers")


@operator(shape="all", method=False)
def mul(a, b):
    return elementwise(np.multiply, (a, b), "mul", "multiply {0} and {1} element by element",
                       "numbers")


@operator(shape="all", method=False)
def div(a, b):
    return elementwise(np.divide, (a, b), "div", "divide {0} by {1}", "floats")


@operator(shape="all")
def pow(a, b):
    if host_kind(a) is float and host_kind(b) is float:
        return host_pow(a, b)
    return elementwise(_power, (a, b), "pow", "raise {0} to {1}", "floats")


def _power(a, b):
    # NumPy takes other functions for some exponents that stand alone, with other infinities.
    return np.power(a, np.array(np.broadcast_to(b, np.broadcast_shapes(a.shape, b.shape))))


def host_pow(a, b):
    """In double precision, with the infinities and NaN of IEEE 754 where Python raises."""
    return np.power(np.float64(a), np.float64(b)).item()


@operator(shape="all")
def maximum(a, b):
    return elementwise(np.maximum, (a, b), "maximum", "apply 'maximum' to {0} and {1}", "numbers")


@operator(shape="all")
def minimum(a, b):
    return elementwise(np.minimum, (a, b), "minimum", "apply 'minimum' to {0} and {1}", "numbers")


@operator(shape="first")
def clamp(x, lo, hi):
    return elementwise(lambda x, lo, hi: np.minimum(np.maximum(x, lo), hi), (x, lo, hi), "clamp",
                       "apply 'clamp' to {0}, {1} and {2}", "numbers")


@operator(shape="first", method=False)
def neg(x):
    return elementwise(np.negative, (x,), "neg", "negate {0}", "numbers")


@operator(shape="first")
def abs(x):
    if host_kind(x) in (int, float):
        return builtins.abs(x)
    return elementwise(np.abs, (x,), "abs", "apply 'abs' to {0}", "numbers")


@operator(shape="first")
def square(x):
    return elementwise(np.square, (x,), "square", "apply 'square' to {0}", "numbers")


@operator(shape="first")
def sign(x):
    return elementwise(np.sign, (x,), "sign", "apply 'sign' to {0}", "numbers")


@operator(method=False)
def eq(a, b):
    return elementwise(np.equal, (a, b), "eq", "compare {0} with {1}", "any")


@operator(method=False)
def ne(a, b):
    return elementwise(np.not_equal, (a, b), "ne", "compare {0} with {1}", "any")


@operator(method=False)
def lt(a, b):
    return elementwise(np.less, (a, b), "lt", "compare {0} with {1}", "numbers")


@operator(method=False)
def le(a, b):
    return elementwise(np.less_equal, (a, b), "le", "compare {0} with {1}", "numbers")


@operator(method=False)
def gt(a, b):
    return elementwise(np.greater, (a, b), "gt", "compare {0} with {1}", "numbers")


@operator(method=False)
def ge(a, b):
    return elementwise(np.greater_equal, (a, b), "ge", "compare {0} with {1}", "numbers")


@operator(name="and", method=False)
def logical_and(a, b):
    return elementwise(np.logical_and, (a, b), "and", "apply 'and' to {0} and {1}", "bools")


@operator(name="or", method=False)
def logical_or(a, b):
    return elementwise(np.logical_or, (a, b), "or", "apply 'or' to {0} and {1}", "bools")


@operator(name="not", method=False)
def logical_not(x):
    return elementwise(np.logical_not, (x,), "not", "apply 'not' to {0}", "bools")


@operator(method=False)
def where(condition, a, b):
    return elementwise(np.where, (condition, a, b), "where",
                       "apply 'where' to {0}, {1} and {2}", "any", condition=0)
