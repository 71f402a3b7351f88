"""Norms of matrices, condition numbers, distances.

The norm of vectors is in ops/softmax.py.  At kinks the gradients are those of `abs`, of maxima (ties share evenly) and of singular
values.  Next: products.py.
"""
import math

from cgrad.core.arguments import as_floating, as_tensor, one_axis
from cgrad.ops.compare import where
from cgrad.ops.define import public
from cgrad.ops.linalg.decompositions import _svdvals
from cgrad.ops.linalg.matrices import column, linalg, matrix, square
from cgrad.ops.linalg.solving import _inv_ex
from cgrad.ops.reduction import _max, _min, _sum
from cgrad.ops.shape import _expand_dims, _permute
from cgrad.ops.softmax import vector_norm

_ORDERS = '"fro", "nuc", 1, -1, 2, -2, inf or -inf'


def _last_two(name, x, axis):
    """`x` with two axes moved to its end, and which they were."""
    if not isinstance(axis, (tuple, list)) or len(axis) != 2:
        raise ValueError(f"{name}: a matrix lies in two axes, got axis={axis!r}")
    first, second = (one_axis(name, a, x.ndim) for a in axis)
    if first == second:
        raise ValueError(f"{name}: axis {first} is named twice in {tuple(axis)}")
    rest = [k for k in range(x.ndim) if k not in (first, second)]
    return _permute(x, (*rest, first, second)), tuple(sorted((first, second)))


@linalg
def matrix_norm(x, ord="fro", axis=(-2, -1), keepdims=False, dtype=None):
    """Norm of matrices.

    Parameters
    ----------
    x : Tensor
        At least 2-d.
    ord : {"fro", "nuc", 1, -1, 2, -2, inf, -inf}, optional
        "fro": the root of the sum of squares; "nuc": the sum of singular values; 2 and -2: the largest and the smallest of them; 1 and -1:
        the largest and the smallest sum of magnitudes of a column; inf and -inf: of a row.
    axis : tuple of two int, optional
        The axes that hold the matrices.
    keepdims : bool, optional
        Whether these axes stay, with length 1.
    dtype : dtype, optional
        What to cast `x` to first.

    Returns
    -------
    Tensor
        Integers give the default float.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        For another order, for axes that are not two, or for the extreme of no elements.

    Notes
    -----
    Gradient: "fro": ``g * x / out``, 0 at the zero matrix; "nuc": ``g * u @ v.mT``; 2 and -2: that of the extreme singular value; the others
    that of `abs` and of maxima, whose ties share evenly.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.matrix_norm(cg.tensor([[3.0, 0.0], [0.0, -4.0]]), "nuc")
    tensor(7.)
    """
    x = as_floating("matrix_norm", x, dtype)
    if x.ndim < 2:
        raise ValueError(f"matrix_norm: x must have at least 2 axes, got shape {tuple(x.shape)}")
    if ord not in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
        raise ValueError(f"matrix_norm: ord must be {_ORDERS}, got {ord!r}")
    moved, axes = _last_two("matrix_norm", x, axis)
    if ord == "fro":
        return vector_norm(x, 2, axes, keepdims)
    last = (moved.ndim - 1,)
    if ord in ("nuc", 2, -2):
        values = _svdvals(moved)
        size = (values.ndim - 1,)
        out = _sum(values, size, False) if ord == "nuc" else (_max if ord > 0 else _min)(values, size, False)
    else:
        sums = _sum(abs(moved if abs(ord) == math.inf else moved.mT), last, False)
        out = (_max if ord > 0 else _min)(sums, (sums.ndim - 1,), False)
    return _expand_dims(out, axes) if keepdims else out


@linalg
def norm(x, ord=None, axis=None, keepdims=False, dtype=None):
    """Norm of vectors or matrices, with the gradient of `vector_norm` or `matrix_norm`.

    Parameters
    ----------
    x : Tensor
    ord : number, "fro", "nuc" or None, optional
        As for `vector_norm` or `matrix_norm`; None for the root of the sum of squares.
    axis : int, tuple of int or None, optional
        One axis holds vectors, two hold matrices (with ``ord=None`` vectors, too).  None: all elements are one vector if `ord` is None, else
        `x` is a vector or a matrix.
    keepdims : bool, optional
        Whether these axes stay, with length 1.
    dtype : dtype, optional
        What to cast `x` to first.

    Returns
    -------
    Tensor
        Integers give the default float.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If `ord` does not fit the number of axes.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.norm(cg.tensor([3.0, 4.0]))
    tensor(5.)
    """
    x = as_floating("norm", x, dtype)
    if ord is None:
        return vector_norm(x, 2, axis, keepdims)
    if axis is None:
        if x.ndim not in (1, 2):
            raise ValueError(f"norm: with ord={ord!r} and no axis, x must be 1-d or 2-d, got shape {tuple(x.shape)}; name the axes")
        axis = tuple(range(x.ndim))
    if isinstance(axis, (tuple, list)) and len(axis) == 2:
        return matrix_norm(x, ord, axis, keepdims)
    if isinstance(ord, str):
        raise ValueError(f"norm: ord={ord!r} is for matrices, but axis={axis!r} holds vectors")
    return vector_norm(x, ord, axis, keepdims)


