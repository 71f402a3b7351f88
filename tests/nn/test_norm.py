"""layer_norm and rms_norm against their formulas in float64."""
import numpy as np
import pytest

import cgrad as cg
import cgrad.nn.functional as F
from cgrad import nn


def normalized(x, n_axes=1, eps=1e-5, centred=True):
    x = np.asarray(x, np.float64)
    axes = tuple(range(x.ndim - n_axes, x.ndim))
    if centred:
        x = x - x.mean(axes, keepdims=True)
    return x / np.sqrt((x * x).mean(axes, keepdims=True) + eps)


def gradient(g, x, w, n_axes=1, eps=1e-5, centred=True):
    """The gradient of the input, from the derivative of the formula."""
    x, v = np.asarray(x, np.float64), np.asarray(g, np.float64) * w
    axes = tuple(range(x.ndim - n_axes, x.ndim))
    y = normalized(x, n_axes, eps, centred)
    middle = x.mean(axes, keepdims=True) if centred else 0
    deviation = np.sqrt(((x - middle) ** 2).mean(axes, keepdims=True) + eps)
    return (v - (v.mean(axes, keepdims=True) if centred else 0) - y * (v * y).mean(axes, keepdims=True)) / deviation


def drawn(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(1.0, 2.0, shape).astype(dtype)


NORMS = {"layer_norm": (F.layer_norm, True), "rms_norm": (lambda x, shape, w=None, b=None: F.rms_norm(x, shape, w, 1e-5), False)}


# 33 and 1100 leave a rest behind the lanes and the blocks of the kernels; 200 rows make several chunks of sums.
@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (9, 33), (2, 1100), (200, 96), (2, 3, 4, 6)])
def test_values_and_all_gradients(name, dtype, shape):
    function, centred = NORMS[name]
    n_axes = 2 if len(shape) > 2 else 1
    x, g = drawn(shape, dtype), drawn(shape, dtype, 1)
    w, b = drawn(shape[-n_axes:], dtype, 2), drawn(shape[-n_axes:], dtype, 3)
    xs, ws, bs = (cg.tensor(a, requires_grad=True) for a in (x, w, b))
    y = function(xs, shape[-n_axes:], ws, bs)
    y.backward(cg.tensor(g))
    close = dict(rtol=1e-4, atol=2e-5) if dtype == np.float32 else dict(rtol=1e-11, atol=1e-11)
    rows = normalized(x, n_axes, centred=centred)
    np.testing.assert_allclose(y.detach().numpy(), rows * w + (b if centred else 0), **close)
    np.testing.assert_allclose(xs.grad.numpy(), gradient(g, x, w, n_axes, centred=centred), **close)
    leading = tuple(range(x.ndim - n_axes))
    np.testing.assert_allclose(ws.grad.numpy(), (g * rows).sum(leading), **close)
    if centred:
        np.testing.assert_allclose(bs.grad.numpy(), g.astype(np.float64).sum(leading), **close)
    assert y.dtype == xs.grad.dtype == ws.grad.dtype == dtype


@pytest.mark.parametrize("name", NORMS)
def test_the_fused_backward_is_the_rule(name):
    """One pass in first order; under create_graph the rule, which can be differentiated again."""
    function, centred = NORMS[name]
    leaves = [cg.tensor(drawn(shape, seed=i), requires_grad=True) for i, shape in enumerate([(6, 5), (5,), (5,)][:3 if centred else 2])]
    g = cg.tensor(drawn((6, 5), seed=7))
    fused = cg.autograd.grad(function(leaves[0], 5, *leaves[1:]), leaves, g)
    rule = cg.autograd.grad(function(leaves[0], 5, *leaves[1:]), leaves, g, create_graph=True)
    for a, b in zip(fused, rule, strict=True):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-12, atol=1e-13)
    cg.autograd.gradgradcheck(lambda x, *rest: function(x, 5, *rest), leaves)
    cg.autograd.gradcheck(lambda x, *rest: function(x, 5, *rest), leaves, check_forward_ad=True)


