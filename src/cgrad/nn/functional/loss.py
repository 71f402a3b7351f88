"""Losses between predictions and targets of the same shape. Those of classification are in `classification.py`."""
from __future__ import annotations

import math

import cgrad as cg
from cgrad.core.arguments import as_tensor
from cgrad.core.batching import all_examples

__all__ = ["gaussian_nll_loss", "huber_loss", "kl_div", "l1_loss", "mse_loss", "poisson_nll_loss", "smooth_l1_loss"]


def reduced(name, loss, reduction):
    """The loss itself, its mean or its sum."""
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(f'{name}: reduction must be "mean", "sum" or "none", got {reduction!r}')


def old_spelling(size_average, reduce, reduction):
    """The reduction, also as PyTorch spelt it before there was `reduction`."""
    if size_average is None and reduce is None:
        return reduction
    if isinstance(size_average, str):
        raise TypeError(f"reduction is to be given by name: reduction={size_average!r}")
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def same_shape(name, input, target, which="input and target"):
    """Both as tensors; refuses what would broadcast: (n, 1) against (n,) would silently compare every pair."""
    input, target = as_tensor(name, input), as_tensor(name, target)
    if input.shape == target.shape:
        return input, target
    hint = ""
    if input.numel() == target.numel():
        hint = f"; {which.split()[-1]}.reshape({', '.join(map(str, input.shape))}) would fit"
    raise ValueError(f"{name}: {which} must have the same shape, got {tuple(input.shape)} and {tuple(target.shape)}{hint}")


def fitting(name, what, x, input):
    """`x` as a tensor, which must broadcast to the shape of the input without making it larger."""
    x = as_tensor(name, x)
    try:
        fits = cg.broadcast_shapes(x.shape, input.shape) == input.shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"{name}: {what} of shape {tuple(x.shape)} cannot be broadcast to the shape {tuple(input.shape)} of the input")
    return x


def _weighted(name, loss, weight, reduction):
    if weight is None:
        return reduced(name, loss, reduction)
    loss, weight = same_shape(name, loss, weight, "input and weight")
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else reduced(name, loss, reduction)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
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
    input, target = same_shape("mse_loss", input, target)
    difference = input - target
    return _weighted("mse_loss", difference * difference, weight, old_spelling(size_average, reduce, reduction))


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
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
    input, target = same_shape("l1_loss", input, target)
    return _weighted("l1_loss", abs(input - target), weight, old_spelling(size_average, reduce, reduction))


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
    input, target = same_shape("huber_loss", input, target)
    d = input - target
    size = abs(d)
    loss = cg.where(size <= delta, d * d * 0.5, (size - 0.5 * delta) * delta)
    return _weighted("huber_loss", loss, weight, reduction)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
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
    input, target = same_shape("smooth_l1_loss", input, target)
    reduction = old_spelling(size_average, reduce, reduction)
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    d = input - target
    size = abs(d)
    loss = cg.where(size < beta, d * d * (0.5 / beta), size - 0.5 * beta)
    return reduced("smooth_l1_loss", loss, reduction)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
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
    input, target = same_shape("kl_div", input, target)
    if log_target:
        loss = cg.exp(target) * (target - input)
    else:
        positive = target > 0
        entropy = cg.where(positive, target * cg.log(cg.where(positive, target, 1.0)), 0.0)
        loss = entropy - cg.where(target == 0, 0.0, target * input)
    reduction = old_spelling(size_average, reduce, reduction)
    if reduction == "batchmean":
        return loss.sum() / input.shape[0]
    return reduced("kl_div", loss, reduction)


def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
    """Negative log-likelihood of counts under Poisson distributions.

    Parameters
    ----------
    input : Tensor
        The logarithms of the expected counts; with ``log_input=False`` these themselves.
    target : Tensor
        Counts, of the same shape.
    log_input : bool, default True
        ``exp(x) - t * x``, else ``x - t * log(x + eps)``.
    full : bool, default False
        Add Stirling's approximation of ``log(t!)``, ``t log(t) - t + log(2 pi t) / 2``, where ``t > 1``.
    eps : float
        Keeps the logarithm finite.
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    ValueError
        If the shapes differ.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.poisson_nll_loss(cg.tensor([0.0, 1.0]), cg.tensor([1.0, 2.0]), reduction="none")
    tensor([1.0000, 0.7183])
    """
    name = "poisson_nll_loss"
    input, target = same_shape(name, input, target)
    loss = cg.exp(input) - target * input if log_input else input - target * cg.log(input + eps)
    if full:
        large = target > 1
        t = cg.where(large, target, 1.0)
        loss = loss + cg.where(large, t * cg.log(t) - t + 0.5 * cg.log(2 * math.pi * t), 0.0)
    return reduced(name, loss, old_spelling(size_average, reduce, reduction))


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """Negative log-likelihood of targets under normal distributions: ``(log(var) + (input - target)**2 / var) / 2``.

    Parameters
    ----------
    input : Tensor
        Means.
    target : Tensor
        Broadcast to the shape of the input.
    var : Tensor or number
        Variances, broadcast to the shape of the input; also of its shape without the last axis.
    full : bool, default False
        Add ``log(2 pi) / 2``.
    eps : float
        Smaller variances count as this, with the gradient as if they were so.
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    ValueError
        If the shapes do not fit, a variance is negative, or `eps` is not positive.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.gaussian_nll_loss(cg.tensor([0.0, 1.0]), cg.tensor([2.0, 1.0]), cg.tensor([1.0, 4.0]), reduction="none")
    tensor([2.0000, 0.6931])
    """
    name = "gaussian_nll_loss"
    if not eps > 0:
        raise ValueError(f"{name}: eps must be positive, got {eps}")
    input = as_tensor(name, input)
    var = cg.as_tensor(var, dtype=input.dtype) if isinstance(var, (int, float)) else as_tensor(name, var)
    if var.ndim and var.shape != input.shape and var.shape == input.shape[:-1]:
        var = var[..., None]
    target, var = fitting(name, "target", target, input), fitting(name, "var", var, input)
    every = all_examples(var)
    if every.numel() and every.min().item() < 0:
        raise ValueError(f"{name}: variances must not be negative, got {every.min().item()}")
    var = var + cg.clamp_min(eps - var, 0.0).detach()
    loss = 0.5 * (cg.log(var) + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(name, loss, reduction)
