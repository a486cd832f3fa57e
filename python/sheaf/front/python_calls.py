"""Calls of Python's own functions, and of those of math."""
import ast
import math

from . import kinds
from .iterables import Many
from .kinds import BOOL, FLOAT, INT
from .narrowing import with_lets
from .text import Code
from .values import ADD, AND, BLOCK, NO, OR, ModuleList, Parts, Value, literal

# Of math: what the language has for floats of the host, and what Python refuses.
_MATH = {"sqrt": ("!({x} < 0.0)", "math domain error"), "exp": None,
         "log": ("!({x} <= 0.0)", "math domain error"),  # NaN is no error
         "floor": None, "ceil": None, "fabs": None, "trunc": None}


class PythonCalls:

    def builtin_len(self, node, expect):
        self.no_keywords(node, 1)
        value = self.peek(node.args[0])
        m = value.module
        if isinstance(m, ModuleList):
            return literal(len(m.refs))
        if isinstance(m, Parts):
            return literal(len(m.values))
        value = self.no_module(value, node.args[0])
        if isinstance(value.kind, kinds.Tuple_):
            return literal(len(value.kind.parts))
        if isinstance(value.kind, (kinds.Scalar, kinds.Tok, kinds.Data, kinds.Option)):
            raise self.error(node, "this has no length")
        if isinstance(value.kind, kinds.Tensor) and value.kind.dims:
            d = value.kind.dims[0]
            if d is not None and d.isdigit():
                return literal(int(d))
        return Value(Code(("len(", value.code, ")")), INT, nonneg=True)

    def builtin_int(self, node, expect):
        self.no_keywords(node, 1)
        value = self.plain(node.args[0])
        if isinstance(value.kind, kinds.Tensor):
            value = self.read(value, node)
        if value.is_const and isinstance(value.const, (int, float)):
            try:
                return literal(int(value.const))
            except (ValueError, OverflowError) as error:
                raise self.error(node, str(error)) from None
        if value.kind == INT:
            return value
        if value.kind is None or value.kind in (FLOAT, BOOL) or isinstance(value.kind, kinds.Tok):
            if value.kind is None:
                raise self.error(node.args[0], "whether this is a number or a tensor is not known here",
                                 "annotate it: x: float = ...; x.item() reads a tensor")
            if value.kind == FLOAT:
                return self.truncated(value)
            return Value(Code(("int(", value.code, ")")), INT, nonneg=True)
        raise self.error(node, "this is no number")

    def truncated(self, value, function=""):
        """int(x), or of floor or ceil of it, with a check for NaN and what has more than 64 bits."""
        t = self.temporary("x")
        return Value(Code(("{ let ", t, " = ", value.code, "; check ", t, " >= -9223372036854775808.0 && ", t,
                           ' < 9223372036854775808.0, "a float that is no int of 64 bits"; ',
                           f"int({function}(", t, ")) }")), INT, BLOCK, nonneg=value.nonneg)

    def builtin_float(self, node, expect):
        self.no_keywords(node, 1)
        if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
            try:
                return literal(float(node.args[0].value))
            except ValueError as error:
                raise self.error(node, str(error)) from None
        value = self.plain(node.args[0])
        if isinstance(value.kind, kinds.Tensor):
            value = self.read(value, node)
        if value.kind is None:
            raise self.error(node.args[0], "whether this is a number or a tensor is not known here",
                             "annotate it: x: int = ...; x.item() reads a tensor")
        if value.kind not in (INT, FLOAT, BOOL) and not isinstance(value.kind, kinds.Tok):
            raise self.error(node, "this is no number")
        return self.coerce(value, FLOAT)

    def builtin_bool(self, node, expect):
        self.no_keywords(node, 1)
        return Value(self.condition(node.args[0]), BOOL, OR)

    def builtin_abs(self, node, expect):
        self.no_keywords(node, 1)
        value = self.number(self.plain(node.args[0]))
        if value.is_const and isinstance(value.const, (int, float)):
            return literal(abs(value.const))
        self.low.used_operators.add("abs")
        return Value(Code(("abs(", value.code, ")")), value.kind, nonneg=True)

    def builtin_isinstance(self, node, expect):
        classes = self.class_test(node)
        return Value(self.match_class(classes, lambda taken: "true" if taken else "false"), BOOL, BLOCK)

    def builtin_pow(self, node, expect):
        self.no_keywords(node, 2)
        made = ast.copy_location(ast.BinOp(node.args[0], ast.Pow(), node.args[1]), node)
        return self.expr_BinOp(made, expect)

    def builtin_divmod(self, node, expect):
        self.no_keywords(node, 2)
        parts = [ast.copy_location(ast.BinOp(node.args[0], op, node.args[1]), node)
                 for op in (ast.FloorDiv(), ast.Mod())]
        return self.tuple_value([self.expr_BinOp(p, None) for p in parts])

    def builtin_list(self, node, expect):
        self.no_keywords(node, 0, 1)
        if not node.args:
            return Value("[]", kinds.List(expect.element if isinstance(expect, kinds.List) else None),
                         fresh=True)
        many = self.iterable(node.args[0])
        return Value(many.code, kinds.List(many.element), fresh=True)

    def builtin_tuple(self, node, expect):
        self.no_keywords(node, 1)
        value = self.peek(node.args[0])
        if isinstance(value.module, Parts) or isinstance(value.kind, kinds.Tuple_):
            return value
        raise self.error(node, "how many parts this tuple has is not known", "use a list")

    def builtin_range(self, node, expect):
        self.iterable(node)  # which says first what is wrong with its arguments
        raise self.error(node, "a range stands in a loop, or in list(range(n))", "list(range(n))")

    def builtin_map(self, node, expect):
        raise self.error(node, "map stands in a loop, or in list(map(f, xs))", "list(map(f, xs))")

    builtin_filter = builtin_map

    def fold_of(self, node, argument):
        """(many, element Value, its node): what sum, any, all, max, min go through."""
        return self.iterable(argument)

    def builtin_sum(self, node, expect):
        self.no_keywords_but(node, "start", 1, 2)
        many = self.iterable(node.args[0])
        start_node = node.args[1] if len(node.args) > 1 else next(
            (k.value for k in node.keywords if k.arg == "start"), None)
        element = many.element
        a, x = self.temporary("sum"), self.temporary("x")
        if start_node is None:
            return self.sum_from_zero(node, many, a, x)
        start = self.plain(start_node)
        kind = kinds.join(element, start.kind)
        if element == BOOL and start.kind == INT:
            kind = INT
        item = self.coerce(Value(Code((x,)), element), kind)
        start = self.coerce(start, kind)
        return Value(Code(("fold(|", a, ", ", x, "| ", a, " + ", item.at(ADD + 1), ", ", start.code, ", ",
                           many.code, ")")), kind)

    def sum_from_zero(self, node, many, a, x):
        element = many.element
        if element in (INT, FLOAT, BOOL) or isinstance(element, kinds.Tok):
            kind = FLOAT if element == FLOAT else INT
            item = self.coerce(Value(Code((x,)), element), kind)
            start = "0.0" if kind == FLOAT else "0"
            return Value(Code(("fold(|", a, ", ", x, "| ", a, " + ", item.at(ADD + 1), f", {start}, ",
                               many.code, ")")), kind, nonneg=many.nonneg)
        if isinstance(element, kinds.Tensor) and element.dtype not in ("bool", "token"):
            dims = element.dims
            if dims is not None and all(d is not None and (d.isdigit() or d.isidentifier()) for d in dims):
                start = self.coerce(literal(0), kinds.Tensor(element.dtype or "f32", dims))
                return Value(Code(("fold(|", a, ", ", x, "| ", a, " + ", x, ", ", start.code, ", ",
                                   many.code, ")")), element)
            t = self.temporary("all")
            return Value(Code(("{ let ", t, " = ", many.code, "; check len(", t,
                               ') > 0, "the sum of no tensors has no shape"; fold(|', a, ", ", x, "| ", a,
                               " + ", x, ", ", t, "[0], ", t, "[1:]) }")), self.arrived(element), BLOCK)
        raise self.error(node, "what is summed here is not known to be numbers or tensors",
                         "give the start: sum(xs, zeros(n))")

    def no_keywords_but(self, node, allowed, least, most):
        for k in node.keywords:
            if k.arg != allowed:
                raise self.error(k.value, f"'{k.arg}' of '{ast.unparse(node.func)}' is not compiled")
        if not least <= len(node.args) <= most:
            raise self.error(node, f"'{ast.unparse(node.func)}' takes {least} to {most} arguments here")

    def builtin_any(self, node, expect):
        return self.decided(node, " || ", "false")

    def builtin_all(self, node, expect):
        return self.decided(node, " && ", "true")

    def decided(self, node, symbol, start):
        self.no_keywords(node, 1)
        argument = node.args[0]
        f = self.temporary("found")
        if isinstance(argument, (ast.GeneratorExp, ast.ListComp)) and len(argument.generators) == 1:
            g = argument.generators[0]
            many, element_node = self.iterable(g.iter, unroll=True), argument.elt
            if isinstance(many, Many):
                with self.branch():
                    pattern = self.pattern_of_target(g.target, many.element)
                    self.mark_nonneg(g.target, many)
                    tests = [(self.condition(c), self.lets_of(c)) for c in g.ifs]
                    test = Value(self.condition(element_node), BOOL, OR)
                    body = Code((f, symbol, test.at(AND + 1)))
                    if isinstance(element_node, ast.BoolOp):
                        body = Code((f, symbol, "(", test.code, ")"))
                    for c, lets in reversed(tests):
                        body = Code(("if ", c, " { ", with_lets(lets, body), " } else { ", f, " }"))
                return Value(Code(("fold(|", f, ", ", pattern, "| ", body, f", {start}, ", many.code, ")")),
                             BOOL)
        many = self.iterable(argument)
        x = self.temporary("x")
        test = Value(self.truth(Value(Code((x,)), many.element), node), BOOL, OR)
        return Value(Code(("fold(|", f, ", ", x, "| ", f, symbol, test.at(AND + 1), f", {start}, ", many.code,
                           ")")), BOOL)

    def builtin_max(self, node, expect):
        return self.extreme(node, "max", ">")

    def builtin_min(self, node, expect):
        return self.extreme(node, "min", "<")

    def extreme(self, node, name, sign):
        default = next((k.value for k in node.keywords if k.arg == "default"), None)
        for k in node.keywords:
            if k.arg != "default":
                raise self.error(k.value, f"'{k.arg}' of '{name}' is not compiled", "a loop, or fold")
        if len(node.args) == 1:
            return self.extreme_of_list(node, name, sign, default)
        if not node.args or default is not None:
            raise self.error(node, f"'{name}' takes numbers, or a list")
        values = [self.number(self.plain(a)) for a in node.args]
        kind = values[0].kind
        for v in values[1:]:
            kind = kinds.join(kind, v.kind)
        if any(isinstance(v.kind, kinds.Tensor) for v in values):
            if all(isinstance(v.kind, kinds.Tensor) and v.kind.dims == () or v.kind in (INT, FLOAT)
                   for v in values):
                raise self.error(node, f"'{name}' of tensors chooses by their values",
                                 f"{name}imum(a, b) of tensors; {name}(a.item(), b.item()) of numbers")
            raise self.error(node, f"'{name}' is of numbers", f"{name}imum(a, b)")
        if kind not in (INT, FLOAT):
            raise self.error(node, f"'{name}' is of numbers that are known to be such",
                             "annotate them: x: int = ...")
        values = [self.coerce(v, kind) for v in values]
        made = values[0]
        for v in values[1:]:
            nonneg = (made.nonneg or v.nonneg) if name == "max" else (made.nonneg and v.nonneg)
            if kind == INT:
                made = Value(Code((f"{name}(", made.code, ", ", v.code, ")")), INT, nonneg=nonneg)
                continue
            made = self.greater(made, v, sign)
        return made

    def greater(self, a, b, sign):
        """Python's choice: the second if it is greater, so that NaN is treated alike."""
        x, y = self.temporary("a"), self.temporary("b")
        return Value(Code(("{ let ", x, " = ", a.code, "; let ", y, " = ", b.code, "; if ", y, f" {sign} ", x,
                           " { ", y, " } else { ", x, " } }")), a.kind, BLOCK)

    def extreme_of_list(self, node, name, sign, default):
        many = self.iterable(node.args[0])
        element = many.element
        if isinstance(element, kinds.Tensor):
            raise self.error(node, f"'{name}' of tensors chooses by their values",
                             f"x.{name}() of one tensor; a loop with {name}imum(a, x)")
        t, a, x = self.temporary("all"), self.temporary("best"), self.temporary("x")
        kind = element
        if element not in (INT, FLOAT):
            if element == BOOL or isinstance(element, kinds.Tok):
                kind = INT
            else:
                raise self.error(node, f"'{name}' is of numbers that are known to be such",
                                 "a loop, with an if")
        item = self.coerce(Value(Code((x,)), element), kind)
        if kind == INT:
            body = Code((f"{name}(", a, ", ", item.code, ")"))
        else:
            body = Code(("if ", x, f" {sign} ", a, " { ", x, " } else { ", a, " }"))
        first = self.coerce(Value(Code((t, "[0]")), element), kind)
        fold = Code(("fold(|", a, ", ", x, "| ", body, ", ", first.code, ", ", t, "[1:])"))
        if default is not None:
            d = self.coerce(self.plain(default), kind)
            return Value(Code(("{ let ", t, " = ", many.code, "; if len(", t, ") == 0 { ", d.code, " } else { ",
                               fold, " } }")), kind, BLOCK)
        return Value(Code(("{ let ", t, " = ", many.code, "; check len(", t,
                           f') > 0, "{name}() of an empty list"; ', fold, " }")), kind, BLOCK)

    def call_math(self, name, node):
        self.no_keywords(node, 1, 2)
        values = [self.number(self.plain(a)) for a in node.args]
        if any(isinstance(v.kind, kinds.Tensor) for v in values):
            raise self.error(node, f"math.{name} is of numbers, and this is a tensor", f"sheaf.{name}")
        constants = [v.const for v in values]
        if all(c is not NO and isinstance(c, (int, float)) for c in constants):
            try:
                return literal(getattr(math, name)(*constants))
            except (ValueError, TypeError, OverflowError) as error:
                raise self.error(node, str(error)) from None
        if name == "pow" and len(values) == 2:
            return self.float_power(*values, "math domain error", "math domain error")
        if name not in _MATH or len(values) != 1:
            raise self.error(node, f"math.{name} is not compiled",
                             "of numbers there are sqrt, exp, log, pow, floor, ceil; of tensors all operators")
        value = self.coerce(values[0], FLOAT)
        if name in ("floor", "ceil"):
            return self.truncated(value, name)
        if name == "trunc":
            return self.truncated(value)
        if name == "fabs":
            return Value(Code(("abs(", value.code, ")")), FLOAT)
        domain = _MATH[name]
        if domain is None:
            return Value(Code((f"{name}(", value.code, ")")), FLOAT)
        t = self.temporary("x")
        before, after = domain[0].split("{x}")
        return Value(Code(("{ let ", t, " = ", value.code, f"; check {before}", t, after,
                           f', "{domain[1]}"; {name}(', t, ") }")), FLOAT, BLOCK)
