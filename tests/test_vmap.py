"""vmap: axes and trees, nesting with every derivative, what differs between examples, what is refused; Jacobians by batches."""
import collections
import gc
import math
import threading
import warnings

import numpy as np
import pytest

import cgrad as cg
from cgrad import func
from cgrad.func import grad, hessian, hvp, jacfwd, jacobian, jacrev, jvp, value_and_grad, vjp, vmap

RNG = np.random.default_rng(7)


def t(*shape):
    return cg.tensor(RNG.normal(size=shape))


def close(got, want, rtol=1e-10):
    np.testing.assert_allclose(np.asarray(got.detach()), np.asarray(want), rtol=rtol, atol=1e-12)


def rows(function, *args):
    """The loop that vmap stands for: function of each row of all arguments."""
    return np.stack([function(*[x[i] for x in args]).detach().numpy() for i in range(args[0].shape[0])])


# ------------------------------------------------------------------ axes and trees
def test_axes_of_arguments_and_results():
    x, y = t(3, 4, 5), t(4, 3)
    f = lambda a, b: (a * b[0]).sum(0)
    want = np.stack([x.numpy()[:, k] * y.numpy()[k, 0] for k in range(4)]).sum(1)
    close(vmap(f, in_axes=(1, 0))(x, y), want)
    close(vmap(f, in_axes=(-2, -2))(x, y), want)
    close(vmap(f, in_axes=(1, 0), out_axes=1)(x, y), want.T)
    close(vmap(f, in_axes=(1, 0), out_axes=-1)(x, y), want.T)
    close(vmap(f, in_dims=(1, 0), out_dims=1)(x, y), want.T)
    close(vmap(lambda a, n: a.sum() * n, (0, None))(x, 2), x.numpy().sum((1, 2)) * 2)
    close(vmap(lambda a: a.sum())(x.numpy()), x.numpy().sum((1, 2)))


def test_trees_go_in_and_come_out():
    p = {"w": t(3, 2), "b": [t(2), (t(5, 3),)]}

    def f(p, scale):
        return {"sum": p["w"].sum() * scale, "pair": (p["b"][0] + p["b"][1][0].sum(), [p["w"]])}

    out = vmap(f, in_axes=({"w": 0, "b": [None, (1,)]}, None), out_axes={"sum": 0, "pair": (1, 0)})(p, 2.0)
    w, b, c = p["w"].numpy(), p["b"][0].numpy(), p["b"][1][0].numpy()
    close(out["sum"], w.sum(1) * 2)
    close(out["pair"][0], b[:, None] + c.sum(0))
    close(out["pair"][1][0], w)
    close(vmap(lambda pair: pair[0] * pair[1])((p["w"], p["w"])), w * w)


def test_arguments_by_name_are_mapped_along_the_first_axis():
    x, y = t(3, 2), t(3)
    close(vmap(lambda x, *, y, power=1: x.sum() * y**power)(x, y=y, power=2), x.numpy().sum(1) * y.numpy()**2)


def test_a_result_that_does_not_depend_on_the_example_is_repeated():
    x, c = t(3, 2), t(4)
    close(vmap(lambda x: c)(x), np.tile(c.numpy(), (3, 1)))
    close(vmap(lambda x: 2.5)(x), np.full(3, 2.5))
    close(vmap(lambda x: c, out_axes=1)(x), np.tile(c.numpy()[:, None], (1, 3)))


def test_nothing_goes_in_and_comes_out():
    Point = collections.namedtuple("Point", ["x", "y"])
    p = Point(t(3, 2), None)
    out = vmap(lambda p, scale: (Point(p.x * scale, p.y), None), in_axes=(Point(0, None), None), out_axes=(Point(1, 0), None))(p, 2.0)
    assert type(out[0]) is Point and out[0].y is None and out[1] is None
    close(out[0].x, 2 * p.x.numpy().T)


def test_a_result_without_an_axis_is_the_same_for_all_examples():
    x, c = t(6, 2), t(4)
    for size in (None, 1, 4):
        each, shared = vmap(lambda x: (x * 2, c.sum()), out_axes=(1, None), chunk_size=size)(x)
        close(each, 2 * x.numpy().T)
        assert shared.shape == () and shared.item() == c.sum().item()
    with pytest.raises(ValueError, match=r"out_axes is None for a result of shape \(2,\) that may differ"):
        vmap(lambda x: x, out_axes=None)(x)


def test_chunks_give_the_same():
    x = t(7, 3)
    f = lambda x: {"s": x.sum(), "o": cg.outer(x, x)}
    whole = vmap(f, out_axes={"s": 0, "o": 2})(x)
    for size in (1, 2, 3, 7, 100):
        parts = vmap(f, out_axes={"s": 0, "o": 2}, chunk_size=size)(x)
        close(parts["s"], whole["s"])
        close(parts["o"], whole["o"])


