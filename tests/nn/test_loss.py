"""Losses against NumPy formulas."""
import math

import numpy as np
import pytest
from scipy import special

import cgrad as cg
import cgrad.nn.functional as F
from cgrad import nn

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(4, 3)) * 2, RNG.normal(size=(4, 3)) * 2
W = RNG.uniform(0.5, 2.0, size=(4, 3))


def reduce(v, how):
    return {"none": v, "mean": v.mean(), "sum": v.sum()}[how]


def huber(d, delta):
    return np.where(np.abs(d) <= delta, 0.5 * d**2, delta * (np.abs(d) - 0.5 * delta))


@pytest.mark.parametrize("how", ["mean", "sum", "none"])
@pytest.mark.parametrize(("function", "module", "formula"), [
    (F.mse_loss, nn.MSELoss, lambda d: d**2),
    (F.l1_loss, nn.L1Loss, np.abs),
    (F.huber_loss, nn.HuberLoss, lambda d: huber(d, 1.0)),
    (F.smooth_l1_loss, nn.SmoothL1Loss, lambda d: huber(d, 1.0)),
])
def test_losses_of_differences(function, module, formula, how):
    a, b = cg.tensor(A, requires_grad=True), cg.tensor(B, requires_grad=True)
    want = reduce(formula(A - B), how)
    np.testing.assert_allclose(function(a, b, reduction=how).detach().numpy(), want, rtol=1e-12)
    np.testing.assert_allclose(module(reduction=how)(a, b).detach().numpy(), want, rtol=1e-12)
    cg.autograd.gradcheck(lambda a, b: function(a, b, reduction=how), (a, b), check_forward_ad=True)
    cg.autograd.gradgradcheck(lambda a, b: function(a, b, reduction=how), (a, b))


def test_losses_with_options():
    a, b, w = cg.tensor(A), cg.tensor(B), cg.tensor(W)
    d = A - B
    np.testing.assert_allclose(F.huber_loss(a, b, delta=0.3).item(), huber(d, 0.3).mean(), rtol=1e-12)
    np.testing.assert_allclose(F.smooth_l1_loss(a, b, beta=0.3).item(), huber(d, 0.3).mean() / 0.3, rtol=1e-12)
    np.testing.assert_allclose(F.smooth_l1_loss(a, b, beta=0.0).item(), np.abs(d).mean(), rtol=1e-12)
    np.testing.assert_allclose(F.mse_loss(a, b, weight=w).item(), np.average(d**2, weights=W), rtol=1e-12)
    np.testing.assert_allclose(F.l1_loss(a, b, weight=w, reduction="sum").item(), (np.abs(d) * W).sum(), rtol=1e-12)
    np.testing.assert_allclose(nn.HuberLoss(delta=2.0)(a, b).item(), huber(d, 2.0).mean(), rtol=1e-12)


@pytest.mark.parametrize("function", [F.mse_loss, F.l1_loss, F.huber_loss, F.smooth_l1_loss, F.kl_div, F.binary_cross_entropy,
                                      F.binary_cross_entropy_with_logits])
def test_shapes_that_would_broadcast_are_refused(function):
    x, t = cg.full((4, 1), 0.5), cg.full((4,), 0.5)
    with pytest.raises(ValueError, match=r"\(4, 1\).*\(4,\)"):
        function(x, t)
    with pytest.raises(ValueError, match=r"\(4, 1\).*\(4, 3\)"):
        function(x, cg.full((4, 3), 0.5))


@pytest.mark.parametrize("function", [F.mse_loss, F.l1_loss, F.huber_loss, F.kl_div, F.binary_cross_entropy_with_logits])
def test_unknown_reductions_are_refused(function):
    with pytest.raises(ValueError, match="average"):
        function(cg.zeros(2), cg.zeros(2), reduction="average")


def test_the_slope_of_l1_at_no_difference_is_zero():
    x = cg.tensor([1.0, 2.0], requires_grad=True)
    F.l1_loss(x, cg.tensor([1.0, 0.0]), reduction="sum").backward()
    assert x.grad.tolist() == [0.0, 1.0]


# ------------------------------------------------------------------ classification
Z = RNG.normal(size=(6, 4)) * 3
T = np.array([0, 3, 1, 1, 2, 3])
CW = np.array([0.5, 1.0, 2.0, 3.0])


