"""Diagonals: read as a view, put into zeros, exchanged, summed.

Reading a diagonal and putting one into zeros are each other's derivatives.  Next: linalg/matrices.py.
"""
from cgrad.core.arguments import as_tensor, cast, one_axis, whole_number
from cgrad.core.forward import copy as forward_copy
from cgrad.core.forward import fill
from cgrad.core.forward import shape as forward
from cgrad.ops.creation import zeros
from cgrad.ops.triangles import diagonal_number
from cgrad.ops.define import LINEAR, define, public
from cgrad.ops.joining import concat
from cgrad.ops.reduction import _sum
from cgrad.ops.shape import _expand_dims, _reshape


def _embed_forward(x, shape, offset, axes):
    return _put_diagonal(fill.zeros("diag_embed", shape, x.dtype), x, offset, axes)


def _put_forward(x, y, offset, axes):
    return _put_diagonal(forward_copy.clone(x), y, offset, axes)


def _put_diagonal(out, values, offset, axes):
    forward_copy.copy(forward.diagonal(out, offset, axes), values)
    return out


def _shifted(axes):
    return axes[0] + 1, axes[1] + 1


_diagonal = define("diagonal", forward=forward.diagonal, moves=True, inputs=("x",), options=("offset", "axes"), kind=LINEAR,
                   vjp=lambda g, shape_x, offset, axes: _embed(g, shape_x, offset, axes),
                   batch=lambda x, offset, axes: _diagonal(x, offset, _shifted(axes)), public=False)
_embed = define("diag_embed", forward=_embed_forward, moves=True, inputs=("x",), options=("shape", "offset", "axes"), kind=LINEAR,
                vjp=lambda g, offset, axes: _diagonal(g, offset, axes),
                batch=lambda x, shape, offset, axes: _embed(x, x.shape[:1] + shape, offset, _shifted(axes)), public=False)
_put = define("diagonal_scatter", forward=_put_forward, moves=True, inputs=("x", "y"), options=("offset", "axes"), kind=LINEAR,
              vjp=(lambda g, shape_y, offset, axes: _put(g, zeros(shape_y, dtype=g.dtype), offset, axes),
                   lambda g, offset, axes: _diagonal(g, offset, axes)),
              batch=lambda x, y, offset, axes: _put(x, y, offset, _shifted(axes)), public=False)


def _two_axes(name, axis1, axis2, ndim):
    if ndim < 2:
        raise ValueError(f"{name}: a diagonal needs at least 2 axes, the tensor has {ndim}")
    axes = one_axis(name, axis1, ndim, "axis1"), one_axis(name, axis2, ndim, "axis2")
    if axes[0] == axes[1]:
        raise ValueError(f"{name}: axis1 and axis2 are both axis {axes[0]}; a diagonal lies between two")
    return axes


