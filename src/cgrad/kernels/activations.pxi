"""The error function, the activations of neural networks, and the gradient formulas that cost one pass over memory.

Owns: erf, erfc, gelu, sigmoid and their kin.  At most 2 ulp, also where the result is tiny: gelu(-30) has all its digits.
Rules as in scalar.pxi; the tools are those of transcendental.pxi.  Read next: elementwise.pxi.
"""

# ---- sigmoid, silu, softplus ----

cdef inline real over_one_plus(real x, real x_low, real e) noexcept nogil:
    """(x + x_low) / (1 + e) for 0 <= e <= 1, corrected for the rounding of 1 + e; 1/d is needed to a few percent only."""
    cdef real d = <real>1 + e, q = x / d
    return q + (x_low - q * ((<real>1 - d) + e)) * (<real>1.457 - <real>0.5 * d)


cdef inline double gated(double x, double v, double p, double p_low, double t) noexcept nogil:
    """v / (1 + e) for x >= 0, v e / (1 + e) for x < 0, where e = (p + p_low) 2**k = e**-|x| and |v| is 1 or |x|."""
    cdef double top = v if x >= 0 else v * p
    cdef double q = over_one_plus(top, 0.0 if x >= 0 else product_error(v, p, top) + v * p_low, two_scale(p, t))
    q = q if x >= 0 else two_scale(q, t)         # scaled last, so that subnormal results are rounded once
    return v if x > 100 else q                   # inf - inf * 0 would be NaN


cdef inline real sigmoid_(real x) noexcept nogil:
    cdef double a, p, low, t
    cdef float e
    if real is float:
        e = exp_[float](-absolute_(x))
        return over_one_plus(<float>1 if x >= 0 else e, <float>0, e)
    else:
        a = libm.fabs(x)
        p = exp_parts(-(800.0 if a > 800.0 else a), 0, &t, &low)
        return gated(x, 1, p, low, t)


cdef inline real silu_(real x) noexcept nogil:
    cdef double v = x, a = libm.fabs(v), t, low, p, e
    if real is float:
        v = -300.0 if v < -300.0 else v          # -inf * 0 would be NaN; the limit is -0
        e = exp_medium(-(300.0 if a > 300.0 else a))
        return <float>((v if v >= 0 else v * e) / (1 + e))
    else:
        v = -800.0 if v < -800.0 else v
        p = exp_parts(-(800.0 if a > 800.0 else a), 0, &t, &low)
        return gated(v, v, p, low, t)


cdef inline real softplus_(real x) noexcept nogil:
    cdef double a = libm.fabs(<double>x), top = <double>x if x > 0 else <double>0
    if real is float:
        a = 300.0 if a > 300.0 else a
        return <float>(top + log1p_core(exp_medium(-a), 0, True))
    else:
        return top + log1p_core(exp_[double](-a), 0, False)


cdef inline real logsigmoid_(real x) noexcept nogil:
    return -softplus_[real](-x)


cdef inline real logaddexp_(real x, real y) noexcept nogil:
    cdef double a = maximum_(x, y), d = minimum_(x, y) - a
    d = 0.0 if x == y else d                     # inf - inf
    return <real>(a + log1p_core(exp_[double](d), 0, False))


cdef inline bint logaddexp_cancels(real x, real y) noexcept nogil:
    """Whether the sum above may lose digits (double only: float32 results have them to spare)."""
    cdef real a = maximum_(x, y)
    return (a < 0) & (a > <real>-1.4) if real is double else False


cdef inline real logaddexp_careful(real x, real y) noexcept nogil:
    """With long double near 0, where a and the logarithm cancel: right to 2 ulp for results above 1e-4, to 1e-19 below."""
    cdef long double a
    cdef real out = logaddexp_(x, y)
    if real is double:
        if -0.3 < out < 0.3:
            a = maximum_(x, y)
            return <double>(a + libm.log1pl(libm.expl(<long double>minimum_(x, y) - a)))
    return out


# ---- the error function: near 0 a polynomial, further out e**(-x^2) P(t) / (x + K) with t = (x - K) / (x + K) ----

cdef inline double erf_small(double x) noexcept nogil:
    """|x| <= 0.75."""
    cdef double z = x * x
    return x + x * poly10(z, 0.1283791670955126, -0.37612638903183715, 0.1128379167095245, -0.02686617064439508, 0.0052239776150303,
                          -0.000854832616256149, 0.00012055288496463505, -1.4924169197502151e-05, 1.6430269514722635e-06,
                          -1.5936554793880756e-07, 1.1459857048891095e-08)


cdef inline double erf_small_medium(double x) noexcept nogil:
    cdef double z = x * x
    return x + x * poly5[double](z, 0.12837916548505793, -0.3761261863268062, 0.11283374505739512, -0.02683450695838127,
                                 0.005114077474042046, -0.0006747402741108389)


