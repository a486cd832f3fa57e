"""Random expressions of any type but tensors.

A mixin of the generator: `gen(type, environment, depth)` gives an expression of a type in which the
variables of the environment, pairs of name and type, may stand. Each production gives None where it
does not apply.
"""
from program import BOOL, FLOAT, INT, TOKEN, Expr, list_of, tensor, tuple_of, type_text


class Expressions:
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
            t in self.p.dims or t.isdigit()
            for t in dim.replace("*", "+").replace(" ", "").split("+"))

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
        if kind == "token":
            return Expr(ty, "token(0)")
        if kind == "f32":
            if not ty[1]:
                return Expr(ty, f"f32({self.r.choice(['0.5', '0.25', '1'])})")
            if self.is_static(ty[1]) and self.chance(0.6):
                return Expr(ty, self.param(*ty[1]))
            dims = ", ".join(ty[1])
            made = self.r.choice(["zeros(", "ones(", "full(0.5, ", "random(", "random_normal("])
            return Expr(ty, f"{made}{dims})")
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
        if len(dims) > 2 or not self.is_static(dims) or not self.is_static(of[1]):
            return Expr(ty, f"(tanh(sum({name})) * ones({', '.join(dims)}))")
        if len(dims) == 1:
            return Expr(ty, f"({name} @ {self.param(of[1][0], dims[0])})")
        return Expr(ty, f"outer({name} @ {self.param(of[1][0], dims[0])}, "
                        f"{name} @ {self.param(of[1][0], dims[1])})")

    def anything(self, ty, env, depth):
        """Productions for every type."""
        which = self.r.randrange(10)
        if which == 6:
            x = self.fresh("x")
            return Expr(ty, "iterate(", self.gen(INT, env, depth - 2), f", |{x}| ",
                        self.bounded(ty, env + [(x, ty)], depth - 1), ", ",
                        self.gen(ty, env, depth - 1), ")")
        if which == 7:
            other, x, y = self.some_type(env), self.fresh("x"), self.fresh("y")
            return Expr(ty, f"compose(|{x}| ", self.gen(ty, env + [(x, other)], depth - 1),
                        f", |{y}| ", self.gen(ty, env + [(y, ty)], depth - 2), ", ",
                        self.gen(other, env, depth - 1), ")")
        if which == 8:
            other, f, x = self.some_type(env), self.fresh("go"), self.fresh("x")
            if ty[0] == "list" or "?" in type_text(other):
                return None
            return Expr(ty, f"{{ let {f} = |{x}: {type_text(other)}| ",
                        self.gen(ty, env + [(x, other)], depth - 1), "; choose(",
                        self.gen(BOOL, env, depth - 2), f", {f}(", self.gen(other, env, depth - 1),
                        f"), {f}(", self.gen(other, env, depth - 2), ")) }")
        if which == 9:
            found = self.some(env, lambda t: t[0] == "data")
            if not found:
                return None
            ctor, fields = self.r.choice(self.p.data[found[1][1]])
            names = [self.fresh("a") for _ in fields]
            inner = env + [(n, t) for n, (_, t) in zip(names, fields)]
            pattern = ctor + (f"({', '.join(names)})" if names else "")
            return Expr(ty, f"(match {found[0]} {{ {pattern} => ", self.gen(ty, inner, depth - 1),
                        ", _ => ", self.gen(ty, env, depth - 1), " })")
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
            before, after = self.r.choice([("tanh(", ")"), ("sigmoid(", ")"), ("tanh(", ")"),
                                           ("sin(clamp(", ", -9, 9))")])
            return Expr(ty, before, self.gen(ty, env, depth - 1), after)
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
        if self.faulty and self.chance(0.15):
            form = self.r.randrange(3)
            if form == 0:
                return Expr(ty, "(", self.gen(INT, env, depth - 1), self.r.choice([" / ", " % "]),
                            self.gen(INT, env, depth - 1), ")")
            if form == 1:
                return Expr(ty, self.gen(list_of(INT), env, depth - 1), "[",
                            self.gen(INT, env, depth - 1), "]")
            # A comparison of numbers that never holds would be refused, were it not for the '||'.
            return Expr(ty, "{ check (", self.gen(BOOL, env, depth - 1), " || false); ",
                        self.gen(INT, env, depth - 1), " }")
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
            return Expr(ty, "(", self.gen(FLOAT, env, depth - 1),
                        self.r.choice([" + ", " - ", " * "]), self.gen(FLOAT, env, depth - 1), ")")
        if which == 1:
            return Expr(ty, "(float((", self.gen(INT, env, depth - 1), ") % 5) * 0.25)")
        if which == 2:
            return Expr(ty, "(", self.gen(FLOAT, env, depth - 1), " / (1.0 + abs(",
                        self.gen(FLOAT, env, depth - 1), ")))")
        return self.leaf(ty, env)

    def gen_bool(self, ty, env, depth):
        which = self.r.randrange(6)
        tokens = self.variables(TOKEN, env)
        if which == 5 and tokens:
            return Expr(ty, f"({self.r.choice(tokens)}{self.r.choice([' == ', ' != '])}",
                        self.gen(TOKEN, env, depth - 1), ")")
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

    def gen_token(self, ty, env, depth):
        return self.leaf(ty, env)

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
        return self.join(ty, name + "(",
                         [self.gen(self.known(t), env, depth - 2) for _, t in fields])
