"""Calls: of methods and functions of the model, of operators, of Python's own functions."""
import ast
import builtins
import dataclasses
import inspect
import math
import types

from ..module import Module, Param
from ..types import Token, TokenOf
from . import kinds
from .annotations import Unknown
from .assignments import Variable
from .data import MISSING
from .kinds import FLOAT
from .operator_calls import OperatorCalls
from .operators import scalar_of
from .python_calls import PythonCalls
from .text import Code, joined
from .values import BLOCK, FunctionRef, ModuleList, ModuleRef, Object, Value, literal

_INSTEAD = {
    "print": "sheaf.debug.print shows values of compiled code" if False else
             "look at values in eager Python, where print works: model(x) instead of fast(x)",
    "sorted": "sort(x) of a tensor gives the elements in order, and their places",
    "round": "floor(x + 0.5)", "str": "words are no values of a model", "repr": "", "open": "", "input": "",
    "set": "use a list", "dict": "use a list of tuples", "getattr": "write the attribute",
    "setattr": "nothing of a model changes", "hasattr": "use match", "type": "use match",
    "iter": "write a for loop", "next": "xs[0]", "id": "", "hash": "", "ord": "", "chr": "", "eval": "",
    "exec": "", "divmod": "a // b, a % b", "complex": "", "slice": "write x[a:b]",
}


