#!/usr/bin/env python3
"""What causal attention and sliding windows take of the time of full attention: attention_seen.py [ROWS ...]

8 heads of 64, one thread, the shortest of 8 runs in turn.

    PYTHONPATH=build/python taskset -c 1 /usr/bin/python3 bench/attention_seen.py 512 2048
"""
import sys
import time

import numpy as np

import sheaf

SHAPE = "f32[8, n, 64]"
NEAR = "expand_dims(iota(n), 1) - iota(n) < 256"
FORMS = {
    "full": ("attention(q, k, v)", ()),
    "causal": ("attention(q, k, v, causal=1)", ()),
    "window of 256": (f"masked_attention(q, k, v, {NEAR}, causal=1)", ()),
    "causal, without skip-unseen": ("attention(q, k, v, causal=1)", ("skip-unseen",)),
}


def main(sizes):
    models = {name: sheaf.compile(f"fn main(q: {SHAPE}, k: {SHAPE}, v: {SHAPE}) -> {SHAPE} = {form}", without=without)
              for name, (form, without) in FORMS.items()}
    draw = np.random.default_rng(0)
    for rows in sizes:
        given = [[draw.standard_normal((8, rows, 64), dtype=np.float32)] for _ in range(3)]
        times = {name: [] for name in FORMS}
        for _ in range(8):
            for name, model in models.items():
                data = model.encode(*given)
                begin = time.perf_counter()
                model(data)
                times[name].append((time.perf_counter() - begin) * 1e3)
        for name, measured in times.items():
            print(f"{rows:6} rows, {name:28} {min(measured):9.2f} ms  {min(measured) / min(times['full']):.2f}")


main([int(size) for size in sys.argv[1:]] or [512, 2048])
