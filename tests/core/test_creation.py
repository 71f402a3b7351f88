"""Fresh tensors: shapes and how they are written, dtypes, exact ranges, sizes that cannot be."""
import numpy as np
import pytest

import cgrad as cg


def test_ways_to_write_a_shape():
    for x in (cg.zeros(2, 3), cg.zeros((2, 3)), cg.zeros([2, 3]), cg.zeros(shape=(2, 3)), cg.zeros(size=(2, 3)), cg.zeros(np.int64(2), 3),
              cg.zeros(np.array([2, 3])), cg.zeros(cg.tensor([2, 3]))):
        assert x.shape == (2, 3)
    assert cg.zeros(()).shape == () and cg.zeros(4).shape == (4,) and cg.zeros(0, 3).shape == (0, 3)
    with pytest.raises(TypeError, match="given twice|multiple values"):
        cg.zeros(2, shape=(2,))


@pytest.mark.parametrize("make", [cg.zeros, cg.ones, cg.empty, cg.rand, cg.randn, lambda *s: cg.full(s[0] if len(s) == 1 else s, 1.0)])
def test_impossible_sizes(make):
    with pytest.raises(ValueError, match="negative length"):
        make(-1)
    with pytest.raises(ValueError, match="negative length"):
        make((2, -3))
    for shape in ((2 ** 62, 2), (2 ** 40, 2 ** 40), (2 ** 70,), (0, 2 ** 62, 2 ** 62)):
        with pytest.raises(ValueError, match="too large"):
            make(shape)
    with pytest.raises(MemoryError, match="no memory for shape"):
        make(2 ** 46)
    with pytest.raises(ValueError, match="64 axes"):
        make((1,) * 65)
    for bad in (1.5, "a", None, True):
        with pytest.raises(TypeError, match="must be an integer"):
            make((bad,))


def test_constants():
    for dtype in (*cg.__array_namespace_info__().dtypes().values(), cg.float16, cg.bfloat16):
        assert cg.ones(3, 5, dtype=dtype).tolist() == [[1] * 5] * 3
        assert cg.zeros(70, dtype=dtype).tolist() == [0] * 70
        assert cg.full((1000,), 1, dtype=dtype).dtype is dtype and bool((cg.full((1000,), 1, dtype=dtype) == 1).all())
        assert cg.zeros_like(cg.ones(2, dtype=dtype)).dtype is dtype
    assert cg.full((2,), 7).dtype is cg.int64 and cg.full((2,), 7.0).dtype is cg.float32 and cg.full((2,), True).dtype is cg.bool
    assert cg.full((), np.float64(2)).dtype is cg.float64 and cg.full((2,), cg.tensor(3)).tolist() == [3, 3]
    assert cg.full_like(cg.zeros(2), 3).tolist() == [3, 3] and cg.empty_like(np.zeros((2, 3))).dtype is cg.float64
    big = cg.full((300_000,), 2.5)
    assert np.array_equal(big.numpy(), np.full(300_000, 2.5, np.float32))
    with pytest.raises(OverflowError):
        cg.full((2,), 300, dtype=cg.uint8)
    with pytest.raises(ValueError, match="one number"):
        cg.full((2,), [1, 2])
    with pytest.raises(TypeError, match="missing"):
        cg.full((2,))


def test_requires_grad():
    assert cg.zeros(2, requires_grad=True).requires_grad and cg.tensor([1.0], requires_grad=True).is_leaf
    for make in (lambda: cg.zeros(2, dtype=cg.int64, requires_grad=True), lambda: cg.tensor([1], requires_grad=True), lambda: cg.arange(3, requires_grad=True)):
        with pytest.raises(RuntimeError, match="floating"):
            make()
    with pytest.raises(ValueError, match="device must be 'cpu'"):
        cg.zeros(2, device="cuda")
    assert cg.zeros(2, device="cpu").shape == (2,)


@pytest.mark.parametrize("args", [(5,), (2, 9), (9, 2, -3), (0, 10, 3), (5, 2), (0,), (-3, 3), (2 ** 62, 2 ** 62 + 3), (-2 ** 63, -2 ** 63 + 2),
                                  (2 ** 63 - 3, 2 ** 63), (0, 2 ** 63, 2 ** 62), (3, 4, 10 ** 30)])
def test_integer_ranges_are_exact(args):
    x = cg.arange(*args)
    assert x.dtype is cg.int64 and x.tolist() == list(range(*args))


