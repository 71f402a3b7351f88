"""Decompositions and solutions by NumPy's LAPACK: plain tensors in, plain tensors out.

Matrices are the last two axes, all leading axes are batches; arrays are shared with NumPy, not copied.  What LAPACK refuses becomes a
LinAlgError that names the operation, the entry of the batch and what is wrong with it.  Needs the GIL (NumPy lets it go).
Called by ops/linalg; read ops/linalg/decompositions.py next.
"""
import math

import numpy as np

from cgrad.core.convert import numpy as array_of
from cgrad.core.convert import share_array
from cgrad.core.forward.copy import cast

BLOCK = 64          # rows of a triangular system that LAPACK solves at once; the rest is matrix products


class LinAlgError(np.linalg.LinAlgError, RuntimeError):
    """A matrix that has no such decomposition, inverse or solution.

    It is a ``numpy.linalg.LinAlgError`` (and so a ``ValueError``), and a ``RuntimeError`` as in PyTorch.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.inv(cg.zeros(2, 2))
    Traceback (most recent call last):
        ...
    cgrad.linalg.LinAlgError: inv: the 2 x 2 matrix is singular
    """


LinAlgError.__module__ = "cgrad.linalg"


def tensors(found):
    """Arrays as tensors over their memory."""
    if isinstance(found, tuple):
        return tuple([tensors(a) for a in found])
    return share_array(np.asarray(found))


def run(name, why, function, *operands):
    """function(*arrays) as tensors; a refusal says which matrix it was."""
    arrays = [array_of(x, True) for x in operands]
    with np.errstate(all="ignore"):
        try:
            found = function(*arrays)
        except np.linalg.LinAlgError:
            raise LinAlgError(refusal(name, why, function, arrays)) from None
    return tensors(found)


def refusal(name, why, function, arrays):
    """The words about the first matrix for which `function` fails."""
    batch = np.broadcast_shapes(*[a.shape[:-2] for a in arrays])
    spread = [np.broadcast_to(a, batch + a.shape[-2:]) for a in arrays]
    for index in np.ndindex(batch):
        matrix = spread[0][index]
        if fails(function, *[a[index] for a in spread]):
            break
    if not np.isfinite(matrix).all():
        why = "holds NaN or infinity"
    elif callable(why):
        why = why(matrix)
    where = f" in entry {index[0] if len(index) == 1 else index} of the batch" if batch else ""
    return f"{name}: the {matrix.shape[0]} x {matrix.shape[1]} matrix{where} {why}"


def finite(a, read=None):
    """Refuse NaN and infinity, with which iterations for eigenvalues may give wrong numbers or never end; `read` is what counts of a."""
    if not np.isfinite(a if read is None else read(a)).all():
        raise np.linalg.LinAlgError
    return a


def fails(function, *arrays):
    try:
        function(*arrays)
    except np.linalg.LinAlgError:
        return True
    return False


def entry_by_entry(function, array, order_of_failure):
    """(results, int32 codes) for each matrix of a batch: NaN and a code above 0 where it fails."""
    out, info = np.full(array.shape, np.nan, array.dtype), np.zeros(array.shape[:-2], np.int32)
    for index in np.ndindex(array.shape[:-2]):
        try:
            out[index] = function(array[index])
        except np.linalg.LinAlgError:
            info[index] = order_of_failure(array[index])
    return out, info


def with_codes(function, order_of_failure, x):
    """(results, codes), where a matrix that fails makes no error but a code."""
    array = array_of(x, True)
    with np.errstate(all="ignore"):
        try:
            return tensors((function(array), np.zeros(array.shape[:-2], np.int32)))
        except np.linalg.LinAlgError:
            return tensors(entry_by_entry(function, array, order_of_failure))


# ---------------------------------------------------------------------------------------------------------- decompositions
def failing_minor(matrix):
    """Order of the first leading minor of a symmetric matrix that is not positive: all from there on fail, so it can be bisected."""
    good, bad = 0, len(matrix)
    while bad - good > 1:
        middle = (good + bad) // 2
        if fails(np.linalg.cholesky, matrix[:middle, :middle]):
            bad = middle
        else:
            good = middle
    return bad


NO_VALUES = "has no eigenvalues or singular values to which LAPACK converges"
TRIANGLE = {"L": np.tril, "U": np.triu}


def cholesky(x):
    """The lower factor; only the lower triangle of x is read."""
    return run("cholesky", lambda a: f"is not positive definite: its leading minor of order {failing_minor(a)} is not positive", np.linalg.cholesky, x)


def cholesky_ex(x):
    """(lower factor, order of the first leading minor that is not positive, else 0)."""
    return with_codes(np.linalg.cholesky, failing_minor, x)


