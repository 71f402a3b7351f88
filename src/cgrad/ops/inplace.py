"""Methods that change a tensor in place: ``x.add_(y)``, ``x.zero_()``, ``x.exp_()``.

Outside the graph they write into the memory and bump its version.  Inside, the result is recorded as usual and the tensor takes
its value and history; writes through views reach the base (strided.py).  Next: wiring.py.
"""

from cgrad.core import inplace as core
from cgrad.core import record
from cgrad.core.forward import copy as forward
from cgrad.core.forward.index import value_for
from cgrad.core.forward_mode import highest_level
from cgrad.core.tape import is_grad_enabled
from cgrad.core.tensor import Tensor
from cgrad.ops import activation, aliases, arithmetic, compare, elementwise, gamma, scan, special, triangles
from cgrad.core.arguments import as_tensor
from cgrad.ops.batching import with_ndim
from cgrad.ops.creation import zeros_like
from cgrad.ops.define import LINEAR, as_method, define, in_place
from cgrad.ops.linalg import products

_replace = define("copy", forward=lambda x, y: forward.copy(forward.clone(x), y), moves=True, inputs=("x", "y"), kind=LINEAR,
                  vjp=(lambda g: zeros_like(g), lambda g: g), batch=lambda x, y: _replace(x, with_ndim(y, x.ndim - 1)), public=False)


def _recording(x, *others):
    """Whether a write must go through an operation: it is recorded, or meets a tangent or a batch."""
    tracked = x.requires_grad or any(isinstance(y, Tensor) and y.requires_grad for y in others)
    return tracked and is_grad_enabled() or bool(highest_level((x, *others)))


def copy_(x, source):
    """Write the values of another tensor into this one.

    Parameters
    ----------
    source : Tensor, array or number
        Broadcast to the shape and cast to the dtype of the tensor.

    Returns
    -------
    Tensor
        The tensor itself.

    Notes
    -----
    Gradient: 0 to what was overwritten, ``g`` to the source.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.zeros(2).copy_(cg.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    source = as_tensor("copy_", source)
    core.check_inplace_target(x, "copy_")
    if _recording(x, source):
        return core.write_inplace(x, _replace(x, source), "copy_")
    return forward.copy(x, source.detach())


def fill_(x, value):
    """Write one number into every element.

    Parameters
    ----------
    value : number or 0-d Tensor

    Returns
    -------
    Tensor
        The tensor itself.

    Notes
    -----
    Gradient: 0 to what was overwritten.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.zeros(2).fill_(7.0)
    tensor([7., 7.])
    """
    return _fill("fill_", x, value)


def _fill(name, x, value):
    core.check_inplace_target(x, name)
    number = value if isinstance(value, Tensor) else value_for(x, value, name)
    if number.ndim:
        raise ValueError(f"{name}: the value must be a number or a 0-d tensor, got shape {number.shape}")
    if number is value:
        return copy_(x, value)
    if _recording(x):
        return core.write_inplace(x, _replace(x, number), name)
    return forward.fill(x, number, name)


def zero_(x):
    """Write 0 into every element.

    Returns
    -------
    Tensor
        The tensor itself.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.ones(2).zero_()
    tensor([0., 0.])
    """
    return _fill("zero_", x, 0)


def detach_(x):
    """Take the tensor itself out of the graph: it becomes a leaf that does not require grad.

    Returns
    -------
    Tensor
        The tensor itself.

    Examples
    --------
    >>> import cgrad as cg
    >>> y = cg.ones(2, requires_grad=True) * 2
    >>> y.detach_().requires_grad
    False
    """
    return record.forget_history(x)


for _function in (copy_, fill_, zero_, detach_):
    as_method(_function)

_FAMILIES = {
    arithmetic: "add subtract multiply divide negative absolute sign square reciprocal power floor_divide remainder fmod lerp addcmul addcdiv maximum "
                "minimum atan2 copysign hypot float_power",
    elementwise: "sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid erf erfc floor ceil "
                 "trunc round frac deg2rad rad2deg",
    activation: "relu",
    compare: "clip clamp_min clamp_max logical_not logical_and logical_or logical_xor bitwise_not bitwise_and bitwise_or bitwise_xor bitwise_left_shift "
             "bitwise_right_shift nan_to_num",
    products: "addmm addmv addr addbmm baddbmm",
    scan: "cumulative_sum cumulative_prod",
    gamma: "lgamma digamma mvlgamma igamma igammac",
    special: "erfinv i0 sinc logit xlogy heaviside ldexp nextafter gcd lcm",
    triangles: "tril triu",
}

for _module, _names in _FAMILIES.items():
    for _name in _names.split():
        for _spelling in (_name, *aliases.NAMES.get(_name, ())):
            in_place(getattr(_module, _name), _spelling)
