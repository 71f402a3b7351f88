"""Special functions: gamma, zeta, Bessel, the normal distribution; and what else is computed from one or two numbers now and then.

Those that only `cgrad.special` names are not public here.  A rule's parameter names say what the tape keeps (see define.py).
The formulas of the kernels are in kernels/special.pxi.  Next: activation.py.
"""
import math

from cgrad.core import batching
from cgrad.core.arguments import as_floating, as_tensor, whole_number
from cgrad.core.dtype import promote_types
from cgrad.core.forward import copy, fill
from cgrad.core.tensor import Tensor
from cgrad.ops import compare, elementwise
from cgrad.ops.arithmetic import copysign, floor_divide, fmod, logaddexp, reciprocal, remainder, sign, square
from cgrad.ops.creation import asarray, full_like, ones_like, zeros_like
from cgrad.ops.define import ELEMENTWISE, NONDIFF, define, public
from cgrad.ops.elementwise import exp
from cgrad.ops.namespace import finfo, result_type
from cgrad.ops.results import Frexp
from cgrad.ops.shape import broadcast_tensors

# -------------------------------------------------------------------------------------------- gamma and zeta functions
lgamma = define(
    "lgamma", vjp=lambda g, x: g * digamma(x), kind=ELEMENTWISE, result="float",
    doc="""Logarithm of the absolute value of the gamma function, elementwise.

    Infinite at 0, -1, -2, ...  Gradient: ``g * digamma(x)``.

    >>> cg.lgamma(cg.tensor([0.5, 5.0]))
    tensor([0.5724, 3.1781])
    """)

digamma = define(
    "digamma", vjp=lambda g, x: g * zeta(2, x), kind=ELEMENTWISE, result="float",
    doc="""Logarithmic derivative of the gamma function, elementwise.

    Minus infinity at 0 (plus infinity at -0), NaN at -1, -2, ...  Gradient: ``g * polygamma(1, x)``.

    >>> cg.digamma(cg.tensor([0.5, 1.0, 5.0]))
    tensor([-1.9635, -0.5772,  1.5061])
    """)

# B(2k) / (2k)! of the Bernoulli numbers, for k = 1, 2, ...
_MACLAURIN = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600, -3617 / 10670622842880000,
              43867 / 5109094217170944000, -174611 / 802857662698291200000)


def _wide(x):
    """float32 for half precision, whose range is too small for the parts of a sum."""
    return x.astype("float32") if x.dtype.itemsize < 4 else x


def _exponent_slope(x, y):
    """The derivative of zeta in x: minus the sum of ``log(y + k) * (y + k)**-x``, by Euler and Maclaurin's formula after ten terms."""
    x = _wide(x)
    y = full_like(x, y) if isinstance(y, (int, float)) else _wide(y)
    slope = 0
    for k in range(10):
        slope = slope - elementwise.log(y + k) * (y + k) ** -x
    y = y + 10
    logarithm, power = elementwise.log(y), y ** -x
    slope = slope - power * (y / (x - 1) * (logarithm + 1 / (x - 1)) + logarithm / 2)
    product, logarithmic = x, 1 / x                   # of x (x + 1) ... and its logarithmic derivative
    for k, factor in enumerate(_MACLAURIN, 1):
        slope = slope + factor * product * power * y ** (1 - 2 * k) * (logarithmic - logarithm)
        for j in (2 * k - 1, 2 * k):
            product, logarithmic = product * (x + j), logarithmic + 1 / (x + j)
    return slope


zeta = define(
    "zeta", vjp=(lambda g, x, y: g * _exponent_slope(x, y), lambda g, x, y: -g * (x * zeta(x + 1, y))), kind=ELEMENTWISE, result="float", public=False,
    doc="""Hurwitz zeta function, elementwise: the sum of ``(y + k) ** -x`` over k = 0, 1, ...

    Infinite at ``x = 1`` and ``y = 0, -1, ...``, NaN for ``x < 1`` and where a power of a negative number is none.
    Gradient in `y`: ``-g * x * zeta(x + 1, y)``; in `x`: minus g times the sum of ``log(y + k) * (y + k) ** -x``, by the formula of Euler and
    Maclaurin, for positive `y`.

    >>> cg.special.zeta(cg.tensor([2.0, 3.0]), 1.0)
    tensor([1.6449, 1.2021])
    """)


