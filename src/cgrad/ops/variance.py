"""Variance and standard deviation over any set of axes.

Both are computed in two passes, from the deviations: no cancellation where the mean is large.  Next: statistics.py.
"""
import builtins

from cgrad.core.arguments import as_floating, reduced_count, result_shape, several_axes
from cgrad.core.forward import reduce as forward
from cgrad.core.source import warn
from cgrad.ops import compare
from cgrad.ops.define import define, public
from cgrad.ops.elementwise import sqrt
from cgrad.ops.reduction import _mean, _mean_forward, _sum, kept, mean


# ---------------------------------------------------------------------------------------------------------------- spread
def _freedom(shape, axis, correction):
    """What a sum of squared deviations is divided by: n - correction, at least 0."""
    return builtins.max(reduced_count(shape, axis) - correction, 0)


def _var_forward(x, axis, keepdims, correction):
    """Mean squared deviation from the mean, in two passes.

    Constant data must give 0, but their mean may be off by a rounding error.  So where the deviations are not larger than that, all is
    done again after a shift by the first element, which makes constant data exactly 0.
    """
    shape = tuple(x.shape)
    mean_ = _mean_forward(x, axis, True)
    deviation = x - mean_
    total = forward.sum(deviation * deviation, axis, True)
    rounding = 4 * (1.2e-7 if x.dtype.itemsize == 4 else 2.3e-16)
    if x.size and builtins.bool((total <= mean_ * mean_ * (reduced_count(shape, axis) * rounding ** 2)).any()):
        x = x - x[tuple([slice(0, 1) if axis is None or i in axis else slice(None) for i in range(len(shape))])]
        deviation = x - _mean_forward(x, axis, True)
        total = forward.sum(deviation * deviation, axis, True)
    freedom = _freedom(shape, axis, correction)
    if not freedom and total.size:
        warn(f"var, std: {reduced_count(shape, axis)} elements (of shape {shape}) with correction={correction} leave 0 to divide by, so the result is "
             "NaN or infinite; take more elements or a smaller correction", RuntimeWarning)
    variance = total / freedom
    return variance if keepdims else variance.reshape(result_shape(shape, axis))


def _var_vjp(g, x, axis, correction):
    shape = tuple(x.shape)
    return (x - _mean(x, axis, True)) * (kept(g, shape, axis) * 2 / _freedom(shape, axis, correction))


def _var_jvp(tx, x, axis, keepdims, correction):
    deviation = x - _mean(x, axis, True)
    return _sum(deviation * tx, axis, keepdims) * 2 / _freedom(x.shape, axis, correction)


_var = define("var", forward=_var_forward, inputs=("x",), options=("axis", "keepdims", "correction"), vjp=_var_vjp,
              jvp=_var_jvp, public=False)


def _std_vjp(g, x, out, axis, correction):
    shape = tuple(x.shape)
    scale = g / (compare.where(out == 0, 1, out) * _freedom(shape, axis, correction))
    return (x - _mean(x, axis, True)) * kept(compare.where(out == 0, 0, scale), shape, axis)


def _std_jvp(tx, x, out, axis, keepdims, correction):
    deviation = x - _mean(x, axis, True)
    slope = _sum(deviation * tx, axis, keepdims) / _freedom(x.shape, axis, correction)
    return compare.where(out == 0, 0, slope / compare.where(out == 0, 1, out))


_std = define("std", forward=lambda x, axis, keepdims, correction: sqrt(_var_forward(x, axis, keepdims, correction)),
              inputs=("x",), options=("axis", "keepdims", "correction"), vjp=_std_vjp, jvp=_std_jvp, public=False)


def _correction(name, correction, unbiased):
    if unbiased is not None:
        correction = int(builtins.bool(unbiased))
    if isinstance(correction, builtins.bool) or not isinstance(correction, (int, float)):
        raise TypeError(f"{name}: correction must be a number, got {correction!r}")
    return correction


@public(method=True)
def var(x, axis=None, keepdims=False, *, correction=0, unbiased=None):
    """Variance over axes.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
        The axes; None for all.
    keepdims : bool, optional
        Whether these axes stay, with length 1.
    correction : number, optional
        What is taken off n in the divisor: 0 for the mean squared deviation (the Array API's default), 1 for the estimate from
        a sample (PyTorch's default).
    unbiased : bool, optional
        PyTorch's older word: True for ``correction=1``, False for 0.

    Returns
    -------
    Tensor
        Integers give the default float; NaN where the divisor is 0 and there is nothing to divide.

    Notes
    -----
    Two passes; constant data give exactly 0. Where ``n <= correction`` a RuntimeWarning says that the result is NaN or infinite.
    Gradient: ``2 * g * (x - mean) / (n - correction)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.var(cg.tensor([1.0, 2.0, 3.0]), correction=1)
    tensor(1.)
    """
    x = as_floating("var", x)
    return _var(x, several_axes("var", axis, x.ndim), builtins.bool(keepdims), _correction("var", correction, unbiased))


@public(method=True)
def std(x, axis=None, keepdims=False, *, correction=0, unbiased=None):
    """Standard deviation over axes: the square root of `var`.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
        The axes; None for all.
    keepdims : bool, optional
        Whether these axes stay, with length 1.
    correction : number, optional
        What is taken off n in the divisor (0 in the Array API, 1 by default in PyTorch).
    unbiased : bool, optional
        PyTorch's older word: True for ``correction=1``, False for 0.

    Returns
    -------
    Tensor
        Integers give the default float; NaN where the divisor is 0 and there is nothing to divide.

    Notes
    -----
    Gradient: ``g * (x - mean) / ((n - correction) * std)``; 0 for constant data.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.std(cg.tensor([1.0, 2.0, 3.0]), correction=1)
    tensor(1.)
    """
    x = as_floating("std", x)
    return _std(x, several_axes("std", axis, x.ndim), builtins.bool(keepdims), _correction("std", correction, unbiased))


@public(method=False)
def var_mean(x, axis=None, keepdims=False, *, correction=0, unbiased=None):
    """Variance and mean over axes.

    Parameters
    ----------
    x : Tensor
    axis, keepdims, correction, unbiased
        As for `var`.

    Returns
    -------
    tuple of Tensor
        Variance, mean.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.var_mean(cg.tensor([1.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    return var(x, axis, keepdims, correction=correction, unbiased=unbiased), mean(x, axis, keepdims)


@public(method=False)
def std_mean(x, axis=None, keepdims=False, *, correction=0, unbiased=None):
    """Standard deviation and mean over axes.

    Parameters
    ----------
    x : Tensor
    axis, keepdims, correction, unbiased
        As for `std`.

    Returns
    -------
    tuple of Tensor
        Standard deviation, mean.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.std_mean(cg.tensor([1.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    return std(x, axis, keepdims, correction=correction, unbiased=unbiased), mean(x, axis, keepdims)
