"""The walk over n-d strided operands.

Owns: the order in which elements are visited.  Callers: core's primitives and forward functions.
Rules: no GIL needed, no allocation.  Read next: elementwise.pxi, the loops that are called here.
"""
from cgrad.kernels.table cimport MAX_DIMS, MAX_OPERANDS, loop_t


cdef void run_elementwise(loop_t loop, int nop, char** data, const int* itemsize, int ndim, const Py_ssize_t* shape,
                          const Py_ssize_t** strides, int weight) noexcept nogil:
    cdef Py_ssize_t index[MAX_DIMS]
    cdef Py_ssize_t inner[MAX_OPERANDS]
    cdef char* p[MAX_OPERANDS]
    cdef int k, axis
    for axis in range(ndim):
        if shape[axis] == 0:
            return
        index[axis] = 0
    for k in range(nop):
        p[k] = data[k]
        inner[k] = strides[k][ndim - 1] if ndim else 0
    while True:
        loop(p, inner, shape[ndim - 1] if ndim else 1)
        axis = ndim - 2
        while axis >= 0:
            index[axis] += 1
            for k in range(nop):
                p[k] += strides[k][axis] * itemsize[k]
            if index[axis] < shape[axis]:
                break
            for k in range(nop):
                p[k] -= strides[k][axis] * itemsize[k] * shape[axis]
            index[axis] = 0
            axis -= 1
        if axis < 0:
            return
