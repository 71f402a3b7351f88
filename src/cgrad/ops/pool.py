"""Pooling: the largest element and the mean of windows over the last one to three axes; weighted sums of elements at places.

A rule's parameter names say what the tape keeps (see define.py).  `nn/functional/pooling.py` is the public door.  What comes before the
axes of the windows is one batch, so a batch of calls is the call itself.  `windows` is what core/forward/pool.pyx makes of a kernel, a
stride and so on; all of its sizes lie in it.
"""

from cgrad.core.forward import gather
from cgrad.core.forward import pool as forward
from cgrad.ops.define import BILINEAR, LINEAR, NONDIFF, define
from cgrad.ops.gathering import _gather

even_windows, adaptive_windows = forward.even_windows, forward.adaptive_windows

# The largest elements of windows and their places, as numbers in their planes (int32).
_largest = define("max_pool", forward=lambda x, name, windows: forward.max_pool(name, x, windows), inputs=("x",), options=("name", "windows"),
                  kind=NONDIFF, batch=lambda x, name, windows: _largest(x, name, windows), public=False)

# The elements of x at the places y, and the transpose: zeros with the elements of x added there.
_pick = define("pick_places", forward=forward.pick, inputs=("x", "y"), options=("windows",),
               vjp=(lambda g, y, windows: _place(g, y, windows), None), kind=LINEAR,
               batch=lambda x, y, windows: _pick(x, y, windows), public=False)
_place = define("add_places", forward=forward.place, inputs=("x", "y"), options=("windows",),
                vjp=(lambda g, y, windows: _pick(g, y, windows), None), kind=LINEAR,
                batch=lambda x, y, windows: _place(x, y, windows), public=False)

# The same as _pick where the elements z at the places are known.  The tape keeps the places alone, so the result may be written over.
_picked = define("max_pool", forward=lambda x, y, z, windows: z, inputs=("x", "y", "z"), options=("windows",),
                 vjp=(lambda g, y, windows: _place(g, y, windows), None, None), jvp=lambda tx, y, windows: _pick(tx, y, windows),
                 batch=lambda x, y, z, windows: _picked(x, y, z, windows), public=False)


def max_pool(x, name, windows):
    """The largest elements of windows and their places; `name` is what errors call it."""
    values, places = _largest(x, name, windows)
    return _picked(x, places, values, windows), places


#: average_pool(x, windows, padded, divisor): sums over windows by `divisor`, or by the elements of the window, with or without padding
average_pool = define("avg_pool", forward=forward.average, inputs=("x",), options=("windows", "padded", "divisor"), kind=LINEAR,
                      vjp=lambda g, windows, padded, divisor: _average_spread(g, windows, padded, divisor),
                      batch=lambda x, windows, padded, divisor: average_pool(x, windows, padded, divisor), public=False)
_average_spread = define("avg_pool_spread", forward=forward.average_spread, inputs=("x",), options=("windows", "padded", "divisor"), kind=LINEAR,
                         vjp=lambda g, windows, padded, divisor: average_pool(g, windows, padded, divisor),
                         batch=lambda x, windows, padded, divisor: _average_spread(x, windows, padded, divisor), public=False)

#: max_unpool(x, y, n): zeros with n elements along the last axis, the elements of x at the places y.  Where windows overlapped, places and
#: values come several times; each then gets the gradient there, as in PyTorch.
max_unpool = define("max_unpool", forward=gather.unpool, inputs=("x", "y"), options=("n",),
                    vjp=(lambda g, y: _gather(g, y, y.ndim - 1), None), kind=LINEAR,
                    batch=lambda x, y, n: max_unpool(x, y, n), public=False)

#: sample(x, y, z): sums over taps of weights y (*, taps, k) times the elements of x (*, channels, n) at the places z (*, taps, k), 0 at -1.
#: With its two adjoints it is closed under differentiation: each of the three is linear in two of x, y and the result.
sample = define("grid_sample", forward=forward.sample, inputs=("x", "y", "z"), kind=BILINEAR,
                vjp=(lambda g, y, z, shape_x: _sample_spread(g, y, z, shape_x[-1]), lambda g, x, z: _sample_weights(g, x, z), None),
                batch=lambda x, y, z: sample(x, y, z), public=False)
_sample_spread = define("sample_spread", forward=forward.sample_spread, inputs=("x", "y", "z"), options=("n",), kind=BILINEAR,
                        vjp=(lambda g, y, z: sample(g, y, z), lambda g, x, z: _sample_weights(x, g, z), None),
                        batch=lambda x, y, z, n: _sample_spread(x, y, z, n), public=False)
_sample_weights = define("sample_weights", forward=forward.sample_weights, inputs=("x", "y", "z"), kind=BILINEAR,
                         vjp=(lambda g, y, z: sample(y, g, z), lambda g, x, z, shape_y: _sample_spread(x, g, z, shape_y[-1]), None),
                         batch=lambda x, y, z: _sample_weights(x, y, z), public=False)
