"""Functions of networks against NumPy and SciPy formulas, and how parameters start."""
import math

import numpy as np
import pytest
from scipy import special, stats

import cgrad as cg
import cgrad.nn.functional as F
from cgrad import nn
from cgrad.nn import init

X = np.array([-30.0, -3.5, -3.0, -1.0, -1e-3, 0.0, 1e-3, 0.5, 2.0, 3.0, 7.0, 40.0])


def sigmoid(x):
    return special.expit(x)


ACTIVATIONS = [
    ("relu", {}, lambda x: np.maximum(x, 0)),
    ("relu6", {}, lambda x: np.clip(x, 0, 6)),
    ("hardtanh", {"min_val": -2.0, "max_val": 1.5}, lambda x: np.clip(x, -2, 1.5)),
    ("leaky_relu", {"negative_slope": 0.2}, lambda x: np.where(x > 0, x, 0.2 * x)),
    ("elu", {"alpha": 1.5}, lambda x: np.where(x > 0, x, 1.5 * np.expm1(np.minimum(x, 0)))),
    ("celu", {"alpha": 2.0}, lambda x: np.maximum(x, 0) + np.minimum(2 * np.expm1(np.minimum(x, 0) / 2), 0)),
    ("selu", {}, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0)))),
    ("gelu", {}, lambda x: x * stats.norm.cdf(x)),
    ("gelu", {"approximate": "tanh"}, lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
    ("silu", {}, lambda x: x * sigmoid(x)),
    ("mish", {}, lambda x: x * np.tanh(np.logaddexp(0, x))),
    ("softplus", {}, lambda x: np.logaddexp(0, x)),
    ("softplus", {"beta": 3.0}, lambda x: np.logaddexp(0, 3 * x) / 3),
    ("logsigmoid", {}, lambda x: -np.logaddexp(0, -x)),
    ("softsign", {}, lambda x: x / (1 + np.abs(x))),
    ("tanhshrink", {}, lambda x: x - np.tanh(x)),
    ("hardsigmoid", {}, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    ("hardswish", {}, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    ("sigmoid", {}, sigmoid),
    ("tanh", {}, np.tanh),
]


@pytest.mark.parametrize(("name", "options", "formula"), ACTIVATIONS, ids=[f"{n}{o or ''}" for n, o, _ in ACTIVATIONS])
def test_activations_have_the_values_of_their_formula(name, options, formula):
    y = getattr(F, name)(cg.tensor(X), **options)
    np.testing.assert_allclose(y.numpy(), formula(X), rtol=1e-12, atol=1e-15)
    assert getattr(F, name)(cg.tensor(X, dtype=cg.float32), **options).dtype == cg.float32


@pytest.mark.parametrize(("name", "options", "formula"), ACTIVATIONS, ids=[f"{n}{o or ''}" for n, o, _ in ACTIVATIONS])
def test_activations_differentiate(name, options, formula):
    x = cg.tensor(np.array([-2.2, -0.7, 0.3, 1.4, 4.0]), requires_grad=True)
    cg.autograd.gradcheck(lambda x: getattr(F, name)(x, **options), x, check_forward_ad=True)
    cg.autograd.gradgradcheck(lambda x: getattr(F, name)(x, **options), x)


@pytest.mark.parametrize("name", ["relu", "relu6", "hardtanh", "leaky_relu", "elu", "celu", "selu", "silu", "mish", "hardsigmoid", "hardswish"])
def test_activations_write_in_place(name):
    x = cg.tensor(np.array([-2.0, 0.5]), requires_grad=True)
    y = x * 1.0
    out = getattr(F, name)(y, inplace=True)
    assert out is y
    want = getattr(F, name)(cg.tensor([-2.0, 0.5], dtype=cg.float64))
    np.testing.assert_allclose(y.detach().numpy(), want.numpy())
    (g,) = cg.autograd.grad(y.sum(), x)
    (h,) = cg.autograd.grad(getattr(F, name)(x * 1.0).sum(), x)
    np.testing.assert_allclose(g.numpy(), h.numpy())


def test_modules_call_their_function():
    x = cg.tensor(X)
    for module, y in [(nn.ReLU(), F.relu(x)), (nn.Tanh(), cg.tanh(x)), (nn.Sigmoid(), cg.sigmoid(x)), (nn.GELU(), F.gelu(x)),
                      (nn.GELU("tanh"), F.gelu(x, approximate="tanh")), (nn.SiLU(), F.silu(x)), (nn.Softplus(2.0), F.softplus(x, 2.0)),
                      (nn.LeakyReLU(0.3), F.leaky_relu(x, 0.3)), (nn.ELU(2.0), F.elu(x, 2.0)), (nn.Softmax(0), F.softmax(x, dim=0)),
                      (nn.LogSoftmax(-1), F.log_softmax(x, dim=-1))]:
        np.testing.assert_array_equal(module(x).numpy(), y.numpy())
    assert repr(nn.LeakyReLU(0.3)) == "LeakyReLU(negative_slope=0.3)"
    with pytest.raises(ValueError, match="tanh"):
        nn.GELU("exact")


def test_softmax_and_its_logarithm():
    x = np.array([[1000.0, 0.0, -1000.0], [1.0, 2.0, 3.0]])
    np.testing.assert_allclose(F.softmax(cg.tensor(x), dim=1).numpy(), special.softmax(x, axis=1), rtol=1e-12)
    np.testing.assert_allclose(F.log_softmax(cg.tensor(x), dim=-1).numpy(), special.log_softmax(x, axis=1), rtol=1e-12)
    np.testing.assert_allclose(F.softmin(cg.tensor(x), dim=0).numpy(), special.softmax(-x, axis=0), rtol=1e-12)
    assert F.softmax(cg.tensor([1.0, 2.0]), dim=0, dtype=cg.float64).dtype == cg.float64
    with pytest.raises(TypeError, match="axis"):
        F.softmax(cg.tensor([1.0]))


# ------------------------------------------------------------------ linear, one_hot
def test_linear_follows_its_shapes():
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=(2, 5, 3)), rng.normal(size=(4, 3)), rng.normal(size=4)
    y = F.linear(cg.tensor(x), cg.tensor(w), cg.tensor(b))
    np.testing.assert_allclose(y.numpy(), x @ w.T + b, rtol=1e-12)
    np.testing.assert_allclose(F.linear(cg.tensor(x[0, 0]), cg.tensor(w)).numpy(), w @ x[0, 0], rtol=1e-12)
    np.testing.assert_allclose(F.linear(cg.tensor(x), cg.tensor(w[0])).numpy(), x @ w[0], rtol=1e-12)
    assert F.linear(cg.zeros(0, 3), cg.zeros(4, 3)).shape == (0, 4)
    args = tuple(cg.tensor(v, requires_grad=True) for v in (x, w, b))
    cg.autograd.gradcheck(F.linear, args, check_forward_ad=True)
    cg.autograd.gradgradcheck(F.linear, args)
    with pytest.raises(ValueError, match=r"\(2, 4\).*\(4, 3\)"):
        F.linear(cg.zeros(2, 4), cg.zeros(4, 3))
    with pytest.raises(ValueError, match=r"bias.*\(4,\).*\(1, 4\)"):
        F.linear(cg.zeros(2, 3), cg.zeros(4, 3), cg.zeros(1, 4))
    with pytest.raises(ValueError, match="linear"):
        F.linear(cg.tensor(1.0), cg.zeros(4, 3))


@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 4, 3), (2, 0, 3), (2, 3, 4, 3)])
@pytest.mark.parametrize("bias", [False, True])
def test_linear_is_one_operation_of_any_layout(shape, bias):
    rng = np.random.default_rng(1)
    x = cg.tensor(rng.normal(size=shape[::-1]), requires_grad=True)
    w = cg.tensor(rng.normal(size=(3, 5)), requires_grad=True)
    b = cg.tensor(rng.normal(size=5), requires_grad=True) if bias else None
    xs, ws = x.permute(*range(x.ndim)[::-1]), w.T
    y = F.linear(xs, ws, b)
    assert y.grad_fn.name == "linear"
    np.testing.assert_allclose(y.detach().numpy(), x.detach().numpy().T @ w.detach().numpy() + (b.detach().numpy() if bias else 0), rtol=1e-12)
    if x.size:
        function = lambda x, w, *b: F.linear(x.permute(*range(x.ndim)[::-1]), w.T, *b)
        args = (x, w, b) if bias else (x, w)
        cg.autograd.gradcheck(function, args, check_forward_ad=True)
        cg.autograd.gradgradcheck(function, args, check_fwd_over_rev=True)


