"""The regularised incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x), in float64.

Owns: the power series, the continued fraction and the choice between them (Gil, Segura and Temme 2012, "Efficient and accurate algorithms for
the computation and inversion of the incomplete gamma function ratios"; Cephes), and Temme's expansion for large a near x (DLMF 8.12).
x**a e**-x / gamma(a + 1) is computed without cancellation (Loader 2000, "Fast and accurate computation of binomial probabilities").
Included by doors.pyx alone: its loops have branches, so no instruction set makes them faster.
"""
from libc.math cimport INFINITY, NAN, erfc, exp, expm1, fabs, lgamma, log, sqrt

cdef double EPSILON = 1.1102230246251565e-16

cdef extern from *:
    """
    /* Taylor coefficients in eta of the first three functions of Temme's expansion */
    static const double CGRAD_TEMME[3][10] = {
        {-3.3333333333333333e-1, 8.3333333333333333e-2, -1.4814814814814815e-2, 1.1574074074074074e-3, 3.527336860670194e-4,
         -1.7875514403292181e-4, 3.9192631785224378e-5, -2.1854485106799922e-6, -1.85406221071516e-6, 8.296711340953086e-7},
        {-1.8518518518518519e-3, -3.4722222222222222e-3, 2.6455026455026455e-3, -9.9022633744855967e-4, 2.0576131687242798e-4,
         -4.0187757201646091e-7, -1.8098550334489978e-5, 7.6491609160811101e-6, -1.6120900894563446e-6, 4.6471278028074343e-9},
        {4.1335978835978836e-3, -2.6813271604938272e-3, 7.7160493827160494e-4, 2.0093878600823045e-6, -1.0736653226365161e-4,
         5.2923448829120125e-5, -1.2760635188618728e-5, 3.4235787340961381e-8, 1.3721957309062933e-6, -6.298992138380055e-7}};
    """
    const double CGRAD_TEMME[3][10]


cdef double stirling_error(double n) noexcept nogil:
    """log(n!) less Stirling's formula for it."""
    cdef double nn = n * n
    if n <= 15:
        return lgamma(n + 1) - (n + 0.5) * log(n) + n - 0.91893853320467274178
    return (1. / 12 - (1. / 360 - (1. / 1260 - (1. / 1680 - 1. / 1188 / nn) / nn) / nn) / nn) / n


cdef double deviance(double a, double x) noexcept nogil:
    """a log(a / x) + x - a."""
    cdef double v, term, total, last = 0
    cdef int j = 1
    if fabs(a - x) >= 0.1 * (a + x):
        return a * log(a / x) + x - a
    v = (a - x) / (a + x)
    total = (a - x) * v
    term = 2 * a * v
    while total != last:
        last = total
        term *= v * v
        total += term / (2 * j + 1)
        j += 1
    return total


cdef double factor(double a, double x) noexcept nogil:
    """x**a e**-x / gamma(a + 1)."""
    return exp(-stirling_error(a) - deviance(a, x)) / (2.5066282746310005 * sqrt(a))


cdef double series(double a, double x) noexcept nogil:
    """P by its power series."""
    cdef double r = a, term = 1, total = 1, common = factor(a, x)
    if common == 0:
        return 0
    while term > EPSILON * total:
        r += 1
        term *= x / r
        total += term
    return total * common


cdef double fraction(double a, double x) noexcept nogil:
    """Q by its continued fraction, for x above a."""
    cdef double y = 1 - a, z = x + y + 1, c = 0, p2 = 1, q2 = x, p1 = x + 1, q1 = z * x, out = p1 / q1, p, q, change = 1
    cdef double common = a * factor(a, x)
    if common == 0:
        return 0
    while change > EPSILON:
        c += 1
        y += 1
        z += 2
        p, q = p1 * z - p2 * (y * c), q1 * z - q2 * (y * c)
        if q != 0:
            change = fabs((out - p / q) / (p / q))
            out = p / q
        p2, p1, q2, q1 = p1, p, q1, q
        if fabs(p) > 4.5e15:
            p2, p1, q2, q1 = p2 * EPSILON, p1 * EPSILON, q2 * EPSILON, q1 * EPSILON
        if c > 100000:
            break
    return out * common


cdef double complement(double a, double x) noexcept nogil:
    """Q for small x and a, where it is no difference of nearly equal numbers."""
    cdef double power = 1, term = 1, total = 0, n = 0, y = 1 + a, logs
    while fabs(term) > EPSILON * fabs(total):
        n += 1
        power *= -x / n
        term = power / (a + n)
        total += term
    logs = a * log(x) - lgamma(y) - (1.6449340668482264 * a - 0.57721566490153287) * (a - (y - 1))     # what rounding took from 1 + a
    return -expm1(logs) - exp(logs) * a * total


cdef double expansion(double a, double x, bint upper) noexcept nogil:
    """P or Q by Temme's expansion, for large a not far from x."""
    cdef double half = deviance(a, x), eta = sqrt(2 * half / a), total = 0, scale = 1, c
    cdef int k, n
    eta = -eta if x < a else eta
    for k in range(3):
        c = 0
        for n in range(9, -1, -1):
            c = c * eta + CGRAD_TEMME[k][n]
        total += c * scale
        scale /= a
    total *= exp(-half) / (2.5066282746310005 * sqrt(a))
    return erfc(eta * sqrt(a / 2)) / 2 + total if upper else erfc(-eta * sqrt(a / 2)) / 2 - total


cdef double incomplete_gamma(double a, double x, bint upper) noexcept nogil:
    if not (a >= 0 and x >= 0) or a == 0 and x == 0 or a == INFINITY and x == INFINITY:
        return NAN
    if x == 0 or a == INFINITY:
        return upper
    if a == 0 or x == INFINITY:
        return not upper
    if a > 1e5 and fabs(x - a) < 0.2 * a:
        return expansion(a, x, upper)
    if x > 1.1 and x >= a:
        return fraction(a, x) if upper else 1 - fraction(a, x)
    if not upper:
        return 1 - fraction(a, x) if x > 1 and x > a else series(a, x)
    if x > 1.1 or (-0.4 / log(x) < a if x <= 0.5 else x * 1.1 < a):
        return 1 - series(a, x)
    return complement(a, x)
