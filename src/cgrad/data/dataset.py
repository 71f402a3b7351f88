"""Collections of samples: Dataset, TensorDataset, Subset."""
from __future__ import annotations

import math

import cgrad as cg
from cgrad.core.tensor import Tensor

__all__ = ["Dataset", "Subset", "TensorDataset", "random_split"]


class Dataset:
    """Base class of collections of samples: write ``__getitem__(i)`` and ``__len__()``.

    A data set that can give many samples at once, faster than one by one, also writes ``gather(index)``: `index` is a slice or
    a tensor of int64, the result a whole batch.

    Examples
    --------
    >>> import cgrad as cg
    >>> class Squares(cg.data.Dataset):
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, i):
    ...         return float(i), float(i * i)
    >>> next(iter(cg.data.DataLoader(Squares(), batch_size=3)))
    (tensor([0., 1., 2.]), tensor([0., 1., 4.]))
    """

    gather = None

    def __getitem__(self, index):
        raise NotImplementedError(f"{type(self).__name__}: a Dataset needs __getitem__; write def __getitem__(self, index)")


class TensorDataset(Dataset):
    """Tensors with one sample along the first axis of each.

    Parameters
    ----------
    *tensors : Tensor or array-like
        All with the same length of the first axis; what is no Tensor is converted.

    Raises
    ------
    ValueError
        If there are none, or their lengths differ.

    Examples
    --------
    >>> import cgrad as cg
    >>> data = cg.data.TensorDataset(cg.tensor([[1.0], [2.0]]), cg.tensor([0, 1]))
    >>> data[1]
    (tensor([2.]), tensor(1))
    >>> len(data)
    2
    """

    def __init__(self, *tensors):
        tensors = tuple(t if isinstance(t, Tensor) else cg.asarray(t) for t in tensors)
        if not tensors:
            raise ValueError("TensorDataset: give at least one tensor")
        if any(t.ndim == 0 for t in tensors):
            raise ValueError("TensorDataset: a tensor of shape () has no axis of samples")
        if len({t.shape[0] for t in tensors}) > 1:
            raise ValueError("TensorDataset: all tensors must have the same length along the first axis, got shapes "
                             + ", ".join(str(tuple(t.shape)) for t in tensors))
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(t[index] for t in self.tensors)

    def __len__(self):
        return self.tensors[0].shape[0]

    def gather(self, index):
        """A batch: views for a slice, one gather of each tensor for a tensor of indices."""
        return tuple(t[index] for t in self.tensors)


class Subset(Dataset):
    """Some samples of another data set.

    Parameters
    ----------
    dataset : Dataset
    indices : sequence of int

    Examples
    --------
    >>> import cgrad as cg
    >>> part = cg.data.Subset(cg.data.TensorDataset(cg.tensor([10, 20, 30])), [2, 0])
    >>> part[0]
    (tensor(30),)
    """

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices.tolist() if isinstance(indices, Tensor) else [int(i) for i in indices]
        self._index = None

    @property
    def gather(self):
        """A function that gives a whole batch at once, or None if the data set below has none."""
        return None if getattr(self.dataset, "gather", None) is None else self._gather

    def _gather(self, index):
        if self._index is None:
            self._index = cg.tensor(self.indices, dtype=cg.int64)
        return self.dataset.gather(self._index[index])

    def __getitem__(self, index):
        return self.dataset[self.indices[index]]

    def __len__(self):
        return len(self.indices)


def random_split(dataset, lengths, generator=None):
    """Split a data set at random into parts that don't overlap.

    Parameters
    ----------
    dataset : Dataset
    lengths : sequence of int, or of float that sum to 1
        With fractions, what is left over by rounding down goes to the parts in turn.
    generator : Generator, optional
        Where the random numbers come from.

    Returns
    -------
    list of Subset

    Raises
    ------
    ValueError
        If the lengths do not sum to the length of the data set.

    Examples
    --------
    >>> import cgrad as cg
    >>> train, test = cg.data.random_split(cg.data.TensorDataset(cg.arange(10)), [0.8, 0.2])
    >>> len(train), len(test)
    (8, 2)
    """
    n = len(dataset)
    lengths = list(lengths)
    if any(length < 0 for length in lengths):
        raise ValueError(f"random_split: lengths must not be negative, got {lengths}")
    if any(isinstance(length, float) for length in lengths) and math.isclose(sum(lengths), 1.0, rel_tol=1e-6):
        lengths = [math.floor(n * fraction) for fraction in lengths]
        for i in range(n - sum(lengths)):
            lengths[i % len(lengths)] += 1
    if sum(lengths) != n or any(int(length) != length for length in lengths):
        raise ValueError(f"random_split: the lengths must sum to the {n} samples of the data set, or be fractions that sum to 1; got {lengths}")
    order = cg.randperm(n, generator=generator).tolist()
    parts, start = [], 0
    for length in map(int, lengths):
        parts.append(Subset(dataset, order[start:start + length]))
        start += length
    return parts
