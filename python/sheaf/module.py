"""Module and Param: a model is an object, its attributes are its parameters and layers.

    class Classifier(Module):
        def __init__(self, vocab, hidden=64, classes=5):
            self.hidden, self.classes = hidden, classes
            self.embedding = Param(vocab, hidden, init=normal(0.1))
            self.out = nn.Linear(hidden, classes)

        def forward(self, words: Tokens["n"]) -> Float32["classes"]:
            return self.out(self.embedding[words].mean(0))

Params, Modules and lists of Modules are what the model learns and is made of; ints, floats, bools
and strings are constants of the compilation. Names follow from attributes: `out.weight`,
`layers.0.norm.bias`. Values are NumPy arrays in f32.
"""
import copy
import threading

import numpy as np

from . import hints, ops, signatures
from .initializers import Initializer, as_initializer

__all__ = ["Module", "Param"]


class Param(ops.Operand):
    """A weight: its shape, how it begins, and its value.

    `Param(2 * hidden, hidden, init=glorot)`; `init` is an initialiser of `sheaf`, its text
    ("normal(0.1)"), `zeros` or `ones`, or an array, which is then the value. In expressions a
    Param is its value: `x @ self.w + self.b`, `self.embedding[word]`, `self.w.T`.

    `value` is an f32 array that may be written to (`p.value[...] = table`, `p.value = table`).
    After `sheaf.jit` it is the memory that compiled code reads.

    `state_axes` are its axes in the order in which a `state_dict` has them, where that is another.
    """

    def __init__(self, *shape, init="zeros", state_axes=None):
        self._state_axes = state_axes
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = tuple(shape[0])
        self._value = None
        if not isinstance(init, (str, Initializer)) and not callable(init):
            array = _as_value(init, "the initial value")
            if shape and tuple(shape) != array.shape:
                raise ops.ShapeError(f"a Param of the shape {tuple(shape)} cannot begin with an "
                                     f"array of the shape {array.shape}")
            self._shape, self.init, self._value = array.shape, as_initializer("zeros"), array.copy()
            return
        for extent in shape:
            if isinstance(extent, bool) or not isinstance(extent, (int, np.integer)) or extent < 1:
                raise ValueError(f"the extents of a Param are positive ints, not {extent!r}")
        self._shape, self.init = tuple(int(extent) for extent in shape), as_initializer(init)
        self.init.check(self._shape)
        if state_axes is not None and sorted(state_axes) != list(range(len(self._shape))):
            raise ValueError(f"the axes {state_axes} are not those of a Param of the shape {self._shape}")

    def in_state(self):
        """What a `state_dict` has of it: itself, or a view with other axes."""
        return self if self._state_axes is None else _Turned(self, self._state_axes)

    @property
    def shape(self):
        return self._shape

    @property
    def ndim(self):
        return len(self._shape)

    @property
    def size(self):
        return int(np.prod(self._shape, dtype=np.int64))

    @property
    def dtype(self):
        return np.dtype(np.float32)

    @property
    def initialized(self):
        """Whether it has a value: from the end of the constructor of the outermost Module on."""
        return self._value is not None

    @property
    def value(self):
        if self._value is None:
            raise RuntimeError(
                f"this Param of the shape {self._shape} has no value yet: it gets one, by its name, "
                "when the constructor of the model around it ends. Alone: Param(..., init=array), or "
                "set `value`")
        return self._value

    @value.setter
    def value(self, array):
        """Takes an f32 array of the same shape as it is, without a copy; converts what else is
        given."""
        array = _as_value(array, "the value")
        if array.shape != self._shape:
            raise ops.ShapeError(f"a Param of the shape {self._shape} cannot take a value of the "
                                 f"shape {array.shape}")
        self._value = array

    def draw(self, name, seed=0):
        """Gives it the value that its initialiser has for this name and seed. Memory that is there
        is written to, so whoever shares it sees the new numbers."""
        drawn = self.init.draw(name, self._shape, seed)
        if self._value is None or not self._value.flags.writeable:
            self._value = drawn
        else:
            self._value[...] = drawn

    def reset(self):
        """Takes the value away: the constructor around it, or `draw`, gives another."""
        self._value = None

    def __sheaf_tensor__(self):
        return ops.tensor(self.value)

    def __array__(self, dtype=None, copy=None):
        value = self.value if dtype is None else self.value.astype(dtype, copy=False)
        return value.copy() if copy else value

    def __repr__(self):
        return f"Param({', '.join(map(str, self._shape))}, init={self.init})"

    def __getstate__(self):
        value = None if self._value is None else np.ascontiguousarray(self._value)
        if value is not None:
            value = value.reshape(self._shape)
        return {"shape": self._shape, "init": self.init, "value": value, "axes": self._state_axes}

    def __setstate__(self, state):
        self._shape, self.init, self._value = state["shape"], state["init"], state["value"]
        self._state_axes = state["axes"]

    def __deepcopy__(self, memo):
        # A copy has memory of its own, dense, whatever the original shares.
        other = copy.copy(self)
        other._value = None if self._value is None else np.array(self._value, np.float32, order="C")
        memo[id(self)] = other
        return other


