"""Cube roots, exponentials, logarithms, powers, trigonometric and hyperbolic functions.

Owns: their formulas, at most 2 ulp everywhere in both types.  Method: Cody and Waite's reduction to a short interval, a minimax
polynomial (fitted here with Remez' algorithm, coefficients lowest first), and an exact scaling; every step is arithmetic
or a choice, so the loops vectorise.  Only trigonometric functions of huge arguments call the C library.
A `medium` variant serves float32 results from double arithmetic: its error, 2**-28 or less, vanishes in the rounding to float.
Rules as in scalar.pxi, which is included before.  Read next: inverse.pxi.
"""

cdef extern from *:
    """
    #if defined(__FMA__) || defined(__FP_FAST_FMA) || defined(__ARM_FEATURE_FMA)
    #define CGRAD_HAS_FMA 1
    #else
    #define CGRAD_HAS_FMA 0
    #endif
    #define CGRAD_SHIFT 6755399441055744.0      /* 1.5 * 2**52: x + SHIFT rounds x, whose low bits then are those of a whole number */
    #define CGRAD_SHIFTF 12582912.0f            /* 1.5 * 2**23 */
    """
    const bint HAS_FMA "CGRAD_HAS_FMA"
    const double SHIFT "CGRAD_SHIFT"
    const float SHIFTF "CGRAD_SHIFTF"


# ---- tools ----

cdef inline double product_error(double a, double b, double p) noexcept nogil:
    """a * b - p without error, where p is a * b rounded (Dekker's product where there is no fused multiply-add)."""
    cdef double ah, al, bh, bl
    if HAS_FMA:
        return libm.fma(a, b, -p)
    ah = a * 134217729.0
    ah = ah - (ah - a)
    al = a - ah
    bh = b * 134217729.0
    bh = bh - (bh - b)
    bl = b - bh
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl


cdef inline real sum_error(real a, real b, real s) noexcept nogil:
    """a + b - s without error, where s is a + b rounded (Knuth)."""
    cdef real v = s - a
    return (a - (s - v)) + (b - v)


cdef inline real poly2(real x, real a, real b, real c) noexcept nogil:
    return a + x * (b + x * c)


cdef inline real poly3(real x, real a, real b, real c, real d) noexcept nogil:
    return a + x * (b + x * (c + x * d))


cdef inline real poly4(real x, real a, real b, real c, real d, real e) noexcept nogil:
    return a + x * (b + x * (c + x * (d + x * e)))


cdef inline real poly5(real x, real a, real b, real c, real d, real e, real f) noexcept nogil:
    return a + x * (b + x * (c + x * (d + x * (e + x * f))))


cdef inline double poly6(double x, double a, double b, double c, double d, double e, double f, double g) noexcept nogil:
    return a + x * (b + x * (c + x * (d + x * (e + x * (f + x * g)))))


cdef inline double poly7(double x, double a, double b, double c, double d, double e, double f, double g, double h) noexcept nogil:
    return poly3[double](x, a, b, c, d) + x * x * x * x * poly3[double](x, e, f, g, h)


cdef inline double poly8(double x, double a, double b, double c, double d, double e, double f, double g, double h, double i) noexcept nogil:
    return poly3(x, a, b, c, d) + x * x * x * x * poly4(x, e, f, g, h, i)


cdef inline double poly9(double x, double a, double b, double c, double d, double e, double f, double g, double h, double i, double j) noexcept nogil:
    return a + x * (b + x * (c + x * (d + x * (e + x * (f + x * (g + x * (h + x * (i + x * j))))))))


cdef inline double poly10(double x, double a, double b, double c, double d, double e, double f, double g, double h, double i,
                          double j, double k) noexcept nogil:
    return a + x * (b + x * (c + x * (d + x * (e + x * (f + x * (g + x * (h + x * (i + x * (j + x * k)))))))))


cdef inline double poly11(double x, double a, double b, double c, double d, double e, double f, double g, double h, double i,
                          double j, double k, double l) noexcept nogil:
    return poly5[double](x, a, b, c, d, e, f) + x * x * x * x * x * x * poly5[double](x, g, h, i, j, k, l)


# ---- cube roots: a third of the exponent, then Halley's method, which triples the number of right bits ----

