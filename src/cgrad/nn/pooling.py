"""Pooling as layers; the formulas are in `functional.pooling`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cgrad.nn import functional as F
from cgrad.nn.image import Options

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d",
    "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d",
    "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]


class _MaxPool(Options):
    _options = ("kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices")

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        super().__init__(kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode, return_indices)

    def forward(self, input):
        return self._function(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)


class MaxPool1d(_MaxPool):
    """The largest element of each window over the last axis; see `functional.max_pool1d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.MaxPool1d(2)(cg.tensor([[1.0, 5.0, 2.0, 3.0]]))
    tensor([[5., 3.]])
    """

    _function: Callable[..., Any] = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """The largest element of each window over the last two axes; see `functional.max_pool2d`.

    Parameters
    ----------
    kernel_size, stride, padding, dilation : int or (int, int)
        `stride` is `kernel_size` if not given.
    return_indices, ceil_mode : bool

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.MaxPool2d(2)(cg.arange(8.0).reshape(1, 2, 4))
    tensor([[[5., 7.]]])
    """

    _function: Callable[..., Any] = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPool):
    """The largest element of each window over the last three axes; see `functional.max_pool3d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.MaxPool3d(2)(cg.arange(8.0).reshape(1, 2, 2, 2))
    tensor([[[[7.]]]])
    """

    _function: Callable[..., Any] = staticmethod(F.max_pool3d)


class AvgPool1d(Options):
    """The mean of each window over the last axis; see `functional.avg_pool1d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.AvgPool1d(2)(cg.tensor([[1.0, 5.0, 2.0, 3.0]]))
    tensor([[3.0000, 2.5000]])
    """

    _options = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__(kernel_size, kernel_size if stride is None else stride, padding, ceil_mode, count_include_pad)

    def forward(self, input):
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class AvgPool2d(Options):
    """The mean of each window over the last two axes; see `functional.avg_pool2d`.

    Parameters
    ----------
    kernel_size, stride, padding : int or (int, int)
        `stride` is `kernel_size` if not given.
    ceil_mode, count_include_pad : bool
    divisor_override : int, optional

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.AvgPool2d(2)(cg.arange(8.0).reshape(1, 2, 4))
    tensor([[[2.5000, 4.5000]]])
    """

    _options = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")
    _function: Callable[..., Any] = staticmethod(F.avg_pool2d)

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        super().__init__(kernel_size, kernel_size if stride is None else stride, padding, ceil_mode, count_include_pad, divisor_override)

    def forward(self, input):
        return self._function(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override)


class AvgPool3d(AvgPool2d):
    """The mean of each window over the last three axes; see `functional.avg_pool3d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.AvgPool3d(2)(cg.arange(8.0).reshape(1, 2, 2, 2))
    tensor([[[[3.5000]]]])
    """

    _function: Callable[..., Any] = staticmethod(F.avg_pool3d)


class _AdaptiveAvgPool(Options):
    _options = ("output_size",)

    def __init__(self, output_size):
        super().__init__(output_size)

    def forward(self, input):
        return self._function(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The means of `output_size` windows that cover the last axis evenly; see `functional.adaptive_avg_pool1d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.AdaptiveAvgPool1d(1)(cg.tensor([[1.0, 5.0, 3.0]]))
    tensor([[3.]])
    """

    _function: Callable[..., Any] = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The means of windows that cover the last two axes evenly; see `functional.adaptive_avg_pool2d`.

    Parameters
    ----------
    output_size : int or (int or None, int or None)

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.AdaptiveAvgPool2d(1)(cg.arange(8.0).reshape(1, 2, 4))
    tensor([[[3.5000]]])
    """

    _function: Callable[..., Any] = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The means of windows that cover the last three axes evenly; see `functional.adaptive_avg_pool3d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.AdaptiveAvgPool3d(1)(cg.arange(8.0).reshape(1, 2, 2, 2))
    tensor([[[[3.5000]]]])
    """

    _function: Callable[..., Any] = staticmethod(F.adaptive_avg_pool3d)


