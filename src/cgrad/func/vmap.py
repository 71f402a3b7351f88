"""vmap: a function of one example becomes a function of a batch of them."""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from cgrad.core.batching import enter_map, is_batched, leave_map, make_batched, unbatched
from cgrad.core.forward_mode import highest_level
from cgrad.core.tensor import Tensor
from cgrad.ops.creation import asarray
from cgrad.ops.joining import concat
from cgrad.ops.shape import moveaxis
from cgrad.tree import flatten, tree_map, unflatten

__all__ = ["vmap"]


def vmap(func: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, randomness: Literal["different", "same", "error"] = "different", *,
         chunk_size: int | None = None, in_dims: Any = None, out_dims: Any = None) -> Callable[..., Any]:
    """A function that calls `func` for all examples of a batch at once.

    Parameters
    ----------
    func : callable
        Written for one example: takes tensors or trees (dicts, lists, tuples) of tensors and returns such.
    in_axes : int, None, or tree of these, default 0
        Along which axis of each positional argument the examples lie; None where all examples share it. One for all arguments, or a
        tuple with one for each, where a tree stands for the parts of an argument. Arguments given by name are mapped along axis 0.
    out_axes : int, None, or tree of these, default 0
        Where the examples go in the results; None for a result that is the same for all examples and gets no axis.
    randomness : {"different", "same", "error"}, default "different"
        What random functions inside do: draw for each example anew, as in a loop, once for all, or refuse (PyTorch's default).
    chunk_size : int, optional
        How many examples to compute at once, to save memory; by default all.
    in_dims, out_dims
        PyTorch's words for `in_axes` and `out_axes`.

    Returns
    -------
    callable
        Takes what `func` takes with an axis more, and returns its results with an axis more. A result that does not depend on the
        example is repeated.

    Raises
    ------
    ValueError
        If the numbers of examples differ, or nothing is mapped.
    RuntimeError
        Inside `func`, where one number is asked of a tensor that stands for many: ``if x > 0``, ``x.item()``, ``x.numpy()``.

    Notes
    -----
    Composes with `grad`, `vjp`, `jvp` and itself in any order: ``vmap(grad(loss), (None, 0, 0))`` gives a gradient for each example,
    ``vmap(vjp_fn)`` a Jacobian. Operations without a rule for batches, and user-defined ones, are computed example by example, with
    one warning for each.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> cg.func.vmap(cg.dot)(x, x)
    tensor([ 5., 25.])
    >>> cg.func.vmap(lambda row, k: row * k, in_axes=(1, None))(x, 10.0)
    tensor([[10., 30.],
            [20., 40.]])
    >>> loss = lambda w, x: (w @ x) ** 2
    >>> cg.func.vmap(cg.func.grad(loss), in_axes=(None, 0))(cg.tensor([1.0, 1.0]), x)
    tensor([[ 6., 12.],
            [42., 56.]])
    """
    if not callable(func):
        raise TypeError(f"vmap: expected a function, got {type(func).__name__}")
    in_axes = _spelt("in_axes", in_axes, "in_dims", in_dims)
    out_axes = _spelt("out_axes", out_axes, "out_dims", out_dims)
    if randomness not in ("error", "same", "different"):
        raise ValueError(f'vmap: randomness must be "error", "same" or "different", got {randomness!r}')
    if chunk_size is not None and (isinstance(chunk_size, bool) or operator.index(chunk_size) < 1):
        raise ValueError(f"vmap: chunk_size must be a positive number of examples, got {chunk_size!r}")

    def vmapped(*args, **kwargs):
        leaves, shape = flatten([list(args), kwargs])
        axes = _axes_of(in_axes, args, kwargs)
        mapped, size = _moved_to_front(leaves, axes)
        step = size if chunk_size is None else chunk_size
        if step >= size:
            return _call(func, leaves, mapped, shape, size, randomness, out_axes)
        parts = [_call(func, leaves, {i: x[start:start + step] for i, x in mapped.items()}, shape, min(step, size - start), randomness, out_axes)
                 for start in range(0, size, step)]
        out_shape = flatten(parts[0])[1]
        joined = [pieces[0] if axis is None or pieces[0] is None else concat(list(pieces), axis)
                  for pieces, axis in zip(zip(*[flatten(part)[0] for part in parts]), _spread("out_axes", out_axes, parts[0], "the result"))]
        return unflatten(out_shape, joined)
    vmapped.__name__ = vmapped.__qualname__ = f"vmap({getattr(func, '__name__', 'function')})"
    vmapped.__doc__ = getattr(func, "__doc__", None)
    return vmapped


def _spelt(name, value, other, given):
    if given is None:
        return value
    if value != 0:
        raise TypeError(f"vmap: {name} and {other} are the same, give one of them")
    return given