cdef inline real cbrt_step(real x, real y) noexcept nogil:
    cdef real c = y * y * (y * <real>0.25)             # a quarter, as y**3 may not be finite
    return y * ((c + x * <real>0.5) / (c + c + x * <real>0.25))


cdef inline real cbrt_(real x) noexcept nogil:
    """A last step from few bits, whose square is exact: at most 0.9 ulp."""
    cdef real a = absolute_(x), b, y, quotient, down = 1
    if real is float:
        b = a * <float>16777216 if a < <float>1e-37 else a
        down = <float>0.00390625 if a < <float>1e-37 else down
        y = bits_float(<uint32_t>(<int32_t>(<float>(<int32_t>float_bits(b)) * <float>(1.0 / 3)) + 709921077))
        y = bits_float(float_bits(cbrt_step(b, y)) & <uint32_t>0xfffff000)
    else:
        b = a * 18014398509481984.0 if a < 1e-307 else a
        down = 3.814697265625e-06 if a < 1e-307 else down
        # A third of the upper half of the bits: it is a number when written into the low bits of 2**52.
        y = bits_double((double_bits(b) >> 32) | 0x4330000000000000ULL) - 4503599627370496.0
        y = bits_double(double_bits(y * (1.0 / 3) + (4503599627370496.0 + 715094163.0)) << 32)
        y = bits_double(double_bits(cbrt_step(b, cbrt_step(b, y))) & 0xfffffffff0000000ULL)
    quotient = b / (y * y)
    y = (y + y * ((quotient - y) / (y + y + quotient))) * down
    return copysign_(y if a > 0 and a < libm.INFINITY else a, x)


# ---- exponentials: x = k ln 2 + r with |r| <= ln(2)/2, e**x = 2**k e**r ----

cdef inline double exp_reduce(double x, double low, double* t, double* r_low) noexcept nogil:
    """r of x + low; k + SHIFT in t[0] and the rounding error of r in r_low[0].  |x| < 1500."""
    cdef double k, h, r
    t[0] = x * 1.4426950408889634 + SHIFT
    k = t[0] - SHIFT
    h = x - k * 0.6931471805601177               # 40 bits of ln 2: no rounding up to here
    r = h + (k * 1.7239444525614835e-13 + low)
    r_low[0] = (h - r) + (k * 1.7239444525614835e-13 + low)
    return r


cdef inline double exp_quotient(double r) noexcept nogil:
    """(e**r - 1 - r) / r^2 for |r| <= ln(2)/2, to 2**-58 / r^2."""
    cdef double q = 2.5117997563993688e-08
    q = q * r + 2.763133666944391e-07
    q = q * r + 2.7557215802486915e-06
    q = q * r + 2.4801489799700732e-05
    q = q * r + 0.0001984126991803868
    q = q * r + 0.001388888894713585
    q = q * r + 0.00833333333330685
    q = q * r + 0.04166666666651504
    q = q * r + 0.166666666666667
    return q * r + 0.5000000000000013


cdef inline double exp_poly(double r) noexcept nogil:
    """e**r - 1."""
    return r + r * r * exp_quotient(r)


cdef inline double exp_parts(double x, double x_low, double* t, double* low) noexcept nogil:
    """e**(x + x_low) / 2**k with its rounding error in low[0]."""
    cdef double r_low, u = exp_reduce(x, x_low, t, &r_low), p
    u = exp_poly(u)
    p = 1 + u
    low[0] = ((1 - p) + u) + r_low * p
    return p


cdef inline double two_power(double t) noexcept nogil:
    """2**k of t = k + SHIFT, for -1023 < k < 1024."""
    return bits_double((double_bits(t) << 52) + 0x3ff0000000000000ULL)


cdef inline double two_scale(double x, double t) noexcept nogil:
    """x * 2**k in two steps, so that |k| may reach 2000: right for subnormal results, overflow to infinity."""
    cdef uint64_t k = double_bits(t), half = k >> 1
    return x * bits_double((half << 52) + 0x3ff0000000000000ULL) * bits_double(((k - half) << 52) + 0x3ff0000000000000ULL)


