"""Rolling, repeating and padding.

The gradient of repetitions is summed, that of a padded tensor is cut.  Next: editing.py.
"""
import builtins

import numpy as np

from cgrad.core.arguments import as_tensor, one_axis, whole_number
from cgrad.core.convert import tensor_from
from cgrad.core.forward import join as forward
from cgrad.core.tensor import Tensor
from cgrad.ops.creation import is_followed
from cgrad.ops.define import LINEAR, define, public
from cgrad.ops.gathering import take
from cgrad.ops.indexing import _getitem
from cgrad.ops.shape import reshape


_roll = define("roll", forward=forward.roll, moves=True, inputs=("x",), options=("shifts", "axes"),
               vjp=lambda g, shifts, axes: _roll(g, tuple(-s for s in shifts), axes), kind=LINEAR, public=False)
_repeat = define("repeat", forward=forward.repeat, moves=True, inputs=("x",), options=("times", "axis"),
                 vjp=lambda g, times, axis, shape_x: reshape(g, shape_x[:axis + 1] + (times,) + shape_x[axis + 1:]).sum(axis + 1),
                 kind=LINEAR, public=False)


def _untiled(g, times, shape_x):
    shape = tuple(n for pair in zip(times, shape_x) for n in pair)
    return reshape(g, shape).sum(tuple(range(0, len(shape), 2))) if shape else g


_tile = define("tile", forward=forward.tile, moves=True, inputs=("x",), options=("times",), vjp=_untiled,
               batch=lambda x, times: _tile(x, (1, *times)), kind=LINEAR, public=False)


def _unpadded(g, widths, shape_x):
    return _getitem(g, tuple(slice(before, before + n) for (before, after), n in zip(widths, shape_x)))


_pad = define("pad", forward=forward.pad, moves=True, inputs=("x",), options=("widths", "value"), vjp=_unpadded,
              jvp=lambda tx, widths: _pad(tx, widths, 0), batch=lambda x, widths, value: _pad(x, ((0, 0), *widths), value), public=False)


