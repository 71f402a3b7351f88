"""Embedding and EmbeddingBag: a table whose rows are picked by index, one by one or summed in bags."""
from __future__ import annotations

import cgrad as cg
from cgrad.core.device import check_device
from cgrad.nn import functional as F
from cgrad.nn import init
from cgrad.nn.functional.embedding import row_number
from cgrad.nn.module import Module, check_sizes
from cgrad.nn.parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class Embedding(Module):
    """A table of vectors, one for each index.

    Parameters
    ----------
    num_embeddings : int
        The number of vectors.
    embedding_dim : int
        Their length.
    padding_idx : int, optional
        A row that starts at 0 and gets no gradient; may count from the end.
    max_norm : float, optional
        Rows that are picked and have a larger norm are scaled down to it, in place.
    norm_type : float, default 2
        The order of that norm.
    scale_grad_by_freq : bool, default False
        Divide the gradient of a row by how often its index occurs.
    sparse : bool, default False
        Taken for compatibility: gradients are dense either way.
    dtype : dtype, optional
        Default: the default floating dtype.

    Attributes
    ----------
    weight : Parameter, shape (num_embeddings, embedding_dim)
        Starts as standard normal numbers, as in PyTorch.

    See Also
    --------
    cgrad.nn.functional.embedding : The same with the table as an argument.

    Examples
    --------
    >>> import cgrad as cg
    >>> layer = cg.nn.Embedding(10, 3, padding_idx=0)
    >>> layer(cg.tensor([[1, 2, 4, 0]])).shape
    (1, 4, 3)
    """

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
                 sparse=False, _weight=None, _freeze=False, device=None, dtype=None):
        check_device(type(self).__name__, device)
        super().__init__()
        check_sizes(self, 0, num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else row_number("Embedding", padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if _weight is None:
            self.weight = Parameter(cg.empty((num_embeddings, embedding_dim), dtype=dtype), not _freeze)
            self.reset_parameters()
        else:
            if _weight.shape != (num_embeddings, embedding_dim):
                raise ValueError(f"Embedding: the weight must have shape ({num_embeddings}, {embedding_dim}), got {tuple(_weight.shape)}")
            self.weight = Parameter(_weight, not _freeze)

    def reset_parameters(self):
        """Draw new values; the padding row becomes 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with cg.no_grad():
                self.weight[self.padding_idx] = 0.0

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
                        sparse=False):
        """A layer whose table is given.

        Parameters
        ----------
        embeddings : Tensor, shape (num_embeddings, embedding_dim)
            Its memory is shared.
        freeze : bool, default True
            Whether the table gets no gradient.
        padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
            As for the class; the padding row stays as it is given.

        Examples
        --------
        >>> import cgrad as cg
        >>> layer = cg.nn.Embedding.from_pretrained(cg.tensor([[1.0, 2.5], [4.0, 5.5]]))
        >>> layer(cg.tensor([1]))
        tensor([[4.0000, 5.5000]])
        """
        if embeddings.ndim != 2:
            raise ValueError(f"Embedding: the table must have shape (num_embeddings, embedding_dim), got {tuple(embeddings.shape)}")
        return cls(*embeddings.shape, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight=embeddings, _freeze=freeze)

    def forward(self, input):
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)

    def extra_repr(self):
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        for name, default in (("padding_idx", None), ("max_norm", None), ("norm_type", 2.0), ("scale_grad_by_freq", False), ("sparse", False)):
            if getattr(self, name) != default:
                parts.append(f"{name}={getattr(self, name)}")
        return ", ".join(parts)


class EmbeddingBag(Module):
    """A table of vectors, of which sums, means or maxima are taken for bags of indices.

    Parameters
    ----------
    num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, sparse, dtype
        As for `Embedding`.
    mode : {"mean", "sum", "max"}
        What is taken over the rows of a bag.
    include_last_offset : bool, default False
        Whether the last offset is the end of the last bag.
    padding_idx : int, optional
        An index that counts as not there; its row starts at 0.

    Attributes
    ----------
    weight : Parameter, shape (num_embeddings, embedding_dim)
        Starts as standard normal numbers, as in PyTorch.

    See Also
    --------
    cgrad.nn.functional.embedding_bag : The same with the table as an argument.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.EmbeddingBag(10, 3)(cg.tensor([1, 2, 4, 5]), cg.tensor([0, 3])).shape
    (2, 3)
    """

    def __init__(self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="mean", sparse=False,
                 _weight=None, include_last_offset=False, padding_idx=None, device=None, dtype=None):
        check_device(type(self).__name__, device)
        super().__init__()
        check_sizes(self, 0, num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self.padding_idx = None if padding_idx is None else row_number("EmbeddingBag", padding_idx, num_embeddings)
        self.weight = Parameter(cg.empty((num_embeddings, embedding_dim), dtype=dtype) if _weight is None else _weight)
        if _weight is None:
            self.reset_parameters()

    def reset_parameters(self):
        """Draw new values; the padding row becomes 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with cg.no_grad():
                self.weight[self.padding_idx] = 0.0

    def forward(self, input, offsets=None, per_sample_weights=None):
        return F.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
                               per_sample_weights, self.include_last_offset, self.padding_idx)

    def extra_repr(self):
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}"
