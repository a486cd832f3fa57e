"""Operators of PyTorch (ATen) as expressions of this package.

OPERATORS has the functions by ATen's names, without overloads; each gives the text of an expression, or
a list of texts where the operator gives several tensors. Operators in place are those without the `_`.
"""
# By ATen's names. A function takes the Writer, the node and its arguments by name.
OPERATORS = {}


def aten(*names):
    def add(function):
        OPERATORS.update(dict.fromkeys(names, function))
        return function
    return add


def number(x):
    return repr(float(x)) if isinstance(x, (int, float)) and not isinstance(x, bool) else str(x)


def is_number(x):
    return isinstance(x, (int, float))


def _first(node):
    return node.args[0]


def _axis(w, node, axis):
    return axis % max(len(w.shape(_first(node))), 1)


@aten("add", "sub", "rsub")
def _sum(w, node, a):
    left, right = a["self"], a["other"]
    name = node.target._schema.name
    if "rsub" in name:
        left, right = right, left
        if a.get("alpha", 1) != 1:
            right = f"({right} * {number(a['alpha'])})"
    elif a.get("alpha", 1) != 1:
        right = f"({right} * {number(a['alpha'])})"
    return f"{operand(w, node, left)} {'+' if 'add' in name else '-'} {operand(w, node, right)}"


def operand(w, node, x):
    """A number beside a tensor of floats is a float."""
    value = w.traces[0].values[node]
    floats = getattr(value, "is_floating_point", lambda: True)()
    return number(x) if is_number(x) and not isinstance(x, bool) and floats else str(x)


@aten("mul")
def _mul(w, node, a):
    return f"{operand(w, node, a['self'])} * {operand(w, node, a['other'])}"


@aten("div", "true_divide")
def _div(w, node, a):
    if a.get("rounding_mode"):
        raise NotImplementedError("a division that rounds")
    return f"{operand(w, node, a['self'])} / {operand(w, node, a['other'])}"


@aten("pow")
def _pow(w, node, a):
    exponent = a.get("exponent")
    if exponent == 2:
        return f"square({a['self']})"
    return f"pow({number(a['self'])}, {number(exponent)})"


@aten("eq", "ne", "lt", "le", "gt", "ge")
def _compare(w, node, a):
    sign = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
    floats = w.traces[0].values[_first(node)].is_floating_point()
    other = a["other"]
    return f"{a['self']} {sign[_name(node)]} {number(other) if is_number(other) and floats else other}"


def _name(node):
    return node.target._schema.name.partition("::")[2].rstrip("_")


@aten("maximum", "minimum", "logical_and", "logical_or", "outer")
def _binary(w, node, a):
    right = a.get("other", a.get("vec2"))
    return f"{_name(node)}({a['self']}, {right})"


@aten("bitwise_and")
def _and(w, node, a):
    return f"logical_and({a['self']}, {a['other']})"


@aten("bitwise_or")
def _or(w, node, a):
    return f"logical_or({a['self']}, {a['other']})"


@aten("logical_not", "bitwise_not")
def _not(w, node, a):
    return f"logical_not({a['self']})"


@aten("neg", "abs", "exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "sin", "cos", "erf", "tanh", "sigmoid",
      "relu", "silu", "floor", "ceil", "sign", "square", "log_sigmoid")
def _unary(w, node, a):
    return f"{_name(node)}({a['self']})"


@aten("reciprocal")
def _reciprocal(w, node, a):
    return f"1.0 / {a['self']}"


@aten("gelu")
def _gelu(w, node, a):
    return f"{'gelu_tanh' if a.get('approximate') == 'tanh' else 'gelu'}({a['self']})"


@aten("leaky_relu")
def _leaky(w, node, a):
    return f"leaky_relu({a['self']}, slope={number(a['negative_slope'])})"


@aten("softplus")
def _softplus(w, node, a):
    if a.get("threshold", 20) < 15:
        raise NotImplementedError("a softplus that is linear from where that shows: threshold below 15")
    if a.get("beta", 1) != 1:
        return f"softplus({a['self']} * {number(a['beta'])}) / {number(a['beta'])}"
    return f"softplus({a['self']})"


@aten("log_sigmoid_forward")
def _log_sigmoid(w, node, a):
    return [f"log_sigmoid({a['self']})", None]


