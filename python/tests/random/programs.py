"""Random models as Python text, and inputs for them.

`program(seed)` is a module with a class Model: recursion over trees, loops over lists and numbers,
branches on ints and on what is read of tensors, helper methods, layers. Every program ends, divides by
no 0 and indexes what is there; values stay small, so that eager and compiled f32 agree.
"""
import random

import numpy as np

HEAD = '''from dataclasses import dataclass

from sheaf import (Float32, Module, Param, concat, dot, normal, relu, sigmoid, softmax, stack, tanh, where,
                   zeros)


@dataclass(slots=True)
class Leaf:
    value: int


@dataclass(slots=True)
class Node:
    left: "Tree"
    tag: int
    right: "Tree"


Tree = Leaf | Node


class Layer(Module):
    def __init__(self, h, turns):
        self.h, self.turns = h, turns
        self.w, self.b = Param(h, h, init=normal(0.7)), Param(h, init=normal(0.3))

    def forward(self, x: Float32["h"]) -> Float32["h"]:
        for _ in range(self.turns):
            x = tanh(x @ self.w + self.b)
        return x


class Model(Module):
    def __init__(self, h=4):
        self.h = h
        self.table = Param(7, h, init=normal(1.0))
        self.w, self.u = Param(h, h, init=normal(0.7)), Param(2 * h, h, init=normal(0.7))
        self.b = Param(h, init=normal(0.5))
        self.layers = [Layer(h, 1), Layer(h, 1), Layer(h, 1)]
        self.last = Layer(h, 2)
'''
V, S, I, B, F, LV, LI, P, T = "V", "S", "I", "B", "F", "LV", "LI", "P", "T"
TYPES = {V: 'Float32["h"]', S: 'Float32[""]', I: "int", B: "bool", F: "float",
         LV: 'list[Float32["h"]]',
         LI: "list[int]", P: 'tuple[Float32["h"], int]', T: "Tree"}


