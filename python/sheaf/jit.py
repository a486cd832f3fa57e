"""sf.jit: ordinary Python, compiled for many inputs at once.

    fast = sf.jit(model)            # a Module; or a function with annotations
    fast(trees)                     # a list in, a list or an array out
    fast.loss(trees, labels)        # any annotated method
    print(fast.source())            # the .sheaf text

The object beside stays as it is: `model(tree)` is ordinary Python for one input.
"""
import functools
import inspect
import sys
import types

from .batching import AsyncCalls
from .compiled import Compiled
from .errors import CompileError
from .module import Module

__all__ = ["Compiled", "jit"]


def jit(target=None, *, source=None, methods=None, **options):
    """Compiles a Module or a function.

    Gives an object that is called with lists, one for each argument, or a decorator if it is given
    options alone. Of a Module, `fast(...)` is its `forward`, and each method with annotated arguments is
    there by its name. The whole model is read and checked now; native code is made when it is first
    called. A function is read when it is first called, as what it uses may stand after it.

    source   a text that has the functions, where Python keeps none: python -c, exec
    methods  names of the methods that can be called; by default all that have annotations
    options  of `sheaf.compile`: vocab, threads, precision, memory_limit, ...

    Raises CompileError, a SyntaxError with the place in Python, for what is no part of the compiled
    language. Nothing is ever run in another way.
    """
    if target is None:
        return functools.partial(jit, source=source, methods=methods, **options)
    if isinstance(target, Compiled):
        target = target.target
    if inspect.isclass(target):
        raise TypeError(f"sf.jit compiles a model, not a class: sf.jit({target.__name__}(...))")
    frame = sys._getframe(1)
    extra = {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)
    if isinstance(target, Module):
        try:
            return CompiledModule(target, source, methods, options, extra)
        except CompileError as error:
            raise error.with_traceback(None) from None
    if isinstance(target, types.FunctionType):
        if methods is not None:
            raise TypeError("'methods' are of Modules")
        return CompiledFunction(target, source, options, extra)
    if isinstance(target, types.MethodType) and isinstance(target.__self__, Module):
        raise TypeError(f"compile the model: sf.jit(model), and then fast.{target.__name__}(...)")
    raise TypeError(f"sf.jit compiles a Module or a function, not {type(target).__name__}")


def jit_again(target, source, methods, options):
    return jit(target, source=source, methods=methods, **options)


class CompiledFunction(Compiled):
    """A function that `sf.jit` was given."""

    def __init__(self, target, source, options, extra):
        super().__init__(target, source, options, extra)
        functools.update_wrapper(self, target)
        self.__sheaf_function__ = target

    def _entries(self):
        return [(self.target.__name__, self.target, False)], self.target.__name__

    def __call__(self, *columns, errors="raise", **named):
        """Runs the function for the inputs whose arguments stand in these lists."""
        __tracebackhide__ = True
        return self._run(self.target.__name__, columns, errors, named)

    def encode(self, *columns):
        """The inputs of these columns as a Dataset: converted once, and given instead of them."""
        return self._encode(self.target.__name__, columns)

    def explain(self, *columns, repetitions=9):
        """What the compiler made of the function; of inputs, given as in a call, also what running them did. See
        `sheaf.explanation.Explanation`: it prints as text, and is a page in a notebook."""
        return self._explain(self.target.__name__, columns, repetitions)

    def save(self, path, *, train=False):
        """Writes the compiled function to a file, which `sheaf.load` opens without a compiler; with `train` one
        that can be trained there, of a loss."""
        self._save(self.target.__name__, path, train)

    def __repr__(self):
        return f"<sheaf.jit {self.target.__qualname__}>"


