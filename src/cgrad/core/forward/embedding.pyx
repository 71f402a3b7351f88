"""Rows of a table picked by index, and the gradient of the table.

Owns shapes and the checks of indices; the loops are in kernels/embedding.pyx.  Called by ops/embedding.py.  Needs the GIL, which it
lets go while long loops run.  Next: kernels/embedding.pyx.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from cgrad.core.dtype cimport ITEMSIZE, dtype_object
from cgrad.core.forward.ordered cimport as_index
from cgrad.core.tensor cimport Tensor, contiguous_tensor, empty_tensor, shape_of, shape_text, strides_of
from cgrad.kernels.embedding cimport find_bad_index, run_pick_rows, run_spread_rows, spread_scratch
from cgrad.kernels.table cimport FLOAT32, INT64, MAX_DIMS, UINT8

cdef enum:
    LONG_LOOP = 16384      # elements from which releasing the GIL (about 50 ns) is lost in the loop


cdef Tensor checked_indices(Tensor index, Py_ssize_t n_rows):
    """The indices as contiguous int64, all in range."""
    cdef int64_t bad = 0
    if index.dtype_id < UINT8 or index.dtype_id > INT64:
        raise TypeError(f"embedding: the indices must be integers, got {dtype_object(index.dtype_id).name}")
    index = contiguous_tensor(as_index(index))
    if find_bad_index(<const int64_t*> index.data, index.count, n_rows, &bad):
        raise IndexError(f"embedding: index {bad} is out of range for a table of {n_rows} rows; indices lie in [0, {n_rows})")
    return index


def check_indices(Tensor index not None, Py_ssize_t n_rows):
    """IndexError if an index is not in [0, n_rows)."""
    checked_indices(index, n_rows)


def pick(Tensor table not None, Tensor index not None):
    """Row index[...] of the table (n_rows, width), for each index: shape (*index.shape, width)."""
    cdef Py_ssize_t[MAX_DIMS] shape
    cdef Py_ssize_t size, stride
    cdef Tensor out
    if table.rank != 2 or index.rank >= MAX_DIMS:
        raise ValueError(f"embedding: the weight must have shape (num_embeddings, embedding_dim), got {shape_text(table.rank, shape_of(table))}")
    index = checked_indices(index, shape_of(table)[0])
    if strides_of(table)[1] != 1 and shape_of(table)[1] != 1:
        table = contiguous_tensor(table)
    memcpy(shape, shape_of(index), index.rank * sizeof(Py_ssize_t))
    shape[index.rank] = shape_of(table)[1]
    out = empty_tensor(table.dtype_id, index.rank + 1, shape)
    size = shape_of(table)[1] * ITEMSIZE[table.dtype_id]
    stride = strides_of(table)[0] * ITEMSIZE[table.dtype_id]
    if out.count < LONG_LOOP:
        run_pick_rows(table.data, stride, size, <const int64_t*> index.data, index.count, out.data)
    else:
        with nogil:
            run_pick_rows(table.data, stride, size, <const int64_t*> index.data, index.count, out.data)
    return out


def spread(Tensor g not None, Tensor index not None, Py_ssize_t n_rows, int64_t skipped):
    """Zeros (n_rows, width) to which the rows of g (*index.shape, width) are added where `index` says; those at `skipped` are left out."""
    cdef Py_ssize_t[2] shape
    cdef Py_ssize_t size
    cdef int i
    cdef bint fits = g.rank == index.rank + 1
    cdef Tensor out, scratch
    for i in range(index.rank):
        fits = fits and shape_of(g)[i] == shape_of(index)[i]
    if not fits or g.dtype_id < FLOAT32:
        raise ValueError(f"embedding: a gradient of shape {shape_text(g.rank, shape_of(g))} does not fit indices of shape "
                         f"{shape_text(index.rank, shape_of(index))}")
    index = checked_indices(index, n_rows)
    g = contiguous_tensor(g)
    shape[0] = n_rows
    shape[1] = shape_of(g)[index.rank]
    out = empty_tensor(g.dtype_id, 2, shape)
    size = spread_scratch(g.dtype_id, index.count, n_rows, shape[1])
    scratch = empty_tensor(INT64, 1, &size)
    if out.count < LONG_LOOP:
        run_spread_rows(g.dtype_id, g.data, <const int64_t*> index.data, index.count, n_rows, shape[1], skipped, out.data,
                        <int64_t*> scratch.data)
    else:
        with nogil:
            run_spread_rows(g.dtype_id, g.data, <const int64_t*> index.data, index.count, n_rows, shape[1], skipped, out.data,
                            <int64_t*> scratch.data)
    return out
