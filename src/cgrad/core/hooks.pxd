"""Hooks: what engine.pyx calls."""
from cgrad.core.tensor cimport Tensor

cdef object hooked(object function, Tensor g)
