"""Running sums and products along an axis, and the first-order linear recurrence that their derivatives need.

Called by ops/scan.py with an axis in range.  Results are fresh and C-contiguous; integers and bools widen to int64, unsigned
ones to uint64.  A scan runs
one element after the other by nature, so only the columns beside it go through vector units.  The GIL is released in long
loops.  Read ops/scan.py next.
"""
from libc.stdint cimport int64_t

from cgrad.core.dtype cimport KIND, KIND_FLOAT
from cgrad.core.forward.axis cimport around
from cgrad.core.tensor cimport Tensor, cast_tensor, contiguous_tensor, empty_like, same_shape, shape_of, shape_text
from cgrad.kernels.table cimport FLOAT32, INT64, UINT8, UINT64

ctypedef fused element:
    int64_t
    float
    double

cdef enum Scan:
    SUM
    PRODUCT
    RECURRENCE


cdef void scan(Scan which, element* out, const element* x, const element* a, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner,
               bint reverse) noexcept nogil:
    """out[i] = x[i] + out[i - 1], x[i] * out[i - 1] or x[i] + a[i] * out[i - 1], for `inner` neighbours at a time."""
    cdef Py_ssize_t step = -inner if reverse else inner, block, _i, j, at
    cdef double total
    for block in range(outer):
        at = block * n * inner + ((n - 1) * inner if reverse else 0)
        if element is float:
            if inner == 1:                        # one number carries the sum: in double, its rounding costs nothing
                total = 1 if which == PRODUCT else 0
                for _i in range(n):
                    if which == SUM:
                        total = total + x[at]
                    elif which == PRODUCT:
                        total = total * x[at]
                    else:
                        total = x[at] + a[at] * total
                    out[at] = <float>total
                    at += step
                continue
        for j in range(at, at + inner):
            out[j] = x[j]
        for _i in range(1, n):
            at += step
            if which == SUM:
                for j in range(at, at + inner):
                    out[j] = x[j] + out[j - step]
            elif which == PRODUCT:
                for j in range(at, at + inner):
                    out[j] = x[j] * out[j - step]
            else:
                for j in range(at, at + inner):
                    out[j] = x[j] + a[j] * out[j - step]


cdef Tensor run(Scan which, Tensor x, Tensor a, int axis, bint reverse):
    cdef Tensor out
    cdef Py_ssize_t outer, inner, n
    cdef bint unsigned = UINT8 <= x.dtype_id <= UINT64
    if not 0 <= axis < x.rank:
        raise IndexError(f"scan: axis {axis} is out of range for a tensor of shape {shape_text(x.rank, x.dims)}")
    if KIND[x.dtype_id] != KIND_FLOAT:
        x = cast_tensor(x, INT64)
    x = contiguous_tensor(x)
    if which == RECURRENCE:
        if not same_shape(x, a):
            raise ValueError(f"recurrence: shapes {shape_text(x.rank, x.dims)} and {shape_text(a.rank, a.dims)} differ")
        a = contiguous_tensor(cast_tensor(a, x.dtype_id))
    else:
        a = x
    out = empty_like(x, x.dtype_id)
    n = shape_of(x)[axis]
    outer = around(x, axis, &inner)
    with nogil:
        if x.dtype_id == INT64:
            scan(which, <int64_t*>out.data, <const int64_t*>x.data, <const int64_t*>a.data, outer, n, inner, reverse)
        elif x.dtype_id == FLOAT32:
            scan(which, <float*>out.data, <const float*>x.data, <const float*>a.data, outer, n, inner, reverse)
        else:
            scan(which, <double*>out.data, <const double*>x.data, <const double*>a.data, outer, n, inner, reverse)
    return cast_tensor(out, UINT64) if unsigned else out            # the same bits


def cumulative_sum(Tensor x not None, int axis, bint reverse):
    """out[i] = x[0] + ... + x[i], or from the other end."""
    return run(SUM, x, None, axis, reverse)


def cumulative_prod(Tensor x not None, int axis):
    """out[i] = x[0] * ... * x[i]."""
    return run(PRODUCT, x, None, axis, False)


def recurrence(Tensor x not None, Tensor a not None, int axis, bint reverse):
    """out[i] = x[i] + a[i] * out[i - 1] with out[-1] = 0, or from the other end."""
    return run(RECURRENCE, x, a, axis, reverse)
