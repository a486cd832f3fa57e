"""Calls: of methods and functions of the model, of operators, of Python's own functions."""
import ast
import builtins
import dataclasses
import inspect
import math
import types

from ..module import Module, Param
from ..types import Token, TokenOf
from . import flow, kinds
from .annotations import Unknown
from .data import MISSING
from .kinds import BOOL, FLOAT, INT
from .narrowing import with_lets
from .operators import is_constant, result, scalar_of
from .text import Code, joined
from .values import (ADD, AND, BLOCK, NO, OR, FunctionRef, ModuleList, ModuleRef, Object, Parts, Value,
                     literal)


@dataclasses.dataclass
class Many:
    """What a loop goes through: the code of a list, the Kind of its elements."""
    code: object
    element: object
    nonneg: bool = False
    fresh: bool = True


METHODS_OF_TENSORS = {"item": "read", "tolist": "read_all"}

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

# Of math: what the language has for floats of the host, and what Python refuses.
_MATH = {"sqrt": ("!({x} < 0.0)", "math domain error"), "exp": None,
         "log": ("!({x} <= 0.0)", "math domain error"),  # NaN is no error
         "floor": None, "ceil": None, "fabs": None, "trunc": None}


class Calls:

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
        from .functions import Variable
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

    # ---- Operators ----

    def call_operator(self, function, name, node):
        special = getattr(self, "operator_" + name, None)
        if special is not None:
            return special(function, node)
        return self.operator(function, name, node, list(node.args), node.keywords)

    def method_of_value(self, base, node, f):
        """x.sum(0), x.item(), p.method(...)."""
        kind = base.kind
        if isinstance(kind, kinds.Option):
            raise self.error(f, f"this may be None, which has no '{f.attr}'", "if x is not None: ... first")
        if isinstance(kind, kinds.Data):
            return self.method_of_data(base, node, f)
        if isinstance(kind, kinds.List):
            if f.attr == "copy" and not node.args:
                return Value(base.code, kind, base.prec, fresh=True)
            if f.attr in flow.CHANGES:
                raise self.error(node, f"'{f.attr}' changes a list, and stands in a line of its own here",
                                 {"pop": "x = xs[-1], and then xs.pop()"}.get(f.attr, ""))
            help = {"index": "fold over enumerate(xs)", "count": "sum(x == y for x in xs)"}.get(f.attr, "")
            raise self.error(f, f"'{f.attr}' of a list is not compiled", help)
        if isinstance(kind, (kinds.Scalar, kinds.Tok)):
            if f.attr == "item" and not node.args:
                return base
            raise self.error(f, f"'{f.attr}' of a number is not compiled")
        if isinstance(kind, kinds.Tuple_):
            raise self.error(f, f"'{f.attr}' of a tuple is not compiled")
        base = self.no_module(base, f.value)
        from .. import ops
        if f.attr in METHODS_OF_TENSORS:
            if node.args or node.keywords:
                raise self.error(node, f"'{f.attr}' takes no arguments")
            if f.attr == "item":
                return self.read(base, node)
            return Value(Code(("read_all(", base.code, ")")), result("read_all", [kind], {}), fresh=True)
        methods = getattr(ops, "METHODS", None)
        if methods is None:
            from ..ops.tensors import METHODS as methods
        if f.attr in methods:
            name = f.attr
            function = ops.OPERATORS[name]
            return self.operator(function, name, node, [base, *node.args], node.keywords, f)
        same = {"view": "reshape", "permute": "transpose", "unsqueeze": "expand_dims", "size": "x.shape",
                "astype": "f32(x), i32(x)", "flatten": "reshape(x, n)", "float": "f32(x)", "cat": "concat",
                "chunk": "split", "detach": "stop_gradient", "std": "sqrt of the mean of squares",
                "any": "x.max() of i32(x)", "all": "x.min() of i32(x)", "copy": "x: values never change",
                "swapaxes": "transpose", "matmul": "@", "add": "+", "mul": "*", "t": "x.T"}.get(f.attr, "")
        raise self.error(f, f"a tensor has no method '{f.attr}' in compiled code", same)

    def method_of_data(self, base, node, f):
        declaration = base.kind.declaration
        for constructor in declaration.constructors:
            if constructor.position(f.attr) is not None:
                raise self.error(node, f"the field '{f.attr}' is no function")
        raise self.error(f, f"methods of data such as '{f.attr}' are not compiled",
                         "make it a method of the module or a function, with the data as its argument")

    def read(self, value, node):
        kind = value.kind
        if kind is not None and not isinstance(kind, kinds.Tensor):
            if isinstance(kind, (kinds.Scalar, kinds.Tok)):
                return value
            raise self.error(node, "only tensors are read")
        return Value(Code(("read(", value.code, ")")), scalar_of(kind),
                     nonneg=getattr(value, "nonneg", False))

    def operator(self, function, name, node, arguments, keywords, at=None):
        """A call of an operator: its arguments by the signature of the eager one, which is the same."""
        self.low.used_operators.add(name)
        signature = inspect.signature(function)
        placed = {}
        parameters = list(signature.parameters.values())
        positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        variable = next((p for p in parameters if p.kind == p.VAR_POSITIONAL), None)
        for k, a in enumerate(arguments):
            before = len([p for p in parameters if p.kind != p.KEYWORD_ONLY and p is not variable])
            if variable is not None and k >= before:
                placed.setdefault(variable.name, []).append(a)
            elif k < len(positional):
                placed[positional[k].name] = a
            else:
                raise self.error(a if isinstance(a, ast.AST) else node,
                                 f"'{name}' takes {len(positional)} arguments")
        for k in keywords:
            if k.arg not in signature.parameters:
                instead = {"dim": "axis", "keepdim": "keepdims"}.get(k.arg, "")
                raise self.error(k.value, f"'{name}' has no argument '{k.arg}'",
                                 f"{instead}=..." if instead else
                                 "it has " + ", ".join(p.name for p in parameters))
            if k.arg in placed:
                raise self.error(k.value, f"'{k.arg}' is given twice")
            placed[k.arg] = k.value
        shown, operands, constants = [], [], {}
        named = False
        for p in parameters:
            if p.name not in placed:
                if p.default is p.empty and p is not variable:
                    raise self.error(node, f"'{name}' needs its argument '{p.name}'")
                if p is variable and name in ("concat",):
                    raise self.error(node, f"'{name}' needs at least one tensor")
                named = named or p is not variable
                continue
            given = placed[p.name]
            if p is variable:
                for v in self.variable_arguments(name, p, given):
                    shown.append(v.code)
                    operands.append(v.kind)
                    if p.name == "dims":
                        constants["dims"] = constants.get("dims", ()) + (_extent_text(v),)
                continue
            if p.default is not p.empty or p.kind == p.KEYWORD_ONLY or is_constant(name, p.name):
                const = self.constant(given) if isinstance(given, ast.AST) else NO
                if const is None and p.default is None:
                    named = True
                    continue
                if const is not NO and not isinstance(const, (int, float)):
                    raise self.error(given, f"'{p.name}' of '{name}' is a number")
                if const is not NO:
                    constants[p.name] = const
                    value = literal(int(const) if isinstance(const, bool) else const)
                    value.code = Code((value.code,), self.place(given))
                elif is_constant(name, p.name):
                    raise self.error(given, f"'{p.name}' of '{name}' must be known when the model is compiled",
                                     "write the number out, or make it an attribute of the module")
                else:
                    value = self.plain(given)
                prefix = f"{p.name}=" if p.default is not p.empty or p.kind == p.KEYWORD_ONLY else ""
                shown.append(Code((prefix, value.code)))
                if not prefix:
                    operands.append(value.kind)
                continue
            if isinstance(given, Value):
                value = given
            elif name in ("stack",):
                value = self.list_of_tensors(given)
            else:
                value = self.operand(given, name, p.name)
            if value.is_const and isinstance(value.const, (int, float)):
                constants[p.name] = value.const
            if p.name in ("size",):
                constants["dims"] = (_extent_text(value),)
            if name == "stack" and isinstance(given, ast.List) and not any(
                    isinstance(e, ast.Starred) for e in given.elts):
                constants["count"] = str(len(given.elts))
            if name == "stack" and isinstance(value.kind, kinds.List):
                value = self.as_tensors(value)
            shown.append(value.code if not named else Code((f"{p.name}=", value.code)))
            operands.append(value.kind)
        made = result(name, operands, constants)
        if name == "full" and "dims" in constants:
            made = kinds.Tensor("f32", constants["dims"])
        return Value(Code((name, "(", joined(shown), ")"), self.place(node)), made,
                     nonneg=name == "argmax", fresh=isinstance(made, kinds.List))

    def operand(self, node, name, parameter):
        value = self.plain(node)
        if isinstance(value.kind, kinds.Option):
            raise self.error(node, "this may be None", "if x is not None: ... first")
        if value.kind == BOOL and name not in ("where", "and", "or", "not", "bool", "f32", "i32", "i64"):
            value = self.number(value)
        return value

    def list_of_tensors(self, node):
        if isinstance(node, (ast.GeneratorExp, ast.ListComp)):
            many = self.iterable(node)
            return Value(many.code, kinds.List(many.element))
        value = self.peek(node)
        if value.module is not None:
            m = value.module
            if isinstance(m, Parts):
                values = [self.no_module(v, node) for v in m.values]
                kind = values[0].kind
                return Value(Code(("[", joined([v.code for v in values]), "]")), kinds.List(kind))
            self.no_module(value, node)
        if isinstance(value.kind, kinds.Tuple_):
            many = self.many_of_tuple(value, node)
            return Value(many.code, kinds.List(many.element))
        return value

    def as_tensors(self, value):
        """A list of numbers of the host as one of tensors, of the element type that eager code has."""
        dtype = {INT: "i32", BOOL: "bool"}.get(value.kind.element)
        if isinstance(value.kind.element, kinds.Tok):
            dtype = "i32"
        if dtype is None:
            return value
        x = self.temporary("x")
        inner = Code(("int(", x, ")")) if isinstance(value.kind.element, kinds.Tok) else x
        return Value(Code(("map(|", x, f"| {dtype}(", inner, "), ", value.code, ")")),
                     kinds.List(kinds.Tensor(dtype, ())))

    def variable_arguments(self, name, parameter, given):
        values = []
        if parameter.name == "dims" and len(given) == 1 and isinstance(given[0], ast.AST):
            value = self.peek(given[0])
            if isinstance(value.module, Parts):
                given = value.module.values
            elif isinstance(given[0], (ast.Tuple, ast.List)):
                given = given[0].elts
        for a in given:
            value = a if isinstance(a, Value) else (
                self.seen(a) if name == "concat" else self.plain(a))
            if parameter.name == "dims":
                value = self.number(self.read_int(value))
                if value.is_const and isinstance(value.const, int) and value.const < 0:
                    at = a if isinstance(a, ast.AST) else None
                    raise self.error(at, "extents are written, none is -1",
                                     "x.shape has those that are there")
                if value.kind == FLOAT:
                    raise self.error(a, "an extent is an int", "int(x)")
            values.append(value)
        return values

    def operator_read(self, function, node):
        if len(node.args) != 1 or node.keywords:
            raise self.error(node, "'read' takes a tensor")
        return self.read(self.plain(node.args[0]), node)

    def operator_read_all(self, function, node):
        if len(node.args) != 1 or node.keywords:
            raise self.error(node, "'read_all' takes a tensor")
        value = self.plain(node.args[0])
        return Value(Code(("read_all(", value.code, ")")), result("read_all", [value.kind], {}), fresh=True)

    def operator_einsum(self, function, node):
        if not node.args or node.keywords:
            raise self.error(node, "'einsum' takes its text and tensors")
        text = self.constant(node.args[0])
        if not isinstance(text, str):
            raise self.error(node.args[0], "the text of 'einsum' must be known when the model is compiled")
        from .functions import quoted
        values = [self.plain(a) for a in node.args[1:]]
        self.low.used_operators.add("einsum")
        letters, dims = {}, None
        inputs, arrow, out = text.replace(" ", "").partition("->")
        for term, v in zip(inputs.split(","), values):
            if isinstance(v.kind, kinds.Tensor) and v.kind.dims is not None:
                letters.update(zip(term, v.kind.dims))
        if arrow and all(c in letters for c in out):
            dims = tuple(letters[c] for c in out)
        return Value(Code(("einsum(", joined([quoted(text), *[v.code for v in values]]), ")")),
                     kinds.Tensor("f32", dims))

    def operator_concat(self, function, node):
        if node.args and not node.keywords:
            values = [self.seen(a) for a in node.args]
            if any(isinstance(v.kind, kinds.List) for v in values):
                kind = values[0].kind
                if len(values) == 1 and isinstance(kind.element, kinds.Tensor):
                    raise self.error(node.args[0], "'concat' takes tensors one by one, and not a list of them",
                                     "concat(a, b); stack(xs) makes one tensor of equal ones")
                for v in values[1:]:
                    kind = kinds.join(kind, v.kind)
                return Value(Code(("concat(", joined([v.code for v in values]), ")")), kind, fresh=True)
        return self.operator(function, "concat", node, list(node.args), node.keywords)

    # ---- Functions of Python ----

    def no_keywords(self, node, least, most=None):
        name = ast.unparse(node.func)
        if node.keywords:
            k = node.keywords[0]
            raise self.error(k.value, f"'{k.arg}' of '{name}' is not compiled")
        most = least if most is None else most
        if not least <= len(node.args) <= most:
            count = str(least) if least == most else f"{least} to {most}"
            raise self.error(node, f"'{name}' takes {count} argument{'s' if most != 1 else ''} here")

    def builtin_len(self, node, expect):
        self.no_keywords(node, 1)
        value = self.peek(node.args[0])
        m = value.module
        if isinstance(m, ModuleList):
            return literal(len(m.refs))
        if isinstance(m, Parts):
            return literal(len(m.values))
        value = self.no_module(value, node.args[0])
        if isinstance(value.kind, kinds.Tuple_):
            return literal(len(value.kind.parts))
        if isinstance(value.kind, (kinds.Scalar, kinds.Tok, kinds.Data, kinds.Option)):
            raise self.error(node, "this has no length")
        if isinstance(value.kind, kinds.Tensor) and value.kind.dims:
            d = value.kind.dims[0]
            if d is not None and d.isdigit():
                return literal(int(d))
        return Value(Code(("len(", value.code, ")")), INT, nonneg=True)

    def builtin_int(self, node, expect):
        self.no_keywords(node, 1)
        value = self.plain(node.args[0])
        if isinstance(value.kind, kinds.Tensor):
            value = self.read(value, node)
        if value.is_const and isinstance(value.const, (int, float)):
            try:
                return literal(int(value.const))
            except (ValueError, OverflowError) as error:
                raise self.error(node, str(error)) from None
        if value.kind == INT:
            return value
        if value.kind is None or value.kind in (FLOAT, BOOL) or isinstance(value.kind, kinds.Tok):
            if value.kind is None:
                raise self.error(node.args[0], "whether this is a number or a tensor is not known here",
                                 "annotate it: x: float = ...; x.item() reads a tensor")
            if value.kind == FLOAT:
                return self.truncated(value)
            return Value(Code(("int(", value.code, ")")), INT, nonneg=True)
        raise self.error(node, "this is no number")

    def truncated(self, value, function=""):
        """int(x), or of floor or ceil of it, with a check for NaN and what has more than 64 bits."""
        t = self.temporary("x")
        return Value(Code(("{ let ", t, " = ", value.code, "; check ", t, " >= -9223372036854775808.0 && ", t,
                           ' < 9223372036854775808.0, "a float that is no int of 64 bits"; ',
                           f"int({function}(", t, ")) }")), INT, BLOCK, nonneg=value.nonneg)

    def builtin_float(self, node, expect):
        self.no_keywords(node, 1)
        if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
            try:
                return literal(float(node.args[0].value))
            except ValueError as error:
                raise self.error(node, str(error)) from None
        value = self.plain(node.args[0])
        if isinstance(value.kind, kinds.Tensor):
            value = self.read(value, node)
        if value.kind is None:
            raise self.error(node.args[0], "whether this is a number or a tensor is not known here",
                             "annotate it: x: int = ...; x.item() reads a tensor")
        if value.kind not in (INT, FLOAT, BOOL) and not isinstance(value.kind, kinds.Tok):
            raise self.error(node, "this is no number")
        return self.coerce(value, FLOAT)

    def builtin_bool(self, node, expect):
        self.no_keywords(node, 1)
        return Value(self.condition(node.args[0]), BOOL, OR)

    def builtin_abs(self, node, expect):
        self.no_keywords(node, 1)
        value = self.number(self.plain(node.args[0]))
        if value.is_const and isinstance(value.const, (int, float)):
            return literal(abs(value.const))
        self.low.used_operators.add("abs")
        return Value(Code(("abs(", value.code, ")")), value.kind, nonneg=True)

    def builtin_isinstance(self, node, expect):
        classes = self.class_test(node)
        return Value(self.match_class(classes, lambda taken: "true" if taken else "false"), BOOL, BLOCK)

    def builtin_pow(self, node, expect):
        self.no_keywords(node, 2)
        made = ast.copy_location(ast.BinOp(node.args[0], ast.Pow(), node.args[1]), node)
        return self.expr_BinOp(made, expect)

    def builtin_divmod(self, node, expect):
        self.no_keywords(node, 2)
        parts = [ast.copy_location(ast.BinOp(node.args[0], op, node.args[1]), node)
                 for op in (ast.FloorDiv(), ast.Mod())]
        return self.tuple_value([self.expr_BinOp(p, None) for p in parts])

    def builtin_list(self, node, expect):
        self.no_keywords(node, 0, 1)
        if not node.args:
            return Value("[]", kinds.List(expect.element if isinstance(expect, kinds.List) else None),
                         fresh=True)
        many = self.iterable(node.args[0])
        return Value(many.code, kinds.List(many.element), fresh=True)

    def builtin_tuple(self, node, expect):
        self.no_keywords(node, 1)
        value = self.peek(node.args[0])
        if isinstance(value.module, Parts) or isinstance(value.kind, kinds.Tuple_):
            return value
        raise self.error(node, "how many parts this tuple has is not known", "use a list")

    def builtin_range(self, node, expect):
        self.iterable(node)  # which says first what is wrong with its arguments
        raise self.error(node, "a range stands in a loop, or in list(range(n))", "list(range(n))")

    def builtin_map(self, node, expect):
        raise self.error(node, "map stands in a loop, or in list(map(f, xs))", "list(map(f, xs))")

    builtin_filter = builtin_map

    def fold_of(self, node, argument):
        """(many, element Value, its node): what sum, any, all, max, min go through."""
        return self.iterable(argument)

    def builtin_sum(self, node, expect):
        self.no_keywords_but(node, "start", 1, 2)
        many = self.iterable(node.args[0])
        start_node = node.args[1] if len(node.args) > 1 else next(
            (k.value for k in node.keywords if k.arg == "start"), None)
        element = many.element
        a, x = self.temporary("sum"), self.temporary("x")
        if start_node is None:
            return self.sum_from_zero(node, many, a, x)
        start = self.plain(start_node)
        kind = kinds.join(element, start.kind)
        if element == BOOL and start.kind == INT:
            kind = INT
        item = self.coerce(Value(Code((x,)), element), kind)
        start = self.coerce(start, kind)
        return Value(Code(("fold(|", a, ", ", x, "| ", a, " + ", item.at(ADD + 1), ", ", start.code, ", ",
                           many.code, ")")), kind)

    def sum_from_zero(self, node, many, a, x):
        element = many.element
        if element in (INT, FLOAT, BOOL) or isinstance(element, kinds.Tok):
            kind = FLOAT if element == FLOAT else INT
            item = self.coerce(Value(Code((x,)), element), kind)
            start = "0.0" if kind == FLOAT else "0"
            return Value(Code(("fold(|", a, ", ", x, "| ", a, " + ", item.at(ADD + 1), f", {start}, ",
                               many.code, ")")), kind, nonneg=many.nonneg)
        if isinstance(element, kinds.Tensor) and element.dtype in (None, "f32", "i32", "i64", "f16", "bf16"):
            dims = element.dims
            if dims is not None and all(d is not None and (d.isdigit() or d.isidentifier()) for d in dims):
                start = self.coerce(literal(0), kinds.Tensor(element.dtype or "f32", dims))
                return Value(Code(("fold(|", a, ", ", x, "| ", a, " + ", x, ", ", start.code, ", ",
                                   many.code, ")")), element)
            t = self.temporary("all")
            return Value(Code(("{ let ", t, " = ", many.code, "; check len(", t,
                               ') > 0, "the sum of no tensors has no shape"; fold(|', a, ", ", x, "| ", a,
                               " + ", x, ", ", t, "[0], ", t, "[1:]) }")), self.arrived(element), BLOCK)
        raise self.error(node, "what is summed here is not known to be numbers or tensors",
                         "give the start: sum(xs, zeros(n))")

    def no_keywords_but(self, node, allowed, least, most):
        for k in node.keywords:
            if k.arg != allowed:
                raise self.error(k.value, f"'{k.arg}' of '{ast.unparse(node.func)}' is not compiled")
        if not least <= len(node.args) <= most:
            raise self.error(node, f"'{ast.unparse(node.func)}' takes {least} to {most} arguments here")

    def builtin_any(self, node, expect):
        return self.decided(node, " || ", "false")

    def builtin_all(self, node, expect):
        return self.decided(node, " && ", "true")

    def decided(self, node, symbol, start):
        self.no_keywords(node, 1)
        argument = node.args[0]
        f = self.temporary("found")
        if isinstance(argument, (ast.GeneratorExp, ast.ListComp)) and len(argument.generators) == 1:
            g = argument.generators[0]
            many, element_node = self.iterable(g.iter, unroll=True), argument.elt
            if isinstance(many, Many):
                with self.branch():
                    pattern = self.pattern_of_target(g.target, many.element)
                    self.mark_nonneg(g.target, many)
                    tests = [(self.condition(c), self.lets_of(c)) for c in g.ifs]
                    test = Value(self.condition(element_node), BOOL, OR)
                    body = Code((f, symbol, test.at(AND + 1)))
                    if isinstance(element_node, ast.BoolOp):
                        body = Code((f, symbol, "(", test.code, ")"))
                    for c, lets in reversed(tests):
                        body = Code(("if ", c, " { ", with_lets(lets, body), " } else { ", f, " }"))
                return Value(Code(("fold(|", f, ", ", pattern, "| ", body, f", {start}, ", many.code, ")")),
                             BOOL)
        many = self.iterable(argument)
        x = self.temporary("x")
        test = Value(self.truth(Value(Code((x,)), many.element), node), BOOL, OR)
        return Value(Code(("fold(|", f, ", ", x, "| ", f, symbol, test.at(AND + 1), f", {start}, ", many.code,
                           ")")), BOOL)

    def builtin_max(self, node, expect):
        return self.extreme(node, "max", ">")

    def builtin_min(self, node, expect):
        return self.extreme(node, "min", "<")

    def extreme(self, node, name, sign):
        default = next((k.value for k in node.keywords if k.arg == "default"), None)
        for k in node.keywords:
            if k.arg != "default":
                raise self.error(k.value, f"'{k.arg}' of '{name}' is not compiled", "a loop, or fold")
        if len(node.args) == 1:
            return self.extreme_of_list(node, name, sign, default)
        if not node.args or default is not None:
            raise self.error(node, f"'{name}' takes numbers, or a list")
        values = [self.number(self.plain(a)) for a in node.args]
        kind = values[0].kind
        for v in values[1:]:
            kind = kinds.join(kind, v.kind)
        if any(isinstance(v.kind, kinds.Tensor) for v in values):
            if all(isinstance(v.kind, kinds.Tensor) and v.kind.dims == () or v.kind in (INT, FLOAT)
                   for v in values):
                raise self.error(node, f"'{name}' of tensors chooses by their values",
                                 f"{name}imum(a, b) of tensors; {name}(a.item(), b.item()) of numbers")
            raise self.error(node, f"'{name}' is of numbers", f"{name}imum(a, b)")
        if kind not in (INT, FLOAT):
            raise self.error(node, f"'{name}' is of numbers that are known to be such",
                             "annotate them: x: int = ...")
        values = [self.coerce(v, kind) for v in values]
        made = values[0]
        for v in values[1:]:
            nonneg = (made.nonneg or v.nonneg) if name == "max" else (made.nonneg and v.nonneg)
            if kind == INT:
                made = Value(Code((f"{name}(", made.code, ", ", v.code, ")")), INT, nonneg=nonneg)
                continue
            made = self.greater(made, v, sign)
        return made

    def greater(self, a, b, sign):
        """Python's choice: the second if it is greater, so that NaN is treated alike."""
        x, y = self.temporary("a"), self.temporary("b")
        return Value(Code(("{ let ", x, " = ", a.code, "; let ", y, " = ", b.code, "; if ", y, f" {sign} ", x,
                           " { ", y, " } else { ", x, " } }")), a.kind, BLOCK)

    def extreme_of_list(self, node, name, sign, default):
        many = self.iterable(node.args[0])
        element = many.element
        if isinstance(element, kinds.Tensor):
            raise self.error(node, f"'{name}' of tensors chooses by their values",
                             f"x.{name}() of one tensor; a loop with {name}imum(a, x)")
        t, a, x = self.temporary("all"), self.temporary("best"), self.temporary("x")
        kind = element
        if element not in (INT, FLOAT):
            if element == BOOL or isinstance(element, kinds.Tok):
                kind = INT
            else:
                raise self.error(node, f"'{name}' is of numbers that are known to be such",
                                 "a loop, with an if")
        item = self.coerce(Value(Code((x,)), element), kind)
        if kind == INT:
            body = Code((f"{name}(", a, ", ", item.code, ")"))
        else:
            body = Code(("if ", x, f" {sign} ", a, " { ", x, " } else { ", a, " }"))
        first = self.coerce(Value(Code((t, "[0]")), element), kind)
        fold = Code(("fold(|", a, ", ", x, "| ", body, ", ", first.code, ", ", t, "[1:])"))
        if default is not None:
            d = self.coerce(self.plain(default), kind)
            return Value(Code(("{ let ", t, " = ", many.code, "; if len(", t, ") == 0 { ", d.code, " } else { ",
                               fold, " } }")), kind, BLOCK)
        return Value(Code(("{ let ", t, " = ", many.code, "; check len(", t,
                           f') > 0, "{name}() of an empty list"; ', fold, " }")), kind, BLOCK)

    def call_math(self, name, node):
        self.no_keywords(node, 1, 2)
        values = [self.number(self.plain(a)) for a in node.args]
        if any(isinstance(v.kind, kinds.Tensor) for v in values):
            raise self.error(node, f"math.{name} is of numbers, and this is a tensor", f"sheaf.{name}")
        constants = [v.const for v in values]
        if all(c is not NO and isinstance(c, (int, float)) for c in constants):
            try:
                return literal(getattr(math, name)(*constants))
            except (ValueError, TypeError, OverflowError) as error:
                raise self.error(node, str(error)) from None
        if name == "pow" and len(values) == 2:
            return self.float_power(*values, "math domain error", "math domain error")
        if name not in _MATH or len(values) != 1:
            raise self.error(node, f"math.{name} is not compiled",
                             "of numbers there are sqrt, exp, log, pow, floor, ceil; of tensors all operators")
        value = self.coerce(values[0], FLOAT)
        if name in ("floor", "ceil"):
            return self.truncated(value, name)
        if name == "trunc":
            return self.truncated(value)
        if name == "fabs":
            return Value(Code(("abs(", value.code, ")")), FLOAT)
        domain = _MATH[name]
        if domain is None:
            return Value(Code((f"{name}(", value.code, ")")), FLOAT)
        t = self.temporary("x")
        before, after = domain[0].split("{x}")
        return Value(Code(("{ let ", t, " = ", value.code, f"; check {before}", t, after,
                           f', "{domain[1]}"; {name}(', t, ") }")), FLOAT, BLOCK)


def _plain(value):
    if isinstance(value, (tuple, list)):
        return all(map(_plain, value))
    return isinstance(value, (bool, int, float, type(None))) and type(value).__module__ in (
        "builtins", "sheaf.types")


def _extent_text(value):
    if value.is_const and isinstance(value.const, int):
        return str(value.const)
    code = value.code
    while isinstance(code, Code) and len(code.parts) == 1:
        code = code.parts[0]
    return code if isinstance(code, str) and code.isidentifier() else None


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
