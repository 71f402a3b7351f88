"""Activation functions as layers; the formulas are in `functional.activation`."""
from __future__ import annotations

import cgrad as cg
from cgrad.core.device import check_device
from cgrad.nn import functional as F
from cgrad.nn.module import Module, check_sizes
from cgrad.nn.parameter import Parameter

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish", "PReLU",
    "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh",
    "Tanhshrink", "Threshold",
]


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


class ReLU6(_InPlace):
    """``min(max(x, 0), 6)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.ReLU6()(cg.tensor([-1.0, 3.0, 8.0]))
    tensor([0., 3., 6.])
    """

    def forward(self, input):
        return F.relu6(input, self.inplace)


class SELU(_InPlace):
    """Self-normalising ELU; see `functional.selu`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.SELU()(cg.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """

    def forward(self, input):
        return F.selu(input, self.inplace)


class Mish(_InPlace):
    """``x * tanh(softplus(x))``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Mish()(cg.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.3034,  0.0000,  0.8651])
    """

    def forward(self, input):
        return F.mish(input, self.inplace)


class Hardsigmoid(_InPlace):
    """``relu6(x + 3) / 6``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Hardsigmoid()(cg.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """

    def forward(self, input):
        return F.hardsigmoid(input, self.inplace)


class Hardswish(_InPlace):
    """``x * relu6(x + 3) / 6``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Hardswish()(cg.tensor([0.0, 1.0, 4.0]))
    tensor([0.0000, 0.6667, 4.0000])
    """

    def forward(self, input):
        return F.hardswish(input, self.inplace)


class LogSigmoid(Module):
    """``log(1 / (1 + exp(-x)))``, without overflow.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.LogSigmoid()(cg.tensor([-100.0, 0.0]))
    tensor([-100.0000,   -0.6931])
    """

    def forward(self, input):
        return F.logsigmoid(input)


class Softsign(Module):
    """``x / (1 + |x|)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Softsign()(cg.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """

    def forward(self, input):
        return F.softsign(input)


class Tanhshrink(Module):
    """``x - tanh(x)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Tanhshrink()(cg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2384])
    """

    def forward(self, input):
        return F.tanhshrink(input)


class CELU(_InPlace):
    """Continuously differentiable ELU; see `functional.celu`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.CELU(2.0)(cg.tensor([-1.0, 2.0]))
    tensor([-0.7869,  2.0000])
    """

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input):
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self):
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class Hardtanh(_InPlace):
    """``min(max(x, min_val), max_val)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Hardtanh()(cg.tensor([-3.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False):
        super().__init__(inplace)
        if not min_val < max_val:
            raise ValueError(f"Hardtanh: min_val must be below max_val, got {min_val} and {max_val}")
        self.min_val = min_val
        self.max_val = max_val

    def forward(self, input):
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class Threshold(_InPlace):
    """``x`` where it exceeds `threshold`, `value` elsewhere.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Threshold(1.0, -1.0)(cg.tensor([0.5, 2.0]))
    tensor([-1.,  2.])
    """

    def __init__(self, threshold, value, inplace=False):
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input):
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self):
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class Hardshrink(Module):
    """0 where ``|x| <= lambd``, ``x`` elsewhere.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Hardshrink()(cg.tensor([-1.0, 0.25]))
    tensor([-1.,  0.])
    """

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input):
        return F.hardshrink(input, self.lambd)

    def extra_repr(self):
        return f"lambd={self.lambd}"


class Softshrink(Module):
    """``x`` moved towards 0 by `lambd`, and 0 where ``|x| <= lambd``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Softshrink()(cg.tensor([-1.0, 0.25]))
    tensor([-0.5000,  0.0000])
    """

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input):
        return F.softshrink(input, self.lambd)

    def extra_repr(self):
        return f"lambd={self.lambd}"


class GLU(Module):
    """Gated linear unit: the first half of an axis times the logistic function of the second; see `functional.glu`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.GLU()(cg.tensor([1.0, 2.0, 0.0, 100.0]))
    tensor([0.5000, 2.0000])
    """

    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return F.glu(input, self.dim)

    def extra_repr(self):
        return f"dim={self.dim}"


class Softmin(Module):
    """``softmax(-x)`` along the axis `dim`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Softmin(dim=0)(cg.tensor([1.0, 2.0, 3.0]))
    tensor([0.6652, 0.2447, 0.0900])
    """

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return F.softmin(input, self.dim)

    def extra_repr(self):
        return f"dim={self.dim}"


class Softmax2d(Module):
    """Softmax over the channels at each place of images of shape (N, C, H, W) or (C, H, W).

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Softmax2d()(cg.zeros(2, 1, 1)).ravel()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input):
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: the input must have 3 or 4 axes, got shape {tuple(input.shape)}")
        return F.softmax(input, -3)


class RReLU(_InPlace):
    """``x`` where positive, ``slope * x`` elsewhere; in training each element draws its slope between `lower` and `upper`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.RReLU(0.1, 0.3).eval()(cg.tensor([-1.0, 2.0]))
    tensor([-0.2000,  2.0000])
    """

    def __init__(self, lower=1 / 8, upper=1 / 3, inplace=False):
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, input):
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self):
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    """``x`` where positive, ``weight * x`` elsewhere, with a slope that is learned.

    Parameters
    ----------
    num_parameters : int, default 1
        One slope for all, or one for each channel (the second axis of the input).
    init : float, default 0.25
    dtype : dtype, optional
        Default: the default floating dtype.

    Attributes
    ----------
    weight : Parameter, shape (num_parameters,)

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.PReLU()(cg.tensor([-1.0, 2.0])).detach()
    tensor([-0.2500,  2.0000])
    """

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        check_device(type(self).__name__, device)
        super().__init__()
        check_sizes(self, num_parameters=num_parameters)
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(cg.empty((num_parameters,), dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self):
        """Set all slopes to their start."""
        with cg.no_grad():
            self.weight.fill_(self.init)

    def forward(self, input):
        return F.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"
