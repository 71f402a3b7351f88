"""Sums, products, quotients, powers and what else is computed from two numbers.

A rule's parameter names say what the tape keeps (see define.py).  Next: elementwise.py.
"""
import math

from cgrad.core.dtype import float64
from cgrad.ops import compare, elementwise
from cgrad.core.arguments import as_tensor
from cgrad.ops.creation import zeros_like
from cgrad.ops.define import ELEMENTWISE, define, public

def _scaled(name, function):
    """Addition or subtraction with PyTorch's ``alpha=``."""
    def extended(x, y, *, alpha=1):
        x, y = [v if isinstance(v, (int, float)) else as_tensor(name, v) for v in (x, y)]
        if isinstance(alpha, float) and not any(isinstance(v, float) or not isinstance(v, int) and v.dtype.is_floating_point for v in (x, y)):
            raise TypeError(f"{name}: alpha must be an integer for integer tensors, got {alpha}")
        return function()(x, y * alpha)
    return extended


def _rounded(x, y, *, rounding_mode=None):
    """Division with PyTorch's ``rounding_mode=``."""
    if rounding_mode is None:
        return divide(x, y)
    if rounding_mode == "floor":
        return floor_divide(x, y)
    if rounding_mode == "trunc":
        x, y = as_tensor("divide", x), as_tensor("divide", y)
        if x.dtype.is_floating_point or y.dtype.is_floating_point:
            return elementwise.trunc(x / y)
        return (x - fmod(x, y)) // y
    raise ValueError(f'divide: rounding_mode must be None, "floor" or "trunc", got {rounding_mode!r}')


# --------------------------------------------------------------------------------------------------- + - * / and signs
add = define(
    "add", vjp=(lambda g: g, lambda g: g), kind=ELEMENTWISE, fused=("g", "g"), symbol="+",
    extended=_scaled("add", lambda: add),
    doc="""Sum, elementwise: ``x + y``.

    ``alpha=`` multiplies `y` first, as in PyTorch.  Gradient: ``g`` and ``g`` (times `alpha`).

    ``out=`` (of every function that computes tensors from tensors; a tuple where there are several results) must have the shape of the result
    and a dtype of the same kind or a higher one; operands may lie in its memory.  It is a write in place: `out` takes the history of
    the result, and a leaf that requires grad is refused outside of `no_grad`.

    >>> cg.add(cg.tensor([1.0, 2.0]), 10)
    tensor([11., 12.])
    >>> sums = cg.empty(2)
    >>> cg.add(cg.tensor([1.0, 2.0]), 10, out=sums) is sums
    True
    """)

subtract = define(
    "subtract", vjp=(lambda g: g, lambda g: -g), kind=ELEMENTWISE, fused=("g", "negative(g)"), symbol="-",
    extended=_scaled("subtract", lambda: subtract),
    doc="""Difference, elementwise: ``x - y``.

    ``alpha=`` multiplies `y` first, as in PyTorch.  Gradient: ``g`` and ``-g`` (times `alpha`).

    >>> cg.subtract(cg.tensor([1.0, 2.0]), 10)
    tensor([-9., -8.])
    """)


@public(method=True)
def rsub(x, y, *, alpha=1):
    """Difference the other way round, elementwise: ``y - alpha * x``.

    Parameters
    ----------
    x, y : Tensor or number
    alpha : number, optional

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.rsub(cg.tensor([1.0, 2.0]), 10)
    tensor([9., 8.])
    """
    return subtract(y, x) if alpha == 1 else subtract(y, x, alpha=alpha)


multiply = define(
    "multiply", vjp=(lambda g, y: g * y, lambda g, x: g * x), kind=ELEMENTWISE,
    fused=("multiply(g, y)", "multiply(g, x)"), symbol="*",
    doc="""Product, elementwise: ``x * y``.

    Gradient: ``g * y`` and ``g * x``.

    >>> cg.multiply(cg.tensor([1.0, 2.0]), cg.tensor([[3.0], [5.0]]))
    tensor([[ 3.,  6.],
            [ 5., 10.]])
    """)

