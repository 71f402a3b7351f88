"""einops on tensors, by the backend in cgrad.interop.einops and by the array API alone."""
import numpy as np
import pytest

import cgrad as cg

einops = pytest.importorskip("einops")

from einops import array_api  # noqa: E402

import cgrad.interop.einops as layers  # noqa: E402

A = np.random.default_rng(0).normal(size=(6, 4))
CALLS = {
    "rearrange": lambda e, t: e.rearrange(t, "(a b) c -> a c b", a=2), "list": lambda e, t: e.rearrange([t, t + 1], "k a b -> a (k b)"),
    "reduce mean": lambda e, t: e.reduce(t, "a b -> b", "mean"), "reduce max": lambda e, t: e.reduce(t, "(a k) b -> a b", "max", k=2),
    "reduce prod": lambda e, t: e.reduce(t, "a b -> 1 b", "prod"), "reduce all": lambda e, t: e.reduce(t, "a b -> ", "min"),
    "repeat": lambda e, t: e.repeat(t, "a b -> a (b r) s", r=2, s=3), "pack": lambda e, t: e.pack([t, t[:2]], "* b")[0],
    "unpack": lambda e, t: e.unpack(t, [(2, 2), (2,)], "* b")[0], "ellipsis": lambda e, t: e.rearrange(t, "... b -> b ..."),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("entry", [einops, array_api], ids=["backend", "array_api"])
def test_a_pattern(entry, call):
    if entry is array_api and call == "list":
        pytest.skip("einops.array_api takes no lists")
    x = cg.tensor(A, requires_grad=True)
    out = CALLS[call](entry, x)
    np.testing.assert_allclose(out.detach().numpy(), CALLS[call](einops, A), rtol=1e-12)
    assert cg.autograd.gradcheck(lambda t: CALLS[call](entry, t), x)


def test_einsum_and_the_rest():
    x = cg.tensor(A, requires_grad=True)
    out = einops.einsum(x, x, "a b, c b -> a c")
    np.testing.assert_allclose(out.detach().numpy(), A @ A.T)
    out.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.tile(2 * A.sum(0), (6, 1)))
    assert einops.parse_shape(x, "a b") == {"a": 6, "b": 4} and np.array_equal(einops.asnumpy(x), A)
    with pytest.raises(einops.EinopsError):
        einops.rearrange(x, "(a b) c -> a b c", a=5)


def test_layers():
    net = cg.nn.Sequential(layers.Rearrange("(a b) c -> a c b", a=2), layers.Reduce("a b c -> a c", "max"))
    assert np.array_equal(net(cg.tensor(A)).numpy(), A.reshape(2, 3, 4).max(-1)) and "Rearrange('(a b) c -> a c b', a=2)" in repr(net)


def test_inside_transformations():
    x = cg.tensor(A)
    rows = cg.func.vmap(lambda row: einops.reduce(row, "(a b) -> a", "sum", a=2))(x)
    np.testing.assert_allclose(rows.numpy(), A.reshape(6, 2, 2).sum(-1))
