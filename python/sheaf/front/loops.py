"""Loops: over lists they are folds, over layers they are written out, `while` is `loop`.

What a loop carries are the variables that it assigns and that are read at the beginning of a turn or
after it. `break` and `return` are a flag in the state, and a value that is there once they have come by.
"""
import ast

from . import flow, kinds
from .assignments import Variable
from .flow import Bind, Mark
from .iterables import Iterables, Many
from .kinds import BOOL
from .narrowing import with_lets
from .text import IN, LINE, OUT, Code, joined
from .values import EMPTY, NO, Value


class LoopEnd:
    """Of the body of a loop: it gives the state."""

    def __init__(self, lowering, names, done=None, ret=None, outer=None):
        self.lowering, self.names, self.done, self.ret, self.outer = lowering, names, done, ret, outer
        self.falls = []

    def state(self, node, done, ret):
        fl = self.lowering
        code = fl.yielded(self, node)
        extra = []
        if self.done is not None:
            extra.append("true" if done else "false")
        if self.ret is not None:
            extra.append(ret if ret is not None else "Nothing")
        if not extra:
            return code
        slots = self.falls[-1][0]
        return Code(("(", joined([*slots, *extra]), ")")) if len(slots) + len(extra) > 1 else Code(
            (extra[0],))

    def fall(self, node):
        return self.state(node, False, None)

    def leave(self, s):
        """`break` or `continue` at a statement."""
        return Code((self.state(s, isinstance(s, ast.Break), None),), self.lowering.place(s))

    def give(self, value, node):
        """`return`."""
        fl = self.lowering
        result = fl.coerce(value, fl.declared.result, node)
        return self.state(node, True, Code(("Just(", result.code, ")")))


