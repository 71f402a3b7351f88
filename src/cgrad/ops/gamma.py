"""The gamma function, its logarithm's derivatives, its incomplete integrals, and the zeta function.

`zeta` is named by `cgrad.special` alone.  The formulas of the kernels are in kernels/special.pxi.  Next: activation.py.
"""
import math

from cgrad.core import batching
from cgrad.core.arguments import as_floating, whole_number
from cgrad.core.dtype import promote_types
from cgrad.core.forward import copy, fill
from cgrad.ops import compare, elementwise
from cgrad.ops.arithmetic import square
from cgrad.ops.creation import full_like
from cgrad.ops.define import ELEMENTWISE, define, public
from cgrad.ops.elementwise import exp
from cgrad.ops.shape import broadcast_tensors
from cgrad.ops.special import xlogy

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
    ``p * (p - 1) / 4 * log(pi)`` plus the sum of ``lgamma(x - j / 2)`` over j = 0, ..., p - 1.  Gradient: ``g`` times that of ``digamma(x - j / 2)``.

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
