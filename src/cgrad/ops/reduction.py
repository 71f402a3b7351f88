"""Sums, means, extremes and other summaries over any set of axes.

Public functions normalise their arguments; the primitives below them get a tensor, a sorted tuple of axes (None: all) and keepdims.
The core functions that compute know no derivative (core/forward/reduce.pyx).  Next: softmax.py, then shape.py.
"""
import builtins
import math

from cgrad.core.arguments import as_floating, as_tensor, cast, kept_shape, one_axis, reduced_count, several_axes, shape_tuple
from cgrad.core.forward import reduce as forward
from cgrad.core.tensor import Tensor
from cgrad.ops import compare
from cgrad.ops.arithmetic import maximum, minimum
from cgrad.ops.define import LINEAR, NONDIFF, define, public
from cgrad.ops.joining import concat
from cgrad.ops.shape import _broadcast_to, _permute, _reshape, inverse_order


def kept(g, shape, axis):
    """`g` with length 1 along the reduced axes, so that it broadcasts with the operand again."""
    return _reshape(g, kept_shape(shape, axis))


def spread(g, shape, axis):
    """`g` repeated along the reduced axes: the gradient of a sum."""
    return _broadcast_to(_reshape(g, kept_shape(shape, axis)), shape)


# --------------------------------------------------------------------------------------------------------- sums and means
_sum = define("sum", forward=forward.sum, inputs=("x",), options=("axis", "keepdims"),
              vjp=lambda g, shape_x, axis: spread(g, shape_x, axis), kind=LINEAR, public=False)


@public(method=True)
def sum(x, axis=None, keepdims=False, dtype=None):
    """Sum over axes.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
        The axes to sum over; None for all.
    keepdims : bool, optional
        Whether these axes stay, with length 1.
    dtype : dtype, optional
        What to cast `x` to first; the dtype of the result.

    Returns
    -------
    Tensor
        Without `dtype` int64 for bools and integers, else the dtype of `x`; 0 for no elements.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If an axis is named twice.

    Notes
    -----
    Sums run in several partial sums, so that float32 keeps its digits.  Gradient: ``g`` repeated along the axes.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.sum(cg.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    tensor([4., 6.])
    """
    x = cast(as_tensor("sum", x), dtype)
    return cast(_sum(x, several_axes("sum", axis, x.ndim), builtins.bool(keepdims)), dtype)


@public(method=True)
def sum_to_size(x, shape, *more):
    """Sum over the axes along which a tensor of some shape would be broadcast: the adjoint of `broadcast_to`.

    Parameters
    ----------
    x : Tensor
    shape : int or tuple of int
        The shape to reach; it must broadcast to that of `x`.  ``x.sum_to_size(1, 3)`` works, too.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If the shape does not broadcast to that of `x`.

    Notes
    -----
    Gradient: ``g`` repeated along the axes.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.sum_to_size(cg.ones(2, 3), (2, 1))
    tensor([[3.],
            [3.]])
    """
    x, shape = as_tensor("sum_to_size", x), shape_tuple("sum_to_size", shape, more)
    lead = x.ndim - len(shape)
    if lead < 0 or builtins.any(n not in (1, m) for n, m in zip(shape, x.shape[lead:])):
        raise ValueError(f"sum_to_size: shape {shape} does not broadcast to that of the tensor, {x.shape}")
    axes = tuple([k for k in range(x.ndim) if k < lead or shape[k - lead] != x.shape[k]])
    return _reshape(sum(x, axes, True) if axes else +x, shape)


def _mean_forward(x, axis, keepdims):
    return forward.sum(x, axis, keepdims) / reduced_count(x.shape, axis)


_mean = define("mean", forward=_mean_forward, inputs=("x",), options=("axis", "keepdims"),
               vjp=lambda g, shape_x, axis: spread(g / reduced_count(shape_x, axis), shape_x, axis),
               kind=LINEAR, public=False)


