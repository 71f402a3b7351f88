"""watch: the gradients of all intermediate results of a block of code, by name."""
from __future__ import annotations

import linecache
import threading

from cgrad.core.source import users_line
from cgrad.core import watchers
from cgrad.core.tensor import Tensor

__all__ = ["watch"]


class watch:
    """Keep and name every intermediate result that is recorded in a block, and its gradient.

    A context manager for the calling thread, for looking into a computation; what it has seen stays alive as long as it does.

    Notes
    -----
    A result is named after its operation and how many of that name there were before: ``"exp_0"``, ``"multiply_0"``, ``"multiply_1"``;
    of an operation with several results also by its number, ``"svd_0.1"``. ``w[name]`` is the result, whose ``grad`` is filled by
    backward; ``w.names`` lists all, ``w.source(name)`` tells where it was computed, and printing shows a table.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([1.0, 2.0], requires_grad=True)
    >>> with cg.autograd.watch() as w:
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> w.names
    ['multiply_0', 'sum_0']
    >>> w["multiply_0"].grad
    tensor([1., 1.])
    """

    def __init__(self):
        self._found = {}
        self._counts = {}
        self._thread = None

    def __enter__(self):
        if self._thread is not None:
            raise RuntimeError("watch: this watch is on already; make another one for a block inside")
        self._thread = threading.get_ident()
        watchers.add("record", self._recorded)
        return self

    def __exit__(self, *exc):
        watchers.remove("record", self._recorded)
        self._thread = None

    def _recorded(self, node, inputs, results):
        if threading.get_ident() != self._thread:
            return
        number = self._counts.get(node.name, 0)
        self._counts[node.name] = number + 1
        source = users_line()
        for k, y in enumerate(results):
            if isinstance(y, Tensor) and y.requires_grad and y.grad_fn is node:
                y.retain_grad()
                self._found[f"{node.name}_{number}" + (f".{k}" if len(results) > 1 else "")] = y, source

    @property
    def names(self):
        """Names of the results, in the order in which they were computed."""
        return list(self._found)

    def __len__(self):
        return len(self._found)

    def __iter__(self):
        return iter(self._found)

    def __contains__(self, name):
        return name in self._found

    def __getitem__(self, name):
        if name not in self._found:
            raise KeyError(f"watch: there is no result {name!r}; there are {', '.join(self._found) or 'none'}")
        return self._found[name][0]

    def source(self, name):
        """(file, line, function) of the code that computed a result."""
        self[name]
        return self._found[name][1]

    def __repr__(self):
        rows = [("name", "shape", "gradient", "where")]
        for name, (y, source) in self._found.items():
            g = y.grad
            size = "none" if g is None else f"{g.item():.6g}" if g.numel() == 1 else f"norm {float((g.detach().double() ** 2).sum()) ** 0.5:.6g}"
            where = "" if source is None else f"line {source[1]}: {linecache.getline(source[0], source[1]).strip()}"
            rows.append((name, str(tuple(y.shape)), size, where))
        widths = [max(len(row[k]) for row in rows) for k in range(3)]
        return "\n".join("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[3]]).rstrip() for row in rows)
