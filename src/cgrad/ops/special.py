"""Special functions: Bessel, the normal distribution; and what else is computed from one or two numbers now and then.

Those that only `cgrad.special` names are not public here.  A rule's parameter names say what the tape keeps (see define.py).
The formulas of the kernels are in kernels/special.pxi.  Next: gamma.py.
"""
import math

from cgrad.core.arguments import as_floating, as_tensor
from cgrad.core.tensor import Tensor
from cgrad.ops import compare, elementwise
from cgrad.ops.arithmetic import copysign, floor_divide, fmod, logaddexp, reciprocal, remainder, sign, square
from cgrad.ops.creation import asarray, full_like, ones_like, zeros_like
from cgrad.ops.define import ELEMENTWISE, NONDIFF, define, public
from cgrad.ops.elementwise import exp
from cgrad.ops.namespace import finfo, result_type
from cgrad.ops.results import Frexp

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
