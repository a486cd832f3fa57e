"""The types that annotations of a model speak of.

    def attend(self, q: Float32["n hidden"], words: Tokens["n"]) -> tuple[Float32["hidden"], int]

`Float32["n hidden"]` is a tensor of two axes. A name that the module has as an int attribute is that
number; another one, `n`, is a size that each call brings; `?` is a size that nothing is known of,
`2*n` one that is computed. jaxtyping's spelling `Float32[Array, "n hidden"]` says the same, and so do
declared dims, `n = Dim("n")` and `Float32[n, hidden]`, for those whose linters read strings as code.
At run time an annotation is an object that says its element type and its extents, nothing more.
"""
import re

from .elements import ELEMENTS

__all__ = ["BFloat16", "Bool", "Dim", "Float16", "Float32", "Int32", "Int64", "Token", "TokenOf",
           "Tokens", "TensorType"]

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_EXTENT = re.compile(rf"(?:{_NAME}|[0-9]+|\?|[()*/%+-])+")


class Dim:
    """A size with a name: `n = Dim("n")`, then `Float32[n, 2 * n]`."""

    __slots__ = ("text", "_alone")

    def __init__(self, name):
        if not isinstance(name, str) or not re.fullmatch(_NAME, name):
            raise TypeError(f"a Dim has a name, such as Dim(\"n\"), not {name!r}")
        self.text, self._alone = name, True

    @staticmethod
    def _of(left, sign, right):
        parts = []
        for part in (left, right):
            if isinstance(part, bool) or not isinstance(part, (Dim, int)):
                return NotImplemented
            alone = part._alone if isinstance(part, Dim) else part >= 0
            text = part.text if isinstance(part, Dim) else str(part)
            parts.append(text if alone else f"({text})")
        made = object.__new__(Dim)
        made.text, made._alone = sign.join(parts), False
        return made

    def __add__(self, other): return Dim._of(self, "+", other)
    def __radd__(self, other): return Dim._of(other, "+", self)
    def __sub__(self, other): return Dim._of(self, "-", other)
    def __rsub__(self, other): return Dim._of(other, "-", self)
    def __mul__(self, other): return Dim._of(self, "*", other)
    def __rmul__(self, other): return Dim._of(other, "*", self)
    def __floordiv__(self, other): return Dim._of(self, "/", other)
    def __rfloordiv__(self, other): return Dim._of(other, "/", self)

    def __eq__(self, other): return isinstance(other, Dim) and self.text == other.text
    def __hash__(self): return hash(("Dim", self.text))
    def __repr__(self): return f"Dim({self.text!r})"


class TensorType:
    """What `Float32["n hidden"]` is: `dtype` as Sheaf calls it ("f32"), `dims` a tuple of texts or,
    of a type without brackets, None, and of tokens the `vocabulary`."""

    __slots__ = ("dtype", "dims", "vocabulary")

    def __init__(self, dtype, dims, vocabulary=""):
        self.dtype, self.dims, self.vocabulary = dtype, dims, vocabulary

    def __eq__(self, other):
        return isinstance(other, TensorType) and (self.dtype, self.dims, self.vocabulary) == (
            other.dtype, other.dims, other.vocabulary)

    def __hash__(self):
        return hash((self.dtype, self.dims, self.vocabulary))

    def __repr__(self):
        tag = f'["{self.vocabulary}"]' if self.vocabulary else ""
        return f'{_NAMES[self.dtype]}{tag}["{" ".join(self.dims)}"]'

    # Annotations are joined as types are: Float32["n"] | None.
    def __or__(self, other):
        import typing
        return typing.Union[self, other]

    def __ror__(self, other):
        import typing
        return typing.Union[other, self]

    def __call__(self, *_, **__):
        raise TypeError(f"{self!r} is the type of a tensor, for annotations; make one with zeros, "
                        "full or a NumPy array")


