"""Why a tensor has no graph, or no gradient of its own, in a sentence: what errors, warnings and `Tensor.why_no_grad` say.  Loaded when it happens."""
from cgrad.core.record import why_unrecorded
from cgrad.core.source import line_text, warn

WAYS = {
    "detached": "detached from the graph",
    "unrecorded": "computed under no_grad, so nothing was recorded (parameters are changed there in place: w -= step)",
    "frozen": "told to require no grad any more; requires_grad_() undoes that",
    "stepped": "made by an operation without slope, such as a comparison, argmax or a cast to integers",
}


def untracked_text(x):
    """Why a tensor does not require grad."""
    ways, line = why_unrecorded(x)
    if not x.dtype.is_floating_point:
        text = f"its dtype is {x.dtype.name}, and only floating point tensors have gradients"
        return text + (", none of which goes through integers: a smooth stand-in has one, such as softmax for argmax and sigmoid for a comparison"
                       if "stepped" in ways else ": convert it first, x.float()")
    if ways:
        where = f" in {line_text(line)}" if line else "; inside cgrad.autograd.detect_anomaly() the line is noted"
        return f"it, or what it was computed from, was {' and '.join(WAYS[way] for way in ways)}{where}"
    return ("it does not require grad, and nothing that it was computed from does: make it with requires_grad=True, or call requires_grad_(); "
            "what went through Python numbers, NumPy or cgrad.tensor() has left the graph")


def result_text(x):
    """Why a recorded result has no ``.grad``."""
    return (f"it is no leaf but a result of {x.grad_fn.name}, and gradients of results are passed on, not kept: call retain_grad() on it "
            "before backward")


def warn_of_copy(x):
    """Somebody makes a tensor of the numbers of one that is tracked."""
    warn(f"tensor: the numbers of a tracked tensor of shape {tuple(x.shape)} are copied out of its graph, so no gradient will go back through them: "
         "stack([x, y]) and x.clone() keep it, x.detach() says that this is meant")


def warn_of_result(x):
    """Somebody looks for the gradient of a result."""
    warn(f"grad: a tensor of shape {tuple(x.shape)} has none, for {result_text(x)}")
