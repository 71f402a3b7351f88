"""checkpoint_sequential, checkpoint_budget, and what the tape lets go of while backward runs."""
import itertools
import math

import numpy as np
import pytest

import cgrad as cg
from cgrad.autograd import budget
from cgrad.autograd.budget import _Piece

nn = cg.nn


def live():
    return cg.memory.stats()["live_bytes"]


def leaf(values):
    return cg.tensor(values, dtype=cg.float64, requires_grad=True)


def network(depth=8, width=16, dropout=0.0):
    cg.manual_seed(0)
    layers = ([nn.Linear(width, width), nn.Tanh()] + [nn.Dropout(dropout)] * (dropout > 0) for _ in range(depth))
    return nn.Sequential(*itertools.chain(*layers))


def gradients(net, f, x):
    cg.manual_seed(1)
    out = f(x)
    out.square().sum().backward()
    found = [out.detach().numpy()] + [p.grad.numpy() for p in net.parameters()]
    net.zero_grad()
    return found


# ------------------------------------------------------------------ the tape itself
def test_what_is_saved_is_freed_as_soon_as_its_last_reader_has_run():
    """In a chain of n squares backward holds ever less: seen from hooks on the way."""
    seen, n, size = [], 20, 10_000
    x = cg.ones(size, requires_grad=True)
    y, before = x * 1.0, live()
    for _ in range(n):
        y = y.square()
        y.register_hook(lambda g: seen.append(live() - before))
    y.sum().backward()
    steps = -np.diff(seen)
    assert len(seen) == n
    assert seen[0] >= (n - 1) * 4 * size
    assert (steps[1:-1] >= 4 * size).all(), steps            # one block with each node


def test_a_value_with_two_readers_stays_for_the_second():
    x = cg.ones(10_000, requires_grad=True)
    before, seen = live(), []
    y = x.exp()                             # read by its own rule and by that of sin
    z = y.sin()
    y.register_hook(lambda g: seen.append(live() - before))
    del y
    z.sum().backward()
    del z
    assert seen[0] >= 80_000                # exp's result and a gradient
    x.grad = None
    assert live() == before


# ------------------------------------------------------------------ checkpoint_sequential
@pytest.mark.parametrize("segments", [1, 2, 3, 8, 24])
def test_segments_change_no_bit(segments):
    net, x = network(dropout=0.2), cg.randn(5, 16)
    for got, want in zip(gradients(net, lambda x: cg.checkpoint_sequential(net, segments, x), x), gradients(net, net, x)):
        np.testing.assert_array_equal(got, want)


def test_every_segment_but_the_last_is_computed_twice():
    calls = []

    def step(k):
        def f(x):
            calls.append(k)
            return x.sin()
        return f

    x = leaf([0.5])
    cg.checkpoint_sequential([step(k) for k in range(5)], 2, x).backward()
    assert calls[:5] == [0, 1, 2, 3, 4] and set(calls[5:]) <= {0, 1}
    y = 0.5
    want = 1.0
    for _ in range(5):
        want, y = want * math.cos(y), math.sin(y)
    assert x.grad.item() == pytest.approx(want, rel=1e-14)


def test_segments_that_cannot_be():
    for segments in (0, 3, -1, 1.0, True, None):
        with pytest.raises(ValueError, match="2 functions cannot be cut"):
            cg.checkpoint_sequential([cg.sin, cg.exp], segments, leaf([1.0]))
    x = leaf([1.0])
    assert cg.checkpoint_sequential([], 1, x) is x


def test_segments_to_second_order_and_in_forward_mode():
    f = lambda x: cg.checkpoint_sequential([cg.sin, cg.exp, cg.tanh, cg.sin], 2, x)
    assert cg.autograd.gradcheck(f, (leaf([0.3, -0.7]),), check_forward_ad=True)
    assert cg.autograd.gradgradcheck(f, (leaf([0.3, -0.7]),))


# ------------------------------------------------------------------ checkpoint_budget
def kept_by(f, x):
    before = live()
    graph = f(x).grad_fn
    return live() - before, graph


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_the_tape_stays_within_the_budget(dropout):
    net, x = network(depth=12, width=32, dropout=dropout), cg.randn(64, 32)
    whole = kept_by(net, x)[0]
    want = gradients(net, net, x)
    for share in (1.0, 0.8, 0.6, 0.5):
        f = cg.checkpoint_budget(net, int(share * whole))
        gradients(net, f, x)
        assert kept_by(f, x)[0] <= share * whole, f.plan
        assert any(recomputed for *_, recomputed in f.plan) == (share < 1)
        for got, expected in zip(gradients(net, f, x), want):
            np.testing.assert_array_equal(got, expected)


