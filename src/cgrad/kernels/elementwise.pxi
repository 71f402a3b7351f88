"""Loops over the formulas of scalar.pxi, one line each, and the table they are entered in.

Owns: the one-axis loops (`loop_t`) of all elementwise kernels and casts.  Included by the ISA shells after scalar.pxi.
Rules: no GIL, no allocation, any strides; a result may coincide with an input.
Read next: iterate.pyx, which walks the other axes and splits the work over threads.
"""
from cgrad.kernels.table cimport (BOOL, FLOAT32, FLOAT64, INT16, INT32, INT64, INT8, N_DTYPES, UINT8, ElementwiseKernel,
                                  KernelTable, loop_t)


# ---- maps: a formula over an axis; the contiguous and the scalar-operand case come first because they vectorise best ----

cdef inline void unary_map(number (*f)(number) noexcept nogil, number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, t0 = s[0], t1 = s[1]
    cdef number* out = p[0]
    cdef const number* x = p[1]
    if t0 == 1 and t1 == 1:
        for i in range(n):
            out[i] = f(x[i])
    else:
        for i in range(n):
            out[i * t0] = f(x[i * t1])


cdef inline void binary_map(number (*f)(number, number) noexcept nogil, number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, t0 = s[0], t1 = s[1], t2 = s[2]
    cdef number* out = p[0]
    cdef const number* x = p[1]
    cdef const number* y = p[2]
    cdef number a
    if t0 == 1 and t1 == 1 and t2 == 1:
        for i in range(n):
            out[i] = f(x[i], y[i])
    elif t0 == 1 and t1 == 1 and t2 == 0:
        a = y[0]
        for i in range(n):
            out[i] = f(x[i], a)
    elif t0 == 1 and t1 == 0 and t2 == 1:
        a = x[0]
        for i in range(n):
            out[i] = f(a, y[i])
    else:
        for i in range(n):
            out[i * t0] = f(x[i * t1], y[i * t2])


ctypedef fused target:
    bool_t
    int8_t
    int16_t
    int32_t
    int64_t
    float
    double


cdef inline void convert_map(target (*f)(number) noexcept nogil, target* out, number* x, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, t0 = s[0], t1 = s[1]
    if t0 == 1 and t1 == 1:
        for i in range(n):
            out[i] = f(x[i])
    else:
        for i in range(n):
            out[i * t0] = f(x[i * t1])


cdef void add_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: binary_map(add_[number], p, s, n)
cdef void multiply_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: binary_map(multiply_[number], p, s, n)
cdef void exp_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: unary_map(exp_[real], p, s, n)

cdef inline bool_t to_bool(number x) noexcept nogil: return x != 0
cdef inline uint8_t to_uint8(number x) noexcept nogil: return <uint8_t>x
cdef inline int8_t to_int8(number x) noexcept nogil: return <int8_t>x
cdef inline int16_t to_int16(number x) noexcept nogil: return <int16_t>x
cdef inline int32_t to_int32(number x) noexcept nogil: return <int32_t>x
cdef inline int64_t to_int64(number x) noexcept nogil: return <int64_t>x
cdef inline float to_float32(number x) noexcept nogil: return <float>x
cdef inline double to_float64(number x) noexcept nogil: return <double>x

cdef void cast_bool_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: convert_map(to_bool[number], <bool_t*>p[0], p[1], s, n)
cdef void cast_uint8_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: convert_map(to_uint8[number], <uint8_t*>p[0], p[1], s, n)
cdef void cast_int8_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: convert_map(to_int8[number], <int8_t*>p[0], p[1], s, n)
cdef void cast_int16_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: convert_map(to_int16[number], <int16_t*>p[0], p[1], s, n)
cdef void cast_int32_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: convert_map(to_int32[number], <int32_t*>p[0], p[1], s, n)
cdef void cast_int64_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: convert_map(to_int64[number], <int64_t*>p[0], p[1], s, n)
cdef void cast_float32_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: convert_map(to_float32[number], <float*>p[0], p[1], s, n)
cdef void cast_float64_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: convert_map(to_float64[number], <double*>p[0], p[1], s, n)


# ---- the table ----

cdef ElementwiseKernel* entry(KernelTable* table, const char* name, int n_inputs, int weight) noexcept:
    """The next free row, with no loops yet."""
    cdef ElementwiseKernel* row = &table.elementwise[table.n_elementwise]
    cdef int i
    table.n_elementwise += 1
    row.name = name
    row.n_inputs = n_inputs
    row.weight = weight
    for i in range(N_DTYPES):
        row.loops[i] = NULL
    return row


cdef ElementwiseKernel* put_real(KernelTable* table, const char* name, int n_inputs, int weight, loop_t f32, loop_t f64) noexcept:
    cdef ElementwiseKernel* row = entry(table, name, n_inputs, weight)
    row.loops[<int>FLOAT32] = f32
    row.loops[<int>FLOAT64] = f64
    return row


cdef ElementwiseKernel* put_number(KernelTable* table, const char* name, int n_inputs, int weight, loop_t b, loop_t u8, loop_t i8,
                                   loop_t i16, loop_t i32, loop_t i64, loop_t f32, loop_t f64) noexcept:
    cdef ElementwiseKernel* row = put_real(table, name, n_inputs, weight, f32, f64)
    row.loops[<int>BOOL] = b
    row.loops[<int>UINT8] = u8
    row.loops[<int>INT8] = i8
    row.loops[<int>INT16] = i16
    row.loops[<int>INT32] = i32
    row.loops[<int>INT64] = i64
    return row


cdef void put_cast(KernelTable* table, int target_id, loop_t u8, loop_t i8, loop_t i16, loop_t i32, loop_t i64, loop_t f32, loop_t f64) noexcept:
    table.casts[<int>BOOL][target_id] = u8      # a bool is a byte of 0 or 1
    table.casts[<int>UINT8][target_id] = u8
    table.casts[<int>INT8][target_id] = i8
    table.casts[<int>INT16][target_id] = i16
    table.casts[<int>INT32][target_id] = i32
    table.casts[<int>INT64][target_id] = i64
    table.casts[<int>FLOAT32][target_id] = f32
    table.casts[<int>FLOAT64][target_id] = f64


cdef void register_elementwise(KernelTable* table) noexcept:
    put_number(table, b"add", 2, 1, NULL, <loop_t>add_loop[uint8_t], <loop_t>add_loop[int8_t], <loop_t>add_loop[int16_t], <loop_t>add_loop[int32_t], <loop_t>add_loop[int64_t], <loop_t>add_loop[float], <loop_t>add_loop[double])
    put_number(table, b"multiply", 2, 1, NULL, <loop_t>multiply_loop[uint8_t], <loop_t>multiply_loop[int8_t], <loop_t>multiply_loop[int16_t], <loop_t>multiply_loop[int32_t], <loop_t>multiply_loop[int64_t], <loop_t>multiply_loop[float], <loop_t>multiply_loop[double])
    put_real(table, b"exp", 1, 8, <loop_t>exp_loop[float], <loop_t>exp_loop[double])
    put_cast(table, BOOL, <loop_t>cast_bool_loop[uint8_t], <loop_t>cast_bool_loop[int8_t], <loop_t>cast_bool_loop[int16_t], <loop_t>cast_bool_loop[int32_t], <loop_t>cast_bool_loop[int64_t], <loop_t>cast_bool_loop[float], <loop_t>cast_bool_loop[double])
    put_cast(table, UINT8, <loop_t>cast_uint8_loop[uint8_t], <loop_t>cast_uint8_loop[int8_t], <loop_t>cast_uint8_loop[int16_t], <loop_t>cast_uint8_loop[int32_t], <loop_t>cast_uint8_loop[int64_t], <loop_t>cast_uint8_loop[float], <loop_t>cast_uint8_loop[double])
    put_cast(table, INT8, <loop_t>cast_int8_loop[uint8_t], <loop_t>cast_int8_loop[int8_t], <loop_t>cast_int8_loop[int16_t], <loop_t>cast_int8_loop[int32_t], <loop_t>cast_int8_loop[int64_t], <loop_t>cast_int8_loop[float], <loop_t>cast_int8_loop[double])
    put_cast(table, INT16, <loop_t>cast_int16_loop[uint8_t], <loop_t>cast_int16_loop[int8_t], <loop_t>cast_int16_loop[int16_t], <loop_t>cast_int16_loop[int32_t], <loop_t>cast_int16_loop[int64_t], <loop_t>cast_int16_loop[float], <loop_t>cast_int16_loop[double])
    put_cast(table, INT32, <loop_t>cast_int32_loop[uint8_t], <loop_t>cast_int32_loop[int8_t], <loop_t>cast_int32_loop[int16_t], <loop_t>cast_int32_loop[int32_t], <loop_t>cast_int32_loop[int64_t], <loop_t>cast_int32_loop[float], <loop_t>cast_int32_loop[double])
    put_cast(table, INT64, <loop_t>cast_int64_loop[uint8_t], <loop_t>cast_int64_loop[int8_t], <loop_t>cast_int64_loop[int16_t], <loop_t>cast_int64_loop[int32_t], <loop_t>cast_int64_loop[int64_t], <loop_t>cast_int64_loop[float], <loop_t>cast_int64_loop[double])
    put_cast(table, FLOAT32, <loop_t>cast_float32_loop[uint8_t], <loop_t>cast_float32_loop[int8_t], <loop_t>cast_float32_loop[int16_t], <loop_t>cast_float32_loop[int32_t], <loop_t>cast_float32_loop[int64_t], <loop_t>cast_float32_loop[float], <loop_t>cast_float32_loop[double])
    put_cast(table, FLOAT64, <loop_t>cast_float64_loop[uint8_t], <loop_t>cast_float64_loop[int8_t], <loop_t>cast_float64_loop[int16_t], <loop_t>cast_float64_loop[int32_t], <loop_t>cast_float64_loop[int64_t], <loop_t>cast_float64_loop[float], <loop_t>cast_float64_loop[double])
