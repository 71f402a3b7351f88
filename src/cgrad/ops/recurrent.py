"""Recurrent networks: a layer in one direction over all steps as one operation, for plain cells, LSTM and GRU.

The operations take what the inputs give to the gates, which is one product for all steps, and return beside the states what backward needs
of each step: gates and cells.  Backward through time is written twice: the kernel, for first order, and here with cgrad's own functions, from
the same results, for derivatives of higher order; forward mode transposes it.  Rows of all steps follow each other; `sizes` tells how many
each step has (None: the whole batch), as in packed sequences.  A rule's parameter names say what the tape keeps (see define.py).
`nn/recurrent.py` is the public door.

Sources: Hochreiter and Schmidhuber, "Long short-term memory" (1997), with the forget gate of Gers et al. (2000); Cho et al., "Learning
phrase representations using RNN encoder-decoder" (2014), with the reset after the product.
"""

from cgrad.core.forward import recurrent as forward
from cgrad.ops.creation import zeros_like
from cgrad.ops.define import define, joint
from cgrad.ops.elementwise import sigmoid, tanh
from cgrad.ops.joining import concat, stack
from cgrad.ops.matmul import _linear, _product_of_rows, matmul
from cgrad.ops.reduction import _sum
from cgrad.ops.shape import _permute, _reshape


