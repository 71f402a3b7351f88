"""Recurrent networks: a layer's steps in one direction, with the products of states and weights and all that gates do.

Owns run_recurrence and run_recurrence_backward (contracts in recurrent.pxd), called by core/forward/recurrent.pyx.  Nothing takes the GIL.
Rows of a batch know nothing of each other, so each thread takes some of them through all steps without waiting for others: the state and
the gates of a step stay in its cache, and so do the weights, packed once in panels as wide as the strips of the small products.  The bits
do not depend on the threads.  Backward goes the same way round; the gradients of weights are products over all steps, made by the caller.

Read next: matmul.pxi, core/forward/recurrent.pyx.
"""
from libc.string cimport memcpy, memset

from cgrad.kernels.dispatch cimport elementwise_kernel, kernel_table
from cgrad.kernels.parallel cimport body_t, parallel_for
from cgrad.kernels.table cimport DTypeId, ElementwiseKernel

cdef enum:
    PANEL = 192            # bytes: a strip of three AVX-512 vectors, two of AVX2, four of SSE
    ROWS = 16              # of a batch that a thread takes at a time, at most: weights are read from the second cache once for them
    FEW_ROWS = 4
    SLICE = 64             # of a row, whose gradients are made in arrays of their own: only so does gcc vectorise with so many of them

ctypedef fused real:
    float
    double

cdef const ElementwiseKernel* SIGMOID = elementwise_kernel("sigmoid")
cdef const ElementwiseKernel* TANH = elementwise_kernel("tanh")


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


