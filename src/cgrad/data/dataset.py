"""Collections of samples: by number (`Dataset` and what is made of tensors and of other collections) and streams (`IterableDataset`)."""
from __future__ import annotations

import bisect
import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import cgrad as cg
from cgrad.core.tensor import Tensor

__all__ = ["ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset", "TensorDataset", "random_split"]

T = TypeVar("T", covariant=True)
Gather = Callable[[Any], Any]


class Dataset(Generic[T]):
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

    gather: Gather | None = None

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError(f"{type(self).__name__}: a Dataset needs __getitem__; write def __getitem__(self, index)")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


def gather_of(dataset: Any) -> Gather | None:
    """What gives a whole batch of a data set at once, None if nothing does; a Tensor, whose ``gather`` is another matter, is indexed."""
    return functools.partial(operator.getitem, dataset) if isinstance(dataset, Tensor) else getattr(dataset, "gather", None)


class IterableDataset(Generic[T]):
    """Base class of streams of samples, which have no numbers: write ``__iter__()``.

    With workers, every worker goes through the whole stream unless ``__iter__`` gives it a part: see `get_worker_info`.

    Examples
    --------
    >>> import cgrad as cg
    >>> class Count(cg.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(5))
    >>> [batch.tolist() for batch in cg.data.DataLoader(Count(), batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__}: an IterableDataset needs __iter__; write def __iter__(self)")

    def __add__(self, other: IterableDataset[Any]) -> ChainDataset:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
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

    def __init__(self, *tensors: Any):
        tensors = tuple(t if isinstance(t, Tensor) else cg.asarray(t) for t in tensors)
        if not tensors:
            raise ValueError("TensorDataset: give at least one tensor")
        if any(t.ndim == 0 for t in tensors):
            raise ValueError("TensorDataset: a tensor of shape () has no axis of samples")
        if len({t.shape[0] for t in tensors}) > 1:
            raise ValueError("TensorDataset: all tensors must have the same length along the first axis, got shapes "
                             + ", ".join(str(tuple(t.shape)) for t in tensors))
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]

    def gather(self, index: Any) -> tuple[Tensor, ...]:
        """A batch: views for a slice, one gather of each tensor for a tensor of indices."""
        return tuple(t[index] for t in self.tensors)


class Subset(Dataset[Any]):
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

    def __init__(self, dataset: Any, indices: Iterable[int] | Tensor):
        self.dataset = dataset
        self.indices: list[int] = indices.tolist() if isinstance(indices, Tensor) else [int(i) for i in indices]
        self._index: Tensor | None = None

    @property
    def gather(self) -> Gather | None:       # type: ignore[override]
        """A function that gives a whole batch at once, or None if the data set below has none."""
        return None if gather_of(self.dataset) is None else self._gather

    def _gather(self, index: Any) -> Any:
        if self._index is None:
            self._index = cg.tensor(self.indices, dtype=cg.int64)
        return gather_of(self.dataset)(self._index[index])       # type: ignore[misc]

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset[Any]):
    """Several data sets, one after the other.

    Parameters
    ----------
    datasets : iterable of Dataset

    Examples
    --------
    >>> import cgrad as cg
    >>> both = cg.data.ConcatDataset([[10, 20], [30]])
    >>> len(both), both[2], both[-1]
    (3, 30, 30)
    """

    def __init__(self, datasets: Iterable[Any]):
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset: give at least one data set")
        for dataset in self.datasets:
            if isinstance(dataset, IterableDataset):
                raise TypeError(f"ConcatDataset: {type(dataset).__name__} is a stream without numbers; ChainDataset joins those")
        self.cumulative_sizes = list(itertools.accumulate(len(dataset) for dataset in self.datasets))

    def __getitem__(self, index: int) -> Any:
        n = len(self)
        if not -n <= index < n:
            raise IndexError(f"ConcatDataset: there is no sample {index} among {n}")
        index %= n
        which = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class StackDataset(Dataset[Any]):
    """Data sets side by side: a sample is a tuple of their samples, or a dict of them.

    Parameters
    ----------
    *args, **kwargs : Dataset
        All of the same length; by position for tuples, by name for dicts.

    Examples
    --------
    >>> import cgrad as cg
    >>> data = cg.data.StackDataset(image=[1.0, 2.0], label=["cat", "dog"])
    >>> data[1]
    {'image': 2.0, 'label': 'dog'}
    """

    def __init__(self, *args: Any, **kwargs: Any):
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset: give data sets by position or by name" + (", not both" if args else ""))
        self.datasets: Any = args or kwargs
        lengths = [len(dataset) for dataset in self._parts()]
        if len(set(lengths)) > 1:
            raise ValueError(f"StackDataset: all data sets must have the same length, got {lengths}")

    def _parts(self) -> Iterable[Any]:
        return self.datasets.values() if isinstance(self.datasets, dict) else self.datasets

    def _each(self, call: Callable[[Any], Any]) -> Any:
        if isinstance(self.datasets, dict):
            return {name: call(dataset) for name, dataset in self.datasets.items()}
        return tuple(map(call, self.datasets))

    @property
    def gather(self) -> Gather | None:       # type: ignore[override]
        """A function that gives a whole batch at once, or None unless all data sets have one."""
        return self._gather if all(gather_of(dataset) is not None for dataset in self._parts()) else None

    def _gather(self, index: Any) -> Any:
        return self._each(lambda dataset: gather_of(dataset)(index))      # type: ignore[misc]

    def __getitem__(self, index: Any) -> Any:
        return self._each(lambda dataset: dataset[index])

    def __len__(self) -> int:
        return len(next(iter(self._parts())))


class ChainDataset(IterableDataset[Any]):
    """Several streams, one after the other.

    Parameters
    ----------
    datasets : iterable of IterableDataset

    Examples
    --------
    >>> import cgrad as cg
    >>> list(cg.data.ChainDataset([range(2), range(3)]))
    [0, 1, 0, 1, 2]
    """

    def __init__(self, datasets: Iterable[Any]):
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)

    def __len__(self) -> int:
        return sum(map(len, self.datasets))


def random_split(dataset: Any, lengths: Sequence[float], generator: cg.Generator | None = None) -> list[Subset]:
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
        for i in range(n - int(sum(lengths))):
            lengths[i % len(lengths)] += 1
    if sum(lengths) != n or any(int(length) != length for length in lengths):
        raise ValueError(f"random_split: the lengths must sum to the {n} samples of the data set, or be fractions that sum to 1; got {lengths}")
    order = cg.randperm(n, generator=generator).tolist()
    parts, start = [], 0
    for length in map(int, lengths):
        parts.append(Subset(dataset, order[start:start + length]))
        start += length
    return parts
