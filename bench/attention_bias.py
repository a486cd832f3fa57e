#!/usr/bin/env python3
"""How long encoders take with biases by distance (lib/bias.sheaf) against none.

    PYTHONPATH=build/python taskset -c 1 /usr/bin/python3 bench/attention_bias.py [WORDS [LAYERS]]

Layers of attention, 8 heads of 64, over one sequence of 2,048 words; one thread, in turn, the shortest of 5.
"""
import sys
import time

import numpy as np

import sheaf

PROGRAM = """
use "lib/attention.sheaf"
use "lib/bias.sheaf"
let parts = Heads(512, 8)
let slopes = Alibi(8)
let buckets = RelativeBias(32, 8, 128)
layer Layer() {
  param qkv : f32[512, 1536] = normal(0.02)
  param out : f32[512, 512] = normal(0.02)
  fn run(x: f32[n, 512], bias: f32[8, n, n]) -> f32[n, 512] = {
    let (q, k, v) = split(x @ qkv, 3, axis=1)
    let scores = parts.split_rows(q) @ transpose(parts.split_rows(k)) * 0.125 + bias
    x + parts.join(softmax(scores) @ parts.split_rows(v)) @ out
  }
}
let layers = [Layer()] * %d
fn none(x: f32[n, 512]) -> f32[512] =
  mean(fold(|s, l| l.run(s, zeros(8, shape(s, 0), shape(s, 0))), x, layers), axis=0)
fn alibi(x: f32[n, 512]) -> f32[512] =
  mean(fold(|s, l| l.run(s, slopes.run(distances(x, x))), x, layers), axis=0)
fn t5(x: f32[n, 512]) -> f32[512] = {
  let bias = buckets.run(distances(x, x))
  mean(fold(|s, l| l.run(s, bias), x, layers), axis=0)
}
"""


def main(words=2048, layers=2):
    x = [np.random.default_rng(0).standard_normal((words, 512), dtype=np.float32)]
    models = {}
    for entry, without in [("none", []), ("alibi", []), ("t5", []), ("t5", ["by-distance"])]:
        model = sheaf.compile(PROGRAM % layers, entry=entry, without=without, seed=1)
        models[" without ".join([entry, *without])] = (model, model.encode(x))
    best = dict.fromkeys(models, float("inf"))
    for _ in range(5):
        for name, (model, data) in models.items():
            begin = time.perf_counter()
            model(data)
            best[name] = min(best[name], time.perf_counter() - begin)
    for name in models:
        print(f"{name}: {best[name] * 1e3:.0f} ms, {best[name] / best['none']:.2f} of none")


main(*[int(number) for number in sys.argv[1:]])
