"""why_no_grad: in a sentence, why a tensor has no gradient, or none that would change it."""
from __future__ import annotations

from cgrad.core.tensor import Tensor
from cgrad.core.untracked import result_text, untracked_text
from cgrad.show.steps import nodes_behind

__all__ = ["why_no_grad"]


def why_no_grad(x, result=None):
    """What keeps a tensor from having a gradient in ``.grad``; see `Tensor.why_no_grad`."""
    if result is not None and not isinstance(result, Tensor):
        raise TypeError(f"why_no_grad: the result must be a tensor, got {type(result).__name__}")
    if not x.is_leaf and not x.retains_grad:
        return result_text(x)
    if x.grad is not None:
        return f"it has a gradient, of shape {tuple(x.grad.shape)}" + _flaws(x.grad.detach())
    if not x.requires_grad:
        return untracked_text(x)
    if result is not None:
        return _seen_from(x, result)
    what = "since retain_grad() was called" if not x.is_leaf else "since it was made or its gradient was set to None"
    return (f"no backward has reached it {what}: call backward() on a scalar that was computed from it, and ask with that scalar, "
            "x.why_no_grad(loss); grad() and cgrad.func return gradients and leave .grad alone")


def _flaws(g):
    """What is wrong with a gradient as a whole."""
    bad = g.size - int(g.isfinite().count_nonzero())
    if bad:
        return f", but {bad} of its {g.size} elements are not finite: cgrad.autograd.detect_anomaly() finds where that begins"
    if g.size and not g.any():
        return (", but all of it is 0: the result does not change with it here (dead relu, unused side of where, saturated or rounded values); "
                "cgrad.explain(result) shows where the 0 comes in")
    return ""


def _seen_from(x, result):
    if not result.requires_grad:
        return f"the result has no graph: {untracked_text(result)}"
    nodes = nodes_behind(result)
    own = ", ".join(sorted({node.name for node in nodes if not hasattr(node.operation, "input_names")}))
    if any(node.is_freed for node in nodes):
        return ("the result's graph was freed by a backward or grad(), which did not reach it or left .grad alone, or its gradient was set to None "
                f"since (zero_grad does that){own and f', or a rule has given None (of {own})'}; ask before backward to learn more")
    if x is not result and not any(edge is x or x.grad_fn is not None and edge is x.grad_fn and number == x.output_nr
                                   for node in nodes for edge, number in node.next_functions):
        return ("the result does not depend on it: the recorded operations start from other tensors (a copy, a new parameter in its place, "
                "a detached tensor or a number of it may be among them)")
    return f"backward() has not been called on the result, or the gradient was set to None since{own and f', or a rule has given None (of {own})'}"
