"""Gather, scatter and their like where PyTorch sets the measure: 0-d and empty operands, equal extremes, zeros in products, in place."""
import numpy as np
import pytest

import cgrad as cg


def array(x):
    return x.detach().numpy()


def test_a_tensor_without_axes_stands_for_one_element():
    x, zero = cg.tensor(3.0, requires_grad=True), cg.tensor(0)
    found = [cg.gather(x, 0, zero), cg.scatter(x, 0, zero, 5.0), cg.scatter(x, -1, cg.tensor([0]), cg.tensor([5.0])), cg.scatter_add(x, 0, zero, cg.tensor(2.0)),
             cg.scatter_reduce(x, 0, zero, cg.tensor(2.0), "prod"), cg.index_add(x, 0, zero, cg.tensor([1.0])), cg.index_copy(x, 0, cg.tensor([0]), cg.tensor(7.0)),
             cg.index_fill(x, 0, zero, 8.0), cg.index_reduce(x, 0, cg.tensor([0]), cg.tensor([4.0]), "amax"), cg.take(x, zero), cg.put(x, zero, cg.tensor(6.0)),
             cg.masked_scatter(x, cg.tensor(True), cg.tensor([9.0])), cg.index_select(x, 0, cg.tensor([0]))]
    assert [y.shape for y in found] == [()] * len(found)
    assert [y.item() for y in found] == [3, 5, 5, 5, 6, 4, 7, 8, 4, 3, 6, 9, 3]
    slopes = [cg.autograd.grad(y, (x,))[0].item() for y in found]
    assert slopes == [1, 0, 0, 1, 2, 1, 0, 0, 0, 1, 0, 0, 1]
    assert cg.gather(x, 0, cg.tensor([0, 0])).tolist() == [3, 3]
    assert cg.gather(cg.tensor([1.0, 2.0]), 0, cg.tensor(1)).item() == 2


def test_an_index_without_elements_reads_and_writes_nothing():
    x, none = cg.tensor(np.ones((2, 3)), requires_grad=True), cg.tensor([], dtype=cg.int64)
    assert cg.gather(x, 1, none).shape == (0,)
    for y in (cg.scatter(x, 0, none, cg.zeros(0)), cg.scatter_add(x, 0, none, cg.zeros(0)), cg.scatter_reduce(x, 0, none, cg.zeros(0), "amax"),
              cg.index_add(x, 1, none, cg.zeros(2, 0)), cg.index_fill(x, 0, none, 5.0), cg.put(x, none, cg.zeros(0)), cg.index_put(x, (none,), 1.0, True)):
        np.testing.assert_array_equal(array(y), np.ones((2, 3)))
        (g,) = cg.autograd.grad(y.sum(), (x,))
        np.testing.assert_array_equal(array(g), np.ones((2, 3)))


def test_equal_extremes_share_the_gradient():
    x = cg.tensor([2.0, 1.0], requires_grad=True)
    src = cg.tensor([2.0, 2.0, 0.0], requires_grad=True)
    out = cg.scatter_reduce(x, 0, cg.tensor([0, 0, 1]), src, "amax")
    gx, gs = cg.autograd.grad(out, (x, src), cg.tensor([3.0, 5.0]))
    assert gx.tolist() == [1, 5] and gs.tolist() == [1, 1, 0]
    out = cg.scatter_reduce(x, 0, cg.tensor([0, 0, 1]), src, "amax", include_self=False)
    gx, gs = cg.autograd.grad(out, (x, src), cg.tensor([3.0, 5.0]))
    assert gx.tolist() == [0, 0] and gs.tolist() == [1.5, 1.5, 5]


def test_products_with_zeros_have_exact_derivatives():
    index = cg.tensor([0, 0, 1])

    def product(x, src):
        return cg.scatter_reduce(x, 0, index, src, "prod").sum()
    x, src = cg.tensor(np.array([0.0, 3.0])), cg.tensor(np.array([0.0, 4.0, 0.0]))
    gx, gs = cg.func.grad(product, (0, 1))(x, src)
    assert gx.tolist() == [0, 0] and gs.tolist() == [0, 0, 3]
    mixed = cg.func.grad(lambda x, src: cg.func.grad(product)(x, src)[0], 1)(x, src)
    assert mixed.tolist() == [4, 0, 0]            # d2 (x0 s0 s1) / dx0 ds0


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64", "float32"])
def test_extremes_of_every_dtype(dtype):
    x = cg.tensor(np.array([3, 200 if dtype == "uint8" else 100, 5]).astype(dtype))
    src = cg.tensor(np.array([4, 1, 2, 9]).astype(dtype))
    index = cg.tensor([0, 0, 1, 1])
    for reduce, with_self, without in (("amax", [4, x[1].item(), 5], [4, 9, 5]), ("amin", [1, 2, 5], [1, 2, 5]), ("prod", None, [4, 18, 5]),
                                       ("mean", None, [2.5 if dtype == "float32" else 2, 5.5 if dtype == "float32" else 5, 5])):
        out = cg.scatter_reduce(x, 0, index, src, reduce, include_self=False)
        assert out.dtype == dtype and out.tolist() == without
        if with_self:
            assert cg.scatter_reduce(x, 0, index, src, reduce).tolist() == with_self
    nan = cg.scatter_reduce(cg.tensor([1.0, np.nan]), 0, cg.tensor([0, 1]), cg.tensor([np.nan, 1.0]), "amin")
    assert np.isnan(array(nan)).all()


def test_written_into_the_tensor_itself():
    x = cg.zeros(2, 3)
    x.scatter_(1, cg.tensor([[0, 0]]), 2.0, reduce="add")
    x.scatter_(1, cg.tensor([[0]]), 3.0, reduce="multiply")
    x.put_(cg.tensor([5]), cg.tensor([7.0])).put_(cg.tensor([5]), cg.tensor([1.0]), accumulate=True)
    x.index_put_((cg.tensor([1, 1]), cg.tensor([0, 0])), cg.tensor([1.0, 2.0]), accumulate=True)
    x.masked_scatter_(x == 0, cg.tensor([1.0, 2.0, 3.0]))
    x.scatter_reduce_(0, cg.tensor([[1, 0, 0]]), cg.tensor([[9.0, 9.0, -9.0]]), reduce="amax")
    x.index_reduce_(0, cg.tensor([0]), cg.tensor([[1.0, 1.0, -5.0]]), "amin")
    assert x.tolist() == [[1, 1, -5], [9, 3, 8]]


def test_keywords_of_pytorch():
    x = cg.zeros(2, 3)
    assert cg.scatter(input=x, dim=1, index=cg.tensor([[0]]), value=2.0)[0, 0].item() == 2
    assert cg.take(x, index=cg.tensor([1])).shape == (1,)
    assert cg.rot90(x, 1, dims=(0, 1)).shape == (3, 2)
    assert cg.slice_scatter(x, src=cg.ones(1, 3), dim=0, start=1).sum().item() == 3
