"""The split over threads for the cross-entropy of classes, forward and backward.

Owns run_class_losses and run_class_gradients (contracts in loss.pxd), called by core/forward/loss.pyx.  Nothing takes the GIL.  Each row
is computed by one thread: the bits never depend on the threads.

Read next: loss.pxi.
"""
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
