"""Instances that are converted once and kept."""

from __future__ import annotations

import operator

import numpy as np

from sheaf import _native

_STREAMS = ("heads", "numbers", "floats", "shapes", "elements")


class Dataset:
    """Instances of a model, as it computes with them:

        data = model.encode(trees, labels)
        for i in range(0, len(data), 64):
            losses = loss(data[i:i + 64])

    Models whose arguments have the same types take each other's. `data[i:j]` and `data[indices]`
    are datasets that share what they hold, `data[i]` one of one instance. They pickle as arrays,
    and serve torch's DataLoader: `DataLoader(data, batch_size=64, collate_fn=data.collate)`.
    """

    def __init__(self, values=None, arrays=None):
        """Of the native values, or of what `__getstate__` gave: then a model is needed before
        anything else than slicing."""
        self._values, self._arrays = values, arrays

    def _of(self, model):
        """The native values for a native model."""
        if self._values is None:
            signature, count, columns = self._arrays
            if signature != model.signature():
                raise ValueError("the data were encoded for a model with other arguments")
            self._values = _native.Values.unflatten(model, columns, count)
            self._arrays = None
        return self._values

    def __len__(self):
        return self._arrays[1] if self._values is None else len(self._values)

    @property
    def nbytes(self):
        """Of memory, with what other datasets share."""
        if self._values is None:
            return sum(array.nbytes for column in self._arrays[2] for array in column.values())
        return self._values.bytes

    def __getitem__(self, which):
        count = len(self)
        if isinstance(which, slice):
            which = np.arange(count)[which]
        elif hasattr(which, "__index__") and not isinstance(which, np.ndarray):
            index = operator.index(which)
            if not -count <= index < count:
                raise IndexError(f"there is no instance {index} of {count}")
            which = [index % count]
        which = np.asarray(which)
        if which.ndim != 1:
            raise IndexError("an int, a slice, a list of ints or an array of truth values")
        if which.dtype == bool:
            if len(which) != count:
                raise IndexError(f"{len(which)} truth values for {count} instances")
            which = np.flatnonzero(which)
        elif len(which) and which.dtype.kind not in "iu":
            raise IndexError(f"an array of {which.dtype} is no index")
        which = which.astype(np.int64)
        if len(which) and not (-count <= which.min() and which.max() < count):
            raise IndexError(f"an index is beyond the {count} instances")
        which = np.where(which < 0, which + count, which)
        if self._values is not None:
            return Dataset(self._values.select(which.tolist()))
        signature, _, columns = self._arrays
        return Dataset(arrays=(signature, len(which), [_gather(column, which) for column in columns]))

    def __getitems__(self, which):
        return self[which]

    def __iter__(self):
        for i in range(len(self)):
            yield self[i]

    def __add__(self, other):
        if not isinstance(other, Dataset):
            return NotImplemented
        return self.collate([self, other])

    def shuffled(self, seed):
        """In an order that follows from the seed."""
        return self[np.random.default_rng(seed).permutation(len(self))]

    def batches(self, size):
        """Datasets of `size` instances, the last of fewer."""
        if size < 1:
            raise ValueError(f"a batch of {size} instances")
        for i in range(0, len(self), size):
            yield self[i:i + size]

    @staticmethod
    def collate(parts):
        """One dataset of several."""
        if isinstance(parts, Dataset):
            return parts
        parts = list(parts)
        if not parts:
            raise ValueError("there is nothing to collate")
        if all(part._values is not None for part in parts):
            return Dataset(_native.Values.join([part._values for part in parts]))
        states = [part.__getstate__() for part in parts]
        if len({signature for signature, _, _ in states}) > 1:
            raise ValueError("the data were encoded for models with other arguments")
        columns = [_join(list(column)) for column in zip(*(columns for _, _, columns in states))]
        return Dataset(arrays=(states[0][0], sum(count for _, count, _ in states), columns))

    def __getstate__(self):
        if self._values is None:
            return self._arrays
        return self._values.signature, len(self._values), self._values.flatten()

    def __setstate__(self, state):
        self._values, self._arrays = None, state

    def __repr__(self):
        return f"<sheaf.Dataset of {len(self)} instances, {self.nbytes} bytes>"


def _gather(column, which):
    """The instances `which` of what one argument has, written one after the other."""
    starts = column["starts"].reshape(-1, len(_STREAMS))
    out, begun = {}, []
    for stream, name in enumerate(_STREAMS):
        first, sizes = starts[which, stream], (starts[which + 1, stream] - starts[which, stream])
        ends = np.cumsum(sizes)
        total = int(ends[-1]) if len(ends) else 0
        places = np.arange(total) + np.repeat(first - (ends - sizes), sizes)
        out[name] = column[name][places]
        begun.append(np.concatenate([[0], ends]).astype(np.int64))
    out["starts"] = np.stack(begun, 1).reshape(-1)
    return out


def _join(columns):
    out = {name: np.concatenate([column[name] for column in columns]) for name in _STREAMS}
    begun, before = [], np.zeros(len(_STREAMS), np.int64)
    for column in columns:
        starts = column["starts"].reshape(-1, len(_STREAMS)) + before
        begun.append(starts[:-1])
        before = starts[-1]
    out["starts"] = np.concatenate([*begun, before[None]]).reshape(-1)
    return out
