"""Activation functions as layers; the formulas are in `functional.activation`."""
from __future__ import annotations

from cgrad.nn import functional as F
from cgrad.nn.module import Module

__all__ = ["ReLU", "Tanh", "Sigmoid", "GELU", "SiLU", "Softplus", "LeakyReLU", "ELU", "Softmax", "LogSoftmax"]


class _InPlace(Module):
    """What layers with an `inplace` switch share."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace

    def extra_repr(self):
        return "inplace=True" if self.inplace else ""


class ReLU(_InPlace):
    """``max(x, 0)``; see `functional.relu`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.ReLU()(cg.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input):
        return F.relu(input, self.inplace)


class SiLU(_InPlace):
    """``x * sigmoid(x)``; see `functional.silu`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.SiLU()(cg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """

    def forward(self, input):
        return F.silu(input, self.inplace)


class Tanh(Module):
    """Hyperbolic tangent.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Tanh()(cg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """

    def forward(self, input):
        return F.tanh(input)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Sigmoid()(cg.tensor([0.0]))
    tensor([0.5000])
    """

    def forward(self, input):
        return F.sigmoid(input)


class GELU(Module):
    """Gaussian error linear unit; see `functional.gelu`.

    Parameters
    ----------
    approximate : {"none", "tanh"}

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.GELU()(cg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8413])
    """

    def __init__(self, approximate="none"):
        super().__init__()
        if approximate not in ("none", "tanh"):
            raise ValueError(f'GELU: approximate must be "none" or "tanh", got {approximate!r}')
        self.approximate = approximate

    def forward(self, input):
        return F.gelu(input, self.approximate)

    def extra_repr(self):
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """``log(1 + exp(beta * x)) / beta``; see `functional.softplus`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Softplus()(cg.tensor([0.0]))
    tensor([0.6931])
    """

    def __init__(self, beta=1.0, threshold=20.0):
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input):
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self):
        return f"beta={self.beta}, threshold={self.threshold}"


class LeakyReLU(_InPlace):
    """``x`` where positive, ``negative_slope * x`` elsewhere.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.LeakyReLU(0.5)(cg.tensor([-1.0, 2.0]))
    tensor([-0.5000,  2.0000])
    """

    def __init__(self, negative_slope=0.01, inplace=False):
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input):
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self):
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class ELU(_InPlace):
    """``x`` where positive, ``alpha * (exp(x) - 1)`` elsewhere.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.ELU()(cg.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input):
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self):
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class Softmax(Module):
    """``exp(x) / sum(exp(x))`` along the axis `dim`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Softmax(dim=-1)(cg.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return F.softmax(input, self.dim)

    def extra_repr(self):
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """Logarithm of the softmax along the axis `dim`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.LogSoftmax(dim=-1)(cg.tensor([0.0, 0.0]))
    tensor([-0.6931, -0.6931])
    """

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return F.log_softmax(input, self.dim)

    def extra_repr(self):
        return f"dim={self.dim}"
