"""batch_norm, instance_norm and group_norm, functions and layers, against their formulas in float64."""
import numpy as np
import pytest

import cgrad as cg
import cgrad.nn.functional as F
from cgrad import nn


def drawn(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(1.0, 2.0, shape).astype(dtype)


def grouped(x, groups):
    """x with the axis of what is normalised alone, and the axes of a mean: groups 0 over the samples, else of each sample."""
    n, c = x.shape[:2]
    return (x.reshape(n, groups, c // groups, -1), (2, 3)) if groups else (x.reshape(n, c, 1, -1), (0, 2, 3))


def per_channel(p, x, groups):
    return np.asarray(p).reshape(1, *grouped(x, groups)[0].shape[1:3], 1)


def expected(x, w, b, g, groups, eps=1e-5):
    """The result and the gradients of x, w and b from the derivative of the formula."""
    x, g = x.astype(np.float64), g.astype(np.float64)
    shape = x.shape
    ws, bs = per_channel(w, x, groups), per_channel(b, x, groups)
    x, axes = grouped(x, groups)
    g = g.reshape(x.shape)
    deviation = np.sqrt(x.var(axes, keepdims=True) + eps)
    y = (x - x.mean(axes, keepdims=True)) / deviation
    v = g * ws
    dx = (v - v.mean(axes, keepdims=True) - y * (v * y).mean(axes, keepdims=True)) / deviation
    return (y * ws + bs).reshape(shape), dx.reshape(shape), (g * y).sum((0, 3)).reshape(-1), g.sum((0, 3)).reshape(-1)


NORMS = {"batch_norm": (lambda x, w=None, b=None: F.batch_norm(x, None, None, w, b, True), lambda c: 0),
         "instance_norm": (lambda x, w=None, b=None: F.instance_norm(x, None, None, w, b), lambda c: c),
         "group_norm": (lambda x, w=None, b=None: F.group_norm(x, 2, w, b), lambda c: 2)}


# Extents around 16, where the layout of the loops changes; 4100 and 5000 elements run over a block; 200 and 300 samples over a chunk.
@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(5, 4), (300, 70), (3, 4, 2), (2, 4, 15), (200, 6, 16), (2, 4, 4100), (3, 2, 5, 7), (2, 6, 50, 100), (2, 4, 2, 3, 4)])
def test_values_and_all_gradients(name, dtype, shape):
    function, groups_of = NORMS[name]
    if name == "instance_norm" and len(shape) == 2:
        pytest.skip("a single value has no variance")
    x, g, w, b = drawn(shape, dtype), drawn(shape, dtype, 1), drawn(shape[1], dtype, 2), drawn(shape[1], dtype, 3)
    leaves = [cg.tensor(a, requires_grad=True) for a in (x, w, b)]
    y = function(*leaves)
    y.backward(cg.tensor(g))
    close = dict(rtol=1e-4, atol=5e-5) if dtype == np.float32 else dict(rtol=1e-10, atol=1e-11)
    for found, want in zip([y.detach(), *(leaf.grad for leaf in leaves)], expected(x, w, b, g, groups_of(shape[1])), strict=True):
        np.testing.assert_allclose(found.numpy(), want, **close)
        assert found.dtype == dtype
    y = function(cg.tensor(x))
    np.testing.assert_allclose(y.numpy(), expected(x, np.ones(shape[1]), np.zeros(shape[1]), g, groups_of(shape[1]))[0], **close)


@pytest.mark.parametrize("shape", [(6, 2), (3, 2, 3), (2, 2, 4, 5)])
@pytest.mark.parametrize("name", [*NORMS, "evaluation"])
def test_derivatives_of_all_orders(name, shape):
    if name == "instance_norm" and len(shape) == 2:
        pytest.skip("a single value has no variance")
    mean, var = cg.tensor([0.5, -1.0], dtype=cg.float64), cg.tensor([2.0, 0.3], dtype=cg.float64)
    function = (lambda x, w, b: F.batch_norm(x, mean, var, w, b)) if name == "evaluation" else NORMS[name][0]
    leaves = [cg.tensor(drawn(s, seed=i), requires_grad=True) for i, s in enumerate([shape, (2,), (2,)])]
    g = cg.tensor(drawn(shape, seed=7))
    fused = cg.autograd.grad(function(*leaves), leaves, g)
    rule = cg.autograd.grad(function(*leaves), leaves, g, create_graph=True)
    for a, b in zip(fused, rule, strict=True):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-11, atol=1e-12)
    cg.autograd.gradcheck(function, leaves, check_forward_ad=True)
    cg.autograd.gradgradcheck(function, leaves)
    for wanted in ((0,), (1,), (2,)):
        some = [cg.tensor(x.detach(), requires_grad=i in wanted) for i, x in enumerate(leaves)]
        function(*some).backward(g)
        for i in range(3):
            if i in wanted:
                np.testing.assert_allclose(some[i].grad.numpy(), fused[i].numpy(), rtol=1e-12, atol=1e-13)
            else:
                assert some[i].grad is None


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("axes", [(0, None, None), (None, 0, None), (1, 0, 0), (None, None, 1)])
@pytest.mark.parametrize("shape", [(4, 2, 3), (3, 2, 20)])
def test_a_batch_of_calls(name, axes, shape):
    arrays = [drawn(shape), drawn((2,), seed=1), drawn((2,), seed=2)]
    arrays = [a if axis is None else np.stack([a, a + np.cos(a), a * 2], axis) for a, axis in zip(arrays, axes, strict=True)]
    function, groups_of = NORMS[name]
    y = cg.func.vmap(function, in_dims=axes)(*map(cg.tensor, arrays))
    g = cg.func.vmap(cg.func.grad(lambda *a: (function(*a) ** 3).sum(), argnums=(0, 1, 2)), in_dims=axes)(*map(cg.tensor, arrays))
    for k in range(3):
        one = [a if axis is None else np.take(a, k, axis) for a, axis in zip(arrays, axes, strict=True)]
        out = expected(*one, one[0], groups_of(2))[0]
        np.testing.assert_allclose(y[k].numpy(), out, rtol=1e-10, atol=1e-11)
        for found, want in zip(g, expected(*one, 3 * out**2, groups_of(2))[1:], strict=True):
            np.testing.assert_allclose(found[k].numpy(), want, rtol=1e-9, atol=1e-9)


