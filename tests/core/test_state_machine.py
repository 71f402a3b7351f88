"""Random programs on the tape against a naive twin: values, flags, versions, gradients, and exactly the errors that there must be.

A program makes leaves, operations, views, writes in place, hooks, and runs backward in every way; after each step everything that can be
seen of every tensor is compared with `tape_twin.py`.  A long run: ``HYPOTHESIS_PROFILE=long pytest tests/core/test_state_machine.py``.
"""
import gc
import os

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import cgrad as cg

from tape_twin import Error, Hook, Step, Twin, again, backward, put, taken

pytestmark = pytest.mark.filterwarnings("ignore:grad. a tensor of shape")      # every .grad is looked at, those of results too

LARGEST = 1e3                # programs go no further where numbers get larger
PLACES = st.integers(0, 1 << 16)
SHAPES = [(), (1,), (2,), (3,), (2, 2), (1, 3), (2, 3), (3, 2), (2, 1, 2)]


class Cube(cg.Op):
    def forward(self, x):
        self.x = x
        return x * x * x

    def backward(self, g):
        return g * self.x * self.x * 3.0


def forgetful(x):
    return cg.checkpoint(lambda x: cg.tanh(x) * x, x)


def sign(x):
    return np.sign(np.real(x))


def largest(x, axis, keep):
    ties = np.real(x) == np.real(x).max(axis=axis, keepdims=True)
    return (x * ties).sum(axis=axis, keepdims=keep) / ties.sum(axis=axis, keepdims=keep)


def either(x, y, s):
    """x where s > 0, y where s < 0, their mean between."""
    return np.where(s > 0, x, np.where(s < 0, y, (x + y) / 2))


def rounded(x, dtype):
    return np.real(x).astype(dtype) + (1j * np.imag(x) if np.iscomplexobj(x) else 0)


def logsumexp(x, axis):
    top = np.real(x).max(axis=axis, keepdims=True)
    return np.log(np.exp(x - top).sum(axis=axis)) + top.squeeze(axis)


