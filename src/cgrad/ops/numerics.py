"""Numerical recipes on vectors under NumPy's names: convolution, interpolation, polynomials, phases.

Compositions, except the convolution, whose numbers come from NumPy.  Next: einsum.py.
"""
import math

import numpy as np

from cgrad.core import convert
from cgrad.core.arguments import as_floating, as_tensor, one_axis, whole_number
from cgrad.core.batching import all_examples
from cgrad.core.dtype import promote_types
from cgrad.ops.compare import where
from cgrad.ops.creation import zeros_like
from cgrad.ops.define import BILINEAR, define, public
from cgrad.ops.elementwise import sqrt
from cgrad.ops.joining import concat
from cgrad.ops.repeating import pad
from cgrad.ops.linalg import products
from cgrad.ops.linalg.solving import lstsq
from cgrad.ops.reduction import sum
from cgrad.ops.scan import cumulative_sum, diff
from cgrad.ops.searching import searchsorted
from cgrad.ops.shape import flip
from cgrad.ops.sorting import argsort
from cgrad.ops.strided import unfold


# ---------------------------------------------------------------------------------------------------------- convolution
def _slope(g, other, shape):
    return _convolve(g, flip(other))[other.size - 1:other.size - 1 + shape[0]]


def _examples(x, y, batched):
    if not batched[0]:
        x, y, batched = y, x, batched[::-1]
    beyond = y.shape[-1] - 1
    windows, y = unfold(pad(x, ((0, 0), (beyond, beyond))), 1, beyond + 1, 1), flip(y, -1)
    return sum(windows * y[:, None], -1) if batched[1] else windows @ y


_convolve = define("convolve", forward=lambda x, y: convert.tensor_from(np.convolve(convert.numpy(x), convert.numpy(y)), None, True), inputs=("x", "y"),
                   vjp=(lambda g, y, shape_x: _slope(g, y, shape_x), lambda g, x, shape_y: _slope(g, x, shape_y)), kind=BILINEAR,
                   batch=_examples, public=False)


def _two_vectors(name, x, y, mode, turned):
    x, y = as_tensor(name, x), as_tensor(name, y)
    if x.ndim != 1 or y.ndim != 1 or not x.size or not y.size:
        raise ValueError(f"{name}: takes two vectors that are not empty, got shapes {x.shape} and {y.shape}")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"{name}: mode must be 'full', 'same' or 'valid', got {mode!r}")
    dtype = promote_types(x.dtype, y.dtype)
    out = _convolve(x.astype(dtype, copy=False), (flip(y) if turned else y).astype(dtype, copy=False))
    long, short = max(x.size, y.size), min(x.size, y.size)
    if mode == "full":
        return out
    if mode == "valid":
        return out[short - 1:long]
    start = (short - 1) // 2 if not turned or x.size >= y.size else short // 2
    return out[start:start + long]


@public(method=False)
def convolve(x, y, mode="full"):
    """Convolution of two vectors: ``out[k]`` is the sum of ``x[i] * y[k - i]``.

    Parameters
    ----------
    x, y : Tensor
        1-d.
    mode : {"full", "same", "valid"}, optional
        Everything; as much as the longer vector from the middle; or where the vectors overlap completely.

    Returns
    -------
    Tensor
        1-d, of the promoted dtype.

    Raises
    ------
    ValueError
        For other than two vectors, empty ones, or an unknown mode.

    Notes
    -----
    Computed directly, in time proportional to the product of the lengths.  Gradient: ``g`` convolved with the other vector, reversed.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.convolve(cg.tensor([1, 2, 3]), cg.tensor([1, 1]))
    tensor([1, 3, 5, 3])
    """
    return _two_vectors("convolve", x, y, mode, False)


