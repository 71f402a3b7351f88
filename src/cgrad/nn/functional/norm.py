"""Normalisation of the elements of each sample: layer_norm and rms_norm."""
from __future__ import annotations

import cgrad as cg
from cgrad.ops.norm import layer_norm as _layer_norm
from cgrad.ops.norm import rms_norm as _rms_norm

__all__ = ["layer_norm", "rms_norm"]


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Set the last axes of each sample to mean 0 and variance 1, then scale and shift them.

    Parameters
    ----------
    input : Tensor, shape (*, *normalized_shape)
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
    .. [1] J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer Normalization", arXiv:1607.06450, 2016.

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
    input : Tensor, shape (*, *normalized_shape)
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
    .. [1] B. Zhang, R. Sennrich, "Root Mean Square Layer Normalization", NeurIPS 2019.

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
