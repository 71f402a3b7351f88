# Loops of the reductions: a row to one accumulator, rows to a tile of accumulators, and how accumulators join.
#
# Included by the ISA shells (_baseline, _avx2, _avx512), which call register_reduce once at import; walking axes, the
# reduction tree and threads belong to reduce.pyx.  Everything is noexcept, nogil and allocates nothing.
#
# Compilers may not reorder floating-point sums, so each row keeps LANES independent accumulators in a small array, which gcc
# and clang keep in vector registers: 0.04-0.10 ns per element from cache, above what memory delivers.  float32 accumulates in
# float64 (0.1 ns as well, and the result is the correctly rounded sum in all but contrived cases); integers accumulate in
# unsigned 64 bits, where wrapping round is defined.

from libc.string cimport memset
from cgrad.kernels.table cimport (KernelTable, DTypeId, FoldLoops, ReduceTable, Reduction, arg_columns_t, arg_join_t, arg_row_t, fold_columns_t,
                                  fold_finish_t, fold_join_t, fold_row_t, fold_start_t)

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
    ANY_BLOCK = 1024       # any/all look for the answer once per block, so that the loop inside stays branch-free
    FIND_BLOCK = 32
    ARG_BLOCK = 4096       # argmax finds the block of the extreme first and searches only that one for the index


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


# ---- any and all: NaN counts as true -----------------------------------------------------------------------------------------

cdef inline bint found(const number* x, Py_ssize_t stride, Py_ssize_t n, bint wanted) noexcept nogil:
    """Is there an element whose truth is `wanted`?"""
    cdef Py_ssize_t i = 0, j, size
    cdef uint8_t hit
    while i < n:
        size = min(n - i, <Py_ssize_t> ANY_BLOCK)
        hit = 0
        if stride == 1:
            for j in range(size):
                hit |= (x[i + j] != 0) == wanted
        else:
            for j in range(size):
                hit |= (x[(i + j) * stride] != 0) == wanted
        if hit:
            return True
        i += size
    return False


cdef void reduce_any_row(const number* x, Py_ssize_t stride, Py_ssize_t n, uint8_t* total) noexcept nogil:
    if not total[0]:
        total[0] = found(x, stride, n, True)

cdef void reduce_all_row(const number* x, Py_ssize_t stride, Py_ssize_t n, uint8_t* total) noexcept nogil:
    if total[0]:
        total[0] = not found(x, stride, n, False)

cdef void mark_columns(const number* x, Py_ssize_t row, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t n, uint8_t* total,
                       uint8_t wanted) noexcept nogil:
    """total[j] = wanted where a truth in column j is."""
    cdef Py_ssize_t i, j
    for i in range(rows):
        if column == 1:
            for j in range(n):
                total[j] = wanted if (x[j] != 0) == wanted else total[j]
        else:
            for j in range(n):
                total[j] = wanted if (x[j * column] != 0) == wanted else total[j]
        x += row

cdef void reduce_any_columns(const number* x, Py_ssize_t row, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t n,
                             uint8_t* total) noexcept nogil:
    mark_columns(x, row, column, rows, n, total, 1)

cdef void reduce_all_columns(const number* x, Py_ssize_t row, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t n,
                             uint8_t* total) noexcept nogil:
    mark_columns(x, row, column, rows, n, total, 0)

