"""softmax, log_softmax, their backward passes, and logsumexp of tensors.

Owns shapes and errors; the numbers come from kernels/rows.pyx.  Called by ops/softmax.py with a non-negative axis, on float32 or
float64 tensors.  Needs the GIL, which it lets go while long loops run.  Next: kernels/rows.pyx.
"""
from libc.math cimport INFINITY

from cgrad.core.dtype cimport dtype_object
from cgrad.core.tensor cimport (
    Tensor, cast_tensor, contiguous_tensor, empty_like, empty_tensor, same_shape, shape_of, shape_text, strides_of, view_tensor,
)
from cgrad.kernels.rows cimport run_logsumexp, run_row_map
from cgrad.kernels.table cimport (
    FLOAT32, LOG_SOFTMAX, LOG_SOFTMAX_BACKWARD, MAX_DIMS, SOFTMAX, SOFTMAX_BACKWARD,
)

cdef enum:
    LONG_LOOP = 4096       # elements from which releasing the GIL (about 50 ns) is lost in the loop


cdef int check_dtype(str name, Tensor x) except -1:
    if x.dtype_id < FLOAT32:
        raise TypeError(f"{name}: x must be a floating-point tensor, got {dtype_object(x.dtype_id).name}; convert it first")
    return 0


cdef int check_axis(str name, Tensor x, int axis) except -1:
    if axis < 0 or axis >= x.rank:
        raise IndexError(f"{name}: axis {axis} is out of range for shape {shape_text(x.rank, shape_of(x))}")
    return 0


cdef Tensor row_map(str name, int which, Tensor x, Tensor y, int axis):
    cdef Tensor out
    cdef const char* y_data = NULL
    cdef const Py_ssize_t* y_strides = NULL
    cdef int failed
    check_dtype(name, x)
    check_axis(name, x, axis)
    if y is not None:
        if not same_shape(x, y):
            raise ValueError(f"{name}: gradient and result must have the same shape; got {shape_text(x.rank, shape_of(x))} "
                             f"and {shape_text(y.rank, shape_of(y))}")
        if x.dtype_id != y.dtype_id:
            x = cast_tensor(x, y.dtype_id)
        y_data = y.data
        y_strides = strides_of(y)
    out = empty_like(x, x.dtype_id)
    if x.count < LONG_LOOP:
        failed = run_row_map(which, x.dtype_id, x.rank, shape_of(x), x.data, strides_of(x), y_data, y_strides, axis, out.data)
    else:
        with nogil:
            failed = run_row_map(which, x.dtype_id, x.rank, x.dims, x.data, x.dims + x.rank, y_data, y_strides, axis, out.data)
    if failed:
        raise MemoryError(f"{name}: no memory for scratch rows")
    return out


def softmax(Tensor x not None, int axis):
    """exp(x) / sum(exp(x)) along an axis."""
    return row_map("softmax", SOFTMAX, x, None, axis)


def log_softmax(Tensor x not None, int axis):
    """x - log(sum(exp(x))) along an axis."""
    return row_map("log_softmax", LOG_SOFTMAX, x, None, axis)


def softmax_backward(Tensor g not None, Tensor out not None, int axis):
    """out * (g - sum(g * out)): gradient of softmax with result `out`."""
    return row_map("softmax_backward", SOFTMAX_BACKWARD, g, out, axis)


def log_softmax_backward(Tensor g not None, Tensor out not None, int axis):
    """g - exp(out) * sum(g): gradient of log_softmax with result `out`."""
    return row_map("log_softmax_backward", LOG_SOFTMAX_BACKWARD, g, out, axis)


def logsumexp(Tensor x not None, object axes, bint keepdims):
    """log(sum(exp(x))) over `axes` (None: all; else a tuple of distinct axes); -inf over nothing."""
    cdef Py_ssize_t[MAX_DIMS] shape
    cdef Py_ssize_t[MAX_DIMS] kept
    cdef Py_ssize_t[MAX_DIMS] strides
    cdef Py_ssize_t n = 1
    cdef unsigned long long mask = 0
    cdef int axis, rank = 0, n_kept = 0, last
    cdef bint in_line = True
    cdef Tensor out
    check_dtype("logsumexp", x)
    if axes is None:
        for axis in range(x.rank):
            mask |= 1ULL << axis
    else:
        for axis in <tuple?> axes:
            check_axis("logsumexp", x, axis)
            mask |= 1ULL << axis
    for axis in range(x.rank):                       # kept axes first
        if not mask >> axis & 1:
            kept[n_kept] = shape_of(x)[axis]
            strides[n_kept] = strides_of(x)[axis]
            n_kept += 1
            shape[rank] = shape_of(x)[axis]
            rank += 1
        elif keepdims:
            shape[rank] = 1
            rank += 1
    out = empty_tensor(x.dtype_id, rank, shape)
    last = n_kept
    for axis in range(x.rank):                       # then the reduced ones
        if mask >> axis & 1:
            kept[last] = shape_of(x)[axis]
            strides[last] = strides_of(x)[axis]
            last += 1
    for axis in range(x.rank - 1, n_kept - 1, -1):
        in_line = in_line and (kept[axis] == 1 or strides[axis] == n)
        n *= kept[axis]
    if n == 0:
        fill(out, -INFINITY)
        return out
    if not in_line:                                  # rows in pieces: a copy in row order costs less than walking it
        x = contiguous_tensor(view_tensor(x, x.rank, kept, strides, 0))
        for axis in range(n_kept):
            strides[axis] = strides_of(x)[axis]
    if x.count < LONG_LOOP:
        run_logsumexp(x.dtype_id, n_kept, kept, x.data, strides, n, out.data)
    else:
        with nogil:
            run_logsumexp(x.dtype_id, n_kept, kept, x.data, strides, n, out.data)
    return out


cdef void fill(Tensor out, double value) noexcept:
    cdef Py_ssize_t i
    for i in range(out.count):
        if out.dtype_id == FLOAT32:
            (<float*> out.data)[i] = <float> value
        else:
            (<double*> out.data)[i] = value
