"""Dropout as layers; the formulas are in `functional.dropout`."""
from __future__ import annotations

from cgrad.nn import functional as F
from cgrad.nn.module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _Dropout(Module):
    """What all of them share."""

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if not isinstance(p, (int, float)):
            raise TypeError(f"{type(self).__name__}: the probability p must be a number, got {p!r}")
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"{type(self).__name__}: the probability p must lie in [0, 1], got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self):
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
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

    def forward(self, input):
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """`Dropout` of whole channels, for input of shape (N, C, L) or (C, L).

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Dropout1d(0.5).eval()(cg.ones(1, 3))
    tensor([[1., 1., 1.]])
    """

    def forward(self, input):
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """`Dropout` of whole channels, for input of shape (N, C, H, W) or (N, C, L).

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Dropout2d(0.5)(cg.ones(4, 3, 5, 5)).shape
    (4, 3, 5, 5)
    """

    def forward(self, input):
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """`Dropout` of whole channels, for input of shape (N, C, D, H, W) or (C, D, H, W).

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Dropout3d(0.5)(cg.ones(4, 3, 2, 5, 5)).shape
    (4, 3, 2, 5, 5)
    """

    def forward(self, input):
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """Dropout that keeps mean 0 and variance 1, for networks of `SELU`; see `functional.alpha_dropout`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.AlphaDropout(0.5).eval()(cg.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input):
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels, for input of shape (N, C, ...).

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.FeatureAlphaDropout(0.5)(cg.ones(4, 3, 5)).shape
    (4, 3, 5)
    """

    def forward(self, input):
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
