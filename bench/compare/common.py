"""What the comparisons with PyTorch share: the command, its weights, trees."""
import json
import os
import re
import struct
import subprocess
import sys

import torch

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SHEAF = os.path.join(ROOT, "build", "bin", "sheaf")
MODELS = os.path.join(ROOT, "models")


def sheaf(*words):
    run = subprocess.run([SHEAF, *map(str, words)], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"sheaf {' '.join(map(str, words))}\n{run.stderr}")
    return run.stdout


def read_weights(path):
    """The f32 tensors of a safetensors file."""
    with open(path, "rb") as stream:
        header = json.loads(stream.read(struct.unpack("<Q", stream.read(8))[0]))
        data = stream.read()
    header.pop("__metadata__", None)
    return {name: torch.frombuffer(bytearray(data[slice(*entry["data_offsets"])]),
                                   dtype=torch.float32).reshape(entry["shape"])
            for name, entry in header.items() if entry["dtype"] == "F32"}


def read_log(directory):
    with open(os.path.join(directory, "log.jsonl"), encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def read_lines(path, limit=None):
    with open(path, encoding="utf-8") as stream:
        return [line for line in stream.read().split("\n") if line.strip()][:limit]


def read_vocabulary(path):
    """Words by number; those it does not have are 0."""
    return {word: i for i, word in enumerate(read_lines(path))}


def parse_tree(text):
    """(label, word) or (label, left, right), without recursion."""
    stack = [[]]
    for part in re.findall(r"[()]|[^() \t\r\n]+", text):  # other white space is part of a word
        if part == "(":
            stack.append([])
        elif part == ")":
            done = stack.pop()
            stack[-1].append((int(done[0]), *done[1:]))
        else:
            stack[-1].append(part)
    return stack[0][0]
