"""Annotations of Python to Kinds."""
import collections.abc
import re
import types
import typing

from ..elements import ELEMENTS
from ..types import TensorType, Token, TokenOf, _Tensors
from . import kinds

_UNIONS = tuple({types.UnionType, type(typing.Union[int, str])})
_SPECIAL = "sheaf"
_NAMED = {called: name for name, element in ELEMENTS.items() for called in element.names}


class Unknown(Exception):
    """An annotation that is no type of Sheaf; `help` says what to write."""

    def __init__(self, message, help=""):
        super().__init__(message)
        self.help = help


def is_union(annotation):
    return isinstance(annotation, _UNIONS) or typing.get_origin(annotation) in (
        typing.Union, types.UnionType)


def namespaces(function, extra):
    """(globals, locals) in which a function's annotations are read: its module, the cells of the
    functions around it, type parameters of its class, what the caller of sf.jit sees."""
    cells = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            cells[name] = cell.cell_contents
        except ValueError:  # not set yet
            pass
    local = dict(extra)
    for parameter in getattr(function, "__type_params__", ()):
        local[parameter.__name__] = parameter
    local.update(cells)
    return function.__globals__, local


class _Bearer:
    """What get_type_hints takes annotations from."""


def evaluate(annotation, globalns, localns):
    """An annotation with its strings evaluated. Raises Unknown."""
    if annotation is None:
        return type(None)
    bearer = _Bearer()
    bearer.__annotations__ = {"value": annotation}
    # A local name that a module has too is the local one, as in Python.
    try:
        return typing.get_type_hints(bearer, globalns=globalns, localns=localns)["value"]
    except NameError as error:
        raise Unknown(f"{error} (in an annotation)",
                      "annotations are read in the module, in the functions around it and where "
                      "sf.jit is called") from None
    except Unknown:
        raise
    except Exception as error:
        raise Unknown(f"this annotation cannot be read: {error}") from None


