"""Derivatives as functions of functions: values, nesting, trees, what is tracked outside."""
import collections
import gc
import inspect
import math
import threading
import weakref

import numpy as np
import pytest

import cgrad as cg
from cgrad import func

RNG = np.random.default_rng(0)


def t(values):
    return cg.tensor(np.array(values, dtype=np.float64))


def close(got, want, rtol=1e-12):
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=rtol, atol=1e-13)


# ------------------------------------------------------------------ grad
def test_grad_of_powers_to_any_order():
    f = lambda x: x**5
    want = [5 * 2**4, 20 * 2**3, 60 * 2**2, 120 * 2, 120, 0]
    for value in want:
        f = func.grad(f)
        got = f(t(2.0))
        close(got, value)
        assert not got.requires_grad


def test_value_and_grad_with_argnums_and_aux():
    def f(x, y, scale=1.0):
        return (x * y * scale).sum(), {"x": x, "n": 3}

    x, y = t([1.0, 2.0]), t([3.0, 4.0])
    (value, aux), (gy, gx) = func.value_and_grad(f, argnums=(1, 0), has_aux=True)(x, y, scale=2.0)
    close(value, 22.0)
    close(gy, [2, 4])
    close(gx, [6, 8])
    assert aux["n"] == 3 and not aux["x"].requires_grad and not value.requires_grad
    g, aux = func.grad(f, argnums=-1, has_aux=True)(x, y)
    close(g, [1, 2])
    (only,) = func.grad(lambda x: x.sum(), argnums=(0,))(x)
    close(only, [1, 1])


def test_grad_of_trees():
    p = {"layers": [{"w": t([[1.0, 2.0]]), "b": t(0.5)}, (t(3.0),)], "scale": t(2.0)}

    def f(p):
        first = p["layers"][0]
        return ((first["w"] * p["scale"]).sum() + first["b"]) * p["layers"][1][0]

    g = func.grad(f)(p)
    close(g["layers"][0]["w"], [[6, 6]])
    close(g["layers"][0]["b"], 3)
    close(g["layers"][1][0], 6.5)
    close(g["scale"], 9)
    assert isinstance(g["layers"], list) and isinstance(g["layers"][1], tuple)


def test_arguments_that_are_not_used_get_zeros():
    close(func.grad(lambda x, y: y.sum())(t([1.0, 2.0]), t(1.0)), [0, 0])
    close(func.grad(lambda x: t(3.0))(t([1.0])), [0])


def test_grad_refuses_what_it_cannot_differentiate():
    x = t([1.0, 2.0])
    for bad, error, text in [
        (lambda: func.grad(lambda x: x * 2)(x), ValueError, r"\(2,\).*jacrev"),
        (lambda: func.grad(lambda x: 3.0)(x), TypeError, "float"),
        (lambda: func.grad(lambda x: (x.sum(), 1))(x), TypeError, "has_aux"),
        (lambda: func.grad(lambda x: x.sum(), has_aux=True)(x), TypeError, "aux"),
        (lambda: func.grad(lambda x: x.sum(), argnums=1)(x), ValueError, "argument 1"),
        (lambda: func.grad(lambda x, y: x.sum(), argnums=(0, -2))(x, x), ValueError, "twice"),
        (lambda: func.grad(lambda x: x)(3.0), TypeError, "float"),
        (lambda: func.grad(lambda x: x.sum())(cg.tensor([1, 2])), TypeError, "int64"),
        (lambda: func.grad(lambda x: x.argmax())(x), TypeError, "int64"),
        (lambda: func.grad(3)(x), TypeError, "function"), (lambda: func.grad(lambda x: x.sum(), argnums="x")(x), TypeError, "argnums must be .* got 'x'"),
        (lambda: func.hvp(lambda x: x.sum(), x, x), TypeError, "hvp: primals and tangents must be tuples"), (lambda: func.hvp(3, (x,), (x,)), TypeError, "hvp: expected"),
        (lambda: func.hvp(lambda x: x * 2, (x,), (x,)), ValueError, "hvp: the function must return one number"),
        (lambda: func.hvp(lambda x: x.sum(), (x,), (t(1.0),)), ValueError, r"hvp: tangents must have the shape \(2,\)"),
    ]:
        with pytest.raises(error, match=text):
            bad()
    assert cg.is_grad_enabled()


def test_the_mode_outside_does_not_matter_and_is_restored():
    with cg.no_grad():
        close(func.grad(lambda x: x**2)(t(3.0)), 6)
        with pytest.raises(KeyError):
            func.grad(lambda x: {}["nothing"])(t(3.0))
        assert not cg.is_grad_enabled()
    assert cg.is_grad_enabled()


def test_no_grad_inside_makes_a_constant():
    def f(x):
        with cg.no_grad():
            c = x * 1
        return x * c

    close(func.grad(f)(t(3.0)), 3)


# ------------------------------------------------------------------ nesting
def test_levels_are_never_confused_in_reverse_mode():
    inner = lambda x: func.grad(lambda y: x + y)(t(1.0))
    close(func.grad(lambda x: x * inner(x))(t(1.0)), 1)
    close(func.grad(lambda x: x * func.grad(lambda y: x * y)(t(2.0)))(t(3.0)), 6)


