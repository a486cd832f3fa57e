"""What operators of the language give, as far as the lowering wants to know it.

What is said where an operator is defined (`@operator(shape="first")`, ops/registry.py) needs no line here.
One that has neither gives a tensor of its first operand's element type and of a shape that is not known.
"""
from ..ops import OPERATORS
from . import kinds
from .kinds import BOOL, FLOAT, INT, List, Tensor, Tok, Tuple_

COMPARISONS = set("eq ne lt le gt ge and or not".split())
REDUCTIONS = set("sum mean max min norm logsumexp argmax entropy".split())
CASTS = set("f32 bf16 f16 i32 i64 bool".split())
MADE = set("zeros ones full random random_normal".split())

# Of arguments that must be numbers when the model is compiled.
CONSTANT = {"axis", "axis1", "axis2", "keepdims", "causal", "descending", "parts", "eps", "slope", "delta",
            "base"}


def is_constant(operator, parameter):
    """Whether an operator's argument must be a number when the model is compiled."""
    return parameter in CONSTANT or (operator, parameter) == ("dropout", "p")


def broadcast(*operands):
    """The dims of operands broadcast, or None."""
    dims = None
    for operand in operands:
        if not isinstance(operand, Tensor):
            continue
        if operand.dims is None:
            return None
        if dims is None or (len(operand.dims) > len(dims)):
            longer, shorter = operand.dims, dims or ()
        else:
            longer, shorter = dims, operand.dims
        merged = list(longer)
        for back in range(1, len(shorter) + 1):
            a, b = longer[-back], shorter[-back]
            unknown = (None, "?")
            merged[-back] = a if a == b or b == "1" or b in unknown else b
        dims = tuple(merged)
    return dims


def _dtype(operands):
    for operand in operands:
        if isinstance(operand, Tensor) and operand.dtype:
            return operand.dtype
    return None


def _axis(constants, name, default, rank):
    axis = constants.get(name, default)
    if not isinstance(axis, int) or rank is None:
        return None
    return axis % rank if -rank <= axis < rank else None


