"""Attention with several heads, and the layers of transformers (Vaswani and others 2017)."""
import copy

from ..initializers import glorot
from ..module import Module, Param
from ..ops import attention, dropout, gelu, relu, reshape, split, transpose
from ..types import Float32
from .linear import Linear
from .norms import LayerNorm


class MultiheadAttention(Module):
    """What the rows of `query` find among those of `key` and `value`; torch's first result.

    With `causal`, a row of the query sees no later ones. No row is padding, so there are no masks.
    """

    def __init__(self, embed_dim, num_heads, bias=True, causal=False):
        if embed_dim % num_heads:
            raise ValueError(f"{embed_dim} elements cannot be given to {num_heads} heads evenly")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.causal = int(causal)
        self.in_proj_weight = Param(3 * embed_dim, embed_dim, init=glorot)
        self.in_proj_bias = Param(3 * embed_dim) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias)
        if bias:
            self.out_proj.bias = Param(embed_dim)

    def heads(self, x: Float32["n embed_dim"]) -> Float32["num_heads n head_dim"]:
        return transpose(reshape(x, len(x), self.num_heads, self.head_dim), 0, 1)

    def forward(self, query: Float32["n embed_dim"], key: Float32["m embed_dim"],
                value: Float32["m embed_dim"]) -> Float32["n embed_dim"]:
        w_q, w_k, w_v = split(self.in_proj_weight, 3)
        q, k, v = query @ w_q.T, key @ w_k.T, value @ w_v.T
        if self.in_proj_bias is not None:
            b_q, b_k, b_v = split(self.in_proj_bias, 3)
            q, k, v = q + b_q, k + b_k, v + b_v
        seen = attention(self.heads(q), self.heads(k), self.heads(v), causal=self.causal)
        return self.out_proj(reshape(transpose(seen, 0, 1), len(query), self.embed_dim))


class TransformerEncoderLayer(Module):
    """Attention among the rows of a sequence and a perceptron, each beside a residual and a norm."""

    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation="relu",
                 layer_norm_eps=1e-5, norm_first=False, causal=False):
        if activation not in ("relu", "gelu"):
            raise ValueError(f"the activation is 'relu' or 'gelu', not {activation!r}")
        self.d_model, self.dropout, self.norm_first = d_model, float(dropout), norm_first
        self.gelu = activation == "gelu"
        self.self_attn = MultiheadAttention(d_model, nhead, causal=causal)
        self.linear1 = Linear(d_model, dim_feedforward)
        self.linear2 = Linear(dim_feedforward, d_model)
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps)

    def attend(self, x: Float32["n d_model"]) -> Float32["n d_model"]:
        return dropout(self.self_attn(x, x, x), self.dropout)

    def feed(self, x: Float32["n d_model"]) -> Float32["n d_model"]:
        inner = self.linear1(x)
        inner = gelu(inner) if self.gelu else relu(inner)
        return dropout(self.linear2(dropout(inner, self.dropout)), self.dropout)

    def forward(self, x: Float32["n d_model"]) -> Float32["n d_model"]:
        if self.norm_first:
            x = x + self.attend(self.norm1(x))
            return x + self.feed(self.norm2(x))
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.feed(x))


class TransformerEncoder(Module):
    """Layers like `encoder_layer`, each with weights of its own, and perhaps a norm after them."""

    def __init__(self, encoder_layer, num_layers, norm=None):
        self.d_model = encoder_layer.d_model
        self.layers = _copies(encoder_layer, num_layers)
        self.norm = norm

    def forward(self, x: Float32["n d_model"]) -> Float32["n d_model"]:
        for layer in self.layers:
            x = layer(x)
        if self.norm is not None:
            x = self.norm(x)
        return x


class TransformerDecoderLayer(Module):
    """Attention among the rows of `tgt`, attention to those of `memory`, and a perceptron, each beside a
    residual and a norm. With `causal`, a row of `tgt` sees no later ones."""

    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation="relu",
                 layer_norm_eps=1e-5, norm_first=False, causal=False):
        if activation not in ("relu", "gelu"):
            raise ValueError(f"the activation is 'relu' or 'gelu', not {activation!r}")
        self.d_model, self.dropout, self.norm_first = d_model, float(dropout), norm_first
        self.gelu = activation == "gelu"
        self.self_attn = MultiheadAttention(d_model, nhead, causal=causal)
        self.multihead_attn = MultiheadAttention(d_model, nhead)
        self.linear1 = Linear(d_model, dim_feedforward)
        self.linear2 = Linear(dim_feedforward, d_model)
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps)

    def attend(self, x: Float32["n d_model"]) -> Float32["n d_model"]:
        return dropout(self.self_attn(x, x, x), self.dropout)

    def look(self, x: Float32["n d_model"], memory: Float32["m d_model"]) -> Float32["n d_model"]:
        return dropout(self.multihead_attn(x, memory, memory), self.dropout)

    def feed(self, x: Float32["n d_model"]) -> Float32["n d_model"]:
        inner = self.linear1(x)
        inner = gelu(inner) if self.gelu else relu(inner)
        return dropout(self.linear2(dropout(inner, self.dropout)), self.dropout)

    def forward(self, tgt: Float32["n d_model"], memory: Float32["m d_model"]) -> Float32["n d_model"]:
        x = tgt
        if self.norm_first:
            x = x + self.attend(self.norm1(x))
            x = x + self.look(self.norm2(x), memory)
            return x + self.feed(self.norm3(x))
        x = self.norm1(x + self.attend(x))
        x = self.norm2(x + self.look(x, memory))
        return self.norm3(x + self.feed(x))


class TransformerDecoder(Module):
    """Layers like `decoder_layer`, each with weights of its own, and perhaps a norm after them."""

    def __init__(self, decoder_layer, num_layers, norm=None):
        self.d_model = decoder_layer.d_model
        self.layers = _copies(decoder_layer, num_layers)
        self.norm = norm

    def forward(self, tgt: Float32["n d_model"], memory: Float32["m d_model"]) -> Float32["n d_model"]:
        x = tgt
        for layer in self.layers:
            x = layer(x, memory)
        if self.norm is not None:
            x = self.norm(x)
        return x


def _copies(layer, count):
    """Layers alike, whose weights are drawn anew."""
    made = [copy.deepcopy(layer) for _ in range(count)]
    for one in made:
        for param in one.parameters():
            param.reset()
    return made
