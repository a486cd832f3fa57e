"""The operators of the language on NumPy: eager code, for one instance.

Every operator that `sheaf help operators` lists is here by its name, with its parameters and
defaults; `and`, `or` and `not` are `logical_and`, `logical_or` and `logical_not`, since Python
reserves the words. Most are methods of tensors as well, and `x @ y`, `x[i]`, `x > 0` are written so.
"""
from . import (attention, casts, constants, convolution, elementwise, filters, functions, indexing, losses,
               movement, normalise, products, random, reductions, scans, selection, tensors)
from .products import einsum
from .random import draws
from .reads import read, read_all
from .registry import OPERATORS
from .tensors import Operand, ShapeError, Tensor, as_input, tensor

# Names of operators come before those of the files that they are in: attention, random.
globals().update({function.__name__: function for function in OPERATORS.values()})
tensors.add_methods()

# What `from sheaf import *` brings: not the names that Python itself has.
BUILTINS = {"abs", "bool", "max", "min", "pow", "slice", "sum"}
__all__ = sorted({function.__name__ for function in OPERATORS.values()} - BUILTINS
                 | {"ShapeError", "Tensor", "draws", "einsum", "read", "read_all", "tensor"})
