"""Optimizers and schedules against NumPy writings of the papers' formulas."""
import copy
import inspect
import math
import pickle

import numpy as np
import pytest

import cgrad as cg
from cgrad import nn, optim

P = np.array([1.0, -2.0, 0.5])
GRADS = [np.array([0.5, -1.0, 1e-9]), np.array([-0.25, 3.0, 0.0]), np.array([0.125, -0.5, 2.0]), np.array([0.0, 0.1, -1.0])]


def sgd(p, grads, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False):
    b = None
    for g in grads:
        g = (-g if maximize else g) + weight_decay * p
        if momentum:
            b = g.copy() if b is None else momentum * b + (1 - dampening) * g
            g = g + momentum * b if nesterov else b
        p = p - lr * g
    return p


def adam(p, grads, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, maximize=False, decoupled=False):
    (b1, b2), m, v, top = betas, 0.0, 0.0, np.zeros_like(p)
    for t, g in enumerate(grads, 1):
        g = -g if maximize else g
        if decoupled:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        top = np.maximum(top, v)
        p = p - lr * (m / (1 - b1**t)) / (np.sqrt((top if amsgrad else v) / (1 - b2**t)) + eps)
    return p


def adamw(p, grads, lr, weight_decay=0.01, **options):
    return adam(p, grads, lr, weight_decay=weight_decay, decoupled=True, **options)


def rmsprop(p, grads, lr, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False, maximize=False):
    v, mean, b = 0.0, 0.0, 0.0
    for g in grads:
        g = (-g if maximize else g) + weight_decay * p
        v, mean = alpha * v + (1 - alpha) * g * g, alpha * mean + (1 - alpha) * g
        b = momentum * b + g / (np.sqrt(v - mean**2 if centered else v) + eps)
        p = p - lr * b
    return p


def nadam(p, grads, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, momentum_decay=4e-3, decoupled_weight_decay=False, maximize=False):
    (b1, b2), m, v, product = betas, 0.0, 0.0, 1.0
    for t, g in enumerate(grads, 1):
        g = -g if maximize else g
        if decoupled_weight_decay:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        mu, following = (b1 * (1 - 0.96 ** (k * momentum_decay) / 2) for k in (t, t + 1))
        product *= mu
        mean = following * m / (1 - product * following) + (1 - mu) * g / (1 - product)
        p = p - lr * mean / (np.sqrt(v / (1 - b2**t)) + eps)
    return p


def radam(p, grads, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, decoupled_weight_decay=False, maximize=False):
    (b1, b2), m, v = betas, 0.0, 0.0
    longest = 2 / (1 - b2) - 1
    for t, g in enumerate(grads, 1):
        g = -g if maximize else g
        if decoupled_weight_decay:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        rho = longest - 2 * t * b2**t / (1 - b2**t)
        scale = 1.0
        if rho > 5:
            scale = np.sqrt((rho - 4) * (rho - 2) * longest / ((longest - 4) * (longest - 2) * rho)) * np.sqrt(1 - b2**t) / (np.sqrt(v) + eps)
        p = p - lr * m / (1 - b1**t) * scale
    return p


def adamax(p, grads, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, maximize=False):
    (b1, b2), m, u = betas, 0.0, 0.0
    for t, g in enumerate(grads, 1):
        g = (-g if maximize else g) + weight_decay * p
        m, u = b1 * m + (1 - b1) * g, np.maximum(b2 * u, abs(g) + eps)
        p = p - lr / (1 - b1**t) * m / u
    return p


def adagrad(p, grads, lr, lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0, eps=1e-10, maximize=False):
    s = initial_accumulator_value
    for t, g in enumerate(grads):
        g = (-g if maximize else g) + weight_decay * p
        s = s + g * g
        p = p - lr / (1 + t * lr_decay) * g / (np.sqrt(s) + eps)
    return p


