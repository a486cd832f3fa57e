"""An LSTM that reads a sentence and writes on, always the likeliest word, until it writes the first word of
the vocabulary, which is the likelier the longer it has written, or has written 20."""
from cells import lstm_cell
from sheaf import Float32, Module, Param, Token, concat, glorot, normal, one_hot, zeros


class Writer(Module):
    def __init__(self, vocab, hidden=256, longest=20):
        self.vocab, self.hidden, self.longest = vocab, hidden, longest
        self.embedding = Param(vocab, hidden, init=normal(0.5))
        self.w, self.b = Param(2 * hidden, 4 * hidden, init=glorot), Param(4 * hidden)
        self.out_w = Param(hidden, vocab, init=glorot)

    def step(self, h: Float32["hidden"], c: Float32["hidden"],
             word: Token) -> tuple[Float32["hidden"], Float32["hidden"]]:
        return lstm_cell(concat(self.embedding[word], h) @ self.w + self.b, c)

    def likeliest(self, h: Float32["hidden"], length: int) -> Token:
        scores = h @ self.out_w + 0.05 * float(length) * one_hot(0, self.vocab)
        return Token(scores.argmax().item())

    def forward(self, words: list[Token]) -> list[Token]:
        h, c = zeros(self.hidden), zeros(self.hidden)
        for word in words:
            h, c = self.step(h, c, word)
        written: list[Token] = []
        word = self.likeliest(h, 0)
        while word != 0 and len(written) < self.longest:
            written.append(word)
            h, c = self.step(h, c, word)
            word = self.likeliest(h, len(written))
        return written
