"""Rows of a table picked by index, as one operation, so that the table's gradient is written once.

A rule's parameter names say what the tape keeps (see define.py).  `nn/functional/embedding.py` is the public door.  `padding` is the
index whose row counts as a constant, -1 for none; the indices are an input, so that the tape notices when they are overwritten.
"""

from cgrad.core.dtype import int64
from cgrad.core.forward import embedding as forward
from cgrad.ops import compare
from cgrad.ops.creation import arange, ones
from cgrad.ops.define import NONDIFF, define
from cgrad.ops.joining import stack
from cgrad.ops.shape import _reshape, broadcast_to


def _without(rows, index, padding):
    """Picked rows with zeros where the index is `padding`."""
    return rows if padding < 0 else compare.where(_reshape(index == padding, (*index.shape, 1)), 0, rows)


def _spread_batch(x, y, n, padding, size):
    places = _places(y, n)
    return _reshape(_spread_rows(_without(x, y, padding), places, size * n, -1), (size, n, x.shape[-1]))


# The sums that flow back into a table of n rows: the adjoint of picking.
_spread_rows = define(
    "spread_rows", forward=forward.spread, inputs=("x", "y"), options=("n", "padding"),
    vjp=(lambda g, y, padding: _without(embedding(g, y, -1, False), y, padding), None),
    jvp=lambda tx, y, n, padding: _spread_rows(tx, y, n, padding), batch=_spread_batch, public=False)


def _places_forward(y, n):
    forward.check_indices(y, n)
    return y.astype(int64) + _reshape(arange(y.shape[0]) * n, (y.shape[0],) + (1,) * (y.ndim - 1))


# Where the rows of each example of a batch lie if their tables of n rows follow each other in one.
_places = define("places_in_batch", forward=_places_forward, inputs=("y",), options=("n",), kind=NONDIFF, public=False)


def _batch(x, y, padding, by_frequency, size, batched):
    if not batched[0] and not by_frequency:
        return embedding(x, y, padding, False)
    x, y = [t if b else broadcast_to(t, (size, *t.shape)) for t, b in zip((x, y), batched)]
    if padding >= 0:
        return stack([embedding(x[i], y[i], padding, by_frequency) for i in range(size)])
    return embedding(_reshape(x, (size * x.shape[1], x.shape[2])), _places(y, x.shape[1]), -1, by_frequency)


def _gradient(g, y, shape_x, padding, by_frequency):
    if by_frequency:
        counts = _spread_rows(ones((*y.shape, 1), dtype=g.dtype), y, shape_x[0], -1)
        g = g / embedding(counts, y, -1, False)
    return _spread_rows(g, y, shape_x[0], padding)


#: embedding(x, y, padding, by_frequency): rows of the table x at the indices y; by_frequency divides gradients by how often an index occurs
embedding = define(
    "embedding", forward=lambda x, y, padding, by_frequency: forward.pick(x, y), moves=True, inputs=("x", "y"), options=("padding", "by_frequency"),
    vjp=(_gradient, None), jvp=lambda tx, y, padding: _without(embedding(tx, y, -1, False), y, padding),
    batch=_batch, public=False)
