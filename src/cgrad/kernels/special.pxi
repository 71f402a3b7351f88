"""Gamma, Bessel, zeta and normal distribution functions, and what is computed from two whole numbers.

Owns: lgamma, digamma, zeta (Hurwitz), i0, i0e, i1, i1e, erfinv, erfcx, ndtr, ndtri, log_ndtr, nextafter, gcd, lcm, the exponent of
frexp, their loops and table entries.  At most 2 ulp for x > 0 and where there is no zero nearby, some 6 ulp for zeta.  All are computed
element by element, with branches, real functions in float64.  Polynomials were interpolated at Chebyshev nodes with 40 digits.
Rules as in scalar.pxi.  Read next: reduce.pxi.
"""

cdef extern from *:
    """
    /* erf(x) / x - 1 in x^2 <= 0.58 */
    static const double CGRAD_ERF[] = {
        0.1283791670955126, -0.37612638903183754, 0.11283791670955073, -0.0268661706451145, 0.005223977625163121,
        -0.0008548326995995719, 0.00012055331267499597, -1.4925579774695448e-05, 1.6460170325896344e-06,
        -1.6330308609111005e-07, 1.4391288286692908e-08, -9.427548852709676e-10};
    /* lgamma(2 + t) / (t (1 + t)), |t| <= 1 */
    static const double CGRAD_LGAMMA[] = {
        0.42278433509846713, -0.10031730167435421, 0.03296500062115597, -0.012384192193336403, 0.00499864116468036,
        -0.0021081308352055112, 0.0009153769228592748, -0.0004057073767183402, 0.00018255262896164608, -8.30953205143401e-05,
        3.816898383928973e-05, -1.7660549436859962e-05, 8.221641184688458e-06, -3.851628024568635e-06, 1.8101965374585382e-06,
        -8.417878185566207e-07, 3.9829198619176525e-07, -2.1160209415295267e-07, 1.0090082501416391e-07,
        -1.9155798912805917e-08, 8.980752931319328e-09, -2.9689377236178223e-08, 1.4354602538186547e-08, 7.546982106044216e-09,
        -3.6707781973177215e-09, -3.045083104616406e-09, 1.4756784497956257e-09};
    /* lgamma(0.75 + t) / (t - 0.25), -0.3 <= t <= 0.25 */
    static const double CGRAD_LGAMMA_LOW[] = {
        -0.8131238057251815, 1.0909482962451644, -0.7199661103625964, 0.6552243694396696, -0.6729879446903798,
        0.7347350822585668, -0.8319115819832483, 0.9651524145583324, -1.139602559041655, 1.3637773792377959, -1.649532628761302,
        2.0122016757291163, -2.472599230932275, 3.069036657345231, -3.8160725583898745, 4.533477847137322, -5.809318896009745,
        10.178580367780876, -9.843019861600515, -7.488709975814497, -19.726381471556387, 84.79546083837553};
    /* digamma(2 + t) / (2 + t - root), |t| <= 1 */
    static const double CGRAD_DIGAMMA[] = {
        0.7853075386041052, -0.26073895468300134, 0.10899991701765432, -0.049551032917686935, 0.023447309595886052,
        -0.011338432552414434, 0.005552254218753452, -0.0027395729068705873, 0.001358141553176395, -0.0006753130512021924,
        0.0003364375027261533, -0.00016781775052066207, 8.375296415605426e-05, -4.183287870102062e-05, 2.0986038744475146e-05,
        -1.0488231214428746e-05, 5.036637483076053e-06, -2.5177902138657835e-06, 1.6139770098511155e-06, -8.06929901632468e-07,
        -2.6603375448605673e-08, 1.3308078507989082e-08, 3.507870021296414e-07, -1.7539270230074725e-07,
        -1.0656650754868837e-07, 5.328329384194519e-08, 3.5522369338099865e-08, -1.7761164657311092e-08};
    /* i0(x) as a series in x^2 / 4 */
    static const double CGRAD_I0[] = {
        1.0, 1.0, 0.25, 0.027777777777777776, 0.001736111111111111, 6.944444444444444e-05, 1.9290123456790124e-06,
        3.936759889140842e-08, 6.151187326782565e-10, 7.594058428126624e-12, 7.594058428126623e-14, 6.276081345559193e-16,
        4.358389823304995e-18, 2.5789288895295828e-20, 1.3157800456783586e-22, 5.8479113141260385e-25, 2.2843403570804838e-27,
        7.904291893012054e-30, 2.4395962632753253e-32, 6.757884385804225e-35, 1.6894710964510564e-37, 3.8310002187098785e-40,
        7.915289708078262e-43, 1.4962740468957016e-45, 2.5976979980828152e-48, 4.156316796932504e-51};
    /* sqrt(x) e**-x i0(x) with t = 16 / x - 1, x >= 8 */
    static const double CGRAD_I0_FAR[] = {
        0.4021765094450081, 0.003360551983667854, 0.00013621607439232746, 1.1143033791556743e-05, 1.4838475473607391e-06,
        2.973598432479169e-07, 8.87225351128584e-08, 3.932602459703109e-08, 2.1545177650836005e-08, 7.553516470355896e-09,
        -6.729724111923548e-09, -1.3404241991980871e-08, -5.4685974495866e-09, 7.540601378890834e-09, 7.58022133915272e-09,
        -3.4857887470034955e-09, -6.188265090497361e-09, 1.497880830187091e-09, 3.881151253996067e-09, -5.562201990080394e-10,
        -1.7789375042917173e-09, 1.4672236659214398e-10, 5.181936971288284e-10, -1.9216763724933513e-11, -7.06893851181878e-11};
    /* 2 i1(x) / x as a series in x^2 / 4 */
    static const double CGRAD_I1[] = {
        1.0, 0.5, 0.08333333333333333, 0.006944444444444444, 0.00034722222222222224, 1.1574074074074073e-05,
        2.755731922398589e-07, 4.920949861426052e-09, 6.834652585313961e-11, 7.594058428126623e-13, 6.903689480115112e-15,
        5.230067787965994e-17, 3.352607556388458e-19, 1.842092063949702e-21, 8.771866971189057e-24, 3.654944571328774e-26,
        1.3437296218120491e-28, 4.391273273895586e-31, 1.2839980333028028e-33, 3.3789421929021126e-36, 8.045100459290744e-39,
        1.7413637357772174e-41, 3.4414303078601135e-44, 6.234475195398757e-47, 1.0390791992331261e-49, 1.5985833834355786e-52};
    /* sqrt(x) e**-x i1(x) */
    static const double CGRAD_I1_FAR[] = {
        0.38939845902587233, -0.009749577193235728, -0.00021923576383430274, -1.5038547201176271e-05, -1.8349101134666435e-06,
        -3.483855609009937e-07, -1.0001323461066435e-07, -4.312935369971356e-08, -2.337059627111857e-08, -8.426622829598154e-09,
        6.715795128085017e-09, 1.4029693589852716e-08, 6.040877342160988e-09, -7.630751970065577e-09, -8.044231276166508e-09,
        3.406636130196794e-09, 6.4870195719816896e-09, -1.4171698018664596e-09, -4.047785403711858e-09, 5.146498826087142e-10,
        1.8513716745511988e-09, -1.342266320082222e-10, -5.388285995923524e-10, 1.7502497778701306e-11, 7.347992441734663e-11};
    /* (2k)! / B_2k, k = 1, 2, ... */
    static const double CGRAD_ZETA[] = {
        12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183791606e9, 7.47242496e10, -2.950130727918164224e12,
        1.1646782814350067249e14, -4.5979787224074726105e15, 1.8152105401943546773e17, -7.1661652561756670113e18};
    #define CGRAD_COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))
    """
    const double[1] LGAMMA "CGRAD_LGAMMA", LGAMMA_LOW "CGRAD_LGAMMA_LOW", DIGAMMA "CGRAD_DIGAMMA"
    const double[1] I0 "CGRAD_I0", I0_FAR "CGRAD_I0_FAR", I1 "CGRAD_I1", I1_FAR "CGRAD_I1_FAR", ZETA "CGRAD_ZETA", ERF "CGRAD_ERF"
    int COUNT "CGRAD_COUNT" (const double* a) noexcept nogil


