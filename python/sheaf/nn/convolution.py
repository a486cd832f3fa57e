"""Convolution and pooling along a sequence [channels, n], as torch has it; the operators of sheaf,
conv1d and others, take [n, channels]."""
import math

from ..initializers import uniform
from ..module import Module, Param
from ..ops import avg_pool1d, conv1d, max_pool1d, pad, transpose
from ..types import Float32


class Conv1d(Module):
    """A convolution. In a state_dict `weight` is [out_channels, in_channels / groups, kernel_size], here
    the other way round. With padding="same" there are as many places after it as before."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
                 bias=True):
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = _one(kernel_size), _one(stride)
        self.dilation = _one(dilation)
        for name in ("in_channels", "out_channels", "groups", "kernel_size", "stride", "dilation"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is at least 1, not {getattr(self, name)}")
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"{in_channels} and {out_channels} channels are no multiples of {groups} "
                             "groups")
        self.padding, self.more = _padding(padding, self.kernel_size, self.stride, self.dilation)
        init = uniform(1 / math.sqrt(in_channels // groups * self.kernel_size))
        self.weight = Param(self.kernel_size, in_channels // groups, out_channels, init=init,
                            state_axes=(2, 1, 0))
        self.bias = Param(out_channels, init=init) if bias else None

    def forward(self, x: Float32["in_channels n"]) -> Float32["out_channels ?"]:
        rows = pad(transpose(x), 0, self.more)
        y = conv1d(rows, self.weight, stride=self.stride, padding=self.padding, dilation=self.dilation,
                   groups=self.groups)
        if self.bias is not None:
            y = y + self.bias
        return transpose(y)


class MaxPool1d(Module):
    """The greatest of each window of kernel_size places."""

    def __init__(self, kernel_size, stride=None, padding=0):
        self.kernel_size, self.padding = _one(kernel_size), _one(padding)
        self.stride = self.kernel_size if stride is None else _one(stride)

    def forward(self, x: Float32["channels n"]) -> Float32["channels ?"]:
        return transpose(max_pool1d(transpose(x), self.kernel_size, self.stride, self.padding))


class AvgPool1d(Module):
    """The mean of each window of kernel_size places, zeros of the padding included."""

    def __init__(self, kernel_size, stride=None, padding=0):
        self.kernel_size, self.padding = _one(kernel_size), _one(padding)
        self.stride = self.kernel_size if stride is None else _one(stride)

    def forward(self, x: Float32["channels n"]) -> Float32["channels ?"]:
        return transpose(avg_pool1d(transpose(x), self.kernel_size, self.stride, self.padding))


def _one(value):
    """torch takes a tuple, too: of one number here."""
    if isinstance(value, (tuple, list)):
        if len(value) != 1:
            raise ValueError(f"there is one axis here, and {tuple(value)} are for {len(value)}")
        return value[0]
    return value


def _padding(padding, taps, stride, dilation):
    """Places before and after a sequence, and those that come after it besides."""
    if padding == "valid":
        return 0, 0
    if padding == "same":
        if stride != 1:
            raise ValueError('padding="same" goes with a stride of 1')
        total = (taps - 1) * dilation
        return total // 2, total % 2
    if isinstance(padding, str):
        raise ValueError(f'padding is a number, "same" or "valid", not {padding!r}')
    return _one(padding), 0
