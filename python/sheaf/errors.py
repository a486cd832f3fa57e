"""What goes wrong, by kind: a source, an instance, a file, what is missing, Sheaf itself.

Arguments that do not do are Python's own `TypeError`, `ValueError` and `OverflowError`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["ArtefactError", "CompileError", "CompilerMissing", "Diagnostic", "InstanceError",
           "InstanceErrors", "InternalError", "SheafError", "Stopped"]


class SheafError(Exception):
    """All that Sheaf raises beside Python's own exceptions."""


@dataclass(frozen=True)
class Diagnostic:
    """Something about a source. Lines and columns count from 1; the end is after the last
    character. Without a place `file` is None and the numbers are 0."""

    severity: str  # "error", "warning", "note"
    file: str | None
    line: int
    column: int
    end_line: int
    end_column: int
    message: str  # one phrase
    help: str  # the likely remedy, or ""
    text: str  # as the command prints it, with the line and carets
    notes: tuple[Diagnostic, ...] = ()

    @classmethod
    def from_fields(cls, fields):
        """Of a tuple in the order of the members."""
        return cls(*fields[:9], tuple(map(cls.from_fields, fields[9])))

    def __str__(self):
        return self.text.rstrip("\n")


class CompileError(SyntaxError, SheafError):
    """A source has errors. Python draws the line and the caret of the first one, as for its own
    syntax errors; `diagnostics` has all of them."""

    diagnostics: tuple[Diagnostic, ...] = ()

    @classmethod
    def of(cls, diagnostics, line_of):
        """`line_of(file, line)`: the text of a line, or None."""
        errors = [d for d in diagnostics if d.severity == "error"] or list(diagnostics)
        if not errors:
            return cls("the source could not be compiled")
        first = errors[0]
        # In the message, as Python 3.11 itself prints no notes of syntax errors.
        message = first.message + (f"\nhelp: {first.help}" if first.help else "")
        if first.file is None:
            error = cls(message)
        else:
            error = cls(message, (first.file, first.line, first.column,
                                        line_of(first.file, first.line), first.end_line,
                                        first.end_column))
        error.diagnostics = tuple(diagnostics)
        for note in first.notes:
            error.add_note(str(note))
        for other in errors[1:]:
            error.add_note(str(other))
        return error

    def __reduce__(self):
        return _compile_error, (self.args, self.diagnostics, getattr(self, "__notes__", []))


def _compile_error(args, diagnostics, notes):
    error = CompileError(*args)
    error.diagnostics = diagnostics
    for note in notes:
        error.add_note(note)
    return error


class InstanceError(SheafError, RuntimeError):
    """Why one instance has no result: a `check` failed, an index is out of range, a limit.

    `instance` is its number in the call; `reason` what happened; `cause` one of "program",
    "limit", "memory", "deadline", "cancelled"; `file` and `line` where in the source it happened,
    or None.
    """

    def __init__(self, instance, reason, cause):
        super().__init__(instance, reason, cause)
        self.instance, self.reason, self.cause = instance, reason, cause
        place = _PLACE.search(reason)
        self.file = place and place["file"]
        self.line = place and int(place["line"])

    def __str__(self):
        return f"instance {self.instance}: {self.reason}"


_PLACE = re.compile(r"(?P<file>[^\s:]+):(?P<line>\d+)")


class InstanceErrors(ExceptionGroup, SheafError):
    """Instances of a call failed; `exceptions` are their InstanceErrors. The others had results,
    which `errors="return"` gives."""

    def derive(self, excs):
        return InstanceErrors(self.message, excs)


class ArtefactError(SheafError, ValueError):
    """A file is no compiled model, is damaged, or is for another machine or a newer Sheaf."""


class CompilerMissing(SheafError, ImportError):
    """Compiling needs the package `sheaf-compiler`."""


class Stopped(SheafError, RuntimeError):
    """What was asked for was given up."""


class InternalError(SheafError, RuntimeError):
    """A bug of Sheaf's: please report it."""


def raise_failures(failures, count):
    """Raises the failures of a call of `count` instances."""
    __tracebackhide__ = True
    raise InstanceErrors(f"{len(failures)} of {count} instances failed", failures)
