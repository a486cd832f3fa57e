#!/usr/bin/env python3
"""Decoding of many prompts at once beside PyTorch, GPT-2 small's sizes: decode.py [--prompts N] [--new N]

Prompts of 16 to 512 random tokens, random weights, the likeliest token each time, one thread. Sheaf runs
models/gpt2.sheaf as it is, each prompt as long as it is. PyTorch has the prompts padded on the left to the
longest, caches of a fixed size that steps write into, and attention over what is there by now
(scaled_dot_product_attention with a mask). The tokens are compared. Then Sheaf writes for prompts one at
a time. A step's time is the difference of runs with many and with one new token. Sheaf keeps its memory
for the next run, so its first one is told apart.

    PYTHONPATH=build/python taskset -c 1 python3 bench/compare/decode.py
"""
import argparse
import os
import time

import numpy as np
import torch
import torch.nn.functional as F
from common import MODELS

import sheaf

HIDDEN, HEADS, LAYERS, VOCAB, POSITIONS = 768, 12, 12, 50257, 1024
torch.set_num_threads(1)
torch.set_grad_enabled(False)


class Gpt2:
    """A step takes rows for each prompt, written at the same place of all caches."""

    def __init__(self, weights):
        self.w = {name: torch.tensor(np.array(value)) for name, value in weights.items()}
        self.head = self.w["wte.weight"].t().contiguous()

    def norm(self, x, name):
        return F.layer_norm(x, (HIDDEN,), self.w[name + ".weight"], self.w[name + ".bias"], 1e-5)

    def dense(self, x, name):
        return torch.addmm(self.w[name + ".bias"], x.reshape(-1, x.shape[-1]), self.w[name + ".weight"]).view(*x.shape[:-1], -1)

    def step(self, words, places, caches, at, mask):
        w, (batch, rows) = self.w, words.shape
        x = w["wte.weight"][words] + w["wpe.weight"][places]
        for i, cache in enumerate(caches):
            name = f"h.{i}"
            q, k, v = self.dense(self.norm(x, name + ".ln_1"), name + ".attn.c_attn") \
                .view(batch, rows, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            cache[0, :, :, at:at + rows], cache[1, :, :, at:at + rows] = k, v
            seen = F.scaled_dot_product_attention(q, cache[0, :, :, :at + rows], cache[1, :, :, :at + rows], attn_mask=mask)
            x = x + self.dense(seen.transpose(1, 2).reshape(batch, rows, HIDDEN), name + ".attn.c_proj")
            inner = F.gelu(self.dense(self.norm(x, name + ".ln_2"), name + ".mlp.c_fc"), approximate="tanh")
            x = x + self.dense(inner, name + ".mlp.c_proj")
        return self.norm(x[:, -1], "ln_f") @ self.head

    def generate(self, prompts, new):
        lengths = torch.tensor([len(prompt) for prompt in prompts])
        longest, batch = int(lengths.max()), len(prompts)
        padded = torch.stack([F.pad(torch.tensor(p, dtype=torch.long), (longest - len(p), 0)) for p in prompts])
        begin = longest - lengths
        caches = [torch.zeros(2, batch, HEADS, longest + new, HIDDEN // HEADS) for _ in range(LAYERS)]
        columns = torch.arange(longest + new)
        there = columns >= begin[:, None]
        causal = columns[:longest, None] >= columns[:longest]
        mask = (there[:, None, :longest] & causal)[:, None]
        mask |= ~there[:, None, :longest, None] & (columns[:longest] == 0)  # rows of padding see something
        places = (columns[:longest] - begin[:, None]).clamp(min=0)
        scores, written = self.step(padded, places, caches, 0, mask), []
        for at in range(longest, longest + new):
            words = scores.argmax(1, keepdim=True)
            written.append(words)
            if len(written) < new:
                scores = self.step(words, (at - begin)[:, None], caches, at, there[:, None, None, :at + 1])
        return torch.cat(written, 1)


def timed(run):
    begin = time.perf_counter()
    found = run()
    return time.perf_counter() - begin, found


def report(name, one, many, prompts, new):
    print(f"{name:24} prompts {one:7.2f} s; a step {(many - one) / (new - 1) * 1e3:8.1f} ms; "
          f"{prompts * new / many:7.1f} tokens/s in all, {prompts * (new - 1) / (many - one):7.1f} in steps", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prompts", type=int, default=64)
    parser.add_argument("--new", type=int, default=128)
    parser.add_argument("--alone", type=int, default=4, help="how many to write for one at a time")
    given = parser.parse_args()
    draw = np.random.default_rng(0)
    model = sheaf.load(os.path.join(MODELS, "gpt2.sheaf"), entry="generate", dims={"vocab": VOCAB})
    lengths = np.linspace(16, 512, given.prompts).astype(int)
    draw.shuffle(lengths)
    prompts = [draw.integers(0, VOCAB, n).astype(np.int32) for n in lengths]
    ours = lambda some, new: model(some, [new] * len(some))
    one, _ = timed(lambda: ours(prompts, 1))
    many, found = timed(lambda: ours(prompts, given.new))
    report("Sheaf, first run", one, many, given.prompts, given.new)
    one, many = (timed(lambda: ours(prompts, new))[0] for new in (1, given.new))
    report("Sheaf", one, many, given.prompts, given.new)
    some = prompts[:given.alone]
    one = sum(timed(lambda p=p: ours([p], 1))[0] for p in some)
    many = sum(timed(lambda p=p: ours([p], given.new))[0] for p in some)
    report("Sheaf, one at a time", one, many, len(some), given.new)
    peer = Gpt2(model.parameters)
    one, _ = timed(lambda: peer.generate(prompts, 1))
    many, theirs = timed(lambda: peer.generate(prompts, given.new))
    report("PyTorch, padded", one, many, given.prompts, given.new)
    same = np.mean([np.array_equal(np.asarray(a), b.numpy()) for a, b in zip(found, theirs)])
    print(f"texts that are equal: {same:.0%}")


main()
