"""Inverses, determinants, and solutions of linear systems, exact and by least squares.

Sources: Giles (2008) for inverse, determinant and solution; Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least
squares problems whose variables separate" (1973).  Next: norms.py.
"""
import math

from cgrad.core.batching import all_examples
from cgrad.core.forward import lapack
from cgrad.core.tensor import Tensor
from cgrad.core.arguments import as_floating, one_axis, whole_number
from cgrad.ops.compare import where
from cgrad.ops.creation import zeros
from cgrad.ops.define import NONDIFF, define, public
from cgrad.ops.linalg.decompositions import _svd, svdvals
from cgrad.ops.linalg.matrices import (
    aligned, column, linalg, matrix, right_hand_side, row, square,
)
from cgrad.ops.reduction import _product_of_others, _sum
from cgrad.ops.results import InvEx, Lstsq, Slogdet
from cgrad.ops.shape import _reshape, _squeeze, permute_dims


# --------------------------------------------------------------------------------------------------------------- inverse
#: inv(x, name): `name` is who asks, for the error if x is singular
_inv = define(
    "inv", forward=lapack.inv, inputs=("x",), options=("name",), vjp=lambda g, out: -(out.mT @ g @ out.mT),
    jvp=lambda tx, out: -(out @ tx @ out), batch=lambda x, name: _inv(x, name), public=False)
_inv_ex = define(
    "inv_ex", forward=lapack.inv_ex, inputs=("x",), vjp=lambda g, out: -(out[0].mT @ g[0] @ out[0].mT), batch=lambda x: _inv_ex(x), public=False)


