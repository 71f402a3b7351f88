"""Losses whose derivatives need care at the ends of their domain, and the picking of classes.

A rule's parameter names say what the tape keeps (see define.py).  The others are compositions in `nn/functional`.
"""

import math

from cgrad.core.convert import tensor_from
from cgrad.core.forward import classes
from cgrad.core.forward import loss as forward
from cgrad.ops import compare
from cgrad.ops.arithmetic import maximum, minimum
from cgrad.ops.creation import full
from cgrad.ops.ranges import arange
from cgrad.ops.define import LINEAR, define, joint
from cgrad.ops.elementwise import exp, log, log1p
from cgrad.ops.gathering import _gather, _gather_adjoint
from cgrad.ops.joining import concat, stack
from cgrad.ops.repeating import tile
from cgrad.ops.reduction import _sum
from cgrad.ops.shape import _reshape, broadcast_to, moveaxis
from cgrad.ops.softmax import _softmax, logsumexp

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
    vjp=(lambda g, y, axis, ignored, n_classes: pick_class(g, y, axis, ignored, n_classes), None), kind=LINEAR, public=False)
pick_class = define(
    "pick_class", forward=lambda x, y, axis, ignored, n_classes: classes.pick(x, y, axis, ignored), inputs=("x", "y"), options=_OPTIONS,
    vjp=(lambda g, y, axis, ignored, n_classes: _spread_class(g, y, axis, ignored, n_classes), None), kind=LINEAR, public=False)


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
    "cross_entropy", forward=forward.class_loss, inputs=("x", "y", "z"), optional=("z",), options=("ignored", "smoothing", "reduction"), reads=(1,),
    vjp=joint(_class_gradient, fused=forward.class_loss_gradient), jvp=_class_tangent, batch=_class_batch, public=False)


# --------------------------------------------------------------------------------------- connectionist temporal classification
_NEVER = -1e30            # the log-probability of what cannot be: finite, so that no difference of two of them is NaN


def _ctc_step(row, skip, back):
    """The log-probability of being at each place after a step from `row`: one stays, goes on by one place, or by two where `skip` allows."""
    def moved(by):
        edge = row[:, :by] * 0 + _NEVER
        return concat([row[:, by:], edge], 1) if back else concat([edge, row[:, :-by]], 1)
    return logsumexp(stack([row, moved(1), moved(2) + skip]), 0)


def _ctc_occupancy(x, y, input_lengths, target_lengths, blank):
    """Probability of each class at each step among all ways through the labels, by the recursions of kernels/loss.pyx."""
    times, samples = x.shape[:2]
    n = 2 * y.shape[1] + 1
    place, steps = arange(n), _reshape(tensor_from(input_lengths), (samples, 1))
    end = _reshape(tensor_from(target_lengths), (samples, 1)) * 2
    inside = place <= end
    padded = concat([y, full((samples, 1), blank, dtype=y.dtype)], 1)
    labels = compare.where((place % 2 == 1) & inside, padded[:, place // 2], blank)
    before = compare.where(place >= 2, labels[:, maximum(place - 2, 0)], blank)
    skip = compare.where((labels != blank) & (labels != before), 0.0, _NEVER).astype(x.dtype)
    skip_back = skip[:, minimum(place + 2, n - 1)]
    index = broadcast_to(labels, (times, samples, n))
    own = compare.where(inside, maximum(_gather(x, index, 2), _NEVER), _NEVER)
    alpha, beta = [own[0] + compare.where(place < 2, 0, _NEVER)], []
    for t in range(1, times):
        alpha.append(own[t] + _ctc_step(alpha[-1], skip, False))
    last = compare.where((place >= end - 1) & inside, 0.0, _NEVER).astype(x.dtype)
    for t in range(times - 1, -1, -1):
        beta.append(own[t] + (compare.where(steps == t + 1, last, _ctc_step(beta[-1], skip_back, True)) if beta else last))
    ways = stack(alpha) + stack(beta[::-1]) - own
    share = exp(ways - logsumexp(ways, 2, True))
    return _gather_adjoint(share, index, 2, x.shape)


def _ctc_gradient(g, x, y, out, input_lengths, target_lengths, blank):
    live = _reshape(arange(x.shape[0]), (-1, 1)) < tensor_from(input_lengths)
    g = g[0] + compare.where(compare.isinf(out[0]) & (g[0] != 0), math.nan, 0)
    slope = exp(x) - _ctc_occupancy(x, y, input_lengths, target_lengths, blank) if x.shape[0] else x
    return compare.where(_reshape(live, (*live.shape, 1)), slope, 0) * _reshape(g, (-1, 1)), None


def _ctc_first_order(g, x, y, out, input_lengths, target_lengths, blank):
    return forward.ctc_gradient(exp(x), g[0], x, y, *out, input_lengths, target_lengths, blank), None


def _ctc_batch(x, y, input_lengths, target_lengths, blank, size, batched):
    """A batch of calls: its examples are further samples."""
    samples = len(input_lengths)
    x = _reshape(moveaxis(x, 0, 1), (x.shape[1], size * samples, x.shape[3])) if batched[0] else tile(x, (1, size, 1))
    y = _reshape(y, (size * samples, y.shape[2])) if batched[1] else tile(y, (size, 1))
    losses, state = ctc(x, y, input_lengths * size, target_lengths * size, blank)
    return _reshape(losses, (size, samples)), _reshape(state, (size, samples, *state.shape[1:]))


#: ctc(x, y, input_lengths, target_lengths, blank): (loss of each sample, what backward needs) of log-probabilities x (times, samples, classes)
#: and labels y (samples, width), of which only as many count as the lengths say
ctc = define(
    "ctc_loss", forward=forward.ctc_loss, inputs=("x", "y"), options=("input_lengths", "target_lengths", "blank"),
    vjp=joint(_ctc_gradient, fused=_ctc_first_order), batch=_ctc_batch, public=False)
