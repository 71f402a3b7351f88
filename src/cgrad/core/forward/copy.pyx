"""Copies, casts, and views of any strides, without derivatives.

Called by ops/casting.py, ops/inplace.py and ops/strided.py with plain tensors; needs the GIL (released inside long copies).
Next: core/tensor.pyx, whose makers and copies these are.
"""
from libc.stdint cimport int64_t

from cgrad.core.dtype cimport DType, ITEMSIZE
from cgrad.core.forward.plan cimport may_overlap_itself
from cgrad.core.tensor cimport (
    Tensor, cast_tensor, contiguous_tensor, copy_into, copy_tensor, empty_tensor, scalar_tensor,
    shape_tuple, storage_tensor, view_tensor,
)
from cgrad.kernels.table cimport FLOAT32, FLOAT64, MAX_DIMS

from cgrad.core.forward.fill import arange
from cgrad.core.forward.index import index_scatter
from cgrad.core.forward.reduce import sum as total


def cast(Tensor x not None, DType dtype):
    """A copy of x with another dtype; x itself if it has it."""
    return cast_tensor(x, dtype.id)


def clone(Tensor x not None):
    """A C-contiguous copy."""
    return copy_tensor(x)


def contiguous(Tensor x not None):
    """x itself if it is C-contiguous, else a copy that is."""
    return contiguous_tensor(x)


def copy(Tensor target not None, Tensor source not None, str name="copy_"):
    """Write source, broadcast and cast, into target; `name` is the operation that does so."""
    copy_into(target, source, name)
    return target


def fill(Tensor target not None, Tensor number not None, str name):
    """Write one number into every element of target; `name` is the method that does so."""
    copy_into(target, number, name)
    return target


def base_of(Tensor x not None):
    """The tensor that x is a view of, or None."""
    return x.base


