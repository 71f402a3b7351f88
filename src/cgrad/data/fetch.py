"""Fetching: what makes a batch of the numbers of its samples, in the loop itself or in a worker.  Next: `worker.py`."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import cgrad as cg
from cgrad.core.tensor import Tensor
from cgrad.data.collate import default_collate, default_convert
from cgrad.data.dataset import IterableDataset, gather_of

__all__ = ["END", "Fetcher", "is_stream"]

class END:
    """What comes instead of a batch when a stream has ended."""


class Fetcher:
    """Makes batches of a data set: ``fetcher(index)``, where `index` says which samples.

    `index` is a slice of the order of a pass (a range or a tensor), a list of numbers, or a single number if `batch_size` is None.
    For a stream it says nothing: each call gives the next batch, and at last END.
    """

    def __init__(self, dataset: Any, collate_fn: Callable[[Any], Any] | None, batch_size: int | None, drop_last: bool):
        self.dataset = dataset
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.is_stream = is_stream(dataset)
        self.collate_fn = collate_fn or (default_convert if batch_size is None else default_collate)
        self.gather = gather_of(dataset) if collate_fn is None and batch_size is not None else None
        self.stream: Iterator[Any] | None = None

    def restart(self) -> None:
        """A new pass begins."""
        self.stream = None

    def __call__(self, index: Any) -> Any:
        if self.is_stream:
            return self._next()
        if self.batch_size is None:
            return self.collate_fn(self._sample(index))
        if self.gather is not None:
            return self.gather(slice(index.start, index.stop) if isinstance(index, range) else _as_tensor(index))
        numbers = index.tolist() if isinstance(index, Tensor) else index
        if hasattr(self.dataset, "__getitems__"):
            return self.collate_fn(self.dataset.__getitems__(list(numbers)))
        return self.collate_fn([self._sample(i) for i in numbers])

    def _sample(self, i: Any) -> Any:
        try:
            return self.dataset[i]
        except Exception as error:
            error.add_note(f"DataLoader: this happened in sample {i!r} of the data set")
            raise

    def _next(self) -> Any:
        if self.stream is None:
            self.stream = iter(self.dataset)
        if self.batch_size is None:
            return next(map(self.collate_fn, self.stream), END)
        samples = list(itertools.islice(self.stream, self.batch_size))
        if not samples or (self.drop_last and len(samples) < self.batch_size):
            return END
        return self.collate_fn(samples)


def is_stream(dataset: Any) -> bool:
    """Whether samples have no numbers."""
    return isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__")


def _as_tensor(index: Any) -> Tensor:
    return index if isinstance(index, Tensor) else cg.tensor(list(index), dtype=cg.int64)
