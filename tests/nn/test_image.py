"""Patches, resizing, frames, and vectors' lengths, against NumPy."""
import numpy as np
import pytest

import cgrad as cg
import cgrad.nn.functional as F


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def differentiable(function, *args):
    args = [cg.tensor(a, requires_grad=True) for a in args]
    cg.autograd.gradcheck(function, args, check_forward_ad=True)
    cg.autograd.gradgradcheck(function, args)


# ---------------------------------------------------------------------------------------------------- channels and pixels
def test_pixels_and_channels(rng):
    x = rng.standard_normal((2, 8, 2, 3))
    y = F.pixel_shuffle(cg.tensor(x), 2)
    for c, i, j in np.ndindex(2, 4, 6):
        np.testing.assert_array_equal(y.numpy()[:, c, i, j], x[:, c * 4 + (i % 2) * 2 + j % 2, i // 2, j // 2])
    np.testing.assert_array_equal(F.pixel_unshuffle(y, 2).numpy(), x)
    np.testing.assert_array_equal(F.channel_shuffle(cg.tensor(x), 2).numpy(), x[:, [0, 4, 1, 5, 2, 6, 3, 7]])
    differentiable(lambda x: F.pixel_unshuffle(F.pixel_shuffle(x, 2) ** 2, 2), x[0, :, :1, :1])
    for wrong in (lambda: F.pixel_shuffle(cg.zeros(3, 2, 2), 2), lambda: F.pixel_unshuffle(cg.zeros(1, 3, 2), 2),
                  lambda: F.channel_shuffle(cg.zeros(1, 3, 2), 2), lambda: F.pixel_shuffle(cg.zeros(4, 2), 2), lambda: F.channel_shuffle(cg.zeros(4, 2), 2)):
        with pytest.raises(ValueError, match="shuffle"):
            wrong()


# ---------------------------------------------------------------------------------------------------------------- patches
@pytest.mark.parametrize(("kernel", "dilation", "padding", "stride"), [(2, 1, 0, 1), ((2, 3), (2, 1), (1, 2), (2, 1)), ((1, 2), 1, 1, 3)])
def test_unfold_takes_every_patch_and_fold_is_its_transpose(rng, kernel, dilation, padding, stride):
    x = rng.standard_normal((2, 3, 5, 6))
    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = [v if isinstance(v, tuple) else (v, v) for v in (kernel, dilation, padding, stride)]
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw))), (dh * (kh - 1) + 1, dw * (kw - 1) + 1), (2, 3))
    windows = windows[:, :, ::sh, ::sw, ::dh, ::dw]
    want = windows.transpose(0, 1, 4, 5, 2, 3).reshape(2, 3 * kh * kw, -1)
    got = F.unfold(cg.tensor(x), kernel, dilation, padding, stride)
    np.testing.assert_array_equal(got.numpy(), want)
    np.testing.assert_array_equal(F.unfold(cg.tensor(x[0]), kernel, dilation, padding, stride).numpy(), want[0])
    patches = rng.standard_normal(want.shape)
    image = F.fold(cg.tensor(patches), (5, 6), kernel, dilation, padding, stride)
    assert image.shape == x.shape
    assert (want * patches).sum() == pytest.approx((x * image.numpy()).sum(), rel=1e-12)
    np.testing.assert_array_equal(F.fold(cg.tensor(patches[0]), (5, 6), kernel, dilation, padding, stride).numpy(), image.numpy()[0])
    differentiable(lambda x: F.unfold(x, kernel, dilation, padding, stride) ** 2, x[:1, :1])
    differentiable(lambda x: F.fold(x, (5, 6), kernel, dilation, padding, stride) ** 2, patches[:1])


def test_patches_refuse_what_does_not_fit():
    for wrong in (lambda: F.unfold(cg.zeros(2, 2), 1), lambda: F.unfold(cg.zeros(1, 1, 2, 2), 3), lambda: F.unfold(cg.zeros(1, 1, 2, 2), 0),
                  lambda: F.unfold(cg.zeros(1, 1, 2, 2), (1, 1, 1)), lambda: F.fold(cg.zeros(1, 3, 1), 2, 2), lambda: F.fold(cg.zeros(1, 4, 2), 2, 2),
                  lambda: F.fold(cg.zeros(4), 2, 2)):
        with pytest.raises(ValueError, match="fold"):
            wrong()


# --------------------------------------------------------------------------------------------------------------- resizing
def test_nearest(rng):
    x = rng.standard_normal((2, 3, 4, 5))
    np.testing.assert_array_equal(F.interpolate(cg.tensor(x), scale_factor=2).numpy(), x.repeat(2, 2).repeat(2, 3))
    np.testing.assert_array_equal(F.interpolate(cg.tensor(x), (2, 5)).numpy(), x[:, :, ::2])
    np.testing.assert_array_equal(F.interpolate(cg.tensor(x), (2, 5), mode="nearest-exact").numpy(), x[:, :, 1::2])
    np.testing.assert_array_equal(F.upsample(cg.tensor(x[:, :, 0]), 10).numpy(), x[:, :, 0].repeat(2, 2))
    assert F.interpolate(cg.tensor(x[:, :, None]), scale_factor=(2.0, 0.5, 1.5)).shape == (2, 3, 2, 2, 7)


