"""Conversions between element types.

Float to int truncates, stops at the ends and makes 0 of NaN; i64 to i32 wraps; to bool is x != 0.
NumPy has no bf16: what `bf16` gives are f32 elements that are rounded to bf16.
"""
import numpy as np

from .registry import operator
from .tensors import as_array, describe, give, host_kind, is_float


def _operand(x, to):
    array = as_array(x)
    if array is not None:
        return array
    kind = host_kind(x)
    if kind is None:
        raise TypeError(f"cannot convert {describe(x)} to {to}")
    if kind is int:
        x = (int(x) + 2 ** 63) % 2 ** 64 - 2 ** 63
    return np.array(x, {bool: np.bool_, int: np.int64, float: np.float64}[kind])


def _to_int(x, dtype):
    if not is_float(x.dtype):
        return x.astype(dtype)
    ends = np.iinfo(dtype)
    wide = np.where(np.isnan(x), 0, x.astype(np.float64))
    # The greatest i64 is no double: what reaches beyond it is taken out of the conversion.
    low, high = wide <= ends.min, wide >= ends.max
    converted = np.where(low | high, 0, wide).astype(dtype)
    return np.where(low, ends.min, np.where(high, ends.max, converted)).astype(dtype)


@operator
def f32(x):
    return give(_operand(x, "f32").astype(np.float32))


@operator
def f16(x):
    return give(_operand(x, "f16").astype(np.float32).astype(np.float16))


@operator
def bf16(x):
    exact = np.ascontiguousarray(_operand(x, "bf16").astype(np.float32))
    bits = exact.view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    rounded = (rounded & np.uint32(0xFFFF0000)).view(np.float32)
    return give(np.where(np.isnan(exact), exact, rounded).reshape(np.shape(exact)))


@operator
def i32(x):
    return give(_to_int(_operand(x, "i32"), np.int32))


@operator
def i64(x):
    return give(_to_int(_operand(x, "i64"), np.int64))


@operator(method=False)
def bool(x):
    return give(_operand(x, "bool") != 0)


@operator(shape="first")
def stop_gradient(x):
    array = as_array(x)
    if array is None:
        raise TypeError(f"cannot stop the gradient of {describe(x)}: it is not a tensor")
    return give(array)
