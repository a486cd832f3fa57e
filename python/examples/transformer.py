"""A transformer encoder (Vaswani and others 2017) with layer norm before its parts and rotary positions
(Su and others 2021): classifies a sentence by the mean of its last states. `next` is a causal decoder
that scores the word that follows each word."""
from cells import Heads
from sheaf import (Float32, Module, Param, Tokens, attention, gelu, glorot, layer_norm, normal, ones, rope,
                   split)


class Block(Module):
    def __init__(self, hidden, heads):
        self.hidden = hidden
        self.parts = Heads(hidden, heads)
        self.gain1, self.bias1 = Param(hidden, init=ones), Param(hidden)
        self.qkv, self.out = Param(hidden, 3 * hidden, init=glorot), Param(hidden, hidden, init=glorot)
        self.gain2, self.bias2 = Param(hidden, init=ones), Param(hidden)
        self.w1, self.b1 = Param(hidden, 4 * hidden, init=glorot), Param(4 * hidden)
        self.w2, self.b2 = Param(4 * hidden, hidden, init=glorot), Param(hidden)

    def forward(self, x: Float32["n hidden"], causal: bool) -> Float32["n hidden"]:
        q, k, v = split(layer_norm(x, self.gain1, self.bias1) @ self.qkv, 3, axis=1)
        q, k, v = rope(self.parts.split_rows(q)), rope(self.parts.split_rows(k)), self.parts.split_rows(v)
        if causal:
            seen = attention(q, k, v, causal=1)
        else:
            seen = attention(q, k, v)
        y = x + self.parts.join(seen) @ self.out
        return y + gelu(layer_norm(y, self.gain2, self.bias2) @ self.w1 + self.b1) @ self.w2 + self.b2


class Transformer(Module):
    def __init__(self, vocab, hidden=256, heads=4, classes=5, layers=2):
        self.vocab, self.hidden, self.classes = vocab, hidden, classes
        self.embedding = Param(vocab, hidden, init=normal(0.1))
        self.gain, self.bias = Param(hidden, init=ones), Param(hidden)
        self.out_w, self.out_b = Param(hidden, classes, init=glorot), Param(classes)
        self.layers = [Block(hidden, heads) for _ in range(layers)]

    def encode(self, words: Tokens["n"], causal: bool) -> Float32["n hidden"]:
        x = self.embedding[words]
        for layer in self.layers:
            x = layer(x, causal)
        return layer_norm(x, self.gain, self.bias)

    def forward(self, words: Tokens["n"]) -> Float32["classes"]:
        return self.encode(words, False).mean(axis=0) @ self.out_w + self.out_b

    def next(self, words: Tokens["n"]) -> Float32["n vocab"]:
        return self.encode(words, True) @ self.embedding.T
