"""Running sums, products and extremes along an axis, differences, and integrals.

The slope of a running product is a linear recurrence, never a quotient, so that zeros do no harm; and the slope of a recurrence
is a recurrence, so any order of derivative nests.  Next: matmul.py.
"""
from cgrad.core.forward import running
from cgrad.core.forward import scan as forward
from cgrad.core.arguments import as_floating, as_tensor, cast, one_axis, whole_number
from cgrad.ops.compare import isinf, where
from cgrad.ops.creation import ones_like, zeros, zeros_like
from cgrad.ops.define import LINEAR, define, public
from cgrad.ops.elementwise import exp
from cgrad.ops.gathering import _gather, _scatter_add
from cgrad.ops.joining import concat
from cgrad.ops.results import Selection
from cgrad.ops.shape import reshape


def _part(x, axis, start, stop):
    """x[..., start:stop, ...] along an axis."""
    return x[(slice(None),) * axis + (slice(start, stop),)]


def _before(x, axis, reverse, first):
    """For each element the one that a scan meets before it; `first` makes that of the first one (zeros or ones)."""
    if reverse:
        return concat([_part(x, axis, 1, None), first(_part(x, axis, 0, 1))], axis)
    return concat([first(_part(x, axis, 0, 1)), _part(x, axis, 0, -1)], axis)


# --------------------------------------------------------------------------------------------------------------- recurrence
# out[i] = x[i] + y[i] * out[i - 1].  Its slope in x[i] is s[i] = g[i] + y[i + 1] * s[i + 1], a recurrence from the other end;
# that in y[i] is s[i] * out[i - 1].
def _recurrence_x(g, y, axis, reverse):
    return _recurrence(g, _before(y, axis, not reverse, zeros_like), axis, not reverse)


def _recurrence_y(g, y, out, axis, reverse):
    return _recurrence_x(g, y, axis, reverse) * _before(out, axis, reverse, zeros_like)


_recurrence = define("recurrence", forward=forward.recurrence, inputs=("x", "y"), options=("axis", "reverse"),
                     vjp=(_recurrence_x, _recurrence_y), public=False)

# --------------------------------------------------------------------------------------------------------- sums and products
_cumulative_sum = define(
    "cumulative_sum", forward=forward.cumulative_sum, inputs=("x",), options=("axis", "reverse"),
    vjp=lambda g, axis, reverse: _cumulative_sum(g, axis, not reverse), kind=LINEAR, public=False)

# out[i] = x[i] * out[i - 1]: the slope in x[i] is r[i] * out[i - 1] with r[i] = g[i] + x[i + 1] * r[i + 1].
_cumulative_prod = define(
    "cumulative_prod", forward=forward.cumulative_prod, inputs=("x",), options=("axis",),
    vjp=lambda g, x, out, axis: _recurrence_x(g, x, axis, False) * _before(out, axis, False, ones_like), public=False)


def _running_sum(x, axis):
    return _cumulative_sum(x, axis, False)


def _scan(name, function, x, axis, dtype, include_initial, first):
    x = cast(as_tensor(name, x), dtype)
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"{name}: name the axis; only for 1-d tensors it may be left out, got shape {tuple(x.shape)}")
        axis = 0
    at = one_axis(name, axis, x.ndim)
    if x.ndim == 0:
        out = cast(function(x.reshape(1), 0), dtype)
        return concat([first(out), out], 0) if include_initial else out.reshape(())
    out = cast(function(x, at), dtype)
    if include_initial:
        shape = tuple([1 if i == at else n for i, n in enumerate(x.shape)])
        out = concat([first(zeros(shape, dtype=out.dtype)), out], at)
    return out


@public(method=True)
def cumulative_sum(x, axis=None, dtype=None, include_initial=False):
    """Running sum along an axis.

    Parameters
    ----------
    x : Tensor
    axis : int, optional
        The axis to run along; may be left out for 1-d tensors.
    dtype : dtype, optional
        What to cast `x` to first; the dtype of the result.
    include_initial : bool, optional
        Whether the result starts with a 0, and so is longer by one.

    Returns
    -------
    Tensor
        Without `dtype` int64 for bools and integers, else the dtype of `x`.

    Raises
    ------
    IndexError
        If the axis is out of range.
    ValueError
        If no axis is named and there are several.

    Notes
    -----
    Gradient: the running sum of ``g`` from the end.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.cumsum(cg.tensor([1.0, 2.0, 3.0]))
    tensor([1., 3., 6.])
    """
    return _scan("cumulative_sum", _running_sum, x, axis, dtype, include_initial, zeros_like)


