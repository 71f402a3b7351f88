"""DataLoader: mini-batches of a data set, in order or shuffled, in this process."""
from __future__ import annotations

import numbers

import cgrad as cg
from cgrad.core.tensor import Tensor

__all__ = ["DataLoader", "default_collate"]


class DataLoader:
    """Iterate over a data set in mini-batches.

    Parameters
    ----------
    dataset : Dataset, or anything with ``len`` and integer indexing
    batch_size : int or None, default 1
        None gives single samples, without a batch axis.
    shuffle : bool, default False
        A new random order for every iteration.
    sampler : iterable of int, optional
        The order of the samples; not together with `shuffle`.
    drop_last : bool, default False
        Leave out a last batch that is not full.
    collate_fn : callable, optional
        Makes a batch of a list of samples; the default is `default_collate`, or the data set's own ``gather``.
    generator : Generator, optional
        Where the order comes from; default: the generator of `cgrad.manual_seed`.
    seed : int, optional
        Makes a generator of its own.

    Notes
    -----
    Batches of a `TensorDataset` are slices (views), or one gather for each tensor when shuffled.

    Examples
    --------
    >>> import cgrad as cg
    >>> loader = cg.data.DataLoader(cg.data.TensorDataset(cg.arange(5)), batch_size=2, shuffle=True, seed=0)
    >>> len(loader)
    3
    >>> sorted(i for x, in loader for i in x.tolist())
    [0, 1, 2, 3, 4]
    """

    def __init__(self, dataset, batch_size=1, shuffle=False, sampler=None, *, drop_last=False, collate_fn=None, generator=None, seed=None,
                 num_workers=0):
        if batch_size is not None and (not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1):
            raise ValueError(f"DataLoader: batch_size must be a positive int or None, got {batch_size!r}")
        if num_workers != 0:
            raise ValueError(f"DataLoader: batches are made in this process; num_workers must be 0, got {num_workers}")
        if shuffle and sampler is not None:
            raise ValueError("DataLoader: a sampler fixes the order, so shuffle must be False")
        if batch_size is None and drop_last:
            raise ValueError("DataLoader: drop_last needs a batch_size")
        if seed is not None and generator is not None:
            raise ValueError("DataLoader: give a seed or a generator, not both")
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.sampler = sampler
        self.drop_last = drop_last
        self.collate_fn = collate_fn
        self.generator = generator if seed is None else cg.Generator(seed)

    def __len__(self):
        n = len(self.dataset if self.sampler is None else self.sampler)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def __iter__(self):
        if self.batch_size is None:
            return self._samples()
        if self.collate_fn is None and getattr(self.dataset, "gather", None) is not None:
            return self._gathered()
        return self._collated()

    def _order(self):
        """The order of the samples: a sequence, or a range where it is the natural one."""
        if self.sampler is not None:
            return list(self.sampler)
        n = len(self.dataset)
        return cg.randperm(n, generator=self.generator).tolist() if self.shuffle else range(n)

    def _samples(self):
        for i in self._order():
            sample = self.dataset[i]
            yield sample if self.collate_fn is None else self.collate_fn(sample)

    def _bounds(self, n):
        for start in range(0, n, self.batch_size):
            stop = start + self.batch_size
            if stop <= n or not self.drop_last:
                yield start, min(stop, n)

    def _gathered(self):
        gather = self.dataset.gather
        if not self.shuffle and self.sampler is None:
            for start, stop in self._bounds(len(self.dataset)):
                yield gather(slice(start, stop))
            return
        if self.shuffle:
            order = cg.randperm(len(self.dataset), generator=self.generator)
        else:
            order = cg.tensor(list(self.sampler), dtype=cg.int64)
        for start, stop in self._bounds(order.shape[0]):
            yield gather(order[start:stop])

    def _collated(self):
        collate = default_collate if self.collate_fn is None else self.collate_fn
        order = self._order()
        for start, stop in self._bounds(len(order)):
            yield collate([self.dataset[i] for i in order[start:stop]])


def default_collate(samples):
    """Make one batch of a list of samples.

    Tensors and arrays are stacked, numbers become a tensor, tuples, lists and dicts are gone through; strings stay a list.

    Parameters
    ----------
    samples : list
        All of the same structure.

    Raises
    ------
    TypeError
        If there is no rule for a type.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.data.default_collate([{"x": 1.0, "name": "a"}, {"x": 2.0, "name": "b"}])
    {'x': tensor([1., 2.]), 'name': ['a', 'b']}
    """
    first = samples[0]
    if isinstance(first, Tensor):
        return cg.stack(samples)
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, numbers.Number):
        return cg.tensor(samples)
    if hasattr(first, "__array__"):
        return cg.stack([cg.tensor(sample) for sample in samples])
    if isinstance(first, dict):
        return type(first)((key, default_collate([sample[key] for sample in samples])) for key in first)
    if isinstance(first, (tuple, list)):
        if len({len(sample) for sample in samples}) > 1:
            raise ValueError(f"default_collate: samples of different lengths: {sorted({len(sample) for sample in samples})}")
        parts = [default_collate(list(part)) for part in zip(*samples)]
        if hasattr(first, "_fields"):
            return type(first)(*parts)
        return type(first)(parts)
    raise TypeError(f"default_collate: no rule for samples of {type(first).__name__}; pass a collate_fn")