def test_batches_of_one_and_of_none():
    w = t(3, 4)
    f = lambda x: cg.softmax(cg.tanh(x @ w), 0)
    assert vmap(f)(t(1, 3)).shape == (1, 4)
    assert vmap(f)(cg.zeros(0, 3)).shape == (0, 4)
    assert vmap(grad(lambda x: f(x).max()))(cg.zeros(0, 3, dtype=cg.float64)).shape == (0, 3)
    assert vmap(lambda x: x.reshape(-1, 1))(cg.zeros(0, 3)).shape == (0, 3, 1)


def test_layouts_do_not_matter():
    x = t(6, 4)
    f = lambda v: cg.cumulative_sum(v * v, 0) @ v
    want = rows(f, x)
    close(vmap(f)(x.T.clone().T), want)
    close(vmap(f)(x.flip(0)).flip(0), want)
    close(vmap(f, 1)(x.T), want)
    close(vmap(f)(x[::2]), want[::2])
    close(vmap(f)(x[:1].broadcast_to(3, 4)), np.repeat(want[:1], 3, 0))


# ------------------------------------------------------------------ nesting
def test_maps_nest():
    x, y = t(3, 4), t(5, 4)
    close(vmap(vmap(cg.dot, (None, 0)), (0, None))(x, y), x.numpy() @ y.numpy().T)
    close(vmap(vmap(cg.dot, (0, None)), (None, 0))(x, y), (x.numpy() @ y.numpy().T).T)
    close(vmap(vmap(vmap(lambda a, b, c: a * b + c, (None, None, 0)), (None, 0, None)), (0, None, None))(x[:, 0], x[0], y[0]),
          x.numpy()[:, 0, None, None] * x.numpy()[0][:, None] + y.numpy()[0])
    close(vmap(lambda row: vmap(lambda other: row @ other)(y))(x), x.numpy() @ y.numpy().T)


def test_gradients_of_each_example():
    w, b, x, y = t(3, 2), t(2), t(5, 3), cg.tensor([0, 1, 1, 0, 1])

    def loss(p, x, y):
        return cg.nn.functional.cross_entropy(cg.tanh(x @ p["w"]) + p["b"], y)

    p = {"w": w, "b": b}
    found = vmap(grad(loss), (None, 0, 0))(p, x, y)
    for i in range(5):
        one = grad(loss)(p, x[i], y[i])
        close(found["w"][i], one["w"])
        close(found["b"][i], one["b"])
    values, found = vmap(value_and_grad(loss), (None, 0, 0))(p, x, y)
    close(values, np.array([loss(p, x[i], y[i]).item() for i in range(5)]))
    whole = grad(lambda p: vmap(loss, (None, 0, 0))(p, x, y).mean())(p)
    close(whole["w"], found["w"].mean(0))
    (aux_grad, aux) = vmap(grad(lambda p, x, y: (loss(p, x, y), x.sum()), has_aux=True), (None, 0, 0))(p, x, y)
    close(aux, x.numpy().sum(1))
    close(aux_grad["b"], found["b"])


def test_gradients_of_each_example_of_a_module():
    net = cg.nn.Sequential(cg.nn.Linear(3, 4), cg.nn.Tanh(), cg.nn.Linear(4, 1))
    p = {k: v.detach() for k, v in net.named_parameters()}
    x = cg.tensor(RNG.normal(size=(6, 3)).astype(np.float32))
    f = lambda p, x: func.functional_call(net, p, x).sum()
    found = vmap(grad(f), (None, 0))(p, x)
    for i in range(6):
        one = grad(f)(p, x[i])
        for k in p:
            close(found[k][i], one[k], rtol=1e-5)


def test_backward_inside_and_through_a_map():
    x, w = t(4, 3), t(3).requires_grad_()
    vmap(lambda x: cg.exp(x @ w))(x).sum().backward()
    want = (x.numpy() * np.exp(x.numpy() @ w.detach().numpy())[:, None]).sum(0)
    close(w.grad, want)
    w.grad = None

    def inside(x):
        y = cg.exp(x @ w)
        y.backward()                       # as in a loop: the gradients of all examples add up
        return y.detach()

    vmap(inside)(x)
    close(w.grad, want)