def _incomplete(x, y, upper):
    from cgrad.kernels.doors import gammainc  # loaded by whoever needs it
    out = fill.empty("gammainc", (x.size,), "float64")
    gammainc(*[copy.contiguous(copy.cast(v, out.dtype)).reshape(-1) for v in (x, y)], out, upper)
    return copy.cast(out, x.dtype).reshape(x.shape)


def _shape_slope(g, x, y, upper):
    """The gradient in the shape x: by the series of P where y <= x + 1 and the continued fraction of Q elsewhere, term by term.

    Either takes as many terms as the square root of x, so a large x goes by the differences of P.
    """
    x, y = _wide(x), _wide(y)
    inside = (x >= 0) & (x < math.inf) & (y > 0) & (y < math.inf)
    large, low = inside & (x > 2e4), y <= x + 1
    few = inside & ~large
    sizes = batching.all_examples(compare.where(few, x + compare.clip(y, 0, 4e4), 1).detach())     # Q is 0 for a y beyond
    terms = 60 + 12 * int(math.sqrt(sizes.max().item())) if sizes.numel() else 0
    slope = compare.where((x >= 0) & (y >= 0) & (x != y), 0.0, math.nan)        # outside; x == y: both 0 or infinite
    slope = compare.where(few & low, _shape_slope_of_series(*_where_wanted(few & low, x, y, 1.0), terms), slope)
    slope = compare.where(few & ~low, -_shape_slope_of_fraction(*_where_wanted(few & ~low, x, y, 3.0), terms), slope)
    slope = compare.where(large, _shape_slope_of_differences(*_where_wanted(large, x, y, 1.0)), slope)
    return -g * slope if upper else g * slope


def _where_wanted(wanted, x, y, bound):
    """x and y where they are wanted, harmless numbers elsewhere."""
    return compare.where(wanted, x, 1), compare.where(wanted, y, bound)


def _shape_slope_of_series(x, y, terms):
    """P is the sum of ``exp(-y) y**(x + n) / gamma(x + n + 1)``; the logarithmic derivative of each is ``log(y) - digamma(x + n + 1)``."""
    logarithm, slopes = elementwise.log(y), digamma(x + 1)
    term = exp(x * logarithm - y - lgamma(x + 1))
    total = term * (logarithm - slopes)
    for n in range(1, terms):
        term, slopes = term * (y / (x + n)), slopes + 1 / (x + n)
        total = total + term * (logarithm - slopes)
    return total


def _shape_slope_of_fraction(x, y, terms):
    """Q is ``exp(-y) y**x / gamma(x)`` over Legendre's continued fraction, which is worked out from its end along with its derivative.

    With ``gamma(x + 1) / x`` for ``gamma(x)``, so that it holds at x = 0.
    """
    fraction, slope = y + (2 * terms + 1) - x, -1
    for n in range(terms, 0, -1):
        slope = n / fraction + n * (n - x) / (fraction * fraction) * slope - 1
        fraction = y + (2 * n - 1) - x - n * (n - x) / fraction
    logarithm = elementwise.log(y)
    return exp(x * logarithm - y - lgamma(x + 1)) / fraction * (1 + x * (logarithm - digamma(x + 1) - slope / fraction))


