"""uint16, uint32 and uint64 for little code: what the signed type of their width does to the same bits, and little else.

Owns: the rows of the three dtypes in the table.  Sums, products, bits and equality do not ask for the sign, so the loops of int16, int32
and int64 serve.  For the rest uint16 and uint32 compute as int32 and int64, which iterate.pyx converts to and from block by block; only
uint64 has loops of its own for order, division, shifts to the right and powers.
Included by the ISA shells after elementwise.pxi and special.pxi.  Next: iterate.pyx.
"""
from cgrad.kernels.table cimport (FLOAT16, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, UINT16, UINT32, UINT64, KernelTable, loop_t)

cdef void lengthen16_loop(char** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        (<int32_t*>p[0])[i * s[0]] = (<const uint16_t*>p[1])[i * s[1]]


cdef void lengthen32_loop(char** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        (<int64_t*>p[0])[i * s[0]] = (<const uint32_t*>p[1])[i * s[1]]


cdef inline uint64_t to_uint64(real x) noexcept nogil:
    """NaN gives 0, the rest goes to the nearest end, as in saturate32."""
    if not x > 0:
        return 0
    return <uint64_t>x if x < <real>18446744073709551616.0 else ~<uint64_t>0


cdef void to_uint16_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        (<uint16_t*>p[0])[i * s[0]] = <uint16_t>min(to_uint64(p[1][i * s[1]]), <uint64_t>0xffff)


cdef void to_uint32_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        (<uint32_t*>p[0])[i * s[0]] = <uint32_t>min(to_uint64(p[1][i * s[1]]), <uint64_t>0xffffffff)


cdef void to_uint64_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        (<uint64_t*>p[0])[i * s[0]] = to_uint64(p[1][i * s[1]])


# Of uint64 one loop for all strides: a third of the code of the plain maps, and nobody waits for these.
cdef inline void branching_compare_map(bool_t (*f)(uint64_t, uint64_t) noexcept nogil, uint64_t** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        (<bool_t*>p[0])[i * s[0]] = f(p[1][i * s[1]], p[2][i * s[2]])


cdef void sign64_loop(uint64_t** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        p[0][i * s[0]] = p[1][i * s[1]] != 0


cdef void clip64_loop(uint64_t** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        p[0][i * s[0]] = clip_(p[1][i * s[1]], p[2][i * s[2]], p[3][i * s[3]])


cdef void float64_loop(char** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        (<double*>p[0])[i * s[0]] = <double>(<const uint64_t*>p[1])[i * s[1]]


cdef void float32_loop(char** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        (<float*>p[0])[i * s[0]] = <float>(<const uint64_t*>p[1])[i * s[1]]


cdef void floor_divide64_loop(uint64_t** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_binary_map(floor_divide_[uint64_t], p, s, n)
cdef void remainder64_loop(uint64_t** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_binary_map(remainder_[uint64_t], p, s, n)
cdef void maximum64_loop(uint64_t** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_binary_map(maximum_[uint64_t], p, s, n)
cdef void minimum64_loop(uint64_t** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_binary_map(minimum_[uint64_t], p, s, n)
cdef void right_shift64_loop(uint64_t** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_binary_map(bitwise_right_shift_[uint64_t], p, s, n)
cdef void less64_loop(uint64_t** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_compare_map(less_[uint64_t], p, s, n)
cdef void less_equal64_loop(uint64_t** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_compare_map(less_equal_[uint64_t], p, s, n)
cdef void greater64_loop(uint64_t** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_compare_map(greater_[uint64_t], p, s, n)
cdef void greater_equal64_loop(uint64_t** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_compare_map(greater_equal_[uint64_t], p, s, n)


cdef void enter_from_real(KernelTable* table, int dtype, real* tag) noexcept:
    table.casts[dtype][<int>UINT16] = <loop_t>to_uint16_loop[real]
    table.casts[dtype][<int>UINT32] = <loop_t>to_uint32_loop[real]
    table.casts[dtype][<int>UINT64] = <loop_t>to_uint64_loop[real]


cdef loop_t loop_of(KernelTable* table, bytes name, int dtype) except? NULL:
    cdef int row
    for row in range(table.n_elementwise):
        if table.elementwise[row].name == name:
            return table.elementwise[row].loops[dtype]


cdef int share(KernelTable* table, int dtype, int signed_dtype) except -1:
    """Enter the loops of the signed type of the same width."""
    cdef int other
    for name in (b"negative", b"square", b"positive", b"floor", b"ceil", b"trunc", b"round", b"isnan", b"isinf", b"isfinite", b"logical_not",
                 b"add", b"subtract", b"multiply", b"addcmul", b"equal", b"not_equal", b"logical_and", b"logical_or", b"logical_xor",
                 b"where", b"bitwise_not", b"bitwise_and", b"bitwise_or", b"bitwise_xor", b"bitwise_left_shift"):
        put(table, dtype, name, 0, 0, loop_of(table, name, signed_dtype))
    for name in (b"absolute", b"relu"):
        put(table, dtype, name, 0, 0, loop_of(table, b"positive", signed_dtype))
    put(table, dtype, b"signbit", 0, 0, loop_of(table, b"isnan", signed_dtype))
    # Bits are cut off, or those of smaller and of signed types extended, alike; only these bits are extended in another way.
    for other in range(<int>FLOAT16):
        table.casts[other][dtype] = table.casts[other][signed_dtype]
    for other in range(<int>FLOAT16):
        if other <= dtype or INT8 <= other <= signed_dtype:
            table.casts[dtype][other] = table.casts[signed_dtype][other]
    return 0


cdef int register_unsigned(KernelTable* table) except -1:
    share(table, UINT16, INT16)
    share(table, UINT32, INT32)
    share(table, UINT64, INT64)
    table.casts[<int>UINT16][<int>INT32] = table.casts[<int>UINT16][<int>UINT32] = lengthen16_loop
    table.casts[<int>UINT32][<int>INT64] = table.casts[<int>UINT32][<int>UINT64] = lengthen32_loop
    table.casts[<int>UINT64][<int>FLOAT32] = float32_loop
    table.casts[<int>UINT64][<int>FLOAT64] = float64_loop
    enter_from_real(table, FLOAT32, <float*>NULL)
    enter_from_real(table, FLOAT64, <double*>NULL)
    put(table, UINT64, b"sign", 1, 1, <loop_t>sign64_loop)
    put(table, UINT64, b"floor_divide", 2, 10, <loop_t>floor_divide64_loop)
    put(table, UINT64, b"remainder", 2, 10, <loop_t>remainder64_loop)
    put(table, UINT64, b"fmod", 2, 10, <loop_t>remainder64_loop)
    put(table, UINT64, b"maximum", 2, 1, <loop_t>maximum64_loop)
    put(table, UINT64, b"minimum", 2, 1, <loop_t>minimum64_loop)
    put(table, UINT64, b"less", 2, 1, <loop_t>less64_loop)
    put(table, UINT64, b"less_equal", 2, 1, <loop_t>less_equal64_loop)
    put(table, UINT64, b"greater", 2, 1, <loop_t>greater64_loop)
    put(table, UINT64, b"greater_equal", 2, 1, <loop_t>greater_equal64_loop)
    put(table, UINT64, b"clip", 3, 1, <loop_t>clip64_loop)
    put(table, UINT64, b"bitwise_right_shift", 2, 1, <loop_t>right_shift64_loop)
    put(table, UINT64, b"power", 2, 40, <loop_t>integer_power_loop[uint64_t])
    put(table, UINT64, b"gcd", 2, 100, <loop_t>gcd_loop[uint64_t])
    put(table, UINT64, b"lcm", 2, 100, <loop_t>lcm_loop[uint64_t])
    return 0
