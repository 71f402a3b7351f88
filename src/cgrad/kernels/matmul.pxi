# Products of small matrices, register tiles of vectors, for float32 and float64; and matrix-vector products of any size.
#
# Included by the ISA shells after reduce.pxi; called through MatmulTable by blas.pyx, which owns the choice between this and
# BLAS, and by conv.pyx.  Strides here are in BYTES and may be anything.  noexcept, nogil, no allocation (a panel of 48 kB lives on the stack).
#
# A tile is TILE_ROWS x 3 vectors: 12 accumulators, 3 vectors of y and one broadcast element of x fill the 16 registers of AVX2
# (70 GFLOP/s for 64 x 64 in L1 there, 150 with AVX-512).  Arrays of vectors stay in registers under gcc and clang; arrays of plain
# floats do not: gcc unrolls loops of up to 16 before it vectorises (2 GFLOP/s).  A compiler without vector types gets vectors of one.

from libc.string cimport memcpy
from cgrad.kernels.table cimport matrix_vector_t

cdef extern from *:
    """
    #if defined(__GNUC__)
      #if defined(__AVX512F__)
        #define CGRAD_VECTOR 64
      #elif defined(__AVX__)
        #define CGRAD_VECTOR 32
      #else
        #define CGRAD_VECTOR 16
      #endif
      typedef float cgrad_float_v __attribute__((vector_size(CGRAD_VECTOR), aligned(4), may_alias));
      typedef double cgrad_double_v __attribute__((vector_size(CGRAD_VECTOR), aligned(8), may_alias));
      #define CGRAD_SPLAT(type, value) ((value) - (type){0})
      #define CGRAD_ZERO(type) ((type){0})
    #else
      typedef float cgrad_float_v;
      typedef double cgrad_double_v;
      #define CGRAD_SPLAT(type, value) (value)
      #define CGRAD_ZERO(type) ((type)0)
    #endif
    #define cgrad_splat_float(value) CGRAD_SPLAT(cgrad_float_v, value)
    #define cgrad_splat_double(value) CGRAD_SPLAT(cgrad_double_v, value)
    #define cgrad_zero_float() CGRAD_ZERO(cgrad_float_v)
    #define cgrad_zero_double() CGRAD_ZERO(cgrad_double_v)
    """
    ctypedef float float_v "cgrad_float_v"
    ctypedef double double_v "cgrad_double_v"
    float_v splat_float "cgrad_splat_float" (float value) noexcept nogil
    double_v splat_double "cgrad_splat_double" (double value) noexcept nogil
    float_v zero_float "cgrad_zero_float" () noexcept nogil
    double_v zero_double "cgrad_zero_double" () noexcept nogil

ctypedef fused vector:
    float_v
    double_v

cdef enum:
    TILE_ROWS = 4
    TALL_ROWS = 8               # where a tile is one vector wide: eight sums hide the latency of an FMA
    TILE_VECTORS = 3
    PANEL_DEPTH = 256           # rows of y in a packed panel: 256 x 3 vectors are 48 kB with AVX-512
    FEW_COLUMNS = 4             # results so narrow that most of a vector would be padding ...
    LONG_DOT = 64               # ... are made of dot products where both operands lie along k
    VECTOR_TILE = 512           # results of a matrix-vector product that are summed side by side
    DOT_LANES = 32


cdef inline Py_ssize_t element_size(vector like) noexcept nogil:
    return sizeof(float) if vector is float_v else sizeof(double)


cdef inline vector splat(const char* p, vector like) noexcept nogil:
    if vector is float_v:
        return splat_float((<const float*> p)[0])
    else:
        return splat_double((<const double*> p)[0])


cdef inline vector zero(vector like) noexcept nogil:
    if vector is float_v:
        return zero_float()
    else:
        return zero_double()


cdef inline void product_tile(int rows, int vectors, Py_ssize_t k, const char* x, Py_ssize_t x_row, Py_ssize_t x_column,
                              const char* y, Py_ssize_t y_row, char* out, Py_ssize_t out_row, bint more, vector like) noexcept nogil:
    """rows x vectors of the result; `more` adds to what is there.  Inlined with constant rows and vectors, hence fully unrolled."""
    cdef vector[TILE_ROWS * TILE_VECTORS] total
    cdef vector[TILE_VECTORS] b
    cdef vector a
    cdef Py_ssize_t p
    cdef int i, j
    for i in range(rows):
        for j in range(vectors):
            total[i * vectors + j] = (<const vector*> (out + i * out_row))[j] if more else zero(like)
    for p in range(k):
        for j in range(vectors):
            b[j] = (<const vector*> y)[j]
        for i in range(rows):
            a = splat(x + i * x_row, like)
            for j in range(vectors):
                total[i * vectors + j] = total[i * vectors + j] + a * b[j]
        x += x_column
        y += y_row
    for i in range(rows):
        for j in range(vectors):
            (<vector*> (out + i * out_row))[j] = total[i * vectors + j]