def eigh(x, triangle):
    """(eigenvalues in ascending order, eigenvectors as columns) from one triangle of symmetric matrices."""
    return run("eigh", NO_VALUES, lambda a: tuple(np.linalg.eigh(finite(a, TRIANGLE[triangle]), triangle)), x)


def eigvalsh(x, triangle):
    """Eigenvalues of symmetric matrices in ascending order."""
    return run("eigvalsh", NO_VALUES, lambda a: np.linalg.eigvalsh(finite(a, TRIANGLE[triangle]), triangle), x)


def svd(x, full):
    """(U, S, Vh) with S in descending order."""
    return run("svd", NO_VALUES, lambda a: tuple(np.linalg.svd(finite(a), full)), x)


def svdvals(x):
    """Singular values in descending order."""
    return run("svdvals", NO_VALUES, lambda a: np.linalg.svd(finite(a), compute_uv=False), x)


def qr(x, mode):
    """(Q, R) by Householder reflections."""
    return run("qr", "has no QR decomposition", lambda a: tuple(np.linalg.qr(a, mode)), x)


def lu(x):
    """(L below the diagonal and U above in one matrix, pivots counted from 1) with row pivots, in blocks of columns.

    NumPy offers no LU of LAPACK, so this is its algorithm (getrf) for whole batches at once.
    """
    array = array_of(x, True)
    m, n = array.shape[-2:]
    a = np.array(array, order="C").reshape(math.prod(array.shape[:-2]), m, n)
    k, each = min(m, n), np.arange(len(a))
    pivots = np.empty((len(a), k), np.int32)
    with np.errstate(all="ignore"):
        for start in range(0, k, BLOCK):
            stop = min(start + BLOCK, k)
            for j in range(start, stop):
                largest = j + np.abs(a[:, j:, j]).argmax(-1)
                pivots[:, j] = largest + 1
                swap_rows(a, each, j, largest)
                pivot = a[:, j, j]
                a[:, j + 1:, j] /= np.where(pivot == 0, 1, pivot)[:, None]
                a[:, j + 1:, j + 1:stop] -= a[:, j + 1:, j, None] * a[:, j, None, j + 1:stop]
            if stop < n:
                below = np.tril(a[:, start:stop, start:stop], -1) + np.eye(stop - start, dtype=a.dtype)
                a[:, start:stop, stop:] = np.linalg.solve(below, a[:, start:stop, stop:])
                a[:, stop:, stop:] -= a[:, stop:, start:stop] @ a[:, start:stop, stop:]
    return tensors((a.reshape(array.shape), pivots.reshape(array.shape[:-2] + (k,))))


def swap_rows(a, each, j, other):
    """Exchange row j of each matrix with row other[i] of matrix i."""
    kept = a[each, other]
    a[each, other] = a[:, j]
    a[:, j] = kept


def permutation(pivots, m, dtype):
    """The matrices that exchange m rows as pivots say."""
    array = array_of(pivots, True)
    flat = array.reshape(math.prod(array.shape[:-1]), array.shape[-1]).astype(np.int64) - 1
    if flat.size and not (0 <= flat.min() and flat.max() < m):
        raise ValueError(f"lu_solve: pivots are numbers of rows, from 1 to {m}; got {flat.min() + 1} to {flat.max() + 1}")
    order = np.tile(np.arange(m), (len(flat), 1))
    for j in range(flat.shape[1]):
        swap_rows(order, np.arange(len(flat)), j, flat[:, j])
    return cast(tensors(np.eye(m, dtype=np.int8)[order].reshape(array.shape[:-1] + (m, m))), dtype)


# ------------------------------------------------------------------------------------------------------ inverses, solutions
SINGULAR = "is singular"


def inv(x, name):
    """The inverse; `name` is who asks."""
    return run(name, SINGULAR, np.linalg.inv, x)


def inv_ex(x):
    """(inverse, number of the first column that depends on those before it, else 0)."""
    def first_dependent(matrix):
        n = len(matrix)
        return next((k for k in range(1, n) if np.linalg.matrix_rank(finite(matrix)[:, :k]) < k), n)
    return with_codes(np.linalg.inv, first_dependent, x)


def solve(x, y):
    """The solution z of x @ z = y; y has the right-hand sides as columns."""
    # NumPy takes y for one vector only if it has one axis, so matrices of both broadcast.
    return run("solve", SINGULAR, np.linalg.solve, x, y)


