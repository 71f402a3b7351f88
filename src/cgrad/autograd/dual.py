"""Backward through tensors that carry tangents: forward mode over reverse mode.

The graph of a dual tensor is that of its primal, and its tangent was recorded too. So the gradient of the primal gives the primal
of the gradient, and the gradient of the tangent gives its tangent: d/de grad f(x + e t) = grad (d/de f(x + e t)).
"""
from __future__ import annotations

from cgrad.core.engine import run_backward
from cgrad.core.forward_mode import highest_level, is_dual, make_dual, unpack_dual
from cgrad.ops.creation import ones_like, zeros_like

__all__ = []


def split(x):
    """(level, primal, tangent) of a dual tensor, at its highest level."""
    level = highest_level((x,))
    return (level, *unpack_dual(x, level))


def bottom(x):
    """The tensor below all tangents, the one that the graph knows."""
    while is_dual(x):
        x = split(x)[1]
    return x


def gradients(outputs, grads, inputs, retain, create):
    """The list of gradients of the inputs, None where there is none; tangents are carried through."""
    level = highest_level(outputs + grads)
    if not level:
        return run_backward(outputs, grads, [bottom(x) for x in inputs], retain, create)
    pairs = [unpack_dual(y, level) for y in outputs]
    seeds = [(None, None) if g is None else unpack_dual(g, level) for g in grads]
    found = gradients(tuple([y for y, _ in pairs]), tuple([g for g, _ in seeds]), inputs, True, create)
    rows = []
    for (y, y_tangent), (g, g_tangent) in zip(pairs, seeds):
        if y_tangent is not None and y_tangent.requires_grad:
            rows.append((y_tangent, ones_like(y_tangent) if g is None else g))
        if g_tangent is not None:
            rows.append((y, g_tangent))
    if not rows:
        return found
    moved = gradients(tuple([y for y, _ in rows]), tuple([g for _, g in rows]), inputs, retain, create)
    out = []
    for g, t in zip(found, moved):
        if t is not None:
            g = make_dual(zeros_like(t) if g is None else g, t, level)
        out.append(g)
    return out
