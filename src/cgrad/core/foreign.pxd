"""The C-level interface of cgrad for Cython code of others; `cimport cgrad` finds all of it (see cgrad/__init__.pxd).

Needs no other file.  Tensors are plain objects here, so that nothing depends on how they are made up.  Shapes are in elements, and so are strides,
which may be negative or 0.  All of it needs the GIL, and raises what a Python function would; nothing is recorded.
"""

# A loop over one axis: data[0] is the result, data[1], ... the inputs, strides likewise, in elements.  It must not fail nor write elsewhere.
ctypedef void (*elementwise_loop)(char** data, const Py_ssize_t* strides, Py_ssize_t n) noexcept nogil

cdef int ndim(object x) except -1
cdef const Py_ssize_t* shape(object x) except NULL
cdef const Py_ssize_t* strides(object x) except NULL
cdef int dtype(object x) except -1                                                  # BOOL ... FLOAT64
cdef const void* data(object x) except? NULL                                        # of the first element, to be read
cdef void* mutable_data(object x) except? NULL                                      # to be written: counts as an operation in place
cdef object empty(int ndim, const Py_ssize_t* shape, int dtype)                     # new, C-contiguous, not initialised
cdef object contiguous(object x, int dtype)                                         # x itself if it is C-contiguous and of the dtype, else a copy

# The loop over tensors of one dtype that broadcast, on threads if it is long: `weight` is what an element costs, in additions.
cdef object elementwise(elementwise_loop loop, tuple inputs, int dtype, int weight)

# What cgrad.foreign_op makes an operation of: such a loop.
cdef object loop_function(elementwise_loop loop, int n_inputs, int dtype, int weight)
