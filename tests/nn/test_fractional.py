"""Fractional max pooling against a plain loop; adaptive softmax against the softmax it factorises."""
import itertools

import numpy as np
import pytest
from scipy import special

import cgrad as cg
from cgrad import nn

F = nn.functional


def loops(x, kernel, sizes, u, order):
    """Values and places of fractional max pooling, window by window."""
    n, space = len(kernel), x.shape[2:]
    out, places = np.empty((*x.shape[:2], *sizes)), np.empty((*x.shape[:2], *sizes), int)
    for sample, channel in np.ndindex(*x.shape[:2]):
        starts = []
        for axis in range(n):
            s, k, m = space[axis], kernel[axis], sizes[axis]
            v, step = u[sample, channel, order[axis]], (s - k) / (m - 1) if m > 1 else 0.0
            starts.append([int((i + v) * step) - int(v * step) for i in range(m - 1)] + [s - k])
        for where in np.ndindex(*sizes):
            best = None
            for tap in itertools.product(*map(range, kernel)):
                at = tuple(starts[axis][where[axis]] + tap[axis] for axis in range(n))
                if best is None or x[(sample, channel, *at)] > x[(sample, channel, *best)]:
                    best = at
            out[(sample, channel, *where)] = x[(sample, channel, *best)]
            places[(sample, channel, *where)] = np.ravel_multi_index(best, space)
    return out, places


@pytest.mark.parametrize(("shape", "kernel", "sizes"), [((2, 3, 9, 7), (2, 3), (4, 3)), ((1, 2, 5, 5), (2, 2), (1, 4)), ((2, 1, 6, 5, 7), (2, 2, 3), (3, 2, 1))])
def test_windows_and_places(shape, kernel, sizes):
    rng = np.random.default_rng(0)
    n = len(kernel)
    x, u = rng.normal(size=shape), rng.random((*shape[:2], n))
    function = F.fractional_max_pool2d if n == 2 else F.fractional_max_pool3d
    want, places = loops(x, kernel, sizes, u, (1, 0) if n == 2 else (0, 1, 2))
    t = cg.tensor(x, requires_grad=True)
    out, got = function(t, kernel, sizes, return_indices=True, _random_samples=cg.tensor(u))
    np.testing.assert_array_equal(out.detach().numpy(), want)
    np.testing.assert_array_equal(got.numpy(), places)
    g = rng.normal(size=want.shape)
    out.backward(cg.tensor(g))
    slope = np.zeros((*shape[:2], int(np.prod(shape[2:]))))
    for sample, channel in np.ndindex(*shape[:2]):
        np.add.at(slope[sample, channel], places[sample, channel].ravel(), g[sample, channel].ravel())
    np.testing.assert_allclose(t.grad.numpy().reshape(slope.shape), slope, rtol=1e-13, atol=1e-14)
    single = function(cg.tensor(x[0]), kernel, sizes, _random_samples=cg.tensor(u[:1]))
    np.testing.assert_array_equal(single.numpy(), want[0])


def test_layers_and_errors_of_fractional_pools():
    layer = nn.FractionalMaxPool2d(2, output_ratio=(0.5, 0.5), return_indices=True)
    out, places = layer(cg.randn(2, 3, 8, 10))
    assert out.shape == places.shape == (2, 3, 4, 5)
    assert F.max_unpool2d(out, places, 2).shape == (2, 3, 8, 10)
    x = cg.ones(1, 1, 5, 5)
    for options, words in (({}, "either"), ({"output_size": 2, "output_ratio": 0.5}, "either"), ({"output_ratio": 1.5}, "in \\(0, 1\\)"),
                           ({"output_size": 5}, "do not fit"), ({"output_size": 2, "_random_samples": cg.ones(1, 1, 3)}, "random samples")):
        with pytest.raises(ValueError, match=words):
            F.fractional_max_pool2d(x, 2, **options)
    with pytest.raises(ValueError, match="3 or 4 axes"):
        F.fractional_max_pool2d(cg.ones(5, 5), 2, 2)
    with pytest.raises(ValueError, match="either"):
        nn.FractionalMaxPool3d(2)


def test_adaptive_softmax_is_a_softmax_in_two_steps():
    cg.manual_seed(0)
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[4, 10, 15], div_value=2.0, head_bias=True, dtype=cg.float64)
    assert [name for name, _ in layer.named_parameters()] == ["head.weight", "head.bias", *(f"tail.{i}.{k}.weight" for i in range(3) for k in range(2))]
    assert [tuple(block[0].weight.shape) for block in layer.tail] == [(4, 8), (2, 8), (1, 8)]
    x = np.random.default_rng(0).normal(size=(12, 8))
    head = special.log_softmax(x @ layer.head.weight.detach().numpy().T + layer.head.bias.detach().numpy(), axis=1)
    parts = [head[:, :4]]
    for i, block in enumerate(layer.tail):
        scores = x @ block[0].weight.detach().numpy().T @ block[1].weight.detach().numpy().T
        parts.append(special.log_softmax(scores, axis=1) + head[:, 4 + i:5 + i])
    want = np.concatenate(parts, axis=1)
    np.testing.assert_allclose(special.logsumexp(want, axis=1), 0.0, atol=1e-12)
    t = cg.tensor(x, requires_grad=True)
    np.testing.assert_allclose(layer.log_prob(t).detach().numpy(), want, rtol=1e-12)
    np.testing.assert_array_equal(layer.predict(t).numpy(), want.argmax(axis=1))
    target = np.array([0, 3, 4, 9, 10, 14, 15, 19, 2, 12, 19, 5])
    output, loss = layer(t, cg.tensor(target))
    np.testing.assert_allclose(output.detach().numpy(), want[np.arange(12), target], rtol=1e-12)
    assert loss.item() == pytest.approx(-want[np.arange(12), target].mean(), rel=1e-12)
    loss.backward()
    slope = t.grad.clone()
    t.grad = None
    (-cg.take_along_axis(layer.log_prob(t), cg.tensor(target[:, None]), axis=1).mean()).backward()
    np.testing.assert_allclose(slope.numpy(), t.grad.numpy(), rtol=1e-10, atol=1e-14)
    one = layer(cg.tensor(x[0]), cg.tensor(7))
    assert one.output.shape == () and one.loss.item() == pytest.approx(-want[0, 7], rel=1e-12)
    layer.reset_parameters()


def test_adaptive_softmax_refuses_what_does_not_fit():
    for cutoffs in ([], [5, 5], [0, 3], [3, 20], [6, 2]):
        with pytest.raises(ValueError, match="cutoffs"):
            nn.AdaptiveLogSoftmaxWithLoss(4, 20, cutoffs)
    layer = nn.AdaptiveLogSoftmaxWithLoss(4, 20, [5])
    for x, target in ((cg.ones(2, 4), cg.tensor([1])), (cg.ones(4), cg.tensor([1])), (cg.ones(1, 1, 4), cg.tensor([[1]]))):
        with pytest.raises(ValueError, match="must have shape"):
            layer(x, target)
    for bad in (-1, 20):
        with pytest.raises(ValueError, match="from 0 to 19"):
            layer(cg.ones(1, 4), cg.tensor([bad]))