def _shape_slope_of_differences(x, y):
    """With d for P(x + 1/2) - P(x - 1/2) = ``-exp(-y) y**(x - 1/2) / gamma(x + 1/2)`` the slope of P is d - D2 d / 24 + 7 D4 d / 5760 ..."""
    x = x + 0.5
    excess = compare.clamp_min(y / x, 0.1) - 1
    logarithm = elementwise.log1p(excess)
    first, bend = square(logarithm + 0.5 / x), (1 + 0.5 / x) / x           # of the logarithmic derivative of d the square, and minus its slope
    second, fourth = first - bend, first * (first - 6 * bend) + 3 * bend * bend
    return exp(x * (logarithm - excess) - 1 / (12 * x)) * elementwise.sqrt(x / (2 * math.pi)) / y * (second / 24 - fourth * (7 / 5760) - 1)


def _incomplete_slope(g, x, y, upper):
    slope = exp(xlogy(x - 1, y) - y - lgamma(x))
    return -g * slope if upper else g * slope


_gammainc = define("gammainc", forward=_incomplete, inputs=("x", "y"), options=("upper",), vjp=(_shape_slope, _incomplete_slope),
                   batch=lambda x, y, upper, size, batched: _gammainc(
                       *[v if one else v.broadcast_to((size, *v.shape)) for v, one in zip((x, y), batched)], upper), public=False)


def _regularised(name, x, y, upper):
    """P or Q of two operands of any shapes and dtypes; a Python number takes the dtype of the tensor that it meets."""
    if isinstance(y, (int, float)):
        x = as_floating(name, x)
        y = full_like(x.detach(), y)
    y = as_floating(name, y)
    x = full_like(y.detach(), x) if isinstance(x, (int, float)) else as_floating(name, x)
    dtype = promote_types(x.dtype, y.dtype)
    return _gammainc(*broadcast_tensors(x.astype(dtype, copy=False), y.astype(dtype, copy=False)), upper)


@public(method=True)
def igamma(x, y):
    """Regularised lower incomplete gamma function P(x, y), elementwise: the integral of ``t**(x - 1) * exp(-t)`` from 0 to y over ``gamma(x)``.

    Parameters
    ----------
    x : Tensor
        The shape, not negative.
    y : Tensor
        The bound, not negative.

    Returns
    -------
    Tensor
        The broadcast shape and promoted dtype; NaN for negative arguments.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    ``cgrad.special.gammainc`` is another name.  Gradient in `y`: ``g * y**(x - 1) * exp(-y) / gamma(x)``; in `x`: by the series of P
    for ``y <= x + 1``, else by Legendre's continued fraction of Q (DLMF 8.11.4, 8.9.2), whose terms are differentiated.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.igamma(cg.tensor(1.0), cg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.6321])
    """
    return _regularised("igamma", x, y, False)


@public(method=True)
def igammac(x, y):
    """Regularised upper incomplete gamma function Q(x, y) = 1 - P(x, y), elementwise, accurate where it is small.

    Parameters
    ----------
    x, y : Tensor
        As for `igamma`.

    Returns
    -------
    Tensor
        The broadcast shape and promoted dtype; NaN for negative arguments.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    ``cgrad.special.gammaincc`` is another name.  Gradients: minus those of `igamma`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.igammac(cg.tensor(1.0), cg.tensor([0.0, 1.0]))
    tensor([1.0000, 0.3679])
    """
    return _regularised("igammac", x, y, True)


@public(method=False)
def polygamma(n, x):
    """The derivative of order `n` of `digamma`, elementwise.

    Parameters
    ----------
    n : int
        Not negative.
    x : Tensor

    Returns
    -------
    Tensor
        Integers give the default float.

    Raises
    ------
    ValueError
        If `n` is negative.

    Notes
    -----
    ``(-1)**(n + 1) * n! * zeta(n + 1, x)``.  Gradient: ``g * polygamma(n + 1, x)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.polygamma(1, cg.tensor([0.5, 1.0]))
    tensor([4.9348, 1.6449])
    """
    n = whole_number("polygamma", "the order n", n)
    if n < 0:
        raise ValueError(f"polygamma: the order n cannot be negative, got {n}")
    if n == 0:
        return digamma(x)
    factorial = float(math.factorial(n)) if n <= 170 else math.inf
    return zeta(n + 1, as_floating("polygamma", x)) * (factorial if n % 2 else -factorial)


