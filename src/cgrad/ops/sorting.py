"""Sorting, the k largest, medians, quantiles: what the order of the elements along an axis tells.

An order is piecewise constant, so the places of the elements carry no derivative (core/forward/order.py finds them), and the values are
gathered at these places: all derivatives are those of `gather`.  NaN is larger than every number.  Next: searching.py.
"""
import math

from cgrad.core import batching
from cgrad.core.arguments import as_floating, as_tensor, cast, kept_shape, one_axis, several_axes, whole_number
from cgrad.core.forward import order as forward
from cgrad.core.tensor import Tensor
from cgrad.ops.arithmetic import maximum
from cgrad.ops.compare import isinf, isnan, where
from cgrad.ops.creation import asarray
from cgrad.ops.define import NONDIFF, define, public
from cgrad.ops.elementwise import ceil, floor, round
from cgrad.ops.gathering import _gather, _gather_adjoint
from cgrad.ops.reduction import max, min, sum
from cgrad.ops.results import Extremes, Selection
from cgrad.ops.shape import moveaxis, permute_dims, reshape

# ---------------------------------------------------------------------------------------------------------------- sorting
_argsort = define("argsort", forward=forward.argsort, inputs=("x",), options=("axis", "descending", "stable"), kind=NONDIFF, public=False)
_sort = define(
    "sort", forward=forward.sort, inputs=("x",), options=("axis", "descending"),
    vjp=lambda g, x, axis, descending, shape_x: _gather_adjoint(g, _argsort(x, axis, descending, True), axis, shape_x),
    jvp=lambda tx, x, axis, descending: _gather(tx, _argsort(x, axis, descending, True), axis), public=False)


def _along(name, x, axis):
    """A tensor with at least one axis, and the axis in range."""
    x = as_tensor(name, x)
    axis = one_axis(name, axis, x.ndim)
    return x if x.ndim else reshape(x, (1,)), axis


@public(method=True)
def sort(x, axis=-1, descending=False, stable=True):
    """The elements in order along an axis.

    Parameters
    ----------
    x : Tensor
    axis : int, optional
        The axis to sort along.
    descending : bool, optional
        Whether the largest comes first.
    stable : bool, optional
        Accepted for `argsort`'s sake: equal values look the same in any order.

    Returns
    -------
    Tensor
        The values alone, in shape and dtype of `x`.  PyTorch's ``values, indices = sort(x)`` is ``topk(x, x.shape[-1], largest=False)``,
        or ``indices = argsort(x)`` and ``take_along_axis(x, indices)``.

    Raises
    ------
    IndexError
        If the axis is out of range.

    Notes
    -----
    NaN counts as larger than every number: it comes last, and first if descending.  Gradient: ``g`` at the places that the elements come
    from; equal elements count in the order in which they stand in `x`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.sort(cg.tensor([3.0, 1.0, 2.0]))
    tensor([1., 2., 3.])
    """
    x = as_tensor("sort", x)
    if x.ndim == 0:
        one_axis("sort", axis, 0)
        return +x
    return _sort(x, one_axis("sort", axis, x.ndim), bool(descending))


@public(method=True)
def argsort(x, axis=-1, descending=False, stable=True):
    """Places of the elements in order along an axis.

    Parameters
    ----------
    x : Tensor
    axis : int, optional
        The axis to sort along.
    descending : bool, optional
        Whether the largest comes first.
    stable : bool, optional
        Whether equal elements keep their order; without it sorting may be faster.

    Returns
    -------
    Tensor
        int64, in the shape of `x`: ``take_along_axis(x, argsort(x))`` is sorted.  No gradient.

    Raises
    ------
    IndexError
        If the axis is out of range.

    Notes
    -----
    NaN counts as larger than every number.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.argsort(cg.tensor([3.0, 1.0, 2.0]))
    tensor([1, 2, 0])
    """
    shape = as_tensor("argsort", x).shape
    x, axis = _along("argsort", x, axis)
    index = _argsort(x, axis, bool(descending), bool(stable))
    return index if shape else reshape(index, ())


