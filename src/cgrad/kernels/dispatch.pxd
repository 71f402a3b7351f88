"""Which build of the kernels this process uses, and look-up by name (import time only)."""
from cgrad.kernels.table cimport ElementwiseKernel, loop_t

cdef const ElementwiseKernel* elementwise_kernel(str name) except NULL   # KeyError names the unknown kernel
cdef loop_t cast_loop(int source, int target) noexcept nogil             # unary loop, never NULL; x[i] converted as C does, float->bool is x != 0
