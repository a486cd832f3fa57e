"""Dataclasses, NamedTuples and unions of them: the data types of a model."""
import dataclasses
import sys
import typing

from . import kinds
from .annotations import Unknown, dims_of, is_union
from .names import spelled


class Constructor:
    """One class: its name in `.sheaf` and its fields (name, Kind, default or MISSING)."""

    def __init__(self, cls, name):
        self.cls, self.name, self.fields = cls, name, []
        self.names = {}  # of fields, in .sheaf

    def position(self, field):
        for i, (name, _, _) in enumerate(self.fields):
            if name == field:
                return i
        return None


class Declaration:
    """A data type: its constructors, in order, and its type parameters."""

    def __init__(self, name, parameters):
        self.name, self.parameters, self.constructors = name, parameters, []

    def constructor(self, cls):
        return next((c for c in self.constructors if c.cls is cls), None)

    def __repr__(self):
        return f"data {self.name}"

    def text(self):
        head = self.name + (f"<{', '.join(self.parameters)}>" if self.parameters else "")
        made = []
        for c in self.constructors:
            fields = ", ".join(f"{c.names[name]}: {kinds.text(kind)}" for name, kind, _ in c.fields)
            made.append(c.name + (f"({fields})" if fields else ""))
        return f"data {head} = " + " | ".join(made)


MISSING = dataclasses.MISSING


def is_named_tuple(cls):
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


class Registry:
    """The data types that a model uses, each once."""

    def __init__(self, scope, localns):
        self.scope, self.localns = scope, localns  # where names are taken; where annotations are read
        self.option = False  # whether something may be None
        self.by_classes, self.by_class, self.declarations = {}, {}, []

    @staticmethod
    def is_record(cls):
        return isinstance(cls, type) and (dataclasses.is_dataclass(cls) or is_named_tuple(cls))

    def of_class(self, cls, reader):
        if not self.is_record(cls):
            return None
        if cls in self.by_class:
            declaration = self.by_class[cls]
            if len(declaration.constructors) > 1:
                names = " | ".join(c.cls.__name__ for c in declaration.constructors)
                raise Unknown(f"{cls.__name__} alone is not a type: it is one of {names}",
                              f"say the type of all of them, {declaration.name}")
            return declaration
        union = self._union_with(cls, reader)
        if union is not None:
            raise Unknown(f"{cls.__name__} alone is not a type: it is one of {union[0]}",
                          f"say the type of all of them, {union[0]}")
        return self.of_classes((cls,), cls.__name__, reader)

    def _union_with(self, cls, reader):
        """A union that names `cls` among others, where the annotation is read or where the class is."""
        for name, value in self._named(cls, reader):
            members = [typing.get_origin(m) or m for m in typing.get_args(value)
                       if m is not type(None)]
            if len(members) > 1 and cls in members and all(map(self.is_record, members)):
                return name, value
        return None

    def _named(self, cls, reader):
        module = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
        for space in (reader.localns, self.localns, reader.globalns, module):
            for name, value in list(space.items()):
                if type(value).__name__ == "TypeAliasType":
                    value = value.__value__
                if is_union(value):
                    yield name, value

    def of_classes(self, classes, name, reader):
        key = frozenset(classes)
        if key in self.by_classes:
            return self.by_classes[key]
        for cls in classes:
            if cls in self.by_class:
                other = self.by_class[cls]
                raise Unknown(f"{cls.__name__} is in two types, {other.name} and "
                              f"{name or ' | '.join(c.__name__ for c in classes)}",
                              "a class belongs to one union: make another class")
        for cls in classes:
            for base in classes:
                if cls is not base and issubclass(cls, base):
                    raise Unknown(f"{cls.__name__} and its base {base.__name__} are in one union: match and "
                                  "isinstance take the one for the other",
                                  "give both a base that is not in the union")
        if name is None:
            for found, value in self._named(classes[0], reader):
                members = {typing.get_origin(m) or m for m in typing.get_args(value)
                           if m is not type(None)}
                if members == key:
                    name = found
                    break
            else:
                name = "Or".join(c.__name__ for c in classes)
        parameters = []
        for cls in classes:
            for p in getattr(cls, "__parameters__", ()) or getattr(cls, "__type_params__", ()):
                if p.__name__ not in parameters:
                    parameters.append(p.__name__)
        # A type and its constructor may have one name.
        single = len(classes) == 1
        declaration = Declaration(self.scope.fresh(spelled(name, capital=True)), parameters)
        self.by_classes[key] = declaration
        for cls in classes:
            self.by_class[cls] = declaration
            constructor = declaration.name if single else self.scope.fresh(
                spelled(cls.__name__, capital=True))
            declaration.constructors.append(Constructor(cls, constructor))
        for constructor in declaration.constructors:
            self._fields(constructor, reader)
        self.declarations.append(declaration)
        return declaration

    def _fields(self, constructor, reader):
        cls = constructor.cls
        if is_named_tuple(cls):
            listed = [(name, cls._field_defaults.get(name, MISSING)) for name in cls._fields]
        else:
            listed = []
            for field in dataclasses.fields(cls):
                if not field.init:
                    raise Unknown(f"the field '{field.name}' of {cls.__name__} is not set by its "
                                  "constructor", "leave out field(init=False)")
                default = field.default
                if field.default_factory is not MISSING:
                    default = field.default_factory
                listed.append((field.name, default))
        annotations = {}
        for base in reversed(cls.__mro__):
            module = vars(sys.modules[base.__module__]) if base.__module__ in sys.modules else {}
            # A class in a function sees that function's names, which nothing keeps: those where the
            # model is defined and jitted stand for them.
            local = {**self.localns, **reader.localns}
            if module is not reader.globalns:
                local = {k: v for k, v in local.items() if k not in module}
            for name, annotation in base.__dict__.get("__annotations__", {}).items():
                annotations[name] = (annotation, module, local)
        taken = set()
        for name, default in listed:
            if name not in annotations:
                raise Unknown(f"the field '{name}' of {cls.__name__} has no type", f"{name}: int")
            annotation, module, local = annotations[name]
            try:
                inner = type(reader)(self, module, {**local, cls.__name__: cls}, reader.ints)
                kind = inner.kind(annotation)
                if isinstance(kind, kinds.Callable_):
                    raise Unknown("functions are not stored in data")
                for dim in sorted(dims_of(kind, set())):
                    raise Unknown(f"the extent '{dim}' is no number of the model",
                                  "an extent of a field is a number, an int of the module, or '?'")
            except Unknown as error:
                raise Unknown(f"the field '{name}' of {cls.__name__}: {error}", error.help) from None
            constructor.fields.append((name, kind, default))
            sheaf_name = spelled(name)
            while sheaf_name in taken or sheaf_name in ("fn", "let", "match", "if", "else", "true",
                                                        "false", "check", "_"):
                sheaf_name += "_"
            taken.add(sheaf_name)
            constructor.names[name] = sheaf_name