class Loops(Iterables):

    # ---- Comprehensions ----

    def expr_ListComp(self, node, expect):
        many = self.comprehension(node, expect.element if isinstance(expect, kinds.List) else None)
        return Value(many.code, kinds.List(many.element), fresh=True)

    def expr_GeneratorExp(self, node, expect):
        raise self.error(node, "a generator stands in sum, any, all, max, min, list, or a loop",
                         "[... for ... in ...]")

    def comprehension(self, node, expect=None):
        for g in node.generators:
            if g.is_async:
                raise self.error(node, "'async for' is not compiled")
        return self.generated(node, node.generators, expect)

    def generated(self, node, generators, expect):
        g, rest = generators[0], generators[1:]
        layers = self.layers_in(g.iter)
        if layers is None:
            layers = self.numbers_of_layers(g.target, g.iter, [node.elt])
        if layers is not None:
            return self.generated_of_layers(node, g, rest, layers, expect)
        many = self.iterable(g.iter)
        with self.branch():
            pattern = self.pattern_of_target(g.target, many.element)
            self.mark_nonneg(g.target, many)
            code, lets = many.code, []
            for test in g.ifs:
                code = Code(("filter(|", pattern, "| ", with_lets(lets, self.condition(test)), ", ", code, ")"),
                            self.place(test))
                lets = lets + self.lets_of(test)
            if rest:
                inner = self.generated(node, rest, expect)
                acc = self.temporary("all")
                return Many(Code(("fold(|", acc, ", ", pattern, "| concat(", acc, ", ",
                                  with_lets(lets, inner.code), "), [], ", code, ")")), inner.element)
            value = self.plain(node.elt, expect)
            if expect is not None:
                value = self.coerce(value, expect, node.elt)
            value.code = with_lets(lets, value.code)
            if isinstance(node.elt, ast.Name) and isinstance(g.target, ast.Name) and (
                    node.elt.id == g.target.id) and value.kind == many.element:
                return Many(code, many.element, nonneg=many.nonneg)
            element = value.kind
            return Many(Code(("map(|", pattern, "| ", value.code, ", ", code, ")"), self.place(node)),
                        element, nonneg=value.nonneg)

    def generated_of_layers(self, node, g, rest, layers, expect):
        if any(element.present is not None for element in layers):
            raise self.error(g.iter, "how many layers have an element beside them is not known",
                             "zip(..., strict=True) says that all have, and no more are there")
        parts, kind, first = [], None, True
        for element in layers:
            with self.branch():
                outer, self.lines = self.lines, []
                try:
                    self.bind_target(g.target, element, g.target)
                    lets = self.lines
                finally:
                    self.lines = outer
                keep = True
                for test in g.ifs:
                    known = self.known_condition(test)
                    if known is None:
                        raise self.error(test, "which layers are meant must be known when the model is "
                                         "compiled", "write a for loop with an if")
                    keep = keep and known
                if not keep:
                    continue
                if rest:
                    inner = self.generated(node, rest, expect)
                    value = Value(inner.code, kinds.List(inner.element))
                else:
                    value = self.value(node.elt, expect)
                    if value.module is not None:
                        value = self.no_module(value, node.elt)
                    if expect is not None:
                        value = self.coerce(value, expect, node.elt)
                code = value.code
                if lets:
                    inside = []
                    for let in lets:
                        inside += [let, "; "]
                    code = Code(("{ ", *inside, code, " }"))
                parts.append(code)
                kind = value.kind if first else kinds.join(kind, value.kind)
                first = False
        if rest:
            if not parts:
                return Many(Code(("[]",)), expect)
            code = parts[0] if len(parts) == 1 else Code(("concat(", joined(parts), ")"))
            return Many(code, kind.element if isinstance(kind, kinds.List) else None)
        return Many(Code(("[", joined(parts), "]")), kind)

    def mark_nonneg(self, target, many):
        if isinstance(target, ast.Name):
            self.env[target.id].nonneg = many.nonneg
        elif isinstance(target, ast.Tuple) and isinstance(many.element, kinds.Tuple_) and target.elts and \
                isinstance(target.elts[0], ast.Name) and _is_enumerate(many):
            self.env[target.elts[0].id].nonneg = True

    # ---- Loops as statements ----

    def loop(self, s, rest, ending):
        """Lowers a loop. Gives the code that the block ends with, None, or a list of statements that
        stand for it."""
        if isinstance(s, ast.For):
            layers = self.layers_in(s.iter)
            if layers is None:
                layers = self.numbers_of_layers(s.target, s.iter, s.body)
            if layers is not None:
                return self.written_out(s, layers, rest)
            return self.carried_loop(s, rest, ending)
        known = self.known_condition(s.test)
        if known is False:
            return [*s.orelse, *rest]
        return self.carried_loop(self.knowing(s), rest, ending)

    def written_out(self, s, layers, rest):
        made = []
        if any(element.present is not None for element in layers) and flow.jumps(s.body):
            raise self.error(s.iter, "the list beside the layers may be shorter, and this loop has other ends, too",
                             "zip(..., strict=True) says that it is not")
        for i, element in enumerate(layers):
            turn = [Bind(s.target, element, s), *s.body]
            if element.present is not None:
                name = ast.copy_location(ast.Name(f"turn {i}", ast.Load()), s.iter)
                made.append(Bind(ast.copy_location(ast.Name(name.id, ast.Store()), s.iter),
                                 Value(element.present, BOOL), s))
                turn = [ast.copy_location(ast.If(name, turn, []), s)]
            made += [*turn, Mark(s, "turn")]
        return [*made, *s.orelse, Mark(s, "loop"), *rest]

    def not_changed(self, s):
        """A loop over a list that its body changes goes on over what is appended, in Python."""
        changed = flow.changed_in_place(s.body)
        pending = [s.iter]
        while pending:
            node = pending.pop()
            if isinstance(node, ast.Call) and self.called_builtin(node) in ("zip", "enumerate", "reversed"):
                pending += node.args
            if isinstance(node, ast.Name) and node.id in changed and node.id in self.env and not isinstance(
                    self.env[node.id].kind, (kinds.Tensor, kinds.Scalar)):
                raise self.error(node, f"'{node.id}' is changed while the loop goes through it",
                                 f"while i < len({node.id}): ..., or go through a copy: list({node.id})")

    def carried_loop(self, s, rest, ending):
        if isinstance(s, ast.For):
            self.not_changed(s)
        live = self.live_after(rest, ending)
        assigned = flow.assigned(s.body)
        target_names = flow.targets(s.target) if isinstance(s, ast.For) else []
        assigned = list(dict.fromkeys([*target_names, *assigned]))
        wanted = flow.Live().carried(s, live)
        # After break `else` is passed by.
        after = flow.Live().before(s.orelse, live) | (live if self.broke(s) else set())
        bound = [n for n in assigned if n in self.env and self.env[n].unbound is None
                 and self.env[n].module is None]
        carried = [n for n in bound if n in wanted and (n not in target_names or n in after)]
        lost = [n for n in assigned if n not in carried and (n in after)]
        jumps = flow.jumps(s.body)
        for n in assigned:
            if n in self.env and self.env[n].module is not None and n in wanted:
                raise self.error_head(s, f"'{n}' is a layer here, and the loop makes something else of it",
                                      "use another name")
        mapped = self.as_map(s, carried, jumps) if isinstance(s, ast.For) else None
        if mapped is not None:
            for n in lost:
                if n != mapped:
                    self.env[n] = self.after_loop(n, s)
            return None
        listed = self.as_scan(s, carried, jumps) if isinstance(s, ast.For) and mapped is None else None
        if listed is not None:
            carried = [n for n in carried if n != listed]
            s = ast.copy_location(ast.For(s.target, s.iter, s.body[:-1] or [ast.copy_location(ast.Pass(), s)],
                                          []), s)
            appended = self.scanned
        done = self.temporary("done") if jumps & {"break", "return"} else None
        ret = self.temporary("ret") if "return" in jumps else None
        if ret is not None:
            self.low.use_option()
        many = self.iterable(s.iter) if isinstance(s, ast.For) else None
        start = {n: self.env[n].copy() for n in carried}
        state = {n: self.env[n].copy() for n in carried}
        for variable in state.values():
            variable.narrowed = None  # of its class is known what the first turn finds
        # A turn is lowered until what it gives is of the Kinds that it began with.
        for turn in range(6):
            end = LoopEnd(self, carried, done, ret)
            with self.branch():
                for n in carried:
                    self.env[n] = state[n].copy()
                    self.env[n].const = NO
                if isinstance(s, ast.While):
                    test = self.condition(s.test)
                    pattern = None
                else:
                    test = None
                    pattern = self.target_pattern(s, many, carried)
                body = self.block(s.body, end, pattern[1] if pattern else ())
            before = state
            if end.falls:
                self.settle(end)
                state = {n: self.joined_state(start[n], before[n], end.result[n], end.kinds[n])
                         for n in carried}
            if all(_same(before[n], state[n]) for n in carried):
                break
        else:
            raise self.error_head(s, "the types of what this loop carries do not settle",
                                  "annotate what stands before it: x: Float32[\"? n\"] = ...")
        self.settle_loop(end, state)
        code = self.loop_code(s, carried, state, start, done, ret, many, pattern, test, body)
        if listed is not None:
            return self.after_scan(s, code, carried, lost, state, start, listed, appended)
        return self.after(s, code, carried, lost, state, done, ret, rest, ending)

    def after_loop(self, name, s):
        return Variable(self.local(name), None, unbound=f"'{name}' may have no value here: the loop of line "
                        f"{s.lineno} may make no turn")

    def joined_state(self, start, before, result, given):
        kind = kinds.join(before.kind, given) if before.kind is not None else given
        declared = start.declared
        if declared is not None:
            if isinstance(declared, kinds.Option):
                kind = declared if kind is None or kind is kinds.NONE else kind
            else:
                kind = declared if isinstance(declared, kinds.List) else kinds.join(
                    self.arrived(declared), kind)
            if isinstance(declared, kinds.Tensor):
                kind = declared
        return Variable(before.local, kind, declared, nonneg=before.nonneg and result.nonneg,
                        owned=before.owned and result.owned, why=result.why or before.why)

    def settle_loop(self, end, state):
        for slots, _ in end.falls:
            for slot, name in zip(slots, end.names):
                slot.parts = (self.coerce(slot.value, state[name].kind).code,)

    def target_pattern(self, s, many, carried):
        """(pattern of the lambda, lets that begin the turn). Names that the loop also carries are given
        their value by a let, as a pattern has each name once."""
        again = [n for n in flow.targets(s.target) if n in carried]
        if again:
            t = self.temporary("item")
            outer, self.lines = self.lines, []
            try:
                self.bind_target(s.target, Value(Code((t,)), many.element, nonneg=many.nonneg), s.target)
                lets = self.lines
            finally:
                self.lines = outer
            return Code((t,)), lets
        if isinstance(s.target, (ast.Tuple, ast.List)) and isinstance(many.element, (kinds.List,
                                                                                     kinds.Tensor)):
            t = self.temporary("item")
            outer, self.lines = self.lines, []
            try:
                self.bind_target(s.target, Value(Code((t,)), many.element), s.target)
                lets = self.lines
            finally:
                self.lines = outer
            return Code((t,)), lets
        pattern = self.pattern_of_target(s.target, many.element)
        self.mark_nonneg(s.target, many)
        return pattern, []

    def state_pattern(self, carried, done, ret):
        names = [self.local(n) for n in carried] + [x for x in (done, ret) if x is not None]
        if not names:
            return Code(("_",))
        return Code((names[0],)) if len(names) == 1 else Code(("(", joined(names), ")"))

    def loop_code(self, s, carried, state, start, done, ret, many, pattern, test, body):
        names = self.state_pattern(carried, done, ret)
        begin = []
        for n in carried:
            value = Value(Code((start[n].local,)), start[n].kind, const=start[n].const)
            begin.append(self.coerce(value, state[n].kind).code)
        extra = ["false"] if done is not None else []
        extra += ["Nothing"] if ret is not None else []
        begin = [*begin, *extra]
        first = Code((begin[0],)) if len(begin) == 1 else Code(("(", joined(begin), ")")) if begin else Code(
            ("0",))
        type_ = self.state_type(carried, state, start, done, ret)
        shown = Code((names, ": ", type_)) if type_ else names
        if isinstance(s, ast.While):
            condition = test if done is None else Code(("!", done, " && (", test, ")"))
            if not carried and done is None:
                raise self.error_head(s, "this loop changes nothing that its condition reads: it never ends",
                                      "for ... in range(n) for a number of turns")
            return Code(("loop(|", shown, "| ", condition, ", |", names, "| ", body, ", ", first, ")"))
        if not begin:
            # Only checks: the turns are independent.
            return Code(("map(|", pattern[0], "| ", body, ", ", many.code, ")"))
        if done is not None:
            body = Code(("if ", done, " { ", names, " } else ", body))
        return Code(("fold(|", shown, ", ", pattern[0], "| ", body, ", ", first, ", ", many.code, ")"))

    def state_type(self, carried, state, start, done, ret):
        """The type of the state where it must be written: extents that are numbers and change from turn to
        turn are `?`, and something may be None that is not at first."""
        need = False
        for n in carried:
            kind = state[n].kind
            if _has_unknown(kind) or isinstance(kind, kinds.Option):
                need = need or kind != start[n].kind or state[n].declared is not None
        if not need:
            return None
        texts = []
        for n in carried:
            text = kinds.known(state[n].kind)
            if text is None:
                return None
            texts.append(text)
        if done is not None:
            texts.append("bool")
        if ret is not None:
            text = kinds.known(self.declared.result)
            texts.append(f"Option<{text}>")
        return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"

    def bind_carried(self, carried, state, lost, s):
        """Gives names their Kinds after a loop: those that it carries, and those that it assigns beside."""
        for n in carried:
            v = state[n].copy()
            v.kind = self.arrived(v.kind) if v.kind is not None else None
            v.const = NO
            self.env[n] = v
        for n in lost:
            self.env[n] = self.after_loop(n, s)

    def after(self, s, code, carried, lost, state, done, ret, rest, ending):
        """What follows the loop."""
        at = self.place(s)
        pattern = self.state_pattern(carried, done, ret)
        broke = self.broke(s)
        self.lines.append(Code(("let ", pattern, " = ", code), at))
        self.bind_carried(carried, state, lost, s)
        endless = isinstance(s, ast.While) and flow.is_true(s.test) and not broke
        if ret is not None:
            t = self.temporary("result")
            with self.branch():
                value = Value(Code((t,)), self.arrived(self.declared.result))
                given = Code((ending.give(value, s),))
            if endless:
                # Only `return` ends it, so there is a result.
                some = self.low.helper("some")
                value = Value(Code((some, "(", ret, ")")), self.arrived(self.declared.result))
                return Code((ending.give(value, s),), at)
            then = [*self.known_after(s), *s.orelse, *rest] if not broke else None
            if then is None:
                then = [_else_after_break(s, done, self)] + rest if s.orelse else rest
            with self.branch():
                more = self.block(then, ending)
            return Code(("match ", ret, " {", IN, LINE, "Just(", t, ") => ", given, LINE, "Nothing => ", more,
                         OUT, LINE, "}"), at)
        if endless:
            raise self.error_head(s, "nothing ends this loop", "break, return, or a condition")
        if not broke and (s.orelse or self.known_after(s)):
            return [*self.known_after(s), *s.orelse, *rest]
        if s.orelse:
            return [_else_after_break(s, done, self), *rest]
        return None

    @staticmethod
    def broke(s):
        return "break" in flow.jumps(s.body)

    # ---- Loops that are map ----

    def as_map(self, s, carried, jumps):
        """`for x in xs: ...; ys.append(e)` where ys is all that the loop carries is a map. Gives the name
        of the list, or None."""
        if jumps or s.orelse or len(carried) != 1 or not s.body:
            return None
        name, last = carried[0], s.body[-1]
        if flow.changed_list(last) != name or last.value.func.attr != "append" or len(last.value.args) != 1:
            return None
        if last.value.keywords or name in flow.targets(s.target):
            return None
        others = s.body[:-1]
        if name in flow.assigned(others) or any(name in flow.names(n) for n in [last.value.args[0]]):
            return None
        if any(name in _read(o) for o in others):
            return None
        variable = self.env[name]
        if not isinstance(variable.kind, kinds.List):
            return None
        self.need_owned(last.value.func.value, name, f"'append' changes the list that '{name}' is",
                        f"{name} = [*{name}, x]")
        wanted = variable.declared.element if isinstance(variable.declared, kinds.List) else None
        many = self.iterable(s.iter)
        with self.branch():
            outer, self.lines = self.lines, []
            try:
                pattern, lets = self.target_pattern(s, many, ())
                self.lines = list(lets)
                for statement in others:
                    left = self.statements_inside(statement, others, last)
                    if left is not None:
                        self.lines = outer
                        return None
                value = self.plain(last.value.args[0], wanted)
                if wanted is not None:
                    value = self.coerce(value, wanted, last.value.args[0])
                parts = []
                for line in self.lines:
                    parts += [LINE, line]
                body = Code(("{", IN, *parts, LINE, value.code, OUT, LINE, "}")) if parts else value.code
            finally:
                self.lines = outer
        start = variable.kind.element
        element = wanted if wanted is not None else (
            value.kind if start is None else kinds.join(start, value.kind))
        if start is not None and wanted is None and self.differs(value.kind, element):
            return None
        mapped = Code(("map(|", pattern, "| ", body, ", ", many.code, ")"), self.place(s))
        if not self.is_empty_start(variable):
            mapped = Code(("concat(", variable.local, ", ", mapped, ")"))
        self.lines.append(Code(("let ", variable.local, " = ", mapped), self.place(s)))
        self.env[name] = Variable(variable.local, kinds.List(element), variable.declared, owned=True)
        return name

    # ---- Loops that are scan ----

    def as_scan(self, s, carried, jumps):
        """`for x in xs: h = f(h, x); hs.append(h)`: the list of what the loop carries, as long as xs. Gives
        the name of the list, or None; what is appended is in `scanned`."""
        last = s.body[-1]
        name = flow.changed_list(last)
        if jumps or s.orelse or name not in carried or len(carried) < 2 or last.value.func.attr != "append":
            return None
        if len(last.value.args) != 1 or last.value.keywords or name in flow.targets(s.target):
            return None
        value = last.value.args[0]
        if not isinstance(value, ast.Name) or value.id not in carried or value.id == name:
            return None
        if name in flow.assigned(s.body[:-1]) or any(name in _read(o) for o in s.body[:-1]):
            return None
        variable = self.env[name]
        if not isinstance(variable.kind, kinds.List) or not variable.owned or variable.declared is not None:
            return None
        if isinstance(self.env[value.id].kind, kinds.List):
            return None
        self.scanned = value.id
        return name

    def after_scan(self, s, code, carried, lost, state, start, name, appended):
        at = self.place(s)
        states = self.temporary("states")
        # The fold that it would be, as a scan.
        parts = list(code.parts)
        parts[0] = parts[0].replace("fold(", "scan(", 1)
        self.lines.append(Code(("let ", states, " = ", Code(tuple(parts))), at))
        variable = self.env[name]
        element = state[appended].kind
        if len(carried) == 1:
            listed = Code((states,))
        else:
            pattern = Code(("(", joined([self.local(n) if n == appended else "_" for n in carried]), ")"))
            listed = Code(("map(|", pattern, "| ", self.local(appended), ", ", states, ")"))
        if not self.is_empty_start(variable):
            listed = Code(("concat(", variable.local, ", ", listed, ")"))
        begin = [self.coerce(Value(Code((start[n].local,)), start[n].kind, const=start[n].const),
                             state[n].kind).code for n in carried]
        begin = begin[0] if len(begin) == 1 else Code(("(", joined(begin), ")"))
        final = self.state_pattern(carried, None, None)
        self.lines.append(Code(("let ", variable.local, " = ", listed), at))
        self.lines.append(Code(("let ", final, " = if len(", states, ") > 0 { ", states, "[len(", states,
                                ") - 1] } else { ", begin, " }"), at))
        self.env[name] = Variable(variable.local, kinds.List(element if variable.kind.element is None
                                                             else kinds.join(variable.kind.element, element)),
                                  None, owned=True)
        self.bind_carried(carried, state, [n for n in lost if n != name], s)
        return None

    def statements_inside(self, statement, others, last):
        """Lowers one statement of the body of a map; None if all is well."""
        rest = [*others[others.index(statement) + 1:], last]
        end = _MapEnd(self)
        if isinstance(statement, ast.If):
            return self.if_(statement, rest, end)
        if isinstance(statement, ast.Match):
            return self.match_(statement, rest, end)
        if isinstance(statement, (ast.For, ast.While)):
            made = self.loop(statement, rest, end)
            if isinstance(made, list):
                # Written out: its own statements, then those that follow, which come by themselves.
                made = made[:len(made) - len(rest)]
                for inner in made:
                    if isinstance(inner, Mark):
                        continue
                    left = self.statements_inside_list(inner, made, rest)
                    if left is not None:
                        return left
                return None
            return made
        return self.simple(statement, rest, end)

    def statements_inside_list(self, inner, made, rest):
        following = [*made[made.index(inner) + 1:], *rest]
        return self.statements_inside(inner, [inner, *following[:-1]], following[-1])

    @staticmethod
    def is_empty_start(variable):
        return variable.const is EMPTY


