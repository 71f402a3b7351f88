"""Distances and angles as modules; the formulas are in `functional.distance`."""
from __future__ import annotations

from cgrad.nn import functional as F
from cgrad.nn.module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """Distance of two vectors along the last axis; see `functional.pairwise_distance`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.PairwiseDistance()(cg.tensor([[3.0, 4.0]]), cg.tensor([[0.0, 0.0]]))
    tensor([5.0000])
    """

    def __init__(self, p=2.0, eps=1e-6, keepdim=False):
        super().__init__()
        self.p = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1, x2):
        return F.pairwise_distance(x1, x2, self.p, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """Cosine of the angle between two vectors along an axis; see `functional.cosine_similarity`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.CosineSimilarity()(cg.tensor([[1.0, 0.0]]), cg.tensor([[3.0, 4.0]]))
    tensor([0.6000])
    """

    def __init__(self, dim=1, eps=1e-8):
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1, x2):
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