@public(method=True)
def mvlgamma(x, p):
    """Logarithm of the multivariate gamma function of dimension `p`, elementwise.

    Parameters
    ----------
    x : Tensor
        Above ``(p - 1) / 2`` for the usual meaning.
    p : int
        At least 1.

    Returns
    -------
    Tensor
        Integers give the default float.

    Raises
    ------
    ValueError
        If `p` is less than 1.

    Notes
    -----
    ``p * (p - 1) / 4 * log(pi)`` plus the sum of ``lgamma(x - j / 2)`` over j = 0, ..., p - 1.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.mvlgamma(cg.tensor([2.0, 3.0]), 2)
    tensor([0.4516, 1.5502])
    """
    p = whole_number("mvlgamma", "the dimension p", p)
    if p < 1:
        raise ValueError(f"mvlgamma: the dimension p must be at least 1, got {p}")
    x = as_floating("mvlgamma", x)
    total = lgamma(x)
    for j in range(1, p):
        total = total + lgamma(x - j / 2)
    return total + p * (p - 1) / 4 * math.log(math.pi) if p > 1 else total

# ------------------------------------------------------------------------------------------- modified Bessel functions
def _near_zero(x, bound, series, other):
    """`series` of x where ``|x| < bound``, else `other`: quotients whose derivatives at 0 exist but cannot be computed as written."""
    near = abs(x) < bound
    return compare.where(near, series(compare.where(near, x, 0)), other(compare.where(near, 1, x)))


def _i1_series(x):
    """i1(x) / x for ``|x| < 0.02``."""
    z = x * x
    return 0.5 + z * (1 / 16 + z * (1 / 384 + z / 18432))

i0 = define(
    "i0", vjp=lambda g, x: g * i1(x), kind=ELEMENTWISE, result="float",
    doc="""Modified Bessel function of the first kind of order 0, elementwise.

    Gradient: ``g * i1(x)``.

    >>> cg.i0(cg.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """)

i0e = define(
    "i0e", vjp=lambda g, x, out: g * (i1e(x) - sign(x) * out), kind=ELEMENTWISE, result="float", public=False,
    doc="""Modified Bessel function of order 0 without its growth, elementwise: ``exp(-|x|) * i0(x)``.

    Gradient: ``g * (i1e(x) - sign(x) * out)``, 0 at 0.

    >>> cg.special.i0e(cg.tensor([0.0, 1.0, 1000.0]))
    tensor([1.0000, 0.4658, 0.0126])
    """)

def _i1_slope(x, out):
    beyond = compare.isinf(out)                # infinite as well, as is its slope, not the difference of two infinities
    safe = compare.where(beyond, 1, x)
    slope = i0(safe) - _near_zero(safe, 0.02, _i1_series, lambda x: i1(x) / x)
    return compare.where(beyond, abs(x), slope) * compare.where(beyond, math.inf, 1)


i1 = define(
    "i1", vjp=lambda g, x, out: g * _i1_slope(x, out), kind=ELEMENTWISE, result="float", public=False,
    doc="""Modified Bessel function of the first kind of order 1, elementwise.

    Gradient: ``g * (i0(x) - i1(x) / x)``, ``g / 2`` at 0.

    >>> cg.special.i1(cg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.5652])
    """)

def _i1e_over_x(x, out):
    return _near_zero(x, 0.02, lambda x: _i1_series(x) * exp(-abs(x)), lambda x: out / x)


i1e = define(
    "i1e", vjp=lambda g, x, out: g * (i0e(x) - out * sign(x) - _i1e_over_x(x, out)), kind=ELEMENTWISE, result="float", public=False,
    doc="""Modified Bessel function of order 1 without its growth, elementwise: ``exp(-|x|) * i1(x)``.

    Gradient: ``g * (i0e(x) - sign(x) * out - out / x)``, ``g / 2`` at 0.

    >>> cg.special.i1e(cg.tensor([0.0, 1.0, 1000.0]))
    tensor([0.0000, 0.2079, 0.0126])
    """)