@public(method=True)
def diagonal(x, offset=0, axis1=0, axis2=1):
    """The diagonal of two axes, along a new last axis.

    Parameters
    ----------
    x : Tensor
        At least 2-d.
    offset : int, optional
        Which diagonal: positive above the main one, negative below.
    axis1, axis2 : int, optional
        The axes of rows and columns (PyTorch's ``dim1=``, ``dim2=``).

    Returns
    -------
    Tensor
        A view; empty if the diagonal lies outside.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        For less than two axes, or the same one twice.

    Notes
    -----
    `cgrad.linalg.diagonal` takes the last two axes.  Gradient: ``g`` on the diagonal of zeros.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.diagonal(cg.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    x = as_tensor("diagonal", x)
    return _diagonal(x, diagonal_number(offset), _two_axes("diagonal", axis1, axis2, x.ndim))


@public(method=True)
def diag_embed(x, offset=0, axis1=-2, axis2=-1):
    """Square matrices of zeros with the last axis of `x` on a diagonal.

    Parameters
    ----------
    x : Tensor
        At least 1-d.
    offset : int, optional
        Which diagonal: positive above the main one, negative below.
    axis1, axis2 : int, optional
        Which axes of the result are rows and columns (PyTorch's ``dim1=``, ``dim2=``).

    Returns
    -------
    Tensor
        With one axis more; rows and columns are as many as the diagonal needs.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        For a 0-d tensor, or the same axis twice.

    Notes
    -----
    Gradient: the diagonal of ``g``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.diag_embed(cg.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    x = as_tensor("diag_embed", x)
    if x.ndim == 0:
        raise ValueError("diag_embed: needs at least one axis, got a 0-d tensor")
    axes = _two_axes("diag_embed", axis1, axis2, x.ndim + 1)
    offset = whole_number("diag_embed", "offset", offset)
    shape = list(x.shape[:-1])
    for axis in sorted(axes):
        shape.insert(axis, x.shape[-1] + abs(offset))
    return _embed(x, tuple(shape), offset, axes)


@public(method=True)
def diag(x, k=0):
    """The diagonal of a matrix, or a matrix with a vector on its diagonal.

    Parameters
    ----------
    x : Tensor
        2-d or 1-d.
    k : int, optional
        Which diagonal: positive above the main one, negative below.  `diagonal` is another name.

    Returns
    -------
    Tensor
        1-d (a view) or 2-d.

    Raises
    ------
    ValueError
        For other numbers of axes.

    Notes
    -----
    Gradient: each of the two is the gradient of the other.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.diag(cg.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    >>> cg.diag(cg.tensor([[1, 2], [3, 4]]), 1)
    tensor([2])
    """
    x = as_tensor("diag", x)
    if x.ndim not in (1, 2):
        raise ValueError(f"diag: takes a vector or a matrix, got shape {tuple(x.shape)}; use diagonal or diag_embed for batches")
    return diagonal(x, k) if x.ndim == 2 else diag_embed(x, k)


@public(method=True)
def diagflat(x, offset=0):
    """A matrix with all elements of `x` on a diagonal.

    Parameters
    ----------
    x : Tensor
        Of any shape.
    offset : int, optional
        Which diagonal: positive above the main one, negative below.

    Returns
    -------
    Tensor
        2-d.

    Notes
    -----
    Gradient: the diagonal of ``g`` in the shape of `x`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.diagflat(cg.tensor([[1], [2]]))
    tensor([[1, 0],
            [0, 2]])
    """
    x = as_tensor("diagflat", x)
    return diag_embed(_reshape(x, (x.size,)), offset)


@public(method=True)
def diagonal_scatter(x, src, offset=0, axis1=0, axis2=1):
    """A copy with another diagonal.

    Parameters
    ----------
    x : Tensor
        At least 2-d.
    src : Tensor
        In the shape of the diagonal (see `diagonal`).
    offset : int, optional
        Which diagonal: positive above the main one, negative below.
    axis1, axis2 : int, optional
        The axes of rows and columns.

    Returns
    -------
    Tensor
        In the shape and dtype of `x`.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If `src` has another shape than the diagonal.

    Notes
    -----
    Gradient: ``g`` with zeros on the diagonal, and the diagonal of ``g``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.diagonal_scatter(cg.zeros(2, 2), cg.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    x, src = as_tensor("diagonal_scatter", x), as_tensor("diagonal_scatter", src)
    axes = _two_axes("diagonal_scatter", axis1, axis2, x.ndim)
    offset = diagonal_number(offset)
    shape = tuple(_diagonal(x, offset, axes).shape)
    if tuple(src.shape) != shape:
        raise ValueError(f"diagonal_scatter: src of shape {tuple(src.shape)} does not fit the diagonal, which has shape {shape}")
    return _put(x, cast(src, x.dtype), offset, axes)


@public(method=True)
def trace(x, offset=0, *, dtype=None):
    """Sum of the diagonal of each matrix of the last two axes.

    Parameters
    ----------
    x : Tensor
        At least 2-d.
    offset : int, optional
        Which diagonal: positive above the main one, negative below.
    dtype : dtype, optional
        What to cast `x` to first.

    Returns
    -------
    Tensor
        Without the last two axes; int64 for bools and integers.

    Raises
    ------
    ValueError
        For less than two axes.

    Notes
    -----
    Gradient: ``g`` on the diagonal of zeros.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.trace(cg.tensor([[1, 2], [3, 4]]))
    tensor(5)
    """
    x = cast(as_tensor("trace", x), dtype)
    diagonals = _diagonal(x, diagonal_number(offset), _two_axes("trace", -2, -1, x.ndim))
    return _sum(diagonals, (diagonals.ndim - 1,), False)


@public(method=False)
def block_diag(*xs):
    """A matrix with several matrices along its diagonal, and zeros elsewhere.

    Parameters
    ----------
    *xs : Tensor
        At most 2-d each; a vector is one row, a number one element.

    Returns
    -------
    Tensor
        2-d.

    Raises
    ------
    ValueError
        For more than two axes.

    Notes
    -----
    Gradient: each matrix gets its block of ``g``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.block_diag(cg.tensor([[1, 2]]), cg.tensor([3]))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    if len(xs) == 1 and isinstance(xs[0], (tuple, list)):
        xs = xs[0]
    blocks = []
    for x in xs:
        x = as_tensor("block_diag", x)
        if x.ndim > 2:
            raise ValueError(f"block_diag: a block has at most 2 axes, got shape {tuple(x.shape)}")
        blocks.append(_expand_dims(x, tuple(range(2 - x.ndim))))
    if not blocks:
        return zeros(1, 0)
    rows, columns = [], sum([x.shape[1] for x in blocks])
    before = 0
    for x in blocks:
        m, n = x.shape
        rows.append(concat([zeros(m, before, dtype=x.dtype), x, zeros(m, columns - before - n, dtype=x.dtype)], 1))
        before += n
    return concat(rows, 0)
