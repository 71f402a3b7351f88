"""Stateless functions of networks: ``import cgrad.nn.functional as F``.

Each topic has a file of its own: `activation`, `linear`, `dropout`, `loss`, `classification`, `norm`, `embedding`.
"""
from cgrad.nn.functional.activation import (
    celu, elu, gelu, hardsigmoid, hardswish, hardtanh, leaky_relu, log_softmax, logsigmoid, mish, relu, relu6, selu, sigmoid, silu,
    softmax, softmin, softplus, softsign, tanh, tanhshrink,
)
from cgrad.nn.functional.classification import (
    binary_cross_entropy, binary_cross_entropy_with_logits, cross_entropy, nll_loss,
)
from cgrad.nn.functional.dropout import dropout
from cgrad.nn.functional.embedding import embedding
from cgrad.nn.functional.linear import linear, one_hot
from cgrad.nn.functional.loss import huber_loss, kl_div, l1_loss, mse_loss, smooth_l1_loss
from cgrad.nn.functional.norm import layer_norm, rms_norm

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "cross_entropy", "dropout", "elu", "embedding", "gelu", "hardsigmoid",
    "hardswish", "hardtanh", "huber_loss", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear", "log_softmax", "logsigmoid", "mish", "mse_loss",
    "nll_loss", "one_hot", "relu", "relu6", "rms_norm", "selu", "sigmoid", "silu", "smooth_l1_loss", "softmax", "softmin", "softplus", "softsign",
    "tanh", "tanhshrink",
]
