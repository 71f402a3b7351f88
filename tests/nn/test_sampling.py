"""grid_sample against SciPy's map_coordinates and, for cubic weights, their definition; affine_grid; smoothed resizing; local_response_norm."""
import itertools

import numpy as np
import pytest
from scipy import ndimage

import cgrad as cg
import cgrad.nn.functional as F
from cgrad import nn

# What SciPy calls the three kinds of padding; mirrors stand at the centres or at the edges of the outermost elements.
SCIPY = {"zeros": ("grid-constant", "grid-constant"), "border": ("nearest", "nearest"), "reflection": ("reflect", "mirror")}


def drawn(*shape, low=-1.0, high=1.0, seed=0):
    return np.random.default_rng(seed).uniform(low, high, shape)


def coordinates(grid, lengths, align_corners):
    """Points of a grid as coordinates, the last axis of the image first turned to be the last."""
    return [(grid[..., -1 - k] + 1) / 2 * (n - 1) if align_corners else ((grid[..., -1 - k] + 1) * n - 1) / 2 for k, n in enumerate(lengths)]


def mapped(x, grid, order, padding, align_corners):
    """One call of map_coordinates for each plane."""
    where = coordinates(grid, x.shape[2:], align_corners)
    return np.stack([[ndimage.map_coordinates(plane, [w[i] for w in where], order=order, mode=SCIPY[padding][align_corners], prefilter=False)
                      for plane in image] for i, image in enumerate(x)])


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding", SCIPY)
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("shape", [(2, 3, 5, 6), (2, 2, 4, 5, 3), (1, 1, 1, 7)])
def test_grid_sample(shape, mode, padding, align_corners):
    n_axes = len(shape) - 2
    x, grid = drawn(*shape), drawn(shape[0], *(4, 3, 5)[:n_axes], n_axes, low=-2.5, high=2.5, seed=1)
    if 1 in shape[2:]:                               # a single element mirrors to itself
        grid[..., -1] = 0
    want = mapped(x, grid, mode == "bilinear", padding, align_corners)
    y = F.grid_sample(cg.tensor(x), cg.tensor(grid), mode, padding, align_corners)
    np.testing.assert_allclose(y.numpy(), want, rtol=1e-11, atol=1e-12)
    y = F.grid_sample(cg.tensor(x.astype(np.float32)), cg.tensor(grid.astype(np.float32)), mode, padding, align_corners)
    assert y.dtype == cg.float32
    np.testing.assert_allclose(y.numpy(), want, rtol=1e-4, atol=1e-4)


