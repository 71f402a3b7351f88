"""Own operations in their other forms: Function with a context, the op decorator, batching rules."""
import warnings

import numpy as np
import pytest

import cgrad as cg

POINTS = np.array([0.5, 1.5, -2.0])


def leaf(data):
    return cg.tensor(np.array(data, dtype=np.float64), requires_grad=True)


class Cube(cg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x ** 2


class Exponential(cg.autograd.Function):
    """Saves its result."""

    @staticmethod
    def forward(ctx, x):
        out = cg.exp(x)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


class SineSquared(cg.autograd.Function):
    """Saves what is neither input nor result, and uses setup_context."""

    @staticmethod
    def forward(x, scale):
        s = cg.sin(x)
        return s * s * scale, s

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.scale = inputs[1]

    @staticmethod
    def backward(ctx, grad, grad_s):
        (x,) = ctx.saved_tensors
        return grad * ctx.scale * cg.sin(2 * x) + grad_s * cg.cos(x), None


FUNCTIONS = [
    (lambda x: Cube.apply(x), lambda x: x ** 3, lambda x: 3 * x ** 2, lambda x: 6 * x),
    (lambda x: Exponential.apply(x), np.exp, np.exp, np.exp),
    (lambda x: SineSquared.apply(x, 2.0)[0], lambda x: 2 * np.sin(x) ** 2, lambda x: 2 * np.sin(2 * x), lambda x: 4 * np.cos(2 * x)),
    (cg.op(lambda x: x ** 3, vjp=lambda g, out, x: 3 * g * x * x), lambda x: x ** 3, lambda x: 3 * x ** 2, lambda x: 6 * x),
    (cg.op(cg.exp, vjp=lambda g, out, x: g * out), np.exp, np.exp, np.exp),
]


@pytest.mark.parametrize(("function", "value", "first", "second"), FUNCTIONS)
def test_values_and_derivatives(function, value, first, second):
    x = leaf(POINTS)
    y = function(x)
    np.testing.assert_allclose(y.detach().numpy(), value(POINTS), rtol=1e-13)
    (g,) = cg.autograd.grad(y.sum(), x, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), first(POINTS), rtol=1e-12)
    (h,) = cg.autograd.grad(g.sum(), x)
    np.testing.assert_allclose(h.numpy(), second(POINTS), rtol=1e-12)
    direction = np.array([1.0, -2.0, 3.0])
    _, tangent = cg.func.jvp(function, (cg.tensor(POINTS),), (cg.tensor(direction),))
    np.testing.assert_allclose(tangent.numpy(), first(POINTS) * direction, rtol=1e-12)
    assert cg.autograd.gradcheck(function, leaf(POINTS)) and cg.autograd.gradgradcheck(function, leaf(POINTS))


def test_nothing_is_recorded_where_nothing_requires_grad():
    assert not Cube.apply(cg.tensor(2.0)).requires_grad
    with cg.no_grad():
        assert not Cube.apply(leaf(2.0)).requires_grad
    assert Cube.apply(2.0) == 8.0


def test_the_node_has_the_functions_name():
    assert repr(Cube.apply(leaf(2.0)).grad_fn) == "<CubeBackward>"


def test_needs_input_grad_in_both_directions():
    seen = []

    class product(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            seen.append(ctx.needs_input_grad)
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad):
            seen.append(ctx.needs_input_grad)
            return grad * ctx.saved_tensors[1], None

    product.apply(leaf(2.0), cg.tensor(3.0)).backward()
    assert seen == [(True, False), (True, False)]


def test_missing_gradients_are_zeros_or_none():
    class halves(cg.autograd.Function):
        materialize = True

        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(halves.materialize)
            return x[:1] * 1, x[1:] * 1

        @staticmethod
        def backward(ctx, first, second):
            seen.append(second if second is None else second.tolist())
            return cg.concat([first, cg.zeros(2, dtype=cg.float64)])

    seen = []
    x = leaf(POINTS)
    for halves.materialize in (True, False):
        halves.apply(x)[0].sum().backward()
    assert seen == [[0.0, 0.0], None]
    assert x.grad.tolist() == [2.0, 0.0, 0.0]


