"""jvp: the value of a function and its derivative along a direction (forward mode)."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cgrad.core.batching import enter_level
from cgrad.core.forward_mode import make_dual, unpack_dual
from cgrad.core.tensor import Tensor
from cgrad.func.arguments import Picked, split_aux, tensors_like, tensors_of
from cgrad.ops.creation import zeros_like
from cgrad.tree import tree_map, unflatten

__all__ = ["jvp"]


def jvp(func: Callable[..., Any], primals: Sequence[Any], tangents: Any, has_aux: bool = False,
        argnums: int | Sequence[int] | None = None) -> tuple[Any, ...]:
    """The value of `func` and its Jacobian times a vector, in one forward pass and without keeping intermediate results.

    Parameters
    ----------
    func : callable
        Returns a tensor or a tree of tensors, or with `has_aux` the pair (output, anything).
    primals : tuple
        The arguments, each a tensor or a tree of tensors.
    tangents : tuple
        The direction, in the structure of the arguments that are differentiated; cast to their dtypes, as gradients are.
    has_aux : bool, default False
    argnums : int or tuple of int, optional
        Which arguments to differentiate, the others may be anything; by default all. For an int, `tangents` is the tangent of that one.

    Returns
    -------
    output, tangent : Tensor or tree
        And aux with `has_aux`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.func.jvp(lambda x: x ** 2, (cg.tensor([1.0, 2.0]),), (cg.tensor([1.0, 10.0]),))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    return along("jvp", func, primals, tangents, has_aux, argnums)


def along(name, func, primals, tangents, has_aux, argnums):
    """`jvp`, under the name of what was called."""
    if not isinstance(primals, (tuple, list)) or argnums is None and not isinstance(tangents, (tuple, list)):
        raise TypeError(f"{name}: primals and tangents must be tuples, one entry for each argument; for one argument write (x,) and (t,)")
    picked = Picked(name, func, primals, {}, argnums)
    results, moved, out_shape, aux = push(name, picked, tangents_for(picked, tangents), has_aux)
    output, tangent = unflatten(out_shape, results), unflatten(out_shape, moved)
    return (output, tangent, aux) if has_aux else (output, tangent)


def tangents_for(picked, tangents):
    """The flat tangents of picked arguments, in their dtypes."""
    if not picked.single and isinstance(tangents, Tensor):
        raise TypeError(f"{picked.name}: the tangents of several arguments must be a tuple, one entry for each; for one argument write (t,)")
    found = tensors_like(picked.name, "tangents", tangents, picked.shape, picked.tensors)
    for t in found:
        if not t.dtype.is_floating_point:
            raise ValueError(f"{picked.name}: tangents must be floating-point tensors, got {t.dtype}")
    return [t.astype(x.dtype, copy=False) for x, t in zip(picked.tensors, found)]


def push(name, picked, directions, has_aux):
    """Call the picked function on dual tensors; returns (results, tangents, shape of the output, aux)."""
    level = enter_level()
    inputs = [make_dual(x, t, level) for x, t in zip(picked.tensors, directions)]
    out, aux = split_aux(name, picked.call(inputs), has_aux)
    leaves, shape = tensors_of(name, out)
    pairs = [unpack_dual(y, level) for y in leaves]
    aux = tree_map(lambda x: unpack_dual(x, level)[0], aux)
    return [y for y, _ in pairs], [zeros_like(y) if t is None else t for y, t in pairs], shape, aux