# Not by the result, which what follows may write over: y = a / b; y += c.
divide = define(
    "divide", vjp=(lambda g, y: g / y, lambda g, x, y: -g * (x / y) / y), kind=ELEMENTWISE,
    fused=("divide(g, y)", "divide_backward_y(g, x, y)"), result="float", symbol="/", extended=_rounded,
    doc="""Quotient, elementwise: ``x / y``.

    Integers give the default float.  ``rounding_mode="floor"`` and ``"trunc"`` round the quotient, as in PyTorch, and stop
    the gradient.  Gradient: ``g / y`` and ``-g * (x / y) / y``; at ``y = 0`` what IEEE arithmetic makes of it (infinite or NaN).

    >>> cg.divide(cg.tensor([1.0, 3.0]), 2)
    tensor([0.5000, 1.5000])
    """)

negative = define(
    "negative", vjp=lambda g: -g, kind=ELEMENTWISE, fused="negative(g)", symbol="neg",
    doc="""The number with its sign changed, elementwise: ``-x``.

    Gradient: ``-g``.

    >>> -cg.tensor([1.0, -2.0])
    tensor([-1.,  2.])
    """)

positive = define(
    "positive", vjp=lambda g: g, kind=ELEMENTWISE, fused="g", symbol="pos",
    doc="""A copy of the numbers, elementwise: ``+x``.

    Gradient: ``g``.

    >>> +cg.tensor([1.0, -2.0])
    tensor([ 1., -2.])
    """)

absolute = define(
    "absolute", vjp=lambda g, x: g * sign(x), kind=ELEMENTWISE, fused="absolute_backward(g, x)", symbol="abs",
    doc="""Absolute value, elementwise: ``|x|``.

    Gradient: ``g * sign(x)``, which is 0 at 0.

    >>> cg.abs(cg.tensor([-1.5, 2.0]))
    tensor([1.5000, 2.0000])
    """)

sign = define(
    "sign", vjp=lambda g: zeros_like(g), kind=ELEMENTWISE,
    doc="""-1, 0 or 1 for negative, zero and positive numbers, elementwise.

    NaN stays NaN.  Gradient: 0 everywhere.

    >>> cg.sign(cg.tensor([-3.0, 0.0, 5.0]))
    tensor([-1.,  0.,  1.])
    """)

# ---------------------------------------------------------------------------------------------------------------- powers
square = define(
    "square", vjp=lambda g, x: g * (x * 2), kind=ELEMENTWISE, fused="square_backward(g, x)",
    doc="""Square, elementwise: ``x * x``.

    Gradient: ``2 * g * x``.

    >>> cg.square(cg.tensor([1.0, -3.0]))
    tensor([1., 9.])
    """)

reciprocal = define(
    "reciprocal", vjp=lambda g, out: -g * out * out, kind=ELEMENTWISE, fused="reciprocal_backward(g, out)", result="float",
    doc="""Reciprocal, elementwise: ``1 / x``.

    Integers give the default float.  Gradient: ``-g / x**2``.

    >>> cg.reciprocal(cg.tensor([2.0, -4.0]))
    tensor([ 0.5000, -0.2500])
    """)


def _power_of_base(g, x, y):
    """g * y * x**(y - 1), with 0 for y = 0 even where x is 0 or NaN, and where an infinite y makes x**(y - 1) vanish."""
    if isinstance(y, (int, float)):
        if y == 0:
            return zeros_like(g)
        if y == 1:
            return g
        if y == 2:
            return g * (x * 2)
        p = x ** (y - 1)
        return g * (p * y) if math.isfinite(y) else g * compare.where(p == 0, 0, p * y)
    # The 0 * 0**-1 of 0**0 would be NaN.  With exponent 1 there, y * x**1 is 0, and so is its slope in x.
    still = y == 0
    p = compare.where(compare.logical_and(x != x, still), 0, x) ** compare.where(compare.logical_and(compare.logical_or(x == 0, x != x), still), 1, y - 1)
    return g * (p * compare.where(compare.logical_and(p == 0, compare.isinf(y)), 0, y))


