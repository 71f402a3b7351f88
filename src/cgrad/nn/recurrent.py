"""Recurrent networks: RNN, LSTM, GRU over whole sequences, and their cells."""
from __future__ import annotations

import math

import cgrad as cg
from cgrad.core.device import check_device
from cgrad.core.source import warn
from cgrad.nn import functional as F
from cgrad.nn import init
from cgrad.nn.functional.recurrent import run_layer
from cgrad.nn.module import Module, check_sizes
from cgrad.nn.parameter import Parameter
from cgrad.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _nonlinear_mode(name, nonlinearity):
    if nonlinearity not in ("tanh", "relu"):
        raise ValueError(f"{name}: nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}")
    return "RNN_" + nonlinearity.upper()


def _draw(module):
    bound = 1 / math.sqrt(module.hidden_size)
    for weight in module.parameters():
        init.uniform_(weight, -bound, bound)


class RNNBase(Module):
    """What RNN, LSTM and GRU have in common.

    Parameters
    ----------
    mode : {"LSTM", "GRU", "RNN_TANH", "RNN_RELU"}
    input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, dtype
        As for `LSTM`.

    Examples
    --------
    >>> import cgrad as cg
    >>> issubclass(cg.nn.GRU, cg.nn.RNNBase)
    True
    """

    def __init__(self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
                 proj_size=0, device=None, dtype=None):
        check_device(type(self).__name__, device)
        super().__init__()
        name = self._get_name()
        if mode not in _GATES:
            raise ValueError(f"{name}: mode must be one of {', '.join(_GATES)}, got {mode!r}")
        check_sizes(self, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(f"{name}: dropout must be a probability, got {dropout!r}")
        if not 0 <= proj_size < hidden_size or proj_size and mode != "LSTM":
            raise ValueError(f"{name}: proj_size must be less than hidden_size={hidden_size}, and other than 0 for LSTM only; got {proj_size}")
        if dropout and num_layers == 1:
            warn(f"{name}: dropout acts between layers, so dropout={dropout} does nothing with num_layers=1")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._names = []                 # of the parameters of each layer and direction; None: has none
        rows, width = _GATES[mode] * hidden_size, proj_size or hidden_size
        for layer in range(num_layers):
            for ending in (f"l{layer}", f"l{layer}_reverse")[:1 + bool(bidirectional)]:
                inputs = input_size if layer == 0 else width * (1 + bool(bidirectional))
                shapes = {"weight_ih": (rows, inputs), "weight_hh": (rows, width), "bias_ih": (rows,) if bias else None,
                          "bias_hh": (rows,) if bias else None, "weight_hr": (proj_size, hidden_size) if proj_size else None}
                for kind, shape in shapes.items():
                    if shape is not None:
                        self.register_parameter(f"{kind}_{ending}", Parameter(cg.empty(shape, dtype=dtype)))
                self._names.append([None if shape is None else f"{kind}_{ending}" for kind, shape in shapes.items()])
        self.reset_parameters()

    def reset_parameters(self):
        """Draw new values."""
        _draw(self)

    def flatten_parameters(self):
        """Does nothing: parameters need no order in memory here."""

    @property
    def all_weights(self):
        """The parameters of each layer and direction, as lists."""
        return [[getattr(self, name) for name in names if name is not None] for names in self._names]

    def forward(self, input, hx=None):
        """(states after each step, last states); what they are stands at the class.

        Parameters
        ----------
        input : Tensor, shape (L, N, input_size), or PackedSequence
            (N, L, input_size) if `batch_first`; (L, input_size) for one sequence.
        hx : Tensor, shape (D * num_layers, N, H), or for LSTM a tuple of two, optional
            The first states, zeros by default; without N for one sequence.
        """
        packed = isinstance(input, PackedSequence)
        if packed:
            rows, sizes, order, unsorted = input
            sizes = tuple(sizes.tolist())
            shape, n_batch = None, sizes[0]
        else:
            rows, shape, n_batch = self._rows(input)
            sizes = order = unsorted = None
        if rows.shape[-1] != self.input_size:
            raise ValueError(f"{self._get_name()}: the last axis of the input must be input_size={self.input_size}, got {tuple(rows.shape)}")
        states = None if hx is None else self._states(hx, n_batch, not packed and input.ndim == 2, order)
        rows, last = self._layers(rows, states, n_batch, sizes)
        last = [cg.stack(parts) for parts in zip(*last)]
        if packed:
            out = PackedSequence(rows, input.batch_sizes, order, unsorted)
            if unsorted is not None:
                last = [cg.take(x, unsorted, axis=1) for x in last]
        else:
            out = rows.reshape(*shape, rows.shape[-1])
            if input.ndim == 2:
                last = [x.squeeze(1) for x in last]
            elif self.batch_first:
                out = out.transpose(0, 1)
        return out, tuple(last) if self.mode == "LSTM" else last[0]

    def _rows(self, input):
        """The elements of all sequences, step after step; (steps, sequences); how many sequences."""
        if input.ndim == 2:
            return input, input.shape[:1], 1
        if input.ndim != 3:
            raise ValueError(f"{self._get_name()}: the input must have 3 axes, or 2 for one sequence, got {tuple(input.shape)}")
        if self.batch_first:
            input = input.transpose(0, 1)
        n_steps, n_batch, width = input.shape
        return input.reshape(n_steps * n_batch, width), (n_steps, n_batch), n_batch

    def _states(self, hx, n_batch, single, order):
        """The first states of each layer and direction."""
        kinds = ("h_0", "c_0") if self.mode == "LSTM" else ("h_0",)
        given = hx if self.mode == "LSTM" else (hx,)
        if not isinstance(given, (tuple, list)) or len(given) != len(kinds):
            raise ValueError(f"{self._get_name()}: hx must be the two tensors (h_0, c_0), got {type(hx).__name__}")
        states = []
        for kind, x, width in zip(kinds, given, (self.proj_size or self.hidden_size, self.hidden_size)):
            want = (len(self._names), width) if single else (len(self._names), n_batch, width)
            if tuple(x.shape) != want:
                raise ValueError(f"{self._get_name()}: {kind} must have shape {want}, got {tuple(x.shape)}")
            states.append(x.unsqueeze(1) if single else x if order is None else cg.take(x, order, axis=1))
        return list(zip(*[x.unbind(0) for x in states]))

    def _layers(self, rows, states, n_batch, sizes):
        """The states after each step of the last layer, and the last ones of each layer and direction."""
        last, directions = [], 1 + bool(self.bidirectional)
        own = self._parameters
        for k, names in enumerate(self._names):
            weights = [None if name is None else own.get(name, None) if name in own else getattr(self, name) for name in names]
            if states is None:
                widths = (self.proj_size or self.hidden_size, self.hidden_size)[:1 + (self.mode == "LSTM")]
                first = [cg.zeros((n_batch, width), dtype=weights[0].dtype) for width in widths]
            else:
                first = states[k]
            if k % directions == 0:
                if k and self.dropout and self.training:
                    rows = F.dropout(rows, self.dropout)
                found = []
            out, *after = run_layer(self.mode, rows, first, *weights, sizes, k % directions == 1)
            found.append(out)
            last.append(after)
            if len(found) == directions:
                rows = found[0] if directions == 1 else cg.concat(found, 1)
        return rows, last

    def extra_repr(self):
        parts = [f"{self.input_size}, {self.hidden_size}"]
        for name, default in (("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0), ("bidirectional", False)):
            if getattr(self, name) != default:
                parts.append(f"{name}={getattr(self, name)}")
        return ", ".join(parts)


class RNN(RNNBase):
    """A plain recurrent network: ``h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh)``.

    Parameters
    ----------
    input_size, hidden_size : int
    num_layers : int, default 1
    nonlinearity : {"tanh", "relu"}
    bias, batch_first, dropout, bidirectional, dtype
        As for `LSTM`.

    Attributes
    ----------
    weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, ... : Parameter
        As for `LSTM`, with ``hidden_size`` rows.

    Notes
    -----
    Called with the input and, if they are not 0, the first states, it gives the states of the last layer after each step, (L, N, D *
    hidden_size), and the last states of each layer and direction, (D * num_layers, N, hidden_size).

    Examples
    --------
    >>> import cgrad as cg
    >>> out, h = cg.nn.RNN(10, 20, num_layers=2)(cg.randn(5, 3, 10))
    >>> out.shape, h.shape
    ((5, 3, 20), (2, 3, 20))
    """

    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False, dropout=0.0, bidirectional=False,
                 device=None, dtype=None):
        super().__init__(_nonlinear_mode("RNN", nonlinearity), input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                         device=device, dtype=dtype)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory.

    Parameters
    ----------
    input_size, hidden_size : int
    num_layers : int, default 1
        Each layer takes the states of the one before as its inputs.
    bias : bool, default True
        Whether there are biases.
    batch_first : bool, default False
        Whether sequences have shape (N, L, input_size) instead of (L, N, input_size); the states are the same either way.
    dropout : float, default 0.0
        In training, of the states that go from one layer to the next.
    bidirectional : bool, default False
        Whether there is a second part that goes from the last step to the first, the number D of directions being 2.
    proj_size : int, default 0
        If not 0, states are projected to this size before they are used.
    dtype : dtype, optional
        Default: the default floating dtype.

    Attributes
    ----------
    weight_ih_l0 : Parameter, shape (4 * hidden_size, input_size)
        Of the gates i, f, g, o; in further layers ``_l1``, ... (4 * hidden_size, D * H); of the second direction ``_l0_reverse``.
    weight_hh_l0 : Parameter, shape (4 * hidden_size, H)
        With H the size of the states, `proj_size` or else `hidden_size`.
    bias_ih_l0, bias_hh_l0 : Parameter, shape (4 * hidden_size,)
    weight_hr_l0 : Parameter, shape (proj_size, hidden_size)
        If there is a `proj_size`.

    Notes
    -----
    ``i, f, o = sigmoid(W x_t + b + W' h_(t-1) + b')``, ``g`` likewise with tanh, ``c_t = f c_(t-1) + i g``, ``h_t = o tanh(c_t)`` [1]_.
    Parameters start uniform in ``(-1/sqrt(hidden_size), 1/sqrt(hidden_size))``, as in PyTorch.

    Called with the input and, if they are not 0, the first ``(h_0, c_0)``, it gives the states of the last layer after each step, (L, N, D *
    H), and ``(h_n, c_n)`` after the last step of each layer and direction, (D * num_layers, N, H) and (D * num_layers, N, hidden_size).

    The products with the inputs are one for all steps; the steps of a layer in one direction are one operation, of which the gates and cells
    stay for backward (6 numbers for each state, with the state).  Second derivatives go step by step through recorded operations, as does
    everything with a `proj_size`.

    References
    ----------
    .. [1] Hochreiter, Schmidhuber, "Long short-term memory", Neural Computation 9, 1997; Gers et al., "Learning to forget", 2000.

    Examples
    --------
    >>> import cgrad as cg
    >>> lstm = cg.nn.LSTM(10, 20, bidirectional=True)
    >>> out, (h, c) = lstm(cg.randn(5, 3, 10))
    >>> out.shape, h.shape, c.shape
    ((5, 3, 40), (2, 3, 20), (2, 3, 20))
    """

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, proj_size=0,
                 device=None, dtype=None):
        super().__init__("LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device=device, dtype=dtype)


class GRU(RNNBase):
    """Gated recurrent units.

    Parameters
    ----------
    input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype
        As for `LSTM`.

    Attributes
    ----------
    weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, ... : Parameter
        As for `LSTM`, with ``3 * hidden_size`` rows, of r, z and n.

    Notes
    -----
    ``r, z = sigmoid(W x_t + b + W' h_(t-1) + b')``, ``n = tanh(W x_t + b + r (W' h_(t-1) + b'))``, ``h_t = (1 - z) n + z h_(t-1)`` [1]_.

    Called with the input and, if they are not 0, the first states, it gives the states of the last layer after each step, (L, N, D *
    hidden_size), and the last states of each layer and direction, (D * num_layers, N, hidden_size).

    References
    ----------
    .. [1] Cho et al., "Learning phrase representations using RNN encoder-decoder", EMNLP 2014; here the reset gate acts after the product.

    Examples
    --------
    >>> import cgrad as cg
    >>> out, h = cg.nn.GRU(10, 20, batch_first=True)(cg.randn(3, 5, 10))
    >>> out.shape, h.shape
    ((3, 5, 20), (1, 3, 20))
    """

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, device=None,
                 dtype=None):
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device=device, dtype=dtype)


class RNNCellBase(Module):
    """What RNNCell, LSTMCell and GRUCell have in common.

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool
    num_chunks : int
        How many times `hidden_size` the weights have rows.
    dtype : dtype, optional

    Examples
    --------
    >>> import cgrad as cg
    >>> issubclass(cg.nn.GRUCell, cg.nn.RNNCellBase)
    True
    """

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        check_device(type(self).__name__, device)
        super().__init__()
        check_sizes(self, input_size=input_size, hidden_size=hidden_size)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(cg.empty((rows, input_size), dtype=dtype))
        self.weight_hh = Parameter(cg.empty((rows, hidden_size), dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(cg.empty((rows,), dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw new values."""
        _draw(self)

    def _call(self, cell, input, hx):
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if hx is None:
            hx = cg.zeros((*input.shape[:-1], self.hidden_size), dtype=self.weight_hh.dtype)
            hx = (hx, hx) if cell is F.lstm_cell else hx
        return cell(input, hx, *weights)

    def extra_repr(self):
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(RNNCellBase):
    """One step of a plain recurrent network.

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool, default True
    nonlinearity : {"tanh", "relu"}
    dtype : dtype, optional
        Default: the default floating dtype.

    Attributes
    ----------
    weight_ih : Parameter, shape (hidden_size, input_size)
    weight_hh : Parameter, shape (hidden_size, hidden_size)
    bias_ih, bias_hh : Parameter, shape (hidden_size,), or None

    See Also
    --------
    cgrad.nn.RNN : All steps at once, which is much faster.

    Examples
    --------
    >>> import cgrad as cg
    >>> cell = cg.nn.RNNCell(10, 20)
    >>> cell(cg.randn(3, 10), cg.zeros((3, 20))).shape
    (3, 20)
    """

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        _nonlinear_mode("RNNCell", nonlinearity)
        super().__init__(input_size, hidden_size, bias, 1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        return self._call(F.rnn_tanh_cell if self.nonlinearity == "tanh" else F.rnn_relu_cell, input, hx)

    def extra_repr(self):
        return super().extra_repr() + ("" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}")


class LSTMCell(RNNCellBase):
    """One step of a long short-term memory.

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool, default True
    dtype : dtype, optional
        Default: the default floating dtype.

    Attributes
    ----------
    weight_ih : Parameter, shape (4 * hidden_size, input_size)
    weight_hh : Parameter, shape (4 * hidden_size, hidden_size)
    bias_ih, bias_hh : Parameter, shape (4 * hidden_size,), or None

    See Also
    --------
    cgrad.nn.LSTM : All steps at once, which is much faster.

    Examples
    --------
    >>> import cgrad as cg
    >>> h, c = cg.nn.LSTMCell(10, 20)(cg.randn(3, 10))
    >>> h.shape, c.shape
    ((3, 20), (3, 20))
    """

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device=device, dtype=dtype)

    def forward(self, input, hx=None):
        return self._call(F.lstm_cell, input, hx)


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit.

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool, default True
    dtype : dtype, optional
        Default: the default floating dtype.

    Attributes
    ----------
    weight_ih : Parameter, shape (3 * hidden_size, input_size)
    weight_hh : Parameter, shape (3 * hidden_size, hidden_size)
    bias_ih, bias_hh : Parameter, shape (3 * hidden_size,), or None

    See Also
    --------
    cgrad.nn.GRU : All steps at once, which is much faster.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.GRUCell(10, 20)(cg.randn(3, 10)).shape
    (3, 20)
    """

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device=device, dtype=dtype)

    def forward(self, input, hx=None):
        return self._call(F.gru_cell, input, hx)
