"""Tensor: a view of a Storage (dtype, shape, signed strides, offset) with a link to the Node that made it."""
from cgrad.core.storage cimport Storage
from cgrad.core.tape cimport Node
from cgrad.kernels.table cimport loop_t

cdef enum:
    INLINE_DIMS = 4

cdef enum Flag:
    REQUIRES_GRAD = 1      # a leaf that wants a gradient, or a recorded result
    DUAL = 2               # carries a tangent (forward mode)
    VIEW = 4               # shares the memory of a base whose history may change
    CONTIGUOUS = 8         # C-contiguous
    DERIVED = 16           # made from tracked inputs inside a user's Op.forward, where recording is off
    BATCHED = 32           # stands for the examples of a batch (batching.pyx): its memory is not to be read
    UNRECORDED = 64        # made from tracked tensors under no_grad
    DETACHED = 128         # made from a tracked tensor by detach or .data
    SPENT = 256            # a gradient that an optimizer's step has used; view_history is the version it then had
    OVERDUE = 512          # a spent gradient to which backward has added since
    FROZEN = 1024          # a leaf that was told to require no grad any more
    STEPPED = 2048         # made from tracked tensors by an operation without slope: a comparison, argmax, a cast to integers
    CUT = 8192             # detached, or computed from what was
    NOTED = 4096           # it is known where it left the graph: "left" in `extra`
    LOST = 64 | 1024 | 2048 | 8192       # why there is no graph (untracked.py): results inherit this
    TRACED = 1 | 4         # flags after which a call may have to be recorded
    MARKED = 1 | 4 | 4096  # and those after which its result may have more to inherit
    LEVEL = 2 | 32         # carries a tangent or the examples of a batch, at some level
    SLOW = 2 | 16 | 32     # flags that send a call down the slow road

cdef class Tensor:
    cdef Storage storage
    cdef char* data                        # first element
    cdef Py_ssize_t* dims                  # rank extents, then rank strides in elements
    cdef Py_ssize_t count                  # number of elements
    cdef int rank                          # number of axes
    cdef int dtype_id
    cdef unsigned int flags
    cdef int output_number                 # which result of `node` this is
    cdef unsigned int view_history         # the storage's history when the node of a view was right
    cdef Node node                         # None for a leaf
    cdef Tensor base                       # of a view: the tensor that it, or its base in turn, is a view of
    cdef object gradient                   # .grad
    cdef object extra                      # None, or a dict of rare things: "dual", "batch", "memory", "hooks", "retains"
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
cdef int copy_into(Tensor target, Tensor source, str name=*) except -1             # elementwise, source broadcast and cast; bumps target's version
cdef Tensor scalar_tensor(object value, int dtype)                                 # 0-d
cdef str shape_text(int rank, const Py_ssize_t* shape)                             # "(2, 3)"
cdef tuple shape_tuple(int rank, const Py_ssize_t* shape)
cdef int writable(Tensor x, str op) except -1                                      # raises for read-only memory
cdef void launch(loop_t loop, int nop, char** data, const int* itemsize, int rank, const Py_ssize_t* shape,
                 const Py_ssize_t** strides, int weight, Py_ssize_t count) noexcept  # run_elementwise, without the GIL if it takes long
cdef bint same_shape(Tensor x, Tensor y) noexcept
cdef void become_view(Tensor x, Tensor base) noexcept                               # mark x as a view of base (or of base's base)
cdef int set_gradient(Tensor x, Tensor g) except -1                                # .grad, without the checks of the property
cdef int set_extra(Tensor x, str key, object value) except -1
cdef int leave_graph(Tensor x, unsigned int how) except -1                         # mark a tensor with a flag of LOST
cdef int readable(Tensor x, str how) except -1                                     # raises for a tensor that stands for a batch
cdef int leaves_graph(Tensor x, str how) except -1                                 # raises where a number must not leave the graph, or cannot be read
cdef inline bint stale(Tensor x) noexcept:                                         # a view whose base has got a new history
    return x.flags & VIEW and x.storage.history != x.view_history
cdef int refresh(Tensor x) except -1                                               # bring a stale view's node up to date
cdef inline Py_ssize_t* shape_of(Tensor x) noexcept:
    return x.dims
cdef inline Py_ssize_t* strides_of(Tensor x) noexcept:
    return x.dims + x.rank
cpdef register_method(str name, object function)                                   # the layers above hang their functions onto Tensor

# Operators reach the ops layer through these; apply.pyx and inplace.pyx set the pointers, the ops layer fills what they look up.
cdef enum Operator:
    OP_ADD
    OP_SUBTRACT
    OP_MULTIPLY
    OP_DIVIDE
    OP_FLOOR_DIVIDE
    OP_REMAINDER
    OP_POWER
    OP_MATMUL
    OP_AND
    OP_OR
    OP_XOR
    OP_LEFT_SHIFT
    OP_RIGHT_SHIFT
    OP_EQUAL
    OP_NOT_EQUAL
    OP_LESS
    OP_LESS_EQUAL
    OP_GREATER
    OP_GREATER_EQUAL
    OP_NEGATIVE
    OP_POSITIVE
    OP_ABSOLUTE
    OP_INVERT
    N_OPERATORS

ctypedef object (*binary_operator_t)(int which, object x, object y)
ctypedef object (*unary_operator_t)(int which, object x)
cdef int set_operators(binary_operator_t binary, unary_operator_t unary) except -1
cdef int set_inplace_operator(binary_operator_t inplace) except -1
