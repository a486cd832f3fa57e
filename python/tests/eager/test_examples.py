"""Every model of models/ in Python: eager code against what the command gives for the `.sheaf` file."""
import dataclasses
import glob
import json
import os
import shutil
import sys

import numpy as np
import pytest

import sheaf as sf
from conftest import array, assert_close

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
CHECKPOINTS = os.path.join(ROOT, "tests", "checkpoints")
sys.path.insert(0, os.path.join(ROOT, "python", "examples"))
from catalogue import DATA, EXAMPLES, PRETRAINED, pretrained

FEW = 8
TWINS = [example.name for example in EXAMPLES.values() if example.twin]


class Differs(AssertionError):
    """Another decision: an int, a truth value, a length or a constructor is another one."""


def compare(got, wanted, words, what):
    """An eager value against one of the command's JSON."""
    if isinstance(got, sf.Tensor):
        if got.dtype.kind != "f":
            if not np.array_equal(got, array(wanted).reshape(got.shape)):
                raise Differs(what)
        else:
            assert_close(got, array(wanted).reshape(got.shape), what)
    elif dataclasses.is_dataclass(got):
        (name, fields), = wanted.items()
        if name != type(got).__name__:
            raise Differs(what)
        for field, value in zip(dataclasses.fields(got), fields):
            compare(getattr(got, field.name), value, words, f"{what}.{field.name}")
    elif isinstance(got, (list, tuple)):
        if len(got) != len(wanted):
            raise Differs(what)
        for i, (x, y) in enumerate(zip(got, wanted)):
            compare(x, y, words, f"{what}[{i}]")
    elif isinstance(got, float):
        assert_close(got, wanted, what)
    else:
        if got != (words[wanted] if isinstance(wanted, str) else wanted):
            raise Differs(what)


def near(model, data, entry, wanted, words):
    """Whether decisions that differ are near-ties: weights that are off by a few roundings decide as the
    command did."""
    kept = {name: value.copy() for name, value in model.state_dict().items()}
    try:
        for seed in range(32):
            noise = np.random.default_rng(seed)
            for param, value in zip(model.parameters(), kept.values()):
                param.value[...] = value * (1 + 1e-6 * noise.choice([-1, 1], value.shape))
            try:
                compare(getattr(model, entry)(data), wanted, words, "perturbed")
                return True
            except Differs:
                pass
        return False
    finally:
        model.load_state_dict(kept)


def command(sheaf, example, tmp_path, *options):
    """What the command gives for the first instances, and the vocabulary."""
    few = tmp_path / example.data
    with open(os.path.join(DATA, example.data), encoding="utf-8") as stream:
        few.write_text("".join(stream.readlines()[:FEW]))
    dims = {"hidden": example.hidden} | example.dims
    path = os.path.join(ROOT, "models", example.name + ".sheaf")
    words, vocabularies = tmp_path / "words.txt", []
    sheaf("vocab", os.path.join(DATA, example.data), "--model", path, "-o", words)
    vocabularies = ["--vocab", words]
    if example.name == "lattice":
        sheaf("vocab", os.path.join(DATA, example.data), "--model", path, "--name", "word", "-o",
              tmp_path / "word.txt")
        vocabularies += ["--vocab", f"word={tmp_path / 'word.txt'}"]
    done = sheaf("run", path, "--data", few, *vocabularies,
                 *[f"--dim={name}={value}" for name, value in dims.items()], *options)
    numbers = {word: i for i, word in enumerate(words.read_text().splitlines())}
    return [json.loads(line) for line in done.stdout.splitlines()], numbers


def agree(example, model, inputs, wanted, words, entry="forward"):
    ties = 0
    assert len(wanted) == FEW
    for i, (given, result) in enumerate(zip(inputs, wanted)):
        try:
            compare(getattr(model, entry)(sf.tensor(given) if entry == "next" else given), result, words,
                    f"{example.name}[{i}]")
        except Differs:
            assert near(model, given, entry, result, words), f"{example.name}[{i}] decides otherwise"
            ties += 1
    assert ties <= 1


