"""Layers that normalise each sample: LayerNorm, RMSNorm, GroupNorm."""
from __future__ import annotations

import cgrad as cg
from cgrad.core.device import check_device
from cgrad.nn import functional as F
from cgrad.nn import init
from cgrad.nn.module import Module, check_sizes
from cgrad.nn.parameter import Parameter

__all__ = ["GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class LayerNorm(Module):
    """Set the last axes of each sample to mean 0 and variance 1, then scale and shift them.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        The shape of the axes over which mean and variance are taken.
    eps : float, default 1e-5
        Added to the variance.
    elementwise_affine : bool, default True
        Whether there are a weight and a bias.
    bias : bool, default True
        Whether there is a bias beside the weight.
    dtype : dtype, optional
        Default: the default floating dtype.

    Attributes
    ----------
    weight : Parameter, shape normalized_shape, or None
        Starts at 1.
    bias : Parameter, shape normalized_shape, or None
        Starts at 0.

    See Also
    --------
    cgrad.nn.functional.layer_norm : The formula.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.LayerNorm(2)(cg.tensor([[1.0, 3.0], [10.0, 30.0]])).detach()
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None):
        check_device(type(self).__name__, device)
        super().__init__()
        self.normalized_shape = _shape("LayerNorm", normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            self.register_parameter(name, Parameter(cg.empty(self.normalized_shape, dtype=dtype)) if wanted else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Set the weight to 1 and the bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class RMSNorm(Module):
    """Divide the last axes of each sample by the root of their mean square, then scale them.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        The shape of the axes over which the mean square is taken.
    eps : float, optional
        Added to the mean square; the machine epsilon of the input's dtype by default.
    elementwise_affine : bool, default True
        Whether there is a weight.
    dtype : dtype, optional
        Default: the default floating dtype.

    Attributes
    ----------
    weight : Parameter, shape normalized_shape, or None
        Starts at 1.

    See Also
    --------
    cgrad.nn.functional.rms_norm : The formula.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.RMSNorm(2)(cg.tensor([[3.0, 3.0], [-2.0, 2.0]])).detach()
    tensor([[ 1.,  1.],
            [-1.,  1.]])
    """

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        check_device(type(self).__name__, device)
        super().__init__()
        self.normalized_shape = _shape("RMSNorm", normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter("weight", Parameter(cg.empty(self.normalized_shape, dtype=dtype)) if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Set the weight to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input):
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Set each group of channels of each sample to mean 0 and variance 1, then scale and shift each channel.

    Parameters
    ----------
    num_groups : int
        Divides `num_channels`.
    num_channels : int
    eps : float, default 1e-5
        Added to the variance.
    affine : bool, default True
        Whether there are a weight and a bias.
    bias : bool, default True
        Whether there is a bias beside the weight.
    dtype : dtype, optional
        Default: the default floating dtype.

    Attributes
    ----------
    weight : Parameter, shape (num_channels,), or None
        Starts at 1.
    bias : Parameter, shape (num_channels,), or None
        Starts at 0.

    See Also
    --------
    cgrad.nn.functional.group_norm : The formula.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.GroupNorm(2, 4)(cg.tensor([[1.0, 3.0, 10.0, 30.0]])).detach()
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, *, bias=True):
        check_device(type(self).__name__, device)
        super().__init__()
        check_sizes(self, num_groups=num_groups)
        check_sizes(self, 0, num_channels=num_channels)
        if num_channels % num_groups:
            raise ValueError(f"GroupNorm: num_channels={num_channels} must be a multiple of num_groups={num_groups}")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, Parameter(cg.empty((num_channels,), dtype=dtype)) if wanted else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Set the weight to 1 and the bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class LocalResponseNorm(Module):
    """Divide each element by a power of the mean square of the channels around it; see `functional.local_response_norm`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.LocalResponseNorm(2, alpha=3.0, beta=1.0)(cg.ones(1, 2, 1)).ravel()
    tensor([0.4000, 0.2500])
    """

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input):
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self):
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


def _shape(name, normalized_shape):
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise ValueError(f"{name}: normalized_shape must be an int or a sequence of ints of at least 0, got {normalized_shape!r}")
    return shape
