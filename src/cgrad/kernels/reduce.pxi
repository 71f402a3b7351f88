# Loops of the reductions: a row to one accumulator, rows to a tile of accumulators, and how accumulators join.
#
# Included by the ISA shells, which enter them for float32 and float64; integers.pxi does so for the other dtypes.  Walking axes, the
# reduction tree and threads belong to reduce.pyx.  Everything is noexcept, nogil and allocates nothing.  Next: search.pxi.
#
# Compilers may not reorder floating-point sums, so each row keeps LANES independent accumulators in a small array, which gcc
# and clang keep in vector registers: 0.04-0.10 ns per element from cache, above what memory delivers.  float32 accumulates in
# float64 (0.1 ns as well, and the result is the correctly rounded sum in all but contrived cases); integers accumulate in
# unsigned 64 bits, where wrapping round is defined.

from cgrad.kernels.table cimport (KernelTable, DTypeId, FoldLoops, ReduceTable, Reduction, fold_columns_t, fold_finish_t, fold_join_t, fold_row_t,
                                  fold_start_t)

cdef extern from *:
    """
    /* Processors stop fetching ahead where a page ends.  Asking for what lies two pages on reads 64 MB at 80 instead of 67 GB/s on two
       threads, and costs nothing measurable in cache.  Addresses behind the end are harmless: a prefetch never faults. */
    #if defined(__GNUC__)
    #define CGRAD_PREFETCH(p) __builtin_prefetch((const void*)(p))
    #else
    #define CGRAD_PREFETCH(p) ((void)(p))
    #endif
    #define CGRAD_FETCH(p) CGRAD_PREFETCH((size_t)(p) + 8192)
    """
    void fetch "CGRAD_PREFETCH"(const void* p) noexcept nogil
    void fetch_ahead "CGRAD_FETCH"(const void* p) noexcept nogil

ctypedef unsigned long long wide_t

ctypedef fused reduce_wide:
    wide_t
    double

cdef enum:
    SUM_LANES = 32
    EXTREME_LANES = 32
    LINE = 64              # bytes that one prefetch brings


# ---- sum and prod ------------------------------------------------------------------------------------------------------------

cdef inline reduce_wide join_wide(reduce_wide a, reduce_wide b, bint product) noexcept nogil:
    return a * b if product else a + b


