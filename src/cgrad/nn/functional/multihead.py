"""Attention of several heads, each on a part of the projected width; `MultiheadAttention` (nn/attention.py) keeps its weights."""
from __future__ import annotations

import cgrad as cg
from cgrad.nn.functional.attention import scaled_dot_product_attention
from cgrad.nn.functional.dropout import dropout
from cgrad.nn.functional.linear import linear
from cgrad.nn.functional.padding import pad
from cgrad.ops.attention import attention_weights

__all__ = ["multi_head_attention_forward"]


def multi_head_attention_forward(query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn,
                                 dropout_p, out_proj_weight, out_proj_bias, training=True, key_padding_mask=None, need_weights=True,
                                 attn_mask=None, use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None,
                                 static_k=None, static_v=None, average_attn_weights=True, is_causal=False):
    """What `cgrad.nn.MultiheadAttention` computes, from weights that are given; (result, weights).

    Parameters
    ----------
    query, key, value : Tensor, shape (L, N, E), (S, N, kdim), (S, N, vdim)
        Or without N.
    embed_dim_to_check : int
        E, as a check.
    num_heads : int
    in_proj_weight : Tensor, shape (3 * E, E), or None
    in_proj_bias : Tensor, shape (3 * E,), or None
    bias_k, bias_v : Tensor, shape (1, 1, E), or None
    add_zero_attn : bool
    dropout_p : float
        Of the weights, if `training`.
    out_proj_weight : Tensor, shape (E, E)
    out_proj_bias : Tensor, shape (E,), or None
    use_separate_proj_weight : bool, default False
        Whether `q_proj_weight` and its kin stand in for `in_proj_weight`.
    static_k, static_v : None
        Must be None.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Examples
    --------
    >>> import cgrad as cg
    >>> layer, x = cg.nn.MultiheadAttention(4, 2), cg.randn(3, 5, 4)
    >>> out, _ = cg.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 4, 2, layer.in_proj_weight, layer.in_proj_bias, None, None, False, 0.0, layer.out_proj.weight, layer.out_proj.bias)
    >>> cg.array_equal(out, layer(x, x, x)[0])
    True
    """
    name = "multi_head_attention_forward"
    if static_k is not None or static_v is not None:
        raise ValueError(f"{name}: static_k and static_v are not there; concatenate them to key and value")
    if query.shape[-1] != embed_dim_to_check or num_heads <= 0 or embed_dim_to_check % num_heads:
        raise ValueError(f"{name}: the last axis of query {tuple(query.shape)} must be embed_dim_to_check={embed_dim_to_check}, "
                         f"a multiple of num_heads={num_heads}")
    single = is_single(name, query, key, value)
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else in_proj_weight
    q, k, v = projected(query, key, value, single, False, weights, in_proj_bias)
    out, found = attend(name, q, k, v, single, num_heads, bias_k, bias_v, add_zero_attn, dropout_p if training else 0.0, key_padding_mask,
                        attn_mask, need_weights, average_attn_weights, is_causal)
    return as_given(linear(out, out_proj_weight, out_proj_bias), found, single, False)


def is_single(name, query, key, value):
    """Whether there is one sequence, without an axis of a batch."""
    if query.ndim not in (2, 3) or key.ndim != query.ndim or value.ndim != query.ndim:
        raise ValueError(f"{name}: query, key and value must have 2 axes, or 3 with a batch, got {tuple(query.shape)}, "
                         f"{tuple(key.shape)} and {tuple(value.shape)}")
    return query.ndim == 2


def as_given(out, weights, single, batch_first):
    """Result and weights with the axes in the order of the inputs."""
    if single:
        return out.squeeze(0), None if weights is None else weights.squeeze(0)
    return out if batch_first else out.transpose(0, 1), weights


