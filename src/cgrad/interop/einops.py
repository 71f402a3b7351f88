"""einops on tensors: after ``import cgrad.interop.einops``, the functions of einops take them.

einops finds its backends among the subclasses of its `AbstractBackend`; the one below is all it needs.
"""
import einops._backends
from einops.layers import RearrangeMixin, ReduceMixin

import cgrad as cg

__all__ = ["Rearrange", "Reduce"]


class CgradBackend(einops._backends.AbstractBackend):
    """How einops computes on tensors: recorded, as everything is."""

    framework_name = "cgrad"

    def is_appropriate_type(self, tensor):
        return isinstance(tensor, cg.Tensor)

    def to_numpy(self, x):
        return x.detach().numpy()

    def transpose(self, x, axes):
        return x.permute(axes)

    def reduce(self, x, operation, axes):
        return getattr(cg, operation)(x, axis=tuple(axes))

    def stack_on_zeroth_dimension(self, tensors):
        return cg.stack(tensors)

    def add_axes(self, x, n_axes, pos2len):
        for position in sorted(pos2len):
            x = x.unsqueeze(position)
        return x.expand([pos2len.get(k, n) for k, n in enumerate(x.shape)])

    def concat(self, tensors, axis):
        return cg.concat(tensors, axis=axis)

    def is_float_type(self, x):
        return x.dtype.is_floating_point

    def einsum(self, pattern, *x):
        return cg.einsum(pattern, *x)


class Rearrange(RearrangeMixin, cg.nn.Module):
    """``einops.rearrange`` as a layer.

    Examples
    --------
    >>> import cgrad as cg
    >>> from cgrad.interop.einops import Rearrange
    >>> Rearrange("n (h w) -> n h w", h=2)(cg.arange(8).reshape(1, 8)).shape
    (1, 2, 4)
    """

    def forward(self, x):
        return self._apply_recipe(x)


class Reduce(ReduceMixin, cg.nn.Module):
    """``einops.reduce`` as a layer.

    Examples
    --------
    >>> import cgrad as cg
    >>> from cgrad.interop.einops import Reduce
    >>> Reduce("n c h w -> n c", "mean")(cg.ones(2, 3, 4, 4)).shape
    (2, 3)
    """

    def forward(self, x):
        return self._apply_recipe(x)