@public(method=True)
def inv(x):
    """Inverse of square matrices.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n); integers give the default float.

    Returns
    -------
    Tensor

    Raises
    ------
    cgrad.linalg.LinAlgError
        If a matrix is singular.
    ValueError
        If the last two axes differ in length.

    Notes
    -----
    To solve systems, `solve` is faster and more accurate.  Gradient: ``-out.mT @ g @ out.mT`` (Giles 2008, section 2.2.3).

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.inv(cg.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return _inv(square("inv", x), "inv")


@linalg
def inv_ex(x, *, check_errors=False):
    """`inv`, with its gradient, that tells in numbers which matrices are singular.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n).
    check_errors : bool, optional
        Whether to raise like `inv` after all.

    Returns
    -------
    (Tensor, Tensor)
        A named tuple: ``inverse``, NaN where there is none, and ``info``, int32: 0, or the number of the first column that depends on
        those before it.

    Raises
    ------
    ValueError
        If the last two axes differ in length.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.inv_ex(cg.zeros(2, 2)).info
    tensor(1, dtype=cgrad.int32)
    """
    x = square("inv_ex", x)
    if check_errors:
        _inv(x.detach(), "inv_ex")
    return InvEx(*_inv_ex(x))


# ----------------------------------------------------------------------------------------------------------- determinants
_orientation = define("orientation", forward=lapack.orientation, inputs=("x", "y"), kind=NONDIFF, batch=lambda x, y: _orientation(x, y), public=False)


def _cofactors(x, out):
    """The gradient of the determinant: det(x) inv(x).mT, or by singular values, which nothing is divided by, for (nearly) singular matrices."""
    if lapack.is_well_conditioned(all_examples(x)):
        return column(column(out)) * _inv(x, "det").mT
    u, s, vt = _svd(x, False)
    return (u * row(_product_of_others(s, _orientation(u, vt), (s.ndim - 1,)))) @ vt


def _det_vjp(g, x, out):
    return column(column(g)) * _cofactors(x, out)


def _det_jvp(tx, x, out):
    return _sum(_cofactors(x, out) * tx, (x.ndim - 2, x.ndim - 1), False)


_det = define("det", forward=lapack.det, inputs=("x",), vjp=_det_vjp, jvp=_det_jvp, batch=lambda x: _det(x), public=False)


def _slogdet_jvp(tx, x):
    return None, _sum(_inv(x, "slogdet, derivative").mT * tx, (x.ndim - 2, x.ndim - 1), False)


_slogdet = define(
    "slogdet", forward=lapack.slogdet, inputs=("x",),
    vjp=lambda g, x: None if g[1] is None else column(column(g[1])) * _inv(x, "slogdet, derivative").mT, jvp=_slogdet_jvp,
    batch=lambda x: _slogdet(x), public=False)


@public(method=True)
def det(x):
    """Determinant of square matrices.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n); integers give the default float.

    Returns
    -------
    Tensor
        Without the last two axes; 1 for matrices of shape (0, 0).

    Raises
    ------
    ValueError
        If the last two axes differ in length.

    Notes
    -----
    Gradient: ``g * out * inv(x).mT`` (Jacobi's formula), the cofactors; for singular and nearly singular matrices they are computed from
    singular values, so that they are right there, too.  Second derivatives need, for a singular matrix, singular values that differ.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.det(cg.tensor([[2.0, 0.0], [1.0, 3.0]]))
    tensor(6.)
    """
    return _det(square("det", x))


@public(method=True)
def slogdet(x):
    """Sign and logarithm of the magnitude of determinants, without overflow.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n); integers give the default float.

    Returns
    -------
    (Tensor, Tensor)
        A named tuple: ``sign`` (-1, 0 or 1) and ``logabsdet``, minus infinity for singular matrices.

    Raises
    ------
    cgrad.linalg.LinAlgError
        When a derivative at a singular matrix is asked for.
    ValueError
        If the last two axes differ in length.

    Notes
    -----
    Gradient: ``g_logabsdet * inv(x).mT``; the sign has none.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.slogdet(cg.tensor([[0.0, 1.0], [1.0, 0.0]])).sign
    tensor(-1.)
    """
    return Slogdet(*_slogdet(square("slogdet", x)))


@public(method=True)
def logdet(x):
    """Logarithm of determinants.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n); integers give the default float.

    Returns
    -------
    Tensor
        Minus infinity for determinant 0, NaN for a negative one.

    Raises
    ------
    ValueError
        If the last two axes differ in length.

    Notes
    -----
    Gradient: ``g * inv(x).mT``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.logdet(cg.eye(3))
    tensor(0.)
    """
    sign, logabsdet = _slogdet(square("logdet", x))
    return where(sign < 0, math.nan, logabsdet)


# --------------------------------------------------------------------------------------------------------------- systems
def _solve_tangent(tx, ty, x, out):
    moved = ty
    if tx is not None:
        moved = -(tx @ out)
        moved = moved if ty is None else moved + ty
    return _solve(x, moved)


#: x @ out = y; y has columns
_solve = define(
    "solve", forward=lapack.solve, inputs=("x", "y"),
    vjp=(lambda g, x, out: -(_solve(x.mT, g) @ out.mT), lambda g, x: _solve(x.mT, g)), jvp=_solve_tangent,
    batch=lambda x, y, batched: _solve(*aligned((x, y), batched)), public=False)


@linalg
def solve(x, y, *, left=True):
    """Solution of linear systems: ``x @ out == y``.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n).
    y : Tensor
        Of shape (n,) for one vector, else (..., n, k); leading axes broadcast.  A batch of vectors of the shape of `x` without its
        last axis is understood, too, if it cannot be a matrix.
    left : bool, optional
        False solves ``out @ x == y`` for `y` of shape (..., k, n).

    Returns
    -------
    Tensor
        The shape of `y`, with the leading axes of both.

    Raises
    ------
    cgrad.linalg.LinAlgError
        If a matrix is singular.
    ValueError
        If the shapes do not fit.

    Notes
    -----
    Gradient: ``gy = solve(x.mT, g)`` and ``gx = -gy @ out.mT`` (Giles 2008, section 2.3.1).

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.solve(cg.tensor([[2.0, 0.0], [0.0, 4.0]]), cg.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    x = square("solve", x)
    if not left:
        y = matrix("solve", y, "y").mT
        return _solve(x.mT, right_hand_side("solve", x, y)[0]).mT
    y, vector = right_hand_side("solve", x, y)
    out = _solve(x, y)
    return _squeeze(out, (out.ndim - 1,)) if vector else out


# ------------------------------------------------------------------------------------------ pseudo-inverse, least squares
# d(x+) = -x+ dx x+ + x+ x+^T dx^T (1 - x x+) + (1 - x+ x) dx^T x+^T x+  (Golub and Pereyra 1973, eq. 4.12)
def _pinv_vjp(g, x, out):
    p, t = out, out.mT
    gt = g.mT
    return (gt - x @ (p @ gt)) @ (p @ t) + (t @ p) @ (gt - (gt @ p) @ x) - t @ g @ t


def _pinv_jvp(tx, x, out):
    p, t = out, out.mT
    moved = tx.mT
    return (p @ t) @ (moved - (moved @ x) @ p) + (moved - p @ (x @ moved)) @ (t @ p) - p @ tx @ p


_pinv = define("pinv", forward=lapack.pinv, inputs=("x",), options=("rtol", "atol", "symmetric"), vjp=_pinv_vjp, jvp=_pinv_jvp,
               batch=lambda x, rtol, atol, symmetric: _pinv(x, rtol, atol, symmetric), public=False)
_rank = define("matrix_rank", forward=lapack.rank, inputs=("x",), options=("rtol", "atol", "symmetric"), kind=NONDIFF,
               batch=lambda x, rtol, atol, symmetric: _rank(x, rtol, atol, symmetric), public=False)


def tolerance(name, what, value):
    """A tolerance as a number or an array, or None."""
    if isinstance(value, Tensor):
        return value.detach().numpy()
    if value is None or isinstance(value, (int, float)) or hasattr(value, "__array__"):
        return value
    raise TypeError(f"{name}: {what} must be a number or a tensor, got {type(value).__name__}")


@linalg
def pinv(x, rtol=None, *, atol=None, hermitian=False):
    """Pseudo-inverse (Moore-Penrose) of matrices.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, n); integers give the default float.
    rtol : number or Tensor, optional
        Singular values of at most `rtol` times the largest count as 0; by default the larger of m and n times the machine epsilon.
    atol : number or Tensor, optional
        Singular values of at most `atol` count as 0; given alone, `rtol` is 0.
    hermitian : bool, optional
        Whether the matrices are symmetric: their lower triangle is read, and eigenvalues take the place of singular values.

    Returns
    -------
    Tensor
        Of shape (..., n, m).

    Raises
    ------
    cgrad.linalg.LinAlgError
        If a matrix holds NaN or infinity.
    ValueError
        For less than two axes, or for a symmetric matrix that is not square.

    Notes
    -----
    Gradient: that of Golub and Pereyra (1973) for matrices of constant rank; where the rank changes, the pseudo-inverse jumps.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.pinv(cg.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    x = square("pinv", x) if hermitian else matrix("pinv", x)
    return _pinv(x, tolerance("pinv", "rtol", rtol), tolerance("pinv", "atol", atol), bool(hermitian))


@public(method=True)
def pinverse(x, rcond=1e-15):
    """Pseudo-inverse of matrices; `cgrad.linalg.pinv` with another tolerance.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, n).
    rcond : number, optional
        Singular values of at most `rcond` times the largest count as 0.

    Returns
    -------
    Tensor
        Of shape (..., n, m).  Gradient: that of `cgrad.linalg.pinv`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.pinverse(cg.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return pinv(x, rcond)


@linalg
def matrix_rank(x, rtol=None, *, atol=None, hermitian=False):
    """Rank of matrices: how many of their singular values are not 0.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, n).
    rtol, atol : number or Tensor, optional
        As for `pinv`.
    hermitian : bool, optional
        As for `pinv`.

    Returns
    -------
    Tensor
        int64, without the last two axes.

    Raises
    ------
    cgrad.linalg.LinAlgError
        If a matrix holds NaN or infinity.
    ValueError
        For less than two axes, or for a symmetric matrix that is not square.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.matrix_rank(cg.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    x = square("matrix_rank", x) if hermitian else matrix("matrix_rank", x)
    return _rank(x, tolerance("matrix_rank", "rtol", rtol), tolerance("matrix_rank", "atol", atol), bool(hermitian))


@linalg
def lstsq(x, y, rcond=None):
    """Least-squares solution of linear systems: the shortest `out` among those with the smallest ``x @ out - y``.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, n), of any rank.
    y : Tensor
        Of shape (m,), or (..., m, k); leading axes broadcast.
    rcond : number, optional
        Singular values of at most `rcond` times the largest count as 0; by default the larger of m and n times the machine epsilon.

    Returns
    -------
    (Tensor, Tensor, Tensor, Tensor)
        A named tuple: ``solution``; ``residuals``, the sum of squares of each column, empty unless m > n and all ranks are full;
        ``rank``, int64; ``singular_values`` of `x`.

    Raises
    ------
    cgrad.linalg.LinAlgError
        If a matrix holds NaN or infinity.
    ValueError
        If the shapes do not fit.

    Notes
    -----
    ``pinv(x) @ y``, and the gradient is that of this product.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.lstsq(cg.tensor([[2.0], [0.0]]), cg.tensor([4.0, 1.0])).solution
    tensor([2.])
    """
    x = matrix("lstsq", x)
    y, vector = right_hand_side("lstsq", x, y)
    rcond = tolerance("lstsq", "rcond", rcond)
    solution = _pinv(x, rcond, None, False) @ y
    rank = _rank(x, rcond, None, False)
    m, n = x.shape[-2:]
    if m > n and bool((all_examples(rank) == n).all()):
        off = x @ solution - y
        residuals = _sum(off * off, (off.ndim - 2,), False)
    else:
        residuals = zeros(0, dtype=solution.dtype)
    return Lstsq(_squeeze(solution, (solution.ndim - 1,)) if vector else solution, residuals, rank, svdvals(x))


# ---------------------------------------------------------------------------------------------------------------- tensors
@linalg
def tensorinv(x, ind=2):
    """Inverse of a tensor as a linear map from its last axes to its first ones.

    Parameters
    ----------
    x : Tensor
        The product of its first `ind` lengths equals that of the others.
    ind : int, optional
        How many axes come first.

    Returns
    -------
    Tensor
        Of shape ``x.shape[ind:] + x.shape[:ind]``; ``tensordot(out, x, ind)`` is the identity.

    Raises
    ------
    cgrad.linalg.LinAlgError
        If the map is singular.
    ValueError
        If the two products differ, or `ind` is not positive.

    Notes
    -----
    Gradient: that of `inv`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.tensorinv(cg.eye(6).reshape(2, 3, 6)).shape
    (6, 2, 3)
    """
    x, ind = matrix("tensorinv", x), whole_number("tensorinv", "ind", ind)
    if ind < 1:
        raise ValueError(f"tensorinv: ind must be positive, got {ind}")
    first, last = tuple(x.shape[:ind]), tuple(x.shape[ind:])
    n = math.prod(first)
    if n != math.prod(last):
        raise ValueError(f"tensorinv: the first {ind} axes of shape {tuple(x.shape)} have {n} elements, the others {math.prod(last)}; "
                         "both must have the same number")
    return _reshape(_inv(_reshape(x, (n, n)), "tensorinv"), last + first)


@linalg
def tensorsolve(x, y, axes=None):
    """Solution of tensor equations: ``tensordot(x, out, out.ndim) == y``.

    Parameters
    ----------
    x : Tensor
        Of shape ``y.shape`` + the shape of the result.
    y : Tensor
    axes : tuple of int, optional
        Axes of `x` that are moved to its end first.

    Returns
    -------
    Tensor

    Raises
    ------
    cgrad.linalg.LinAlgError
        If the map is singular.
    ValueError
        If the shapes do not fit.

    Notes
    -----
    Gradient: that of `cgrad.linalg.solve`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.tensorsolve(cg.eye(6).reshape(2, 3, 6), cg.ones(2, 3)).shape
    (6,)
    """
    x, y = as_floating("tensorsolve", x), as_floating("tensorsolve", y)
    if axes is not None:
        moved = [one_axis("tensorsolve", a, x.ndim) for a in axes]
        x = permute_dims(x, [a for a in range(x.ndim) if a not in moved] + moved)
    shape, n = tuple(x.shape[y.ndim:]), y.size
    if x.size != n * n or math.prod(shape) != n:
        raise ValueError(f"tensorsolve: x of shape {tuple(x.shape)} and y of shape {tuple(y.shape)} do not fit; x must have as many elements "
                         "behind the axes of y as y has")
    out = _solve(_reshape(x, (n, n)), _reshape(y, (n, 1)))
    return _reshape(out, shape)
