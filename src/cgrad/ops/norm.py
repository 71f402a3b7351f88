"""Rows or channels set to a mean of 0 and a variance of 1, then scaled and shifted; forward and backward in one operation each.

A rule's parameter names say what the tape keeps (see define.py).  `nn/functional/norm.py` is the public door.
"""

import math

from cgrad.core.forward import norm as forward
from cgrad.ops.batching import with_ndim
from cgrad.ops.define import define, joint
from cgrad.ops.elementwise import rsqrt
from cgrad.ops.reduction import _mean, _sum
from cgrad.ops.shape import _reshape, broadcast_to, moveaxis


def _normalized(x, axes, eps, centred):
    """The rows before scale and shift, and the reciprocal of their deviation."""
    if centred:
        x = x - _mean(x, axes, True)
    scale = rsqrt(_mean(x * x, axes, True) + eps)
    return x * scale, scale


def _slope(v, y, scale, axes, centred):
    """The derivative of normalising to `y`, times v; its matrix is symmetric, so this serves both directions."""
    if centred:
        v = v - _mean(v, axes, True)
    return (v - y * _mean(v * y, axes, True)) * scale


def _gradients(g, x, weight, n_axes, eps, centred, needs):
    axes = tuple(range(x.ndim - n_axes, x.ndim))
    rest = tuple(range(x.ndim - n_axes))
    y, scale = _normalized(x, axes, eps, centred)
    return (_slope(g if weight is None else g * weight, y, scale, axes, centred) if needs[0] else None,
            _sum(g * y, rest, False) if needs[1] else None, _sum(g, rest, False) if needs[-1] else None)


def _tangent(tx, ty, tz, x, weight, n_axes, eps, centred):
    axes = tuple(range(x.ndim - n_axes, x.ndim))
    y, scale = _normalized(x, axes, eps, centred)
    total = tz
    if ty is not None:
        total = y * ty if total is None else y * ty + total
    if tx is not None:
        t = _slope(tx, y, scale, axes, centred)
        t = t if weight is None else t * weight
        total = t if total is None else t + total
    return total


def _batch(function, x, parameters, n_axes, eps, batched):
    """A batch of calls: the examples are further rows, and weights that differ between them are applied by themselves."""
    if not any(batched[1:]):
        return function(x, *parameters, n_axes, eps)
    y = function(x, *[None] * len(parameters), n_axes, eps)
    parts = [with_ndim(p, x.ndim - batched[0]) if b else p for p, b in zip(parameters, batched[1:])]
    if parts[0] is not None:
        y = y * parts[0]
    return y if parts[-1] is None or len(parts) == 1 else y + parts[-1]


#: layer_norm(x, y, z, n_axes, eps): y the weight, z the bias, in the shape of the last n_axes axes of x; both may be None
layer_norm = define(
    "layer_norm", forward=forward.layer_norm, inputs=("x", "y", "z"), optional=("y", "z"), options=("n_axes", "eps"),
    vjp=joint(lambda g, x, y, n_axes, eps, needs: _gradients(g, x, y, n_axes, eps, True, needs), fused=forward.layer_norm_gradients),
    jvp=lambda tx, ty, tz, x, y, n_axes, eps: _tangent(tx, ty, tz, x, y, n_axes, eps, True),
    batch=lambda x, y, z, n_axes, eps, batched: _batch(layer_norm, x, (y, z), n_axes, eps, batched), public=False)

#: rms_norm(x, y, n_axes, eps): y the weight or None
rms_norm = define(
    "rms_norm", forward=forward.rms_norm, inputs=("x", "y"), optional=("y",), options=("n_axes", "eps"),
    vjp=joint(lambda g, x, y, n_axes, eps, needs: _gradients(g, x, y, n_axes, eps, False, needs)[:2], fused=forward.rms_norm_gradients),
    jvp=lambda tx, ty, x, y, n_axes, eps: _tangent(tx, ty, None, x, y, n_axes, eps, False),
    batch=lambda x, y, n_axes, eps, batched: _batch(rms_norm, x, (y,), n_axes, eps, batched), public=False)


