"""Comparisons, logic, bits, and choices between values.

Results that are bools or integers carry no gradient; `where` and `clip` hand it to the value they chose, by selection and
never by multiplication with a mask, so that an infinity or NaN that was not chosen stays out.  Next: reduction.py.
"""
import math

from cgrad.core.dtype import bool_
from cgrad.core.arguments import as_tensor
from cgrad.ops.define import ELEMENTWISE, NONDIFF, PUBLIC, define, public


def _comparison(name, symbol, text):
    return define(name, kind=NONDIFF, result="bool", symbol=symbol, doc=f"""Whether ``x {symbol} y``, elementwise.

    Any comparison with NaN is False, except ``!=``.  No gradient.

    >>> cg.tensor([1, 2, 3]) {symbol} 2
    tensor({text})
    """)


equal = _comparison("equal", "==", "[False,  True, False]")
not_equal = _comparison("not_equal", "!=", "[ True, False,  True]")
less = _comparison("less", "<", "[ True, False, False]")
less_equal = _comparison("less_equal", "<=", "[ True,  True, False]")
greater = _comparison("greater", ">", "[False, False,  True]")
greater_equal = _comparison("greater_equal", ">=", "[False,  True,  True]")

# ----------------------------------------------------------------------------------------------------------------- logic
logical_not = define(
    "logical_not", kind=NONDIFF, result="bool",
    doc="""Whether the number is 0, elementwise.

    No gradient.

    >>> cg.logical_not(cg.tensor([0.0, 2.0]))
    tensor([ True, False])
    """)


def _logic(name, phrase, text):
    return define(name, kind=NONDIFF, result="bool", doc=f"""Whether {phrase} not 0, elementwise.

    No gradient.

    >>> cg.{name}(cg.tensor([True, True, False]), cg.tensor([True, False, False]))
    tensor({text})
    """)


logical_and = _logic("logical_and", "both numbers are", "[ True, False, False]")
logical_or = _logic("logical_or", "at least one of two numbers is", "[ True,  True, False]")
logical_xor = _logic("logical_xor", "exactly one of two numbers is", "[False,  True, False]")

# ------------------------------------------------------------------------------------------------------------------ bits
bitwise_not = define(
    "bitwise_not", kind=NONDIFF, symbol="~",
    doc="""The number with every bit turned, elementwise: ``~x``.

    For integers and bools.  No gradient.

    >>> ~cg.tensor([0, 5])
    tensor([-1, -6])
    """)


def _bits(name, symbol, phrase, text):
    return define(name, kind=NONDIFF, symbol=symbol, doc=f"""{phrase}, elementwise: ``x {symbol} y``.

    For integers{'' if symbol in ("<<", ">>") else ' and bools'}.  No gradient.

    >>> cg.tensor([5, 6]) {symbol} 1
    tensor({text})
    """)


bitwise_and = _bits("bitwise_and", "&", "The bits that both numbers have", "[1, 0]")
bitwise_or = _bits("bitwise_or", "|", "The bits that at least one of two numbers has", "[5, 7]")
bitwise_xor = _bits("bitwise_xor", "^", "The bits that exactly one of two numbers has", "[4, 7]")
bitwise_left_shift = _bits("bitwise_left_shift", "<<", "The number with its bits moved up", "[10, 12]")
bitwise_right_shift = _bits("bitwise_right_shift", ">>", "The number with its bits moved down", "[2, 3]")


# ------------------------------------------------------------------------------------------------------ kinds of numbers
def _kind_of_number(name, phrase, text):
    return define(name, kind=NONDIFF, result="bool", doc=f"""Whether the number {phrase}, elementwise.

    No gradient.

    >>> cg.{name}(cg.tensor([-1.0, float("inf"), float("nan")]))
    tensor({text})
    """)


isnan = _kind_of_number("isnan", "is NaN", "[False, False,  True]")
isinf = _kind_of_number("isinf", "is infinite", "[False,  True, False]")
isfinite = _kind_of_number("isfinite", "is neither infinite nor NaN", "[ True, False, False]")
signbit = _kind_of_number("signbit", "has its sign bit set", "[ True, False, False]")


@public(method=True)
def isposinf(x):
    """Whether the number is plus infinity, elementwise.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor
        bool.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.isposinf(cg.tensor([float("inf"), float("-inf")]))
    tensor([ True, False])
    """
    return as_tensor("isposinf", x) == math.inf


@public(method=True)
def isneginf(x):
    """Whether the number is minus infinity, elementwise.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor
        bool.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.isneginf(cg.tensor([float("inf"), float("-inf")]))
    tensor([False,  True])
    """
    return as_tensor("isneginf", x) == -math.inf


# -------------------------------------------------------------------------------------------------------------- choosing
def _where_true(*condition):
    if len(condition) != 1:
        raise TypeError(f"where: takes a condition and two values, or a condition alone, got {len(condition)} operands")
    return PUBLIC["nonzero"](*condition)


where = define(
    "where", inputs=("condition", "x", "y"), extended=_where_true,
    vjp=(None, lambda g, condition: where(condition, g, 0), lambda g, condition: where(condition, 0, g)), kind=ELEMENTWISE,
    fused=(None, "where(condition, g, 0)", "where(condition, 0, g)"),
    doc="""`x` where the condition holds, else `y`, elementwise.

    With a condition alone, its true places, as `nonzero` gives them.
    Gradient: ``g`` for the value that was chosen, 0 for the other one, even if that one is infinite or NaN.

    >>> x = cg.tensor([-1.0, 2.0])
    >>> cg.where(x > 0, x, 0)
    tensor([0., 2.])
    """)