def test_derivatives_of_maps_and_maps_of_derivatives():
    x, v = t(4, 3), t(4, 3)
    f = lambda x: (cg.sin(x) * x.flip(0)).prod()
    F = vmap(f)
    g = rows(grad(f), x)
    close(vmap(grad(f))(x), g)
    close(grad(lambda x: F(x).sum())(x), g)
    close(vjp(F, x)[1](cg.ones(4, dtype=cg.float64)), g)
    close(jvp(F, (x,), (v,))[1], (g * v.numpy()).sum(1))
    close(vmap(lambda x, v: jvp(f, (x,), (v,))[1])(x, v), (g * v.numpy()).sum(1))
    H = rows(jacfwd(grad(f)), x)
    for second in (hessian(f), jacfwd(jacfwd(f)), jacrev(jacfwd(f)), jacfwd(jacrev(f)), jacrev(grad(f)), lambda x: vmap(lambda e: hvp(f, (x,), (e,))[1])(
            cg.eye(3, dtype=cg.float64)), lambda x: vmap(vjp(grad(f), x)[1])(cg.eye(3, dtype=cg.float64))):
        close(vmap(second)(x), H)
        close(second(x[1]), H[1])
    hv = np.einsum("bij,bj->bi", H, v.numpy())
    close(jvp(vmap(grad(f)), (x,), (v,))[1], hv)
    close(grad(lambda x: (vmap(grad(f))(x) * v).sum())(x), hv)
    close(vmap(lambda x, v: hvp(f, (x,), (v,))[1])(x, v), hv)
    third = rows(jacfwd(jacfwd(grad(f))), x)
    close(vmap(jacrev(hessian(f)))(x), third)
    close(jacrev(lambda x: vmap(hessian(f))(x).sum(0))(x), third.transpose(1, 2, 0, 3))


def test_levels_are_not_confused():
    x = t(3)
    # d/dx sum_i x * y_i and the like, each derivative taken at its own level
    close(vmap(grad(lambda x: grad(lambda y: x * y * y)(x)))(x), 4 * x.numpy())
    close(grad(lambda a: vmap(lambda b: grad(lambda c: a * b * c * c)(b))(x).sum())(cg.tensor(2.0, dtype=cg.float64)), (2 * x.numpy()**2).sum())
    close(vmap(lambda b: jvp(lambda a: jvp(lambda c: a * c, (b,), (cg.ones_like(b),))[1], (b,), (cg.ones_like(b),))[1])(x), np.ones(3))
    outer = vmap(lambda a: vmap(lambda b: grad(lambda c: c * a + b * c * c)(a))(x))(x)
    close(outer, x.numpy()[:, None] + 2 * x.numpy()[None] * x.numpy()[:, None])
    close(vmap(grad(lambda a: vmap(lambda b: a * b)(x).sum()))(x), np.full(3, x.numpy().sum()))
    # The derivative by a shared tensor is each example's own, also where the example is not used.
    w = t(2)
    close(vmap(lambda a: grad(lambda w: (w * w).sum())(w))(x), np.tile(2 * w.numpy(), (3, 1)))
    close(vmap(lambda a: vjp(lambda w: w * a, w)[1](cg.ones(2, dtype=cg.float64))[0])(x), x.numpy())


def test_a_pullback_made_inside_one_map_is_mapped_by_another():
    x, w = t(4, 3), t(3, 2)
    f = lambda x: cg.tanh(x @ w)
    eye = cg.eye(2, dtype=cg.float64)
    close(vmap(lambda x: vmap(vjp(f, x)[1])(eye))(x), rows(jacrev(f), x))
    close(vmap(lambda x: vmap(lambda e: jvp(f, (x,), (e,))[1])(cg.eye(3, dtype=cg.float64)))(x), rows(jacfwd(f), x).transpose(0, 2, 1))
    G = t(4, 5, 2)
    close(vmap(lambda x, g: vmap(vjp(f, x)[1])(g))(x, G), G.numpy() @ rows(jacrev(f), x))


def test_threads_map_independently():
    x = t(50, 4)
    f = vmap(grad(lambda x: (x * x).prod()))
    want, found = f(x).numpy(), {}
    threads = [threading.Thread(target=lambda k=k: found.update({k: [f(x).numpy() for _ in range(20)]})) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(r, want) for results in found.values() for r in results)


# ------------------------------------------------------------------ indices, writes, random numbers
@pytest.mark.parametrize("key", [lambda i: i, lambda i: (slice(None), i), lambda i: (slice(0, 2), i), lambda i: (i, i), lambda i: (..., i), lambda i: (i, None),
                                 lambda i: (0, i), lambda i: (i, slice(None), i), lambda i: (slice(None), i, i), lambda i: (None, i, slice(1, 3)),
                                 lambda i: (slice(None), slice(None), i), lambda i: (..., i, slice(None)), lambda i: (0, slice(None), i)])
@pytest.mark.parametrize("shape", [(), (2,), (2, 1)])
def test_indices_that_differ(key, shape):
    x, i = t(4, 3, 3, 3), cg.tensor(RNG.integers(-3, 3, (4, *shape)))
    want = np.stack([x.numpy()[k][key(i.numpy()[k])] for k in range(4)])
    close(vmap(lambda x, i: x[key(i)])(x, i), want)
    close(vmap(lambda i: x[0][key(i)])(i), np.stack([x.numpy()[0][key(i.numpy()[k])] for k in range(4)]))
    f = lambda x, i: (x[key(i)] ** 2).sum()
    close(vmap(grad(f))(x, i), rows(grad(f), x, i))
    close(grad(lambda x: vmap(f)(x, i).sum())(x), rows(grad(f), x, i))
    close(vmap(lambda x, i: jvp(lambda x: f(x, i), (x,), (x,))[1])(x, i), rows(lambda x, i: 2 * f(x, i), x, i))
    close(vmap(vmap(lambda x, i: x[key(i)][None]))(x[:, None], i[:, None])[:, 0, 0], want)


