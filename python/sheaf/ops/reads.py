"""From tensors to numbers of the host."""
from .tensors import ShapeError, need_tensor, type_of


def read(x):
    """The element of a tensor that has one, as a number of the host; also written `x.item()`."""
    x = need_tensor(x, "read")
    if x.size != 1:
        raise ShapeError(f"cannot read {type_of(x)}: it has {x.size} elements, not one")
    return x.item()


def read_all(x):
    """The elements of a tensor with one axis as a list of numbers; also written `x.tolist()`."""
    x = need_tensor(x, "read")
    if x.ndim != 1:
        raise ShapeError(f"cannot read all of {type_of(x)}: it has {x.ndim} axes, not one")
    return x.tolist()


read.__sheaf_operator__ = "read"
read_all.__sheaf_operator__ = "read_all"
