"""Modules as layers: their parameters and parts, which of them are alike, what stands at several places."""
from ..module import Module, Param
from .declared import Owner, Tied
from .text import Code, Local, joined

_CONSTANTS = (int, float, bool, str, type(None))


class Layers:
    def members(self, owner):
        """Declares the parameters and layers that a Module has, once."""
        for attribute, value in vars(owner.object).items():
            if isinstance(value, Param):
                owner.members[attribute] = self._param(owner, attribute, value, attribute)
            elif isinstance(value, Module):
                owner.members[attribute] = self._let(owner, attribute, value, attribute)
            elif isinstance(value, (list, tuple)) and value and all(isinstance(v, Module) for v in value):
                layers = [self.layer(v) for v in value]
                tied = any(self.is_elsewhere(owner.object, attribute, i, v) for i, v in enumerate(value))
                if not tied and all(layer is layers[0] for layer in layers):
                    local = Local(attribute)
                    owner.members[attribute] = local
                    made = joined([Code((layer.name, "()")) for layer in layers])
                    owner.declared.append(Code(("let ", local, " = [", made, "]")))
                else:
                    owner.members[attribute] = [self._let(owner, f"{attribute}_{i}", v, attribute, i)
                                                for i, v in enumerate(value)]
            elif isinstance(value, (list, tuple)) and value and all(isinstance(v, Param) for v in value):
                owner.members[attribute] = [self._param(owner, f"{attribute}_{i}", v, attribute, i)
                                            for i, v in enumerate(value)]

    def _let(self, owner, name, value, attribute, number=None):
        if self.is_elsewhere(owner.object, attribute, number, value):
            return Tied(value)
        local = Local(name)
        owner.declared.append(Code(("let ", local, " = ", self.layer(value).name, "()")))
        return local

    def is_elsewhere(self, module, attribute, number, what):
        """Whether a parameter or a layer stands at another place first."""
        if id(what) not in self.tied:
            return False
        first = self.routes[id(what)][0]
        return not (first[-1][0] is module and first[-1][1:] == (attribute, number))

    def tied_code(self, what):
        """The expression for a parameter or a layer of several places, from anywhere."""
        code = None
        for module, attribute, number in self.routes[id(what)][0]:
            member = self.owner_of(module).members[attribute]
            local = member[number] if isinstance(member, list) else member
            code = Code((local,)) if code is None else Code((code, ".", local))
            if number is not None and not isinstance(member, list):
                code = Code((code, f"[{number}]"))
        return code

    def _param(self, owner, name, value, attribute, number=None):
        if self.is_elsewhere(owner.object, attribute, number, value):
            return Tied(value)
        local = Local(name)
        shape = f"[{', '.join(map(str, value.shape))}]" if value.shape else ""
        owner.declared.append(Code(("param ", local, f" : f32{shape} = {value.init}")))
        return local

    def layer(self, module):
        """The Owner of the layers that are like `module`: of one class, with equal constants, shapes and
        parts."""
        key = self._likeness(module)
        if key not in self.layers:
            owner = Owner(module, Local(type(module).__name__), self.root)
            self.layers[key] = owner
            self.members(owner)
        return self.layers[key]

    def _likeness(self, module):
        parts = [type(module)]
        for attribute, value in vars(module).items():
            if isinstance(value, Param) and self.is_elsewhere(module, attribute, None, value):
                parts.append((attribute, "tied", id(value)))
            elif isinstance(value, Param):
                parts.append((attribute, "param", value.shape, str(value.init)))
            elif isinstance(value, Module) and self.is_elsewhere(module, attribute, None, value):
                parts.append((attribute, "tied", id(value)))
            elif isinstance(value, Module):
                parts.append((attribute, self._likeness(value)))
            elif isinstance(value, (list, tuple)) and value and isinstance(value[0], (Module, Param)):
                parts.append((attribute, tuple(
                    ("tied", id(v)) if self.is_elsewhere(module, attribute, i, v) else
                    self._likeness(v) if isinstance(v, Module) else
                    getattr(v, "shape", None) for i, v in enumerate(value))))
            elif isinstance(value, _CONSTANTS):
                parts.append((attribute, type(value), value))
            elif isinstance(value, (list, tuple)) and all(isinstance(v, _CONSTANTS) for v in value):
                parts.append((attribute, type(value), tuple(value)))
            else:
                parts.append((attribute, id(value)))
        return tuple(parts)

    def owner_of(self, module):
        return self.root if module is self.target else self.layer(module)

    def _weights(self):
        """{name of the parameter in the text: Param}, all of the model's."""
        found = {}
        if self.root.object is None:
            return found
        stack = [("", self.root.object, self.root)]
        while stack:
            prefix, module, owner = stack.pop()
            for attribute, value in vars(module).items():
                member = owner.members.get(attribute)
                if member is None or isinstance(member, Tied):
                    continue
                if isinstance(value, Param):
                    found[prefix + member.text] = value
                elif isinstance(value, Module):
                    stack.append((prefix + member.text + ".", value, self.layer(value)))
                elif isinstance(value[0], Param):
                    for local, param in zip(member, value):
                        if not isinstance(local, Tied):
                            found[prefix + local.text] = param
                elif isinstance(member, list):
                    for local, inner in zip(member, value):
                        if not isinstance(local, Tied):
                            stack.append((prefix + local.text + ".", inner, self.layer(inner)))
                else:
                    for i, inner in enumerate(value):
                        stack.append((f"{prefix}{member.text}.{i}.", inner, self.layer(inner)))
        return found


def locals_of(owner):
    for member in owner.members.values():
        for one in member if isinstance(member, list) else [member]:
            if not isinstance(one, Tied):
                yield one


def routes(module):
    """{id of a Param or Module: ways to its places}; a way is (Module, attribute, number in a list or None)
    from the model on, in the order in which attributes were set."""
    found = {}
    stack = [((), module)]
    while stack:
        way, here = stack.pop()
        inner = []
        for attribute, value in vars(here).items():
            many = isinstance(value, (list, tuple))
            for i, one in enumerate(value) if many else [(None, value)]:
                if isinstance(one, (Param, Module)):
                    first = id(one) not in found
                    found.setdefault(id(one), []).append((*way, (here, attribute, i)))
                    if first and isinstance(one, Module) and one is not module:
                        inner.append((found[id(one)][0], one))
        stack.extend(reversed(inner))
    return found
