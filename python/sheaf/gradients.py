"""Gradients of what was compiled, and steps by them."""
from __future__ import annotations

import contextlib
import difflib
import re
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from . import _native
from .data import Dataset
from .elements import FLOATS
from .errors import InstanceError, InstanceErrors
from .front import boundary
from .front.messages import instance_error
from .jit import CompiledFunction, CompiledModule, Method
from .model import Model

__all__ = ["Rows", "Step", "value_and_grad", "vjp"]


class Rows(NamedTuple):
    """The gradient of a table of which only some rows were read: zero but for these."""
    indices: np.ndarray  # int64, ascending
    rows: np.ndarray  # a row for each index

    def dense(self, shape):
        whole = np.zeros(shape, np.float32)
        whole[self.indices] = self.rows
        return whole


def value_and_grad(target, *, inputs=False, reduce="mean", dropout=False, dense=False):
    """A function that gives a loss and its gradients:

        loss, grads = sf.value_and_grad(fast.loss)(trees, labels)

    `target` is a method of a compiled Module, a compiled function, or a `sheaf.Model` that was made with
    `training=True`; its result is f32 without axes. `grads` has the gradient of each weight by name: an
    array, or `Rows` of a table that was read by rows (`dense=True`: arrays all). A weight that the losses
    do not depend on has zeros, or no rows.

    inputs   gives (loss, grads, of_inputs): of each argument what its values are, with gradients in place
             of tensors of floats, and None for one without such
    reduce   "mean" or "sum" of the losses; None gives the losses as an array, and gradients of their sum
    dropout  dropout drops
    """
    if reduce not in ("mean", "sum", None):
        raise ValueError(f"reduce is {reduce!r}, not 'mean', 'sum' or None")
    entry = _Entry.of(target, "sf.value_and_grad")

    def run(*columns):
        __tracebackhide__ = True
        with entry.lock:
            model = entry.model(dropout, inputs)
            _require_loss(model)
            held = entry.run(model, columns)
            losses = entry.results(held)
            count = len(losses)
            scale = np.float32(1 / count if reduce == "mean" and count else 1)
            back = held.backward([(None, (), np.full(count, scale, np.float32))])
            loss = losses if reduce is None else _loss(losses, reduce)
            return (loss, *entry.gradients(model, back, inputs, dense))
    run.__name__ = run.__qualname__ = f"value_and_grad({entry.name})"
    return run


def vjp(target, *columns, inputs=False, dropout=False, dense=False):
    """What `target` gives for these columns, and a function from cotangents, which is what arrives at
    the results, to gradients:

        vectors, back = sf.vjp(fast.encode, trees)
        grads = back(np.ones_like(vectors))

    Cotangents are as the results are: an array where that is one, a tuple of such, or a list with one
    for each input, in which objects have arrays where theirs have tensors; None is where nothing
    arrives. `back` may be called again, and after other runs, as long as the weights are what they
    were; it holds what was computed. With `inputs` it gives (grads, of_inputs), as `value_and_grad`.
    """
    __tracebackhide__ = True
    entry = _Entry.of(target, "sf.vjp")
    with entry.lock:
        model = entry.model(dropout, inputs)
        held = entry.run(model, columns)
        results = entry.results(held)
        made_at = entry.version

    def back(cotangents):
        with entry.lock:
            if entry.version != made_at:
                raise RuntimeError("the weights have changed since these results were computed: the gradients are "
                                   "of what they were")
            given = entry.cotangents(model, cotangents, len(held))
            return _one_or_more(entry.gradients(model, held.backward(given), inputs, dense))
    return results, back


def _one_or_more(parts):
    return parts if len(parts) > 1 else parts[0]


def _loss(losses, reduce):
    if not len(losses):
        return float("nan") if reduce == "mean" else 0.0
    return float(np.mean(losses, dtype=np.float64) if reduce == "mean" else np.sum(losses, dtype=np.float64))


