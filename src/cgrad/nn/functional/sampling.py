"""Images and volumes read at any points: grid_sample, and the grids of affine maps."""
from __future__ import annotations

import math

import cgrad as cg
from cgrad.nn.functional.image import cubic_weights
from cgrad.ops.pool import sample

__all__ = ["affine_grid", "grid_sample"]

_PADDING = ("zeros", "border", "reflection")


# ---------------------------------------------------------------------------------------------------------------- coordinates
def _reflected(x, low, high):
    """Coordinates folded back into [low, high]."""
    span = high - low
    if span == 0:
        return x * 0
    x = x - low
    x = cg.where(x < 0, -x, x)                  # not abs, whose slope at 0 is 0
    flips = cg.floor(x / span)
    rest = x - flips * span
    return cg.where(flips % 2 == 0, rest, span - rest) + low


def _inside(x, n, padding_mode, align_corners):
    """Coordinates of an axis of n elements brought into [0, n - 1], unless padding is zeros."""
    if padding_mode == "reflection":
        x = _reflected(x, 0.0, n - 1.0) if align_corners else _reflected(x, -0.5, n - 0.5)
    return x if padding_mode == "zeros" else cg.where(x <= 0, 0.0, cg.where(x >= n - 1, n - 1.0, x))         # clip has a slope at its bounds


def _places(x, n):
    """Whole coordinates as numbers in an axis of n elements, and which of them lie in it."""
    x = x.detach()
    inside = cg.logical_and(x >= 0, x <= n - 1)
    return cg.where(inside, x, 0.0).astype(cg.int32), inside


def _axis_taps(x, n, mode, padding_mode, align_corners):
    """For one axis: (place, inside, weight) of each element that a point reads."""
    x = (x + 1) * (0.5 * (n - 1)) if align_corners else (x + 1) * (0.5 * n) - 0.5
    if mode == "bicubic":                       # each of the four elements is padded, not the point
        x = cg.clip(x, -4.0 - n, 2.0 * n + 4.0) if padding_mode != "reflection" else x
        start = cg.floor(x.detach())
        return [(*_places(_inside(start + k, n, padding_mode, align_corners), n), w) for k, w in enumerate(cubic_weights(x - start), -1)]
    x = _inside(x, n, padding_mode, align_corners)
    if padding_mode == "zeros":                 # beyond this all weights count nothing; keeps infinity out of the arithmetic
        x = cg.clamp_max(cg.clamp_min(x, -2.0), n + 1.0)
    if mode == "nearest":
        return [(*_places(cg.round(x), n), None)]
    start = cg.floor(x.detach())
    w = x - start
    return [(*_places(start, n), 1 - w), (*_places(start + 1, n), w)]