@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (0, 2), (1, 2)])
def test_only_the_wanted_gradients_are_computed(wanted):
    arrays = [drawn((4, 6)), drawn((6,), seed=1), drawn((6,), seed=2)]
    leaves = [cg.tensor(a, requires_grad=i in wanted) for i, a in enumerate(arrays)]
    F.layer_norm(leaves[0], 6, leaves[1], leaves[2]).backward(cg.tensor(drawn((4, 6), seed=3)))
    everything = [cg.tensor(a, requires_grad=True) for a in arrays]
    F.layer_norm(everything[0], 6, everything[1], everything[2]).backward(cg.tensor(drawn((4, 6), seed=3)))
    for i in range(3):
        if i in wanted:
            np.testing.assert_array_equal(leaves[i].grad.numpy(), everything[i].grad.numpy())
        else:
            assert leaves[i].grad is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_a_large_common_offset_costs_no_digits(dtype, offset):
    x = (drawn((3, 700), np.float64) + offset).astype(dtype)
    np.testing.assert_allclose(F.layer_norm(cg.tensor(x), 700).numpy(), normalized(x), rtol=1e-4 if dtype == np.float32 else 1e-9,
                               atol=2e-6 if dtype == np.float32 else 1e-10)


@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e25, 1e37])
def test_float32_squares_that_leave_the_range(scale):
    x = (drawn((2, 40)) * scale).astype(np.float32)
    np.testing.assert_allclose(F.layer_norm(cg.tensor(x), 40, eps=0.0).numpy(), normalized(x, eps=0.0), rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(F.rms_norm(cg.tensor(x), 40, eps=0.0).numpy(), normalized(x, eps=0.0, centred=False), rtol=2e-5)


def test_rows_with_nan_or_infinity_are_nan_and_others_are_not():
    x = drawn((4, 50))
    x[1, 3], x[2, 40] = np.nan, np.inf
    y = F.layer_norm(cg.tensor(x), 50).numpy()
    assert np.isnan(y[1]).all() and np.isnan(y[2]).all()
    np.testing.assert_allclose(y[[0, 3]], normalized(x[[0, 3]]), rtol=1e-12)
    np.testing.assert_array_equal(F.layer_norm(cg.full((2, 5), 3.0), 5).numpy(), np.zeros((2, 5)))


def test_layouts_and_broadcast_gradients():
    x = drawn((5, 4, 6))
    xs = cg.tensor(x, requires_grad=True)
    y = F.layer_norm(xs.permute(2, 1, 0)[::-1], (4, 5))
    np.testing.assert_allclose(y.detach().numpy(), normalized(x.transpose(2, 1, 0)[::-1], 2), rtol=1e-11, atol=1e-12)
    y.sum().backward()                       # a gradient that is one number stretched to the shape
    np.testing.assert_allclose(xs.grad.numpy(), np.zeros_like(x), atol=1e-12)


def test_empty_batches_and_rows():
    w, b = cg.ones(3, requires_grad=True), cg.ones(3, requires_grad=True)
    F.layer_norm(cg.ones((0, 3)), 3, w, b).sum().backward()
    assert w.grad.tolist() == b.grad.tolist() == [0.0, 0.0, 0.0]
    assert F.layer_norm(cg.ones((2, 0)), 0).shape == (2, 0)
    assert F.rms_norm(cg.ones((2, 0)), (0,)).shape == (2, 0)


def test_threads_do_not_change_bits():
    before = cg.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            cg.set_num_threads(threads)
            leaves = [cg.tensor(drawn(shape, np.float32, i), requires_grad=True) for i, shape in enumerate([(3000, 130), (130,), (130,)])]
            y = F.layer_norm(leaves[0], 130, leaves[1], leaves[2])
            y.backward(cg.tensor(drawn((3000, 130), np.float32, 5)))
            found.append([y.detach().numpy(), *(x.grad.numpy() for x in leaves)])
    finally:
        cg.set_num_threads(before)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_dtypes_promote():
    x = cg.tensor(drawn((2, 3), np.float32), requires_grad=True)
    y = F.layer_norm(x, 3, cg.ones(3, dtype=cg.float64))
    assert y.dtype == cg.float64
    y.backward(cg.ones((2, 3), dtype=cg.float64))
    assert x.grad.dtype == cg.float32
    assert F.rms_norm(x, 3).dtype == cg.float32
    eps = np.finfo(np.float32).eps
    np.testing.assert_allclose(F.rms_norm(x, 3).detach().numpy(), normalized(x.detach().numpy(), eps=eps, centred=False), rtol=1e-6)


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: F.layer_norm(cg.ones((2, 3)), 4), ValueError, r"layer_norm.*\(4,\).*\(2, 3\)"),
    (lambda: F.layer_norm(cg.ones((2, 3)), ()), ValueError, "at least one axis"),
    (lambda: F.layer_norm(cg.tensor(1.0), (1,)), ValueError, r"layer_norm.*shape \(\)"),
    (lambda: F.layer_norm(cg.ones((2, 3)), 3, cg.ones(1)), ValueError, r"layer_norm.*\(3,\).*\(1,\)"),
    (lambda: F.layer_norm(cg.ones((2, 3)), 3, None, cg.ones((1, 3))), ValueError, r"\(1, 3\)"),
    (lambda: F.layer_norm(cg.ones((2, 3), dtype=cg.int64), 3), TypeError, "floating point.*int64"),
    (lambda: F.rms_norm(cg.ones((2, 3)), (3, 2)), ValueError, "rms_norm"),
    (lambda: F.rms_norm(cg.ones((2, 3)), 3, cg.ones(2)), ValueError, "rms_norm"),
    (lambda: nn.LayerNorm(-1), ValueError, "LayerNorm.*-1"),
    (lambda: nn.RMSNorm((2, 1.5)), ValueError, "RMSNorm"),
])
def test_errors_name_the_shapes(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_the_layers():
    layer = nn.LayerNorm((2, 3))
    assert list(layer.state_dict()) == ["weight", "bias"]
    assert repr(layer) == "LayerNorm((2, 3), eps=1e-05, elementwise_affine=True)"
    x = drawn((4, 2, 3), np.float32)
    np.testing.assert_allclose(layer(cg.tensor(x)).detach().numpy(), normalized(x, 2), rtol=1e-4, atol=1e-5)
    assert list(nn.LayerNorm(3, bias=False).state_dict()) == ["weight"]
    assert nn.LayerNorm(3, elementwise_affine=False).bias is None
    assert not nn.LayerNorm(3, elementwise_affine=False).state_dict()
    assert nn.LayerNorm(3, dtype=cg.float64).weight.dtype == cg.float64
    layer = nn.RMSNorm(3, eps=1e-6)
    assert list(layer.state_dict()) == ["weight"] and layer.weight.tolist() == [1.0, 1.0, 1.0]
    assert repr(layer) == "RMSNorm((3,), eps=1e-06, elementwise_affine=True)"
    assert nn.RMSNorm(3, elementwise_affine=False).weight is None


@pytest.mark.parametrize("axes", [(0, None, None), (None, 0, None), (0, 0, 0), (None, None, 1), (1, None, 0)])
def test_a_batch_of_calls(axes):
    arrays = [drawn((4, 5)), drawn((5,), seed=1), drawn((5,), seed=2)]
    arrays = [a if axis is None else np.stack([a, a + 1, a * 2], axis) for a, axis in zip(arrays, axes, strict=True)]
    x, w, b = (cg.tensor(a) for a in arrays)
    want = [[a if axis is None else np.take(a, k, axis) for a, axis in zip(arrays, axes, strict=True)] for k in range(3)]
    y = cg.func.vmap(lambda x, w, b: F.layer_norm(x, 5, w, b), in_dims=axes)(x, w, b)
    np.testing.assert_allclose(y.numpy(), [normalized(x) * w + b for x, w, b in want], rtol=1e-11, atol=1e-12)
    y = cg.func.vmap(lambda x, w: F.rms_norm(x, 5, w, 1e-5), in_dims=axes[:2])(x, w) if axes[:2] != (None, None) else None
    if y is not None:
        np.testing.assert_allclose(y.numpy(), [normalized(x, centred=False) * w for x, w, _ in want], rtol=1e-11, atol=1e-12)
    g = cg.func.vmap(cg.func.grad(lambda x, w, b: (F.layer_norm(x, 5, w, b) ** 3).sum(), argnums=(0, 1, 2)), in_dims=axes)(x, w, b)
    for k, (x, w, b) in enumerate(want):
        leaves = [cg.tensor(a, requires_grad=True) for a in (x, w, b)]
        (F.layer_norm(leaves[0], 5, *leaves[1:]) ** 3).sum().backward()
        for found, leaf in zip(g, leaves, strict=True):
            np.testing.assert_allclose(found[k].numpy(), leaf.grad.numpy(), rtol=1e-10, atol=1e-10)
