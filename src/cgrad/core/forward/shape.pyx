"""Views: another shape, order or direction over the same memory.

Owns reshape, permute, squeeze, expand_dims, broadcast_to, flip and diagonal without their derivatives.  Called by ops/shape.py and
ops/diagonal.py with options already normalised (tuples, no negative axis); everything that could read foreign memory is checked here once more.
All of it holds the GIL and costs nothing but a small object; only a reshape that no strides can express copies.
Read ops/shape.py next.
"""
from cgrad.core.tensor cimport Tensor, contiguous_tensor, shape_of, shape_text, strides_of, view_tensor
from cgrad.kernels.table cimport MAX_DIMS

import math

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX


cdef int read_shape(str name, tuple shape, Py_ssize_t* dims) except -1:
    """The extents of `shape` in `dims`; returns their number."""
    cdef Py_ssize_t rank = len(shape), i
    if rank > MAX_DIMS:
        raise ValueError(f"{name}: at most {MAX_DIMS} axes are possible, got {rank}")
    try:
        for i in range(rank):
            dims[i] = shape[i]
            if dims[i] < 0:
                raise ValueError(f"{name}: an axis cannot have a negative length; got shape {shape}")
    except OverflowError:
        raise ValueError(f"{name}: shape {shape} is too large for this machine") from None
    except TypeError:
        raise TypeError(f"{name}: a length must be an integer, got {shape[i]!r}") from None
    return <int>rank


cdef Py_ssize_t count_of(int rank, const Py_ssize_t* dims) noexcept:
    """The number of elements, or -1 if it does not fit."""
    cdef Py_ssize_t count = 1
    cdef int i
    for i in range(rank):
        if dims[i] == 0:
            return 0
    for i in range(rank):
        if count > PY_SSIZE_T_MAX // dims[i]:
            return -1
        count *= dims[i]
    return count


cdef unsigned long long axis_bits(str name, Tensor x, tuple axes) except? 0:
    """`axes` as a set of bits; each must name one axis of `x`, and only once."""
    cdef unsigned long long bits = 0
    cdef Py_ssize_t axis
    for axis in axes:
        if not 0 <= axis < x.rank:
            raise IndexError(f"{name}: axis {axis} is out of range for a tensor of shape {shape_text(x.rank, x.dims)}")
        if bits >> axis & 1:
            raise ValueError(f"{name}: axis {axis} is named twice in {axes}")
        bits |= 1ULL << axis
    return bits


cdef bint strides_for(Tensor x, int rank, const Py_ssize_t* dims, Py_ssize_t* strides) noexcept:
    """Strides that show the memory of `x` as `dims`, or False if no strides can.  As many elements in both, none of them 0.

    Both shapes are cut into the shortest runs of axes with equal products; a run of old axes can be split or joined in
    any way if it lies in memory as one axis would (Gohlke's method, as in NumPy).
    """
    cdef Py_ssize_t old_dims[MAX_DIMS]
    cdef Py_ssize_t old_strides[MAX_DIMS]
    cdef int n_old = 0, old_first = 0, old_last, new_first = 0, new_last, k
    cdef Py_ssize_t old_count, new_count
    for k in range(x.rank):
        if shape_of(x)[k] != 1:
            old_dims[n_old] = shape_of(x)[k]
            old_strides[n_old] = strides_of(x)[k]
            n_old += 1
    while new_first < rank and old_first < n_old:
        new_count, old_count = dims[new_first], old_dims[old_first]
        new_last, old_last = new_first + 1, old_first + 1
        while new_count != old_count:
            if new_count < old_count:
                new_count *= dims[new_last]
                new_last += 1
            else:
                old_count *= old_dims[old_last]
                old_last += 1
        for k in range(old_first, old_last - 1):
            if old_strides[k] != old_dims[k + 1] * old_strides[k + 1]:
                return False
        strides[new_last - 1] = old_strides[old_last - 1]
        for k in range(new_last - 1, new_first, -1):
            strides[k - 1] = strides[k] * dims[k]
        new_first, old_first = new_last, old_last
    for k in range(new_first, rank):          # only axes of length 1 are left
        strides[k] = 1
    return True


