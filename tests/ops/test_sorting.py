"""Sorting, searching, sets and running extremes: ties, NaN, infinities, 0-d tensors, and what several results are called."""
import numpy as np
import pytest

import cgrad as cg

INF, NAN = np.inf, np.nan


def array(x):
    return x.detach().numpy()


def slope(function, data, weights):
    x = cg.tensor(np.array(data, float), requires_grad=True)
    (function(x) * cg.tensor(np.array(weights, float))).sum().backward()
    return array(x.grad)


def test_nan_is_larger_than_every_number():
    x = cg.tensor(np.array([2.0, NAN, -INF, INF]))
    np.testing.assert_array_equal(array(cg.sort(x)), [-INF, 2, INF, NAN])
    np.testing.assert_array_equal(array(cg.sort(x, descending=True)), [NAN, INF, 2, -INF])
    np.testing.assert_array_equal(array(cg.argsort(x)), [2, 0, 3, 1])
    np.testing.assert_array_equal(array(cg.argsort(x, descending=True)), [1, 3, 0, 2])
    np.testing.assert_array_equal(array(cg.topk(x, 2).values), [NAN, INF])
    np.testing.assert_array_equal(array(cg.topk(x, 2, largest=False).indices), [2, 0])
    np.testing.assert_array_equal(array(cg.kthvalue(x, 4).values), NAN)
    np.testing.assert_array_equal(array(cg.median(x)), NAN)
    np.testing.assert_array_equal(array(cg.nanmedian(x)), 2)
    np.testing.assert_array_equal(array(cg.quantile(x, [0.0, 0.5])), [NAN, NAN])
    np.testing.assert_array_equal(array(cg.nanquantile(x, [0.0, 0.25, 0.5, 0.75, 1.0])), [-INF, -INF, 2, INF, INF])
    np.testing.assert_array_equal(array(cg.searchsorted(cg.tensor([1.0, NAN]), cg.tensor([0.0, 5.0, NAN]))), [0, 1, 1])
    np.testing.assert_array_equal(array(cg.searchsorted(cg.tensor([1.0, NAN]), cg.tensor([NAN]), side="right")), [2])
    for function, values, indices in ((cg.cummax, [2, NAN, NAN, NAN], [0, 1, 1, 1]), (cg.cummin, [2, NAN, NAN, NAN], [0, 1, 1, 1])):
        np.testing.assert_array_equal(array(function(x).values), values)
        np.testing.assert_array_equal(array(function(x).indices), indices)


def test_the_first_nan_is_the_median():
    x = cg.tensor([[1.0, 2.0, 3.0], [NAN, 5.0, NAN], [0.0, NAN, 1.0]], requires_grad=True)
    np.testing.assert_array_equal(array(cg.median(x, 1)), np.float32([2, NAN, NAN]))
    np.testing.assert_array_equal(array(cg.median(x, 0)), np.float32([NAN, NAN, NAN]))
    (g,) = cg.autograd.grad(cg.median(x, 1).sum(), (x,))
    np.testing.assert_array_equal(array(g), [[0, 1, 0], [1, 0, 0], [0, 1, 0]])
    (g,) = cg.autograd.grad(cg.median(x, 0).sum(), (x,))
    np.testing.assert_array_equal(array(g), [[0, 0, 0], [1, 0, 1], [0, 1, 0]])


def test_all_nan():
    x = cg.tensor(np.full((2, 3), NAN))
    for function in (cg.median, cg.nanmedian, lambda x, axis: cg.nanquantile(x, 0.3, axis), lambda x, axis: cg.mode(x, axis).values):
        np.testing.assert_array_equal(array(function(x, 1)), [NAN, NAN])


