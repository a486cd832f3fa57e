"""Sizes and weights of a directory as Hugging Face has it."""
import json
import os

from sheaf import safetensors


class _Members(dict):
    def __init__(self, pairs):
        super().__init__(pairs)
        if len(self) != len(pairs):
            names = [name for name, _ in pairs]
            raise ValueError(f"'{next(name for name in names if names.count(name) > 1)}' is there twice")

    def __missing__(self, name):
        raise ValueError(f"{self.path}: it has no '{name}'")


def config(directory, file="config.json", **computed):
    """The members of config.json, or of another file. `computed`: by member what a model computes with, one value or a tuple of
    those that are the same; where the file has another its results would be wrong."""
    path = os.path.join(directory, file)
    with open(path, encoding="utf-8") as stream:
        try:
            found = json.load(stream, object_pairs_hook=_Members)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    found.path = path
    for name, known in computed.items():
        known = known if isinstance(known, tuple) else (known,)
        if found.get(name) is not None and not any(
                found[name] == one and isinstance(found[name], bool) == isinstance(one, bool) for one in known):
            raise ValueError(f"{path}: '{name}' is {found[name]!r}, and the model computes with "
                             f"{' or '.join(map(repr, known))}")
    return found


def load(model, directory, base=""):
    """Gives the model the weights of the directory, by their names. Those of the base model may be called
    with its name, `base`, or without; norms of older files have a gamma and a beta. Layers that the model
    lacks are left, but one that has more weights than the model's is another layer. Gives the model."""
    wanted, state = model.state_dict(), {}
    layers, more = {name.rpartition(".")[0] for name in wanted}, []
    for given, value in safetensors.load_file(directory).items():
        name = given.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
        names = {name, base + name, name.removeprefix(base)}
        known = names & wanted.keys()
        state |= dict.fromkeys(known, value)
        if not known and any(name.rpartition(".")[0] in layers for name in names):
            more.append(given)
    # Of a weight with two names a file has one.
    there = {id(wanted[name]) for name in state}
    missing = [name for name, value in wanted.items() if id(value) not in there]
    if missing:
        raise ValueError(f"{directory}: it has no {', '.join(missing)}")
    if more:
        raise ValueError(f"{directory}: the model's layers have no {', '.join(more)}")
    model.load_state_dict(state, strict=False)
    return model
