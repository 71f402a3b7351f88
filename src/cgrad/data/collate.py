"""From samples to batches."""
from __future__ import annotations

import numbers
from typing import Any

import numpy as np

import cgrad as cg
from cgrad.core.tensor import Tensor

__all__ = ["default_collate", "default_convert"]


def default_collate(batch: list[Any]) -> Any:
    """Make one batch of a list of samples.

    Tensors and arrays are stacked, numbers become a tensor, tuples, lists and dicts are gone through; strings stay a list.

    Parameters
    ----------
    batch : list
        Samples, all of the same structure.

    Raises
    ------
    TypeError
        If there is no rule for a type.
    ValueError
        If the samples differ in shape, length or keys.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.data.default_collate([{"x": 1.0, "name": "a"}, {"x": 2.0, "name": "b"}])
    {'x': tensor([1., 2.]), 'name': ['a', 'b']}
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return cg.stack(batch)
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, numbers.Number):
        return cg.tensor(batch)
    if hasattr(first, "__array__"):
        return cg.stack([cg.tensor(sample) for sample in batch])
    if isinstance(first, dict):
        if any(sample.keys() != first.keys() for sample in batch):
            raise ValueError(f"default_collate: samples of different keys: {sorted({str(sorted(map(str, sample))) for sample in batch})}")
        return _like(first, {key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, (tuple, list)):
        if len({len(sample) for sample in batch}) > 1:
            raise ValueError(f"default_collate: samples of different lengths: {sorted({len(sample) for sample in batch})}")
        return _like(first, [default_collate(list(part)) for part in zip(*batch)])
    raise TypeError(f"default_collate: no rule for samples of {type(first).__name__}; pass a collate_fn")


def default_convert(data: Any) -> Any:
    """Make tensors of the arrays in a sample, and leave everything else as it is.

    Parameters
    ----------
    data : object
        Tuples, lists and dicts are gone through.

    Examples
    --------
    >>> import cgrad as cg, numpy as np
    >>> cg.data.default_convert([np.ones(2), 3, "x"])
    [tensor([1., 1.], dtype=cgrad.float64), 3, 'x']
    """
    if isinstance(data, (np.ndarray, np.generic)):
        return data if data.dtype.kind in "SUO" else cg.asarray(data)
    if isinstance(data, dict):
        return _like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, (tuple, list)):
        return _like(data, [default_convert(value) for value in data])
    return data


def _like(kind: Any, parts: Any) -> Any:
    """A container of the type of `kind`, or the plain one if that cannot be made of its parts (a defaultdict)."""
    try:
        return type(kind)(*parts) if hasattr(kind, "_fields") else type(kind)(parts)
    except TypeError:
        return parts
