"""Gather and scatter along an axis, and the places of true elements.

One index for each place, where index.pyx has whole keys.  Indices and shapes are checked before the first element is written.
Called by ops/gathering.py.  Long loops (kernels/index.pyx) run without the GIL.  Next to read: ops/gathering.py.
"""
from libc.stdint cimport int64_t

from cgrad.core.dtype cimport KIND, KIND_FLOAT, KIND_INT, dtype_object
from cgrad.core.forward.ordered cimport as_index, in_order, out_of_order
from cgrad.core.forward.plan cimport zeros
from cgrad.core.tensor cimport (
    Tensor, cast_tensor, contiguous_tensor, copy_tensor, empty_tensor, shape_of, shape_text, shape_tuple, strides_of)
from cgrad.kernels.index cimport ADD, GET, LARGEST, MULTIPLY, SET, SMALLEST, Mode, check_indices, count_true, mask_coordinates, run_along_axis
from cgrad.kernels.table cimport BOOL, INT64, MAX_DIMS

cdef enum:
    LONG_LOOP = 16384      # elements from which releasing the GIL (about 50 ns) is lost in the loop


cdef Tensor checked_index(str op, Tensor x, int axis, Tensor index):
    """int64 indices, all in range for the axis of `x`."""
    cdef int64_t bad = 0
    if not 0 <= axis < x.rank:
        raise IndexError(f"{op}: axis {axis} is out of range for a tensor of shape {shape_text(x.rank, shape_of(x))}")
    if KIND[index.dtype_id] != KIND_INT:
        raise IndexError(f"{op}: the index must hold integers, not {dtype_object(index.dtype_id).name}")
    if index.rank != x.rank:
        raise ValueError(f"{op}: the index must have as many axes as the tensor; got shapes "
                         f"{shape_text(index.rank, shape_of(index))} and {shape_text(x.rank, shape_of(x))}")
    index = as_index(index)
    if not check_indices(<int64_t*> index.data, index.rank, shape_of(index), strides_of(index), shape_of(x)[axis], &bad):
        raise IndexError(f"{op}: index {bad} is out of bounds for axis {axis} with size {shape_of(x)[axis]}")
    return index


cdef int along_axis(Mode mode, Tensor x, int axis, Tensor index, Tensor y) except -1:
    cdef Py_ssize_t x_strides[MAX_DIMS]
    cdef int k
    for k in range(x.rank):
        x_strides[k] = 0 if k == axis else strides_of(x)[k]
    cdef Py_ssize_t step = strides_of(x)[axis], size = shape_of(x)[axis]
    if index.count >= LONG_LOOP:
        with nogil:
            run_along_axis(mode, x.dtype_id, x.data, x_strides, size, step, <int64_t*> index.data, index.dims + index.rank,
                           y.data, y.dims + y.rank, index.rank, index.dims)
    else:
        run_along_axis(mode, x.dtype_id, x.data, x_strides, size, step, <int64_t*> index.data, strides_of(index),
                       y.data, strides_of(y), index.rank, shape_of(index))
    return 0


cdef int smaller(str op, Tensor index, Tensor x, int axis, str what) except -1:
    cdef int k
    for k in range(x.rank):
        if k != axis and shape_of(index)[k] > shape_of(x)[k]:
            raise ValueError(f"{op}: the index of shape {shape_text(index.rank, shape_of(index))} must not be larger than the {what} of "
                             f"shape {shape_text(x.rank, shape_of(x))} except along axis {axis}; axis {k} is")
    return 0


def gather(Tensor x not None, Tensor index not None, int axis):
    """``out[i][j][k] = x[i][index[i][j][k]][k]`` for axis 1; the index may be smaller than `x` along the other axes."""
    index = checked_index("gather", x, axis, index)
    smaller("gather", index, x, axis, "tensor")
    cdef Tensor out = empty_tensor(x.dtype_id, index.rank, shape_of(index))
    along_axis(GET, x, axis, index, out)
    return out


cdef Tensor scattered(str op, Mode mode, Tensor x, int axis, Tensor index, Tensor src):
    cdef int k
    index = checked_index(op, x, axis, index)
    if src.rank != x.rank:
        raise ValueError(f"{op}: src must have as many axes as the tensor; got shapes {shape_text(src.rank, shape_of(src))} and "
                         f"{shape_text(x.rank, shape_of(x))}")
    smaller(op, index, x, axis, "tensor")
    for k in range(x.rank):
        if shape_of(index)[k] > shape_of(src)[k]:
            raise ValueError(f"{op}: the index of shape {shape_text(index.rank, shape_of(index))} must not be larger than src of shape "
                             f"{shape_text(src.rank, shape_of(src))}; axis {k} is")
    if KIND[src.dtype_id] > KIND[x.dtype_id]:
        raise TypeError(f"{op}: src of {dtype_object(src.dtype_id).name} cannot be stored in a tensor of "
                        f"{dtype_object(x.dtype_id).name} without loss")
    src = cast_tensor(src, x.dtype_id)
    cdef Tensor out = copy_tensor(x)
    along_axis(mode, out, axis, index, src)
    return out


