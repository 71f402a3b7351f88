"""matmul of tensors: the rules for shapes, broadcasting and errors (the numbers are tested in tests/kernels/test_matmul.py)."""
import numpy as np
import pytest

import cgrad as cg
from cgrad.core.convert import share_array
from cgrad.core.forward.matmul import matmul


def tensor(x):
    return share_array(np.asarray(x))


SHAPES = [((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (3,)), ((3,), (5, 3, 4)),
          ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)), ((6, 1, 2, 3), (5, 3, 4)), ((5, 2, 3), (6, 1, 3, 4)), ((1, 1, 2, 3), (6, 5, 3, 4)),
          ((7, 1, 3), (3, 4)), ((1, 7, 1, 3), (3, 4)), ((40, 2, 3), (40, 3, 4)), ((0, 2, 3), (3, 4)), ((5, 0, 3), (3, 4)), ((5, 2, 0), (0, 4)),
          ((0, 2, 3), (1, 3, 4)), ((0,), (0,)), ((2, 3, 70, 70), (70, 70)), ((2, 70, 70), (2, 70, 70))]


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_shapes(shapes, dtype):
    x, y = (np.random.default_rng(i).integers(-4, 5, shape).astype(dtype) for i, shape in enumerate(shapes))
    want = np.matmul(x, y)
    got = np.asarray(matmul(tensor(x), tensor(y)))
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)             # small integers: exact in every dtype


def test_views():
    x = np.arange(120.0).reshape(2, 3, 4, 5)
    y = np.arange(20.0).reshape(4, 5)
    for a in (x, x[::-1], x[:, ::2], x.transpose(1, 0, 2, 3), np.broadcast_to(x[:1], x.shape), x[:, :, ::-1]):
        np.testing.assert_array_equal(np.asarray(matmul(tensor(a), tensor(y.T))), a @ y.T)
        np.testing.assert_array_equal(np.asarray(matmul(tensor(y.T), tensor(a))), y.T @ a)


def test_bool_is_logical():
    x, y = (np.random.default_rng(i).random(shape) < 0.3 for i, shape in enumerate([(4, 5), (5, 6)]))
    got = np.asarray(matmul(tensor(x), tensor(y)))
    assert got.dtype == np.bool_
    np.testing.assert_array_equal(got, x @ y)
    np.testing.assert_array_equal(np.asarray(matmul(tensor(x), tensor(y.T.copy().T))), x @ y)


def test_dtypes_are_promoted():
    got = np.asarray(matmul(tensor(np.ones((2, 3), np.float32)), tensor(np.ones((3, 2), np.float64))))
    assert got.dtype == np.float64 and np.all(got == 3)


@pytest.mark.parametrize(("shapes", "text"), [
    (((2, 3), (4, 5)), r"matmul: last axis of x \(3\) must equal second-last axis of y \(4\); got shapes \(2, 3\) and \(4, 5\)"),
    (((2, 3), (4,)), r"matmul: last axis of x \(3\) must equal the axis of y \(4\); got shapes \(2, 3\) and \(4,\)"),
    (((2, 2, 3), (5, 3, 4)), r"matmul: batch axes of x \(2\) and y \(5\) must be equal or 1; got shapes \(2, 2, 3\) and \(5, 3, 4\)"),
    (((), (3,)), r"matmul: both operands need at least one axis \(multiply by a number with \*\); got shapes \(\) and \(3,\)"),
])
def test_errors(shapes, text):
    with pytest.raises(ValueError, match=text):
        matmul(tensor(np.zeros(shapes[0])), tensor(np.zeros(shapes[1])))


@pytest.mark.parametrize("rows", [1, 3])
def test_a_matrix_repeated_along_batch_axes(rows):
    rng = np.random.default_rng(0)
    x, y = rng.integers(-4, 5, (6, 5, rows, 3)).astype(float), rng.integers(-4, 5, (3, 4)).astype(float)
    for batch in ((5,), (6, 5), (1, 5), (6, 1)):
        for a in (x, x[:, ::-1], x[:1], x.transpose(1, 0, 2, 3).copy().transpose(1, 0, 2, 3)):
            if batch[0] != 6 or a.shape[0] == 6:
                repeated = np.broadcast_to(y, (*batch, 3, 4))
                np.testing.assert_array_equal(np.asarray(matmul(tensor(a), tensor(repeated))), np.matmul(a, repeated))
    only_outer = np.broadcast_to(np.arange(60.0).reshape(5, 3, 4), (6, 5, 3, 4))
    np.testing.assert_array_equal(np.asarray(matmul(tensor(x), tensor(only_outer))), np.matmul(x, only_outer))


@pytest.mark.parametrize("shape", [(3, 2), (1, 3, 2), (2,)])
@pytest.mark.parametrize("repeated", [(2,), (4, 3)])
def test_a_repeated_right_operand_makes_the_batches(shape, repeated):
    x, y = np.arange(1.0, 1 + np.prod(shape)).reshape(shape), np.arange(6.0).reshape(2, 3)
    got = cg.matmul(cg.tensor(x), cg.tensor(y).broadcast_to((*repeated, 2, 3)))
    np.testing.assert_array_equal(got.numpy(), x @ np.broadcast_to(y, (*repeated, 2, 3)))
