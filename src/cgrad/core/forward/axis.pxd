"""How the elements of a C-contiguous tensor lie around an axis: what kernels that run along one need to know."""
from cgrad.core.tensor cimport Tensor, shape_of


cdef inline Py_ssize_t around(Tensor x, int axis, Py_ssize_t* inner) noexcept:
    """How many elements lie before the axis, and (in `inner`) how many behind it."""
    cdef Py_ssize_t outer = 1
    cdef int k
    inner[0] = 1
    for k in range(axis):
        outer *= shape_of(x)[k]
    for k in range(axis + 1, x.rank):
        inner[0] *= shape_of(x)[k]
    return outer