@pytest.mark.parametrize("key", [(slice(None), [0, 2]), ([0, 2], slice(None), [1, 1]), (0, slice(None), [1, 2]), (slice(None), [[True, False, True]] * 3),
                                 (..., [0]), (None, [2, 0])])
def test_index_arrays_that_are_shared(key):
    x, v = t(4, 3, 3, 3), RNG.normal()
    key = tuple(np.array(k) if isinstance(k, list) else k for k in key)
    want = np.stack([a[key] for a in x.numpy()])
    close(vmap(lambda x: x[key])(x), want)
    value = cg.tensor(RNG.normal(size=want.shape))
    expected = x.numpy().copy()
    for a, b in zip(expected, value.numpy()):
        a[key] = b
    close(vmap(lambda x, v: cg.index_put(x, key, v))(x, value), expected)
    close(vmap(grad(lambda v, x: (cg.index_put(x, key, v) * x).sum()))(value, x), want)
    close(vmap(lambda x: cg.index_put(x, key, v))(x)[1], cg.index_put(x[1], key, v).numpy())


@pytest.mark.parametrize("function", [cg.index_add, cg.index_copy, cg.scatter_add, cg.take, cg.index_select])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_functions_of_an_index_that_differs(function, axis):
    x, source, i = t(4, 3, 5, 3), t(4, 3, 5, 3), cg.tensor([[2, 0, 1], [0, 1, 2], [1, 0, 2], [2, 1, 0]])
    if axis == 1:
        source = source[:, :, :3]
    calls = {"take": lambda x, i, s: cg.take(x, i, axis), "index_select": lambda x, i, s: cg.index_select(x, axis, i),
             "scatter_add": lambda x, i, s: cg.scatter_add(x, axis, i.reshape(3, 1, 1).broadcast_to(3, 3, 3), s[:, :3])}
    f = calls.get(function.__name__, lambda x, i, s: function(x, axis, i, s))
    close(vmap(f)(x, i, source), rows(f, x, i, source))
    close(vmap(lambda i: f(x[0], i, source[0]))(i), rows(lambda i: f(x[0], i, source[0]), i))
    g = lambda x, i, s: sum(part.sum() for part in grad(lambda x, s: (f(x, i, s) ** 2).sum(), (0, 1))(x, s))
    close(vmap(g)(x, i, source), rows(g, x, i, source))


def test_writes_into_batched_tensors():
    x, i = t(4, 3), cg.tensor([0, 2, 1, 0])

    def f(x, i):
        y = cg.zeros_like(x)
        y[0] = x[1]
        y += x
        y[1:].mul_(2.0)
        y[i] = x[0] * 3
        y.clamp_(min=-0.5)
        return y

    close(vmap(f)(x, i), rows(f, x, i))
    g = lambda x, i: (f(x, i) ** 2).sum()
    close(vmap(grad(g))(x, i), rows(grad(g), x, i))
    close(grad(lambda x: vmap(g)(x, i).sum())(x), rows(grad(g), x, i))
    h = lambda x, i: jvp(lambda x: g(x, i), (x,), (cg.ones_like(x),))[1]
    close(vmap(h)(x, i), rows(h, x, i))
    z = x.clone()
    vmap(lambda z: z.add_(1))(z)           # as in the loop, the examples are views of the argument
    close(z, x.numpy() + 1)


def test_random_numbers():
    x = t(5, 3)
    with pytest.raises(RuntimeError, match="vmap: rand inside vmap"):
        vmap(lambda x: x + cg.rand(3), randomness="error")(x)
    default = vmap(lambda x: cg.rand(3))(x)
    assert len(set(default.ravel().tolist())) == 15            # as in a loop
    for make in (lambda: cg.rand(3), lambda: cg.randn(3), lambda: cg.uniform(0, 1, 3), lambda: cg.normal(0.0, 1.0, 3), lambda: cg.exponential(1.0, 3),
                 lambda: cg.randint(0, 10**6, (3,)), lambda: cg.randperm(100)[:3], lambda: cg.bernoulli(cg.full((60,), 0.5))):
        same = vmap(lambda x: make() + 0 * x.sum(), randomness="same")(x)
        assert bool((same == same[0]).all())
        different = vmap(lambda x: make() + 0 * x.sum(), randomness="different")(x)
        assert all(not bool((different[i] == different[0]).all()) for i in range(1, 5))
    with pytest.raises(RuntimeError, match="batched value cannot be written"):
        vmap(lambda x: x + cg.zeros(3).uniform_(), randomness="different")(x)
    nested = vmap(lambda x: vmap(lambda x: cg.rand(), randomness="different")(x), randomness="same")(x)
    assert bool((nested == nested[0]).all()) and len(set(nested[0].tolist())) == 3
    nested = vmap(lambda x: vmap(lambda x: cg.rand(), randomness="same")(x), randomness="different")(x)
    assert bool((nested == nested[:, :1]).all()) and len(set(nested[:, 0].tolist())) == 5
    masks = vmap(lambda x: cg.nn.functional.dropout(cg.ones_like(x), 0.5), randomness="different")(cg.ones(3, 64))
    assert not bool((masks[0] == masks[1]).all())
    probabilities = cg.tensor([[0.0] * 4, [1.0] * 4])
    close(vmap(lambda p: cg.bernoulli(p), randomness="different")(probabilities), probabilities)
    filled = vmap(lambda x: cg.zeros_like(x).normal_(), randomness="different")(x)
    assert len(set(filled.ravel().tolist())) == 15


