"""A greedy decoder with a cache of keys and values, of layers with torch's names and layouts."""
from sheaf import (Float32, Module, Param, Token, Tokens, attention, concat, gelu, nn, normal, reshape, rope,
                   split, stack, transpose, zeros)


class Block(Module):
    def __init__(self, hidden, heads):
        self.hidden, self.heads, self.head = hidden, heads, hidden // heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def heads_of(self, x: Float32["n hidden"]) -> Float32["heads n head"]:
        return transpose(reshape(x, len(x), self.heads, self.head), 0, 1)

    def flat(self, x: Float32["heads n head"]) -> Float32["n hidden"]:
        return reshape(transpose(x, 0, 1), x.shape[1], self.hidden)

    def step(self, x: Float32["n hidden"],
             cache: Float32["m 2 hidden"]) -> tuple[Float32["n hidden"], Float32["? 2 hidden"]]:
        """The rows that come next, and the keys and values of all so far: along the first axis rows are
        appended where the others lie."""
        q, k, v = split(self.qkv(self.norm1(x)), 3, axis=1)
        start = len(cache)
        cache = concat(cache, stack([self.flat(rope(self.heads_of(k), start)), v], axis=1))
        seen = attention(rope(self.heads_of(q), start), self.heads_of(cache[:, 0]), self.heads_of(cache[:, 1]),
                         causal=1)
        x = x + self.out(self.flat(seen))
        return x + self.down(gelu(self.up(self.norm2(x)))), cache


class Decoder(Module):
    def __init__(self, vocab, hidden=64, heads=4, layers=2, longest=20):
        self.vocab, self.hidden, self.longest = vocab, hidden, longest
        self.embedding, self.norm = Param(vocab, hidden, init=normal(1.0)), nn.LayerNorm(hidden)
        self.layers = [Block(hidden, heads) for _ in range(layers)]

    def advance(self, x: Float32["n hidden"], caches: list[Float32["? 2 hidden"]]) -> tuple[
            Float32["vocab"], list[Float32["? 2 hidden"]]]:
        grown = []
        for layer, cache in zip(self.layers, caches, strict=True):
            x, cache = layer.step(x, cache)
            grown.append(cache)
        return self.norm(x)[-1] @ self.embedding.T, grown

    def forward(self, prompt: Tokens["n"]) -> list[Token]:
        scores, caches = self.advance(self.embedding[prompt], [zeros(0, 2, self.hidden) for _ in self.layers])
        word = Token(scores.argmax().item())
        written = []
        while word != 0 and len(written) < self.longest:
            written.append(word)
            scores, caches = self.advance(self.embedding[[word]], caches)
            word = Token(scores.argmax().item())
        return written
