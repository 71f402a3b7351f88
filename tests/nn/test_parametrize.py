"""Parametrized parameters: reading, assigning, training, saving, copying, taking off; and the usual maps."""
import copy
import pickle

import numpy as np
import pytest

import cgrad as cg
from cgrad import nn
from cgrad.nn.utils import parametrizations, parametrize


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT

    def right_inverse(self, x):
        return x.triu()


class Double(nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, x):
        return x / 2


class Skew(nn.Module):
    def forward(self, x):
        return x.triu(1) - x.triu(1).mT


def layer(n=3, m=3):
    cg.manual_seed(0)
    return nn.Linear(n, m, dtype=cg.float64)


def test_the_parameter_is_computed_when_it_is_read():
    net = layer()
    original = net.weight
    start = net.weight.detach().numpy().copy()
    assert parametrize.register_parametrization(net, "weight", Symmetric()) is net
    assert net.parametrizations.weight.original is original         # what an optimizer may hold
    w = net.weight.detach().numpy()
    np.testing.assert_array_equal(w, np.triu(start) + np.triu(start, 1).T)
    assert list(net.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert [n for n, _ in net.named_parameters()] == ["bias", "parametrizations.weight.original"]
    assert parametrize.is_parametrized(net) and parametrize.is_parametrized(net, "weight") and not parametrize.is_parametrized(net, "bias")
    assert isinstance(net, nn.Linear) and parametrize.type_before_parametrizations(net) is nn.Linear
    assert repr(net).startswith("ParametrizedLinear(\n  in_features=3")
    x = cg.randn(4, 3, dtype=cg.float64)
    np.testing.assert_allclose(net(x).detach().numpy(), x.numpy() @ w.T + net.bias.detach().numpy())
    net(x).sum().backward()
    column = x.numpy().sum(axis=0)                                  # the gradient of W is the same row three times
    want = np.triu(np.tile(column, (3, 1)) + np.tile(column, (3, 1)).T) - np.diag(column)
    np.testing.assert_allclose(original.grad.numpy(), want)


def test_values_are_assigned_through_the_inverse():
    net = layer()
    parametrize.register_parametrization(net, "weight", Symmetric())
    value = cg.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]], dtype=cg.float64)
    net.weight = value
    np.testing.assert_array_equal(net.weight.detach().numpy(), value.numpy())
    np.testing.assert_array_equal(net.parametrizations.weight.original.detach().numpy(), np.triu(value.numpy()))
    with pytest.raises(ValueError, match="dtype"):
        net.weight = cg.ones(3, 3)
    other = layer()
    parametrize.register_parametrization(other, "weight", Skew())
    with pytest.raises(RuntimeError, match="right_inverse"):
        other.weight = value


def test_maps_are_chained():
    net = layer()
    parametrize.register_parametrization(net, "weight", Symmetric())
    before = net.weight.detach().numpy().copy()
    parametrize.register_parametrization(net, "weight", Double())
    np.testing.assert_array_equal(net.weight.detach().numpy(), 2 * before)
    net.weight = cg.eye(3, dtype=cg.float64)
    np.testing.assert_array_equal(net.weight.detach().numpy(), np.eye(3))
    np.testing.assert_array_equal(net.parametrizations.weight.original.detach().numpy(), np.eye(3) / 2)


@pytest.mark.parametrize("leave", [True, False])
def test_taking_parametrizations_off(leave):
    net = layer()
    parametrize.register_parametrization(net, "weight", Symmetric())
    parametrize.register_parametrization(net, "bias", Double())
    original, value = net.parametrizations.weight.original, net.weight.detach().numpy().copy()
    raw = original.detach().numpy().copy()
    parametrize.remove_parametrizations(net, "weight", leave_parametrized=leave)
    assert net.weight is original and parametrize.is_parametrized(net)
    np.testing.assert_array_equal(net.weight.detach().numpy(), value if leave else raw)
    parametrize.remove_parametrizations(net, "bias")
    assert type(net) is nn.Linear and sorted(net.state_dict()) == ["bias", "weight"] and not parametrize.is_parametrized(net)
    with pytest.raises(ValueError, match="no parametrization"):
        parametrize.remove_parametrizations(net, "bias")


