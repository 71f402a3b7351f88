"""What an ISA shell is made of: the formulas, the loops over them, and the functions that enter the loops in a KernelTable.

Included by _baseline.pyx, _avx2.pyx and _avx512.pyx, which differ in the instructions they are compiled for.
Read next: scalar.pxi.
"""
include "scalar.pxi"
include "transcendental.pxi"
include "inverse.pxi"
include "activations.pxi"
include "maps.pxi"
include "elementwise.pxi"
include "special.pxi"
include "half.pxi"
include "reduce.pxi"
include "search.pxi"
include "matmul.pxi"
include "rows.pxi"
include "norm.pxi"
include "loss.pxi"
include "gates.pxi"
include "integers.pxi"


cdef void register_wide(KernelTable* table) noexcept:
    """What the widest vectors make faster: floats, int64 and masks."""
    register_elementwise(table)
    register_half(table)
    register_reduce(table)
    register_search(table)
    register_matmul(table)
    register_rows(table)
    register_norm(table)
    register_loss(table)
    register_gates(table)
    register_int64(table)


cdef void register_others(KernelTable* table) noexcept:
    """What is seldom used, waits for memory or does not vectorise."""
    register_special(table)
    register_integers(table)
    register_integer_search(table)