cdef inline float exp_reducef(float x, float* t) noexcept nogil:
    cdef float k
    t[0] = x * <float>1.4426950408889634 + SHIFTF
    k = t[0] - SHIFTF
    return (x - k * <float>0.693145751953125) - k * <float>1.4286068203094173e-06


cdef inline float exp_polyf(float r) noexcept nogil:
    """e**r - 1, to 2**-28."""
    return r + r * r * poly4[float](r, 0.5000000095516036, 0.16666518605249506, 0.041666204814674264, 0.008368917695310485,
                                    0.001395055417605466)


cdef inline float two_scalef(float x, float t) noexcept nogil:
    cdef uint32_t k = float_bits(t), half = k >> 1
    return x * bits_float((half << 23) + 0x3f800000) * bits_float(((k - half) << 23) + 0x3f800000)


cdef inline double exp_medium(double x) noexcept nogil:
    """e**x to 2**-28, for x in the exponent range of float32 results (|x| < 700)."""
    cdef double t = x * 1.4426950408889634 + SHIFT
    cdef double r = x - (t - SHIFT) * 0.6931471805599453
    return (1 + r + r * r * poly4[double](r, 0.5000000095516036, 0.16666518605249506, 0.041666204814674264, 0.008368917695310485,
                                          0.001395055417605466)) * two_power(t)


cdef inline real exp_(real x) noexcept nogil:
    cdef double t, low
    cdef float tf
    # Choices are written so that NaN is kept: a comparison with NaN is false.
    if real is float:
        x = <float>89 if x > <float>89 else x
        x = <float>-105 if x < <float>-105 else x
        x = exp_reducef(x, &tf)
        return two_scalef(<float>1 + exp_polyf(x), tf)
    else:
        x = 710.0 if x > 710.0 else x
        x = -746.0 if x < -746.0 else x
        x = exp_reduce(x, 0, &t, &low)
        return two_scale(1 + exp_poly(x), t)


cdef inline real exp2_(real x) noexcept nogil:
    cdef double t, r
    cdef float tf, rf
    if real is float:
        x = <float>129 if x > <float>129 else x
        x = <float>-151 if x < <float>-151 else x
        tf = x + SHIFTF
        rf = x - (tf - SHIFTF)
        return two_scalef(<float>1 + rf * poly5[float](rf, 0.6931472063029782, 0.2402265135381569, 0.055503276473755074,
                                                       0.00961800319467159, 0.00134003294137905, 0.00015476455001076802), tf)
    else:
        x = 1025.0 if x > 1025.0 else x
        x = -1076.0 if x < -1076.0 else x
        t = x + SHIFT
        r = x - (t - SHIFT)
        return two_scale(1 + r * poly10(r, 0.6931471805599453, 0.24022650695910133, 0.05550410866482174, 0.009618129107593222,
                                        0.0013333558146378713, 0.00015403530458232975, 1.5252733867810719e-05,
                                        1.3215434734601426e-06, 1.0178046360590047e-07, 7.0738752103803285e-09,
                                        4.457401202656948e-10), t)


cdef inline real expm1_core(real x, real* low) noexcept nogil:
    """e**x - 1 for x between -60 and the overflow threshold, its rounding error in low[0]; the sign of zero is lost."""
    cdef double t, r_low
    cdef real r, u, v, h, a, c
    cdef float tf
    # With h = 2**(k-1), so that k = 1024 does not overflow: 2 (h (e**r - 1) + (h - 1/2)).
    if real is float:
        r = exp_reducef(x, &tf)
        r_low = 0
        v = r * r * poly4[float](r, 0.5000000095516036, 0.16666518605249506, 0.041666204814674264, 0.008368917695310485,
                                 0.001395055417605466)
        h = bits_float((float_bits(tf) << 23) + 0x3f000000)
    else:
        r = exp_reduce(x, 0, &t, &r_low)
        v = r * r * exp_quotient(r)
        h = bits_double((double_bits(t) << 52) + 0x3fe0000000000000ULL)
    u = r + v
    low[0] = (r - u) + v + <real>r_low
    a = h * u
    c = h - <real>0.5
    u = c + a
    low[0] = <real>2 * (((c - u) + a if absolute_(c) > absolute_(a) else (a - u) + c) + h * low[0])
    return u + u


