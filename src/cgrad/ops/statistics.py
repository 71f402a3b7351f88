"""Covariance and correlation of several variables, and the spread of what is not NaN.

All of it is made of sums and products, whose derivatives do.  Next: einsum.py.
"""
from cgrad.core import batching
from cgrad.core.arguments import as_floating, as_tensor, several_axes
from cgrad.ops.arithmetic import maximum
from cgrad.ops.compare import clip, isnan, where
from cgrad.ops.define import public
from cgrad.ops.elementwise import sqrt
from cgrad.ops.matmul import matmul
from cgrad.ops.reduction import _correction, nanmean, sum
from cgrad.ops.shape import reshape


def _frequencies(name, what, weights, n, whole):
    weights = as_tensor(name, weights)
    if weights.shape != (n,):
        raise ValueError(f"{name}: {what} must have one number for each of the {n} observations, got shape {weights.shape}")
    if whole and weights.dtype.is_floating_point:
        raise TypeError(f"{name}: {what} must hold integers, got {weights.dtype.name}")
    if (batching.all_examples(weights) < 0).any():
        raise ValueError(f"{name}: {what} cannot be negative")
    return weights


@public(method=True)
def cov(x, *, correction=1, fweights=None, aweights=None):
    """Covariance matrix of variables.

    Parameters
    ----------
    x : Tensor
        One variable a row, one observation a column; 1-d for a single variable.
    correction : int, optional
        What is taken off the number of observations in the divisor.
    fweights : Tensor of int, optional
        How often each observation was made.
    aweights : Tensor, optional
        How much each observation counts.

    Returns
    -------
    Tensor
        Square, one row for each variable; 0-d for a single variable.  Integers give the default float.

    Raises
    ------
    TypeError
        If `fweights` does not hold integers.
    ValueError
        If `x` has more than two axes, or weights do not fit or are negative.

    Notes
    -----
    With weights ``w = fweights * aweights`` the divisor is ``sum(w) - correction * sum(w * aweights) / sum(w)``, as in NumPy, and at least 0.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.cov(cg.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x = as_floating("cov", x)
    if x.ndim > 2:
        raise ValueError(f"cov: x must have one variable a row and one observation a column, got shape {x.shape}")
    x = x if x.ndim == 2 else reshape(x, (1, -1))
    m, n = x.shape
    shape = () if m == 1 else (m, m)
    if fweights is not None:
        fweights = _frequencies("cov", "fweights", fweights, n, True).astype(x.dtype)
    if aweights is not None:
        aweights = _frequencies("cov", "aweights", aweights, n, False).astype(x.dtype)
    weights = fweights if aweights is None else aweights if fweights is None else fweights * aweights
    correction = _correction("cov", correction, None)
    if weights is None:
        deviation = x - x.mean(1, keepdims=True)
        return reshape(matmul(deviation, deviation.mT), shape) / max(n - correction, 0)
    total = sum(weights)
    deviation = x - sum(x * weights, 1, keepdims=True) / total
    taken = correction if aweights is None else correction * sum(weights * aweights) / total
    return reshape(matmul(deviation * weights, deviation.mT), shape) / maximum(total - taken, 0)


@public(method=True)
def corrcoef(x):
    """Correlation coefficients of variables.

    Parameters
    ----------
    x : Tensor
        One variable a row, one observation a column; 1-d for a single variable.

    Returns
    -------
    Tensor
        Square, one row for each variable, between -1 and 1; 0-d for a single variable.  NaN for a variable that does not vary.

    Raises
    ------
    ValueError
        If `x` has more than two axes.

    Notes
    -----
    ``c[i][j] / sqrt(c[i][i] * c[j][j])`` with the covariances ``c``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.corrcoef(cg.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x = as_floating("corrcoef", x)
    if x.ndim > 2:
        raise ValueError(f"corrcoef: x must have one variable a row and one observation a column, got shape {x.shape}")
    c = cov(x)
    if c.ndim == 0:
        return c / c
    deviation = x - x.mean(1, keepdims=True)
    size = sqrt(sum(deviation * deviation, 1) / (x.shape[1] - 1))
    return clip(c / reshape(size, (-1, 1)) / size, -1, 1)


@public(method=True)
def nanvar(x, axis=None, keepdims=False, *, correction=0, unbiased=None):
    """Variance over axes of what is not NaN.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
    keepdims : bool, optional
    correction : number, optional
    unbiased : bool, optional
        As for `var`.

    Returns
    -------
    Tensor
        NaN where no more than `correction` elements are there.

    Notes
    -----
    Gradient: that of `var`, and 0 at NaN.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nanvar(cg.tensor([1.0, float("nan"), 3.0]))
    tensor(1.)
    """
    x = as_floating("nanvar", x)
    several_axes("nanvar", axis, x.ndim)
    missing = isnan(x)
    deviation = where(missing, 0, x - nanmean(x, axis, keepdims=True))
    left = sum(missing.logical_not(), axis, keepdims) - _correction("nanvar", correction, unbiased)
    return sum(deviation * deviation, axis, keepdims) / where(left > 0, left, float("nan")).astype(x.dtype)


@public(method=True)
def nanstd(x, axis=None, keepdims=False, *, correction=0, unbiased=None):
    """Standard deviation over axes of what is not NaN: the square root of `nanvar`.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
    keepdims : bool, optional
    correction : number, optional
    unbiased : bool, optional
        As for `std`.

    Returns
    -------
    Tensor
        NaN where no more than `correction` elements are there.

    Notes
    -----
    Gradient: that of `std`, and 0 at NaN.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nanstd(cg.tensor([1.0, float("nan"), 3.0]))
    tensor(1.)
    """
    return sqrt(nanvar(x, axis, keepdims, correction=correction, unbiased=unbiased))
