"""What the tests share: the command, and how its numbers are compared."""
import json
import os
import subprocess

import numpy as np
import pytest


@pytest.fixture(scope="session")
def sheaf():
    """Runs the command; its standard output."""
    def run(*arguments, fails=False):
        done = subprocess.run([os.environ.get("SHEAF", "sheaf"), *map(str, arguments)],
                              capture_output=True, text=True, timeout=280)
        assert fails or done.returncode == 0, done.stderr
        return done
    return run


def number(x):
    return float(x.replace("Infinity", "inf")) if isinstance(x, str) else x


def array(x):
    """A tensor of the command's JSON."""
    def each(x):
        return [each(y) for y in x] if isinstance(x, list) else number(x)
    return np.array(each(x), np.float64)


def assert_close(got, wanted, what, tolerance=1e-5):
    """The oracle's rule: |a - b| <= 1e-5 * max(1, max|b|), infinities and NaN at the same places."""
    got, wanted = np.asarray(got, np.float64), np.asarray(wanted, np.float64)
    assert got.shape == wanted.shape or got.size == wanted.size == 0, (what, got.shape, wanted.shape)
    finite = np.isfinite(wanted)
    assert np.array_equal(np.where(finite, 0, got), np.where(finite, 0, wanted), equal_nan=True), (
        what, got, wanted)
    scale = max(1, np.max(np.abs(wanted[finite]), initial=0))
    worst = np.max(np.abs(got[finite] - wanted[finite]), initial=0)
    assert worst <= tolerance * scale, (what, worst, got, wanted)


def lines(done):
    return [json.loads(line) for line in done.stdout.splitlines()]