def test_linear_promotes_dtypes():
    y = F.linear(cg.ones(2, 3), cg.ones(4, 3, dtype=cg.float64, requires_grad=True), cg.ones(4, requires_grad=True))
    assert y.dtype == cg.float64
    assert F.linear(cg.ones(2, 3, dtype=cg.int64), cg.ones(4, 3)).dtype == cg.float32


def test_one_hot():
    t = np.array([[0, 2], [1, 2]])
    np.testing.assert_array_equal(F.one_hot(cg.tensor(t)).numpy(), np.eye(3, dtype=int)[t])
    assert F.one_hot(cg.tensor(t), 5).shape == (2, 2, 5) and F.one_hot(cg.tensor(1), 3).tolist() == [0, 1, 0]
    for bad, n in ((t, 2), (-t, 3)):
        with pytest.raises(ValueError, match="class indices"):
            F.one_hot(cg.tensor(bad), n)
    with pytest.raises(TypeError, match="float"):
        F.one_hot(cg.tensor([1.0]))


# ------------------------------------------------------------------ dropout
def test_dropout_keeps_the_expectation_and_repeats_with_the_seed():
    cg.manual_seed(1)
    x = cg.ones(100_000)
    y = F.dropout(x, 0.25)
    values = np.unique(y.numpy())
    np.testing.assert_allclose(values, [0.0, 4 / 3], rtol=1e-6)
    assert abs(float((y == 0).float().mean()) - 0.25) < 0.01
    cg.manual_seed(1)
    np.testing.assert_array_equal(F.dropout(x, 0.25).numpy(), y.numpy())
    assert F.dropout(x, 0.5, training=False) is x
    layer = nn.Dropout(0.5)
    assert layer.eval()(x) is x and bool((layer.train()(x) == 0).any())
    for p in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="dropout"):
            F.dropout(x, p)
        with pytest.raises(ValueError, match="Dropout"):
            nn.Dropout(p)


