"""A perceptron of many layers that stops early (Graves 2016): after every layer a halting probability is
read, and when those so far come to 1 the rest of the layers is left out. The answer is the mean of the
states, weighted by their probabilities."""
from sheaf import Float32, Module, Param, Tokens, glorot, normal, relu, sigmoid, squeeze, zeros


class Dense(Module):
    def __init__(self, hidden):
        self.hidden = hidden
        self.w, self.b = Param(hidden, hidden, init=glorot), Param(hidden)
        self.halt_w = Param(hidden, 1, init=glorot)

    def forward(self, x: Float32["hidden"]) -> Float32["hidden"]:
        return x + relu(x @ self.w + self.b)

    def halt(self, x: Float32["hidden"]) -> Float32[""]:
        return sigmoid(2 * squeeze(x @ self.halt_w) - 2)


class EarlyExit(Module):
    def __init__(self, vocab, hidden=256, classes=5, layers=12):
        self.vocab, self.hidden, self.classes = vocab, hidden, classes
        self.layers = [Dense(hidden) for _ in range(layers)]
        self.embedding = Param(vocab, hidden, init=normal(1.0))
        self.out_w, self.out_b = Param(hidden, classes, init=glorot), Param(classes)

    def forward(self, words: Tokens["n"]) -> tuple[int, Float32["classes"]]:
        """The number of layers taken, and the scores of the classes."""
        x, answer = self.embedding[words].mean(axis=0), zeros(self.hidden)
        left, taken = 1.0, 0
        for layer in self.layers:
            x = layer(x)
            p = layer.halt(x).item()
            taken += 1
            if p >= left or taken == len(self.layers):
                answer = answer + left * x
                break
            left, answer = left - p, answer + p * x
        return taken, answer @ self.out_w + self.out_b
