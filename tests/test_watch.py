"""watch keeps and names what a block computes; where_fn keeps functions away from what is not theirs."""
import threading

import numpy as np
import pytest

import cgrad as cg


def test_names_results_gradients_and_sources():
    x = cg.tensor([1.0, 2.0], requires_grad=True)
    with cg.autograd.watch() as w:
        y = (x * x).sum() * 3
        cg.exp(x.detach())
    cg.sin(x)
    y.backward()
    assert w.names == ["multiply_0", "sum_0", "multiply_1"] == list(w) and len(w) == 3 and "exp_0" not in w
    assert w["multiply_0"].tolist() == [1.0, 4.0] and w["multiply_0"].grad.tolist() == [3.0, 3.0]
    assert w["sum_0"].grad.item() == 3.0 and w["multiply_1"].grad.item() == 1.0
    file, line, function = w.source("sum_0")
    assert file == __file__ and function == "test_names_results_gradients_and_sources"
    rows = repr(w).splitlines()
    assert rows[0].split() == ["name", "shape", "gradient", "where"]
    assert rows[1].split()[:4] == ["multiply_0", "(2,)", "norm", "4.24264"] and "y = (x * x).sum() * 3" in rows[1]
    with pytest.raises(KeyError, match="no result 'sin_0'; there are multiply_0, sum_0, multiply_1"):
        w["sin_0"]


def test_several_results_own_ops_and_blocks_inside_blocks():
    class both(cg.Op):
        def forward(self, x):
            return x * 2, x * 3

        def backward(self, grads):
            return 2 * grads[0] + 3 * grads[1]

    x = cg.tensor(1.0, requires_grad=True)
    with cg.autograd.watch() as outer:
        a, b = both()(x)
        with cg.autograd.watch() as inner:
            c = a * b
    c.backward()
    assert outer.names == ["both_0.0", "both_0.1", "multiply_0"] and inner.names == ["multiply_0"]
    assert outer["both_0.0"].grad.item() == 3.0 and outer["both_0.1"].grad.item() == 2.0
    with outer, pytest.raises(RuntimeError, match="on already"):
        outer.__enter__()


def test_other_threads_are_not_watched():
    x = cg.tensor(1.0, requires_grad=True)
    with cg.autograd.watch() as w:
        thread = threading.Thread(target=lambda: cg.exp(x))
        thread.start()
        thread.join()
    assert not w.names


class TestWhereFn:
    def test_the_side_not_chosen_leaves_no_nan(self):
        x = cg.tensor([-1.0, 0.0, 4.0], requires_grad=True)
        y = cg.where_fn(x > 0, cg.sqrt, 0.0, x)
        y.sum().backward()
        assert y.tolist() == [0.0, 0.0, 2.0] and x.grad.tolist() == [0.0, 0.0, 0.25]

    def test_functions_see_their_elements_only(self):
        seen = []
        cg.where_fn(cg.tensor([True, False, True]), lambda t: seen.append(t.tolist()) or t, lambda t: seen.append(t.tolist()) or t, cg.arange(3.0))
        assert seen == [[0.0, 2.0], [1.0]]

    def test_dtypes_promote(self):
        x = cg.arange(3)
        assert cg.where_fn(x > 1, 0.5, lambda t: t, x).dtype == cg.float32
        assert cg.where_fn(x > 1, 1, lambda t: t, x).dtype == cg.int64
        np.testing.assert_array_equal(cg.where_fn(x > 1, 0.5, lambda t: t, x).numpy(), np.float32([0, 1, 0.5]))

    def test_errors(self):
        x = cg.arange(3.0)
        with pytest.raises(TypeError, match="condition must be of dtype bool, got float32"):
            cg.where_fn(x, cg.sqrt, 0.0, x)
        with pytest.raises(TypeError, match="needs an operand"):
            cg.where_fn(x > 0, 1.0, 0.0)
        with pytest.raises(ValueError, match=r"sum returned shape \(\) for vectors of 2 elements"):
            cg.where_fn(x > 0, cg.sum, 0.0, x)
