"""Losses of margins, likelihoods and distances against their definitions, written out in NumPy."""
import math

import numpy as np
import pytest
from scipy import spatial, stats

import cgrad as cg
import cgrad.nn.functional as F
from cgrad import nn

RNG = np.random.default_rng(7)
X, Y, Z = RNG.normal(size=(3, 5, 4))
SIGN = np.where(RNG.uniform(size=(5, 4)) < 0.5, -1.0, 1.0)
ROWS = np.array([1.0, -1.0, -1.0, 1.0, -1.0])
COUNTS = RNG.poisson(3.0, size=(5, 4)).astype(float)
VAR = RNG.uniform(0.2, 2.0, size=(5, 4))
CLASSES = np.array([3, 0, 1, 1, 2])
LABELS = np.array([[3, 0, -1, 1], [-1, 2, 2, 2], [0, 1, 2, 3], [2, 2, -1, 0], [1, -1, 0, 0]])
CW = np.array([0.5, 1.0, 2.0, 3.0])


def reduce(v, how):
    return {"none": v, "mean": np.mean(v), "sum": np.sum(v)}[how]


def positive(v):
    return np.maximum(v, 0.0)


def length(v, p=2.0):
    return (np.abs(v) ** p).sum(-1) ** (1 / p)


def cosine(x, y):
    return (x * y).sum(-1) / length(x) / length(y)


def triplet(a, p, n, margin=1.0, order=2.0, swap=False):
    near, far = length(a - p + 1e-6, order), length(a - n + 1e-6, order)
    far = np.minimum(far, length(p - n + 1e-6, order)) if swap else far
    return positive(near - far + margin)


def multi_margin(x, y, p=1, margin=1.0, weight=None):
    out = []
    for row, target in zip(x, y):
        w = 1.0 if weight is None else weight[target]
        out.append(sum(w * max(0.0, margin - row[target] + row[c]) ** p for c in range(len(row)) if c != target) / len(row))
    return np.array(out)


def multilabel_margin(x, y):
    out = []
    for row, labels in zip(x, y):
        wanted = []
        for c in labels:
            if c < 0:
                break
            wanted.append(c)
        out.append(sum(max(0.0, 1 - row[t] + row[c]) for t in wanted for c in range(len(row)) if c not in wanted) / len(row))
    return np.array(out)


def stirling(t):
    return np.array([[t * math.log(t) - t + 0.5 * math.log(2 * math.pi * t) if t > 1 else 0.0 for t in row] for row in t])


# function, arguments, options, module, the loss before its reduction; floating arguments are differentiated unless they are signs
CASES = {
    "hinge_embedding": (F.hinge_embedding_loss, (X, SIGN), {}, nn.HingeEmbeddingLoss, np.where(SIGN == 1, X, positive(1 - X))),
    "hinge_embedding margin": (F.hinge_embedding_loss, (X, SIGN), {"margin": 0.3}, nn.HingeEmbeddingLoss, np.where(SIGN == 1, X, positive(0.3 - X))),
    "soft_margin": (F.soft_margin_loss, (X, SIGN), {}, nn.SoftMarginLoss, np.log1p(np.exp(-SIGN * X))),
    "margin_ranking": (F.margin_ranking_loss, (X, Y, SIGN), {"margin": 0.4}, nn.MarginRankingLoss, positive(0.4 - SIGN * (X - Y))),
    "cosine_embedding": (F.cosine_embedding_loss, (X, Y, ROWS), {"margin": -0.2}, nn.CosineEmbeddingLoss,
                         np.where(ROWS == 1, 1 - cosine(X, Y), positive(cosine(X, Y) + 0.2))),
    "triplet": (F.triplet_margin_loss, (X, Y, Z), {}, nn.TripletMarginLoss, triplet(X, Y, Z)),
    "triplet p swap": (F.triplet_margin_loss, (X, Y, Z), {"margin": 2.0, "p": 3.0, "swap": True}, nn.TripletMarginLoss, triplet(X, Y, Z, 2.0, 3.0, True)),
    "triplet distance": (F.triplet_margin_with_distance_loss, (X, Y, Z), {"distance_function": lambda a, b: 1 - F.cosine_similarity(a, b), "margin": 0.5},
                         nn.TripletMarginWithDistanceLoss, positive(cosine(X, Z) - cosine(X, Y) + 0.5)),
    "multi_margin": (F.multi_margin_loss, (X, CLASSES), {}, nn.MultiMarginLoss, multi_margin(X, CLASSES)),
    "multi_margin square": (F.multi_margin_loss, (X, CLASSES), {"p": 2, "margin": 0.7, "weight": CW}, nn.MultiMarginLoss,
                            multi_margin(X, CLASSES, 2, 0.7, CW)),
    "multilabel_margin": (F.multilabel_margin_loss, (X, LABELS), {}, nn.MultiLabelMarginLoss, multilabel_margin(X, LABELS)),
    "multilabel_soft_margin": (F.multilabel_soft_margin_loss, (X, (SIGN > 0).astype(float)), {"weight": CW}, nn.MultiLabelSoftMarginLoss,
                               (CW * np.log1p(np.exp(-SIGN * X))).mean(-1)),
    "poisson": (F.poisson_nll_loss, (X, COUNTS), {}, nn.PoissonNLLLoss, np.exp(X) - COUNTS * X),
    "poisson full": (F.poisson_nll_loss, (VAR, COUNTS + 0.25), {"log_input": False, "full": True, "eps": 1e-3}, nn.PoissonNLLLoss,
                     VAR - (COUNTS + 0.25) * np.log(VAR + 1e-3) + stirling(COUNTS + 0.25)),
    "gaussian": (F.gaussian_nll_loss, (X, Y, VAR), {"full": True}, nn.GaussianNLLLoss, -stats.norm.logpdf(Y, X, np.sqrt(VAR))),
    "gaussian per row": (F.gaussian_nll_loss, (X, Y, VAR[:, 0]), {}, nn.GaussianNLLLoss, (np.log(VAR[:, :1]) + (X - Y) ** 2 / VAR[:, :1]) / 2),
}


