"""Safetensors files, honest and not, for a model with `w : f32[2, 3]` and `b : f32[3]`."""
import json
import struct


def write(path, tensors, data=b"", header=None, length=None):
    """A safetensors file; `header` and `length` replace the honest ones."""
    text = json.dumps(tensors) if header is None else header
    text = text.encode()
    n = len(text) if length is None else length
    with open(path, "wb") as stream:
        stream.write(struct.pack("<Q", n) + text + data)


def f32(*values):
    return struct.pack("<%df" % len(values), *values)


def entry(shape, begin, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


W, B = f32(1, 2, 3, 4, 5, 6), f32(7, 8, 9)
good = {"w": entry([2, 3], 0, 24), "b": entry([3], 24, 36)}