def test_a_budget_that_cannot_be_met_says_what_could():
    net, x = network(depth=9, width=32), cg.randn(64, 32)
    with pytest.raises(ValueError, match=r"needs at least (\d+)") as caught:
        cg.checkpoint_budget(net, 100)(x)
    least = int(str(caught.value).split("at least ")[1].split()[0])
    assert kept_by(cg.checkpoint_budget(net, least), x)[0] <= least
    with pytest.raises(ValueError, match="needs at least"):
        cg.checkpoint_budget(net, least - 1)(x)


def test_a_budget_counts_what_own_operations_keep():
    class keeps_much(cg.Op):
        def forward(self, x):
            self.x, self.more = x, cg.ones(10_000)
            return x.sin()

        def backward(self, g):
            return g * self.x.cos()

    x = cg.ones(64, requires_grad=True)
    with pytest.raises(ValueError, match="at least 4"):
        cg.checkpoint_budget([cg.exp, lambda x: keeps_much()(x), cg.exp], 1000)(x)


def test_a_plan_for_each_shape_and_mode():
    net = network(depth=6, width=16, dropout=0.5)
    f = cg.checkpoint_budget(net, 24_000)
    f(cg.randn(8, 16))
    assert f.plan == ((0, 18, False),)
    f(cg.randn(64, 16))
    assert len(f.plan) > 1
    net.eval()
    f(cg.randn(8, 16))
    with cg.no_grad():
        f(cg.randn(8, 16))
    assert len(f.plans) == 3


def test_a_budget_for_views_trees_and_single_functions():
    x = cg.randn(64, 32, requires_grad=True)
    f = cg.checkpoint_budget([cg.tanh, nn.Flatten(0), lambda y: (y, y.sin()), lambda pair: pair[0] * pair[1]], 24_576)
    want = cg.autograd.grad((x.tanh() * x.tanh().sin()).sum(), x)[0]
    np.testing.assert_allclose(cg.autograd.grad(f(x).sum(), x)[0].numpy(), want.numpy(), rtol=1e-5)
    assert cg.checkpoint_budget(cg.exp, 10_000)(x).requires_grad
    assert cg.checkpoint_budget([cg.exp], 0)(cg.ones(3)).tolist() == pytest.approx([math.e] * 3)


@pytest.mark.parametrize("nbytes", [-1, 1.5, None, True, "1 MB"])
def test_budgets_that_are_none(nbytes):
    with pytest.raises(ValueError, match="number of bytes"):
        cg.checkpoint_budget([cg.exp], nbytes)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match="function 1 is not callable, but of type int"):
        cg.checkpoint_budget([cg.exp, 3], 100)


def test_budgets_inside_a_general_function():
    """Blocks with several arguments and results, by position and name, under one another and beside what has no budget."""
    x, mask = cg.randn(64, 32, requires_grad=True), (cg.rand(64, 32) > 0.3)
    inner = nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh()))

    def block(x, mask, *, scale=1.0, parts=None):
        y = cg.where(mask, inner(x), x) * scale
        return {"y": y, "both": (y.sin(), parts["z"] * y if parts else None)}

    def rest(results):
        return results["y"] + results["both"][0] * 2, results["both"][1]

    def model(block, x):
        y, _ = block(x, mask)
        y, z = block(y, mask=mask, scale=0.5, parts={"z": x.exp()})
        return (y * z).sum() + x.sum()

    plain = lambda *args, **kwargs: rest(block(*args, **kwargs))
    whole = kept_by(lambda x: model(plain, x), x)[0]
    small = cg.checkpoint_budget([block, rest], 140_000)
    want = cg.autograd.grad(model(plain, x), (x, *inner.parameters()))
    for make in (lambda: small, lambda: cg.checkpoint_budget([small, lambda pair: pair], 140_000), lambda: lambda *a, **k: cg.checkpoint(small, *a, **k)):
        budgeted = make()
        model(budgeted, x)
        for got, expected in zip(cg.autograd.grad(model(budgeted, x), (x, *inner.parameters())), want, strict=True):
            np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
    assert any(again for *_, again in small.plan) == (kept_by(lambda x: model(small, x), x)[0] < whole)
    assert len(small.plans) == 2
    small(x, mask, scale=0.25)
    assert len(small.plans) == 3                                   # another value may mean another way
    with pytest.raises(TypeError, match="nothing"):
        small(x, mask, nothing=1)