cdef void reduce_any_join(uint8_t* total, const uint8_t* other, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        total[j] |= other[j]

cdef void reduce_all_join(uint8_t* total, const uint8_t* other, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        total[j] &= other[j]

cdef void reduce_any_start(uint8_t* total, Py_ssize_t n) noexcept nogil:
    memset(total, 0, n)

cdef void reduce_all_start(uint8_t* total, Py_ssize_t n) noexcept nogil:
    memset(total, 1, n)


# ---- argmax and argmin: the first NaN, else the first extreme ------------------------------------------------------------------
# State: the best value and its index; index -1 before anything was seen.

cdef inline bint beats(number best, number v, bint largest) noexcept nogil:
    if number is float or number is double:
        if largest:
            return (v > best) | ((v != v) & (best == best))
        return (v < best) | ((v != v) & (best == best))
    else:
        return v > best if largest else v < best


cdef inline bint is_it(number v, number value) noexcept nogil:
    if number is float or number is double:
        return (v == value) | ((v != v) & (value != value))
    else:
        return v == value


cdef inline Py_ssize_t find(const number* x, Py_ssize_t stride, Py_ssize_t n, number value) noexcept nogil:
    """Index of the first element equal to `value`, which is there.  Blocks are searched without exits, which vectorises."""
    cdef Py_ssize_t i = 0
    cdef int j, here, first
    if stride == 1 and n >= FIND_BLOCK and not isnan_(value):
        while True:
            first = FIND_BLOCK
            for j in range(FIND_BLOCK):
                here = j if x[i + j] == value else FIND_BLOCK
                first = here if here < first else first
            if first < FIND_BLOCK:
                return i + first
            i = min(i + FIND_BLOCK, n - FIND_BLOCK)
    while not is_it(x[i * stride], value):
        i += 1
    return i


cdef inline void arg_row(const number* x, Py_ssize_t stride, Py_ssize_t n, int64_t first,
                         number* best, int64_t* where, bint largest) noexcept nogil:
    cdef Py_ssize_t i = 0, size, block = -1, block_size = 0
    cdef number value = best[0], candidate
    cdef bint fresh = where[0] < 0
    while i < n:
        size = min(n - i, <Py_ssize_t> ARG_BLOCK)
        candidate = extreme_row(x + i * stride, stride, size, x[i * stride], largest)
        if fresh or beats(value, candidate, largest):
            value = candidate
            block = i
            block_size = size
            fresh = False
            if number is float or number is double:
                if value != value:
                    break
        i += size
    if block >= 0:
        best[0] = value
        where[0] = first + block + find(x + block * stride, stride, block_size, value)


cdef inline void arg_columns(const number* x, Py_ssize_t row, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t n, int64_t first,
                             number* best, int64_t* where, bint largest) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef number v
    cdef bint take
    if rows and where[0] < 0:
        for j in range(n):
            best[j] = x[j * column]
            where[j] = first
        x += row
        first += 1
        rows -= 1
    for i in range(rows):
        if column == 1:
            for j in range(n):
                v = x[j]
                take = beats(best[j], v, largest)
                best[j] = v if take else best[j]
                where[j] = first if take else where[j]
        else:
            for j in range(n):
                v = x[j * column]
                take = beats(best[j], v, largest)
                best[j] = v if take else best[j]
                where[j] = first if take else where[j]
        x += row
        first += 1


cdef void reduce_argmax_row(const number* x, Py_ssize_t stride, Py_ssize_t n, int64_t first,
                            number* best, int64_t* where) noexcept nogil:
    arg_row(x, stride, n, first, best, where, True)

cdef void reduce_argmin_row(const number* x, Py_ssize_t stride, Py_ssize_t n, int64_t first,
                            number* best, int64_t* where) noexcept nogil:
    arg_row(x, stride, n, first, best, where, False)

cdef void reduce_argmax_columns(const number* x, Py_ssize_t row, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t n,
                                int64_t first, number* best, int64_t* where) noexcept nogil:
    arg_columns(x, row, column, rows, n, first, best, where, True)

cdef void reduce_argmin_columns(const number* x, Py_ssize_t row, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t n,
                                int64_t first, number* best, int64_t* where) noexcept nogil:
    arg_columns(x, row, column, rows, n, first, best, where, False)

cdef void reduce_argmax_join(number* best, int64_t* where, const number* other, const int64_t* other_where) noexcept nogil:
    # `other` lies behind: it must beat, not equal.
    if beats(best[0], other[0], True):
        best[0] = other[0]
        where[0] = other_where[0]

cdef void reduce_argmin_join(number* best, int64_t* where, const number* other, const int64_t* other_where) noexcept nogil:
    if beats(best[0], other[0], False):
        best[0] = other[0]
        where[0] = other_where[0]


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


cdef void fill_integer(ReduceTable* table, int dtype, integer like) noexcept nogil:
    set_fold(table, Reduction.SUM, dtype, <fold_row_t> reduce_sum_row_int[integer], <fold_columns_t> reduce_sum_columns_int[integer],
             <fold_join_t> reduce_sum_join[wide_t], <fold_start_t> reduce_sum_start[wide_t], <fold_finish_t> reduce_finish_same[int64_t],
             sizeof(wide_t))
    set_fold(table, Reduction.PROD, dtype, <fold_row_t> reduce_prod_row_int[integer], <fold_columns_t> reduce_prod_columns_int[integer],
             <fold_join_t> reduce_prod_join[wide_t], <fold_start_t> reduce_prod_start[wide_t], <fold_finish_t> reduce_finish_same[int64_t],
             sizeof(wide_t))


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
    set_fold(table, Reduction.ANY, dtype, <fold_row_t> reduce_any_row[number], <fold_columns_t> reduce_any_columns[number],
             <fold_join_t> reduce_any_join, <fold_start_t> reduce_any_start, <fold_finish_t> reduce_finish_same[uint8_t], 1)
    set_fold(table, Reduction.ALL, dtype, <fold_row_t> reduce_all_row[number], <fold_columns_t> reduce_all_columns[number],
             <fold_join_t> reduce_all_join, <fold_start_t> reduce_all_start, <fold_finish_t> reduce_finish_same[uint8_t], 1)
    table.args[0][dtype].row = <arg_row_t> reduce_argmax_row[number]
    table.args[0][dtype].columns = <arg_columns_t> reduce_argmax_columns[number]
    table.args[0][dtype].join = <arg_join_t> reduce_argmax_join[number]
    table.args[1][dtype].row = <arg_row_t> reduce_argmin_row[number]
    table.args[1][dtype].columns = <arg_columns_t> reduce_argmin_columns[number]
    table.args[1][dtype].join = <arg_join_t> reduce_argmin_join[number]


cdef void register_reduce(KernelTable* kernels) noexcept nogil:
    cdef ReduceTable* table = &kernels.reduce
    fill_integer(table, DTypeId.BOOL, <uint8_t> 0)
    fill_integer(table, DTypeId.UINT8, <uint8_t> 0)
    fill_integer(table, DTypeId.INT8, <int8_t> 0)
    fill_integer(table, DTypeId.INT16, <int16_t> 0)
    fill_integer(table, DTypeId.INT32, <int32_t> 0)
    fill_integer(table, DTypeId.INT64, <int64_t> 0)
    fill_real(table, DTypeId.FLOAT32, <float> 0)
    fill_real(table, DTypeId.FLOAT64, <double> 0)
    fill_number(table, DTypeId.BOOL, <uint8_t> 0)
    fill_number(table, DTypeId.UINT8, <uint8_t> 0)
    fill_number(table, DTypeId.INT8, <int8_t> 0)
    fill_number(table, DTypeId.INT16, <int16_t> 0)
    fill_number(table, DTypeId.INT32, <int32_t> 0)
    fill_number(table, DTypeId.INT64, <int64_t> 0)
    fill_number(table, DTypeId.FLOAT32, <float> 0)
    fill_number(table, DTypeId.FLOAT64, <double> 0)
