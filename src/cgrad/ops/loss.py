"""Losses whose derivatives need care at the ends of their domain.

A rule's parameter names say what the tape keeps (see define.py).  The others are compositions in `nn/functional`.
"""

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
                              public=False)
