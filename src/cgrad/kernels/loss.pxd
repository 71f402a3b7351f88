"""Cross-entropy of rows with classes given by index, and connectionist temporal classification; contiguous and checked operands."""
from libc.stdint cimport int64_t

# Rows x n, n >= 1, float32 or float64.  The loss of each row into `loss`, and two numbers a row into `state`, which backward needs.
# w: a weight for each class, or NULL.
cdef void run_class_losses(int dtype, Py_ssize_t rows, Py_ssize_t n, const char* x, const int64_t* target, const char* w, double smoothing,
                           int64_t ignored, char* loss, char* state) noexcept nogil

# dx = g[i * g_step] * factor times the derivative of the loss of row i.
cdef void run_class_gradients(int dtype, Py_ssize_t rows, Py_ssize_t n, const char* g, Py_ssize_t g_step, double factor, const char* x,
                              const int64_t* target, const char* w, double smoothing, int64_t ignored, const char* state,
                              char* dx) noexcept nogil

cdef enum:
    CTC_ROWS = 8

# Log-probabilities x (times, samples, classes) of sequences, and the labels of each sample, target (samples, width).
cdef struct CtcPlan:
    int dtype                          # FLOAT32 or FLOAT64: that of x, loss, g and dx
    Py_ssize_t times, samples, classes, width
    const char* x
    const int64_t* target
    const int64_t* input_lengths       # how much of x and of target counts for each sample
    const int64_t* target_lengths
    int64_t blank
    double* alpha                      # (samples, times, 2 * width + 3), written by run_ctc, read by run_ctc_gradient
    char* loss                         # (samples,), the same
    const char* g                      # gradient of sample i at g[i * g_step]
    Py_ssize_t g_step
    double* scratch                    # (samples, CTC_ROWS, 2 * width + 3)
    char* dx                           # holds exp(x), and is written over with the gradient

cdef void run_ctc(CtcPlan* plan) noexcept nogil
cdef void run_ctc_gradient(CtcPlan* plan) noexcept nogil
