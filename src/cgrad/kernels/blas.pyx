"""Matrix products: our own kernel for small ones and for matrix times vector, NumPy's BLAS above it.

Owns run_matmul (contract in blas.pxd), called by core/forward/matmul.pyx, and the choice between three ways:
float products of up to SMALL multiplications go to the register-tiled kernel in matmul.pxi, where a call through NumPy costs more
than the arithmetic; products with a vector are as fast as memory on any path and stay with our own; everything larger is handed to
NumPy's C API, which knows the user's tuned BLAS and takes transposed operands without a copy.  Integers and bool have no BLAS and
use a plain loop.  The GIL is held at the door and for NumPy (which releases it around BLAS); long loops of our own release it.
Batches of small products are split over threads by their number alone, so the bits never depend on the threads.

Read next: matmul.pxi.
"""
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

cimport numpy as np

from cgrad.kernels.dispatch cimport ITEMSIZE, kernel_table
from cgrad.kernels.parallel cimport body_t, parallel_for
from cgrad.kernels.table cimport DTypeId

np.import_array()

cdef extern from "numpy/arrayobject.h":
    object PyArray_MatrixProduct2(object x, object y, np.ndarray out)
    np.ndarray PyArray_New(type subtype, int ndim, const np.npy_intp* shape, int type_num, const np.npy_intp* strides, void* data,
                           int itemsize, int flags, object owner)

cdef enum:
    # Multiplications up to which our own kernel serves.  At 128**3 it took 40 us where OpenBLAS took 48 with one thread or two, and it
    # does not spin: OpenBLAS wakes its threads from about 80**3 on, which on a busy machine made a training step 50 times slower.
    SMALL = 128 * 128 * 128
    LONG_LOOP = 32768          # multiplications from which letting the GIL go (about 50 ns) is lost in the loop
    CHUNK = 32768              # multiplications a thread takes at a time

ctypedef fused integer:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t

ctypedef fused number:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t
    float
    double


cdef struct Product:
    int dtype
    Py_ssize_t size                       # bytes of an element; all strides below are in bytes
    Py_ssize_t n_batch, m, n, k
    const char* x
    const Py_ssize_t* x_batch             # in elements
    Py_ssize_t x_row, x_column
    const char* y
    const Py_ssize_t* y_batch
    Py_ssize_t y_row, y_column
    char* out


# ---- our own kernels -------------------------------------------------------------------------------------------------------------

