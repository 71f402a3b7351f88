"""Op: the two sides of an operator, forward and backward; the extension API.

A user's Op is a class with `forward` and `backward` that keeps what it needs on `self`.  On plain numbers it is just that.  Given
tensors, the call is recorded: forward runs with recording off, and the call keeps its own copy of the instance's state, so one
instance may be called any number of times.  Under create_graph the rule runs recorded: inputs kept on `self` are the tracked tensors
themselves, a kept result is put back to its place in the graph, and values that forward computed in between are computed again,
recorded.  What would make a second derivative silently wrong is an error.  Next: core/engine.pyx, which calls `backward` back.
"""

import copy

from cgrad.core import batching, forward_mode, tape
from cgrad.core.random_count import this_thread
from cgrad.core.record import connected, is_recorded, kept_by, record_custom, which_tracked
from cgrad.core.tensor import Tensor


class Op:
    """An operator with two sides.

    Subclasses implement `forward` and `backward`; state goes on `self`, no ``super().__init__()`` is needed. They may implement
    ``jvp(*tangents)``, the tangent of the result (None for inputs that do not vary), and ``batch(axes, *args)``, the result for all
    examples of a `cgrad.func.vmap`: arguments with the entry 0 in `axes` hold them along their first axis, as the result does; None: shared.

    Attributes
    ----------
    needs_input_grad : tuple of bool
        In `backward`: which inputs want a gradient.

    Notes
    -----
    ``op(*args)`` calls `forward`.  With a tensor among the arguments that requires grad, the call is recorded on the tape; its
    gradients are what `backward` returns: one for each positional argument, None where none is due.

    Examples
    --------
    >>> import cgrad as cg
    >>> class multiply(cg.Op):
    ...     def forward(self, x, y):
    ...         self.x, self.y = x, y
    ...         return x * y
    ...     def backward(self, grads):
    ...         return grads * self.y, grads * self.x
    >>> times = multiply()
    >>> times(2, 3), times.backward(1)
    (6, (3, 2))
    >>> x = cg.tensor(2.0, requires_grad=True)
    >>> times(x, 3.0).backward()
    >>> x.grad
    tensor(3.)
    """

    _in_dict = True             # whether the whole state is in __dict__

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls._in_dict = not any(name in vars(kind) for kind in cls.__mro__[:-1] for name in ("__slots__", "__copy__", "__reduce__", "__reduce_ex__"))

    def forward(self, *args, **kwargs):
        """Compute the result from the inputs, and keep on `self` what `backward` needs."""
        raise NotImplementedError(f"{type(self).__name__}: an Op must implement forward(self, ...)")

    def backward(self, grads):
        """Turn the gradient of the result into one gradient for each positional input.

        Parameters
        ----------
        grads : Tensor, number, or tuple of them
            Gradient of the result; a tuple if forward returned one.
        """
        raise NotImplementedError(f"{type(self).__name__}: an Op must implement backward(self, grads)")

    def __call__(self, *args, **kwargs):
        for value in args:
            if isinstance(value, Tensor):
                return _call_on_tensors(self, args, kwargs)
        for value in kwargs.values():
            if isinstance(value, Tensor):
                return _call_on_tensors(self, args, kwargs)
        return self.forward(*args, **kwargs)


def _call_on_tensors(op, args, kwargs):
    if getattr(op, "builtin", False):
        return op.forward(*args, **kwargs)
    inputs = (*args, *kwargs.values()) if kwargs else args
    if kwargs and is_recorded(inputs[len(args):]):
        name = next(name for name, value in kwargs.items() if isinstance(value, Tensor) and value.requires_grad)
        raise TypeError(f"{type(op).__name__}: tensors that require grad are passed by position, backward could not answer for {name!r}")
    level = forward_mode.highest_level(inputs)
    if level:
        return _at_level(op, args, kwargs, level)
    tracked = is_recorded(args)
    before = (op.__dict__.copy() if op._in_dict else copy.copy(op)) if tracked else None
    draws = this_thread.draws
    mode = tape.swap_grad_enabled(False)
    inside = tape.swap_inside_op(1) if tracked else 0          # an Op inside another's forward belongs to that
    took_numbers = False
    try:
        given = result = op.forward(*args, **kwargs)
    finally:
        tape.swap_grad_enabled(mode)
        if tracked:
            took_numbers = tape.swap_inside_op(inside) == 2
    if not isinstance(result, Tensor):
        result = _wrap(op, inputs, result)
    if not tracked:
        return result
    call = CustomCall(_copy(op), before, args, kwargs, result, this_thread.draws != draws)
    if took_numbers:
        call.numbers = _numbers_kept(op, before, given)
    return record_custom(call, args, result)


