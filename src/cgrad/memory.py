"""What tensors hold and what is kept for reuse."""
from collections.abc import Callable
from typing import Any

from cgrad.core import tape, tensor
from cgrad.core.arguments import whole_number
from cgrad.core.storage import memory_reset_peak, memory_set_limit, memory_stats, memory_trim
from cgrad.ops.define import open_doors

__all__ = ["report", "reset_peak", "set_limit", "stats", "trim"]

report: Callable[..., Any]          # cgrad.show.report, loaded when first used


def stats():
    """Figures of the allocator.

    Returns
    -------
    dict
        ``live_bytes`` and ``peak_bytes`` held by tensors (blocks above 64 bytes), ``cached_bytes`` kept for reuse,
        ``limit_bytes`` the bound on those, ``reused_blocks`` and ``new_blocks`` counts since the start.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.zeros(1000)
    >>> cg.memory.stats()["live_bytes"] >= 4000
    True
    """
    return memory_stats()


def trim(keep=0):
    """Give cached blocks back to the system until at most `keep` bytes are kept, and all that dead tensors and nodes leave for new ones.

    Parameters
    ----------
    keep : int
        Bytes that may stay.

    Returns
    -------
    int
        Bytes of blocks given back.

    Examples
    --------
    >>> import cgrad as cg
    >>> freed = cg.memory.trim()
    >>> cg.memory.stats()["cached_bytes"]
    0
    """
    freed = memory_trim(whole_number("trim", "keep", keep))
    for limit in (0, memory_stats()["limit_bytes"]):
        _limit_pools(limit)
    return freed


def set_limit(limit):
    """Bound the bytes that are kept for reuse.

    Parameters
    ----------
    limit : int
        The bound in bytes; 0 switches reuse off.

    Returns
    -------
    int
        The earlier bound.

    Examples
    --------
    >>> import cgrad as cg
    >>> before = cg.memory.set_limit(0)
    >>> _ = cg.memory.set_limit(before)
    """
    limit = whole_number("set_limit", "the limit", limit)
    before = memory_set_limit(limit)
    _limit_pools(limit)
    return before


def reset_peak():
    """Let ``peak_bytes`` start again from what lives now.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.memory.reset_peak()
    """
    memory_reset_peak()


def _limit_pools(limit):
    tape.limit_pool(limit)
    tensor.limit_pool(limit)


open_doors(globals(), {"report": "cgrad.show.report"})
