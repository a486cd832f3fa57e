"""Calls of a Module in eager code, checked by the annotations of `forward`.

What is annotated as a tensor becomes one: an array, or numbers in lists. Its element type and extents
are those that the annotation says; names that the Module has as ints are these, others are bound by the
call. Compiled code has it from the checker.
"""
import functools
import inspect
import re
import typing

import numpy as np

from .elements import ELEMENTS
from .ops.tensors import NAMES, ShapeError, Tensor, as_array, as_input, describe, type_of
from .types import TensorType


@functools.lru_cache(maxsize=1024)
def _annotations(function):
    """({parameter: annotation} of those with tensors, the result's TensorType or None, the parameters'
    names) of a method."""
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # names that are not there at run time: nothing is known then
        hints = dict(getattr(function, "__annotations__", {}))
    result = hints.pop("return", None)
    result = result if isinstance(result, TensorType) else None
    tensors = {name: hint for name, hint in hints.items() if _has_tensors(hint)}
    try:
        names = list(inspect.signature(function).parameters)[1:]
    except (TypeError, ValueError):
        names = []
    return tensors, result, names


def _has_tensors(hint):
    """Whether it is a tensor's type, or a list or tuple of some."""
    return isinstance(hint, TensorType) or typing.get_origin(hint) in (list, tuple) and any(
        map(_has_tensors, typing.get_args(hint)))


def call(module, function, arguments, named):
    """function(module, ...) with its arguments and its result checked."""
    tensors, result, names = _annotations(function)
    if not tensors and result is None:
        return function(module, *map(as_input, arguments),
                        **{name: as_input(value) for name, value in named.items()})
    bound, where = {}, type(module).__name__
    taken = [_taken(module, tensors.get(name), value, bound, f"{where}: '{name}'")
             for name, value in zip(names, arguments)]
    taken += map(as_input, arguments[len(names):])
    more = {name: _taken(module, tensors.get(name), value, bound, f"{where}: '{name}'")
            for name, value in named.items()}
    made = function(module, *taken, **more)
    if result is not None and isinstance(made, Tensor):
        _fits(module, result, made, bound, f"{where}: the result")
    return made


def _taken(module, annotation, value, bound, what):
    if annotation is None or not _has_tensors(annotation):
        return as_input(value)
    if not isinstance(annotation, TensorType):
        return _parts(module, annotation, value, bound, what)
    array = as_array(as_input(value))
    if array is None:
        if not isinstance(value, (list, tuple, int, float)):
            raise TypeError(f"{what} is {annotation!r}, and {describe(value)} was given")
        try:
            array = np.asarray(value)
        except ValueError:
            raise ShapeError(f"{what} is {annotation!r}, and the lists given are not equally long") from None
        if array.size == 0:
            array = array.astype(np.float32 if annotation.dtype == "f32" else np.int32)
    array = _of_type(annotation, array, what)
    _fits(module, annotation, array, bound, what)
    return array.view(Tensor)


def _parts(module, annotation, value, bound, what):
    """A list or tuple with its tensors taken; a new one, so that nothing that is done to it in place
    reaches what was given."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if not isinstance(value, (list, tuple)) and not (origin is list and isinstance(value, np.ndarray)):
        raise TypeError(f"{what} is a {origin.__name__}, and {describe(value)} was given")
    if origin is list:
        # A name is one extent for all elements; `?` may differ from one to the next.
        return [_taken(module, inner[0], element, bound, f"{what}, element {i}")
                for i, element in enumerate(value)]
    if len(value) != len(inner):
        raise TypeError(f"{what} is a tuple of {len(inner)}, and {len(value)} were given")
    return tuple(_taken(module, part, element, bound, f"{what}, part {i}")
                 for i, (part, element) in enumerate(zip(inner, value)))


_WANTED = {name: element.array for name, element in ELEMENTS.items()} | {"token": "int32"}


def _of_type(annotation, array, what):
    """The array with the element type that is wanted, where nothing is lost."""
    wanted = np.dtype(_WANTED[annotation.dtype])
    kind = array.dtype.kind
    if kind != wanted.kind and not (kind in "iu" and wanted.kind == "f" and isinstance(array, np.ndarray)
                                    and annotation.dtype == "f32"):
        name = NAMES.get(array.dtype, array.dtype)
        raise TypeError(f"{what} is {annotation!r}, and elements of {name} were given")
    if wanted.kind == "i" and array.size and (
            array.min() < np.iinfo(wanted).min or array.max() > np.iinfo(wanted).max):
        raise OverflowError(f"{what} is {annotation!r}, and has numbers that it cannot hold")
    return array.astype(wanted, copy=False)


def _fits(module, annotation, array, bound, what):
    dims, shape = list(annotation.dims or ()), array.shape
    if dims and (dims[0].startswith("*") or dims[0] == "..."):
        rest = dims[1:]
        if len(shape) < len(rest):
            raise ShapeError(f"{what} is {annotation!r}, and is {type_of(array)}")
        leading = shape[:len(shape) - len(rest)]
        if dims[0] != "..." and bound.setdefault(dims[0], leading) != leading:
            raise ShapeError(f"{what} is {annotation!r}, and is {type_of(array)}: {dims[0]} is "
                             f"{list(bound[dims[0]])} in this call")
        dims, shape = rest, shape[len(leading):]
    if len(dims) != len(shape):
        raise ShapeError(f"{what} is {annotation!r}, and is {type_of(array)}")
    for dim, extent in zip(dims, shape):
        if re.fullmatch(r"[A-Za-z_]\w*", dim):
            wanted = _number(module, dim)
            if wanted is None:
                wanted = bound.setdefault(dim, extent)
        else:
            wanted = _value(module, dim, bound)
        if wanted is not None and wanted != extent:
            named = "" if dim == str(wanted) else f": {dim} is {wanted}"
            raise ShapeError(f"{what} is {annotation!r}, and is {type_of(array)}{named}")


def words_of(module, name):
    """The words of a vocabulary that a Module has: a list of texts called `vocab`, or `tag_vocab` for
    Token["tag"]. None if the attribute is no such."""
    value = vars(module).get(name)
    is_vocabulary = name == "vocab" or name.endswith("_vocab")
    if is_vocabulary and isinstance(value, (list, tuple)) and value and all(isinstance(w, str) for w in value):
        return value
    return None


def _number(module, name):
    value = getattr(module, name, None)
    if isinstance(value, (list, tuple)) and words_of(module, name):
        return len(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _value(module, dim, bound):
    """What an extent comes to, or None if that is not known."""
    if dim == "?":
        return None
    known = True

    def number(match):
        nonlocal known
        value = _number(module, match[0])
        value = bound.get(match[0]) if value is None else value
        known = known and value is not None
        return str(value)
    text = re.sub(r"[A-Za-z_]\w*", number, dim)
    if not known:
        return None
    # Names are gone: digits, signs and brackets are left (types._EXTENT).
    return eval(text.replace("/", "//"), {"__builtins__": {}})
