"""Normalising what callers pass: axes, shapes, tensors.  Used by the op files, which hand only clean options on.

Errors name the function, what was wrong and what would work.  Next: any of the op files, for instance reduction.py.
"""
import itertools
import operator

from numpy.exceptions import AxisError

from cgrad.core.dtype import get_default_dtype
from cgrad.core.tensor import Tensor


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


def whole_number(name, what, value):
    """`value` as a Python int; bools, floats and the like are refused."""
    if isinstance(value, bool):
        raise TypeError(f"{name}: {what} must be an integer, got the bool {value}")
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: {what} must be an integer, got {value!r}") from None


def one_axis(name, axis, ndim, what="axis"):
    """`axis` in [0, ndim).  A 0-d tensor is let pass for one axis, as NumPy's reductions and PyTorch do."""
    if type(axis) is not int:
        axis = whole_number(name, what, axis)
    extent = ndim or 1
    if not -extent <= axis < extent:
        raise AxisError(f"{name}: {what} {axis} is out of range for a tensor with {ndim} axes; "
                        f"use {-extent} to {extent - 1}")
    return axis + extent if axis < 0 else axis


def several_axes(name, axis, ndim):
    """`axis` (an integer or several) as a sorted tuple without repetition, or None if it means every axis."""
    if axis is None:
        return None
    if type(axis) is int:
        axes = (axis if 0 <= axis < ndim else one_axis(name, axis, ndim),)
    elif isinstance(axis, (tuple, list)):
        axes = tuple(sorted([one_axis(name, a, ndim) for a in axis]))
        for first, second in itertools.pairwise(axes):
            if first == second:
                raise ValueError(f"{name}: axis {first} is named twice in {tuple(axis)} (the tensor has {ndim} axes)")
    else:
        axes = (one_axis(name, axis, ndim),)
    return None if axes and (ndim == 0 or len(axes) == ndim) else axes


def shape_tuple(name, shape, more=()):
    """A shape written as one integer, a sequence, or (methods) several integers, as a tuple of Python ints."""
    if more:
        shape = (shape, *more)
    elif isinstance(shape, Tensor) and shape.ndim == 1:
        shape = shape.tolist()
    elif not isinstance(shape, (tuple, list)):
        shape = (shape,)
    return tuple([n if type(n) is int else whole_number(name, "a length", n) for n in shape])


def kept_shape(shape, axes):
    """`shape` with length 1 along the reduced `axes` (None: all)."""
    if axes is None:
        return (1,) * len(shape)
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def result_shape(shape, axes):
    """`shape` without the reduced `axes` (None: all)."""
    return () if axes is None else tuple([n for i, n in enumerate(shape) if i not in axes])


def reduced_count(shape, axes):
    """How many elements of a tensor of `shape` go into one result over `axes`."""
    count = 1
    for i, n in enumerate(shape):
        if axes is None or i in axes:
            count *= n
    return count