@public(method=True)
def msort(x):
    """The elements in order along the first axis: ``sort(x, axis=0)``.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor

    Notes
    -----
    Gradient: that of `sort`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.msort(cg.tensor([[3, 1], [2, 4]]))
    tensor([[2, 1],
            [3, 4]])
    """
    return sort(x, 0)


# ------------------------------------------------------------------------------------------------------ elements by rank
_top = define("topk", forward=forward.top, inputs=("x",), options=("k", "axis", "largest", "ordered"), kind=NONDIFF, public=False)
_kth = define("kthvalue", forward=forward.kth, inputs=("x",), options=("k", "axis"), kind=NONDIFF, public=False)
_mode = define("mode", forward=forward.mode, inputs=("x",), options=("axis",), kind=NONDIFF, public=False)
_median = define("median", forward=forward.median, inputs=("x",), options=("axis",), kind=NONDIFF, public=False)
_nanmedian = define("nanmedian", forward=forward.nanmedian, inputs=("x",), options=("axis",), kind=NONDIFF, public=False)


def _chosen(name, x, axis, keepdims, places):
    """The elements at the places that are found along one axis, and the places."""
    shape = as_tensor(name, x).shape
    x, axis = _along(name, x, axis)
    if not x.shape[axis]:
        raise ValueError(f"{name}: there is no element to choose from along axis {axis} of shape {shape}")
    index = places(x, axis)
    values = _gather(x, index, axis)
    shape = kept_shape(shape, (axis,)) if keepdims else shape[:axis] + shape[axis + 1:]
    return Selection(reshape(values, shape), reshape(index, shape))


@public(method=True)
def topk(x, k, axis=-1, largest=True, sorted=True):
    """The k largest or smallest elements along an axis, and their places.

    Parameters
    ----------
    x : Tensor
    k : int
        How many.
    axis : int, optional
        The axis to search.
    largest : bool, optional
        Whether the largest are wanted, else the smallest.
    sorted : bool, optional
        Whether the best comes first; else they come in any order.

    Returns
    -------
    values, indices : Tensor
        A named tuple; both have length `k` along the axis.  The indices are int64.

    Raises
    ------
    IndexError
        If the axis is out of range.
    ValueError
        If `k` is negative or larger than the length of the axis.

    Notes
    -----
    NaN counts as larger than every number.  Gradient: ``g`` at the places of the chosen elements.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.topk(cg.tensor([3.0, 1.0, 2.0]), 2).values
    tensor([3., 2.])
    """
    shape = as_tensor("topk", x).shape
    x, axis = _along("topk", x, axis)
    k = whole_number("topk", "k", k)
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(f"topk: k must be between 0 and {x.shape[axis]}, the length of axis {axis} of shape {shape}, got {k}")
    index = _top(x, k, axis, bool(largest), bool(sorted))
    values = _gather(x, index, axis)
    return Selection(values, index) if shape or not k else Selection(reshape(values, ()), reshape(index, ()))


@public(method=True)
def kthvalue(x, k, axis=-1, keepdims=False):
    """The k-th smallest element along an axis, and its place.

    Parameters
    ----------
    x : Tensor
    k : int
        1 for the smallest.
    axis : int, optional
        The axis to search.
    keepdims : bool, optional
        Whether the axis stays, with length 1.

    Returns
    -------
    values, indices : Tensor
        A named tuple.  The indices are int64.

    Raises
    ------
    IndexError
        If the axis is out of range.
    ValueError
        If `k` is not between 1 and the length of the axis.

    Notes
    -----
    NaN counts as larger than every number.  Gradient: ``g`` at the place of the chosen element.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.kthvalue(cg.tensor([3.0, 1.0, 2.0]), 2).values
    tensor(2.)
    """
    k = whole_number("kthvalue", "k", k)

    def places(x, axis):
        if not 1 <= k <= x.shape[axis]:
            raise ValueError(f"kthvalue: k must be between 1 and {x.shape[axis]}, the length of axis {axis} of shape {x.shape}, got {k}")
        return _kth(x, k - 1, axis)
    return _chosen("kthvalue", x, axis, keepdims, places)