# ------------------------------------------------------------------------------------------------------------------ public
def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """Images or volumes read at the points of a grid.

    Parameters
    ----------
    input : Tensor, shape (N, C, H, W) or (N, C, D, H, W)
        Floating point.
    grid : Tensor, shape (N, H', W', 2) or (N, D', H', W', 3)
        Points as (x, y) or (x, y, z), x along the last axis of `input`; -1 and 1 are the two ends of an axis.
    mode : {"bilinear", "nearest", "bicubic"}
        How values between elements are made; bilinear means trilinear for volumes, bicubic is for images only.
    padding_mode : {"zeros", "border", "reflection"}
        What lies outside: zeros, the outermost elements, or the image mirrored at its ends.
    align_corners : bool, optional
        Whether -1 and 1 are the centres of the outermost elements, or their outer edges (the default).

    Returns
    -------
    Tensor, shape (N, C, H', W') or (N, C, D', H', W')

    Raises
    ------
    ValueError
        If shapes do not fit, `input` is empty along another axis than N, or a mode is unknown or not for volumes.
    TypeError
        If one of the two is not floating point.

    Notes
    -----
    The nearest element is that of the coordinate rounded, halves to even.  Gradient: `input` gets ``g`` times the weights with which its
    elements were read; `grid` the slope between the elements around the point: of those to the right where it lies on one, 0 where it was
    moved to the border or lies on it, and 0 in the mode "nearest".  A coordinate that is NaN gives NaN, but in the mode "nearest" 0 or an element.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([[[[0.0, 10.0], [20.0, 30.0]]]])
    >>> cg.nn.functional.grid_sample(x, cg.tensor([[[[0.0, 0.0], [1.0, 0.5]]]]), align_corners=True)
    tensor([[[[15., 25.]]]])
    """
    n_axes = input.ndim - 2
    if n_axes not in (2, 3) or grid.ndim != input.ndim or grid.shape[-1] != n_axes or grid.shape[0] != input.shape[0] or 0 in input.shape[1:]:
        raise ValueError("grid_sample: needs an input of shape (N, C, H, W) and a grid of shape (N, H', W', 2), or (N, C, D, H, W) and "
                         f"(N, D', H', W', 3), with elements in each image, got {tuple(input.shape)} and {tuple(grid.shape)}")
    if mode not in ("bilinear", "nearest", "bicubic") or mode == "bicubic" and n_axes == 3:
        raise ValueError(f"grid_sample: mode must be bilinear, nearest, or (for images) bicubic, got {mode!r} for an input of shape {tuple(input.shape)}")
    if padding_mode not in _PADDING:
        raise ValueError(f"grid_sample: padding_mode must be one of {', '.join(_PADDING)}, got {padding_mode!r}")
    if not (input.dtype.is_floating_point and grid.dtype.is_floating_point):
        raise TypeError(f"grid_sample: input and grid must be floating point, got {input.dtype} and {grid.dtype}")
    lengths = input.shape[2:]
    if math.prod(lengths) >= 2 ** 31:
        raise ValueError(f"grid_sample: images of 2**31 elements and more are too large, got shape {tuple(input.shape)}")
    batch, points = input.shape[0], math.prod(grid.shape[1:-1])
    grid_rows = grid.reshape(batch, points, n_axes)
    taps = [(0, True, None)]
    for axis, n in enumerate(lengths):          # the taps of all axes so far, with those of the next one
        found = _axis_taps(grid_rows[:, :, n_axes - 1 - axis], n, mode, padding_mode, align_corners)
        taps = [(place * n + p, cg.logical_and(inside, i), w if weight is None else weight if w is None else weight * w)
                for place, inside, weight in taps for p, i, w in found]
    places = cg.stack([cg.where(inside, place, -1) for place, inside, _ in taps], 1).astype(cg.int32)
    weights = cg.ones(batch, 1, points, dtype=grid.dtype) if mode == "nearest" else cg.stack([w for _, _, w in taps], 1)
    out = sample(input.reshape(batch, input.shape[1], math.prod(lengths)), weights, places)
    return out.reshape(batch, input.shape[1], *grid.shape[1:-1])


def affine_grid(theta, size, align_corners=None):
    """The grid of points for `grid_sample` that an affine map makes of the elements of an image or a volume.

    Parameters
    ----------
    theta : Tensor, shape (N, 2, 3) or (N, 3, 4)
        Affine maps: a matrix and, as its last column, a shift.
    size : sequence of int
        Shape (N, C, H, W) or (N, C, D, H, W) of the image that is wanted.
    align_corners : bool, optional
        As for `grid_sample`.

    Returns
    -------
    Tensor, shape (N, H, W, 2) or (N, D, H, W, 3)

    Raises
    ------
    ValueError
        If shapes do not fit or lengths are not positive.
    TypeError
        If `theta` is not floating point.

    Examples
    --------
    >>> import cgrad as cg
    >>> stretch_and_shift = cg.tensor([[[2.0, 0.0, 0.5], [0.0, 2.0, 0.5]]])
    >>> cg.nn.functional.affine_grid(stretch_and_shift, (1, 1, 1, 2), align_corners=True)
    tensor([[[[-1.5000,  0.5000],
              [ 2.5000,  0.5000]]]])
    """
    size = tuple(size)
    n_axes = len(size) - 2
    if n_axes not in (2, 3) or theta.shape != (size[0], n_axes, n_axes + 1) or min(size[1:]) < 1:
        raise ValueError("affine_grid: needs maps of shape (N, 2, 3) for a size (N, C, H, W), or (N, 3, 4) for (N, C, D, H, W), all positive, got "
                         f"{tuple(theta.shape)} and {size}")
    if not theta.dtype.is_floating_point:
        raise TypeError(f"affine_grid: theta must be floating point, got {theta.dtype}")
    points = []
    for axis in reversed(range(n_axes)):
        n = size[2 + axis]
        x = cg.linspace(-1.0, 1.0, n, dtype=theta.dtype) if n > 1 else cg.zeros(1, dtype=theta.dtype)
        x = (x if align_corners else x * ((n - 1) / n)).reshape(*[-1 if k == axis else 1 for k in range(n_axes)])
        points.append(cg.broadcast_to(x, size[2:]).ravel())
    points = cg.stack([*points, cg.ones(math.prod(size[2:]), dtype=theta.dtype)], 1)
    return (points @ theta.mT).reshape(size[0], *size[2:], n_axes)
