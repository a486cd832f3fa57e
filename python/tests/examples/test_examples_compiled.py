"""Every example compiled: against eager code, alone and together, against its own text and the
hand-written file through the command."""
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import sheaf as sf
from sheaf import safetensors

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path += [os.path.join(ROOT, "python", "examples"), os.path.join(HERE, "..", "eager")]
from catalogue import DATA, EXAMPLES
from conftest import number
from test_examples import Differs, compare, near

FEW = 8
# Examples whose hand-written file gives other bits, and why: none.
OTHER_BITS = {}


def command(*arguments):
    sheaf = os.path.join(os.environ["SHEAF_BUILD"], "bin", "sheaf")
    done = subprocess.run([sheaf, *map(str, arguments)], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    return done.stdout


def listed(value):
    """A result as the command's JSON has it, with f32 as the decimals that read back as the same."""
    if isinstance(value, np.ndarray):
        return [listed(x) for x in value] if value.ndim else listed(value[()])
    if isinstance(value, np.float32):
        return float(str(value))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [listed(x) for x in value]
    if hasattr(value, "__dataclass_fields__"):
        return {type(value).__name__: [listed(getattr(value, name)) for name in value.__dataclass_fields__]}
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def exact(value):
    """f32 as f32, so that the command's shortest decimals compare exactly."""
    if isinstance(value, list):
        return [exact(x) for x in value]
    if isinstance(value, dict):
        return {name: exact(x) for name, x in value.items()}
    return np.float32(value).tobytes() if isinstance(value, float) else value


def same(got, wanted, words):
    """Bit for bit: `wanted` is the command's JSON, with words for tokens."""
    if isinstance(got, float):
        assert np.float32(got).tobytes() == np.float32(number(wanted)).tobytes()
    elif isinstance(got, list):
        assert len(got) == len(wanted)
        for a, b in zip(got, wanted):
            same(a, b, words)
    elif isinstance(got, dict):
        assert list(got) == list(wanted)
        for name in got:
            same(got[name], wanted[name], words)
    else:
        assert got == (words[wanted] if isinstance(wanted, str) else wanted)


def each(result, count):
    """Results one by one: a tuple of columns comes apart."""
    if isinstance(result, tuple):
        return list(zip(*(each(part, count) for part in result)))
    assert len(result) == count
    return [result[i] for i in range(count)]


@pytest.mark.parametrize("name", EXAMPLES)
def test_compiled(tmp_path, name):
    example = EXAMPLES[name]
    model, inputs = example.load()
    inputs = inputs[:FEW]
    fast = sf.jit(model)
    together = each(fast(inputs), len(inputs))
    for i, given in enumerate(inputs):
        alone, = each(fast([given]), 1)
        assert exact(listed(alone)) == exact(listed(together[i])), f"{name}[{i}] alone"
        try:
            compare(model(given), listed(together[i]), {}, f"{name}[{i}]")
        except Differs:
            assert near(model, given, "forward", listed(together[i]), {}), f"{name}[{i}] decides otherwise"

    few, words = tmp_path / example.data, tmp_path / "words.txt"
    with open(os.path.join(DATA, example.data), encoding="utf-8") as stream:
        few.write_text("".join(stream.readlines()[:FEW]))
    text = tmp_path / "m.sheaf"
    text.write_text(fast.source())
    weights = {name: param.value for name, param in fast.program.weights.items()}
    safetensors.save_file(weights, tmp_path / "w.safetensors")
    command("vocab", os.path.join(DATA, example.data), "--model", text, "-o", words)
    vocabularies = ["--vocab", words]
    if name == "lattice":
        command("vocab", os.path.join(DATA, example.data), "--model", text, "--name", "word", "-o",
                tmp_path / "word.txt")
        vocabularies += ["--vocab", f"word={tmp_path / 'word.txt'}"]
    numbers = {word: i for i, word in enumerate(words.read_text().splitlines())}
    done = command("run", text, "--data", few, *vocabularies, "--weights", tmp_path / "w.safetensors")
    for result, line in zip(together, done.splitlines(), strict=True):
        same(listed(result), json.loads(line), numbers)

    if example.twin and name not in OTHER_BITS:
        dims = {"hidden": example.hidden} | example.dims
        done = command("run", os.path.join(ROOT, "models", name + ".sheaf"), "--data", few, *vocabularies,
                       *[f"--dim={dim}={value}" for dim, value in dims.items()])
        for result, line in zip(together, done.splitlines(), strict=True):
            same(listed(result), json.loads(line), numbers)
