"""Walk n-d strided operands: collapse and reorder axes, split over threads, call a one-axis loop."""
from cgrad.kernels.table cimport loop_t

# data[0] is the result, data[1:nop] the inputs, itemsize likewise; strides[k] has ndim ELEMENT strides of operand k
# (0 where it is broadcast).  No shape axis may be negative; a zero axis means nothing is done.
cdef void run_elementwise(loop_t loop, int nop, char** data, const int* itemsize, int ndim, const Py_ssize_t* shape,
                          const Py_ssize_t** strides, int weight) noexcept nogil

# The same where the loop sees the operands in other dtypes than memory holds them in; a cast loop must lead from one to the other.
cdef void run_converted(loop_t loop, int nop, char** data, const int* held, const int* seen, int ndim, const Py_ssize_t* shape,
                        const Py_ssize_t** strides, int weight) noexcept nogil

# data[0] = data[1] in another dtype, any of any.
cdef void run_cast(int source, int target, char** data, int ndim, const Py_ssize_t* shape, const Py_ssize_t** strides) noexcept nogil
