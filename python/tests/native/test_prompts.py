"""A row of causal attention has the same bits however its prompt is divided."""
import numpy as np
import pytest

import sheaf

# Rows come in pieces, each is appended to a cache and sees what is in it.
SOURCE = """
dim width = 16, heads = {heads}, groups = {groups}, d = 4
param wq: f32[width, heads * d] = glorot
param wk: f32[width, groups * d] = glorot
param wv: f32[width, groups * d] = glorot
param wo: f32[heads * d, width] = glorot

fn queries(x: f32[n, heads * d]) -> f32[heads, n, d] = transpose(reshape(x, n, heads, d), 0, 1)
fn keys(x: f32[n, groups * d]) -> f32[groups, n, d] = transpose(reshape(x, n, groups, d), 0, 1)

fn see(x: f32[n, width], ks: f32[m, groups * d], vs: f32[m, groups * d]) -> f32[n, width] = {{
  let here = expand_dims(iota(n), 1) + (m - n)
  let near = here - iota(m) < {window}
  let q = rope(queries(x @ wq), start=m - n)
  let seen = masked_attention(q, rope(keys(ks)), keys(vs), near, causal=1)
  reshape(transpose(seen, 0, 1), n, heads * d) @ wo
}}

fn main(pieces: list<f32[?, width]>) -> f32[?, width] = {{
  let (_, _, all) = fold(|(ks, vs, all), x| {{
    let ks = concat(ks, x @ wk)
    let vs = concat(vs, x @ wv)
    check len(ks) == len(vs)
    (ks, vs, concat(all, see(x, ks, vs)))
  }}, (zeros(0, groups * d), zeros(0, groups * d), zeros(0, width)), pieces)
  all
}}
"""


def divided(rows, draw, most):
    cuts, at = [], 0
    while at < len(rows):
        size = int(draw.integers(1, most + 1))
        cuts.append(rows[at:at + size])
        at += size
    return cuts


@pytest.mark.parametrize("heads, groups", [(4, 4), (4, 2), (3, 1)])
@pytest.mark.parametrize("window", [20, 1000000])
@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_divisions(heads, groups, window, precision):
    model = sheaf.compile(SOURCE.format(heads=heads, groups=groups, window=window), precision=precision)
    draw = np.random.default_rng(heads + groups + window)
    prompts = [draw.standard_normal((int(n), 16), dtype=np.float32) for n in (1, 2, 47, 49, 64, 65, 97, 130)]
    whole = model([[rows] for rows in prompts])
    tried = [divided(rows, draw, most) for rows in prompts for most in (1, 3, 70)]
    together = model(tried)
    for number, pieces in enumerate(tried):
        expected = whole[number // 3]
        assert np.array_equal(together[number], expected), (heads, groups, window, [len(p) for p in pieces])
        if number % 3:
            assert np.array_equal(model([pieces])[0], expected)