def test_ranges():
    assert cg.arange(0, 1, 0.25).tolist() == [0, 0.25, 0.5, 0.75] and cg.arange(3.0).dtype is cg.float32
    assert cg.arange(0, end=3).tolist() == [0, 1, 2]
    for args in ((0, 1, 0.1), (1.0, -1.0, -0.3), (0.5, 3.2)):
        np.testing.assert_allclose(cg.arange(*args, dtype=cg.float64).numpy(), np.arange(*args), rtol=1e-14)
    assert cg.arange(5, dtype=cg.float32).tolist() == [0, 1, 2, 3, 4] and cg.arange(3, dtype=cg.uint8).dtype is cg.uint8
    assert cg.arange(0.0, 3.0, dtype=cg.int64).tolist() == [0, 1, 2] and cg.arange(cg.tensor(3)).tolist() == [0, 1, 2]
    big = cg.arange(2 ** 24, 2 ** 24 + 4, dtype=cg.float64)
    assert big.tolist() == list(range(2 ** 24, 2 ** 24 + 4))


@pytest.mark.parametrize(("call", "kind"), [
    (lambda: cg.arange(0, 5, 0), ValueError), (lambda: cg.arange(float("nan")), ValueError), (lambda: cg.arange(float("inf")), ValueError),
    (lambda: cg.arange(2 ** 70), ValueError), (lambda: cg.arange(2 ** 64, 2 ** 64 + 2), OverflowError), (lambda: cg.arange("a"), TypeError),
    (lambda: cg.arange(300, dtype=cg.uint8), OverflowError), (lambda: cg.arange(0.5, 3, dtype=cg.int64), ValueError),
    (lambda: cg.arange(3, dtype=cg.bool), TypeError), (lambda: cg.arange(2 ** 46), MemoryError), (lambda: cg.arange(1e300), ValueError),
])
def test_impossible_ranges(call, kind):
    with pytest.raises(kind, match="arange"):
        call()


def test_linspace_and_logspace():
    for args in ((0, 1, 5), (1, -1, 7), (0, 1, 1), (0, 1, 0), (-0.3, 12.7, 100)):
        np.testing.assert_allclose(cg.linspace(*args, dtype=cg.float64).numpy(), np.linspace(*args), rtol=1e-14, atol=1e-15)
        np.testing.assert_allclose(cg.linspace(*args, endpoint=False, dtype=cg.float64).numpy(), np.linspace(*args, endpoint=False), rtol=1e-14, atol=1e-15)
    x = cg.linspace(0.1, 0.7, steps=1001)
    assert x[0].item() == np.float32(0.1) and x[-1].item() == np.float32(0.7)
    np.testing.assert_allclose(cg.logspace(-2, 2, 5, dtype=cg.float64).numpy(), np.logspace(-2, 2, 5), rtol=1e-14)
    assert cg.logspace(0, 3, 4, base=2).tolist() == [1, 2, 4, 8]
    with pytest.raises(ValueError, match="must not be negative"):
        cg.linspace(0, 1, -1)
    with pytest.raises(TypeError, match="missing"):
        cg.linspace(0, 1)


def test_eye_and_triangles():
    for rows, columns, k in ((3, 3, 0), (2, 4, 1), (4, 2, -1), (3, 3, 5), (3, 3, -9), (0, 2, 0)):
        assert np.array_equal(cg.eye(rows, columns, k=k).numpy(), np.eye(rows, columns, k))
    assert cg.eye(2, dtype=cg.bool).tolist() == [[True, False], [False, True]]
    for k in (-5, -1, 0, 2, 7):
        a = np.arange(24).reshape(2, 3, 4)
        assert np.array_equal(cg.tril(cg.tensor(a), k).numpy(), np.tril(a, k)) and np.array_equal(cg.triu(cg.tensor(a), k).numpy(), np.triu(a, k))
        assert np.array_equal(cg.tril_indices(3, 4, k).numpy(), np.tril_indices(3, k, 4))
    with pytest.raises(ValueError, match="at least 2 axes"):
        cg.tril(cg.zeros(3))
    with pytest.raises(ValueError, match="not a possible size"):
        cg.eye(-1)


def test_meshgrid():
    a, b = np.arange(2.0), np.arange(3.0)
    for indexing in ("xy", "ij"):
        for got, want in zip(cg.meshgrid(cg.tensor(a), cg.tensor(b), indexing=indexing), np.meshgrid(a, b, indexing=indexing)):
            assert np.array_equal(got.numpy(), want)
    with pytest.raises(ValueError, match="indexing"):
        cg.meshgrid(cg.zeros(2), indexing="yx")
    with pytest.raises(ValueError, match="vectors"):
        cg.meshgrid(cg.zeros(2, 2))
