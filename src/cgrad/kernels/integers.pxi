"""Bool and the integers: loops of their own, and their rows in the table.

Owns: what integers alone can do, casts from and to them, and which loops serve several dtypes.  A bool is a byte of 0 or 1.  Sums, products, bits
and equality do not ask for the sign, so the loops of the signed types serve the unsigned ones.  For the rest uint16 and uint32 compute as
int32 and int64, which iterate.pyx converts to and from block by block; uint64 has loops of its own for order, division, shifts to the
right and powers.  Included by the ISA shells after all other loops.  Next: iterate.pyx.
"""
from libc.string cimport strcmp

from cgrad.kernels.table cimport (BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, N_DTYPES, SUM, UINT8, UINT16, UINT32, UINT64,
                                  KernelTable, fold_row_t, loop_t)

# ---- loops ----

cdef void bitwise_not_loop(integer** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: unary_map(bitwise_not_[integer], p, s, n)
cdef void bitwise_and_loop(integer** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: binary_map(bitwise_and_[integer], p, s, n)
cdef void bitwise_or_loop(integer** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: binary_map(bitwise_or_[integer], p, s, n)
cdef void bitwise_xor_loop(integer** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: binary_map(bitwise_xor_[integer], p, s, n)
cdef void left_shift_loop(integer** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: binary_map(bitwise_left_shift_[integer], p, s, n)
cdef void right_shift_loop(integer** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: binary_map(bitwise_right_shift_[integer], p, s, n)
cdef void integer_power_loop(integer** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_binary_map(integer_power[integer], p, s, n)

cdef void to_bool_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: convert_map(to_bool[number], <bool_t*>p[0], p[1], s, n)
cdef void to_uint8_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: convert_map(to_uint8[number], <uint8_t*>p[0], p[1], s, n)
cdef void to_int8_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: convert_map(to_int8[number], <int8_t*>p[0], p[1], s, n)
cdef void to_int16_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: convert_map(to_int16[number], <int16_t*>p[0], p[1], s, n)
cdef void to_int32_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: convert_map(to_int32[number], <int32_t*>p[0], p[1], s, n)
cdef void to_int64_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: convert_map(to_int64[number], <int64_t*>p[0], p[1], s, n)


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


# ---- the table ----

cdef void enter_integer(KernelTable* table, int dtype, integer* tag) noexcept:
    enter_order(table, dtype, tag)
    put(table, dtype, b"bitwise_right_shift", 2, 1, <loop_t>right_shift_loop[integer])
    put(table, dtype, b"power", 2, 40, <loop_t>integer_power_loop[integer])
    table.casts[dtype][<int>BOOL] = <loop_t>to_bool_loop[integer]
    table.casts[dtype][<int>INT8] = <loop_t>to_int8_loop[integer]
    table.casts[dtype][<int>INT16] = <loop_t>to_int16_loop[integer]
    table.casts[dtype][<int>INT32] = <loop_t>to_int32_loop[integer]
    table.casts[dtype][<int>INT64] = <loop_t>to_int64_loop[integer]
    table.casts[dtype][<int>FLOAT32] = <loop_t>to_float32_loop[integer]
    table.casts[dtype][<int>FLOAT64] = <loop_t>to_float64_loop[integer]


cdef void enter_signed(KernelTable* table, int dtype, integer* tag) noexcept:
    enter_integer(table, dtype, tag)
    enter_number(table, dtype, tag)
    enter_bits(table, dtype, tag)
    for name in (b"floor", b"ceil", b"trunc", b"round"):
        share(table, dtype, name, dtype, b"positive")
    put(table, dtype, b"bitwise_not", 1, 1, <loop_t>bitwise_not_loop[integer])
    put(table, dtype, b"bitwise_and", 2, 1, <loop_t>bitwise_and_loop[integer])
    put(table, dtype, b"bitwise_or", 2, 1, <loop_t>bitwise_or_loop[integer])
    put(table, dtype, b"bitwise_xor", 2, 1, <loop_t>bitwise_xor_loop[integer])
    put(table, dtype, b"bitwise_left_shift", 2, 1, <loop_t>left_shift_loop[integer])


cdef void enter_casts_of_reals(KernelTable* table, int dtype, real* tag) noexcept:
    table.casts[dtype][<int>UINT8] = <loop_t>to_uint8_loop[real]
    table.casts[dtype][<int>UINT16] = <loop_t>to_uint16_loop[real]
    table.casts[dtype][<int>UINT32] = <loop_t>to_uint32_loop[real]
    table.casts[dtype][<int>UINT64] = <loop_t>to_uint64_loop[real]
    table.casts[dtype][<int>INT8] = <loop_t>to_int8_loop[real]
    table.casts[dtype][<int>INT16] = <loop_t>to_int16_loop[real]
    table.casts[dtype][<int>INT32] = <loop_t>to_int32_loop[real]


cdef void share(KernelTable* table, int dtype, const char* name, int other, const char* its) noexcept:
    """Kernel `name` of a dtype is kernel `its` of another one."""
    cdef int row
    for row in range(table.n_elementwise):
        if strcmp(table.elementwise[row].name, its) == 0:
            put(table, dtype, name, 0, 0, table.elementwise[row].loops[other])


cdef void enter_unsigned(KernelTable* table, int dtype, int signed_dtype) noexcept:
    """Enter the loops of the signed type of the same width."""
    cdef int other
    for name in (b"negative", b"square", b"positive", b"floor", b"ceil", b"trunc", b"round", b"isnan", b"isinf", b"isfinite", b"logical_not",
                 b"add", b"subtract", b"multiply", b"addcmul", b"equal", b"not_equal", b"logical_and", b"logical_or", b"logical_xor",
                 b"where", b"bitwise_not", b"bitwise_and", b"bitwise_or", b"bitwise_xor", b"bitwise_left_shift"):
        share(table, dtype, name, signed_dtype, name)
    share(table, dtype, b"absolute", signed_dtype, b"positive")
    share(table, dtype, b"relu", signed_dtype, b"positive")
    share(table, dtype, b"signbit", signed_dtype, b"isnan")
    # Bits are cut off, or those of smaller and of signed types extended, alike; only these bits are extended in another way.
    for other in range(<int>FLOAT16):
        table.casts[other][dtype] = table.casts[other][signed_dtype]
    for other in range(<int>FLOAT16):
        if other <= dtype or INT8 <= other <= signed_dtype:
            table.casts[dtype][other] = table.casts[signed_dtype][other]


cdef void enter_bool(KernelTable* table) noexcept:
    """The loops of int8; sums are `or`, products are `and`."""
    cdef int dtype
    for name in (b"positive", b"isnan", b"isinf", b"isfinite", b"signbit", b"logical_not", b"equal", b"not_equal", b"less", b"less_equal",
                 b"greater", b"greater_equal", b"bitwise_and", b"bitwise_or", b"bitwise_xor", b"where", b"clip"):
        share(table, BOOL, name, INT8, name)
    for name, its in ((b"absolute", b"positive"), (b"sign", b"positive"), (b"relu", b"positive"), (b"bitwise_not", b"logical_not"),
                      (b"add", b"bitwise_or"), (b"multiply", b"bitwise_and"), (b"maximum", b"bitwise_or"), (b"minimum", b"bitwise_and"),
                      (b"logical_and", b"bitwise_and"), (b"logical_or", b"bitwise_or"), (b"logical_xor", b"bitwise_xor")):
        share(table, BOOL, name, INT8, its)
    for dtype in range(N_DTYPES):
        table.casts[<int>BOOL][dtype] = table.casts[<int>INT8][dtype]
    table.casts[<int>BOOL][<int>BOOL] = table.casts[<int>INT8][<int>INT8]


cdef void enter_reductions(KernelTable* table, int dtype, integer like) noexcept:
    set_fold(&table.reduce, Reduction.SUM, dtype, <fold_row_t> reduce_sum_row_int[integer], <fold_columns_t> reduce_sum_columns_int[integer],
             <fold_join_t> reduce_sum_join[wide_t], <fold_start_t> reduce_sum_start[wide_t], <fold_finish_t> reduce_finish_same[int64_t],
             sizeof(wide_t))
    set_fold(&table.reduce, Reduction.PROD, dtype, <fold_row_t> reduce_prod_row_int[integer], <fold_columns_t> reduce_prod_columns_int[integer],
             <fold_join_t> reduce_prod_join[wide_t], <fold_start_t> reduce_prod_start[wide_t], <fold_finish_t> reduce_finish_same[int64_t],
             sizeof(wide_t))
    fill_number(&table.reduce, dtype, like)


cdef void register_int64(KernelTable* table) noexcept:
    """The integers that counts and places are, and the ways from floats to them, from them to masks and from masks to numbers."""
    enter_signed(table, INT64, <int64_t*>NULL)
    enter_reductions(table, INT64, <int64_t>0)
    table.casts[<int>FLOAT32][<int>INT64] = <loop_t>to_int64_loop[float]
    table.casts[<int>FLOAT64][<int>INT64] = <loop_t>to_int64_loop[double]
    table.casts[<int>FLOAT32][<int>BOOL] = <loop_t>to_bool_loop[float]
    table.casts[<int>FLOAT64][<int>BOOL] = <loop_t>to_bool_loop[double]
    table.casts[<int>BOOL][<int>FLOAT32] = <loop_t>to_float32_loop[int8_t]
    table.casts[<int>BOOL][<int>FLOAT64] = <loop_t>to_float64_loop[int8_t]
    table.reduce.folds[<int>SUM][<int>BOOL].row = <fold_row_t>reduce_sum_row_int[uint8_t]


cdef void register_integers(KernelTable* table) noexcept:
    enter_signed(table, INT8, <int8_t*>NULL)
    enter_signed(table, INT16, <int16_t*>NULL)
    enter_signed(table, INT32, <int32_t*>NULL)
    enter_casts_of_reals(table, FLOAT32, <float*>NULL)
    enter_casts_of_reals(table, FLOAT64, <double*>NULL)
    enter_integer(table, UINT8, <uint8_t*>NULL)
    enter_unsigned(table, UINT8, INT8)
    enter_unsigned(table, UINT16, INT16)
    enter_unsigned(table, UINT32, INT32)
    enter_unsigned(table, UINT64, INT64)
    enter_bool(table)
    enter_bits(table, FLOAT16, <int16_t*>NULL)
    enter_bits(table, BFLOAT16, <int16_t*>NULL)
    table.casts[<int>UINT16][<int>INT32] = table.casts[<int>UINT16][<int>UINT32] = lengthen16_loop
    table.casts[<int>UINT32][<int>INT64] = table.casts[<int>UINT32][<int>UINT64] = lengthen32_loop
    table.casts[<int>UINT64][<int>FLOAT32] = float32_loop
    table.casts[<int>UINT64][<int>FLOAT64] = float64_loop
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
    enter_reductions(table, BOOL, <uint8_t>0)
    enter_reductions(table, UINT8, <uint8_t>0)
    enter_reductions(table, INT8, <int8_t>0)
    enter_reductions(table, INT16, <int16_t>0)
    enter_reductions(table, INT32, <int32_t>0)
