"""The split over threads for normalising rows (layer_norm, rms_norm) and channels (batch_norm, group_norm, instance_norm).

Owns run_norm, run_channel_norm and their backward passes (contracts in norm.pxd), called by core/forward/norm.pyx.  Nothing takes the
GIL.  Each row is computed by one thread, and so is all that shares a mean, a *unit*: a channel, or a group of channels in one sample.
The gradients of weight and bias, sums over all rows, are summed in float64 within chunks of rows that depend on the shape alone, then
over the chunks in their order: the bits never depend on the threads.

Read next: norm.pxi.
"""
from libc.math cimport sqrt
from libc.string cimport memset

from cgrad.kernels.dispatch cimport kernel_table
from cgrad.kernels.parallel cimport parallel_for
from cgrad.kernels.table cimport MAX_COLUMNS, DTypeId, NormTable, norm_backward_t, norm_forward_t

cdef enum:
    CHUNK = 16384          # elements that a thread takes at a time, at least
    MAX_CHUNKS = 64        # of backward, each of which has sums of its own:
    CHUNK_SUMS = 2         # n for the weight, n for the bias
    WEIGHT = 4             # cost of an element in additions
    BLOCK = 4096           # elements whose moments are taken while they are in L1
    SHORT = 16             # runs of a channel that are shorter are treated as columns, WIDTH of them at a time, ROWS rows at a time
    WIDTH = 32
    ROWS = 128

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
    if plan.sums != NULL:
        sums = plan.sums + start // plan.chunk * CHUNK_SUMS * plan.n
        memset(sums, 0, CHUNK_SUMS * plan.n * sizeof(double))
    plan.backward(plan.g + offset, plan.x + offset, plan.w, plan.out + offset if plan.out != NULL else NULL, sums, stop - start,
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


# ---- channels ----------------------------------------------------------------------------------------------------------------------------

cdef struct Channels:
    const NormTable* loops
    int which                  # dtype, as the loops count
    Py_ssize_t size            # bytes of an element
    Py_ssize_t samples, channels, extent, groups
    double eps
    bint given
    const char* g
    const char* x
    const char* w
    const char* b
    char* out                  # or dx
    double* moments
    double* sums


cdef struct Unit:              # its runs: number first, first + step, ... of all runs in memory
    Py_ssize_t first, step, runs
    Py_ssize_t channel, channel_step


cdef inline Unit unit_of(const Channels* p, Py_ssize_t index) noexcept nogil:
    cdef Unit u
    if p.groups == 0:
        u.first, u.step, u.runs = index, p.channels, p.samples
        u.channel, u.channel_step = index, 0
    else:
        u.runs = p.channels // p.groups
        u.first, u.step = index * u.runs, 1
        u.channel, u.channel_step = index % p.groups * u.runs, 1
    return u


cdef inline double number_at(const Channels* p, const char* values, Py_ssize_t i, double neutral) noexcept nogil:
    """values[i], or what changes nothing where there are none."""
    if values == NULL:
        return neutral
    return (<const float*> values)[i] if p.which == 0 else (<const double*> values)[i]


cdef inline double deviation(const Channels* p, Py_ssize_t index) noexcept nogil:
    return sqrt(p.moments[2 * index + 1] + p.eps)


cdef inline void join_moments(double* mean, double* square, Py_ssize_t before, double mean_of_more, double square_of_more,
                              Py_ssize_t more) noexcept nogil:
    """Moments of two sets from theirs, by Chan, Golub and LeVeque, 1983."""
    cdef double d = mean_of_more - mean[0], share = <double> more / (before + more)
    mean[0] += d * share
    square[0] += square_of_more + d * d * share * before


cdef void unit_moments(const Channels* p, Unit u, double* moments) noexcept nogil:
    cdef Py_ssize_t run, i, n, count = 0, length = p.extent
    cdef const char* x
    cdef double mean, square
    if u.step == 1:                # one run after the other: they are one
        length, u.runs = length * u.runs, 1
    moments[0] = moments[1] = 0
    for run in range(u.runs):
        x = p.x + (u.first + run * u.step) * p.extent * p.size
        i = 0
        while i < length:
            n = min(length - i, <Py_ssize_t> BLOCK)
            square = p.loops.spread[p.which](x + i * p.size, n, &mean)
            join_moments(moments, moments + 1, count, mean, square, n)
            count += n
            i += n
    moments[1] /= count


cdef void forward_units(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Channels* p = <const Channels*> context
    cdef Py_ssize_t index, run, channel, offset
    cdef double scale
    cdef Unit u
    for index in range(start, stop):
        u = unit_of(p, index)
        if not p.given:
            unit_moments(p, u, p.moments + 2 * index)
        scale = 1.0 / deviation(p, index)
        for run in range(u.runs):
            channel = u.channel + run * u.channel_step
            offset = (u.first + run * u.step) * p.extent * p.size
            p.loops.apply[p.which](p.x + offset, p.out + offset, p.extent, p.moments[2 * index],
                                   scale * number_at(p, p.w, channel, 1.0), number_at(p, p.b, channel, -0.0))     # y + -0.0 is y for every y


cdef void backward_units(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Channels* p = <const Channels*> context
    cdef Py_ssize_t index, run, offset
    cdef double scale, mean, total, along, w
    cdef double* sums
    cdef Unit u
    for index in range(start, stop):
        u = unit_of(p, index)
        scale = 1.0 / deviation(p, index)
        mean = p.moments[2 * index]
        total = along = 0
        for run in range(u.runs):
            offset = (u.first + run * u.step) * p.extent * p.size
            sums = p.sums + 2 * (u.first + run * u.step)
            w = number_at(p, p.w, u.channel + run * u.channel_step, 1.0)
            p.loops.products[p.which](p.g + offset, p.x + offset, p.extent, mean, sums, sums + 1)
            sums[1] *= scale
            total += w * sums[0]
            along += w * sums[1]
        total /= u.runs * p.extent
        along /= u.runs * p.extent
        for run in range(u.runs if p.out != NULL else 0):
            offset = (u.first + run * u.step) * p.extent * p.size
            w = number_at(p, p.w, u.channel + run * u.channel_step, 1.0)
            if p.given:
                p.loops.apply[p.which](p.g + offset, p.out + offset, p.extent, 0.0, w * scale, -0.0)
            else:
                p.loops.slope[p.which](p.g + offset, p.x + offset, p.out + offset, p.extent, mean, scale, w, along, total)


# Short runs over all samples: channels start <= c < stop are `width` columns of a matrix with a row for each sample.

cdef void column_moments(const Channels* p, const char* x, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef double[MAX_COLUMNS] mean
    cdef double[MAX_COLUMNS] square
    cdef Py_ssize_t width = (stop - start) * p.extent, row = p.channels * p.extent, i = 0, n, j
    cdef double* moments
    memset(p.moments + 2 * start, 0, (stop - start) * 2 * sizeof(double))
    while i < p.samples:
        n = min(p.samples - i, <Py_ssize_t> ROWS)
        p.loops.column_spread[p.which](x + i * row * p.size, row, n, width, mean, square)
        for j in range(width):
            moments = p.moments + 2 * (start + j // p.extent)
            join_moments(moments, moments + 1, i * p.extent + j % p.extent * n, mean[j], square[j], n)
        i += n
    for j in range(start, stop):
        p.moments[2 * j + 1] /= p.samples * p.extent


cdef void forward_columns(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Channels* p = <const Channels*> context
    cdef double[MAX_COLUMNS] mean
    cdef double[MAX_COLUMNS] scale
    cdef double[MAX_COLUMNS] shift
    cdef Py_ssize_t width = (stop - start) * p.extent, row = p.channels * p.extent, offset = start * p.extent * p.size, j, channel
    if not p.given:
        column_moments(p, p.x + offset, start, stop)
    for j in range(width):
        channel = start + j // p.extent
        mean[j] = p.moments[2 * channel]
        scale[j] = number_at(p, p.w, channel, 1.0) / deviation(p, channel)
        shift[j] = number_at(p, p.b, channel, -0.0)
    p.loops.column_apply[p.which](p.x + offset, p.out + offset, row, p.samples, width, mean, scale, shift)


cdef void backward_columns(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Channels* p = <const Channels*> context
    cdef double[MAX_COLUMNS] mean
    cdef double[MAX_COLUMNS] scale
    cdef double[MAX_COLUMNS] weight
    cdef double[MAX_COLUMNS] along
    cdef double[MAX_COLUMNS] shift
    cdef Py_ssize_t width = (stop - start) * p.extent, row = p.channels * p.extent, offset = start * p.extent * p.size, j, channel
    cdef double count = p.samples * p.extent
    memset(mean, 0, sizeof(mean))          # gcc cannot see that width is at least 1
    for j in range(width):
        channel = start + j // p.extent
        mean[j] = p.moments[2 * channel]
        scale[j] = 1.0 / deviation(p, channel)
        weight[j] = number_at(p, p.w, channel, 1.0)
    p.loops.column_products[p.which](p.g + offset, p.x + offset, row, p.samples, width, mean, shift, along)
    memset(p.sums + 2 * start, 0, (stop - start) * 2 * sizeof(double))
    for j in range(width):
        channel = start + j // p.extent
        p.sums[2 * channel] += shift[j]
        p.sums[2 * channel + 1] += along[j] * scale[j]
    if p.out == NULL:
        return
    for j in range(width):
        channel = start + j // p.extent
        shift[j] = weight[j] * p.sums[2 * channel] / count
        along[j] = weight[j] * p.sums[2 * channel + 1] / count
        if p.given:
            mean[j] = 0
            scale[j] *= weight[j]
            shift[j] = -0.0
    if p.given:
        p.loops.column_apply[p.which](p.g + offset, p.out + offset, row, p.samples, width, mean, scale, shift)
    else:
        p.loops.column_slope[p.which](p.g + offset, p.x + offset, p.out + offset, row, p.samples, width, mean, scale, weight, along, shift)


cdef void fill_channels(Channels* p, int dtype, Py_ssize_t samples, Py_ssize_t channels, Py_ssize_t extent, Py_ssize_t groups,
                        const char* x, const char* w, double eps, bint given, double* moments) noexcept nogil:
    p.loops = &kernel_table().norm
    p.which = dtype - <int> DTypeId.FLOAT32
    p.size = 4 if dtype == DTypeId.FLOAT32 else 8
    p.samples, p.channels, p.extent, p.groups = samples, channels, extent, groups
    p.x, p.w, p.moments = x, w, moments
    p.eps, p.given = eps, given


cdef inline bint as_columns(const Channels* p) noexcept nogil:
    return p.groups == 0 and p.extent < SHORT


cdef void run_channels(Channels* p, bint backward) noexcept nogil:
    cdef Py_ssize_t elements = p.samples * p.channels * p.extent, units = p.samples * p.groups if p.groups else p.channels
    cdef double cost = <double> (2 if backward else 1) * WEIGHT * elements
    if as_columns(p):
        parallel_for(backward_columns if backward else forward_columns, p, p.channels, max(1, WIDTH // p.extent), cost)
    else:
        parallel_for(backward_units if backward else forward_units, p, units, max(1, CHUNK * units // elements), cost)


cdef void run_channel_norm(int dtype, Py_ssize_t samples, Py_ssize_t channels, Py_ssize_t extent, Py_ssize_t groups, const char* x,
                           const char* w, const char* b, double eps, bint given, double* moments, char* out) noexcept nogil:
    cdef Channels p
    fill_channels(&p, dtype, samples, channels, extent, groups, x, w, eps, given, moments)
    p.b, p.out = b, out
    run_channels(&p, False)


cdef void store_channel_sums(const double* sums, Py_ssize_t rows, Py_ssize_t channels, real* out) noexcept nogil:
    """out[c] = sum over i of sums[2 * (i * channels + c)]"""
    cdef Py_ssize_t i, c
    cdef double total
    for c in range(channels):
        total = 0
        for i in range(rows):
            total += sums[2 * (i * channels + c)]
        out[c] = <real> total


cdef void run_channel_norm_backward(int dtype, Py_ssize_t samples, Py_ssize_t channels, Py_ssize_t extent, Py_ssize_t groups, const char* g,
                                    const char* x, const char* w, double eps, bint given, const double* moments, double* sums, char* dx,
                                    char* dw, char* db) noexcept nogil:
    cdef Channels p
    cdef Py_ssize_t rows, i
    cdef char* target
    fill_channels(&p, dtype, samples, channels, extent, groups, x, w, eps, given, <double*> moments)
    p.g, p.out, p.sums = g, dx, sums
    run_channels(&p, True)
    rows = 1 if as_columns(&p) else samples
    for i in range(2):
        target = dw if i else db
        if target != NULL and dtype == DTypeId.FLOAT32:
            store_channel_sums(sums + i, rows, channels, <float*> target)
        elif target != NULL:
            store_channel_sums(sums + i, rows, channels, <double*> target)
