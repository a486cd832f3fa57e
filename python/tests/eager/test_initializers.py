"""Initialisers give the bits of `sheaf init`."""
import json
import struct

import numpy as np
import pytest

from sheaf import Module, Param, glorot, he, identity, normal, ones, orthogonal, uniform, zeros
from sheaf.initializers import Initializer, as_initializer

PARAMS = {
    "zeros": ((3,), "zeros"), "ones": ((2, 2), "ones"), "c": ((2, 3), "constant(2.5)"),
    "n": ((7, 5), "normal(0.1)"), "n2": ((11,), "normal(0.5, 2.0)"), "u": ((4, 3), "uniform(0.3)"),
    "u2": ((5,), "uniform(-1.0, 3.0)"), "g": ((6, 4), "glorot"), "g3": ((2, 3, 4), "glorot"),
    "h": ((6, 4), "he"), "o": ((4, 6), "orthogonal"), "o2": ((2, 6, 4), "orthogonal(1.5)"),
    "eye": ((2, 3, 3), "identity"), "scalar": ((), "normal(1.0)"), "g1": ((4,), "glorot"),
}


def safetensors(path):
    data = path.read_bytes()
    size, = struct.unpack("<Q", data[:8])
    found = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            values = np.frombuffer(data[8 + size + first:8 + size + last], np.float32)
            found[name] = values.reshape(entry["shape"])
    return found


@pytest.mark.parametrize("seed", [0, 3])
def test_bits_are_those_of_the_command(sheaf, tmp_path, seed):
    text = [f"param {name} : f32{'[' + ', '.join(map(str, shape)) + ']' if shape else ''} = {init}"
            for name, (shape, init) in PARAMS.items()]
    taken = " + ".join(f"sum({name})" for name in PARAMS)
    (tmp_path / "m.sheaf").write_text("\n".join(text) + f"\nfn main(x: f32) -> f32 = x + {taken}\n")
    sheaf("init", tmp_path / "m.sheaf", "--seed", seed, "-o", tmp_path / "w.safetensors")
    weights = safetensors(tmp_path / "w.safetensors")
    assert set(weights) == set(PARAMS)
    for name, (shape, init) in PARAMS.items():
        drawn = as_initializer(init).draw(name, shape, seed)
        assert drawn.dtype == np.float32 and drawn.shape == shape
        assert drawn.tobytes() == weights[name].tobytes(), name


def test_a_model_begins_with_the_weights_of_seed_0():
    class Layer(Module):
        def __init__(self):
            self.w = Param(3, 4, init=glorot)

    class Model(Module):
        def __init__(self):
            self.layers, self.out = [Layer(), Layer()], Layer()

    model = Model()
    for name, param in model.named_parameters():
        assert param.value.tobytes() == glorot.draw(name, (3, 4)).tobytes()
    assert not np.array_equal(model.layers[0].w.value, model.layers[1].w.value)
    inside = model.initialize(seed=7).out.w.value
    assert inside.tobytes() == glorot.draw("out.w", (3, 4), seed=7).tobytes()


def test_spellings():
    assert str(normal(0.1)) == "normal(0.1)" and str(glorot) == "glorot"
    assert as_initializer(zeros) == Initializer("zeros") and as_initializer(ones).name == "ones"
    assert as_initializer("uniform(-1, 2)") == uniform(-1.0, 2.0)
    assert orthogonal(2.0) != orthogonal and hash(he) == hash(Initializer("he"))


@pytest.mark.parametrize("make, said", [
    (lambda: normal(), "1 to 2"), (lambda: normal(1, 2, 3), "1 to 2"), (lambda: glorot(1), "0"),
    (lambda: normal("a"), "takes numbers"), (lambda: normal(float("nan")), "finite"),
    (lambda: Param(3, init=normal), "needs its numbers"), (lambda: Param(3, init=identity), "matrix"),
    (lambda: Param(3, init="norml(0.1)"), "no initialiser"), (lambda: Param(0, init=ones), "positive"),
    (lambda: Param(2.0, init=ones), "positive"), (lambda: Param(True), "positive")])
def test_mistakes(make, said):
    with pytest.raises((TypeError, ValueError), match=said):
        make()