def test_losses_of_each_example():
    F, x = cg.nn.functional, t(4, 5, 6)
    y = cg.tensor(RNG.integers(0, 6, (4, 5)))
    y[0, 0] = y[2, 1] = -100
    for loss in (F.cross_entropy, lambda x, y: F.cross_entropy(x, y, weight=x[0].abs() + 1, label_smoothing=0.1),
                 lambda x, y: F.nll_loss(x, y, reduction="sum"), lambda x, y: F.binary_cross_entropy(cg.sigmoid(x[:, 0]), (y > 2).double())):
        close(vmap(loss)(x, y), rows(loss, x, y))
        close(vmap(grad(loss))(x, y), rows(grad(loss), x, y))
    assert vmap(lambda y: F.one_hot(y, 6))(y.abs() % 6).shape == (4, 5, 6)
    with pytest.raises(IndexError, match="class indices must lie"):
        vmap(F.cross_entropy)(x, y + 5)
    with pytest.raises(ValueError, match="must lie in"):
        vmap(F.binary_cross_entropy)(x, x)


# ------------------------------------------------------------------ what goes example by example, what is refused
class Cube(cg.Op):
    def forward(self, x):
        self.x = x
        return x * x * x

    def backward(self, g):
        return g * self.x * self.x * 3


class NumpyCube(Cube):
    def forward(self, x):
        self.x = x
        return x.detach().numpy() ** 3

    def backward(self, g):
        return g.numpy() * self.x.detach().numpy() ** 2 * 3


