"""Loops over the formulas of scalar.pxi, transcendental.pxi, inverse.pxi and activations.pxi, one line each, and the table they are entered in.

Owns: the one-axis loops (`loop_t`) of the elementwise kernels of float32 and float64, which integers share.  Included by the ISA shells after the
formulas and maps.  Rules: no GIL, no allocation, any strides; a result may coincide with an input.  To add a kernel: a formula, a loop line
through the map that fits (a staged one if the formula is longer than a few instructions), a line in one of the `enter_` functions below.
Read next: integers.pxi, the other dtypes; special.pxi, more formulas; iterate.pyx, which walks the other axes and splits the work over threads.
"""
from libc.string cimport strcmp

from cgrad.kernels.table cimport FLOAT32, FLOAT64, MAX_KERNELS, KernelTable, loop_t

# ---- loops ----

cdef void negative_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: unary_map(negative_[number], p, s, n)
cdef void absolute_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: unary_map(absolute_[number], p, s, n)
cdef void sign_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: unary_map(sign_[number], p, s, n)
cdef void square_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: unary_map(square_[number], p, s, n)
cdef void positive_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: unary_map(copy_[number], p, s, n)
cdef void relu_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: unary_map(relu_[number], p, s, n)
cdef void isnan_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: convert_map(isnan_[number], <bool_t*>p[0], p[1], s, n)
cdef void isinf_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: convert_map(isinf_[number], <bool_t*>p[0], p[1], s, n)
cdef void isfinite_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: convert_map(isfinite_[number], <bool_t*>p[0], p[1], s, n)
cdef void signbit_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: convert_map(signbit_[number], <bool_t*>p[0], p[1], s, n)
cdef void logical_not_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: convert_map(logical_not_[number], <bool_t*>p[0], p[1], s, n)

cdef void reciprocal_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: unary_map(reciprocal_[real], p, s, n)
cdef void sqrt_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: unary_map(sqrt_[real], p, s, n)
cdef void rsqrt_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: unary_map(rsqrt_[real], p, s, n)
cdef void cbrt_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(cbrt_[real], p, s, n)
cdef void exp_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(exp_[real], p, s, n)
cdef void exp2_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(exp2_[real], p, s, n)
cdef void expm1_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(expm1_[real], p, s, n)
cdef void log_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(log_[real], p, s, n)
cdef void log2_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(log2_[real], p, s, n)
cdef void log10_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(log10_[real], p, s, n)
cdef void log1p_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(log1p_[real], p, s, n)
cdef void sin_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: guarded_map(sin_[real], sin_library[real], trig_far[real], p, s, n)
cdef void cos_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: guarded_map(cos_[real], cos_library[real], trig_far[real], p, s, n)
cdef void tan_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: guarded_map(tan_[real], tan_library[real], trig_far[real], p, s, n)
cdef void asin_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(asin_[real], p, s, n)
cdef void acos_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(acos_[real], p, s, n)
cdef void atan_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(atan_[real], p, s, n)
cdef void sinh_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(sinh_[real], p, s, n)
cdef void cosh_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(cosh_[real], p, s, n)
cdef void tanh_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(tanh_[real], p, s, n)
cdef void asinh_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(asinh_[real], p, s, n)
cdef void acosh_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(acosh_[real], p, s, n)
cdef void atanh_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(atanh_[real], p, s, n)
cdef void sigmoid_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(sigmoid_[real], p, s, n)
cdef void logsigmoid_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(logsigmoid_[real], p, s, n)
cdef void softplus_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(softplus_[real], p, s, n)
cdef void silu_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(silu_[real], p, s, n)
cdef void gelu_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(gelu_[real], p, s, n)
cdef void gelu_tanh_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(gelu_tanh_[real], p, s, n)
cdef void erf_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(erf_[real], p, s, n)
cdef void erfc_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(erfc_[real], p, s, n)
cdef void entr_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(entr_[real], p, s, n)
cdef void logit_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_unary_map(logit_[real], p, s, n)
cdef void floor_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: unary_map(floor_[real], p, s, n)
cdef void ceil_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: unary_map(ceil_[real], p, s, n)
cdef void trunc_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: unary_map(trunc_[real], p, s, n)
cdef void round_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: unary_map(round_[real], p, s, n)