@public(method=True, name="norm")
def elements_norm(x, p="fro", axis=None, keepdims=False, dtype=None):
    """Norm of all elements, or of those along axes, as one vector (PyTorch's ``norm``).

    Parameters
    ----------
    x : Tensor
    p : number, "fro" or "nuc", optional
        The order of the vector norm, "fro" for 2; "nuc" for the sum of the singular values of matrices in two axes.
    axis : int, tuple of int or None, optional
        The axes that hold the vectors; None for all.
    keepdims : bool, optional
        Whether these axes stay, with length 1.
    dtype : dtype, optional
        What to cast `x` to first.

    Returns
    -------
    Tensor
        Integers give the default float.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        For another `p`.

    Notes
    -----
    `cgrad.linalg.norm` takes two axes for matrices.  Gradient: that of `vector_norm`; 0 at the zero vector.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.norm(cg.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(5.)
    """
    if p == "nuc":
        x = as_floating("norm", x, dtype)
        if axis is None and x.ndim != 2:
            raise ValueError(f'norm: p="nuc" needs two axes; got shape {tuple(x.shape)} and no axis')
        return matrix_norm(x, "nuc", (-2, -1) if axis is None else axis, keepdims)
    if isinstance(p, str) and p != "fro":
        raise ValueError(f'norm: p must be a number, "fro" or "nuc", got {p!r}')
    return vector_norm(x, 2 if p == "fro" or p is None else p, axis, keepdims, dtype)


@linalg
def cond(x, p=None):
    """Condition number of matrices: how much relative errors grow in the solution of a system.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n); for p of None, 2 and -2 of shape (..., m, n).
    p : {None, 2, -2, 1, -1, inf, -inf, "fro", "nuc"}, optional
        None and 2: the largest over the smallest singular value; -2: the reverse; else the norm of `x` times that of its inverse.

    Returns
    -------
    Tensor
        Without the last two axes; infinite for singular matrices.

    Raises
    ------
    ValueError
        For another `p`, or if the shape does not fit.

    Notes
    -----
    Gradient: that of the singular values, or of the norms and the inverse.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.cond(cg.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor(2.)
    """
    if p in (None, 2, -2):
        values = _svdvals(matrix("cond", x))
        if not values.shape[-1]:
            raise ValueError(f"cond: a matrix without elements has no condition number, got shape {tuple(x.shape)}")
        largest, smallest = values[..., 0], values[..., -1]
        return smallest / largest if p == -2 else largest / smallest
    x = square("cond", x)
    inverse, info = _inv_ex(x)
    singular = info > 0
    out = matrix_norm(x, p) * matrix_norm(where(column(column(singular)), 0, inverse), p)
    return where(singular, math.inf, out)


@public(method=True)
def dist(x, y, p=2):
    """Norm of the difference of two tensors.

    Parameters
    ----------
    x, y : Tensor
        Shapes broadcast.
    p : number, optional
        The order of the norm, as for `vector_norm`.

    Returns
    -------
    Tensor
        0-d.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Gradient: that of `vector_norm`; 0 where both are equal.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.dist(cg.tensor([1.0, 2.0]), cg.tensor([4.0, 6.0]))
    tensor(5.)
    """
    return vector_norm(as_tensor("dist", x) - as_tensor("dist", y), p)


@public(method=False)
def cdist(x, y, p=2.0, compute_mode=None):
    """Distances between the rows of two matrices, each with each.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, d).
    y : Tensor
        Of shape (..., n, d); leading axes broadcast.
    p : number, optional
        The order of the norm, as for `vector_norm`.
    compute_mode : str, optional
        Accepted for compatibility: distances are computed from differences always, so that those of near neighbours are exact.

    Returns
    -------
    Tensor
        Of shape (..., m, n).

    Raises
    ------
    ValueError
        If the rows differ in length, or for less than two axes.

    Notes
    -----
    Gradient: that of `vector_norm`; 0 between equal rows.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.cdist(cg.tensor([[0.0, 0.0]]), cg.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    x, y = matrix("cdist", x), matrix("cdist", y, "y")
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"cdist: rows of shapes {tuple(x.shape)} and {tuple(y.shape)} differ in length")
    difference = _expand_dims(x, (x.ndim - 1,)) - _expand_dims(y, (y.ndim - 2,))
    return vector_norm(difference, p, -1)


@public(method=True)
def renorm(x, p, axis, maxnorm):
    """Each slice along an axis scaled down to at most a norm.

    Parameters
    ----------
    x : Tensor
        At least 2-d.
    p : number
        The order of the norm, as for `vector_norm`.
    axis : int
        The axis that counts the slices.
    maxnorm : number
        Slices with a larger norm are scaled down to it.

    Returns
    -------
    Tensor
        In the shape of `x`.

    Raises
    ------
    IndexError
        If the axis is out of range.
    ValueError
        For less than two axes, or a negative `maxnorm`.

    Notes
    -----
    The scale is ``maxnorm / (norm + 1e-7)`` as in PyTorch.  Gradient: that of the product with it; ``g`` where nothing is scaled.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.renorm(cg.tensor([[3.0, 4.0], [0.0, 1.0]], dtype=cg.float64), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.0000, 1.0000]], dtype=cgrad.float64)
    """
    x = as_floating("renorm", x)
    if x.ndim < 2:
        raise ValueError(f"renorm: needs at least 2 axes, got shape {tuple(x.shape)}")
    if maxnorm < 0:
        raise ValueError(f"renorm: maxnorm must not be negative, got {maxnorm}")
    at = one_axis("renorm", axis, x.ndim)
    norms = vector_norm(x, p, tuple([k for k in range(x.ndim) if k != at]), keepdims=True)
    return x * where(norms > maxnorm, maxnorm / (norms + 1e-7), 1)