def adadelta(p, grads, lr, rho=0.9, eps=1e-6, weight_decay=0.0, maximize=False):
    v, u = 0.0, 0.0
    for g in grads:
        g = (-g if maximize else g) + weight_decay * p
        v = rho * v + (1 - rho) * g * g
        d = np.sqrt(u + eps) / np.sqrt(v + eps) * g
        u = rho * u + (1 - rho) * d * d
        p = p - lr * d
    return p


def rprop(p, grads, lr, etas=(0.5, 1.2), step_sizes=(1e-6, 50.0), maximize=False):
    before, size = np.zeros_like(p), np.full_like(p, lr)
    for g in grads:
        g = -g if maximize else g
        agree = g * before
        size = np.clip(size * np.where(agree > 0, etas[1], np.where(agree < 0, etas[0], 1.0)), *step_sizes)
        g = np.where(agree < 0, 0.0, g)
        p, before = p - np.sign(g) * size, g
    return p


def asgd(p, grads, lr, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0.0, maximize=False):
    eta = lr
    for t, g in enumerate(grads, 1):
        g = (-g if maximize else g) + weight_decay * p
        p = p * (1 - lambd * eta) - eta * g
        eta = lr / (1 + lambd * lr * t) ** alpha
    return p


FORMULAS = {"SGD": sgd, "Adam": adam, "AdamW": adamw, "NAdam": nadam, "RAdam": radam, "Adamax": adamax, "Adagrad": adagrad, "Adadelta": adadelta,
            "RMSprop": rmsprop, "Rprop": rprop, "ASGD": asgd}
