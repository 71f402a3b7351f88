"""Optimizer steps against PyTorch's formulas, written out in NumPy in the same dtype and order."""
import itertools

import numpy as np
import pytest

import cgrad as cg
from cgrad.core.convert import share_array
from cgrad.core.forward.optim import fused_step
from cgrad.kernels.parallel import get_num_threads, set_num_threads

FLOATS = [np.float32, np.float64]


def samples(dtype, n=5, shape=(37, 3)):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(dtype) for _ in range(n)]


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=4 * np.finfo(want.dtype).eps, atol=0)


def step(rule, params, grads, state, start, coefficients, later=None):
    """A step with given coefficients, `later` for parameters that have their state already."""
    for p, g in zip(params, grads, strict=True):
        p.grad = None if g is None else share_array(np.asarray(g))
    fused_step(rule, params, state, start, {}, lambda first: ((), coefficients if first or later is None else later))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("momentum", "dampening", "nesterov"), [(0, 0, False), (0.9, 0, False), (0.9, 0.25, False), (0.9, 0, True)])
@pytest.mark.parametrize("decay", [0, 0.1])
@pytest.mark.parametrize("maximize", [False, True])
def test_sgd(dtype, momentum, dampening, nesterov, decay, maximize):
    p, *grads = samples(dtype)
    t = dtype
    want, buffer = p.copy(), None
    ours, state = share_array(p.copy()), {}
    for g in grads:
        d = -g if maximize else g
        if decay:
            d = d + t(decay) * want
        if momentum:
            buffer = d.copy() if buffer is None else buffer * t(momentum) + t(1 - dampening) * d
            d = d + t(momentum) * buffer if nesterov else buffer
        want = want + t(-0.05) * d
        head = (-1 if maximize else 1, decay, 0.05)
        if momentum:
            step("momentum", [ours], [g], state, {"buffer": 0}, (*head, momentum, 1, nesterov), (*head, momentum, 1 - dampening, nesterov))
            np.testing.assert_array_equal(np.asarray(state[ours]["buffer"]), buffer)
        else:
            step("SGD", [ours], [g], state, {}, head)
            assert state == {}
        np.testing.assert_array_equal(np.asarray(ours), want)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("beta1", [0.9, 0.3])
@pytest.mark.parametrize(("decay", "decoupled", "amsgrad", "maximize"), list(itertools.product([0, 0.1], [False, True], [False, True], [False, True])))
def test_adam(dtype, beta1, decay, decoupled, amsgrad, maximize):
    p, *grads = samples(dtype)
    t = dtype
    lr, beta2, eps = 0.01, 0.999, 1e-8
    want, m, v, largest = p.copy(), np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)
    ours, state = share_array(p.copy()), {}
    for n, g in enumerate(grads, 1):
        d = -g if maximize else g
        shrink = 1 - lr * decay if decoupled else 1
        if decay and not decoupled:
            d = d + t(decay) * want
        weight = t(1 - beta1)
        m = m + weight * (d - m) if 1 - beta1 < 0.5 else d - (d - m) * (1 - weight)
        v = v * t(beta2) + t(1 - beta2) * d * d
        largest = np.maximum(largest, v)
        root = np.sqrt(largest if amsgrad else v) / t(np.sqrt(1 - beta2**n)) + t(eps)
        want = want * t(shrink) + t(-lr / (1 - beta1**n)) * m / root
        step("Adam", [ours], [g], state, {"m": 0, "v": 0, "top": 0 if amsgrad else None}, (
            -1 if maximize else 1, 0 if decoupled else decay, shrink, 1 - beta1, beta2, 1 - beta2, lr / (1 - beta1**n), np.sqrt(1 - beta2**n), eps))
        close(ours, want)
        close(state[ours]["m"], m)
        close(state[ours]["v"], v)
    if amsgrad:
        close(state[ours]["top"], largest)


def test_layouts_and_versions():
    base = np.zeros((4, 6), np.float32)
    p = share_array(base[::2, ::-2])
    g = np.arange(6.0, dtype=np.float32).reshape(3, 2).T
    version = p._version
    step("SGD", [p], [g], {}, {}, (1, 0, 1))
    np.testing.assert_array_equal(base[::2, ::-2], -g)
    assert not base[1].any() and p._version > version


