"""Order along an axis: sorted values, and the places of elements that order picks.

NumPy's sorts run on the tensors' own memory (they let the GIL go).  NaN is larger than every number, as in NumPy and PyTorch.  Called by
ops/sorting.py with an axis in range of a tensor that is not 0-d.  Places are int64 and keep the axis.  Next: ops/sorting.py.
"""
import numpy as np

from cgrad.core import convert


def sort(x, axis, descending):
    """The elements in order."""
    out = x.clone()
    array = convert.numpy(out)
    if descending:                      # NumPy only sorts upwards: so it sorts what is read from the other end
        array = np.flip(array, axis)
    array.sort(axis)
    return out


def argsort(x, axis, descending, stable):
    """Places of the elements in order."""
    return convert.share_array(_argsort(convert.numpy(x), axis, descending, stable))


def _argsort(array, axis, descending=False, stable=True):
    kind = "stable" if stable else "quicksort"
    if not descending:
        return np.argsort(array, axis, kind)
    backwards = np.flip(np.argsort(np.flip(array, axis), axis, kind), axis)
    return array.shape[axis] - 1 - backwards


def top(x, k, axis, largest, ordered):
    """Places of the k largest or smallest elements."""
    array = convert.numpy(x)
    n = array.shape[axis]
    if not 0 < k < n:
        return convert.share_array(np.take(_argsort(array, axis, largest), range(k), axis))
    found = np.moveaxis(np.argpartition(array, n - k if largest else k - 1, axis), axis, -1)
    found = found[..., n - k:] if largest else found[..., :k]
    found = np.moveaxis(np.sort(found, -1), -1, axis)            # among equals the first comes first
    if ordered:
        order = _argsort(np.take_along_axis(array, found, axis), axis, largest)
        found = np.take_along_axis(found, order, axis)
    return convert.share_array(found)


def kth(x, k, axis):
    """Place of the k-th smallest element, counted from 0."""
    return convert.share_array(_kth(convert.numpy(x), k, axis))


def _kth(array, k, axis):
    return np.take(np.argpartition(array, k, axis), [k], axis)


def median(x, axis):
    """Place of the median, the lower one of two; of the first NaN if there is one."""
    array = convert.numpy(x)
    found = _kth(array, (array.shape[axis] - 1) // 2, axis)
    if array.dtype.kind == "f":
        missing = np.isnan(array)
        found = np.where(missing.any(axis, keepdims=True), missing.argmax(axis, keepdims=True), found)
    return convert.share_array(found)


def nanmedian(x, axis):
    """Place of the median of what is not NaN."""
    array = convert.numpy(x)
    valid = np.sum(array == array, axis, keepdims=True)
    return convert.share_array(np.take_along_axis(_argsort(array, axis), np.maximum(valid - 1, 0) // 2, axis))


def mode(x, axis):
    """Last place of the element that occurs most often; of the smallest if there are several."""
    array = np.moveaxis(convert.numpy(x), axis, -1)
    order = _argsort(array, -1)
    ordered = np.take_along_axis(array, order, -1)
    count = np.arange(array.shape[-1])
    new = np.concatenate([np.ones((*array.shape[:-1], 1), bool), ordered[..., 1:] != ordered[..., :-1]], -1)
    run = count - np.maximum.accumulate(np.where(new, count, 0), -1)     # how many of the same come before
    found = np.take_along_axis(order, run.argmax(-1)[..., None], -1)
    return convert.share_array(np.moveaxis(found, -1, axis))