@aten("elu")
def _elu(w, node, a):
    x, scale = a["self"], number(a.get("scale", 1))
    return (f"{scale} * where({x} > 0.0, {x}, {number(a.get('alpha', 1))} * "
            f"expm1(minimum({x}, 0.0) * {number(a.get('input_scale', 1))}))")


@aten("clamp", "hardtanh", "clamp_min", "clamp_max")
def _clamp(w, node, a):
    lo, hi = a.get("min", a.get("min_val")), a.get("max", a.get("max_val"))
    if lo is None:
        return f"minimum({a['self']}, {number(hi)})"
    if hi is None:
        return f"maximum({a['self']}, {number(lo)})"
    return f"clamp({a['self']}, {number(lo)}, {number(hi)})"


@aten("mm", "bmm", "matmul", "mv", "dot")
def _product(w, node, a):
    right = next(a[name] for name in ("mat2", "other", "vec", "tensor") if name in a)
    return f"{a['self']} @ {right}"


@aten("addmm", "addmv", "baddbmm")
def _sum_of_product(w, node, a):
    left = a.get("mat1", a.get("mat", a.get("batch1")))
    right = a.get("mat2", a.get("vec", a.get("batch2")))
    product, bias = f"{left} @ {right}", a["self"]
    if a.get("alpha", 1) != 1:
        product = f"{number(a['alpha'])} * ({product})"
    if a.get("beta", 1) != 1:
        bias = f"{number(a['beta'])} * {bias}"
    return f"{product} + {bias}"


@aten("linear")
def _linear(w, node, a):
    return f"{a['input']} @ {a['weight']}.T" + (f" + {a['bias']}" if a.get("bias") else "")


@aten("t", "numpy_T")
def _t(w, node, a):
    return f"{a['self']}.T" if len(w.shape(_first(node))) == 2 else a["self"]


@aten("transpose", "swapaxes")
def _transpose(w, node, a):
    rank = len(w.shape(_first(node)))
    one, other = sorted((a["dim0"] % rank, a["dim1"] % rank))
    return a["self"] if one == other else f"transpose({a['self']}, {one}, {other})"


@aten("permute")
def _permute(w, node, a):
    wanted = [d % len(a["dims"]) for d in a["dims"]]
    text, now = a["self"], list(range(len(wanted)))
    for i in range(len(wanted)):
        j = now.index(wanted[i])
        if i != j:
            text = f"transpose({text}, {i}, {j})"
            now[i], now[j] = now[j], now[i]
    return text


@aten("view", "reshape", "_unsafe_view", "_reshape_alias", "flatten")
def _view(w, node, a):
    # Extents of the result: none is -1.
    shape = [w.extent(*pair) for pair in w.pairs(node)]
    if w.pairs(node) == w.pairs(_first(node)):
        return a["self"]
    return f"reshape({', '.join([a['self'], *shape])})"


@aten("expand")
def _expand(w, node, a):
    if w.pairs(node) == w.pairs(_first(node)):
        return a["self"]
    return f"broadcast_to({', '.join([a['self'], *(w.extent(*pair) for pair in w.pairs(node))])})"


@aten("unsqueeze")
def _unsqueeze(w, node, a):
    return f"expand_dims({a['self']}, axis={a['dim'] % (len(w.shape(_first(node))) + 1)})"


@aten("squeeze")
def _squeeze(w, node, a):
    shape = w.shape(_first(node))
    axes = range(len(shape)) if a.get("dim") is None else a["dim"] if isinstance(a["dim"], list) else [a["dim"]]
    text = a["self"]
    for axis in sorted((axis % len(shape) for axis in axes), reverse=True):
        if shape[axis] == 1:
            text = f"squeeze({text}, axis={axis})"
    return text


@aten("clone", "contiguous", "detach", "alias", "lift_fresh_copy", "lift_fresh")
def _same(w, node, a):
    return a["self"]


@aten("_to_copy", "to")
def _to(w, node, a):
    torch, value = w.torch, w.traces[0].values[node]
    before = w.traces[0].values[_first(node)].dtype
    kinds = {torch.float32: "f32", torch.float64: "f32", torch.int64: "i32", torch.int32: "i32",
             torch.bool: "bool"}
    if value.dtype not in kinds:
        raise NotImplementedError(f"a conversion to {value.dtype}")
    return a["self"] if kinds.get(before) == kinds[value.dtype] else f"{kinds[value.dtype]}({a['self']})"


@aten("cat", "concat")
def _cat(w, node, a):
    rank = len(w.shape(node))
    return f"concat({', '.join(a['tensors'])}, axis={a.get('dim', 0) % rank})"