cdef inline double horner(const double* c, int n, double x) noexcept nogil:
    """c[0] + c[1] x + ... + c[n - 1] x**(n - 1), n at least 2: even and odd powers apart, so that one need not wait for the other."""
    cdef double p = c[n - 1], q = c[n - 2], z = x * x
    cdef int i = n - 3
    while i > 0:
        p = p * z + c[i]
        q = q * z + c[i - 1]
        i -= 2
    return p * z + (q * x + c[0]) if i == 0 else p * x + q


# ---- gamma functions ----

cdef double lgamma_positive(double x) noexcept nogil:
    """x > 0."""
    cdef double l, low, y, p = 1
    if x >= 16:                                  # Stirling's series
        l = log_pair(x, &low)
        y = 1 / x
        p = 0.41893853320467274 + y * poly4[double](y * y, 1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188)
        return (x - 0.5) * (l - 1) + ((x - 0.5) * low + p)
    if x < 0.45:
        return x * (x - 1) * horner(LGAMMA, COUNT(LGAMMA), x - 1) - log_[double](x)
    if x < 1:
        return (x - 1) * horner(LGAMMA_LOW, COUNT(LGAMMA_LOW), x - 0.75)
    while x >= 3:
        x -= 1
        p *= x
    y = (x - 1) * (x - 2) * horner(LGAMMA, COUNT(LGAMMA), x - 2)
    return (y if p == 1 else log_[double](p) + y) + 0.0            # +0 at 1, not -0