# ------------------------------------------------------------------------------------- relatives of the error function
erfinv = define(
    "erfinv", vjp=lambda g, out: g * (exp(out * out) * (math.sqrt(math.pi) / 2)), kind=ELEMENTWISE, result="float",
    doc="""Inverse of the error function, elementwise.

    Infinite at -1 and 1, NaN beyond.  Gradient: ``g * sqrt(pi) / 2 * exp(out**2)``.

    >>> cg.erfinv(cg.tensor([0.0, 0.5, -1.0]))
    tensor([0.0000, 0.4769,   -inf])
    """)

def _erfcx_slope(x, out):
    """2 * x * erfcx(x) - 2 / sqrt(pi), from the asymptotic series where these two would cancel."""
    far = x > 50
    q = compare.where(far, square(reciprocal(compare.where(far, x, 1))) * 0.5, 0)
    tail = q * (q * (q * (q * (q * (1 - q * 11) * 9 - 1) * 7 + 1) * 5 - 1) * 3 + 1) * (-2 / math.sqrt(math.pi))
    return compare.where(far, tail, compare.where(far, 0, x) * out * 2 - 2 / math.sqrt(math.pi))


erfcx = define(
    "erfcx", vjp=lambda g, x, out: g * _erfcx_slope(x, out), kind=ELEMENTWISE, result="float", public=False,
    doc="""Complementary error function without its decay, elementwise: ``exp(x**2) * erfc(x)``.

    Gradient: ``g * (2 * x * out - 2 / sqrt(pi))``.

    >>> cg.special.erfcx(cg.tensor([0.0, 1.0, 100.0]))
    tensor([1.0000, 0.4276, 0.0056])
    """)

def _density(x):
    return elementwise.bell(x, 0.5) / math.sqrt(2 * math.pi)

ndtr = define(
    "ndtr", vjp=lambda g, x: g * _density(x), kind=ELEMENTWISE, result="float", public=False,
    doc="""Standard normal distribution function, elementwise: the probability of being below `x`.

    ``erfc(-x / sqrt(2)) / 2``, with all digits in the tail.  Gradient: ``g * exp(-x**2 / 2) / sqrt(2 * pi)``.

    >>> cg.special.ndtr(cg.tensor([0.0, 1.0]))
    tensor([0.5000, 0.8413])
    """)

ndtri = define(
    "ndtri", vjp=lambda g, out: g * (exp(out * out * 0.5) * math.sqrt(2 * math.pi)), kind=ELEMENTWISE, result="float", public=False,
    doc="""Quantile of the standard normal distribution, elementwise: the inverse of `ndtr`.

    Infinite at 0 and 1, NaN outside.  Gradient: ``g * sqrt(2 * pi) * exp(out**2 / 2)``.

    >>> cg.special.ndtri(cg.tensor([0.5, 0.975]))
    tensor([0.0000, 1.9600])
    """)

def _log_ndtr_slope(x):
    """Density over distribution function: on the left as a reciprocal of erfcx, which neither underflows nor cancels, and far left -x."""
    left, far = x < 0, x < -1e10
    middle = math.sqrt(2 / math.pi) / erfcx(compare.where(left & ~far, x, 0) * -math.sqrt(0.5))
    above = compare.where(left, 0, x)
    return compare.where(left, compare.where(far, -x, middle), _density(above) / ndtr(above))

log_ndtr = define(
    "log_ndtr", vjp=lambda g, x: g * _log_ndtr_slope(x), kind=ELEMENTWISE, result="float", public=False,
    doc="""Logarithm of the standard normal distribution function, elementwise.

    No underflow: -5005.5 at -100.  Gradient: ``g * exp(-x**2 / 2) / sqrt(2 * pi) / ndtr(x)``.

    >>> cg.special.log_ndtr(cg.tensor([0.0, -100.0]))
    tensor([-6.9315e-01, -5.0055e+03])
    """)

