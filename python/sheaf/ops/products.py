"""Products of matrices and vectors, and sums over named axes."""
import numpy as np

from .reductions import widened
from .registry import operator
from .tensors import NAMES, ShapeError, as_array, describe, give, is_float, mismatch, type_of


def _factors(a, b):
    both, arrays = f"cannot multiply {describe(a)} by {describe(b)}: ", []
    for x in (a, b):
        array = as_array(x)
        if array is None:
            raise TypeError(both + f"{describe(x)} is not a tensor (scale a tensor with '*')")
        if not is_float(array.dtype):
            raise TypeError(both + f"the elements of {type_of(array)} are not floats "
                            "(convert it with f32(...))")
        arrays.append(array)
    if arrays[0].dtype != arrays[1].dtype:
        x, y = (NAMES[array.dtype] for array in arrays)
        raise TypeError(both + f"the element types differ (convert one of them with {x}(...) or "
                        f"{y}(...))")
    return arrays


@operator(method=False)
def matmul(a, b):
    a, b = _factors(a, b)
    what = f"cannot multiply {type_of(a)} by {type_of(b)}: "
    for x in (a, b):
        if not x.ndim:
            raise ShapeError(what + f"{type_of(x)} has no axes (scale a tensor with '*')")
    inner = b.shape[-1] if b.ndim == 1 else b.shape[-2]
    if a.shape[-1] != inner:
        raise ShapeError(what + f"the inner extents differ ({a.shape[-1]}, {inner})")
    if why := mismatch(a.shape[:-2], b.shape[:-2]):
        raise ShapeError(what + "the batch extents differ" + why[why.rindex(" ("):])
    return give(np.matmul(widened(a), widened(b)).astype(a.dtype))


@operator
def dot(a, b):
    for x in (a, b):
        if (array := as_array(x)) is not None and array.ndim != 1:
            raise ShapeError(f"cannot take the dot product of {describe(a)} and {describe(b)}: "
                             f"{type_of(array)} is not a vector")
    return matmul(a, b)


@operator(method=False)
def masked_matmul(a, b, mask):
    a, b = _factors(a, b)
    see = as_array(mask)
    if see is None or see.dtype != bool:
        raise TypeError(f"cannot mask {type_of(a)} with {describe(mask)}: a mask is of bools (whether "
                        "an element is read)")
    for x in (a, b):
        if x.ndim < 2:
            raise ShapeError(f"cannot multiply {type_of(a)} by {type_of(b)} row by row: {type_of(x)} "
                             "is no matrix")
    if see.ndim > a.ndim or (why := mismatch(a.shape, see.shape)):
        raise ShapeError(f"cannot mask {type_of(a)} with {type_of(see)}: " +
                         ("it has more axes" if see.ndim > a.ndim else why))
    left = np.where(see, a, a.dtype.type(0))
    if np.isfinite(widened(left)).all() and np.isfinite(widened(b)).all():
        return matmul(left, b)
    # A step with a factor that is 0 is left out, whatever the other factor is.
    x, y = widened(left)[..., :, :, None], widened(b)[..., None, :, :]
    return give(np.where((x == 0) | (y == 0), 0, x * y).sum(axis=-2).astype(a.dtype))


@operator
def outer(a, b):
    x, y = _factors(a, b)
    for array in (x, y):
        if array.ndim != 1:
            raise ShapeError(f"cannot take the outer product of {type_of(x)} and {type_of(y)}: "
                             f"{type_of(array)} is not a vector")
    return give(np.multiply.outer(widened(x), widened(y)).astype(x.dtype))


def einsum(letters, *tensors):
    """`einsum("nd,dh->nh", x, w)`: axes by letters, products summed over those that do not stand
    after the arrow. A letter stands once in a term, and there is no `...`."""
    arrays = [as_array(x) for x in tensors]
    if any(array is None or not is_float(array.dtype) for array in arrays):
        raise TypeError(f"einsum is of tensors of floats, not of {', '.join(map(describe, tensors))}")
    text = letters.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(arrays):
        raise ValueError(f"einsum {letters!r} has {len(terms)} terms, and there are {len(arrays)} "
                         "tensors")
    extents = {}
    for term, array in zip(terms, arrays):
        if not all(letter.isalpha() for letter in term) or len(set(term)) != len(term):
            raise ValueError(f"einsum {letters!r}: a term is of letters, each once")
        if len(term) != array.ndim:
            raise ShapeError(f"einsum {letters!r}: '{term}' names {len(term)} axes, and "
                             f"{type_of(array)} has {array.ndim}")
        for letter, extent in zip(term, array.shape):
            if extents.setdefault(letter, extent) != extent:
                raise ShapeError(f"einsum {letters!r}: '{letter}' stands for extents that differ "
                                 f"({extents[letter]}, {extent})")
    if not arrow:
        right = "".join(sorted(letter for letter in extents if left.count(letter) == 1))
    if len(set(right)) != len(right) or any(letter not in extents for letter in right):
        raise ValueError(f"einsum {letters!r}: the letters after the arrow are those of terms, once")
    result = np.einsum(f"{left}->{right}", *map(widened, arrays))
    return give(np.asarray(result, arrays[0].dtype))


einsum.__sheaf_operator__ = "einsum"
