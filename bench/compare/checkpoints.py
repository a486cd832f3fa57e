#!/usr/bin/env python3
"""Makes tests/checkpoints: checkpoints.py DIRECTORY

For each of the models of models/ that read files of Hugging Face a small one of random weights, saved
by the library transformers, and what PyTorch computes with it (expected.json). Needs torch and
transformers; the files say with which versions they were made.
"""
import copy
import json
import os
import sys

import torch
import transformers
from safetensors.torch import save_file
from transformers import (BertConfig, BertForMaskedLM, BertForSequenceClassification, BertModel, GPT2Config,
                          GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM)

TEXTS = [[3, 1, 4, 1, 5, 9, 2, 6], [7], [2, 7, 18, 2], [11, 16, 0, 19, 5, 8, 13, 1, 17, 4, 9]]
COUNT = 6
BERT = dict(vocab_size=20, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20,
            max_position_embeddings=16, hidden_dropout_prob=0, attention_probs_dropout_prob=0)


def rows(tensor):
    return [[float(f"{x:.6g}") for x in row] for row in tensor.reshape(-1, tensor.shape[-1]).tolist()]


def spread(model, scale=0.3):
    """Weights that are far from those that models begin with, so that a wrong one shows."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * scale)
    return model.eval()


def save(model, directory, expected, dtype=None, texts=TEXTS, **options):
    if dtype:  # what is expected is of the rounded weights
        for parameter in model.parameters():
            parameter.copy_(parameter.to(dtype))
    copy.deepcopy(model).to(dtype or torch.float32).save_pretrained(directory, **options)
    for name in os.listdir(directory):
        if name not in ("config.json", "model.safetensors.index.json") and not name.endswith(".safetensors"):
            os.unlink(os.path.join(directory, name))
    made = {"by": f"torch {torch.__version__}, transformers {transformers.__version__}", "texts": texts}
    for entry, compute in expected.items():
        made[entry] = [compute(torch.tensor([text])) for text in texts]
    with open(os.path.join(directory, "expected.json"), "w") as stream:
        json.dump(made, stream)
        stream.write("\n")


def embed(model):
    def compute(ids):
        y = model(ids).last_hidden_state.mean(1)
        return rows(y / y.norm())[0]
    return compute


def continue_greedily(model):
    def compute(ids):
        return model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=COUNT, do_sample=False,
                              pad_token_id=0, eos_token_id=None)[0, ids.shape[1]:].tolist()
    return compute


def last(model):
    return lambda ids: rows(model(ids).logits[:, -1])[0]


class CharCNN(torch.nn.Module):
    """What models/char_cnn.sheaf is, in PyTorch."""

    def __init__(self, vocab=20, size=6, channels=10, classes=3):
        super().__init__()
        self.config = {"vocab": vocab, "size": size, "channels": channels, "classes": classes}
        self.embed = torch.nn.Embedding(vocab, size)
        self.conv1 = torch.nn.Conv1d(size, channels, 7, padding=3)
        self.conv2 = torch.nn.Conv1d(channels, channels, 3, padding=1)
        self.out = torch.nn.Linear(channels, classes)

    def forward(self, ids):
        x = torch.relu(self.conv1(self.embed(ids).transpose(1, 2)))
        return self.out(torch.relu(self.conv2(torch.nn.functional.max_pool1d(x, 3))).amax(2))

    def save_pretrained(self, directory):
        os.makedirs(directory, exist_ok=True)
        save_file(self.state_dict(), os.path.join(directory, "model.safetensors"), {"format": "pt"})
        with open(os.path.join(directory, "config.json"), "w") as stream:
            json.dump(self.config, stream)
            stream.write("\n")


@torch.no_grad()
def main(directory):
    place = lambda name: os.path.join(directory, name)
    torch.manual_seed(1)
    model = spread(BertModel(BertConfig(**BERT)))
    save(model, place("minilm"), {"main": embed(model)})
    model = spread(BertForSequenceClassification(BertConfig(**BERT, num_labels=3)))
    save(model, place("bert"), {"main": lambda ids: rows(model(ids).logits)[0]})
    masked = spread(BertForMaskedLM(BertConfig(**BERT)))
    save(masked, place("bert_masked"), {"main": lambda ids: rows(masked(ids).logits)})
    gpt2 = spread(GPT2LMHeadModel(GPT2Config(vocab_size=20, n_positions=24, n_embd=12, n_layer=2, n_head=3)))
    save(gpt2, place("gpt2"), {"main": last(gpt2), "generate": continue_greedily(gpt2)}, torch.float16)
    llama = spread(LlamaForCausalLM(LlamaConfig(
        vocab_size=20, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, rms_norm_eps=1e-5, rope_theta=500.0, max_position_embeddings=64,
        tie_word_embeddings=True)))
    save(llama, place("llama"), {"main": last(llama), "generate": continue_greedily(llama)}, torch.bfloat16,
         max_shard_size="4KB")

    cnn = spread(CharCNN())
    save(cnn, place("char_cnn"), {"main": lambda ids: rows(cnn(ids))[0]}, texts=[t for t in TEXTS if len(t) > 2])


main(sys.argv[1])
