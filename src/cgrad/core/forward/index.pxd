"""What a key means for a tensor: a view, or places to read and write."""
from cgrad.core.storage cimport Storage
from cgrad.core.tensor cimport Tensor
from cgrad.kernels.table cimport MAX_DIMS

cdef class Plan:
    # A key parsed and checked against one tensor.  Result axes: plain ones, and `index_rank` axes of the index arrays from `first` on.
    cdef Tensor x
    cdef bint basic                        # only ints, slices, None, Ellipsis: the result is a view
    cdef Py_ssize_t start                  # elements from x.data to the result's first element
    cdef int rank
    cdef int first, index_rank
    cdef Py_ssize_t n_index                # product of the index axes
    cdef Storage offsets                   # n_index offsets in elements
    cdef Py_ssize_t shape[MAX_DIMS]
    cdef Py_ssize_t strides[MAX_DIMS]      # in x; 0 for index axes

cdef Plan parse(Tensor x, object key)
cdef Tensor read(Plan plan)
cdef int write(Plan plan, Tensor value, str op) except -1
cdef int accumulate(Plan plan, Tensor value) except -1
