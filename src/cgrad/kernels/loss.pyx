"""The split over threads for the cross-entropy of classes, and the loss of sequences without alignment, forward and backward.

Owns run_class_losses, run_class_gradients, run_ctc and run_ctc_gradient (contracts in loss.pxd), called by core/forward/loss.pyx.
Nothing takes the GIL.  Each row or sequence is computed by one thread: the bits never depend on the threads.

Read next: loss.pxi.
"""
from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, NAN, exp, log1p
from libc.stdint cimport int64_t

from cgrad.kernels.dispatch cimport elementwise_kernel, kernel_table
from cgrad.kernels.parallel cimport parallel_for
from cgrad.kernels.table cimport DTypeId, class_gradients_t, class_losses_t, loop_t

cdef enum:
    CHUNK = 4096           # elements a thread takes at a time, at least
    WEIGHT = 8             # cost of an element in additions: an exponential and a pass or two


cdef struct LossPlan:
    class_losses_t forward
    class_gradients_t backward
    Py_ssize_t size, n, g_step
    double factor, smoothing
    int64_t ignored
    const char* g
    const char* x
    const int64_t* target
    const char* w
    char* state
    char* out              # losses or dx


cdef void loss_rows(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const LossPlan* plan = <const LossPlan*> context
    plan.forward(plan.x + start * plan.n * plan.size, plan.target + start, plan.w, plan.out + start * plan.size, plan.state + 2 * start * plan.size,
                 stop - start, plan.n, plan.smoothing, plan.ignored)


cdef void gradient_rows(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const LossPlan* plan = <const LossPlan*> context
    cdef Py_ssize_t offset = start * plan.n * plan.size
    plan.backward(plan.g + start * plan.g_step * plan.size, plan.g_step, plan.factor, plan.x + offset, plan.target + start, plan.w,
                  plan.state + 2 * start * plan.size, plan.out + offset, stop - start, plan.n, plan.smoothing, plan.ignored)


cdef void fill_plan(LossPlan* plan, int dtype, Py_ssize_t n, const char* x, const int64_t* target, const char* w, double smoothing,
                    int64_t ignored) noexcept nogil:
    plan.forward = kernel_table().loss.forward[dtype - <int> DTypeId.FLOAT32]
    plan.backward = kernel_table().loss.backward[dtype - <int> DTypeId.FLOAT32]
    plan.size = 4 if dtype == DTypeId.FLOAT32 else 8
    plan.n, plan.smoothing, plan.ignored = n, smoothing, ignored
    plan.x, plan.target, plan.w = x, target, w


cdef void run_class_losses(int dtype, Py_ssize_t rows, Py_ssize_t n, const char* x, const int64_t* target, const char* w, double smoothing,
                           int64_t ignored, char* loss, char* state) noexcept nogil:
    cdef LossPlan plan
    fill_plan(&plan, dtype, n, x, target, w, smoothing, ignored)
    plan.out, plan.state = loss, state
    parallel_for(loss_rows, &plan, rows, max(1, CHUNK // max(n, 1)), <double> WEIGHT * rows * n)


cdef void run_class_gradients(int dtype, Py_ssize_t rows, Py_ssize_t n, const char* g, Py_ssize_t g_step, double factor, const char* x,
                              const int64_t* target, const char* w, double smoothing, int64_t ignored, const char* state,
                              char* dx) noexcept nogil:
    cdef LossPlan plan
    fill_plan(&plan, dtype, n, x, target, w, smoothing, ignored)
    plan.g, plan.g_step, plan.factor = g, g_step, factor
    plan.out, plan.state = dx, <char*> state
    parallel_for(gradient_rows, &plan, rows, max(1, CHUNK // max(n, 1)), <double> WEIGHT * rows * n)


# ------------------------------------------------------------------------------------- connectionist temporal classification
# The labels of a sample with blanks between and around them, l[0 .. 2 * length], are passed through in order, one place or two a time
# step, two only where no blank is needed between.  alpha[t, s] is the log-probability of all ways to be at s after step t (with x[t]
# counted), beta[t, s] that of all ways on from there (likewise); Graves et al., "Connectionist temporal classification", 2006.  beta
# runs over the labels and the times from their ends, which makes it the same recursion.  Each row has two places in front that nothing
# can come from.

cdef loop_t exponentials = elementwise_kernel("exp").loops[<int> DTypeId.FLOAT64]
cdef loop_t logarithms = elementwise_kernel("log").loops[<int> DTypeId.FLOAT64]


cdef inline double value(int dtype, const char* data, Py_ssize_t i) noexcept nogil:
    return (<const float*> data)[i] if dtype == DTypeId.FLOAT32 else (<const double*> data)[i]


cdef inline void store(int dtype, char* data, Py_ssize_t i, double number) noexcept nogil:
    if dtype == DTypeId.FLOAT32:
        (<float*> data)[i] = <float> number
    else:
        (<double*> data)[i] = number


cdef inline double larger(double a, double b) noexcept nogil:
    return a if a > b else b


cdef void in_place(loop_t loop, double* x, Py_ssize_t n) noexcept nogil:
    cdef char* data[2]
    cdef Py_ssize_t strides[2]
    data[0] = data[1] = <char*> x
    strides[0] = strides[1] = 1
    loop(data, strides, n)


cdef void read_labels(const int64_t* target, Py_ssize_t n, int64_t blank, bint reverse, int64_t* labels, double* skip) noexcept nogil:
    """The class at each of n places, and what it costs to come there from two places before: nothing between different labels."""
    cdef Py_ssize_t s, k
    for s in range(n):
        k = n - 1 - s if reverse else s
        labels[s] = target[k // 2] if k % 2 else blank
        skip[s] = 0.0 if k % 2 and s >= 3 and labels[s] != labels[s - 2] else -INFINITY


cdef void step(const double* before, const double* skip, const double* own, Py_ssize_t n, double* work, double* after) noexcept nogil:
    """after[s] = own[s] + log(exp(before[s]) + exp(before[s - 1]) + exp(before[s - 2] + skip[s])); work holds 3 n numbers."""
    cdef Py_ssize_t s
    cdef double largest
    for s in range(n):
        largest = larger(larger(larger(before[s], before[s - 1]), before[s - 2] + skip[s]), -DBL_MAX)
        work[s] = before[s] - largest
        work[n + s] = before[s - 1] - largest
        work[2 * n + s] = before[s - 2] + skip[s] - largest
        after[s] = largest + own[s]
    in_place(exponentials, work, 3 * n)
    for s in range(n):
        work[s] += work[n + s] + work[2 * n + s]
    in_place(logarithms, work, n)
    for s in range(n):
        after[s] += work[s]


cdef void first_step(const double* own, Py_ssize_t n, double* after) noexcept nogil:
    cdef Py_ssize_t s
    for s in range(n):
        after[s] = own[s] if s < 2 else -INFINITY


cdef double ways(const double* row, Py_ssize_t n) noexcept nogil:
    """The logarithm of all ways that end at one of the last two places."""
    cdef double a = row[n - 1], b = row[n - 2] if n > 1 else -INFINITY
    return a if b == -INFINITY else b + log1p(exp(a - b)) if b > a else a + log1p(exp(b - a))


cdef void read_own(const CtcPlan* plan, Py_ssize_t t, Py_ssize_t i, const int64_t* labels, Py_ssize_t n, double* own) noexcept nogil:
    cdef Py_ssize_t s, row = (t * plan.samples + i) * plan.classes
    for s in range(n):
        own[s] = value(plan.dtype, plan.x, row + labels[s])


cdef void ctc_samples(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const CtcPlan* plan = <const CtcPlan*> context
    cdef Py_ssize_t i, t, n, width = 2 * plan.width + 3
    cdef int64_t* labels
    cdef double* skip
    cdef double* own
    cdef double* alpha
    cdef double loss
    for i in range(start, stop):
        n = 2 * plan.target_lengths[i] + 1
        labels = <int64_t*> (plan.scratch + i * CTC_ROWS * width)
        skip, own = <double*> labels + width, <double*> labels + 2 * width
        read_labels(plan.target + i * plan.width, n, plan.blank, False, labels, skip)
        loss = INFINITY if n > 1 else 0.0
        for t in range(plan.input_lengths[i]):
            alpha = plan.alpha + (i * plan.times + t) * width
            alpha[0] = alpha[1] = -INFINITY
            alpha += 2
            read_own(plan, t, i, labels, n, own)
            if t == 0:
                first_step(own, n, alpha)
            else:
                step(alpha - width, skip, own, n, own + width, alpha)
            loss = -ways(alpha, n)
        store(plan.dtype, plan.loss, i, loss)


cdef void ctc_gradients(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const CtcPlan* plan = <const CtcPlan*> context
    cdef Py_ssize_t i, t, s, c, row, n, steps, width = 2 * plan.width + 3
    cdef int64_t* labels
    cdef double* skip
    cdef double* own
    cdef double* work
    cdef double* beta
    cdef double* after
    cdef const double* alpha
    cdef double g, loss
    for i in range(start, stop):
        n, steps = 2 * plan.target_lengths[i] + 1, plan.input_lengths[i]
        labels = <int64_t*> (plan.scratch + i * CTC_ROWS * width)
        skip, own, work = <double*> labels + width, <double*> labels + 2 * width, <double*> labels + 3 * width
        read_labels(plan.target + i * plan.width, n, plan.blank, True, labels, skip)
        g = value(plan.dtype, plan.g, i * plan.g_step)
        loss = -ways(plan.alpha + (i * plan.times + steps - 1) * width + 2, n) if steps else value(plan.dtype, plan.loss, i)
        if loss == INFINITY and g != 0:
            g = NAN
        for t in range(plan.times - 1, -1, -1):
            row = (t * plan.samples + i) * plan.classes
            if t >= steps or g == 0:             # a loss that does not count may be infinite
                for c in range(row, row + plan.classes):
                    store(plan.dtype, plan.dx, c, 0.0)
                continue
            for c in range(row, row + plan.classes):
                store(plan.dtype, plan.dx, c, value(plan.dtype, plan.dx, c) * g)
            beta, after = work + (3 + t % 2) * width, work + (3 + (t + 1) % 2) * width + 2
            beta[0] = beta[1] = -INFINITY
            beta += 2
            read_own(plan, t, i, labels, n, own)
            if t == steps - 1:
                first_step(own, n, beta)
            else:
                step(after, skip, own, n, work, beta)
            alpha = plan.alpha + (i * plan.times + t) * width + 2 + n - 1
            for s in range(n):
                work[s] = alpha[-s] + beta[s] - own[s] + loss if own[s] > -INFINITY else -INFINITY
            in_place(exponentials, work, n)
            for s in range(n):
                c = row + labels[s]
                store(plan.dtype, plan.dx, c, value(plan.dtype, plan.dx, c) - work[s] * g)


cdef double ctc_cost(const CtcPlan* plan) noexcept nogil:
    return 20.0 * plan.times * plan.samples * (2 * plan.width + 1)       # three exponentials and a logarithm for each place


cdef void run_ctc(CtcPlan* plan) noexcept nogil:
    parallel_for(ctc_samples, plan, plan.samples, 1, ctc_cost(plan))


cdef void run_ctc_gradient(CtcPlan* plan) noexcept nogil:
    parallel_for(ctc_gradients, plan, plan.samples, 1, ctc_cost(plan))