def softmax(x, axis):
    e = np.exp(x - np.real(x).max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def positive(*values):
    return np.all(values[-1] > 0.05)


def nonzero(*values):
    return np.all(np.abs(values[-1]) > 0.1)


# name: (cgrad's function, NumPy's, what the last operand must be)
UNARY = {
    "negative": (lambda x: -x, lambda x: -x, None),
    "abs": (cg.abs, lambda x: x * sign(x), None),
    "relu": (cg.relu, lambda x: x * (sign(x) > 0), None),
    "exp": (cg.exp, np.exp, lambda x: np.all(x < 3)),
    "sin": (cg.sin, np.sin, None),
    "cos": (cg.cos, np.cos, None),
    "tanh": (cg.tanh, np.tanh, None),
    "sigmoid": (cg.sigmoid, lambda x: 1 / (1 + np.exp(-x)), lambda x: np.all(np.abs(x) < 20)),
    "square": (cg.square, lambda x: x * x, None),
    "sqrt": (cg.sqrt, np.sqrt, positive),
    "log": (cg.log, np.log, positive),
    "reciprocal": (cg.reciprocal, lambda x: 1 / x, nonzero),
    "times_number": (lambda x: x * 1.5, lambda x: x * 1.5, None),
    "number_minus": (lambda x: 2.0 - x, lambda x: 2.0 - x, None),
    "number_over": (lambda x: 2.0 / x, lambda x: 2.0 / x, nonzero),
    "cubed": (lambda x: x ** 3, lambda x: x * x * x, None),
    "clone": (lambda x: x.clone(), lambda x: x * 1, None),
    "cube_op": (lambda x: Cube()(x), lambda x: x * x * x, None),
    "checkpoint": (forgetful, lambda x: np.tanh(x) * x, None),
}
BINARY = {
    "add": (lambda x, y: x + y, lambda x, y: x + y, None),
    "subtract": (lambda x, y: x - y, lambda x, y: x - y, None),
    "multiply": (lambda x, y: x * y, lambda x, y: x * y, None),
    "divide": (lambda x, y: x / y, lambda x, y: x / y, nonzero),
    "maximum": (cg.maximum, lambda x, y: either(x, y, np.real(x) - np.real(y)), None),
    "minimum": (cg.minimum, lambda x, y: either(x, y, np.real(y) - np.real(x)), None),
    "hypot": (cg.hypot, lambda x, y: np.sqrt(x * x + y * y), nonzero),
}
ALONG = {
    "sum": (lambda x, axis, keep: cg.sum(x, axis=axis, keepdims=keep), lambda x, axis, keep: x.sum(axis=axis, keepdims=keep)),
    "mean": (lambda x, axis, keep: cg.mean(x, axis=axis, keepdims=keep), lambda x, axis, keep: x.mean(axis=axis, keepdims=keep)),
    "max": (lambda x, axis, keep: cg.max(x, axis=axis, keepdims=keep), largest),
    "min": (lambda x, axis, keep: cg.min(x, axis=axis, keepdims=keep), lambda x, axis, keep: -largest(-x, axis, keep)),
    "prod": (lambda x, axis, keep: cg.prod(x, axis=axis, keepdims=keep), lambda x, axis, keep: x.prod(axis=axis, keepdims=keep)),
    "logsumexp": (lambda x, axis, keep: cg.logsumexp(x, axis=axis), lambda x, axis, keep: logsumexp(x, axis)),
    "softmax": (lambda x, axis, keep: cg.softmax(x, axis=axis), lambda x, axis, keep: softmax(x, axis)),
    "cumsum": (lambda x, axis, keep: cg.cumulative_sum(x, axis=axis), lambda x, axis, keep: x.cumsum(axis=axis)),
    "twice": (lambda x, axis, keep: cg.concat([x, x], axis=axis), lambda x, axis, keep: np.concatenate([x, x], axis)),
    "stack": (lambda x, axis, keep: cg.stack([x, x], axis=axis), lambda x, axis, keep: np.stack([x, x], axis)),
}
OUT_ALONG = {name: getattr(cg, {"cumsum": "cumulative_sum", "twice": "concat"}.get(name, name)) for name in ALONG}
OUT_ALONG = {name: (lambda x, axis, out, f=f, of=(lambda x: [x, x]) if name in ("twice", "stack") else lambda x: x: f(of(x), axis=axis, out=out))
             for name, f in OUT_ALONG.items()}
VIEWS = [                    # on tensors and on arrays of places alike
    lambda x, k: x.T, lambda x, k: x.reshape(-1), lambda x, k: x[None], lambda x, k: x[..., ::-1], lambda x, k: x[k % x.shape[0], ...],
    lambda x, k: x[k % x.shape[0]:], lambda x, k: x[..., k % x.shape[-1]:k % x.shape[-1] + 1], lambda x, k: x[..., ::2], lambda x, k: x[:],
    lambda x, k: x.reshape(x.shape[::-1]), lambda x, k: x.expand(2, *x.shape) if isinstance(x, cg.Tensor) else np.broadcast_to(x, (2, *x.shape)),
]
INPLACE = {
    "add": lambda x, y: x.__iadd__(y), "subtract": lambda x, y: x.sub_(y), "multiply": lambda x, y: x.__imul__(y),
    "divide": lambda x, y: x.div_(y), "maximum": lambda x, y: x.maximum_(y), "hypot": lambda x, y: x.hypot_(y),
}
INPLACE_UNARY = {"negative": "neg_", "abs": "abs_", "exp": "exp_", "sin": "sin_", "tanh": "tanh_", "square": "square_", "sqrt": "sqrt_",
                 "sigmoid": "sigmoid_", "relu": "relu_", "reciprocal": "reciprocal_"}


class Pair:
    """A tensor and its twin."""

    def __init__(self, x, twin):
        self.x, self.twin = x, twin

    def holds(self, saved):
        """Whether a saved tensor lies in the memory of this one."""
        start = self.x.data_ptr() - int(self.twin.places.reshape(-1)[0]) * self.x.itemsize
        return start <= saved.data_ptr() < start + self.twin.memory.numbers.size * self.x.itemsize


class Programs(RuleBasedStateMachine):
    steps = 0                    # of all programs

    def __init__(self):
        super().__init__()
        self.pairs = []
        self.hooks = []          # (handle, twin's hook, twin's step, what cgrad's hook saw)
        self.loose = 1e-9        # relative tolerance of gradients

    # -------------------------------------------------------------- choice
    def pick(self, k, test=None):
        found = [p for p in self.pairs if test is None or test(p)]
        return found[k % len(found)] if found else None

    def new(self, x, twin):
        self.pairs.append(Pair(x, twin))
        if len(self.pairs) > 10:
            del self.pairs[0]

    # -------------------------------------------------------------- the twin's side of recording
    def step(self, function, twins, node, operands):
        """The step for a node that cgrad made, and what it keeps."""
        step = Step(function, [t.edge for t in twins], [t.value for t in twins], node.sequence_number)
        saved = [s for s in node.saved_tensors if isinstance(s, cg.Tensor)]
        step.keeps = bool(node.saved_tensors)           # numbers among them
        for pair in operands:
            step.kept += [(pair.twin.memory, pair.twin.memory.version) for s in saved if pair.holds(s)]
        if node.name in ("Cube", "checkpoint"):
            step.keeps = True
            step.kept = [(twins[0].memory, twins[0].memory.version)]
        return step

    def result(self, x, function, pairs, places=None, of=None):
        """Take up a result: `places` and `of` for a view."""
        twins = [p.twin for p in pairs]
        recorded = cg.is_grad_enabled() and any(t.requires_grad for t in twins)
        value = function(*[t.value for t in twins])
        if places is None:
            twin = Twin.of(value)
            twin.memory.version = x._version          # some results are put together by writing
        else:
            base = of.base or of
            twin = Twin(of.memory, places, base=base, seen=of.seen if of.base else of.memory.history)
        pair = Pair(x, twin)
        if recorded:
            assert x.requires_grad and x.grad_fn is not None
            twin.step, twin.requires_grad = self.step(function, twins, x.grad_fn, [*pairs, pair]), True
        self.new(x, twin)

    def refresh(self, pair):
        """What cgrad does when a view is used whose base has got a new history."""
        t = pair.twin
        if t.stale:
            base = t.base
            node = pair.x.grad_fn
            step = None
            if base.requires_grad:
                step = Step(taken(t.places_in_base()), [base.edge], [base.value], node.sequence_number)
            t.take_history(step, False)
            t.requires_grad = t.requires_grad or base.requires_grad

    # -------------------------------------------------------------- rules: making
    @initialize(k=PLACES, seed=PLACES)
    def first(self, k, seed):
        self.leaf(k, seed, True, False)
        self.leaf(k + 1, seed + 1, True, False)

    @rule(k=PLACES, seed=PLACES, tracked=st.booleans(), single=st.booleans())
    def leaf(self, k, seed, tracked, single):
        shape = SHAPES[k % len(SHAPES)]
        values = np.round(np.random.default_rng(seed).uniform(-2, 2, shape), 2)
        if single and seed % 4 == 0:
            values = values.astype(np.float32)
            self.loose = 2e-3
        self.new(cg.tensor(values, requires_grad=tracked), Twin.of(values, requires_grad=tracked))

    @rule(name=st.sampled_from(sorted(UNARY)), k=PLACES)
    def unary(self, name, k):
        ours, theirs, allowed = UNARY[name]
        self.apply(ours, theirs, [self.pick(k)], allowed)

    @rule(name=st.sampled_from(sorted(BINARY)), k=PLACES, m=PLACES)
    def binary(self, name, k, m):
        x, y = self.pick(k), self.pick(m)
        ours, theirs, allowed = BINARY[name]
        try:
            shape = np.broadcast_shapes(x.twin.shape, y.twin.shape)
        except ValueError:
            try:
                ours(x.x, y.x)
            except ValueError:
                return
            raise AssertionError(f"{name}: shapes {x.twin.shape} and {y.twin.shape} should be refused") from None
        if len(shape) <= 3 and np.prod(shape) <= 12:
            self.apply(ours, theirs, [x, y], allowed)

    @rule(name=st.sampled_from(sorted(ALONG)), k=PLACES, axis=PLACES, keep=st.booleans())
    def along(self, name, k, axis, keep):
        x = self.pick(k, lambda p: p.twin.shape)
        if x is not None:
            ours, theirs = ALONG[name]
            axis %= len(x.twin.shape)
            if name not in ("twice", "stack") or x.twin.places.size <= 6:
                self.apply(lambda x: ours(x, axis, keep), lambda x: theirs(x, axis, keep), [x], None)

    @rule(k=PLACES, m=PLACES)
    def matmul(self, k, m):
        x, y = self.pick(k, lambda p: p.twin.shape), self.pick(m, lambda p: p.twin.shape)
        if x is None or y is None:
            return
        try:
            x.twin.value @ y.twin.value
        except ValueError:
            return
        self.apply(cg.matmul, np.matmul, [x, y], None)

    @rule(k=PLACES, m=PLACES)
    def where(self, k, m):
        x = self.pick(k)
        y = self.pick(m, lambda p: p.twin.shape == x.twin.shape and p.x.dtype == x.x.dtype)
        mask = np.arange(x.twin.places.size).reshape(x.twin.shape) % 2 == 0
        self.apply(lambda x, y: cg.where(cg.tensor(mask), x, y), lambda x, y: np.where(mask, x, y), [x, y], None)

    @rule(k=PLACES, at=st.lists(st.integers(0, 7), min_size=1, max_size=3))
    def pick_rows(self, k, at):
        x = self.pick(k, lambda p: p.twin.shape)
        if x is not None:
            at = [i % x.twin.shape[0] for i in at]
            self.apply(lambda x: x[at], lambda x: x[at], [x], None)

    @rule(k=PLACES)
    def cast(self, k):
        x = self.pick(k)
        single = x.x.dtype == cg.float64
        self.loose = 2e-3
        self.apply(lambda x: x.float() if single else x.double(), lambda x: rounded(x, np.float32 if single else np.float64), [x], None)

    def apply(self, ours, theirs, pairs, allowed):
        values = [p.twin.value for p in pairs]
        with np.errstate(all="ignore"):
            if allowed is not None and not allowed(*values):
                return
            out = theirs(*values)
        if np.all(np.isfinite(out)) and np.all(np.abs(out) < LARGEST):
            self.result(ours(*[p.x for p in pairs]), theirs, pairs)

    @rule(k=PLACES, which=PLACES, place=PLACES)
    def view(self, k, which, place):
        x = self.pick(k, lambda p: p.twin.shape)
        if x is None:
            return
        see = VIEWS[which % len(VIEWS)]
        places = see(x.twin.places, place)
        if places.size > 12 or places.ndim > 3:
            return
        shares = np.shares_memory(places, x.twin.places)
        self.result(see(x.x, place), lambda x: see(x, place), [x], places if shares else None, x.twin)

    @rule(k=PLACES)
    def detach(self, k):
        x = self.pick(k)
        self.new(x.x.detach(), Twin(x.twin.memory, x.twin.places))

    # -------------------------------------------------------------- rules: writing
    def write(self, ours, theirs, target, others, reads=True):
        """target = theirs(target, *others) in place; of the others alone if it is not read."""
        t, operands = target.twin, [target, *others] if reads else others
        twins = [t, *[p.twin for p in others]]
        with np.errstate(all="ignore"):
            out = theirs(*[p.twin.value for p in operands])
        if not np.all(np.isfinite(out)) or np.any(np.abs(out) > LARGEST):
            return
        grad = cg.is_grad_enabled()
        recorded = grad and any(w.requires_grad for w in twins)
        tracked_base = t.base is not None and t.base.is_leaf and t.base.requires_grad
        fault = None
        overlapping = len(set(t.places.reshape(-1).tolist())) < t.places.size
        if grad and t.requires_grad and (t.is_leaf or tracked_base) or overlapping:
            fault = RuntimeError
        elif np.shape(out) != t.shape:
            fault = ValueError
        elif recorded and tracked_base:
            fault = RuntimeError
        if fault is not None:
            self.refused(fault, lambda: ours(target.x, *[p.x for p in others]))
            return
        ours(target.x, *[p.x for p in others])
        if recorded and not reads and not any(p.twin.requires_grad for p in others):       # what has no slope cuts off what the target was
            out = out.astype(t.memory.numbers.dtype)
            self.record_write(target, lambda x: x * 0 + out, [target], out)
        elif recorded:
            self.record_write(target, theirs, operands, out)
        t.memory.numbers[t.places] = out
        t.memory.version += 1
        if t.base is not None and recorded:
            t.seen = t.memory.history

    def record_write(self, target, theirs, operands, out):
        t = target.twin
        node = target.x.grad_fn
        if t.base is not None:
            view_node = node
            put_node = view_node.next_functions[0][0]
            node = put_node.next_functions[1][0]
        cast_node = None
        if out.dtype != t.memory.numbers.dtype:
            cast_node, node = node, node.next_functions[0][0]
        step = self.step(theirs, [p.twin for p in operands], node, operands)
        step.kept = [(m, v) for m, v in step.kept if m is not t.memory]        # a copy of what is overwritten is kept
        if cast_node is not None:
            single = t.memory.numbers.dtype == np.float32
            step = Step(lambda x: rounded(x, np.float32 if single else np.float64), [step], [out], cast_node.sequence_number)
        if t.base is None:
            t.take_history(step, True)
            return
        places = t.places_in_base()
        written = Step(put(places), [t.base.edge, step], [t.base.value, out], put_node.sequence_number)
        t.base.take_history(written, True)
        whole = put(places)(t.base.value, out)
        t.take_history(Step(taken(places), [written], [whole], view_node.sequence_number), False)

    @rule(name=st.sampled_from(sorted(INPLACE)), k=PLACES, m=PLACES)
    def write_binary(self, name, k, m):
        x, y = self.pick(k), self.pick(m)
        _, theirs, allowed = BINARY[name]
        try:
            np.broadcast_shapes(x.twin.shape, y.twin.shape)
        except ValueError:
            return
        if allowed is None or allowed(x.twin.value, y.twin.value):
            self.write(INPLACE[name], theirs, x, [y])

    @rule(name=st.sampled_from(sorted(INPLACE_UNARY)), k=PLACES)
    def write_unary(self, name, k):
        x = self.pick(k)
        _, theirs, allowed = UNARY[name]
        if allowed is None or allowed(x.twin.value):
            self.write(lambda x: getattr(x, INPLACE_UNARY[name])(), theirs, x, [])

    @rule(name=st.sampled_from(["exp", "sin", "tanh", "square", "sqrt", "negative", *BINARY, *ALONG, "matmul"]), k=PLACES, m=PLACES, n=PLACES)
    def write_out(self, name, k, m, n):
        """The result of a function written into a tensor, often into the memory of an operand."""
        x, y = self.pick(k, lambda p: p.twin.shape), self.pick(m, lambda p: p.twin.shape)
        if x is None:
            return
        allowed, others = None, [x]
        if name in ALONG:
            axis = m % len(x.twin.shape)
            ours, theirs = (lambda x, out: OUT_ALONG[name](x, axis, out)), (lambda x: ALONG[name][1](x, axis, False))
        elif name in UNARY:
            ours, (_, theirs, allowed) = getattr(cg, name), UNARY[name]
        else:
            others, ours = [x, y], getattr(cg, name)
            _, theirs, allowed = BINARY.get(name, (None, np.matmul, None))
        values = [p.twin.value for p in others]
        try:
            with np.errstate(all="ignore"):
                shape = np.shape(theirs(*values))
        except ValueError:
            return
        target = self.pick(n, lambda p: p.twin.shape == shape) or self.pick(n)
        if allowed is None or allowed(*values):
            self.write(lambda out, *xs: ours(*xs, out=out), theirs, target, others, reads=False)

    @rule(k=PLACES, m=PLACES)
    def copy(self, k, m):
        x = self.pick(k)
        y = self.pick(m, lambda p: p.twin.shape == x.twin.shape and p.x.dtype == x.x.dtype)
        self.write(lambda x, y: x.copy_(y), lambda x, y: x * 0 + y, x, [y])

    @rule(k=PLACES)
    def zero(self, k):
        self.write(lambda x: x.zero_(), lambda x: x * 0, self.pick(k), [])

    @rule(k=PLACES)
    def write_without_record(self, k):
        x = self.pick(k)
        with cg.no_grad():
            self.write(lambda x: x.mul_(0.5), lambda x: x * 0.5, x, [])

    # -------------------------------------------------------------- rules: flags, hooks, names
    @rule(k=PLACES, on=st.booleans())
    def requires_grad(self, k, on):
        x = self.pick(k, lambda p: p.twin.is_leaf and p.twin.base is None)
        if x is not None:
            x.x.requires_grad_(on)
            x.twin.switched = x.twin.switched or x.twin.requires_grad != on
            x.twin.requires_grad = on

    @rule(k=PLACES)
    def a_result_keeps_requiring_grad(self, k):
        x = self.pick(k, lambda p: not p.twin.is_leaf)
        if x is not None:
            self.refused(RuntimeError, lambda: x.x.requires_grad_(False))

    @rule(k=PLACES)
    def retain(self, k):
        x = self.pick(k, lambda p: p.twin.requires_grad)
        if x is not None:
            x.x.retain_grad()
            if not x.twin.is_leaf and not x.twin.retains:
                x.twin.retains = True
                x.twin.step.watchers.append(x.twin)

    @rule(k=PLACES, factor=st.sampled_from([None, None, 2.0, -0.5]))
    def hook(self, k, factor):
        x = self.pick(k, lambda p: p.twin.requires_grad)
        if x is None:
            return
        seen = []
        theirs = Hook(factor)
        factor = None if factor is None else float(factor)

        def ours(g):
            seen.append(g.detach().double().numpy().copy())
            return None if factor is None else g * factor
        handle = x.x.register_hook(ours)
        x.twin.edge.hooks.append(theirs)
        self.hooks.append((handle, theirs, x.twin.edge, seen))

    @precondition(lambda self: self.hooks)
    @rule(k=PLACES)
    def remove_hook(self, k):
        handle, theirs, step, _ = self.hooks.pop(k % len(self.hooks))
        handle.remove()
        step.hooks.remove(theirs)

    @rule(k=PLACES, collect=st.booleans())
    def forget(self, k, collect):
        if len(self.pairs) > 2:
            del self.pairs[k % len(self.pairs)]
        if collect:
            gc.collect(0)

    @rule(k=PLACES, zero=st.booleans())
    def clear_gradient(self, k, zero):
        x = self.pick(k, lambda p: p.twin.grad is not None)
        if x is not None and zero:
            x.x.grad.zero_()
            x.twin.grad = x.twin.grad * 0
        elif x is not None:
            x.x.grad = x.twin.grad = None

    @rule(on=st.booleans())
    def mode(self, on):
        cg.set_grad_enabled(on)

    # -------------------------------------------------------------- rules: derivatives
    def refused(self, kind, call, text=None):
        with pytest.raises(kind, match=text):
            call()

    def seeds(self, pairs, seed):
        rng = np.random.default_rng(seed)
        values = [np.round(rng.uniform(-2, 2, p.twin.shape), 1).astype(p.twin.memory.numbers.dtype) for p in pairs]
        return values, [cg.tensor(v) for v in values]

    @rule(k=PLACES, m=PLACES, seed=PLACES, two=st.booleans(), retain=st.booleans(), create=st.booleans())
    def backward(self, k, m, seed, two, retain, create):
        roots = [self.pick(i, lambda p: p.twin.requires_grad) for i in ([k, m] if two else [k])]
        if None in roots:
            return
        create = create and seed % 3 == 0
        retain = retain or create
        values, tensors = self.seeds(roots, seed)
        before = {id(p): p.twin.grad for p in self.pairs}

        def ours():
            cg.autograd.backward([p.x for p in roots], tensors, retain_graph=retain, create_graph=create)
        try:
            found, leaves, steps = backward([p.twin.edge for p in roots], values, retain=retain)
        except Error as fault:
            self.refused(RuntimeError, ours, str(fault))
            self.forget_sightings()
        else:
            ours()
            for edge in leaves:
                self.accumulate(edge.tensor, found[edge])
            for step in steps:
                for t in step.watchers:
                    if step in found and t.step is step and not t.stale:
                        self.accumulate(t, found[step])
            self.compare_sightings()
        for p in self.pairs:
            if p.x.grad is None or p.twin.grad is None:
                assert p.x.grad is None and p.twin.grad is None, f"gradient {p.x.grad}, but {p.twin.grad} is right (before: {before[id(p)]})"
            else:
                assert p.x.grad.dtype == p.x.dtype
                self.near(p.x.grad, p.twin.grad)
                p.twin.grad = p.x.grad.detach().numpy().copy()
            if create and p.x.grad is not None:
                p.x.grad = p.x.grad.detach()

    def accumulate(self, t, g):
        t.grad = g if t.grad is None else t.grad + g

    @rule(k=PLACES, m=PLACES, n=PLACES, seed=PLACES, retain=st.booleans())
    def grad(self, k, m, n, seed, retain):
        root = self.pick(k, lambda p: p.twin.requires_grad)
        if root is None:
            return
        inputs = [self.pick(i, lambda p: p.twin.requires_grad) for i in (m, n)]
        values, tensors = self.seeds([root], seed)
        wanted = [p.twin.edge for p in inputs]

        def ours():
            return cg.autograd.grad(root.x, [p.x for p in inputs], tensors, retain_graph=retain, allow_unused=True)
        try:
            found, _, _ = backward([root.twin.edge], values, set(wanted), retain)
        except Error as fault:
            self.refused(RuntimeError, ours, str(fault))
            self.forget_sightings()
            return
        for g, edge in zip(ours(), wanted):
            assert (g is None) == (edge not in found)
            if g is not None:
                self.near(g, found[edge])
        self.compare_sightings()

    @rule(k=PLACES, m=PLACES, seed=PLACES)
    def second(self, k, m, seed):
        """The slope of a weighted sum of gradients, along one direction, against differences of gradients."""
        root = self.pick(k, lambda p: p.twin.requires_grad and not p.twin.is_leaf)
        x = self.pick(m, lambda p: p.twin.requires_grad and p.twin.is_leaf and p.twin.base is None and not p.twin.switched)
        if root is None or x is None or self.loose > 1e-6 or not cg.is_grad_enabled():
            return
        (value,), (tensor,) = self.seeds([root], seed)
        edge = x.twin.edge
        try:
            found, _, steps = backward([root.twin.edge], [value], {edge}, True)
        except Error:
            self.forget_sightings()
            return
        self.forget_sightings()
        if edge not in found or any(hook.factor for step in [edge, *steps] for hook in step.hooks):
            return
        rng = np.random.default_rng(seed)
        kinks = any(np.min(np.abs(x), initial=9) < 1e-3 for step in steps for x in step.operands) or any(step.is_kinked(rng) for step in steps)
        (g,) = cg.autograd.grad(root.x, x.x, tensor, create_graph=True)
        weights, direction = rng.uniform(-1, 1, x.twin.shape), rng.uniform(-1, 1, x.twin.shape)
        if g.requires_grad:
            (h,) = cg.autograd.grad(g, x.x, cg.tensor(weights), retain_graph=True, allow_unused=True)
            got = 0.0 if h is None else float((h.numpy() * direction).sum())
        else:
            got = 0.0
        if not kinks:
            t = 1e-5
            up, down = (again([root.twin.edge], [value], [edge], {edge: s * t * direction})[0] for s in (1, -1))
            want = float(((up - down) * weights).sum() / (2 * t))
            size = max(1.0, np.abs(up).max(initial=0), abs(want))
            assert abs(got - want) < 1e-4 * size, (got, want)
        self.forget_sightings()

    def compare_sightings(self):
        for _, theirs, _, seen in self.hooks:
            assert len(seen) == len(theirs.seen), (len(seen), len(theirs.seen))
            for a, b in zip(seen, theirs.seen):
                self.near(a, b)
        self.forget_sightings()

    def forget_sightings(self):
        for _, theirs, _, seen in self.hooks:
            seen.clear()
            theirs.seen.clear()

    def near(self, g, want):
        g = np.asarray(g.detach().double().numpy() if isinstance(g, cg.Tensor) else g)
        assert g.shape == np.shape(want)
        np.testing.assert_allclose(g, want, rtol=self.loose, atol=self.loose * max(1.0, np.abs(want).max(initial=0)) * 10)

    # -------------------------------------------------------------- after every step
    def check_invariants(self, *args, **kwargs):
        super().check_invariants(*args, **kwargs)
        Programs.steps += 1
        bound = 2e-5 if self.loose > 1e-6 else 1e-12
        for p in self.pairs:
            x, t = p.x, p.twin
            was_stale = t.stale
            if was_stale:
                self.refresh(p)
            assert x.shape == t.shape and x._version == t.memory.version
            assert (x.requires_grad, x.is_leaf, x.retains_grad) == (t.requires_grad, t.is_leaf, t.retains)
            values = x.detach().numpy()
            np.testing.assert_allclose(values, t.value, rtol=bound, atol=bound)
            t.memory.numbers[t.places] = values          # rounding does not add up
            if not t.is_leaf:
                assert x.grad_fn.is_freed == t.step.freed and x.grad_fn.sequence_number == t.step.number

    def teardown(self):
        cg.set_grad_enabled(True)
        for p in self.pairs:
            p.twin.leaf.tensor = None

def test_programs():
    long = os.environ.get("HYPOTHESIS_PROFILE") == "long"
    with np.errstate(all="ignore"):
        run_state_machine_as_test(Programs, settings=settings(max_examples=4000 if long else 25, stateful_step_count=50, deadline=None))
    if long:
        print(f"{Programs.steps} steps")