cdef inline void map_row(const ElementwiseKernel* kernel, real* x, real* out, Py_ssize_t n) noexcept nogil:
    cdef char* data[2]
    cdef Py_ssize_t[2] strides
    data[0], data[1] = <char*> out, <char*> x
    strides[0] = strides[1] = 1
    kernel.loops[<int> DTypeId.FLOAT32 if real is float else <int> DTypeId.FLOAT64](data, strides, n)


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
    cdef Py_ssize_t size = size_of(r), column = 0, width
    while rows > 0 and column < n:
        width = min(n - column, PANEL // size)
        kernel_table().matmul.small[r.dtype - <int> DTypeId.FLOAT32](
            rows, width, depth, x, depth * size, size, r.packed + column * depth * size, width * size, size, out + column * size,
            out_row * size, more)
        column += width


# ---- one row of a step -----------------------------------------------------------------------------------------------------------------------

cdef void relu_row(real* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        x[j] = <real> 0 if x[j] <= 0 else x[j]


cdef void lstm_row(Py_ssize_t n, real* gates, const real* before, real* cell, real* out) noexcept nogil:
    """From the sums in `gates` to gates, cell and state."""
    cdef real* f = gates + n
    cdef real* g = gates + 2 * n
    cdef real* o = gates + 3 * n
    cdef Py_ssize_t j
    map_row(SIGMOID, gates, gates, 2 * n)
    map_row(TANH, g, g, n)
    map_row(SIGMOID, o, o, n)
    for j in range(n):
        cell[j] = f[j] * before[j] + gates[j] * g[j]
    map_row(TANH, cell, out, n)
    for j in range(n):
        out[j] = out[j] * o[j]


cdef void gru_row(Py_ssize_t n, const real* x, real* gates, const real* before, real* out) noexcept nogil:
    cdef real* z = gates + n
    cdef real* m = gates + 2 * n
    cdef real* c = gates + 3 * n
    cdef Py_ssize_t j
    map_row(SIGMOID, gates, gates, 2 * n)
    for j in range(n):
        c[j] = x[2 * n + j] + gates[j] * m[j]
    map_row(TANH, c, c, n)
    for j in range(n):
        out[j] = c[j] + z[j] * (before[j] - c[j])


cdef void start_gru_row(Py_ssize_t n, const real* x, const real* b, real* gates) noexcept nogil:
    """What the products are added to: r and z of the input and the bias, the bias of n alone."""
    cdef Py_ssize_t j
    if b == NULL:
        memcpy(gates, x, 2 * n * sizeof(real))
        memset(gates + 2 * n, 0, n * sizeof(real))
        return
    for j in range(2 * n):
        gates[j] = x[j] + b[j]
    memcpy(gates + 2 * n, b + 2 * n, n * sizeof(real))


cdef void lstm_back_row(Py_ssize_t n, const real* gates, const real* before, real* cell, const real* dh, real* dc, real* dx) noexcept nogil:
    """From the gradients of state and cell to those of the sums and of the cell before."""
    cdef const real* f = gates + n
    cdef const real* g = gates + 2 * n
    cdef const real* o = gates + 3 * n
    cdef real t[SLICE]
    cdef real found[5 * SLICE]
    cdef real one = 1, d, s
    cdef Py_ssize_t start = 0, j, i, width
    while start < n:
        width = min(n - start, <Py_ssize_t> SLICE)
        map_row(TANH, cell + start, t, width)
        for j in range(width):
            i = start + j
            s = dh[i] * o[i]
            d = dc[i] + s * ((one - t[j]) * (one + t[j]))
            found[j] = d * g[i] * (gates[i] * (one - gates[i]))
            found[SLICE + j] = d * before[i] * (f[i] * (one - f[i]))
            found[2 * SLICE + j] = d * gates[i] * ((one - g[i]) * (one + g[i]))
            found[3 * SLICE + j] = s * t[j] * (one - o[i])
            found[4 * SLICE + j] = d * f[i]
        for j in range(4):
            memcpy(dx + j * n + start, found + j * SLICE, width * sizeof(real))
        memcpy(dc + start, found + 4 * SLICE, width * sizeof(real))
        start += width


cdef void gru_back_row(Py_ssize_t n, const real* gates, const real* before, real* dh, real* dx, real* dr) noexcept nogil:
    cdef const real* z = gates + n
    cdef const real* m = gates + 2 * n
    cdef const real* c = gates + 3 * n
    cdef real found[5 * SLICE]
    cdef real one = 1, d
    cdef Py_ssize_t start = 0, j, i, width
    while start < n:
        width = min(n - start, <Py_ssize_t> SLICE)
        for j in range(width):
            i = start + j
            d = dh[i] * (one - z[i]) * ((one - c[i]) * (one + c[i]))
            found[j] = d * m[i] * (gates[i] * (one - gates[i]))
            found[SLICE + j] = dh[i] * (before[i] - c[i]) * (z[i] * (one - z[i]))
            found[2 * SLICE + j] = d
            found[3 * SLICE + j] = d * gates[i]
            found[4 * SLICE + j] = dh[i] * z[i]
        for j in range(3):
            memcpy(dx + j * n + start, found + j * SLICE, width * sizeof(real))
            memcpy(dr + j * n + start, found + (j if j < 2 else 3) * SLICE, width * sizeof(real))
        memcpy(dh + start, found + 4 * SLICE, width * sizeof(real))
        start += width


cdef void plain_back_row(Py_ssize_t n, bint relu, const real* out, const real* dh, real* dx) noexcept nogil:
    cdef real one = 1
    cdef Py_ssize_t j
    if relu:
        for j in range(n):
            dx[j] = <real> 0 if out[j] <= 0 else dh[j]
    else:
        for j in range(n):
            dx[j] = dh[j] * ((one - out[j]) * (one + out[j]))


cdef void add_row(Py_ssize_t n, const real* x, real* out) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        out[j] = out[j] + x[j]


cdef inline const real* row_before(const Recurrence* r, const Part* part, const Step* s, const real* track, const real* first,
                                   Py_ssize_t i) noexcept nogil:
    """Row i of the states (or cells) before a step."""
    if i < s.known:
        return track + (s.before + i) * r.hidden
    return first + (part.start + i) * r.hidden


# ---- forward -----------------------------------------------------------------------------------------------------------------------------------

cdef void forward_step(const Recurrence* r, const Part* part, const Step* s, real* out, const real* x, real* gates, real* cells,
                       const real* h, const real* c, const real* b) noexcept nogil:
    cdef Py_ssize_t n = r.hidden, k = r.columns, wide = 4 * n, i
    cdef real* sums = gates + s.first * wide
    cdef real* after = out + s.first * n
    if r.cell <= <int> RELU_CELL:
        sums, wide = after, n
    x += s.first * k
    for i in range(s.rows):
        if r.cell == <int> GRU_CELL:
            start_gru_row(n, x + i * k, b, sums + i * wide)
        else:
            memcpy(sums + i * wide, x + i * k, k * sizeof(real))
    add_product(r, s.known, k, n, <const char*> (out + s.before * n), <char*> sums, wide, True)
    add_product(r, s.rows - s.known, k, n, <const char*> (h + (part.start + s.known) * n), <char*> (sums + s.known * wide), wide, True)
    if r.cell == <int> RELU_CELL:
        relu_row(after, s.rows * n)
    elif r.cell == <int> TANH_CELL:
        map_row(TANH, after, after, s.rows * n)
    for i in range(s.rows):
        if r.cell == <int> LSTM_CELL:
            lstm_row(n, sums + i * wide, row_before(r, part, s, cells, c, i), cells + (s.first + i) * n, after + i * n)
        elif r.cell == <int> GRU_CELL:
            gru_row(n, x + i * k, sums + i * wide, row_before(r, part, s, out, h, i), after + i * n)


cdef void forward_rows(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Recurrence* r = <const Recurrence*> context
    cdef Py_ssize_t i, row, size = size_of(r) * r.hidden
    cdef Part part
    cdef Step s
    part.start, part.stop = start, stop
    for i in range(r.n_steps):
        s = step_at(r, i, &part)
        if r.dtype == DTypeId.FLOAT32:
            forward_step(r, &part, &s, <float*> r.out, <const float*> r.x, <float*> r.gates, <float*> r.cells, <const float*> r.h,
                         <const float*> r.c, <const float*> r.b)
        else:
            forward_step(r, &part, &s, <double*> r.out, <const double*> r.x, <double*> r.gates, <double*> r.cells, <const double*> r.h,
                         <const double*> r.c, <const double*> r.b)
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

cdef void backward_step(const Recurrence* r, const Part* part, const Step* s, real* out, const real* g_out, real* gates, real* cells,
                        const real* h, const real* c, real* dx, real* dr, real* dh, real* dc, real* before) noexcept nogil:
    cdef Py_ssize_t n = r.hidden, k = r.columns, i, row
    dh += part.start * n
    if g_out != NULL:
        add_row(s.rows * n, g_out + s.first * n, dh)
    for i in range(s.rows):
        row = s.first + i
        if r.cell == <int> LSTM_CELL:
            lstm_back_row(n, gates + row * 4 * n, row_before(r, part, s, cells, c, i), cells + row * n, dh + i * n, dc + (part.start + i) * n, dx + row * k)
        elif r.cell == <int> GRU_CELL:
            gru_back_row(n, gates + row * 4 * n, row_before(r, part, s, out, h, i), dh + i * n, dx + row * k, dr + row * k)
        else:
            plain_back_row(n, r.cell == <int> RELU_CELL, out + row * n, dh + i * n, dx + row * k)
    if r.cell != <int> GRU_CELL:
        dr = dx
    add_product(r, s.rows, n, k, <const char*> (dr + s.first * k), <char*> dh, n, r.cell == <int> GRU_CELL)
    if before != NULL:
        memcpy(before + s.first * n, out + s.before * n, s.known * n * sizeof(real))
        memcpy(before + (s.first + s.known) * n, h + (part.start + s.known) * n, (s.rows - s.known) * n * sizeof(real))


cdef void backward_rows(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Recurrence* r = <const Recurrence*> context
    cdef Py_ssize_t i
    cdef Part part
    cdef Step s
    part.start, part.stop = start, stop
    for i in range(r.n_steps - 1, -1, -1):
        s = step_at(r, i, &part)
        if s.rows == 0:
            continue
        if r.dtype == DTypeId.FLOAT32:
            backward_step(r, &part, &s, <float*> r.out, <const float*> r.g_out, <float*> r.gates, <float*> r.cells, <const float*> r.h,
                          <const float*> r.c, <float*> r.dx, <float*> r.dr, <float*> r.dh, <float*> r.dc, <float*> r.before)
        else:
            backward_step(r, &part, &s, <double*> r.out, <const double*> r.g_out, <double*> r.gates, <double*> r.cells, <const double*> r.h,
                          <const double*> r.c, <double*> r.dx, <double*> r.dr, <double*> r.dh, <double*> r.dc, <double*> r.before)


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