def test_linear(rng):
    x = rng.standard_normal((2, 3, 5))
    for n in (1, 3, 5, 9, 12):
        for align in (False, True):
            at = np.arange(n) * (4 / max(n - 1, 1)) if align else (np.arange(n) + 0.5) * 5 / n - 0.5
            want = np.stack([np.interp(at, np.arange(5), row) for row in x.reshape(-1, 5)]).reshape(2, 3, n)
            np.testing.assert_allclose(F.interpolate(cg.tensor(x), n, mode="linear", align_corners=align).numpy(), want, rtol=1e-12, atol=1e-14)
    image = rng.standard_normal((1, 2, 4, 5))
    one = F.interpolate(cg.tensor(image), (7, 3), mode="bilinear")
    rows = F.interpolate(cg.tensor(image.transpose(0, 1, 3, 2).reshape(1, 10, 4)), 7, mode="linear").numpy().reshape(1, 2, 5, 7).transpose(0, 1, 3, 2)
    two = F.interpolate(cg.tensor(rows.reshape(1, 14, 5)), 3, mode="linear").numpy().reshape(1, 2, 7, 3)
    np.testing.assert_allclose(one.numpy(), two, rtol=1e-12)
    assert F.interpolate(cg.tensor(image[:, :, None]), (2, 3, 4), mode="trilinear").shape == (1, 2, 2, 3, 4)
    assert F.interpolate(cg.tensor(image.astype(np.float32)), (2, 3), mode="bilinear").dtype == cg.float32
    ramp = F.interpolate(cg.tensor(np.arange(10.0).reshape(1, 1, 10)), scale_factor=1.55, mode="linear").numpy()[0, 0]
    np.testing.assert_allclose(ramp, np.clip((np.arange(15) + 0.5) / 1.55 - 0.5, 0, 9), rtol=1e-12)
    ramp = F.interpolate(cg.tensor(np.arange(10.0).reshape(1, 1, 10)), scale_factor=1.55, mode="linear", recompute_scale_factor=True).numpy()[0, 0]
    np.testing.assert_allclose(ramp, np.clip((np.arange(15) + 0.5) / 1.5 - 0.5, 0, 9), rtol=1e-12)


def keys(d, a=-0.75):
    d = np.abs(d)
    return np.where(d <= 1, (a + 2) * d**3 - (a + 3) * d**2 + 1, np.where(d < 2, a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a, 0))


@pytest.mark.parametrize("align", [False, True])
def test_bicubic(rng, align):
    x = rng.standard_normal((1, 2, 5, 4))
    matrices = []
    for n, length in ((5, 8), (4, 3)):
        at = np.arange(length) * (n - 1) / (length - 1) if align else (np.arange(length) + 0.5) * n / length - 0.5
        matrix = np.zeros((length, n))
        for i, s in enumerate(at):
            for k in range(int(np.floor(s)) - 1, int(np.floor(s)) + 3):
                matrix[i, min(max(k, 0), n - 1)] += keys(s - k)
        matrices.append(matrix)
    want = np.einsum("ih,nchw,jw->ncij", matrices[0], x, matrices[1])
    np.testing.assert_allclose(F.interpolate(cg.tensor(x), (8, 3), mode="bicubic", align_corners=align).numpy(), want, rtol=1e-11, atol=1e-13)


