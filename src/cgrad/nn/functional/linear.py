"""Affine maps and one-hot codes."""
from __future__ import annotations

import cgrad as cg
from cgrad.core.batching import all_examples
from cgrad.ops.matmul import _linear

__all__ = ["bilinear", "linear", "one_hot"]


def linear(input, weight, bias=None):
    """Affine map ``input @ weight.T + bias``.

    Parameters
    ----------
    input : Tensor, shape ``(*, in_features)``
    weight : Tensor, shape (out_features, in_features) or (in_features,)
    bias : Tensor, shape (out_features,) or (), optional

    Returns
    -------
    Tensor, shape ``(*, out_features)`` or ``(*)``

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Examples
    --------
    >>> import cgrad as cg
    >>> x, w, b = cg.tensor([[1.0, 2.0]]), cg.tensor([[3.0, 4.0], [5.0, 6.0]]), cg.tensor([0.5, 0.0])
    >>> cg.nn.functional.linear(x, w, b)
    tensor([[11.5000, 17.0000]])
    """
    if weight.ndim == 1:
        return _one_output(input, weight, bias)
    return _linear(input, weight, bias)


def _one_output(input, weight, bias):
    if bias is not None and bias.ndim != 0:
        raise ValueError(f"linear: the bias must have shape () for a weight of shape {tuple(weight.shape)}, got {tuple(bias.shape)}")
    y = _linear(input, weight.reshape(1, -1), None if bias is None else bias.reshape(1))
    return y.reshape(input.shape[:-1])


def bilinear(input1, input2, weight, bias=None):
    """A bilinear form for each output, ``input1 @ weight[o] @ input2 + bias[o]``.

    Parameters
    ----------
    input1 : Tensor, shape ``(*, in1_features)``
    input2 : Tensor, shape ``(*, in2_features)``
        The same leading axes.
    weight : Tensor, shape (out_features, in1_features, in2_features)
    bias : Tensor, shape (out_features,), optional

    Returns
    -------
    Tensor, shape ``(*, out_features)``

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Examples
    --------
    >>> import cgrad as cg
    >>> x, y, w = cg.tensor([[1.0, 2.0]]), cg.tensor([[3.0, 4.0]]), cg.tensor([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 0.0]]])
    >>> cg.nn.functional.bilinear(x, y, w)
    tensor([[11.,  4.]])
    """
    batch = input1.shape[:-1]
    if weight.ndim != 3 or not input1.ndim or input2.shape[:-1] != batch or (input1.shape[-1], input2.shape[-1]) != weight.shape[1:] \
            or (bias is not None and bias.shape != weight.shape[:1]):
        raise ValueError(f"bilinear: inputs of shape (*, in1), (*, in2), a weight (out, in1, in2) and a bias (out,) are needed, got {tuple(input1.shape)}, "
                         f"{tuple(input2.shape)}, {tuple(weight.shape)} and {None if bias is None else tuple(bias.shape)}")
    n_out, n1, n2 = weight.shape
    left = (input1 @ weight.permute(1, 0, 2).reshape(n1, n_out * n2)).reshape(*batch, n_out, n2)       # one product for all outputs
    y = (left @ input2.unsqueeze(-1)).squeeze(-1)
    return y if bias is None else y + bias


def one_hot(tensor, num_classes=-1):
    """Rows of zeros with a one at each class index.

    Parameters
    ----------
    tensor : Tensor of integers, any shape
    num_classes : int, default -1
        -1 takes the largest index plus one.

    Returns
    -------
    Tensor of int64, shape ``(*tensor.shape, num_classes)``

    Raises
    ------
    ValueError
        If an index is negative or not below `num_classes`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.one_hot(cg.tensor([0, 2, 1]))
    tensor([[1, 0, 0],
            [0, 0, 1],
            [0, 1, 0]])
    """
    if tensor.dtype.is_floating_point or tensor.dtype == cg.bool:
        raise TypeError(f"one_hot: class indices must be integers, got {tensor.dtype}")
    every = all_examples(tensor)
    low, high = (int(every.min().item()), int(every.max().item())) if every.numel() else (0, -1)
    if num_classes == -1:
        if not tensor.numel():
            raise ValueError("one_hot: the number of classes cannot be told from an empty tensor; pass num_classes")
        num_classes = high + 1
    if low < 0 or high >= num_classes:
        raise ValueError(f"one_hot: class indices must lie in [0, {num_classes}), got {low if low < 0 else high}")
    return (tensor.reshape(*tensor.shape, 1) == cg.arange(num_classes)).astype(cg.int64)
