"""The front end: from ordinary Python to `.sheaf`. README.md says where to begin reading."""
from .declared import Program
from .lowering import Lowering

__all__ = ["Lowering", "Program", "lower"]


def lower(target, entries, *, main=None, source=None, extra=None):
    """The Program of a Module or a function.

    `entries` are (name, function, bound) of what can be called from outside, `main` the name of the one
    that is called "main" in the text. `source` is the text that has the functions, where none can be
    found; `extra` are names that annotations may speak of. Raises CompileError.
    """
    lowering = Lowering(target, source=source, extra=extra)
    lowering.main = main
    return lowering.run(entries)
