"""Expressions: what Python's operators mean, said in `.sheaf`."""
import ast
import builtins
import inspect
import types

from ..hints import FUNCTIONS
from ..module import Module, Param
from . import kinds
from .arithmetic import Arithmetic
from .conditions import Conditions
from .declared import Tied
from .kinds import BOOL, FLOAT, INT
from .subscripts import Subscripts
from .text import Code, joined
from .values import (ATOM, BLOCK, EMPTY, MULTIPLY, NO, FunctionRef, ModuleList, ModuleRef, Object,
                     Parts, Value, literal)

REFUSED_STATEMENTS = {
    ast.FunctionDef: ("a function inside a function is not compiled", "make it a method, or a function of "
                      "the module"),
    ast.AsyncFunctionDef: ("a function inside a function is not compiled", "make it a method"),
    ast.ClassDef: ("a class inside a function is not compiled", "define it outside"),
    ast.Delete: ("'del' is not compiled: values never change", "leave it out"),
    ast.With: ("'with' is not compiled", "do it around the call of the compiled function"),
    ast.AsyncWith: ("'async with' is not compiled", ""),
    ast.AsyncFor: ("'async for' is not compiled", ""),
    ast.Try: ("'try' is not compiled: an input that fails ends alone, with its error",
              "fast(xs, errors=\"return\") gives the errors beside the results"),
    ast.Import: ("'import' inside of a method is not compiled", "import at the top of the file"),
    ast.ImportFrom: ("'import' inside of a method is not compiled", "import at the top of the file"),
    ast.Global: ("'global' is not compiled: a model changes nothing outside of it",
                 "give the value back as a result"),
    ast.Nonlocal: ("'nonlocal' is not compiled: a model changes nothing outside of it",
                   "give the value back as a result"),
}
if hasattr(ast, "TryStar"):
    REFUSED_STATEMENTS[ast.TryStar] = REFUSED_STATEMENTS[ast.Try]
if hasattr(ast, "TypeAlias"):
    REFUSED_STATEMENTS[ast.TypeAlias] = ("a type is defined outside of functions", "")

REFUSED_EXPRESSIONS = {
    ast.Dict: ("a dict is no value of a model", "use a list of tuples, a dataclass, or an if"),
    ast.Set: ("a set is no value of a model", "use a list; x in (a, b) is compiled"),
    ast.DictComp: ("a dict is no value of a model", "use a list of tuples"),
    ast.SetComp: ("a set is no value of a model", "use a list"),
    ast.Await: ("'await' is not compiled", "await the call of the compiled function"),
    ast.Yield: ("'yield' is not compiled", "append to a list, and return it"),
    ast.YieldFrom: ("'yield' is not compiled", "append to a list, and return it"),
    ast.JoinedStr: ("words are no values of a model", "the words of an assert are written out, as a string"),
    ast.NamedExpr: ("':=' is not compiled", "assign it in a line of its own before"),
    ast.Starred: ("'*' stands only in lists here: [*xs, x]", "write the elements out"),
    ast.Lambda: ("a lambda is not a value of a model", "it may be an argument: map(lambda x: ..., xs)"),
}