def solve_triangular(x, y, upper):
    """The same for a triangle of x; the other triangle is not read."""
    def backwards(a, b):
        # A lower triangle read backwards is an upper one, and on an upper one LU does not pivot: it is back-substitution.
        if not upper:
            a, b = a[..., ::-1, ::-1], b[..., ::-1, :]
        n = a.shape[-1]
        out = np.array(np.broadcast_to(b, np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + b.shape[-2:]), np.result_type(a, b))
        for stop in range(n, 0, -BLOCK):
            start = max(stop - BLOCK, 0)
            out[..., start:stop, :] = np.linalg.solve(np.triu(a[..., start:stop, start:stop]), out[..., start:stop, :])
            out[..., :start, :] -= a[..., :start, start:stop] @ out[..., start:stop, :]
        return out if upper else out[..., ::-1, :]
    return run("solve_triangular", lambda a: f"is singular: element {int(np.flatnonzero(np.diagonal(a) == 0)[0])} of its diagonal is 0", backwards, x, y)


def det(x):
    """Determinants."""
    return run("det", SINGULAR, np.linalg.det, x)


def slogdet(x):
    """(sign, logarithm of the magnitude) of determinants."""
    return run("slogdet", SINGULAR, lambda a: tuple(np.linalg.slogdet(a)), x)


def orientation(x, y):
    """1 or -1: the determinants of products of orthogonal matrices."""
    return run("det", SINGULAR, lambda a, b: np.sign(np.linalg.det(a @ b)), x, y)


def is_well_conditioned(x):
    """Whether inverse and determinant of all matrices together give the cofactors with half of the digits at least."""
    array = array_of(x, True)
    with np.errstate(all="ignore"):
        try:
            inverse = np.linalg.inv(array)
        except np.linalg.LinAlgError:
            return False
        condition = np.abs(array).sum(-1).max(-1, initial=0) * np.abs(inverse).sum(-1).max(-1, initial=0)
        return not np.any(condition > np.finfo(array.dtype).eps ** -0.5)


def cutoff(largest, shape, dtype, rtol, atol):
    """Below which magnitude a singular value counts as 0."""
    if rtol is None:
        rtol = 0.0 if atol is not None and np.any(np.asarray(atol) > 0) else max(shape[-2:]) * np.finfo(dtype).eps
    return np.maximum(0.0 if atol is None else atol, np.asarray(rtol) * largest)[..., None]


def spectrum(a, symmetric):
    """Magnitudes of the singular values (of the eigenvalues of a symmetric matrix), in any order."""
    return np.abs(np.linalg.eigvalsh(finite(a, np.tril))) if symmetric else np.linalg.svd(finite(a), compute_uv=False)


def rank(x, rtol, atol, symmetric):
    """How many singular values count."""
    def count(a):
        s = spectrum(a, symmetric)
        return np.sum(s > cutoff(s.max(-1, initial=0), a.shape, a.dtype, rtol, atol), -1, dtype=np.int64)
    return run("matrix_rank", NO_VALUES, count, x)


def pinv(x, rtol, atol, symmetric):
    """The pseudo-inverse by singular values (by eigenvalues of a symmetric matrix)."""
    def pseudo(a):
        if symmetric:
            s, u = np.linalg.eigh(finite(a, np.tril))
            vh = u.mT
        else:
            u, s, vh = np.linalg.svd(finite(a), False)
        size = np.abs(s)
        counts = size > cutoff(size.max(-1, initial=0), a.shape, a.dtype, rtol, atol)
        inverse = np.where(counts, 1 / np.where(counts, s, 1), 0).astype(a.dtype)
        return vh.mT * inverse[..., None, :] @ u.mT
    return run("pinv", NO_VALUES, pseudo, x)


# -------------------------------------------------------------------------------------------------------------- exponential
# Coefficients of the [13/13] Pade approximant, and the norm up to which it is exact to double precision (Higham 2005, table 2.3).
PADE = [c / 64764752532480000 for c in (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600, 670442572800, 33522128640,
    1323241920, 40840800, 960960, 16380, 182, 1)]
PADE_NORM = 5.371920351148152


def matrix_exp(x):
    """exp of square matrices by scaling, the [13/13] Pade approximant and squaring, in float64 (Higham 2005)."""
    array = array_of(x, True)
    with np.errstate(all="ignore"):
        norm = np.abs(array).sum(-2, dtype=np.float64).max(-1, initial=0)
        good = np.isfinite(norm)
        a = np.where(good[..., None, None], array, 0).astype(np.float64)
        halvings = np.maximum(0, np.ceil(np.log2(np.where(good & (norm > 0), norm, 1) / PADE_NORM))).astype(int)
        a = np.ldexp(a, -halvings[..., None, None])
        one = np.eye(a.shape[-1])
        a2 = a @ a
        a4 = a2 @ a2
        a6 = a4 @ a2
        b = PADE
        odd = a @ (a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * one)
        even = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * one
        out = np.linalg.solve(even - odd, even + odd)
        for k in range(halvings.max(initial=0)):
            out = np.where((halvings > k)[..., None, None], out @ out, out)
        return tensors(np.where(good[..., None, None], out, np.nan).astype(array.dtype))
