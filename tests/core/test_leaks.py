"""Memory stays flat over many steps: by reference counts alone, and by the cyclic collector where the user's code makes a cycle."""
import gc
import sys
import weakref

import numpy as np
import pytest

import cgrad as cg


def leaf(data):
    return cg.tensor(np.asarray(data, dtype=np.float64), requires_grad=True)


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


class cube(cg.Op):
    """Keeps its result and what it computed on the way on self."""

    def forward(self, x):
        self.x, self.square = x, x * x
        self.out = self.square * x
        return self.out

    def backward(self, g):
        return g * 3.0 * self.square


class Cube(cg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = x ** 3
        ctx.save_for_backward(x, out)
        ctx.kept = [out, x]
        return out

    @staticmethod
    def backward(ctx, g):
        x, out = ctx.saved_tensors
        return g * 3.0 * x * x


class Failing(cg.Op):
    def forward(self, x):
        self.x = x
        return x * 1.0

    def backward(self, g):
        raise KeyError("on purpose")


W = np.linspace(0.1, 1.0, 64)
OP = cube()


def plain(w):
    ((w * 2.0).tanh() ** 2).sum().backward()


def dropped(w):
    y = ((w * 2.0).tanh() ** 2).sum()
    assert y.requires_grad


def kept_and_run_twice(w):
    y = (w * 2.0).exp().sum()
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)


def own_op(w):
    (OP(w) * cube()(w * 2.0)).sum().backward()


def own_op_dropped(w):
    OP(cube()(w * 0.1))


def function(w):
    Cube.apply(Cube.apply(w * 0.1)).sum().backward()


def function_dropped(w):
    Cube.apply(w * 0.1)


def hidden_state(w):
    h = cg.zeros(64, dtype=cg.float64)
    for _ in range(5):
        h += w
        h *= 0.5
        h.tanh_()
    h.sum().backward()


def views_of_views(w):
    y = (w * 1.0).reshape(8, 8)
    row = y[1:].T[::-1][2:]
    row *= 2.0
    y[0] += row[0, 0]
    row[1] = w[:7] * 3.0
    (y.sum() + row.sum()).backward()


def views_dropped(w):
    y = (w * 1.0).reshape(8, 8)
    y[1:].T[::-1][2:] *= w[:7]
    y += 1.0


def retained(w):
    y = w * 2.0
    y.retain_grad()
    y *= 3.0
    (y * y).sum().backward()


def hook_that_looks(w):
    seen = []
    y = w * 2.0
    y.register_hook(lambda g: seen.append(g))
    handle = w.register_hook(lambda g: g * 2.0)
    (y * y).sum().backward()
    handle.remove()


def second_order(w):
    (g,) = cg.autograd.grad((w ** 3).tanh().sum(), (w,), create_graph=True)
    (h,) = cg.autograd.grad((g * g).sum(), (w,), create_graph=True)
    cg.autograd.grad(h.sum(), (w,))


def second_order_of_own(w):
    (g,) = cg.autograd.grad((OP(w) + Cube.apply(w)).sum(), (w,), create_graph=True)
    cg.autograd.grad((g * g).sum(), (w,))


def checkpoint(w):
    cg.checkpoint(lambda x: cg.checkpoint(cg.tanh, x * w) * 2.0, w * 1.0).sum().backward()


def transformations(w):
    f = lambda x: (x.tanh() * x).sum()  # noqa: E731
    v = w.detach()
    cg.func.grad(cg.func.grad(lambda x: (x ** 3).sum() if x.ndim == 0 else f(x)))(v[0])
    cg.func.jvp(f, (v,), (v,))
    cg.func.vmap(cg.func.grad(f))(v.reshape(8, 8))
    cg.func.jacobian(lambda x: x[:4] ** 2)(v[:6])


def errors(w):
    try:
        ((Failing()(w * 2.0) + w * 3.0).tanh()).sum().backward()
    except KeyError:
        pass
    y = w * 1.0
    z = (y * y).sum()
    y += 1.0
    try:
        z.backward()
    except RuntimeError:
        pass
    try:
        cg.matmul(w, w[:3])
    except ValueError:
        pass