cdef inline real expm1_(real x) noexcept nogil:
    cdef real v = x, low
    if real is float:
        v = <float>89 if v > <float>89 else v
        v = <float>-30 if v < <float>-30 else v
    else:
        v = 710.0 if v > 710.0 else v
        v = -60.0 if v < -60.0 else v
    v = expm1_core(v, &low)
    # At overflow `low` is NaN.  Below 2**-54 the value is x itself, of which halving would lose the last bit of a subnormal.
    v = copysign_(v if v > <real>1e30 else v + low, x)
    return x if absolute_(x) < <real>5.5e-17 else v


# ---- logarithms: x = 2**k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2); s = f / (2 + f), log(1 + f) = f - s (f - s^2 L(s^2)) ----

cdef inline double log_reduce(double x, double* k, uint64_t* exponent) noexcept nogil:
    """f of a positive normal x."""
    cdef uint64_t b = double_bits(x) + (0x3ff0000000000000ULL - 0x3fe6a09e667f3bcdULL)
    exponent[0] = b >> 52                                                        # k + 1023
    k[0] = bits_double(exponent[0] | 0x4330000000000000ULL) - (4503599627370496.0 + 1023)
    return bits_double((b & 0x000fffffffffffffULL) + 0x3fe6a09e667f3bcdULL) - 1


cdef inline double log_rest(double f) noexcept nogil:
    """f - log(1 + f), to 2**-59 of log(1 + f)."""
    cdef double s = f / (2 + f), z = s * s
    return s * (f - z * poly6(z, 0.6666666666666735, 0.39999999999412267, 0.28571428743010596, 0.22222198500082246,
                              0.18183568598251204, 0.15313929538918727, 0.14797272656911054))


cdef inline double log_rest_medium(double f) noexcept nogil:
    """The same to 2**-30."""
    cdef double s = f / (2 + f), z = s * s
    return s * (f - z * poly2[double](z, 0.6666677670749058, 0.39977495632101184, 0.2987308408597739))


cdef inline float log_reducef(float x, float* k, uint32_t* exponent) noexcept nogil:
    cdef uint32_t b = float_bits(x) + (0x3f800000 - 0x3f3504f3)
    exponent[0] = b >> 23
    k[0] = <float><int32_t>(exponent[0]) - <float>127
    return bits_float((b & 0x007fffff) + 0x3f3504f3) - <float>1


cdef inline float log_restf(float f) noexcept nogil:
    cdef float s = f / (<float>2 + f), z = s * s
    return s * (f - z * poly2[float](z, 0.6666677670749058, 0.39977495632101184, 0.2987308408597739))


cdef inline real log_special(real x, real y) noexcept nogil:
    """y for positive finite x; log's own values at 0, infinity, NaN and for negative x elsewhere."""
    cdef real other = <real>libm.NAN if x < 0 else x
    other = -<real>libm.INFINITY if x == 0 else other
    return y if (x > 0) & (x < <real>libm.INFINITY) else other


cdef inline real log_(real x) noexcept nogil:
    cdef double k, f
    cdef float kf, ff, v
    cdef uint64_t e
    cdef uint32_t ef
    if real is float:
        v = x * <float>8388608 if x < <float>1.1754943508222875e-38 else x
        ff = log_reducef(v, &kf, &ef)
        kf = kf - <float>23 if x < <float>1.1754943508222875e-38 else kf
        return log_special(x, kf * <float>0.693145751953125 + (ff - (log_restf(ff) - kf * <float>1.4286068203094173e-06)))
    else:
        f = log_reduce(x * 18014398509481984.0 if x < 2.2250738585072014e-308 else x, &k, &e)
        k = k - 54 if x < 2.2250738585072014e-308 else k
        return log_special(x, k * 0.6931471805601177 + (f - (log_rest(f) + k * 1.7239444525614835e-13)))


