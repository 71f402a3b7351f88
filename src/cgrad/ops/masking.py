"""Places given by a mask, and the places where something holds.  Next: scattering.py."""
import builtins
import math

from cgrad.core import batching
from cgrad.core.arguments import as_tensor, shape_tuple
from cgrad.core.forward import gather as along
from cgrad.core.forward import index as forward
from cgrad.ops.define import NONDIFF, define, in_place, public
from cgrad.ops.indexing import getitem


# ------------------------------------------------------------------------------------------------------------------ masks
def bool_mask(name, mask):
    mask = as_tensor(name, mask)
    if mask.dtype.kind != "bool":
        raise TypeError(f"{name}: the mask must be of dtype bool, got {mask.dtype.name}")
    return mask


def common_shape(name, x, y):
    """The shape to which both broadcast."""
    n = builtins.max(x.ndim, y.ndim)
    shape = []
    for a, b in zip((1,) * (n - x.ndim) + tuple(x.shape), (1,) * (n - y.ndim) + tuple(y.shape)):
        if a != b and a != 1 and b != 1:
            raise ValueError(f"{name}: shapes {x.shape} and {y.shape} do not broadcast")
        shape.append(b if a == 1 else a)
    return tuple(shape)


@public(method=True)
def masked_select(x, mask):
    """
    The elements where a mask is true, in one row.

    Parameters
    ----------
    x : Tensor
    mask : Tensor of bool
        Broadcasts with `x`.

    Returns
    -------
    Tensor
        1-d.

    Raises
    ------
    TypeError
        The mask is not of bools.
    ValueError
        The shapes do not broadcast.

    Notes
    -----
    Gradient: ``g`` at the places that were read, 0 elsewhere.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([[1, 2], [3, 4]])
    >>> cg.masked_select(x, x > 2)
    tensor([3, 4])
    """
    x, mask = as_tensor("masked_select", x), bool_mask("masked_select", mask)
    shape = common_shape("masked_select", x, mask)
    return getitem(x.broadcast_to(shape), mask.broadcast_to(shape)).reshape(-1)


@public(method=True)
def masked_fill(x, mask, value):
    """
    A copy of a tensor with one number where a mask is true.

    Parameters
    ----------
    x : Tensor
    mask : Tensor of bool
        Broadcasts with `x`.
    value : number or 0-d Tensor

    Returns
    -------
    Tensor
        The broadcast shape, dtype of `x`.

    Raises
    ------
    TypeError
        The mask is not of bools, or the kind of `value` does not fit `x`.
    ValueError
        The shapes do not broadcast.

    Notes
    -----
    Gradient: ``g`` where the mask is false, for `x`; the sum of ``g`` where it is true, for `value`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.masked_fill(cg.tensor([1.0, 2.0]), cg.tensor([True, False]), -1.0)
    tensor([-1.,  2.])
    """
    from cgrad.ops.compare import where  # compare.py is a later file
    x, mask = as_tensor("masked_fill", x), bool_mask("masked_fill", mask)
    if not isinstance(value, (bool, int, float)) or not x.dtype.is_floating_point:
        value = forward.value_for(x, value, "masked_fill")
        if value.ndim:
            raise ValueError(f"masked_fill: value must be one number, got shape {value.shape}")
        if value.dtype != x.dtype:
            value = value.astype(x.dtype)
    return where(mask, value, x)


# ------------------------------------------------------------------------------------------------------------------ where numbers are
_argwhere = define("argwhere", forward=along.argwhere, moves=True, inputs=("x",), kind=NONDIFF, public=False)


@public(method=True)
def argwhere(x):
    """
    Places of the elements that are not zero.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor
        int64, shape (n, ndim): one place a row, in C order.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.argwhere(cg.tensor([[0, 5], [7, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    return _argwhere(as_tensor("argwhere", x))


@public(method=True)
def nonzero(x, *, as_tuple=True):
    """
    Places of the elements that are not zero, axis by axis.

    Parameters
    ----------
    x : Tensor
    as_tuple : bool, default True
        False gives the matrix that `argwhere` gives, PyTorch's default.

    Returns
    -------
    tuple of Tensor
        One int64 vector for each axis; together they index `x`.

    Raises
    ------
    ValueError
        A 0-d tensor.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([0, 5, 7])
    >>> cg.nonzero(x)
    (tensor([1, 2]),)
    """
    x = as_tensor("nonzero", x)
    places = _argwhere(x)
    if not as_tuple:
        return places
    if x.ndim == 0:
        raise ValueError("nonzero: a 0-d tensor has no places; reshape it to (1,) first")
    return tuple(places[:, k] for k in range(x.ndim))


@public(method=False)
def unravel_index(indices, shape):
    """Places in a flattened tensor as places along each axis.

    Parameters
    ----------
    indices : Tensor of int
    shape : tuple of int
        That of the tensor.

    Returns
    -------
    tuple of Tensor
        int64, one for each axis, in the shape of `indices`.

    Raises
    ------
    IndexError
        A place outside of the tensor.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.unravel_index(cg.tensor([1, 5]), (2, 3))
    (tensor([0, 1]), tensor([1, 2]))
    """
    indices, shape = as_tensor("unravel_index", indices), shape_tuple("unravel_index", shape)
    _check_places("unravel_index", indices, math.prod(shape))
    places = []
    for n in reversed(shape):
        places.append(indices % n)
        indices = indices // n
    return tuple(reversed(places))


@public(method=False)
def ravel_multi_index(indices, shape):
    """Places along each axis as places in the flattened tensor: the reverse of `unravel_index`.

    Parameters
    ----------
    indices : tuple of Tensor of int
        One for each axis; they broadcast.
    shape : tuple of int
        That of the tensor.

    Returns
    -------
    Tensor
        int64.

    Raises
    ------
    IndexError
        A place outside of the tensor.
    ValueError
        Another number of indices than of axes.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.ravel_multi_index((cg.tensor([0, 1]), cg.tensor([1, 2])), (2, 3))
    tensor([1, 5])
    """
    indices, shape = [as_tensor("ravel_multi_index", part) for part in indices], shape_tuple("ravel_multi_index", shape)
    if len(indices) != len(shape) or not shape:
        raise ValueError(f"ravel_multi_index: needs an index for each axis of shape {shape}, got {len(indices)}")
    place = 0
    for part, n in zip(indices, shape):
        _check_places("ravel_multi_index", part, n)
        place = part + place * n
    return place


def _check_places(name, indices, n):
    if indices.dtype.is_floating_point or indices.dtype.kind == "bool":
        raise TypeError(f"{name}: indices must be integers, got {indices.dtype.name}")
    every = batching.all_examples(indices)
    if every.size and not 0 <= every.min().item() <= every.max().item() < n:
        raise IndexError(f"{name}: indices from {every.min().item()} to {every.max().item()} are out of range for {n} places")


in_place(masked_fill)
