"""Losses whose derivatives need care at the ends of their domain, and the picking of classes.

A rule's parameter names say what the tape keeps (see define.py).  The others are compositions in `nn/functional`.
"""

from cgrad.core.forward import classes
from cgrad.ops.arithmetic import maximum
from cgrad.ops.define import define
from cgrad.ops.elementwise import log, log1p

_FLOOR = -100.0           # log(0) counts as this, and a slope's denominator is at least 1e-12: PyTorch's numbers
_SMALLEST = 1e-12


def _forward(x, y):
    return -(y * maximum(log(x), _FLOOR) + (1 - y) * maximum(log1p(-x), _FLOOR))


def _slope_in_x(g, x, y):
    return g * ((x - y) / maximum(x * (1 - x), _SMALLEST))


def _slope_in_y(g, x):
    return g * (maximum(log1p(-x), _FLOOR) - maximum(log(x), _FLOOR))


def _tangent(tx, ty, x, y):
    first = None if tx is None else _slope_in_x(tx, x, y)
    second = None if ty is None else _slope_in_y(ty, x)
    return second if first is None else first if second is None else first + second


binary_cross_entropy = define("binary_cross_entropy", forward=_forward, inputs=("x", "y"), vjp=(_slope_in_x, _slope_in_y), jvp=_tangent,
                              batch=lambda x, y: binary_cross_entropy(x, y), public=False)

# pick_class(x, target, axis, ignored, n_classes): one element of each row of x; an ignored target picks 0.  The target is an input,
# not an option, so that the tape notices when it is overwritten.
_OPTIONS = ("axis", "ignored", "n_classes")
_spread_class = define(
    "spread_class", forward=classes.spread, inputs=("x", "y"), options=_OPTIONS,
    vjp=(lambda g, y, axis, ignored, n_classes: pick_class(g, y, axis, ignored, n_classes), None),
    jvp=lambda tx, y, axis, ignored, n_classes: _spread_class(tx, y, axis, ignored, n_classes), public=False)
pick_class = define(
    "pick_class", forward=lambda x, y, axis, ignored, n_classes: classes.pick(x, y, axis, ignored), inputs=("x", "y"), options=_OPTIONS,
    vjp=(lambda g, y, axis, ignored, n_classes: _spread_class(g, y, axis, ignored, n_classes), None),
    jvp=lambda tx, y, axis, ignored, n_classes: pick_class(tx, y, axis, ignored, n_classes), public=False)