def keys(d, a=-0.75):
    """The convolution kernel of R. Keys, "Cubic convolution interpolation for digital image processing", 1981."""
    d = abs(d)
    return ((a + 2) * d - (a + 3)) * d * d + 1 if d <= 1 else (((d - 5) * d + 8) * d - 4) * a if d < 2 else 0.0


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding", SCIPY)
def test_cubic_grid_sample(padding, align_corners):
    x, grid = drawn(1, 2, 4, 5), drawn(1, 3, 4, 2, low=-1.8, high=1.8, seed=1)
    big = np.pad(x, ((0, 0), (0, 0), (8, 8), (8, 8)), {"zeros": "constant", "border": "edge", "reflection": "reflect" if align_corners else "symmetric"}[padding])
    rows, columns = coordinates(grid, (4, 5), align_corners)
    want = np.zeros((1, 2, 3, 4))
    for i, j in np.ndindex(3, 4):
        r, c = rows[0, i, j], columns[0, i, j]
        for p, q in itertools.product(range(int(np.floor(r)) - 1, int(np.floor(r)) + 3), range(int(np.floor(c)) - 1, int(np.floor(c)) + 3)):
            want[0, :, i, j] += big[0, :, p + 8, q + 8] * keys(r - p) * keys(c - q)
    y = F.grid_sample(cg.tensor(x), cg.tensor(grid), "bicubic", padding, align_corners)
    np.testing.assert_allclose(y.numpy(), want, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("padding", SCIPY)
@pytest.mark.parametrize(("mode", "n_axes"), [("bilinear", 2), ("bicubic", 2), ("nearest", 2), ("bilinear", 3)])
def test_derivatives_of_grid_sample(mode, n_axes, padding):
    shape = (2, 2, 3, 4, 3)[:n_axes + 2]
    x = cg.tensor(drawn(*shape), requires_grad=True)
    grid = cg.tensor(drawn(2, *(2, 2, 2)[:n_axes], n_axes, low=-1.4, high=1.4, seed=4), requires_grad=True)

    def function(x, grid):
        return F.grid_sample(x, grid, mode, padding)
    operands = (x, grid) if mode != "nearest" else (x,)
    call = function if mode != "nearest" else lambda x: function(x, grid.detach())
    cg.autograd.gradcheck(call, operands, check_forward_ad=True)
    cg.autograd.gradgradcheck(lambda *xs: call(*xs) ** 2, operands)
    if mode == "nearest":
        function(x, grid).sum().backward()
        assert grid.grad is None or not grid.grad.numpy().any()
        return
    xs, grids = np.stack([drawn(*shape), drawn(*shape, seed=7)]), np.stack([grid.detach().numpy(), grid.detach().numpy()[::-1] * 0.9])
    found = cg.func.vmap(cg.func.grad(lambda x, g: (function(x, g) ** 2).sum(), argnums=(0, 1)))(cg.tensor(xs), cg.tensor(grids))
    for k in range(2):
        one = [cg.tensor(xs[k], requires_grad=True), cg.tensor(grids[k], requires_grad=True)]
        (function(*one) ** 2).sum().backward()
        for a, b in zip(found, one, strict=True):
            np.testing.assert_allclose(a[k].numpy(), b.grad.numpy(), rtol=1e-11, atol=1e-13)
    shared = cg.func.vmap(function, in_dims=(0, None))(cg.tensor(xs), cg.tensor(grids[0]))         # one grid for all
    np.testing.assert_allclose(shared.numpy(), [function(cg.tensor(a), cg.tensor(grids[0])).numpy() for a in xs], rtol=1e-13)


def test_points_at_infinity_and_nowhere():
    x = cg.ones(1, 1, 3, 3)
    grid = cg.tensor([[[[np.inf, 0.0], [-np.inf, 0.0], [np.nan, 0.0], [1e30, 1e30]]]])
    y = F.grid_sample(x, grid).numpy().ravel()
    assert y[[0, 1, 3]].tolist() == [0.0, 0.0, 0.0] and np.isnan(y[2])
    y = F.grid_sample(x, grid, padding_mode="border").numpy().ravel()
    assert y[[0, 1, 3]].tolist() == [1.0, 1.0, 1.0] and np.isnan(y[2])
    # An element that is not read does not count, whatever it holds.
    x = cg.tensor([[[[1.0, np.nan]]]])
    assert F.grid_sample(x, cg.tensor([[[[-1.0, 0.0], [-2.0, 0.0]]]]), align_corners=False).tolist() == [[[[0.5, 0.0]]]]


@pytest.mark.parametrize(("padding", "want"), [("zeros", [10.0, 10.0, -20.0]), ("border", [0.0, 10.0, 0.0]), ("reflection", [0.0, 10.0, 0.0])])
def test_slopes_at_kinks(padding, want):
    """At an element the slope to the right of it; 0 at the border where that moves points."""
    x = cg.tensor([[[[0.0, 10.0, 20.0]]]])
    grid = cg.tensor([[[[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]]], requires_grad=True)
    F.grid_sample(x, grid, padding_mode=padding, align_corners=True).sum().backward()
    np.testing.assert_array_equal(grid.grad.numpy()[0, 0, :, 0], want)


def test_layouts_of_images_and_grids():
    x, grid = drawn(2, 3, 4, 5), drawn(2, 4, 3, 2, seed=2)
    want = F.grid_sample(cg.tensor(x), cg.tensor(grid)).numpy()
    np.testing.assert_array_equal(F.grid_sample(cg.tensor(x.transpose(3, 2, 1, 0).copy()).T, cg.tensor(np.asfortranarray(grid))).numpy(), want)
    np.testing.assert_array_equal(F.grid_sample(cg.tensor(x[:, ::-1].copy()).flip(1), cg.tensor(grid)).numpy(), want)
    assert F.grid_sample(cg.zeros(0, 3, 4, 5), cg.zeros(0, 2, 2, 2)).shape == (0, 3, 2, 2)
    assert F.grid_sample(cg.zeros(2, 3, 4, 5), cg.zeros(2, 0, 2, 2)).shape == (2, 3, 0, 2)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", [(2, 1, 3, 4), (1, 3, 1, 5), (2, 2, 2, 3, 4)])
def test_affine_grid(size, align_corners):
    n = len(size) - 2
    theta = drawn(size[0], n, n + 1)
    grid = F.affine_grid(cg.tensor(theta), size, align_corners).numpy()
    ends = [np.linspace(-1, 1, m) if align_corners and m > 1 else (np.arange(m) * 2 + 1) / m - 1 for m in size[2:]]
    points = np.stack([*np.meshgrid(*ends, indexing="ij")[::-1], np.ones(size[2:])], -1)
    np.testing.assert_allclose(grid, np.einsum("nij,...j->n...i", theta, points), rtol=1e-12, atol=1e-12)
    cg.autograd.gradcheck(lambda t: F.affine_grid(t, size, align_corners), (cg.tensor(theta, requires_grad=True),), check_forward_ad=True)


def test_the_identity_gives_the_image_back():
    x = drawn(2, 3, 5, 4)
    for align_corners in (False, True):
        grid = F.affine_grid(cg.tensor(np.tile(np.eye(2, 3), (2, 1, 1))), x.shape, align_corners)
        for mode in ("bilinear", "nearest", "bicubic"):
            np.testing.assert_allclose(F.grid_sample(cg.tensor(x), grid, mode, align_corners=align_corners).numpy(), x, rtol=1e-12)


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: F.grid_sample(cg.zeros(1, 1, 2, 2), cg.zeros(2, 1, 1, 2)), ValueError, r"grid_sample.*\(2, 1, 1, 2\)"),
    (lambda: F.grid_sample(cg.zeros(1, 1, 2, 2), cg.zeros(1, 1, 1, 3)), ValueError, "grid_sample"),
    (lambda: F.grid_sample(cg.zeros(1, 0, 2, 2), cg.zeros(1, 1, 1, 2)), ValueError, "grid_sample"),
    (lambda: F.grid_sample(cg.zeros(1, 2, 2), cg.zeros(1, 1, 2)), ValueError, "grid_sample"),
    (lambda: F.grid_sample(cg.zeros(1, 1, 2, 2), cg.zeros(1, 1, 1, 2), "cubic"), ValueError, "mode.*cubic"),
    (lambda: F.grid_sample(cg.zeros(1, 1, 2, 2, 2), cg.zeros(1, 1, 1, 1, 3), "bicubic"), ValueError, "images"),
    (lambda: F.grid_sample(cg.zeros(1, 1, 2, 2), cg.zeros(1, 1, 1, 2), padding_mode="mirror"), ValueError, "padding_mode.*mirror"),
    (lambda: F.grid_sample(cg.zeros(1, 1, 2, 2, dtype=cg.int64), cg.zeros(1, 1, 1, 2)), TypeError, "int64"),
    (lambda: F.affine_grid(cg.zeros(1, 2, 3), (2, 1, 2, 2)), ValueError, r"affine_grid.*\(1, 2, 3\).*\(2, 1, 2, 2\)"),
    (lambda: F.affine_grid(cg.zeros(1, 2, 3), (1, 1, 0, 2)), ValueError, "positive"),
    (lambda: F.affine_grid(cg.zeros(1, 2, 3, dtype=cg.int64), (1, 1, 2, 2)), TypeError, "int64"),
    (lambda: F.local_response_norm(cg.zeros(2, 2), 2), ValueError, r"local_response_norm.*\(2, 2\)"),
    (lambda: F.local_response_norm(cg.zeros(2, 2, 2), 0), ValueError, "size 0"),
    (lambda: F.interpolate(cg.zeros(1, 1, 4), 2, mode="linear", antialias=True), ValueError, "antialias.*linear"),
    (lambda: nn.ZeroPad2d((1, 2)), ValueError, "ZeroPad2d: padding"),
])
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