cdef inline double ratio_end(double x, double k, double d, double t, double a, double a1, double p, double b,
                             double c, double rest, double* low) noexcept nogil:
    """(a + t (a1 + t p) + rest) d with its rounding errors in low[0].

    An error e in d = 1 / (x + k) costs e (1 + b d + c d^2) (a fit, to a few percent): e by the factor d, the rest by t = 1 - 2 k d,
    whose own rounding comes on top.
    """
    cdef double s = x + k, u = t * p, v = a1 + u, tp = t * v, q = a + tp, m = b + c * d
    cdef double e = -product_error(d, s, 1) - d * sum_error[double](x, k, s)
    cdef double w = 2 * k * d, t_low = sum_error[double](1, -w, t) - product_error(2 * k, d, w)
    rest = rest + t * (sum_error[double](a1, u, v) + product_error(t, p, u)) + (sum_error[double](a, tp, q) + product_error(t, v, tp))
    low[0] = d * (rest + q * (e * (1 + d * m) - t_low * (m * (0.5 / k))))
    return q * d


cdef inline double erfc_ratio(double x, double* low) noexcept nogil:
    """e**(x^2) erfc(x) for 0.49 <= x <= 27.4."""
    cdef double d = 1 / (x + 4), t = 1 - 8 * d, p
    p = -1.1857855345565186e-08
    p = p * t + 1.329316923386239e-09
    p = p * t + 1.1866511384669653e-07
    p = p * t - 7.613371243777454e-08
    p = p * t - 8.415866456628866e-07
    p = p * t + 1.4246007230315603e-06
    p = p * t + 4.69204665091525e-06
    p = p * t - 1.8861042514178235e-05
    p = p * t - 3.6343985577969344e-06
    p = p * t + 0.00017681285324061362
    p = p * t - 0.00045505284538820286
    p = p * t - 0.0002809588698625862
    p = p * t + 0.006112055676754649
    p = p * t - 0.026370053340054173
    p = p * t + 0.07638151490769826
    p = p * t - 0.1740109372399391
    p = p * t + 0.3308515878780754
    p = p * t - 0.5408538313132353
    p = p * t + 0.7732087022652361
    # What the roundings of the coefficients add up to, as a cubic.
    return ratio_end(x, 4, d, t, 1.095995661000491, -0.976548729080882, p, 3.5, 38,
                     poly3[double](t, 5.93732891643433e-17, -1.936404110619232e-17, 5.446688363329684e-17, 2.9508313548024355e-17), low)


cdef inline double erfc_ratio_medium(double x) noexcept nogil:
    cdef double d = 1 / (x + 3), t = 1 - 6 * d
    return poly9(t, 1.0740069081701147, -0.8833944640264235, 0.5902282185529479, -0.3104667503883903, 0.1195307166578868,
                 -0.026833122210516723, -0.0012357994035643988, 0.003056600777958525, -0.0004675899652392775, -0.0002952519207719504) * d


cdef inline double gelu_ratio(double x, double* low) noexcept nogil:
    """e**(x^2/2) erfc(x / sqrt 2) / 2 for 0.69 <= x <= 38.8."""
    cdef double d = 1 / (x + 5.65625), t = 1 - 11.3125 * d, p
    p = -8.381710972736948e-09
    p = p * t + 1.00653527350065e-09
    p = p * t + 8.38475993453182e-08
    p = p * t - 5.441799015684029e-08
    p = p * t - 5.941447320083052e-07
    p = p * t + 1.0104288232088459e-06
    p = p * t + 3.306816735046312e-06
    p = p * t - 1.3340278524728903e-05
    p = p * t - 2.4804393983512285e-06
    p = p * t + 0.00012483141420913815
    p = p * t - 0.0003219326693056375
    p = p * t - 0.00019640987226760315
    p = p * t + 0.004313777012499386
    p = p * t - 0.01862710646654037
    p = p * t + 0.053974547693675275
    p = p * t - 0.12299257676981838
    p = p * t + 0.2338860596712919
    p = p * t - 0.38238335849339006
    p = p * t + 0.5466994283692712
    return ratio_end(x, 5.65625, d, t, 0.7749814524090856, -0.6905043563577526, p, 4.95, 76,
                     poly3[double](t, -3.4924952968330065e-17, -2.7336442029799572e-17, 6.821726779456292e-19, 5.398866122310703e-18), low)


cdef inline double gelu_ratio_medium(double x) noexcept nogil:
    cdef double d = 1 / (x + 4.25), t = 1 - 8.5 * d
    return poly9(t, 0.7595542090297585, -0.6251297855014408, 0.41822742844401506, -0.22051562323948906, 0.08527415770491037,
                 -0.019362876619424804, -0.0007619251882338588, 0.002167108666498087, -0.00034658562883502984, -0.00020820384396199413) * d