def projected(query, key, value, single, batch_first, weight, bias):
    """Query, key and value projected, the batch first; `weight` is one matrix for all, or three."""
    same, same_kv = query is key and key is value, key is value
    query, key, value = (x.unsqueeze(0) if single else x if batch_first else x.transpose(0, 1) for x in (query, key, value))
    if isinstance(weight, tuple):
        biases = (None,) * 3 if bias is None else bias.chunk(3)
        return [linear(x, w, b) for x, w, b in zip((query, key, value), weight, biases)]
    if same:
        return linear(query, weight, bias).chunk(3, -1)
    e = weight.shape[0] // 3
    if same_kv:
        q = linear(query, weight[:e], None if bias is None else bias[:e])
        return q, *linear(key, weight[e:], None if bias is None else bias[e:]).chunk(2, -1)
    return [linear(x, weight[i * e:(i + 1) * e], None if bias is None else bias[i * e:(i + 1) * e]) for i, x in enumerate((query, key, value))]


def attend(name, q, k, v, single, num_heads, bias_k, bias_v, add_zero_attn, dropout_p, key_padding_mask, attn_mask, need_weights, average,
           is_causal):
    """What the heads find, side by side, of shape (N, L, E), and the weights if needed; from projected q, k and v, the batch first."""
    if is_causal and attn_mask is None:
        raise ValueError(f"{name}: is_causal says what attn_mask is and needs it")
    if single and key_padding_mask is not None:
        key_padding_mask = key_padding_mask.unsqueeze(0)
    n, queries, width = q.shape
    mask = _mask(name, q, k, num_heads, attn_mask, key_padding_mask)
    if bias_k is not None:
        k, v = (cg.concat([x, b.expand(n, 1, width)], 1) for x, b in ((k, bias_k), (v, bias_v)))
    if add_zero_attn:
        k, v = (cg.concat([x, cg.zeros((n, 1, width), dtype=x.dtype)], 1) for x in (k, v))
    added = k.shape[1] - (0 if mask is None else mask.shape[-1])
    if mask is not None and added:
        mask = pad(mask, (0, added), value=mask.dtype == cg.bool)
    q, k, v = (x.reshape(*x.shape[:2], num_heads, width // num_heads).permute(0, 2, 1, 3) for x in (q, k, v))
    if need_weights:
        weights = attention_weights(q, k, mask, (width // num_heads) ** -0.5, False)
        weights = dropout(weights, dropout_p) if dropout_p else weights
        out = weights @ v
        weights = weights.mean(1) if average else weights
    elif is_causal and key_padding_mask is None:
        weights, out = None, scaled_dot_product_attention(q, k, v, None, dropout_p, True)
    else:
        weights, out = None, scaled_dot_product_attention(q, k, v, mask, dropout_p)
    return out.permute(0, 2, 1, 3).reshape(n, queries, width), weights


def _mask(name, q, k, num_heads, attn_mask, key_padding_mask):
    """Both masks as one that `scaled_dot_product_attention` takes, or None."""
    n, queries, keys = q.shape[0], q.shape[1], k.shape[1]
    masks = []
    for what, mask, shapes, shape in (("attn_mask", attn_mask, ((queries, keys), (n * num_heads, queries, keys)), (-1, num_heads, queries, keys)),
                                      ("key_padding_mask", key_padding_mask, ((n, keys),), (n, 1, 1, keys))):
        if mask is None:
            continue
        if tuple(mask.shape) not in shapes:
            raise ValueError(f"{name}: {what} must have shape {' or '.join(map(str, shapes))}, got {tuple(mask.shape)}")
        masks.append(mask if mask.ndim == 2 and what == "attn_mask" else mask.reshape(shape))
    if not masks:
        return None
    if all(mask.dtype == cg.bool for mask in masks):
        return ~masks[0] if len(masks) == 1 else ~(masks[0] | masks[1])
    masks = [cg.where(mask, float("-inf"), cg.zeros((), dtype=q.dtype)) if mask.dtype == cg.bool else mask for mask in masks]
    return masks[0] if len(masks) == 1 else masks[0] + masks[1]
