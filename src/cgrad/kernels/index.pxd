"""Indexing by integers and masks: read, write and accumulate elements at given places."""
from libc.stdint cimport int64_t

from cgrad.kernels.table cimport MAX_DIMS

cdef enum Mode:
    GET = 0                # y = x[...]
    SET = 1                # x[...] = y     (of several writes to one place the last stays)
    ADD = 2                # x[...] += y    (all of them count)
    MULTIPLY = 3           # the three that follow: run_along_axis alone, for int64 and floats
    LARGEST = 4            # NaN wins
    SMALLEST = 5

# Two operands over the same places: x is addressed through offsets, y densely.  Strides and offsets are in elements.
# The places are outer axes x indices x inner axes, in this order in memory of y if y is C-contiguous.
cdef struct Walk:
    char* x
    char* y
    int outer
    Py_ssize_t outer_shape[MAX_DIMS]
    Py_ssize_t outer_x[MAX_DIMS]
    Py_ssize_t outer_y[MAX_DIMS]
    Py_ssize_t n_index
    const Py_ssize_t* offsets
    Py_ssize_t y_step
    int inner
    Py_ssize_t inner_shape[MAX_DIMS]
    Py_ssize_t inner_x[MAX_DIMS]
    Py_ssize_t inner_y[MAX_DIMS]

# Collapses the walk's axes in place, then runs it.  GET splits over threads; SET and ADD keep the order of the indices.
cdef void run_walk(Walk* walk, Mode mode, int dtype) noexcept nogil

# offsets[i] (+)= wrapped index[i] * step in C order of `shape`.  False with the first bad index in *bad if one is outside -size..size-1.
cdef bint index_offsets(const int64_t* index, int rank, const Py_ssize_t* shape, const Py_ssize_t* strides, Py_ssize_t size,
                        Py_ssize_t step, Py_ssize_t* offsets, bint add, int64_t* bad) noexcept nogil

# Whether all indices lie in -size..size-1.
cdef bint check_indices(const int64_t* index, int rank, const Py_ssize_t* shape, const Py_ssize_t* strides, Py_ssize_t size,
                        int64_t* bad) noexcept nogil

cdef Py_ssize_t count_true(const char* mask, int rank, const Py_ssize_t* shape, const Py_ssize_t* strides) noexcept nogil

# For each true element in C order: sum of coordinate * step over the axes.  `offsets` has room for count_true elements.
cdef void mask_offsets(const char* mask, int rank, const Py_ssize_t* shape, const Py_ssize_t* strides, const Py_ssize_t* steps,
                       Py_ssize_t* offsets) noexcept nogil

# Row r of `out` (n, rank) holds the coordinates of the r-th true element.
cdef void mask_coordinates(const char* mask, int rank, const Py_ssize_t* shape, const Py_ssize_t* strides, int64_t* out) noexcept nogil

# One index per place along one axis: y[i] with x[..., index[i], ...].  x_strides has 0 for the indexed axis, whose stride is `step`
# and extent `size`; the indices were checked before.
cdef void run_along_axis(Mode mode, int dtype, char* x, const Py_ssize_t* x_strides, Py_ssize_t size, Py_ssize_t step,
                         const int64_t* index, const Py_ssize_t* index_strides, char* y, const Py_ssize_t* y_strides,
                         int rank, const Py_ssize_t* shape) noexcept nogil
