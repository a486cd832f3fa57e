"""What eager operators compute with: NumPy arrays of the element types that Sheaf has.

A Tensor is an ndarray whose operators are Sheaf's: f32 stays f32 (NumPy 1 makes f64 of
`np.float32(3) * 2.0`), shapes that do not fit are an error with both, an index gives a Tensor
again, and nothing changes a value. `np.asarray(t)` is the plain array, without a copy.
"""
import numbers

import numpy as np

from ..elements import ELEMENTS
from ..errors import SheafError
from ..hints import FUNCTIONS, missing
from .registry import OPERATORS


class ShapeError(ValueError, SheafError):
    """Shapes that do not go together."""

    __module__ = "sheaf"


# NumPy's element types as the language calls them.
NAMES = {np.dtype(element.array): name for name, element in ELEMENTS.items()
         if element.array in element.names}
# What other arrays become when they come in: f64 is data, never a type that is computed with.
_COMES_IN_AS = {"float64": np.float32, "int8": np.int32, "uint8": np.int32, "int16": np.int32,
                "uint16": np.int32, "uint32": np.int64}
HOST = {bool: "bool", int: "int", float: "float"}


def is_float(dtype):
    return dtype.kind == "f"


def host_kind(x):
    """bool, int or float if x is a number of the host; else None. A token is an int."""
    if isinstance(x, (bool, np.bool_)):
        return bool
    if isinstance(x, numbers.Integral):
        return int
    if isinstance(x, float):
        return float
    return None


def as_array(x):
    """The plain array of a Tensor, a Param, or an array that comes from elsewhere; None if x is
    nothing of the kind. f64 becomes f32."""
    kind = type(x)
    if kind is not np.ndarray:
        if isinstance(x, Operand):
            if kind is not Tensor:
                x = x.__sheaf_tensor__()
            return x.view(np.ndarray)
        if isinstance(x, (np.float32, np.float16, np.longdouble)) and not isinstance(x, float):
            x = np.asarray(x)
        elif not isinstance(x, np.ndarray):
            return None
        x = np.asarray(x)
    if x.dtype in NAMES and x.dtype.isnative:
        return x
    native = x.dtype.newbyteorder("=")
    comes_in = _COMES_IN_AS.get(native.name, native)
    if np.dtype(comes_in) not in NAMES:
        raise TypeError(f"an array of {x.dtype} is no tensor: elements are f32, f16, i32, i64 or bool")
    return x.astype(comes_in)


def tensor(x):
    """A Tensor of an array, a number or nested lists of numbers: floats as f32, ints as i32."""
    if type(x) is Tensor:
        return x
    array = as_array(x)
    if array is None:
        kind = host_kind(x)
        if kind is None and not isinstance(x, (list, tuple)):
            raise TypeError(f"{describe(x)} is no tensor")
        array = np.asarray(x)
        if array.dtype == np.int64:
            array = array.astype(np.int32) if _fits_i32(array) else array
        array = as_array(array)
    return array.view(Tensor)


def _fits_i32(array):
    return not array.size or (array.min() >= -2 ** 31 and array.max() < 2 ** 31)


def as_input(x):
    """An argument of a model as its methods see it: arrays and torch tensors become Tensors."""
    if isinstance(x, np.ndarray):
        return tensor(x)
    if hasattr(x, "detach") and hasattr(x, "numpy"):
        return tensor(x.detach().numpy())
    if isinstance(x, (np.integer, np.bool_)):
        return x.item()
    return x


def give(x):
    """What an operator gives: an array, or NumPy's scalar, as a Tensor."""
    return np.asarray(x).view(Tensor)


def describe(x):
    """The type of x as messages have it: `f32[3, 4]`, `int`, `list`."""
    array = as_array(x)
    if array is not None:
        return type_of(array)
    kind = host_kind(x)
    return HOST[kind] if kind else type(x).__name__


