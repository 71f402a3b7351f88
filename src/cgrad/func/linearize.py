"""linearize: a function called once, and its derivative there as a linear function (forward mode from a recorded graph)."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cgrad.core.forward_mode import fresh_input, gradients, is_dual
from cgrad.core.tape import swap_grad_enabled
from cgrad.func.jvp import tangents_for
from cgrad.func.vjp import Pullback
from cgrad.ops.creation import zeros_like
from cgrad.tree import unflatten

__all__ = ["linearize"]


def linearize(func: Callable[..., Any], *primals: Any, has_aux: bool = False, argnums: int | Sequence[int] | None = None) -> tuple[Any, ...]:
    """The value of `func` and its derivative as a linear function of the direction.

    Parameters
    ----------
    func : callable
        Returns a tensor or a tree of tensors, or with `has_aux` the pair (output, anything). It is called once.
    *primals : Tensor or tree of Tensor
        The arguments of `func`.
    has_aux : bool, default False
    argnums : int or tuple of int, optional
        Which of them to differentiate, the others may be anything; by default all.

    Returns
    -------
    output : Tensor or tree
    jvp_fn : callable
        Takes a tangent for each argument that is differentiated, returns the tangent of the output. May be called any number of times.
    aux
        Only with `has_aux`.

    Notes
    -----
    The pullback g -> J^T g is recorded; as it is linear in g, its own pullback at a direction t is J t. So a call costs about one
    backward pass and does not compute `func` again; for one direction `jvp` is cheaper.

    Examples
    --------
    >>> import cgrad as cg
    >>> y, jvp_fn = cg.func.linearize(lambda x: x ** 2, cg.tensor([1.0, 2.0]))
    >>> jvp_fn(cg.tensor([1.0, 0.0])), jvp_fn(cg.tensor([0.0, 1.0]))
    (tensor([2., 0.]), tensor([0., 4.]))
    """
    pulled = Pullback("linearize", func, primals, {}, argnums, has_aux)
    picked, results = pulled.picked, pulled.results
    recording = swap_grad_enabled(True)
    try:
        places = [k for k, y in enumerate(results) if y.requires_grad or is_dual(y)]
        seeds = [fresh_input(zeros_like(results[k])) for k in places]
        found = gradients(tuple([results[k] for k in places]), tuple(seeds), pulled.inputs, True, True) if places else []
    finally:
        swap_grad_enabled(recording)
    pairs = [(i, p) for i, p in enumerate(found) if p is not None and (p.requires_grad or is_dual(p))]

    def jvp_fn(*tangents):
        directions = tangents_for(picked, tangents[0] if picked.single and len(tangents) == 1 else tangents)
        moved = [None] * len(results)
        if pairs:
            recording = swap_grad_enabled(True)
            try:
                create = recording and (pulled.keep or any([t.requires_grad or is_dual(t) for t in directions]))
                pushed = gradients(tuple([p for _, p in pairs]), tuple([directions[i] for i, _ in pairs]), seeds, True, create)
            finally:
                swap_grad_enabled(recording)
            for k, t in zip(places, pushed):
                moved[k] = t
        return unflatten(pulled.shape, [zeros_like(y) if t is None else t for t, y in zip(moved, results)])
    return (pulled.output, jvp_fn, pulled.aux) if has_aux else (pulled.output, jvp_fn)
