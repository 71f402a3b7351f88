"""Layers of convolutions: Conv1d to Conv3d, ConvTranspose1d to ConvTranspose3d."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import cgrad as cg
from cgrad.core.device import check_device
from cgrad.core.forward.conv import numbers
from cgrad.nn import functional as F
from cgrad.nn import init
from cgrad.nn.module import Module, check_sizes
from cgrad.nn.parameter import Parameter

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _ConvNd(Module):
    """What all of them share: checked options, parameters and how they start.  `shape` is that of the weight but for the kernel."""

    ndim = 0

    def _set(self, shape, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, modes, dtype):
        name, n = type(self).__name__, self.ndim
        if padding_mode not in modes:
            raise ValueError(f"{name}: padding_mode must be {' or '.join(map(repr, modes))}, got {padding_mode!r}")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = numbers(name, "kernel_size", kernel_size, n, 1)
        self.stride = numbers(name, "stride", stride, n, 1)
        self.padding = padding if isinstance(padding, str) else numbers(name, "padding", padding, n, 0)
        self.dilation = numbers(name, "dilation", dilation, n, 1)
        self.groups = groups
        self.padding_mode = padding_mode
        self.weight = Parameter(cg.empty((*shape, *self.kernel_size), dtype=dtype))
        self.register_parameter("bias", Parameter(cg.empty((out_channels,), dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw new values."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(math.prod(self.weight.shape[1:]))
            init.uniform_(self.bias, -bound, bound)

    def _tensors(self):
        own = self._parameters           # an attribute that is no plain one costs a microsecond to find
        try:
            return own["weight"], own["bias"]
        except KeyError:                 # deleted, and perhaps replaced by something that is no parameter
            return self.weight, self.bias

    def extra_repr(self):
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        usual = {"padding": (0,) * self.ndim, "dilation": (1,) * self.ndim, "output_padding": (0,) * self.ndim, "groups": 1}
        parts += [f"{what}={getattr(self, what)}" for what, value in usual.items() if getattr(self, what, value) != value]
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


def _channels(layer, in_channels, out_channels, groups):
    check_sizes(layer, in_channels=in_channels, out_channels=out_channels, groups=groups)
    for what, n in (("in_channels", in_channels), ("out_channels", out_channels)):
        if n % groups:
            raise ValueError(f"{type(layer).__name__}: {what}={n} cannot be divided into {groups} groups")


class _Conv(_ConvNd):

    function: Callable[..., Any]

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros",
                 device=None, dtype=None):
        check_device(type(self).__name__, device)
        super().__init__()
        _channels(self, in_channels, out_channels, groups)
        self._set((out_channels, in_channels // groups), in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
                  padding_mode, ("zeros", "reflect", "replicate", "circular"), dtype)
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f'{type(self).__name__}: padding must be "same", "valid" or numbers, got {padding!r}')
        if padding == "same" and self.stride != (1,) * self.ndim:
            raise ValueError(f'{type(self).__name__}: padding="same" works with stride 1 only, got stride={stride!r}; pass numbers')

    def _frame(self):
        """The widths of the padding as `pad` takes them: (before, after) of the last axis first."""
        if self.padding == "valid":
            return [0, 0] * self.ndim
        if self.padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
            return [width for total in reversed(totals) for width in (total // 2, total - total // 2)]
        return [width for p in reversed(self.padding) for width in (p, p)]

    def forward(self, input):
        weight, bias = self._tensors()
        if self.padding_mode == "zeros":
            return self.function(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        return self.function(F.pad(input, self._frame(), self.padding_mode), weight, bias, self.stride, 0, self.dilation, self.groups)


class _ConvTranspose(_ConvNd):

    function: Callable[..., Any]

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1,
                 padding_mode="zeros", device=None, dtype=None):
        check_device(type(self).__name__, device)
        super().__init__()
        name = type(self).__name__
        _channels(self, in_channels, out_channels, groups)
        self.output_padding = numbers(name, "output_padding", output_padding, self.ndim, 0)
        self._set((in_channels, out_channels // groups), in_channels, out_channels, kernel_size, stride,
                  numbers(name, "padding", padding, self.ndim, 0), dilation, groups, bias, padding_mode, ("zeros",), dtype)

    def _output_padding(self, input, output_size):
        """What makes the result as large as `output_size` says, with or without batch and channels."""
        n = self.ndim
        wanted = tuple(output_size)[-n:]
        least = [(extent - 1) * s - 2 * p + d * (k - 1) + 1
                 for extent, s, p, d, k in zip(input.shape[-n:], self.stride, self.padding, self.dilation, self.kernel_size)]
        if len(output_size) not in (n, input.ndim) or any(not low <= size < low + s for size, low, s in zip(wanted, least, self.stride)):
            raise ValueError(f"{type(self).__name__}: output_size must have {n} or {input.ndim} numbers, the last {n} of them from {least} "
                             f"to {[low + s - 1 for low, s in zip(least, self.stride)]} for an input of shape {tuple(input.shape)}, "
                             f"got {tuple(output_size)}")
        return tuple([size - low for size, low in zip(wanted, least)])

    def forward(self, input, output_size=None):
        weight, bias = self._tensors()
        more = self.output_padding if output_size is None else self._output_padding(input, output_size)
        return self.function(input, weight, bias, self.stride, self.padding, more, self.groups, self.dilation)


class Conv1d(_Conv):
    """Convolution along one axis: `cgrad.nn.functional.conv1d` with a weight and a bias of its own.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size : int
    stride, dilation : int, default 1
    padding : int, "same" or "valid", default 0
    groups : int, default 1
    bias : bool, default True
    padding_mode : {"zeros", "reflect", "replicate", "circular"}
        What the padding holds.
    dtype : dtype, optional
        Default: the default floating dtype.

    Attributes
    ----------
    weight : Parameter, shape (out_channels, in_channels / groups, kernel_size)
    bias : Parameter, shape (out_channels,), or None

    Notes
    -----
    Both start uniform in ``(-b, b)`` with ``b = 1 / sqrt(in_channels / groups * prod(kernel_size))``, as in PyTorch.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Conv1d(2, 8, 3, padding=1)(cg.ones((4, 2, 5))).shape
    (4, 8, 5)
    """

    ndim = 1
    function: Callable[..., Any] = staticmethod(F.conv1d)


class Conv2d(_Conv):
    """Convolution along two axes: `cgrad.nn.functional.conv2d` with a weight and a bias of its own.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size : int or (int, int)
    stride, dilation : int or (int, int), default 1
    padding : int or (int, int), "same" or "valid", default 0
    groups : int, default 1
    bias : bool, default True
    padding_mode : {"zeros", "reflect", "replicate", "circular"}
        What the padding holds.
    dtype : dtype, optional
        Default: the default floating dtype.

    Attributes
    ----------
    weight : Parameter, shape ``(out_channels, in_channels / groups, *kernel_size)``
    bias : Parameter, shape (out_channels,), or None

    Notes
    -----
    Both start uniform in ``(-b, b)`` with ``b = 1 / sqrt(in_channels / groups * prod(kernel_size))``, as in PyTorch.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Conv2d(2, 8, 3, padding=1)(cg.ones((4, 2, 5, 6))).shape
    (4, 8, 5, 6)
    """

    ndim = 2
    function: Callable[..., Any] = staticmethod(F.conv2d)


class Conv3d(_Conv):
    """Convolution along three axes: `cgrad.nn.functional.conv3d` with a weight and a bias of its own.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size : int or (int, int, int)
    stride, dilation : int or (int, int, int), default 1
    padding : int or (int, int, int), "same" or "valid", default 0
    groups : int, default 1
    bias : bool, default True
    padding_mode : {"zeros", "reflect", "replicate", "circular"}
        What the padding holds.
    dtype : dtype, optional
        Default: the default floating dtype.

    Attributes
    ----------
    weight : Parameter, shape ``(out_channels, in_channels / groups, *kernel_size)``
    bias : Parameter, shape (out_channels,), or None

    Notes
    -----
    Both start uniform in ``(-b, b)`` with ``b = 1 / sqrt(in_channels / groups * prod(kernel_size))``, as in PyTorch.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Conv3d(2, 8, 3, padding=1)(cg.ones((4, 2, 3, 5, 6))).shape
    (4, 8, 3, 5, 6)
    """

    ndim = 3
    function: Callable[..., Any] = staticmethod(F.conv3d)


class ConvTranspose1d(_ConvTranspose):
    """Transposed convolution along one axis: `cgrad.nn.functional.conv_transpose1d` with a weight and a bias of its own.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size : int
    stride, dilation : int, default 1
    padding, output_padding : int, default 0
    groups : int, default 1
    bias : bool, default True
    padding_mode : {"zeros"}
    dtype : dtype, optional
        Default: the default floating dtype.

    Attributes
    ----------
    weight : Parameter, shape (in_channels, out_channels / groups, kernel_size)
    bias : Parameter, shape (out_channels,), or None

    Notes
    -----
    Both start uniform in ``(-b, b)`` with ``b = 1 / sqrt(out_channels / groups * prod(kernel_size))``, as in PyTorch.  A call may say which
    of the possible sizes the result has: ``layer(x, output_size=...)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.ConvTranspose1d(8, 2, 2, stride=2)(cg.ones((4, 8, 5))).shape
    (4, 2, 10)
    """

    ndim = 1
    function: Callable[..., Any] = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    """Transposed convolution along two axes: `cgrad.nn.functional.conv_transpose2d` with a weight and a bias of its own.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size : int or (int, int)
    stride, dilation : int or (int, int), default 1
    padding, output_padding : int or (int, int), default 0
    groups : int, default 1
    bias : bool, default True
    padding_mode : {"zeros"}
    dtype : dtype, optional
        Default: the default floating dtype.

    Attributes
    ----------
    weight : Parameter, shape ``(in_channels, out_channels / groups, *kernel_size)``
    bias : Parameter, shape (out_channels,), or None

    Notes
    -----
    Both start uniform in ``(-b, b)`` with ``b = 1 / sqrt(out_channels / groups * prod(kernel_size))``, as in PyTorch.  A call may say which
    of the possible sizes the result has: ``layer(x, output_size=...)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.ConvTranspose2d(8, 2, 2, stride=2)(cg.ones((4, 8, 5, 6))).shape
    (4, 2, 10, 12)
    """

    ndim = 2
    function: Callable[..., Any] = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    """Transposed convolution along three axes: `cgrad.nn.functional.conv_transpose3d` with a weight and a bias of its own.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size : int or (int, int, int)
    stride, dilation : int or (int, int, int), default 1
    padding, output_padding : int or (int, int, int), default 0
    groups : int, default 1
    bias : bool, default True
    padding_mode : {"zeros"}
    dtype : dtype, optional
        Default: the default floating dtype.

    Attributes
    ----------
    weight : Parameter, shape ``(in_channels, out_channels / groups, *kernel_size)``
    bias : Parameter, shape (out_channels,), or None

    Notes
    -----
    Both start uniform in ``(-b, b)`` with ``b = 1 / sqrt(out_channels / groups * prod(kernel_size))``, as in PyTorch.  A call may say which
    of the possible sizes the result has: ``layer(x, output_size=...)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.ConvTranspose3d(8, 2, 2, stride=2)(cg.ones((4, 8, 3, 5, 6))).shape
    (4, 2, 6, 10, 12)
    """

    ndim = 3
    function: Callable[..., Any] = staticmethod(F.conv_transpose3d)
