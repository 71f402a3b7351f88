"""Lengths, angles and distances of vectors along an axis."""
from __future__ import annotations

import cgrad as cg
from cgrad.core.arguments import as_tensor

__all__ = ["cosine_similarity", "normalize", "pairwise_distance", "pdist"]


def normalize(input, p=2.0, dim=1, eps=1e-12):
    """Vectors along an axis divided by their lengths: ``x / max(||x||_p, eps)``.

    Parameters
    ----------
    input : Tensor
    p : float, default 2
        Order of the norm.
    dim : int or tuple of int, default 1
    eps : float
        Smallest divisor.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.normalize(cg.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    return input / cg.clamp_min(cg.vector_norm(input, ord=p, axis=dim, keepdims=True), eps)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """Cosine of the angle between two vectors along an axis.

    Parameters
    ----------
    x1, x2 : Tensor
        Their shapes broadcast.
    dim : int, default 1
        Axis of the vectors in the broadcast shape.
    eps : float
        Smallest length that is divided by.

    Returns
    -------
    Tensor
        Without the axis.

    Notes
    -----
    ``sum(x1 * x2) / (max(||x1||, eps) * max(||x2||, eps))``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.cosine_similarity(cg.tensor([[1.0, 0.0]]), cg.tensor([[3.0, 4.0]]))
    tensor([0.6000])
    """
    x1, x2 = cg.broadcast_tensors(x1, x2)
    return (normalize(x1, 2.0, dim, eps) * normalize(x2, 2.0, dim, eps)).sum(axis=dim)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """Distance of two vectors along the last axis: ``||x1 - x2 + eps||_p``.

    Parameters
    ----------
    x1, x2 : Tensor
        Their shapes broadcast.
    p : float, default 2
        Order of the norm.
    eps : float
        Added to each difference.
    keepdim : bool, default False
        Keep the axis, with length 1.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.pairwise_distance(cg.tensor([[3.0, 4.0]]), cg.tensor([[0.0, 0.0]]))
    tensor([5.0000])
    """
    return cg.vector_norm(x1 - x2 + eps, ord=p, axis=-1, keepdims=keepdim)


def pdist(input, p=2.0):
    """Distances between each two rows of a matrix.

    Parameters
    ----------
    input : Tensor, shape (n, d)
    p : float, default 2
        Order of the norm; ``inf`` for the largest difference, 0 for the number of those that are not 0.

    Returns
    -------
    Tensor, shape (n * (n - 1) / 2,)
        Of rows 0 and 1, 0 and 2, ..., 1 and 2, ...: the upper triangle of ``cdist(input, input)`` without the diagonal.

    Raises
    ------
    ValueError
        If the input is no matrix, or `p` is negative.

    Notes
    -----
    The gradient between equal rows is 0.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.pdist(cg.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 4.0]]))
    tensor([5., 4., 3.])
    """
    input = as_tensor("pdist", input)
    if input.ndim != 2:
        raise ValueError(f"pdist: the input must be a matrix, got shape {tuple(input.shape)}")
    if not p >= 0:
        raise ValueError(f"pdist: p must not be negative, got {p}")
    first, second = cg.triu_indices(input.shape[0], input.shape[0], 1)
    return cg.vector_norm(input[first] - input[second], ord=p, axis=-1)
