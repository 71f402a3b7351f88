"""Reductions of tensors: shapes, result dtypes and errors (the numbers are tested in tests/kernels/test_reduce.py)."""
import numpy as np
import pytest

from cgrad.core.convert import share_array
from cgrad.core.forward import reduce as forward


def tensor(x):
    return share_array(np.asarray(x))


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", [None, (), (0,), (1,), (2,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all"])
def test_shapes_and_values(name, axes, keepdims):
    x = np.random.default_rng(0).integers(0, 3, (2, 3, 4)).astype(np.float32)
    got = np.asarray(getattr(forward, name)(tensor(x), axes, keepdims))
    want = getattr(np, name)(x, axis=axes, keepdims=keepdims)
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_arg(name, axis, keepdims):
    x = np.array([[3, 1, 3], [0, 1, 0]])
    got = np.asarray(getattr(forward, name)(tensor(x), axis, keepdims))
    np.testing.assert_array_equal(got, getattr(np, name)(x, axis=axis, keepdims=keepdims))
    assert got.dtype == np.int64


def test_integers_sum_to_64_bits():
    for dtype, wide in ((np.uint8, np.uint64), (np.uint16, np.uint64), (np.uint32, np.uint64), (np.uint64, np.uint64), (np.int8, np.int64)):
        got = np.asarray(forward.sum(tensor(np.full(300, 127, dtype)), None, False))
        assert got == 300 * 127 and got.dtype == wide
    assert np.asarray(forward.sum(tensor(np.array([True, True])), None, False)).dtype == np.int64


def test_nothing_to_choose_from():
    empty = tensor(np.zeros((0, 3), np.float32))
    with pytest.raises(ValueError, match=r"max: there is no element to choose from; got shape \(0, 3\) and axes \(0,\)"):
        forward.max(empty, (0,), False)
    with pytest.raises(ValueError, match=r"argmin: .* got shape \(0, 3\) and all axes"):
        forward.argmin(empty, None, False)
    assert forward.max(empty, (1,), False).shape == (0,)
    assert np.asarray(forward.sum(empty, (0,), False)).tolist() == [0, 0, 0]


def test_bad_axis():
    with pytest.raises(IndexError, match=r"sum: axis 2 is out of range for shape \(2, 3\)"):
        forward.sum(tensor(np.zeros((2, 3))), (2,), False)
    with pytest.raises(TypeError):
        forward.sum(np.zeros(3), None, False)