@pytest.mark.parametrize("op", [Cube, NumpyCube])
def test_ops_of_users(op):
    x = t(4, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        close(vmap(lambda x: op()(x))(x), x.numpy() ** 3)
        close(vmap(grad(lambda x: op()(x).sum()))(x), 3 * x.numpy() ** 2)
        close(jacrev(lambda x: op()(x))(x[0]), np.diag(3 * x.numpy()[0] ** 2))
        if op is Cube:                     # the rule of the other cannot be differentiated
            close(jacfwd(lambda x: op()(x))(x[0]), np.diag(3 * x.numpy()[0] ** 2))


def test_ops_of_users_for_no_examples():
    class Pair(cg.Op):
        def forward(self, x, y):
            return x.sum(0) * y, cg.stack([x[0], y])

        def backward(self, grads):
            raise AssertionError("nothing is to be differentiated")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        a, b = vmap(lambda x, y: Pair()(x, y), (0, None))(cg.zeros(0, 3, 2), cg.ones(2))
        assert a.shape == (0, 2) and b.shape == (0, 2, 2) and a.dtype == cg.float32
        assert vmap(grad(lambda x: Cube()(x).sum()))(cg.zeros(0, 3)).shape == (0, 3)


def test_one_warning_for_each_operation_without_a_rule():
    class Lonely(Cube):
        pass

    with pytest.warns(RuntimeWarning, match="Lonely has no rule for batches"):
        vmap(lambda x: Lonely()(x))(t(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vmap(lambda x: Lonely()(x))(t(2))


@pytest.mark.parametrize(("function", "message"), [
    (lambda x: x if x.sum() > 0 else -x, "vmap: bool needs the numbers of a tensor of shape .* cgrad.where"),
    (lambda x: x * x.sum().item(), "vmap: item needs"),
    (lambda x: x * float(x[0]), "vmap: float needs"),
    (lambda x: cg.tensor(x.numpy()), "vmap: numpy needs"),
    (lambda x: cg.tensor(np.asarray(x)), "vmap: __array__ needs"),
    (lambda x: cg.tensor(x.tolist()), "vmap: tolist needs"),
    (lambda x: cg.tensor([x[0], x[1]]), "vmap: making a tensor"),
    (lambda x: x[x > 0], "vmap: a boolean mask"),
    (lambda x: memoryview(x), "vmap: a buffer needs"),
    (lambda x: x.requires_grad_(), "requires_grad: a tensor inside vmap"),
    (lambda x: range(3)[x.argmax()] * x, "vmap: an index needs"),
])
def test_single_numbers_are_refused(function, message):
    with pytest.raises(RuntimeError, match=message):
        vmap(function)(t(4, 3))
    assert vmap(lambda x: x * 2)(t(2)).shape == (2,)           # no map is left running


def test_a_batched_tensor_can_be_shown():
    shown = []
    vmap(lambda x: shown.append(repr(x)) or x)(t(4, 3))
    assert shown == ["tensor(one of a batch in vmap, size=(3,), dtype=cgrad.float64)"]


def test_what_all_examples_share_is_not_written_into():
    x, shared = t(4, 3), cg.zeros(3, dtype=cg.float64)
    for write in (lambda x: shared.copy_(x), lambda x: shared.add_(x), lambda x: shared.__setitem__(0, x[0]), lambda x: shared.__iadd__(x)):
        with pytest.raises(RuntimeError, match=r"batched value cannot be written in place into a tensor of shape \(3,\)"):
            vmap(write)(x)
    close(shared, np.zeros(3))
    with pytest.raises(RuntimeError, match="leaf"):
        vmap(lambda x: x.add_(1))(t(3, 2).requires_grad_())


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: vmap(lambda x, y: x + y)(cg.zeros(3, 2), cg.zeros(4, 2)), ValueError, r"different numbers of examples: 3 along axis 0 of shape \(3, 2\), 4 along"),
    (lambda: vmap(lambda x: x, in_axes=None)(cg.zeros(3)), ValueError, "no argument is mapped"),
    (lambda: vmap(lambda x: x, in_axes=2)(cg.zeros(3, 2)), ValueError, r"axis 2 of a tensor of shape \(3, 2\)"),
    (lambda: vmap(lambda x: x)(cg.tensor(1.0)), ValueError, r"axis 0 of a tensor of shape \(\)"),
    (lambda: vmap(lambda x, y: x)(cg.zeros(3), 2.0), TypeError, "say None for it in in_axes"),
    (lambda: vmap(lambda x: x, in_axes=(0, 0))(cg.zeros(3)), ValueError, "in_axes has 2 entries for 1 positional"),
    (lambda: vmap(lambda x: x, in_axes=({"a": 0},))({"b": cg.zeros(3)}), ValueError, "does not fit the structure of argument 0"),
    (lambda: vmap(lambda x: x, out_axes=3)(cg.zeros(3)), ValueError, "out_axes names axis 3"),
    (lambda: vmap(lambda x: "text")(cg.zeros(3)), TypeError, "must return tensors, got str"),
    (lambda: vmap(lambda x: x, randomness="maybe"), ValueError, "randomness must be"),
    (lambda: vmap(lambda x: x, chunk_size=0), ValueError, "chunk_size must be a positive number"),
    (lambda: vmap(3), TypeError, "expected a function"),
    (lambda: vmap(lambda x: x, in_axes=1, in_dims=1), TypeError, "in_axes and in_dims are the same"),
    (lambda: vmap(lambda x: cg.matmul(x, cg.ones(3)))(cg.zeros(3)), ValueError, "at least one axis"),
    (lambda: vmap(lambda x: x.reshape(7))(cg.zeros(3, 2)), ValueError, "reshape"),
    (lambda: jacrev(lambda x: x, chunk_size=-1), ValueError, "chunk_size must be"),
])
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_tensors_of_a_map_that_has_ended_stay_harmless():
    kept = []
    vmap(lambda x: kept.append(x) or x)(t(3, 2))
    with pytest.raises(RuntimeError, match="vmap"):
        float(kept[0].sum())
    assert kept[0].shape == (2,) and kept[0].detach().shape == (2,)
    with pytest.raises(RuntimeError, match="another vmap, which has ended"):
        def leak(x):
            inner = []
            vmap(lambda y: inner.append(y) or y)(x)
            return inner[0]
        vmap(leak)(t(3, 2))


def test_memory_is_given_back():
    x, w = t(20, 30), t(30, 30)
    f = lambda: vmap(grad(lambda x: cg.tanh(x @ w).sum()))(x)
    for _ in range(3):
        f()
        jacrev(lambda x: cg.tanh(x @ w))(x[0])
    gc.collect()
    before = sum(isinstance(o, cg.Tensor) for o in gc.get_objects())
    for _ in range(10):
        f()
        jacrev(lambda x: cg.tanh(x @ w))(x[0])
    gc.collect()
    assert sum(isinstance(o, cg.Tensor) for o in gc.get_objects()) <= before + 2


# ------------------------------------------------------------------ Jacobians
W = RNG.normal(size=(5, 4))