# ---------------------------------------------------------------------------------------------------------------------- channels
def _grouped(x, groups):
    """x with an axis for whatever has a mean of its own, and the axes over which the mean is taken."""
    samples, channels, *rest = x.shape
    n_groups = groups or channels
    x = _reshape(x, (samples, n_groups, channels // max(n_groups, 1), math.prod(rest)))
    return x, (2, 3) if groups else (0, 2, 3)


def _by_channel(parameter, like):
    return _reshape(parameter, (1, *like.shape[1:3], 1))


def _channel_parts(x, moments, groups, eps, given):
    """(normalised x in groups, the reciprocal of its deviation, the axes of a mean)"""
    x, axes = _grouped(x, groups)
    if not given:
        return *_normalized(x, axes, eps, True), axes
    moments = moments.detach()           # constants
    mean, variance = (_by_channel(moments[:, i].astype(x.dtype), x) for i in range(2))
    scale = rsqrt(variance + eps)
    return (x - mean) * scale, scale, axes


def _channel_slope(v, y, scale, axes, given):
    return v * scale if given else _slope(v, y, scale, axes, True)


def _channel_gradients(g, x, w, out, groups, eps, given, needs):
    y, scale, axes = _channel_parts(x, out[1], groups, eps, given)
    g = _reshape(g[0], y.shape)
    dx = _channel_slope(g if w is None else g * _by_channel(w, y), y, scale, axes, given) if needs[0] else None
    return (None if dx is None else _reshape(dx, x.shape), _reshape(_sum(g * y, (0, 3), False), (-1,)) if needs[1] else None,
            _reshape(_sum(g, (0, 3), False), (-1,)) if needs[2] else None, None, None)


def _channel_tangent(tx, tw, tb, x, w, out, groups, eps, given):
    y, scale, axes = _channel_parts(x, out[1], groups, eps, given)
    total = 0.0
    if tx is not None:
        t = _channel_slope(_reshape(tx, y.shape), y, scale, axes, given)
        total = t if w is None else t * _by_channel(w, y)
    if tw is not None:
        total = y * _by_channel(tw, y) + total
    if tb is not None:
        total = _by_channel(tb, y) + total
    return _reshape(broadcast_to(total, y.shape), x.shape), None


def _channel_batch(x, w, b, mean, variance, groups, eps, given, size, batched):
    """A batch of calls: the examples are further samples (groups) or further channels, scaled and shifted by themselves."""
    x, w, b, mean, variance = [p if p is None or is_batched else broadcast_to(p, (size, *p.shape))
                               for p, is_batched in zip((x, w, b, mean, variance), batched)]
    samples, channels, rest = x.shape[1], x.shape[2], x.shape[3:]
    if groups:
        y, moments = channel_norm(_reshape(x, (size * samples, channels, *rest)), None, None, None, None, groups, eps, given)
        y = _reshape(y, x.shape)
    else:
        mean, variance = (None if p is None else _reshape(p, (-1,)) for p in (mean, variance))
        y, moments = channel_norm(_reshape(moveaxis(x, 0, 1), (samples, size * channels, *rest)), None, None, mean, variance, 0, eps, given)
        y = moveaxis(_reshape(y, (samples, size, channels, *rest)), 1, 0)
    shape = (size, 1, channels, *(1 for _ in rest))
    y = y if w is None else y * _reshape(w, shape)
    return y if b is None else y + _reshape(b, shape), _reshape(moments, (size, -1, 2))


#: channel_norm(x, w, b, mean, variance, groups, eps, given): (result, moments) of x (samples, channels, ...); w and b, one number a
#: channel, may be None.  Mean and variance are `given`, as constants, or computed: of each channel (groups 0) or each group of a sample.
channel_norm = define(
    "channel_norm", forward=lambda x, w, b, mean, variance, groups, eps, given: forward.channel_norm(x, w, b, mean, variance, groups, eps),
    inputs=("x", "w", "b", "mean", "variance"), optional=("w", "b", "mean", "variance"), options=("groups", "eps", "given"), reads=(1,),
    vjp=joint(_channel_gradients, fused=forward.channel_norm_gradients), jvp=_channel_tangent, batch=_channel_batch, public=False)
