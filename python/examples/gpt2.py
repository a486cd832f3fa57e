"""GPT-2 (Radford and others 2019): scores the word that follows a text, and writes on, the likeliest
words or drawn ones. The weights are called as in Hugging Face's files, which load as they are:

    model = GPT2.from_pretrained("gpt2/")
    fast = sf.jit(model)
    fast.generate([encoding.ids for encoding in tokenizer.encode_batch(texts)], [20] * len(texts))
    fast.generate(texts, counts, temperatures)              # and top_k, top_p: drawn, a number for each text
"""
import pretrained
from sampling import choose, wait
from sheaf import (Float32, Module, Param, Token, Tokens, attention, concat, gelu_tanh, nn, normal, reshape,
                   split, transpose, zeros)


class Conv1D(Module):
    """A product with a weight [inputs, outputs], as GPT-2 has it."""

    def __init__(self, inputs, outputs):
        self.inputs, self.outputs = inputs, outputs
        self.weight, self.bias = Param(inputs, outputs, init=normal(0.02)), Param(outputs)

    def forward(self, x: Float32["n inputs"]) -> Float32["n outputs"]:
        return x @ self.weight + self.bias


class Attention(Module):
    def __init__(self, hidden, heads):
        self.hidden, self.heads, self.head = hidden, heads, hidden // heads
        self.c_attn, self.c_proj = Conv1D(hidden, 3 * hidden), Conv1D(hidden, hidden)

    def split(self, x: Float32["n hidden"]) -> Float32["heads n head"]:
        return transpose(reshape(x, len(x), self.heads, self.head), 0, 1)

    def forward(self, x: Float32["n hidden"],
                cache: Float32["m 2*hidden"]) -> tuple[Float32["n hidden"], Float32["? 2*hidden"]]:
        """New rows see those before them, whose keys and values the cache has; theirs are appended."""
        made = self.c_attn(x)
        cache = concat(cache, made[:, self.hidden:])
        k, v = split(cache, 2, axis=1)
        seen = attention(self.split(made[:, :self.hidden]), self.split(k), self.split(v), causal=1)
        return self.c_proj(reshape(transpose(seen, 0, 1), len(x), self.hidden)), cache


class Perceptron(Module):
    def __init__(self, hidden, inner):
        self.hidden = hidden
        self.c_fc, self.c_proj = Conv1D(hidden, inner), Conv1D(inner, hidden)

    def forward(self, x: Float32["n hidden"]) -> Float32["n hidden"]:
        return self.c_proj(gelu_tanh(self.c_fc(x)))


class Block(Module):
    def __init__(self, hidden, heads, inner, eps):
        self.hidden = hidden
        self.ln_1, self.attn = nn.LayerNorm(hidden, eps=eps), Attention(hidden, heads)
        self.ln_2, self.mlp = nn.LayerNorm(hidden, eps=eps), Perceptron(hidden, inner)

    def forward(self, x: Float32["n hidden"],
                cache: Float32["m 2*hidden"]) -> tuple[Float32["n hidden"], Float32["? 2*hidden"]]:
        seen, cache = self.attn(self.ln_1(x), cache)
        x = x + seen
        return x + self.mlp(self.ln_2(x)), cache


class Transformer(Module):
    def __init__(self, vocab, hidden, heads, layers, inner, positions, eps):
        self.hidden, self.positions = hidden, positions
        self.wte, self.wpe = nn.Embedding(vocab, hidden), nn.Embedding(positions, hidden)
        self.h = [Block(hidden, heads, inner, eps) for _ in range(layers)]
        self.ln_f = nn.LayerNorm(hidden, eps=eps)

    def forward(self, x: Float32["n hidden"], caches: list[Float32["? 2*hidden"]]) -> tuple[
            Float32["n hidden"], list[Float32["? 2*hidden"]]]:
        """The states of words after those that the caches have, and each layer's keys and values with theirs."""
        start = len(caches[0])
        assert start + len(x) <= self.positions, "a text has more words than there are positions"
        x = x + self.wpe.weight[start:start + len(x)]
        grown = []
        for block, cache in zip(self.h, caches, strict=True):
            x, cache = block(x, cache)
            grown.append(cache)
        return self.ln_f(x), grown


class GPT2(Module):
    def __init__(self, vocab=50257, hidden=768, heads=12, layers=12, inner=None, positions=1024, eps=1e-5,
                 chunk=128):
        self.vocab, self.hidden, self.chunk = vocab, hidden, chunk
        self.transformer = Transformer(vocab, hidden, heads, layers, inner or 4 * hidden, positions, eps)

    @classmethod
    def from_pretrained(cls, directory):
        """With the sizes and weights of a directory as Hugging Face has it."""
        config = pretrained.config(directory, model_type="gpt2", add_cross_attention=False,
                                   activation_function=("gelu_new", "gelu_pytorch_tanh"),
                                   scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False,
                                   tie_word_embeddings=True)
        vocab, hidden, heads, layers, positions, eps = (config[name] for name in (
            "vocab_size", "n_embd", "n_head", "n_layer", "n_positions", "layer_norm_epsilon"))
        model = cls(vocab, hidden, heads, layers, config.get("n_inner"), positions, eps)
        return pretrained.load(model, directory, "transformer.")

    def step(self, x: Float32["n hidden"], caches: list[Float32["? 2*hidden"]]) -> tuple[
            Float32["vocab"], list[Float32["? 2*hidden"]]]:
        """The scores of what follows new words, by the table that reads them."""
        assert len(x) > 0, "a text has at least one word"
        states, caches = self.transformer(x, caches)
        return states[-1] @ self.transformer.wte.weight.T, caches

    def nothing(self) -> list[Float32["? 2*hidden"]]:
        return [zeros(0, 2 * self.hidden) for _ in self.transformer.h]

    def follow(self, text: Tokens["n"], caches: list[Float32["? 2*hidden"]]) -> tuple[
            Float32["vocab"], list[Float32["? 2*hidden"]]]:
        """A text after what the caches have seen, at most `chunk` words at a time."""
        now = min(len(text), self.chunk)
        scores, caches = self.step(self.transformer.wte(text[:now]), caches)
        if now == len(text):
            return scores, caches
        wait(scores)
        return self.follow(text[now:], caches)

    def forward(self, text: Tokens["n"]) -> Float32["vocab"]:
        scores, _ = self.step(self.transformer.wte(text), self.nothing())
        return scores

    def generate(self, text: Tokens["n"], count: int, temperature: float = 0.0, top_k: int = 50,
                 top_p: float = 1.0) -> list[Token]:
        """The words after the text: the likeliest, or, with a temperature, drawn of those that are likely."""
        scores, caches = self.follow(text, self.nothing())
        written = []
        while len(written) < count:
            word = choose(scores, temperature, top_k, top_p)
            written.append(word)
            if len(written) < count:
                scores, caches = self.step(self.transformer.wte.weight[[word]], caches)
        return written
