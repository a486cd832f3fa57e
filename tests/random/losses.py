"""A loss for a random program: what there is of floats in main's result, and in that of its recursion."""


class Terms:
    def __init__(self):
        self.counter = 0

    def fresh(self):
        self.counter += 1
        return f"l{self.counter}"

    def of(self, ty, name):
        """An expression of f32 that depends on all tensors in the value `name`, or None."""
        if ty[0] == "f32":
            return f"tanh(sum({name}))" if ty[1] else f"tanh({name})"
        if ty[0] == "tuple":
            names = [self.fresh() for _ in ty[1]]
            terms = [self.of(t, n) for t, n in zip(ty[1], names)]
            used = [n if term else "_" for n, term in zip(names, terms)]
            terms = [term for term in terms if term]
            return f"{{ let ({', '.join(used)}) = {name}; {' + '.join(terms)} }}" if terms else None
        if ty[0] == "list":
            total, each = self.fresh(), self.fresh()
            term = self.of(ty[1], each)
            return term and f"fold(|{total}: f32, {each}| {total} + {term}, f32(0.0), {name})"
        return None


def leaf(ty):
    """A value of the type, the same for all instances."""
    return f"ones({', '.join(ty[1])})"


def loss_of(program):
    """The text of a function `loss` with main's arguments."""
    from program import type_text
    main = next(f for f in program.functions if f.name == "main")
    over = next(f for f in program.functions if f.name == "over_T")
    terms = Terms()
    text = ["let whole = main(" + ", ".join(n for n, _ in main.params) + ")",
            "let up = over_T(" + ", ".join(["t", *[leaf(t) for _, t in over.params[1:]]]) + ")"]
    found = [t for t in (terms.of(main.result, "whole"), terms.of(over.result, "up")) if t]
    params = ", ".join(f"{n}: {type_text(t)}" for n, t in main.params)
    return f"\nfn loss({params}) -> f32 = {{\n  " + "\n  ".join(text) + \
        f"\n  square({' + '.join(found)})\n}}\n"
