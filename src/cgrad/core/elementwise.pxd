"""Elementwise operations on tensors and Python numbers, unrecorded."""
from cpython.object cimport PyObject

from cgrad.core.primitive cimport Primitive
from cgrad.core.tensor cimport Tensor

cdef enum:
    SMALL = 4096           # elements up to which a contiguous loop is called directly

cdef inline bint is_number(object x) noexcept:
    return isinstance(x, float) or isinstance(x, int)

cdef Tensor as_tensor(Primitive p, object x)                       # numbers, arrays and NumPy scalars as tensors; TypeError for the rest
cdef Tensor compute1(Primitive p, Tensor x)
cdef Tensor compute2(Primitive p, Tensor x, Tensor y)              # of one dtype
cdef Tensor compute_number(Primitive p, Tensor x, object number, bint number_first)
cdef Tensor compute(Primitive p, PyObject** inputs, int n)         # any mixture; at least one tensor
cdef Py_ssize_t ONES[9]                                            # strides of contiguous operands