@pytest.mark.parametrize("make", [jacrev, jacfwd, jacobian, lambda f, **k: jacobian(f, mode="forward", **k), lambda f, **k: jacobian(f, mode="reverse", **k)])
@pytest.mark.parametrize("chunk_size", [None, 1, 2, 100])
def test_jacobians_against_formulas(make, chunk_size):
    w, x, m = cg.tensor(W), t(4), t(4, 3)
    y = np.tanh(W @ x.numpy())
    close(make(lambda x: cg.tanh(w @ x), chunk_size=chunk_size)(x), (1 - y**2)[:, None] * W)
    close(make(lambda m: w @ m, chunk_size=chunk_size)(m), np.einsum("ij,kl->ikjl", W, np.eye(3)))
    close(make(lambda x: x.sum(), chunk_size=chunk_size)(x), np.ones(4))
    close(make(lambda x: x, chunk_size=chunk_size)(cg.tensor(2.0)), 1.0)
    softmax = np.exp(x.numpy()) / np.exp(x.numpy()).sum()
    close(make(lambda x: cg.softmax(x, 0), chunk_size=chunk_size)(x), np.diag(softmax) - np.outer(softmax, softmax))
    out = make(lambda p: {"a": p["u"] * p["v"], "b": p["u"].sum()}, chunk_size=chunk_size)({"u": x, "v": x + 1})
    close(out["a"]["u"], np.diag(x.numpy() + 1))
    close(out["b"]["v"], np.zeros(4))
    close(make(lambda x: cg.where(x > 0, x * x, 0.0) if bool(x.sum() > -100) else x, chunk_size=chunk_size)(x), np.diag(2 * np.maximum(x.numpy(), 0)))


@pytest.mark.parametrize("chunk_size", [None, 1, 3])
def test_hessians_against_formulas(chunk_size):
    x = t(4)
    A = RNG.normal(size=(4, 4))
    close(hessian(lambda x: x @ (cg.tensor(A) @ x), chunk_size=chunk_size)(x), A + A.T)
    close(hessian(lambda x: cg.logsumexp(x, 0), chunk_size=chunk_size)(x), jacrev(lambda x: cg.softmax(x, 0))(x))
    v = x.numpy()
    close(hessian(lambda x: x.prod(), chunk_size=chunk_size)(x), (1 - np.eye(4)) * np.prod(v) / np.outer(v, v))
    close(hessian(lambda x: cg.sin(x), chunk_size=chunk_size)(x), np.einsum("i,ij,ik->ijk", -np.sin(v), np.eye(4), np.eye(4)))
    close(hessian(lambda x: (x**4).sum() if float(x.sum()) > -100 else x.sum())(x), np.diag(12 * v**2))


