"""BERT (Devlin and others 2019) that stops early (BERxiT; Xin and others 2021), its layers sharing their
weights (ALBERT; Lan and others 2020): after every layer a certainty is read, and a sentence goes on only
while it is low."""
from cells import Heads
from sheaf import (Float32, Module, Param, Tokens, attention, gelu, glorot, layer_norm, normal, ones, split,
                   squeeze)


class BERxiT(Module):
    def __init__(self, vocab, hidden=768, heads=12, length=128, layers=6, classes=16):
        self.vocab, self.hidden, self.classes = vocab, hidden, classes
        self.length, self.layers = length, layers
        inner = 4 * hidden
        self.embedding = Param(vocab, hidden, init=normal(1.0))
        self.position = Param(length, hidden, init=normal(0.1))
        self.qkv_w, self.qkv_b = Param(hidden, 3 * hidden, init=glorot), Param(3 * hidden)
        self.seen_w, self.seen_b = Param(hidden, hidden, init=glorot), Param(hidden)
        self.gain1, self.bias1 = Param(hidden, init=ones), Param(hidden)
        self.inner_w, self.inner_b = Param(hidden, inner, init=glorot), Param(inner)
        self.outer_w, self.outer_b = Param(inner, hidden, init=glorot), Param(hidden)
        self.gain2, self.bias2 = Param(hidden, init=ones), Param(hidden)
        self.certain_w = Param(hidden, 1, init=glorot)
        self.out_w, self.out_b = Param(hidden, classes, init=glorot), Param(classes)
        self.parts = Heads(hidden, heads)

    def encode(self, x: Float32["n hidden"]) -> Float32["n hidden"]:
        q, k, v = split(x @ self.qkv_w + self.qkv_b, 3, axis=1)
        seen = attention(self.parts.split_rows(q), self.parts.split_rows(k), self.parts.split_rows(v))
        y = layer_norm(x + self.parts.join(seen) @ self.seen_w + self.seen_b, self.gain1, self.bias1)
        inner = gelu(y @ self.inner_w + self.inner_b)
        return layer_norm(y + inner @ self.outer_w + self.outer_b, self.gain2, self.bias2)

    def forward(self, words: Tokens["n"]) -> tuple[Float32["classes"], int]:
        """The scores of the classes, and how many layers were taken."""
        assert len(words) > 0, "a sentence has at least one word"
        assert len(words) <= self.length, "a sentence is too long"
        x = self.encode(self.embedding[words] + self.position[:len(words)])
        taken = 1
        while taken < self.layers and squeeze(x[0] @ self.certain_w).item() <= 0.5:
            x = self.encode(x)
            taken += 1
        return x[0] @ self.out_w + self.out_b, taken