def _power_of_exponent(g, x, y, out):
    """g * out * log(x), with 0 (the limit) where x is 0 and y >= 0, or x is infinite and y < 0."""
    if isinstance(x, (int, float)):
        if x == 0:
            return compare.where(y >= 0, 0, g * out * -math.inf)
        if x == math.inf:
            return compare.where(y < 0, 0, g * out * x)
        return g * (out * (math.log(x) if x > 0 else math.nan))
    flat = compare.logical_or(compare.logical_and(x == 0, y >= 0), compare.logical_and(x == math.inf, y < 0))
    return g * (out * elementwise.log(compare.where(flat, 1, x)))


power = define(
    "power", vjp=(_power_of_base, _power_of_exponent), kind=ELEMENTWISE, fused=("power_backward_x(g, x, y)", None),
    symbol="**",
    doc="""Power, elementwise: ``x ** y``.

    ``0 ** 0`` is 1.  A negative base is fine with whole exponents and NaN with others.  Gradient: ``g * y * x ** (y - 1)`` and
    ``g * out * log(x)``.  The first is 0, 1, 0 and infinite at ``x = 0`` for the exponents 0, 1, 2 and 1/2, the second 0 where ``x = 0``
    and ``y >= 0``.

    >>> cg.tensor([1.0, 2.0, -3.0]) ** 2
    tensor([1., 4., 9.])
    """)


@public(method=True)
def float_power(x, y):
    """Power in double precision, elementwise: both operands become float64 first.

    Parameters
    ----------
    x, y : Tensor or number
        Base and exponent; their shapes broadcast.

    Returns
    -------
    Tensor
        float64.

    Notes
    -----
    The gradient is that of `power`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.float_power(cg.tensor([2, 3]), 2).dtype
    cgrad.float64
    """
    x = as_tensor("float_power", x).astype(float64)
    return x ** (y if isinstance(y, (int, float)) else as_tensor("float_power", y).astype(float64))


# ----------------------------------------------------------------------------------------- whole quotients and remainders
floor_divide = define(
    "floor_divide", vjp=(lambda g: zeros_like(g), lambda g: zeros_like(g)), kind=ELEMENTWISE, symbol="//",
    doc="""Quotient rounded towards minus infinity, elementwise: ``x // y``, as Python does it.

    Integers stay integers; an integer divided by 0 gives 0.  Gradient: 0 everywhere.

    >>> cg.tensor([7, -7]) // 2
    tensor([ 3, -4])
    """)

remainder = define(
    "remainder", vjp=(lambda g: g, lambda g, x, y: -g * floor_divide(x, y)), kind=ELEMENTWISE, symbol="%",
    doc="""Remainder with the sign of the divisor, elementwise: ``x % y``, as Python does it.

    ``x - y * floor(x / y)``.  Gradient: ``g`` and ``-g * floor(x / y)``; the jumps are ignored.

    >>> cg.tensor([7, -7]) % 3
    tensor([1, 2])
    """)

fmod = define(
    "fmod", vjp=(lambda g: g, lambda g, x, y: -g * elementwise.trunc(x / y)), kind=ELEMENTWISE,
    doc="""Remainder with the sign of the dividend, elementwise, as C's ``fmod``.

    ``x - y * trunc(x / y)``.  Gradient: ``g`` and ``-g * trunc(x / y)``; the jumps are ignored.

    >>> cg.fmod(cg.tensor([7.0, -7.0]), 3.0)
    tensor([ 1., -1.])
    """)


# ----------------------------------------------------------------------------------------------------- larger and smaller
def _larger_share(g, mine, other):
    """g where mine > other, half of it at a tie, 0 elsewhere; g where either is NaN."""
    return compare.where(mine == other, g * 0.5, compare.where(mine < other, 0, g))


def _smaller_share(g, mine, other):
    """g where mine < other, half of it at a tie, 0 elsewhere; g where either is NaN."""
    return compare.where(mine == other, g * 0.5, compare.where(mine > other, 0, g))