def test_no_gradient_skips():
    p, q = share_array(np.ones(3)), share_array(np.ones(3))
    state = {}
    step("momentum", [p, q], [None, np.ones(3)], state, {"buffer": 0}, (1, 0, 0.5, 0.9, 1, False))
    assert np.asarray(p).tolist() == [1, 1, 1] and np.asarray(q).tolist() == [0.5] * 3 and list(state) == [q]


def test_parameters_share_a_pass():
    """Blocks, chunks and parameters of every length, two dtypes and none: each element is reached once."""
    rng = np.random.default_rng(1)
    sizes = [0, 1, 511, 512, 513, 3, 0, 0, 16384, 16385, 40000, 2, 0]
    params = [share_array(rng.standard_normal(n).astype(FLOATS[i % 2])) for i, n in enumerate(sizes)]
    grads = [rng.standard_normal(n).astype(FLOATS[i % 2]) for i, n in enumerate(sizes)]
    want = [np.asarray(p) - g for p, g in zip(params, grads, strict=True)]
    step("SGD", params, grads, {}, {}, (1, 0, 1))
    for p, w in zip(params, want, strict=True):
        np.testing.assert_array_equal(np.asarray(p), w)


def test_same_bits_for_any_number_of_threads():
    before = get_num_threads()
    results = []
    try:
        for n in (1, 2, 3):
            set_num_threads(n)
            p, g, *_ = (np.abs(a) for a in samples(np.float32, 4, (200000,)))
            p = share_array(p)
            step("Adam", [p], [g], {}, {"m": 0, "v": 0}, (1, 0, 0.999, 0.1, 0.999, 0.001, 0.01, 0.1, 1e-8))
            results.append(np.asarray(p).tobytes())
    finally:
        set_num_threads(before)
    assert results[0] == results[1] == results[2]


def test_errors_leave_everything_as_it_was():
    p, q = share_array(np.ones(3)), share_array(np.ones(3))
    g, one, buffer = np.ones(3), (1, 0, 0.1), (1, 0, 0.1, 0.9, 1, False)
    frozen = np.ones(3)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="SGD.step: expected 3 coefficients, got 6"):
        step("SGD", [p], [g], {}, {}, buffer)
    with pytest.raises(ValueError, match="wrong states"):
        step("momentum", [p], [g], {}, {}, buffer)
    for bad, text in [(share_array(np.ones(3, np.float32)), "like its parameter, float64 of shape"), (share_array(np.ones(4)), r"got float64 of shape \(4,\)"),
                      (share_array(np.ones(6)[::2]), "contiguous"), (share_array(frozen), "read-only")]:
        state = {q: {"buffer": bad}}
        with pytest.raises(ValueError, match=text):
            step("momentum", [p, q], [g, g], state, {"buffer": 0}, buffer)
        assert list(state) == [q]
    with pytest.raises(TypeError, match="must be a Tensor, got float"):
        step("momentum", [p, q], [g, g], {q: {"buffer": 1.0}}, {"buffer": 0}, buffer)
    with pytest.raises(TypeError, match="parameters must be floating-point, got int64"):
        step("SGD", [p, share_array(np.ones(3, np.int64))], [g, np.ones(3, np.int64)], {}, {}, one)
    with pytest.raises(ValueError, match="read-only"):
        step("SGD", [p, share_array(frozen)], [g, g], {}, {}, one)
    with pytest.raises(ZeroDivisionError):
        fused_step("SGD", [p], {}, {}, {}, lambda first: 1 / 0)
    with pytest.raises(TypeError, match="Tensor"):
        fused_step("SGD", [p, 3.0], {}, {}, {}, lambda first: ((), one))
    assert np.asarray(p).tolist() == [1, 1, 1] and np.asarray(q).tolist() == [1, 1, 1]


def test_sixteen_bits_take_steps_in_float32():
    p = cg.ones(3, dtype=cg.bfloat16)
    state = {}
    p.grad = cg.ones(3, dtype=cg.bfloat16)
    fused_step("momentum", [p], state, {"buffer": 0}, {}, lambda first: ((), (1, 0, 0.25, 0.9, 1, False)))
    assert p.tolist() == [0.75] * 3 and state[p]["buffer"].dtype is cg.float32