cdef void add_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: binary_map(add_[number], p, s, n)
cdef void subtract_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: binary_map(subtract_[number], p, s, n)
cdef void multiply_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: binary_map(multiply_[number], p, s, n)
cdef void floor_divide_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    if number is float or number is double:
        guarded_binary_map(floor_divide_near[number], floor_divide_[number], fmod_far[number], p, s, n)
    elif number is int64_t:
        branching_binary_map(floor_divide_[number], p, s, n)
    else:
        staged_binary_map(floor_divide_[number], p, s, n)


cdef void remainder_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    if number is float or number is double:
        guarded_binary_map(remainder_near[number], remainder_[number], fmod_far[number], p, s, n)
    elif number is int64_t:
        branching_binary_map(remainder_[number], p, s, n)
    else:
        staged_binary_map(remainder_[number], p, s, n)


cdef void fmod_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    if number is float or number is double:
        guarded_binary_map(fmod_near[number], fmod_[number], fmod_far[number], p, s, n)
    elif number is int64_t:
        branching_binary_map(fmod_[number], p, s, n)
    else:
        staged_binary_map(fmod_[number], p, s, n)


cdef void maximum_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: binary_map(maximum_[number], p, s, n)
cdef void minimum_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: binary_map(minimum_[number], p, s, n)
cdef void equal_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: compare_map(equal_[number], p, s, n)
cdef void not_equal_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: compare_map(not_equal_[number], p, s, n)
cdef void less_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: compare_map(less_[number], p, s, n)
cdef void less_equal_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: compare_map(less_equal_[number], p, s, n)
cdef void greater_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: swapped(less_loop[number], p, s, n)
cdef void greater_equal_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: swapped(less_equal_loop[number], p, s, n)
cdef void logical_and_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_compare_map(logical_and_[number], p, s, n)
cdef void logical_or_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_compare_map(logical_or_[number], p, s, n)
cdef void logical_xor_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_compare_map(logical_xor_[number], p, s, n)

cdef void divide_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: binary_map(divide_[real], p, s, n)
cdef void power_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    # One exponent for all, as in x**2: the usual ones cost a multiplication or two instead of a power.
    cdef real y = p[2][0] if s[2] == 0 and n > 0 else 0
    if y == 2:
        square_loop(p, s, n)
    elif y == 3:
        unary_map(cube_[real], p, s, n)
    elif y == 1:
        positive_loop(p, s, n)
    elif y == -1:
        reciprocal_loop(p, s, n)
    else:
        staged_binary_map(power_[real], p, s, n)


cdef void atan2_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_binary_map(atan2_[real], p, s, n)
cdef void hypot_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_binary_map(hypot_[real], p, s, n)
cdef void xlogy_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_binary_map(xlogy_[real], p, s, n)
cdef void xlog1py_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_binary_map(xlog1py_[real], p, s, n)
cdef void copysign_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: binary_map(copysign_[real], p, s, n)
cdef void logaddexp_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    guarded_binary_map(logaddexp_[real], logaddexp_careful[real], logaddexp_cancels[real], p, s, n)


cdef void tanh_backward_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: binary_map(tanh_backward_[real], p, s, n)
cdef void sigmoid_backward_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: binary_map(sigmoid_backward_[real], p, s, n)
cdef void relu_backward_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: binary_map(relu_backward_[real], p, s, n)
cdef void sqrt_backward_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: binary_map(sqrt_backward_[real], p, s, n)
cdef void square_backward_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: binary_map(square_backward_[real], p, s, n)
cdef void reciprocal_backward_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: binary_map(reciprocal_backward_[real], p, s, n)
cdef void absolute_backward_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: binary_map(absolute_backward_[real], p, s, n)
cdef void sin_backward_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    guarded_binary_map(sin_backward_[real], sin_backward_library[real], trig_backward_far[real], p, s, n)


cdef void cos_backward_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    guarded_binary_map(cos_backward_[real], cos_backward_library[real], trig_backward_far[real], p, s, n)


cdef void softplus_backward_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_binary_map(softplus_backward_[real], p, s, n)
cdef void silu_backward_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_binary_map(silu_backward_[real], p, s, n)
cdef void gelu_backward_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_binary_map(gelu_backward_[real], p, s, n)
cdef void gelu_tanh_backward_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: staged_binary_map(gelu_tanh_backward_[real], p, s, n)

