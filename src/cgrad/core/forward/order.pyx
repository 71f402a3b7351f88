"""Order along an axis: sorted values, and the places of elements that order picks.

NumPy's sorts run on the tensors' own memory (they let the GIL go); a few of the largest or smallest are kept in order in one pass of our
own.  NaN is larger than every number, as in NumPy and PyTorch, and the first of equals comes first.  Called by ops/sorting.py with an axis
in range of a tensor that is not 0-d.  Places are int64 and keep the axis.  Next: ops/sorting.py.
"""
from libc.stdint cimport int32_t, int64_t

from cgrad.core.dtype cimport ITEMSIZE, KIND, KIND_FLOAT
from cgrad.core.forward.axis cimport around
from cgrad.core.forward.ordered cimport in_order
from cgrad.core.tensor cimport Tensor, cast_tensor, contiguous_tensor, empty_like, empty_tensor, shape_of
from cgrad.kernels.table cimport FLOAT32, INT32, INT64, MAX_DIMS, UINT32

import numpy as np

from cgrad.core import convert

ctypedef fused element:
    int64_t
    float
    double

ctypedef fused floating:
    float
    double

ctypedef fused word:
    int32_t
    float

cdef enum:
    FEW = 32               # up to so many are kept in order as they come, which costs no more than k steps an element


cdef inline bint less(element a, element b) noexcept nogil:
    if element is int64_t:
        return a < b
    else:
        return a < b or (b != b and a == a)


cdef void keep_best(const element* x, Py_ssize_t n, Py_ssize_t step, Py_ssize_t k, bint largest, int64_t* places) noexcept nogil:
    """Places of the k best of n elements, best first: one pass, with what is better than the worst put in its place."""
    cdef element[FEW] best
    cdef element value
    cdef Py_ssize_t i, j, count = 0
    for i in range(n):
        value = x[i * step]
        if count == k:
            if not (less(best[k - 1], value) if largest else less(value, best[k - 1])):
                continue
            j = k - 1
        else:
            j = count
            count += 1
        while j > 0 and (less(best[j - 1], value) if largest else less(value, best[j - 1])):
            best[j] = best[j - 1]
            places[j * step] = places[(j - 1) * step]
            j -= 1
        best[j] = value
        places[j * step] = i


cdef void keep_best_of_rows(const element* x, int64_t* places, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t k,
                            bint largest) noexcept nogil:
    cdef Py_ssize_t i, j
    for i in range(outer):
        for j in range(inner):
            keep_best(x + i * n * inner + j, n, inner, k, largest, places + i * k * inner + j)


cdef Tensor wide(Tensor x):
    """C-contiguous, with one dtype for all integers."""
    return contiguous_tensor(in_order(x))


cdef Tensor places_for(Tensor x, int axis, Py_ssize_t k):
    """Room for k places along an axis."""
    cdef Py_ssize_t[MAX_DIMS] shape
    cdef int i
    for i in range(x.rank):
        shape[i] = shape_of(x)[i]
    shape[axis] = k
    return empty_tensor(INT64, x.rank, shape)


cdef Tensor few(Tensor x, Py_ssize_t k, int axis, bint largest):
    """Places of the k best, for 0 < k <= FEW."""
    cdef Py_ssize_t inner, n = shape_of(x)[axis], outer = around(x, axis, &inner)
    cdef Tensor out = places_for(x, axis, k)
    x = wide(x)
    with nogil:
        if x.dtype_id == INT64:
            keep_best_of_rows(<const int64_t*>x.data, <int64_t*>out.data, outer, n, inner, k, largest)
        elif x.dtype_id == FLOAT32:
            keep_best_of_rows(<const float*>x.data, <int64_t*>out.data, outer, n, inner, k, largest)
        else:
            keep_best_of_rows(<const double*>x.data, <int64_t*>out.data, outer, n, inner, k, largest)
    return out


def sort(Tensor x not None, axis, descending):
    """The elements in order."""
    out = x.clone()
    array = convert.numpy(out)
    if descending:                      # NumPy only sorts upwards: so it sorts what is read from the other end
        array = np.flip(array, axis)
    array.sort(axis)
    return out


cdef inline int64_t rank_of(word value) noexcept nogil:
    """An integer of 32 bits that is ordered as the value is: NaN is the largest, and both zeros are one."""
    cdef int32_t bits
    if word is int32_t:
        return value
    else:
        if value != value:
            return 0x7fffffff
        value = value + 0
        bits = (<int32_t*>&value)[0]
        return bits ^ 0x7fffffff if bits < 0 else bits


cdef void pack(const word* x, int64_t* keys, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, bint descending) noexcept nogil:
    """One number for each element: its rank, then its place, so that no two are equal."""
    cdef Py_ssize_t _block, _j, i, at = 0
    cdef int64_t rank
    for _block in range(outer):
        for i in range(n):
            for _j in range(inner):
                rank = rank_of(x[at])
                keys[at] = (~rank if descending else rank) * (<int64_t>1 << 32) + i
                at += 1