def test_a_budget_that_measures_inside_a_checkpoint():
    """What is measured is recorded once, and not expected when the call is repeated."""
    x = leaf([0.3, -0.7])
    for nbytes in (10**6, 64):
        for f in (lambda x: cg.checkpoint(cg.checkpoint_budget([cg.sin, cg.exp, cg.tanh, cg.sin], nbytes), x),
                  lambda x: cg.checkpoint_budget([cg.checkpoint_budget([cg.sin, cg.exp], nbytes), cg.tanh, cg.sin], nbytes)(x)):
            np.testing.assert_allclose(cg.autograd.grad(f(x).sum(), x)[0].numpy(), cg.autograd.grad(x.sin().exp().tanh().sin().sum(), x)[0].numpy())


def test_a_budget_looks_into_chains_and_leaves_other_modules_whole():
    class Residual(nn.Sequential):
        def forward(self, x):
            return x + super().forward(x)

    layer = lambda: nn.Sequential(nn.Linear(32, 32), nn.Tanh())
    net, x = nn.Sequential(layer(), nn.Sequential(layer(), layer()), Residual(nn.Linear(32, 32), nn.Tanh())), cg.randn(64, 32)
    f = cg.checkpoint_budget(net, int(0.8 * kept_by(net, x)[0]))
    assert len(f.functions) == 7
    f(x)
    assert kept_by(f, x)[0] <= 0.8 * kept_by(net, x)[0]
    for got, expected in zip(gradients(net, f, x), gradients(net, net, x)):
        np.testing.assert_array_equal(got, expected)
    block, seen = net[2], []
    for run in (cg.checkpoint_budget(block, 10**6), lambda x: cg.checkpoint_sequential(block, 1, x), cg.checkpoint_budget(nn.ModuleList([block]), 10**6)):
        assert cg.array_equal(run(x), block(x))
    net[1].register_forward_hook(lambda module, args, out: seen.append(1))
    assert len(cg.checkpoint_budget(net, 10**6).functions) == 4     # a hook is to be called
    cg.checkpoint_budget(net, 10**6)(x)
    assert seen


def cheapest_of_all(pieces, limit):
    """Every plan tried, with sets of blocks: the least seconds within the limit, or None."""
    n, best = len(pieces), None
    blocks = {}                             # name: bytes
    places = [("place", 0)]                 # the block of each place in the chain
    for i, p in enumerate(pieces):
        blocks[places[i]] = p.size
        places.append(places[i] if p.same else ("place", i + 1))
        blocks[i] = p.keeps
    blocks.setdefault(places[n], pieces[-1].keeps_output)

    def total(names):
        return sum(blocks[name] for name in names)

    def kept(i):
        return {i} | ({places[i]} if pieces[i].keeps_input else set()) | ({places[i + 1]} if pieces[i].keeps_output else set())

    for cuts in itertools.product([False, True], repeat=n - 1):
        stops = [i + 1 for i, cut in enumerate(cuts) if cut] + [n]
        for again in itertools.product([False, True], repeat=len(stops)):
            held, seconds, start, most = set(), 0.0, 0, 0
            for stop, recomputed in zip(stops, again):
                inside = set().union(*(kept(i) for i in range(start, stop)))
                if recomputed:
                    held = held | {places[start]}
                    most = max(most, total(held | inside))
                    seconds += sum(p.seconds for p in pieces[start:stop])
                else:
                    held = held | inside
                    most = max(most, total(held))
                start = stop
            if most <= limit and (best is None or seconds < best):
                best = seconds
    return best


