"""Searching, sets, counts: where values belong, which there are, how often.

Places and counts carry no derivative; unique values have that of the elements they are read from, and weighted counts that of their
weights.  Next: scan.py.
"""
from cgrad.core.arguments import as_floating, as_tensor, one_axis, whole_number
from cgrad.core.forward import search as forward
from cgrad.core.tensor import Tensor
from cgrad.ops import reduction
from cgrad.ops.compare import isfinite, where
from cgrad.ops.creation import asarray, ones, ones_like, zeros
from cgrad.ops.ranges import linspace
from cgrad.ops.define import NONDIFF, define, public
from cgrad.ops.gathering import scatter, scatter_add, take_along_axis
from cgrad.ops.indexing import getitem
from cgrad.ops.masking import nonzero
from cgrad.ops.joining import concat, stack
from cgrad.ops.results import Histogram, UniqueAll, UniqueCounts, UniqueInverse
from cgrad.ops.scan import cumulative_sum
from cgrad.ops.shape import flip, moveaxis, reshape
from cgrad.ops.sorting import argsort, sort


def _beside(name, y, x):
    """`y` as a tensor; Python numbers take the dtype of the floating tensor that they meet."""
    weak = isinstance(y, (int, float, list, tuple)) and isinstance(x, Tensor) and x.dtype.is_floating_point
    return asarray(y, dtype=x.dtype) if weak else as_tensor(name, y)


# -------------------------------------------------------------------------------------------------------------- searching
def _search_batch(x, y, right, size, batched):
    if not batched[0] and x.ndim == 1:
        return _searchsorted(x, y, right)
    x, y = [z if has else z.broadcast_to((size, *z.shape)) for z, has in zip((x, y), batched)]
    if x.ndim > 2 or y.ndim == 2:
        return _searchsorted(x, y, right)
    return reshape(_searchsorted(x, reshape(y, (size, -1)), right), y.shape)        # any number of values for one row


_searchsorted = define("searchsorted", forward=forward.searchsorted, inputs=("x", "y"), options=("right",), kind=NONDIFF, batch=_search_batch,
                       public=False)


@public(method=True)
def searchsorted(x, y, *, side=None, sorter=None, right=False, out_int32=False):
    """Places at which values go into sorted rows, so that these stay sorted.

    Parameters
    ----------
    x : Tensor
        One sorted row, or sorted rows along the last axis.
    y : Tensor or number
        The values; in any shape for one row, else in the shape of `x` except along the last axis.
    side : str, optional
        ``"left"`` (the default) for the place before equal elements, ``"right"`` for that behind them.
    sorter : Tensor of int, optional
        The places of the elements of `x` in order, as `argsort` gives them, if `x` is not sorted.
    right : bool, optional
        PyTorch's older word for ``side="right"``.
    out_int32 : bool, optional
        Whether the result is int32.

    Returns
    -------
    Tensor
        int64 in the shape of `y`: how many elements are less (``"left"``), or not greater (``"right"``).  No gradient.

    Raises
    ------
    ValueError
        If the shapes do not fit, `side` is unknown, or `side` and `right` disagree.

    Notes
    -----
    NaN counts as larger than every number.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.searchsorted(cg.tensor([1, 3, 5]), cg.tensor([3, 4]))
    tensor([1, 2])
    """
    x, y = _beside("searchsorted", x, y), _beside("searchsorted", y, x)
    if side not in (None, "left", "right") or side == "left" and right:
        raise ValueError(f'searchsorted: side must be "left" or "right", got {side!r}' + (" together with right=True" if right else ""))
    if x.ndim == 0 or x.ndim > 1 and x.shape[:-1] != y.shape[:-1]:
        raise ValueError(f"searchsorted: x must be one row, or have the shape of y except along the last axis; got shapes {x.shape} and {y.shape}")
    if sorter is not None:
        sorter = as_tensor("searchsorted", sorter)
        if sorter.shape != x.shape:
            raise ValueError(f"searchsorted: sorter must have the shape of x, got {sorter.shape} and {x.shape}")
        x = take_along_axis(x.detach(), sorter)
    found = _searchsorted(x, y, right or side == "right")
    return found.astype("int32") if out_int32 else found


