"""logsumexp, softmax, log_softmax and the norm of vectors: reductions that need care with infinities and zeros.

The backward passes of softmax and log_softmax are operations of their own, one pass over memory each, with rules in
turn, so that any order of derivative nests.  Next: shape.py.
"""
import builtins
import math

from cgrad.core.forward import softmax as forward
from cgrad.ops import compare
from cgrad.core.arguments import as_floating, one_axis, result_shape, several_axes
from cgrad.ops.define import define, public
from cgrad.ops.elementwise import exp, sqrt
from cgrad.ops.reduction import _max, _min, _sum, any, kept


def softmax_axis(name, axis, x):
    """The axis as an index, or None for a 0-d tensor, whose one element is a whole row."""
    if axis is None:
        raise TypeError(f"{name}: name the axis over which the results shall sum to 1")
    return one_axis(name, axis, x.ndim)


# ---------------------------------------------------------------------------------------------------------------- softmax
# x is the incoming gradient, y the softmax: y * (x - sum(x * y)), linear in x with a symmetric matrix.
_softmax_backward = define(
    "softmax_backward", forward=forward.softmax_backward, inputs=("x", "y"), options=("axis",),
    vjp=(lambda g, y, axis: _softmax_backward(g, y, axis),
         lambda g, x, y, axis: g * (x - _sum(x * y, (axis,), True)) - x * _sum(g * y, (axis,), True)),
    public=False)
_softmax = define(
    "softmax", forward=forward.softmax, inputs=("x",), options=("axis",),
    vjp=lambda g, out, axis: _softmax_backward(g, out, axis), jvp=lambda tx, out, axis: _softmax_backward(tx, out, axis),
    public=False)


@public(method=True)
def softmax(x, axis, dtype=None):
    """Exponentials that sum to 1 along an axis: ``exp(x) / sum(exp(x))`` without overflow.

    Parameters
    ----------
    x : Tensor
    axis : int
        The axis along which the results sum to 1.
    dtype : dtype, optional
        What to cast `x` to first.

    Returns
    -------
    Tensor
        Same shape; integers give the default float.

    Raises
    ------
    IndexError
        If the axis is out of range.

    Notes
    -----
    A row of nothing but minus infinity gives NaN.  Gradient: ``out * (g - sum(g * out))``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.softmax(cg.tensor([0.0, 0.0, float("-inf")]), axis=0)
    tensor([0.5000, 0.5000, 0.0000])
    """
    x = as_floating("softmax", x, dtype)
    at = softmax_axis("softmax", axis, x)
    return _softmax(x, at) if x.ndim else _softmax(x.reshape(1), 0).reshape(())


# x is the incoming gradient, y the log_softmax: x - exp(y) * sum(x).
_log_softmax_backward = define(
    "log_softmax_backward", forward=forward.log_softmax_backward, inputs=("x", "y"), options=("axis",),
    vjp=(lambda g, y, axis: g - _sum(g * exp(y), (axis,), True),
         lambda g, x, y, axis: -g * exp(y) * _sum(x, (axis,), True)),
    public=False)
_log_softmax = define(
    "log_softmax", forward=forward.log_softmax, inputs=("x",), options=("axis",),
    vjp=lambda g, out, axis: _log_softmax_backward(g, out, axis),
    jvp=lambda tx, out, axis: tx - _sum(exp(out) * tx, (axis,), True), public=False)


@public(method=True)
def log_softmax(x, axis, dtype=None):
    """Logarithm of `softmax` along an axis: ``x - log(sum(exp(x)))`` without overflow.

    Parameters
    ----------
    x : Tensor
    axis : int
        The axis along which the exponentials of the results sum to 1.
    dtype : dtype, optional
        What to cast `x` to first.

    Returns
    -------
    Tensor
        Same shape; integers give the default float.

    Raises
    ------
    IndexError
        If the axis is out of range.

    Notes
    -----
    Gradient: ``g - exp(out) * sum(g)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.log_softmax(cg.tensor([0.0, 0.0]), axis=0)
    tensor([-0.6931, -0.6931])
    """
    x = as_floating("log_softmax", x, dtype)
    at = softmax_axis("log_softmax", axis, x)
    return _log_softmax(x, at) if x.ndim else _log_softmax(x.reshape(1), 0).reshape(())


@public(method=False)
def softmin(x, axis, dtype=None):
    """`softmax` of ``-x``, with minus its gradient.

    Parameters
    ----------
    x : Tensor
    axis : int
    dtype : dtype, optional
        As for `softmax`.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.softmin(cg.tensor([0.0, 0.0]), axis=0)
    tensor([0.5000, 0.5000])
    """
    return softmax(-as_floating("softmin", x), axis, dtype)


# -------------------------------------------------------------------------------------------------------------- logsumexp
def _shares(x, out, axis):
    """exp(x - out), and 0 in rows of nothing but minus infinity."""
    out = kept(out, tuple(x.shape), axis)
    return exp(x - compare.where(out == -math.inf, 0, out))


