"""Normalising rows (layer_norm, rms_norm) and channels (batch_norm, group_norm, instance_norm) of contiguous float32 or float64."""

# Rows of n >= 1 elements: out = y * w + b with y = (x - mean) / sqrt(variance + eps) along each row, or y = x / sqrt(mean square + eps) if not `centred`.
cdef void run_norm(int dtype, Py_ssize_t rows, Py_ssize_t n, const char* x, const char* w, const char* b, double eps, bint centred,
                   char* out) noexcept nogil

# The gradients of x, w and b for the gradient g of the result; those that are NULL are left out.  `scratch`, norm_scratch(rows, n)
# numbers, is needed for dw and db only.
cdef void run_norm_backward(int dtype, Py_ssize_t rows, Py_ssize_t n, const char* g, const char* x, const char* w, double eps,
                            bint centred, char* dx, char* dw, char* db, double* scratch) noexcept nogil
cdef Py_ssize_t norm_scratch(Py_ssize_t rows, Py_ssize_t n) noexcept nogil

# x is (samples, channels, extent), none of them 0.  Mean and variance are over the samples and the extent of each channel (groups 0), else
# over the extent and the channels of each of `groups` groups in each sample.  `moments` has them as pairs, one for each channel or group;
# they are computed, or taken from there if `given` (groups 0 only).  w and b hold a number for each channel, or are NULL.
cdef void run_channel_norm(int dtype, Py_ssize_t samples, Py_ssize_t channels, Py_ssize_t extent, Py_ssize_t groups, const char* x,
                           const char* w, const char* b, double eps, bint given, double* moments, char* out) noexcept nogil

# The gradients of x, w and b; those that are NULL are left out.  `sums` has room for 2 * samples * channels numbers.
cdef void run_channel_norm_backward(int dtype, Py_ssize_t samples, Py_ssize_t channels, Py_ssize_t extent, Py_ssize_t groups, const char* g,
                                    const char* x, const char* w, double eps, bint given, const double* moments, double* sums, char* dx,
                                    char* dw, char* db) noexcept nogil
