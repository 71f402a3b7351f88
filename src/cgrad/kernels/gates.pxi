# What the gates of LSTM and GRU cells do after the product with the states, forward and backward.
#
# Included by the ISA shells after matmul.pxi; recurrent.pyx hands over contiguous rows.  A row is done in slices of which all results are
# made in arrays of their own before they are stored: only so does gcc vectorise with so many operands, and without loops for a rest.

from cgrad.kernels.table cimport gru_backward_t, gru_forward_t, lstm_backward_t, lstm_forward_t

cdef enum:
    SLICE = 32                 # two vectors of AVX-512


# Both functions of gates are quotients, top / bottom, of what is made of e**-a with a >= 0, and bottom lies between 1 and 2.  Several gates share
# a division: one over the product of their bottoms, times the other bottoms.  Right to 4 ulp, or to 2e-38 in float32 where that is more.

cdef inline real falling(real a, real* power) noexcept nogil:
    """p where e**-a is power + power * p."""
    cdef float tf
    cdef double t, low
    if real is float:
        a = exp_reducef(-(<float>87 if a > <float>87 else a), &tf)
        power[0] = bits_float((float_bits(tf) << 23) + 0x3f800000)
        return exp_polyf(a)
    else:
        a = exp_reduce(-(708.0 if a > 708.0 else a), 0, &t, &low)
        power[0] = two_power(t)
        return exp_poly(a)


cdef inline real sigmoid_parts(real x, real* bottom) noexcept nogil:
    cdef real a = absolute_(x), power, p = falling(a, &power), e = power + power * p
    if real is float:
        e = <float>0 if a > <float>87 else e
    else:
        e = 0.0 if a > 708.0 else e
    bottom[0] = <real>1 + e
    return <real>1 if x >= 0 else e


cdef inline real tanh_parts(real x, real* bottom) noexcept nogil:
    """(1 - e) / (1 + e) with e = e**(-2 |x|), by e - 1, which is right near 0, too."""
    cdef real a = absolute_(x), power, p = falling(a + a, &power), e = power * p + (power - <real>1)
    bottom[0] = <real>2 + e
    return copysign_(-e, x)


cdef inline real tanh_quotient(real x) noexcept nogil:
    cdef real bottom, top = tanh_parts(x, &bottom)
    return top / bottom


cdef void lstm_slice(const real* x, real* gates, Py_ssize_t n, const real* before, real* cell, real* out) noexcept nogil:
    """Parts of gates are n apart."""
    cdef real[4 * SLICE] found
    cdef real[SLICE] cells, states
    cdef real one = 1, i, f, g, o, c, i_bottom, f_bottom, g_bottom, o_bottom, c_bottom, over
    cdef Py_ssize_t j
    for j in range(SLICE):
        i = sigmoid_parts(gates[j] + x[j], &i_bottom)
        f = sigmoid_parts(gates[n + j] + x[n + j], &f_bottom)
        g = tanh_parts(gates[2 * n + j] + x[2 * n + j], &g_bottom)
        o = sigmoid_parts(gates[3 * n + j] + x[3 * n + j], &o_bottom)
        over = one / (i_bottom * g_bottom * f_bottom)
        i, f, g = i * (g_bottom * f_bottom * over), f * (i_bottom * g_bottom * over), g * (i_bottom * f_bottom * over)
        c = f * before[j] + i * g
        found[j], found[SLICE + j], found[2 * SLICE + j], cells[j] = i, f, g, c
        c = tanh_parts(c, &c_bottom)
        over = one / (o_bottom * c_bottom)
        o = o * (c_bottom * over)
        found[3 * SLICE + j], states[j] = o, o * (c * (o_bottom * over))
    for j in range(4):
        memcpy(gates + j * n, found + j * SLICE, SLICE * sizeof(real))
    memcpy(cell, cells, SLICE * sizeof(real))
    memcpy(out, states, SLICE * sizeof(real))


cdef void lstm_back_slice(const real* gates, Py_ssize_t n, const real* before, const real* cell, const real* dh, real* dc, real* dx) noexcept nogil:
    cdef real[4 * SLICE] found
    cdef real[SLICE] cells
    cdef real one = 1, i, f, g, o, t, d, s
    cdef Py_ssize_t j
    for j in range(SLICE):
        i, f, g, o, t = gates[j], gates[n + j], gates[2 * n + j], gates[3 * n + j], tanh_quotient(cell[j])
        s = dh[j] * o
        d = dc[j] + s * ((one - t) * (one + t))
        found[j] = d * g * (i * (one - i))
        found[SLICE + j] = d * before[j] * (f * (one - f))
        found[2 * SLICE + j] = d * i * ((one - g) * (one + g))
        found[3 * SLICE + j] = s * t * (one - o)
        cells[j] = d * f
    for j in range(4):
        memcpy(dx + j * n, found + j * SLICE, SLICE * sizeof(real))
    memcpy(dc, cells, SLICE * sizeof(real))