def anomalies(w):
    with cg.autograd.detect_anomaly():
        ((w * 2.0).tanh() ** 2).sum().backward()


def watching(w):
    with cg.autograd.watch():
        ((w * 2.0).tanh() ** 2).sum().backward()


FREE = [plain, dropped, kept_and_run_twice, own_op, own_op_dropped, function, function_dropped, hidden_state, views_of_views, views_dropped, retained,
        hook_that_looks, second_order, second_order_of_own, checkpoint, transformations, errors, anomalies, watching]


# Cycles of the user's making.
def gradient_with_a_graph(w):
    x = w.detach().clone().requires_grad_()
    (x ** 3).sum().backward(create_graph=True)


def hook_over_a_later_tensor(w):
    y = w * 2.0
    y.register_hook(lambda g: z)
    z = (y * y).sum()


def hook_over_a_tensor_made_before(w):
    y = w * 2.0
    z = (y * y).sum()
    y.register_hook(lambda g: z)


def hook_of_an_object(w):
    class Model:
        def look(self, g):
            self.seen = g
    model = Model()
    x = w.detach().clone().requires_grad_()
    x.register_hook(model.look)
    model.out = (x * 2.0).tanh()
    model.out.register_hook(model.look)
    model.out.sum().backward()


def op_that_keeps_what_comes_later(w):
    op = cube()
    op.last = op(w) * 2.0


CYCLES = [gradient_with_a_graph, hook_over_a_later_tensor, hook_over_a_tensor_made_before, hook_of_an_object, op_that_keeps_what_comes_later]


@pytest.mark.parametrize("step", FREE, ids=lambda step: step.__name__)
def test_no_step_leaves_anything_behind_without_the_collector(step):
    w = leaf(W)
    n = 300
    for _ in range(20):                                  # what is made once
        step(w)
        w.grad = None
    gc.collect()
    gc.disable()
    try:
        bytes_before, objects_before = cg.memory.stats()["live_bytes"], len(gc.get_objects())
        for _ in range(n):
            step(w)
            w.grad = None
        assert cg.memory.stats()["live_bytes"] - bytes_before < n * 8
        assert len(gc.get_objects()) - objects_before < n // 3
    finally:
        gc.enable()


@pytest.mark.parametrize("step", CYCLES, ids=lambda step: step.__name__)
def test_cycles_are_collected(step):
    w = leaf(W)
    n = 100
    for _ in range(5):
        step(w)
    gc.collect()
    before = cg.memory.stats()["live_bytes"]
    gc.disable()
    try:
        for _ in range(n):
            step(w)
        w.grad = None
    finally:
        gc.enable()
    gc.collect()
    assert cg.memory.stats()["live_bytes"] - before < n * 8


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ten_thousand_steps_take_no_memory():
    """Everything together, with the collector on; the resident size counts what the other counts may miss."""
    w = leaf(W)
    steps = [step for step in FREE + CYCLES if step is not watching]

    def rounds(n):
        for k in range(n):
            steps[k % len(steps)](w)
            w.grad = None
        gc.collect()
    rounds(2_000)
    before, size = cg.memory.stats()["live_bytes"], resident()
    rounds(10_000)
    assert cg.memory.stats()["live_bytes"] - before < 10_000
    assert resident() - size < 10e6


def test_a_dropped_leaf_with_everything_on_it_goes_at_once():
    gc.collect()
    gc.disable()
    try:
        x = leaf(W)
        x.register_hook(lambda g: None)
        y = x * 2.0
        y.retain_grad()
        y.register_hook(lambda g: g)
        y[3:] *= 2.0
        (y * y).sum().backward()
        refs = [weakref.ref(t) for t in (x, y, x.grad)]
        del x, y
        assert [r() for r in refs] == [None] * 3
    finally:
        gc.enable()
