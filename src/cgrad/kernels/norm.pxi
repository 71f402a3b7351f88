# Rows set to a mean of 0 and a variance of 1 (layer_norm), or to a mean square of 1 (rms_norm): forward and backward.  Behind them the
# parts of batch_norm, group_norm and instance_norm, whose moments are taken over several runs of memory.
#
# Included by the ISA shells after reduce.pxi (sums of rows); norm.pyx hands over blocks of contiguous rows.  A row is fetched from
# memory once: the further passes over it find it in L1.  Backward computes the moments again, which costs less than keeping them.
# Sums along a row run in NORM_LANES accumulators of the row's dtype and are carried over into float64 after NORM_BLOCK elements.

from cgrad.kernels.table cimport (
    MAX_COLUMNS, column_apply_t, column_products_t, column_slope_t, column_spread_t, norm_backward_t, norm_forward_t, run_apply_t, run_products_t,
    run_slope_t, run_spread_t,
)

cdef extern from *:
    """
    /* The sum of 32 lanes.  Of loops gcc would unroll these before it vectorises, into 31 additions: a fifth of a row of 768. */
    #if defined(__GNUC__)
      #define CGRAD_LANES_OF(type, n) type __attribute__((vector_size(n * sizeof(type)), aligned(sizeof(type)), may_alias))
      #define CGRAD_SUM_LANES(type)                                                                     \
        static inline type cgrad_sum_##type(type* x) {                                                  \
          typedef CGRAD_LANES_OF(type, 16) lanes_16;                                                    \
          typedef CGRAD_LANES_OF(type, 8) lanes_8;                                                      \
          typedef CGRAD_LANES_OF(type, 4) lanes_4;                                                      \
          *(lanes_16*)x += *(lanes_16*)(x + 16);                                                        \
          *(lanes_8*)x += *(lanes_8*)(x + 8);                                                           \
          *(lanes_4*)x += *(lanes_4*)(x + 4);                                                           \
          return (x[0] + x[2]) + (x[1] + x[3]);                                                         \
        }
    #else
      #define CGRAD_SUM_LANES(type)                                                                     \
        static inline type cgrad_sum_##type(type* x) {                                                  \
          for (int half = 16; half > 2; half /= 2) for (int j = 0; j < half; j++) x[j] += x[j + half];  \
          return (x[0] + x[2]) + (x[1] + x[3]);                                                         \
        }
    #endif
    CGRAD_SUM_LANES(float)
    CGRAD_SUM_LANES(double)
    """
    float sum_floats "cgrad_sum_float"(float* x) noexcept nogil
    double sum_doubles "cgrad_sum_double"(double* x) noexcept nogil

cdef enum:
    NORM_LANES = 32
    NORM_BLOCK = 1024
    NORM_GROUP = 8          # rows that are summed in their own dtype before float64 takes over
    STRIP = 16              # vectors of SSE that NORM_LANES doubles are


cdef inline double sum_lanes(real* lanes) noexcept nogil:
    if real is float:
        return sum_floats(lanes)
    else:
        return sum_doubles(lanes)


