"""Layers that normalise channels and keep running moments: BatchNorm and InstanceNorm for 1, 2 and 3 axes of space."""
from __future__ import annotations

import cgrad as cg
from cgrad.core.device import check_device
from cgrad.nn import functional as F
from cgrad.nn import init
from cgrad.nn.module import Module, check_sizes
from cgrad.nn.parameter import Parameter

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


class _ChannelNorm(Module):
    """What all of them share: parameters, running moments, the number of batches seen."""

    _ndims = ()          # of the inputs that a class takes

    def __init__(self, num_features, eps, momentum, affine, track_running_stats, device, dtype, bias):
        check_device(type(self).__name__, device)
        super().__init__()
        check_sizes(self, 0, num_features=num_features)
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, Parameter(cg.empty((num_features,), dtype=dtype)) if wanted else None)
        for name in ("running_mean", "running_var"):
            self.register_buffer(name, cg.empty((num_features,), dtype=dtype) if track_running_stats else None)
        self.register_buffer("num_batches_tracked", cg.tensor(0, dtype=cg.int64) if track_running_stats else None)
        self.reset_parameters()

    def reset_running_stats(self):
        """Set the running mean to 0, the running variance to 1, the number of batches to 0."""
        if self.track_running_stats:
            self.running_mean.fill_(0.0)
            self.running_var.fill_(1.0)
            self.num_batches_tracked.fill_(0)

    def reset_parameters(self):
        """Set the weight to 1, the bias to 0, and the running moments to their start."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_ndim(self, input):
        if input.ndim not in self._ndims:
            raise ValueError(f"{type(self).__name__}: the input must have {' or '.join(map(str, self._ndims))} axes, got shape {tuple(input.shape)}")

    def extra_repr(self):
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"track_running_stats={self.track_running_stats}")


class _BatchNorm(_ChannelNorm):
    """Moments of each channel over a batch."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *,
                 bias=True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input):
        self._check_ndim(input)
        mean, var, seen = self.running_mean, self.running_var, self.num_batches_tracked
        from_batch = self.training or (mean is None and var is None)
        counts = self.training and self.track_running_stats and seen is not None
        momentum = self.momentum
        if momentum is None:
            momentum = 1.0 / (seen.item() + 1) if counts else 0.0
        if self.training and not self.track_running_stats:
            mean = var = None
        out = F.batch_norm(input, mean, var, self.weight, self.bias, from_batch, momentum, self.eps)
        if counts:
            seen.add_(1)
        return out


class _InstanceNorm(_ChannelNorm):
    """Moments of each channel in each sample."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, device=None, dtype=None, *,
                 bias=True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input):
        self._check_ndim(input)
        single = input.ndim == min(self._ndims)
        channels = input.shape[0 if single else 1]
        if channels != self.num_features:
            raise ValueError(f"{type(self).__name__}: the input must have num_features={self.num_features} channels, got shape {tuple(input.shape)}")
        out = F.instance_norm(input.unsqueeze(0) if single else input, self.running_mean, self.running_var, self.weight, self.bias,
                              self.training or not self.track_running_stats, self.momentum, self.eps)
        return out.squeeze(0) if single else out


class BatchNorm1d(_BatchNorm):
    """Set each channel to mean 0 and variance 1 over all samples of a batch of shape (N, C) or (N, C, L), then scale and shift it.

    Parameters
    ----------
    num_features : int
        The number of channels C.
    eps : float, default 1e-5
        Added to the variance.
    momentum : float or None, default 0.1
        The share of a batch's moments in the running ones; None takes the mean over all batches.
    affine : bool, default True
        Whether there are a weight and a bias.
    track_running_stats : bool, default True
        Whether running moments are kept and used in evaluation; else a batch's own are always used.
    dtype : dtype, optional
        Default: the default floating dtype.
    bias : bool, default True
        Whether there is a bias beside the weight.

    Attributes
    ----------
    weight, bias : Parameter, shape (num_features,), or None
        Start at 1 and 0.
    running_mean, running_var : Tensor, shape (num_features,), or None
        Start at 0 and 1.
    num_batches_tracked : Tensor of int64, shape (), or None

    See Also
    --------
    cgrad.nn.functional.batch_norm : The formula.

    Examples
    --------
    >>> import cgrad as cg
    >>> layer = cg.nn.BatchNorm1d(3)
    >>> layer(cg.randn(4, 3, 5)).shape
    (4, 3, 5)
    >>> layer.num_batches_tracked
    tensor(1)
    """

    _ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Set each channel to mean 0 and variance 1 over all samples of a batch of shape (N, C, H, W).

    See Also
    --------
    BatchNorm1d : The parameters, attributes and the formula.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.BatchNorm2d(3)(cg.randn(4, 3, 5, 5)).shape
    (4, 3, 5, 5)
    """

    _ndims = (4,)


class BatchNorm3d(_BatchNorm):
    """Set each channel to mean 0 and variance 1 over all samples of a batch of shape (N, C, D, H, W).

    See Also
    --------
    BatchNorm1d : The parameters, attributes and the formula.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.BatchNorm3d(3)(cg.randn(4, 3, 2, 5, 5)).shape
    (4, 3, 2, 5, 5)
    """

    _ndims = (5,)


class InstanceNorm1d(_InstanceNorm):
    """Set each channel of each sample of shape (N, C, L) to mean 0 and variance 1, then scale and shift it.

    The axis N of samples may be missing.

    Parameters
    ----------
    num_features : int
        The number of channels C.
    eps : float, default 1e-5
        Added to the variance.
    momentum : float, default 0.1
        The share of a batch's mean moments in the running ones.
    affine : bool, default False
        Whether there are a weight and a bias.
    track_running_stats : bool, default False
        Whether running moments are kept and used in evaluation.
    dtype : dtype, optional
        Default: the default floating dtype.
    bias : bool, default True
        Whether there is a bias beside the weight.

    Attributes
    ----------
    weight, bias : Parameter, shape (num_features,), or None
        Start at 1 and 0.
    running_mean, running_var : Tensor, shape (num_features,), or None
        Start at 0 and 1.

    See Also
    --------
    cgrad.nn.functional.instance_norm : The formula.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.InstanceNorm1d(3)(cg.randn(4, 3, 5)).shape
    (4, 3, 5)
    """

    _ndims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Set each channel of each sample to mean 0 and variance 1, for input of shape (N, C, H, W) or without N.

    See Also
    --------
    InstanceNorm1d : The parameters, attributes and the formula.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.InstanceNorm2d(3)(cg.randn(4, 3, 5, 5)).shape
    (4, 3, 5, 5)
    """

    _ndims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Set each channel of each sample to mean 0 and variance 1, for input of shape (N, C, D, H, W) or without N.

    See Also
    --------
    InstanceNorm1d : The parameters, attributes and the formula.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.InstanceNorm3d(3)(cg.randn(4, 3, 2, 5, 5)).shape
    (4, 3, 2, 5, 5)
    """

    _ndims = (4, 5)
