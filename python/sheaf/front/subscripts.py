"""x[i], x[a:b], x[i, :, j]: positions count from the end where they are negative, as in Python."""
import ast

from . import kinds
from .kinds import INT
from .text import Code, joined
from .values import ATOM, BLOCK, NO, ModuleList, ModuleRef, Object, Parts, Value, literal


class Subscripts:

    def expr_Subscript(self, node, expect):
        base = self.peek(node.value)
        m = base.module
        if isinstance(m, (ModuleList, Parts)):
            return self.part_of_list(m, node)
        if isinstance(m, Object):
            return self.subscript_of_object(m, node)
        base = self.no_module(base, node.value)
        kind = base.kind
        if isinstance(kind, kinds.Tuple_):
            return self.part_of_tuple(base, node)
        if isinstance(kind, kinds.Data):
            return self.part_of_data(base, node)
        if isinstance(kind, kinds.List):
            return self.part_of_sequence(base, node)
        if isinstance(kind, kinds.Option):
            raise self.error(node, "this may be None", "if x is not None: ... first")
        if isinstance(kind, (kinds.Scalar, kinds.Tok)):
            raise self.error(node, "a number has no parts")
        return self.part_of_tensor(base, node)

    def subscript_of_object(self, m, node):
        try:
            index = self.constant(node.slice)
            if index is not NO:
                return self.object_value(node, m.object[index], f"{m.name}[{index!r}]")
        except SyntaxError:
            raise
        except Exception:
            pass
        raise self.error(node, f"'{m.name}' is a {type(m.object).__name__}, which is no value of a model",
                         "make it an argument, a Param, or a tuple of numbers")

    def constant_index(self, node, what):
        index = self.constant(node.slice)
        if isinstance(index, bool) or not isinstance(index, int):
            raise self.error(node.slice, f"a part of {what} is chosen by a number that is written out",
                             "use a list, if all parts are of one type")
        return index

    def part_of_list(self, m, node):
        values = ([Value(None, module=r) for r in m.refs] if isinstance(m, ModuleList) else m.values)
        if isinstance(node.slice, ast.Slice):
            bounds = [self.constant(b) if b is not None else None
                      for b in (node.slice.lower, node.slice.upper, node.slice.step)]
            if any(b is NO for b in bounds):
                raise self.error(node.slice, "which layers are meant must be known when the model is compiled",
                                 "write the bounds out")
            chosen = slice(*bounds)
            if isinstance(m, ModuleList):
                return Value(None, module=ModuleList(m.objects[chosen], m.refs[chosen]))
            return Value(None, module=Parts(values[chosen]))
        index = self.constant(node.slice)
        if index is NO and isinstance(m, ModuleList) and m.path is not None:
            chosen = self.plain(node.slice)
            chosen = self.number(self.read_int(chosen))
            if not chosen.nonneg:
                chosen = self.wrapped(chosen, Code((str(len(m.refs)),)))
            return Value(None, module=ModuleRef(m.objects[0], Code((m.path, "[", chosen.code, "]"))))
        if isinstance(index, bool) or not isinstance(index, int):
            raise self.error(node.slice, "which part is meant must be known when the model is compiled",
                             "write the number out")
        if not -len(values) <= index < len(values):
            raise self.error(node.slice, f"there are {len(values)}, and none is number {index}")
        return values[index]

    def part_of_tuple(self, base, node):
        parts = base.kind.parts
        if isinstance(node.slice, ast.Slice):
            bounds = [self.constant(b) if b is not None else None
                      for b in (node.slice.lower, node.slice.upper, node.slice.step)]
            if any(b is NO for b in bounds):
                raise self.error(node.slice, "parts of a tuple are chosen by numbers that are written out")
            places = list(range(len(parts)))[slice(*bounds)]
        else:
            index = self.constant_index(node, "a tuple")
            if not -len(parts) <= index < len(parts):
                raise self.error(node.slice, f"a tuple of {len(parts)} has no part {index}")
            places = index % len(parts)
        if isinstance(places, int):
            if base.is_const:
                return literal(base.const[places])
            t = self.temporary("part")
            names = ["_"] * len(parts)
            names[places] = t
            return Value(Code(("{ let (", joined(names), ") = ", base.code, "; ", t, " }")),
                         self.arrived(parts[places]), BLOCK)
        if len(places) < 2:
            raise self.error(node, "tuples of fewer than two parts are not values of Sheaf")
        locals_ = {k: self.temporary("part") for k in set(places)}
        names = [locals_.get(k, "_") for k in range(len(parts))]
        return Value(Code(("{ let (", joined(names), ") = ", base.code, "; (",
                           joined([locals_[k] for k in places]), ") }")),
                     kinds.Tuple_(tuple(parts[k] for k in places)), BLOCK)

    def part_of_data(self, base, node):
        from .data import is_named_tuple
        declaration = base.kind.declaration
        constructor = declaration.constructors[0]
        if len(declaration.constructors) > 1 or not is_named_tuple(constructor.cls):
            raise self.error(node, f"{constructor.cls.__name__} has fields, and no positions", "x.field")
        index = self.constant_index(node, "a NamedTuple")
        if not -len(constructor.fields) <= index < len(constructor.fields):
            raise self.error(node.slice, f"{constructor.cls.__name__} has no field {index}")
        name, kind, _ = constructor.fields[index]
        binding = dict(zip(declaration.parameters, base.kind.arguments))
        return Value(Code((base.at(ATOM), ".", constructor.names[name])),
                     self.arrived(kinds.substitute(kind, binding)))

    # ---- Positions ----

    def read_int(self, value):
        """A tensor of one int where a number of the host is wanted."""
        if isinstance(value.kind, kinds.Tensor) and value.kind.dims == ():
            from .operators import scalar_of
            return Value(Code(("read(", value.code, ")")), scalar_of(value.kind), nonneg=value.nonneg)
        return value

    def wrapped(self, index, length):
        """A position that may be negative."""
        t = self.temporary("at")
        return Value(Code(("{ let ", t, " = ", index.code, "; if ", t, " < 0 { ", t, " + ", length,
                           " } else { ", t, " } }")), INT, BLOCK)

    def held(self, base):
        """(prefix, Value, suffix): a value that is named, so that it can stand twice."""
        if base.name is not None or isinstance(base.code, Code) and _is_path(base.code):
            return (), base, ()
        t = self.temporary("of")
        held = Value(Code((t,)), base.kind)
        return ("{ let ", t, " = ", base.code, "; "), held, (" }",)

    def position(self, node, length):
        """The code of a position: `length` is the code of the extent."""
        value = self.number(self.read_int(self.plain(node)))
        if value.is_const and isinstance(value.const, int):
            if value.const >= 0:
                return value.code
            return Code((length, f" - {-value.const}"))
        if value.kind == kinds.FLOAT:
            raise self.error(node, "a position is an int", "int(x)")
        if value.nonneg or value.kind is None:
            return value.code
        return self.wrapped(value, length).code

    def needs_length(self, node):
        """Whether a position's code needs the extent."""
        if node is None:
            return False
        const = self.constant(node)
        if const is not NO:
            return isinstance(const, int) and const < 0
        return True

    def part_of_sequence(self, base, node):
        inner = base.kind.element
        if isinstance(node.slice, ast.Slice):
            s = node.slice
            step = self.constant(s.step) if s.step is not None else 1
            if step == -1 and s.lower is None and s.upper is None:
                return Value(Code(("reverse(", base.code, ")")), base.kind, fresh=True)
            if step != 1 and step is not None:
                raise self.error(node.slice, "a slice of a list has no step here, but for [::-1]",
                                 "[xs[i] for i in range(0, len(xs), 2)]")
            if s.lower is None and s.upper is None:
                return Value(base.code, base.kind, base.prec, fresh=True)
            lower = self.constant(s.lower) if s.lower is not None else 0
            if lower == 0 and s.upper is not None and self.is_length(s.upper, base):
                return Value(base.code, base.kind, base.prec, fresh=True)
            helper = self.low.helper("list_slice")
            prefix, held, suffix = self.held(base)
            bounds = [self.plain(b) if b is not None else None for b in (s.lower, s.upper)]
            bounds = [self.number(self.read_int(b)) if b is not None else None for b in bounds]
            low = bounds[0].code if bounds[0] is not None else "0"
            high = bounds[1].code if bounds[1] is not None else Code(("len(", held.code, ")"))
            return Value(Code((*prefix, helper, "(", held.code, ", ", low, ", ", high, ")", *suffix)),
                         base.kind, BLOCK if prefix else ATOM, fresh=True)
        if isinstance(node.slice, ast.Tuple):
            raise self.error(node.slice, "a list has one position", "xs[i][j]")
        prefix, held, suffix = self.held(base) if self.needs_length(node.slice) else ((), base, ())
        at = self.position(node.slice, Code(("len(", held.code, ")")))
        return Value(Code((*prefix, held.at(ATOM), "[", at, "]", *suffix)), self.arrived(inner),
                     BLOCK if prefix else ATOM)

    @staticmethod
    def is_length(node, base):
        return (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"
                and len(node.args) == 1 and isinstance(node.args[0], ast.Name)
                and base.name == node.args[0].id)

    # ---- Tensors ----

    def part_of_tensor(self, base, node):
        kind = base.kind
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for part in parts:
            if isinstance(part, ast.Constant) and part.value is None:
                raise self.error(part, "a new axis is made by expand_dims", "expand_dims(x, axis=0)")
            if isinstance(part, ast.Constant) and part.value is Ellipsis:
                raise self.error(part, "'...' among positions is not compiled", "write ':' for each axis")
            if isinstance(part, ast.Slice) and part.step is not None and self.constant(part.step) not in (
                    1, None):
                raise self.error(part, "a slice of a tensor has no step", "x[::-1] is flip(x)")
        if len(parts) == 1 and not isinstance(parts[0], ast.Slice):
            return self.rows_of_tensor(base, parts[0], node)
        dims = kind.dims if isinstance(kind, kinds.Tensor) else None
        if dims is not None and len(parts) > len(dims):
            raise self.error(node.slice, f"{len(parts)} positions in a tensor of {len(dims)} "
                             f"{'axis' if len(dims) == 1 else 'axes'}")
        lengths = any(self.needs_length(b) for part in parts for b in (
            (part.lower, part.upper) if isinstance(part, ast.Slice) else (part,)))
        prefix, held, suffix = self.held(base) if lengths else ((), base, ())
        made, shown, runs = [], [], []
        for axis, part in enumerate(parts):
            length = self.extent(held, axis).code if lengths else ""
            run = self.run_of_rows(part) if isinstance(part, ast.Slice) else None
            if run is not None:
                low, many, extent = run
                runs.append((low, many, len(made)))
                shown.append(":")
                made.append(extent)
            elif isinstance(part, ast.Slice):
                low = self.position(part.lower, length) if part.lower is not None else ""
                high = self.position(part.upper, length) if part.upper is not None else ""
                shown.append(Code((low, ":", high)))
                extent = "?"
                if part.lower is None and part.upper is None and dims is not None:
                    extent = dims[axis]
                elif dims is not None:
                    extent = self.constant_extent(part, dims[axis]) or "?"
                made.append(extent)
            else:
                value = self.peek(part)
                if isinstance(value.kind, kinds.Tensor) and value.kind.dims != ():
                    raise self.error(part, "a tensor of positions stands alone",
                                     "x[rows] chooses rows; take_along chooses along an axis")
                shown.append(self.position(part, length))
        result = kinds.Tensor(kind.dtype, tuple(made) + dims[len(parts):] if dims is not None else None,
                              kind.vocabulary) if isinstance(kind, kinds.Tensor) else None
        code = (held.at(ATOM), "[", joined(shown), "]") if len(runs) < len(parts) else (held.code,)
        for low, many, axis in runs:
            code = ("slice(", *code, ", ", low, ", ", many, f", axis={axis})")
        return Value(Code((*prefix, *code, *suffix)), result, BLOCK if prefix else ATOM)

    def run_of_rows(self, part):
        """(first, how many, the extent) of x[a:a + n] where neither is negative: n rows, whatever a is."""
        low, high = part.lower, part.upper
        if part.step is not None or not isinstance(low, ast.Name) or not (
                isinstance(high, ast.BinOp) and isinstance(high.op, ast.Add)
                and isinstance(high.left, ast.Name) and high.left.id == low.id):
            return None
        first, many = self.plain(low), self.plain(high.right)
        if first.kind != INT or many.kind != INT or first.is_const or not first.nonneg or not (
                many.nonneg or many.is_const and many.const >= 0):
            return None
        return first.code, many.code, self.extent_of(high.right, many)

    def extent_of(self, node, value):
        """How an extent is called that an int of the host is: "?" where it has no name."""
        if value.is_const:
            return str(value.const)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
            kind = self.peek(node.args[0]).kind
            if isinstance(kind, kinds.Tensor) and kind.dims and kind.dims[0]:
                return kind.dims[0]
        return "?"

    def constant_extent(self, part, dim):
        low = self.constant(part.lower) if part.lower is not None else 0
        high = self.constant(part.upper) if part.upper is not None else None
        if not isinstance(low, int) or part.upper is not None and not isinstance(high, int):
            return None
        if dim is not None and dim.isdigit():
            size = int(dim)
            low = low + size if low < 0 else low
            high = size if part.upper is None else high + size if high < 0 else high
            return str(high - low) if high >= low else None
        if part.upper is not None and low >= 0 and high >= low:
            return str(high - low)
        return None

    def listed_rows(self, base, part, index):
        """x[[i, j]]: the rows that a list of numbers of the host names, one after the other."""
        from .operators import result
        self.low.used_operators.add("stack")
        prefix, held, suffix = self.held(base)
        row = self.row_kind(base.kind)
        if isinstance(part, ast.List) and not any(isinstance(e, ast.Starred) for e in part.elts):
            length = Code(("len(", held.code, ")"))
            rows = [Code((held.at(ATOM), "[", self.token_or_position(e, length), "]")) for e in part.elts]
            listed, count = Code(("[", joined(rows), "]")), str(len(part.elts))
        else:
            i = self.temporary("i")
            at = Value(Code((i,)), index.kind.element)
            if index.kind.element == INT:
                at = self.wrapped(at, Code(("len(", held.code, ")")))
            listed = Code(("map(|", i, "| ", held.at(ATOM), "[", at.code, "], ", index.code, ")"))
            count = None
        return Value(Code((*prefix, "stack(", listed, ")", *suffix)),
                     result("stack", [kinds.List(row)], {"count": count}), BLOCK if prefix else ATOM)

    def token_or_position(self, node, length):
        value = self.plain(node)
        return value.code if isinstance(value.kind, kinds.Tok) else self.position(node, length)

    def rows_of_tensor(self, base, part, node):
        kind = base.kind
        if isinstance(part, (ast.List, ast.ListComp)) or isinstance(part, ast.Name):
            index = self.seen(part)
        else:
            index = self.plain(part)
        from .operators import result
        if isinstance(index.kind, kinds.List):
            return self.listed_rows(base, part, index)
        if isinstance(index.kind, kinds.Tensor):
            if index.kind.dtype == "bool":
                raise self.error(part, "elements are not chosen by bools: how many there are is not known",
                                 "where(condition, a, b)")
            made = result("index", [kind, index.kind], {}) if isinstance(kind, kinds.Tensor) else None
            return Value(Code((base.at(ATOM), "[", index.code, "]")), made)
        row = kinds.Tensor(kind.dtype, kind.dims[1:] if kind.dims else None, kind.vocabulary) \
            if isinstance(kind, kinds.Tensor) else None
        if isinstance(index.kind, kinds.Tok):
            return Value(Code((base.at(ATOM), "[", index.code, "]")), row)
        prefix, held, suffix = self.held(base) if self.needs_length(part) else ((), base, ())
        at = self.position(part, Code(("len(", held.code, ")")))
        return Value(Code((*prefix, held.at(ATOM), "[", at, "]", *suffix)), row,
                     BLOCK if prefix else ATOM)


def _is_path(code):
    """Whether code is a name, or a field or a parameter of one: it costs nothing to write it twice."""
    from .text import Local
    pending, simple = list(code.parts), True
    while pending and simple:
        part = pending.pop()
        if isinstance(part, Code):
            pending += part.parts
        elif isinstance(part, Local):
            continue
        else:
            simple = isinstance(part, str) and part == "."
    return simple