class Reader:
    """Reads annotations in one place: `names` are the ints that dims may name (a module's
    attributes), `data` the registry of data types."""

    def __init__(self, data, globalns, localns, ints):
        self.data, self.globalns, self.localns, self.ints = data, globalns, localns, ints

    def kind(self, annotation):
        return self._kind(evaluate(annotation, self.globalns, self.localns))

    def _extent(self, dim):
        if dim.startswith("*"):
            return dim

        def number(match):
            name = match[0]
            value = self.ints(name)
            return name if value is None else str(value)
        text = re.sub(r"[A-Za-z_]\w*", number, dim)
        if re.fullmatch(r"[0-9+\-*/%()]+", text) and re.search(r"[+\-*/%()]", text):
            try:
                value = eval(text.replace("/", "//"), {"__builtins__": {}})
            except (ZeroDivisionError, SyntaxError, TypeError):
                raise Unknown(f"the extent '{dim}' has no value") from None
            if "/" in text and "//" not in text:
                exact = eval(text, {"__builtins__": {}})
                if exact != value:
                    raise Unknown(f"the extent '{dim}' is {exact}, no whole number")
            return str(value)
        if text == "...":
            return "*leading"
        return text

    def _kind(self, a):
        if isinstance(a, TensorType):
            return kinds.Tensor(a.dtype, tuple(map(self._extent, a.dims)), a.vocabulary)
        if isinstance(a, _Tensors):
            raise Unknown(f"{a!r} says no extents",
                          f'{a!r}["n hidden"]; {a!r}[""] has no axes')
        if a is Token:
            return kinds.Tok()
        if isinstance(a, TokenOf):
            return kinds.Tok(a.vocabulary)
        if a is bool or a is int or a is float:
            return {bool: kinds.BOOL, int: kinds.INT, float: kinds.FLOAT}[a]
        if a is None or a is type(None):
            return kinds.NONE
        if isinstance(a, typing.TypeVar):
            return kinds.Variable(a.__name__)
        if hasattr(a, "dim_str") and hasattr(a, "dtypes"):  # jaxtyping's own
            return self._jaxtyping(a)
        origin, arguments = typing.get_origin(a), typing.get_args(a)
        if origin in (list, collections.abc.Sequence):
            return kinds.List(self._kind(arguments[0]))
        if a is list:
            raise Unknown("'list' says nothing of its elements", "list[int], for example")
        if origin is tuple:
            if len(arguments) == 2 and arguments[1] is Ellipsis:
                raise Unknown("a tuple of any length is a list here", "write list[T]")
            parts = tuple(self._kind(x) for x in arguments)
            if len(parts) == 1:
                raise Unknown("a tuple of one element is not a type of Sheaf", "write the element itself")
            return kinds.Tuple_(parts) if parts else kinds.NONE
        if origin is collections.abc.Callable:
            if not isinstance(arguments[0], (list, tuple)):
                raise Unknown("this Callable says no parameters", "Callable[[int], int]")
            return kinds.Callable_(tuple(self._kind(x) for x in arguments[0]), self._kind(arguments[1]))
        if origin is typing.Annotated:
            return self._kind(arguments[0])
        if origin is typing.Final or origin is typing.ClassVar:
            raise Unknown("this is no type of a value")
        alias = type(origin if origin is not None else a)
        if alias.__name__ == "TypeAliasType":
            return self._alias(a, origin, arguments)
        if is_union(a):
            return self._union(a, arguments, None)
        if isinstance(a, type) or isinstance(origin, type):
            found = self.data.of_class(origin or a, self)
            if found is not None:
                return self._applied(found, arguments)
        raise Unknown(self._no_type(a), self._instead(a))

    def _applied(self, declaration, arguments):
        if declaration.parameters and not arguments:
            if all(isinstance(x, str) for x in declaration.parameters):
                return kinds.Data(declaration, tuple(kinds.Variable(p) for p in declaration.parameters))
        return kinds.Data(declaration, tuple(self._kind(x) for x in arguments))

    def _alias(self, a, origin, arguments):
        alias = origin if origin is not None else a
        value = alias.__value__
        if is_union(value):
            members = typing.get_args(value)
            if arguments:
                value = value[arguments] if getattr(value, "__parameters__", ()) else value
                members = typing.get_args(value)
            return self._union(value, members, alias.__name__)
        return self._kind(value[arguments] if arguments else value)

    def _union(self, a, members, name):
        nothing = [m for m in members if m is type(None)]
        others = [m for m in members if m is not type(None)]
        if len(others) == 1:
            inner = self._kind(others[0])
            self.data.option = self.data.option or bool(nothing)
            return kinds.Option(inner) if nothing else inner
        classes, arguments = [], None
        for member in others:
            cls = typing.get_origin(member) or member
            if not self.data.is_record(cls):
                raise Unknown(f"{_spelled(a)} is not a type of Sheaf: {_spelled(member)} is no dataclass "
                              "or NamedTuple", "a sum type is a union of dataclasses: Leaf | Node")
            classes.append(cls)
            here = typing.get_args(member)
            if here:
                if arguments is not None and arguments != here:
                    raise Unknown(f"the members of {_spelled(a)} have different arguments")
                arguments = here
        declaration = self.data.of_classes(tuple(classes), name, self)
        self.data.option = self.data.option or bool(nothing)
        made = self._applied(declaration, arguments or ())
        return kinds.Option(made) if nothing else made

    def _jaxtyping(self, a):
        found = {_NAMED[d] for d in map(str, a.dtypes) if d in _NAMED}
        if len(found) != 1:
            raise Unknown(f"{_spelled(a)} is not of one element type", 'Float32[Array, "n hidden"]')
        return kinds.Tensor(found.pop(), tuple(map(self._extent, a.dim_str.split())))

    @staticmethod
    def _no_type(a):
        return f"{_spelled(a)} is not a type of Sheaf"

    @staticmethod
    def _instead(a):
        name = getattr(a, "__name__", str(a))
        if a is str:
            return 'a word is a Token: its number in the vocabulary'
        if a in (dict, set, frozenset) or typing.get_origin(a) in (dict, set, frozenset):
            return "use list[tuple[K, V]], or a dataclass"
        if name in ("ndarray", "Tensor", "Array"):
            return 'say the element type and the extents: Float32["n hidden"]'
        if name == "Any" or a is object:
            return "every value has one type"
        return ("types are int, float, bool, Token, Float32[\"n\"], list[T], tuple[A, B], T | None, "
                "dataclasses and unions of them")


def _spelled(a):
    if isinstance(a, type) and not typing.get_args(a):
        return a.__name__
    return re.sub(r"\b(?:typing|builtins|__main__)\.", "", str(a))


def dims_of(kind, found):
    """Names of extents that a kind mentions."""
    if isinstance(kind, kinds.Tensor):
        for dim in kind.dims or ():
            for name in re.findall(r"[A-Za-z_]\w*", dim):
                found.add(name)
    elif isinstance(kind, kinds.List):
        dims_of(kind.element, found)
    elif isinstance(kind, kinds.Option):
        dims_of(kind.inner, found)
    elif isinstance(kind, kinds.Tuple_):
        for part in kind.parts:
            dims_of(part, found)
    elif isinstance(kind, kinds.Data):
        for part in kind.arguments:
            dims_of(part, found)
    elif isinstance(kind, kinds.Callable_):
        for part in kind.parameters:
            dims_of(part, found)
        dims_of(kind.result, found)
    return found