def reference(z, t, weight=None, ignore=-100, how="mean", smoothing=0.0):
    """Cross-entropy of rows, written out sample by sample."""
    w = np.ones(z.shape[1]) if weight is None else weight
    n_classes = z.shape[1]
    losses, shares = [], []
    for row, k in zip(special.log_softmax(z, axis=1), t):
        if k == ignore:
            losses.append(0.0)
            shares.append(0.0)
            continue
        losses.append(-(1 - smoothing) * w[k] * row[k] - smoothing / n_classes * (w * row).sum())
        shares.append(w[k])
    losses = np.array(losses)
    return losses.sum() / sum(shares) if how == "mean" else reduce(losses, how)


@pytest.mark.parametrize("how", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("ignore", [-100, 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_by_index(how, smoothing, ignore, weighted):
    w = CW if weighted else None
    want = reference(Z, T, w, ignore, how, smoothing)
    z = cg.tensor(Z, requires_grad=True)
    tw = None if w is None else cg.tensor(w)

    def loss(z):
        return F.cross_entropy(z, cg.tensor(T), tw, ignore_index=ignore, reduction=how, label_smoothing=smoothing)

    np.testing.assert_allclose(loss(z).detach().numpy(), want, rtol=1e-12)
    module = nn.CrossEntropyLoss(tw, ignore_index=ignore, reduction=how, label_smoothing=smoothing)
    np.testing.assert_allclose(module(z, cg.tensor(T)).detach().numpy(), want, rtol=1e-12)
    cg.autograd.gradcheck(loss, z, check_forward_ad=True)
    cg.autograd.gradgradcheck(loss, z)


@pytest.mark.parametrize("how", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_cross_entropy_with_probabilities(how, smoothing):
    p = special.softmax(RNG.normal(size=Z.shape), axis=1)
    q = p * (1 - smoothing) + smoothing / Z.shape[1]
    rows = -(special.log_softmax(Z, axis=1) * q * CW).sum(axis=1)
    got = F.cross_entropy(cg.tensor(Z), cg.tensor(p), cg.tensor(CW), reduction=how, label_smoothing=smoothing)
    np.testing.assert_allclose(got.numpy(), reduce(rows, how), rtol=1e-12)


def test_probabilities_that_are_one_hot_agree_with_indices():
    one_hot = F.one_hot(cg.tensor(T), 4).double()
    for smoothing in (0.0, 0.2):
        a = F.cross_entropy(cg.tensor(Z), one_hot, label_smoothing=smoothing)
        b = F.cross_entropy(cg.tensor(Z), cg.tensor(T), label_smoothing=smoothing)
        assert a.item() == pytest.approx(b.item(), rel=1e-12)


def test_cross_entropy_of_one_sample_and_of_images():
    assert F.cross_entropy(cg.tensor(Z[0]), cg.tensor(3)).item() == pytest.approx(-special.log_softmax(Z[0])[3])
    z = RNG.normal(size=(2, 4, 3, 5))
    t = RNG.integers(0, 4, size=(2, 3, 5))
    flat = np.moveaxis(z, 1, -1).reshape(-1, 4)
    got = F.cross_entropy(cg.tensor(z), cg.tensor(t), cg.tensor(CW), label_smoothing=0.1)
    assert got.item() == pytest.approx(reference(flat, t.ravel(), CW, smoothing=0.1), rel=1e-12)
    assert F.cross_entropy(cg.tensor(z), cg.tensor(t), reduction="none").shape == (2, 3, 5)


def test_cross_entropy_of_nothing():
    assert math.isnan(F.cross_entropy(cg.zeros(0, 3), cg.zeros(0, dtype=cg.int64)).item())
    assert F.cross_entropy(cg.zeros(0, 3), cg.zeros(0, dtype=cg.int64), reduction="sum").item() == 0.0


def test_cross_entropy_survives_extremes():
    z = cg.tensor([[1e4, 0.0, -math.inf]], dtype=cg.float64, requires_grad=True)
    loss = F.cross_entropy(z, cg.tensor([0]))
    loss.backward()
    assert loss.item() == 0.0 and np.isfinite(z.grad.numpy()).all()
    ignored = F.cross_entropy(cg.tensor([[0.0, -math.inf], [0.0, 0.0]]), cg.tensor([-100, 0]))
    assert ignored.item() == pytest.approx(math.log(2))


@pytest.mark.parametrize(("target", "error"), [
    (np.array([0, 1, 2, 3, 4, 0]), IndexError), (np.array([0, 1, 2, 3, -1, 0]), IndexError), (np.zeros(5, int), ValueError),
    (np.zeros((6, 1), int), ValueError), (np.zeros(6, bool), TypeError), (np.zeros(6), ValueError), (np.zeros((6, 3)), ValueError)])
def test_cross_entropy_refuses_targets_that_do_not_fit(target, error):
    with pytest.raises(error, match="cross_entropy"):
        F.cross_entropy(cg.tensor(Z), cg.tensor(target))


def test_cross_entropy_refuses_other_nonsense():
    z, t = cg.tensor(Z), cg.tensor(T)
    for bad in (lambda: F.cross_entropy(z, t, cg.ones(3)), lambda: F.cross_entropy(z, t, label_smoothing=1.5),
                lambda: F.cross_entropy(z, t, reduction="avg"), lambda: F.cross_entropy(cg.tensor(1.0), t),
                lambda: nn.CrossEntropyLoss(label_smoothing=-1.0), lambda: nn.CrossEntropyLoss(reduction="avg")):
        with pytest.raises(ValueError, match=r"cross_entropy|CrossEntropyLoss"):
            bad()


def test_targets_overwritten_before_backward_are_an_error():
    z, target = cg.tensor(Z, requires_grad=True), cg.tensor(T)
    loss = F.cross_entropy(z, target)
    target[0] = 1
    with pytest.raises(RuntimeError, match="in place"):
        loss.backward()


def test_targets_may_be_of_any_integer_dtype_and_layout():
    want = F.cross_entropy(cg.tensor(Z), cg.tensor(T)).item()
    for dtype in (cg.uint8, cg.int8, cg.int16, cg.int32):
        assert F.cross_entropy(cg.tensor(Z), cg.tensor(T, dtype=dtype)).item() == want
    strided = cg.tensor(np.stack([T, T + 9], axis=1))[:, 0]
    assert F.cross_entropy(cg.tensor(Z[::-1].copy()).flip(0), strided).item() == pytest.approx(want, rel=1e-14)


def test_nll_loss():
    log_p = special.log_softmax(Z, axis=1)
    got = F.nll_loss(cg.tensor(log_p), cg.tensor(T), cg.tensor(CW), ignore_index=1)
    assert got.item() == pytest.approx(reference(Z, T, CW, 1), rel=1e-12)
    assert nn.NLLLoss(cg.tensor(CW), ignore_index=1)(cg.tensor(log_p), cg.tensor(T)).item() == pytest.approx(got.item())


def test_class_weights_are_saved_and_converted_with_the_module():
    module = nn.CrossEntropyLoss(cg.ones(4))
    assert list(module.state_dict()) == ["weight"] and module.double().weight.dtype == cg.float64


# ------------------------------------------------------------------ yes or no
@pytest.mark.parametrize("how", ["mean", "sum", "none"])
def test_binary_cross_entropy(how):
    x, t = RNG.normal(size=(5, 3)) * 3, RNG.uniform(size=(5, 3))
    w, pw = RNG.uniform(size=(5, 1)), RNG.uniform(size=3)
    p = special.expit(x)
    plain = reduce(-w * (t * np.log(p) + (1 - t) * np.log1p(-p)), how)
    np.testing.assert_allclose(F.binary_cross_entropy(cg.tensor(p), cg.tensor(t), cg.tensor(w), reduction=how).numpy(), plain, rtol=1e-9)
    got = F.binary_cross_entropy_with_logits(cg.tensor(x), cg.tensor(t), cg.tensor(w), reduction=how)
    np.testing.assert_allclose(got.numpy(), plain, rtol=1e-9)
    positive = reduce(-(pw * t * np.log(p) + (1 - t) * np.log1p(-p)), how)
    module = nn.BCEWithLogitsLoss(pos_weight=cg.tensor(pw), reduction=how)
    np.testing.assert_allclose(module(cg.tensor(x), cg.tensor(t)).numpy(), positive, rtol=1e-9)
    np.testing.assert_allclose(nn.BCELoss(cg.tensor(w), reduction=how)(cg.tensor(p), cg.tensor(t)).numpy(), plain, rtol=1e-9)


def test_binary_cross_entropy_differentiates():
    x = cg.tensor(RNG.uniform(0.1, 0.9, size=(2, 3)), requires_grad=True)
    t = cg.tensor(RNG.uniform(0.1, 0.9, size=(2, 3)), requires_grad=True)
    for function in (F.binary_cross_entropy, F.binary_cross_entropy_with_logits):
        cg.autograd.gradcheck(function, (x, t), check_forward_ad=True)
        cg.autograd.gradgradcheck(function, (x, t))


def test_binary_cross_entropy_at_certainty():
    x = cg.tensor([0.0, 1.0, 0.0, 1.0], dtype=cg.float64, requires_grad=True)
    loss = F.binary_cross_entropy(x, cg.tensor([0.0, 1.0, 1.0, 0.0], dtype=cg.float64), reduction="none")
    np.testing.assert_allclose(loss.detach().numpy(), [0, 0, 100, 100])
    loss.sum().backward()
    g = x.grad.numpy()
    assert np.isfinite(g).all() and g[0] == 0 and g[1] == 0 and g[2] < -1e6 and g[3] > 1e6     # wrong and certain: pushed away
    for bad in ([1.5], [-0.5], [math.nan]):
        with pytest.raises(ValueError, match="with_logits"):
            F.binary_cross_entropy(cg.tensor(bad), cg.tensor([1.0]))


def test_logits_at_extremes():
    x = cg.tensor([1000.0, -1000.0, 50.0, 0.0], dtype=cg.float64, requires_grad=True)
    loss = F.binary_cross_entropy_with_logits(x, cg.tensor([0.0, 1.0, 1.0, 0.0], dtype=cg.float64), reduction="none")
    np.testing.assert_allclose(loss.detach().numpy(), [1000, 1000, math.log1p(math.exp(-50)), math.log(2)], rtol=1e-12)
    loss.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [1, -1, -1 / (1 + math.exp(50)), 0.5], rtol=1e-12)


def test_weights_of_binary_losses_must_fit():
    x = cg.full((4, 1), 0.5)
    with pytest.raises(ValueError, match=r"weight.*\(3,\)"):
        F.binary_cross_entropy(x, x, cg.ones(3))
    with pytest.raises(ValueError, match=r"pos_weight.*\(3,\)"):
        F.binary_cross_entropy_with_logits(x, x, pos_weight=cg.ones(3))


# ------------------------------------------------------------------ divergence
def test_kl_divergence():
    p, q = special.softmax(A, axis=1), special.softmax(B, axis=1)
    rows = special.rel_entr(p, q)
    got = F.kl_div(cg.tensor(np.log(q)), cg.tensor(p), reduction="none")
    np.testing.assert_allclose(got.numpy(), rows, rtol=1e-9, atol=1e-12)
    assert F.kl_div(cg.tensor(np.log(q)), cg.tensor(p), reduction="batchmean").item() == pytest.approx(rows.sum() / 4)
    assert nn.KLDivLoss(reduction="batchmean", log_target=True)(cg.tensor(np.log(q)), cg.tensor(np.log(p))).item() == pytest.approx(rows.sum() / 4)
    x, t = cg.tensor(np.log(q), requires_grad=True), cg.tensor(p, requires_grad=True)
    cg.autograd.gradcheck(F.kl_div, (x, t), check_forward_ad=True)


# ---------------------------------------------------------------------------------------- cross-entropy in one operation
def log_probabilities(x):
    x = np.asarray(x, np.float64)
    return x - np.log(np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)) - x.max(1, keepdims=True)


def wanted_of_classes(x, target, weight, smoothing, ignored):
    """What each class is to get, and the weight of each row: the loss of row i is -sum_c wanted[i, c] * log p[i, c]."""
    n = x.shape[1]
    weight = np.ones(n) if weight is None else weight
    kept = target != ignored
    own = np.where(kept, weight[np.where(kept, target, 0)], 0)
    wanted = kept[:, None] * weight * (smoothing / n)
    wanted[np.arange(len(target)), np.where(kept, target, 0)] += own * (1 - smoothing)
    return wanted, own


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.2}, {"weighted": True}, {"weighted": True, "label_smoothing": 0.3}])
def test_cross_entropy_of_indices_and_its_gradient(dtype, reduction, options):
    rng = np.random.default_rng(0)
    options = dict(options)
    x, target = rng.normal(0, 3, (50, 700)).astype(dtype), rng.integers(0, 700, 50)
    x += 1000 * (np.arange(50) % 2)[:, None].astype(dtype)         # a large common offset costs nothing
    target[[3, 17]] = -7
    weight = rng.uniform(0.5, 2, 700).astype(dtype) if options.pop("weighted", False) else None
    xs = cg.tensor(x, requires_grad=True)
    loss = F.cross_entropy(xs, cg.tensor(target), None if weight is None else cg.tensor(weight), ignore_index=-7, reduction=reduction, **options)
    assert loss.dtype == dtype and loss.grad_fn.name == "cross_entropy"
    wanted, own = wanted_of_classes(x, target, weight, options.get("label_smoothing", 0.0), -7)
    rows = -(wanted * log_probabilities(x)).sum(1)
    g = rng.normal(size=50 if reduction == "none" else ()).astype(dtype)
    want, row_g = {"none": (rows, g), "sum": (rows.sum(), g), "mean": (rows.sum() / own.sum(), g / own.sum())}[reduction]
    close = dict(rtol=2e-5, atol=2e-6) if dtype == np.float32 else dict(rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(loss.detach().numpy(), want, **close)
    loss.backward(cg.tensor(g))
    slope = np.exp(log_probabilities(x)) * wanted.sum(1, keepdims=True) - wanted
    np.testing.assert_allclose(xs.grad.numpy(), np.reshape(row_g, (-1, 1)) * slope, **close)
    assert not xs.grad[3].any()


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 4, 3), (2, 4, 2, 2)])
def test_cross_entropy_of_any_order_in_any_shape(reduction, smoothing, shape):
    rng = np.random.default_rng(1)
    index = rng.integers(0, 4, shape[:1] + shape[2:] if len(shape) > 1 else ())
    if index.size > 2:
        index.flat[1] = -100
    x, target, weight = cg.tensor(rng.normal(size=shape), requires_grad=True), cg.tensor(index), cg.tensor(rng.uniform(0.5, 2, 4))
    function = lambda x: F.cross_entropy(x, target, weight, reduction=reduction, label_smoothing=smoothing)
    cg.autograd.gradcheck(function, x, check_forward_ad=True)
    cg.autograd.gradgradcheck(function, x)
    y = function(x)
    g = cg.tensor(rng.normal(size=y.shape))
    fused, = cg.autograd.grad(y, x, g)
    rule, = cg.autograd.grad(function(x), x, g, create_graph=True)
    np.testing.assert_allclose(fused.numpy(), rule.detach().numpy(), rtol=1e-12, atol=1e-14)
    tracked = weight.clone().requires_grad_(True)                # a weight with a gradient goes another way
    other = F.cross_entropy(x, target, tracked, reduction=reduction, label_smoothing=smoothing)
    np.testing.assert_allclose(y.detach().numpy(), other.detach().numpy(), rtol=1e-12)
    assert y.shape == (index.shape if reduction == "none" else ())


