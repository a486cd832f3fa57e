"""Sheaf: a model is ordinary Python for one input, and runs compiled for many at once."""
from . import ops
from .initializers import (Initializer, constant, glorot, he, identity, normal, orthogonal, uniform)
from .module import Module, Param
from .ops import *
from .ops import abs, bool, max, min, pow, slice, sum

__all__ = ["Initializer", "Module", "Param", "constant", "glorot", "he", "identity", "normal",
           "orthogonal", "uniform", *ops.__all__]
