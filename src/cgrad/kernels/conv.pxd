"""Convolutions over up to three axes, of float32 or float64, and their two adjoints; all operands contiguous."""

cdef enum:
    CONV_AXES = 3

# Of one group, but for `groups`: `filters` filters of shape (channels, *kernel).  The element of the image that tap t of the kernel meets
# for the result at place p of an axis is p * stride + t * dilation - padding; outside [0, image) there are zeros.  Numbers below 2**31.
cdef struct ConvShape:
    Py_ssize_t n_images, groups, channels, filters
    Py_ssize_t[CONV_AXES] image         # extents of x
    Py_ssize_t[CONV_AXES] places        # extents of the result
    Py_ssize_t[CONV_AXES] kernel
    Py_ssize_t[CONV_AXES] stride, padding, dilation

# x (n_images, groups * channels, *image), w (groups * filters, channels, *kernel), y (n_images, groups * filters, *places).
# b, one number for each channel of the result, or NULL.  All return -1 if there is no memory for the tile that each thread unfolds.
# `scratch`: conv_weight_scratch(...) bytes, aligned to 64.
cdef int run_conv(int dtype, const ConvShape* shape, const char* x, const char* w, const char* b, char* y) noexcept nogil
cdef int run_conv_transpose(int dtype, const ConvShape* shape, const char* y, const char* w, const char* b, char* x) noexcept nogil
cdef int run_conv_weight(int dtype, const ConvShape* shape, const char* y, const char* x, char* w, char* scratch) noexcept nogil
cdef Py_ssize_t conv_weight_scratch(int dtype, const ConvShape* shape) noexcept nogil
