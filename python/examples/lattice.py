"""A lattice LSTM (Zhang, Yang 2018) that tags the characters of a line without spaces: beside the
recurrence over characters, every word that may stand there is an arc from the character before it to its
last one, and brings a cell of its own."""
from sheaf import (Float32, Module, Param, Token, concat, exp, glorot, normal, sigmoid, split, tanh, zeros)


class Lattice(Module):
    def __init__(self, vocab, word_vocab, hidden=64, tags=9):
        self.vocab, self.word_vocab, self.hidden, self.tags = vocab, word_vocab, hidden, tags
        self.characters = Param(vocab, hidden, init=normal(0.5))
        self.words = Param(word_vocab, hidden, init=normal(0.5))
        self.w, self.b = Param(2 * hidden, 4 * hidden, init=glorot), Param(4 * hidden)
        self.word_w, self.word_b = Param(2 * hidden, 3 * hidden, init=glorot), Param(3 * hidden)
        self.gate_w, self.gate_b = Param(2 * hidden, hidden, init=glorot), Param(hidden)
        self.out_w, self.out_b = Param(hidden, tags, init=glorot), Param(tags)

    def arc(self, state: tuple[Float32["hidden"], Float32["hidden"]],
            word: Token["word"]) -> Float32["hidden"]:
        """The cell that a word brings from the state before it."""
        h, c = state
        i, f, u = split(concat(self.words[word], h) @ self.word_w + self.word_b, 3)
        return sigmoid(f) * c + sigmoid(i) * tanh(u)

    def step(self, states: list[tuple[Float32["hidden"], Float32["hidden"]]], character: Token,
             ending: list[tuple[int, Token["word"]]]) -> tuple[Float32["hidden"], Float32["hidden"]]:
        """The state after one more character; `states` has one for every place between characters."""
        h, c = states[-1]
        x = self.characters[character]
        i, f, o, u = split(concat(x, h) @ self.w + self.b, 4)
        if len(ending) == 0:
            c2 = sigmoid(f) * c + sigmoid(i) * tanh(u)
        else:
            # The character's cell and those of the words, by gates that sum to one.
            own = exp(sigmoid(i))
            cells = [self.arc(states[start], word) for start, word in ending]
            gates = [exp(sigmoid(concat(x, cell) @ self.gate_w + self.gate_b)) for cell in cells]
            total, weight = own * tanh(u), own
            for cell, gate in zip(cells, gates):
                total, weight = total + gate * cell, weight + gate
            c2 = total / weight
        return sigmoid(o) * tanh(c2), c2

    def forward(self, line: list[tuple[Token, list[tuple[int, Token["word"]]]]]) -> list[Float32["tags"]]:
        """The scores of the tags of every character."""
        states = [(zeros(self.hidden), zeros(self.hidden))]
        for character, ending in line:
            states.append(self.step(states, character, ending))
        return [h @ self.out_w + self.out_b for h, _ in states[1:]]
