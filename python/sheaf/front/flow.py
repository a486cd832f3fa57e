"""Questions about statements: what they assign, where they jump, what is read after them.

`live` is the usual backward analysis on the tree; loops go round until nothing changes.
"""
import ast

# What the lowering puts between statements when it writes loops out; see statements.py.


class Bind(ast.stmt):
    """Gives the target of a loop that is written out one element. `value` is a Value."""
    _fields = ()

    def __init__(self, target, value, origin):
        super().__init__()
        self.target, self.value, self.origin = target, value, origin


class Mark(ast.stmt):
    """The end of one turn of a loop that is written out, or of all of it."""
    _fields = ()

    def __init__(self, loop, what):
        super().__init__()
        self.loop, self.what = loop, what  # what: "turn" or "loop"


class Known(ast.stmt):
    """Says that a condition holds from here on, or does not: the one of a loop that has ended."""
    _fields = ("test",)

    def __init__(self, test, holds, origin):
        super().__init__(test)
        self.holds, self.origin = holds, origin


def targets(node):
    """Names that an assignment's target assigns."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, (ast.Tuple, ast.List)):
        return [name for element in node.elts for name in targets(element)]
    if isinstance(node, ast.Starred):
        return targets(node.value)
    return []


def captures(pattern):
    """Names that a pattern of match binds."""
    found = []
    for node in ast.walk(pattern):
        if isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            found.append(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.append(node.rest)
    return list(dict.fromkeys(found))


CHANGES = {"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse"}


def changed_list(statement):
    """The name of the list that a statement such as `xs.append(x)` changes, or None."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        f = statement.value.func
        if isinstance(f, ast.Attribute) and f.attr in CHANGES and isinstance(f.value, ast.Name):
            return f.value.id
    return None


def changed_in_place(statements):
    """Names of lists that statements may change where they are: by append and the like, and by +=."""
    found = set()
    for s in statements:
        for n in ast.walk(s):
            if isinstance(n, ast.Expr):
                found.add(changed_list(n))
            elif isinstance(n, ast.AugAssign):
                found |= set(targets(n.target))
    return found - {None}


def assigned(statements):
    """Names that statements may assign, in order."""
    found = []

    def visit(body):
        for s in body:
            if isinstance(s, ast.Assign):
                for t in s.targets:
                    found.extend(targets(t))
            elif isinstance(s, (ast.AugAssign, ast.AnnAssign)):
                if not (isinstance(s, ast.AnnAssign) and s.value is None):
                    found.extend(targets(s.target))
            elif isinstance(s, Bind):
                found.extend(targets(s.target))
            elif isinstance(s, ast.For):
                found.extend(targets(s.target))
                visit(s.body)
                visit(s.orelse)
            elif isinstance(s, (ast.While, ast.If)):
                visit(s.body)
                visit(s.orelse)
            elif isinstance(s, ast.Match):
                for case in s.cases:
                    found.extend(captures(case.pattern))
                    visit(case.body)
            else:
                name = changed_list(s)
                if name:
                    found.append(name)
    visit(statements)
    return list(dict.fromkeys(found))


def jumps(statements):
    """Which of "return", "break", "continue" and "raise" leave these statements."""
    found = set()
    for s in statements:
        if isinstance(s, ast.Return):
            found.add("return")
        elif isinstance(s, ast.Raise):
            found.add("raise")
        elif isinstance(s, ast.Break):
            found.add("break")
        elif isinstance(s, ast.Continue):
            found.add("continue")
        elif isinstance(s, ast.If):
            found |= jumps(s.body) | jumps(s.orelse)
        elif isinstance(s, ast.Match):
            for case in s.cases:
                found |= jumps(case.body)
        elif isinstance(s, (ast.For, ast.While)):
            found |= (jumps(s.body) - {"break", "continue"}) | jumps(s.orelse)
    return found


def is_true(node):
    return isinstance(node, ast.Constant) and bool(node.value)