def test_vmap_of_evaluation():
    x, mean, var = drawn((3, 4, 2)), drawn((3, 2), seed=1), drawn((3, 2), seed=2) ** 2
    y = cg.func.vmap(lambda x, m, v: F.batch_norm(x, m, v))(cg.tensor(x), cg.tensor(mean), cg.tensor(var))
    np.testing.assert_allclose(y.numpy(), (x - mean[:, None]) / np.sqrt(var[:, None] + 1e-5), rtol=1e-12)


@pytest.mark.parametrize("shape", [(500, 70), (9, 5, 400), (40, 33, 3)])
@pytest.mark.parametrize("name", NORMS)
def test_threads_do_not_change_bits(name, shape):
    if name == "instance_norm" and len(shape) == 2:
        pytest.skip("a single value has no variance")
    before, found = cg.get_num_threads(), []
    shape = shape if name != "group_norm" else (shape[0], shape[1] // 2 * 2, *shape[2:])
    try:
        for threads in (1, 2, 3):
            cg.set_num_threads(threads)
            leaves = [cg.tensor(drawn(s, np.float32, i), requires_grad=True) for i, s in enumerate([shape, shape[1], shape[1]])]
            y = NORMS[name][0](*leaves)
            y.backward(cg.tensor(drawn(shape, np.float32, 5)))
            found.append([y.detach().numpy(), *(x.grad.numpy() for x in leaves)])
    finally:
        cg.set_num_threads(before)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", NORMS)
def test_layouts_and_broadcast_gradients(name):
    function, groups_of = NORMS[name]
    x = drawn((5, 2, 4, 6))
    xs = cg.tensor(x, requires_grad=True)
    y = function(xs.permute(3, 1, 2, 0)[::-1])
    np.testing.assert_allclose(y.detach().numpy(), expected(x.transpose(3, 1, 2, 0)[::-1], [1, 1], [0, 0], y.detach().numpy(), groups_of(2))[0],
                               rtol=1e-11, atol=1e-12)
    y.sum().backward()                       # a gradient that is one number stretched to the shape
    np.testing.assert_allclose(xs.grad.numpy(), np.zeros_like(x), atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(400, 3), (10, 3, 50)])