cdef inline real erf_(real x) noexcept nogil:
    cdef double a = libm.fabs(<double>x), small, big, t, low, p
    a = 6.0 if a > 6.0 else a
    if real is float:
        small = erf_small_medium(a)
        big = 1 - exp_medium(-a * a) * erfc_ratio_medium(a)
    else:
        small = erf_small(a)
        p = exp_reduce(-a * a, 0, &t, &low)
        big = 1 - (1 + exp_poly(p)) * two_power(t) * erfc_ratio(a, &low)
    return copysign_(<real>(small if a < 0.75 else big), x)


cdef inline real erfc_(real x) noexcept nogil:
    cdef double a = libm.fabs(<double>x), z, t, r, p, p_low, q, q_low, tail, v = x
    if real is float:
        a = 12.0 if a > 12.0 else a
        tail = exp_medium(-a * a) * erfc_ratio_medium(a)
        return <float>(1 - erf_small_medium(v) if a < 0.5 else (tail if x > 0 else 2 - tail))
    else:
        a = 28.0 if a > 28.0 else a
        z = a * a
        p = exp_parts(-z, -product_error(a, a, z), &t, &p_low)
        q = erfc_ratio(a, &q_low)
        r = p * q
        tail = two_scale(r + (product_error(p, q, r) + (p * q_low + p_low * q)), t)
        return 1 - erf_small(v) if a < 0.5 else (tail if x > 0 else 2 - tail)


# ---- gelu ----

cdef inline double normal_slope(double z) noexcept nogil:
    """(Phi(x) - 1/2) / x as a function of z = x^2, for |x| <= 0.7."""
    return poly8(z, 0.3989422804014327, -0.06649038006690501, 0.009973557010012289, -0.0011873282149894573, 0.0001154346824757997,
                 -9.444625977394766e-06, 6.658643040419681e-07, -4.1013373571147535e-08, 2.0375945385488214e-09)


cdef inline double normal_slope_medium(double z) noexcept nogil:
    return poly4[double](z, 0.398942279909017, -0.06649033026380227, 0.009972746442745574, -0.0011826831605909693, 0.00010445078954320464)


cdef inline real gelu_(real x) noexcept nogil:
    cdef double v = x, a = libm.fabs(<double>x), z, r, t, p, p_low, q, q_low, tail
    if real is float:
        v = -15.0 if v < -15.0 else v            # -inf * 0 would be NaN
        a = 15.0 if a > 15.0 else a
        tail = exp_medium(-0.5 * a * a) * gelu_ratio_medium(a)
        r = 0.5 + v * normal_slope_medium(v * v)
        r = r if a < 0.7 else (1 - tail if v > 0 else tail)
        return <float>(v * r)
    else:
        v = -40.0 if v < -40.0 else v
        a = 40.0 if a > 40.0 else a
        z = a * a
        p = exp_parts(-0.5 * z, -0.5 * product_error(a, a, z), &t, &p_low)
        q = gelu_ratio(a, &q_low)
        r = p * q
        q = product_error(p, q, r) + (p * q_low + p_low * q)
        tail = v * (1 - two_scale(r, t)) if v > 0 else two_scale(v * r + v * q, t)
        p = normal_slope(z)
        q = v * p
        r = 0.5 + q
        q = ((0.5 - r) + q) + product_error(v, p, q)
        return v * r + v * q if a < 0.7 else tail


cdef inline real gelu_tanh_(real x) noexcept nogil:
    """x / (1 + e**-w), w = 2 sqrt(2/pi) (x + 0.044715 x^3)."""
    cdef double v = x, a, z, zl, p, pl, s, sl, w, wl, t, low, e
    if real is float:
        v = -20.0 if v < -20.0 else v
        a = libm.fabs(20.0 if v > 20.0 else v)
        e = exp_medium(-a * (1.5957691216057308 + 0.07135481627260025 * a * a))
        return <float>((v if v >= 0 else v * e) / (1 + e))
    else:
        # w reaches 700: its error must be carried along.
        v = -22.0 if v < -22.0 else v
        a = libm.fabs(22.0 if v > 22.0 else v)
        z = a * a
        zl = product_error(a, a, z)
        p = 0.07135481627260025 * z
        pl = product_error(0.07135481627260025, z, p) + (0.07135481627260025 * zl - 6.175149918155315e-19 * z)
        s = 1.5957691216057308 + p
        sl = sum_error[double](1.5957691216057308, p, s) + (pl - 9.96930880911092e-17)
        w = a * s
        wl = product_error(a, s, w) + a * sl
        p = exp_parts(-w, -wl, &t, &low)
        return gated(v, v, p, low, t)