def always_jumps(statements):
    """Whether no path falls off the end."""
    for s in statements:
        if isinstance(s, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
            return True
        if isinstance(s, ast.If) and s.orelse and always_jumps(s.body) and always_jumps(s.orelse):
            return True
        if isinstance(s, ast.Match) and s.cases and all(always_jumps(c.body) for c in s.cases):
            return True
        if isinstance(s, ast.While) and is_true(s.test) and "break" not in jumps(s.body):
            return True
    return False


def names(node):
    """Names that an expression reads; those that its lambdas and comprehensions bind are not its own."""
    found = set()

    def visit(n, bound):
        if isinstance(n, ast.Name):
            if n.id not in bound and isinstance(n.ctx, ast.Load):
                found.add(n.id)
        elif isinstance(n, ast.Lambda):
            for default in [*n.args.defaults, *filter(None, n.args.kw_defaults)]:
                visit(default, bound)
            visit(n.body, bound | {a.arg for a in n.args.args})
        elif isinstance(n, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
            inner = set(bound)
            for g in n.generators:
                visit(g.iter, inner)
                inner |= set(targets(g.target))
                for test in g.ifs:
                    visit(test, inner)
            for part in ([n.key, n.value] if isinstance(n, ast.DictComp) else [n.elt]):
                visit(part, inner)
        else:
            for child in ast.iter_child_nodes(n):
                visit(child, bound)
    if node is not None:
        visit(node, frozenset())
    return found


class Live:
    """What is read later. `out`: after the statements; `exits`: after break, after continue."""

    def before(self, statements, out, on_break=frozenset(), on_continue=frozenset()):
        live = set(out)
        for s in reversed(statements):
            if isinstance(s, Mark):
                on_break, on_continue = on_break | live, on_continue | live
            live = self._one(s, live, on_break, on_continue)
        return live

    def _one(self, s, out, on_break, on_continue):
        if isinstance(s, ast.Return):
            return names(s.value)
        if isinstance(s, ast.Raise):
            return names(s.exc) | names(s.cause)
        if isinstance(s, ast.Break):
            return set(on_break)
        if isinstance(s, ast.Continue):
            return set(on_continue)
        if isinstance(s, ast.Assign):
            killed = {n for t in s.targets for n in targets(t)}
            read = names(s.value)
            for t in s.targets:
                read |= names(t)
            return (out - killed) | read
        if isinstance(s, ast.AnnAssign):
            if s.value is None:
                return out
            return (out - set(targets(s.target))) | names(s.value)
        if isinstance(s, ast.AugAssign):
            return out | set(targets(s.target)) | names(s.value) | names(s.target)
        if isinstance(s, Bind):
            return out - set(targets(s.target))
        if isinstance(s, Mark):
            return out
        if isinstance(s, ast.If):
            return names(s.test) | self.before(s.body, out, on_break, on_continue) | self.before(
                s.orelse, out, on_break, on_continue)
        if isinstance(s, ast.Match):
            live = set(out)
            for case in s.cases:
                inner = self.before(case.body, out, on_break, on_continue) | names(case.guard)
                live |= inner - set(captures(case.pattern))
                for node in ast.walk(case.pattern):
                    if isinstance(node, ast.MatchValue):
                        live |= names(node.value)
                    elif isinstance(node, ast.MatchClass):
                        live |= names(node.cls)
            return live | names(s.subject)
        if isinstance(s, ast.For):
            return names(s.iter) | self._loop(s, out, on_break, on_continue, set(targets(s.target)))
        if isinstance(s, ast.While):
            return self._loop(s, out, on_break, on_continue, set(), names(s.test))
        read = set()
        for child in ast.iter_child_nodes(s):
            read |= names(child)
        return out | read

    def _loop(self, s, out, on_break, on_continue, killed, test=frozenset()):
        after = self.before(s.orelse, out, on_break, on_continue)
        live = after | test
        while True:
            inner = self.before(s.body, live, out, live) - killed
            if inner | live == live:
                return live
            live |= inner

    def carried(self, s, out):
        """Names that are read at the beginning of a turn of a loop or after it."""
        killed = set(targets(s.target)) if isinstance(s, ast.For) else set()
        test = names(s.test) if isinstance(s, ast.While) else set()
        return self._loop(s, out, frozenset(), frozenset(), killed, test) | set(out)
