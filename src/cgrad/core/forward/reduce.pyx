"""Reductions of tensors: what the ops layer calls for sum, prod, max, min, any, all, argmax, argmin.

Owns shapes, result dtypes and errors; the numbers come from kernels/reduce.pyx.  Called by ops/reduction.py with axes already
normalised: None for all of them, else a sorted tuple of distinct non-negative ints; () reduces nothing.  Needs the GIL, which it
lets go while a long reduction runs.  The functions bear the names of the operations and so hide Python's builtins in this file.
Next: kernels/reduce.pyx.
"""
from cgrad.core.forward.ordered cimport in_order, out_of_order
from cgrad.core.tensor cimport Tensor, cast_tensor, empty_tensor, shape_of, shape_text, strides_of
from cgrad.kernels.reduce cimport reduce_result_dtype, run_reduce
from cgrad.kernels.table cimport INT64, MAX_DIMS, UINT16, UINT64, Reduction

cdef enum:
    LONG_LOOP = 16384      # elements from which releasing the GIL (about 50 ns) is lost in the loop

NAMES = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")


cdef Tensor reduce_tensor(int reduction, Tensor x, object axes, bint keepdims):
    cdef unsigned long long mask = 0
    cdef Py_ssize_t[MAX_DIMS] shape
    cdef Py_ssize_t* dims = shape_of(x)
    cdef Py_ssize_t folded = 1, results = 1
    cdef Py_ssize_t axis
    cdef int i, rank = 0, failed, dtype = x.dtype_id
    cdef bint keeps_dtype = reduction == Reduction.MAX or reduction == Reduction.MIN
    cdef Tensor out
    if UINT16 <= dtype <= UINT64:                # as int64; order asks for the sign, sums and truth do not
        x = in_order(x) if keeps_dtype or reduction >= Reduction.ARGMAX else cast_tensor(x, INT64)
        dims = shape_of(x)
    if axes is None:
        for i in range(x.rank):
            mask |= 1ULL << i
    else:
        for axis in <tuple?> axes:
            if axis < 0 or axis >= x.rank:
                raise IndexError(f"{NAMES[reduction]}: axis {axis} is out of range for shape {shape_text(x.rank, dims)}")
            mask |= 1ULL << axis
    for i in range(x.rank):
        if mask >> i & 1:
            folded *= dims[i]
            if keepdims:
                shape[rank] = 1
                rank += 1
        else:
            results *= dims[i]
            shape[rank] = dims[i]
            rank += 1
    if folded == 0 and results != 0 and reduction in (Reduction.MAX, Reduction.MIN, Reduction.ARGMAX, Reduction.ARGMIN):
        raise ValueError(f"{NAMES[reduction]}: there is no element to choose from; got shape {shape_text(x.rank, dims)}"
                         + (" and all axes" if axes is None else f" and axes {axes}")
                         + ", but the reduced axes must not be empty")
    out = empty_tensor(reduce_result_dtype(reduction, x.dtype_id), rank, shape)
    if x.count < LONG_LOOP:
        failed = run_reduce(reduction, x.dtype_id, x.data, x.rank, dims, strides_of(x), mask, out.data)
    else:
        with nogil:
            failed = run_reduce(reduction, x.dtype_id, x.data, x.rank, x.dims, x.dims + x.rank, mask, out.data)
    if failed:
        raise MemoryError(f"{NAMES[reduction]}: no memory for partial results")
    if dtype != x.dtype_id and keeps_dtype:
        return out_of_order(out, dtype)
    return cast_tensor(out, reduce_result_dtype(reduction, dtype))


def sum(Tensor x not None, object axes, bint keepdims):
    """Sum over axes; int64 for bool and integers, uint64 for unsigned ones.  float32 is summed in float64 and rounded once."""
    return reduce_tensor(Reduction.SUM, x, axes, keepdims)


def prod(Tensor x not None, object axes, bint keepdims):
    """Product over axes; int64 for bool and integers, uint64 for unsigned ones."""
    return reduce_tensor(Reduction.PROD, x, axes, keepdims)


def max(Tensor x not None, object axes, bint keepdims):
    """Largest element over axes; NaN if there is one."""
    return reduce_tensor(Reduction.MAX, x, axes, keepdims)


def min(Tensor x not None, object axes, bint keepdims):
    """Smallest element over axes; NaN if there is one."""
    return reduce_tensor(Reduction.MIN, x, axes, keepdims)


def any(Tensor x not None, object axes, bint keepdims):
    """Whether some element is nonzero (NaN counts as nonzero)."""
    return reduce_tensor(Reduction.ANY, x, axes, keepdims)


def all(Tensor x not None, object axes, bint keepdims):
    """Whether every element is nonzero (NaN counts as nonzero)."""
    return reduce_tensor(Reduction.ALL, x, axes, keepdims)


def argmax(Tensor x not None, object axis, bint keepdims):
    """Index of the first NaN, else of the first largest element, along `axis` or (None) in the flattened tensor."""
    return reduce_tensor(Reduction.ARGMAX, x, None if axis is None else (axis,), keepdims)


def argmin(Tensor x not None, object axis, bint keepdims):
    """Index of the first NaN, else of the first smallest element, along `axis` or (None) in the flattened tensor."""
    return reduce_tensor(Reduction.ARGMIN, x, None if axis is None else (axis,), keepdims)
