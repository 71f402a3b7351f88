"""LU: matrices as a permutation, a lower and an upper triangle; and systems solved with these.

The formula for square matrices is that of Walter and Lehmann (2012); what lies beyond the square follows from it.  Next: solving.py.
"""
from cgrad.core.forward import lapack
from cgrad.core.arguments import as_tensor
from cgrad.ops.triangles import _triangle, eye
from cgrad.ops.define import NONDIFF, define
from cgrad.ops.indexing import _getitem
from cgrad.ops.joining import concat
from cgrad.ops.linalg.matrices import linalg, matrix, right_hand_side, square
from cgrad.ops.linalg.triangular import _solve_triangular
from cgrad.ops.results import LU as Triangles
from cgrad.ops.results import LUFactor
from cgrad.ops.shape import _squeeze

#: the matrix that exchanges m rows as pivots say
_permutation = define("permutation", forward=lapack.permutation, inputs=("x",), options=("m", "dtype"), kind=NONDIFF,
                      batch=lambda x, m, dtype: _permutation(x, m, dtype), public=False)


def _block(x, rows, columns):
    return _getitem(x, (Ellipsis, slice(*rows), slice(*columns)))


def _lower(packed, k):
    """The lower triangle, with k columns and ones on its diagonal."""
    return _triangle(_block(packed, (None,), (k,)), -1, True) + eye(packed.shape[-2], k, dtype=packed.dtype)


def _lu_vjp(g, out):
    """With p x = l u and k the smaller length: gx = p^T l^-T (tril(l^T gl, -1) + triu(gu u^T)) u^-T on the square of k rows and columns.

    Rows beyond it are l2 = x2 u^-1, columns beyond it u2 = l^-1 x2: these give theirs first, and a share of l and u.
    """
    g, (packed, pivots) = g[0], out
    m, n = packed.shape[-2:]
    k = min(m, n)
    l, u = _block(_lower(packed, k), (k,), (None,)), _block(packed, (k,), (k,))
    gl, gu = _block(g, (k,), (k,)), _block(g, (k,), (k,))
    beyond = None
    if m > k:
        beyond = _solve_triangular(u, _block(g, (k, None), (None,)).mT, True).mT
        gu = gu - _block(packed, (k, None), (None,)).mT @ beyond
    elif n > k:
        beyond = _solve_triangular(l.mT, _block(g, (None,), (k, None)), True)
        gl = gl - beyond @ _block(packed, (None,), (k, None)).mT
    inner = _triangle(l.mT @ _triangle(gl, -1, True), -1, True) + _triangle(_triangle(gu, 0, False) @ _triangle(u, 0, False).mT, 0, False)
    inner = _solve_triangular(u, _solve_triangular(l.mT, inner, True).mT, True).mT
    if beyond is not None:
        inner = concat([inner, beyond], inner.ndim - (2 if m > k else 1))
    return _permutation(pivots, m, packed.dtype).mT @ inner


_lu = define("lu_factor", forward=lapack.lu, inputs=("x",), vjp=_lu_vjp, batch=lambda x: _lu(x), public=False)


@linalg
def lu_factor(x, *, pivot=True):
    """LU decomposition in one matrix, for `lu_solve`.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, n); integers give the default float.
    pivot : bool, optional
        Accepted for compatibility; rows are always exchanged.

    Returns
    -------
    (Tensor, Tensor)
        A named tuple: ``LU``, below whose diagonal is L (without its ones) and above and on it U, and ``pivots``, int32: with which
        row, counted from 1, each row was exchanged in turn.

    Raises
    ------
    cgrad.linalg.LinAlgError
        When a derivative at a singular matrix is asked for.
    ValueError
        For less than two axes, or ``pivot=False``.

    Notes
    -----
    Gradient: that of `lu`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.lu_factor(cg.tensor([[1.0, 2.0], [4.0, 4.0]])).pivots
    tensor([2, 2], dtype=cgrad.int32)
    """
    if not pivot:
        raise ValueError("lu_factor: rows are always exchanged, pivot=False is not possible")
    return LUFactor(*_lu(matrix("lu_factor", x)))


