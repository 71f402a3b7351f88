"""Whole slices along one axis: read, added to, replaced.  Next: masking.py."""
from cgrad.core import batching
from cgrad.core.arguments import as_tensor, one_axis, whole_number
from cgrad.core.forward import index as forward
from cgrad.ops.define import in_place, public
from cgrad.ops.gathering import scatter, scatter_add
from cgrad.ops.indexing import _key, getitem, index_put


def _at_slices(name, x, axis, index, value, accumulate=False):
    """Slices along an axis written or added to; a 0-d tensor has one slice, and a 0-d index picks one."""
    x, index = as_tensor(name, x), as_tensor(name, index)
    axis, shape = one_axis(name, axis, x.ndim), x.shape
    if index.ndim > 1:
        raise ValueError(f"{name}: index must be a vector, got shape {index.shape}")
    value = forward.value_for(x, value, name)
    x, index = x if shape else x.reshape(1), index if index.ndim else index.reshape(1)
    if batching.is_batched(index):         # scatter takes indices that differ between the examples of a vmap
        places = index.reshape([-1 if k == axis else 1 for k in range(x.ndim)]).broadcast_to(x.shape[:axis] + index.shape + x.shape[axis + 1:])
        out = (scatter_add if accumulate else scatter)(x, axis, places, value.broadcast_to(places.shape))
    else:
        out = index_put(x, _key(axis, index), value, accumulate)
    return out if shape else out.reshape(())


@public(method=True)
def index_add(x, axis, index, source, alpha=1):
    """
    A copy of a tensor with slices of another added along one axis.

    Parameters
    ----------
    x : Tensor
    axis : int
    index : Tensor of int
        1-d; may repeat.
    source : Tensor
        Broadcasts to the shape of ``take(x, index, axis)``.
    alpha : number, default 1
        Factor on `source`.

    Returns
    -------
    Tensor
        Shape of `x`; every repetition of an index counts.

    Raises
    ------
    IndexError
        An index is out of range.
    ValueError
        The shapes do not fit.

    Notes
    -----
    Gradient: ``g`` for `x`; ``alpha * g`` at the indices for `source`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.index_add(cg.zeros(3), 0, cg.tensor([0, 0, 2]), cg.ones(3))
    tensor([2., 0., 1.])
    """
    return _at_slices("index_add", x, axis, index, source if alpha == 1 else as_tensor("index_add", source) * alpha, True)


@public(method=True)
def index_copy(x, axis, index, source):
    """
    A copy of a tensor with slices replaced along one axis.

    Parameters
    ----------
    x : Tensor
    axis : int
    index : Tensor of int
    source : Tensor
        Broadcasts to the shape of ``take(x, index, axis)``.

    Returns
    -------
    Tensor
        Shape of `x`.

    Raises
    ------
    IndexError
        An index is out of range.
    ValueError
        The shapes do not fit.

    Notes
    -----
    Gradient: as for `index_put`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.index_copy(cg.zeros(3), 0, cg.tensor([2]), cg.ones(1))
    tensor([0., 0., 1.])
    """
    return _at_slices("index_copy", x, axis, index, source)


@public(method=True)
def index_fill(x, axis, index, value):
    """
    A copy of a tensor with one number in some slices along an axis.

    Parameters
    ----------
    x : Tensor
    axis : int
    index : Tensor of int
    value : number or 0-d Tensor

    Returns
    -------
    Tensor
        Shape of `x`.

    Raises
    ------
    IndexError
        An index is out of range.

    Notes
    -----
    Gradient: as for `index_put`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.index_fill(cg.zeros(3), 0, cg.tensor([0, 2]), 7.0)
    tensor([7., 0., 7.])
    """
    return _at_slices("index_fill", x, axis, index, value)


@public(method=True)
def select(x, axis, index):
    """
    One slice along an axis; the axis disappears.

    Parameters
    ----------
    x : Tensor
    axis : int
    index : int

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexError
        The index is out of range.

    Notes
    -----
    Gradient: ``g`` at the slice, 0 elsewhere.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.tensor([[1, 2], [3, 4]]).select(1, 0)
    tensor([1, 3])
    """
    x = as_tensor("select", x)
    if x.ndim == 0:
        raise IndexError("select: a 0-d tensor has no axis to select from")
    return getitem(x, _key(one_axis("select", axis, x.ndim), whole_number("select", "index", index)))


@public(method=True)
def narrow(x, axis, start, length):
    """
    A stretch along an axis.

    Parameters
    ----------
    x : Tensor
    axis : int
    start : int
        First position; negative numbers count from the end.
    length : int

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexError
        The stretch leaves the axis.

    Notes
    -----
    Gradient: ``g`` at the stretch, 0 elsewhere.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.arange(5).narrow(0, 1, 3)
    tensor([1, 2, 3])
    """
    x = as_tensor("narrow", x)
    if x.ndim == 0:
        raise IndexError("narrow: a 0-d tensor has no axis to narrow")
    axis = one_axis("narrow", axis, x.ndim)
    start, length = whole_number("narrow", "start", start), whole_number("narrow", "length", length)
    n = x.shape[axis]
    first = start + n if start < 0 else start
    if not 0 <= first <= n or not 0 <= length <= n - first:
        raise IndexError(f"narrow: start {start} and length {length} leave axis {axis} of length {n}")
    return getitem(x, _key(axis, slice(first, first + length)))


@public(method=True)
def narrow_copy(x, axis, start, length):
    """
    A stretch along an axis as a copy.

    Parameters
    ----------
    x : Tensor
    axis, start, length : int
        As for `narrow`.

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        The stretch leaves the axis.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.narrow_copy(cg.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    return narrow(x, axis, start, length).clone()


for _function in (index_add, index_copy, index_fill):
    in_place(_function)
