"""Elementwise operations on tensors and Python numbers, unrecorded."""
from cpython.object cimport PyObject

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject* x) nogil

from cgrad.core.primitive cimport Primitive
from cgrad.core.storage cimport BORROWED
from cgrad.core.tensor cimport CONTIGUOUS, DUAL, Tensor, VIEW

cdef enum:
    SMALL = 4096           # elements up to which a contiguous loop is called directly

cdef inline bint is_number(object x) noexcept:
    return isinstance(x, float) or isinstance(x, int)

# Tells how arrays and NumPy scalars among the operands become tensors.
ctypedef Tensor (*converter_t)(object x)
cdef void set_converter(converter_t function) noexcept

cdef bint is_array(object x) except -1                             # an array or scalar of NumPy
cdef Tensor as_tensor(Primitive p, object x)                       # numbers, arrays and NumPy scalars as tensors; TypeError for the rest
cdef Tensor compute1(Primitive p, Tensor x)
cdef Tensor compute2(Primitive p, Tensor x, Tensor y)              # of one dtype
cdef Tensor compute_number(Primitive p, Tensor x, object number, bint number_first)
cdef Tensor compute(Primitive p, PyObject** inputs, int n)         # any mixture; at least one tensor
cdef bint compute_over(Primitive p, PyObject** inputs, int n, Tensor out) except -1    # into the memory of an input; False: not possible
cdef inline bint is_spare(Tensor x) noexcept:                      # nobody else sees the memory of x, whose own references the caller counts
    return x.flags & (CONTIGUOUS | VIEW | DUAL) == CONTIGUOUS and Py_REFCNT(<PyObject*>x.storage) == 1 and x.storage.source < BORROWED
cdef Py_ssize_t ONES[9]                                            # strides of contiguous operands
