"""Hooks: what engine.pyx calls."""
from cgrad.core.storage cimport Storage
from cgrad.core.tensor cimport Tensor


cdef class Packed:
    # What a user's function made of a saved tensor.
    cdef object held
    cdef object unpack             # the function that makes it a tensor again; None: it is one
    cdef object place              # the node or leaf that the tensor came from, or None
    cdef Tensor like               # without memory: the shape and dtype that it had
    cdef Storage storage           # its memory, if what was made still holds that: then a later write is an error; or None
    cdef unsigned int version
    cdef int output

cdef Tensor unpacked(Packed p, str name, bint connected)
cdef int keep_packed(Packed p, str name) except -1         # in memory of its own from now on

cdef object hooked(object function, Tensor g)
cdef bint any_accumulated_hook() noexcept                 # whether any leaf alive has one
cdef inline bint has_accumulated_hook(Tensor x) except -1:
    return x.extra is not None and "accumulated" in x.extra
cdef int call_accumulated_hooks(Tensor x, list after) except -1