cdef inline double lgamma_double(double x) noexcept nogil:
    cdef double a = libm.fabs(x)
    if not a < libm.INFINITY:
        return a
    if x > 0:
        return lgamma_positive(x)
    if x == libm.floor(x):
        return libm.INFINITY
    if a < 1e-17:
        return -log_[double](a)
    return log_[double](libm.M_PI / (a * libm.fabs(libm.sin(libm.M_PI * (a - libm.rint(a)))))) - lgamma_positive(a)


cdef double digamma_positive(double x) noexcept nogil:
    """x > 0."""
    cdef double y, s = 0
    if x >= 16:
        y = 1 / x
        s = y * y
        return log_[double](x) - (0.5 * y + s * poly5[double](s, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760))
    if x < 1:
        s = -1 / x
        x -= 1
    else:
        while x >= 3:
            x -= 1
            s += 1 / x
        x -= 2
    # The root is at 2 - 0.538...
    return ((x + 0.5383678550316378) - 9.549995429965697e-17) * horner(DIGAMMA, COUNT(DIGAMMA), x) + s


cdef double digamma_double(double x) noexcept nogil:
    cdef double r
    if x > 0:
        return digamma_positive(x) if x < libm.INFINITY else x
    if x == 0:
        return -copysign_[double](libm.INFINITY, x)
    r = x - libm.rint(x)
    if not libm.fabs(r) > 0:                     # poles without a side, -infinity, NaN
        return libm.NAN
    return digamma_positive(1 - x) - libm.M_PI / libm.tan(libm.M_PI * r)


cdef double zeta_positive(double s, double q) noexcept nogil:
    """Sum of (q + k)**-s over k = 0, 1, ... for s > 1, q > 0: some terms, and the rest by Euler and Maclaurin."""
    cdef double a = q, b = power_[double](q, -s), total = b, factor = 1, k = 0, term
    cdef int i = 0
    if q > 1e17 * s:                             # q**-s may vanish before the sum does
        return power_[double](q, 1 - s) / (s - 1)
    while i < 9 or a <= 9:
        i += 1
        a += 1
        b = power_[double](a, -s)
        total += b
        if b < 1e-17 * total:
            return total
    total += b * (a / (s - 1) - 0.5)
    for i in range(COUNT(ZETA)):
        factor *= s + k
        b /= a
        term = factor * b / ZETA[i]
        total += term
        if libm.fabs(term) < 1e-17 * total:
            break
        factor *= s + k + 1
        b /= a
        k += 2
    return total


cdef double zeta_double(double s, double q) noexcept nogil:
    cdef double h, other
    if s != s or q != q or s < 1:
        return libm.NAN
    if s == 1:
        return libm.INFINITY
    if q > 0:
        return zeta_positive(s, q) if q < libm.INFINITY else 0.0
    if q == libm.floor(q):
        return libm.INFINITY
    if s != libm.floor(s):
        return libm.NAN
    h = -q - libm.floor(-q)                      # the terms below 0 are those of another zeta, with signs
    other = zeta_positive(s, h) - zeta_positive(s, 1 - q)
    if -q < 1:
        other = power_[double](-q, -s)
    return zeta_positive(s, 1 - h) + (other if libm.fmod(s, 2) == 0 else -other)


# ---- modified Bessel functions ----