class _AdaptiveMaxPool(Options):
    _options = ("output_size", "return_indices")

    def __init__(self, output_size, return_indices=False):
        super().__init__(output_size, return_indices)

    def forward(self, input):
        return self._function(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest elements of `output_size` windows that cover the last axis evenly; see `functional.adaptive_max_pool1d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.AdaptiveMaxPool1d(1)(cg.tensor([[1.0, 5.0, 3.0]]))
    tensor([[5.]])
    """

    _function: Callable[..., Any] = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest elements of windows that cover the last two axes evenly; see `functional.adaptive_max_pool2d`.

    Parameters
    ----------
    output_size : int or (int or None, int or None)
    return_indices : bool

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.AdaptiveMaxPool2d(1)(cg.arange(8.0).reshape(1, 2, 4))
    tensor([[[7.]]])
    """

    _function: Callable[..., Any] = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest elements of windows that cover the last three axes evenly; see `functional.adaptive_max_pool3d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.AdaptiveMaxPool3d(1)(cg.arange(8.0).reshape(1, 2, 2, 2))
    tensor([[[[7.]]]])
    """

    _function: Callable[..., Any] = staticmethod(F.adaptive_max_pool3d)


class _LPPool(Options):
    _options = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__(norm_type, kernel_size, stride, ceil_mode)

    def forward(self, input):
        return self._function(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPool):
    """The p-norm of each window over the last axis; see `functional.lp_pool1d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.LPPool1d(2, 2)(cg.tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """

    _function: Callable[..., Any] = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPool):
    """The p-norm of each window over the last two axes; see `functional.lp_pool2d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.LPPool2d(2, (1, 2))(cg.tensor([[[3.0, 4.0]]]))
    tensor([[[5.]]])
    """

    _function: Callable[..., Any] = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPool):
    """The p-norm of each window over the last three axes; see `functional.lp_pool3d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.LPPool3d(2, (2, 2, 1))(cg.ones(1, 2, 2, 1))
    tensor([[[[2.]]]])
    """

    _function: Callable[..., Any] = staticmethod(F.lp_pool3d)


class _MaxUnpool(Options):
    _options = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__(kernel_size, kernel_size if stride is None else stride, padding)

    def forward(self, input, indices, output_size=None):
        return self._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpool):
    """What MaxPool1d chose put back to its places, zeros elsewhere; see `functional.max_unpool1d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.MaxUnpool1d(2)(cg.tensor([[5.0]]), cg.tensor([[1]]))
    tensor([[0., 5.]])
    """

    _function: Callable[..., Any] = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """What MaxPool2d chose put back to its places, zeros elsewhere; see `functional.max_unpool2d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.MaxUnpool2d(2)(cg.tensor([[[8.0]]]), cg.tensor([[[2]]]))
    tensor([[[0., 0.],
             [8., 0.]]])
    """

    _function: Callable[..., Any] = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """What MaxPool3d chose put back to its places, zeros elsewhere; see `functional.max_unpool3d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.MaxUnpool3d((1, 1, 2))(cg.tensor([[[[8.0]]]]), cg.tensor([[[[1]]]]))
    tensor([[[[0., 8.]]]])
    """

    _function: Callable[..., Any] = staticmethod(F.max_unpool3d)


class _FractionalMaxPool(Options):
    _options = ("kernel_size", "output_size", "output_ratio", "return_indices")

    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        super().__init__(kernel_size, output_size, output_ratio, return_indices)
        self.register_buffer("_random_samples", _random_samples)
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"{type(self).__name__}: give either output_size or output_ratio")

    def forward(self, input):
        return self._function(input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest element of each of windows at random places; see `functional.fractional_max_pool2d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.FractionalMaxPool2d(3, output_ratio=0.5)(cg.randn(2, 4, 10, 8)).shape
    (2, 4, 5, 4)
    """

    _function: Callable[..., Any] = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest element of each of windows at random places; see `functional.fractional_max_pool3d`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.FractionalMaxPool3d(2, output_size=3)(cg.randn(2, 4, 5, 5, 5)).shape
    (2, 4, 3, 3, 3)
    """

    _function: Callable[..., Any] = staticmethod(F.fractional_max_pool3d)
