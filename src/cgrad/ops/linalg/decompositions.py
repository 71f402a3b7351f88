"""Matrices as products of simpler ones: Cholesky, eigenvalues of symmetric matrices, QR, singular values.

Each primitive has its formula in both directions beside it.  Sources: Giles, "Collected matrix derivative results for forward and
reverse mode algorithmic differentiation" (2008); Murray, "Differentiation of the Cholesky decomposition" (2016); Walter and Lehmann,
"Algorithmic differentiation of linear algebra functions" (2012); Townsend, "Differentiating the singular value decomposition" (2016).
What is not determined (signs of vectors, vectors of equal values) has no derivative; functions that do not depend on it do.
Next: solving.py.
"""
from cgrad.core.forward import lapack
from cgrad.ops.creation import zeros, zeros_like
from cgrad.ops.triangles import _triangle
from cgrad.ops.define import define, public
from cgrad.ops.indexing import _getitem
from cgrad.ops.joining import concat
from cgrad.ops.linalg.matrices import (
    column, diagonal, diagonal_matrix, inverse_gaps, linalg, matrix, row, skew, square, symmetric,
)
from cgrad.ops.linalg.triangular import _solve_triangular
from cgrad.ops.reduction import _sum
from cgrad.ops.results import QR, SVD, CholeskyEx, Eigh


def _columns(x, start, stop):
    return _getitem(x, (Ellipsis, slice(start, stop)))


def _rows(x, stop):
    return _getitem(x, (Ellipsis, slice(stop), slice(None)))


# --------------------------------------------------------------------------------------------------------------- Cholesky
def _lower_half(x):
    """The lower triangle with half of the diagonal: what, with its transpose, makes a symmetric matrix."""
    return _triangle(x, 0, True) - diagonal_matrix(diagonal(x)) * 0.5


def _between_inverses(p, l):
    """l^-T p l^-1 for a lower triangle l."""
    return _solve_triangular(l.mT, _solve_triangular(l.mT, p, True).mT, True).mT


# dx = dl l^T + l dl^T gives l^-1 dl = lower_half(l^-1 dx l^-T); reverse: the transposed steps (Murray 2016, eqs. 8 and 10).
_cholesky = define(
    "cholesky", forward=lapack.cholesky, inputs=("x",),
    vjp=lambda g, out: symmetric(_between_inverses(_lower_half(out.mT @ _triangle(g, 0, True)), out)),
    jvp=lambda tx, out: out @ _lower_half(_solve_triangular(out, _solve_triangular(out, symmetric(tx), False).mT, False)),
    batch=lambda x: _cholesky(x), public=False)
_cholesky_ex = define(
    "cholesky_ex", forward=lapack.cholesky_ex, inputs=("x",),
    vjp=lambda g, out: symmetric(_between_inverses(_lower_half(out[0].mT @ _triangle(g[0], 0, True)), out[0])),
    batch=lambda x: _cholesky_ex(x), public=False)


