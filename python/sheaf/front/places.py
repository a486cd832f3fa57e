"""Places in Python files, and errors that Python itself draws there."""
import linecache
from dataclasses import dataclass, field

from ..errors import CompileError, Diagnostic


@dataclass(frozen=True)
class Place:
    """A stretch of a Python file. Lines count from 1, columns from 1 in characters; the end is after
    the last character."""
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str = field(compare=False, repr=False, default="")

    def details(self):
        """What SyntaxError takes."""
        return (self.file, self.line, self.column, self.text, self.end_line, self.end_column)


def _characters(line, octets):
    return len(line.encode()[:octets].decode(errors="replace"))


def place_of(source, node):
    """The Place of a node of the tree of `source` (a capture.Source)."""
    lines = source.lines
    line, end = node.lineno, getattr(node, "end_lineno", None) or node.lineno
    text = lines[line - 1] if line <= len(lines) else ""
    last = lines[end - 1] if end <= len(lines) else ""
    return Place(source.file, line, _characters(text, node.col_offset) + 1, end,
                 _characters(last, getattr(node, "end_col_offset", None) or 0) + 1, text)


def head_of(source, node):
    """The first line of what may be long, a function or a loop."""
    place = place_of(source, node)
    if place.end_line == place.line:
        return place
    end = len(place.text.split("#")[0].rstrip()) if "#" in place.text else len(place.text.rstrip())
    return Place(place.file, place.line, place.column, place.line, max(end + 1, place.column + 1),
                 place.text)


def refusal(place, message, help=""):
    """A CompileError at a place. `help` says what to write instead."""
    return compile_error([diagnostic(place, message, help)])


def diagnostic(place, message, help="", severity="error", notes=()):
    """A Diagnostic at a Place, or of none."""
    if place is None:
        return Diagnostic(severity, None, 0, 0, 0, 0, message, help, f"{severity}: {message}", tuple(notes))
    line = place.text.rstrip("\n")
    end = place.end_column if place.end_line == place.line else len(line) + 1
    text = (f"{place.file}:{place.line}:{place.column}: {severity}: {message}\n{line}\n"
            + " " * (place.column - 1) + "^" + "~" * (end - place.column - 1)
            + (f"\nhelp: {help}" if help else ""))
    return Diagnostic(severity, place.file, place.line, place.column, place.end_line, place.end_column,
                      message, help, text, tuple(notes))


def compile_error(diagnostics):
    """The CompileError of diagnostics, which Python draws at the first one's place."""
    return CompileError.of(diagnostics, lambda file, line: linecache.getline(file, line) or None)