@public(method=True)
def cumulative_prod(x, axis=None, dtype=None, include_initial=False):
    """Running product along an axis.

    Parameters
    ----------
    x : Tensor
    axis : int, optional
        The axis to run along; may be left out for 1-d tensors.
    dtype : dtype, optional
        What to cast `x` to first; the dtype of the result.
    include_initial : bool, optional
        Whether the result starts with a 1, and so is longer by one.

    Returns
    -------
    Tensor
        Without `dtype` int64 for bools and integers, else the dtype of `x`.

    Raises
    ------
    IndexError
        If the axis is out of range.
    ValueError
        If no axis is named and there are several.

    Notes
    -----
    Gradient: exact with zeros, too, by a recurrence from the end instead of a division.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.cumprod(cg.tensor([1.0, 2.0, 3.0]))
    tensor([1., 2., 6.])
    """
    return _scan("cumulative_prod", _cumulative_prod, x, axis, dtype, include_initial, ones_like)


@public(method=True)
def diff(x, n=1, axis=-1, prepend=None, append=None):
    """Differences of neighbours along an axis.

    Parameters
    ----------
    x : Tensor
        At least 1-d.
    n : int, optional
        How often differences are taken.
    axis : int, optional
        The axis to run along.
    prepend, append : Tensor, optional
        What to put before and after `x` along the axis first.

    Returns
    -------
    Tensor
        Shorter by `n` along the axis (but not below 0); bools give bools (whether neighbours differ).

    Raises
    ------
    IndexError
        If the axis is out of range.
    ValueError
        If `n` is negative or `x` is 0-d.

    Notes
    -----
    Gradient: that of the subtractions.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.diff(cg.tensor([1.0, 4.0, 9.0]))
    tensor([3., 5.])
    """
    x = as_tensor("diff", x)
    if x.ndim == 0:
        raise ValueError("diff: needs at least one axis, got a 0-d tensor")
    if whole_number("diff", "n", n) < 0:
        raise ValueError(f"diff: n cannot be negative, got {n}")
    at = one_axis("diff", axis, x.ndim)
    if n == 0:
        return +x
    ends = [as_tensor("diff", y) for y in (prepend, append) if y is not None]
    if ends:
        x = concat([*ends[:prepend is not None], x, *ends[prepend is not None:]], at)
    for _ in range(min(n, x.shape[at])):
        later, earlier = _part(x, at, 1, None), _part(x, at, 0, -1)
        x = later ^ earlier if x.dtype == "bool" else later - earlier
    return x


def _slopes(x, places, axis, edge_order):
    """The derivative along an axis: of parabolas through three neighbours; at the ends of lines, or of the parabolas nearest."""
    n = x.shape[axis]

    def part(start, stop):
        return _part(x, axis, start, stop)

    if isinstance(places, (int, float)) or places.ndim == 0:
        inner, first, last = (part(2, None) - part(0, -2)) / (2 * places), (part(1, 2) - part(0, 1)) / places, (part(-1, None) - part(-2, -1)) / places
        if edge_order == 2:
            first = (4 * part(1, 2) - 3 * part(0, 1) - part(2, 3)) / (2 * places)
            last = (3 * part(-1, None) - 4 * part(-2, -1) + part(-3, -2)) / (2 * places)
        return concat([first, inner, last], axis)
    steps = reshape(diff(places), (-1,) + (1,) * (x.ndim - 1 - axis))
    lines = diff(x, axis=axis) / steps
    before, after = _part(lines, axis, 0, -1), _part(lines, axis, 1, None)
    if n == 2:
        return concat([lines, lines], axis)
    a, b = steps[:-1], steps[1:]
    inner = (before * b + after * a) / (a + b)
    if edge_order == 1:
        return concat([_part(lines, axis, 0, 1), inner, _part(lines, axis, -1, None)], axis)
    first = (_part(before, axis, 0, 1) * (2 * a[:1] + b[:1]) - _part(after, axis, 0, 1) * a[:1]) / (a[:1] + b[:1])
    last = (_part(after, axis, -1, None) * (2 * b[-1:] + a[-1:]) - _part(before, axis, -1, None) * b[-1:]) / (a[-1:] + b[-1:])
    return concat([first, inner, last], axis)


