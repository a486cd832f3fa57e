"""Optimisers: what a training changes weights by.

    opt = sf.optim.AdamW(fast, lr=1e-3, clip=5.0)
    step = fast.train_step(opt, "loss", trees, labels)

Names and defaults are those of torch.optim. Beside them, all take `clip`, the most length of all
gradients together, and `updates`, which gives weights numbers of their own:

    updates={"*.bias": {"weight_decay": 0.0}, "embedding": {"rate": 0.1}}

A pattern is a name, of the Module or of `source()`, in which `*` stands for any characters; the first that
matches a weight counts. `rate` is what `lr` is times. Of a table of which a step read some rows only these rows change.
"""
import inspect
import math
import numbers

__all__ = ["Adagrad", "Adam", "AdamW", "LAMB", "Optimizer", "RMSprop", "SGD"]


class Optimizer:
    """What is common to all: options, the number of steps made, and what is remembered from one to
    the next. It belongs to one model and one loss. `lr` may be set before each step."""

    _options = {}

    def __init__(self, model, **options):
        accepted = {**self._options, "clip": None, "updates": None}
        unknown = [name for name in options if name not in accepted]
        if unknown:
            raise TypeError(f"{type(self).__name__} has no option {', '.join(map(repr, unknown))}; there are "
                            + ", ".join(accepted))
        if not hasattr(model, "train_step"):
            raise TypeError(f"an optimiser is of a model that sf.jit gave, or sf.load for training, not of {type(model).__name__}")
        self.model, self.steps = model, 0
        self.options = {**accepted, **options}
        self._native, self._loss = None, None
        self.lr = self.options.pop("lr")
        self._given = self._as_native()

    @property
    def lr(self):
        """The learning rate."""
        return self._lr

    @lr.setter
    def lr(self, rate):
        self._lr = _number("lr", rate)

    def _kind(self):
        return type(self).__name__.lower()

    def _as_native(self):
        given = {"name": self._kind(), "updates": _updates(self.model, self.options["updates"])}
        for name, value in self.options.items():
            if name == "betas":
                try:
                    first, second = value
                except (TypeError, ValueError):
                    raise TypeError(f"betas are two numbers, not {value!r}") from None
                given["beta1"], given["beta2"] = (_number("betas", b, below=1) for b in (first, second))
            elif name in _NATIVE and value is not None:
                given[_NATIVE[name]] = _number(name, value, below=1 if name in ("momentum", "alpha") else None)
        return given

    def _for(self, model):
        """The options for a model that a loss was compiled to, which may lack weights that it does not use."""
        own = model._about["parameters"]
        return {**self._given, "updates": [one for one in self._given["updates"] if one[0] in own]}

    def _of(self, loss, model):
        """The native optimiser of a model that a loss was compiled to."""
        from . import _native
        if self._native is None:
            self._native, self._loss = _native.Optimizer(model._session, self._for(model)), loss
        if self._loss != loss:
            raise ValueError(f"this optimiser makes steps by '{self._loss}': make another for '{loss}'")
        if not self._native.is_of(model._session):
            raise RuntimeError("an optimiser stays in the process that it made steps in: make another after a fork")
        return self._native

    def __repr__(self):
        said = {"lr": self.lr, **{name: value for name, value in self.options.items() if value is not None}}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in said.items())})"

    def __init_subclass__(cls):
        parameters = [inspect.Parameter("model", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
        for name, value in {**cls._options, "clip": None, "updates": None}.items():
            parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value))
        cls.__signature__ = inspect.Signature(parameters)


_NATIVE = {"momentum": "momentum", "alpha": "decay", "eps": "epsilon", "weight_decay": "weight_decay",
           "clip": "clip"}


def _number(name, value, below=None):
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} is a number, not {value!r}")
    value = float(value)
    if not math.isfinite(value) or value < 0 or below is not None and value >= below:
        raise ValueError(f"{name} is {value}: it is at least 0" + (f" and less than {below}" if below else ""))
    return value


def _updates(model, given):
    """(name in the source, rate, decay or None) of each weight that a pattern names."""
    if not given:
        return []
    from .gradients import weights_named
    found = []
    for pattern, own in given.items():
        unknown = set(own) - {"rate", "weight_decay"}
        if unknown:
            raise TypeError(f"updates[{pattern!r}] has no {', '.join(sorted(map(repr, unknown)))}; there are rate, "
                            "weight_decay")
        decay = own.get("weight_decay")
        numbers = _number("rate", own.get("rate", 1.0)), None if decay is None else _number("weight_decay", decay)
        found += [(name, *numbers) for name in weights_named(model, [pattern], "updates")]
    return found


class SGD(Optimizer):
    """The gradient times the rate; with `momentum` also what is left of earlier steps."""
    _options = {"lr": 1e-3, "momentum": 0.0, "weight_decay": 0.0}

    def _kind(self):
        return "momentum" if self.options["momentum"] else "sgd"


class Adam(Optimizer):
    """A mean of gradients over the root of a mean of their squares."""
    _options = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0}


class AdamW(Optimizer):
    """That of Adam, with weight decay apart from the gradient."""
    _options = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 1e-2}


class Adagrad(Optimizer):
    """The gradient over the root of all its squares so far."""
    _options = {"lr": 1e-2, "eps": 1e-10, "weight_decay": 0.0}


class RMSprop(Optimizer):
    """The gradient over the root of a mean of its squares."""
    _options = {"lr": 1e-2, "alpha": 0.99, "eps": 1e-8, "weight_decay": 0.0}


class LAMB(Optimizer):
    """That of AdamW, made as long as the rate times the weight. Torch has none."""
    _options = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0}
