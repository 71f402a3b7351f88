"""Frames around tensors, with PyTorch's order of widths; the frames themselves are made in `ops/repeating.py`."""
from __future__ import annotations

import cgrad as cg

__all__ = ["pad"]

_MODES = ("constant", "reflect", "replicate", "circular")


def pad(input, pad, mode="constant", value=None):
    """A frame around the last axes of a tensor.

    Parameters
    ----------
    input : Tensor
    pad : sequence of int
        ``(before, after)`` of the last axis, then of the one before it, and so on; negative numbers cut off.
    mode : {"constant", "reflect", "replicate", "circular"}
        What the frame holds: `value`, the elements mirrored at the last one, the last one, or those of the other end.
    value : number, optional
        0 if not given; for the constant mode only.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        For an odd number of widths, more pairs than axes, an unknown mode, or a frame wider than the axis can fill.

    Notes
    -----
    `cgrad.pad` takes the widths in NumPy's order.  The gradient of an element that the frame repeats is the sum over its copies.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.pad(cg.tensor([[1, 2, 3]]), (1, 2))
    tensor([[0, 1, 2, 3, 0, 0]])
    >>> cg.nn.functional.pad(cg.tensor([[1, 2, 3]]), (2, -1), mode="reflect")
    tensor([[3, 2, 1, 2]])
    """
    widths = [int(width) for width in pad]
    if len(widths) % 2 or len(widths) > 2 * input.ndim:
        raise ValueError(f"pad: needs a (before, after) pair for at most {input.ndim} axes, got {len(widths)} widths")
    if mode not in _MODES:
        raise ValueError(f"pad: mode must be one of {', '.join(_MODES)}, got {mode!r}")
    pairs = [(0, 0)] * (input.ndim - len(widths) // 2) + list(zip(widths[-2::-2], widths[::-2]))
    if mode == "constant":
        return cg.pad(input, pairs, constant_values=0 if value is None else value)
    if value not in (None, 0):
        raise ValueError(f"pad: value={value} has no meaning in mode {mode!r}")
    for n, pair in zip(input.shape, pairs):
        if mode == "reflect" and max(pair) >= max(n, 1) or mode == "circular" and max(pair) > n:
            raise ValueError(f"pad: mode {mode!r} cannot fill a frame of {pair} around {n} elements")
    cut = [(min(before, 0), min(after, 0)) for before, after in pairs]
    if mode == "circular" and min(widths, default=0) < 0:         # what is left goes round; mirrors look at what was there
        input, cut = cg.pad(input, cut), None
    framed = cg.pad(input, [(max(before, 0), max(after, 0)) for before, after in pairs], mode)
    return cg.pad(framed, cut) if cut is not None and min(widths, default=0) < 0 else framed