@public(method=True)
def bucketize(x, boundaries, *, right=False, out_int32=False):
    """The interval between sorted boundaries in which each element lies: `searchsorted` the other way round.

    Parameters
    ----------
    x : Tensor or number
    boundaries : Tensor
        One sorted row.
    right : bool, optional
        Whether an element equal to a boundary lies behind it.
    out_int32 : bool, optional
        Whether the result is int32.

    Returns
    -------
    Tensor
        int64 in the shape of `x`; 0 lies before the first boundary.  No gradient.

    Raises
    ------
    ValueError
        If the boundaries are not one row.

    Notes
    -----
    ``right`` has PyTorch's meaning, the opposite of that in NumPy's ``digitize``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.bucketize(cg.tensor([0.5, 1.0, 7.0]), cg.tensor([1.0, 2.0]))
    tensor([0, 0, 2])
    """
    boundaries = _beside("bucketize", boundaries, x)
    if boundaries.ndim != 1:
        raise ValueError(f"bucketize: boundaries must be one row, got shape {boundaries.shape}")
    return searchsorted(boundaries, x, right=right, out_int32=out_int32)


@public(method=False)
def digitize(x, bins, right=False):
    """The interval between monotonic boundaries in which each element lies, as NumPy counts them.

    Parameters
    ----------
    x : Tensor or number
    bins : Tensor
        One row that rises or falls.
    right : bool, optional
        Whether the upper boundary belongs to an interval, else the lower one does; the other way round than in `bucketize`.

    Returns
    -------
    Tensor
        int64 in the shape of `x`.  No gradient.

    Raises
    ------
    ValueError
        If the bins are not one monotonic row.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.digitize(cg.tensor([0.5, 1.0, 7.0]), cg.tensor([1.0, 2.0]))
    tensor([0, 1, 2])
    """
    bins = _beside("digitize", bins, x)
    if bins.ndim != 1:
        raise ValueError(f"digitize: bins must be one row, got shape {bins.shape}")
    rises, falls = (bins[1:] >= bins[:-1]).all(), (bins[1:] <= bins[:-1]).all()
    if not rises and not falls:
        raise ValueError("digitize: bins must rise or fall from one to the next")
    found = searchsorted(bins if rises else flip(bins), x, right=not right)
    return found if rises else bins.shape[0] - found


@public(method=False)
def flatnonzero(x):
    """Places of the elements that are not zero, in the flattened tensor.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor
        int64, 1-d.  No gradient.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.flatnonzero(cg.tensor([[0, 5], [7, 0]]))
    tensor([1, 2])
    """
    return nonzero(reshape(as_tensor("flatnonzero", x), (-1,)))[0]


# ------------------------------------------------------------------------------------------------------------------- sets
_unique_slices = define("unique", forward=forward.unique_slices, inputs=("x",), options=("along",), kind=NONDIFF, public=False)


def _isin_batch(x, y, invert, size, batched):
    if not batched[1]:
        return _isin(x, y, invert)
    x = x if batched[0] else x.broadcast_to((size, *x.shape))
    found = (reshape(x, (size, -1, 1)) == reshape(y, (size, 1, -1))).any(-1)
    return reshape(found ^ invert, x.shape)


_isin = define("isin", forward=forward.isin, inputs=("x", "y"), options=("invert",), kind=NONDIFF, batch=_isin_batch, public=False)


def _axis_or_none(name, x, axis):
    """The axis in range, or None for the flattened tensor."""
    return None if axis is None or x.ndim == 0 and one_axis(name, axis, 0) == 0 else one_axis(name, axis, x.ndim)


def _runs(x):
    """Where in a row of slices each begins that differs from the one before, and a count of these for each slice."""
    x = x.detach()
    new = x[1:] != x[:-1]
    if new.ndim > 1:
        new = new.any(tuple(range(1, new.ndim)))
    new = concat([ones(min(x.shape[0], 1), dtype="bool"), new])
    return nonzero(new)[0], new


def _lengths(first, n):
    """How long each run is."""
    return concat([first[1:], asarray([n])])[:first.shape[0]] - first


def _with_more(values, *more):
    """The values, followed by what was asked for."""
    more = [part for part, wanted in more if wanted]
    return (values, *[part() for part in more]) if more else values


