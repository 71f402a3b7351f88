"""Max pooling over windows at random places (fractional max pooling)."""
from __future__ import annotations

import math

import cgrad as cg
from cgrad.core.forward.conv import numbers

__all__ = ["fractional_max_pool2d", "fractional_max_pool3d"]


def fractional_max_pool2d(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
    """The largest element of each of windows that follow one another at random steps.

    Parameters
    ----------
    input : Tensor, shape (N, C, H, W) or (C, H, W)
    kernel_size : int or pair of int
    output_size : int or pair of int, optional
        The number of windows along each axis.
    output_ratio : float or pair of float, optional
        The same as a share of the input's size, in (0, 1); one of the two is needed.
    return_indices : bool, default False
        Give the places of the largest elements as well, as `max_unpool2d` takes them.
    _random_samples : Tensor, shape (N, C, 2), optional
        Numbers in [0, 1) in place of random ones, for W and H.

    Raises
    ------
    ValueError
        If the sizes do not fit.

    Notes
    -----
    Window i of n along an axis of size s begins at ``floor((i + u) * a) - floor(u * a)`` with a = (s - kernel) / (n - 1), the last at
    s - kernel. The gradient goes to the first of equal largest elements. Graham, "Fractional Max-Pooling", 2014.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.fractional_max_pool2d(cg.randn(20, 16, 50, 32), 3, output_size=(13, 12)).shape
    (20, 16, 13, 12)
    """
    return _pool("fractional_max_pool2d", input, kernel_size, output_size, output_ratio, return_indices, _random_samples, 2)


def fractional_max_pool3d(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
    """`fractional_max_pool2d` of input of shape (N, C, D, H, W) or (C, D, H, W); the samples are for D, H and W.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.fractional_max_pool3d(cg.randn(2, 3, 8, 8, 8), 3, output_ratio=0.5).shape
    (2, 3, 4, 4, 4)
    """
    return _pool("fractional_max_pool3d", input, kernel_size, output_size, output_ratio, return_indices, _random_samples, 3)


def _pool(name, input, kernel_size, output_size, output_ratio, return_indices, samples, n):
    if input.ndim not in (n + 1, n + 2):
        raise ValueError(f"{name}: the input must have {n + 1} or {n + 2} axes, got shape {tuple(input.shape)}")
    x = input if input.ndim == n + 2 else input.unsqueeze(0)
    space, kernel = x.shape[2:], numbers(name, "kernel_size", kernel_size, n, 1)
    if (output_size is None) == (output_ratio is None):
        raise ValueError(f"{name}: give either output_size or output_ratio")
    if output_size is None:
        ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * n
        if len(ratios) != n or not all(0 < ratio < 1 for ratio in ratios):
            raise ValueError(f"{name}: output_ratio must be a number in (0, 1) or {n} of them, got {output_ratio!r}")
        output_size = tuple([int(size * ratio) for size, ratio in zip(space, ratios)])
    sizes = numbers(name, "output_size", output_size, n, 1)
    if any(k + out - 1 > size for k, out, size in zip(kernel, sizes, space)):
        raise ValueError(f"{name}: {sizes} windows of size {kernel} do not fit into {tuple(space)}")
    if samples is None:
        samples = cg.rand(*x.shape[:2], n, dtype=x.dtype)
    elif tuple(samples.shape) != (*x.shape[:2], n):
        raise ValueError(f"{name}: the random samples must have shape {(*x.shape[:2], n)}, got {tuple(samples.shape)}")
    order = (1, 0) if n == 2 else (0, 1, 2)              # PyTorch's: the samples of two axes are for W and H
    places = 0
    for axis, (size, k, out) in enumerate(zip(space, kernel, sizes)):
        starts = _starts(samples.detach()[..., order[axis]].unsqueeze(-1), size, k, out)
        along = (starts.unsqueeze(-1) + cg.arange(k)) * math.prod(space[axis + 1:])
        places = places + along.reshape(*x.shape[:2], *[m for a in range(n) for m in ((out, k) if a == axis else (1, 1))])
    windows = (0, 1, *range(2, 2 + 2 * n, 2), *range(3, 3 + 2 * n, 2))
    places = places.permute(windows).reshape(*x.shape[:2], math.prod(sizes), -1)
    flat = x.reshape(*x.shape[:2], -1)
    values = cg.take_along_axis(flat, places.reshape(*x.shape[:2], -1), axis=2).reshape(places.shape)
    best = values.detach().argmax(axis=3, keepdims=True)
    shape = (*input.shape[:-n], *sizes)
    out = cg.take_along_axis(values, best, axis=3).reshape(shape)
    return (out, cg.take_along_axis(places, best, axis=3).reshape(shape)) if return_indices else out


def _starts(u, size, kernel, n):
    """Where each of n windows begins, for samples of shape (..., 1)."""
    if n == 1:
        return cg.full(u.shape, size - kernel, dtype=cg.int64)
    step = (size - kernel) / (n - 1)
    starts = ((cg.arange(n - 1) + u) * step).astype(cg.int64) - (u * step).astype(cg.int64)
    return cg.concat([starts, cg.full(u.shape, size - kernel, dtype=cg.int64)], axis=-1)
