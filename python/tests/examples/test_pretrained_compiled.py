"""Models that read directories as Hugging Face has them, compiled: against what PyTorch computes, alone and
together, and bit for bit against the hand-written file."""
import json
import os
import sys

import numpy as np
import pytest

import sheaf as sf

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from test_examples_compiled import ROOT, command, each, exact, listed

from catalogue import PRETRAINED, pretrained

TOLERANCE = 2e-5


def hand_written(name, directory, entry, columns, place):
    """What the command gives for models/NAME.sheaf."""
    data = place / "data.jsonl"
    with open(data, "w", encoding="utf-8") as stream:
        for row in zip(*columns.values()):
            stream.write(json.dumps(row[0] if len(row) == 1 else dict(zip(columns, row))) + "\n")
    done = command("run", os.path.join(ROOT, "models", name + ".sheaf"), "--entry", entry, "--data", data,
                   "--weights", directory + "/")
    return [json.loads(line) for line in done.splitlines()]


def check(method, columns, written):
    """All at once, one at a time, and as the hand-written file has it."""
    rows = list(zip(*columns.values()))
    together = [exact(listed(x)) for x in each(method(*columns.values()), len(rows))]
    alone = [exact(listed(each(method(*([x] for x in row)), 1)[0])) for row in rows]
    assert together == alone
    assert together == [exact(x) for x in written]


@pytest.mark.parametrize("name", PRETRAINED)
def test_compiled(tmp_path, name):
    directory = os.path.join(ROOT, "tests", "checkpoints", name)
    with open(os.path.join(directory, "expected.json"), encoding="utf-8") as stream:
        expected = json.load(stream)
    model, texts = pretrained(name, directory), expected["texts"]
    fast = sf.jit(model)
    for found, wanted in zip(fast(texts), expected["main"], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=TOLERANCE, atol=TOLERANCE)
    columns = {"text": texts}
    check(fast, columns, hand_written(name, directory, "main", columns, tmp_path))
    if "generate" in expected:
        columns["count"] = [len(words) for words in expected["generate"]]
        assert fast.generate(*columns.values()) == expected["generate"]
        check(fast.generate, columns, hand_written(name, directory, "generate", columns, tmp_path))


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_chunks(name):
    """A prompt in chunks gives the words that it gives at once."""
    model = pretrained(name, os.path.join(ROOT, "tests", "checkpoints", name))
    texts = [[3, 1, 4], [1], [5, 9, 2, 6, 5, 3, 5, 8]]
    model.chunk = 3
    chunked = sf.jit(model).generate(texts, [6] * 3)
    assert model.generate(np.array(texts[2]), 6) == chunked[2]
    model.chunk = 100
    assert sf.jit(model).generate(texts, [6] * 3) == chunked


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_drawn(name):
    """Draws among one word are that, and draws among several come as often as their probabilities say."""
    model = pretrained(name, os.path.join(ROOT, "tests", "checkpoints", name))
    fast, text, count = sf.jit(model), [3, 1, 4], 1000
    likeliest, = fast.generate([text], [6])
    one = fast.generate([text] * 3, [6] * 3, [0.0, 2.0, 2.0], [50, 1, 50], [1.0, 1.0, 1e-6])
    assert one == [likeliest] * 3
    with sf.draws(0):
        assert [model.generate(np.array(text), 6, *how) for how in ((0.0, 50, 1.0), (2.0, 1, 1.0))] == [likeliest] * 2
        assert max(model.generate(np.array(text), 6, 1.0)) < model.vocab

    words = [word for word, in fast.generate([text] * count, [1] * count, [1.5] * count, [6] * count)]
    scores = np.asarray(model(np.array(text)), np.float64) / 1.5
    best = np.argsort(-scores)[:6]
    assert set(words) == set(best.tolist())
    shares = np.exp(scores[best]) / np.exp(scores[best]).sum()
    found = np.bincount(words, minlength=model.vocab)[best] / count
    assert np.all(abs(found - shares) < 5 * np.sqrt(shares * (1 - shares) / count))

    for how, words in (([-1.0], "a temperature is at least 0"), ([1.0, 0], "keeps at least 1 element")):
        with pytest.raises(sf.InstanceErrors) as failed:
            fast.generate([text], [2], *([x] for x in how))
        assert words in str(failed.value.exceptions[0])
