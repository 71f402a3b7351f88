"""Optimizer steps against PyTorch's formulas, written out in NumPy in the same dtype and order."""
import itertools

import numpy as np
import pytest

from cgrad.core.convert import share_array
from cgrad.core.forward.optim import adam_step, sgd_step
from cgrad.kernels.parallel import get_num_threads, set_num_threads

FLOATS = [np.float32, np.float64]


def samples(dtype, n=5, shape=(37, 3)):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(dtype) for _ in range(n)]


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=4 * np.finfo(want.dtype).eps, atol=0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("momentum", "dampening", "nesterov"), [(0, 0, False), (0.9, 0, False), (0.9, 0.25, False), (0.9, 0, True)])
@pytest.mark.parametrize("decay", [0, 0.1])
@pytest.mark.parametrize("maximize", [False, True])
def test_sgd(dtype, momentum, dampening, nesterov, decay, maximize):
    p, *grads = samples(dtype)
    t = dtype
    want, buffer = p.copy(), None
    ours = share_array(p.copy())
    buffers = [None]
    for g in grads:
        d = -g if maximize else g
        if decay:
            d = d + t(decay) * want
        if momentum:
            buffer = d.copy() if buffer is None else buffer * t(momentum) + t(1 - dampening) * d
            d = d + t(momentum) * buffer if nesterov else buffer
        want = want + t(-0.05) * d
        sgd_step([ours], [share_array(g)], buffers, 0.05, momentum, dampening, nesterov, decay, maximize)
        np.testing.assert_array_equal(np.asarray(ours), want)
        if momentum:
            np.testing.assert_array_equal(np.asarray(buffers[0]), buffer)
        else:
            assert buffers == [None]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("beta1", [0.9, 0.3])
@pytest.mark.parametrize(("decay", "decoupled", "amsgrad", "maximize"), list(itertools.product([0, 0.1], [False, True], [False, True], [False, True])))
def test_adam(dtype, beta1, decay, decoupled, amsgrad, maximize):
    p, *grads = samples(dtype)
    t = dtype
    lr, beta2, eps = 0.01, 0.999, 1e-8
    want, m, v, largest = p.copy(), np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)
    ours, our_m, our_v, our_largest = (share_array(a.copy()) for a in (want, m, v, largest))
    for step, g in enumerate(grads, 1):
        d = -g if maximize else g
        if decoupled:
            want = want * t(1 - lr * decay)
        elif decay:
            d = d + t(decay) * want
        weight = t(1 - beta1)
        m = m + weight * (d - m) if 1 - beta1 < 0.5 else d - (d - m) * (1 - weight)
        v = v * t(beta2) + t(1 - beta2) * d * d
        largest = np.maximum(largest, v)
        root = np.sqrt(largest if amsgrad else v) / t(np.sqrt(1 - beta2**step)) + t(eps)
        want = want + t(-lr / (1 - beta1**step)) * m / root
        adam_step([ours], [share_array(g)], [our_m], [our_v], [our_largest] if amsgrad else None, [step],
                  lr, beta1, beta2, eps, decay, maximize, decoupled)
        close(ours, want)
        close(our_m, m)
        close(our_v, v)
    if amsgrad:
        close(our_largest, largest)


def test_first_adam_step_has_the_length_of_the_rate():
    p = share_array(np.array([1.0, 2.0, 3.0]))
    zeros = [share_array(np.zeros(3)) for _ in range(2)]
    adam_step([p], [share_array(np.array([5.0, -1e-3, 2.0]))], zeros[:1], zeros[1:], None, [1], 0.1, 0.9, 0.999, 1e-8, 0, False, False)
    np.testing.assert_allclose(np.asarray(p), [0.9, 2.1, 2.9], rtol=1e-5)


def test_layouts_dtypes_and_versions():
    base = np.zeros((4, 6), np.float32)
    p = share_array(base[::2, ::-2])
    g = np.arange(6.0).reshape(3, 2).T
    version = p._version
    sgd_step([p], [share_array(g)], None, 1.0, 0, 0, False, 0, False)
    np.testing.assert_array_equal(base[::2, ::-2], -g)
    assert not base[1].any() and p._version > version


def test_none_skips():
    p, q = share_array(np.ones(3)), share_array(np.ones(3))
    buffers = [None, None]
    sgd_step([p, q], [None, share_array(np.ones(3))], buffers, 0.5, 0.9, 0, False, 0, False)
    assert np.asarray(p).tolist() == [1, 1, 1] and np.asarray(q).tolist() == [0.5] * 3 and buffers[0] is None


def test_same_bits_for_any_number_of_threads():
    before = get_num_threads()
    results = []
    try:
        for n in (1, 2, 3):
            set_num_threads(n)
            p, g, *state = (share_array(np.abs(a)) for a in samples(np.float32, 4, (200000,)))
            adam_step([p], [g], state[:1], state[1:], None, [3], 0.01, 0.9, 0.999, 1e-8, 0.1, False, True)
            results.append(np.asarray(p).tobytes())
    finally:
        set_num_threads(before)
    assert results[0] == results[1] == results[2]


def test_errors_leave_everything_as_it_was():
    p, q = share_array(np.ones(3)), share_array(np.ones(3))
    g = share_array(np.ones(3))
    with pytest.raises(ValueError, match=r"sgd_step: a gradient must have the shape of its parameter; got \(4,\) and \(3,\)"):
        sgd_step([p, q], [g, share_array(np.ones(4))], None, 0.1, 0, 0, False, 0, False)
    with pytest.raises(ValueError, match="exp_avg must be like its parameter, float64 of shape"):
        adam_step([p, q], [g, g], [p, share_array(np.ones(3, np.float32))], [q, q], None, [1, 1], 0.1, 0.9, 0.999, 1e-8, 0, False, False)
    with pytest.raises(ValueError, match=r"got lengths \[1, 2\]"):
        sgd_step([p], [g, g], None, 0.1, 0, 0, False, 0, False)
    with pytest.raises(TypeError, match="parameters must be floating-point, got int64"):
        sgd_step([share_array(np.ones(3, np.int64))], [g], None, 0.1, 0, 0, False, 0, False)
    frozen = np.ones(3)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        sgd_step([p, share_array(frozen)], [g, g], None, 0.1, 0, 0, False, 0, False)
    assert np.asarray(p).tolist() == [1, 1, 1]
