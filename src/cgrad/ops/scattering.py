"""Scattering that joins what meets at one place, and copies with a part written anew.

Sums and means are made of `scatter_add`; products and extremes have a kernel of their own.  The slope of a product is that of the other
factors, by running products over the elements sorted by place, so zeros do no harm at any order.  Next: statistics.py.
"""
from cgrad.core import batching
from cgrad.core.arguments import as_tensor, one_axis
from cgrad.core.forward import gather as forward
from cgrad.core.forward.index import value_for
from cgrad.ops.compare import isnan, where
from cgrad.ops.creation import full_like, ones_like, zeros
from cgrad.ops.ranges import arange
from cgrad.ops.define import define, in_place, joint, public
from cgrad.ops.gathering import _gather, _scatter, _scatter_add, _scatter_clear, scattered
from cgrad.ops.indexing import _key, index_put
from cgrad.ops.masking import bool_mask, common_shape
from cgrad.ops.joining import concat
from cgrad.ops.scan import _recurrence, cumulative_sum
from cgrad.ops.shape import flip, reshape
from cgrad.ops.sorting import argsort


# -------------------------------------------------------------------------------------------------------------- products
def _others(x, src, index, axis):
    """For each element of `x` and of `src`, the product of all others that meet at its place."""
    place = reshape(arange(x.size), x.shape)
    place = concat([reshape(place, (-1,)), reshape(_gather(place, index, axis), (-1,))])
    order = argsort(place, 0)
    place, factors = _gather(place, order, 0), _gather(concat([reshape(x, (-1,)), reshape(src, (-1,))]), order, 0)
    before = _running_product(place, factors)
    after = flip(_running_product(flip(place), flip(factors)))
    found = _gather(before * after, argsort(order, 0), 0)
    return reshape(found[:x.size], x.shape), reshape(found[x.size:], src.shape)


def _running_product(place, factors):
    """The product of what comes before each element and has the same place."""
    same = concat([place[:1] < 0, place[1:] == place[:-1]])
    earlier = concat([ones_like(factors[:1]), factors[:-1]])
    return _recurrence(where(same, 0, ones_like(factors)), where(same, earlier, 0), 0, False)


# -------------------------------------------------------------------------------------------------------------- extremes
def _shared(g, x, src, index, axis, out):
    """g shared evenly among the elements that reach the extreme of their place: for `x` and for `src`."""
    def reach(y, extreme):
        return (y == extreme).logical_or(isnan(y).logical_and(isnan(extreme)))
    mine, theirs = reach(x, out), reach(src, _gather(out, index, axis))
    share = g / _scatter_add(mine.astype(g.dtype), theirs.astype(g.dtype), index, axis)
    return where(mine, share, 0), where(theirs, _gather(share, index, axis), 0)


def _gradients(g, x, src, index, axis, fold, out):
    if fold != "prod":
        return *_shared(g, x, src, index, axis, out), None
    of_x, of_src = _others(x, src, index, axis)
    return g * of_x, _gather(g, index, axis) * of_src, None


_scatter_fold = define("scatter_reduce", forward=forward.scatter_fold, inputs=("x", "src", "index"), options=("axis", "fold"),
                       vjp=joint(_gradients), public=False)


def _identity(fold, dtype):
    """What changes nothing in a product or an extreme."""
    if fold == "prod":
        return 1
    if dtype.is_floating_point:
        return float("-inf" if fold == "amax" else "inf")
    return fold == "amin" if dtype.kind == "bool" else dtype.limits[fold == "amin"]


_FOLDS = ("sum", "prod", "mean", "amax", "amin")


