"""Windows that slide over one to three axes: their largest elements and their means; elements at places, and weighted sums of them.

Everything is contiguous, `planes` of n elements each.
"""
from libc.stdint cimport int32_t

# One axis of the windows.  Window o holds count[o] elements from first[o] on, `step` apart, all of them inside.  Where windows are evenly
# `stride` apart, tap t of window o is the element o * stride + shift[t], inside for low[t] <= o < high[t]; where not, stride is 0.
cdef struct Axis:
    Py_ssize_t n, n_out, n_taps, step, stride
    const Py_ssize_t* first
    const Py_ssize_t* count
    const Py_ssize_t* low
    const Py_ssize_t* high
    const Py_ssize_t* shift
    const double* divisor                                  # of a mean: the product of those of all axes

# Always three axes; those that a call does not have are of one element and one window.  dtype: INT64, FLOAT32 or FLOAT64 for the largest
# element, a float for the rest.  `places` are those of the largest elements in their plane, the first of equal ones, a NaN before all
# others; -1 for a window that holds nothing, whose largest element is the lowest number.
cdef void run_max_pool(int dtype, Py_ssize_t planes, const Axis* axes, const char* x, char* out, int32_t* places) noexcept nogil
cdef void run_average_pool(int dtype, Py_ssize_t planes, const Axis* axes, const char* x, char* out) noexcept nogil
cdef void run_average_spread(int dtype, Py_ssize_t planes, const Axis* axes, const char* g, char* out) noexcept nogil

# out[k] = x[places[k]] in each plane, 0 where the place is -1; and its transpose, the sums of g over equal places.
cdef void run_pick(int dtype, Py_ssize_t planes, Py_ssize_t n, Py_ssize_t n_out, const char* x, const int32_t* places, char* out) noexcept nogil
cdef void run_place(int dtype, Py_ssize_t planes, Py_ssize_t n, Py_ssize_t n_out, const char* g, const int32_t* places, char* out) noexcept nogil

# For each of `images` of `channels` planes of n elements: out[c][k] = sum over taps t of weights[t][k] * x[c][places[t][k]], and the
# two other functions that are linear in two of x, weights and out.  An element at the place -1 is 0.
cdef void run_sample(int dtype, Py_ssize_t images, Py_ssize_t channels, Py_ssize_t n, Py_ssize_t n_taps, Py_ssize_t n_out, const char* x,
                     const char* weights, const int32_t* places, char* out) noexcept nogil
cdef void run_sample_spread(int dtype, Py_ssize_t images, Py_ssize_t channels, Py_ssize_t n, Py_ssize_t n_taps, Py_ssize_t n_out, const char* g,
                            const char* weights, const int32_t* places, char* out) noexcept nogil
cdef void run_sample_weights(int dtype, Py_ssize_t images, Py_ssize_t channels, Py_ssize_t n, Py_ssize_t n_taps, Py_ssize_t n_out, const char* g,
                             const char* x, const int32_t* places, char* out) noexcept nogil
