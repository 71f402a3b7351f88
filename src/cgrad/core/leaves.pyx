"""Leaves: the gradients that one backward has gathered for leaf tensors.

A table by address that remembers the order of arrival.  A dict would call Tensor's ``__hash__`` for every gradient that reaches a
leaf, which is half of the cost of a backward step on small tensors.  Needs the GIL.  Next: engine.pyx, whose Run owns one.
"""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy


@cython.final
@cython.no_gc
cdef class Leaves:
    """Leaf tensors and the sums of the gradients that have reached them."""

    def __cinit__(self):
        self.items = self.few_items
        self.places = self.few_places
        self.capacity = FEW

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.count):
            Py_DECREF(<object>self.items[i].tensor)
            Py_DECREF(<object>self.items[i].gradient)
        if self.capacity > FEW:
            free(self.items)
            free(self.places)

    cdef Py_ssize_t place(self, PyObject* tensor) noexcept:
        cdef Py_ssize_t mask = 2 * self.capacity - 1
        cdef Py_ssize_t k = <Py_ssize_t>((<uintptr_t>tensor >> 4) * <uintptr_t>0x9E3779B1 >> 7) & mask
        while self.places[k] and self.items[self.places[k] - 1].tensor != tensor:
            k = (k + 1) & mask
        return k

    cdef Py_ssize_t find(self, PyObject* tensor) noexcept:
        return self.places[self.place(tensor)] - 1

    cdef int append(self, object tensor, object gradient) except -1:
        if self.count == self.capacity:
            self.grow()
        Py_INCREF(tensor)
        Py_INCREF(gradient)
        self.items[self.count].tensor = <PyObject*>tensor
        self.items[self.count].gradient = <PyObject*>gradient
        self.count += 1
        self.places[self.place(<PyObject*>tensor)] = <int>self.count
        return 0

    cdef int grow(self) except -1:
        cdef Py_ssize_t i, capacity = 2 * self.capacity
        cdef Leaf* items = <Leaf*>malloc(capacity * sizeof(Leaf))
        cdef int* places = <int*>calloc(2 * capacity, sizeof(int))
        if items == NULL or places == NULL:
            free(items)
            free(places)
            raise MemoryError()
        memcpy(items, self.items, self.count * sizeof(Leaf))
        if self.capacity > FEW:
            free(self.items)
            free(self.places)
        self.items = items
        self.places = places
        self.capacity = capacity
        for i in range(self.count):
            self.places[self.place(items[i].tensor)] = <int>(i + 1)
        return 0

    cdef int replace(self, Py_ssize_t i, object gradient) except -1:
        cdef PyObject* old = self.items[i].gradient
        Py_INCREF(gradient)
        self.items[i].gradient = <PyObject*>gradient
        Py_DECREF(<object>old)
        return 0
