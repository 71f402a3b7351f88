"""Op, the extension API: on numbers, recorded, shared instances, second order, forward mode."""
import math
import threading
import warnings

import numpy as np
import pytest

import cgrad as cg


def leaf(data):
    return cg.tensor(np.array(data, dtype=np.float64), requires_grad=True)


class square(cg.Op):
    def forward(self, x):
        self.x = x
        return x * x

    def backward(self, grads):
        return 2 * grads * self.x


class exponential(cg.Op):
    def forward(self, x):
        self.out = cg.exp(x)
        return self.out

    def backward(self, grads):
        return grads * self.out


class between(cg.Op):
    """Keeps a value that is neither input nor result."""

    def forward(self, x):
        self.x, self.s = x, cg.sin(x)
        return self.s * self.s

    def backward(self, grads):
        return grads * 2 * self.s * cg.cos(self.x)


class split(cg.Op):
    def forward(self, x, scale=1.0):
        self.scale = scale
        return x[:1] * scale, x[1:] * scale

    def backward(self, grads):
        first, second = grads
        first = cg.zeros(1, dtype=cg.float64) if first is None else first
        second = cg.zeros(2, dtype=cg.float64) if second is None else second
        return cg.concat([first * self.scale, second * self.scale])


def test_one_instance_called_many_times_keeps_each_calls_inputs():
    op = square()
    x = leaf(2.0)
    y = x
    for _ in range(3):
        y = op(y)
    y.backward()
    assert y.item() == 2.0 ** 8 and x.grad.item() == 8 * 2.0 ** 7
    assert op.x.item() == 16.0      # the instance shows the latest call


@pytest.mark.parametrize(("op", "second"), [(square, lambda x: 2.0 + 0 * x), (exponential, np.exp), (between, lambda x: 2 * np.cos(2 * x))])
def test_second_derivatives(op, second):
    x = leaf([0.5, 1.5])
    (g,) = cg.autograd.grad(op()(x).sum(), (x,), create_graph=True)
    (h,) = cg.autograd.grad(g.sum(), (x,))
    np.testing.assert_allclose(h.numpy(), second(np.array([0.5, 1.5])), rtol=1e-12)


@pytest.mark.parametrize(("op", "first"), [(square, lambda x: 2 * x), (exponential, np.exp), (between, lambda x: np.sin(2 * x))])
def test_forward_mode_from_backward(op, first):
    x, v = np.array([0.5, 1.5]), np.array([1.0, -2.0])
    _, t = cg.func.jvp(op(), (cg.tensor(x),), (cg.tensor(v),))
    np.testing.assert_allclose(t.numpy(), first(x) * v, rtol=1e-12)


def test_an_own_jvp_is_used():
    class with_jvp(square):
        def jvp(self, t):
            return 2 * self.x * t

    _, t = cg.func.jvp(with_jvp(), (cg.tensor(3.0),), (cg.tensor(1.0),))
    assert t.item() == 6.0


def test_several_results_and_keyword_options():
    x = leaf([1.0, 2.0, 3.0])
    a, b = split()(x, scale=3.0)
    (a.sum() + (b * b).sum()).backward()
    assert x.grad.tolist() == [3.0, 36.0, 54.0]
    x.grad = None
    a, b = split()(x)
    b.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 1.0]


def test_numbers_that_leave_the_graph_are_an_error_only_for_second_order():
    class takes_number(cg.Op):
        def forward(self, x):
            self.x = x
            return math.exp(x)

        def backward(self, grads):
            return grads * math.exp(self.x)

    x = leaf(1.0)
    y = takes_number()(x)
    y.backward(retain_graph=True)
    assert x.grad.item() == math.e
    with pytest.raises(RuntimeError, match="takes_number.*create_graph"):
        cg.autograd.grad(y, (x,), create_graph=True)


def test_a_number_computed_in_forward_is_an_error_for_second_order():
    class hides(cg.Op):
        def forward(self, x):
            self.x, self.half = x, 0.5 * cg.exp(x)
            self.factor = float(x)
            return x * self.factor

        def backward(self, grads):
            return grads * 2 * self.factor + 0 * self.half

    x = leaf(3.0)
    y = hides()(x)
    with pytest.raises(RuntimeError, match="hides"):
        cg.autograd.grad(y, (x,), create_graph=True)


def test_wrong_answers_of_backward_name_the_op():
    class answers(cg.Op):
        def __init__(self, value):
            self.value = value

        def forward(self, x, y):
            return x + y

        def backward(self, grads):
            return self.value

    x, y = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    g = cg.ones(2, dtype=cg.float64)
    for value, text in [((g,), "1 gradients for 2"), ((g, g, g), "3 gradients for 2"), ((cg.ones(3, dtype=cg.float64), g), r"shape \(3,\)"),
                        (("a", g), "str")]:
        with pytest.raises((RuntimeError, TypeError), match=f"answers.*{text}"):
            answers(value)(x, y).sum().backward()
    assert x.grad is None
    answers((None, 2.0))(x, y).sum().backward()
    assert x.grad is None and y.grad.tolist() == [2.0, 2.0]


