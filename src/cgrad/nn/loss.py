"""Losses as modules; the formulas are in `functional.loss` and `functional.classification`."""
from __future__ import annotations

from cgrad.nn import functional as F
from cgrad.nn.module import Module

__all__ = [
    "MSELoss", "L1Loss", "HuberLoss", "SmoothL1Loss", "CrossEntropyLoss", "NLLLoss", "BCELoss", "BCEWithLogitsLoss", "KLDivLoss",
]


class _Loss(Module):
    """What all losses share: the reduction."""

    _reductions: tuple[str, ...] = ("mean", "sum", "none")

    def __init__(self, reduction="mean"):
        super().__init__()
        allowed = self._reductions
        if reduction not in allowed:
            raise ValueError(f"{type(self).__name__}: reduction must be one of {', '.join(allowed)}, got {reduction!r}")
        self.reduction = reduction


class MSELoss(_Loss):
    """Mean squared error; see `functional.mse_loss`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.MSELoss()(cg.tensor([1.0, 2.0]), cg.tensor([0.0, 4.0]))
    tensor(2.5000)
    """

    def forward(self, input, target):
        return F.mse_loss(input, target, self.reduction)


class L1Loss(_Loss):
    """Mean absolute error; see `functional.l1_loss`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.L1Loss()(cg.tensor([1.0, 2.0]), cg.tensor([0.0, 4.0]))
    tensor(1.5000)
    """

    def forward(self, input, target):
        return F.l1_loss(input, target, self.reduction)


class HuberLoss(_Loss):
    """Squared near 0, straight beyond `delta`; see `functional.huber_loss`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.HuberLoss()(cg.tensor([3.0]), cg.tensor([0.0]))
    tensor(2.5000)
    """

    def __init__(self, reduction="mean", delta=1.0):
        super().__init__(reduction)
        self.delta = delta

    def forward(self, input, target):
        return F.huber_loss(input, target, self.reduction, self.delta)


class SmoothL1Loss(_Loss):
    """Huber loss divided by its delta; see `functional.smooth_l1_loss`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.SmoothL1Loss()(cg.tensor([3.0]), cg.tensor([0.0]))
    tensor(2.5000)
    """

    def __init__(self, reduction="mean", beta=1.0):
        super().__init__(reduction)
        self.beta = beta

    def forward(self, input, target):
        return F.smooth_l1_loss(input, target, self.reduction, self.beta)


class CrossEntropyLoss(_Loss):
    """Negative log-likelihood of the targets under ``softmax(input)``; see `functional.cross_entropy`.

    Parameters
    ----------
    weight : Tensor, shape (C,), optional
        A weight for each class.
    ignore_index : int, default -100
    reduction : {"mean", "sum", "none"}
    label_smoothing : float, default 0

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.CrossEntropyLoss()(cg.zeros((3, 4)), cg.tensor([0, 1, 3]))
    tensor(1.3863)
    """

    def __init__(self, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
        super().__init__(reduction)
        if not 0.0 <= label_smoothing <= 1.0:
            raise ValueError(f"CrossEntropyLoss: label_smoothing must lie in [0, 1], got {label_smoothing}")
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input, target):
        return F.cross_entropy(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction,
                               label_smoothing=self.label_smoothing)


class NLLLoss(_Loss):
    """Negative log-likelihood of class indices under given log-probabilities; see `functional.nll_loss`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.NLLLoss()(cg.log(cg.tensor([[0.5, 0.5]])), cg.tensor([1]))
    tensor(0.6931)
    """

    def __init__(self, weight=None, ignore_index=-100, reduction="mean"):
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index

    def forward(self, input, target):
        return F.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class BCELoss(_Loss):
    """Binary cross-entropy of probabilities; see `functional.binary_cross_entropy`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.BCELoss()(cg.tensor([0.5]), cg.tensor([1.0]))
    tensor(0.6931)
    """

    def __init__(self, weight=None, reduction="mean"):
        super().__init__(reduction)
        self.register_buffer("weight", weight)

    def forward(self, input, target):
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross-entropy of ``sigmoid(input)``; see `functional.binary_cross_entropy_with_logits`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.BCEWithLogitsLoss()(cg.tensor([0.0]), cg.tensor([1.0]))
    tensor(0.6931)
    """

    def __init__(self, weight=None, reduction="mean", pos_weight=None):
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input, target):
        return F.binary_cross_entropy_with_logits(input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight)


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence with the input in log space; see `functional.kl_div`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.KLDivLoss(reduction="batchmean")(cg.log(cg.tensor([[0.5, 0.5]])), cg.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """

    _reductions = ("mean", "sum", "none", "batchmean")

    def __init__(self, reduction="mean", log_target=False):
        super().__init__(reduction)
        self.log_target = log_target

    def forward(self, input, target):
        return F.kl_div(input, target, self.reduction, self.log_target)
