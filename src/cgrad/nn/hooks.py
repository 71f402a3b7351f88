"""Handles of hooks: what ``register_forward_hook`` returns."""
from __future__ import annotations

import itertools
import weakref

__all__ = ["RemovableHandle"]

_ids = itertools.count()


class RemovableHandle:
    """Takes a hook off again; also a context manager that does so at its end.

    Examples
    --------
    >>> import cgrad as cg
    >>> layer, seen = cg.nn.Linear(2, 1), []
    >>> with layer.register_forward_hook(lambda module, args, out: seen.append(out.shape)):
    ...     y = layer(cg.ones((3, 2)))
    >>> y = layer(cg.ones((3, 2)))
    >>> seen
    [(3, 1)]
    """

    def __init__(self, table):
        self.id = next(_ids)
        self._table = weakref.ref(table)

    def remove(self):
        """Remove the hook; doing it twice is harmless."""
        table = self._table()
        if table is not None:
            table.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


class HookTable(dict):
    """Hooks by id, in the order of registration. A plain dict cannot be referred to weakly."""

    __slots__ = ("__weakref__",)

    def __deepcopy__(self, memo):
        return HookTable(self)

    def __reduce__(self):
        return HookTable, (dict(self),)