# ------------------------------------------------------------------ init
def test_gains_are_those_of_the_table():
    want = {"linear": 1, "conv2d": 1, "sigmoid": 1, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75}
    for name, gain in want.items():
        assert init.calculate_gain(name) == pytest.approx(gain)
    assert init.calculate_gain("leaky_relu", 0.5) == pytest.approx(math.sqrt(2 / 1.25))
    with pytest.raises(ValueError, match="swish"):
        init.calculate_gain("swish")


@pytest.mark.parametrize(("fill", "bound"), [
    (lambda w: init.xavier_uniform_(w, gain=2.0), 2 * math.sqrt(6 / (60 * 4 + 40 * 4))),
    (lambda w: init.kaiming_uniform_(w, a=math.sqrt(5)), math.sqrt(1 / (40 * 4))),
    (lambda w: init.kaiming_uniform_(w, mode="fan_out", nonlinearity="relu"), math.sqrt(6 / (60 * 4))),
    (lambda w: init.uniform_(w, -0.5, 0.5), 0.5),
])
def test_uniform_starts_have_their_bound(fill, bound):
    cg.manual_seed(0)
    w = fill(cg.empty(60, 40, 4, requires_grad=True)).detach().numpy()
    assert np.abs(w).max() <= bound * (1 + 1e-6)
    assert stats.kstest(w.ravel() / bound, "uniform", args=(-1, 2)).pvalue > 1e-3


@pytest.mark.parametrize(("fill", "std"), [
    (lambda w: init.xavier_normal_(w), math.sqrt(2 / 400)),
    (lambda w: init.kaiming_normal_(w), math.sqrt(2 / 160)),
    (lambda w: init.kaiming_normal_(w, mode="fan_out", nonlinearity="tanh"), 5 / 3 / math.sqrt(240)),
    (lambda w: init.normal_(w, 0.0, 3.0), 3.0),
])
def test_normal_starts_have_their_deviation(fill, std):
    cg.manual_seed(0)
    w = fill(cg.empty(60, 40, 4)).numpy()
    assert stats.kstest(w.ravel() / std, "norm").pvalue > 1e-3