def scatter(Tensor x not None, Tensor src not None, Tensor index not None, int axis):
    """A copy of `x` with ``out[i][index[i][j][k]][k] = src[i][j][k]`` for axis 1; the last write to a place stays."""
    return scattered("scatter", SET, x, axis, index, src)


def unpool(Tensor x not None, Tensor index not None, Py_ssize_t n):
    """Zeros with n elements along the last axis into which those of x are written at the indices; the last write to a place stays."""
    cdef Py_ssize_t i
    if KIND[index.dtype_id] == KIND_INT:
        index = contiguous_tensor(as_index(index))
    for i in range(index.count if index.dtype_id == INT64 else 0):
        if (<int64_t*> index.data)[i] < 0:
            raise IndexError(f"max_unpool: index {(<int64_t*> index.data)[i]} is negative; the places in a plane lie in [0, {n})")
    return scattered("max_unpool", SET, zeros(x.dtype_id, shape_tuple(x.rank - 1, shape_of(x)) + (n,)), x.rank - 1, index, x)


def scatter_add(Tensor x not None, Tensor src not None, Tensor index not None, int axis):
    """A copy of `x` with ``out[i][index[i][j][k]][k] += src[i][j][k]`` for axis 1."""
    return scattered("scatter_add", ADD, x, axis, index, src)


def scatter_fold(Tensor x not None, Tensor src not None, Tensor index not None, int axis, str fold):
    """A copy of `x` with the elements of src joined in: "prod", "amax" or "amin"."""
    cdef int dtype = x.dtype_id
    cdef Mode mode = {"prod": MULTIPLY, "amax": LARGEST, "amin": SMALLEST}[fold]
    if KIND[dtype] == KIND_FLOAT or KIND[src.dtype_id] == KIND_FLOAT:
        return scattered("scatter_reduce", mode, x, axis, index, src)
    src = cast_tensor(src, dtype)
    if mode == MULTIPLY:                   # one kernel for all integers
        return cast_tensor(scattered("scatter_reduce", mode, cast_tensor(x, INT64), axis, index, src), dtype)
    return out_of_order(scattered("scatter_reduce", mode, in_order(x), axis, index, in_order(src)), dtype)


def gather_adjoint(Tensor g not None, Tensor index not None, int axis, tuple shape not None):
    """Zeros of `shape` with `g` added where `gather` read."""
    return scattered("gather", ADD, zeros(g.dtype_id, shape), axis, index, g)


def scatter_clear(Tensor g not None, Tensor index not None, int axis):
    """A copy of `g` with zeros where `scatter` wrote."""
    cdef Tensor out = copy_tensor(g)
    index = checked_index("scatter", g, axis, index)
    along_axis(SET, out, axis, index, zeros(g.dtype_id, shape_tuple(index.rank, shape_of(index))))
    return out


def last_scatters(Tensor index not None, int axis, tuple shape not None):
    """Which elements that `scatter` writes stay: a bool Tensor in the shape of the index, or None if all do."""
    cdef Tensor places = zeros(INT64, shape), number, out
    cdef Py_ssize_t i
    cdef bint all_stay = True
    index = checked_index("scatter", places, axis, index)
    number = empty_tensor(INT64, index.rank, shape_of(index))
    for i in range(number.count):
        (<int64_t*> number.data)[i] = i
    out = empty_tensor(INT64, index.rank, shape_of(index))
    along_axis(SET, places, axis, index, number)
    along_axis(GET, places, axis, index, out)
    number = empty_tensor(BOOL, index.rank, shape_of(index))
    for i in range(number.count):
        number.data[i] = (<int64_t*> out.data)[i] == i
        all_stay = all_stay and number.data[i]
    return None if all_stay else number


# ------------------------------------------------------------------------------------------------------ masks

cdef Tensor as_mask(Tensor x):
    return cast_tensor(x, BOOL)


def argwhere(Tensor x not None):
    """Coordinates of the elements that are not zero, one a row, in C order: int64, shape (n, ndim)."""
    cdef Tensor mask = as_mask(x)
    cdef Py_ssize_t dims[2]
    dims[0] = count_true(mask.data, mask.rank, shape_of(mask), strides_of(mask))
    dims[1] = x.rank
    cdef Tensor out = empty_tensor(INT64, 2, dims)
    mask_coordinates(mask.data, mask.rank, shape_of(mask), strides_of(mask), <int64_t*> out.data)
    return out
