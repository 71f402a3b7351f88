"""Joining, cutting, repeating, padding: what the table of operations does not say (views, dtypes, errors, missing gradients)."""
import numpy as np
import pytest

import cgrad as cg


def test_concat_promotes_and_takes_any_layout():
    a = cg.arange(6).reshape(2, 3)
    out = cg.concat([a, a.T.flip(0).T, cg.ones(1, 3)])
    assert out.dtype is cg.float32 and out.shape == (5, 3)
    assert cg.concat([cg.tensor([1], dtype=cg.int8), cg.tensor([2], dtype=cg.uint8)]).dtype is cg.int16
    assert cg.cat is cg.concat and cg.concatenate is cg.concat
    assert cg.concat([np.zeros(2), cg.ones(1)]).tolist() == [0, 0, 1]
    assert cg.concat([cg.zeros(0), cg.ones(2, 2)]).tolist() == [[1, 1], [1, 1]]      # as PyTorch
    assert cg.concat([cg.zeros(0), cg.zeros(0)]).shape == (0,)
    big = [np.random.default_rng(k).standard_normal((200, 300)) for k in range(3)]
    for axis in (0, 1, -1):
        assert np.array_equal(cg.concat([cg.tensor(b) for b in big], axis).numpy(), np.concatenate(big, axis))
        assert np.array_equal(cg.stack([cg.tensor(b.T) for b in big], axis).numpy(), np.stack([b.T for b in big], axis))


@pytest.mark.parametrize(("call", "kind", "message"), [
    (lambda: cg.concat([]), ValueError, "at least one tensor"),
    (lambda: cg.concat(cg.zeros(2)), TypeError, r"got one tensor of shape \(2,\); put it into a list"),
    (lambda: cg.concat(5), TypeError, "got int"),
    (lambda: cg.concat([cg.zeros(2, 3), cg.zeros(2, 4)]), ValueError, r"number 0 has \(2, 3\), number 1 \(2, 4\)"),
    (lambda: cg.concat([cg.zeros(2, 3), cg.zeros(3)]), ValueError, "same number of axes"),
    (lambda: cg.concat([cg.zeros(2)], 1), IndexError, "out of range"),
    (lambda: cg.concat([cg.tensor(1.0)]), ValueError, "use stack"),
    (lambda: cg.stack([cg.zeros(2), cg.zeros(3)]), ValueError, "same shape"),
    (lambda: cg.stack([cg.zeros(2)], 2), IndexError, "out of range"),
    (lambda: cg.split(cg.zeros(5), [2, 2]), ValueError, "add up to 5"),
    (lambda: cg.split(cg.zeros(5), [6, -1]), ValueError, "must not be negative"),
    (lambda: cg.split(cg.zeros(5), 0), ValueError, "must be positive"),
    (lambda: cg.split(cg.tensor(1.0), 1), ValueError, "0-d"),
    (lambda: cg.chunk(cg.zeros(5), 0), ValueError, "must be positive"),
    (lambda: cg.tensor_split(cg.zeros(5), 0), ValueError, "must be positive"),
    (lambda: cg.roll(cg.zeros(5), (1, 2), (0,)), ValueError, "2 shifts for 1 axes"),
    (lambda: cg.repeat(cg.zeros(5), -1), ValueError, "must not be negative"),
    (lambda: cg.repeat(cg.zeros(3), cg.tensor([1, 2])), ValueError, "do not fit axis 0 of length 3"),
    (lambda: cg.repeat(cg.zeros(3), cg.tensor([1.0, 2, 3])), TypeError, "must be integers"),
    (lambda: cg.repeat(cg.zeros(3), 2 ** 62), ValueError, "too large"),
    (lambda: cg.tile(cg.zeros(3), (2 ** 40, 2 ** 40)), ValueError, "too large"),
    (lambda: cg.tile(cg.zeros(3), -1), ValueError, "must not be negative"),
    (lambda: cg.pad(cg.zeros(3), 1, mode="odd"), ValueError, "mode must be one of"),
    (lambda: cg.pad(cg.zeros(3), ((1, 1), (1, 1))), ValueError, "one .before, after. pair for each of 1 axes"),
    (lambda: cg.pad(cg.zeros(0), 1, mode="edge"), ValueError, "no elements"),
    (lambda: cg.pad(cg.zeros(3), -2), ValueError, "cut more than the 3 elements"),
    (lambda: cg.pad(cg.zeros(3), 2 ** 62), ValueError, "too large"),
    (lambda: cg.pad(cg.arange(3), 1, constant_values=0.5), TypeError, "without loss"),
], ids=lambda v: None)
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_pieces_are_views():
    x = cg.arange(6).reshape(2, 3)
    for piece in (cg.split(x, 2, axis=1)[0], cg.chunk(x, 2)[0], cg.unstack(x, 1)[0], cg.tensor_split(x, 2)[0]):
        assert np.shares_memory(piece.numpy(), x.numpy())
    _, second = x.split(1)
    second[0, 0] = 50
    assert x[1, 0].item() == 50


def test_pieces_without_gradient_count_as_zeros():
    for cut, want in ((lambda x: x.split([1, 2, 1])[1], [0, 1, 1, 0]), (lambda x: x.unstack()[2], [0, 0, 1, 0]),
                      (lambda x: x.chunk(2)[0] * x.chunk(2)[1], [3, 4, 1, 2])):
        x = cg.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
        cut(x).sum().backward()
        assert x.grad.tolist() == want


def test_concat_gives_each_dtype_its_own_gradient():
    x, y = cg.ones(2, requires_grad=True), cg.ones(1, dtype=cg.float64, requires_grad=True)
    (cg.concat([x, y]) * 3).sum().backward()
    assert x.grad.dtype is cg.float32 and y.grad.dtype is cg.float64 and x.grad.tolist() == [3, 3]


def test_pad_cuts_with_negative_widths():
    x = cg.arange(12).reshape(3, 4)
    assert cg.pad(x, ((-1, 1), (0, -2))).tolist() == [[4, 5], [8, 9], [0, 0]]
    assert cg.pad(x, ((0, 0), (1, 0)), mode="circular").tolist()[0] == [3, 0, 1, 2, 3]
    assert cg.pad(x, ((0, 0), (0, 1)), mode="replicate").tolist()[0] == [0, 1, 2, 3, 3]


def test_integers_and_bools_keep_their_dtype():
    for dtype in (cg.bool, cg.uint8, cg.int64):
        x = cg.ones(3, dtype=dtype)
        for y in (cg.roll(x, 1), cg.repeat(x, 2), cg.tile(x, 2), cg.pad(x, 1), cg.stack([x, x]), x.split(2)[0]):
            assert y.dtype is dtype
