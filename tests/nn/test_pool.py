"""Pooling against its definition: windows of a padded array in NumPy."""
import itertools

import numpy as np
import pytest

import cgrad as cg
import cgrad.nn.functional as F
from cgrad import nn

MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
MEAN = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
ADAPTIVE_MAX = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}
ADAPTIVE_MEAN = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}
UNPOOL = {1: F.max_unpool1d, 2: F.max_unpool2d, 3: F.max_unpool3d}


def drawn(shape, dtype=np.float64, seed=0):
    """Numbers that are all different, so that maxima have no ties."""
    n = int(np.prod(shape))
    return np.asarray(np.random.default_rng(seed).permutation(n).reshape(shape) - n // 3, dtype)


def each(value, n):
    return value if isinstance(value, tuple) else (value,) * n


def windows(x, n, kernel, stride=None, padding=0, dilation=1, ceil_mode=False, fill=0.0):
    """All windows of an array, their elements along the last axis."""
    kernel, padding, dilation = each(kernel, n), each(padding, n), each(dilation, n)
    stride = kernel if stride is None else each(stride, n)
    widths, counts = [(0, 0)] * (x.ndim - n), []
    for length, k, s, p, d in zip(x.shape[-n:], kernel, stride, padding, dilation):
        room = length + 2 * p - d * (k - 1) - 1
        count = room // s + 1
        if ceil_mode and room % s and count * s < length + p:
            count += 1
        counts.append(count)
        widths.append((p, max(p, (count - 1) * s + d * (k - 1) + 1 - length - p)))
    x = np.pad(x, widths, constant_values=fill)
    axes = tuple(range(x.ndim - n, x.ndim))
    view = np.lib.stride_tricks.sliding_window_view(x, [d * (k - 1) + 1 for d, k in zip(dilation, kernel)], axes)
    every = tuple(slice(0, (c - 1) * s + 1, s) for c, s in zip(counts, stride))
    view = view[(..., *every, *[slice(None, None, d) for d in dilation])]
    return view.reshape(*view.shape[:-n], np.prod(kernel))


def adaptive(x, n, size):
    """{place in the result: window} of adaptive pooling."""
    size = tuple(length if m is None else m for m, length in zip(each(size, n), x.shape[-n:]))
    return size, {at: x[(..., *[slice(i * length // m, -(-(i + 1) * length // m)) for i, m, length in zip(at, size, x.shape[-n:])])]
                  for at in itertools.product(*map(range, size))}


# kernel, stride, padding, dilation, ceil_mode; the lengths leave rests, and rows of fewer and of more windows than a vector
CASES = [
    (1, (2, 9), (2,), {}),
    (1, (2, 3, 9), (3,), dict(stride=2, padding=1)),
    (1, (1, 1, 40), (4,), dict(stride=1, padding=2)),
    (1, (2, 11), (3,), dict(stride=3, dilation=2, padding=1, ceil_mode=True)),
    (1, (2, 30), (20,), dict(stride=5)),
    (2, (2, 3, 8, 8), (2,), {}),
    (2, (3, 8, 37), (2,), {}),
    (2, (2, 2, 9, 25), (3,), dict(stride=2, padding=1)),
    (2, (2, 7, 26), ((2, 3),), dict(stride=(1, 3), padding=(1, 0), ceil_mode=True)),
    (2, (2, 7, 10), ((3, 2),), dict(stride=1, dilation=(1, 3))),
    (2, (1, 2, 6, 6), (4,), dict(stride=2, padding=2, ceil_mode=True)),
    (2, (1, 1, 3, 600), ((1, 2),), dict(stride=1)),
    (3, (2, 2, 4, 5, 6), (2,), {}),
    (3, (1, 5, 6, 7), ((2, 3, 1),), dict(stride=(1, 2, 2), padding=(1, 1, 0), ceil_mode=True)),
    (3, (0, 2, 4, 4, 4), (2,), {}),
    (2, (0, 2, 4, 4), (2,), {}),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int16])
@pytest.mark.parametrize(("n", "shape", "args", "options"), CASES)
def test_max_pool(n, shape, args, options, dtype):
    x = drawn(shape, dtype)
    found = windows(x.astype(np.float64), n, *args, **options, fill=-np.inf)
    want = found.max(-1) if found.size else np.zeros(found.shape[:-1])
    y, places = MAX[n](cg.tensor(x), *args, **options, return_indices=True)
    np.testing.assert_array_equal(y.numpy(), want.astype(dtype))
    assert y.dtype == dtype and places.dtype == cg.int64
    at_places = np.take_along_axis(x.reshape(*shape[:-n], np.prod(shape[-n:])), places.numpy().reshape(*shape[:-n], np.prod(y.shape[-n:])), -1)
    np.testing.assert_array_equal(at_places.reshape(want.shape), want)
    np.testing.assert_array_equal(MAX[n](cg.tensor(x), *args, **options).numpy(), y.numpy())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize(("n", "shape", "args", "options"), [case for case in CASES if "dilation" not in case[3]])
def test_avg_pool(n, shape, args, options, counted, dtype):
    x = drawn(shape, dtype)
    found = windows(x.astype(np.float64), n, *args, **options)
    # Padding counts or not; what lies beyond it never does.
    padding = each(options.get("padding", 0), n)
    grown = np.pad(np.ones(x.shape), [(0, 0)] * (x.ndim - n) + [(p, p) for p in padding]) if not counted else \
        np.ones((*x.shape[:-n], *[length + 2 * p for length, p in zip(x.shape[-n:], padding)]))
    rest = {name: value for name, value in options.items() if name not in ("padding", "ceil_mode")}
    stride = each(rest.pop("stride", args[0]), n)
    reach = [(c - 1) * s + k for c, s, k in zip(found.shape[-n - 1:-1], stride, each(args[0], n))]
    grown = np.pad(grown, [(0, 0)] * (x.ndim - n) + [(0, max(0, r - m)) for r, m in zip(reach, grown.shape[-n:])])
    count = windows(grown, n, *args, stride=stride)[(..., *map(slice, found.shape[-n - 1:-1]), slice(None))].sum(-1)
    y = MEAN[n](cg.tensor(x), *args, **options, count_include_pad=counted)
    np.testing.assert_allclose(y.numpy(), found.sum(-1) / count, rtol=1e-6 if dtype == np.float32 else 1e-14)
    assert y.dtype == dtype
    if n > 1:
        y = MEAN[n](cg.tensor(x), *args, **options, divisor_override=-3)
        np.testing.assert_allclose(y.numpy(), found.sum(-1) / -3, rtol=1e-6 if dtype == np.float32 else 1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "shape", "size"), [
    (1, (2, 3, 7), 3), (1, (2, 8), 8), (1, (1, 5), 9), (1, (2, 100), 1), (2, (2, 2, 8, 9), (5, 3)), (2, (2, 6, 8), (None, 4)),
    (2, (1, 1, 33, 20), (1, 20)), (2, (3, 56, 56), 1), (2, (2, 4, 4), (0, 2)), (3, (2, 5, 6, 7), (2, 3, 7)), (3, (1, 2, 4, 5, 6), 1)])
def test_adaptive_pools(n, shape, size, dtype):
    x = drawn(shape, dtype)
    size_out, parts = adaptive(x, n, size)
    axes = tuple(range(-n, 0))
    largest, means = np.empty((*shape[:-n], *size_out), dtype), np.empty((*shape[:-n], *size_out))
    for at, part in parts.items():
        largest[(..., *at)], means[(..., *at)] = part.max(axes), part.astype(np.float64).mean(axes)
    y, places = ADAPTIVE_MAX[n](cg.tensor(x), size, return_indices=True)
    np.testing.assert_array_equal(y.numpy(), largest)
    flat = x.reshape(*shape[:-n], -1)
    np.testing.assert_array_equal(np.take_along_axis(flat, places.numpy().reshape(*shape[:-n], -1), -1).reshape(y.shape), largest)
    y = ADAPTIVE_MEAN[n](cg.tensor(x), size)
    np.testing.assert_allclose(y.numpy(), means, rtol=1e-6 if dtype == np.float32 else 1e-13, atol=1e-12)
    assert y.dtype == dtype


# ------------------------------------------------------------------------------------------------------------------ derivatives
SMOOTH = {
    "max 1d": ((2, 7), lambda x: F.max_pool1d(x, 3, 2, 1)),
    "max 2d": ((1, 2, 4, 6), lambda x: F.max_pool2d(x, 2)),
    "max 2d overlapping": ((2, 5, 12), lambda x: F.max_pool2d(x, 3, 1, 1)),
    "max 2d dilated": ((2, 5, 7), lambda x: F.max_pool2d(x, 2, 2, 1, (2, 3), True)),
    "max 3d": ((1, 3, 4, 4), lambda x: F.max_pool3d(x, 2, (1, 2, 2))),
    "mean 1d": ((1, 2, 7), lambda x: F.avg_pool1d(x, 3, 2, 1)),
    "mean 2d": ((2, 4, 20), lambda x: F.avg_pool2d(x, 2)),
    "mean 2d of inside": ((1, 1, 5, 7), lambda x: F.avg_pool2d(x, 3, 2, 1, True, False)),
    "mean 2d divided": ((2, 4, 4), lambda x: F.avg_pool2d(x, (1, 3), 1, divisor_override=2)),
    "mean 3d": ((2, 3, 4, 5), lambda x: F.avg_pool3d(x, 2, 1, 1)),
    "adaptive max": ((2, 5, 7), lambda x: F.adaptive_max_pool2d(x, (2, 3))),
    "adaptive mean 1d": ((2, 7), lambda x: F.adaptive_avg_pool1d(x, 3)),
    "adaptive mean 2d": ((2, 5, 6), lambda x: F.adaptive_avg_pool2d(x, (2, 6))),
    "mean of all": ((2, 3, 4), lambda x: F.adaptive_avg_pool2d(x, 1)),
    "norm": ((2, 4, 6), lambda x: F.lp_pool2d(x * x + 1, 3, 2)),
    "norm 1d": ((2, 7), lambda x: F.lp_pool1d(x * x + 1, 1.5, 3, 2, True)),
    "unpool": ((2, 2, 3), lambda x: F.max_unpool2d(x, cg.tensor([[[0, 3, 5], [8, 13, 14]]] * 2), 2, output_size=(4, 6))),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives(name):
    shape, function = SMOOTH[name]
    x = cg.tensor(drawn(shape) / 10, requires_grad=True)
    cg.autograd.gradcheck(function, (x,), check_forward_ad=True)
    cg.autograd.gradgradcheck(lambda x: function(x) ** 2, (x,))
    y = function(x.detach())
    cg.autograd.gradcheck(lambda x: cg.func.jvp(function, (x,), (x * x,))[1], (x,))        # forward, then backward
    for strange in (cg.tensor(np.flip(drawn(shape) / 10)).flip(tuple(range(len(shape)))), cg.tensor(np.asfortranarray(drawn(shape) / 10))):
        np.testing.assert_allclose(function(strange).numpy(), y.numpy(), rtol=1e-14)
    if name != "unpool":
        xs = np.stack([drawn(shape) / 10, drawn(shape, seed=1) / 10, drawn(shape, seed=2) / 10])
        for k, g in enumerate(cg.func.vmap(cg.func.grad(lambda x: (function(x) ** 2).sum()))(cg.tensor(xs)).numpy()):
            one = cg.tensor(xs[k], requires_grad=True)
            (function(one) ** 2).sum().backward()
            np.testing.assert_allclose(g, one.grad.numpy(), rtol=1e-13)
        np.testing.assert_array_equal(cg.func.vmap(function)(cg.tensor(xs)).numpy(), np.stack([function(cg.tensor(one)).numpy() for one in xs]))


def test_the_gradient_of_a_tie_goes_to_the_first():
    x = cg.zeros(1, 4, 4, requires_grad=True)
    F.max_pool2d(x, 2).sum().backward()
    assert x.grad.tolist() == [[[1.0, 0, 1, 0], [0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]]]
    x = cg.tensor([[1.0, 3, 3, 2, 3]], requires_grad=True)
    F.max_pool1d(x, 3, 1).sum().backward()               # windows (1 3 3), (3 3 2), (3 2 3)
    assert x.grad.tolist() == [[0.0, 2, 1, 0, 0]]


@pytest.mark.parametrize("width", [4, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_wins_and_minus_infinity_has_a_place(dtype, width):
    x = np.full((1, 2, width), -np.inf, dtype)
    x[0, 0, 1], x[0, 1, 2] = -np.nan, 5
    y, places = F.max_pool2d(cg.tensor(x), 2, return_indices=True)
    assert np.isnan(y[0, 0, 0].item()) and y[0, 0, 1].item() == 5
    np.testing.assert_array_equal(y.numpy()[0, 0, 2:], np.full(width // 2 - 2, -np.inf))
    assert places[0, 0].tolist() == [1, width + 2, *range(4, width, 2)]
    for pool in (F.max_pool1d, F.adaptive_max_pool1d):
        assert np.isnan(pool(cg.tensor(x[:, 0]), width if pool is F.max_pool1d else 1).numpy()).all()


def test_padding_never_wins():
    x = cg.tensor([[[-1.0, -2.0], [-3.0, -4.0]]], requires_grad=True)
    y = F.max_pool2d(x, 2, 2, 1)
    assert y.tolist() == [[[-1.0, -2.0], [-3.0, -4.0]]]
    assert F.max_pool1d(cg.tensor([[-5, -6]]), 3, 1, 1).tolist() == [[-5, -5]]
    # A window that holds nothing but padding: the largest of no elements, of which none has the gradient.
    x = cg.ones(1, 1, requires_grad=True)
    y = F.max_pool1d(x, 2, 1, 1, 2)
    assert y.tolist() == [[-np.inf]]
    y.sum().backward()
    assert x.grad.tolist() == [[0.0]]


def test_norms():
    x = drawn((2, 6, 8))
    np.testing.assert_allclose(F.lp_pool2d(cg.tensor(x), 2, (2, 3), 2).numpy(), np.sqrt((windows(x, 2, (2, 3), 2) ** 2).sum(-1)), rtol=1e-14)
    np.testing.assert_allclose(F.lp_pool3d(cg.tensor(abs(x)[None]), 3, (2, 3, 1)).numpy()[0], (windows(abs(x), 3, (2, 3, 1)) ** 3).sum(-1) ** (1 / 3), rtol=1e-14)
    x = cg.tensor([[0.0, 0.0, 3.0, 4.0]], requires_grad=True)
    F.lp_pool1d(x, 2, 2).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[0, 0, 0.6, 0.8]], rtol=1e-6)


def test_a_batch_of_unpoolings():
    x, places = drawn((3, 2, 4)), np.random.default_rng(0).permuted(np.tile(np.arange(8), (3, 2, 1)), axis=-1)[:, :, :4]
    want = [F.max_unpool1d(cg.tensor(a), cg.tensor(p), 2).numpy() for a, p in zip(x, places, strict=True)]
    np.testing.assert_array_equal(cg.func.vmap(lambda a, p: F.max_unpool1d(a, p, 2))(cg.tensor(x), cg.tensor(places)).numpy(), want)
    want = [F.max_unpool1d(cg.tensor(a), cg.tensor(places[0]), 2).numpy() for a in x]
    np.testing.assert_array_equal(cg.func.vmap(lambda a: F.max_unpool1d(a, cg.tensor(places[0]), 2))(cg.tensor(x)).numpy(), want)


def test_the_result_may_be_written_over():
    x = cg.tensor([[-1.0, -3.0, 2.0, 1.0]], requires_grad=True)
    F.relu(F.max_pool1d(x, 2), inplace=True).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0, 1.0, 0.0]]


@pytest.mark.parametrize(("n", "shape", "kernel", "stride", "padding"), [(1, (2, 10), 2, None, 0), (2, (2, 1, 6, 8), 2, None, 0), (2, (2, 7, 9), 3, 2, 1), (3, (2, 4, 4, 6), 2, 2, 0)])
def test_unpooling_puts_back_what_was_chosen(n, shape, kernel, stride, padding):
    x = drawn(shape)
    y, places = MAX[n](cg.tensor(x), kernel, stride, padding, return_indices=True)
    want = np.zeros(shape)
    chosen = np.isin(x, y.numpy())                 # all elements differ
    want[chosen] = x[chosen]
    np.testing.assert_array_equal(UNPOOL[n](y, places, kernel, stride, padding, output_size=shape).numpy(), want)
    np.testing.assert_array_equal(UNPOOL[n](y, places, kernel, stride, padding, output_size=shape[-n:]).numpy(), want)
    layer = getattr(nn, f"MaxUnpool{n}d")(kernel, stride, padding)
    np.testing.assert_array_equal(layer(y, places, output_size=shape).numpy(), want)


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: F.max_pool2d(cg.zeros(2, 2), 2), ValueError, r"max_pool2d.*\(2, 2\)"),
    (lambda: F.max_pool1d(cg.zeros(0, 4), 2), ValueError, r"empty along N.*\(0, 4\)"),
    (lambda: F.avg_pool1d(cg.zeros(3, 0), 2), ValueError, "avg_pool1d"),
    (lambda: F.max_pool2d(cg.zeros(1, 4, 4), 2, padding=2), ValueError, "half of the kernel, got padding 2 for kernel_size 2"),
    (lambda: F.avg_pool3d(cg.zeros(1, 4, 4, 4), 2, padding=-1), ValueError, "avg_pool3d: padding"),
    (lambda: F.max_pool2d(cg.zeros(1, 4, 4), 2, stride=0), ValueError, r"stride and dilation must be at least 1, got 2, 0 and 1"),
    (lambda: F.max_pool2d(cg.zeros(1, 4, 4), 0), ValueError, "kernel_size, stride.* at least 1, got 0"),
    (lambda: F.max_pool2d(cg.zeros(1, 4, 4), 2, dilation=0), ValueError, "at least 1, got 2, 2 and 0"),
    (lambda: F.max_pool2d(cg.zeros(1, 4, 4), (2, 2, 2)), ValueError, "one integer or 2"),
    (lambda: F.max_pool2d(cg.zeros(1, 4, 4), 5), ValueError, "kernel of 5.*4 elements of axis 1"),
    (lambda: F.max_pool2d(cg.zeros(1, 4, 4), 2, 2 ** 40), ValueError, "stride is out of range"),
    (lambda: F.max_pool2d(cg.zeros(1, 4, 4), 2.5), TypeError, r"max_pool2d: kernel_size .* got 2\.5"),
    (lambda: F.max_pool2d(cg.broadcast_to(cg.zeros(1), (1, 2 ** 16, 2 ** 16)), 2), ValueError, "planes of more than"),
    (lambda: F.max_pool2d(cg.zeros(1, 4, 4, dtype=bool), 2), TypeError, "max_pool2d.*bool"),
    (lambda: F.avg_pool2d(cg.zeros(1, 4, 4, dtype=cg.int64), 2), TypeError, "floating point.*int64"),
    (lambda: F.avg_pool2d(cg.zeros(1, 4, 4), 2, divisor_override=0), ValueError, "divisor_override"),
    (lambda: F.adaptive_avg_pool2d(cg.zeros(1, 4, 4), -1), ValueError, "negative"),
    (lambda: F.adaptive_max_pool2d(cg.zeros(1, 4, 4), ()), ValueError, "output_size"),
    (lambda: F.adaptive_max_pool2d(cg.zeros(1, 4, 4), (None, "1")), TypeError, "adaptive_max_pool2d: output_size"),
    (lambda: F.lp_pool1d(cg.zeros(1, 4), 0, 2), ValueError, "norm_type"),
    (lambda: F.max_unpool1d(cg.zeros(1, 2), cg.tensor([[0, 4]]), 2), IndexError, "max_unpool: index 4"),
    (lambda: F.max_unpool1d(cg.zeros(1, 2), cg.tensor([[0, -1]]), 2), IndexError, "max_unpool: index -1"),
    (lambda: F.max_unpool1d(cg.zeros(1, 2), cg.tensor([[0]]), 2), ValueError, r"\(1, 2\).*\(1, 1\)"),
    (lambda: F.max_unpool1d(cg.zeros(1, 2), cg.tensor([[0, 1]]), 2, output_size=(7,)), ValueError, "output_size.*stride"),
    (lambda: F.max_unpool1d(cg.zeros(1, 1), cg.tensor([[0]]), 2, padding=1), ValueError, "positive"),
])
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_layers():
    x = cg.tensor(drawn((2, 3, 6, 6), np.float32))
    for layer, want in [(nn.MaxPool2d(2), F.max_pool2d(x, 2)), (nn.MaxPool2d(3, 2, 1, ceil_mode=True), F.max_pool2d(x, 3, 2, 1, 1, True)),
                        (nn.AvgPool2d(2, 1, divisor_override=3), F.avg_pool2d(x, 2, 1, divisor_override=3)),
                        (nn.AdaptiveAvgPool2d((1, None)), F.adaptive_avg_pool2d(x, (1, None))), (nn.AdaptiveMaxPool2d(4), F.adaptive_max_pool2d(x, 4)),
                        (nn.MaxPool3d(2), F.max_pool3d(x, 2)), (nn.AvgPool3d(2), F.avg_pool3d(x, 2)), (nn.LPPool2d(2, 3, 1), F.lp_pool2d(x, 2, 3, 1)),
                        (nn.MaxPool1d(2), F.max_pool1d(x[0], 2)), (nn.AvgPool1d(2), F.avg_pool1d(x[0], 2)), (nn.AdaptiveAvgPool1d(2), F.adaptive_avg_pool1d(x[0], 2)),
                        (nn.AdaptiveMaxPool3d(2), F.adaptive_max_pool3d(x, 2))]:
        np.testing.assert_array_equal(layer(x if want.ndim == 4 else x[0]).numpy(), want.numpy())
    assert repr(nn.MaxPool2d(2)) == "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False, return_indices=False)"
    assert repr(nn.AdaptiveAvgPool2d(1)) == "AdaptiveAvgPool2d(output_size=1)"
    values, places = nn.MaxPool2d(2, return_indices=True)(x)
    assert values.shape == places.shape == (2, 3, 3, 3)
