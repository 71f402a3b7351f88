"""grad and backward: gradients of results with respect to inputs, returned or accumulated."""
from __future__ import annotations

from collections.abc import Iterable

from cgrad.core.batching import enter_level, make_batched, size_of_batch, unbatched
from cgrad.core.forward_mode import gradients as differentiate
from cgrad.core.forward_mode import send_backward
from cgrad.core.hooks import run_accumulated_hooks
from cgrad.core.tensor import Tensor

__all__ = ["grad", "backward"]


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, allow_unused=None,
         is_grads_batched=False, materialize_grads=False):
    """Gradients of the outputs with respect to the inputs; no ``.grad`` is read or changed.

    Parameters
    ----------
    outputs : Tensor or sequence of Tensor
        Results to differentiate, summed if there are several.
    inputs : Tensor or sequence of Tensor
        Leaves or intermediate results.
    grad_outputs : Tensor or sequence of Tensor or None, optional
        The gradient that flows into each output; may be None for scalars, where it is 1.
    retain_graph : bool, optional
        Keep the graph for a further backward. Default: the value of `create_graph`.
    create_graph : bool, default False
        Record the computation of the gradients, so that they can be differentiated again.
    only_inputs : bool
        Only True, a keyword of older PyTorch; `backward` adds to ``.grad``.
    allow_unused : bool, optional
        Return None for an input that no output depends on instead of raising.
    is_grads_batched : bool, default False
        The gradients in `grad_outputs` have a new first axis, and so have those that are returned: many backward passes as one.
    materialize_grads : bool, default False
        Return zeros for such an input.

    Returns
    -------
    tuple of Tensor
        One for each input, of its shape and dtype.

    Raises
    ------
    RuntimeError
        If an input was not used, an output has no graph, or an output that is no scalar has no gradient given.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor(3.0, requires_grad=True)
    >>> (g,) = cg.autograd.grad(x ** 3, x, create_graph=True)
    >>> cg.autograd.grad(g, x)
    (tensor(18.),)
    """
    outputs, inputs = _tensors("grad", "outputs", outputs), _tensors("grad", "inputs", inputs)
    if not only_inputs:
        raise ValueError("grad: only_inputs=False, which adds to .grad of other leaves, is not there; use backward(inputs=...)")
    if allow_unused is False and materialize_grads:
        raise ValueError("grad: materialize_grads=True gives zeros for unused inputs, so allow_unused must not be False")
    gradients = _gradients("grad", "grad_outputs", grad_outputs, outputs)
    retain = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        level = enter_level()
        gradients = tuple([None if g is None else make_batched(g, level) for g in gradients])
    found = differentiate(outputs, gradients, inputs, bool(retain), bool(create_graph))
    if is_grads_batched:
        found = [g if g is None else unbatched(g, level, size_of_batch(gradients, level)) for g in found]
    if materialize_grads:
        from cgrad.ops.creation import zeros_like
        return tuple(zeros_like(x) if g is None else g for x, g in zip(inputs, found))
    if not allow_unused:
        for i, g in enumerate(found):
            if g is None:
                raise RuntimeError(f"grad: input {i} of shape {tuple(inputs[i].shape)} was not used to compute the outputs; "
                                   "allow_unused=True returns None for it, materialize_grads=True zeros")
    return tuple(found)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None):
    """Add the gradients of the tensors to the ``.grad`` of all leaves they were computed from.

    Parameters
    ----------
    tensors : Tensor or sequence of Tensor
    grad_tensors : Tensor or sequence of Tensor or None, optional
        The gradient that flows into each tensor; may be None for scalars, where it is 1.
    retain_graph : bool, optional
        Keep the graph for a further backward. Default: the value of `create_graph`.
    create_graph : bool, default False
        Record the computation of the gradients.
    inputs : Tensor or sequence of Tensor, optional
        Add to the ``.grad`` of these only.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([1.0, 2.0], requires_grad=True)
    >>> cg.autograd.backward([x.sum(), (x * x).sum()])
    >>> x.grad
    tensor([3., 5.])
    """
    tensors = _tensors("backward", "tensors", tensors)
    gradients = _gradients("backward", "grad_tensors", grad_tensors, tensors)
    retain = bool(create_graph if retain_graph is None else retain_graph)
    if inputs is None:
        send_backward(tensors, gradients, retain, bool(create_graph))
        return
    inputs = _tensors("backward", "inputs", inputs)
    if not inputs:
        raise RuntimeError("backward: inputs is empty; leave it out to reach all leaves")
    found = differentiate(tensors, gradients, inputs, retain, bool(create_graph))
    reached = [(x, g) for x, g in zip(inputs, found) if g is not None]
    for x, g in reached:
        if x.grad is not None:
            x.grad = x.grad + g if create_graph else x.grad.detach() + g
        else:
            x.grad = g.clone()
    run_accumulated_hooks([x for x, _ in reached])


def _tensors(name, what, values):
    if isinstance(values, Tensor):
        return (values,)
    if not isinstance(values, Iterable):
        raise TypeError(f"{name}: {what} must be a tensor or a sequence of tensors, got {type(values).__name__}")
    values = tuple(values)
    for i, x in enumerate(values):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: {what}[{i}] must be a Tensor, got {type(x).__name__}")
    return values


def _gradients(name, what, gradients, outputs):
    if gradients is None:
        return (None,) * len(outputs)
    gradients = (gradients,) if isinstance(gradients, Tensor) else tuple(gradients)
    if len(gradients) != len(outputs):
        raise RuntimeError(f"{name}: {what} must have one entry for each of {len(outputs)} results, got {len(gradients)}")
    return gradients