cdef inline double log_scaled(double x, double c, double c_low, double k_high, double k_low) noexcept nogil:
    """log(x) * (c + c_low), where k_high + k_low is that factor times ln 2 and k_high has few bits."""
    cdef double k, f, w, p, low, s
    cdef uint64_t e
    f = log_reduce(x * 18014398509481984.0 if x < 2.2250738585072014e-308 else x, &k, &e)
    k = k - 54 if x < 2.2250738585072014e-308 else k
    w = log_rest(f)
    p = f * c
    low = product_error(f, c, p) + (f * c_low - w * c) + k * k_low
    s = k * k_high + p
    low = low + sum_error[double](k * k_high, p, s)
    return s + low


cdef inline float log_scaledf(float x, double c, double ln2) noexcept nogil:
    """log(x) * c, where ln2 is that factor times ln 2."""
    cdef float k, f, v = x * <float>8388608 if x < <float>1.1754943508222875e-38 else x
    cdef uint32_t e
    f = log_reducef(v, &k, &e)
    k = k - <float>23 if x < <float>1.1754943508222875e-38 else k
    return <float>(k * ln2 + (f - log_rest_medium(f)) * c)


cdef inline real log2_(real x) noexcept nogil:
    if real is float:
        return log_special(x, log_scaledf(x, 1.4426950408889634, 1))
    else:
        return log_special(x, log_scaled(x, 1.4426950408889634, 2.0355273740931033e-17, 1, 0))


cdef inline real log10_(real x) noexcept nogil:
    if real is float:
        return log_special(x, log_scaledf(x, 0.4342944819032518, 0.3010299956639812))
    else:
        return log_special(x, log_scaled(x, 0.4342944819032518, 1.098319650216765e-17, 0.3010299956640665, -8.532344317057107e-14))


cdef inline double log1p_core(double x, double x_low, bint medium) noexcept nogil:
    """log(1 + x + x_low) for -1 < x < inf; the sign of zero is lost."""
    cdef double u = 1 + x, c = sum_error[double](1, x, u) + x_low, k, f, high, low
    cdef uint64_t e
    high = log_reduce(u, &k, &e)
    c = 0.5 * c * bits_double((2047 - e) << 52)  # what u lost, scaled like f by 2**-k
    f = high + c
    low = c - (f - high)
    if medium:
        return k * 0.6931471805599453 + (f - (log_rest_medium(f) - low))
    return k * 0.6931471805601177 + (f - (log_rest(f) + k * 1.7239444525614835e-13 - low))


cdef inline float log1p_coref(float x) noexcept nogil:
    cdef float u = <float>1 + x, c = sum_error[float](1, x, u), k, f, high, low
    cdef uint32_t e
    high = log_reducef(u, &k, &e)
    c = <float>0.5 * c * bits_float((255 - e) << 23)
    f = high + c
    low = c - (f - high)
    return k * <float>0.693145751953125 + (f - (log_restf(f) - k * <float>1.4286068203094173e-06 - low))


cdef inline real log1p_(real x) noexcept nogil:
    cdef real y, other = <real>libm.NAN if x < -1 else x
    if real is float:
        y = log1p_coref(x)
    else:
        y = log1p_core(x, 0, False)
    other = -<real>libm.INFINITY if x == -1 else other
    return copysign_(y, x) if (x > -1) & (x < <real>libm.INFINITY) else other


# ---- remainders, powers and lengths ----

cdef inline bint fmod_far(real x, real y) noexcept nogil:
    """Where fmod_near is not exact: large quotients, infinities, NaN, y = 0, and what Dekker's product cannot split."""
    cdef real a = absolute_(x), b = absolute_(y)
    if real is float:
        return not ((a < b * <float>1e8) & (b < <float>libm.INFINITY))
    else:
        return not ((a < b * 1e15) & (b < 1e270) & ((a > 1e-270) | (a < b)))


cdef inline real fmod_near(real x, real y) noexcept nogil:
    """fmod with the quotient in one piece, rounded to nearest, so that the remainder may be one divisor too small."""
    cdef double a = libm.fabs(<double>x), b = libm.fabs(<double>y), q = (a / b + SHIFT) - SHIFT, p = q * b
    cdef double r = (a - p) - product_error(q, b, p)
    r = r + b if r < 0 else r
    r = r - b if r >= b else r
    return copysign_(<real>r, x)


cdef inline real floor_divide_near(real x, real y) noexcept nogil:
    return quotient_of(x, y, fmod_near(x, y))


