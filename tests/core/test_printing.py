"""Texts of tensors, as PyTorch prints them."""
import numpy as np
import pytest

import cgrad as cg

INF, NAN = float("inf"), float("nan")
f64, i32 = cg.float64, cg.int32
CASES = [
    ([4.0, 8.0, 12.0], {}, "tensor([ 4.,  8., 12.])"),
    (5.0, {}, "tensor(5.)"),
    (0.5, {}, "tensor(0.5000)"),
    (3, {}, "tensor(3)"),
    (True, {}, "tensor(True)"),
    ([True, False], {}, "tensor([ True, False])"),
    ([1, -20, 300], {}, "tensor([  1, -20, 300])"),
    ([1, 2], {"dtype": i32}, "tensor([1, 2], dtype=cgrad.int32)"),
    ([1.0], {"dtype": f64}, "tensor([1.], dtype=cgrad.float64)"),
    ([0.1, 0.25, 100.125], {}, "tensor([1.0000e-01, 2.5000e-01, 1.0012e+02])"),
    ([0.1, 0.25, 10.125], {}, "tensor([ 0.1000,  0.2500, 10.1250])"),
    ([1.0, 1000.0], {}, "tensor([   1., 1000.])"),
    ([1.0, 10000.0], {}, "tensor([1.0000e+00, 1.0000e+04])"),
    ([1e-5], {}, "tensor([1.0000e-05])"),
    ([1e9], {}, "tensor([1.0000e+09])"),
    ([123456789.0], {"dtype": f64}, "tensor([1.2346e+08], dtype=cgrad.float64)"),
    ([0.0, 0.0], {}, "tensor([0., 0.])"),
    ([-0.0], {}, "tensor([-0.])"),
    (NAN, {}, "tensor(nan)"),
    ([NAN, 1.0], {}, "tensor([nan, 1.])"),
    ([NAN, 1.5], {}, "tensor([   nan, 1.5000])"),
    ([INF, -INF, 2.0], {}, "tensor([inf, -inf, 2.])"),
    ([INF, 1e-8], {}, "tensor([       inf, 1.0000e-08])"),
    ([], {}, "tensor([])"),
    ([], {"dtype": cg.int64}, "tensor([], dtype=cgrad.int64)"),
    ([[], []], {}, "tensor([], size=(2, 0))"),
    ([[1.0, 2.0], [3.0, 4.0]], {}, "tensor([[1., 2.],\n        [3., 4.]])"),
    ([[[1, 2]], [[3, 4]]], {}, "tensor([[[1, 2]],\n\n        [[3, 4]]])"),
    ([1.5], {"requires_grad": True}, "tensor([1.5000], requires_grad=True)"),
    ([1.5], {"requires_grad": True, "dtype": f64}, "tensor([1.5000], dtype=cgrad.float64, requires_grad=True)"),
]


@pytest.mark.parametrize(("data", "options", "text"), CASES, ids=[t[:40] for _, _, t in CASES])
def test_texts(data, options, text):
    assert repr(cg.tensor(data, **options)) == text


def test_recorded_results_name_their_operation():
    x = cg.tensor(1.5, requires_grad=True)
    assert repr(x * 2) == "tensor(3., grad_fn=<MultiplyBackward>)"
    assert str(x.detach()) == "tensor(1.5000)"


def test_lines_are_at_most_eighty_characters():
    text = repr(cg.arange(30))
    assert text == ("tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
                    "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])")
    assert repr(cg.ones(12, requires_grad=True) / 3) == (
        "tensor([0.3333, 0.3333, 0.3333, 0.3333, 0.3333, 0.3333, 0.3333, 0.3333, 0.3333,\n"
        "        0.3333, 0.3333, 0.3333], grad_fn=<DivideBackward>)")
    assert repr(cg.zeros(17, dtype=cg.float64)) == (
        "tensor([0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0.],\n       dtype=cgrad.float64)")


def test_large_tensors_show_their_edges():
    assert repr(cg.arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"
    assert repr(cg.zeros(100, 100)) == (
        "tensor([[0., 0., 0.,  ..., 0., 0., 0.],\n        [0., 0., 0.,  ..., 0., 0., 0.],\n        [0., 0., 0.,  ..., 0., 0., 0.],\n        ...,\n"
        "        [0., 0., 0.,  ..., 0., 0., 0.],\n        [0., 0., 0.,  ..., 0., 0., 0.],\n        [0., 0., 0.,  ..., 0., 0., 0.]])")
    x = cg.zeros(1001)
    x[500] = 1e9                       # not shown, so it does not decide the format
    assert repr(x) == "tensor([0., 0., 0.,  ..., 0., 0., 0.])"
    assert repr(cg.zeros(2, 2, 1000)).count("...") == 4
    huge = cg.zeros(1).expand(1000, 1000, 1000, 1000)
    assert len(repr(huge)) < 100_000


def test_options():
    try:
        cg.set_printoptions(precision=2)
        assert repr(cg.tensor([1 / 3])) == "tensor([0.33])"
        cg.set_printoptions(sci_mode=True)
        assert repr(cg.tensor([0.5])) == "tensor([5.00e-01])"
        cg.set_printoptions(profile="default", sci_mode=False)
        assert repr(cg.tensor([1e-8, 1.0])) == "tensor([0.0000, 1.0000])"
        cg.set_printoptions(profile="default", threshold=5, edgeitems=1)
        assert repr(cg.arange(6)) == "tensor([0,  ..., 5])"
        cg.set_printoptions(edgeitems=0)
        assert "..." in repr(cg.arange(6))
        cg.set_printoptions(profile="full")
        assert "..." not in repr(cg.zeros(2000))
        cg.set_printoptions(profile="default", linewidth=20)
        assert max(map(len, repr(cg.arange(30)).splitlines())) <= 20
    finally:
        cg.set_printoptions(profile="default")
    for bad in ({"precision": -1}, {"threshold": "a"}, {"profile": "huge"}, {"edgeitems": 1.5}):
        with pytest.raises(ValueError, match="set_printoptions"):
            cg.set_printoptions(**bad)
    assert repr(cg.tensor([0.5])) == "tensor([0.5000])"


def test_any_layout():
    a = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    assert repr(cg.from_numpy(a).T) == "tensor([[0., 3.],\n        [1., 4.],\n        [2., 5.]])"
    assert repr(cg.from_numpy(a[::-1, ::2])) == "tensor([[3., 5.],\n        [0., 2.]])"
