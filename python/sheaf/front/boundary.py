"""Between Python's values and those of a Program: defaults of arguments, classes."""
import contextlib
import inspect
import re
import typing

from . import kinds
from .messages import in_python


def classes(program, entry):
    """{constructor: class} of what goes in and out at an entry, as `sheaf.compile` takes it."""
    found, seen = {}, set()
    pending = [p.kind for p in program.signatures[entry]] + [program.results[entry]]
    while pending:
        kind = pending.pop()
        if isinstance(kind, kinds.Option):
            found["Nothing"], found["Just"] = type(None), typing.Optional
            pending.append(kind.inner)
        elif isinstance(kind, kinds.List):
            pending.append(kind.element)
        elif isinstance(kind, kinds.Tuple_):
            pending += kind.parts
        elif isinstance(kind, kinds.Data):
            pending += kind.arguments
            if kind.declaration not in seen:
                seen.add(kind.declaration)
                for constructor in kind.declaration.constructors:
                    found[constructor.name] = constructor.cls
                    pending += [k for _, k, _ in constructor.fields]
    return found


def is_encoded(column):
    """Whether it is a Dataset, which has all columns."""
    return type(column).__name__ == "Dataset" and type(column).__module__ == "sheaf.data"


def arguments(program, entry, columns):
    """The columns of a call, with those of defaults."""
    parameters = program.signatures[entry]
    columns = list(columns)
    if len(columns) == 1 and is_encoded(columns[0]):
        return columns
    if len(columns) < len(parameters) and columns:
        count = None
        for p in parameters[len(columns):]:
            if p.default is inspect.Parameter.empty:
                break
            if count is None:
                columns[0] = columns[0] if hasattr(columns[0], "__len__") else list(columns[0])
                count = len(columns[0])
            columns.append([p.default] * count)
    if len(columns) != len(parameters):
        names = ", ".join(p.name for p in parameters)
        raise TypeError(f"'{entry}' takes {len(parameters)} {'list' if len(parameters) == 1 else 'lists'} ({names}), "
                        f"and {len(columns)} {'is' if len(columns) == 1 else 'are'} given")
    return columns


@contextlib.contextmanager
def names(program, entry, model):
    """Errors about arguments call them and their types as Python does, and not as the text."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        if len(error.args) != 1 or not isinstance(error.args[0], str):
            raise
        told = dict(zip(model.arguments, (p.name for p in program.signatures[entry])))
        other = {text: name for text, name in told.items() if text != name}
        text = in_python(error.args[0], program.names)
        if other:
            found = "|".join(map(re.escape, other))
            # At the beginning: `x_[0].left: ...`, `x_: ...`; and `x has 3 values, and y_ has 2`.
            text = re.sub(rf"^({found})(?=\[\d+\]|: | has )|(?<=, and )({found})(?= has )",
                          lambda m: other[m[0]], text)
        error.args = text,
        raise
