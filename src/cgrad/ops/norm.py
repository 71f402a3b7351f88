"""layer_norm and rms_norm: rows set to a mean of 0 and a variance of 1, then scaled and shifted; forward and backward in one pass each.

A rule's parameter names say what the tape keeps (see define.py).  `nn/functional/norm.py` is the public door.
"""

from cgrad.core.forward import norm as forward
from cgrad.ops.batching import with_ndim
from cgrad.ops.define import define, joint
from cgrad.ops.elementwise import rsqrt
from cgrad.ops.reduction import _mean, _sum


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
    "layer_norm", forward=forward.layer_norm, inputs=("x", "y", "z"), options=("n_axes", "eps"),
    vjp=joint(lambda g, x, y, n_axes, eps, needs: _gradients(g, x, y, n_axes, eps, True, needs), fused=forward.layer_norm_gradients),
    jvp=lambda tx, ty, tz, x, y, n_axes, eps: _tangent(tx, ty, tz, x, y, n_axes, eps, True),
    batch=lambda x, y, z, n_axes, eps, batched: _batch(layer_norm, x, (y, z), n_axes, eps, batched), public=False)

#: rms_norm(x, y, n_axes, eps): y the weight or None
rms_norm = define(
    "rms_norm", forward=forward.rms_norm, inputs=("x", "y"), options=("n_axes", "eps"),
    vjp=joint(lambda g, x, y, n_axes, eps, needs: _gradients(g, x, y, n_axes, eps, False, needs)[:2], fused=forward.rms_norm_gradients),
    jvp=lambda tx, ty, x, y, n_axes, eps: _tangent(tx, ty, None, x, y, n_axes, eps, False),
    batch=lambda x, y, n_axes, eps, batched: _batch(rms_norm, x, (y,), n_axes, eps, batched), public=False)
