"""Scaled dot-product attention."""
from __future__ import annotations

import math

import cgrad as cg
from cgrad.nn.functional.dropout import dropout
from cgrad.ops.attention import attention, attention_weights

__all__ = ["scaled_dot_product_attention"]


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """Weighted means of values: each query weights the values by how well it matches their keys.

    Parameters
    ----------
    query : Tensor, shape ``(*, L, E)``
        Floating point.  Leading axes of all operands broadcast.
    key : Tensor, shape ``(*, S, E)``
    value : Tensor, shape ``(*, S, Ev)``
    attn_mask : Tensor, shape broadcastable to ``(*, L, S)``, optional
        Bool: False leaves a key out for a query; floating point: added to the scores.
    dropout_p : float, default 0.0
        The probability with which each weight is set to 0 (in training and evaluation alike).
    is_causal : bool, default False
        Whether query i sees the keys up to number i only.
    scale : float, optional
        Default: ``1 / sqrt(E)``.
    enable_gqa : bool, default False
        Whether the axis before the last two may be shorter for key and value: each of their heads then serves several of the query's.

    Returns
    -------
    Tensor, shape ``(*, L, Ev)``

    Raises
    ------
    ValueError
        If shapes do not fit, or there is a mask and `is_causal`.
    TypeError
        If an operand is not floating point, or the mask is neither bool nor floating point.

    Notes
    -----
    ``softmax(query @ key.T * scale + attn_mask) @ value`` [1]_.  A query that sees no key gives 0, and no gradient.  The matrix of scores is
    never whole in memory: it is made block by block, forward [2]_ and once more backward [3]_, in less than 2 MiB for each thread.  With dropout,
    for the gradient of the mask, for higher derivatives and forward mode it is whole.

    References
    ----------
    .. [1] Vaswani et al., "Attention Is All You Need", NeurIPS 2017.
    .. [2] Milakov, Gimelshein, "Online normalizer calculation for softmax", arXiv:1805.02867, 2018.
    .. [3] Dao et al., "FlashAttention", NeurIPS 2022.

    Examples
    --------
    >>> import cgrad as cg
    >>> q, k, v = cg.tensor([[0.0, 0.0]]), cg.tensor([[1.0, 2.0], [3.0, 4.0]]), cg.tensor([[1.0], [3.0]])
    >>> cg.nn.functional.scaled_dot_product_attention(q, k, v)
    tensor([[2.]])
    >>> cg.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    tensor([[1.]])
    """
    _check(query, key, value, attn_mask, is_causal)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    if enable_gqa and (query.ndim > 2 and query.shape[-3] != key.shape[-3] or key.ndim > 2 and key.shape[-3] != value.shape[-3]):
        return _grouped(query, key, value, attn_mask, dropout_p, is_causal, scale)
    dtype = cg.result_type(query, key, value)
    query, key, value = (x if x.dtype == dtype else x.astype(dtype) for x in (query, key, value))
    if attn_mask is not None and attn_mask.dtype not in (cg.bool, dtype):
        attn_mask = attn_mask.astype(dtype)
    query, key, value, attn_mask = _broadcast(query, key, value, attn_mask)
    if dropout_p or dtype not in (cg.float32, cg.float64) or 0 in query.shape or 0 in value.shape:
        return dropout(attention_weights(query, key, attn_mask, scale, bool(is_causal)), dropout_p) @ value
    return attention(query, key, value, attn_mask, float(scale), bool(is_causal))[0]


def _check(query, key, value, attn_mask, is_causal):
    shapes = f"got query {tuple(query.shape)}, key {tuple(key.shape)} and value {tuple(value.shape)}"
    for x in (query, key, value):
        if not x.dtype.is_floating_point:
            raise TypeError(f"scaled_dot_product_attention: query, key and value must be floating point, got {x.dtype}; convert it first")
        if x.ndim < 2:
            raise ValueError(f"scaled_dot_product_attention: query, key and value need at least two axes; {shapes}")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"scaled_dot_product_attention: query and key must have the same last axis; {shapes}")
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"scaled_dot_product_attention: key and value must have the same second-last axis; {shapes}")
    if attn_mask is not None:
        if is_causal:
            raise ValueError("scaled_dot_product_attention: with is_causal=True there can be no attn_mask; put the causal mask into it")
        if attn_mask.dtype != cg.bool and not attn_mask.dtype.is_floating_point:
            raise TypeError(f"scaled_dot_product_attention: attn_mask must be bool or floating point, got {attn_mask.dtype}")


def _broadcast(query, key, value, attn_mask):
    """The operands with equal batch axes."""
    batch = query.shape[:-2]
    if key.shape[:-2] != batch or value.shape[:-2] != batch:
        try:
            batch = cg.broadcast_shapes(batch, key.shape[:-2], value.shape[:-2])
        except ValueError:
            raise ValueError(f"scaled_dot_product_attention: the leading axes of query {tuple(query.shape)}, key {tuple(key.shape)} and value "
                             f"{tuple(value.shape)} do not broadcast") from None
        query, key, value = (cg.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (query, key, value))
    if attn_mask is not None:
        scores = (*batch, query.shape[-2], key.shape[-2])
        if attn_mask.shape != scores:
            try:
                attn_mask = cg.broadcast_to(attn_mask, scores)
            except ValueError:
                raise ValueError(f"scaled_dot_product_attention: attn_mask must broadcast to the shape {scores} of the scores, got "
                                 f"{tuple(attn_mask.shape)}") from None
    return query, key, value, attn_mask


def _grouped(query, key, value, attn_mask, *options):
    """Heads of key and value that serve several of the query's: an axis of groups, along which they are broadcast."""
    heads, n = key.shape[-3] if key.ndim > 2 else 1, query.shape[-3]
    if key.ndim < 3 or value.ndim < 3 or n % max(heads, 1) or n % max(value.shape[-3], 1):
        raise ValueError(f"scaled_dot_product_attention: the heads of query {tuple(query.shape)} must be a multiple of those of key "
                         f"{tuple(key.shape)} and value {tuple(value.shape)}")
    if value.shape[-3] != heads:
        value = cg.repeat_interleave(value, n // value.shape[-3], axis=-3)
        key, heads = cg.repeat_interleave(key, n // heads, axis=-3), n
    query = query.reshape(*query.shape[:-3], heads, n // heads, *query.shape[-2:])
    if attn_mask is not None and attn_mask.ndim > 2:
        many = attn_mask.shape[-3] == n
        attn_mask = attn_mask.reshape(*attn_mask.shape[:-3], heads if many else 1, n // heads if many else 1, *attn_mask.shape[-2:])
    out = scaled_dot_product_attention(query, key.unsqueeze(-3), value.unsqueeze(-3), attn_mask, *options)
    return out.reshape(*out.shape[:-4], n, *out.shape[-2:])