@public(method=True)
def mode(x, axis=-1, keepdims=False):
    """The most frequent element along an axis, and its last place.

    Parameters
    ----------
    x : Tensor
    axis : int, optional
        The axis to search.
    keepdims : bool, optional
        Whether the axis stays, with length 1.

    Returns
    -------
    values, indices : Tensor
        A named tuple; the smallest of those that are equally frequent.  The indices are int64.

    Raises
    ------
    IndexError
        If the axis is out of range.
    ValueError
        If there is nothing to search.

    Notes
    -----
    NaN differs from NaN.  Gradient: ``g`` at that place.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.mode(cg.tensor([2, 3, 3, 1])).values
    tensor(3)
    """
    return _chosen("mode", x, axis, keepdims, _mode)


@public(method=True)
def aminmax(x, axis=None, keepdims=False):
    """Smallest and largest element over axes.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
        The axes to search; None for all.
    keepdims : bool, optional
        Whether these axes stay, with length 1.

    Returns
    -------
    min, max : Tensor
        A named tuple.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If there is nothing to search.

    Notes
    -----
    NaN wins.  Gradient: those of `min` and `max`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.aminmax(cg.tensor([3.0, 1.0, 2.0]))
    Extremes(min=tensor(1.), max=tensor(3.))
    """
    return Extremes(min(x, axis, keepdims), max(x, axis, keepdims))


# ----------------------------------------------------------------------------------------------------------- order statistics
def _rows(name, x, axis):
    """The axes to search as one last axis, and a function that gives what was found for each row the shape of the result."""
    axes = several_axes(name, axis, x.ndim)
    axes = tuple(range(x.ndim)) if axes is None else axes
    others = tuple([k for k in range(x.ndim) if k not in axes])
    outer, n = tuple([x.shape[k] for k in others]), math.prod([x.shape[k] for k in axes])
    if not n:
        raise ValueError(f"{name}: there is no element to choose from; got shape {x.shape} and axes {axes}")
    rows = reshape(x if axes == tuple(range(x.ndim)) else permute_dims(x, others + axes), (*outer, n))

    def result(found, keepdims, lead=()):
        return reshape(found, lead + (kept_shape(x.shape, axes) if keepdims else outer))
    return rows, result


def _middle(name, place, x, axis, keepdims):
    rows, result = _rows(name, as_tensor(name, x), axis)
    return result(_gather(rows, place(rows, rows.ndim - 1), rows.ndim - 1), keepdims)


@public(method=True)
def median(x, axis=None, keepdims=False):
    """The element in the middle of the order over axes, the lower one of two.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
        The axes to search; None for all.
    keepdims : bool, optional
        Whether these axes stay, with length 1.

    Returns
    -------
    Tensor
        The values alone (PyTorch's ``median(dim)`` returns indices, too; here `kthvalue` does).

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If there is nothing to search.

    See Also
    --------
    quantile : ``quantile(x, 0.5)`` is the mean of the two in the middle, which NumPy calls median.

    Notes
    -----
    NaN wins.  Gradient: ``g`` at the place of the element that was picked.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.median(cg.tensor([4.0, 1.0, 3.0, 2.0]))
    tensor(2.)
    """
    return _middle("median", _median, x, axis, keepdims)


