"""The rows of nn.functional: what each function is called with, so that all tests of derivatives, batches and layouts meet it.

Their values are those of NumPy and SciPy in tests/nn; here a row has no reference but the function itself, whose values the
derivatives are differences of.
"""
from dataclasses import replace

import numpy as np
from cases import ROWS, Draw, Pick, Row, Sample, seeded

import cgrad.nn.functional as F


def network(name, samples, **options):
    options.setdefault("function", getattr(F, name))
    options.setdefault("own_dtype", any(isinstance(a, np.ndarray) and a.dtype.kind == "f" for sample in samples for a in sample.args))
    ROWS.append(Row("nn.functional." + name, None, list(samples), **options))


def far(*shape):
    """Elements that are far apart: no ties, and none so near that a step of a difference makes one."""
    return Draw(shape, distinct=True)


# ---------------------------------------------------------------------------------------------------------- convolutions
for _n in (1, 2, 3):
    _x, _k = (4, 3, 3)[:_n], (2, 1, 2)[:_n]
    network(f"conv{_n}d", [
        Sample(Draw((2, 2, *_x)), Draw((3, 2, *_k)), Draw((3,))), Sample(Draw((2, *_x)), Draw((1, 2, *_k))),
        Sample(Draw((1, 4, *_x)), Draw((2, 2, *_k)), Draw((2,)), stride=2, padding=1, dilation=2, groups=2),
        Sample(Draw((1, 1, *_x)), Draw((1, 1, *_k)), padding="same"), Sample(Draw((0, 2, *_x)), Draw((3, 2, *_k)))], tolerance=10)
    network(f"conv_transpose{_n}d", [
        Sample(Draw((2, 2, *_x)), Draw((2, 3, *_k)), Draw((3,))), Sample(Draw((2, *_x)), Draw((2, 1, *_k))),
        Sample(Draw((1, 4, *_x)), Draw((4, 1, *_k)), Draw((2,)), stride=2, padding=1, output_padding=1, groups=2, dilation=2)], tolerance=10)
network("unfold", [Sample(Draw((2, 2, 3, 4)), 2), Sample(Draw((2, 4, 3)), (2, 1), 2, 1, (1, 2))])
network("fold", [Sample(Draw((2, 8, 6)), (3, 4), 2), Sample(Draw((4, 9)), (4, 4), 2, 1, 1, 2)])
network("bilinear", [Sample(Draw((2, 3)), Draw((2, 2)), Draw((4, 3, 2)), Draw((4,))), Sample(Draw((3,)), Draw((2,)), Draw((1, 3, 2)))])

# -------------------------------------------------------------------------------------------------------- pools and images
for _n in (1, 2, 3):
    _x = (5, 4, 3)[:_n]
    network(f"max_pool{_n}d", [Sample(far(2, 1, *_x), 2), Sample(far(2, *_x), 2, 1, 1), Sample(far(1, *_x), 2, 1, 0, 2, True) if _n == 1 else
                               Sample(far(1, *_x), 2, 2, 1, 1, True)])
    network(f"avg_pool{_n}d", [Sample(Draw((2, 1, *_x)), 2), Sample(Draw((2, *_x)), 2, 1, 1, True), Sample(Draw((1, *_x)), 2, 2, 1, False, False)])
    network(f"lp_pool{_n}d", [Sample(Draw((2, 1, *_x), 0.5, 2.0), 2, 2), Sample(Draw((2, *_x), 0.5, 2.0), 3, 2, 1)])
    network(f"adaptive_avg_pool{_n}d", [Sample(Draw((2, 1, *_x)), 2), Sample(Draw((2, *_x)), 3)])
    network(f"adaptive_max_pool{_n}d", [Sample(far(2, 1, *_x), 2), Sample(far(2, *_x), 3)])
    _places = np.array([[[5, 0, 2]], [[1, 3, 4]]]) if _n == 1 else np.array([5, 0, 2, 9] + [15] * (_n == 3) + [12, 33, 7] * (_n == 3)).reshape(1, 1, *(2,) * _n)
    network(f"max_unpool{_n}d", [Sample(Draw(_places.shape), _places, 2)])