def test_buffers_can_be_parametrized():
    net = nn.Identity()
    net.register_buffer("scale", cg.tensor([3.0]))
    parametrize.register_parametrization(net, "scale", Double())
    assert net.scale.tolist() == [3.0] and [n for n, _ in net.named_buffers()] == ["parametrizations.scale.original"]
    parametrize.remove_parametrizations(net, "scale")
    assert list(net.state_dict()) == ["scale"] and not list(net.parameters())


def test_what_would_change_shape_or_dtype_is_refused_and_undone():
    class Wider(nn.Module):
        def forward(self, x):
            return cg.concat([x, x])

        def right_inverse(self, x):
            return x * 0

    class Other(nn.Module):
        def forward(self, x):
            return x.float()

    for bad, word in ((Wider(), "shape"), (Other(), "dtype")):
        net = layer()
        before = net.weight.tolist()
        with pytest.raises(ValueError, match=word):
            parametrize.register_parametrization(net, "weight", bad)
        assert type(net) is nn.Linear and net.weight.tolist() == before
        parametrize.register_parametrization(net, "weight", Double())
        with pytest.raises(ValueError, match=word):
            parametrize.register_parametrization(net, "weight", bad)
        assert len(net.parametrizations.weight) == 1
    parametrize.register_parametrization(net, "weight", Wider(), unsafe=True)
    assert net.weight.shape == (6, 3)
    with pytest.raises(ValueError, match="no parameter, buffer"):
        parametrize.register_parametrization(layer(), "wait", Double())


def test_reading_is_cached_within_a_block():
    net = layer()
    parametrize.register_parametrization(net, "weight", Symmetric())
    assert net.weight is not net.weight
    with parametrize.cached():
        first = net.weight
        with parametrize.cached():
            assert net.weight is first
        assert net.weight is first
    assert net.weight is not first


