"""Weights in safetensors files, by name, as arrays.

    model.load_state_dict(safetensors.load_file("model.safetensors"))
    safetensors.save_file(model.state_dict(), "model.safetensors")

The command takes such files with `--weights`, and `sheaf init` and `sheaf train` write them. Elements of
f16, bf16 and f64 come as f32.
"""
import json
import math
import os
import struct
import threading

import numpy as np

__all__ = ["load_file", "save_file"]

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4",
          "I16": "<i2", "I8": "<i1", "U8": "<u1", "BOOL": "?"}
_NAMES = {"float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "bool": "BOOL"}
_MOST_HEADER = 100 << 20


def load_file(path):
    """{name: array} of a file, of several that an index names (`model.safetensors.index.json`), or of
    a directory with either. Those of f32 are views of the file, which is read when they are."""
    path = os.fsdecode(path)
    if os.path.isdir(path):
        path = _file_of(path)
    if path.endswith(".json"):
        return _load_shards(path)
    return _load_one(path)


def _file_of(directory):
    """The weights of a training that were best, or those that Hugging Face's libraries keep there."""
    for name in ("best.safetensors", "model.safetensors", "model.safetensors.index.json"):
        if os.path.exists(os.path.join(directory, name)):
            return os.path.join(directory, name)
    raise FileNotFoundError(f"{directory}: there is no best.safetensors, model.safetensors or "
                            "model.safetensors.index.json")


class _Twice(ValueError):
    pass


def _once(pairs):
    members = {}
    for name, value in pairs:
        if name in members:
            raise _Twice(f"{name!r} is there twice")
        members[name] = value
    return members


def _load_shards(index):
    def wrong(why):
        return ValueError(f"{index}: no index of weights: {why}")

    try:
        with open(index, encoding="utf-8") as stream:
            found = json.load(stream, object_pairs_hook=_once)["weight_map"].items()
    except _Twice as error:
        raise wrong(error) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise wrong("it has no 'weight_map'") from None
    files, tensors, within = {}, {}, {}
    for tensor, name in found:
        if not isinstance(name, str) or name in ("", ".", "..") or "/" in name or "\0" in name:
            raise wrong(f"the file of '{tensor}' is {name!r}, which is no name of a file beside it")
        files.setdefault(name, []).append(tensor)
    for name, expected in sorted(files.items()):
        path = os.path.join(os.path.dirname(index), name)
        if not os.path.exists(path):
            raise FileNotFoundError(f"{index}: the file '{name}' is not there, which has '{expected[0]}'")
        shard = _load_one(path)
        for tensor in expected:
            if tensor not in shard:
                raise ValueError(f"{index}: '{tensor}' should be in '{name}', which has no such tensor")
        for tensor in shard:
            if tensor in tensors:
                raise ValueError(f"{index}: '{tensor}' is in two files, '{within[tensor]}' and '{name}'")
            within[tensor] = name
        tensors.update(shard)
    return tensors


def _load_one(path):
    size = os.path.getsize(path)

    def wrong(why):
        return ValueError(f"{path}: no safetensors file: {why}")

    if os.path.isdir(path):
        raise wrong("it is a directory")
    with open(path, "rb") as stream:
        start = stream.read(8)
        if len(start) < 8:
            raise wrong("it ends before its header")
        length, = struct.unpack("<Q", start)
        if length > min(size - 8, _MOST_HEADER):
            raise wrong(f"its header would have {length} bytes")
        try:
            header = json.loads(stream.read(length), object_pairs_hook=_once)
            entries = {name: (entry["dtype"], tuple(entry["shape"]), *entry["data_offsets"])
                       for name, entry in header.items() if name != "__metadata__"}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise wrong("its header cannot be read") from None
    first = 8 + length
    data = np.memmap(path, np.uint8, "r") if size > first else np.zeros(first, np.uint8)
    found = {}
    for name, (dtype, shape, begin, end) in entries.items():
        if dtype not in _TYPES:
            raise wrong(f"'{name}' has elements of {dtype}")
        kind = np.dtype(_TYPES[dtype])
        if not all(isinstance(n, int) and n >= 0 for n in (*shape, begin, end)) or not (
                begin <= end <= size - first and end - begin == math.prod(shape) * kind.itemsize):
            raise wrong(f"the place of '{name}' in it is wrong")
        array = data[first + begin:first + end].view(kind).reshape(shape)
        if dtype == "BF16":
            array = (array.astype(np.uint32) << 16).view(np.float32)
        elif dtype in ("F64", "F16"):
            array = array.astype(np.float32)
        found[name] = array.view(np.ndarray)
    return found


def save_file(tensors, path, metadata=None):
    """Writes {name: array}; the file is there whole or not at all. `metadata`: {str: str}."""
    header, begin = {}, 0
    if metadata:
        header["__metadata__"] = {str(key): str(value) for key, value in metadata.items()}
    arrays = []
    for name, array in tensors.items():
        array = np.asarray(array)
        if array.dtype.name not in _NAMES:
            raise TypeError(f"'{name}' has elements of {array.dtype}: files here have f32, f16, i32, i64 "
                            "and bool")
        dtype = array.dtype.newbyteorder("<") if array.dtype.kind != "b" else array.dtype
        array = np.ascontiguousarray(array, dtype).reshape(array.shape)
        header[name] = {"dtype": _NAMES[array.dtype.name], "shape": list(array.shape),
                        "data_offsets": [begin, begin + array.nbytes]}
        begin += array.nbytes
        arrays.append(array)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    folder = os.path.dirname(os.path.abspath(path))
    part = os.path.join(folder, f".sheaf-{os.getpid()}-{threading.get_ident()}")
    try:
        with open(part, "xb") as stream:
            stream.write(struct.pack("<Q", len(text)) + text)
            for array in arrays:
                stream.write(array.tobytes())
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise
