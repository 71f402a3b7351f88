"""Leaves: the gradients that one backward has gathered for leaf tensors, and how they get into `.grad`.

A table by address that remembers the order of arrival.  A dict would call Tensor's ``__hash__`` for every gradient that reaches a
leaf, which is half of the cost of a backward step on small tensors.  Needs the GIL.  Next: engine.pyx, whose Run owns one.
"""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from cgrad.core.dtype cimport ITEMSIZE, dtype_object
from cgrad.core.elementwise cimport ONES, SMALL, compute2, is_spare
from cgrad.core.primitive cimport Primitive
from cgrad.core.storage cimport written
from cgrad.core.tensor cimport (
    CONTIGUOUS, OVERDUE, REQUIRES_GRAD, SPENT, Tensor, copy_into, copy_tensor, launch, same_shape, set_gradient, shape_text,
)
from cgrad.kernels.iterate cimport run_elementwise


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


# ---------------------------------------------------------------------- x.grad
cdef object add_function = None          # the recorded addition and copy, for derivatives of derivatives
cdef object clone_function = None
cdef Primitive add_primitive = None


cdef int set_accumulation(object add, object clone) except -1:
    global add_function, add_primitive, clone_function
    clone_function = clone
    add_function = add
    add_primitive = add.primitive
    return 0


cdef int fits_held(Tensor x, Tensor g) except -1:
    """x.grad may have got another layout than x through `data`."""
    cdef Tensor held = <Tensor>x.gradient
    if held.dtype_id != g.dtype_id or not same_shape(held, g):
        raise RuntimeError(f"backward: a gradient of shape {shape_text(g.rank, g.dims)} and dtype {dtype_object(g.dtype_id).name} cannot be added to "
                           f"the .grad of shape {shape_text(held.rank, held.dims)} and dtype {dtype_object(held.dtype_id).name} that is there; "
                           "set it to None first")
    return 0


cdef int keep_gradient(Tensor x, Tensor g, bint create_graph, bint take) except -1:
    """Add g to x.grad.  `take`: nobody else holds g, so its memory may be taken over.

    Other threads may do the same to x.  An addition in place keeps the GIL; what lets go of it looks whether x.grad is still what it was.
    """
    cdef Tensor held, total
    cdef unsigned int version
    while True:
        held = <Tensor>x.gradient
        version = 0 if held is None else held.storage.version
        if held is None:
            if take and is_spare(g) and (create_graph or not g.flags & REQUIRES_GRAD):
                total = g
            else:
                total = clone_function(g) if create_graph else copy_tensor(g)
        elif create_graph or held.flags & REQUIRES_GRAD:
            total = add_function(held, g)
        elif held.flags & g.flags & CONTIGUOUS and not held.storage.readonly and add_primitive.loops[held.dtype_id] != NULL:
            add_into(held, g, False)          # in place, so that whoever holds x.grad sees the sum
            note_addition(held, version)
            return 0
        else:
            total = compute2(add_primitive, held, g)
        if x.gradient is not held or held is not None and held.storage.version != version:
            continue
        if held is None or held.flags & REQUIRES_GRAD or create_graph or not held.flags & CONTIGUOUS or held.storage.readonly:
            set_gradient(x, total)
        else:
            copy_into(held, total)
            note_addition(held, version)
        return 0


cdef inline void note_addition(Tensor held, unsigned int version) noexcept:
    """Optimizers ask (`spend` in forward/optim.pyx) whether something was added to a gradient that they had used and nobody touched."""
    if held.flags & SPENT and held.view_history == version:
        held.flags |= OVERDUE
        held.view_history = held.storage.version


cdef int add_into(Tensor x, Tensor g, bint release) except -1:
    """x += g; `release`: without the GIL if it takes long."""
    cdef char* data[3]
    cdef int itemsize[3]
    cdef const Py_ssize_t* strides[3]
    cdef Py_ssize_t one = 1
    data[0] = data[1] = x.data
    data[2] = g.data
    itemsize[0] = itemsize[1] = itemsize[2] = ITEMSIZE[x.dtype_id]
    strides[0] = strides[1] = strides[2] = &one
    if x.count <= SMALL:
        add_primitive.loops[x.dtype_id](data, ONES, x.count)
    elif not release:
        run_elementwise(add_primitive.loops[x.dtype_id], 3, data, itemsize, 1, &x.count, strides, add_primitive.weight)
    else:
        launch(add_primitive.loops[x.dtype_id], 3, data, itemsize, 1, &x.count, strides, add_primitive.weight, x.count)
    return written(x.storage, "backward, which adds to .grad,")
