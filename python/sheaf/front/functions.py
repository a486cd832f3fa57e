"""Statements: assignments become `let`s, branches expressions, jumps the place where code continues.

A block is lowered with an Ending, which says what stands for falling off its end, for `return`, `break`
and `continue`. A branch without jumps gives a tuple of what is read later; of one with jumps, what
follows goes into the arms that fall through.
"""
import ast
import contextlib

from . import flow, kinds
from .assignments import Assignments, Variable
from .branches import Branches
from .calls import Calls
from .expressions import Expressions
from .flow import Mark
from .loops import Loops
from .narrowing import Narrowing, Scope
from .patterns import Matches
from .places import head_of, place_of, refusal
from .text import IN, LINE, OUT, Code, Local, joined
from .values import Value


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


class FunctionLowering(Expressions, Calls, Matches, Loops, Narrowing, Assignments, Branches):
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
        # What a parameter is called is nothing of outside.
        self.assigned = set(flow.assigned(self.node.body)) | {p.name for p in d.parameters}
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