def _read(statement):
    """All names that a statement reads, inside of it too."""
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}


class _MapEnd:
    names = ()

    def __init__(self, lowering):
        self.lowering = lowering


def _else_after_break(s, done, lowering):
    """`else` of a loop with `break`: it runs if nothing broke."""
    name = f"%done{id(s)}"
    lowering.declared.locals[name] = done
    lowering.env[name] = Variable(done, BOOL)
    test = ast.copy_location(ast.UnaryOp(ast.Not(), ast.copy_location(ast.Name(name, ast.Load()), s)), s)
    return ast.copy_location(ast.If(test, s.orelse, []), s)


def _has_unknown(kind):
    if isinstance(kind, kinds.Tensor):
        return kind.dims is not None and "?" in kind.dims
    if isinstance(kind, kinds.List):
        return _has_unknown(kind.element)
    if isinstance(kind, kinds.Option):
        return _has_unknown(kind.inner)
    if isinstance(kind, kinds.Tuple_):
        return any(map(_has_unknown, kind.parts))
    return False


def _same(a, b):
    return a.kind == b.kind and a.owned == b.owned and a.nonneg == b.nonneg


def _is_enumerate(many):
    parts = getattr(many.code, "parts", ())
    return bool(parts) and isinstance(parts[0], str) and parts[0].startswith("enumerate(")
