"""Running extremes and the running log-sum-exp along an axis.

Called by ops/scan.py with an axis in range.  Results are fresh and C-contiguous.  The GIL is released in the loops.  Next: ops/scan.py.
"""
from libc.math cimport exp, fabs, log1p
from libc.stdint cimport int64_t

from cgrad.core.forward.axis cimport around
from cgrad.core.forward.ordered cimport in_order, out_of_order
from cgrad.core.tensor cimport Tensor, contiguous_tensor, empty_like, shape_of
from cgrad.kernels.table cimport FLOAT32, INT64

ctypedef fused element:
    int64_t
    float
    double

ctypedef fused floating:
    float
    double


cdef inline bint takes_over(element value, element best, bint largest) noexcept nogil:
    """Whether an element is the new extreme: the later one of equals, and NaN for good."""
    if element is int64_t:
        return value >= best if largest else value <= best
    else:
        return value != value or (value >= best if largest else value <= best)


cdef void extremes(const element* x, element* values, int64_t* places, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, bint largest) noexcept nogil:
    """values[i] is the extreme of x[0], ..., x[i] and places[i] where it lies, for `inner` neighbours at a time."""
    cdef Py_ssize_t _block, i, j, k
    cdef element best
    for _block in range(outer):
        if inner == 1:
            k = 0
            best = x[0]
            for i in range(n):
                if takes_over(x[i], best, largest):
                    k = i
                    best = x[i]
                places[i] = k
                values[i] = best
        else:
            for j in range(inner):
                places[j] = 0
                values[j] = x[j]
            for i in range(1, n):
                for j in range(i * inner, (i + 1) * inner):
                    best, k = values[j - inner], places[j - inner]
                    if takes_over(x[j], best, largest):
                        best, k = x[j], i
                    values[j] = best
                    places[j] = k
        x += n * inner
        values += n * inner
        places += n * inner


cdef inline double add_exponentials(double a, double b) noexcept nogil:
    """log(exp(a) + exp(b))."""
    if a != a or b != b:
        return a + b
    if a == b:                            # infinities, too
        return a + 0.6931471805599453
    return max(a, b) + log1p(exp(-fabs(a - b)))


cdef void sums(const floating* x, floating* out, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner) noexcept nogil:
    cdef Py_ssize_t _block, i, j
    cdef double total
    for _block in range(outer):
        if inner == 1:                    # one number carries the sum: in double, its rounding costs nothing
            total = x[0]
            out[0] = x[0]
            for i in range(1, n):
                total = add_exponentials(total, x[i])
                out[i] = <floating>total
        else:
            for j in range(inner):
                out[j] = x[j]
            for i in range(inner, n * inner):
                out[i] = <floating>add_exponentials(out[i - inner], x[i])
        x += n * inner
        out += n * inner


def running_extremes(Tensor x not None, int axis, bint largest):
    """The largest (or smallest) elements so far, and their places as int64."""
    cdef Py_ssize_t outer, inner, n = shape_of(x)[axis]
    cdef int dtype = x.dtype_id
    cdef Tensor values, places
    x = contiguous_tensor(in_order(x))
    values, places = empty_like(x, x.dtype_id), empty_like(x, INT64)
    outer = around(x, axis, &inner)
    if x.count:
        with nogil:
            if x.dtype_id == INT64:
                extremes(<const int64_t*>x.data, <int64_t*>values.data, <int64_t*>places.data, outer, n, inner, largest)
            elif x.dtype_id == FLOAT32:
                extremes(<const float*>x.data, <float*>values.data, <int64_t*>places.data, outer, n, inner, largest)
            else:
                extremes(<const double*>x.data, <double*>values.data, <int64_t*>places.data, outer, n, inner, largest)
    return out_of_order(values, dtype), places


def logcumsumexp(Tensor x not None, int axis):
    """out[i] = log(exp(x[0]) + ... + exp(x[i])) of a floating tensor."""
    cdef Py_ssize_t outer, inner, n = shape_of(x)[axis]
    cdef Tensor out
    x = contiguous_tensor(x)
    out = empty_like(x, x.dtype_id)
    outer = around(x, axis, &inner)
    if x.count:
        with nogil:
            if x.dtype_id == FLOAT32:
                sums(<const float*>x.data, <float*>out.data, outer, n, inner)
            else:
                sums(<const double*>x.data, <double*>out.data, outer, n, inner)
    return out