def test_equal_elements_keep_their_order():
    x = [1.0, 0.0, 1.0, 0.0]
    np.testing.assert_array_equal(slope(cg.sort, x, [1, 2, 3, 4]), [3, 1, 4, 2])
    np.testing.assert_array_equal(slope(lambda x: cg.sort(x, descending=True), x, [1, 2, 3, 4]), [1, 3, 2, 4])
    np.testing.assert_array_equal(array(cg.argsort(cg.tensor(x), descending=True)), [0, 2, 1, 3])
    np.testing.assert_array_equal(slope(lambda x: cg.topk(x, 4).values, x, [1, 2, 3, 4]), [1, 3, 2, 4])
    np.testing.assert_array_equal(slope(lambda x: cg.cummax(x).values, [1, 3, 3, 2], [1, 2, 3, 4]), [1, 2, 7, 0])
    np.testing.assert_array_equal(slope(lambda x: cg.cummin(x).values, [3, 1, 1, 2], [1, 2, 3, 4]), [1, 2, 7, 0])
    np.testing.assert_array_equal(slope(lambda x: cg.mode(x).values, [5, 2, 2, 7], 1), [0, 0, 1, 0])
    np.testing.assert_array_equal(slope(cg.unique, [5, 2, 2, 7], [1, 2, 3]), [2, 1, 0, 3])
    assert slope(cg.median, [2, 2, 1], 1).sum() == 1
    np.testing.assert_allclose(slope(lambda x: cg.quantile(x, 0.25), [2, 1, 2], 1), [0.5, 0.5, 0])


def test_quantiles_between_infinities():
    assert cg.quantile(cg.tensor([-INF, 1.0]), 0.5).item() == -INF
    assert cg.quantile(cg.tensor([1.0, INF]), 0.5).item() == INF
    assert cg.quantile(cg.tensor([INF, INF]), 0.5).item() == INF
    assert cg.quantile(cg.tensor([1.0, INF]), 0.0).item() == 1
    assert np.isnan(cg.quantile(cg.tensor([-INF, INF]), 0.5).item())


def test_the_fraction_of_a_quantile_has_a_gradient():
    q = cg.tensor([0.3], requires_grad=True)
    cg.quantile(cg.tensor([0.0, 1.0, 3.0]), q).sum().backward()
    np.testing.assert_allclose(array(q.grad), [2.0])


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"])
def test_every_dtype(dtype):
    data = np.array([[1, 0, 1, 1], [0, 1, 0, 0]]).astype(dtype)
    x = cg.tensor(data)
    for axis in (0, 1):
        assert cg.sort(x, axis).dtype == dtype
        np.testing.assert_array_equal(array(cg.sort(x, axis)), np.sort(data, axis))
        np.testing.assert_array_equal(array(cg.sort(x, axis, descending=True)), np.flip(np.sort(data, axis), axis))
        np.testing.assert_array_equal(array(cg.argsort(x, axis)), np.argsort(data, axis, kind="stable"))
        np.testing.assert_array_equal(array(cg.topk(x, 2, axis).values), np.flip(np.sort(data, axis), axis).take([0, 1], axis))
        values, indices = cg.cummax(x, axis)
        assert values.dtype == dtype and indices.dtype == "int64"
        np.testing.assert_array_equal(array(values), np.maximum.accumulate(data, axis))
    np.testing.assert_array_equal(array(cg.median(x, 1)), [1, 0])
    np.testing.assert_array_equal(array(cg.mode(x).values), [1, 0])
    np.testing.assert_array_equal(array(cg.unique(x)), [0, 1])
    np.testing.assert_array_equal(array(cg.searchsorted(cg.unique(x), x)), data)


def test_tensors_without_axes():
    x = cg.tensor(3.0, requires_grad=True)
    found = [cg.sort(x), cg.argsort(x), *cg.topk(x, 1), *cg.kthvalue(x, 1, 0), *cg.mode(x), *cg.cummax(x, 0), *cg.cummin(x), cg.median(x), cg.median(x, 0),
             cg.logcumsumexp(x, 0), cg.quantile(x, 0.3)]
    assert all(y.shape == () for y in found)
    for y in found:
        if y.dtype.is_floating_point:
            assert cg.autograd.grad(y, (x,))[0].item() == 1
    assert cg.topk(x, 0).values.shape == (0,)
    assert cg.unique(x).shape == cg.unique_consecutive(x).shape == (1,)
    assert cg.unique_inverse(x).inverse_indices.shape == ()
    assert cg.searchsorted(cg.tensor([1.0, 4.0]), x).shape == ()


