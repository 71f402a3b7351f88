"""Optimizer steps: each parameter is read and written once, with its gradient and its state.

Owns run_optimizer (contract in optim.pxd), called by core/forward/optim.pyx.  Nothing takes the GIL; threads split the elements of
all parameters together, which do not depend on each other.  A step goes through a parameter in blocks that stay in L1: `prepare`
does what all rules share, then each rule is a few plain loops over the block.  An Adam step written with tensor operations moves
about 20 arrays through memory, this moves 7.  The formulas are PyTorch's, operation by operation, so that training runs can be
compared; coefficients are computed in float64 and rounded to the parameter's dtype, as there.

Adding a rule: its line in optim.pxd, its function here and in `block`, its name in RULES of core/forward/optim.pyx.
Read next: core/forward/optim.pyx.
"""
from libc.math cimport sqrt

from cgrad.kernels.parallel cimport parallel_for
from cgrad.kernels.table cimport DTypeId

cdef extern from "<math.h>" nogil:
    float sqrtf(float x)

cdef enum:
    CHUNK = 16384          # elements a thread takes at a time
    BLOCK = 512            # elements of five arrays of doubles: 20 KB

ctypedef fused real:
    float
    double


cdef inline real root(real x) noexcept nogil:
    return sqrtf(x) if real is float else sqrt(x)


# ---- parts of several rules --------------------------------------------------------------------------------------------------------

cdef inline void lerp(real* m, const real* d, double weight, Py_ssize_t n) noexcept nogil:
    """m + weight (d - m), from the nearer end as torch.lerp."""
    cdef real w = <real> weight, rest = <real> 1 - <real> weight         # a bare 1 would be a double in C
    cdef Py_ssize_t i
    if weight < 0.5:
        for i in range(n):
            m[i] = m[i] + w * (d[i] - m[i])
    else:
        for i in range(n):
            m[i] = d[i] - (d[i] - m[i]) * rest


cdef inline void mean_square(real* v, const real* d, double kept, double fresh, Py_ssize_t n) noexcept nogil:
    cdef real k = <real> kept, f = <real> fresh
    cdef Py_ssize_t i
    for i in range(n):
        v[i] = v[i] * k + f * d[i] * d[i]


cdef inline void add_scaled(real* p, const real* d, double factor, Py_ssize_t n) noexcept nogil:
    cdef real f = <real> factor
    cdef Py_ssize_t i
    for i in range(n):
        p[i] = p[i] + f * d[i]


# ---- the rules: parameter p, gradient d, states a, b, c, coefficients x ------------------------------------------------------------

cdef inline void momentum(const double* x, real* p, const real* d, real* a, Py_ssize_t n) noexcept nogil:
    cdef real step = <real> -x[0], kept = <real> x[1], fresh = <real> x[2]
    cdef Py_ssize_t i
    for i in range(n):
        a[i] = kept * a[i] + fresh * d[i]
    if x[3] == 0:
        add_scaled(p, a, -x[0], n)
        return
    for i in range(n):
        p[i] = p[i] + step * (d[i] + kept * a[i])


cdef inline void adam_loop(const double* x, real* p, const real* d, real* a, real* b, real* c, Py_ssize_t n, bint near, bint amsgrad) noexcept nogil:
    # One loop, since it is the rule used most; near and amsgrad come as constants, so that it has no branches and vectorises.
    cdef real shrink = <real> x[0], fresh1 = <real> x[1], kept2 = <real> x[2], fresh2 = <real> x[3]
    cdef real step = <real> -x[4], correction = <real> x[5], eps = <real> x[6], second
    cdef Py_ssize_t i
    for i in range(n):
        if near:
            a[i] = a[i] + fresh1 * (d[i] - a[i])
        second = b[i] * kept2 + fresh2 * d[i] * d[i]
        b[i] = second
        if amsgrad:
            second = c[i] if (c[i] >= second) | (c[i] != c[i]) else second     # NaN on either side stays
            c[i] = second
        p[i] = p[i] * shrink + step * a[i] / (root(second) / correction + eps)