@pytest.mark.parametrize("how", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies_are_independent(how):
    net = layer()
    parametrize.register_parametrization(net, "weight", Symmetric())
    other = how(net)
    np.testing.assert_array_equal(other.weight.detach().numpy(), net.weight.detach().numpy())
    other.weight = cg.eye(3, dtype=cg.float64)
    assert net.weight.tolist() != other.weight.tolist()
    parametrize.remove_parametrizations(other, "weight")
    assert parametrize.is_parametrized(net, "weight") and type(other) is nn.Linear


def test_states_are_saved_and_loaded_and_transferred():
    a, b = layer(), nn.Linear(3, 3, dtype=cg.float64)
    for net in (a, b):
        parametrizations.weight_norm(net)
    b.load_state_dict(a.state_dict())
    assert b.weight.tolist() == a.weight.tolist()
    c = parametrize.transfer_parametrizations_and_params(a, nn.Linear(3, 3, dtype=cg.float64))
    assert c.weight.tolist() == a.weight.tolist() and list(c.state_dict()) == list(a.state_dict())
    assert c.parametrizations.weight.original0 is not a.parametrizations.weight.original0


# ------------------------------------------------------------------ the usual maps
@pytest.mark.parametrize(("dim", "axes", "shape"), [(0, (1, 2), (4, 1, 1)), (1, (0, 2), (1, 2, 1)), (None, None, ())])
def test_weight_norm(dim, axes, shape):
    net = nn.Conv1d(2, 4, 3, dtype=cg.float64)
    start = net.weight.detach().numpy().copy()
    assert parametrizations.weight_norm(net, dim=dim) is net
    entries = net.parametrizations.weight
    assert list(net.state_dict()) == ["bias", "parametrizations.weight.original0", "parametrizations.weight.original1"]
    assert entries.original0.shape == shape
    np.testing.assert_allclose(entries.original0.detach().numpy(), np.sqrt((start ** 2).sum(axis=axes, keepdims=axes is not None)))
    np.testing.assert_allclose(net.weight.detach().numpy(), start, rtol=1e-13)
    with cg.no_grad():
        entries.original1.mul_(7.0)                     # the direction alone counts
    np.testing.assert_allclose(net.weight.detach().numpy(), start, rtol=1e-13)
    net.weight.sum().backward()
    assert (entries.original0.grad is not None) and (entries.original1.grad is not None)
    with pytest.raises(ValueError, match="leave_parametrized"):
        parametrize.remove_parametrizations(net, "weight", leave_parametrized=False)
    parametrize.remove_parametrizations(net, "weight")
    np.testing.assert_allclose(net.weight.detach().numpy(), start, rtol=1e-13)
    assert isinstance(net.weight, nn.Parameter)


def test_weight_norm_takes_the_older_names():
    net = nn.Sequential(parametrizations.weight_norm(nn.Linear(2, 1)))
    net = pickle.loads(pickle.dumps(net))
    net.load_state_dict({"0.bias": cg.zeros(1), "0.weight_g": cg.tensor([[10.0]]), "0.weight_v": cg.tensor([[3.0, 4.0]])})
    np.testing.assert_allclose(net[0].weight.detach().numpy(), [[6.0, 8.0]], rtol=1e-6)
    net = nn.utils.spectral_norm(nn.Linear(2, 1)).eval()
    net.load_state_dict({"bias": cg.zeros(1), "weight_orig": cg.tensor([[3.0, 4.0]]), "weight_u": cg.ones(1), "weight_v": cg.tensor([0.6, 0.8])})
    np.testing.assert_allclose(net.weight.detach().numpy(), [[0.6, 0.8]], rtol=1e-6)


def test_norms_of_weights_by_their_older_places():
    assert nn.utils.weight_norm is parametrizations.weight_norm and nn.utils.spectral_norm is parametrizations.spectral_norm
    for add, remove in ((nn.utils.weight_norm, nn.utils.remove_weight_norm), (nn.utils.spectral_norm, nn.utils.remove_spectral_norm)):
        layer = add(nn.Conv1d(2, 3, 2))
        layer.eval()
        weight = layer.weight.detach().numpy().copy()
        assert remove(layer) is layer and sorted(layer.state_dict()) == ["bias", "weight"]
        np.testing.assert_allclose(layer.weight.detach().numpy(), weight, rtol=1e-6)


@pytest.mark.parametrize(("net", "dim"), [(nn.Linear(5, 4, dtype=cg.float64), 0), (nn.Conv2d(3, 4, 3, dtype=cg.float64), 0),
                                          (nn.ConvTranspose1d(3, 4, 3, dtype=cg.float64), 1)])
def test_spectral_norm(net, dim):
    cg.manual_seed(0)
    start = net.weight.detach().numpy().copy()
    parametrizations.spectral_norm(net, n_power_iterations=200)
    w = net.weight.detach().numpy()
    largest = np.linalg.svd(np.moveaxis(start, dim, 0).reshape(start.shape[dim], -1), compute_uv=False)[0]
    np.testing.assert_allclose(w, start / largest, rtol=1e-10)
    names = list(net.state_dict())
    assert names == ["bias", "parametrizations.weight.original", "parametrizations.weight.0._u", "parametrizations.weight.0._v"]
    net.eval()
    u = net.parametrizations.weight[0]._u.tolist()
    np.testing.assert_array_equal(net.weight.detach().numpy(), net.weight.detach().numpy())
    assert net.parametrizations.weight[0]._u.tolist() == u
    (net.weight ** 2).sum().backward()
    u, v = (net.parametrizations.weight[0].get_buffer(name).numpy() for name in ("_u", "_v"))
    matrix = np.moveaxis(start, dim, 0).reshape(start.shape[dim], -1)
    sigma = u @ matrix @ v
    want = 2 * matrix / sigma ** 2 - 2 * (matrix ** 2).sum() / sigma ** 3 * np.outer(u, v)
    got = np.moveaxis(net.parametrizations.weight.original.grad.numpy(), dim, 0).reshape(matrix.shape)
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


def test_spectral_norm_between_two_readings_and_of_a_vector():
    net = parametrizations.spectral_norm(nn.Linear(5, 4))
    (net(cg.ones(1, 5)) - net(cg.zeros(1, 5))).sum().backward()           # the vectors changed before backward
    bias = parametrizations.spectral_norm(nn.Linear(2, 2), "bias")
    assert cg.vector_norm(bias.bias.detach()).item() == pytest.approx(1, rel=1e-6)
    with pytest.raises(ValueError, match="at least 1"):
        parametrizations.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)
    with pytest.raises(IndexError, match="no axis 2"):
        parametrizations.spectral_norm(nn.Linear(2, 2), dim=2)
    with pytest.raises(ValueError, match="no parameter or buffer 'w'"):
        parametrizations.spectral_norm(nn.Linear(2, 2), "w")


