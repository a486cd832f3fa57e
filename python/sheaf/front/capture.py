"""From a running function to its source, with proof that the one is the other.

The text is found by the file and the line of the function's code object (linecache knows files,
notebook cells and, from Python 3.13 on, what was typed at the prompt). It is compiled again, and what
comes out must be the code that runs: instructions, names and constants. A class's text is never
looked for, as nothing says which class statement made it.
"""
import ast
import functools
import inspect
import linecache
import sys
import types

from .places import Place, place_of, refusal

_FUTURE = 0
for _name in __import__("__future__").all_feature_names:
    _FUTURE |= getattr(__import__("__future__"), _name).compiler_flag


class Source:
    """One text: a file, a cell, or what was given as `source=`. Its tree and its code objects."""

    def __init__(self, file, text, flags):
        self.file, self.text, self.lines = file, text, text.splitlines()
        self.tree = ast.parse(text, file)
        self._flags = flags
        self._codes = None

    def nodes(self):
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                yield node

    def codes(self):
        """All code objects of functions that compiling the text gives, in each way in which the
        text may have been compiled."""
        if self._codes is None:
            self._codes = []
            for tree in _as_imported(self.tree, self.text, self.file):
                made = compile(tree, self.file, "exec", flags=self._flags, dont_inherit=True)
                pending = [made]
                while pending:
                    code = pending.pop()
                    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
                    self._codes += inner
                    pending += inner
        return self._codes


def _as_imported(tree, text, file):
    """The tree, and as pytest's import hook changes it where that is at work."""
    yield tree
    rewriter = sys.modules.get("_pytest.assertion.rewrite")
    if rewriter is not None and hasattr(rewriter, "rewrite_asserts"):
        changed = ast.parse(text, file)
        try:
            rewriter.rewrite_asserts(changed, text.encode(), file, None)
        except Exception:  # of another version: then the text is taken as it is
            return
        yield changed


@functools.lru_cache(maxsize=64)
def _source(file, text, flags):
    return Source(file, text, flags)


class Function:
    """A function of a model: what runs, the node of its source, and where that stands."""

    def __init__(self, function, source, node):
        self.function, self.source, self.node = function, source, node
        self.name = function.__name__

    def place(self, node):
        return place_of(self.source, node)


def _place_without_text(code):
    return Place(code.co_filename, code.co_firstlineno, 1, code.co_firstlineno, 2,
                 linecache.getline(code.co_filename, code.co_firstlineno))


def _no_source(code, reason):
    return refusal(_place_without_text(code), f"the source of '{code.co_name}' is not to be found: {reason}",
                   "save it as a file, use IPython or Python 3.13, or give the text: "
                   "sf.jit(model, source=text)")


def same_code(a, b):
    """Whether two code objects do the same: instructions, names and constants."""
    pending = [(a, b)]
    while pending:
        a, b = pending.pop()
        if (a.co_code, a.co_names, a.co_varnames, a.co_freevars, a.co_cellvars, a.co_argcount,
                a.co_kwonlyargcount, a.co_posonlyargcount, len(a.co_consts)) != (
                b.co_code, b.co_names, b.co_varnames, b.co_freevars, b.co_cellvars, b.co_argcount,
                b.co_kwonlyargcount, b.co_posonlyargcount, len(b.co_consts)):
            return False
        for x, y in zip(a.co_consts, b.co_consts):
            if isinstance(x, types.CodeType) and isinstance(y, types.CodeType):
                pending.append((x, y))
            elif not _same_constant(x, y):
                return False
    return True


def _same_constant(x, y):
    if type(x) is not type(y):
        return False
    if isinstance(x, (tuple, frozenset)):
        return len(x) == len(y) and (x == y) and repr(x) == repr(y)
    return x == y and repr(x) == repr(y)


def capture(function, source=None):
    """The Function of a Python function. `source` is a text that has it, where none can be found.

    Raises CompileError where there is no text, or where the text is not what runs.
    """
    code = function.__code__
    if source is None:
        file = code.co_filename
        linecache.checkcache(file)
        lines = linecache.getlines(file, function.__globals__)
        if not lines and hasattr(linecache, "_register_code"):
            try:
                lines = inspect.findsource(function)[0]
            except (OSError, TypeError):
                lines = []
        if not lines:
            where = ("it was typed at the prompt or given to exec" if file.startswith("<")
                     else f"{file} is not there")
            raise _no_source(code, where)
        text = "".join(lines)
    else:
        file, text = "<source>", source
        # So that tracebacks show the line.
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    try:
        found = _source(file, text, code.co_flags & _FUTURE)
    except (SyntaxError, ValueError) as error:
        if source is not None:
            raise
        raise _no_source(code, f"{file} is not Python any more ({error})") from None
    candidates = [c for c in found.codes() if c.co_name == code.co_name and same_code(c, code)
                  and c.co_flags == code.co_flags]
    if source is None:
        candidates = [c for c in candidates if c.co_firstlineno == code.co_firstlineno]
    else:
        named = [c for c in candidates if getattr(c, "co_qualname", "") == getattr(
            code, "co_qualname", "")]
        candidates = named or candidates
    if not candidates:
        if source is not None:
            raise refusal(_place_without_text(code),
                          f"the text given as 'source' has no '{code.co_qualname}' that does what the "
                          "running one does")
        if file.startswith("<"):
            raise _no_source(code, f"what Python has kept of {file} is another text")
        raise refusal(_place_without_text(code),
                      f"the file has changed since '{code.co_name}' was imported: its source is not what "
                      "runs", "import it again, or start anew")
    line = candidates[0].co_firstlineno
    for node in found.nodes():
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(d.lineno for d in decorators)])
        if first == line and getattr(node, "name", "<lambda>") == code.co_name:
            result = Function(function, found, node)
            if isinstance(node, ast.AsyncFunctionDef):
                raise refusal(result.place(node), "an async function cannot be compiled",
                              "write it as an ordinary function; calls of the compiled one can be "
                              "awaited")
            if isinstance(node, ast.Lambda):
                raise refusal(result.place(node), "a lambda has no types of its arguments",
                              "write it as a function: def f(x: Float32[\"n\"]) -> ...")
            return result
    raise _no_source(code, f"line {line} of {file} begins no function")