def layout_in_base(Tensor x not None):
    """Where a view lies in its base: (shape and strides of the base, shape and strides of the view, offset), in elements."""
    cdef Tensor base = x.base
    return (shape_tuple(base.rank, base.dims), shape_tuple(base.rank, base.dims + base.rank),
            shape_tuple(x.rank, x.dims), shape_tuple(x.rank, x.dims + x.rank), (x.data - base.data) // ITEMSIZE[x.dtype_id])


def place_in_storage(Tensor x not None):
    """How many elements fit into the memory of x before its first one, and from there on."""
    cdef int itemsize = ITEMSIZE[x.dtype_id]
    return (x.data - x.storage.data) // itemsize, (x.storage.data + x.storage.nbytes - x.data) // itemsize


cdef Py_ssize_t extent(tuple shape, tuple strides, Py_ssize_t* low):
    """How many places there are from the lowest element to the highest, and in `low` where the lowest lies from the first."""
    cdef Py_ssize_t high = 0, n, step
    low[0] = 0
    for n, step in zip(shape, strides):
        if n == 0:
            return 0
        if step > 0:
            high += (n - 1) * step
        else:
            low[0] += (n - 1) * step
    return high - low[0] + 1


cdef Tensor laid_out(Tensor block, tuple shape, tuple strides, Py_ssize_t low):
    """The memory of a 1-d tensor with a shape and strides, whose lowest element comes first; not a view."""
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef Py_ssize_t steps[MAX_DIMS]
    cdef int k
    for k in range(len(shape)):
        dims[k] = shape[k]
        steps[k] = strides[k]
    return storage_tensor(block.storage, block.data - low * ITEMSIZE[block.dtype_id], block.dtype_id, len(shape), dims, steps)


cdef Tensor with_layout(int dtype, tuple shape, tuple strides):
    """A fresh tensor with a shape and strides, in as much memory as these span."""
    cdef Py_ssize_t low, span = extent(shape, strides, &low)
    return laid_out(empty_tensor(dtype, 1, &span), shape, strides, low)


cdef Tensor window(Tensor x, tuple shape, tuple strides, Py_ssize_t offset):
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef Py_ssize_t steps[MAX_DIMS]
    cdef int k
    for k in range(len(shape)):
        dims[k] = shape[k]
        steps[k] = strides[k]
    return view_tensor(x, len(shape), dims, steps, offset)


def take_window(Tensor x not None, tuple layout):
    """The elements of x where a view of that layout has them: a view of x if x is laid out as the base, else of a copy."""
    base_shape, base_strides, shape, strides, offset = layout
    cdef Tensor source = x
    cdef Py_ssize_t low, span
    if shape_tuple(x.rank, x.dims + x.rank) != base_strides:
        span = extent(base_shape, base_strides, &low)
        if x.dtype_id in (FLOAT32, FLOAT64) and may_overlap_itself(window(x, base_shape, base_strides, 0)):
            # Elements that are to share a place: their mean.
            source = laid_out(mean_at(x, base_shape, base_strides, low, span), base_shape, base_strides, low)
        else:
            source = with_layout(x.dtype_id, base_shape, base_strides)
            copy_into(source, x)
    return window(source, shape, strides, offset)


cdef Tensor places_of(tuple shape, tuple strides, Py_ssize_t offset, Py_ssize_t span):
    """Where each element lies among `span` places."""
    return copy_tensor(window(arange(0, 1, span, "int64"), shape, strides, offset))


cdef Tensor mean_at(Tensor x, tuple shape, tuple strides, Py_ssize_t low, Py_ssize_t span):
    places = places_of(shape, strides, -low, span)
    return share(index_scatter(x, (places,), (span,)), places)


cdef Tensor share(Tensor block, Tensor places):
    """Each of a block's elements divided by how often `places` names it, in place."""
    cdef const int64_t* place = <const int64_t*>places.data
    cdef Tensor counts = copy_tensor(arange(0, 0, block.count, "int64"))
    cdef int64_t* count = <int64_t*>counts.data
    cdef Py_ssize_t i
    for i in range(places.count):
        count[place[i]] += 1
    for i in range(block.count):
        if count[i] > 1 and block.dtype_id == FLOAT32:
            (<float*>block.data)[i] /= count[i]
        elif count[i] > 1:
            (<double*>block.data)[i] /= count[i]
    return block


def put_window(Tensor x not None, Tensor value not None, tuple layout):
    """A copy of x with value written where a view of that layout has its elements."""
    base_shape, base_strides, shape, strides, offset = layout
    cdef Tensor out = with_layout(x.dtype_id, base_shape, base_strides)
    copy_into(out, x)
    copy_into(window(out, shape, strides, offset), value)
    out.storage.version = 0
    return out


def spread_window(Tensor g not None, tuple layout):
    """The adjoint of take_window: zeros laid out as the base, with g added where the view has its elements.

    Elements of the base that share a place share what it gets: whatever the base was made from adds them up again.
    """
    base_shape, base_strides, shape, strides, offset = layout
    cdef Py_ssize_t low, span = extent(base_shape, base_strides, &low)
    cdef Tensor out
    # Axes of stride 0 show one element many times: their gradients add up.
    axes = tuple([k for k in range(len(shape)) if strides[k] == 0 and shape[k] > 1])
    if axes:
        g = total(g, axes, True)
        shape = tuple([1 if k in axes else n for k, n in enumerate(shape)])
    if may_overlap_itself(window(g, shape, strides, 0)):
        out = index_scatter(g, (places_of(shape, strides, offset - low, span),), (span,))
    else:
        out = empty_tensor(g.dtype_id, 1, &span)
        copy_into(out, scalar_tensor(0, g.dtype_id))
        copy_into(window(out, shape, strides, offset - low), g)
    if may_overlap_itself(window(g, base_shape, base_strides, 0)):
        share(out, places_of(base_shape, base_strides, -low, span))
    out.storage.version = 0
    return laid_out(out, base_shape, base_strides, low)
