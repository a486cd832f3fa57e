"""What compiled Modules and functions have in common: one text, a native model for each entry, and the
memory of the weights, which all of them share with the Params."""
import os
import re
import sys
import threading
import types
import weakref

from . import front
from .batching import AsyncCalls
from .errors import CompileError, InstanceError, InstanceErrors
from .front import boundary
from .front.messages import instance_error, translated
from .module import load_values

__all__ = ["Changed", "Compiled"]


class Changed(RuntimeError):
    """Something that was constant when the model was compiled is not what it was."""


class Compiled(AsyncCalls):
    """What is common to compiled Modules and functions: one text, a native model for each entry."""

    def __init__(self, target, source, options, extra):
        self.target, self._source, self._options, self._extra = target, source, options, extra
        self._program, self._models, self._lock = None, {}, threading.RLock()
        self._seen, self._ready = {}, {}
        # Models that are trained have weights of their own, and so have those that run. A number says
        # which state of the Params they have.
        self._trained, self._version = {}, 0
        self._watchers = []  # weakly: those who know what else writes to weights

    # ---- The text ----

    def _entries(self):
        raise NotImplementedError

    @property
    def program(self):
        """The front end's Program: text, names, places."""
        with self._lock:
            if self._program is None:
                entries, main = self._entries()
                try:
                    self._program = front.lower(self.target, entries, main=main, source=self._source,
                                                extra=self._extra)
                except CompileError as error:
                    # It is about the model: how it was found says nothing.
                    raise error.with_traceback(None) from None
            return self._program

    def source(self):
        """The `.sheaf` text that the model is compiled from."""
        return self.program.text

    def state_dict(self):
        """{name: array} of all weights by their names in `source()`, and so in what `save` writes: for the
        command. The Module's own are PyTorch's, and differ where a name means something in the language
        (`let`), begins with a capital, or is one of a list of unlike layers, `nn.LSTM` and `nn.GRU`."""
        return {name: param.value for name, param in self.program.weights.items()}

    def load_state_dict(self, state, strict=True):
        """Writes weights by these names, for example what `sheaf train` made, into the Module's Params, as
        its `load_state_dict` does."""
        return load_values(self.program.weights, state, strict, self.text_name)

    @property
    def text_name(self):
        """How messages call that text."""
        name = getattr(self.target, "__name__", type(self.target).__name__)
        return re.sub(r"\W", "_", name) + ".sheaf"

    # ---- Native code ----

    def _model(self, entry):
        """The native model that begins at a function, with the weights of the module as they are."""
        with self._lock:
            program = self.program
            self._unchanged()
            self._version_now()
            if entry not in self._models:
                self._models[entry] = made = self._compile(program, entry)
                if not self._trained and len(self._models) == 1:
                    self._share(made)
                made._version = self._version
            return self._brought_up(self._models[entry])

    def _training_model(self, entry, dropout=False, inputs=False):
        """The native model with code that differentiates."""
        with self._lock:
            program = self.program
            self._unchanged()
            self._version_now()
            key = entry, dropout, inputs
            if key not in self._trained:
                self._trained[key] = made = self._compile(program, entry, training=True, dropout=dropout,
                                                          input_gradients=inputs)
                made._version = self._version
                _with_copies.add(self)
            return self._brought_up(self._trained[key])

    def _version_now(self):
        """The state of the Params. Whoever gives one another array wants it to be used."""
        with self._lock:
            self._ask_watchers()
            params = self.program.weights
            if any(param.value is not self._seen.get(name) for name, param in params.items()):
                self._models.clear()
                self._ready.clear()
                self._version += 1
                self._seen = {name: param.value for name, param in params.items()}
            return self._version

    def _watch(self, watcher):
        self._watchers = [ref for ref in self._watchers if ref() is not None] + [weakref.ref(watcher)]

    def _ask_watchers(self):
        for ref in self._watchers:
            watcher = ref()
            if watcher is not None:
                watcher._notice()

    def _brought_up(self, model):
        """Gives a model the weights that the Params have now."""
        if model._version != self._version:
            own = getattr(model, "_views", {})
            model._session.set_weights({name: param.value for name, param in self._program.weights.items()
                                        if param.value is not own.get(name)})
            model._version = self._version
        return model

    def _weights_changed(self, model):
        """The weights of a model are others: now they are those of the Params, in one memory."""
        self._version += 1
        model._version = self._version
        self._share(model)

    def _share(self, model):
        """Makes Params views of a model's weights."""
        views = getattr(model, "_views", None)
        if views is None:
            views = model._views = dict(getattr(model, "parameters", {}))
        for name, param in self._program.weights.items():
            if name in views and param.value is not views[name]:
                param.value = views[name]
                self._seen[name] = views[name] = param.value

    def _compile(self, program, entry, **more):
        from . import model as native
        weights = {name: param.value for name, param in program.weights.items()}
        options = {**self._options, **more}
        if program.vocabularies:
            given = options.pop("vocabularies", None) if options.get("vocab") is None else options["vocab"]
            options["vocab"] = {**program.vocabularies, **native.vocabularies_by_name(given)}
        if weights:
            options["weights"] = weights
        try:
            made = native.compile(program.text, name=self.text_name, entry=program.entries[entry],
                                  classes=boundary.classes(program, entry), **options)
            made._made_at = self._version
            return made
        except CompileError as error:
            raise translated(error, program, self.text_name) from None

    def _unchanged(self):
        for holder, name, value in self._program.watched:
            if isinstance(holder, dict):
                now = holder.get(name, _MISSING)
            elif isinstance(holder, types.CellType):
                now = holder.cell_contents
            else:
                now = getattr(holder, name, _MISSING)
                if isinstance(now, list) and isinstance(value, tuple):
                    now = tuple(now)
            if now is value or (type(now) is type(value) and isinstance(now, _PLAIN) and now == value):
                continue
            if isinstance(now, Compiled) and now.target is value or isinstance(
                    value, Compiled) and value.target is now:
                continue
            raise Changed(f"'{name}' has changed since the model was compiled ({_short(value)}, now "
                          f"{_short(now)}): what a model reads from outside is constant. Pass it as an "
                          "argument, or call sf.jit again")

    def _made_ready(self, entry):
        ready = self._ready.get(entry)
        if ready is None or not ready.holds():
            try:
                model = self._model(entry)
            except CompileError as error:
                raise error.with_traceback(None) from None
            ready = self._ready[entry] = _Ready(self, entry, model)
        return ready

    def _save(self, entry, path, train):
        """With the weights that the Params have now: those of a native model are what it was compiled with."""
        with self._lock:
            program = self.program
            self._unchanged()
            self._version_now()
            model = None if train else self._models.get(entry)
            if model is None or model._made_at != self._version:
                options = {"training": True, "dropout": True} if train else {}
                model = self._compile(program, entry, **options)
            if train:
                from .gradients import _require_loss
                _require_loss(model)
            model.save(path)

    def _encode(self, entry, columns):
        model = self._made_ready(entry).model
        with boundary.names(self._program, entry, model):
            return model.encode(*boundary.arguments(self._program, entry, columns))

    def _explain(self, entry, columns, repetitions):
        model = self._made_ready(entry).model
        with boundary.names(self._program, entry, model):
            if columns:
                columns = boundary.arguments(self._program, entry, columns)
            return model.explain(*columns, repetitions=repetitions)

    def _run(self, entry, columns, errors, named=()):
        __tracebackhide__ = True
        ready = self._made_ready(entry)
        if named:
            names = ", ".join(p.name for p in self._program.signatures[entry])
            raise TypeError(f"'{entry}' takes its lists by their places, as in {entry}({names}), and "
                            f"'{next(iter(named))}' is given by its name")
        try:
            if len(columns) != ready.count:
                columns = boundary.arguments(self._program, entry, columns)
            result = ready.model(*columns, errors=errors)
        except (TypeError, ValueError, OverflowError):
            with boundary.names(self._program, entry, ready.model):
                raise
        except InstanceErrors as failed:
            group = failed.derive([instance_error(e, self._program, self.text_name)
                                   for e in failed.exceptions])
            raise group from None
        if errors == "return":
            result = [instance_error(r, self._program, self.text_name) if isinstance(r, InstanceError) else r
                      for r in result]
        return result

    def __reduce__(self):
        name = getattr(self.target, "__qualname__", None)
        module = sys.modules.get(getattr(self.target, "__module__", None))
        if name and getattr(module, name, None) is self:
            return name
        from .jit import jit_again
        return jit_again, (self.target, self._source, getattr(self, "_methods", None), self._options)


