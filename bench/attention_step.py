#!/usr/bin/env python3
"""How long attention of one query over caches takes against reading these once.

    PYTHONPATH=build/python taskset -c 1 /usr/bin/python3 bench/attention_step.py [ROWS [MB]]

Caches of 8,000 rows of 64 keys and as many values, 256 MB of them in turn, each read by every step of a
loop; the time of a loop of 12 steps less that of one of 4, so that handing over does not count. They are
read by the product of two vectors in NumPy. One thread, f32 and bf16, the shortest of 6 in turn.
"""
import sys
import time

import numpy as np

import sheaf

HIDDEN = 64
STEP = """
fn main(q: f32[m, 64], k: f32[n, 64], v: f32[n, 64], steps: int) -> f32[m, 64] =
  fold(|q: f32[m, 64], i| attention(q, k, v), q, range(steps))
"""


def shortest(run, times=6):
    best = float("inf")
    for _ in range(times):
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    return best


def main(rows=8000, megabytes=256):
    draw = np.random.default_rng(0)
    size = rows * HIDDEN * 4
    count = max(1, (megabytes << 20) // (2 * size))
    caches = [draw.standard_normal((rows, HIDDEN), dtype=np.float32) for _ in range(2 * count)]
    queries = [draw.standard_normal((1, HIDDEN), dtype=np.float32) for _ in range(count)]
    half = draw.standard_normal(count * rows * HIDDEN, dtype=np.float32)
    models = {"f32": sheaf.compile(STEP),
              "f32, keys laid out": sheaf.compile(STEP, without=["lying-operands"])}
    given = {steps: (queries, caches[:count], caches[count:], [steps] * count) for steps in (4, 12)}
    best = {name: {4: float("inf"), 12: float("inf")} for name in models}
    reading = float("inf")
    for _ in range(6):
        reading = min(reading, shortest(lambda: half @ half, 1))
        for name, model in models.items():
            for steps in (4, 12):
                data = model.encode(*given[steps])
                best[name][steps] = min(best[name][steps], shortest(lambda: model(data), 1))
    both = 2 * count * size
    print(f"{count} caches of {rows} rows, {both / 1e6:.0f} MB")
    reading *= 2  # of half of the bytes
    print(f"reading: {both / reading / 1e9:.1f} GB/s")
    for name in models:
        step = (best[name][12] - best[name][4]) / 8
        print(f"a step, {name}: {step * 1e3:.1f} ms, {both / step / 1e9:.1f} GB/s, {step / reading:.2f} of reading")


main(*[int(number) for number in sys.argv[1:]])