def _numbers_kept(op, before, given):
    """What forward has put on `op` that may be computed from numbers it took out of tensors: name -> number of the result that it is, or None."""
    old = before if isinstance(before, dict) else vars(before)
    results = given if isinstance(given, (tuple, list)) else (given,)
    places = {id(value): k for k, value in enumerate(results)}
    return {name: places.get(id(value)) for name, value in vars(op).items() if old.get(name, op) is not value and _has_numbers(value)}


def _has_numbers(value):
    if isinstance(value, (tuple, list)):
        return any(map(_has_numbers, value))
    return isinstance(value, float) or getattr(getattr(value, "dtype", None), "kind", "") == "f"         # arrays of NumPy


def _copy(op):
    """An instance with the same state; as copy.copy, which takes ten times as long."""
    return _with_state(type(op), op.__dict__) if op._in_dict else copy.copy(op)


def _with_state(kind, state):
    new = object.__new__(kind)
    new.__dict__.update(state)
    return new


def _wrap(op, args, result):
    """Results that are numbers or arrays become tensors."""
    if isinstance(result, (tuple, list)):
        return tuple(_wrap(op, args, x) for x in result)
    if isinstance(result, Tensor) or result is None:
        return result
    from cgrad.ops.creation import asarray
    try:
        # A number computed from tensors keeps their precision; a Python float would otherwise fall to the default dtype.
        return asarray(result, dtype=_float_dtype(args) if isinstance(result, float) else None)
    except TypeError as error:
        raise TypeError(f"{type(op).__name__}: forward returned {type(result).__name__}; a result is a tensor, an array or a number") from error


def _float_dtype(values):
    """The widest floating dtype among the tensors of `values`, or None."""
    found = [v.dtype for v in values if isinstance(v, Tensor) and v.dtype.is_floating_point]
    return max(found, key=lambda d: d.itemsize) if found else None