def test_results_without_a_gradient():
    class largest(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            place = cg.argmax(x).double()
            ctx.mark_non_differentiable(place)
            ctx.save_for_backward(x, place)
            return x.max(), place

        @staticmethod
        def backward(ctx, grad, _):
            x, place = ctx.saved_tensors
            return cg.where(cg.arange(x.numel()) == place, grad, 0.0)

    x = leaf(POINTS)
    value, place = largest.apply(x)
    assert value.requires_grad and not place.requires_grad
    value.backward()
    assert place.item() == 1.0 and x.grad.tolist() == [0.0, 1.0, 0.0]


def test_once_differentiable_refuses_a_second_derivative():
    class cube(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        @cg.autograd.once_differentiable
        def backward(ctx, grad):
            return cg.tensor(3 * ctx.saved_tensors[0].detach().numpy() ** 2) * grad

    x = leaf(2.0)
    cube.apply(x).backward()
    assert x.grad.item() == 12.0
    (g,) = cg.autograd.grad(cube.apply(x), x, create_graph=True)
    assert g.item() == 12.0
    with pytest.raises(RuntimeError, match="cube: a derivative of its derivative.*once_differentiable"):
        cg.autograd.grad(g, x)


def test_errors_say_what_to_do():
    class lazy(cg.autograd.Function):
        pass

    with pytest.raises(NotImplementedError, match="static method forward"):
        lazy.apply(leaf(1.0))

    class writes(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x

    with pytest.raises(RuntimeError, match=r"mark_dirty: writes.*clone"):
        writes.apply(leaf(1.0))
    with pytest.raises(TypeError, match="vjp must be a function, got int"):
        cg.op(abs, vjp=3)
    with pytest.raises(RuntimeError, match="halve: backward has no rule"):
        @cg.op
        def halve(x):
            return x / 2
        halve(leaf(1.0)).backward()


def test_saved_values_that_were_overwritten_are_an_error():
    x = cg.tensor(2.0, requires_grad=True)
    y = x * 1
    z = Cube.apply(y)
    with cg.no_grad():
        y += 1
    with pytest.raises(RuntimeError, match="Cube: .*changed in place"):
        z.backward()


def test_an_operation_in_arrays():
    sinc = cg.op(np.sinc, vjp=lambda g, out, x: g * (np.cos(np.pi * x) - out) / x, jvp=lambda t, out, x: t[0] * (np.cos(np.pi * x) - out) / x, arrays=True)
    assert sinc(0.5) == np.sinc(0.5)
    x = leaf(POINTS)
    slope = (np.cos(np.pi * POINTS) - np.sinc(POINTS)) / POINTS
    y = sinc(x)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), slope, rtol=1e-13)
    _, tangent = cg.func.jvp(sinc, (cg.tensor(POINTS),), (cg.tensor([1.0, 2.0, 3.0], dtype=cg.float64),))
    np.testing.assert_allclose(tangent.numpy(), slope * [1, 2, 3], rtol=1e-13)
    with pytest.raises(RuntimeError, match="sinc: a derivative of its derivative.*arrays=True"):
        cg.autograd.grad(sinc(x).sum(), x, create_graph=True)


def test_several_inputs_and_results():
    polar = cg.op(lambda r, t: (r * cg.cos(t), r * cg.sin(t)),
                  vjp=lambda g, out, r, t: (g[0] * cg.cos(t) + g[1] * cg.sin(t), g[1] * out[0] - g[0] * out[1]))
    r, t = leaf(2.0), leaf(0.5)
    x, y = polar(r, t)
    (x + 2 * y).backward()
    np.testing.assert_allclose(r.grad.item(), np.cos(0.5) + 2 * np.sin(0.5))
    np.testing.assert_allclose(t.grad.item(), 4 * np.cos(0.5) - 2 * np.sin(0.5))
    assert issubclass(polar.op, cg.Op)


class TestBatches:
    x = np.arange(6.0).reshape(3, 2)

    def check(self, function, expected):
        with warnings.catch_warnings():
            warnings.simplefilter("error")       # computed example by example would warn
            out = cg.func.vmap(function)(cg.tensor(self.x))
        np.testing.assert_array_equal(out.numpy(), expected)

    def test_an_ops_own_rule(self):
        calls = []

        class total(cg.Op):
            def forward(self, x):
                return x.sum()

            def batch(self, axes, x):
                calls.append((axes, tuple(x.shape)))
                return x.sum(-1)

        self.check(total(), self.x.sum(1))
        assert calls == [((0,), (3, 2))]

    def test_the_rule_of_a_function(self):
        class dot(cg.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                return (x * y).sum()

            @staticmethod
            def vmap(info, in_dims, x, y):
                assert info.batch_size == 3 and in_dims == (0, None)
                return (x * y).sum(-1), 0

        self.check(lambda x: dot.apply(x, cg.tensor([1.0, 10.0], dtype=cg.float64)), self.x @ [1, 10])

    def test_the_rule_of_a_decorated_function_and_gradients_through_it(self):
        total = cg.op(lambda x: x.sum(), vjp=lambda g, out, x: g * cg.ones_like(x), batch=lambda axes, x: x.sum(-1))
        self.check(lambda x: total(x * x), (self.x ** 2).sum(1))
        x = cg.tensor(self.x, requires_grad=True)
        cg.func.vmap(lambda x: total(x * x))(x).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), 2 * self.x)

    def test_a_result_without_the_examples_is_an_error(self):
        bad = cg.op(lambda x: x.sum(), batch=lambda axes, x: x.sum())
        with pytest.raises(RuntimeError, match=r"batch must return tensors with the 3 examples along their first axis, got shape \(\)"):
            cg.func.vmap(bad)(cg.tensor(self.x))


def test_a_dropped_call_is_freed_without_the_cycle_collector():
    import gc
    import weakref
    gc.disable()
    try:
        x = leaf(POINTS)
        kept = []

        class watched(cg.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                y = x * 2
                ctx.save_for_backward(x, y)
                kept.append(weakref.ref(ctx))
                return y

            @staticmethod
            def backward(ctx, grad):
                return grad * 2

        y = watched.apply(x)
        y.sum().backward()
        del y
        assert kept[0]() is None
    finally:
        gc.enable()
