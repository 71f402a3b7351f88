"""checkpoint: forget what a function computed on the way, and compute it again in backward."""
from __future__ import annotations

from cgrad.core import random_count
from cgrad.core.forward_mode import fresh, gradients, highest_level
from cgrad.core.graph import sources
from cgrad.core.record import keep_version, record_custom
from cgrad.core.tape import is_grad_enabled, latest_sequence, swap_grad_enabled
from cgrad.core.tensor import Tensor
from cgrad.ops.random import get_rng_state, set_rng_state
from cgrad.tree import flatten, unflatten

__all__ = ["checkpoint", "checkpoint_sequential"]


def checkpoint(function, *args, use_reentrant=None, preserve_rng_state=True, **kwargs):
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
    leaves, shape = flatten([list(args), kwargs])
    tensors = [x for x in leaves if isinstance(x, Tensor)]
    if not is_grad_enabled() or highest_level(tensors):
        return function(*args, **kwargs)
    call = _Recomputation(function, leaves, shape, get_rng_state() if preserve_rng_state else None)
    since, draws = latest_sequence(), random_count.count()
    inputs, out = call.run(connected=False)
    if random_count.count() == draws:
        call.random_state = None
    results, out_shape = flatten(out)
    call.tracked = [k for k, y in enumerate(results) if isinstance(y, Tensor) and y.requires_grad]
    if not call.tracked:
        return out
    others, older = sources([results[k] for k in call.tracked], inputs.values(), since)
    if older:
        raise RuntimeError(f"checkpoint: the function uses a result of {older[0]!r} that is not among its arguments; pass it as an argument, "
                           "so that its gradient can be handed on")
    call.others = others
    recorded = record_custom(call, tuple([leaves[i] for i in inputs] + others), tuple([results[k].detach() for k in call.tracked]))
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
    functions = list(functions)
    n = len(functions)
    if isinstance(segments, bool) or not isinstance(segments, int) or not 1 <= segments <= max(n, 1):
        raise ValueError(f"checkpoint_sequential: {n} functions cannot be cut into {segments!r} segments; give a number from 1 to {max(n, 1)}")
    stops = [n * (k + 1) // segments for k in range(segments)]
    start = 0
    for stop in stops[:-1]:
        input = checkpoint(chain(functions[start:stop]), input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
        start = stop
    return chain(functions[start:])(input)


def chain(functions):
    """The functions as one."""
    def composed(x):
        for f in functions:
            x = f(x)
        return x
    return composed


class _Recomputation:
    """One checkpointed call as the tape keeps it."""

    name = "checkpoint"

    def __init__(self, function, leaves, shape, random_state):
        self.function, self.leaves, self.shape, self.random_state = function, leaves, shape, random_state
        self.versions = {i: keep_version(x) for i, x in enumerate(leaves) if isinstance(x, Tensor)}

    def run(self, connected):
        """Call the function on tensors of its own; returns them by place, and the result.

        With `connected` they are computed from the arguments, so that the result can be differentiated again.
        """
        leaves = list(self.leaves)
        inputs = {}
        for i, x in enumerate(leaves):
            if isinstance(x, Tensor) and x.requires_grad:
                leaves[i] = inputs[i] = fresh(x) if connected else x.detach().requires_grad_()
        args, kwargs = unflatten(self.shape, leaves)
        return inputs, self.function(*args, **kwargs)

    def release(self):
        """Forget what backward needs; called by the engine when it will not be needed again."""
        self.function = self.random_state = None
        self.leaves, self.others, self.versions = [], [], {}

    def backward(self, grads, create_graph, node):
        """The gradients of the inputs; called by the engine."""
        for i, version in self.versions.items():
            if self.leaves[i]._version != version:
                from cgrad.core.overwritten import overwritten
                raise overwritten("checkpoint", self.leaves[i], "an argument, with which the call would be repeated", version, node.source)
        mode = swap_grad_enabled(True)
        state = None
        try:
            if self.random_state is not None:
                state = get_rng_state()
                set_rng_state(self.random_state)
            inputs, out = self.run(create_graph)
        finally:
            if state is not None:
                set_rng_state(state)
            swap_grad_enabled(mode)
        results, _ = flatten(out)
        again = [k for k, y in enumerate(results) if isinstance(y, Tensor) and y.requires_grad]
        if again != self.tracked:
            raise RuntimeError(f"checkpoint: called again, the function returned other tensors that require grad (numbers {again}) "
                               f"than at first ({self.tracked})")
        grads = grads if isinstance(grads, tuple) else (grads,)
        pairs = [(results[k], g) for k, g in zip(self.tracked, grads) if g is not None]
        mode = swap_grad_enabled(create_graph)
        try:
            return gradients(tuple([y for y, _ in pairs]), tuple([g for _, g in pairs]), [*inputs.values(), *self.others], create_graph, create_graph)
        finally:
            swap_grad_enabled(mode)
