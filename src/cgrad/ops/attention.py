"""Scaled dot-product attention as one operation: the matrix of scores exists block by block only, forward and backward.

A rule's parameter names say what the tape keeps (see define.py).  `nn/functional/attention.py` is the public door.  Derivatives of higher
order, forward mode and the gradient of the mask go through the matrix of weights, composed of cgrad's own functions.
"""

from cgrad.core.dtype import bool_ as boolean
from cgrad.core.forward import attention as forward
from cgrad.ops import compare
from cgrad.ops.creation import ones
from cgrad.ops.triangles import tril
from cgrad.ops.define import define, joint
from cgrad.ops.matmul import matmul
from cgrad.ops.reduction import _sum
from cgrad.ops.shape import broadcast_to, swapaxes
from cgrad.ops.softmax import _softmax


def _transposed(x):
    return swapaxes(x, -1, -2)


def attention_weights(q, k, mask, scale, causal):
    """softmax(scale * q @ k.T + mask), the matrix itself; 0 in the rows of queries that see no key."""
    scores = matmul(q, _transposed(k)) * scale
    dead = None
    if causal:
        scores = compare.where(tril(ones(scores.shape[-2:], dtype=boolean)), scores, float("-inf"))
    if mask is not None:
        scores = compare.where(mask, scores, float("-inf")) if mask.dtype == boolean else scores + mask
        if scores.shape[-1]:
            dead = (scores == float("-inf")).all(axis=-1, keepdims=True)
            scores = compare.where(dead, 0.0, scores)
    weights = _softmax(scores, scores.ndim - 1)
    return weights if dead is None else compare.where(dead, 0.0, weights)


def _slope(t, weights):
    """The derivative of softmax in the direction t; its matrix is symmetric, so this serves both directions."""
    return weights * (t - _sum(t * weights, (t.ndim - 1,), True))


def _gradients(g, q, k, v, mask, out, scale, causal, needs):
    g, weights = g[0], attention_weights(q, k, mask, scale, causal)
    slopes = _slope(matmul(g, _transposed(v)), weights) if needs[0] or needs[1] or needs[3] else None
    return (matmul(slopes, k) * scale if needs[0] else None, matmul(_transposed(slopes), q) * scale if needs[1] else None,
            matmul(_transposed(weights), g) if needs[2] else None, slopes if needs[3] else None)


def _first_order(g, q, k, v, mask, out, scale, causal, needs):
    if needs[3]:
        return _gradients(g, q, k, v, mask, out, scale, causal, needs)
    return forward.attention_gradients(g[0], q, k, v, mask, out, scale, causal, needs)


def _tangent(tq, tk, tv, tmask, q, k, v, mask, scale, causal):
    weights = attention_weights(q, k, mask, scale, causal)
    total = None if tv is None else matmul(weights, tv)
    parts = [] if tq is None else [matmul(tq, _transposed(k)) * scale]
    parts += [] if tk is None else [matmul(q, _transposed(tk)) * scale]
    parts += [] if tmask is None else [tmask]
    if parts:
        through = matmul(_slope(sum(parts[1:], parts[0]), weights), v)
        total = through if total is None else total + through
    return total, None


def _batch(q, k, v, mask, scale, causal, size, batched):
    """A batch of calls has one more batch axis."""
    parts = [x if x is None or b else broadcast_to(x, (size, *x.shape)) for x, b in zip((q, k, v, mask), batched)]
    return attention(*parts, scale, causal)


#: attention(q, k, v, mask, scale, causal): (result, what backward needs) of q (*batch, queries, width), k (*batch, keys, width) and
#: v (*batch, keys, out_width) with equal batch axes; mask (*batch, queries, keys), None, or bool, or added
attention = define(
    "scaled_dot_product_attention", forward=forward.attention, inputs=("q", "k", "v", "mask"), optional=("mask",), options=("scale", "causal"),
    vjp=joint(_gradients, fused=_first_order), jvp=_tangent, batch=_batch, public=False)