_logsumexp = define(
    "logsumexp", forward=forward.logsumexp, inputs=("x",), options=("axis", "keepdims"),
    vjp=lambda g, x, out, axis: kept(g, tuple(x.shape), axis) * _shares(x, out, axis),
    jvp=lambda tx, x, out, axis, keepdims: _sum(tx * _shares(x, out, axis), axis, keepdims), public=False)


@public(method=True)
def logsumexp(x, axis=None, keepdims=False):
    """Logarithm of a sum of exponentials over axes: ``log(sum(exp(x)))`` without overflow.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
        The axes to sum over; None for all.
    keepdims : bool, optional
        Whether these axes stay, with length 1.

    Returns
    -------
    Tensor
        Integers give the default float; minus infinity for no elements.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If an axis is named twice.

    Notes
    -----
    Gradient: ``g * exp(x - out)``; 0 in rows of nothing but minus infinity.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.logsumexp(cg.tensor([1000.0, 1000.0], dtype=cg.float64))
    tensor(1000.6931, dtype=cgrad.float64)
    """
    x = as_floating("logsumexp", x)
    return _logsumexp(x, several_axes("logsumexp", axis, x.ndim), builtins.bool(keepdims))


# ------------------------------------------------------------------------------------------------------------------ norms
def _norm_forward(x, axis, keepdims):
    """The root of the sum of squares; where that overflows or vanishes, once more with the largest magnitude divided out."""
    total = _sum(x * x, axis, True)
    lowest = 1e-30 if x.dtype.itemsize == 4 else 1e-290
    safe = compare.logical_and(total > lowest, compare.isfinite(total))
    if x.size == 0 or builtins.bool(safe.all()):
        norm = sqrt(total)
    else:
        magnitude = abs(x)
        scale = _max(magnitude, axis, True)
        scale = compare.where(compare.logical_and(compare.isfinite(scale), scale > 0), scale, 1)
        part = magnitude / scale
        norm = sqrt(_sum(part * part, axis, True)) * scale
    return norm if keepdims else norm.reshape(result_shape(tuple(x.shape), axis))


def _direction(x, out, axis):
    """x / norm, and 0 with a slope of 0 where the norm is 0."""
    out = kept(out, tuple(x.shape), axis)
    return x / compare.where(out == 0, math.inf, out)


_norm = define(
    "vector_norm", forward=_norm_forward, inputs=("x",), options=("axis", "keepdims"),
    vjp=lambda g, x, out, axis: kept(g, tuple(x.shape), axis) * _direction(x, out, axis),
    jvp=lambda tx, x, out, axis, keepdims: _sum(tx * _direction(x, out, axis), axis, keepdims), public=False)


@public(method=False)
def vector_norm(x, ord=2, axis=None, keepdims=False, dtype=None):
    """Norm of vectors: ``sum(|x|**ord) ** (1 / ord)`` over axes.

    Parameters
    ----------
    x : Tensor
    ord : number, optional
        ``inf`` for the largest magnitude, ``-inf`` for the smallest, 0 for the number of elements that are not 0.
    axis : int, tuple of int or None, optional
        The axes that hold the vector; None for all.
    keepdims : bool, optional
        Whether these axes stay, with length 1.
    dtype : dtype, optional
        What to cast `x` to first.

    Returns
    -------
    Tensor
        Integers give the default float.

    Notes
    -----
    Gradient for ``ord=2``: ``g * x / out``; 0 at the zero vector.  Other orders get theirs from `abs`, `max` and powers; 0 where the norm
    is 0, too, and for elements that are 0 if the order is below 1, where the slope is infinite.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.vector_norm(cg.tensor([3.0, 4.0]))
    tensor(5.)
    """
    x = as_floating("vector_norm", x, dtype)
    axes = several_axes("vector_norm", axis, x.ndim)
    keepdims = builtins.bool(keepdims)
    if ord == 2:
        return _norm(x, axes, keepdims)
    size = abs(x)
    if ord == math.inf:
        return _max(size, axes, keepdims)
    if ord == -math.inf:
        return _min(size, axes, keepdims)
    if ord == 1:
        return _sum(size, axes, keepdims)
    if ord == 0:
        return _sum(compare.where(x == 0, x * 0, 1), axes, keepdims)
    # Powers have infinite slopes at 0, the inner one below an order of 1, the outer one above: put 1 there and take the 0 back afterwards.
    hit = x == 0
    if ord < 1:
        total = _sum(compare.where(hit, 0 if ord > 0 else 1, compare.where(hit, 1, size) ** ord), axes, keepdims)
    else:
        total = _sum(size ** ord, axes, keepdims)
    zero = total == 0 if ord > 0 else compare.logical_and(any(hit, axes, keepdims), total == total)
    return compare.where(zero, 0, compare.where(zero, 1, total) ** (1 / ord))
