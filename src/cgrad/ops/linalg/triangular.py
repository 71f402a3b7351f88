"""Systems with a triangular matrix, and what Cholesky factors are for.

The gradient of a solution is another solution, with the transposed matrix.  Next: solving.py.
"""
from cgrad.core.forward import lapack
from cgrad.ops.triangles import _triangle, eye
from cgrad.ops.define import define, public
from cgrad.ops.linalg.matrices import aligned, linalg, matrix, right_hand_side, square
from cgrad.ops.shape import _squeeze


def _slope_in_triangle(g, x, out, upper):
    return _triangle(-(_solve_triangular(x.mT, g, not upper) @ out.mT), 0, not upper)


def _tangent(tx, ty, x, out, upper):
    moved = ty
    if tx is not None:
        moved = -(_triangle(tx, 0, not upper) @ out)
        moved = moved if ty is None else moved + ty
    return _solve_triangular(x, moved, upper)


#: x @ out = y for the upper or lower triangle of x; y has columns
_solve_triangular = define(
    "solve_triangular", forward=lapack.solve_triangular, inputs=("x", "y"), options=("upper",),
    vjp=(_slope_in_triangle, lambda g, x, upper: _solve_triangular(x.mT, g, not upper)), jvp=_tangent,
    batch=lambda x, y, upper, batched: _solve_triangular(*aligned((x, y), batched), upper), public=False)


@linalg
def solve_triangular(x, y, *, upper, left=True, unitriangular=False):
    """Solution of systems with triangular matrices: ``x @ out == y``.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n).  Only one triangle is read.
    y : Tensor
        Of shape (..., n, k), or (n,) for one vector; leading axes broadcast.
    upper : bool
        Whether `x` is an upper or a lower triangle.
    left : bool, optional
        False solves ``out @ x == y`` for `y` of shape (..., k, n).
    unitriangular : bool, optional
        Whether the diagonal counts as ones and is not read either.

    Returns
    -------
    Tensor

    Raises
    ------
    cgrad.linalg.LinAlgError
        If an element of the diagonal is 0.
    ValueError
        If the shapes do not fit.

    Notes
    -----
    Gradient: ``gy = x^-T g`` and ``gx = -gy @ out.mT`` on the triangle.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.solve_triangular(cg.tensor([[2.0, 0.0], [1.0, 1.0]]), cg.tensor([4.0, 3.0]), upper=False)
    tensor([2., 1.])
    """
    x, upper = square("solve_triangular", x), bool(upper)
    if unitriangular:
        x = _triangle(x, 1 if upper else -1, not upper) + eye(x.shape[-1], dtype=x.dtype)
    if not left:
        y = matrix("solve_triangular", y, "y").mT
        return _solve_triangular(x.mT, right_hand_side("solve_triangular", x, y)[0], not upper).mT
    y, vector = right_hand_side("solve_triangular", x, y)
    out = _solve_triangular(x, y, upper)
    return _squeeze(out, (out.ndim - 1,)) if vector else out


@public(method=True)
def cholesky_solve(x, y, upper=False):
    """Solution of systems whose matrix is known by its Cholesky factor: ``y @ y.mT @ out == x``.

    Parameters
    ----------
    x : Tensor
        Right-hand sides, of shape (..., n, k).
    y : Tensor
        The factor, of shape (..., n, n); only one triangle is read.
    upper : bool, optional
        Whether the factor is an upper triangle: ``y.mT @ y @ out == x``.

    Returns
    -------
    Tensor

    Raises
    ------
    cgrad.linalg.LinAlgError
        If an element of the diagonal is 0.
    ValueError
        If the shapes do not fit.

    Notes
    -----
    Gradient: that of the two triangular systems it is made of; 0 in the triangle that is not read (where PyTorch has numbers).

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.cholesky_solve(cg.tensor([[8.0], [6.0]]), cg.tensor([[2.0, 0.0], [1.0, 1.0]]))
    tensor([[1.],
            [2.]])
    """
    y = square("cholesky_solve", y, "the factor")
    x, _ = right_hand_side("cholesky_solve", y, matrix("cholesky_solve", x))
    lower = y.mT if upper else y
    return _solve_triangular(lower.mT, _solve_triangular(lower, x, False), True)


@public(method=True)
def cholesky_inverse(x, upper=False):
    """Inverse of matrices that are known by their Cholesky factors: of ``x @ x.mT``.

    Parameters
    ----------
    x : Tensor
        The factor, of shape (..., n, n); only one triangle is read.
    upper : bool, optional
        Whether the factor is an upper triangle: the inverse of ``x.mT @ x``.

    Returns
    -------
    Tensor

    Raises
    ------
    cgrad.linalg.LinAlgError
        If an element of the diagonal is 0.
    ValueError
        If the last two axes differ in length.

    Notes
    -----
    Gradient: that of the triangular system and the product it is made of; 0 in the triangle that is not read (where PyTorch has numbers).

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.cholesky_inverse(cg.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([[0.2500, 0.0000],
            [0.0000, 1.0000]])
    """
    x = square("cholesky_inverse", x)
    inverse = _solve_triangular(x.mT if upper else x, eye(x.shape[-1], dtype=x.dtype), False)
    return inverse.mT @ inverse
