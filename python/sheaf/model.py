"""Models: loading, compiling, running."""

from __future__ import annotations

import atexit
import linecache
import operator
import os
import tempfile
import threading
import typing
import weakref
from collections.abc import Iterable, Mapping

import numpy as np

from sheaf import _native, explanation
from sheaf.batching import AsyncCalls
from sheaf.data import Dataset
from sheaf.errors import CompileError, CompilerMissing, Diagnostic
from sheaf.texts import path_text, require_texts
from sheaf.values import make_classes, namespace


atexit.register(_native.finish_waiting)

# Those whose weights are not what they were compiled with: sessions begin with these after a fork.
_changed = weakref.WeakSet()


def _after_fork():
    _native.after_fork()
    for model in _changed:
        model._session.set_weights(model._views)


os.register_at_fork(after_in_child=_after_fork)


class Model(AsyncCalls):
    """A compiled model. Called with a list for each argument, it gives what the model computes of
    each instance, in order:

        model = sf.load("tree.sheaf")
        scores = model(trees)                   # f32[5] each: one array [64, 5]
        losses = loss(trees, labels)            # two arguments: two lists of one length

    Results that are tensors of one shape, or numbers, come as one array, whose first axis is the
    instances'; those of tuples as a tuple of such; all else as a list. An instance's result has the
    same bits whatever else is in the call. Any thread may call; calls of one model wait for each
    other, without Python's lock.
    """

    def __init__(self, native, *, path=None, classes=None, warnings=(), **session):
        """For `load` and `compile`. `path`: of the compiled model that it was read from. `session`:
        threads, memory_limit, seed, max_depth, max_steps, check_results."""
        session = {name: value if name == "check_results" else _natural(name, value)
                   for name, value in session.items()}
        self._native = native
        self._again = path, dict(classes or {}), session
        self._about = native.describe()
        self.warnings = tuple(warnings)
        self._about["optional"] = {}  # {number of data of which None is a value: type of its others}
        made = make_classes(self._about, f"sheaf.{self.name}")
        for constructor, cls in made.items():
            native.bind(constructor, cls, False)
        for constructor, cls in (classes or {}).items():
            if cls is typing.Optional:
                native.bind_optional(constructor)
                self._about["optional"] |= {data: fields[0][1]
                                            for data, (_, constructors) in enumerate(self._about["data"])
                                            for name, fields in constructors if name == constructor}
            else:
                native.bind(constructor, cls, True)
                made[constructor] = cls
        self.types = namespace(self._about, made)
        self._session = _native.Session(native, **session)
        self._training_lock, self._changes = threading.RLock(), 0
        self._asked = None  # what it was compiled of

    @property
    def name(self):
        return self._about["name"]

    @property
    def entry(self):
        """The function that is called."""
        return self._about["entry"]

    @property
    def arguments(self):
        """The types of the arguments by name, as the source writes them."""
        types = self._about["types"]
        return {name: types[kind]["text"] for name, kind in self._about["arguments"]}

    @property
    def result(self):
        """The type of the result, as the source writes it."""
        return self._about["types"][self._about["result"]]["text"]

    @property
    def dims(self):
        return dict(self._about["dims"])

    @property
    def parameters(self):
        """The weights by name, as arrays that may only be read. They are views of the memory that
        the model computes with, so rows may be padded (`strides`)."""
        return self._session.parameters()

    def words(self, vocabulary=""):
        """The words of a vocabulary, by number; None if it has none. "" is that of `token`."""
        if vocabulary not in self._about["vocabularies"]:
            raise KeyError(vocabulary)
        return self._native.words(vocabulary)

    def __call__(self, *columns, errors="raise"):
        """Runs the instances whose arguments stand in these lists, or arrays, one for each
        argument, or in one Dataset. `errors="return"` gives a list, with an InstanceError where an instance failed;
        else the failures are raised together, as InstanceErrors."""
        if len(columns) == 1 and type(columns[0]) is Dataset:
            columns = columns[0]._of(self._native),
        if errors == "raise":
            return self._session.run(columns, False)
        if errors == "return":
            return self._session.run(columns, True)
        raise ValueError(f"errors is {errors!r}, not 'raise' or 'return'")

    def run(self, instances, errors="raise"):
        """The same of a list with a tuple of arguments for each instance."""
        instances = list(instances)
        count = len(self._about["arguments"])
        for number, one in enumerate(instances):
            if not isinstance(one, tuple) or len(one) != count:
                raise TypeError(f"instance {number}: a tuple of {count} arguments belongs here")
        columns = list(zip(*instances)) if instances else [()] * count
        return self(*columns, errors=errors)

    def encode(self, *columns):
        """The instances of these columns as a Dataset, which the model takes instead of them."""
        return Dataset(_native.Values.encode(self._native, columns))

    def explain(self, *columns, repetitions=9):
        """What the compiler made of the source, as an Explanation; of instances, given as in a call, also
        what running them did, launch by launch: that mini-batch runs `repetitions` times, and the
        shortest is told."""
        if self._asked is None:
            raise TypeError("only what this process has compiled can be explained: sheaf.load the source, "
                            "not what was built or pickled of it")
        repetitions = _natural("repetitions", repetitions)
        if len(columns) == 1 and type(columns[0]) is Dataset:
            columns = columns[0]._of(self._native),
        options, line_of = self._asked
        return explanation.explain(options, line_of, self._session, columns, repetitions)

    # ---- Weights that change ----

    def load_state_dict(self, state, strict=True):
        """Gives it other weights, arrays by name: `parameters` of a model that was trained, or a safetensors
        file that `fit` wrote. All of them if `strict`, and no others."""
        own, given = self._about["parameters"], dict(state)
        wrong, arrays = [], {}
        if strict:
            for what, some, other in (("missing", own, given), ("not of this model", given, own)):
                if lacking := [str(name) for name in some if name not in other]:
                    wrong.append(f"{what}: {', '.join(lacking)}")
        for name, (dtype, shape) in own.items():
            if name in given:
                value = given[name]
                arrays[name] = value if hasattr(value, "shape") else np.asarray(value, np.float32)
                if tuple(arrays[name].shape) != shape:
                    wrong.append(f"'{name}' has the shape {tuple(arrays[name].shape)}, and the model's has {shape}")
        if wrong:
            raise ValueError(f"cannot load weights into {self.name}: " + "; ".join(wrong))
        with self._training_lock:
            self._session.set_weights(arrays)
            self._weights_changed()

    def train_step(self, optimizer, *columns, reduce="mean"):
        """Changes the weights by the gradients of the loss over these inputs: as `train_step` of a jitted model,
        of what was compiled for training."""
        from .gradients import train_step
        __tracebackhide__ = True
        return train_step(self, optimizer, None, columns, reduce)

    def fit(self, data, **options):
        """Trains what was compiled for training, without a compiler where it was saved:

            model = sf.load("loss.sheafc")           # fast.save(path, train=True), `sheaf build --train`
            for step in model.fit((trees, labels), optimizer=sf.optim.Adam(model), epochs=10):
                ...

        Options and steps are those of `fit` of jitted models. `metric` is another model with the same weights
        and arguments, which was saved without `train`, or that and a score: `(tags, "f1")`. The loss itself,
        saved that way, is the better the less it is. The weights are then in `parameters`.
        """
        from .fitting import Fit
        return Fit(self, data, **options)

    def _weights_changed(self):
        self._changes += 1
        self._views = self._session.parameters()
        _changed.add(self)

    def save(self, path):
        """Writes the compiled model, with the weights that it was compiled with, to a file, which `load` opens
        without a compiler."""
        if self._changes:
            raise RuntimeError("the weights have changed since the model was compiled, and a compiled model is written with "
                               "those that it had: keep sf.safetensors.save_file(model.parameters, path), and compile "
                               "with weights=path")
        self._native.save(path_text(path))

    def __reduce__(self):
        """What was read from a file is read from there again; else the compiled model goes along. So do weights
        that have changed."""
        path, classes, session = self._again
        state = {name: np.array(value) for name, value in self.parameters.items()} if self._changes else None
        if path is not None:
            return _read_again, (path, classes, session), state
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "model.sheafc")
            self._native.save(file)
            with open(file, "rb") as stream:
                return _open_again, (stream.read(), classes, session), state

    def __setstate__(self, weights):
        self.load_state_dict(weights, strict=False)

    def __copy__(self):
        if not self._changes and not self._about["training"]:
            return self  # it never changes
        made, args, state = self.__reduce__()
        copied = made(*args)
        if state is not None:
            copied.__setstate__(state)
        return copied

    def __deepcopy__(self, memo):
        return self.__copy__()

    def __repr__(self):
        return f"<sheaf.Model {self._described()}>"

    def _described(self):
        arguments = ", ".join(f"{name}: {text}" for name, text in self.arguments.items())
        return f"{self.name}: {self.entry}({arguments}) -> {self.result}"

    def _repr_html_(self):
        from .notebook import parameters
        return parameters(self._described(), self.parameters.items())


