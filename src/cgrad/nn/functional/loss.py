"""Losses between predictions and targets of the same shape. Those of classification are in `classification.py`."""
from __future__ import annotations

import cgrad as cg

__all__ = ["huber_loss", "kl_div", "l1_loss", "mse_loss", "smooth_l1_loss"]


def reduced(name, loss, reduction):
    """The loss itself, its mean or its sum."""
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(f'{name}: reduction must be "mean", "sum" or "none", got {reduction!r}')


def check_same_shape(name, input, target):
    """Refuse what would broadcast: (n, 1) against (n,) would silently compare every pair."""
    if input.shape == target.shape:
        return
    hint = ""
    if input.size == target.size:
        hint = f"; target.reshape({', '.join(map(str, input.shape))}) would fit"
    raise ValueError(f"{name}: input and target must have the same shape, got {tuple(input.shape)} and {tuple(target.shape)}{hint}")


def _weighted(name, loss, weight, reduction):
    if weight is None:
        return reduced(name, loss, reduction)
    check_same_shape(name, loss, weight)
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else reduced(name, loss, reduction)


def mse_loss(input, target, reduction="mean", weight=None):
    """Squared error, ``(input - target) ** 2``.

    Parameters
    ----------
    input, target : Tensor
        Of the same shape; nothing is broadcast.
    reduction : {"mean", "sum", "none"}
    weight : Tensor, optional
        A weight for each element; the mean is then the weighted mean.

    Raises
    ------
    ValueError
        If the shapes differ.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.mse_loss(cg.tensor([1.0, 2.0]), cg.tensor([0.0, 4.0]))
    tensor(2.5000)
    """
    check_same_shape("mse_loss", input, target)
    difference = input - target
    return _weighted("mse_loss", difference * difference, weight, reduction)


def l1_loss(input, target, reduction="mean", weight=None):
    """Absolute error, ``|input - target|``.

    Parameters
    ----------
    input, target : Tensor
        Of the same shape; nothing is broadcast.
    reduction : {"mean", "sum", "none"}
    weight : Tensor, optional
        A weight for each element; the mean is then the weighted mean.

    Notes
    -----
    The gradient is 0 where input and target are equal.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.l1_loss(cg.tensor([1.0, 2.0]), cg.tensor([0.0, 4.0]))
    tensor(1.5000)
    """
    check_same_shape("l1_loss", input, target)
    return _weighted("l1_loss", abs(input - target), weight, reduction)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """Squared error ``d**2 / 2`` up to `delta`, beyond it the straight line ``delta * (|d| - delta / 2)``.

    Parameters
    ----------
    input, target : Tensor
        Of the same shape; nothing is broadcast.
    reduction : {"mean", "sum", "none"}
    delta : float, default 1
        Where the parabola ends; positive.
    weight : Tensor, optional
        A weight for each element; the mean is then the weighted mean.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.huber_loss(cg.tensor([0.5, 3.0]), cg.tensor([0.0, 0.0]), reduction="none")
    tensor([0.1250, 2.5000])
    """
    if not delta > 0:
        raise ValueError(f"huber_loss: delta must be positive, got {delta}")
    check_same_shape("huber_loss", input, target)
    d = input - target
    size = abs(d)
    loss = cg.where(size <= delta, d * d * 0.5, (size - 0.5 * delta) * delta)
    return _weighted("huber_loss", loss, weight, reduction)


def smooth_l1_loss(input, target, reduction="mean", beta=1.0):
    """`huber_loss` divided by its delta: ``d**2 / (2 beta)`` up to `beta`, beyond it ``|d| - beta / 2``.

    Parameters
    ----------
    input, target : Tensor
        Of the same shape; nothing is broadcast.
    reduction : {"mean", "sum", "none"}
    beta : float, default 1
        Where the parabola ends; 0 gives `l1_loss`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.smooth_l1_loss(cg.tensor([0.5, 3.0]), cg.tensor([0.0, 0.0]), reduction="none")
    tensor([0.1250, 2.5000])
    """
    if beta < 0:
        raise ValueError(f"smooth_l1_loss: beta must not be negative, got {beta}")
    check_same_shape("smooth_l1_loss", input, target)
    if beta == 0:
        return l1_loss(input, target, reduction)
    d = input - target
    size = abs(d)
    loss = cg.where(size < beta, d * d * (0.5 / beta), size - 0.5 * beta)
    return reduced("smooth_l1_loss", loss, reduction)


def kl_div(input, target, reduction="mean", log_target=False):
    """Kullback-Leibler divergence, ``target * (log(target) - input)`` with `input` in log space.

    Parameters
    ----------
    input : Tensor
        Log-probabilities.
    target : Tensor
        Probabilities of the same shape, or log-probabilities with ``log_target=True``.
    reduction : {"mean", "sum", "none", "batchmean"}
        "batchmean" divides by the length of the first axis and is the divergence of the mathematics; "mean" divides by all elements.

    Notes
    -----
    A probability of 0 contributes 0.

    Examples
    --------
    >>> import cgrad as cg
    >>> p = cg.tensor([[1.0, 0.0]])
    >>> cg.nn.functional.kl_div(cg.tensor([[0.5, 0.5]]).log(), p, reduction="batchmean")
    tensor(0.6931)
    """
    check_same_shape("kl_div", input, target)
    if log_target:
        loss = cg.exp(target) * (target - input)
    else:
        positive = target > 0
        entropy = cg.where(positive, target * cg.log(cg.where(positive, target, 1.0)), 0.0)
        loss = entropy - cg.where(target == 0, 0.0, target * input)
    if reduction == "batchmean":
        return loss.sum() / input.shape[0]
    return reduced("kl_div", loss, reduction)
