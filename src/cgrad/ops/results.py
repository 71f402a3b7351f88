"""Named tuples: what functions with several results give back."""
from typing import NamedTuple

from cgrad.core.tensor import Tensor


class Selection(NamedTuple):
    """Elements, and their places along an axis."""

    values: Tensor
    indices: Tensor


class Extremes(NamedTuple):
    """Smallest and largest elements."""

    min: Tensor
    max: Tensor


class Histogram(NamedTuple):
    """Counts in intervals, and the edges of these."""

    hist: Tensor
    bin_edges: Tensor


class UniqueAll(NamedTuple):
    """Unique elements, where each occurs first, which one stands at each place, and how often each occurs."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Unique elements, and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Unique elements, and which one stands at each place."""

    values: Tensor
    inverse_indices: Tensor
