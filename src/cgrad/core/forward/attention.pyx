"""Scaled dot-product attention of tensors, and its gradients.

Owns the checks of shapes and where each problem of a batch lies; the numbers come from kernels/attention.pyx.  Called by ops/attention.py,
which has broadcast the batch axes.  Needs the GIL, which it lets go while long loops run.  Next: kernels/attention.pyx.
"""
from libc.stdlib cimport free, malloc

from cgrad.core.forward.matmul cimport batch_offsets
from cgrad.core.tensor cimport Tensor, contiguous_tensor, empty_tensor, shape_of, shape_text, strides_of
from cgrad.kernels.attention cimport Attention, Operand, run_attention, run_attention_backward
from cgrad.kernels.table cimport BOOL, FLOAT32, FLOAT64, MAX_DIMS

cdef enum:
    LONG_LOOP = 4096       # scores from which releasing the GIL (about 50 ns) is lost in the loop
    N_OPERANDS = 5


cdef Tensor with_unit_columns(Tensor x):
    """x, or a copy of it in which the elements of a row lie side by side."""
    return x if x is None or shape_of(x)[x.rank - 1] == 1 or strides_of(x)[x.rank - 1] == 1 else contiguous_tensor(x)


cdef bint fits(Tensor x, Tensor like, Py_ssize_t rows, Py_ssize_t columns) noexcept:
    """Whether x has the batch axes of `like`, and matrices of rows x columns, none of which is 0."""
    cdef int i
    if x.rank != like.rank or x.dtype_id != like.dtype_id and x.dtype_id != BOOL or rows == 0 or columns == 0:
        return False
    for i in range(x.rank - 2):
        if shape_of(x)[i] != shape_of(like)[i]:
            return False
    return shape_of(x)[x.rank - 2] == rows and shape_of(x)[x.rank - 1] == columns


cdef int fill(Attention* a, Tensor q, Tensor k, Tensor v, Tensor mask, double scale, bint causal) except -1:
    a.dtype = q.dtype_id
    if q.rank < 2 or k.rank != q.rank or v.rank != q.rank or q.dtype_id < FLOAT32 or q.dtype_id > FLOAT64:
        a.n_batch = -1
    else:
        a.n_queries, a.width = shape_of(q)[q.rank - 2], shape_of(q)[q.rank - 1]
        a.n_keys, a.out_width = shape_of(v)[v.rank - 2], shape_of(v)[v.rank - 1]
        a.n_batch = q.count // (a.n_queries * a.width) if q.count else 0
    if a.n_batch < 0 or not fits(q, q, a.n_queries, a.width) or not fits(k, q, a.n_keys, a.width) or not fits(v, q, a.n_keys, a.out_width) \
            or (mask is not None and not fits(mask, q, a.n_queries, a.n_keys)):
        raise ValueError(f"scaled_dot_product_attention: shapes {shape_text(q.rank, shape_of(q))}, {shape_text(k.rank, shape_of(k))} and "
                         f"{shape_text(v.rank, shape_of(v))} of query, key and value do not fit each other or the mask")
    a.scale, a.causal, a.bool_mask = scale, causal, mask is not None and mask.dtype_id == BOOL
    a.out = a.lse = a.dq = a.dk = a.dv = NULL
    a.g.data = NULL
    return 0


cdef void place(Operand* operand, Tensor x, Tensor like, Py_ssize_t n_batch, Py_ssize_t* offsets) noexcept:
    operand.data = NULL
    if x is None:
        return
    operand.data = x.data
    operand.row, operand.column = strides_of(x)[x.rank - 2], strides_of(x)[x.rank - 1]
    operand.offsets = offsets
    batch_offsets(like.rank - 2, shape_of(like), x.rank - 2, shape_of(x), strides_of(x), n_batch, offsets)


cdef int run(Attention* a, Tensor q, Tensor k, Tensor v, Tensor mask, Tensor g) except -1:
    """Forward, or backward if there is a gradient."""
    cdef Py_ssize_t* offsets
    cdef int failed
    cdef bint backward = g is not None
    q, k, v, g = with_unit_columns(q), with_unit_columns(k), with_unit_columns(v), with_unit_columns(g)
    offsets = <Py_ssize_t*> malloc((N_OPERANDS * a.n_batch + 1) * sizeof(Py_ssize_t))
    if offsets == NULL:
        raise MemoryError("scaled_dot_product_attention: no memory for the list of batches")
    place(&a.q, q, q, a.n_batch, offsets)
    place(&a.k, k, q, a.n_batch, offsets + a.n_batch)
    place(&a.v, v, q, a.n_batch, offsets + 2 * a.n_batch)
    place(&a.mask, mask, q, a.n_batch, offsets + 3 * a.n_batch)
    place(&a.g, g, q, a.n_batch, offsets + 4 * a.n_batch)
    if a.n_batch * a.n_queries * a.n_keys < LONG_LOOP:
        failed = run_attention_backward(a) if backward else run_attention(a)
    else:
        with nogil:
            failed = run_attention_backward(a) if backward else run_attention(a)
    free(offsets)
    if failed:
        raise MemoryError("scaled_dot_product_attention: no memory for scratch")
    return 0


def attention(Tensor q not None, Tensor k not None, Tensor v not None, Tensor mask, double scale, bint causal):
    """(softmax(scale * q @ k.T + mask) @ v, the log of the sum of the exponentials of each row of scores)"""
    cdef Py_ssize_t[MAX_DIMS] shape
    cdef Attention a
    cdef Tensor out, lse
    cdef int i
    fill(&a, q, k, v, mask, scale, causal)
    for i in range(q.rank - 1):
        shape[i] = shape_of(q)[i]
    shape[q.rank - 1] = a.out_width
    out = empty_tensor(a.dtype, q.rank, shape)
    lse = empty_tensor(a.dtype, q.rank - 1, shape)
    a.out, a.lse = out.data, lse.data
    run(&a, q, k, v, mask, None)
    return out, lse


def attention_gradients(Tensor g not None, Tensor q not None, Tensor k not None, Tensor v not None, Tensor mask, tuple out not None,
                        double scale, bint causal, tuple needs):
    """The gradients of q, k and v for that of the result, None where `needs` says so, and None for the mask."""
    cdef Attention a
    cdef Tensor dq = None, dk = None, dv = None
    fill(&a, q, k, v, mask, scale, causal)
    a.out, a.lse = (<Tensor?> out[0]).data, (<Tensor?> out[1]).data
    if needs[0]:
        dq = empty_tensor(a.dtype, q.rank, shape_of(q))
        a.dq = dq.data
    if needs[1]:
        dk = empty_tensor(a.dtype, k.rank, shape_of(k))
        a.dk = dk.data
    if needs[2]:
        dv = empty_tensor(a.dtype, v.rank, shape_of(v))
        a.dv = dv.data
    run(&a, q, k, v, mask, g)
    return dq, dk, dv, None
