"""Images and signals of shape (N, C, ...): resizing, patches, and channels traded for pixels."""
from __future__ import annotations

import math

import cgrad as cg

__all__ = ["channel_shuffle", "fold", "interpolate", "pixel_shuffle", "pixel_unshuffle", "unfold", "upsample"]


# ---------------------------------------------------------------------------------------------------- channels and pixels
def pixel_shuffle(input, upscale_factor):
    """Channels laid out as pixels: ``(*, C r^2, H, W)`` becomes ``(*, C, H r, W r)``.

    Parameters
    ----------
    input : Tensor, shape ``(*, C r^2, H, W)``
    upscale_factor : int
        r.

    Returns
    -------
    Tensor, shape ``(*, C, H r, W r)``

    Raises
    ------
    ValueError
        If there are fewer than three axes, or the channels are no multiple of r^2.

    Notes
    -----
    Shi et al., "Real-Time Single Image and Video Super-Resolution Using an Efficient Sub-Pixel Convolutional Neural Network", 2016.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.pixel_shuffle(cg.arange(4).reshape(4, 1, 1), 2)
    tensor([[[0, 1],
             [2, 3]]])
    """
    *batch, channels, height, width = _planes("pixel_shuffle", input)
    r = upscale_factor
    if r < 1 or channels % (r * r):
        raise ValueError(f"pixel_shuffle: {channels} channels are no multiple of upscale_factor**2 = {r * r}")
    n = len(batch)
    x = input.reshape(*batch, channels // (r * r), r, r, height, width)
    x = x.permute(*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return x.reshape(*batch, channels // (r * r), height * r, width * r)


def pixel_unshuffle(input, downscale_factor):
    """Pixels laid out as channels: ``(*, C, H r, W r)`` becomes ``(*, C r^2, H, W)``; undoes `pixel_shuffle`.

    Parameters
    ----------
    input : Tensor, shape ``(*, C, H r, W r)``
    downscale_factor : int
        r.

    Returns
    -------
    Tensor, shape ``(*, C r^2, H, W)``

    Raises
    ------
    ValueError
        If there are fewer than three axes, or height or width is no multiple of r.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.pixel_unshuffle(cg.arange(4).reshape(1, 2, 2), 2).shape
    (4, 1, 1)
    """
    *batch, channels, height, width = _planes("pixel_unshuffle", input)
    r = downscale_factor
    if r < 1 or height % r or width % r:
        raise ValueError(f"pixel_unshuffle: height {height} and width {width} must be multiples of downscale_factor {r}")
    n = len(batch)
    x = input.reshape(*batch, channels, height // r, r, width // r, r)
    x = x.permute(*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    return x.reshape(*batch, channels * r * r, height // r, width // r)


def channel_shuffle(input, groups):
    """Channels of several groups dealt out in turn: channel i of group j becomes channel ``i * groups + j``.

    Parameters
    ----------
    input : Tensor, shape ``(N, C, *)``
    groups : int
        Must divide C.

    Returns
    -------
    Tensor, same shape

    Raises
    ------
    ValueError
        If there are fewer than three axes, or `groups` does not divide C.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.channel_shuffle(cg.arange(4).reshape(1, 4, 1), 2).ravel()
    tensor([0, 2, 1, 3])
    """
    if input.ndim < 3:
        raise ValueError(f"channel_shuffle: needs an input of shape (N, C, *), got {tuple(input.shape)}")
    batch, channels, *rest = input.shape
    if groups < 1 or channels % groups:
        raise ValueError(f"channel_shuffle: {channels} channels cannot be divided into {groups} groups")
    return input.reshape(batch, groups, channels // groups, *rest).swapaxes(1, 2).reshape(*input.shape)


def _planes(name, input):
    if input.ndim < 3:
        raise ValueError(f"{name}: needs an input of shape (*, C, H, W), got {tuple(input.shape)}")
    return input.shape


# ---------------------------------------------------------------------------------------------------------------- patches
def _pair(name, what, value, least):
    pair = (value, value) if isinstance(value, int) else tuple(value)
    if len(pair) != 2 or min(pair) < least:
        raise ValueError(f"{name}: {what} must be one or two integers >= {least}, got {value}")
    return pair


def _patches(name, size, kernel_size, dilation, padding, stride):
    """For each of two axes: the place of every element of every patch in the padded axis, (kernel, patches); and the two paddings."""
    kernel, dilation = _pair(name, "kernel_size", kernel_size, 1), _pair(name, "dilation", dilation, 1)
    padding, stride = _pair(name, "padding", padding, 0), _pair(name, "stride", stride, 1)
    places = []
    for n, k, d, p, s in zip(size, kernel, dilation, padding, stride):
        count = (n + 2 * p - d * (k - 1) - 1) // s + 1
        if count < 1:
            raise ValueError(f"{name}: a kernel of {k} with dilation {d} does not fit into {n} elements with padding {p}")
        places.append(cg.arange(k).reshape(k, 1) * d + cg.arange(count) * s)
    return places, padding


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """All patches of a batch of images, one column for each.

    Parameters
    ----------
    input : Tensor, shape (N, C, H, W) or (C, H, W)
    kernel_size, dilation, padding, stride : int or (int, int)

    Returns
    -------
    Tensor, shape ``(N, C * kernel_height * kernel_width, patches)`` or the same without N

    Raises
    ------
    ValueError
        If the kernel does not fit.

    Notes
    -----
    Known as im2col.  The gradient is `fold`: the sum over all patches that contain an element.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.unfold(cg.arange(6.0).reshape(1, 1, 2, 3), (2, 2))
    tensor([[[0., 1.],
             [1., 2.],
             [3., 4.],
             [4., 5.]]])
    """
    if input.ndim not in (3, 4):
        raise ValueError(f"unfold: needs an input of shape (N, C, H, W) or (C, H, W), got {tuple(input.shape)}")
    x = input if input.ndim == 4 else input.reshape(1, *input.shape)
    batch, channels, height, width = x.shape
    (rows, columns), (top, left) = _patches("unfold", (height, width), kernel_size, dilation, padding, stride)
    x = cg.pad(x, ((0, 0), (0, 0), (top, top), (left, left)))
    x = cg.take(cg.take(x, rows.ravel(), axis=2), columns.ravel(), axis=3)
    x = x.reshape(batch, channels, *rows.shape, *columns.shape).permute(0, 1, 2, 4, 3, 5)
    x = x.reshape(batch, channels * rows.shape[0] * columns.shape[0], rows.shape[1] * columns.shape[1])
    return x if input.ndim == 4 else x.reshape(*x.shape[1:])


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Patches added up into images; each pixel is the sum over the patches that contain it.

    Parameters
    ----------
    input : Tensor, shape ``(N, C * kernel_height * kernel_width, patches)`` or the same without N
    output_size : int or (int, int)
        Height and width of the images.
    kernel_size, dilation, padding, stride : int or (int, int)
        As for `unfold`.

    Returns
    -------
    Tensor, shape (N, C, H, W) or (C, H, W)

    Raises
    ------
    ValueError
        If the shapes do not fit together.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.fold(cg.ones(1, 4, 2), (2, 3), (2, 2))
    tensor([[[[1., 2., 1.],
              [1., 2., 1.]]]])
    """
    if input.ndim not in (2, 3):
        raise ValueError(f"fold: needs an input of shape (N, C * kernel, patches) or (C * kernel, patches), got {tuple(input.shape)}")
    x = input if input.ndim == 3 else input.reshape(1, *input.shape)
    size = _pair("fold", "output_size", output_size, 1)
    (rows, columns), (top, left) = _patches("fold", size, kernel_size, dilation, padding, stride)
    kernel, patches = rows.shape[0] * columns.shape[0], rows.shape[1] * columns.shape[1]
    batch, channels = x.shape[0], x.shape[1] // kernel
    if x.shape[1] % kernel or x.shape[2] != patches:
        raise ValueError(f"fold: output_size {size} needs an input with a multiple of {kernel} rows and {patches} columns, got shape "
                         f"{tuple(input.shape)}")
    x = x.reshape(batch, channels, rows.shape[0], columns.shape[0], rows.shape[1], columns.shape[1]).permute(0, 1, 2, 4, 3, 5)
    x = x.reshape(batch, channels, rows.size, columns.size)
    height, width = size[0] + 2 * top, size[1] + 2 * left
    x = cg.index_add(cg.zeros(batch, channels, rows.size, width, dtype=x.dtype), 3, columns.ravel(), x)
    x = cg.index_add(cg.zeros(batch, channels, height, width, dtype=x.dtype), 2, rows.ravel(), x)
    x = x[:, :, top:height - top, left:width - left]
    return x if input.ndim == 3 else x.reshape(*x.shape[1:])


# --------------------------------------------------------------------------------------------------------------- resizing
def _nearest(x, axis, length, scale, exact):
    n = x.shape[axis]
    places = cg.arange(length, dtype=cg.float64)
    index = cg.floor((places + 0.5 if exact else places) * scale)
    return cg.take(x, cg.clip(index, 0, n - 1).astype(cg.int64), axis=axis)


def _sources(length, scale, align_corners):
    """Where the elements of a resized axis lie in the original one."""
    places = cg.arange(length, dtype=cg.float64)
    return places * scale if align_corners else (places + 0.5) * scale - 0.5


def _weighted(x, axis, start, weights):
    """The sum over k of ``weights[k]`` times the elements at ``start + k``, the last ones standing for what lies outside."""
    n, total = x.shape[axis], None
    for k, weight in enumerate(weights):
        index = cg.clip(start + k, 0, n - 1).astype(cg.int64)
        term = cg.take(x, index, axis=axis) * weight.astype(x.dtype).reshape(-1, *[1] * (x.ndim - axis - 1))
        total = term if total is None else total + term
    return total


def _linear(x, axis, length, scale, align_corners):
    source = cg.clamp_min(_sources(length, scale, align_corners), 0.0)
    start = cg.floor(source)
    w = source - start
    return _weighted(x, axis, start, (1 - w, w))


def cubic_weights(t):
    """Keys' convolution with a = -3/4 at the four neighbours of a point that lies t behind the second."""
    a = -0.75

    def near(d):
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d):
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return far(t + 1), near(t), near(1 - t), far(2 - t)


def _cubic(x, axis, length, scale, align_corners):
    source = _sources(length, scale, align_corners)
    start = cg.floor(source)
    return _weighted(x, axis, start - 1, cubic_weights(source - start))


def _area(x, axis, length):
    """Means over windows that cover the axis evenly."""
    n = x.shape[axis]
    places, elements = cg.arange(length).reshape(length, 1), cg.arange(n)
    first, last = places * n // length, ((places + 1) * n + length - 1) // length
    return _mixed(x, axis, cg.logical_and(elements >= first, elements < last).astype(cg.float64))


def _smooth(x, axis, length, scale, cubic):
    """Means weighted by a triangle, or by Keys' kernel with a = -1/2, as wide as the elements that become one."""
    n = x.shape[axis]
    stretch = max(scale, 1.0)
    support = (2.0 if cubic else 1.0) * stretch
    centre, elements = (cg.arange(length, dtype=cg.float64).reshape(length, 1) + 0.5) * scale, cg.arange(n, dtype=cg.float64)
    first, last = cg.clamp_min(cg.trunc(centre - support + 0.5), 0), cg.clamp_max(cg.trunc(centre + support + 0.5), n)
    d = cg.abs((elements - centre + 0.5) / stretch)
    weights = cg.where(d < 1, (1.5 * d - 2.5) * d * d + 1, ((-0.5 * d + 2.5) * d - 4) * d + 2) if cubic else 1 - d
    weights = cg.where(d < (2 if cubic else 1), weights, 0.0)
    return _mixed(x, axis, cg.where(cg.logical_and(elements >= first, elements < last), weights, 0.0))


def _mixed(x, axis, weights):
    """An axis replaced by weighted means over it, a row of weights for each."""
    weights = (weights / weights.sum(1, keepdims=True)).astype(x.dtype)
    return cg.moveaxis(cg.tensordot(x, weights, axes=((axis,), (1,))), -1, axis)


_AXES = {"nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "area": (1, 2, 3), "linear": (1,), "bilinear": (2,), "bicubic": (2,), "trilinear": (3,)}


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False):
    """Signals, images or volumes resized.

    Parameters
    ----------
    input : Tensor, shape ``(N, C, *)``
        One to three axes after the channels.
    size : int or tuple of int, optional
        The new lengths; either this or `scale_factor`.
    scale_factor : float or tuple of float, optional
        The new lengths as multiples of the old ones, rounded down.
    mode : {"nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area"}
        linear takes one axis, bilinear and bicubic two, trilinear three.
    align_corners : bool, optional
        Whether the centres of the outermost elements stay in place, or their edges (the default); linear and cubic modes only.
    recompute_scale_factor : bool, optional
        Whether positions follow from the rounded lengths and not from `scale_factor` itself.
    antialias : bool
        Whether images that get smaller are smoothed, so that no element is passed over; modes bilinear and bicubic only.

    Returns
    -------
    Tensor, shape ``(N, C, *size)``

    Raises
    ------
    ValueError
        For an unknown mode, a mode that does not fit the axes, or lengths that are not positive.

    Notes
    -----
    Gradient: each new element hands ``g`` back to the elements it was computed from, by their weights.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([[[0.0, 10.0]]])
    >>> cg.nn.functional.interpolate(x, 4, mode="linear")
    tensor([[[ 0.0000,  2.5000,  7.5000, 10.0000]]])
    >>> cg.nn.functional.interpolate(x, scale_factor=2)
    tensor([[[ 0.,  0., 10., 10.]]])
    """
    lengths = input.shape[2:]
    if mode not in _AXES:
        raise ValueError(f"interpolate: mode must be one of {', '.join(_AXES)}, got {mode!r}")
    if len(lengths) not in _AXES[mode]:
        raise ValueError(f"interpolate: mode {mode!r} takes {' or '.join(map(str, _AXES[mode]))} axes after (N, C), got shape {tuple(input.shape)}")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(f"interpolate: antialias=True is for the modes bilinear and bicubic, got {mode!r}")
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise ValueError(f"interpolate: align_corners has no meaning in mode {mode!r}")
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: give either size or scale_factor")
    given = size if scale_factor is None else scale_factor
    given = tuple(given) if isinstance(given, (tuple, list)) else (given,) * len(lengths)
    if len(given) != len(lengths):
        raise ValueError(f"interpolate: needs one number for each of {len(lengths)} axes, got {given}")
    size = given if scale_factor is None else tuple(math.floor(n * factor) for n, factor in zip(lengths, given))
    if min(size) < 1 or min(lengths) < 1:
        raise ValueError(f"interpolate: lengths must be positive, got {tuple(lengths)} -> {size}")
    x = input
    for axis, (n, length) in enumerate(zip(lengths, size), 2):
        if mode == "area":
            x = _area(x, axis, length)
            continue
        scale = n / length if scale_factor is None or recompute_scale_factor else 1 / given[axis - 2]
        if align_corners:
            scale = (n - 1) / (length - 1) if length > 1 else 0.0
        if antialias:
            x = _smooth(x, axis, length, scale, mode == "bicubic")
        elif mode.startswith("nearest"):
            x = _nearest(x, axis, length, scale, mode == "nearest-exact")
        else:
            x = (_cubic if mode == "bicubic" else _linear)(x, axis, length, scale, align_corners)
    return x


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The older name of `interpolate`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.upsample(cg.tensor([[[1.0, 2.0]]]), 4)
    tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor, mode, align_corners)