@public(method=True)
def mean(x, axis=None, keepdims=False, dtype=None):
    """Arithmetic mean over axes.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
        The axes to average over; None for all.
    keepdims : bool, optional
        Whether these axes stay, with length 1.
    dtype : dtype, optional
        What to cast `x` to first.

    Returns
    -------
    Tensor
        Integers give the default float; NaN for no elements.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If an axis is named twice.

    Notes
    -----
    Gradient: ``g / n`` repeated along the axes, with n elements in each mean.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.mean(cg.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=1)
    tensor([1.5000, 3.5000])
    """
    x = as_floating("mean", x, dtype)
    if not x.dtype.is_floating_point:
        raise TypeError(f"mean: dtype must be a floating one, got {x.dtype.name}")
    return _mean(x, several_axes("mean", axis, x.ndim), builtins.bool(keepdims))


@public(method=True)
def nansum(x, axis=None, keepdims=False, dtype=None):
    """Sum over axes that counts NaN as 0.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
    keepdims : bool, optional
    dtype : dtype, optional
        As for `sum`.

    Returns
    -------
    Tensor

    Notes
    -----
    Gradient: that of `sum`, and 0 at NaN.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nansum(cg.tensor([1.0, float("nan")]))
    tensor(1.)
    """
    x = as_tensor("nansum", x)
    return sum(compare.where(compare.isnan(x), 0, x), axis, keepdims, dtype=dtype)


@public(method=True)
def nanmean(x, axis=None, keepdims=False, dtype=None):
    """Mean over axes of what is not NaN.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
    keepdims : bool, optional
    dtype : dtype, optional
        As for `mean`.

    Returns
    -------
    Tensor
        NaN where everything is NaN.

    Notes
    -----
    Gradient: ``g / n`` at the n elements that are not NaN, 0 at the others.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nanmean(cg.tensor([1.0, float("nan"), 3.0]))
    tensor(2.)
    """
    x = as_floating("nanmean", x, dtype)
    missing = compare.isnan(x)
    return sum(compare.where(missing, 0, x), axis, keepdims) / sum(compare.logical_not(missing), axis, keepdims)


@public(method=True)
def count_nonzero(x, axis=None, keepdims=False):
    """How many elements are not 0.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
        The axes to count along; None for all.
    keepdims : bool, optional
        Whether these axes stay, with length 1.

    Returns
    -------
    Tensor
        int64; no gradient.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.count_nonzero(cg.tensor([0, 3, 5]))
    tensor(2)
    """
    return sum(as_tensor("count_nonzero", x) != 0, axis, keepdims)


# -------------------------------------------------------------------------------------------------------------- products
def _product_of_others(x, g, axis):
    """g times the product of all other elements over `axis`, for each element, without a division.

    Up a binary tree of products, and down again with what lies outside of each subtree: about 3n multiplications, each of them
    recorded where need be, so that zeros do no harm at any order.
    """
    shape = tuple(x.shape)
    axes = tuple(range(len(shape))) if axis is None else axis
    order = tuple([i for i in range(len(shape)) if i not in axes]) + axes
    outer = tuple([shape[i] for i in order[:len(shape) - len(axes)]])
    n = reduced_count(shape, axis)
    level = _reshape(_permute(x, order), outer + (n,))
    width = 1 << (n - 1).bit_length() if n else 0
    if width != n:
        level = concat([level, _broadcast_to(as_tensor("prod", 1.0).astype(x.dtype), outer + (width - n,))], -1)
    levels = []
    while width > 1:
        width //= 2
        levels.append((level[..., :width], level[..., width:]))
        level = levels[-1][0] * levels[-1][1]
    outside = _reshape(g, outer + (1,)) if n else level
    for left, right in reversed(levels):
        outside = concat([outside * right, outside * left], -1)
    others = _reshape(outside[..., :n], tuple([shape[i] for i in order]))
    return _permute(others, inverse_order(order))


_prod = define("prod", forward=forward.prod, inputs=("x",), options=("axis", "keepdims"),
               vjp=lambda g, x, axis: _product_of_others(x, g, axis), public=False)


