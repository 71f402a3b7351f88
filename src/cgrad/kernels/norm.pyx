"""The split over threads for layer_norm and rms_norm, forward and backward.

Owns run_norm and run_norm_backward (contracts in norm.pxd), called by core/forward/norm.pyx.  Nothing takes the GIL.  Each row is
computed by one thread.  The gradients of weight and bias, sums over all rows, are summed in float64 within chunks of rows that depend
on the shape alone, then over the chunks in their order: the bits never depend on the threads.

Read next: norm.pxi.
"""
from libc.string cimport memset

from cgrad.kernels.dispatch cimport kernel_table
from cgrad.kernels.parallel cimport parallel_for
from cgrad.kernels.table cimport DTypeId, norm_backward_t, norm_forward_t

cdef enum:
    CHUNK = 16384          # elements that a thread takes at a time, at least
    MAX_CHUNKS = 64        # of backward, each of which has sums of its own:
    CHUNK_SUMS = 4         # n for the weight, n for the bias, and room for 2 n more
    WEIGHT = 4             # cost of an element in additions

ctypedef fused real:
    float
    double


cdef struct NormPlan:
    norm_forward_t forward
    norm_backward_t backward
    Py_ssize_t row_bytes, n, chunk
    double eps
    bint centred
    const char* g
    const char* x
    const char* w
    const char* b
    char* out              # or dx
    double* sums           # CHUNK_SUMS * n for each chunk, or NULL


cdef void forward_rows(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const NormPlan* plan = <const NormPlan*> context
    cdef Py_ssize_t offset = start * plan.row_bytes
    plan.forward(plan.x + offset, plan.w, plan.b, plan.out + offset, stop - start, plan.n, plan.eps, plan.centred)


cdef void backward_rows(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const NormPlan* plan = <const NormPlan*> context
    cdef Py_ssize_t offset = start * plan.row_bytes
    cdef double* sums = NULL
    cdef char* few = NULL
    if plan.sums != NULL:
        sums = plan.sums + start // plan.chunk * CHUNK_SUMS * plan.n
        memset(sums, 0, CHUNK_SUMS * plan.n * sizeof(double))
        few = <char*> (sums + 2 * plan.n)
    plan.backward(plan.g + offset, plan.x + offset, plan.w, plan.out + offset if plan.out != NULL else NULL, few, sums, stop - start,
                  plan.n, plan.eps, plan.centred)


cdef void fill_plan(NormPlan* plan, int dtype, Py_ssize_t n, const char* x, const char* w, double eps, bint centred) noexcept nogil:
    plan.forward = kernel_table().norm.forward[dtype - <int> DTypeId.FLOAT32]
    plan.backward = kernel_table().norm.backward[dtype - <int> DTypeId.FLOAT32]
    plan.row_bytes = n * (4 if dtype == DTypeId.FLOAT32 else 8)
    plan.n, plan.eps, plan.centred = n, eps, centred
    plan.x, plan.w = x, w


cdef void run_norm(int dtype, Py_ssize_t rows, Py_ssize_t n, const char* x, const char* w, const char* b, double eps, bint centred,
                   char* out) noexcept nogil:
    cdef NormPlan plan
    fill_plan(&plan, dtype, n, x, w, eps, centred)
    plan.b, plan.out = b, out
    parallel_for(forward_rows, &plan, rows, max(1, CHUNK // n), <double> WEIGHT * rows * n)


cdef void add_chunks(double* sums, Py_ssize_t n_chunks, Py_ssize_t n) noexcept nogil:
    """The sums of all chunks, into those of the first."""
    cdef Py_ssize_t chunk, i
    for chunk in range(1, n_chunks):
        for i in range(2 * n):
            sums[i] += sums[chunk * CHUNK_SUMS * n + i]


cdef void round_row(const double* sums, Py_ssize_t n, real* out) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = <real> sums[i]


cdef void store_sums(int dtype, const double* sums, Py_ssize_t n, char* out) noexcept nogil:
    if out == NULL:
        return
    if dtype == DTypeId.FLOAT32:
        round_row(sums, n, <float*> out)
    else:
        round_row(sums, n, <double*> out)


cdef inline Py_ssize_t chunk_rows(Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    return max(1, CHUNK // n, (rows + MAX_CHUNKS - 1) // MAX_CHUNKS)


cdef Py_ssize_t norm_scratch(Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t chunk = chunk_rows(rows, n)
    return max(1, (rows + chunk - 1) // chunk) * CHUNK_SUMS * n


cdef void run_norm_backward(int dtype, Py_ssize_t rows, Py_ssize_t n, const char* g, const char* x, const char* w, double eps,
                            bint centred, char* dx, char* dw, char* db, double* scratch) noexcept nogil:
    cdef NormPlan plan
    fill_plan(&plan, dtype, n, x, w, eps, centred)
    plan.g, plan.out = g, dx
    plan.chunk = chunk_rows(rows, n)
    plan.sums = scratch if dw != NULL or db != NULL else NULL
    parallel_for(backward_rows, &plan, rows, plan.chunk, <double> 2 * WEIGHT * rows * n)
    if plan.sums != NULL:
        if rows == 0:
            memset(plan.sums, 0, 2 * n * sizeof(double))
        add_chunks(plan.sums, (rows + plan.chunk - 1) // plan.chunk, n)
        store_sums(dtype, plan.sums, n, dw)
        store_sums(dtype, plan.sums + n, n, db)
