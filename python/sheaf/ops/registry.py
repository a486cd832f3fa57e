"""The table of operators: each by the name that the language gives it."""
import functools

import numpy as np

OPERATORS = {}


class _Eager:
    """True in eager code; the front end takes it for False, and leaves out what stands behind it."""

    __slots__ = ()


EAGER = _Eager()


def operator(function=None, *, name=None, shape=None, method=True):
    """Makes a function the operator of its name, or of `name` where Python reserves that.

    shape   "first": the result has the extents of the first operand; "all": those of all together.
            By default the front end does not know them (front/operators.py names some)
    method  tensors have it as a method, of their first operand

    The front end knows operators by the attribute `__sheaf_operator__`. Infinities and NaN are
    values like others here, so NumPy's warnings are off inside.
    """
    if function is None:
        return functools.partial(operator, name=name, shape=shape, method=method)

    @functools.wraps(function)
    def call(*arguments, **named):
        with np.errstate(all="ignore"):
            return function(*arguments, **named)

    call.__sheaf_operator__ = name or function.__name__
    call.shape_of, call.is_method = shape, method
    OPERATORS[call.__sheaf_operator__] = call
    return call