def tensors(arrays, dtype=np.float64, **kwargs):
    return [cg.tensor(a.astype(dtype) if a.dtype.kind == "f" else a, requires_grad=a.dtype.kind == "f" and len(np.unique(a)) > 2, **kwargs) for a in arrays]


def options_of(options):
    return {k: cg.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}


@pytest.mark.parametrize("how", ["mean", "sum", "none"])
@pytest.mark.parametrize("case", CASES)
def test_a_loss_is_its_definition(case, how):
    function, arrays, options, module, want = CASES[case]
    options = options_of(options)
    inputs = tensors(arrays)
    loss = function(*inputs, **options, reduction=how)
    np.testing.assert_allclose(loss.detach().numpy(), reduce(want, how), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(module(**options, reduction=how)(*inputs).detach().numpy(), reduce(want, how), rtol=1e-10, atol=1e-12)
    single = function(*tensors(arrays, np.float32), **{k: v.float() if isinstance(v, cg.Tensor) else v for k, v in options.items()}, reduction=how)
    assert single.dtype == cg.float32
    np.testing.assert_allclose(single.detach().numpy(), reduce(want, how), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_a_loss_differentiates_in_both_directions_and_twice(case):
    function, arrays, options, _, _ = CASES[case]
    inputs, options = tensors(arrays), options_of(options)
    leaves = [t for t in inputs if t.requires_grad]

    def loss(*leaves):
        given = iter(leaves)
        return function(*[next(given) if t.requires_grad else t for t in inputs], **options, reduction="none")

    assert cg.autograd.gradcheck(loss, leaves, check_forward_ad=True)
    assert cg.autograd.gradgradcheck(loss, leaves)


@pytest.mark.parametrize("case", CASES)
def test_a_loss_of_a_batch_of_calls(case):
    function, arrays, options, _, _ = CASES[case]
    options = options_of(options)
    batched = [cg.tensor(np.stack([a, a[::-1], np.roll(a, 1, 0)])) for a in arrays]
    got = cg.func.vmap(lambda *a: function(*a, **options))(*batched)
    for k in range(3):
        np.testing.assert_allclose(got[k].numpy(), function(*[b[k] for b in batched], **options).numpy(), rtol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_arrays_are_targets_too(case):
    function, arrays, options, _, want = CASES[case]
    loss = function(cg.tensor(arrays[0], requires_grad=True), *arrays[1:], **options)
    assert loss.requires_grad
    np.testing.assert_allclose(loss.item(), want.mean(), rtol=1e-10)


def test_arrays_and_lists_are_targets_of_the_others_too():
    z, p = cg.tensor(X, requires_grad=True), cg.tensor(VAR / 4, requires_grad=True)
    for a, b in ((F.cross_entropy(z, CLASSES), F.cross_entropy(z, cg.tensor(CLASSES))), (F.cross_entropy(z, CLASSES.tolist(), CW), F.cross_entropy(
            z, cg.tensor(CLASSES), cg.tensor(CW))), (F.cross_entropy(z, VAR), F.cross_entropy(z, cg.tensor(VAR))), (F.nll_loss(z, CLASSES), F.nll_loss(
            z, cg.tensor(CLASSES))), (F.mse_loss(z, Y, weight=VAR), F.mse_loss(z, cg.tensor(Y), weight=cg.tensor(VAR))), (F.kl_div(z, VAR), F.kl_div(
            z, cg.tensor(VAR))), (F.binary_cross_entropy(p, VAR / 4), F.binary_cross_entropy(p, cg.tensor(VAR / 4))),
            (F.binary_cross_entropy_with_logits(z, VAR / 4, pos_weight=CW), F.binary_cross_entropy_with_logits(z, cg.tensor(VAR / 4), pos_weight=cg.tensor(CW)))):
        assert a.item() == b.item() and a.requires_grad


@pytest.mark.parametrize("case", ["multi_margin", "multilabel_margin", "triplet", "cosine_embedding"])
def test_one_sample_without_a_batch_axis(case):
    function, arrays, options, _, want = CASES[case]
    for k in range(len(want)):
        loss = function(*[cg.tensor(a[k]) for a in arrays], **options, reduction="none")
        assert loss.shape == ()
        assert loss.item() == pytest.approx(want[k], rel=1e-10)


@pytest.mark.parametrize(("call", "gradient"), [
    (lambda x: F.hinge_embedding_loss(x, cg.full((1,), -1), margin=2.0), -1.0),
    (lambda x: F.margin_ranking_loss(x, cg.tensor([2.0]), cg.ones(1)), -1.0),
    (lambda x: F.multi_margin_loss(cg.concat([x, cg.tensor([1.0])]), cg.tensor(0)), 0.0),
    (lambda x: F.multilabel_margin_loss(cg.concat([x, cg.tensor([1.0])]), cg.tensor([0, -1])), 0.0),
    (lambda x: F.pairwise_distance(x, cg.tensor([2.0]), eps=0.0), 0.0),
    (lambda x: F.pdist(cg.stack([x, x.detach()])).sum(), 0.0),
])
def test_gradients_at_the_corners(call, gradient):
    x = cg.tensor([2.0], requires_grad=True)
    call(x).backward()
    assert x.grad.tolist() == [gradient]


def test_a_small_variance_counts_as_eps_and_keeps_a_gradient():
    var = cg.tensor([0.0, 2.0], dtype=cg.float64, requires_grad=True)
    loss = F.gaussian_nll_loss(cg.tensor([1.0, 1.0]), cg.zeros(2), var, eps=0.25, reduction="sum")
    loss.backward()
    assert loss.item() == pytest.approx((math.log(0.25) + 4 + math.log(2) + 0.5) / 2)
    np.testing.assert_allclose(var.grad.numpy(), [(1 / 0.25 - 1 / 0.25**2) / 2, (1 / 2 - 1 / 4) / 2], rtol=1e-12)
    assert F.gaussian_nll_loss(cg.tensor([1.0]), cg.zeros(1), 1).item() == 0.5


def test_a_large_logit_does_not_overflow():
    x = cg.tensor([1e4, -1e4], requires_grad=True)
    loss = F.soft_margin_loss(x, cg.tensor([-1.0, 1.0]), reduction="sum")
    loss.backward()
    assert loss.item() == 2e4 and x.grad.tolist() == [1.0, -1.0]


@pytest.mark.parametrize(("call", "words"), [
    (lambda: F.hinge_embedding_loss(cg.ones(4, 1), cg.ones(4)), r"hinge.*\(4, 1\).*\(4,\).*reshape"),
    (lambda: F.soft_margin_loss(cg.ones(4, 1), cg.ones(4)), "soft_margin"),
    (lambda: F.poisson_nll_loss(cg.ones(4, 1), cg.ones(4)), "poisson"),
    (lambda: F.multilabel_soft_margin_loss(cg.ones(4, 1), cg.ones(4)), "multilabel_soft"),
    (lambda: F.multilabel_soft_margin_loss(cg.ones(4, 1), cg.ones(4, 1), cg.ones(4)), "weight"),
    (lambda: F.gaussian_nll_loss(cg.ones(4, 1), cg.ones(4), cg.ones(4, 1)), r"target of shape \(4,\)"),
    (lambda: F.gaussian_nll_loss(cg.ones(4), cg.ones(4), -cg.ones(4)), "negative"),
    (lambda: F.gaussian_nll_loss(cg.ones(4), cg.ones(4), cg.ones(4), eps=0.0), "eps"),
    (lambda: F.margin_ranking_loss(cg.ones(4, 1), cg.ones(4), cg.ones(4)), "input1 and input2"),
    (lambda: F.margin_ranking_loss(cg.ones(4), cg.ones(4), cg.ones(1)), r"\(4,\) and \(1,\)"),
    (lambda: F.cosine_embedding_loss(cg.ones(4, 3), cg.ones(4, 3), cg.ones(4, 1)), r"\(4, 1\)"),
    (lambda: F.cosine_embedding_loss(cg.ones(4, 3), cg.ones(3), cg.ones(4)), "input1 and input2"),
    (lambda: F.triplet_margin_loss(cg.ones(4, 3), cg.ones(4, 1), cg.ones(4, 3)), "anchor and positive"),
    (lambda: F.triplet_margin_loss(cg.ones(4, 3), cg.ones(4, 3), cg.ones(4, 3), margin=0.0), "margin"),
    (lambda: F.multi_margin_loss(cg.ones(4, 3), cg.zeros(3, dtype=cg.int64)), r"\(4, 3\) and \(3,\)"),
    (lambda: F.multi_margin_loss(cg.ones(4, 3), cg.zeros(4, dtype=cg.int64), p=3), "p must be"),
    (lambda: F.multi_margin_loss(cg.ones(4, 3), cg.zeros(4, dtype=cg.int64), weight=cg.ones(4)), "weight"),
    (lambda: F.multilabel_margin_loss(cg.ones(4, 3), cg.zeros((3, 4), dtype=cg.int64)), "multilabel_margin"),
    (lambda: F.pdist(cg.ones(4)), "matrix"),
    (lambda: F.pdist(cg.ones(4, 3), p=-1.0), "negative"),
    (lambda: F.soft_margin_loss(cg.ones(4), cg.ones(4), reduction="average"), "average"),
    (lambda: nn.TripletMarginLoss(reduction="average"), "TripletMarginLoss"),
])
def test_what_does_not_fit_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_classes_out_of_range_and_of_the_wrong_kind():
    x = cg.ones(2, 3)
    with pytest.raises(IndexError, match=r"\[0, 3\), got 3"):
        F.multi_margin_loss(x, cg.tensor([0, 3]))
    with pytest.raises(IndexError, match=r"\[-1, 3\), got -2"):
        F.multilabel_margin_loss(x, cg.tensor([[0, 1, -2], [0, 1, 2]]))
    with pytest.raises(TypeError, match="float32"):
        F.multi_margin_loss(x, cg.zeros(2))
    with pytest.raises(TypeError, match="by name"):
        F.mse_loss(x, x, "sum")


def test_reductions_as_they_were_spelt_once():
    a, b = cg.tensor(X), cg.tensor(Y)
    for function in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.soft_margin_loss, F.kl_div):
        for old, how in (({"reduce": False}, "none"), ({"size_average": False}, "sum"), ({"size_average": True}, "mean")):
            np.testing.assert_array_equal(function(a, b, **old).numpy(), function(a, b, reduction=how).numpy())


# -------------------------------------------------------------------------------------------------------------- distances
@pytest.mark.parametrize(("p", "metric"), [(1.0, {"metric": "cityblock"}), (2.0, {"metric": "euclidean"}), (3.0, {"metric": "minkowski", "p": 3.0}),
                                           (math.inf, {"metric": "chebyshev"}), (0.0, {"metric": lambda a, b: np.count_nonzero(a - b)})])
def test_distances_of_all_pairs(p, metric):
    points = np.vstack([X, X[:1]])
    np.testing.assert_allclose(F.pdist(cg.tensor(points), p).numpy(), spatial.distance.pdist(points, **metric), rtol=1e-12)
    if p:
        assert cg.autograd.gradcheck(lambda x: F.pdist(x, p), cg.tensor(X, requires_grad=True), check_forward_ad=True)
    for n in (0, 1):
        assert F.pdist(cg.ones(n, 3), p).shape == (0,)


def test_distance_modules():
    x, y = cg.tensor(X), cg.tensor(Y)
    np.testing.assert_allclose(nn.PairwiseDistance(p=3.0, keepdim=True)(x, y).numpy()[:, 0], length(X - Y + 1e-6, 3.0), rtol=1e-12)
    np.testing.assert_allclose(nn.CosineSimilarity(dim=0)(x, y).numpy(), cosine(X.T, Y.T), rtol=1e-12)
