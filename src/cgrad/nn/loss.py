"""Losses as modules; the formulas are in `functional` (loss, classification, margin, ctc)."""
from __future__ import annotations

from cgrad.nn import functional as F
from cgrad.nn.functional.loss import old_spelling
from cgrad.nn.module import Module

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss", "HingeEmbeddingLoss", "HuberLoss",
    "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss",
    "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]


class _Loss(Module):
    """What all losses share: the reduction, also as PyTorch spelt it before there was `reduction`."""

    _reductions: tuple[str, ...] = ("mean", "sum", "none")

    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        super().__init__()
        reduction = old_spelling(size_average, reduce, reduction)
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
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """Mean absolute error; see `functional.l1_loss`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.L1Loss()(cg.tensor([1.0, 2.0]), cg.tensor([0.0, 4.0]))
    tensor(1.5000)
    """

    def forward(self, input, target):
        return F.l1_loss(input, target, reduction=self.reduction)


class HuberLoss(_Loss):
    """Squared near 0, straight beyond `delta`; see `functional.huber_loss`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.HuberLoss()(cg.tensor([3.0]), cg.tensor([0.0]))
    tensor(2.5000)
    """

    def __init__(self, reduction="mean", delta=1.0):
        super().__init__(reduction=reduction)
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

    def __init__(self, size_average=None, reduce=None, reduction="mean", beta=1.0):
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input, target):
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


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

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
        super().__init__(size_average, reduce, reduction)
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

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
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

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
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

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
        super().__init__(size_average, reduce, reduction)
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

    def __init__(self, size_average=None, reduce=None, reduction="mean", log_target=False):
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input, target):
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(_Loss):
    """Negative log-likelihood of counts; see `functional.poisson_nll_loss`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.PoissonNLLLoss()(cg.tensor([0.0, 1.0]), cg.tensor([1.0, 2.0]))
    tensor(0.8591)
    """

    def __init__(self, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, input, target):
        return F.poisson_nll_loss(input, target, self.log_input, self.full, eps=self.eps, reduction=self.reduction)


class GaussianNLLLoss(_Loss):
    """Negative log-likelihood under normal distributions; see `functional.gaussian_nll_loss`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.GaussianNLLLoss()(cg.tensor([0.0, 1.0]), cg.tensor([2.0, 1.0]), cg.ones(2))
    tensor(1.)
    """

    def __init__(self, *, full=False, eps=1e-6, reduction="mean"):
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input, target, var):
        return F.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class HingeEmbeddingLoss(_Loss):
    """Small distances for like pairs, a margin for unlike ones; see `functional.hinge_embedding_loss`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.HingeEmbeddingLoss()(cg.tensor([0.5, 0.25]), cg.tensor([1, -1]))
    tensor(0.6250)
    """

    def __init__(self, margin=1.0, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input, target):
        return F.hinge_embedding_loss(input, target, self.margin, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """Logistic loss of targets 1 and -1; see `functional.soft_margin_loss`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.SoftMarginLoss()(cg.tensor([0.0]), cg.tensor([1.0]))
    tensor(0.6931)
    """

    def forward(self, input, target):
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """Which of two scores is to be larger; see `functional.margin_ranking_loss`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.MarginRankingLoss()(cg.tensor([3.0, 1.0]), cg.tensor([1.0, 2.0]), cg.tensor([1.0, 1.0]))
    tensor(0.5000)
    """

    def __init__(self, margin=0.0, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1, input2, target):
        return F.margin_ranking_loss(input1, input2, target, self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """Small angles for like pairs of vectors, a margin for unlike ones; see `functional.cosine_embedding_loss`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.CosineEmbeddingLoss()(cg.tensor([[1.0, 0.0]]), cg.tensor([[3.0, 4.0]]), cg.tensor([1]))
    tensor(0.4000)
    """

    def __init__(self, margin=0.0, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1, input2, target):
        return F.cosine_embedding_loss(input1, input2, target, self.margin, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """Nearer to the like than to the unlike, by a margin; see `functional.triplet_margin_loss`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.TripletMarginLoss()(cg.tensor([[0.0, 0.0]]), cg.tensor([[3.0, 4.0]]), cg.tensor([[0.0, 2.0]]))
    tensor(4.0000)
    """

    def __init__(self, margin=1.0, p=2.0, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor, positive, negative):
        return F.triplet_margin_loss(anchor, positive, negative, self.margin, self.p, self.eps, self.swap, reduction=self.reduction)


class TripletMarginWithDistanceLoss(_Loss):
    """`TripletMarginLoss` with any distance; see `functional.triplet_margin_with_distance_loss`.

    Examples
    --------
    >>> import cgrad as cg
    >>> loss = cg.nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: (x - y).abs().sum(-1))
    >>> loss(cg.zeros(1, 2), cg.tensor([[3.0, 4.0]]), cg.tensor([[0.0, 2.0]]))
    tensor(6.)
    """

    def __init__(self, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
        super().__init__(reduction=reduction)
        self.distance_function = distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor, positive, negative):
        return F.triplet_margin_with_distance_loss(anchor, positive, negative, distance_function=self.distance_function, margin=self.margin,
                                                   swap=self.swap, reduction=self.reduction)


class MultiMarginLoss(_Loss):
    """One class, by a margin over each other; see `functional.multi_margin_loss`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.MultiMarginLoss()(cg.tensor([[0.1, 0.2, 0.4, 0.8]]), cg.tensor([3]))
    tensor(0.3250)
    """

    def __init__(self, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.p = p
        self.margin = margin

    def forward(self, input, target):
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weight, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """Several classes, each by a margin over each other; see `functional.multilabel_margin_loss`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.MultiLabelMarginLoss()(cg.tensor([[0.1, 0.2, 0.4, 0.8]]), cg.tensor([[3, 0, -1, 1]]))
    tensor(0.8500)
    """

    def forward(self, input, target):
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_Loss):
    """Independent yes or no for each class; see `functional.multilabel_soft_margin_loss`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.MultiLabelSoftMarginLoss()(cg.tensor([[0.0, 2.0]]), cg.tensor([[1.0, 0.0]]))
    tensor(1.4100)
    """

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)

    def forward(self, input, target):
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class CTCLoss(_Loss):
    """Label sequences of unknown alignment; see `functional.ctc_loss`.

    Examples
    --------
    >>> import cgrad as cg
    >>> log_probs = cg.zeros(2, 1, 3).log_softmax(2)
    >>> cg.nn.CTCLoss()(log_probs, cg.tensor([[1]]), [2], [1])
    tensor(1.0986)
    """

    def __init__(self, blank=0, reduction="mean", zero_infinity=False):
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs, targets, input_lengths, target_lengths):
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity)
