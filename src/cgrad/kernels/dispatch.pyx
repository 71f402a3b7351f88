"""The choice of an ISA shell, made once at import, and look-up of kernels by name.

Owns: the pointer to the chosen KernelTable.  Callers: core (at import, when primitives are made) and other kernels.
Rules: only the chosen shell is imported (and avx2 by avx512); CGRAD_ISA=baseline|avx2|avx512 overrides the choice.  `cast_loop` and
`kernel_table` need no GIL, the others do.  Read next: iterate.pyx.
"""
from cpython.pycapsule cimport PyCapsule_GetPointer

import importlib
import os

cdef extern from *:
    """
    #if (defined(__x86_64__) || defined(_M_X64)) && defined(__GNUC__)
    /* __builtin_cpu_supports also asks whether the system saves the wide registers. */
    static int cgrad_cpu_level(void) {
        __builtin_cpu_init();
        if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))) return 0;
        if (!(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")
              && __builtin_cpu_supports("avx512vl"))) return 1;
        return 2;
    }
    #else
    static int cgrad_cpu_level(void) { return 0; }
    #endif
    """
    int cgrad_cpu_level() noexcept nogil

ITEMSIZE[:] = [1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8]
SHELLS = ("baseline", "avx2", "avx512")         # by the level of CPU they need


cdef const KernelTable* table_of(str isa) except NULL:
    if isa not in SHELLS:
        raise RuntimeError(f"CGRAD_ISA={isa!r} is unknown; choose one of {', '.join(SHELLS)}")
    if SHELLS.index(isa) > cgrad_cpu_level():
        raise RuntimeError(f"this CPU cannot run the {isa} kernels; the best it can run is {SHELLS[cgrad_cpu_level()]}")
    try:
        module = importlib.import_module("cgrad.kernels._" + isa)
    except ImportError as error:
        raise RuntimeError(f"the {isa} kernels are not part of this build of cgrad") from error
    return <const KernelTable*>PyCapsule_GetPointer(module.table, b"cgrad.kernels.table")


cdef const KernelTable* choose() except NULL:
    """The shell named by CGRAD_ISA, else the best one that this CPU runs and this build has."""
    cdef str wanted = os.environ.get("CGRAD_ISA", "")
    if wanted:
        return table_of(wanted)
    for isa in reversed(SHELLS[1:cgrad_cpu_level() + 1]):
        try:
            return table_of(isa)
        except RuntimeError:         # not built
            continue
    return table_of("baseline")


cdef const KernelTable* chosen = choose()


cdef const KernelTable* kernel_table() noexcept nogil:
    return chosen


cdef const ElementwiseKernel* kernel_in(const KernelTable* table, str name) except NULL:
    cdef bytes key = name.encode()
    cdef int i
    for i in range(table.n_elementwise):
        if key == table.elementwise[i].name:
            return &table.elementwise[i]
    raise KeyError(f"there is no elementwise kernel named {name!r}")


cdef const ElementwiseKernel* elementwise_kernel(str name) except NULL:
    return kernel_in(chosen, name)


cdef loop_t cast_loop(int source, int target) noexcept nogil:
    return chosen.casts[source][target]


def isa():
    """Name of the chosen shell: "baseline", "avx2" or "avx512"."""
    return chosen.isa.decode()


def isa_available():
    """Names of the shells that this build has and this CPU runs, the best last."""
    from importlib.util import find_spec         # here, because it is slow to import
    return [name for name in SHELLS[:cgrad_cpu_level() + 1] if find_spec("cgrad.kernels._" + name) is not None]


def kernel_names():
    """Names of all elementwise kernels."""
    cdef int i
    return [chosen.elementwise[i].name.decode() for i in range(chosen.n_elementwise)]