def test_kept_values_that_were_overwritten_are_an_error():
    x = leaf([1.0, 2.0])
    y = x * 1.0
    z = square()(y).sum()
    y.zero_()
    with pytest.raises(RuntimeError, match="square.*changed in place"):
        z.backward()


def test_forward_may_return_numbers_and_arrays():
    class through_numpy(cg.Op):
        def forward(self, x):
            self.x = x.detach().numpy()
            return np.sin(self.x)

        def backward(self, grads):
            return grads * cg.tensor(np.cos(self.x))

    x = leaf([0.5, 1.0])
    through_numpy()(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.cos([0.5, 1.0]))


def test_recording_is_off_in_forward_and_state_needs_no_init():
    class looks(cg.Op):
        def forward(self, x):
            self.recording = cg.is_grad_enabled()
            return x * 1.0

        def backward(self, grads):
            return grads

    op = looks()
    op(leaf(1.0))
    assert op.recording is False and cg.is_grad_enabled()
    with cg.no_grad():
        assert not op(leaf(1.0)).requires_grad


def test_built_in_operations_are_ops_too():
    op = cg.multiply.op()
    assert op(2.0, 3.0).item() == 6.0
    assert [g.item() for g in op.backward(1.0)] == [3.0, 2.0]
    op = cg.exp.op()                 # of one input: its gradient, as the rule of a user's Op gives it
    assert op(0.0).item() == 1.0 and op.backward(3.0).item() == 3.0
    assert op(cg.tensor([0.0, 1.0])).shape == op.backward(cg.ones(2)).shape == (2,)


@pytest.mark.parametrize("walk", ["dropped", "backward", "retained", "differentiated again"])
def test_a_recorded_call_is_freed_without_the_cycle_collector(walk):
    import gc
    import weakref

    class square(cg.Op):
        def forward(self, x):
            self.x = x
            return x * x

        def backward(self, grads):
            return grads * 2 * self.x

    w = cg.ones(3, requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        for call in (lambda x: square()(x), lambda x: cg.checkpoint(cg.exp, x)):
            x = cg.ones(3) * w
            seen = weakref.ref(x)
            y = call(x).sum()
            if walk == "backward":
                y.backward()
                del x
                assert seen() is None          # the result is alive, what only backward needed is not
            elif walk == "retained":
                y.backward(retain_graph=True)
            elif walk == "differentiated again":
                (g,) = cg.autograd.grad(y, w, create_graph=True)
                cg.autograd.grad(g.sum(), w)
                del g
            x = y = None
            assert seen() is None
            w.grad = None
    finally:
        gc.enable()


@pytest.mark.parametrize("form", ["Op", "op", "Function"])
def test_forward_mode_within_forward_mode_and_batches(form):
    """The state that forward keeps is that of plain tensors: a jvp that reads it must not answer for levels above them."""
    class Cube(cg.Op):
        def forward(self, x):
            self.x = x
            return x * x * x

        def backward(self, grads):
            return grads * 3 * self.x ** 2

        def jvp(self, tangent):
            return tangent * 3 * self.x ** 2

    class CubeFunction(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, grad):
            x, = ctx.saved_tensors
            return grad * 3 * x ** 2

        @staticmethod
        def jvp(ctx, tangent):
            x, = ctx.saved_tensors
            return tangent * 3 * x ** 2

    f = {"Op": lambda x: Cube()(x), "Function": CubeFunction.apply,
         "op": cg.op(lambda x: x * x * x, vjp=lambda g, out, x: g * 3 * x ** 2, jvp=lambda t, out, x: t[0] * 3 * x ** 2,
                     batch=lambda axes, x: x * x * x)}[form]
    x, one = leaf(2.0).detach(), cg.ones((), dtype=cg.float64)
    d = lambda x: cg.func.jvp(f, (x,), (one,))[1]
    second = lambda x: cg.func.jvp(d, (x,), (one,))[1]
    assert (d(x).item(), second(x).item(), cg.func.jvp(second, (x,), (one,))[1].item()) == (12.0, 12.0, 6.0)
    xs = cg.tensor([1.0, 2.0, 3.0], dtype=cg.float64)
    for derivative, want in ((d, [3, 12, 27]), (second, [6, 12, 18])):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)          # example by example
            assert cg.func.vmap(derivative)(xs).tolist() == want