cdef double bessel_near(const double* c, int n, double h, double order, double* low) noexcept nogil:
    """The series in h^2, for h <= 4, with its rounding error in low[0].

    The last steps add up to the most and are followed up; what h^2 lost counts by the slope of the logarithm (to a few percent).
    """
    cdef double z = h * h, p = horner(c + 4, n - 4, z), p_low = 0, m
    cdef int i
    for i in range(3, -1, -1):
        m = p * z
        p_low = p_low * z + product_error(p, z, m)
        p = c[i] + m
        p_low += sum_error[double](c[i], m, p)
    low[0] = p_low + p * product_error(h, h, z) * 2 / (order + 0.5 + libm.sqrt(4 * z + (order + 1.5) * (order + 1.5)))
    return p


cdef double bessel(const double* near, int n, const double* far, int m, double x, double order, bint scaled) noexcept nogil:
    """i0 or i1 of x >= 0: a series up to 8, then e**x P(16 / x - 1) / sqrt(x); times e**-x if `scaled`."""
    cdef double h = 0.5 * x, f, q, q_low, r, p, t, low, power = -x
    if x <= 8:
        q = bessel_near(near, n, h, order, &q_low)
        if order == 1:
            f = q
            q = f * h
            q_low = q_low * h + product_error(f, h, q)
        if not scaled:
            return q + q_low
    else:
        r = libm.sqrt(x)
        f = horner(far, m, 16 / x - 1)
        q = f / r
        if scaled:
            return q
        if x > 720:
            return libm.INFINITY
        q_low = (q * product_error(r, r, x) * 0.5 / r - product_error(q, r, f)) / r
        power = x
    p = exp_parts(power, 0, &t, &low)
    r = p * q
    return two_scale(r + (product_error(p, q, r) + (low * q + p * q_low)), t)


cdef double i0_double(double x) noexcept nogil:
    return bessel(I0, COUNT(I0), I0_FAR, COUNT(I0_FAR), libm.fabs(x), 0, False)


cdef double i0e_double(double x) noexcept nogil:
    return bessel(I0, COUNT(I0), I0_FAR, COUNT(I0_FAR), libm.fabs(x), 0, True)


cdef double i1_double(double x) noexcept nogil:
    return copysign_[double](bessel(I1, COUNT(I1), I1_FAR, COUNT(I1_FAR), libm.fabs(x), 1, False), x)


cdef double i1e_double(double x) noexcept nogil:
    return copysign_[double](bessel(I1, COUNT(I1), I1_FAR, COUNT(I1_FAR), libm.fabs(x), 1, True), x)


# ---- relatives of the error function ----

cdef double erfcx_double(double x) noexcept nogil:
    cdef double z, t, low, p, q, a = libm.fabs(x)
    if x > 27:                                   # asymptotic series
        z = 0.5 / x / x
        return 0.5641895835477563 / x * (1 - z * (1 - 3 * z * (1 - 5 * z * (1 - 7 * z * (1 - 9 * z * (1 - 11 * z))))))
    if x >= 0.5:
        q = erfc_ratio(x, &low)
        return q + low
    if x < -27:
        return libm.INFINITY
    z = a * a
    p = exp_parts(z, product_error(a, a, z), &t, &low)
    if x < -0.5:
        q = two_scale(p + low, t)
        return 2 * q - erfc_ratio(a, &low)
    return two_scale(p * erfc_[double](x), t)


cdef double ndtr_double(double x) noexcept nogil:
    cdef double a = libm.fabs(x), z, t, p, p_low, q, q_low, r
    if a < 0.7:
        return 0.5 + x * normal_slope(x * x)
    a = 40.0 if a > 40.0 else a
    z = a * a
    p = exp_parts(-0.5 * z, -0.5 * product_error(a, a, z), &t, &p_low)
    q = gelu_ratio(a, &q_low)
    r = p * q
    r = two_scale(r + (product_error(p, q, r) + (p * q_low + p_low * q)), t)
    return 1 - r if x > 0 else r


cdef double log_ndtr_double(double x) noexcept nogil:
    cdef double a = -x, z = 0.5 * x * x, q, q_low, l, l_low
    if x >= 0:
        return log1p_[double](-ndtr_double(-x))
    if x > -0.7:
        return log1p_core(2 * x * normal_slope(x * x), 0, False) - 0.6931471805599453
    if a < 38:
        q = gelu_ratio(a, &q_low)
        l = log_pair(q, &l_low)
        return (l - z) + (l_low + q_low / q - 0.5 * product_error(a, a, 2 * z))
    return log_[double](erfcx_double(a * 0.7071067811865476)) - 0.6931471805599453 - z


