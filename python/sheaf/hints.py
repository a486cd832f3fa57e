"""What to write for names of PyTorch and NumPy that are not here: messages of AttributeError."""

import inspect

_ONE_INPUT = "a model is for one input, and has no axis for a batch"
_NO_MODE = "there is no mode: dropout drops in training only"
_PROCESSORS = "models run on processors, in f32"

FUNCTIONS = {
    "cat": "concat(a, b, axis=...)", "concatenate": "concat(a, b, axis=...)", "hstack": "concat(a, b, axis=-1)",
    "vstack": "concat(a, b, axis=0), or stack([a, b])", "chunk": "split(x, parts, axis=...)",
    "unsqueeze": "expand_dims(x, axis=...)", "newaxis": "expand_dims(x, axis=...)",
    "permute": "transpose(x, axis1, axis2), once for each two axes", "swapaxes": "transpose(x, axis1, axis2)",
    "mT": "x.T", "view": "reshape(x, n, m)", "flatten": "reshape(x, n * m)", "ravel": "reshape(x, n * m)",
    "expand": "broadcast_to(x, n, m); operators broadcast by themselves", "repeat": "broadcast_to, or concat",
    "tile": "broadcast_to, or concat", "mm": "a @ b", "bmm": "a @ b", "addmm": "a @ b + c",
    "arange": "iota(n), ints; f32(iota(n))", "linspace": "f32(iota(n)) * step + start", "empty": "zeros(n)",
    "eye": 'one_hot(iota(n), n), or a Param with init="identity"', 
    "zeros_like": "zeros(n), or 0 * x", "ones_like": "ones(n)", "full_like": "full(value, n)",
    "multiply": "a * b", "divide": "a / b", "subtract": "a - b", "true_divide": "a / b", "clip": "clamp(x, lo, hi)",
    "masked_fill": "where(mask, value, x)", "index_select": "x[indices]", "amax": "max(x, axis=...)",
    "amin": "min(x, axis=...)", "argmin": "argmax(-x)",
    "topk": "top_k(x, k)", "var": "mean(square(x - mean(x)))", "std": "sqrt(mean(square(x - mean(x))))",
    "prod": "exp(sum(log(x))), or a loop", "any": "max(f32(x)) > 0", "all": "min(f32(x)) > 0",
    "detach": "stop_gradient(x)", "no_grad": "eager code and compiled models compute no gradients",
    "manual_seed": "model.initialize(seed=...), and the seed of a run", "rand": "random(n)", "randn": "random_normal(n)",
    "multinomial": "sample(logits)", "scatter": "scatter_add(x, indices, rows)", "unbind": "rows(x)",
    "float": "f32(x)", "half": "f16(x)", "bfloat16": "bf16(x)", "long": "i64(x)", "type": "f32(x), i32(x), ...",
    "to": _PROCESSORS + "; f32(x), i32(x) ... convert", "cuda": _PROCESSORS, "cpu": _PROCESSORS,
    "token": "Token(i), of an int", "numpy": "np.asarray(x)", "astype": "f32(x), i32(x), ...", "backward": "fast.train_step(opt, \"loss\", ...), sf.value_and_grad(fast.loss)",
    "requires_grad": "every Param is trained", "contiguous": "x as it is", "size": "x.shape[axis]", "dim": "len(x.shape)",
    "pad_sequence": _ONE_INPUT, "vmap": _ONE_INPUT, "grad": "sf.value_and_grad(fast.loss), sf.vjp",
    "linear": "x @ weight.T + bias", "scaled_dot_product_attention": "attention(q, k, v, causal=1)",
    "debug": "print in eager code: model(x) instead of fast(x)", "shape": "x.shape[axis]", "copy": "x: values never change", "t": "x.T",
    "logical_xor": "a != b, of bools", "remainder": "i32 and host ints: a % b", "mode": "a loop",
}

