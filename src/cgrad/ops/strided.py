"""Views of any strides, and writes through views.

A recorded in-place write into a view gives its base a new history: the base is what it was with the written values put in.
The view, and every other view of that base, takes its own history anew from the base when it is next used.  A layout is what
core.forward.copy.layout_in_base gives.  Next: inplace.py.
"""
import math

import numpy as np

from cgrad.core import forward_mode, record, tensor
from cgrad.core.batching import is_batched
from cgrad.core.arguments import as_tensor, one_axis, shape_tuple, whole_number
from cgrad.core.forward import copy as forward
from cgrad.ops.creation import zeros
from cgrad.ops.define import LINEAR, define, public
from cgrad.ops.shape import reshape


def _span(shape, strides):
    """The lowest and the highest place of an element, counted from the first one."""
    reach = [(n - 1) * step for n, step in zip(shape, strides)]
    return sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)


def _of_all(layout, size):
    """The layout for all examples of a batch, one after the other."""
    base_shape, base_strides, shape, strides, offset = layout
    low, high = _span(base_shape, base_strides)
    between = max(high - low + 1, 1)
    return (size, *base_shape), (between, *base_strides), (size, *shape), (between, *strides), offset


_take = define("view", forward=forward.take_window, moves=True, inputs=("x",), options=("layout",), kind=LINEAR,
               vjp=lambda g, layout: _spread(g, layout), batch=lambda x, layout: _take(x, _of_all(layout, x.shape[0])), public=False)
_spread = define("spread_view", forward=forward.spread_window, inputs=("x",), options=("layout",), kind=LINEAR,
                 vjp=lambda g, layout: _take(g, layout), batch=lambda x, layout: _spread(x, _of_all(layout, x.shape[0])), public=False)
_put = define("write_view", forward=forward.put_window, moves=True, inputs=("x", "y"), options=("layout",), kind=LINEAR,
              vjp=(lambda g, layout: _put(g, zeros(layout[2], dtype=g.dtype), layout), lambda g, layout: _take(g, layout)), public=False)


@public(method=True)
def as_strided(x, shape, strides, storage_offset=None):
    """The memory of a tensor seen with any shape and strides.

    Parameters
    ----------
    x : Tensor
    shape : tuple of int
    strides : tuple of int
        How many elements lie between neighbours along each axis; may be 0 or negative.
    storage_offset : int, optional
        Where the first element lies, counted from the start of the memory (inside vmap, from the first element of the example); by default
        where that of `x` does.

    Returns
    -------
    Tensor
        A view.  Where elements share a place, write into a copy.

    Raises
    ------
    ValueError
        If an element would lie outside the memory, or, for a tensor that requires grad, carries a tangent or stands for a batch, be none of `x`.

    Notes
    -----
    Gradient: each element of `x` gets the sum over the places where it is seen.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.as_strided(cg.arange(5), (3, 3), (1, 1))
    tensor([[0, 1, 2],
            [1, 2, 3],
            [2, 3, 4]])
    """
    x, shape, strides = as_tensor("as_strided", x), shape_tuple("as_strided", shape), shape_tuple("as_strided", strides)
    if len(shape) != len(strides) or min(shape, default=0) < 0:
        raise ValueError(f"as_strided: needs a length, not negative, and a stride for each axis, got shape {shape} and strides {strides}")
    batched = is_batched(x)                                  # each example is seen as if it lay in memory of its own
    before, after = (0, x.size) if batched else forward.place_in_storage(x)
    offset = 0 if storage_offset is None else whole_number("as_strided", "storage_offset", storage_offset) - before
    layout = (x.shape, x.strides, shape, strides, offset)
    if 0 not in shape:
        low, high = _span(shape, strides)
        if not batched and not -before <= offset + low <= offset + high < after or math.prod(shape) >= 1 << 60:
            raise ValueError(f"as_strided: shape {shape} and strides {strides} reach from element {before + offset + low} to {before + offset + high}, "
                             f"outside of the memory with {before + after} elements")
        if (x.requires_grad or forward_mode.highest_level((x,))) and not _all_own(*layout):
            what = "an example of a batch" if batched else "the tensor that requires grad" if x.requires_grad else "the tensor that carries a tangent"
            raise ValueError(f"as_strided: shape {shape} and strides {strides} show elements that are none of {what} (shape {x.shape}, strides {x.strides}), "
                             "so they would have no gradient; take what x is a view of" + ", or x.detach()" * (not batched))
    return _take(x, layout)


def _all_own(base_shape, base_strides, shape, strides, offset):
    """Whether every place of a view is that of an element of its base."""
    low, high = _span(base_shape, base_strides)
    first, last = _span(shape, strides)
    if 0 in base_shape or offset + first < low or offset + last > high:
        return False
    own = np.zeros(high - low + 1, bool)
    strided = np.lib.stride_tricks.as_strided
    strided(own[-low:], base_shape, base_strides)[...] = True
    return bool(strided(own[offset - low:], shape, strides).all())


@public(method=True)
def unfold(x, axis, size, step):
    """All windows of some length along an axis.

    Parameters
    ----------
    x : Tensor
    axis : int
    size : int
        Length of a window.
    step : int
        From one window to the next.

    Returns
    -------
    Tensor
        A view: `axis` counts the windows, a new last axis runs along them.  Where windows overlap, write into a copy.

    Raises
    ------
    IndexError
        If the axis is out of range.
    ValueError
        If a window is longer than the axis, or `step` is not positive.

    Notes
    -----
    Gradient: each element gets the sum over the windows that hold it.  (`cgrad.nn.functional.unfold` takes blocks of images.)

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.unfold(cg.arange(5), 0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """
    x, size, step = as_tensor("unfold", x), whole_number("unfold", "size", size), whole_number("unfold", "step", step)
    axis = one_axis("unfold", axis, x.ndim)
    if x.ndim == 0:
        return unfold(reshape(x, (1,)), 0, size, step)[0]
    n, strides = x.shape[axis], x.strides
    if 0 in strides and (x.requires_grad or forward_mode.highest_level((x,))):       # elements in one place have slopes of their own
        strides = tuple([math.prod(x.shape[k + 1:]) for k in range(x.ndim)])
    if not 0 <= size <= n or step <= 0:
        raise ValueError(f"unfold: windows of length {size}, {step} apart, do not fit axis {axis} of shape {x.shape}; the length must be 0 to {n}, "
                         "the step positive")
    shape = (*x.shape[:axis], (n - size) // step + 1, *x.shape[axis + 1:], size)
    return _take(x, (x.shape, strides, shape, (*strides[:axis], strides[axis] * step, *strides[axis + 1:], strides[axis]), 0))


def write_view(view, value, name):
    """Write a recorded value through a view, and tell its base."""
    base, layout = forward.base_of(view), forward.layout_in_base(view)
    written = _put(base, value, layout)
    forward.copy(view, value.detach(), name)
    record.take_history(base, written, True)
    refresh_view(view)
    return view


def refresh_view(view):
    """Take the history of a view anew from its base."""
    record.take_history(view, _take(forward.base_of(view), forward.layout_in_base(view)), False)


tensor.set_view_refresher(refresh_view)
