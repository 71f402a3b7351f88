"""Joining, cutting, repeating and padding without derivatives.

Owns concat, stack, split, unstack, roll, repeat, tile and constant padding.  Called by ops/joining.py and ops/repeating.py with axes already in range;
shapes are checked here.  Pieces are copied through views by the n-d copy of the core, so layout, dtype and threads are its business;
cutting gives views.  Holds the GIL, which the copy releases when it is long.  Next to read: ops/joining.py.
"""
from libc.string cimport memcpy

from cgrad.core.dtype cimport ITEMSIZE, promote
from cgrad.core.tensor cimport (
    CONTIGUOUS, Tensor, copy_into, copy_tensor, empty_tensor, shape_of, shape_text, strides_of, view_tensor)
from cgrad.kernels.table cimport MAX_DIMS

from cgrad.core.convert import tensor_from

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX


cdef int common_dtype(list xs) except -1:
    cdef int dtype = (<Tensor> xs[0]).dtype_id
    cdef Tensor x
    for x in xs:
        dtype = promote(dtype, x.dtype_id)
    return dtype


def all_tensors(object xs):
    """Whether `xs` is a list or tuple of tensors, at least one."""
    if not isinstance(xs, (list, tuple)) or not xs:
        return False
    for x in xs:
        if not isinstance(x, Tensor):
            return False
    return True


def same_rank(object xs):
    """Whether all tensors have as many axes as the first."""
    cdef Tensor x, first = xs[0]
    for x in xs:
        if x.rank != first.rank:
            return False
    return True


def concat(list xs not None, int axis):
    """The tensors one after another along an existing axis."""
    cdef Tensor first, x, out
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef Py_ssize_t total = 0, place = 0, step, piece
    cdef int k
    cdef char* target
    cdef bint plain = True
    if not xs:
        raise ValueError("concat: at least one tensor is needed")
    first = xs[0]
    cdef int dtype = common_dtype(xs)
    if not 0 <= axis < first.rank:
        raise IndexError(f"concat: axis {axis} is out of range for tensors of shape {shape_text(first.rank, shape_of(first))}")
    for number, x in enumerate(xs):
        if x.rank != first.rank:
            raise ValueError(f"concat: tensors must have the same number of axes; number 0 has shape "
                             f"{shape_text(first.rank, shape_of(first))}, number {number} {shape_text(x.rank, shape_of(x))}")
        for k in range(x.rank):
            if k != axis and shape_of(x)[k] != shape_of(first)[k]:
                raise ValueError(f"concat: shapes must agree except along axis {axis}; number 0 has "
                                 f"{shape_text(first.rank, shape_of(first))}, number {number} {shape_text(x.rank, shape_of(x))}")
        if total > PY_SSIZE_T_MAX - shape_of(x)[axis]:
            raise ValueError(f"concat: the result is too large along axis {axis}")
        total += shape_of(x)[axis]
        plain = plain and x.dtype_id == dtype and x.flags & CONTIGUOUS
    for k in range(first.rank):
        dims[k] = shape_of(first)[k]
    dims[axis] = total
    out = empty_tensor(dtype, first.rank, dims)
    for k in range(axis):
        plain = plain and dims[k] == 1
    step = strides_of(out)[axis]
    if plain and out.count < 65536:        # one block after another; longer ones go through the threaded copy
        target = out.data
        for x in xs:
            piece = x.count * ITEMSIZE[dtype]
            memcpy(target, x.data, piece)
            target += piece
        return out
    for x in xs:
        if x.count:
            copy_into(view_tensor(out, x.rank, shape_of(x), strides_of(out), place * step), x)
        place += shape_of(x)[axis]
    return out


