"""checkpoint_budget: which intermediate results to keep, and which to compute again, so that the tape stays within a number of bytes.

The functions are measured once, piece by piece: what the tape keeps of each and how long it takes.  Then the cheapest way through the
chain is chosen by dynamic programming over the places between the pieces, where a stretch of pieces may become one checkpoint.
Next: checkpoint.py, which runs a stretch.
"""
from __future__ import annotations

import time
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from cgrad.autograd.checkpoint import aside, chain, checkpoint, is_chain, members
from cgrad.core.forward_mode import fresh, highest_level
from cgrad.core.graph import share_memory
from cgrad.core.record import connected
from cgrad.core.storage import memory_stats
from cgrad.core.tape import is_grad_enabled
from cgrad.core.tensor import Tensor
from cgrad.ops.creation import zeros
from cgrad.ops.generator import get_rng_state, set_rng_state
from cgrad.tree import flatten, tree_map

__all__ = ["checkpoint_budget"]

MAX_WAYS = 256          # that are followed from one place, the least memory and the least time among them


def checkpoint_budget(functions, nbytes):
    """Compose functions so that what the tape keeps of them never exceeds a number of bytes, at the least price in time.

    Stretches of the chain become checkpoints, whose intermediate results are forgotten and computed again in backward. Which ones is
    decided at the first call for each shape, dtype, mode of training and value of other arguments, which runs every function once more to
    measure it. A function is not looked into: one that is no chain is kept or computed again as a whole, so give the blocks of a large one,
    in a list or each with a budget of its own.

    Parameters
    ----------
    functions : nn.Sequential, sequence of callables, or callable
        Called one after the other, each with the result of the one before, and so are the members of an `cgrad.nn.Sequential` among them. They
        must compute the same when called again.
    nbytes : int
        The bound on what the tape holds for backward at any time, recomputed stretches included. The input, parameters and gradients do
        not count.

    Returns
    -------
    callable
        Takes the arguments of the first function, by position or name, and returns the result of the last. Its attribute ``plan`` lists,
        after a call, the stretches as (start, stop, recomputed).

    Raises
    ------
    ValueError
        In the first call, if the bound cannot be met; names the least number that can.

    See Also
    --------
    checkpoint_sequential : The same in stretches of equal length.

    Examples
    --------
    >>> import cgrad as cg
    >>> net = [cg.exp, cg.tanh] * 3             # each keeps its result, 4096 bytes
    >>> x = cg.zeros(1024, requires_grad=True)
    >>> f = cg.checkpoint_budget(net, 5 * 4096)
    >>> f(x).sum().backward()
    >>> any(recomputed for start, stop, recomputed in f.plan)
    True
    >>> cg.checkpoint_budget(net, 1000)(x)
    Traceback (most recent call last):
      ...
    ValueError: checkpoint_budget: the tape cannot do with 1000 bytes; it needs at least 12288 for this input, or smaller pieces
    """
    return _Budgeted(functions, nbytes)


class _Budgeted:
    """Functions composed within a budget, and the plans made so far."""

    def __init__(self, functions, nbytes):
        self.functions = [f for member in members(functions) for f in _unfolded(member)]
        for i, f in enumerate(self.functions):
            if not callable(f):
                raise TypeError(f"checkpoint_budget: function {i} is not callable, but of type {type(f).__name__}")
        if isinstance(nbytes, bool) or not isinstance(nbytes, int) or nbytes < 0:
            raise ValueError(f"checkpoint_budget: the budget is a number of bytes, got {nbytes!r}")
        self.nbytes, self.plans, self.plan = nbytes, {}, ()

    def __call__(self, *args, **kwargs):
        if not self.functions:
            return chain(())(*args, **kwargs)
        leaves, shape = flatten([list(args), kwargs])
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        first, *rest = self.functions
        if not is_grad_enabled() or highest_level(tensors):
            return chain(rest)(first(*args, **kwargs))
        if len(args) == 1 and not kwargs:
            functions, x = self.functions, args[0]
        else:
            functions, x = [lambda x: first(*x[0], **x[1]), *rest], [list(args), kwargs]
        key = repr(shape), tuple([_facts(x) for x in leaves]), tuple([getattr(f, "training", None) for f in self.functions])
        if key not in self.plans:
            with aside():
                pieces = _measure(functions, x)
            plan = _cheapest(pieces, self.nbytes)
            if plan is None:
                raise ValueError(f"checkpoint_budget: the tape cannot do with {self.nbytes} bytes; it needs at least {_least(pieces)} "
                                 "for this input, or smaller pieces")
            self.plans[key] = plan
        self.plan = self.plans[key]
        for start, stop, recomputed in self.plan:
            run = chain(functions[start:stop])
            x = checkpoint(run, x) if recomputed else run(x)
        return x


def _unfolded(f):
    """The members of a chain, of chains among them, and so on; anything else is one function."""
    return [g for member in f for g in _unfolded(member)] if is_chain(f) else [f]


def _facts(x):
    """What a plan depends on of an argument."""
    if isinstance(x, Tensor):
        return x.shape, x.dtype, x.requires_grad
    return type(x), x if isinstance(x, (bool, int, float, str, bytes, type(None))) else None


class _Piece(NamedTuple):
    """What one function costs, in bytes and seconds."""

    size: int               # of its input; 0 for the caller's own
    keeps_input: int        # how much of its input the tape keeps
    keeps_output: int       # how much of its output, where that is not its input's memory
    keeps: int              # and of what it computes on the way
    same: bool              # the output lies in the memory of the input
    seconds: float


