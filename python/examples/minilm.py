"""Sentence embeddings by BERT (Devlin and others 2019) with mean pooling, as all-MiniLM-L6-v2 has it: the
weights are called as in Hugging Face's files, which load as they are:

    model = MiniLM.from_pretrained("all-MiniLM-L6-v2/")
    fast = sf.jit(model)
    fast([encoding.ids for encoding in tokenizer.encode_batch(texts)])      # [texts, 384], no padding
"""
import os

import pretrained
from bert_encoder import COMPUTED, SIZES, Embeddings, Encoder
from sheaf import Float32, Module, Tokens

POOLING = "1_Pooling/config.json"  # of the library sentence-transformers, where it is there


class MiniLM(Module):
    def __init__(self, vocab=30522, hidden=384, heads=12, layers=6, inner=1536, length=512, eps=1e-12):
        self.vocab, self.hidden, self.length = vocab, hidden, length
        self.embeddings = Embeddings(vocab, hidden, length, eps)
        self.encoder = Encoder(hidden, heads, inner, eps, layers)

    @classmethod
    def from_pretrained(cls, directory):
        """With the sizes and weights of a directory as Hugging Face has it."""
        config = pretrained.config(directory, **COMPUTED)
        if os.path.exists(os.path.join(directory, POOLING)):
            pretrained.config(directory, POOLING, pooling_mode_mean_tokens=True, pooling_mode_cls_token=False,
                              pooling_mode_max_tokens=False)
        model = cls(*(config[name] for name in SIZES))
        return pretrained.load(model, directory, "bert.")

    def forward(self, words: Tokens["n"]) -> Float32["hidden"]:
        """The mean of the last states, of length 1."""
        assert len(words) > 0, "a text has at least one token"
        assert len(words) <= self.length, "a text is too long"
        mean = self.encoder(self.embeddings(words)).mean(axis=0)
        return mean / mean.norm()
