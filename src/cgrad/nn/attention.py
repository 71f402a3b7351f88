"""Attention with several heads."""
from __future__ import annotations

import cgrad as cg
from cgrad.core.device import check_device
from cgrad.nn import init
from cgrad.nn.functional.multihead import attend, as_given, is_single, projected
from cgrad.nn.linear import Linear
from cgrad.nn.module import Module, check_sizes
from cgrad.nn.parameter import Parameter

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
        check_device(type(self).__name__, device)
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        check_sizes(self, embed_dim=embed_dim, num_heads=num_heads, kdim=self.kdim, vdim=self.vdim)
        if embed_dim % num_heads:
            raise ValueError(f"MultiheadAttention: embed_dim={embed_dim} must be a multiple of num_heads={num_heads}")
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
        single = is_single("MultiheadAttention", query, key, value)
        own, weight = self.in_proj_weight, (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        q, k, v = projected(query, key, value, single, self.batch_first, weight if own is None else own, self.in_proj_bias)
        out, weights = attend("MultiheadAttention", q, k, v, single, self.num_heads, self.bias_k, self.bias_v, self.add_zero_attn,
                              self.dropout if self.training else 0.0, key_padding_mask, attn_mask, need_weights, average_attn_weights, is_causal)
        return as_given(self.out_proj(out), weights, single, self.batch_first)

    def extra_repr(self):
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, batch_first={self.batch_first}"