network("fractional_max_pool2d", [Sample(far(2, 1, 5, 4), 2, (3, 2), None, False, Draw((2, 1, 2), 0.1, 0.9)),
                                  Sample(far(1, 6, 5), (2, 1), None, (0.5, 0.7), False, Draw((1, 1, 2), 0.1, 0.9))],
        function=lambda x, k, size, ratio, places, u: F.fractional_max_pool2d(x, k, size, ratio, places, u.detach()), half=False)
network("fractional_max_pool3d", [Sample(far(1, 2, 4, 3, 3), 2, 2, None, False, Draw((1, 2, 3), 0.1, 0.9))],
        function=lambda x, k, size, ratio, places, u: F.fractional_max_pool3d(x, k, size, ratio, places, u.detach()), half=False)
network("affine_grid", [Sample(Draw((2, 2, 3)), (2, 1, 2, 3), True), Sample(Draw((1, 3, 4)), (1, 1, 2, 2, 2), False)])
network("grid_sample", [
    Sample(Draw((2, 1, 3, 3)), Draw((2, 2, 1, 2), -0.9, 0.9, (0,)), mode=mode, padding_mode=padding, align_corners=True)
    for mode, padding in (("bilinear", "zeros"), ("bilinear", "border"), ("bicubic", "reflection"))] + [
    Sample(Draw((1, 2, 3, 3, 3)), Draw((1, 1, 2, 1, 3), -0.9, 0.9, (0,)), align_corners=True), Sample(Draw((1, 1, 3, 3)), Draw((1, 2, 1, 2), 0.1, 0.4), mode="nearest",
                                                                                            align_corners=True)], half=False, tolerance=10)
network("interpolate", [Sample(Draw((1, 2, 3)), 5), Sample(Draw((1, 1, 3, 2)), scale_factor=2, mode="bilinear"), Sample(Draw((2, 1, 3)), 5, mode="linear", align_corners=True),
                        Sample(Draw((1, 1, 3, 3)), (4, 5), mode="bicubic"), Sample(Draw((1, 1, 4, 2)), (2, 2), mode="area"), Sample(Draw((1, 1, 2, 2, 2)), 3, mode="trilinear"),
                        Sample(Draw((1, 1, 5, 5)), (2, 3), mode="bilinear", antialias=True), Sample(Draw((1, 2, 3)), 5, mode="nearest-exact")], tolerance=10)
network("upsample", [Sample(Draw((1, 2, 3)), 5), Sample(Draw((1, 1, 3, 2)), scale_factor=2, mode="bilinear")], tolerance=10)
network("pixel_shuffle", [Sample(Draw((1, 4, 2, 3)), 2), Sample(Draw((8, 1, 2)), 2)])
network("pixel_unshuffle", [Sample(Draw((1, 1, 4, 2)), 2), Sample(Draw((2, 2, 4)), 2)])
network("channel_shuffle", [Sample(Draw((2, 4, 3)), 2), Sample(Draw((1, 6, 2, 1)), 3)])
network("local_response_norm", [Sample(Draw((2, 3, 2)), 2, 0.5), Sample(Draw((1, 4, 2, 2)), 3, 0.1, 0.5, 2.0)], tolerance=10)

# ------------------------------------------------------------------------------------------------------ norms, attention
_shift, _scale = np.array([0.5, -0.5]), np.array([1.5, 0.7])
network("batch_norm", [Sample(Draw((3, 2)), None, None, Draw((2,)), Draw((2,)), True), Sample(Draw((2, 2, 3)), None, None, None, None, True),
                       Sample(Draw((3, 2)), _shift, _scale, Draw((2,)), Draw((2,))), Sample(Draw((1, 2, 2, 2)), _shift, _scale)], tolerance=100)
network("instance_norm", [Sample(Draw((2, 2, 3))), Sample(Draw((1, 2, 2, 2)), None, None, Draw((2,)), Draw((2,))), Sample(Draw((2, 2, 3)), _shift, _scale, use_input_stats=False)],
        tolerance=100)
