"""The affine map of a layer, x @ w.T + b, and the product of its weight gradient, each in one call.

Owns shapes and errors; the numbers come from kernels/blas.pyx and the kernel table.  Called by ops/matmul.py.  Nothing is
transposed or copied in memory: the product reads any strides.  Needs the GIL; the kernels let it go while they run long.
Next: kernels/blas.pyx.
"""
from cgrad.core.dtype cimport ITEMSIZE, promote
from cgrad.core.tensor cimport Tensor, cast_tensor, contiguous_tensor, empty_tensor, launch, shape_of, shape_text, strides_of
from cgrad.kernels.blas cimport run_matmul
from cgrad.kernels.dispatch cimport elementwise_kernel
from cgrad.kernels.table cimport MAX_DIMS, ElementwiseKernel

cdef const ElementwiseKernel* ADD = elementwise_kernel("add")


cdef Tensor rows_of(Tensor x, Py_ssize_t* rows, Py_ssize_t* row_stride):
    """x with all axes but the last joined to one, a copy where strides do not allow that."""
    cdef int i
    rows[0] = 1
    if x.rank == 1:
        row_stride[0] = 0
        return x
    if x.rank > 2:
        x = contiguous_tensor(x)
    for i in range(x.rank - 1):
        rows[0] *= shape_of(x)[i]
    row_stride[0] = strides_of(x)[x.rank - 2] if x.rank == 2 else shape_of(x)[x.rank - 1]
    return x


def linear(Tensor x not None, Tensor w not None, Tensor b=None):
    """x @ w.T + b for x (..., n), w (m, n) and b (m,) or None."""
    cdef Py_ssize_t[MAX_DIMS] shape
    cdef Py_ssize_t zero = 0, rows = 0, row_stride = 0, m, n
    cdef int i, dtype
    cdef Tensor out
    if w.rank != 2 or x.rank == 0 or shape_of(x)[x.rank - 1] != shape_of(w)[1]:
        raise ValueError("linear: the weight must have shape (out_features, in_features) and the last axis of the input in_features elements; "
                         f"got input {shape_text(x.rank, shape_of(x))} and weight {shape_text(w.rank, shape_of(w))}")
    m = shape_of(w)[0]
    n = shape_of(w)[1]
    if b is not None and (b.rank != 1 or shape_of(b)[0] != m):
        raise ValueError(f"linear: the bias must have shape ({m},) for a weight of shape {shape_text(w.rank, shape_of(w))}, "
                         f"got {shape_text(b.rank, shape_of(b))}")
    dtype = promote(x.dtype_id, w.dtype_id)
    if b is not None:
        dtype = promote(dtype, b.dtype_id)
        b = cast_tensor(b, dtype)
    x = cast_tensor(x, dtype)
    w = cast_tensor(w, dtype)
    for i in range(x.rank - 1):
        shape[i] = shape_of(x)[i]
    shape[x.rank - 1] = m
    out = empty_tensor(dtype, x.rank, shape)
    x = rows_of(x, &rows, &row_stride)
    run_matmul(dtype, 1, rows, m, n, x.data, &zero, row_stride, strides_of(x)[x.rank - 1],
               w.data, &zero, strides_of(w)[1], strides_of(w)[0], out.data)
    if b is not None:
        add_row(out, b, rows, m)
    return out


cdef void add_row(Tensor out, Tensor b, Py_ssize_t rows, Py_ssize_t m) noexcept:
    """out += b in every row."""
    cdef char* data[3]
    cdef int itemsize[3]
    cdef const Py_ssize_t* strides[3]
    cdef Py_ssize_t[2] shape
    cdef Py_ssize_t[2] own
    cdef Py_ssize_t[2] broadcast
    shape[0] = rows
    shape[1] = m
    own[0] = m
    own[1] = 1
    broadcast[0] = 0
    broadcast[1] = strides_of(b)[0]
    data[0] = data[1] = out.data
    data[2] = b.data
    itemsize[0] = itemsize[1] = itemsize[2] = ITEMSIZE[out.dtype_id]
    strides[0] = strides[1] = own
    strides[2] = broadcast
    launch(ADD.loops[out.dtype_id], 3, data, itemsize, 2, shape, strides, ADD.weight, out.count)


def product_of_rows(Tensor x not None, Tensor y not None):
    """x.T @ y, (m, n), for x (..., m) and y (..., n) with leading axes in common, which are summed over."""
    cdef Py_ssize_t[2] shape
    cdef Py_ssize_t zero = 0, rows = 0, y_rows = 0, x_stride = 0, y_stride = 0
    cdef int i, dtype = promote(x.dtype_id, y.dtype_id)
    cdef bint fits = x.rank == y.rank and x.rank > 0
    cdef Tensor out
    for i in range(x.rank - 1):
        fits = fits and shape_of(x)[i] == shape_of(y)[i]
    if not fits:
        raise ValueError("linear: the leading axes of input and gradient must be the same; "
                         f"got {shape_text(y.rank, shape_of(y))} and {shape_text(x.rank, shape_of(x))}")
    shape[0] = shape_of(x)[x.rank - 1]
    shape[1] = shape_of(y)[y.rank - 1]
    out = empty_tensor(dtype, 2, shape)
    x = rows_of(cast_tensor(x, dtype), &rows, &x_stride)
    y = rows_of(cast_tensor(y, dtype), &y_rows, &y_stride)
    run_matmul(dtype, 1, shape[0], shape[1], rows, x.data, &zero, strides_of(x)[x.rank - 1], x_stride,
               y.data, &zero, y_stride, strides_of(y)[y.rank - 1], out.data)
    return out
