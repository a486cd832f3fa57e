"""A network of convolutions over characters (Zhang, Zhao, LeCun 2015, of any length and smaller): classifies a
text by the greatest of what each channel finds in it. Weights are called, and lie, as PyTorch has them:

    model = CharCNN.from_pretrained("directory/")       # config.json: {"vocab": 128, "channels": 256, ...}
    fast = sf.jit(model)
    fast([list(text.encode("ascii")) for text in texts])
"""
import pretrained
from sheaf import Float32, Module, Tokens, nn, relu, transpose


class CharCNN(Module):
    def __init__(self, vocab=128, size=32, channels=256, classes=4):
        self.vocab, self.size, self.classes = vocab, size, classes
        self.embed = nn.Embedding(vocab, size)
        self.conv1 = nn.Conv1d(size, channels, 7, padding=3)
        self.conv2 = nn.Conv1d(channels, channels, 3, padding=1)
        self.pool = nn.MaxPool1d(3)
        self.out = nn.Linear(channels, classes)

    @classmethod
    def from_pretrained(cls, directory):
        """With the sizes and weights of a directory."""
        config = pretrained.config(directory)
        model = cls(**{name: config[name] for name in ("vocab", "size", "channels", "classes") if name in config})
        return pretrained.load(model, directory)

    def forward(self, text: Tokens["n"]) -> Float32["classes"]:
        assert len(text) >= 3, "a text has at least three characters"
        x = relu(self.conv1(transpose(self.embed(text))))
        return self.out(relu(self.conv2(self.pool(x))).max(axis=1))
