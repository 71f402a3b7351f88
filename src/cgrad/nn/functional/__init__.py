"""Stateless functions of networks: ``import cgrad.nn.functional as F``.

Each topic has a file of its own: `activation`, `linear`, `dropout`, `loss`, `classification`, `margin`, `ctc`, `norm`, `attention`, `multihead`, `embedding`,
`conv`, `distance`, `padding`, `pooling`, `fractional`, `image`, `recurrent`, `sampling`.
"""
from cgrad.nn.functional.activation import (
    celu, celu_, elu, elu_, gelu, glu, gumbel_softmax, hardshrink, hardsigmoid, hardswish, hardtanh, hardtanh_, leaky_relu, leaky_relu_,
    log_softmax, logsigmoid, mish, prelu, relu, relu6, relu_, rrelu, rrelu_, selu, selu_, sigmoid, silu, softmax, softmin, softplus, softshrink,
    softsign, tanh, tanhshrink, threshold, threshold_,
)
from cgrad.nn.functional.attention import scaled_dot_product_attention
from cgrad.nn.functional.classification import binary_cross_entropy, binary_cross_entropy_with_logits, cross_entropy, nll_loss
from cgrad.nn.functional.conv import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from cgrad.nn.functional.ctc import ctc_loss
from cgrad.nn.functional.distance import cosine_similarity, normalize, pairwise_distance, pdist
from cgrad.nn.functional.dropout import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout
from cgrad.nn.functional.embedding import embedding, embedding_bag
from cgrad.nn.functional.fractional import fractional_max_pool2d, fractional_max_pool3d
from cgrad.nn.functional.image import channel_shuffle, fold, interpolate, pixel_shuffle, pixel_unshuffle, unfold, upsample
from cgrad.nn.functional.linear import bilinear, linear, one_hot
from cgrad.nn.functional.loss import gaussian_nll_loss, huber_loss, kl_div, l1_loss, mse_loss, poisson_nll_loss, smooth_l1_loss
from cgrad.nn.functional.margin import (
    cosine_embedding_loss, hinge_embedding_loss, margin_ranking_loss, multi_margin_loss, multilabel_margin_loss, multilabel_soft_margin_loss,
    soft_margin_loss, triplet_margin_loss, triplet_margin_with_distance_loss,
)
from cgrad.nn.functional.multihead import multi_head_attention_forward
from cgrad.nn.functional.norm import batch_norm, group_norm, instance_norm, layer_norm, local_response_norm, rms_norm
from cgrad.nn.functional.padding import pad
from cgrad.nn.functional.pooling import (
    adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d, avg_pool1d,
    avg_pool2d, avg_pool3d, lp_pool1d, lp_pool2d, lp_pool3d, max_pool1d, max_pool2d, max_pool3d, max_unpool1d, max_unpool2d, max_unpool3d,
)
from cgrad.nn.functional.recurrent import gru_cell, lstm_cell, rnn_relu_cell, rnn_tanh_cell
from cgrad.nn.functional.sampling import affine_grid, grid_sample
from cgrad.ops.define import open_doors

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d",
    "affine_grid", "alpha_dropout", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm", "bilinear", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "celu", "celu_", "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "ctc_loss", "dropout", "dropout1d", "dropout2d", "dropout3d",
    "elu", "elu_", "embedding", "embedding_bag", "feature_alpha_dropout", "fold", "fractional_max_pool2d", "fractional_max_pool3d", "gaussian_nll_loss",
    "gelu", "glu", "grid_sample", "group_norm", "gru_cell", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hardtanh_",
    "hinge_embedding_loss", "huber_loss", "instance_norm", "interpolate", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "leaky_relu_", "linear",
    "local_response_norm", "log_softmax", "logsigmoid", "lp_pool1d", "lp_pool2d", "lp_pool3d", "lstm_cell", "margin_ranking_loss", "max_pool1d",
    "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d", "mish", "mse_loss", "multi_head_attention_forward", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "normalize", "one_hot", "pad", "pairwise_distance", "pdist", "pixel_shuffle",
    "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu", "relu6", "relu_", "rms_norm", "rnn_relu_cell", "rnn_tanh_cell", "rrelu", "rrelu_",
    "scaled_dot_product_attention", "selu", "selu_", "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus",
    "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "threshold_", "triplet_margin_loss", "triplet_margin_with_distance_loss", "unfold",
    "upsample",
]

open_doors(globals())
