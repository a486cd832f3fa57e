"""Every operator as Python calls it: a compiled function gives what eager code gives.

The cases are those of tests/eager/test_compiled.py, written in Python.
"""
import importlib.util
import os
import sys

import numpy as np

import sheaf as sf
from sheaf import ops

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "eager"))
from conftest import assert_close
from test_compiled import COMMON, PAIRS, cases, names

TYPES = {"f32": "Float32", "i32": "Int32", "i64": "Int64", "f16": "Float16", "bool": "Bool"}
# What is no function of the library.
HEAD = """from sheaf import *
from sheaf import abs, bool, max, min, pow, slice, sum


def first(pair: tuple[Float32["n m"], Int32["n m"]]) -> Float32["n m"]:
    values, _ = pair
    return values


def split_and_join(a: Float32["6"]) -> Float32["4"]:
    x, y, z = split(a, 3)
    return concat(x * z, y)


"""
# Python counts from the end where `n` is negative, so what it cuts off is not known to have n rows.
UNKNOWN = ["transpose(a[0:n]) @ b[0:n]", "reshape(a[0:n], n*4)"]
# Methods and keywords that the cases do not have.
MORE = """
h.sum() ; h.mean(0) ; e2.sum(axis=1, keepdims=1) ; e2.T ; e2.T[1:] ; e2.transpose(0, 1) ; h.reshape(5, 1) ; h.softmax()
e2.softmax(axis=0) ; h.exp().log() ; h.argmax() ; e2.max(1) ; h.tanh().sigmoid() ; e2 @ e2.T ; h[-1] ; h[-3:] ; e2[-1, :2]
e2[:, 1] ; e2[1:, -2:] ; -h ; abs(h) ; h ** 2.0 ; 1 / (h + 3) ; h.clamp(lo=-1, hi=1) ; rope(e2, base=500.0) ; h.f32()
sum(x=e2, axis=0) ; concat(h, p, axis=0) ; transpose(x=e2, axis1=0, axis2=1) ; h.shape[0] * h ; len(h) * h ; e2.shape[1] * h
w // 1 if False else w ; f32(w) / len(w) ; h.cumsum() ; h.square().sum().sqrt() ; where(h > 0.5, h, 0.0) ; (h > 0) & (h < 1)
~(h > 0) ; h.entropy() ; layer_norm(e2, gain=e2[0], bias=e2[1], eps=0.1) ; e2.rms_norm(e2[0]) ; e2.flip(axis=1)
"""


def annotation(kind):
    if kind == "int":
        return "int"
    name, _, dims = kind.partition("[")
    return f'{TYPES[name]}["{dims.rstrip("]").replace(",", "")}"]'


def test_against_eager_code(tmp_path):
    space, chosen = names(), []
    for given, there, here in cases():
        if here not in UNKNOWN:
            chosen.append((given, here))
    chosen += [({}, text) for text in PAIRS]
    chosen += [({}, text.strip()) for text in MORE.replace("\n", " ; ").split(" ; ") if text.strip()]
    lines, columns, wanted, calls, parameters = [HEAD], [], [], [], []
    for name, (value, kind) in COMMON.items():
        parameters.append(f"{name}: {annotation(kind)}")
        columns.append(space[name])
    for number, (given, text) in enumerate(chosen):
        result = eval(text, dict(space), {name: sf.tensor(x) for name, x in given.items()})
        results = result if isinstance(result, tuple) else (result,)
        if any(r.dtype == np.float16 for r in results):
            continue
        kinds = [f'{TYPES[ops.tensors.NAMES[r.dtype]]}["{" ".join("?" * r.ndim)}"]' for r in results]
        typed = [f"{name}: {annotation(ops.tensors.type_of(x))}" for name, x in given.items()]
        typed += [f"{name}: {annotation(kind)}" for name, (_, kind) in COMMON.items() if name not in given]
        arrow = kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"
        lines.append(f"def case{number}({', '.join(typed)}) -> {arrow}:\n    return {text}\n\n")
        for name, x in given.items():
            parameters.append(f"c{number}_{name}: {annotation(ops.tensors.type_of(x))}")
            columns.append(sf.tensor(x))
        calls.append(f"case{number}(" + ", ".join([f"c{number}_{name}" for name in given]
                                                 + [name for name in COMMON if name not in given]) + ")")
        wanted.append((text, results, arrow))
    groups = [range(i, min(i + 20, len(calls))) for i in range(0, len(calls), 20)]
    types = ", ".join("tuple[" + ", ".join(wanted[i][2] for i in group) + "]" for group in groups)
    made = ",\n            ".join("(" + ", ".join(calls[i] for i in group) + ")" for group in groups)
    lines.append(f"def everything({', '.join(parameters)}) -> tuple[{types}]:\n    return ({made})\n")
    path = tmp_path / "cases_in_python.py"
    path.write_text("".join(lines))
    spec = importlib.util.spec_from_file_location("cases_in_python", path)
    module = sys.modules["cases_in_python"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    got = sf.jit(module.everything)(*[[np.asarray(x) if isinstance(x, sf.Tensor) else x] for x in columns])
    flat = [x for group in got for x in group]
    assert len(flat) == len(wanted) > 350
    for (text, results, _), given in zip(wanted, flat):
        for eager, compiled in zip(results, given if len(results) > 1 else (given,)):
            assert_close(eager, np.asarray(compiled[0]).reshape(eager.shape), text,
                         2e-3 if "f16" in text else 1e-5)
