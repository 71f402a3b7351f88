"""Fresh tensors with given values: constants, ranges, identity, triangles.

Owns the filling behind ops/creation.py, which normalises arguments; sizes are checked here once more, because a bad one would be
written through.  Ranges are computed in float64 (or exactly, in int64) and rounded once.  Holds the GIL except while filling
large memory.  Next to read: ops/creation.py.
"""
from libc.math cimport isfinite, pow
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from cgrad.core.dtype cimport ITEMSIZE, default_float, dtype_id, dtype_object
from cgrad.core.tensor cimport Tensor, cast_tensor, copy_tensor, empty_tensor, shape_of
from cgrad.kernels.table cimport FLOAT32, FLOAT64, INT64, MAX_DIMS

import operator

import numpy as np

from cgrad.core.convert import tensor_from

ctypedef fused number:
    int64_t
    float
    double


def length(str name, object value):
    """One extent as a Python int; TypeError for bools and floats."""
    if type(value) is int:
        return value
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}: a length must be an integer, got {value!r}")
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: a length must be an integer, got {value!r}") from None


def read_size(str name, tuple lengths not None, object shape=None, object size=None):
    """The shape a caller wrote as ints, as one tuple, or by keyword."""
    cdef object named = shape if shape is not None else size
    if named is not None:
        if lengths or (shape is not None and size is not None):
            raise TypeError(f"{name}: the shape is given twice")
        lengths = (named,)
    if len(lengths) == 1 and not isinstance(lengths[0], int):
        only = lengths[0]
        if isinstance(only, (np.ndarray, Tensor)) and only.ndim == 1:
            only = only.tolist()
        if isinstance(only, (tuple, list)):
            lengths = tuple(only)
    for n in lengths:
        if type(n) is not int:
            return tuple([length(name, n) for n in lengths])
    return lengths


cdef Tensor fresh(str name, tuple shape, int dtype):
    """Uninitialised memory; ValueError or MemoryError with the function's name and the shape."""
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef Py_ssize_t rank = len(shape), i
    if rank > MAX_DIMS:
        raise ValueError(f"{name}: at most {MAX_DIMS} axes are possible, got {rank}")
    for i in range(rank):
        if shape[i] < 0:
            raise ValueError(f"{name}: an axis cannot have a negative length; got shape {shape}")
        try:
            dims[i] = shape[i]
        except OverflowError:
            raise ValueError(f"{name}: shape {shape} is too large for this machine") from None
    try:
        return empty_tensor(dtype, <int> rank, dims)
    except ValueError:
        raise ValueError(f"{name}: shape {shape} of {dtype_object(dtype).name} is too large for this machine") from None
    except MemoryError:
        raise MemoryError(f"{name}: no memory for shape {shape} of {dtype_object(dtype).name}") from None


cdef inline int float_or(object dtype) except -1:
    """The id of a dtype; None is the default float."""
    return default_float() if dtype is None else dtype_id(dtype)


def empty(str name, tuple shape not None, object dtype):
    """A tensor whose elements are whatever was in memory."""
    return fresh(name, shape, float_or(dtype))


def zeros(str name, tuple shape not None, object dtype):
    """A tensor of zeros."""
    cdef Tensor out = fresh(name, shape, float_or(dtype))
    cdef size_t nbytes = out.count * ITEMSIZE[out.dtype_id]
    if nbytes > 65536:
        with nogil:
            memset(out.data, 0, nbytes)
    else:
        memset(out.data, 0, nbytes)
    return out


def full(str name, tuple shape not None, object value, object dtype):
    """A tensor with the same number everywhere; OverflowError if the dtype cannot hold it."""
    cdef Tensor one = tensor_from(value, dtype)
    cdef Tensor out = fresh(name, shape, one.dtype_id)
    cdef Py_ssize_t filled, more, total = out.count * ITEMSIZE[out.dtype_id]
    if total == 0:
        return out
    # One element, then doubling copies: memcpy speed for every element size.
    filled = ITEMSIZE[out.dtype_id]
    memcpy(out.data, one.data, filled)
    with nogil:
        while filled < total:
            more = min(filled, total - filled, 1 << 20)
            memcpy(out.data + filled, out.data, more)
            filled += more
    return out