def test_rosenbrock():
    def rosenbrock(x):
        return (100 * (x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2).sum()

    import scipy.optimize as so
    x = t(6)
    close(grad(rosenbrock)(x), so.rosen_der(x.numpy()))
    close(hessian(rosenbrock)(x), so.rosen_hess(x.numpy()))
    points = t(5, 6)
    close(vmap(hessian(rosenbrock))(points), np.stack([so.rosen_hess(p) for p in points.numpy()]))


def test_jacobians_can_be_differentiated():
    x = t(3).requires_grad_()
    j = jacrev(lambda x: x**3)(x)
    j.sum().backward()
    close(x.grad, 6 * x.detach().numpy())
    x.grad = None
    jacfwd(lambda x: x**3)(x).sum().backward()
    close(x.grad, 6 * x.detach().numpy())
    assert not jacrev(lambda x: x**3)(x.detach()).requires_grad
    w = t(3).requires_grad_()
    jacrev(lambda x: w * x * x)(x.detach()).sum().backward()
    close(w.grad, 2 * x.detach().numpy())


def test_random_functions_inside_jacobians_draw_once():
    x = cg.ones(50)
    j = jacfwd(lambda x: cg.nn.functional.dropout(x, 0.5))(x)
    assert set(np.diag(j.numpy()).tolist()) <= {0.0, 2.0} and math.isclose(float(j.abs().sum()), float(np.diag(j.numpy()).sum()))


def test_gradients_in_a_batch_through_one_graph():
    x, w, G = t(3).requires_grad_(), t(3).requires_grad_(), t(5, 2)
    y = cg.stack([x @ w, (x * x).sum()])
    gx, gw = cg.autograd.grad(y, (x, w), G, is_grads_batched=True, retain_graph=True)
    for i in range(5):
        one = cg.autograd.grad(y, (x, w), G[i], retain_graph=True)
        close(gx[i], one[0])
        close(gw[i], one[1])
    (gg,) = cg.autograd.grad(y, x, G, is_grads_batched=True, create_graph=True)
    close(cg.autograd.grad(gg.sum(), w)[0], np.full(3, G.numpy()[:, 0].sum()))
    with pytest.raises(ValueError, match="at least one gradient"):
        cg.autograd.grad(x.sum(), x, is_grads_batched=True)
    with pytest.raises(RuntimeError, match="shape"):
        cg.autograd.grad(x * w, x, t(3), is_grads_batched=True)


# ------------------------------------------------------------------ every nesting against loops
def loop(function):
    """What vmap(function) stands for."""
    return lambda *xs: cg.stack([function(*[x[i] for x in xs]) for i in range(xs[0].shape[0])])


M, C, AT = cg.tensor(RNG.uniform(0.3, 1.7, (3, 3))), cg.tensor(RNG.uniform(0.3, 1.7, 3)), cg.tensor([2, 0, 0])
FUNCTIONS = [
    lambda x: cg.tanh(M @ x), lambda x: cg.softmax(x, 0) * x, lambda x: x.prod() * x, lambda x: cg.cumulative_prod(x, 0), lambda x: x[AT] * x,
    lambda x: cg.where(x > 1, x * x, x.sin()), lambda x: cg.stack([x.sum(), x.max(), x.var()]), lambda x: cg.concat([x[1:], x[:1]]) * C, lambda x: cg.outer(x, x) @ C,
    lambda x: cg.einsum("i,ij,j->j", x, M, x), lambda x: cg.index_put(x, 1, x[0] * x[2]), lambda x: cg.nn.functional.linear(x, M * x.sum(), x),
    lambda x: cg.nn.functional.layer_norm(x, (3,), C, x), lambda x: x.clone().mul_(x).sin_(), lambda x: cg.scatter_add(x, 0, AT, x * C), lambda x: cg.vector_norm(x) * C]
NESTINGS = {
    "vmap": lambda m, f, s, x, X: m(f)(X),
    "vmap grad": lambda m, f, s, x, X: m(grad(s))(X),
    "vmap jacrev": lambda m, f, s, x, X: m(jacrev(f))(X),
    "vmap jacfwd": lambda m, f, s, x, X: m(jacfwd(f))(X),
    "vmap hessian": lambda m, f, s, x, X: m(hessian(s))(X),
    "vmap jacfwd jacrev": lambda m, f, s, x, X: m(jacfwd(jacrev(s)))(X),
    "vmap jvp": lambda m, f, s, x, X: m(lambda x: jvp(f, (x,), (C,))[1])(X),
    "vmap jvp grad": lambda m, f, s, x, X: m(lambda x: jvp(grad(s), (x,), (x,))[1])(X),
    "vmap hvp": lambda m, f, s, x, X: m(lambda x: hvp(s, (x,), (C,))[1])(X),
    "vmap grad grad": lambda m, f, s, x, X: m(grad(lambda x: grad(s)(x).sum()))(X),
    "vmap vjp, shared input": lambda m, f, s, x, X: m(lambda v: vjp(f, x)[1](v))(X),
    "vmap of a pullback": lambda m, f, s, x, X: m(vjp(f, x)[1])(X),
    "vmap jvp, shared input": lambda m, f, s, x, X: m(lambda v: jvp(f, (x,), (v,))[1])(X),
    "vmap grad, shared input": lambda m, f, s, x, X: m(lambda a: grad(lambda w: (f(w) * a).sum())(x))(X),
    "vmap jacfwd, shared input": lambda m, f, s, x, X: m(lambda a: jacfwd(lambda y: f(y) * a)(x))(X),
    "grad vmap": lambda m, f, s, x, X: grad(lambda X: (m(f)(X) ** 2).sum())(X),
    "grad vmap grad": lambda m, f, s, x, X: grad(lambda X: m(grad(s))(X).sum())(X),
    "jvp vmap": lambda m, f, s, x, X: jvp(m(f), (X,), (X.flip(0),))[1],
    "jvp vmap jvp": lambda m, f, s, x, X: jvp(lambda x: m(lambda v: jvp(lambda z: f(z * x), (v,), (x,))[1])(X), (x,), (C,))[1],
    "jacrev vmap": lambda m, f, s, x, X: jacrev(m(f))(X),
    "jacfwd vmap": lambda m, f, s, x, X: jacfwd(m(f))(X),
    "vmap vmap": lambda m, f, s, x, X: m(lambda a: m(lambda b: f(a * b))(X))(X),
    "vmap vmap grad": lambda m, f, s, x, X: m(lambda a: m(grad(lambda b: s(a * b)))(X))(X),
    "vmap grad vmap": lambda m, f, s, x, X: m(grad(lambda a: m(lambda b: f(a * b))(X).sum()))(X),
    "vmap vjp vmap": lambda m, f, s, x, X: m(lambda a: vjp(lambda w: m(lambda b: f(w * b))(X), a)[1](X))(X),
    "vmap vmap jvp jvp": lambda m, f, s, x, X: m(lambda v: m(lambda u: jvp(lambda y: jvp(f, (y,), (u,))[1], (x,), (v,))[1])(X))(X),
}


@pytest.mark.parametrize("nesting", NESTINGS)
def test_nestings(nesting):
    rng = np.random.default_rng(0)
    for k, f in enumerate(FUNCTIONS):
        x, X = cg.tensor(rng.uniform(0.3, 1.7, 3)), cg.tensor(rng.uniform(0.3, 1.7, (2, 3)))
        s = lambda x, f=f: (f(x) * C).sum()
        got, want = [NESTINGS[nesting](m, f, s, x, X) for m in (vmap, loop)]
        assert got.shape == want.shape
        np.testing.assert_allclose(np.asarray(got.detach()), np.asarray(want.detach()), rtol=1e-8, atol=1e-10, err_msg=f"{nesting}, function {k}")
