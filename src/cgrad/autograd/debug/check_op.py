"""check_op: everything that can go wrong with an own operation, tried on given inputs."""
from __future__ import annotations

import gc
import inspect
import sys
import warnings

import numpy as np

from cgrad import memory
from cgrad.autograd.grad import grad
from cgrad.autograd.debug.gradcheck import GradcheckError, gradcheck, gradgradcheck
from cgrad.core.dtype import float32
from cgrad.core.tensor import Tensor
from cgrad.func.vmap import vmap
from cgrad.ops.creation import asarray
from cgrad.ops.function import Function
from cgrad.ops.joining import stack
from cgrad.ops.op import Op

__all__ = ["check_op"]

ROUNDS = 20                     # calls after which memory must be what it was


def check_op(op, inputs, *, second_order=True, forward_mode=True, batched=True, eps=1e-6, atol=1e-5, rtol=1e-3):
    """Check an own operation whole.

    Tries, in this order: the gradient and, if wanted, forward mode and second derivatives against differences; that inputs are left as
    they are; that inputs of any layout give the same values; that one instance called twice keeps the two calls apart; that float32 in
    gives float32 out, forward and backward; that `cgrad.func.vmap` agrees with a loop; that calls leave no memory behind.

    Parameters
    ----------
    op : Op, class of Op or Function, or callable
        An instance, a class that is made without arguments, or what `cgrad.op` returns.
    inputs : Tensor or tuple
        Arguments of one call: float64 tensors that require grad, and anything that does not. Away from kinks.
    second_order, forward_mode, batched : bool, default True
        What to check beyond the gradient; False for what the operation is not meant to do.
    eps, atol, rtol : float
        As for `gradcheck`.

    Returns
    -------
    bool
        True; what is wrong is raised.

    Raises
    ------
    GradcheckError
        Naming the operation, the first check that failed, and the numbers.

    Examples
    --------
    >>> import cgrad as cg
    >>> class square(cg.Op):
    ...     def forward(self, x):
    ...         self.x = x
    ...         return x * x
    ...     def backward(self, grads):
    ...         return 2 * self.x * grads
    >>> x = cg.tensor([0.5, -1.5], dtype=cg.float64, requires_grad=True)
    >>> cg.autograd.check_op(square, x)
    True
    """
    name, make = _maker(op)
    call = make()
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    before = [(x, x._version, x.detach().numpy().copy()) for x in inputs if isinstance(x, Tensor)]
    try:
        what = "derivatives"
        gradcheck(call, inputs, eps=eps, atol=atol, rtol=rtol, check_forward_ad=forward_mode, check_grad_dtypes=True)
        if second_order:
            what = "second derivatives"
            gradgradcheck(call, inputs, eps=eps, atol=atol, rtol=rtol)
    except GradcheckError as error:
        raise GradcheckError(f"check_op: {name}: {what}: {error}") from None
    for x, version, values in before:
        if not np.array_equal(x.detach().numpy(), values, equal_nan=True):
            raise GradcheckError(f"check_op: {name}: an input of shape {tuple(x.shape)} was changed (version {version} became {x._version}); "
                                 "work on a copy (x.clone())")
    _layouts(name, make, inputs)
    _two_calls(name, make, inputs)
    _float32(name, make, inputs)
    if batched:
        _batches(name, make, inputs)
    _leaks(name, make, inputs)
    return True


def _maker(op):
    """The operation's name, and a function that gives a callable with a fresh state."""
    if inspect.isclass(op) and issubclass(op, Function):
        return op.__name__, lambda: op.apply
    if inspect.isclass(op) and issubclass(op, Op):
        return op.__name__, op
    if not callable(op):
        raise TypeError(f"check_op: expected an operation, got {type(op).__name__}")
    return getattr(op, "__name__", type(op).__name__), lambda: op


def _results(out):
    return [y for y in (out if isinstance(out, tuple) else (out,)) if isinstance(y, Tensor)]


def _leaves(inputs, change=lambda x: x, dtype=None):
    """Fresh leaves with the inputs' values, changed."""
    return tuple([asarray(change(x.detach().numpy().copy()), dtype=dtype).requires_grad_() if isinstance(x, Tensor) and x.requires_grad else x
                  for x in inputs])