# ----------------------------------------------------------------------------------------------------- with logarithms
entr = define(
    "entr", vjp=lambda g, x: -g * (elementwise.log(x) + 1), kind=ELEMENTWISE, result="float", public=False,
    doc="""Summand of an entropy, elementwise: ``-x * log(x)``.

    0 at 0, minus infinity for negative numbers.  Gradient: ``-g * (log(x) + 1)``, infinite at 0.

    >>> cg.special.entr(cg.tensor([0.0, 0.5, 1.0]))
    tensor([ 0.0000,  0.3466, -0.0000])
    """)

def _where_pole(g, x, y, pole, value):
    """y, with `value` in place of what gives no gradient: ``x = 0`` at the pole and beyond."""
    y = full_like(g, y) if isinstance(y, (int, float)) else y
    return compare.where(compare.logical_and(x == 0, y <= pole), value, y)

xlogy = define(
    "xlogy", vjp=(lambda g, x, y: g * elementwise.log(_where_pole(g, x, y, 0, 1)), lambda g, x, y: g * (x / _where_pole(g, x, y, 0, math.inf))),
    kind=ELEMENTWISE, result="float",
    doc="""``x * log(y)``, elementwise, and 0 where ``x = 0``, whatever `y`, unless NaN.

    Gradient: ``g * log(y)`` and ``g * x / y``; 0 where ``x = 0`` and ``y <= 0``.

    >>> cg.xlogy(cg.tensor([0.0, 2.0]), cg.tensor([0.0, 3.0]))
    tensor([0.0000, 2.1972])
    """)

xlog1py = define(
    "xlog1py",
    vjp=(lambda g, x, y: g * elementwise.log1p(_where_pole(g, x, y, -1, 0)), lambda g, x, y: g * (x / (_where_pole(g, x, y, -1, math.inf) + 1))),
    kind=ELEMENTWISE, result="float", public=False,
    doc="""``x * log(1 + y)``, elementwise, and 0 where ``x = 0``, whatever `y`, unless NaN.

    Gradient: ``g * log(1 + y)`` and ``g * x / (1 + y)``; 0 where ``x = 0`` and ``y <= -1``.

    >>> cg.special.xlog1py(cg.tensor([0.0, 2.0]), cg.tensor([-1.0, 2.0]))
    tensor([0.0000, 2.1972])
    """)

_logit = define("logit", vjp=lambda g, x: g / x + g / (1 - x), kind=ELEMENTWISE, result="float", public=False)


@public(method=True)
def logit(x, eps=None):
    """Logarithm of the odds, elementwise: ``log(x / (1 - x))``, the inverse of `sigmoid`.

    Parameters
    ----------
    x : Tensor
    eps : float, optional
        `x` is first held between `eps` and ``1 - eps``.

    Returns
    -------
    Tensor
        Integers give the default float.

    Notes
    -----
    Infinite at 0 and 1, NaN outside.  Gradient: ``g / (x * (1 - x))``, with `eps` 0 outside of ``[eps, 1 - eps]``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.logit(cg.tensor([0.5, 0.9]))
    tensor([0.0000, 2.1972])
    """
    return _logit(x) if eps is None else _logit(compare.clip(as_floating("logit", x), eps, 1 - eps))


@public(method=True)
def logaddexp2(x, y):
    """Logarithm to base 2 of a sum of powers of two, elementwise: ``log2(2**x + 2**y)`` without overflow.

    Parameters
    ----------
    x, y : Tensor or number
        Their shapes broadcast.

    Returns
    -------
    Tensor
        Integers give the default float.

    Notes
    -----
    Gradient: ``g * 2**(x - out)`` and ``g * 2**(y - out)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.logaddexp2(cg.tensor([0.0, 3.0]), cg.tensor([0.0, 3.0]))
    tensor([1., 4.])
    """
    x, y = (v if isinstance(v, (int, float)) else as_tensor("logaddexp2", v) for v in (x, y))
    return logaddexp(x * math.log(2), y * math.log(2)) / math.log(2)


