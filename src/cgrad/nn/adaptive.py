"""AdaptiveLogSoftmaxWithLoss: a softmax over very many classes, cheap where rare classes are grouped."""
from __future__ import annotations

from typing import Any, NamedTuple

import cgrad as cg
from cgrad.core.device import check_device
from cgrad.nn import functional as F
from cgrad.nn.container import ModuleList, Sequential
from cgrad.nn.linear import Linear
from cgrad.nn.module import Module, check_sizes

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class AdaptiveSoftmaxOutput(NamedTuple):
    """The log-probability of each target, and the loss, which is the mean of their negatives."""

    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of classes that are sorted by how frequent they are: the head knows the frequent ones and clusters of the others.

    Parameters
    ----------
    in_features, n_classes : int
    cutoffs : sequence of int
        Increasing, from 1 to n_classes - 1: where the first cluster begins, then the next, and so on.
    div_value : float, default 4
        Cluster i works with ``in_features / div_value**(i + 1)`` features.
    head_bias : bool, default False
        Whether the head has a bias.
    dtype : dtype, optional
        Default: the default floating dtype.

    Attributes
    ----------
    head : Linear
    tail : ModuleList
        Two linear layers for each cluster.

    Notes
    -----
    log p(class) = log p(cluster) + log p(class in the cluster). Grave et al., "Efficient softmax approximation for GPUs", 2017.

    Examples
    --------
    >>> import cgrad as cg
    >>> layer = cg.nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[5, 10])
    >>> output, loss = layer(cg.randn(4, 8), cg.tensor([0, 7, 12, 19]))
    >>> output.shape, loss.shape
    ((4,), ())
    """

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None):
        check_device(type(self).__name__, device)
        super().__init__()
        check_sizes(self, 2, n_classes=n_classes)
        cutoffs = [int(c) for c in cutoffs]
        if not cutoffs or cutoffs != sorted(set(cutoffs)) or cutoffs[0] < 1 or cutoffs[-1] > n_classes - 1:
            raise ValueError(f"AdaptiveLogSoftmaxWithLoss: cutoffs must be increasing numbers from 1 to {n_classes - 1}, got {cutoffs}")
        self.in_features, self.n_classes, self.div_value, self.head_bias = in_features, n_classes, div_value, head_bias
        self.cutoffs = [*cutoffs, n_classes]
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, dtype=dtype)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            width = int(in_features // div_value ** (i + 1))
            self.tail.append(Sequential(Linear(in_features, width, bias=False, dtype=dtype),
                                        Linear(width, self.cutoffs[i + 1] - self.cutoffs[i], bias=False, dtype=dtype)))

    def reset_parameters(self):
        """Draw new values."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input, target):
        """(output, loss) for input of shape (N, in_features) and targets of shape (N,), or both without N."""
        if target.ndim > 1 or input.ndim != target.ndim + 1 or input.shape[:-1] != target.shape:
            raise ValueError("AdaptiveLogSoftmaxWithLoss: the input must have shape (N, in_features) and the target (N,), or (in_features,) and (), "
                             f"got {tuple(input.shape)} and {tuple(target.shape)}")
        x, wanted = (input, target) if target.ndim else (input.unsqueeze(0), target.unsqueeze(0))
        if wanted.size and not (0 <= wanted.min().item() and wanted.max().item() < self.n_classes):
            raise ValueError(f"AdaptiveLogSoftmaxWithLoss: targets must be from 0 to {self.n_classes - 1}, got {wanted.min().item()} to {wanted.max().item()}")
        cluster = cg.searchsorted(cg.tensor(self.cutoffs), wanted, right=True)          # 0 is the head
        entry = cg.where(cluster == 0, wanted, self.shortlist_size - 1 + cluster)
        output = _picked(self.head(x), entry)
        for i, (layer, low) in enumerate(zip(self.tail, self.cutoffs)):
            rows = cg.argwhere(cluster == i + 1).ravel()
            if rows.size:
                output = cg.index_add(output, 0, rows, _picked(layer(x[rows]), wanted[rows] - low))
        loss = -output.mean()
        return AdaptiveSoftmaxOutput(output if target.ndim else output.squeeze(0), loss)

    def log_prob(self, input):
        """The log-probabilities of all classes, of shape (N, n_classes)."""
        head = F.log_softmax(self.head(input), dim=-1)
        parts = [head[..., :self.shortlist_size]]
        for i, layer in enumerate(self.tail):
            parts.append(F.log_softmax(layer(input), dim=-1) + head[..., self.shortlist_size + i].unsqueeze(-1))
        return cg.concat(parts, axis=-1)

    def predict(self, input):
        """The most probable class of each row; the same as ``log_prob(input).argmax(axis=-1)``, but cheaper where the head decides."""
        best = self.head(input).argmax(axis=-1)
        open_rows = cg.argwhere(best >= self.shortlist_size).ravel()
        if open_rows.size:
            best[open_rows] = self.log_prob(input[open_rows]).argmax(axis=-1)
        return best


def _picked(scores, classes):
    return -F.cross_entropy(scores, classes, reduction="none")
