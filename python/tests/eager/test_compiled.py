"""Eager operators against compiled code: the lines of tests/gradients/operators.txt, and the ends of
what operators are defined for, each in one program."""
import json
import os
import re

import numpy as np

import sheaf as sf
from conftest import array, assert_close
from sheaf import ops

LINES = os.path.join(os.path.dirname(__file__), "..", "..", "..", "tests", "gradients", "operators.txt")
I, K, N = 1, [1, 0, 2], 3
# What Python writes otherwise, or draws by sites that eager code does not know.
OTHERWISE = re.compile(r"fold|random|sample")

# Name, operands by name, the expression in `.sheaf` (and in Python, where that differs). Beside them
# stand i, k and n as above, p of numbers that are not finite, w of ints, and e without elements.
P = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -2.0, 90.0, -104.0, 5.0]
W = [2147483647, -2147483648, 0, -1, 7]
HALF = [0.1, 2049.0, 1e5, -1e-8, 3.0]
ENDS = """
f32(p == p) ; f32(p != p) ; f32(p < 1.5) ; f32(p <= p) ; f32(p > -2) ; f32(p >= 0)
f32(p > 0 && p < 2) ~ f32((p > 0) & (p < 2)) ; f32(p > 0 || p < 2) ~ f32((p > 0) | (p < 2))
f32(!(p > 0)) ~ f32(~(p > 0)) ; where(p > 0, p, 1.0)
maximum(p, 1.0) ; minimum(1.0, p) ; clamp(p, -1.0, 1.0) ; abs(p) ; sign(p) ; square(p) ; -p
p + 1 ; 1 - p ; p * 0 ; p / p ; 1 / p ; pow(p, 2.0) ; pow(p, 0.5) ; pow(2.0, p)
exp(p) ; log(p) ; log1p(p) ; expm1(p) ; sqrt(p) ; rsqrt(p) ; erf(p) ; tanh(p) ; floor(p) ; ceil(p)
sin(where(abs(p) < 100.0, p, 3.0)) ; cos(where(abs(p) < 100.0, p, 3.0))
sigmoid(p) ; relu(p) ; leaky_relu(p, slope=0.2) ; silu(where(p > -100.0, p, 2.0)) ; softplus(p) ; log_sigmoid(p)
gelu(p[4:]) ; gelu_tanh(p[4:]) ; xlogy(p, p) ; xlogy(0.0, p) ; bce_with_logits(p, 0.5) ; huber(p, 0.0)
sum(p) ; max(p) ; min(p) ; argmax(p) ; argmax(p[5:]) ; norm(p[:2]) ; mean(p[5:]) ; logsumexp(p[2:4]) ; logsumexp(p)
logsumexp(p[3:4]) ; softmax(p[2:4]) ; softmax(p[3:4]) ; softmax(p) ; log_softmax(p[2:4]) ; log_softmax(p[5:])
cross_entropy(p[2:4], 1) ; cross_entropy(p[5:], 0) ; log_prob(p[5:], 2) ; cumsum(p[5:]) ; flip(p)
sum(e) ; max(e) ; min(e) ; mean(e) ; argmax(e) ; logsumexp(e) ; norm(e) ; softmax(e) ; cumsum(e) ; mse(e, e)
e + 1 ; concat(e, p) ; pad(e, 1, 2, value=3.5) ; entropy(e) ; stack([e, e]) ; sum(stack([e, e]), axis=1)
max(stack([e, e]), axis=1) ; stack([e, e]) @ zeros(len(e), 3) ; transpose(stack([e, e])) ; layer_norm(p[5:], p[5:], p[5:])
rms_norm(p[5:], ones(5), eps=0.5) ; layer_norm(stack([e, e]), e, e)
w + 1 ; w * w ; w - 1 ; -w ; abs(w) ; square(w) ; sign(w) ; relu(w) ; sum(w) ; max(w) ; min(w) ; argmax(w) ; cumsum(w)
clamp(w, -1, 1) ; maximum(w, 0) ; i64(w) + 1 ; i32(i64(w) + 1) ; f32(w) ; i32(p) ; bool(p) ; bool(w) ; sum(stack([w, w]), axis=0)
i32(p * 1e9) ; i64(p[2:7]) ; f32(f16(h)) ; f32(bf16(h)) ; f32(bf16(p)) ; f32(f16(p)) ; f32(f16(h) * f16(sin(h))) ; f32(sum(f16(h)))
f32(softmax(f16(h))) ; f32(exp(f16(p))) ; f32(f16(p) @ f16(p)) ; f32(mean(f16(p[5:])))
p[w] ; w[k] ; w[i32(p)] ; gather(p, k - 1) ; gather(p[2:5] > 0, k - 2) ; embedding(stack([p, p]), k) ; stack([p, p])[k - 1]
cross_entropy(stack([p[5:], p[5:]]), k[:2] + 4) ; one_hot(k - 1, 2) ; one_hot(7, 3) ; one_hot(i, 3) ; iota(n) ; iota(0)
take_along(p, w) ; segment_sum(p[5:], w, 2) ; segment_sum(w[0:0], k[0:0], 2)
scatter_add(p[5:], k - 1, p[5:8]) ; scatter_add(w, k, k) ; tril(outer(h, h)) ; triu(stack([w, w]), k=1)
element(outer(h, h), i, axis=1) ; slice(p, i, n) ; squeeze(expand_dims(w, axis=-1), axis=1) ; reshape(p, 2, 5)[i, 1:n]
broadcast_to(2.5, 2, 3) ; broadcast_to(k, 2, 3) ; full(0.1, 3) ; zeros(2, 0) ; ones(n) ; p[i] ; index(p, n)
attention(e2, zeros(0, 4), zeros(0, 3)) ; attention(zeros(2, 4), e2, e2, causal=1) ; attention(zeros(0, 4), e2, e2)
masked_attention(e2, e2, e2, e2 @ transpose(e2) > 1e9) ; masked_attention(e2[0], e2, e2, iota(3) > 0) ; attention(e2, e2, e2, scale=0.3)
masked_attention(e2, e2, e2, p[7:] * 0, causal=1) ; attention(stack([e2, e2]), e2, e2) ; attention(e2[i], e2, e2 * p[5])
rope(e2, start=n) ; rope(e2[0], start=100000) ; rope(e2, start=2, base=500) ; dot(h, h) ; outer(p, h) ; p[5:] @ outer(h, h)
einsum("ij,jk->ki", e2, transpose(e2)) ; einsum("ij", e2) ; einsum("ab,cb->ac", e2, e2) ; stop_gradient(p)
entropy(softmax(p[5:])) ; kl_div(softmax(p[5:]), softmax(h)) ; mse(h, 1.0) ; dropout(h, 0.5)
"""
PAIRS = ["top_k(p, 4)", "top_k(w, 2)", "sort(p)", "sort(w, descending=1)", "sort(outer(p, h), axis=0)",
         "top_k(p - p, 3)", "sort(stack([p, p]), axis=0, descending=1)", "split(p, 2)"]


