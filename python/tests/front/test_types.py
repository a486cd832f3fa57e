"""Annotations in all spellings, and what they are in the text."""
import pytest

from conftest import checked, lowered
from sheaf.errors import CompileError
from sheaf.types import Bool, Dim, Float32, Int32, Token, Tokens

n, hidden = Dim("n"), Dim("hidden")


def test_spellings_are_one():
    class Array:
        pass
    assert Float32["n hidden"] == Float32[n, hidden] == Float32[Array, "n hidden"] == Float32["n", "hidden"]
    assert Float32["2*n n+1"] == Float32[2 * n, n + 1] and Float32[3, n].dims == ("3", "n")
    assert Float32[2 * (n + 1)].dims == ("2*(n+1)",) and Float32[""].dims == () and Float32[..., n].dims == (
        "...", "n")
    assert repr(Float32["n ?"]) == 'Float32["n ?"]' and repr(Token["tag"]["n"]) == 'Tokens["tag"]["n"]'
    assert Token(3) == 3 and Token["tag"](3) == 3 and isinstance(Token(3), int)
    for wrong in ("n h!", "a,b", "n->m"):
        with pytest.raises(TypeError, match="no extent"):
            Float32[wrong]
    with pytest.raises(TypeError, match="takes extents"):
        Float32[3.5]
    with pytest.raises(TypeError, match="the name of a vocabulary"):
        Token[3]
    with pytest.raises(TypeError, match="for annotations"):
        Float32["n"](3)
    with pytest.raises(TypeError, match="a Dim has a name"):
        Dim("2n")


@pytest.mark.parametrize("annotation, text", [
    ("int", "int"), ("bool", "bool"), ("float", "float"), ("Token", "token"), ("Token['tag']", "token<tag>"),
    ("Float32['']", "f32"), ("Bool['']", "bool[]"), ("Tokens['']", "token[]"), ("Tokens['n']", "token[n]"),
    ("Token['tag']['n']", "token<tag>[n]"), ("Float32['n 2*n']", "f32[n, 2*n]"), ("Int64['3']", "i64[3]"),
    ("BFloat16['n']", "bf16[n]"), ("list[Float32['? 3']]", "list<f32[?, 3]>"),
    ("tuple[int, list[tuple[Token, float]]]", "(int, list<(token, float)>)"), ("int | None", "Option<int>"),
    ("Optional[list[int]]", "Option<list<int>>"), ("'list[int]'", "list<int>"),
    ("list['Pair']", "list<Pair>"), ("Rose[int]", "Rose<int>"), ("Rose[Float32['3']]", "Rose<f32[3]>"),
    ("Shape", "Shape"), ("'Shape | None'", "Option<Shape>"), ("Callable[[int], bool]", "(int) -> bool"),
])
def test_types(module, annotation, text):
    found = module(f"""
T = TypeVar("T")
class Pair(NamedTuple):
    a: int
    b: float = 0.5
@dataclass
class Rose(Generic[T]):
    value: T
    kids: "list[Rose[T]]"
@dataclass
class Circle:
    radius: float
@dataclass
class Square:
    side: float
    inside: "Shape | None" = None
Shape = Circle | Square
def g(x: {annotation}, n: Float32["n"]) -> int:
    return 0
def f(y: int) -> int:
    return y
""")
    program = lowered(found.g)
    assert f"(x: {text}, n" in program.text
    if "->" not in text:
        checked(program)


def test_names_of_shapes_are_ints_of_the_module(module):
    found = module("""
class M(Module):
    K = 7
    def __init__(self):
        self.hidden, self.heads = 12, 3
    @property
    def head(self):
        return self.hidden // self.heads
    def forward(self, x: Float32["n heads*head"], y: Float32["K hidden/4 n"]) -> Float32["hidden n"]:
        return x.T
""")
    assert "fn main(x: f32[n, 12], y: f32[7, 3, n]) -> f32[12, n]" in checked(lowered(found.M(), "forward")).text
    found = module("""
class M(Module):
    def __init__(self):
        self.hidden = 10
    def forward(self, x: Float32["hidden/4"]) -> int:
        return 0
""")
    with pytest.raises(CompileError, match=r"the extent 'hidden/4' is 2.5, no whole number"):
        lowered(found.M(), "forward")


def test_a_field_with_a_size_of_its_own(module):
    found = module("""
@dataclass
class P:
    x: Float32["n"]
def f(p: P) -> int:
    return 0
""")
    with pytest.raises(CompileError, match="the field 'x' of P: the extent 'n' is no number"):
        lowered(found.f)
