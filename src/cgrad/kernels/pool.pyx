"""Windows that slide over one to three axes, and elements at places: the loops behind max_pool, avg_pool, their adaptive kin and grid_sample.

Owns what pool.pxd declares, called by core/forward/pool.pyx.  Nothing takes the GIL, nothing is allocated, nothing fails.  A row of
results is computed at once, one element (tap) of all its windows after the other: which windows have that tap inside is a range known
before, so the inner loop runs over results without a test and takes vectors.  Where windows are uneven, or few and long, they are
taken one by one.  Results are split over threads by rows, gradients by planes, each written by one thread: the bits do not depend on
the threads.  Means of float32 are summed in float64.

Read next: core/forward/pool.pyx.
"""
from libc.math cimport INFINITY
from libc.stdint cimport INT64_MIN, int32_t, int64_t
from libc.string cimport memset

from cgrad.kernels.parallel cimport parallel_for
from cgrad.kernels.table cimport FLOAT32, FLOAT64

cdef enum:
    CHUNK = 16384          # elements that a thread takes at a time, about
    BLOCK = 256            # results whose sums are under way at a time
    LANES = 32             # elements of a long window that are looked at together
    FEW = 8                # windows in a row below which long ones are taken one by one

ctypedef fused real:
    float
    double

ctypedef fused value:
    int64_t
    float
    double


cdef struct Pool:
    int dtype
    const Axis* depth
    const Axis* height
    const Axis* width
    Py_ssize_t n, n_out    # elements of a plane
    const char* x
    char* out
    int32_t* places


cdef inline bint by_taps(const Axis* width) noexcept nogil:
    return width.stride > 0 and width.n_out >= min(width.n_taps, <Py_ssize_t> FEW)


cdef inline Py_ssize_t taps(const Pool* p) noexcept nogil:
    """Elements of a window, at most."""
    return p.depth.n_taps * p.height.n_taps * p.width.n_taps


# ---- the largest element -----------------------------------------------------------------------------------------------------------

cdef inline bint beats(value x, value best) noexcept nogil:
    """Whether x is larger, or NaN, which nothing is larger than."""
    if value is int64_t:
        return x > best
    else:
        return (x > best) | (x != x)


cdef inline void larger(const value* x, Py_ssize_t stride, int32_t place, value* best, int32_t* places, Py_ssize_t n) noexcept nogil:
    """One tap of n windows: x[0], x[stride], ...  Bits are chosen by a mask, since branches that depend on data cost ten times as much."""
    cdef Py_ssize_t i
    cdef int32_t wins
    cdef int64_t wide
    for i in range(n):
        wins = -<int32_t> beats(x[i * stride], best[i])
        if value is float:
            (<int32_t*> best)[i] = (wins & (<const int32_t*> x)[i * stride]) | (~wins & (<int32_t*> best)[i])
        else:
            wide = wins
            (<int64_t*> best)[i] = (wide & (<const int64_t*> x)[i * stride]) | (~wide & (<int64_t*> best)[i])
        places[i] = (wins & (place + <int32_t> (i * stride))) | (~wins & places[i])


cdef inline bint any_beats(const value* x, value best) noexcept nogil:
    """Whether one of LANES elements may be larger, or NaN: is not less or equal."""
    cdef Py_ssize_t i
    cdef int32_t found = 0
    for i in range(LANES):
        found |= -<int32_t> (not x[i] <= best)
    return found != 0


cdef void max_row(const Pool* p, const value* row, int32_t place, value* best, int32_t* places) noexcept nogil:
    """The windows of a row of results joined with one row of their elements, whose first has this place in its plane."""
    cdef const Axis* w = p.width
    cdef Py_ssize_t t, i, j, low, shift
    if by_taps(w):
        for t in range(w.n_taps):
            low = w.low[t]
            shift = low * w.stride + w.shift[t]
            if w.stride == 1:
                larger(row + shift, 1, place + <int32_t> shift, best + low, places + low, w.high[t] - low)
            elif w.stride == 2:
                larger(row + shift, 2, place + <int32_t> shift, best + low, places + low, w.high[t] - low)
            else:
                larger(row + shift, w.stride, place + <int32_t> shift, best + low, places + low, w.high[t] - low)
    else:
        for t in range(w.n_out):
            i = 0
            while i < w.count[t]:
                j = w.first[t] + i * w.step
                if w.step == 1 and i + LANES <= w.count[t] and not any_beats(row + j, best[t]):
                    i += LANES
                    continue
                if beats(row[j], best[t]):
                    best[t] = row[j]
                    places[t] = place + <int32_t> j
                i += 1