cdef void fill_int_range(number* out, int64_t start, int64_t step, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = <number> (start + i * step)


cdef void fill_range(number* out, double start, double step, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = <number> (start + i * step)


def arange(object start, object step, Py_ssize_t n, object dtype):
    """start, start + step, ...: `n` numbers, exact if start and step are ints (of int64, where they wrap as those of uint64 do)."""
    cdef int target = dtype_id(dtype)
    cdef bint whole = isinstance(start, int) and isinstance(step, int)
    cdef Tensor out = fresh("arange", (n,), target if target in (FLOAT32, FLOAT64) else INT64 if whole else FLOAT64)
    cdef int64_t first, stride
    cdef double begin, width
    if whole:
        first, stride = start, step
        with nogil:
            if out.dtype_id == INT64:
                fill_int_range[int64_t](<int64_t*> out.data, first, stride, n)
            elif out.dtype_id == FLOAT32:
                fill_int_range[float](<float*> out.data, first, stride, n)
            else:
                fill_int_range[double](<double*> out.data, first, stride, n)
    else:
        begin, width = start, step
        if out.dtype_id == FLOAT32:
            fill_range[float](<float*> out.data, begin, width, n)
        else:
            fill_range[double](<double*> out.data, begin, width, n)
    return cast_tensor(out, target)


def linspace(str name, double start, double stop, Py_ssize_t n, bint endpoint, object dtype, object base=None):
    """
    `n` numbers at equal distances from `start` to `stop`; with `base`, that number to those powers.

    Each half is counted from its own end, so both ends are exact and the points lie symmetrically.
    """
    cdef Tensor exact = fresh(name, (n,), FLOAT64)
    cdef double* out = <double*> exact.data
    cdef Py_ssize_t last = n - 1 if endpoint else n                  # where `stop` lies
    cdef double step = (stop - start) / (last or 1) if isfinite(stop - start) else stop / (last or 1) - start / (last or 1)
    cdef double radix = 0.0 if base is None else base
    cdef bint powers = base is not None
    cdef Py_ssize_t i
    cdef double half = 0.5 * (last + 1)
    for i in range(n):
        if i >= half:
            out[i] = stop - (last - i) * step
        else:
            out[i] = start + i * step
        if powers:
            out[i] = pow(radix, out[i])
    if dtype_id(dtype) == FLOAT64:
        return exact
    return tensor_from(exact, dtype)


def eye(Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t k, object dtype):
    """Zeros with ones on diagonal `k`."""
    cdef Tensor out = zeros("eye", (rows, columns), dtype)
    cdef Tensor one = tensor_from(1, out.dtype)
    cdef int itemsize = ITEMSIZE[out.dtype_id]
    cdef Py_ssize_t i
    for i in range(max(<Py_ssize_t> 0, -k), min(rows, columns - k)):
        memcpy(out.data + (i * columns + i + k) * itemsize, one.data, itemsize)
    return out


def triangle(Tensor x not None, Py_ssize_t k, bint lower):
    """A copy of the matrices in `x` with zeros above (lower=True) or below diagonal `k`."""
    if x.rank < 2:
        raise ValueError(f"{'tril' if lower else 'triu'}: the tensor must have at least 2 axes, got shape {x.shape}")
    cdef Tensor out = copy_tensor(x)
    cdef Py_ssize_t rows = shape_of(out)[out.rank - 2], columns = shape_of(out)[out.rank - 1]
    cdef Py_ssize_t i, begin, end
    cdef int itemsize = ITEMSIZE[out.dtype_id]
    cdef char* row = out.data
    if out.count == 0:
        return out
    k = max(-rows, min(columns, k))
    with nogil:
        for _ in range(out.count // (rows * columns)):
            for i in range(rows):
                begin = max(<Py_ssize_t> 0, min(columns, i + k + 1)) if lower else 0
                end = columns if lower else max(<Py_ssize_t> 0, min(columns, i + k))
                if end > begin:
                    memset(row + begin * itemsize, 0, (end - begin) * itemsize)
                row += columns * itemsize
    return out
