"""x.data = y: a leaf takes over other memory, shape and dtype, and nobody who looked at the old one is hurt."""
import gc

import numpy as np
import pytest

import cgrad as cg


def test_a_leaf_takes_over_memory_shape_and_dtype():
    x, y = cg.zeros(2, requires_grad=True), cg.ones(1, 2, 1, 2, 1, 3, dtype=cg.float64)
    same = x
    x.data = y
    assert same.shape == y.shape and x.dtype == cg.float64 and x.requires_grad and x.is_leaf and x.is_contiguous()
    y[...] = 5.0
    assert x.detach().numpy().sum() == 60.0
    x.data = cg.ones(3, 2).T
    assert x.shape == (2, 3) and not x.is_contiguous()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2


def test_arrays_and_views_of_the_old_memory_stay_valid():
    x = cg.tensor(np.arange(1000.0))
    array, window, buffer = x.numpy(), x[10:20], memoryview(x)
    x.data = cg.zeros(3)
    gc.collect()
    cg.memory.trim()
    _ = [cg.full((1000,), 7.0, dtype=cg.float64) for _ in range(10)]
    assert array[999] == 999.0 and window.tolist() == list(np.arange(10.0, 20.0)) and buffer[5] == 5.0


def test_a_graph_that_saved_the_old_values_notices():
    x = cg.tensor([2.0], requires_grad=True)
    y = x * x
    x.data = cg.tensor([3.0])
    with pytest.raises(RuntimeError, match="in place"):
        y.backward()


def test_what_cannot_take_over_memory_says_so():
    x = cg.zeros(2, requires_grad=True)
    for bad, error, text in [(lambda: setattr(x * 2, "data", cg.zeros(2)), RuntimeError, "leaf"), (lambda: setattr(x, "data", 3.0), TypeError, "float"),
                             (lambda: setattr(x, "data", cg.tensor([1])), RuntimeError, "int64")]:
        with pytest.raises(error, match=text):
            bad()
    x.data = x
    assert x.tolist() == [0.0, 0.0]
