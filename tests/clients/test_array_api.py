"""The helpers of array-api-compat and array-api-extra: how libraries find out what a tensor is and can do."""
import numpy as np
import pytest

import cgrad as cg

compat = pytest.importorskip("array_api_compat")
extra = pytest.importorskip("array_api_extra")

A = np.random.default_rng(0).normal(size=(6, 4))


def test_what_a_tensor_is():
    t = cg.tensor(A, requires_grad=True)
    assert compat.is_array_api_obj(t) and compat.array_namespace(t, t, 2.0, None) is cg
    assert compat.device(t) == "cpu" and compat.size(t) == 24 and compat.to_device(t, "cpu") is t
    assert not compat.is_lazy_array(t) and compat.is_writeable_array(t) and not compat.is_numpy_array(t)
    with pytest.raises(TypeError, match="Multiple namespaces"):
        compat.array_namespace(t, A)


CALLS = {
    "apply_where": lambda x, t: extra.apply_where(t > 0, t, lambda v: v * v, lambda v: -v), "atleast_nd": lambda x, t: extra.atleast_nd(t, ndim=3),
    "apply_where fill": lambda x, t: extra.apply_where(t > 0, (t, t), lambda a, b: a * b, fill_value=0.0),
    "set": lambda x, t: extra.at(t, (0, slice(None))).set(1.0, copy=True), "multiply": lambda x, t: extra.at(t)[1].multiply(2.0, copy=True),
    "cov": lambda x, t: extra.cov(t), "create_diagonal": lambda x, t: extra.create_diagonal(t[0]), "kron": lambda x, t: extra.kron(t, t),
    "pad": lambda x, t: extra.pad(t, 1), "sinc": lambda x, t: extra.sinc(t), "nan_to_num": lambda x, t: extra.nan_to_num(t),
    "lazy_apply": lambda x, t: extra.lazy_apply(lambda v: v * 2, t),
}


@pytest.mark.parametrize("call", CALLS)
def test_extra_functions_are_recorded(call):
    t = cg.tensor(A, requires_grad=True)
    out = CALLS[call](cg, t)
    np.testing.assert_allclose(out.detach().numpy(), CALLS[call](np, A), rtol=1e-12)
    assert out.requires_grad
    assert cg.autograd.gradcheck(lambda t: CALLS[call](cg, t), t)


def test_extra_functions_of_integers():
    i = cg.tensor([1, 3, 1])
    assert extra.nunique(i).item() == 2 and extra.one_hot(i, 4).tolist() == [[0, 1, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0]]
    assert extra.setdiff1d(i, cg.tensor([3])).tolist() == [1] and extra.isin(i, cg.tensor([3])).tolist() == [False, True, False]
