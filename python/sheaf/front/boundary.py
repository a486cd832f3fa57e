"""Between Python's values and those of a Program: defaults of arguments, classes, None."""
import contextlib
import dataclasses
import inspect
import re

from . import kinds


@dataclasses.dataclass(slots=True, eq=False)
class Just:
    """What stands for a value that might have been None, inside of a Program."""
    value: object


def classes(program, entry):
    """{constructor: class} of what goes in and out at an entry, as `sheaf.compile` takes it."""
    found, seen = {}, set()
    pending = [p.kind for p in program.signatures[entry]] + [program.results[entry]]
    while pending:
        kind = pending.pop()
        if isinstance(kind, kinds.Option):
            found["Nothing"], found["Just"] = type(None), Just
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


def _has_option(kind, seen=()):
    if isinstance(kind, kinds.Option):
        return True
    if isinstance(kind, kinds.List):
        return _has_option(kind.element, seen)
    if isinstance(kind, kinds.Tuple_):
        return any(_has_option(p, seen) for p in kind.parts)
    if isinstance(kind, kinds.Data):
        if kind.declaration in seen:
            return any(_has_option(a, seen) for a in kind.arguments)
        inner = (*seen, kind.declaration)
        return any(_has_option(f[1], inner) for c in kind.declaration.constructors for f in c.fields) or any(
            _has_option(a, inner) for a in kind.arguments)
    return False


def _convert(value, kind, binding, into):
    """With Just around what might be None (`into`), or without. Iterative, as data may be deep."""
    result = [None]
    stack = [("visit", value, kind, binding, result, 0)]
    while stack:
        task = stack.pop()
        if task[0] == "visit":
            _, value, kind, binding, out, at = task
            kind = kinds.substitute(kind, binding) if binding else kind
            if not _has_option(kind) or value is None:
                out[at] = value
            elif isinstance(kind, kinds.Option):
                inner = [None]
                stack.append(("just", None, None, None, out, at, inner))
                given = value if into or not isinstance(value, Just) else value.value
                stack.append(("visit", given, kind.inner, binding, inner, 0))
            elif isinstance(kind, kinds.List):
                parts = list(value)
                stack.append(("list", None, None, None, out, at, parts))
                for i, part in enumerate(list(parts)):
                    stack.append(("visit", part, kind.element, binding, parts, i))
            elif isinstance(kind, kinds.Tuple_) and isinstance(value, tuple) and len(value) == len(kind.parts):
                parts = list(value)
                stack.append(("tuple", None, None, None, out, at, parts))
                for i, (part, k) in enumerate(zip(value, kind.parts)):
                    stack.append(("visit", part, k, binding, parts, i))
            elif isinstance(kind, kinds.Data):
                constructor = kind.declaration.constructor(type(value))
                if constructor is None:
                    out[at] = value
                    continue
                inner = dict(zip(kind.declaration.parameters, kind.arguments))
                parts = [getattr(value, name) for name, _, _ in constructor.fields]
                stack.append(("data", constructor, None, None, out, at, parts))
                for i, (_, k, _) in enumerate(constructor.fields):
                    stack.append(("visit", parts[i], k, inner, parts, i))
            else:
                out[at] = value
        else:
            what, constructor, _, _, out, at, parts = task
            if what == "just":
                out[at] = Just(parts[0]) if into else parts[0]
            elif what == "list":
                out[at] = parts
            elif what == "tuple":
                out[at] = tuple(parts)
            else:
                out[at] = _made(constructor, parts)
    return result[0]


def _made(constructor, parts):
    cls = constructor.cls
    if issubclass(cls, tuple):
        return tuple.__new__(cls, parts)
    # Its constructor may do more than to set fields.
    made = object.__new__(cls)
    for (name, _, _), part in zip(constructor.fields, parts):
        object.__setattr__(made, name, part)
    return made


def is_encoded(column):
    """Whether it is a Dataset, which has all columns."""
    return type(column).__name__ == "Dataset" and type(column).__module__ == "sheaf.data"


def is_plain(program, entry):
    """Whether values go in and out of an entry as they are."""
    return not any(_has_option(p.kind) for p in program.signatures[entry]) and not _has_option(
        program.results[entry])


def arguments(program, entry, columns):
    """The columns of a call, with those of defaults, and None as the Program has it."""
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
    for i, (p, column) in enumerate(zip(parameters, columns)):
        if _has_option(p.kind):
            columns[i] = [_convert(value, p.kind, {}, True) for value in column]
    return columns


@contextlib.contextmanager
def names(program, entry, model):
    """Errors about arguments call them as Python does, and not as the text, where that is not the same."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        told = dict(zip(model.arguments, (p.name for p in program.signatures[entry])))
        other = {text: name for text, name in told.items() if text != name}
        if not other or len(error.args) != 1 or not isinstance(error.args[0], str):
            raise
        found = "|".join(map(re.escape, other))
        # At the beginning: `x_[0].left: ...`, `x_: ...`; and `x has 3 values, and y_ has 2`.
        error.args = re.sub(rf"^({found})(?=\[\d+\]|: | has )|(?<=, and )({found})(?= has )",
                            lambda m: other[m[0]], error.args[0]),
        raise


def results(program, entry, result):
    """The results of a call, with None where the Program has Nothing."""
    kind = program.results[entry]
    if not _has_option(kind):
        return result
    if isinstance(result, tuple) and isinstance(kind, kinds.Tuple_) and len(result) == len(kind.parts):
        return tuple([_convert(v, k, {}, False) for v in part] if _has_option(k) else part
                     for part, k in zip(result, kind.parts))
    return [_convert(value, kind, {}, False) for value in result]