def test_a_rule_may_call_ops_that_compute_outside_of_the_graph():
    """What such an Op does inside is its own affair: its call is recorded, so no derivative is lost."""
    class sine(cg.Op):
        def forward(self, x):
            self.x = x
            return np.sin(x.detach().numpy())

        def backward(self, grads):
            return grads * cosine()(self.x)

    class cosine(cg.Op):
        def forward(self, x):
            self.x = x
            return np.cos(x.detach().numpy())

        def backward(self, grads):
            return -grads * sine()(self.x)

    x = leaf(0.3)
    y = sine()(x)
    for want in (math.cos(0.3), -math.sin(0.3), -math.cos(0.3), math.sin(0.3)):
        y, = cg.autograd.grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(want, rel=1e-15)


def test_numbers_must_not_leave_the_graph_of_a_backward_inside_an_op():
    class careless(cg.Op):
        def forward(self, x):
            self.x = x
            return cg.exp(x)

        def backward(self, grads):
            return grads * math.exp(self.x)

    class slope(cg.Op):
        def forward(self, x):
            with cg.enable_grad():
                z = x.detach().requires_grad_()
                return cg.autograd.grad(careless()(z), z, create_graph=True)[0].detach()

    with pytest.raises(RuntimeError, match="careless: its rule takes a number out of the graph"):
        slope()(leaf(0.3))


class ExpOfNumbers(cg.Op):
    """Computes outside of tensors and keeps its result, a plain number or array."""

    def __init__(self, exp=math.exp):
        self.exp = exp

    def forward(self, x):
        self.out = self.exp(x)
        return self.out

    def backward(self, g):
        return g * self.out


class TwiceExpOfNumbers(ExpOfNumbers):
    """Keeps a number that is not its result."""

    def forward(self, x):
        self.e = math.exp(x)
        self.name, self.count = "exp", 3
        return 2.0 * self.e

    def backward(self, g):
        return 2.0 * g * self.e


@pytest.mark.parametrize("exp", [math.exp, lambda x: np.exp(np.asarray(x)), lambda x: np.exp(x.detach().numpy()), lambda x: math.exp(x.item()),
                                 lambda x: np.float64(math.exp(x))])
def test_a_result_kept_as_a_number_has_its_place_in_the_graph(exp):
    x = cg.tensor(1.0, dtype=cg.float64, requires_grad=True)
    (g,) = cg.autograd.grad(x * ExpOfNumbers(exp)(x), x, create_graph=True)
    (h,) = cg.autograd.grad(g, x)
    assert h.item() == pytest.approx(3 * math.e)         # (x e^x)'' = (x + 2) e^x


def test_a_number_that_forward_keeps_never_gives_a_wrong_second_derivative():
    x = cg.tensor(1.0, dtype=cg.float64, requires_grad=True)
    y = TwiceExpOfNumbers()(x)
    (g,) = cg.autograd.grad(y, x, retain_graph=True)
    assert g.item() == pytest.approx(2 * math.e)
    with pytest.raises(RuntimeError, match=r"TwiceExpOfNumbers: a derivative of its derivative is wanted, but forward kept e as plain numbers"):
        cg.autograd.grad(y, x, create_graph=True)


def test_numbers_that_come_from_no_tensor_may_be_kept():
    class Scaled(cg.Op):
        def forward(self, x):
            self.scale = 0.5
            self.x = x
            return x * x * self.scale

        def backward(self, g):
            return 2.0 * g * self.x * self.scale

    x = cg.tensor(3.0, requires_grad=True)
    (g,) = cg.autograd.grad(Scaled()(x), x, create_graph=True)
    assert cg.autograd.grad(g, x)[0].item() == 1.0


class Jittered(cg.Op):
    """Keeps what it computed on the way; with `elsewhere`, a function that another thread runs meanwhile."""

    def __init__(self, draws, elsewhere=None):
        self.draws, self.elsewhere = draws, elsewhere

    def forward(self, x):
        self.square = x * x
        if self.elsewhere is not None:
            thread = threading.Thread(target=self.elsewhere)
            thread.start()
            thread.join()
        return self.square * x + (cg.rand(()) if self.draws else 0)

    def backward(self, g):
        return 3 * g * self.square


def test_only_what_its_own_thread_draws_keeps_a_forward_from_being_repeated():
    for op in (Jittered(True), Jittered(False, lambda: cg.rand(3))):
        x = cg.tensor(2.0, requires_grad=True)
        y = op(x)
        if op.draws:
            with pytest.raises(RuntimeError, match="Jittered.*drew random numbers, so it cannot be repeated"):
                cg.autograd.grad(y, x, create_graph=True)
        else:
            slope, = cg.autograd.grad(y, x, create_graph=True)
            assert slope.item() == 12 and cg.autograd.grad(slope, x)[0].item() == 12
