"""Products with structure: powers and exponentials of matrices, chains, Kronecker and vector products, and products added to something.

All but the exponential is made of recorded operations, whose derivatives are theirs.  Next: ../einsum.py.
"""
from itertools import pairwise

from cgrad.core.forward import lapack
from cgrad.core.arguments import as_floating, as_tensor, one_axis, whole_number
from cgrad.ops.arithmetic import power
from cgrad.ops.compare import where
from cgrad.ops.ranges import arange
from cgrad.ops.triangles import eye
from cgrad.ops.define import define, public
from cgrad.ops.indexing import _getitem
from cgrad.ops.joining import concat
from cgrad.ops.linalg.matrices import column, linalg, matrix, square
from cgrad.ops.linalg.solving import _inv
from cgrad.ops.matmul import _exact_ndim, _matmul, bmm, mm, mv, outer
from cgrad.ops.shape import _broadcast_to, _expand_dims, _permute, _reshape, _squeeze, broadcast_shapes


# --------------------------------------------------------------------------------------------------- powers, exponentials
@public(method=True)
def matrix_power(x, n):
    """Square matrices multiplied with themselves.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, m); integers give the default float.
    n : int
        How often: 0 gives identities, a negative number powers of the inverse.

    Returns
    -------
    Tensor

    Raises
    ------
    cgrad.linalg.LinAlgError
        If n is negative and a matrix is singular.
    TypeError
        If n is no integer.
    ValueError
        If the last two axes differ in length.

    Notes
    -----
    By repeated squaring; gradient: that of these products.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.matrix_power(cg.tensor([[1.0, 1.0], [0.0, 1.0]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    x, n = square("matrix_power", x), whole_number("matrix_power", "n", n)
    if n == 0:
        return where(False, x, eye(x.shape[-1], dtype=x.dtype))          # its slope is 0, that of a matrix of infinities, too
    if n < 0:
        x, n = _inv(x, "matrix_power"), -n
    out = None
    while n:
        if n & 1:
            out = x if out is None else out @ x
        n >>= 1
        if n:
            x = x @ x
    return out


def _exp_beside(x, t):
    """The derivative of the exponential at `x` along `t`: the upper right block of exp([[x, t], [0, x]]) (Mathias 1996)."""
    n, zero = x.shape[-1], x * 0.0
    both = concat([concat([x, t], x.ndim - 1), concat([zero, x], x.ndim - 1)], x.ndim - 2)
    return _getitem(_matrix_exp(both), (Ellipsis, slice(n), slice(n, None)))


_matrix_exp = define("matrix_exp", forward=lapack.matrix_exp, inputs=("x",), vjp=lambda g, x: _exp_beside(x.mT, g),
                     jvp=lambda tx, x: _exp_beside(x, tx), batch=lambda x: _matrix_exp(x), public=False)


@public(method=True)
def matrix_exp(x):
    """Exponential of square matrices: ``1 + x + x @ x / 2 + ...``.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n); integers give the default float.

    Returns
    -------
    Tensor
        NaN for a matrix that holds NaN or infinity.

    Raises
    ------
    ValueError
        If the last two axes differ in length.

    Notes
    -----
    By scaling, a Pade approximant and squaring, in float64 (Higham 2005).  Gradient: the upper right block of
    ``exp([[x.mT, g], [0, x.mT]])`` (Mathias 1996).

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.matrix_exp(cg.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return _matrix_exp(square("matrix_exp", x))


# --------------------------------------------------------------------------------------------------------------- chains
def _order(sizes):
    """Where to cut each chain of matrices i..j so that the fewest numbers are multiplied (Cormen et al., chapter 15.2)."""
    n = len(sizes) - 1
    cost, cut = [[0] * n for _ in range(n)], [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], cut[i][j] = min((cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j))
    return cut


def _chain(xs, cut, i, j):
    if i == j:
        return xs[i]
    k = cut[i][j]
    return _chain(xs, cut, i, k) @ _chain(xs, cut, k + 1, j)


@public(method=False)
def multi_dot(xs, *more):
    """Product of several matrices, in the order that costs least.

    Parameters
    ----------
    xs : sequence of Tensor
        2-d, at least two; the first and the last may be vectors.  They may also be given one by one.

    Returns
    -------
    Tensor
        2-d, with an axis less for each vector at an end.

    Raises
    ------
    ValueError
        For less than two, or if neighbours do not fit.

    Notes
    -----
    Gradient: that of the products in that order.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.multi_dot([cg.ones(10, 100), cg.ones(100, 5), cg.ones(5, 50)]).shape
    (10, 50)
    """
    xs = [as_tensor("multi_dot", x) for x in ((xs, *more) if more or not isinstance(xs, (tuple, list)) else xs)]
    if len(xs) < 2:
        raise ValueError(f"multi_dot: needs at least 2 matrices, got {len(xs)}")
    for k, x in enumerate(xs):
        if x.ndim != 2 and not (x.ndim == 1 and k in (0, len(xs) - 1)):
            raise ValueError(f"multi_dot: matrix {k} must be 2-d (only the first and the last may be vectors), got shape {tuple(x.shape)}")
    gone = (0,) * (xs[0].ndim == 1) + (1,) * (xs[-1].ndim == 1)
    if xs[0].ndim == 1:
        xs[0] = _expand_dims(xs[0], (0,))
    if xs[-1].ndim == 1:
        xs[-1] = _expand_dims(xs[-1], (1,))
    for k, (x, y) in enumerate(pairwise(xs)):
        if x.shape[1] != y.shape[0]:
            raise ValueError(f"multi_dot: matrices {k} and {k + 1} of shapes {tuple(x.shape)} and {tuple(y.shape)} do not fit")
    out = _chain(xs, _order([x.shape[0] for x in xs] + [xs[-1].shape[1]]), 0, len(xs) - 1)
    return _squeeze(out, gone) if gone else out


@public(method=True)
def kron(x, y):
    """Kronecker product: each element of `x` times the whole of `y`, as blocks.

    Parameters
    ----------
    x, y : Tensor
        Of any shape; missing leading axes have length 1.

    Returns
    -------
    Tensor
        Each length is the product of the two.

    Notes
    -----
    Gradient: that of the products.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.kron(cg.tensor([1, 10]), cg.tensor([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    x, y = as_tensor("kron", x), as_tensor("kron", y)
    ndim = max(x.ndim, y.ndim)
    x, y = (_expand_dims(a, tuple(range(ndim - a.ndim))) for a in (x, y))
    product = _expand_dims(x, tuple(range(1, 2 * ndim, 2))) * _expand_dims(y, tuple(range(0, 2 * ndim, 2)))
    return _reshape(product, tuple([m * n for m, n in zip(x.shape, y.shape)]))


@public(method=True)
def cross(x, y, axis=-1):
    """Vector product in three dimensions.

    Parameters
    ----------
    x, y : Tensor
        With length 3 along the axis; the other axes broadcast.
    axis : int, optional
        The axis of the vectors, counted in the broadcast shape.

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        If the axis is out of range.
    ValueError
        If the lengths are not 3, or the shapes do not broadcast.

    Notes
    -----
    Gradient: ``cross(y, g)`` and ``cross(g, x)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.cross(cg.tensor([1, 0, 0]), cg.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    x, y = as_tensor("cross", x), as_tensor("cross", y)
    shape = broadcast_shapes(tuple(x.shape), tuple(y.shape))
    at = one_axis("cross", axis, len(shape)) - len(shape)
    for a in (x, y):
        if a.ndim < -at or a.shape[at] != 3:
            raise ValueError(f"cross: vectors must have length 3 along axis {axis}; got shapes {tuple(x.shape)} and {tuple(y.shape)}")

    def turned(a, first):
        behind = (slice(None),) * (-at - 1)
        return _getitem(a, (Ellipsis, [first % 3, (first + 1) % 3, (first + 2) % 3], *behind))
    return turned(x, 1) * turned(y, 2) - turned(x, 2) * turned(y, 1)


@linalg
def vander(x, N=None):
    """Powers of the elements of vectors: ``out[..., i, j] = x[..., i] ** j``.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n); a 0-d tensor is a vector of one element.
    N : int, optional
        How many powers; by default n.

    Returns
    -------
    Tensor
        Of shape (..., n, N); integers give int64.

    Raises
    ------
    ValueError
        For a negative N.

    Notes
    -----
    Powers ascend, as in PyTorch (NumPy's descend).  Gradient: that of `power`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.vander(cg.tensor([2, 3]), 3)
    tensor([[1, 2, 4],
            [1, 3, 9]])
    """
    x = as_tensor("vander", x)
    x = _reshape(x, (1,)) if x.ndim == 0 else x
    count = x.shape[-1] if N is None else whole_number("vander", "N", N)
    if count < 0:
        raise ValueError(f"vander: N must not be negative, got {count}")
    return power(column(x), arange(count, dtype=x.dtype if x.dtype.is_floating_point else "int64"))


@linalg
def householder_product(x, tau):
    """The first columns of the product of Householder reflections ``1 - tau[k] * v[k] v[k]^T``.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, n) with m >= n.  Column k holds ``v[k]`` below its diagonal; above are zeros and on it a one, whatever is there.
    tau : Tensor
        Of shape (..., k) with k <= n.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Notes
    -----
    Gradient: that of the products it is made of.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.householder_product(cg.tensor([[1.0], [0.0]]), cg.tensor([2.0]))
    tensor([[-1.],
            [ 0.]])
    """
    x, tau = matrix("householder_product", x), as_floating("householder_product", tau)
    m, n = x.shape[-2:]
    if m < n or tau.ndim != x.ndim - 1 or tau.shape[-1] > n or tuple(tau.shape[:-1]) != tuple(x.shape[:-2]):
        raise ValueError(f"householder_product: x of shape {tuple(x.shape)} and tau of shape {tuple(tau.shape)} do not fit; x has at least as "
                         "many rows as columns, and tau at most one number for each column of the same batch")
    one = eye(m, dtype=x.dtype)
    vectors = x.tril(-1) + eye(m, n, dtype=x.dtype)
    out = _getitem(one, (slice(None), slice(n)))
    for k in range(tau.shape[-1] - 1, -1, -1):
        v = _getitem(vectors, (Ellipsis, slice(k, k + 1)))
        out = out - _getitem(tau, (Ellipsis, slice(k, k + 1), None)) * (v @ (v.mT @ out))
    return out if tau.shape[-1] else _broadcast_to(out, tuple(x.shape))


# ------------------------------------------------------------------------------------------------------- products, added
def _added(name, x, product, beta, alpha):
    """beta * x + alpha * product; with beta 0, x does not matter, not even its NaN."""
    x = as_tensor(name, x)
    if broadcast_shapes(tuple(x.shape), tuple(product.shape)) != tuple(product.shape):
        raise ValueError(f"{name}: x of shape {tuple(x.shape)} does not broadcast to the shape of the product, {tuple(product.shape)}")
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return product + (x if beta == 1 else x * beta)


@public(method=True)
def addmm(x, y, z, *, beta=1, alpha=1):
    """A matrix product added to `x`: ``beta * x + alpha * (y @ z)``.

    Parameters
    ----------
    x : Tensor
        Broadcasts to the shape of the product.
    y, z : Tensor
        2-d.
    beta, alpha : number, optional

    Returns
    -------
    Tensor
        2-d.

    Notes
    -----
    With ``beta=0``, `x` does not matter, not even its NaN.  Gradient: ``beta * g`` summed to the shape of `x`, ``alpha * g @ z.mT`` and
    ``alpha * y.mT @ g``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.addmm(cg.tensor([1.0]), cg.ones(2, 3), cg.ones(3, 1))
    tensor([[4.],
            [4.]])
    """
    return _added("addmm", x, mm(y, z), beta, alpha)


@public(method=True)
def addmv(x, y, z, *, beta=1, alpha=1):
    """The product of a matrix and a vector, added to `x`: ``beta * x + alpha * (y @ z)``.

    Parameters
    ----------
    x : Tensor
        Broadcasts to the shape of the product.
    y : Tensor
        2-d.
    z : Tensor
        1-d.
    beta, alpha : number, optional

    Returns
    -------
    Tensor
        1-d.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Notes
    -----
    With ``beta=0``, `x` does not matter, not even its NaN.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.addmv(cg.tensor([1.0]), cg.ones(2, 3), cg.ones(3))
    tensor([4., 4.])
    """
    return _added("addmv", x, mv(y, z), beta, alpha)


@public(method=True)
def addr(x, y, z, *, beta=1, alpha=1):
    """The outer product of two vectors, added to `x`: ``beta * x + alpha * outer(y, z)``.

    Parameters
    ----------
    x : Tensor
        Broadcasts to the shape of the product.
    y, z : Tensor
        1-d.
    beta, alpha : number, optional

    Returns
    -------
    Tensor
        2-d.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Notes
    -----
    With ``beta=0``, `x` does not matter, not even its NaN.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.addr(cg.tensor([1.0]), cg.ones(2), cg.ones(3)).shape
    (2, 3)
    """
    return _added("addr", x, outer(y, z), beta, alpha)


@public(method=True)
def baddbmm(x, y, z, *, beta=1, alpha=1):
    """The products of the matrices of two batches, added to `x`: ``beta * x + alpha * (y @ z)``.

    Parameters
    ----------
    x : Tensor
        Broadcasts to the shape of the product.
    y, z : Tensor
        3-d, with as many matrices in both.
    beta, alpha : number, optional

    Returns
    -------
    Tensor
        3-d.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Notes
    -----
    With ``beta=0``, `x` does not matter, not even its NaN.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.baddbmm(cg.tensor(1.0), cg.ones(5, 2, 3), cg.ones(5, 3, 4)).shape
    (5, 2, 4)
    """
    return _added("baddbmm", x, bmm(y, z), beta, alpha)


@public(method=True)
def addbmm(x, y, z, *, beta=1, alpha=1):
    """The sum of the products of the matrices of two batches, added to `x`: ``beta * x + alpha * (y @ z).sum(0)``.

    Parameters
    ----------
    x : Tensor
        Broadcasts to the shape of the sum.
    y, z : Tensor
        3-d, with as many matrices in both.
    beta, alpha : number, optional

    Returns
    -------
    Tensor
        2-d.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Notes
    -----
    The sum is one product: the batch and the inner axis are summed over together.  With ``beta=0``, `x` does not matter, not even its NaN.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.addbmm(cg.tensor(1.0), cg.ones(5, 2, 3), cg.ones(5, 3, 4))
    tensor([[16., 16., 16., 16.],
            [16., 16., 16., 16.]])
    """
    y, z = _exact_ndim("addbmm", y, 3, "y"), _exact_ndim("addbmm", z, 3, "z")
    if y.shape[0] != z.shape[0] or y.shape[2] != z.shape[1]:
        raise ValueError(f"addbmm: the batches or the inner lengths differ; got shapes {tuple(y.shape)} and {tuple(z.shape)}")
    b, m, k = y.shape
    product = _matmul(_reshape(_permute(y, (1, 0, 2)), (m, b * k)), _reshape(z, (b * k, z.shape[2])))
    return _added("addbmm", x, product, beta, alpha)
