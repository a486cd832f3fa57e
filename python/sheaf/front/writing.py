"""The text of a Program: names for all that is in it, and what stands where."""
from ..ops import OPERATORS
from ..signatures import words_of
from . import kinds
from .layers import locals_of
from .names import FUNCTIONS, RESERVED, Scope, spelled
from .text import LINE, IN, OUT, Code, Local


class Writing:
    # Helpers in `.sheaf`.

    HELPERS = {
        "true_div": "fn {name}(a: float, b: float) -> float = {{\n"
                    "  check b != 0.0, \"division by zero\"\n  a / b\n}}",
        # A check before it has ended the instance where there is none.
        "some": "fn {name}<{T}>(x: Option<{T}>) -> {T} = match x {{\n  Just(value) => value\n"
                "  Nothing => {name}(x)\n}}",
        "list_slice": "fn {name}<{T}>(xs: list<{T}>, a: int, b: int) -> list<{T}> = {{\n"
                      "  let n = len(xs)\n"
                      "  let lo = min(max(if a < 0 {{ a + n }} else {{ a }}, 0), n)\n"
                      "  let hi = min(max(if b < 0 {{ b + n }} else {{ b }}, 0), n)\n"
                      "  if hi > lo {{ xs[lo:hi] }} else {{ [] }}\n}}",
    }

    def helper(self, key):
        if key not in self.helpers:
            self.helpers[key] = Local("py_" + (key if isinstance(key, str) else key[-1]))
        return self.helpers[key]

    def use_way(self):
        """The constructors of what a branch comes to: a jump, or what follows."""
        if self.way is None:
            self.way = (self.types.fresh("Done"), self.types.fresh("On"))
            self.way_name = self.types.fresh("Way")
        return self.way

    def use_option(self):
        self.option = True
        return "Option"

    def _name(self, entries):
        builtin = FUNCTIONS | self.used_operators | RESERVED
        top = Scope(taken=builtin)
        top.taken |= self.types.taken
        operators = set(OPERATORS) | FUNCTIONS
        for name, declared in entries.items():
            if declared.name.text is None:
                wanted = "main" if name == self.main else spelled(declared.name.python)
                if wanted == "main":
                    declared.name.text = "main"
                else:
                    declared.name.text = self._function_name(top, wanted, operators)
        for local in locals_of(self.root):
            local.text = top.fresh(spelled(local.python))
        for owner in self.layers.values():
            owner.name.text = top.fresh(spelled(owner.name.python, capital=True))
        for local in self.helpers.values():
            local.text = top.fresh(local.python)
        for declared in self.root.functions.values():
            if declared.name.text is None:
                declared.name.text = self._function_name(top, spelled(declared.name.python), operators)
        for owner in self.layers.values():
            inner = Scope(top)
            # A layer's own names may be those of the model: inside they hide them, and nothing of the
            # model is named there but its functions, helpers and types, and parameters of several places.
            hidden = {local.text for local in locals_of(self.root)} if not self.tied else set()
            inner.above = Scope(taken=top.taken - hidden)
            for local in locals_of(owner):
                local.text = inner.fresh(spelled(local.python))
            for declared in owner.functions.values():
                declared.name.text = self._function_name(inner, spelled(declared.name.python), operators)
            for declared in owner.functions.values():
                self._name_locals(declared, inner)
        for declared in self.root.functions.values():
            self._name_locals(declared, top)

    @staticmethod
    def _function_name(scope, wanted, operators):
        return scope.fresh(wanted + "_" if wanted in operators else wanted)

    @staticmethod
    def _name_locals(declared, scope):
        inner = Scope(scope, taken=set(declared.dims) | set(declared.type_parameters) | {
            "vocab", "leading"})
        for local in declared.locals.values():
            local.text = inner.fresh(spelled(local.python))

    def _text(self):
        lines = []
        for name, size in self.vocabulary_dims().items():
            lines.append(f"dim {name} = {size}")
        if self.option:
            lines.append("data Option<T> = Nothing | Just(value: T)")
        if self.way is not None:
            done, on = self.way
            lines.append(f"data {self.way_name}<A, B> = {done}(value: A) | {on}(value: B)")
        for declaration in self.data.declarations:
            lines.append(declaration.text())
        parts = []
        for line in lines:
            parts += [line, LINE]
        if lines:
            parts.append(LINE)
        for owner in self.layers.values():
            parts += self._owner(owner)
        for code in self.root.declared:
            parts += [code, LINE]
        if self.root.declared:
            parts.append(LINE)
        free = self.types.fresh("T")  # a class may be called T
        for key, local in self.helpers.items():
            text = self.HELPERS[key].format(name=local.text, T=free) if isinstance(key, str) else field_helper(
                local.text, *key)
            for line in text.split("\n"):
                parts += [line, LINE]
            parts.append(LINE)
        for declared in self.root.functions.values():
            parts += [declared.code, LINE, LINE]
        while parts and parts[-1] is LINE:
            parts.pop()
        return Code((*parts, "\n"))

    def vocabulary_dims(self):
        """`dim vocab = n` where the model has an int of that name: tokens are checked against it."""
        found = {}
        obj = self.root.object
        if obj is not None:
            for name, value in vars(obj).items():
                if (name == "vocab" or name.endswith("_vocab")) and isinstance(value, int) and value > 0:
                    found[name] = value
                elif words_of(obj, name):
                    self.watch(obj, name, value)
                    found[name] = len(value)
        return found

    def vocabularies(self):
        """{vocabulary: its words}, of those that the model has as lists."""
        found = {}
        for name in vars(self.root.object) if self.root.object is not None else ():
            words = words_of(self.root.object, name)
            if words:
                found[name.removesuffix("vocab").removesuffix("_")] = list(words)
        return found

    def _owner(self, owner):
        parts = ["layer ", owner.name, "() {", IN]
        for code in owner.declared:
            parts += [LINE, code]
        for declared in owner.functions.values():
            parts += [LINE, declared.code]
        return [*parts, OUT, LINE, "}", LINE, LINE]


def field_helper(name, declaration, constructor, field):
    """The function that reads a field where a check before it has ended the instance of all other
    constructors."""
    head = f"<{', '.join(declaration.parameters)}>" if declaration.parameters else ""
    kind = next(k for f, k, _ in constructor.fields if f == field)
    arms = []
    for c in declaration.constructors:
        names = ", ".join("value" if c is constructor and f == field else "_" for f, _, _ in c.fields)
        arms.append(f"  {c.name}{f'({names})' if names else ''} => {'value' if c is constructor else f'{name}(x)'}\n")
    return (f"fn {name}{head}(x: {declaration.name}{head}) -> {kinds.text(kind)} = match x {{\n"
            + "".join(arms) + "}")
