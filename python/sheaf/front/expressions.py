"""Expressions: what Python's operators mean, said in `.sheaf`."""
import ast
import builtins
import inspect
import types

from ..module import Module, Param
from ..ops.registry import EAGER
from . import kinds
from .kinds import BOOL, FLOAT, INT
from .narrowing import REPEATED, all_true, always_true, is_bool, settled
from .subscripts import Subscripts
from .text import Code, joined
from .values import (ADD, AND, ATOM, BLOCK, COMPARE, EMPTY, MULTIPLY, NO, OR, UNARY, FunctionRef, ModuleList,
                     ModuleRef, Object, Parts, Value, literal)

_SYMBOLS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
            ast.MatMult: "@", ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
            ast.LShift: "<<", ast.RShift: ">>"}
_COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_FOLD = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
         "/": lambda a, b: a / b, "//": lambda a, b: a // b, "%": lambda a, b: a % b,
         "**": lambda a, b: a ** b, "&": lambda a, b: a & b, "|": lambda a, b: a | b,
         "^": lambda a, b: a ^ b, "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b}

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


class Expressions(Subscripts):

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
            raise self.error(node, f"name '{name}' is not defined")
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
            raise self.error(node, f"'{m.name}' has no '{node.attr}'") from None
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
        from .lowering import Tied
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

    # ---- Operators ----

    def expr_UnaryOp(self, node, expect):
        if isinstance(node.op, ast.Not):
            known = self.known_condition(node.operand)
            if known is not None:
                return literal(not known)
            return Value(Code(("!(", self.condition(node.operand), ")")), BOOL, UNARY)
        operand = self.plain(node.operand)
        if operand.is_const and isinstance(operand.const, (int, float)):
            const = operand.const
            if not (isinstance(node.op, ast.Invert) and isinstance(const, float)):
                made = literal(-const if isinstance(node.op, ast.USub) else +const if isinstance(
                    node.op, ast.UAdd) else ~const)
                if made is not None:
                    return made
        if isinstance(node.op, ast.Invert):
            if isinstance(operand.kind, kinds.Tensor) and operand.kind.dtype in ("bool", None):
                return Value(Code(("!", operand.at(UNARY))), operand.kind, UNARY)
            raise self.error(node, "'~' is of tensors of bools", "not x")
        operand = self.number(operand)
        if isinstance(operand.kind, (kinds.List, kinds.Tuple_, kinds.Data, kinds.Option)):
            raise self.error(node, "this has no sign")
        if isinstance(node.op, ast.UAdd):
            return operand
        return Value(Code(("-", operand.at(UNARY))), operand.kind, UNARY)

    @staticmethod
    def number(value):
        """A bool or a token as the int that it is in Python."""
        if value.kind == BOOL or isinstance(value.kind, kinds.Tok):
            if value.is_const and isinstance(value.const, bool):
                return literal(int(value.const))
            return Value(Code(("int(", value.code, ")")), INT, nonneg=True)
        return value

    def expr_BinOp(self, node, expect):
        a, b = self.plain(node.left, None), self.plain(node.right, None)
        return self.arithmetic(node, _SYMBOLS[type(node.op)], a, b)

    def arithmetic(self, node, sign, a, b):
        if a.is_const and b.is_const and isinstance(a.const, (int, float)) and isinstance(
                b.const, (int, float)):
            return self.folded(node, sign, a.const, b.const)
        ka, kb = a.kind, b.kind
        if isinstance(ka, kinds.List) or isinstance(kb, kinds.List):
            return self.list_arithmetic(node, sign, a, b)
        for kind in (ka, kb):
            if isinstance(kind, kinds.Option):
                raise self.error(node, "one side may be None", "if x is not None: ... first")
            if isinstance(kind, (kinds.Tuple_, kinds.Data)) or kind is kinds.NONE:
                raise self.error(node, f"'{sign}' is of numbers, tensors and lists")
        tensor = isinstance(ka, kinds.Tensor) or isinstance(kb, kinds.Tensor)
        if tensor:
            return self.tensor_arithmetic(node, sign, a, b)
        if ka is None or kb is None:
            return self.unknown_arithmetic(node, sign, a, b)
        if sign in "&|^" and ka == BOOL and kb == BOOL:
            symbol, prec = {"&": ("&&", AND), "|": ("||", OR), "^": ("!=", COMPARE)}[sign]
            # Both sides are computed, as nothing here has effects.
            return Value(Code((a.at(prec + 1), f" {symbol} ", b.at(prec + 1))), BOOL, prec)
        a, b = self.number(a), self.number(b)
        if sign in ("&", "|", "^", "<<", ">>"):
            raise self.error(node, f"'{sign}' of ints is not compiled", "and, or, not are of bools")
        if sign == "@":
            raise self.error(node, "'@' is of tensors")
        if sign == "/":
            return self.true_division(node, a, b)
        if sign in ("//", "%"):
            return self.floor_division(node, sign, a, b)
        if sign == "**":
            return self.power(node, a, b)
        kind = INT if a.kind == INT and b.kind == INT else FLOAT
        nonneg = kind == INT and a.nonneg and b.nonneg and sign in "+*"
        a, b = self.coerce(a, kind), self.coerce(b, kind)
        prec = MULTIPLY if sign == "*" else ADD
        return Value(Code((a.at(prec), f" {sign} ", b.at(prec + 1))), kind, prec, nonneg=nonneg)

    def folded(self, node, sign, a, b):
        if sign == "@":
            raise self.error(node, "'@' is of tensors")
        try:
            made = _FOLD[sign](a, b)
        except ZeroDivisionError:
            raise self.error(node, "division by zero") from None
        except TypeError as error:
            raise self.error(node, str(error)) from None
        except OverflowError as error:
            raise self.error(node, str(error)) from None
        value = literal(made) if not isinstance(made, complex) else None
        if value is None:
            raise self.error(node, f"{str(made)[:40]} is no number of a model",
                             "ints have 64 bits, and there are no complex numbers")
        return value

    def true_division(self, node, a, b):
        a, b = self.coerce(a, FLOAT), self.coerce(b, FLOAT)
        if b.is_const and b.const != 0:
            return Value(Code((a.at(MULTIPLY), " / ", b.at(MULTIPLY + 1))), FLOAT, MULTIPLY)
        if b.is_const:
            raise self.error(node, "division by zero")
        helper = self.low.helper("true_div")
        return Value(Code((helper, "(", a.code, ", ", b.code, ")")), FLOAT)

    def floor_division(self, node, sign, a, b):
        if a.kind != INT or b.kind != INT:
            raise self.error(node, f"'{sign}' of floats is not compiled",
                             "floor(a / b)" if sign == "//" else "a - b * floor(a / b)")
        function = "floor_div" if sign == "//" else "floor_mod"
        nonneg = a.nonneg and b.nonneg or sign == "%" and b.is_const and b.const > 0
        return Value(Code((function, "(", a.code, ", ", b.code, ")")), INT, nonneg=nonneg)

    def power(self, node, a, b):
        if a.kind == INT and b.kind == INT:
            if b.is_const and 0 <= b.const <= 16:
                if b.const == 0:
                    return literal(1)
                t = self.temporary("x")
                product = [t]
                for _ in range(b.const - 1):
                    product += [" * ", t]
                return Value(Code(("{ let ", t, " = ", a.code, "; ", *product, " }")), INT, BLOCK,
                             nonneg=a.nonneg or b.const % 2 == 0)
            raise self.error(node, "an int to the power of an int is compiled for exponents from 0 to 16 that "
                             "are written out", "float(a) ** b")
        return self.float_power(a, b, "0.0 cannot be raised to a negative power",
                                "a negative number to the power of a fraction is complex")

    def float_power(self, a, b, of_zero, of_negative):
        """With checks for what is no float in Python, of an exponent that is known only where needed."""
        positive = a.is_const and a.const > 0
        known = b.const if b.is_const else None
        a, b = self.coerce(a, FLOAT), self.coerce(b, FLOAT)
        x, y, checks = self.temporary("x"), self.temporary("y"), []
        if not positive and (known is None or known < 0):
            # Of an infinite exponent it is a number.
            checks += ["check !(", x, " == 0.0 && ", y, " < 0.0 && ", y, f' - ', y, f' == 0.0), "{of_zero}"; ']
        if not positive and (known is None or known % 1 != 0):
            checks += ["check !(", x, " < 0.0 && ", x, " - ", x, " == 0.0 && ", y, " > floor(", y,
                       f')), "{of_negative}"; ']
        if not checks:
            return Value(Code(("pow(", a.code, ", ", b.code, ")")), FLOAT)
        return Value(Code(("{ let ", x, " = ", a.code, "; let ", y, " = ", b.code, "; ", *checks, "pow(", x,
                           ", ", y, ") }")), FLOAT, BLOCK)

    def list_arithmetic(self, node, sign, a, b):
        if sign == "+" and all(isinstance(k, kinds.List) or k is None for k in (a.kind, b.kind)):
            return Value(Code(("concat(", a.code, ", ", b.code, ")")), kinds.join(a.kind, b.kind),
                         fresh=True)
        if sign == "*":
            xs, n = (a, b) if isinstance(a.kind, kinds.List) else (b, a)
            if n.kind == INT and isinstance(xs.kind, kinds.List):
                return self.repeated(node, xs, n)
        raise self.error(node, f"'{sign}' of lists is not compiled",
                         "xs + ys joins lists; [x] * n repeats; for elements [x + y for x, y in zip(xs, ys)]")

    def repeated(self, node, xs, n):
        t, i, acc = self.temporary("list"), self.temporary("i"), self.temporary("all")
        repeat = node.left if isinstance(node.left, ast.List) else node.right
        if isinstance(repeat, ast.List) and len(repeat.elts) == 1:
            element = self.plain(repeat.elts[0])
            return Value(Code(("{ let ", t, " = ", element.code, "; map(|_| ", t, ", range(", n.code,
                               ")) }")), xs.kind, BLOCK, fresh=True)
        return Value(Code(("{ let ", t, " = ", xs.code, "; fold(|", acc, ", ", i, "| concat(", acc, ", ", t,
                           "), ", t, "[0:0], range(", n.code, ")) }")), xs.kind, BLOCK, fresh=True)

    def tensor_arithmetic(self, node, sign, a, b):
        from .operators import broadcast, result
        if sign in ("//", "%"):
            raise self.error(node, f"'{sign}' is of ints, not of tensors",
                             "floor(a / b)" if sign == "//" else "a - b * floor(a / b)")
        if sign in ("<<", ">>"):
            raise self.error(node, f"'{sign}' is not compiled")
        if sign == "@":
            kind = result("matmul", [a.kind, b.kind], {})
            return Value(Code((a.at(MULTIPLY), " @ ", b.at(MULTIPLY + 1))), kind, MULTIPLY)
        dtype = next((k.dtype for k in (a.kind, b.kind) if isinstance(k, kinds.Tensor) and k.dtype), None)
        kind = kinds.Tensor(dtype, broadcast(a.kind, b.kind))
        if sign == "**":
            self.low.used_operators.add("pow")
            return Value(Code(("pow(", a.code, ", ", b.code, ")")), kind)
        if sign in "&|^":
            symbol, prec = {"&": ("&&", AND), "|": ("||", OR), "^": ("!=", COMPARE)}[sign]
            return Value(Code((a.at(prec + 1), f" {symbol} ", b.at(prec + 1))),
                         kinds.Tensor("bool", kind.dims), prec)
        prec = ADD if sign in "+-" else MULTIPLY
        return Value(Code((a.at(prec), f" {sign} ", b.at(prec + 1))), kind, prec)

    def unknown_arithmetic(self, node, sign, a, b):
        """Of values of which it is not known whether they are numbers or tensors."""
        if sign in ("+", "-", "*", "@"):
            prec = ADD if sign in "+-" else MULTIPLY
            kind = None
            return Value(Code((a.at(prec), f" {sign} ", b.at(prec + 1))), kind, prec)
        raise self.error(node, f"whether '{sign}' is of ints, floats or tensors is not known here",
                         "annotate an operand: x: float = ...")

    def expr_BoolOp(self, node, expect):
        if self.narrows(node):
            return self.narrowed_value(node, expect)
        if all(map(is_bool, node.values)) and self.narrows(settled(node)):
            return Value(self.condition(node), BOOL, OR)
        values = []
        for v in node.values:
            const = self.constant(v)
            values.append(literal(const) if isinstance(const, bool) else self.plain(v, expect))
        symbol, prec = ("&&", AND) if isinstance(node.op, ast.And) else ("||", OR)
        if all(v.kind == BOOL or v.kind is None for v in values):
            parts = []
            for v in values:
                parts += [f" {symbol} ", v.at(prec + 1)] if parts else [v.at(prec + 1)]
            return Value(Code(tuple(parts)), BOOL, prec)
        if all(v.kind == BOOL or isinstance(v.kind, kinds.Tensor) and v.kind.dtype == "bool" for v in values):
            parts = []
            for v, n in zip(values, node.values):
                parts += [f" {symbol} ", "(", self.truth(v, n), ")"] if parts else ["(", self.truth(v, n), ")"]
            return Value(Code(tuple(parts)), BOOL, prec)
        # In Python the value is that of the operand that decides.
        result = values[-1]
        for v, n in reversed(list(zip(values[:-1], node.values[:-1]))):
            t = self.temporary("left")
            held = Value(Code((t,)), v.kind)
            test = self.truth(held, n)
            kind = kinds.join(v.kind, result.kind)
            if isinstance(v.kind, kinds.Tensor) and not isinstance(result.kind, kinds.Tensor):
                kind = None
            held, result = self.coerce(held, kind), self.coerce(result, kind)
            first, second = (result, held) if isinstance(node.op, ast.And) else (held, result)
            result = Value(Code(("{ let ", t, " = ", v.code, "; if ", test, " { ", first.code, " } else { ",
                                 second.code, " } }")), kind, BLOCK)
        return result

    def expr_IfExp(self, node, expect):
        known = self.known_condition(node.test)
        if known is not None:
            return self.value(node.body if known else node.orelse, expect)
        narrowing = self.narrowing(node.test)
        if narrowing is not None:
            return self.if_none_expression(node, narrowing, expect)
        classes = self.class_test(node.test)
        if classes is not None:
            return self.if_class_expression(node, classes, expect)
        several = self.narrowing_chain(node.test)
        if several is not None and self.made_twice(several, [node.body], [node.orelse]) > REPEATED:
            return self.if_known_expression(node, several, expect)
        if several is not None:
            return self.expr_IfExp(self.nested(node, several, ast.IfExp, node.body, node.orelse), expect)
        test = self.condition(node.test)
        a, b = self.plain(node.body, expect), self.plain(node.orelse, expect)
        kind = kinds.join(a.kind, b.kind)
        a, b = self.coerce(a, kind), self.coerce(b, kind)
        return Value(Code(("if ", test, " { ", a.code, " } else { ", b.code, " }")), kind, BLOCK,
                     nonneg=a.nonneg and b.nonneg)

    # ---- Comparisons ----

    def expr_Compare(self, node, expect):
        known = self.constant(node)
        if known is not NO:
            return literal(known)
        if len(node.ops) == 1:
            return self.compared(node, node.ops[0], self.compared_operand(node.left, node.ops[0]),
                                 node.left, node.comparators[0])
        # a < b < c: b once, c only if a < b.
        left, left_node = self.compared_operand(node.left, node.ops[0]), node.left
        operands = node.comparators
        code_parts, closing = [], ""
        for k, (op, right_node) in enumerate(zip(node.ops, operands)):
            last = k == len(operands) - 1
            if not last and type(op) not in _COMPARISONS:
                raise self.error(node, "'in' and 'is' stand at the end of a chain of comparisons here",
                                 "write two comparisons, with 'and' between them")
            if last or isinstance(right_node, ast.Constant):
                test = self.compared(node, op, left, left_node, right_node)
                right = self.peek(right_node) if not last else None
                code_parts.append(self.truth(test, node))
            else:
                right = self.compared_operand(right_node, op)
                t = self.temporary("middle")
                code_parts += [Code(("{ let ", t, " = ", right.code, "; "))]
                closing += " }"
                right = Value(Code((t,)), right.kind, const=right.const, nonneg=right.nonneg)
                test = self.compared_values(node, op, left, right, left_node, right_node)
                code_parts.append(self.truth(test, node))
            if not last:
                code_parts.append(" && ")
                left, left_node = right, right_node
        return Value(Code((*code_parts, closing)), BOOL, BLOCK if closing else AND)

    def compared_operand(self, node, op):
        value = self.peek(node)
        if isinstance(op, (ast.Is, ast.IsNot)) and value.module is not None:
            return value
        return self.no_module(value, node)

    def compared(self, node, op, left, left_node, right_node):
        if isinstance(op, (ast.In, ast.NotIn)):
            return self.membership(node, op, left, right_node)
        if isinstance(op, (ast.Is, ast.IsNot)) or (
                isinstance(right_node, ast.Constant) and right_node.value is None):
            return self.identity(node, op, left, right_node)
        return self.compared_values(node, op, left, self.compared_operand(right_node, op), left_node,
                                    right_node)

    def identity(self, node, op, left, right_node):
        if not (isinstance(right_node, ast.Constant) and right_node.value is None):
            raise self.error(node, "'is' compares with None only: values have no identity", "==")
        positive = isinstance(op, (ast.Is, ast.Eq))
        if left.module is not None or (left.is_const and left.const is not None):
            return literal(not positive)
        if left.is_const:
            return literal(positive)
        if isinstance(left.kind, kinds.Option):
            self.low.use_option()
            yes, no = ("true", "false") if positive else ("false", "true")
            return Value(Code(("match ", left.code, f" {{ Nothing => {yes}, Just(_) => {no} }}")), BOOL,
                         BLOCK)
        if left.kind is None:
            raise self.error(node, "whether this can be None is not known here",
                             "annotate it: x: T | None = ...")
        return literal(not positive)

    def compared_values(self, node, op, a, b, left_node, right_node):
        symbol = _COMPARISONS[type(op)]
        ka, kb = a.kind, b.kind
        for kind, other in ((ka, b), (kb, a)):
            if isinstance(kind, (kinds.Data, kinds.Option, kinds.List, kinds.Tuple_)):
                return self.compared_structure(node, op, a, b)
        if isinstance(ka, kinds.Tensor) or isinstance(kb, kinds.Tensor):
            from .operators import broadcast
            return Value(Code((a.at(ADD), f" {symbol} ", b.at(ADD))),
                         kinds.Tensor("bool", broadcast(ka, kb)), COMPARE)
        if isinstance(ka, kinds.Tok) and isinstance(kb, kinds.Tok) and symbol in ("==", "!="):
            return Value(Code((a.at(ADD), f" {symbol} ", b.at(ADD))), BOOL, COMPARE)
        if ka == BOOL and kb == BOOL and symbol in ("==", "!="):
            return Value(Code((a.at(ADD), f" {symbol} ", b.at(ADD))), BOOL, COMPARE)
        if ka is None or kb is None:
            if isinstance(ka, kinds.Tok) or isinstance(kb, kinds.Tok):
                raise self.error(node, "whether this is a token or an int is not known here",
                                 "annotate it: x: int = ...")
            known = ka or kb
            return Value(Code((a.at(ADD), f" {symbol} ", b.at(ADD))),
                         BOOL if known is not None else None, COMPARE)
        a, b = self.number(a), self.number(b)
        if a.kind != b.kind:
            a, b = self.coerce(a, FLOAT), self.coerce(b, FLOAT)
        return Value(Code((a.at(ADD), f" {symbol} ", b.at(ADD))), BOOL, COMPARE)

    def compared_structure(self, node, op, a, b):
        """Tuples are equal if their parts are; other structures are compared by match."""
        ka, kb = a.kind, b.kind
        if isinstance(ka, kinds.Tuple_) and isinstance(kb, kinds.Tuple_) and isinstance(
                op, (ast.Eq, ast.NotEq)) and len(ka.parts) == len(kb.parts):
            lefts = [self.temporary("x") for _ in ka.parts]
            rights = [self.temporary("y") for _ in kb.parts]
            tests = []
            for x, y, p, q in zip(lefts, rights, ka.parts, kb.parts):
                part = self.compared_values(node, ast.Eq(), Value(Code((x,)), p), Value(Code((y,)), q),
                                            node, node)
                tests.append(Value(self.truth(part, node), BOOL, OR))
            parts = []
            for t in tests:
                parts += [" && ", t.at(AND + 1)] if parts else [t.at(AND + 1)]
            both = Code(("{ let (", joined(lefts), ") = ", a.code, "; let (", joined(rights), ") = ", b.code,
                         "; ", *parts, " }"))
            if isinstance(op, ast.NotEq):
                return Value(Code(("!(", both, ")")), BOOL, UNARY)
            return Value(both, BOOL, BLOCK)
        what = "lists" if isinstance(ka, kinds.List) or isinstance(kb, kinds.List) else "data"
        raise self.error(node, f"{what} are not compared as a whole",
                         "len(xs) == 0 asks for an empty list; match looks into data; compare the parts")

    def membership(self, node, op, left, right_node):
        positive = isinstance(op, ast.In)
        if isinstance(right_node, (ast.Tuple, ast.List, ast.Set)) and not any(
                isinstance(e, ast.Starred) for e in right_node.elts):
            t = self.temporary("x")
            held = Value(Code((t,)), left.kind)
            parts = []
            for element in right_node.elts:
                test = self.compared_values(node, ast.Eq(), held, self.plain(element), node.left, element)
                test = Value(self.truth(test, node), BOOL, OR)
                parts += [" || ", test.at(AND)] if parts else [test.at(AND)]
            if not parts:
                return literal(not positive)
            code = Code(("{ let ", t, " = ", left.code, "; ", *parts, " }"))
        else:
            many = self.iterable(right_node)
            t, x, found = self.temporary("x"), self.temporary("y"), self.temporary("found")
            test = self.compared_values(node, ast.Eq(), Value(Code((t,)), left.kind),
                                        Value(Code((x,)), many.element), node.left, right_node)
            test = Value(self.truth(test, node), BOOL, OR)
            code = Code(("{ let ", t, " = ", left.code, "; fold(|", found, ", ", x, "| ", found, " || ",
                         test.at(AND + 1), ", false, ", many.code, ") }"))
        if positive:
            return Value(code, BOOL, BLOCK)
        return Value(Code(("!(", code, ")")), BOOL, UNARY)

    # ---- Conditions ----

    def condition(self, node):
        """The host bool that Python takes an expression for."""
        if isinstance(node, ast.BoolOp):
            flat = settled(node)
            node = flat if self.narrows(flat) else node
            symbol, prec = ("&&", AND) if isinstance(node.op, ast.And) else ("||", OR)
            parts = []
            for k, v in enumerate(node.values):
                if k + 1 < len(node.values) and self.narrows(ast.copy_location(
                        ast.BoolOp(node.op, node.values[k:k + 2]), node)):
                    inner = self.narrowed_rest(node, k)
                    parts += [f" {symbol} ", "(", inner, ")"] if parts else ["(", inner, ")"]
                    break
                known = self.known_condition(v)
                code = Code(("true" if known else "false",)) if known is not None else self.condition(v)
                inner = Code(("(", code, ")"))
                parts += [f" {symbol} ", inner] if parts else [inner]
            return Code(tuple(parts), self.place(node))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return Code(("!(", self.condition(node.operand), ")"), self.place(node))
        return self.truth(self.compared_operand(node, None), node)

    def truth(self, value, node):
        """The code of whether Python takes a value for true; it binds as `||` does, or tighter."""
        kind = value.kind
        at = self.place(node)
        if kind == BOOL or kind is None:
            return Code((value.at(OR),), at)
        if kind == INT:
            return Code((value.at(ADD), " != 0"), at)
        if kind == FLOAT:
            return Code((value.at(ADD), " != 0.0"), at)
        if isinstance(kind, kinds.Tok):
            return Code(("int(", value.code, ") != 0"), at)
        if isinstance(kind, kinds.List):
            return Code(("len(", value.code, ") > 0"), at)
        if isinstance(kind, kinds.Tensor):
            read = Code(("read(", value.code, ")"), at)
            scalar = kind.dtype
            if scalar == "bool":
                return read
            if scalar == "token":
                return Code(("int(", read, ") != 0"), at)
            if scalar in ("i32", "i64"):
                return Code((read, " != 0"), at)
            if scalar is None:
                raise self.error(node, "what the elements of this tensor are is not known here",
                                 "compare it: x > 0")
            return Code((read, " != 0.0"), at)
        if all_true(kind):
            return Code(("true",), at)
        if always_true(kind):
            self.low.use_option()
            return Code(("match ", value.code, " { Nothing => false, Just(_) => true }"), at)
        if isinstance(kind, kinds.Option):
            raise self.error(node, "whether this is None, or is 0 or empty, is two questions",
                             "x is not None")
        raise self.error(node, "this is true of every value of its type", "compare it with something")

    def known_condition(self, node):
        """True or False where that is known when the model is compiled; else None."""
        value = self.constant(node)
        if value is NO:
            return None
        return bool(value)

    def constant(self, node):
        """The constant that an expression is, or NO. Nothing is lowered."""
        if isinstance(node, ast.Constant):
            return node.value if node.value is not Ellipsis else NO
        if isinstance(node, ast.Name):
            if node.id == self.self_name:
                return NO
            if node.id in self.env:
                v = self.env[node.id]
                return v.const if v.unbound is None and v.module is None else NO
            if node.id in self.assigned:
                return NO
            found, value = self.find_global(node.id)
            if value is EAGER:
                return False
            return value if found and _is_constant(value) else NO
        if isinstance(node, ast.Attribute):
            path = self.chain(node)
            if path in self.env:
                return self.env[path].const
            value = self.quiet(node)
            return value.const if value is not None and value.module is None else NO
        if isinstance(node, ast.Call):
            return self.known_class(node)
        if isinstance(node, ast.UnaryOp):
            inner = self.constant(node.operand)
            if inner is NO:
                return NO
            if isinstance(node.op, ast.Not):
                return not inner
            if isinstance(inner, (int, float)):
                return -inner if isinstance(node.op, ast.USub) else +inner if isinstance(
                    node.op, ast.UAdd) else NO
            return NO
        if isinstance(node, ast.BinOp):
            a, b = self.constant(node.left), self.constant(node.right)
            if isinstance(a, (int, float)) and isinstance(b, (int, float)):
                try:
                    made = _FOLD[_SYMBOLS[type(node.op)]](a, b)
                except Exception:
                    return NO
                return made if isinstance(made, (int, float)) else NO
            return NO
        if isinstance(node, ast.BoolOp):
            last = NO
            for v in node.values:
                last = self.constant(v)
                if last is NO:
                    return NO
                if bool(last) != isinstance(node.op, ast.And):
                    return last
            return last
        if isinstance(node, ast.Compare):
            left = self.constant_or_module(node.left)
            if left is NO:
                return NO
            for op, right_node in zip(node.ops, node.comparators):
                right = self.constant_or_module(right_node)
                if right is NO:
                    return NO
                try:
                    test = _compare(op, left, right)
                except TypeError:
                    return NO
                if test is NO:
                    return NO
                if not test:
                    return False
                left = right
            return True
        if isinstance(node, ast.Tuple):
            parts = [self.constant(e) for e in node.elts]
            return NO if any(p is NO for p in parts) else tuple(parts)
        return NO

    def constant_or_module(self, node):
        """As constant(); a layer or a parameter is an object, for `is None`."""
        if isinstance(node, ast.Attribute):
            value = self.quiet(node)
            if value is not None and (value.module is not None or value.kind is not None
                                      and not value.is_const and self.is_member(node)):
                return object()
        return self.constant(node)

    def is_member(self, node):
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id == self.self_name

    def quiet(self, node):
        """The Value of an attribute, if it is one that can be looked at; None otherwise."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name):
            return None
        if root.id in self.env:
            if self.env[root.id].module is None:
                return None
        elif root.id != self.self_name and root.id in self.assigned:
            return None
        try:
            return self.peek(node)
        except SyntaxError:
            return None

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


def _is_constant(value):
    return isinstance(value, (bool, int, float, str, type(None)))


def _compare(op, a, b):
    if isinstance(op, ast.Is) or isinstance(op, ast.IsNot):
        if a is None or b is None or isinstance(a, bool) or isinstance(b, bool):
            return (a is b) == isinstance(op, ast.Is)
        return NO
    if isinstance(op, ast.In):
        return a in b if isinstance(b, tuple) else NO
    if isinstance(op, ast.NotIn):
        return a not in b if isinstance(b, tuple) else NO
    functions = {ast.Eq: lambda: a == b, ast.NotEq: lambda: a != b, ast.Lt: lambda: a < b,
                 ast.LtE: lambda: a <= b, ast.Gt: lambda: a > b, ast.GtE: lambda: a >= b}
    if not (_is_constant(a) and _is_constant(b)):
        return NO
    return functions[type(op)]()