network("group_norm", [Sample(Draw((2, 4, 2)), 2), Sample(Draw((1, 4, 2, 2)), 4, Draw((4,)), Draw((4,))), Sample(Draw((2, 4)), 2, Draw((4,)))], tolerance=100)
network("layer_norm", [Sample(Draw((2, 4)), (4,)), Sample(Draw((2, 2, 3)), (2, 3), Draw((2, 3)), Draw((2, 3)))], tolerance=100)
network("rms_norm", [Sample(Draw((2, 4)), (4,)), Sample(Draw((2, 2, 3)), (2, 3), Draw((2, 3)), 0.1)], tolerance=100)
network("normalize", [Sample(Draw((2, 3))), Sample(Draw((2, 3)), 3.0, 0)], tolerance=10)
_q, _k, _v = Draw((2, 3, 4)), Draw((2, 5, 4)), Draw((2, 5, 2))
network("scaled_dot_product_attention", [
    Sample(_q, _k, _v), Sample(_q, _k, _v, Draw((3, 5))), Sample(_q, _k, _v, is_causal=True), Sample(_q, _k, _v, scale=0.3),
    Sample(_q, _k, _v, np.array([[1, 0, 1, 1, 0], [0, 1, 0, 0, 1], [1, 1, 1, 1, 1]], bool)),
    Sample(Draw((4, 3, 2)), Draw((2, 3, 2)), Draw((2, 3, 2)), enable_gqa=True)], tolerance=10)
_own = (Draw((12, 4)), Draw((12,)))
network("multi_head_attention_forward", [
    Sample(Draw((2, 1, 4)), Draw((3, 1, 4)), Draw((3, 1, 4)), 4, 2, *_own, None, None, False, 0.0, Draw((4, 4)), Draw((4,)), need_weights=False),
    Sample(Draw((2, 4)), Draw((3, 4)), Draw((3, 4)), 4, 2, *_own, None, None, True, 0.0, Draw((4, 4)), None, False, need_weights=False)],
        function=lambda *args, **options: F.multi_head_attention_forward(*args, **options)[0], tolerance=10, mapped=False)

# -------------------------------------------------------------------------------------------------------------- recurrence
for _name, _gates in (("rnn_tanh_cell", 1), ("rnn_relu_cell", 1), ("gru_cell", 3)):
    network(_name, [Sample(Draw((2, 3)), Draw((2, 2)), Draw((2 * _gates, 3)), Draw((2 * _gates, 2)), Draw((2 * _gates,)), Draw((2 * _gates,))),
                    Sample(Draw((3,)), Draw((2,)), Draw((2 * _gates, 3)), Draw((2 * _gates, 2)))], tolerance=10)
network("lstm_cell", [Sample(Draw((2, 3)), [Draw((2, 2)), Draw((2, 2))], Draw((8, 3)), Draw((8, 2)), Draw((8,)), Draw((8,)))], tolerance=10)

