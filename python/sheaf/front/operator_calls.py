"""Calls of operators, as functions and as methods of tensors."""
import ast
import inspect

from ..hints import FUNCTIONS
from ..ops import OPERATORS
from . import flow, kinds
from .assignments import quoted
from .kinds import BOOL, FLOAT, INT
from .operators import is_constant, result, scalar_of
from .text import Code, joined
from .values import NO, Parts, Value, literal

METHODS_OF_TENSORS = {"item": "read", "tolist": "read_all"}


class OperatorCalls:

    def call_operator(self, function, name, node):
        special = getattr(self, "operator_" + name, None)
        if special is not None:
            return special(function, node)
        return self.operator(function, name, node, list(node.args), node.keywords)

    def method_of_value(self, base, node, f):
        """x.sum(0), x.item(), p.method(...)."""
        kind = base.kind
        if isinstance(kind, kinds.Option):
            raise self.error(f, f"this may be None, which has no '{f.attr}'", "if x is not None: ... first")
        if isinstance(kind, kinds.Data):
            return self.method_of_data(base, node, f)
        if isinstance(kind, kinds.List):
            if f.attr == "copy" and not node.args:
                return Value(base.code, kind, base.prec, fresh=True)
            if f.attr in flow.CHANGES:
                raise self.error(node, f"'{f.attr}' changes a list, and stands in a line of its own here",
                                 {"pop": "x = xs[-1], and then xs.pop()"}.get(f.attr, ""))
            help = {"index": "fold over enumerate(xs)", "count": "sum(x == y for x in xs)"}.get(f.attr, "")
            raise self.error(f, f"'{f.attr}' of a list is not compiled", help)
        if isinstance(kind, (kinds.Scalar, kinds.Tok)):
            if f.attr == "item" and not node.args:
                return base
            raise self.error(f, f"'{f.attr}' of a number is not compiled")
        if isinstance(kind, kinds.Tuple_):
            raise self.error(f, f"'{f.attr}' of a tuple is not compiled")
        base = self.no_module(base, f.value)
        if f.attr in METHODS_OF_TENSORS:
            if node.args or node.keywords:
                raise self.error(node, f"'{f.attr}' takes no arguments")
            if f.attr == "item":
                return self.read(base, node)
            return Value(Code(("read_all(", base.code, ")")), result("read_all", [kind], {}), fresh=True)
        function = OPERATORS.get(f.attr)
        if function is not None and function.is_method:
            return self.operator(function, f.attr, node, [base, *node.args], node.keywords, f)
        as_function = f"{f.attr}(x, ...)" if function is not None else ""
        raise self.error(f, f"a tensor has no method '{f.attr}' in compiled code",
                         FUNCTIONS.get(f.attr, as_function))

    def method_of_data(self, base, node, f):
        declaration = base.kind.declaration
        for constructor in declaration.constructors:
            if constructor.position(f.attr) is not None:
                raise self.error(node, f"the field '{f.attr}' is no function")
        raise self.error(f, f"methods of data such as '{f.attr}' are not compiled",
                         "make it a method of the module or a function, with the data as its argument")

    def read(self, value, node):
        kind = value.kind
        if kind is not None and not isinstance(kind, kinds.Tensor):
            if isinstance(kind, (kinds.Scalar, kinds.Tok)):
                return value
            raise self.error(node, "only tensors are read")
        return Value(Code(("read(", value.code, ")")), scalar_of(kind),
                     nonneg=getattr(value, "nonneg", False))

    def operator(self, function, name, node, arguments, keywords, at=None):
        """A call of an operator: its arguments by the signature of the eager one, which is the same."""
        self.low.used_operators.add(name)
        signature = inspect.signature(function)
        placed = {}
        parameters = list(signature.parameters.values())
        positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        variable = next((p for p in parameters if p.kind == p.VAR_POSITIONAL), None)
        for k, a in enumerate(arguments):
            before = len([p for p in parameters if p.kind != p.KEYWORD_ONLY and p is not variable])
            if variable is not None and k >= before:
                placed.setdefault(variable.name, []).append(a)
            elif k < len(positional):
                placed[positional[k].name] = a
            else:
                raise self.error(a if isinstance(a, ast.AST) else node,
                                 f"'{name}' takes {len(positional)} arguments")
        for k in keywords:
            if k.arg not in signature.parameters:
                instead = {"dim": "axis", "keepdim": "keepdims"}.get(k.arg, "")
                raise self.error(k.value, f"'{name}' has no argument '{k.arg}'",
                                 f"{instead}=..." if instead else
                                 "it has " + ", ".join(p.name for p in parameters))
            if k.arg in placed:
                raise self.error(k.value, f"'{k.arg}' is given twice")
            placed[k.arg] = k.value
        shown, operands, constants = [], [], {}
        named = False
        for p in parameters:
            if p.name not in placed:
                if p.default is p.empty and p is not variable:
                    raise self.error(node, f"'{name}' needs its argument '{p.name}'")
                if p is variable and name in ("concat",):
                    raise self.error(node, f"'{name}' needs at least one tensor")
                named = named or p is not variable
                continue
            given = placed[p.name]
            if p is variable:
                for v in self.variable_arguments(name, p, given):
                    shown.append(v.code)
                    operands.append(v.kind)
                    if p.name == "dims":
                        constants["dims"] = constants.get("dims", ()) + (_extent_text(v),)
                continue
            if p.default is not p.empty or p.kind == p.KEYWORD_ONLY or is_constant(name, p.name):
                const = self.constant(given) if isinstance(given, ast.AST) else NO
                if const is None and p.default is None:
                    named = True
                    continue
                if const is not NO and not isinstance(const, (int, float)):
                    raise self.error(given, f"'{p.name}' of '{name}' is a number")
                if const is not NO:
                    constants[p.name] = const
                    value = literal(int(const) if isinstance(const, bool) else const)
                    value.code = Code((value.code,), self.place(given))
                elif is_constant(name, p.name):
                    raise self.error(given, f"'{p.name}' of '{name}' must be known when the model is compiled",
                                     "write the number out, or make it an attribute of the module")
                else:
                    value = self.plain(given)
                prefix = f"{p.name}=" if p.default is not p.empty or p.kind == p.KEYWORD_ONLY else ""
                shown.append(Code((prefix, value.code)))
                if not prefix:
                    operands.append(value.kind)
                continue
            if isinstance(given, Value):
                value = given
            elif name in ("stack",):
                value = self.list_of_tensors(given)
            else:
                value = self.operand(given, name, p.name)
            if value.is_const and isinstance(value.const, (int, float)):
                constants[p.name] = value.const
            if p.name in ("size",):
                constants["dims"] = (_extent_text(value),)
            if name == "stack" and isinstance(given, ast.List) and not any(
                    isinstance(e, ast.Starred) for e in given.elts):
                constants["count"] = str(len(given.elts))
            shown.append(value.code if not named else Code((f"{p.name}=", value.code)))
            operands.append(value.kind)
        made = result(name, operands, constants)
        if name == "full" and "dims" in constants:
            made = kinds.Tensor("f32", constants["dims"])
        return Value(Code((name, "(", joined(shown), ")"), self.place(node)), made,
                     nonneg=name == "argmax", fresh=isinstance(made, kinds.List))

    def operand(self, node, name, parameter):
        value = self.plain(node)
        if isinstance(value.kind, kinds.Option):
            raise self.error(node, "this may be None", "if x is not None: ... first")
        if value.kind == BOOL and name not in ("where", "and", "or", "not", "bool", "f32", "i32", "i64"):
            value = self.number(value)
        return value

    def list_of_tensors(self, node):
        if isinstance(node, (ast.GeneratorExp, ast.ListComp)):
            many = self.iterable(node)
            return Value(many.code, kinds.List(many.element))
        value = self.peek(node)
        if value.module is not None:
            m = value.module
            if isinstance(m, Parts):
                values = [self.no_module(v, node) for v in m.values]
                kind = values[0].kind
                return Value(Code(("[", joined([v.code for v in values]), "]")), kinds.List(kind))
            self.no_module(value, node)
        if isinstance(value.kind, kinds.Tuple_):
            many = self.many_of_tuple(value, node)
            return Value(many.code, kinds.List(many.element))
        return value

    def variable_arguments(self, name, parameter, given):
        values = []
        if parameter.name == "dims" and len(given) == 1 and isinstance(given[0], ast.AST):
            value = self.peek(given[0])
            if isinstance(value.module, Parts):
                given = value.module.values
            elif isinstance(given[0], (ast.Tuple, ast.List)):
                given = given[0].elts
        for a in given:
            value = a if isinstance(a, Value) else (
                self.seen(a) if name == "concat" else self.plain(a))
            if parameter.name == "dims":
                value = self.number(self.read_int(value))
                if value.is_const and isinstance(value.const, int) and value.const < 0:
                    at = a if isinstance(a, ast.AST) else None
                    raise self.error(at, "extents are written, none is -1",
                                     "x.shape has those that are there")
                if value.kind == FLOAT:
                    raise self.error(a, "an extent is an int", "int(x)")
            values.append(value)
        return values

    def operator_read(self, function, node):
        if len(node.args) != 1 or node.keywords:
            raise self.error(node, "'read' takes a tensor")
        return self.read(self.plain(node.args[0]), node)

    def operator_read_all(self, function, node):
        if len(node.args) != 1 or node.keywords:
            raise self.error(node, "'read_all' takes a tensor")
        value = self.plain(node.args[0])
        return Value(Code(("read_all(", value.code, ")")), result("read_all", [value.kind], {}), fresh=True)

    def operator_einsum(self, function, node):
        if not node.args or node.keywords:
            raise self.error(node, "'einsum' takes its text and tensors")
        text = self.constant(node.args[0])
        if not isinstance(text, str):
            raise self.error(node.args[0], "the text of 'einsum' must be known when the model is compiled")
        values = [self.plain(a) for a in node.args[1:]]
        self.low.used_operators.add("einsum")
        letters, dims = {}, None
        inputs, arrow, out = text.replace(" ", "").partition("->")
        for term, v in zip(inputs.split(","), values):
            if isinstance(v.kind, kinds.Tensor) and v.kind.dims is not None:
                letters.update(zip(term, v.kind.dims))
        if arrow and all(c in letters for c in out):
            dims = tuple(letters[c] for c in out)
        return Value(Code(("einsum(", joined([quoted(text), *[v.code for v in values]]), ")")),
                     kinds.Tensor("f32", dims))

    def operator_concat(self, function, node):
        if node.args and not node.keywords:
            values = [self.seen(a) for a in node.args]
            if any(isinstance(v.kind, kinds.List) for v in values):
                kind = values[0].kind
                if len(values) == 1 and isinstance(kind.element, kinds.Tensor):
                    raise self.error(node.args[0], "'concat' takes tensors one by one, and not a list of them",
                                     "concat(a, b); stack(xs) makes one tensor of equal ones")
                for v in values[1:]:
                    kind = kinds.join(kind, v.kind)
                return Value(Code(("concat(", joined([v.code for v in values]), ")")), kind, fresh=True)
        return self.operator(function, "concat", node, list(node.args), node.keywords)

    def no_keywords(self, node, least, most=None):
        name = ast.unparse(node.func)
        if node.keywords:
            k = node.keywords[0]
            raise self.error(k.value, f"'{k.arg}' of '{name}' is not compiled")
        most = least if most is None else most
        if not least <= len(node.args) <= most:
            count = str(least) if least == most else f"{least} to {most}"
            raise self.error(node, f"'{name}' takes {count} argument{'s' if most != 1 else ''} here")


def _extent_text(value):
    if value.is_const and isinstance(value.const, int):
        return str(value.const)
    code = value.code
    while isinstance(code, Code) and len(code.parts) == 1:
        code = code.parts[0]
    return code if isinstance(code, str) and code.isidentifier() else None
