"""Leaves: the gradients that one backward has gathered for leaf tensors, and how they get into `.grad`."""
from cpython.object cimport PyObject

from cgrad.core.tensor cimport Tensor

cdef enum:
    FEW = 8                      # items that sit in the object

cdef struct Leaf:
    PyObject* tensor             # both references are the table's
    PyObject* gradient


cdef class Leaves:
    cdef Leaf* items             # in the order in which backward reached them
    cdef Py_ssize_t count
    cdef int* places             # open addressing: one more than the index of the item whose address hashes here, or 0
    cdef Py_ssize_t capacity     # of items; there are twice as many places, a power of two

    cdef Leaf few_items[FEW]
    cdef int few_places[2 * FEW]

    cdef Py_ssize_t place(self, PyObject* tensor) noexcept         # where an address is, or the empty place for it
    cdef int grow(self) except -1
    cdef Py_ssize_t find(self, PyObject* tensor) noexcept          # index of its item, or -1
    cdef int append(self, object tensor, object gradient) except -1
    cdef int replace(self, Py_ssize_t i, object gradient) except -1

cdef int set_accumulation(object add, object clone) except -1                 # tell the recorded addition and copy
cdef int fits_held(Tensor x, Tensor g) except -1                              # raises if g cannot be added to x.grad
cdef int keep_gradient(Tensor x, Tensor g, bint create_graph, bint take) except -1
cdef int add_into(Tensor x, Tensor g, bint release) except -1