def test_area(rng):
    x = rng.standard_normal((2, 3, 6, 5))
    np.testing.assert_allclose(F.interpolate(cg.tensor(x), (3, 1), mode="area").numpy(), x.reshape(2, 3, 3, 2, 5).mean((3, 4))[..., None], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(F.interpolate(cg.tensor(x), (6, 3), mode="area").numpy(),
                               np.stack([x[..., :2].mean(-1), x[..., 1:4].mean(-1), x[..., 3:].mean(-1)], -1), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic", "area"])
def test_resizing_is_differentiable(rng, mode):
    differentiable(lambda x: F.interpolate(x, (4, 2), mode=mode) ** 2, rng.standard_normal((1, 2, 3, 3)))


@pytest.mark.parametrize("options", [dict(), dict(size=2, scale_factor=2), dict(size=2, mode="cubic"), dict(size=2, mode="linear"), dict(size=(2,)),
                                     dict(size=2, align_corners=True), dict(size=0), dict(scale_factor=0.1)])
def test_resizing_refuses(options):
    with pytest.raises(ValueError, match="interpolate"):
        F.interpolate(cg.zeros(1, 1, 3, 3), **options)


# ----------------------------------------------------------------------------------------------------------------- frames
def test_pad(rng):
    x = rng.standard_normal((2, 3, 4, 5))
    for mode, name in (("constant", "constant"), ("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
        np.testing.assert_array_equal(F.pad(cg.tensor(x), (1, 2, 3, 0), mode).numpy(), np.pad(x, ((0, 0), (0, 0), (3, 0), (1, 2)), name))
        want = np.pad(x[:, :, :, :4 + (name != "wrap")], ((0, 0), (0, 0), (0, 0), (2, 0)), name)[:, :, :-2, :6]       # what is cut off does not go round
        np.testing.assert_array_equal(F.pad(cg.tensor(x), (2, -1, 0, -2), mode).numpy(), want)
        differentiable(lambda x, mode=mode: F.pad(x, (1, 2), mode) ** 2, x[0, 0, :2, :3])
    np.testing.assert_array_equal(F.pad(cg.tensor(x), (1, 1), value=7.5).numpy(), np.pad(x, ((0, 0),) * 3 + ((1, 1),), constant_values=7.5))
    for wrong in (lambda t: F.pad(t, (1,)), lambda t: F.pad(t, (1, 1, 1, 1)), lambda t: F.pad(t, (1, 1), "mirror"), lambda t: F.pad(t, (3, 0), "reflect"),
                  lambda t: F.pad(t, (0, 4), "circular"), lambda t: F.pad(t, (1, 1), "reflect", 2.0), lambda t: F.pad(t, (-2, -2))):
        with pytest.raises(ValueError, match="pad"):
            wrong(cg.zeros(3))


# ---------------------------------------------------------------------------------------------------- lengths and gates
def test_vectors(rng):
    x, y = rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
    np.testing.assert_allclose(F.normalize(cg.tensor(x)).numpy(), x / np.linalg.norm(x, axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(F.normalize(cg.tensor(x), p=1, dim=0).numpy(), x / np.abs(x).sum(0), rtol=1e-12)
    np.testing.assert_array_equal(F.normalize(cg.zeros(2, 3)).numpy(), np.zeros((2, 3)))
    cosine = (x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    np.testing.assert_allclose(F.cosine_similarity(cg.tensor(x), cg.tensor(y)).numpy(), cosine, rtol=1e-11)
    assert F.cosine_similarity(cg.tensor(x)[:, None], cg.tensor(y), dim=-1).shape == (4, 4)
    np.testing.assert_allclose(F.pairwise_distance(cg.tensor(x), cg.tensor(y)).numpy(), np.linalg.norm(x - y + 1e-6, axis=1), rtol=1e-12)
    assert F.pairwise_distance(cg.tensor(x), cg.tensor(y), p=1, keepdim=True).shape == (4, 1)
    for function in (F.cosine_similarity, F.pairwise_distance, lambda x, y: F.normalize(x * y)):
        differentiable(function, x[:2], y[:2])


def test_gates_and_random_slopes(rng):
    x = rng.standard_normal((4, 6))
    np.testing.assert_allclose(F.glu(cg.tensor(x)).numpy(), x[:, :3] / (1 + np.exp(-x[:, 3:])), rtol=1e-12)
    np.testing.assert_allclose(F.glu(cg.tensor(x), 0).numpy(), x[:2] / (1 + np.exp(-x[2:])), rtol=1e-12)
    differentiable(F.glu, x)
    with pytest.raises(ValueError, match="even length"):
        F.glu(cg.zeros(3))
    np.testing.assert_allclose(F.rrelu(cg.tensor(x)).numpy(), np.where(x > 0, x, x * (1 / 8 + 1 / 3) / 2), rtol=1e-12)
    slopes = F.rrelu(cg.full((1000,), -1.0), 0.2, 0.4, training=True).numpy()
    assert slopes.min() >= -0.4 and slopes.max() <= -0.2 and np.ptp(slopes) > 0.15
    with pytest.raises(ValueError, match="exceeds"):
        F.rrelu(cg.zeros(2), 0.5, 0.1)
    t = cg.tensor([-2.0, 0.2, 3.0])
    assert F.threshold(t, 0.5, 9.0, inplace=True) is t and t.tolist() == [9.0, 9.0, 3.0]


def test_batches(rng):
    x = rng.standard_normal((3, 1, 2, 4, 4))
    for function in (lambda x: F.unfold(x, 2), lambda x: F.interpolate(x, 3, mode="bilinear"), lambda x: F.interpolate(x, 3, mode="area"),
                     lambda x: F.pixel_shuffle(F.pad(x, (1, 0), "reflect"), 1), lambda x: F.normalize(F.glu(x))):
        want = np.stack([function(cg.tensor(one)).numpy() for one in x])
        np.testing.assert_allclose(cg.func.vmap(function)(cg.tensor(x)).numpy(), want, rtol=1e-12)