def test_every_model_is_here():
    models = {os.path.basename(path)[:-6] for path in glob.glob(os.path.join(ROOT, "models", "*.sheaf"))}
    assert set(TWINS) | set(PRETRAINED) == models


@pytest.mark.parametrize("name", TWINS)
def test_eager_is_what_the_command_gives(sheaf, tmp_path, name):
    example = EXAMPLES[name]
    model, inputs = example.load()
    wanted, words = command(sheaf, example, tmp_path)
    agree(example, model, inputs, wanted, words)


@pytest.mark.parametrize("name, entry", [("transformer", "next"), ("sentiment", "loss")])
def test_other_entries(sheaf, tmp_path, name, entry):
    example = EXAMPLES[name]
    model, inputs = example.load()
    wanted, words = command(sheaf, example, tmp_path, "--entry", entry)
    agree(example, model, inputs, wanted, words, entry)


def test_layers_of_torch():
    """Models of sf.nn run, stop when they are done, and see no later words."""
    model, inputs = EXAMPLES["decoder"].load()
    written = [model(prompt) for prompt in inputs[:4]]
    assert all(0 < len(words) <= model.longest and 0 not in words for words in written)
    # The cache holds what a run from the start would have.
    prompt, empty = inputs[1], [sf.zeros(0, 2, model.hidden) for _ in model.layers]
    whole, _ = model.advance(model.embedding[prompt], empty)
    _, caches = model.advance(model.embedding[prompt[:3]], empty)
    parts, _ = model.advance(model.embedding[prompt[3:]], caches)
    np.testing.assert_allclose(parts, whole, rtol=1e-4, atol=1e-5)
    encoder, inputs = EXAMPLES["encoder"].load()
    assert [encoder(sentence).shape for sentence in inputs[:3]] == [(5,)] * 3


@pytest.mark.parametrize("name", PRETRAINED)
def test_reads_what_others_wrote(name):
    """A directory as Hugging Face has it, with what PyTorch computes."""
    directory = os.path.join(CHECKPOINTS, name)
    with open(os.path.join(directory, "expected.json"), encoding="utf-8") as stream:
        expected = json.load(stream)
    model = pretrained(name, directory)
    for text, wanted in zip(expected["texts"], expected["main"], strict=True):
        assert_close(model(np.array(text)), np.array(wanted, np.float32), str(text))
    for text, wanted in zip(expected["texts"], expected.get("generate", [])):
        assert model.generate(np.array(text), len(wanted)) == wanted


@pytest.mark.parametrize("name, base", [("gpt2", "transformer."), ("llama", "model."), ("bert", "bert."),
                                        ("minilm", "")])
def test_other_names_of_weights(tmp_path, name, base):
    """Files may call weights without the name of the base model, or with it, and norms of BERT have other
    names in older ones; a weight that is missing is told."""
    directory = os.path.join(CHECKPOINTS, name)
    weights = sf.safetensors.load_file(directory)
    shutil.copy(os.path.join(directory, "config.json"), tmp_path)

    def read(rename):
        sf.safetensors.save_file({rename(name): value for name, value in weights.items()},
                                 tmp_path / "model.safetensors")
        return pretrained(name, tmp_path).state_dict()

    def other(name):
        if not base:
            return "bert." + name
        return name.removeprefix(base).replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta")

    wanted, found = pretrained(name, directory).state_dict(), read(other)
    assert all(np.array_equal(value, wanted[name]) for name, value in found.items())
    gone = next(name for name in wanted if name in weights and "weight" in name and "embed" not in name)
    with pytest.raises(ValueError, match=f"it has no {gone}$"):
        read(lambda name: "gone" if name == gone else name)


