"""Functions of whole rows along one axis: softmax and its relatives, float32 and float64 only."""

# out = map(x[, y]) along `axis`; which: RowMap in table.pxd.  x and y have this shape and any element strides (y NULL where the map
# takes one input), out is C-contiguous.  Returns 0, or -1 if scratch memory could not be had.
cdef int run_row_map(int which, int dtype, int ndim, const Py_ssize_t* shape, const char* x, const Py_ssize_t* x_strides,
                     const char* y, const Py_ssize_t* y_strides, int axis, char* out) noexcept nogil

# out[i] = log(sum(exp(row i))): rows of n contiguous elements that start at the points of an n-d grid (shape, element strides).
cdef void run_logsumexp(int dtype, int ndim, const Py_ssize_t* shape, const char* x, const Py_ssize_t* strides, Py_ssize_t n,
                        char* out) noexcept nogil
