"""Lazy layers: the number of input features is taken from the first input (or from a state dict), then the layer is an ordinary one."""
from __future__ import annotations

from typing import Any

from cgrad.core.device import check_device
from cgrad.nn.batch_norm import BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from cgrad.nn.conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from cgrad.nn.linear import Linear
from cgrad.nn.module import Module
from cgrad.nn.parameter import Parameter

__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d",
    "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear", "UninitializedParameter",
]


class UninitializedParameter(Parameter):
    """A parameter of a lazy layer, empty until the layer has seen an input; then the same object holds the values.

    Examples
    --------
    >>> import cgrad as cg
    >>> layer = cg.nn.LazyLinear(3)
    >>> type(layer.weight).__name__, layer.weight.shape
    ('UninitializedParameter', (0,))
    """


class _Lazy(Module):
    """What all of them share. A lazy layer is also one of the class that it becomes."""

    _becomes: Any
    _axis: int                       # of the features in an input

    def _wait(self, parameters, **options):
        Module.__init__(self)
        self._options = options
        for name in ("weight", "bias"):
            self.register_parameter(name, UninitializedParameter() if name in parameters else None)
        self.register_forward_pre_hook(_from_input)
        self.register_load_state_dict_pre_hook(_from_state)

    def has_uninitialized_params(self):
        """Whether the layer still waits for its first input."""
        return True

    def reset_parameters(self):
        """Nothing, before there are values."""

    def initialize(self, n):
        """Become an ordinary layer with `n` input features."""
        waiting = [p for p in self._parameters.values() if p is not None]
        options = dict(self._options)
        if waiting and options.get("dtype") is None:
            options["dtype"] = waiting[0].dtype                  # what to() has made of it
        made = self._becomes(n, **options)
        for name, own in self._parameters.items():
            if own is not None:
                own.data = made._parameters[name].detach()
                own.__class__ = Parameter
        kept = {"_parameters": self._parameters, "_hooks": self._hooks, "training": self.training}
        for key, entry in list(self._hooks.items()):
            if entry[1] in (_from_input, _from_state):
                del self._hooks[key]
        self.__dict__.clear()
        self.__dict__.update({**made.__dict__, **kept})
        self.__class__ = self._becomes

    def extra_repr(self):
        return ", ".join(f"{name}={value}" for name, value in self._options.items() if name != "dtype")


def _from_input(layer, args):
    if not -args[0].ndim <= layer._axis < args[0].ndim:
        raise ValueError(f"{type(layer).__name__}: the input must have more axes, got shape {tuple(args[0].shape)}")
    layer.initialize(args[0].shape[layer._axis])


def _from_state(layer, state, prefix, *rest):
    given = state.get(prefix + "weight", state.get(prefix + "running_mean"))
    if given is not None:
        layer.initialize(layer._n_features(given.shape))


class LazyLinear(_Lazy, Linear):
    """`Linear` that takes ``in_features`` from its first input.

    Examples
    --------
    >>> import cgrad as cg
    >>> net = cg.nn.Sequential(cg.nn.Flatten(), cg.nn.LazyLinear(3))
    >>> net(cg.ones(2, 4, 5)).shape
    (2, 3)
    >>> net[1]
    Linear(in_features=20, out_features=3, bias=True)
    """

    _becomes, _axis = Linear, -1

    def __init__(self, out_features, bias=True, device=None, dtype=None):
        check_device(type(self).__name__, device)
        self._wait(["weight", "bias"] if bias else ["weight"], out_features=out_features, bias=bias, dtype=dtype)

    def _n_features(self, shape):
        return shape[1]


