"""A layer of a recurrent network in one direction, over all steps, of tensors: plain cells, LSTM and GRU, and their gradients.

Owns the checks of shapes and what is allocated; the numbers come from kernels/recurrent.pyx.  Called by ops/recurrent.py.  Needs the GIL,
which it lets go while long loops run.  Next: kernels/recurrent.pyx.
"""
from libc.stdint cimport int64_t
from libc.string cimport memset

from cgrad.core.tensor cimport Tensor, contiguous_tensor, empty_tensor, shape_of, shape_text
from cgrad.kernels.recurrent cimport GRU_CELL, LSTM_CELL, RELU_CELL, TANH_CELL, Recurrence, run_recurrence, run_recurrence_backward
from cgrad.kernels.table cimport FLOAT32, FLOAT64, INT64

ctypedef void (*run_t)(Recurrence* r) noexcept nogil

cdef enum:
    LONG_LOOP = 32768      # multiplications from which letting the GIL go (about 50 ns) is lost in the loop


cdef Tensor matrix(int dtype, Py_ssize_t rows, Py_ssize_t columns):
    cdef Py_ssize_t[2] shape
    shape[0], shape[1] = rows, columns
    return empty_tensor(dtype, 2, shape)


cdef class Steps:
    """A Recurrence with the tensors whose memory it points to."""
    cdef Recurrence r
    cdef str name
    cdef Py_ssize_t rows                   # of all steps
    cdef list tensors

    def __cinit__(self, str name, int cell, Tensor h not None, Tensor w not None, bint reverse):
        cdef Py_ssize_t parts = {"lstm": 4, "gru": 3}.get(name, 1)
        memset(&self.r, 0, sizeof(Recurrence))
        self.name, self.tensors = name, []
        if h.rank != 2 or w.rank != 2 or shape_of(w)[1] != shape_of(h)[1] or shape_of(w)[0] != parts * shape_of(h)[1] or shape_of(w)[1] == 0:
            raise ValueError(f"{name}: the state must have shape (batch, hidden) and the weight of the states ({parts} * hidden, hidden) with "
                             f"hidden at least 1, got {shape_text(h.rank, shape_of(h))} and {shape_text(w.rank, shape_of(w))}")
        if h.dtype_id < FLOAT32 or h.dtype_id > FLOAT64:
            raise TypeError(f"{name}: states must be float32 or float64")
        self.r.dtype, self.r.cell, self.r.reverse = h.dtype_id, cell, reverse
        self.r.n_batch, self.r.hidden, self.r.columns = shape_of(h)[0], shape_of(h)[1], shape_of(w)[0]
        self.r.h = self.data(h, self.r.n_batch, self.r.hidden)
        self.r.w = self.data(w, self.r.columns, self.r.hidden)
        self.r.packed = self.fresh(self.r.columns, self.r.hidden).data

    cdef char* data(self, Tensor x, Py_ssize_t rows, Py_ssize_t columns) except? NULL:
        """The numbers of an operand, which are kept; NULL for None."""
        if x is None:
            return NULL
        if x.rank != 2 or shape_of(x)[0] != rows or shape_of(x)[1] != columns or x.dtype_id != self.r.dtype:
            raise ValueError(f"{self.name}: an operand of shape {shape_text(x.rank, shape_of(x))} and dtype {x.dtype} does not fit states of dtype "
                             f"{(<Tensor>self.tensors[0]).dtype if self.tensors else x.dtype} where ({rows}, {columns}) is needed")
        x = contiguous_tensor(x)
        self.tensors.append(x)
        return x.data

    cdef Tensor fresh(self, Py_ssize_t rows, Py_ssize_t columns):
        x = matrix(self.r.dtype, rows, columns)
        self.tensors.append(x)
        return x

    cdef int measure(self, Py_ssize_t rows, object sizes) except -1:
        """Where each step begins and how many rows it has; sizes None: as many as the batch."""
        cdef Py_ssize_t n = (rows // self.r.n_batch if self.r.n_batch else 0) if sizes is None else len(sizes), t, start = 0, before = self.r.n_batch
        cdef Tensor numbers = matrix(INT64, 2, n)
        cdef int64_t* size = <int64_t*> numbers.data
        cdef bint fits = True
        for t in range(n):
            size[t] = self.r.n_batch if sizes is None else sizes[t]
            fits = fits and 1 <= size[t] <= before
            size[n + t] = start
            before = size[t]
            start += before
        if not fits or start != rows:
            raise ValueError(f"{self.name}: {rows} rows of input do not fit steps of {self.r.n_batch if sizes is None else tuple(sizes)} rows for "
                             f"a batch of {self.r.n_batch}; the numbers of rows must not rise")
        self.tensors.append(numbers)
        self.rows, self.r.n_steps, self.r.sizes, self.r.starts = rows, n, size, size + n
        return 0

    cdef int run(self, bint backward) except -1:
        cdef run_t function = run_recurrence_backward if backward else run_recurrence
        if self.rows * self.r.columns * self.r.hidden < LONG_LOOP:
            function(&self.r)
        else:
            with nogil:
                function(&self.r)
        return 0

    cdef tuple forward(self, Tensor x, object sizes):
        """(out, last state)"""
        cdef Tensor out, last
        if x.rank != 2:
            raise ValueError(f"{self.name}: the input must have shape (rows, {self.r.columns}), got {shape_text(x.rank, shape_of(x))}")
        self.r.x = self.data(x, shape_of(x)[0], self.r.columns)
        self.measure(shape_of(x)[0], sizes)
        out, last = self.fresh(self.rows, self.r.hidden), self.fresh(self.r.n_batch, self.r.hidden)
        self.r.out, self.r.last_h = out.data, last.data
        return out, last

    cdef tuple backward(self, tuple g, tuple out, object sizes, bint states):
        """(dx, dh, the states before each step or None)"""
        cdef Tensor dx, dh, before = None
        self.measure(shape_of(<Tensor?>out[0])[0], sizes)
        self.r.out = self.data(<Tensor?>out[0], self.rows, self.r.hidden)
        self.r.g_out = self.data(g[0], self.rows, self.r.hidden)
        self.r.g_last_h = self.data(g[1], self.r.n_batch, self.r.hidden)
        dx, dh = self.fresh(self.rows, self.r.columns), self.fresh(self.r.n_batch, self.r.hidden)
        self.r.dx, self.r.dh = dx.data, dh.data
        if states:
            before = self.fresh(self.rows, self.r.hidden)
            self.r.before = before.data
        return dx, dh, before


def lstm(Tensor x not None, Tensor h not None, Tensor c not None, Tensor w not None, sizes, bint reverse):
    """(states, last state, last cell, gates, cells) of x (rows, 4 hidden), the input's parts of the gates i, f, g, o."""
    cdef Steps s = Steps("lstm", LSTM_CELL, h, w, reverse)
    cdef Tensor last_c, gates, cells
    out, last_h = s.forward(x, sizes)
    s.r.c = s.data(c, s.r.n_batch, s.r.hidden)
    last_c, gates, cells = s.fresh(s.r.n_batch, s.r.hidden), s.fresh(s.rows, s.r.columns), s.fresh(s.rows, s.r.hidden)
    s.r.last_c, s.r.gates, s.r.cells = last_c.data, gates.data, cells.data
    s.run(False)
    return out, last_h, last_c, gates, cells


def lstm_gradients(tuple g not None, Tensor h not None, Tensor c not None, Tensor w not None, tuple out not None, sizes, bint reverse, bint states):
    """(dx, dh, dc, the states before each step, if `states` are wanted) for the gradients of states, last state and last cell."""
    cdef Steps s = Steps("lstm", LSTM_CELL, h, w, reverse)
    cdef Tensor dc
    dx, dh, before = s.backward(g, out, sizes, states)
    s.r.c = s.data(c, s.r.n_batch, s.r.hidden)
    s.r.gates, s.r.cells = s.data(out[3], s.rows, s.r.columns), s.data(out[4], s.rows, s.r.hidden)
    s.r.g_last_c = s.data(g[2], s.r.n_batch, s.r.hidden)
    dc = s.fresh(s.r.n_batch, s.r.hidden)
    s.r.dc = dc.data
    s.run(True)
    return dx, dh, dc, before


def gru(Tensor x not None, Tensor h not None, Tensor w not None, Tensor b, sizes, bint reverse):
    """(states, last state, gates) of x (rows, 3 hidden), the input's parts of r, z, n; b (3 hidden) is added to the states' parts, or None."""
    cdef Steps s = Steps("gru", GRU_CELL, h, w, reverse)
    cdef Tensor gates
    out, last = s.forward(x, sizes)
    if b is not None:
        if b.rank != 1 or shape_of(b)[0] != s.r.columns or b.dtype_id != s.r.dtype:
            raise ValueError(f"gru: the bias must have shape ({s.r.columns},) and dtype {h.dtype}, got {shape_text(b.rank, shape_of(b))} and {b.dtype}")
        b = contiguous_tensor(b)
    else:
        b = s.fresh(1, s.r.columns)
        memset(b.data, 0, s.r.columns * (4 if s.r.dtype == FLOAT32 else 8))
    s.r.b = b.data
    gates = s.fresh(s.rows, 4 * s.r.hidden)
    s.r.gates = gates.data
    s.run(False)
    return out, last, gates


def gru_gradients(tuple g not None, Tensor h not None, Tensor w not None, tuple out not None, sizes, bint reverse, bint states):
    """(dx, dh, the gradient of the states' parts, the states before each step)"""
    cdef Steps s = Steps("gru", GRU_CELL, h, w, reverse)
    cdef Tensor dr
    dx, dh, before = s.backward(g, out, sizes, states)
    s.r.gates = s.data(out[2], s.rows, 4 * s.r.hidden)
    dr = s.fresh(s.rows, s.r.columns)
    s.r.dr = dr.data
    s.run(True)
    return dx, dh, dr, before


def rnn(Tensor x not None, Tensor h not None, Tensor w not None, bint relu, sizes, bint reverse):
    """(states, last state) of x (rows, hidden), the input's parts."""
    cdef Steps s = Steps("rnn", RELU_CELL if relu else TANH_CELL, h, w, reverse)
    out = s.forward(x, sizes)
    s.run(False)
    return out


def rnn_gradients(tuple g not None, Tensor h not None, Tensor w not None, tuple out not None, bint relu, sizes, bint reverse, bint states):
    """(dx, dh, the states before each step)"""
    cdef Steps s = Steps("rnn", RELU_CELL if relu else TANH_CELL, h, w, reverse)
    out_gradients = s.backward(g, out, sizes, states)
    s.run(True)
    return out_gradients
