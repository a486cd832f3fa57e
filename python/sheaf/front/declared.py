"""What a model is made of on its way: owners of members, functions as they are called, the Program."""
from . import kinds
from .annotations import dims_of
from .text import Local


class Owner:
    """The model, or one of the layers that are alike: its members and functions."""

    def __init__(self, object, name, above=None):
        self.object, self.name, self.above = object, name, above
        self.members = {}    # attribute -> Local, or a list of Locals
        self.declared = []   # Code of params and lets
        self.functions, self.signatures = {}, {}  # (function, bound, axes), (function, bound) -> Declared


class Declared:
    """A function of the model as it is called: name, parameters, result, code when lowered."""

    def __init__(self, key, name, captured, owner):
        self.key, self.name, self.captured, self.owner = key, name, captured, owner
        self.parameters, self.result, self.code = [], None, None
        self.type_parameters, self.dims = [], set()
        self.locals = {}     # Local of each Python name
        self.reader = None
        self.axes = {}       # how many axes `*rows` stands for

    def with_axes(self, key, axes):
        """The function as it is called, with names for the axes of each `*rows`."""
        made = Declared(key, Local(self.name.python), self.captured, self.owner)
        made.axes, made.reader, made.type_parameters = axes, self.reader, self.type_parameters
        made.parameters = [Parameter(p.name, with_axes(p.kind, axes), p.default, p.node)
                           for p in self.parameters]
        made.result = with_axes(self.result, axes)
        for kind in [*(p.kind for p in made.parameters), made.result]:
            dims_of(kind, made.dims)
        return made

    def starred(self):
        """Names of the `*rows` in its types."""
        found = {}
        for p in self.parameters:
            for name in stars_of(p.kind):
                found[name] = p
        return found


def stars_of(kind):
    """Names that stand for any number of axes in a tensor's type."""
    if isinstance(kind, kinds.Tensor):
        return [d[1:] for d in kind.dims or () if d and d.startswith("*")]
    if isinstance(kind, kinds.Tuple_):
        return [name for p in kind.parts for name in stars_of(p)]
    if isinstance(kind, kinds.List):
        return stars_of(kind.element)
    if isinstance(kind, kinds.Option):
        return stars_of(kind.inner)
    return []


def with_axes(kind, axes):
    """A type with `*rows` written out."""
    if isinstance(kind, kinds.Tensor) and kind.dims is not None:
        dims = []
        for d in kind.dims:
            if d and d.startswith("*") and d[1:] in axes:
                dims += [f"{d[1:]}{k}" for k in range(axes[d[1:]])]
            else:
                dims.append(d)
        return kinds.Tensor(kind.dtype, tuple(dims), kind.vocabulary)
    if isinstance(kind, kinds.Tuple_):
        return kinds.Tuple_(tuple(with_axes(p, axes) for p in kind.parts))
    if isinstance(kind, kinds.List):
        return kinds.List(with_axes(kind.element, axes))
    if isinstance(kind, kinds.Option):
        return kinds.Option(with_axes(kind.inner, axes))
    return kind


class Tied:
    """A member that is a parameter or a layer which stands elsewhere, too: one is declared, at its first
    place."""

    def __init__(self, what):
        self.what = what


class Parameter:
    def __init__(self, name, kind, default, node):
        self.name, self.kind, self.default, self.node = name, kind, default, node


class Program:
    """What lowering gives.

    `text` the `.sheaf` file; `entries` {method: name in the text}; `weights` {name of the parameter in
    the text: Param}; `signatures` {method: [Parameter]}; `data` the declarations of data types, by
    which values of Python become values of the program; `place(line, column, end_line, end_column)`
    the Place in Python; `names` {name in the text: name in Python}; `watched` what was read of globals
    and attributes, as (dict or object, name, value); `vocabularies` the words of those that the model has.
    """

    def __init__(self):
        self.entries, self.weights, self.signatures, self.results = {}, {}, {}, {}
        self.data, self.names, self.watched = [], {}, []
        self.vocabularies = {}
        self.text, self._text = "", None

    def place(self, line, column, end_line, end_column):
        return self._text.place(line, column, end_line, end_column)

    def line_map(self):
        return self._text.line_map()
