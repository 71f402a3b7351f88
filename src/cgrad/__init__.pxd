"""What `cimport cgrad` gives to Cython code: tensors as C sees them.  docs/howto/cython.md shows how to use it.

These declarations are all of it; the other .pxd files in the sources may change with any version.
"""
from cgrad.core.foreign cimport (
    contiguous, data, dtype, elementwise, elementwise_loop, empty, loop_function, mutable_data, ndim, shape, strides,
)

cdef extern from "Python.h":
    ctypedef class cgrad.core.tensor.Tensor [object PyObject, check_size ignore]:       # for typed arguments; has no fields
        pass

cdef enum DType:
    BOOL = 0
    UINT8 = 1
    UINT16 = 2
    UINT32 = 3
    UINT64 = 4
    INT8 = 5
    INT16 = 6
    INT32 = 7
    INT64 = 8
    FLOAT16 = 9
    BFLOAT16 = 10
    FLOAT32 = 11
    FLOAT64 = 12
