"""Rows of a table picked by index, or sums of them in bags, as one operation each, so that the table's gradient is written once.

A rule's parameter names say what the tape keeps (see define.py).  `nn/functional/embedding.py` is the public door.  `padding` is the
index whose row counts as a constant, -1 for none; the indices are an input, so that the tape notices when they are overwritten.
"""

from cgrad.core.dtype import int64
from cgrad.core.forward import embedding as forward
from cgrad.ops import compare
from cgrad.ops.creation import ones
from cgrad.ops.ranges import arange
from cgrad.ops.define import LINEAR, NONDIFF, define, joint
from cgrad.ops.joining import stack
from cgrad.ops.reduction import _sum
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
    vjp=(lambda g, y, padding: _without(embedding(g, y, -1, False), y, padding), None), kind=LINEAR, batch=_spread_batch, public=False)


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


def _bag_weights(g, y, z, f, n_rows, padding, mean, by_frequency):
    """(the bag of each index, the factor of its row in the gradient of the table)"""
    bags, factors = forward.bag_facts(y, z, padding, mean, g)
    if f is not None:
        factors = factors * f
    if by_frequency:
        counts = _spread_rows(ones((*y.shape, 1), dtype=g.dtype), y, n_rows, -1)
        factors = factors / _reshape(embedding(counts, y, -1, False), y.shape)
    return bags, factors


def _bag_gradients(g, x, y, z, f, padding, mean, by_frequency, needs):
    bags, factors = _bag_weights(g, y, z, f, x.shape[0], padding, mean, by_frequency)
    rows = embedding(g, bags, -1, False)
    return (_spread_rows(rows * _reshape(factors, (-1, 1)), y, x.shape[0], padding) if needs[0] else None, None, None,
            _sum(rows * _without(embedding(x, y, -1, False), y, padding), (1,), False) if needs[3] else None)


def _bag_first_order(g, x, y, z, f, padding, mean, by_frequency, needs):
    bags, factors = _bag_weights(g, y, z, f, x.shape[0], padding, mean, by_frequency)
    return (forward.spread_bags(g, y, bags, factors, x.shape[0], padding) if needs[0] else None, None, None,
            forward.bag_products(g, x, y, z, padding) if needs[3] else None)


def _bag_tangent(tx, tf, x, y, z, f, padding, mean):
    terms = [] if tx is None else [embedding_bag(tx, y, z, f, padding, mean, False)]
    terms += [] if tf is None else [embedding_bag(x, y, z, tf, padding, mean, False)]
    return sum(terms[1:], terms[0])


def _bag_batch(x, y, z, f, padding, mean, by_frequency, size, batched):
    return stack([embedding_bag(*[t[i] if b else t for t, b in zip((x, y, z, f), batched)], padding, mean, by_frequency) for i in range(size)])


#: embedding_bag(x, y, z, f, padding, mean, by_frequency): sums (or means) of rows of the table x at the indices y, times the factors f or None;
#: bag b are the indices z[b] <= i < z[b + 1]
embedding_bag = define(
    "embedding_bag", forward=lambda x, y, z, f, padding, mean, by_frequency: forward.sum_bags(x, y, z, f, padding, mean),
    inputs=("x", "y", "z", "f"), optional=("f",), options=("padding", "mean", "by_frequency"), vjp=joint(_bag_gradients, fused=_bag_first_order),
    jvp=_bag_tangent, batch=_bag_batch, public=False)