cdef inline real remainder_near(real x, real y) noexcept nogil:
    return remainder_of(y, fmod_near(x, y))


cdef inline double exp2_medium(double x) noexcept nogil:
    """2**x to 2**-29, for any x, scaled so that float32 results round correctly even when subnormal."""
    cdef double t, r
    x = 300.0 if x > 300.0 else x
    x = -300.0 if x < -300.0 else x
    t = x + SHIFT
    r = x - (t - SHIFT)
    return (1 + r * poly5[double](r, 0.6931472063029782, 0.2402265135381569, 0.055503276473755074, 0.00961800319467159,
                                  0.00134003294137905, 0.00015476455001076802)) * two_power(t)


cdef inline double log_pair(double x, double* low) noexcept nogil:
    """log(x) for a positive x, to 2**-65: its rounding error is in low[0].

    As log_rest, by s = f / (2 + f): log(1 + f) = s (2 + z (2/3 + z Q(z))), z = s^2, with s, z and the sums as pairs of doubles.
    """
    cdef double k, f, d, r, s, s_low, z, z_low, a, b, b_low, c, c_low, e, e_low, h, p, out
    cdef uint64_t exponent
    f = log_reduce(x * 18014398509481984.0 if x < 2.2250738585072014e-308 else x, &k, &exponent)
    k = k - 54 if x < 2.2250738585072014e-308 else k
    d = 2 + f
    r = 1 / d
    s = f * r
    p = s * d
    s_low = ((f - p) - product_error(s, d, p) - s * sum_error[double](2, f, d)) * r
    z = s * s
    z_low = product_error(s, s, z) + 2 * s * s_low
    a = z * poly7(z, 0.3999999999999998, 0.2857142857144511, 0.2222222221753643, 0.1818181887031922, 0.15384556870644006,
                  0.13336317434538794, 0.11674818155255798, 0.11989016369483454)
    b = 0.6666666666666666 + a
    b_low = ((0.6666666666666666 - b) + a) + 3.700743415417188e-17
    c = z * b
    c_low = product_error(z, b, c) + (z * b_low + z_low * b)
    e = 2 + c
    e_low = ((2 - e) + c) + c_low
    p = s * e
    h = k * 0.6931471805601177                   # 40 bits of ln 2: no rounding
    out = h + p
    low[0] = sum_error[double](h, p, out) + (product_error(s, e, p) + (s * e_low + s_low * e) - k * 1.7239444525614835e-13)
    return out


cdef inline double power_magnitude(double a, double y) noexcept nogil:
    """a**y for a >= 0 (wrong for 1**inf, and where y = 0 and a is 0 or infinity)."""
    cdef double l_low, l = log_pair(a, &l_low), p, p_low, t, low
    l = -libm.INFINITY if a == 0 else l
    l = l if a < libm.INFINITY else a            # infinity and NaN are their own logarithms
    p = y * l
    p_low = product_error(y, l, p) + y * l_low
    p_low = p_low if (p > -746.0) & (p < 710.0) & (libm.fabs(y) < 1e290) else 0.0
    p = 710.0 if p > 710.0 else p
    p = -746.0 if p < -746.0 else p
    p = exp_parts(p, p_low, &t, &low)
    return two_scale(p + low, t)


cdef inline real power_(real x, real y) noexcept nogil:
    """As C's pow."""
    cdef double out, k, f
    cdef uint64_t exponent
    cdef real half = y * <real>0.5
    cdef bint whole = round_(y) == y, odd = whole & (round_(half) != half)
    if real is float:
        out = libm.fabs(<double>x)               # a normal number even where x is subnormal
        f = log_reduce(out, &k, &exponent)
        out = exp2_medium(y * log_special(out, k + (f - log_rest(f)) * 1.4426950408889634))
    else:
        out = power_magnitude(libm.fabs(x), y)
    out = <double>libm.NAN if (x < 0) & (x > -<real>libm.INFINITY) & (not whole) else out
    out = -out if odd & (copysign_(<real>1, x) < 0) else out
    return <real>(1.0 if (y == 0) | (x == 1) | ((x == -1) & (absolute_(y) == <real>libm.INFINITY)) else out)