@pytest.mark.parametrize(("mean", "std", "a", "b"), [(0, 1, -2, 2), (1, 2, -1, 0), (0, 1, 5, 9), (0, 1, -40, -38), (0, 1, 0.001, 0.002), (3, 0.1, -2, 2)])
def test_truncated_normal_follows_its_distribution(mean, std, a, b):
    cg.manual_seed(0)
    w = init.trunc_normal_(cg.empty(4000, dtype=cg.float64), mean, std, a, b).numpy()
    assert w.min() >= a and w.max() <= b
    assert stats.kstest(w, stats.truncnorm((a - mean) / std, (b - mean) / std, mean, std).cdf).pvalue > 1e-3


def test_orthogonal_is_orthogonal():
    for shape in ((5, 3), (3, 5), (4, 4), (6, 2, 2)):
        w = init.orthogonal_(cg.empty(shape, dtype=cg.float64), gain=2.0).numpy().reshape(shape[0], -1)
        gram = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
        np.testing.assert_allclose(gram, 4 * np.eye(min(w.shape)), atol=1e-12)


def test_constants_and_refusals():
    w = cg.empty(2, 3, requires_grad=True)
    assert init.ones_(w) is w and w.is_leaf and w.detach().numpy().sum() == 6
    assert init.zeros_(w).detach().numpy().sum() == 0 and init.constant_(w, 0.5)[0, 0].item() == 0.5
    np.testing.assert_array_equal(init.eye_(cg.empty(2, 3)).numpy(), np.eye(2, 3))
    for bad in (lambda: init.xavier_uniform_(cg.empty(3)), lambda: init.orthogonal_(cg.empty(3)), lambda: init.eye_(cg.empty(3)),
                lambda: init.kaiming_normal_(w, mode="fan"), lambda: init.normal_(w, std=-1.0), lambda: init.uniform_(w, 1.0, 0.0),
                lambda: init.trunc_normal_(w, a=1.0, b=1.0)):
        with pytest.raises(ValueError, match="_: "):
            bad()


def test_a_generator_makes_starts_repeatable():
    a = init.normal_(cg.empty(3), generator=cg.Generator(7))
    b = init.normal_(cg.empty(3), generator=cg.Generator(7))
    np.testing.assert_array_equal(a.numpy(), b.numpy())


# ------------------------------------------------------------------ utils
def test_parameters_as_a_vector_and_back():
    net = nn.Linear(2, 3)
    v = nn.utils.parameters_to_vector(net.parameters())
    assert v.shape == (9,) and v.requires_grad
    nn.utils.vector_to_parameters(cg.arange(9.0), net.parameters())
    assert net.weight.tolist() == [[0, 1], [2, 3], [4, 5]] and net.bias.tolist() == [6, 7, 8]
    with pytest.raises(ValueError, match=r"9 elements.*\(8,\)"):
        nn.utils.vector_to_parameters(cg.zeros(8), net.parameters())


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, math.inf])
def test_clipping_scales_to_the_norm(order):
    rng = np.random.default_rng(0)
    g = [rng.normal(size=(3, 2)), rng.normal(size=4)]
    ps = [cg.zeros(*v.shape, dtype=cg.float64, requires_grad=True) for v in g]
    for p, v in zip(ps, g):
        p.grad = cg.tensor(v)
    total = np.linalg.norm(np.concatenate([v.ravel() for v in g]), order)
    assert nn.utils.clip_grad_norm_(ps, total / 2, order).item() == pytest.approx(total)
    for p, v in zip(ps, g):
        np.testing.assert_allclose(p.grad.numpy(), v / 2, rtol=1e-5)


def test_clipping_values():
    p = cg.zeros(3, requires_grad=True)
    p.grad = cg.tensor([-5.0, 0.5, 5.0])
    nn.utils.clip_grad_value_(p, 1.0)
    assert p.grad.tolist() == [-1.0, 0.5, 1.0]
    with pytest.raises(ValueError, match="clip_value"):
        nn.utils.clip_grad_value_(p, -1.0)