@aten("stack")
def _stack(w, node, a):
    return f"stack([{', '.join(a['tensors'])}], axis={a.get('dim', 0) % len(w.shape(node))})"


@aten("split", "unsafe_split", "split_with_sizes", "unsafe_split_with_sizes", "chunk", "unsafe_chunk")
def _split(w, node, a):
    values, source = w.traces[0].values[node], _first(node)
    others = w.traces[-1].values[w.other[node]]
    axis, made, start = _axis(w, node, a.get("dim", 0)), [], (0, 0)
    for one, other in zip(values, others):
        size = one.shape[axis], other.shape[axis]
        made.append(f"slice({w.names[source]}, {w.extent(*start)}, {w.extent(*size)}, axis={axis})")
        start = start[0] + size[0], start[1] + size[1]
    if len({one.shape[axis] for one in values}) == 1 and values[0].shape == others[0].shape:
        # Equal parts are one operator.
        variables = [w.fresh("t") for _ in values]
        w.lines.append(f"{', '.join(variables)}{',' if len(values) == 1 else ''} = "
                       f"split({w.names[source]}, {len(values)}, axis={axis})")
        return variables
    return made


@aten("unbind")
def _unbind(w, node, a):
    axis = _axis(w, node, a.get("dim", 0))
    return [f"element({a['self']}, {i}, axis={axis})" for i in range(len(w.traces[0].values[node]))]


@aten("slice", "narrow")
def _slice(w, node, a):
    if a.get("step", 1) != 1:
        raise NotImplementedError("a slice with a step")
    if w.pairs(node) == w.pairs(_first(node)):
        return a["self"]
    axis = _axis(w, node, a.get("dim", 0))
    starts = []
    for trace, at in zip((w.traces[0], w.traces[-1]), (node, w.other[node])):
        extent = trace.values[at.args[0]].shape[axis]
        start = at.args[2] if len(at.args) > 2 else at.kwargs.get("start")
        starts.append(0 if start is None else start + extent if start < 0 else min(start, extent))
    return f"slice({a['self']}, {w.extent(*starts)}, {w.extent(*w.pairs(node)[axis])}, axis={axis})"


@aten("select")
def _select(w, node, a):
    axis = _axis(w, node, a["dim"])
    places = []
    for trace, at in zip((w.traces[0], w.traces[-1]), (node, w.other[node])):
        places.append(at.args[2] % trace.values[at.args[0]].shape[axis])
    return f"element({a['self']}, {w.extent(*places)}, axis={axis})"


@aten("embedding")
def _embedding(w, node, a):
    return f"{a['weight']}[{a['indices']}]"


@aten("index_select")
def _index_select(w, node, a):
    if _axis(w, node, a["dim"]) != 0:
        raise NotImplementedError("index_select along another axis than the first")
    return f"{a['self']}[{a['index']}]"


@aten("flip")
def _flip(w, node, a):
    text = a["self"]
    for axis in a["dims"]:
        text = f"flip({text}, axis={_axis(w, node, axis)})"
    return text


@aten("tril", "triu")
def _triangle(w, node, a):
    return f"{_name(node)}({a['self']}, k={a.get('diagonal', 0)})"


def _reduced(w, node, a, name, axes):
    """Of several axes one after the other, the last first."""
    rank, text = len(w.shape(_first(node))), a["self"]
    keep = ", keepdims=1" if a.get("keepdim") else ""
    if axes is None or not isinstance(axes, int) and not axes:
        return f"{name}({text})"
    for axis in sorted((x % rank for x in ([axes] if isinstance(axes, int) else axes)), reverse=True):
        text = f"{name}({text}, axis={axis}{keep})"
    return text


@aten("sum", "mean", "amax", "amin", "logsumexp")
def _reduce(w, node, a):
    name = {"amax": "max", "amin": "min"}.get(_name(node), _name(node))
    return _reduced(w, node, a, name, a.get("dim"))


@aten("max", "min")
def _most(w, node, a):
    if "other" in a:
        return f"{_name(node)}imum({a['self']}, {a['other']})"
    if a.get("dim") is None:
        return f"{_name(node)}({a['self']})"
    axis, keep = _axis(w, node, a["dim"]), ", keepdims=1" if a.get("keepdim") else ""
    x = a["self"] if _name(node) == "max" else f"neg({a['self']})"
    return [f"{_name(node)}({a['self']}, axis={axis}{keep})", f"argmax({x}, axis={axis}{keep})"]


