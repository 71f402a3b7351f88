"""Optimizer steps: each parameter is read and written once, with its gradient and its state.

Owns run_sgd and run_adam (contracts in optim.pxd), called by core/forward/optim.pyx.  Nothing takes the GIL; threads split the
elements, which do not depend on each other.  An Adam step written with tensor operations moves about 20 arrays through memory;
this moves 7.  The formulas are PyTorch's, operation by operation, so that training runs can be compared; coefficients are
computed in float64 and rounded to the parameter's dtype, as there.

Read next: core/forward/optim.pyx.
"""
from libc.math cimport pow, sqrt

from cgrad.kernels.parallel cimport parallel_for
from cgrad.kernels.table cimport DTypeId

cdef extern from "<math.h>" nogil:
    float sqrtf(float x)

cdef enum:
    CHUNK = 16384          # elements a thread takes at a time

ctypedef fused real:
    float
    double


# ---- SGD ---------------------------------------------------------------------------------------------------------------------------

cdef struct SGD:
    int dtype
    char* p
    const char* g
    char* buffer
    bint first, nesterov
    double sign, lr, momentum, keep, weight_decay


cdef inline void sgd_loop(const SGD* s, real* p, const real* g, real* buffer, Py_ssize_t n, bint decay, bint nesterov) noexcept nogil:
    # decay and nesterov come as constants, so that the loop has no branches and vectorises.
    cdef real sign = <real> s.sign, step = <real> -s.lr, momentum = <real> s.momentum, keep = <real> s.keep
    cdef real weight_decay = <real> s.weight_decay, d
    cdef Py_ssize_t i
    if buffer == NULL:
        for i in range(n):
            d = sign * g[i]
            if decay:
                d = d + weight_decay * p[i]
            p[i] = p[i] + step * d
        return
    if s.first:
        for i in range(n):
            d = sign * g[i]
            if decay:
                d = d + weight_decay * p[i]
            buffer[i] = d
            if nesterov:
                d = d + momentum * d
            p[i] = p[i] + step * d
        return
    for i in range(n):
        d = sign * g[i]
        if decay:
            d = d + weight_decay * p[i]
        buffer[i] = momentum * buffer[i] + keep * d
        d = d + momentum * buffer[i] if nesterov else buffer[i]
        p[i] = p[i] + step * d


cdef void sgd_part(const SGD* s, Py_ssize_t start, Py_ssize_t n, real like) noexcept nogil:
    cdef real* p = <real*> s.p + start
    cdef const real* g = <const real*> s.g + start
    cdef real* buffer = <real*> s.buffer + start if s.buffer != NULL else NULL
    if s.weight_decay != 0:
        if s.nesterov:
            sgd_loop(s, p, g, buffer, n, True, True)
        else:
            sgd_loop(s, p, g, buffer, n, True, False)
    elif s.nesterov:
        sgd_loop(s, p, g, buffer, n, False, True)
    else:
        sgd_loop(s, p, g, buffer, n, False, False)


cdef void sgd_items(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const SGD* s = <const SGD*> context
    if s.dtype == DTypeId.FLOAT32:
        sgd_part(s, start, stop - start, <float> 0)
    else:
        sgd_part(s, start, stop - start, <double> 0)


cdef void run_sgd(int dtype, Py_ssize_t n, char* p, const char* g, char* buffer, bint first, double lr, double momentum,
                  double dampening, bint nesterov, double weight_decay, bint maximize) noexcept nogil:
    cdef SGD s
    s.dtype = dtype
    s.p, s.g, s.buffer = p, g, buffer
    s.first, s.nesterov = first, nesterov
    s.sign = -1 if maximize else 1
    s.lr, s.momentum, s.keep, s.weight_decay = lr, momentum, 1 - dampening, weight_decay
    parallel_for(sgd_items, &s, n, CHUNK, 3.0 * n)


# ---- Adam --------------------------------------------------------------------------------------------------------------------------

cdef struct Adam:
    int dtype
    char* p
    const char* g
    char* m
    char* v
    char* largest
    double sign, shrink, weight_decay, beta1, beta2, step_size, root_correction, eps


cdef inline real root(real x) noexcept nogil:
    return sqrtf(x) if real is float else sqrt(x)


cdef inline void adam_loop(const Adam* s, real* p, const real* g, real* m, real* v, real* largest, Py_ssize_t n, bint decay,
                           bint amsgrad) noexcept nogil:
    # decay and amsgrad come as constants, so that the loop has no branches and vectorises.
    cdef real sign = <real> s.sign, shrink = <real> s.shrink, weight_decay = <real> s.weight_decay, eps = <real> s.eps
    cdef real fresh1 = <real> (1 - s.beta1), beta2 = <real> s.beta2, fresh2 = <real> (1 - s.beta2)
    cdef real step_size = <real> -s.step_size, correction = <real> s.root_correction, d, w, second
    cdef real kept1 = <real> 1 - fresh1                # a bare 1 would be a double in C
    cdef bint near_old = 1 - s.beta1 < 0.5             # as torch.lerp: from the nearer end
    cdef Py_ssize_t i
    for i in range(n):
        w = p[i] * shrink
        d = sign * g[i]
        if decay:
            d = d + weight_decay * w
        m[i] = m[i] + fresh1 * (d - m[i]) if near_old else d - (d - m[i]) * kept1
        second = v[i] * beta2 + fresh2 * d * d
        v[i] = second
        if amsgrad:
            # NaN on either side stays.
            second = largest[i] if (largest[i] >= second) | (largest[i] != largest[i]) else second
            largest[i] = second
        p[i] = w + step_size * m[i] / (root(second) / correction + eps)


cdef void adam_part(const Adam* s, Py_ssize_t start, Py_ssize_t n, real like) noexcept nogil:
    cdef real* p = <real*> s.p + start
    cdef const real* g = <const real*> s.g + start
    cdef real* m = <real*> s.m + start
    cdef real* v = <real*> s.v + start
    if s.largest != NULL:
        adam_loop(s, p, g, m, v, <real*> s.largest + start, n, s.weight_decay != 0, True)
    elif s.weight_decay != 0:
        adam_loop(s, p, g, m, v, <real*> NULL, n, True, False)
    else:
        adam_loop(s, p, g, m, v, <real*> NULL, n, False, False)


cdef void adam_items(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Adam* s = <const Adam*> context
    if s.dtype == DTypeId.FLOAT32:
        adam_part(s, start, stop - start, <float> 0)
    else:
        adam_part(s, start, stop - start, <double> 0)


cdef void run_adam(int dtype, Py_ssize_t n, char* p, const char* g, char* m, char* v, char* largest, double step, double lr,
                   double beta1, double beta2, double eps, double weight_decay, bint decoupled, bint maximize) noexcept nogil:
    cdef Adam s
    s.dtype = dtype
    s.p, s.g, s.m, s.v, s.largest = p, g, m, v, largest
    s.sign = -1 if maximize else 1
    s.shrink = 1 - lr * weight_decay if decoupled else 1
    s.weight_decay = 0 if decoupled else weight_decay
    s.beta1, s.beta2, s.eps = beta1, beta2, eps
    s.step_size = lr / (1 - pow(beta1, step))
    s.root_correction = sqrt(1 - pow(beta2, step))
    parallel_for(adam_items, &s, n, CHUNK, 10.0 * n)