@pytest.mark.parametrize("trivial", [True, False])
@pytest.mark.parametrize("name", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (2, 4, 3)])
def test_orthogonal(shape, name, trivial):
    cg.manual_seed(0)
    net = nn.Module()
    net.weight = nn.Parameter(cg.randn(*shape, dtype=cg.float64))
    start = net.weight.detach().numpy().copy()
    parametrizations.orthogonal(net, orthogonal_map=name, use_trivialization=trivial)
    k = min(shape[-2:])

    def gram(w):
        return w @ w.swapaxes(-1, -2) if shape[-2] < shape[-1] else w.swapaxes(-1, -2) @ w

    eye = np.broadcast_to(np.eye(k), (*shape[:-2], k, k))
    np.testing.assert_allclose(gram(net.weight.detach().numpy()), eye, atol=1e-12)
    if trivial or name == "householder":
        tall = start.swapaxes(-1, -2) if shape[-2] < shape[-1] else start
        q, r = np.linalg.qr(tall)
        q = q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
        np.testing.assert_allclose(net.weight.detach().numpy(), q.swapaxes(-1, -2) if shape[-2] < shape[-1] else q, atol=1e-12)
    optimizer = cg.optim.SGD(net.parameters(), lr=0.01)
    target = cg.tensor(start)
    losses = []
    for _ in range(5):
        loss = ((net.weight - target) ** 2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    np.testing.assert_allclose(gram(net.weight.detach().numpy()), eye, atol=1e-12)
    assert losses[-1] <= losses[0] + 1e-9
    if trivial or name == "householder":
        q = np.linalg.qr(np.random.default_rng(0).normal(size=(*shape[:-2], max(shape[-2:]), k)))[0]
        q = q.swapaxes(-1, -2).copy() if shape[-2] < shape[-1] else q
        net.weight = cg.tensor(q)
        np.testing.assert_allclose(net.weight.detach().numpy(), q, atol=1e-12)
        with pytest.raises(ValueError, match="shape"):
            net.weight = cg.ones(2, 2, dtype=cg.float64)
    else:
        with pytest.raises(NotImplementedError, match=name):
            net.weight = cg.tensor(start)


def test_orthogonal_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="orthogonal_map"):
        parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="givens")
    with pytest.raises(ValueError, match="at least 2 axes"):
        parametrizations.orthogonal(nn.Linear(2, 2), "bias")


# ------------------------------------------------------------------ fusion with batch norms
def trained(norm, x):
    for _ in range(3):
        norm(x + cg.randn(*x.shape, dtype=x.dtype))
    with cg.no_grad():
        for p in norm.parameters():
            p.copy_(cg.randn(*p.shape, dtype=p.dtype))
    return norm.eval()


