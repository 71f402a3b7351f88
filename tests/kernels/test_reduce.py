"""Reductions: values, every dtype and layout, accuracy, and the same bits for any number of threads."""
import itertools
import math

import numpy as np
import pytest

from cgrad.kernels.parallel import get_num_threads, set_num_threads
from cgrad.kernels.reduce import reduce_into

DTYPES = [np.bool_, np.uint8, np.int8, np.int16, np.int32, np.int64, np.float32, np.float64]
FOLDS = ["sum", "prod", "max", "min", "any", "all"]


@pytest.fixture
def threads():
    before = get_num_threads()
    yield set_num_threads
    set_num_threads(before)


def result_dtype(name, dtype):
    if name in ("any", "all"):
        return np.dtype(np.bool_)
    if name in ("argmax", "argmin"):
        return np.dtype(np.int64)
    if name in ("sum", "prod") and np.dtype(dtype).kind in "bui":
        return np.dtype(np.uint64 if np.dtype(dtype).kind == "u" else np.int64)
    return np.dtype(dtype)


def reduce(name, x, axes=None):
    axes = tuple(range(x.ndim)) if axes is None else axes
    shape = tuple(n for i, n in enumerate(x.shape) if i not in axes)
    out = np.full(shape, 77, result_dtype(name, x.dtype))
    reduce_into(name, x, axes, out)
    return out


def expected(name, x, axes):
    wanted = result_dtype(name, x.dtype)
    if name in ("sum", "prod"):
        wide = wanted if wanted.kind in "ui" else np.float64
        return getattr(np, name)(x, axis=axes, dtype=wide).astype(wanted)
    axis = axes[0] if name in ("argmax", "argmin") else axes      # NumPy's argmax takes no tuple
    return np.asarray(getattr(np, name)(x, axis=axis)).astype(wanted)


def sample(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == np.bool_:
        return rng.random(shape) < 0.7
    if np.dtype(dtype).kind == "f":
        return rng.uniform(0.5, 1.5, shape).astype(dtype) * rng.choice([-1, 1], shape).astype(dtype)
    low = 0 if dtype == np.uint8 else -3
    return rng.integers(low, 4, shape).astype(dtype)


def layouts(x):
    yield "C", x
    yield "F", np.asfortranarray(x)
    yield "reversed", x[tuple(slice(None, None, -1) for _ in x.shape)]
    if x.ndim:
        yield "step", np.repeat(x, 2, axis=-1)[..., ::2]
        yield "rolled", np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 0, -1)), -1, 0)
        yield "broadcast", np.broadcast_to(x[:1], x.shape)


def check(name, x, axes):
    got, want = reduce(name, x, axes), expected(name, x, axes)
    if got.dtype.kind == "f" and name in ("sum", "prod"):
        # Sums of values of both signs: the error is relative to the sum of absolute values.
        scale = np.abs(x.astype(np.float64)).sum(axis=axes) if name == "sum" else np.abs(want.astype(np.float64))
        error = 4 * np.finfo(got.dtype).eps + x.size / max(got.size, 1) * 2e-16          # the last part is NumPy's
        assert np.all(np.abs(got.astype(np.float64) - want) <= error * scale + 1e-300)
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FOLDS)
def test_every_subset_of_axes_and_layout(name, dtype):
    for shape in [(), (1,), (7,), (40,), (3, 5), (1, 6), (33, 2), (2, 3, 4), (3, 1, 20), (2, 3, 2, 3)]:
        x = sample(shape, dtype)
        for _, view in layouts(x):
            for count in range(len(shape) + 1):
                for axes in itertools.combinations(range(len(shape)), count):
                    check(name, view, axes)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*FOLDS, "argmax", "argmin"])
