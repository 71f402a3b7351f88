"""report: what the tape keeps for backward, by operation, line of code or module, and what checkpoints would save."""
from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from cgrad.core.graph import memory_of
from cgrad.core.tensor import Tensor
from cgrad.show.kept import Kept, size_text
from cgrad.show.places import look_at, modules_of
from cgrad.show.steps import Record
from cgrad.show.table import html_table, text_table
from cgrad.tree import flatten

__all__ = ["Report", "ReportRow", "report"]

BY = ("op", "line", "module")


class ReportRow(NamedTuple):
    """What one operation, line or module keeps.

    `share` is its part of all bytes, `saved` the bytes that a checkpoint around the module would save (None where it is none).
    """

    name: str
    nodes: int
    nbytes: int
    share: float
    saved: int | None


def report(*results: Tensor | Callable[..., Any], args: tuple[Any, ...] = (), by: str = "op") -> Report:
    """What the tape keeps in memory until backward, and where.

    Parameters
    ----------
    *results : Tensor, or one callable
        Results with a graph; or a function or module, which is called with `args`: then modules and lines of code are known.
    args : tuple
        What the callable is called with.
    by : {"op", "line", "module"}
        What the rows are: names of operations, lines of code, or modules, each with all that is in it.

    Returns
    -------
    Report
        Prints as a table, largest first, shows as HTML in a notebook; ``rows``, ``nodes`` and ``nbytes`` are for programs.

    Raises
    ------
    ValueError
        If modules are asked for, but nothing was called.
    TypeError, RuntimeError
        If there is no tensor, or one without a graph.

    Notes
    -----
    Memory that leaves, results or arguments hold anyway counts nothing; memory that several operations keep counts once, for the first of
    them. A checkpoint around a module (`cgrad.checkpoint`) saves what nothing outside it keeps, less the tensors that the module is called
    with where nothing else keeps them; that may be less than nothing. Lines are also known of what was recorded under
    `cgrad.autograd.detect_anomaly`.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.ones((100, 10), requires_grad=True)
    >>> y = cg.exp(x * 2).tanh().sum()
    >>> cg.memory.report(y)
    operation  nodes   keeps   share
    exp            1  4.0 kB   50.0%
    tanh           1  4.0 kB   50.0%
    multiply       1     0 B    0.0%
    sum            1     0 B    0.0%
    in all         4  8.0 kB  100.0%
    """
    if by not in BY:
        raise ValueError(f"memory.report: by must be one of {', '.join(map(repr, BY))}, got {by!r}")
    looked = look_at("memory.report", results, args, modules_of(results, sys._getframe(1)))
    if by == "module" and not looked.places:
        raise ValueError("memory.report: which module recorded what is known only of a call; give the function or module itself, and args=")
    return Report(looked, [x for x in flatten(list(args))[0] if isinstance(x, Tensor)], by)


class Report:
    """What `report` gives back.

    Attributes
    ----------
    rows : list of ReportRow
        (name, nodes, nbytes, share, saved), the largest first.
    nodes, nbytes : int
        All nodes, and all bytes that they keep beyond what is held anyway.
    """

    def __init__(self, looked, held, by):
        record = Record(*looked.results)
        kept = Kept(record, held)
        self.by, self.nodes, self.nbytes = by, len(record.nodes), sum(kept.nbytes.values())
        groups = {}
        for node in record.nodes:
            for name in _names(node, *looked.places.get(node, ((), node.source)), by):
                groups.setdefault(name, []).append(node)
        self.rows = []
        for name, nodes in groups.items():
            nbytes = sum(kept.nbytes[node] for node in nodes)
            saved = _saved(kept, set(nodes), looked.arguments[name]) if by == "module" and name in looked.arguments else None
            self.rows.append(ReportRow(name, len(nodes), nbytes, nbytes / self.nbytes if self.nbytes else 0.0, saved))
        self.rows.sort(key=lambda row: -row.nbytes)

    def _table(self):
        saved = self.by == "module"
        rows = [*self.rows, ReportRow("in all", self.nodes, self.nbytes, 1.0 if self.nbytes else 0.0, None)]
        return [({"op": "operation"}.get(self.by, self.by), "nodes", "keeps", "share") + ("checkpoint saves",) * saved,
                *[(row.name, str(row.nodes), size_text(row.nbytes), f"{row.share:.1%}")
                  + ("" if row.saved is None else "-" * (row.saved < 0) + size_text(abs(row.saved)),) * saved for row in rows]]

    def __repr__(self):
        return text_table(self._table())

    def _repr_html_(self):
        return html_table(self._table())


def _names(node, modules, line, by):
    """The rows that a node belongs to: all modules around it."""
    if by == "op":
        return [node.name]
    if by == "line":
        return [f"{os.path.basename(line[0])}:{line[1]}" if line else "(not known)"]
    return dict.fromkeys(modules) or ["(outside)"]


def _saved(kept, inside, arguments):
    """The bytes that a checkpoint around nodes would save, given the tensors that it would keep in their place."""
    within, outside = {}, set(kept.held)
    for node, values in kept.saved.items():
        for _, x in values:
            memory, nbytes = memory_of(x)
            if node in inside:
                within[memory] = nbytes
            else:
                outside.add(memory)
    return sum(nbytes for memory, nbytes in within.items() if memory not in outside) \
        - sum(nbytes for memory, nbytes in dict(map(memory_of, arguments)).items() if memory not in outside)