@public(method=True)
def cholesky(x, *, upper=False):
    """Cholesky factor of symmetric positive definite matrices: ``x == l @ l.mT``.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n).  Only the lower triangle is read (only the upper one for ``upper=True``).
    upper : bool, optional
        Whether to give the upper factor: ``x == u.mT @ u``.

    Returns
    -------
    Tensor
        A triangular matrix with a positive diagonal; integers give the default float.

    Raises
    ------
    cgrad.linalg.LinAlgError
        If a matrix is not positive definite.
    ValueError
        If the last two axes differ in length.

    Notes
    -----
    Gradient: ``p = l.mT @ g``, lower triangle with half the diagonal, then ``l^-T p l^-1`` made symmetric (Murray 2016): the slope
    among symmetric matrices.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.cholesky(cg.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    x = square("cholesky", x)
    return _cholesky(x.mT).mT if upper else _cholesky(x)


@linalg
def cholesky_ex(x, *, upper=False, check_errors=False):
    """`cholesky`, with its gradient, that tells in numbers which matrices are not positive definite.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n).
    upper : bool, optional
        Whether to give the upper factor.
    check_errors : bool, optional
        Whether to raise like `cholesky` after all.

    Returns
    -------
    (Tensor, Tensor)
        A named tuple: ``L``, NaN where there is no factor, and ``info``, int32: 0, or the order of the first leading minor that is
        not positive.

    Raises
    ------
    ValueError
        If the last two axes differ in length.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.cholesky_ex(cg.tensor([[1.0, 2.0], [2.0, 1.0]])).info
    tensor(2, dtype=cgrad.int32)
    """
    x = square("cholesky_ex", x)
    if check_errors:
        _cholesky(x.mT.detach() if upper else x.detach())
    l, info = _cholesky_ex(x.mT if upper else x)
    return CholeskyEx(l.mT if upper else l, info)


# ------------------------------------------------------------------------------------------- eigenvalues, symmetric matrices
def _eigh_vjp(g, out):
    w, v = out
    gw, gv = g
    inner = None if gv is None else inverse_gaps(w) * (v.mT @ gv)
    if gw is not None:
        inner = diagonal_matrix(gw) if inner is None else inner + diagonal_matrix(gw)
    return symmetric(v @ inner @ v.mT)


def _eigh_jvp(tx, out):
    w, v = out
    moved = v.mT @ symmetric(tx) @ v
    return diagonal(moved), v @ (inverse_gaps(w) * moved)


_eigh = define("eigh", forward=lapack.eigh, inputs=("x",), options=("triangle",), vjp=_eigh_vjp, jvp=_eigh_jvp,
               batch=lambda x, triangle: _eigh(x, triangle), public=False)


def _eigvalsh_jvp(tx, x, triangle):
    _, v = _eigh(x, triangle)
    return _sum(v * (symmetric(tx) @ v), (v.ndim - 2,), False)


def _eigvalsh_vjp(g, x, triangle):
    _, v = _eigh(x, triangle)
    return (v * row(g)) @ v.mT


_eigvalsh = define("eigvalsh", forward=lapack.eigvalsh, inputs=("x",), options=("triangle",), vjp=_eigvalsh_vjp, jvp=_eigvalsh_jvp,
                   batch=lambda x, triangle: _eigvalsh(x, triangle), public=False)


def _triangle_name(name, uplo):
    if uplo not in ("L", "U", "l", "u"):
        raise ValueError(f'{name}: UPLO is "L" or "U", the triangle that is read; got {uplo!r}')
    return uplo.upper()


@linalg
def eigh(x, UPLO="L"):
    """Eigenvalues and eigenvectors of symmetric matrices.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n).
    UPLO : {"L", "U"}, optional
        Which triangle is read, the lower or the upper one.

    Returns
    -------
    (Tensor, Tensor)
        A named tuple: ``eigenvalues`` in ascending order, of shape (..., n), and ``eigenvectors``, orthonormal columns of matrices
        of the shape of `x`.

    Raises
    ------
    cgrad.linalg.LinAlgError
        If a matrix holds NaN or infinity.
    ValueError
        If the last two axes differ in length, or for another `UPLO`.

    Notes
    -----
    Gradient: ``v @ (diag(gw) + f * (v.mT @ gv)) @ v.mT`` with ``f[i, j] = 1 / (w[j] - w[i])`` (Giles 2008, section 3.1), made symmetric.
    That of the vectors is infinite or NaN where eigenvalues are equal, as in PyTorch; that of the values is always finite, and for
    equal ones belongs to the vectors that LAPACK found.  The sign of a vector is arbitrary: use functions that do not depend on it.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.eigh(cg.tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    tensor([1., 3.])
    """
    return Eigh(*_eigh(square("eigh", x), _triangle_name("eigh", UPLO)))


@linalg
def eigvalsh(x, UPLO="L"):
    """Eigenvalues of symmetric matrices.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n).
    UPLO : {"L", "U"}, optional
        Which triangle is read, the lower or the upper one.

    Returns
    -------
    Tensor
        In ascending order, of shape (..., n).

    Raises
    ------
    cgrad.linalg.LinAlgError
        If a matrix holds NaN or infinity.
    ValueError
        If the last two axes differ in length, or for another `UPLO`.

    Notes
    -----
    Gradient: ``v @ diag(g) @ v.mT`` with the eigenvectors, which are computed when it is asked for; finite for equal values, too.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.eigvalsh(cg.tensor([[2.0, 1.0], [1.0, 2.0]]))
    tensor([1., 3.])
    """
    return _eigvalsh(square("eigvalsh", x), _triangle_name("eigvalsh", UPLO))


# --------------------------------------------------------------------------------------------------------------------- QR
def _qr_vjp(g, out):
    q, r = out
    gq, gr = g
    if q.shape[-1] != r.shape[-1]:
        raise RuntimeError(f"qr: with mode='complete' and more rows than columns, Q of shape {tuple(q.shape)} has columns that the matrix does not "
                           "determine and no derivative; use mode='reduced'")
    inner = None if gr is None else r @ gr.mT
    if gq is not None:
        inner = -gq.mT @ q if inner is None else inner - gq.mT @ q
    # The strictly lower triangle of the inner matrix, put on both sides of the diagonal (Walter and Lehmann 2012).
    inner = q @ (_triangle(inner, 0, True) + _triangle(inner, -1, True).mT)
    return _solve_triangular(r, (inner if gq is None else gq + inner).mT, True).mT          # times r^-T


def _qr_jvp(tx, out):
    q, r = out
    if q.shape[-1] != r.shape[-1]:
        raise RuntimeError("qr: has no derivative with mode='complete' and more rows than columns; use mode='reduced'")
    scaled = _solve_triangular(r.mT, tx.mT, False).mT          # tx r^-1
    inner = q.mT @ scaled
    turn = skew(_triangle(inner, -1, True))
    return q @ (turn - inner) + scaled, _triangle(inner - turn, 0, False) @ r


_qr = define("qr", forward=lapack.qr, inputs=("x",), options=("mode",), vjp=_qr_vjp, jvp=_qr_jvp,
             batch=lambda x, mode: _qr(x, mode), public=False)


@linalg
def qr(x, mode="reduced"):
    """Matrices as orthonormal columns times an upper triangle: ``x == Q @ R``.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, n).
    mode : {"reduced", "complete", "r"}, optional
        "reduced": Q of shape (..., m, k) and R of shape (..., k, n) with k the smaller of m and n; "complete": k = m; "r": R alone,
        and an empty Q.

    Returns
    -------
    (Tensor, Tensor)
        A named tuple ``Q``, ``R``.

    Raises
    ------
    RuntimeError
        When a derivative is asked for in mode "complete" with m > n.
    ValueError
        For another mode, or less than two axes.

    Notes
    -----
    Gradient for m >= n: ``(gq + q @ s) @ r^-T``, where `s` is the lower triangle of ``r @ gr.mT - gq.mT @ q`` mirrored at the diagonal
    (Walter and Lehmann 2012).  For m < n the first m columns are decomposed and the others are ``Q.mT`` times those of `x`.  The first
    columns must be independent.

    Examples
    --------
    >>> import cgrad as cg
    >>> q, r = cg.linalg.qr(cg.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> abs(r)
    tensor([[5.0000, 2.2000],
            [0.0000, 0.4000]])
    """
    x = matrix("qr", x)
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f'qr: mode is "reduced", "complete" or "r", got {mode!r}')
    m, n = x.shape[-2:]
    if m >= n or not m:
        q, r = _qr(x, "complete" if mode == "complete" else "reduced")
    else:
        q, r = _qr(_columns(x, 0, m), "reduced")
        r = concat([r, q.mT @ _columns(x, m, n)], r.ndim - 1)
    return QR(zeros(0, dtype=q.dtype) if mode == "r" else q, r)


# -------------------------------------------------------------------------------------------------------- singular values
def _beyond(u, x):
    """x without what lies in the space of the columns of u."""
    return x - u @ (u.mT @ x)


def _svd_vjp(g, out):
    k = out[1].shape[-1]
    u, s, vt = _columns(out[0], 0, k), out[1], _rows(out[2], k)
    gu, gs, gvt = g
    m, n = u.shape[-2], vt.shape[-1]
    inner = None if gs is None else diagonal_matrix(gs)
    outer = None
    if gu is not None or gvt is not None:
        gaps = inverse_gaps(s * s)
    if gu is not None:
        gu = _columns(gu, 0, k)
        part = gaps * skew(u.mT @ gu) * row(s)
        inner = part if inner is None else inner + part
        if m > k:
            outer = _beyond(u, gu / row(s)) @ vt
    if gvt is not None:
        gv = _rows(gvt, k).mT
        part = column(s) * (gaps * skew(vt @ gv))
        inner = part if inner is None else inner + part
        if n > k:
            part = u @ _beyond(vt.mT, gv / row(s)).mT
            outer = part if outer is None else outer + part
    inner = u @ inner @ vt
    return inner if outer is None else inner + outer


def _svd_jvp(tx, out):
    k = out[1].shape[-1]
    u, s, vt = _columns(out[0], 0, k), out[1], _rows(out[2], k)
    moved = u.mT @ tx @ vt.mT
    gaps = inverse_gaps(s * s)
    tu = u @ (gaps * (moved * row(s) + column(s) * moved.mT))
    tv = vt.mT @ (gaps * (column(s) * moved + moved.mT * row(s)))
    if u.shape[-2] > k:
        tu = tu + _beyond(u, (tx @ vt.mT) / row(s))
    if vt.shape[-1] > k:
        tv = tv + _beyond(vt.mT, (tx.mT @ u) / row(s))
    if out[0].shape[-1] > k:          # the columns that full_matrices adds: their gradient is ignored, so is their tangent
        tu = concat([tu, zeros_like(_columns(out[0], k, None))], tu.ndim - 1)
    if out[2].shape[-2] > k:
        tv = concat([tv, zeros_like(_getitem(out[2], (Ellipsis, slice(k, None), slice(None)))).mT], tv.ndim - 1)
    return tu, diagonal(moved), tv.mT


_svd = define("svd", forward=lapack.svd, inputs=("x",), options=("full",), vjp=_svd_vjp, jvp=_svd_jvp,
              batch=lambda x, full: _svd(x, full), public=False)


def _svdvals_vjp(g, x):
    u, _, vt = _svd(x, False)
    return (u * row(g)) @ vt


def _svdvals_jvp(tx, x):
    u, _, vt = _svd(x, False)
    return _sum(u * (tx @ vt.mT), (u.ndim - 2,), False)


_svdvals = define("svdvals", forward=lapack.svdvals, inputs=("x",), vjp=_svdvals_vjp, jvp=_svdvals_jvp,
                  batch=lambda x: _svdvals(x), public=False)


@linalg
def svd(x, full_matrices=True):
    """Singular value decomposition: ``x == U @ diag(S) @ Vh``.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, n); k is the smaller of m and n.
    full_matrices : bool, optional
        Whether `U` and `Vh` are square, else they have k columns and k rows.

    Returns
    -------
    (Tensor, Tensor, Tensor)
        A named tuple: ``U`` with orthonormal columns, ``S`` of shape (..., k), at least 0 and in descending order, and ``Vh`` with
        orthonormal rows.

    Raises
    ------
    cgrad.linalg.LinAlgError
        If a matrix holds NaN or infinity.
    ValueError
        For less than two axes.

    Notes
    -----
    Gradient: ``u @ (diag(gs) + f * skew(u.mT @ gu) * s + s * f * skew(v.mT @ gv)) @ v.mT`` with ``f[i, j] = 1 / (s[j]**2 - s[i]**2)`` and
    ``skew(a) = a - a.mT``, and for a matrix that is not square what lies beyond its columns and rows (Townsend 2016).  That of U and Vh is
    infinite or NaN where singular values are equal or (not square) 0, as in PyTorch; that of S is always finite.  What comes in for the
    columns and rows that `full_matrices` adds is ignored: the matrix does not determine them.  The signs of vectors are arbitrary,
    too: use functions that do not depend on them.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.svd(cg.tensor([[3.0, 0.0], [0.0, -4.0]])).S
    tensor([4., 3.])
    """
    return SVD(*_svd(matrix("svd", x), bool(full_matrices)))


@linalg
def svdvals(x):
    """Singular values.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, n).

    Returns
    -------
    Tensor
        In descending order, of shape (..., k) with k the smaller of m and n.

    Raises
    ------
    cgrad.linalg.LinAlgError
        If a matrix holds NaN or infinity.
    ValueError
        For less than two axes.

    Notes
    -----
    Gradient: ``u @ diag(g) @ v.mT``; the vectors are computed when it is asked for.  Finite for equal values and at 0, too, where it is the
    slope for the vectors that LAPACK found.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.svdvals(cg.tensor([[3.0, 0.0], [0.0, -4.0]]))
    tensor([4., 3.])
    """
    return _svdvals(matrix("svdvals", x))