@public(method=False)
def correlate(x, y, mode="valid"):
    """Correlation of two vectors: `convolve` with the second one reversed.

    Parameters
    ----------
    x, y : Tensor
        1-d.
    mode : {"valid", "same", "full"}, optional
        As for `convolve`.

    Returns
    -------
    Tensor
        1-d, of the promoted dtype.

    Raises
    ------
    ValueError
        As for `convolve`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.correlate(cg.tensor([1, 2, 3]), cg.tensor([0, 1]))
    tensor([2, 3])
    """
    return _two_vectors("correlate", x, y, mode, True)


# -------------------------------------------------------------------------------------------------------- interpolation
@public(method=False)
def interp(x, xp, fp, left=None, right=None, period=None):
    """A function known at some points, by straight lines between them.

    Parameters
    ----------
    x : Tensor
        Where to evaluate it.
    xp : Tensor
        The points, 1-d and increasing.
    fp : Tensor
        The values there.
    left, right : number, optional
        The value before the first point and after the last; by default that of these points.
    period : number, optional
        The period of the function, if it has one; the points may then come in any order, and `left` and `right` do not count.

    Returns
    -------
    Tensor
        In the shape of `x`.

    Raises
    ------
    ValueError
        If `xp` and `fp` are no vectors of one length, not increasing, or the period is 0.

    Notes
    -----
    Gradient: for `x` the slope of the line (at a point that of the next one, outside 0), for `fp` and `xp` that of the line.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.interp(cg.tensor([0.5, 1.5, 9.0]), [0.0, 1.0, 2.0], [0.0, 10.0, 0.0])
    tensor([5., 5., 0.])
    """
    x, xp, fp = as_floating("interp", x), as_floating("interp", xp), as_floating("interp", fp)
    if xp.ndim != 1 or xp.shape != fp.shape or not xp.size:
        raise ValueError(f"interp: xp and fp must be vectors of one length, not empty, got shapes {xp.shape} and {fp.shape}")
    if period is not None:
        if period == 0:
            raise ValueError("interp: the period must not be 0")
        period = abs(period)
        x, xp = x % period, xp % period
        order = argsort(xp)
        xp, fp = xp[order], fp[order]
        xp, fp = concat([xp[-1:] - period, xp, xp[:1] + period]), concat([fp[-1:], fp, fp[:1]])
        left = right = None
    if (all_examples(diff(xp.detach())) < 0).any():
        raise ValueError("interp: the points xp must increase")
    last = xp.size - 1
    before = (searchsorted(xp.detach(), x.detach(), side="right") - 1).clip(0, last)
    after = (before + 1).clip(0, last)
    width = xp[after] - xp[before]
    share = where((x < xp[0]) | (x > xp[last]), 0, x - xp[before]) / where(width == 0, 1, width)
    out = fp[before] * (1 - share) + fp[after] * share
    out = where(x < xp[0], fp[0] if left is None else left, out)
    return where(x > xp[last], fp[last] if right is None else right, out)


@public(method=False)
def unwrap(x, discont=None, axis=-1, *, period=2 * math.pi):
    """Angles without jumps: a multiple of the period is added after each jump of more than half of it.

    Parameters
    ----------
    x : Tensor
    discont : number, optional
        What counts as a jump; at least, and by default, half the period.
    axis : int, optional
    period : number, optional

    Returns
    -------
    Tensor
        In the shape of `x`; integers give the default float.

    Raises
    ------
    IndexError
        If the axis is out of range.

    Notes
    -----
    Gradient: ``g``; what is added does not change.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.unwrap(cg.tensor([0.0, 2.0, 4.0, 1.0]), period=5)
    tensor([0., 2., 4., 6.])
    """
    x = as_floating("unwrap", x)
    axis = one_axis("unwrap", axis, x.ndim)
    steps = diff(x.detach(), axis=axis)
    turned = (steps + period / 2) % period - period / 2
    turned = where((turned == -period / 2).logical_and(steps > 0), period / 2, turned)
    added = where(steps.abs() < (period / 2 if discont is None else discont), 0, turned - steps)
    first = x[(slice(None),) * axis + (slice(0, 1),)]
    return x + cumulative_sum(concat([zeros_like(first), added], axis), axis)


