"""Sums of products by index notation, from matrix products of two operands at a time.

What is to be done depends on the notation and the shapes alone.  It is worked out once, on stand-ins, as a list of calls of recorded
operations, so derivatives of any order follow.  Next: joining.py.
"""
import functools
import math
import string

import numpy as np

from cgrad.core.arguments import as_tensor
from cgrad.ops.ranges import arange
from cgrad.ops.define import public
from cgrad.ops.matmul import _matmul
from cgrad.ops.reduction import _sum
from cgrad.ops.shape import _permute, _reshape

_LETTERS = string.ascii_letters
_ELLIPSIS = [chr(k) for k in range(0x100, 0x140)]     # labels of the axes behind "...", counted from the last one


def _expand(term, ndim, where):
    """The labels of one operand, those of its ellipsis included."""
    if term.count("...") > 1 or "." in term.replace("...", "", 1):
        raise ValueError(f"einsum: {where} {term!r} has a stray '.'; an ellipsis is '...', at most once")
    named = term.replace("...", "")
    for label in named:
        if label not in _LETTERS:
            raise ValueError(f"einsum: {label!r} in {where} {term!r} is no letter")
    if "..." not in term:
        if ndim is not None and len(named) != ndim:
            raise ValueError(f"einsum: {where} {term!r} names {len(named)} axes, but the tensor has {ndim}")
        return list(named)
    if ndim is not None and len(named) > ndim:
        raise ValueError(f"einsum: {where} {term!r} names {len(named)} axes, but the tensor has {ndim}")
    head, tail = term.split("...")
    return list(head) + _ELLIPSIS[:ndim - len(named)][::-1] + list(tail)


class _Planned:
    """A tensor to come: its shape, and its place among the operands and results of a plan."""

    def __init__(self, plan, shape):
        self.plan, self.shape, self.ndim = plan, shape, len(shape)
        self.place = plan.count
        plan.count += 1


class _Plan:
    """The calls that compute a sum of products."""

    def __init__(self, shapes):
        self.count, self.calls = 0, []
        self.operands = [_Planned(self, shape) for shape in shapes]

    def call(self, function, shape, inputs, *options):
        self.calls.append((function, tuple([x.place for x in inputs]), options))
        return _Planned(self, shape)

    def run(self, operands):
        values = list(operands)
        for function, places, options in self.calls:
            if len(places) == 1:
                values.append(function(values[places[0]], *options))
            else:
                values.append(function(values[places[0]], values[places[1]]))
        return values[-1]


def _summed(x, axes):
    return x.plan.call(_sum, tuple([n for k, n in enumerate(x.shape) if k not in axes]), [x], axes, False)


def _permuted(x, axes):
    return x if axes == tuple(range(x.ndim)) else x.plan.call(_permute, tuple([x.shape[k] for k in axes]), [x], axes)


def _reshaped(x, shape):
    return x if shape == x.shape else x.plan.call(_reshape, shape, [x], shape)


def _take_diagonal(x, axes):
    """The diagonal along the first two of the axes in a new order."""
    along = arange(x.shape[axes[0]])
    return _permute(x, axes)[along, along]


def _parse(subscripts, operands):
    """(labels of each operand, labels of the result)."""
    text = subscripts.replace(" ", "")
    if text.count("->") > 1 or "-" in text.replace("->", "") or ">" in text.replace("->", ""):
        raise ValueError(f"einsum: {subscripts!r} has more than one '->', or a part of one")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise ValueError(f"einsum: {subscripts!r} describes {len(terms)} operands, got {len(operands)}")
    labels = [_expand(term, x.ndim, "operand") for term, x in zip(terms, operands)]
    found = [label for term in labels for label in term]
    behind = sorted({label for label in found if label in _ELLIPSIS}, reverse=True)
    if not arrow:
        return labels, behind + sorted({label for label in found if label not in behind and found.count(label) == 1})
    if "..." in right:
        named = right.replace("...", "", 1)
        if "." in named:
            raise ValueError(f"einsum: the result {right!r} has a stray '.'; an ellipsis is '...', at most once")
        head, tail = right.split("...")
        result = list(head) + behind + list(tail)
    else:
        result = _expand(right, None, "result")
    for label in result:
        if result.count(label) > 1:
            raise ValueError(f"einsum: {label!r} is twice in the result {right!r}")
        if label not in found:
            raise ValueError(f"einsum: {label!r} of the result {right!r} is in no operand")
    return labels, result


def _sizes(labels, operands):
    """The length of each label; a length of 1 stretches to another one."""
    sizes = {}
    for term, x in zip(labels, operands):
        for label, n in zip(term, x.shape):
            known = sizes.get(label, 1)
            if n != known and 1 not in (n, known):
                raise ValueError(f"einsum: index {label if label in _LETTERS else '...'!r} has length {known} in one place and {n} in another; "
                                 f"shapes are {', '.join(str(x.shape) for x in operands)}")
            sizes[label] = n if known == 1 else known
    return sizes