class Calls(OperatorCalls, PythonCalls):

    def expr_Call(self, node, expect):
        f = node.func
        for a in node.args:
            if isinstance(a, ast.Starred):
                raise self.error(a, "'*' in a call is not compiled: how many arguments there are must be known",
                                 "write the arguments out; stack takes a list: stack(xs)")
        for k in node.keywords:
            if k.arg is None:
                raise self.error(k.value, "'**' in a call is not compiled", "write the arguments out")
        if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Call) and isinstance(
                f.value.func, ast.Name) and f.value.func.id == "super" and not self.is_variable("super"):
            return self.super_call(node, f)
        if isinstance(f, ast.Lambda):
            raise self.refuse_expression(f)
        if isinstance(f, ast.Attribute):
            base = self.peek(f.value)
            if base.module is None:
                return self.method_of_value(base, node, f)
        callee = self.peek(f)
        m = callee.module
        if isinstance(m, ModuleRef):
            return self.call_module(m, node)
        if isinstance(m, FunctionRef):
            return self.call_function(m.function, m.owner, node)
        if isinstance(m, Object):
            return self.call_object(m.object, m.name, node, expect)
        if m is not None:
            raise self.error(node, "this cannot be called")
        if isinstance(callee.kind, kinds.Callable_):
            return self.call_parameter(callee, node)
        raise self.error(f, f"'{ast.unparse(f)}' cannot be called")

    # ---- Modules and functions ----

    def call_module(self, ref, node):
        cls = type(ref.object)
        call = inspect.getattr_static(cls, "__call__", None)
        if call is not None and call is not inspect.getattr_static(Module, "__call__"):
            return self.call_function(call, ref, node)
        forward = inspect.getattr_static(cls, "forward", None)
        if not isinstance(forward, types.FunctionType) or forward is inspect.getattr_static(
                Module, "forward"):
            raise self.error(node, f"{cls.__name__} has no method 'forward'")
        self.low.watch(cls, "forward", forward)
        return self.call_function(forward, ref, node)

    def super_call(self, node, f):
        if f.value.args or f.value.keywords:
            raise self.error(f.value, "'super' with arguments is not compiled", "super().method(...)")
        if not self.bound:
            raise self.error(f.value, "'super' stands in methods")
        cell = dict(zip(self.function.__code__.co_freevars, self.function.__closure__ or ())).get("__class__")
        mro = type(self.owner.object).__mro__
        after = mro[mro.index(cell.cell_contents) + 1:]
        for cls in after:
            if f.attr in vars(cls):
                found = vars(cls)[f.attr]
                if not isinstance(found, types.FunctionType):
                    break
                return self.call_function(found, ModuleRef(self.owner.object, None), node)
        raise self.error(f, f"no class above has a method '{f.attr}'")

    def call_function(self, function, owner, node):
        """A call of a function of Python; `owner` the ModuleRef whose method it is, or None."""
        if owner is not None:
            where = self.low.owner_of(owner.object)
            if owner.path is not None and where is self.low.root:
                raise self.error(node, "a layer cannot call the model around it")
            written = self.low.signature(function, where, bound=True)
        else:
            where = None
            written = self.low.signature(function, None)
        values = self.bind_arguments(written, node)
        axes = self.axes_of(written, values, node)
        declared = self.low.function(function, where, owner is not None, axes)
        binding = {}
        for p, v in zip(declared.parameters, values):
            kinds.bind(p.kind, v.kind, binding)
        name = Code((declared.name,))
        if owner is not None and owner.path is not None:
            name = Code((owner.path, ".", declared.name))
        code = Code((name, "(", joined([v.code for v in values]), ")"))
        return Value(code, self.result_of(declared, values, binding))

    def axes_of(self, written, values, node):
        """How many axes each `*rows` of a function's types stands for in this call."""
        found = {}
        for p, v in zip(written.parameters, values):
            formal, actual = p.kind, v.kind
            if not isinstance(formal, kinds.Tensor):
                continue
            stars = [d for d in formal.dims or () if d and d.startswith("*")]
            if not stars:
                continue
            if isinstance(actual, (kinds.List, kinds.Tuple_, kinds.Data, kinds.Option)):
                raise self.error(node, f"'{p.name}' of '{written.name.python}' is a tensor")
            if not isinstance(actual, kinds.Tensor) or actual.dims is None:
                raise self.error(node, f"how many axes '{p.name}' of '{written.name.python}' has here is not "
                                 "known", "annotate it: x: Float32[\"n m\"] = ...")
            count = len(actual.dims) - len(formal.dims) + 1
            if count < 0:
                raise self.error(node, f"'{p.name}' of '{written.name.python}' has at least "
                                 f"{len(formal.dims) - 1} axes, and this has {len(actual.dims)}")
            if found.setdefault(stars[0][1:], count) != count:
                raise self.error(node, f"'{stars[0]}' stands for {found[stars[0][1:]]} axes and for {count}")
        return tuple(sorted(found.items()))

    def result_of(self, declared, values, binding):
        dims = {}
        for p, v in zip(declared.parameters, values):
            _bind_dims(p.kind, v.kind, dims)
        return _with_dims(self.arrived(kinds.substitute(declared.result, binding)), dims)

    def bind_arguments(self, declared, node):
        """The arguments of a call in the order of the parameters, each as it is wanted."""
        name = declared.captured.function.__name__
        signature = declared.parameters
        nodes = {}
        arguments = declared.captured.node.args
        positional = [a.arg for a in [*arguments.posonlyargs, *arguments.args]]
        only = {a.arg for a in arguments.posonlyargs}
        if declared.key[1]:
            positional = positional[1:]
        if len(node.args) > len(positional):
            raise self.error(node.args[len(positional)], f"'{name}' takes {len(positional)} "
                             f"argument{'s' if len(positional) != 1 else ''}")
        for a, p in zip(node.args, positional):
            nodes[p] = a
        known = {p.name for p in signature}
        for k in node.keywords:
            if k.arg not in known or k.arg in only:
                raise self.error(k.value, f"'{name}' has no parameter '{k.arg}'")
            if k.arg in nodes:
                raise self.error(k.value, f"'{k.arg}' is given twice")
            nodes[k.arg] = k.value
        values = {}
        # In the order in which Python computes them.
        for p, a in nodes.items():
            parameter = next(q for q in signature if q.name == p)
            values[p] = self.argument(parameter, a, name)
        made = []
        for p in signature:
            if p.name in values:
                made.append(values[p.name])
                continue
            if p.default is inspect.Parameter.empty:
                raise self.error(node, f"'{name}' needs its argument '{p.name}'")
            default = literal(p.default) if _plain(p.default) else None
            if default is None or isinstance(p.default, str):
                raise self.error(node, f"the default of '{p.name}' is no number, and is no part of a model",
                                 f"give '{p.name}' here")
            made.append(self.coerce(default, p.kind))
        return made

    def argument(self, parameter, node, name):
        if isinstance(parameter.kind, kinds.Callable_):
            return Value(self.function_code(node, parameter.kind.parameters, parameter.kind.result)[0],
                         parameter.kind)
        value = self.value(node, parameter.kind)
        if isinstance(value.module, (ModuleRef, ModuleList)):
            raise self.error(node, f"a layer cannot be an argument of '{name}'",
                             "call the layer here, or reach it from self")
        value = self.no_module(value, node)
        return self.coerce(value, parameter.kind, node)

    def function_code(self, node, parameters, expected=None):
        """(code, Kind of the result) of a function that is passed on: a lambda, a method, an operator."""
        if isinstance(node, ast.Lambda):
            return self.lambda_code(node, parameters, expected)
        callee = self.peek(node)
        m = callee.module
        if isinstance(m, FunctionRef) or isinstance(m, ModuleRef) or isinstance(m, Object):
            # As a lambda: so every argument is made what the function wants.
            names = [f"%{self.temporaries}.{i}" for i in range(len(parameters))]
            self.temporaries += 1
            arguments = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
            call = ast.Call(node, [ast.Name(n, ast.Load()) for n in names], [])
            made = ast.Lambda(arguments, call)
            for part in ast.walk(made):
                if not hasattr(part, "lineno"):
                    ast.copy_location(part, node)
            for n in names:
                self.declared.locals[n] = self.temporary("x")
            return self.lambda_code(made, parameters, expected)
        if isinstance(callee.kind, kinds.Callable_):
            return callee.code, callee.kind.result
        raise self.error(node, "a function is wanted here", "lambda x: ...")

    def lambda_code(self, node, parameters, expected=None):
        a = node.args
        if a.vararg or a.kwarg or a.kwonlyargs or a.posonlyargs or a.defaults:
            raise self.error(node, "a lambda has plain parameters here")
        if len(a.args) != len(parameters):
            raise self.error(node, f"this function is called with {len(parameters)} "
                             f"argument{'s' if len(parameters) != 1 else ''}")
        with self.branch():
            shown = []
            for parameter, kind in zip(a.args, parameters):
                local = self.local(parameter.arg)
                self.env[parameter.arg] = Variable(local, self.arrived(kind))
                shown.append(local)
            body = self.plain(node.body, expected)
            if expected is not None:
                body = self.coerce(body, expected, node.body)
        return Code(("|", joined(shown), "| ", body.code), self.place(node)), body.kind

    def call_parameter(self, callee, node):
        if node.keywords or len(node.args) != len(callee.kind.parameters):
            raise self.error(node, f"this function takes {len(callee.kind.parameters)} arguments, without names")
        values = [self.coerce(self.plain(a), k) for a, k in zip(node.args, callee.kind.parameters)]
        return Value(Code((callee.code, "(", joined([v.code for v in values]), ")")),
                     self.arrived(callee.kind.result))

    # ---- Other objects ----

    def call_object(self, obj, name, node, expect):
        operator = getattr(obj, "__sheaf_operator__", None)
        if isinstance(operator, str):
            return self.call_operator(obj, operator, node)
        wrapped = getattr(obj, "__sheaf_function__", None)  # what sf.jit gave
        if wrapped is not None:
            obj = wrapped
        if isinstance(obj, types.FunctionType):
            if obj.__module__.split(".")[0] in ("numpy", "torch", "jax", "scipy"):
                raise self.foreign(node, obj, name)
            return self.call_function(obj, None, node)
        if obj is Token or isinstance(obj, TokenOf):
            return self.token(node, "" if obj is Token else obj.vocabulary)
        if isinstance(obj, type):
            if self.low.data.is_record(obj):
                return self.construct(obj, node)
            if issubclass(obj, Module):
                raise self.error(node, "layers are made in the constructor of the module",
                                 f"self.layer = {obj.__name__}(...) in __init__")
            if issubclass(obj, Param):
                raise self.error(node, "parameters are made in the constructor of the module",
                                 "self.w = Param(...) in __init__")
        method = None
        if getattr(builtins, getattr(obj, "__name__", ""), None) is obj:
            method = getattr(self, "builtin_" + obj.__name__, None)
            if method is None:
                raise self.error(node, f"'{obj.__name__}' is not compiled",
                                 _INSTEAD.get(obj.__name__, "do it around the call of the model"))
        if method is not None:
            return method(node, expect)
        module = getattr(obj, "__module__", None) or type(obj).__module__ or ""
        if module == "math" and getattr(math, getattr(obj, "__name__", ""), None) is obj:
            return self.call_math(obj.__name__, node)
        if module.split(".")[0] in ("numpy", "torch", "jax", "scipy"):
            raise self.foreign(node, obj, name)
        if isinstance(obj, type) and type(obj.__bases__) is tuple and issubclass(obj, BaseException):
            raise self.error(node, "an error is no value of a model", "assert condition, \"message\"")
        raise self.error(node, f"'{name}' cannot be called in compiled code",
                         "functions of the module with annotations can, methods, and sheaf's operators")

    def foreign(self, node, obj, name):
        import importlib
        ops = importlib.import_module("..ops", __package__)
        last = name.split(".")[-1]
        same = getattr(ops, last, None)
        if getattr(same, "__sheaf_operator__", None):
            return self.error(node.func, f"'{name}' is not compiled", f"sheaf.{last} is the same operator")
        return self.error(node.func, f"'{name}' is not compiled", "the operators of sheaf are, and @ + - * /")

    def token(self, node, vocabulary):
        if len(node.args) != 1 or node.keywords:
            raise self.error(node, "a Token is made of one int", "Token(i)")
        value = self.number(self.read_int(self.plain(node.args[0])))
        if isinstance(value.kind, kinds.Tensor):
            scalar = scalar_of(value.kind)
            value = Value(Code(("read(", value.code, ")")), scalar)
            value = self.number(value)
        if value.kind == FLOAT:
            raise self.error(node.args[0], "a Token is made of an int", "Token(int(x))")
        if not vocabulary:
            return Value(Code(("token(", value.code, ")")), kinds.Tok())
        t = self.temporary("word")
        return Value(Code(("{ let ", t, f": token<{vocabulary}> = token(", value.code, "); ", t, " }")),
                     kinds.Tok(vocabulary), BLOCK)

    def construct(self, cls, node):
        """A dataclass or NamedTuple."""
        try:
            declaration = self.constructed_type(cls)
        except Unknown as error:
            raise self.error(node, str(error), error.help) from None
        constructor = declaration.constructor(cls)
        for method in ("__post_init__",):
            if hasattr(cls, method):
                raise self.error(node, f"{cls.__name__} has a '{method}', which is not compiled",
                                 "leave it out, or make the object before the call")
        if dataclasses.is_dataclass(cls):
            init = cls.__dict__.get("__init__")
            if init is not None and getattr(init, "__qualname__", "").split(".")[-1] == "__init__" and (
                    init.__code__.co_filename != "<string>"):
                raise self.error(node, f"{cls.__name__} has a constructor of its own, which is not compiled",
                                 "let @dataclass make it")
        fields = constructor.fields
        given = {}
        keyword_only = set()
        if dataclasses.is_dataclass(cls):
            keyword_only = {f.name for f in dataclasses.fields(cls) if f.kw_only}
        positional = [f for f in fields if f[0] not in keyword_only]
        if len(node.args) > len(positional):
            raise self.error(node, f"{cls.__name__} has {len(positional)} fields")
        for a, (name, kind, _) in zip(node.args, positional):
            given[name] = a
        for k in node.keywords:
            if constructor.position(k.arg) is None:
                raise self.error(k.value, f"{cls.__name__} has no field '{k.arg}'")
            if k.arg in given:
                raise self.error(k.value, f"'{k.arg}' is given twice")
            given[k.arg] = k.value
        binding, values = {}, {}
        for name, a in given.items():
            kind = fields[constructor.position(name)][1]
            value = self.plain(a, kind if not kinds.variables(kind) else None)
            kinds.bind(kind, value.kind, binding)
            values[name] = (value, a)
        made = []
        for name, kind, default in fields:
            if name in values:
                value, a = values[name]
                made.append(self.coerce(value, kinds.substitute(kind, binding), a).code)
                continue
            if default is MISSING:
                raise self.error(node, f"{cls.__name__} needs its field '{name}'")
            value = literal(default) if _plain(default) else Value("[]", kinds.List(None)) \
                if default is list else None
            if value is None:
                raise self.error(node, f"the default of the field '{name}' is not compiled",
                                 f"give '{name}' here")
            made.append(self.coerce(value, kind).code)
        arguments = tuple(binding.get(p) for p in declaration.parameters)
        code = Code((constructor.name, "(", joined(made), ")")) if made else Code((constructor.name,))
        return Value(code, kinds.Data(declaration, arguments))

    def constructed_type(self, cls):
        data = self.low.data
        if cls in data.by_class:
            return data.by_class[cls]
        union = data._union_with(cls, self.declared.reader)
        if union is not None:
            self.declared.reader._kind(union[1])
            return data.by_class[cls]
        return data.of_classes((cls,), cls.__name__, self.declared.reader)

