"""The split over threads for the cross-entropy of classes, and the loss of sequences without alignment, forward and backward.

Owns run_class_losses, run_class_gradients, run_ctc and run_ctc_gradient (contracts in loss.pxd), called by core/forward/loss.pyx.
Nothing takes the GIL.  Each row or sequence is computed by one thread: the bits never depend on the threads.

Read next: loss.pxi.
"""
from libc.math cimport INFINITY, NAN, exp, log
from libc.stdint cimport int64_t

from cgrad.kernels.dispatch cimport kernel_table
from cgrad.kernels.parallel cimport parallel_for
from cgrad.kernels.table cimport DTypeId, class_gradients_t, class_losses_t

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
# counted), beta[t, s] that of all ways on from there (likewise); Graves et al., "Connectionist temporal classification", 2006.

cdef inline double value(int dtype, const char* data, Py_ssize_t i) noexcept nogil:
    return (<const float*> data)[i] if dtype == DTypeId.FLOAT32 else (<const double*> data)[i]


cdef inline int64_t label(const CtcPlan* plan, const int64_t* target, Py_ssize_t s) noexcept nogil:
    return target[s // 2] if s % 2 else plan.blank


cdef inline bint may_skip(const int64_t* target, Py_ssize_t s) noexcept nogil:
    """Whether a step may lead from s - 2 to s: past a blank, between two different labels."""
    return s % 2 and s >= 3 and target[s // 2] != target[s // 2 - 1]


cdef inline double log_sum(double a, double b, double c) noexcept nogil:
    cdef double swap
    if b > a:
        swap, a, b = a, b, a
    if c > a:
        swap, a, c = a, c, a
    if a == -INFINITY or a != a:
        return a
    return a + log(1.0 + exp(b - a) + exp(c - a))


cdef void ctc_samples(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const CtcPlan* plan = <const CtcPlan*> context
    cdef Py_ssize_t i, t, s, row, width = 2 * plan.width + 1, states, steps
    cdef const int64_t* target
    cdef double* alpha
    cdef double* before
    cdef double loss
    for i in range(start, stop):
        target, states, steps = plan.target + i * plan.width, 2 * plan.target_lengths[i] + 1, plan.input_lengths[i]
        loss = INFINITY if states > 1 else 0.0
        for t in range(steps):
            row = (t * plan.samples + i) * plan.classes
            alpha = plan.alpha + (i * plan.times + t) * width
            before = alpha - width
            for s in range(states):
                if t == 0:
                    alpha[s] = 0.0 if s < 2 else -INFINITY
                else:
                    alpha[s] = log_sum(before[s], before[s - 1] if s else -INFINITY, before[s - 2] if may_skip(target, s) else -INFINITY)
                alpha[s] += value(plan.dtype, plan.x, row + label(plan, target, s))
            if t == steps - 1:
                loss = -log_sum(alpha[states - 1], alpha[states - 2] if states > 1 else -INFINITY, -INFINITY)
        if plan.dtype == DTypeId.FLOAT32:
            (<float*> plan.loss)[i] = <float> loss
        else:
            (<double*> plan.loss)[i] = loss


cdef void ctc_gradients(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const CtcPlan* plan = <const CtcPlan*> context
    cdef Py_ssize_t i, t, s, c, row, width = 2 * plan.width + 1, states, steps
    cdef const int64_t* target
    cdef const double* alpha
    cdef double* beta
    cdef double* after
    cdef double g, loss, x, share
    for i in range(start, stop):
        target, states, steps = plan.target + i * plan.width, 2 * plan.target_lengths[i] + 1, plan.input_lengths[i]
        g = value(plan.dtype, plan.g, i * plan.g_step)
        loss = value(plan.dtype, plan.loss, i)
        if steps:                      # again in full precision
            alpha = plan.alpha + (i * plan.times + steps - 1) * width
            loss = -log_sum(alpha[states - 1], alpha[states - 2] if states > 1 else -INFINITY, -INFINITY)
        if loss == INFINITY and g != 0:
            g = NAN
        for t in range(plan.times - 1, -1, -1):
            row = (t * plan.samples + i) * plan.classes
            for c in range(row, row + plan.classes):
                share = value(plan.dtype, plan.dx, c) * g if t < steps and g != 0 else 0.0
                if plan.dtype == DTypeId.FLOAT32:
                    (<float*> plan.dx)[c] = <float> share
                else:
                    (<double*> plan.dx)[c] = share
            if t >= steps or g == 0:   # a loss that does not count may be infinite
                continue
            alpha = plan.alpha + (i * plan.times + t) * width
            beta = plan.beta + (2 * i + t % 2) * width
            after = plan.beta + (2 * i + (t + 1) % 2) * width
            for s in range(states):
                x = value(plan.dtype, plan.x, row + label(plan, target, s))
                if t == steps - 1:
                    beta[s] = 0.0 if s + 2 >= states else -INFINITY
                else:
                    beta[s] = log_sum(after[s], after[s + 1] if s + 1 < states else -INFINITY,
                                      after[s + 2] if s + 2 < states and may_skip(target, s + 2) else -INFINITY)
                beta[s] += x
                share = exp(alpha[s] + beta[s] - x + loss) if x > -INFINITY else 0.0
                c = row + label(plan, target, s)
                if plan.dtype == DTypeId.FLOAT32:
                    (<float*> plan.dx)[c] -= <float> (share * g)
                else:
                    (<double*> plan.dx)[c] -= share * g


cdef double ctc_cost(const CtcPlan* plan) noexcept nogil:
    return 30.0 * plan.times * plan.samples * (2 * plan.width + 1)       # two exponentials and a logarithm for each place


cdef void run_ctc(CtcPlan* plan) noexcept nogil:
    parallel_for(ctc_samples, plan, plan.samples, 1, ctc_cost(plan))


cdef void run_ctc_gradient(CtcPlan* plan) noexcept nogil:
    parallel_for(ctc_gradients, plan, plan.samples, 1, ctc_cost(plan))
