"""Connectionist temporal classification against the sum over all alignments, one by one."""
import itertools
import math

import numpy as np
import pytest
from scipy import special

import cgrad as cg
import cgrad.nn.functional as F
from cgrad import nn

RNG = np.random.default_rng(3)


def collapsed(path, blank):
    """What a path says: repetitions merged, then blanks left out."""
    return [c for c, _ in itertools.groupby(path) if c != blank]


def by_enumeration(log_probs, target, blank=0):
    """(loss, occupancy): over every path of classes through the steps that says the target."""
    steps, classes = log_probs.shape
    total, occupancy = 0.0, np.zeros_like(log_probs)
    for path in itertools.product(range(classes), repeat=steps):
        if collapsed(path, blank) == list(target):
            p = math.exp(sum(log_probs[t, c] for t, c in enumerate(path)))
            total += p
            occupancy[range(steps), path] += p
    return (-math.log(total), occupancy / total) if total else (math.inf, np.full_like(log_probs, np.nan))


def log_probabilities(*shape):
    return special.log_softmax(RNG.normal(size=shape) * 1.5, axis=-1)


SAMPLES = [((), 4), ((1,), 1), ((1,), 5), ((1, 1), 3), ((2, 2), 5), ((1, 2), 2), ((2, 1, 2), 5), ((1, 1, 2), 5)]     # labels, time steps


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("blank", [0, 2])
@pytest.mark.parametrize(("labels", "steps"), SAMPLES)
def test_one_sample(labels, steps, blank, dtype):
    if blank == 2:
        labels = [c - 1 for c in labels]
    lp = log_probabilities(steps, 3).astype(dtype)
    loss, occupancy = by_enumeration(lp.astype(np.float64), labels, blank)
    x = cg.tensor(lp, requires_grad=True)
    got = F.ctc_loss(x, cg.tensor(np.array(labels, int)), steps, len(labels), blank, "none")
    assert got.shape == () and got.dtype == dtype
    tolerance = dict(rtol=1e-10, atol=1e-12) if dtype == np.float64 else dict(rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got.item(), loss, **tolerance)
    got.backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(lp) - occupancy, **tolerance)


def batch():
    """All samples side by side, padded with what must not be read."""
    lp = log_probabilities(6, len(SAMPLES), 3)
    targets = np.full((len(SAMPLES), 4), -9)
    for i, (labels, _) in enumerate(SAMPLES):
        targets[i, :len(labels)] = labels
    steps, lengths = [s for _, s in SAMPLES], [len(labels) for labels, _ in SAMPLES]
    want = [by_enumeration(lp[:s, i], labels) for i, (labels, s) in enumerate(SAMPLES)]
    return lp, targets, steps, lengths, want


@pytest.mark.parametrize("how", ["none", "sum", "mean"])
@pytest.mark.parametrize("spelling", ["padded", "concatenated"])
def test_a_batch_of_unlike_lengths(spelling, how):
    lp, targets, steps, lengths, want = batch()
    if spelling == "concatenated":
        targets = np.concatenate([labels for labels, _ in SAMPLES]).astype(np.int32)
    x = cg.tensor(lp, requires_grad=True)
    losses = np.array([loss for loss, _ in want])
    share = {"none": np.ones(len(want)), "sum": np.ones(len(want)), "mean": 1 / np.maximum(lengths, 1) / len(want)}[how]
    for a, b in ((steps, lengths), (tuple(steps), cg.tensor(lengths)), (np.array(steps), cg.tensor(lengths, dtype=cg.int32))):
        got = F.ctc_loss(x, cg.tensor(targets), a, b, reduction=how)
        np.testing.assert_allclose(got.detach().numpy(), losses if how == "none" else (losses * share).sum(), rtol=1e-10)
        assert got.item() if how != "none" else True
        module = nn.CTCLoss(reduction=how)(x, cg.tensor(targets), a, b)
        np.testing.assert_array_equal(module.detach().numpy(), got.detach().numpy())
    got.sum().backward()
    for i, ((_, s), (_, occupancy)) in enumerate(zip(SAMPLES, want)):
        np.testing.assert_allclose(x.grad[:s, i].numpy(), share[i] * (np.exp(lp[:s, i]) - occupancy), rtol=1e-9, atol=1e-12)
        assert not x.grad[s:, i].any()


def test_behind_log_softmax_it_differentiates_in_any_order():
    _, targets, steps, lengths, _ = batch()
    logits = cg.tensor(RNG.normal(size=(6, len(SAMPLES), 3)), requires_grad=True)

    def loss(z):
        return F.ctc_loss(z.log_softmax(2), cg.tensor(targets), steps, lengths, reduction="none")

    assert cg.autograd.gradcheck(loss, logits, check_forward_ad=True)
    assert cg.autograd.gradgradcheck(loss, logits)


