"""match: classes, tuples, lists, literals, `|`, `as`, guards.

A pattern of Python may stand for several of `.sheaf`, which has no `|`, and for a pattern with a guard,
as literals of floats and of tokens are not patterns there.
"""
import ast
import itertools

from . import flow, kinds
from .annotations import Unknown
from .assignments import Variable
from .data import is_named_tuple
from .pattern import Pattern
from .kinds import BOOL, FLOAT, INT
from .text import IN, LINE, OUT, Code, joined
from .values import NO, Parts, Value, literal

MOST_ARMS = 256  # that one `case` may become


class Matches:

    def match_(self, s, rest, ending):
        chosen = self.known_case(s)
        if chosen is not None:
            return self.statements(list(chosen) + rest, ending)
        subject = self.peek(s.subject)
        if isinstance(subject.module, Parts):
            subject = self.no_module(subject, s.subject)
        subject = self.no_module(subject, s.subject)
        kind = subject.kind
        if isinstance(s.subject, ast.Name) and s.subject.id in self.env and isinstance(kind, (
                kinds.List,)):
            self.value(s.subject)
        cases = self.needed_cases(s, kind)
        self.refuse_lost_captures(cases, rest, ending)
        bodies = [c.body for c in cases]
        jumps = set()
        for b in bodies:
            jumps |= flow.jumps(b)
        plan = self.plan(s, bodies, rest, ending, jumps, [flow.captures(c.pattern) for c in cases])
        held = None
        if subject.name is None and any(self.names_subject(c.pattern) for c in cases):
            held = self.temporary("subject")
            self.lines.append(Code(("let ", held, " = ", subject.code), self.place(s.subject)))
            subject = Value(Code((held,)), kind)
        arms = []
        for case, body in zip(cases, plan.arms):
            for pattern in self.alternatives(case.pattern, kind, subject):
                arms.append(self.case(case, pattern, body, plan.end, s))
        parts = []
        for arm in arms:
            parts += [LINE, arm]
        code = Code(("match ", Code((subject.code,), self.place(s.subject)), " {", IN, *parts, OUT, LINE, "}"))
        return self.concluded(s, plan, code, rest, ending)

    def known_case(self, s):
        """The body of the case that a constant of the module or of outside matches, or None."""
        subject = self.constant(s.subject)
        if subject is NO or isinstance(subject, tuple):
            return None
        for case in s.cases:
            patterns = case.pattern.patterns if isinstance(case.pattern, ast.MatchOr) else [case.pattern]
            for p in patterns:
                if isinstance(p, ast.MatchAs) and p.pattern is None and p.name is None:
                    matches = True
                elif isinstance(p, ast.MatchValue) and self.constant(p.value) is not NO:
                    matches = subject == self.constant(p.value)
                elif isinstance(p, ast.MatchSingleton):
                    matches = subject is p.value
                else:
                    return None
                if matches:
                    return None if case.guard is not None else case.body
        return []

    def needed_cases(self, s, kind):
        """Without a last `case _` that only raises, where the others are all there is."""
        cases = list(s.cases)
        last = cases[-1]
        only_raises = len(last.body) == 1 and (
            isinstance(last.body[0], ast.Raise)
            or isinstance(last.body[0], ast.Expr) and isinstance(last.body[0].value, ast.Call)
            and "assert_never" in ast.unparse(last.body[0].value.func)
            or isinstance(last.body[0], ast.Assert) and isinstance(last.body[0].test, ast.Constant)
            and not last.body[0].test.value)
        if only_raises and isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None and (
                last.guard is None) and len(cases) > 1:
            if self.covers(cases[:-1], kind):
                return cases[:-1]
        return cases

    def covers(self, cases, kind):
        inner = kind.inner if isinstance(kind, kinds.Option) else kind
        if not isinstance(inner, kinds.Data):
            return False
        wanted = {c.cls for c in inner.declaration.constructors}
        if isinstance(kind, kinds.Option):
            wanted.add(None)
        for case in cases:
            if case.guard is not None:
                continue
            patterns = case.pattern.patterns if isinstance(case.pattern, ast.MatchOr) else [case.pattern]
            for p in patterns:
                if isinstance(p, ast.MatchAs) and p.pattern is not None:
                    p = p.pattern
                if isinstance(p, ast.MatchClass) and all(_irrefutable(q) for q in [
                        *p.patterns, *p.kwd_patterns]):
                    wanted.discard(self.class_of(p))
                elif isinstance(p, ast.MatchSingleton) and p.value is None:
                    wanted.discard(None)
        return not wanted

    def refuse_lost_captures(self, cases, rest, ending):
        """Names that a pattern binds keep that in Python when the guard fails; here they are the case's."""
        if not any(case.guard for case in cases):
            return
        live = set()  # in the cases that come later, and after them
        for case in reversed(cases):
            captured = flow.captures(case.pattern)
            for name in captured:
                if case.guard is not None and name in live and name in self.env:
                    raise self.error(case.pattern, f"'{name}' is read later, and is something else then when "
                                     "the guard of this case fails", "take another name in the pattern")
            live |= (self.live_after([*case.body, *rest], ending) | flow.names(case.guard)) - set(captured)

    @staticmethod
    def names_subject(pattern):
        """Whether a pattern names the whole that it matches, beside its parts."""
        return isinstance(pattern, ast.MatchAs) and pattern.pattern is not None and pattern.name is not None \
            or isinstance(pattern, ast.MatchOr) and any(Matches.names_subject(p) for p in pattern.patterns)

    def case(self, case, pattern, body, end, s):
        with self.branch():
            outer, self.lines = self.lines, []
            try:
                lets = self.bind_pattern(pattern, case.pattern)
                tests = list(pattern.tests)
                if case.guard is not None:
                    if lets:
                        inside = []
                        for let in lets:
                            inside += [let, "; "]
                        tests.append(Code(("{ ", *inside, self.condition(case.guard), " }")))
                    else:
                        tests.append(self.condition(case.guard))
            finally:
                self.lines = outer
            guard = []
            for t in tests:
                guard += [" && (", t, ")"] if guard else (["(", t, ")"] if len(tests) > 1 else [t])
            code = self.block(body, end, lets)
        head = Code((pattern.code, *((" if ", *guard) if guard else ())), self.place(case.pattern))
        return Code((head, " => ", code), self.place(case.pattern))

    def bind_pattern(self, pattern, node):
        """Gives the names that a pattern binds their Kinds; gives the lets that an arm begins with."""
        lets = []
        for name, kind in pattern.names:
            self.env[name] = Variable(self.local(name), self.arrived(kind), why="it is part of another value")
        for name, kind, code, narrowed in pattern.lets:
            variable = Variable(self.local(name), self.arrived(kind), why="it is part of another value")
            variable.narrowed = narrowed
            self.env[name] = variable
            lets.append(Code(("let ", self.local(name), " = ", code), self.place(node)))
        return lets

    # ---- Patterns ----

    def alternatives(self, pattern, kind, subject):
        """The patterns of .sheaf that one of Python stands for."""
        made = self.pattern(pattern, kind, subject.code if subject.name or True else None)
        if len(made) > MOST_ARMS:
            raise self.error(pattern, f"this pattern stands for more than {MOST_ARMS}", "write several cases")
        return made

    def pattern(self, p, kind, whole=None):
        """All patterns that `p` stands for; `whole` is the code of the value that it is matched with,
        where that has a name."""
        if isinstance(kind, kinds.Option):
            return self.pattern_of_option(p, kind, whole)
        method = getattr(self, "pattern_" + type(p).__name__, None)
        if method is None:
            raise self.error(p, "this pattern is not compiled", "classes, lists, tuples and numbers are")
        return method(p, kind, whole)

    def pattern_of_option(self, p, kind, whole):
        self.low.use_option()
        if isinstance(p, ast.MatchSingleton) and p.value is None:
            return [Pattern(Code(("Nothing",), self.place(p)))]
        if isinstance(p, ast.MatchAs) and p.pattern is None:
            return self.pattern_MatchAs(p, kind, whole)
        if isinstance(p, ast.MatchOr):
            return [made for q in p.patterns for made in self.pattern(q, kind, whole)]
        if isinstance(p, ast.MatchAs):
            return self.pattern_MatchAs(p, kind, whole)
        made = []
        for inner in self.pattern(p, kind.inner, None):
            made.append(inner.around(lambda code: Code(("Just(", code, ")"))))
        return made

    def pattern_MatchAs(self, p, kind, whole):
        if p.name is None:
            return [Pattern(Code(("_",), self.place(p)))]
        local = self.local(p.name)
        if p.pattern is None:
            return [Pattern(Code((local,), self.place(p)), names=[(p.name, kind)])]
        pattern, narrowed = self.with_named_fields(p, kind)
        option = isinstance(kind, kinds.Option) and not isinstance(pattern, ast.MatchSingleton)
        made = []
        for inner in self.pattern(pattern, kind, None):
            code = whole
            if whole is None or option:
                inner = inner.named(self)
                code = inner.rebuilt(self)
            if option:
                code = _unwrapped(code)
            made.append(inner.with_let(p.name, kind.inner if option else kind, code, narrowed))
        return made

    def with_named_fields(self, p, kind):
        """(The pattern in `p as x`, what `x` is then known to be): of one class of several each field
        gets a name, so that `x.field` is there."""
        inner = kind.inner if isinstance(kind, kinds.Option) else kind
        cls = self.class_of(p.pattern) if isinstance(p.pattern, ast.MatchClass) else None
        constructor = inner.declaration.constructor(cls) if isinstance(inner, kinds.Data) and cls else None
        if constructor is None or len(inner.declaration.constructors) == 1:
            return p.pattern, None
        given = self.fields_of(p.pattern, cls, constructor)
        binding = dict(zip(inner.declaration.parameters, inner.arguments))
        fields, patterns = {}, []
        for field, field_kind, _ in constructor.fields:
            q, field_kind = given.get(field), kinds.substitute(field_kind, binding)
            wild = q is None or isinstance(q, ast.MatchAs) and q.pattern is None
            name = q.name if isinstance(q, ast.MatchAs) and wild else None
            if name is None:
                name = f"{p.name}.{field}"  # no name of Python's
                if isinstance(field_kind, kinds.Option) and not wild and not isinstance(
                        q, (ast.MatchSingleton, ast.MatchOr)):
                    field_kind = field_kind.inner
                q = ast.copy_location(ast.MatchAs(pattern=None if wild else q, name=name), q or p.pattern)
            fields[field] = self.local(name), field_kind
            patterns.append(q)
        named = ast.MatchClass(cls=p.pattern.cls, patterns=[], kwd_attrs=list(fields), kwd_patterns=patterns)
        return ast.copy_location(named, p.pattern), (constructor, fields)

    def pattern_MatchOr(self, p, kind, whole):
        made = []
        bound = None
        for q in p.patterns:
            names = set(flow.captures(q))
            if bound is not None and names != bound:
                raise self.error(q, "alternatives bind different names")
            bound = names
            made += self.pattern(q, kind, whole)
        return made

    def pattern_MatchSingleton(self, p, kind, whole):
        if p.value is None:
            raise self.error(p, "this is never None", "annotate it as T | None where it may be")
        if kind is not None and kind != BOOL:
            raise self.error(p, f"{p.value} is a bool, and this is none")
        return [Pattern(Code(("true" if p.value else "false",), self.place(p)))]

    def pattern_MatchValue(self, p, kind, whole):
        value = self.constant(p.value)
        if value is NO or not isinstance(value, (int, float)):
            raise self.error(p, "a pattern's value is a number that is known when the model is compiled",
                             "case x if x == ...")
        if isinstance(kind, (kinds.Data, kinds.List, kinds.Tuple_)):
            raise self.error(p, "a number is compared with something that is none")
        if isinstance(value, int) and kind in (INT, None):
            return [Pattern(Code((str(int(value)),), self.place(p)))]
        if isinstance(value, bool) and kind == BOOL:
            return [Pattern(Code(("true" if value else "false",), self.place(p)))]
        t = self.temporary("x")
        test = self.compared_values(p, ast.Eq(), Value(Code((t,)), kind), literal(value), p, p)
        code = self.truth(test, p)
        return [Pattern(Code((t,), self.place(p)), tests=[code])]

    def pattern_MatchSequence(self, p, kind, whole):
        stars = [k for k, q in enumerate(p.patterns) if isinstance(q, ast.MatchStar)]
        if isinstance(kind, kinds.Data):
            constructor = kind.declaration.constructors[0]
            if len(kind.declaration.constructors) == 1 and is_named_tuple(constructor.cls) and not stars:
                binding = dict(zip(kind.declaration.parameters, kind.arguments))
                inner = [kinds.substitute(f[1], binding) for f in constructor.fields]
                if len(inner) != len(p.patterns):
                    raise self.error(p, f"{constructor.cls.__name__} has {len(inner)} fields")
                return self.combined(p, p.patterns, inner, lambda codes: Code(
                    (constructor.name, "(", joined(codes), ")"), self.place(p)))
            raise self.error(p, "a list is compared with data", f"case {constructor.cls.__name__}(...)")
        if isinstance(kind, kinds.Tuple_):
            if stars:
                raise self.error(p, "a tuple is taken apart into all of its parts", "name them")
            if len(kind.parts) != len(p.patterns):
                raise self.error(p, f"this tuple has {len(kind.parts)} parts")
            return self.combined(p, p.patterns, kind.parts,
                                 lambda codes: Code(("(", joined(codes), ")"), self.place(p)))
        if isinstance(kind, (kinds.Scalar, kinds.Tok)):
            raise self.error(p, "a list is compared with a number")
        if isinstance(kind, kinds.Tensor):
            raise self.error(p, "tensors are not taken apart by patterns", "x[0], x[1:]")
        if kind is None:
            raise self.error(p, "whether this is a list or a tuple is not known here",
                             "annotate it: xs: list[int] = ...")
        element = kind.element
        if not stars:
            return self.combined(p, p.patterns, [element] * len(p.patterns),
                                 lambda codes: Code(("[", joined(codes), "]"), self.place(p)))
        if len(stars) > 1 or stars[0] != len(p.patterns) - 1:
            raise self.error(p.patterns[stars[0]], "'*' stands at the end of a pattern here",
                             "case [first, *rest]; xs[-1] is the last one")
        star = p.patterns[-1]
        inner = p.patterns[:-1]
        if star.name is None:
            tail = Pattern(Code(("_",), self.place(star)))
        else:
            tail = Pattern(Code((self.local(star.name),), self.place(star)), names=[(star.name, kind)])
        made = []
        for combination in itertools.product(*[self.pattern(q, element) for q in inner]):
            codes = []
            for c in [*combination, tail]:
                codes += [" :: ", c.code] if codes else [c.code]
            made.append(Pattern.of([*combination, tail], Code(tuple(codes), self.place(p))))
        return made

    def combined(self, p, patterns, parts, make):
        made = []
        for combination in itertools.product(*[self.pattern(q, k) for q, k in zip(patterns, parts)]):
            made.append(Pattern.of(list(combination), make([c.code for c in combination])))
            if len(made) > MOST_ARMS:
                raise self.error(p, f"this pattern stands for more than {MOST_ARMS}", "write several cases")
        return made

    def class_of(self, p):
        """The class that a class pattern names."""
        node = p.cls
        if isinstance(node, ast.Name):
            if node.id in self.env:
                return None
            found, value = self.find_global(node.id)
            return value if found else None
        if isinstance(node, ast.Attribute):
            value = self.quiet(node)
            return getattr(value.module, "object", None) if value is not None else None
        return None

    def pattern_MatchClass(self, p, kind, whole):
        cls = self.class_of(p)
        if cls in (int, float, bool) or cls in (list, tuple):
            return self.pattern_of_builtin(p, cls, kind, whole)
        if cls is None or not self.low.data.is_record(cls):
            raise self.error(p.cls, f"'{ast.unparse(p.cls)}' is no dataclass or NamedTuple")
        if kind is not None and not isinstance(kind, kinds.Data):
            raise self.error(p, f"this is never a {cls.__name__}")
        if isinstance(kind, kinds.Data):
            declaration = kind.declaration
        else:
            try:
                declaration = self.constructed_type(cls)
            except Unknown as error:
                raise self.error(p, str(error), error.help) from None
        constructor = declaration.constructor(cls)
        if constructor is None:
            named = " | ".join(c.cls.__name__ for c in declaration.constructors)
            raise self.error(p, f"{cls.__name__} is not one of {named}")
        binding = dict(zip(declaration.parameters, kind.arguments)) if isinstance(kind, kinds.Data) else {}
        given = self.fields_of(p, cls, constructor)
        wild = ast.copy_location(ast.MatchAs(), p)
        patterns = [given.get(name, wild) for name, _, _ in constructor.fields]
        parts = [kinds.substitute(k, binding) for _, k, _ in constructor.fields]
        if not patterns:
            return [Pattern(Code((constructor.name,), self.place(p)))]
        return self.combined(p, patterns, parts, lambda codes: Code(
            (constructor.name, "(", joined(codes), ")"), self.place(p)))

    def fields_of(self, p, cls, constructor):
        """{field: pattern} of a class pattern."""
        positions = getattr(cls, "__match_args__", ())
        given = {}
        if len(p.patterns) > len(positions):
            raise self.error(p, f"{cls.__name__} has {len(positions)} positions, and {len(p.patterns)} are "
                             "named")
        for q, name in zip(p.patterns, positions):
            given[name] = q
        for name, q in zip(p.kwd_attrs, p.kwd_patterns):
            if constructor.position(name) is None:
                raise self.error(q, f"{cls.__name__} has no field '{name}'")
            if name in given:
                raise self.error(q, f"'{name}' is named twice")
            given[name] = q
        return given

    def pattern_of_builtin(self, p, cls, kind, whole):
        wanted = {int: INT, float: FLOAT, bool: BOOL}.get(cls)
        fits = kind == wanted if wanted is not None else isinstance(
            kind, kinds.List if cls is list else kinds.Tuple_)
        if not fits or p.kwd_patterns or len(p.patterns) > 1:
            raise self.error(p, f"'{cls.__name__}' as a pattern asks for a type, which is always known",
                             "case x")
        if not p.patterns:
            return [Pattern(Code(("_",), self.place(p)))]
        return self.pattern(p.patterns[0], kind, whole)


def _irrefutable(p):
    return isinstance(p, ast.MatchAs) and (p.pattern is None or _irrefutable(p.pattern))


def _unwrapped(code):
    """What stands in `Just(...)`."""
    parts = code.parts
    while len(parts) == 1 and isinstance(parts[0], Code):
        parts = parts[0].parts
    if parts and parts[0] == "Just(":
        return parts[1]
    return code
