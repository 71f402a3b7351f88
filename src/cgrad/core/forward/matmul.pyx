"""Products of vectors, matrices and batches of matrices, as in NumPy and the Array API.

Owns the rules for shapes, the broadcasting of batch axes and the errors; the numbers come from kernels/blas.pyx.  Called by
ops/matmul.py.  Needs the GIL; the kernels let it go while they run long.  Operands may have any strides and are never copied here
unless their dtypes differ.  Next: kernels/blas.pyx.
"""
from libc.stdlib cimport free, malloc

from cgrad.core.dtype cimport promote
from cgrad.core.tensor cimport Tensor, cast_tensor, empty_tensor, shape_of, shape_text, strides_of
from cgrad.kernels.blas cimport run_matmul
from cgrad.kernels.table cimport MAX_DIMS

cdef enum:
    FEW = 16               # batches whose offsets fit on the stack


cdef int refuse(Tensor x, Tensor y, str wrong) except -1:
    raise ValueError(f"matmul: {wrong}; got shapes {shape_text(x.rank, shape_of(x))} and {shape_text(y.rank, shape_of(y))}")


cdef bint join_rows(int batch_axes, const Py_ssize_t* shape, const Py_ssize_t* strides, Py_ssize_t m, Py_ssize_t* row) noexcept:
    """Whether all batches of x are one tall matrix; `row` is then the stride of its rows."""
    cdef Py_ssize_t rows = m
    cdef int i
    for i in range(batch_axes - 1, -1, -1):
        if shape[i] == 1:
            continue
        if rows == 1:
            row[0] = strides[i]
        elif strides[i] != rows * row[0]:
            return False
        rows *= shape[i]
    return True


cdef bint one_matrix(int batch_axes, const Py_ssize_t* shape, const Py_ssize_t* strides) noexcept:
    """Whether all batches are one matrix in memory, as broadcast_to and vmap repeat it."""
    cdef int i
    for i in range(batch_axes):
        if shape[i] != 1 and strides[i] != 0:
            return False
    return True


cdef void batch_offsets(int rank, const Py_ssize_t* batch, int own_rank, const Py_ssize_t* own_shape, const Py_ssize_t* own_strides,
                        Py_ssize_t count, Py_ssize_t* offsets) noexcept:
    """Element offset of each batch's matrix; axes that are missing or of extent 1 are broadcast."""
    cdef Py_ssize_t b, rest
    cdef Py_ssize_t offset
    cdef int i, own
    for b in range(count):
        rest = b
        offset = 0
        for i in range(rank - 1, -1, -1):
            own = i - (rank - own_rank)
            if own >= 0 and own_shape[own] != 1:
                offset += rest % batch[i] * own_strides[own]
            rest //= batch[i]
        offsets[b] = offset


def matmul(Tensor x not None, Tensor y not None):
    """Product of the last two axes; leading axes broadcast.  A 1-d x is a row, a 1-d y a column, and that axis is dropped again."""
    cdef Py_ssize_t[MAX_DIMS + 2] shape
    cdef Py_ssize_t[2 * FEW] few
    cdef Py_ssize_t* offsets = few
    cdef Py_ssize_t m, n, k, n_batch = 1, x_row, x_column, y_row, y_column, extent
    cdef int x_batch, y_batch, rank, i, own, dtype
    cdef Tensor out
    if x.rank == 0 or y.rank == 0:
        refuse(x, y, "both operands need at least one axis (multiply by a number with *)")
    if x.dtype_id != y.dtype_id:
        dtype = promote(x.dtype_id, y.dtype_id)
        x = cast_tensor(x, dtype)
        y = cast_tensor(y, dtype)
    x_batch = x.rank - 2
    if x.rank == 1:
        x_batch = 0
        m, x_row = 1, 0
    else:
        m, x_row = shape_of(x)[x.rank - 2], strides_of(x)[x.rank - 2]
    k, x_column = shape_of(x)[x.rank - 1], strides_of(x)[x.rank - 1]
    y_batch = y.rank - 2
    if y.rank == 1:
        y_batch = 0
        n, y_column = 1, 0
        extent, y_row = shape_of(y)[0], strides_of(y)[0]
    else:
        n, y_column = shape_of(y)[y.rank - 1], strides_of(y)[y.rank - 1]
        extent, y_row = shape_of(y)[y.rank - 2], strides_of(y)[y.rank - 2]
    if extent != k:
        refuse(x, y, f"last axis of x ({k}) must equal {'the axis' if y.rank == 1 else 'second-last axis'} of y ({extent})")

    rank = x_batch if x_batch > y_batch else y_batch
    for i in range(rank):
        shape[i] = 1
        own = i - (rank - x_batch)
        if own >= 0:
            shape[i] = shape_of(x)[own]
        own = i - (rank - y_batch)
        if own >= 0 and shape_of(y)[own] != shape[i]:
            if shape[i] == 1:
                shape[i] = shape_of(y)[own]
            elif shape_of(y)[own] != 1:
                refuse(x, y, f"batch axes of x ({shape[i]}) and y ({shape_of(y)[own]}) must be equal or 1")
        n_batch *= shape[i]
    i = rank
    if x.rank > 1:
        shape[i] = m
        i += 1
    if y.rank > 1:
        shape[i] = n
        i += 1
    if i > MAX_DIMS:
        refuse(x, y, f"the result would have {i} axes, at most {MAX_DIMS} are possible")
    out = empty_tensor(x.dtype_id, i, shape)

    if one_matrix(y_batch, shape_of(y), strides_of(y)):
        y_batch = 0
    own = 1
    for i in range(x_batch):
        own *= shape_of(x)[i]
    if y_batch == 0 and n_batch > 1 and own == n_batch and join_rows(x_batch, shape_of(x), strides_of(x), m, &x_row):
        m *= n_batch                       # one product with a tall x instead of many with the same y
        n_batch = 1
    if n_batch > FEW:
        offsets = <Py_ssize_t*> malloc(2 * n_batch * sizeof(Py_ssize_t))
        if offsets == NULL:
            raise MemoryError("matmul: no memory for the list of batches")
    try:
        if n_batch == 1:
            offsets[0] = offsets[1] = 0
        else:
            batch_offsets(rank, shape, x_batch, shape_of(x), strides_of(x), n_batch, offsets)
            batch_offsets(rank, shape, y_batch, shape_of(y), strides_of(y), n_batch, offsets + n_batch)
        run_matmul(x.dtype_id, n_batch, m, n, k, x.data, offsets, x_row, x_column, y.data, offsets + n_batch, y_row, y_column, out.data)
    finally:
        if offsets != few:
            free(offsets)
    return out