def _gradients(results, inputs):
    """Gradients of the sum of the results, as arrays."""
    wanted = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    results = [y for y in results if y.requires_grad]
    found = grad(results, wanted, [asarray(np.ones(y.shape), dtype=y.dtype) for y in results], allow_unused=True)
    return [np.zeros(x.shape) if g is None else g.detach().numpy() for x, g in zip(wanted, found)]


def _same(name, what, got, expected):
    for k, (a, b) in enumerate(zip(got, expected)):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or not np.allclose(a, b, rtol=1e-7, atol=1e-10, equal_nan=True):
            raise GradcheckError(f"check_op: {name}: {what} {k}: got {_brief(a)}, expected {_brief(b)}")


def _brief(a):
    return f"{a.tolist()}" if a.size <= 6 else f"values of shape {a.shape} from {a.min():.6g} to {a.max():.6g}"


def _layouts(name, make, inputs):
    expected = [y.detach().numpy() for y in _results(make()(*_leaves(inputs)))]

    def strided(x):
        wide = np.zeros((*x.shape, 2))
        wide[..., 0] = x
        return wide[..., 0]

    for what, change in (("with strided inputs, result", strided), ("with inputs in Fortran order, result", np.asfortranarray)):
        moved = [change(x.detach().numpy()) if isinstance(x, Tensor) and x.requires_grad else x for x in inputs]
        views = tuple(asarray(m, copy=False) if isinstance(m, np.ndarray) else m for m in moved)
        _same(name, what, [y.detach().numpy() for y in _results(make()(*views))], expected)


def _two_calls(name, make, inputs):
    first, second = _leaves(inputs), _leaves(inputs, lambda x: x + 0.125)
    expected = [_gradients(_results(make()(*x)), x) for x in (first, second)]
    shared = make()
    results = [_results(shared(*x)) for x in (first, second)]
    got = [_gradients(y, x) for y, x in zip(results, (first, second))]
    _same(name, "of two calls of one instance, the first call's gradient", got[0], expected[0])
    _same(name, "of two calls of one instance, the second call's gradient", got[1], expected[1])


def _float32(name, make, inputs):
    inputs = _leaves(inputs, dtype=float32)
    results = _results(make()(*inputs))
    for k, y in enumerate(results):
        if y.dtype.is_floating_point and y.dtype != float32:
            raise GradcheckError(f"check_op: {name}: with float32 inputs, result {k} has dtype {y.dtype.name}; a constant or an array of float64 has raised it")
    for k, g in enumerate(_gradients(results, inputs)):
        if not np.isfinite(g).all():
            raise GradcheckError(f"check_op: {name}: with float32 inputs, gradient {k} is not finite: {_brief(g)}")


def _batches(name, make, inputs):
    examples = [_leaves(inputs, lambda x, shift=shift: x + shift) for shift in (0.0, 0.125, 0.25)]
    axes = tuple(0 if isinstance(x, Tensor) and x.requires_grad else None for x in inputs)
    together = tuple(stack([e[i].detach() for e in examples], 0) if axis == 0 else x for i, (x, axis) in enumerate(zip(inputs, axes)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)          # example by example is right, too
        got = _results(vmap(make(), axes)(*together))
    one_by_one = [_results(make()(*e)) for e in examples]
    _same(name, "under vmap, result", [y.detach().numpy() for y in got],
          [np.stack([e[k].detach().numpy() for e in one_by_one]) for k in range(len(got))])


def _leaks(name, make, inputs):
    call = make()

    def rounds():
        for _ in range(ROUNDS):
            _gradients(_results(call(*inputs)), inputs)
        gc.collect()
        memory.trim()                # dead objects kept for reuse would hide a few new ones
        return memory.stats()["live_bytes"], sys.getallocatedblocks()

    rounds()
    old_bytes, old_blocks = rounds()
    new_bytes, new_blocks = rounds()
    # Small tensors hold their numbers themselves: they show as objects.
    if new_bytes > old_bytes or new_blocks - old_blocks >= ROUNDS:
        raise GradcheckError(f"check_op: {name}: {ROUNDS} calls with their backward left {new_bytes - old_bytes} bytes and "
                             f"{new_blocks - old_blocks} objects behind; something keeps tensors of earlier calls (a list on the class, a closure)")
