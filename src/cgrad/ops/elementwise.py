"""Functions of one number: roots, exponentials, logarithms, trigonometry, rounding.

A rule's parameter names say what the tape keeps (see define.py).  Next: activation.py.
"""
import math

from cgrad.ops import arithmetic, compare
from cgrad.ops.creation import zeros_like
from cgrad.ops.define import ELEMENTWISE, define, public

# ----------------------------------------------------------------------------------------------------------------- roots
sqrt = define(
    "sqrt", vjp=lambda g, out: g / (out * 2), kind=ELEMENTWISE, fused="sqrt_backward(g, out)", result="float",
    doc="""Square root, elementwise.

    NaN for negative numbers.  Gradient: ``g / (2 * sqrt(x))``, infinite at 0.

    >>> cg.sqrt(cg.tensor([4.0, 9.0]))
    tensor([2., 3.])
    """)

rsqrt = define(
    "rsqrt", vjp=lambda g, out: g * (out * out * out * -0.5), kind=ELEMENTWISE, result="float",
    doc="""Reciprocal of the square root, elementwise: ``1 / sqrt(x)``.

    Gradient: ``-g * x**(-3/2) / 2``.

    >>> cg.rsqrt(cg.tensor([4.0, 16.0]))
    tensor([0.5000, 0.2500])
    """)

cbrt = define(
    "cbrt", vjp=lambda g, out: g * (arithmetic.square(arithmetic.reciprocal(out)) / 3), kind=ELEMENTWISE, result="float",
    doc="""Cube root, elementwise, of negative numbers, too.

    Gradient: ``g / (3 * cbrt(x)**2)``, infinite at 0.

    >>> cg.cbrt(cg.tensor([-8.0, 27.0]))
    tensor([-2.,  3.])
    """)

# ------------------------------------------------------------------------------------------- exponentials and logarithms
exp = define(
    "exp", vjp=lambda g, out: g * out, kind=ELEMENTWISE, fused="multiply(g, out)", result="float",
    doc="""Natural exponential, elementwise.

    Gradient: ``g * exp(x)``.

    >>> cg.exp(cg.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """)

exp2 = define(
    "exp2", vjp=lambda g, out: g * (out * math.log(2)), kind=ELEMENTWISE, result="float",
    doc="""Power of two, elementwise: ``2 ** x``.

    Gradient: ``g * 2**x * log(2)``.

    >>> cg.exp2(cg.tensor([3.0, -1.0]))
    tensor([8.0000, 0.5000])
    """)

expm1 = define(
    "expm1", vjp=lambda g, x: g * exp(x), kind=ELEMENTWISE, result="float",
    doc="""``exp(x) - 1``, elementwise, with all digits near 0.

    Gradient: ``g * exp(x)``, from `x` itself, since ``out + 1`` would lose small exponentials.

    >>> cg.expm1(cg.tensor([0.0, 1.0]))
    tensor([0.0000, 1.7183])
    """)

log = define(
    "log", vjp=lambda g, x: g / x, kind=ELEMENTWISE, fused="divide(g, x)", result="float",
    doc="""Natural logarithm, elementwise.

    Minus infinity at 0, NaN for negative numbers.  Gradient: ``g / x``.

    >>> cg.log(cg.tensor([1.0, 10.0]))
    tensor([0.0000, 2.3026])
    """)

log2 = define(
    "log2", vjp=lambda g, x: g / (x * math.log(2)), kind=ELEMENTWISE, result="float",
    doc="""Logarithm to base 2, elementwise.

    Gradient: ``g / (x * log(2))``.

    >>> cg.log2(cg.tensor([8.0, 0.5]))
    tensor([ 3., -1.])
    """)

log10 = define(
    "log10", vjp=lambda g, x: g / (x * math.log(10)), kind=ELEMENTWISE, result="float",
    doc="""Logarithm to base 10, elementwise.

    Gradient: ``g / (x * log(10))``.

    >>> cg.log10(cg.tensor([100.0, 1.0]))
    tensor([2., 0.])
    """)

log1p = define(
    "log1p", vjp=lambda g, x: g / (x + 1), kind=ELEMENTWISE, result="float",
    doc="""``log(1 + x)``, elementwise, with all digits near 0.

    Gradient: ``g / (1 + x)``.

    >>> cg.log1p(cg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.6931])
    """)

# ---------------------------------------------------------------------------------------------------------- trigonometry
sin = define(
    "sin", vjp=lambda g, x: g * cos(x), kind=ELEMENTWISE, fused="sin_backward(g, x)", result="float",
    doc="""Sine, elementwise; angles in radians.

    Gradient: ``g * cos(x)``.

    >>> cg.sin(cg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8415])
    """)

