"""Scaled dot-product attention in blocks, forward and backward, without the matrix of scores.

Owns run_attention and run_attention_backward (contracts in attention.pxd), called by core/forward/attention.pyx.  Nothing takes the GIL.
ROWS queries meet KEYS keys at a time, in scratch of less than 2 MiB that a thread holds while it works: products with the kernel for small
matrices (which knows no threads of its own), the softmax by rows.  Forward runs over the keys once, keeping the largest score and the sum
of each query so far [1].  Backward makes the blocks again from the logarithm of that sum [2].  Each block of results is written by one
thread, whose sums run in the order of the blocks: the bits never depend on the threads.

[1] M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", arXiv:1805.02867, 2018.
[2] T. Dao et al., "FlashAttention", NeurIPS 2022.

Read next: rows.pxi, matmul.pxi.
"""
from libc.math cimport INFINITY, exp, log
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from cgrad.kernels.dispatch cimport kernel_table
from cgrad.kernels.parallel cimport parallel_for
from cgrad.kernels.table cimport DTypeId, MAX

cdef enum:
    ROWS = 128             # queries in a block
    KEYS = 256             # keys in a block
    COLUMNS = 256          # columns of a product that are computed at a time, so that scratch does not grow with the width
    FEW = 4                # rows of a product for which packing the other operand costs more than it saves
    MANY = 16              # problems from which backward treats each as a whole; for fewer, blocks are made twice, to have enough for all threads

ctypedef fused real:
    float
    double


cdef struct Work:
    const Attention* a
    Py_ssize_t size                        # bytes of an element
    int which                              # dtype, as the kernel tables count
    Py_ssize_t units                       # a problem has
    bint by_keys                           # backward of part of a problem: the gradients of a block of keys, not of queries
    bint failed


cdef struct Scratch:
    char* scores                           # ROWS x KEYS
    char* slopes                           # ROWS x KEYS, backward only
    char* packed                           # KEYS x COLUMNS
    double[ROWS] largest
    double[ROWS] total


cdef bint make_scratch(Scratch* s, Py_ssize_t size) noexcept nogil:
    s.scores = <char*> malloc((2 * ROWS * KEYS + KEYS * COLUMNS) * size)
    s.slopes = s.scores + ROWS * KEYS * size
    s.packed = s.slopes + ROWS * KEYS * size
    return s.scores != NULL


cdef inline char* start_of(const Operand* x, Py_ssize_t b, Py_ssize_t row, Py_ssize_t size) noexcept nogil:
    return x.data + (x.offsets[b] + row * x.row) * size


cdef void scale_row(real* x, Py_ssize_t n, double factor) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        x[i] = x[i] * <real> factor


cdef void add_product(const Work* w, Scratch* s, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* x, Py_ssize_t x_row, Py_ssize_t x_column,
                      const char* y, Py_ssize_t y_row, char* target) noexcept nogil:
    """target (m, n), contiguous, += x (m, k) @ y (k, n); strides in bytes, k at most KEYS, columns of y side by side."""
    cdef Py_ssize_t column = 0, columns, i, part_row
    cdef const char* part
    while column < n:
        columns = min(n - column, <Py_ssize_t> COLUMNS)
        part, part_row = y + column * w.size, y_row
        if m > FEW and y_row != n * w.size:          # rows that lie apart by a power of two would drive each other out of L1
            for i in range(k):
                memcpy(s.packed + i * columns * w.size, part + i * y_row, columns * w.size)
            part, part_row = s.packed, columns * w.size
        kernel_table().matmul.small[w.which](m, columns, k, x, x_row, x_column, part, part_row, w.size, target + column * w.size, n * w.size, True)
        column += columns


cdef void row_products(const Work* w, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t k, const char* x, Py_ssize_t x_row, const char* y,
                       Py_ssize_t y_row, char* out) noexcept nogil:
    """out = x @ y.T, elements of rows side by side."""
    cdef Py_ssize_t i
    if rows > FEW:
        kernel_table().matmul.small[w.which](rows, columns, k, x, x_row, w.size, y, w.size, y_row, out, columns * w.size, False)
        return
    for i in range(rows):
        kernel_table().matmul.vector[w.which](columns, k, y, y_row, w.size, x + i * x_row, out + i * columns * w.size)