# ---------------------------------------------------------------------------------------------------------- polynomials
@public(method=False)
def vander(x, N=None, increasing=False):
    """The powers of the elements of a vector as rows of a matrix (Vandermonde).

    Parameters
    ----------
    x : Tensor
        1-d.
    N : int, optional
        How many powers; by default as many as elements.
    increasing : bool, optional
        Whether the powers ascend, as they do in `cgrad.linalg.vander`.

    Returns
    -------
    Tensor
        2-d; integers stay integers.

    Raises
    ------
    ValueError
        For other than one axis, or a negative N.

    Notes
    -----
    Gradient: that of `power`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.vander(cg.tensor([2, 3]), 3)
    tensor([[4, 2, 1],
            [9, 3, 1]])
    """
    x = as_tensor("vander", x)
    if x.ndim != 1:
        raise ValueError(f"vander: takes a vector, got shape {x.shape}; use cgrad.linalg.vander for batches")
    powers = products.vander(x, N)
    return powers if increasing else flip(powers, -1)


@public(method=False)
def polyval(p, x):
    """The value of a polynomial.

    Parameters
    ----------
    p : Tensor
        1-d, the coefficients, that of the highest power first.
    x : Tensor or number

    Returns
    -------
    Tensor
        In the shape of `x`.

    Raises
    ------
    ValueError
        If `p` is not 1-d.

    Notes
    -----
    By Horner's rule.  Gradient: for the coefficients and for `x`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.polyval(cg.tensor([1, 0, 3]), cg.tensor([1, 2]))
    tensor([4, 7])
    """
    p, x = as_tensor("polyval", p), as_tensor("polyval", x)
    if p.ndim != 1:
        raise ValueError(f"polyval: needs a row of coefficients, got shape {p.shape}")
    out = zeros_like(x)
    for k in range(p.size):
        out = out * x + p[k]
    return out


@public(method=False)
def polyfit(x, y, deg, rcond=None, *, w=None):
    """The polynomial of least squares through points.

    Parameters
    ----------
    x : Tensor
        1-d.
    y : Tensor
        The values there, 1-d; or several rows of values as columns.
    deg : int
        The degree.
    rcond : number, optional
        As for `cgrad.linalg.lstsq`.
    w : Tensor, optional
        What the distance at each point is multiplied by before it is squared.

    Returns
    -------
    Tensor
        The coefficients, that of the highest power first.

    Raises
    ------
    ValueError
        Shapes that do not fit, or a negative degree.

    Notes
    -----
    Columns of powers are scaled to the same length, as in NumPy.  Gradient: for `x`, `y` and `w`, if the powers are linearly independent.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.polyfit(cg.tensor([0.0, 1.0, 2.0]), cg.tensor([1.0, 3.0, 5.0]), 1)
    tensor([2.0000, 1.0000])
    """
    x, y, deg = as_floating("polyfit", x), as_floating("polyfit", y), whole_number("polyfit", "deg", deg)
    if deg < 0 or x.ndim != 1 or not x.size or y.ndim not in (1, 2) or y.shape[0] != x.size:
        raise ValueError(f"polyfit: needs a degree, points and a value for each of them; got deg {deg} and shapes {x.shape} and {y.shape}")
    powers = vander(x, deg + 1)
    if w is not None:
        w = as_floating("polyfit", w)
        if w.shape != x.shape:
            raise ValueError(f"polyfit: needs a weight for each of {x.size} points, got shape {w.shape}")
        powers, y = powers * w[:, None], y * (w[:, None] if y.ndim == 2 else w)
    scale = sqrt(sum(powers * powers, 0))
    scale = where(scale == 0, 1, scale)
    out = lstsq(powers / scale, y, rcond).solution
    return out / (scale[:, None] if y.ndim == 2 else scale)
