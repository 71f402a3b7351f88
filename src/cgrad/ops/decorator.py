"""op: a plain function with its derivative beside it becomes an operation.

For functions whose backward needs nothing but the inputs and the result, which is most of them.  What it makes is a subclass of Op.
Next: op.py.
"""
from __future__ import annotations

import functools

from cgrad.core.record import is_recorded
from cgrad.core.tensor import Tensor
from cgrad.ops.creation import asarray
from cgrad.ops.op import Op
from cgrad.tree import flatten, tree_map

__all__ = ["op"]


def op(function=None, *, vjp=None, jvp=None, batch=None, arrays=False):
    """Turn a function and its derivatives into an operation that is recorded like every other.

    Parameters
    ----------
    function : callable
        Takes the inputs, returns the result or a tuple of results.
    vjp : callable, optional
        ``vjp(gradient, result, *inputs)`` gives one gradient for each input, None where none is due. Without it the operation can be
        computed but not differentiated.
    jvp : callable, optional
        ``jvp(tangents, result, *inputs)`` gives the tangent of the result; `tangents` holds one for each input, None for those that do
        not vary. Without it forward mode transposes the vjp.
    batch : callable, optional
        ``batch(axes, *inputs)`` is what `vmap` calls: inputs with the entry 0 in `axes` hold all examples along their first axis, those
        with None are shared; the result holds the examples along its first axis. Without it vmap goes example by example.
    arrays : bool, default False
        The functions compute with NumPy arrays: inputs come as arrays (without a copy) and what is returned becomes tensors. A second
        derivative is then an error, since nobody sees what happens in between.

    Returns
    -------
    callable
        Takes tensors, arrays and numbers; on plain numbers alone it is `function`. Its class, a subclass of `cgrad.Op`, is its ``.op``.

    Raises
    ------
    RuntimeError
        In backward without a `vjp`; for a second derivative with ``arrays=True``.

    Examples
    --------
    >>> import cgrad as cg
    >>> @cg.op(vjp=lambda g, out, x, y: (g * y, g * x), jvp=lambda t, out, x, y: t[0] * y + x * t[1])
    ... def times(x, y):
    ...     return x * y
    >>> times(2, 3)
    6
    >>> x = cg.tensor([1.0, 2.0], requires_grad=True)
    >>> times(x, x).sum().backward()
    >>> x.grad
    tensor([2., 4.])

    A function of SciPy's:

    >>> import numpy as np
    >>> sinc = cg.op(np.sinc, vjp=lambda g, out, x: g * (np.cos(np.pi * x) - out) / x, arrays=True)
    >>> x = cg.tensor([0.5], requires_grad=True)
    >>> sinc(x).backward()
    >>> x.grad
    tensor([-1.2732])
    """
    if function is None:
        return functools.partial(op, vjp=vjp, jvp=jvp, batch=batch, arrays=arrays)
    for name, value in (("the function", function), ("vjp", vjp), ("jvp", jvp), ("batch", batch)):
        if value is not None and not callable(value):
            raise TypeError(f"op: {name} must be a function, got {type(value).__name__}")
    name = getattr(function, "__name__", type(function).__name__)
    given = {"function": staticmethod(function), "vjp": staticmethod(vjp) if vjp else None, "arrays": arrays, "__doc__": function.__doc__}
    if jvp:
        given["jvp"] = lambda self, *tangents: self.computed(jvp, tangents, self.result, *self.inputs)
    if batch:
        given["batch"] = lambda self, axes, *inputs: self.computed(batch, axes, *inputs)
    made = type(name, (Decorated,), given)

    @functools.wraps(function, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def call(*args):
        return made()(*args)
    call.op = made
    return call


class Decorated(Op):
    """An Op made of functions; keeps the inputs and the result."""

    def forward(self, *inputs):
        self.inputs = inputs
        self.result = self.computed(self.function, *inputs)
        return self.result

    def backward(self, grads):
        if self.vjp is None:
            raise RuntimeError(f"{type(self).__name__}: backward has no rule for it; give op(..., vjp=) one")
        return self.computed(self.vjp, grads, self.result, *self.inputs)

    def computed(self, function, *args):
        """function(*args), by way of arrays if that is what it wants."""
        tensors = tuple([x for x in flatten(args)[0] if isinstance(x, Tensor)]) if self.arrays else ()
        if not tensors:
            return function(*args)
        if is_recorded(tensors):
            raise RuntimeError(f"{type(self).__name__}: a derivative of its derivative is wanted, but it computes in arrays, which leave the graph; "
                               "write vjp with cgrad's functions and leave arrays=True away")
        out = function(*tree_map(lambda x: x.detach().numpy() if isinstance(x, Tensor) else x, args))
        return tree_map(lambda y: None if y is None else asarray(y), out)
