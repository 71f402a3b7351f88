# Cross-entropy of rows of logits with classes given by index, and its gradient, without the probabilities in memory.
#
# Included by the ISA shells after rows.pxi (sum_of_exp); loss.pyx hands over blocks of contiguous rows, with valid classes.  The
# largest logit is subtracted before exp and kept with the logarithm of the sum, so that backward takes one exponential an element.

from libc.string cimport memset

from cgrad.kernels.table cimport class_gradients_t, class_losses_t


cdef inline double sum_of_losses(const real* x, const real* w, Py_ssize_t n, real largest, real log_total) noexcept nogil:
    """sum(w * -log p) over the classes"""
    cdef real block[EXP_BLOCK]
    cdef double total = 0
    cdef Py_ssize_t i = 0, j, size
    while i < n:
        size = min(n - i, <Py_ssize_t> EXP_BLOCK)
        for j in range(size):
            block[j] = log_total - (x[i + j] - largest)
        if w != NULL:
            for j in range(size):
                block[j] *= w[i + j]
        total += real_row(<const real*> block, 1, size, False)
        i += size
    return total


cdef void loss_forward(const real* x, const int64_t* target, const real* w, real* loss, real* state, Py_ssize_t rows, Py_ssize_t n,
                       double smoothing, int64_t ignored) noexcept nogil:
    """w[t] * (1 - smoothing) * -log p[t] + smoothing / n * sum(w * -log p) with p = softmax(x) and t the target"""
    cdef Py_ssize_t row
    cdef double log_total, value
    cdef real largest
    for row in range(rows):
        if target[row] == ignored:
            loss[row] = state[2 * row] = state[2 * row + 1] = 0
        else:
            largest = extreme_row(x, 1, n, x[0], True)
            log_total = libm.log(sum_of_exp(x, n, largest))
            value = log_total - (x[target[row]] - largest)       # in this order: exact for large common offsets
            if w != NULL:
                value *= w[target[row]]
            if smoothing != 0:
                value = value * (1 - smoothing) + sum_of_losses(x, w, n, largest, <real> log_total) * (smoothing / n)
            loss[row] = <real> value
            state[2 * row] = largest
            state[2 * row + 1] = <real> log_total
        x += n


cdef void loss_backward(const real* g, Py_ssize_t g_step, double factor, const real* x, const int64_t* target, const real* w, const real* state,
                        real* dx, Py_ssize_t rows, Py_ssize_t n, double smoothing, int64_t ignored) noexcept nogil:
    """g * factor * (p * sum(q) - q) with q the target's share w[t] * (1 - smoothing) at t, and smoothing / n * w everywhere"""
    cdef Py_ssize_t row, i
    cdef double own, uniform = smoothing / n, everywhere = smoothing
    cdef real largest, log_total, scale, at_all
    if w != NULL and smoothing != 0:
        everywhere = uniform * real_row(w, 1, n, False)
    for row in range(rows):
        if target[row] == ignored:
            memset(dx, 0, n * sizeof(real))
        else:
            largest, log_total = state[2 * row], state[2 * row + 1]
            own = (1 - smoothing) * (w[target[row]] if w != NULL else <real> 1)
            scale = <real> (g[row * g_step] * factor * (own + everywhere))
            for i in range(n):
                dx[i] = exp_((x[i] - largest) - log_total) * scale
            if smoothing != 0:
                at_all = <real> (g[row * g_step] * factor * uniform)
                for i in range(n):
                    dx[i] = dx[i] - (at_all * w[i] if w != NULL else at_all)
            dx[target[row]] -= <real> (g[row * g_step] * factor * own)
        x += n
        dx += n


cdef void register_loss(KernelTable* kernels) noexcept nogil:
    kernels.loss.forward[0] = <class_losses_t> loss_forward[float]
    kernels.loss.forward[1] = <class_losses_t> loss_forward[double]
    kernels.loss.backward[0] = <class_gradients_t> loss_backward[float]
    kernels.loss.backward[1] = <class_gradients_t> loss_backward[double]