@public(method=True)
def prod(x, axis=None, keepdims=False, dtype=None):
    """Product over axes.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
        The axes to multiply over; None for all.
    keepdims : bool, optional
        Whether these axes stay, with length 1.
    dtype : dtype, optional
        What to cast `x` to first; the dtype of the result.

    Returns
    -------
    Tensor
        Without `dtype` int64 for bools and integers, else the dtype of `x`; 1 for no elements.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If an axis is named twice.

    Notes
    -----
    Gradient: ``g`` times the product of the other elements, computed without a division: exact with zeros, too.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([2.0, 0.0, 4.0], requires_grad=True)
    >>> cg.prod(x).backward()
    >>> x.grad
    tensor([0., 8., 0.])
    """
    x = cast(as_tensor("prod", x), dtype)
    return cast(_prod(x, several_axes("prod", axis, x.ndim), builtins.bool(keepdims)), dtype)


# -------------------------------------------------------------------------------------------------------------- extremes
def _to_extremes(g, x, out, axis):
    """g shared evenly among the elements equal to the extreme; NaN where the extreme is NaN."""
    shape = tuple(x.shape)
    chosen = x == kept(out, shape, axis)
    count = _sum(chosen, axis, True)
    share = kept(g, shape, axis) / count
    return compare.where(chosen, share, compare.where(count == 0, math.nan, 0))


def _tangent_of_extreme(tx, x, out, axis, keepdims):
    shape = tuple(x.shape)
    chosen = x == kept(out, shape, axis)
    return _sum(compare.where(chosen, tx, 0), axis, keepdims) / _sum(chosen, axis, keepdims)


def _extreme(name, function):
    return define(name, forward=function, inputs=("x",), options=("axis", "keepdims"),
                  vjp=lambda g, x, out, axis: _to_extremes(g, x, out, axis), jvp=_tangent_of_extreme, public=False)


_max = _extreme("max", forward.max)
_min = _extreme("min", forward.min)


@public(method=True)
def max(x, axis=None, keepdims=False):
    """Largest element over axes.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
        The axes to search; None for all.  A tensor here means ``maximum(x, axis)``, as in PyTorch.
    keepdims : bool, optional
        Whether these axes stay, with length 1.

    Returns
    -------
    Tensor
        The values alone (PyTorch's ``max(dim)`` returns indices, too; here `argmax` does).

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If an axis is named twice, or there is nothing to search.

    Notes
    -----
    NaN wins.  Gradient: ``g`` shared evenly among the elements that reach the maximum.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.max(cg.tensor([[1.0, 5.0], [7.0, 2.0]]), axis=1)
    tensor([5., 7.])
    """
    x = as_tensor("max", x)
    if isinstance(axis, Tensor) and (axis.ndim > 0 or axis.dtype.is_floating_point):
        return maximum(x, axis)
    return _max(x, several_axes("max", axis, x.ndim), builtins.bool(keepdims))


@public(method=True)
def min(x, axis=None, keepdims=False):
    """Smallest element over axes.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
        The axes to search; None for all.  A tensor here means ``minimum(x, axis)``, as in PyTorch.
    keepdims : bool, optional
        Whether these axes stay, with length 1.

    Returns
    -------
    Tensor
        The values alone (PyTorch's ``min(dim)`` returns indices, too; here `argmin` does).

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If an axis is named twice, or there is nothing to search.

    Notes
    -----
    NaN wins.  Gradient: ``g`` shared evenly among the elements that reach the minimum.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.min(cg.tensor([[1.0, 5.0], [7.0, 2.0]]), axis=1)
    tensor([1., 2.])
    """
    x = as_tensor("min", x)
    if isinstance(axis, Tensor) and (axis.ndim > 0 or axis.dtype.is_floating_point):
        return minimum(x, axis)
    return _min(x, several_axes("min", axis, x.ndim), builtins.bool(keepdims))


@public(method=True)
def amax(x, axis=None, keepdims=False):
    """Largest element over axes: `max` in NumPy's and PyTorch's other spelling.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
    keepdims : bool, optional
        As for `max`.

    Returns
    -------
    Tensor

    Notes
    -----
    Gradient: ``g`` shared evenly among the elements that reach the maximum.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.amax(cg.tensor([[1.0, 5.0], [7.0, 2.0]]), (0, 1))
    tensor(7.)
    """
    x = as_tensor("amax", x)
    return _max(x, several_axes("amax", axis or None if isinstance(axis, (tuple, list)) else axis, x.ndim),
                builtins.bool(keepdims))


