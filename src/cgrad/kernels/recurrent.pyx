"""Recurrent networks: a layer's steps in one direction, with the products of states and weights and all that gates do.

Owns run_recurrence and run_recurrence_backward (contracts in recurrent.pxd), called by core/forward/recurrent.pyx.  Nothing takes the GIL.
Rows of a batch know nothing of each other, so each thread takes some of them through all steps without waiting for others: the state and
the gates of a step stay in its cache, and so do the weights, packed once in panels as wide as the strips of the small products.  The bits
do not depend on the threads.  Backward goes the same way round; the gradients of weights are products over all steps, made by the caller.

Read next: matmul.pxi, gates.pxi, core/forward/recurrent.pyx.
"""
from libc.string cimport memcpy, memset

from cgrad.kernels.dispatch cimport elementwise_kernel, kernel_table
from cgrad.kernels.parallel cimport body_t, parallel_for
from cgrad.kernels.table cimport DTypeId, ElementwiseKernel

cdef enum:
    PANEL = 192            # bytes: a strip of three AVX-512 vectors, two of AVX2, four of SSE
    DEPTH = 128            # rows of a panel that are in the first cache while a thread's rows go over them
    ROWS = 16              # of a batch that a thread takes at a time, at most: weights are read from the second cache once for them
    FEW_ROWS = 4

ctypedef fused real:
    float
    double

cdef const ElementwiseKernel* ADD = elementwise_kernel("add")
cdef const ElementwiseKernel* TANH = elementwise_kernel("tanh")
cdef const ElementwiseKernel* TANH_BACKWARD = elementwise_kernel("tanh_backward")
cdef const ElementwiseKernel* RELU = elementwise_kernel("relu")
cdef const ElementwiseKernel* RELU_BACKWARD = elementwise_kernel("relu_backward")


cdef struct Step:
    Py_ssize_t first, rows             # of this thread's part of the batch
    Py_ssize_t before, known           # the same of the step before it; known <= rows, the others begin here


cdef struct Part:                      # of the batch
    Py_ssize_t start, stop


cdef inline Step step_at(const Recurrence* r, Py_ssize_t i, const Part* part) noexcept nogil:
    """Step number i on the way."""
    cdef Py_ssize_t t = r.n_steps - 1 - i if r.reverse else i
    cdef Py_ssize_t before = t + 1 if r.reverse else t - 1
    cdef Step s
    s.first = r.starts[t] + part.start
    s.rows = max(0, min(part.stop, <Py_ssize_t> r.sizes[t]) - part.start)
    s.before, s.known = 0, 0
    if i > 0:
        s.before = r.starts[before] + part.start
        s.known = max(0, min(s.rows, <Py_ssize_t> r.sizes[before] - part.start))
    return s


cdef inline Py_ssize_t size_of(const Recurrence* r) noexcept nogil:
    return 4 if r.dtype == DTypeId.FLOAT32 else 8


cdef inline int place_of(const Recurrence* r) noexcept nogil:
    """The dtype's in tables of two."""
    return r.dtype - <int> DTypeId.FLOAT32


cdef inline bint is_plain(const Recurrence* r) noexcept nogil:
    return r.cell == <int> TANH_CELL or r.cell == <int> RELU_CELL


cdef inline void map_rows(const Recurrence* r, const ElementwiseKernel* kernel, const char* x, const char* y, char* out, Py_ssize_t rows) noexcept nogil:
    """Of states."""
    cdef char* data[3]
    cdef Py_ssize_t[3] strides
    data[0], data[1], data[2] = out, <char*> x, <char*> y
    strides[0] = strides[1] = strides[2] = 1
    kernel.loops[r.dtype](data, strides, rows * r.hidden)


# ---- products with packed weights ----------------------------------------------------------------------------------------------------------