cdef inline void adam(const double* x, real* p, const real* d, real* a, real* b, real* c, Py_ssize_t n) noexcept nogil:
    if x[1] >= 0.5:
        lerp(a, d, x[1], n)
        if c != NULL:
            adam_loop(x, p, d, a, b, c, n, False, True)
        else:
            adam_loop(x, p, d, a, b, c, n, False, False)
    elif c != NULL:
        adam_loop(x, p, d, a, b, c, n, True, True)
    else:
        adam_loop(x, p, d, a, b, c, n, True, False)


cdef inline void nadam(const double* x, real* p, const real* d, real* a, real* b, Py_ssize_t n) noexcept nogil:
    cdef real shrink = <real> x[0], by_gradient = <real> -x[4], by_mean = <real> -x[5], correction = <real> x[6], eps = <real> x[7], scale
    cdef Py_ssize_t i
    lerp(a, d, x[1], n)
    mean_square(b, d, x[2], x[3], n)
    for i in range(n):
        scale = root(b[i] / correction) + eps
        p[i] = p[i] * shrink + by_gradient * d[i] / scale + by_mean * a[i] / scale


cdef inline void radam(const double* x, real* p, const real* d, real* a, real* b, Py_ssize_t n) noexcept nogil:
    cdef real shrink = <real> x[0], correction = <real> x[4], lr = <real> x[5], numerator = <real> x[6], eps = <real> x[7]
    cdef Py_ssize_t i
    lerp(a, d, x[1], n)
    mean_square(b, d, x[2], x[3], n)
    if numerator == 0:                                                   # the variance of the second moment is not known yet
        for i in range(n):
            p[i] = p[i] * shrink - a[i] / correction * lr
        return
    for i in range(n):
        p[i] = p[i] * shrink - a[i] / correction * lr * (numerator / (root(b[i]) + eps))


cdef inline void adamax(const double* x, real* p, const real* d, real* a, real* b, Py_ssize_t n) noexcept nogil:
    cdef real kept = <real> x[1], step = <real> -x[2], eps = <real> x[3], old, new
    cdef Py_ssize_t i
    lerp(a, d, x[0], n)
    for i in range(n):
        old = b[i] * kept
        new = (d[i] if d[i] >= 0 else -d[i]) + eps
        b[i] = old if (old >= new) | (old != old) else new
        p[i] = p[i] + step * a[i] / b[i]


cdef inline void adagrad(const double* x, real* p, const real* d, real* a, Py_ssize_t n) noexcept nogil:
    cdef real step = <real> -x[0], eps = <real> x[1]
    cdef Py_ssize_t i
    for i in range(n):
        a[i] = a[i] + d[i] * d[i]
        p[i] = p[i] + step * d[i] / (root(a[i]) + eps)


cdef inline void adadelta(const double* x, real* p, const real* d, real* a, real* b, Py_ssize_t n) noexcept nogil:
    cdef real step = <real> -x[0], kept = <real> x[1], fresh = <real> x[2], eps = <real> x[3], delta
    cdef Py_ssize_t i
    mean_square(a, d, x[1], x[2], n)
    for i in range(n):
        delta = root(b[i] + eps) / root(a[i] + eps) * d[i]
        b[i] = b[i] * kept + fresh * delta * delta
        p[i] = p[i] + step * delta