def cases():
    """(operands by name, .sheaf, Python)."""
    made = []
    for number, line in enumerate(open(LINES, encoding="utf-8")):
        line = line.split("#")[0].rstrip()
        if not line or line.startswith(" ") or OTHERWISE.search(line):
            continue
        operands, expression = line.split("|", 1)
        draw = np.random.default_rng(number)
        low, high = (0.5, 1.5) if operands.startswith("s:") else (-1, 1)
        shapes = [[N if e.strip() == "n" else int(e) for e in shape.split(",") if e.strip()]
                  for shape in re.findall(r"\[([^\]]*)\]", operands)]
        values = [draw.uniform(low, high, shape).astype(np.float32) for shape in shapes]
        made.append((dict(zip("abcd", values)), expression.strip(), expression.strip()))
    for text in ENDS.replace("\n", " ; ").split(" ; "):
        if text.strip():
            there, _, here = text.partition(" ~ ")
            made.append(({}, there.strip(), (here or there).strip()))
    return made


COMMON = {"p": (P, "f32[10]"), "w": (W, "i32[5]"), "h": (HALF, "f32[5]"), "e": ([], "f32[m]"),
          "e2": (np.linspace(-1, 1, 12).reshape(3, 4).tolist(), "f32[3, 4]"), "i": (I, "int"),
          "k": (K, "i32[3]"), "n": (N, "int")}