def type_of(array):
    """`f32[3, 4]`; `bool[]`, since `bool` alone is the host's."""
    name = NAMES[array.dtype]
    dims = f"[{', '.join(map(str, array.shape))}]"
    return name if not array.shape and name != "bool" else name + dims


def need_tensor(x, action, help=""):
    """The array of x, or an error: cannot <action> <x>."""
    array = as_array(x)
    if array is None:
        raise TypeError(f"cannot {action} {describe(x)}: it is not a tensor" + (f" ({help})" if help else ""))
    return array


def need_float(x, action):
    array = need_tensor(x, action)
    if not is_float(array.dtype):
        raise TypeError(f"cannot {action} {type_of(array)}: its elements are not floats "
                        "(convert it with f32(...))")
    return array


def need_numbers(x, action):
    array = need_tensor(x, action)
    if array.dtype == np.bool_:
        raise TypeError(f"cannot {action} {type_of(array)}: its elements are not numbers "
                        "(convert it with f32(...))")
    return array


def need_axis(axis, rank, what):
    """An axis counted from 0."""
    if host_kind(axis) is not int:
        raise TypeError(f"an axis is an int, not {axis!r}")
    if not -rank <= axis < rank:
        raise ShapeError(f"axis {axis} is out of range for {what}, which has "
                         f"{rank} {'axis' if rank == 1 else 'axes'}")
    return int(axis) % rank


def need_extent(x, what="an extent"):
    """An int that is not negative; a tensor of one int is read."""
    if host_kind(x) is not int:
        array = as_array(x)
        if array is None or array.shape or array.dtype.kind != "i":
            raise TypeError(f"{what} is an int, not {describe(x)}")
        x = array.item()
    if x < 0:
        raise ShapeError(f"{what} is at least 0, not {x}")
    return int(x)


def need_extents(dims):
    """The extents of `zeros(2, 3)`, also written `zeros((2, 3))`."""
    if len(dims) == 1 and isinstance(dims[0], (tuple, list)):
        dims = dims[0]
    return tuple(need_extent(dim) for dim in dims)


def flag(x, what):
    if x not in (0, 1):
        raise ValueError(f"{what} is 0 or 1, not {x!r}")
    return bool(x)


def mismatch(a, b):
    """How two shapes that do not broadcast differ."""
    for back in range(1, min(len(a), len(b)) + 1):
        x, y = a[-back], b[-back]
        if x != y and x != 1 and y != 1:
            where = (f"the extents of axis {len(a) - back}" if len(a) == len(b) else
                     "the last extents" if back == 1 else
                     f"the extents of axis {-back} (from the end)")
            return f"{where} differ ({x}, {y})"
    return None


def broadcast(shapes, action):
    """The shape of all together, or an error: cannot <action()>."""
    result = shapes[0]
    for shape in shapes[1:]:
        if shape == result or not shape:
            continue
        why = mismatch(result, shape)
        if why:
            raise ShapeError(f"cannot {action()}: {why}")
        result = np.broadcast_shapes(result, shape)
    return result


