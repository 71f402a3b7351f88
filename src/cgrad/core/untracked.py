"""Why a tensor has no graph, in a sentence: what errors and `Tensor.why_no_grad` say.  Loaded when it happens."""
from cgrad.core.source import line_text
from cgrad.core.record import why_unrecorded


def untracked_text(x):
    """Why a tensor does not require grad."""
    if not x.dtype.is_floating_point:
        return f"its dtype is {x.dtype.name}, and only floating point tensors have gradients: convert it first, x.float()"
    how, line = why_unrecorded(x)
    if how == "detach":
        return "it was detached from the graph" + (f" in {line_text(line)}" if line else " (inside cgrad.autograd.detect_anomaly() the line is noted)")
    if how == "no_grad":
        return "it was computed under no_grad, so nothing was recorded"
    return "it does not require grad, and nothing that it was computed from does: make it with requires_grad=True, or call requires_grad_()"
