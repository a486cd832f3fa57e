"""From a graph of ATen's operators to lines of Python."""
import re

from .aten import OPERATORS

_PROMOTE = set("add sub rsub mul div true_divide pow maximum minimum where eq ne lt le gt ge".split())
_VIEWS = set("select slice view t transpose permute unsqueeze squeeze split split_with_sizes unbind expand "
             "chunk narrow reshape alias detach diagonal unfold as_strided _reshape_alias _unsafe_view "
             "lift_fresh".split())
WHY = {"native_dropout": ": call .eval() on the module", "bernoulli": ": call .eval() on the module",
       "native_batch_norm": ": what needs other inputs cannot be written",
       "empty_like": ": if that is dropout, call .eval() on the module",
       "nonzero": ": how many there are follows from values", "_local_scalar_dense": ": a value that is read"}


class Writer:
    """Writes lines for the nodes of a graph. Of two traces, extents that differ have names."""

    def __init__(self, torch, traces):
        self.torch, self.traces = torch, traces
        self.names, self.lines, self.taken, self.counts = {}, [], {"self"}, {}
        if len(traces) > 1 and [n.target for n in traces[0].nodes] != [n.target for n in traces[1].nodes]:
            raise NotImplementedError("the two examples run different operators: what is done follows from "
                                      "an extent")
        self.other = dict(zip(traces[0].nodes, traces[-1].nodes))
        self.dims = {}  # (extent, other extent) -> (name, node, axis)
        for node in traces[0].inputs:
            for axis, pair in enumerate(self.pairs(node)):
                if pair[0] != pair[1] and pair not in self.dims:
                    self.dims[pair] = ("nmkpqr"[len(self.dims)] if len(self.dims) < 6 else
                                       f"n{len(self.dims)}", node, axis)
        self.used = self._used()

    def _used(self):
        """Paths of the weights that something takes, and the nodes that are taken."""
        self.live, stack = set(), list(self.traces[0].outputs)
        while stack:
            node = stack.pop()
            if node not in self.live:
                self.live.add(node)
                stack += node.all_input_nodes
        return {path for node, path in self.traces[0].weights.items() if node in self.live}

    def pairs(self, node):
        return list(zip(self.traces[0].values[node].shape, self.traces[-1].values[self.other[node]].shape))

    def extents(self, node):
        """Extents as annotations have them."""
        return [self.extent(*pair, annotation=True) for pair in self.pairs(node)]

    def extent(self, one, other, annotation=False):
        """An int that is `one` in the first example and `other` in the second, as text."""
        if one == other:
            return str(one)
        for pair, (name, node, axis) in self.dims.items():
            text = name if annotation else f"{self.names[node]}.shape[{axis}]"
            if one * pair[1] == other * pair[0] and one % pair[0] == 0:
                factor = one // pair[0]
                return text if factor == 1 else f"{factor}*{text}"
            if one - pair[0] == other - pair[1]:
                rest = one - pair[0]
                sign = "+" if rest > 0 else "-"
                return f"{text}{sign}{abs(rest)}"
        raise NotImplementedError(f"an extent of {one} in one example and {other} in the other follows from "
                                  "no extent of the arguments in a simple way")

    def fresh(self, wanted):
        name = f"{wanted}1" if wanted == "t" else wanted
        while name in self.taken:
            self.counts[wanted] = self.counts.get(wanted, 1) + 1
            name = f"{wanted}{self.counts[wanted]}"
        self.taken.add(name)
        return name

    def tensor(self, node):
        return self.names[node]

    def shape(self, node):
        return tuple(self.traces[0].values[node].shape)

    def write(self):
        self._refuse_writes_to_parts()
        for node in self.traces[0].nodes:
            if node.op == "call_function" and node in self.live:
                self._node(node)
            elif node.op == "get_attr" and node in self.live:
                value = self.traces[0].values[node]
                if value.dim():
                    raise NotImplementedError("a tensor that is made of numbers inside of forward: register "
                                              "it as a buffer")
                self.names[node] = repr(value.item())

    def _node(self, node):
        if getattr(node.target, "__name__", "") == "getitem":
            source, index = node.args
            self.names[node] = self.names[source][index]
            return
        schema = getattr(node.target, "_schema", None)
        name = schema.name.partition("::")[2] if schema else str(node.target)
        function = OPERATORS.get(name.rstrip("_") if not name.startswith("_") else name)
        if schema is None or function is None:
            raise NotImplementedError(f"aten::{name} has no counterpart here" + WHY.get(name, ""))
        made = function(self, node, self._promoted(name.rstrip("_"), schema, node))
        if isinstance(made, list):
            texts = []
            for text in made:
                texts.append(self._line(text) if text is not None else None)
            self.names[node] = texts
        else:
            self.names[node] = self._line(made)

    def _line(self, text):
        """The name of what an expression gives; a name is its own."""
        if re.fullmatch(r"(self\.)?[A-Za-z_]\w*", text):
            return text
        variable = self.fresh("t")
        self.lines.append(f"{variable} = {text}")
        return variable

    def _promoted(self, name, schema, node):
        """Arguments, with tensors of ints as f32 where floats meet them."""
        bound = self._bound(schema, node)
        if name not in _PROMOTE:
            return bound
        operands = {}
        for argument, value in zip(schema.arguments, node.args):
            if isinstance(value, self.torch.fx.Node) and argument.name != "condition":
                operands[argument.name] = self.traces[0].values[value]
        floats = any(x.is_floating_point() for x in operands.values()) or name in ("div", "true_divide") or any(
            isinstance(x, float) for x in bound.values())
        for key, x in operands.items():
            if floats and not x.is_floating_point():
                bound[key] = f"f32({bound[key]})"
        return bound

    def _refuse_writes_to_parts(self):
        """What works in place gives a new value here, so nothing else may have the old one's memory: a
        tensor that a view is of, or a view of it, and be read later. The result itself may be unused."""
        nodes = self.traces[0].nodes
        order = {node: i for i, node in enumerate(nodes)}
        holder, sharing = {}, {}  # the node whose memory one has; all nodes that have it
        parts = {}  # {split: which part of it} that a node is in
        for node in nodes:
            schema = getattr(node.target, "_schema", None)
            name = schema.name.partition("::")[2] if schema else getattr(node.target, "__name__", "")
            writes = schema is not None and name.endswith("_") and not name.startswith("_")
            if node.op == "call_function" and (writes or name in _VIEWS or name == "getitem"):
                holder[node] = holder.get(node.args[0], node.args[0])
                parts[node] = dict(parts.get(node.args[0], {}))
                if name == "getitem":
                    parts[node][node.args[0]] = node.args[1]
            others = sharing.setdefault(holder.get(node, node), [])
            if writes:
                for one in others:
                    apart = any(parts[node].get(split, part) != part
                                for split, part in parts.get(one, {}).items())
                    if not apart and any(order[user] > order[node] and (user in self.live or user.op == "output")
                           for user in one.users):
                        raise NotImplementedError(f"aten::{name} changes a part of a tensor in place, or one "
                                                  "that another is a part of")
            others.append(node)

    def _bound(self, schema, node):
        """Arguments by name: nodes as their text, ints that follow from extents as text."""
        other, bound = self.other[node], {}
        for i, argument in enumerate(schema.arguments):
            if i < len(node.args):
                value, second = node.args[i], other.args[i]
            elif argument.name in node.kwargs:
                value, second = node.kwargs[argument.name], other.kwargs[argument.name]
            elif argument.has_default_value():
                value = second = argument.default_value
            else:
                continue
            bound[argument.name] = self._value(value, second)
        return bound

    def _value(self, value, other):
        if isinstance(value, self.torch.fx.Node):
            return self.names[value]
        if isinstance(value, (list, tuple)):
            return [self._value(x, y) for x, y in zip(value, other)]
        if isinstance(value, int) and not isinstance(value, bool) and value != other:
            return self.extent(value, other)
        return value