def _way(rows, n_batch, sizes, reverse):
    """(first row, rows, first row of the step before, how many of its rows go on) of each step, in the order of the steps."""
    sizes = (n_batch,) * (rows // n_batch if n_batch else 0) if sizes is None else sizes
    starts = [0]
    for n in sizes:
        starts.append(starts[-1] + n)
    steps, before = [], None
    for t in reversed(range(len(sizes))) if reverse else range(len(sizes)):
        steps.append((starts[t], sizes[t], *((0, 0) if before is None else (starts[before], min(sizes[t], sizes[before])))))
        before = t
    return steps


def _before(states, first, step):
    """The states before a step: those after the step before, of rows that begin here the first ones."""
    _, n, start, known = step
    if known == n:
        return states[start:start + n]
    return first[:n] if known == 0 else concat([states[start:start + known], first[known:n]])


def _parts(x, n):
    """Gates side by side, as a list."""
    return [x[:, i * n:(i + 1) * n] for i in range(x.shape[1] // n)]


def _carried(olds, news, n):
    """The states of the whole batch after a step of its first n rows."""
    return [new if n == old.shape[0] else concat([new, old[n:]]) for old, new in zip(olds, news)]


def _plus(x, g, rows):
    return x if g is None else x + g[rows]


def _lstm_back(g, rows, out, before, dh, dc):
    """Gradients of the sums, which are those of the states' part, too; and what reaches the cell before."""
    (i, f, u, o), tc = _parts(out[3][rows], dh.shape[1]), tanh(out[4][rows])
    dc = _plus(dc + dh * o * (1 - tc * tc), g[4], rows)
    slopes = _plus(concat([dc * u, dc * before[1], dc * i, dh * tc], 1), g[3], rows)
    di, df, du, do = _parts(slopes, dh.shape[1])
    d = concat([di * i * (1 - i), df * f * (1 - f), du * (1 - u * u), do * o * (1 - o)], 1)
    return d, d, None, dc * f


def _gru_back(g, rows, out, before, dh):
    r, z, m, n = _parts(out[2][rows], dh.shape[1])
    dr, dz, dm, dn = _parts(_plus(concat([zeros_like(r), dh * (before[0] - n), zeros_like(r), dh * (1 - z)], 1), g[2], rows), dh.shape[1])
    dn = dn * (1 - n * n)
    dr, dz = (dr + dn * m) * r * (1 - r), dz * z * (1 - z)
    return concat([dr, dz, dn], 1), concat([dr, dz, dm + dn * r], 1), dh * z


def _tanh_back(g, rows, out, before, dh):
    d = dh * (1 - out[0][rows] * out[0][rows])
    return d, d, None


def _relu_back(g, rows, out, before, dh):
    d = dh * (out[0][rows] > 0)
    return d, d, None


def _through_time(back, g, firsts, w, out, sizes, reverse):
    """(gradients of the input's parts, of the states' parts, the states before each step, gradients of the first states); `firsts` are the
    first state and, of an LSTM, the first cell."""
    tracks = (out[0], out[4]) if len(firsts) == 2 else (out[0],)
    carried = [zeros_like(x) if d is None else d for x, d in zip(firsts, g[1:])]
    steps = _way(out[0].shape[0], firsts[0].shape[0], sizes, reverse)
    found = []
    for step in reversed(steps):
        rows, n = slice(step[0], step[0] + step[1]), step[1]
        before = [_before(track, first, step) for track, first in zip(tracks, firsts)]
        held = [x[:n] for x in carried]
        dx, dr, *passed = back(g, rows, out, before, _plus(held[0], g[0], rows), *held[1:])
        passed[0] = matmul(dr, w) if passed[0] is None else passed[0] + matmul(dr, w)
        carried = _carried(carried, passed, n)
        found.append((dx, dr, before[0]))
    if not found:
        return (None, None, None, *carried)
    if not reverse:
        found.reverse()
    return (*[concat(parts) for parts in zip(*found)], *carried)


def _weight_gradient(dr, before):
    return None if dr is None else _product_of_rows(dr, before)


def _bias_gradient(dr):
    return None if dr is None else _sum(dr, (0,), False)


def _lstm_gradients(g, h, c, w, out, sizes, reverse, needs):
    dx, dr, before, dh, dc = _through_time(_lstm_back, g, (h, c), w, out, sizes, reverse)
    return dx, dh, dc, _weight_gradient(dr, before) if needs[3] else None


def _lstm_first_order(g, h, c, w, out, sizes, reverse, needs):
    if g[3] is not None or g[4] is not None:
        return _lstm_gradients(g, h, c, w, out, sizes, reverse, needs)
    dx, dh, dc, before = forward.lstm_gradients(g, h, c, w, out, sizes, reverse, needs[3])
    return dx, dh, dc, _product_of_rows(dx, before) if needs[3] else None


def _gru_gradients(g, h, w, b, out, sizes, reverse, needs):
    dx, dr, before, dh = _through_time(_gru_back, g, (h,), w, out, sizes, reverse)
    return dx, dh, _weight_gradient(dr, before) if needs[2] else None, _bias_gradient(dr) if needs[3] else None


def _gru_first_order(g, h, w, b, out, sizes, reverse, needs):
    if g[2] is not None:
        return _gru_gradients(g, h, w, b, out, sizes, reverse, needs)
    dx, dh, dr, before = forward.gru_gradients(g, h, w, out, sizes, reverse, needs[2])
    return dx, dh, _product_of_rows(dr, before) if needs[2] else None, _bias_gradient(dr) if needs[3] else None


def _rnn_gradients(g, h, w, out, relu, sizes, reverse, needs):
    dx, dr, before, dh = _through_time(_relu_back if relu else _tanh_back, g, (h,), w, out, sizes, reverse)
    return dx, dh, _weight_gradient(dr, before) if needs[2] else None


def _rnn_first_order(g, h, w, out, relu, sizes, reverse, needs):
    dx, dh, before = forward.rnn_gradients(g, h, w, out, relu, sizes, reverse, needs[2])
    return dx, dh, _product_of_rows(dx, before) if needs[2] else None


def _batch(function, operands, n_states, options, size, batched):
    """Examples that share the weights are rows of one larger batch; else they go one by one."""
    sizes = options[-2]
    if sizes is not None or any(batched[1 + n_states:]) or not size:
        examples = [function(*[x[i] if b else x for x, b in zip(operands, batched)], *options) for i in range(size)]
        return tuple([stack(list(results)) for results in zip(*examples)])
    x, *states = [x if b else stack([x] * size) for x, b in zip(operands[:1 + n_states], batched)]
    n = states[0].shape[1]
    steps = x.shape[1] // n if n else 0
    x = _reshape(_permute(_reshape(x, (size, steps, n, x.shape[2])), (1, 0, 2, 3)), (steps * size * n, x.shape[2]))
    out = function(x, *[_reshape(y, (size * n, y.shape[2])) for y in states], *operands[1 + n_states:], *options)
    return tuple([_reshape(y, (size, n, y.shape[1])) if 1 <= i <= n_states else
                  _reshape(_permute(_reshape(y, (steps, size, n, y.shape[1])), (1, 0, 2, 3)), (size, steps * n, y.shape[1]))
                  for i, y in enumerate(out)])


#: lstm(x, h, c, w, sizes, reverse): (states, last state, last cell, gates, cells) of x (rows, 4 hidden), the parts of the inputs in i, f, g, o,
#: first state and cell (batch, hidden) and the weight (4 hidden, hidden) of the states
lstm = define(
    "lstm", forward=forward.lstm, inputs=("x", "h", "c", "w"), options=("sizes", "reverse"),
    vjp=joint(_lstm_gradients, fused=_lstm_first_order),
    batch=lambda x, h, c, w, sizes, reverse, size, batched: _batch(lstm, (x, h, c, w), 2, (sizes, reverse), size, batched), public=False)

#: gru(x, h, w, b, sizes, reverse): (states, last state, gates) of x (rows, 3 hidden), the parts of the inputs in r, z, n; b (3 hidden) or None
gru = define(
    "gru", forward=forward.gru, inputs=("x", "h", "w", "b"), optional=("b",), options=("sizes", "reverse"),
    vjp=joint(_gru_gradients, fused=_gru_first_order),
    batch=lambda x, h, w, b, sizes, reverse, size, batched: _batch(gru, (x, h, w, b), 1, (sizes, reverse), size, batched), public=False)

#: rnn(x, h, w, relu, sizes, reverse): (states, last state) of x (rows, hidden)
rnn = define(
    "rnn", forward=forward.rnn, inputs=("x", "h", "w"), options=("relu", "sizes", "reverse"),
    vjp=joint(_rnn_gradients, fused=_rnn_first_order),
    batch=lambda x, h, w, relu, sizes, reverse, size, batched: _batch(rnn, (x, h, w), 1, (relu, sizes, reverse), size, batched), public=False)


def lstm_with_projection(x, h, c, w, projection, sizes, reverse):
    """(states, last state, last cell) where each state is projected to (rows, proj) by a weight (proj, hidden); composed step by step."""
    carried, found = [h, c], []
    for start, n, _, _ in _way(x.shape[0], h.shape[0], sizes, reverse):
        i, f, u, o = _parts(x[start:start + n] + _linear(carried[0][:n], w, None), c.shape[1])
        cell = sigmoid(f) * carried[1][:n] + sigmoid(i) * tanh(u)
        found.append(_linear(sigmoid(o) * tanh(cell), projection, None))
        carried = _carried(carried, (found[-1], cell), n)
    if reverse:
        found.reverse()
    return concat(found) if found else zeros_like(h[:0]), *carried