class Writer:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.helpers, self.names = [], [], 0
        self.result = None  # of the method that is written, where it may return from within

    def pick(self, *choices):
        return self.random.choice(choices)

    def fresh(self, kind):
        self.names += 1
        return f"{kind.lower()}{self.names}"

    def put(self, depth, text):
        self.lines.append("    " * depth + text)

    # ---- Expressions ----

    def of(self, kind, scope, depth):
        """An expression of this kind over the variables of `scope`."""
        there = [name for name, k in scope.items() if k == kind]
        if there and (depth <= 0 or self.random.random() < 0.3):
            return self.pick(*there)
        return getattr(self, "of_" + kind)(scope, depth - 1)

    def of_V(self, scope, d):
        v = lambda: self.of(V, scope, d)
        if d <= 0:
            return self.pick("self.b", "zeros(self.h)", "self.table[3]", "self.w[1]")
        made = [lambda: f"({v()} {self.pick('+', '-', '*')} {v()})", lambda: f"{self.pick('tanh', 'sigmoid', 'relu')}({v()})",
                lambda: f"tanh({v()} @ self.w + self.b)", lambda: f"softmax({v()})", lambda: f"({v()} * {self.of(S, scope, d)})",
                lambda: f"tanh(concat({v()}, {v()}) @ self.u)", lambda: f"where({v()} > {v()}, {v()}, {v()})",
                lambda: f"self.layers[{self.pick(0, 1, -1)}]({v()})", lambda: f"self.last({v()})",
                lambda: f"self.table[{self.of(I, scope, d)} % 7]", lambda: f"concat({v()}[2:], {v()}[:2])",
                lambda: f"({v()} if {self.of(B, scope, d)} else {v()})",
                lambda: f"({v()} * {self.of(F, scope, d)})", lambda: f"stack([{v()}, {v()}]).mean(0)"]
        if LV in scope.values():
            xs = self.pick(*(name for name, k in scope.items() if k == LV))
            made.append(lambda: f"{xs}[{self.of(I, scope, d)} % len({xs})]")
            made.append(lambda: f"{xs}[-1]")
            made.append(lambda: f"tanh(stack({xs}).sum(0))")
        for name in (name for name, k in scope.items() if k == P):
            made += [lambda name=name: f"{name}[0]"] * 2
        for name, parameters, result in self.helpers:
            if result == V:
                made += [lambda name=name, parameters=parameters: self.call(name, parameters, scope, d)] * 2
        return self.pick(*made)()

    def call(self, name, parameters, scope, d):
        return f"self.{name}({', '.join(self.of(k, scope, min(d, 1)) for k in parameters)})"

    def of_S(self, scope, d):
        v = lambda: self.of(V, scope, d)
        return self.pick(lambda: f"sigmoid({v()}.sum())", lambda: f"tanh(dot({v()}, {v()}))", lambda: f"{v()}.mean()",
                         lambda: f"{v()}[{self.pick(0, 1, -1)}]", lambda: f"tanh({v()}.max())",
                         lambda: f"{v()}[{self.pick(':2', '-2:', '1:-1')}].mean()",
                         lambda: f"tanh({v()}[:{self.of(I, scope, d)} % 5].sum())")()

    def of_I(self, scope, d):
        i = lambda: self.of(I, scope, d)
        if d <= 0:
            return str(self.random.randint(-3, 9))
        made = [lambda: f"({i()} {self.pick('+', '-')} {i()})", lambda: f"({i()} // {self.pick(2, 3, -2)})",
                lambda: f"({i()} % {self.pick(3, 5, -4)})", lambda: f"{self.pick('min', 'max')}({i()}, {i()})",
                lambda: f"abs({i()})", lambda: f"({i()} // (abs({i()}) + 1))", lambda: f"int({self.of(F, scope, d)} * 4)", lambda: f"({i()} if {self.of(B, scope, d)} else {i()})",
                lambda: f"{self.of(V, scope, d)}.argmax().item()"]
        if LV in scope.values():
            xs, item = self.pick(*(name for name, k in scope.items() if k == LV)), self.fresh("x")
            made += [lambda: f"len({xs})",
                     lambda: f"sum({self.of(I, scope | {item: V}, d)} % 5 for {item} in {xs})",
                     lambda: f"len([{item} for {item} in {xs} if {self.of(B, scope | {item: V}, d)}])"]
        for name in (name for name, k in scope.items() if k == LI):
            made += [lambda name=name: f"sum({name})", lambda name=name: f"len({name})",
                     lambda name=name: f"(max({name}) if len({name}) > 0 else {self.of(I, scope, d)})"]
        for name in (name for name, k in scope.items() if k == P):
            made.append(lambda name=name: f"{name}[1]")
        for name, parameters, result in self.helpers:
            if result == I:
                made.append(lambda name=name, parameters=parameters: self.call(name, parameters, scope, d))
        return self.pick(*made)()

    def of_B(self, scope, d):
        if d <= 0:
            return f"{self.of(I, scope, 0)} < {self.random.randint(-1, 4)}"
        made = []
        if LV in scope.values():
            xs, item = self.pick(*(name for name, k in scope.items() if k == LV)), self.fresh("x")
            made = [lambda: f"{self.pick('any', 'all')}({self.of(B, scope | {item: V}, d)} for {item} in {xs})"]
        return self.pick(*made, lambda: f"{self.of(I, scope, d)} {self.pick('<', '<=', '==', '!=', '>')} {self.of(I, scope, d)}",
                         lambda: f"{self.of(S, scope, d)}.item() > {round(self.random.uniform(-0.5, 0.7), 2)}",
                         lambda: f"({self.of(B, scope, d)} {self.pick('and', 'or')} {self.of(B, scope, d)})",
                         lambda: f"(not ({self.of(B, scope, d)}))",
                         lambda: f"-2 < {self.of(I, scope, d)} <= 3")()

    def of_F(self, scope, d):
        if d <= 0:
            return str(round(self.random.uniform(-1, 1), 2))
        return self.pick(lambda: f"{self.of(S, scope, d)}.item()", lambda: f"({self.of(F, scope, d)} * {self.of(F, scope, d)})",
                         lambda: f"({self.of(I, scope, d)} % 5) / 4", lambda: f"min(1.0, {self.of(F, scope, d)})")()

    def of_P(self, scope, d):
        for name, parameters, result in self.helpers:
            if result == P and d > 0 and self.random.random() < 0.5:
                return self.call(name, parameters, scope, d)
        return f"({self.of(V, scope, d)}, {self.of(I, scope, d)} % 7)"

    def of_LI(self, scope, d):
        item = self.fresh("i")
        inner = scope | {item: I}
        made = [lambda: f"[{self.of(I, scope, d)}, {self.of(I, scope, d)}, {self.of(I, scope, d)}]",
                lambda: f"[{self.of(I, inner, d)} % 9 for {item} in range({self.pick('', '1, ', '-2, ')}{self.of(I, scope, d)} % 5)]",
                lambda: f"list(range({self.of(I, scope, d)} % 4, -1, -1))"]
        there = [name for name, k in scope.items() if k == LI]
        if there:
            made += [lambda: f"([{self.of(I, inner, d)} % 9 for {item} in {self.pick(*there)}])[1:]",
                     lambda: f"({self.pick(*there)} + [{self.of(I, scope, d)}])[-4:]"]
        return self.pick(*made)()

    def of_LV(self, scope, d):
        there = [name for name, k in scope.items() if k == LV]
        item = self.fresh("x")
        inner = scope | {item: V}
        if not there:
            return f"[{self.of(V, scope, d)}, {self.of(V, scope, d)}]"
        xs = self.pick(*there)
        return self.pick(lambda: f"[{self.of(V, inner, d)} for {item} in {xs}]", lambda: f"({xs} + [{self.of(V, scope, d)}])",
                         lambda: f"list(reversed({xs}))",
                         lambda: f"({xs}[{self.random.randint(-3, 3)}:] + [{self.of(V, scope, d)}])",
                         lambda: f"({xs}[:{self.of(I, scope, d)}] + [{self.of(V, scope, d)}])",
                         lambda: f"([{self.of(V, inner, d)} for {item} in {xs} if {self.of(B, inner, d)}] + [{self.of(V, scope, d)}])",
                         lambda: f"[{self.of(V, inner, d)} for {item} in {xs}[:2]]", lambda: f"[{self.of(V, scope, d)}, {self.of(V, scope, d)}]")()

    # ---- Statements ----

    def body(self, scope, depth, indent, count):
        """Statements; variables that they add are put into `scope`."""
        for _ in range(count):
            kinds = ["assign", "assign", "augment", "unpack"]
            if depth > 0:
                kinds += ["if_", "if_", "for_", "range_", "while_", "collect", "layers", "lists", "forever"]
            getattr(self, self.pick(*kinds))(scope, depth, indent)

    def inside(self, scope, depth, indent, count=None):
        """A block that assigns variables from outside alone; those of its own stay inside."""
        self.body(dict(scope), depth - 1, indent + 1, count or self.random.randint(1, 3))

    def changed(self, scope, indent):
        """An assignment to a variable that is there, so that a block does something."""
        there = [name for name, k in scope.items() if k in (V, I, P) and not name.startswith("fixed")]
        if not there:
            return self.put(indent, "pass")
        name = self.pick(*there)
        expression = self.of(scope[name], scope, 2)
        if scope[name] == P:
            return self.put(indent, f"{name} = ({name}[0] * 0.5, {self.of(I, scope, 1)} % 5)")
        self.put(indent, f"{name} = tanh({expression})" if scope[name] == V else f"{name} = ({expression}) % 11")

    def assign(self, scope, depth, indent):
        kind = self.pick(V, V, V, S, I, B, F, LV, LI, P)
        there = [name for name, k in scope.items() if k == kind and not name.startswith("fixed")]
        name = self.pick(*there) if there and self.random.random() < 0.5 else self.fresh(kind)
        expression = self.of(kind, scope, 3)
        if kind == V and self.random.random() < 0.6:
            expression = f"tanh({expression})"
        if kind == I:
            expression = f"({expression}) % {self.pick(6, 11)}"
        if kind == P and name in scope and self.random.random() < 0.5:
            a, b = self.fresh(V), self.fresh(I)
            self.put(indent, f"{a}, {b} = {name}")
            scope |= {a: V, b: I}
        if kind == LV:
            # Lists stay short.
            expression = f"({expression})[:5]"
        self.put(indent, f"{name} = {expression}")
        scope[name] = kind

    def augment(self, scope, depth, indent):
        there = [name for name, k in scope.items() if k == V and not name.startswith("fixed")]
        if there:
            self.put(indent, f"{self.pick(*there)} {self.pick('+=', '-=', '*=')} tanh({self.of(V, scope, 2)})")

    def unpack(self, scope, depth, indent):
        a, b = self.fresh(V), self.fresh(I)
        self.put(indent, f"{a}, {b} = {self.of(V, scope, 2)}, {self.of(I, scope, 2)} % 9")
        scope |= {a: V, b: I}

    def if_(self, scope, depth, indent):
        self.put(indent, f"if {self.of(B, scope, 2)}:")
        self.inside(scope, depth, indent)
        self.changed(scope, indent + 1)
        new = self.fresh(V) if self.random.random() < 0.5 else None
        if new:
            self.put(indent + 1, f"{new} = {self.of(V, scope, 2)}")
        if new or self.random.random() < 0.5:
            if self.random.random() < 0.3:
                self.put(indent, f"elif {self.of(B, scope, 1)}:")
                self.changed(scope, indent + 1)
                if new:
                    self.put(indent + 1, f"{new} = {self.of(V, scope, 1)}")
            self.put(indent, "else:")
            self.changed(scope, indent + 1)
            if new:
                self.put(indent + 1, f"{new} = {self.of(V, scope, 2)}")
                scope[new] = V

    def loop(self, scope, depth, indent, variable, kind):
        inner = dict(scope) | ({variable: kind} if variable else {})
        leave = self.random.random()
        if leave < 0.35:
            self.put(indent + 1, f"if {self.of(B, inner, 1)}:")
            if leave < 0.1:
                self.changed(inner, indent + 2)
            if leave < 0.25 or not self.result:
                self.put(indent + 2, self.pick("break", "continue"))
            else:
                self.put(indent + 2, f"return {self.of_result(inner)}")
        self.body(inner, depth - 1, indent + 1, self.random.randint(0, 2))
        self.changed(scope, indent + 1)

    def for_(self, scope, depth, indent):
        there = [name for name, k in scope.items() if k == LV]
        if not there:
            return
        item, xs, i = self.fresh("fixedx"), self.pick(*there), self.fresh("fixedi")
        head = self.random.randint(0, 3)
        if head == 0:
            self.put(indent, f"for {item} in {xs}:")
        elif head == 1:
            self.put(indent, f"for {item} in reversed({xs}):")
        elif head == 2:
            self.put(indent, f"for {i}, {item} in enumerate({xs}):")
            return self.loop(scope | {i: I}, depth, indent, item, V)
        else:
            other = self.fresh("fixedx")
            self.put(indent, f"for {item}, {other} in zip({xs}, reversed({xs})):")
            return self.loop(scope | {other: V}, depth, indent, item, V)
        self.loop(scope, depth, indent, item, V)

    def layers(self, scope, depth, indent):
        """Over the layers of the model: written out when it is compiled."""
        there = [name for name, k in scope.items() if k == V and not name.startswith("fixed")]
        if not there:
            return
        layer, i = self.fresh("fixedlayer"), self.fresh("fixedi")
        named = self.random.random() < 0.4
        self.put(indent, f"for {i}, {layer} in enumerate(self.layers):" if named else f"for {layer} in self.layers:")
        self.put(indent + 1, f"{self.pick(*there)} = {layer}({self.of(V, scope, 1)})")
        self.loop(scope | ({i: I} if named else {}), depth, indent, None, None)

    def lists(self, scope, depth, indent):
        """match of a list."""
        there = [name for name, k in scope.items() if k == LV]
        if not there:
            return
        a, b, rest = self.fresh("fixedx"), self.fresh("fixedx"), self.fresh("fixedxs")
        self.put(indent, f"match {self.pick(*there)}:")
        self.put(indent + 1, f"case [{a}]:" if self.random.random() < 0.5 else f"case [{a}] if {self.of(B, scope, 1)}:")
        self.changed(scope | {a: V}, indent + 2)
        self.put(indent + 1, f"case [{a}, {b}, *{rest}]:")
        self.inside(scope | {a: V, b: V}, 1, indent + 1, 1)
        self.changed(scope | {a: V, b: V}, indent + 2)
        self.put(indent + 1, "case _:")
        self.changed(scope, indent + 2)

    def forever(self, scope, depth, indent):
        """`while True` that `break` leaves, after three turns at the latest."""
        count = self.fresh("fixedn")
        self.put(indent, f"{count} = 0")
        self.put(indent, "while True:")
        self.put(indent + 1, f"{count} += 1")
        self.body(dict(scope) | {count: I}, 0, indent + 1, 1)
        self.changed(scope, indent + 1)
        self.put(indent + 1, f"if {count} == 3 or {self.of(B, scope | {count: I}, 1)}:")
        self.put(indent + 2, "break")

    def range_(self, scope, depth, indent):
        item = self.fresh("fixedi")
        there = [name for name, k in scope.items() if k == LI]
        if there and self.random.random() < 0.5:
            self.put(indent, f"for {item} in {self.pick(*there)}:")
            return self.loop(scope, depth, indent, item, I)
        self.put(indent, f"for {item} in range({self.of(I, scope, 1)} % 4):")
        self.loop(scope, depth, indent, item, I)

    def while_(self, scope, depth, indent):
        count = self.fresh("fixedn")
        self.put(indent, f"{count} = 0")
        self.put(indent, f"while {count} < 3 and {self.of(B, scope, 2)}:")
        self.put(indent + 1, f"{count} += 1")
        self.loop(scope, depth, indent, count, I)

    def collect(self, scope, depth, indent):
        there = [name for name, k in scope.items() if k == LV]
        if not there:
            return
        made, item = self.fresh("fixedmade"), self.fresh("fixedx")
        self.put(indent, f"{made} = []")
        self.put(indent, f"for {item} in {self.pick(*there)}:")
        inner = scope | {item: V}
        self.changed(inner | {item: "-"}, indent + 1)
        self.put(indent + 1, f"{made}.append({self.of(V, inner, 2)})")
        xs = self.fresh(LV)
        self.put(indent, f"{xs} = {made}")
        scope[xs] = LV

    # ---- Methods ----

    def of_result(self, scope):
        return self.of(self.result, scope, 2)

    def method(self, name, parameters, result):
        self.result = result
        scope = {self.fresh("fixed" + kind): kind for kind in parameters}
        typed = "".join(f", {name}: {TYPES[kind]}" for name, kind in scope.items())
        self.put(1, f"def {name}(self{typed}) -> {TYPES[result]}:")
        first = self.fresh(V)
        self.put(2, f"{first} = {self.of(V, scope, 1)}")
        scope[first] = V
        self.body(scope, 1, 2, self.random.randint(1, 3))
        if self.random.random() < 0.5:
            self.put(2, f"if {self.of(B, scope, 2)}:")
            self.put(3, f"return {self.of(result, scope, 2)}")
        self.put(2, f"return {self.of(result, scope, 3)}")
        self.put(0, "")
        self.result = None
        self.helpers.append((name, parameters, result))

    def walk(self):
        self.put(1, 'def walk(self, fixedt: Tree, fixedv: Float32["h"]) -> Float32["h"]:')
        self.put(2, "match fixedt:")
        self.put(3, "case Leaf(fixedi):")
        scope = {"fixedv": V, "fixedi": I}
        self.body(scope, 0, 4, 1)
        self.put(4, f"return tanh({self.of(V, scope, 2)})")
        if self.random.random() < 0.5:
            self.put(3, f"case Node(Leaf(fixedi), fixedj, fixedr) if {self.of(B, {'fixedi': I, 'fixedj': I}, 2)}:")
            self.put(4, "fixedq = self.walk(fixedr, fixedv)")
            self.put(4, f"return tanh({self.of(V, {'fixedq': V, 'fixedv': V, 'fixedi': I, 'fixedj': I}, 2)})")
        self.put(3, "case Node(fixedl, fixedj, fixedr):")
        scope = {"fixedv": V, "fixedj": I}
        a, b = self.fresh(V), self.fresh(V)
        self.put(4, f"{a} = self.walk(fixedl, {self.of(V, scope, 1)})")
        scope[a] = V
        self.put(4, f"{b} = self.walk(fixedr, {self.of(V, scope, 1)})")
        scope[b] = V
        self.body(scope, 1, 4, self.random.randint(0, 2))
        self.put(4, f"return tanh({a} - {b} + {self.of(V, scope, 2)})")
        self.put(0, "")

    def mirror(self):
        """A tree that is made of another."""
        self.put(1, "def mirror(self, fixedt: Tree, fixedi: int) -> Tree:")
        self.put(2, "match fixedt:")
        self.put(3, "case Leaf(fixedj):")
        scope = {"fixedi": I, "fixedj": I}
        self.put(4, f"if {self.of(B, scope, 1)}:")
        self.put(5, f"return Node(fixedt, {self.of(I, scope, 1)}, Leaf({self.of(I, scope, 1)}))")
        self.put(4, f"return Leaf({self.of(I, scope, 2)})")
        self.put(3, "case Node(left=fixedl, tag=fixedj, right=fixedr):")
        self.put(4, f"return Node(self.mirror(fixedr, {self.of(I, scope, 1)} % 9), fixedj, fixedl)")
        self.put(0, "")

    def write(self):
        self.put(0, "")
        for number in range(self.random.randint(1, 3)):
            self.method(f"helper{number}", [self.pick(V, I, F, S, LV, LI, P) for _ in range(self.random.randint(1, 3))],
                        self.pick(V, V, I, P))
        self.walk()
        self.mirror()
        scope = {"fixedxs": LV, "fixedt": T, "fixedk": I}
        self.put(1, "def forward(self, fixedxs: list[Float32[\"h\"]], fixedt: Tree, fixedk: int) -> tuple["
                 "Float32[\"h\"], Float32[\"\"], int, list[Float32[\"h\"]]]:")
        scope["v"] = V
        self.put(2, self.pick("v = self.walk(fixedt, fixedxs[0])",
                              "v = self.walk(self.mirror(fixedt, fixedk), fixedxs[-1])"))
        self.body(scope, 2, 2, self.random.randint(3, 6))
        self.put(2, f"return {self.of(V, scope, 2)}, {self.of(S, scope, 2)}, {self.of(I, scope, 2)}, "
                 f"{self.of(LV, scope, 2)}")
        return HEAD + "\n".join(self.lines) + "\n"


def program(seed):
    return Writer(seed).write()


def inputs(module, count, seed):
    """(list of vectors, tree, int) for each of so many instances."""
    draw = random.Random(seed)

    def tree(depth):
        if depth == 0 or draw.random() < 0.3:
            return module.Leaf(draw.randint(-3, 9))
        return module.Node(tree(depth - 1), draw.randint(-3, 9), tree(depth - 1))

    numbers = np.random.default_rng(seed)
    return [([numbers.normal(size=4).astype(np.float32) for _ in range(draw.randint(1, 4))],
             tree(draw.randint(0, 3)), draw.randint(-5, 9)) for _ in range(count)]