cdef void pack_numbers(const Recurrence* r, bint transposed, Py_ssize_t panel, const real* w, real* packed) noexcept nogil:
    """Columns panel <= j < panel + width of w.T (transposed: for the way forward) or w, row after row."""
    cdef Py_ssize_t depth = r.hidden if transposed else r.columns, n = r.columns if transposed else r.hidden
    cdef Py_ssize_t width = min(n - panel, <Py_ssize_t> PANEL // <Py_ssize_t> sizeof(real)), i, j
    packed += panel * depth
    if not transposed:
        for i in range(depth):
            memcpy(packed + i * width, w + i * n + panel, width * sizeof(real))
        return
    for j in range(width):
        for i in range(depth):
            packed[i * width + j] = w[(panel + j) * depth + i]


cdef void pack_forward(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """One panel."""
    cdef const Recurrence* r = <const Recurrence*> context
    if r.dtype == DTypeId.FLOAT32:
        pack_numbers(r, True, start, <const float*> r.w, <float*> r.packed)
    else:
        pack_numbers(r, True, start, <const double*> r.w, <double*> r.packed)


cdef void pack_backward(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """One panel."""
    cdef const Recurrence* r = <const Recurrence*> context
    if r.dtype == DTypeId.FLOAT32:
        pack_numbers(r, False, start, <const float*> r.w, <float*> r.packed)
    else:
        pack_numbers(r, False, start, <const double*> r.w, <double*> r.packed)


cdef void pack(Recurrence* r, body_t body, Py_ssize_t n) noexcept nogil:
    parallel_for(body, r, n, PANEL // size_of(r), <double> 2 * r.columns * r.hidden)


cdef void add_product(const Recurrence* r, Py_ssize_t rows, Py_ssize_t n, Py_ssize_t depth, const char* x, char* out, Py_ssize_t out_row,
                      bint more) noexcept nogil:
    """out (rows, n) = or += x (rows, depth) @ the packed weights (depth, n)."""
    cdef Py_ssize_t size = size_of(r), column = 0, width, start, stop
    while rows > 0 and column < n:
        width = min(n - column, PANEL // size)
        start = 0
        while start < depth:
            stop = min(depth, start + DEPTH)
            kernel_table().matmul.small[place_of(r)](
                rows, width, stop - start, x + start * size, depth * size, size, r.packed + (column * depth + start * width) * size,
                width * size, size, out + column * size, out_row * size, more or start > 0)
            start = stop
        column += width


# ---- forward -----------------------------------------------------------------------------------------------------------------------------------

cdef void gate_rows(const Recurrence* r, Py_ssize_t rows, Py_ssize_t first, const char* before) noexcept nogil:
    """From the sums of rows, `before` their cells (LSTM) or states (GRU), to gates and states."""
    cdef Py_ssize_t row = r.hidden * size_of(r)
    cdef char* gates = r.gates + first * 4 * row
    if rows > 0 and r.cell == <int> LSTM_CELL:
        kernel_table().gates.lstm[place_of(r)](rows, r.hidden, r.x + first * 4 * row, gates, before, r.cells + first * row, r.out + first * row)
    elif rows > 0:
        kernel_table().gates.gru[place_of(r)](rows, r.hidden, r.x + first * 3 * row, gates, r.b, before, r.out + first * row)


cdef void forward_step(const Recurrence* r, const Part* part, const Step* s) noexcept nogil:
    cdef Py_ssize_t size = size_of(r), row = r.hidden * size, wide = r.hidden if is_plain(r) else 4 * r.hidden, new = part.start + s.known
    cdef char* sums = (r.out if is_plain(r) else r.gates) + s.first * wide * size
    if is_plain(r):
        memcpy(sums, r.x + s.first * row, s.rows * row)
    add_product(r, s.known, r.columns, r.hidden, r.out + s.before * row, sums, wide, is_plain(r))
    add_product(r, s.rows - s.known, r.columns, r.hidden, r.h + new * row, sums + s.known * wide * size, wide, is_plain(r))
    if is_plain(r):
        map_rows(r, RELU if r.cell == <int> RELU_CELL else TANH, sums, NULL, sums, s.rows)
    else:
        gate_rows(r, s.known, s.first, (r.cells if r.cell == <int> LSTM_CELL else r.out) + s.before * row)
        gate_rows(r, s.rows - s.known, s.first + s.known, (r.c if r.cell == <int> LSTM_CELL else r.h) + new * row)


cdef void forward_rows(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Recurrence* r = <const Recurrence*> context
    cdef Py_ssize_t i, row, size = size_of(r) * r.hidden
    cdef Part part
    cdef Step s
    part.start, part.stop = start, stop
    for i in range(r.n_steps):
        s = step_at(r, i, &part)
        forward_step(r, &part, &s)
        row = 0 if i == r.n_steps - 1 else step_at(r, i + 1, &part).rows       # from there on this was the last step
        if row < s.rows:
            memcpy(r.last_h + (start + row) * size, r.out + (s.first + row) * size, (s.rows - row) * size)
            if r.cell == <int> LSTM_CELL:
                memcpy(r.last_c + (start + row) * size, r.cells + (s.first + row) * size, (s.rows - row) * size)


cdef inline double cost_of(const Recurrence* r) noexcept nogil:
    """In additions: eight multiplications cost as much as one, a gate as 10."""
    return <double> r.n_steps * r.n_batch * r.columns * (0.125 * r.hidden + 10)


cdef inline Py_ssize_t rows_at_a_time(const Recurrence* r) noexcept nogil:
    return max(<Py_ssize_t> FEW_ROWS, min(<Py_ssize_t> ROWS, (r.n_batch + 7) // 8 * 4))


cdef void run_recurrence(Recurrence* r) noexcept nogil:
    cdef Py_ssize_t size = size_of(r)
    memcpy(r.last_h, r.h, r.n_batch * r.hidden * size)
    if r.cell == <int> LSTM_CELL:
        memcpy(r.last_c, r.c, r.n_batch * r.hidden * size)
    if r.n_batch * r.n_steps == 0:
        return
    pack(r, pack_forward, r.columns)
    parallel_for(forward_rows, r, r.n_batch, rows_at_a_time(r), cost_of(r))


# ---- backward ----------------------------------------------------------------------------------------------------------------------------------

cdef void gate_back_rows(const Recurrence* r, Py_ssize_t rows, Py_ssize_t first, const char* before, Py_ssize_t place) noexcept nogil:
    """Rows of a step that begin at `place` in the batch: from the gradients of state and cell to those of the sums and of what was before."""
    cdef Py_ssize_t row = r.hidden * size_of(r)
    cdef const char* gates = r.gates + first * 4 * row
    if rows > 0 and r.cell == <int> LSTM_CELL:
        kernel_table().gates.lstm_back[place_of(r)](rows, r.hidden, gates, before, r.cells + first * row, r.dh + place * row, r.dc + place * row,
                                                    r.dx + first * 4 * row)
    elif rows > 0:
        kernel_table().gates.gru_back[place_of(r)](rows, r.hidden, gates, before, r.dh + place * row, r.dx + first * 3 * row, r.dr + first * 3 * row)


cdef void backward_step(const Recurrence* r, const Part* part, const Step* s) noexcept nogil:
    cdef Py_ssize_t row = r.hidden * size_of(r), wide = r.columns * size_of(r), new = part.start + s.known
    cdef char* dh = r.dh + part.start * row
    cdef char* out = r.out + s.first * row
    cdef char* known = r.out + s.before * row
    cdef char* dr = (r.dr if r.cell == <int> GRU_CELL else r.dx) + s.first * wide
    if r.g_out != NULL:
        map_rows(r, ADD, dh, r.g_out + s.first * row, dh, s.rows)
    if is_plain(r):
        map_rows(r, RELU_BACKWARD if r.cell == <int> RELU_CELL else TANH_BACKWARD, dh, out, r.dx + s.first * row, s.rows)
    else:
        gate_back_rows(r, s.known, s.first, r.cells + s.before * row if r.cell == <int> LSTM_CELL else known, part.start)
        gate_back_rows(r, s.rows - s.known, s.first + s.known, (r.c if r.cell == <int> LSTM_CELL else r.h) + new * row, new)
    add_product(r, s.rows, r.hidden, r.columns, dr, dh, r.hidden, r.cell == <int> GRU_CELL)
    if r.before != NULL:
        memcpy(r.before + s.first * row, known, s.known * row)
        memcpy(r.before + (s.first + s.known) * row, r.h + new * row, (s.rows - s.known) * row)


cdef void backward_rows(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Recurrence* r = <const Recurrence*> context
    cdef Py_ssize_t i
    cdef Part part
    cdef Step s
    part.start, part.stop = start, stop
    for i in range(r.n_steps - 1, -1, -1):
        s = step_at(r, i, &part)
        if s.rows > 0:
            backward_step(r, &part, &s)


cdef void start_gradient(const Recurrence* r, const char* g, char* target) noexcept nogil:
    if g != NULL:
        memcpy(target, g, r.n_batch * r.hidden * size_of(r))
    else:
        memset(target, 0, r.n_batch * r.hidden * size_of(r))


cdef void run_recurrence_backward(Recurrence* r) noexcept nogil:
    start_gradient(r, r.g_last_h, r.dh)
    if r.cell == <int> LSTM_CELL:
        start_gradient(r, r.g_last_c, r.dc)
    if r.n_batch * r.n_steps == 0:
        return
    pack(r, pack_backward, r.hidden)
    parallel_for(backward_rows, r, r.n_batch, rows_at_a_time(r), 1.5 * cost_of(r))
