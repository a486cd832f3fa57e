"""What an expression of Python is while it is lowered."""
from . import kinds
from .text import Code

NO = type("NoConstant", (), {"__repr__": lambda self: "NO"})()



class _Empty:
    """What a list is known to be that nothing has been appended to."""

    def __bool__(self):
        return False


EMPTY = _Empty()

# How tightly an expression of .sheaf binds.
BLOCK, OR, AND, COMPARE, ADD, MULTIPLY, UNARY, ATOM = range(8)


class Value:
    """An expression: its code, its Kind or None, how tightly it binds.

    `const` is its value where that is known at compile time; `module` a ModuleRef, ModuleList or other
    thing that is no value of the program; `nonneg` says that an int is at least 0; `fresh` that a list
    is nobody else's. Of an element that a loop over layers goes through `present` is the condition under
    which it is there, or None.
    """

    __slots__ = ("code", "kind", "prec", "const", "module", "nonneg", "fresh", "name", "present")

    def __init__(self, code, kind=None, prec=ATOM, const=NO, module=None, nonneg=False, fresh=False,
                 name=None, present=None):
        self.code, self.kind, self.prec, self.const = code, kind, prec, const
        self.module, self.nonneg, self.fresh, self.name = module, nonneg, fresh, name
        self.present = present

    @property
    def is_const(self):
        return self.const is not NO

    def at(self, prec):
        """Its code where something as tight as `prec` is wanted."""
        return self.code if self.prec >= prec else Code(("(", self.code, ")"))


class ModuleRef:
    """A Module of the model: the object and how code names it (None: the one whose method this is)."""

    __slots__ = ("object", "path")

    def __init__(self, object, path):
        self.object, self.path = object, path


class ModuleList:
    """A list of Modules that an attribute holds."""

    __slots__ = ("objects", "refs", "path")

    def __init__(self, objects, refs, path=None):
        self.objects, self.refs, self.path = objects, refs, path


class FunctionRef:
    """A function of Python, perhaps of a Module (`owner` is a ModuleRef)."""

    __slots__ = ("function", "owner")

    def __init__(self, function, owner=None):
        self.function, self.owner = function, owner


class Object:
    """Another object of Python that a name or an attribute gave: a class, an operator, `math`."""

    __slots__ = ("object", "name")

    def __init__(self, object, name):
        self.object, self.name = object, name


class Parts:
    """A tuple of things of which some are no values: `enumerate(self.layers)` gives (0, layer)."""

    __slots__ = ("values",)

    def __init__(self, values):
        self.values = values


def literal(value):
    """The Value of a constant of Python, or None if `.sheaf` has none like it."""
    if isinstance(value, bool):
        return Value("true" if value else "false", kinds.BOOL, const=value)
    if isinstance(value, int):
        value = int(value)
        if not -2 ** 63 <= value < 2 ** 63:
            return None
        if value == -2 ** 63:
            return Value("(-9223372036854775807 - 1)", kinds.INT, const=value)
        return Value(str(value), kinds.INT, const=value, prec=ATOM if value >= 0 else UNARY,
                     nonneg=value >= 0)
    if isinstance(value, float):
        if value != value:
            return Value("(0.0 / 0.0)", kinds.FLOAT, const=value)
        if value in (float("inf"), float("-inf")):
            return Value(f"({'-' if value < 0 else ''}1.0 / 0.0)", kinds.FLOAT, const=value)
        text = repr(float(value))
        return Value(text, kinds.FLOAT, const=value, prec=ATOM if text[0] != "-" else UNARY)
    if value is None:
        return Value("()", kinds.NONE, const=None)
    if isinstance(value, str):
        return Value("()", None, const=value)
    if isinstance(value, (tuple, list)):
        parts = [literal(x) for x in value]
        if any(p is None for p in parts):
            return None
        inner = []
        for part in parts:
            inner += [", ", part.code] if inner else [part.code]
        if isinstance(value, list):
            kind = None
            for i, part in enumerate(parts):
                kind = part.kind if i == 0 else kinds.join(kind, part.kind)
            if kind == kinds.FLOAT or kinds.join(kind, kinds.FLOAT) == kinds.FLOAT:
                pass
            return Value(Code(("[", *inner, "]")), kinds.List(kind), const=value, fresh=True)
        return Value(Code(("(", *inner, ")")), kinds.Tuple_(tuple(p.kind for p in parts)), const=value)
    return None
