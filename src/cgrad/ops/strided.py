"""Writes through views.

A recorded in-place write into a view gives its base a new history: the base is what it was with the written values put in.
The view, and every other view of that base, takes its own history anew from the base when it is next used.  A layout is what
core.forward.copy.layout_in_base gives.  Next: inplace.py.
"""

from cgrad.core import record, tensor
from cgrad.core.forward import copy as forward
from cgrad.ops.creation import zeros
from cgrad.ops.define import LINEAR, define

_take = define("view", forward=forward.take_window, inputs=("x",), options=("layout",), kind=LINEAR,
               vjp=lambda g, layout: _spread(g, layout), public=False)
_spread = define("spread_view", forward=forward.spread_window, inputs=("x",), options=("layout",), kind=LINEAR,
                 vjp=lambda g, layout: _take(g, layout), public=False)
_put = define("write_view", forward=forward.put_window, inputs=("x", "y"), options=("layout",), kind=LINEAR,
              vjp=(lambda g, layout: _put(g, zeros(layout[2], dtype=g.dtype), layout), lambda g, layout: _take(g, layout)), public=False)


def write_view(view, value):
    """Write a recorded value through a view, and tell its base."""
    base, layout = forward.base_of(view), forward.layout_in_base(view)
    written = _put(base, value, layout)
    forward.copy(view, value.detach())
    record.take_history(base, written, True)
    refresh_view(view)
    return view


def refresh_view(view):
    """Take the history of a view anew from its base."""
    record.take_history(view, _take(forward.base_of(view), forward.layout_in_base(view)), False)


tensor.set_view_refresher(refresh_view)
