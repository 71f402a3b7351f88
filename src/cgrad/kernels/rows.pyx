"""The walk over rows for softmax, log_softmax, their backward passes and logsumexp.

Owns run_row_map and run_logsumexp (contracts in rows.pxd), called by core/forward/softmax.pyx.  Nothing takes the GIL.  Rows go to
threads in chunks that depend on the shape alone, and each row is computed by one of them: the bits never depend on the threads.
Rows that are not contiguous in some operand are moved through scratch, TILE of them at a time, so that where the axis before or
behind is the fast one whole cache lines are read.

Read next: rows.pxi.
"""
from libc.stdlib cimport free, malloc

from cgrad.kernels.dispatch cimport kernel_table
from cgrad.kernels.parallel cimport parallel_for
from cgrad.kernels.table cimport MAX_DIMS, DTypeId, row_fold_t, row_map_t

cdef enum:
    TILE = 16              # rows moved through scratch at a time
    CHUNK = 4096           # elements a thread takes at a time, at least
    WEIGHT = 10            # cost of an element in additions: an exp and three passes


cdef struct RowPlan:
    row_map_t map
    row_fold_t fold
    Py_ssize_t size                       # bytes of an element
    Py_ssize_t n                          # elements of a row
    int n_outer                           # axes across the rows; strides below are in bytes
    Py_ssize_t outer[MAX_DIMS]
    Py_ssize_t x_outer[MAX_DIMS]
    Py_ssize_t y_outer[MAX_DIMS]
    Py_ssize_t out_outer[MAX_DIMS]
    Py_ssize_t x_step, y_step, out_step   # along the row
    const char* x
    const char* y                         # NULL where there is one input
    char* out
    bint failed


cdef void move(char* target, Py_ssize_t target_row, Py_ssize_t target_step, const char* source, Py_ssize_t source_row,
               Py_ssize_t source_step, Py_ssize_t rows, Py_ssize_t n, Py_ssize_t size) noexcept nogil:
    """Copy rows x n elements between two layouts, rows in the inner loop."""
    cdef Py_ssize_t i, j
    cdef char* t
    cdef const char* s
    for i in range(n):
        t = target + i * target_step
        s = source + i * source_step
        if size == 4:
            for j in range(rows):
                (<float*> (t + j * target_row))[0] = (<const float*> (s + j * source_row))[0]
        else:
            for j in range(rows):
                (<double*> (t + j * target_row))[0] = (<const double*> (s + j * source_row))[0]


cdef void map_tile(RowPlan* plan, const char* x, const char* y, char* out, Py_ssize_t rows, char* scratch) noexcept nogil:
    """`rows` neighbours along the last outer axis."""
    cdef Py_ssize_t last = plan.n_outer - 1, j, bytes_per_row = plan.n * plan.size
    cdef Py_ssize_t x_row = plan.x_outer[last], y_row = plan.y_outer[last], out_row = plan.out_outer[last]
    cdef char* part = scratch
    cdef char* target = out
    if plan.x_step != plan.size:
        move(part, bytes_per_row, plan.size, x, x_row, plan.x_step, rows, plan.n, plan.size)
        x, x_row = part, bytes_per_row
        part += TILE * bytes_per_row
    if y != NULL and plan.y_step != plan.size:
        move(part, bytes_per_row, plan.size, y, y_row, plan.y_step, rows, plan.n, plan.size)
        y, y_row = part, bytes_per_row
        part += TILE * bytes_per_row
    if plan.out_step != plan.size:
        target, out_row = part, bytes_per_row
    for j in range(rows):
        plan.map(x + j * x_row, y + j * y_row if y != NULL else NULL, target + j * out_row, plan.n)
    if target != out:
        move(out, plan.out_outer[last], plan.out_step, target, bytes_per_row, plan.size, rows, plan.n, plan.size)


cdef void map_rows(void* context, Py_ssize_t first, Py_ssize_t stop) noexcept nogil:
    """Rows first <= i < stop, counted over the outer axes in C order."""
    cdef RowPlan* plan = <RowPlan*> context
    cdef Py_ssize_t last = plan.n_outer - 1, rest, position, rows, x_offset, y_offset, out_offset, most
    cdef char* scratch = NULL
    cdef int axis
    cdef bint direct = plan.x_step == plan.size and plan.out_step == plan.size and (plan.y == NULL or plan.y_step == plan.size)
    most = stop - first
    if not direct:
        most = TILE
        scratch = <char*> malloc(3 * TILE * plan.n * plan.size)
        if scratch == NULL:
            plan.failed = True
            return
    while first < stop:
        position = first % plan.outer[last]
        rest = first // plan.outer[last]
        x_offset = position * plan.x_outer[last]
        y_offset = position * plan.y_outer[last]
        out_offset = position * plan.out_outer[last]
        for axis in range(last - 1, -1, -1):
            position = rest % plan.outer[axis]
            rest //= plan.outer[axis]
            x_offset += position * plan.x_outer[axis]
            y_offset += position * plan.y_outer[axis]
            out_offset += position * plan.out_outer[axis]
        rows = min(most, stop - first, plan.outer[last] - first % plan.outer[last])
        if plan.fold != NULL:
            for position in range(rows):
                plan.fold(plan.x + x_offset + position * plan.x_outer[last], plan.n, plan.out + out_offset + position * plan.out_outer[last])
        else:
            map_tile(plan, plan.x + x_offset, plan.y + y_offset if plan.y != NULL else NULL, plan.out + out_offset, rows, scratch)
        first += rows
    free(scratch)


