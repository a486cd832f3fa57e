"""Layers of sf.nn, compiled as models of their own: what eager code gives, alone and together."""
import numpy as np
import pytest

import sheaf as sf
from sheaf import Float32, Module, Token, Tokens, nn

DRAW = np.random.default_rng(1)


def rows(*shape):
    return DRAW.normal(size=shape).astype(np.float32)


class Ranks(Module):
    """One layer on vectors, on rows and on more axes."""

    def __init__(self):
        self.linear, self.bare = nn.Linear(4, 3), nn.Linear(3, 4, bias=False)
        self.norm, self.rms = nn.LayerNorm(4, eps=0.1), nn.RMSNorm(4)

    def forward(self, x: Float32["2 n 4"]) -> tuple[Float32["2 n 4"], Float32["n 4"], Float32["4"]]:
        return (self.bare(self.linear(self.norm(x))), self.norm(self.bare(self.linear(x[0]))),
                self.rms(self.bare(self.linear(x[1, 0]))))


class Words(Module):
    def __init__(self):
        self.vocab = 7
        self.words = nn.Embedding(self.vocab, 4)

    def forward(self, words: Tokens["n"], word: Token) -> tuple[Float32["n 4"], Float32["4"]]:
        return self.words(words), self.words.of(word)


class Sequences(Module):
    def __init__(self):
        self.lstm = nn.LSTM(4, 3, num_layers=2, bidirectional=True)
        self.gru = nn.GRU(6, 4, num_layers=2)

    def forward(self, x: Float32["n 4"]) -> tuple[Float32["n 4"], Float32["4 3"], Float32["2 4"]]:
        states, (h, _) = self.lstm(x)
        y, last = self.gru(states)
        return y, h, last


class Cells(Module):
    def __init__(self):
        self.lstm, self.gru = nn.LSTMCell(4, 3, bias=False), nn.GRUCell(3, 3, bias=False)

    def forward(self, xs: list[Float32["4"]]) -> Float32["3"]:
        h, c, g = sf.zeros(3), sf.zeros(3), sf.ones(3)
        for x in xs:
            h, c = self.lstm(x, (h, c))
            g = self.gru(h, g)
        return g


class Signals(Module):
    def __init__(self):
        self.wide, self.own = nn.Conv1d(4, 6, 2, padding="same"), nn.Conv1d(6, 6, 3, padding=1, groups=6)
        self.down, self.most = nn.Conv1d(6, 4, 3, stride=2, padding=2, groups=2), nn.MaxPool1d(2, padding=1)
        self.mean = nn.AvgPool1d(3, stride=1, padding=1)

    def forward(self, x: Float32["4 n"]) -> tuple[Float32["6 ?"], Float32["4 ?"]]:
        y = self.own(sf.relu(self.wide(x)))
        return self.mean(y), self.most(self.down(y))


class Translator(Module):
    def __init__(self, norm_first):
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(
            4, 2, 6, activation="gelu", norm_first=norm_first), 2, norm=nn.LayerNorm(4))
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(
            4, 2, 6, norm_first=norm_first, causal=True), 2)

    def forward(self, x: Float32["n 4"], y: Float32["m 4"]) -> Float32["m 4"]:
        return self.decoder(y, self.encoder(x))


CASES = {
    "ranks": (Ranks, [(rows(2, n, 4),) for n in (1, 3, 2)]),
    "words": (Words, [([1, 2, 6], 3), ([0], 6)]),
    "sequences": (Sequences, [(rows(n, 4),) for n in (1, 5, 0, 2)]),
    "bidirectional GRU": (lambda: nn.GRU(4, 3, bidirectional=True), [(rows(n, 4),) for n in (3, 0, 2)]),
    "cells": (Cells, [([rows(4) for _ in range(n)],) for n in (1, 4)]),
    "signals": (Signals, [(rows(4, n),) for n in (1, 6, 0, 33)]),
    "translator": (lambda: Translator(False), [(rows(n, 4), rows(m, 4)) for n, m in ((1, 3), (4, 1), (3, 3))]),
    "translator, norms first": (lambda: Translator(True), [(rows(2, 4), rows(3, 4))]),
}


def parts(result):
    return [p for part in result for p in parts(part)] if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("name", CASES)
def test_compiled(name):
    make, inputs = CASES[name]
    model = make()
    for i, param in enumerate(model.parameters()):
        param.value = np.random.default_rng(i).normal(0, 0.5, param.shape)
    fast = sf.jit(model)
    together = parts(fast(*zip(*inputs)))
    for i, given in enumerate(inputs):
        alone = parts(fast(*zip(given)))
        eager = parts(model(*given))
        assert len(eager) == len(together)
        for wanted, all_, one in zip(eager, together, alone):
            assert np.array_equal(all_[i], one[0])
            np.testing.assert_allclose(np.asarray(one[0]), np.asarray(wanted), rtol=1e-4, atol=1e-5)
