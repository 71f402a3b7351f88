"""Layers of activation functions, against the formulas in NumPy; functions that write into their input."""
import numpy as np
import pytest
from scipy import special

import cgrad as cg
from cgrad import nn

F = nn.functional
X = np.array([-7.0, -3.0, -1.0, -0.5, -0.2, 0.0, 0.2, 0.5, 1.0, 2.5, 3.0, 8.0])
SCALE, ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


def softmax(x, axis):
    return special.softmax(x, axis=axis)


LAYERS = [
    (nn.ReLU(), lambda x: np.maximum(x, 0)),
    (nn.ReLU6(), lambda x: np.clip(x, 0, 6)),
    (nn.SELU(), lambda x: SCALE * np.where(x > 0, x, ALPHA * np.expm1(x))),
    (nn.CELU(2.0), lambda x: np.where(x > 0, x, 2 * np.expm1(x / 2))),
    (nn.Mish(), lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    (nn.Hardsigmoid(), lambda x: np.clip(x + 3, 0, 6) / 6),
    (nn.Hardswish(), lambda x: x * np.clip(x + 3, 0, 6) / 6),
    (nn.Hardtanh(-2.0, 0.5), lambda x: np.clip(x, -2.0, 0.5)),
    (nn.Threshold(0.2, 20.0), lambda x: np.where(x > 0.2, x, 20.0)),
    (nn.Hardshrink(0.5), lambda x: np.where(abs(x) > 0.5, x, 0)),
    (nn.Softshrink(0.5), lambda x: np.sign(x) * np.maximum(abs(x) - 0.5, 0)),
    (nn.Softsign(), lambda x: x / (1 + abs(x))),
    (nn.Tanhshrink(), lambda x: x - np.tanh(x)),
    (nn.LogSigmoid(), lambda x: special.log_expit(x)),
    (nn.GLU(0), lambda x: x[:6] * special.expit(x[6:])),
    (nn.Softmin(0), lambda x: softmax(-x, 0)),
    (nn.RReLU(0.1, 0.3).eval(), lambda x: np.where(x > 0, x, 0.2 * x)),
    (nn.PReLU(dtype=cg.float64), lambda x: np.where(x > 0, x, 0.25 * x)),
]


@pytest.mark.parametrize(("layer", "formula"), LAYERS, ids=[type(layer).__name__ for layer, _ in LAYERS])
def test_a_layer_computes_its_formula(layer, formula):
    np.testing.assert_allclose(layer(cg.tensor(X)).detach().numpy(), formula(X), rtol=1e-13, atol=1e-15)
    if hasattr(layer, "inplace"):
        layer.inplace, x = True, cg.tensor(X)
        out = layer(x)
        layer.inplace = False
        assert out is x
        np.testing.assert_allclose(x.numpy(), formula(X), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(("layer", "text"), [
    (nn.Hardtanh(inplace=True), "Hardtanh(min_val=-1.0, max_val=1.0, inplace=True)"), (nn.Threshold(0.5, 2), "Threshold(threshold=0.5, value=2)"),
    (nn.PReLU(3), "PReLU(num_parameters=3)"), (nn.ReLU6(True), "ReLU6(inplace=True)"), (nn.Softmax2d(), "Softmax2d()"),
    (nn.RReLU(0.1, 0.2), "RReLU(lower=0.1, upper=0.2)"), (nn.CELU(), "CELU(alpha=1.0)"), (nn.Dropout2d(0.2), "Dropout2d(p=0.2, inplace=False)"),
])
def test_a_layer_prints_its_options(layer, text):
    assert repr(layer) == text


def test_softmax2d_is_over_channels():
    x = np.arange(24.0).reshape(2, 3, 2, 2) ** 0.5
    np.testing.assert_allclose(nn.Softmax2d()(cg.tensor(x)).numpy(), softmax(x, 1), rtol=1e-13)
    np.testing.assert_allclose(nn.Softmax2d()(cg.tensor(x[0])).numpy(), softmax(x[0], 0), rtol=1e-13)
    with pytest.raises(ValueError, match="3 or 4 axes"):
        nn.Softmax2d()(cg.ones(2, 2))


def test_rrelu_draws_slopes_between_its_bounds():
    x = cg.full((1000,), -1.0, requires_grad=True)
    layer = nn.RReLU(0.1, 0.3)
    y = layer(x)
    y.sum().backward()
    assert -0.3 <= y.min().item() < -0.28 and -0.12 < y.max().item() <= -0.1
    np.testing.assert_allclose(x.grad.numpy(), -y.detach().numpy(), rtol=1e-6)


def test_prelu_has_a_slope_for_each_channel_and_learns_it():
    layer = nn.PReLU(2, init=0.5, dtype=cg.float64)
    x = cg.tensor([[[-1.0, 2.0], [-3.0, -4.0]]], dtype=cg.float64)
    layer(x).sum().backward()
    assert layer.weight.grad.tolist() == [-1.0, -7.0]


def test_hardtanh_wants_ordered_bounds():
    with pytest.raises(ValueError, match="below max_val"):
        nn.Hardtanh(1.0, 0.0)


@pytest.mark.parametrize(("name", "args"), [
    ("relu_", ()), ("selu_", ()), ("elu_", (0.7,)), ("celu_", (0.7,)), ("leaky_relu_", (0.2,)), ("hardtanh_", (-2.0, 1.0)), ("threshold_", (0.1, 3.0)),
    ("rrelu_", (0.1, 0.3)),
])
def test_functions_that_end_in_an_underline_write_into_their_input(name, args):
    leaf = cg.tensor(X, requires_grad=True)
    x = leaf * 1.0
    out = getattr(F, name)(x, *args)
    assert out is x
    other = cg.tensor(X, requires_grad=True)
    want = getattr(F, name[:-1])(other, *args)
    assert out.tolist() == want.tolist()
    out.sum().backward()
    want.sum().backward()
    assert leaf.grad.tolist() == other.grad.tolist()


def test_gumbel_softmax_draws_the_categories_by_their_probabilities():
    cg.manual_seed(0)
    p = np.array([0.2, 0.5, 0.3])
    logits = cg.tensor(np.log(np.broadcast_to(p, (20000, 3)).copy()), requires_grad=True)
    soft = F.gumbel_softmax(logits, tau=0.5)
    np.testing.assert_allclose(soft.sum(axis=1).detach().numpy(), 1.0, rtol=1e-12)
    hard = F.gumbel_softmax(logits, tau=0.5, hard=True)
    assert set(np.unique(hard.detach().numpy().round(12))) == {0.0, 1.0}
    np.testing.assert_allclose(hard.detach().numpy().mean(axis=0), p, atol=0.015)
    (hard * cg.tensor([1.0, 2.0, 4.0], dtype=cg.float64)).sum().backward()
    assert np.isfinite(logits.grad.numpy()).all() and abs(logits.grad.numpy()).max() > 0.1
    np.testing.assert_allclose(logits.grad.numpy().sum(axis=1), 0.0, atol=1e-12)      # a shift of all logits changes nothing
    with pytest.raises(ValueError, match="tau"):
        F.gumbel_softmax(logits, tau=0)