def test_long_rows_and_columns(name, dtype):
    for shape in [(5000,), (300, 70), (70, 300), (2000, 3), (3, 2000), (9, 1000, 2), (600, 9, 3)]:
        x = sample(shape, dtype)
        for view in (x, x.T, x[::-1], x[..., ::2]):
            for axis in range(view.ndim):
                check(name, view, (axis,))
            if name not in ("argmax", "argmin"):
                check(name, view, tuple(range(view.ndim)))
                if view.ndim == 3:
                    check(name, view, (0, 2))
                    check(name, view, (0, 1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_arg_layouts(name, dtype):
    for shape in [(1,), (7,), (40,), (3, 5), (33, 2), (2, 3, 4), (3, 1, 20), (20, 3, 50)]:
        x = sample(shape, dtype)           # few distinct values: many ties
        for _, view in layouts(x):
            for axis in range(len(shape)):
                check(name, view, (axis,))
            assert reduce(name, view) == getattr(np, name)(view)


def test_arg_of_a_scalar():
    assert reduce("argmax", np.array(3.0)) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_wins_everywhere(dtype):
    for n in [1, 2, 31, 32, 33, 64, 70, 1024, 1100, 5000]:
        for position in {0, 1, n // 2, n - 2, n - 1} & set(range(n)):
            row = sample((n,), dtype)
            row[position] = np.nan
            for x, axis in ((row, 0), (row[::-1], 0), (np.stack([row] * 20, 1), 0), (np.stack([row] * 20), 1)):
                where = n - 1 - position if x.strides[0] < 0 else position
                for name in ("max", "min", "sum", "prod"):
                    assert np.all(np.isnan(reduce(name, x, (axis,))))
                for name in ("argmax", "argmin"):
                    assert np.all(reduce(name, x, (axis,)) == where)
    x = np.array([1, np.nan, 5, np.nan, np.inf], dtype)
    assert reduce("argmax", x) == 1 and reduce("argmin", x) == 1
    assert reduce("any", np.array([np.nan], dtype)) and reduce("all", np.array([np.nan], dtype))


def test_infinities():
    for n in (3, 100):
        for name, value in (("max", -np.inf), ("min", np.inf)):
            x = np.full(n, value, np.float32)
            assert reduce(name, x) == value
            assert reduce("arg" + name, x) == 0
        x = np.ones(n)
        x[1] = np.inf
        assert reduce("sum", x) == np.inf
        x[2] = -np.inf
        assert np.isnan(reduce("sum", x))


def test_signed_zero():
    assert np.signbit(reduce("sum", np.array([-0.0, -0.0])))
    assert not np.signbit(reduce("sum", np.array([-0.0, 0.0])))


@pytest.mark.parametrize("dtype", DTYPES)
def test_empty(dtype):
    for shape, axes in [((0,), (0,)), ((3, 0), (1,)), ((0, 3), (0,)), ((2, 0, 3), (0, 1, 2)), ((2, 0, 3), (1,))]:
        x = np.zeros(shape, dtype)
        for name, value in (("sum", 0), ("prod", 1), ("any", False), ("all", True)):
            got = reduce(name, x, axes)
            assert np.all(got == value) and got.shape == expected(name, x, axes).shape
    for name in FOLDS:
        assert reduce(name, np.zeros((0, 3), dtype), (1,)).shape == (0,)


def test_extremes_of_integers():
    for dtype in (np.uint8, np.int8, np.int16, np.int32, np.int64):
        info = np.iinfo(dtype)
        for n in (1, 50):
            for value in (info.min, info.max):
                x = np.full((n, 20), value, dtype)
                for name in ("max", "min"):
                    assert np.all(reduce(name, x, (0,)) == value) and np.all(reduce(name, x, (1,)) == value)


def test_integers_wrap():
    x = np.array([2**62, 2**62, 2**62, 5], np.int64)
    assert reduce("sum", x) == np.sum(x)
    assert reduce("prod", x) == np.prod(x)
    assert reduce("sum", np.full(10**6, 255, np.uint8)) == 255 * 10**6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_accuracy_of_long_sums(dtype):
    n = 2_000_000
    x = np.random.default_rng(1).random(n).astype(dtype)
    exact = math.fsum(x.tolist())
    eps = np.finfo(dtype).eps
    assert abs(float(reduce("sum", x)) - exact) <= 1.5 * eps * exact
    for axis, wide in ((0, np.stack([x, x, x], 1)), (1, np.stack([x, x, x]))):
        assert np.all(np.abs(reduce("sum", wide, (axis,)).astype(np.float64) - exact) <= 1.5 * eps * exact)
    assert abs(float(reduce("sum", x.reshape(1000, 2, 1000)[:, 0], (0, 1))) - math.fsum(x.reshape(1000, 2, 1000)[:, 0].ravel().tolist())) <= 1.5 * eps * exact


@pytest.mark.parametrize("name", [*FOLDS, "argmax", "argmin"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_same_bits_for_any_number_of_threads(name, dtype, threads):
    x = sample((700, 600), dtype)
    x[::2] *= 1.0001 if np.dtype(dtype).kind == "f" else 1
    cases = [(x, (0,)), (x, (1,)), (x, (0, 1)), (x.T, (0,)), (x[:, ::2], (0, 1)), (x.reshape(-1, 3), (0,)), (x.reshape(3, -1), (1,)),
             (x.reshape(7, 100, 600), (0, 2))]
    for view, axes in cases:
        if name in ("argmax", "argmin") and len(axes) > 1 and len(axes) < view.ndim:
            continue
        results = []
        for n in (1, 2, 3):
            threads(n)
            results.append(reduce(name, view, axes).tobytes())
        assert results[0] == results[1] == results[2]


def test_unknown_name():
    with pytest.raises(KeyError, match="no reduction is called 'sume'"):
        reduce_into("sume", np.zeros(3), (0,), np.zeros(()))
