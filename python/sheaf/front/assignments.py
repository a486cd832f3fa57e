"""Statements that bind names: assignments, unpacking, lists that grow; and checks."""
import ast

from . import flow, kinds
from .flow import Bind, Known
from .text import Code, joined
from .values import NO, Value


class Variable:
    """A local variable where it is looked at. `unbound` says why it may have no value."""

    __slots__ = ("local", "kind", "declared", "module", "const", "nonneg", "owned", "unbound", "narrowed",
                 "why")

    def __init__(self, local, kind=None, declared=None, module=None, const=NO, nonneg=False, owned=False,
                 unbound=None, why=""):
        self.local, self.kind, self.declared, self.module = local, kind, declared, module
        self.const, self.nonneg, self.owned, self.unbound = const, nonneg, owned, unbound
        self.why, self.narrowed = why, None  # the class that it is known to be of, and its fields

    def copy(self):
        made = Variable(self.local, self.kind, self.declared, self.module, self.const, self.nonneg,
                        self.owned, self.unbound, self.why)
        made.narrowed = self.narrowed
        return made


class Assignments:

    def simple(self, s, rest, ending):
        if isinstance(s, Bind):
            self.bind_target(s.target, s.value, s.origin)
        elif isinstance(s, Known):
            self.now_known(s.test, s.holds, s.origin)
        elif isinstance(s, ast.Assign) and _one_by_one(s):
            for target, part in zip(s.targets[0].elts, s.value.elts):
                self.assign(target, self.value(part, assigning=True), s)
        elif isinstance(s, ast.Assign):
            value = self.value(s.value, assigning=True)
            for k, target in enumerate(s.targets):
                self.assign(target, value, s)
                if k == 0 and len(s.targets) > 1:
                    if not isinstance(target, ast.Name):
                        raise self.error(target, "of a = b = e all but e are names here",
                                         "write two assignments")
                    value = self.value(ast.copy_location(ast.Name(target.id, ast.Load()), target))
        elif isinstance(s, ast.AnnAssign):
            self.annotated(s)
        elif isinstance(s, ast.AugAssign):
            self.augmented(s)
        elif isinstance(s, ast.Assert):
            self.assert_(s)
        elif isinstance(s, ast.Pass):
            pass
        elif isinstance(s, ast.Expr):
            self.expression(s)
        else:
            raise self.refuse_statement(s)
        return None

    def annotated(self, s):
        if not isinstance(s.target, ast.Name):
            raise self.refuse_target(s.target)
        kind = self.local_annotation(s.annotation)
        name = s.target.id
        if s.value is None:
            self.env[name] = Variable(self.local(name), kind, kind,
                                      unbound=f"'{name}' is annotated but not assigned")
            return
        value = self.no_module(self.value(s.value, expect=kind), s.value)
        there = isinstance(kind, kinds.Option) and value.kind is not None and (
            value.kind is not kinds.NONE and not isinstance(value.kind, kinds.Option))
        known = kind.inner if there else kind
        value = self.coerce(value, known, s.value)
        local = self.local(name)
        at = self.place(s)
        self.lines.append(Code(("let ", local, ": ", Code((kinds.text(known),), self.place(s.annotation)),
                                " = ", value.code), at))
        self.env[name] = Variable(local, self.arrived(known), kind, const=value.const, nonneg=value.nonneg,
                                  owned=value.fresh, why=self.why(s.value))

    def local_annotation(self, node):
        from .annotations import Unknown
        text = ast.unparse(node)
        try:
            kind = self.declared.reader.kind(text)
        except Unknown as error:
            raise self.error(node, str(error), error.help) from None
        self.remember_names(node)
        from .annotations import dims_of
        dims_of(kind, self.declared.dims)
        return kind

    def remember_names(self, node):
        for n in ast.walk(node):
            if isinstance(n, ast.Name):
                self.find_global(n.id)

    def why(self, node):
        if isinstance(node, ast.Name):
            return f"'{node.id}' is the same list"
        if isinstance(node, ast.Call):
            return "it is what a call gave"
        return "it is part of another value"

    def assign(self, target, value, s):
        if isinstance(target, ast.Name):
            name = target.id
            if value.module is not None:
                self.env[name] = Variable(None, None, module=value.module)
                return
            if isinstance(value.const, str):
                raise self.error(s, "words of Python are no values of a model",
                                 "use an int, or a Token")
            declared = self.env[name].declared if name in self.env else None
            # What may be None is not, once something else is assigned.
            there = isinstance(declared, kinds.Option) and value.kind is not None and (
                value.kind is not kinds.NONE and not isinstance(value.kind, kinds.Option))
            if declared is not None:
                value = self.coerce(value, declared.inner if there else declared, s)
            local = self.local(name)
            type_ = ()
            if isinstance(declared, kinds.Option) and not there:
                type_ = (": ", kinds.text(declared))
            elif value.kind is kinds.NONE and value.const is None:
                raise self.error(s, f"the type of '{name}' is not known: it is None at first",
                                 f"{name}: T | None = None")
            self.lines.append(Code(("let ", local, *type_, " = ", value.code), self.place(s)))
            self.env[name] = Variable(local, declared if declared is not None and type_ else value.kind,
                                      declared, const=value.const, nonneg=value.nonneg, owned=value.fresh,
                                      why=self.why(getattr(s, "value", None)))
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.unpack(target, value, s)
        else:
            raise self.refuse_target(target)

    def bind_target(self, target, value, origin):
        """Gives a loop's target a value, as an assignment does."""
        made = ast.Assign([target], None)
        ast.copy_location(made, target)
        self.assign(target, value, made)

    def unpack(self, target, value, s):
        elements = target.elts
        at = self.place(s)
        parts = self.parts_of(value)
        if parts is not None:
            if any(isinstance(e, ast.Starred) for e in elements):
                raise self.error(target, "a tuple is taken apart into as many names as it has parts",
                                 "name all parts")
            if len(parts) != len(elements):
                raise self.error(target, f"{len(parts)} values cannot be given to {len(elements)} names")
            for element, part in zip(elements, parts):
                self.assign(element, part, s)
            return
        kind = value.kind
        if isinstance(kind, kinds.List) or isinstance(kind, kinds.Tensor):
            self.unpack_list(target, value, s)
            return
        if any(isinstance(e, ast.Starred) for e in elements):
            raise self.error(target, "only lists are taken apart with '*'", "name all parts")
        if isinstance(kind, kinds.Tuple_) and len(kind.parts) != len(elements):
            raise self.error(target, f"{len(kind.parts)} values cannot be given to {len(elements)} names")
        if isinstance(kind, (kinds.Scalar, kinds.Tok, kinds.Option)):
            raise self.error(target, "this value has no parts that could be given to names")
        code = self.pattern_of_target(target, kind)
        self.lines.append(Code(("let ", code, " = ", value.code), at))

    def parts_of(self, value):
        """The values that a literal tuple or the like consists of, if assigning them one after the other
        is the same as at once."""
        from .values import Parts
        if isinstance(value.module, Parts):
            return value.module.values
        from .values import ModuleList
        if isinstance(value.module, ModuleList):
            return [Value(None, module=ref) for ref in value.module.refs]
        return None

    def unpack_list(self, target, value, s):
        elements = target.elts
        at = self.place(s)
        local = self.temporary("list")
        self.lines.append(Code(("let ", local, " = ", value.code), at))
        kind = value.kind
        stars = [k for k, e in enumerate(elements) if isinstance(e, ast.Starred)]
        count = len(elements)
        if len(stars) > 1:
            raise self.error(target, "two '*' in one assignment")
        if stars and isinstance(kind, kinds.Tensor):
            raise self.error(target, "a tensor is taken apart into rows with as many names",
                             "x[0], x[1:]")
        least = count - len(stars)
        sign = ">=" if stars else "=="
        self.lines.append(Code((f"check len(", local, f") {sign} {least}, \"not as many values as names\""),
                               at))
        inner = kind.element if isinstance(kind, kinds.List) else self.row_kind(kind)
        for k, element in enumerate(elements):
            if stars and k == stars[0]:
                after = count - 1 - k
                end = Code(("len(", local, f") - {after}")) if after else ""
                part = Value(Code((local, f"[{k}:", end, "]")), kind, fresh=True)
                self.assign(element.value, part, s)
            else:
                after = count - k
                index = str(k) if not stars or k < stars[0] else Code(("len(", local, f") - {after}"))
                self.assign(element, Value(Code((local, "[", index, "]")), self.arrived(inner)), s)

    @staticmethod
    def row_kind(kind):
        if isinstance(kind, kinds.Tensor):
            return kinds.Tensor(kind.dtype, kind.dims[1:] if kind.dims else None, kind.vocabulary)
        return None

    def pattern_of_target(self, target, kind):
        """The pattern of names that a value of `kind` is given to; binds them."""
        if isinstance(target, ast.Name):
            if target.id == self.self_name:
                raise self.error(target, f"'{self.self_name}' is assigned")
            local = self.local(target.id)
            declared = self.env[target.id].declared if target.id in self.env else None
            self.env[target.id] = Variable(local, self.arrived(kind), declared,
                                           why="it is part of another value")
            if target.id == "_" and not self.reads_underscore:
                return Code(("_",))
            return Code((local,), self.place(target))
        if isinstance(target, ast.Starred):
            raise self.error(target, "only lists are taken apart with '*'")
        if not isinstance(target, (ast.Tuple, ast.List)):
            raise self.refuse_target(target)
        count = len(target.elts)
        if count == 0:
            raise self.error(target, "nothing is assigned")
        if isinstance(kind, kinds.Data) and len(kind.declaration.constructors) == 1:
            constructor = kind.declaration.constructors[0]
            from .data import is_named_tuple
            if is_named_tuple(constructor.cls):
                if len(constructor.fields) != count:
                    raise self.error(target, f"{constructor.cls.__name__} has {len(constructor.fields)} "
                                     f"fields, which cannot be given to {count} names")
                binding = dict(zip(kind.declaration.parameters, kind.arguments))
                inner = [self.pattern_of_target(e, kinds.substitute(f[1], binding))
                         for e, f in zip(target.elts, constructor.fields)]
                return Code((constructor.name, "(", joined(inner), ")"))
        if isinstance(kind, (kinds.Data, kinds.Scalar, kinds.Tok, kinds.Option)):
            raise self.error(target, "this value has no parts that could be given to names")
        if isinstance(kind, (kinds.List, kinds.Tensor)):
            raise self.error(target, "a list inside is not taken apart here", "give it a name first: "
                             "name, ... = ...; a, b = name")
        parts = kind.parts if isinstance(kind, kinds.Tuple_) else (None,) * count
        if len(parts) != count:
            raise self.error(target, f"{len(parts)} values cannot be given to {count} names")
        if count == 1:
            raise self.error(target, "tuples of one element are not values of Sheaf")
        # A name that stands twice gets the last value, as in Python.
        inner = [self.pattern_of_target(e, p) for e, p in zip(target.elts, parts)]
        return Code(("(", joined(inner), ")"), self.place(target))

    def augmented(self, s):
        if not isinstance(s.target, ast.Name):
            raise self.refuse_target(s.target)
        name = s.target.id
        read = ast.copy_location(ast.Name(name, ast.Load()), s.target)
        left = self.peek(read)
        if isinstance(left.kind, kinds.List):
            if not isinstance(s.op, ast.Add):
                raise self.error(s, "lists are joined with +=, and nothing else")
            self.need_owned(s.target, name, f"'{name} += ...' changes the list that '{name}' is",
                            f"{name} = {name} + ...")
            self.need_eager(s.value, name)
        binary = ast.copy_location(ast.BinOp(read, s.op, s.value), s)
        value = self.value(binary)
        self.assign(s.target, value, s)
        if isinstance(left.kind, kinds.List):
            self.env[name].owned = True

    def need_owned(self, node, name, action, instead):
        variable = self.env.get(name)
        if variable is not None and not variable.owned:
            raise self.error(node, f"{action}, and others may see it: {variable.why or 'it was given away'}",
                             f"{instead}; or make it a list of its own first: {name} = list({name})")

    def need_eager(self, node, name):
        """A list grows while a generator, or `map`, is asked for the elements; here they are made before."""
        lazy = isinstance(node, ast.GeneratorExp) or isinstance(node, ast.Call) and self.called_builtin(
            node) in ("map", "filter", "zip", "enumerate")
        if lazy and name in flow.names(node):
            raise self.error(node, f"this is read while '{name}' grows, and reads '{name}'",
                             "make a list of it first: [f(x) for x in xs]")

    def assert_(self, s):
        if not __debug__:
            return  # python -O leaves them out
        if isinstance(s.test, ast.Tuple) and s.test.elts:
            raise self.error(s.test, "a tuple is always true", "assert condition, \"message\"")
        message = ""
        message = self.constant_text(s.msg) if s.msg is not None else f"assert {ast.unparse(s.test)}"
        # One check for each part, so that the checker learns which extents are equal.
        if isinstance(s.test, ast.BoolOp) and isinstance(s.test.op, ast.And) and not self.narrows(s.test):
            tests = s.test.values
        else:
            tests = [s.test]
        for test in tests:
            for condition in self.checked_parts(test):
                self.check(condition, message, s)
        self.now_known(s.test, True, s)

    def checked_parts(self, test):
        """The conditions that an assert stands for: equal shapes are equal extents."""
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            a, b = self.peek(test.left), self.peek(test.comparators[0])
            from .values import Parts
            if isinstance(a.module, Parts) and isinstance(b.module, Parts) and len(a.module.values) == len(
                    b.module.values):
                return [self.truth(self.compared_values(test, ast.Eq(), x, y, test, test), test)
                        for x, y in zip(a.module.values, b.module.values)]
        known = self.known_condition(test)
        return [Code(("true" if known else "false",))] if known is not None else [self.condition(test)]

    def check(self, condition, message, at):
        self.lines.append(Code(("check ", condition, f', {quoted(message)}'), self.place(at)))

    def constant_text(self, node):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        if isinstance(node, ast.Constant):
            return str(node.value)
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            return str(node.args[0].value)
        raise self.error(node, "the words of an assert are written out, as a string",
                         "leave out what is computed")

    def expression(self, s):
        node = s.value
        if isinstance(node, ast.Constant):
            return  # words about the code, or ...
        name = flow.changed_list(s)
        if name is not None and self.is_variable(name) and self.env[name].module is None:
            self.change_list(s, name, node)
            return
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)):
            raise self.refuse_expression(node)
        if isinstance(node, ast.Call):
            value = self.value(node)
            if value.module is not None:
                return
            if value.kind is kinds.NONE or isinstance(value.kind, (kinds.Scalar, kinds.Tensor, kinds.Tuple_,
                                                                  kinds.List, kinds.Data)):
                self.lines.append(Code(("let _ = ", value.code), self.place(s)))
                return
            self.lines.append(Code(("let _ = ", value.code), self.place(s)))
            return
        raise self.error(s, "this value is not used", "assign it to a name, or leave the line out")

    def is_variable(self, name):
        return name in self.env

    def change_list(self, s, name, call):
        method = call.func.attr
        variable = self.env[name]
        kind = variable.kind
        if call.keywords:
            raise self.error(call, f"'{method}' takes no names of arguments")
        if isinstance(kind, kinds.Data):
            raise self.error(call, f"'{name}' has no method '{method}'")
        if kind is not None and not isinstance(kind, kinds.List):
            raise self.error(call, f"'{name}' is no list")
        local = self.local(name)
        if method == "append" and len(call.args) == 1:
            self.bound_or_error(name, call.func.value)
            self.need_owned(call.func.value, name, f"'append' changes the list that '{name}' is",
                            f"{name} = [*{name}, x]")
            declared = variable.declared
            wanted = declared.element if isinstance(declared, kinds.List) else (
                kind.element if isinstance(kind, kinds.List) else None)
            value = self.value(call.args[0], expect=wanted)
            self.no_module(value, call.args[0])
            if wanted is not None and (declared is not None or isinstance(wanted, kinds.Option)):
                value = self.coerce(value, wanted, call.args[0])
            element = wanted if declared is not None else value.kind if wanted is None else self.common(
                wanted, value, call.args[0])
            if wanted == kinds.FLOAT and value.kind == kinds.INT:
                value = self.coerce(value, kinds.FLOAT, call.args[0])
            # Elements of different extents are of one type with `?`, which is written.
            open_ = kinds.dims_open(element)
            type_ = kinds.known(kinds.List(open_)) if open_ != element or declared is not None else None
            element = open_ if type_ else element
            self.lines.append(Code(("let ", local, f": {type_}" if type_ else "", " = append(", local, ", ",
                                    value.code, ")"), self.place(s)))
            self.env[name] = Variable(local, kinds.List(element), declared, owned=True)
            return
        if method == "extend" and len(call.args) == 1:
            self.bound_or_error(name, call.func.value)
            self.need_owned(call.func.value, name, f"'extend' changes the list that '{name}' is",
                            f"{name} = {name} + xs")
            self.need_eager(call.args[0], name)
            more = self.iterable(call.args[0])
            self.lines.append(Code(("let ", local, " = concat(", local, ", ", more.code, ")"),
                                   self.place(s)))
            self.env[name] = Variable(local, kinds.join(kind, kinds.List(more.element)), variable.declared,
                                      owned=True)
            return
        if method == "reverse" and not call.args:
            self.need_owned(call.func.value, name, f"'reverse' changes the list that '{name}' is",
                            f"{name} = {name}[::-1]")
            self.lines.append(Code(("let ", local, " = reverse(", local, ")"), self.place(s)))
            return
        if method == "pop" and len(call.args) <= 1:
            self.bound_or_error(name, call.func.value)
            self.need_owned(call.func.value, name, f"'pop' changes the list that '{name}' is",
                            f"{name} = {name}[:-1]")
            if call.args and not (isinstance(call.args[0], ast.Constant) and call.args[0].value == 0):
                raise self.error(call, "'pop' takes the last element, or with pop(0) the first",
                                 f"{name} = {name}[:i] + {name}[i + 1:]")
            self.lines.append(Code(("check len(", local, ') > 0, "pop from an empty list"'), self.place(s)))
            part = Code((local, "[1:]")) if call.args else Code((local, "[:len(", local, ") - 1]"))
            self.lines.append(Code(("let ", local, " = ", part), self.place(s)))
            return
        if method == "clear" and not call.args:
            self.need_owned(call.func.value, name, f"'clear' changes the list that '{name}' is",
                            f"{name} = []")
            raise self.error(call, "'clear' is not known here", f"{name} = []")
        help = {"insert": f"{name} = {name}[:i] + [x] + {name}[i:]",
                "remove": f"{name} = [y for y in {name} if y != x]",
                "sort": "sort(x) of a tensor gives the elements in order, and their places"}.get(method, "")
        raise self.error(call, f"'{method}' of a list is not compiled with these arguments", help)


def _one_by_one(s):
    """Whether a, b = e, f is a = e and then b = f: names, of which what comes later reads none."""
    target, value = s.targets[0], s.value
    if len(s.targets) > 1 or not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(value, ast.Tuple):
        return False
    if len(target.elts) != len(value.elts) or len(value.elts) < 2 or not all(
            isinstance(e, ast.Name) for e in target.elts):
        return False
    names = [e.id for e in target.elts]
    return not any(isinstance(n, ast.Name) and n.id in names[:k] or isinstance(n, ast.Starred)
                   for k, part in enumerate(value.elts) for n in ast.walk(part))


def quoted(text):
    made = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return '"' + "".join(c if c.isprintable() else "?" for c in made) + '"'
