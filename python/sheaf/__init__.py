"""Sheaf: a model is ordinary Python for one input, and runs compiled for many at once.

    import sheaf as sf
    model = sf.load("tree.sheaf", vocab="v.txt")
    scores = model(trees)                       # a list of trees in, one array out

docs/python.md is the guide.
"""
from . import nn, ops, optim, safetensors, types
from .batching import Batcher
from .errors import CompileError, InstanceError, InstanceErrors, SheafError
from .hints import FUNCTIONS, missing
from .importing import from_torch
from .initializers import (Initializer, constant, glorot, he, identity, normal, orthogonal, uniform)
from .jit import Compiled, jit
from .module import Module, Param
from .ops import *
from .ops import abs, bool, max, min, pow, slice, sum  # ops.BUILTINS
from .types import *

# What needs the extension is there when it is first asked for. `import *` leaves it out, and so does not
# hide Python's compile.
_COMPILED = {"Dataset": "data", "Model": "model", "compile": "model", "load": "model",
             "value_and_grad": "gradients", "vjp": "gradients",
             "load_ipython_extension": "notebook"}

__all__ = ["Batcher", "CompileError", "Compiled", "Initializer", "InstanceError", "InstanceErrors",
           "Module", "Param", "SheafError", "constant", "from_torch", "glorot", "he", "identity", "jit", "nn", "normal",
           "optim", "orthogonal", "safetensors", "uniform", *ops.__all__, *types.__all__]


def __getattr__(name):
    if name == "__version__":
        from ._native import version
        return version
    if name not in _COMPILED:
        raise missing("module 'sheaf'", name, FUNCTIONS)
    import importlib
    found = getattr(importlib.import_module(f"sheaf.{_COMPILED[name]}"), name)
    globals()[name] = found
    return found
