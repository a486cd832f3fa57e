#!/usr/bin/env python3
"""What causal attention and sliding windows take of the time of full attention, of all rows and of one query
over as many keys: attention_seen.py [ROWS ...]

8 heads of 64, one thread, the shortest of 8 runs in turn.

    PYTHONPATH=build/python taskset -c 1 /usr/bin/python3 bench/attention_seen.py 512 2048
"""
import sys
import time

import numpy as np

import sheaf

NEAR = "expand_dims(iota(m), 1) - iota(m) < 256"
SAME = "expand_dims(floor(f32(iota(m)) / 256.0), 1) == floor(f32(iota(m)) / 256.0)"
FORMS = {
    "full": ("attention(q, k, v)", ()),
    "causal": ("attention(q, k, v, causal=1)", ()),
    "window of 256": (f"masked_attention(q, k, v, {NEAR}, causal=1)", ()),
    "the same, and 4 sinks": (f"masked_attention(q, k, v, {NEAR} || iota(m) < 4, causal=1)", ()),
    "causal, in documents of 256": (f"masked_attention(q, k, v, {SAME}, causal=1)", ()),
    "causal, without skip-unseen": ("attention(q, k, v, causal=1)", ("skip-unseen",)),
}


STEP = "m - 1 - iota(m) < 256"
SINKS = f"{STEP} || iota(m) < 4"
STEPS = {
    "one query, full": ("attention(q, k, v)", ()),
    "one query, window of 256": (f"masked_attention(q, k, v, {STEP})", ()),
    "one query, and 4 sinks": (f"masked_attention(q, k, v, {SINKS})", ()),
    "a window, without skip-unseen": (f"masked_attention(q, k, v, {STEP})", ("skip-unseen",)),
    "one query, keys cut to 256": ("attention(q, slice(k, m - 256, 256, axis=1), slice(v, m - 256, 256, axis=1))", ()),
}


def compare(forms, queries, rows, given):
    models = {name: sheaf.compile(f"fn main(q: f32[8, {queries}, 64], k: f32[8, m, 64], v: f32[8, m, 64])"
                                  f" -> f32[8, {queries}, 64] = {form}", without=without)
              for name, (form, without) in forms.items()}
    times = {name: [] for name in forms}
    for _ in range(8):
        for name, model in models.items():
            data = model.encode(*given)
            begin = time.perf_counter()
            model(data)
            times[name].append((time.perf_counter() - begin) * 1e3)
    first = min(times[next(iter(forms))])
    for name, measured in times.items():
        print(f"{rows:6} rows, {name:30} {min(measured):9.2f} ms  {min(measured) / first:.2f}")


def main(sizes):
    draw = np.random.default_rng(0)
    for rows in sizes:
        q, k, v = ([draw.standard_normal((8, rows, 64), dtype=np.float32)] for _ in range(3))
        compare(FORMS, "m", rows, [q, k, v])
        compare(STEPS, "1", rows, [[q[0][:, :1]], k, v])


main([int(size) for size in sys.argv[1:]] or [512, 2048])
