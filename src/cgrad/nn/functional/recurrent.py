"""Cells of recurrent networks, and a layer of them in one direction."""
from __future__ import annotations

from cgrad.ops import recurrent
from cgrad.ops.matmul import linear

__all__ = ["gru_cell", "lstm_cell", "rnn_relu_cell", "rnn_tanh_cell"]


def run_layer(mode, rows, states, w_ih, w_hh, b_ih, b_hh, projection=None, sizes=None, reverse=False):
    """(states after each step, last state, and of "LSTM" the last cell) of a layer in one direction.

    `rows` are the inputs of all steps one after the other, `sizes` how many each step has (None: as many as the states).
    """
    gru = mode == "GRU"
    x = linear(rows, w_ih, b_ih if gru or b_hh is None else b_hh if b_ih is None else b_ih + b_hh)
    w_hh, b_hh, projection, *states = [t if t is None or t.dtype == x.dtype else t.astype(x.dtype) for t in (w_hh, b_hh, projection, *states)]
    if gru:
        return recurrent.gru(x, *states, w_hh, b_hh, sizes, reverse)[:2]
    if mode != "LSTM":
        return recurrent.rnn(x, *states, w_hh, mode == "RNN_RELU", sizes, reverse)
    if projection is not None:
        return recurrent.lstm_with_projection(x, *states, w_hh, projection, sizes, reverse)
    return recurrent.lstm(x, *states, w_hh, sizes, reverse)[:3]


def _run_cell(name, mode, input, states, w_ih, w_hh, b_ih, b_hh):
    """The new states, of one example or a batch of them."""
    if input.ndim not in (1, 2):
        raise ValueError(f"{name}: the input must have shape (input_size,) or (batch, input_size), got {tuple(input.shape)}")
    want = (*input.shape[:-1], w_hh.shape[-1])
    for state in states:
        if tuple(state.shape) != want:
            raise ValueError(f"{name}: the state of an input {tuple(input.shape)} must have shape {want}, got {tuple(state.shape)}")
    if input.ndim == 2:
        return run_layer(mode, input, states, w_ih, w_hh, b_ih, b_hh)[1:]
    last = run_layer(mode, input.unsqueeze(0), [state.unsqueeze(0) for state in states], w_ih, w_hh, b_ih, b_hh)[1:]
    return [state.squeeze(0) for state in last]


def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of a long short-term memory.

    Parameters
    ----------
    input : Tensor, shape (N, input_size) or (input_size,)
    hx : tuple of two Tensors, shape (N, hidden_size) or (hidden_size,)
        The state and the cell before.
    w_ih : Tensor, shape (4 * hidden_size, input_size)
    w_hh : Tensor, shape (4 * hidden_size, hidden_size)
    b_ih, b_hh : Tensor, shape (4 * hidden_size,), optional

    Returns
    -------
    tuple of two Tensors
        The state and the cell after it.

    Raises
    ------
    ValueError
        If shapes do not fit.

    See Also
    --------
    cgrad.nn.LSTM : The formulas, and all steps in one operation.

    Examples
    --------
    >>> import cgrad as cg
    >>> h, c = cg.nn.functional.lstm_cell(cg.ones((1, 2)), (cg.zeros((1, 1)), cg.zeros((1, 1))), cg.ones((4, 2)), cg.ones((4, 1)))
    >>> h, c
    (tensor([[0.6083]]), tensor([[0.8491]]))
    """
    h, c = _run_cell("lstm_cell", "LSTM", input, hx, w_ih, w_hh, b_ih, b_hh)
    return h, c


def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of a gated recurrent unit.

    Parameters
    ----------
    input : Tensor, shape (N, input_size) or (input_size,)
    hx : Tensor, shape (N, hidden_size) or (hidden_size,)
        The state before.
    w_ih : Tensor, shape (3 * hidden_size, input_size)
    w_hh : Tensor, shape (3 * hidden_size, hidden_size)
    b_ih, b_hh : Tensor, shape (3 * hidden_size,), optional

    Returns
    -------
    Tensor, shape as `hx`

    Raises
    ------
    ValueError
        If shapes do not fit.

    See Also
    --------
    cgrad.nn.GRU : The formulas, and all steps in one operation.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.gru_cell(cg.ones((1, 2)), cg.zeros((1, 1)), cg.ones((3, 2)), cg.ones((3, 1)))
    tensor([[0.1149]])
    """
    h, = _run_cell("gru_cell", "GRU", input, (hx,), w_ih, w_hh, b_ih, b_hh)
    return h


def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of a plain recurrent network, ``tanh(input @ w_ih.T + b_ih + hx @ w_hh.T + b_hh)``.

    Parameters
    ----------
    input : Tensor, shape (N, input_size) or (input_size,)
    hx : Tensor, shape (N, hidden_size) or (hidden_size,)
        The state before.
    w_ih : Tensor, shape (hidden_size, input_size)
    w_hh : Tensor, shape (hidden_size, hidden_size)
    b_ih, b_hh : Tensor, shape (hidden_size,), optional

    Returns
    -------
    Tensor, shape as `hx`

    Raises
    ------
    ValueError
        If shapes do not fit.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.rnn_tanh_cell(cg.ones((1, 2)), cg.zeros((1, 1)), cg.ones((1, 2)), cg.ones((1, 1)))
    tensor([[0.9640]])
    """
    h, = _run_cell("rnn_tanh_cell", "RNN_TANH", input, (hx,), w_ih, w_hh, b_ih, b_hh)
    return h


def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of a plain recurrent network, ``relu(input @ w_ih.T + b_ih + hx @ w_hh.T + b_hh)``.

    Parameters
    ----------
    input, hx, w_ih, w_hh, b_ih, b_hh
        As for `rnn_tanh_cell`.

    Returns
    -------
    Tensor, shape as `hx`

    Raises
    ------
    ValueError
        If shapes do not fit.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.rnn_relu_cell(cg.ones((1, 2)), cg.zeros((1, 1)), cg.ones((1, 2)), cg.ones((1, 1)))
    tensor([[2.]])
    """
    h, = _run_cell("rnn_relu_cell", "RNN_RELU", input, (hx,), w_ih, w_hh, b_ih, b_hh)
    return h