# ------------------------------------------------------------------------------------------------------------------ repeating
@public(method=True)
def roll(x, shift, axis=None):
    """
    Elements moved along axes; what leaves at one end comes in at the other.

    Parameters
    ----------
    x : Tensor
    shift : int or tuple of int
        How far; negative numbers move towards the start.  `shifts` is another name.
    axis : int or tuple of int, optional
        One for each shift; without it, the flattened tensor is rolled.

    Returns
    -------
    Tensor
        A copy in the shape of `x`.

    Raises
    ------
    ValueError
        Different numbers of shifts and axes.

    Notes
    -----
    Gradient: ``g`` rolled back.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.roll(cg.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    x = as_tensor("roll", x)
    if axis is None:
        if isinstance(shift, (list, tuple)):
            if not shift:
                raise ValueError("roll: shift is empty; name how far to roll")
            shift = builtins.sum(whole_number("roll", "shift", s) for s in shift)
        return reshape(_roll(reshape(x, (x.numel(),)), (whole_number("roll", "shift", shift),), (0,)), x.shape)
    axes = tuple(axis) if isinstance(axis, (list, tuple)) else (axis,)
    shifts = tuple(shift) if isinstance(shift, (list, tuple)) else (shift,) * len(axes)
    if len(axes) != len(shifts):
        raise ValueError(f"roll: {len(shifts)} shifts for {len(axes)} axes; give one shift for each axis, or one number for all")
    if x.ndim == 0:
        raise ValueError("roll: a 0-d tensor has no axis to roll along")
    return _roll(x, tuple(whole_number("roll", "shift", s) for s in shifts), tuple(one_axis("roll", a, x.ndim) for a in axes))


@public(method=True)
def repeat(x, repeats, axis=None):
    """
    Each element, or each slice along an axis, several times in a row.

    Parameters
    ----------
    x : Tensor
    repeats : int or 1-d Tensor of int
        How often; a tensor gives a number for each slice.
    axis : int, optional
        Without it, `x` is read as one flat row.

    Returns
    -------
    Tensor
        A copy.

    Raises
    ------
    ValueError
        Negative numbers, or as many as do not fit the axis.

    See Also
    --------
    tile : the whole tensor several times (PyTorch's method ``repeat``).

    Notes
    -----
    Gradient: ``g`` summed over the repetitions.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.repeat(cg.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    x = as_tensor("repeat", x)
    if axis is None:
        x, axis = reshape(x, (x.numel(),)), 0
    axis = one_axis("repeat", axis, x.ndim)
    if x.ndim == 0:
        x = reshape(x, (1,))
    if isinstance(repeats, Tensor) or hasattr(repeats, "__len__"):
        counts = repeats if isinstance(repeats, Tensor) else tensor_from(repeats)
        if counts.dtype.is_floating_point or counts.dtype.kind == "bool":
            raise TypeError(f"repeat: the numbers of repetitions must be integers, got {counts.dtype.name}")
        if counts.ndim > 1 or counts.ndim == 1 and counts.size not in (1, x.shape[axis]):
            raise ValueError(f"repeat: repeats of shape {counts.shape} do not fit axis {axis} of length {x.shape[axis]}")
        counts = counts.tolist()
        if isinstance(counts, list):
            if len(counts) != 1:
                if builtins.min(counts, default=0) < 0:
                    raise ValueError(f"repeat: the numbers of repetitions must not be negative, got {builtins.min(counts)}")
                return take(x, tensor_from(np.repeat(np.arange(len(counts)), counts), "int64", None), axis)
            counts = counts[0]
        repeats = counts
    return _repeat(x, whole_number("repeat", "repeats", repeats), axis)


@public(method=True)
def repeat_interleave(x, repeats, axis=None):
    """
    PyTorch's name of `repeat`.

    Parameters
    ----------
    x : Tensor
    repeats : int or 1-d Tensor of int
    axis : int, optional
        Without it, `x` is read as one flat row.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        As for `repeat`.

    Notes
    -----
    Gradient: ``g`` summed over the repetitions.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.repeat_interleave(cg.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    return repeat(x, repeats, axis)


@public(method=True)
def tile(x, repetitions, *more):
    """
    The whole tensor several times along its axes.

    Parameters
    ----------
    x : Tensor
    repetitions : int or tuple of int
        One number for each axis, the last for the last; missing ones are 1, surplus ones make new axes.  The method also takes
        several ints.

    Returns
    -------
    Tensor
        A copy.

    Raises
    ------
    ValueError
        Negative numbers.

    See Also
    --------
    repeat : each element several times.

    Notes
    -----
    Gradient: ``g`` summed over the repetitions.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.tile(cg.tensor([1, 2]), (2, 2))
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    x = as_tensor("tile", x)
    if more or not isinstance(repetitions, (list, tuple)):
        repetitions = (repetitions, *more)
    times = tuple(whole_number("tile", "a number of repetitions", t) for t in repetitions)
    if len(times) < x.ndim:
        times = (1,) * (x.ndim - len(times)) + times
    if len(times) > x.ndim:
        x = reshape(x, (1,) * (len(times) - x.ndim) + x.shape)
    return _tile(x, times)


# ------------------------------------------------------------------------------------------------------------------ padding
_MODES = {"constant": "constant", "reflect": "reflect", "edge": "edge", "replicate": "edge", "wrap": "wrap", "circular": "wrap",
          "symmetric": "symmetric"}


def pad_widths(name, widths, ndim):
    """NumPy's pad_width as a (before, after) pair for each axis."""
    if isinstance(widths, Tensor):
        widths = widths.tolist()
    if hasattr(widths, "tolist"):
        widths = widths.tolist()
    if not isinstance(widths, (list, tuple)):
        widths = [(widths, widths)] * ndim
    elif len(widths) == 2 and not isinstance(widths[0], (list, tuple)):
        widths = [tuple(widths)] * ndim
    elif len(widths) == 1:
        only = widths[0]
        widths = [tuple(only) if isinstance(only, (list, tuple)) else (only, only)] * ndim
    widths = [tuple(pair) if isinstance(pair, (list, tuple)) else (pair, pair) for pair in widths]
    if len(widths) != ndim or any(len(pair) not in (1, 2) for pair in widths):
        raise ValueError(f"{name}: widths must be one (before, after) pair for each of {ndim} axes, got {widths}")
    return tuple((whole_number(name, "a width", pair[0]), whole_number(name, "a width", pair[-1])) for pair in widths)


@public(method=False)
def pad(x, pad_width, mode="constant", constant_values=0):
    """
    A frame around a tensor.

    Parameters
    ----------
    x : Tensor
    pad_width : int, (before, after), or one such pair for each axis
        How many elements to add; negative numbers cut off (constant mode).
    mode : {"constant", "reflect", "symmetric", "edge", "wrap"}
        What the frame holds: a number, the elements mirrored at the last one (reflect) or beyond it (symmetric), the last one, or
        those of the other end.  "replicate" and "circular" are PyTorch's names of "edge" and "wrap".
    constant_values : number, default 0

    Returns
    -------
    Tensor
        A copy.

    Raises
    ------
    ValueError
        Widths that do not fit, an unknown mode, or a frame that an axis is too short to fill.

    Notes
    -----
    Gradient: ``g`` within the frame; elements that the frame repeats get what arrives at their copies, too.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.pad(cg.tensor([1, 2, 3]), (1, 2))
    tensor([0, 1, 2, 3, 0, 0])
    >>> cg.pad(cg.tensor([1, 2, 3]), 2, mode="reflect")
    tensor([3, 2, 1, 2, 3, 2, 1])
    """
    x = as_tensor("pad", x)
    widths = pad_widths("pad", pad_width, x.ndim)
    if mode not in _MODES:
        raise ValueError(f"pad: mode must be one of {', '.join(_MODES)}, got {mode!r}")
    if _MODES[mode] == "constant":
        if any(width < 0 for pair in widths for width in pair):
            key = []
            for axis, (n, (before, after)) in enumerate(zip(x.shape, widths)):
                start, stop = builtins.max(0, -before), n - builtins.max(0, -after)
                if stop < start:
                    raise ValueError(f"pad: widths {before, after} cut more than the {n} elements of axis {axis}")
                key.append(slice(start, stop))
            x = _getitem(x, tuple(key))
            widths = tuple((builtins.max(0, before), builtins.max(0, after)) for before, after in widths)
        if isinstance(constant_values, Tensor):
            if is_followed(constant_values):
                raise TypeError("pad: constant_values would leave the graph here; detach() it, or put cgrad.full(...) and the tensor together with concat")
            constant_values = constant_values.item()
        if isinstance(constant_values, float) and not x.dtype.is_floating_point and not constant_values.is_integer():
            raise TypeError(f"pad: constant_values {constant_values} cannot be stored in a tensor of {x.dtype.name} without loss")
        return _pad(x, widths, constant_values)
    for axis, (before, after) in enumerate(widths):
        if before or after:
            x = take(x, _frame(mode, x.shape[axis], before, after, axis), axis)
    return x


_framed = pad      # below, `pad` is a parameter


@public(method=False)
def constant_pad_nd(x, pad, value=0):
    """
    A frame of one number around a tensor, with widths in PyTorch's order.

    Parameters
    ----------
    x : Tensor
    pad : sequence of int
        ``(before, after)`` of the last axis, then of the one before it, and so on; negative numbers cut off.
    value : number, default 0

    Returns
    -------
    Tensor
        A copy.

    Raises
    ------
    ValueError
        An odd number of widths, more pairs than axes, or more cut off than there is.

    Notes
    -----
    Gradient: ``g`` within the frame.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.constant_pad_nd(cg.tensor([[1, 2]]), (1, 0), 7)
    tensor([[7, 1, 2]])
    """
    x, pad = as_tensor("constant_pad_nd", x), list(pad)
    if len(pad) % 2 or len(pad) > 2 * x.ndim:
        raise ValueError(f"constant_pad_nd: needs a (before, after) pair for at most {x.ndim} axes, got {len(pad)} widths")
    return _framed(x, [(0, 0)] * (x.ndim - len(pad) // 2) + list(zip(pad[-2::-2], pad[::-2])), constant_values=value)


def _frame(mode, n, before, after, axis):
    """Which element of an axis of length `n` stands at each place of the padded axis."""
    if before < 0 or after < 0:
        raise ValueError(f"pad: widths must not be negative in mode {mode!r}, got {(before, after)} for axis {axis}")
    if n == 0:
        raise ValueError(f"pad: axis {axis} has no elements to fill a frame with in mode {mode!r}")
    places = range(-before, n + after)
    kind = _MODES[mode]
    if kind == "edge":
        return tensor_from([builtins.min(builtins.max(k, 0), n - 1) for k in places], "int64")
    if kind == "wrap":
        return tensor_from([k % n for k in places], "int64")
    if kind == "symmetric":
        return tensor_from([builtins.min(k % (2 * n), 2 * n - 1 - k % (2 * n)) for k in places], "int64")
    if n == 1:
        return tensor_from([0 for _ in places], "int64")
    period = 2 * (n - 1)
    return tensor_from([builtins.min(k % period, period - k % period) for k in places], "int64")