@pytest.mark.parametrize("seed", range(12))
def test_no_plan_is_cheaper(seed):
    rng = np.random.default_rng(seed)
    pieces, size = [], 0
    for _ in range(6):
        same = bool(rng.random() < 0.15)
        out = size if same else int(rng.integers(1, 9))
        pieces.append(_Piece(size, size * int(rng.random() < 0.5), 0 if same else out * int(rng.random() < 0.5),
                             int(rng.integers(0, 5)), same, float(rng.integers(1, 50))))
        size = out
    for limit in range(0, 60, 3):
        want = cheapest_of_all(pieces, limit)
        plan = budget._cheapest(pieces, limit)
        assert (plan is None) == (want is None)
        if plan is not None:
            assert sum(p.seconds for start, stop, again in plan if again for p in pieces[start:stop]) == want
    least = budget._least(pieces)
    assert cheapest_of_all(pieces, least) is not None and cheapest_of_all(pieces, least - 1) is None


# ------------------------------------------------------------------ early stop
def calls_in_backward(f, *args, **options):
    """How many of the operations that f announces are repeated, and the gradients; `f(step, *args)` calls step(x) between them."""
    seen = []

    def step(x):
        seen.append(1)
        return x

    y = cg.checkpoint(lambda *args: f(step, *args), *args, **options)
    forward = len(seen)
    found = cg.autograd.grad(y.sum(), [x for x in args if x.requires_grad])
    return len(seen) - forward, [g.numpy() for g in found]


EARLY = {
    # function, how many of its steps the repetition gets through; it ends inside the operation that is the last to be needed
    "a product at the end": (lambda step, x, w: step(step(x.tanh()) @ w), 0),
    "a product alone": (lambda step, x, w: step(x @ w), 0),
    "sums and views at the end": (lambda step, x, w: step(step(step(x.exp()) + w).reshape(-1)).sum(), 0),
    "the rule needs the result": (lambda step, x, w: step(step(x @ w).tanh()), 2),
    "a constant made on the way": (lambda step, x, w: step(step(x @ w) * cg.full((3, 3), 2.0, dtype=cg.float64)), 2),
    "written since": (lambda step, x, w: step(step(halved(x.sin())) @ w), 2),
    "written by a recorded operation": (lambda step, x, w: step(step(step(x.sin()).mul_(w)) @ w), 3),
    "three inputs": (lambda step, x, w: step(cg.nn.functional.linear(step(x.sin()), w, w[0])), 0),
    "an index": (lambda step, x, w: step(step(x.sin())[cg.tensor([0, 2])]) @ w, 1),
    "several results": (lambda step, x, w: step(step(step(x.sin()).unbind(0)[1]) * w), 1),
    "an inner checkpoint": (lambda step, x, w: step(cg.checkpoint(lambda y: step(y.exp() @ w), step(x.sin()))), 3),
}


def halved(y):
    with cg.no_grad():
        y.mul_(0.5)
    return y


@pytest.mark.parametrize("name", EARLY)
def test_early_stop_repeats_what_is_needed_and_changes_no_bit(name):
    f, steps = EARLY[name]
    args = leaf(np.linspace(-1, 1, 9).reshape(3, 3)), leaf(np.linspace(0.5, 2, 9).reshape(3, 3))
    plain = calls_in_backward(f, *args, early_stop=False)
    repeated, found = calls_in_backward(f, *args)
    assert repeated == steps <= plain[0]
    for got, want in zip(found, plain[1]):
        np.testing.assert_array_equal(got, want)


def test_early_stop_with_parameters_and_retained_graphs():
    net, x = network(depth=3), cg.randn(4, 16)
    want = gradients(net, net, x)
    for f in (lambda x: cg.checkpoint(net, x), lambda x: cg.checkpoint(net[:5], x)):
        if f(x).shape == want[0].shape:
            for got, expected in zip(gradients(net, lambda x: cg.checkpoint(nn.Sequential(*net), x), x), want):
                np.testing.assert_array_equal(got, expected)
    y = cg.checkpoint(net[:5], x).sum()
    y.backward(retain_graph=True)
    once = [p.grad.clone() for p in net[:5].parameters()]
    y.backward()
    for p, g in zip(net[:5].parameters(), once):
        np.testing.assert_array_equal(p.grad.numpy(), 2 * g.numpy())


def test_early_stop_and_a_second_derivative():
    f = lambda x, w: cg.checkpoint(lambda x, w: x.sin() @ w, x, w)
    args = leaf(np.linspace(-1, 1, 4).reshape(2, 2)), leaf(np.linspace(0.5, 2, 4).reshape(2, 2))
    assert cg.autograd.gradcheck(f, args, check_forward_ad=True, check_batched_grad=True)
    assert cg.autograd.gradgradcheck(f, args)


