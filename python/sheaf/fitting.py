"""Whole trainings: an iterator over steps, with measures, best weights and checkpoints.

What happens is what `sheaf train` does (docs/training.md), with the same bits.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, field

from . import _native
from .data import Dataset
from .errors import InstanceError
from .gradients import _Entry, _require_loss, not_finite, require_optimizer, weights_named
from .model import Model
from .optim import Adam
from .progress import shown
from .texts import path_text

__all__ = ["Epoch", "Fit", "FitStep"]


@dataclass(frozen=True, slots=True)
class Epoch:
    """What an epoch came to."""

    epoch: int  # from 1
    loss: float  # the mean over the inputs of its steps; NaN of none
    measures: dict  # {name: value} over the other data: "loss", and the metrics
    value: float  # what decides, the greater the better
    best: bool  # it is the best so far
    instances: int
    failed: int
    diverges: bool  # the loss is not finite, or far above that of the first step
    nothing_changed: bool  # no step changed anything
    halved: int = 0  # steps in which memory did not hold a part, which then went in two


@dataclass(frozen=True, slots=True)
class FitStep:
    """A step of a training."""

    step: int  # from 1
    steps: int  # of the whole training, if no patience ends it
    epoch: int  # from 1
    loss: float  # the mean over the inputs that did not fail
    norm: float  # the length of all gradients together, before it was cut
    lr: float
    instances: int  # that did not fail
    failed: int
    error: str | None  # of the first that failed; or which input has a loss that is not finite
    skipped: bool  # the gradients held NaN or infinity, and nothing was changed
    seconds: float
    ended: Epoch | None = field(default=None)  # of the last step of an epoch: what it came to
    halved: int = 0  # how often memory did not hold a part, which then went in two
    parts: int = 1  # that it was made of


class Fit:
    """A training that is under way: `for step in fast.fit(...)`. `epochs` has those that have ended,
    `best` the best of them. As a context manager it is closed at the end of the block."""

    def __init__(self, compiled, data, *, dev=None, loss=None, metric=None, optimizer=None, batch=64, epochs=10,
                 seed=0, patience=None, schedule="constant", warmup=0, accumulate=1, parts=None, average=0.0,
                 reduce="mean", freeze=(), directory=None, resume=False, checkpoint_every=0, keep=2,
                 progress=False):
        optimizer = Adam(compiled) if optimizer is None else optimizer
        require_optimizer(optimizer, compiled)
        if reduce not in ("mean", "sum"):
            raise ValueError(f"reduce is {reduce!r}, not 'mean' or 'sum'")
        counts = {"batch": (batch, 1), "epochs": (epochs, 1), "accumulate": (accumulate, 1), "seed": (seed, 0),
                  "parts": (0 if parts is None else parts, 0 if parts is None else 1),
                  "warmup": (warmup, 0), "checkpoint_every": (checkpoint_every, 0), "keep": (keep, 0),
                  "patience": (0 if patience is None else patience, 0 if patience is None else 1)}
        for name, (value, least) in counts.items():
            if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < least:
                raise ValueError(f"{name} is {value!r}: an int of at least {least} belongs there")
        if schedule not in ("constant", "linear", "cosine"):
            raise ValueError(f"schedule is {schedule!r}, not 'constant', 'linear' or 'cosine'")
        if not 0 <= average < 1:
            raise ValueError(f"average is {average!r}: it is at least 0 and less than 1")
        if resume and directory is None:
            raise ValueError("resume is for trainings with a directory")
        self._compiled = compiled
        self._entry = _Entry.of_loss(compiled, "loss" if loss is None and not isinstance(compiled, Model) else loss)
        self.epochs, self.best = [], None
        self._done, self._searched, self._progress = False, False, None
        with self._entry.lock:
            self._model = model = self._entry.model(True, False)
            _require_loss(model)
            self._data = data = self._dataset(data, "the data")
            values = self._values(data, "the data")
            if not len(values):
                raise ValueError("there are no data to train on")
            self._count = epochs
            self._steps = math.ceil(math.ceil(len(values) / batch) / accumulate) * epochs
            measures = self._measures(dev, metric)
            own = model._about["parameters"]
            frozen = [name for name in weights_named(compiled, freeze, "freeze") if name in own]
            if frozen and not any(dtype == "f32" and name not in frozen for name, (dtype, _) in own.items()):
                raise ValueError("freeze leaves no weight that could be trained")
            self._native = _native.Training(model._session, values, {
                "learning_rate": optimizer.lr, "schedule": schedule, "sum": reduce == "sum", "average": average,
                "directory": None if directory is None else path_text(directory), "resume": resume,
                "frozen": frozen,
                **{name: int(value) for name, (value, _) in counts.items()}}, optimizer._for(model))
            self._names = []
            # Of the native ones the last decides.
            for name, measured, given, score, less in reversed(measures):
                self._native.add_measure(measured._native, given, score, less)
                self._names.append(name)
            if resume:
                self._entry.weights_changed(model)
        if progress:
            self._progress = shown(self._steps)

    def _dataset(self, data, what):
        if isinstance(data, (tuple, list)) and not isinstance(data, Dataset):
            data = self._entry.encode(data)
        if not isinstance(data, Dataset):
            raise TypeError(f"{what} is a Dataset, or a tuple of lists of arguments, not {type(data).__name__}")
        return data

    def _values(self, data, what):
        """The native values of a Dataset, for the loss."""
        values = data._of(self._model._native)
        if values.signature != self._model._native.signature():
            raise ValueError(f"{what} has not the arguments of '{self._entry.name}', which are "
                             + ", ".join(f"{name}: {text}" for name, text in self._model.arguments.items()))
        return values

    def _measures(self, dev, metric):
        """(name, model, values, score, whether less is better), the one that decides first."""
        metrics = [] if metric is None else list(metric) if isinstance(metric, (list, tuple)) else [metric]
        if dev is None:
            if metrics:
                raise ValueError("a metric is taken over other data: dev=...")
            return []
        values, found = self._values(self._dataset(dev, "dev"), "dev"), []
        for one in metrics:
            if isinstance(self._compiled, Model):
                found.append(self._measure_of_model(one, values))
                continue
            name, _, score = one.partition(":") if isinstance(one, str) else (one, "", "")
            name = self._compiled._method_name(name, "metric")
            measured = self._compiled._model(name)
            if measured._native.signature() != self._model._native.signature():
                raise ValueError(f"the metric '{name}' has other arguments than the loss: "
                                 + ", ".join(f"{a}: {text}" for a, text in measured.arguments.items()))
            found.append((f"{name}:{score}" if score else name, measured, values, score or None, False))
        if isinstance(self._compiled, Model):
            if not found:
                raise ValueError("what is measured over dev is another model: metric=sf.load(...) of what was saved "
                                 "without train")
            return found
        found.append(("loss", self._compiled._model(self._entry.name), values, None, True))
        return found

    def _measure_of_model(self, metric, values):
        """A Model that is measured, or that and a score."""
        measured, score = metric if isinstance(metric, tuple) and len(metric) == 2 else (metric, None)
        if not isinstance(measured, Model) or not (score is None or isinstance(score, str)):
            raise TypeError("the metric of a loaded model is another one with its weights, as sf.load gives it, or that and "
                            f"the name of a score, not {metric!r}")
        if measured._about["training"]:
            raise ValueError(f"the metric '{measured.entry}' is a model for training: one that was saved without train "
                             "belongs there")
        if measured._native.signature() != self._model._native.signature():
            raise ValueError(f"the metric '{measured.entry}' has other arguments than the loss: "
                             + ", ".join(f"{a}: {text}" for a, text in measured.arguments.items()))
        name = f"{measured.entry}:{score}" if score else measured.entry
        return name, measured, values, score, measured.entry == self._entry.name

    def __len__(self):
        """Steps, if nothing ends it before."""
        return self._steps

    def __iter__(self):
        return self

    def __next__(self):
        """The next step. Ctrl-C gives it up, and writes a checkpoint if there is a directory; the
        iterator may be asked again, and goes on."""
        while not self._done:
            event = self._event()
            if event["kind"] == "step":
                ended = None
                error = event["error"]
                if error is None and (event["skipped"] or not math.isfinite(event["loss"])):
                    error = self._cause()
                if event["step"] % (event["steps"] // self._count) == 0:
                    ended = self._epoch(self._event())
                step = FitStep(event["step"], event["steps"], event["epoch"], event["loss"], event["norm"], event["rate"],
                               event["instances"], event["failed"], error, event["skipped"], event["seconds"], ended,
                               event["halved"], event["parts"])
                if self._progress:
                    self._progress.step(step)
                return step
            if event["kind"] == "epoch":  # of a step that was told before an interrupt
                self._epoch(event)
            elif event["kind"] == "ended":
                self._done = True
                self._end_progress()
                self.restore_best()
        raise StopIteration

    def _end_progress(self):
        if self._progress:
            self._progress.close()
            self._progress = None

    def _cause(self):
        """Which input of the data has a loss that is not finite, with the weights as they are. Looked for once:
        it is a pass over the data."""
        if self._searched:
            return None
        self._searched, size = True, 256
        for begin in range(0, len(self._data), size):
            for number, one in enumerate(self._entry.each((self._data[begin:begin + size],)), begin):
                if not isinstance(one, InstanceError) and not math.isfinite(one):
                    return not_finite(number, one, "of the data ")
        return None

    def _event(self):
        with self._entry.lock:
            # What was written into Params meanwhile counts.
            self._entry.brought_up(self._model)
            event = self._native.next()
            if event["changed"]:
                self._entry.weights_changed(self._model)
            return event

    def _epoch(self, event):
        measures = dict(zip(self._names, (one["value"] for one in self._native.measures())))
        ended = Epoch(event["epoch"], event["loss"], measures, event["value"], event["best"], event["instances"],
                      event["failed"], event["diverges"], event["nothing_changed"], event["halved"])
        self.epochs.append(ended)
        if ended.best:
            self.best = ended
        return ended

    def close(self):
        """Ends the training and lets go of its memory: what the optimiser remembers, the best weights, the
        data. The model keeps the weights that it has. Closing again does nothing."""
        self._end_progress()
        with self._entry.lock:
            self._done, self._native, self._model, self._data = True, None, None, None

    def __enter__(self):
        self._require_open()
        return self

    def __exit__(self, *error):
        self.close()

    def _require_open(self):
        if self._native is None:
            raise RuntimeError("the training is closed")

    def restore_best(self):
        """Gives the model its best weights so far, as happens when the training has ended. Gives whether
        there are such."""
        self._require_open()
        with self._entry.lock:
            found = self._native.restore_best()
            if found:
                self._entry.weights_changed(self._model)
            return found

    def checkpoint(self):
        """Writes one now, to the directory."""
        self._require_open()
        self._native.checkpoint()

    def save(self, path):
        """Writes the weights as they are measured, averages if there are such, to a safetensors file."""
        self._require_open()
        self._native.save(path_text(path))

    def __repr__(self):
        return f"<sheaf.fitting.Fit by '{self._entry.name}': {len(self.epochs)} of {self._count} epochs>"

    def _repr_html_(self):
        from .notebook import table
        return table(repr(self), ["epoch", "loss", *self._names, "best"],
                     [(e.epoch, f"{e.loss:.4g}", *(f"{e.measures[n]:.4g}" for n in self._names), "best" if e is self.best
                       else "") for e in self.epochs])