@aten("argmax")
def _argmax(w, node, a):
    keep = ", keepdims=1" if a.get("keepdim") else ""
    if a.get("dim") is None:
        size = w.extent(w.traces[0].values[_first(node)].numel(),
                        w.traces[-1].values[w.other[_first(node)]].numel())
        return f"argmax(reshape({a['self']}, {size}))"
    return f"argmax({a['self']}, axis={_axis(w, node, a['dim'])}{keep})"


@aten("linalg_vector_norm", "norm")
def _norm(w, node, a):
    if a.get("ord", a.get("p", 2)) not in (2, 2.0, None):
        raise NotImplementedError("a norm of another order than 2")
    axes = a.get("dim")
    if axes and not isinstance(axes, int) and len(axes) > 1:
        raise NotImplementedError("a norm over several axes")
    return _reduced(w, node, a, "norm", axes)


@aten("var")
def _var(w, node, a):
    axes = a.get("dim")
    axes = [axes] if isinstance(axes, int) else axes
    correction = a.get("correction", int(a.get("unbiased", True)))
    if not axes or len(axes) != 1:
        raise NotImplementedError("a variance of other than one axis")
    axis, keep = _axis(w, node, axes[0]), ", keepdims=1" if a.get("keepdim") else ""
    centred = f"square({a['self']} - mean({a['self']}, axis={axis}, keepdims=1))"
    extent = w.pairs(_first(node))[axis]
    if not correction:
        return f"mean({centred}, axis={axis}{keep})"
    return f"sum({centred}, axis={axis}{keep}) / ({w.extent(*extent)} - {correction})"


@aten("_softmax", "softmax", "_log_softmax", "log_softmax", "cumsum")
def _along(w, node, a):
    return f"{_name(node).strip('_')}({a['self']}, axis={_axis(w, node, a['dim'])})"


@aten("native_layer_norm")
def _layer_norm(w, node, a):
    shape = a["normalized_shape"]
    if len(shape) != 1:
        raise NotImplementedError("a layer norm over several axes")
    gain, bias = a.get("weight") or f"ones({shape[0]})", a.get("bias") or f"zeros({shape[0]})"
    return [f"layer_norm({a['input']}, {gain}, {bias}, eps={number(a['eps'])})", None, None]


@aten("layer_norm")
def _whole_layer_norm(w, node, a):
    return _layer_norm(w, node, a)[0]


@aten("where")
def _where(w, node, a):
    return f"where({a['condition']}, {number(a['self'])}, {number(a['other'])})"


@aten("masked_fill")
def _masked_fill(w, node, a):
    return f"where({a['mask']}, {infinite(a['value'])}, {a['self']})"


def infinite(x):
    if is_number(x) and x in (float("inf"), float("-inf")):
        return "inf" if x > 0 else "-inf"
    return number(x)


@aten("scaled_dot_product_attention", "_scaled_dot_product_attention_math",
      "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention")
def _attention(w, node, a):
    if a.get("dropout_p"):
        raise NotImplementedError("attention with dropout: call .eval() on the module")
    mask = a.get("attn_mask")
    scale = f", scale={number(a['scale'])}" if a.get("scale") else ""
    causal = ", causal=1" if a.get("is_causal") else ""
    name, more = ("masked_attention", f", {mask}") if mask else ("attention", "")
    text = f"{name}({a['query']}, {a['key']}, {a['value']}{more}{causal}{scale})"
    count = len(node.target._schema.returns)
    return text if count == 1 else [text] + [None] * (count - 1)


@aten("full", "zeros", "ones", "scalar_tensor", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones")
def _made(w, node, a):
    name = _name(node)
    value = a.get("fill_value", a.get("s", 0 if "zeros" in name else 1))
    shape = [w.extent(*pair) for pair in w.pairs(node)]
    if "zeros" in name or "ones" in name:
        return f"{'zeros' if 'zeros' in name else 'ones'}({', '.join(shape)})"
    return f"full({', '.join([infinite(value), *shape])})"


@aten("arange")
def _arange(w, node, a):
    if a.get("start", 0) or a.get("step", 1) != 1:
        raise NotImplementedError("arange from elsewhere than 0")
    text = f"iota({w.extent(*w.pairs(node)[0])})"
    return f"f32({text})" if w.traces[0].values[node].is_floating_point() else text