CASES = [
    ("SGD", {}), ("SGD", {"momentum": 0.9}), ("SGD", {"momentum": 0.9, "dampening": 0.5}), ("SGD", {"momentum": 0.9, "nesterov": True}),
    ("SGD", {"momentum": 0.9, "weight_decay": 0.1, "maximize": True}),
    *[(name, options) for name in ("Adam", "AdamW", "NAdam", "RAdam", "Adamax") for options in (
        {}, {"weight_decay": 0.1}, {"maximize": True}, {"betas": (0.5, 0.7), "eps": 1e-3}, {"betas": (0.0, 0.0)})],
    *[(name, {"amsgrad": True}) for name in ("Adam", "AdamW")], ("Adam", {"amsgrad": True, "betas": (0.4, 0.7)}),
    *[(name, {"decoupled_weight_decay": True, "weight_decay": 0.1}) for name in ("NAdam", "RAdam")], ("NAdam", {"momentum_decay": 0.1}),
    ("Adagrad", {}), ("Adagrad", {"lr_decay": 0.5, "weight_decay": 0.1, "initial_accumulator_value": 2.0}), ("Adagrad", {"maximize": True, "eps": 0.1}),
    ("Adadelta", {}), ("Adadelta", {"rho": 0.5, "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {}), ("RMSprop", {"momentum": 0.9, "weight_decay": 0.1}), ("RMSprop", {"centered": True, "alpha": 0.5}),
    ("RMSprop", {"maximize": True, "centered": True, "momentum": 0.5}),
    ("Rprop", {}), ("Rprop", {"etas": (0.25, 2.0), "step_sizes": (0.05, 0.3), "maximize": True}),
    ("ASGD", {}), ("ASGD", {"lambd": 0.1, "alpha": 0.5, "t0": 1, "weight_decay": 0.1}), ("ASGD", {"maximize": True}),
]


def leaf(values):
    return cg.tensor(np.array(values, dtype=np.float64), requires_grad=True)


def run(opt, p, grads):
    for g in grads:
        p.grad = cg.tensor(g)
        opt.step()
    return p.detach().numpy().copy()


@pytest.mark.parametrize(("name", "options"), CASES, ids=[f"{n}{o or ''}" for n, o in CASES])
def test_steps_follow_the_formula(name, options):
    p = leaf(P)
    got = run(getattr(optim, name)([p], lr=0.1, **options), p, GRADS)
    np.testing.assert_allclose(got, FORMULAS[name](P, GRADS, 0.1, **options), rtol=1e-12)
    assert p.is_leaf and p.requires_grad


@pytest.mark.parametrize(("name", "options"), CASES, ids=[f"{n}{o or ''}" for n, o in CASES])
@pytest.mark.parametrize("before", [0, 2])
def test_training_goes_on_exactly_from_a_state_dict(name, options, before):
    make = getattr(optim, name)
    p = leaf(P)
    whole = run(make([p], lr=0.1, **options), p, GRADS)
    p = leaf(P)
    opt = make([p], lr=0.1, **options)
    run(opt, p, GRADS[:before])
    state = pickle.loads(pickle.dumps(opt.state_dict()))
    q = leaf(p.detach().numpy())
    other = make([q], lr=7.0)
    other.load_state_dict(state)
    np.testing.assert_array_equal(run(other, q, GRADS[before:]), whole)


def test_states_do_not_share_memory():
    p, q = leaf(P), leaf(P)
    a, b = optim.Adam([p]), optim.Adam([q])
    run(a, p, GRADS[:1])
    b.load_state_dict(a.state_dict())
    before = b.state[q]["exp_avg"].numpy().copy()
    run(a, p, GRADS[1:])
    np.testing.assert_array_equal(b.state[q]["exp_avg"].numpy(), before)


def test_the_layout_of_the_state_is_pytorchs():
    p, q = leaf([1.0]), leaf([2.0])
    opt = optim.Adam([{"params": [p]}, {"params": [q], "lr": 0.5}], lr=0.1)
    q.grad = cg.tensor([1.0], dtype=cg.float64)
    opt.step()
    state = opt.state_dict()
    assert set(state) == {"state", "param_groups"} and list(state["state"]) == [1]
    assert set(state["state"][1]) == {"step", "exp_avg", "exp_avg_sq"}
    assert [g["params"] for g in state["param_groups"]] == [[0], [1]] and state["param_groups"][1]["lr"] == 0.5


def test_a_step_saved_as_a_tensor_is_read():
    p = leaf(P)
    opt = optim.Adam([p], lr=0.1)
    run(opt, p, GRADS[:2])
    state = opt.state_dict()
    state["state"][0]["step"] = cg.tensor(2.0)
    opt.load_state_dict(state)
    np.testing.assert_allclose(run(opt, p, GRADS[2:]), adam(P, GRADS, 0.1), rtol=1e-12)


def test_loading_what_does_not_fit_changes_nothing():
    p = leaf(P)
    opt = optim.SGD([p], lr=0.1, momentum=0.9)
    run(opt, p, GRADS[:1])
    before = copy.deepcopy(opt.state_dict())
    wrong_count = optim.SGD([leaf(P), leaf(P)], lr=0.3).state_dict()
    wrong_shape = copy.deepcopy(before)
    wrong_shape["state"][0]["momentum_buffer"] = cg.zeros(4)
    wrong_shape["param_groups"][0]["lr"] = 0.7
    wrong_option = copy.deepcopy(before)
    wrong_option["param_groups"][0]["lr"] = -1.0
    for bad in (wrong_count, wrong_shape, wrong_option, {}, None):
        with pytest.raises(ValueError, match="SGD"):
            opt.load_state_dict(bad)
        assert opt.param_groups[0]["lr"] == 0.1
        np.testing.assert_array_equal(opt.state[p]["momentum_buffer"].numpy(), before["state"][0]["momentum_buffer"].numpy())


@pytest.mark.parametrize("name", FORMULAS)
def test_a_parameter_without_a_gradient_stays(name):
    p, q = leaf([1.0]), leaf([1.0])
    opt = getattr(optim, name)([p, q], lr=0.1, **({} if name == "Rprop" else {"weight_decay": 0.5}))
    p.grad = cg.tensor([1.0], dtype=cg.float64)
    opt.step()
    assert q.item() == 1.0 and p.item() != 1.0 and q not in opt.state


@pytest.mark.parametrize(("name", "options"), CASES, ids=[f"{n}{o or ''}" for n, o in CASES])
def test_parameters_that_begin_later_and_a_rate_in_a_tensor(name, options):
    """Each parameter counts its own steps."""
    p, q = leaf(P), leaf(P[::-1])
    opt = getattr(optim, name)([p, q], lr=cg.tensor(0.125), **options)
    for k, g in enumerate(GRADS):
        p.grad, q.grad = cg.tensor(g), cg.tensor(g[::-1].copy()) if k > 1 else None
        opt.step()
    np.testing.assert_allclose(p.detach().numpy(), FORMULAS[name](P, GRADS, 0.125, **options), rtol=1e-12)
    np.testing.assert_allclose(q.detach().numpy()[::-1], FORMULAS[name](P, GRADS[2:], 0.125, **options), rtol=1e-12)


@pytest.mark.parametrize("name", FORMULAS)
def test_not_a_number_is_not_hidden(name):
    p = leaf([1.0, 1.0, 1.0])
    getattr(optim, name)([p], lr=0.1)
    opt = getattr(optim, name)([p], lr=0.1)
    for _ in range(2):
        p.grad = cg.tensor([np.nan, 1.0, 0.0], dtype=cg.float64)
        opt.step()
    assert np.isnan(p.detach().numpy()).tolist() == [True, False, False]


def test_an_average_begins_at_t0():
    p = leaf(P)
    opt = optim.ASGD([p], lr=0.1, lambd=0.0, t0=1)
    seen = []
    for g in GRADS:
        p.grad = cg.tensor(g)
        opt.step()
        seen.append(p.detach().numpy().copy())
    np.testing.assert_allclose(opt.state[p]["ax"].numpy(), np.mean(seen[2:], axis=0), rtol=1e-12)


def test_amsgrad_may_be_switched_on_later():
    p = leaf(P)
    opt = optim.Adam([p], lr=0.1)
    run(opt, p, GRADS[:2])
    opt.param_groups[0]["amsgrad"] = True
    run(opt, p, GRADS[2:])
    assert set(opt.state[p]) == {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"} and opt.state[p]["step"] == 4


def test_groups_have_their_own_options():
    p, q = leaf([1.0]), leaf([1.0])
    opt = optim.SGD([{"params": [p], "lr": 0.5}, {"params": q}], lr=0.1)
    p.grad = q.grad = cg.tensor([1.0], dtype=cg.float64)
    opt.step()
    assert (p.item(), q.item()) == (0.5, 0.9)
    opt.param_groups[1]["lr"] = 1.0
    opt.step()
    assert q.item() == pytest.approx(-0.1)
    r = leaf([1.0])
    opt.add_param_group({"params": r, "momentum": 0.9})
    assert [g["momentum"] for g in opt.param_groups] == [0.0, 0.0, 0.9]


def test_zero_grad_forgets_or_fills():
    p = leaf(P)
    opt = optim.SGD([p])
    p.grad = cg.tensor(GRADS[0])
    opt.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0, 0.0, 0.0]
    opt.zero_grad()
    assert p.grad is None


def test_a_closure_is_called_with_recording_on():
    p = leaf(P)
    opt = optim.SGD([p], lr=0.1)

    def closure():
        opt.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with cg.no_grad():
        loss = opt.step(closure)
    assert loss.item() == (P**2).sum()
    np.testing.assert_allclose(p.detach().numpy(), 0.8 * P)


def test_names_may_come_with_parameters():
    net = nn.Linear(2, 1)
    opt = optim.SGD(net.named_parameters(), lr=0.1)
    assert opt.param_groups[0]["params"][0] is net.weight


def test_bad_parameters_are_refused():
    p = leaf(P)
    for bad, error, text in [
        ([], ValueError, "empty"), (p, TypeError, "list"), ([p * 2], ValueError, "no leaf"), ([3.0], TypeError, "float"),
        ([cg.tensor([1])], ValueError, "int64"), ([p, p], ValueError, "twice"), ([{"params": [p]}, {"params": [p]}], ValueError, "twice"),
        ([p, p.detach().requires_grad_()], ValueError, "share memory"), ([{"params": [p]}, {"params": [p.detach()[1:]]}], ValueError, "share memory"),
        ([{"lr": 0.1}], TypeError, "params"), ({"params": [p]}, TypeError, "list"), ([{"params": {p}}], TypeError, "order"),
    ]:
        with pytest.raises(error, match=text):
            optim.SGD(bad, lr=0.1)


@pytest.mark.parametrize(("name", "options"), [
    ("SGD", {"lr": -1.0}), ("SGD", {"momentum": -0.1}), ("SGD", {"weight_decay": -1.0}), ("SGD", {"nesterov": True}), ("SGD", {"lr": math.nan}),
    ("SGD", {"nesterov": True, "momentum": 0.9, "dampening": 0.1}), ("Adam", {"lr": -1.0}), ("Adam", {"eps": -1.0}), ("Adam", {"betas": (1.0, 0.9)}),
    ("Adam", {"betas": (0.9, -0.1)}), ("AdamW", {"weight_decay": -1.0}), ("RMSprop", {"alpha": -1.0}), ("RMSprop", {"momentum": -1.0}),
    ("NAdam", {"momentum_decay": -1.0}), ("RAdam", {"betas": (0.9, 1.0)}), ("Adamax", {"eps": -1.0}), ("Adagrad", {"lr_decay": -1.0}),
    ("Adadelta", {"rho": 1.5}), ("Rprop", {"etas": (0.5, 0.9)}), ("Rprop", {"step_sizes": (2.0, 1.0)}), ("ASGD", {"lr": cg.tensor(-1.0)}),
])
def test_bad_options_are_refused(name, options):
    with pytest.raises(ValueError, match=name.removesuffix("W")):
        getattr(optim, name)([leaf(P)], **options)


@pytest.mark.parametrize("name", FORMULAS)
def test_words_for_other_devices_are_read(name):
    words = {"foreach": False, "fused": True, "capturable": True, "differentiable": False}
    taken = {k: v for k, v in words.items() if k in inspect.signature(getattr(optim, name)).parameters}
    assert {"foreach", "differentiable"} <= set(taken)
    assert not set(words) & set(getattr(optim, name)([leaf(P)], **taken).param_groups[0])
    with pytest.raises(ValueError, match=f"{name}: steps are not recorded"):
        getattr(optim, name)([leaf(P)], differentiable=True)


def test_an_optimizer_needs_an_update():
    opt = optim.Optimizer([leaf(P)], {})
    with pytest.raises(NotImplementedError, match="update"):
        opt.step()
    assert "Parameter Group 0" in repr(optim.SGD([leaf(P)])) and "momentum: 0.0" in repr(optim.SGD([leaf(P)]))


# ------------------------------------------------------------------ all together
@pytest.mark.parametrize("make", [lambda p: optim.SGD(p, lr=0.1, momentum=0.9), lambda p: optim.Adam(p, lr=0.05), lambda p: optim.AdamW(p, lr=0.05),
                                  lambda p: optim.RMSprop(p, lr=0.02)])
def test_a_small_network_learns(make):
    cg.manual_seed(0)
    x = cg.randn(64, 2)
    y = (x[:, 0] * x[:, 1] > 0).long()
    net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
    opt = make(net.parameters())
    for _ in range(300):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        opt.step()
    assert float((net(x).argmax(1) == y).float().mean()) > 0.95


# ------------------------------------------------------------------ L-BFGS and Muon
def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def minimise(opt, loss, steps=1):
    calls = []

    def closure():
        opt.zero_grad()
        value = loss()
        value.backward()
        calls.append(value.item())
        return value

    first = [opt.step(closure).item() for _ in range(steps)]
    return first, calls


def test_lbfgs_finds_the_minimum_of_rosenbrocks_valley():
    from scipy import optimize

    start = np.array([-1.2, 1.0, -0.5, 0.8, 1.5])
    x = leaf(start)
    opt = optim.LBFGS([x], max_iter=200, max_eval=400, line_search_fn="strong_wolfe", tolerance_grad=1e-9, tolerance_change=1e-14)
    (first,), calls = minimise(opt, lambda: rosenbrock(x))
    assert first == pytest.approx(optimize.rosen(start)) and opt.state[x]["func_evals"] == len(calls)
    want = optimize.minimize(optimize.rosen, start, jac=optimize.rosen_der, method="BFGS", options={"gtol": 1e-9}).x
    np.testing.assert_allclose(x.detach().numpy(), want, atol=1e-6)


def test_lbfgs_on_a_quadratic():
    """The first step goes lr / (1-norm of the gradient) along the gradient."""
    a = np.diag([1.0, 4.0, 9.0])
    x = leaf([1.0, -2.0, 3.0])
    opt = optim.LBFGS([x], lr=0.5, max_iter=1)
    g = a @ x.detach().numpy()
    minimise(opt, lambda: (x @ cg.tensor(a) @ x) / 2)
    np.testing.assert_allclose(x.detach().numpy(), [1.0, -2.0, 3.0] - g * 0.5 * min(1.0, 1 / abs(g).sum()), rtol=1e-12)
    opt = optim.LBFGS([x], line_search_fn="strong_wolfe", max_iter=30)
    minimise(opt, lambda: (x @ cg.tensor(a) @ x) / 2)
    np.testing.assert_allclose(x.detach().numpy(), 0, atol=1e-5)


def test_lbfgs_steps_follow_the_two_loops_written_as_matrices():
    """Without a line search: H from BFGS updates of a scaled identity, as the textbook writes it."""
    a = np.array([[3.0, 1.0], [1.0, 2.0]])
    x = leaf([1.0, -2.0])
    opt = optim.LBFGS([x], lr=0.3, max_iter=4, tolerance_change=0)
    minimise(opt, lambda: (x @ cg.tensor(a) @ x) / 2)
    p, pairs = np.array([1.0, -2.0]), []
    before = d = t = None
    for k in range(4):
        g = a @ p
        if k == 0:
            d, t = -g, 0.3 * min(1, 1 / abs(g).sum())
        else:
            pairs.append((g - before, d * t))
            h = np.eye(2) * (pairs[-1][0] @ pairs[-1][1]) / (pairs[-1][0] @ pairs[-1][0])
            for y, s in pairs:
                v = np.eye(2) - np.outer(y, s) / (y @ s)
                h = v.T @ h @ v + np.outer(s, s) / (y @ s)
            d, t = -h @ g, 0.3
        before, p = g, p + t * d
    np.testing.assert_allclose(x.detach().numpy(), p, rtol=1e-12)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_goes_on_exactly_and_forgets_old_pairs(search):
    def make(values):
        x, y = leaf(values[:2]), leaf(values[2:])
        opt = optim.LBFGS([x, y], lr=0.1 if search is None else 1.0, max_iter=3, history_size=2, line_search_fn=search)
        return x, y, opt, lambda: rosenbrock(cg.concat([x, y]))

    x, y, opt, loss = make(np.array([-1.2, 1.0, 0.5]))
    minimise(opt, loss, 4)
    assert len(opt.state[x]["old_dirs"]) == 2
    state = pickle.loads(pickle.dumps(opt.state_dict()))
    x2, y2, other, loss2 = make(np.concatenate([x.detach().numpy(), y.detach().numpy()]))
    other.load_state_dict(state)
    assert minimise(opt, loss, 3) == minimise(other, loss2, 3)
    np.testing.assert_array_equal(x.detach().numpy(), x2.detach().numpy())
    np.testing.assert_array_equal(y.detach().numpy(), y2.detach().numpy())
    state["state"][0]["d"] = cg.zeros(4)
    with pytest.raises(ValueError, match="vector of 3 elements"):
        other.load_state_dict(state)


def test_lbfgs_ends_where_the_loss_is_flat_infinite_or_not_a_number():
    x = leaf([0.0, 0.0])
    _, calls = minimise(optim.LBFGS([x]), lambda: (x * x).sum())
    assert len(calls) == 1
    x = leaf([0.5])
    _, calls = minimise(optim.LBFGS([x], line_search_fn="strong_wolfe", max_iter=50), lambda: (1 / x - cg.log(x) * 2 + x * x).sum())    # a wall at 0
    assert x.item() == pytest.approx(cg.tensor(x.item()).item()) and abs(-1 / x.item() ** 2 - 2 / x.item() + 2 * x.item()) < 1e-6
    x = leaf([1.0])
    for search in (None, "strong_wolfe"):
        _, calls = minimise(optim.LBFGS([x], line_search_fn=search), lambda: (x * np.nan).sum())
        assert len(calls) < 30


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_climbs_as_it_descends(search):
    ends = []
    for sign in (1.0, -1.0):
        x = leaf([-1.2, 1.0])
        opt = optim.LBFGS([x], lr=0.1 if search is None else 1.0, max_iter=15, line_search_fn=search, maximize=sign < 0)
        first, calls = minimise(opt, lambda: sign * rosenbrock(x), 2)
        assert first[0] == pytest.approx(sign * 24.2) and sign * calls[-1] < 4.2
        ends.append(x.detach().numpy())
    np.testing.assert_array_equal(*ends)


def test_lbfgs_is_refused_where_it_cannot_work():
    p = leaf(P)
    opt = optim.LBFGS([p])
    with pytest.raises(TypeError, match="closure"):
        opt.step()
    with pytest.raises(ValueError, match="one parameter group"):
        opt.add_param_group({"params": leaf([1.0])})
    with pytest.raises(ValueError, match="line_search_fn"):
        optim.LBFGS([p], line_search_fn="armijo")


def newton_schulz(x, steps=5, coefficients=(3.4445, -4.775, 2.0315)):
    """On singular values: each is mapped by the odd polynomial a s + b s^3 + c s^5."""
    u, s, vt = np.linalg.svd(x, full_matrices=False)
    s = s / np.linalg.norm(x)
    a, b, c = coefficients
    for _ in range(steps):
        s = a * s + b * s**3 + c * s**5
    return u @ np.diag(s) @ vt


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4)])
@pytest.mark.parametrize(("nesterov", "adjust"), [(True, None), (False, "match_rms_adamw")])
def test_muon(shape, nesterov, adjust):
    rng = np.random.default_rng(0)
    w = rng.standard_normal(shape)
    p, b = leaf(w), np.zeros(shape)
    opt = optim.Muon([p], lr=0.02, momentum=0.9, nesterov=nesterov, adjust_lr_fn=adjust)
    for _ in range(3):
        g = rng.standard_normal(shape)
        p.grad = cg.tensor(g)
        opt.step()
        b = b + 0.1 * (g - b)
        rate = 0.02 * (math.sqrt(max(1, shape[0] / shape[1])) if adjust is None else 0.2 * math.sqrt(max(shape)))
        w = w * (1 - 0.02 * 0.1) - rate * newton_schulz(g + 0.9 * (b - g) if nesterov else b)
    np.testing.assert_allclose(p.detach().numpy(), w, rtol=1e-9)
    state = pickle.loads(pickle.dumps(opt.state_dict()))
    q = leaf(p.detach().numpy())
    other = optim.Muon([q], maximize=True)           # the state says otherwise
    other.load_state_dict(state)
    p.grad = q.grad = cg.tensor(g)
    opt.step()
    other.step()
    np.testing.assert_array_equal(p.detach().numpy(), q.detach().numpy())


