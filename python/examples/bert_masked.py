"""BERT as it was trained first (Devlin and others 2019): scores what may stand at each place of a text, as for
words that are masked. The weights are called as in Hugging Face's files, which load as they are:

    model = MaskedBert.from_pretrained("bert-base-uncased/")
    fast = sf.jit(model)
    fast([encoding.ids for encoding in tokenizer.encode_batch(texts)])      # [words, vocab] each
"""
import pretrained
from bert_encoder import COMPUTED, SIZES, Embeddings, Encoder
from sheaf import Float32, Module, Param, Tokens, gelu, nn


class Bert(Module):
    def __init__(self, vocab, hidden, heads, layers, inner, length, eps):
        self.hidden, self.length = hidden, length
        self.embeddings = Embeddings(vocab, hidden, length, eps)
        self.encoder = Encoder(hidden, heads, inner, eps, layers)

    def forward(self, words: Tokens["n"]) -> Float32["n hidden"]:
        assert len(words) <= self.length, "a text has more words than there are positions"
        return self.encoder(self.embeddings(words))


class Transform(Module):
    def __init__(self, hidden, eps):
        self.hidden = hidden
        self.dense, self.LayerNorm = nn.Linear(hidden, hidden), nn.LayerNorm(hidden, eps=eps)

    def forward(self, x: Float32["n hidden"]) -> Float32["n hidden"]:
        return self.LayerNorm(gelu(self.dense(x)))


class Predictions(Module):
    def __init__(self, vocab, hidden, eps):
        self.transform, self.bias = Transform(hidden, eps), Param(vocab)


class Heads(Module):
    def __init__(self, vocab, hidden, eps):
        self.predictions = Predictions(vocab, hidden, eps)


class MaskedBert(Module):
    def __init__(self, vocab=30522, hidden=768, heads=12, layers=12, inner=3072, length=512, eps=1e-12):
        self.vocab, self.hidden = vocab, hidden
        self.bert = Bert(vocab, hidden, heads, layers, inner, length, eps)
        self.cls = Heads(vocab, hidden, eps)

    @classmethod
    def from_pretrained(cls, directory):
        """With the sizes and weights of a directory as Hugging Face has it."""
        config = pretrained.config(directory, tie_word_embeddings=True, **COMPUTED)
        model = cls(*(config[name] for name in SIZES))
        return pretrained.load(model, directory, "bert.")

    def forward(self, words: Tokens["n"]) -> Float32["n vocab"]:
        """Words are scored by the table that reads them."""
        x = self.cls.predictions.transform(self.bert(words))
        return x @ self.bert.embeddings.word_embeddings.weight.T + self.cls.predictions.bias
