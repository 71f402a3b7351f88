"""Where memory is: on the CPU, always; and the number of elements under PyTorch's spelling.

Both are what a script that was written for another library asks a tensor for.  Next: tensor.pyx, whose `device` and `size` they are.
"""
from __future__ import annotations

import math
from typing import overload

__all__ = ["COUNTS", "CPU", "Count", "check_device", "device"]


class device(str):
    """The place of a tensor's memory: the CPU, whatever the number behind it.

    Parameters
    ----------
    type : str, default "cpu"
    index : int, optional
        Read for PyTorch's sake.

    Raises
    ------
    ValueError
        For any other place.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.device("cpu").type, cg.zeros(2).device == "cpu"
    ('cpu', True)
    """

    __slots__ = ()
    type = "cpu"
    index = None

    def __new__(cls, type: str = "cpu", index: int | None = None) -> device:
        check_device("device", type)
        return str.__new__(cls, "cpu")


CPU = str.__new__(device, "cpu")


def check_device(name: str, device: object) -> None:
    """cgrad computes on the CPU; the keyword exists so that code written for other libraries runs."""
    if device is not None and not str(device).startswith("cpu"):
        raise ValueError(f"{name}: device must be 'cpu' or None, got {device!r}; cgrad computes on the CPU")


class Count(int):
    """How many elements a tensor has, as NumPy has it; called, PyTorch's ``x.size()`` and ``x.size(axis)``."""

    shape: tuple[int, ...]

    @overload
    def __call__(self, dim: None = None, *, axis: None = None) -> tuple[int, ...]: ...
    @overload
    def __call__(self, dim: int, *, axis: None = None) -> int: ...
    @overload
    def __call__(self, dim: None = None, *, axis: int) -> int: ...
    def __call__(self, dim: int | None = None, *, axis: int | None = None) -> int | tuple[int, ...]:
        axis = dim if axis is None else axis
        if axis is None:
            return self.shape
        try:
            return self.shape[axis]
        except IndexError:
            raise IndexError(f"size: there is no axis {axis} in the shape {self.shape}") from None

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)


class _Counts(dict[tuple[int, ...], Count]):
    """The Count of each shape: to make one takes three times as long as to look it up."""

    def __missing__(self, shape: tuple[int, ...]) -> Count:
        if len(self) >= 1000:
            self.clear()
        count = self[shape] = Count(math.prod(shape))
        count.shape = shape
        return count


COUNTS = _Counts()