cos = define(
    "cos", vjp=lambda g, x: -g * sin(x), kind=ELEMENTWISE, fused="cos_backward(g, x)", result="float",
    doc="""Cosine, elementwise; angles in radians.

    Gradient: ``-g * sin(x)``.

    >>> cg.cos(cg.tensor([0.0, 1.0]))
    tensor([1.0000, 0.5403])
    """)

tan = define(
    "tan", vjp=lambda g, out: g * (out * out + 1), kind=ELEMENTWISE, result="float",
    doc="""Tangent, elementwise; angles in radians.

    Gradient: ``g * (1 + tan(x)**2)``.

    >>> cg.tan(cg.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5574])
    """)

# With a slope of its own: that of the product as written loses the digits of a small x, and is NaN at the ends.
_one_minus_square = define("one_minus_square", forward=lambda x: (1 - x) * (1 + x), inputs=("x",), vjp=lambda g, x: g * (x * -2),
                           kind=ELEMENTWISE, public=False)

asin = define(
    "asin", vjp=lambda g, x: g * rsqrt(_one_minus_square(x)), kind=ELEMENTWISE, result="float",
    doc="""Inverse sine, elementwise, in [-pi/2, pi/2].

    NaN outside [-1, 1].  Gradient: ``g / sqrt(1 - x**2)``, infinite at the ends.

    >>> cg.asin(cg.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5708])
    """)

acos = define(
    "acos", vjp=lambda g, x: -g * rsqrt(_one_minus_square(x)), kind=ELEMENTWISE, result="float",
    doc="""Inverse cosine, elementwise, in [0, pi].

    NaN outside [-1, 1].  Gradient: ``-g / sqrt(1 - x**2)``, infinite at the ends.

    >>> cg.acos(cg.tensor([0.0, 1.0]))
    tensor([1.5708, 0.0000])
    """)

atan = define(
    "atan", vjp=lambda g, x: g * arithmetic.square(arithmetic.reciprocal(arithmetic.hypot(x, 1))), kind=ELEMENTWISE, result="float",
    doc="""Inverse tangent, elementwise, in [-pi/2, pi/2].

    Gradient: ``g / (1 + x**2)``.

    >>> cg.atan(cg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7854])
    """)

# ---------------------------------------------------------------------------------------------------- hyperbolic functions
sinh = define(
    "sinh", vjp=lambda g, x: g * cosh(x), kind=ELEMENTWISE, result="float",
    doc="""Hyperbolic sine, elementwise.

    Gradient: ``g * cosh(x)``.

    >>> cg.sinh(cg.tensor([0.0, 1.0]))
    tensor([0.0000, 1.1752])
    """)

cosh = define(
    "cosh", vjp=lambda g, x: g * sinh(x), kind=ELEMENTWISE, result="float",
    doc="""Hyperbolic cosine, elementwise.

    Gradient: ``g * sinh(x)``.

    >>> cg.cosh(cg.tensor([0.0, 1.0]))
    tensor([1.0000, 1.5431])
    """)

tanh = define(
    "tanh", vjp=lambda g, out: g * (1 - out * out), kind=ELEMENTWISE, fused="tanh_backward(g, out)", result="float",
    doc="""Hyperbolic tangent, elementwise.

    Gradient: ``g * (1 - tanh(x)**2)``.

    >>> cg.tanh(cg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """)

asinh = define(
    "asinh", vjp=lambda g, x: g / arithmetic.hypot(x, 1), kind=ELEMENTWISE, result="float",
    doc="""Inverse hyperbolic sine, elementwise.

    Gradient: ``g / sqrt(x**2 + 1)``.

    >>> cg.asinh(cg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8814])
    """)

acosh = define(
    "acosh", vjp=lambda g, x: g * (rsqrt(x - 1) * rsqrt(x + 1)), kind=ELEMENTWISE, result="float",
    doc="""Inverse hyperbolic cosine, elementwise.

    NaN below 1.  Gradient: ``g / sqrt(x**2 - 1)``, infinite at 1.

    >>> cg.acosh(cg.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3170])
    """)

atanh = define(
    "atanh", vjp=lambda g, x: g / _one_minus_square(x), kind=ELEMENTWISE, result="float",
    doc="""Inverse hyperbolic tangent, elementwise.

    Infinite at -1 and 1, NaN beyond.  Gradient: ``g / (1 - x**2)``.

    >>> cg.atanh(cg.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5493])
    """)

# ---------------------------------------------------------------------------------------------------- logistic functions
sigmoid = define(
    "sigmoid", vjp=lambda g, out: g * (out * (1 - out)), kind=ELEMENTWISE, fused="sigmoid_backward(g, out)", result="float",
    doc="""Logistic function, elementwise: ``1 / (1 + exp(-x))``.

    Gradient: ``g * out * (1 - out)``.

    >>> cg.sigmoid(cg.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """)