cdef void unpack(int64_t* keys, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        keys[i] &= (<int64_t>1 << 32) - 1


cdef Tensor packed_argsort(Tensor x, int axis, bint descending):
    """A stable sort of places by sorting ranks of 32 bits together with them, ten times as fast as one that merges."""
    cdef Py_ssize_t inner, n = shape_of(x)[axis], outer = around(x, axis, &inner)
    cdef Tensor keys
    x = contiguous_tensor(x if x.dtype_id == FLOAT32 else cast_tensor(x, INT32))
    keys = empty_like(x, INT64)
    with nogil:
        if x.dtype_id == FLOAT32:
            pack(<const float*>x.data, <int64_t*>keys.data, outer, n, inner, descending)
        else:
            pack(<const int32_t*>x.data, <int64_t*>keys.data, outer, n, inner, descending)
    convert.numpy(keys).sort(axis)
    with nogil:
        unpack(<int64_t*>keys.data, keys.count)
    return keys


def argsort(Tensor x not None, axis, descending, stable):
    """Places of the elements in order."""
    if x.dtype_id != UINT32 and ITEMSIZE[x.dtype_id] <= 4 and x.count < 0x7fffffff:
        return packed_argsort(x, axis, descending)
    array = convert.numpy(x)
    kind = "stable" if stable else "quicksort"
    if not descending:
        return convert.share_array(np.argsort(array, axis, kind))
    backwards = np.flip(np.argsort(np.flip(array, axis), axis, kind), axis)
    return convert.share_array(array.shape[axis] - 1 - backwards)


def top(Tensor x not None, k, axis, largest, ordered):
    """Places of the k largest or smallest elements."""
    if 0 < k <= FEW:
        return few(x, k, axis, largest)
    array = convert.numpy(x)
    n = array.shape[axis]
    if not 0 < k < n:
        return convert.share_array(np.take(convert.numpy(argsort(x, axis, largest, True)), range(k), axis))
    found = np.moveaxis(np.argpartition(array, n - k if largest else k - 1, axis), axis, -1)
    found = found[..., n - k:] if largest else found[..., :k]
    found = np.moveaxis(np.sort(found, -1), -1, axis)            # among equals the first comes first
    if ordered:
        order = argsort(convert.share_array(np.take_along_axis(array, found, axis)), axis, largest, True)
        found = np.take_along_axis(found, convert.numpy(order), axis)
    return convert.share_array(found)


def kth(Tensor x not None, k, axis):
    """Place of the k-th smallest element, counted from 0."""
    if k < FEW:
        array = convert.numpy(few(x, k + 1, axis, False))
    else:
        array = np.argpartition(convert.numpy(x), k, axis)
    return contiguous_tensor(convert.share_array(array[(slice(None),) * axis + (slice(k, k + 1),)]))


cdef void prefer_nan(const floating* x, int64_t* places, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner) noexcept nogil:
    """The place of the first NaN instead, if there is one."""
    cdef Py_ssize_t _block, j, k
    cdef bint some
    for _block in range(outer):
        some = False
        for k in range(n * inner):                   # the compiler vectorises this one
            some |= x[k] != x[k]
        if some:
            for k in range(n - 1, -1, -1):
                for j in range(inner):
                    if x[k * inner + j] != x[k * inner + j]:
                        places[j] = k
        x += n * inner
        places += inner


def median(Tensor x not None, axis):
    """Place of the median, the lower one of two; of the first NaN if there is one."""
    cdef Py_ssize_t inner, n = shape_of(x)[axis], outer = around(x, axis, &inner)
    cdef Tensor found = kth(x, (n - 1) // 2, axis)
    if KIND[x.dtype_id] == KIND_FLOAT:
        x = contiguous_tensor(x)
        with nogil:
            if x.dtype_id == FLOAT32:
                prefer_nan(<const float*>x.data, <int64_t*>found.data, outer, n, inner)
            else:
                prefer_nan(<const double*>x.data, <int64_t*>found.data, outer, n, inner)
    return found


def nanmedian(Tensor x not None, axis):
    """Place of the median of what is not NaN."""
    array = convert.numpy(x)
    valid = np.sum(array == array, axis, keepdims=True)
    return convert.share_array(np.take_along_axis(convert.numpy(argsort(x, axis, False, True)), np.maximum(valid - 1, 0) // 2, axis))


cdef void most_frequent(const element* x, const int64_t* order, int64_t* out, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner) noexcept nogil:
    """The last place of the longest run of equals in order, of the first if there are several."""
    cdef Py_ssize_t i, j, k, start, run, longest
    for i in range(outer):
        for j in range(inner):
            start = i * n * inner + j
            run = longest = 0
            for k in range(n):
                run += 1
                if k == n - 1 or x[start + order[start + k * inner] * inner] != x[start + order[start + (k + 1) * inner] * inner]:
                    if run > longest:
                        longest = run
                        out[i * inner + j] = order[start + k * inner]
                    run = 0


def mode(Tensor x not None, axis):
    """Last place of the element that occurs most often; of the smallest if there are several."""
    cdef Tensor order = contiguous_tensor(argsort(x, axis, False, True)), out = places_for(x, axis, 1)
    cdef Py_ssize_t inner, n = shape_of(x)[axis], outer = around(x, axis, &inner)
    x = wide(x)
    with nogil:
        if x.dtype_id == INT64:
            most_frequent(<const int64_t*>x.data, <const int64_t*>order.data, <int64_t*>out.data, outer, n, inner)
        elif x.dtype_id == FLOAT32:
            most_frequent(<const float*>x.data, <const int64_t*>order.data, <int64_t*>out.data, outer, n, inner)
        else:
            most_frequent(<const double*>x.data, <const int64_t*>order.data, <int64_t*>out.data, outer, n, inner)
    return out
