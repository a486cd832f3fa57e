"""How parameters begin: the initialisers of the language, with the same bits.

    >>> normal(0.1).draw("embedding", (2, 3), seed=0)

Element i of a parameter follows from (seed, name, i) alone, as runtime/session/init.h says, so
`model.initialize(seed=3)` and `sheaf init model.sheaf --seed 3` give equal weights.
"""
import math
import re

import numpy as np

__all__ = ["Initializer", "constant", "glorot", "he", "identity", "normal", "orthogonal", "uniform"]

# Of each initialiser: the fewest and the most arguments.
_ARGUMENTS = {"zeros": (0, 0), "ones": (0, 0), "constant": (1, 1), "identity": (0, 0),
              "normal": (1, 2), "uniform": (1, 2), "glorot": (0, 0), "he": (0, 0),
              "orthogonal": (0, 1)}


class Initializer:
    """One initialiser with its numbers; str() is how `.sheaf` text writes it."""

    __slots__ = ("name", "arguments")

    def __init__(self, name, arguments=()):
        self.name, self.arguments = name, tuple(arguments)

    def __call__(self, *arguments):
        """The same initialiser with these numbers: `normal(0.1)`, `orthogonal(gain)`."""
        least, most = _ARGUMENTS[self.name]
        if not least <= len(arguments) <= most:
            count = str(least) if least == most else f"{least} to {most}"
            raise TypeError(f"initialiser '{self.name}' takes {count} "
                            f"number{'s' if most != 1 else ''}, not {len(arguments)}")
        numbers = []
        for number in arguments:
            if isinstance(number, bool) or not isinstance(number, (int, float, np.number)):
                raise TypeError(f"initialiser '{self.name}' takes numbers, not {number!r}")
            if not math.isfinite(number):
                raise ValueError(f"initialiser '{self.name}' takes finite numbers, not {number}")
            numbers.append(number.item() if isinstance(number, np.number) else number)
        return Initializer(self.name, numbers)

    def __str__(self):
        return self.name + (f"({', '.join(map(repr, self.arguments))})" if self.arguments else "")

    __repr__ = __str__

    def __eq__(self, other):
        return isinstance(other, Initializer) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))

    def __reduce__(self):
        return Initializer, (self.name, self.arguments)

    def check(self, shape):
        """Raises if it needs numbers that it was not given, or a matrix."""
        if len(self.arguments) < _ARGUMENTS[self.name][0]:
            raise TypeError(f"initialiser '{self.name}' needs its numbers: {self.name}(0.1)")
        if self.name in ("identity", "orthogonal") and len(shape) < 2:
            raise ValueError(f"initialiser '{self.name}' needs a matrix, not the shape {shape}")

    def draw(self, name, shape, seed=0):
        """The f32 values of the parameter `name` with this shape."""
        self.check(shape)
        count = math.prod(shape)
        columns = shape[-1] if shape else 1
        rows = shape[-2] if len(shape) >= 2 else columns
        make = _Generator(seed, name)
        arguments = self.arguments
        if self.name == "uniform":
            lo, hi = arguments if len(arguments) == 2 else (-arguments[0], arguments[0])
            values = lo + (hi - lo) * make.uniform(0, count)
        elif self.name == "glorot":
            bound = math.sqrt(6.0 / max(rows + columns, 1))
            values = -bound + (bound - -bound) * make.uniform(0, count)
        elif self.name == "normal":
            mean, std = arguments if len(arguments) == 2 else (0.0, arguments[0])
            values = mean + std * make.normal(0, count)
        elif self.name == "he":
            values = 0.0 + math.sqrt(2.0 / max(rows, 1)) * make.normal(0, count)
        elif self.name == "orthogonal":
            values = _orthogonal(make, count, rows, columns, arguments[0] if arguments else 1.0)
        elif self.name == "identity":
            values = np.broadcast_to(np.eye(rows, columns), shape)
        else:
            filled = {"zeros": 0.0, "ones": 1.0}.get(self.name)
            values = np.full(shape, arguments[0] if filled is None else filled)
        return np.asarray(values, np.float32).reshape(shape).copy()