def stack(list xs not None, int axis):
    """The tensors one after another along a new axis."""
    cdef Tensor first, x, out
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef Py_ssize_t strides[MAX_DIMS]
    cdef Py_ssize_t place = 0
    cdef int k
    if not xs:
        raise ValueError("stack: at least one tensor is needed")
    first = xs[0]
    if not 0 <= axis <= first.rank:
        raise IndexError(f"stack: axis {axis} is out of range for a result with {first.rank + 1} axes")
    if first.rank == MAX_DIMS:
        raise ValueError(f"stack: at most {MAX_DIMS} axes are possible")
    for number, x in enumerate(xs):
        same = x.rank == first.rank
        for k in range(min(x.rank, first.rank)):
            same = same and shape_of(x)[k] == shape_of(first)[k]
        if not same:
            raise ValueError(f"stack: tensors must have the same shape; number 0 has {shape_text(first.rank, shape_of(first))}, "
                             f"number {number} {shape_text(x.rank, shape_of(x))}")
    for k in range(first.rank + 1):
        dims[k] = len(xs) if k == axis else shape_of(first)[k if k < axis else k - 1]
    out = empty_tensor(common_dtype(xs), first.rank + 1, dims)
    for k in range(first.rank):
        strides[k] = strides_of(out)[k if k < axis else k + 1]
    for x in xs:
        if x.count:
            if x.flags & CONTIGUOUS and axis == 0 and x.dtype_id == out.dtype_id and x.count < 65536:
                memcpy(out.data + place * x.count * ITEMSIZE[x.dtype_id], x.data, x.count * ITEMSIZE[x.dtype_id])
            else:
                copy_into(view_tensor(out, x.rank, shape_of(x), strides, place * strides_of(out)[axis]), x)
        place += 1
    return out


def split(Tensor x not None, tuple sizes not None, int axis):
    """Views of consecutive stretches of the given lengths along one axis."""
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef Py_ssize_t place = 0, size
    cdef int k
    if not 0 <= axis < x.rank:
        raise IndexError(f"split: axis {axis} is out of range for a tensor of shape {shape_text(x.rank, shape_of(x))}")
    if sum(sizes) != shape_of(x)[axis] or any([size < 0 for size in sizes]):
        raise ValueError(f"split: the lengths {sizes} must not be negative and add up to {shape_of(x)[axis]}, the length of axis {axis}")
    for k in range(x.rank):
        dims[k] = shape_of(x)[k]
    out = []
    for size in sizes:
        dims[axis] = size
        out.append(view_tensor(x, x.rank, dims, strides_of(x), place * strides_of(x)[axis] if size and x.count else 0))
        place += size
    return tuple(out)


def unstack(Tensor x not None, int axis):
    """Views of all slices along one axis, which disappears."""
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef Py_ssize_t strides[MAX_DIMS]
    cdef Py_ssize_t i
    cdef int k
    if not 0 <= axis < x.rank:
        raise IndexError(f"unstack: axis {axis} is out of range for a tensor of shape {shape_text(x.rank, shape_of(x))}")
    for k in range(x.rank - 1):
        dims[k] = shape_of(x)[k if k < axis else k + 1]
        strides[k] = strides_of(x)[k if k < axis else k + 1]
    return tuple([view_tensor(x, x.rank - 1, dims, strides, i * strides_of(x)[axis] if x.count else 0) for i in range(shape_of(x)[axis])])


def roll(Tensor x not None, tuple shifts not None, tuple axes not None):
    """The elements moved along axes; what leaves at one end comes in at the other."""
    cdef Tensor out
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef Py_ssize_t n, shift
    cdef int k, axis
    for axis, by in zip(axes, shifts):
        if not 0 <= axis < x.rank:
            raise IndexError(f"roll: axis {axis} is out of range for a tensor of shape {shape_text(x.rank, shape_of(x))}")
        n = shape_of(x)[axis]
        if x.count == 0:
            break
        shift = by % <object> n
        out = empty_tensor(x.dtype_id, x.rank, shape_of(x))
        for k in range(x.rank):
            dims[k] = shape_of(x)[k]
        dims[axis] = n - shift
        copy_into(view_tensor(out, x.rank, dims, strides_of(out), shift * strides_of(out)[axis]),
                  view_tensor(x, x.rank, dims, strides_of(x), 0))
        if shift:
            dims[axis] = shift
            copy_into(view_tensor(out, x.rank, dims, strides_of(out), 0),
                      view_tensor(x, x.rank, dims, strides_of(x), (n - shift) * strides_of(x)[axis]))
        x = out
    return x if axes and x.count else copy_tensor(x)


