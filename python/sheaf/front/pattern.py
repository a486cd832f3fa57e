"""One pattern of `.sheaf`, with what it binds."""

from .text import Code


class Pattern:
    """`code` is the pattern; `names` are (name, Kind) that it binds; `lets` (name, Kind, Code,
    and, or None, the class that it is known to be of and its fields) that the arm begins with; `tests` are what its guard has to ask."""

    __slots__ = ("code", "names", "lets", "tests")

    def __init__(self, code, names=(), lets=(), tests=()):
        self.code, self.names, self.lets, self.tests = code, list(names), list(lets), list(tests)

    @staticmethod
    def of(parts, code):
        made = Pattern(code)
        for p in parts:
            made.names += p.names
            made.lets += p.lets
            made.tests += p.tests
        return made

    def around(self, make):
        return Pattern(make(self.code), self.names, self.lets, self.tests)

    def with_let(self, name, kind, code, narrowed=None):
        return Pattern(self.code, self.names, [*self.lets, (name, kind, code, narrowed)], self.tests)

    def named(self, lowering):
        """The same without `_`: each has a name, so that the whole can be made again."""
        return Pattern(_named(self.code, lowering), self.names, self.lets, self.tests)

    def rebuilt(self, lowering):
        """The expression that makes what this pattern matches: patterns are written as expressions are."""
        return self.code


def _named(code, lowering):
    parts = []
    for part in code.parts:
        if isinstance(part, Code):
            parts.append(_named(part, lowering))
        elif part == "_":
            parts.append(lowering.temporary("part"))
        else:
            parts.append(part)
    return Code(tuple(parts), code.origin)
