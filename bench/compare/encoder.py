#!/usr/bin/env python3
"""An encoder layer of CoRa's size over ragged lengths beside PyTorch: encoder.py [--lengths FILE] [--threads N]

Width 512, 8 heads, inner size 2048; a line of FILE is a length, and the first 32 are taken (without a
file 32 draws between 16 and 512). Forward, attention alone, and a step of training (SGD), in f32 and in
bf16, of Sheaf and of PyTorch packed by hand: one product for all rows, attention sequence by sequence,
as written and compiled (all but attention). In each round all run in turn; the median of the ratios of
a round's times stands beside the shortest.

    PYTHONPATH=build/python taskset -c 1 python3 bench/compare/encoder.py --lengths lengths.txt
"""
import argparse
import statistics
import time

import numpy as np
import torch
import torch.nn.functional as F

import sheaf as sf
from sheaf import Float32, Module, attention, gelu, mean, nn, reshape, square, transpose

WIDTH, HEADS, INNER = 512, 8, 2048


class Layer(Module):
    def __init__(self):
        self.width, self.heads, self.head = WIDTH, HEADS, WIDTH // HEADS
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.first, self.second = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def split(self, x: Float32["n width"]) -> Float32["heads n head"]:
        return transpose(reshape(x, len(x), self.heads, self.head), 0, 1)

    def seen(self, q: Float32["n width"], k: Float32["n width"], v: Float32["n width"]) -> Float32["n width"]:
        found = attention(self.split(q), self.split(k), self.split(v))
        return reshape(transpose(found, 0, 1), len(q), self.width)

    def forward(self, x: Float32["n width"]) -> Float32["n width"]:
        x = self.norm1(x + self.out(self.seen(self.query(x), self.key(x), self.value(x))))
        return self.norm2(x + self.second(gelu(self.first(x))))

    def loss(self, x: Float32["n width"]) -> Float32[""]:
        return mean(square(self.forward(x)))


class Packed(torch.nn.Module):
    """The same by hand: rows of all sequences are one matrix."""

    def __init__(self, weights, compiled):
        super().__init__()
        w = {name: torch.tensor(np.array(value)) for name, value in weights.items()}
        parts = ("query", "key", "value")
        self.qkv = torch.nn.Parameter(torch.cat([w[p + ".weight"] for p in parts]))
        self.qkv_bias = torch.nn.Parameter(torch.cat([w[p + ".bias"] for p in parts]))
        self.w = torch.nn.ParameterDict({name.replace(".", "_"): torch.nn.Parameter(value)
                                         for name, value in w.items() if name.split(".")[0] not in parts})
        wrap = (lambda f: torch.compile(f, dynamic=True)) if compiled else (lambda f: f)
        self.before, self.after = wrap(self._before), wrap(self._after)

    def _before(self, x):
        return F.linear(x, self.qkv, self.qkv_bias)

    def _after(self, x, seen):
        w = self.w
        x = F.layer_norm(x + F.linear(seen, w["out_weight"], w["out_bias"]), (WIDTH,), w["norm1_weight"], w["norm1_bias"])
        y = F.linear(F.gelu(F.linear(x, w["first_weight"], w["first_bias"])), w["second_weight"], w["second_bias"])
        return F.layer_norm(x + y, (WIDTH,), w["norm2_weight"], w["norm2_bias"])

    @staticmethod
    def seen(qkv, lengths):
        found = []
        for part in torch.split(qkv, lengths):
            q, k, v = part.view(len(part), 3, HEADS, WIDTH // HEADS).permute(1, 2, 0, 3)
            one = F.scaled_dot_product_attention(q[None], k[None], v[None])[0]
            found.append(one.transpose(0, 1).reshape(len(part), WIDTH))
        return torch.cat(found)

    def forward(self, x, lengths):
        return self.after(x, self.seen(self.before(x), lengths))


def torch_step(net, x, lengths, optimizer):
    optimizer.zero_grad()
    y = net(x, lengths)
    torch.stack([part.square().mean() for part in torch.split(y, lengths)]).mean().backward()
    optimizer.step()


def compare(title, ours, theirs, rounds, work):
    """Prints the shortest time of each and the median of PyTorch's over Sheaf's."""
    times = {name: [] for name in ("Sheaf", *theirs)}
    for run in (ours, *theirs.values()):
        run()
    for _ in range(rounds):
        for name, run in {"Sheaf": ours, **theirs}.items():
            begin = time.perf_counter()
            run()
            times[name].append((time.perf_counter() - begin) * 1e3)
    print(title)
    for name, measured in times.items():
        over = statistics.median(t / own for t, own in zip(measured, times["Sheaf"]))
        print(f"  {name:30} {min(measured):9.2f} ms {work / min(measured) / 1e6:6.0f} GFLOP/s  {over:5.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lengths")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    draws = np.random.default_rng(0)
    lengths = ([int(line) for line in open(given.lengths).read().split()[:32]] if given.lengths
               else [int(n) for n in draws.integers(16, 513, 32)])
    rows = sum(lengths)
    products, scores = 2 * rows * WIDTH * (4 * WIDTH + 2 * INNER), sum(4 * n * n * WIDTH for n in lengths)
    xs = [draws.standard_normal((n, WIDTH), dtype=np.float32) for n in lengths]
    x = torch.tensor(np.concatenate(xs))
    print(f"{len(lengths)} sequences of {min(lengths)} to {max(lengths)} rows, {rows} in all; {given.threads} threads")

    for precision in ("f32", "bf16"):
        model = Layer()
        fast = sf.jit(model, threads=given.threads, precision=precision)
        weights = {name: np.array(value) for name, value in model.state_dict().items()}
        cast = torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16")
        nets = {"PyTorch packed": Packed(weights, False), "PyTorch packed, compiled": Packed(weights, True)}
        data = fast.encode(xs)
        with torch.no_grad(), cast:
            far = max(float(np.abs(np.concatenate(list(map(np.asarray, fast(xs)))) - nets["PyTorch packed"](x, lengths).float().numpy()).max()), 0)
            print(f"{precision}: at most {far:.1e} apart")
            compare(f"{precision}, forward", lambda: fast(data),
                    {name: (lambda net=net: net(x, lengths)) for name, net in nets.items()}, given.rounds, products + scores)
            if precision == "f32":
                qkv = nets["PyTorch packed"]._before(x).detach()
                three = [np.ascontiguousarray(part) for part in qkv.numpy().reshape(rows, 3, WIDTH).transpose(1, 0, 2)]
                cut = np.cumsum(lengths)[:-1]
                columns = [np.split(part, cut) for part in three]
                pieces = fast.seen.encode(*columns)
                compare("f32, attention alone", lambda: fast.seen(pieces),
                        {"PyTorch packed": lambda: Packed.seen(qkv, lengths)}, given.rounds, scores)
        optimizer = sf.optim.SGD(fast, lr=1e-3)
        steps = {name: torch.optim.SGD(net.parameters(), lr=1e-3) for name, net in nets.items()}

        def step(name):
            with cast:
                torch_step(nets[name], x, lengths, steps[name])

        compare(f"{precision}, a step of training", lambda: fast.train_step(optimizer, "loss", data),
                {name: (lambda name=name: step(name)) for name in nets}, given.rounds, 3 * (products + scores))


if __name__ == "__main__":
    main()
