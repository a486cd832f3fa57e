"""Softmax, norms, and the losses that are made of them."""
import numpy as np

from .reductions import along, greatest, log_sum_exp, widened
from .registry import operator
from .tensors import ShapeError, as_array, describe, give, host_kind, need_float, type_of


def _shifted(x, axis):
    """x less its greatest along an axis, so that no power overflows; an infinite one stays."""
    most = greatest(x, axis, True)
    return x - np.where(np.isinf(most), x.dtype.type(0), most)


@operator(shape="first")
def softmax(x, axis=-1):
    x = need_float(x, "take the softmax of")
    powers = np.exp(_shifted(widened(x), along(x, axis)))
    share = powers.dtype.type(1) / np.sum(powers, axis=axis, keepdims=True, dtype=powers.dtype)
    return give((powers * share).astype(x.dtype))


@operator(shape="first")
def log_softmax(x, axis=-1):
    x = need_float(x, "take the log_softmax of")
    shifted = _shifted(widened(x), along(x, axis))
    total = np.sum(np.exp(shifted), axis=axis, keepdims=True, dtype=shifted.dtype)
    return give((shifted - np.log(total)).astype(x.dtype))


def _vectors(x, vectors, name):
    if not x.ndim:
        raise ShapeError(f"cannot normalise {type_of(x)}: it has no axes")
    for action, vector in zip(("scale", "shift"), vectors):
        what = f"cannot {action} {type_of(x)} by {type_of(vector)} in '{name}': "
        if vector.dtype != x.dtype:
            raise TypeError(what + "the element types differ")
        if vector.ndim != 1:
            raise ShapeError(what + "it is not a vector")
        if vector.shape[0] != x.shape[-1]:
            raise ShapeError(what + f"the last extents differ ({x.shape[-1]}, {vector.shape[0]})")


def _mean(x):
    return (np.sum(x, axis=-1, keepdims=True, dtype=x.dtype) / x.dtype.type(x.shape[-1]))


def _scaled(deviation, gain, eps):
    one = deviation.dtype.type
    scale = one(1) / np.sqrt(_mean(deviation * deviation) + one(eps))
    return deviation * scale * gain


@operator(shape="first")
def layer_norm(x, gain, bias, eps=1e-05):
    x, gain, bias = (need_float(v, "normalise with") for v in (x, gain, bias))
    _vectors(x, (gain, bias), "layer_norm")
    wide = widened(x)
    return give((_scaled(wide - _mean(wide), gain, eps) + bias).astype(x.dtype))


@operator(shape="first")
def rms_norm(x, gain, eps=1e-06):
    x, gain = (need_float(v, "normalise with") for v in (x, gain))
    _vectors(x, (gain,), "rms_norm")
    return give(_scaled(widened(x), gain, eps).astype(x.dtype))


def _labelled(logits, label):
    """Logits, labels as ints of the shape of the result, and where these are in range."""
    x = need_float(logits, "take the cross entropy of")
    what = f"cannot take the cross entropy of {type_of(x)} and {describe(label)}: "
    if not x.ndim:
        raise ShapeError(what + "the logits have no axes")
    labels, classes = as_array(label), x.shape[-1]
    if labels is None:
        if host_kind(label) is not int:
            raise TypeError(what + "the label is an int, a token or a tensor of ints")
        if x.ndim > 1:
            raise ShapeError(what + "one label goes with one row of logits")
        if not 0 <= label < classes:
            raise IndexError(f"label {label} is out of range for {classes} classes")
        labels = np.array(label)
    if labels.dtype.kind != "i":
        raise TypeError(what + "the label is an int, a token or a tensor of ints")
    if labels.shape != x.shape[:-1]:
        raise ShapeError(what + "there must be one label for each row of logits "
                         f"({x.shape[:-1]}, {labels.shape})")
    inside = (labels >= 0) & (labels < classes)
    return x, np.where(inside, labels, 0).astype(np.intp), inside


def _cross_entropy(logits, label, weight, label_smoothing):
    x, labels, inside = _labelled(logits, label)
    if not 0 <= label_smoothing <= 1:
        raise ValueError("the label smoothing of a cross entropy is from 0 to 1")
    if weight is not None:
        weight = need_float(weight, "weight classes by")
        what = f"cannot weight the classes of {type_of(x)} by {type_of(weight)}: "
        if weight.dtype != x.dtype:
            raise TypeError(what + "the element types differ")
        if weight.ndim != 1:
            raise ShapeError(what + "it is not a vector")
        if weight.shape[0] != x.shape[-1]:
            raise ShapeError(what + f"the extents differ ({x.shape[-1]}, {weight.shape[0]})")
        weight = widened(weight)
    x, of = widened(x), x.dtype
    number = x.dtype.type
    if not x.shape[-1]:
        return give(np.full(labels.shape, np.nan, of))
    terms = log_sum_exp(x, x.ndim - 1, True) - x
    if weight is not None:
        terms = weight * terms
    loss = np.take_along_axis(terms, labels[..., None], axis=-1)[..., 0]
    if label_smoothing:
        share = number(label_smoothing) / number(x.shape[-1])
        loss = number(1 - label_smoothing) * loss + share * np.sum(terms, axis=-1, dtype=x.dtype)
    return give(np.where(inside, loss, number(np.nan)).astype(of))


@operator
def cross_entropy(logits, label, label_smoothing=0):
    return _cross_entropy(logits, label, None, label_smoothing)


@operator(method=False)
def weighted_cross_entropy(logits, label, weight, label_smoothing=0):
    return _cross_entropy(logits, label, weight, label_smoothing)


@operator
def log_prob(logits, index):
    return give(-cross_entropy(logits, index).view(np.ndarray))
