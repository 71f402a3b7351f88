"""Activation functions, elementwise but for the softmax family."""
from __future__ import annotations

import math

import cgrad as cg

__all__ = [
    "celu", "elu", "gelu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "log_softmax", "logsigmoid", "mish", "relu", "relu6",
    "selu", "sigmoid", "silu", "softmax", "softmin", "softplus", "softsign", "tanh", "tanhshrink",
]


def _place(input, out, inplace):
    return input.copy_(out) if inplace else out


def relu(input, inplace=False):
    """Rectified linear unit, ``max(x, 0)``.

    Notes
    -----
    The gradient at 0 is 0. NaN stays NaN.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.relu(cg.tensor([-1.0, 0.0, 2.0]))
    tensor([0., 0., 2.])
    """
    out = cg.relu(input)
    return input.copy_(out) if inplace else out


def relu6(input, inplace=False):
    """``min(max(x, 0), 6)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.relu6(cg.tensor([-1.0, 3.0, 8.0]))
    tensor([0., 3., 6.])
    """
    return hardtanh(input, 0.0, 6.0, inplace)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """``min(max(x, min_val), max_val)``.

    Notes
    -----
    The gradient is 0 at both corners.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.hardtanh(cg.tensor([-3.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if not min_val < max_val:
        raise ValueError(f"hardtanh: min_val must be below max_val, got {min_val} and {max_val}")
    inside = (input > min_val) & (input < max_val)
    return _place(input, cg.where(inside, input, cg.clip(input.detach(), min_val, max_val)), inplace)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """``x`` where positive, ``negative_slope * x`` elsewhere.

    Notes
    -----
    The gradient at 0 is `negative_slope`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.leaky_relu(cg.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    return _place(input, cg.where(input > 0, input, input * negative_slope), inplace)


def elu(input, alpha=1.0, inplace=False):
    """Exponential linear unit: ``x`` where positive, ``alpha * (exp(x) - 1)`` elsewhere.

    Notes
    -----
    The gradient at 0 is `alpha`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.elu(cg.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return _place(input, _elu(input, 1.0, alpha, 1.0), inplace)


def _elu(x, scale, alpha, inner):
    """``scale * x`` where positive, else ``scale * alpha * (exp(inner * x) - 1)``; expm1 never sees a large number."""
    positive = x > 0
    low = cg.expm1(cg.where(positive, 0.0, x) * inner) * (scale * alpha)
    return cg.where(positive, x * scale if scale != 1.0 else x, low)


def celu(input, alpha=1.0, inplace=False):
    """Continuously differentiable ELU: ``max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.celu(cg.tensor([-1.0, 2.0]), alpha=2.0)
    tensor([-0.7869,  2.0000])
    """
    if alpha == 0:
        raise ValueError("celu: alpha must not be 0")
    return _place(input, _elu(input, 1.0, alpha, 1.0 / alpha), inplace)


def selu(input, inplace=False):
    """Self-normalising ELU with the constants of Klambauer et al. (2017).

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.selu(cg.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return _place(input, _elu(input, 1.0507009873554804934193349852946, 1.6732632423543772848170429916717, 1.0), inplace)


def gelu(input, approximate="none"):
    """Gaussian error linear unit, ``x * Phi(x)`` with the normal distribution function Phi.

    Parameters
    ----------
    input : Tensor
    approximate : {"none", "tanh"}
        "tanh" computes ``0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))``.

    Notes
    -----
    Hendrycks and Gimpel, arXiv:1606.08415.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.gelu(cg.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])
    """
    if approximate == "none":
        return input * 0.5 * (cg.erf(input * math.sqrt(0.5)) + 1.0)
    if approximate == "tanh":
        return input * 0.5 * (cg.tanh((input * input * 0.044715 + 1.0) * input * math.sqrt(2.0 / math.pi)) + 1.0)
    raise ValueError(f'gelu: approximate must be "none" or "tanh", got {approximate!r}')


def silu(input, inplace=False):
    """Sigmoid linear unit (swish), ``x * sigmoid(x)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.silu(cg.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2689,  0.0000,  0.7311])
    """
    return _place(input, input * cg.sigmoid(input), inplace)


def mish(input, inplace=False):
    """``x * tanh(softplus(x))``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.mish(cg.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.3034,  0.0000,  0.8651])
    """
    return _place(input, input * cg.tanh(softplus(input)), inplace)


def hardsigmoid(input, inplace=False):
    """``relu6(x + 3) / 6``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.hardsigmoid(cg.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return _place(input, relu6(input + 3.0) / 6.0, inplace)


def hardswish(input, inplace=False):
    """``x * relu6(x + 3) / 6``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.hardswish(cg.tensor([-4.0, 1.0, 4.0]))
    tensor([-0.0000,  0.6667,  4.0000])
    """
    return _place(input, input * relu6(input + 3.0) / 6.0, inplace)


def softplus(input, beta=1.0, threshold=20.0):
    """Smooth relu, ``log(1 + exp(beta * x)) / beta``, without overflow.

    Parameters
    ----------
    input : Tensor
    beta : float, default 1
    threshold : float, default 20
        Accepted for likeness with PyTorch, which returns ``x`` above it; here the exact formula is used everywhere.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.softplus(cg.tensor([-1.0, 0.0, 1000.0]))
    tensor([   0.3133,    0.6931, 1000.0000])
    """
    if beta == 1.0:
        return cg.softplus(input)
    if beta == 0:
        raise ValueError("softplus: beta must not be 0")
    return cg.softplus(input * beta) / beta


def logsigmoid(input):
    """``log(sigmoid(x))`` without overflow.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.logsigmoid(cg.tensor([-100.0, 0.0]))
    tensor([-100.0000,   -0.6931])
    """
    return -cg.softplus(-input)


def softsign(input):
    """``x / (1 + |x|)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.softsign(cg.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    return input / (abs(input) + 1.0)


def tanhshrink(input):
    """``x - tanh(x)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.tanhshrink(cg.tensor([1.0]))
    tensor([0.2384])
    """
    return input - cg.tanh(input)


def sigmoid(input):
    """``1 / (1 + exp(-x))``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.sigmoid(cg.tensor([0.0]))
    tensor([0.5000])
    """
    return cg.sigmoid(input)


def tanh(input):
    """Hyperbolic tangent.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.tanh(cg.tensor([1.0]))
    tensor([0.7616])
    """
    return cg.tanh(input)


def _axis(name, dim):
    if dim is None:
        raise TypeError(f"{name}: say along which axis, for instance dim=-1")
    return dim


def softmax(input, dim=None, dtype=None):
    """``exp(x) / sum(exp(x))`` along an axis, without overflow.

    Parameters
    ----------
    input : Tensor
    dim : int
        The axis along which the results sum to 1. It must be given.
    dtype : dtype, optional
        Convert the input first.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.softmax(cg.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([0.0900, 0.2447, 0.6652])
    """
    return cg.softmax(input if dtype is None else input.astype(dtype), _axis("softmax", dim))


def softmin(input, dim=None, dtype=None):
    """``softmax(-x)`` along an axis.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.softmin(cg.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([0.6652, 0.2447, 0.0900])
    """
    return softmax(-input, _axis("softmin", dim), dtype)


def log_softmax(input, dim=None, dtype=None):
    """``x - log(sum(exp(x)))`` along an axis, without overflow.

    Parameters
    ----------
    input : Tensor
    dim : int
        The axis along which the exponentials of the results sum to 1. It must be given.
    dtype : dtype, optional
        Convert the input first.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.log_softmax(cg.tensor([1000.0, 0.0]), dim=0)
    tensor([    0., -1000.])
    """
    return cg.log_softmax(input if dtype is None else input.astype(dtype), _axis("log_softmax", dim))