def test_muon_climbs():
    w, g = np.arange(6.0).reshape(2, 3), np.array([[1.0, -2.0, 0.5], [0.25, 1.0, -1.0]])
    p = leaf(w)
    p.grad = cg.tensor(g)
    optim.Muon([p], lr=0.02, weight_decay=0.0, maximize=True).step()
    np.testing.assert_allclose(p.detach().numpy(), w + 0.02 * newton_schulz(g), rtol=1e-9)


def test_muon_takes_matrices_only_and_zeros():
    with pytest.raises(ValueError, match=r"matrices, got one of shape \(3,\)"):
        optim.Muon([leaf(P)])
    p = leaf(np.ones((2, 3)))
    p.grad = cg.zeros((2, 3), dtype=cg.float64)
    optim.Muon([p], lr=0.1, weight_decay=0.0).step()
    assert p.tolist() == [[1.0] * 3] * 2


# ------------------------------------------------------------------ hooks, clipping
def test_hooks_around_a_step():
    p = leaf(P)
    opt, calls = optim.SGD([p], lr=0.1), []
    before = opt.register_step_pre_hook(lambda o, args, kwargs: calls.append(("before", o is opt, args, kwargs)))
    opt.register_step_post_hook(lambda o, args, kwargs: calls.append(("after", o is opt, args, kwargs)))
    p.grad = cg.tensor(GRADS[0])
    opt.step()
    before.remove()
    opt.step()
    assert calls == [("before", True, (None,), {}), ("after", True, (None,), {}), ("after", True, (None,), {})]
    opt.register_step_pre_hook(lambda o, args, kwargs: ((lambda: 7.0,), {}))
    assert opt.step() == 7.0
    pickle.dumps(optim.SGD([p]).state_dict())


