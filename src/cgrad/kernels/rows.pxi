# Functions of whole rows: softmax, log_softmax, their backward passes, logsumexp; exp with its sum, of which attention is made; sums of
# rows of a table.
#
# Included by the ISA shells after transcendental.pxi (exp), reduce.pxi (maxima and sums) and matmul.pxi (vectors); rows.pyx walks the rows and hands over
# contiguous ones.  Every function makes two or three passes over a row that the first one has brought into L1.  The largest element
# is subtracted before exp, sums are taken in float64.  A row that contains NaN or +inf, or nothing but -inf, gives NaN (logsumexp
# gives NaN, +inf and -inf), as exp(x) / sum(exp(x)) would.

from cgrad.kernels.table cimport LOG_SOFTMAX, LOG_SOFTMAX_BACKWARD, SOFTMAX, SOFTMAX_BACKWARD, row_exp_t, row_fold_t, row_map_t

cdef enum:
    EXP_BLOCK = 256         # exponentials that are only summed go through a block of this size
    BAG_VECTORS = 4         # of a sum of rows that are made at a time
    AHEAD = 8               # rows of a bag that are asked for before they are added: the next ones lie anywhere


cdef inline double sum_of_exp(const real* x, Py_ssize_t n, real shift) noexcept nogil:
    """sum(exp(x - shift))"""
    cdef real block[EXP_BLOCK]
    cdef double total = 0
    cdef Py_ssize_t i = 0, j, size
    while i < n:
        size = min(n - i, <Py_ssize_t> EXP_BLOCK)
        for j in range(size):
            block[j] = exp_(x[i + j] - shift)
        total += real_row(<const real*> block, 1, size, False)
        i += size
    return total


