"""Hooks: what engine.pyx calls."""
from cgrad.core.tensor cimport Tensor

cdef object hooked(object function, Tensor g)
cdef bint any_accumulated_hook() noexcept                 # whether any leaf alive has one
cdef inline bint has_accumulated_hook(Tensor x) except -1:
    return x.extra is not None and "accumulated" in x.extra
cdef int call_accumulated_hooks(Tensor x) except -1