cdef double inverse_start(double w) noexcept nogil:
    """erfinv(x) / x to 7 digits, for w = 1 - x^2 > 1e-7 (Giles, "Approximating the erfinv function", 2010)."""
    cdef double p
    w = -log_[double](w)
    if w < 5:
        w -= 2.5
        p = 3.43273939e-07 + w * 2.81022636e-08
        p = -3.5233877e-06 + w * p
        p = -4.39150654e-06 + w * p
        return poly5[double](w, 1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, p)
    w = libm.sqrt(w) - 3
    p = 0.00134934322 + w * (0.000100950558 - w * 0.000200214257)
    p = -0.00367342844 + w * p
    return poly5[double](w, 2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, p)


cdef double erf_inverse(double x, double x_low) noexcept nogil:
    """y with erf(y) = x + x_low, for |x| <= 0.7: one step of Halley's method, the small difference without rounding."""
    cdef double y = x * inverse_start((1 - x) * (1 + x))
    cdef double p = ((y - x) + y * horner(ERF, COUNT(ERF), y * y) - x_low) * 0.886226925452758 * exp_[double](y * y)
    return y - p / (1 + y * p)


cdef double erfc_inverse(double z) noexcept nogil:
    """y with erfc(y) = z, for 0 < z <= 1/2."""
    cdef double l = -log_[double](z), w, y, p
    cdef int i
    if z >= 0.3:
        w = 1 - z
        return erf_inverse(w, (1 - w) - z)
    if l > 15:
        # Newton's method for y^2 - log(erfcx(y)) = -log(z): nothing underflows, and the start is right to 2 digits.
        y = libm.sqrt(l - 0.5 * log_[double](3.141592653589793 * l))
        for i in range(3):
            p = erfcx_double(y)
            y -= (y * y - log_[double](p) - l) * p * 0.886226925452758
        return y
    y = (1 - z) * inverse_start(z * (2 - z))
    p = (1 - z / erfc_[double](y)) * erfcx_double(y) * 0.886226925452758
    return y + p / (1 - y * p)


cdef double erfinv_double(double x) noexcept nogil:
    cdef double a = libm.fabs(x)
    if a <= 0.7:
        return erf_inverse(x, 0)
    if a < 1:
        return copysign_[double](erfc_inverse(1 - a), x)
    return copysign_[double](libm.INFINITY, x) if a == 1 else libm.NAN


cdef double ndtri_double(double p) noexcept nogil:
    cdef double y, out, tail = p if p <= 0.5 else 1 - p
    if not tail > 0:
        return libm.NAN if tail != 0 else -libm.INFINITY if p == 0 else libm.INFINITY
    y = -erfc_inverse(2 * tail) if tail < 0.25 else erfinv_double(2 * tail - 1)
    out = 1.4142135623730951 * y
    out += product_error(1.4142135623730951, y, out) - 9.667293313452913e-17 * y
    return out if p <= 0.5 else -out


# ---- bits and whole numbers ----

cdef inline real exponent_(real x) noexcept nogil:
    """e with x = m 2**e and 1/2 <= |m| < 1; 0 for what has none."""
    cdef int e = 0
    libm.frexp(x, &e)
    return <real>e if absolute_(x) < <real>libm.INFINITY else <real>0


cdef inline real nextafter_(real x, real y) noexcept nogil:
    if real is float:
        return libm.nextafterf(x, y)
    else:
        return libm.nextafter(x, y)


cdef inline uint64_t magnitude(integer x) noexcept nogil:
    return -<uint64_t>x if x < 0 else <uint64_t>x


cdef inline integer gcd_(integer x, integer y) noexcept nogil:
    cdef uint64_t a = magnitude(x), b = magnitude(y), r
    while b:
        r = a % b
        a = b
        b = r
    return <integer>a