cdef inline double rows_dot(const real* x, const real* y, Py_ssize_t n) noexcept nogil:
    """sum(x * y), as real_row sums."""
    cdef double lanes[SUM_LANES]
    cdef double total
    cdef Py_ssize_t i = 0, j
    for j in range(SUM_LANES):
        lanes[j] = 0
    while i + SUM_LANES <= n:
        for j in range(<Py_ssize_t> (SUM_LANES * sizeof(real) // LINE)):
            fetch_ahead(<const char*> (x + i) + j * LINE)
            fetch_ahead(<const char*> (y + i) + j * LINE)
        for j in range(SUM_LANES):
            lanes[j] = lanes[j] + <double> (x[i + j] * y[i + j])
        i += SUM_LANES
    total = real_row(<const double*> lanes, 1, SUM_LANES, False)
    while i < n:
        total += <double> (x[i] * y[i])
        i += 1
    return total


cdef double rows_exp(const real* x, real* out, Py_ssize_t n, double scale, double shift) noexcept nogil:
    """out = exp(x * scale - shift), and its sum"""
    cdef real a = <real> scale, b = <real> shift
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = exp_(x[i] * a - b)
    return real_row(<const real*> out, 1, n, False)


cdef void rows_softmax(const real* x, const real* unused, real* out, Py_ssize_t n) noexcept nogil:
    cdef real scale = <real> (1 / rows_exp(x, out, n, 1.0, extreme_row(x, 1, n, x[0], True)))
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = out[i] * scale         # a vector of divisions costs as much as the exponential


cdef void rows_log_softmax(const real* x, const real* unused, real* out, Py_ssize_t n) noexcept nogil:
    cdef real largest = extreme_row(x, 1, n, x[0], True)
    cdef real log_total = <real> libm.log(sum_of_exp(x, n, largest))
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = (x[i] - largest) - log_total      # in this order: exact for large common offsets


cdef void rows_softmax_backward(const real* g, const real* y, real* out, Py_ssize_t n) noexcept nogil:
    """y * (g - sum(g * y))"""
    cdef real total = <real> rows_dot(g, y, n)
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = y[i] * (g[i] - total)


cdef void rows_log_softmax_backward(const real* g, const real* y, real* out, Py_ssize_t n) noexcept nogil:
    """g - exp(y) * sum(g)"""
    cdef real total = <real> real_row(g, 1, n, False)
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = g[i] - exp_(y[i]) * total


cdef void rows_logsumexp(const real* x, Py_ssize_t n, real* out) noexcept nogil:
    cdef real largest = extreme_row(x, 1, n, x[0], True)
    if libm.isfinite(largest):
        out[0] = <real> (<double> largest + libm.log(sum_of_exp(x, n, largest)))
    else:
        out[0] = largest


cdef inline void bag_strip(int vectors, const char* table, Py_ssize_t stride, const int64_t* index, Py_ssize_t n, Py_ssize_t known,
                           Py_ssize_t fetched, const char* factor, int64_t skipped, char* out, vector like) noexcept nogil:
    """So many vectors of the sum, in registers; `fetched` bytes of each row are asked for ahead."""
    cdef vector[BAG_VECTORS] total
    cdef vector scale
    cdef const char* row
    cdef Py_ssize_t i, k
    cdef int j
    for j in range(vectors):
        total[j] = zero(like)
    for i in range(n):
        if index[i] == skipped:
            continue
        row = table + index[i] * stride
        if i + AHEAD < known:
            for k in range((fetched + LINE - 1) // LINE):
                fetch(table + index[i + AHEAD] * stride + k * LINE)
        if factor == NULL:
            for j in range(vectors):
                total[j] = total[j] + (<const vector*> row)[j]
        else:
            scale = splat(factor + i * element_size(like), like)
            for j in range(vectors):
                total[j] = total[j] + scale * (<const vector*> row)[j]
    for j in range(vectors):
        (<vector*> out)[j] = total[j]


cdef inline void bag_element(const real* column, Py_ssize_t stride, const int64_t* index, Py_ssize_t n, const real* factor, int64_t skipped,
                             real* out) noexcept nogil:
    cdef real total = 0, x
    cdef Py_ssize_t i
    for i in range(n):
        if index[i] != skipped:
            x = (<const real*> (<const char*> column + index[i] * stride))[0]
            total = total + (x if factor == NULL else x * factor[i])
    out[0] = total


cdef void rows_bag(const char* table, Py_ssize_t stride, const int64_t* index, Py_ssize_t n, Py_ssize_t known, Py_ssize_t width,
                   const char* factor, int64_t skipped, char* out, vector like) noexcept nogil:
    cdef Py_ssize_t size = element_size(like), lanes = <Py_ssize_t> sizeof(vector) // size, column = 0
    while column + BAG_VECTORS * lanes <= width:
        bag_strip(BAG_VECTORS, table + column * size, stride, index, n, known, 0 if column else width * size, factor, skipped,
                  out + column * size, like)
        column += BAG_VECTORS * lanes
    while column < width and width >= lanes:
        column = min(column, width - lanes)          # the last vector may repeat some of the one before
        bag_strip(1, table + column * size, stride, index, n, known, 0 if column else width * size, factor, skipped, out + column * size, like)
        column += lanes
    while column < width:
        if vector is float_v:
            bag_element(<const float*> table + column, stride, index, n, <const float*> factor, skipped, <float*> out + column)
        else:
            bag_element(<const double*> table + column, stride, index, n, <const double*> factor, skipped, <double*> out + column)
        column += 1


cdef void rows_bag_float(const char* table, Py_ssize_t stride, const int64_t* index, Py_ssize_t n, Py_ssize_t known, Py_ssize_t width,
                         const char* factor, int64_t skipped, char* out) noexcept nogil:
    rows_bag(table, stride, index, n, known, width, factor, skipped, out, zero_float())

cdef void rows_bag_double(const char* table, Py_ssize_t stride, const int64_t* index, Py_ssize_t n, Py_ssize_t known, Py_ssize_t width,
                          const char* factor, int64_t skipped, char* out) noexcept nogil:
    rows_bag(table, stride, index, n, known, width, factor, skipped, out, zero_double())


cdef void register_rows(KernelTable* kernels) noexcept nogil:
    kernels.rows.maps[<int> SOFTMAX][0] = <row_map_t> rows_softmax[float]
    kernels.rows.maps[<int> SOFTMAX][1] = <row_map_t> rows_softmax[double]
    kernels.rows.maps[<int> LOG_SOFTMAX][0] = <row_map_t> rows_log_softmax[float]
    kernels.rows.maps[<int> LOG_SOFTMAX][1] = <row_map_t> rows_log_softmax[double]
    kernels.rows.maps[<int> SOFTMAX_BACKWARD][0] = <row_map_t> rows_softmax_backward[float]
    kernels.rows.maps[<int> SOFTMAX_BACKWARD][1] = <row_map_t> rows_softmax_backward[double]
    kernels.rows.maps[<int> LOG_SOFTMAX_BACKWARD][0] = <row_map_t> rows_log_softmax_backward[float]
    kernels.rows.maps[<int> LOG_SOFTMAX_BACKWARD][1] = <row_map_t> rows_log_softmax_backward[double]
    kernels.rows.exp[0] = <row_exp_t> rows_exp[float]
    kernels.rows.exp[1] = <row_exp_t> rows_exp[double]
    kernels.rows.logsumexp[0] = <row_fold_t> rows_logsumexp[float]
    kernels.rows.logsumexp[1] = <row_fold_t> rows_logsumexp[double]
    kernels.rows.bag[0] = rows_bag_float
    kernels.rows.bag[1] = rows_bag_double
