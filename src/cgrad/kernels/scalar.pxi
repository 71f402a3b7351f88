"""Scalar formulas, one inline function each, branch-free so that the loops over them vectorise.

Owns: arithmetic, comparison, logic, bits and conversion; the transcendental functions are in transcendental.pxi, fused gradients in
activations.pxi.  Included by the ISA shells (shell.pxi); never compiled alone.
Rules: `noexcept nogil`, no memory, no global state.  A formula sees one element of each input and returns one.  Nothing
here is undefined in C: integers wrap, shifts and divisions have a value for every operand.
Read next: transcendental.pxi, then elementwise.pxi (the loops).
"""
from libc cimport math as libm
from libc.stdint cimport INT64_MAX, INT64_MIN, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from *:
    """
    /* The formulas reach the loops through function pointers known at compile time: only forced inlining turns them into
       vector code. */
    #if defined(__GNUC__)
    #undef CYTHON_INLINE
    #define CYTHON_INLINE inline __attribute__((always_inline, unused))
    #pragma GCC diagnostic ignored "-Wunused-function"      /* uint64 has few loops of its own, see integers.pxi */
    #endif
    """

ctypedef uint8_t bool_t          # a byte of 0 or 1

ctypedef fused real:
    float
    double

ctypedef fused integer:          # uint16 and uint32 compute as int32 and int64, see integers.pxi
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t
    uint64_t

ctypedef fused number:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t
    uint64_t
    float
    double


# ---- unary ----

cdef inline number copy_(number x) noexcept nogil:
    return x


cdef inline number negative_(number x) noexcept nogil:
    return <number>(-x)


cdef inline number absolute_(number x) noexcept nogil:
    if number is float:
        return libm.fabsf(x)
    elif number is double:
        return libm.fabs(x)
    else:
        return <number>(-x) if x < 0 else x


cdef inline number sign_(number x) noexcept nogil:
    cdef number s = <number>((x > 0) - (x < 0))
    return x if isnan_(x) else s


cdef inline number square_(number x) noexcept nogil:
    return <number>(x * x)


cdef inline real cube_(real x) noexcept nogil:
    return x * x * x


cdef inline number relu_(number x) noexcept nogil:
    return <number>0 if x <= 0 else x            # false for NaN, which so stays


cdef inline real reciprocal_(real x) noexcept nogil:
    return <real>1 / x


cdef inline real sqrt_(real x) noexcept nogil:
    if real is float:
        return libm.sqrtf(x)
    else:
        return libm.sqrt(x)


cdef inline real rsqrt_(real x) noexcept nogil:
    return <real>1 / sqrt_(x)


cdef inline real floor_(real x) noexcept nogil:
    if real is float:
        return libm.floorf(x)
    else:
        return libm.floor(x)


cdef inline real ceil_(real x) noexcept nogil:
    if real is float:
        return libm.ceilf(x)
    else:
        return libm.ceil(x)


cdef inline real trunc_(real x) noexcept nogil:
    if real is float:
        return libm.truncf(x)
    else:
        return libm.trunc(x)


cdef inline real round_(real x) noexcept nogil:
    # The default rounding mode is half to even.
    if real is float:
        return libm.rintf(x)
    else:
        return libm.rint(x)


cdef inline bool_t isnan_(number x) noexcept nogil:
    if number is float or number is double:
        return x != x
    else:
        return 0


cdef inline bool_t isinf_(number x) noexcept nogil:
    if number is float or number is double:
        return absolute_(x) == <number>libm.INFINITY
    else:
        return 0


cdef inline bool_t isfinite_(number x) noexcept nogil:
    if number is float or number is double:
        return absolute_(x) < <number>libm.INFINITY
    else:
        return 1


cdef inline bool_t signbit_(number x) noexcept nogil:
    if number is float:
        return float_bits(x) >> 31
    elif number is double:
        return <bool_t>(double_bits(x) >> 63)
    else:
        return x < 0


cdef inline bool_t logical_not_(number x) noexcept nogil:
    return x == 0


cdef inline integer bitwise_not_(integer x) noexcept nogil:
    return <integer>~x


# ---- binary ----

cdef inline number add_(number x, number y) noexcept nogil:
    return <number>(x + y)


cdef inline number subtract_(number x, number y) noexcept nogil:
    return <number>(x - y)


cdef inline number multiply_(number x, number y) noexcept nogil:
    return <number>(x * y)


