"""Matrix products: values for every dtype, size and layout, and the same bits for any number of threads."""
import numpy as np
import pytest

from cgrad.kernels.blas import matmul_into
from cgrad.kernels.parallel import get_num_threads, set_num_threads

FLOATS = [np.float32, np.float64]
INTEGERS = [np.uint8, np.int8, np.int16, np.int32, np.int64]


@pytest.fixture
def threads():
    before = get_num_threads()
    yield set_num_threads
    set_num_threads(before)


def matmul(x, y):
    """x (b, m, k) @ y (b, k, n) for 2-d or 3-d arrays."""
    x, y = (a[None] if a.ndim == 2 else a for a in (x, y))
    out = np.full((max(len(x), len(y)) if min(len(x), len(y)) else 0, x.shape[1], y.shape[2]), 77, x.dtype)
    matmul_into(x, y, out)
    return out


def sample(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0 if dtype == np.uint8 else -9, 10, shape).astype(dtype)


def layouts(x):
    yield x
    yield np.asfortranarray(x.swapaxes(-1, -2)).swapaxes(-1, -2) if x.ndim == 2 else np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    yield np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1]
    yield np.repeat(np.repeat(x, 2, -1), 2, -2)[..., ::2, ::2]
    yield np.broadcast_to(x[..., :1, :], x.shape)
    yield np.broadcast_to(x[..., :1], x.shape)


def check(x, y):
    got = matmul(x, y)
    x, y = (a[None] if a.ndim == 2 else a for a in (x, y))
    if x.dtype.kind == "f":
        want = x.astype(np.float64) @ y.astype(np.float64)
        bound = np.abs(x.astype(np.float64)) @ np.abs(y.astype(np.float64))      # |error| <= k u |x| |y|, whatever the order
        k = x.shape[-1]
        assert np.all(np.abs(got - want) <= (k + 2) * np.finfo(x.dtype).eps * bound + 1e-300)
    else:
        np.testing.assert_array_equal(got, x @ y)


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_small_size(dtype):
    for m in (1, 2, 3, 4, 5, 9):
        for n in (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 24, 31, 33, 48, 50):
            for k in (1, 2, 5, 17):
                check(sample((m, k), dtype), sample((k, n), dtype, 1))


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_layouts(dtype):
    for m, n, k in [(5, 7, 3), (20, 30, 40), (1, 50, 40), (50, 1, 40), (1, 1, 70), (3, 2, 600), (2, 300, 5), (300, 2, 5), (70, 80, 90)]:
        for x in layouts(sample((m, k), dtype)):
            for y in layouts(sample((k, n), dtype, 1)):
                check(x, y)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_batches(dtype):
    for m, n, k in [(2, 3, 4), (1, 5, 6), (5, 1, 6), (70, 70, 70)]:
        x, y = sample((3, m, k), dtype), sample((3, k, n), dtype, 1)
        check(x, y)
        check(x[:1], y)
        check(x, y[:1])
        check(x[::-1], y.swapaxes(0, 0)[::-1])
        for view in layouts(x):
            check(view, y)


@pytest.mark.parametrize("dtype", FLOATS + [np.int32])
def test_empty(dtype):
    for m, n, k in [(0, 3, 2), (3, 0, 2), (3, 4, 0), (0, 0, 0), (1, 1, 0)]:
        got = matmul(np.zeros((m, k), dtype), np.zeros((k, n), dtype))
        assert got.shape == (1, m, n) and not got.any()
    assert matmul(np.zeros((0, 2, 3), dtype), np.zeros((0, 3, 4), dtype)).shape == (0, 2, 4)


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_and_infinity_stay_in_their_rows(dtype):
    for m, n, k in [(5, 7, 9), (9, 1, 5), (1, 9, 5), (6, 50, 40)]:
        x, y = np.ones((m, k), dtype), np.ones((k, n), dtype)
        x[0, 0] = np.nan
        if m > 1:
            x[1, -1] = np.inf
        got = matmul(x, y)[0]
        assert np.all(np.isnan(got[0]))
        if m > 1:
            assert np.all(got[1] == np.inf) and np.all(got[2:] == k)


def test_integers_wrap():
    x = np.full((2, 3), 2**31 - 1, np.int32)
    np.testing.assert_array_equal(matmul(x, x.T.copy())[0], x @ x.T)


@pytest.mark.parametrize("dtype", FLOATS)
def test_same_bits_for_any_number_of_threads(dtype, threads):
    cases = [(sample((400, 20, 20), dtype), sample((400, 20, 20), dtype, 1)),
             (sample((1, 900, 700), dtype), sample((1, 700, 1), dtype, 1)),
             (sample((1, 700, 900), dtype).swapaxes(1, 2), sample((1, 700, 1), dtype, 1)),
             (sample((1, 1, 700), dtype), sample((1, 700, 900), dtype, 1)),
             (sample((1, 900, 1400), dtype)[:, :, ::2], sample((1, 700, 1), dtype, 1))]
    for x, y in cases:
        results = []
        for n in (1, 2, 3):
            threads(n)
            results.append(matmul(x, y).tobytes())
        assert results[0] == results[1] == results[2]


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match="shapes do not fit"):
        matmul_into(np.zeros((1, 2, 3)), np.zeros((1, 2, 3)), np.zeros((1, 2, 3)))
