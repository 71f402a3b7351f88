"""Matrix products: our own kernel for small ones, NumPy's BLAS above it."""

# out[b] = x[b] @ y[b] for a batch of n_batch products.  Strides are in elements and may be any (0, negative).
# x is (m, k), y is (k, n); out is C-contiguous, (n_batch, m, n), of the same dtype.  x_batch/y_batch: element offset of each
# batch's matrix (length n_batch).  Needs the GIL (NumPy's C API); k == 0 gives zeros.  Raises MemoryError or what NumPy raises.
cdef int run_matmul(int dtype, Py_ssize_t n_batch, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
                    char* x, const Py_ssize_t* x_batch, Py_ssize_t x_row, Py_ssize_t x_col,
                    char* y, const Py_ssize_t* y_batch, Py_ssize_t y_row, Py_ssize_t y_col,
                    char* out) except -1
