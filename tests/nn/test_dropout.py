"""Dropout: what falls out, how the rest is scaled, what gradients see."""
import numpy as np
import pytest

import cgrad as cg
from cgrad import nn

F = nn.functional
CHANNELWISE = [(F.dropout1d, (40, 50, 6)), (F.dropout2d, (40, 50, 2, 3)), (F.dropout2d, (40, 50, 6)), (F.dropout3d, (40, 50, 1, 2, 3))]


@pytest.mark.parametrize("p", [0.25, 0.5, 0.9])
def test_dropout_keeps_the_expectation(p):
    cg.manual_seed(1)
    x = cg.ones(200, 200, requires_grad=True)
    y = F.dropout(x, p)
    values = y.detach().numpy()
    np.testing.assert_allclose(np.unique(values), [0.0, 1 / (1 - p)], rtol=1e-6)
    assert abs((values == 0).mean() - p) < 0.01
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), values)


@pytest.mark.parametrize(("function", "shape"), CHANNELWISE)
def test_channels_fall_out_as_a_whole(function, shape):
    cg.manual_seed(2)
    x = cg.ones(*shape)
    values = function(x, 0.4).numpy().reshape(*shape[:2], -1)
    assert (values == values[..., :1]).all()
    assert abs((values[..., 0] == 0).mean() - 0.4) < 0.04
    assert values.max() == np.float32(1) / np.float32(0.6)
    assert function(x, training=False) is x


@pytest.mark.parametrize(("function", "shape"), [(F.dropout1d, (500, 6)), (F.dropout3d, (500, 1, 2, 3))])
def test_the_axis_of_samples_may_be_missing(function, shape):
    values = function(cg.ones(*shape)).numpy().reshape(500, -1)
    assert (values == values[:, :1]).all() and 0 < (values[:, 0] == 0).mean() < 1


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_alpha_dropout_keeps_mean_and_variance(p):
    cg.manual_seed(3)
    x = cg.randn(400, 500, dtype=cg.float64)
    y = F.alpha_dropout(x, p, training=True).numpy()
    assert abs(y.mean()) < 0.01 and abs(y.var() - 1) < 0.01
    s = -1.0507009873554805 * 1.6732632423543772           # selu(-inf)
    a = ((1 - p) * (1 + p * s * s)) ** -0.5
    fallen = np.isclose(y, a * s - a * p * s)
    assert abs(fallen.mean() - p) < 0.01
    np.testing.assert_allclose(y[~fallen], (a * x.numpy() - a * p * s)[~fallen], rtol=1e-12)


def test_feature_alpha_dropout_takes_whole_channels():
    x = cg.zeros(30, 40, 5)
    y = F.feature_alpha_dropout(x, 0.5, training=True).numpy()
    assert (y == y[..., :1]).all() and len(np.unique(y)) == 2
    with pytest.raises(ValueError, match="at least 2 axes"):
        F.feature_alpha_dropout(cg.zeros(3), training=True)


@pytest.mark.parametrize("layer", [nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout])
def test_layers_of_dropout(layer):
    x = cg.ones(4, 3, *(2,) * {"Dropout1d": 1, "Dropout3d": 3}.get(layer.__name__, 2))
    drop = layer(0.5)
    assert drop(x).shape == x.shape and len(np.unique(drop(x).numpy())) <= 2
    np.testing.assert_array_equal(layer(1.0)(x).numpy(), 0.0)
    assert layer(0.0)(x) is x and drop.eval()(x) is x
    y = x.clone()
    assert layer(0.5, inplace=True)(y) is y
    with pytest.raises(ValueError, match="must lie in"):
        layer(1.5)
    with pytest.raises(ValueError, match="must lie in"):
        getattr(F, {"Dropout": "dropout", "AlphaDropout": "alpha_dropout", "FeatureAlphaDropout": "feature_alpha_dropout"}.get(
            layer.__name__, layer.__name__.lower()))(x, -0.1)


def test_errors_name_the_shape():
    for function, bad in ((F.dropout1d, cg.ones(2)), (F.dropout2d, cg.ones(2, 3)), (F.dropout3d, cg.ones(2, 3, 4))):
        with pytest.raises(ValueError, match=rf"{function.__name__}.*axes, got shape \({bad.shape[0]}"):
            function(bad)
    with pytest.raises(TypeError, match="floating point"):
        F.dropout(cg.ones(3, dtype=cg.int64))


def test_masks_come_from_the_default_generator():
    x = cg.ones(100)
    cg.manual_seed(5)
    first = F.dropout(x)
    cg.manual_seed(5)
    assert (F.dropout(x) == first).all()
