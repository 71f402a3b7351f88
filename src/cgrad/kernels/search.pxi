# Reductions that look for elements: any, all, argmax and argmin.
#
# Included by the ISA shells after reduce.pxi.

from libc.string cimport memset

from cgrad.kernels.table cimport arg_columns_t, arg_join_t, arg_row_t

cdef enum:
    ANY_BLOCK = 1024       # any/all look for the answer once per block, so that the loop inside stays branch-free
    FIND_BLOCK = 32
    ARG_BLOCK = 4096       # argmax finds the block of the extreme first and searches only that one for the index


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

cdef void fill_arg(ReduceTable* table, int dtype, number like) noexcept nogil:
    table.args[0][dtype].row = <arg_row_t> reduce_argmax_row[number]
    table.args[0][dtype].columns = <arg_columns_t> reduce_argmax_columns[number]
    table.args[0][dtype].join = <arg_join_t> reduce_argmax_join[number]
    table.args[1][dtype].row = <arg_row_t> reduce_argmin_row[number]
    table.args[1][dtype].columns = <arg_columns_t> reduce_argmin_columns[number]
    table.args[1][dtype].join = <arg_join_t> reduce_argmin_join[number]


cdef void fill_truth(ReduceTable* table, int dtype, number like) noexcept nogil:
    set_fold(table, Reduction.ANY, dtype, <fold_row_t> reduce_any_row[number], <fold_columns_t> reduce_any_columns[number],
             <fold_join_t> reduce_any_join, <fold_start_t> reduce_any_start, <fold_finish_t> reduce_finish_same[uint8_t], 1)
    set_fold(table, Reduction.ALL, dtype, <fold_row_t> reduce_all_row[number], <fold_columns_t> reduce_all_columns[number],
             <fold_join_t> reduce_all_join, <fold_start_t> reduce_all_start, <fold_finish_t> reduce_finish_same[uint8_t], 1)


cdef void register_search(KernelTable* kernels) noexcept nogil:
    cdef ReduceTable* table = &kernels.reduce
    fill_arg(table, DTypeId.FLOAT32, <float> 0)
    fill_arg(table, DTypeId.FLOAT64, <double> 0)
    fill_arg(table, DTypeId.INT64, <int64_t> 0)
    fill_truth(table, DTypeId.FLOAT32, <float> 0)
    fill_truth(table, DTypeId.FLOAT64, <double> 0)
    fill_truth(table, DTypeId.INT64, <int64_t> 0)
    fill_truth(table, DTypeId.BOOL, <int8_t> 0)


cdef void register_integer_search(KernelTable* kernels) noexcept nogil:
    cdef ReduceTable* table = &kernels.reduce
    fill_arg(table, DTypeId.BOOL, <uint8_t> 0)
    fill_arg(table, DTypeId.UINT8, <uint8_t> 0)
    fill_arg(table, DTypeId.INT8, <int8_t> 0)
    fill_arg(table, DTypeId.INT16, <int16_t> 0)
    fill_arg(table, DTypeId.INT32, <int32_t> 0)
    fill_truth(table, DTypeId.UINT8, <int8_t> 0)
    fill_truth(table, DTypeId.INT8, <int8_t> 0)
    fill_truth(table, DTypeId.INT16, <int16_t> 0)
    fill_truth(table, DTypeId.INT32, <int32_t> 0)
