"""Models from elsewhere as Modules."""
from .cells import from_torch

__all__ = ["from_torch"]