def _fold(name, x, axis, index, src, fold, include_self):
    if fold not in _FOLDS:
        raise ValueError(f"{name}: reduce must be one of {', '.join(_FOLDS)}, got {fold!r}")

    def folded(x, src, index, axis):
        if src.ndim == index.ndim and src.shape != index.shape and all(n >= m for n, m in zip(src.shape, index.shape)):
            src = src[tuple([slice(n) for n in index.shape])]          # a larger src is used in part
        if fold in ("sum", "mean"):
            out = _scatter_add(x if include_self else _scatter_clear(x, index, axis), src, index, axis)
            if fold == "sum":
                return out
            ones = ones_like(x).detach()
            count = _scatter_add(ones if include_self else _scatter_clear(ones, index, axis), ones_like(src).detach(), index, axis)
            return out / count if x.dtype.is_floating_point else out // count
        if not include_self:
            x = _scatter(x, full_like(src, _identity(fold, x.dtype), dtype=x.dtype), index, axis)
        return _scatter_fold(x, src, index, axis, fold)
    return scattered(name, folded, x, axis, index, src)


@public(method=True)
def scatter_reduce(x, axis, index, src, reduce, *, include_self=True):
    """A copy of a tensor with elements of another joined in along one axis.

    Parameters
    ----------
    x : Tensor
    axis : int
    index : Tensor of int
        As many axes as `x`, and not larger than `src`.
    src : Tensor or number
        What is joined in.
    reduce : str
        How: ``"sum"``, ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``.
    include_self : bool, optional
        Whether the elements of `x` count at places that are written.

    Returns
    -------
    Tensor
        ``out[i][index[i][j]]`` joined with ``src[i][j]`` for axis 1; shape and dtype of `x`.  The mean of integers is rounded down.

    Raises
    ------
    IndexError
        An index is out of range.
    ValueError
        The shapes do not fit, or `reduce` is unknown.

    Notes
    -----
    Gradient of a product: ``g`` times the other factors, exact with zeros, too.  Equal extremes share ``g`` evenly.  NaN wins.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.scatter_reduce(cg.ones(3), 0, cg.tensor([0, 2, 2]), cg.tensor([5.0, 2.0, 3.0]), "prod")
    tensor([5., 1., 6.])
    """
    return _fold("scatter_reduce", x, axis, index, src, reduce, include_self)


@public(method=True)
def index_reduce(x, axis, index, source, reduce, *, include_self=True):
    """A copy of a tensor with slices of another joined in along one axis.

    Parameters
    ----------
    x : Tensor
    axis : int
    index : Tensor of int
        1-d; may repeat.
    source : Tensor
        As many slices as indices, else in the shape of `x`.
    reduce : str
        How: ``"sum"``, ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``.
    include_self : bool, optional
        Whether the slices of `x` count where others are joined in.

    Returns
    -------
    Tensor
        Shape and dtype of `x`.

    Raises
    ------
    IndexError
        An index is out of range.
    ValueError
        The shapes do not fit, or `reduce` is unknown.

    Notes
    -----
    Gradient: that of `scatter_reduce`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.index_reduce(cg.zeros(3), 0, cg.tensor([0, 2, 2]), cg.tensor([5.0, 2.0, 3.0]), "amax")
    tensor([5., 0., 3.])
    """
    x, index, source = [as_tensor("index_reduce", y) for y in (x, index, source)]
    at = one_axis("index_reduce", axis, x.ndim)
    if index.ndim > 1 or source.ndim and (source.ndim != max(x.ndim, 1) or source.shape[at] != index.size):
        raise ValueError(f"index_reduce: needs a vector of indices and as many slices along axis {at}, got index of shape {index.shape} and "
                         f"source of shape {source.shape}")
    if source.ndim:
        index = reshape(index, (-1,) + (1,) * (source.ndim - 1 - at)).broadcast_to(source.shape)
    return _fold("index_reduce", x, at, index, source, reduce, include_self)


# ------------------------------------------------------------------------------------------------- a part written anew
@public(method=True)
def put(x, indices, source, accumulate=False):
    """A copy of a tensor with other numbers at some places, counted in the flattened tensor.

    Parameters
    ----------
    x : Tensor
    indices : Tensor of int
    source : Tensor
        As many numbers as indices.
    accumulate : bool, optional
        Whether they are added to what is there; every repetition of an index counts.

    Returns
    -------
    Tensor
        Shape and dtype of `x`.

    Raises
    ------
    IndexError
        An index is out of range.
    ValueError
        The numbers are not as many as the indices.

    Notes
    -----
    Gradient: that of `index_put`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.put(cg.zeros(2, 2), cg.tensor([1, 2]), cg.tensor([5.0, 7.0]))
    tensor([[0., 5.],
            [7., 0.]])
    """
    x, indices, source = [as_tensor("put", y) for y in (x, indices, source)]
    if indices.size != source.size:
        raise ValueError(f"put: needs as many numbers as indices, got shapes {source.shape} and {indices.shape}")
    return reshape(index_put(reshape(x, (-1,)), reshape(indices, (-1,)), reshape(source, (-1,)), accumulate), x.shape)


