"""Hooks of modules: their handles, and calls that pass by them.

A module keeps all its hooks in one table, so that a call of a module without hooks costs one test. Kinds: "forward_pre", "forward",
"full_backward_pre", "full_backward", and four of saving and loading (`state.py`).
"""
from __future__ import annotations

import itertools
import weakref

from cgrad.core.tensor import Tensor
from cgrad.ops.op import Op

__all__ = ["RemovableHandle"]

_ids = itertools.count()


class RemovableHandle:
    """Takes a hook off again; also a context manager that does so at its end.

    Examples
    --------
    >>> import cgrad as cg
    >>> layer, seen = cg.nn.Linear(2, 1), []
    >>> with layer.register_forward_hook(lambda module, args, out: seen.append(out.shape)):
    ...     y = layer(cg.ones((3, 2)))
    >>> y = layer(cg.ones((3, 2)))
    >>> seen
    [(3, 1)]
    """

    def __init__(self, table):
        self.id = next(_ids)
        self._table = weakref.ref(table)

    def remove(self):
        """Remove the hook; doing it twice is harmless."""
        table = self._table()
        if table is not None:
            table.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


class HookTable(dict):
    """{id: (kind, hook, *options)} in the order in which hooks are called. A plain dict cannot be referred to weakly."""

    __slots__ = ("__weakref__",)

    def __deepcopy__(self, memo):
        return HookTable(self)

    def __reduce__(self):
        return HookTable, (dict(self),)


def add(module, kind, hook, *options, prepend=False):
    """Register a hook; the handle that takes it off."""
    if not callable(hook):
        raise TypeError(f"register_{kind}_hook: a hook must be callable, got {type(hook).__name__}")
    table = module._hooks
    handle = RemovableHandle(table)
    others = dict(table) if prepend else {}
    for key in others:
        del table[key]
    table[handle.id] = (kind, hook, *options)
    table.update(others)
    return handle


def of(module, kind):
    """The hooks of a kind as a list of ``(hook, *options)``, which hooks may add to and take from."""
    return [entry[1:] for entry in module._hooks.values() if entry[0] == kind]


def call(module, args, kwargs):
    """What calling a module does when it has hooks."""
    for hook, with_kwargs in of(module, "forward_pre"):
        result = hook(module, args, kwargs) if with_kwargs else hook(module, args)
        if result is None:
            continue
        if with_kwargs:
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(f"{type(module).__name__}: a forward pre-hook with kwargs must return None or "
                                   f"(args, kwargs), got {type(result).__name__}")
            args, kwargs = result
        else:
            args = result if isinstance(result, tuple) else (result,)
    backward = _Backward(module) if of(module, "full_backward") or of(module, "full_backward_pre") else None
    if backward:
        args = backward.enter(args)
    out, waiting = None, of(module, "forward")
    try:
        out = module.forward(*args, **kwargs)
        while waiting:
            hook, with_kwargs, _ = waiting.pop(0)
            result = hook(module, args, kwargs, out) if with_kwargs else hook(module, args, out)
            if result is not None:
                out = result
    except BaseException:
        for hook, with_kwargs, always in waiting:
            if always:
                hook(module, args, kwargs, out) if with_kwargs else hook(module, args, out)
        raise
    return backward.leave(out) if backward else out


class _Gate(Op):
    """Hands tensors on; their gradients come back together and pass ``seen``."""

    def __init__(self, seen):
        self.seen = seen

    def forward(self, *tensors):
        return tuple([x.clone() for x in tensors])      # copies: a view that is written to would change the caller's tensor

    def backward(self, grads):
        return self.seen(grads if isinstance(grads, tuple) else (grads,))


class _Backward:
    """The backward hooks of one call: a gate before the module and one behind it."""

    def __init__(self, module):
        self.module = module
        self.n_args = 0
        self.places = []         # of the arguments that want a gradient
        self.grad_output = ()

    def enter(self, args):
        self.n_args = len(args)
        self.places = [i for i, x in enumerate(args) if isinstance(x, Tensor) and x.requires_grad]
        return _through(args, self.places, self.input_grads)

    def leave(self, out):
        results = out if isinstance(out, (tuple, list)) else (out,)
        places = [i for i, x in enumerate(results) if isinstance(x, Tensor) and x.requires_grad]
        results = _through(results, places, lambda grads: self.output_grads(grads, len(results), places))
        if isinstance(out, tuple):
            return type(out)(*results) if hasattr(out, "_fields") else results
        return list(results) if isinstance(out, list) else results[0]

    def output_grads(self, grads, n, places):
        self.grad_output = _spread(grads, places, n)
        for hook, in of(self.module, "full_backward_pre"):
            self.grad_output = self.replaced("full_backward_pre", hook(self.module, self.grad_output), self.grad_output)
        if not self.places:
            self.input_grads(())
        return _picked(self.grad_output, places)

    def input_grads(self, grads):
        grad_input = _spread(grads, self.places, self.n_args)
        for hook, in of(self.module, "full_backward"):
            grad_input = self.replaced("full_backward", hook(self.module, grad_input, self.grad_output), grad_input)
        return _picked(grad_input, self.places)

    def replaced(self, kind, result, grads):
        if result is None:
            return grads
        result = result if isinstance(result, tuple) else (result,)
        if len(result) != len(grads):
            raise RuntimeError(f"{type(self.module).__name__}: a {kind} hook must return None or {len(grads)} gradients, got {len(result)}")
        return result


def _through(values, places, seen):
    """The values, those at the places behind a gate."""
    if not places:
        return tuple(values)
    passed = iter(_Gate(seen)(*[values[i] for i in places]))
    return tuple([next(passed) if i in places else x for i, x in enumerate(values)])


def _spread(grads, places, n):
    by_place = dict(zip(places, grads))
    return tuple([by_place.get(i) for i in range(n)])


def _picked(grads, places):
    picked = tuple([grads[i] for i in places])
    return picked[0] if len(picked) == 1 else picked