@public(method=True)
def nanmedian(x, axis=None, keepdims=False):
    """The element in the middle of the order over axes, of what is not NaN.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
    keepdims : bool, optional
        As for `median`.

    Returns
    -------
    Tensor
        NaN where everything is NaN.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If there is nothing to search.

    Notes
    -----
    Gradient: ``g`` at the place of the element that was picked.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nanmedian(cg.tensor([3.0, float("nan"), 1.0, 2.0]))
    tensor(2.)
    """
    return _middle("nanmedian", _nanmedian, x, axis, keepdims)


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(name, x, q, axis, keepdims, interpolation, skip):
    """Quantiles at ranks ``q * (n - 1)``; `skip` says that NaN does not count, else it wins."""
    if interpolation not in _INTERPOLATIONS:
        raise ValueError(f"{name}: interpolation must be one of {', '.join(_INTERPOLATIONS)}, got {interpolation!r}")
    x = as_floating(name, x)
    q = cast(q, "float64") if isinstance(q, Tensor) else asarray(q, dtype="float64")
    fractions = batching.all_examples(q)
    if not (fractions >= 0).logical_and(fractions <= 1).all():
        raise ValueError(f"{name}: q must lie between 0 and 1, got {fractions.detach().tolist()}")
    rows, result = _rows(name, x, axis)
    axis, n = rows.ndim - 1, rows.shape[-1]
    missing = sum(isnan(rows), axis, keepdims=True)
    last = maximum(n - 1 - missing, 0) if skip else n - 1
    rank = reshape(q, (-1,)) * last
    if not skip:
        rank = where(missing > 0, n - 1, rank)
    if interpolation == "nearest":
        rank = round(rank)
    lower = floor(rank).detach()
    below, above = lower.astype("int64"), ceil(rank).detach().astype("int64")
    ordered = _sort(rows, axis, False)
    shape = (*rows.shape[:-1], q.size)

    def at(index):
        return _gather(ordered, index.broadcast_to(shape), axis)
    if interpolation in ("lower", "nearest"):
        out = at(below)
    elif interpolation == "higher":
        out = at(above)
    else:
        low, high = at(below), at(above)
        if interpolation == "midpoint":
            out = (low + high) / 2
        else:              # from an infinity on there is no way to go part of
            out = where(isinf(low), low + high, low + (high - low) * (rank - lower).astype(x.dtype))
    return result(moveaxis(out, -1, 0), keepdims, tuple(q.shape))


@public(method=True)
def quantile(x, q, axis=None, keepdims=False, *, interpolation="linear"):
    """The number below which a fraction of the elements lie, over axes.

    Parameters
    ----------
    x : Tensor
    q : float or Tensor
        Fractions between 0 and 1, in any shape.
    axis : int, tuple of int or None, optional
        The axes to search; None for all.
    keepdims : bool, optional
        Whether these axes stay, with length 1.
    interpolation : str, optional
        What is taken where the rank ``q * (n - 1)`` lies between two elements: ``"linear"``, ``"lower"``, ``"higher"``, ``"midpoint"`` or
        ``"nearest"`` (the even one of two that are as near).

    Returns
    -------
    Tensor
        The axes of `q` come first.  Integers give the default float.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If `q` leaves [0, 1], the interpolation is unknown, or there is nothing to search.

    Notes
    -----
    NaN wins.  Gradient: ``g`` at the places of the two elements, shared as they are weighted; linear interpolation has one for `q`, too.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.quantile(cg.tensor([4.0, 1.0, 3.0, 2.0]), 0.5)
    tensor(2.5000)
    """
    return _quantile("quantile", x, q, axis, keepdims, interpolation, False)


@public(method=True)
def nanquantile(x, q, axis=None, keepdims=False, *, interpolation="linear"):
    """The number below which a fraction of the elements lie, of those that are not NaN.

    Parameters
    ----------
    x : Tensor
    q : float or Tensor
    axis : int, tuple of int or None, optional
    keepdims : bool, optional
    interpolation : str, optional
        As for `quantile`.

    Returns
    -------
    Tensor
        NaN where everything is NaN.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If `q` leaves [0, 1], the interpolation is unknown, or there is nothing to search.

    Notes
    -----
    Gradient: that of `quantile`, and 0 at NaN.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nanquantile(cg.tensor([3.0, float("nan"), 1.0]), 0.5)
    tensor(2.)
    """
    return _quantile("nanquantile", x, q, axis, keepdims, interpolation, True)
