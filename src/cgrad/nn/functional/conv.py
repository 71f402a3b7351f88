"""Convolutions and transposed convolutions along one, two and three axes."""
from __future__ import annotations

from cgrad.core.arguments import as_tensor
from cgrad.core.forward.conv import conv_options, conv_transpose_options
from cgrad.ops.conv import _conv, _conv_transpose

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]


def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolution along one axis: each filter slides along the signals and is multiplied with what it meets.

    Parameters
    ----------
    input : Tensor, shape (N, in_channels, L) or (in_channels, L)
        Floating point.
    weight : Tensor, shape (out_channels, in_channels / groups, kernel)
    bias : Tensor, shape (out_channels,), optional
    stride, dilation : int, default 1
        Steps between the places of a filter, and between its elements.
    padding : int or {"valid", "same"}, default 0
        Zeros at both ends; "same" keeps the length (stride 1 only; an odd zero goes to the end), "valid" adds none.
    groups : int, default 1
        Groups of channels, each with filters of its own.

    Returns
    -------
    Tensor, shape (N, out_channels, (L + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1)

    Raises
    ------
    ValueError
        If shapes and options do not fit, or the kernel is longer than the padded input.
    TypeError
        If an operand is not floating point.

    Notes
    -----
    As in all of deep learning the kernel is not reversed (a correlation).  The gradients are a transposed convolution for the input and
    a convolution of input and gradient for the weight.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.conv1d(cg.tensor([[1.0, 2.0, 4.0, 8.0]]), cg.tensor([[[1.0, -1.0]]]))
    tensor([[-1., -2., -4.]])
    """
    return _apply("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolution along two axes; `cgrad.nn.functional.conv1d` for images.

    Parameters
    ----------
    input : Tensor, shape (N, in_channels, H, W) or (in_channels, H, W)
        Floating point.
    weight : Tensor, shape (out_channels, in_channels / groups, kernel_h, kernel_w)
    bias : Tensor, shape (out_channels,), optional
    stride, dilation : int or (int, int), default 1
    padding : int, (int, int) or {"valid", "same"}, default 0
    groups : int, default 1
        As many groups as input channels make a depthwise convolution.

    Returns
    -------
    Tensor, shape (N, out_channels, H_out, W_out)

    Raises
    ------
    ValueError
        If shapes and options do not fit, or the kernel is larger than the padded input.
    TypeError
        If an operand is not floating point.

    Examples
    --------
    >>> import cgrad as cg
    >>> edges = cg.tensor([[[[1.0, -1.0]]]])
    >>> cg.nn.functional.conv2d(cg.tensor([[[1.0, 1.0, 5.0], [2.0, 2.0, 2.0]]]), edges)
    tensor([[[ 0., -4.],
             [ 0.,  0.]]])
    """
    return _apply("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolution along three axes; `cgrad.nn.functional.conv1d` for volumes.

    Parameters
    ----------
    input : Tensor, shape (N, in_channels, D, H, W) or (in_channels, D, H, W)
        Floating point.
    weight : Tensor, shape (out_channels, in_channels / groups, kernel_d, kernel_h, kernel_w)
    bias : Tensor, shape (out_channels,), optional
    stride, dilation : int or (int, int, int), default 1
    padding : int, (int, int, int) or {"valid", "same"}, default 0
    groups : int, default 1

    Returns
    -------
    Tensor, shape (N, out_channels, D_out, H_out, W_out)

    Raises
    ------
    ValueError
        If shapes and options do not fit, or the kernel is larger than the padded input.
    TypeError
        If an operand is not floating point.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.conv3d(cg.ones((1, 2, 4, 5, 6)), cg.ones((3, 2, 2, 2, 2)), padding="same").shape
    (1, 3, 4, 5, 6)
    """
    return _apply("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Transposed convolution along one axis: each element of the input adds a filter to the result, scaled.

    Parameters
    ----------
    input : Tensor, shape (N, in_channels, L) or (in_channels, L)
        Floating point.
    weight : Tensor, shape (in_channels, out_channels / groups, kernel)
    bias : Tensor, shape (out_channels,), optional
    stride, dilation : int, default 1
        Steps between the filters in the result, and between the elements of each.
    padding : int, default 0
        Elements cut off at both ends of the result.
    output_padding : int, default 0
        Elements that the result is longer at its end, below `stride` or `dilation`.
    groups : int, default 1
        Groups of channels, each with filters of its own.

    Returns
    -------
    Tensor, shape (N, out_channels, (L - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1)

    Raises
    ------
    ValueError
        If shapes and options do not fit, or nothing is left of the result.
    TypeError
        If an operand is not floating point.

    Notes
    -----
    The gradient of `cgrad.nn.functional.conv1d` in its input, as an operation; its own is that convolution.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.conv_transpose1d(cg.tensor([[1.0, 10.0]]), cg.tensor([[[1.0, 2.0, 3.0]]]), stride=2)
    tensor([[ 1.,  2., 13., 20., 30.]])
    """
    return _apply_transpose("conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Transposed convolution along two axes; `cgrad.nn.functional.conv_transpose1d` for images.

    Parameters
    ----------
    input : Tensor, shape (N, in_channels, H, W) or (in_channels, H, W)
        Floating point.
    weight : Tensor, shape (in_channels, out_channels / groups, kernel_h, kernel_w)
    bias : Tensor, shape (out_channels,), optional
    stride, padding, output_padding, dilation : int or (int, int)
    groups : int, default 1

    Returns
    -------
    Tensor, shape (N, out_channels, H_out, W_out)

    Raises
    ------
    ValueError
        If shapes and options do not fit, or nothing is left of the result.
    TypeError
        If an operand is not floating point.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.conv_transpose2d(cg.ones((1, 4, 5, 5)), cg.ones((4, 2, 3, 3)), stride=2, padding=1, output_padding=1).shape
    (1, 2, 10, 10)
    """
    return _apply_transpose("conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Transposed convolution along three axes; `cgrad.nn.functional.conv_transpose1d` for volumes.

    Parameters
    ----------
    input : Tensor, shape (N, in_channels, D, H, W) or (in_channels, D, H, W)
        Floating point.
    weight : Tensor, shape (in_channels, out_channels / groups, kernel_d, kernel_h, kernel_w)
    bias : Tensor, shape (out_channels,), optional
    stride, padding, output_padding, dilation : int or (int, int, int)
    groups : int, default 1

    Returns
    -------
    Tensor, shape (N, out_channels, D_out, H_out, W_out)

    Raises
    ------
    ValueError
        If shapes and options do not fit, or nothing is left of the result.
    TypeError
        If an operand is not floating point.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.conv_transpose3d(cg.ones((1, 4, 2, 2, 2)), cg.ones((4, 1, 3, 3, 3))).shape
    (1, 1, 4, 4, 4)
    """
    return _apply_transpose("conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups, dilation)


def _apply(name, n, input, weight, bias, stride, padding, dilation, groups):
    input, weight, bias = as_tensor(name, input), as_tensor(name, weight), None if bias is None else as_tensor(name, bias)
    options = conv_options(name, n, input, weight, bias, stride, padding, dilation, groups)
    return _conv(input, weight, bias, *options) if input.ndim == n + 2 else _conv(input[None], weight, bias, *options)[0]


def _apply_transpose(name, n, input, weight, bias, stride, padding, output_padding, groups, dilation):
    input, weight, bias = as_tensor(name, input), as_tensor(name, weight), None if bias is None else as_tensor(name, bias)
    options = conv_transpose_options(name, n, input, weight, bias, stride, padding, output_padding, groups, dilation)
    return _conv_transpose(input, weight, bias, *options) if input.ndim == n + 2 else _conv_transpose(input[None], weight, bias, *options)[0]
