"""A naive twin of tensors and their tape, for test_state_machine.py: NumPy memory, and steps that know their matrix of slopes.

Nothing here comes from cgrad.  A step is differentiated when it is made: its function (which takes complex arrays) is called with an
imaginary step of 1e-30 in each element of each operand, which gives every slope to rounding error.  Backward is a product with these
matrices, newest step first.  What a step keeps is a list of (memory, version): it may be run while none of them has been written since.
"""
import numpy as np

STEP = 1e-30


class Error(Exception):
    """What the tape must refuse."""


class Memory:
    """A block of numbers shared by views and aliases."""

    def __init__(self, values):
        self.numbers = np.array(values).reshape(-1)
        self.version = 0
        self.history = 0             # counts recorded writes


class Step:
    """A leaf (function None) or one recorded operation."""

    def __init__(self, function=None, parts=(), operands=(), number=0):
        self.function, self.parts, self.operands, self.number = function, parts, operands, number
        self.kept, self.freed, self.keeps, self.forgot = [], False, False, False
        self.hooks, self.watchers = [], []
        if function is None:
            return
        self.shape = np.shape(function(*operands))
        self.slopes = [None if part is None else self.slope(i) for i, part in enumerate(parts)]

    def is_kinked(self, rng):
        """Whether slopes jump at these operands: where two of which the larger is taken are equal, say."""
        if self.function is None:
            return False
        shifts = [rng.uniform(-1e-3, 1e-3, np.shape(x)) for x in self.operands]
        beside = [Step(self.function, self.parts, [x if part is None else x + sign * shift for part, x, shift in zip(self.parts, self.operands, shifts)])
                  for sign in (1, -1)]
        pairs = [(a, b) for a, b in zip(*(step.slopes for step in beside)) if a is not None]
        return any(np.abs(a - b).max(initial=0) > 0.1 * max(1, np.abs(a).max(initial=0)) for a, b in pairs)

    def slope(self, i):
        """Derivatives of all results in all elements of operand i, as a matrix."""
        x = self.operands[i]
        columns = []
        for k in range(x.size):
            z = x.astype(complex).reshape(-1)
            z[k] += STEP * 1j
            operands = [*self.operands[:i], z.reshape(x.shape), *self.operands[i + 1:]]
            columns.append(np.imag(self.function(*operands)).reshape(-1) / STEP)
        return np.array(columns).reshape(x.size, -1)

    def through_hooks(self, g, look=True):
        for hook in self.hooks:
            g = hook(g, look)
        return g


class Hook:
    """Multiplies a gradient, and notes what it saw."""

    def __init__(self, factor):
        self.factor, self.seen = factor, []

    def __call__(self, g, look=True):
        if look:
            self.seen.append(np.array(g))
        return g if self.factor is None else g * self.factor


class Twin:
    """One tensor: places in a memory, and where it stands in the graph."""

    def __init__(self, memory, places, step=None, requires_grad=False, base=None, seen=0):
        self.memory, self.places, self.step, self.requires_grad, self.base, self.seen = memory, places, step, requires_grad, base, seen
        self.leaf = Step()
        self.leaf.tensor = self
        self.grad, self.retains, self.switched = None, False, False        # switched: requires_grad was changed

    @staticmethod
    def of(values, **kwargs):
        memory = Memory(values)
        return Twin(memory, np.arange(memory.numbers.size).reshape(np.shape(values)), **kwargs)

    @property
    def value(self):
        return self.memory.numbers[self.places]

    @property
    def shape(self):
        return self.places.shape

    @property
    def is_leaf(self):
        return self.step is None

    @property
    def edge(self):
        """What a gradient for the tensor goes to, or None."""
        return (self.step or self.leaf) if self.requires_grad else None

    @property
    def stale(self):
        return self.base is not None and self.seen != self.memory.history

    def places_in_base(self):
        order = {place: k for k, place in enumerate(self.base.places.reshape(-1).tolist())}
        return np.array([order[p] for p in self.places.reshape(-1).tolist()], int).reshape(self.shape)

    def take_history(self, step, written):
        if written:
            self.memory.history += 1
        self.step, self.requires_grad, self.seen = step, self.requires_grad or step is not None, self.memory.history
        if self.retains and step is not None:
            step.watchers.append(self)


