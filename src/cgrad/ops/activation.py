"""The functions between the layers of a network, elementwise.

A rule's parameter names say what the tape keeps (see define.py).  Those with a kernel of their own come first, those built
from others after them.  Next: compare.py.
"""
import math

from cgrad.ops import compare
from cgrad.core.arguments import as_floating
from cgrad.ops.arithmetic import minimum, reciprocal, sign, square
from cgrad.ops.define import ELEMENTWISE, define, public
from cgrad.ops.elementwise import erf, exp, expm1, sigmoid, tanh

_TANH_SCALE = math.sqrt(2 / math.pi)       # gelu(x, "tanh") = x * (1 + tanh(_TANH_SCALE * (x + 0.044715 * x**3))) / 2

relu = define(
    "relu", vjp=lambda g, out: compare.where(out <= 0, 0, g), kind=ELEMENTWISE, fused="relu_backward(g, out)",
    doc="""Rectifier, elementwise: `x` where it is positive, else 0.

    NaN stays NaN.  Gradient: ``g`` where ``x > 0``, 0 elsewhere, also at 0.

    >>> cg.relu(cg.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """)


def _gelu_slope(x):
    """Phi(x) + x * phi(x) of the standard normal distribution."""
    x = compare.clip(x, -40, 40)               # beyond, the density is 0, and so is its product with infinity
    density = exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
    return (erf(x * math.sqrt(0.5)) + 1) * 0.5 + x * density


def _gelu_tanh_slope(x):
    x = compare.clip(x, -40, 40)
    square = x * x
    t = tanh((square * 0.044715 + 1) * x * _TANH_SCALE)
    return (t + 1) * 0.5 + x * 0.5 * (1 - t * t) * ((square * (3 * 0.044715) + 1) * _TANH_SCALE)


_gelu = define("gelu", vjp=lambda g, x: g * _gelu_slope(x), kind=ELEMENTWISE, fused="gelu_backward(g, x)",
               result="float", public=False)
_gelu_tanh = define("gelu_tanh", vjp=lambda g, x: g * _gelu_tanh_slope(x), kind=ELEMENTWISE,
                    fused="gelu_tanh_backward(g, x)", result="float", public=False)


@public(method=True)
def gelu(x, approximate="none"):
    """Gaussian error linear unit, elementwise: `x` times the standard normal probability of being below `x`.

    Parameters
    ----------
    x : Tensor
    approximate : {"none", "tanh"}, optional
        ``"tanh"`` takes ``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2``.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        For another `approximate`.

    Notes
    -----
    ``x * erfc(-x / sqrt(2)) / 2``; Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
    Gradient: ``g * (Phi(x) + x * phi(x))`` with the standard normal distribution Phi and its density phi.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.gelu(cg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8413])
    """
    if approximate == "none":
        return _gelu(x)
    if approximate == "tanh":
        return _gelu_tanh(x)
    raise ValueError(f'gelu: approximate must be "none" or "tanh", got {approximate!r}')


def _silu_slope(x):
    x = compare.clip(x, -1000, 1000)           # beyond, the sigmoid is 0 or 1
    s = sigmoid(x)
    return s * ((1 - s) * x + 1)


silu = define(
    "silu", vjp=lambda g, x: g * _silu_slope(x), kind=ELEMENTWISE, fused="silu_backward(g, x)", result="float",
    doc="""Sigmoid linear unit (swish), elementwise: ``x * sigmoid(x)``.

    Gradient: ``g * sigmoid(x) * (1 + x * (1 - sigmoid(x)))``.

    >>> cg.silu(cg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """)

_softplus = define("softplus", vjp=lambda g, x: g * sigmoid(x), kind=ELEMENTWISE, fused="softplus_backward(g, x)",
                   result="float", public=False)


@public(method=True)
def softplus(x, beta=1.0, threshold=20.0):
    """Smooth rectifier, elementwise: ``log(1 + exp(beta * x)) / beta`` without overflow.

    Parameters
    ----------
    x : Tensor
    beta : float, optional
    threshold : float, optional
        Where ``beta * x`` exceeds it, the result is `x` itself, as in PyTorch.  The default, above which only rounding is
        left, is not applied, since the formula needs none.

    Returns
    -------
    Tensor

    Notes
    -----
    Gradient: ``g * sigmoid(beta * x)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.softplus(cg.tensor([0.0, 100.0]))
    tensor([  0.6931, 100.0000])
    """
    smooth = _softplus(x) if beta == 1 else _softplus(x * beta) / beta
    return smooth if threshold >= 20 else compare.where(x * beta > threshold, x, smooth)


# -------------------------------------------------------------------------------------------- with options, one node each
_leaky_relu = define(
    "leaky_relu", forward=lambda x, negative_slope: compare.where(x > 0, x, x * negative_slope), inputs=("x",),
    options=("negative_slope",), vjp=lambda g, x, negative_slope: compare.where(x > 0, g, g * negative_slope),
    kind=ELEMENTWISE, public=False)