class Expressions(Subscripts, Arithmetic, Conditions):

    # ---- What is not compiled ----

    def check_statements(self, body):
        for s in body:
            if type(s) in REFUSED_STATEMENTS:
                raise self.refuse_statement(s)
            for field in ("body", "orelse"):
                self.check_statements(getattr(s, field, ()) if isinstance(s, ast.stmt) else ())
            if isinstance(s, ast.Match):
                for case in s.cases:
                    self.check_statements(case.body)

    def refuse_statement(self, s):
        message, help = REFUSED_STATEMENTS.get(type(s), (
            f"'{type(s).__name__.lower()}' is not compiled", "do it around the call of the model"))
        return self.error_head(s, message, help)

    def refuse_expression(self, node):
        message, help = REFUSED_EXPRESSIONS.get(type(node), (
            f"'{type(node).__name__}' is not compiled", ""))
        return self.error(node, message, help)

    def refuse_target(self, target):
        if isinstance(target, ast.Attribute):
            what = ast.unparse(target)
            return self.error(target, f"'{what}' is assigned, and nothing that a model is made of changes",
                              f"{target.attr} = ..., a variable, and return it")
        if isinstance(target, ast.Subscript):
            return self.error(target, "an element is assigned, and values never change",
                              "make another: xs[:i] + [x] + xs[i + 1:]; of tensors concat, where or "
                              "scatter_add")
        return self.error(target, "this cannot be assigned here", "assign to names")

    # ---- Values ----

    def value(self, node, expect=None, assigning=False):
        """The Value of an expression that is used as such: a list that it names is somebody else's, too,
        from here on."""
        value = self.peek(node, expect)
        if isinstance(node, ast.Name) and node.id in self.env and not value.fresh:
            variable = self.env[node.id]
            if variable.owned:
                variable.owned = False
                variable.why = f"it is used in line {node.lineno}"
        return value

    def plain(self, node, expect=None):
        """The Value of an expression that is a value of the program, no layer."""
        value = self.value(node, expect)
        return self.no_module(value, node)

    def seen(self, node):
        """The same, of a list that is looked at and not kept."""
        return self.no_module(self.peek(node), node)

    def no_module(self, value, node):
        m = value.module
        if m is not None:
            if isinstance(m, Parts):
                return self.tuple_value([self.no_module(v, node) for v in m.values])
            if isinstance(m, (ModuleRef, ModuleList)):
                raise self.error(node, "a layer is no value of a model", "call it, or a method of it")
            if isinstance(m, FunctionRef):
                raise self.error(node, "a function is no value of a model", "call it, or pass it to map")
            raise self.error(node, f"'{m.name}' is no value of a model")
        if isinstance(value.const, str):
            raise self.error(node, "words are no values of a model", "use an int, or a Token")
        return value

    def peek(self, node, expect=None):
        method = getattr(self, "expr_" + type(node).__name__, None)
        if method is None:
            raise self.refuse_expression(node)
        value = method(node, expect)
        if value.code is not None and not isinstance(value.code, Code):
            value.code = Code((value.code,), self.place(node))
        elif value.code is not None and value.code.origin is None:
            value.code = Code((value.code,), self.place(node))
        return value

    def expr_Constant(self, node, expect):
        if node.value is Ellipsis:
            raise self.error(node, "'...' is not compiled", "write all positions")
        value = literal(node.value)
        if value is None:
            what = "an int of more than 64 bits" if isinstance(node.value, int) else type(
                node.value).__name__
            raise self.error(node, f"{what} is no value of a model")
        return value

    def expr_Name(self, node, expect):
        name = node.id
        if name == self.self_name:
            return Value(None, module=ModuleRef(self.owner.object, None))
        if name in self.env:
            self.bound_or_error(name, node)
            variable = self.env[name]
            if variable.module is not None:
                return Value(None, module=variable.module)
            return Value(Code((variable.local,), self.place(node)), variable.kind, const=variable.const,
                         nonneg=variable.nonneg, name=name)
        if name in self.assigned:
            raise self.error(node, f"'{name}' has no value here: it is assigned later, or elsewhere",
                             "assign it before")
        return self.global_value(node, name)

    def bound_or_error(self, name, node):
        variable = self.env[name]
        if variable.unbound is not None:
            raise self.error(node, variable.unbound, "assign it before, for all cases")

    def find_global(self, name):
        """(whether there is one, what a name outside of the function is). It is watched."""
        code = self.function.__code__
        if name in code.co_freevars:
            cell = self.function.__closure__[code.co_freevars.index(name)]
            try:
                value = cell.cell_contents
            except ValueError:
                return False, None
            self.low.watch(cell, name, value)
            return True, value
        space = self.function.__globals__
        if name in space:
            self.low.watch(space, name, space[name])
            return True, space[name]
        if hasattr(builtins, name):
            return True, getattr(builtins, name)
        return False, None

    def global_value(self, node, name):
        found, value = self.find_global(name)
        if not found:
            raise self.error(node, f"name '{name}' is not defined", FUNCTIONS.get(name, ""))
        return self.object_value(node, value, name)

    def object_value(self, node, value, name):
        """The Value of something that is there when the model is compiled."""
        if isinstance(value, (bool, int, float)) or value is None or isinstance(value, str):
            if hasattr(value, "__class__") and type(value).__module__ not in ("builtins", "sheaf.types"):
                if type(value).__module__ == "numpy":
                    value = value.item()
            made = literal(value)
            if made is None:
                raise self.error(node, f"'{name}' is an int of more than 64 bits")
            return made
        if isinstance(value, Param):
            raise self.error(node, f"'{name}' is a Param outside of the model",
                             "make it an attribute of the module")
        if isinstance(value, Module):
            raise self.error(node, f"'{name}' is a Module outside of the model",
                             "make it an attribute of the module")
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            made = literal(value)
            if made is not None:
                return made
        return Value(None, module=Object(value, name))

    def expr_Attribute(self, node, expect):
        path = self.chain(node)
        if path is not None and path in self.env:
            known = self.env[path]
            return Value(Code((known.local,), self.place(node)), known.kind, name=path)
        base = self.peek(node.value)
        m = base.module
        if isinstance(m, ModuleRef):
            return self.member(m, node)
        if isinstance(m, ModuleList):
            raise self.error(node, f"a list of layers has no '{node.attr}'")
        if isinstance(m, Object):
            return self.attribute_of_object(m, node)
        if m is not None:
            raise self.error(node, f"this has no '{node.attr}'")
        return self.attribute_of_value(base, node)

    def attribute_of_object(self, m, node):
        holder = m.object
        name = f"{m.name}.{node.attr}"
        if not isinstance(holder, types.ModuleType) and not isinstance(holder, type):
            raise self.error(node, f"'{m.name}' is a {type(holder).__name__}, which is no value of a model",
                             "make it an argument, or a Module, a Param or a number of the module")
        try:
            value = getattr(holder, node.attr)
        except AttributeError:
            raise self.error(node, f"'{m.name}' has no '{node.attr}'", FUNCTIONS.get(node.attr, "")) from None
        self.low.watch(vars(holder) if isinstance(holder, types.ModuleType) else holder, node.attr, value)
        if type(value).__module__ == "enum" or isinstance(value, __import__("enum").Enum):
            raise self.error(node, "an Enum is no value of a model", "use ints, or a union of dataclasses")
        return self.object_value(node, value, name)

    def member(self, ref, node):
        """An attribute of a Module."""
        obj, attribute = ref.object, node.attr
        owner = self.low.owner_of(obj)
        missing = object()
        value = vars(obj).get(attribute, missing)
        if value is missing:
            static = inspect.getattr_static(type(obj), attribute, missing)
            if static is missing:
                raise self.error(node, f"{type(obj).__name__} has no attribute '{attribute}'")
            if isinstance(static, property):
                value = getattr(obj, attribute)
                if not isinstance(value, (bool, int, float, str, type(None))):
                    raise self.error(node, f"the property '{attribute}' is no number",
                                     "make it a method, and call it")
            elif isinstance(static, types.FunctionType):
                self.low.watch(type(obj), attribute, static)
                return Value(None, module=FunctionRef(static, ref))
            elif isinstance(static, staticmethod):
                return Value(None, module=FunctionRef(static.__func__, None))
            elif isinstance(static, classmethod):
                raise self.error(node, "class methods are not compiled", "make it an ordinary method")
            else:
                value = static
        if isinstance(value, Param):
            return Value(self.part(ref, owner.members.get(attribute)), kinds.Tensor("f32", tuple(map(str, value.shape))))
        if isinstance(value, Module):
            return Value(None, module=ModuleRef(value, self.part(ref, owner.members[attribute])))
        if isinstance(value, (list, tuple)) and value and all(isinstance(v, Module) for v in value):
            member = owner.members[attribute]
            if isinstance(member, list):
                refs = [ModuleRef(v, self.part(ref, local)) for v, local in zip(value, member)]
                return Value(None, module=ModuleList(value, refs))
            path = self.path(ref, member)
            refs = [ModuleRef(v, Code((path, f"[{i}]"))) for i, v in enumerate(value)]
            return Value(None, module=ModuleList(value, refs, path))
        if isinstance(value, (list, tuple)) and value and all(isinstance(v, Param) for v in value):
            member = owner.members[attribute]
            parts = [Value(self.part(ref, local), kinds.Tensor("f32", tuple(map(str, v.shape))))
                     for v, local in zip(value, member)]
            return Value(None, module=Parts(parts))
        if isinstance(value, (list, tuple)) and any(isinstance(v, (Module, Param)) for v in value):
            raise self.error(node, f"'{attribute}' is a list of layers and of something else",
                             "make two lists")
        self.low.watch(obj, attribute, tuple(value) if isinstance(value, list) else value)
        if isinstance(value, types.FunctionType) or callable(value) and hasattr(
                value, "__sheaf_operator__"):
            return Value(None, module=Object(value, f"self.{attribute}"))
        made = literal(value)
        if made is None or (isinstance(value, str) and False):
            what = type(value).__name__
            raise self.error(node, f"'{attribute}' is {'an' if what[0] in 'aeiou' else 'a'} {what}, which is "
                             "no part of a model",
                             "parts are Params, Modules, lists of them, and constants: int, float, bool, str")
        return made

    def part(self, ref, member):
        return self.low.tied_code(member.what) if isinstance(member, Tied) else self.path(ref, member)

    @staticmethod
    def path(ref, local):
        return Code((local,)) if ref.path is None else Code((ref.path, ".", local))

    def attribute_of_value(self, base, node):
        attribute, kind = node.attr, base.kind
        if isinstance(kind, kinds.Data):
            return self.field(base, node)
        if isinstance(kind, kinds.Option):
            what = ast.unparse(node.value)
            help = f"if {what} is not None: ... first, or match"
            if self.chain(node.value) is None:
                help = f"x = {what}, and then if x is not None: ...; variables and their attributes are known"
            raise self.error(node, f"this may be None, which has no '{attribute}'", help)
        if isinstance(kind, kinds.Tensor) or kind is None:
            self.no_module(base, node)
            if attribute == "T":
                self.low.used_operators.add("transpose")
                from .operators import result
                return Value(Code(("transpose(", base.code, ")")),
                             result("transpose", [kind], {}) if kind else None)
            if attribute == "shape":
                return Value(None, module=Parts(self.shape_of(base, node)))
            if attribute == "ndim":
                if kind is None or kind.dims is None:
                    raise self.error(node, "how many axes this has is not known here",
                                     "annotate it: x: Float32[\"n m\"] = ...")
                return literal(len(kind.dims))
            if attribute == "size" and kind is not None and kind.dims is not None:
                shape = self.shape_of(base, node)
                code = shape[0].code if shape else Code(("1",))
                for part in shape[1:]:
                    code = Code((code, " * ", part.code))
                return Value(code, INT, MULTIPLY if len(shape) > 1 else ATOM, nonneg=True)
            if kind is None:
                return Value(Code((base.at(ATOM), ".", self.field_name(attribute))), None)
            raise self.error(node, f"a tensor has no '{attribute}' here",
                             "there are T, shape, ndim, size, and the operators as methods")
        raise self.error(node, f"this value has no '{attribute}'")

    @staticmethod
    def field_name(attribute):
        from .names import spelled
        return spelled(attribute)

    def field(self, base, node):
        declaration = base.kind.declaration
        narrowed = self.env[base.name].narrowed if base.name in self.env else None
        if narrowed is not None:
            constructor, fields = narrowed
            if node.attr not in fields:
                raise self.error(node, f"{constructor.cls.__name__} has no field '{node.attr}'")
            local, kind = fields[node.attr]
            return Value(Code((local() if callable(local) else local,)), self.arrived(kind))
        if len(declaration.constructors) != 1:
            named = " | ".join(c.cls.__name__ for c in declaration.constructors)
            raise self.error(node, f"which of {named} this is decides whether it has '{node.attr}'",
                             "match x: case " + declaration.constructors[0].cls.__name__ + "(...): ...")
        constructor = declaration.constructors[0]
        place = constructor.position(node.attr)
        if place is None:
            raise self.error(node, f"{constructor.cls.__name__} has no field '{node.attr}'")
        _, kind, _ = constructor.fields[place]
        binding = dict(zip(declaration.parameters, base.kind.arguments))
        return Value(Code((base.at(ATOM), ".", constructor.names[node.attr])),
                     self.arrived(kinds.substitute(kind, binding)))

    def shape_of(self, base, node):
        """The extents of a tensor as Values."""
        kind = base.kind
        if kind is None or kind.dims is None:
            raise self.error(node, "how many axes this has is not known here",
                             "len(x) is its first extent; or annotate it: x: Float32[\"n m\"] = ...")
        return [self.extent(base, axis) for axis in range(len(kind.dims))]

    def extent(self, base, axis):
        dims = base.kind.dims if isinstance(base.kind, kinds.Tensor) else None
        if dims is not None and axis < len(dims) and dims[axis] and dims[axis].isdigit():
            return literal(int(dims[axis]))
        if dims is not None and axis < len(dims) and dims[axis] and dims[axis].isidentifier():
            return Value(Code((dims[axis],)), INT, nonneg=True)
        if axis == 0:
            return Value(Code(("len(", base.code, ")")), INT, nonneg=True)
        return Value(Code(("shape(", base.code, f", {axis})")), INT, nonneg=True)

    # ---- Structures ----

    def expr_Tuple(self, node, expect):
        if not node.elts:
            return Value("()", kinds.NONE, const=())
        expected = expect.parts if isinstance(expect, kinds.Tuple_) and len(expect.parts) == len(
            node.elts) else (None,) * len(node.elts)
        values = []
        for element, e in zip(node.elts, expected):
            if isinstance(element, ast.Starred):
                raise self.error(element, "a tuple has as many parts as are written", "name them")
            values.append(self.value(element, e))
        if len(values) == 1:
            raise self.error(node, "tuples of one element are not values of Sheaf", "leave out the comma")
        if any(v.module is not None or isinstance(v.const, str) for v in values):
            return Value(None, module=Parts(values))
        return self.tuple_value(values)

    @staticmethod
    def tuple_value(values):
        const = NO
        if all(isinstance(v.const, (bool, int, float, tuple)) for v in values):
            const = tuple(v.const for v in values)
        return Value(Code(("(", joined([v.code for v in values]), ")")),
                     kinds.Tuple_(tuple(v.kind for v in values)), const=const)

    def expr_List(self, node, expect):
        wanted = expect.element if isinstance(expect, kinds.List) else None
        pieces, run, kind = [], [], None
        first = True
        values = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                many = self.iterable(element.value)
                if run:
                    pieces.append(("list", run))
                    run = []
                pieces.append(("many", many.code))
                kind = many.element if first else self.common(kind, Value(None, many.element), element)
                first = False
                continue
            value = self.plain(element, wanted)
            values.append(value)
            kind = value.kind if first else self.common(kind, value, element)
            first = False
            run.append(value)
        if wanted is not None and isinstance(wanted, (kinds.Option,)) or wanted == FLOAT:
            kind = wanted
        if run or not pieces:
            pieces.append(("list", run))
        shown = []
        for what, piece in pieces:
            if what == "many":
                shown.append(piece)
            else:
                shown.append(Code(("[", joined([self.coerce(v, kind).code for v in piece]), "]")))
        element = kind if kind is not None or node.elts else wanted
        made = kinds.List(element)
        if len(shown) == 1:
            return Value(shown[0], made, fresh=True, const=NO if node.elts else EMPTY)
        return Value(Code(("concat(", joined(shown), ")")), made, fresh=True)

    def common(self, kind, value, node):
        """The Kind of elements of one list; an int beside floats is a float."""
        made = kinds.join(kind, value.kind)
        if {kind, value.kind} == {INT, FLOAT}:
            return FLOAT
        return made

    # ---- Conversions ----

    def coerce(self, value, kind, node=None):
        """A value as one of `kind`, where Python makes no difference and `.sheaf` does."""
        here = value.kind
        if kind is None or here == kind or here is None:
            return value
        if isinstance(kind, kinds.Option):
            self.low.use_option()
            if here is kinds.NONE:
                return Value("Nothing", kind)
            if isinstance(here, kinds.Option):
                if here.inner is None or kind.inner is None or here.inner == kind.inner:
                    return value
                return self.mapped_option(value, kind)
            inner = self.coerce(value, kind.inner, node)
            return Value(Code(("Just(", inner.code, ")")), kind)
        if kind == FLOAT and here in (INT, BOOL) or kind == FLOAT and isinstance(here, kinds.Tok):
            if value.is_const and isinstance(value.const, (bool, int)):
                return literal(float(value.const))
            if here != INT:
                value = self.number(value)
            return Value(Code(("float(", value.code, ")")), FLOAT)
        if kind == INT and (here == BOOL or isinstance(here, kinds.Tok)):
            return self.number(value)
        if isinstance(kind, kinds.Tensor) and here in (INT, FLOAT, BOOL):
            return self.as_tensor(value, kind, node)
        if isinstance(kind, kinds.List) and isinstance(here, kinds.List):
            if here.element is None or kind.element is None or not self.differs(here.element, kind.element):
                return value
            t = self.temporary("x")
            inner = self.coerce(Value(Code((t,)), here.element), kind.element)
            return Value(Code(("map(|", t, "| ", inner.code, ", ", value.code, ")")), kind, fresh=True)
        if isinstance(kind, kinds.Tuple_) and isinstance(here, kinds.Tuple_) and len(kind.parts) == len(
                here.parts) and self.differs(here, kind):
            locals_ = [self.temporary("p") for _ in kind.parts]
            parts = [self.coerce(Value(Code((l,)), h), k).code
                     for l, h, k in zip(locals_, here.parts, kind.parts)]
            return Value(Code(("{ let (", joined(locals_), ") = ", value.code, "; (", joined(parts), ") }")),
                         kind, BLOCK)
        return value

    def differs(self, here, kind):
        """Whether coerce() would change a value."""
        if kind is None or here is None or here == kind:
            return False
        if isinstance(kind, kinds.Option):
            return not isinstance(here, kinds.Option) or self.differs(here.inner, kind.inner)
        if kind == FLOAT:
            return here in (INT, BOOL) or isinstance(here, kinds.Tok)
        if kind == INT:
            return here == BOOL or isinstance(here, kinds.Tok)
        if isinstance(kind, kinds.List) and isinstance(here, kinds.List):
            return self.differs(here.element, kind.element)
        if isinstance(kind, kinds.Tuple_) and isinstance(here, kinds.Tuple_) and len(kind.parts) == len(
                here.parts):
            return any(self.differs(h, k) for h, k in zip(here.parts, kind.parts))
        if isinstance(kind, kinds.Tensor):
            return here in (INT, FLOAT, BOOL)
        return False

    def as_tensor(self, value, kind, node):
        """A number of the host where a tensor is wanted: `total = 0` before a loop that adds tensors."""
        if not kind.dtype or kind.dtype == "token":
            return value
        made = Code((f"{kind.dtype}(", value.code, ")"))
        if kind.dims == ():
            return Value(made, kind)
        if kind.dims is None or any(d is None or not (d.isdigit() or d.isidentifier()) for d in kind.dims):
            return value
        return Value(Code(("broadcast_to(", made, f", {', '.join(kind.dims)})")), kind)

    def mapped_option(self, value, kind):
        if not self.differs(value.kind.inner, kind.inner):
            return value
        t = self.temporary("x")
        inner = self.coerce(Value(Code((t,)), value.kind.inner), kind.inner)
        return Value(Code(("match ", value.code, " { Nothing => Nothing, Just(", t, ") => Just(", inner.code,
                           ") }")), kind, BLOCK)