@public(method=True)
def amin(x, axis=None, keepdims=False):
    """Smallest element over axes: `min` in NumPy's and PyTorch's other spelling.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
    keepdims : bool, optional
        As for `min`.

    Returns
    -------
    Tensor

    Notes
    -----
    Gradient: ``g`` shared evenly among the elements that reach the minimum.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.amin(cg.tensor([[1.0, 5.0], [7.0, 2.0]]), (0, 1))
    tensor(1.)
    """
    x = as_tensor("amin", x)
    return _min(x, several_axes("amin", axis or None if isinstance(axis, (tuple, list)) else axis, x.ndim),
                builtins.bool(keepdims))


_argmax = define("argmax", forward=forward.argmax, inputs=("x",), options=("axis", "keepdims"), kind=NONDIFF, public=False)
_argmin = define("argmin", forward=forward.argmin, inputs=("x",), options=("axis", "keepdims"), kind=NONDIFF, public=False)


@public(method=True)
def argmax(x, axis=None, keepdims=False):
    """Index of the largest element.

    Parameters
    ----------
    x : Tensor
    axis : int or None, optional
        The axis to search; None for the index into all elements in C order.
    keepdims : bool, optional
        Whether the searched axes stay, with length 1.

    Returns
    -------
    Tensor
        int64; the first of equals; NaN counts as largest.  No gradient.

    Raises
    ------
    IndexError
        If the axis is out of range.
    ValueError
        If there is nothing to search.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.argmax(cg.tensor([[1.0, 5.0], [7.0, 2.0]]), axis=1)
    tensor([1, 0])
    """
    x = as_tensor("argmax", x)
    axis = None if axis is None or x.ndim == 0 and one_axis("argmax", axis, 0) == 0 else one_axis("argmax", axis, x.ndim)
    return _argmax(x, axis, builtins.bool(keepdims))


@public(method=True)
def argmin(x, axis=None, keepdims=False):
    """Index of the smallest element.

    Parameters
    ----------
    x : Tensor
    axis : int or None, optional
        The axis to search; None for the index into all elements in C order.
    keepdims : bool, optional
        Whether the searched axes stay, with length 1.

    Returns
    -------
    Tensor
        int64; the first of equals; NaN counts as smallest.  No gradient.

    Raises
    ------
    IndexError
        If the axis is out of range.
    ValueError
        If there is nothing to search.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.argmin(cg.tensor([[1.0, 5.0], [7.0, 2.0]]), axis=1)
    tensor([0, 1])
    """
    x = as_tensor("argmin", x)
    axis = None if axis is None or x.ndim == 0 and one_axis("argmin", axis, 0) == 0 else one_axis("argmin", axis, x.ndim)
    return _argmin(x, axis, builtins.bool(keepdims))


# ------------------------------------------------------------------------------------------------------------------ truth
_all = define("all", forward=forward.all, inputs=("x",), options=("axis", "keepdims"), kind=NONDIFF, public=False)
_any = define("any", forward=forward.any, inputs=("x",), options=("axis", "keepdims"), kind=NONDIFF, public=False)


@public(method=True)
def all(x, axis=None, keepdims=False):
    """Whether every element is not 0.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
        The axes to look along; None for all.
    keepdims : bool, optional
        Whether these axes stay, with length 1.

    Returns
    -------
    Tensor
        bool; True for no elements.  No gradient.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.all(cg.tensor([[1, 0], [2, 3]]), axis=1)
    tensor([False,  True])
    """
    x = as_tensor("all", x)
    return _all(x, several_axes("all", axis, x.ndim), builtins.bool(keepdims))


@public(method=True)
def any(x, axis=None, keepdims=False):
    """Whether some element is not 0.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
        The axes to look along; None for all.
    keepdims : bool, optional
        Whether these axes stay, with length 1.

    Returns
    -------
    Tensor
        bool; False for no elements.  No gradient.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.any(cg.tensor([[0, 0], [2, 3]]), axis=1)
    tensor([False,  True])
    """
    x = as_tensor("any", x)
    return _any(x, several_axes("any", axis, x.ndim), builtins.bool(keepdims))