LAYERS = {
    "Module": "sheaf.Module", "Parameter": "sheaf.Param(n, m, init=...)", "ModuleList": "a list of Modules",
    "ParameterList": "a list of Params", "ModuleDict": "attributes", "Buffer": "an attribute that is a number, or a Param",
    "Sequential": "a forward that calls one after the other", "Identity": "x", "Flatten": "reshape(x, n * m)",
    "Dropout": "dropout(x, p), which drops in training only", "ReLU": "relu(x)", "GELU": "gelu(x)", "SiLU": "silu(x)",
    "Tanh": "tanh(x)", "Sigmoid": "sigmoid(x)", "Softmax": "softmax(x)", "LogSoftmax": "log_softmax(x)",
    "LeakyReLU": "leaky_relu(x)", "Softplus": "softplus(x)", "ELU": "where(x > 0, x, expm1(x))",
    "CrossEntropyLoss": "cross_entropy(logits, label), weighted_cross_entropy(logits, label, weight)", "MSELoss": "mse(x, target)",
    "BCEWithLogitsLoss": "bce_with_logits(x, target)", "HuberLoss": "huber(x, target)", "KLDivLoss": "kl_div(p, q)",
    "NLLLoss": "-log_prob(logits, index)", "BatchNorm1d": "LayerNorm: an input's bits do not depend on others",
    "BatchNorm2d": "LayerNorm: an input's bits do not depend on others", "RNN": "a Module with a loop",
    "RNNCell": "tanh(x @ w + h @ u + b)", "Conv2d": "nothing yet: convolution is along one axis, Conv1d",
    "MaxPool2d": "nothing yet: pooling is along one axis, MaxPool1d", "Transformer": "TransformerEncoder and TransformerDecoder",
    "functional": "functions of sheaf: sf.relu, sf.softmax, sf.cross_entropy", "init": "initialisers of sheaf: sf.normal(0.1), sf.glorot",
    "utils": _ONE_INPUT, "EmbeddingBag": "Embedding, and mean(axis=0)",
}

# Arguments of PyTorch's layers.
ARGUMENTS = {
    "batch_first": _ONE_INPUT + ": leave it out, and give one sequence [n, size]",
    "dropout": "dropout(x, p) in the model, which drops in training only", "device": _PROCESSORS, "dtype": _PROCESSORS,
    "inplace": "values never change: leave it out", "proj_size": "a Linear behind it",
    "nonlinearity": "a Module with a loop", "padding_idx": "leave it out: nothing is padded",
    "padding_mode": "zeros alone: leave it out", "ceil_mode": "leave it out", "count_include_pad": "zeros count: leave it out",
    "return_indices": "leave it out", "max_norm": "a Module that normalises the rows it takes", "sparse": "gradients of tables are sparse anyway",
    "add_zero_attn": "leave it out", "add_bias_kv": "leave it out",
}

METHODS = {
    "train": _NO_MODE, "eval": _NO_MODE, "to": _PROCESSORS, "cuda": _PROCESSORS, "cpu": _PROCESSORS,
    "half": "sf.jit(model, precision=\"bf16\")", "double": _PROCESSORS, "float": "Params are f32",
    "zero_grad": "gradients are results; nothing keeps them", "requires_grad_": "every Param is trained",
    "register_buffer": "an attribute: a number is a constant, a tensor a Param",
    "register_parameter": "an attribute that is a Param", "add_module": "an attribute that is a Module",
    "apply": "for module in model.modules(): ...", "compile": "sf.jit(model)", "share_memory": "a session has its own",
}


def missing(owner, name, table, like=None):
    """An AttributeError of `owner` that says what to write instead, if the table knows."""
    error = AttributeError(f"{owner} has no attribute {name!r}" + (f" ({table[name]})" if name in table else ""))
    error.name = name
    if like is not None:
        error.obj = like
    return error


def refuse_arguments(cls, named):
    """A TypeError where a layer is given an argument of PyTorch's that it has not."""
    known = inspect.signature(cls.__init__).parameters
    for name in named:
        if name not in known and name in ARGUMENTS:
            raise TypeError(f"{cls.__name__} has no argument {name!r} ({ARGUMENTS[name]})")
