"""Inverse trigonometric and hyperbolic functions, and what is made of logarithms.

Owns: asin, acos, atan, atan2, asinh, acosh, atanh, xlogy, xlog1py, entr and logit, at most 2 ulp.  The inverse functions reduce their
argument to where an odd polynomial of some ten terms serves (fitted as in transcendental.pxi, whose tools these are).  Rules as in
scalar.pxi.  Read next: activations.pxi.
"""

cdef extern from *:
    """
    #define CGRAD_HALF_PI 1.5707963267948966
    #define CGRAD_HALF_PI_LOW 6.123233995736766e-17
    #define CGRAD_HALF_PIF 1.5707963705062866f
    #define CGRAD_HALF_PIF_LOW -4.3711390001862426e-08f
    """
    const double HALF_PI "CGRAD_HALF_PI"
    const double HALF_PI_LOW "CGRAD_HALF_PI_LOW"
    const float HALF_PIF "CGRAD_HALF_PIF"
    const float HALF_PIF_LOW "CGRAD_HALF_PIF_LOW"


cdef inline real half_pi(real like) noexcept nogil:
    return HALF_PIF if real is float else HALF_PI


cdef inline real half_pi_low(real like) noexcept nogil:
    """pi/2 - half_pi"""
    return HALF_PIF_LOW if real is float else HALF_PI_LOW


# ---- asin and acos: beyond 1/2 by asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)) ----

cdef inline real asin_poly(real s, real z) noexcept nogil:
    """asin(s) - s for z = s^2 <= 1/4."""
    if real is float:
        return s * z * poly4[float](z, 0.16666753929181521, 0.07495241726149661, 0.04547710449894055, 0.024147571708654118,
                                    0.042218618985092486)
    else:
        return s * z * poly11(z, 0.16666666666665383, 0.0750000000034304, 0.04464285682348952, 0.030381959330854445,
                              0.022371753534688177, 0.01735977091723274, 0.013884600435676698, 0.012173266271802926,
                              0.006510909034037195, 0.01957375758711492, -0.01629384812905753, 0.031958816937297976)


cdef inline real asin_(real x) noexcept nogil:
    cdef real a = absolute_(x)
    cdef real z = (<real>1 - a) * <real>0.5 if a > <real>0.5 else a * a
    cdef real s = sqrt_(z) if a > <real>0.5 else a                  # NaN beyond 1
    cdef real p = asin_poly(s, z)
    cdef real h = half_pi(x) - <real>2 * s       # may lie in the binade above that of the result: its rounding error counts
    cdef real far = h + (((half_pi(x) - h) - <real>2 * s) - (<real>2 * p - half_pi_low(x)))
    return copysign_(far if a > <real>0.5 else s + p, x)


cdef inline real acos_(real x) noexcept nogil:
    cdef real a = absolute_(x)
    cdef real z = (<real>1 - a) * <real>0.5 if a > <real>0.5 else a * a
    cdef real s = sqrt_(z) if a > <real>0.5 else x
    cdef real p = asin_poly(s, z)
    cdef real near = half_pi(x) - (s + (p - half_pi_low(x)))
    cdef real far = <real>2 * (s + p) if x > 0 else (<real>2 * half_pi(x) - <real>2 * s) - <real>2 * (p - half_pi_low(x))
    return far if a > <real>0.5 else near


# ---- atan: angles above pi/8 are measured from pi/4, those above 3 pi/8 from pi/2 ----

cdef inline real atan_poly(real t) noexcept nogil:
    """atan(t) - t for |t| <= tan(pi/8)."""
    cdef real z = t * t
    if real is float:
        return t * z * poly4[float](z, -0.3333331549739008, 0.19998488902465772, -0.14243837799835724, 0.10595915203232582,
                                    -0.060832221508377804)
    else:
        return t * z * poly10(z, -0.333333333333332, 0.19999999999954043, -0.1428571428024431, 0.11111110785915827,
                              -0.09090897829765746, 0.07692061513548783, -0.06663118931493821, 0.05847998031354479,
                              -0.05039795150113746, 0.03807701034235288, -0.017920812135671087)


