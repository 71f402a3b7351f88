"""The contract of the kernels layer: dtype ids, loop signatures, and the table of loops an ISA shell fills.

A loop walks ONE axis of several operands.  data[0] is the result, data[1:] the inputs; strides are in ELEMENTS of each
operand's own dtype (0 = broadcast, negative allowed).  A result may coincide exactly with an input (in-place) but never
overlap it otherwise.  Loops never allocate, never fail, never take the GIL.
"""

cdef enum:
    N_DTYPES = 8
    MAX_DIMS = 64
    MAX_OPERANDS = 8
    MAX_KERNELS = 192

# Ids in the order in which promotion climbs inside a kind.
cdef enum DTypeId:
    BOOL = 0
    UINT8 = 1
    INT8 = 2
    INT16 = 3
    INT32 = 4
    INT64 = 5
    FLOAT32 = 6
    FLOAT64 = 7

ctypedef void (*loop_t)(char** data, const Py_ssize_t* strides, Py_ssize_t n) noexcept nogil

# Reduce n elements x[0], x[stride], ... to ONE accumulator (horizontal), written to out in the result dtype.
ctypedef void (*reduce_row_t)(const char* x, Py_ssize_t stride, Py_ssize_t n, char* out) noexcept nogil


cdef struct ElementwiseKernel:
    const char* name
    int n_inputs
    int weight                  # cost of an element relative to an addition, for the thread split
    loop_t loops[N_DTYPES]      # by dtype of the computed inputs; NULL where there is none


# What one ISA shell hands over.  Each .pxi fills its own part: register_elementwise(&table), register_reduce(&table), ...
cdef struct KernelTable:
    const char* isa             # "baseline", "avx2", "avx512"
    int n_elementwise
    ElementwiseKernel elementwise[MAX_KERNELS]
    loop_t casts[N_DTYPES][N_DTYPES]            # [source][target]
