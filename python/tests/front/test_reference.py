"""What follows from the package is as the package has it."""
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "..", "..", "reference.py")

TYPED = """
import sheaf as sf

class Mean(sf.Module):
    def forward(self, xs: list[sf.Float32["n"]]) -> sf.Float32["n"]:
        return sf.mean(sf.stack(xs), axis=0)

fast: sf.Compiled = sf.jit(Mean())
model: sf.Model = sf.load("m.sheafc")
data: sf.Dataset = model.encode([1])
"""


def test_reference_and_stub_are_current():
    done = subprocess.run([sys.executable, "-B", SCRIPT, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_type_checkers_know_the_names(tmp_path):
    pytest.importorskip("mypy")
    file = tmp_path / "typed.py"
    # An annotation like Float32["n"] is no type to mypy, as those of jaxtyping are none.
    file.write_text(TYPED)
    done = subprocess.run([sys.executable, "-m", "mypy", "--follow-imports=silent", "--disable-error-code=valid-type",
                           "--disable-error-code=name-defined", "--cache-dir", str(tmp_path / "cache"), str(file)],
                          capture_output=True, text=True, env={**os.environ, "MYPYPATH": os.path.join(HERE, "..", "..")})
    assert done.returncode == 0, done.stdout + done.stderr
    file.write_text(TYPED + "sf.no_such_name\nmodel.explain(repetitions=1).no_such_member\n")
    done = subprocess.run([sys.executable, "-m", "mypy", "--follow-imports=silent", "--disable-error-code=valid-type",
                           "--disable-error-code=name-defined", "--cache-dir", str(tmp_path / "cache"), str(file)],
                          capture_output=True, text=True, env={**os.environ, "MYPYPATH": os.path.join(HERE, "..", "..")})
    assert "no_such_name" in done.stdout