def _diagonals(x, term):
    """`x` with each label once: the diagonal along axes that share one."""
    term = list(term)
    for label in sorted(set(term)):
        while term.count(label) > 1:
            first = term.index(label)
            second = term.index(label, first + 1)
            rest = [k for k in range(x.ndim) if k not in (first, second)]
            if x.shape[first] != x.shape[second]:      # one of them has length 1
                gone = first if x.shape[first] == 1 else second
                x = _summed(x, (gone,))
                del term[gone]
                continue
            x = x.plan.call(_take_diagonal, tuple([x.shape[k] for k in (first, *rest)]), [x], (first, second, *rest))
            term = [label] + [term[k] for k in rest]
    return x, term


def _drop(x, term, keep, sizes):
    """`x` summed over the labels nobody needs any more, and without axes that stretch."""
    gone = tuple([k for k, label in enumerate(term) if label not in keep or x.shape[k] == 1 != sizes[label]])
    if gone:
        x = _summed(x, gone)
    return x, [label for k, label in enumerate(term) if k not in gone]


def _arrange(x, term, order, shape):
    return _reshaped(_permuted(x, tuple([term.index(label) for label in order])), shape)


def _contract(x, x_term, y, y_term, keep, sizes):
    """Two operands as one batched matrix product; returns the product and its labels."""
    x, x_term = _drop(x, x_term, keep | set(y_term), sizes)
    y, y_term = _drop(y, y_term, keep | set(x_term), sizes)
    shared = [label for label in x_term if label in y_term]
    batch, summed = [s for s in shared if s in keep], [s for s in shared if s not in keep]
    rows, columns = [s for s in x_term if s not in shared], [s for s in y_term if s not in shared]
    b, k, m, n = (math.prod(sizes[s] for s in group) for group in (batch, summed, rows, columns))
    x_shape, y_shape = (m, k), (k, n)
    if batch:
        x_shape, y_shape = (b, m, k), (b, k, n)
    x, y = _arrange(x, x_term, batch + rows + summed, x_shape), _arrange(y, y_term, batch + summed + columns, y_shape)
    product = x.plan.call(_matmul, (b, m, n) if batch else (m, n), [x, y])
    term = batch + rows + columns
    return _reshaped(product, tuple([sizes[s] for s in term])), term


def _order(labels, operands, result):
    """Which two operands to contract in each step (greedy, by NumPy's planner)."""
    if len(operands) <= 2:
        return [tuple(range(len(operands)))] if len(operands) == 2 else []
    names = {label: _LETTERS[k] for k, label in enumerate(dict.fromkeys(s for term in labels for s in term))}
    text = ",".join("".join(names[s] for s in term) for term in labels) + "->" + "".join(names[s] for s in result)
    shapes = [np.broadcast_to(np.empty((), np.bool_), x.shape) for x in operands]
    steps = []
    left = len(operands)
    for step in np.einsum_path(text, *shapes, optimize="greedy")[0][1:]:
        step = sorted(step, reverse=True)
        while len(step) > 2:                  # more than two at once: two by two
            steps.append((step[1], step[0]))
            step = sorted([left - 2, *step[2:]], reverse=True)
            left -= 1
        steps.append(tuple(reversed(step)))
        left -= 1
    return [s for s in steps if len(s) == 2]


@public(method=False)
def einsum(subscripts, *operands):
    """Sum of products by Einstein's notation.

    Parameters
    ----------
    subscripts : str
        For each operand one letter an axis, separated by commas, and after ``->`` the letters of the result.  A letter that is
        not in the result is summed over; one that is twice in an operand takes its diagonal; ``...`` stands for axes that
        broadcast.  Without ``->`` the result has the letters that appear once, in alphabetical order.
    *operands : Tensor
        Axes of length 1 stretch.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If the notation makes no sense or does not fit the shapes.

    Notes
    -----
    Two operands at a time become one batched matrix product, in the order NumPy's greedy planner finds.  Gradient: that of
    these products.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.einsum("ij,j->i", cg.tensor([[1.0, 2.0], [3.0, 4.0]]), cg.tensor([1.0, 10.0]))
    tensor([21., 43.])
    """
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = operands[0]
    if not operands:
        raise ValueError("einsum: needs at least one operand")
    operands = [as_tensor("einsum", x) for x in operands]
    if not isinstance(subscripts, str):
        raise TypeError(f"einsum: the first argument is a string such as 'ij,jk->ik', got {type(subscripts).__name__}")
    return _plan(subscripts, tuple([tuple(x.shape) for x in operands])).run(operands)


@functools.lru_cache(maxsize=1024)
def _plan(subscripts, shapes):
    """The calls for operands of these shapes; working them out takes 20 µs and more."""
    plan = _Plan(shapes)
    labels, result = _parse(subscripts, plan.operands)
    sizes = _sizes(labels, plan.operands)
    pending = [_diagonals(x, term) for x, term in zip(plan.operands, labels)]
    for i, j in _order([term for _, term in pending], [x for x, _ in pending], result):
        y, y_term = pending.pop(j)
        x, x_term = pending.pop(i)
        keep = set(result).union(*[term for _, term in pending])
        pending.append(_contract(x, x_term, y, y_term, keep, sizes))
    x, term = _drop(*pending[0], set(result), {label: sizes[label] for label in pending[0][1]})
    # A label of the result that is gone had length 1 everywhere but in operands that were stretched away: none can be.
    x = _permuted(x, tuple([term.index(label) for label in result]))
    if not plan.calls:                    # nothing to do: a view, as a permutation would be
        plan.call(_permute, x.shape, [x], tuple(range(x.ndim)))
    return plan
