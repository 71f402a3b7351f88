"""Node: what one recorded operation leaves behind, and the thread-local switch that says whether to record."""

cdef bint grad_enabled() noexcept nogil
cdef bint set_grad_mode(bint enabled) noexcept nogil     # returns what it was

cdef class Node:
    # Edges and saved values of the first two inputs sit in the object; those of later inputs in `more`.
    cdef object primitive          # Primitive or CustomCall
    cdef object edge0, edge1       # Node, leaf Tensor, or None where no gradient is due
    cdef object saved0, saved1     # inputs that a rule names
    cdef object saved_out          # the result without its node, if a rule names it
    cdef object options            # tuple of call options
    cdef object more               # None, or a Rest (inputs from the third on, other outputs, watchers)
    cdef unsigned long long sequence
    cdef unsigned int version0, version1, version_out
    cdef int n_inputs, n_outputs
    cdef int out0, out1            # which output of edge0/edge1 the input was
    cdef int state                 # 0 fresh, 1 freed
    cdef int out_dtype, out_ndim   # of the (first) result
    cdef Py_ssize_t out_dims[4]    # its shape, where out_ndim <= 4; else out_shape
    cdef Py_ssize_t* out_shape
    cdef void* pending             # the engine's slot while a backward runs
    cdef void* run