@public(method=True)
def masked_scatter(x, mask, source):
    """A copy of a tensor with the elements of another, one after the other, where a mask is true.

    Parameters
    ----------
    x : Tensor
    mask : Tensor of bool
        Broadcasts with `x`.
    source : Tensor
        At least as many elements as the mask is true.

    Returns
    -------
    Tensor
        The broadcast shape, dtype of `x`.

    Raises
    ------
    TypeError
        The mask is not of bools, or the kind of `source` does not fit `x`.
    ValueError
        The shapes do not broadcast, or `source` has too few elements.

    Notes
    -----
    Gradient: ``g`` where the mask is false, for `x`; where it is true, for the elements of `source` that were taken.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.masked_scatter(cg.zeros(3), cg.tensor([True, False, True]), cg.tensor([5.0, 7.0]))
    tensor([5., 0., 7.])
    """
    x, mask = as_tensor("masked_scatter", x), bool_mask("masked_scatter", mask)
    source = reshape(value_for(x, source, "masked_scatter"), (-1,)).astype(x.dtype)
    shape = common_shape("masked_scatter", x, mask)
    mask = mask.broadcast_to(shape)
    place = reshape(cumulative_sum(reshape(mask, (-1,))), shape)
    if place.size and batching.all_examples(place).max() > source.size:
        raise ValueError(f"masked_scatter: the mask is true at {batching.all_examples(place).max().item()} places, but source has {source.size} elements")
    if not source.size:
        source = concat([source, zeros((1,), dtype=source.dtype)])        # read nowhere; what it was made of stays in the graph
    return where(mask, source[where(mask, place - 1, 0)], x)


@public(method=True)
def select_scatter(x, src, axis, index):
    """A copy of a tensor with one slice along an axis written anew.

    Parameters
    ----------
    x : Tensor
    src : Tensor
        In the shape of ``select(x, axis, index)``.
    axis : int
    index : int

    Returns
    -------
    Tensor
        Shape and dtype of `x`.

    Raises
    ------
    IndexError
        The axis or the index is out of range.
    ValueError
        The shapes differ.

    Notes
    -----
    Gradient: that of `index_put`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.select_scatter(cg.zeros(2, 2), cg.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    x, src = as_tensor("select_scatter", x), as_tensor("select_scatter", src)
    return _written("select_scatter", x, src, _key(one_axis("select_scatter", axis, x.ndim), index))


@public(method=True)
def slice_scatter(x, src, axis=0, start=None, end=None, step=1):
    """A copy of a tensor with a stretch along an axis written anew.

    Parameters
    ----------
    x : Tensor
    src : Tensor
        In the shape of ``x[start:end:step]`` along the axis.
    axis : int, optional
    start, end, step : int, optional
        As in a slice.

    Returns
    -------
    Tensor
        Shape and dtype of `x`.

    Raises
    ------
    IndexError
        The axis is out of range.
    ValueError
        The shapes differ.

    Notes
    -----
    Gradient: that of `index_put`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.slice_scatter(cg.zeros(4), cg.ones(2), start=1, end=3)
    tensor([0., 1., 1., 0.])
    """
    x, src = as_tensor("slice_scatter", x), as_tensor("slice_scatter", src)
    return _written("slice_scatter", x, src, _key(one_axis("slice_scatter", axis, x.ndim), slice(start, end, step)))


def _written(name, x, src, key):
    shape = x[key].shape
    if src.shape != shape:
        raise ValueError(f"{name}: src must have the shape {shape} of the part that it replaces, got {src.shape}")
    return index_put(x, key, src)


for _function in (scatter_reduce, index_reduce, put, masked_scatter):
    in_place(_function)