@public(method=False)
def gradient(x, *spacings, spacing=None, axis=None, edge_order=1):
    """The derivative along axes of a function that is known at the points of a grid, by differences of neighbours.

    Parameters
    ----------
    x : Tensor
        The values; at least ``edge_order + 1`` along each axis.
    *spacings : number or 1-d Tensor, optional
        The distance of neighbours, 1 by default: one for all axes, or one for each; or the coordinates along each axis.
    spacing : number, or list of these, optional
        The same by name, as in PyTorch.
    axis : int or tuple of int, optional
        Along which axes; by default all.
    edge_order : int, optional
        1 takes the slope of a line at the ends, 2 that of a parabola.

    Returns
    -------
    tuple of Tensor
        One for each axis, also for a single one (as in PyTorch), in the shape of `x`; integers give the default float.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If an axis is too short or named twice, or the spacing does not fit.

    Notes
    -----
    Inside, the slope of the parabola through a point and its two neighbours, of second order in the distance.  Gradient: for `x` and for coordinates.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.gradient(cg.tensor([1.0, 4.0, 9.0, 16.0]))
    (tensor([3., 4., 6., 7.]),)
    """
    x = as_floating("gradient", x)
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order must be 1 or 2, got {edge_order!r}")
    axes = tuple(range(x.ndim)) if axis is None else tuple([one_axis("gradient", a, x.ndim) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))])
    if len(set(axes)) < len(axes):
        raise ValueError(f"gradient: an axis is named twice in {axis}")
    if spacing is not None:
        spacings = tuple(spacing) if isinstance(spacing, (tuple, list)) else (spacing,)
    spacings = [s if isinstance(s, (int, float)) else as_tensor("gradient", s) for s in spacings or (1,)]
    if len(spacings) == 1 and not isinstance(spacing, (tuple, list)) and (isinstance(spacings[0], (int, float)) or spacings[0].ndim == 0):
        spacings *= len(axes)
    if len(spacings) != len(axes):
        raise ValueError(f"gradient: {len(spacings)} spacings for {len(axes)} axes; give one distance for all, or one for each, or coordinates")
    for a, s in zip(axes, spacings):
        if x.ndim == 0 or x.shape[a] <= edge_order:
            raise ValueError(f"gradient: needs at least {edge_order + 1} points along axis {a}, got shape {x.shape}")
        if not isinstance(s, (int, float)) and s.ndim and s.shape != (x.shape[a],):
            raise ValueError(f"gradient: needs a distance or {x.shape[a]} coordinates for axis {a} of shape {x.shape}, got shape {s.shape}")
    return tuple([_slopes(x, s, a, edge_order) for a, s in zip(axes, spacings)])


# --------------------------------------------------------------------------------------------------------------- extremes
def _extremes_vjp(g, shape_x, out, axis):
    return None if g[0] is None else _scatter_add(zeros(shape_x, dtype=g[0].dtype), g[0], out[1], axis)


_running_extremes = define("running_extremes", forward=running.running_extremes, inputs=("x",), options=("axis", "largest"), reads=(1,), vjp=_extremes_vjp,
                           jvp=lambda tx, out, axis: (_gather(tx, out[1], axis), None), public=False)


def _extremes_so_far(name, x, axis, largest):
    x = as_tensor(name, x)
    axis = one_axis(name, axis, x.ndim)
    found = _running_extremes(x if x.ndim else reshape(x, (1,)), axis, largest)
    return Selection(*found) if x.ndim else Selection(*[reshape(part, ()) for part in found])


@public(method=True)
def cummax(x, axis=-1):
    """Largest element so far along an axis, and its place.

    Parameters
    ----------
    x : Tensor
    axis : int, optional
        The axis to run along.

    Returns
    -------
    values, indices : Tensor
        A named tuple, both in the shape of `x`.  The indices are int64, those of the last of equals.

    Raises
    ------
    IndexError
        If the axis is out of range.

    Notes
    -----
    NaN wins from where it stands.  Gradient: ``g`` at the places of the elements.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.cummax(cg.tensor([1.0, 3.0, 2.0])).values
    tensor([1., 3., 3.])
    """
    return _extremes_so_far("cummax", x, axis, True)


@public(method=True)
def cummin(x, axis=-1):
    """Smallest element so far along an axis, and its place.

    Parameters
    ----------
    x : Tensor
    axis : int, optional
        The axis to run along.

    Returns
    -------
    values, indices : Tensor
        A named tuple, both in the shape of `x`.  The indices are int64, those of the last of equals.

    Raises
    ------
    IndexError
        If the axis is out of range.

    Notes
    -----
    NaN wins from where it stands.  Gradient: ``g`` at the places of the elements.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.cummin(cg.tensor([2.0, 1.0, 3.0])).values
    tensor([2., 1., 1.])
    """
    return _extremes_so_far("cummin", x, axis, False)


