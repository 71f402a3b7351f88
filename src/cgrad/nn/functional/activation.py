"""Activation functions with PyTorch's signatures: those of `cgrad` and the switch `inplace`.

The formulas, their gradients and their values at kinks are in `ops/activation.py` and `ops/softmax.py`.
"""
from __future__ import annotations

import cgrad as cg
from cgrad.ops.activation import gelu, hardshrink, prelu, softplus, softshrink, softsign, tanhshrink
from cgrad.ops.elementwise import logsigmoid, sigmoid
from cgrad.ops.elementwise import tanh

__all__ = [
    "celu", "celu_", "elu", "elu_", "gelu", "glu", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hardtanh_", "leaky_relu",
    "leaky_relu_", "log_softmax", "logsigmoid", "mish", "prelu", "relu", "relu6", "relu_", "rrelu", "rrelu_", "selu", "selu_", "sigmoid", "silu",
    "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "threshold_",
]


def _in_place(function, input, *args):
    # The rule of most functions needs the input in backward, so it is computed from a copy.
    return input.copy_(function(input.clone(), *args))


def relu(input, inplace=False):
    """Rectified linear unit, ``max(x, 0)``.

    Parameters
    ----------
    input : Tensor
    inplace : bool, default False
        Write the result into `input`.

    Notes
    -----
    The gradient at 0 is 0. NaN stays NaN.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.relu(cg.tensor([-1.0, 0.0, 2.0]))
    tensor([0., 0., 2.])
    """
    return _in_place(cg.relu, input) if inplace else cg.relu(input)


