"""What the tests share: programs in files of their own, the checker alone, eager beside compiled."""
import importlib.util
import json
import math
import os
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import pytest

from sheaf import front, jit, ops
from sheaf.errors import CompileError, Diagnostic
from sheaf.front.messages import translated

HEAD = """from dataclasses import dataclass
from typing import Callable, Generic, NamedTuple, Optional, TypeVar
import math
import numpy as np
import sheaf as sf
from sheaf import *
"""


def command():
    if "SHEAF" in os.environ:
        return os.environ["SHEAF"]
    return str(pathlib.Path(os.environ.get("SHEAF_BUILD", "build")) / "bin" / "sheaf")


def checked(program, name="model.sheaf"):
    """Raises what the checker of `.sheaf` says of a Program, in Python's terms. No code is made."""
    done = subprocess.run([command(), "check", "-", "--format", "json"], input=program.text, text=True,
                          capture_output=True, timeout=60)
    if done.returncode == 0:
        return program
    found = json.loads(done.stdout)["findings"]
    error = CompileError("not compiled")

    def read(f):
        place = (f.get("line", 0), f.get("column", 0), f.get("end_line", 0), f.get("end_column", 0))
        return Diagnostic(f.get("severity", "note"), name if place[0] else None, *place, f["message"],
                          f.get("help", ""), f["message"], tuple(map(read, f.get("notes", ()))))
    error.diagnostics = tuple(map(read, found))
    raise translated(error, program, name)


@pytest.fixture
def module(tmp_path):
    """Imports a text as a file of its own."""
    count = 0
    made = []

    def make(text, head=HEAD):
        nonlocal count
        count += 1
        path = tmp_path / f"program{count}.py"
        path.write_text(head + text)
        name = f"sheaf_test_{tmp_path.name}_{count}"
        spec = importlib.util.spec_from_file_location(name, path)
        found = importlib.util.module_from_spec(spec)
        sys.modules[name] = found
        made.append(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            spec.loader.exec_module(found)
        return found
    yield make
    for name in made:
        del sys.modules[name]


def lowered(target, *methods, extra=None):
    """The Program of a function, or of a Module with some of its methods."""
    if methods:
        entries = [(name, getattr(type(target), name), True) for name in methods]
        return front.lower(target, entries, main=methods[0], extra=extra)
    return front.lower(target, [(target.__name__, target, False)], main=target.__name__, extra=extra)


def eager(function, arguments):
    try:
        return function(*[ops.tensor(x) if isinstance(x, np.ndarray) else x for x in arguments])
    except Exception as error:
        return error


def agree(eager, compiled, tolerance=1e-5):
    """Whether two results are one: ints and structure exactly, floats to the oracle's tolerance."""
    if isinstance(eager, Exception) or isinstance(compiled, Exception):
        return isinstance(eager, Exception) and isinstance(compiled, Exception)
    if isinstance(eager, (list, tuple)):
        return (isinstance(compiled, (list, tuple)) and len(eager) == len(compiled)
                and isinstance(eager, list) == isinstance(compiled, list)
                and all(agree(x, y, tolerance) for x, y in zip(eager, compiled)))
    if isinstance(eager, np.ndarray) or isinstance(compiled, np.ndarray):
        a, b = np.asarray(eager), np.asarray(compiled)
        return a.shape == b.shape and (a.size == 0 or bool(
            np.all(np.abs(a - b) <= tolerance * max(1, np.max(np.abs(a))))))
    if isinstance(eager, bool) or isinstance(compiled, (bool, np.bool_)):
        return bool(eager) == bool(compiled) and not isinstance(eager, float)
    if isinstance(eager, float):
        return math.isclose(eager, compiled, rel_tol=1e-6, abs_tol=1e-12) or eager != eager
    return eager == compiled


class Cases(list):
    """Functions with what they are called with: `case = Cases()`, and `@case((1, 2), (3, 4))` before each."""

    def __call__(self, *inputs):
        def add(function):
            self.append((function, inputs))
            return function
        return add

    @property
    def each(self):
        """A test of (function, inputs) is one for each of them."""
        return pytest.mark.parametrize("function, inputs", self, ids=[f.__name__ for f, _ in self])


def compare(function, inputs, singly=False):
    """Compiled code gives what plain Python gives, of all inputs together and, if wanted, one by one too.
    Gives what plain Python gave."""
    wanted = [eager(function, arguments) for arguments in inputs]
    fast = jit(function)
    got = [fast(*zip(*inputs), errors="return")]
    if singly:
        got.append([fast(*[[x] for x in arguments], errors="return")[0] for arguments in inputs])
    for results in got:
        assert len(results) == len(wanted)
        for arguments, a, b in zip(inputs, wanted, results):
            assert agree(a, b), (arguments, a, b)
    return wanted
