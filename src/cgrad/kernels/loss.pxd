"""Cross-entropy of rows of logits with classes given by index; contiguous rows x n, n >= 1, float32 or float64, classes checked."""
from libc.stdint cimport int64_t

# The loss of each row into `loss`, and two numbers a row into `state`, which backward needs.  w: a weight for each class, or NULL.
cdef void run_class_losses(int dtype, Py_ssize_t rows, Py_ssize_t n, const char* x, const int64_t* target, const char* w, double smoothing,
                           int64_t ignored, char* loss, char* state) noexcept nogil

# dx = g[i * g_step] * factor times the derivative of the loss of row i.
cdef void run_class_gradients(int dtype, Py_ssize_t rows, Py_ssize_t n, const char* g, Py_ssize_t g_step, double factor, const char* x,
                              const int64_t* target, const char* w, double smoothing, int64_t ignored, const char* state,
                              char* dx) noexcept nogil