cdef inline real atan_(real x) noexcept nogil:
    cdef real a = absolute_(x), n, d, loss, t, p, turn
    n = a - <real>1 if a > <real>0.4142135623730950 else a
    d = a + <real>1 if a > <real>0.4142135623730950 else <real>1
    # The rounding of d, as a part of d, would cost half an ulp; 1/d is needed to a few percent only.
    loss = ((<real>1 - d) + a) * (<real>0.97 - <real>0.207 * d) if a > <real>0.4142135623730950 else <real>0
    turn = <real>0.5 if a > <real>0.4142135623730950 else <real>0
    n = -<real>1 if a > <real>2.414213562373095 else n
    d = a if a > <real>2.414213562373095 else d
    loss = <real>0 if a > <real>2.414213562373095 else loss
    turn = <real>1 if a > <real>2.414213562373095 else turn
    t = n / d
    p = atan_poly(t) - t * loss
    return copysign_(turn * half_pi(x) + (t + (p + turn * half_pi_low(x))), x)


cdef inline real remainder_of_quotient(real n, real d, real t) noexcept nogil:
    """n - t d, where t is about n / d."""
    cdef double p
    if real is float:
        return <float>(<double>n - <double>t * <double>d)
    else:
        p = t * d
        return (n - p) - product_error(t, d, p)


cdef inline real atan2_(real y, real x) noexcept nogil:
    """The angle of (x, y): that of the nearest multiple of pi/4 and the arc tangent of a quotient in [-tan(pi/8), tan(pi/8)]."""
    cdef real a = absolute_(y), b = absolute_(x), n, n_low, d, d_low, r, t, p, turn, scale, up, down, tiny, huge, least
    cdef bint infinite = (a == <real>libm.INFINITY) | (b == <real>libm.INFINITY), left = copysign_(<real>1, x) < 0
    a = (<real>1 if a == <real>libm.INFINITY else <real>0) if infinite else a
    b = (<real>1 if b == <real>libm.INFINITY else <real>0) if infinite else b
    # By powers of two, away from overflow and from quotients of subnormal numbers.
    if real is float:
        tiny, up, huge, down, least = 1e-18, 1.152921504606847e+18, 1e32, 7.888609052210118e-31, 1e-36
    else:
        tiny, up, huge, down, least = 1e-240, 4.149515568880993e+180, 1e270, 7.888609052210118e-31, 1e-270
    t = a if a > b else b
    scale = up if t < tiny else (down if t > huge else <real>1)
    a = a * scale
    b = b * scale
    n = a - b if a > b * <real>0.4142135623730950 else a
    d = a + b if a > b * <real>0.4142135623730950 else b
    n_low = sum_error[real](a, -b, n) if a > b * <real>0.4142135623730950 else <real>0
    d_low = sum_error[real](a, b, d) if a > b * <real>0.4142135623730950 else <real>0
    turn = <real>1 if a > b * <real>0.4142135623730950 else <real>0
    n = -b if a > b * <real>2.414213562373095 else n
    d = a if a > b * <real>2.414213562373095 else d
    n_low = <real>0 if a > b * <real>2.414213562373095 else n_low
    d_low = <real>0 if a > b * <real>2.414213562373095 else d_low
    turn = <real>2 if a > b * <real>2.414213562373095 else turn
    d = <real>1 if d == 0 else d                 # atan2(0, 0) is an angle of 0 or pi
    r = <real>1 / d
    t = n * r
    turn = <real>4 - turn if left else turn
    # What this quotient lost, where that is not subnormal.
    p = (remainder_of_quotient(n, d, t) + (n_low - t * d_low)) * r
    p = atan_poly(t) + (p if absolute_(n) > least else <real>0)
    p = -p if left else p
    t = -t if left else t
    if real is float:                            # 12 and 40 bits of pi/4: those products are exact
        p = turn * <float>0.785400390625 + (t + (p + turn * <float>-2.2272275516893756e-06))
    else:
        p = turn * 0.7853981633970761 + (t + (p + turn * 3.7217737402433116e-13))
    return x + y if (x != x) | (y != y) else copysign_(p, y)


# ---- hyperbolic ----

cdef inline real asinh_(real x) noexcept nogil:
    """log(1 + w), w = a + a^2 / (1 + sqrt(1 + a^2)), a = |x|; far out log(2 a)."""
    cdef double a = libm.fabs(<double>x), q = a * a, t = q / (1 + libm.sqrt(q + 1)), w = a + t, low = (a - w) + t, y
    w = a if a > 1.152921504606847e18 else w
    low = 0.0 if a > 1.152921504606847e18 else low
    y = log1p_core(w, low, real is float)
    y = y + 0.6931471805599453 if a > 1.152921504606847e18 else y
    return copysign_(<real>(y if a < libm.INFINITY else a), x)


