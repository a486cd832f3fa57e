"""Statements: assignments become `let`s, branches expressions, jumps the place where code continues.

A block is lowered with an Ending, which says what stands for falling off its end, for `return`, `break`
and `continue`. A branch without jumps gives a tuple of what is read later; of one with jumps, what
follows goes into the arms that fall through.
"""
import ast
import contextlib

from . import flow, kinds
from .calls import Calls
from .expressions import Expressions
from .flow import Bind, Known, Mark
from .loops import Loops
from .narrowing import REPEATED, Narrowing, Scope
from .patterns import Matches
from .places import head_of, place_of, refusal
from .text import IN, LINE, OUT, Code, Local, joined
from .values import NO, Value

SMALL = 40          # statements that branches with jumps may make twice, before their ways are joined
DUPLICATES = 2000   # and those where they cannot be


class Variable:
    """A local variable where it is looked at. `unbound` says why it may have no value."""

    __slots__ = ("local", "kind", "declared", "module", "const", "nonneg", "owned", "unbound", "narrowed",
                 "why")

    def __init__(self, local, kind=None, declared=None, module=None, const=NO, nonneg=False, owned=False,
                 unbound=None, why=""):
        self.local, self.kind, self.declared, self.module = local, kind, declared, module
        self.const, self.nonneg, self.owned, self.unbound = const, nonneg, owned, unbound
        self.why, self.narrowed = why, None  # the class that it is known to be of, and its fields

    def copy(self):
        made = Variable(self.local, self.kind, self.declared, self.module, self.const, self.nonneg,
                        self.owned, self.unbound, self.why)
        made.narrowed = self.narrowed
        return made


class Slot(Code):
    """A value that a branch gives: its code is changed when the Kind that all give is known."""

    __slots__ = ("value",)

    def __init__(self, value, origin=None):
        super().__init__((value.code,), origin)
        self.value = value


def _one_by_one(s):
    """Whether a, b = e, f is a = e and then b = f: names, of which what comes later reads none."""
    target, value = s.targets[0], s.value
    if len(s.targets) > 1 or not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(value, ast.Tuple):
        return False
    if len(target.elts) != len(value.elts) or len(value.elts) < 2 or not all(
            isinstance(e, ast.Name) for e in target.elts):
        return False
    names = [e.id for e in target.elts]
    return not any(isinstance(n, ast.Name) and n.id in names[:k] or isinstance(n, ast.Starred)
                   for k, part in enumerate(value.elts) for n in ast.walk(part))


class FunctionEnd:
    """Of a function's body."""

    names = ()

    def __init__(self, lowering):
        self.lowering = lowering

    def fall(self, node):
        fl = self.lowering
        if fl.declared.result is kinds.NONE:
            return Code(("()",))
        if isinstance(fl.declared.result, kinds.Option):
            return fl.coerce(Value("()", kinds.NONE, const=None), fl.declared.result).code
        raise fl.error_head(fl.node, f"'{fl.node.name}' may end without a return, and its result is "
                            "no None", "end every path with a return")

    def give(self, value, node):
        fl = self.lowering
        return Code((fl.coerce(value, fl.declared.result, node).code,), fl.place(node))


class JoinEnd:
    """Of a branch without jumps: it gives `names`."""

    def __init__(self, lowering, names):
        self.lowering, self.names, self.falls = lowering, names, []

    def fall(self, node):
        return self.lowering.yielded(self, node)


class SharedEnd(JoinEnd):
    """Of arms of which some jump and several fall through: `Done` has what a jump gives, `On` the `names`
    that what follows reads."""

    def __init__(self, lowering, names, outer):
        super().__init__(lowering, names)
        self.outer = outer
        self.done, self.on = lowering.low.use_way()

    def fall(self, node):
        return Code((self.on, "(", self.lowering.yielded(self, node), ")"))

    def give(self, value, node):
        return Code((self.done, "(", self.outer.give(value, node), ")"))

    def leave(self, s):
        return Code((self.done, "(", self.outer.leave(s), ")"))