# Those of which several models have weights. In the child of a fork these are as they were compiled,
# until the Params give them theirs.
_with_copies = weakref.WeakSet()


def _after_fork():
    for compiled in _with_copies:
        compiled._version += 1
        for model in compiled._trained.values():
            model._views = {}


os.register_at_fork(after_in_child=_after_fork)


class _Ready:
    """A model that can be run as long as nothing that it was made of has changed. Asking must cost
    little: it is done at each call."""

    __slots__ = ("model", "count", "_compiled", "_version", "_guards", "_params", "_closely")

    def __init__(self, compiled, entry, model):
        program = compiled._program
        self.model, self._compiled, self._version = model, compiled, compiled._version
        self.count = len(program.signatures[entry])
        self._params = [(param, compiled._seen[name]) for name, param in program.weights.items()]
        self._guards, self._closely = [], False
        for holder, name, value in program.watched:
            space = holder if isinstance(holder, dict) else getattr(holder, "__dict__", None)
            now = _MISSING if space is None else space.get(name, _MISSING)
            # Of a list it is what it holds that counts, unless it is itself what was watched.
            if now is _MISSING or isinstance(now, list) and now is not value:
                self._closely = True
            else:
                self._guards.append((space, name, now))

    def holds(self):
        """Whether all is as it was; if in doubt not, and then it is looked at closely."""
        if self._compiled._watchers:
            with self._compiled._lock:
                self._compiled._ask_watchers()
        if self._version != self._compiled._version:
            return False
        if self._closely:
            self._compiled._unchanged()
        for space, name, value in self._guards:
            if space.get(name) is not value:
                return False
        for param, value in self._params:
            if param.value is not value:
                return False
        return True


class _Missing:
    def __repr__(self):
        return "nothing"


_MISSING = _Missing()
_PLAIN = (bool, int, float, str, tuple, type(None))


def _short(value):
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."