def _read_again(path, classes, session):
    return Model(_native.Model.load(path), path=path, classes=classes, **session)


def _open_again(data, classes, session):
    # In memory alone; once it is open, the file may go.
    file = os.memfd_create("sheaf model")
    try:
        with open(file, "wb", closefd=False) as stream:
            stream.write(data)
        native = _native.Model.load(f"/proc/self/fd/{file}")
    finally:
        os.close(file)
    return Model(native, classes=classes, **session)


_SESSION = ("threads", "memory_limit", "seed", "max_depth", "max_steps", "check_results")


def _natural(name, value):
    """An option that is an int of at least 0."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if number < 0:
        raise TypeError(f"{name} is {value!r}, and no int of at least 0")
    return number


def _split(options):
    """Options of running, and the others."""
    session = {name: options.pop(name) for name in _SESSION if name in options}
    return session, options


def load(path, *, classes=None, sha256=None, check_weights=True, **options):
    """Opens a model: a source, `.sheaf`, which is compiled, or what `Model.save` and `sheaf build`
    wrote, `.sheafc`.

    `dims`, `vocab`, `weights`, `entry` and what else `compile` takes are for sources. `sha256` and
    `check_weights` are for compiled models: the digest that the file must have, and whether its
    weights are compared with their checksums. `classes`: a Python class for each constructor, by
    its name; without them `model.types` has some, and objects are told by the names of their
    classes. `typing.Optional` for one with a single field, beside one without any: the field's value
    stands for it, and None for the other.
    """
    path = path_text(path)
    if _native.is_artefact(path):
        session, rest = _split(options)
        if rest:
            raise TypeError(f"{path} is compiled already: {', '.join(rest)} came before that")
        native = _native.Model.load(path, sha256 or "", check_weights)
        return Model(native, path=os.path.abspath(path), classes=classes, **session)
    if sha256 is not None:
        raise TypeError("sha256 is for compiled models")
    return _compile(path=path, text=None, classes=classes, **options)


def compile(text, *, name="model.sheaf", **options):
    """Compiles the text of a model.

    name              what messages call the source, and where the files that it uses are beside
    dims              {"hidden": 256}: instead of what the source says
    vocab             for `token`: a file, a list of words of which the first is "<unk>", or a size
                      alone, when tokens are numbers. A dict gives them by name: {"": ..., "tag": ...}
    weights           a safetensors file, a directory of a training or as Hugging Face has it, or arrays by
                      name; else what the source's initialisers make
    weights_seed      of them
    renames           ["FROM=TO"], how names of weights become those of parameters
    entry             the function that an instance is an argument list of: "main"
    uses              finds the files that the source uses: a dict of texts by name, or a function of
                      (name, by) that gives (name, text) or None
    training          with code that differentiates
    dropout           dropout drops
    input_gradients   with `training`: tensors of floats in arguments have gradients, too
    precision         "f32", or "bf16" for products with weights and attention
    without           optimisations to leave out
    cpu               LLVM's name of a processor, instead of this one
    store             a directory in which code is kept for the next time; "none"; None: that of the
                      command `sheaf`
    compile_threads   that generate code
    classes           as for `load`
    threads, memory_limit, seed, max_depth, max_steps, check_results  of runs

    Raises CompileError. What else there is to say of the source is in `Model.warnings`.
    """
    return _compile(path=None, text=text, name=name, **options)


def _compile(*, path, text, name=None, dims=None, vocab=None, vocabularies=None, weights=None,
             weights_seed=0, renames=(), entry=None, uses=None, training=False, dropout=False,
             input_gradients=False,
             precision="f32", without=(), cpu=None, store=None, store_limit=0, compile_threads=0,
             library=None, classes=None, **session):
    unknown = set(session) - set(_SESSION)
    if unknown:
        raise TypeError(f"there is no option {', '.join(sorted(map(repr, unknown)))}")
    if precision not in ("f32", "bf16"):
        raise ValueError(f"precision is {precision!r}, not 'f32' or 'bf16'")
    if vocab is not None and vocabularies is not None:
        raise TypeError("vocab and vocabularies are the same")
    dims = {name: _natural(f"dim {name}", value) for name, value in dict(dims or {}).items()}
    tensors = {}
    if isinstance(weights, Mapping):
        tensors, weights = dict(weights), None
    if text is not None:
        if not isinstance(text, str):
            raise TypeError(f"the source is a str, not {type(text).__name__}")
        text.encode()  # says which character is no text
    _open_compiler()
    asked = {
        "path": path, "text": text, "name": name, "library": library,
        "dims": dims,
        "vocabularies": _vocabularies(vocabularies if vocab is None else vocab),
        "weights": None if weights is None else path_text(weights), "tensors": tensors,
        "seed": _natural("weights_seed", weights_seed), "renames": list(renames), "entry": entry,
        "uses": _uses(uses), "training": bool(training), "dropout": bool(dropout),
        "input_gradients": bool(input_gradients), "bf16": precision == "bf16",
        "without": [without] if isinstance(without, str) else list(without), "target_cpu": cpu,
        "store": _store(store), "store_limit": _natural("store_limit", store_limit),
        "threads": _natural("compile_threads", compile_threads)}
    for option in ("name", "library", "dims", "vocabularies", "renames", "entry", "without", "target_cpu"):
        require_texts(option, asked[option])
    for tensor in tensors:
        require_texts("weights", tensor)
    native, said = _native.compile(asked)
    diagnostics = [Diagnostic.from_fields(fields) for fields in said]
    line_of = _line_finder(path or name, text)
    if native is None:
        raise CompileError.of(diagnostics, line_of) from None
    made = Model(native, classes=classes, warnings=diagnostics, **session)
    # Weights are a session's, where they count.
    made._asked = {**asked, "tensors": {}}, line_of
    return made


def _line_finder(name, text):
    def line_of(file, line):
        if text is not None and file == name:
            lines = text.split("\n")
            return lines[line - 1] if 0 < line <= len(lines) else None
        return linecache.getline(file, line) or None
    return line_of


def vocabularies_by_name(given):
    """What `vocab` is: by name, or the one of `token` alone, or none."""
    return {} if given is None else given if isinstance(given, Mapping) else {"": given}


def _vocabularies(given):
    """(name, path, words, size) of each."""
    found = []
    for name, one in vocabularies_by_name(given).items():
        if isinstance(one, (str, os.PathLike)):
            found.append((name, path_text(one), [], 0))
        elif isinstance(one, int):
            found.append((name, "", [], _natural(f"the size of the vocabulary of {name or 'token'}", one)))
        elif not isinstance(one, Iterable):
            raise TypeError(f"the vocabulary of {name or 'token'} is {one!r}: a file, a list of words, or a size")
        else:
            words = list(one)
            for i, word in enumerate(words):
                if not isinstance(word, str):
                    raise TypeError(f"word {i} of the vocabulary of {name or 'token'} is {word!r}, and no str")
            found.append((name, "", words, 0))
    return found


def _uses(uses):
    if uses is None or callable(uses):
        return uses
    texts = dict(uses)
    return lambda used, by: (used, texts[used]) if used in texts else None


def _store(given):
    """The directory where code is kept, as for the command; None: none."""
    if given is None:
        given = os.environ.get("SHEAF_STORE") or ""
    given = path_text(given)
    if given == "none":
        return None
    if given:
        return given
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "sheaf")


_compiler_open = False


def _open_compiler():
    """Opens the compiler of the package `sheaf-compiler`, or else the one beside the extension, as in
    the build directory, or the system's."""
    global _compiler_open
    if _compiler_open:
        return
    try:
        from sheaf_compiler import path
    except ImportError:
        path = None
    try:
        _native.open_compiler(path)
    except CompilerMissing as error:
        raise CompilerMissing(f"compiling needs the compiler: pip install sheaf-compiler=="
                              f"{_native.version} ({error})") from None
    _compiler_open = True