# ------------------------------------------------------------------------------------------------------- smoothed resizing
@pytest.mark.parametrize("cubic", [False, True])
@pytest.mark.parametrize(("n", "length"), [(9, 4), (10, 5), (12, 3), (5, 8), (7, 7), (6, 1)])
def test_smoothed_resizing(n, length, cubic):
    """Means over the elements around each point, weighted by a kernel as wide as the elements that become one."""
    scale = n / length
    stretch = max(scale, 1.0)
    kernel = (lambda d: keys(d, -0.5)) if cubic else lambda d: max(0.0, 1 - abs(d))
    weights = np.array([[kernel((j + 0.5 - (i + 0.5) * scale) / stretch) for j in range(n)] for i in range(length)])
    weights /= weights.sum(1, keepdims=True)
    x = drawn(2, 1, n, 3)
    y = F.interpolate(cg.tensor(x), (length, 3), mode="bicubic" if cubic else "bilinear", antialias=True)
    np.testing.assert_allclose(y.numpy(), np.einsum("ij,ncjk->ncik", weights, x), rtol=1e-11, atol=1e-12)
    cg.autograd.gradcheck(lambda x: F.interpolate(x, (length, 2), mode="bilinear", antialias=True), (cg.tensor(x[:1], requires_grad=True),), check_forward_ad=True)


