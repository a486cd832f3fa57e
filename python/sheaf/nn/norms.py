"""Norms along the last axis."""
from ..initializers import Initializer
from ..module import Module, Param
from ..ops import layer_norm, rms_norm
from ..types import Float32


class LayerNorm(Module):
    """Layer norm (Ba, Kiros, Hinton 2016)."""

    def __init__(self, normalized_shape, eps=1e-5):
        self.normalized_shape, self.eps = _extent(normalized_shape), eps
        self.weight = Param(self.normalized_shape, init=Initializer("ones"))
        self.bias = Param(self.normalized_shape, init=Initializer("zeros"))

    def forward(self, x: Float32["*rows normalized_shape"]) -> Float32["*rows normalized_shape"]:
        return layer_norm(x, self.weight, self.bias, eps=self.eps)


class RMSNorm(Module):
    """RMS norm (Zhang, Sennrich 2019)."""

    def __init__(self, normalized_shape, eps=1e-6):
        self.normalized_shape, self.eps = _extent(normalized_shape), eps
        self.weight = Param(self.normalized_shape, init=Initializer("ones"))

    def forward(self, x: Float32["*rows normalized_shape"]) -> Float32["*rows normalized_shape"]:
        return rms_norm(x, self.weight, eps=self.eps)


def _extent(shape):
    """torch takes a tuple, too: of one extent here."""
    if isinstance(shape, (tuple, list)):
        if len(shape) != 1:
            raise ValueError(f"a norm here is along the last axis, not over {tuple(shape)}")
        return shape[0]
    return shape
