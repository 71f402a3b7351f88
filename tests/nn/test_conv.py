"""Convolutions against their definition: sums over explicit windows, written with NumPy in float64."""
import itertools
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy import signal

import cgrad as cg
import cgrad.nn.functional as F
from cgrad import nn

CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSE = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def drawn(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def windows(x, kernel, stride, padding, dilation):
    """(N, C, *places, *kernel): what the kernel meets at each place."""
    n = len(kernel)
    x = np.pad(np.asarray(x, np.float64), [(0, 0), (0, 0), *[(p, p) for p in padding]])
    span = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
    view = np.lib.stride_tricks.sliding_window_view(x, span, tuple(range(2, 2 + n)))
    return view[(slice(None), slice(None), *[slice(None, None, s) for s in stride], *[slice(None, None, d) for d in dilation])]


def by_group(x, groups):
    """Channels (axis 1) as (groups, channels of each)."""
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])


def convolved(x, w, stride, padding, dilation, groups):
    axes = "pqr"[:w.ndim - 2], "ijk"[:w.ndim - 2]
    view = by_group(windows(x, w.shape[2:], stride, padding, dilation), groups)
    w = np.asarray(w, np.float64).reshape(groups, w.shape[0] // groups, *w.shape[1:])
    y = np.einsum(f"ngc{axes[0]}{axes[1]},gfc{axes[1]}->ngf{axes[0]}", view, w)
    return y.reshape(y.shape[0], y.shape[1] * y.shape[2], *y.shape[3:])


def weight_gradient(g, x, kernel, stride, padding, dilation, groups):
    axes = "pqr"[:len(kernel)], "ijk"[:len(kernel)]
    places = (slice(None), slice(None), *map(slice, g.shape[2:]))       # an output padding makes room for more windows than there are
    view = by_group(windows(x, kernel, stride, padding, dilation)[places], groups)
    w = np.einsum(f"ngf{axes[0]},ngc{axes[0]}{axes[1]}->gfc{axes[1]}", by_group(np.asarray(g, np.float64), groups), view)
    return w.reshape(w.shape[0] * w.shape[1], *w.shape[2:])


def scattered(y, w, size, stride, padding, dilation, groups):
    """The transposed convolution: each element of y adds its filter, scaled, to an image of the given size."""
    n = w.ndim - 2
    y = by_group(np.asarray(y, np.float64), groups)
    w = np.asarray(w, np.float64).reshape(groups, w.shape[0] // groups, *w.shape[1:])
    room = [max(s + 2 * p, (q - 1) * t + d * (k - 1) + 1) for s, p, q, t, d, k in zip(size, padding, y.shape[3:], stride, dilation, w.shape[3:])]
    x = np.zeros((y.shape[0], groups, w.shape[2], *room))
    for tap in itertools.product(*map(range, w.shape[3:])):
        place = [slice(t * d, t * d + (q - 1) * s + 1, s) for t, d, q, s in zip(tap, dilation, y.shape[3:], stride)]
        x[(..., *place)] += np.einsum(f"ngf{'pqr'[:n]},gfc->ngc{'pqr'[:n]}", y, w[(..., *tap)])
    x = x[(..., *[slice(p, p + s) for p, s in zip(padding, size)])]
    return x.reshape(x.shape[0], x.shape[1] * x.shape[2], *x.shape[3:])


def close(got, want, dtype):
    """Up to the rounding of sums as long as these."""
    want = np.asarray(want)
    assert tuple(got.shape) == want.shape and got.dtype == dtype
    tolerance = 3e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=tolerance, atol=tolerance * max(1.0, np.abs(want).max(initial=0)))


# N, channels, filters, size, kernel, stride, padding, dilation, groups
CASES = {
    "one element": (1, 1, 1, (1,), (1,), (1,), (0,), (1,), 1),
    "signals": (2, 3, 4, (11,), (3,), (1,), (0,), (1,), 1),
    "signals, all options": (2, 4, 6, (20,), (4,), (3,), (2,), (2,), 2),
    "long kernel": (1, 2, 3, (900,), (300,), (2,), (7,), (1,), 1),
    "padding beyond the kernel": (2, 1, 2, (4,), (2,), (1,), (5,), (1,), 1),
    "elements that no window meets": (1, 2, 2, (10,), (2,), (4,), (0,), (1,), 1),
    "images": (3, 3, 5, (9, 8), (3, 2), (1, 1), (0, 0), (1, 1), 1),
    "images, all options": (2, 4, 4, (13, 11), (3, 2), (2, 3), (1, 2), (2, 1), 2),
    "steps beyond the image": (2, 2, 3, (7, 7), (3, 3), (5, 4), (1, 1), (1, 3), 1),
    "points": (2, 5, 7, (6, 9), (1, 1), (1, 1), (0, 0), (1, 1), 1),
    "points, strided": (2, 5, 7, (6, 9), (1, 1), (2, 2), (0, 0), (1, 1), 1),
    "rows of a column": (2, 3, 4, (12, 30), (3, 1), (1, 1), (1, 0), (2, 1), 1),
    "depthwise": (2, 6, 6, (8, 9), (3, 3), (1, 1), (1, 1), (1, 1), 6),
    "depthwise, two filters each": (2, 3, 6, (8, 40), (3, 3), (2, 1), (1, 1), (1, 1), 3),
    "many images in a tile": (19, 3, 5, (5, 5), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "tiles that end inside a row": (2, 2, 9, (17, 37), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "many channels": (1, 150, 3, (5, 6), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "many filters": (2, 3, 300, (5, 6), (2, 2), (1, 1), (0, 0), (1, 1), 1),
    "many filters, transposed": (1, 300, 2, (4, 4), (2, 2), (1, 1), (0, 0), (1, 1), 1),
    "no images": (0, 3, 4, (6, 6), (3, 3), (1, 1), (0, 0), (1, 1), 1),
    "no channels": (2, 0, 4, (6, 6), (3, 3), (1, 1), (0, 0), (1, 1), 1),
    "volumes": (2, 2, 3, (5, 6, 4), (2, 3, 2), (1, 1, 1), (0, 0, 0), (1, 1, 1), 1),
    "volumes, all options": (2, 4, 4, (7, 6, 8), (3, 2, 2), (2, 1, 3), (1, 1, 2), (1, 2, 2), 2),
    "frames": (2, 2, 3, (5, 8, 8), (3, 1, 1), (1, 1, 1), (1, 0, 0), (1, 1, 1), 1),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES)
def test_values_and_all_gradients(case, dtype):
    images, channels, filters, size, kernel, *options = CASES[case]
    x, w, b = drawn((images, channels, *size), dtype), drawn((filters, channels // options[-1], *kernel), dtype, 1), drawn(filters, dtype, 2)
    want = convolved(x, w, *options)
    g = drawn(want.shape, dtype, 3)
    leaves = [cg.tensor(a, requires_grad=True) for a in (x, w, b)]
    y = CONV[len(kernel)](*leaves, *options)
    y.backward(cg.tensor(g))
    close(y, want + b.reshape(-1, *(1,) * len(kernel)), dtype)
    close(leaves[0].grad, scattered(g, w, size, *options), dtype)
    close(leaves[1].grad, weight_gradient(g, x, kernel, *options), dtype)
    close(leaves[2].grad, g.astype(np.float64).sum((0, *range(2, g.ndim))), dtype)
    close(CONV[len(kernel)](cg.tensor(x), cg.tensor(w), None, *options), want, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES)
def test_transposed_values_and_all_gradients(case, dtype):
    images, filters, channels, size, kernel, stride, padding, dilation, groups = CASES[case]
    padding = tuple([min(p, d * (k - 1) // 2) for p, d, k in zip(padding, dilation, kernel)])      # so that something is left
    extra = tuple([max(s, d) - 1 for s, d in zip(stride, dilation)])
    options = stride, padding, dilation, groups
    out = [(s - 1) * t - 2 * p + d * (k - 1) + e + 1 for s, t, p, d, k, e in zip(size, stride, padding, dilation, kernel, extra)]
    x, w, b = drawn((images, filters, *size), dtype), drawn((filters, channels // groups, *kernel), dtype, 1), drawn(channels, dtype, 2)
    want = scattered(x, w, out, *options)
    g = drawn(want.shape, dtype, 3)
    leaves = [cg.tensor(a, requires_grad=True) for a in (x, w, b)]
    y = TRANSPOSE[len(kernel)](*leaves, stride, padding, extra, groups, dilation)
    y.backward(cg.tensor(g))
    close(y, want + b.reshape(-1, *(1,) * len(kernel)), dtype)
    close(leaves[0].grad, convolved(g, w, *options)[(..., *map(slice, size))], dtype)
    close(leaves[1].grad, weight_gradient(x, g, kernel, *options), dtype)
    close(leaves[2].grad, g.astype(np.float64).sum((0, *range(2, g.ndim))), dtype)


def test_the_same_as_scipy():
    x, w = drawn((17, 23)), drawn((4, 3), seed=1)
    got = F.conv2d(cg.tensor(x[None]), cg.tensor(w[None, None]))
    np.testing.assert_allclose(got[0].numpy(), signal.correlate2d(x, w, "valid"), rtol=1e-12, atol=1e-12)
    got = F.conv_transpose2d(cg.tensor(x[None]), cg.tensor(w[None, None]))
    np.testing.assert_allclose(got[0].numpy(), signal.convolve2d(x, w, "full"), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("kernel", "dilation"), [((3, 3), 1), ((4, 2), 1), ((2, 3), (3, 2)), ((1, 5), 1)])
def test_same_padding_keeps_the_size_and_valid_adds_none(kernel, dilation):
    x, w = drawn((2, 3, 9, 10)), drawn((4, 3, *kernel), seed=1)
    dilations = (dilation, dilation) if isinstance(dilation, int) else dilation
    totals = [d * (k - 1) for d, k in zip(dilations, kernel)]
    framed = np.pad(x, [(0, 0), (0, 0), *[(t // 2, t - t // 2) for t in totals]])
    got = F.conv2d(cg.tensor(x), cg.tensor(w), padding="same", dilation=dilation)
    close(got, convolved(framed, w, (1, 1), (0, 0), dilations, 1), np.float64)
    got = F.conv2d(cg.tensor(x), cg.tensor(w), padding="valid", dilation=dilation)
    close(got, convolved(x, w, (1, 1), (0, 0), dilations, 1), np.float64)
    cg.autograd.gradcheck(lambda x, w: F.conv2d(x, w, padding="same", dilation=dilation), [cg.tensor(a, requires_grad=True) for a in (x, w)],
                          fast_mode=True)


LAYOUTS = {
    "channels last": lambda a: np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 1, -1)), -1, 1),
    "backwards": lambda a: np.ascontiguousarray(a[..., ::-1, ::-1])[..., ::-1, ::-1],
    "every other": lambda a: np.repeat(np.repeat(a, 2, 0), 2, -1)[::2, ..., ::2],
    "Fortran": np.asfortranarray,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_gives_the_same_numbers(layout):
    lay = LAYOUTS[layout]
    x, w, b, g = drawn((2, 4, 6, 7)), drawn((6, 2, 3, 2), seed=1), drawn(6, seed=2), drawn((2, 6, 6, 8), seed=3)
    strided = np.repeat(b, 3)[::3]

    def derivatives(x, w, b, g):
        leaves = [cg.from_numpy(a).requires_grad_() for a in (x, w, b)]
        y = F.conv2d(*leaves, padding=1, groups=2)
        return [y.detach(), *cg.autograd.grad(y, leaves, cg.from_numpy(g))]

    for plain, other in zip(derivatives(x, w, b, g), derivatives(lay(x), lay(w), strided, lay(g)), strict=True):
        np.testing.assert_allclose(plain.numpy(), other.numpy(), rtol=1e-12, atol=1e-13)
    x = cg.tensor(drawn((1, 1, 5, 6)))                         # without memory of its own for most elements
    np.testing.assert_array_equal(F.conv2d(x.expand(3, 4, 5, 6), cg.tensor(drawn((2, 4, 2, 2)))).numpy(),
                                  F.conv2d(cg.tensor(np.broadcast_to(x.numpy(), (3, 4, 5, 6)).copy()), cg.tensor(drawn((2, 4, 2, 2)))).numpy())


SMALL = [
    (lambda x, w, b: F.conv1d(x, w, b, 2, 1, 2, 2), (2, 4, 7), (4, 2, 2), (4,)),
    (lambda x, w, b: F.conv2d(x, w, b, (2, 1), (0, 2), (1, 2)), (2, 2, 4, 3), (3, 2, 2, 2), (3,)),
    (lambda x, w, b: F.conv3d(x, w, b, 1, 1), (1, 2, 2, 3, 2), (2, 2, 2, 2, 3), (2,)),
    (lambda x, w, b: F.conv2d(x, w, b), (2, 3, 3), (2, 2, 2, 2), (2,)),
    (lambda x, w, b: F.conv_transpose1d(x, w, b, 2, 1, 1, 2), (2, 4, 4), (4, 2, 3), (4,)),
    (lambda x, w, b: F.conv_transpose2d(x, w, b, (2, 1), (0, 1), dilation=(1, 2)), (2, 2, 3, 2), (2, 3, 2, 2), (3,)),
]


@pytest.mark.parametrize(("function", "x", "w", "b"), SMALL)
def test_derivatives_of_every_order_and_direction(function, x, w, b):
    leaves = [cg.tensor(drawn(shape, seed=i), requires_grad=True) for i, shape in enumerate((x, w, b))]
    assert cg.autograd.gradcheck(function, leaves, check_forward_ad=True)
    assert cg.autograd.gradgradcheck(lambda *t: function(*t) ** 2, leaves, check_fwd_over_rev=True)


OPTIONS = {"stride": (2, 1), "padding": 1, "dilation": (1, 2), "groups": 2}


@pytest.mark.parametrize("batched", [b for b in itertools.product([True, False], repeat=3) if any(b)])
@pytest.mark.parametrize(("function", "weight"), [(F.conv2d, (4, 2, 2, 2)), (F.conv_transpose2d, (4, 3, 2, 2))])
def test_vmap_is_a_loop(function, weight, batched):
    n_results = 4 if function is F.conv2d else 6
    shapes = (2, 4, 5, 4), weight, (n_results,)
    operands = [cg.tensor(drawn((3, *shape) if b else shape, seed=i)) for i, (shape, b) in enumerate(zip(shapes, batched))]

    def loss(x, w, b):
        return (function(x, w, b, **OPTIONS) ** 2).sum()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        axes = tuple([0 if b else None for b in batched])
        got = cg.func.vmap(lambda *t: function(*t, **OPTIONS), axes)(*operands)
        slopes = cg.func.vmap(cg.func.grad(loss, argnums=(0, 1, 2)), axes)(*operands)
    for i in range(3):
        one = [t[i] if b else t for t, b in zip(operands, batched)]
        np.testing.assert_allclose(got[i].numpy(), function(*one, **OPTIONS).numpy(), rtol=1e-12, atol=1e-12)
        for slope, want in zip(slopes, cg.func.grad(loss, argnums=(0, 1, 2))(*one), strict=True):
            np.testing.assert_allclose(slope[i].numpy(), want.numpy(), rtol=1e-11, atol=1e-11)


def test_vmap_of_calls_without_a_batch_axis():
    x, w = cg.tensor(drawn((3, 2, 6))), cg.tensor(drawn((4, 2, 3), seed=1))
    np.testing.assert_allclose(cg.func.vmap(F.conv1d, (0, None))(x, w).numpy(), F.conv1d(x, w).numpy(), rtol=1e-12, atol=1e-12)


X, W = np.ones((1, 2, 5, 5)), np.ones((4, 2, 3, 3))
ERRORS = [
    (lambda: F.conv2d(cg.ones((2, 5)), cg.tensor(W)), r"conv2d: the input must have 4 axes .* or 3 .*\(2, 5\)"),
    (lambda: F.conv2d(cg.tensor(X), cg.ones((4, 2, 3))), r"conv2d: the weight must have shape \(out_channels, in_channels / groups, height, width\), got \(4, 2, 3\)"),
    (lambda: F.conv2d(cg.tensor(X), cg.ones((4, 3, 3, 3))), r"conv2d: a weight of shape \(4, 3, 3, 3\).* takes 3 channels, the input has 2"),
    (lambda: F.conv2d(cg.tensor(X), cg.ones((5, 1, 3, 3)), groups=2), "conv2d: .*5 filters, which 2 groups do not divide"),
    (lambda: F.conv2d(cg.tensor(X), cg.tensor(W), groups=0), "conv2d: groups must be at least 1"),
    (lambda: F.conv2d(cg.tensor(X), cg.tensor(W), cg.ones(5)), r"conv2d: the bias must have shape \(4,\).*got \(5,\)"),
    (lambda: F.conv2d(cg.tensor(X), cg.tensor(W), stride=0), "conv2d: stride must be at least 1 .*got 0"),
    (lambda: F.conv2d(cg.tensor(X), cg.tensor(W), stride=(1, 2, 3)), r"conv2d: stride must be an integer or 2 integers.*\(1, 2, 3\)"),
    (lambda: F.conv2d(cg.tensor(X), cg.tensor(W), dilation=(1, 0)), "conv2d: dilation must be at least 1"),
    (lambda: F.conv2d(cg.tensor(X), cg.tensor(W), padding=-1), "conv2d: padding must be at least 0"),
    (lambda: F.conv2d(cg.tensor(X), cg.tensor(W), padding=2**40), "conv2d: padding must be at least 0 .and below 2.*31"),
    (lambda: F.conv2d(cg.tensor(X), cg.tensor(W), padding="full"), "conv2d: padding must be .same., .valid. or numbers, got 'full'"),
    (lambda: F.conv2d(cg.tensor(X), cg.tensor(W), stride=2, padding="same"), "conv2d: padding=.same. works with stride 1 only"),
    (lambda: F.conv2d(cg.tensor(X), cg.tensor(W), dilation=3), r"conv2d: the kernel does not fit into the input: 7 elements .of 3, dilation 3. against 5 "),
    (lambda: F.conv1d(cg.ones((1, 2, 4)), cg.ones((3, 2, 0))), "conv1d: the kernel needs at least one element"),
    (lambda: F.conv1d(cg.ones((1, 2, 0)), cg.ones((3, 2, 1)), padding=3), "conv1d: the kernel does not fit"),
    (lambda: F.conv_transpose2d(cg.tensor(X), cg.tensor(W)), r"conv_transpose2d: .*\(in_channels, out_channels / groups, height, width\).* takes 4 channels, the input has 2"),
    (lambda: F.conv_transpose2d(cg.tensor(X), cg.ones((2, 4, 3, 3)), output_padding=1), "conv_transpose2d: output_padding must be smaller than stride or dilation"),
    (lambda: F.conv_transpose2d(cg.tensor(X), cg.ones((2, 4, 3, 3)), padding=4), "conv_transpose2d: nothing is left of axis 2 .-1 elements."),
    (lambda: nn.Conv2d(3, 4, 3, groups=2), "Conv2d: in_channels=3 cannot be divided into 2 groups"),
    (lambda: nn.Conv2d(0, 4, 3), "Conv2d: in_channels must be an int of at least 1, got 0"),
    (lambda: nn.Conv2d(3, 4, (3, 3, 3)), "Conv2d: kernel_size must be an integer or 2 integers"),
    (lambda: nn.Conv1d(3, 4, 3, padding_mode="mirror"), "Conv1d: padding_mode must be .zeros. or .reflect. or .replicate. or .circular., got .mirror."),
    (lambda: nn.Conv1d(3, 4, 3, padding="full"), "Conv1d: padding must be .same., .valid. or numbers"),
    (lambda: nn.Conv1d(3, 4, 3, 2, "same"), "Conv1d: padding=.same. works with stride 1 only"),
    (lambda: nn.ConvTranspose2d(3, 4, 3, padding_mode="reflect"), "ConvTranspose2d: padding_mode must be .zeros., got .reflect."),
    (lambda: nn.ConvTranspose1d(3, 4, 3, stride=2)(cg.ones((1, 3, 4)), output_size=(11,)), r"ConvTranspose1d: output_size .* from \[9\] to \[10\]"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_errors_name_the_function_and_what_would_work(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_operands_must_be_floating_point():
    for x, w in ((np.ones((1, 2, 5, 5), int), W), (X, W.astype(bool))):
        with pytest.raises(TypeError, match="conv2d: input and weight must be floating point, got"):
            F.conv2d(cg.tensor(x), cg.tensor(w))
    with pytest.raises(TypeError, match="conv2d: stride must be an integer, got 1.5"):
        F.conv2d(cg.tensor(X), cg.tensor(W), stride=1.5)
    assert F.conv2d(cg.tensor(X), cg.tensor(W, dtype=cg.float32)).dtype == cg.float64


def test_the_operations_themselves_refuse_what_does_not_belong_together():
    """They are reached without the checks of the functions, through their Op classes."""
    from cgrad.ops.conv import _conv, _conv_transpose, _conv_weight
    x, w = cg.tensor(X), cg.tensor(W)
    good = ((3, 3), (1, 1), (0, 0), (1, 1), 1)
    assert _conv(x, w, None, *good).shape == (1, 4, 3, 3)
    for bad in [((3,), *good[1:]), ((-1, 3), *good[1:]), (good[0], (0, 1), *good[2:]), (*good[:3], (1, 0), 1), (*good[:4], 3), (*good[:4], 0),
                ((2**40, 1), *good[1:]), (*good[:2], (2**33, 0), *good[3:])]:
        for call in (lambda: _conv(x, w, None, *bad), lambda: _conv_transpose(_conv(x, w, None, *good), w, None, *bad),
                     lambda: _conv_weight(_conv(x, w, None, *good), x, *bad)):
            with pytest.raises((ValueError, OverflowError)):
                call()
    for call in (lambda: _conv(x[0], w, None, *good), lambda: _conv(x, w, cg.ones(3), *good), lambda: _conv_weight(x, x[:0], *good),
                 lambda: _conv_transpose(x, w, None, *good)):
        with pytest.raises(ValueError, match="do not fit"):
            call()


LAYERS = {"Conv1d": (nn.Conv1d, 1), "Conv2d": (nn.Conv2d, 2), "Conv3d": (nn.Conv3d, 3),
          "ConvTranspose1d": (nn.ConvTranspose1d, 1), "ConvTranspose2d": (nn.ConvTranspose2d, 2), "ConvTranspose3d": (nn.ConvTranspose3d, 3)}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_its_function_with_parameters(name):
    layer, n = LAYERS[name]
    function = (TRANSPOSE if "Transpose" in name else CONV)[n]
    net = layer(4, 6, 3, stride=2, padding=1, groups=2)
    assert list(net.state_dict()) == ["weight", "bias"] and net.bias.shape == (6,)
    assert net.weight.shape == ((4, 3) if "Transpose" in name else (6, 2)) + (3,) * n
    bound = (net.weight.shape[1] * 3**n) ** -0.5
    assert 0.7 * bound < float(abs(net.weight).max()) <= bound and float(abs(net.bias).max()) <= bound
    x = cg.tensor(drawn((2, 4, *(7,) * n), np.float32))
    np.testing.assert_array_equal(net(x).detach().numpy(), function(x, net.weight, net.bias, stride=2, padding=1, groups=2).detach().numpy())
    np.testing.assert_array_equal(net(x[0]).detach().numpy(), net(x).detach()[0].numpy())
    bare = layer(4, 6, 3, bias=False, dtype=cg.float64)
    assert bare.bias is None and list(bare.state_dict()) == ["weight"] and bare.weight.dtype == cg.float64
    bare.load_state_dict({"weight": cg.ones(bare.weight.shape)})


@pytest.mark.parametrize(("mode", "numpy_mode"), [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")])
@pytest.mark.parametrize("padding", [(2, 1), "same", "valid"])
def test_padding_modes(mode, numpy_mode, padding):
    net = nn.Conv2d(2, 3, (4, 3), padding=padding, padding_mode=mode, dtype=cg.float64)
    x = drawn((2, 2, 6, 5))
    frame = {"same": [(1, 2), (1, 1)], "valid": [(0, 0), (0, 0)]}.get(padding, [(2, 2), (1, 1)])
    want = F.conv2d(cg.tensor(np.pad(x, [(0, 0), (0, 0), *frame], numpy_mode)), net.weight, net.bias)
    np.testing.assert_allclose(net(cg.tensor(x)).detach().numpy(), want.detach().numpy(), rtol=1e-12, atol=1e-12)


def test_a_transposed_layer_takes_the_size_of_its_result():
    net = nn.ConvTranspose2d(2, 3, 3, stride=(2, 3), padding=1)
    x = cg.tensor(drawn((1, 2, 4, 5), np.float32))
    assert net(x).shape == (1, 3, 7, 13)
    assert net(x, output_size=(8, 15)).shape == net(x, output_size=(1, 3, 8, 15)).shape == (1, 3, 8, 15)


def test_a_layer_says_what_it_is():
    assert repr(nn.Conv2d(2, 4, 3, padding="same", padding_mode="reflect", bias=False, groups=2, dilation=2)) == (
        "Conv2d(2, 4, kernel_size=(3, 3), stride=(1, 1), padding=same, dilation=(2, 2), groups=2, bias=False, padding_mode=reflect)")
    assert repr(nn.Conv1d(2, 4, 3, padding=1)) == "Conv1d(2, 4, kernel_size=(3,), stride=(1,), padding=(1,))"
    assert repr(nn.ConvTranspose2d(2, 4, 3, stride=2, output_padding=1, dilation=(2, 1))) == (
        "ConvTranspose2d(2, 4, kernel_size=(3, 3), stride=(2, 2), dilation=(2, 1), output_padding=(1, 1))")


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="asks Linux for the peak of a process")
def test_the_images_are_never_unfolded_as_a_whole():
    """The unfolded matrix of this call would take 151 MB; tensors take 2 MiB of sums, threads their tiles, libraries what they like."""
    code = """
import cgrad as cg, cgrad.nn.functional as F
cg.set_num_threads(2)
x, w = cg.ones((1, 64, 256, 256), requires_grad=True), cg.ones((8, 64, 3, 3), requires_grad=True)
g = cg.ones((1, 8, 256, 256))
def field(name):
    return int(open("/proc/self/status").read().split(name)[1].split()[0])
for turn in range(2):                  # the first one warms pools and starts threads
    open("/proc/self/clear_refs", "w").write("5")
    cg.memory.reset_peak()
    before = field("VmRSS:"), cg.memory.stats()["live_bytes"]
    y = F.conv2d(x, w, padding=1)
    grads = cg.autograd.grad(y, (x, w), g)
    kept = sum(t.nbytes for t in (y, *grads))
    print(field("VmHWM:") - before[0] - kept // 1024, cg.memory.stats()["peak_bytes"] - before[1] - kept)
    del y, grads
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    resident, counted = map(int, done.stdout.split()[-2:])
    assert counted <= 2**21
    assert resident <= 32 * 1024
