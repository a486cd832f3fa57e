"""What conditions say of variables and of their attributes: `t.left is not None`, `isinstance(t, Leaf)`.

Data never changes, so what is known of the path `t.left` holds until `t` is assigned again. Paths stand
in the environment beside variables, under names with dots.
"""
import ast

from . import flow, kinds
from .assignments import Variable
from .kinds import BOOL
from .text import IN, LINE, OUT, Code, Local, joined
from .values import BLOCK, NO, OR, Value, literal


REPEATED = 12  # nodes that may be made again for each operand of a condition, beside its own


class Scope(dict):
    """What is known of variables by name, and of paths such as `t.left` until their variable is assigned."""

    def __setitem__(self, name, variable):
        super().__setitem__(name, variable)
        for path in [p for p in self if p.startswith(name + ".")]:
            del self[path]


class Truth(ast.expr):
    """Whether Python takes an expression for true, as a value."""
    _fields = ("value",)


class Narrowing:

    def chain(self, node):
        """The name under which it is known what an expression is: a variable, or attributes of one."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.env or node.id == self.self_name:
            return None
        root = self.env[node.id]
        if root.module is not None or root.unbound is not None:
            return None
        return ".".join([node.id, *reversed(parts)])

    def known_path(self, node):
        """The path of what may be narrowed, which is in the environment then; else None."""
        path = self.chain(node)
        if path is None or path in self.env:
            return path
        try:
            value = self.peek(node)
        except SyntaxError:
            return None
        if value.module is not None or not isinstance(value.kind, (kinds.Option, kinds.Data)):
            return None
        self.env[path] = Variable(Code(value.code.parts), value.kind, why="it is part of another value")
        return path

    def part_local(self, path):
        """The local that a part of what `path` is gets in a pattern."""
        local = self.env[path].local
        return local if isinstance(local, Local) else self.temporary(path.rpartition(".")[2])

    def there(self, path, local):
        """Makes the path one that is not None, and is called `local`."""
        v = self.env[path]
        self.env[path] = Variable(local, v.kind.inner, v.declared, why=v.why)

    # ---- Tests ----

    def narrowing(self, test):
        """(path, node, whether the branch is taken for None) of `x is None` and the like, for what may be
        None."""
        negated = False
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            negated, test = not negated, test.operand
        if is_none_test(test):
            path = self.known_path(test.left)
            if self.is_optional(path):
                none = isinstance(test.ops[0], (ast.Is, ast.Eq))
                return path, test, none != negated
        elif isinstance(test, (ast.Name, ast.Attribute)):
            path = self.known_path(test)
            if self.is_optional(path) and always_true(self.env[path].kind):
                return path, test, negated
        return None

    def is_optional(self, path):
        return path is not None and isinstance(self.env[path].kind, kinds.Option)

    def class_test(self, test):
        """(path, constructors, the test, whether the branch is taken for them) of isinstance(x, Leaf), for
        data; or None."""
        negated = False
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            negated, test = not negated, test.operand
        if not isinstance(test, ast.Call) or self.called_builtin(test) != "isinstance":
            return None
        if len(test.args) != 2 or test.keywords:
            raise self.error(test, "'isinstance' takes a variable and a class", "match x: case Leaf(word): ...")
        subject = test.args[0]
        path = self.known_path(subject)
        if path is None:
            if not isinstance(subject, ast.Name):
                self.peek(subject)
            if self.chain(subject) is None and not isinstance(subject, ast.Name):
                raise self.error(test, "'isinstance' takes a variable, or attributes of one, and a class",
                                 "match x: case Leaf(word): ...")
        kind = self.env[path].kind if path is not None else None
        inner = kind.inner if isinstance(kind, kinds.Option) else kind
        if not isinstance(inner, kinds.Data):
            raise self.error(test, f"the type of '{ast.unparse(subject)}' is known, and is no union of classes",
                             "if x is not None, for what may be None")
        asked = test.args[1].elts if isinstance(test.args[1], ast.Tuple) else [test.args[1]]
        found = []
        for node in asked:
            cls = self.class_of(ast.copy_location(ast.MatchClass(node, [], [], []), node))
            constructor = inner.declaration.constructor(cls)
            if constructor is None:
                named = " | ".join(c.cls.__name__ for c in inner.declaration.constructors)
                raise self.error(node, f"'{ast.unparse(node)}' is not one of {named}")
            found.append(constructor)
        return path, found, test, not negated

    def narrows(self, node, last=False):
        """Whether an operand of `x is None or ...`, `x is not None and ...` says something of what follows:
        of operands, or with `last` of what the whole condition leads to."""
        both = isinstance(node.op, ast.And)
        for v in node.values if last else node.values[:-1]:
            if self.class_test(v) is not None:
                return True
            found = self.narrowing(v)
            if found is not None and found[2] != both:
                return True
        return False

    def narrowing_chain(self, test):
        """A condition of `and` and `or` that says something of what it leads to, with each `not` at its
        operands; None for others."""
        if not isinstance(test, (ast.BoolOp, ast.UnaryOp)):
            return None
        test = settled(test)
        return test if isinstance(test, ast.BoolOp) and self.narrows(test, last=True) else None

    @staticmethod
    def nested(node, test, make, body, orelse):
        """`if a and b: x else y` as `if a: (if b: x else y) else y`, so that x knows of a; and likewise of
        `or`."""
        first, *rest = test.values
        second = rest[0] if len(rest) == 1 else ast.copy_location(ast.BoolOp(test.op, rest), rest[0])
        inner = ast.copy_location(make(second, body, orelse), node)
        inner_ = [inner] if make is ast.If else inner
        if isinstance(test.op, ast.And):
            return ast.copy_location(make(first, inner_, orelse), node)
        return ast.copy_location(make(first, body, inner_), node)

    @staticmethod
    def made_twice(test, body, orelse):
        """How much nested() makes more than once."""
        again = orelse if isinstance(test.op, ast.And) else body
        return (len(test.values) - 1) * sum(1 for part in again for n in ast.walk(part)
                                            if isinstance(n, (ast.stmt, ast.expr)))

    def known_class(self, call):
        """Whether isinstance(x, Leaf) holds where the class of x is known, or NO."""
        if self.called_builtin(call) != "isinstance" or len(call.args) != 2:
            return NO
        path = self.chain(call.args[0])
        if path not in self.env or self.env[path].narrowed is None or self.is_optional(path):
            return NO
        _, asked, _, _ = self.class_test(call)
        return self.env[path].narrowed[0] in asked

    # ---- Statements ----

    def if_none(self, s, narrowing, rest, ending, jumps):
        path, node, none_first = narrowing
        some, none = (1, 0) if none_first else (0, 1)
        plan = self.plan(s, [s.body, s.orelse], rest, ending, jumps)
        codes = []
        self.low.use_option()
        subject, inner = self.env[path].local, self.part_local(path)
        for k in range(2):
            with self.branch():
                if k == some:
                    self.there(path, inner)
                codes.append(self.block(plan.arms[k], plan.end))
        code = Code(("match ", Code((subject,), self.place(node)), " {", IN, LINE,
                     "Nothing => ", codes[none], LINE,
                     "Just(", inner, ") => ", codes[some], OUT, LINE, "}"))
        return self.concluded(s, plan, code, rest, ending)

    def if_class(self, s, classes, rest, ending, jumps):
        plan = self.plan(s, [s.body, s.orelse], rest, ending, jumps)
        code = self.match_class(classes, lambda taken: self.block(plan.arms[0 if taken else 1], plan.end),
                                lines=True)
        return self.concluded(s, plan, code, rest, ending)

    def match_class(self, classes, arm, lines=False):
        """The `match` that a test of classes is; `arm` gives the code for what it says, as it is known
        there."""
        path, asked, test, positive = classes
        subject, option = self.env[path].local, self.is_optional(path)
        arms = []
        with self.branch():
            if option:
                inner = self.part_local(path)
                self.there(path, inner)
            variable = self.env[path]
            binding = dict(zip(variable.kind.declaration.parameters, variable.kind.arguments))
            for constructor in variable.kind.declaration.constructors:
                fields = {f: (self.temporary(f), kinds.substitute(k, binding)) for f, k, _ in constructor.fields}
                names = joined([local for local, _ in fields.values()])
                pattern = Code((constructor.name, "(", names, ")")) if fields else constructor.name
                with self.branch():
                    self.env[path].narrowed = (constructor, fields)
                    arms.append((pattern, arm((constructor in asked) == positive)))
            local = variable.local
        made = self.arms_code(local, test, arms, lines)
        if not option:
            return made
        self.low.use_option()
        with self.branch():
            self.env[path] = self.env[path].copy()
            self.env[path].const = None
            none = arm(not positive)
        return self.arms_code(subject, test, [("Nothing", none), (Code(("Just(", inner, ")")), made)], lines)

    def arms_code(self, subject, node, arms, lines):
        parts = []
        for pattern, code in arms:
            parts += [LINE] if lines else [", "] if parts else []
            parts += [pattern, " => ", code]
        subject = Code((subject,), self.place(node))
        if lines:
            return Code(("match ", subject, " {", IN, *parts, OUT, LINE, "}"))
        return Code(("match ", subject, " { ", *parts, " }"))

    def now_known(self, test, holds, at):
        """After `assert x is not None`, or where a condition ends the instance, x is there."""
        test = settled(test if holds else negation(test))
        for t in test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]:
            classes = self.class_test(t)
            if classes is not None:
                self.now_of_class(classes, at)
                continue
            found = self.narrowing(t)
            if found is not None and not found[2]:
                self.now_there(found[0], at)

    def now_there(self, path, at):
        local, some = self.part_local(path), self.low.helper("some")
        self.low.use_option()
        self.lines.append(Code(("let ", local, " = ", some, "(", self.env[path].local, ")"), self.place(at)))
        self.there(path, local)

    def now_of_class(self, classes, at):
        path, asked, _, positive = classes
        if self.is_optional(path):
            if not positive:
                return  # it may be None
            self.now_there(path, at)
        variable = self.env[path]
        left = [c for c in variable.kind.declaration.constructors if (c in asked) == positive]
        if len(left) != 1 or variable.narrowed is not None:
            return
        constructor, declaration = left[0], variable.kind.declaration
        binding = dict(zip(declaration.parameters, variable.kind.arguments))

        def read(field):
            return lambda: Code((self.low.helper((declaration, constructor, field)), "(", variable.local, ")"))
        variable.narrowed = constructor, {f: (read(f), kinds.substitute(k, binding))
                                          for f, k, _ in constructor.fields}

    # ---- Loops ----

    def knowing(self, s):
        """A while whose body knows what its condition says."""
        test = settled(s.test)
        tests = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
        body = s.body
        for test in reversed(tests):
            if self.may_say(test):
                body = [ast.copy_location(ast.If(test, body, []), test)]
        if body is s.body:
            return s
        return ast.copy_location(ast.While(s.test, body, s.orelse), s)

    def may_say(self, test):
        """Whether a condition says in a turn of a loop that something is there, or of which class: what it
        is before the loop does not tell."""
        try:
            if self.class_test(test) is not None:
                return True
        except SyntaxError:
            return True  # it may need what an operand before it says
        found = self.narrowing(test)
        if found is not None:
            return not found[2]
        negated = False
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            negated, test = not negated, test.operand
        asks = is_none_test(test) and isinstance(test.ops[0], (ast.Is, ast.Eq)) == negated
        subject = test.left if asks else test if isinstance(test, ast.Name) and not negated else None
        path = self.chain(subject) if subject is not None else None
        declared = self.env[path].declared if path is not None and path in self.env else None
        return isinstance(declared, kinds.Option) and (asks or always_true(declared))

    def known_after(self, s):
        """What is known where a loop has ended by its condition."""
        if not isinstance(s, ast.While) or flow.is_true(s.test):
            return []
        return [ast.copy_location(flow.Known(s.test, False, s), s)]

    def lets_of(self, test, holds=True):
        """What begins the code for which `test` has been asked, of elements of a list for example; binds
        it."""
        outer, self.lines = self.lines, []
        try:
            self.now_known(test, holds, test)
            return self.lines
        finally:
            self.lines = outer

    # ---- Expressions ----

    def if_class_expression(self, node, classes, expect):
        made = []

        def arm(taken):
            made.append((Code(()), self.plain(node.body if taken else node.orelse, expect)))
            return made[-1][0]
        code = self.match_class(classes, arm)
        kind = made[0][1].kind
        for _, value in made[1:]:
            kind = kinds.join(kind, value.kind)
        for place, value in made:
            place.parts = (self.coerce(value, kind).code,)
        return Value(code, kind, BLOCK)

    def if_known_expression(self, node, test, expect):
        """With what the condition says read again in the branch of which it says something."""
        both, values = isinstance(test.op, ast.And), []
        code = self.condition(test)
        for branch in (node.body, node.orelse):
            with self.branch():
                lets = self.lets_of(test, both) if (branch is node.body) == both else []
                value = self.plain(branch, expect)
                value.code = with_lets(lets, value.code)
                if lets:
                    value.prec = BLOCK
                values.append(value)
        kind = kinds.join(values[0].kind, values[1].kind)
        a, b = (self.coerce(v, kind) for v in values)
        return Value(Code(("if ", code, " { ", a.code, " } else { ", b.code, " }")), kind, BLOCK)

    def if_none_expression(self, node, narrowing, expect):
        path, test, none_first = narrowing
        self.low.use_option()
        subject, inner, values = self.env[path].local, self.part_local(path), {}
        for branch, is_none in ((node.body, none_first), (node.orelse, not none_first)):
            with self.branch():
                if not is_none:
                    self.there(path, inner)
                values[is_none] = self.plain(branch, expect)
        kind = kinds.join(values[True].kind, values[False].kind)
        none, some = self.coerce(values[True], kind), self.coerce(values[False], kind)
        return Value(self.arms_code(subject, test, [("Nothing", none.code),
                                                    (Code(("Just(", inner, ")")), some.code)], False),
                     kind, BLOCK)

    def narrowed_rest(self, node, k):
        """`x is None or rest`, from operand k on: rest knows that x is not None."""
        rest = node.values[k + 1:]
        inner = rest[0] if len(rest) == 1 else ast.copy_location(ast.BoolOp(node.op, rest), rest[0])
        return self.short_circuit(node, node.values[k], ast.copy_location(Truth(inner), inner), None).code

    def short_circuit(self, node, first, rest, expect):
        both = isinstance(node.op, ast.And)
        constant = ast.copy_location(ast.Constant(not both), node)
        made = ast.IfExp(first, rest if both else constant, constant if both else rest)
        return self.expr_IfExp(ast.copy_location(made, node), expect)

    def narrowed_value(self, node, expect):
        """The value of `x is not None and x.a`: a bool, or what the last operand is."""
        last = node.values[-1]
        for v in node.values:
            if not is_bool(v) and isinstance(v, (ast.Name, ast.Attribute)) and self.narrowing(v) is not None:
                raise self.error(v, "the value of this may be None", f"{ast.unparse(v)} is not None, for a bool")
        if is_bool(last) or not all(map(is_bool, node.values[:-1])):
            return Value(self.condition(node), BOOL, OR)
        first = node.values[0] if len(node.values) == 2 else ast.copy_location(
            ast.BoolOp(node.op, node.values[:-1]), node)
        return self.short_circuit(node, first, last, expect)

    def expr_Truth(self, node, expect):
        known = self.known_condition(node.value)
        return literal(known) if known is not None else Value(self.condition(node.value), BOOL, OR)


def is_none_test(test):
    return isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(
        test.ops[0], (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)) and isinstance(
            test.comparators[0], ast.Constant) and test.comparators[0].value is None


def always_true(kind):
    """Whether of T | None all that is there is true: `if t.left` asks for None then, and for nothing else."""
    return isinstance(kind, kinds.Option) and all_true(kind.inner)


def all_true(kind):
    """Whether data of a Kind is true in Python, whatever it holds."""
    return isinstance(kind, kinds.Data) and not any(
        hasattr(c.cls, "__len__") or hasattr(c.cls, "__bool__") for c in kind.declaration.constructors)


def is_bool(node):
    """Whether an expression is written so that it can be a bool only."""
    return isinstance(node, ast.Compare) or isinstance(node, ast.UnaryOp) and isinstance(
        node.op, ast.Not) or isinstance(node, ast.BoolOp) and all(map(is_bool, node.values)) or isinstance(
            node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "bool") \
        or isinstance(node, ast.Constant) and isinstance(node.value, bool)


def negation(test):
    return ast.copy_location(ast.UnaryOp(ast.Not(), test), test)


def settled(test):
    """A condition with each `not` at its operands, and `a and (b and c)` as `a and b and c`."""
    negated, inner = False, test
    while isinstance(inner, ast.UnaryOp) and isinstance(inner.op, ast.Not):
        negated, inner = not negated, inner.operand
    if not isinstance(inner, ast.BoolOp):
        return negation(inner) if negated else inner
    op = (ast.And if isinstance(inner.op, ast.And) != negated else ast.Or)()
    values = []
    for v in inner.values:
        v = settled(negation(v) if negated else v)
        values += v.values if isinstance(v, ast.BoolOp) and type(v.op) is type(op) else [v]
    return ast.copy_location(ast.BoolOp(op, values), inner)


def with_lets(lets, code):
    if not lets:
        return code
    inside = []
    for let in lets:
        inside += [let, "; "]
    return Code(("{ ", *inside, code, " }"))
