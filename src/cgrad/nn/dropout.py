"""Dropout as a layer."""
from __future__ import annotations

from cgrad.nn import functional as F
from cgrad.nn.module import Module

__all__ = ["Dropout"]


class Dropout(Module):
    """In training, set elements to zero with probability `p` and scale the rest by ``1 / (1 - p)``; else do nothing.

    Parameters
    ----------
    p : float, default 0.5
        In [0, 1].
    inplace : bool, default False
        Write the result into the input.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Dropout(0.5).eval()(cg.ones(3))
    tensor([1., 1., 1.])
    """

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"Dropout: the probability p must lie in [0, 1], got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input):
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self):
        return f"p={self.p}, inplace={self.inplace}"
