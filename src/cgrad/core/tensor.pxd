"""Tensor: a view of a Storage (dtype, shape, signed strides, offset) with a link to the Node that made it."""
from cgrad.core.storage cimport Storage
from cgrad.core.tape cimport Node

cdef enum:
    INLINE_DIMS = 4

cdef enum Flag:
    REQUIRES_GRAD = 1      # a leaf that wants a gradient, or a recorded result
    DUAL = 2               # carries a tangent (forward mode)
    VIEW = 4               # made as a view of another tensor while recording
    CONTIGUOUS = 8         # C-contiguous
    DERIVED = 16           # made from tracked inputs inside a user's Op.forward, where recording is off
    SLOW = 2 | 16          # flags that send a call down the slow road

cdef class Tensor:
    cdef Storage storage
    cdef char* data                        # first element
    cdef Py_ssize_t* dims                  # ndim extents, then ndim strides in elements
    cdef Py_ssize_t count                  # number of elements
    cdef int rank                          # number of axes
    cdef int dtype_id
    cdef unsigned int flags
    cdef int output_number                 # which result of `node` this is
    cdef unsigned int view_version         # storage version when a recorded view was made
    cdef Node node                         # None for a leaf
    cdef object gradient                   # .grad
    cdef object extra                      # dual, hooks and other rare things
    cdef Py_ssize_t inline_dims[2 * INLINE_DIMS]
    cdef object __weakref__

# All of these make plain, unrecorded tensors.  Shapes and strides are in elements.
cdef Tensor empty_tensor(int dtype, int rank, const Py_ssize_t* shape)             # fresh, C-contiguous, uninitialised
cdef Tensor empty_like(Tensor x, int dtype)                                        # same shape, C-contiguous
cdef Tensor view_tensor(Tensor base, int rank, const Py_ssize_t* shape, const Py_ssize_t* strides, Py_ssize_t offset)  # offset from base.data, elements
cdef Tensor storage_tensor(Storage storage, char* data, int dtype, int rank, const Py_ssize_t* shape, const Py_ssize_t* strides)
cdef Tensor alias_tensor(Tensor x)                                                 # same memory and layout, no node, no flags but CONTIGUOUS
cdef Tensor contiguous_tensor(Tensor x)                                            # x itself if it is C-contiguous, else a copy
cdef Tensor cast_tensor(Tensor x, int dtype)                                       # x itself if it has the dtype, else a C-contiguous copy
cdef Tensor copy_tensor(Tensor x)                                                  # always a C-contiguous copy
cdef int copy_into(Tensor target, Tensor source) except -1                         # elementwise, source broadcast and cast; bumps target's version
cdef Tensor scalar_tensor(object value, int dtype)                                 # 0-d
cdef object item_of(int dtype, const char* data)                                   # one element as a Python number
cdef int store_item(int dtype, char* data, object value) except -1                 # one Python number into memory
cdef str shape_text(Tensor x)                                                      # "(2, 3)"
cdef inline Py_ssize_t* shape_of(Tensor x) noexcept:
    return x.dims
cdef inline Py_ssize_t* strides_of(Tensor x) noexcept:
    return x.dims + x.rank
cpdef register_method(str name, object function)                                   # the ops layer hangs its functions onto Tensor
