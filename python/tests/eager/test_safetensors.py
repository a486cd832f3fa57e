"""Weights in files: what the command writes and reads."""
import json
import os
import struct

import numpy as np
import pytest

import sheaf as sf
from sheaf import Module, Param, normal, safetensors


class Model(Module):
    def __init__(self):
        self.w, self.b = Param(3, 2, init=normal(0.1)), Param(2)

    def forward(self, x: sf.Float32["3"]) -> sf.Float32["2"]:
        return x @ self.w + self.b


TEXT = "param w : f32[3, 2] = normal(0.1)\nparam b : f32[2] = zeros\nfn main(x: f32[3]) -> f32[2] = x @ w + b\n"


def test_the_command_reads_and_writes_them(sheaf, tmp_path):
    (tmp_path / "m.sheaf").write_text(TEXT)
    (tmp_path / "x.jsonl").write_text("[1, 2, 3]\n")
    model = Model().initialize(seed=5)
    model.b.value = [0.5, -1]
    safetensors.save_file(model.state_dict(), tmp_path / "w.safetensors", metadata={"by": "test"})
    done = sheaf("run", tmp_path / "m.sheaf", "--data", tmp_path / "x.jsonl", "--weights",
                 tmp_path / "w.safetensors")
    np.testing.assert_allclose(model([1.0, 2.0, 3.0]), json.loads(done.stdout), rtol=1e-6)
    sheaf("init", tmp_path / "m.sheaf", "--seed", 5, "-o", tmp_path / "again.safetensors")
    loaded = safetensors.load_file(tmp_path / "again.safetensors")
    assert loaded["w"].tobytes() == model.w.value.tobytes() and not loaded["b"].any()
    assert Model().load_state_dict(loaded) == ([], [])


def test_types_and_shapes(tmp_path):
    given = {"a": np.float32(3).reshape(()), "empty": np.zeros((0, 3), np.float32),
             "half": np.float16([1, 0.1]), "turned": np.arange(6, dtype=np.float32).reshape(2, 3).T,
             "ints": np.int64([[2 ** 40]]), "ü": np.array([True, False]), "big": np.ones(2, ">f4")}
    safetensors.save_file(given, tmp_path / "w.safetensors")
    found = safetensors.load_file(tmp_path / "w.safetensors")
    assert list(found) == list(given)
    for name, array in given.items():
        assert np.array_equal(found[name], array) and found[name].shape == array.shape
    assert found["half"].dtype == np.float32
    assert not list(tmp_path.glob(".sheaf-*"))
    with pytest.raises(TypeError, match="complex"):
        safetensors.save_file({"c": np.zeros(1, complex)}, tmp_path / "c.safetensors")
    assert not (tmp_path / "c.safetensors").exists()


def write(path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def test_bf16(tmp_path):
    write(tmp_path / "w", {"x": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}},
          np.uint16([0x3F80, 0xC040]).tobytes())
    assert safetensors.load_file(tmp_path / "w")["x"].tolist() == [1, -3]


@pytest.mark.parametrize("header, data", [
    (b"", b""), (b"{", b""), (b"[]", b""), ({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, b"\0" * 4),
    ({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, b"\0" * 8),
    ({"x": {"dtype": "F32", "shape": [-1], "data_offsets": [4, 0]}}, b"\0" * 8),
    ({"x": {"dtype": "C64", "shape": [1], "data_offsets": [0, 8]}}, b"\0" * 8),
    ({"x": {"dtype": "F32", "shape": [1]}}, b"\0" * 4), (b"[" * 100000, b"")])
def test_files_that_are_none(tmp_path, header, data):
    write(tmp_path / "w", header, data)
    with pytest.raises(ValueError, match="no safetensors file"):
        safetensors.load_file(tmp_path / "w")
    (tmp_path / "short").write_bytes(b"\1\0\0")
    with pytest.raises(ValueError, match="ends before"):
        safetensors.load_file(tmp_path / "short")
    (tmp_path / "long").write_bytes(b"\xff" * 16)
    with pytest.raises(ValueError, match="header would have"):
        safetensors.load_file(tmp_path / "long")


def test_shards(tmp_path):
    """A directory as Hugging Face's libraries write it, read here and by `load`."""
    (tmp_path / "m.sheaf").write_text(TEXT)
    hf = tmp_path / "hf"
    hf.mkdir()
    safetensors.save_file({"w": np.float16([[1, 2], [3, 4], [5, 6]])}, hf / "1.safetensors")
    safetensors.save_file({"b": np.float32([0, 1])}, hf / "2.safetensors")

    def index(**files):
        (hf / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))

    index(w="1.safetensors", b="2.safetensors")
    found = safetensors.load_file(hf)
    assert sorted(found) == ["b", "w"] and found["w"][2].tolist() == [5, 6]
    assert sorted(safetensors.load_file(os.fsencode(hf))) == ["b", "w"]
    (hf / "twice.json").write_text('{"weight_map": {"w": "1.safetensors", "w": "2.safetensors"}}')
    with pytest.raises(ValueError, match="'w' is there twice"):
        safetensors.load_file(hf / "twice.json")
    assert Model().load_state_dict(found) == ([], [])
    (hf / "folder").mkdir()
    for wrong, says in [({"w": "3.safetensors"}, "'3.safetensors' is not there"),
                        ({"w": "2.safetensors"}, "should be in '2.safetensors'"),
                        ({"w": "../1.safetensors"}, "no name of a file"),
                        ({"w": "folder"}, "folder: no safetensors file: it is a directory")]:
        index(**wrong)
        with pytest.raises((ValueError, OSError), match=says):
            safetensors.load_file(hf)
    index(w="1.safetensors", b="2.safetensors")
    safetensors.save_file({"b": np.float32([0, 1]), "w": np.zeros(1)[:0].astype("f4")}, hf / "2.safetensors")
    with pytest.raises(ValueError, match="'w' is in two files"):
        safetensors.load_file(hf)
    with pytest.raises(FileNotFoundError, match="there is no best"):
        safetensors.load_file(tmp_path)