@pytest.mark.parametrize("name, members, message", [
    ("llama", {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, r"positions are scaled, \w+ is 'llama3'"),
    ("llama", {"rope_parameters": {"rope_type": "linear", "factor": 2.0}}, r"positions are scaled, \w+ is 'linear'"),
    ("llama", {"sliding_window": 4096}, "'sliding_window' is 4096"),
    ("llama", {"attention_bias": True}, "'attention_bias' is True, and the model computes with False"),
    ("gpt2", {"activation_function": "relu"}, "'relu', and the model computes with 'gelu_new' or 'gelu_py"),
    ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "'scale_attn_by_inverse_layer_idx' is True"),
    ("bert", {"hidden_act": "relu"}, "'hidden_act' is 'relu'"),
    ("bert_masked", {"is_decoder": True}, "'is_decoder' is True"),
    ("minilm", {"position_embedding_type": "relative_key"}, "'position_embedding_type' is 'relative_key'")])
def test_refuses_what_is_not_computed(tmp_path, name, members, message):
    directory = shutil.copytree(os.path.join(CHECKPOINTS, name), tmp_path / name)
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config | members))
    with pytest.raises(ValueError, match=message):
        pretrained(name, directory)


def test_refuses_layers_with_more_weights_and_sizes_that_are_missing(tmp_path):
    """A bias of queries, as Qwen has, and a config.json that says no size."""
    weights = sf.safetensors.load_file(os.path.join(CHECKPOINTS, "llama"))
    shutil.copy(os.path.join(CHECKPOINTS, "llama", "config.json"), tmp_path)
    more = {name: np.zeros(16, np.float32) for name in ("layers.1.self_attn.q_proj.bias", "rotary.inv_freq")}
    sf.safetensors.save_file(weights | more, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="layers have no layers.1.self_attn.q_proj.bias$"):
        pretrained("llama", tmp_path)
    (tmp_path / "config.json").write_text('{"vocab_size": 20}')
    with pytest.raises(ValueError, match="config.json: it has no 'hidden_size'"):
        pretrained("llama", tmp_path)
    with pytest.raises(ValueError, match="config.json: it has no 'n_embd'"):
        pretrained("gpt2", tmp_path)


def test_minilm_is_bert():
    """With Hugging Face's names; a layer of BERT is torch's encoder layer with the norms last."""
    model, inputs = EXAMPLES["minilm"].load()
    for i, param in enumerate(model.parameters()):
        param.value = np.random.default_rng(i).normal(0, 0.3, param.shape)
    state = model.state_dict()
    assert {"embeddings.LayerNorm.weight", "embeddings.token_type_embeddings.weight",
            "encoder.layer.1.attention.self.query.bias", "encoder.layer.0.attention.output.LayerNorm.bias",
            "encoder.layer.1.intermediate.dense.weight", "encoder.layer.1.output.dense.bias"} <= set(state)
    x = model.embeddings(inputs[1])
    for i in range(2):
        prefix = f"encoder.layer.{i}."
        layer = sf.nn.TransformerEncoderLayer(16, 4, 32, activation="gelu", layer_norm_eps=1e-12)
        names = {"attention.output.dense": "self_attn.out_proj", "attention.output.LayerNorm": "norm1",
                 "intermediate.dense": "linear1", "output.dense": "linear2", "output.LayerNorm": "norm2"}
        given = {f"{name}.{kind}": state[f"{prefix}{bert}.{kind}"] for bert, name in names.items()
                 for kind in ("weight", "bias")}
        for kind in ("weight", "bias"):
            given[f"self_attn.in_proj_{kind}"] = np.concatenate(
                [state[f"{prefix}attention.self.{name}.{kind}"] for name in ("query", "key", "value")])
        layer.load_state_dict(given)
        x = layer(x)
    mean = x.mean(0)
    np.testing.assert_allclose(model(inputs[1]), mean / mean.norm(), rtol=1e-4, atol=1e-5)