def _extents(text):
    """The extents of "n hidden", "2*n ?", "*rows n", "... n"."""
    dims = tuple(text.split())
    for dim in dims:
        if dim == "..." or re.fullmatch(rf"\*{_NAME}", dim):
            continue
        if not _EXTENT.fullmatch(dim):
            raise TypeError(f"{dim!r} in {text!r} is no extent of a tensor: extents are names, "
                            "numbers, '?' and what is made of them without spaces, as in \"n 2*hidden\"")
    return dims


class _Tensors:
    """`Float32` itself: brackets give extents."""

    __slots__ = ("dtype", "vocabulary")

    def __init__(self, dtype, vocabulary=""):
        self.dtype, self.vocabulary = dtype, vocabulary

    def __getitem__(self, dims):
        dims = dims if isinstance(dims, tuple) else (dims,)
        # jaxtyping's spelling says the type of the array first.
        if (len(dims) == 2 and isinstance(dims[1], str) and dims[0] is not Ellipsis
                and not isinstance(dims[0], (str, int, Dim))):
            dims = dims[1:]
        if len(dims) == 1 and isinstance(dims[0], str):
            return TensorType(self.dtype, _extents(dims[0]), self.vocabulary)
        texts = []
        for dim in dims:
            if dim is Ellipsis:
                texts.append("...")
            elif isinstance(dim, Dim):
                texts.append(dim.text)
            elif isinstance(dim, int) and not isinstance(dim, bool) and dim >= 0:
                texts.append(str(dim))
            elif isinstance(dim, str) and len(_extents(dim)) == 1:
                texts.append(dim)
            else:
                raise TypeError(f"{_NAMES[self.dtype]}[...] takes extents: \"n hidden\", or Dims and "
                                f"ints, not {dim!r}")
        return TensorType(self.dtype, tuple(texts), self.vocabulary)

    def __or__(self, other):
        return TensorType(self.dtype, (), self.vocabulary) | other

    def __call__(self, *_, **__):
        raise TypeError(f"{_NAMES[self.dtype]} is a type, for annotations; make tensors with zeros, "
                        "full or a NumPy array")

    def __repr__(self):
        return _NAMES[self.dtype] + (f'["{self.vocabulary}"]' if self.vocabulary else "")


_NAMES = {name: element.annotation for name, element in ELEMENTS.items()} | {"token": "Tokens"}

Float32, Float16, BFloat16 = _Tensors("f32"), _Tensors("f16"), _Tensors("bf16")
Int32, Int64, Bool = _Tensors("i32"), _Tensors("i64"), _Tensors("bool")
Tokens = _Tensors("token")


class TokenOf:
    """`Token["tag"]`: a number of the vocabulary `tag`, for annotations; and, called, such a number."""

    __slots__ = ("vocabulary",)

    def __init__(self, vocabulary):
        self.vocabulary = vocabulary

    def __call__(self, number):
        return Token(number)

    def __getitem__(self, dims):
        return Tokens_of(self.vocabulary)[dims]

    def __eq__(self, other):
        return isinstance(other, TokenOf) and self.vocabulary == other.vocabulary

    def __hash__(self):
        return hash(("token", self.vocabulary))

    def __or__(self, other):
        import typing
        return typing.Union[self, other]

    def __ror__(self, other):
        import typing
        return typing.Union[other, self]

    def __repr__(self):
        return f'Token["{self.vocabulary}"]'


def Tokens_of(vocabulary):
    """Tensors of tokens of a vocabulary: `Token["tag"]["n"]` is `token<tag>[n]`."""
    return _Tensors("token", vocabulary)


class Token(int):
    """A number with a vocabulary. `Token(3)` is one; in annotations `Token` is of the default
    vocabulary and `Token["tag"]` of another."""

    __slots__ = ()

    def __class_getitem__(cls, vocabulary):
        if not isinstance(vocabulary, str) or not re.fullmatch(_NAME, vocabulary):
            raise TypeError(f"Token[...] takes the name of a vocabulary, such as Token[\"tag\"], "
                            f"not {vocabulary!r}")
        return TokenOf(vocabulary)

    def __repr__(self):
        return f"Token({int(self)})"
