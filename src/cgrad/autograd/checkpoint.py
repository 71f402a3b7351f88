"""checkpoint: forget what a function computed on the way, and compute it again in backward."""
from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable

from cgrad.core import watchers
from cgrad.core.random_count import this_thread
from cgrad.core.forward_mode import fresh, gradients, highest_level
from cgrad.core.graph import sources, tail_of
from cgrad.core.record import keep_version, record_custom
from cgrad.core.tape import is_grad_enabled, latest_sequence, swap_grad_enabled
from cgrad.core.tensor import Tensor
from cgrad.ops.generator import get_rng_state, set_rng_state
from cgrad.tree import flatten, unflatten

__all__ = ["checkpoint", "checkpoint_sequential"]


def checkpoint(function, *args, use_reentrant=None, preserve_rng_state=True, early_stop=True, **kwargs):
    """Call a function without keeping its intermediate results; backward calls it again to get them.

    Trades time (one more forward) for memory (inputs and outputs are all that is kept).

    Parameters
    ----------
    function : callable
        Must compute the same when called again. Parameters that it reaches by itself, such as those of a module, get
        their gradients; intermediate results computed elsewhere must be passed as arguments.
    *args, **kwargs
        Its arguments, tensors or trees of tensors among them.
    use_reentrant
        Accepted for likeness with PyTorch; there is one way only.
    preserve_rng_state : bool, default True
        Draw the same random numbers in both calls.
    early_stop : bool, default True
        End the second call, by an exception inside it, as soon as it has computed what backward needs: a matrix product at the end, for
        instance, needs its operands alone.

    Returns
    -------
    What the function returns.

    Raises
    ------
    RuntimeError
        If the function uses an intermediate result that is not among its arguments; in backward, if an argument was changed in place.

    Notes
    -----
    May be nested, and differentiated to any order.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([0.0, 1.0], requires_grad=True)
    >>> y = cg.checkpoint(lambda x: cg.exp(cg.sin(x)), x)
    >>> y.sum().backward()
    >>> x.grad
    tensor([1.0000, 1.2534])
    """
    if not callable(function):
        raise TypeError(f"checkpoint: expected a function, got {type(function).__name__}")
    leaves, shape = flatten([list(args), kwargs])
    tensors = [x for x in leaves if isinstance(x, Tensor)]
    if not is_grad_enabled() or highest_level(tensors):
        return function(*args, **kwargs)
    call = _Recomputation(function, leaves, shape, get_rng_state() if preserve_rng_state else None)
    since, draws = latest_sequence(), this_thread.draws
    inputs, args, kwargs = call.arguments(connected=False)
    operations = _Operations()
    with _watching(operations if early_stop else None):
        out = function(*args, **kwargs)
    if this_thread.draws == draws:
        call.random_state = None
    results, out_shape = flatten(out)
    call.tracked = [k for k, y in enumerate(results) if isinstance(y, Tensor) and y.requires_grad]
    if not call.tracked:
        return out
    own = [results[k] for k in call.tracked]
    others, older = sources(own, inputs.values(), since)
    if older:
        raise RuntimeError(f"checkpoint: the function uses a result of {older[0]!r} that is not among its arguments; pass it as an argument, "
                           "so that its gradient can be handed on")
    call.others = others
    call.versions += [(x, keep_version(x), "a tensor that the function reaches by itself") for x in others]
    if early_stop:
        call.tail = tail_of(own, operations.order, {id(x): i for i, x in inputs.items()}, {id(x) for x in tensors})
    recorded = record_custom(call, tuple([leaves[i] for i in inputs] + others), tuple([y.detach() for y in own]))
    for k, y in zip(call.tracked, recorded):
        results[k] = y
    return unflatten(out_shape, results)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, preserve_rng_state=True):
    """Call functions one after the other, in segments whose intermediate results are computed again in backward, but for the last.

    Parameters
    ----------
    functions : nn.Sequential or sequence of callables
        Each is called with the result of the one before.
    segments : int
        Number of segments, of as equal length as can be.
    input
        What the first function takes: a tensor, or a tree of tensors.
    use_reentrant, preserve_rng_state
        As in `checkpoint`.

    Returns
    -------
    What the last function returns.

    Raises
    ------
    ValueError
        If there are fewer functions than segments, or no segment.

    Notes
    -----
    About as many segments as the square root of the number of functions need the least memory.

    See Also
    --------
    checkpoint_budget : Chooses the segments by what they cost, for a number of bytes.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([0.0, 1.0], requires_grad=True)
    >>> y = cg.checkpoint_sequential([cg.sin, cg.exp, cg.sin, cg.exp], 2, x)
    >>> y.sum().backward()
    >>> x.grad
    tensor([ 1.2534, -1.7751])
    """
    functions = members(functions)
    n = len(functions)
    if isinstance(segments, bool) or not isinstance(segments, int) or not 1 <= segments <= max(n, 1):
        raise ValueError(f"checkpoint_sequential: {n} functions cannot be cut into {segments!r} segments; give a number from 1 to {max(n, 1)}")
    stops = [n * (k + 1) // segments for k in range(segments)]
    start = 0
    for stop in stops[:-1]:
        input = checkpoint(chain(functions[start:stop]), input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
        start = stop
    return chain(functions[start:])(input)


def is_chain(f):
    """Whether a call of `f` does nothing but call its members one after the other: an nn.Sequential with its own forward and no hooks."""
    return getattr(getattr(type(f), "forward", None), "is_chain", False) and not f._hooks


def members(functions):
    """The functions of a chain, or of anything that is only a sequence, as a list; what has a forward of its own is one function."""
    own = callable(functions) and getattr(getattr(type(functions), "forward", None), "__qualname__", "") != "Module.forward"
    return list(functions) if isinstance(functions, Iterable) and (is_chain(functions) or not own) else [functions]


def chain(functions):
    """The functions as one."""
    def composed(x):
        for f in functions:
            x = f(x)
        return x
    return composed


@contextlib.contextmanager
def _watching(watcher):
    """Tell a watcher of each operation that is recorded, if there is one."""
    if watcher is None:
        yield
        return
    watchers.add("record", watcher)
    try:
        yield
    finally:
        watchers.remove("record", watcher)


_asides = threading.local()          # how many `aside` this thread is in


@contextlib.contextmanager
def aside():
    """For what is recorded once only: the checkpointed calls around do not expect it when they are repeated."""
    before = _asides.depth = getattr(_asides, "depth", 0) + 1
    try:
        yield
    finally:
        _asides.depth = before - 1


def _place():
    return threading.get_ident(), getattr(_asides, "depth", 0)


class _Operations:
    """Counts the operations that this thread records; notes versions and addresses of their results."""

    def __init__(self):
        self.place, self.order = _place(), {}

    def __call__(self, node, inputs, results):
        if _place() == self.place:
            made = tuple([(y._version, y.data_ptr()) if isinstance(y, Tensor) else None for y in results])
            self.order[node.sequence_number] = len(self.order), made


class _Stop(BaseException):
    """Everything that backward needs is there."""


class _Repetition:
    """Counts the operations of a call that is repeated, keeps those whose results are needed, and ends it after the last."""

    def __init__(self, tail):
        self.place, self.tail, self.made, self.count = _place(), tail, {}, 0

    def __call__(self, node, inputs, results):
        if _place() != self.place:
            return
        name = self.tail.needs.get(self.count)
        if name is not None:
            if node.name != name:
                raise RuntimeError(f"checkpoint: called again, the function did {node.name} where it did {name} at first")
            self.made[self.count] = node, results, [y._version if isinstance(y, Tensor) else None for y in results]
        self.count += 1
        if self.count > self.tail.stop:
            raise _Stop


class _Recomputation:
    """One checkpointed call as the tape keeps it."""

    name = "checkpoint"
    tail = None

    def __init__(self, function, leaves, shape, random_state):
        self.function, self.leaves, self.shape, self.random_state = function, leaves, shape, random_state
        self.wanted = {i for i, x in enumerate(leaves) if isinstance(x, Tensor) and x.requires_grad}     # who asks later must not change the call
        self.versions = [(x, keep_version(x), "an argument") for x in leaves if isinstance(x, Tensor)]

    def arguments(self, connected):
        """Tensors of its own for the call, by place, and all arguments with them in it.

        With `connected` they are computed from the arguments given, so that the result can be differentiated again.
        """
        leaves = list(self.leaves)
        inputs = {}
        for i, x in enumerate(leaves):
            if i in self.wanted:
                leaves[i] = inputs[i] = fresh(x) if connected and x.requires_grad else x.detach().requires_grad_()
            elif isinstance(x, Tensor) and x.requires_grad:
                leaves[i] = x.detach()
        return inputs, *unflatten(self.shape, leaves)

    def release(self):
        """Forget what backward needs; called by the engine when it will not be needed again."""
        self.function = self.random_state = self.tail = None
        self.leaves, self.others, self.versions = [], [], []

    def backward(self, grads, create_graph, node):
        """The gradients of the inputs; called by the engine."""
        for x, version, what in self.versions:
            if x._version != version:
                from cgrad.core.overwritten import overwritten
                raise overwritten("checkpoint", x, f"{what}, with which the call would be repeated", version, node.source)
        mode, state = swap_grad_enabled(True), None
        try:
            if self.random_state is not None:
                state = get_rng_state()
                set_rng_state(self.random_state)
            inputs, results = self.whole(create_graph) if self.tail is None or create_graph else self.necessary()
        finally:
            if state is not None:
                set_rng_state(state)
            swap_grad_enabled(mode)
        grads = grads if isinstance(grads, tuple) else (grads,)
        pairs = [(y, g) for y, g in zip(results, grads) if g is not None]
        mode = swap_grad_enabled(create_graph)
        try:
            # What comes to a parameter through an argument is on its way already.
            return gradients(tuple([y for y, _ in pairs]), tuple([g for _, g in pairs]), [*inputs.values(), *self.others], create_graph, create_graph,
                             stop=True)
        finally:
            swap_grad_enabled(mode)

    def whole(self, connected):
        """The inputs and the tracked results of the call, repeated to its end."""
        inputs, args, kwargs = self.arguments(connected)
        results, _ = flatten(self.function(*args, **kwargs))
        again = [k for k, y in enumerate(results) if isinstance(y, Tensor) and y.requires_grad]
        if again != self.tracked:
            raise RuntimeError(f"checkpoint: called again, the function returned other tensors that require grad (numbers {again}) "
                               f"than at first ({self.tracked})")
        return inputs, [results[k] for k in again]

    def necessary(self):
        """The same, where the call is repeated as far as backward needs it; the results then have no values."""
        inputs, args, kwargs = self.arguments(connected=False)
        repetition = _Repetition(self.tail)
        if self.tail.stop >= 0:
            try:
                with _watching(repetition):
                    self.function(*args, **kwargs)
            except _Stop:
                pass
            else:
                raise RuntimeError(f"checkpoint: called again, the function recorded {repetition.count} operations, at first more than {self.tail.stop}")
        return inputs, self.tail.rebuilt(repetition.made, inputs)