HELPERS = """
fn first((a, b): (f32[n, m], i32[n, m])) -> f32[n, m] = a
fn split_and_join(a: f32[6]) -> f32[4] = { let (x, y, z) = split(a, 3)
  concat(x * z, y) }
"""


def names():
    """What expressions see in Python."""
    space = {name: getattr(sf, function.__name__) for name, function in ops.OPERATORS.items()}
    space |= {"first": lambda pair: pair[0], "einsum": sf.einsum,
              "split_and_join": lambda a: sf.concat(*(lambda x, y, z: (x * z, y))(*sf.split(a, 3)))}
    space |= {name: value if kind == "int" else sf.tensor(np.array(value, np.int32 if "i32" in kind else
                                                                   np.float32))
              for name, (value, kind) in COMMON.items()}
    return space


def finite(x):
    """JSON has no infinities: the command takes them as strings."""
    if isinstance(x, list):
        return [finite(y) for y in x]
    return x if np.isfinite(x) else {"inf": "Infinity", "-inf": "-Infinity"}.get(str(x), "NaN")


def test_against_compiled_code(sheaf, tmp_path):
    space, params, data, functions, calls, wanted = names(), [], {}, [HELPERS], [], []
    for name, (value, kind) in COMMON.items():
        params.append(f"{name}: {kind}")
        data[name] = finite(value)
    every = [(given, there, [eval(here, dict(space), {name: sf.tensor(x) for name, x in given.items()})])
             for given, there, here in cases()]
    every += [({}, there, list(eval(there, dict(space)))) for there in PAIRS]
    for number, (given, there, results) in enumerate(every):
        for name, value in given.items():
            params.append(f"c{number}_{name}: {ops.tensors.type_of(value)}")
            data[f"c{number}_{name}"] = value.tolist()
        typed = [f"{name}: {ops.tensors.type_of(value)}" for name, value in given.items()]
        typed += [f"{name}: {kind}" for name, (_, kind) in COMMON.items() if name not in given]
        # Extents that an int of the instance says are not known before.
        kinds = [f"{ops.tensors.NAMES[r.dtype]}[{', '.join('?' * r.ndim)}]" if r.ndim else
                 ops.tensors.type_of(r) for r in results]
        functions.append(f"fn case{number}({', '.join(typed)}) -> "
                         f"{kinds[0] if len(kinds) == 1 else '(' + ', '.join(kinds) + ')'} = {{ {there} }}")
        calls.append(f"case{number}(" + ", ".join(
            [f"c{number}_{name}" for name in given] + [name for name in COMMON if name not in given]) + ")")
        wanted.append((there, results))
    result = ", ".join("(" + ", ".join(calls[i:i + 20]) + ", 0)" for i in range(0, len(calls), 20))
    (tmp_path / "m.sheaf").write_text("\n".join(functions) + f"\nfn main({', '.join(params)}) =\n  ({result})\n")
    (tmp_path / "m.jsonl").write_text(json.dumps(data) + "\n")
    done = sheaf("run", tmp_path / "m.sheaf", "--data", tmp_path / "m.jsonl")
    got = [x for group in json.loads(done.stdout) for x in group[:-1]]
    assert len(got) == len(wanted) > 250
    for (there, results), given in zip(wanted, got):
        for eager, compiled in zip(results, given if len(results) > 1 else [given]):
            # f16 was rounded on the way, at places that differ.
            loose = 2e-3 if "f16" in there else 1e-5
            assert_close(eager, array(compiled).reshape(eager.shape), there, loose)
    text = " ".join(there for _, there, _ in every)
    signs = {"add": "+", "sub": "-", "mul": "*", "div": "/", "neg": "-p", "matmul": "@", "eq": "==", "ne": "!=",
             "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "&&", "or": "||", "not": "!(", "rows": "rows("}
    untested = [name for name in ops.OPERATORS if not re.search(rf"\b{name}\(", text)
                and signs.get(name, "\0") not in text and name not in ("random", "random_normal", "sample")]
    assert not untested