cdef inline void product_strip(int vectors, Py_ssize_t m, Py_ssize_t k, const char* x, Py_ssize_t x_row, Py_ssize_t x_column,
                               const char* y, Py_ssize_t y_row, char* out, Py_ssize_t out_row, bint more, vector like) noexcept nogil:
    """All m rows of a strip `vectors` wide."""
    if vectors == 1:
        while m >= TALL_ROWS:
            product_tile(TALL_ROWS, 1, k, x, x_row, x_column, y, y_row, out, out_row, more, like)
            x += TALL_ROWS * x_row
            out += TALL_ROWS * out_row
            m -= TALL_ROWS
    while m >= TILE_ROWS:
        product_tile(TILE_ROWS, vectors, k, x, x_row, x_column, y, y_row, out, out_row, more, like)
        x += TILE_ROWS * x_row
        out += TILE_ROWS * out_row
        m -= TILE_ROWS
    if m == 3:
        product_tile(3, vectors, k, x, x_row, x_column, y, y_row, out, out_row, more, like)
    elif m == 2:
        product_tile(2, vectors, k, x, x_row, x_column, y, y_row, out, out_row, more, like)
    elif m == 1:
        product_tile(1, vectors, k, x, x_row, x_column, y, y_row, out, out_row, more, like)


cdef void strip_1(Py_ssize_t m, Py_ssize_t k, const char* x, Py_ssize_t x_row, Py_ssize_t x_column, const char* y, Py_ssize_t y_row,
                  char* out, Py_ssize_t out_row, bint more, vector like) noexcept nogil:
    product_strip(1, m, k, x, x_row, x_column, y, y_row, out, out_row, more, like)

cdef void strip_2(Py_ssize_t m, Py_ssize_t k, const char* x, Py_ssize_t x_row, Py_ssize_t x_column, const char* y, Py_ssize_t y_row,
                  char* out, Py_ssize_t out_row, bint more, vector like) noexcept nogil:
    product_strip(2, m, k, x, x_row, x_column, y, y_row, out, out_row, more, like)

cdef void strip_3(Py_ssize_t m, Py_ssize_t k, const char* x, Py_ssize_t x_row, Py_ssize_t x_column, const char* y, Py_ssize_t y_row,
                  char* out, Py_ssize_t out_row, bint more, vector like) noexcept nogil:
    product_strip(3, m, k, x, x_row, x_column, y, y_row, out, out_row, more, like)


cdef inline void pack_panel(real* panel, Py_ssize_t width, Py_ssize_t used, Py_ssize_t k, const char* y, Py_ssize_t y_row,
                            Py_ssize_t y_column) noexcept nogil:
    """panel[p, j] = y[p, j] for j < used, 0 beyond."""
    cdef Py_ssize_t p, j
    cdef const char* row
    if y_column == sizeof(real):
        for p in range(k):
            for j in range(used):
                panel[p * width + j] = (<const real*> (y + p * y_row))[j]
            for j in range(used, width):
                panel[p * width + j] = 0
        return
    for j in range(used):                   # y transposed: read along its rows in memory
        row = y + j * y_column
        for p in range(k):
            panel[p * width + j] = (<const real*> (row + p * y_row))[0]
    for j in range(used, width):
        for p in range(k):
            panel[p * width + j] = 0


cdef inline real dot_row(const real* x, const real* y, Py_ssize_t n) noexcept nogil:
    cdef real lanes[DOT_LANES]
    cdef real total = 0
    cdef Py_ssize_t i = 0, j
    if n >= DOT_LANES:
        for j in range(DOT_LANES):
            lanes[j] = x[j] * y[j]
        i = DOT_LANES
        while i + DOT_LANES <= n:
            for j in range(DOT_LANES):
                lanes[j] = lanes[j] + x[i + j] * y[i + j]
            i += DOT_LANES
        for j in range(16):
            lanes[j] = lanes[j] + lanes[j + 16]
        for j in range(8):
            lanes[j] = lanes[j] + lanes[j + 8]
        for j in range(4):
            lanes[j] = lanes[j] + lanes[j + 4]
        total = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
    while i < n:
        total = total + x[i] * y[i]
        i += 1
    return total


