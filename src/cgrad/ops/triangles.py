"""Identity matrices, triangles of matrices and the places in them.  Next: random.py."""
import numpy as np

from cgrad.core import convert
from cgrad.core.device import check_device
from cgrad.core.dtype import get_default_dtype
from cgrad.core.forward import fill
from cgrad.ops.creation import finish, length, like
from cgrad.ops.define import LINEAR, define, public, publish

__all__ = [
    "eye", "tri", "tril", "triu", "tril_indices", "triu_indices",
]


def eye(n_rows, n_cols=None, *, k=0, dtype=None, device=None, requires_grad=False):
    """
    Matrix with ones on a diagonal and zeros elsewhere.

    Parameters
    ----------
    n_rows : int
    n_cols : int, optional
        As many as rows if left out.
    k : int, default 0
        Which diagonal: positive above the main one, negative below.
    dtype : DType, optional
        The default float if left out.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        A negative length.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    if device is not None:
        check_device("eye", device)
    rows = length("eye", n_rows)
    columns = rows if n_cols is None else length("eye", n_cols)
    if min(rows, columns) < 0 or max(rows, columns) >= 1 << 60:
        raise ValueError(f"eye: {rows} x {columns} is not a possible size")
    k = max(-rows, min(columns, length("eye", k)))
    return finish(fill.eye(rows, columns, k, dtype), requires_grad)


# ---------------------------------------------------------------------------------------------------------------- triangles, grids
_triangle = define("triangle", forward=fill.triangle, moves=True, inputs=("x",), options=("k", "lower"),
                   vjp=lambda g, k, lower: _triangle(g, k, lower), batch=lambda x, k, lower: _triangle(x, k, lower),
                   kind=LINEAR, public=False)


def diagonal_number(k):
    return max(-(1 << 60), min(1 << 60, length("diagonal", k)))


@public(method=True)
def tril(x, k=0):
    """
    Lower triangle: zeros above a diagonal.

    Parameters
    ----------
    x : Tensor
        Shape (..., m, n).
    k : int, default 0
        The last diagonal that stays: positive above the main one, negative below.  `diagonal` is another name.

    Returns
    -------
    Tensor
        A copy in the shape of `x`.

    Raises
    ------
    ValueError
        Fewer than 2 axes.

    Notes
    -----
    Gradient: the same triangle of ``g``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.tril(cg.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return _triangle(like(x), diagonal_number(k), True)


@public(method=True)
def triu(x, k=0):
    """
    Upper triangle: zeros below a diagonal.

    Parameters
    ----------
    x : Tensor
        Shape (..., m, n).
    k : int, default 0
        The first diagonal that stays: positive above the main one, negative below.  `diagonal` is another name.

    Returns
    -------
    Tensor
        A copy in the shape of `x`.

    Raises
    ------
    ValueError
        Fewer than 2 axes.

    Notes
    -----
    Gradient: the same triangle of ``g``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.triu(cg.ones(2, 2))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return _triangle(like(x), diagonal_number(k), False)


def tri(n_rows, n_cols=None, k=0, *, dtype=None, device=None, requires_grad=False):
    """
    Matrix with ones on and below a diagonal and zeros above.

    Parameters
    ----------
    n_rows : int
    n_cols : int, optional
        As many as rows if left out.
    k : int, default 0
        The last diagonal with ones: positive above the main one, negative below.
    dtype : DType, optional
        The default float if left out.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        A negative length.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.tri(2)
    tensor([[1., 0.],
            [1., 1.]])
    """
    if device is not None:
        check_device("tri", device)
    ones = fill.full("tri", (length("tri", n_rows), length("tri", n_rows if n_cols is None else n_cols)), 1, get_default_dtype() if dtype is None else dtype)
    return finish(fill.triangle(ones, diagonal_number(k), True), requires_grad)


def tril_indices(n_rows, n_cols=None, k=0, *, dtype=None, device=None):
    """
    Rows and columns of the elements of a lower triangle.

    Parameters
    ----------
    n_rows : int
    n_cols : int, optional
        As many as rows if left out.
    k : int, default 0
        The last diagonal that belongs to it.
    dtype : DType, optional
        int64 if left out.
    device : {"cpu", None}
        Accepted for compatibility.

    Returns
    -------
    Tensor
        Shape (2, n): a row of row numbers and a row of column numbers.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.tril_indices(2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return triangle_indices("tril_indices", np.tril_indices, n_rows, n_cols, k, dtype, device)


def triu_indices(n_rows, n_cols=None, k=0, *, dtype=None, device=None):
    """
    Rows and columns of the elements of an upper triangle.

    Parameters
    ----------
    n_rows : int
    n_cols : int, optional
        As many as rows if left out.
    k : int, default 0
        The first diagonal that belongs to it.
    dtype : DType, optional
        int64 if left out.
    device : {"cpu", None}
        Accepted for compatibility.

    Returns
    -------
    Tensor
        Shape (2, n): a row of row numbers and a row of column numbers.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.triu_indices(2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return triangle_indices("triu_indices", np.triu_indices, n_rows, n_cols, k, dtype, device)


def triangle_indices(name, function, n_rows, n_cols, k, dtype, device):
    check_device(name, device)
    rows = length(name, n_rows)
    columns = rows if n_cols is None else length(name, n_cols)
    if min(rows, columns) < 0:
        raise ValueError(f"{name}: {rows} x {columns} is not a possible size")
    return convert.tensor_from(np.stack(function(rows, length(name, k), columns)), "int64" if dtype is None else dtype, None)


for _name in ("eye", "tri", "tril_indices", "triu_indices"):
    publish(_name, globals()[_name], method=False)
