"""Random expressions of tensors: a mixin of the generator, as expressions.py is."""
from program import FLOAT, INT, TOKEN, Expr, list_of, tensor


class Tensors:
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
        if len(dims) == 3:
            options += [self.cube] * 8
        if dims:
            options += [self.normalised, self.broadcast, self.reduced]
        return self.r.choice(options)(ty, env, depth)

    def unary(self, ty, env, depth):
        x = self.gen(ty, env, depth - 1)
        form = self.r.choice([
            "tanh({})", "sigmoid({})", "relu({})", "sin(clamp({}, -9, 9))",
            "cos(clamp({}, -9, 9))", "abs({})", "(-{})",
            "gelu({})", "gelu_tanh({})", "erf({})", "silu({})", "softplus({})", "exp(tanh({}))", "sqrt(1 + square({}))",
            "log(1 + square({}))", "rsqrt(1 + square({}))", "clamp({}, -1, 1)", "tanh({})",
            "sigmoid({})", "dropout({}, 0.25)", "square(tanh({}))", "pow(1 + abs({}), 0.5)", "maximum({}, 0.1)"])
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
        which = self.r.randrange(18)
        if which == 17:  # two matrices of as many rows as a list has elements
            if not self.is_static([d]):
                return None
            z, x, y, i = (self.fresh(c) for c in "zxyi")
            return Expr(ty, f"{{ let {z} = ", self.gen(list_of(ty), env, depth - 1),
                        f"; sum(stack(map(|{x}| ", self.gen(ty, env + [(x, ty)], depth - 1),
                        f", {z})) - stack(map(|({y}, {i})| ",
                        self.gen(ty, env + [(y, ty), (i, INT)], depth - 1),
                        f", zip({z}, range(len({z}))))), axis=0) }}")
        if which == 13:  # chosen place by place
            n = self.gen(INT, env, depth - 2)
            test = self.r.choice([f"iota({d}) < ", f"iota({d}) != ",
                                  f"!(iota({d}) == 1) && iota({d}) >= "])
            return Expr(ty, "where(", test, n, ", ", self.gen(ty, env, depth - 1), ", ",
                        self.gen(ty, env, depth - 1), ")")
        if which == 14:  # an accumulator that grows
            source, x, y = self.gen(list_of(ty), env, depth - 1), self.fresh("x"), self.fresh("y")
            return Expr(ty, f"tanh(sum(fold(|{x}: f32[?, {d}], {y}| ",
                        f"concat({x}, expand_dims({y})), zeros(1, {d}), ", source, "), axis=0))")
        if which == 15:
            words = self.variables(TOKEN, env)
            if not words or not self.is_static([d]):
                return None
            return Expr(ty, f"{self.param('vocab', d)}[{self.r.choice(words)}]")
        if which == 16:
            words = self.variables(list_of(TOKEN), env)
            if not words or not self.is_static([d]):
                return None
            w, acc = self.fresh("w"), self.fresh("s")
            return Expr(ty, f"fold(|{acc}, {w}| ", self.bounded(
                ty, env + [(acc, ty), (w, TOKEN)], depth - 1), ", ", self.leaf(ty, env),
                f", {self.r.choice(words)})")
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
            form = self.r.randrange(5) if self.is_static([d]) else 2
            if form == 0:
                return Expr(ty, "sum(stack(", source, "), axis=0)")
            name, m = self.fresh("m"), self.fresh("m")
            if form == 1:
                w = self.param(d, d)
                return Expr(ty, f"{{ let {name} = stack(", source,
                            f"); let {m} = softmax(({name} @ {w}) @ transpose({name})); "
                            f"tanh(sum({m} @ {name}, axis=0)) }}")
            if form == 3:
                return Expr(ty, f"{{ let {name} = stack(", source,
                            f"); tanh(sum(attention({name} @ {self.param(d, d)}, {name}, {name}, "
                            f"causal={self.r.randrange(2)}), axis=0)) }}")
            if form == 4:  # keys that are not seen hold anything
                n, see = self.fresh("n"), self.fresh("s")
                bad = self.r.choice(["1.0 / 0.0", "0.0 / 0.0", "-1.0 / 0.0"])
                mask = self.r.choice([see, f"where({see}, 0.5, -1.0 / 0.0)"])
                return Expr(ty, f"{{ let {name}: f32[{n}, {d}] = stack(", source,
                            f"); let {see} = iota({n}) {self.r.choice(['== 0', '< 2', '!= 1', '!= 2'])}; "
                            f"let {m} = where(expand_dims({see}, 1), {name}, {bad}); "
                            f"tanh(sum(masked_attention({name} @ {self.param(d, d)}, {m}, {m}, "
                            f"{mask}, causal={self.r.randrange(2)}), axis=0)) }}")
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
        which = self.r.randrange(12)
        if which == 9:
            axis, f = self.r.randrange(3), self.static()
            dims = [d, e]
            dims.insert(axis, f)
            return Expr(ty, self.r.choice(["sum(", "mean(", "max("]),
                        self.gen(tensor(*dims), env, depth - 1), f", axis={axis})")
        if which == 10:
            if not self.is_static([d, e]):
                return None
            table = self.param("3", d, e)
            return Expr(ty, f"element({table}, abs(", self.gen(INT, env, depth - 2), ") % 3)")
        if which == 11:
            f = self.static()
            return Expr(ty, "element(", self.gen(tensor(d, f, e), env, depth - 1), ", abs(",
                        self.gen(INT, env, depth - 2), f") % {f}, axis=1)")
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

    def cube(self, ty, env, depth):
        d, e, f = ty[1]
        which = self.r.randrange(6)
        if which == 0:
            return Expr(ty, "(expand_dims(", self.gen(tensor(d, e), env, depth - 1),
                        ", axis=2) * ", self.gen(tensor(f), env, depth - 1), ")")
        if which == 1:
            g = self.static()
            return Expr(ty, "tanh(", self.gen(tensor(d, e, g), env, depth - 1), " @ ",
                        self.gen(tensor(d, g, f), env, depth - 1), ")")
        if which == 2:
            if not self.is_static([f]):
                return None
            g = self.static()
            return Expr(ty, "(", self.gen(tensor(d, e, g), env, depth - 1),
                        f" @ {self.param(g, f)})")
        if which == 3:
            return Expr(ty, "transpose(", self.gen(tensor(e, d, f), env, depth - 1), ", 0, 1)")
        if which == 4:
            g = self.static()
            return Expr(ty, "tanh(", self.gen(tensor(e, g), env, depth - 1), " @ ",
                        self.gen(tensor(d, g, f), env, depth - 1), ")")
        return Expr(ty, "(", self.gen(ty, env, depth - 1), " + ",
                    self.gen(tensor(e, f), env, depth - 1), ")")

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