cdef inline void product_dots(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* x, Py_ssize_t x_row, const char* y, Py_ssize_t y_column,
                              char* out, Py_ssize_t out_row, bint more, vector like) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef float* floats
    cdef double* doubles
    for i in range(m):
        for j in range(n):
            if vector is float_v:
                floats = <float*> (out + i * out_row)
                floats[j] = dot_row(<const float*> (x + i * x_row), <const float*> (y + j * y_column), k) + (floats[j] if more else 0)
            else:
                doubles = <double*> (out + i * out_row)
                doubles[j] = dot_row(<const double*> (x + i * x_row), <const double*> (y + j * y_column), k) + (doubles[j] if more else 0)


cdef inline void copy_rows(char* target, Py_ssize_t target_row, const char* source, Py_ssize_t source_row, Py_ssize_t rows,
                           Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(rows):
        memcpy(target + i * target_row, source + i * source_row, size)


cdef void run_strip(int vectors, Py_ssize_t used, Py_ssize_t m, Py_ssize_t k, const char* x, Py_ssize_t x_row, Py_ssize_t x_column,
                    const char* y, Py_ssize_t y_row, char* out, Py_ssize_t out_row, bint more, vector like) noexcept nogil:
    """A strip of the result that is `vectors` wide, of which `used` bytes of each row are stored (less than all for one vector only)."""
    cdef vector[TALL_ROWS] edge
    cdef Py_ssize_t i = 0, rows
    if used < <Py_ssize_t> sizeof(vector):           # the right edge: through a buffer with whole vectors
        while i < m:
            rows = min(m - i, <Py_ssize_t> TALL_ROWS)
            if more:
                copy_rows(<char*> edge, sizeof(vector), out + i * out_row, out_row, rows, used)
            strip_1(rows, k, x + i * x_row, x_row, x_column, y, y_row, <char*> edge, sizeof(vector), more, like)
            copy_rows(out + i * out_row, out_row, <const char*> edge, sizeof(vector), rows, used)
            i += rows
    elif vectors == 3:
        strip_3(m, k, x, x_row, x_column, y, y_row, out, out_row, more, like)
    elif vectors == 2:
        strip_2(m, k, x, x_row, x_column, y, y_row, out, out_row, more, like)
    else:
        strip_1(m, k, x, x_row, x_column, y, y_row, out, out_row, more, like)


cdef void product_small(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* x, Py_ssize_t x_row, Py_ssize_t x_column,
                        const char* y, Py_ssize_t y_row, Py_ssize_t y_column, char* out, Py_ssize_t out_row, bint more,
                        vector like) noexcept nogil:
    """out (m, n) = x (m, k) @ y (k, n), added to what is there if `more`; all extents at least 1, the rows of out contiguous."""
    cdef vector[PANEL_DEPTH * TILE_VECTORS] panel
    cdef Py_ssize_t size = element_size(like), lanes = sizeof(vector) // size
    cdef Py_ssize_t start, depth, column = 0, step, last
    cdef int vectors
    cdef const char* strip
    cdef char* target
    if n <= FEW_COLUMNS and k >= LONG_DOT and x_column == size and y_row == size:
        product_dots(m, n, k, x, x_row, y, y_column, out, out_row, more, like)
        return
    while column < n:
        vectors = <int> min((n - column + lanes - 1) // lanes, <Py_ssize_t> TILE_VECTORS)
        if column + vectors * lanes > n and vectors > 1:
            vectors -= 1                    # whole vectors first: only the last strip has an edge
        step = min(vectors * lanes, n - column)
        strip = y + column * y_column
        target = out + column * size
        start = 0                           # rows of y that can be read where they are: all of them, or at the edge those
        if y_column == size:                # from which a whole vector does not reach beyond the last element of y
            if step >= lanes:
                start = k
            elif y_row > 0 and m <= 2 * k:          # else a second pass over the result costs more than packing
                last = (k - 1) * y_row + (step - lanes) * size
                start = last // y_row + 1 if last >= 0 else 0
            if start:
                run_strip(vectors, step * size, m, start, x, x_row, x_column, strip, y_row, target, out_row, more, like)
        while start < k:
            depth = min(k - start, <Py_ssize_t> PANEL_DEPTH)
            if vector is float_v:
                pack_panel(<float*> panel, vectors * lanes, step, depth, strip + start * y_row, y_row, y_column)
            else:
                pack_panel(<double*> panel, vectors * lanes, step, depth, strip + start * y_row, y_row, y_column)
            run_strip(vectors, step * size, m, depth, x + start * x_column, x_row, x_column, <const char*> panel, vectors * lanes * size,
                      target, out_row, more or start > 0, like)
            start += depth
        column += step


# ---- matrix times vector ---------------------------------------------------------------------------------------------------------

cdef inline real dot_strided(const char* x, Py_ssize_t x_step, const real* y, Py_ssize_t n) noexcept nogil:
    cdef real lanes[4]
    cdef Py_ssize_t i = 0, j
    for j in range(4):
        lanes[j] = 0
    while i + 4 <= n:
        for j in range(4):
            lanes[j] = lanes[j] + (<const real*> (x + (i + j) * x_step))[0] * y[i + j]
        i += 4
    while i < n:
        lanes[0] = lanes[0] + (<const real*> (x + i * x_step))[0] * y[i]
        i += 1
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])