@pytest.mark.parametrize("dtype", [cg.float32, cg.float64, cg.float16, cg.bfloat16])
def test_clipping_of_every_layout(dtype):
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(shape) for shape in [(3, 4), (0,), (), (40000,), (7,)]]
    params = [cg.tensor(v, dtype=dtype, requires_grad=True) for v in values]
    for p, v in zip(params, values, strict=True):
        p.grad = cg.tensor(v, dtype=dtype)
    params[0].grad = cg.tensor(values[0].T.copy(), dtype=dtype).T
    exact = [p.grad.double().numpy().copy() for p in params]
    norm = math.sqrt(sum((v * v).sum() for v in exact))
    tolerance = {cg.float16: 2e-3, cg.bfloat16: 2e-2}.get(dtype, 1e-6)
    assert nn.utils.clip_grad_norm_(params, 2.0).item() == pytest.approx(norm, rel=1e-6)
    for p, v in zip(params, exact, strict=True):
        np.testing.assert_allclose(p.grad.double().numpy(), v * 2.0 / norm, rtol=tolerance, atol=1e-6)
    scaled = [p.grad.double().numpy().copy() for p in params]
    nn.utils.clip_grad_value_(params, 0.0078125)
    for p, v in zip(params, scaled, strict=True):
        np.testing.assert_array_equal(p.grad.double().numpy(), np.clip(v, -0.0078125, 0.0078125))


def test_clipping_large_and_missing_numbers():
    p = cg.tensor([0.0, 0.0], dtype=cg.float16, requires_grad=True)
    p.grad = cg.tensor([60000.0, 60000.0], dtype=cg.float16)
    assert nn.utils.clip_grad_norm_([p], 1.0).item() == pytest.approx(60000 * math.sqrt(2), rel=1e-3)
    np.testing.assert_allclose(p.grad.float().numpy(), math.sqrt(0.5), rtol=1e-3)
    q = leaf([0.0, 0.0])
    q.grad = cg.tensor([np.nan, 3.0], dtype=cg.float64)
    nn.utils.clip_grad_value_([q], 1.0)
    assert np.isnan(q.grad[0].item()) and q.grad[1].item() == 1.0
    frozen = np.ones(2)
    frozen.flags.writeable = False
    q.grad = cg.from_numpy(frozen)
    with pytest.raises(ValueError, match="read-only"):
        nn.utils.clip_grad_value_([q], 0.5)