cdef tuple complete(Tensor x, tuple shape):
    """`shape` with the length that -1 stands for."""
    at = shape.index(-1)
    rest = math.prod(shape[:at] + shape[at + 1:])
    if -1 in shape[at + 1:]:
        raise ValueError(f"reshape: only one extent can be -1; got {shape}")
    if rest == 0 and x.count == 0:
        raise ValueError(f"reshape: -1 in {shape} could be any number, since there are no elements; name the length")
    if rest <= 0 or x.count % rest:
        raise ValueError(f"reshape: {x.count} elements of shape {shape_text(x.rank, x.dims)} do not fit into {shape}")
    return shape[:at] + (x.count // rest,) + shape[at + 1:]


def reshape(Tensor x not None, tuple shape):
    """`x` with another shape of as many elements; one extent may be -1.  A view wherever strides allow, else a copy."""
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef Py_ssize_t strides[MAX_DIMS]
    cdef int rank, i
    if -1 in shape:
        shape = complete(x, shape)
    rank = read_shape("reshape", shape, dims)
    if count_of(rank, dims) != x.count:
        raise ValueError(f"reshape: {x.count} elements of shape {shape_text(x.rank, x.dims)} do not fit into {shape}, "
                         f"which has {math.prod(shape)}")
    if x.count == 0 or not strides_for(x, rank, dims, strides):
        x = contiguous_tensor(x)
        strides[rank - 1 if rank else 0] = 1
        for i in range(rank - 1, 0, -1):
            strides[i - 1] = strides[i] * max(dims[i], 1)
    return view_tensor(x, rank, dims, strides, 0)


def can_view(Tensor x not None, tuple shape):
    """Whether `x` can be seen as `shape` (complete, as many elements) without a copy."""
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef Py_ssize_t strides[MAX_DIMS]
    cdef int rank = read_shape("view", shape, dims)
    if count_of(rank, dims) != x.count:
        return False
    return x.count == 0 or strides_for(x, rank, dims, strides)


def permute(Tensor x not None, tuple axes):
    """Axis i of the result is axis axes[i] of `x`."""
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef Py_ssize_t strides[MAX_DIMS]
    cdef int i, axis
    if len(axes) != x.rank:
        raise ValueError(f"permute_dims: {len(axes)} axes given for a tensor of shape {shape_text(x.rank, x.dims)}; name each axis once")
    axis_bits("permute_dims", x, axes)
    for i in range(x.rank):
        axis = axes[i]
        dims[i] = shape_of(x)[axis]
        strides[i] = strides_of(x)[axis]
    return view_tensor(x, x.rank, dims, strides, 0)


def squeeze(Tensor x not None, tuple axes):
    """`x` without the named axes, each of length 1."""
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef Py_ssize_t strides[MAX_DIMS]
    cdef unsigned long long drop = axis_bits("squeeze", x, axes)
    cdef int i, rank = 0
    for i in range(x.rank):
        if drop >> i & 1:
            if shape_of(x)[i] != 1:
                raise ValueError(f"squeeze: axis {i} of shape {shape_text(x.rank, x.dims)} has length {shape_of(x)[i]}, not 1")
        else:
            dims[rank] = shape_of(x)[i]
            strides[rank] = strides_of(x)[i]
            rank += 1
    return view_tensor(x, rank, dims, strides, 0)


def expand_dims(Tensor x not None, tuple axes):
    """`x` with new axes of length 1 at the places `axes` of the result."""
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef Py_ssize_t strides[MAX_DIMS]
    cdef unsigned long long new = 0
    cdef int rank, i, old = 0
    if len(axes) + x.rank > MAX_DIMS:
        raise ValueError(f"expand_dims: at most {MAX_DIMS} axes are possible, got {len(axes) + x.rank}")
    rank = x.rank + <int>len(axes)
    for axis in axes:
        if not 0 <= axis < rank:
            raise IndexError(f"expand_dims: axis {axis} is out of range for a result with {rank} axes")
        if new >> <int>axis & 1:
            raise ValueError(f"expand_dims: axis {axis} is named twice in {axes}")
        new |= 1ULL << <int>axis
    for i in range(rank):
        if new >> i & 1:
            dims[i] = 1
            strides[i] = 1
        else:
            dims[i] = shape_of(x)[old]
            strides[i] = strides_of(x)[old]
            old += 1
    return view_tensor(x, rank, dims, strides, 0)


def broadcast_to(Tensor x not None, tuple shape):
    """`x` repeated, without a copy, along new leading axes and axes of length 1."""
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef Py_ssize_t strides[MAX_DIMS]
    cdef int rank = read_shape("broadcast_to", shape, dims)
    cdef int i, lead = rank - x.rank
    if lead < 0:
        raise ValueError(f"broadcast_to: shape {shape_text(x.rank, x.dims)} has more axes than {shape}")
    if count_of(rank, dims) < 0:
        raise ValueError(f"broadcast_to: shape {shape} is too large for this machine")
    for i in range(rank):
        if i < lead:
            strides[i] = 0
        elif shape_of(x)[i - lead] == dims[i]:
            strides[i] = strides_of(x)[i - lead]
        elif shape_of(x)[i - lead] == 1:
            strides[i] = 0
        else:
            raise ValueError(f"broadcast_to: shape {shape_text(x.rank, x.dims)} does not broadcast to {shape}: axis {i} has "
                             f"{shape_of(x)[i - lead]} elements, neither 1 nor {dims[i]}")
    return view_tensor(x, rank, dims, strides, 0)


def flip(Tensor x not None, tuple axes):
    """`x` read backwards along the named axes."""
    cdef Py_ssize_t strides[MAX_DIMS]
    cdef unsigned long long turn = axis_bits("flip", x, axes)
    cdef Py_ssize_t offset = 0
    cdef int i
    for i in range(x.rank):
        strides[i] = strides_of(x)[i]
        if turn >> i & 1:
            strides[i] = -strides[i]
            if x.count:
                offset += (shape_of(x)[i] - 1) * strides_of(x)[i]
    return view_tensor(x, x.rank, shape_of(x), strides, offset)


def diagonal(Tensor x not None, Py_ssize_t offset, tuple axes):
    """The elements [i, i + offset] of two axes along a last one (for a negative offset [i - offset, i])."""
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef Py_ssize_t strides[MAX_DIMS]
    cdef int first, second, i, rank = 0
    cdef Py_ssize_t above, below, n
    if len(axes) != 2:
        raise ValueError(f"diagonal: lies between two axes, got {axes}")
    axis_bits("diagonal", x, axes)
    first, second = axes
    above = min(max(offset, 0), shape_of(x)[second])
    below = min(max(-offset, 0), shape_of(x)[first])
    n = min(shape_of(x)[first] - below, shape_of(x)[second] - above)
    for i in range(x.rank):
        if i != first and i != second:
            dims[rank] = shape_of(x)[i]
            strides[rank] = strides_of(x)[i]
            rank += 1
    dims[rank] = n
    strides[rank] = strides_of(x)[first] + strides_of(x)[second]
    return view_tensor(x, rank + 1, dims, strides, below * strides_of(x)[first] + above * strides_of(x)[second] if n > 0 and x.count else 0)