def derive(f):
    """The derivative of a function of a number by forward mode."""
    return lambda x: func.jvp(f, (x,), (cg.ones_like(x),))[1]


def test_levels_are_never_confused_in_forward_mode():
    close(derive(lambda x: x * derive(lambda y: x + y)(t(1.0)))(t(1.0)), 1)
    close(derive(lambda x: x * derive(lambda y: x * y)(t(2.0)))(t(3.0)), 6)


@pytest.mark.parametrize("outer", [func.grad, derive], ids=["reverse", "forward"])
@pytest.mark.parametrize("inner", [func.grad, derive], ids=["reverse", "forward"])
def test_levels_are_never_confused_in_mixed_modes(outer, inner):
    close(outer(lambda x: x * inner(lambda y: x + y)(t(1.0)))(t(1.0)), 1)
    close(outer(lambda x: x * inner(lambda y: x * y)(t(2.0)))(t(3.0)), 6)
    close(outer(lambda x: inner(lambda y: x * x * y**3)(x))(t(2.0)), 3 * 4 * 2**3)           # d/dx 3 x^4
    close(outer(inner(cg.sin))(t(0.5)), -math.sin(0.5))
    close(outer(outer(inner(lambda x: x**4)))(t(2.0)), 48)
    close(outer(inner(inner(lambda x: cg.exp(x * x))))(t(0.5)), (12 * 0.5 + 8 * 0.5**3) * math.exp(0.25))


DERIVATIVES = {
    "grad": func.grad, "value_and_grad": lambda f: lambda x: func.value_and_grad(f)(x)[1], "jvp": derive,
    "vjp": lambda f: lambda x: func.vjp(f, x)[1](cg.ones_like(x)), "linearize": lambda f: lambda x: func.linearize(f, x)[1](cg.ones_like(x)),
    "jacfwd": func.jacfwd, "jacrev": func.jacrev, "of a map": lambda f: lambda x: func.grad(lambda xs: func.vmap(f)(xs).sum())(x[None])[0],
    "map of": lambda f: lambda x: func.vmap(func.grad(f))(x[None])[0],
}


@pytest.mark.parametrize("outer", DERIVATIVES)
@pytest.mark.parametrize("inner", DERIVATIVES)
def test_a_derivative_sees_only_its_own_variable(outer, inner):
    """J. M. Siskind and B. A. Pearlmutter, "Perturbation confusion and referential transparency", 2005, and variations with closures."""
    D, d = DERIVATIVES[outer], DERIVATIVES[inner]
    close(D(lambda x: x * d(lambda y: x + y)(t(1.0)))(t(1.0)), 1)                        # confused: 2
    close(D(lambda x: x * d(lambda y: x * y)(t(2.0)))(t(3.0)), 6)
    close(D(lambda x: x * d(lambda y: x + y)(x))(t(4.0)), 1)
    close(D(lambda x: x * d(lambda y: x * y * y)(x))(t(2.0)), 6 * 2**2)                  # d/dx 2 x^3
    close(D(lambda x: d(lambda y: x)(t(1.0)) + x * x)(t(3.0)), 6)
    shift = lambda u: lambda f: lambda x: f(x + u)                                       # the derivative of a function of functions
    close(D(lambda u: d(shift(u)(cg.exp))(t(1.0)))(t(0.0)), math.e)
    close(D(lambda u: shift(u)(d(shift(u)(cg.exp)))(t(1.0)))(t(0.0)), 2 * math.e)


@pytest.mark.parametrize("first", DERIVATIVES)
@pytest.mark.parametrize("second", DERIVATIVES)
def test_three_levels_are_kept_apart(first, second):
    D, d = DERIVATIVES[first], DERIVATIVES[second]
    for e in (D, d):
        inner = lambda x, e=e: d(lambda y: y * e(lambda z: x * y * z)(t(3.0)))(t(2.0))   # d/dy x y^2 at 2
        close(D(lambda x: x * inner(x))(t(1.5)), 12)
        close(D(lambda x: d(lambda y: e(lambda z: cg.sin(x * y * z))(x * y))(x))(t(0.7)), third_of_sine(0.7), 1e-11)


def third_of_sine(x):
    # d/dz sin(x y z) at z = x y is g(x, y) = x y cos(x^2 y^2); dg/dy = x cos(x^2 y^2) - 2 x^3 y^2 sin(x^2 y^2); at y = x: h(x).
    # h(x) = x cos(x^4) - 2 x^5 sin(x^4), h'(x) = cos(x^4) - 4 x^4 sin(x^4) - 10 x^4 sin(x^4) - 8 x^8 cos(x^4).
    return math.cos(x**4) - 14 * x**4 * math.sin(x**4) - 8 * x**8 * math.cos(x**4)


OPS = {
    "exp": cg.exp, "softmax": lambda x: cg.softmax(x, 0), "log_softmax": lambda x: cg.log_softmax(x, 0), "prod": lambda x: x.prod(),
    "logsumexp": lambda x: cg.logsumexp(x, 0), "var": lambda x: x.var(), "matmul": lambda x: x.reshape(2, 2) @ x.reshape(2, 2),
    "norm": lambda x: (x * x).sum().sqrt(), "where": lambda x: cg.where(x > 0.5, x * x, x.sin()), "sort": lambda x: x[[2, 0]] * x[1:3],
    "max": lambda x: x.max() * x, "division": lambda x: x / (x.sum() + x), "stack": lambda x: cg.stack([x, x * x]).sum(0), "gelu": cg.nn.functional.gelu,
}


