"""BERT (Devlin and others 2019) as a classifier of texts, by the first word's last state. The weights are
called as in Hugging Face's files, which load as they are:

    model = Classifier.from_pretrained("classifier/")
    fast = sf.jit(model)
    fast([encoding.ids for encoding in tokenizer.encode_batch(texts)])      # [texts, classes], no padding
"""
import pretrained
from bert_encoder import COMPUTED, SIZES, Embeddings, Encoder
from sheaf import Float32, Module, Tokens, nn, tanh


class Pooler(Module):
    def __init__(self, hidden):
        self.hidden, self.dense = hidden, nn.Linear(hidden, hidden)

    def forward(self, x: Float32["n hidden"]) -> Float32["hidden"]:
        return tanh(self.dense(x[0]))


class Bert(Module):
    def __init__(self, vocab, hidden, heads, layers, inner, length, eps):
        self.hidden, self.length = hidden, length
        self.embeddings = Embeddings(vocab, hidden, length, eps)
        self.encoder = Encoder(hidden, heads, inner, eps, layers)
        self.pooler = Pooler(hidden)

    def forward(self, words: Tokens["n"]) -> Float32["hidden"]:
        assert len(words) <= self.length, "a text has more words than there are positions"
        return self.pooler(self.encoder(self.embeddings(words)))


class Classifier(Module):
    def __init__(self, vocab=30522, hidden=768, heads=12, layers=12, inner=3072, length=512, eps=1e-12,
                 classes=2):
        self.vocab, self.classes = vocab, classes
        self.bert = Bert(vocab, hidden, heads, layers, inner, length, eps)
        self.classifier = nn.Linear(hidden, classes)

    @classmethod
    def from_pretrained(cls, directory):
        """With the sizes and weights of a directory as Hugging Face has it."""
        config = pretrained.config(directory, **COMPUTED)
        model = cls(*(config[name] for name in SIZES),
                    classes=config.get("num_labels") or len(config.get("id2label", "01")))
        return pretrained.load(model, directory, "bert.")

    def forward(self, words: Tokens["n"]) -> Float32["classes"]:
        assert len(words) > 0, "a text has at least one word"
        return self.classifier(self.bert(words))
