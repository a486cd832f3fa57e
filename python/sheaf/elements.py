"""Types of elements of tensors, each once: by its name in `.sheaf`, what others call it."""
from typing import NamedTuple


class Element(NamedTuple):
    annotation: str  # as in `sheaf.Float32["n"]`
    array: str  # of NumPy arrays that hold it
    names: tuple = ()  # what libraries of arrays call it
    is_float: bool = False


ELEMENTS = {
    "f32": Element("Float32", "float32", ("float32",), True),
    "f16": Element("Float16", "float16", ("float16",), True),
    "bf16": Element("BFloat16", "float32", ("bfloat16",), True),  # NumPy has none
    "i32": Element("Int32", "int32", ("int32",)),
    "i64": Element("Int64", "int64", ("int64",)),
    "bool": Element("Bool", "bool", ("bool", "bool_")),
}
FLOATS = tuple(name for name, element in ELEMENTS.items() if element.is_float)
