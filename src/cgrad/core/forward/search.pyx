"""Searching sorted rows, and what sets of numbers tell: unique elements, membership, counts.

Binary search is a loop of our own, since rows come in batches; sets are NumPy's, on the tensors' own memory.  NaN is larger than every
number.  Called by ops/searching.py, which checks shapes; results are plain and hold int64 or bools.  The GIL is released in long loops.
Next: ops/searching.py.
"""
from libc.stdint cimport int64_t

from cgrad.core.dtype cimport promote
from cgrad.core.forward.ordered cimport in_order
from cgrad.core.tensor cimport Tensor, cast_tensor, contiguous_tensor, empty_like, shape_of
from cgrad.kernels.table cimport FLOAT32, INT64

import numpy as np

from cgrad.core import convert
from cgrad.core.forward import fill

ctypedef fused element:
    int64_t
    float
    double


cdef inline Py_ssize_t places_before(const element* row, Py_ssize_t n, element value, bint right) noexcept nogil:
    """How many elements of a sorted row are less than the value, or not greater if `right`; NaN is larger than every number."""
    cdef const element* start = row
    cdef Py_ssize_t half
    if n == 0:
        return 0
    if element is not int64_t:
        if value != value:
            while not right and n > 0 and row[n - 1] != row[n - 1]:
                n -= 1
            return n
    while n > 1:                       # without a branch that depends on the numbers: these could not be foretold
        half = n // 2
        start += half * (start[half - 1] <= value if right else start[half - 1] < value)
        n -= half
    return start - row + (start[0] <= value if right else start[0] < value)


cdef void search(const element* rows, Py_ssize_t n, const element* values, Py_ssize_t m, int64_t* out, Py_ssize_t count, bint one_row,
                 bint right) noexcept nogil:
    """For each of the values its place in its row (of length n, for m values each)."""
    cdef Py_ssize_t i
    cdef const element* row = rows
    for i in range(count):
        if not one_row and i and i % m == 0:
            row += n
        out[i] = places_before(row, n, values[i], right)


def searchsorted(Tensor x not None, Tensor y not None, bint right):
    """Where each value of `y` goes into its row of `x`: x is one row, or has the shape of y except along the last axis."""
    cdef int dtype = promote(x.dtype_id, y.dtype_id)
    cdef Py_ssize_t n = shape_of(x)[x.rank - 1]
    cdef Py_ssize_t m = shape_of(y)[y.rank - 1] if y.rank else 1
    cdef bint one_row = x.rank == 1
    cdef Tensor out
    x, y = contiguous_tensor(in_order(cast_tensor(x, dtype))), contiguous_tensor(in_order(cast_tensor(y, dtype)))
    out = empty_like(y, INT64)
    with nogil:
        if x.dtype_id == INT64:
            search(<const int64_t*>x.data, n, <const int64_t*>y.data, m, <int64_t*>out.data, y.count, one_row, right)
        elif dtype == FLOAT32:
            search(<const float*>x.data, n, <const float*>y.data, m, <int64_t*>out.data, y.count, one_row, right)
        else:
            search(<const double*>x.data, n, <const double*>y.data, m, <int64_t*>out.data, y.count, one_row, right)
    return out


def unique_slices(Tensor x not None, along):
    """First place of each different slice along an axis, which one stands at each place, and how often each occurs."""
    _, *found = np.unique(convert.numpy(x), return_index=True, return_inverse=True, return_counts=True, axis=along, equal_nan=False)
    return tuple([convert.share_array(part.reshape(-1).astype(np.int64, copy=False)) for part in found])


def isin(Tensor x not None, Tensor y not None, bint invert):
    """Whether each element of `x` is among those of `y`, or is not."""
    return convert.share_array(np.asarray(np.isin(convert.numpy(x), convert.numpy(y), invert=invert)))


def bincount(Tensor x not None, Py_ssize_t length):
    """How often each of 0, 1, ..., length - 1 occurs in a vector of such numbers."""
    cdef Tensor out = fill.zeros("bincount", (length,), "int64")
    cdef int64_t* counts = <int64_t*>out.data
    cdef const int64_t* data
    cdef Py_ssize_t i
    x = contiguous_tensor(cast_tensor(x, INT64))
    data = <const int64_t*>x.data
    with nogil:
        for i in range(x.count):
            if 0 <= data[i] < length:                          # the caller has made sure; memory is safe all the same
                counts[data[i]] += 1
    return out


cdef void tally(const element* x, Py_ssize_t n, const element* edges, Py_ssize_t bins, int64_t* counts) noexcept nogil:
    """Where a number falls is guessed from equal widths, and the edges as they are decide."""
    cdef double low = edges[0], scale = bins / (<double>edges[bins] - low), guess
    cdef Py_ssize_t i, k
    for i in range(n):
        if x[i] >= edges[0] and x[i] <= edges[bins]:
            guess = (x[i] - low) * scale                       # not a number if the range is empty or overflows
            k = 0 if not guess >= 0 else <Py_ssize_t>guess if guess < bins else bins - 1
            while x[i] < edges[k]:
                k -= 1
            while k < bins - 1 and x[i] >= edges[k + 1]:
                k += 1
            counts[k] += 1


def histogram(Tensor x not None, Tensor edges not None):
    """How many elements lie between neighbours of equally distant edges; the last interval has its upper edge, too."""
    cdef Py_ssize_t bins = edges.count - 1
    cdef Tensor out = fill.zeros("histogram", (bins,), "int64")
    x, edges = contiguous_tensor(x), contiguous_tensor(edges)
    with nogil:
        if x.dtype_id == FLOAT32:
            tally(<const float*>x.data, x.count, <const float*>edges.data, bins, <int64_t*>out.data)
        else:
            tally(<const double*>x.data, x.count, <const double*>edges.data, bins, <int64_t*>out.data)
    return out