def result(name, operands, constants):
    """The Kind of an operator's result. `operands` are Kinds; `constants` those of its arguments by
    name that are known; of operators that make tensors `constants["dims"]` is a tuple of texts."""
    first = operands[0] if operands else None
    dims = first.dims if isinstance(first, Tensor) else None
    rank = len(dims) if dims is not None else None
    dtype = _dtype(operands) or "f32"
    shape = getattr(OPERATORS.get(name), "shape_of", None)
    if shape == "first":
        return Tensor(dtype, dims)
    if shape == "all":
        return Tensor(dtype, broadcast(*operands))
    if name in COMPARISONS:
        return Tensor("bool", broadcast(*operands))
    if name == "where":
        return Tensor(_dtype(operands[1:]) or "f32", broadcast(*operands))
    if name in MADE:
        return Tensor("f32", constants.get("dims"))
    if name == "iota":
        return Tensor("i32", constants.get("dims"))
    if name in ("reshape", "broadcast_to"):
        return Tensor(dtype, constants.get("dims"))
    if name in CASTS:
        return Tensor(name, dims if isinstance(first, Tensor) else ())
    if name in REDUCTIONS:
        out = "i32" if name == "argmax" else dtype
        default = -1 if name in ("argmax", "entropy") else None
        axis = constants.get("axis", default)
        if axis is None:
            return Tensor(out, ())
        axis = _axis(constants, "axis", default, rank)
        if axis is None:
            return Tensor(out, None)
        kept = ("1",) if constants.get("keepdims") else ()
        return Tensor(out, dims[:axis] + kept + dims[axis + 1:])
    if name in ("cross_entropy", "weighted_cross_entropy", "log_prob"):
        return Tensor("f32", dims[:-1] if dims else None)
    if name in ("mse", "kl_div", "dot"):
        return Tensor(dtype, ())
    if name == "outer":
        other = operands[1] if len(operands) > 1 else None
        if isinstance(other, Tensor) and dims and other.dims:
            return Tensor(dtype, (dims[0], other.dims[0]))
        return Tensor(dtype, None)
    if name == "matmul":
        other = operands[1] if len(operands) > 1 else None
        if isinstance(other, Tensor) and dims and other.dims:
            left, right = dims, other.dims
            made = (left[:-2] if len(left) >= len(right) else right[:-2])
            if len(left) > 1:
                made += (left[-2],)
            if len(right) > 1:
                made += (right[-1],)
            return Tensor(dtype, made)
        return Tensor(dtype, None)
    if name == "concat":
        if all(isinstance(o, List) for o in operands) and operands:
            kind = operands[0]
            for o in operands[1:]:
                kind = kinds.join(kind, o)
            return kind
        axis = _axis(constants, "axis", 0, rank)
        if axis is None:
            return Tensor(dtype, None)
        lengths = [o.dims[axis] if isinstance(o, Tensor) and o.dims and len(o.dims) == rank else None
                   for o in operands]
        total = str(sum(map(int, lengths))) if all(x and x.isdigit() for x in lengths) else "?"
        return Tensor(dtype, dims[:axis] + (total,) + dims[axis + 1:])
    if name == "stack":
        element = first.element if isinstance(first, List) else None
        axis = constants.get("axis", 0)
        count = constants.get("count")
        if isinstance(element, Tok):
            return Tensor("token", (count,), element.vocabulary)
        if element in (INT, BOOL, FLOAT):
            return Tensor({INT: "i32", BOOL: "bool", FLOAT: "f32"}[element], (count,))
        if isinstance(element, Tensor) and element.dims is not None and isinstance(axis, int):
            inner = [None if d == "?" else d for d in element.dims]
            axis = axis % (len(inner) + 1)
            return Tensor(element.dtype, tuple(inner[:axis] + [count] + inner[axis:]))
        return Tensor(element.dtype if isinstance(element, Tensor) else "f32", None)
    if name == "split":
        parts = constants.get("parts")
        axis = _axis(constants, "axis", 0, rank)
        inner = None
        if axis is not None and isinstance(parts, int):
            d = dims[axis]
            cut = str(int(d) // parts) if d and d.isdigit() and parts and int(d) % parts == 0 else None
            inner = dims[:axis] + (cut,) + dims[axis + 1:]
        if isinstance(parts, int) and 1 <= parts <= 4096:
            return Tuple_((Tensor(dtype, inner),) * parts)
        return None
    if name in ("top_k", "sort"):
        inner = None
        if dims is not None and name == "sort":
            inner = dims
        elif dims is not None:
            axis = _axis(constants, "axis", -1, rank)
            k = constants.get("k")
            if axis is not None:
                inner = dims[:axis] + (str(k) if isinstance(k, int) else None,) + dims[axis + 1:]
        return Tuple_((Tensor(dtype, inner), Tensor("i32", inner)))
    if name == "argsort":
        return Tensor("i32", dims)
    if name in ("conv1d", "max_pool1d", "avg_pool1d"):
        weight = operands[1] if name == "conv1d" and len(operands) > 1 else first
        out = weight.dims[-1:] if isinstance(weight, Tensor) and weight.dims else None
        return Tensor(dtype, dims[:-2] + ("?",) + out if dims and out else None)
    if name == "append":
        if isinstance(first, List):
            return first
        count = dims[0] if dims else None
        more = str(int(count) + 1) if count and count.isdigit() else "?"
        return Tensor(dtype, (more,) + dims[1:] if dims else None)
    if name == "transpose":
        if rank is None or rank < 2:
            return Tensor(dtype, None)
        a, b = _axis(constants, "axis1", -2, rank), _axis(constants, "axis2", -1, rank)
        if a is None or b is None:
            return Tensor(dtype, None)
        swapped = list(dims)
        swapped[a], swapped[b] = swapped[b], swapped[a]
        return Tensor(dtype, tuple(swapped))
    if name == "expand_dims":
        axis = _axis(constants, "axis", 0, rank + 1 if rank is not None else None)
        return Tensor(dtype, None if axis is None else dims[:axis] + ("1",) + dims[axis:])
    if name == "squeeze":
        axis = _axis(constants, "axis", 0, rank)
        return Tensor(dtype, None if axis is None else dims[:axis] + dims[axis + 1:])
    if name in ("index", "embedding", "gather"):
        second = operands[1] if len(operands) > 1 else None
        if dims:
            if isinstance(second, Tensor):
                return Tensor(dtype, None if second.dims is None else second.dims + dims[1:])
            return Tensor(dtype, dims[1:])
        return Tensor(dtype, None)
    if name == "element":
        axis = _axis(constants, "axis", 0, rank)
        return Tensor(dtype, None if axis is None else dims[:axis] + dims[axis + 1:])
    if name == "rows":
        if isinstance(first, Tensor):
            vocabulary = first.vocabulary
            return List(Tensor(first.dtype, dims[1:] if dims else None, vocabulary))
        return List(None)
    if name == "read":
        return scalar_of(first)
    if name == "read_all":
        return List(scalar_of(first))
    if name == "sample":
        return Tensor("i32", dims[:-1] if dims else None)
    if name == "one_hot":
        size = constants.get("dims")
        inner = first.dims if isinstance(first, Tensor) else ()
        return Tensor("f32", inner + size if inner is not None and size else None)
    if name == "attention" or name == "masked_attention":
        v = operands[2] if len(operands) > 2 else None
        if dims and isinstance(v, Tensor) and v.dims:
            return Tensor(dtype, dims[:-1] + v.dims[-1:])
        return Tensor(dtype, None)
    if name in ("scatter_add",):
        return Tensor(dtype, dims)
    if name == "take_along":
        return Tensor(dtype, operands[1].dims if len(operands) > 1 and isinstance(operands[1], Tensor)
                      else None)
    if name == "einsum":
        return Tensor(dtype, None)
    return Tensor(dtype, None)


def scalar_of(kind):
    """What reading an element of a tensor gives."""
    if not isinstance(kind, Tensor) or kind.dtype is None:
        return None
    if kind.dtype == "token":
        return Tok(kind.vocabulary)
    if kind.dtype == "bool":
        return BOOL
    return INT if kind.dtype in ("i32", "i64") else FLOAT