def test_cross_entropy_at_the_edges():
    nan, inf = float("nan"), float("inf")
    x = cg.tensor([[nan, 1.0], [inf, 0.0], [0.0, -inf], [2.0, 2.0]], requires_grad=True)
    loss = F.cross_entropy(x, cg.tensor([-100, -100, 0, 1]), reduction="none")
    np.testing.assert_allclose(loss.detach().numpy(), [0, 0, 0, math.log(2)], rtol=1e-6)
    loss.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[0, 0], [0, 0], [0, 0], [0.5, -0.5]], rtol=1e-6)
    assert math.isinf(F.cross_entropy(x[2:3], cg.tensor([1])).item())
    assert F.cross_entropy(cg.ones((0, 3)), cg.ones(0, dtype=cg.int64), reduction="sum").item() == 0
    assert math.isnan(F.cross_entropy(cg.ones((0, 3)), cg.ones(0, dtype=cg.int64)).item())
    assert F.cross_entropy(cg.ones((2, 3, 0)), cg.ones((2, 0), dtype=cg.int64), reduction="none").shape == (2, 0)
    with pytest.raises(IndexError, match=r"\[0, 2\).*got 2"):
        F.cross_entropy(x, cg.tensor([0, 1, 2, 0]))


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("in_dims", [(0, 0, None), (0, None, None), (None, 0, None), (0, 0, 0)])
def test_cross_entropy_of_a_batch_of_calls(reduction, in_dims):
    rng = np.random.default_rng(2)
    x, target, weight = rng.normal(size=(3, 4, 5)), rng.integers(0, 5, (3, 4)), rng.uniform(0.5, 2, (3, 5))
    target[0, 1] = -100
    arrays = [a if d == 0 else a[0] for a, d in zip((x, target, weight), in_dims, strict=True)]
    function = lambda x, t, w: F.cross_entropy(x, t, w, reduction=reduction, label_smoothing=0.1)
    y = cg.func.vmap(function, in_dims=in_dims)(*map(cg.tensor, arrays))
    grads = cg.func.vmap(cg.func.grad(lambda *a: (function(*a) ** 2).sum()), in_dims=in_dims)(*map(cg.tensor, arrays))
    for k in range(3):
        one = [cg.tensor(a[k] if d == 0 else a) for a, d in zip(arrays, in_dims, strict=True)]
        np.testing.assert_allclose(y[k].numpy(), function(*one).numpy(), rtol=1e-12)
        one[0].requires_grad = True
        (function(*one) ** 2).sum().backward()
        np.testing.assert_allclose(grads[k].numpy(), one[0].grad.numpy(), rtol=1e-10, atol=1e-13)
