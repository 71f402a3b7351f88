"""Methods of Tensor that belong to the tape: backward, register_hook."""

from cgrad.autograd.grad import backward as _backward
from cgrad.core import engine, hooks
from cgrad.core.tensor import register_method


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
        With a method ``remove()``.

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
        raise RuntimeError("register_hook: the tensor does not require grad, so no gradient will reach it")
    if not callable(hook):
        raise TypeError(f"register_hook: a hook is a function, got {type(hook).__name__}")
    return Handle(hooks.add_hook(x, hook))


class Handle:
    """What register_hook returns; `remove` takes the hook away."""

    def __init__(self, remove):
        self._remove = remove

    def remove(self):
        """Take the hook away; a second time does nothing."""
        self._remove()


register_method("backward", engine.backward_door(backward))
register_method("register_hook", register_hook)
