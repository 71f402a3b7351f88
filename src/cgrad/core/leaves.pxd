"""Leaves: the gradients that one backward has gathered for leaf tensors."""
from cpython.object cimport PyObject

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