# ---------------------------------------------------------------------------------------------------------------- arguments
def _axes_of(in_axes, args, kwargs):
    """The axis of each leaf of the arguments, None where all examples share it."""
    if isinstance(in_axes, (tuple, list)):
        if len(in_axes) != len(args):
            raise ValueError(f"vmap: in_axes has {len(in_axes)} entries for {len(args)} positional arguments; give one for each, or a single one for all")
    elif isinstance(in_axes, dict):
        raise TypeError("vmap: in_axes is an int, None, or a tuple with an entry for each positional argument; write (in_axes,) for one argument")
    else:
        in_axes = [in_axes] * len(args)
    axes = []
    for k, (prefix, tree) in enumerate(zip(in_axes, args)):
        axes += _spread("in_axes", prefix, tree, f"argument {k}")
    # By name: tensors are mapped, settings such as flags are shared.
    return axes + [0 if isinstance(x, (Tensor, np.ndarray)) else None for x in flatten(kwargs)[0]]


def _spread(name, prefix, tree, where):
    """The entries of `prefix`, a tree that may end before `tree` does, for each leaf of `tree`."""
    if prefix is None or isinstance(prefix, int) and not isinstance(prefix, bool):
        return [prefix] * len(flatten(tree)[0])
    if isinstance(prefix, dict) and isinstance(tree, dict) and set(prefix) == set(tree):
        return [axis for key, part in tree.items() for axis in _spread(name, prefix[key], part, where)]
    if isinstance(prefix, (tuple, list)) and isinstance(tree, (tuple, list)) and len(prefix) == len(tree):
        return [axis for entry, part in zip(prefix, tree) for axis in _spread(name, entry, part, where)]
    raise ValueError(f"vmap: {name} {prefix!r} does not fit the structure of {where}; an entry is an int or None, or a tree of them like {where}")


def _moved_to_front(leaves, axes):
    """The mapped leaves, by place, with the examples along their first axis; and how many examples there are."""
    mapped, sizes = {}, {}
    for i, (x, axis) in enumerate(zip(leaves, axes)):
        if axis is None or x is None:
            continue
        if isinstance(x, np.ndarray):
            x = asarray(x)
        if not isinstance(x, Tensor):
            raise TypeError(f"vmap: only tensors and arrays have an axis of examples, got {type(x).__name__} {x!r}; say None for it in in_axes")
        if not -x.ndim <= axis < x.ndim:
            raise ValueError(f"vmap: in_axes names axis {axis} of a tensor of shape {tuple(x.shape)}, which has {x.ndim} axes; "
                             "None shares it between the examples")
        sizes.setdefault(x.shape[axis], (tuple(x.shape), axis))
        mapped[i] = x if axis in (0, -x.ndim) else moveaxis(x, axis, 0)
    if not mapped:
        raise ValueError("vmap: no argument is mapped, so the number of examples is unknown; at least one entry of in_axes must be an axis of a tensor")
    if len(sizes) > 1:
        (first, (shape, axis)), (second, (other, other_axis)) = list(sizes.items())[:2]
        raise ValueError(f"vmap: the arguments have different numbers of examples: {first} along axis {axis} of shape {shape}, "
                         f"{second} along axis {other_axis} of shape {other}")
    return mapped, next(iter(sizes))


# ---------------------------------------------------------------------------------------------------------------- the call
def _call(func, leaves, mapped, shape, size, randomness, out_axes):
    level = enter_map(size, randomness)
    try:
        args, kwargs = unflatten(shape, [make_batched(mapped[i], level) if i in mapped else x for i, x in enumerate(leaves)])
        out = func(*args, **kwargs)
    finally:
        leave_map()
    if type(out_axes) is int and out_axes == 0:
        return tree_map(lambda y: _unbatched(y, level, size, 0), out)
    values, out_shape = flatten(out)
    return unflatten(out_shape, [_unbatched(y, level, size, axis) for y, axis in zip(values, _spread("out_axes", out_axes, out, "the result"))])


def _unbatched(y, level, size, axis):
    """A result with all examples along an axis."""
    if y is None:
        return None
    if isinstance(y, (bool, int, float, np.ndarray, np.generic)):
        y = asarray(y)
    if not isinstance(y, Tensor):
        raise TypeError(f"vmap: the function must return tensors, got {type(y).__name__}")
    if is_batched(y) and highest_level((y,)) > level:
        raise RuntimeError("vmap: the function returns a tensor that stands for a batch of another vmap, which has ended")
    if axis is None:
        if highest_level((y,)) == level:
            raise ValueError(f"vmap: out_axes is None for a result of shape {tuple(y.shape)} that may differ between the examples; give it an axis")
        return y
    y = unbatched(y, level, size)
    if axis == 0:
        return y
    if not -y.ndim <= axis < y.ndim:
        raise ValueError(f"vmap: out_axes names axis {axis} of a result that has {y.ndim} axes with that of the examples (shape {tuple(y.shape)})")
    return moveaxis(y, 0, axis)