# ------------------------------------------------------------------------------------------------------------ activations
for _name in ("celu", "elu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "linear", "mish", "relu", "relu6", "selu", "silu", "threshold"):
    for _row in [r for r in ROWS if r.name == _name]:          # those of the operation, which is another function there
        ROWS.append(replace(_row, name="nn.functional." + _name, function=getattr(F, _name), integers=(), special=[], elementwise=False))
for _name in ("softmax", "log_softmax"):
    network(_name, [Sample(Draw((2, 3)), 1), Sample(Draw((3,)), 0)])
network("pad", [Sample(Draw((2, 3)), (1, 2)), Sample(Draw((2, 3)), (1, 0, -1, 1), "constant", 0.5), Sample(Draw((1, 1, 3, 3)), (1, 2, 0, 1), "reflect"),
                Sample(Draw((1, 2, 3)), (2, 1), "replicate"), Sample(Draw((1, 2, 3)), (2, 1), "circular")])
network("glu", [Sample(Draw((4,))), Sample(Draw((2, 4)), 1), Sample(Draw((4, 3)), 0)])
network("rrelu", [Sample(Draw((2, 3), kinks=(0,)))])
for _name in ("celu_", "elu_", "hardtanh_", "leaky_relu_", "relu_", "rrelu_", "selu_"):
    network(_name, [Sample(Draw((2, 3), kinks=(-1, 0, 1)))], function=lambda x, name=_name: getattr(F, name)(x.clone()))
network("threshold_", [Sample(Draw((2, 3), kinks=(0.5,)), 0.5, -1.0)], function=lambda x, *args: F.threshold_(x.clone(), *args))
for _n in (1, 2, 3):
    network(f"dropout{_n}d", [Sample(Draw((2, 3, *(1, 2, 2)[:_n])))], function=seeded(getattr(F, f"dropout{_n}d")), mapped=False)
for _name in ("alpha_dropout", "feature_alpha_dropout"):
    network(_name, [Sample(Draw((2, 3, 2)), 0.4, True)], function=seeded(getattr(F, _name)), mapped=False)
network("gumbel_softmax", [Sample(Draw((2, 3)))], function=seeded(lambda x: F.gumbel_softmax(x.double()).astype(x.dtype)), mapped=False, half=False)
network("dropout", [Sample(Draw((2, 3)))], function=seeded(F.dropout), mapped=False)
network("rrelu", [Sample(Draw((2, 3), kinks=(0,)), training=True)], function=seeded(lambda x, training: F.rrelu(x.double(), training=training).astype(x.dtype)),
        mapped=False, half=False)
network("scaled_dot_product_attention", [Sample(_q, _k, _v, None, 0.4)], function=seeded(F.scaled_dot_product_attention), mapped=False, half=False)
network("dropout", [Sample(Draw((2, 3)), 0.5, False), Sample(Draw((2, 3)), 0.0)])
network("softmin", [Sample(Draw((2, 3)), 1), Sample(Draw((3,)), 0)])
network("one_hot", [Sample(Pick((2, 3), 4), 5)], differentiable=False, own_dtype=True)

# ------------------------------------------------------------------------------------------------------------- embeddings
network("embedding", [Sample(Pick((3,), 4), Draw((4, 2))), Sample(Pick((2, 2), 4), Draw((4, 3))), Sample(Pick((), 2), Draw((2, 3)))])
_bag = (Pick((5,), 4), Draw((4, 2)), np.array([0, 2]))
network("embedding_bag", [Sample(Pick((2, 3), 4), Draw((4, 2)), mode=mode) for mode in ("sum", "mean")] + [
    Sample(Pick((2, 3), 4), Draw((4, 2), distinct=True), mode="max"), Sample(*_bag, mode="sum"), Sample(*_bag),
    Sample(Pick((2, 3), 4), Draw((4, 2)), None, None, 2.0, False, "sum", False, Draw((2, 3)))])

# ----------------------------------------------------------------------------------------------------------------- losses
REDUCTIONS = ("mean", "sum", "none")
_a, _b = Draw((2, 3), -0.9, -0.1), Draw((2, 3), 0.2, 1.9)
_p, _sign = Draw((2, 3), 0.1, 0.9), np.array([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]])
for _name in ("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss"):
    network(_name, [Sample(_a, _b, reduction=r) for r in REDUCTIONS])
for _name in ("soft_margin_loss", "hinge_embedding_loss"):
    network(_name, [Sample(_a, _sign, reduction=r) for r in REDUCTIONS])
