"""An LSTM (Hochreiter, Schmidhuber 1997) that classifies a sentence by its last state."""
from cells import lstm_cell
from sheaf import Float32, Module, Param, Token, concat, glorot, normal, zeros


class Classifier(Module):
    def __init__(self, vocab, hidden=256, classes=5):
        self.vocab, self.hidden, self.classes = vocab, hidden, classes
        self.embedding = Param(vocab, hidden, init=normal(0.1))
        self.w, self.b = Param(2 * hidden, 4 * hidden, init=glorot), Param(4 * hidden)
        self.out_w, self.out_b = Param(hidden, classes, init=glorot), Param(classes)

    def forward(self, words: list[Token]) -> Float32["classes"]:
        h, c = zeros(self.hidden), zeros(self.hidden)
        for word in words:
            h, c = lstm_cell(concat(self.embedding[word], h) @ self.w + self.b, c)
        return h @ self.out_w + self.out_b
