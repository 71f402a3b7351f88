"""detect_anomaly: stop where the first NaN or infinity appears, and say which line of the user's code made it."""
from __future__ import annotations

import threading

from cgrad.core import batching, watchers
from cgrad.core.source import line_text, users_line
from cgrad.core.record import note_leaving
from cgrad.core.tape import swap_grad_enabled
from cgrad.core.tensor import Tensor
from cgrad.ops import PUBLIC

amax, amin, argwhere, count_nonzero, isfinite, isnan, logical_not = (
    PUBLIC[name] for name in ("amax", "amin", "argwhere", "count_nonzero", "isfinite", "isnan", "logical_not"))

__all__ = ["detect_anomaly", "is_anomaly_enabled", "set_detect_anomaly"]

_state = threading.local()


class detect_anomaly:
    """Stop at the first operation that makes a NaN out of numbers, forward or backward.

    A context manager for the calling thread, for looking for faults: every operation is checked and its line of code noted, which makes
    small operations some ten times slower.

    Parameters
    ----------
    check_nan : bool, default True
        Whether gradients are checked. Without it lines of code are noted only, for the errors of backward.
    forward : bool, default True
        Whether results of recorded operations are checked as well.
    inf : bool, default False
        Whether infinities count.

    Raises
    ------
    RuntimeError
        Inside the context, by the operation or by backward: names the operation, what it was given, the first bad element, and the line
        of code that recorded it.

    See Also
    --------
    set_detect_anomaly : The same without a context.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([1.0, 0.0], requires_grad=True)
    >>> with cg.autograd.detect_anomaly():
    ...     y = cg.sqrt(x) * 0.0
    ...     y.sum().backward()
    Traceback (most recent call last):
      ...
    RuntimeError: sqrt: backward made NaN in the gradient of input 0 (1 of 2 elements, the first at (1,)), having kept ...
    """

    def __init__(self, check_nan=True, *, forward=True, inf=False):
        self.check_nan, self.check_forward, self.inf = bool(check_nan), bool(forward), bool(inf)

    def __enter__(self):
        _open(self)
        return self

    def __exit__(self, *exc):
        _close()


def set_detect_anomaly(mode, check_nan=True, *, forward=True, inf=False):
    """Look for anomalies in this thread from now on (True), or no longer (False); see `detect_anomaly`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.autograd.set_detect_anomaly(True)
    >>> cg.autograd.is_anomaly_enabled()
    True
    >>> cg.autograd.set_detect_anomaly(False)
    """
    while _current() is not None:
        _close()
    if mode:
        _open(detect_anomaly(check_nan, forward=forward, inf=inf))


def is_anomaly_enabled():
    """Whether anomalies are looked for in this thread.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.autograd.is_anomaly_enabled()
    False
    """
    return _current() is not None


def _current():
    stack = getattr(_state, "stack", None)
    return stack[-1] if stack else None


def _open(mode):
    if not hasattr(_state, "stack"):
        _state.stack = []
    _state.stack.append(mode)
    watchers.add("record", _recorded)
    watchers.add("gradient", _passed)
    watchers.add("leave", _left)


def _close():
    _state.stack.pop()
    watchers.remove("record", _recorded)
    watchers.remove("gradient", _passed)
    watchers.remove("leave", _left)


def _recorded(node, inputs, results):
    """Called with every node that is made."""
    mode = _current()
    if mode is None:
        return
    node.source = users_line()
    if not mode.check_forward:
        return
    for k, y in enumerate(results):
        bad = _bad(y, mode.inf) if isinstance(y, Tensor) else None
        if bad is not None and all(_bad(x, mode.inf) is None for x in inputs if isinstance(x, Tensor)):
            which = f"result {k}" if len(results) > 1 else "its result"
            given = "; ".join(f"input {i} {_summary(x)}" for i, x in enumerate(inputs) if isinstance(x, (Tensor, int, float)))
            raise RuntimeError(f"{node.name}: made {bad[0]} in {which}{bad[1]}, given {given}.{_where(node)}")


def _left(x):
    """Called with every tensor that leaves the graph."""
    if _current() is not None:
        note_leaving(x, users_line())


def _passed(node, i, g):
    """Called with every gradient that a rule gives."""
    mode = _current()
    if mode is None or not mode.check_nan:
        return
    bad = _bad(g, mode.inf)
    if bad is not None:
        saved = "; ".join(_summary(x) for x in node.saved_tensors if isinstance(x, Tensor))
        raise RuntimeError(f"{node.name}: backward made {bad[0]} in the gradient of input {i}{bad[1]}"
                           f"{f', having kept a tensor {saved}' if saved else ''}.{_where(node)}")


def _bad(x, inf):
    """What a tensor has that it should not, and where; None if it is sound."""
    if not x.dtype.is_floating_point:
        return None
    x = batching.all_examples(x)
    before = swap_grad_enabled(False)
    try:
        mask = isnan(x) if not inf else logical_not(isfinite(x))
        count = int(count_nonzero(mask))
        if not count:
            return None
        first = tuple(int(i) for i in argwhere(mask)[0])
        value = x[first].item()
    finally:
        swap_grad_enabled(before)
    name = "NaN" if value != value else "an infinity"
    return name, f" ({count} of {x.numel()} elements, the first at {first})" if x.ndim else ""


def _summary(x):
    """Shape and range of a tensor."""
    if not isinstance(x, Tensor):
        return repr(x)
    x = batching.all_examples(x).detach()
    if x.numel() == 0:
        return f"of shape {tuple(x.shape)}"
    if x.numel() == 1:
        return f"= {x.item():.6g}" if x.dtype.is_floating_point else f"= {x.item()}"
    if not x.dtype.is_floating_point:
        return f"of shape {tuple(x.shape)} and dtype {x.dtype.name}"
    before = swap_grad_enabled(False)
    try:
        return f"of shape {tuple(x.shape)} from {amin(x).item():.6g} to {amax(x).item():.6g}"
    finally:
        swap_grad_enabled(before)


def _where(node):
    if node.source is None:
        return " Where it was recorded is not known: run the forward pass inside detect_anomaly, too."
    return f" It was recorded in {line_text(node.source)}"