def test_empty_tensors():
    x = cg.zeros(0, 3)
    assert cg.sort(x, 0).shape == cg.argsort(x).shape == cg.cummax(x, 0).values.shape == cg.logcumsumexp(x, 0).shape == (0, 3)
    assert cg.topk(x, 2).values.shape == (0, 2) and cg.median(x, 1).shape == cg.mode(x).values.shape == (0,)
    assert [y.shape for y in cg.unique_consecutive(x, True, True)] == [(0,), (0, 3), (0,)]
    assert cg.bincount(cg.tensor([], dtype=cg.int64), minlength=2).tolist() == [0, 0]
    assert cg.isin(x, 1).shape == (0, 3) and cg.isin(cg.ones(2), x).tolist() == [False, False]
    assert cg.trapezoid(cg.ones(2, 1)).tolist() == [0, 0]


def test_large_tensors_agree_with_numpy():
    rng = np.random.default_rng(3)
    data = rng.integers(0, 500, (30, 2000)).astype(np.float32)
    x = cg.tensor(data)
    for axis in (0, 1):
        np.testing.assert_array_equal(array(cg.argsort(x, axis)), np.argsort(data, axis, kind="stable"))
        values, indices = cg.topk(x, 7, axis)
        np.testing.assert_array_equal(array(values), np.flip(np.sort(data, axis), axis).take(range(7), axis))
        np.testing.assert_array_equal(np.take_along_axis(data, array(indices), axis), array(values))
        values, indices = cg.cummin(x, axis)
        np.testing.assert_array_equal(array(values), np.minimum.accumulate(data, axis))
        np.testing.assert_array_equal(np.take_along_axis(data, array(indices), axis), array(values))
        np.testing.assert_allclose(array(cg.logcumsumexp(x, axis)), np.logaddexp.accumulate(data.astype(float), axis), rtol=1e-6)
    values, inverse, counts = cg.unique(x, return_inverse=True, return_counts=True)
    np.testing.assert_array_equal(array(values)[array(inverse)], data)
    np.testing.assert_array_equal(array(counts), np.unique(data, return_counts=True)[1])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "int8"])
@pytest.mark.parametrize("descending", [False, True])
def test_places_in_order_are_stable_whatever_the_bits(dtype, descending):
    """Zeros of both signs are equal, all NaN are equal, and the extremes of a dtype are in their place."""
    if dtype.startswith("float"):
        tiny = np.finfo(dtype).smallest_subnormal
        data = np.array([0.0, -0.0, NAN, -INF, -NAN, INF, tiny, -tiny, -0.0, 0.0, 1.5, -1.5, np.finfo(dtype).max, np.finfo(dtype).min] * 5, dtype)
    else:
        info = np.iinfo(dtype)
        data = np.array([0, info.max, info.min, -1, 1, info.max, info.min, 0] * 9, dtype)
    rank = -np.unique(np.nan_to_num(data, nan=INF, posinf=INF, neginf=-INF), return_inverse=True)[1] if descending else data
    if descending and dtype.startswith("float"):
        rank = np.where(np.isnan(data), -1000, rank)
    for laid in (data, data[::-1], np.repeat(data, 2)[::2]):
        want = np.argsort(rank if laid.strides != (-data.itemsize,) else rank[::-1], kind="stable")
        np.testing.assert_array_equal(array(cg.argsort(cg.from_numpy(laid), descending=descending)), want)
    plane = np.stack([data, data], 1)
    np.testing.assert_array_equal(array(cg.argsort(cg.tensor(plane), 0, descending))[:, 1], np.argsort(rank, kind="stable"))


def test_more_than_a_few_of_the_largest():
    rng = np.random.default_rng(5)
    data = rng.integers(0, 40, (6, 300)).astype(float)
    for k in (1, 31, 32, 33, 40, 299, 300):
        for largest in (True, False):
            want = np.argsort(-data if largest else data, 1, kind="stable")[:, :k]
            values, indices = cg.topk(cg.tensor(data), k, largest=largest)
            np.testing.assert_array_equal(array(values), np.take_along_axis(data, want, 1))
            np.testing.assert_array_equal(np.take_along_axis(data, array(indices), 1), array(values))
            assert all(len(set(row)) == k for row in array(indices).tolist())
            if k <= 32:
                np.testing.assert_array_equal(array(indices), want)
        np.testing.assert_array_equal(array(cg.kthvalue(cg.tensor(data.T.copy()), k, 0).values), np.sort(data, 1)[:, k - 1])