def test_the_rule_for_higher_orders_gives_what_the_kernel_gives():
    lp, targets, steps, lengths, _ = batch()
    x = cg.tensor(lp, requires_grad=True)
    loss = lambda: F.ctc_loss(x, cg.tensor(targets), steps, lengths)
    first, = cg.autograd.grad(loss(), x)
    recorded, = cg.autograd.grad(loss(), x, create_graph=True)
    np.testing.assert_allclose(recorded.detach().numpy(), first.numpy(), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("create_graph", [False, True])
def test_without_any_alignment(create_graph):
    lp = log_probabilities(2, 2, 3)                      # two steps are too few for a label twice
    targets, steps, lengths = cg.tensor([[1, 1], [1, 2]]), [2, 2], [2, 2]
    x = cg.tensor(lp, requires_grad=True)
    assert F.ctc_loss(x, targets, steps, lengths, reduction="none")[0].item() == math.inf
    g, = cg.autograd.grad(F.ctc_loss(x, targets, steps, lengths, reduction="sum"), x, create_graph=create_graph)
    assert np.isnan(g.detach().numpy()[:, 0]).all() and np.isfinite(g.detach().numpy()[:, 1]).all()
    loss = F.ctc_loss(x, targets, steps, lengths, reduction="sum", zero_infinity=True)
    assert loss.item() == pytest.approx(-lp[0, 1, 1] - lp[1, 1, 2])
    g, = cg.autograd.grad(loss, x, create_graph=create_graph)
    assert not g[:, 0].any() and np.isfinite(g.detach().numpy()).all()


@pytest.mark.parametrize("create_graph", [False, True])
def test_impossible_classes_and_steps_that_are_not_there(create_graph):
    lp = np.log(np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]], dtype=np.float64), where=[[0, 1, 0], [1, 0, 1], [0, 0, 1]],
                out=np.full((3, 3), -np.inf))
    x = cg.tensor(lp[:, None], requires_grad=True)
    loss = F.ctc_loss(x, cg.tensor([[1, 2]]), [3], [2], reduction="sum")
    assert loss.item() == pytest.approx(0.0, abs=1e-12)
    g, = cg.autograd.grad(loss, x, create_graph=create_graph)
    np.testing.assert_allclose(g.detach().numpy(), 0, atol=1e-12)
    none = F.ctc_loss(x, cg.tensor([[1, 2]]), [0], [0], reduction="sum")
    assert none.item() == 0 and F.ctc_loss(x, cg.tensor([[1, 2]]), [0], [1], reduction="none").item() == math.inf
    g, = cg.autograd.grad(none, x, create_graph=create_graph)
    assert not g.any()


def test_long_sequences_neither_underflow_nor_lose_digits():
    """One label at every step: of n steps, the label may hold any run, so the likelihood is n (n + 1) / 2 paths of 1 / 2**n each."""
    n = 3000
    x = cg.zeros(n, 1, 2, dtype=cg.float32).log_softmax(2)
    loss = F.ctc_loss(x, cg.tensor([[1]]), [n], [1], reduction="sum").item()
    assert loss == pytest.approx(n * math.log(2) - math.log(n * (n + 1) / 2), rel=1e-6)


def test_a_batch_of_calls():
    lp, targets, steps, lengths, _ = batch()
    x, y = np.stack([lp, lp[::-1]]), np.stack([targets, np.where(targets > 0, 3 - targets, targets)])
    for dims in ((0, 0), (0, None), (None, 0)):
        args = [cg.tensor(a if d == 0 else a[0]) for a, d in zip((x, y), dims)]
        function = lambda a, b: F.ctc_loss(a, b, steps, lengths)
        got = cg.func.vmap(function, in_dims=dims)(*args)
        slopes = cg.func.vmap(cg.func.grad(function), in_dims=dims)(*args)
        for k in range(2):
            one = [a[k] if d == 0 else a for a, d in zip(args, dims)]
            assert got[k].item() == pytest.approx(function(*one).item(), rel=1e-12)
            np.testing.assert_allclose(slopes[k].numpy(), cg.func.grad(function)(*one).numpy(), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(("change", "error", "words"), [
    ({"targets": [[1, 3], [1, 2]]}, IndexError, r"\[0, 3\).*got 3 for sample 0"),
    ({"targets": [[1, 2], [1, 0]]}, IndexError, "blank=0, got 0 for sample 1"),
    ({"targets": [[1, 2]]}, ValueError, r"\(1, 2\)"),
    ({"targets": [1, 2, 1]}, ValueError, "sum"),
    ({"targets": [[1.0, 2.0], [1.0, 2.0]]}, TypeError, "integers"),
    ({"input_lengths": [4, 5]}, ValueError, r"\[0, 4\], got 5 for sample 1"),
    ({"input_lengths": [4, -1]}, ValueError, "-1"),
    ({"input_lengths": [4]}, ValueError, "2 samples"),
    ({"input_lengths": [4.0, 4.0]}, ValueError, "integer"),
    ({"target_lengths": [2, 3]}, ValueError, r"\[0, 2\], got 3"),
    ({"target_lengths": 2}, ValueError, "target_lengths"),
    ({"blank": 3}, IndexError, "blank"),
    ({"reduction": "average"}, ValueError, "average"),
    ({"log_probs": [0.0, 1.0]}, ValueError, r"\(T, N, C\)"),
])
def test_what_does_not_fit_is_refused(change, error, words):
    call = {"log_probs": log_probabilities(4, 2, 3), "targets": [[1, 2], [1, 2]], "input_lengths": [4, 4], "target_lengths": [2, 2]} | change
    call["log_probs"], call["targets"] = cg.tensor(call["log_probs"]), cg.tensor(call["targets"])
    with pytest.raises(error, match=words):
        F.ctc_loss(**call)