class _Turned:
    """A Param with its axes in another order: the same memory."""

    def __init__(self, param, axes):
        self.param, self.axes = param, axes
        self.shape = tuple(param.shape[axis] for axis in axes)

    @property
    def initialized(self):
        return self.param.initialized

    @property
    def value(self):
        return self.param.value.transpose(self.axes)

    @value.setter
    def value(self, array):
        self.param.value = np.ascontiguousarray(array.transpose(np.argsort(self.axes)))


def _as_value(given, what):
    """An f32 array of an array, a torch tensor, a Param or nested lists of numbers."""
    if isinstance(given, Param):
        given = given.value
    if hasattr(given, "detach"):
        given = given.detach()
        if given.device.type != "cpu":
            raise TypeError(f"{what} is a tensor on {given.device}: bring it over with .cpu()")
        if str(given.dtype) == "torch.bfloat16":
            given = given.float()
        given = given.numpy()
    array = np.asarray(given)
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise TypeError(f"{what} has elements of {array.dtype}: those of a Param are f32")
    return np.asarray(array, np.float32).view(np.ndarray)


_constructing = threading.local()


class _ModuleType(type):
    """Draws the parameters that have no value yet, by their names, when the outermost constructor
    ends."""

    def __call__(cls, *arguments, **named):
        if named and cls.__module__.startswith("sheaf.nn."):
            hints.refuse_arguments(cls, named)
        depth = getattr(_constructing, "depth", 0)
        _constructing.depth = depth + 1
        try:
            made = super().__call__(*arguments, **named)
        finally:
            _constructing.depth = depth
        if depth == 0 and isinstance(made, Module):
            for name, param in made.named_parameters():
                if not param.initialized:
                    param.draw(name)
        return made


