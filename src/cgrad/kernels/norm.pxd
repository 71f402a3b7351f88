"""Normalising rows of float32 or float64 (layer_norm, rms_norm); everything contiguous, rows x n elements, n >= 1."""

# out = y * w + b with y = (x - mean) / sqrt(variance + eps) along each row, or y = x / sqrt(mean square + eps) if not `centred`.
cdef void run_norm(int dtype, Py_ssize_t rows, Py_ssize_t n, const char* x, const char* w, const char* b, double eps, bint centred,
                   char* out) noexcept nogil

# The gradients of x, w and b for the gradient g of the result; those that are NULL are left out.  `scratch`, norm_scratch(rows, n)
# numbers, is needed for dw and db only.
cdef void run_norm_backward(int dtype, Py_ssize_t rows, Py_ssize_t n, const char* g, const char* x, const char* w, double eps,
                            bint centred, char* dx, char* dw, char* db, double* scratch) noexcept nogil
cdef Py_ssize_t norm_scratch(Py_ssize_t rows, Py_ssize_t n) noexcept nogil