# ------------------------------------------------------------------------------------------------------------ logcumsumexp
# The share of x[i] in out[j] is exp(x[i] - out[j]) = exp(x[i] - out[i]) * exp(out[i] - out[i + 1]) * ... * exp(out[j - 1] - out[j]): no factor
# exceeds 1, and the products are a recurrence.
def _gap(x, y):
    """x - y, and 0 between equal infinities."""
    return where(isinf(x).logical_and(x == y), 0, x - y)


def _share_left(out, axis):
    return exp(_gap(_before(out, axis, False, zeros_like), out))


def _logcumsumexp_vjp(g, x, out, axis):
    return exp(_gap(x, out)) * _recurrence_x(g, _share_left(out, axis), axis, False)


def _logcumsumexp_jvp(tx, x, out, axis):
    return _recurrence(exp(_gap(x, out)) * tx, _share_left(out, axis), axis, False)


_logcumsumexp = define("logcumsumexp", forward=running.logcumsumexp, inputs=("x",), options=("axis",), vjp=_logcumsumexp_vjp,
                       jvp=_logcumsumexp_jvp, public=False)


@public(method=True)
def logcumsumexp(x, axis=-1):
    """Logarithm of the running sum of exponentials along an axis, without overflow.

    Parameters
    ----------
    x : Tensor
    axis : int, optional
        The axis to run along.

    Returns
    -------
    Tensor
        Shape of `x`; integers give the default float.

    Raises
    ------
    IndexError
        If the axis is out of range.

    Notes
    -----
    ``out[i] = log(exp(x[0]) + ... + exp(x[i]))``.  Gradient of ``x[i]``: the sum of ``g[j] * exp(x[i] - out[j])`` over ``j >= i``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.logcumsumexp(cg.tensor([1000.0, 1000.0], dtype=cg.float64))
    tensor([1000.0000, 1000.6931], dtype=cgrad.float64)
    """
    x = as_floating("logcumsumexp", x)
    axis = one_axis("logcumsumexp", axis, x.ndim)
    return _logcumsumexp(x, axis) if x.ndim else +x


# --------------------------------------------------------------------------------------------------------------- integrals
def _trapezoids(name, y, x, dx, axis):
    """The areas between neighbours along an axis, and the axis."""
    y = as_floating(name, y)
    if y.ndim == 0:
        raise ValueError(f"{name}: needs at least one axis, got a 0-d tensor")
    axis = one_axis(name, axis, y.ndim)
    if x is not None:
        x = as_floating(name, x)           # differences of unsigned integers would wrap
        if x.ndim == 1:
            if x.shape[0] != y.shape[axis]:
                raise ValueError(f"{name}: x has {x.shape[0]} places, but y of shape {y.shape} has {y.shape[axis]} along axis {axis}")
            dx = reshape(diff(x), (-1,) + (1,) * (y.ndim - 1 - axis))
        else:
            dx = diff(x, axis=axis - y.ndim)
    return (_part(y, axis, 1, None) + _part(y, axis, 0, -1)) * (dx / 2), axis


@public(method=True)
def trapezoid(y, x=None, dx=1.0, axis=-1):
    """Integral along an axis by the trapezoidal rule.

    Parameters
    ----------
    y : Tensor
        The values.
    x : Tensor, optional
        The places where they were taken: one row for the axis, or what broadcasts with `y`.
    dx : number, optional
        The distance between neighbours, if no places are given.
    axis : int, optional
        The axis to integrate along.

    Returns
    -------
    Tensor
        Without the axis; integers give the default float.

    Raises
    ------
    IndexError
        If the axis is out of range.
    ValueError
        If `y` is 0-d, or `x` does not fit.

    Notes
    -----
    The sum of ``(y[i] + y[i + 1]) * (x[i + 1] - x[i]) / 2``.  Gradient: for `y` and `x`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.trapezoid(cg.tensor([1.0, 2.0, 3.0]), dx=2)
    tensor(8.)
    """
    areas, axis = _trapezoids("trapezoid", y, x, dx, axis)
    return areas.sum(axis)


@public(method=True)
def cumulative_trapezoid(y, x=None, dx=1.0, axis=-1):
    """Running integral along an axis by the trapezoidal rule.

    Parameters
    ----------
    y : Tensor
    x : Tensor, optional
    dx : number, optional
    axis : int, optional
        As for `trapezoid`.

    Returns
    -------
    Tensor
        Shorter than `y` by one along the axis.

    Raises
    ------
    IndexError
        If the axis is out of range.
    ValueError
        If `y` is 0-d, or `x` does not fit.

    Notes
    -----
    Gradient: for `y` and `x`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.cumulative_trapezoid(cg.tensor([1.0, 2.0, 3.0]))
    tensor([1.5000, 4.0000])
    """
    return _running_sum(*_trapezoids("cumulative_trapezoid", y, x, dx, axis))
