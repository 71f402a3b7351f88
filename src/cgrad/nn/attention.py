"""Attention with several heads."""
from __future__ import annotations

import cgrad as cg
from cgrad.nn import functional as F
from cgrad.nn import init
from cgrad.nn.linear import Linear
from cgrad.nn.module import Module
from cgrad.nn.parameter import Parameter
from cgrad.ops.attention import attention_weights

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention of several heads, each on a part of the projected width, and a projection of what they found.

    Parameters
    ----------
    embed_dim : int
        Width of queries and results.
    num_heads : int
        Divides `embed_dim`.
    dropout : float, default 0.0
        Of the weights, in training.
    bias : bool, default True
        Whether the projections have one.
    add_bias_kv : bool, default False
        Whether a learned key and value are added to each sequence.
    add_zero_attn : bool, default False
        Whether a key and a value of zeros are added.
    kdim, vdim : int, optional
        Width of keys and values, if not `embed_dim`.
    batch_first : bool, default False
        Whether sequences have shape (N, L, E) instead of (L, N, E).
    dtype : dtype, optional
        Default: the default floating dtype.

    Attributes
    ----------
    in_proj_weight : Parameter, shape (3 * embed_dim, embed_dim), or None
        None with a `kdim` or `vdim` of its own; then there are `q_proj_weight`, `k_proj_weight` and `v_proj_weight`.
    in_proj_bias : Parameter, shape (3 * embed_dim,), or None
    out_proj : Linear
    bias_k, bias_v : Parameter, shape (1, 1, embed_dim), or None

    Notes
    -----
    The weights start Xavier uniform, the biases 0, `bias_k` and `bias_v` Xavier normal, as in PyTorch.  A query that sees no key gives the
    bias of `out_proj`, not NaN.

    See Also
    --------
    cgrad.nn.functional.scaled_dot_product_attention : What each head computes; its masks are True where a key is *seen*, here where it is not.

    Examples
    --------
    >>> import cgrad as cg
    >>> layer = cg.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = cg.randn(3, 5, 8)
    >>> out, weights = layer(x, x, x)
    >>> out.shape, weights.shape
    ((3, 5, 8), (3, 5, 5))
    """

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None, vdim=None,
                 batch_first=False, device=None, dtype=None):
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ValueError(f"MultiheadAttention: embed_dim={embed_dim} must be a multiple of num_heads={num_heads}, both at least 1")
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn
        packed = self.kdim == self.vdim == embed_dim
        for name, shape, wanted in (("q_proj_weight", (embed_dim, embed_dim), not packed), ("k_proj_weight", (embed_dim, self.kdim), not packed),
                                    ("v_proj_weight", (embed_dim, self.vdim), not packed), ("in_proj_weight", (3 * embed_dim, embed_dim), packed),
                                    ("in_proj_bias", (3 * embed_dim,), bias)):
            self.register_parameter(name, Parameter(cg.empty(shape, dtype=dtype)) if wanted else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, Parameter(cg.empty((1, 1, embed_dim), dtype=dtype)) if add_bias_kv else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw new values."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        self.out_proj.reset_parameters()
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
            init.xavier_normal_(self.bias_v)

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True, is_causal=False):
        """(result, weights): the weights, of all heads or their mean, only if needed.

        Parameters
        ----------
        query, key, value : Tensor, shape (L, N, E), (S, N, kdim), (S, N, vdim)
            N first if `batch_first`; or without N.
        key_padding_mask : Tensor, shape (N, S), optional
            Bool: True leaves a key out; floating point: added to the scores.
        need_weights : bool, default True
            Without them the matrix of weights is never whole in memory.
        attn_mask : Tensor, shape (L, S) or (N * num_heads, L, S), optional
            As `key_padding_mask`, for each query.
        average_attn_weights : bool, default True
            Whether the weights are the means over the heads.
        is_causal : bool, default False
            Says that `attn_mask` is the causal one, which then need not be read.
        """
        if query.ndim not in (2, 3) or key.ndim != query.ndim or value.ndim != query.ndim:
            raise ValueError(f"MultiheadAttention: query, key and value must have 2 axes, or 3 with a batch, got {tuple(query.shape)}, "
                             f"{tuple(key.shape)} and {tuple(value.shape)}")
        if is_causal and attn_mask is None:
            raise ValueError("MultiheadAttention: is_causal says what attn_mask is and needs it")
        single = query.ndim == 2
        if single and key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
        q, k, v = self._projected(query, key, value, single)
        mask = self._mask(q, k, attn_mask, key_padding_mask)
        if self.bias_k is not None:
            k, v = (cg.concat([x, b.expand(x.shape[0], 1, self.embed_dim)], 1) for x, b in ((k, self.bias_k), (v, self.bias_v)))
        if self.add_zero_attn:
            k, v = (cg.concat([x, cg.zeros((x.shape[0], 1, self.embed_dim), dtype=x.dtype)], 1) for x in (k, v))
        added = k.shape[1] - (0 if mask is None else mask.shape[-1])
        if mask is not None and added:
            mask = F.pad(mask, (0, added), value=mask.dtype == cg.bool)
        q, k, v = (x.reshape(*x.shape[:2], self.num_heads, self.head_dim).permute(0, 2, 1, 3) for x in (q, k, v))
        dropout = self.dropout if self.training else 0.0
        if need_weights:
            weights = attention_weights(q, k, mask, self.head_dim ** -0.5, False)
            weights = F.dropout(weights, dropout) if dropout else weights
            out = weights @ v
            weights = weights.mean(1) if average_attn_weights else weights
        elif is_causal and key_padding_mask is None:
            weights, out = None, F.scaled_dot_product_attention(q, k, v, None, dropout, True)
        else:
            weights, out = None, F.scaled_dot_product_attention(q, k, v, mask, dropout)
        out = self.out_proj(out.permute(0, 2, 1, 3).reshape(q.shape[0], q.shape[2], self.embed_dim))
        if single:
            return out.squeeze(0), None if weights is None else weights.squeeze(0)
        return out if self.batch_first else out.transpose(0, 1), weights

    def _projected(self, query, key, value, single):
        """Query, key and value projected, the batch first."""
        same, same_kv = query is key and key is value, key is value
        query, key, value = (x.unsqueeze(0) if single else x if self.batch_first else x.transpose(0, 1) for x in (query, key, value))
        e, weight, bias = self.embed_dim, self.in_proj_weight, self.in_proj_bias
        if weight is None:
            biases = (None,) * 3 if bias is None else bias.chunk(3)
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
            return [F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases)]
        if same:
            return F.linear(query, weight, bias).chunk(3, -1)
        if same_kv:
            q = F.linear(query, weight[:e], None if bias is None else bias[:e])
            return q, *F.linear(key, weight[e:], None if bias is None else bias[e:]).chunk(2, -1)
        return [F.linear(x, weight[i * e:(i + 1) * e], None if bias is None else bias[i * e:(i + 1) * e])
                for i, x in enumerate((query, key, value))]

    def _mask(self, q, k, attn_mask, key_padding_mask):
        """Both masks as one that `scaled_dot_product_attention` takes, or None."""
        n, queries, keys = q.shape[0], q.shape[1], k.shape[1]
        masks = []
        for name, mask, shapes, shape in (("attn_mask", attn_mask, ((queries, keys), (n * self.num_heads, queries, keys)), (-1, self.num_heads, queries, keys)),
                                          ("key_padding_mask", key_padding_mask, ((n, keys),), (n, 1, 1, keys))):
            if mask is None:
                continue
            if tuple(mask.shape) not in shapes:
                raise ValueError(f"MultiheadAttention: {name} must have shape {' or '.join(map(str, shapes))}, got {tuple(mask.shape)}")
            masks.append(mask if mask.ndim == 2 and name == "attn_mask" else mask.reshape(shape))
        if not masks:
            return None
        if all(mask.dtype == cg.bool for mask in masks):
            return ~masks[0] if len(masks) == 1 else ~(masks[0] | masks[1])
        masks = [cg.where(mask, float("-inf"), cg.zeros((), dtype=q.dtype)) if mask.dtype == cg.bool else mask for mask in masks]
        return masks[0] if len(masks) == 1 else masks[0] + masks[1]

    def extra_repr(self):
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, batch_first={self.batch_first}"
