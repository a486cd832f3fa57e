"""A bidirectional LSTM tagger (Graves, Schmidhuber 2005): one row of scores for each word."""
from cells import LSTM
from sheaf import Float32, Module, Param, Token, concat, glorot, normal


class Tagger(Module):
    def __init__(self, vocab, hidden=256, tags=9):
        self.vocab, self.hidden, self.tags = vocab, hidden, tags
        self.ahead, self.back = LSTM(hidden, hidden), LSTM(hidden, hidden)
        self.embedding = Param(vocab, hidden, init=normal(0.1))
        self.out_w, self.out_b = Param(2 * hidden, tags, init=glorot), Param(tags)

    def forward(self, words: list[Token]) -> list[Float32["tags"]]:
        xs = [self.embedding[word] for word in words]
        fs = self.ahead(xs)
        bs = list(reversed(self.back(list(reversed(xs)))))
        return [concat(f, b) @ self.out_w + self.out_b for f, b in zip(fs, bs, strict=True)]
