"""Covariance and correlation, summaries of what is not NaN, weighted means.

All of it is made of sums, products and extremes, whose derivatives do.  Next: einsum.py.
"""
import builtins
import math

import numpy as np

from cgrad.core import batching
from cgrad.core.arguments import as_floating, as_tensor, several_axes
from cgrad.core.tensor import Tensor
from cgrad.ops.arithmetic import maximum
from cgrad.ops.compare import clip, isnan, where
from cgrad.ops.creation import full_like
from cgrad.ops.define import public
from cgrad.ops.elementwise import sqrt
from cgrad.ops.matmul import matmul
from cgrad.ops.reduction import all, argmax, argmin, max, mean, min, nanmean, prod, sum
from cgrad.ops.variance import _correction
from cgrad.ops.scan import cumulative_prod, cumulative_sum
from cgrad.ops.shape import broadcast_to, reshape
from cgrad.ops.sorting import nanquantile, quantile


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
    Gradient: in `x` and `aweights`.

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
        return reshape(matmul(deviation, deviation.mT), shape) / builtins.max(n - correction, 0)
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
    ``c[i][j] / sqrt(c[i][i] * c[j][j])`` with the covariances ``c``, whose gradient this has.

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


def _known(name, x, value):
    """(x with `value` for NaN, where NaN is); integers have none."""
    x = as_tensor(name, x)
    missing = isnan(x)
    return (where(missing, value, x) if x.dtype.is_floating_point else x), missing


def _without_nan(name, extreme, worst, word):
    def function(x, axis=None, keepdims=False):
        known, missing = _known(name, x, worst)
        out = extreme(known, axis, keepdims)
        return where(all(missing, axis, keepdims), math.nan, out) if out.dtype.is_floating_point else out
    function.__doc__ = f"""The {word} element over axes, NaN left out.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
    keepdims : bool, optional
        As for `{name[3:]}`.

    Returns
    -------
    Tensor
        The dtype of `x`; NaN where there is nothing else.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If there is nothing to search.

    Notes
    -----
    Gradient: that of `{name[3:]}`, and 0 at NaN.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.{name}(cg.tensor([1.0, float("nan")]))
    tensor(1.)
    """
    return public(function, name=name)


nanmax = _without_nan("nanmax", max, -math.inf, "largest")
nanmin = _without_nan("nanmin", min, math.inf, "smallest")


def _place_without_nan(name, place, worst, word):
    def function(x, axis=None, keepdims=False):
        known, missing = _known(name, x, worst)
        if batching.all_examples(all(missing, axis)).any():
            raise ValueError(f"{name}: there is nothing but NaN along axis {axis} of a tensor of shape {missing.shape}")
        return place(known, axis, keepdims)
    function.__doc__ = f"""Where the {word} element over axes is, NaN left out.

    Parameters
    ----------
    x : Tensor
    axis : int or None, optional
    keepdims : bool, optional
        As for `{name[3:]}`.

    Returns
    -------
    Tensor
        int64.  No gradient.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If there is nothing but NaN.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.{name}(cg.tensor([float("nan"), 1.0]))
    tensor(1)
    """
    return public(function, name=name)


nanargmax = _place_without_nan("nanargmax", argmax, -math.inf, "largest")
nanargmin = _place_without_nan("nanargmin", argmin, math.inf, "smallest")


@public(method=True)
def nanprod(x, axis=None, keepdims=False):
    """Product over axes that counts NaN as 1.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
    keepdims : bool, optional
        As for `prod`.

    Returns
    -------
    Tensor
        int64 for bools and integers, else the dtype of `x`.

    Raises
    ------
    IndexError
        If an axis is out of range.

    Notes
    -----
    Gradient: that of `prod`, and 0 at NaN.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nanprod(cg.tensor([2.0, float("nan"), 3.0]))
    tensor(6.)
    """
    return prod(_known("nanprod", x, 1)[0], axis, keepdims)


