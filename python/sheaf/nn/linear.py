"""Layers that are one product, or one look-up."""
import math

from ..initializers import normal, uniform
from ..module import Module, Param
from ..types import Float32, Token, Tokens


class Linear(Module):
    """x @ weight.T + bias; `weight` is [out_features, in_features]."""

    def __init__(self, in_features, out_features, bias=True):
        self.in_features, self.out_features = in_features, out_features
        bound = 1 / math.sqrt(in_features)
        self.weight = Param(out_features, in_features, init=uniform(bound))
        self.bias = Param(out_features, init=uniform(bound)) if bias else None

    def forward(self, x: Float32["*rows in_features"]) -> Float32["*rows out_features"]:
        if self.bias is None:
            return x @ self.weight.T
        return x @ self.weight.T + self.bias


class Embedding(Module):
    """A vector for each number; `weight` is [num_embeddings, embedding_dim]. `forward` takes a tensor
    of tokens, `of` one token."""

    def __init__(self, num_embeddings, embedding_dim):
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.weight = Param(num_embeddings, embedding_dim, init=normal(1.0))

    def forward(self, words: Tokens["n"]) -> Float32["n embedding_dim"]:
        return self.weight[words]

    def of(self, word: Token) -> Float32["embedding_dim"]:
        return self.weight[word]