def test_a_large_common_offset_costs_no_digits(dtype, shape):
    x = (drawn(shape) + 1e4).astype(dtype)
    x[0] += 1000                             # the first sample says little about the rest
    y = F.batch_norm(cg.tensor(x), None, None, training=True)
    np.testing.assert_allclose(y.numpy(), expected(x, np.ones(3), np.zeros(3), x, 0)[0], rtol=1e-4 if dtype == np.float32 else 1e-8, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e25, 1e37])
@pytest.mark.parametrize("shape", [(40, 2), (3, 2, 30)])
def test_float32_squares_that_leave_the_range(scale, shape):
    x = (drawn(shape) * scale).astype(np.float32)
    y = F.batch_norm(cg.tensor(x), None, None, training=True, eps=0.0)
    np.testing.assert_allclose(y.numpy(), expected(x, [1, 1], [0, 0], x, 0, eps=0.0)[0], rtol=2e-5, atol=1e-6)


def test_a_channel_with_nan_is_nan_and_the_others_are_not():
    for shape in [(6, 3), (6, 3, 20)]:
        x = drawn(shape)
        x[2, 1] = np.nan
        y = F.batch_norm(cg.tensor(x), None, None, training=True).numpy()
        assert np.isnan(y[:, 1]).all() and np.isfinite(y[:, [0, 2]]).all()


def test_empty_batches():
    w = cg.ones(3, requires_grad=True)
    mean, var = cg.zeros(3), cg.ones(3)
    y = F.batch_norm(cg.ones((0, 3, 4)), mean, var, w, training=True)
    y.sum().backward()
    assert y.shape == (0, 3, 4) and w.grad.tolist() == mean.tolist() == [0.0, 0.0, 0.0] and var.tolist() == [1.0, 1.0, 1.0]
    assert F.group_norm(cg.ones((0, 4, 20)), 2).shape == (0, 4, 20)


def test_running_moments():
    x = drawn((6, 3, 4), np.float32)
    mean, var = cg.full((3,), 2.0), cg.full((3,), 3.0)
    F.batch_norm(cg.tensor(x), mean, var, training=True, momentum=0.25)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(mean.numpy(), 1.5 + 0.25 * wide.mean((0, 2)), rtol=1e-6)
    np.testing.assert_allclose(var.numpy(), 2.25 + 0.25 * wide.var((0, 2), ddof=1), rtol=1e-6)
    y = F.batch_norm(cg.tensor(x), mean, var)
    np.testing.assert_allclose(y.numpy(), (wide - mean.numpy()[:, None]) / np.sqrt(var.numpy()[:, None] + 1e-5), rtol=1e-4, atol=1e-6)
    mean, var = cg.full((3,), 2.0), cg.full((3,), 3.0)
    F.instance_norm(cg.tensor(x), mean, var, momentum=0.25)
    np.testing.assert_allclose(mean.numpy(), 1.5 + 0.25 * wide.mean((0, 2)), rtol=1e-6)
    np.testing.assert_allclose(var.numpy(), 2.25 + 0.25 * wide.var(2, ddof=1).mean(0), rtol=1e-6)
    np.testing.assert_allclose(F.instance_norm(cg.tensor(x), mean, var, use_input_stats=False).numpy(), F.batch_norm(cg.tensor(x), mean, var).numpy())
    mean = cg.zeros(3)
    F.batch_norm(cg.tensor(x), mean, None, training=True)
    np.testing.assert_allclose(mean.numpy(), 0.1 * wide.mean((0, 2)), rtol=1e-6)


