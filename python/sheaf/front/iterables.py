"""What loops and comprehensions go through."""
import ast
import builtins
import dataclasses

from . import kinds
from .kinds import BOOL, FLOAT, INT
from .text import Code, joined
from .values import NO, ModuleList, Parts, Value, literal


@dataclasses.dataclass
class Many:
    """What a loop goes through: the code of a list, the Kind of its elements."""
    code: object
    element: object
    nonneg: bool = False
    fresh: bool = True


class Iterables:

    def layers_in(self, node):
        """The elements of an expression that goes through layers, as Values; None if it does not."""
        if isinstance(node, ast.Call):
            callee = self.called_builtin(node)
            if callee in ("zip", "enumerate", "reversed", "list", "tuple") and node.args and not any(
                    isinstance(a, ast.Starred) for a in node.args):
                inner = [self.layers_in(a) for a in node.args]
                if callee == "enumerate" and inner[0] is not None:
                    start = 0
                    more = node.args[1:] + [k.value for k in node.keywords]
                    if more:
                        start = self.constant(more[0])
                        if not isinstance(start, int):
                            raise self.error(more[0], "the start must be known when the model is compiled")
                    return [Value(None, module=Parts([literal(start + i), v]), present=v.present)
                            for i, v in enumerate(inner[0])]
                if callee in ("reversed", "list", "tuple") and inner[0] is not None:
                    return inner[0][::-1] if callee == "reversed" else inner[0]
                if callee == "zip" and any(x is not None for x in inner):
                    return self.zipped_layers(node, inner)
                return None
            if callee == "range":
                return None
            return None
        if isinstance(node, (ast.Attribute, ast.Name, ast.Subscript)):
            if isinstance(node, ast.Name) and not (node.id in self.env and self.env[node.id].module):
                return None
            try:
                value = self.peek(node) if not isinstance(node, ast.Subscript) or self.is_member_root(
                    node) else None
            except SyntaxError:
                return None
            if value is None:
                return None
            if isinstance(value.const, list) and not value.const:
                return []
            if isinstance(value.module, ModuleList):
                return [Value(None, module=r) for r in value.module.refs]
            if isinstance(value.module, Parts):
                return list(value.module.values)
        return None

    def numbers_of_layers(self, target, iterated, body):
        """The numbers of `for i in range(3)` where `self.layers[i]` is what they are for; or None."""
        if not isinstance(target, ast.Name) or not isinstance(iterated, ast.Call) or iterated.keywords or (
                self.called_builtin(iterated) != "range"):
            return None
        bounds = []
        for a in iterated.args:
            value = self.constant(a)
            if value is NO and isinstance(a, ast.Call) and self.called_builtin(a) == "len" and len(a.args) == 1:
                inner = self.layers_in(a.args[0])
                value = len(inner) if inner is not None else NO
            bounds.append(value)
        if not 1 <= len(bounds) <= 3 or not all(type(b) is int for b in bounds):
            return None
        for part in body:
            for n in ast.walk(part):
                if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Name) and (
                        n.slice.id == target.id) and self.is_member_root(n.value):
                    if self.layers_in(n.value) is not None:
                        return [literal(i) for i in range(*bounds)]
        return None

    def is_member_root(self, node):
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        return isinstance(node, ast.Name) and (node.id == self.self_name or node.id in self.env
                                               and self.env[node.id].module is not None)

    def zipped_layers(self, node, inner):
        strict = self.is_strict(node)
        count = min(len(x) for x in inner if x is not None)
        columns, lists = [], []
        for argument, elements in zip(node.args, inner):
            if elements is not None:
                if len(elements) != count and strict:
                    raise self.error(argument, f"there are {len(elements)} here and {count} there")
                columns.append(elements[:count])
                continue
            many = self.iterable(argument)
            t = self.temporary("list")
            at = self.place(argument)
            self.lines.append(Code(("let ", t, " = ", many.code), at))
            if strict:
                self.lines.append(Code(("check len(", t, f') == {count}, "there are {count} layers, and a list of '
                                        'another length"'), at))
            else:
                lists.append(t)
            columns.append([Value(Code((t, f"[{i}]")), self.arrived(many.element)) for i in range(count)])
        rows = []
        for i, row in enumerate(zip(*columns)):
            # The end of the shortest is that of the loop.
            conditions = [part.present for part in row if part.present]
            conditions += [Code(("len(", t, f") > {i}")) for t in lists]
            rows.append(Value(None, module=Parts(list(row)),
                              present=joined(conditions, " && ") if conditions else None))
        return rows

    def called_builtin(self, node):
        """The name of the function of Python that a call calls, or None."""
        f = node.func
        if not isinstance(f, ast.Name) or f.id in self.env or f.id in self.assigned:
            return None
        found, value = self.find_global(f.id)
        name = getattr(value, "__name__", None)
        if found and name and getattr(builtins, name, None) is value:
            return name
        return None

    def iterable(self, node, unroll=False):
        """What a loop or a function of lists goes through, as a Many."""
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self.comprehension(node)
        if isinstance(node, ast.Call):
            name = self.called_builtin(node)
            if name in ("range", "zip", "enumerate", "reversed", "map", "filter"):
                if any(isinstance(a, ast.Starred) for a in node.args):
                    raise self.error(node, "'*' in a call is not compiled", "write the arguments out")
                return getattr(self, "many_" + name)(node)
        value = self.peek(node)
        m = value.module
        if isinstance(m, Parts):
            return self.many_of_values([self.no_module(v, node) for v in m.values], node)
        value = self.no_module(value, node)
        kind = value.kind
        if isinstance(kind, kinds.List):
            return Many(value.code, kind.element, fresh=value.fresh)
        if isinstance(kind, kinds.Tensor):
            return Many(Code(("rows(", value.code, ")")), self.row_kind(kind))
        if isinstance(kind, kinds.Tuple_):
            return self.many_of_tuple(value, node)
        if kind is None:
            return Many(value.code, None)
        raise self.error(node, "this is no list: nothing goes through it",
                         "for i in range(n)" if kind == INT else "match takes it apart")

    def many_of_tuple(self, value, node):
        parts = value.kind.parts
        kind = parts[0]
        for p in parts[1:]:
            kind = kinds.join(kind, p)
        if value.is_const:
            values = [self.coerce(literal(c), kind) for c in value.const]
            return Many(Code(("[", joined([v.code for v in values]), "]")), kind,
                        nonneg=all(isinstance(c, int) and c >= 0 for c in value.const))
        locals_ = [self.temporary("p") for _ in parts]
        values = [self.coerce(Value(Code((l,)), p), kind) for l, p in zip(locals_, parts)]
        return Many(Code(("{ let (", joined(locals_), ") = ", value.code, "; [",
                          joined([v.code for v in values]), "] }")), kind)

    def many_of_values(self, values, node):
        if not values:
            return Many(Code(("[]",)), None)
        kind = values[0].kind
        for v in values[1:]:
            kind = kinds.join(kind, v.kind)
        return Many(Code(("[", joined([self.coerce(v, kind).code for v in values]), "]")), kind)

    def many_range(self, node):
        self.no_keywords(node, 1, 3)
        values = []
        for a in node.args:
            v = self.number(self.read_int(self.plain(a)))
            if v.kind not in (INT, None):
                raise self.error(a, "a range is of ints", "int(x)" if v.kind == FLOAT else "")
            values.append(v)
        if len(values) == 1:
            return Many(Code(("range(", values[0].code, ")")), INT, nonneg=True)
        start, stop = values[0], values[1]
        if len(values) == 2 or values[2].is_const and values[2].const == 1:
            return Many(Code(("range(", start.code, ", ", stop.code, ")")), INT, nonneg=start.nonneg)
        step = values[2]
        if not step.is_const:
            raise self.error(node.args[2], "the step of a range must be known when the model is compiled",
                             "write the number out")
        if step.const == 0:
            raise self.error(node.args[2], "the step of a range is not 0")
        s = step.const
        a, n, i = self.temporary("from"), self.temporary("turns"), self.temporary("i")
        b = self.temporary("to")
        span = Code((b, " - ", a)) if s > 0 else Code((a, " - ", b))
        count = Code(("if ", span, f" <= 0 {{ 0 }} else {{ (", span, f" + {abs(s) - 1}) / {abs(s)} }}"))
        sign = f" + {s} * " if s > 0 else f" - {-s} * "
        return Many(Code(("{ let ", a, " = ", start.code, "; let ", b, " = ", stop.code, "; let ", n, ": int = ",
                          count, "; map(|", i, "| ", a, sign, i, ", range(", n, ")) }")), INT,
                    nonneg=start.nonneg and s > 0)

    def is_strict(self, node):
        """Whether a call of zip says that all are of one length."""
        strict = False
        for k in node.keywords:
            if k.arg != "strict":
                raise self.error(k.value, f"'{k.arg}' of 'zip' is not compiled")
            strict = self.constant(k.value)
            if type(strict) is not bool:
                raise self.error(k.value, "whether 'zip' is strict must be known when the model is compiled", "strict=True")
        return strict

    def many_zip(self, node):
        name = "zip" if self.is_strict(node) else "zip_shortest"
        if not node.args:
            return Many(Code(("[]",)), None)
        parts = [self.iterable(a) for a in node.args]
        if len(parts) == 1:
            raise self.error(node, "'zip' of one list makes tuples of one", "go through the list itself")
        return Many(Code((name, "(", joined([p.code for p in parts]), ")")),
                    kinds.Tuple_(tuple(p.element for p in parts)))

    def many_enumerate(self, node):
        start = None
        more = node.args[1:] + [k.value for k in node.keywords if k.arg == "start"]
        if len(more) > 1 or len(node.args) < 1 or any(k.arg != "start" for k in node.keywords):
            raise self.error(node, "'enumerate' takes a list and perhaps a start")
        many = self.iterable(node.args[0])
        if more:
            start = self.number(self.plain(more[0]))
        if start is None or start.is_const and start.const == 0:
            return Many(Code(("enumerate(", many.code, ")")), kinds.Tuple_((INT, many.element)))
        i, x, s = self.temporary("i"), self.temporary("x"), self.temporary("start")
        return Many(Code(("{ let ", s, " = ", start.code, "; map(|(", i, ", ", x, ")| (", i, " + ", s, ", ", x,
                          "), enumerate(", many.code, ")) }")), kinds.Tuple_((INT, many.element)))

    def many_reversed(self, node):
        self.no_keywords(node, 1)
        many = self.iterable(node.args[0])
        return Many(Code(("reverse(", many.code, ")")), many.element, nonneg=many.nonneg)

    def many_map(self, node):
        if node.keywords or len(node.args) < 2:
            raise self.error(node, "'map' takes a function and lists")
        lists = [self.iterable(a) for a in node.args[1:]]
        if len(lists) == 1:
            function, kind = self.function_code(node.args[0], [lists[0].element])
            return Many(Code(("map(", function, ", ", lists[0].code, ")")), kind)
        function, kind = self.function_code(node.args[0], [x.element for x in lists])
        # Of a tuple, as zip gives it.
        inner = function.parts
        if not (len(inner) >= 4 and inner[0] == "|"):
            raise self.error(node, "'map' over several lists takes a lambda")
        return Many(Code(("map(|(", inner[1], ")| ", *inner[3:], ", zip_shortest(", joined([x.code for x in lists]),
                          "))")), kind)

    def many_filter(self, node):
        self.no_keywords(node, 2)
        many = self.iterable(node.args[1])
        if isinstance(node.args[0], ast.Constant) and node.args[0].value is None:
            x = self.temporary("x")
            test = self.truth(Value(Code((x,)), many.element), node)
            return Many(Code(("filter(|", x, "| ", test, ", ", many.code, ")")), many.element)
        function, kind = self.function_code(node.args[0], [many.element])
        if kind not in (None, BOOL):
            raise self.error(node.args[0], "this function gives no bool", "lambda x: x > 0")
        return Many(Code(("filter(", function, ", ", many.code, ")")), many.element)