def _require_loss(model):
    result = model._about["types"][model._about["result"]]
    if result["kind"] != "tensor" or result["shape"] or result["dtype"] != "f32" or model._about["emits"] is not None:
        raise TypeError(f"'{model.entry}' gives {result['text']}, and is no loss, which gives f32 without axes "
                        "(Float32[\"\"]): sf.vjp takes what arrives at other results")


class _Entry:
    """Where gradients are taken: at a method of a compiled Module, at a function, or of a Model."""

    def __init__(self, compiled, name, own=None):
        self.compiled, self.name, self._own = compiled, name, own
        self.lock = compiled._lock if compiled else own._training_lock

    @classmethod
    def of(cls, target, asks):
        if isinstance(target, Method):
            return cls(target.compiled, target.name)
        if isinstance(target, CompiledModule):
            return cls(target, "forward")
        if isinstance(target, CompiledFunction):
            return cls(target, target.target.__name__)
        if isinstance(target, Model):
            if not target._about["training"]:
                raise TypeError(f"{asks} takes a model that was made with training=True")
            return cls(None, target.entry, target)
        holder, name = getattr(target, "__self__", None), getattr(target, "__name__", None)
        if isinstance(holder, CompiledModule) and name in holder.methods:
            raise TypeError(f"the compiled method '{name}', which has the name of one of sf.jit's, is "
                            f"fast.methods[{name!r}]")
        raise TypeError(f"{asks} takes a compiled method or function, as {asks}(fast.loss) of fast = sf.jit(model), not "
                        f"{type(target).__name__}")

    @classmethod
    def of_loss(cls, target, loss):
        """That of a compiled Module's method, or of a Model, which is its loss."""
        if not isinstance(target, Model):
            return cls(target, target._method_name(loss, "loss"))
        if not target._about["training"]:
            raise TypeError(f"'{target.entry}' was compiled without what goes back: fast.save(path, train=True) of a "
                            "jitted model, `sheaf build --train`, or training=True, dropout=True in sf.load and sf.compile")
        if loss not in (None, target.entry):
            raise ValueError(f"the loss is '{target.entry}', what the model was compiled for, not {loss!r}")
        return cls(None, target.entry, target)

    @property
    def version(self):
        return self.compiled._version_now() if self.compiled else self._own._changes

    def model(self, dropout, inputs):
        if self.compiled:
            return self.compiled._training_model(self.name, dropout, inputs)
        if inputs and not self._own._about["input_gradients"]:
            raise TypeError("gradients of inputs are of a model that was made with input_gradients=True")
        return self._own

    def brought_up(self, model):
        """The weights are what the Params are."""
        if self.compiled:
            self.compiled._version_now()
            self.compiled._brought_up(model)

    def weights_changed(self, model):
        """A step, or a file, has changed those of the model."""
        if self.compiled:
            self.compiled._weights_changed(model)
        else:
            model._weights_changed()

    def encode(self, columns):
        return self.compiled._encode(self.name, columns) if self.compiled else self._own.encode(*columns)

    def each(self, columns):
        """What it gives for each instance, or why there is nothing."""
        called = self.compiled.methods[self.name] if self.compiled else self._own
        return called(*columns, errors="return")

    def run(self, model, columns, step=0):
        if self.compiled:
            program = self.compiled._program
            columns = boundary.arguments(program, self.name, columns)
        if len(columns) == 1 and type(columns[0]) is Dataset:
            columns = [columns[0]._of(model._native)]
        with boundary.names(program, self.name, model) if self.compiled else contextlib.nullcontext():
            return _native.run_kept(model._session, tuple(columns), step)

    def results(self, held):
        __tracebackhide__ = True
        try:
            return held.results(False)
        except InstanceErrors as failed:
            raise failed.derive([self.error(e) for e in failed.exceptions]) from None

    def error(self, error):
        if not self.compiled or not isinstance(error, InstanceError):
            return error
        return instance_error(error, self.compiled._program, self.compiled.text_name)

    def gradients(self, model, back, inputs, dense):
        """(by weight,) or (by weight, by argument)."""
        grads = {}
        for name, (dtype, _) in self.weights(model).items():
            if dtype == "f32":
                one = back.weight(name, dense)
                grads[name] = Rows(*one) if type(one) is tuple else one
        if not inputs:
            return grads,
        found = []
        for number, (_, kind) in enumerate(model._about["arguments"]):
            if not _has_floats(model._about, kind):
                found.append(None)
                continue
            found.append(back.argument(model._native, number))
        return grads, tuple(found)

    def weights(self, model):
        """Those of the model, in the order of the module."""
        about = model._about["parameters"]
        if not self.compiled:
            return about
        return {name: about[name] for name in self.compiled._program.weights if name in about}

    def cotangents(self, model, given, count):
        """As the native code takes them: (instances, path, array)."""
        about, out = model._about, []
        _column(about, about["result"], given, count, (), out)
        return out


