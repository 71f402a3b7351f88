"""Losses whose derivatives need care at the ends of their domain, and the picking of classes.

A rule's parameter names say what the tape keeps (see define.py).  The others are compositions in `nn/functional`.
"""

from cgrad.core.forward import classes
from cgrad.core.forward import loss as forward
from cgrad.ops import compare
from cgrad.ops.arithmetic import maximum
from cgrad.ops.define import define, joint
from cgrad.ops.elementwise import log, log1p
from cgrad.ops.joining import stack
from cgrad.ops.reduction import _sum
from cgrad.ops.shape import _reshape, broadcast_to
from cgrad.ops.softmax import _softmax

_FLOOR = -100.0           # log(0) counts as this, and a slope's denominator is at least 1e-12: PyTorch's numbers
_SMALLEST = 1e-12

NONE, SUM, MEAN = 0, 1, 2          # how a loss is reduced


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


# -------------------------------------------------------------------------------------- cross-entropy of classes given by index
def _shares(x, y, z, ignored):
    """The weight of each target, 0 where it is ignored."""
    kept = y != ignored
    return kept.astype(x.dtype) if z is None else compare.where(kept, z[compare.where(kept, y, 0)], 0)


def _class_slope(x, y, z, ignored, smoothing):
    """The derivative of the loss of each row: softmax(x) * sum(q) - q, with q what is wanted of each class."""
    n, kept = x.shape[1], _reshape(y != ignored, (-1, 1))
    q = _spread_class(_shares(x, y, z, ignored) * (1 - smoothing), y, 1, ignored, n)
    if smoothing:
        q = q + kept.astype(x.dtype) * (smoothing / n if z is None else z * (smoothing / n))
    return compare.where(kept, _softmax(x, 1) * _sum(q, (1,), True) - q, 0)


def _class_gradient(g, x, y, z, out, ignored, smoothing, reduction):
    g = g[0] if reduction != MEAN else g[0] / _sum(_shares(x, y, z, ignored), (0,), False)
    return _reshape(g, (-1, 1)) * _class_slope(x, y, z, ignored, smoothing), None, None


def _class_tangent(tx, x, y, z, ignored, smoothing, reduction):
    rows = _sum(tx * _class_slope(x, y, z, ignored, smoothing), (1,), False)
    if reduction == NONE:
        return rows, None
    total = _sum(rows, (0,), False)
    return total / _sum(_shares(x, y, z, ignored), (0,), False) if reduction == MEAN else total, None


def _class_batch(x, y, z, ignored, smoothing, reduction, size, batched):
    """A batch of calls: its examples are further rows, reduced by themselves."""
    x, y = [t if b else broadcast_to(t, (size, *t.shape)) for t, b in zip((x, y), batched)]
    if batched[2]:
        found = [class_loss(x[i], y[i], z[i], ignored, smoothing, reduction) for i in range(size)]
        return tuple(stack(parts) for parts in zip(*found))
    rows = x.shape[:2]
    losses, state = class_loss(_reshape(x, (size * rows[1], x.shape[2])), _reshape(y, (size * rows[1],)), z, ignored, smoothing, NONE)
    losses, state = _reshape(losses, rows), _reshape(state, (*rows, 2))
    if reduction != NONE:
        losses = _sum(losses, (1,), False)
    return losses / _sum(_shares(x, y, z, ignored), (1,), False) if reduction == MEAN else losses, state


#: class_loss(x, y, z, ignored, smoothing, reduction): (loss, what backward needs) of logits x (rows, classes), class indices y and weights z
#: of the classes or None, as constants
class_loss = define(
    "cross_entropy", forward=forward.class_loss, inputs=("x", "y", "z"), options=("ignored", "smoothing", "reduction"),
    vjp=joint(_class_gradient, fused=forward.class_loss_gradient), jvp=_class_tangent, batch=_class_batch, public=False)
