"""Losses that ask for a margin: between scores, between distances, and between classes."""
from __future__ import annotations

import cgrad as cg
from cgrad.core.arguments import as_tensor
from cgrad.core.batching import all_examples
from cgrad.nn.functional.distance import cosine_similarity, pairwise_distance
from cgrad.nn.functional.loss import fitting, old_spelling, reduced, same_shape

__all__ = [
    "cosine_embedding_loss", "hinge_embedding_loss", "margin_ranking_loss", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "soft_margin_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss",
]


# ------------------------------------------------------------------------------------------------ yes or no, written as 1 and -1
def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """``x`` where the target is 1, ``max(0, margin - x)`` where it is -1: for distances of like and unlike pairs.

    Parameters
    ----------
    input : Tensor
    target : Tensor
        1 or -1, of the same shape.
    margin : float, default 1
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    ValueError
        If the shapes differ.

    Notes
    -----
    Any other target counts as both.  The gradient at the corner ``x = margin`` is -1 for an unlike pair, as in PyTorch.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.hinge_embedding_loss(cg.tensor([0.5, 0.25, 2.0]), cg.tensor([1, -1, -1]), reduction="none")
    tensor([0.5000, 0.7500, 0.0000])
    """
    name = "hinge_embedding_loss"
    input, target = same_shape(name, input, target)
    loss = cg.where(target != 1, cg.clamp_min(margin - input, 0.0), 0.0) + cg.where(target != -1, input, 0.0)
    return reduced(name, loss, old_spelling(size_average, reduce, reduction))


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """Logistic loss ``log(1 + exp(-target * input))`` of targets 1 and -1.

    Parameters
    ----------
    input, target : Tensor
        Of the same shape.
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    ValueError
        If the shapes differ.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.soft_margin_loss(cg.tensor([0.0, 2.0]), cg.tensor([1.0, -1.0]), reduction="none")
    tensor([0.6931, 2.1269])
    """
    input, target = same_shape("soft_margin_loss", input, target)
    return reduced("soft_margin_loss", cg.softplus(-target * input), old_spelling(size_average, reduce, reduction))


def margin_ranking_loss(input1, input2, target, margin=0.0, size_average=None, reduce=None, reduction="mean"):
    """``max(0, margin - target * (input1 - input2))``: 1 asks for the first to be larger by the margin, -1 for the second.

    Parameters
    ----------
    input1, input2, target : Tensor
        Of the same shape.
    margin : float, default 0
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    ValueError
        If the shapes differ.

    Notes
    -----
    The gradient at the corner is that of the sloping side, as in PyTorch.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.margin_ranking_loss(cg.tensor([3.0, 1.0]), cg.tensor([1.0, 2.0]), cg.tensor([1.0, 1.0]), reduction="none")
    tensor([0., 1.])
    """
    name = "margin_ranking_loss"
    input1, input2 = same_shape(name, input1, input2, "input1 and input2")
    input1, target = same_shape(name, input1, target)
    loss = cg.clamp_min(margin - target * (input1 - input2), 0.0)
    return reduced(name, loss, old_spelling(size_average, reduce, reduction))