_clip = define(
    "clip", inputs=("x", "low", "high"),
    vjp=(lambda g, x, low, high: where(logical_and(x >= low, x <= high), g, 0),
         lambda g, x, low, high: where(logical_and(x < low, low <= high), g, 0),
         lambda g, x, low, high: where(logical_or(x > high, low > high), g, 0)),
    kind=ELEMENTWISE, public=False)
_clip_low = define(
    "clip_low", kernel="maximum", inputs=("x", "low"),
    vjp=(lambda g, x, low: where(x >= low, g, 0), lambda g, x, low: where(x < low, g, 0)), kind=ELEMENTWISE, public=False)
_clip_high = define(
    "clip_high", kernel="minimum", inputs=("x", "high"),
    vjp=(lambda g, x, high: where(x <= high, g, 0), lambda g, x, high: where(x > high, g, 0)), kind=ELEMENTWISE,
    public=False)


@public(method=True)
def clip(x, min=None, max=None):
    """`x` held between two bounds, elementwise: ``minimum(maximum(x, min), max)``.

    Parameters
    ----------
    x : Tensor
    min, max : Tensor, number or None, optional
        The bounds; they broadcast with `x`.  None stands for no bound.

    Returns
    -------
    Tensor

    Notes
    -----
    NaN stays NaN; where the bounds cross, `max` wins.  The gradient goes to `x` between the bounds and at them, else to the bound
    that was taken (as PyTorch's ``clamp`` has it).

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.clip(cg.tensor([-1.0, 0.5, 7.0]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if max is None:
        return +as_tensor("clip", x) if min is None else _clip_low(x, min)
    return _clip_high(x, max) if min is None else _clip(x, min, max)


@public(method=True)
def clamp_min(x, min):
    """`x` or the lower bound, whichever is larger, elementwise; see `clip`.

    Parameters
    ----------
    x : Tensor
    min : Tensor or number

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.clamp_min(cg.tensor([-1.0, 0.5]), 0)
    tensor([0.0000, 0.5000])
    """
    return _clip_low(x, min)


@public(method=True)
def clamp_max(x, max):
    """`x` or the upper bound, whichever is smaller, elementwise; see `clip`.

    Parameters
    ----------
    x : Tensor
    max : Tensor or number

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.clamp_max(cg.tensor([0.5, 7.0]), 1)
    tensor([0.5000, 1.0000])
    """
    return _clip_high(x, max)


@public(method=True)
def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    """`x` with numbers in place of NaN and the infinities, elementwise.

    Parameters
    ----------
    x : Tensor
    nan : float, optional
    posinf, neginf : float, optional
        By default the largest and the lowest number of the dtype.

    Returns
    -------
    Tensor
        Same dtype; integers come back as they are.

    Notes
    -----
    Gradient: ``g`` where `x` is finite, 0 where it was replaced.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nan_to_num(cg.tensor([1.0, float("nan"), float("inf")]), posinf=9.0)
    tensor([1., 0., 9.])
    """
    x = as_tensor("nan_to_num", x)
    if not x.dtype.is_floating_point:
        return +x if x.dtype != bool_ else x.clone()
    from cgrad.ops.namespace import finfo      # a later file
    largest = finfo(x).max
    y = where(isnan(x), 0.0 if nan is None else nan, x)
    y = where(isposinf(x), largest if posinf is None else posinf, y)
    return where(isneginf(x), -largest if neginf is None else neginf, y)


# ---------------------------------------------------------------------------------------------------- nearly, altogether
@public(method=True)
def isclose(x, y, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether two numbers differ little, elementwise: ``|x - y| <= atol + rtol * |y|``.

    Parameters
    ----------
    x, y : Tensor or number
        Their shapes broadcast.
    rtol, atol : float, optional
        Relative and absolute tolerance, not negative.
    equal_nan : bool, optional
        Whether NaN counts as close to NaN.

    Returns
    -------
    Tensor
        bool.

    Raises
    ------
    ValueError
        If a tolerance is negative.

    Notes
    -----
    Infinities are close only if equal.  No gradient.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.isclose(cg.tensor([1.0, 2.0]), cg.tensor([1.0 + 1e-7, 2.1]))
    tensor([ True, False])
    """
    if rtol < 0 or atol < 0:
        raise ValueError(f"isclose: tolerances cannot be negative, got rtol={rtol} and atol={atol}")
    x, y = as_tensor("isclose", x).detach(), as_tensor("isclose", y).detach()
    same = x == y
    if not (x.dtype.is_floating_point or y.dtype.is_floating_point):
        x, y = x.astype("float64"), y.astype("float64")
    near = logical_and(isfinite(y), abs(x - y) <= abs(y) * rtol + atol)
    close = logical_or(same, near)
    return logical_or(close, logical_and(x != x, y != y)) if equal_nan else close


@public(method=True)
def allclose(x, y, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all numbers differ little; see `isclose`.

    Parameters
    ----------
    x, y : Tensor or number
        Their shapes broadcast.
    rtol, atol : float, optional
        Relative and absolute tolerance, not negative.
    equal_nan : bool, optional
        Whether NaN counts as close to NaN.

    Returns
    -------
    bool

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.allclose(cg.tensor([1.0, 2.0]), cg.tensor([1.0, 2.0 + 1e-7]))
    True
    """
    return bool(isclose(x, y, rtol, atol, equal_nan).all())


@public(method=False)
def array_equal(x, y):
    """Whether two tensors have the same shape and the same numbers.

    Parameters
    ----------
    x, y : Tensor

    Returns
    -------
    bool

    Notes
    -----
    `equal` compares elementwise.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.array_equal(cg.tensor([1, 2]), cg.tensor([1, 2]))
    True
    """
    x, y = as_tensor("array_equal", x), as_tensor("array_equal", y)
    return x.shape == y.shape and bool((x == y).all())