cdef Tensor shown(Tensor x, list dims, list strides, tuple shape):
    """A copy of `x` as seen through extents and strides, then read in another shape."""
    cdef Py_ssize_t extents[MAX_DIMS]
    cdef Py_ssize_t steps[MAX_DIMS]
    cdef Tensor out
    cdef int k
    for k in range(<int> len(dims)):
        extents[k] = dims[k]
        steps[k] = strides[k]
    out = copy_tensor(view_tensor(x, <int> len(dims), extents, steps, 0))
    for k in range(<int> len(shape) - 1, -1, -1):
        extents[k] = shape[k]
        steps[k] = 1 if k == <int> len(shape) - 1 else steps[k + 1] * max(extents[k + 1], 1)
    return view_tensor(out, <int> len(shape), extents, steps, 0)


cdef int check_size(str name, tuple shape) except -1:
    cdef object total = 8
    for n in shape:
        total *= max(n, 1)
    if total > PY_SSIZE_T_MAX:
        raise ValueError(f"{name}: a result of shape {shape} is too large for this machine")
    return 0


def repeat(Tensor x not None, object times, int axis):
    """Each slice along an axis `times` times in a row."""
    cdef list dims = list(x.shape), strides = list(x.strides)
    if not 0 <= axis < x.rank:
        raise IndexError(f"repeat: axis {axis} is out of range for a tensor of shape {x.shape}")
    if times < 0:
        raise ValueError(f"repeat: the number of repetitions must not be negative, got {times}")
    if x.rank == MAX_DIMS:
        raise ValueError(f"repeat: at most {MAX_DIMS - 1} axes are possible")
    shape = tuple(dims[:axis] + [dims[axis] * times] + dims[axis + 1:])
    check_size("repeat", shape)
    return shown(x, dims[:axis + 1] + [times] + dims[axis + 1:], strides[:axis + 1] + [0] + strides[axis + 1:], shape)


def tile(Tensor x not None, tuple times not None):
    """The whole tensor repeated along its axes; one number for each axis."""
    cdef list dims = [], strides = []
    if len(times) != x.rank or 2 * x.rank > MAX_DIMS:
        raise ValueError(f"tile: one number for each of at most {MAX_DIMS // 2} axes is needed; got {times} for shape {x.shape}")
    if any([t < 0 for t in times]):
        raise ValueError(f"tile: the numbers of repetitions must not be negative, got {times}")
    shape = tuple([n * t for n, t in zip(x.shape, times)])
    check_size("tile", shape)
    for n, step, t in zip(x.shape, x.strides, times):
        dims += [t, n]
        strides += [0, step]
    return shown(x, dims, strides, shape)


def pad(Tensor x not None, tuple widths not None, object value):
    """A frame of one number: `widths` has (before, after) for each axis, not negative."""
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef Py_ssize_t offset = 0
    cdef Tensor out
    cdef int k
    if len(widths) != x.rank or any([before < 0 or after < 0 for before, after in widths]):
        raise ValueError(f"pad: one pair of non-negative widths for each axis is needed; got {widths} for shape {x.shape}")
    shape = tuple([n + before + after for n, (before, after) in zip(x.shape, widths)])
    check_size("pad", shape)
    for k in range(x.rank):
        dims[k] = shape[k]
    cdef Tensor one = tensor_from(value, x.dtype)
    out = empty_tensor(x.dtype_id, x.rank, dims)
    copy_into(out, one)
    for k in range(x.rank):
        offset += <Py_ssize_t> widths[k][0] * strides_of(out)[k]
    if x.count:
        copy_into(view_tensor(out, x.rank, shape_of(x), strides_of(out), offset), x)
    return out
