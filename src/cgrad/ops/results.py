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


class Frexp(NamedTuple):
    """Mantissas and exponents."""

    mantissa: Tensor
    exponent: Tensor


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


class CholeskyEx(NamedTuple):
    """Cholesky factors, and 0 or the order of the first leading minor that is not positive."""

    L: Tensor
    info: Tensor


class Eigh(NamedTuple):
    """Eigenvalues in ascending order, and orthonormal eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class InvEx(NamedTuple):
    """Inverses, and 0 or the number of the first column that depends on those before it."""

    inverse: Tensor
    info: Tensor


class Lstsq(NamedTuple):
    """Least-squares solution, sums of squares of what is left, rank and singular values of the matrix."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


class LU(NamedTuple):
    """A permutation, a lower triangle with ones on its diagonal, and an upper triangle."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactor(NamedTuple):
    """Both triangles in one matrix, and which rows were exchanged."""

    LU: Tensor
    pivots: Tensor


class QR(NamedTuple):
    """Orthonormal columns, and an upper triangle."""

    Q: Tensor
    R: Tensor


class Slogdet(NamedTuple):
    """Sign of a determinant, and the logarithm of its magnitude."""

    sign: Tensor
    logabsdet: Tensor


class SVD(NamedTuple):
    """Left singular vectors as columns, singular values in descending order, right singular vectors as rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor
