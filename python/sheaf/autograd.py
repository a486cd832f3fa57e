"""A compiled method as a torch.nn.Module.

    net = fast.to_torch("loss")
    opt = torch.optim.Adam(net.parameters())
    net(trees, labels).mean().backward()
    opt.step()

Its Parameters are the memory that compiled code computes with: strided, as rows are padded. What an
optimiser does in place is seen by their version counters.
"""
from __future__ import annotations

import re

import numpy as np
import torch

from . import front, torch_ops
from .data import Dataset
from .gradients import _Entry, _has_floats

__all__ = ["TorchModule"]


class TorchModule(torch.nn.Module):
    """What `fast.to_torch(method)` gives. Called as the compiled method is: a list, a tensor whose first
    axis is the inputs', or a Dataset. Gives torch tensors where the method gives arrays, in the same
    structure. In training mode dropout drops, another draw at each call.
    """

    def __init__(self, compiled, method, sparse=False):
        super().__init__()
        name = compiled._method_name(method, "method")
        self._entry, self._sparse = _Entry(compiled, name), sparse
        self._draws = _draws(compiled, name)
        with compiled._lock:
            about = compiled._model(name)._about
            _require_plain(about, name)
            self._inputs = any(_has_floats(about, kind) for _, kind in about["arguments"])
            self._model = model = self._entry.model(self._draws, self._inputs)
            compiled._share(model)
            views = model._session.parameters(True)
            weights = compiled._program.weights
            names = {id(param): name for name, param in compiled.target.named_parameters()}
            self._weights, self._paths = {}, []  # by name in the source; where they are in this
            for source, param in weights.items():
                if source in views:
                    parameter = torch.nn.Parameter(torch.from_numpy(views[source]))
                    self._weights[source] = parameter
                    self._paths.append(names.get(id(param), source))
                    self._put(self._paths[-1], parameter)
            self._places = {source: p.data_ptr() for source, p in self._weights.items()}
            self._fixed = fixed_results(model._about)
            self._seen, self._calls = self._versions(), 0
            compiled._watch(self)
        torch_ops.register(self)

    def _put(self, path, parameter):
        holder = self
        *outer, last = path.split(".")
        for part in outer:
            if part not in holder._modules:
                holder.add_module(part, torch.nn.Module())
            holder = holder._modules[part]
        holder.register_parameter(last, parameter)

    def _versions(self):
        return [p._version for p in self._weights.values()]

    def _notice(self):
        """Tells compiled code what was written in place since it was last asked. Called whenever the
        state of the weights is looked at."""
        versions = self._versions()
        if versions != self._seen:
            self._seen = versions
            self._model._session.weights_written()
            self._entry.compiled._weights_changed(self._model)

    def _require_own(self):
        live = {id(p) for p in self.parameters()}
        for name, parameter in self._weights.items():
            if id(parameter) not in live or parameter.data_ptr() != self._places[name]:
                raise RuntimeError(f"the Parameter '{name}' is not what to_torch() made: it is the memory of a compiled "
                                   "model. Write into it: with torch.no_grad(): parameter.copy_(...)")

    def forward(self, *columns):
        if torch_ops.compiling():
            return torch_ops.traced(self, columns)
        return self._run(columns)

    def _run(self, columns):
        found = []
        call = self._call(columns, found)
        outputs = _Function.apply(call, *found, *self._weights.values())
        if any(tensor.requires_grad for tensor in found) and not self._inputs:
            raise TypeError(f"'{self._entry.name}' has no arguments of floats")
        return call.joined(outputs)

    def _call(self, columns, found, step=None):
        """What these columns are a call of; `found` is given their tensors. `step`: that of a call that is
        made again."""
        entry, compiled = self._entry, self._entry.compiled
        about, cast = self._model._about, _autocast()
        kinds = [kind for _, kind in about["arguments"]] + [None] * len(columns)
        columns = [_taken(column, found, cast and kind is not None and not _has_floats(about, kind, ("f16", "bf16")))
                   for column, kind in zip(columns, kinds)]
        with compiled._lock:
            self._require_own()
            # Asking for a model gives it the weights as they are.
            model = entry.model(self._draws and self.training, self._inputs)
            if step is None:
                self._calls += self.training
                step = self._calls if self.training else 0
        return _Call(self, model, columns, step, found)

    def _apply(self, function):
        for parameter in self._weights.values():
            with torch.no_grad():
                made = function(parameter)
            if made.device.type != "cpu" or made.dtype != torch.float32:
                raise TypeError(f"a compiled model runs on processors, in f32: its Parameters cannot go to {made.device}, "
                                f"{made.dtype}")
        return self

    def __deepcopy__(self, memo):
        raise TypeError("the Parameters are memory of a compiled model: copy the Module, and call to_torch() again")

    def __reduce__(self):
        raise TypeError("the Parameters are memory of a compiled model: pickle the Module, or state_dict()")

    def extra_repr(self):
        return f"{self._entry.name} of {type(self._entry.compiled.target).__name__}"


