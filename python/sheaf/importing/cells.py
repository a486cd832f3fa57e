"""sf.from_torch: a cell or layer of PyTorch as a Module, by what it does for an example.

    cell = sf.from_torch(torch.nn.LSTMCell(4, 8), (torch.zeros(4), (torch.zeros(8), torch.zeros(8))))
    print(cell.text)                      # the class, as Python that sf.jit compiles
    h, c = cell(x, (h, c))                # in the forward of a model of yours, or alone

PyTorch records the operators that run (make_fx), and each becomes a line. So it is for code without
branches on values. Extents are those of the example; with a second example, those that differ have
names, and any will do. Weights have the module's names.
"""
import inspect
import itertools
import linecache
import re
import textwrap

import numpy as np

from .. import ops, types
from ..module import Module
from .writer import Writer

__all__ = ["from_torch"]

def from_torch(module, example, longer=None, name=None):
    """A Module that does what `module` does for the tensors of `example`, with its weights.

    example  the arguments, a tuple of tensors and tuples of tensors, without an axis for a batch
    longer   other arguments, with other extents where any extent shall do
    name     of the class; by default that of `module`'s

    Raises NotImplementedError for an operator that has no counterpart, and says which.
    """
    torch = _torch()
    examples = [_arguments(torch, given) for given in ((example,) if longer is None else (example, longer))]
    if len({_structure(torch, given) for given in examples}) > 1:
        raise ValueError("the two examples are not made alike")
    weights = dict(itertools.chain(module.named_parameters(), module.named_buffers()))
    traces = [_trace(torch, module, weights, given) for given in examples]
    writer = Writer(torch, traces)
    attributes = _attributes(weights, writer.used)
    text = _text(torch, module, name or type(module).__name__, examples, weights, attributes, writer)
    public = {attribute: path for path, attribute in attributes.items()}
    values = {attribute: weights[path].detach().to(torch.float32).numpy().copy()
              for path, attribute in attributes.items()}
    return _made(text, name or type(module).__name__, public, values)


def _torch():
    try:
        import torch
        import torch.fx.experimental.proxy_tensor
    except ImportError:
        raise ImportError("sf.from_torch needs PyTorch, 1.13 or newer") from None
    return torch


def _arguments(torch, given):
    given = given if isinstance(given, tuple) else (given,)
    for leaf in _leaves(given):
        if not isinstance(leaf, torch.Tensor):
            raise TypeError(f"an example is of tensors and tuples of tensors, not of {type(leaf).__name__}")
    return given


def _leaves(value):
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


def _structure(torch, value):
    if isinstance(value, (tuple, list)):
        return tuple(_structure(torch, part) for part in value)
    return str(value.dtype), value.dim()


def _fill(structure, leaves):
    if isinstance(structure, (tuple, list)):
        return tuple(_fill(part, leaves) for part in structure)
    return next(leaves)


class Trace:
    """The graph of one example: `inputs` and `outputs` are nodes or structures of them, `values` what
    each node gave."""


def _trace(torch, module, weights, example):
    from torch.fx.experimental.proxy_tensor import make_fx
    try:
        from torch.func import functional_call
    except ImportError:
        from torch.nn.utils.stateless import functional_call
    trace, flat = Trace(), list(_leaves(example))

    def run(*tensors):
        given = dict(zip(weights, tensors))
        result = functional_call(module, given, _fill(example, iter(tensors[len(weights):])))
        trace.structure = result
        return tuple(_leaves(result))

    tensors = [weight.detach() for weight in weights.values()] + flat
    with torch.no_grad():
        try:
            graph = make_fx(run)(*tensors).graph
        except RuntimeError as error:
            raise NotImplementedError(f"{type(module).__name__} cannot be recorded: {error}") from error
        trace.values, given = {}, iter(tensors)
        trace.nodes = list(graph.nodes)
        for node in trace.nodes:
            if node.op == "placeholder":
                trace.values[node] = next(given)
            elif node.op == "call_function":
                arguments, named = torch.fx.node.map_arg((node.args, node.kwargs), trace.values.__getitem__)
                # What works in place must not change what others see.
                copies = torch.utils._pytree.tree_map(
                    lambda x: x.clone() if isinstance(x, torch.Tensor) else x, (arguments, named))
                trace.values[node] = node.target(*copies[0], **copies[1])
            elif node.op == "output":
                trace.outputs = list(node.args[0])
            else:
                trace.values[node] = _constant(graph, node)
    places = [node for node in trace.nodes if node.op == "placeholder"]
    trace.weights = dict(zip(places, weights))
    trace.inputs = places[len(weights):]
    return trace


def _constant(graph, node):
    owner = graph.owning_module
    for part in node.target.split("."):
        owner = getattr(owner, part)
    return owner


