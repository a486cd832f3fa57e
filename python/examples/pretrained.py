"""Sizes and weights of a directory as Hugging Face has it."""
import json
import os

from sheaf import safetensors


def config(directory):
    with open(os.path.join(directory, "config.json"), encoding="utf-8") as stream:
        return json.load(stream)


def load(model, directory, base=""):
    """Gives the model the weights of the directory, by their names. Files of the base model alone call theirs
    without its name, `base`; what a file has besides is left. Gives the model."""
    state = safetensors.load_file(directory)
    wanted = model.state_dict()
    if base and not any(name.startswith(base) for name in state):
        state = {base + name: value for name, value in state.items()} | state
    missing, _ = model.load_state_dict(state, strict=False)
    # Of a weight with two names a file has one.
    there = {id(value) for name, value in wanted.items() if name in state}
    missing = [name for name in missing if id(wanted[name]) not in there]
    if missing:
        raise ValueError(f"{directory}: it has no {', '.join(missing)}")
    return model