cdef inline real hypot_(real x, real y) noexcept nogil:
    cdef double a, b, scale, back
    if real is float:
        a = libm.sqrt(<double>x * <double>x + <double>y * <double>y)
    else:
        # Scaled by a power of two where squares would overflow or lose bits.
        a = maximum_(libm.fabs(x), libm.fabs(y))
        scale = 1.2882297539194267e-231 if a > 3.273390607896142e+150 else 1.0                    # 2**-767, 2**500
        back = 7.762590461503545e+230 if a > 3.273390607896142e+150 else 1.0
        scale = 7.762590461503545e+230 if a < 3.054936363499605e-151 else scale                   # 2**767, 2**-500
        back = 1.2882297539194267e-231 if a < 3.054936363499605e-151 else back
        a = x * scale
        b = y * scale
        a = libm.sqrt(a * a + b * b) * back
    return <real>libm.INFINITY if isinf_(x) | isinf_(y) else <real>a


# ---- trigonometric: x = k pi/2 + r, |r| <= pi/4.  Where trig_far(x), the loops call the C library instead ----

cdef inline bint trig_far(real x) noexcept nogil:
    if real is float:
        return libm.fabsf(x) > <float>1e8
    else:
        return libm.fabs(x) > 1.6e6


cdef inline double trig_reduce(double x, double* t, double* low) noexcept nogil:
    """r, its rounding error in low[0], and k + SHIFT in t[0]."""
    cdef double k, a, b, c, r
    t[0] = x * 0.6366197723675814 + SHIFT
    k = t[0] - SHIFT
    a = x - k * 1.5707963267341256               # pi/2 in pieces of 33 bits: these products are exact
    b = -(k * 6.077100506303966e-11)
    c = a + b
    b = sum_error[double](a, b, c) - k * 2.0222662487959506e-21
    r = c + b
    low[0] = sum_error[double](c, b, r)
    return r


cdef inline double trig_reduce_medium(double x, double* t) noexcept nogil:
    cdef double k
    t[0] = x * 0.6366197723675814 + SHIFT
    k = t[0] - SHIFT
    return ((x - k * 1.5707963109016418) - k * 1.5893254712295857e-08) - k * 6.123233995736766e-17


cdef inline double sin_poly(double r, double low) noexcept nogil:
    cdef double z = r * r
    return r + (low * (1 - 0.5 * z) + r * z * poly5[double](z, -0.16666666666666632, 0.008333333333322382, -0.00019841269829779003,
                                                            2.7557313680836847e-06, -2.5050756226840537e-08, 1.5896678254262912e-10))


cdef inline double cos_poly(double r, double low) noexcept nogil:
    cdef double z = r * r, h = 0.5 * z, w = 1 - h
    return w + (((1 - w) - h) + (z * z * poly5[double](z, 0.0416666666666666, -0.0013888888888874066, 2.480158728944401e-05,
                                                       -2.755731434064817e-07, 2.087572160565254e-09, -1.135955776173439e-11) - r * low))


cdef inline double sin_medium(double r) noexcept nogil:
    cdef double z = r * r
    return r + r * z * poly2[double](z, -0.1666665490971123, 0.008332175821490847, -0.00019516969575849756)


cdef inline double cos_medium(double r) noexcept nogil:
    cdef double z = r * r
    return 1 - 0.5 * z + z * z * poly2[double](z, 0.04166664681916571, -0.0013887364777746723, 2.4438104611130846e-05)


cdef inline double sincos(double s, double c, uint64_t quadrant) noexcept nogil:
    """The sine of an angle whose reduced part has sine s and cosine c."""
    # By masks, because SSE2 cannot compare 64-bit integers.
    cdef uint64_t odd = <uint64_t>0 - (quadrant & 1)
    return bits_double(((double_bits(s) & ~odd) | (double_bits(c) & odd)) ^ ((quadrant & 2) << 62))


cdef inline real sin_(real x) noexcept nogil:
    cdef double t, r, low
    if real is float:
        r = trig_reduce_medium(x, &t)
        return copysign_zero(<float>sincos(sin_medium(r), cos_medium(r), double_bits(t)), x)
    else:
        r = trig_reduce(x, &t, &low)
        return copysign_zero(sincos(sin_poly(r, low), cos_poly(r, low), double_bits(t)), x)


