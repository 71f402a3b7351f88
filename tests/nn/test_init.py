"""Starting values: their distributions by moments and bounds, exact patterns, errors."""
import math

import numpy as np
import pytest
from scipy import stats

import cgrad as cg
from cgrad import nn

init = nn.init
SHAPE = (300, 200)
FAN_IN, FAN_OUT = 200, 300


def filled(function, *args, shape=SHAPE, **options):
    cg.manual_seed(0)
    tensor = nn.Parameter(cg.empty(*shape, dtype=cg.float64))
    out = function(tensor, *args, **options)
    assert out is tensor and tensor.is_leaf and tensor.requires_grad
    return tensor.detach().numpy()


@pytest.mark.parametrize(("function", "options", "distribution"), [
    (init.uniform_, {"a": -1.0, "b": 3.0}, stats.uniform(-1, 4)),
    (init.normal_, {"mean": 2.0, "std": 0.5}, stats.norm(2, 0.5)),
    (init.trunc_normal_, {"mean": 0.5, "std": 2.0, "a": -1.0, "b": 3.0}, stats.truncnorm(-0.75, 1.25, 0.5, 2)),
    (init.trunc_normal_, {"mean": 0.0, "std": 1.0, "a": 4.0, "b": 6.0}, stats.truncnorm(4, 6)),
    (init.xavier_uniform_, {"gain": 2.0}, stats.uniform(-2 * math.sqrt(6 / 500), 4 * math.sqrt(6 / 500))),
    (init.xavier_normal_, {"gain": 2.0}, stats.norm(0, 2 * math.sqrt(2 / 500))),
    (init.kaiming_uniform_, {"nonlinearity": "relu"}, stats.uniform(-math.sqrt(6 / 200), 2 * math.sqrt(6 / 200))),
    (init.kaiming_uniform_, {"a": math.sqrt(5)}, stats.uniform(-math.sqrt(1 / 200), 2 * math.sqrt(1 / 200))),
    (init.kaiming_normal_, {"mode": "fan_out", "a": 1.0}, stats.norm(0, math.sqrt(1 / 300))),
])
def test_draws_follow_their_distribution(function, options, distribution):
    values = filled(function, **options).ravel()
    assert stats.kstest(values, distribution.cdf).pvalue > 1e-3


def test_the_kernel_counts_in_the_fans():
    values = filled(init.kaiming_normal_, shape=(64, 32, 3, 5), mode="fan_in", nonlinearity="linear")
    assert values.std() == pytest.approx(1 / math.sqrt(32 * 15), rel=0.02)
    values = filled(init.xavier_normal_, shape=(64, 32, 3, 5))
    assert values.std() == pytest.approx(math.sqrt(2 / (96 * 15)), rel=0.02)


@pytest.mark.parametrize(("nonlinearity", "param", "gain"), [
    ("linear", None, 1), ("conv2d", None, 1), ("conv_transpose3d", None, 1), ("sigmoid", None, 1), ("tanh", None, 5 / 3), ("relu", None, math.sqrt(2)),
    ("leaky_relu", None, math.sqrt(2 / (1 + 1e-4))), ("leaky_relu", 0.5, math.sqrt(1.6)), ("selu", None, 0.75),
])
def test_gains(nonlinearity, param, gain):
    assert init.calculate_gain(nonlinearity, param) == pytest.approx(gain, rel=1e-15)


def test_constants_and_patterns():
    assert (filled(init.constant_, 0.3) == 0.3).all()
    assert (filled(init.ones_) == 1).all() and (filled(init.zeros_) == 0).all()
    np.testing.assert_array_equal(filled(init.eye_), np.eye(*SHAPE))


@pytest.mark.parametrize("shape", [(3, 7), (7, 3), (5, 5), (4, 2, 3, 3)])
def test_orthogonal_rows_or_columns(shape):
    w = filled(init.orthogonal_, 2.0, shape=shape).reshape(shape[0], -1)
    product = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-13)


@pytest.mark.parametrize(("shape", "groups"), [((4, 3, 5), 1), ((2, 4, 3, 3), 1), ((6, 2, 3), 3), ((4, 2, 3, 4, 5), 2)])
def test_dirac_hands_channels_on(shape, groups):
    weight = cg.tensor(filled(init.dirac_, groups, shape=shape))
    x = np.random.default_rng(0).normal(size=(2, shape[1] * groups, *(9,) * (len(shape) - 2)))
    convolution = (None, nn.functional.conv1d, nn.functional.conv2d, nn.functional.conv3d)[len(shape) - 2]
    out = convolution(cg.tensor(x), weight, padding=tuple(n // 2 for n in shape[2:]), groups=groups).numpy()
    per_group = shape[0] // groups
    for channel in range(shape[0]):
        group, k = divmod(channel, per_group)
        want = x[:, group * shape[1] + k] if k < shape[1] else 0 * x[:, 0]
        cut = tuple(slice(0, n) for n in want.shape[1:])
        np.testing.assert_array_equal(out[:, channel][(slice(None), *cut)], want[(slice(None), *(slice(0, n) for n in out.shape[2:]))])


@pytest.mark.parametrize(("sparsity", "zeros"), [(0.0, 0), (0.1, 30), (0.333, 100), (1.0, 300)])
def test_sparse_has_as_many_zeros_in_each_column(sparsity, zeros):
    w = filled(init.sparse_, sparsity, std=0.5)
    assert ((w == 0).sum(axis=0) == zeros).all()
    if zeros < 300:
        assert w[w != 0].std() == pytest.approx(0.5, rel=0.02)
    if 0 < zeros < 300:
        assert len({tuple(np.flatnonzero(column)) for column in w.T}) > 190      # other rows in each column


@pytest.mark.parametrize("function", [init.uniform_, init.normal_, init.xavier_normal_, init.kaiming_uniform_, init.orthogonal_, init.trunc_normal_])
def test_a_generator_gives_the_same_numbers_again(function):
    first, second = (function(cg.empty(5, 4), generator=cg.Generator().manual_seed(3)) for _ in range(2))
    assert first.tolist() == second.tolist()


@pytest.mark.parametrize("call", [
    lambda: init.eye_(cg.empty(3)), lambda: init.dirac_(cg.empty(3, 3)), lambda: init.dirac_(cg.empty(3, 3, 3), groups=2),
    lambda: init.sparse_(cg.empty(3), 0.5), lambda: init.sparse_(cg.empty(3, 3), 1.5), lambda: init.xavier_normal_(cg.empty(3)),
    lambda: init.orthogonal_(cg.empty(3)), lambda: init.uniform_(cg.empty(3), 2.0, 1.0), lambda: init.normal_(cg.empty(3), std=-1.0),
    lambda: init.kaiming_normal_(cg.empty(3, 3), mode="fan"), lambda: init.kaiming_normal_(cg.empty(3, 3), nonlinearity="sine"),
    lambda: init.trunc_normal_(cg.empty(3), a=2.0, b=1.0), lambda: init.calculate_gain("leaky_relu", "steep"),
])
def test_what_makes_no_sense_is_refused(call):
    with pytest.raises(ValueError):
        call()