@pytest.mark.parametrize("name", OPS)
def test_all_ways_to_a_hessian_agree(name):
    weights = t(RNG.normal(size=4))
    f = lambda x: (OPS[name](x) * OPS[name](x)).sum() + (x * weights).sum()
    x = t([0.3, 0.9, -0.4, 1.7])
    hessians = [a(b(f))(x).numpy() for a in (func.jacfwd, func.jacrev) for b in (func.jacfwd, func.jacrev)]
    for h in hessians[1:]:
        np.testing.assert_allclose(h, hessians[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(hessians[0], hessians[0].T, rtol=1e-9, atol=1e-12)
    eps = 1e-6
    for i in range(4):
        e = np.zeros(4)
        e[i] = eps
        difference = (func.grad(f)(x + t(e)).numpy() - func.grad(f)(x - t(e)).numpy()) / (2 * eps)
        np.testing.assert_allclose(hessians[0][i], difference, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", OPS)
def test_third_derivatives_agree_whatever_the_order_of_modes(name):
    f = lambda s: (OPS[name](t([0.3, 0.9, -0.4, 1.7]) * s) ** 2).sum()
    found = [a(b(c(f)))(t(1.1)).item() for a in (func.grad, derive) for b in (func.grad, derive) for c in (func.grad, derive)]
    np.testing.assert_allclose(found, found[0], rtol=1e-8, atol=1e-10)


def test_threads_do_not_confuse_levels():
    errors = []

    def work():
        try:
            for _ in range(200):
                x = t(1.5)
                close(derive(lambda x: x * derive(lambda y: x * y)(t(2.0)))(x), 3.0)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


# ------------------------------------------------------------------ what is tracked outside
def test_tracked_arguments_keep_their_grad_and_are_differentiated_through():
    x = t(2.0).requires_grad_()
    x.grad = t(7.0)
    g = func.grad(lambda x: x**3)(x)
    assert x.grad.item() == 7.0 and g.requires_grad
    g.backward()
    assert x.grad.item() == 7.0 + 12.0


def test_tracked_tensors_in_the_closure_are_differentiated_through():
    w = t(3.0).requires_grad_()
    g = func.grad(lambda x: w * x**2)(t(2.0))
    assert w.grad is None and g.requires_grad
    (gw,) = cg.autograd.grad(g, w)
    assert gw.item() == 4.0
    value, _ = func.value_and_grad(lambda x: w * x**2)(t(2.0))
    value.backward()
    assert w.grad.item() == 4.0
    y, pull = func.vjp(lambda x: w * x, t(2.0))
    assert y.requires_grad and cg.autograd.grad(pull(t(5.0)), w)[0].item() == 5.0
    _, moved = func.jvp(lambda x: w * x, (t(2.0),), (t(5.0),))
    assert cg.autograd.grad(moved, w)[0].item() == 5.0
    with cg.no_grad():
        assert not func.grad(lambda x: w * x**2)(t(2.0)).requires_grad


def long_chain(x, n):
    y = x
    for _ in range(n):
        y = y * 1.0
    return y * x


def wide_sum(x, n):
    parts = [x * float(k) for k in range(n)]
    while len(parts) > 1:
        parts = [a + b for a, b in zip(parts[::2], parts[1::2])] + parts[len(parts) & ~1:]
    return parts[0]


@pytest.mark.parametrize("tracked", [False, True])
def test_graphs_of_any_size_and_shape(tracked):
    """The walk that looks for what is tracked outside has a quick way for small graphs."""
    w = t(2.0).requires_grad_(tracked)
    for f, slope, second in [(lambda x: long_chain(x, 10), 6, 2), (lambda x: long_chain(x, 10_000), 6, 2), (lambda x: wide_sum(x, 2000), 1999000, 0),
                             (lambda x: cg.stack([x * float(k) for k in range(600)]).sum(), 179700, 0)]:
        g = func.grad(lambda x, f=f: f(x) * w)(t(3.0))
        close(g, 2 * slope)
        assert g.requires_grad is tracked
        if tracked:
            close(cg.autograd.grad(g, w)[0], slope)
        close(func.grad(func.grad(f))(t(3.0)), second)
    p = {str(k): t(float(k)) for k in range(40)}
    f = lambda p: sum((v * v for v in p.values()), start=w * 0.0) * w
    g = func.grad(f)(p)
    assert all(v.item() == 4.0 * k and v.requires_grad is tracked for k, v in enumerate(g.values()))
    g = func.grad(f, 0)({"7": t(7.0)})
    assert g["7"].requires_grad is tracked
    with cg.no_grad():
        assert func.grad(lambda x: x * w)(t(3.0)).item() == 2.0 and w.grad is None


def test_what_the_function_does_with_its_argument_is_its_own_affair():
    seen = []

    def f(x):
        x.register_hook(lambda g: seen.append(g.item()) or g * 10)
        return x * x
    close(func.grad(f)(t(3.0)), 60)
    assert seen == [6.0]

    def backward_inside(x):
        (x * 5).backward()
        return x * x + x.grad
    x = t(3.0)
    value, g = func.value_and_grad(backward_inside)(x)
    close(value, 14)
    close(g, 6)
    assert x.grad is None
    close(func.grad(lambda x: x)(t(3.0)), 1)
    close(func.grad(lambda x, y: y.sum())(t(3.0), t(1.0).requires_grad_()), 0)
    view = t([1.0, 2.0, 3.0])[::2]
    close(func.grad(lambda x: (x * x).sum())(view), [2, 6])


def test_gradient_penalty():
    net = cg.nn.Sequential(cg.nn.Linear(2, 4), cg.nn.Tanh(), cg.nn.Linear(4, 1)).double()
    x = t([0.3, -0.7])

    def penalty():
        return (func.grad(lambda x: net(x).sum())(x) ** 2).sum()

    penalty().backward()
    p = net[0].weight
    got = p.grad[1, 0].item()
    with cg.no_grad():
        eps = 1e-6
        p[1, 0] += eps
        up = penalty().item()
        p[1, 0] -= 2 * eps
        down = penalty().item()
    assert got == pytest.approx((up - down) / (2 * eps), rel=1e-5)


def test_results_are_free_of_the_graph():
    x = t([1.0, 2.0])
    for result in (func.value_and_grad(lambda x: (x * x).sum())(x), func.vjp(lambda x: x * x, x)[0], func.jvp(lambda x: x * x, (x,), (x,)),
                   func.jacrev(lambda x: x * x)(x), func.jacfwd(lambda x: x * x)(x), func.hessian(lambda x: (x**3).sum())(x)):
        for y in result if isinstance(result, tuple) else (result,):
            assert not y.requires_grad and y.grad_fn is None
    assert not x.requires_grad


# ------------------------------------------------------------------ vjp, jvp
def test_vjp_and_jvp_are_transposes():
    a = t(RNG.normal(size=(3, 4)))
    f = lambda p: {"y": cg.tanh(a @ p[0]), "z": [p[1] * p[0].sum()]}
    x = (t(RNG.normal(size=4)), t(RNG.normal(size=2)))
    v = (t(RNG.normal(size=4)), t(RNG.normal(size=2)))
    g = {"y": t(RNG.normal(size=3)), "z": [t(RNG.normal(size=2))]}
    out, pull = func.vjp(f, x)
    again, moved = func.jvp(f, (x,), (v,))
    close(out["y"], again["y"].numpy())
    back = pull(g)
    left = (moved["y"] * g["y"]).sum() + (moved["z"][0] * g["z"][0]).sum()
    right = (back[0] * v[0]).sum() + (back[1] * v[1]).sum()
    assert left.item() == pytest.approx(right.item(), rel=1e-12)
    close(pull(g)[0], back[0].numpy())           # any number of times


def test_vjp_and_jvp_of_several_arguments_with_aux():
    f = lambda x, y: (x * y, "aux")
    out, pull, aux = func.vjp(f, t(2.0), t(3.0), has_aux=True)
    gx, gy = pull(t(1.0))
    assert (gx.item(), gy.item(), aux) == (3.0, 2.0, "aux")
    out, moved, aux = func.jvp(f, (t(2.0), t(3.0)), (t(1.0), t(10.0)), has_aux=True)
    assert (out.item(), moved.item(), aux) == (6.0, 23.0, "aux")
    _, pull = func.vjp(lambda x: (x, x * 2), t(1.0))
    assert pull((t(1.0), t(10.0))).item() == 21.0


def test_what_a_result_does_not_depend_on_has_tangent_zero():
    _, moved = func.jvp(lambda x: (x.detach(), x * 2, cg.ones(2)), (t(1.0),), (t(1.0),))
    assert [m.tolist() for m in moved] == [0.0, 2.0, [0.0, 0.0]]


def test_vjp_and_jvp_refuse_what_does_not_fit():
    x = t([1.0, 2.0])
    _, pull = func.vjp(lambda x: x * 2, x)
    for bad, error, text in [
        (lambda: pull(t(1.0)), ValueError, r"\(2,\).*\(\)"), (lambda: pull((x, x)), ValueError, "structure"), (lambda: pull(3.0), TypeError, "float"),
        (lambda: pull(), TypeError, "gradient"), (lambda: func.vjp(lambda x: 3, x), TypeError, "int"),
        (lambda: func.jvp(lambda x: x, x, x), TypeError, "tuples"), (lambda: func.jvp(lambda x: x, (x,), (x, x)), ValueError, "structure"),
        (lambda: func.jvp(lambda x: x, (x,), (t(1.0),)), ValueError, r"\(2,\)"), (lambda: func.jvp(lambda x: x, (x,), (1.0,)), TypeError, "float"),
        (lambda: func.jvp(lambda x: x, (x,), (cg.ones(2, dtype=cg.int64),)), ValueError, "int64"),
    ]:
        with pytest.raises(error, match=text):
            bad()


Point = collections.namedtuple("Point", ["x", "y"])


def test_trees_may_hold_nothing_and_named_tuples():
    p = {"a": Point(t([1.0, 2.0]), None), "b": None, "c": [t(3.0)]}
    f = lambda p: {"out": p["a"].x * p["c"][0], "none": None}
    scalar = lambda p: f(p)["out"].sum()
    g = func.grad(scalar)(p)
    assert type(g["a"]) is Point and g["a"].y is None and g["b"] is None
    close(g["a"].x, [3, 3])
    close(g["c"][0], 3)
    out, pull = func.vjp(f, p)
    assert out["none"] is None and pull({"out": t([1.0, 1.0]), "none": None})["b"] is None
    ones = {"c": [t(1.0)], "b": None, "a": Point(t([0.0, 1.0]), None)}                    # another order of the keys
    for push in (lambda: func.jvp(f, (p,), (ones,))[1], lambda: func.linearize(f, p)[1](ones)):
        moved = push()
        close(moved["out"], [1, 5])
        assert moved["none"] is None
    for j in (func.jacrev(f)(p), func.jacfwd(f)(p)):
        assert j["none"] is None and j["out"]["b"] is None and j["out"]["a"].y is None
        close(j["out"]["a"].x, np.diag([3, 3]))
        close(j["out"]["c"][0], [1, 2])
    h = func.hessian(scalar)(p)
    close(h["a"].x["c"][0], [1, 1])
    assert h["b"] is None and h["a"].x["b"] is None
    for bad, text in [({"out": t([1.0, 1.0])}, r"expected a dict with the keys \['out', 'none'\], got dict with the keys \['out'\]"),
                      ({"out": t(1.0), "none": None}, r"must have the shape \(2,\) .* got \(\) at \['out'\]"),
                      ({"out": [t([1.0, 1.0])], "none": None}, r"expected a tensor at \['out'\], got list of 1")]:
        with pytest.raises(ValueError, match=text):
            pull(bad)


def test_arguments_that_are_not_differentiated_may_be_anything():
    def f(name, x, power, y=None):
        return x**power * (1 if name == "plain" else 2), name
    x, v = t([1.0, 2.0]), t([1.0, 10.0])
    args = ("plain", x, 3, None)
    close(func.grad(lambda *a: f(*a)[0].sum(), argnums=-3)(*args), [3, 12])
    out, pull, aux = func.vjp(f, *args, argnums=1, has_aux=True)
    close(pull(v), [3, 120])
    assert aux == "plain"
    close(func.vjp(f, *args, argnums=(-3,), has_aux=True)[1](v)[0], [3, 120])
    close(func.jvp(f, args, v, argnums=1, has_aux=True)[1], [3, 120])
    close(func.jvp(f, args, (v,), argnums=(1,), has_aux=True)[1], [3, 120])
    close(func.linearize(f, *args, argnums=1, has_aux=True)[1](v), [3, 120])
    g, product, aux = func.hvp(lambda *a: (f(*a)[0].sum(), "aux"), args, v, argnums=1, has_aux=True)
    close(g, [3, 12])
    close(product, [6, 120])
    assert aux == "aux"
    for make in (func.jacrev, func.jacfwd, func.jacobian):
        j, aux = make(f, argnums=1, has_aux=True)(*args)
        close(j, np.diag([3, 12]))
        assert aux == "plain"
    h, aux = func.hessian(lambda *a: (f(*a)[0].sum(), "aux"), argnums=1, has_aux=True)(*args)
    close(h, np.diag([6, 12]))
    assert aux == "aux"
    for bad in (lambda: func.vjp(f, *args), lambda: func.jvp(f, args, args), lambda: func.linearize(f, *args)):
        with pytest.raises(TypeError, match="got str in argument 0, 1, 2, 3; .* leave the argument out of argnums"):
            bad()


# ------------------------------------------------------------------ linearize
def test_a_linear_map_is_used_many_times():
    calls = []

    def f(x, p):
        calls.append(1)
        return cg.sin(x) * p["w"], {"sum": (x * x).sum(), "constant": cg.ones(2)}
    x, p = t([0.3, -1.2]), {"w": t([2.0, 3.0])}
    out, push = func.linearize(f, x, p)
    close(out[0], np.sin([0.3, -1.2]) * [2, 3])
    assert not out[0].requires_grad
    for _ in range(3):
        a, b = t(RNG.normal(size=2)), {"w": t(RNG.normal(size=2))}
        got, want = push(a, b), func.jvp(f, (x, p), (a, b))[1]
        close(got[0], want[0].numpy())
        close(got[1]["sum"], want[1]["sum"].numpy())
        assert got[1]["constant"].tolist() == [0.0, 0.0] and not got[0].requires_grad
    assert len(calls) == 1 + 3
    basis = cg.eye(2, dtype=cg.float64)
    close(func.vmap(lambda e: push(e, {"w": cg.zeros_like(e)})[0])(basis), np.diag(np.cos([0.3, -1.2]) * [2, 3]))
    with pytest.raises(ValueError, match="linearize: tangents have another structure"):
        push(a)
    with pytest.raises(ValueError, match=r"tangents must have the shape \(2,\) .* got \(3,\) at \[1\]\['w'\]"):
        push(a, {"w": cg.zeros(3, dtype=cg.float64)})


def test_linear_maps_nest():
    x, v = t(0.4), t(2.0)
    second = lambda x: func.linearize(lambda y: func.linearize(cg.sin, y)[1](v), x)[1](v)
    close(second(x), -4 * math.sin(0.4))
    close(func.grad(lambda x: func.linearize(cg.sin, x)[1](v))(x), -2 * math.sin(0.4))                     # through the place
    close(func.grad(lambda v: func.linearize(cg.sin, x)[1](v * v))(v), 4 * math.cos(0.4))                  # and the direction
    close(func.jvp(lambda x, v: func.linearize(cg.sin, x)[1](v), (x, v), (t(1.0), t(1.0)))[1], math.cos(0.4) - 2 * math.sin(0.4))
    xs = t([0.1, 0.2, 0.3])
    close(func.vmap(lambda x: func.linearize(cg.sin, x)[1](v))(xs), 2 * np.cos([0.1, 0.2, 0.3]))
    close(func.vmap(lambda v: func.linearize(cg.sin, x)[1](v))(xs), math.cos(0.4) * xs.numpy())
    w = t(3.0).requires_grad_()
    _, push = func.linearize(lambda x: w * x, x)
    assert cg.autograd.grad(push(v), w)[0].item() == 2.0
    with cg.no_grad():
        assert not push(v).requires_grad


# ------------------------------------------------------------------ jacobians
def test_jacobians_of_a_linear_map_are_its_matrix():
    a = RNG.normal(size=(3, 4))
    f = lambda x: t(a) @ x
    x = t(RNG.normal(size=4))
    for transform in (func.jacrev, func.jacfwd, func.jacobian, lambda f: func.jacobian(f, mode="forward"), lambda f: func.jacobian(f, mode="reverse")):
        close(transform(f)(x), a)
    with pytest.raises(ValueError, match="mode"):
        func.jacobian(f, mode="sideways")


def test_jacobians_have_the_shapes_of_both_sides():
    f = lambda x, y: {"a": x.sum(0) * y, "b": y.sum()}
    x, y = t(RNG.normal(size=(2, 3))), t(RNG.normal(size=3))
    for transform in (func.jacrev, func.jacfwd):
        j = transform(f, argnums=(0, 1))(x, y)
        assert j["a"][0].shape == (3, 2, 3) and j["a"][1].shape == (3, 3) and j["b"][0].shape == (2, 3) and j["b"][1].shape == (3,)
        close(j["a"][0], np.einsum("ij,k,i->ikj", np.eye(3), np.ones(2), y.numpy()))
        close(j["a"][1], np.diag(x.numpy().sum(0)))
        close(j["b"][0], np.zeros((2, 3)))
    j, aux = func.jacfwd(lambda x: (x * x, "aux"), has_aux=True)(y)
    assert aux == "aux" and j.shape == (3, 3)
    j, aux = func.jacrev(lambda x: (x * x, x), has_aux=True)(y)
    close(aux, y.numpy())
    assert func.jacrev(lambda x: x * 2)(t(3.0)).shape == () and func.jacfwd(lambda x: cg.stack([x, x]))(t(3.0)).tolist() == [1.0, 1.0]


def test_jacobians_of_nothing():
    x = cg.zeros(0, dtype=cg.float64)
    for transform in (func.jacrev, func.jacfwd, func.jacobian):
        assert transform(lambda x: x * 2)(x).shape == (0, 0)
        assert transform(lambda x: x.sum())(x).shape == (0,)


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def test_hessian_and_hvp_of_the_rosenbrock_function():
    from scipy import optimize

    v = RNG.normal(size=6)
    x, d = t(v), t(RNG.normal(size=6))
    h = func.hessian(rosenbrock)(x)
    close(h, optimize.rosen_hess(v), rtol=1e-10)
    g, product = func.hvp(rosenbrock, (x,), (d,))
    close(g, optimize.rosen_der(v), rtol=1e-10)
    close(product, optimize.rosen_hess(v) @ d.numpy(), rtol=1e-10)


def test_hessian_of_several_arguments_and_trees():
    f = lambda x, y: (x**2 * y).sum()
    x, y = t([1.0, 2.0]), t([3.0, 4.0])
    (xx, xy), (yx, yy) = func.hessian(f, argnums=(0, 1))(x, y)
    close(xx, np.diag([6, 8]))
    close(xy, np.diag([2, 4]))
    close(yx, np.diag([2, 4]))
    close(yy, np.zeros((2, 2)))
    h = func.hessian(lambda p: p["a"] ** 2 * p["b"])({"a": t(2.0), "b": t(3.0)})
    assert (h["a"]["a"].item(), h["a"]["b"].item(), h["b"]["a"].item(), h["b"]["b"].item()) == (6, 4, 4, 0)
    _, (pa, pb) = func.hvp(f, (x, y), (t([1.0, 0.0]), t([0.0, 1.0])))
    close(pa, [6, 4])
    close(pb, [2, 0])


def test_transformations_of_user_operators():
    class cube(cg.Op):
        def forward(self, x):
            self.x = x
            return x * x * x

        def backward(self, g):
            return g * 3 * self.x * self.x

    f = lambda x: cube()(x).sum()
    x = t([1.0, 2.0])
    close(func.grad(f)(x), [3, 12])
    close(func.jvp(lambda x: cube()(x), (x,), (t([1.0, 10.0]),))[1], [3, 120])
    close(func.hessian(f)(x), [[6, 0], [0, 12]])
    close(func.jacrev(func.jacrev(f))(x), [[6, 0], [0, 12]])


def test_transformations_of_checkpoints():
    f = lambda x: cg.checkpoint(lambda x: cg.sin(x) * x, x).sum()
    x = t([0.5, 1.5])
    v = x.numpy()
    close(func.grad(f)(x), np.sin(v) + v * np.cos(v))
    close(func.hessian(f)(x), np.diag(2 * np.cos(v) - v * np.sin(v)))
    close(func.jacrev(func.grad(f))(x), np.diag(2 * np.cos(v) - v * np.sin(v)))


# ------------------------------------------------------------------ modules as functions
def test_functional_call():
    net = cg.nn.Sequential(cg.nn.Linear(2, 2), cg.nn.Tanh())
    net[0].register_buffer("shift", cg.zeros(2))
    own = {k: v.clone() for k, v in net.state_dict().items()}
    p = {"0.weight": cg.eye(2), "0.bias": cg.zeros(2)}
    np.testing.assert_allclose(func.functional_call(net, p, cg.ones(1, 2)).numpy(), np.tanh(np.ones((1, 2))), rtol=1e-6)
    g = func.grad(lambda p: func.functional_call(net, p, (cg.ones(1, 2),)).sum())(p)
    np.testing.assert_allclose(g["0.bias"].numpy(), 1 - np.tanh(1) ** 2 * np.ones(2), rtol=1e-5)
    for k, v in net.state_dict().items():
        np.testing.assert_array_equal(v.numpy(), own[k].numpy())
    assert all(p.grad is None for p in net.parameters())
    with pytest.raises(ValueError, match="linear"):
        func.functional_call(net, p, cg.ones(1, 3))
    assert net[0].weight is dict(net.named_parameters())["0.weight"]
    for bad in ("0.nothing", "7.weight"):
        with pytest.raises(KeyError, match="functional_call"):
            func.functional_call(net, {bad: cg.ones(1)}, cg.ones(1, 2))


def test_shared_parameters_are_replaced_everywhere():
    a, b = cg.nn.Linear(1, 1, bias=False), cg.nn.Linear(1, 1, bias=False)
    b.weight = a.weight
    net = cg.nn.Sequential(a, b)
    assert func.functional_call(net, {"0.weight": cg.tensor([[3.0]])}, cg.ones(1, 1)).item() == 9.0
    assert b.weight is a.weight
    p = {"0.weight": cg.tensor([[3.0]])}
    assert func.functional_call(net, p, cg.ones(1, 1), tie_weights=False).item() == pytest.approx(3 * a.weight.item())
    assert func.functional_call(net, p, cg.ones(1, 1), strict=True).item() == 9.0
    with pytest.raises(KeyError, match=r"no values for \['bias'\] of Linear"):
        func.functional_call(cg.nn.Linear(1, 1), {"weight": cg.tensor([[3.0]])}, cg.ones(1, 1), strict=True)


def test_parameters_in_several_dicts():
    net = cg.nn.Linear(2, 1)
    p, q = {"weight": cg.tensor([[1.0, 2.0]])}, {"bias": cg.tensor([0.5])}
    assert func.functional_call(net, (p, q), cg.ones(1, 2)).item() == 3.5
    with pytest.raises(ValueError, match="'bias' was given twice"):
        func.functional_call(net, (p, q, q), cg.ones(1, 2))


def test_an_ensemble_is_a_map_over_stacked_modules():
    nets = [cg.nn.Sequential(cg.nn.Linear(3, 4), cg.nn.BatchNorm1d(4), cg.nn.Tanh(), cg.nn.Linear(4, 2)).double().eval() for _ in range(3)]
    parameters, buffers = func.stack_module_state(nets)
    assert parameters["0.weight"].shape == (3, 4, 3) and buffers["1.running_mean"].shape == (3, 4)
    assert all(p.requires_grad and p.is_leaf for p in parameters.values()) and not any(b.requires_grad for b in buffers.values())
    x, xs = t(RNG.normal(size=(5, 3))), t(RNG.normal(size=(3, 5, 3)))
    call = lambda p, b, x: func.functional_call(nets[0], (p, b), (x,))
    close(func.vmap(call, (0, 0, None))(parameters, buffers, x), np.stack([net(x).detach().numpy() for net in nets]))
    close(func.vmap(call)(parameters, buffers, xs), np.stack([net(a).detach().numpy() for net, a in zip(nets, xs)]))
    func.vmap(call, (0, 0, None))(parameters, buffers, x).square().sum().backward()
    for k, net in enumerate(nets):
        net(x).square().sum().backward()
        close(parameters["3.weight"].grad[k], net[3].weight.grad.numpy())
    nets = [net.train() for net in nets]
    func.vmap(call, (0, 0, None))(parameters, buffers, x)                               # each module keeps its own running averages
    for k, net in enumerate(nets):
        net(x)
        close(buffers["1.running_mean"][k], net[1].running_mean.numpy())
    assert buffers["1.num_batches_tracked"].tolist() == [1, 1, 1]
    for bad, text in [([], "at least one module"), ([nets[0], cg.nn.Tanh()], "of one class, got Sequential and, as number 1, Tanh"),
                      ([cg.nn.Linear(2, 1), cg.nn.Linear(2, 1).eval()], "number 1 differs"),
                      ([cg.nn.Linear(2, 1), cg.nn.Linear(2, 1, bias=False)], r"module 1 has other parameters or buffers than the first: \['bias'\]"),
                      ([cg.nn.Linear(2, 1), cg.nn.Linear(3, 1)], r"'weight' of module 1 has shape \(1, 3\)")]:
        with pytest.raises(ValueError, match=text):
            func.stack_module_state(bad)


def test_what_grad_returns_is_a_function_like_any_other():
    def f(x, y, *, scale=1.0):
        """A product."""
        return x * y * scale

    g, v = cg.func.grad(f), cg.func.value_and_grad(f, (0, 1))
    assert callable(g) and g.__name__ == "grad(f)" and v.__name__ == "value_and_grad(f)" and g.__doc__ == "A product." and g.__wrapped__ is f
    assert str(inspect.signature(g)) == "(x, y, *, scale=1.0)" and repr(g) == "<function grad(f)>"
    x, y = cg.tensor(2.0), cg.tensor(3.0)
    assert g(x, y) == 3 and g(x, y, scale=2.0) == 6 and g(x, scale=cg.tensor(2.0), y=y) == 6
    assert v(x, y) == (6, (3, 2)) and v(x, y, scale=2.0) == (12, (6, 4))
    many = cg.func.grad(lambda *xs: sum(xs[1:], xs[0] * 5), (0, 19))
    assert many(*[x] * 1 + [cg.tensor(float(k)) for k in range(19)]) == (5, 1)
    with pytest.raises(TypeError, match="nothing"):
        g(x, y, nothing=1)

    class Model:
        def loss(self, x):
            return x * x * self.k
        slope = cg.func.grad(loss, 1)
        k = 4.0

    assert Model().slope(x) == 16 and Model.slope(Model(), x) == 16
    slopes, reference = cg.func.grad(f), weakref.ref(f)
    f.of = slopes                   # a cycle through the function
    del f, g, v, slopes
    gc.collect()
    assert reference() is None
    assert not x.requires_grad and x.grad is None and cg.is_grad_enabled()


@pytest.mark.filterwarnings("ignore:vmap")
def test_nested_derivatives_of_different_arguments_keep_no_graph():
    """What is differentiated inside lies in the graph of its derivative, but outside nobody asks for it."""
    class Twice(cg.Op):
        def forward(self, x, y):
            self.x, self.y = x, y
            return x * x * y

        def backward(self, g):
            return g * 2 * self.x * self.y, g * self.x * self.x

    def vmapped(f, x):
        return func.vmap(func.grad(lambda x: f(x).sum()))(cg.stack([x, x]))[0]

    x, y = cg.tensor([1.5, 2.0], dtype=cg.float64), cg.tensor([3.0, 0.5], dtype=cg.float64)
    one = cg.ones(2, dtype=cg.float64)
    ways = [lambda f, x: func.grad(lambda x: f(x).sum())(x), lambda f, x: func.vjp(f, x)[1](one), lambda f, x: func.jvp(f, (x,), (one,))[1],
            lambda f, x: func.linearize(f, x)[1](one), lambda f, x: func.jacrev(f)(x).sum(0), lambda f, x: func.jacfwd(f)(x).sum(0), vmapped]
    cases = [(lambda x, y: cg.exp(x * y), (1 + x * y) * cg.exp(x * y)), (cg.hypot, -x * y / cg.hypot(x, y) ** 3), (lambda x, y: Twice()(x, y), 2 * x),
             (cg.igammac, None)]
    for f, mixed in cases:
        found = [outer(lambda y: inner(lambda x: f(x, y), x), y) for inner in ways for outer in ways]     # noqa: B023
        assert not any(z.requires_grad for z in found)
        for z in found:
            np.testing.assert_allclose(z.numpy(), (found[0] if mixed is None else mixed).numpy(), rtol=1e-12)
    tracked = y.clone().requires_grad_()
    for inner in ways:
        z = inner(lambda x: cg.exp(x * tracked), x)
        assert z.requires_grad and cg.allclose(cg.autograd.grad(z.sum(), tracked)[0], cases[0][1])
    same, pull = func.vjp(lambda x: x, x)
    assert not same.requires_grad and (pull(one) == 1).all() and (pull(one) == 1).all() and (func.linearize(lambda x: x, x)[1](one) == 1).all()


def test_one_pullback_in_many_threads():
    x, one = cg.tensor([1.0, 2.0], dtype=cg.float64), cg.ones(2, dtype=cg.float64)
    _, pull = func.vjp(lambda x: (x, cg.exp(x) * x), x)
    _, push = func.linearize(lambda x: (x, cg.exp(x) * x), x)
    want, found = [1 + (1 + v) * math.exp(v) for v in (1, 2)], []

    def call():
        for _ in range(300):
            found.append(pull((one, one)).tolist())
            found.append((push(one)[0] + push(one)[1]).tolist())

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2400
    np.testing.assert_allclose(found, [want] * 2400, rtol=1e-12)