cdef void mask_row(real* scores, Py_ssize_t n, double scale, const char* mask, Py_ssize_t step, bint booleans) noexcept nogil:
    """scale * scores + mask, or -inf where the mask is False."""
    cdef Py_ssize_t j
    cdef real factor = <real> scale
    if booleans:
        for j in range(n):
            scores[j] = scores[j] * factor if mask[j * step] else <real> -INFINITY
    else:
        for j in range(n):
            scores[j] = scores[j] * factor + (<const real*> mask)[j * step]


cdef double score_block(const Work* w, Scratch* s, Py_ssize_t b, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t key, Py_ssize_t keys) noexcept nogil:
    """The scores of a block, masked but for what causality hides; returns the scale that is still to be applied."""
    cdef const Attention* a = w.a
    cdef double scale = a.scale
    cdef const char* mask = NULL
    cdef Py_ssize_t i, step = 0
    row_products(w, rows, keys, a.width, start_of(&a.q, b, row, w.size), a.q.row * w.size, start_of(&a.k, b, key, w.size), a.k.row * w.size,
                 s.scores)
    if a.mask.data == NULL and scale > 0:
        return scale
    if a.mask.data != NULL:
        mask = a.mask.data + (a.mask.offsets[b] + row * a.mask.row + key * a.mask.column) * (1 if a.bool_mask else w.size)
        step = a.mask.row * (1 if a.bool_mask else w.size)
    for i in range(rows):
        if mask == NULL:
            if w.size == 4:
                scale_row(<float*> s.scores + i * keys, keys, scale)
            else:
                scale_row(<double*> s.scores + i * keys, keys, scale)
        elif w.size == 4:
            mask_row(<float*> s.scores + i * keys, keys, scale, mask + i * step, a.mask.column, a.bool_mask)
        else:
            mask_row(<double*> s.scores + i * keys, keys, scale, mask + i * step, a.mask.column, a.bool_mask)
    return 1.0


cdef inline Py_ssize_t seen_keys(const Attention* a, Py_ssize_t row, Py_ssize_t key, Py_ssize_t keys) noexcept nogil:
    """How many of `keys` keys from number `key` on a query sees."""
    return max(0, min(keys, row - key + 1)) if a.causal else keys


cdef double largest_of(const Work* w, const char* x, Py_ssize_t n) noexcept nogil:
    cdef double wide = -INFINITY
    cdef float narrow = -INFINITY
    if n == 0:
        return wide
    if w.size == 4:
        kernel_table().reduce.folds[<int> MAX][<int> DTypeId.FLOAT32].row(x, 1, n, <char*> &narrow)
        return narrow
    kernel_table().reduce.folds[<int> MAX][<int> DTypeId.FLOAT64].row(x, 1, n, <char*> &wide)
    return wide


cdef inline double number_at(const Work* w, const char* x, Py_ssize_t i) noexcept nogil:
    return (<const float*> x)[i] if w.size == 4 else (<const double*> x)[i]


cdef inline void set_number(const Work* w, char* x, Py_ssize_t i, double value) noexcept nogil:
    if w.size == 4:
        (<float*> x)[i] = <float> value
    else:
        (<double*> x)[i] = value


cdef void scale_result(const Work* w, char* row, double factor) noexcept nogil:
    if w.size == 4:
        scale_row(<float*> row, w.a.out_width, factor)
    else:
        scale_row(<double*> row, w.a.out_width, factor)


# ---- forward -----------------------------------------------------------------------------------------------------------------------------

