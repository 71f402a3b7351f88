"""NumPy's functions that put elements in, take them out, or write them anew.

All of it is made of joining, taking and writing at places, whose derivatives do.  Next: numerics.py.
"""
import numpy as np

from cgrad.core.arguments import as_tensor, one_axis, shape_tuple
from cgrad.core.convert import tensor_from
from cgrad.core.forward.index import value_for
from cgrad.core.tensor import Tensor
from cgrad.ops.compare import where
from cgrad.ops.creation import zeros
from cgrad.ops.ranges import arange
from cgrad.ops.define import as_method, public
from cgrad.ops.gathering import take
from cgrad.ops.masking import unravel_index
from cgrad.ops.joining import concat
from cgrad.ops.scan import diff
from cgrad.ops.searching import flatnonzero
from cgrad.ops.shape import broadcast_to, moveaxis, reshape


def _along(name, x, axis):
    """(x, axis), flat if there is no axis."""
    x = as_tensor(name, x)
    return (reshape(x, (x.size,)), 0) if axis is None or x.ndim == 0 else (x, one_axis(name, axis, x.ndim))


def _places(name, indices, n, end):
    """Indices into an axis of length `n`, written in any way that NumPy knows, as an array of numbers from 0 to `end`."""
    if isinstance(indices, slice):
        return np.arange(n)[indices]
    indices = np.asarray(indices.detach().numpy() if isinstance(indices, Tensor) else indices)
    if indices.dtype.kind == "b":
        if indices.shape != (n,):
            raise ValueError(f"{name}: a mask for an axis of length {n} must have as many elements, got shape {indices.shape}")
        return np.flatnonzero(indices)
    if indices.size and indices.dtype.kind not in "iu" or indices.ndim > 1:
        raise TypeError(f"{name}: indices must be an integer, a slice, or a row of integers or bools, got {indices.dtype} of shape {indices.shape}")
    if np.any((indices < -n) | (indices > end)):
        raise IndexError(f"{name}: indices {indices.tolist()} are out of range for an axis of length {n}; use {-n} to {end}")
    return np.where(indices < 0, indices + n, indices).astype(int)


@public(method=False)
def append(x, values, axis=None):
    """A tensor with others behind it.

    Parameters
    ----------
    x, values : Tensor
        Equal shapes except along `axis`.
    axis : int or None, optional
        None joins the flattened tensors.

    Returns
    -------
    Tensor
        A copy; dtypes are promoted.

    Raises
    ------
    ValueError
        Shapes that do not fit.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.append(cg.tensor([1, 2]), [3])
    tensor([1, 2, 3])
    """
    return concat([as_tensor("append", x), as_tensor("append", values)], axis)


@public(method=False)
def insert(x, indices, values, axis=None):
    """A tensor with others put in before some places along an axis.

    Parameters
    ----------
    x : Tensor
    indices : int, slice or sequence of int
        Before which elements; all counted in `x` as it is.
    values : Tensor or number
        What broadcasts to one slice for each index; a single index takes any number of slices.
    axis : int or None, optional
        None reads `x` as one flat row.

    Returns
    -------
    Tensor
        A copy, dtype of `x`.

    Raises
    ------
    IndexError
        A place out of range.
    TypeError
        The kind of the values (bool, int, float) is above that of `x`.
    ValueError
        Values that do not fit.

    Notes
    -----
    Gradient: each of the two gets its elements of ``g``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.insert(cg.tensor([1, 2, 3]), [0, 2], cg.tensor([7, 8]))
    tensor([7, 1, 2, 8, 3])
    """
    x, axis = _along("insert", x, axis)
    values, n = value_for(x, values, "insert").astype(x.dtype, copy=False), x.shape[axis]
    places = _places("insert", indices, n, n)
    if places.ndim == 0:
        values = moveaxis(reshape(values, (1,) * (x.ndim - values.ndim) + values.shape), 0, axis)
        places = np.full(values.shape[axis], places)
    values = broadcast_to(values, x.shape[:axis] + (places.size,) + x.shape[axis + 1:])
    order = np.argsort(places, kind="stable")
    source = np.insert(np.arange(n), places[order], n + order)         # where each element of the result lies in x and values, joined
    return take(concat([x, values], axis), tensor_from(source), axis)


@public(method=False)
def delete(x, indices, axis=None):
    """A tensor without some slices along an axis.

    Parameters
    ----------
    x : Tensor
    indices : int, slice, sequence of int or of bool
    axis : int or None, optional
        None reads `x` as one flat row.

    Returns
    -------
    Tensor
        A copy.

    Raises
    ------
    IndexError
        An index out of range.

    Notes
    -----
    Gradient: ``g`` for what is left, 0 for what is not.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.delete(cg.tensor([1, 2, 3]), 1)
    tensor([1, 3])
    """
    x, axis = _along("delete", x, axis)
    n = x.shape[axis]
    return take(x, tensor_from(np.delete(np.arange(n), _places("delete", indices, n, n - 1))), axis)