def _running(name, scan, value, what):
    def function(x, axis=None):
        x = _known(name, x, value)[0]
        return scan(reshape(x, (-1,)) if axis is None else x, axis or 0)
    function.__doc__ = f"""Running {what} along an axis that counts NaN as {value}.

    Parameters
    ----------
    x : Tensor
    axis : int or None, optional
        None reads `x` as one flat row.

    Returns
    -------
    Tensor
        int64 for bools and integers, else the dtype of `x`.

    Raises
    ------
    IndexError
        If the axis is out of range.

    Notes
    -----
    Gradient: that of the running {what}, and 0 at NaN.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.{name}(cg.tensor([2.0, float("nan"), 2.0]))
    tensor([2., 2., 4.])
    """
    return public(function, name=name)


nancumsum = _running("nancumsum", cumulative_sum, 0, "sum")
nancumprod = _running("nancumprod", cumulative_prod, 1, "product")


# ---------------------------------------------------------------------------------------------------- NumPy's summaries
@public(method=True)
def ptp(x, axis=None, keepdims=False):
    """Largest less smallest element over axes (peak to peak).

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
    keepdims : bool, optional
        As for `max`.

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If there is nothing to search.

    Notes
    -----
    Gradient: those of `max` and `min`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.ptp(cg.tensor([4.0, 1.0, 3.0]))
    tensor(3.)
    """
    return max(x, axis, keepdims) - min(x, axis, keepdims)


@public(method=False)
def average(x, axis=None, weights=None, returned=False, *, keepdims=False):
    """Weighted mean over axes.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
        The axes to average over; None for all.
    weights : Tensor, optional
        In the shape of `x`, or one for each element along `axis`.
    returned : bool, optional
        Whether to return the sum of the weights, too.
    keepdims : bool, optional
        Whether the axes stay, with length 1.

    Returns
    -------
    Tensor or (Tensor, Tensor)
        Integers give the default float; NaN where the weights sum to 0.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If the weights do not fit.

    Notes
    -----
    ``sum(weights * x) / sum(weights)``.  Gradient: for both.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.average(cg.tensor([1.0, 5.0]), weights=cg.tensor([3.0, 1.0]))
    tensor(2.)
    """
    x = as_floating("average", x)
    if weights is None:
        out = mean(x, axis, keepdims)
        total = full_like(out, x.size / builtins.max(out.size, 1)).detach()
    else:
        weights = as_tensor("average", weights)
        if weights.shape != x.shape:
            if not isinstance(axis, int) or weights.shape != (x.shape[axis],):
                raise ValueError(f"average: weights of shape {weights.shape} do not belong to a tensor of shape {x.shape} along axis {axis}")
            weights = reshape(weights, tuple([-1 if k == axis % x.ndim else 1 for k in range(x.ndim)]))
        total = sum(broadcast_to(weights, x.shape), axis, keepdims)
        out = sum(x * weights, axis, keepdims) / total
    return (out, broadcast_to(total, out.shape)) if returned else out


def _percentile(name, quantile):
    def function(x, q, axis=None, keepdims=False, *, interpolation="linear"):
        return quantile(x, (q if isinstance(q, Tensor) else np.asarray(q)) / 100, axis, keepdims, interpolation=interpolation)
    function.__doc__ = f"""`{quantile.__name__}` with percentages between 0 and 100.

    Parameters
    ----------
    x : Tensor
    q : number or Tensor
    axis : int, tuple of int or None, optional
    keepdims : bool, optional
    interpolation : str, optional
        As for `{quantile.__name__}`.

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If `q` leaves [0, 100], or there is nothing to search.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.{name}(cg.tensor([4.0, 1.0, 3.0, 2.0]), 50)
    tensor(2.5000)
    """
    return public(function, name=name, method=False)


percentile, nanpercentile = _percentile("percentile", quantile), _percentile("nanpercentile", nanquantile)
