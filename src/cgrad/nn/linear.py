"""Layers of affine and bilinear maps and of shapes: Linear, Bilinear, Flatten, Unflatten, Identity."""
from __future__ import annotations

import math

import cgrad as cg
from cgrad.core.device import check_device
from cgrad.nn import functional as F
from cgrad.nn import init
from cgrad.nn.module import Module, check_sizes
from cgrad.nn.parameter import Parameter

__all__ = ["Linear", "Bilinear", "Flatten", "Unflatten", "Identity"]


class Linear(Module):
    """Affine map ``x @ weight.T + bias``.

    Parameters
    ----------
    in_features, out_features : int
    bias : bool, default True
    dtype : dtype, optional
        Default: the default floating dtype.

    Attributes
    ----------
    weight : Parameter, shape (out_features, in_features)
    bias : Parameter, shape (out_features,), or None

    Notes
    -----
    Both start uniform in ``(-1/sqrt(in_features), 1/sqrt(in_features))``, as in PyTorch.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Linear(3, 5)(cg.ones((2, 3))).shape
    (2, 5)
    """

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        check_device(type(self).__name__, device)
        super().__init__()
        check_sizes(self, 0, in_features=in_features, out_features=out_features)
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(cg.empty((out_features, in_features), dtype=dtype))
        if bias:
            self.bias = Parameter(cg.empty((out_features,), dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw new values."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0.0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input):
        own = self._parameters           # an attribute that is no plain one costs a microsecond to find
        try:
            weight, bias = own["weight"], own["bias"]
        except KeyError:                 # deleted, and perhaps replaced by something that is no parameter
            weight, bias = self.weight, self.bias
        return F.linear(input, weight, bias)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """A bilinear form for each output, ``input1 @ weight[o] @ input2 + bias[o]``.

    Parameters
    ----------
    in1_features, in2_features, out_features : int
    bias : bool, default True
    dtype : dtype, optional
        Default: the default floating dtype.

    Attributes
    ----------
    weight : Parameter, shape (out_features, in1_features, in2_features)
    bias : Parameter, shape (out_features,), or None

    Notes
    -----
    Both start uniform in ``(-1/sqrt(in1_features), 1/sqrt(in1_features))``, as in PyTorch.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Bilinear(3, 4, 5)(cg.ones((2, 3)), cg.ones((2, 4))).shape
    (2, 5)
    """

    def __init__(self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None):
        check_device(type(self).__name__, device)
        super().__init__()
        check_sizes(self, in1_features=in1_features)
        check_sizes(self, 0, in2_features=in2_features, out_features=out_features)
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(cg.empty((out_features, in1_features, in2_features), dtype=dtype))
        self.register_parameter("bias", Parameter(cg.empty((out_features,), dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw new values."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1, input2):
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self):
        return (f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}")


class Flatten(Module):
    """Merge the axes from `start_dim` to `end_dim` into one; by default all but the first, the batch.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Flatten()(cg.ones((4, 2, 3))).shape
    (4, 6)
    """

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input):
        shape = input.shape
        n = max(len(shape), 1)
        start, end = (d + n if d < 0 else d for d in (self.start_dim, self.end_dim))
        if not (0 <= start < n and 0 <= end < n and start <= end):
            raise ValueError(f"Flatten: cannot merge the axes from {self.start_dim} to {self.end_dim} of a tensor of shape {tuple(shape)}")
        return input.reshape(*shape[:start], math.prod(shape[start:end + 1]), *shape[end + 1:])

    def extra_repr(self):
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Split the axis `dim` into axes of the given sizes; one of them may be -1.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Unflatten(1, (2, 3))(cg.ones((4, 6))).shape
    (4, 2, 3)
    """

    def __init__(self, dim, unflattened_size):
        super().__init__()
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)

    def forward(self, input):
        shape = input.shape
        if not -len(shape) <= self.dim < len(shape):
            raise ValueError(f"Unflatten: there is no axis {self.dim} in a tensor of shape {tuple(shape)}")
        dim = self.dim % len(shape)
        sizes = list(self.unflattened_size)
        if sizes.count(-1) == 1:
            known = -math.prod(sizes)
            sizes[sizes.index(-1)] = shape[dim] // known if known else 0
        if math.prod(sizes) != shape[dim] or min(sizes, default=0) < 0:
            raise ValueError(f"Unflatten: axis {self.dim} of size {shape[dim]} cannot be split into {self.unflattened_size}")
        return input.reshape(*shape[:dim], *sizes, *shape[dim + 1:])

    def extra_repr(self):
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Identity(Module):
    """Returns its input; takes and ignores any arguments of construction.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Identity()(cg.tensor([1.0]))
    tensor([1.])
    """

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        return input
