"""softmax and its relatives against float64 formulas: axes, layouts, extreme values, threads."""
import numpy as np
import pytest

from cgrad.core.convert import share_array
from cgrad.core.forward import softmax as forward
from cgrad.kernels.parallel import get_num_threads, set_num_threads

FLOATS = [np.float32, np.float64]


@pytest.fixture
def threads():
    before = get_num_threads()
    yield set_num_threads
    set_num_threads(before)


def run(name, *arguments):
    arrays = [share_array(a) if isinstance(a, np.ndarray) else a for a in arguments]
    return np.asarray(getattr(forward, name)(*arrays))


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def layouts(x):
    yield x
    yield np.asfortranarray(x)
    yield x[tuple(slice(None, None, -1) for _ in x.shape)]
    yield np.repeat(x, 2, -1)[..., ::2]
    yield np.broadcast_to(x[:1], x.shape)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(1,), (7,), (300,), (3, 5), (40, 33), (33, 1), (2, 3, 4), (2, 50, 40), (3, 2, 4, 5)])
def test_values(shape, dtype):
    rng = np.random.default_rng(0)
    x = (10 * rng.standard_normal(shape)).astype(dtype)
    g = rng.standard_normal(shape).astype(dtype)
    tolerance = dict(rtol=20 * np.finfo(dtype).eps, atol=20 * np.finfo(dtype).eps)
    for axis in range(len(shape)):
        for view in layouts(x):
            wide, wide_g = view.astype(np.float64), g.astype(np.float64)
            want = softmax(wide, axis)
            got = run("softmax", view, axis)
            assert got.dtype == dtype
            np.testing.assert_allclose(got, want, **tolerance)
            back = run("softmax_backward", g, got, axis)
            np.testing.assert_allclose(back, want * (wide_g - (wide_g * want).sum(axis, keepdims=True)), **tolerance)
            logs = run("log_softmax", view, axis)
            np.testing.assert_allclose(logs, np.log(np.maximum(want, 1e-300)), rtol=20 * np.finfo(dtype).eps, atol=1e-5 if dtype == np.float32 else 1e-13)
            back = run("log_softmax_backward", g, logs, axis)
            loose = dict(rtol=1e-4, atol=5e-6) if dtype == np.float32 else dict(rtol=1e-12, atol=1e-13)      # sums of both signs
            np.testing.assert_allclose(back, wide_g - np.exp(logs.astype(np.float64)) * wide_g.sum(axis, keepdims=True), **loose)


@pytest.mark.parametrize("dtype", FLOATS)
def test_layouts_of_the_backward_operands(dtype):
    rng = np.random.default_rng(1)
    y = softmax(rng.standard_normal((6, 5, 7)), 1).astype(dtype)
    g = rng.standard_normal((6, 5, 7)).astype(dtype)
    want = y * (g - (g * y).sum(1, keepdims=True))
    for a in layouts(g):
        for b in (y, np.asfortranarray(y)):
            want = b * (a - (a * b).sum(1, keepdims=True))
            np.testing.assert_allclose(run("softmax_backward", a, b, 1), want, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("keepdims", [False, True])
def test_logsumexp(dtype, keepdims):
    x = np.random.default_rng(2).standard_normal((4, 5, 6)).astype(dtype)
    for axes in [None, (), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]:
        for view in layouts(x):
            want = np.log(np.exp(view.astype(np.float64)).sum(axis=axes, keepdims=keepdims))
            got = run("logsumexp", view, axes, keepdims)
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-5 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("dtype", FLOATS)
def test_extreme_values(dtype):
    inf, nan = np.inf, np.nan
    x = np.array([[1000, 1001, 999], [-1000, -1001, -999], [inf, 0, 1], [-inf, -inf, -inf], [-inf, 0, 0], [nan, 0, 1]], dtype)
    with np.errstate(all="ignore"):
        got = run("softmax", x, 1)
    np.testing.assert_allclose(got[0], softmax(np.array([0.0, 1, -1]), 0), rtol=1e-6)
    np.testing.assert_allclose(got[1], softmax(np.array([0.0, -1, 1]), 0), rtol=1e-6)
    assert np.isnan(got[[2, 3, 5]]).all()
    np.testing.assert_array_equal(got[4], [0, 0.5, 0.5])
    got = run("log_softmax", x, 1)
    np.testing.assert_allclose(got[0], np.log(softmax(np.array([0.0, 1, -1]), 0)), rtol=1e-6)
    assert got[4, 0] == -inf and np.isclose(got[4, 1], -np.log(2))
    got = run("logsumexp", x, (1,), False)
    assert got[2] == inf and got[3] == -inf and np.isnan(got[5])
    np.testing.assert_allclose(got[:2], [1001.4076, -998.5924], rtol=1e-6)
    assert run("logsumexp", np.zeros((2, 0), dtype), (1,), False).tolist() == [-inf, -inf]
    assert run("softmax", np.zeros((2, 0), dtype), 1).shape == (2, 0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_same_bits_for_any_number_of_threads(dtype, threads):
    x = np.random.default_rng(3).standard_normal((300, 7, 100)).astype(dtype)
    for axis in range(3):
        results = []
        for n in (1, 2, 3):
            threads(n)
            results.append((run("softmax", x, axis).tobytes(), run("log_softmax", x, axis).tobytes(), run("logsumexp", x, (axis,), False).tobytes()))
        assert results[0] == results[1] == results[2]


def test_errors():
    with pytest.raises(TypeError, match="softmax: x must be a floating-point tensor, got int64"):
        run("softmax", np.arange(3), 0)
    with pytest.raises(IndexError, match=r"log_softmax: axis 1 is out of range for shape \(3,\)"):
        run("log_softmax", np.zeros(3), 1)
    with pytest.raises(ValueError, match="must have the same shape"):
        run("softmax_backward", np.zeros(3), np.zeros(4), 0)