@linalg
def lu(x, *, pivot=True):
    """Matrices as a permutation, a lower and an upper triangle: ``x == P @ L @ U``.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, n), with k the smaller of m and n; integers give the default float.
    pivot : bool, optional
        Accepted for compatibility; rows are always exchanged.

    Returns
    -------
    (Tensor, Tensor, Tensor)
        A named tuple: ``P`` of shape (..., m, m), ``L`` of shape (..., m, k) with ones on its diagonal, ``U`` of shape (..., k, n).

    Raises
    ------
    cgrad.linalg.LinAlgError
        When a derivative at a singular matrix is asked for.
    ValueError
        For less than two axes, or ``pivot=False``.

    Notes
    -----
    Gradient: ``P @ L^-T (tril(L.mT @ gL, -1) + triu(gU @ U.mT)) U^-T`` for square matrices (Walter and Lehmann 2012); P has none.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.lu(cg.tensor([[1.0, 2.0], [4.0, 4.0]])).U
    tensor([[4., 4.],
            [0., 1.]])
    """
    if not pivot:
        raise ValueError("lu: rows are always exchanged, pivot=False is not possible")
    packed, pivots = _lu(matrix("lu", x))
    m, n = packed.shape[-2:]
    k = min(m, n)
    return Triangles(_permutation(pivots, m, packed.dtype).mT, _lower(packed, k), _triangle(_block(packed, (k,), (None,)), 0, False))


@linalg
def lu_solve(LU, pivots, y, *, left=True, adjoint=False):
    """Solution of linear systems whose matrix is known by its LU decomposition.

    Parameters
    ----------
    LU, pivots : Tensor
        What `lu_factor` gives for a matrix x of shape (..., n, n).
    y : Tensor
        Of shape (..., n, k), or (n,) for one vector; leading axes broadcast.
    left : bool, optional
        False solves ``out @ x == y`` for `y` of shape (..., k, n).
    adjoint : bool, optional
        Whether x is transposed.

    Returns
    -------
    Tensor

    Raises
    ------
    cgrad.linalg.LinAlgError
        If x is singular.
    ValueError
        If the shapes do not fit, or pivots are no numbers of rows.

    Notes
    -----
    Gradient: that of the two triangular systems.

    Examples
    --------
    >>> import cgrad as cg
    >>> factors = cg.linalg.lu_factor(cg.tensor([[0.0, 2.0], [4.0, 0.0]]))
    >>> cg.linalg.lu_solve(*factors, cg.tensor([2.0, 4.0]))
    tensor([1., 1.])
    """
    packed, pivots = square("lu_solve", LU, "LU"), as_tensor("lu_solve", pivots)
    if tuple(pivots.shape) != tuple(packed.shape[:-1]) or pivots.dtype.name not in ("int32", "int64"):
        raise ValueError(f"lu_solve: pivots must be integers of shape {tuple(packed.shape[:-1])}, got {pivots.dtype.name} of shape {tuple(pivots.shape)}")
    if not left:
        return _solved(packed, pivots, right_hand_side("lu_solve", packed, matrix("lu_solve", y, "y").mT)[0], not adjoint).mT
    y, vector = right_hand_side("lu_solve", packed, y)
    out = _solved(packed, pivots, y, adjoint)
    return _squeeze(out, (out.ndim - 1,)) if vector else out


def _solved(packed, pivots, y, adjoint):
    n = packed.shape[-1]
    exchange, l = _permutation(pivots, n, packed.dtype), _lower(packed, n)
    if adjoint:
        return exchange.mT @ _solve_triangular(l.mT, _solve_triangular(packed.mT, y, False), True)
    return _solve_triangular(packed, _solve_triangular(l, exchange @ y, False), True)
