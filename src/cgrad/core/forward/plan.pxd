"""What a key means for a tensor: a view, or places to read and write."""
from cgrad.core.storage cimport Storage
from cgrad.core.tensor cimport Tensor
from cgrad.kernels.index cimport Mode
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

cdef Plan parse(Tensor x, object key, str op)                          # IndexError, which names `op`, for whatever does not fit
cdef Tensor basic_view(Tensor x, object key)                           # None if the key holds an array or does not fit
cdef bint plain_key(object key)                                        # nothing in it can change later
cdef object frozen_key(object key, Tensor x, str op)                   # the same key, as a tuple of things that cannot change later
cdef Tensor read(Plan plan)
cdef int put(Plan plan, Tensor value, Mode mode, str op) except -1     # for keys with arrays; does not bump the version
cdef int write(Plan plan, Tensor value, str op) except -1
cdef int write_view(Tensor view, Tensor value, str op) except -1
cdef int accumulate(Plan plan, Tensor value) except -1
cdef bint may_overlap_itself(Tensor x) noexcept                        # whether two of its elements may lie in one place
cdef int distinct(Tensor x, str op) except -1                          # ValueError where elements share one place in memory
cdef Tensor zeros(int dtype, tuple shape)
