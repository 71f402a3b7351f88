"""All kernels, built for the instructions every CPU of this architecture has.

Owns: one KernelTable, handed out as the capsule `table`.  Only dispatch.pyx imports this module, and only if it chose it.
Rules: what the .pxi files say.  Nothing here may run before dispatch.pyx has asked the CPU.
Read next: scalar.pxi.
"""
from cpython.pycapsule cimport PyCapsule_New

include "scalar.pxi"
include "transcendental.pxi"
include "inverse.pxi"
include "activations.pxi"
include "maps.pxi"
include "elementwise.pxi"
include "special.pxi"
include "half.pxi"
include "unsigned.pxi"
include "reduce.pxi"
include "matmul.pxi"
include "rows.pxi"
include "norm.pxi"
include "loss.pxi"
include "gates.pxi"

cdef KernelTable kernels
kernels.isa = b"baseline"
register_elementwise(&kernels)
register_special(&kernels)
register_half(&kernels)
register_unsigned(&kernels)
register_reduce(&kernels)
register_matmul(&kernels)
register_rows(&kernels)
register_norm(&kernels)
register_loss(&kernels)
register_gates(&kernels)

table = PyCapsule_New(&kernels, b"cgrad.kernels.table", NULL)