def relu6(input, inplace=False):
    """``min(max(x, 0), 6)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.relu6(cg.tensor([-1.0, 3.0, 8.0]))
    tensor([0., 3., 6.])
    """
    return _in_place(cg.relu6, input) if inplace else cg.relu6(input)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """``min(max(x, min_val), max_val)``; the gradient is 0 at both corners.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.hardtanh(cg.tensor([-3.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    return _in_place(cg.hardtanh, input, min_val, max_val) if inplace else cg.hardtanh(input, min_val, max_val)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """``x`` where positive, ``negative_slope * x`` elsewhere.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.leaky_relu(cg.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    return _in_place(cg.leaky_relu, input, negative_slope) if inplace else cg.leaky_relu(input, negative_slope)


def elu(input, alpha=1.0, inplace=False):
    """Exponential linear unit: ``x`` where positive, ``alpha * (exp(x) - 1)`` elsewhere.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.elu(cg.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return _in_place(cg.elu, input, alpha) if inplace else cg.elu(input, alpha)


def celu(input, alpha=1.0, inplace=False):
    """Continuously differentiable ELU: ``max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.celu(cg.tensor([-1.0, 2.0]), alpha=2.0)
    tensor([-0.7869,  2.0000])
    """
    return _in_place(cg.celu, input, alpha) if inplace else cg.celu(input, alpha)


def selu(input, inplace=False):
    """Self-normalising ELU with the constants of Klambauer et al. (2017).

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.selu(cg.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return _in_place(cg.selu, input) if inplace else cg.selu(input)


def silu(input, inplace=False):
    """Sigmoid linear unit (swish), ``x * sigmoid(x)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.silu(cg.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2689,  0.0000,  0.7311])
    """
    return _in_place(cg.silu, input) if inplace else cg.silu(input)


def mish(input, inplace=False):
    """``x * tanh(softplus(x))``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.mish(cg.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.3034,  0.0000,  0.8651])
    """
    return _in_place(cg.mish, input) if inplace else cg.mish(input)


def hardsigmoid(input, inplace=False):
    """``relu6(x + 3) / 6``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.hardsigmoid(cg.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return _in_place(cg.hardsigmoid, input) if inplace else cg.hardsigmoid(input)


def hardswish(input, inplace=False):
    """``x * relu6(x + 3) / 6``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.hardswish(cg.tensor([0.0, 1.0, 4.0]))
    tensor([0.0000, 0.6667, 4.0000])
    """
    return _in_place(cg.hardswish, input) if inplace else cg.hardswish(input)


def threshold(input, threshold, value, inplace=False):
    """``x`` where it exceeds `threshold`, `value` elsewhere.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.threshold(cg.tensor([0.5, 2.0]), 1.0, -1.0)
    tensor([-1.,  2.])
    """
    return _in_place(cg.threshold, input, threshold, value) if inplace else cg.threshold(input, threshold, value)


def rrelu(input, lower=1 / 8, upper=1 / 3, training=False, inplace=False):
    """``x`` where positive, ``slope * x`` elsewhere, with a slope drawn anew for each element between `lower` and `upper`.

    Parameters
    ----------
    input : Tensor
    lower, upper : float
    training : bool, default False
        Otherwise all slopes are the mean of the two bounds.
    inplace : bool, default False
        Write the result into `input`.

    Raises
    ------
    ValueError
        If `lower` exceeds `upper`.

    Notes
    -----
    Xu et al., "Empirical Evaluation of Rectified Activations in Convolutional Network", 2015.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.rrelu(cg.tensor([-1.0, 2.0]), 0.1, 0.3)
    tensor([-0.2000,  2.0000])
    """
    if lower > upper:
        raise ValueError(f"rrelu: lower {lower} exceeds upper {upper}")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    slope = cg.rand_like(input) * (upper - lower) + lower
    return _in_place(_sloped, input, slope) if inplace else _sloped(input, slope)


def _sloped(input, slope):
    return cg.where(input > 0, input, input * slope)


def glu(input, dim=-1):
    """Gated linear unit: the first half of an axis times the logistic function of the second.

    Parameters
    ----------
    input : Tensor
    dim : int, default -1
        An axis of even length.

    Returns
    -------
    Tensor
        With half the length along the axis.

    Raises
    ------
    ValueError
        If the length is odd.

    Notes
    -----
    Dauphin et al., "Language Modeling with Gated Convolutional Networks", 2017.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.glu(cg.tensor([1.0, 2.0, 0.0, 100.0]))
    tensor([0.5000, 2.0000])
    """
    if input.ndim == 0 or input.shape[dim] % 2:
        raise ValueError(f"glu: axis {dim} must have an even length, got shape {tuple(input.shape)}")
    half = input.shape[dim] // 2
    return cg.narrow(input, dim, 0, half) * cg.sigmoid(cg.narrow(input, dim, half, half))


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
    return cg.softmax(input, dim, dtype)


def softmin(input, dim=None, dtype=None):
    """``softmax(-x)`` along an axis, which must be given.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.softmin(cg.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([0.6652, 0.2447, 0.0900])
    """
    return cg.softmax(-input, dim, dtype)


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
    return cg.log_softmax(input, dim, dtype)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A sample from a categorical distribution that gradients pass through.

    Parameters
    ----------
    logits : Tensor
        Logarithms of probabilities, up to a constant.
    tau : float, default 1
        The temperature: the smaller, the nearer the sample is to one-hot.
    hard : bool, default False
        Give a one-hot sample, with the gradient of the soft one (straight through).
    eps : float
        Has no effect; there for PyTorch's signature.
    dim : int, default -1
        The axis of the categories.

    Raises
    ------
    ValueError
        If `tau` is not positive.

    Notes
    -----
    ``softmax((logits + g) / tau)`` with g = -log(e), e exponentially distributed; Jang et al. and Maddison et al., 2017.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.gumbel_softmax(cg.tensor([[-100.0, 100.0]]), hard=True)
    tensor([[0., 1.]])
    """
    if not tau > 0:
        raise ValueError(f"gumbel_softmax: tau must be positive, got {tau}")
    with cg.no_grad():
        uniform = cg.rand(*logits.shape, dtype=logits.dtype)              # in [0, 1), so 1 - uniform is never 0
        noise = -cg.log(cg.maximum(-cg.log1p(-uniform), cg.finfo(logits.dtype).smallest_normal))
    soft = cg.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    chosen = soft.argmax(axis=dim, keepdims=True)
    one_hot = cg.zeros_like(soft.detach()).scatter(dim, chosen, 1.0)
    return one_hot - soft.detach() + soft


def relu_(input):
    """`relu` written into its input, which is returned."""
    return relu(input, inplace=True)


def selu_(input):
    """`selu` written into its input, which is returned."""
    return selu(input, inplace=True)


def elu_(input, alpha=1.0):
    """`elu` written into its input, which is returned."""
    return elu(input, alpha, inplace=True)


def celu_(input, alpha=1.0):
    """`celu` written into its input, which is returned."""
    return celu(input, alpha, inplace=True)


def leaky_relu_(input, negative_slope=0.01):
    """`leaky_relu` written into its input, which is returned."""
    return leaky_relu(input, negative_slope, inplace=True)


def hardtanh_(input, min_val=-1.0, max_val=1.0):
    """`hardtanh` written into its input, which is returned."""
    return hardtanh(input, min_val, max_val, inplace=True)


def threshold_(input, threshold, value):
    """`threshold` written into its input, which is returned."""
    return _in_place(cg.threshold, input, threshold, value)


def rrelu_(input, lower=1 / 8, upper=1 / 3, training=False):
    """`rrelu` written into its input, which is returned."""
    return rrelu(input, lower, upper, training, inplace=True)
