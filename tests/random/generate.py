"""Random well-typed programs with random data.

A program has dims, params, data types with recursive functions over them, helper functions, layers,
and a `main` that uses them all; expressions are trees (Expr), so that a failing program can be made
smaller by replacing parts. Values stay near 1 (recursion goes through tanh, divisors are at least
1), so that the tolerance of --verify holds.
"""
import json
import random

INT, FLOAT, BOOL = ("int",), ("float",), ("bool",)


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
        used = "".join(bodies) + "".join(self.layers)
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


class Generator:
    def __init__(self, seed, size=1.0):
        self.r = random.Random(seed)
        self.size = size
        self.p = Program()
        self.counter = 0
        self.helpers = []      # functions that expressions may call
        self.layer_calls = []  # (text before the argument, dim in, dim out)
        self.layer_lists = []  # (name, dim)

    # ------------------------------------------------------------------ names and choices

    def fresh(self, prefix):
        self.counter += 1
        return f"{prefix}{self.counter}"

    def chance(self, p):
        return self.r.random() < p

    def static(self):
        return self.r.choice(list(self.p.dims))

    def is_static(self, dims):
        return all(d in self.p.dims or d.isdigit() or self.composite(d) for d in dims)

    def composite(self, dim):
        return any(c in dim for c in "+*") and all(
            t in self.p.dims or t.isdigit() for t in dim.replace("*", "+").replace(" ", "").split("+"))

    def param(self, *dims, init=None):
        ty = type_text(tensor(*dims))
        same = [n for n, d in self.p.params if f": {ty} =" in d]
        if same and self.chance(0.4):
            return self.r.choice(same)
        name = self.fresh("w")
        choices = ["glorot", "uniform(0.5)", "normal(0.3)", "constant(0.25)", "ones", "zeros"]
        if len(dims) >= 2:
            choices += ["glorot", "glorot", "he", "identity"]
        self.p.params.append((name, f"param {name} : {ty} = {init or self.r.choice(choices)}"))
        return name

    # ------------------------------------------------------------------ expressions

    def variables(self, ty, env):
        return [n for n, t in env if t == ty]

    def some(self, env, wanted):
        """A variable whose type satisfies `wanted`, or None."""
        found = [(n, t) for n, t in env if wanted(t)]
        return self.r.choice(found) if found else None

    def gen(self, ty, env, depth):
        names = self.variables(ty, env)
        if names and (depth <= 0 or self.chance(0.3)):
            return Expr(ty, self.r.choice(names))
        if depth <= 0:
            return self.chance(0.8) and self.adapted(ty, env) or self.leaf(ty, env)
        kind = ty[0]
        for _ in range(8):
            if self.chance(0.12):
                made = self.anything(ty, env, depth)
            else:
                made = getattr(self, "gen_" + kind)(ty, env, depth)
            if made is not None:
                return made
        return Expr(ty, self.r.choice(names)) if names else self.leaf(ty, env)

    def leaf(self, ty, env=()):
        kind = ty[0]
        if kind == "int":
            return Expr(ty, str(self.r.randint(0, 3)))
        if kind == "float":
            return Expr(ty, self.r.choice(["0.5", "1.0", "0.25", "0.75"]))
        if kind == "bool":
            return Expr(ty, self.r.choice(["true", "false"]))
        if kind == "f32":
            if not ty[1]:
                return Expr(ty, f"f32({self.r.choice(['0.5', '0.25', '1'])})")
            if self.is_static(ty[1]) and self.chance(0.6):
                return Expr(ty, self.param(*ty[1]))
            dims = ", ".join(ty[1])
            return Expr(ty, self.r.choice([f"zeros({dims})", f"ones({dims})", f"full(0.5, {dims})"]))
        if kind == "list":
            if self.chance(0.3):
                return Expr(ty, f"map(|{self.fresh('_i')}| ", self.leaf(ty[1], env), ", range(",
                            Expr(INT, str(self.r.randint(0, 2))), "))")
            return Expr(ty, "[", self.leaf(ty[1], env), "]")
        if kind == "tuple":
            return self.join(ty, "(", [self.leaf(t, env) for t in ty[1]])
        ctors = self.p.data[ty[1]]
        name, fields = ctors[0]
        if not fields:
            return Expr(ty, name)
        return self.join(ty, name + "(", [self.leaf(self.known(t), env) for _, t in fields])

    def known(self, ty):
        """The type with an extent in place of each `?`."""
        if ty[0] == "f32":
            return tensor(*[self.static() if d == "?" else d for d in ty[1]])
        return ty

    @staticmethod
    def join(ty, opening, items):
        parts = [opening]
        for i, item in enumerate(items):
            parts += [", ", item] if i else [item]
        return Expr(ty, *parts, ")")

    def adapted(self, ty, env):
        """A value made of some variable of another type, or None."""
        if ty == INT:
            found = self.some(env, lambda t: t[0] == "list")
            return found and Expr(ty, f"len({found[0]})")
        if ty[0] != "f32":
            return None
        found = self.some(env, lambda t: t[0] in ("f32", "int", "list") and t != ty)
        if not found:
            return None
        name, of = found
        dims = ty[1]
        if of[0] == "list":
            if of[1][0] != "f32" or not of[1][1] or "?" in of[1][1]:
                return None
            of, x, y = of[1], self.fresh("x"), self.fresh("y")
            name = f"tanh(fold(|{x}, {y}| {x} + {y}, zeros({', '.join(of[1])}), {name}))"
        if of == INT:
            if len(dims) == 1 and self.is_static(dims):
                return Expr(ty, f"{self.param('5', *dims)}[abs({name}) % 5]")
            return Expr(ty, f"(0.1 * float({name} % 4) + ones({', '.join(dims)}))") if dims else \
                Expr(ty, f"f32({name} % 4)")
        if len(of[1]) == 2:
            name, of = f"sum({name}, axis=0)", tensor(of[1][1])
        if not of[1] or "?" in of[1]:
            return Expr(ty, f"broadcast_to(sum({name}), {', '.join(dims)})") if dims else \
                Expr(ty, f"tanh(sum({name}))")
        if not dims:
            return Expr(ty, f"tanh(sum({name}))")
        if not self.is_static(dims) or not self.is_static(of[1]):
            return Expr(ty, f"(tanh(sum({name})) * ones({', '.join(dims)}))")
        if len(dims) == 1:
            return Expr(ty, f"({name} @ {self.param(of[1][0], dims[0])})")
        return Expr(ty, f"outer({name} @ {self.param(of[1][0], dims[0])}, "
                        f"{name} @ {self.param(of[1][0], dims[1])})")

    def anything(self, ty, env, depth):
        """Productions for every type."""
        which = self.r.randrange(6)
        if which == 0:
            return Expr(ty, "(if ", self.gen(BOOL, env, depth - 2), " { ",
                        self.gen(ty, env, depth - 1), " } else { ", self.gen(ty, env, depth - 1),
                        " })")
        if which == 1:
            other = self.some_type(env)
            name = self.fresh("v")
            return Expr(ty, f"{{ let {name} = ", self.gen(other, env, depth - 1), "; ",
                        self.gen(ty, env + [(name, other)], depth - 1), " }")
        if which == 2:
            found = self.some(env, lambda t: t[0] == "list" and t[1] == ty)
            if not found:
                return None
            head = self.fresh("x")
            return Expr(ty, f"(match {found[0]} {{ [] => ", self.gen(ty, env, depth - 1),
                        f", {head} :: _ => ", self.gen(ty, env + [(head, ty)], depth - 1), " })")
        if which == 3:
            return Expr(ty, "(match ", self.gen(INT, env, depth - 2), " { 0 => ",
                        self.gen(ty, env, depth - 1), ", 1 => ", self.gen(ty, env, depth - 2),
                        ", _ => ", self.gen(ty, env, depth - 1), " })")
        if which == 4:
            return self.fold(ty, env, depth)
        fields = [t for _, t in env if t[0] == "tuple" and ty in t[1]]
        if not fields:
            return self.call(ty, env, depth)
        whole = self.r.choice(fields)
        tuple_name = self.r.choice(self.variables(whole, env))
        names = [self.fresh("p") for _ in whole[1]]
        return Expr(ty, f"{{ let ({', '.join(names)}) = {tuple_name}; ",
                    self.gen(ty, env + list(zip(names, whole[1])), depth - 1), " }")

    def some_type(self, env):
        vectors = [tensor(self.static()), tensor(self.static(), self.static()), tensor()]
        own = [t for _, t in env if t[0] in ("f32", "list") and "?" not in type_text(t)]
        return self.r.choice(vectors + [INT, FLOAT, list_of(tensor(self.static())), list_of(INT),
                                        tuple_of(tensor(self.static()), INT)] + own)

    def some_list(self, env, depth):
        """A list expression of any element type."""
        found = self.some(env, lambda t: t[0] == "list")
        if found and self.chance(0.7):
            return Expr(found[1], found[0])
        element = self.r.choice([INT, tensor(self.static()), tuple_of(INT, tensor(self.static()))])
        return self.gen(list_of(element), env, depth - 1)

    def fold(self, ty, env, depth):
        if depth < 2 or ty[0] not in ("f32", "int", "tuple"):
            return None
        source = self.some_list(env, depth)
        acc, x = self.fresh("s"), self.fresh("x")
        inner = env + [(acc, ty), (x, source.type[1])]
        body = self.bounded(ty, inner, depth - 1)
        return Expr(ty, f"fold(|{acc}, {x}| ", body, ", ", self.gen(ty, env, depth - 2), ", ",
                    source, ")")

    def bounded(self, ty, env, depth):
        """An expression whose values do not grow, however often it is applied to itself."""
        if ty[0] == "f32":
            return Expr(ty, self.r.choice(["tanh(", "sigmoid(", "tanh(", "sin("]),
                        self.gen(ty, env, depth - 1), ")")
        if ty == INT:
            return Expr(ty, "((", self.gen(ty, env, depth - 1), ") % 7)")
        if ty == FLOAT:
            return Expr(ty, "min(1.0, abs(", self.gen(ty, env, depth - 1), "))")
        if ty[0] == "tuple":
            return self.join(ty, "(", [self.bounded(t, env, depth) for t in ty[1]])
        if ty[0] == "list" and ty[1][0] == "f32":
            x = self.fresh("x")
            return Expr(ty, f"map(|{x}| ", self.bounded(ty[1], env + [(x, ty[1])], depth - 1),
                        ", ", self.gen(ty, env, depth - 1), ")")
        return self.gen(ty, env, depth)

    def call(self, ty, env, depth):
        options = []
        for f in self.helpers:
            binding = self.unify(f.result, ty, {})
            if binding is not None:
                options.append((f, binding))
        if not options:
            return None
        f, binding = self.r.choice(options)
        binding = dict(binding)
        for dim in f.dims:
            if dim not in binding:
                scope = [n[1][0] for _, n in env if n[0] == "f32" and n[1] and
                         not n[1][0].startswith("?")]
                binding[dim] = self.r.choice(scope + [self.static()])
        args = []
        for _, t in f.params:
            args.append(self.gen(self.substitute(t, binding), env, depth - 2))
        return self.join(ty, f.name + "(", args)

    def unify(self, pattern, ty, binding):
        if pattern[0] != ty[0]:
            return None
        if pattern[0] == "f32":
            if len(pattern[1]) != len(ty[1]):
                return None
            for a, b in zip(pattern[1], ty[1]):
                if a.startswith("k"):
                    if binding.setdefault(a, b) != b:
                        return None
                elif a != b:
                    return None
            return binding
        if pattern[0] in ("list",):
            return self.unify(pattern[1], ty[1], binding)
        return binding if pattern == ty else None

    def substitute(self, ty, binding):
        if ty[0] == "f32":
            return tensor(*[binding.get(d, d) for d in ty[1]])
        if ty[0] == "list":
            return list_of(self.substitute(ty[1], binding))
        if ty[0] == "tuple":
            return tuple_of(*[self.substitute(t, binding) for t in ty[1]])
        return ty

    # ------------------------------------------------------------------ host values

    def gen_int(self, ty, env, depth):
        which = self.r.randrange(7)
        if which <= 1:
            op = self.r.choice(["+", "-", "*"])
            return Expr(ty, "(", self.gen(INT, env, depth - 2), f" {op} ",
                        self.gen(INT, env, depth - 2), ")")
        if which == 2:
            return Expr(ty, "(", self.gen(INT, env, depth - 1),
                        self.r.choice([" % 3)", " / 2)", " % 5)", " / 3)"]))
        if which == 3:
            return Expr(ty, self.r.choice(["min(", "max("]), self.gen(INT, env, depth - 1), ", ",
                        self.gen(INT, env, depth - 1), ")")
        if which == 4:
            return Expr(ty, "len(", self.some_list(env, depth), ")")
        if which == 5:
            return Expr(ty, "int(", self.gen(FLOAT, env, depth - 1), " * 4.0)")
        return self.call(ty, env, depth) or self.leaf(ty, env)

    def gen_float(self, ty, env, depth):
        which = self.r.randrange(4)
        if which == 0:
            return Expr(ty, "(", self.gen(FLOAT, env, depth - 1), self.r.choice([" + ", " - ", " * "]),
                        self.gen(FLOAT, env, depth - 1), ")")
        if which == 1:
            return Expr(ty, "(float((", self.gen(INT, env, depth - 1), ") % 5) * 0.25)")
        if which == 2:
            return Expr(ty, "(", self.gen(FLOAT, env, depth - 1), " / (1.0 + abs(",
                        self.gen(FLOAT, env, depth - 1), ")))")
        return self.leaf(ty, env)

    def gen_bool(self, ty, env, depth):
        which = self.r.randrange(5)
        if which <= 1:
            return Expr(ty, "(", self.gen(INT, env, depth - 1),
                        self.r.choice([" < ", " <= ", " == ", " != ", " > "]),
                        self.gen(INT, env, depth - 1), ")")
        if which == 2:
            return Expr(ty, "(", self.gen(BOOL, env, depth - 1), self.r.choice([" && ", " || "]),
                        self.gen(BOOL, env, depth - 1), ")")
        if which == 3:
            return Expr(ty, "(!", self.gen(BOOL, env, depth - 1), ")")
        return self.leaf(ty, env)

    # ------------------------------------------------------------------ tensors

    def gen_f32(self, ty, env, depth):
        dims = ty[1]
        options = [self.unary] * 3 + [self.binary] * 4 + [self.call] * 3 + [self.scaled]
        if len(dims) == 0:
            options += [self.scalar] * 6
        if len(dims) == 1:
            options += [self.vector] * 12
        if len(dims) == 2:
            options += [self.matrix] * 10
        if dims:
            options += [self.normalised, self.broadcast, self.reduced]
        return self.r.choice(options)(ty, env, depth)

    def unary(self, ty, env, depth):
        x = self.gen(ty, env, depth - 1)
        form = self.r.choice([
            "tanh({})", "sigmoid({})", "relu({})", "sin({})", "cos({})", "abs({})", "(-{})",
            "gelu({})", "silu({})", "softplus({})", "exp(tanh({}))", "sqrt(1 + square({}))",
            "log(1 + square({}))", "rsqrt(1 + square({}))", "clamp({}, -1, 1)", "tanh({})",
            "sigmoid({})", "square(tanh({}))", "pow(1 + abs({}), 0.5)", "maximum({}, 0.1)"])
        before, _, after = form.partition("{}")
        return Expr(ty, before, x, after)

    def binary(self, ty, env, depth):
        x, y = self.gen(ty, env, depth - 1), self.gen(ty, env, depth - 1)
        which = self.r.randrange(8)
        if which <= 1:
            return Expr(ty, "(", x, self.r.choice([" + ", " - "]), y, ")")
        if which == 2:
            return Expr(ty, "(tanh(", x, ") * ", y, ")")
        if which == 3:
            return Expr(ty, self.r.choice(["maximum(", "minimum("]), x, ", ", y, ")")
        if which == 4:
            return Expr(ty, "(", x, " / (1 + square(", y, ")))")
        if which == 5:
            a, b = self.fresh("v"), self.fresh("v")
            return Expr(ty, f"{{ let {a} = ", x, f"; let {b} = ", y,
                        f"; where({a} < {b}, {a} * 0.5 + {b} * 0.5, {a}) }}")
        return Expr(ty, "(", x, " * 0.5 + sigmoid(", y, "))")

    def scaled(self, ty, env, depth):
        """A host number in a tensor expression."""
        number = self.gen(self.r.choice([INT, FLOAT]), env, depth - 2)
        if number.type == INT:
            number = Expr(FLOAT, "(float((", number, ") % 4) * 0.25)")
        return Expr(ty, "(", self.gen(ty, env, depth - 1), self.r.choice([" * ", " + "]), number,
                    ")")

    def inner(self, env, dim):
        """An extent to contract over: a static one, or one of the instance."""
        own = [t[1] for _, t in env if t[0] == "f32" and t[1]]
        names = [d for ds in own for d in ds if not d.startswith("?")]
        return self.r.choice(names) if names and self.chance(0.5) else self.static()

    def vector(self, ty, env, depth):
        (d,) = ty[1]
        which = self.r.randrange(13)
        if which <= 2:  # a product with a weight
            if not self.is_static([d]):
                return None
            e = self.static()
            parts = [self.gen(tensor(e), env, depth - 1)]
            if self.chance(0.4):
                f = self.static()
                parts = ["concat(", *parts, ", ", self.gen(tensor(f), env, depth - 1), ")"]
                e = f"{e} + {f}"
            bias = [" + ", self.param(d)] if self.chance(0.5) else []
            return Expr(ty, "(", *parts, f" @ {self.param(e, d)}", *bias, ")")
        if which == 3:  # gates
            if not self.is_static([d]):
                return None
            e, count = self.static(), self.r.randint(2, 4)
            names = [self.fresh("g") for _ in range(count)]
            wide = self.param(e, f"{count}*{d}")
            return Expr(ty, f"{{ let ({', '.join(names)}) = split(",
                        self.gen(tensor(e), env, depth - 1), f" @ {wide}, {count}); ",
                        self.gen(ty, env + [(n, ty) for n in names], depth - 1), " }")
        if which == 4:  # a product of the instance's own
            e = self.inner(env, d)
            if self.chance(0.5):
                return Expr(ty, "(", self.gen(tensor(e), env, depth - 1), " @ ",
                            self.gen(tensor(e, d), env, depth - 1), ")")
            return Expr(ty, "(", self.gen(tensor(d, e), env, depth - 1), " @ ",
                        self.gen(tensor(e), env, depth - 1), ")")
        if which == 5:
            axis = self.r.randrange(2)
            e = self.static()
            matrix = tensor(e, d) if axis == 0 else tensor(d, e)
            return Expr(ty, self.r.choice(["sum(", "mean(", "max(", "min("]),
                        self.gen(matrix, env, depth - 1), f", axis={axis})")
        if which == 6:  # a row of a table
            if not self.is_static([d]):
                return None
            table = self.param("5", d)
            return Expr(ty, f"{table}[abs(", self.gen(INT, env, depth - 2), ") % 5]")
        if which == 7:  # a part of something longer
            e = self.static()
            return Expr(ty, "slice(concat(", self.gen(tensor(e), env, depth - 1), ", ",
                        self.gen(ty, env, depth - 1), f"), {e}, {d})")
        if which == 8:
            if self.layer_calls:
                fit = [c for c in self.layer_calls if c[2] == d]
                if fit:
                    call, e, _ = self.r.choice(fit)
                    return Expr(ty, call + "(", self.gen(tensor(e), env, depth - 1), ")")
            return None
        if which == 9:
            fit = [n for n, e in self.layer_lists if e == d]
            if fit:
                x, l = self.fresh("x"), self.fresh("l")
                name = self.r.choice(fit)
                if self.chance(0.4):
                    return Expr(ty, f"{name}[abs(", self.gen(INT, env, depth - 2),
                                f") % len({name})].run(", self.gen(ty, env, depth - 1), ")")
                return Expr(ty, f"fold(|{x}, {l}| tanh({l}.run({x})), ",
                            self.gen(ty, env, depth - 1), f", {name})")
            return None
        if which == 10:  # over the elements of a list
            source = self.gen(list_of(ty), env, depth - 1)
            # No elements tell no extents: an empty list can be stacked only where they are static.
            form = self.r.randrange(3) if self.is_static([d]) else 2
            if form == 0:
                return Expr(ty, "sum(stack(", source, "), axis=0)")
            name, m = self.fresh("m"), self.fresh("m")
            if form == 1:
                w = self.param(d, d)
                return Expr(ty, f"{{ let {name} = stack(", source, f"); let {m} = softmax(({name} @ "
                            f"{w}) @ transpose({name})); tanh(sum({m} @ {name}, axis=0)) }}")
            return Expr(ty, f"tanh(fold(|{name}, {m}| {name} + {m}, ", self.leaf(ty, env), ", ",
                        source, "))")
        if which == 11:
            form = self.r.randrange(4)
            if form == 0:
                return Expr(ty, "one_hot(", self.gen(INT, env, depth - 2), f", {d})")
            if form == 1:
                return Expr(ty, f"(f32(iota({d})) * 0.1)")
            if form == 2:
                return Expr(ty, "gather(", self.gen(ty, env, depth - 1), f", iota({d}))")
            e = self.static()
            return Expr(ty, "reshape(", self.gen(tensor(d, "1"), env, depth - 1), f", {d})")
        found = self.some(env, lambda t: t[0] == "f32" and len(t[1]) == 2 and t[1][0] == "?" and
                          t[1][1] == d)
        if found:  # rows whose number only the value knows
            x = self.fresh("x")
            if self.chance(0.5):
                return Expr(ty, f"tanh(sum({found[0]}, axis=0))")
            return Expr(ty, f"fold(|{x}, {x}r| tanh({x} + {x}r), ", self.gen(ty, env, depth - 2),
                        f", rows({found[0]}))")
        return None

    def matrix(self, ty, env, depth):
        d, e = ty[1]
        which = self.r.randrange(9)
        if which <= 1:
            if not self.is_static([e]):
                return None
            f = self.static()
            return Expr(ty, "(", self.gen(tensor(d, f), env, depth - 1), f" @ {self.param(f, e)})")
        if which == 2:
            f = self.inner(env, d)
            return Expr(ty, "tanh(", self.gen(tensor(d, f), env, depth - 1), " @ ",
                        self.gen(tensor(f, e), env, depth - 1), ")")
        if which == 3:
            return Expr(ty, "transpose(", self.gen(tensor(e, d), env, depth - 1), ")")
        if which == 4:
            return Expr(ty, "outer(", self.gen(tensor(d), env, depth - 1), ", ",
                        self.gen(tensor(e), env, depth - 1), ")")
        if which == 5:
            return Expr(ty, "(expand_dims(", self.gen(tensor(d), env, depth - 1), ", axis=1) + ",
                        self.gen(tensor(e), env, depth - 1), ")")
        if which == 6:
            if not self.is_static([d]):
                return None
            f = self.static()
            return Expr(ty, f"({self.param(d, f)} @ ", self.gen(tensor(f, e), env, depth - 1), ")")
        if which == 7:
            form = self.r.randrange(3)
            if form == 0:
                return Expr(ty, "broadcast_to(", self.gen(tensor(e), env, depth - 1),
                            f", {d}, {e})")
            if form == 1:
                return Expr(ty, "reshape(", self.gen(tensor(e, d), env, depth - 1), f", {d}, {e})")
            x = self.fresh("v")
            return Expr(ty, f"{{ let {x} = ", self.gen(ty, env, depth - 1),
                        f"; slice(concat({x}, {x} * 0.5, axis=1), {e}, {e}, axis=1) }}")
        if not self.is_static([d, e]):
            return None
        table = self.param("4", d, e)
        return Expr(ty, f"{table}[abs(", self.gen(INT, env, depth - 2), ") % 4]")

    def scalar(self, ty, env, depth):
        d = self.static()
        which = self.r.randrange(7)
        if which == 0:
            return Expr(ty, self.r.choice(["sum(", "mean(", "max(", "min(", "logsumexp("]),
                        self.gen(tensor(d), env, depth - 1), ")")
        if which == 1:
            return Expr(ty, "tanh(dot(", self.gen(tensor(d), env, depth - 1), ", ",
                        self.gen(tensor(d), env, depth - 1), "))")
        if which == 2:
            return Expr(ty, "element(", self.gen(tensor(d), env, depth - 1), ", abs(",
                        self.gen(INT, env, depth - 2), f") % {d})")
        if which == 3:
            return Expr(ty, "(f32((", self.gen(INT, env, depth - 1), ") % 5) * 0.1)")
        if which == 4:
            return Expr(ty, "cross_entropy(", self.gen(tensor(d), env, depth - 1), ", abs(",
                        self.gen(INT, env, depth - 2), f") % {d})")
        found = self.some(env, lambda t: t[0] == "f32" and t[1] and "?" in t[1])
        if found:
            return Expr(ty, f"tanh(sum({found[0]}))")
        return Expr(ty, "sum(", self.gen(tensor(d, self.static()), env, depth - 1), ")")

    def normalised(self, ty, env, depth):
        d = ty[1][-1]
        x = self.gen(ty, env, depth - 1)
        which = self.r.randrange(4)
        if which == 0:
            return Expr(ty, "softmax(", x, f", axis={self.r.randrange(len(ty[1]))})")
        if which == 1:
            return Expr(ty, "(0.2 * log_softmax(", x, "))")
        if not self.is_static([d]):
            return None
        # The deviations of one element are 0 / eps: nothing is left but rounding errors.
        if which == 2 and self.p.dims.get(d, 1) > 1:
            return Expr(ty, "layer_norm(", x, f", {self.param(d)}, {self.param(d)}, eps=0.1)")
        return Expr(ty, "rms_norm(", x, f", {self.param(d)}, eps=0.1)")

    def broadcast(self, ty, env, depth):
        rank = self.r.randrange(len(ty[1]))
        return Expr(ty, "(", self.gen(ty, env, depth - 1), self.r.choice([" + ", " - "]),
                    self.gen(tensor(*ty[1][rank + 1:]), env, depth - 1), ")")

    def reduced(self, ty, env, depth):
        x = self.fresh("v")
        axis = self.r.randrange(len(ty[1]))
        return Expr(ty, f"{{ let {x} = ", self.gen(ty, env, depth - 1),
                    f"; tanh({x} - {self.r.choice(['sum', 'max', 'mean'])}({x}, axis={axis}, "
                    f"keepdims=1)) }}")

    # ------------------------------------------------------------------ lists, tuples, data

    def gen_list(self, ty, env, depth):
        element = ty[1]
        which = self.r.randrange(9)
        if which <= 2:
            source = self.some_list(env, depth)
            x = self.fresh("x")
            return Expr(ty, f"map(|{x}| ",
                        self.gen(element, env + [(x, source.type[1])], depth - 1), ", ", source,
                        ")")
        if which == 3:
            i = self.fresh("i")
            return Expr(ty, f"map(|{i}| ", self.gen(element, env + [(i, INT)], depth - 1),
                        ", range(", Expr(INT, str(self.r.randint(0, 3))), "))")
        if which == 4 and element[0] in ("f32", "int", "tuple"):
            source = self.some_list(env, depth)
            acc, x = self.fresh("s"), self.fresh("x")
            inner = env + [(acc, element), (x, source.type[1])]
            return Expr(ty, f"scan(|{acc}, {x}| ", self.bounded(element, inner, depth - 1), ", ",
                        self.gen(element, env, depth - 2), ", ", source, ")")
        if which == 5:
            form = self.r.randrange(4)
            a = self.gen(ty, env, depth - 1)
            if form == 0:
                return Expr(ty, "reverse(", a, ")")
            if form == 1:
                return Expr(ty, "append(", a, ", ", self.gen(element, env, depth - 1), ")")
            if form == 2:
                return Expr(ty, "(", self.gen(element, env, depth - 1), " :: ", a, ")")
            return Expr(ty, "concat(", a, ", ", self.gen(ty, env, depth - 1), ")")
        if which == 6:
            a, b, x, y = (self.fresh(c) for c in "xyuv")
            source = self.some_list(env, depth)
            inner = env + [(x, source.type[1]), (y, INT)]
            name = self.fresh("z")
            return Expr(ty, f"{{ let {name} = ", source, f"; map(|({x}, {y})| ",
                        self.gen(element, inner, depth - 1),
                        f", zip({name}, range(len({name})))) }}")
        if which == 7:
            source = self.some_list(env, depth)
            i, x = self.fresh("i"), self.fresh("x")
            inner = env + [(i, INT), (x, source.type[1])]
            return Expr(ty, f"map(|({i}, {x})| ", self.gen(element, inner, depth - 1),
                        f", filter(|({i}, _)| {i} % 2 == {self.r.randrange(2)}, enumerate(", source,
                        ")))")
        items = [self.gen(element, env, depth - 1) for _ in range(self.r.randint(1, 3))]
        parts = ["["]
        for i, item in enumerate(items):
            parts += [", ", item] if i else [item]
        return Expr(ty, *parts, "]")

    def gen_tuple(self, ty, env, depth):
        return self.call(ty, env, depth) if self.chance(0.3) else \
            self.join(ty, "(", [self.gen(t, env, depth - 1) for t in ty[1]])

    def gen_data(self, ty, env, depth):
        name, fields = self.r.choice(self.p.data[ty[1]])
        if not fields:
            return Expr(ty, name)
        return self.join(ty, name + "(", [self.gen(self.known(t), env, depth - 2) for _, t in fields])

    # ------------------------------------------------------------------ declarations

    def field_type(self):
        return self.r.choice([INT, tensor(self.static()), tensor(self.static()), FLOAT,
                              tensor(self.static(), self.static()), list_of(INT),
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
                f"glorot\n  param b : f32[m] = normal(0.1)\n  fn run(x: f32[n]) -> f32[m] = {inner}\n}}\n")
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
            self.p.dims[name] = self.r.choice([1, 2, 3, 4, 5, 7, 8, 8, 12, 16, 17, 20, 31, 33])
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
                 list_of(tuple_of(INT, tensor(self.static()))), list_of(("data", names[-1]))])))
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


def generate(seed, size=1.0):
    return Generator(seed, size).make()