cdef void max_rows(const Pool* p, const value* x, value* out, value lowest, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Rows start..stop-1 of the results."""
    cdef const Axis* d = p.depth
    cdef const Axis* h = p.height
    cdef const Axis* w = p.width
    cdef Py_ssize_t r, plane, od, oh, i, j, place
    cdef value* best
    cdef int32_t* places
    for r in range(start, stop):
        oh = r % h.n_out
        od = r // h.n_out % d.n_out
        plane = r // (h.n_out * d.n_out)
        best = out + r * w.n_out
        places = p.places + r * w.n_out
        place = (d.first[od] * h.n + h.first[oh]) * w.n
        for i in range(w.n_out):
            best[i] = lowest
            places[i] = <int32_t> (place + w.first[i]) if d.count[od] and h.count[oh] and w.count[i] else -1
        for i in range(d.count[od]):
            for j in range(h.count[oh]):
                place = ((d.first[od] + i * d.step) * h.n + h.first[oh] + j * h.step) * w.n
                max_row(p, x + plane * p.n + place, <int32_t> place, best, places)


cdef void max_part(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Pool* p = <const Pool*> context
    if p.dtype == FLOAT32:
        max_rows(p, <const float*> p.x, <float*> p.out, <float> -INFINITY, start, stop)
    elif p.dtype == FLOAT64:
        max_rows(p, <const double*> p.x, <double*> p.out, <double> -INFINITY, start, stop)
    else:
        max_rows(p, <const int64_t*> p.x, <int64_t*> p.out, <int64_t> INT64_MIN, start, stop)


# ---- means -------------------------------------------------------------------------------------------------------------------------

cdef inline void add_tap(const real* x, Py_ssize_t stride, double* total, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        total[i] += x[i * stride]


cdef inline void add_row(const Axis* w, const real* row, double* total, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """One row of elements added to the sums of windows start..stop-1."""
    cdef Py_ssize_t t, j, low, n
    cdef const real* x
    cdef double a, b, c, d
    if by_taps(w):
        for t in range(w.n_taps):
            low = max(start, w.low[t])
            n = min(stop, w.high[t]) - low
            x = row + low * w.stride + w.shift[t]
            if w.stride == 1:
                add_tap(x, 1, total + low - start, n)
            elif w.stride == 2:
                add_tap(x, 2, total + low - start, n)
            else:
                add_tap(x, w.stride, total + low - start, n)
    else:
        for t in range(start, stop):
            x = row + w.first[t]
            a = b = c = d = 0
            for j in range(0, w.count[t] - 3, 4):
                a += x[j]
                b += x[j + 1]
                c += x[j + 2]
                d += x[j + 3]
            for j in range(w.count[t] & ~3, w.count[t]):
                a += x[j]
            total[t - start] += (a + b) + (c + d)


cdef void average_rows(const Pool* p, const real* x, real* out, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef double[BLOCK] total
    cdef const Axis* d = p.depth
    cdef const Axis* h = p.height
    cdef const Axis* w = p.width
    cdef Py_ssize_t r, od, oh, ow, i, j, n
    cdef const real* corner
    cdef double divisor
    for r in range(start, stop):
        oh = r % h.n_out
        od = r // h.n_out % d.n_out
        corner = x + r // (h.n_out * d.n_out) * p.n + (d.first[od] * h.n + h.first[oh]) * w.n
        divisor = d.divisor[od] * h.divisor[oh]
        ow = 0
        while ow < w.n_out:
            n = min(<Py_ssize_t> BLOCK, w.n_out - ow)
            for i in range(n):
                total[i] = 0
            for i in range(d.count[od]):
                for j in range(h.count[oh]):
                    add_row(w, corner + (i * h.n + j) * w.n, total, ow, ow + n)
            for i in range(n):
                out[r * w.n_out + ow + i] = <real> (total[i] / (divisor * w.divisor[ow + i]))
            ow += n


cdef void average_part(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Pool* p = <const Pool*> context
    if p.dtype == FLOAT32:
        average_rows(p, <const float*> p.x, <float*> p.out, start, stop)
    else:
        average_rows(p, <const double*> p.x, <double*> p.out, start, stop)


cdef inline void spread_tap(const real* share, Py_ssize_t stride, real* out, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        out[i * stride] += share[i]


cdef inline void spread_row(const Axis* w, const real* share, real* row, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """The shares of windows start..stop-1 added to one row of their elements."""
    cdef Py_ssize_t t, j, low, n
    cdef real* out
    if by_taps(w):
        for t in range(w.n_taps):
            low = max(start, w.low[t])
            n = min(stop, w.high[t]) - low
            out = row + low * w.stride + w.shift[t]
            if w.stride == 1:
                spread_tap(share + low - start, 1, out, n)
            elif w.stride == 2:
                spread_tap(share + low - start, 2, out, n)
            else:
                spread_tap(share + low - start, w.stride, out, n)
    else:
        for t in range(start, stop):
            for j in range(w.first[t], w.first[t] + w.count[t]):
                row[j] += share[t - start]


cdef void spread_planes(const Pool* p, const real* g, real* out, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef real[BLOCK] share
    cdef const Axis* d = p.depth
    cdef const Axis* h = p.height
    cdef const Axis* w = p.width
    cdef Py_ssize_t r, od, oh, ow, i, j, n
    cdef real* corner
    cdef double divisor
    memset(out + start * p.n, 0, (stop - start) * p.n * sizeof(real))
    for r in range(start * d.n_out * h.n_out, stop * d.n_out * h.n_out):
        oh = r % h.n_out
        od = r // h.n_out % d.n_out
        corner = out + r // (h.n_out * d.n_out) * p.n + (d.first[od] * h.n + h.first[oh]) * w.n
        divisor = d.divisor[od] * h.divisor[oh]
        ow = 0
        while ow < w.n_out:
            n = min(<Py_ssize_t> BLOCK, w.n_out - ow)
            for i in range(n):
                share[i] = <real> (g[r * w.n_out + ow + i] / (divisor * w.divisor[ow + i]))
            for i in range(d.count[od]):
                for j in range(h.count[oh]):
                    spread_row(w, share, corner + (i * h.n + j) * w.n, ow, ow + n)
            ow += n


cdef void spread_part(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Pool* p = <const Pool*> context
    if p.dtype == FLOAT32:
        spread_planes(p, <const float*> p.x, <float*> p.out, start, stop)
    else:
        spread_planes(p, <const double*> p.x, <double*> p.out, start, stop)


# ---- reading and writing at places ---------------------------------------------------------------------------------------------------

cdef void pick_planes(const Pool* p, const real* x, real* out, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Py_ssize_t plane, k
    for plane in range(start, stop):
        for k in range(plane * p.n_out, (plane + 1) * p.n_out):
            out[k] = x[plane * p.n + p.places[k]] if p.places[k] >= 0 else 0


cdef void pick_part(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Pool* p = <const Pool*> context
    if p.dtype == FLOAT32:
        pick_planes(p, <const float*> p.x, <float*> p.out, start, stop)
    else:
        pick_planes(p, <const double*> p.x, <double*> p.out, start, stop)


cdef void place_planes(const Pool* p, const real* g, real* out, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Py_ssize_t plane, k
    for plane in range(start, stop):                      # one at a time, so that what is set to zero is still in the cache
        memset(out + plane * p.n, 0, p.n * sizeof(real))
        for k in range(plane * p.n_out, (plane + 1) * p.n_out):
            if p.places[k] >= 0:
                out[plane * p.n + p.places[k]] += g[k]


cdef void place_part(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Pool* p = <const Pool*> context
    if p.dtype == FLOAT32:
        place_planes(p, <const float*> p.x, <float*> p.out, start, stop)
    else:
        place_planes(p, <const double*> p.x, <double*> p.out, start, stop)


# ---- weighted sums of elements at places ---------------------------------------------------------------------------------------------

cdef struct Sample:
    int dtype
    Py_ssize_t channels, n, n_taps, n_out
    const char* x          # the elements, or a gradient
    const char* y          # the weights, or the elements
    const int32_t* places
    char* out


cdef void sample_planes(const Sample* s, const real* x, const real* weights, real* out, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Py_ssize_t plane, t, k
    cdef const int32_t* places
    cdef const real* weight
    for plane in range(start, stop):
        memset(out + plane * s.n_out, 0, s.n_out * sizeof(real))
        for t in range(s.n_taps):
            places = s.places + (plane // s.channels * s.n_taps + t) * s.n_out
            weight = weights + (plane // s.channels * s.n_taps + t) * s.n_out
            for k in range(s.n_out):
                out[plane * s.n_out + k] += weight[k] * (x[plane * s.n + places[k]] if places[k] >= 0 else 0)


cdef void sample_part(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Sample* s = <const Sample*> context
    if s.dtype == FLOAT32:
        sample_planes(s, <const float*> s.x, <const float*> s.y, <float*> s.out, start, stop)
    else:
        sample_planes(s, <const double*> s.x, <const double*> s.y, <double*> s.out, start, stop)


cdef void sample_spread_planes(const Sample* s, const real* g, const real* weights, real* out, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Py_ssize_t plane, t, k
    cdef const int32_t* places
    cdef const real* weight
    for plane in range(start, stop):
        memset(out + plane * s.n, 0, s.n * sizeof(real))
        for t in range(s.n_taps):
            places = s.places + (plane // s.channels * s.n_taps + t) * s.n_out
            weight = weights + (plane // s.channels * s.n_taps + t) * s.n_out
            for k in range(s.n_out):
                if places[k] >= 0:
                    out[plane * s.n + places[k]] += weight[k] * g[plane * s.n_out + k]


cdef void sample_spread_part(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Sample* s = <const Sample*> context
    if s.dtype == FLOAT32:
        sample_spread_planes(s, <const float*> s.x, <const float*> s.y, <float*> s.out, start, stop)
    else:
        sample_spread_planes(s, <const double*> s.x, <const double*> s.y, <double*> s.out, start, stop)


cdef void sample_weights_rows(const Sample* s, const real* g, const real* x, real* out, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Rows of weights: one for each tap of each image."""
    cdef Py_ssize_t row, plane, k
    cdef const int32_t* places
    for row in range(start, stop):
        memset(out + row * s.n_out, 0, s.n_out * sizeof(real))
        places = s.places + row * s.n_out
        for plane in range(row // s.n_taps * s.channels, (row // s.n_taps + 1) * s.channels):
            for k in range(s.n_out):
                out[row * s.n_out + k] += g[plane * s.n_out + k] * (x[plane * s.n + places[k]] if places[k] >= 0 else 0)


cdef void sample_weights_part(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Sample* s = <const Sample*> context
    if s.dtype == FLOAT32:
        sample_weights_rows(s, <const float*> s.x, <const float*> s.y, <float*> s.out, start, stop)
    else:
        sample_weights_rows(s, <const double*> s.x, <const double*> s.y, <double*> s.out, start, stop)


# ---- the doors -----------------------------------------------------------------------------------------------------------------------

cdef Pool plan(int dtype, const Axis* axes, const char* x, char* out, int32_t* places) noexcept nogil:
    cdef Pool p
    p.dtype, p.x, p.out, p.places = dtype, x, out, places
    p.depth, p.height, p.width = axes, axes + 1, axes + 2
    p.n = p.depth.n * p.height.n * p.width.n
    p.n_out = p.depth.n_out * p.height.n_out * p.width.n_out
    return p


cdef void run_max_pool(int dtype, Py_ssize_t planes, const Axis* axes, const char* x, char* out, int32_t* places) noexcept nogil:
    cdef Pool p = plan(dtype, axes, x, out, places)
    cdef double row = <double> p.width.n_out * taps(&p)
    parallel_for(max_part, &p, planes * p.depth.n_out * p.height.n_out, 1 + <Py_ssize_t> (CHUNK / (1 + row)),
                 2.0 * planes * p.depth.n_out * p.height.n_out * row)


cdef void run_average_pool(int dtype, Py_ssize_t planes, const Axis* axes, const char* x, char* out) noexcept nogil:
    cdef Pool p = plan(dtype, axes, x, out, NULL)
    cdef double row = <double> p.width.n_out * taps(&p)
    parallel_for(average_part, &p, planes * p.depth.n_out * p.height.n_out, 1 + <Py_ssize_t> (CHUNK / (1 + row)),
                 1.0 * planes * p.depth.n_out * p.height.n_out * row)


cdef void run_average_spread(int dtype, Py_ssize_t planes, const Axis* axes, const char* g, char* out) noexcept nogil:
    cdef Pool p = plan(dtype, axes, g, out, NULL)
    cdef double plane = p.n + <double> p.n_out * taps(&p)
    parallel_for(spread_part, &p, planes, 1 + <Py_ssize_t> (CHUNK / plane), planes * plane)


cdef void run_pick(int dtype, Py_ssize_t planes, Py_ssize_t n, Py_ssize_t n_out, const char* x, const int32_t* places, char* out) noexcept nogil:
    cdef Pool p
    p.dtype, p.x, p.out, p.places, p.n, p.n_out = dtype, x, out, <int32_t*> places, n, n_out
    parallel_for(pick_part, &p, planes, 1 + CHUNK // (n_out + 1), 3.0 * planes * n_out)


cdef void run_place(int dtype, Py_ssize_t planes, Py_ssize_t n, Py_ssize_t n_out, const char* g, const int32_t* places, char* out) noexcept nogil:
    cdef Pool p
    p.dtype, p.x, p.out, p.places, p.n, p.n_out = dtype, g, out, <int32_t*> places, n, n_out
    parallel_for(place_part, &p, planes, 1 + CHUNK // (n + 1), <double> planes * (0.25 * n + 3.0 * n_out))


cdef void run_sample(int dtype, Py_ssize_t images, Py_ssize_t channels, Py_ssize_t n, Py_ssize_t n_taps, Py_ssize_t n_out, const char* x,
                     const char* weights, const int32_t* places, char* out) noexcept nogil:
    cdef Sample s
    s.dtype, s.channels, s.n, s.n_taps, s.n_out = dtype, channels, n, n_taps, n_out
    s.x, s.y, s.places, s.out = x, weights, places, out
    parallel_for(sample_part, &s, images * channels, 1, 3.0 * images * channels * n_taps * n_out)


cdef void run_sample_spread(int dtype, Py_ssize_t images, Py_ssize_t channels, Py_ssize_t n, Py_ssize_t n_taps, Py_ssize_t n_out, const char* g,
                            const char* weights, const int32_t* places, char* out) noexcept nogil:
    cdef Sample s
    s.dtype, s.channels, s.n, s.n_taps, s.n_out = dtype, channels, n, n_taps, n_out
    s.x, s.y, s.places, s.out = g, weights, places, out
    parallel_for(sample_spread_part, &s, images * channels, 1, 3.0 * images * channels * n_taps * n_out)


cdef void run_sample_weights(int dtype, Py_ssize_t images, Py_ssize_t channels, Py_ssize_t n, Py_ssize_t n_taps, Py_ssize_t n_out, const char* g,
                             const char* x, const int32_t* places, char* out) noexcept nogil:
    cdef Sample s
    s.dtype, s.channels, s.n, s.n_taps, s.n_out = dtype, channels, n, n_taps, n_out
    s.x, s.y, s.places, s.out = g, x, places, out
    parallel_for(sample_weights_part, &s, images * n_taps, 1, 3.0 * images * channels * n_taps * n_out)