def promote(operands, phrase, accepts, name, condition=None):
    """Operands of an operator that works element by element, as arrays of one type.

    A number of the host becomes a tensor without axes of the others' element type. `phrase` says
    what cannot be done, with `{0}` for operands; `accepts` is "floats", "numbers", "bools" or
    "any"; `condition` is the place of a bool that chooses.
    """
    def cannot(why):
        return f"cannot {phrase.format(*map(describe, operands))}: {why}"

    arrays = []
    for x in operands:
        array = x.view(np.ndarray) if type(x) is Tensor else as_array(x)
        if array is None and host_kind(x) is None:
            raise TypeError(cannot(f"{describe(x)} is not a tensor"))
        arrays.append(array)
    dtype = None
    for i, array in enumerate(arrays):
        if array is None or i == condition:
            continue
        if dtype is None:
            dtype = array.dtype
        elif array.dtype != dtype:
            raise TypeError(cannot("the element types differ (convert one of them with "
                                   f"{NAMES[dtype]}(...) or {NAMES[array.dtype]}(...))"))
    if dtype is None:
        kinds = {host_kind(x) for i, x in enumerate(operands) if i != condition}
        dtype = np.dtype(np.float32 if float in kinds or accepts == "floats" else
                         np.int64 if int in kinds else np.bool_)
    kind = dtype.kind
    if (accepts == "floats" and kind != "f" or accepts == "numbers" and kind == "b" or
            accepts == "bools" and kind != "b"):
        raise TypeError(cannot(f"'{name}' takes {accepts}, not {NAMES[dtype]}"
                               + ("" if accepts == "bools" else " (convert it with f32(...))")))
    for i, array in enumerate(arrays):
        wanted = np.dtype(np.bool_) if i == condition else dtype
        if array is None:
            host = host_kind(operands[i])
            if host is float and wanted.kind != "f":
                raise TypeError(cannot("the tensor's elements are ints (convert the tensor with "
                                       "f32(...), or the float with int(...))"
                                       if wanted.kind == "i" else "the element types differ"))
            if (host is bool) != (wanted.kind == "b"):
                raise TypeError(cannot("the element types differ"))
            number = operands[i]
            if wanted.kind == "i":
                # Ints wrap, as everywhere.
                bits = 8 * wanted.itemsize
                number = (int(number) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
            arrays[i] = np.array(number, wanted)
        elif i == condition and array.dtype != np.bool_:
            raise TypeError(cannot(f"'{name}' takes a bool condition"))
    return arrays


def _dunder(name):
    def forward(self, other):
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        return OPERATORS[name](self, other)

    def backward(self, other):
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        return OPERATORS[name](other, self)
    return forward, backward


def _method(name):
    def method(self, *arguments, **named):
        return OPERATORS[name](self, *arguments, **named)
    method.__name__, method.__qualname__ = name, f"Tensor.{name}"
    method.__doc__ = f"The operator `{name}` of this tensor and what is given."
    return method


class Operand:
    """What stands in expressions as a tensor: Tensor and Param. Its operators are Sheaf's."""

    __array_ufunc__ = None
    __hash__ = None

    def __sheaf_tensor__(self):
        raise NotImplementedError

    __add__, __radd__ = _dunder("add")
    __sub__, __rsub__ = _dunder("sub")
    __mul__, __rmul__ = _dunder("mul")
    __truediv__, __rtruediv__ = _dunder("div")
    __pow__, __rpow__ = _dunder("pow")
    __matmul__, __rmatmul__ = _dunder("matmul")
    __eq__, _ = _dunder("eq")
    __ne__, _ = _dunder("ne")
    __lt__, _ = _dunder("lt")
    __le__, _ = _dunder("le")
    __gt__, _ = _dunder("gt")
    __ge__, _ = _dunder("ge")
    __and__, __rand__ = _dunder("and")
    __or__, __ror__ = _dunder("or")
    # Values never change: `x += y` names a new one.
    __iadd__, __isub__, __imul__, __itruediv__ = __add__, __sub__, __mul__, __truediv__
    __ipow__, __imatmul__, __iand__, __ior__ = __pow__, __matmul__, __and__, __or__
    del _

    def __neg__(self):
        return OPERATORS["neg"](self)

    def __pos__(self):
        return self.__sheaf_tensor__()

    def __abs__(self):
        return OPERATORS["abs"](self)

    def __invert__(self):
        return OPERATORS["not"](self)

    def _no_floor(self, other):
        raise TypeError("// and % are of ints, not of tensors: floor(a / b), or i32(...)")

    __floordiv__ = __rfloordiv__ = __ifloordiv__ = _no_floor
    __mod__ = __rmod__ = __imod__ = __divmod__ = __rdivmod__ = _no_floor

    def __getitem__(self, index):
        from .indexing import subscript
        return subscript(self, index)

    def __setitem__(self, index, value):
        raise TypeError("a tensor's elements cannot be assigned: values never change; make another "
                        "with where, scatter_add or concat (a Param's array is its `value`)")

    def __len__(self):
        if not self.shape:
            raise TypeError("a tensor without axes has no length")
        return self.shape[0]

    def __iter__(self):
        array = need_tensor(self, "go through")
        if not array.shape:
            raise TypeError("a tensor without axes has no rows")
        return (give(row) for row in array)

    def __bool__(self):
        array = as_array(self)
        if array.size != 1:
            raise ValueError(f"whether {type_of(array)} is true is not one answer: read one element")
        return bool(array.item())

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __index__(self):
        array = as_array(self)
        if array.shape or array.dtype.kind != "i":
            raise TypeError(f"{type_of(array)} is no int")
        return array.item()

    @property
    def T(self):
        """The last two axes exchanged."""
        return OPERATORS["transpose"](self)

    def __getattr__(self, name):
        # Of what is not there: names of PyTorch's tensors say what to write.
        raise missing(f"'{type(self).__name__}' object", name, FUNCTIONS, self)

    def item(self):
        """The element of a tensor that has one, as a number of the host: a read."""
        array = as_array(self)
        if array.size != 1:
            raise ValueError(f"cannot read {type_of(array)}: it has {array.size} elements, not one")
        return array.item()

    def tolist(self):
        """The elements as numbers of the host."""
        return as_array(self).tolist()


def add_methods():
    """Operators whose first operand is a tensor are its methods as well."""
    for name, function in OPERATORS.items():
        if function.is_method:
            setattr(Operand, name, _method(name))


# What an operator that is written as a sign takes on its other side.
_OPERANDS = (Operand, np.ndarray, np.generic, int, float)


class Tensor(Operand, np.ndarray):
    """An ndarray with the operators and the error messages of Sheaf."""

    def __sheaf_tensor__(self):
        return self

    # NumPy's own functions work on plain arrays; what they give is a Tensor again.

    def __array_ufunc__(self, ufunc, method, *inputs, **named):
        if any(isinstance(out, Tensor) for out in named.get("out", ())):
            raise TypeError("a tensor cannot be written to: values never change")
        dtype = np.asarray(self).dtype
        plain = [_weak(as_array(x), x, dtype) for x in inputs]
        with np.errstate(all="ignore"):
            return _wrap(getattr(ufunc, method)(*plain, **named))

    def __array_function__(self, function, types, arguments, named):
        return _wrap(function(*_plain(arguments), **_plain(named)))

    def __repr__(self):
        text = repr(self.view(np.ndarray))
        return "tensor" + text[5:] if text.startswith("array") else text

    def __str__(self):
        return str(self.view(np.ndarray))

    def __format__(self, spec):
        return format(self.item() if self.size == 1 and spec else self.view(np.ndarray), spec)

    def view(self, *arguments, **named):
        """NumPy's: the same memory as another type. PyTorch's is reshape."""
        if arguments and all(host_kind(x) is int for x in arguments):
            raise missing("'Tensor' object", "view", FUNCTIONS, self)
        return super().view(*arguments, **named)

    def __reduce__(self):
        return _rebuild, (np.array(self.view(np.ndarray)),)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return np.array(self.view(np.ndarray)).view(Tensor)


def _rebuild(array):
    return array.view(Tensor)


def _weak(array, x, dtype):
    """A number of the host in NumPy's own functions takes the tensor's element type."""
    if array is not None:
        return array
    kind = host_kind(x)
    if kind and (dtype.kind == "f" or kind is not float) and kind is not bool:
        return np.asarray(x, dtype)
    return x


def _plain(x):
    if isinstance(x, Operand):
        return as_array(x)
    if isinstance(x, (tuple, list)):
        return type(x)(map(_plain, x))
    if isinstance(x, dict):
        return {key: _plain(value) for key, value in x.items()}
    return x


def _wrap(x):
    if isinstance(x, tuple):
        return tuple(map(_wrap, x))
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype in NAMES:
        return np.asarray(x).view(Tensor)
    return x


