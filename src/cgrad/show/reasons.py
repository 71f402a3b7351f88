"""why_no_grad: in a sentence, why a tensor has no gradient."""
from __future__ import annotations

from cgrad.core.untracked import untracked_text
from cgrad.show.steps import nodes_behind

__all__ = ["why_no_grad"]


def why_no_grad(x, result=None):
    """What keeps a tensor from having a gradient in ``.grad``; see `Tensor.why_no_grad`."""
    if x.grad is not None:
        return f"it has a gradient, of shape {tuple(x.grad.shape)}"
    if not x.requires_grad:
        return untracked_text(x)
    if not x.is_leaf and not x.retains_grad:
        return (f"it is no leaf but a result of {x.grad_fn.name}, and gradients of results are passed on, not kept: call retain_grad() on it "
                "before backward")
    if result is not None:
        return _seen_from(x, result)
    what = "since retain_grad() was called" if not x.is_leaf else "since it was made or its gradient was set to None"
    return f"no backward has reached it {what}: call backward() on a scalar that was computed from it"


def _seen_from(x, result):
    if not result.requires_grad:
        return f"the result has no graph: {untracked_text(result)}"
    nodes = nodes_behind(result)
    if any(node.is_freed for node in nodes):
        return "the result's graph was freed by a backward, which did not reach it, or its gradient was set to None since"
    if x is not result and not any(edge is x or x.grad_fn is not None and edge is x.grad_fn and number == x.output_nr
                                   for node in nodes for edge, number in node.next_functions):
        return ("the result does not depend on it: it is not among what the recorded operations were computed from (a copy, a detached tensor or "
                "a number of it may be)")
    return "backward() has not been called on the result"