cdef void clip_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: ternary_map(clip_[number], p, s, n)
cdef void addcmul_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: ternary_map(addcmul_[number], p, s, n)
cdef void lerp_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: ternary_map(lerp_[real], p, s, n)
cdef void maximum_backward_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: ternary_map(maximum_backward_[real], p, s, n)
cdef void minimum_backward_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: ternary_map(minimum_backward_[real], p, s, n)
cdef void divide_backward_y_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: ternary_map(divide_backward_y_[real], p, s, n)
cdef void power_backward_x_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef real y = p[3][0] if s[3] == 0 and n > 0 else 0
    if y == 2:
        square_backward_loop(p, s, n)
    elif y == 3:
        binary_map(cube_backward_[real], p, s, n)
    else:
        staged_ternary_map(power_backward_x_[real], p, s, n)


cdef void where_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, t0 = s[0], t1 = s[1], t2 = s[2], t3 = s[3]
    cdef number* out = p[0]
    cdef const bool_t* cond = <const bool_t*>p[1]
    cdef const number* x = p[2]
    cdef const number* y = p[3]
    cdef number a
    if t0 == 1 and t1 == 1 and t2 == 1 and t3 == 1:
        for i in range(n):
            out[i] = select(cond[i], x[i], y[i])
    elif t0 == 1 and t1 == 1 and t2 == 1 and t3 == 0:
        a = y[0]
        for i in range(n):
            out[i] = select(cond[i], x[i], a)
    elif t0 == 1 and t1 == 1 and t2 == 0 and t3 == 1:
        a = x[0]
        for i in range(n):
            out[i] = select(cond[i], a, y[i])
    else:
        for i in range(n):
            out[i * t0] = select(cond[i * t1], x[i * t2], y[i * t3])


cdef inline number select(bool_t cond, number x, number y) noexcept nogil:
    return x if cond else y