cdef void gru_slice(const real* x, real* gates, Py_ssize_t n, const real* b, const real* before, real* out) noexcept nogil:
    cdef real[4 * SLICE] found
    cdef real[SLICE] states
    cdef real one = 1, r, z, m, c, r_bottom, z_bottom, over
    cdef Py_ssize_t j
    for j in range(SLICE):
        r = sigmoid_parts(gates[j] + (x[j] + b[j]), &r_bottom)
        z = sigmoid_parts(gates[n + j] + (x[n + j] + b[n + j]), &z_bottom)
        m = gates[2 * n + j] + b[2 * n + j]
        over = one / (r_bottom * z_bottom)
        r, z = r * (z_bottom * over), z * (r_bottom * over)
        c = tanh_quotient(x[2 * n + j] + r * m)
        found[j], found[SLICE + j], found[2 * SLICE + j], found[3 * SLICE + j] = r, z, m, c
        states[j] = c + z * (before[j] - c)
    for j in range(4):
        memcpy(gates + j * n, found + j * SLICE, SLICE * sizeof(real))
    memcpy(out, states, SLICE * sizeof(real))


cdef void gru_back_slice(const real* gates, Py_ssize_t n, const real* before, real* dh, real* dx, real* dr) noexcept nogil:
    cdef real[4 * SLICE] found
    cdef real[SLICE] states
    cdef real one = 1, r, z, m, c, d
    cdef Py_ssize_t j
    for j in range(SLICE):
        r, z, m, c = gates[j], gates[n + j], gates[2 * n + j], gates[3 * n + j]
        d = dh[j] * (one - z) * ((one - c) * (one + c))
        found[j] = d * m * (r * (one - r))
        found[SLICE + j] = dh[j] * (before[j] - c) * (z * (one - z))
        found[2 * SLICE + j] = d
        found[3 * SLICE + j] = d * r
        states[j] = dh[j] * z
    for j in range(3):
        memcpy(dx + j * n, found + j * SLICE, SLICE * sizeof(real))
        memcpy(dr + j * n, found + (j if j < 2 else 3) * SLICE, SLICE * sizeof(real))
    memcpy(dh, states, SLICE * sizeof(real))


# ---- rows: whole slices where they lie, the rest in slices of its own ----

cdef inline void copy_parts(real* target, Py_ssize_t target_row, const real* source, Py_ssize_t source_row, Py_ssize_t parts,
                            Py_ssize_t width) noexcept nogil:
    copy_rows(<char*> target, target_row * sizeof(real), <const char*> source, source_row * sizeof(real), parts, width * sizeof(real))