# ------------------------------------------------------------------------------------------------------------------- vectors
def cosine_embedding_loss(input1, input2, target, margin=0.0, size_average=None, reduce=None, reduction="mean"):
    """``1 - cos`` where the target is 1, ``max(0, cos - margin)`` where it is -1, with the cosine of the angle between two vectors.

    Parameters
    ----------
    input1, input2 : Tensor, shape (N, D) or (D,)
    target : Tensor, shape (N,) or ()
        1 for like, -1 for unlike pairs; other targets give 0.
    margin : float, default 0
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Notes
    -----
    The gradient at the corner ``cos = margin`` is that of the sloping side, as in PyTorch; lengths below 1e-6 count as 1e-6.

    Examples
    --------
    >>> import cgrad as cg
    >>> x, y = cg.tensor([[1.0, 0.0], [1.0, 0.0]]), cg.tensor([[3.0, 4.0], [3.0, 4.0]])
    >>> cg.nn.functional.cosine_embedding_loss(x, y, cg.tensor([1, -1]), reduction="none")
    tensor([0.4000, 0.6000])
    """
    name = "cosine_embedding_loss"
    input1, input2 = same_shape(name, input1, input2, "input1 and input2")
    target = as_tensor(name, target)
    if input1.ndim not in (1, 2) or target.shape != input1.shape[:-1]:
        raise ValueError(f"{name}: expected vectors of shape (N, D) and targets (N,), or (D,) and (), got {tuple(input1.shape)} and {tuple(target.shape)}")
    cosine = cosine_similarity(input1, input2, -1, 1e-6)
    loss = cg.where(target == 1, 1.0 - cosine, cg.where(target == -1, cg.clamp_min(cosine - margin, 0.0), 0.0))
    return reduced(name, loss, old_spelling(size_average, reduce, reduction))


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"):
    """``max(0, |anchor - positive| - |anchor - negative| + margin)`` of vectors along the last axis.

    Parameters
    ----------
    anchor, positive, negative : Tensor
        Of the same shape, (N, D) or (D,).
    margin : float, default 1
    p, eps
        As for `pairwise_distance`.
    swap : bool, default False
        Take the distance of the negative from the anchor or from the positive, whichever is smaller (Balntas et al., 2016).
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    ValueError
        If the shapes differ or the margin is not positive.

    Notes
    -----
    The gradient at the corner is that of the sloping side, as in PyTorch.

    Examples
    --------
    >>> import cgrad as cg
    >>> F = cg.nn.functional
    >>> F.triplet_margin_loss(cg.tensor([[0.0, 0.0]]), cg.tensor([[3.0, 4.0]]), cg.tensor([[0.0, 2.0]]))
    tensor(4.0000)
    """
    return _triplet("triplet_margin_loss", anchor, positive, negative, lambda a, b: pairwise_distance(a, b, p, eps), margin, swap,
                    old_spelling(size_average, reduce, reduction))


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
    """`triplet_margin_loss` with any distance.

    Parameters
    ----------
    anchor, positive, negative : Tensor
        Of the same shape.
    distance_function : callable, optional
        Of two tensors; `pairwise_distance` by default.
    margin, swap, reduction
        As for `triplet_margin_loss`.

    Raises
    ------
    ValueError
        If the shapes differ or the margin is not positive.

    Examples
    --------
    >>> import cgrad as cg
    >>> F = cg.nn.functional
    >>> l1 = lambda x, y: (x - y).abs().sum(-1)
    >>> F.triplet_margin_with_distance_loss(cg.zeros(1, 2), cg.tensor([[3.0, 4.0]]), cg.tensor([[0.0, 2.0]]), distance_function=l1)
    tensor(6.)
    """
    return _triplet("triplet_margin_with_distance_loss", anchor, positive, negative, distance_function or pairwise_distance, margin, swap, reduction)


def _triplet(name, anchor, positive, negative, distance, margin, swap, reduction):
    if not margin > 0:
        raise ValueError(f"{name}: margin must be positive, got {margin}")
    anchor, positive = same_shape(name, anchor, positive, "anchor and positive")
    anchor, negative = same_shape(name, anchor, negative, "anchor and negative")
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = cg.minimum(far, distance(positive, negative))
    return reduced(name, cg.clamp_min(near - far + margin, 0.0), reduction)


