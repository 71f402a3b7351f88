"""Pooling: the largest element, the mean or the norm of windows that slide over signals, images and volumes."""
from __future__ import annotations

import math

import cgrad as cg
from cgrad.ops.pool import adaptive_windows, average_pool, even_windows, max_unpool
from cgrad.ops.pool import max_pool as _max_pool

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d",
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d", "max_pool2d", "max_pool3d", "max_unpool1d",
    "max_unpool2d", "max_unpool3d",
]


# ------------------------------------------------------------------------------------------------------------ largest elements
def _largest(name, x, windows, return_indices):
    values, places = _max_pool(x, name, windows)
    return (values, places.astype(cg.int64)) if return_indices else values


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element of each window over the last axis; see `max_pool2d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.max_pool1d(cg.tensor([[1.0, 5.0, 2.0, 3.0]]), 2)
    tensor([[5., 3.]])
    """
    name = "max_pool1d"
    return _largest(name, input, even_windows(name, input, 1, kernel_size, stride, padding, dilation, ceil_mode), return_indices)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element of each window over the last two axes.

    Parameters
    ----------
    input : Tensor, shape (N, C, H, W) or (C, H, W)
        Integer or floating point.
    kernel_size : int or (int, int)
        Elements of a window along each axis.
    stride : int or (int, int), optional
        From one window to the next; `kernel_size` if not given.
    padding : int or (int, int)
        Elements before and after each axis, as if they were minus infinity; at most half of the kernel.
    dilation : int or (int, int)
        From one element of a window to the next.
    ceil_mode : bool
        Whether a last window that reaches out of the padded axis counts; it has to start inside or in the padding before.
    return_indices : bool
        Whether the places of the largest elements are wanted, too.

    Returns
    -------
    Tensor, shape (N, C, H', W') or (C, H', W')
        With `return_indices` a pair of it and an int64 Tensor of the same shape: each place as a number in its plane, row by row, as
        `max_unpool2d` takes it.

    Raises
    ------
    ValueError
        If the sizes do not fit the input, or the input is empty along another axis than N.
    TypeError
        For bools.

    Notes
    -----
    A NaN in a window wins.  Gradient: ``g`` goes to the largest element, of equal ones to the first.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([[[1.0, 2.0, 3.0, 4.0], [8.0, 7.0, 6.0, 5.0]]])
    >>> cg.nn.functional.max_pool2d(x, 2, return_indices=True)
    (tensor([[[8., 6.]]]), tensor([[[4, 6]]]))
    """
    name = "max_pool2d"
    return _largest(name, input, even_windows(name, input, 2, kernel_size, stride, padding, dilation, ceil_mode), return_indices)


def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element of each window over the last three axes; see `max_pool2d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.max_pool3d(cg.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[7.]]]])
    """
    name = "max_pool3d"
    return _largest(name, input, even_windows(name, input, 3, kernel_size, stride, padding, dilation, ceil_mode), return_indices)


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """The largest elements of `output_size` windows that cover the last axis evenly; see `adaptive_max_pool2d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.adaptive_max_pool1d(cg.tensor([[1.0, 5.0, 2.0]]), 2)
    tensor([[5., 5.]])
    """
    return _largest("adaptive_max_pool1d", input, adaptive_windows("adaptive_max_pool1d", input, 1, output_size), return_indices)


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """The largest element of each of the windows that cover the last two axes evenly.

    Parameters
    ----------
    input : Tensor, shape (N, C, H, W) or (C, H, W)
    output_size : int or (int or None, int or None)
        How many windows along each axis; None for as many as there are elements.
    return_indices : bool
        Whether the places are wanted, too, as for `max_pool2d`.

    Returns
    -------
    Tensor, shape ``(N, C, *output_size)`` or ``(C, *output_size)``; with `return_indices` a pair

    Raises
    ------
    ValueError
        For negative sizes, or an input that is empty along another axis than N.

    Notes
    -----
    Window i of m over n elements goes from ``floor(i n / m)`` to ``ceil((i + 1) n / m)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.adaptive_max_pool2d(cg.arange(6.0).reshape(1, 2, 3), (1, 2))
    tensor([[[4., 5.]]])
    """
    return _largest("adaptive_max_pool2d", input, adaptive_windows("adaptive_max_pool2d", input, 2, output_size), return_indices)


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """The largest element of each of the windows that cover the last three axes evenly; see `adaptive_max_pool2d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.adaptive_max_pool3d(cg.arange(8.0).reshape(1, 2, 2, 2), (1, 1, 2))
    tensor([[[[6., 7.]]]])
    """
    return _largest("adaptive_max_pool3d", input, adaptive_windows("adaptive_max_pool3d", input, 3, output_size), return_indices)


# ----------------------------------------------------------------------------------------------------------------------- means
def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """The mean of each window over the last axis; see `avg_pool2d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.avg_pool1d(cg.tensor([[1.0, 5.0, 2.0, 3.0]]), 2)
    tensor([[3.0000, 2.5000]])
    """
    return average_pool(input, even_windows("avg_pool1d", input, 1, kernel_size, stride, padding, 1, ceil_mode), bool(count_include_pad), None)


def avg_pool2d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    """The mean of each window over the last two axes.

    Parameters
    ----------
    input : Tensor, shape (N, C, H, W) or (C, H, W)
        Floating point.
    kernel_size : int or (int, int)
        Elements of a window along each axis.
    stride : int or (int, int), optional
        From one window to the next; `kernel_size` if not given.
    padding : int or (int, int)
        Zeros before and after each axis; at most half of the kernel.
    ceil_mode : bool
        Whether a last window that reaches out of the padded axis counts; it has to start inside or in the padding before.
    count_include_pad : bool
        Whether the zeros of the padding count in the mean; what lies beyond them never does.
    divisor_override : int, optional
        Divides the sum of a window instead of the number of its elements.

    Returns
    -------
    Tensor, shape (N, C, H', W') or (C, H', W')

    Raises
    ------
    ValueError
        If the sizes do not fit the input, the input is empty along another axis than N, or the divisor is 0.
    TypeError
        For integers and bools.

    Notes
    -----
    Sums are taken in float64.  Gradient: each element of a window gets ``g`` by the divisor of that window.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.avg_pool2d(cg.arange(8.0).reshape(1, 2, 4), 2)
    tensor([[[2.5000, 4.5000]]])
    """
    return _average("avg_pool2d", input, 2, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    """The mean of each window over the last three axes; see `avg_pool2d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.avg_pool3d(cg.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[3.5000]]]])
    """
    return _average("avg_pool3d", input, 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _average(name, x, n_axes, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor):
    if divisor == 0:
        raise ValueError(f"{name}: divisor_override must not be 0")
    return average_pool(x, even_windows(name, x, n_axes, kernel_size, stride, padding, 1, ceil_mode), bool(count_include_pad), divisor)


def adaptive_avg_pool1d(input, output_size):
    """The means of `output_size` windows that cover the last axis evenly; see `adaptive_avg_pool2d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.adaptive_avg_pool1d(cg.tensor([[1.0, 5.0, 2.0]]), 2)
    tensor([[3.0000, 3.5000]])
    """
    return _adaptive_mean("adaptive_avg_pool1d", input, 1, output_size)


def adaptive_avg_pool2d(input, output_size):
    """The mean of each of the windows that cover the last two axes evenly.

    Parameters
    ----------
    input : Tensor, shape (N, C, H, W) or (C, H, W)
        Floating point.
    output_size : int or (int or None, int or None)
        How many windows along each axis; None for as many as there are elements.

    Returns
    -------
    Tensor, shape ``(N, C, *output_size)`` or ``(C, *output_size)``

    Raises
    ------
    ValueError
        For negative sizes, or an input that is empty along another axis than N.
    TypeError
        For integers and bools.

    Notes
    -----
    Window i of m over n elements goes from ``floor(i n / m)`` to ``ceil((i + 1) n / m)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.adaptive_avg_pool2d(cg.arange(6.0).reshape(1, 2, 3), (1, None))
    tensor([[[1.5000, 2.5000, 3.5000]]])
    """
    return _adaptive_mean("adaptive_avg_pool2d", input, 2, output_size)


def adaptive_avg_pool3d(input, output_size):
    """The mean of each of the windows that cover the last three axes evenly; see `adaptive_avg_pool2d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.adaptive_avg_pool3d(cg.arange(8.0).reshape(1, 2, 2, 2), 1)
    tensor([[[[3.5000]]]])
    """
    return _adaptive_mean("adaptive_avg_pool3d", input, 3, output_size)


def _adaptive_mean(name, x, n_axes, output_size):
    windows = adaptive_windows(name, x, n_axes, output_size)
    if all([n_out == 1 for _, n_out, *_ in windows]) and x.dtype.is_floating_point:
        return cg.mean(x, tuple(range(-n_axes, 0)), keepdims=True)
    return average_pool(x, windows, False, None)


# ----------------------------------------------------------------------------------------------------------------------- norms
def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of each window over the last axis; see `lp_pool2d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.lp_pool1d(cg.tensor([[3.0, 4.0]]), 2, 2)
    tensor([[5.]])
    """
    return _norm("lp_pool1d", input, 1, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of each window over the last two axes: ``sum(x**p)**(1/p)``.

    Parameters
    ----------
    input : Tensor, shape (N, C, H, W) or (C, H, W)
        Floating point.
    norm_type : number
        p; not 0.
    kernel_size, stride, ceil_mode
        As for `avg_pool2d`.

    Returns
    -------
    Tensor, shape (N, C, H', W') or (C, H', W')

    Raises
    ------
    ValueError
        If the sizes do not fit the input, or p is 0.

    Notes
    -----
    As in PyTorch elements are raised to p with their sign, so that a sum may be negative and its root NaN, and a window that `ceil_mode` cuts
    off counts as a full one with the same mean.  Gradient: ``g * (x / out)**(p - 1)``, 0 for a window whose sum is 0.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.lp_pool2d(cg.tensor([[[3.0, 4.0]]]), 2, (1, 2))
    tensor([[[5.]]])
    """
    return _norm("lp_pool2d", input, 2, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of each window over the last three axes; see `lp_pool2d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.lp_pool3d(cg.ones(1, 2, 2, 1), 2, (2, 2, 1))
    tensor([[[[2.]]]])
    """
    return _norm("lp_pool3d", input, 3, norm_type, kernel_size, stride, ceil_mode)


def _norm(name, x, n_axes, p, kernel_size, stride, ceil_mode):
    if p == 0:
        raise ValueError(f"{name}: norm_type must not be 0")
    windows = even_windows(name, x, n_axes, kernel_size, stride, 0, 1, ceil_mode)
    total = average_pool(x ** p, windows, True, None) * math.prod(kernel for _, _, kernel, *_ in windows)
    return (cg.sign(total) * cg.relu(cg.abs(total))) ** (1 / p)           # total itself, with a gradient of 0 at 0


# ------------------------------------------------------------------------------------------------------------------- unpooling
def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """What `max_pool1d` chose put back to its places, zeros elsewhere; see `max_unpool2d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.max_unpool1d(cg.tensor([[5.0, 3.0]]), cg.tensor([[1, 3]]), 2)
    tensor([[0., 5., 0., 3.]])
    """
    return _unpool("max_unpool1d", input, indices, 1, kernel_size, stride, padding, output_size)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """What `max_pool2d` chose put back to its places, zeros elsewhere.

    Parameters
    ----------
    input : Tensor, shape (N, C, H, W) or (C, H, W)
    indices : Tensor, same shape
        Integers: for each element its place in its plane, row by row.
    kernel_size, stride, padding
        As they were for `max_pool2d`.
    output_size : sequence of int, optional
        The lengths of the last two axes of the result (or its whole shape), where those that follow from the kernel are not the wanted ones.

    Returns
    -------
    Tensor, shape (N, C, H', W') or (C, H', W')
        Without `output_size` the axes have ``(n - 1) * stride - 2 * padding + kernel_size`` elements.

    Raises
    ------
    ValueError
        If shapes do not fit, or `output_size` differs from what follows from the kernel by a stride or more.
    IndexError
        If an index lies outside of its plane.

    Notes
    -----
    Of elements with equal places the last one stays.  Gradient: ``g`` at the places, for each of equal ones, as in PyTorch.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.max_unpool2d(cg.tensor([[[8.0]]]), cg.tensor([[[2]]]), 2)
    tensor([[[0., 0.],
             [8., 0.]]])
    """
    return _unpool("max_unpool2d", input, indices, 2, kernel_size, stride, padding, output_size)


def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """What `max_pool3d` chose put back to its places, zeros elsewhere; see `max_unpool2d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.max_unpool3d(cg.tensor([[[[8.0]]]]), cg.tensor([[[[1]]]]), (1, 1, 2))
    tensor([[[[0., 8.]]]])
    """
    return _unpool("max_unpool3d", input, indices, 3, kernel_size, stride, padding, output_size)


def _each(name, what, value, n):
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    values = values * n if len(values) == 1 else values
    if len(values) != n:
        raise ValueError(f"{name}: {what} must be one integer or {n}, got {value}")
    return values


def _unpool(name, x, indices, n_axes, kernel_size, stride, padding, output_size):
    if x.ndim not in (n_axes + 1, n_axes + 2) or indices.shape != x.shape:
        raise ValueError(f"{name}: needs an input with {n_axes + 1} or {n_axes + 2} axes and indices of its shape, got {tuple(x.shape)} and "
                         f"{tuple(indices.shape)}")
    kernel, padding = _each(name, "kernel_size", kernel_size, n_axes), _each(name, "padding", padding, n_axes)
    stride = kernel if stride in (None, (), []) else _each(name, "stride", stride, n_axes)
    lead = x.shape[:-n_axes]
    size = [(n - 1) * s - 2 * p + k for n, k, s, p in zip(x.shape[-n_axes:], kernel, stride, padding)]
    if output_size is not None:
        wanted = list(output_size)[-n_axes:]
        if len(output_size) not in (n_axes, x.ndim) or any(abs(m - n) >= s for m, n, s in zip(wanted, size, stride)):
            raise ValueError(f"{name}: output_size must give {n_axes} lengths that differ from {size} by less than the stride {stride}, got "
                             f"{tuple(output_size)}")
        size = wanted
    if min(size) < 1:
        raise ValueError(f"{name}: the result would have axes of lengths {size}; they must be positive")
    indices, x = [t.reshape(*lead, math.prod(t.shape[-n_axes:])) for t in (indices, x)]
    return max_unpool(x, indices, math.prod(size)).reshape(*lead, *size)
