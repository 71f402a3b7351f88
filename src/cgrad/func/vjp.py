"""vjp: the value of a function and the map that pulls gradients of the results back to the arguments (reverse mode)."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cgrad.core.forward_mode import close, fresh_input, gradients, is_dual
from cgrad.core.tape import swap_grad_enabled
from cgrad.func.arguments import Picked, released, seen_from_outside, split_aux, tensors_like, tensors_of
from cgrad.ops.creation import zeros_like

__all__ = ["vjp"]


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False, argnums: int | Sequence[int] | None = None) -> tuple[Any, ...]:
    """The value of `func` and a function that multiplies vectors by its Jacobian from the left.

    Parameters
    ----------
    func : callable
        Returns a tensor or a tree of tensors, or with `has_aux` the pair (output, anything).
    *primals : Tensor or tree of Tensor
        The arguments of `func`.
    has_aux : bool, default False
    argnums : int or tuple of int, optional
        Which of them to differentiate, the others may be anything; by default all.

    Returns
    -------
    output : Tensor or tree
    vjp_fn : callable
        Takes gradients in the structure of the output, returns gradients in that of the arguments that are differentiated (of a single
        one: not in a tuple). May be called any number of times.
    aux
        Only with `has_aux`.

    Examples
    --------
    >>> import cgrad as cg
    >>> y, pull = cg.func.vjp(lambda x: x ** 2, cg.tensor([1.0, 2.0]))
    >>> pull(cg.tensor([1.0, 10.0]))
    tensor([ 2., 40.])
    """
    pulled = Pullback("vjp", func, primals, {}, argnums, has_aux)
    alone = argnums is None and len(primals) == 1

    def vjp_fn(*cotangents):
        if not cotangents:
            raise TypeError("vjp: give a gradient for the output")
        found = pulled(cotangents[0] if len(cotangents) == 1 else cotangents)
        return found[0] if alone else found
    return (pulled.output, vjp_fn, pulled.aux) if has_aux else (pulled.output, vjp_fn)


class Pullback:
    """A function called once, with its graph kept; calling it pulls gradients back. Shared by vjp, jacrev and linearize."""

    def __init__(self, name, func, args, kwargs, argnums, has_aux):
        self.name = name
        self.picked = Picked(name, func, args, kwargs, argnums)
        recording = swap_grad_enabled(True)
        try:
            self.inputs = [fresh_input(x) for x in self.picked.tensors]
            out, self.aux = split_aux(name, self.picked.call(self.inputs), has_aux)
        finally:
            swap_grad_enabled(recording)
        self.results, self.shape = tensors_of(name, out)
        self.keep = seen_from_outside(recording, self.picked.tensors, self.inputs, self.results)
        self.output = released(out, self.keep)
        self.aux = released(self.aux, self.keep)
        close(self.inputs)

    def __call__(self, cotangents):
        """Gradients of the picked arguments, in their shape."""
        return self.picked.as_arguments(self.pull(tensors_like(self.name, "gradients of the output", cotangents, self.shape, self.results)))

    def pull(self, values):
        """Gradients of the flat inputs for flat gradients of the results; zeros where nothing arrives."""
        pairs = [(y, g) for y, g in zip(self.results, values) if g is not None and (y.requires_grad or is_dual(y))]
        if not pairs:
            return [zeros_like(x) for x in self.picked.tensors]
        recording = swap_grad_enabled(True)
        try:
            create = recording and (self.keep or any([g.requires_grad or is_dual(g) for _, g in pairs]))
            found = gradients(tuple([y for y, _ in pairs]), tuple([g for _, g in pairs]), self.inputs, True, create)
        finally:
            swap_grad_enabled(recording)
        return [zeros_like(x) if g is None else g for g, x in zip(found, self.picked.tensors)]
