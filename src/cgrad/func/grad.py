"""grad and value_and_grad: the gradient of a function with a scalar result."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

from cgrad.core.forward_mode import close, fresh_input, gradient_call, gradients, is_dual, leaf_gradients, set_gradient_functions
from cgrad.core.tape import swap_grad_enabled
from cgrad.core.tensor import Tensor
from cgrad.func.arguments import Picked, checked, released, seen_from_outside, split_aux
from cgrad.ops.creation import zeros_like

__all__ = ["grad", "value_and_grad"]

_P = ParamSpec("_P")


def value_and_grad(func: Callable[_P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[_P, tuple[Any, Any]]:
    """A function that returns both the value of `func` and its gradient.

    Parameters
    ----------
    func : callable
        Returns a tensor with one element, or with `has_aux` the pair (tensor, anything).
    argnums : int or tuple of int, default 0
        Which positional arguments to differentiate; each a tensor or a tree (dict, list, tuple) of tensors.
    has_aux : bool, default False

    Returns
    -------
    callable
        Takes what `func` takes. Returns ``(value, gradient)``, or ``((value, aux), gradient)`` with `has_aux`; the gradient
        is shaped like the argument, for a tuple of argnums a tuple.

    Examples
    --------
    >>> import cgrad as cg
    >>> loss = lambda p, x: ((p["w"] * x + p["b"]) ** 2).sum()
    >>> p = {"w": cg.tensor(2.0), "b": cg.tensor(1.0)}
    >>> cg.func.value_and_grad(loss)(p, cg.tensor([0.0, 1.0]))
    (tensor(10.), {'w': tensor(6.), 'b': tensor(8.)})
    """
    checked("value_and_grad", func)
    return gradient_call("value_and_grad", func, argnums, has_aux, True)


def grad(func: Callable[_P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[_P, Any]:
    """A function that returns the gradient of `func`.

    Parameters
    ----------
    func : callable
        Returns a tensor with one element, or with `has_aux` the pair (tensor, anything).
    argnums : int or tuple of int, default 0
        Which positional arguments to differentiate; each a tensor or a tree (dict, list, tuple) of tensors.
    has_aux : bool, default False

    Returns
    -------
    callable
        Takes what `func` takes. Returns the gradient, shaped like the argument (for a tuple of argnums a tuple), or
        ``(gradient, aux)`` with `has_aux`.

    Notes
    -----
    Nests: ``grad(grad(f))`` is the second derivative. Tensors that are tracked already keep their ``.grad``, and the result can be
    differentiated with respect to them.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.func.grad(cg.sin)(cg.tensor(0.0))
    tensor(1.)
    >>> cg.func.grad(cg.func.grad(lambda x: x ** 3))(cg.tensor(2.0))
    tensor(12.)
    """
    checked("grad", func)
    return gradient_call("grad", func, argnums, has_aux, False)


def differentiated(name, func, argnums, has_aux, args, kwargs):
    """(value, gradient), and with `has_aux` ((value, aux), gradient), of a call."""
    picked = Picked(name, func, args, kwargs, argnums)
    recording = swap_grad_enabled(True)
    try:
        inputs = [fresh_input(x) for x in picked.tensors]
        value, aux = split_aux(name, picked.call(inputs), has_aux)
        value, found, keep = _gradients(name, recording, picked.tensors, inputs, value)
    finally:
        swap_grad_enabled(recording)
    return (value, released(aux, keep)) if has_aux else value, picked.as_arguments(found)


def _of_leaves(name, recording, leaves, value):
    value, found, _ = _gradients(name, recording, (), leaves, value)
    return value, found


def _gradients(name, recording, tensors, inputs, value):
    """(value, flat gradients, whether they are recorded) from what the function returned for the inputs."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}: the function must return a tensor, got {type(value).__name__}"
                        + (" (has_aux=True takes a pair (output, aux))" if isinstance(value, tuple) else ""))
    if value.numel() != 1:
        raise ValueError(f"{name}: the function must return one number, got a tensor of shape {tuple(value.shape)}; "
                         "reduce it, for instance with sum(), or use jacrev")
    if not value.dtype.is_floating_point:
        raise TypeError(f"{name}: the function must return a floating point tensor, got {value.dtype}")
    keep, found = False, leaf_gradients(value, inputs)
    if found is None:
        keep = seen_from_outside(recording, tensors, inputs, [value])
        found = gradients((value,), (None,), inputs, keep, keep) if value.requires_grad or is_dual(value) else [None] * len(inputs)
        close(inputs)
    return released(value, keep), [zeros_like(x) if g is None else g for g, x in zip(found, inputs)], keep


set_gradient_functions(differentiated, _of_leaves)
