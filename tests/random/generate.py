"""Random well-typed programs with random data.

A program has dims, params, data types with recursive functions over them, helper functions, layers,
and a `main` that uses them all; expressions are trees (Expr), so that a failing program can be made
smaller by replacing parts. Values stay near 1 (recursion goes through tanh, divisors are at least
1), so that the tolerance of --verify holds.
"""
import random

from expressions import Expressions
from program import (BOOL, FLOAT, INT, TOKEN, WORDS, Expr, Function, Program, list_of, tensor,
                     tuple_of)
from tensors import Tensors


class Generator(Expressions, Tensors):
    def __init__(self, seed, size=1.0, wide=1):
        self.r = random.Random(seed)
        self.size, self.wide = size, wide
        self.p = Program()
        self.counter = 0
        self.helpers = []      # functions that expressions may call
        self.layer_calls = []  # (text before the argument, dim in, dim out)
        self.layer_lists = []  # (name, dim)
        self.faulty = self.chance(0.2)  # whether instances may end with errors

    # ------------------------------------------------------------------ declarations

    def field_type(self):
        return self.r.choice([INT, tensor(self.static()), tensor(self.static()), FLOAT, TOKEN,
                              tensor(self.static(), self.static()), list_of(INT), BOOL,
                              list_of(TOKEN),
                              list_of(tensor(self.static())), tensor("?", self.static())])

    def make_data(self, names):
        for name in names:
            ctors = []
            count = self.r.randint(2, 3)
            for i in range(count):
                fields = [(self.fresh("f"), self.field_type())
                          for _ in range(self.r.randint(0 if i else 1, 2))]
                if i:  # the first ends the recursion
                    for _ in range(self.r.randint(1, 2)):
                        child = ("data", self.r.choice(names))
                        fields.append((self.fresh("c"),
                                       list_of(child) if self.chance(0.3) else child))
                ctors.append((f"{name}{'ABC'[i]}", fields))
            self.p.data[name] = ctors

    def result_type(self):
        d = self.static()
        return self.r.choice([tensor(d), tensor(d), tuple_of(tensor(d), tensor(self.static())),
                              tensor(d, self.static()), tuple_of(tensor(d), INT), tensor(),
                              tuple_of(tensor(d), tensor(d, d))])

    def make_recursions(self, names):
        """A function for each data type; they call each other on the children."""
        state = [("s", tensor(self.static()))] if self.chance(0.4) else []
        results = {n: self.result_type() for n in names}
        functions = {n: Function(f"over_{n}", [("t", ("data", n))] + state, results[n])
                     for n in names}
        for n in names:
            arms = []
            for ctor, fields in self.p.data[n]:
                env, lets = list(state), []
                names_of = []
                for _, ty in fields:
                    field = self.fresh("a")
                    names_of.append(field)
                    if ty[0] == "data":
                        r = self.fresh("r")
                        lets += [f"let {r} = {functions[ty[1]].name}({field}", *self.pass_down(
                            state, env), "); "]
                        env.append((r, results[ty[1]]))
                    elif ty[0] == "list" and ty[1][0] == "data":
                        r, x = self.fresh("r"), self.fresh("x")
                        lets += [f"let {r} = map(|{x}| {functions[ty[1][1]].name}({x}",
                                 *self.pass_down(state, env), f"), {field}); "]
                        env.append((r, list_of(results[ty[1][1]])))
                    else:
                        env.append((field, ty))
                env = self.opened(env, lets)
                pattern = ctor + (f"({', '.join(names_of)})" if names_of else "")
                body = self.bounded(results[n], env, self.depth())
                arms += [f"\n  {pattern} => {{ ", *lets, body, " }"]
            functions[n].body = Expr(results[n], "match t {", *arms, "\n}")
        self.p.functions += functions.values()
        self.helpers += functions.values()

    def opened(self, env, lets):
        """Takes tuples of results apart, so that their fields can be used."""
        result = []
        for name, ty in env:
            result.append((name, ty))
            if ty[0] == "tuple":
                names = [self.fresh("b") for _ in ty[1]]
                lets.append(f"let ({', '.join(names)}) = {name}; ")
                result += list(zip(names, ty[1]))
        return result

    def pass_down(self, state, env):
        parts = []
        for name, ty in state:
            usable = [(n, t) for n, t in env if t[0] != "tuple"]
            parts += [", ", self.bounded(ty, usable, 2) if self.chance(0.6) else Expr(ty, name)]
        return parts

    def depth(self):
        return max(2, int(self.r.randint(2, 4) * self.size))

    def make_helpers(self):
        for _ in range(self.r.randint(1, 3)):
            d, e = self.static(), self.static()
            kind = self.r.randrange(5)
            dims = ()
            if kind == 0:  # weights as arguments
                params = [("x", tensor(d)), ("w", tensor(d, e))]
                result = tensor(e)
            elif kind == 1:  # extents of the caller's
                params, dims = [("x", tensor("k", d)), ("y", tensor(d))], ("k",)
                result = self.r.choice([tensor("k", e), tensor("k"), tensor(d)])
            elif kind == 2:
                params = [("xs", list_of(tensor(d))), ("n", INT)]
                result = self.r.choice([tensor(e), list_of(tensor(d)), tuple_of(tensor(d), INT)])
            elif kind == 3:  # a loop
                params = [("n", INT), ("x", tensor(d))]
                result = tensor(d)
            else:
                params = [("x", tensor(d)), ("y", tensor(e)), ("flag", BOOL)]
                result = self.r.choice([tensor(d), tensor(d, e), FLOAT, tensor()])
            f = Function(self.fresh("help"), params, result, dims)
            env = list(params)
            if kind == 3:
                f.body = Expr(result, "if n <= 0 { x } else { " + f.name + "(min(n, 4) - 1, ",
                              self.bounded(result, env, self.depth()), ") }")
            else:
                f.body = self.gen(result, env, self.depth())
            self.p.functions.append(f)
            self.helpers.append(f)

    def make_layers(self):
        if self.chance(0.5):
            d = self.static()
            inner = self.r.choice(["tanh(x @ w + b)", "sigmoid(x @ w) * b + x @ w",
                                   "{ let y = relu(x @ w + b); y * 0.5 + tanh(y @ v) }"])
            self.p.layers.append(
                "layer Dense(n, m) {\n  param w : f32[n, m] = glorot\n  param v : f32[m, m] = "
                f"glorot\n  param b : f32[m] = normal(0.1)\n"
                f"  fn run(x: f32[n]) -> f32[m] = {inner}\n}}\n")
            for _ in range(self.r.randint(1, 2)):
                name, e = self.fresh("dense"), self.static()
                self.p.lets.append(f"let {name} = Dense({d}, {e})\n")
                self.layer_calls.append((f"{name}.run", d, e))
            if self.chance(0.6):
                name = self.fresh("denses")
                self.p.lets.append(f"let {name} = [Dense({d}, {d})] * {self.r.randint(1, 3)}\n")
                self.layer_lists.append((name, d))

    def make(self):
        for name in "ab" if self.chance(0.5) else "abc":
            self.p.dims[name] = self.wide * self.r.choice(
                [1, 2, 3, 4, 5, 7, 8, 8, 12, 16, 17, 20, 31, 33])
        self.make_layers()
        names = ["T", "U"][:self.r.randint(1, 2)]
        self.make_data(names)
        self.make_helpers()
        self.make_recursions(names)
        params = [("t", ("data", names[0]))]
        for _ in range(self.r.randint(0, 3)):
            params.append((self.fresh("q"), self.r.choice(
                [INT, tensor("n", self.static()), tensor("n"), tensor(self.static()), FLOAT,
                 list_of(tensor(self.static())), list_of(INT), tensor("n", "n"),
                 list_of(tuple_of(INT, tensor(self.static()))), list_of(("data", names[-1])),
                 TOKEN, list_of(TOKEN), tensor(self.static(), "n", self.static())])))
        results = []
        for _ in range(self.r.randint(1, 3)):
            results.append(self.r.choice([
                tensor(self.static()), tensor(self.static()), INT, list_of(tensor(self.static())),
                tensor(self.static(), self.static()), tuple_of(tensor(), FLOAT),
                ("data", names[0])] + [t for _, t in params if t[0] == "f32"]))
        result = results[0] if len(results) == 1 else tuple_of(*results)
        over = self.p.functions[-len(names)]
        main = Function("main", params, result)
        env = list(params)
        extra = [arg for n, t in over.params[1:] for arg in (", ", self.leaf(t))]
        lets = ["let up = over_T(t", *extra, ")\n  "]
        env.append(("up", over.result))
        env = self.opened(env, lets)
        items = [self.gen(t, env, self.depth()) for t in results]
        body = items[0] if len(items) == 1 else self.join(result, "(", items)
        main.body = Expr(result, "{\n  ", *lets, body, "\n}")
        self.p.functions.append(main)
        for _ in range(self.r.randint(1, 9)):
            self.extents = {"n": self.r.choice([0, 1, 2, 3, 5]) if self.chance(0.3)
                            else self.r.randint(1, 6)}
            self.budget = 40
            self.p.instances.append({n: self.value(t, self.r.randint(0, 6)) for n, t in params})
        return self.p

    # ------------------------------------------------------------------ data

    def extent(self, dim):
        if dim == "?":
            return self.r.randint(0, 3)
        if dim.isdigit():
            return int(dim)
        return self.p.dims[dim] if dim in self.p.dims else self.extents[dim]

    def value(self, ty, depth):
        kind = ty[0]
        if kind == "int":
            return self.r.randint(-5, 9)
        if kind in ("float",):
            return round(self.r.uniform(-1, 1), 3)
        if kind == "bool":
            return self.chance(0.5)
        if kind == "token":
            return self.r.choice(WORDS)
        if kind == "f32":
            return self.elements([self.extent(d) for d in ty[1]])
        if kind == "list":
            return [self.value(ty[1], depth - 1) for _ in range(self.r.choice([0, 1, 1, 2, 3, 4]))]
        if kind == "tuple":
            return [self.value(t, depth - 1) for t in ty[1]]
        self.budget -= 1
        ctors = self.p.data[ty[1]]
        ctor, fields = ctors[0] if depth <= 0 or self.budget < 0 else self.r.choice(ctors)
        if not fields:
            return ctor
        return {ctor: [self.value(t, depth - 1) for _, t in fields]}

    def elements(self, shape):
        if not shape:
            return round(self.r.uniform(-1, 1), 3)
        return [self.elements(shape[1:]) for _ in range(shape[0])]


class Reader(Generator):
    """Some ints and bools are read out of tensors."""

    def __init__(self, seed, size, wide, reads):
        super().__init__(seed, size, wide)
        self.reads = reads

    def element(self, env, depth):
        d = self.static()
        return ["read(tanh(sum(", self.gen(tensor(d), env, depth - 1), ")))"]

    def gen_bool(self, ty, env, depth):
        if not self.chance(self.reads):
            return super().gen_bool(ty, env, depth)
        return Expr(ty, "(", *self.element(env, depth), f" > {self.r.choice(['0.0', '0.3'])})")

    def gen_int(self, ty, env, depth):
        if not self.chance(self.reads):
            return super().gen_int(ty, env, depth)
        return Expr(ty, "int(4.0 * ", *self.element(env, depth), ")")


def generate(seed, size=1.0, wide=1, reads=0.0):
    """`wide` multiplies dims; `reads` is the share of ints and bools that are read."""
    return (Reader(seed, size, wide, reads) if reads else Generator(seed, size, wide)).make()
