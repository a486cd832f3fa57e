"""The operators of the language on NumPy: eager code, for one instance.

Every operator that `sheaf help operators` lists is here by its name, with its parameters and
defaults; `and`, `or` and `not` are `logical_and`, `logical_or` and `logical_not`, since Python
reserves the words. Most are methods of tensors as well, and `x @ y`, `x[i]`, `x > 0` are written so.
"""
from . import registry
from .attention import attention, masked_attention, rope
from .casts import bf16, bool, f16, f32, i32, i64, stop_gradient
from .constants import full, iota, one_hot, ones, zeros
from .convolution import avg_pool1d, conv1d, max_pool1d
from .elementwise import (abs, add, clamp, div, eq, ge, gt, le, logical_and, logical_not, logical_or,
                          lt, maximum, minimum, mul, ne, neg, pow, sign, square, sub, where)
from .filters import top_k_filter, top_p_filter
from .functions import (bce_with_logits, ceil, cos, erf, exp, expm1, floor, gelu, gelu_tanh,
                        leaky_relu, log, log1p, log_sigmoid, relu, rsqrt, sigmoid, silu, sin,
                        softplus, sqrt, tanh, xlogy)
from .indexing import element, embedding, gather, index, rows, slice
from .losses import entropy, huber, kl_div, mse
from .movement import (append, broadcast_to, concat, expand_dims, flip, pad, reshape, split, squeeze, stack,
                       transpose, tril, triu)
from .normalise import cross_entropy, layer_norm, log_prob, log_softmax, rms_norm, softmax, weighted_cross_entropy
from .products import dot, einsum, matmul, outer
from .random import draws, dropout, random, random_normal, sample
from .reads import read, read_all
from .reductions import argmax, logsumexp, max, mean, min, norm, sum
from .scans import cumsum, scatter_add, segment_sum
from .selection import argsort, sort, take_along, top_k
from .tensors import Operand, ShapeError, Tensor, as_input, tensor

OPERATORS = registry.OPERATORS

# What `from sheaf import *` brings: not the names that Python itself has.
_BUILTINS = {"abs", "bool", "max", "min", "pow", "slice", "sum"}
__all__ = sorted({function.__name__ for function in OPERATORS.values()} - _BUILTINS
                 | {"ShapeError", "Tensor", "draws", "einsum", "read", "read_all", "tensor"})