cdef inline double real_row(const real* x, Py_ssize_t stride, Py_ssize_t n, bint product) noexcept nogil:
    cdef double lanes[SUM_LANES]
    cdef double total = 1.0 if product else -0.0       # -0.0 + x is x for every x, -0.0 included
    cdef Py_ssize_t i = 0, j
    if n >= SUM_LANES:
        for j in range(SUM_LANES):
            lanes[j] = total
        if stride == 1:
            while i + SUM_LANES <= n:
                for j in range(<Py_ssize_t> (SUM_LANES * sizeof(real) // LINE)):
                    fetch_ahead(<const char*> (x + i) + j * LINE)
                for j in range(SUM_LANES):
                    lanes[j] = join_wide(lanes[j], <double> x[i + j], product)
                i += SUM_LANES
        else:
            while i + SUM_LANES <= n:
                for j in range(SUM_LANES):
                    lanes[j] = join_wide(lanes[j], <double> x[(i + j) * stride], product)
                i += SUM_LANES
        while i + 8 <= n:
            for j in range(8):
                lanes[j] = join_wide(lanes[j], <double> x[(i + j) * stride], product)
            i += 8
        for j in range(16):                      # widths the compiler knows: this part counts in rows of 100
            lanes[j] = join_wide(lanes[j], lanes[j + 16], product)
        for j in range(8):
            lanes[j] = join_wide(lanes[j], lanes[j + 8], product)
        for j in range(4):
            lanes[j] = join_wide(lanes[j], lanes[j + 4], product)
        total = join_wide(join_wide(lanes[0], lanes[2], product), join_wide(lanes[1], lanes[3], product), product)
    while i < n:
        total = join_wide(total, <double> x[i * stride], product)
        i += 1
    return total


cdef inline wide_t int_row(const integer* x, Py_ssize_t stride, Py_ssize_t n, bint product) noexcept nogil:
    # Integer sums may be reordered freely, so the compiler vectorises these on its own.
    cdef wide_t total = 1 if product else 0
    cdef Py_ssize_t i
    if stride == 1:
        for i in range(n):
            total = join_wide(total, <wide_t> x[i], product)
    else:
        for i in range(n):
            total = join_wide(total, <wide_t> x[i * stride], product)
    return total


cdef inline void wide_columns(const number* x, Py_ssize_t row, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t n,
                              reduce_wide* total, bint product) noexcept nogil:
    # Four rows at a time: a quarter of the traffic to the accumulators, twice as fast from L2.
    cdef const number* x1
    cdef const number* x2
    cdef const number* x3
    cdef Py_ssize_t i = 0, j
    while i + 4 <= rows:
        x1 = x + row
        x2 = x1 + row
        x3 = x2 + row
        if column == 1:
            for j in range(n):
                total[j] = join_wide(total[j], join_wide(join_wide(<reduce_wide> x[j], <reduce_wide> x1[j], product),
                                                         join_wide(<reduce_wide> x2[j], <reduce_wide> x3[j], product), product),
                                     product)
        else:
            for j in range(n):
                total[j] = join_wide(total[j], join_wide(join_wide(<reduce_wide> x[j * column], <reduce_wide> x1[j * column], product),
                                                         join_wide(<reduce_wide> x2[j * column], <reduce_wide> x3[j * column], product), product),
                                     product)
        x = x3 + row
        i += 4
    while i < rows:
        for j in range(n):
            total[j] = join_wide(total[j], <reduce_wide> x[j * column], product)
        x += row
        i += 1


cdef void reduce_sum_row_real(const real* x, Py_ssize_t stride, Py_ssize_t n, double* total) noexcept nogil:
    total[0] = total[0] + real_row(x, stride, n, False)

cdef void reduce_prod_row_real(const real* x, Py_ssize_t stride, Py_ssize_t n, double* total) noexcept nogil:
    total[0] = total[0] * real_row(x, stride, n, True)

cdef void reduce_sum_row_int(const integer* x, Py_ssize_t stride, Py_ssize_t n, wide_t* total) noexcept nogil:
    total[0] = total[0] + int_row(x, stride, n, False)

cdef void reduce_prod_row_int(const integer* x, Py_ssize_t stride, Py_ssize_t n, wide_t* total) noexcept nogil:
    total[0] = total[0] * int_row(x, stride, n, True)

cdef void reduce_sum_columns_real(const real* x, Py_ssize_t row, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t n,
                                  double* total) noexcept nogil:
    wide_columns(x, row, column, rows, n, total, False)

cdef void reduce_prod_columns_real(const real* x, Py_ssize_t row, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t n,
                                   double* total) noexcept nogil:
    wide_columns(x, row, column, rows, n, total, True)

cdef void reduce_sum_columns_int(const integer* x, Py_ssize_t row, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t n,
                                 wide_t* total) noexcept nogil:
    wide_columns(x, row, column, rows, n, total, False)

cdef void reduce_prod_columns_int(const integer* x, Py_ssize_t row, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t n,
                                  wide_t* total) noexcept nogil:
    wide_columns(x, row, column, rows, n, total, True)

cdef void reduce_sum_join(reduce_wide* total, const reduce_wide* other, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        total[j] = total[j] + other[j]

cdef void reduce_prod_join(reduce_wide* total, const reduce_wide* other, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        total[j] = total[j] * other[j]

cdef void reduce_sum_start(reduce_wide* total, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        total[j] = <reduce_wide> -0.0 if reduce_wide is double else 0

cdef void reduce_prod_start(reduce_wide* total, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        total[j] = 1

cdef void reduce_finish_float(const double* total, float* out, Py_ssize_t stride, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        out[j * stride] = <float> total[j]

cdef void reduce_finish_same(const number* total, number* out, Py_ssize_t stride, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t j
    if stride == 1:
        memcpy(out, total, n * sizeof(number))
        return
    for j in range(n):
        out[j * stride] = total[j]


# ---- max and min: NaN wins ---------------------------------------------------------------------------------------------------

cdef inline number better(number best, number v, bint largest) noexcept nogil:
    # Compiles to compare + blend.  A NaN in v is taken by v != v; one in best stays, since nothing compares with it.
    if number is float or number is double:
        if largest:
            return v if (v > best) | (v != v) else best
        return v if (v < best) | (v != v) else best
    else:
        if largest:
            return v if v > best else best
        return v if v < best else best


cdef inline number larger(number v, number best, bint largest) noexcept nogil:
    """The better of two numbers, `best` where they do not compare: one instruction."""
    if largest:
        return v if v > best else best
    return v if v < best else best


cdef inline number extreme_row(const number* x, Py_ssize_t stride, Py_ssize_t n, number best, bint largest) noexcept nogil:
    cdef number lanes[EXTREME_LANES]
    cdef number strange[EXTREME_LANES]           # the last NaN: a second chain beside that of the maxima, not one of twice the length
    cdef Py_ssize_t i, j
    cdef int nan = 0
    if stride != 1 or n < EXTREME_LANES:
        for i in range(n):
            best = better(best, x[i * stride], largest)
        return best
    for j in range(EXTREME_LANES):
        lanes[j] = strange[j] = x[j]
    i = EXTREME_LANES
    while i + EXTREME_LANES <= n:
        for j in range(<Py_ssize_t> (EXTREME_LANES * sizeof(number) // LINE)):
            fetch_ahead(<const char*> (x + i) + j * LINE)
        for j in range(EXTREME_LANES):
            lanes[j] = larger(x[i + j], lanes[j], largest)
            strange[j] = x[i + j] if isnan_(x[i + j]) else strange[j]
        i += EXTREME_LANES
    x += n - EXTREME_LANES                       # the rest, by looking at some elements twice
    for j in range(EXTREME_LANES):
        lanes[j] = larger(x[j], lanes[j], largest)
        nan |= isnan_(x[j]) | isnan_(strange[j])
    if number is float or number is double:
        if nan:
            return <number> libm.NAN
    for j in range(16):                          # widths the compiler knows
        lanes[j] = larger(lanes[j + 16], lanes[j], largest)
    for j in range(8):
        lanes[j] = larger(lanes[j + 8], lanes[j], largest)
    for j in range(4):
        lanes[j] = larger(lanes[j + 4], lanes[j], largest)
    lanes[0] = larger(larger(lanes[0], lanes[2], largest), larger(lanes[1], lanes[3], largest), largest)
    return better(best, lanes[0], largest)


cdef inline void extreme_columns(const number* x, Py_ssize_t row, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t n,
                                 number* best, bint largest) noexcept nogil:
    cdef Py_ssize_t i, j
    for i in range(rows):
        if column == 1:
            for j in range(n):
                best[j] = better(best[j], x[j], largest)
        else:
            for j in range(n):
                best[j] = better(best[j], x[j * column], largest)
        x += row


cdef void reduce_max_row(const number* x, Py_ssize_t stride, Py_ssize_t n, number* best) noexcept nogil:
    best[0] = extreme_row(x, stride, n, best[0], True)

cdef void reduce_min_row(const number* x, Py_ssize_t stride, Py_ssize_t n, number* best) noexcept nogil:
    best[0] = extreme_row(x, stride, n, best[0], False)

cdef void reduce_max_columns(const number* x, Py_ssize_t row, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t n,
                             number* best) noexcept nogil:
    extreme_columns(x, row, column, rows, n, best, True)

cdef void reduce_min_columns(const number* x, Py_ssize_t row, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t n,
                             number* best) noexcept nogil:
    extreme_columns(x, row, column, rows, n, best, False)

cdef void reduce_max_join(number* best, const number* other, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        best[j] = better(best[j], other[j], True)

cdef void reduce_min_join(number* best, const number* other, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        best[j] = better(best[j], other[j], False)


cdef inline number lowest(number like) noexcept nogil:
    if number is float or number is double:
        return -libm.INFINITY
    elif number is uint8_t or number is uint64_t:
        return 0
    elif number is int64_t:
        return <int64_t> (<wide_t> 1 << 63)
    else:
        return <number> (-(<int64_t> 1 << (8 * sizeof(number) - 1)))

cdef inline number highest(number like) noexcept nogil:
    if number is float or number is double:
        return libm.INFINITY
    elif number is uint8_t:
        return 255
    elif number is int64_t:
        return <int64_t> ((<wide_t> 1 << 63) - 1)
    else:
        return <number> (-(lowest(like) + 1))


cdef void reduce_max_start(number* best, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        best[j] = lowest(<number> 0)

cdef void reduce_min_start(number* best, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        best[j] = highest(<number> 0)


# ---- the table -----------------------------------------------------------------------------------------------------------------

cdef inline void set_fold(ReduceTable* table, int reduction, int dtype, fold_row_t row, fold_columns_t columns, fold_join_t join, fold_start_t start,
                          fold_finish_t finish, int size) noexcept nogil:
    cdef FoldLoops* loops = &table.folds[reduction][dtype]
    loops.row = row
    loops.columns = columns
    loops.join = join
    loops.start = start
    loops.finish = finish
    loops.size = size


cdef void fill_real(ReduceTable* table, int dtype, real like) noexcept nogil:
    cdef fold_finish_t finish
    if real is float:
        finish = <fold_finish_t> reduce_finish_float
    else:
        finish = <fold_finish_t> reduce_finish_same[double]
    set_fold(table, Reduction.SUM, dtype, <fold_row_t> reduce_sum_row_real[real], <fold_columns_t> reduce_sum_columns_real[real],
             <fold_join_t> reduce_sum_join[double], <fold_start_t> reduce_sum_start[double], finish, sizeof(double))
    set_fold(table, Reduction.PROD, dtype, <fold_row_t> reduce_prod_row_real[real], <fold_columns_t> reduce_prod_columns_real[real],
             <fold_join_t> reduce_prod_join[double], <fold_start_t> reduce_prod_start[double], finish, sizeof(double))


cdef void fill_number(ReduceTable* table, int dtype, number like) noexcept nogil:
    set_fold(table, Reduction.MAX, dtype, <fold_row_t> reduce_max_row[number], <fold_columns_t> reduce_max_columns[number],
             <fold_join_t> reduce_max_join[number], <fold_start_t> reduce_max_start[number],
             <fold_finish_t> reduce_finish_same[number], sizeof(number))
    set_fold(table, Reduction.MIN, dtype, <fold_row_t> reduce_min_row[number], <fold_columns_t> reduce_min_columns[number],
             <fold_join_t> reduce_min_join[number], <fold_start_t> reduce_min_start[number],
             <fold_finish_t> reduce_finish_same[number], sizeof(number))


cdef void register_reduce(KernelTable* kernels) noexcept nogil:
    fill_real(&kernels.reduce, DTypeId.FLOAT32, <float> 0)
    fill_real(&kernels.reduce, DTypeId.FLOAT64, <double> 0)
    fill_number(&kernels.reduce, DTypeId.FLOAT32, <float> 0)
    fill_number(&kernels.reduce, DTypeId.FLOAT64, <double> 0)