cdef inline double rough_sum(const real* x, Py_ssize_t n) noexcept nogil:
    cdef real lanes[NORM_LANES]
    cdef double total = 0
    cdef Py_ssize_t i = 0, j, stop
    while i < n:
        stop = min(n, i + NORM_BLOCK)
        for j in range(NORM_LANES):
            lanes[j] = 0
        while i + NORM_LANES <= stop:
            for j in range(<Py_ssize_t> (NORM_LANES * sizeof(real) // LINE)):
                fetch_ahead(<const char*> (x + i) + j * LINE)
            for j in range(NORM_LANES):
                lanes[j] += x[i + j]
            i += NORM_LANES
        for j in range(stop - i):
            lanes[j] += x[i + j]
        i = stop
        total += sum_lanes(lanes)
    return total


cdef inline void deviations(const real* x, Py_ssize_t n, real middle, double* total, double* square) noexcept nogil:
    """sum(x - middle) and sum((x - middle)**2)"""
    cdef real sums[NORM_LANES]
    cdef real squares[NORM_LANES]
    cdef Py_ssize_t i = 0, j, stop
    cdef real d
    total[0] = square[0] = 0
    while i < n:
        stop = min(n, i + NORM_BLOCK)
        for j in range(NORM_LANES):
            sums[j] = squares[j] = 0
        while i + NORM_LANES <= stop:
            for j in range(NORM_LANES):
                d = x[i + j] - middle
                sums[j] += d
                squares[j] += d * d
            i += NORM_LANES
        for j in range(stop - i):
            d = x[i + j] - middle
            sums[j] += d
            squares[j] += d * d
        i = stop
        total[0] += sum_lanes(sums)
        square[0] += sum_lanes(squares)


cdef double wide_deviations(const float* x, Py_ssize_t n, double middle, double* total) noexcept nogil:
    """`deviations` in float64, for float32 rows whose squares overflow or vanish"""
    cdef double square = 0, d
    cdef Py_ssize_t i
    total[0] = 0
    for i in range(n):
        d = x[i] - middle
        total[0] += d
        square += d * d
    return square


cdef inline double row_variance(const real* x, Py_ssize_t n, bint centred, real* middle, double* rest) noexcept nogil:
    """The mean square deviation of a row from its mean middle + rest, a rounded value and what that lacks (0 and 0 if not centred)."""
    cdef double total, square
    middle[0] = <real> (rough_sum(x, n) / n) if centred else <real> 0
    deviations(x, n, middle[0], &total, &square)
    if real is float and not 1e-25 < square < 1e30:
        if centred:
            middle[0] = <real> (real_row(x, 1, n, False) / n)
        square = wide_deviations(x, n, middle[0], &total)
    rest[0] = total / n if centred else 0
    return square / n - rest[0] * rest[0]       # the corrected two-pass algorithm of Chan, Golub and LeVeque, 1983


cdef inline real row_moments(const real* x, Py_ssize_t n, double eps, bint centred, real* mean, real* rest) noexcept nogil:
    """1 / sqrt(variance + eps) of a row; mean + rest is its mean."""
    cdef double lack
    cdef double variance = row_variance(x, n, centred, mean, &lack)
    rest[0] = <real> lack
    return <real> (1.0 / libm.sqrt(variance + eps))


cdef void norm_forward(const real* x, const real* w, const real* b, real* out, Py_ssize_t rows, Py_ssize_t n, double eps,
                       bint centred) noexcept nogil:
    """(x - mean) / deviation * w + b"""
    cdef Py_ssize_t row, i
    cdef real mean, rest, scale
    for row in range(rows):
        scale = row_moments(x, n, eps, centred, &mean, &rest)
        for i in range(n):
            out[i] = ((x[i] - mean) - rest) * scale * w[i] + b[i]
        x += n
        out += n


cdef inline void row_products(const real* g, const real* x, const real* w, Py_ssize_t n, real mean, real rest, real scale,
                              double* total, double* product) noexcept nogil:
    """sum(v) and sum(v * y) with v = g * w and y the normalised row"""
    cdef real sums[NORM_LANES]
    cdef real products[NORM_LANES]
    cdef Py_ssize_t i = 0, j, stop
    cdef real v
    total[0] = product[0] = 0
    while i < n:
        stop = min(n, i + NORM_BLOCK)
        for j in range(NORM_LANES):
            sums[j] = products[j] = 0
        while i + NORM_LANES <= stop:
            for j in range(<Py_ssize_t> (NORM_LANES * sizeof(real) // LINE)):
                fetch_ahead(<const char*> (g + i) + j * LINE)
            for j in range(NORM_LANES):
                v = g[i + j] * w[i + j]
                sums[j] += v
                products[j] += v * (((x[i + j] - mean) - rest) * scale)
            i += NORM_LANES
        for j in range(stop - i):
            v = g[i + j] * w[i + j]
            sums[j] += v
            products[j] += v * (((x[i + j] - mean) - rest) * scale)
        i = stop
        total[0] += sum_lanes(sums)
        product[0] += sum_lanes(products)


cdef inline void row_gradient(const real* g, const real* x, const real* w, real* dx, Py_ssize_t n, real mean, real rest, real scale,
                              bint centred) noexcept nogil:
    """dx = (v - mean(v) - y * mean(v * y)) / deviation"""
    cdef double total, product
    cdef real middle, along
    cdef Py_ssize_t i
    row_products(g, x, w, n, mean, rest, scale, &total, &product)
    middle = <real> (total / n) if centred else <real> 0
    along = <real> (product / n)
    for i in range(n):
        dx[i] = (g[i] * w[i] - middle - ((x[i] - mean) - rest) * scale * along) * scale


cdef inline void strip_slopes(int vectors, const char* g, const char* x, Py_ssize_t rows, Py_ssize_t row_bytes, const char* mean, const char* rest,
                              const char* scale, char* slopes, char* shifts, vector like) noexcept nogil:
    """The sums of g * y and of g over a few rows, so many vectors wide, in registers."""
    cdef vector[STRIP] along
    cdef vector[STRIP] total
    cdef vector v
    cdef Py_ssize_t row, size = element_size(like)
    cdef int j
    for j in range(vectors):
        along[j] = total[j] = zero(like)
    for row in range(rows):
        for j in range(vectors):
            v = (<const vector*> g)[j]
            along[j] = along[j] + v * ((((<const vector*> x)[j] - splat(mean + row * size, like)) - splat(rest + row * size, like))
                                       * splat(scale + row * size, like))
            total[j] = total[j] + v
        g += row_bytes
        x += row_bytes
    for j in range(vectors):
        (<vector*> slopes)[j] = along[j]
        (<vector*> shifts)[j] = total[j]


cdef inline void add_rows(const real* g, const real* x, Py_ssize_t rows, Py_ssize_t n, const real* mean, const real* rest, const real* scale,
                          double* sums) noexcept nogil:
    """g * y and, n behind it, g of up to NORM_GROUP rows are added to `sums`"""
    cdef real slopes[NORM_LANES]
    cdef real shifts[NORM_LANES]
    cdef Py_ssize_t i = 0, j, row
    while i + NORM_LANES <= n:
        if real is float:
            strip_slopes(<int> (NORM_LANES * sizeof(float) // sizeof(float_v)), <const char*> (g + i), <const char*> (x + i), rows,
                         n * sizeof(float), <const char*> mean, <const char*> rest, <const char*> scale, <char*> slopes, <char*> shifts, zero_float())
        else:
            strip_slopes(<int> (NORM_LANES * sizeof(double) // sizeof(double_v)), <const char*> (g + i), <const char*> (x + i), rows,
                         n * sizeof(double), <const char*> mean, <const char*> rest, <const char*> scale, <char*> slopes, <char*> shifts, zero_double())
        for j in range(NORM_LANES):
            sums[i + j] += slopes[j]
        for j in range(NORM_LANES):
            sums[n + i + j] += shifts[j]
        i += NORM_LANES
    for j in range(n - i):
        slopes[j] = shifts[j] = 0
    for row in range(rows):
        for j in range(n - i):
            slopes[j] += g[row * n + i + j] * (((x[row * n + i + j] - mean[row]) - rest[row]) * scale[row])
            shifts[j] += g[row * n + i + j]
    for j in range(n - i):
        sums[i + j] += slopes[j]
        sums[n + i + j] += shifts[j]


cdef void norm_backward(const real* g, const real* x, const real* w, real* dx, double* sums, Py_ssize_t rows, Py_ssize_t n, double eps,
                        bint centred) noexcept nogil:
    """`row_gradient` of each row; g * y and, behind it, g are added to `sums`"""
    cdef Py_ssize_t start = 0, row, count
    cdef real mean[NORM_GROUP]
    cdef real rest[NORM_GROUP]
    cdef real scale[NORM_GROUP]
    while start < rows:
        count = min(rows - start, <Py_ssize_t> NORM_GROUP)
        for row in range(count):
            scale[row] = row_moments(x + row * n, n, eps, centred, &mean[row], &rest[row])
            if dx != NULL:
                row_gradient(g + row * n, x + row * n, w, dx, n, mean[row], rest[row], scale[row], centred)
                dx += n
        if sums != NULL:
            add_rows(g, x, count, n, <const real*> mean, <const real*> rest, <const real*> scale, sums)
        g += count * n
        x += count * n
        start += count


# ---- runs of one channel: all elements share mean, scale and shift ------------------------------------------------------------------

cdef double run_spread(const real* x, Py_ssize_t n, double* mean) noexcept nogil:
    """sum((x - mean)**2), and the mean"""
    cdef real middle
    cdef double rest
    cdef double variance = row_variance(x, n, True, &middle, &rest)
    mean[0] = middle + rest
    return variance * n


cdef void run_apply(const real* x, real* out, Py_ssize_t n, double mean, double scale, double shift) noexcept nogil:
    """(x - mean) * scale + shift"""
    cdef real middle = <real> mean, rest = <real> (mean - middle), a = <real> scale, b = <real> shift
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = ((x[i] - middle) - rest) * a + b


cdef void run_products(const real* g, const real* x, Py_ssize_t n, double mean, double* total, double* product) noexcept nogil:
    """sum(g) and sum(g * (x - mean))"""
    cdef real sums[NORM_LANES]
    cdef real products[NORM_LANES]
    cdef real middle = <real> mean, rest = <real> (mean - middle)
    cdef Py_ssize_t i = 0, j, stop
    total[0] = product[0] = 0
    while i < n:
        stop = min(n, i + NORM_BLOCK)
        for j in range(NORM_LANES):
            sums[j] = products[j] = 0
        while i + NORM_LANES <= stop:
            for j in range(NORM_LANES):
                sums[j] += g[i + j]
                products[j] += g[i + j] * ((x[i + j] - middle) - rest)
            i += NORM_LANES
        for j in range(stop - i):
            sums[j] += g[i + j]
            products[j] += g[i + j] * ((x[i + j] - middle) - rest)
        i = stop
        total[0] += sum_lanes(sums)
        product[0] += sum_lanes(products)


cdef void run_slope(const real* g, const real* x, real* dx, Py_ssize_t n, double mean, double scale, double weight, double along,
                    double shift) noexcept nogil:
    """dx = (g * weight - (x - mean) * scale * along - shift) * scale"""
    cdef real middle = <real> mean, rest = <real> (mean - middle), a = <real> scale, w = <real> weight, b = <real> along, c = <real> shift
    cdef Py_ssize_t i
    for i in range(n):
        dx[i] = (g[i] * w - ((x[i] - middle) - rest) * a * b - c) * a


# ---- columns: each has a mean, scale and shift of its own; `row` elements from one row to the next -----------------------------------

cdef inline void strip_spread(const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n, double* mean, double* square) noexcept nogil:
    cdef double sums[NORM_LANES]
    cdef double squares[NORM_LANES]
    cdef double d
    cdef Py_ssize_t i, j
    for j in range(n):
        sums[j] = squares[j] = 0
    for i in range(rows):
        for j in range(n):
            sums[j] += x[i * row + j]
    for j in range(n):
        sums[j] /= rows
    for i in range(rows):
        for j in range(n):
            d = x[i * row + j] - sums[j]
            squares[j] += d * d
    for j in range(n):
        mean[j] = sums[j]
        square[j] = squares[j]


cdef void column_spread(const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n, double* mean, double* square) noexcept nogil:
    """The mean of each column, and sum((x - mean)**2)"""
    cdef Py_ssize_t j = 0
    while j + NORM_LANES <= n:              # a number of columns known here keeps the sums in registers
        strip_spread(x + j, row, rows, NORM_LANES, mean + j, square + j)
        j += NORM_LANES
    if j < n:
        strip_spread(x + j, row, rows, n - j, mean + j, square + j)


cdef inline void column_rows(const double* values, Py_ssize_t n, real* rounded, real* rest) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        rounded[j] = <real> values[j]
        rest[j] = <real> (values[j] - rounded[j])


cdef void column_apply(const real* x, real* out, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n, const double* mean, const double* scale,
                       const double* shift) noexcept nogil:
    cdef real middle[MAX_COLUMNS]
    cdef real rest[MAX_COLUMNS]
    cdef real a[MAX_COLUMNS]
    cdef real b[MAX_COLUMNS]
    cdef Py_ssize_t i, j
    column_rows(scale, n, a, rest)
    column_rows(shift, n, b, rest)
    column_rows(mean, n, middle, rest)
    for i in range(rows):
        for j in range(n):
            out[i * row + j] = ((x[i * row + j] - middle[j]) - rest[j]) * a[j] + b[j]


cdef inline void strip_products(const real* g, const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n, const double* mean,
                                double* total, double* product) noexcept nogil:
    cdef double sums[NORM_LANES]
    cdef double products[NORM_LANES]
    cdef Py_ssize_t i, j
    for j in range(n):
        sums[j] = products[j] = 0
    for i in range(rows):
        for j in range(n):
            sums[j] += g[i * row + j]
            products[j] += g[i * row + j] * (x[i * row + j] - mean[j])
    for j in range(n):
        total[j] = sums[j]
        product[j] = products[j]


cdef void column_products(const real* g, const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n, const double* mean, double* total,
                          double* product) noexcept nogil:
    """sum(g) and sum(g * (x - mean)) of each column"""
    cdef Py_ssize_t j = 0
    while j + NORM_LANES <= n:
        strip_products(g + j, x + j, row, rows, NORM_LANES, mean + j, total + j, product + j)
        j += NORM_LANES
    if j < n:
        strip_products(g + j, x + j, row, rows, n - j, mean + j, total + j, product + j)


cdef void column_slope(const real* g, const real* x, real* dx, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n, const double* mean,
                       const double* scale, const double* weight, const double* along, const double* shift) noexcept nogil:
    cdef real middle[MAX_COLUMNS]
    cdef real rest[MAX_COLUMNS]
    cdef real a[MAX_COLUMNS]
    cdef real w[MAX_COLUMNS]
    cdef real b[MAX_COLUMNS]
    cdef real c[MAX_COLUMNS]
    cdef Py_ssize_t i, j
    column_rows(scale, n, a, rest)
    column_rows(weight, n, w, rest)
    column_rows(along, n, b, rest)
    column_rows(shift, n, c, rest)
    column_rows(mean, n, middle, rest)
    for i in range(rows):
        for j in range(n):
            dx[i * row + j] = (g[i * row + j] * w[j] - ((x[i * row + j] - middle[j]) - rest[j]) * a[j] * b[j] - c[j]) * a[j]


cdef void register_norm(KernelTable* kernels) noexcept nogil:
    kernels.norm.forward[0] = <norm_forward_t> norm_forward[float]
    kernels.norm.forward[1] = <norm_forward_t> norm_forward[double]
    kernels.norm.backward[0] = <norm_backward_t> norm_backward[float]
    kernels.norm.backward[1] = <norm_backward_t> norm_backward[double]
    kernels.norm.spread[0] = <run_spread_t> run_spread[float]
    kernels.norm.spread[1] = <run_spread_t> run_spread[double]
    kernels.norm.apply[0] = <run_apply_t> run_apply[float]
    kernels.norm.apply[1] = <run_apply_t> run_apply[double]
    kernels.norm.products[0] = <run_products_t> run_products[float]
    kernels.norm.products[1] = <run_products_t> run_products[double]
    kernels.norm.slope[0] = <run_slope_t> run_slope[float]
    kernels.norm.slope[1] = <run_slope_t> run_slope[double]
    kernels.norm.column_spread[0] = <column_spread_t> column_spread[float]
    kernels.norm.column_spread[1] = <column_spread_t> column_spread[double]
    kernels.norm.column_apply[0] = <column_apply_t> column_apply[float]
    kernels.norm.column_apply[1] = <column_apply_t> column_apply[double]
    kernels.norm.column_products[0] = <column_products_t> column_products[float]
    kernels.norm.column_products[1] = <column_products_t> column_products[double]
    kernels.norm.column_slope[0] = <column_slope_t> column_slope[float]
    kernels.norm.column_slope[1] = <column_slope_t> column_slope[double]