@public(method=True)
def unique(x, sorted=True, return_inverse=False, return_counts=False, axis=None, *, return_index=False):
    """The different elements, or slices along an axis, in order.

    Parameters
    ----------
    x : Tensor
    sorted : bool, optional
        Accepted for PyTorch's sake; they always come in order.
    return_inverse : bool, optional
        Whether to say which one stands at each place.
    return_counts : bool, optional
        Whether to say how often each occurs.
    axis : int, optional
        Along which slices are compared; without it, the flattened tensor has its elements compared.
    return_index : bool, optional
        Whether to say where each occurs first.

    Returns
    -------
    Tensor or tuple of Tensor
        The values alone, or followed by indices, inverse and counts (int64), as far as they are asked for.

    Raises
    ------
    IndexError
        If the axis is out of range.

    See Also
    --------
    unique_all : everything, under names.

    Notes
    -----
    NaN differs from NaN.  Gradient of the values: ``g`` at the first place of each; the rest has none.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.unique(cg.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    x = as_tensor("unique", x)
    axis = _axis_or_none("unique", x, axis)
    if axis is not None:
        first, inverse, counts = _unique_slices(x, axis)
        return _with_more(getitem(x, (slice(None),) * axis + (first,)), (lambda: first, return_index), (lambda: inverse, return_inverse),
                          (lambda: counts, return_counts))
    row = reshape(x, (-1,))
    order = argsort(row) if return_index or return_inverse else None
    ordered = sort(row) if order is None else row[order]
    first, new = _runs(ordered)

    def inverse():
        return reshape(scatter(order, 0, order, cumulative_sum(new) - 1), x.shape)
    return _with_more(ordered[first], (lambda: order[first], return_index), (inverse, return_inverse),
                      (lambda: _lengths(first, row.shape[0]), return_counts))


@public(method=False)
def unique_all(x):
    """The different elements in order, with everything about them.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    values, indices, inverse_indices, counts : Tensor
        A named tuple: the elements, where each occurs first in the flattened tensor, which one stands at each place (in the shape of
        `x`), and how often each occurs.

    Notes
    -----
    NaN differs from NaN.  Gradient: that of `unique`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.unique_all(cg.tensor([3, 1, 3])).inverse_indices
    tensor([1, 0, 1])
    """
    values, indices, inverse, counts = unique(x, return_inverse=True, return_counts=True, return_index=True)
    return UniqueAll(values, indices, inverse, counts)


@public(method=False)
def unique_counts(x):
    """The different elements in order, and how often each occurs.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    values, counts : Tensor
        A named tuple.

    Notes
    -----
    NaN differs from NaN.  Gradient: that of `unique`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.unique_counts(cg.tensor([3, 1, 3])).counts
    tensor([1, 2])
    """
    return UniqueCounts(*unique(x, return_counts=True))


@public(method=False)
def unique_inverse(x):
    """The different elements in order, and which one stands at each place.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    values, inverse_indices : Tensor
        A named tuple; ``values[inverse_indices]`` is `x`.

    Notes
    -----
    NaN differs from NaN.  Gradient: that of `unique`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.unique_inverse(cg.tensor([3, 1, 3])).inverse_indices
    tensor([1, 0, 1])
    """
    return UniqueInverse(*unique(x, return_inverse=True))


@public(method=False)
def unique_values(x):
    """The different elements in order.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor
        1-d.

    Notes
    -----
    NaN differs from NaN.  Gradient: that of `unique`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.unique_values(cg.tensor([3, 1, 3]))
    tensor([1, 3])
    """
    return unique(x)


@public(method=True)
def unique_consecutive(x, return_inverse=False, return_counts=False, axis=None):
    """The elements, or slices along an axis, without those that repeat the one before.

    Parameters
    ----------
    x : Tensor
    return_inverse : bool, optional
        Whether to say which one stands at each place.
    return_counts : bool, optional
        Whether to say how often each repeats.
    axis : int, optional
        Along which slices are compared; without it, the flattened tensor has its elements compared.

    Returns
    -------
    Tensor or tuple of Tensor
        The values alone, or followed by inverse and counts (int64), as far as they are asked for.

    Raises
    ------
    IndexError
        If the axis is out of range.

    Notes
    -----
    NaN differs from NaN.  Gradient of the values: ``g`` at the first place of each run.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.unique_consecutive(cg.tensor([3, 3, 1, 3]))
    tensor([3, 1, 3])
    """
    x = as_tensor("unique_consecutive", x)
    axis = _axis_or_none("unique_consecutive", x, axis)
    slices = reshape(x, (-1,)) if axis is None else moveaxis(x, axis, 0)
    first, new = _runs(slices)
    values = slices[first] if axis is None else moveaxis(slices[first], 0, axis)
    return _with_more(values, (lambda: reshape(cumulative_sum(new) - 1, x.shape if axis is None else (-1,)), return_inverse),
                      (lambda: _lengths(first, slices.shape[0]), return_counts))


@public(method=False)
def isin(x, y, *, assume_unique=False, invert=False):
    """Whether each element is among others.

    Parameters
    ----------
    x : Tensor or number
        The elements.
    y : Tensor or number
        The others, in any shape.
    assume_unique : bool, optional
        Accepted for NumPy's and PyTorch's sake.
    invert : bool, optional
        Whether to ask for those that are not.

    Returns
    -------
    Tensor
        bool, in the shape of `x`.  No gradient.

    Notes
    -----
    NaN is among nothing.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.isin(cg.tensor([1, 2, 3]), cg.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    return _isin(_beside("isin", x, y), _beside("isin", y, x), bool(invert))


def _of_two_sets(name, function, text, result):
    def wrapped(x, y, *, assume_unique=False):
        return function(as_tensor(name, x), as_tensor(name, y))
    wrapped.__doc__ = f"""The elements {text}, each once and sorted.

    Parameters
    ----------
    x, y : Tensor
        Of any shape.
    assume_unique : bool, optional
        Accepted for NumPy's sake.

    Returns
    -------
    Tensor
        1-d.

    Notes
    -----
    Gradient: that of `unique`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.{name}(cg.tensor([3, 1]), cg.tensor([2, 3]))
    {result}
    """
    return public(wrapped, name=name, method=False)


def _first_only(x, y):
    x = unique(x)
    return x[isin(x, y, invert=True)]


def _in_both(x, y):
    x = unique(x)
    return x[isin(x, y)]


union1d = _of_two_sets("union1d", lambda x, y: unique(concat([x, y], None)), "of either tensor", "tensor([1, 2, 3])")
intersect1d = _of_two_sets("intersect1d", _in_both, "that both tensors have", "tensor([3])")
setdiff1d = _of_two_sets("setdiff1d", _first_only, "of the first tensor that the second does not have", "tensor([1])")
setxor1d = _of_two_sets("setxor1d", lambda x, y: sort(concat([_first_only(x, y), _first_only(y, x)])), "that only one of the tensors has", "tensor([1, 2])")


# ----------------------------------------------------------------------------------------------------------------- counts
_bincount = define("bincount", forward=forward.bincount, inputs=("x",), options=("length",), kind=NONDIFF, public=False)


@public(method=True)
def bincount(x, weights=None, minlength=0):
    """How often each of 0, 1, 2, ... occurs.

    Parameters
    ----------
    x : Tensor of int
        1-d, not negative.
    weights : Tensor, optional
        What each occurrence counts, in the shape of `x`.
    minlength : int, optional
        Least length of the result.

    Returns
    -------
    Tensor
        Of length ``max(x) + 1``, or `minlength` if that is more.  int64; with weights their dtype, float64 for integers.

    Raises
    ------
    TypeError
        If `x` does not hold integers.
    ValueError
        If `x` is not 1-d or has negative elements, or the weights differ in shape.

    Notes
    -----
    Gradient of the weights: ``g[x]``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.bincount(cg.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """
    x = as_tensor("bincount", x)
    if x.dtype.is_floating_point or x.dtype.kind == "bool":
        raise TypeError(f"bincount: x must hold integers, got {x.dtype.name}")
    if x.ndim != 1:
        raise ValueError(f"bincount: x must be 1-d, got shape {x.shape}")
    length = whole_number("bincount", "minlength", minlength)
    if length < 0:
        raise ValueError(f"bincount: minlength cannot be negative, got {length}")
    if x.size:
        if x.min() < 0:
            raise ValueError(f"bincount: x cannot hold negative numbers, got {x.min().item()}")
        length = max(length, x.max().item() + 1)
    if weights is None:
        return _bincount(x, length)
    weights = as_tensor("bincount", weights)
    if weights.shape != x.shape:
        raise ValueError(f"bincount: weights must have the shape of x, got {weights.shape} and {x.shape}")
    if not weights.dtype.is_floating_point:
        weights = weights.astype("float64")
    return scatter_add(zeros(length, dtype=weights.dtype), 0, x, weights)


_counts = define("histogram", forward=forward.histogram, inputs=("x", "y"), kind=NONDIFF, public=False,
                 batch=lambda x, y, size, batched: stack([_counts(x[k] if batched[0] else x, y[k] if batched[1] else y) for k in range(size)]))


def _histogram(x, edges, weights, even):
    """Weighted counts between edges; the last interval has its upper edge, too."""
    bins = edges.shape[0] - 1
    x = reshape(x.detach(), (-1,))
    if even and weights is None:
        return _counts(x, edges)
    inside = (x >= edges[0]).logical_and(x <= edges[-1])
    index = where(inside, _searchsorted(edges[1:-1], x, True), bins)           # one more bin for what lies outside
    weights = ones_like(index) if weights is None else reshape(weights, (-1,))
    return scatter_add(zeros(bins + 1, dtype=weights.dtype), 0, index, weights)[:-1]


def _equal_bins(name, x, bins, low, high):
    """Edges of `bins` intervals of one width."""
    if bins < 1:
        raise ValueError(f"{name}: needs at least one bin, got {bins}")
    if low == high:
        low, high = (low - 1, high + 1) if name == "histc" else (low - 0.5, high + 0.5)
    edges = linspace(low, high, bins + 1, dtype=x.dtype) if low < high else None
    if edges is None or not isfinite(edges).all():
        raise ValueError(f"{name}: the range must be finite and not reversed, got {low} to {high}")
    return edges


@public(method=True)
def histc(x, bins=100, min=0, max=0):
    """Counts in intervals of one width.

    Parameters
    ----------
    x : Tensor
    bins : int, optional
        How many intervals.
    min, max : number, optional
        The range; if both are 0, that of the elements.

    Returns
    -------
    Tensor
        1-d, in the dtype of `x`; elements outside of the range and NaN count nowhere.  No gradient.

    Raises
    ------
    ValueError
        If there is no bin, or the range is reversed or not finite.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.histc(cg.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    x = as_floating("histc", x).detach()
    if min == max == 0 and x.size:
        min, max = x.min().item(), x.max().item()
    edges = _equal_bins("histc", x, whole_number("histc", "bins", bins), min, max)
    return _histogram(x, edges, None, True).astype(x.dtype)


@public(method=False)
def histogram(x, bins=10, range=None, *, weights=None, density=False):
    """Counts in intervals, and their edges.

    Parameters
    ----------
    x : Tensor
    bins : int or Tensor, optional
        How many intervals of one width, or the edges in order.
    range : pair of numbers, optional
        From where to where, for a number of bins; that of the elements if left out.
    weights : Tensor, optional
        What each element counts, in the shape of `x`.
    density : bool, optional
        Whether the counts are divided by their sum and the widths, so that the integral is 1.

    Returns
    -------
    hist, bin_edges : Tensor
        A named tuple.  Each interval has its lower edge, the last one both.  The counts are int64; floating with weights or `density`.

    Raises
    ------
    ValueError
        If there is no bin, the range is reversed or not finite, the edges are not in order, or the weights differ in shape.

    Notes
    -----
    Gradient: for the weights alone.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.histogram(cg.tensor([1.0, 2.0, 1.0]), bins=2).hist
    tensor([2, 1])
    """
    x = as_floating("histogram", x)
    if weights is not None:
        weights = as_tensor("histogram", weights)
        if weights.shape != x.shape:
            raise ValueError(f"histogram: weights must have the shape of x, got {weights.shape} and {x.shape}")
    if isinstance(bins, int):
        low, high = range if range is not None else (x.detach().min().item(), x.detach().max().item()) if x.size else (0, 1)
        edges = _equal_bins("histogram", x, bins, low, high)
    else:
        edges = as_floating("histogram", bins)
        if edges.ndim != 1 or edges.shape[0] < 2 or (edges[1:] < edges[:-1]).any():
            raise ValueError(f"histogram: the edges must be at least two numbers in order, got shape {edges.shape}")
    counts = _histogram(x, edges, weights, isinstance(bins, int))
    if density:
        counts = counts.astype(x.dtype)
        counts = counts / reduction.sum(counts) / (edges[1:] - edges[:-1])
    return Histogram(counts, edges)