def _plain(value):
    if isinstance(value, (tuple, list)):
        return all(map(_plain, value))
    return isinstance(value, (bool, int, float, type(None))) and type(value).__module__ in (
        "builtins", "sheaf.types")


def _bind_dims(formal, actual, dims):
    if isinstance(formal, kinds.Tensor) and isinstance(actual, kinds.Tensor):
        if formal.dims is not None and actual.dims is not None and len(formal.dims) == len(actual.dims):
            for f, a in zip(formal.dims, actual.dims):
                if f and f.isidentifier() and a is not None:
                    dims.setdefault(f, a)
    elif isinstance(formal, kinds.Tuple_) and isinstance(actual, kinds.Tuple_):
        for f, a in zip(formal.parts, actual.parts):
            _bind_dims(f, a, dims)


def _with_dims(kind, dims):
    """The result of a call: names of its own dims are those of the arguments, or not known."""
    if isinstance(kind, kinds.Tensor) and kind.dims is not None:
        made = []
        for d in kind.dims:
            if d is None or d.isdigit() or d == "?":
                made.append(None if d == "?" else d)
            elif d.isidentifier():
                made.append(dims.get(d))
            else:
                made.append(None)
        return kinds.Tensor(kind.dtype, tuple(made), kind.vocabulary)
    if isinstance(kind, kinds.Tuple_):
        return kinds.Tuple_(tuple(_with_dims(p, dims) for p in kind.parts))
    if isinstance(kind, kinds.List):
        return kinds.List(_element_dims(kind.element, dims))
    if isinstance(kind, kinds.Option):
        return kinds.Option(_element_dims(kind.inner, dims))
    return kind


def _element_dims(kind, dims):
    """Inside of lists `?` stays."""
    if isinstance(kind, kinds.Tensor) and kind.dims is not None:
        made = tuple(d if d is None or d.isdigit() or d == "?" else dims.get(d) if d.isidentifier() else None
                     for d in kind.dims)
        return kinds.Tensor(kind.dtype, made, kind.vocabulary)
    if isinstance(kind, kinds.Tuple_):
        return kinds.Tuple_(tuple(_element_dims(p, dims) for p in kind.parts))
    if isinstance(kind, kinds.List):
        return kinds.List(_element_dims(kind.element, dims))
    return kind