@pytest.mark.parametrize(("layer", "norm", "shape", "options"), [
    (nn.Conv1d(3, 4, 3, dtype=cg.float64), nn.BatchNorm1d(4, dtype=cg.float64), (2, 3, 9), {}),
    (nn.Conv2d(2, 4, 3, bias=False, groups=2, dtype=cg.float64), nn.BatchNorm2d(4, dtype=cg.float64), (2, 2, 6, 5), {}),
    (nn.Conv2d(2, 4, 3, dtype=cg.float64), nn.BatchNorm2d(4, affine=False, dtype=cg.float64), (2, 2, 6, 5), {}),
    (nn.ConvTranspose2d(2, 4, 3, dtype=cg.float64), nn.BatchNorm2d(4, dtype=cg.float64), (2, 2, 6, 5), {"transpose": True}),
])
def test_a_convolution_takes_a_batch_norm_in(layer, norm, shape, options):
    x = cg.randn(*shape, dtype=cg.float64)
    trained(norm, layer(x).detach())
    before = layer.state_dict()["weight"].clone()
    fused = nn.utils.fuse_conv_bn_eval(layer.eval(), norm, **options)
    np.testing.assert_allclose(fused(x).detach().numpy(), norm(layer(x)).detach().numpy(), rtol=1e-10, atol=1e-12)
    assert type(fused) is type(layer) and (layer.weight == before).all() and fused.bias.requires_grad


@pytest.mark.parametrize("features", [5, 1])
def test_a_linear_layer_takes_a_batch_norm_in(features):
    x = cg.randn(6, 3, dtype=cg.float64)
    layer, norm = nn.Linear(3, 5, bias=features == 5, dtype=cg.float64), nn.BatchNorm1d(features, dtype=cg.float64)
    trained(norm, cg.randn(6, features, dtype=cg.float64))
    fused = nn.utils.fuse_linear_bn_eval(layer.eval(), norm)
    out = layer(x)
    want = norm(out) if features == 5 else norm(out.reshape(-1, 1)).reshape(6, 5)
    np.testing.assert_allclose(fused(x).detach().numpy(), want.detach().numpy(), rtol=1e-10, atol=1e-12)


def test_fusion_wants_evaluation_mode_and_moments():
    with pytest.raises(RuntimeError, match="evaluation mode"):
        nn.utils.fuse_conv_bn_eval(nn.Conv1d(1, 1, 1), nn.BatchNorm1d(1).eval())
    with pytest.raises(RuntimeError, match="no running moments"):
        nn.utils.fuse_linear_bn_eval(nn.Linear(1, 1).eval(), nn.BatchNorm1d(1, track_running_stats=False).eval())
    with pytest.raises(ValueError, match="1 or 4 features, got 2"):
        nn.utils.fuse_linear_bn_eval(nn.Linear(1, 4).eval(), nn.BatchNorm1d(2).eval())


# ------------------------------------------------------------------ norms of gradients
@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, np.inf])
def test_total_norms_and_clipping_by_them(order):
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=shape) for shape in ((3, 2), (4,), ())]
    want = np.linalg.norm(np.concatenate([part.ravel() for part in parts]), order)
    total = nn.utils.get_total_norm([cg.tensor(part) for part in parts], order)
    assert total.item() == pytest.approx(want, rel=1e-13)
    parameters = [cg.zeros_like(cg.tensor(part), requires_grad=True) for part in parts]
    for p, part in zip(parameters, parts):
        p.grad = cg.tensor(part)
    nn.utils.clip_grads_with_norm_(parameters, want / 2, total)
    for p, part in zip(parameters, parts):
        np.testing.assert_allclose(p.grad.numpy(), part / 2, rtol=1e-5)
    assert nn.utils.get_total_norm([]).item() == 0
    with pytest.raises(ValueError, match="must not be negative"):
        nn.utils.clip_grads_with_norm_(parameters, -1.0, total)