# ------------------------------------------------------------------------------------------------------------------- classes
def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """``sum over c != target of max(0, margin - x[target] + x[c])**p / C``: one class of C, by a margin over each other.

    Parameters
    ----------
    input : Tensor, shape (N, C) or (C,)
        Scores.
    target : Tensor of integers, shape (N,) or ()
    p : {1, 2}
    margin : float, default 1
    weight : Tensor, shape (C,), optional
        A factor for each target class.
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    ValueError
        If the shapes do not fit, or for another `p`.
    IndexError
        If a target is not in [0, C).

    Notes
    -----
    The gradient at the corners is 0.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.multi_margin_loss(cg.tensor([[0.1, 0.2, 0.4, 0.8]]), cg.tensor([3]))
    tensor(0.3250)
    """
    name = "multi_margin_loss"
    if p not in (1, 2):
        raise ValueError(f"{name}: p must be 1 or 2, got {p}")
    x, y, single = _rows(name, input, target, per_class=False)
    n = x.shape[1]
    weight = None if weight is None else as_tensor(name, weight)
    if weight is not None and weight.shape != (n,):
        raise ValueError(f"{name}: weight must have one element for each of {n} classes, got shape {tuple(weight.shape)}")
    excess = cg.relu(margin - cg.take_along_axis(x, y[:, None], 1) + x) ** p
    if weight is not None:
        excess = excess * weight[y][:, None]
    loss = cg.where(cg.arange(n) == y[:, None], 0.0, excess).sum(1) / n
    return reduced(name, loss[0] if single else loss, old_spelling(size_average, reduce, reduction))


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """``sum of max(0, 1 - x[target] + x[other]) / C`` over all pairs of a target class and another.

    Parameters
    ----------
    input : Tensor, shape (N, C) or (C,)
        Scores.
    target : Tensor of integers
        Of the same shape: the target classes of each row; those from the first -1 on do not count.
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    ValueError
        If the shapes differ.
    IndexError
        If a target is not in [-1, C).

    Notes
    -----
    The gradient at the corners is 0.

    Examples
    --------
    >>> import cgrad as cg
    >>> x, y = cg.tensor([[0.1, 0.2, 0.4, 0.8]]), cg.tensor([[3, 0, -1, 1]])          # classes 3 and 0
    >>> cg.nn.functional.multilabel_margin_loss(x, y)
    tensor(0.8500)
    """
    name = "multilabel_margin_loss"
    x, y, single = _rows(name, input, target, per_class=True)
    n = x.shape[1]
    counts = cg.cumsum((y < 0).astype(cg.int64), 1) == 0              # targets before the first -1
    longest = int(all_examples(counts.astype(cg.int64).sum(1)).max().item()) if y.size else 0
    counts, y = counts[:, :longest, None], cg.clamp_min(y[:, :longest], 0)
    wanted = ((y[:, :, None] == cg.arange(n)) & counts).any(1)
    excess = cg.relu(1.0 - cg.take_along_axis(x, y, 1)[:, :, None] + x[:, None])
    loss = cg.where(counts & ~wanted[:, None], excess, 0.0).sum((1, 2)) / n
    return reduced(name, loss[0] if single else loss, old_spelling(size_average, reduce, reduction))


def _rows(name, input, target, per_class):
    """Scores as rows, targets as integers for each, and whether there was one row only; checked."""
    input, target = as_tensor(name, input), as_tensor(name, target)
    if not input.dtype.is_floating_point or target.dtype.kind not in ("integer", "unsigned integer"):
        raise TypeError(f"{name}: the input must be floating point and the target integers, got {input.dtype.name} and {target.dtype.name}")
    n = input.shape[-1] if input.ndim else 1
    rows = input.shape[0] if input.ndim == 2 else 1
    wanted = rows * n if per_class else rows
    fits = target.ndim == input.ndim if per_class else target.ndim <= 1
    if input.ndim > 2 or n == 0 or not fits or target.size != wanted or input.ndim == 2 and target.shape[0] != rows:
        raise ValueError(f"{name}: expected scores of shape (N, C) and targets of shape {'(N, C)' if per_class else '(N,)'}, or (C,) and "
                         f"{'(C,)' if per_class else '()'}, got {tuple(input.shape)} and {tuple(target.shape)}")
    every = all_examples(target)
    low, high = (every.min().item(), every.max().item()) if every.size else (0, 0)
    if low < (-1 if per_class else 0) or high >= n:
        raise IndexError(f"{name}: targets must lie in [{-1 if per_class else 0}, {n}), got {low if low < (-1 if per_class else 0) else high}")
    return input.reshape(rows, n), target.reshape((rows, n) if per_class else (rows,)).astype(cg.int64), input.ndim < 2


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Mean over the classes of the binary cross-entropy of ``sigmoid(input)``.

    Parameters
    ----------
    input : Tensor, shape (..., C)
        Logits.
    target : Tensor
        Of the same shape, in [0, 1].
    weight : Tensor, optional
        A factor for each class, broadcast to the shape of the input.
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.multilabel_soft_margin_loss(cg.tensor([[0.0, 2.0]]), cg.tensor([[1.0, 0.0]]))
    tensor(1.4100)
    """
    name = "multilabel_soft_margin_loss"
    input, target = same_shape(name, input, target)
    if input.ndim == 0:
        raise ValueError(f"{name}: the input must have a class axis, got shape ()")
    loss = target * cg.softplus(-input) + (1.0 - target) * cg.softplus(input)
    if weight is not None:
        loss = loss * fitting(name, "weight", weight, input)
    return reduced(name, loss.mean(-1), old_spelling(size_average, reduce, reduction))