cdef inline integer lcm_(integer x, integer y) noexcept nogil:
    """0 if either is 0; wraps where it does not fit."""
    cdef uint64_t a = magnitude(x), b = magnitude(y), r
    while b:
        r = a % b
        a = b
        b = r
    return <integer>(magnitude(x) // a * magnitude(y)) if a else <integer>0


# ---- loops and table ----

cdef inline real lgamma_(real x) noexcept nogil: return <real>lgamma_double(x)
cdef inline real digamma_(real x) noexcept nogil: return <real>digamma_double(x)
cdef inline real i0_(real x) noexcept nogil: return <real>i0_double(x)
cdef inline real i0e_(real x) noexcept nogil: return <real>i0e_double(x)
cdef inline real i1_(real x) noexcept nogil: return <real>i1_double(x)
cdef inline real i1e_(real x) noexcept nogil: return <real>i1e_double(x)
cdef inline real erfcx_(real x) noexcept nogil: return <real>erfcx_double(x)
cdef inline real erfinv_(real x) noexcept nogil: return <real>erfinv_double(x)
cdef inline real ndtr_(real x) noexcept nogil: return <real>ndtr_double(x)
cdef inline real ndtri_(real x) noexcept nogil: return <real>ndtri_double(x)
cdef inline real log_ndtr_(real x) noexcept nogil: return <real>log_ndtr_double(x)
cdef inline real zeta_(real x, real y) noexcept nogil: return <real>zeta_double(x, y)

cdef void lgamma_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_unary_map(lgamma_[real], p, s, n)
cdef void digamma_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_unary_map(digamma_[real], p, s, n)
cdef void i0_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_unary_map(i0_[real], p, s, n)
cdef void i0e_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_unary_map(i0e_[real], p, s, n)
cdef void i1_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_unary_map(i1_[real], p, s, n)
cdef void i1e_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_unary_map(i1e_[real], p, s, n)
cdef void erfcx_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_unary_map(erfcx_[real], p, s, n)
cdef void erfinv_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_unary_map(erfinv_[real], p, s, n)
cdef void ndtr_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_unary_map(ndtr_[real], p, s, n)
cdef void ndtri_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_unary_map(ndtri_[real], p, s, n)
cdef void log_ndtr_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_unary_map(log_ndtr_[real], p, s, n)
cdef void exponent_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_unary_map(exponent_[real], p, s, n)
cdef void zeta_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_binary_map(zeta_[real], p, s, n)
cdef void nextafter_loop(real** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_binary_map(nextafter_[real], p, s, n)
cdef void gcd_loop(integer** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_binary_map(gcd_[integer], p, s, n)
cdef void lcm_loop(integer** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil: branching_binary_map(lcm_[integer], p, s, n)


cdef void enter_special_real(KernelTable* table, int dtype, real* tag) noexcept:
    put(table, dtype, b"lgamma", 1, 40, <loop_t>lgamma_loop[real])
    put(table, dtype, b"digamma", 1, 40, <loop_t>digamma_loop[real])
    put(table, dtype, b"i0", 1, 30, <loop_t>i0_loop[real])
    put(table, dtype, b"i0e", 1, 30, <loop_t>i0e_loop[real])
    put(table, dtype, b"i1", 1, 30, <loop_t>i1_loop[real])
    put(table, dtype, b"i1e", 1, 30, <loop_t>i1e_loop[real])
    put(table, dtype, b"erfcx", 1, 30, <loop_t>erfcx_loop[real])
    put(table, dtype, b"erfinv", 1, 80, <loop_t>erfinv_loop[real])
    put(table, dtype, b"ndtr", 1, 20, <loop_t>ndtr_loop[real])
    put(table, dtype, b"ndtri", 1, 120, <loop_t>ndtri_loop[real])
    put(table, dtype, b"log_ndtr", 1, 40, <loop_t>log_ndtr_loop[real])
    put(table, dtype, b"exponent", 1, 10, <loop_t>exponent_loop[real])
    put(table, dtype, b"zeta", 2, 300, <loop_t>zeta_loop[real])
    put(table, dtype, b"nextafter", 2, 10, <loop_t>nextafter_loop[real])


cdef void enter_special_integer(KernelTable* table, int dtype, integer* tag) noexcept:
    put(table, dtype, b"gcd", 2, 100, <loop_t>gcd_loop[integer])
    put(table, dtype, b"lcm", 2, 100, <loop_t>lcm_loop[integer])


cdef void register_special(KernelTable* table) noexcept:
    enter_special_integer(table, UINT8, <uint8_t*>NULL)
    enter_special_integer(table, INT8, <int8_t*>NULL)
    enter_special_integer(table, INT16, <int16_t*>NULL)
    enter_special_integer(table, INT32, <int32_t*>NULL)
    enter_special_integer(table, INT64, <int64_t*>NULL)
    enter_special_real(table, FLOAT32, <float*>NULL)
    enter_special_real(table, FLOAT64, <double*>NULL)