def _measure(functions, x):
    """Run each function by itself, on a copy of what the one before gave; what drops out of the allocator's sum was not kept."""
    def live():
        return memory_stats()["live_bytes"]

    state = get_rng_state()
    pieces, size, inputs = [], 0, [tree_map(_leaf, x)]
    for f in functions:
        x = inputs.pop()
        start = time.perf_counter()
        out = f(x)
        seconds = time.perf_counter() - start
        graph = [y.grad_fn for y in _tensors(out)]
        same = any(share_memory(y, t) for y in _tensors(out) for t in _tensors(x))
        levels = [live()]
        following = tree_map(_copy, out)
        levels.append(live())
        del out
        levels.append(live())
        del x
        levels.append(live())
        del graph
        levels.append(live())
        copied, output, input_, tape = (abs(b - a) for a, b in pairwise(levels))
        keeps_input = max(size - input_, 0) if size and not same else 0
        keeps_output = 0 if same else max(copied - output, 0)
        pieces.append(_Piece(size, keeps_input, keeps_output, max(tape - keeps_input - keeps_output, 0), same, seconds))
        inputs.append(following)
        size = copied
    set_rng_state(state)
    return pieces


def _tensors(x):
    return [t for t in flatten(x)[0] if isinstance(t, Tensor)]


def _leaf(x):
    return x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x


def _copy(x):
    """A copy with a place in some graph, since nodes hold leaves whether their rules need the values or not."""
    if not isinstance(x, Tensor):
        return x
    copy = x.detach().clone()
    return connected(copy, fresh(zeros(()).requires_grad_()).grad_fn, 0) if x.requires_grad else copy


# A way through the first pieces is a row: bytes kept so far, how much of the last output is among them, seconds that backward takes to
# compute again, and how it came: from which place, along which way to there, and whether it is recomputed from there.
BYTES, COUNTED, SECONDS, START, BEFORE, RECOMPUTED = range(6)


def _cheapest(pieces, budget, timed=True):
    """The plan that takes the least time within the budget, or None."""
    arrived = [[] for _ in range(len(pieces) + 1)]
    arrived[0].append(np.zeros((1, 6)))
    places = []

    def arrive(stop, kept, counted, seconds, recomputed, fits):
        if fits.any():
            rows = np.empty((len(kept), 6))
            for column, values in enumerate((kept, counted, seconds, start, np.arange(len(kept)), recomputed)):
                rows[:, column] = values
            arrived[stop].append(rows[fits])

    for start, piece in enumerate(pieces):
        ways = _worthwhile(arrived[start])
        places.append(ways)
        before, counted, seconds = ways[:, BYTES], ways[:, COUNTED], ways[:, SECONDS]
        kept = before + np.maximum(piece.keeps_input - counted, 0) + piece.keeps + piece.keeps_output
        arrive(start + 1, kept, np.maximum(piece.keeps_input, counted) if piece.same else piece.keeps_output, seconds, False, kept <= budget)
        kept = before + np.maximum(piece.size - counted, 0)
        inside, counted, same = 0, piece.size, True
        for stop, again in enumerate(pieces[start:], start + 1):
            inside += again.keeps + again.keeps_output + max(again.keeps_input - counted, 0)
            if not len(kept) or kept.min() + inside > budget:
                break
            counted = max(again.keeps_input, counted) if again.same else again.keeps_output
            same = same and again.same
            seconds = seconds + (again.seconds if timed else 0.0)
            arrive(stop, kept, piece.size if same else 0, seconds, True, kept + inside <= budget)
    ways = _worthwhile(arrived[-1])
    if not len(ways):
        return None
    plan, stop, way = [], len(pieces), ways[np.lexsort((ways[:, BYTES], ways[:, SECONDS]))[0]]
    while stop:
        start = int(way[START])
        plan.append((start, stop, bool(way[RECOMPUTED])))
        stop, way = start, places[start][int(way[BEFORE])]
    return tuple(_joined(reversed(plan)))


def _worthwhile(arrived):
    """The ways to one place that no other beats in memory and time; not too many, from the least memory to the least time."""
    if not arrived:
        return np.zeros((0, 6))
    rows = np.concatenate(arrived)
    chosen = np.zeros(len(rows), bool)
    for memory in (rows[:, BYTES], rows[:, BYTES] - rows[:, COUNTED]):          # the last output may be kept by what follows or not
        order = np.lexsort((rows[:, SECONDS], memory))
        best = np.minimum.accumulate(np.concatenate([[np.inf], rows[order, SECONDS]]))
        chosen[order] |= rows[order, SECONDS] < best[:-1]
    rows = rows[chosen]
    rows = rows[np.argsort(rows[:, BYTES], kind="stable")]
    if len(rows) > MAX_WAYS:
        rows = rows[np.linspace(0, len(rows) - 1, MAX_WAYS).round().astype(int)]
    return rows


def _joined(plan):
    """The plan with stretches that are kept, one after the other, as one."""
    joined = []
    for start, stop, recomputed in plan:
        if joined and not recomputed and not joined[-1][2]:
            start = joined.pop()[0]
        joined.append((start, stop, recomputed))
    return joined


def _least(pieces):
    """The smallest budget for which there is a plan."""
    low, high = 0, sum(p.size + p.keeps_input + p.keeps_output + p.keeps for p in pieces)
    while low < high:
        middle = (low + high) // 2
        if _cheapest(pieces, middle, timed=False) is None:
            low = middle + 1
        else:
            high = middle
    return low