@public(method=True)
def sinc(x):
    """Normalised cardinal sine, elementwise: ``sin(pi * x) / (pi * x)``, and 1 at 0.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor
        Integers give the default float.

    Notes
    -----
    Gradient: ``g * (cos(pi * x) - out) / x``, 0 at 0.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.sinc(cg.tensor([0.0, 0.5]))
    tensor([1.0000, 0.6366])
    """
    x = as_floating("sinc", x)
    endless = compare.isinf(x)
    x = compare.where(endless, 1, x)
    out = _near_zero(x, 0.015, _sinc_series, lambda x: elementwise.sin(fmod(x, 2) * math.pi) / math.pi / x)
    return compare.where(endless, 0, out)


def _sinc_series(x):
    z = square(x * math.pi)
    return 1 - z * (1 / 6 - z * (1 / 120 - z / 5040))

# ------------------------------------------------------------------------------------------ steps, bits, whole numbers
@public(method=True)
def heaviside(x, y):
    """Step function, elementwise: 0 for negative `x`, 1 for positive `x`, `y` where ``x = 0``.

    Parameters
    ----------
    x, y : Tensor or number
        Their shapes broadcast.

    Returns
    -------
    Tensor

    Notes
    -----
    NaN stays NaN.  Gradient: 0 in `x`; ``g`` in `y` where ``x = 0``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.heaviside(cg.tensor([-1.5, 0.0, 2.0]), 0.5)
    tensor([0.0000, 0.5000, 1.0000])
    """
    x = as_tensor("heaviside", x) if isinstance(x, Tensor) else asarray(x, dtype=result_type(x, y))
    return compare.where(x == 0, y, compare.clip(sign(x), 0, 1))


@public(method=True)
def ldexp(x, n):
    """``x * 2**n``, elementwise, rounded only where the result is subnormal.

    Parameters
    ----------
    x : Tensor
    n : Tensor or int
        Exponents; the shapes broadcast.

    Returns
    -------
    Tensor
        The dtype of `x`; integers give the default float.

    Notes
    -----
    Gradient in `x`: ``g * 2**n``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.ldexp(cg.tensor([0.5, 1.5]), cg.tensor([3, -1]))
    tensor([4.0000, 0.7500])
    """
    x = as_floating("ldexp", x)
    most = 3 * math.frexp(finfo(x).max)[1] - 3            # beyond, all is 0 or infinite, and a third of it has a finite power
    n = compare.clip(as_tensor("ldexp", n).astype(x.dtype), -most, most)
    part = elementwise.trunc(n / 3).detach()      # 2**n alone may overflow or vanish where the result does not
    scale = elementwise.exp2(part)
    return x * scale * scale * elementwise.exp2(n - 2 * part)

_exponent = define("exponent", kind=NONDIFF, result="float", public=False)


@public(method=True)
def frexp(x):
    """Mantissa and exponent, elementwise: ``x = mantissa * 2**exponent`` with ``1/2 <= |mantissa| < 1``.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    mantissa : Tensor
        The dtype of `x`; integers give the default float.
    exponent : Tensor
        int32.

    Notes
    -----
    0, the infinities and NaN have exponent 0.  Gradient: ``g * 2**-exponent``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.frexp(cg.tensor([3.0, 0.5]))
    Frexp(mantissa=tensor([0.7500, 0.5000]), exponent=tensor([2, 0], dtype=cgrad.int32))
    """
    x = as_floating("frexp", x)
    exponent = _exponent(x.detach())
    return Frexp(ldexp(x, -exponent), exponent.astype("int32"))

