"""Reductions over any set of axes of an n-d strided operand."""

# Ids for the hot path; `reduce_id(name)` maps "sum", "prod", "max", "min", "any", "all", "argmax", "argmin", ... to them.
cdef int reduce_id(str name) except -1

# dtype of the result for an input dtype: sum/prod of bool and ints -> int64, floats keep; max/min keep; any/all bool; argmax int64.
cdef int reduce_result_dtype(int reduction, int dtype) noexcept nogil

# Reduce the axes whose bit is set in `axes` (bit i = axis i).  `out` is C-contiguous over the kept axes in their order.
# For argmax/argmin exactly one axis bit is set, or all of them (index into the flattened order).
# Reduced length 0: sum 0, prod 1, any False, all True; the caller has refused max/min/argmax/argmin before.
# Returns 0, or -1 if scratch memory could not be had.
cdef int run_reduce(int reduction, int dtype, const char* x, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides,
                    unsigned long long axes, char* out) noexcept nogil