class CustomCall:
    """One recorded call of a user's Op: its own copy of the state, as the tape keeps it."""

    numbers = {}          # of those that forward keeps and that may be computed from its inputs: see _numbers_kept

    def __init__(self, op, before, args, kwargs, result, drew):
        self.op, self.before, self.kwargs, self.drew = op, before, kwargs, drew
        self.name = type(op).__name__
        self.args = args
        self.result = result
        # `before` is the state of the instance as forward found it: a dict, or an instance where that does not hold all of it.
        # Between: what forward computed on the way; the results themselves are put back into the graph by `_connect`.
        self.versions, self.between = kept_by(vars(op), result)

    def release(self):
        """Forget everything that backward needs; called by the engine when it will not be needed again."""
        self.op = self.before = self.result = None
        self.args, self.kwargs, self.versions = (), {}, []

    def backward(self, grads, create_graph, node):
        """The gradients of the inputs; called by the engine."""
        for x, version in self.versions:
            if x._version != version:
                from cgrad.core.overwritten import overwritten
                raise overwritten(self.name, x, "kept by the Op", version, node.source)
        # A derivative of the derivative: numbers must not leave the graph, wherever backward was called.
        before = (tape.swap_inside_op(0), tape.swap_strict_rule(self.name)) if create_graph else None
        try:
            op = self._connect(node) if create_graph else self.op
            op.needs_input_grad = which_tracked(self.args)
            return self._check(op.backward(grads))
        finally:
            if before is not None:
                tape.swap_inside_op(before[0])
                tape.swap_strict_rule(before[1])

    def _connect(self, node):
        """The state with results (and what was computed on the way) back in the graph."""
        lost = [name for name, place in self.numbers.items() if place is None]
        if lost:
            raise RuntimeError(f"{self.name}: a derivative of its derivative is wanted, but forward kept {', '.join(lost)} as plain numbers computed from "
                               "its inputs, which have no graph; keep tensors (cgrad.exp instead of math.exp), or compute the numbers in backward")
        if self.between:
            if self.drew:
                raise RuntimeError(f"{self.name}: a derivative of its derivative is wanted, but forward kept {self.between} computed from its inputs "
                                   "and drew random numbers, so it cannot be repeated; keep only inputs, results and the random numbers")
            fresh = _copy(self.before) if isinstance(self.before, Op) else _with_state(type(self.op), self.before)
            mode = tape.swap_grad_enabled(True)
            try:
                fresh.forward(*self.args, **self.kwargs)
            finally:
                tape.swap_grad_enabled(mode)
            return fresh
        op = _copy(self.op)
        results = self.result if isinstance(self.result, tuple) else (self.result,)
        places = {id(y): k for k, y in enumerate(results) if isinstance(y, Tensor)}

        def back(x):
            return connected(x, node, places[id(x)]) if id(x) in places else x

        for name, value in vars(self.op).items():
            if name in self.numbers:
                setattr(op, name, connected(results[self.numbers[name]], node, self.numbers[name]))
            elif isinstance(value, (tuple, list)):
                setattr(op, name, type(value)(back(x) for x in value) if any(id(x) in places for x in value) else value)
            elif id(value) in places:
                setattr(op, name, back(value))
        return op

    def _check(self, values):
        if not isinstance(values, (tuple, list)):
            values = (values,)
        if len(values) != len(self.args):
            raise RuntimeError(f"{self.name}: backward returned {len(values)} gradients for {len(self.args)} inputs; return one for each "
                               "positional argument of forward, None where none is due")
        for g in values:
            if g is not None and not isinstance(g, Tensor):
                return tuple([g if g is None or isinstance(g, Tensor) else self._gradient(i, x, g) for i, (x, g) in enumerate(zip(self.args, values))])
        return values

    def _gradient(self, i, x, g):
        if not isinstance(x, Tensor):
            return g
        from cgrad.ops.creation import asarray
        try:
            g = asarray(g)
        except (TypeError, ValueError):
            raise TypeError(f"{self.name}: backward returned {type(g).__name__} as the gradient of input {i}; a gradient is a tensor, an array, "
                            "a number or None") from None
        return g.broadcast_to(x.shape) if g.ndim == 0 else g


def _at_level(op, args, kwargs, level):
    """Inside vmap: the Op's own batch if it has one, else example by example.  Forward mode: its jvp, else its backward transposed."""
    if any(batching.split_batched(x, level) is not None for x in (*args, *kwargs.values())):
        if hasattr(op, "batch") and all(batching.split_batched(x, level) is None for x in kwargs.values()):
            return _batched(op, args, kwargs, level)
        return batching.each_example(type(op).__name__, lambda *values: op(*values[:len(args)], **dict(zip(kwargs, values[len(args):]))),
                                     (*args, *kwargs.values()), level)
    pairs = [forward_mode.unpack_dual(x, level) for x in args]
    primals, tangents = tuple(p for p, _ in pairs), [t for _, t in pairs]
    out = op(*primals, **kwargs)
    if hasattr(op, "jvp") and not forward_mode.highest_level(primals):     # else the state of `op` is that of the lowest level
        pushed = op.jvp(*tangents)
    else:
        fresh = _copy(op)
        pushed = forward_mode.transposed(lambda *xs: fresh(*xs, **kwargs), primals, tangents)
    return forward_mode.wrap(out, pushed, level)


def _batched(op, args, kwargs, level):
    values = [batching.split_batched(x, level) for x in args]
    size = batching.size_of_batch(args, level)
    axes = tuple(None if v is None else 0 for v in values)
    out = op.batch(axes, *[x if v is None else v for x, v in zip(args, values)], **kwargs)
    for y in (out if isinstance(out, tuple) else (out,)):
        if not isinstance(y, Tensor) or y.ndim == 0 or y.shape[0] != size:
            raise RuntimeError(f"{type(op).__name__}: batch must return tensors with the {size} examples along their first axis, got "
                               f"{f'shape {tuple(y.shape)}' if isinstance(y, Tensor) else type(y).__name__}")
    return tuple(batching.make_batched(y, level) for y in out) if isinstance(out, tuple) else batching.make_batched(out, level)
