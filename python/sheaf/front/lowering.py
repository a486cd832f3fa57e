"""From a model, a Module or a function, to the text of one `.sheaf` file.

`lower(target)` gives a Program: the text, its line map, and what each name in it stands for.
"""
import inspect
import sys

from ..errors import CompileError
from ..module import Module
from ..signatures import words_of
from . import kinds
from .annotations import Reader, Unknown, dims_of, namespaces
from .capture import capture
from .data import Registry
from .declared import Declared, Owner, Parameter, Program
from .functions import FunctionLowering
from .layers import Layers, locals_of, routes
from .names import Scope
from .places import head_of, place_of, refusal
from .text import Local, Text
from .writing import Writing


class Lowering(Layers, Writing):
    """One model on its way."""

    def __init__(self, target, *, source=None, extra=None):
        self.target, self.source = target, source
        self.extra = dict(extra or {})
        self.types = Scope(taken={"Option", "Nothing", "Just"})
        self.data = Registry(self.types, self.extra)
        self.layers = {}
        self.pending = []
        self.used_operators = set()
        self.helpers = {}
        self.watched = {}
        self.option, self.way = False, None
        self.captured = {}
        self.root = Owner(target if isinstance(target, Module) else None, None)
        # Of each parameter and layer the ways to its places.
        self.routes = routes(target) if isinstance(target, Module) else {}
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
            words = words_of(obj, name)
            if words is None:
                return None
            self.watch(obj, name, words)
            return len(words)
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
        program.vocabularies = self.vocabularies()
        program.data = list(self.data.declarations)
        program.watched = list(self.watched.values())
        for owner in [self.root, *self.layers.values()]:
            for d in owner.functions.values():
                program.names[d.name.text] = d.name.python
                for local in d.locals.values():
                    program.names.setdefault(local.text, local.python)
            for local in locals_of(owner):
                program.names[local.text] = local.python
            if owner.name is not None:
                program.names[owner.name.text] = type(owner.object).__name__
        for declaration in self.data.declarations:
            program.names[declaration.name] = declaration.name
            for constructor in declaration.constructors:
                program.names[constructor.name] = constructor.cls.__name__
        return program
