"""How far a loop is."""
from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["progress"]


def progress(iterable: Iterable[Any], desc: str | None = None, total: int | None = None, **options: Any) -> Any:
    """Go through an iterable and show how far it is: with tqdm if that is installed and there is a terminal, otherwise without a word.

    Parameters
    ----------
    iterable : iterable
        Such as a `DataLoader`.
    desc : str, optional
        What stands before the bar.
    total : int, optional
        How many there are, if ``len`` doesn't tell.
    **options
        For ``tqdm.tqdm``; ``disable=False`` shows the bar also where there is no terminal.

    Returns
    -------
    iterable
        With the methods ``set_postfix(loss=0.5)``, ``set_description(text)`` and ``close()``.

    Examples
    --------
    >>> import cgrad as cg
    >>> for x in cg.data.progress([1, 2, 3], desc="train"):
    ...     pass
    """
    if not options.get("disable", not sys.stderr.isatty()):
        try:
            from tqdm import tqdm
            return tqdm(iterable, desc=desc, total=total, **options)
        except ImportError:
            pass
    return _Silent(iterable)


class _Silent:
    """The methods of a tqdm bar that loops use."""

    def __init__(self, iterable: Iterable[Any]):
        self.iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        return iter(self.iterable)

    def __len__(self) -> int:
        return len(self.iterable)       # type: ignore[arg-type]

    def set_description(self, desc: str | None = None, refresh: bool = True) -> None:
        """Nothing is shown."""

    def set_postfix(self, ordered_dict: Any = None, refresh: bool = True, **values: Any) -> None:
        """Nothing is shown."""

    def close(self) -> None:
        """Nothing is shown."""