cdef inline real acosh_(real x) noexcept nogil:
    """log(1 + w), w = t + sqrt(t (t + 2)), t = x - 1; far out log(2 x)."""
    cdef double t = <double>x - 1, s = t + 2, v = t * s, r = libm.sqrt(v), w = r + t, low = (r - w) + t, p, y
    if real is double:
        p = r * r
        p = ((v - p) - product_error(r, r, p)) + (product_error(t, s, v) + t * ((2 - s) + t))
        low = low + (0.5 * p / r if r > 0 else 0.0)
    w = x if x > 1.152921504606847e18 else w
    low = 0.0 if x > 1.152921504606847e18 else low
    y = log1p_core(w, low, real is float)
    y = y + 0.6931471805599453 if x > 1.152921504606847e18 else y
    y = <double>libm.NAN if x < 1 else y
    return <real>(y if x < libm.INFINITY else <double>x)


cdef inline real atanh_poly(real s) noexcept nogil:
    """atanh(s) - s for |s| <= 0.201."""
    cdef real z = s * s
    if real is float:
        return s * z * poly2[float](z, 0.33333479136672206, 0.19978365098229137, 0.15192001842891953)
    else:
        return s * z * poly7(z, 0.3333333333333329, 0.2000000000003058, 0.14285714277389278, 0.1111111220616765, 0.09090829538290415,
                             0.07695665027962169, 0.0658499505893481, 0.06933564494067816)


cdef inline real atanh_(real x) noexcept nogil:
    """log(p / e) / 2, p = 1 + a, e = 1 - a, a = |x|.  With h = 2**k near p / e that is k ln(2) / 2 + atanh((p - h e) / (p + h e))."""
    cdef real a = absolute_(x), p = <real>1 + a, e = <real>1 - a, p_low = a - (p - <real>1), e_low = (<real>1 - e) - a
    cdef real h, k, n, n_low, d, d_low, s, y
    cdef uint64_t j
    cdef uint32_t jf
    # The difference of the bits as numbers is log2(p / e) to 9 %, so that |s| <= tanh(0.586 ln(2) / 2).
    if real is float:
        jf = (float_bits(p) - float_bits(e) + 0x400000) >> 23
        k = <float><int32_t>jf
        h = bits_float((jf << 23) + 0x3f800000)
    else:
        j = (double_bits(p) - double_bits(e) + 0x8000000000000ULL) >> 52
        k = bits_double(j | 0x4330000000000000ULL) - 4503599627370496.0
        h = bits_double((j << 52) + 0x3ff0000000000000ULL)
    e_low = h * e_low
    e = h * e
    n = (p - e) + (p_low - e_low)
    n_low = ((p - e) - n) + (p_low - e_low)
    d = (p + e) + (p_low + e_low)
    d_low = ((p + e) - d) + (p_low + e_low)
    s = n / d
    y = atanh_poly(s) + (n_low - s * d_low) * (<real>0.73 - <real>0.125 * d)        # about 1/d
    if real is float:
        y = k * <float>0.3465728759765625 + (s + (y + k * <float>7.143034101547086e-07))
    else:
        y = k * 0.34657359028005885 + (s + (y - k * 8.619722262807417e-14))
    y = <real>libm.INFINITY if a == 1 else y
    return copysign_(<real>libm.NAN if a > 1 else y, x)


# ---- with logarithms ----

cdef inline real xlogy_(real x, real y) noexcept nogil:
    return <real>0 if (x == 0) & (y == y) else x * log_(y)


cdef inline real xlog1py_(real x, real y) noexcept nogil:
    return <real>0 if (x == 0) & (y == y) else x * log1p_(y)


cdef inline real entr_(real x) noexcept nogil:
    cdef real y = <real>0 if x == 0 else -x * log_(x)
    return -<real>libm.INFINITY if x < 0 else y


cdef inline real logit_(real x) noexcept nogil:
    cdef real near = <real>2 * atanh_(<real>2 * x - <real>1), far = log_(x / (<real>1 - x))
    return near if (x >= <real>0.25) & (x <= <real>0.75) else far