def _draws(compiled, name):
    """Whether a method has dropout in it, or in what it calls: another method's does not count."""
    if "dropout" not in compiled.source():
        return False
    entries, _ = compiled._entries()
    alone = front.lower(compiled.target, [entry for entry in entries if entry[0] == name], main=name,
                        source=compiled._source, extra=compiled._extra)
    return re.search(r"\bdropout\b", alone.text) is not None


def _require_plain(about, name):
    """Of objects there is no telling which attributes gradients arrive at."""
    pending = [about["result"]]
    while pending:
        kind = about["types"][pending.pop()]
        if kind["kind"] == "data":
            raise TypeError(f"'{name}' gives objects, {kind['text']}: to_torch is of methods that give tensors, numbers, "
                            "tuples and lists of them; sf.vjp takes all")
        pending += kind["children"]


def fixed_results(about):
    """The extents of an input's results in their order, and a function that puts tensors in their places;
    None if there are others than tensors of f32 with fixed extents, or tuples of such."""
    shapes = []

    def of(number):
        kind = about["types"][number]
        if kind["kind"] == "tuple":
            parts = [of(child) for child in kind["children"]]
            return lambda outputs: tuple(part(outputs) for part in parts)
        if kind["kind"] != "tensor" or kind["dtype"] != "f32" or None in kind["shape"]:
            raise LookupError
        shapes.append(tuple(kind["shape"]))
        return lambda outputs, place=len(shapes) - 1: outputs[place]

    try:
        joined = of(about["result"])
    except LookupError:
        return None
    return shapes, joined


def _autocast():
    """Whether torch chooses precisions: what other layers give is then cast, as to its operators in f32."""
    return torch.is_autocast_enabled() or torch.is_autocast_cpu_enabled()


def _taken(column, found, cast):
    """A column with arrays in place of torch's tensors, which are collected: the column itself, and
    elements of lists and tuples in it. `cast`: halves become f32."""
    if isinstance(column, Dataset):
        return column
    if isinstance(column, torch.Tensor):
        if cast and column.dtype in (torch.float16, torch.bfloat16):
            column = column.float()
        found.append(column)
        if column.device.type != "cpu":
            raise TypeError(f"a tensor on {column.device}: bring it over with .cpu()")
        return _array(column).view(_Taken)
    if type(column) in (list, tuple) and any(isinstance(one, (torch.Tensor, list, tuple)) for one in column):
        return type(column)(_taken(one, found, cast) for one in column)
    return column


def _array(tensor):
    """The memory of a tensor."""
    if tensor.dtype == torch.bfloat16:
        raise TypeError("a tensor of bfloat16: give it as f32, with .float(), or under torch.autocast")
    try:
        return tensor.detach().numpy()
    except (RuntimeError, TypeError) as error:
        raise TypeError("a compiled method takes tensors that have memory of their own. Those inside of vmap and other "
                        "torch.func transformations have not: call it outside of them, its first axis is the inputs'. "
                        f"Sparse and quantised ones are given dense. torch says: {error}") from error


class _Taken(np.ndarray):
    """What was a tensor of torch's."""


