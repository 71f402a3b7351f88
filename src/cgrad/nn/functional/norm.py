"""Normalisation of the elements of each sample (layer_norm, rms_norm), of channels (batch_norm, group_norm, instance_norm), and by
neighbouring channels (local_response_norm).
"""
from __future__ import annotations

import math

import cgrad as cg
from cgrad.ops.norm import channel_norm as _channel_norm
from cgrad.ops.norm import layer_norm as _layer_norm
from cgrad.ops.norm import rms_norm as _rms_norm
from cgrad.ops.pool import average_pool

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm"]


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Set the last axes of each sample to mean 0 and variance 1, then scale and shift them.

    Parameters
    ----------
    input : Tensor, shape ``(*, *normalized_shape)``
        Floating point.
    normalized_shape : int or sequence of int
        The shape of the axes over which mean and variance are taken.
    weight, bias : Tensor, shape normalized_shape, optional
        Scale and shift of each element.
    eps : float, default 1e-5
        Added to the variance.

    Returns
    -------
    Tensor
        Same shape; the dtypes promote.

    Raises
    ------
    ValueError
        If the input does not end in `normalized_shape`, or weight or bias have another shape.
    TypeError
        If the input is not floating point.

    Notes
    -----
    ``(x - mean(x)) / sqrt(var(x) + eps) * weight + bias`` with the variance divided by the number of elements [1]_.  Means and sums are
    taken in float64.  Gradient with ``y`` the normalised input and ``v = g * weight``: ``(v - mean(v) - y * mean(v * y)) / sqrt(var(x) + eps)``
    for the input, ``g * y`` and ``g`` summed over the samples for weight and bias.

    References
    ----------
    .. [1] Ba, Kiros, Hinton, "Layer Normalization", arXiv:1607.06450, 2016.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.layer_norm(cg.tensor([[1.0, 3.0], [10.0, 30.0]]), (2,))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """
    shape = _row_shape("layer_norm", input, normalized_shape, weight, bias)
    return _layer_norm(input, weight, bias, len(shape), float(eps))


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Divide the last axes of each sample by the root of their mean square, then scale them.

    Parameters
    ----------
    input : Tensor, shape ``(*, *normalized_shape)``
        Floating point.
    normalized_shape : int or sequence of int
        The shape of the axes over which the mean square is taken.
    weight : Tensor, shape normalized_shape, optional
        Scale of each element.
    eps : float, optional
        Added to the mean square; the machine epsilon of the input's dtype by default.

    Returns
    -------
    Tensor
        Same shape; the dtypes promote.

    Raises
    ------
    ValueError
        If the input does not end in `normalized_shape`, or the weight has another shape.
    TypeError
        If the input is not floating point.

    Notes
    -----
    ``x / sqrt(mean(x * x) + eps) * weight`` [1]_, the mean taken in float64.  Gradient with ``y`` the normalised input and
    ``v = g * weight``: ``(v - y * mean(v * y)) / sqrt(mean(x * x) + eps)`` for the input, ``g * y`` summed over the samples for the weight.

    References
    ----------
    .. [1] Zhang, Sennrich, "Root Mean Square Layer Normalization", NeurIPS 2019.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.rms_norm(cg.tensor([[3.0, 3.0], [-2.0, 2.0]]), (2,))
    tensor([[ 1.,  1.],
            [-1.,  1.]])
    """
    shape = _row_shape("rms_norm", input, normalized_shape, weight)
    if eps is None:
        eps = 2.0 ** -23 if input.dtype == cg.float32 else 2.0 ** -52
    return _rms_norm(input, weight, len(shape), float(eps))


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Divide each element by a power of the mean square of the channels around it.

    Parameters
    ----------
    input : Tensor, shape ``(N, C, *)``
        Floating point, at least three axes.
    size : int
        How many channels, ``size // 2`` of them before its own; those beyond the first and the last count as 0.
    alpha, beta, k : float

    Returns
    -------
    Tensor, same shape

    Raises
    ------
    ValueError
        For fewer than three axes, or a size below 1.
    TypeError
        If the input is not floating point.

    Notes
    -----
    ``x / (k + alpha * mean(x**2))**beta`` [1]_.

    References
    ----------
    .. [1] Krizhevsky, Sutskever, Hinton, "ImageNet Classification with Deep Convolutional Neural Networks", NeurIPS 2012.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.local_response_norm(cg.ones(1, 2, 1), 2, alpha=3.0, beta=1.0).ravel()
    tensor([0.4000, 0.2500])
    """
    if input.ndim < 3 or size < 1:
        raise ValueError(f"local_response_norm: needs an input of shape (N, C, *) and a size of at least 1, got {tuple(input.shape)} and size {size}")
    batch, channels, *rest = input.shape
    n = math.prod(rest)
    squares = cg.pad((input * input).reshape(batch, channels, n), ((0, 0), (size // 2, (size - 1) // 2), (0, 0)))
    means = average_pool(squares, ((channels + size - 1, channels, size, 1, 0, 1), (n, n, 1, 1, 0, 1)), True, None)
    return input / (means * alpha + k).reshape(*input.shape) ** beta


def _row_shape(name, input, normalized_shape, *parameters):
    """`normalized_shape` as a tuple that input and parameters fit."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not input.dtype.is_floating_point:
        raise TypeError(f"{name}: the input must be floating point, got {input.dtype}; convert it first")
    if not shape or tuple(input.shape[-len(shape):]) != shape:
        raise ValueError(f"{name}: the last axes of the input must have the shape normalized_shape={shape} of at least one axis, "
                         f"got an input of shape {tuple(input.shape)}")
    for parameter in parameters:
        if parameter is not None and tuple(parameter.shape) != shape:
            raise ValueError(f"{name}: weight and bias must have the shape normalized_shape={shape}, got {tuple(parameter.shape)}")
    return shape


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """Set each channel to mean 0 and variance 1 over all samples, then scale and shift it.

    Parameters
    ----------
    input : Tensor, shape ``(N, C, *)``
        Floating point.
    running_mean, running_var : Tensor, shape (C,), or None
        Used in place of the input's moments if not `training`; otherwise brought up to date in place.
    weight, bias : Tensor, shape (C,), optional
        Scale and shift of each channel.
    training : bool, default False
        Whether to take mean and variance from the input.
    momentum : float, default 0.1
        The share of the new moments in the running ones.
    eps : float, default 1e-5
        Added to the variance.

    Returns
    -------
    Tensor
        Same shape; the dtypes of input, weight and bias promote.

    Raises
    ------
    ValueError
        If a shape does not fit, in training with one value for each channel (its variance is unknown), or without running moments when not in
        training.
    TypeError
        If the input is not floating point.

    Notes
    -----
    ``(x - mean) / sqrt(var + eps) * weight + bias`` [1]_ with the variance divided by the number ``n`` of values of a channel; the running
    one gets that divided by ``n - 1``.  Moments are taken in float64.  Gradient in training, with ``y`` the normalised input and
    ``v = g * weight``: ``(v - mean(v) - y * mean(v * y)) / sqrt(var + eps)``.

    References
    ----------
    .. [1] Ioffe, Szegedy, "Batch Normalization", ICML 2015.

    Examples
    --------
    >>> import cgrad as cg
    >>> mean, var = cg.zeros(2), cg.ones(2)
    >>> cg.nn.functional.batch_norm(cg.tensor([[1.0, 10.0], [3.0, 30.0]]), mean, var, training=True)
    tensor([[-1.0000, -1.0000],
            [ 1.0000,  1.0000]])
    >>> mean, var
    (tensor([0.2000, 2.0000]), tensor([ 1.1000, 20.9000]))
    """
    if input.shape == (0,):              # nothing at all needs no axis of channels
        return input.clone()
    _check_channels("batch_norm", input, running_mean, running_var, weight, bias)
    if not training:
        _need_running("batch_norm", "training", running_mean, running_var)
        return _with_running(input, running_mean, running_var, weight, bias, eps)
    count = _check_count("batch_norm", input, input.shape[0] * math.prod(input.shape[2:]), "values for each channel")
    out, moments = _channel_norm(input, weight, bias, None, None, 0, float(eps), False)
    if running_mean is not None or running_var is not None:
        _update(running_mean, running_var, moments.detach(), momentum, count)
    return out


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5):
    """Set each channel of each sample to mean 0 and variance 1, then scale and shift it.

    Parameters
    ----------
    input : Tensor, shape ``(N, C, *)``
        Floating point.
    running_mean, running_var : Tensor, shape (C,), optional
        Used in place of the input's moments if not `use_input_stats`; otherwise brought up to date in place with the means over the samples.
    weight, bias : Tensor, shape (C,), optional
        Scale and shift of each channel.
    use_input_stats : bool, default True
        Whether to take mean and variance from the input.
    momentum : float, default 0.1
        The share of the new moments in the running ones.
    eps : float, default 1e-5
        Added to the variance.

    Returns
    -------
    Tensor
        Same shape; the dtypes of input, weight and bias promote.

    Raises
    ------
    ValueError
        If a shape does not fit, a channel has a single value in each sample, or moments are missing.
    TypeError
        If the input is not floating point.

    Notes
    -----
    The formula of `batch_norm` with the moments of each sample by itself [1]_.

    References
    ----------
    .. [1] Ulyanov, Vedaldi, Lempitsky, "Instance Normalization", arXiv:1607.08022, 2016.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.instance_norm(cg.tensor([[[1.0, 3.0], [10.0, 30.0]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    _check_channels("instance_norm", input, running_mean, running_var, weight, bias)
    if not use_input_stats:
        _need_running("instance_norm", "use_input_stats", running_mean, running_var)
        return _with_running(input, running_mean, running_var, weight, bias, eps)
    samples, channels, *rest = input.shape
    count = _check_count("instance_norm", input, math.prod(rest), "values in each channel of a sample")
    out, moments = _channel_norm(input, weight, bias, None, None, channels, float(eps), False)
    if running_mean is not None or running_var is not None:
        _update(running_mean, running_var, moments.detach().reshape(samples, channels, 2).mean(0), momentum, count)
    return out


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Set each group of channels of each sample to mean 0 and variance 1, then scale and shift each channel.

    Parameters
    ----------
    input : Tensor, shape ``(N, C, *)``
        Floating point.
    num_groups : int
        Divides C.
    weight, bias : Tensor, shape (C,), optional
        Scale and shift of each channel.
    eps : float, default 1e-5
        Added to the variance.

    Returns
    -------
    Tensor
        Same shape; the dtypes of input, weight and bias promote.

    Raises
    ------
    ValueError
        If a shape does not fit, C is no multiple of `num_groups`, or a single sample has groups of a single value.
    TypeError
        If the input is not floating point.

    Notes
    -----
    The formula of `batch_norm` with the moments of each group by itself [1]_.

    References
    ----------
    .. [1] Wu, He, "Group Normalization", ECCV 2018.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.group_norm(cg.tensor([[1.0, 3.0, 10.0, 30.0]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    _check_channels("group_norm", input, None, None, weight, bias)
    samples, channels, *rest = input.shape
    if num_groups <= 0 or channels % num_groups:
        raise ValueError(f"group_norm: the number of channels must be a multiple of num_groups={num_groups}, got an input of shape "
                         f"{tuple(input.shape)}")
    extent = math.prod(rest)
    _check_count("group_norm", input, samples * channels // num_groups * extent, "values for each group")
    if extent >= _SHORT:
        return _channel_norm(input, weight, bias, None, None, num_groups, float(eps), False)[0]
    shape = (channels,) + (1,) * len(rest)
    y = _layer_norm(input.reshape(samples, num_groups, channels // num_groups * extent), None, None, 1, float(eps)).reshape(input.shape)
    y = y if weight is None else y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


_SHORT = 16          # values of a channel below which a group is faster as a row, whose elements are scaled and shifted afterwards


def _check_channels(name, input, running_mean, running_var, weight, bias):
    if not input.dtype.is_floating_point:
        raise TypeError(f"{name}: the input must be floating point, got {input.dtype}; convert it first")
    if input.ndim < 2:
        raise ValueError(f"{name}: the input must have shape (N, C, *), got {tuple(input.shape)}")
    for what, x in (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias)):
        if x is not None and (x.ndim != 1 or x.shape[0] != input.shape[1]):
            raise ValueError(f"{name}: {what} must have shape ({input.shape[1]},) for an input of shape {tuple(input.shape)}, got {tuple(x.shape)}")


def _check_count(name, input, count, what):
    if count == 1:
        raise ValueError(f"{name}: there must be more than one of the {what}, or their variance is 0 whatever they are; got an input of shape "
                         f"{tuple(input.shape)}")
    return count


def _need_running(name, flag, running_mean, running_var):
    if running_mean is None or running_var is None:
        raise ValueError(f"{name}: running_mean and running_var are needed with {flag}=False")


def _with_running(input, running_mean, running_var, weight, bias, eps):
    out = _channel_norm(input, weight, bias, running_mean, running_var, 0, float(eps), True)[0]
    if running_mean.dtype == running_var.dtype == input.dtype:
        return out
    dtype = cg.result_type(*[x for x in (input, weight, bias) if x is not None])       # running moments have no say
    return out if out.dtype == dtype else out.astype(dtype)


def _update(running_mean, running_var, moments, momentum, count):
    """Take a share of new moments, as pairs, into the running ones."""
    if not count:
        return
    with cg.no_grad():
        for running, new in ((running_mean, moments[:, 0]), (running_var, moments[:, 1] * (count / (count - 1)))):
            if running is not None:
                running.mul_(1 - momentum).add_((new * momentum).astype(running.dtype))