def _attributes(weights, used):
    """{path of a weight: the attribute that it is here}."""
    taken, made = set(), {}
    for path, weight in weights.items():
        if path not in used:
            continue
        wanted = attribute = re.sub(r"\W", "_", path) if path[0].isalpha() else re.sub(r"\W", "_", f"layer_{path}")
        for count in itertools.count(2):
            if attribute not in taken and attribute not in ("forward", "text"):
                break
            attribute = f"{wanted}_{count}"
        taken.add(attribute)
        made[path] = attribute
    return made


def _annotation(torch, node, writer):
    value = writer.traces[0].values[node]
    kinds = {torch.float32: "Float32", torch.float64: "Float32", torch.int64: "Int32", torch.int32: "Int32",
             torch.bool: "Bool"}
    if value.dtype not in kinds:
        raise NotImplementedError(f"tensors of {value.dtype} have no counterpart")
    return f'{kinds[value.dtype]}["{" ".join(writer.extents(node))}"]'


def _typed(torch, structure, nodes, writer):
    if isinstance(structure, (tuple, list)):
        return "tuple[" + ", ".join(_typed(torch, part, nodes, writer) for part in structure) + "]"
    return _annotation(torch, next(nodes), writer)


def _text(torch, module, name, examples, weights, attributes, writer):
    trace = writer.traces[0]
    for node, path in trace.weights.items():
        if path in attributes:
            writer.names[node] = f"self.{attributes[path]}"
    try:
        parameters = list(inspect.signature(module.forward).parameters)
    except (TypeError, ValueError):
        parameters = []
    while len(parameters) < len(examples[0]):
        parameters.append(f"x{len(parameters)}")
    writer.taken |= set(parameters)
    typed, unpacked, nodes = [], [], iter(trace.inputs)
    for parameter, given in zip(parameters, examples[0]):
        inner = [next(nodes) for _ in _leaves(given)]
        typed.append(f"{parameter}: {_typed(torch, given, iter(inner), writer)}")
        if isinstance(given, (tuple, list)):
            names = [writer.fresh(f"{parameter}{i}") for i in range(len(inner))]
            unpacked.append(f"{_spelled(given, iter(names))} = {parameter}")
        else:
            names = [parameter]
        writer.names.update(zip(inner, names))
    writer.write()
    structure = trace.structure
    result = _spelled(structure, iter([writer.tensor(node) for node in trace.outputs]))
    arrow = _typed(torch, structure, iter(trace.outputs), writer)
    lines = [f"class {name}(TorchModule):", "    def __init__(self):"]
    for path, attribute in attributes.items():
        extents = ", ".join(map(str, weights[path].shape))
        lines.append(f"        self.{attribute} = Param({extents})")
    if not attributes:
        lines.append("        pass")
    lines += ["", f"    def forward(self, {', '.join(typed)}) -> {arrow}:"]
    lines += [f"        {line}" for line in unpacked + writer.lines]
    lines.append(f"        return {result}")
    return "\n".join(lines) + "\n"


def _spelled(structure, names):
    """`(h, c)` of what is made so."""
    if isinstance(structure, (tuple, list)):
        inner = [_spelled(part, names) for part in structure]
        return "(" + ", ".join(inner) + ("," if len(inner) == 1 else "") + ")"
    return next(names)


class TorchModule(Module):
    """What from_torch makes a class of. `text` is that class."""

    _public = {}

    def public_name(self, name):
        return self._public.get(name, name)

    @property
    def text(self):
        return self._text

    def __reduce__(self):
        values = {name: np.array(param.value) for name, param in self.named_parameters()}
        return _made, (self._text, type(self).__name__, self._public, values)

    def __deepcopy__(self, memo):
        make, arguments = self.__reduce__()
        return make(*arguments)


_count = itertools.count(1)


def _made(text, name, public, values):
    """The Module that a text and weights are. Its lines are known to linecache, so errors show them and
    sf.jit reads them."""
    file = f"<sf.from_torch {name} {next(_count)}>"
    known = {operator.__name__ for operator in ops.OPERATORS.values()} | set(types.__all__)
    used = sorted(set(re.findall(r"(?<![.\w])\w+", text)) & known | {"Param"})
    lines = "\n".join(textwrap.wrap(f"from sheaf import ({', '.join(used)})", 100)) + (
        '\n\ninf = float("inf")' if re.search(r"\binf\b", text) else "") + "\n\n\n" + text
    linecache.cache[file] = (len(lines), None, lines.splitlines(keepends=True), file)
    space = {"__name__": __name__, "TorchModule": TorchModule}
    exec(compile(lines, file, "exec"), space)
    cls = space[name]
    cls._text, cls._public = text, public
    made = cls()
    for attribute, value in values.items():
        getattr(made, attribute).value = value
    return made
