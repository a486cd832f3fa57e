"""What the lowering knows of a value: enough to say what Python's operators mean.

This is no type checker: a value of which nothing is known is None, and the checker of `.sheaf` decides.
"""
from dataclasses import dataclass
from typing import Any, Optional, Tuple


class Kind:
    __slots__ = ()


@dataclass(frozen=True)
class Scalar(Kind):
    """A host scalar: "int", "float" or "bool"."""
    name: str

    def text(self):
        return self.name


INT, FLOAT, BOOL = Scalar("int"), Scalar("float"), Scalar("bool")


@dataclass(frozen=True)
class Tok(Kind):
    vocabulary: str = ""

    def text(self):
        return f"token<{self.vocabulary}>" if self.vocabulary else "token"


@dataclass(frozen=True)
class Tensor(Kind):
    """`dims` are texts of .sheaf, or None where the shape is not known. `dtype` may be None."""
    dtype: Optional[str]
    dims: Optional[Tuple[Any, ...]] = None
    vocabulary: str = ""

    def text(self):
        dtype = f"token<{self.vocabulary}>" if self.vocabulary else self.dtype
        if not self.dims:
            return "bool[]" if dtype == "bool" else "token[]" if self.dtype == "token" else dtype
        return f"{dtype}[{', '.join(self.dims)}]"


@dataclass(frozen=True)
class List(Kind):
    element: Optional[Kind]

    def text(self):
        return f"list<{text(self.element)}>"


@dataclass(frozen=True)
class Tuple_(Kind):
    parts: Tuple[Optional[Kind], ...]

    def text(self):
        return "(" + ", ".join(map(text, self.parts)) + ")"


@dataclass(frozen=True)
class Data(Kind):
    """A data type: `declaration` is a data.Declaration, `arguments` those of its parameters."""
    declaration: Any
    arguments: Tuple[Optional[Kind], ...] = ()

    def text(self):
        name = self.declaration.name
        return name + (f"<{', '.join(map(text, self.arguments))}>" if self.arguments else "")


@dataclass(frozen=True)
class Option(Kind):
    """T | None."""
    inner: Optional[Kind]

    def text(self):
        return f"Option<{text(self.inner)}>"


@dataclass(frozen=True)
class Variable(Kind):
    """A type variable."""
    name: str

    def text(self):
        return self.name


@dataclass(frozen=True)
class Callable_(Kind):
    parameters: Tuple[Optional[Kind], ...]
    result: Optional[Kind]

    def text(self):
        return "(" + ", ".join(map(text, self.parameters)) + ") -> " + text(self.result)


@dataclass(frozen=True)
class NoneKind(Kind):
    """Of functions that return nothing."""

    def text(self):
        return "()"


NONE = NoneKind()


class Unprintable(Exception):
    """A type that is not known well enough to be written down."""


def text(kind):
    if kind is None:
        raise Unprintable
    if isinstance(kind, Tensor) and (kind.dims is None or kind.dtype is None):
        raise Unprintable
    return kind.text()


def known(kind):
    """Its text, or None."""
    try:
        return text(kind)
    except Unprintable:
        return None


def is_host_number(kind):
    return kind in (INT, FLOAT)


def join(a, b):
    """Of values of which it is one or the other."""
    if a == b:
        return a
    if a is None or b is None:
        return None
    if a is NONE or b is NONE:
        other = b if a is NONE else a
        return other if isinstance(other, Option) else Option(other)
    if isinstance(a, Option) or isinstance(b, Option):
        inner = join(a.inner if isinstance(a, Option) else a, b.inner if isinstance(b, Option) else b)
        return Option(inner)
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        return FLOAT if FLOAT in (a, b) else INT
    if isinstance(a, Scalar) and isinstance(b, Tensor):
        return b
    if isinstance(a, Tensor) and isinstance(b, Scalar):
        return a
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        dims = None
        if a.dims is not None and b.dims is not None and len(a.dims) == len(b.dims):
            # None is an extent that the checker knows and this does not; `?` one that differs.
            dims = tuple(x if x == y else None if x is None or y is None else "?"
                         for x, y in zip(a.dims, b.dims))
            if any(x == "?" or y == "?" for x, y in zip(a.dims, b.dims)):
                dims = tuple("?" if x == "?" or y == "?" else d for x, y, d in zip(a.dims, b.dims, dims))
        return Tensor(a.dtype if a.dtype == b.dtype else None, dims,
                      a.vocabulary if a.vocabulary == b.vocabulary else "")
    if isinstance(a, List) and isinstance(b, List):
        if a.element is None or b.element is None:
            return a if b.element is None else b
        return List(join(a.element, b.element))
    if isinstance(a, Tuple_) and isinstance(b, Tuple_) and len(a.parts) == len(b.parts):
        return Tuple_(tuple(join(x, y) for x, y in zip(a.parts, b.parts)))
    if isinstance(a, Data) and isinstance(b, Data) and a.declaration is b.declaration:
        if len(a.arguments) == len(b.arguments):
            return Data(a.declaration, tuple(join(x, y) for x, y in zip(a.arguments, b.arguments)))
        return a
    return None


def dims_open(kind):
    """The same with `?` for extents that are not known, as elements of a list have them."""
    if isinstance(kind, Tensor) and kind.dims is not None:
        return Tensor(kind.dtype, tuple("?" if d is None else d for d in kind.dims), kind.vocabulary)
    if isinstance(kind, Tuple_):
        return Tuple_(tuple(map(dims_open, kind.parts)))
    return kind


def substitute(kind, binding):
    """With type variables replaced."""
    if isinstance(kind, Variable):
        return binding.get(kind.name)
    if isinstance(kind, List):
        return List(substitute(kind.element, binding))
    if isinstance(kind, Tuple_):
        return Tuple_(tuple(substitute(p, binding) for p in kind.parts))
    if isinstance(kind, Option):
        return Option(substitute(kind.inner, binding))
    if isinstance(kind, Data):
        return Data(kind.declaration, tuple(substitute(a, binding) for a in kind.arguments))
    return kind


def bind(formal, actual, binding):
    """Finds what type variables stand for."""
    if isinstance(formal, Variable):
        if formal.name not in binding or binding[formal.name] is None:
            binding[formal.name] = actual
    elif isinstance(formal, List) and isinstance(actual, List):
        bind(formal.element, actual.element, binding)
    elif isinstance(formal, Tuple_) and isinstance(actual, Tuple_) and len(formal.parts) == len(
            actual.parts):
        for f, a in zip(formal.parts, actual.parts):
            bind(f, a, binding)
    elif isinstance(formal, Option):
        bind(formal.inner, actual.inner if isinstance(actual, Option) else actual, binding)
    elif isinstance(formal, Data) and isinstance(actual, Data) and (
            formal.declaration is actual.declaration):
        for f, a in zip(formal.arguments, actual.arguments):
            bind(f, a, binding)


def variables(kind, found=None):
    """Names of the type variables in it, in order."""
    found = [] if found is None else found
    if isinstance(kind, Variable):
        if kind.name not in found:
            found.append(kind.name)
    elif isinstance(kind, (List,)):
        variables(kind.element, found)
    elif isinstance(kind, Option):
        variables(kind.inner, found)
    elif isinstance(kind, Tuple_):
        for part in kind.parts:
            variables(part, found)
    elif isinstance(kind, Data):
        for part in kind.arguments:
            variables(part, found)
    elif isinstance(kind, Callable_):
        for part in kind.parameters:
            variables(part, found)
        variables(kind.result, found)
    return found
