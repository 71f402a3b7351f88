"""Function: own differentiable functions as PyTorch code writes them, two static methods and a context.

The context is an Op, so a call is recorded, repeated for second order and differentiated forward exactly as Ops are.
Next: op.py.
"""
from __future__ import annotations

import functools
from typing import NamedTuple

from cgrad.core import batching, tape
from cgrad.core.record import is_recorded, which_tracked
from cgrad.core.tensor import Tensor
from cgrad.ops.creation import zeros
from cgrad.ops.op import Op
from cgrad.ops.shape import moveaxis

__all__ = ["Function", "once_differentiable"]


class VmapInfo(NamedTuple):
    """What a Function's `vmap` is told."""

    batch_size: int
    randomness: str


class Context(Op):
    """What a Function's methods get as `ctx`: anything put on it in forward is there in backward.

    Attributes
    ----------
    saved_tensors : tuple of Tensor
        What `save_for_backward` was given.
    needs_input_grad : tuple of bool
        Which inputs want a gradient.
    """

    _function = None            # the Function; set in a subclass made for each
    _saved = ()
    _fixed = ()                 # numbers of the results that have no gradient
    _materialize = True

    def save_for_backward(self, *tensors):
        """Keep tensors (plain numbers and None, too) for `backward`, which finds them in `saved_tensors`."""
        self._saved = tensors

    save_for_forward = save_for_backward

    @property
    def saved_tensors(self):
        """What `save_for_backward` was given."""
        return self._saved

    def mark_non_differentiable(self, *results):
        """Say which results have no gradient, such as indices kept as floating-point numbers."""
        self._fixed = results

    def set_materialize_grads(self, value):
        """Whether backward gets zeros (the default) or None for results that nothing depends on."""
        self._materialize = bool(value)

    def mark_dirty(self, *inputs):
        """Not supported: a Function may not change its inputs in place."""
        raise RuntimeError(f"mark_dirty: {type(self).__name__} would change an input in place, which a Function may not; "
                           "change a copy (x.clone()) and return it")

    def forward(self, *args):
        function = self._function
        self.needs_input_grad = which_tracked(args)
        if self._takes_context:
            out = function.forward(self, *args)
        else:
            out = function.forward(*args)
            function.setup_context(self, args, out)
        results = out if isinstance(out, (tuple, list)) else (out,)
        if self._fixed:
            self._fixed = tuple([k for k, y in enumerate(results) if any(y is x for x in self._fixed)])
        if len(results) > 1:
            self._likes = [(y.shape, y.dtype) if isinstance(y, Tensor) else None for y in results]
        return out

    def backward(self, grads):
        if not isinstance(grads, tuple):
            return self._function.backward(self, grads)
        if self._materialize:
            grads = [zeros(like[0], dtype=like[1]) if g is None and like is not None else g for g, like in zip(grads, self._likes)]
        return self._function.backward(self, *grads)


class Function:
    """A differentiable function given by its two sides, in PyTorch's words.

    Subclasses implement the static methods `forward` and `backward`; calls go through ``apply``.

    - ``forward(ctx, *args)``, or ``forward(*args)`` together with ``setup_context(ctx, inputs, output)``;
    - ``backward(ctx, *grads)``: one gradient for each argument of forward, None where none is due;
    - ``jvp(ctx, *tangents)``, optional: the tangent of the result (forward mode; by default backward is transposed);
    - ``vmap(info, in_dims, *args)``, optional: ``(results, out_dims)`` for a batch (by default, example by example).

    Notes
    -----
    Gradients of gradients work where `backward` is written with cgrad's functions. Inputs may not be changed in place. `cgrad.Op` does the
    same without a context.

    Examples
    --------
    >>> import cgrad as cg
    >>> class Cube(cg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x ** 3
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         x, = ctx.saved_tensors
    ...         return grad * 3 * x ** 2
    >>> x = cg.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    generate_vmap_rule = False

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        given = {"_function": cls, "_takes_context": cls.setup_context is Function.setup_context, "__doc__": cls.__doc__}
        if cls.jvp is not Function.jvp:
            given["jvp"] = lambda ctx, *tangents: cls.jvp(ctx, *tangents)
        if cls.vmap is not Function.vmap:
            given["batch"] = _batch
        cls._context = type(cls.__name__, (Context,), given)

    @classmethod
    def apply(cls, *args):
        """Call the function; recorded if an argument requires grad."""
        ctx = cls._context()
        out = ctx(*args)
        if not ctx._fixed:
            return out
        if isinstance(out, tuple):
            return tuple(y.detach() if k in ctx._fixed else y for k, y in enumerate(out))
        return out.detach()

    @staticmethod
    def forward(*args):
        """Compute the result."""
        raise NotImplementedError("Function: a subclass must implement the static method forward(ctx, *args)")

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Keep on ctx what backward needs, where `forward` takes no ctx."""

    @staticmethod
    def backward(ctx, *grads):
        """The gradient of each argument of forward."""
        raise NotImplementedError(f"{type(ctx).__name__}: a Function must implement the static method backward(ctx, *grads)")

    @staticmethod
    def jvp(ctx, *tangents):
        """The tangent of the result."""
        raise NotImplementedError

    @staticmethod
    def vmap(info, in_dims, *args):
        """The results for a batch, and along which axes the examples lie in them."""
        raise NotImplementedError


def _batch(ctx, axes, *args):
    """A Function's `vmap` as the batching rule of its context."""
    size = next(x.shape[0] for x, axis in zip(args, axes) if axis == 0)
    levels = batching.maps()
    out, places = ctx._function.vmap(VmapInfo(size, levels[-1][2] if levels else "error"), axes, *args)
    if not isinstance(out, (tuple, list)):
        return moveaxis(out, places, 0)
    if not isinstance(places, (tuple, list)):
        places = (places,) * len(out)
    return tuple(moveaxis(y, axis, 0) for y, axis in zip(out, places))


class _Once(Op):
    """The first argument; a derivative of it is refused."""

    def __init__(self, name):
        self.owner = name

    def forward(self, x, *grads):
        return x

    def backward(self, grads):
        raise RuntimeError(f"{self.owner}: a derivative of its derivative is wanted, but its backward is marked once_differentiable; "
                           "write it with cgrad's functions and take the mark away")


def once_differentiable(backward):
    """Mark a `backward` that must not be differentiated itself; a second derivative is then an error instead of a wrong number.

    Examples
    --------
    >>> import cgrad as cg
    >>> class Double(cg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     @cg.autograd.once_differentiable
    ...     def backward(ctx, grad):
    ...         return cg.tensor(grad.numpy() * 2)
    >>> x = cg.tensor(1.0, requires_grad=True)
    >>> Double.apply(x).backward()
    >>> x.grad
    tensor(2.)
    """
    @functools.wraps(backward)
    def wrapper(ctx, *grads):
        recording = is_recorded((*grads, *ctx.saved_tensors))
        mode = tape.swap_grad_enabled(False)
        strict = tape.swap_strict_rule(None)
        try:
            values = backward(ctx, *[g.detach() if isinstance(g, Tensor) else g for g in grads])
        finally:
            tape.swap_grad_enabled(mode)
            tape.swap_strict_rule(strict)
        if not recording:
            return values
        watched = [g for g in (*grads, *ctx.saved_tensors) if isinstance(g, Tensor)]
        name = type(ctx).__name__
        if isinstance(values, (tuple, list)):
            return tuple(_Once(name)(v, *watched) if isinstance(v, Tensor) else v for v in values)
        return _Once(name)(values, *watched)
    return wrapper
