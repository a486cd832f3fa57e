"""Conditions: comparisons, `and`, `or`, truth, what is known when the model is compiled."""
import ast

from ..ops.registry import EAGER
from . import kinds
from .arithmetic import FOLD, SYMBOLS
from .kinds import BOOL, FLOAT, INT
from .narrowing import REPEATED, all_true, always_true, is_bool, settled
from .text import Code, joined
from .values import ADD, AND, BLOCK, COMPARE, NO, OR, UNARY, Value, literal

_COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


class Conditions:

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
                    made = FOLD[SYMBOLS[type(node.op)]](a, b)
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