cdef inline void add_columns(const char* x, Py_ssize_t x_column, Py_ssize_t k, const real* y, Py_ssize_t n, real* total) noexcept nogil:
    """total[i] += x[i, p] * y[p] for unit stride along i; four columns at a time to save traffic to `total`."""
    cdef Py_ssize_t p = 0, i
    cdef const real* x0
    cdef const real* x1
    cdef const real* x2
    cdef const real* x3
    while p + 4 <= k:
        x0 = <const real*> (x + p * x_column)
        x1 = <const real*> (x + (p + 1) * x_column)
        x2 = <const real*> (x + (p + 2) * x_column)
        x3 = <const real*> (x + (p + 3) * x_column)
        for i in range(n):
            total[i] = total[i] + ((x0[i] * y[p] + x1[i] * y[p + 1]) + (x2[i] * y[p + 2] + x3[i] * y[p + 3]))
        p += 4
    while p < k:
        x0 = <const real*> (x + p * x_column)
        for i in range(n):
            total[i] = total[i] + x0[i] * y[p]
        p += 1


cdef void product_vector(Py_ssize_t m, Py_ssize_t k, const char* x, Py_ssize_t x_row, Py_ssize_t x_column, const real* y, real* out) noexcept nogil:
    """out[i] = sum over p of x[i, p] * y[p]; y and out contiguous.  The order of the sum does not depend on where a caller cuts m."""
    cdef real total[VECTOR_TILE]
    cdef Py_ssize_t i, j, n
    if x_column == sizeof(real):
        for i in range(m):
            out[i] = dot_row(<const real*> (x + i * x_row), y, k)
    elif x_row == sizeof(real):
        i = 0
        while i < m:
            n = min(m - i, <Py_ssize_t> VECTOR_TILE)
            for j in range(n):
                total[j] = 0
            add_columns(x + i * sizeof(real), x_column, k, y, n, total)
            for j in range(n):
                out[i + j] = total[j]
            i += n
    else:
        for i in range(m):
            out[i] = dot_strided(x + i * x_row, x_column, y, k)


cdef void product_small_float(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* x, Py_ssize_t x_row, Py_ssize_t x_column,
                              const char* y, Py_ssize_t y_row, Py_ssize_t y_column, char* out,
                              Py_ssize_t out_row, bint more) noexcept nogil:
    product_small(m, n, k, x, x_row, x_column, y, y_row, y_column, out, out_row, more, zero_float())

cdef void product_small_double(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* x, Py_ssize_t x_row, Py_ssize_t x_column,
                               const char* y, Py_ssize_t y_row, Py_ssize_t y_column, char* out,
                               Py_ssize_t out_row, bint more) noexcept nogil:
    product_small(m, n, k, x, x_row, x_column, y, y_row, y_column, out, out_row, more, zero_double())


cdef void register_matmul(KernelTable* kernels) noexcept nogil:
    kernels.matmul.small[0] = product_small_float
    kernels.matmul.small[1] = product_small_double
    kernels.matmul.vector[0] = <matrix_vector_t> product_vector[float]
    kernels.matmul.vector[1] = <matrix_vector_t> product_vector[double]
