"""Backward: order, accumulation, freeing, hooks, errors that leave nothing half done."""
import gc
import subprocess
import sys
import textwrap
import threading
import weakref

import numpy as np
import pytest

import cgrad as cg


def leaf(data, dtype=cg.float64):
    return cg.tensor(data, dtype=dtype, requires_grad=True)


def run(code, timeout=300):
    out = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=timeout)
    assert out.returncode == 0, out.stderr[-2000:]
    return out.stdout


# ------------------------------------------------------------------ order and sums
def test_each_node_runs_once_after_all_its_users():
    x = leaf(3.0)
    y = x * x
    z = y + y * y          # dz/dy = 1 + 2y
    z.backward()
    assert x.grad.item() == (1 + 2 * 9) * 6


def test_several_paths_of_different_length_meet():
    x = leaf(2.0)
    a = x * 3.0
    b = a
    for _ in range(10):
        b = b + a
    (b * x).backward()
    assert x.grad.item() == 2 * 11 * 3 * 2


def test_gradients_of_two_leaves_never_share_memory():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (x + y).sum().backward()
    x.grad.zero_()
    assert y.grad.tolist() == [1.0, 1.0]


def test_the_given_gradient_is_not_taken_over():
    x = leaf([1.0, 2.0])
    seed = cg.tensor([5.0, 7.0], dtype=cg.float64)
    (x + 0.0).backward(seed)
    x.grad.zero_()
    assert seed.tolist() == [5.0, 7.0]
    x.grad = None
    x.backward(seed)
    x.grad.zero_()
    assert seed.tolist() == [5.0, 7.0]


def test_accumulation_keeps_the_gradient_object():
    x = leaf([1.0])
    (x * 2.0).sum().backward()
    held = x.grad
    (x * 3.0).sum().backward()
    assert x.grad is held and held.tolist() == [5.0]


def test_a_result_used_in_two_backwards_adds_up():
    x = leaf(2.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 8.0


def test_broadcast_axes_are_summed_back():
    x, y = leaf(np.ones((2, 1, 3))), leaf(np.ones((4, 1)))
    (x * y).sum().backward()
    assert x.grad.shape == (2, 1, 3) and y.grad.shape == (4, 1)
    np.testing.assert_array_equal(x.grad.numpy(), np.full((2, 1, 3), 4.0))
    np.testing.assert_array_equal(y.grad.numpy(), np.full((4, 1), 6.0))


def test_gradients_have_the_dtype_of_their_leaf():
    x = cg.tensor([1.0, 2.0], dtype=cg.float32, requires_grad=True)
    y = cg.tensor([1.0, 2.0], dtype=cg.float64, requires_grad=True)
    (x * y).sum().backward()
    assert x.grad.dtype == cg.float32 and y.grad.dtype == cg.float64


# ------------------------------------------------------------------ grad()
def test_grad_of_inner_results_and_leaves_leaves_dot_grad_alone():
    x = leaf(2.0)
    y = x * x
    z = y * 5.0
    gy, gx = cg.autograd.grad(z, (y, x))
    assert (gy.item(), gx.item()) == (5.0, 20.0) and x.grad is None
    y.retain_grad()
    assert y.grad is None


def test_grad_runs_only_what_leads_to_the_inputs():
    class loud(cg.Op):
        def forward(self, x):
            return x * 1.0

        def backward(self, grads):
            raise AssertionError("this branch leads to nothing that was asked for")

    x, w = leaf(2.0), leaf(3.0)
    (g,) = cg.autograd.grad(x * loud()(w), (x,))
    assert g.item() == 3.0


def test_an_unused_input_is_an_error_or_none_or_zeros():
    x, other = leaf(2.0), leaf([1.0, 1.0])
    with pytest.raises(RuntimeError, match="not used"):
        cg.autograd.grad(x * 2.0, (x, other))
    assert cg.autograd.grad(x * 2.0, (other,), allow_unused=True) == (None,)
    (zero,) = cg.autograd.grad(x * 2.0, (other,), materialize_grads=True)
    assert zero.tolist() == [0.0, 0.0]


def test_the_same_tensor_as_result_and_input():
    x = leaf(2.0)
    y = x * 3.0
    assert cg.autograd.grad(y, (y, y, x)) == (1.0, 1.0, 3.0)


def test_a_wanted_node_before_another_wanted_node():
    x = leaf(2.0)
    a = x * 3.0
    b = a * a
    ga, gb = cg.autograd.grad(b * 2.0, (a, b))
    assert (ga.item(), gb.item()) == (24.0, 2.0)


# ------------------------------------------------------------------ errors
def test_a_second_backward_changes_no_gradient():
    x = leaf(2.0)
    y = x * x
    z = x.exp()
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        (z + y).backward()
    assert x.grad.item() == 4.0


def test_what_cannot_start_a_backward_is_refused():
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="scalar"):
        (x * 2.0).backward()
    with pytest.raises(RuntimeError, match=r"shape \(3,\)"):
        (x * 2.0).backward(cg.ones(3, dtype=cg.float64))
    with pytest.raises(RuntimeError, match="does not require grad"):
        cg.tensor(1.0).backward()
    with pytest.raises(RuntimeError, match="int64"):
        cg.tensor([1, 2], requires_grad=True)


