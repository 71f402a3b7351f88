"""Rows of a table picked by index."""
from __future__ import annotations

import cgrad as cg
from cgrad.core.forward.embedding import check_indices
from cgrad.ops.embedding import embedding as _embedding

__all__ = ["embedding"]


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """Rows of `weight` at the indices `input`.

    Parameters
    ----------
    input : Tensor of integers, any shape
    weight : Tensor, shape (num_embeddings, embedding_dim)
    padding_idx : int, optional
        The row that gets no gradient; may count from the end.
    max_norm : float, optional
        Rows that are picked and have a larger norm are first scaled down to it, in `weight` itself and without a gradient.
    norm_type : float, default 2
        The order of that norm.
    scale_grad_by_freq : bool, default False
        Divide the gradient of a row by how often its index occurs in `input`.
    sparse : bool, default False
        Taken for compatibility: the gradient of `weight` is dense either way.

    Returns
    -------
    Tensor, shape (*input.shape, embedding_dim)

    Raises
    ------
    IndexError
        If an index is not in ``[0, num_embeddings)``.
    TypeError
        If the indices are not integers.
    ValueError
        If `weight` has not two axes, or there is no row `padding_idx`.

    Notes
    -----
    Gradient: zeros with the gradients of all places where a row was picked added, in the order of the indices.

    Examples
    --------
    >>> import cgrad as cg
    >>> weight = cg.tensor([[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]], requires_grad=True)
    >>> y = cg.nn.functional.embedding(cg.tensor([2, 0, 2]), weight)
    >>> y.detach()
    tensor([[2.0000, 2.5000],
            [0.0000, 0.5000],
            [2.0000, 2.5000]])
    >>> y.sum().backward()
    >>> weight.grad
    tensor([[1., 1.],
            [0., 0.],
            [2., 2.]])
    """
    padding = -1
    if weight.ndim != 2:
        raise ValueError(f"embedding: the weight must have shape (num_embeddings, embedding_dim), got {tuple(weight.shape)}")
    if padding_idx is not None:
        padding = row_number("embedding", padding_idx, weight.shape[0])
    if max_norm is not None:
        _renormalize(input, weight, float(max_norm), float(norm_type))
    return _embedding(weight, input, padding, bool(scale_grad_by_freq))


def row_number(name, padding_idx, n_rows):
    """`padding_idx` counted from the front."""
    if not -n_rows <= padding_idx < n_rows:
        raise ValueError(f"{name}: padding_idx must be the number of one of {n_rows} rows, got {padding_idx}")
    return padding_idx % n_rows


def _renormalize(input, weight, max_norm, norm_type):
    """Scale the rows of `weight` that are picked and longer than `max_norm` down to it."""
    check_indices(input, weight.shape[0])
    with cg.no_grad():
        index = input.reshape(-1)
        rows = _embedding(weight.detach(), index, -1, False)
        norms = cg.vector_norm(rows, norm_type, axis=1, keepdims=True)
        if (norms > max_norm).any():
            # 1e-7 as in PyTorch; rows that are picked more than once are written more than once with the same numbers
            weight[index] = cg.where(norms > max_norm, rows * (max_norm / (norms + 1e-7)), rows)