class FunctionLowering(Expressions, Calls, Matches, Loops, Narrowing):
    """One function on its way."""

    def __init__(self, low, declared):
        self.low, self.declared = low, declared
        self.captured = declared.captured
        self.source, self.node = self.captured.source, self.captured.node
        self.function = self.captured.function
        self.owner = declared.owner
        self.bound = declared.key[1]
        self.env, self.temporaries, self.duplicated = Scope(), 0, 0
        arguments = self.node.args
        listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        self.self_name = listed[0].arg if self.bound else None
        self.lines = None
        self.reads_underscore = any(isinstance(n, ast.Name) and n.id == "_" and isinstance(n.ctx, ast.Load)
                                    for n in ast.walk(self.node))

    # ---- Errors and places ----

    def place(self, node):
        if node is None or not hasattr(node, "lineno"):
            return None
        if isinstance(node, (ast.If, ast.For, ast.While, ast.Match, ast.FunctionDef)):
            return head_of(self.source, node)
        return place_of(self.source, node)

    def error(self, node, message, help=""):
        return refusal(self.place(node), message, help)

    def error_head(self, node, message, help=""):
        return refusal(head_of(self.source, node), message, help)

    # ---- Names ----

    def local(self, name):
        if name not in self.declared.locals:
            self.declared.locals[name] = Local(name)
        return self.declared.locals[name]

    def temporary(self, base="t"):
        self.temporaries += 1
        local = Local(base)
        self.declared.locals[f"%{base}{self.temporaries}"] = local
        return local

    # ---- The function ----

    def lower(self):
        d = self.declared
        self.check_statements(self.node.body)
        self.assigned = set(flow.assigned(self.node.body))
        statements = self.pruned(self.node.body)
        assigned = set(flow.assigned(statements))
        if self.self_name in assigned:
            raise self.error(self.node, f"'{self.self_name}' is assigned", "call it something else")
        self.assigned = assigned
        shown = []
        for p in d.parameters:
            local = self.local(p.name)
            self.env[p.name] = Variable(local, self.arrived(p.kind), p.kind if False else None,
                                        why="it is a parameter")
            shown.append(Code((local, ": ", kinds.text(p.kind)), self.place(p.node)))
        head = ["fn ", d.name]
        if d.type_parameters:
            head.append(f"<{', '.join(d.type_parameters)}>")
        head += ["(", joined(shown), ") -> ",
                 Code((kinds.text(d.result),), self.place(self.node.returns)), " = "]
        body = self.block(statements, FunctionEnd(self))
        return Code((Code(tuple(head), head_of(self.source, self.node)), body),
                    head_of(self.source, self.node))

    def pruned(self, statements):
        """Statements without branches that constants of the module or of outside rule out."""
        made = []
        for s in statements:
            if isinstance(s, ast.If):
                known = self.known_condition(s.test)
                if known is not None:
                    made += self.pruned(s.body if known else s.orelse)
                    continue
                s = ast.copy_location(ast.If(s.test, self.pruned(s.body), self.pruned(s.orelse)), s)
            elif isinstance(s, ast.For):
                body = self.pruned(s.body) or [ast.copy_location(ast.Pass(), s)]
                s = ast.copy_location(ast.For(s.target, s.iter, body, self.pruned(s.orelse)), s)
            elif isinstance(s, ast.While):
                body = self.pruned(s.body) or [ast.copy_location(ast.Pass(), s)]
                s = ast.copy_location(ast.While(s.test, body, self.pruned(s.orelse)), s)
            elif isinstance(s, ast.Match):
                chosen = self.known_case(s)
                if chosen is not None:
                    made += self.pruned(chosen)
                    continue
                cases = [ast.match_case(c.pattern, c.guard, self.pruned(c.body)) for c in s.cases]
                s = ast.copy_location(ast.Match(s.subject, cases), s)
            made.append(s)
        return made

    @staticmethod
    def arrived(kind):
        """Of a value that comes to hand: its `?` is some extent."""
        if isinstance(kind, kinds.Tensor) and kind.dims is not None:
            if any("*" in (d or "")[:1] for d in kind.dims):
                return kinds.Tensor(kind.dtype, None, kind.vocabulary)
            return kinds.Tensor(kind.dtype, tuple(None if d == "?" else d for d in kind.dims),
                                kind.vocabulary)
        if isinstance(kind, kinds.Tuple_):
            return kinds.Tuple_(tuple(map(FunctionLowering.arrived, kind.parts)))
        return kind

    # ---- Blocks ----

    def block(self, statements, ending, lines=()):
        """The code of statements with what they end with, in braces; `lines` stand before them."""
        outer, self.lines = self.lines, list(lines)
        try:
            end = self.statements(list(statements), ending)
            parts = []
            for line in self.lines:
                parts += [LINE, line]
            return Code(("{", IN, *parts, LINE, end, OUT, LINE, "}"))
        finally:
            self.lines = outer

    def emit(self, *parts, at=None):
        self.lines.append(Code(parts, self.place(at) if at is not None else None))

    @contextlib.contextmanager
    def branch(self):
        """Variables as they are here, for one arm."""
        kept = self.env
        self.env = Scope((name, v.copy()) for name, v in kept.items())
        try:
            yield
        finally:
            self.escaped_in(self.env, kept)
            self.env = kept

    @staticmethod
    def escaped_in(inner, outer):
        for name, v in outer.items():
            if name in inner and not inner[name].owned and inner[name].local is v.local:
                v.owned = False

    def statements(self, todo, ending):
        """Lowers statements; gives the code of what they end with."""
        i = 0
        while i < len(todo):
            s, rest = todo[i], todo[i + 1:]
            i += 1
            if isinstance(s, Mark):
                continue
            if isinstance(s, ast.Return):
                return self.return_(s, ending)
            if isinstance(s, (ast.Break, ast.Continue)):
                ahead = self.jump(s, rest)
                if ahead is not None:
                    todo, i = ahead, 0
                    continue
                return ending.leave(s)
            if isinstance(s, ast.Raise):
                raise self.error(s, "'raise' stands for no value",
                                 "assert condition, \"message\" ends the one input that it does not hold "
                                 "for; so does if condition: raise Error(\"message\")")
            if isinstance(s, ast.If):
                end = self.if_(s, rest, ending)
            elif isinstance(s, ast.Match):
                end = self.match_(s, rest, ending)
            elif isinstance(s, (ast.For, ast.While)):
                end = self.loop(s, rest, ending)
                if isinstance(end, list):  # written out: these come next
                    todo, i = end, 0
                    continue
            else:
                end = self.simple(s, rest, ending)
            if end is not None:
                return end
        return ending.fall(self.last(todo))

    def last(self, statements):
        for s in reversed(statements):
            if hasattr(s, "lineno"):
                return s
        return self.node

    def jump(self, s, rest):
        """What follows `break` or `continue` of a loop that is written out; None in another loop."""
        what = "loop" if isinstance(s, ast.Break) else "turn"
        loop = None
        for k, ahead in enumerate(rest):
            if isinstance(ahead, Mark):
                loop = loop if loop is not None else ahead.loop
                if ahead.loop is loop and ahead.what == what:
                    return rest[k + 1:]
        return None

    def live_after(self, rest, ending):
        names = set(ending.names)
        return flow.Live().before(rest, names, names, names)

    def return_(self, s, ending):
        if s.value is None:
            value = Value("()", kinds.NONE, const=None)
        else:
            value = self.no_module(self.value(s.value, expect=self.declared.result), s.value)
        return Code((ending.give(value, s.value or s),), self.place(s))

    # ---- Simple statements ----

    def simple(self, s, rest, ending):
        if isinstance(s, Bind):
            self.bind_target(s.target, s.value, s.origin)
        elif isinstance(s, Known):
            self.now_known(s.test, s.holds, s.origin)
        elif isinstance(s, ast.Assign) and _one_by_one(s):
            for target, part in zip(s.targets[0].elts, s.value.elts):
                self.assign(target, self.value(part, assigning=True), s)
        elif isinstance(s, ast.Assign):
            value = self.value(s.value, assigning=True)
            for k, target in enumerate(s.targets):
                self.assign(target, value, s)
                if k == 0 and len(s.targets) > 1:
                    if not isinstance(target, ast.Name):
                        raise self.error(target, "of a = b = e all but e are names here",
                                         "write two assignments")
                    value = self.value(ast.copy_location(ast.Name(target.id, ast.Load()), target))
        elif isinstance(s, ast.AnnAssign):
            self.annotated(s)
        elif isinstance(s, ast.AugAssign):
            self.augmented(s)
        elif isinstance(s, ast.Assert):
            self.assert_(s)
        elif isinstance(s, ast.Pass):
            pass
        elif isinstance(s, ast.Expr):
            self.expression(s)
        else:
            raise self.refuse_statement(s)
        return None

    def annotated(self, s):
        if not isinstance(s.target, ast.Name):
            raise self.refuse_target(s.target)
        kind = self.local_annotation(s.annotation)
        name = s.target.id
        if s.value is None:
            self.env[name] = Variable(self.local(name), kind, kind,
                                      unbound=f"'{name}' is annotated but not assigned")
            return
        value = self.no_module(self.value(s.value, expect=kind), s.value)
        there = isinstance(kind, kinds.Option) and value.kind is not None and (
            value.kind is not kinds.NONE and not isinstance(value.kind, kinds.Option))
        known = kind.inner if there else kind
        value = self.coerce(value, known, s.value)
        local = self.local(name)
        at = self.place(s)
        self.lines.append(Code(("let ", local, ": ", Code((kinds.text(known),), self.place(s.annotation)),
                                " = ", value.code), at))
        self.env[name] = Variable(local, self.arrived(known), kind, const=value.const, nonneg=value.nonneg,
                                  owned=value.fresh, why=self.why(s.value))

    def local_annotation(self, node):
        from .annotations import Unknown
        text = ast.unparse(node)
        try:
            kind = self.declared.reader.kind(text)
        except Unknown as error:
            raise self.error(node, str(error), error.help) from None
        self.remember_names(node)
        from .annotations import dims_of
        dims_of(kind, self.declared.dims)
        return kind

    def remember_names(self, node):
        for n in ast.walk(node):
            if isinstance(n, ast.Name):
                self.find_global(n.id)

    def why(self, node):
        if isinstance(node, ast.Name):
            return f"'{node.id}' is the same list"
        if isinstance(node, ast.Call):
            return "it is what a call gave"
        return "it is part of another value"

    def assign(self, target, value, s):
        if isinstance(target, ast.Name):
            name = target.id
            if value.module is not None:
                self.env[name] = Variable(None, None, module=value.module)
                return
            if isinstance(value.const, str):
                raise self.error(s, "words of Python are no values of a model",
                                 "use an int, or a Token")
            declared = self.env[name].declared if name in self.env else None
            # What may be None is not, once something else is assigned.
            there = isinstance(declared, kinds.Option) and value.kind is not None and (
                value.kind is not kinds.NONE and not isinstance(value.kind, kinds.Option))
            if declared is not None:
                value = self.coerce(value, declared.inner if there else declared, s)
            local = self.local(name)
            type_ = ()
            if isinstance(declared, kinds.Option) and not there:
                type_ = (": ", kinds.text(declared))
            elif value.kind is kinds.NONE and value.const is None:
                raise self.error(s, f"the type of '{name}' is not known: it is None at first",
                                 f"{name}: T | None = None")
            self.lines.append(Code(("let ", local, *type_, " = ", value.code), self.place(s)))
            self.env[name] = Variable(local, declared if declared is not None and type_ else value.kind,
                                      declared, const=value.const, nonneg=value.nonneg, owned=value.fresh,
                                      why=self.why(getattr(s, "value", None)))
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.unpack(target, value, s)
        else:
            raise self.refuse_target(target)

    def bind_target(self, target, value, origin):
        """Gives a loop's target a value, as an assignment does."""
        made = ast.Assign([target], None)
        ast.copy_location(made, target)
        self.assign(target, value, made)

    def unpack(self, target, value, s):
        elements = target.elts
        at = self.place(s)
        parts = self.parts_of(value)
        if parts is not None:
            if any(isinstance(e, ast.Starred) for e in elements):
                raise self.error(target, "a tuple is taken apart into as many names as it has parts",
                                 "name all parts")
            if len(parts) != len(elements):
                raise self.error(target, f"{len(parts)} values cannot be given to {len(elements)} names")
            for element, part in zip(elements, parts):
                self.assign(element, part, s)
            return
        kind = value.kind
        if isinstance(kind, kinds.List) or isinstance(kind, kinds.Tensor):
            self.unpack_list(target, value, s)
            return
        if any(isinstance(e, ast.Starred) for e in elements):
            raise self.error(target, "only lists are taken apart with '*'", "name all parts")
        if isinstance(kind, kinds.Tuple_) and len(kind.parts) != len(elements):
            raise self.error(target, f"{len(kind.parts)} values cannot be given to {len(elements)} names")
        if isinstance(kind, (kinds.Scalar, kinds.Tok, kinds.Option)):
            raise self.error(target, "this value has no parts that could be given to names")
        code = self.pattern_of_target(target, kind)
        self.lines.append(Code(("let ", code, " = ", value.code), at))

    def parts_of(self, value):
        """The values that a literal tuple or the like consists of, if assigning them one after the other
        is the same as at once."""
        from .values import Parts
        if isinstance(value.module, Parts):
            return value.module.values
        from .values import ModuleList
        if isinstance(value.module, ModuleList):
            return [Value(None, module=ref) for ref in value.module.refs]
        return None

    def unpack_list(self, target, value, s):
        elements = target.elts
        at = self.place(s)
        local = self.temporary("list")
        self.lines.append(Code(("let ", local, " = ", value.code), at))
        kind = value.kind
        stars = [k for k, e in enumerate(elements) if isinstance(e, ast.Starred)]
        count = len(elements)
        if len(stars) > 1:
            raise self.error(target, "two '*' in one assignment")
        if stars and isinstance(kind, kinds.Tensor):
            raise self.error(target, "a tensor is taken apart into rows with as many names",
                             "x[0], x[1:]")
        least = count - len(stars)
        sign = ">=" if stars else "=="
        self.lines.append(Code((f"check len(", local, f") {sign} {least}, \"not as many values as names\""),
                               at))
        inner = kind.element if isinstance(kind, kinds.List) else self.row_kind(kind)
        for k, element in enumerate(elements):
            if stars and k == stars[0]:
                behind = count - 1 - k
                end = Code(("len(", local, f") - {behind}")) if behind else ""
                part = Value(Code((local, f"[{k}:", end, "]")), kind, fresh=True)
                self.assign(element.value, part, s)
            else:
                behind = count - k
                index = str(k) if not stars or k < stars[0] else Code(("len(", local, f") - {behind}"))
                self.assign(element, Value(Code((local, "[", index, "]")), self.arrived(inner)), s)

    @staticmethod
    def row_kind(kind):
        if isinstance(kind, kinds.Tensor):
            return kinds.Tensor(kind.dtype, kind.dims[1:] if kind.dims else None, kind.vocabulary)
        return None

    def pattern_of_target(self, target, kind):
        """The pattern of names that a value of `kind` is given to; binds them."""
        if isinstance(target, ast.Name):
            if target.id == self.self_name:
                raise self.error(target, f"'{self.self_name}' is assigned")
            local = self.local(target.id)
            declared = self.env[target.id].declared if target.id in self.env else None
            self.env[target.id] = Variable(local, self.arrived(kind), declared,
                                           why="it is part of another value")
            if target.id == "_" and not self.reads_underscore:
                return Code(("_",))
            return Code((local,), self.place(target))
        if isinstance(target, ast.Starred):
            raise self.error(target, "only lists are taken apart with '*'")
        if not isinstance(target, (ast.Tuple, ast.List)):
            raise self.refuse_target(target)
        count = len(target.elts)
        if count == 0:
            raise self.error(target, "nothing is assigned")
        if isinstance(kind, kinds.Data) and len(kind.declaration.constructors) == 1:
            constructor = kind.declaration.constructors[0]
            from .data import is_named_tuple
            if is_named_tuple(constructor.cls):
                if len(constructor.fields) != count:
                    raise self.error(target, f"{constructor.cls.__name__} has {len(constructor.fields)} "
                                     f"fields, which cannot be given to {count} names")
                binding = dict(zip(kind.declaration.parameters, kind.arguments))
                inner = [self.pattern_of_target(e, kinds.substitute(f[1], binding))
                         for e, f in zip(target.elts, constructor.fields)]
                return Code((constructor.name, "(", joined(inner), ")"))
        if isinstance(kind, (kinds.Data, kinds.Scalar, kinds.Tok, kinds.Option)):
            raise self.error(target, "this value has no parts that could be given to names")
        if isinstance(kind, (kinds.List, kinds.Tensor)):
            raise self.error(target, "a list inside is not taken apart here", "give it a name first: "
                             "name, ... = ...; a, b = name")
        parts = kind.parts if isinstance(kind, kinds.Tuple_) else (None,) * count
        if len(parts) != count:
            raise self.error(target, f"{len(parts)} values cannot be given to {count} names")
        if count == 1:
            raise self.error(target, "tuples of one element are not values of Sheaf")
        # A name that stands twice gets the last value, as in Python.
        inner = [self.pattern_of_target(e, p) for e, p in zip(target.elts, parts)]
        return Code(("(", joined(inner), ")"), self.place(target))

    def augmented(self, s):
        if not isinstance(s.target, ast.Name):
            raise self.refuse_target(s.target)
        name = s.target.id
        read = ast.copy_location(ast.Name(name, ast.Load()), s.target)
        left = self.peek(read)
        if isinstance(left.kind, kinds.List):
            if not isinstance(s.op, ast.Add):
                raise self.error(s, "lists are joined with +=, and nothing else")
            self.need_owned(s.target, name, f"'{name} += ...' changes the list that '{name}' is",
                            f"{name} = {name} + ...")
            self.need_eager(s.value, name)
        binary = ast.copy_location(ast.BinOp(read, s.op, s.value), s)
        value = self.value(binary)
        self.assign(s.target, value, s)
        if isinstance(left.kind, kinds.List):
            self.env[name].owned = True

    def need_owned(self, node, name, action, instead):
        variable = self.env.get(name)
        if variable is not None and not variable.owned:
            raise self.error(node, f"{action}, and others may see it: {variable.why or 'it was given away'}",
                             f"{instead}; or make it a list of its own first: {name} = list({name})")

    def need_eager(self, node, name):
        """A list grows while a generator, or `map`, is asked for the elements; here they are made before."""
        lazy = isinstance(node, ast.GeneratorExp) or isinstance(node, ast.Call) and self.called_builtin(
            node) in ("map", "filter", "zip", "enumerate")
        if lazy and name in flow.names(node):
            raise self.error(node, f"this is read while '{name}' grows, and reads '{name}'",
                             "make a list of it first: [f(x) for x in xs]")

    def assert_(self, s):
        if not __debug__:
            return  # python -O leaves them out
        if isinstance(s.test, ast.Tuple) and s.test.elts:
            raise self.error(s.test, "a tuple is always true", "assert condition, \"message\"")
        message = ""
        message = self.constant_text(s.msg) if s.msg is not None else f"assert {ast.unparse(s.test)}"
        # One check for each part, so that the checker learns which extents are equal.
        if isinstance(s.test, ast.BoolOp) and isinstance(s.test.op, ast.And) and not self.narrows(s.test):
            tests = s.test.values
        else:
            tests = [s.test]
        for test in tests:
            for condition in self.checked_parts(test):
                self.check(condition, message, s)
        self.now_known(s.test, True, s)

    def checked_parts(self, test):
        """The conditions that an assert stands for: equal shapes are equal extents."""
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            a, b = self.peek(test.left), self.peek(test.comparators[0])
            from .values import Parts
            if isinstance(a.module, Parts) and isinstance(b.module, Parts) and len(a.module.values) == len(
                    b.module.values):
                return [self.truth(self.compared_values(test, ast.Eq(), x, y, test, test), test)
                        for x, y in zip(a.module.values, b.module.values)]
        known = self.known_condition(test)
        return [Code(("true" if known else "false",))] if known is not None else [self.condition(test)]

    def check(self, condition, message, at):
        self.lines.append(Code(("check ", condition, f', {quoted(message)}'), self.place(at)))

    def constant_text(self, node):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        if isinstance(node, ast.Constant):
            return str(node.value)
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            return str(node.args[0].value)
        raise self.error(node, "the words of an assert are written out, as a string",
                         "leave out what is computed")

    def expression(self, s):
        node = s.value
        if isinstance(node, ast.Constant):
            return  # words about the code, or ...
        name = flow.changed_list(s)
        if name is not None and self.is_variable(name) and self.env[name].module is None:
            self.change_list(s, name, node)
            return
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)):
            raise self.refuse_expression(node)
        if isinstance(node, ast.Call):
            value = self.value(node)
            if value.module is not None:
                return
            if value.kind is kinds.NONE or isinstance(value.kind, (kinds.Scalar, kinds.Tensor, kinds.Tuple_,
                                                                  kinds.List, kinds.Data)):
                self.lines.append(Code(("let _ = ", value.code), self.place(s)))
                return
            self.lines.append(Code(("let _ = ", value.code), self.place(s)))
            return
        raise self.error(s, "this value is not used", "assign it to a name, or leave the line out")

    def is_variable(self, name):
        return name in self.env

    def change_list(self, s, name, call):
        method = call.func.attr
        variable = self.env[name]
        kind = variable.kind
        if call.keywords:
            raise self.error(call, f"'{method}' takes no names of arguments")
        if isinstance(kind, kinds.Data):
            raise self.error(call, f"'{name}' has no method '{method}'")
        if kind is not None and not isinstance(kind, kinds.List):
            raise self.error(call, f"'{name}' is no list")
        local = self.local(name)
        if method == "append" and len(call.args) == 1:
            self.bound_or_error(name, call.func.value)
            self.need_owned(call.func.value, name, f"'append' changes the list that '{name}' is",
                            f"{name} = [*{name}, x]")
            declared = variable.declared
            wanted = declared.element if isinstance(declared, kinds.List) else (
                kind.element if isinstance(kind, kinds.List) else None)
            value = self.value(call.args[0], expect=wanted)
            self.no_module(value, call.args[0])
            if wanted is not None and (declared is not None or isinstance(wanted, kinds.Option)):
                value = self.coerce(value, wanted, call.args[0])
            element = wanted if declared is not None else value.kind if wanted is None else self.common(
                wanted, value, call.args[0])
            if wanted == kinds.FLOAT and value.kind == kinds.INT:
                value = self.coerce(value, kinds.FLOAT, call.args[0])
            # Elements of different extents are of one type with `?`, which is written.
            open_ = kinds.dims_open(element)
            type_ = kinds.known(kinds.List(open_)) if open_ != element or declared is not None else None
            element = open_ if type_ else element
            self.lines.append(Code(("let ", local, f": {type_}" if type_ else "", " = append(", local, ", ",
                                    value.code, ")"), self.place(s)))
            self.env[name] = Variable(local, kinds.List(element), declared, owned=True)
            return
        if method == "extend" and len(call.args) == 1:
            self.bound_or_error(name, call.func.value)
            self.need_owned(call.func.value, name, f"'extend' changes the list that '{name}' is",
                            f"{name} = {name} + xs")
            self.need_eager(call.args[0], name)
            more = self.iterable(call.args[0])
            self.lines.append(Code(("let ", local, " = concat(", local, ", ", more.code, ")"),
                                   self.place(s)))
            self.env[name] = Variable(local, kinds.join(kind, kinds.List(more.element)), variable.declared,
                                      owned=True)
            return
        if method == "reverse" and not call.args:
            self.need_owned(call.func.value, name, f"'reverse' changes the list that '{name}' is",
                            f"{name} = {name}[::-1]")
            self.lines.append(Code(("let ", local, " = reverse(", local, ")"), self.place(s)))
            return
        if method == "pop" and len(call.args) <= 1:
            self.bound_or_error(name, call.func.value)
            self.need_owned(call.func.value, name, f"'pop' changes the list that '{name}' is",
                            f"{name} = {name}[:-1]")
            if call.args and not (isinstance(call.args[0], ast.Constant) and call.args[0].value == 0):
                raise self.error(call, "'pop' takes the last element, or with pop(0) the first",
                                 f"{name} = {name}[:i] + {name}[i + 1:]")
            self.lines.append(Code(("check len(", local, ') > 0, "pop from an empty list"'), self.place(s)))
            part = Code((local, "[1:]")) if call.args else Code((local, "[:len(", local, ") - 1]"))
            self.lines.append(Code(("let ", local, " = ", part), self.place(s)))
            return
        if method == "clear" and not call.args:
            self.need_owned(call.func.value, name, f"'clear' changes the list that '{name}' is",
                            f"{name} = []")
            raise self.error(call, "'clear' is not known here", f"{name} = []")
        help = {"insert": f"{name} = {name}[:i] + [x] + {name}[i:]",
                "remove": f"{name} = [y for y in {name} if y != x]",
                "sort": "sort(x) of a tensor gives the elements in order, and their places"}.get(method, "")
        raise self.error(call, f"'{method}' of a list is not compiled with these arguments", help)

    # ---- if ----

    def if_(self, s, rest, ending):
        if len(s.body) == 1 and isinstance(s.body[0], ast.Raise) and not s.orelse:
            self.raise_if(s)
            return None
        known = self.known_condition(s.test)
        if known is not None:
            return self.statements((s.body if known else s.orelse) + rest, ending)
        jumps = flow.jumps(s.body) | flow.jumps(s.orelse)
        classes = self.class_test(s.test)
        if classes is not None:
            return self.if_class(s, classes, rest, ending, jumps)
        narrowing = self.narrowing(s.test)
        if narrowing is not None:
            return self.if_none(s, narrowing, rest, ending, jumps)
        several = self.narrowing_chain(s.test)
        if several is not None and self.made_twice(several, s.body, s.orelse) > REPEATED:
            # What it says is read again where it holds, and nothing is made twice.
            both = isinstance(several.op, ast.And)
            known = ast.copy_location(Known(several, both, s), s)
            s = ast.copy_location(ast.If(several, [known, *s.body] if both else s.body,
                                         s.orelse if both else [known, *s.orelse]), s)
        elif several is not None:
            return self.if_(self.nested(s, several, ast.If, s.body, s.orelse), rest, ending)
        test = self.condition(s.test)
        plan = self.plan(s, [s.body, s.orelse], rest, ending, jumps)
        then, other = (self.arm(body, plan.end) for body in plan.arms)
        return self.concluded(s, plan, Code(("if ", test, " ", then, " else ", other)), rest, ending)

    def raise_if(self, s):
        """`if c: raise Error("message")` is a check."""
        exc = s.body[0].exc
        if exc is None or s.body[0].cause is not None:
            raise self.error(s.body[0], "this 'raise' names no error", "raise ValueError(\"message\")")
        message = ast.unparse(exc)
        if isinstance(exc, ast.Call):
            if len(exc.args) > 1 or exc.keywords:
                raise self.error(exc, "an error has one message here")
            message = self.constant_text(exc.args[0]) if exc.args else message
        known = self.known_condition(s.test)
        if known is False:
            return
        test = self.condition(s.test)
        self.check(Code(("!(", test, ")")), message, s)
        self.now_known(s.test, False, s)

    def arm(self, statements, ending):
        with self.branch():
            return self.block(statements, ending)

    # What follows branches.

    def plan(self, s, arms, rest, ending, jumps, captured=None):
        """How branches and what follows them become one: a Plan. `captured` are names that each arm has
        from its pattern."""
        if not jumps:
            names, end = self.joining(arms, rest, ending, captured)
            return Plan("join", arms, names, end)
        falling = [arm for arm in arms if not flow.always_jumps(arm)]
        out = any(isinstance(r, Mark) for r in rest) and flow.jumps(
            [x for arm in arms for x in arm]) & {"break", "continue"}
        if len(falling) > 1 and not out:
            cost = (len(falling) - 1) * _size(rest)
            if self.duplicated + cost > SMALL:
                names, end = self.joining(arms, rest, ending, captured)
                return Plan("shared", arms, names, SharedEnd(self, end.names, ending))
        return Plan("through", self.continued(arms, rest, s), (), ending)

    def concluded(self, s, plan, code, rest, ending):
        """The code that ends the block, or None where it goes on."""
        if plan.way == "through":
            return Code((code,), self.place(s))
        if plan.way == "join":
            self.joined(s, plan.names, plan.end, code)
            return None
        end, value = plan.end, self.temporary("done")
        if not end.falls:
            end.result, end.kinds = {}, {}
        else:
            self.settle(end)
        with self.branch():
            self.bind_joined(s, plan.names, end)
            pattern = self.tuple_pattern(end.names) if end.names else "_"
            more = self.block(rest, ending)
        return Code(("match ", code, " {", IN, LINE, end.done, "(", value, ") => ", value, LINE,
                     end.on, "(", pattern, ") => ", more, OUT, LINE, "}"), self.place(s))

    def continued(self, arms, rest, s):
        """Arms with what follows in those that fall through."""
        made, falling = [], 0
        for arm in arms:
            if flow.always_jumps(arm):
                # Out of a loop that is written out it goes on behind a mark.
                out = flow.jumps(arm) & {"break", "continue"} and any(isinstance(r, Mark) for r in rest)
                made.append(list(arm) + (list(rest) if out else []))
                falling += 1 if out else 0
            else:
                falling += 1
                made.append(list(arm) + list(rest))
        if falling > 1:
            self.duplicated += (falling - 1) * _size(rest)
            if self.duplicated > DUPLICATES:
                raise self.error_head(s, "too many ways lead on from branches with 'break' or 'continue' in a "
                                      "loop over layers", "move what follows into a method of its own")
        return made

    def joining(self, arms, rest, ending, captured=None):
        """The names that branches may assign and what follows reads, and the Ending of those that all of
        them have."""
        live = self.live_after(rest, ending)
        more = [n for names in captured or () for n in names]
        names = [n for n in dict.fromkeys(flow.assigned([x for arm in arms for x in arm]) + more) if n in live]
        made = []
        for name in names:
            here = name in self.env and self.env[name].unbound is None
            if all(here or name in definitely(arm) or captured and name in captured[k]
                   for k, arm in enumerate(arms)):
                made.append(name)
        return names, JoinEnd(self, made)

    def joined(self, s, names, end, code):
        """Binds what branches gave."""
        self.settle(end)
        pattern = self.tuple_pattern(end.names) if end.names else "_"
        self.lines.append(Code(("let ", pattern, " = ", code), self.place(s)))
        self.bind_joined(s, names, end)

    def bind_joined(self, s, names, end):
        for name, variable in end.result.items():
            self.env[name] = variable
        for name in names:
            if name not in end.names:
                self.env[name] = Variable(
                    self.local(name), None, unbound=f"'{name}' may have no value here: not every way through "
                    f"the '{type(s).__name__.lower()}' of line {s.lineno} assigns it")

    def tuple_pattern(self, names):
        locals_ = [self.local(n) for n in names]
        if len(locals_) == 1:
            return Code((locals_[0],))
        return Code(("(", joined(locals_), ")"))

    def yielded(self, end, node):
        """The tuple of `end.names` as they are here; remembered to be made of one Kind with others'."""
        slots, variables = [], []
        for name in end.names:
            variable = self.env[name]
            self.module_joined(name, variable, node)
            slots.append(Slot(Value(variable.local, variable.kind, const=variable.const,
                                    nonneg=variable.nonneg)))
            variables.append(variable.copy())
        end.falls.append((slots, variables))
        if not slots:
            return Code(("0",))
        if len(slots) == 1:
            return slots[0]
        return Code(("(", joined(slots), ")"))

    def module_joined(self, name, variable, node):
        if variable.module is not None:
            raise self.error(node, f"'{name}' is a layer, and which one is decided at run time",
                             "call it in both branches")
        if variable.unbound is not None:
            raise self.error(node, variable.unbound, "assign it before")

    def settle(self, end):
        """Finds what all ways of a JoinEnd give and makes their values so."""
        end.result, end.kinds = {}, {}
        for k, name in enumerate(end.names):
            ways = [(slots[k], variables[k]) for slots, variables in end.falls]
            kind, first = ways[0][1].kind, ways[0][1]
            for _, v in ways[1:]:
                kind = kinds.join(kind, v.kind)
            declared = next((v.declared for _, v in ways if v.declared is not None), None)
            if isinstance(declared, kinds.Option) and (kind is None or kind is kinds.NONE):
                kind = declared
            for slot, _ in ways:
                slot.parts = (self.coerce(slot.value, kind).code,) if kind is not None else slot.parts
            end.kinds[name] = kind
            self.env_result(end, name, kind, declared, [v for _, v in ways], first)

    def env_result(self, end, name, kind, declared, ways, first):
        const = first.const
        if any(type(v.const) is not type(const) or v.const != const for v in ways):
            const = NO
        end.result[name] = Variable(self.local(name), self.arrived(kind) if kind is not None else None,
                                    declared, const=const, nonneg=all(v.nonneg for v in ways),
                                    owned=all(v.owned for v in ways),
                                    why=next((v.why for v in ways if not v.owned), ""))