maximum = define(
    "maximum", vjp=(lambda g, x, y: _larger_share(g, x, y), lambda g, x, y: _larger_share(g, y, x)), kind=ELEMENTWISE,
    fused=("maximum_backward(g, x, y)", "maximum_backward(g, y, x)"),
    doc="""The larger of two numbers, elementwise.

    NaN if either is NaN.  Gradient: ``g`` to the larger one; at a tie each gets half.

    >>> cg.maximum(cg.tensor([1.0, 5.0]), 3.0)
    tensor([3., 5.])
    """)

minimum = define(
    "minimum", vjp=(lambda g, x, y: _smaller_share(g, x, y), lambda g, x, y: _smaller_share(g, y, x)), kind=ELEMENTWISE,
    fused=("minimum_backward(g, x, y)", "minimum_backward(g, y, x)"),
    doc="""The smaller of two numbers, elementwise.

    NaN if either is NaN.  Gradient: ``g`` to the smaller one; at a tie each gets half.

    >>> cg.minimum(cg.tensor([1.0, 5.0]), 3.0)
    tensor([1., 3.])
    """)


@public(method=True)
def fmax(x, y):
    """The larger of two numbers, elementwise; a NaN gives way to the other one.

    Parameters
    ----------
    x, y : Tensor or number
        Their shapes broadcast.

    Returns
    -------
    Tensor

    Notes
    -----
    The gradient goes to the number that was taken; at a tie each gets half.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.fmax(cg.tensor([1.0, float("nan")]), 0.5)
    tensor([1.0000, 0.5000])
    """
    extreme = maximum(x, y)          # refuses what is no operand
    return compare.where(x != x, y, compare.where(y != y, x, extreme))


@public(method=True)
def fmin(x, y):
    """The smaller of two numbers, elementwise; a NaN gives way to the other one.

    Parameters
    ----------
    x, y : Tensor or number
        Their shapes broadcast.

    Returns
    -------
    Tensor

    Notes
    -----
    The gradient goes to the number that was taken; at a tie each gets half.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.fmin(cg.tensor([1.0, float("nan")]), 0.5)
    tensor([0.5000, 0.5000])
    """
    extreme = minimum(x, y)          # refuses what is no operand
    return compare.where(x != x, y, compare.where(y != y, x, extreme))


# ------------------------------------------------------------------------------------------------------ plane geometry
def _nonzero(r):
    """`r`, with infinity in place of 0: a divisor for numerators that are 0 there, which gives 0 with a slope of 0."""
    return compare.where(r == 0, math.inf, r)


def _part(x, r):
    """x / r of a part of a length: 0 where both are 0, 1 or -1 where `x` is infinite."""
    endless = compare.isinf(x)
    return compare.where(endless, sign(x), compare.where(endless, 0, x) / _nonzero(r))


hypot = define(
    "hypot", vjp=(lambda g, x, out: g * _part(x, out), lambda g, y, out: g * _part(y, out)), kind=ELEMENTWISE, result="float",
    doc="""Length of the hypotenuse, elementwise: ``sqrt(x**2 + y**2)`` without needless overflow.

    Gradient: ``g * x / out`` and ``g * y / out``; 0 where both are 0, the limit 1 or -1 for an infinite operand.

    >>> cg.hypot(cg.tensor([3.0]), cg.tensor([4.0]))
    tensor([5.])
    """)


def _over_square(x, y, numerator):
    """numerator / (x**2 + y**2) without overflow, 0 at the origin and infinitely far from it."""
    r = _nonzero(hypot(x, y))
    return compare.where(compare.isinf(numerator), 0, numerator) / r / r


atan2 = define(
    "atan2", vjp=(lambda g, x, y: g * _over_square(x, y, y), lambda g, x, y: -g * _over_square(x, y, x)),
    kind=ELEMENTWISE, result="float",
    doc="""Angle of the point with ordinate `x` and abscissa `y`, elementwise, in (-pi, pi].

    Gradient: ``g * y / (x**2 + y**2)`` and ``-g * x / (x**2 + y**2)``; 0 at the origin and at infinity.

    >>> cg.atan2(cg.tensor([1.0, -1.0]), cg.tensor([1.0, -1.0]))
    tensor([ 0.7854, -2.3562])
    """)