class CompiledModule(Compiled):
    """A Module that `sf.jit` was given; its methods are attributes."""

    def __init__(self, target, source, methods, options, extra):
        super().__init__(target, source, options, extra)
        self._methods = methods
        self.program  # what is no part of the language is an error now
        main = "forward" if "forward" in self._program.entries else next(iter(self._program.entries))
        try:
            self._model(main)
        except ImportError:
            pass  # without the extension or the compiler there is the text, and calls say what is missing

    @property
    def module(self):
        return self.target

    def _entries(self):
        found = {}
        cls = type(self.target)
        names = self._methods
        if names is None:
            names = ["forward"] + [
                name for base in cls.__mro__ if base is not Module and issubclass(base, Module)
                and not base.__module__.startswith("sheaf.")
                for name, value in vars(base).items() if not name.startswith("_")]
        for name in names:
            value = inspect.getattr_static(cls, name, None)
            if value is inspect.getattr_static(Module, name, None) and self._methods is None:
                continue
            if not isinstance(value, types.FunctionType):
                if self._methods is not None:
                    raise TypeError(f"{cls.__name__} has no method '{name}'")
                continue
            if name in found or self._methods is None and name != "forward" and not _is_entry(value):
                continue
            found[name] = value
        if not found:
            raise TypeError(f"{cls.__name__} has no method with annotations that could be compiled, such as "
                            "forward(self, x: Float32[\"n\"]) -> Float32[\"n\"]")
        return [(name, value, True) for name, value in found.items()], "forward"

    def __call__(self, *columns, errors="raise", **named):
        """Runs `forward` for the inputs whose arguments stand in these lists."""
        __tracebackhide__ = True
        if "forward" not in self.program.entries:
            raise TypeError(f"{type(self.target).__name__} has no method 'forward'")
        if type(self.target).__call__ is not Module.__call__:
            raise TypeError(f"{type(self.target).__name__} has a '__call__' of its own, and this runs 'forward': "
                            "call fast.forward(...)")
        return self._run("forward", columns, errors, named)

    @property
    def methods(self):
        """{name: method} of all that can be called. `fast.loss` is `fast.methods["loss"]`; a method of the
        name of one of this object, as `encode`, is here alone."""
        return {name: self.__dict__.setdefault("_made", {}).setdefault(name, Method(self, name))
                for name in self.program.entries}

    def encode(self, *columns):
        """The inputs of these columns as a Dataset: converted once, and given instead of them.

        They are those of `forward`, or of the first method of as many arguments; `fast.loss.encode(...)`
        says which. Methods whose arguments have the same types take each other's.
        """
        for name, parameters in self.program.signatures.items():
            if len(parameters) == len(columns):
                return self._encode(name, columns)
        raise TypeError(f"{type(self.target).__name__} has no method of {len(columns)} arguments; there are "
                        + ", ".join(f"{name} of {len(p)}" for name, p in self.program.signatures.items()))

    def train_step(self, optimizer, loss, *columns, reduce="mean"):
        """Changes the weights by the gradients of a loss, which is a method or its name, over these
        inputs: lists of arguments, or a Dataset. Gives a Step: loss, norm of the gradients, failed, ...

            opt = sf.optim.AdamW(fast, lr=1e-3, clip=5.0)
            for batch in data.batches(64):
                step = fast.train_step(opt, "loss", batch)

        Inputs that fail have no part in it; if all do, it raises InstanceErrors. Dropout drops, another
        draw at each step. `reduce`: "mean" or "sum" of the losses. The Params and all compiled methods
        have the new weights.
        """
        from .gradients import train_step
        __tracebackhide__ = True
        return train_step(self, optimizer, loss, columns, reduce)

    def to_torch(self, method="forward", *, sparse=False):
        """A torch.nn.Module that runs a method, which is given as that or by its name:

            net = fast.to_torch("loss")
            net(trees, labels).mean().backward()

        Its Parameters are the memory that compiled code computes with, so optimisers of torch train the
        model. Gradients go to them and to tensors that are given as arguments. With `sparse` those of
        tables of which some rows were read are sparse.
        """
        from .autograd import TorchModule
        return TorchModule(self, method, sparse)

    def fit(self, data, **options):
        """Trains the model: an iterator over steps.

            for step in fast.fit(train, dev=dev, metric="accuracy", optimizer=sf.optim.AdamW(fast), epochs=10):
                if step.ended:                  # the last step of an epoch
                    print(step.epoch, step.ended.loss, step.ended.measures)

        data, dev     Datasets, or tuples of lists of arguments, of the loss; `dev` is measured after epochs
        loss          a method or its name; by default "loss"
        metric        one that says how good the model is over `dev`, or several: a number, or pairs of
                      predicted and actual class, with ":f1", ":accuracy" ... The first decides which weights
                      are best; without one the loss over `dev` does, without that the loss of the epoch
        optimizer     of sf.optim; its options are taken, it makes no steps itself. By default Adam
        batch, epochs, seed, accumulate, parts, reduce, schedule, warmup, average (--ema), patience
                      as `sheaf train` has them: from the same weights the steps have the same bits
        freeze        names of weights that stay as they are, in which * stands for any characters: ["embedding",
                      "encoder.*"]. `norm` and `clip` do not count them
        directory     where weights and checkpoints are kept; `resume=True` goes on after the newest.
                      `checkpoint_every` steps, beside those of epochs; `keep` of them
        progress      shows where it stands, by tqdm or rich if one is there, else by a line an epoch

        When it ends the model has the best weights. Ctrl-C gives up the step that is made, and writes a
        checkpoint. Each step's weights are those of the Params and of all compiled methods.
        """
        from .fitting import Fit
        return Fit(self, data, **options)

    def _method_name(self, given, what):
        """The name of a method, which is given as that or by its name."""
        name = given.name if isinstance(given, Method) and given.compiled is self else given
        if not isinstance(name, str) or name not in self.program.entries:
            raise ValueError(f"the {what} is a compiled method of {type(self.target).__name__} or its name "
                             f"({', '.join(self.program.entries)}), not {given!r}")
        return name

    def explain(self, *columns, repetitions=9):
        """What the compiler made of `forward`; of inputs, given as in a call, also what running them did. See
        `sheaf.explanation.Explanation`: it prints as text, and is a page in a notebook."""
        return self._explain("forward", columns, repetitions)

    def save(self, path, *, train=False):
        """Writes `forward`, compiled, to a file, which `sheaf.load` opens without a compiler. With `train` it is
        `loss`, with code that differentiates, and what is opened has `fit` and `train_step`; of another
        method `fast.method.save(path, train=True)`."""
        if train and "loss" not in self.program.entries:
            raise TypeError(f"{type(self.target).__name__} has no method 'loss': fast.method.save(path, train=True) takes "
                            "another")
        self._save("loss" if train else "forward", path, train)

    def __getattr__(self, name):
        program = self.__dict__.get("_program")
        if name.startswith("_") or name in ("program", "target"):
            raise AttributeError(name)
        if program is not None and name in program.entries:
            return self.methods[name]
        raise AttributeError(f"{type(self.__dict__.get('target')).__name__} has no compiled method '{name}'"
                             + (f"; there are {', '.join(program.entries)}" if program else ""))

    def __dir__(self):
        return [*super().__dir__(), *self.program.entries]

    def __repr__(self):
        return f"<sheaf.jit {type(self.target).__name__}: {', '.join(self.program.entries)}>"

    def _repr_html_(self):
        from .notebook import parameters
        return parameters(repr(self), self.state_dict().items())