class Plan:
    """How branches go on: `way` is "join", "through" or "shared"."""

    __slots__ = ("way", "arms", "names", "end")

    def __init__(self, way, arms, names, end):
        self.way, self.arms, self.names, self.end = way, arms, names, end


def _size(statements):
    return sum(1 for s in statements for n in ast.walk(s) if isinstance(n, ast.stmt))


def quoted(text):
    made = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return '"' + "".join(c if c.isprintable() else "?" for c in made) + '"'


def definitely(statements):
    """Names that every way that falls off the end of statements has assigned; of one that never falls
    off, all."""
    found = set()
    for s in statements:
        if isinstance(s, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
            return _All()
        if isinstance(s, ast.If):
            a, b = definitely(s.body), definitely(s.orelse)
            both = (b if isinstance(a, _All) else a if isinstance(b, _All) else a & b)
            if isinstance(both, _All):
                return both
            found |= both
        elif isinstance(s, ast.Match):
            common = _All()
            for case in s.cases:
                inner = definitely(case.body)
                if not isinstance(inner, _All):
                    inner = inner | set(flow.captures(case.pattern))
                    common = inner if isinstance(common, _All) else common & inner
            if isinstance(common, _All):
                return common if s.cases else found
            found |= common
        elif isinstance(s, (ast.For, ast.While)):
            if not flow.jumps(s.body) & {"break"}:
                more = definitely(s.orelse)
                if not isinstance(more, _All):
                    found |= more
        elif isinstance(s, Bind):
            found |= set(flow.targets(s.target))
        else:
            found |= set(flow.assigned([s]))
    return found


class _All(set):
    def __contains__(self, name):
        return True
