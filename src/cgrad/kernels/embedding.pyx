"""Rows of a table picked by index, sums of them in bags, and the gradient of the table.

Owns run_pick_rows, run_sum_bags, run_spread_rows (contracts in embedding.pxd), called by core/forward/embedding.pyx, which has checked the
indices.  Nothing takes the GIL.  Reads are split over threads by index or bag.  The gradient is split by rows of the table: a thread sets a
chunk of rows to zero and, while it is in its cache, adds what belongs there in the order of the indices, so that memory is written
once and the bits do not depend on the threads.  Which indices fall into a chunk is told by a chain of their positions.

Read next: rows.pxi, core/forward/embedding.pyx.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from cgrad.kernels.dispatch cimport kernel_table
from cgrad.kernels.parallel cimport parallel_for
from cgrad.kernels.table cimport DTypeId

cdef enum:
    PICK_BYTES = 1 << 16       # that a thread reads at a time
    SPREAD_BYTES = 1 << 18     # of the gradient that a thread fills at a time: they stay in the second cache

ctypedef fused real:
    float
    double


cdef bint find_bad_index(const int64_t* index, Py_ssize_t n, Py_ssize_t n_rows, int64_t* bad) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        if index[i] < 0 or index[i] >= n_rows:
            bad[0] = index[i]
            return True
    return False


# ---- picking -----------------------------------------------------------------------------------------------------------------------

cdef struct Pick:
    const char* table
    char* out
    const int64_t* index
    Py_ssize_t stride, row_bytes


cdef void pick_part(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Pick* p = <const Pick*> context
    cdef Py_ssize_t i
    for i in range(start, stop):
        memcpy(p.out + i * p.row_bytes, p.table + p.index[i] * p.stride, p.row_bytes)


cdef void run_pick_rows(const char* table, Py_ssize_t stride, Py_ssize_t row_bytes, const int64_t* index, Py_ssize_t n, char* out) noexcept nogil:
    cdef Pick p
    p.table, p.out, p.index = table, out, index
    p.stride, p.row_bytes = stride, row_bytes
    if row_bytes:
        # A row at a random place costs about 20 additions, and each 4 bytes of it one.
        parallel_for(pick_part, &p, n, max(1, PICK_BYTES // row_bytes), n * (20 + 0.25 * row_bytes))


# ---- spreading ---------------------------------------------------------------------------------------------------------------------

cdef struct Spread:
    int dtype
    const char* g
    char* out
    const int64_t* index
    const int64_t* source
    const char* factor
    int64_t* first             # of each chunk: the position of the first index that falls into it, or -1
    int64_t* following         # of each index: the position of the next one in the same chunk, or -1
    Py_ssize_t n_rows, width, chunk
    int64_t skipped


cdef void add_chain(const Spread* s, int64_t position, const real* g, real* out) noexcept nogil:
    cdef Py_ssize_t j, width = s.width
    cdef const real* factor = <const real*> s.factor
    cdef const real* source
    cdef real* target
    while position >= 0:
        if s.index[position] != s.skipped:
            source = g + (position if s.source == NULL else s.source[position]) * width
            target = out + s.index[position] * width
            if factor == NULL:
                for j in range(width):
                    target[j] += source[j]
            else:
                for j in range(width):
                    target[j] += factor[position] * source[j]
        position = s.following[position]


cdef void spread_part(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Spread* s = <const Spread*> context
    cdef Py_ssize_t row_bytes = s.width * (4 if s.dtype == DTypeId.FLOAT32 else 8)
    memset(s.out + start * row_bytes, 0, (stop - start) * row_bytes)
    if s.dtype == DTypeId.FLOAT32:
        add_chain(s, s.first[start // s.chunk], <const float*> s.g, <float*> s.out)
    else:
        add_chain(s, s.first[start // s.chunk], <const double*> s.g, <double*> s.out)


cdef inline Py_ssize_t spread_chunk(int dtype, Py_ssize_t width) noexcept nogil:
    return max(1, SPREAD_BYTES // max(1, width * (4 if dtype == DTypeId.FLOAT32 else 8)))


cdef Py_ssize_t spread_scratch(int dtype, Py_ssize_t n, Py_ssize_t n_rows, Py_ssize_t width) noexcept nogil:
    cdef Py_ssize_t chunk = spread_chunk(dtype, width)
    return n + (n_rows + chunk - 1) // chunk


cdef void run_spread_rows(int dtype, const char* g, const int64_t* index, const int64_t* source, const char* factor, Py_ssize_t n, Py_ssize_t n_rows,
                          Py_ssize_t width, int64_t skipped, char* out, int64_t* scratch) noexcept nogil:
    cdef Spread s
    cdef Py_ssize_t i
    cdef int64_t chunk
    s.dtype, s.g, s.out, s.index, s.source, s.factor = dtype, g, out, index, source, factor
    s.n_rows, s.width, s.skipped = n_rows, width, skipped
    s.chunk = spread_chunk(dtype, width)
    s.following, s.first = scratch, scratch + n
    for i in range((n_rows + s.chunk - 1) // s.chunk):
        s.first[i] = -1
    for i in range(n - 1, -1, -1):             # from the last, so that each chain runs in the order of the indices
        chunk = index[i] // s.chunk
        s.following[i] = s.first[chunk]
        s.first[chunk] = i
    parallel_for(spread_part, &s, n_rows, s.chunk, (0.25 * n_rows + 2.0 * n) * width)


# ---- bags --------------------------------------------------------------------------------------------------------------------------

cdef struct Bags:
    int dtype
    const char* g                  # NULL: sums, else products with it
    const char* table
    const int64_t* index
    const char* factor
    const int64_t* starts
    char* out
    Py_ssize_t stride, width, last       # last: the number of indices
    int64_t skipped
    bint mean


cdef void sum_bag(const Bags* s, Py_ssize_t bag, Py_ssize_t size, real like) noexcept nogil:
    cdef Py_ssize_t start = s.starts[bag], stop = s.starts[bag + 1], i, count = 0
    cdef real* out = <real*> s.out + bag * s.width
    if s.width:
        kernel_table().rows.bag[s.dtype - <int> DTypeId.FLOAT32](
            s.table, s.stride * size, s.index + start, stop - start, s.last - start, s.width,
            <const char*> NULL if s.factor == NULL else s.factor + start * size, s.skipped, <char*> out)
    if s.mean:
        for i in range(start, stop):
            count += s.index[i] != s.skipped
        for i in range(s.width if count > 1 else 0):
            out[i] = out[i] / <real> count


cdef void bag_products(const Bags* s, Py_ssize_t bag, const real* table, const real* g, real* out) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef const real* row
    cdef double total
    g += bag * s.width
    for i in range(s.starts[bag], s.starts[bag + 1]):
        row = table + s.index[i] * s.stride
        total = 0
        for j in range(s.width if s.index[i] != s.skipped else 0):
            total = total + <double> g[j] * row[j]
        out[i] = <real> total


cdef void bags_part(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Bags* s = <const Bags*> context
    cdef Py_ssize_t bag
    for bag in range(start, stop):
        if s.dtype == DTypeId.FLOAT32:
            if s.g == NULL:
                sum_bag(s, bag, 4, <float> 0)
            else:
                bag_products(s, bag, <const float*> s.table, <const float*> s.g, <float*> s.out)
        elif s.g == NULL:
            sum_bag(s, bag, 8, <double> 0)
        else:
            bag_products(s, bag, <const double*> s.table, <const double*> s.g, <double*> s.out)


cdef void run_bags(Bags* s, Py_ssize_t n_bags) noexcept nogil:
    s.last = s.starts[n_bags]
    parallel_for(bags_part, s, n_bags, max(1, n_bags // 64), <double> s.last * (20 + s.width))


cdef void run_sum_bags(int dtype, const char* table, Py_ssize_t stride, Py_ssize_t width, const int64_t* index, const char* factor,
                       const int64_t* starts, Py_ssize_t n_bags, int64_t skipped, bint mean, char* out) noexcept nogil:
    cdef Bags s
    s.dtype, s.g, s.table, s.index, s.factor, s.starts, s.out = dtype, NULL, table, index, factor, starts, out
    s.stride, s.width, s.skipped, s.mean = stride, width, skipped, mean
    run_bags(&s, n_bags)


cdef void run_bag_products(int dtype, const char* g, const char* table, Py_ssize_t stride, Py_ssize_t width, const int64_t* index,
                           const int64_t* starts, Py_ssize_t n_bags, int64_t skipped, char* out) noexcept nogil:
    cdef Bags s
    s.dtype, s.g, s.table, s.index, s.factor, s.starts, s.out = dtype, g, table, index, NULL, starts, out
    s.stride, s.width, s.skipped, s.mean = stride, width, skipped, False
    run_bags(&s, n_bags)