class _Call:
    """A forward: where its tensors stand, in the arguments and in the results."""

    def __init__(self, module, model, columns, step, found):
        self.module, self.model, self.columns, self.step = module, model, columns, step
        self.inputs = len(found)
        self.outputs, self.structure = [], None  # (instances, path) of each tensor

    def run(self):
        entry = self.module._entry
        with entry.lock:
            held = entry.run(self.model, self.columns, self.step)
            self.version = entry.version
            results = entry.results(held)
        about, tensors = self.model._about, []
        self.structure = self._split(about, about["result"], results, (), tensors)
        return held, tensors

    def _tensor(self, array, instances, path, tensors):
        self.outputs.append((instances, path))
        tensors.append(torch.from_numpy(np.asarray(array)))
        return _Place(len(tensors) - 1)

    def _split(self, about, number, value, path, tensors):
        """The results with places for their tensors of floats."""
        kind = about["types"][number]
        if kind["kind"] == "tensor" and None not in kind["shape"]:
            return self._tensor(value, None, path, tensors) if kind["dtype"] == "f32" else torch.from_numpy(value)
        if kind["kind"] == "tuple":
            return tuple(self._split(about, child, part, (*path, i), tensors)
                         for i, (child, part) in enumerate(zip(kind["children"], value)))
        if kind["kind"] in ("tensor", "list"):
            return [self._single(about, number, one, i, path, tensors) for i, one in enumerate(value)]
        return torch.from_numpy(np.asarray(value))

    def _single(self, about, number, value, instance, path, tensors):
        kind = about["types"][number]
        if kind["kind"] == "tensor":
            if kind["dtype"] != "f32":
                return torch.from_numpy(value)
            return self._tensor(value[None], [instance], path, tensors)
        if kind["kind"] in ("list", "tuple"):
            kinds = kind["children"] if kind["kind"] == "tuple" else kind["children"] * len(value)
            return type(value)(self._single(about, child, one, instance, (*path, i), tensors)
                               for i, (child, one) in enumerate(zip(kinds, value)))
        return value

    def joined(self, outputs):
        return self._put(self.structure, outputs)

    # (A function in a function that calls itself would hold the results until a collection.)
    def _put(self, part, outputs):
        if isinstance(part, _Place):
            one = outputs[part.number]
            return one if self.outputs[part.number][0] is None else one[0]
        if type(part) in (list, tuple):
            return type(part)(self._put(one, outputs) for one in part)
        return part

    def back(self, held, arriving, wants):
        """The gradients of what _taken() collected and of the weights, where they are wanted."""
        entry, module = self.module._entry, self.module
        cotangents = [(instances, path, gradient.contiguous().numpy())
                      for (instances, path), gradient in zip(self.outputs, arriving) if gradient is not None]
        with entry.lock:
            if entry.version != self.version:
                raise RuntimeError("the weights have changed since these results were computed: the gradients are of what "
                                   "they were")
            # What is frozen costs nothing.
            back = held.backward(cotangents, [name for want, name in zip(wants[self.inputs:], module._weights)
                                              if not want])
            of_inputs = [None] * self.inputs
            if any(wants[:self.inputs]):
                of_inputs = [None if not want or one is None else torch.from_numpy(np.asarray(one))
                             for want, one in zip(wants, self.of_inputs(back))]
            of_weights = [_of_weight(back.weight(name, not module._sparse), parameter) if want else None
                          for want, (name, parameter) in zip(wants[self.inputs:], module._weights.items())]
        return (*of_inputs, *of_weights)

    def of_inputs(self, back):
        """The gradients of what _taken() collected, in its order."""
        gradients = []
        for number, (column, (_, kind)) in enumerate(zip(self.columns, self.model._about["arguments"])):
            if isinstance(column, Dataset):
                continue
            has = _has_floats(self.model._about, kind)
            _collect(column, back.argument(self.model._native, number) if has else None, gradients)
        return gradients


class _Place:
    __slots__ = ("number",)

    def __init__(self, number):
        self.number = number


def _collect(column, gradient, out):
    if type(column) in (list, tuple):
        for i, one in enumerate(column):
            if isinstance(one, (_Taken, list, tuple)):
                _collect(one, None if gradient is None else gradient[i], out)
    elif isinstance(column, _Taken):
        if gradient is not None and isinstance(gradient, list):  # rows of tensors of any extents
            gradient = np.stack(gradient) if gradient else np.zeros_like(column, np.float32)
        out.append(gradient)


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(context, call, *tensors):
        held, outputs = call.run()
        context.call, context.held = call, held
        context.save_for_backward(*tensors[call.inputs:])
        context.set_materialize_grads(False)
        return tuple(outputs)

    @staticmethod
    def backward(context, *arriving):
        call = context.call
        saved = context.saved_tensors  # torch says it if a weight was changed in place
        wants = context.needs_input_grad[1:]
        with torch.no_grad():
            gradients = call.back(context.held, arriving, wants)
        if torch.is_grad_enabled():  # create_graph=True: gradients of these are not to be had
            given = [tensor for tensor in (*arriving, *saved) if tensor is not None]
            gradients = [None if one is None else _Once.apply(one, *given) for one in gradients]
        return (None, *gradients)


class _Once(torch.autograd.Function):
    """Gradients, of which there are none in turn."""

    @staticmethod
    def forward(context, gradient, *given):
        return gradient.view_as(gradient) if not gradient.is_sparse else gradient.clone()

    @staticmethod
    def backward(context, *arriving):
        raise RuntimeError("gradients of gradients are not there for compiled methods: to_torch() is differentiable once")


def _of_weight(gradient, parameter):
    if type(gradient) is not tuple:
        return torch.from_numpy(gradient)
    indices, rows = (torch.from_numpy(part) for part in gradient)
    return torch.sparse_coo_tensor(indices[None], rows, parameter.shape)
