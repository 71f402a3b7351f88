"""Rows of a table picked by index."""
from __future__ import annotations

import cgrad as cg
from cgrad.core.forward.embedding import bag_starts, check_indices
from cgrad.ops.embedding import embedding as _embedding
from cgrad.ops.embedding import embedding_bag as _embedding_bag

__all__ = ["embedding", "embedding_bag"]


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
    Tensor, shape ``(*input.shape, embedding_dim)``

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


def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="mean", sparse=False,
                  per_sample_weights=None, include_last_offset=False, padding_idx=None):
    """Sums, means or maxima of rows of a table, for bags of indices.

    Parameters
    ----------
    input : Tensor of integers, shape (B, N) or (N,)
        A bag in each row; or all bags one after the other, with `offsets`.
    weight : Tensor, shape (num_embeddings, embedding_dim)
    offsets : Tensor of integers, shape (B,), optional
        Where each bag starts in a 1-d input; the first is 0.
    max_norm, norm_type, scale_grad_by_freq, sparse
        As for `embedding`.
    mode : {"mean", "sum", "max"}
        What is taken over the rows of a bag; 0 for an empty one.
    per_sample_weights : Tensor, shape as `input`, optional
        Factors of the rows, with mode "sum".
    include_last_offset : bool, default False
        Whether the last offset is the end of the last bag.
    padding_idx : int, optional
        An index that counts as not there.

    Returns
    -------
    Tensor, shape (B, embedding_dim)

    Raises
    ------
    IndexError
        If an index is not in ``[0, num_embeddings)``.
    ValueError
        If shapes, offsets or mode do not fit.

    Notes
    -----
    Gradient of "max": equal largest rows of a bag share it evenly.

    Examples
    --------
    >>> import cgrad as cg
    >>> weight = cg.tensor([[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]])
    >>> cg.nn.functional.embedding_bag(cg.tensor([2, 0, 1]), weight, cg.tensor([0, 2]), mode="sum")
    tensor([[2.0000, 3.0000],
            [1.0000, 1.5000]])
    """
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"embedding_bag: mode must be 'sum', 'mean' or 'max', got {mode!r}")
    if mode == "max" and (scale_grad_by_freq or sparse):
        raise ValueError("embedding_bag: mode 'max' goes with neither scale_grad_by_freq nor sparse")
    if per_sample_weights is not None and (mode != "sum" or per_sample_weights.shape != input.shape):
        raise ValueError(f"embedding_bag: per_sample_weights need mode 'sum' and the shape {tuple(input.shape)} of the input, got mode {mode!r} and "
                         f"shape {tuple(per_sample_weights.shape)}")
    starts, used = _bags(input, offsets, include_last_offset)
    index = input.reshape(-1) if used == input.numel() else input[:used]
    padding = -1 if padding_idx is None else row_number("embedding_bag", padding_idx, weight.shape[0])
    if mode == "max":
        return _largest(index, weight, starts, max_norm, norm_type, padding)
    if max_norm is not None:
        _renormalize(index, weight, float(max_norm), float(norm_type))
    if per_sample_weights is not None:
        per_sample_weights = per_sample_weights.reshape(-1)[:used]
        if per_sample_weights.dtype != weight.dtype:
            per_sample_weights = per_sample_weights.astype(weight.dtype)
    return _embedding_bag(weight, index, starts, per_sample_weights, padding, mode == "mean", bool(scale_grad_by_freq))


def _largest(index, weight, starts, max_norm, norm_type, padding):
    """The largest elements of the rows in each bag."""
    bag = cg.searchsorted(starts[:-1], cg.arange(index.shape[0]), right=True) - 1 if starts.shape[0] > 1 else cg.zeros(0, dtype=cg.int64)
    rows = cg.where((index != padding).unsqueeze(1), embedding(index, weight, None, max_norm, norm_type), float("-inf"))
    found = cg.index_reduce(cg.zeros((starts.shape[0] - 1, weight.shape[1]), dtype=rows.dtype), 0, bag, rows, "amax", include_self=False)
    return cg.where(found == float("-inf"), 0.0, found)


def _bags(input, offsets, include_last_offset):
    """(where each bag starts and the last one ends, how many indices belong to one)"""
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError("embedding_bag: a 2-d input has a bag in each row, so offsets must be None")
        return bag_starts(None, input.shape[0], input.numel(), False), input.numel()
    if input.ndim != 1 or offsets is None or offsets.ndim != 1:
        raise ValueError(f"embedding_bag: a 2-d input, or a 1-d one with 1-d offsets is needed, got an input of shape {tuple(input.shape)} and offsets "
                         f"{None if offsets is None else tuple(offsets.shape)}")
    n_bags = offsets.shape[0] - include_last_offset
    if n_bags < 0:
        raise ValueError("embedding_bag: include_last_offset needs at least one offset")
    starts = bag_starts(offsets, n_bags, input.shape[0], include_last_offset)
    return starts, int(starts[-1])


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
