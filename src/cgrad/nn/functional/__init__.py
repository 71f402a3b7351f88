"""Stateless functions of networks: ``import cgrad.nn.functional as F``.

Each topic has a file of its own: `activation`, `linear`, `dropout`, `loss`, `classification`, `norm`, `embedding`,
`distance`, `padding`, `image`.
"""
from cgrad.nn.functional.activation import (
    celu, elu, gelu, glu, hardshrink, hardsigmoid, hardswish, hardtanh, leaky_relu, log_softmax, logsigmoid, mish, prelu, relu, relu6, rrelu,
    selu, sigmoid, silu, softmax, softmin, softplus, softshrink, softsign, tanh, tanhshrink, threshold,
)
from cgrad.nn.functional.classification import (
    binary_cross_entropy, binary_cross_entropy_with_logits, cross_entropy, nll_loss,
)
from cgrad.nn.functional.distance import cosine_similarity, normalize, pairwise_distance
from cgrad.nn.functional.dropout import dropout
from cgrad.nn.functional.embedding import embedding
from cgrad.nn.functional.image import (
    channel_shuffle, fold, interpolate, pixel_shuffle, pixel_unshuffle, unfold, upsample,
)
from cgrad.nn.functional.linear import linear, one_hot
from cgrad.nn.functional.loss import huber_loss, kl_div, l1_loss, mse_loss, smooth_l1_loss
from cgrad.nn.functional.norm import layer_norm, rms_norm
from cgrad.nn.functional.padding import pad

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "channel_shuffle", "cosine_similarity", "cross_entropy", "dropout", "elu",
    "embedding", "fold", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "huber_loss", "interpolate", "kl_div", "l1_loss",
    "layer_norm", "leaky_relu", "linear", "log_softmax", "logsigmoid", "mish", "mse_loss", "nll_loss", "normalize", "one_hot", "pad",
    "pairwise_distance", "pixel_shuffle", "pixel_unshuffle", "prelu", "relu", "relu6", "rms_norm", "rrelu", "selu", "sigmoid", "silu",
    "smooth_l1_loss", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "unfold", "upsample",
]
