"""Llama (Touvron and others 2023) and what has its form: rotary positions, RMS norm, SwiGLU, heads that share
keys and values. Scores the word that follows a text, and writes on, the likeliest words or drawn ones. The
weights are called as in Hugging Face's files, which load as they are; those with scaled positions or a sliding
window are refused:

    model = Llama.from_pretrained("llama/")
    fast = sf.jit(model)
    fast.generate([encoding.ids for encoding in tokenizer.encode_batch(texts)], [20] * len(texts))
    fast.generate(texts, counts, temperatures)              # and top_k, top_p: drawn, a number for each text
"""
import pretrained
from sampling import choose, wait
from sheaf import (Float32, Module, Token, Tokens, attention, concat, expand_dims, nn, reshape, rope,
                   safetensors, sigmoid, split, transpose, zeros)


class Attention(Module):
    def __init__(self, hidden, heads, groups, size, base):
        self.hidden, self.heads, self.groups, self.size, self.base = hidden, heads, groups, size, base
        self.row = 2 * groups * size
        self.q_proj = nn.Linear(hidden, heads * size, bias=False)
        self.k_proj, self.v_proj = (nn.Linear(hidden, groups * size, bias=False) for _ in range(2))
        self.o_proj = nn.Linear(heads * size, hidden, bias=False)

    def forward(self, x: Float32["n hidden"],
                cache: Float32["m row"]) -> tuple[Float32["n hidden"], Float32["? row"]]:
        """New rows see those before them, whose keys and values the cache has; theirs are appended."""
        n, start = len(x), len(cache)
        q = rope(transpose(reshape(self.q_proj(x), n, self.heads, self.size), 0, 1), start, self.base)
        k = rope(transpose(reshape(self.k_proj(x), n, self.groups, self.size), 0, 1), start, self.base)
        keys = reshape(transpose(k, 0, 1), n, self.groups * self.size)
        cache = concat(cache, concat(keys, self.v_proj(x), axis=1))
        k, v = split(transpose(reshape(cache, len(cache), 2 * self.groups, self.size), 0, 1), 2, axis=0)
        # Each group of heads has its keys and values.
        q = reshape(q, self.groups, self.heads // self.groups, n, self.size)
        seen = reshape(attention(q, expand_dims(k, 1), expand_dims(v, 1), causal=1), self.heads, n, self.size)
        return self.o_proj(reshape(transpose(seen, 0, 1), n, self.heads * self.size)), cache


class Perceptron(Module):
    def __init__(self, hidden, inner):
        self.hidden = hidden
        self.gate_proj, self.up_proj = (nn.Linear(hidden, inner, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: Float32["n hidden"]) -> Float32["n hidden"]:
        gate = self.gate_proj(x)
        return self.down_proj(gate * sigmoid(gate) * self.up_proj(x))


class Block(Module):
    def __init__(self, hidden, heads, groups, size, inner, eps, base):
        self.hidden, self.row = hidden, 2 * groups * size
        self.input_layernorm = nn.RMSNorm(hidden, eps=eps)
        self.self_attn = Attention(hidden, heads, groups, size, base)
        self.post_attention_layernorm = nn.RMSNorm(hidden, eps=eps)
        self.mlp = Perceptron(hidden, inner)

    def forward(self, x: Float32["n hidden"],
                cache: Float32["m row"]) -> tuple[Float32["n hidden"], Float32["? row"]]:
        seen, cache = self.self_attn(self.input_layernorm(x), cache)
        x = x + seen
        return x + self.mlp(self.post_attention_layernorm(x)), cache


class Decoder(Module):
    def __init__(self, vocab, hidden, layers, row, **block):
        self.hidden, self.row = hidden, row
        self.embed_tokens = nn.Embedding(vocab, hidden)
        self.layers = [Block(hidden, **block) for _ in range(layers)]
        self.norm = nn.RMSNorm(hidden, eps=block["eps"])

    def forward(self, x: Float32["n hidden"], caches: list[Float32["? row"]]) -> tuple[
            Float32["n hidden"], list[Float32["? row"]]]:
        """The states of words after those that the caches have, and each layer's keys and values with theirs."""
        grown = []
        for layer, cache in zip(self.layers, caches, strict=True):
            x, cache = layer(x, cache)
            grown.append(cache)
        return self.norm(x), grown


class Llama(Module):
    def __init__(self, vocab=32000, hidden=2048, heads=32, groups=None, size=None, layers=16, inner=8192,
                 eps=1e-5, base=10000.0, tied=False, chunk=128):
        groups, size = groups or heads, size or hidden // heads
        self.vocab, self.hidden, self.row, self.chunk = vocab, hidden, 2 * groups * size, chunk
        self.model = Decoder(vocab, hidden, layers, self.row, heads=heads, groups=groups, size=size,
                             inner=inner, eps=eps, base=base)
        self.lm_head = nn.Linear(hidden, vocab, bias=False)
        if tied:
            self.lm_head.weight = self.model.embed_tokens.weight

    @classmethod
    def from_pretrained(cls, directory):
        """With the sizes and weights of a directory as Hugging Face has it. Many have one table for what is
        read and written."""
        config = pretrained.config(directory, model_type=("llama", "mistral"), hidden_act="silu",
                                   attention_bias=False, mlp_bias=False, partial_rotary_factor=1,
                                   sliding_window=None)
        positions = (config.get("rope_parameters") or {}) | (config.get("rope_scaling") or {})
        for name, plain in (("rope_type", "default"), ("type", "default"), ("factor", 1),
                            ("partial_rotary_factor", 1)):
            if positions.get(name) not in (None, plain):
                raise ValueError(f"{directory}: positions are scaled, {name} is {positions[name]!r}, and the "
                                 "model's are not")
        base = config.get("rope_theta") or positions.get("rope_theta", 10000.0)
        model = cls(config["vocab_size"], config["hidden_size"], config["num_attention_heads"],
                    config.get("num_key_value_heads"), config.get("head_dim"), config["num_hidden_layers"],
                    config["intermediate_size"], config["rms_norm_eps"], base,
                    tied="lm_head.weight" not in safetensors.load_file(directory))
        return pretrained.load(model, directory, "model.")

    def step(self, x: Float32["n hidden"], caches: list[Float32["? row"]]) -> tuple[
            Float32["vocab"], list[Float32["? row"]]]:
        """The scores of what follows new words."""
        assert len(x) > 0, "a text has at least one word"
        states, caches = self.model(x, caches)
        return self.lm_head(states[-1]), caches

    def nothing(self) -> list[Float32["? row"]]:
        return [zeros(0, self.row) for _ in self.model.layers]

    def follow(self, text: Tokens["n"], caches: list[Float32["? row"]]) -> tuple[
            Float32["vocab"], list[Float32["? row"]]]:
        """A text after what the caches have seen, at most `chunk` words at a time."""
        now = min(len(text), self.chunk)
        scores, caches = self.step(self.model.embed_tokens(text[:now]), caches)
        if now == len(text):
            return scores, caches
        wait(scores)
        return self.follow(text[now:], caches)

    def forward(self, text: Tokens["n"]) -> Float32["vocab"]:
        scores, _ = self.step(self.model.embed_tokens(text), self.nothing())
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
                scores, caches = self.step(self.model.embed_tokens.weight[[word]], caches)
        return written