cdef inline real divide_(real x, real y) noexcept nogil:
    return x / y


cdef inline integer whole_quotient(integer x, integer y) noexcept nogil:
    """Quotient rounded down for a y that is neither 0 nor -1."""
    cdef integer q, r
    # No CPU divides integers in vectors.  A floating quotient is within 1/|y| of the true one as long as the operands fit
    # the mantissa, so that truncation gives the right whole number.
    if integer is int64_t or integer is uint64_t:
        q = x // y
    elif integer is int32_t:
        q = <integer>(<double>x / <double>y)
    else:
        q = <integer>(<int32_t>(<float>x / <float>y))
    r = <integer>(x - q * y)
    return <integer>(q - ((r != 0) & ((r < 0) != (y < 0))))


cdef inline number floor_divide_(number x, number y) noexcept nogil:
    cdef number q, d
    if number is float or number is double:
        return quotient_of(x, y, fmod_(x, y))
    elif number is uint8_t or number is uint64_t:
        return 0 if y == 0 else whole_quotient(x, <number>(y | (y == 0)))
    else:
        # 0 and -1 would trap; they get a divisor of 1 and their own results.
        d = 1 if (y == 0) | (y == -1) else y
        q = whole_quotient(x, d)
        q = <number>-x if y == -1 else q
        return 0 if y == 0 else q


cdef inline number remainder_(number x, number y) noexcept nogil:
    cdef number d
    if number is float or number is double:
        return remainder_of(y, fmod_(x, y))
    elif number is uint8_t or number is uint64_t:
        d = <number>(y | (y == 0))
        return <number>(x - whole_quotient(x, d) * d)
    else:
        d = 1 if (y == 0) | (y == -1) else y     # both have the remainder 0
        return <number>(x - whole_quotient(x, d) * d)


cdef inline real quotient_of(real x, real y, real r) noexcept nogil:
    """x // y by Python's rules, from r = fmod(x, y)."""
    cdef real q = (x - r) / y, d
    q = q - <real>1 if (r != 0) & ((r < 0) != (y < 0)) else q
    d = round_(q)                                # q is whole up to rounding
    d = copysign_(<real>0, x / y) if d == 0 else d
    return x / y if y == 0 else d


cdef inline real remainder_of(real y, real r) noexcept nogil:
    """x % y by Python's rules, from r = fmod(x, y)."""
    cdef real s = r + y if (r < 0) != (y < 0) else r
    return copysign_(<real>0, y) if r == 0 else s


cdef inline number fmod_(number x, number y) noexcept nogil:
    """Remainder with the sign of x, as C's fmod and % ."""
    cdef number r, d
    if number is float:
        return libm.fmodf(x, y)
    elif number is double:
        return libm.fmod(x, y)
    else:
        r = remainder_(x, y)
        d = <number>(r - y)
        return d if (r != 0) & ((r < 0) != (x < 0)) else r


cdef inline integer integer_power(integer x, integer y) noexcept nogil:
    """By repeated squaring, wrapping.  A negative exponent gives the whole part of 1 / x**-y (0 for x == 0)."""
    cdef integer out = 1, base = x, left = y
    if y < 0:
        if x == 1:
            return 1
        if <int64_t>x == -1:      # the cast: no number of uint8 is -1
            return <integer>-1 if y & 1 else 1
        return 0
    while left:
        if left & 1:
            out = <integer>(out * base)
        base = <integer>(base * base)
        left >>= 1
    return out


cdef inline number maximum_(number x, number y) noexcept nogil:
    cdef number m = x if x > y else y            # a NaN in y fails x > y and is returned
    return x if isnan_(x) else m


cdef inline number minimum_(number x, number y) noexcept nogil:
    cdef number m = x if x < y else y
    return x if isnan_(x) else m


cdef inline real copysign_(real x, real y) noexcept nogil:
    if real is float:
        return libm.copysignf(x, y)
    else:
        return libm.copysign(x, y)


cdef inline bool_t equal_(number x, number y) noexcept nogil:
    return x == y


cdef inline bool_t not_equal_(number x, number y) noexcept nogil:
    return x != y


cdef inline bool_t less_(number x, number y) noexcept nogil:
    return x < y


cdef inline bool_t less_equal_(number x, number y) noexcept nogil:
    return x <= y


cdef inline bool_t greater_(number x, number y) noexcept nogil:
    return x > y


