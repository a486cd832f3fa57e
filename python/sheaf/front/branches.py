"""Branches, and what follows them."""
import ast

from . import flow, kinds
from .assignments import Variable
from .flow import Bind, Known, Mark
from .narrowing import REPEATED
from .text import IN, LINE, OUT, Code, joined
from .values import NO, Value

SMALL = 40          # statements that branches with jumps may make twice, before their ways are joined
DUPLICATES = 2000   # and those where they cannot be


class Slot(Code):
    """A value that a branch gives: its code is changed when the Kind that all give is known."""

    __slots__ = ("value",)

    def __init__(self, value, origin=None):
        super().__init__((value.code,), origin)
        self.value = value


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


class Plan:
    """How branches go on: `way` is "join", "through" or "shared"."""

    __slots__ = ("way", "arms", "names", "end")

    def __init__(self, way, arms, names, end):
        self.way, self.arms, self.names, self.end = way, arms, names, end


class _All(set):
    def __contains__(self, name):
        return True


class Branches:

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
                # Out of a loop that is written out it goes on after a mark.
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


def _size(statements):
    return sum(1 for s in statements for n in ast.walk(s) if isinstance(n, ast.stmt))


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
