"""From a model, a Module or a function, to the text of one `.sheaf` file.

`lower(target)` gives a Program: the text, its line map, and what each name in it stands for.
"""
import inspect
import sys

from ..errors import CompileError
from ..module import Module, Param
from . import kinds
from .annotations import Reader, Unknown, dims_of, namespaces
from .capture import capture
from .data import Registry
from .functions import FunctionLowering
from .names import FUNCTIONS, RESERVED, Scope, spelled
from .places import head_of, place_of, refusal
from .text import LINE, IN, OUT, Code, Local, Text, joined

_CONSTANTS = (int, float, bool, str, type(None))


class Owner:
    """The model, or one of the layers that are alike: its members and functions.

    `place` says in messages what it is.
    """

    def __init__(self, object, name, above=None):
        self.object, self.name, self.above = object, name, above
        self.members = {}    # attribute -> Local, or a list of Locals
        self.declared = []   # Code of params and lets
        self.functions, self.signatures = {}, {}  # (function, bound, axes), (function, bound) -> Declared
        self.weights = []    # (Locals of its path, suffix) -> Param; see Lowering.weights


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
    and attributes, as (dict or object, name, value).
    """

    def __init__(self):
        self.entries, self.weights, self.signatures, self.results = {}, {}, {}, {}
        self.data, self.names, self.watched, self.owners = [], {}, [], {}
        self.text, self._text = "", None
        self.option = None

    def place(self, line, column, end_line, end_column):
        return self._text.place(line, column, end_line, end_column)

    def line_map(self):
        return self._text.line_map()


class Lowering:
    """One model on its way."""

    def __init__(self, target, *, source=None, extra=None):
        self.target, self.source = target, source
        self.extra = dict(extra or {})
        self.types = Scope(taken={"Option", "Nothing", "Just"})
        self.data = Registry(self.types, self.extra)
        self.owners, self.layers = {}, {}
        self.pending = []
        self.used_operators = set()
        self.helpers = {}
        self.watched = {}
        self.option, self.way = False, None
        self.captured = {}
        self.root = Owner(target if isinstance(target, Module) else None, None)
        # Of each parameter and layer the ways to its places.
        self.routes = _routes(target) if isinstance(target, Module) else {}
        self.tied = {key for key, found in self.routes.items() if len(found) > 1}

    # ---- What is read of the world ----

    def watch(self, holder, name, value):
        self.watched.setdefault((id(holder), name), (holder, name, value))

    def capture(self, function):
        if function not in self.captured:
            try:
                self.captured[function] = capture(function)
            except CompileError:
                # Of files and cells what stands there is taken; the text given is for what has none.
                if self.source is None:
                    raise
                self.captured[function] = capture(function, self.source)
        return self.captured[function]

    # ---- Modules ----

    def describe(self, owner):
        return type(owner.object).__name__ if owner.object is not None else "the model"

    def members(self, owner, prefix=""):
        """Declares the parameters and layers that a Module has, once."""
        for attribute, value in vars(owner.object).items():
            if isinstance(value, Param):
                owner.members[attribute] = self._param(owner, attribute, value, attribute)
            elif isinstance(value, Module):
                owner.members[attribute] = self._let(owner, attribute, value, attribute)
            elif isinstance(value, (list, tuple)) and value and all(isinstance(v, Module) for v in value):
                layers = [self.layer(v) for v in value]
                tied = any(self.is_elsewhere(owner.object, attribute, i, v) for i, v in enumerate(value))
                if not tied and all(layer is layers[0] for layer in layers):
                    local = Local(attribute)
                    owner.members[attribute] = local
                    made = joined([Code((layer.name, "()")) for layer in layers])
                    owner.declared.append(Code(("let ", local, " = [", made, "]")))
                else:
                    owner.members[attribute] = [self._let(owner, f"{attribute}_{i}", v, attribute, i)
                                                for i, v in enumerate(value)]
            elif isinstance(value, (list, tuple)) and value and all(isinstance(v, Param) for v in value):
                owner.members[attribute] = [self._param(owner, f"{attribute}_{i}", v, attribute, i)
                                            for i, v in enumerate(value)]

    def _let(self, owner, name, value, attribute, number=None):
        if self.is_elsewhere(owner.object, attribute, number, value):
            return Tied(value)
        local = Local(name)
        owner.declared.append(Code(("let ", local, " = ", self.layer(value).name, "()")))
        return local

    def is_elsewhere(self, module, attribute, number, what):
        """Whether a parameter or a layer stands at another place first."""
        if id(what) not in self.tied:
            return False
        first = self.routes[id(what)][0]
        return not (first[-1][0] is module and first[-1][1:] == (attribute, number))

    def tied_code(self, what):
        """The expression for a parameter or a layer of several places, from anywhere."""
        code = None
        for module, attribute, number in self.routes[id(what)][0]:
            member = self.owner_of(module).members[attribute]
            local = member[number] if isinstance(member, list) else member
            code = Code((local,)) if code is None else Code((code, ".", local))
            if number is not None and not isinstance(member, list):
                code = Code((code, f"[{number}]"))
        return code

    def _param(self, owner, name, value, attribute, number=None):
        if self.is_elsewhere(owner.object, attribute, number, value):
            return Tied(value)
        local = Local(name)
        shape = f"[{', '.join(map(str, value.shape))}]" if value.shape else ""
        owner.declared.append(Code(("param ", local, f" : f32{shape} = {value.init}")))
        return local

    def layer(self, module):
        """The Owner of the layers that are like `module`: of one class, with equal constants, shapes and
        parts."""
        key = self._likeness(module)
        if key not in self.layers:
            owner = Owner(module, Local(type(module).__name__), self.root)
            self.layers[key] = owner
            self.members(owner)
        return self.layers[key]

    def _likeness(self, module):
        parts = [type(module)]
        for attribute, value in vars(module).items():
            if isinstance(value, Param) and self.is_elsewhere(module, attribute, None, value):
                parts.append((attribute, "tied", id(value)))
            elif isinstance(value, Param):
                parts.append((attribute, "param", value.shape, str(value.init)))
            elif isinstance(value, Module) and self.is_elsewhere(module, attribute, None, value):
                parts.append((attribute, "tied", id(value)))
            elif isinstance(value, Module):
                parts.append((attribute, self._likeness(value)))
            elif isinstance(value, (list, tuple)) and value and isinstance(value[0], (Module, Param)):
                parts.append((attribute, tuple(
                    ("tied", id(v)) if self.is_elsewhere(module, attribute, i, v) else
                    self._likeness(v) if isinstance(v, Module) else
                    getattr(v, "shape", None) for i, v in enumerate(value))))
            elif isinstance(value, _CONSTANTS):
                parts.append((attribute, type(value), value))
            elif isinstance(value, (list, tuple)) and all(isinstance(v, _CONSTANTS) for v in value):
                parts.append((attribute, type(value), tuple(value)))
            else:
                parts.append((attribute, id(value)))
        return tuple(parts)

    def owner_of(self, module):
        return self.root if module is self.target else self.layer(module)

    def ints_of(self, owner):
        """What names in shapes are looked up with."""
        obj = owner.object if owner is not None else None

        def ints(name):
            if obj is None:
                return None
            value = vars(obj).get(name, inspect.getattr_static(type(obj), name, None))
            if isinstance(value, property):
                value = getattr(obj, name)
            if isinstance(value, int) and not isinstance(value, bool):
                self.watch(obj, name, value)
                return value
            return None
        return ints

    # ---- Functions ----

    def signature(self, function, owner, bound=False):
        """The Declared of a function as it is written: of `owner` (an Owner; `bound`: its first parameter
        is the Module) or of none. It is not part of the program yet."""
        where = owner if bound else self.root
        key = (function, bound)
        if key not in where.signatures:
            declared = Declared(key, Local(function.__name__), self.capture(function), where)
            where.signatures[key] = declared
            self._signature(declared, bound)
        return where.signatures[key]

    def function(self, function, owner, bound=False, axes=()):
        """The Declared of a function that is called, which is lowered later. `axes`: how many each `*rows`
        of its types stands for, as (name, number); each of them is a function of its own."""
        written = self.signature(function, owner, bound)
        where = written.owner
        key = (function, bound, axes)
        if key not in where.functions:
            declared = written.with_axes(key, dict(axes))
            where.functions[key] = declared
            self.pending.append(declared)
        return where.functions[key]

    def _signature(self, declared, bound):
        captured = declared.captured
        node, source, function = captured.node, captured.source, captured.function
        arguments = node.args
        name = function.__name__
        for extra, what in ((arguments.vararg, "*"), (arguments.kwarg, "**")):
            if extra is not None:
                raise refusal(place_of(source, extra), f"'{what}{extra.arg}' takes any number of arguments, "
                              "and a compiled function has a fixed number", "name them, or take a list")
        globalns, localns = namespaces(function, self.extra)
        ints = self.ints_of(declared.owner if bound else None)
        declared.reader = reader = Reader(self.data, globalns, localns, ints)
        listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        defaults = dict(zip([a.arg for a in [*arguments.posonlyargs, *arguments.args]][::-1],
                            (function.__defaults__ or ())[::-1]))
        defaults.update(function.__kwdefaults__ or {})
        if bound:
            if not listed:
                raise refusal(head_of(source, node), f"'{name}' has no parameter for the module",
                              f"def {name}(self, ...)")
            listed = listed[1:]
        for a in listed:
            if a.annotation is None or a.arg not in function.__annotations__:
                raise refusal(place_of(source, a), f"the parameter '{a.arg}' of '{name}' has no type",
                              f'{a.arg}: Float32["n"], for example')
            kind = self._annotation(reader, function.__annotations__[a.arg], source, a.annotation)
            if kind is kinds.NONE:
                raise refusal(place_of(source, a.annotation), "None is no type of a parameter",
                              f"{a.arg}: T | None")
            declared.parameters.append(Parameter(a.arg, kind, defaults.get(a.arg, inspect.Parameter.empty),
                                                 a))
            dims_of(kind, declared.dims)
            kinds.variables(kind, declared.type_parameters)
        if node.returns is None or "return" not in function.__annotations__:
            raise refusal(head_of(source, node), f"the result of '{name}' has no type",
                          f'def {name}(...) -> Float32["n"], for example; -> None if it gives nothing')
        declared.result = self._annotation(reader, function.__annotations__["return"], source,
                                           node.returns)
        if isinstance(declared.result, kinds.Callable_):
            raise refusal(place_of(source, node.returns), "functions cannot be returned")
        dims_of(declared.result, declared.dims)
        kinds.variables(declared.result, declared.type_parameters)

    def _annotation(self, reader, annotation, source, node):
        try:
            return reader.kind(annotation)
        except Unknown as error:
            raise refusal(place_of(source, node), str(error), error.help) from None

    # ---- Helpers in .sheaf ----

    HELPERS = {
        "true_div": "fn {name}(a: float, b: float) -> float = {{\n"
                    "  check b != 0.0, \"division by zero\"\n  a / b\n}}",
        # A check before it has ended the instance where there is none.
        "some": "fn {name}<{T}>(x: Option<{T}>) -> {T} = match x {{\n  Just(value) => value\n"
                "  Nothing => {name}(x)\n}}",
        "list_slice": "fn {name}<{T}>(xs: list<{T}>, a: int, b: int) -> list<{T}> = {{\n"
                      "  let n = len(xs)\n"
                      "  let lo = min(max(if a < 0 {{ a + n }} else {{ a }}, 0), n)\n"
                      "  let hi = min(max(if b < 0 {{ b + n }} else {{ b }}, 0), n)\n"
                      "  if hi > lo {{ xs[lo:hi] }} else {{ [] }}\n}}",
    }

    def helper(self, key):
        if key not in self.helpers:
            self.helpers[key] = Local("py_" + (key if isinstance(key, str) else key[-1]))
        return self.helpers[key]

    def use_way(self):
        """The constructors of what a branch comes to: a jump, or what follows."""
        if self.way is None:
            self.way = (self.types.fresh("Done"), self.types.fresh("On"))
            self.way_name = self.types.fresh("Way")
        return self.way

    def use_option(self):
        self.option = True
        return "Option"

    # ---- All of it ----

    def run(self, entries):
        """`entries`: (name, function, bound) of what can be called from outside."""
        limit = sys.getrecursionlimit()
        try:
            # A frame of Python's takes no stack of C, and long expressions are deep trees.
            sys.setrecursionlimit(max(limit, 20000))
            return self._run(entries)
        except RecursionError:
            raise refusal(None, "the program is nested too deeply to be read") from None
        finally:
            sys.setrecursionlimit(limit)

    def _run(self, entries):
        if self.root.object is not None:
            self.members(self.root)
        declared = {}
        for name, function, bound in entries:
            starred = self.signature(function, self.root, bound).starred()
            for star, p in starred.items():
                captured = self.capture(function)
                raise refusal(place_of(captured.source, p.node), f"'*{star}' stands for any number of axes, and "
                              "what is called from outside has a fixed one",
                              f'write them: Float32["n ..."], or call \'{name}\' in another method')
            declared[name] = self.function(function, self.root, bound=bound)
        while self.pending:
            todo = self.pending.pop()
            todo.code = FunctionLowering(self, todo).lower()
        self.option = self.option or self.data.option
        program = Program()
        self._name(declared)
        root = self._text()
        program._text = Text(root)
        program.text = program._text.text
        for name, d in declared.items():
            program.entries[name] = d.name.text
            program.signatures[name] = d.parameters
            program.results[name] = d.result
        program.weights = self._weights()
        program.data = list(self.data.declarations)
        program.watched = list(self.watched.values())
        program.option = self.option
        for owner in [self.root, *self.layers.values()]:
            for d in owner.functions.values():
                program.names[d.name.text] = d.name.python
                for local in d.locals.values():
                    program.names.setdefault(local.text, local.python)
            for local in _locals(owner):
                program.names[local.text] = local.python
            if owner.name is not None:
                program.names[owner.name.text] = type(owner.object).__name__
        for declaration in self.data.declarations:
            program.names[declaration.name] = declaration.name
            for constructor in declaration.constructors:
                program.names[constructor.name] = constructor.cls.__name__
        return program

    def _name(self, entries):
        builtin = FUNCTIONS | self.used_operators | RESERVED
        top = Scope(taken=builtin)
        top.taken |= self.types.taken
        operators = _operators()
        for name, declared in entries.items():
            if declared.name.text is None:
                wanted = "main" if name == self.main else spelled(declared.name.python)
                if wanted == "main":
                    declared.name.text = "main"
                else:
                    declared.name.text = self._function_name(top, wanted, operators)
        for local in _locals(self.root):
            local.text = top.fresh(spelled(local.python))
        for owner in self.layers.values():
            owner.name.text = top.fresh(spelled(owner.name.python, capital=True))
        for local in self.helpers.values():
            local.text = top.fresh(local.python)
        for declared in self.root.functions.values():
            if declared.name.text is None:
                declared.name.text = self._function_name(top, spelled(declared.name.python), operators)
        for owner in self.layers.values():
            inner = Scope(top)
            # A layer's own names may be those of the model: inside they hide them, and nothing of the
            # model is named there but its functions, helpers and types, and parameters of several places.
            hidden = {local.text for local in _locals(self.root)} if not self.tied else set()
            inner.above = Scope(taken=top.taken - hidden)
            for local in _locals(owner):
                local.text = inner.fresh(spelled(local.python))
            for declared in owner.functions.values():
                declared.name.text = self._function_name(inner, spelled(declared.name.python), operators)
            for declared in owner.functions.values():
                self._name_locals(declared, inner)
        for declared in self.root.functions.values():
            self._name_locals(declared, top)

    @staticmethod
    def _function_name(scope, wanted, operators):
        return scope.fresh(wanted + "_" if wanted in operators else wanted)

    @staticmethod
    def _name_locals(declared, scope):
        inner = Scope(scope, taken=set(declared.dims) | set(declared.type_parameters) | {
            "vocab", "leading"})
        for local in declared.locals.values():
            local.text = inner.fresh(spelled(local.python))

    def _text(self):
        lines = []
        for name, size in self.vocabulary_dims().items():
            lines.append(f"dim {name} = {size}")
        if self.option:
            lines.append("data Option<T> = Nothing | Just(value: T)")
        if self.way is not None:
            done, on = self.way
            lines.append(f"data {self.way_name}<A, B> = {done}(value: A) | {on}(value: B)")
        for declaration in self.data.declarations:
            lines.append(declaration.text())
        parts = []
        for line in lines:
            parts += [line, LINE]
        if lines:
            parts.append(LINE)
        for owner in self.layers.values():
            parts += self._owner(owner)
        for code in self.root.declared:
            parts += [code, LINE]
        if self.root.declared:
            parts.append(LINE)
        free = self.types.fresh("T")  # a class may be called T
        for key, local in self.helpers.items():
            text = self.HELPERS[key].format(name=local.text, T=free) if isinstance(key, str) else field_helper(
                local.text, *key)
            for line in text.split("\n"):
                parts += [line, LINE]
            parts.append(LINE)
        for declared in self.root.functions.values():
            parts += [declared.code, LINE, LINE]
        while parts and parts[-1] is LINE:
            parts.pop()
        return Code((*parts, "\n"))

    def vocabulary_dims(self):
        """`dim vocab = n` where the model has an int of that name: tokens are checked against it."""
        found = {}
        obj = self.root.object
        if obj is not None:
            for name, value in vars(obj).items():
                if (name == "vocab" or name.endswith("_vocab")) and isinstance(value, int) and value > 0:
                    found[name] = value
        return found

    def _owner(self, owner):
        parts = ["layer ", owner.name, "() {", IN]
        for code in owner.declared:
            parts += [LINE, code]
        for declared in owner.functions.values():
            parts += [LINE, declared.code]
        return [*parts, OUT, LINE, "}", LINE, LINE]

    def _weights(self):
        """{name of the parameter in the text: Param}, all of the model's."""
        found = {}
        if self.root.object is None:
            return found
        stack = [("", self.root.object, self.root)]
        while stack:
            prefix, module, owner = stack.pop()
            for attribute, value in vars(module).items():
                member = owner.members.get(attribute)
                if member is None or isinstance(member, Tied):
                    continue
                if isinstance(value, Param):
                    found[prefix + member.text] = value
                elif isinstance(value, Module):
                    stack.append((prefix + member.text + ".", value, self.layer(value)))
                elif isinstance(value[0], Param):
                    for local, param in zip(member, value):
                        if not isinstance(local, Tied):
                            found[prefix + local.text] = param
                elif isinstance(member, list):
                    for local, inner in zip(member, value):
                        if not isinstance(local, Tied):
                            stack.append((prefix + local.text + ".", inner, self.layer(inner)))
                else:
                    for i, inner in enumerate(value):
                        stack.append((f"{prefix}{member.text}.{i}.", inner, self.layer(inner)))
        return found