cdef inline bool_t greater_equal_(number x, number y) noexcept nogil:
    return x >= y


cdef inline bool_t logical_and_(number x, number y) noexcept nogil:
    return (x != 0) & (y != 0)


cdef inline bool_t logical_or_(number x, number y) noexcept nogil:
    return (x != 0) | (y != 0)


cdef inline bool_t logical_xor_(number x, number y) noexcept nogil:
    return (x != 0) ^ (y != 0)


cdef inline integer bitwise_and_(integer x, integer y) noexcept nogil:
    return x & y


cdef inline integer bitwise_or_(integer x, integer y) noexcept nogil:
    return x | y


cdef inline integer bitwise_xor_(integer x, integer y) noexcept nogil:
    return x ^ y


cdef inline integer bitwise_left_shift_(integer x, integer y) noexcept nogil:
    """0 for counts outside [0, bits)."""
    cdef bint inside = (y >= 0) & (y < <integer>(8 * sizeof(integer)))
    cdef integer count = y if inside else 0
    if sizeof(integer) == 8:
        return <integer>(<uint64_t>x << count) if inside else 0
    else:
        return <integer>(<uint32_t>x << count) if inside else 0


cdef inline integer bitwise_right_shift_(integer x, integer y) noexcept nogil:
    """Counts outside [0, bits) shift everything out: 0, or -1 for negative x."""
    cdef integer last = <integer>(8 * sizeof(integer) - 1)
    cdef bint inside = (y >= 0) & (y <= last)
    if integer is uint8_t or integer is uint64_t:
        return <integer>(x >> y) if inside else 0
    else:
        return <integer>(x >> (y if inside else last))


# ---- ternary ----

cdef inline number clip_(number x, number low, number high) noexcept nogil:
    return minimum_(maximum_(x, low), high)


cdef inline real lerp_(real x, real y, real weight) noexcept nogil:
    # Exact at both ends and monotone: measured from the nearer one.
    return x + weight * (y - x) if weight < <real>0.5 else y - (<real>1 - weight) * (y - x)


cdef inline number addcmul_(number x, number y, number z) noexcept nogil:
    return <number>(x + y * z)


# ---- conversion ----

cdef inline bool_t to_bool(number x) noexcept nogil:
    return x != 0


cdef inline int32_t saturate32(number x, double low, double high) noexcept nogil:
    """Floats to a small integer type: NaN gives 0, the rest goes to the nearest end (C leaves both undefined)."""
    cdef double v = <double>x
    v = 0 if v != v else v
    v = low if v < low else v
    v = high if v > high else v
    return <int32_t>v


cdef inline uint8_t to_uint8(number x) noexcept nogil:
    if number is float or number is double:
        return <uint8_t>saturate32(x, 0, 255)
    else:
        return <uint8_t>x


cdef inline int8_t to_int8(number x) noexcept nogil:
    if number is float or number is double:
        return <int8_t>saturate32(x, -128, 127)
    else:
        return <int8_t>x


cdef inline int16_t to_int16(number x) noexcept nogil:
    if number is float or number is double:
        return <int16_t>saturate32(x, -32768, 32767)
    else:
        return <int16_t>x


cdef inline int32_t to_int32(number x) noexcept nogil:
    if number is float or number is double:
        return saturate32(x, -2147483648.0, 2147483647.0)
    else:
        return <int32_t>x


cdef inline int64_t to_int64(number x) noexcept nogil:
    cdef double v
    cdef int64_t out
    if number is float or number is double:
        v = <double>x
        out = <int64_t>(v if (v >= -9223372036854775808.0) & (v < 9223372036854775808.0) else <double>0)
        out = INT64_MAX if v >= 9223372036854775808.0 else out
        return INT64_MIN if v < -9223372036854775808.0 else out
    else:
        return <int64_t>x


cdef inline float to_float32(number x) noexcept nogil:
    return <float>x


cdef inline double to_float64(number x) noexcept nogil:
    return <double>x


# ---- bits ----

cdef inline uint32_t float_bits(float x) noexcept nogil:
    return (<uint32_t*>&x)[0]


cdef inline uint64_t double_bits(double x) noexcept nogil:
    return (<uint64_t*>&x)[0]


cdef inline float bits_float(uint32_t b) noexcept nogil:
    return (<float*>&b)[0]


cdef inline double bits_double(uint64_t b) noexcept nogil:
    return (<double*>&b)[0]