copysign = define(
    "copysign", vjp=(lambda g, x, out: g * (sign(x) * sign(out)), lambda g: zeros_like(g)), kind=ELEMENTWISE, result="float",
    doc="""The size of `x` with the sign of `y`, elementwise; the sign of a zero counts.

    Gradient: ``g`` where the sign stayed and ``-g`` where it changed, 0 at ``x = 0``; 0 in `y`.

    >>> cg.copysign(cg.tensor([1.0, -2.0]), cg.tensor([-0.0, 5.0]))
    tensor([-1.,  2.])
    """)


# ------------------------------------------------------------------------------------------------- sums of exponentials
def _logaddexp_share(g, mine, other, out):
    """g * exp(mine - out): equal infinities share evenly, and log(0 + 0) has no slope."""
    same = compare.logical_and(mine == other, compare.isinf(out))
    weight = elementwise.sigmoid(compare.where(same, 0, mine - other))
    return compare.where(out == -math.inf, 0, g * weight)


logaddexp = define(
    "logaddexp",
    vjp=(lambda g, x, y, out: _logaddexp_share(g, x, y, out), lambda g, x, y, out: _logaddexp_share(g, y, x, out)),
    kind=ELEMENTWISE, result="float",
    doc="""Logarithm of a sum of exponentials, elementwise: ``log(exp(x) + exp(y))`` without overflow.

    Gradient: ``g * exp(x - out)`` and ``g * exp(y - out)``; 0 where both are minus infinity.

    >>> cg.logaddexp(cg.tensor([0.0, 1.0]), cg.tensor([0.0, 1.0]))
    tensor([0.6931, 1.6931])
    """)

# ------------------------------------------------------------------------------------------------------ three operands
lerp = define(
    "lerp", inputs=("x", "end", "weight"),
    vjp=(lambda g, weight: g * (1 - weight), lambda g, weight: g * weight, lambda g, x, end: g * (end - x)), kind=ELEMENTWISE,
    doc="""Linear interpolation, elementwise: ``x + weight * (end - x)``.

    Gradient: ``g * (1 - weight)``, ``g * weight`` and ``g * (end - x)``.

    >>> cg.lerp(cg.tensor([0.0, 10.0]), cg.tensor([10.0, 20.0]), 0.25)
    tensor([ 2.5000, 12.5000])
    """)

_addcmul = define(
    "addcmul", vjp=(lambda g: g, lambda g, z: g * z, lambda g, y: g * y), kind=ELEMENTWISE, public=False)


@public(method=True)
def addcmul(x, y, z, *, value=1):
    """A product added to `x`, elementwise: ``x + value * y * z``.

    Parameters
    ----------
    x, y, z : Tensor or number
        Their shapes broadcast.
    value : number, optional
        Factor of the product.

    Returns
    -------
    Tensor

    Notes
    -----
    Gradient: ``g``, ``g * value * z`` and ``g * value * y``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.addcmul(cg.tensor([1.0]), cg.tensor([2.0]), cg.tensor([3.0]), value=10)
    tensor([61.])
    """
    return _addcmul(x, y if value == 1 else y * value, z)


@public(method=True)
def addcdiv(x, y, z, *, value=1):
    """A quotient added to `x`, elementwise: ``x + value * y / z``.

    Parameters
    ----------
    x, y, z : Tensor or number
        Their shapes broadcast.
    value : number, optional
        Factor of the quotient.

    Returns
    -------
    Tensor

    Notes
    -----
    Gradient: ``g``, ``g * value / z`` and ``-g * value * y / z**2``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.addcdiv(cg.tensor([1.0]), cg.tensor([6.0]), cg.tensor([3.0]))
    tensor([3.])
    """
    return x + (y if value == 1 else y * value) / z