def _locals(owner):
    for member in owner.members.values():
        for one in member if isinstance(member, list) else [member]:
            if not isinstance(one, Tied):
                yield one


def _routes(module):
    """{id of a Param or Module: ways to its places}; a way is (Module, attribute, number in a list or None)
    from the model on, in the order in which attributes were set."""
    found = {}
    stack = [((), module)]
    while stack:
        way, here = stack.pop()
        inner = []
        for attribute, value in vars(here).items():
            many = isinstance(value, (list, tuple))
            for i, one in enumerate(value) if many else [(None, value)]:
                if isinstance(one, (Param, Module)):
                    first = id(one) not in found
                    found.setdefault(id(one), []).append((*way, (here, attribute, i)))
                    if first and isinstance(one, Module) and one is not module:
                        inner.append((found[id(one)][0], one))
        stack.extend(reversed(inner))
    return found


def _operators():
    try:
        from ..ops import OPERATORS
        return set(OPERATORS) | FUNCTIONS
    except ImportError:
        return set(FUNCTIONS)


def field_helper(name, declaration, constructor, field):
    """The function that reads a field where a check before it has ended the instance of all other
    constructors."""
    head = f"<{', '.join(declaration.parameters)}>" if declaration.parameters else ""
    kind = next(k for f, k, _ in constructor.fields if f == field)
    arms = []
    for c in declaration.constructors:
        names = ", ".join("value" if c is constructor and f == field else "_" for f, _, _ in c.fields)
        arms.append(f"  {c.name}{f'({names})' if names else ''} => {'value' if c is constructor else f'{name}(x)'}\n")
    return (f"fn {name}{head}(x: {declaration.name}{head}) -> {kinds.text(kind)} = match x {{\n"
            + "".join(arms) + "}")
