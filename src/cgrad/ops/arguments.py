"""Normalising what callers pass: tensors and dtypes here, axes and shapes in core/arguments.pyx.  Used by the op files.

Errors name the function, what was wrong and what would work.  Next: any of the op files, for instance reduction.py.
"""
from cgrad.core.arguments import axis_order, kept_shape, one_axis, reduced_count, result_shape, several_axes, shape_tuple, whole_number
from cgrad.core.dtype import get_default_dtype
from cgrad.core.tensor import Tensor

__all__ = [
    "as_floating", "as_tensor", "axis_order", "cast", "kept_shape", "one_axis", "reduced_count", "result_shape", "several_axes", "shape_tuple",
    "whole_number",
]


def as_tensor(name, x):
    """`x` itself, or the tensor made from an array, a list or a number."""
    if isinstance(x, Tensor):
        return x
    from cgrad.ops.creation import asarray  # creation.py needs this module
    try:
        return asarray(x)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: cannot make a tensor of {type(x).__name__}: {error}") from None


def as_floating(name, x, dtype=None):
    """`x` as a floating-point tensor: cast to `dtype` if given, else integers and bools to the default float."""
    x = as_tensor(name, x)
    if dtype is not None:
        return cast(x, dtype)
    return x if x.dtype.is_floating_point else x.astype(get_default_dtype())


def cast(x, dtype):
    """`x` with `dtype`; `x` itself if it has it already, or if `dtype` is None."""
    return x if dtype is None or x.dtype == dtype else x.astype(dtype)