# ---- gradients ----

cdef inline real tanh_backward_(real g, real out) noexcept nogil:
    return g * (<real>1 - out) * (<real>1 + out)


cdef inline real sigmoid_backward_(real g, real out) noexcept nogil:
    return g * out * (<real>1 - out)


cdef inline real relu_backward_(real g, real out) noexcept nogil:
    return <real>0 if out <= 0 else g


cdef inline real sqrt_backward_(real g, real out) noexcept nogil:
    return g / (out + out)


cdef inline real square_backward_(real g, real x) noexcept nogil:
    return g * (x + x)


cdef inline real cube_backward_(real g, real x) noexcept nogil:
    return g * (<real>3 * x * x)


cdef inline real reciprocal_backward_(real g, real out) noexcept nogil:
    return -g * out * out


cdef inline real absolute_backward_(real g, real x) noexcept nogil:
    return g * sign_(x)


cdef inline real sin_backward_(real g, real x) noexcept nogil:
    return g * cos_(x)


cdef inline real cos_backward_(real g, real x) noexcept nogil:
    return -g * sin_(x)


cdef inline bint trig_backward_far(real g, real x) noexcept nogil:
    return trig_far(x)


cdef inline real sin_backward_library(real g, real x) noexcept nogil:
    return g * cos_library(x)


cdef inline real cos_backward_library(real g, real x) noexcept nogil:
    return -g * sin_library(x)


cdef inline real softplus_backward_(real g, real x) noexcept nogil:
    return g * sigmoid_(x)


cdef inline real silu_backward_(real g, real x) noexcept nogil:
    """s (1 + x (1 - s)), with 1 - s taken from e**-|x| so that it has its digits."""
    cdef real a = absolute_(x), e, s, c
    a = <real>800 if a > <real>800 else a        # inf * 0 would be NaN
    e = exp_[real](-a)
    s = (<real>1 if x >= 0 else e) / (<real>1 + e)
    c = (e if x >= 0 else <real>1) / (<real>1 + e)
    return g * (s * (<real>1 + (a if x >= 0 else -a) * c))


cdef inline real gelu_backward_(real g, real x) noexcept nogil:
    """Phi(x) + x phi(x)."""
    cdef double v = x, a, z, e, phi, tail, t, low
    v = -40.0 if v < -40.0 else (40.0 if v > 40.0 else v)
    if real is float:
        v = -20.0 if v < -20.0 else (20.0 if v > 20.0 else v)
    a = libm.fabs(v)
    z = v * v
    if real is float:
        e = exp_medium(-0.5 * z)
        tail = e * gelu_ratio_medium(a)
        phi = 0.5 + v * normal_slope_medium(z)
    else:
        e = exp_reduce(-0.5 * z, -0.5 * product_error(a, a, z), &t, &low)
        e = two_scale(1 + exp_poly(e), t)
        tail = e * gelu_ratio(a, &low)
        phi = 0.5 + v * normal_slope(z)
    phi = phi if a < 0.7 else (1 - tail if v > 0 else tail)
    return g * <real>(phi + v * 0.3989422804014327 * e)


cdef inline real gelu_tanh_backward_(real g, real x) noexcept nogil:
    """s + x s (1 - s) w', s = sigmoid(w), w = 2 sqrt(2/pi) (x + 0.044715 x^3)."""
    cdef double v = x, a, z, e, s, c
    v = -40.0 if v < -40.0 else (40.0 if v > 40.0 else v)
    a = libm.fabs(v)
    z = v * v
    if real is float:
        e = -a * (1.5957691216057308 + 0.07135481627260025 * z)
        e = exp_medium(-600.0 if e < -600.0 else e)
    else:
        e = exp_[double](-a * (1.5957691216057308 + 0.07135481627260025 * z))
    s = (1.0 if v >= 0 else e) / (1 + e)
    c = (e if v >= 0 else 1.0) / (1 + e)
    return g * <real>(s * (1 + v * c * (1.5957691216057308 + 0.2140644488178007 * z)))


cdef inline real maximum_backward_(real g, real x, real y) noexcept nogil:
    return g * <real>0.5 if x == y else <real>0 if x < y else g


cdef inline real minimum_backward_(real g, real x, real y) noexcept nogil:
    return g * <real>0.5 if x == y else <real>0 if x > y else g


cdef inline real divide_backward_y_(real g, real x, real y) noexcept nogil:
    return -g * (x / y) / y


cdef inline real power_backward_x_(real g, real x, real y) noexcept nogil:
    cdef real p = power_(x, y - <real>1)
    return <real>0 if y == 0 or p == 0 else g * y * p              # the limit for an infinite exponent, too