def taken(places):
    return lambda base: base.reshape(-1)[places]


def put(places):
    def function(base, value):
        out = np.array(base, dtype=np.result_type(base, value)).reshape(-1)
        out[places] = value
        return out.reshape(base.shape)
    return function


def reached(roots, wanted):
    """The steps that a backward runs, newest first; `wanted`: edges that gradients are asked for, or None for all leaves."""
    seen, stack = {}, list(roots)
    while stack:
        step = stack.pop()
        if id(step) not in seen:
            seen[id(step)] = step
            stack += [p for p in step.parts if p is not None] if not step.forgot else []
    steps = sorted(seen.values(), key=lambda s: s.number)
    if wanted is None:
        return [s for s in reversed(steps) if s.function], None
    ahead = set()                # steps before which something wanted lies
    for step in steps:
        if step.forgot:
            if any(w.number < step.number for w in wanted):
                ahead.add(step)
        elif any(p is not None and (p in wanted or p in ahead) for p in step.parts):
            ahead.add(step)
    return [s for s in reversed(steps) if s.function and (s in ahead or s in wanted)], ahead


def backward(roots, seeds, wanted=None, retain=False):
    """Gradients of edges, by edge; raises Error where the tape must.  Steps before the fault have been freed then."""
    gradients = {}

    def add(edge, g):
        gradients[edge] = gradients[edge] + g if edge in gradients else g
    for root, g in zip(roots, seeds):
        add(root, g)
    steps, ahead = reached(roots, wanted)
    newest = next((step for step in steps if step in gradients), None)
    for step in steps:
        if step not in gradients:
            continue
        g = gradients[step] = step.through_hooks(gradients[step])
        if ahead is not None and step not in ahead:
            continue
        if step.freed:
            raise Error("freed")
        if any(memory.version != version for memory, version in step.kept):
            raise Error("changed in place")
        for part, slope, x in zip(step.parts, step.slopes, step.operands):
            if part is not None and (wanted is None or part in wanted or part in ahead):
                add(part, (slope @ g.reshape(-1)).reshape(np.shape(x)))
        if not retain and step.keeps:
            step.freed = True
            step.forgot = step is newest
    leaves = [e for e in gradients if e.function is None and e.tensor.is_leaf and e.tensor.requires_grad and (wanted is None or e in wanted)]
    for edge in leaves:
        gradients[edge] = edge.through_hooks(gradients[edge])
    return gradients, leaves, steps


def again(roots, seeds, wanted, shift):
    """The gradients of `wanted` if the leaves were moved by `shift` (a dict by leaf step) and everything was computed again."""
    steps, _ = reached(roots, None)
    moved = {}
    for step in reversed(steps):
        operands = []
        for part, x in zip(step.parts, step.operands):
            if part is None:
                operands.append(x)
            elif part.function is None:
                operands.append(x + shift.get(part, 0.0))
            else:
                operands.append(x + moved[part].by)
        fresh = Step(step.function, step.parts, operands, step.number)
        fresh.by = step.function(*operands) - step.function(*step.operands)
        moved[step] = fresh
    gradients = {moved.get(root, root): g for root, g in zip(roots, seeds)}
    for step in steps:
        fresh = moved[step]
        if fresh in gradients:
            for part, slope, x in zip(step.parts, fresh.slopes, step.operands):
                if part is not None:
                    edge = moved.get(part, part)
                    g = (slope @ step.through_hooks(gradients[fresh], look=False).reshape(-1)).reshape(np.shape(x))
                    gradients[edge] = gradients[edge] + g if edge in gradients else g
    return [gradients.get(w) for w in wanted]