def test_a_parameter_changed_before_an_early_stop_is_an_error():
    w, x = leaf(np.ones((2, 2))), leaf(np.ones((2, 2)))
    y = cg.checkpoint(lambda x: x.sin() @ w, x)
    with cg.no_grad():
        w.mul_(2.0)
    with pytest.raises(RuntimeError, match="in place"):
        y.sum().backward()


def test_hooks_on_the_way_run_once():
    seen = []

    def f(x, w):
        y = x.sin() @ w
        y.register_hook(lambda g: seen.append(g.shape))
        return y * 2.0

    args = leaf(np.ones((2, 2))), leaf(np.ones((2, 2)))
    cg.checkpoint(f, *args).sum().backward()
    assert seen == [(2, 2)]


def test_a_repetition_that_goes_astray_is_an_error():
    calls = []

    def f(x):
        calls.append(1)
        y = x.sin() if len(calls) % 2 else x.cos()
        return y.exp().sin() * y if len(calls) < 3 else y

    with pytest.raises(RuntimeError, match="called again, the function did cos where it did sin"):
        cg.checkpoint(f, leaf([1.0])).sum().backward()
    calls[:] = []

    def g(x):
        calls.append(1)
        return x.sin().cos().tan() @ x if len(calls) == 1 else x.sin()

    with pytest.raises(RuntimeError, match="called again, the function"):
        cg.checkpoint(g, leaf([1.0])).sum().backward()


def test_other_threads_do_not_disturb_a_repetition():
    import threading
    errors, x, w = [], leaf(np.linspace(-1, 1, 9).reshape(3, 3)), leaf(np.ones((3, 3)))
    want = cg.autograd.grad((x.sin().exp() @ w).sum(), x)[0].numpy()

    def work():
        for _ in range(50):
            got, = cg.autograd.grad(cg.checkpoint(lambda x: x.sin().exp() @ w, x).sum(), x)
            if not (got.numpy() == want).all():
                errors.append(got)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("given", ["itself", "a result of it"])
def test_a_parameter_reached_by_itself_and_through_an_argument(given, create_graph):
    w = cg.tensor(2.0, dtype=cg.float64, requires_grad=True)
    x = w if given == "itself" else w * 1.0
    y = cg.checkpoint(lambda x: x ** 2 * w ** 3, x)                  # w ** 5
    (g,) = cg.autograd.grad(y, (w,), create_graph=create_graph)
    assert g.item() == 5 * 16.0
    if create_graph:
        assert cg.autograd.grad(g, (w,))[0].item() == 20 * 8.0
    x = w if given == "itself" else w * 1.0
    y = cg.checkpoint(lambda x: cg.checkpoint(lambda x: x * w, x) * w, x)
    y.backward(create_graph=create_graph)
    assert w.grad.item() == 3 * 4.0


def test_a_parameter_that_was_changed_since_is_an_error():
    w, x = cg.tensor(2.0, requires_grad=True), cg.tensor(3.0, requires_grad=True)
    y = cg.checkpoint(lambda x: (x * w).exp(), x)
    with cg.no_grad():
        w.mul_(2.0)
    with pytest.raises(RuntimeError, match="checkpoint: .*reaches by itself.*changed in place"):
        y.backward()
    assert x.grad is None and w.grad is None


@pytest.mark.parametrize("early_stop", [True, False])
@pytest.mark.parametrize("create_graph", [True, False])
def test_arguments_that_are_tracked_no_more_or_only_now_change_no_repetition(early_stop, create_graph):
    def given(x, y):
        return cg.tanh(x) * x * y

    x, z, y = cg.tensor(0.5, requires_grad=True), cg.tensor(0.5, requires_grad=True), cg.tensor(3.0)
    out = cg.checkpoint(given, x, y, early_stop=early_stop) + cg.checkpoint(given, z, y, early_stop=early_stop)
    x.requires_grad, y.requires_grad = False, True
    out.backward(create_graph=create_graph)
    t = np.tanh(0.5)
    assert x.grad is None and y.grad is None
    np.testing.assert_allclose(z.grad.item(), 3 * (t + 0.5 * (1 - t * t)), rtol=1e-6)
