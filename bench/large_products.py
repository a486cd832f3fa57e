#!/usr/bin/env python3
"""Products of the instances' own matrices against OpenBLAS: large_products.py [N ...]

One thread, square matrices: `a @ b`, with either of them transposed, two products in one sum or
one after the other, and that of a triangle (`masked_matmul`). In turn with the same where nothing is
packed and with cblas_sgemm of whole matrices; ratios to that are divided by the products' share of
its FLOP: 2 of two, (N + 1) / 2N of a triangle. Times are
the shortest of 6, in processor time. Also eight products at once, their extents drawn from 512, 640,
..., 1,408, over products padded to the greatest.

    PYTHONPATH=build/python taskset -c 1 /usr/bin/python3 bench/large_products.py 512 1024 1536 2048
"""
import ctypes
import ctypes.util
import os
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

import sheaf

FORMS = {
    "a @ b": ("a: f32[m, k], b: f32[k, n]", "a @ b", (False, False)),
    "a @ transpose(b)": ("a: f32[m, k], b: f32[n, k]", "a @ transpose(b)", (False, True)),
    "transpose(a) @ b": ("a: f32[k, m], b: f32[k, n]", "transpose(a) @ b", (True, False)),
    "a @ b + b @ a": ("a: f32[m, m], b: f32[m, m]", "a @ b + b @ a", (False, False)),
    "softmax(a @ b) @ b": ("a: f32[m, m], b: f32[m, m]", "softmax(a @ b) @ b", (False, False)),
    "triangle": ("a: f32[m, m], b: f32[m, n]", "masked_matmul(a, b, iota(m) <= expand_dims(iota(m), 1))",
                 (False, False)),
}
ROUNDS = 6
BLAS = ctypes.CDLL(ctypes.util.find_library("openblas") or "libopenblas.so.0")


def sgemm(a, b, transposed):
    """What multiplies these matrices, row by row in memory."""
    (m, k), n = (a.shape[::-1] if transposed[0] else a.shape), b.shape[0 if transposed[1] else 1]
    c = np.empty((m, n), np.float32)
    pointer, one, zero = (lambda x: x.ctypes.data_as(ctypes.c_void_p)), ctypes.c_float(1), ctypes.c_float(0)
    flags = [112 if t else 111 for t in transposed]
    return lambda: BLAS.cblas_sgemm(101, *flags, m, n, k, one, pointer(a), a.shape[1], pointer(b), b.shape[1], zero,
                                    pointer(c), n)


def shortest(runs):
    times = [[] for _ in runs]
    for _ in range(ROUNDS):
        for run, measured in zip(runs, times):
            begin = time.process_time()
            run()
            measured.append(time.process_time() - begin)
    return [min(measured) for measured in times]


def compiled(arguments, body):
    result = "f32[m, n]" if "n" in arguments else "f32[m, m]"
    text = f"fn main({arguments}) -> {result} = {body}"
    return [sheaf.compile(text, without=without) for without in ((), ("pack-matrices",))]


def main(sizes):
    draw = np.random.default_rng(0)
    for name, (arguments, body, transposed) in FORMS.items():
        models = compiled(arguments, body)
        for n in sizes:
            a, b = (draw.standard_normal((n, n), dtype=np.float32) for _ in range(2))
            given = [model.encode([a], [b]) for model in models]
            runs = [lambda model=model, data=data: model(data) for model, data in zip(models, given)]
            packed, lying, blas = shortest([*runs, sgemm(a, b, transposed)])
            share = (n + 1) / (2 * n) if name == "triangle" else body.count(" @ ")
            print(f"{name:18} {n:5}  {2e-9 * n**3 * share / packed:6.1f} GFLOP/s  over OpenBLAS by share"
                  f" {packed / blas / share:.2f}, not packed {lying / blas / share:.2f}", flush=True)
    extents = draw.integers(4, 12, size=(8, 3)) * 128
    models = compiled(*FORMS["a @ b"][:2])
    pairs = [[draw.standard_normal(shape, dtype=np.float32) for shape in ((m, k), (k, n))] for m, k, n in extents]
    m, k, n = extents.max(axis=0)
    whole = sgemm(*(draw.standard_normal(shape, dtype=np.float32) for shape in ((m, k), (k, n))), (False, False))
    given = [model.encode([a for a, _ in pairs], [b for _, b in pairs]) for model in models]
    runs = [lambda model=model, data=data: model(data) for model, data in zip(models, given)]
    packed, lying, blas = shortest([*runs, lambda: [whole() for _ in pairs]])
    share = sum(int(np.prod(e, dtype=np.int64)) for e in extents) / (8 * int(m) * int(k) * int(n))
    print(f"eight of {extents.min()} to {extents.max()}: over OpenBLAS by share {packed / blas / share:.2f},"
          f" not packed {lying / blas / share:.2f}; share {share:.2f}")


main([int(size) for size in sys.argv[1:]] or [512, 1024, 1536, 2048])
