"""grad and value_and_grad: the gradient of a function with a scalar result."""
from __future__ import annotations

import functools

from cgrad.core.forward_mode import fresh_input, gradients, is_dual
from cgrad.core.tape import swap_grad_enabled
from cgrad.core.tensor import Tensor
from cgrad.func.arguments import Picked, released, seen_from_outside, split_aux
from cgrad.ops.creation import zeros_like

__all__ = ["grad", "value_and_grad"]


def value_and_grad(func, argnums=0, has_aux=False):
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
    return _transform("value_and_grad", func, argnums, has_aux)


def grad(func, argnums=0, has_aux=False):
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
    both = _transform("grad", func, argnums, has_aux)

    @_named_after(func, "grad")
    def gradient(*args, **kwargs):
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found
    return gradient


def _named_after(func, prefix):
    def decorate(wrapper):
        try:
            functools.update_wrapper(wrapper, func, assigned=("__module__", "__doc__"), updated=())
        except (AttributeError, TypeError):
            pass
        wrapper.__name__ = wrapper.__qualname__ = f"{prefix}({getattr(func, '__name__', 'function')})"
        return wrapper
    return decorate


def _transform(name, func, argnums, has_aux):
    @_named_after(func, name)
    def transformed(*args, **kwargs):
        picked = Picked(name, func, args, kwargs, argnums)
        recording = swap_grad_enabled(True)
        try:
            inputs = [fresh_input(x) for x in picked.tensors]
            value, aux = split_aux(name, picked.call(inputs), has_aux)
            if not isinstance(value, Tensor):
                raise TypeError(f"{name}: the function must return a tensor, got {type(value).__name__}"
                                + (" (has_aux=True takes a pair (output, aux))" if isinstance(value, tuple) else ""))
            if value.size != 1:
                raise ValueError(f"{name}: the function must return one number, got a tensor of shape {tuple(value.shape)}; "
                                 "reduce it, for instance with sum(), or use jacrev")
            if not value.dtype.is_floating_point:
                raise TypeError(f"{name}: the function must return a floating point tensor, got {value.dtype}")
            keep = seen_from_outside(recording, picked.tensors, inputs, [value])
            if value.requires_grad or is_dual(value):
                found = gradients((value,), (None,), inputs, keep, keep)
            else:
                found = [None] * len(inputs)
            found = [zeros_like(x) if g is None else g for g, x in zip(found, picked.tensors)]
        finally:
            swap_grad_enabled(recording)
        if keep:
            result = (value, aux) if has_aux else value
        else:
            result = released((value, aux) if has_aux else value, False)
        return result, picked.as_arguments(found)
    return transformed
