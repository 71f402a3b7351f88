"""Samplers: the order in which the samples of a data set are taken.

A sampler that draws random numbers draws one seed for each pass, and everything else of that pass from the seed: with it a loader repeats a
pass that was broken off (`Shuffler.repeat`).
"""
from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import cgrad as cg
from cgrad.core.tensor import Tensor

__all__ = ["BatchSampler", "DistributedSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler", "WeightedRandomSampler"]

T = TypeVar("T", covariant=True)


class Sampler(Generic[T]):
    """Base class of samplers: write ``__iter__()``, which gives the numbers of the samples, and ``__len__()`` if there is a length.

    Examples
    --------
    >>> import cgrad as cg
    >>> class Backwards(cg.data.Sampler):
    ...     def __init__(self, n):
    ...         self.n = n
    ...     def __iter__(self):
    ...         return iter(range(self.n - 1, -1, -1))
    >>> [x.tolist() for x in cg.data.DataLoader([1, 2, 3], batch_size=2, sampler=Backwards(3))]
    [[3, 2], [1]]
    """

    def __init__(self, data_source: Any = None):
        pass

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__}: a Sampler needs __iter__; write def __iter__(self)")


class SequentialSampler(Sampler[int]):
    """The samples in their order.

    Parameters
    ----------
    data_source : Dataset

    Examples
    --------
    >>> import cgrad as cg
    >>> list(cg.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized):
        self.data_source = data_source

    def order(self) -> range:
        """The numbers of all samples."""
        return range(len(self.data_source))

    def __iter__(self) -> Iterator[int]:
        return iter(self.order())

    def __len__(self) -> int:
        return len(self.data_source)


class Shuffler(Sampler[int]):
    """Base class of samplers at random: a subclass writes ``_draw(generator)``, the numbers of one pass as a tensor.

    Parameters
    ----------
    generator : Generator, optional
        Where the seeds of the passes come from; default: the generator of `cgrad.manual_seed`.
    """

    generator: cg.Generator | None

    def __init__(self, generator: cg.Generator | None):
        if generator is not None and not isinstance(generator, cg.Generator):
            raise TypeError(f"{type(self).__name__}: generator must be a cgrad.Generator or None, got {type(generator).__name__}")
        self.generator = generator
        self.seed: int | None = None            # of the latest pass
        self._next: int | None = None

    def _draw(self, generator: cg.Generator) -> Tensor:
        raise NotImplementedError

    def repeat(self, seed: int | None) -> None:
        """Let the next pass be the one of this seed."""
        self._next = self.seed = seed

    def order(self) -> Tensor:
        """The numbers of the samples of one pass, int64; every call draws anew."""
        seed, self._next = self._next, None
        if seed is None:
            seed = int(cg.randint(0, 2**62, (), generator=self.generator).item())
        self.seed = seed
        return self._draw(cg.Generator(seed))

    def __iter__(self) -> Iterator[int]:
        return iter(self.order().tolist())


class RandomSampler(Shuffler):
    """The samples in random order.

    Parameters
    ----------
    data_source : Dataset
    replacement : bool, default False
        Draw each sample from all of them, so that some come twice and others not at all.
    num_samples : int, optional
        How many; default: the length of the data set.  More than that without replacement gives one order after another.
    generator : Generator, optional
        Default: the generator of `cgrad.manual_seed`.

    Examples
    --------
    >>> import cgrad as cg
    >>> sorted(cg.data.RandomSampler("abc", generator=cg.Generator(0)))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized, replacement: bool = False, num_samples: int | None = None, generator: cg.Generator | None = None):
        super().__init__(generator)
        _check_count("RandomSampler", num_samples)
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples

    @property
    def num_samples(self) -> int:
        """How many samples a pass has."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def _draw(self, generator: cg.Generator) -> Tensor:
        n, wanted = len(self.data_source), self.num_samples
        if n == 0 or wanted == 0:
            return cg.zeros((0,), dtype=cg.int64)
        if self.replacement:
            return cg.randint(0, n, (wanted,), generator=generator)
        return cg.concat([cg.randperm(n, generator=generator) for _ in range(-(-wanted // n))])[:wanted]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Shuffler):
    """Some samples in random order.

    Parameters
    ----------
    indices : sequence of int
    generator : Generator, optional
        Default: the generator of `cgrad.manual_seed`.

    Examples
    --------
    >>> import cgrad as cg
    >>> sorted(cg.data.SubsetRandomSampler([7, 3, 5]))
    [3, 5, 7]
    """

    def __init__(self, indices: Sequence[int] | Tensor, generator: cg.Generator | None = None):
        super().__init__(generator)
        self.indices = indices

    def _draw(self, generator: cg.Generator) -> Tensor:
        return cg.asarray(self.indices, dtype=cg.int64)[cg.randperm(len(self.indices), generator=generator)]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Shuffler):
    """Samples drawn with given probabilities.

    Parameters
    ----------
    weights : sequence of float
        One for each sample; they need not sum to 1.
    num_samples : int
    replacement : bool, default True
    generator : Generator, optional
        Default: the generator of `cgrad.manual_seed`.

    Examples
    --------
    >>> import cgrad as cg
    >>> list(cg.data.WeightedRandomSampler([0.0, 1.0], num_samples=3))
    [1, 1, 1]
    """

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True, generator: cg.Generator | None = None):
        super().__init__(generator)
        if num_samples is None:
            raise ValueError("WeightedRandomSampler: num_samples is needed")
        _check_count("WeightedRandomSampler", num_samples)
        self.weights = cg.asarray(weights, dtype=cg.float64)
        if self.weights.ndim != 1:
            raise ValueError(f"WeightedRandomSampler: weights must have one axis, got shape {tuple(self.weights.shape)}")
        self.num_samples = num_samples
        self.replacement = replacement

    def _draw(self, generator: cg.Generator) -> Tensor:
        return cg.multinomial(self.weights, self.num_samples, replacement=self.replacement, generator=generator)

    def __len__(self) -> int:
        return self.num_samples


class DistributedSampler(Sampler[int]):
    """The share of one process in the samples of a data set: every n-th of one order that all processes know.

    Parameters
    ----------
    dataset : Dataset
    num_replicas, rank : int, optional
        The number of processes, and that of this one; default: those of `cgrad.distributed`.
    shuffle : bool, default True
        Whether the order is at random, another one for each epoch.
    seed : int, default 0
        Of the order; the same on all processes.
    drop_last : bool, default False
        Leave samples out at the end, so that all shares are equally long.
    pad : bool, default True
        Else repeat samples from the start to make them so.  With False some shares are longer by one (`cgrad.distributed.DataParallel.join`).

    Raises
    ------
    ValueError
        A rank that there is not.

    Notes
    -----
    The batches of size b of all n processes together are the batches of size nb of one.  `set_epoch` can also begin in the middle of an epoch, whatever the
    number of processes was before.

    Examples
    --------
    >>> import cgrad as cg
    >>> sampler = cg.data.DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False)
    >>> list(sampler)
    [1, 3, 0]
    >>> sampler.set_epoch(0, start=2)
    >>> list(sampler)
    [3, 2]
    """

    def __init__(self, dataset: Sized, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True, seed: int = 0,
                 drop_last: bool = False, pad: bool = True):
        if num_replicas is None or rank is None:
            import cgrad.distributed as group
            num_replicas = group.get_world_size() if num_replicas is None else num_replicas
            rank = group.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"DistributedSampler: rank must be from 0 to {num_replicas - 1} for {num_replicas} processes, got {rank}")
        self.dataset = dataset
        self.num_replicas, self.rank = num_replicas, rank
        self.shuffle, self.seed = shuffle, seed
        self.drop_last, self.pad = drop_last, pad
        self.epoch = self.start = 0

    def set_epoch(self, epoch: int, start: int = 0) -> None:
        """Choose the order of the next pass; begin after the first `start` samples of it, those that all processes together have had."""
        if not 0 <= start <= len(self.dataset):
            raise ValueError(f"DistributedSampler: start must be from 0 to the {len(self.dataset)} samples there are, got {start}")
        self.epoch, self.start = epoch, start

    def order(self) -> Tensor:
        """The numbers of the samples of one pass, int64."""
        n = len(self.dataset)
        everything = cg.randperm(n, generator=cg.Generator((self.seed + (self.epoch << 32)) % 2**64)) if self.shuffle else cg.arange(n)
        left = everything[self.start:]
        if self.drop_last:
            left = left[:len(left) // self.num_replicas * self.num_replicas]
        elif self.pad and len(left):
            left = left[cg.arange(len(self) * self.num_replicas) % len(left)]
        return left[self.rank::self.num_replicas]

    def __iter__(self) -> Iterator[int]:
        return iter(self.order().tolist())

    def __len__(self) -> int:
        n = len(self.dataset) - self.start
        if self.drop_last:
            return n // self.num_replicas
        return -(-(n if self.pad else max(n - self.rank, 0)) // self.num_replicas)


class BatchSampler(Sampler[list[int]]):
    """The numbers of another sampler in lists, one for each batch.

    Parameters
    ----------
    sampler : iterable of int
    batch_size : int
    drop_last : bool
        Leave out a last list that is not full.

    Examples
    --------
    >>> import cgrad as cg
    >>> list(cg.data.BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1:
            raise ValueError(f"BatchSampler: batch_size must be a positive int, got {batch_size!r}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"BatchSampler: drop_last must be True or False, got {drop_last!r}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def pieces(self) -> Iterator[Any]:
        """The same as slices of the whole order (a range or a tensor) if the sampler has one, which costs nothing per sample."""
        if not hasattr(self.sampler, "order"):
            return iter(self)
        order = self.sampler.order()
        end = len(order) - self.batch_size + 1 if self.drop_last else len(order)
        return (order[start:start + self.batch_size] for start in range(0, end, self.batch_size))

    def __iter__(self) -> Iterator[list[int]]:
        samples = iter(self.sampler)
        while batch := list(itertools.islice(samples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        n = len(self.sampler)       # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


def _check_count(name: str, value: int | None) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise ValueError(f"{name}: num_samples must be an int of at least 0, got {value!r}")