@public(method=True)
def leaky_relu(x, negative_slope=0.01):
    """Rectifier with a slope on the negative side, elementwise: `x` where positive, else ``negative_slope * x``.

    Parameters
    ----------
    x : Tensor
    negative_slope : float, optional

    Returns
    -------
    Tensor

    Notes
    -----
    Gradient: ``g`` where ``x > 0``, else ``g * negative_slope``, also at 0.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.leaky_relu(cg.tensor([-1.0, 2.0]))
    tensor([-0.0100,  2.0000])
    """
    return _leaky_relu(as_floating("leaky_relu", x), negative_slope)


_elu = define(
    "elu", forward=lambda x, alpha: compare.where(x > 0, x, expm1(minimum(x, 0)) * alpha), inputs=("x",), options=("alpha",),
    vjp=lambda g, x, alpha: compare.where(x > 0, g, g * (exp(compare.where(x > 0, 0, x)) * alpha)), kind=ELEMENTWISE,
    public=False)


@public(method=True)
def elu(x, alpha=1.0):
    """Exponential linear unit, elementwise: `x` where positive, else ``alpha * (exp(x) - 1)``.

    Parameters
    ----------
    x : Tensor
    alpha : float, optional

    Returns
    -------
    Tensor

    Notes
    -----
    Gradient: ``g`` where ``x > 0``, else ``g * alpha * exp(x)``, also at 0.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.elu(cg.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return _elu(as_floating("elu", x), alpha)


@public(method=False)
def celu(x, alpha=1.0):
    """Continuously differentiable exponential linear unit, elementwise: ``max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)``.

    Parameters
    ----------
    x : Tensor
    alpha : float, optional

    Returns
    -------
    Tensor

    Raises
    ------
    ZeroDivisionError
        If `alpha` is 0.

    Notes
    -----
    Gradient: ``g`` where ``x > 0``, else ``g * exp(x / alpha)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.celu(cg.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    if alpha == 0:
        raise ZeroDivisionError("celu: alpha cannot be 0")
    return elu(as_floating("celu", x) / alpha, 1.0) * alpha


_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


@public(method=False)
def selu(x):
    """Self-normalising exponential linear unit, elementwise: ``scale * elu(x, alpha)``.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor

    Notes
    -----
    alpha = 1.67326..., scale = 1.05070...; Klambauer et al., "Self-Normalizing Neural Networks", 2017.
    Gradient: ``g * scale`` where ``x > 0``, else ``g * scale * alpha * exp(x)``, also at 0.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.selu(cg.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return elu(x, _SELU_ALPHA) * _SELU_SCALE


_hardtanh = define(
    "hardtanh", forward=lambda x, low, high: compare.clip(x, low, high), inputs=("x",), options=("low", "high"),
    vjp=lambda g, x, low, high: compare.where(compare.logical_or(x <= low, x >= high), 0, g), kind=ELEMENTWISE,
    public=False)


@public(method=False)
def hardtanh(x, min_val=-1.0, max_val=1.0):
    """`x` held between two bounds, elementwise.

    Parameters
    ----------
    x : Tensor
    min_val, max_val : float, optional

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If `min_val` exceeds `max_val`.

    Notes
    -----
    Gradient: ``g`` between the bounds, 0 at and beyond them (`clip` passes ``g`` at the bounds; both as in PyTorch).

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.hardtanh(cg.tensor([-3.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """
    if min_val > max_val:
        raise ValueError(f"hardtanh: min_val {min_val} exceeds max_val {max_val}")
    return _hardtanh(x, min_val, max_val)


@public(method=False)
def relu6(x):
    """Rectifier that stops at 6, elementwise.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor

    Notes
    -----
    Gradient: ``g`` for 0 < x < 6, 0 elsewhere, also at 0 and 6.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.relu6(cg.tensor([-1.0, 3.0, 8.0]))
    tensor([0., 3., 6.])
    """
    return _hardtanh(x, 0, 6)


@public(method=False)
def hardsigmoid(x):
    """Logistic function in three straight pieces, elementwise: ``x / 6 + 1 / 2`` held between 0 and 1.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor

    Notes
    -----
    Gradient: ``g / 6`` for -3 < x < 3, 0 elsewhere, also at -3 and 3.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.hardsigmoid(cg.tensor([0.0, 1.5, 4.0]))
    tensor([0.5000, 0.7500, 1.0000])
    """
    return _hardtanh(as_floating("hardsigmoid", x) + 3, 0, 6) / 6


def _hardswish_pieces(x, middle):
    return compare.where(x >= 3, x, middle * (middle + 3) / 6)


_hardswish = define(
    "hardswish", forward=lambda x: _hardswish_pieces(x, compare.clip(x, -3, 3)), inputs=("x",),
    vjp=lambda g, x: compare.where(x <= -3, 0, compare.where(x < 3, g * (compare.clip(x, -3, 3) / 3 + 0.5), g)), kind=ELEMENTWISE, public=False)


@public(method=False)
def hardswish(x):
    """Swish with a logistic function in three straight pieces, elementwise: ``x * hardsigmoid(x)``.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor

    Notes
    -----
    Gradient: 0 up to -3, ``g * (x / 3 + 1 / 2)`` below 3, ``g`` from there on.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.hardswish(cg.tensor([-4.0, 1.0, 4.0]))
    tensor([-0.0000,  0.6667,  4.0000])
    """
    return _hardswish(as_floating("hardswish", x))


def _mish_slope(x):
    x = compare.clip(x, -1000, 1000)           # beyond, it is 0 or 1
    t = tanh(_softplus(x))
    return t + x * sigmoid(x) * (1 - t * t)


_mish = define(
    "mish", forward=lambda x: compare.clamp_min(x, -1000) * tanh(_softplus(x)), inputs=("x",), vjp=lambda g, x: g * _mish_slope(x), kind=ELEMENTWISE,
    public=False)


@public(method=False)
def mish(x):
    """``x * tanh(softplus(x))``, elementwise.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor

    Notes
    -----
    Misra, "Mish: A Self Regularized Non-Monotonic Activation Function", 2019.
    Gradient: ``g * (t + x * sigmoid(x) * (1 - t**2))`` with ``t = tanh(softplus(x))``; the limits 0 and 1 at infinity.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.mish(cg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8651])
    """
    return _mish(as_floating("mish", x))


def _softsign_value(x):
    x = compare.clip(x, -1e30, 1e30)           # beyond, it is -1 or 1
    return x / (abs(x) + 1)


_softsign = define("softsign", forward=_softsign_value, inputs=("x",), vjp=lambda g, x: g * square(reciprocal(abs(x) + 1)), kind=ELEMENTWISE, public=False)


@public(method=False)
def softsign(x):
    """``x / (1 + |x|)``, elementwise.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor

    Notes
    -----
    -1 and 1 at infinity.  Gradient: ``g / (1 + |x|)**2``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.softsign(cg.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    return _softsign(as_floating("softsign", x))


@public(method=False)
def tanhshrink(x):
    """``x - tanh(x)``, elementwise.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor

    Notes
    -----
    Gradient: ``g * tanh(x)**2``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.tanhshrink(cg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2384])
    """
    return x - tanh(x)


@public(method=False)
def softshrink(x, lambd=0.5):
    """`x` moved towards 0 by `lambd`, elementwise, and 0 if it would cross it.

    Parameters
    ----------
    x : Tensor
    lambd : float, optional
        Not negative.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If `lambd` is negative.

    Notes
    -----
    Gradient: ``g`` where ``|x| > lambd``, 0 elsewhere.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.softshrink(cg.tensor([-2.0, 0.2, 1.0]))
    tensor([-1.5000,  0.0000,  0.5000])
    """
    if lambd < 0:
        raise ValueError(f"softshrink: lambd cannot be negative, got {lambd}")
    return compare.where(abs(x) <= lambd, 0, x - sign(x) * lambd)


@public(method=False)
def hardshrink(x, lambd=0.5):
    """0 where ``|x| <= lambd``, else `x`, elementwise.

    Parameters
    ----------
    x : Tensor
    lambd : float, optional

    Returns
    -------
    Tensor

    Notes
    -----
    Gradient: ``g`` where ``|x| > lambd``, 0 elsewhere.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.hardshrink(cg.tensor([-2.0, 0.2, 1.0]))
    tensor([-2.,  0.,  1.])
    """
    return compare.where(abs(x) <= lambd, 0, x)


@public(method=False)
def threshold(x, threshold, value):
    """`x` where it exceeds `threshold`, else `value`, elementwise.

    Parameters
    ----------
    x : Tensor
    threshold, value : float

    Returns
    -------
    Tensor

    Notes
    -----
    Gradient: ``g`` where ``x > threshold``, 0 elsewhere.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.threshold(cg.tensor([0.5, 2.0]), 1.0, -1.0)
    tensor([-1.,  2.])
    """
    return compare.where(x <= threshold, value, x)


@public(method=False)
def prelu(x, weight):
    """Rectifier with a learned slope on the negative side, elementwise: `x` where positive, else ``weight * x``.

    Parameters
    ----------
    x : Tensor
        Channels along axis 1 (axis 0 if there is only one).
    weight : Tensor
        One slope, or one for each channel.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If `weight` has another length.

    Notes
    -----
    Gradient in `x`: ``g`` where ``x > 0``, else ``g * weight``; in `weight`: ``g * min(x, 0)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.prelu(cg.tensor([-1.0, 2.0]), cg.tensor([0.25]))
    tensor([-0.2500,  2.0000])
    """
    if weight.ndim > 1 or weight.numel() > 1 and (x.ndim == 0 or weight.numel() != x.shape[min(x.ndim - 1, 1)]):
        raise ValueError(f"prelu: weight must hold one number or one for each channel; got shape {tuple(weight.shape)} for x of "
                         f"shape {tuple(x.shape)}")
    if weight.numel() == 1:
        weight = weight.reshape(())
    elif x.ndim > 2:
        weight = weight.reshape((-1,) + (1,) * (x.ndim - 2))
    # Of infinity nothing is to come into the product, whose slope in the weight would be NaN.
    return compare.where(x > 0, x, compare.where(x > 0, 0, x) * weight)
