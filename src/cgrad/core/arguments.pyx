"""Normalising what callers pass: tensors, axes, orders of axes, lengths.  Used by the op files, which hand only clean options on.

Compiled because every call of a reduction or a change of shape goes through here: in Python it took longer than the operation on a
small tensor.  Errors name the function, what was wrong and what would work.  Needs the GIL.  Next: any op file, for instance ops/reduction.py.
"""
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE

import operator

from numpy.exceptions import AxisError

from cgrad.core.dtype cimport KIND, KIND_FLOAT, default_float, dtype_object
from cgrad.core.storage cimport BORROWED, LENT
from cgrad.core.tensor cimport Tensor


cdef object make_tensor = None


def set_tensor_maker(function):
    """Tell what makes a tensor of an array, a list or a number."""
    global make_tensor
    make_tensor = function


def as_tensor(str name, x):
    """`x` itself, or the tensor made from an array, a list or a number."""
    cdef Tensor out
    if isinstance(x, Tensor):
        return x
    try:
        out = make_tensor(x)
        if out.storage.source == BORROWED:
            out.storage.source = LENT
        return out
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


def as_floating(str name, x, dtype=None):
    """`x` as a floating-point tensor: cast to `dtype` if given, else integers and bools to the default float."""
    x = as_tensor(name, x)
    if dtype is not None:
        return cast(x, dtype)
    return x if KIND[(<Tensor>x).dtype_id] == KIND_FLOAT else x.astype(dtype_object(default_float()))


def cast(Tensor x not None, dtype):
    """`x` with `dtype`; `x` itself if it has it already, or if `dtype` is None."""
    return x if dtype is None or dtype_object(x.dtype_id) == dtype else x.astype(dtype)


def whole_number(str name, str what, value):
    """`value` as a Python int; bools, floats and the like are refused."""
    if isinstance(value, bool):
        raise TypeError(f"{name}: {what} must be an integer, got the bool {value}")
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: {what} must be an integer, got {value!r}") from None
    if not -2 ** 63 <= value < 2 ** 63:
        raise OverflowError(f"{name}: {what} must fit 64 bits, got {value}")
    return value


cdef Py_ssize_t axis_in(str name, axis, Py_ssize_t ndim, str what) except -1:
    cdef Py_ssize_t k, extent = ndim if ndim else 1
    if type(axis) is not int:
        axis = whole_number(name, what, axis)
    try:
        k = axis
    except OverflowError:
        k = extent
    if not -extent <= k < extent:
        raise AxisError(f"{name}: {what} {axis} is out of range for a tensor with {ndim} axes; use {-extent} to {extent - 1}")
    return k + extent if k < 0 else k


def one_axis(str name, axis, Py_ssize_t ndim, str what="axis"):
    """`axis` in [0, ndim).  A 0-d tensor is let pass for one axis, as NumPy's reductions and PyTorch do."""
    return axis_in(name, axis, ndim, what)


def several_axes(str name, axis, Py_ssize_t ndim):
    """`axis` (an integer or several) as a sorted tuple without repetition, or None if it means every axis."""
    cdef list axes
    cdef Py_ssize_t k
    if axis is None:
        return None
    if isinstance(axis, (tuple, list)):
        axes = [axis_in(name, a, ndim, "axis") for a in axis]
        axes.sort()
        for k in range(len(axes) - 1):
            if axes[k] == axes[k + 1]:
                raise ValueError(f"{name}: axis {axes[k]} is named twice in {tuple(axis)} (the tensor has {ndim} axes)")
        return None if axes and (ndim == 0 or len(axes) == ndim) else tuple(axes)
    k = axis_in(name, axis, ndim, "axis")
    return None if ndim <= 1 else (k,)


def axis_order(str name, axes, tuple more, Tensor x not None):
    """An order of all axes of `x`, written as one sequence or as several integers, as a tuple of ints in [0, ndim)."""
    cdef unsigned long long seen = 0
    cdef list order = []
    cdef Py_ssize_t k
    if more or not isinstance(axes, (tuple, list)):
        axes = (axes, *more)
    if len(axes) != x.rank:
        raise ValueError(f"{name}: {len(axes)} axes given for a tensor of shape {x.shape}; name each of its {x.rank} axes once")
    for axis in axes:
        k = axis_in(name, axis, x.rank, "axis")
        order.append(k)
        seen |= 1ULL << k
    if seen != (1ULL << x.rank) - 1:
        raise ValueError(f"{name}: an axis is named twice in {tuple(order)}")
    return tuple(order)


def shape_tuple(str name, shape, more=()):
    """A shape written as one integer, a sequence, or (methods) several integers, as a tuple of Python ints."""
    if more:
        shape = (shape, *more)
    elif isinstance(shape, Tensor) and (<Tensor>shape).rank == 1:
        shape = shape.tolist()
    elif not isinstance(shape, (tuple, list)):
        shape = (shape,)
    if type(shape) is tuple and all_ints(<tuple>shape):
        return shape
    return tuple([n if type(n) is int else whole_number(name, "a length", n) for n in shape])


cdef bint all_ints(tuple values) noexcept:
    cdef Py_ssize_t k
    for k in range(PyTuple_GET_SIZE(values)):
        if type(<object>PyTuple_GET_ITEM(values, k)) is not int:
            return False
    return True


def kept_shape(tuple shape, axes):
    """`shape` with length 1 along the reduced `axes` (None: all)."""
    if axes is None:
        return (1,) * len(shape)
    return tuple([1 if i in axes else n for i, n in enumerate(shape)])


def result_shape(tuple shape, axes):
    """`shape` without the reduced `axes` (None: all)."""
    return () if axes is None else tuple([n for i, n in enumerate(shape) if i not in axes])


def reduced_count(tuple shape, axes):
    """How many elements of a tensor of `shape` go into one result over `axes`."""
    count = 1
    for i, n in enumerate(shape):
        if axes is None or i in axes:
            count *= n
    return count
