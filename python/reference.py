#!/usr/bin/env python3
"""Writes docs/python-reference.md and python/sheaf/__init__.pyi, which follow from the package.

    PYTHONPATH=build/python /usr/bin/python3 python/reference.py [--check]

The reference has each public name with its parameters and its docstring. The stub says where names come
from that the package looks up only when they are asked for, so that type checkers and editors know them.
With --check it writes nothing, and tells whether a file is not what it would write.
"""
import importlib
import inspect
import os
import re
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
# Beside this stands the package without its extension.
sys.path[:] = [place for place in sys.path if os.path.realpath(place or ".") != os.path.realpath(HERE)]

import sheaf as sf  # noqa: E402

ROOT = os.path.join(HERE, "..")
REFERENCE, STUB = "docs/python-reference.md", "python/sheaf/__init__.pyi"

# What is told where: (heading, text, [(name shown, where it is)]).
SECTIONS = [
    ("Compiling and running", "", ["sheaf.jit", "sheaf.load", "sheaf.compile", "sheaf.Model", "sheaf.jit:CompiledModule",
                                   "sheaf.jit:Method", "sheaf.Batcher", "sheaf.Dataset"]),
    ("Modules", "Layers of `sf.nn` have the names, the parameters and the layouts of PyTorch's: "
     "[from PyTorch](from-pytorch.md). Operators are those of [the language](language.md#tensor-operators), by their names, "
     "with their parameters.", ["sheaf.Module", "sheaf.Param", "sheaf.from_torch", "sheaf.draws"]),
    ("Initialisers", "", ["sheaf." + n for n in ("constant", "glorot", "he", "identity", "normal", "orthogonal", "uniform")]),
    ("Training", "", ["sheaf.value_and_grad", "sheaf.vjp", "sheaf.fitting:Fit", "sheaf.fitting:FitStep",
                      "sheaf.fitting:Epoch", "sheaf.optim:SGD", "sheaf.optim:Adam", "sheaf.optim:AdamW",
                      "sheaf.optim:Adagrad", "sheaf.optim:RMSprop", "sheaf.optim:LAMB", "sheaf.gradients:Step",
                      "sheaf.gradients:Rows"]),
    ("Reports and errors", "", ["sheaf.explanation:Explanation", "sheaf.CompileError", "sheaf.InstanceError",
                                "sheaf.InstanceErrors", "sheaf.SheafError"]),
    ("Types in annotations", "", ["sheaf.Dim", "sheaf.TensorType"]),
]


def find(place):
    module, _, name = place.partition(":")
    if not name:
        module, _, name = place.rpartition(".")
    return name, getattr(importlib.import_module(module), name)


def signature(thing):
    try:
        text = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return ""
    text = re.sub(r" object at 0x[0-9a-f]+", "", text)
    text = re.sub(r"^\((self|cls)(, )?", "(", text)
    return re.sub(r" -> .*$", "", text)


def described(text, deeper=""):
    """A docstring in Markdown: what is indented is code, and so are lists of parameters."""
    lines = inspect.cleandoc(text).split("\n")
    out, code = [], False
    for i, line in enumerate(lines):
        columns = re.match(r"[a-z_]+(, [a-z_]+)*(?: \(.*?\))?  +\S", line)
        starts = line.startswith("    ") or columns
        if starts and not code and (i == 0 or not lines[i - 1].strip() or columns):
            out += ["```"] if not out or not out[-1].strip() else ["", "```"]
            code = True
        elif code and not starts and line.strip() and not line.startswith(" "):
            while not out[-1].strip():
                out.pop()
            out += ["```", ""]
            code = False
        out.append(line.removeprefix("    ") if code else line)
    if code:
        while not out[-1].strip():
            out.pop()
        out.append("```")
    return textwrap.indent("\n".join(out), deeper, lambda line: bool(line.strip()))


def entry(name, thing):
    yield f"### {name}"
    yield ""
    shown = signature(thing)
    if shown and not (inspect.isclass(thing) and issubclass(thing, BaseException)):
        yield f"`{name}{shown}`"
        yield ""
    if thing.__doc__:
        yield described(thing.__doc__)
        yield ""
    if not inspect.isclass(thing):
        return
    for member, value in vars(thing).items():
        if member.startswith("_") or not inspect.getdoc(value):
            continue
        if inspect.isfunction(value):
            yield f"**`{member}{signature(value)}`**"
        elif isinstance(value, (property, classmethod, staticmethod)):
            inner = getattr(value, "__func__", None)
            yield f"**`{member}{signature(inner) if inner else ''}`**"
        else:
            continue
        yield ""
        yield described(value.__doc__ or inspect.getdoc(value))
        yield ""


def reference():
    yield "# Python: reference"
    yield ""
    yield ("Made from the package by `python/reference.py`. [Python](python.md) is the guide; `help(sf.jit)` says the same.")
    for heading, text, places in SECTIONS:
        yield ""
        yield f"## {heading}"
        yield ""
        if text:
            yield text
            yield ""
        for place in places:
            yield from entry(*find(place))


def stub():
    yield '# Made by python/reference.py: where the names of the package come from.'
    by = {}
    for name in sorted(set(sf.__all__) | set(sf._COMPILED) | sf.ops.BUILTINS):
        thing = getattr(sf, name)
        if inspect.ismodule(thing):
            by.setdefault(".", []).append(name)
            continue
        own = getattr(thing, "__module__", "").removeprefix("sheaf.")
        rooms = [own, *(m.removeprefix("sheaf.") for m in sorted(sys.modules) if m.startswith("sheaf."))]
        module = next(m for m in rooms if getattr(sys.modules.get(f"sheaf.{m}"), name, None) is thing)
        by.setdefault("." + module, []).append(name)
    for module, names in sorted(by.items()):
        for name in names:
            yield f"from {module} import {name} as {name}"
    yield ""
    yield "__version__: str"


def main():
    check, bad = sys.argv[1:] == ["--check"], False
    for file, lines in ((REFERENCE, reference()), (STUB, stub())):
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines).rstrip()) + "\n"
        path = os.path.join(ROOT, file)
        there = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8") as old:
                there = old.read()
        if there == text:
            continue
        if check:
            print(f"{file} is not what the package says: run python/reference.py")
            bad = True
        else:
            with open(path, "w", encoding="utf-8") as new:
                new.write(text)
            print(f"wrote {file}")
    sys.exit(bad)


if __name__ == "__main__":
    main()
