"""Methods of Tensor that belong to the tape: backward and hooks."""

from cgrad.autograd.grad import backward as _backward
from cgrad.core import engine, hooks
from cgrad.core.tensor import register_method
from cgrad.ops.define import as_method


def backward(x, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Add the gradients of this tensor to the ``.grad`` of the leaves it was computed from.

    Parameters
    ----------
    gradient : Tensor, optional
        The gradient that flows into the tensor; may be left out for a scalar, where it is 1.
    retain_graph : bool, optional
        Keep the graph for a further backward.  Default: the value of `create_graph`.
    create_graph : bool
        Record the computation of the gradients, so that they can be differentiated again.
    inputs : Tensor or sequence of Tensor, optional
        Add to the ``.grad`` of these only.

    Raises
    ------
    RuntimeError
        If the tensor is no scalar and no gradient is given, has no graph, or its graph was freed.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """
    if inputs is None:
        engine.run_backward((x,), (gradient,), None, create_graph if retain_graph is None else retain_graph, create_graph)
    else:
        _backward((x,), None if gradient is None else (gradient,), retain_graph, create_graph, inputs)


def register_hook(x, hook):
    """Call a function with the gradient of this tensor whenever it is computed.

    Parameters
    ----------
    hook : callable
        ``hook(gradient)``; what it returns, unless None, takes the gradient's place.

    Returns
    -------
    handle
        With a method ``remove()``; also a context manager that removes the hook at its end.

    Raises
    ------
    RuntimeError
        If the tensor does not require grad.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor(1.0, requires_grad=True)
    >>> handle = x.register_hook(lambda g: 10 * g)
    >>> (x * 2).backward()
    >>> x.grad
    tensor(20.)
    """
    if not x.requires_grad:
        from cgrad.core.untracked import untracked_text
        raise RuntimeError(f"register_hook: no gradient will reach the tensor: {untracked_text(x)}")
    if not callable(hook):
        raise TypeError(f"register_hook: a hook is a function, got {type(hook).__name__}")
    return Handle(hooks.add_hook(x, hook))


def register_post_accumulate_grad_hook(x, hook):
    """Call a function with this leaf whenever a backward has added to its ``.grad``.

    Parameters
    ----------
    hook : callable
        ``hook(x)``. It may change or clear ``x.grad``, or step an optimizer. It returns nothing, or a function without arguments to be called
        when this backward has written all gradients; one that several hooks return is called once.

    Returns
    -------
    handle
        With a method ``remove()``; also a context manager that removes the hook at its end.

    Raises
    ------
    RuntimeError
        If the tensor is no leaf or does not require grad; in backward, if the hook returns a value.

    Notes
    -----
    Called during backward, as soon as no later step can add to this gradient, with the sum over all uses; for each backward once. So what
    is done with a gradient, such as sending it, overlaps with the rest. `register_hook` hooks come before it. If backward, or a hook, then
    fails, the leaves whose hooks were called keep their new ``.grad``; all others are as they were. `autograd.grad` calls none.

    Examples
    --------
    >>> import cgrad as cg
    >>> w = cg.tensor(1.0, requires_grad=True)
    >>> optimizer = cg.optim.SGD([w], lr=0.1)
    >>> def step(w):
    ...     optimizer.step()
    ...     w.grad = None
    >>> handle = w.register_post_accumulate_grad_hook(step)
    >>> (w * 3).backward()
    >>> w, w.grad
    (tensor(0.7000, requires_grad=True), None)
    """
    if not x.requires_grad:
        from cgrad.core.untracked import untracked_text
        raise RuntimeError(f"register_post_accumulate_grad_hook: nothing will be added to the tensor's .grad: {untracked_text(x)}")
    if not x.is_leaf:
        raise RuntimeError("register_post_accumulate_grad_hook: the tensor is the result of an operation; a leaf accumulates gradients, "
                           "for results use register_hook")
    if not callable(hook):
        raise TypeError(f"register_post_accumulate_grad_hook: a hook is a function, got {type(hook).__name__}")
    return Handle(hooks.add_accumulated_hook(x, hook))


def why_no_grad(x, result=None):
    """Say in a sentence why the tensor has no gradient in ``.grad``.

    Parameters
    ----------
    result : Tensor, optional
        The tensor whose backward was expected to reach this one.

    Returns
    -------
    str

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor(2.0, requires_grad=True)
    >>> y = x * x
    >>> y.why_no_grad()
    'it is no leaf but a result of multiply, and gradients of results are passed on, not kept: call retain_grad() on it before backward'
    >>> x.why_no_grad(y)
    'backward() has not been called on the result, or the gradient was set to None since'
    >>> cg.tensor(3).why_no_grad()
    'its dtype is int64, and only floating point tensors have gradients: convert it first, x.float()'
    """
    from importlib import import_module              # seldom wanted, and above this layer
    return import_module("cgrad.show.reasons").why_no_grad(x, result)


class Handle:
    """What register_hook returns; `remove` takes the hook away.  As a context manager it does so at its end."""

    def __init__(self, remove):
        self._remove = remove

    def remove(self):
        """Take the hook away; a second time does nothing."""
        self._remove()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


register_method("backward", engine.backward_door(backward))
for _function in (register_hook, register_post_accumulate_grad_hook, why_no_grad):
    as_method(_function)