def _has_floats(about, kind, dtypes=FLOATS):
    seen, pending = set(), [kind]
    while pending:
        number = pending.pop()
        if number in seen:
            continue
        seen.add(number)
        kind = about["types"][number]
        if kind["kind"] == "tensor" and kind["dtype"] in dtypes:
            return True
        pending += kind["children"]
        if kind["kind"] == "data":
            pending += [field for _, fields in about["data"][kind["data"]][1] for _, field in fields]
    return False


def _place(path):
    return "the cotangent" + "".join(f"[{step}]" for step in path)


def _array(value, path):
    try:
        array = np.asarray(value)
    except Exception:
        array = None
    if array is None or array.dtype.kind not in "fiu":
        raise TypeError(f"{_place(path)} is {type(value).__name__}: an array of floats belongs here, or None")
    return np.ascontiguousarray(array, np.float32).reshape(array.shape)


def _column(about, number, given, count, path, out):
    """The cotangents of a part of all results: as deep as tuples are in each other."""
    kind = about["types"][number]
    if given is None:
        return
    if kind["kind"] == "tensor" and None not in kind["shape"]:
        out.append((None, path, _array(given, path)))
    elif kind["kind"] == "tuple":
        if not isinstance(given, (tuple, list)) or len(given) != len(kind["children"]):
            raise TypeError(f"{_place(path)}: a tuple of {len(kind['children'])} belongs here, as in the results")
        for i, (child, part) in enumerate(zip(kind["children"], given)):
            _column(about, child, part, count, (*path, i), out)
    elif kind["kind"] in ("tensor", "list", "data"):
        if not hasattr(given, "__len__") or len(given) != count:
            raise TypeError(f"{_place(path)}: a list of {count} belongs here, one for each input")
        for i, one in enumerate(given):
            _single(about, number, one, i, path, out)
    else:
        raise TypeError(f"{_place(path)}: nothing arrives at {kind['text']}: None belongs here")


def _single(about, number, value, instance, path, out):
    """Those of a part of one result, however deep."""
    pending = [(number, value, path)]
    while pending:
        number, value, path = pending.pop()
        kind = about["types"][number]
        if value is None:
            continue
        if kind["kind"] == "tensor":
            if kind["dtype"] in FLOATS:
                out.append(([instance], path, _array(value, path)[None]))
            continue
        if kind["kind"] == "list":
            parts = [(kind["children"][0], one) for one in value]
        elif kind["kind"] == "tuple":
            parts = list(zip(kind["children"], value, strict=True))
        elif kind["kind"] == "data" and kind["data"] in about["optional"]:
            parts = [(about["optional"][kind["data"]], value)]
        elif kind["kind"] == "data":
            constructors = dict(about["data"][kind["data"]][1])
            fields = constructors.get(type(value).__name__)
            if fields is None:
                raise TypeError(f"input {instance}, {_place(path)}: {type(value).__name__} is no {kind['text']}")
            parts = [(field, getattr(value, name)) for name, field in fields]
        else:
            continue  # a number: of the structure, which is as in the result
        pending += [(child, one, (*path, i)) for i, (child, one) in enumerate(parts)]


