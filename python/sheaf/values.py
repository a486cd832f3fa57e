"""Python's side of data types: classes for constructors, when the program brings none."""

from __future__ import annotations

import dataclasses
import keyword
import types
import typing


def attribute(name):
    """The attribute for a field, or the class for a constructor: words of Python get a `_`."""
    return name + "_" if keyword.iskeyword(name) else name


_ANNOTATIONS = {"int": int, "float": float, "bool": bool, "token": int, "list": list,
                "tuple": tuple}


def make_classes(description, module):
    """A dataclass with slots for each constructor, by its name. A constructor `None` without
    fields is Python's None."""
    made = {}
    for _, constructors in description["data"]:
        for name, fields in constructors:
            if name in made:
                continue
            if name == "None" and not fields:
                made[name] = type(None)
                continue
            annotated = []
            for field, kind in fields:
                of = description["types"][kind]
                annotated.append((attribute(field), _ANNOTATIONS.get(of["kind"], typing.Any)))
            # Arrays have no truth value, so objects are compared by identity.
            made[name] = dataclasses.make_dataclass(attribute(name), annotated, slots=True, eq=False,
                                                    namespace={"__module__": module})
    return made


def namespace(description, classes):
    """The classes as attributes, and for each type of data with several constructors their union
    under its name."""
    names = {attribute(name): made for name, made in classes.items()}
    for name, constructors in description["data"]:
        plain = attribute(name.partition("<")[0])
        if plain not in names:
            names[plain] = typing.Union[tuple(classes[c] for c, _ in constructors)]
    return types.SimpleNamespace(**names)