def test_sorted_rows_are_searched_row_by_row():
    rng = np.random.default_rng(4)
    rows, values = rng.standard_normal((2, 3, 7)), rng.standard_normal((2, 3, 4))
    order = np.argsort(rows, -1)
    for side in ("left", "right"):
        want = [np.searchsorted(np.sort(r), v, side) for r, v in zip(rows.reshape(6, 7), values.reshape(6, 4))]
        got = cg.searchsorted(cg.tensor(rows), cg.tensor(values), sorter=cg.tensor(order), side=side, out_int32=True)
        assert got.dtype == "int32"
        np.testing.assert_array_equal(array(got), np.reshape(want, (2, 3, 4)))


def test_python_numbers_take_the_dtype_of_what_they_meet():
    x = cg.tensor(np.array([0.1, 0.2]))
    assert cg.isin(x, 0.1).tolist() == [True, False] and cg.isin(x, [0.2]).tolist() == [False, True]
    assert cg.searchsorted(x, 0.1, right=True).item() == 1 and cg.bucketize(x, [0.1]).tolist() == [0, 1]


def test_slices_are_compared_along_an_axis():
    data = np.array([[1, 2, 1], [1, 2, 1], [0, 5, 0], [1, 2, 1]])
    x = cg.tensor(data)
    for axis in (0, 1):
        got = cg.unique(x, return_inverse=True, return_counts=True, axis=axis, return_index=True)
        for g, w in zip(got, np.unique(data, True, True, True, axis=axis)):
            np.testing.assert_array_equal(array(g), w)
    values, inverse, counts = cg.unique_consecutive(x, True, True, axis=0)
    np.testing.assert_array_equal(array(values), data[[0, 2, 3]])
    assert inverse.tolist() == [0, 0, 1, 2] and counts.tolist() == [2, 1, 1]


def test_nan_differs_from_nan():
    x = cg.tensor([NAN, 1.0, NAN])
    assert cg.unique(x).shape == (3,) and cg.unique_counts(x).counts.tolist() == [1, 1, 1]
    assert cg.isin(x, x).tolist() == [False, True, False]


def test_results_have_names():
    x = cg.tensor([3.0, 1.0, 3.0])
    for function in (lambda x: cg.topk(x, 2), lambda x: cg.kthvalue(x, 1), cg.mode, cg.cummax, cg.cummin):
        values, indices = function(x)
        assert (values == function(x).values).all() and (indices == function(x).indices).all()
    assert cg.aminmax(x).min.item() == 1 and cg.aminmax(x).max.item() == 3
    assert cg.unique_all(x)._fields == ("values", "indices", "inverse_indices", "counts")
    assert cg.unique_counts(x)._fields == ("values", "counts") and cg.unique_inverse(x)._fields == ("values", "inverse_indices")
    assert cg.histogram(x)._fields == ("hist", "bin_edges")


def test_weighted_counts_have_a_gradient():
    w = cg.tensor([1.0, 2.0, 4.0], requires_grad=True)
    out = cg.bincount(cg.tensor([0, 2, 2]), w, minlength=4)
    np.testing.assert_array_equal(array(out), [1, 0, 6, 0])
    out.backward(cg.tensor([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_array_equal(array(w.grad), [1, 3, 3])
    hist, _ = cg.histogram(cg.tensor([0.5, 1.5, 9.0]), 2, (0.0, 2.0), weights=w)
    assert hist.tolist() == [1, 2]
    (g,) = cg.autograd.grad(hist.sum(), (w,))
    assert g.tolist() == [1, 1, 0]


def test_a_running_log_sum_of_infinities():
    x = cg.tensor(np.array([-INF, 0.0, -INF, INF, 1.0]), requires_grad=True)
    y = cg.logcumsumexp(x)
    np.testing.assert_array_equal(array(y), [-INF, 0, 0, INF, INF])
    y.sum().backward()
    np.testing.assert_array_equal(array(x.grad), [1, 2, 0, 2, 0])
    np.testing.assert_array_equal(array(cg.logcumsumexp(cg.tensor([0.0, NAN, 1.0]))), np.float32([0, NAN, NAN]))
    np.testing.assert_allclose(array(cg.logcumsumexp(cg.full((10000,), 0.0))), np.log(np.arange(1, 10001)), rtol=1e-6)