def test_an_error_in_a_rule_leaves_gradients_and_modes_alone():
    class failing(cg.Op):
        def forward(self, x):
            return x * 2.0

        def backward(self, grads):
            raise KeyError("on purpose")

    x, y = leaf(1.0), leaf(1.0)
    z = y * 5.0 + failing()(x)
    with pytest.raises(KeyError, match="on purpose"):
        z.backward()
    assert x.grad is None and y.grad is None and cg.is_grad_enabled()
    w = leaf(3.0)
    (w * y).backward()
    assert y.grad.item() == 3.0


# ------------------------------------------------------------------ saved values
@pytest.mark.parametrize("change", [lambda t: t.add_(1.0), lambda t: t.zero_(), lambda t: t.__setitem__(0, 3.0), lambda t: t.copy_(t * 2.0)],
                         ids=["add_", "zero_", "setitem", "copy_"])
def test_a_saved_value_that_was_overwritten_is_an_error(change):
    x = leaf([1.0, 2.0])
    w = cg.tensor([3.0, 4.0], dtype=cg.float64)
    y = (x * w).sum()
    change(w)
    with pytest.raises(RuntimeError, match=r"multiply: a tensor of shape \(2,\).*changed in place"):
        y.backward()
    assert x.grad is None


def test_a_saved_result_that_was_overwritten_is_an_error():
    x = leaf([1.0, 2.0])
    y = x.exp()
    y += 1.0
    with pytest.raises(RuntimeError, match="exp.*its result"):
        y.sum().backward()


def test_changing_what_no_rule_needs_is_no_error():
    x = leaf([1.0, 2.0])
    y = x + 1.0
    z = y * 2.0
    y += 5.0
    (z + y).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_freed_part_of_a_graph_is_an_error_where_something_wanted_may_lie_behind_it():
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    h = cg.exp(x)
    later = h * 2.0
    h.sum().backward()
    for function in (lambda: cg.autograd.grad((h * w + x * 5.0).sum(), x), lambda: cg.autograd.grad((later + x).sum(), x, allow_unused=True),
                     lambda: (h + x).sum().backward(inputs=[x]), lambda: (h + x).sum().backward()):
        with pytest.raises(RuntimeError, match="through <ExpBackward> was freed by another backward"):
            function()
    (g,) = cg.autograd.grad((later * 3.0).sum(), later)          # all that is wanted lies before it
    assert g.tolist() == [3.0, 3.0]
    (g,) = cg.autograd.grad((h.detach() * w + x).sum(), w)
    np.testing.assert_allclose(g.numpy(), np.exp([1.0, 2.0]), rtol=1e-15)


# ------------------------------------------------------------------ hooks
def test_hooks_run_in_order_once_and_can_change_the_gradient():
    x = leaf(2.0)
    seen = []
    first = x.register_hook(lambda g: seen.append(("first", g.item())))
    x.register_hook(lambda g: g * 10.0)
    x.register_hook(lambda g: seen.append(("third", g.item())))
    (x * 2.0 + x * 3.0).backward()
    assert seen == [("first", 5.0), ("third", 50.0)] and x.grad.item() == 50.0
    first.remove()
    first.remove()
    x.grad = None
    (x * 1.0).backward()
    assert seen[2:] == [("third", 10.0)] and x.grad.item() == 10.0


def test_a_hook_on_an_inner_result_sees_the_whole_gradient():
    x = leaf(2.0)
    y = x * 3.0
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    y.retain_grad()
    (y * 2.0 + y * y).backward()
    assert seen == [14.0] and y.grad.item() == 14.0 and x.grad.item() == 42.0


