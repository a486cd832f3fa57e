"""A transformer encoder over sentences of any lengths: no padding, no mask."""
from sheaf import Float32, Module, Param, Tokens, nn, normal


class Encoder(Module):
    def __init__(self, vocab, hidden=256, heads=4, layers=2, classes=5):
        self.vocab, self.hidden, self.classes = vocab, hidden, classes
        self.embedding, self.norm = Param(vocab, hidden, init=normal(0.1)), nn.LayerNorm(hidden)
        self.blocks = [nn.TransformerEncoderLayer(hidden, heads, 4 * hidden, activation="gelu",
                                                  norm_first=True) for _ in range(layers)]
        self.out = nn.Linear(hidden, classes)

    def forward(self, words: Tokens["n"]) -> Float32["classes"]:
        x = self.embedding[words]
        for block in self.blocks:
            x = block(x)
        return self.out(self.norm(x).mean(0))
