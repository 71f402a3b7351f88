"""The loss of sequences whose alignment with their labels is unknown: connectionist temporal classification."""
from __future__ import annotations

import cgrad as cg
from cgrad.core.arguments import as_tensor
from cgrad.nn.functional.loss import reduced
from cgrad.ops.loss import ctc

__all__ = ["ctc_loss"]


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """Negative log-likelihood of label sequences, summed over all their alignments with the input (CTC).

    Parameters
    ----------
    log_probs : Tensor, shape (T, N, C) or (T, C)
        Log-probabilities of C classes at T time steps for N samples, as from `log_softmax`.
    targets : Tensor of integers, shape (N, S), (sum(target_lengths),) or, for one sample, (S,)
        Labels: padded to the same length, or those of all samples one after the other.
    input_lengths, target_lengths : Tensor, sequence of int or int
        How many time steps and how many labels each sample has.
    blank : int, default 0
        The class that stands for no label.
    reduction : {"mean", "sum", "none"}
        "mean" divides each loss by the number of its labels first (by 1 if there are none).
    zero_infinity : bool, default False
        Count samples without any alignment (too few time steps) as 0, without gradient, instead of infinite.

    Returns
    -------
    Tensor
        0-d, or for "none" of shape (N,).

    Raises
    ------
    ValueError
        If shapes or lengths do not fit.
    IndexError
        If a label within the lengths is not a class, or is `blank`.

    Notes
    -----
    Graves, Fernández, Gomez, Schmidhuber, "Connectionist temporal classification", 2006: the forward-backward recursions, in logarithms.
    The gradient is ``exp(log_probs) - occupancy`` for each step and class, as in PyTorch: that of log-probabilities which sum to one,
    and exact behind `log_softmax`, in any order.  It is NaN for an infinite loss, and 0 for time steps after `input_lengths`.

    Examples
    --------
    >>> import cgrad as cg
    >>> log_probs = cg.zeros(2, 1, 3).log_softmax(2)          # two steps: a label and a blank in any order, or the label twice
    >>> cg.nn.functional.ctc_loss(log_probs, cg.tensor([[1]]), [2], [1]).exp()
    tensor(3.)
    """
    name = "ctc_loss"
    log_probs, targets = as_tensor(name, log_probs), as_tensor(name, targets)
    if log_probs.ndim not in (2, 3) or not log_probs.dtype.is_floating_point:
        raise ValueError(f"{name}: log_probs must be floating point of shape (T, N, C) or (T, C), got {log_probs.dtype.name} {tuple(log_probs.shape)}")
    if targets.dtype.kind not in ("integer", "unsigned integer"):
        raise TypeError(f"{name}: targets must be integers, got {targets.dtype.name}")
    single = log_probs.ndim == 2
    x = log_probs[:, None] if single else log_probs
    input_lengths, target_lengths = _lengths("input_lengths", input_lengths, x.shape[1]), _lengths("target_lengths", target_lengths, x.shape[1])
    losses, _ = ctc(x, _padded(targets, target_lengths), input_lengths, target_lengths, blank)
    if zero_infinity:
        losses = cg.where(cg.isinf(losses), 0.0, losses)
    if reduction == "mean":
        losses = losses / cg.tensor([max(n, 1) for n in target_lengths], dtype=losses.dtype)
    return losses[0] if single and reduction == "none" else reduced(name, losses, reduction)


def _lengths(what, lengths, samples):
    lengths = lengths.tolist() if hasattr(lengths, "tolist") else lengths
    lengths = tuple(lengths) if isinstance(lengths, (list, tuple)) else (lengths,)
    if len(lengths) != samples or not all(isinstance(n, int) for n in lengths):
        raise ValueError(f"ctc_loss: {what} must hold an integer for each of {samples} samples, got {lengths}")
    return lengths


def _padded(targets, lengths):
    """Labels one after the other as rows of one length."""
    if targets.ndim == 2:
        return targets
    if targets.ndim != 1 or targets.size != sum(lengths) or min(lengths, default=0) < 0:
        raise ValueError(f"ctc_loss: targets must have shape ({len(lengths)}, S), or one axis of length sum(target_lengths) = {sum(lengths)}, "
                         f"got {tuple(targets.shape)}")
    if len(lengths) == 1 or not targets.size:
        return targets.reshape(len(lengths), -1) if targets.size else cg.zeros((len(lengths), 0), dtype=targets.dtype)
    steps = cg.tensor(lengths)
    index = (cg.cumsum(steps) - steps)[:, None] + cg.arange(max(lengths))
    return targets[cg.clamp_max(index, targets.size - 1)]
