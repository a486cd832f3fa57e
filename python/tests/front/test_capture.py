"""The source of what runs is found, and proved to be it; what is read of the world is watched."""
import linecache
import subprocess
import sys
import textwrap

import pytest

from conftest import HEAD, checked, lowered
from sheaf import jit
from sheaf.errors import CompileError

HALF = """
def half(x: int) -> int:
    return x // 2
"""


def test_file(module):
    assert "floor_div(x, 2)" in lowered(module(HALF).half).text


def test_edited_file(module):
    found = module(HALF)
    with open(found.__file__, "w") as file:
        file.write(HEAD + HALF.replace("// 2", "// 3"))
    with pytest.raises(CompileError, match="the file has changed since 'half' was imported") as caught:
        lowered(found.half)
    assert caught.value.filename == found.__file__


def test_edited_elsewhere(module):
    """What stands above moved; the function is where it is not any more."""
    found = module(HALF)
    with open(found.__file__, "w") as file:
        file.write("# new\n" + HEAD + HALF)
    with pytest.raises(CompileError, match="has changed since"):
        lowered(found.half)


def test_deleted_file(module, tmp_path):
    found = module(HALF)
    (tmp_path / found.__file__).unlink()
    with pytest.raises(CompileError, match="the source of 'half' is not to be found") as caught:
        lowered(found.half)
    assert "source=text" in caught.value.msg


def cell(text, name):
    """What IPython and notebooks do."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"__name__": "__main__"}
    exec(compile(text, name, "exec"), space)
    return space


def test_cell():
    space = cell(HEAD + HALF, "<ipython-input-1-abc>")
    assert "fn main" in lowered(space["half"]).text
    space = cell(HEAD + """
class M(Module):
    def __init__(self):
        self.k = 3
    def forward(self, x: int) -> int:
        return x * self.k
""", "<ipython-input-2-abc>")
    assert "x * 3" in lowered(space["M"](), "forward").text


def test_exec_needs_the_text():
    space = {"__name__": "made"}
    exec(HEAD + HALF, space)
    with pytest.raises(CompileError, match="typed at the prompt or given to exec"):
        lowered(space["half"])
    compiled = jit(space["half"], source=HEAD + HALF)
    assert "fn main(x: int)" in compiled.source()
    with pytest.raises(CompileError, match="the text given as 'source' has no 'half' that does"):
        jit(space["half"], source=HEAD + HALF.replace("2", "3")).source()


def test_a_text_beside_files():
    """Layers of files are found there, and the model in the text that is given."""
    text = HEAD + """
class M(Module):
    def __init__(self):
        self.layer = nn.Linear(3, 2)
    def forward(self, x: Float32["3"]) -> Float32["2"]:
        return self.layer(x)
"""
    space = {"__name__": "made"}
    exec(text, space)
    assert "layer Linear" in jit(space["M"](), source=text).source()


def test_command_line():
    program = HEAD + HALF + textwrap.dedent("""
        from sheaf import jit
        try:
            jit(half).source()
        except SyntaxError as error:
            print(error.msg)
        else:
            print("found")
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    kept = sys.version_info >= (3, 13)
    assert ("found" if kept else "not to be found") in done.stdout


def test_decorated(module):
    found = module("""
import functools
def twice(f):
    @functools.wraps(f)
    def g(*args):
        return f(f(*args))
    return g
@twice
def f(x: int) -> int:
    return x + 1
def registered(f):
    return f
@registered
def g(x: int) -> int:
    return x + 1
""")
    with pytest.raises(CompileError, match="any number of arguments"):
        lowered(found.f)
    assert "x + 1" in lowered(found.g).text


def test_closures(module):
    found = module("""
def make(k, step):
    @dataclass
    class Box:
        value: "Inner"
    @dataclass
    class Inner:
        value: int
    def f(b: Box) -> int:
        return step(b.value.value) + k
    Inner
    def g(b: "Box") -> int:
        return k
    return f, g, Inner
def inc(x: int) -> int:
    return x + 1
f, g, Inner = make(5, inc)
""")
    text = lowered(found.f, extra={"Inner": found.Inner}).text
    assert "+ 5" in text and "data Box = Box(value: Inner)" in text
    with pytest.raises(CompileError, match="name 'Box' is not defined"):
        lowered(found.g)


def test_two_of_a_name(module):
    found = module("""
def f(x: int) -> int:
    return x
first = f
def f(x: int) -> int:
    return x + 1
""")
    assert "x + 1" not in lowered(found.first).text
    assert "x + 1" in lowered(found.f).text


def test_inherited_and_super(module):
    found = module("""
class A(Module):
    def __init__(self):
        self.k = 1
    @property
    def twice(self):
        return 2 * self.k
    def step(self, x: int) -> int:
        return x + self.k
    def forward(self, x: int) -> int:
        return self.step(x)
class B(A):
    def step(self, x: int) -> int:
        return super().step(x) * self.twice
""")
    program = checked(lowered(found.B(), "forward"))
    assert "* 2" in program.text


def test_future_annotations(module):
    found = module("""
@dataclass
class Leaf:
    word: Token
@dataclass
class Node:
    left: Tree
    right: Tree
Tree = Leaf | Node
def f(t: Tree, x: Float32["n"]) -> list[Float32["n"]]:
    return [x]
""", head="from __future__ import annotations\n" + HEAD)
    assert "fn main(t: Tree, x: f32[n]) -> list<f32[n]>" in checked(lowered(found.f)).text


def test_what_is_read_is_watched(module):
    pytest.importorskip("sheaf._native")
    found = module("""
K = 3
def inner(x: int) -> int:
    return x * K
def f(x: int) -> int:
    return inner(x)
""")
    fast = jit(found.f)
    assert list(fast([1, 2])) == [3, 6]
    found.K = 4
    with pytest.raises(RuntimeError, match=r"'K' has changed since the model was compiled \(3, now 4\)"):
        fast([1])
    found.K = 3
    assert list(fast([1])) == [3]
    found.inner = found.f
    with pytest.raises(RuntimeError, match="'inner' has changed"):
        fast([1])


def test_constants_of_modules_are_watched(module):
    pytest.importorskip("sheaf._native")
    found = module("""
class M(Module):
    def __init__(self):
        self.k = 3
    def forward(self, x: int) -> int:
        return x * self.k
""")
    model = found.M()
    fast = jit(model)
    assert list(fast([2])) == [6]
    model.k = 4
    with pytest.raises(RuntimeError, match="'k' has changed"):
        fast([2])
    assert list(jit(model)([2])) == [8]