class Method(AsyncCalls):
    """One method of a compiled Module."""

    def __init__(self, compiled, name):
        self.compiled, self.name = compiled, name
        self.__doc__ = getattr(type(compiled.target), name).__doc__

    def __call__(self, *columns, errors="raise", **named):
        __tracebackhide__ = True
        return self.compiled._run(self.name, columns, errors, named)

    def encode(self, *columns):
        """The inputs of these columns as a Dataset: converted once, and given instead of them."""
        return self.compiled._encode(self.name, columns)

    def explain(self, *columns, repetitions=9):
        """What the compiler made of the method; of inputs, given as in a call, also what running them did. See
        `sheaf.explanation.Explanation`: it prints as text, and is a page in a notebook."""
        return self.compiled._explain(self.name, columns, repetitions)

    def save(self, path, *, train=False):
        """Writes the compiled method to a file, which `sheaf.load` opens without a compiler; with `train` one
        that can be trained there, of a loss."""
        self.compiled._save(self.name, path, train)

    def __repr__(self):
        return f"<sheaf.jit {type(self.compiled.target).__name__}.{self.name}>"


def _is_entry(function):
    """Whether a method has arguments, and all of them and the result are annotated."""
    code = function.__code__
    names = code.co_varnames[1:code.co_argcount + code.co_kwonlyargcount]
    noted = function.__annotations__
    if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) or not names or "return" not in noted:
        return False
    if not all(name in noted for name in names):
        return False
    # str and the like are of Python's side: a method that takes a path is no part of the model.
    other = {str, bytes, dict, set, object, "str", "bytes", "dict", "object", "Path", "None"}
    return not any(_hashable(a) and a in other for a in noted.values() if a is not None)


def _hashable(value):
    try:
        hash(value)
    except TypeError:
        return False
    return True