def test_dtypes_promote():
    x = cg.tensor(drawn((4, 3, 20), np.float32), requires_grad=True)
    y = F.batch_norm(x, cg.zeros(3), cg.ones(3), cg.ones(3, dtype=cg.float64), training=True)
    assert y.dtype == cg.float64
    y.sum().backward()
    assert x.grad.dtype == cg.float32


@pytest.mark.parametrize("dtype", [cg.float16, cg.bfloat16])
def test_half_precision_keeps_its_dtype_beside_wider_running_moments(dtype):
    x, w = cg.tensor(drawn((6, 3))).astype(dtype).requires_grad_(True), cg.ones(3, dtype=dtype, requires_grad=True)
    for training in (False, True):
        y = F.batch_norm(x, cg.zeros(3), cg.ones(3), w, training=training)
        y.sum().backward()
        assert y.dtype == x.grad.dtype == w.grad.dtype == dtype


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: F.batch_norm(cg.ones((1, 3)), None, None, training=True), ValueError, r"batch_norm.*more than one.*\(1, 3\)"),
    (lambda: F.batch_norm(cg.ones((4, 3)), None, None), ValueError, "running_mean and running_var are needed with training=False"),
    (lambda: F.batch_norm(cg.ones((4, 3)), cg.ones(2), cg.ones(3)), ValueError, r"running_mean must have shape \(3,\).*\(2,\)"),
    (lambda: F.batch_norm(cg.ones((4, 3)), None, None, cg.ones((3, 1)), training=True), ValueError, r"weight must have shape \(3,\)"),
    (lambda: F.batch_norm(cg.ones(3), None, None, training=True), ValueError, r"\(N, C, \*\)"),
    (lambda: F.batch_norm(cg.ones((4, 3), dtype=cg.int64), None, None, training=True), TypeError, "floating point.*int64"),
    (lambda: F.instance_norm(cg.ones((4, 3, 1))), ValueError, "instance_norm.*more than one"),
    (lambda: F.instance_norm(cg.ones((4, 3, 2)), use_input_stats=False), ValueError, "use_input_stats=False"),
    (lambda: F.group_norm(cg.ones((4, 3, 2)), 2), ValueError, r"group_norm.*num_groups=2.*\(4, 3, 2\)"),
    (lambda: F.group_norm(cg.ones((4, 3, 2)), 0), ValueError, "num_groups=0"),
    (lambda: nn.GroupNorm(2, 3), ValueError, "GroupNorm.*num_channels=3"),
    (lambda: nn.BatchNorm1d(-1), ValueError, "BatchNorm1d.*-1"),
    (lambda: nn.BatchNorm2d(3)(cg.ones((4, 3))), ValueError, r"BatchNorm2d.*4 axes.*\(4, 3\)"),
    (lambda: nn.InstanceNorm2d(3)(cg.ones((2, 4, 5, 5))), ValueError, r"InstanceNorm2d.*num_features=3"),
])
def test_errors_name_the_shapes(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_refused_batch_changes_nothing():
    layer = nn.BatchNorm1d(3)
    with pytest.raises(ValueError):
        layer(cg.ones((1, 3)))
    assert layer.running_mean.tolist() == [0.0] * 3 and layer.running_var.tolist() == [1.0] * 3 and layer.num_batches_tracked.item() == 0
    layer.eval()
    np.testing.assert_allclose(layer(cg.ones((1, 3))).detach().numpy(), np.full((1, 3), 1 / np.sqrt(1 + 1e-5)), rtol=1e-6)


def test_the_batch_norm_layers():
    layer = nn.BatchNorm2d(3, momentum=None)
    assert list(layer.state_dict()) == ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    assert repr(layer) == "BatchNorm2d(3, eps=1e-05, momentum=None, affine=True, track_running_stats=True)"
    batches = [drawn((4, 3, 5, 5), np.float32, seed) for seed in range(3)]
    for x in batches:
        layer(cg.tensor(x))
    assert layer.num_batches_tracked.item() == 3
    np.testing.assert_allclose(layer.running_mean.numpy(), np.mean([x.mean((0, 2, 3)) for x in batches], 0), rtol=1e-5)
    np.testing.assert_allclose(layer.running_var.numpy(), np.mean([x.var((0, 2, 3), ddof=1) for x in batches], 0), rtol=1e-5)
    other = nn.BatchNorm2d(3).eval()
    other.load_state_dict(layer.state_dict())
    np.testing.assert_array_equal(other(cg.tensor(batches[0])).detach().numpy(), layer.eval()(cg.tensor(batches[0])).detach().numpy())
    layer.reset_running_stats()
    assert layer.running_var.tolist() == [1.0] * 3 and layer.num_batches_tracked.item() == 0
    layer = nn.BatchNorm1d(3, affine=False, track_running_stats=False).eval()
    assert not layer.state_dict()
    x = drawn((4, 3), np.float32)
    np.testing.assert_allclose(layer(cg.tensor(x)).numpy(), expected(x, np.ones(3), np.zeros(3), x, 0)[0], rtol=1e-4, atol=1e-6)
    assert nn.BatchNorm3d(2)(cg.randn(3, 2, 4, 4, 4)).shape == (3, 2, 4, 4, 4)
    assert nn.BatchNorm1d(3, dtype=cg.float64).running_mean.dtype == cg.float64


def test_the_instance_and_group_norm_layers():
    x = drawn((2, 3, 4, 5), np.float32)
    layer = nn.InstanceNorm2d(3)
    assert not layer.state_dict()
    assert repr(layer) == "InstanceNorm2d(3, eps=1e-05, momentum=0.1, affine=False, track_running_stats=False)"
    np.testing.assert_allclose(layer(cg.tensor(x[0])).numpy(), layer(cg.tensor(x)).numpy()[0], rtol=1e-6)
    layer = nn.InstanceNorm1d(3, affine=True, track_running_stats=True)
    layer(cg.tensor(x[..., 0]))
    np.testing.assert_allclose(layer.running_mean.numpy(), 0.1 * x[..., 0].mean((0, 2)), rtol=1e-5)
    assert layer.eval()(cg.tensor(x[..., 0])).shape == (2, 3, 4)
    assert nn.InstanceNorm3d(2)(cg.randn(2, 4, 4, 4)).shape == (2, 4, 4, 4)
    layer = nn.GroupNorm(3, 6)
    assert list(layer.state_dict()) == ["weight", "bias"] and repr(layer) == "GroupNorm(3, 6, eps=1e-05, affine=True)"
    x = drawn((2, 6, 4), np.float32)
    np.testing.assert_allclose(layer(cg.tensor(x)).detach().numpy(), expected(x, np.ones(6), np.zeros(6), x, 3)[0], rtol=1e-4, atol=1e-6)
    assert nn.GroupNorm(3, 6, affine=False).weight is None


@pytest.mark.parametrize("layer", [nn.BatchNorm2d(4, dtype=cg.float64), nn.GroupNorm(2, 4, dtype=cg.float64), nn.InstanceNorm2d(4, affine=True, dtype=cg.float64),
                                   nn.BatchNorm2d(4, dtype=cg.float64).eval()], ids=repr)
def test_what_follows_a_norm_may_write_over_its_result(layer):
    """As ResNets do: ReLU(inplace=True), and ``out += identity``; the result itself is not kept."""
    x, more = drawn((3, 4, 2, 2)), drawn((3, 4, 2, 2), seed=1)
    gradients = []
    for in_place in (False, True):
        leaf = cg.tensor(x, requires_grad=True)
        y = layer(leaf)
        if in_place:
            assert sum(t is not None and t.shape == leaf.shape for t in y.grad_fn.saved_tensors) <= 1
            y += cg.tensor(more)
            y = nn.ReLU(inplace=True)(y)
        else:
            y = nn.ReLU()(y + cg.tensor(more))
        (y * y).sum().backward()
        gradients.append([leaf.grad.numpy(), layer.weight.grad.numpy().copy()])
        layer.zero_grad()
    np.testing.assert_array_equal(gradients[0][0], gradients[1][0])
    np.testing.assert_array_equal(gradients[0][1], gradients[1][1])