# --------------------------------------------------------------------------------------------------- neighbouring channels
@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("shape", [(2, 5, 3), (2, 4, 3, 2), (1, 3, 2, 1, 2), (0, 3, 2)])
def test_local_response_norm(shape, size):
    x = drawn(*shape)
    squares = np.pad(x * x, [(0, 0), (size // 2, (size - 1) // 2), *[(0, 0)] * (len(shape) - 2)])
    means = sum(squares[:, k:k + shape[1]] for k in range(size)) / size
    want = x / (2 + 0.5 * means) ** 0.6
    np.testing.assert_allclose(F.local_response_norm(cg.tensor(x), size, 0.5, 0.6, 2.0).numpy(), want, rtol=1e-12)
    np.testing.assert_allclose(nn.LocalResponseNorm(size, 0.5, 0.6, 2.0)(cg.tensor(x)).numpy(), want, rtol=1e-12)
    if x.size:
        leaf = cg.tensor(x, requires_grad=True)
        cg.autograd.gradcheck(lambda x: F.local_response_norm(x, size, 0.5), (leaf,), check_forward_ad=True)
        cg.autograd.gradgradcheck(lambda x: F.local_response_norm(x, size, 0.5), (leaf,))


# ----------------------------------------------------------------------------------------------------------------- layers
def test_layers_of_images():
    x = cg.tensor(drawn(2, 4, 6, 6))
    for layer, want in [(nn.Upsample(scale_factor=2), F.interpolate(x, scale_factor=2)), (nn.Upsample((3, 9), mode="bilinear"), F.interpolate(x, (3, 9), mode="bilinear")),
                        (nn.UpsamplingNearest2d(7), F.interpolate(x, 7)), (nn.UpsamplingBilinear2d(7), F.interpolate(x, 7, mode="bilinear", align_corners=True)),
                        (nn.PixelShuffle(2), F.pixel_shuffle(x, 2)), (nn.PixelUnshuffle(3), F.pixel_unshuffle(x, 3)), (nn.ChannelShuffle(2), F.channel_shuffle(x, 2)),
                        (nn.Unfold(3, padding=1), F.unfold(x, 3, padding=1)), (nn.ZeroPad1d(1), F.pad(x, (1, 1))),
                        (nn.ZeroPad2d((1, 2, 3, -1)), F.pad(x, (1, 2, 3, -1))), (nn.ConstantPad2d(1, 5.0), F.pad(x, (1, 1, 1, 1), value=5.0)),
                        (nn.ReflectionPad2d(2), F.pad(x, (2, 2, 2, 2), "reflect")), (nn.ReplicationPad1d((0, 2)), F.pad(x, (0, 2), "replicate")),
                        (nn.CircularPad3d(1), F.pad(x, (1,) * 6, "circular"))]:
        np.testing.assert_array_equal(layer(x).numpy(), want.numpy())
    patches = F.unfold(x, 2)
    np.testing.assert_array_equal(nn.Fold(6, 2)(patches).numpy(), F.fold(patches, 6, 2).numpy())
    assert repr(nn.Upsample(scale_factor=2)) == "Upsample(size=None, scale_factor=2, mode=nearest, align_corners=None, recompute_scale_factor=None)"
    assert repr(nn.ReflectionPad2d(2)) == "ReflectionPad2d((2, 2, 2, 2))"
    assert repr(nn.ConstantPad1d((1, 0), 5)) == "ConstantPad1d(padding=(1, 0), value=5)"