# ---- Steps ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """What a step of a training came to."""

    step: int  # from 1
    loss: float  # the mean over the inputs that did not fail
    norm: float  # the length of all gradients together, before it was cut
    instances: int  # that did not fail
    failed: int
    error: InstanceError | str | None  # the first that failed; or which input has a loss that is not finite
    skipped: bool  # the gradients held NaN or infinity, and nothing was changed
    seconds: float


def train_step(compiled, optimizer, loss, columns, reduce):
    """CompiledModule.train_step, and Model.train_step, whose loss is None."""
    __tracebackhide__ = True
    begun = time.perf_counter()
    if reduce not in ("mean", "sum"):
        raise ValueError(f"reduce is {reduce!r}, not 'mean' or 'sum'")
    require_optimizer(optimizer, compiled)
    entry = _Entry.of_loss(compiled, loss)
    with entry.lock:
        model = entry.model(True, False)
        _require_loss(model)
        native = optimizer._of(entry.name, model)
        held = entry.run(model, columns, optimizer.steps + 1)
        failures = [entry.error(e) for e in held.failures()]
        if failures and len(failures) == len(held):
            raise InstanceErrors(f"all {len(held)} instances failed: nothing was changed", failures)
        if failures:
            losses = np.array([one for one in held.results(True) if not isinstance(one, InstanceError)], np.float32)
        else:
            losses = held.results(False)
        if not len(losses):
            raise ValueError("a step of no inputs")
        scale = 1 / len(losses) if reduce == "mean" else 1.0
        error = failures[0] if failures else None
        if error is None and not np.isfinite(losses).all():
            first = int(np.argmin(np.isfinite(losses)))
            error = not_finite(first, losses[first])
        norm, skipped, changed = native.step(held.backward(None), optimizer.lr, scale)
        optimizer.steps += 1
        if changed:
            entry.weights_changed(model)
        return Step(optimizer.steps, _loss(losses, "mean"), norm, len(losses), len(failures),
                    error, skipped, time.perf_counter() - begun)


def weights_named(compiled, patterns, what):
    """The weights that patterns name, by their names in the source. A pattern is a name, of the Module or of the
    source, in which `*` stands for any characters."""
    patterns = [patterns] if isinstance(patterns, str) else patterns
    if not isinstance(patterns, (list, tuple)) or not all(isinstance(one, str) for one in patterns):
        raise TypeError(f"{what} is a list of names of weights, in which * stands for any characters, not {patterns!r}")
    if isinstance(compiled, Model):
        names = {name: [name] for name in compiled._about["parameters"]}
    else:
        of_module = {}
        for name, param in compiled.target.named_parameters(duplicates=True):
            of_module.setdefault(id(param), []).append(name)
        names = {source: [*of_module.get(id(param), []), source] for source, param in compiled.program.weights.items()}
    found = {}  # ordered
    for pattern in patterns:
        like = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
        named = [source for source, known in names.items() if any(map(like.fullmatch, known))]
        if not named:
            every = list(dict.fromkeys(known[0] for known in names.values()))
            near = difflib.get_close_matches(pattern, [one for known in names.values() for one in known], 3, 0.5)
            raise ValueError(f"{what}: no weight is called {pattern!r}; "
                             + (f"did you mean {' or '.join(map(repr, dict.fromkeys(near)))}?" if near else
                                f"there are {', '.join(every[:8])}" + (", ..." if len(every) > 8 else "")))
        found.update(dict.fromkeys(named))
    return list(found)


def not_finite(number, loss, where=""):
    return (f"input {number} {where}has the loss {loss:g}: a label or an index out of range gives nan, and so do numbers "
            "that grow too large")


def require_optimizer(optimizer, compiled):
    from .optim import Optimizer
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"an optimiser belongs here, as sf.optim.AdamW(fast, lr=1e-3), not {type(optimizer).__name__}")
    if optimizer.model is not compiled:
        raise ValueError("the optimiser is of another model")