class Module(metaclass=_ModuleType):
    """A model or a layer of one: attributes and methods of an ordinary class.

    Calling it calls `forward`, in ordinary Python, on NumPy, for one input; what is annotated as a
    tensor is checked.
    """

    def forward(self, *arguments):
        raise NotImplementedError(f"{type(self).__name__} has no method 'forward'")

    def __call__(self, *arguments, **named):
        function = type(self).forward
        return signatures.call(self, function, arguments, named)

    def __getattr__(self, name):
        # Of what is not there: names of PyTorch's Modules say what to write.
        raise hints.missing(f"'{type(self).__name__}' object", name, hints.METHODS, self)

    def public_name(self, name):
        """What `state_dict` calls the parameter that attributes of this Module name so. A layer whose
        attributes are not called as its weights are known says it here."""
        return name

    # What it is made of, in the order in which attributes were set.

    def named_children(self):
        """(name, Module) of the Modules in it: attributes, and elements of lists as `layers.0`."""
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield name, value
            elif isinstance(value, (list, tuple)):
                for i, element in enumerate(value):
                    if isinstance(element, Module):
                        yield f"{name}.{i}", element
                    else:
                        _refuse_hidden(element, f"{name}.{i}")
            else:
                _refuse_hidden(value, name)

    def children(self):
        return (module for _, module in self.named_children())

    def named_modules(self, prefix=""):
        """(name, Module) of itself, called `prefix`, and of all in it, each once."""
        return ((prefix + name, module) for name, module in self._walk())

    def modules(self):
        return (module for _, module in self.named_modules())

    def named_parameters(self, prefix="", duplicates=False):
        """(name, Param) of all in it; one with two names by its first, or by both."""
        seen = set()
        for path, module in self._walk(duplicates):
            for name, value in vars(module).items():
                for name, param in _params_in(name, value):
                    if duplicates or id(param) not in seen:
                        seen.add(id(param))
                        yield prefix + (path + "." if path else "") + name, param

    def parameters(self):
        return (param for _, param in self.named_parameters())

    def _walk(self, duplicates=False):
        """(path, Module) in depth first order, without recursion; a Module that is met again is
        passed by unless names are wanted for each place. One inside itself is an error."""
        stack, seen = [("", self, ())], set()
        while stack:
            path, module, above = stack.pop()
            if any(module is outer for outer in above):
                raise ValueError(f"'{path}' is a Module inside itself: a layer has no way back to "
                                 "the model around it")
            if not duplicates:
                if id(module) in seen:
                    continue
                seen.add(id(module))
            yield path, module
            above = above + (module,)
            inner = [((path + "." if path else "") + name, child, above)
                     for name, child in module.named_children()]
            stack.extend(reversed(inner))

    # Weights by name.

    def initialize(self, seed=0):
        """Draws all parameters anew, by name and seed, as `sheaf init --seed` does. Gives itself."""
        for name, param in self.named_parameters():
            param.draw(name, seed)
        return self

    def _public_parameters(self):
        """(name, Param) of all, by the names and with the axes that weights have in files."""
        modules = dict(self._walk(duplicates=True))
        for name, param in self.named_parameters(duplicates=True):
            parts = name.split(".")
            # The innermost Module speaks first.
            for end in range(len(parts) - 1, -1, -1):
                module = modules.get(".".join(parts[:end]))
                if module is not None:
                    parts[end:] = module.public_name(".".join(parts[end:])).split(".")
            yield ".".join(parts), param.in_state()

    def state_dict(self, prefix=""):
        """{name: array} of all parameters. The arrays are the parameters' memory, not copies."""
        return {prefix + name: param.value for name, param in self._public_parameters()}

    def load_state_dict(self, state, strict=True):
        """Writes weights by name: arrays or torch tensors, as `state_dict` of either gives them.

        With `strict`, a name that is missing or that the model has not is an error, and then
        nothing is written. Gives (missing names, unexpected names).
        """
        return load_values(dict(self._public_parameters()), state, strict, type(self).__name__)

    def __repr__(self):
        lines = []
        for name, value in vars(self).items():
            if isinstance(value, Param):
                lines.append(f"({name}): {value!r}")
        for name, child in self.named_children():
            first, *rest = repr(child).split("\n")
            lines += [f"({name}): {first}", *rest]
        constants = ", ".join(f"{name}={value!r}" for name, value in vars(self).items()
                              if isinstance(value, (int, float, bool, str)))
        head = f"{type(self).__name__}({constants}"
        return head + ("".join("\n  " + line for line in lines) + "\n)" if lines else ")")


def load_values(params, state, strict, what):
    """Writes weights by name, as `Module.load_state_dict` does, into {name: Param}, all or none."""
    missing = [name for name in params if name not in state]
    unexpected = [name for name in state if name not in params]
    wrong = []
    if strict and missing:
        wrong.append(f"missing: {', '.join(missing)}")
    if strict and unexpected:
        wrong.append(f"not of this model: {', '.join(unexpected)}")
    values = {}
    for name, param in params.items():
        if name not in state:
            continue
        try:
            values[name] = _as_value(state[name], f"'{name}'")
        except TypeError as error:
            wrong.append(str(error))
            continue
        if values[name].shape != param.shape:
            wrong.append(f"'{name}' has the shape {values[name].shape}, and the model's has "
                         f"{param.shape}")
    if wrong:
        raise ValueError(f"cannot load weights into {what}: " + "; ".join(wrong))
    for name, value in values.items():
        param = params[name]
        if param.initialized and param.value.flags.writeable:
            param.value[...] = value
        else:
            param.value = np.array(value, np.float32)
    return missing, unexpected


def _refuse_hidden(value, name):
    """Params and Modules where nothing would find them are a mistake."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple, set)) and any(
            isinstance(inner, (Module, Param)) for inner in value):
        raise TypeError(f"'{name}' holds Params or Modules where they have no name: they are "
                        "attributes of a Module, or elements of a list that is one")


def _params_in(name, value):
    if isinstance(value, Param):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for i, element in enumerate(value):
            if isinstance(element, Param):
                yield f"{name}.{i}", element