cdef void attend(const Work* w, Scratch* s, Py_ssize_t b, Py_ssize_t row, Py_ssize_t rows) noexcept nogil:
    """The result for queries row <= i < row + rows of one problem."""
    cdef const Attention* a = w.a
    cdef Py_ssize_t first = b * a.n_queries + row, key = 0, keys, seen, i
    cdef char* out = a.out + first * a.out_width * w.size
    cdef char* scores
    cdef double scale, largest
    memset(out, 0, rows * a.out_width * w.size)
    for i in range(rows):
        s.largest[i] = -INFINITY
        s.total[i] = 0
    while key < a.n_keys and not (a.causal and key > row + rows - 1):
        keys = min(a.n_keys - key, <Py_ssize_t> KEYS)
        scale = score_block(w, s, b, row, rows, key, keys)
        for i in range(rows):
            scores = s.scores + i * keys * w.size
            seen = seen_keys(a, row + i, key, keys)
            largest = scale * largest_of(w, scores, seen)
            if w.size == 4:
                largest = <float> largest                        # as rows.exp takes it
            if not (largest > s.largest[i] or largest != largest):
                largest = s.largest[i]
            if largest == -INFINITY:                             # nothing to see so far
                memset(scores, 0, keys * w.size)
                continue
            if key > 0 and largest != s.largest[i]:
                s.total[i] *= exp(s.largest[i] - largest)
                scale_result(w, out + i * a.out_width * w.size, exp(s.largest[i] - largest))
            s.largest[i] = largest
            s.total[i] += kernel_table().rows.exp[w.which](scores, scores, seen, scale, largest)
            memset(scores + seen * w.size, 0, (keys - seen) * w.size)
        add_product(w, s, rows, a.out_width, keys, s.scores, keys * w.size, w.size, start_of(&a.v, b, key, w.size), a.v.row * w.size, out)
        key += keys
    for i in range(rows):
        if s.total[i] == 0:
            set_number(w, a.lse, first + i, INFINITY)
        else:
            scale_result(w, out + i * a.out_width * w.size, 1.0 / s.total[i])
            set_number(w, a.lse, first + i, s.largest[i] + log(s.total[i]))