def test_a_hook_that_returns_something_else_is_an_error():
    x = leaf([1.0, 2.0])
    x.register_hook(lambda g: 3)
    with pytest.raises(RuntimeError, match="hook: returned int"):
        x.sum().backward()
    assert x.grad is None


def test_a_gradient_is_retained_for_what_the_tensor_is_now():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    y.retain_grad()
    z = y * 5.0
    y *= 3.0
    assert y.retains_grad
    (y * y).sum().backward(retain_graph=True)
    assert y.grad.tolist() == [12.0, 24.0]            # not in what it was before, whose slope is three times that
    z.sum().backward()
    assert y.grad.tolist() == [12.0, 24.0]
    y = x * 2.0
    view = y[:1]
    y *= leaf(3.0)
    view.retain_grad()
    (view * 4.0).sum().backward()
    assert view.grad.tolist() == [4.0]


def test_retained_gradients_are_left_alone_by_grad_and_by_errors():
    class failing(cg.Op):
        def forward(self, x):
            return x * 2.0

        def backward(self, grads):
            raise KeyError("on purpose")

    x = leaf([1.0, 2.0])
    first = failing()(x)
    y = x * 2.0
    y.retain_grad()
    with pytest.raises(KeyError):
        (first + y).sum().backward()
    assert y.grad is None
    y = x * 2.0
    y.retain_grad()
    cg.autograd.grad(y.sum(), (x,))
    assert y.grad is None


def test_a_hook_does_not_decide_whether_a_graph_can_be_run_again():
    x = leaf([1.0, 2.0])
    y = x + 1.0                                      # keeps nothing, so there is nothing to free
    y.register_hook(lambda g: None)
    z = cg.concat([y, y, x])
    z.sum().backward()
    z.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


@pytest.mark.parametrize(("shape", "dtype"), [((1,), "float64"), ((3000,), "float64"), ((3,), "float32"), ((1, 3), "float64")])
def test_a_gradient_that_no_longer_fits_is_not_added_to(shape, dtype):
    x, w = leaf(np.ones(3)), leaf(2.0)
    (x * w).sum().backward()
    kept = x.grad
    x.data = cg.ones(shape, dtype=getattr(cg, dtype))
    with pytest.raises(RuntimeError, match=r"cannot be added to the \.grad of shape \(3,\)"):
        (x * w).sum().backward()
    assert x.grad is kept and kept.tolist() == [2.0] * 3 and w.grad.item() == 3.0
    x.grad = None
    (x * w).sum().backward()
    assert x.grad.shape == shape and x.grad.dtype == x.dtype
    x.grad.data = cg.zeros(2, dtype=x.dtype)
    with pytest.raises(RuntimeError, match="cannot be added"):
        (x * w).sum().backward()


def test_a_hook_of_a_leaf_runs_once_for_all_its_mentions():
    x = leaf([1.0, 2.0])
    seen = []
    x.register_hook(lambda g: (seen.append(g.tolist()), g * 10)[1])
    first, second = cg.autograd.grad((x * x).sum(), (x, x))
    assert seen == [[2.0, 4.0]] and first.tolist() == second.tolist() == [20.0, 40.0]


def test_a_leaf_told_to_stop_gets_no_gradient():
    x, w = leaf(2.0), leaf(3.0)
    y = x * w
    x.requires_grad_(False)
    y.backward(retain_graph=True)
    assert x.grad is None and w.grad.item() == 2.0
    x.add_(w)                                        # a result now, with nothing to do with what x was
    y = x * w
    x.retain_grad()
    y.backward()
    assert x.grad.item() == 3.0 and w.grad.item() == 2.0 + 2 * 3 + 2


def test_grad_does_not_pass_over_a_freed_part_of_the_graph():
    x = leaf([1.0, 2.0])
    y = x.exp()
    z = y * y
    z.sum().backward()
    for result in (y.sum() + x.sum(), z.sum() + x.sum()):
        with pytest.raises(RuntimeError, match="retain_graph"):
            cg.autograd.grad(result, (x,))
    w = leaf(2.0)                                    # where nothing asked for lies behind it, it does not matter
    assert cg.autograd.grad((y * w).sum(), (w,))[0].item() == pytest.approx(np.exp([1.0, 2.0]).sum())
    got = cg.autograd.grad((y * w).sum(), (y, w))
    assert got[0].tolist() == [2.0, 2.0]