def _cube_root(x):
    """By the logarithm, and one step of Newton's for the last digits; tiny numbers are taken times 2**54, so that their cube is exact enough."""
    x = x.detach()
    tiny = abs(x) < 1e-30
    x = compare.where(tiny, x * 2.0 ** 54, x)
    out = copysign(abs(x) ** (1 / 3), x)
    better = out - (out * out * out - x) / (3 * out * out)
    return compare.where(compare.isfinite(better), better, out) * compare.where(tiny, 2.0 ** -18, full_like(x, 1))


_cbrt = define("cbrt", forward=_cube_root, inputs=("x",), vjp=lambda g, out: g * (square(reciprocal(out)) / 3), kind=ELEMENTWISE, batch=lambda x: _cbrt(x),
               public=False)


@public(method=True)
def cbrt(x):
    """Cube root, elementwise, of negative numbers, too.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor
        Integers give the default float.

    Notes
    -----
    Gradient: ``g / (3 * out**2)``, infinite at 0.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.cbrt(cg.tensor([-8.0, 27.0]))
    tensor([-2.,  3.])
    """
    return _cbrt(as_floating("cbrt", x))


@public(method=True)
def angle(x):
    """The angle of real numbers in the complex plane, elementwise: pi for negative ones, 0 for others.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor
        Integers give the default float; NaN stays.

    Notes
    -----
    Gradient: 0.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.angle(cg.tensor([-1.0, 2.0]))
    tensor([3.1416, 0.0000])
    """
    x = as_floating("angle", x)
    return compare.where(compare.isnan(x), x, compare.where(compare.less(x, 0), math.pi, zeros_like(x)))


@public(method=True)
def isreal(x):
    """Whether elements are real numbers: all are, for there are no complex dtypes.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor
        True everywhere.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.isreal(cg.tensor([1.0, 2.0]))
    tensor([True, True])
    """
    return ones_like(as_tensor("isreal", x), dtype="bool")


@public(method=False)
def divmod(x, y):
    """Quotient rounded down, and remainder, elementwise.

    Parameters
    ----------
    x, y : Tensor or number

    Returns
    -------
    (Tensor, Tensor)
        ``x // y`` and ``x % y``.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Gradient: those of `floor_divide` and `remainder`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.divmod(cg.tensor([7, -7]), 2)
    (tensor([ 3, -4]), tensor([1, 1]))
    """
    return floor_divide(x, y), remainder(x, y)


@public(method=False)
def modf(x):
    """Fraction and whole part, elementwise, both with the sign of the number.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    (Tensor, Tensor)

    Notes
    -----
    Gradient: ``g`` of the fraction; the whole part has none.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.modf(cg.tensor([1.5, -2.25]))
    (tensor([ 0.5000, -0.2500]), tensor([ 1., -2.]))
    """
    x = as_floating("modf", x)
    whole = elementwise.trunc(x)
    return copysign(compare.where(compare.isfinite(x), x - whole, compare.where(compare.isnan(x), x, 0)), x.detach()), whole


nextafter = define(
    "nextafter", vjp=(lambda g: g, lambda g: zeros_like(g)), kind=ELEMENTWISE, result="float",
    doc="""The number after `x` in the direction of `y`, elementwise.

    Gradient: ``g`` in `x`, 0 in `y`.

    >>> cg.nextafter(cg.tensor([1.0]), 2.0) - 1
    tensor([1.1921e-07])
    """)

gcd = define(
    "gcd", kind=NONDIFF,
    doc="""Greatest common divisor of two whole numbers, elementwise.

    Never negative; ``gcd(0, 0)`` is 0.  No gradient.

    >>> cg.gcd(cg.tensor([12, -9]), 6)
    tensor([6, 3])
    """)

lcm = define(
    "lcm", kind=NONDIFF,
    doc="""Least common multiple of two whole numbers, elementwise.

    Never negative, 0 if either is 0; wraps where it does not fit the dtype.  No gradient.

    >>> cg.lcm(cg.tensor([12, -9]), 6)
    tensor([12, 18])
    """)
