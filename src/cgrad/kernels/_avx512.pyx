"""The kernels that wide vectors make faster, built for x86-64 CPUs with AVX-512 F, DQ, BW and VL.

Owns: one KernelTable, handed out as the capsule `table`.  Its other entries are those of AVX2, which every such CPU has.
Rules: only dispatch.pyx imports this module, once it has asked the CPU; nothing here may run before.
Read next: shell.pxi.
"""
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New

from cgrad.kernels import _avx2

include "shell.pxi"

cdef KernelTable kernels = (<const KernelTable*>PyCapsule_GetPointer(_avx2.table, b"cgrad.kernels.table"))[0]
kernels.isa = b"avx512"
register_wide(&kernels)

table = PyCapsule_New(&kernels, b"cgrad.kernels.table", NULL)