cdef inline void rmsprop(const double* x, real* p, const real* d, real* a, real* b, real* c, Py_ssize_t n) noexcept nogil:
    cdef real step = <real> -x[0], eps = <real> x[3], kept = <real> x[4]
    cdef real scale[BLOCK]
    cdef Py_ssize_t i
    mean_square(a, d, x[1], x[2], n)
    if b != NULL:
        lerp(b, d, x[2], n)
        for i in range(n):
            scale[i] = root(a[i] - b[i] * b[i]) + eps
    else:
        for i in range(n):
            scale[i] = root(a[i]) + eps
    if c != NULL:
        for i in range(n):
            c[i] = c[i] * kept + d[i] / scale[i]
        add_scaled(p, c, -x[0], n)
        return
    for i in range(n):
        p[i] = p[i] + step * d[i] / scale[i]


cdef inline void rprop(const double* x, real* p, const real* d, real* a, real* b, Py_ssize_t n) noexcept nogil:
    cdef real minus = <real> x[0], plus = <real> x[1], least = <real> x[2], most = <real> x[3], agree, size, g
    cdef Py_ssize_t i
    for i in range(n):
        agree = d[i] * a[i]
        size = b[i] * (plus if agree > 0 else minus if agree < 0 else <real> 1)
        size = least if size < least else size
        size = most if size > most else size
        g = <real> 0 if agree < 0 else d[i]                              # after a change of sign: wait
        b[i] = size
        a[i] = g
        p[i] = p[i] - (size if g > 0 else -size if g < 0 else g)         # of NaN: NaN


cdef inline void asgd(const double* x, real* p, const real* d, real* a, Py_ssize_t n) noexcept nogil:
    cdef real shrink = <real> x[0], step = <real> -x[1], mu = <real> x[2]
    cdef Py_ssize_t i
    for i in range(n):
        p[i] = p[i] * shrink + step * d[i]
        a[i] = p[i] if mu == 1 else a[i] + (p[i] - a[i]) * mu


cdef inline void scale(const double* x, real* p, Py_ssize_t n) noexcept nogil:
    cdef real factor = <real> x[0]
    cdef Py_ssize_t i
    for i in range(n):
        p[i] = p[i] * factor


cdef inline void clamp(const double* x, real* p, Py_ssize_t n) noexcept nogil:
    cdef real low = <real> x[0], high = <real> x[1], v
    cdef Py_ssize_t i
    for i in range(n):
        v = low if p[i] < low else p[i]                                  # NaN stays
        p[i] = high if v > high else v


cdef inline const real* prepare(const double* c, const real* p, const real* g, real* d, Py_ssize_t n) noexcept nogil:
    """The gradient with its sign and weight decay, in d if that changes it."""
    cdef real sign = <real> c[0], decay = <real> c[1]
    cdef Py_ssize_t i
    if decay != 0:
        for i in range(n):
            d[i] = sign * g[i] + decay * p[i]
    elif sign != 1:
        for i in range(n):
            d[i] = -g[i]
    else:
        return g
    return d


cdef void block(int rule, const Row* row, Py_ssize_t start, Py_ssize_t n, real like) noexcept nogil:
    cdef real memory[BLOCK]
    cdef real* p = <real*> row.p + start
    cdef real* a = <real*> row.states[0] + start if row.states[0] != NULL else NULL
    cdef real* b = <real*> row.states[1] + start if row.states[1] != NULL else NULL
    cdef real* c = <real*> row.states[2] + start if row.states[2] != NULL else NULL
    cdef const double* x = row.c + 2
    cdef const real* d = prepare(row.c, p, <const real*> row.g + start, memory, n)
    if rule == SGD:
        add_scaled(p, d, -x[0], n)
    elif rule == MOMENTUM:
        momentum(x, p, d, a, n)
    elif rule == ADAM:
        adam(x, p, d, a, b, c, n)
    elif rule == NADAM:
        nadam(x, p, d, a, b, n)
    elif rule == RADAM:
        radam(x, p, d, a, b, n)
    elif rule == ADAMAX:
        adamax(x, p, d, a, b, n)
    elif rule == ADAGRAD:
        adagrad(x, p, d, a, n)
    elif rule == ADADELTA:
        adadelta(x, p, d, a, b, n)
    elif rule == RMSPROP:
        rmsprop(x, p, d, a, b, c, n)
    elif rule == RPROP:
        rprop(x, p, d, a, b, n)
    elif rule == ASGD:
        asgd(x, p, d, a, n)
    elif rule == SCALE:
        scale(x, p, n)
    else:
        clamp(x, p, n)


