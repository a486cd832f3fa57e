"""Arithmetic of numbers, lists and tensors."""
import ast

from . import kinds
from .kinds import BOOL, FLOAT, INT
from .text import Code
from .values import ADD, AND, BLOCK, COMPARE, MULTIPLY, OR, UNARY, Value, literal

SYMBOLS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
            ast.MatMult: "@", ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
            ast.LShift: "<<", ast.RShift: ">>"}
FOLD = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
         "/": lambda a, b: a / b, "//": lambda a, b: a // b, "%": lambda a, b: a % b,
         "**": lambda a, b: a ** b, "&": lambda a, b: a & b, "|": lambda a, b: a | b,
         "^": lambda a, b: a ^ b, "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b}


class Arithmetic:

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
        return self.arithmetic(node, SYMBOLS[type(node.op)], a, b)

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
            made = FOLD[sign](a, b)
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