cdef void add_outer(RowPlan* plan, Py_ssize_t extent, Py_ssize_t x, Py_ssize_t y, Py_ssize_t out) noexcept nogil:
    """One more axis across the rows, merged with the one before it where memory allows."""
    cdef int last = plan.n_outer - 1
    if extent == 1:
        return
    if last >= 0 and plan.x_outer[last] == extent * x and plan.y_outer[last] == extent * y and plan.out_outer[last] == extent * out:
        plan.outer[last] *= extent
    else:
        last += 1
        plan.n_outer += 1
        plan.outer[last] = extent
    plan.x_outer[last] = x
    plan.y_outer[last] = y
    plan.out_outer[last] = out


cdef void run_plan(RowPlan* plan) noexcept nogil:
    cdef Py_ssize_t count = 1, chunk
    cdef int i
    if plan.n_outer == 0:
        plan.n_outer = 1
        plan.outer[0] = 1
        plan.x_outer[0] = plan.y_outer[0] = plan.out_outer[0] = 0
    for i in range(plan.n_outer):
        count *= plan.outer[i]
    chunk = max(1, CHUNK // plan.n)
    chunk = (chunk + TILE - 1) // TILE * TILE
    plan.failed = False
    parallel_for(map_rows, plan, count, chunk, <double> count * plan.n * WEIGHT)


cdef int run_row_map(int which, int dtype, int ndim, const Py_ssize_t* shape, const char* x, const Py_ssize_t* x_strides,
                     const char* y, const Py_ssize_t* y_strides, int axis, char* out) noexcept nogil:
    cdef RowPlan plan
    cdef Py_ssize_t count = 1
    cdef Py_ssize_t[MAX_DIMS] out_strides
    cdef int i
    plan.size = 4 if dtype == DTypeId.FLOAT32 else 8
    for i in range(ndim - 1, -1, -1):
        out_strides[i] = count * plan.size
        count *= shape[i]
    if count == 0:
        return 0
    plan.map = kernel_table().rows.maps[which][dtype - <int> DTypeId.FLOAT32]
    plan.fold = NULL
    plan.n = shape[axis]
    plan.x, plan.y, plan.out = x, y, out
    plan.x_step = x_strides[axis] * plan.size
    plan.y_step = y_strides[axis] * plan.size if y != NULL else 0
    plan.out_step = out_strides[axis]
    if plan.n == 1:
        plan.x_step = plan.y_step = plan.out_step = plan.size
    plan.n_outer = 0
    for i in range(ndim):
        if i != axis:
            add_outer(&plan, shape[i], x_strides[i] * plan.size, y_strides[i] * plan.size if y != NULL else 0, out_strides[i])
    if y == NULL:
        for i in range(plan.n_outer):
            plan.y_outer[i] = 0
    run_plan(&plan)
    return -1 if plan.failed else 0


cdef void run_logsumexp(int dtype, int ndim, const Py_ssize_t* shape, const char* x, const Py_ssize_t* strides, Py_ssize_t n,
                        char* out) noexcept nogil:
    cdef RowPlan plan
    cdef Py_ssize_t count = 1
    cdef Py_ssize_t[MAX_DIMS] out_strides
    cdef int i
    plan.size = 4 if dtype == DTypeId.FLOAT32 else 8
    for i in range(ndim - 1, -1, -1):
        out_strides[i] = count * plan.size
        count *= shape[i]
    if count == 0:
        return
    plan.map = NULL
    plan.fold = kernel_table().rows.logsumexp[dtype - <int> DTypeId.FLOAT32]
    plan.n = n
    plan.x, plan.y, plan.out = x, NULL, out
    plan.x_step = plan.y_step = plan.out_step = plan.size
    plan.n_outer = 0
    for i in range(ndim):
        add_outer(&plan, shape[i], strides[i] * plan.size, 0, out_strides[i])
    run_plan(&plan)
