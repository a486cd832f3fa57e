"""Random programs of ordinary Python, by type: every one is well-typed, ends, and keeps its ints small.

    python3 random_programs.py 17        # prints the program of seed 17
"""
import random
import sys

HEAD = """from dataclasses import dataclass
from typing import NamedTuple, Optional
from sheaf import *

@dataclass
class Leaf:
    n: int
@dataclass
class Node:
    left: "Tree"
    right: "Tree"
Tree = Leaf | Node

class Pair(NamedTuple):
    a: int
    b: float

def weigh(t: Tree, k: int = 1) -> int:
    match t:
        case Leaf(n):
            return n * k
        case Node(l, r):
            return weigh(l, k) - weigh(r, k=k + 1)

"""

TYPES = ["int", "int", "int", "bool", "float", "list[int]", "list[int]", "tuple[int, bool]", "Tree", "Optional[int]",
         "Pair", "list[tuple[int, float]]"]


class Generator:
    def __init__(self, seed, whiles=True):
        self.random, self.whiles = random.Random(seed), whiles
        self.lines, self.count, self.indent, self.types = [], 0, 1, {}

    def pick(self, *choices):
        return self.random.choice(choices)

    def name(self, type_):
        self.count += 1
        # Names of operators, and words of the language, too. A name has one type, as a loop may come back.
        name = self.pick(f"x{self.count}", f"sum_{self.count}", f"N{self.count}", "norm", "fn", "data", "let", "xs")
        if self.types.setdefault(name, type_) != type_:
            name = f"y{self.count}"
        return name

    def put(self, line):
        self.lines.append("    " * self.indent + line)

    # Expressions: text of a type over variables {name: type}.

    def of(self, type_, scope, depth):
        r = self.random
        known = [n for n, t in scope.items() if t == type_]
        if known and r.random() < (0.35 if depth > 0 else 0.9):
            return r.choice(known)
        e = lambda t: self.of(t, scope, depth - 1)
        if depth <= 0:
            return {"int": str(r.randint(-4, 9)), "bool": self.pick("True", "False"),
                    "float": self.pick("0.5", "-1.25", "2.0"), "list[int]": self.pick("[1, -2, 3]", "[4]", "[0, 0]"),
                    "tuple[int, bool]": "(3, True)", "Tree": "Leaf(2)", "Optional[int]": self.pick("None", "5"),
                    "Pair": "Pair(1, 0.5)", "list[tuple[int, float]]": "[(1, 0.5), (2, -1.0)]"}[type_]
        if type_ == "int":
            return self.pick(
                lambda: f"({e('int')} {self.pick('+', '-', '*')} {e('int')})",
                lambda: f"({e('int')} {self.pick('//', '%')} {self.pick('3', '-4', '7')})",
                lambda: f"({e('int')} if {e('bool')} else {e('int')})",
                lambda: f"len({e('list[int]')})",
                lambda: f"{self.pick('max', 'min')}({e('int')}, {e('int')})",
                lambda: f"sum({e('list[int]')})",
                lambda: f"sum(i * {e('int')} for i in {e('list[int]')} if i > {e('int')})",
                lambda: f"{self.pick('max', 'min')}({e('list[int]')}, default={e('int')})",
                lambda: f"{e('tuple[int, bool]')}[0]",
                lambda: f"weigh({e('Tree')}{self.pick('', ', 2')})",
                lambda: f"(-{e('int')})", lambda: f"abs({e('int')})",
                lambda: f"{e('Pair')}.a",
                lambda: f"int({e('float')})",
                lambda: f"({e('int')} % 5) ** 2",
                lambda: f"[5, 6, 7][{e('int')} % 3 - {self.pick(0, 1, 3)}]")()
        if type_ == "bool":
            return self.pick(
                lambda: f"({e('int')} {self.pick('<', '<=', '==', '!=')} {e('int')})",
                lambda: f"({e('int')} < {e('int')} <= {e('int')})",
                lambda: f"({e('bool')} {self.pick('and', 'or')} {e('bool')})",
                lambda: f"(not {e('bool')})",
                lambda: f"({e('int')} {self.pick('in', 'not in')} {e('list[int]')})",
                lambda: f"{self.pick('any', 'all')}(v {self.pick('>', '==')} {e('int')} for v in {e('list[int]')})",
                lambda: f"({e('float')} > {self.pick(e('float'), e('int'))})",
                lambda: f"({e('Optional[int]')} is {self.pick('', 'not ')}None)",
                lambda: f"({e('tuple[int, bool]')} == {e('tuple[int, bool]')})",
                lambda: f"bool({e('list[int]')})")()
        if type_ == "float":
            return self.pick(
                lambda: f"({e('float')} {self.pick('+', '-', '*')} {self.pick(e('float'), e('int'))})",
                lambda: f"({e('int')} / {self.pick('4', '-3', '2.5')})",
                lambda: f"float({e('int')})", lambda: f"{e('Pair')}[1]",
                lambda: f"sum(v for _, v in {e('list[tuple[int, float]]')})")()
        if type_ == "list[int]":
            return self.pick(
                lambda: f"[{e('int')}, {e('int')}]",
                lambda: f"({e('list[int]')} + {e('list[int]')})",
                lambda: f"[v {self.pick('+', '-')} {e('int')} for v in {e('list[int]')}]",
                lambda: f"[i + v for i, v in enumerate({e('list[int]')}) if v != {e('int')}]",
                lambda: f"list(range({self.pick('5', '-1', '3')}, {e('int')} % 7))",
                lambda: f"{e('list[int]')}[{self.pick('1:', ':-1', '-2:', '::-1', '1:2')}]",
                lambda: f"[*{e('list[int]')}, {e('int')}]",
                lambda: f"([{e('int')}] * ({e('int')} % 3))",
                lambda: f"[a for a, _ in {e('list[tuple[int, float]]')}]")()
        if type_ == "tuple[int, bool]":
            return f"({e('int')}, {e('bool')})"
        if type_ == "Pair":
            return self.pick(f"Pair({e('int')}, {e('float')})", f"Pair(b={e('float')}, a={e('int')})")
        if type_ == "list[tuple[int, float]]":
            return self.pick(
                lambda: f"[(v, v / 2) for v in {e('list[int]')}]",
                lambda: f"[({e('int')}, {e('float')})]")()
        if type_ == "Tree":
            return self.pick(f"Leaf({e('int')} % 100)", f"Node({e('Tree')}, {e('Tree')})")
        return self.pick("None", e("int"), f"({e('int')} if {e('bool')} else None)")

    # Statements. What is assigned is kept small, so that ints never wrap and nothing doubles in a loop.

    def value(self, type_, scope, depth=2):
        if type_ == "Tree":
            return self.pick(f"Leaf({self.of('int', scope, 1)} % 10)", f"Node(Leaf(1), Leaf({self.of('int', scope, 1)}))")
        text = self.of(type_, scope, depth)
        return f"({text}) % 1000" if type_ == "int" else f"({text})[:6]" if type_.startswith("list") else text

    def assign(self, scope, fresh=True):
        old = [n for n, t in scope.items() if t in TYPES and not n.startswith("_")]
        if old and self.random.random() < 0.55:
            name = self.random.choice(old)
            type_ = scope[name]
            if type_ == "int" and self.random.random() < 0.4:
                self.put(f"{name} = ({name} {self.pick('+', '-', '*')} {self.of('int', scope, 1)}) % 1000")
                return
        else:
            type_ = self.pick(*TYPES)
            name = self.name(type_)
        note = f": {type_}" if type_ == "Optional[int]" else ""
        self.put(f"{name}{note} = {self.value(type_, scope)}")
        scope[name] = type_

    def block(self, scope, depth, loop, statements=3):
        """Statements in a scope of their own; names that they make are not known after it."""
        self.indent += 1
        inner = dict(scope)
        for _ in range(self.random.randint(1, statements)):
            self.statement(inner, depth - 1, loop)
        self.jump(inner, loop)
        self.indent -= 1
        # What was there before has the type that it had: only such names are assigned again.
        return inner

    def jump(self, scope, loop):
        r = self.random.random()
        if loop and r < 0.2:
            self.put(self.pick("break", "continue"))
        elif r < 0.3:
            self.put(f"return {self.of(self.result, scope, 2)}")

    def statement(self, scope, depth, loop):
        kind = self.pick("assign", "assign", "assign", "if", "for", "match", "append", "unpack", "while", "assert",
                         "if", "none")
        if depth <= 0 and kind in ("if", "for", "match", "while", "none"):
            kind = "assign"
        getattr(self, "make_" + kind)(scope, depth, loop)

    def make_assign(self, scope, depth, loop):
        self.assign(scope)

    def restored(self, scope, blocks):
        """Names keep their types: one that a block made into something else is forgotten."""
        for inner in blocks:
            for name in list(scope):
                if inner.get(name) != scope[name]:
                    del scope[name]

    def make_if(self, scope, depth, loop):
        self.put(f"if {self.of('bool', scope, 2)}:")
        blocks = [self.block(scope, depth, loop)]
        if self.random.random() < 0.3:
            self.put(f"elif {self.of('int', scope, 1)}:")
            blocks.append(self.block(scope, depth, loop))
        if self.random.random() < 0.6:
            self.put("else:")
            blocks.append(self.block(scope, depth, loop))
        self.restored(scope, blocks)

    def make_none(self, scope, depth, loop):
        known = [n for n, t in scope.items() if t == "Optional[int]"]
        if not known:
            return self.assign(scope)
        name = self.random.choice(known)
        self.put(self.pick(f"if {name} is None:", f"if not ({name} is not None):"))
        blocks = [self.block(scope, depth, loop)]
        self.put("else:")
        inner = {**scope, name: "int"}
        made = self.block(inner, depth, loop)
        made[name] = "Optional[int]" if made.get(name) == "int" else made.get(name)
        self.restored(scope, [*blocks, made])

    def make_for(self, scope, depth, loop):
        name = f"i{self.count}"
        self.count += 1
        ints = [n for n, t in scope.items() if t == "int"]
        if ints and self.random.random() < 0.3:
            name = self.random.choice(ints)  # which keeps the last value
        inner = dict(scope)
        kind = self.pick("list", "range", "enumerate", "pairs", "zip")
        xs = self.of("list[int]", scope, 1)
        if kind == "list":
            self.put(f"for {name} in {xs}:")
        elif kind == "range":
            self.put(f"for {name} in range({self.pick('4', '-1, 5', '6, 0, -2')}):")
        elif kind == "enumerate":
            self.put(f"for {name}, e{name} in enumerate({xs}{self.pick('', ', 2')}):")
            inner["e" + name] = "int"
        elif kind == "zip":
            ys = self.of("list[int]", scope, 1)
            self.put(f"for {name}, e{name} in zip({xs}, {ys}):")
            inner["e" + name] = "int"
        else:
            self.put(f"for {name}, e{name} in {self.of('list[tuple[int, float]]', scope, 1)}:")
            inner["e" + name] = "float"
        inner[name] = "int"
        made = self.block(inner, depth, True)
        self.restored(scope, [made])
        if self.random.random() < 0.25:
            self.put("else:")
            self.restored(scope, [self.block(scope, depth, loop)])

    def make_while(self, scope, depth, loop):
        if not self.whiles:
            return self.make_for(scope, depth, loop)
        name = f"turn{self.count}"
        self.count += 1
        self.put(f"{name} = 0")
        self.put(f"while {name} < {self.pick(3, 5)}{self.pick('', ' and ' + self.of('bool', scope, 1))}:")
        self.indent += 1
        self.put(f"{name} += 1")
        self.indent -= 1
        inner = {**scope, "_" + name: "turn"}
        self.restored(scope, [self.block(inner, depth, True)])

    def make_match(self, scope, depth, loop):
        if self.random.random() < 0.5:
            self.put(f"match {self.of('Tree', scope, 1)}:")
            a, b = f"a{self.count}", f"b{self.count}"
            self.count += 1
            cases = self.pick(
                [(f"Leaf({a})", {a: "int"}), (f"Node({a}, {b})", {a: "Tree", b: "Tree"})],
                [(f"Node(Leaf({a}), {b}) as whole", {a: "int", b: "Tree", "whole": "Tree"}),
                 (f"Leaf(n={a}) | Node(Leaf({a}), _)", {a: "int"}), ("_", {})] if False else
                [(f"Node(Leaf({a}), {b}) as whole", {a: "int", b: "Tree", "whole": "Tree"}),
                 (f"Leaf(n={a})", {a: "int"}), (b, {b: "Tree"})],
                [(f"Leaf({a}) | Node(Leaf({a}), _)", {a: "int"}), ("_", {})])
        elif self.random.random() < 0.5:
            self.put(f"match {self.of('list[int]', scope, 1)}:")
            a, b = f"a{self.count}", f"b{self.count}"
            self.count += 1
            cases = [("[]", {}), (f"[{a}]", {a: "int"}), (f"[{a}, *{b}]", {a: "int", b: "list[int]"})]
        else:
            self.put(f"match {self.of('int', scope, 1)}:")
            a = f"a{self.count}"
            self.count += 1
            cases = [("1 | 2 | -3", {}), (f"{a} if {a} > 4", {a: "int"}), ("_", {})]
        self.indent += 1
        blocks = []
        for pattern, names in cases:
            self.put(f"case {pattern}:")
            blocks.append(self.block({**scope, **names}, depth, loop, 2))
        self.indent -= 1
        self.restored(scope, blocks)

    def make_append(self, scope, depth, loop):
        name = f"own{self.count}"
        self.count += 1
        self.put(f"{name} = {self.pick('[]', '[7]')}")
        self.put(f"for v in {self.of('list[int]', scope, 1)}:")
        self.indent += 1
        if self.random.random() < 0.5:
            self.put(f"if v > {self.of('int', scope, 1)}:")
            self.indent += 1
            self.put(f"{name}.append(v)")
            self.indent -= 1
        else:
            self.put(f"w = (v * {self.of('int', scope, 1)}) % 1000")
            self.put(f"{name}.append(w)")
        self.indent -= 1
        scope[name] = "list[int]"

    def make_unpack(self, scope, depth, loop):
        a, b = f"u{self.count}", f"w{self.count}"
        self.count += 1
        known = [n for n, t in scope.items() if t == "int"]
        if len(known) > 1 and self.random.random() < 0.3:
            x, y = self.random.sample(known, 2)
            self.put(f"{x}, {y} = {y}, {x}")
            return
        self.put(f"{a}, {b} = {self.of('tuple[int, bool]', scope, 2)}")
        self.put(f"{a} %= 1000")
        scope[a], scope[b] = "int", "bool"

    def make_assert(self, scope, depth, loop):
        self.put(f"assert {self.of('int', scope, 1)} != 77, \"seventy-seven\"")

    def function(self):
        parameters = {"p": "int", "q": "list[int]", "t": "Tree", "o": "Optional[int]"}
        self.result = self.pick("int", "list[int]", "tuple[int, bool]", "Tree", "Optional[int]", "float", "Pair")
        scope = dict(parameters)
        shown = ", ".join(f"{n}: {t}" for n, t in parameters.items())
        self.lines.append(f"def f({shown}) -> {self.result}:")
        for _ in range(self.random.randint(3, 7)):
            self.statement(scope, 3, False)
        self.put(f"return {self.of(self.result, scope, 3)}")
        return "\n".join(self.lines) + "\n"


def program(seed, whiles=True):
    return HEAD + Generator(seed, whiles).function()


if __name__ == "__main__":
    print(program(int(sys.argv[1])))
