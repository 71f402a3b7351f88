"""Transformer: layers of attention and perceptrons, stacks of them, and both stacks together."""
from __future__ import annotations

import copy

import cgrad as cg
from cgrad.core.device import check_device
from cgrad.nn import functional as F
from cgrad.nn import init
from cgrad.nn.attention import MultiheadAttention
from cgrad.nn.container import ModuleList
from cgrad.nn.dropout import Dropout
from cgrad.nn.linear import Linear
from cgrad.nn.module import Module
from cgrad.nn.norm import LayerNorm

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer"]


class _Layer(Module):
    """Residual blocks, normalised before or after: attention to the sequence itself, perhaps to another one, and a perceptron."""

    def __init__(self, d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, dtype, names):
        super().__init__()
        if isinstance(activation, str):
            if activation not in ("relu", "gelu"):
                raise ValueError(f"{type(self).__name__}: activation must be a function, 'relu' or 'gelu', got {activation!r}")
            activation = getattr(F, activation)
        for name in names:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, dtype=dtype))
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, dtype=dtype)
        self.norm_first = norm_first
        for i in range(1, len(names) + 2):
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype))
        for i in range(1, len(names) + 2):
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = activation

    def _perceptron(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _residual(self, x, i, block):
        """x with what block number i adds to it."""
        norm, dropout = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
        return x + dropout(block(norm(x))) if self.norm_first else norm(x + dropout(block(x)))


class TransformerEncoderLayer(_Layer):
    """Self-attention and a perceptron, each with a residual path and layer normalisation.

    Parameters
    ----------
    d_model : int
        Width of the sequence.
    nhead : int
        Heads of the attention.
    dim_feedforward : int, default 2048
        Width inside the perceptron.
    dropout : float, default 0.1
    activation : callable or str, default relu
        ``"relu"`` and ``"gelu"`` name theirs.
    layer_norm_eps : float, default 1e-5
    batch_first : bool, default False
        Whether sequences have shape (N, L, E) instead of (L, N, E).
    norm_first : bool, default False
        Whether each block is normalised before it, not after the sum.
    bias : bool, default True
        Whether projections and norms have one.
    dtype : dtype, optional
        Default: the default floating dtype.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)(cg.randn(3, 5, 8)).shape
    (3, 5, 8)
    """

    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5, batch_first=False,
                 norm_first=False, bias=True, device=None, dtype=None):
        check_device(type(self).__name__, device)
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, dtype, ["self_attn"])

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        x = self._residual(src, 1, lambda x: self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal)[0])
        return self._residual(x, 2, self._perceptron)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's results and a perceptron, each with a residual path and layer normalisation.

    See Also
    --------
    TransformerEncoderLayer : The parameters.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)(cg.randn(3, 5, 8), cg.randn(3, 7, 8)).shape
    (3, 5, 8)
    """

    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5, batch_first=False,
                 norm_first=False, bias=True, device=None, dtype=None):
        check_device(type(self).__name__, device)
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, dtype,
                         ["self_attn", "multihead_attn"])

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None, tgt_is_causal=False,
                memory_is_causal=False):
        x = self._residual(tgt, 1, lambda x: self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)[0])
        x = self._residual(x, 2, lambda x: self.multihead_attn(x, memory, memory, memory_key_padding_mask, False, memory_mask,
                                                               is_causal=memory_is_causal)[0])
        return self._residual(x, 3, self._perceptron)


class TransformerEncoder(Module):
    """A stack of encoder layers.

    Parameters
    ----------
    encoder_layer : TransformerEncoderLayer
        Copied `num_layers` times.
    num_layers : int
    norm : Module, optional
        Applied at the end.
    enable_nested_tensor, mask_check : bool
        Taken for compatibility, without effect.

    Examples
    --------
    >>> import cgrad as cg
    >>> layer = cg.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> cg.nn.TransformerEncoder(layer, 2)(cg.randn(3, 5, 8)).shape
    (3, 5, 8)
    """

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal))
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """A stack of decoder layers.

    Parameters
    ----------
    decoder_layer : TransformerDecoderLayer
        Copied `num_layers` times.
    num_layers : int
    norm : Module, optional
        Applied at the end.

    Examples
    --------
    >>> import cgrad as cg
    >>> layer = cg.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> cg.nn.TransformerDecoder(layer, 2)(cg.randn(3, 5, 8), cg.randn(3, 7, 8)).shape
    (3, 5, 8)
    """

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None, tgt_is_causal=None,
                memory_is_causal=False):
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, bool(tgt_is_causal), memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder and a decoder that attends to its results.

    Parameters
    ----------
    d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, dtype
        Those of the layers.
    num_encoder_layers, num_decoder_layers : int, default 6
    custom_encoder, custom_decoder : Module, optional
        In place of the stacks.

    Examples
    --------
    >>> import cgrad as cg
    >>> model = cg.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    >>> causal = model.generate_square_subsequent_mask(5)
    >>> model(cg.randn(3, 7, 8), cg.randn(3, 5, 8), tgt_mask=causal, tgt_is_causal=True).shape
    (3, 5, 8)
    """

    def __init__(self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048, dropout=0.1, activation=F.relu,
                 custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-5, batch_first=False, norm_first=False, bias=True, device=None,
                 dtype=None):
        super().__init__()
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype)

        def norm():
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype)
        self.encoder = custom_encoder or TransformerEncoder(TransformerEncoderLayer(*options), num_encoder_layers, norm())
        self.decoder = custom_decoder or TransformerDecoder(TransformerDecoderLayer(*options), num_decoder_layers, norm())
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first
        self.reset_parameters()

    def reset_parameters(self):
        """Draw new weights, Xavier uniform: the layers of a stack start as copies."""
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None, memory_is_causal=False):
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal, memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        """The causal mask: -inf above the diagonal, 0 elsewhere.

        Examples
        --------
        >>> import cgrad as cg
        >>> cg.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return cg.triu(cg.full((sz, sz), float("-inf"), dtype=dtype), 1)