# ---- all parameters ----------------------------------------------------------------------------------------------------------------

cdef struct Step:
    int rule
    const Row* rows
    Py_ssize_t n_rows
    double* sums                   # one for each chunk


cdef const Row* row_at(const Step* step, Py_ssize_t start) noexcept nogil:
    """The row in which an element lies, counted through all rows."""
    cdef Py_ssize_t low = 0, high = step.n_rows, middle
    while high - low > 1:                    # the last row that begins at start or before
        middle = (low + high) // 2
        if step.rows[middle].start <= start:
            low = middle
        else:
            high = middle
    return step.rows + low


cdef void items(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Elements start to stop of all rows one after another."""
    cdef const Step* step = <const Step*> context
    cdef const Row* row = row_at(step, start)
    cdef Py_ssize_t n
    while start < stop:
        while start >= row.start + row.n:
            row += 1
        n = min(BLOCK, stop - start, row.start + row.n - start)
        if row.dtype == DTypeId.FLOAT32:
            block(step.rule, row, start - row.start, n, <float> 0)
        else:
            block(step.rule, row, start - row.start, n, <double> 0)
        start += n


cdef void run_optimizer(int rule, const Row* rows, Py_ssize_t n_rows) noexcept nogil:
    cdef Step step
    cdef Py_ssize_t n = rows[n_rows - 1].start + rows[n_rows - 1].n if n_rows > 0 else 0
    step.rule, step.rows, step.n_rows = rule, rows, n_rows
    parallel_for(items, &step, n, CHUNK, (10.0 if MOMENTUM < rule < SCALE else 3.0) * n)


# ---- their size --------------------------------------------------------------------------------------------------------------------

cdef inline double squares(const real* x, Py_ssize_t n) noexcept nogil:
    cdef double a = 0, b = 0, c = 0, d = 0
    cdef Py_ssize_t i
    for i in range(0, n - 3, 4):
        a += <double> x[i] * x[i]
        b += <double> x[i + 1] * x[i + 1]
        c += <double> x[i + 2] * x[i + 2]
        d += <double> x[i + 3] * x[i + 3]
    for i in range(n - n % 4, n):
        a += <double> x[i] * x[i]
    return (a + b) + (c + d)


cdef void square_items(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Step* step = <const Step*> context
    cdef const Row* row = row_at(step, start)
    cdef Py_ssize_t n
    cdef double* total = step.sums
    while start < stop:
        while start >= row.start + row.n:
            row += 1
        total = step.sums + start // CHUNK       # one for each chunk, whoever has taken it
        n = min(stop - start, row.start + row.n - start, CHUNK - start % CHUNK)
        if row.dtype == DTypeId.FLOAT32:
            total[0] += squares(<const float*> row.p + (start - row.start), n)
        else:
            total[0] += squares(<const double*> row.p + (start - row.start), n)
        start += n


cdef Py_ssize_t count_sums(Py_ssize_t n) noexcept nogil:
    return (n + CHUNK - 1) // CHUNK


cdef double run_square_sum(const Row* rows, Py_ssize_t n_rows, double* sums) noexcept nogil:
    cdef Step step
    cdef Py_ssize_t n = rows[n_rows - 1].start + rows[n_rows - 1].n if n_rows > 0 else 0, i
    cdef double total = 0
    step.rule, step.rows, step.n_rows, step.sums = SCALE, rows, n_rows, sums
    for i in range(count_sums(n)):
        sums[i] = 0
    parallel_for(square_items, &step, n, CHUNK, 2.0 * n)
    for i in range(count_sums(n)):
        total += sums[i]
    return total
