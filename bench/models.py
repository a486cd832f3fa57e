"""The models of models/ and the data that each of them is for."""
import glob
import os

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def names():
    """Those that read the data of models/; others read a tokenizer's."""
    found = [os.path.basename(path).removesuffix(".sheaf")
             for path in glob.glob(os.path.join(ROOT, "models", "*.sheaf"))]
    return sorted(name for name in found
                  if not os.path.isdir(os.path.join(ROOT, "tests", "checkpoints", name)))


def path_of(name):
    return os.path.join(ROOT, "models", name + ".sheaf")


def data_of(name):
    """The file that the model's first lines name; trees when they name none."""
    with open(path_of(name), encoding="utf-8") as stream:
        found = [word.rstrip(".,;:") for word in stream.read().split()
                 if word.startswith("models/data/")]
    return os.path.join(ROOT, (found or ["models/data/trees.txt"])[0])