_zeros, _ones = Initializer("zeros"), Initializer("ones")
constant, identity = Initializer("constant"), Initializer("identity")
normal, uniform = Initializer("normal"), Initializer("uniform")
glorot, he, orthogonal = Initializer("glorot"), Initializer("he"), Initializer("orthogonal")


def as_initializer(given):
    """An initialiser of what a Param was given: one, its text, or the operators zeros and ones."""
    if isinstance(given, Initializer):
        return given
    operator = getattr(given, "__sheaf_operator__", None)
    if operator in ("zeros", "ones"):
        return Initializer(operator)
    if isinstance(given, str):
        parts = re.fullmatch(r"\s*(\w+)\s*(?:\((.*)\))?\s*", given)
        if parts and parts[1] in _ARGUMENTS:
            try:
                numbers = [float(x) for x in parts[2].split(",")] if parts[2] else []
            except ValueError:
                raise ValueError(f"initialiser {given!r}: its arguments are numbers") from None
            return Initializer(parts[1])(*numbers)
    raise ValueError(f"{given!r} is no initialiser: these are {', '.join(_ARGUMENTS)}")


# The finaliser of splitmix64, and its increment.
_INCREMENT = np.uint64(0x9E3779B97F4A7C15)


def _mix(z):
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return z ^ z >> np.uint64(31)


def _fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


class _Generator:
    """Numbers by their places; the arithmetic of runtime/session/init.cpp, in its order."""

    def __init__(self, seed, name):
        self.key = _mix(np.array([seed & 0xFFFFFFFFFFFFFFFF ^ _fnv1a(name)], np.uint64))

    def _at(self, places):
        bits = _mix(self.key + (places + np.uint64(1)) * _INCREMENT)
        return (bits >> np.uint64(11)).astype(np.float64) * 2.0 ** -53

    def uniform(self, first, count):
        return self._at(np.arange(first, first + count, dtype=np.uint64))

    def normal(self, first, count):
        places = np.arange(first, first + count, dtype=np.uint64)
        pair = places & ~np.uint64(1)
        length = np.sqrt(-2 * _log(1 - self._at(pair)))
        sine, cosine = _sine_cosine_of_turn(self._at(pair + np.uint64(1)))
        return length * np.where(places & np.uint64(1), sine, cosine)


def _log(x):
    m, exponent = np.frexp(x)
    small = m < 0.70710678118654752440
    m, exponent = np.where(small, m * 2, m), exponent - small
    t = (m - 1) / (m + 1)
    t2 = t * t
    total = np.zeros_like(t)
    for k in range(23, 0, -2):
        total = total * t2 + 1.0 / k
    return exponent * 0.69314718055994530942 + 2 * t * total


def _sine_cosine_of_turn(u):
    quarter = (u * 4 + 0.5).astype(np.int64)
    x = (u - quarter * 0.25) * 6.28318530717958647693
    x2 = x * x
    s, c = np.ones_like(x), np.ones_like(x)
    for k in range(17, 2, -2):
        s = 1 - s * x2 / (float(k) * (k - 1))
    s = x * s
    for k in range(18, 1, -2):
        c = 1 - c * x2 / (float(k) * (k - 1))
    which = quarter & 3
    return np.choose(which, [s, c, -s, -c]), np.choose(which, [c, -s, -c, s])


def _orthogonal(make, count, rows, columns, gain):
    values = np.zeros(count)
    size, wide = rows * columns, rows <= columns
    low, high = min(rows, columns), max(rows, columns)
    for first in range(0, count if size else 0, size or 1):
        m = make.normal(first, size).reshape(low, high)
        for r in range(low):
            row = m[r]
            for _ in range(2):
                for q in range(r):
                    # Sums in order, as the run time has them.
                    dot = np.add.accumulate(row * m[q])[-1]
                    row -= dot * m[q]
            length = math.sqrt(np.add.accumulate(row * row)[-1])
            row[:] = row / length if length > 0 else 0
        values[first:first + size] = (gain * (m if wide else m.T)).ravel()
    return values
