"""Beam search over an LSTM that reads a sentence and writes on: of all words after the few best beginnings
the few best are kept, until each has ended with the first word of the vocabulary."""
from dataclasses import dataclass

from cells import lstm_cell
from sheaf import (Float32, Module, Param, Token, concat, expand_dims, glorot, log, log_softmax, normal,
                   one_hot, reshape, stack, top_k, zeros)


@dataclass(slots=True)
class Beginning:
    words: list[Token]
    ended: bool
    h: Float32["hidden"]
    c: Float32["hidden"]


class Beam(Module):
    def __init__(self, vocab, hidden=256, width=4, longest=20):
        self.vocab, self.hidden, self.width, self.longest = vocab, hidden, width, longest
        self.embedding = Param(vocab, hidden, init=normal(1.0))
        self.w, self.b = Param(2 * hidden, 4 * hidden, init=glorot), Param(4 * hidden)
        self.out_w = Param(hidden, vocab, init=glorot)

    def step(self, h: Float32["hidden"], c: Float32["hidden"],
             word: Token) -> tuple[Float32["hidden"], Float32["hidden"]]:
        return lstm_cell(concat(self.embedding[word], h) @ self.w + self.b, c)

    def next(self, begun: Beginning) -> Float32["vocab"]:
        """How likely each word goes on; the end the more, the longer the sentence is. What has ended stays
        as it is: it "goes on" with the end, for sure."""
        if begun.ended:
            return log(one_hot(0, self.vocab))
        return log_softmax(3 * (begun.h @ self.out_w)
                           + 0.1 * float(len(begun.words)) * one_hot(0, self.vocab))

    def extend(self, begun: Beginning, word: Token) -> Beginning:
        if begun.ended:
            return begun
        h, c = self.step(begun.h, begun.c, word)
        if word == 0:
            return Beginning(begun.words, True, h, c)
        return Beginning(begun.words + [word], False, h, c)

    def forward(self, words: list[Token]) -> tuple[list[list[Token]], Float32["?"]]:
        """The best sentences, the likeliest first, and the logarithms of their probabilities."""
        h, c = zeros(self.hidden), zeros(self.hidden)
        for word in words:
            h, c = self.step(h, c, word)
        beam, scores, length = [Beginning([], False, h, c)], zeros(1), 0
        while length < self.longest and any(not b.ended for b in beam):
            nexts = stack([self.next(b) for b in beam])
            assert len(nexts) == len(scores)
            all_ = expand_dims(scores, axis=1) + nexts
            scores, places = top_k(reshape(all_, len(scores) * self.vocab), self.width)
            beam = [self.extend(beam[p // self.vocab], Token(p % self.vocab)) for p in places.tolist()]
            length += 1
        return [b.words for b in beam], scores