@public(method=False)
def resize(x, shape):
    """A tensor of any shape, filled with the elements of another over and over.

    Parameters
    ----------
    x : Tensor
    shape : int or tuple of int

    Returns
    -------
    Tensor
        A copy; zeros if `x` is empty.

    Notes
    -----
    Gradient: the sum over the repetitions.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.resize(cg.tensor([1, 2, 3]), (2, 2))
    tensor([[1, 2],
            [3, 1]])
    """
    x, shape = as_tensor("resize", x), shape_tuple("resize", shape)
    if not x.size:
        return zeros(shape, dtype=x.dtype)
    return reshape(x, (x.size,))[reshape(arange(int(np.prod(shape))) % x.size, shape)]


@public(method=False)
def trim_zeros(x, trim="fb"):
    """A vector without the zeros at its ends.

    Parameters
    ----------
    x : Tensor
        1-d.
    trim : {"fb", "f", "b"}, optional
        At the front, at the back, or both.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ValueError
        For more axes, or another `trim`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.trim_zeros(cg.tensor([0, 1, 0, 2, 0]))
    tensor([1, 0, 2])
    """
    x = as_tensor("trim_zeros", x)
    if x.ndim != 1 or trim.lower() not in ("f", "b", "fb", "bf"):
        raise ValueError(f"trim_zeros: takes a vector, and 'f', 'b' or 'fb' for trim; got shape {x.shape} and {trim!r}")
    places = flatnonzero(x).tolist() or [x.size, -1]
    return x[places[0] if "f" in trim.lower() else 0:places[-1] + 1 if "b" in trim.lower() else x.size]


@public(method=False)
def ediff1d(x, to_end=None, to_begin=None):
    """Differences of neighbours in the flattened tensor.

    Parameters
    ----------
    x : Tensor
    to_end, to_begin : Tensor, optional
        What to put behind and before them.

    Returns
    -------
    Tensor
        1-d.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.ediff1d(cg.tensor([1, 4, 9]), to_end=0)
    tensor([3, 5, 0])
    """
    x = as_tensor("ediff1d", x)
    parts = [to_begin, diff(reshape(x, (x.size,))), to_end]
    return concat([as_tensor("ediff1d", part) for part in parts if part is not None], None)


# ------------------------------------------------------------------------------------------------------ written in place
@public(method=False)
def put_along_axis(x, indices, values, axis):
    """Write numbers into a tensor at one place along an axis for each index: the reverse of `take_along_axis`.

    Parameters
    ----------
    x : Tensor
        Changed in place, as in NumPy; `cgrad.scatter` makes a copy.
    indices : Tensor of int
        As many axes as `x`; the others broadcast.
    values : Tensor or number
        Broadcasts to the indices.
    axis : int or None
        None reads `x` as one flat row.

    Returns
    -------
    Tensor
        `x` itself.

    Raises
    ------
    IndexError
        An index out of range.
    ValueError
        Shapes that do not fit.

    Notes
    -----
    Gradient: 0 for the overwritten numbers, ``g`` at the places for the values.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.put_along_axis(cg.zeros(2, 2), cg.tensor([[1], [0]]), 5.0, 1)
    tensor([[0., 5.],
            [5., 0.]])
    """
    indices = as_tensor("put_along_axis", indices)
    if axis is None:
        x[unravel_index(where(indices < 0, indices + x.size, indices), x.shape)] = values
        return x
    axis = one_axis("put_along_axis", axis, x.ndim)
    shape = tuple([m if k == axis else n for k, (n, m) in enumerate(zip(x.shape, indices.shape))])
    return x.scatter_(axis, broadcast_to(indices, shape), broadcast_to(as_tensor("put_along_axis", values), shape))


@public(method=False)
def fill_diagonal(x, value, wrap=False):
    """Write a number into the main diagonal of a tensor.

    Parameters
    ----------
    x : Tensor
        At least 2-d; changed in place.  With more than two axes, all as long, the places ``[i, i, ..., i]``.
    value : number or Tensor
        Broadcasts to the diagonal.
    wrap : bool, optional
        Whether the diagonal of a tall matrix begins anew below the square on top, after a row without.

    Returns
    -------
    Tensor
        `x` itself.

    Raises
    ------
    ValueError
        For less than two axes, or more of unlike length.

    Notes
    -----
    Gradient: 0 for the overwritten numbers, ``g`` on the diagonal for the value.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.fill_diagonal(cg.zeros(2, 2), 3.0)
    tensor([[3., 0.],
            [0., 3.]])
    """
    if x.ndim < 2 or x.ndim > 2 and len(set(x.shape)) > 1:
        raise ValueError(f"fill_diagonal: needs a matrix, or more axes that are all as long, got shape {x.shape}")
    rows, columns = x.shape[:2]
    if x.ndim == 2 and wrap and rows > columns:
        flat = arange(0, rows * columns, columns + 1)
        x[flat // columns, flat % columns] = value
    else:
        x[(arange(min(x.shape)),) * x.ndim] = value
    return x


as_method(fill_diagonal.__wrapped__, "fill_diagonal_")