class _LazyConv(_Lazy):
    def __init__(self, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros", device=None, dtype=None):
        check_device(type(self).__name__, device)
        self._wait(["weight", "bias"] if bias else ["weight"], out_channels=out_channels, kernel_size=kernel_size, stride=stride, padding=padding,
                   dilation=dilation, groups=groups, bias=bias, padding_mode=padding_mode, dtype=dtype)

    def _n_features(self, shape):
        return shape[1] * self._options["groups"]


class _LazyConvTranspose(_Lazy):
    def __init__(self, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1, padding_mode="zeros",
                 device=None, dtype=None):
        check_device(type(self).__name__, device)
        self._wait(["weight", "bias"] if bias else ["weight"], out_channels=out_channels, kernel_size=kernel_size, stride=stride, padding=padding,
                   output_padding=output_padding, groups=groups, bias=bias, dilation=dilation, padding_mode=padding_mode, dtype=dtype)

    def _n_features(self, shape):
        return shape[0]


class _LazyNorm(_Lazy):
    def _norm(self, eps, momentum, affine, track_running_stats, dtype, bias):
        self._wait(["weight", "bias"][:bool(affine) + bool(affine and bias)], eps=eps, momentum=momentum, affine=affine,
                   track_running_stats=track_running_stats, dtype=dtype, bias=bias)

    def _n_features(self, shape):
        return shape[0]


class _LazyBatchNorm(_LazyNorm):
    def __init__(self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *, bias=True):
        check_device(type(self).__name__, device)
        self._norm(eps, momentum, affine, track_running_stats, dtype, bias)


class _LazyInstanceNorm(_LazyNorm):
    def __init__(self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *, bias=True):
        check_device(type(self).__name__, device)
        self._norm(eps, momentum, affine, track_running_stats, dtype, bias)


class LazyConv1d(_LazyConv, Conv1d):
    """`Conv1d` that takes ``in_channels`` from its first input.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.LazyConv1d(8, 3)(cg.ones(2, 4, 5)).shape
    (2, 8, 3)
    """

    _becomes, _axis = Conv1d, -2


class LazyConv2d(_LazyConv, Conv2d):
    """`Conv2d` that takes ``in_channels`` from its first input.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.LazyConv2d(8, 3)(cg.ones(2, 4, 5, 5)).shape
    (2, 8, 3, 3)
    """

    _becomes, _axis = Conv2d, -3


class LazyConv3d(_LazyConv, Conv3d):
    """`Conv3d` that takes ``in_channels`` from its first input.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.LazyConv3d(8, 3)(cg.ones(2, 4, 5, 5, 5)).shape
    (2, 8, 3, 3, 3)
    """

    _becomes, _axis = Conv3d, -4


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """`ConvTranspose1d` that takes ``in_channels`` from its first input.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.LazyConvTranspose1d(8, 3)(cg.ones(2, 4, 5)).shape
    (2, 8, 7)
    """

    _becomes, _axis = ConvTranspose1d, -2


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """`ConvTranspose2d` that takes ``in_channels`` from its first input.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.LazyConvTranspose2d(8, 3)(cg.ones(2, 4, 5, 5)).shape
    (2, 8, 7, 7)
    """

    _becomes, _axis = ConvTranspose2d, -3


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """`ConvTranspose3d` that takes ``in_channels`` from its first input.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.LazyConvTranspose3d(8, 3)(cg.ones(2, 4, 5, 5, 5)).shape
    (2, 8, 7, 7, 7)
    """

    _becomes, _axis = ConvTranspose3d, -4


class LazyBatchNorm1d(_LazyBatchNorm, BatchNorm1d):
    """`BatchNorm1d` that takes ``num_features`` from its first input.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.LazyBatchNorm1d()(cg.ones(2, 4, 5)).shape
    (2, 4, 5)
    """

    _becomes, _axis = BatchNorm1d, 1


class LazyBatchNorm2d(_LazyBatchNorm, BatchNorm2d):
    """`BatchNorm2d` that takes ``num_features`` from its first input.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.LazyBatchNorm2d()(cg.ones(2, 4, 5, 5)).shape
    (2, 4, 5, 5)
    """

    _becomes, _axis = BatchNorm2d, 1


class LazyBatchNorm3d(_LazyBatchNorm, BatchNorm3d):
    """`BatchNorm3d` that takes ``num_features`` from its first input.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.LazyBatchNorm3d()(cg.ones(2, 4, 5, 5, 5)).shape
    (2, 4, 5, 5, 5)
    """

    _becomes, _axis = BatchNorm3d, 1


class LazyInstanceNorm1d(_LazyInstanceNorm, InstanceNorm1d):
    """`InstanceNorm1d` that takes ``num_features`` from its first input; as in PyTorch with parameters and running statistics by default.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.LazyInstanceNorm1d()(cg.ones(2, 4, 5)).shape
    (2, 4, 5)
    """

    _becomes, _axis = InstanceNorm1d, -2


class LazyInstanceNorm2d(_LazyInstanceNorm, InstanceNorm2d):
    """`InstanceNorm2d` that takes ``num_features`` from its first input; as in PyTorch with parameters and running statistics by default.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.LazyInstanceNorm2d()(cg.ones(2, 4, 5, 5)).shape
    (2, 4, 5, 5)
    """

    _becomes, _axis = InstanceNorm2d, -3


class LazyInstanceNorm3d(_LazyInstanceNorm, InstanceNorm3d):
    """`InstanceNorm3d` that takes ``num_features`` from its first input; as in PyTorch with parameters and running statistics by default.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.LazyInstanceNorm3d()(cg.ones(2, 4, 5, 5, 5)).shape
    (2, 4, 5, 5, 5)
    """

    _becomes, _axis = InstanceNorm3d, -4
