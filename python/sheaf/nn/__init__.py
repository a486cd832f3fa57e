"""Layers with the names and layouts of torch.nn: a state_dict of one goes into the other.

They are ordinary Modules, written for one instance: no batch axis, no padding, no mask. `forward` of
a Linear, a norm and an Embedding takes a vector (or a token), a matrix of rows, or more axes; of
sequences it takes `[n, size]`, whatever n is, and of convolution and pooling `[size, n]`, as torch has it.
"""
from ..hints import LAYERS, missing
from .attention import (MultiheadAttention, TransformerDecoder, TransformerDecoderLayer,
                        TransformerEncoder, TransformerEncoderLayer)
from .convolution import AvgPool1d, Conv1d, MaxPool1d
from .linear import Embedding, Linear
from .norms import LayerNorm, RMSNorm
from .recurrent import GRU, LSTM, GRUCell, LSTMCell

__all__ = ["AvgPool1d", "Conv1d", "Embedding", "GRU", "GRUCell", "LSTM", "LSTMCell", "LayerNorm",
           "Linear", "MaxPool1d", "MultiheadAttention", "RMSNorm", "TransformerDecoder",
           "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer"]


def __getattr__(name):
    raise missing("module 'sheaf.nn'", name, LAYERS)