cdef void to_float32_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: convert_map(to_float32[number], <float*>p[0], p[1], s, n)
cdef void to_float64_loop(number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: convert_map(to_float64[number], <double*>p[0], p[1], s, n)


# ---- the table ----

cdef void put(KernelTable* table, int dtype, const char* name, int n_inputs, int weight, loop_t loop) noexcept:
    """Enter the loop of one dtype; the row is made when the name comes for the first time."""
    cdef int row = 0
    while row < table.n_elementwise and strcmp(table.elementwise[row].name, name) != 0:
        row += 1
    if row == table.n_elementwise:
        if row == MAX_KERNELS:
            return
        table.n_elementwise += 1
        table.elementwise[row].name = name
        table.elementwise[row].n_inputs = n_inputs
        table.elementwise[row].weight = weight
    table.elementwise[row].loops[dtype] = loop


cdef void enter_order(KernelTable* table, int dtype, number* tag) noexcept:
    """Kernels that ask which number is larger.  Columns: name, inputs, cost in additions, loop."""
    put(table, dtype, b"sign", 1, 1, <loop_t>sign_loop[number])
    put(table, dtype, b"floor_divide", 2, 10, <loop_t>floor_divide_loop[number])
    put(table, dtype, b"remainder", 2, 10, <loop_t>remainder_loop[number])
    put(table, dtype, b"fmod", 2, 10, <loop_t>fmod_loop[number])
    put(table, dtype, b"maximum", 2, 1, <loop_t>maximum_loop[number])
    put(table, dtype, b"minimum", 2, 1, <loop_t>minimum_loop[number])
    put(table, dtype, b"less", 2, 1, <loop_t>less_loop[number])
    put(table, dtype, b"less_equal", 2, 1, <loop_t>less_equal_loop[number])
    put(table, dtype, b"greater", 2, 1, <loop_t>greater_loop[number])
    put(table, dtype, b"greater_equal", 2, 1, <loop_t>greater_equal_loop[number])
    put(table, dtype, b"clip", 3, 1, <loop_t>clip_loop[number])


cdef void enter_number(KernelTable* table, int dtype, number* tag) noexcept:
    """The other kernels that all signed dtypes have."""
    put(table, dtype, b"negative", 1, 1, <loop_t>negative_loop[number])
    put(table, dtype, b"absolute", 1, 1, <loop_t>absolute_loop[number])
    put(table, dtype, b"square", 1, 1, <loop_t>square_loop[number])
    put(table, dtype, b"relu", 1, 1, <loop_t>relu_loop[number])
    put(table, dtype, b"isnan", 1, 1, <loop_t>isnan_loop[number])
    put(table, dtype, b"isinf", 1, 1, <loop_t>isinf_loop[number])
    put(table, dtype, b"isfinite", 1, 1, <loop_t>isfinite_loop[number])
    put(table, dtype, b"signbit", 1, 1, <loop_t>signbit_loop[number])
    put(table, dtype, b"logical_not", 1, 1, <loop_t>logical_not_loop[number])
    put(table, dtype, b"add", 2, 1, <loop_t>add_loop[number])
    put(table, dtype, b"subtract", 2, 1, <loop_t>subtract_loop[number])
    put(table, dtype, b"multiply", 2, 1, <loop_t>multiply_loop[number])
    put(table, dtype, b"equal", 2, 1, <loop_t>equal_loop[number])
    put(table, dtype, b"not_equal", 2, 1, <loop_t>not_equal_loop[number])
    put(table, dtype, b"logical_and", 2, 1, <loop_t>logical_and_loop[number])
    put(table, dtype, b"logical_or", 2, 1, <loop_t>logical_or_loop[number])
    put(table, dtype, b"logical_xor", 2, 1, <loop_t>logical_xor_loop[number])
    put(table, dtype, b"addcmul", 3, 1, <loop_t>addcmul_loop[number])


cdef void enter_bits(KernelTable* table, int dtype, integer* tag) noexcept:
    """Kernels that move elements as they are, for every dtype of the width of `integer`."""
    put(table, dtype, b"positive", 1, 1, <loop_t>positive_loop[integer])
    put(table, dtype, b"where", 3, 1, <loop_t>where_loop[integer])
    table.casts[dtype][dtype] = <loop_t>positive_loop[integer]


cdef void enter_real(KernelTable* table, int dtype, real* tag) noexcept:
    put(table, dtype, b"reciprocal", 1, 2, <loop_t>reciprocal_loop[real])
    put(table, dtype, b"sqrt", 1, 2, <loop_t>sqrt_loop[real])
    put(table, dtype, b"rsqrt", 1, 3, <loop_t>rsqrt_loop[real])
    put(table, dtype, b"cbrt", 1, 6, <loop_t>cbrt_loop[real])
    put(table, dtype, b"exp", 1, 5, <loop_t>exp_loop[real])
    put(table, dtype, b"exp2", 1, 5, <loop_t>exp2_loop[real])
    put(table, dtype, b"expm1", 1, 6, <loop_t>expm1_loop[real])
    put(table, dtype, b"log", 1, 6, <loop_t>log_loop[real])
    put(table, dtype, b"log2", 1, 6, <loop_t>log2_loop[real])
    put(table, dtype, b"log10", 1, 6, <loop_t>log10_loop[real])
    put(table, dtype, b"log1p", 1, 8, <loop_t>log1p_loop[real])
    put(table, dtype, b"sin", 1, 8, <loop_t>sin_loop[real])
    put(table, dtype, b"cos", 1, 8, <loop_t>cos_loop[real])
    put(table, dtype, b"tan", 1, 60, <loop_t>tan_loop[real])
    put(table, dtype, b"asin", 1, 8, <loop_t>asin_loop[real])
    put(table, dtype, b"acos", 1, 8, <loop_t>acos_loop[real])
    put(table, dtype, b"atan", 1, 8, <loop_t>atan_loop[real])
    put(table, dtype, b"sinh", 1, 40, <loop_t>sinh_loop[real])
    put(table, dtype, b"cosh", 1, 40, <loop_t>cosh_loop[real])
    put(table, dtype, b"tanh", 1, 6, <loop_t>tanh_loop[real])
    put(table, dtype, b"asinh", 1, 20, <loop_t>asinh_loop[real])
    put(table, dtype, b"acosh", 1, 20, <loop_t>acosh_loop[real])
    put(table, dtype, b"atanh", 1, 10, <loop_t>atanh_loop[real])
    put(table, dtype, b"sigmoid", 1, 7, <loop_t>sigmoid_loop[real])
    put(table, dtype, b"logsigmoid", 1, 14, <loop_t>logsigmoid_loop[real])
    put(table, dtype, b"softplus", 1, 14, <loop_t>softplus_loop[real])
    put(table, dtype, b"silu", 1, 7, <loop_t>silu_loop[real])
    put(table, dtype, b"gelu", 1, 14, <loop_t>gelu_loop[real])
    put(table, dtype, b"gelu_tanh", 1, 10, <loop_t>gelu_tanh_loop[real])
    put(table, dtype, b"erf", 1, 12, <loop_t>erf_loop[real])
    put(table, dtype, b"erfc", 1, 14, <loop_t>erfc_loop[real])
    put(table, dtype, b"entr", 1, 8, <loop_t>entr_loop[real])
    put(table, dtype, b"logit", 1, 16, <loop_t>logit_loop[real])
    put(table, dtype, b"floor", 1, 1, <loop_t>floor_loop[real])
    put(table, dtype, b"ceil", 1, 1, <loop_t>ceil_loop[real])
    put(table, dtype, b"trunc", 1, 1, <loop_t>trunc_loop[real])
    put(table, dtype, b"round", 1, 1, <loop_t>round_loop[real])
    put(table, dtype, b"divide", 2, 2, <loop_t>divide_loop[real])
    put(table, dtype, b"power", 2, 40, <loop_t>power_loop[real])
    put(table, dtype, b"atan2", 2, 30, <loop_t>atan2_loop[real])
    put(table, dtype, b"hypot", 2, 20, <loop_t>hypot_loop[real])
    put(table, dtype, b"xlogy", 2, 8, <loop_t>xlogy_loop[real])
    put(table, dtype, b"xlog1py", 2, 10, <loop_t>xlog1py_loop[real])
    put(table, dtype, b"copysign", 2, 1, <loop_t>copysign_loop[real])
    put(table, dtype, b"logaddexp", 2, 40, <loop_t>logaddexp_loop[real])
    put(table, dtype, b"lerp", 3, 2, <loop_t>lerp_loop[real])
    put(table, dtype, b"tanh_backward", 2, 1, <loop_t>tanh_backward_loop[real])
    put(table, dtype, b"sigmoid_backward", 2, 1, <loop_t>sigmoid_backward_loop[real])
    put(table, dtype, b"relu_backward", 2, 1, <loop_t>relu_backward_loop[real])
    put(table, dtype, b"sqrt_backward", 2, 2, <loop_t>sqrt_backward_loop[real])
    put(table, dtype, b"square_backward", 2, 1, <loop_t>square_backward_loop[real])
    put(table, dtype, b"reciprocal_backward", 2, 1, <loop_t>reciprocal_backward_loop[real])
    put(table, dtype, b"absolute_backward", 2, 1, <loop_t>absolute_backward_loop[real])
    put(table, dtype, b"sin_backward", 2, 8, <loop_t>sin_backward_loop[real])
    put(table, dtype, b"cos_backward", 2, 8, <loop_t>cos_backward_loop[real])
    put(table, dtype, b"softplus_backward", 2, 7, <loop_t>softplus_backward_loop[real])
    put(table, dtype, b"silu_backward", 2, 8, <loop_t>silu_backward_loop[real])
    put(table, dtype, b"gelu_backward", 2, 16, <loop_t>gelu_backward_loop[real])
    put(table, dtype, b"gelu_tanh_backward", 2, 12, <loop_t>gelu_tanh_backward_loop[real])
    put(table, dtype, b"maximum_backward", 3, 2, <loop_t>maximum_backward_loop[real])
    put(table, dtype, b"minimum_backward", 3, 2, <loop_t>minimum_backward_loop[real])
    put(table, dtype, b"divide_backward_y", 3, 2, <loop_t>divide_backward_y_loop[real])
    put(table, dtype, b"power_backward_x", 3, 40, <loop_t>power_backward_x_loop[real])


cdef void register_elementwise(KernelTable* table) noexcept:
    enter_order(table, FLOAT32, <float*>NULL)
    enter_order(table, FLOAT64, <double*>NULL)
    enter_number(table, FLOAT32, <float*>NULL)
    enter_number(table, FLOAT64, <double*>NULL)
    enter_bits(table, FLOAT32, <int32_t*>NULL)
    enter_bits(table, FLOAT64, <int64_t*>NULL)
    enter_real(table, FLOAT32, <float*>NULL)
    enter_real(table, FLOAT64, <double*>NULL)
    table.casts[<int>FLOAT32][<int>FLOAT64] = <loop_t>to_float64_loop[float]
    table.casts[<int>FLOAT64][<int>FLOAT32] = <loop_t>to_float32_loop[double]