logsigmoid = define(
    "logsigmoid", vjp=lambda g, x: g * sigmoid(-x), kind=ELEMENTWISE, result="float",
    doc="""Logarithm of the logistic function, elementwise: ``-log(1 + exp(-x))`` without overflow.

    Gradient: ``g * sigmoid(-x)``.

    >>> cg.logsigmoid(cg.tensor([0.0, -100.0]))
    tensor([  -0.6931, -100.0000])
    """)

# ------------------------------------------------------------------------------------------------------- error functions
def bell(x, a):
    """exp(-a * x**2) for a of 1 or 1/2."""
    x = compare.clip(x, -40, 40)               # beyond, it is 0, and so are its derivatives
    return exp(x * x * -a)


erf = define(
    "erf", vjp=lambda g, x: g * (bell(x, 1) * (2 / math.sqrt(math.pi))), kind=ELEMENTWISE, result="float",
    doc="""Error function, elementwise: ``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to `x`.

    Gradient: ``g * 2 / sqrt(pi) * exp(-x**2)``.

    >>> cg.erf(cg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """)

erfc = define(
    "erfc", vjp=lambda g, x: g * (bell(x, 1) * (-2 / math.sqrt(math.pi))), kind=ELEMENTWISE, result="float",
    doc="""Complementary error function, elementwise: ``1 - erf(x)``, with all digits for large `x`.

    Gradient: ``-g * 2 / sqrt(pi) * exp(-x**2)``.

    >>> cg.erfc(cg.tensor([0.0, 1.0]))
    tensor([1.0000, 0.1573])
    """)


# -------------------------------------------------------------------------------------------------------------- rounding
floor = define(
    "floor", vjp=lambda g: zeros_like(g), kind=ELEMENTWISE,
    doc="""The largest whole number that is not larger, elementwise.

    Integers stay as they are.  Gradient: 0 everywhere.

    >>> cg.floor(cg.tensor([1.5, -1.5]))
    tensor([ 1., -2.])
    """)

ceil = define(
    "ceil", vjp=lambda g: zeros_like(g), kind=ELEMENTWISE,
    doc="""The smallest whole number that is not smaller, elementwise.

    Integers stay as they are.  Gradient: 0 everywhere.

    >>> cg.ceil(cg.tensor([1.5, -1.5]))
    tensor([ 2., -1.])
    """)

trunc = define(
    "trunc", vjp=lambda g: zeros_like(g), kind=ELEMENTWISE,
    doc="""The number without its fraction, elementwise.

    Integers stay as they are.  Gradient: 0 everywhere.

    >>> cg.trunc(cg.tensor([1.5, -1.5]))
    tensor([ 1., -1.])
    """)

_round = define("round", vjp=lambda g: zeros_like(g), kind=ELEMENTWISE, public=False)


@public(method=True)
def round(x, decimals=0):
    """The nearest whole number, elementwise; halves go to the even neighbour.

    Parameters
    ----------
    x : Tensor
        Integers stay as they are (with ``decimals >= 0``).
    decimals : int, optional
        Round to this many decimal places; negative ones round to tens, hundreds and so on.

    Returns
    -------
    Tensor
        Same dtype.

    Notes
    -----
    Gradient: 0 everywhere.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.round(cg.tensor([0.5, 1.5, -1.25]))
    tensor([ 0.,  2., -1.])
    """
    if decimals == 0 or decimals > 0 and not x.dtype.is_floating_point:
        return _round(x)
    if not x.dtype.is_floating_point:
        return _round_integers(x, 10 ** -decimals)
    scale = 10.0 ** abs(decimals)
    return _round(x * scale) / scale if decimals > 0 else _round(x / scale) * scale


def _round_integers(x, step):
    """To multiples of an even step, exactly: a float would not hold all digits."""
    if step > x.dtype.limits[1]:
        return zeros_like(x)
    quotient, rest, half = x // step, x % step, step // 2
    return (quotient + ((rest > half) | (rest == half) & (quotient % 2 == 1)).astype(x.dtype)) * step


@public(method=True)
def frac(x):
    """The fraction, elementwise: ``x - trunc(x)``, with the sign of `x`.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor
        Same shape and dtype.

    Notes
    -----
    Gradient: ``g``; the jumps are ignored.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.frac(cg.tensor([1.5, -1.25]))
    tensor([ 0.5000, -0.2500])
    """
    return x - trunc(x)


@public(method=True)
def deg2rad(x):
    """Degrees to radians, elementwise: ``x * pi / 180``.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor
        Integers give the default float.

    Notes
    -----
    Gradient: ``g * pi / 180``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.deg2rad(cg.tensor([180.0]))
    tensor([3.1416])
    """
    return x * (math.pi / 180)


@public(method=True)
def rad2deg(x):
    """Radians to degrees, elementwise: ``x * 180 / pi``.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor
        Integers give the default float.

    Notes
    -----
    Gradient: ``g * 180 / pi``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.rad2deg(cg.tensor([1.0]))
    tensor([57.2958])
    """
    return x * (180 / math.pi)