cdef void attend_units(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Blocks of queries, counted over all problems."""
    cdef Work* w = <Work*> context
    cdef Scratch s
    cdef Py_ssize_t unit, row
    if not make_scratch(&s, w.size):
        w.failed = True
        return
    for unit in range(start, stop):
        row = unit % w.units * ROWS
        attend(w, &s, unit // w.units, row, min(w.a.n_queries - row, <Py_ssize_t> ROWS))
    free(s.scores)


cdef Work work_of(const Attention* a) noexcept nogil:
    cdef Work w
    w.a = a
    w.size = 4 if a.dtype == DTypeId.FLOAT32 else 8
    w.which = a.dtype - <int> DTypeId.FLOAT32
    w.units, w.by_keys, w.failed = 1, False, False
    return w


cdef inline double cost_of(const Attention* a) noexcept nogil:
    """In additions: two products, at eight multiplications an addition, and an exponential."""
    return <double> a.n_batch * a.n_queries * a.n_keys * (0.125 * (a.width + a.out_width) + 10)


cdef void run_units(Work* w, bint backward, double cost) noexcept nogil:
    cdef Py_ssize_t n = w.a.n_batch * w.units
    parallel_for(differentiate_units if backward else attend_units, w, n, max(1, n // 64), cost)


cdef int run_attention(const Attention* a) noexcept nogil:
    cdef Work w = work_of(a)
    w.units = (a.n_queries + ROWS - 1) // ROWS
    run_units(&w, False, cost_of(a))
    return -1 if w.failed else 0


# ---- backward ----------------------------------------------------------------------------------------------------------------------------

cdef void slope_row(const real* weights, real* slopes, Py_ssize_t n, double along, double scale) noexcept nogil:
    """The gradient of scores: weights * (slopes - along), times scale."""
    cdef real middle = <real> along, factor = <real> scale
    cdef Py_ssize_t j
    for j in range(n):
        slopes[j] = weights[j] * (slopes[j] - middle) * factor


cdef void differentiate(const Work* w, Scratch* s, Py_ssize_t b, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t key, Py_ssize_t keys,
                        char* dq, char* dk, char* dv) noexcept nogil:
    """What one block adds to the gradients of its queries and keys; those that are NULL are left out."""
    cdef const Attention* a = w.a
    cdef Py_ssize_t i, seen, first = b * a.n_queries + row
    cdef double scale = score_block(w, s, b, row, rows, key, keys)
    cdef char* scores
    cdef const char* g = start_of(&a.g, b, row, w.size)
    for i in range(rows):
        scores = s.scores + i * keys * w.size
        seen = seen_keys(a, row + i, key, keys)
        kernel_table().rows.exp[w.which](scores, scores, seen, scale, number_at(w, a.lse, first + i))
        memset(scores + seen * w.size, 0, (keys - seen) * w.size)
    if dv != NULL:
        add_product(w, s, keys, a.out_width, rows, s.scores, w.size, keys * w.size, g, a.g.row * w.size, dv)
    if dq == NULL and dk == NULL:
        return
    row_products(w, rows, keys, a.out_width, g, a.g.row * w.size, start_of(&a.v, b, key, w.size), a.v.row * w.size, s.slopes)
    for i in range(rows):
        if w.size == 4:
            slope_row(<const float*> s.scores + i * keys, <float*> s.slopes + i * keys, keys, s.total[i], a.scale)
        else:
            slope_row(<const double*> s.scores + i * keys, <double*> s.slopes + i * keys, keys, s.total[i], a.scale)
    if dq != NULL:
        add_product(w, s, rows, a.width, keys, s.slopes, keys * w.size, w.size, start_of(&a.k, b, key, w.size), a.k.row * w.size, dq)
    if dk != NULL:
        add_product(w, s, keys, a.width, rows, s.slopes, w.size, keys * w.size, start_of(&a.q, b, row, w.size), a.q.row * w.size, dk)


cdef void differentiate_part(const Work* w, Scratch* s, Py_ssize_t b, Py_ssize_t first_row, Py_ssize_t stop_row, Py_ssize_t first_key,
                             Py_ssize_t stop_key, char* dq, char* dk, char* dv) noexcept nogil:
    """The gradients of some queries and keys of one problem from all blocks in which they meet."""
    cdef const Attention* a = w.a
    cdef Py_ssize_t row = first_row, rows, key, keys, i, query
    cdef double[1] dot
    if dq != NULL:
        dq += (b * a.n_queries + first_row) * a.width * w.size
        memset(dq, 0, (stop_row - first_row) * a.width * w.size)
    if dk != NULL:
        dk += (b * a.n_keys + first_key) * a.width * w.size
        memset(dk, 0, (stop_key - first_key) * a.width * w.size)
    if dv != NULL:
        dv += (b * a.n_keys + first_key) * a.out_width * w.size
        memset(dv, 0, (stop_key - first_key) * a.out_width * w.size)
    while row < stop_row:
        rows = min(stop_row - row, <Py_ssize_t> ROWS)
        for i in range(rows if dq != NULL or dk != NULL else 0):          # sum(g * out) of each query
            query = b * a.n_queries + row + i
            row_products(w, 1, 1, a.out_width, start_of(&a.g, b, row + i, w.size), 0, a.out + query * a.out_width * w.size, 0, <char*> dot)
            s.total[i] = number_at(w, <char*> dot, 0)
        key = first_key
        while key < stop_key and not (a.causal and key > row + rows - 1):
            keys = min(stop_key - key, <Py_ssize_t> KEYS)
            differentiate(w, s, b, row, rows, key, keys, NULL if dq == NULL else dq + (row - first_row) * a.width * w.size,
                          NULL if dk == NULL else dk + (key - first_key) * a.width * w.size,
                          NULL if dv == NULL else dv + (key - first_key) * a.out_width * w.size)
            key += keys
        row += rows


cdef void differentiate_units(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Problems, or their blocks of queries or keys."""
    cdef Work* w = <Work*> context
    cdef const Attention* a = w.a
    cdef Scratch s
    cdef Py_ssize_t unit, b, first
    if not make_scratch(&s, w.size):
        w.failed = True
        return
    for unit in range(start, stop):
        b, first = unit // w.units, unit % w.units
        if a.n_batch >= MANY:
            differentiate_part(w, &s, b, 0, a.n_queries, 0, a.n_keys, a.dq, a.dk, a.dv)
        elif w.by_keys:
            differentiate_part(w, &s, b, 0, a.n_queries, first * KEYS, min(a.n_keys, (first + 1) * KEYS), NULL, a.dk, a.dv)
        else:
            differentiate_part(w, &s, b, first * ROWS, min(a.n_queries, (first + 1) * ROWS), 0, a.n_keys, a.dq, NULL, NULL)
    free(s.scores)


cdef int run_attention_backward(const Attention* a) noexcept nogil:
    cdef Work w = work_of(a)
    if a.n_batch >= MANY:
        run_units(&w, True, 2.5 * cost_of(a))
        return -1 if w.failed else 0
    if a.dq != NULL:
        w.units = (a.n_queries + ROWS - 1) // ROWS
        run_units(&w, True, 1.5 * cost_of(a))
    if a.dk != NULL or a.dv != NULL:
        w.units, w.by_keys = (a.n_keys + KEYS - 1) // KEYS, True
        run_units(&w, True, 2 * cost_of(a))
    return -1 if w.failed else 0
