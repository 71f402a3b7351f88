"""Which build of the kernels this process uses, and look-up by name (import time only)."""
from cgrad.kernels.table cimport N_DTYPES, ElementwiseKernel, KernelTable, loop_t

cdef int ITEMSIZE[N_DTYPES]

cdef const KernelTable* kernel_table() noexcept nogil                    # the chosen shell's table; reductions and matmul have their fields in it
cdef const KernelTable* table_of(str isa) except NULL                    # another shell's (tests): RuntimeError if this CPU cannot run it
cdef const ElementwiseKernel* elementwise_kernel(str name) except NULL   # KeyError names the unknown kernel
cdef const ElementwiseKernel* kernel_in(const KernelTable* table, str name) except NULL
cdef loop_t cast_loop(int source, int target) noexcept nogil             # unary loop; NULL where run_cast goes by a third dtype
