"""Losses of classification: classes by index or by probability, and independent yes/no questions."""
from __future__ import annotations

import math

import cgrad as cg
from cgrad.core.arguments import as_tensor
from cgrad.core.batching import all_examples, is_batched
from cgrad.core.forward.classes import count_ignored
from cgrad.core.forward_mode import is_dual
from cgrad.nn.functional.loss import fitting, old_spelling, reduced, same_shape
from cgrad.ops.loss import binary_cross_entropy as _binary_cross_entropy
from cgrad.ops.loss import MEAN, NONE, SUM, class_loss, pick_class

__all__ = ["binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "nll_loss"]

_REDUCTIONS = {"none": NONE, "sum": SUM, "mean": MEAN}


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
    """Negative log-likelihood of the targets under ``softmax(input)``.

    Parameters
    ----------
    input : Tensor, shape (C,), (N, C) or (N, C, d1, ...)
        Logits: any real numbers, no softmax applied.
    target : Tensor
        Class indices (integers) of shape (), (N,) or (N, d1, ...), or class probabilities (floating) of the shape of `input`.
    weight : Tensor, shape (C,), optional
        A weight for each class.
    ignore_index : int, default -100
        Targets with this index contribute neither loss nor gradient.
    reduction : {"mean", "sum", "none"}
        "mean" divides by the sum of the weights of the targets, without the ignored ones.
    label_smoothing : float, default 0
        In [0, 1]: mixes the targets with the uniform distribution.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    IndexError
        If a class index is not in [0, C).

    Examples
    --------
    >>> import cgrad as cg
    >>> logits = cg.tensor([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0]], requires_grad=True)
    >>> loss = cg.nn.functional.cross_entropy(logits, cg.tensor([0, 2]))
    >>> loss.item()
    0.753...
    >>> loss.backward()
    >>> logits.grad[1]
    tensor([ 0.1667,  0.1667, -0.3333])
    """
    name = "cross_entropy"
    reduction = old_spelling(size_average, reduce, reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"{name}: label_smoothing must lie in [0, 1], got {label_smoothing}")
    input, target = as_tensor(name, input), as_tensor(name, target)
    axis = _class_axis(name, input)
    weight = _class_weight(name, input.shape[axis], weight)
    if not target.dtype.is_floating_point:
        if weight is None or weight.dtype == input.dtype and not weight.requires_grad and not is_dual(weight):
            return _fused(name, input, target, axis, weight, ignore_index, reduction, float(label_smoothing))
        return _by_index(name, cg.log_softmax(input, axis), target, axis, weight, ignore_index, reduction, label_smoothing)
    log_p = cg.log_softmax(input, axis)
    if input.shape != target.shape:
        raise ValueError(f"{name}: class probabilities must have the shape of the input, got {tuple(input.shape)} and {tuple(target.shape)}; "
                         "class indices must be integers")
    if label_smoothing:
        target = target * (1.0 - label_smoothing) + label_smoothing / input.shape[axis]
    if weight is not None:
        target = target * _along(weight, axis, input.ndim)
    loss = -(log_p * target).sum(axis)
    return reduced(name, loss, reduction)


def _fused(name, input, target, axis, weight, ignore_index, reduction, smoothing):
    """Cross-entropy of classes given by index in one operation, with the class axis brought to the end."""
    _check_shape(name, input, target, axis)
    if reduction not in _REDUCTIONS:
        raise ValueError(f'{name}: reduction must be "mean", "sum" or "none", got {reduction!r}')
    x, y = input, target
    if x.ndim != 2:
        x, y = cg.moveaxis(x, axis, -1).reshape(y.numel(), x.shape[axis]), y.reshape(-1)
    loss, _ = class_loss(x, y, weight, ignore_index, smoothing, _REDUCTIONS[reduction])
    return loss if reduction != "none" or target.ndim == 1 else loss.reshape(target.shape)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """Negative log-likelihood of class indices under given log-probabilities.

    Parameters
    ----------
    input : Tensor, shape (C,), (N, C) or (N, C, d1, ...)
        Log-probabilities, as from `log_softmax`.
    target : Tensor of integers, shape (), (N,) or (N, d1, ...)
    weight, ignore_index, reduction
        As for `cross_entropy`.

    Examples
    --------
    >>> import cgrad as cg
    >>> log_p = cg.log(cg.tensor([[0.5, 0.5], [0.25, 0.75]]))
    >>> cg.nn.functional.nll_loss(log_p, cg.tensor([0, 1]), reduction="none")
    tensor([0.6931, 0.2877])
    """
    input, target = as_tensor("nll_loss", input), as_tensor("nll_loss", target)
    axis = _class_axis("nll_loss", input)
    weight = _class_weight("nll_loss", input.shape[axis], weight)
    return _by_index("nll_loss", input, target, axis, weight, ignore_index, old_spelling(size_average, reduce, reduction), 0.0)


def _by_index(name, log_p, target, axis, weight, ignore_index, reduction, smoothing):
    """The losses of classes given by index, from log-probabilities."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f'{name}: reduction must be "mean", "sum" or "none", got {reduction!r}')
    n_classes = log_p.shape[axis]
    n_ignored = _check_target(name, log_p, target, axis, n_classes, ignore_index)
    loss = pick_class(log_p, target, axis, ignore_index, n_classes)      # 0 where ignored: an ignored -inf leaves no NaN
    share = None                                     # the weight of each target in the mean
    if weight is not None:
        share = weight[cg.where(target == ignore_index, 0, target) if n_ignored else target]
        loss = loss * share
    if smoothing:
        spread = (log_p if weight is None else log_p * _along(weight, axis, log_p.ndim)).sum(axis)
        if n_ignored:
            spread = cg.where(target == ignore_index, 0.0, spread)
        loss = loss * (1.0 - smoothing) + spread * (smoothing / n_classes)
    if reduction == "none":
        return -loss
    if reduction == "sum":
        return -loss.sum()
    if share is not None:
        return -loss.sum() / (cg.where(target == ignore_index, 0.0, share) if n_ignored else share).sum()
    if n_ignored and is_batched(target):
        return -loss.sum() / (target != ignore_index).sum()
    if n_ignored:
        return loss.sum() / (-(target.numel() - n_ignored) or math.nan)     # the mean of nothing is NaN
    return -loss.mean()


def _check_target(name, log_p, target, axis, n_classes, ignore_index):
    """Check class indices; returns how many are ignored."""
    _check_shape(name, log_p, target, axis)
    return count_ignored(name, target, n_classes, ignore_index)


def _check_shape(name, input, target, axis):
    shape = input.shape[:axis] + input.shape[axis + 1:]
    if target.shape != shape:
        raise ValueError(f"{name}: for an input of shape {tuple(input.shape)} the class indices must have shape {tuple(shape)}, "
                         f"got {tuple(target.shape)}")


def _class_axis(name, input):
    if input.ndim == 0:
        raise ValueError(f"{name}: the input must have a class axis: shape (C,), (N, C) or (N, C, d1, ...), got ()")
    if not input.dtype.is_floating_point:
        raise TypeError(f"{name}: the input must be floating point, got {input.dtype}")
    return 0 if input.ndim == 1 else 1


def _class_weight(name, n_classes, weight):
    weight = None if weight is None else as_tensor(name, weight)
    if weight is not None and weight.shape != (n_classes,):
        raise ValueError(f"{name}: weight must have one element for each of {n_classes} classes, got shape {tuple(weight.shape)}")
    return weight


def _along(vector, axis, ndim):
    return vector.reshape(*[-1 if i == axis else 1 for i in range(ndim)])


def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
    """Binary cross-entropy of ``sigmoid(input)``, exact for logits of any size.

    Parameters
    ----------
    input : Tensor
        Logits.
    target : Tensor
        Probabilities of "yes" in [0, 1], of the same shape.
    weight : Tensor, optional
        A weight for each element, broadcast to the shape of the input.
    pos_weight : Tensor, optional
        A weight of the "yes" part, broadcast to the shape of the input.
    reduction : {"mean", "sum", "none"}

    Notes
    -----
    ``t * softplus(-x) + (1 - t) * softplus(x)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.binary_cross_entropy_with_logits(cg.tensor([0.0, 100.0]), cg.tensor([1.0, 0.0]), reduction="none")
    tensor([  0.6931, 100.0000])
    """
    name = "binary_cross_entropy_with_logits"
    input, target = same_shape(name, input, target)
    yes = target if pos_weight is None else target * fitting(name, "pos_weight", pos_weight, input)
    loss = yes * cg.softplus(-input) + (1.0 - target) * cg.softplus(input)
    if weight is not None:
        loss = loss * fitting(name, "weight", weight, input)
    return reduced(name, loss, old_spelling(size_average, reduce, reduction))


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Binary cross-entropy of probabilities; `binary_cross_entropy_with_logits` is more exact if there are logits.

    Parameters
    ----------
    input : Tensor
        Probabilities in [0, 1].
    target : Tensor
        Probabilities in [0, 1], of the same shape.
    weight : Tensor, optional
        A weight for each element, broadcast to the shape of the input.
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    ValueError
        If an input lies outside [0, 1].

    Notes
    -----
    ``-(t * log(x) + (1 - t) * log(1 - x))`` with logarithms not below -100 and a slope denominator ``x (1 - x)`` not below 1e-12, as in PyTorch.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.binary_cross_entropy(cg.tensor([0.5, 1.0]), cg.tensor([1.0, 1.0]))
    tensor(0.3466)
    """
    name = "binary_cross_entropy"
    input, target = same_shape(name, input, target)
    every = all_examples(input)
    if every.numel() and not (every.min().item() >= 0.0 and every.max().item() <= 1.0):
        raise ValueError(f"{name}: the input must lie in [0, 1], got values from {every.min().item()} to {every.max().item()}; "
                         "use binary_cross_entropy_with_logits for logits")
    loss = _binary_cross_entropy(input, target)
    if weight is not None:
        loss = loss * fitting(name, "weight", weight, input)
    return reduced(name, loss, old_spelling(size_average, reduce, reduction))