cdef void small_items(void* context, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Batches first <= b < last of a small float product."""
    cdef const Product* p = <const Product*> context
    cdef Py_ssize_t b
    for b in range(first, last):
        kernel_table().matmul.small[p.dtype - <int> DTypeId.FLOAT32](
            p.m, p.n, p.k, p.x + p.x_batch[b] * p.size, p.x_row, p.x_column, p.y + p.y_batch[b] * p.size, p.y_row, p.y_column,
            p.out + b * p.m * p.n * p.size, p.n * p.size, False)


cdef void vector_rows(void* context, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Rows first <= i < last of one matrix-vector product; y is contiguous."""
    cdef const Product* p = <const Product*> context
    kernel_table().matmul.vector[p.dtype - <int> DTypeId.FLOAT32](
        last - first, p.k, p.x + first * p.x_row, p.x_row, p.x_column, p.y, p.out + first * p.size)


cdef void integer_product(const Product* p, Py_ssize_t b, integer like) noexcept nogil:
    """out[i, j] += x[i, l] * y[l, j], rows of y in the inner loop; wraps as integers do."""
    cdef const char* x = p.x + p.x_batch[b] * p.size
    cdef const char* y = p.y + p.y_batch[b] * p.size
    cdef const char* y_element
    cdef integer* out = <integer*> p.out + b * p.m * p.n
    cdef integer a
    cdef Py_ssize_t i, j, l
    memset(out, 0, p.m * p.n * p.size)
    for i in range(p.m):
        for l in range(p.k):
            a = (<const integer*> (x + i * p.x_row + l * p.x_column))[0]
            y_element = y + l * p.y_row
            if p.y_column == sizeof(integer):
                for j in range(p.n):
                    out[j] = <integer> (out[j] + a * (<const integer*> y_element)[j])
            else:
                for j in range(p.n):
                    out[j] = <integer> (out[j] + a * (<const integer*> (y_element + j * p.y_column))[0])
        out += p.n


cdef void bool_product(const Product* p, Py_ssize_t b) noexcept nogil:
    """out[i, j]: is there an l with x[i, l] and y[l, j]?"""
    cdef const char* x = p.x + p.x_batch[b]
    cdef const char* y = p.y + p.y_batch[b]
    cdef char* out = p.out + b * p.m * p.n
    cdef Py_ssize_t i, j, l
    memset(out, 0, p.m * p.n)
    for i in range(p.m):
        for l in range(p.k):
            if x[i * p.x_row + l * p.x_column]:
                for j in range(p.n):
                    out[j] |= y[l * p.y_row + j * p.y_column] != 0
        out += p.n


cdef void whole_items(void* context, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef const Product* p = <const Product*> context
    cdef Py_ssize_t b
    for b in range(first, last):
        if p.dtype == DTypeId.BOOL:
            bool_product(p, b)
        elif p.size == 1:                              # products wrap, so the sign does not matter
            integer_product(p, b, <int8_t> 0)
        elif p.size == 2:
            integer_product(p, b, <int16_t> 0)
        elif p.size == 4:
            integer_product(p, b, <int32_t> 0)
        else:
            integer_product(p, b, <int64_t> 0)


cdef void copy_vector(const Product* p, const char* y, char* target) noexcept nogil:
    cdef Py_ssize_t i
    if p.size == 4:
        for i in range(p.k):
            (<float*> target)[i] = (<const float*> (y + i * p.y_row))[0]
    else:
        for i in range(p.k):
            (<double*> target)[i] = (<const double*> (y + i * p.y_row))[0]


cdef int matrix_vector(const Product* p) noexcept nogil:
    """n is 1: each batch's rows over threads.  -1 if there is no memory to make a strided vector contiguous."""
    cdef Product part = p[0]
    cdef char* scratch = NULL
    cdef Py_ssize_t b, chunk = max(16, CHUNK // p.k)
    if p.y_row != p.size and p.k > 1:
        scratch = <char*> malloc(p.k * p.size)
        if scratch == NULL:
            return -1
    if p.x_row == p.size and p.x_column != p.size:
        chunk = (chunk + 511) // 512 * 512             # columns are summed 512 rows at a time
    for b in range(p.n_batch):
        part.x = p.x + p.x_batch[b] * p.size
        part.y = p.y + p.y_batch[b] * p.size
        part.out = p.out + b * p.m * p.size
        if scratch != NULL:
            if b == 0 or p.y_batch[b] != p.y_batch[b - 1]:
                copy_vector(p, part.y, scratch)
            part.y = scratch
        parallel_for(vector_rows, &part, p.m, chunk, <double> p.m * p.k)
    free(scratch)
    return 0


# ---- NumPy -------------------------------------------------------------------------------------------------------------------------

cdef np.ndarray wrap(int dtype, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t row, Py_ssize_t column, const char* data, int flags):
    """A 2-d array over raw memory; whoever calls keeps the memory alive."""
    cdef np.npy_intp[2] shape
    cdef np.npy_intp[2] strides
    shape[0], shape[1] = rows, columns
    strides[0], strides[1] = row, column
    return PyArray_New(np.ndarray, 2, shape, np.NPY_FLOAT if dtype == DTypeId.FLOAT32 else np.NPY_DOUBLE, strides, <void*> data, 0,
                       flags, None)


cdef int numpy_products(const Product* p) except -1:
    cdef Py_ssize_t b
    for b in range(p.n_batch):
        PyArray_MatrixProduct2(
            wrap(p.dtype, p.m, p.k, p.x_row, p.x_column, p.x + p.x_batch[b] * p.size, np.NPY_ARRAY_ALIGNED),
            wrap(p.dtype, p.k, p.n, p.y_row, p.y_column, p.y + p.y_batch[b] * p.size, np.NPY_ARRAY_ALIGNED),
            wrap(p.dtype, p.m, p.n, p.n * p.size, p.size, p.out + b * p.m * p.n * p.size, np.NPY_ARRAY_ALIGNED | np.NPY_ARRAY_WRITEABLE))
    return 0


# ---- the contract --------------------------------------------------------------------------------------------------------------------

cdef int run_matmul(int dtype, Py_ssize_t n_batch, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
                    char* x, const Py_ssize_t* x_batch, Py_ssize_t x_row, Py_ssize_t x_col,
                    char* y, const Py_ssize_t* y_batch, Py_ssize_t y_row, Py_ssize_t y_col,
                    char* out) except -1:
    cdef Product p
    cdef double work = <double> m * n * k
    cdef int failed = 0
    cdef body_t body
    if n_batch == 0 or m == 0 or n == 0:
        return 0
    p.dtype = dtype
    p.size = ITEMSIZE[dtype]
    p.n_batch, p.m, p.n, p.k = n_batch, m, n, k
    p.x, p.x_batch, p.x_row, p.x_column = x, x_batch, x_row * p.size, x_col * p.size
    p.y, p.y_batch, p.y_row, p.y_column = y, y_batch, y_row * p.size, y_col * p.size
    p.out = out
    if k == 0:
        memset(out, 0, n_batch * m * n * p.size)
        return 0
    if dtype < DTypeId.FLOAT32 or (work <= SMALL and m > 1 and n > 1):
        body = whole_items if dtype < DTypeId.FLOAT32 else small_items
        if work * n_batch < LONG_LOOP:
            body(&p, 0, n_batch)
        else:
            with nogil:
                parallel_for(body, &p, n_batch, <Py_ssize_t> max(1.0, CHUNK // work), work * n_batch / (1 if dtype < DTypeId.FLOAT32 else 8))
        return 0
    if n > 1 and m > 1:
        return numpy_products(&p)
    if n > 1:                                          # a row vector: transpose the whole product
        p.x, p.x_batch, p.x_row, p.x_column = y, y_batch, p.y_column, p.y_row
        p.y, p.y_batch, p.y_row = x, x_batch, x_col * p.size
        p.m, p.n = n, 1
    if work * n_batch < LONG_LOOP:
        failed = matrix_vector(&p)
    else:
        with nogil:
            failed = matrix_vector(&p)
    if failed:
        raise MemoryError("matmul: no memory for a copy of a strided vector")
    return 0


# ---- door for tests --------------------------------------------------------------------------------------------------------------------

def matmul_into(const number[:, :, :] x, const number[:, :, :] y, number[:, :, ::1] out):
    """out[b] = x[b] @ y[b] for memoryviews with any strides; a batch axis of extent 1 is used for every b."""
    cdef Py_ssize_t b, n_batch = out.shape[0], size = sizeof(number)
    cdef int dtype
    if number is uint8_t:
        dtype = DTypeId.UINT8
    elif number is int8_t:
        dtype = DTypeId.INT8
    elif number is int16_t:
        dtype = DTypeId.INT16
    elif number is int32_t:
        dtype = DTypeId.INT32
    elif number is int64_t:
        dtype = DTypeId.INT64
    elif number is float:
        dtype = DTypeId.FLOAT32
    else:
        dtype = DTypeId.FLOAT64
    if x.shape[1] != out.shape[1] or y.shape[2] != out.shape[2] or x.shape[2] != y.shape[1]:
        raise ValueError("matmul_into: shapes do not fit")
    if (x.shape[0] != 1 and x.shape[0] != n_batch) or (y.shape[0] != 1 and y.shape[0] != n_batch):
        raise ValueError("matmul_into: numbers of matrices do not fit")
    offsets = bytearray((2 * n_batch + 1) * sizeof(Py_ssize_t))
    cdef Py_ssize_t* offset = <Py_ssize_t*> <char*> offsets
    for b in range(n_batch):
        offset[b] = b * x.strides[0] // size if x.shape[0] > 1 else 0
        offset[n_batch + b] = b * y.strides[0] // size if y.shape[0] > 1 else 0
    run_matmul(dtype, n_batch, out.shape[1], out.shape[2], x.shape[2],
               <char*> &x[0, 0, 0] if x.size else NULL, offset, x.strides[1] // size, x.strides[2] // size,
               <char*> &y[0, 0, 0] if y.size else NULL, offset + n_batch, y.strides[1] // size, y.strides[2] // size,
               <char*> &out[0, 0, 0] if out.size else NULL)
