"""The encoder of BERT (Devlin and others 2019); the weights are called as in Hugging Face's files."""
from sheaf import Float32, Module, Tokens, attention, gelu, nn, reshape, transpose

# Sizes of a model, as its config.json calls them.
SIZES = ("vocab_size", "hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size",
         "max_position_embeddings", "layer_norm_eps")
# What else it may say of one.
COMPUTED = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute",
            "is_decoder": False, "add_cross_attention": False}


class Embeddings(Module):
    def __init__(self, vocab, hidden, length, eps):
        self.hidden = hidden
        self.word_embeddings = nn.Embedding(vocab, hidden)
        self.position_embeddings = nn.Embedding(length, hidden)
        self.token_type_embeddings = nn.Embedding(2, hidden)
        self.LayerNorm = nn.LayerNorm(hidden, eps=eps)

    def forward(self, words: Tokens["n"]) -> Float32["n hidden"]:
        x = self.word_embeddings(words) + self.token_type_embeddings.weight[0]
        return self.LayerNorm(x + self.position_embeddings.weight[:len(words)])


class SelfAttention(Module):
    def __init__(self, hidden, heads):
        self.hidden, self.heads, self.head = hidden, heads, hidden // heads
        self.query, self.key, self.value = (nn.Linear(hidden, hidden) for _ in range(3))

    def split(self, x: Float32["n hidden"]) -> Float32["heads n head"]:
        return transpose(reshape(x, len(x), self.heads, self.head), 0, 1)

    def forward(self, x: Float32["n hidden"]) -> Float32["n hidden"]:
        seen = attention(self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x)))
        return reshape(transpose(seen, 0, 1), len(x), self.hidden)


class Output(Module):
    """A product beside a residual, and a norm."""

    def __init__(self, inner, hidden, eps):
        self.inner, self.hidden = inner, hidden
        self.dense, self.LayerNorm = nn.Linear(inner, hidden), nn.LayerNorm(hidden, eps=eps)

    def forward(self, x: Float32["n inner"], residual: Float32["n hidden"]) -> Float32["n hidden"]:
        return self.LayerNorm(self.dense(x) + residual)


class Attention(Module):
    def __init__(self, hidden, heads, eps):
        self.hidden = hidden
        self.self = SelfAttention(hidden, heads)
        self.output = Output(hidden, hidden, eps)

    def forward(self, x: Float32["n hidden"]) -> Float32["n hidden"]:
        return self.output(self.self(x), x)


class Intermediate(Module):
    def __init__(self, hidden, inner):
        self.hidden, self.inner = hidden, inner
        self.dense = nn.Linear(hidden, inner)

    def forward(self, x: Float32["n hidden"]) -> Float32["n inner"]:
        return gelu(self.dense(x))


class Layer(Module):
    def __init__(self, hidden, heads, inner, eps):
        self.hidden = hidden
        self.attention = Attention(hidden, heads, eps)
        self.intermediate, self.output = Intermediate(hidden, inner), Output(inner, hidden, eps)

    def forward(self, x: Float32["n hidden"]) -> Float32["n hidden"]:
        x = self.attention(x)
        return self.output(self.intermediate(x), x)


class Encoder(Module):
    def __init__(self, hidden, heads, inner, eps, layers):
        self.hidden = hidden
        self.layer = [Layer(hidden, heads, inner, eps) for _ in range(layers)]

    def forward(self, x: Float32["n hidden"]) -> Float32["n hidden"]:
        for layer in self.layer:
            x = layer(x)
        return x
