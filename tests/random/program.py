"""What a random program is made of: types, expressions as trees, functions, declarations."""
import json


INT, FLOAT, BOOL, TOKEN = ("int",), ("float",), ("bool",), ("token",)
WORDS = ["the", "tree", "of", "words", "is", "read", "here"]

# Functions that take functions and any type; they are declared when something calls them.
GENERIC = {
    "iterate": "fn iterate<X>(n: int, f: (X) -> X, x: X) -> X = "
               "if n <= 0 { x } else { iterate(min(n, 3) - 1, f, f(x)) }\n",
    "choose": "fn choose<X>(c: bool, a: X, b: X) -> X = if c { a } else { b }\n",
    "compose": "fn compose<X, Y, Z>(f: (X) -> Y, g: (Y) -> Z, x: X) -> Z = g(f(x))\n",
}


def tensor(*dims):
    return ("f32", tuple(dims))


def list_of(element):
    return ("list", element)


def tuple_of(*fields):
    return ("tuple", tuple(fields))


def type_text(ty):
    if ty[0] == "f32":
        return "f32" + (f"[{', '.join(ty[1])}]" if ty[1] else "")
    if ty[0] == "list":
        return f"list<{type_text(ty[1])}>"
    if ty[0] == "tuple":
        return f"({', '.join(type_text(t) for t in ty[1])})"
    return ty[1] if ty[0] == "data" else ty[0]


class Expr:
    """Source text in parts; the parts that are expressions may be replaced."""

    def __init__(self, ty, *parts):
        self.type, self.parts = ty, list(parts)

    def text(self):
        return "".join(p if isinstance(p, str) else p.text() for p in self.parts)

    def walk(self):
        yield self
        for part in self.parts:
            if isinstance(part, Expr):
                yield from part.walk()


class Function:
    def __init__(self, name, params, result, dims=()):
        self.name, self.params, self.result, self.dims = name, params, result, dims
        self.body = None

    def text(self):
        params = ", ".join(f"{n}: {type_text(t)}" for n, t in self.params)
        return f"fn {self.name}({params}) -> {type_text(self.result)} = {self.body.text()}\n"


class Program:
    def __init__(self):
        self.dims, self.params, self.data, self.layers, self.lets = {}, [], {}, [], []
        self.functions = []
        self.instances = []  # each a dict of the arguments of main

    def text(self):
        out = ["dim " + ", ".join(f"{n} = {v}" for n, v in self.dims.items()) + "\n"]
        for name, ctors in self.data.items():
            out.append(f"data {name} = " + " | ".join(
                c + (f"({', '.join(f'{n}: {type_text(t)}' for n, t in fields)})" if fields else "")
                for c, fields in ctors) + "\n")
        bodies = [f.text() for f in self.functions]
        bodies += [t for name, t in GENERIC.items() if any(name + "(" in b for b in bodies)]
        used = "".join(bodies) + "".join(self.layers)
        if "vocab" in used + "".join(d for _, d in self.params):
            out[0] = out[0][:-1] + ", vocab\n"
        for name, declaration in self.params:
            if name in used:
                out.append(declaration + "\n")
        out += self.layers + self.lets
        return "\n".join("".join(out).split("\n")) + "\n" + "\n".join(bodies)

    def jsonl(self):
        return "".join(json.dumps(i) + "\n" for i in self.instances)

    def expressions(self):
        for function in self.functions:
            yield from function.body.walk()