def test_gradients_with_a_graph_share_no_memory():
    x, y, seed = leaf([1.0, 2.0]), leaf([3.0, 4.0]), cg.ones(2, dtype=cg.float64)
    (x + y).backward(seed, create_graph=True)
    (x * 1.0).sum().backward(create_graph=True)
    x.sum().backward(create_graph=True)
    x.grad.detach().zero_()
    assert y.grad.tolist() == [1.0, 1.0] and seed.tolist() == [1.0, 1.0]
    w = leaf([1.0, 2.0])
    w.sum().backward(create_graph=True)
    w.grad.detach().zero_()                          # has memory of its own for each element
    v = leaf([1.0, 2.0])
    cg.autograd.backward((v * 1.0).sum(), create_graph=True, inputs=[v])
    v.grad.detach().zero_()


# ------------------------------------------------------------------ depth, memory
def test_a_million_nodes_run_and_are_freed():
    out = run("""
        import cgrad as cg
        x = cg.tensor(1.0, requires_grad=True)
        for step in (lambda y: y * 1.0, lambda y: y + 0.0, lambda y: y.exp().log()):
            y = x
            for _ in range(500_000):
                y = step(y)
            y.backward()
            y = x
            for _ in range(500_000):
                y = step(y)
            del y
        w = cg.tensor(1.0, requires_grad=True)
        (g,) = cg.autograd.grad(x * x, (x,), create_graph=True)
        for _ in range(100_000):
            g = g * w
        cg.autograd.grad(g, (x,))
        print("done")
    """)
    assert out.strip() == "done"


def test_a_graph_is_freed_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        x = leaf(np.ones(1000))
        y = x.exp()
        z = (y * y).sum()
        kept = weakref.ref(y)
        del y
        z.backward()
        assert kept() is None
        z = (x.exp() * 2.0).sum()
        before = cg.memory.stats()["live_bytes"]
        del z
        assert cg.memory.stats()["live_bytes"] < before
    finally:
        gc.enable()


def test_memory_is_flat_over_many_steps_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        w = leaf(np.ones((10, 10)))
        x = cg.ones(10, 10, dtype=cg.float64)
        for step in range(60):
            w.grad = None
            loss = ((x @ w).tanh() ** 2).mean()
            loss.backward()
            if step == 10:
                before = cg.memory.stats()["live_bytes"]
        assert cg.memory.stats()["live_bytes"] <= before
    finally:
        gc.enable()


def test_cycles_through_grad_under_create_graph_are_collected():
    def step():
        x = leaf(np.ones(1000))
        (x ** 3).sum().backward(create_graph=True)
        return weakref.ref(x)

    refs = [step() for _ in range(5)]
    gc.collect()
    assert [r() for r in refs] == [None] * 5


def test_cycles_through_hooks_and_user_ops_are_collected():
    class keeps_result(cg.Op):
        def forward(self, x):
            self.out = x.exp()
            return self.out

        def backward(self, grads):
            return grads * self.out

    def step():
        x = leaf(np.ones(10))
        y = x * 2.0
        y.register_hook(lambda g: z)
        z = (y * y).sum()
        op = keeps_result()
        op.last = op(x)
        return weakref.ref(z), weakref.ref(op)

    refs = [r for _ in range(3) for r in step()]
    gc.collect()
    assert [r() for r in refs] == [None] * 6


# ------------------------------------------------------------------ several at once
def test_backward_from_threads_on_a_shared_leaf_adds_up():
    x = leaf(np.ones(100))
    errors = []

    def work():
        try:
            for _ in range(50):
                (x * 2.0).sum().backward()
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    np.testing.assert_array_equal(x.grad.numpy(), np.full(100, 400.0))


def test_backward_inside_backward_on_the_same_graph():
    x = leaf(2.0)
    y = x * x
    found = []

    class nested(cg.Op):
        def forward(self, t):
            self.t = t
            return t * 1.0

        def backward(self, grads):
            found.append(cg.autograd.grad(y, (x,), retain_graph=True)[0].item())
            return grads

    (nested()(y) + y).backward()
    assert found == [4.0] and x.grad.item() == 8.0


def test_modes_are_per_thread():
    seen = []
    with cg.no_grad():
        t = threading.Thread(target=lambda: seen.append(cg.is_grad_enabled()))
        t.start()
        t.join()
    assert seen == [True]


@pytest.mark.parametrize("dtype", [cg.float16, cg.bfloat16])
def test_gradients_in_half_precision_add_up(dtype):
    for n in (3, 5000):
        x = cg.ones(n, dtype=dtype, requires_grad=True)
        for _ in range(2):
            (x * x + x).sum().backward()
        assert x.grad.dtype == dtype and x.grad.astype(cg.float32).tolist() == [6.0] * n