network("binary_cross_entropy", [Sample(_p, _p, reduction=r) for r in REDUCTIONS] + [Sample(_p, _p, np.array([1.0, 2.0, 0.5]))], tolerance=10)
network("binary_cross_entropy_with_logits", [Sample(_a, _p, reduction=r) for r in REDUCTIONS] + [Sample(_a, _p, pos_weight=None), Sample(_a, _p, np.array([1.0, 2.0, 0.5]))])
network("kl_div", [Sample(_a, _p, reduction=r) for r in (*REDUCTIONS, "batchmean")] + [Sample(_a, _b, log_target=True)])
network("poisson_nll_loss", [Sample(_a, _p, reduction=r) for r in REDUCTIONS] + [Sample(_p, Draw((2, 3), 1.2, 3.0), False, True)])
network("gaussian_nll_loss", [Sample(_a, _b, Draw((2, 3), 0.5, 2.0), reduction=r) for r in REDUCTIONS] + [Sample(_a, _b, Draw((2, 1), 0.5, 2.0), True)])
network("cross_entropy", [Sample(Draw((2, 3)), Pick((2,), 3), reduction=r) for r in REDUCTIONS] + [
    Sample(Draw((2, 3)), Pick((2,), 3), np.array([1.0, 2.0, 0.5]), label_smoothing=0.2), Sample(Draw((2, 3)), Draw((2, 3), 0.1, 0.9)), Sample(Draw((3,)), Pick((), 3)),
    Sample(Draw((1, 3, 2)), Pick((1, 2), 3)), Sample(Draw((3, 2)), np.array([1, -100, 0])), Sample(Draw((2, 3)), Draw((2, 3), 0.1, 0.9), np.array([1.0, 2.0, 0.5]), label_smoothing=0.1)])
network("nll_loss", [Sample(Draw((2, 3)), Pick((2,), 3), reduction=r) for r in REDUCTIONS] + [Sample(Draw((2, 3)), Pick((2,), 3), np.array([1.0, 2.0, 0.5])),
                                                                                          Sample(Draw((1, 3, 2)), Pick((1, 2), 3))])
network("multi_margin_loss", [Sample(far(2, 3), Pick((2,), 3), reduction=r) for r in REDUCTIONS] + [Sample(far(3), Pick((), 3), 2, 0.5, np.array([1.0, 2.0, 0.5]))], tolerance=10)
network("multilabel_margin_loss", [Sample(far(2, 3), np.array([[2, -1, 0], [0, 1, -1]]), reduction=r) for r in REDUCTIONS])
network("multilabel_soft_margin_loss", [Sample(_a, (_sign + 1) / 2, reduction=r) for r in REDUCTIONS] + [Sample(_a, (_sign + 1) / 2, np.array([1.0, 2.0, 0.5]))])
_one = np.array([1.0, -1.0])
network("margin_ranking_loss", [Sample(Draw((2,), -0.9, -0.1), Draw((2,), 0.2, 1.9), _one, 0.05, reduction=r) for r in REDUCTIONS])
network("cosine_embedding_loss", [Sample(Draw((2, 3)), Draw((2, 3)), _one, -0.99, reduction=r) for r in REDUCTIONS], tolerance=10)
network("cosine_similarity", [Sample(Draw((2, 3)), Draw((2, 3))), Sample(Draw((3, 2)), Draw((3, 1)), 0)], tolerance=10)
network("pairwise_distance", [Sample(_a, _b), Sample(_a, _b, 1.0), Sample(_a, _b, 3.0, 1e-6, True)], tolerance=10)
network("pdist", [Sample(Draw((3, 2), distinct=True)), Sample(Draw((3, 2), distinct=True), 3.0)], tolerance=10)
network("triplet_margin_loss", [Sample(_a, _b, Draw((2, 3), 0.0, 2.0), 2.0, reduction=r) for r in REDUCTIONS] + [Sample(_a, _b, Draw((2, 3)), 3.0, swap=True)], tolerance=10)
network("triplet_margin_with_distance_loss", [Sample(_a, _b, Draw((2, 3), 0.0, 2.0), margin=2.0, reduction=r) for r in REDUCTIONS], tolerance=10)
network("ctc_loss", [Sample(Draw((4, 2, 3)), np.array([[1, 2], [2, 2]]), np.array([4, 4]), np.array([2, 1]), reduction=r) for r in REDUCTIONS],
        function=lambda x, *args, **kwargs: F.ctc_loss(F.log_softmax(x, -1), *args, **kwargs), tolerance=10)