cdef void lstm_rows(Py_ssize_t rows, Py_ssize_t n, const real* x, real* gates, const real* before, real* cells, real* out) noexcept nogil:
    cdef real[11 * SLICE] rest          # 4 of x, 4 gates, before, cell, out
    cdef Py_ssize_t row, i, start, width = n % SLICE
    memset(rest, 0, sizeof(rest))
    for row in range(rows):
        for i in range(n // SLICE):
            start = i * SLICE
            lstm_slice(x + start, gates + start, n, before + start, cells + start, out + start)
        if width:
            start = n - width
            copy_parts(rest, SLICE, x + start, n, 4, width)
            copy_parts(rest + 4 * SLICE, SLICE, gates + start, n, 4, width)
            copy_parts(rest + 8 * SLICE, SLICE, before + start, n, 1, width)
            lstm_slice(<const real*> rest, rest + 4 * SLICE, SLICE, <const real*> rest + 8 * SLICE, rest + 9 * SLICE, rest + 10 * SLICE)
            copy_parts(gates + start, n, <const real*> rest + 4 * SLICE, SLICE, 4, width)
            copy_parts(cells + start, n, <const real*> rest + 9 * SLICE, SLICE, 1, width)
            copy_parts(out + start, n, <const real*> rest + 10 * SLICE, SLICE, 1, width)
        x, gates, before, cells, out = x + 4 * n, gates + 4 * n, before + n, cells + n, out + n


cdef void lstm_back_rows(Py_ssize_t rows, Py_ssize_t n, const real* gates, const real* before, const real* cells, const real* dh, real* dc,
                         real* dx) noexcept nogil:
    cdef real[12 * SLICE] rest          # 4 gates, before, cell, dh, dc, 4 of dx
    cdef Py_ssize_t row, i, start, width = n % SLICE
    memset(rest, 0, sizeof(rest))
    for row in range(rows):
        for i in range(n // SLICE):
            start = i * SLICE
            lstm_back_slice(gates + start, n, before + start, cells + start, dh + start, dc + start, dx + start)
        if width:
            start = n - width
            copy_parts(rest, SLICE, gates + start, n, 4, width)
            copy_parts(rest + 4 * SLICE, SLICE, before + start, n, 1, width)
            copy_parts(rest + 5 * SLICE, SLICE, cells + start, n, 1, width)
            copy_parts(rest + 6 * SLICE, SLICE, dh + start, n, 1, width)
            copy_parts(rest + 7 * SLICE, SLICE, <const real*> dc + start, n, 1, width)
            lstm_back_slice(<const real*> rest, SLICE, <const real*> rest + 4 * SLICE, <const real*> rest + 5 * SLICE,
                            <const real*> rest + 6 * SLICE, rest + 7 * SLICE, rest + 8 * SLICE)
            copy_parts(dc + start, n, <const real*> rest + 7 * SLICE, SLICE, 1, width)
            copy_parts(dx + start, n, <const real*> rest + 8 * SLICE, SLICE, 4, width)
        gates, before, cells, dh, dc, dx = gates + 4 * n, before + n, cells + n, dh + n, dc + n, dx + 4 * n


cdef void gru_rows(Py_ssize_t rows, Py_ssize_t n, const real* x, real* gates, const real* b, const real* before, real* out) noexcept nogil:
    cdef real[12 * SLICE] rest          # 3 of x, 4 gates, 3 of b, before, out
    cdef Py_ssize_t row, i, start, width = n % SLICE
    memset(rest, 0, sizeof(rest))
    copy_parts(rest + 7 * SLICE, SLICE, b + n - width, n, 3, width)
    for row in range(rows):
        for i in range(n // SLICE):
            start = i * SLICE
            gru_slice(x + start, gates + start, n, b + start, before + start, out + start)
        if width:
            start = n - width
            copy_parts(rest, SLICE, x + start, n, 3, width)
            copy_parts(rest + 3 * SLICE, SLICE, gates + start, n, 3, width)
            copy_parts(rest + 10 * SLICE, SLICE, before + start, n, 1, width)
            gru_slice(<const real*> rest, rest + 3 * SLICE, SLICE, <const real*> rest + 7 * SLICE, <const real*> rest + 10 * SLICE, rest + 11 * SLICE)
            copy_parts(gates + start, n, <const real*> rest + 3 * SLICE, SLICE, 4, width)
            copy_parts(out + start, n, <const real*> rest + 11 * SLICE, SLICE, 1, width)
        x, gates, before, out = x + 3 * n, gates + 4 * n, before + n, out + n


cdef void gru_back_rows(Py_ssize_t rows, Py_ssize_t n, const real* gates, const real* before, real* dh, real* dx, real* dr) noexcept nogil:
    cdef real[12 * SLICE] rest          # 4 gates, before, dh, 3 of dx, 3 of dr
    cdef Py_ssize_t row, i, start, width = n % SLICE
    memset(rest, 0, sizeof(rest))
    for row in range(rows):
        for i in range(n // SLICE):
            start = i * SLICE
            gru_back_slice(gates + start, n, before + start, dh + start, dx + start, dr + start)
        if width:
            start = n - width
            copy_parts(rest, SLICE, gates + start, n, 4, width)
            copy_parts(rest + 4 * SLICE, SLICE, before + start, n, 1, width)
            copy_parts(rest + 5 * SLICE, SLICE, <const real*> dh + start, n, 1, width)
            gru_back_slice(<const real*> rest, SLICE, <const real*> rest + 4 * SLICE, rest + 5 * SLICE, rest + 6 * SLICE, rest + 9 * SLICE)
            copy_parts(dh + start, n, <const real*> rest + 5 * SLICE, SLICE, 1, width)
            copy_parts(dx + start, n, <const real*> rest + 6 * SLICE, SLICE, 3, width)
            copy_parts(dr + start, n, <const real*> rest + 9 * SLICE, SLICE, 3, width)
        gates, before, dh, dx, dr = gates + 4 * n, before + n, dh + n, dx + 3 * n, dr + 3 * n


cdef void register_gates(KernelTable* kernels) noexcept nogil:
    kernels.gates.lstm[0] = <lstm_forward_t> lstm_rows[float]
    kernels.gates.lstm[1] = <lstm_forward_t> lstm_rows[double]
    kernels.gates.lstm_back[0] = <lstm_backward_t> lstm_back_rows[float]
    kernels.gates.lstm_back[1] = <lstm_backward_t> lstm_back_rows[double]
    kernels.gates.gru[0] = <gru_forward_t> gru_rows[float]
    kernels.gates.gru[1] = <gru_forward_t> gru_rows[double]
    kernels.gates.gru_back[0] = <gru_backward_t> gru_back_rows[float]
    kernels.gates.gru_back[1] = <gru_backward_t> gru_back_rows[double]