cdef inline real cos_(real x) noexcept nogil:
    cdef double t, r, low
    if real is float:
        r = trig_reduce_medium(x, &t)
        return <float>sincos(sin_medium(r), cos_medium(r), double_bits(t) + 1)
    else:
        r = trig_reduce(x, &t, &low)
        return sincos(sin_poly(r, low), cos_poly(r, low), double_bits(t) + 1)


cdef inline real tan_(real x) noexcept nogil:
    cdef double t, r, low, s, c, a, b
    if real is float:
        r = trig_reduce_medium(x, &t)
        s = sin_medium(r)
        c = cos_medium(r)
    else:
        r = trig_reduce(x, &t, &low)
        s = sin_poly(r, low)
        c = cos_poly(r, low)
    a = sincos(s, c, double_bits(t))
    b = sincos(s, c, double_bits(t) + 1)
    return copysign_zero(<real>(a / b), x)


cdef inline real copysign_zero(real y, real x) noexcept nogil:
    """y, but x where x is 0: sums lose the sign of -0."""
    return x if x == 0 else y


cdef inline real sin_library(real x) noexcept nogil:
    return <real>libm.sin(x)


cdef inline real cos_library(real x) noexcept nogil:
    return <real>libm.cos(x)


cdef inline real tan_library(real x) noexcept nogil:
    return <real>libm.tan(x)


# ---- hyperbolic ----

cdef inline double sinh_small(double x) noexcept nogil:
    """For |x| <= 1."""
    cdef double z = x * x
    return x + x * z * poly6(z, 0.16666666666666669, 0.008333333333333134, 0.00019841269841441742, 2.7557319153999096e-06,
                             2.5052123619204783e-08, 1.6057222586235428e-10, 7.759866896608749e-13)


cdef inline double exp_half(double x) noexcept nogil:
    """e**x / 2 for 0 <= x, without overflow as long as the result has none."""
    cdef double t, low
    x = 712.0 if x > 712.0 else x
    x = exp_reduce(x, 0, &t, &low)
    return two_scale(0.5 + 0.5 * exp_poly(x), t)


cdef inline real sinh_(real x) noexcept nogil:
    cdef double a = libm.fabs(<double>x), h, y
    if real is float:
        a = 100.0 if a > 100.0 else a
        h = 0.5 * exp_medium(a)
    else:
        h = exp_half(a)
    y = h - 0.25 / h
    return copysign_(<real>(sinh_small(a) if a < 1 else y), x)


cdef inline real cosh_(real x) noexcept nogil:
    cdef double a = libm.fabs(<double>x), h
    if real is float:
        a = 100.0 if a > 100.0 else a
        h = 0.5 * exp_medium(a)
    else:
        h = exp_half(a)
    return <real>(h + 0.25 / h)


cdef inline real tanh_(real x) noexcept nogil:
    """1 - 2 / (e**(2 |x|) + 1), and near 0, where that cancels, a polynomial."""
    cdef real a = absolute_(x), z = a * a, near, e
    cdef double t, low
    cdef float tf
    if real is float:
        near = a + a * z * poly4[float](z, -0.3333333207928518, 0.1333312115959427, -0.05391064228104202, 0.02131573798068953,
                                        -0.006620616816941198)
        a = <float>10 if a > <float>10 else a
        e = exp_reducef(a + a, &tf)
        e = (<float>1 + exp_polyf(e)) * bits_float((float_bits(tf) << 23) + 0x3f800000)
    else:
        near = a + a * z * poly10(z, -0.3333333333333333, 0.13333333333332742, -0.05396825396746233, 0.02186948849485351,
                                  -0.00886323442307404, 0.0035921106876096198, -0.0014556641303808608, 0.00058894665379947,
                                  -0.00023466427066927317, 8.515867506855078e-05, -2.06326119250432e-05)
        a = 20.0 if a > 20.0 else a
        e = (1 + exp_poly(exp_reduce(a + a, 0, &t, &low))) * two_power(t)
    return copysign_(near if a < <real>0.55 else <real>1 - <real>2 / (e + <real>1), x)
