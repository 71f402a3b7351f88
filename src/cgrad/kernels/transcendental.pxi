"""Exponentials, logarithms, trigonometric and hyperbolic functions, erf, and the activations made of them.

Owns: their formulas and gradient formulas.  Rules as in scalar.pxi, which is included before.  At most 2 ulp everywhere.
Read next: elementwise.pxi.
"""

cdef inline real exp_(real x) noexcept nogil:
    return <real>libm.exp(x)


cdef inline real exp2_(real x) noexcept nogil:
    return <real>libm.exp2(x)


cdef inline real expm1_(real x) noexcept nogil:
    return <real>libm.expm1(x)


cdef inline real log_(real x) noexcept nogil:
    return <real>libm.log(x)


cdef inline real log2_(real x) noexcept nogil:
    return <real>libm.log2(x)


cdef inline real log10_(real x) noexcept nogil:
    return <real>libm.log10(x)


cdef inline real log1p_(real x) noexcept nogil:
    return <real>libm.log1p(x)


cdef inline real sin_(real x) noexcept nogil:
    return <real>libm.sin(x)


cdef inline real cos_(real x) noexcept nogil:
    return <real>libm.cos(x)


cdef inline real tan_(real x) noexcept nogil:
    return <real>libm.tan(x)


cdef inline real asin_(real x) noexcept nogil:
    return <real>libm.asin(x)


cdef inline real acos_(real x) noexcept nogil:
    return <real>libm.acos(x)


cdef inline real atan_(real x) noexcept nogil:
    return <real>libm.atan(x)


cdef inline real sinh_(real x) noexcept nogil:
    return <real>libm.sinh(x)


cdef inline real cosh_(real x) noexcept nogil:
    return <real>libm.cosh(x)


cdef inline real tanh_(real x) noexcept nogil:
    return <real>libm.tanh(x)


cdef inline real asinh_(real x) noexcept nogil:
    return <real>libm.asinh(x)


cdef inline real acosh_(real x) noexcept nogil:
    return <real>libm.acosh(x)


cdef inline real atanh_(real x) noexcept nogil:
    return <real>libm.atanh(x)


cdef inline real sigmoid_(real x) noexcept nogil:
    cdef double e = libm.exp(-libm.fabs(x))
    return <real>((1 if x >= 0 else e) / (1 + e))


cdef inline real silu_(real x) noexcept nogil:
    cdef double e = libm.exp(-libm.fabs(x))
    return <real>((<double>x if x >= 0 else x * e) / (1 + e))


cdef inline real softplus_(real x) noexcept nogil:
    return <real>((<double>x if x > 0 else 0.0) + libm.log1p(libm.exp(-libm.fabs(x))))


cdef inline real logsigmoid_(real x) noexcept nogil:
    return -softplus_(-x)


cdef inline real erf_(real x) noexcept nogil:
    return <real>libm.erf(x)


cdef inline real erfc_(real x) noexcept nogil:
    return <real>libm.erfc(x)


cdef inline real gelu_(real x) noexcept nogil:
    return <real>(0.5 * <double>x * libm.erfc(-<double>x * 0.70710678118654752440))


cdef inline real gelu_tanh_(real x) noexcept nogil:
    cdef double v = x
    return <real>(v / (1 + libm.exp(-2 * 0.79788456080286535588 * (v + 0.044715 * v * v * v))))


cdef inline real power_(real x, real y) noexcept nogil:
    return <real>libm.pow(x, y)


cdef inline real atan2_(real y, real x) noexcept nogil:
    return <real>libm.atan2(y, x)


cdef inline real hypot_(real x, real y) noexcept nogil:
    return <real>libm.hypot(x, y)


cdef inline real logaddexp_(real x, real y) noexcept nogil:
    cdef double a = maximum_(x, y), b = minimum_(x, y)
    return <real>(a if a == b and libm.isinf(a) else a + libm.log1p(libm.exp(b - a)))


# ---- gradients of the hot operations, one pass over memory each ----

cdef inline real tanh_backward_(real g, real out) noexcept nogil:
    return g * (1 - out) * (1 + out)


cdef inline real sigmoid_backward_(real g, real out) noexcept nogil:
    return g * out * (1 - out)


cdef inline real relu_backward_(real g, real out) noexcept nogil:
    return <real>0 if out <= 0 else g


cdef inline real sqrt_backward_(real g, real out) noexcept nogil:
    return g / (out + out)


cdef inline real square_backward_(real g, real x) noexcept nogil:
    return g * (x + x)


cdef inline real reciprocal_backward_(real g, real out) noexcept nogil:
    return -g * out * out


cdef inline real absolute_backward_(real g, real x) noexcept nogil:
    return g * sign_(x)


cdef inline real sin_backward_(real g, real x) noexcept nogil:
    return g * cos_(x)


cdef inline real cos_backward_(real g, real x) noexcept nogil:
    return -g * sin_(x)


cdef inline real softplus_backward_(real g, real x) noexcept nogil:
    return g * sigmoid_(x)


cdef inline real silu_backward_(real g, real x) noexcept nogil:
    cdef real s = sigmoid_(x)
    return g * s * (1 + x * (1 - s))


cdef inline real gelu_backward_(real g, real x) noexcept nogil:
    cdef double v = x
    return <real>(g * (0.5 * libm.erfc(-v * 0.70710678118654752440) + v * 0.39894228040143267794 * libm.exp(-0.5 * v * v)))


cdef inline real gelu_tanh_backward_(real g, real x) noexcept nogil:
    cdef double v = x
    cdef double s = sigmoid_(2 * 0.79788456080286535588 * (v + 0.044715 * v * v * v))
    return <real>(g * (s + v * s * (1 - s) * 2 * 0.79788456080286535588 * (1 + 3 * 0.044715 * v * v)))


cdef inline real divide_backward_y_(real g, real out, real y) noexcept nogil:
    return -g * out / y


cdef inline real cube_(real x) noexcept nogil:
    return x * x * x


cdef inline real cube_backward_(real g, real x) noexcept nogil:
    return g * (3 * x * x)


cdef inline real power_backward_x_(real g, real x, real y) noexcept nogil:
    return <real>0 if y == 0 else g * y * power_(x, y - 1)
