"""All kernels, built for the instructions every CPU of this architecture has.

Owns: one KernelTable, handed out as the capsule `table`.
Rules: only dispatch.pyx imports this module, once it has asked the CPU; nothing here may run before.
Read next: shell.pxi.
"""
from cpython.pycapsule cimport PyCapsule_New

include "shell.pxi"

cdef KernelTable kernels
kernels.isa = b"baseline"
register_wide(&kernels)
register_others(&kernels)

table = PyCapsule_New(&kernels, b"cgrad.kernels.table", NULL)
