"""Hooks of tensors: on gradients as backward finds them, and on .grad when it has got its sum."""
import gc
import weakref

import numpy as np
import pytest

import cgrad as cg


def leaf(data):
    return cg.tensor(np.array(data, np.float64), requires_grad=True)


class failing(cg.Op):
    def forward(self, x):
        return x * 1.0

    def backward(self, grads):
        raise KeyError("on purpose")


# ------------------------------------------------------------------ when .grad has got its sum
def test_called_once_with_the_sum_while_backward_goes_on():
    first, second, seen = leaf(2.0), leaf(3.0), []
    y = first * 2.0
    y.register_hook(lambda g: seen.append("y"))
    z = y * second + second * second
    second.register_post_accumulate_grad_hook(lambda x: seen.append((x is second, x.grad.item())))
    first.register_post_accumulate_grad_hook(lambda x: seen.append((x is first, x.grad.item())))
    second.register_hook(lambda g: seen.append(g.item()))
    z.backward()
    # d/d second (2 f s + s**2) = 2 f + 2 s; all its uses are newer than y.
    assert seen == [10.0, (True, 10.0), "y", (True, 6.0)]
    z = first * 2.0
    z.backward()
    assert seen[4:] == [(True, 8.0)]             # what was there is added to


def test_the_oldest_use_decides():
    x, w, seen = leaf(1.0), leaf(1.0), []
    y = w * x                                    # the oldest use of w
    for _ in range(5):
        y = y * 2.0
        y.register_hook(lambda g: seen.append("node"))
    w.register_post_accumulate_grad_hook(lambda w: seen.append(w.grad.item()))
    (y + w).backward()
    assert seen == ["node"] * 5 + [33.0]


def test_a_use_that_no_gradient_reaches_holds_nothing_up():
    w, seen = leaf([1.0, 2.0]), []
    w.register_post_accumulate_grad_hook(lambda w: seen.append(w.grad.tolist()))

    class nothing(cg.Op):
        def forward(self, x):
            return x * 2.0

        def backward(self, grads):
            return None

    unused = w * 2.0
    (w * 3.0 + nothing()(unused)).sum().backward()
    assert seen == [[3.0, 3.0]]


def test_the_hook_may_step_and_clear():
    layer = cg.nn.Sequential(cg.nn.Linear(3, 4), cg.nn.Tanh(), cg.nn.Linear(4, 2))
    twin = cg.nn.Sequential(cg.nn.Linear(3, 4), cg.nn.Tanh(), cg.nn.Linear(4, 2))
    twin.load_state_dict(layer.state_dict())
    x = cg.randn(5, 3)
    for p in layer.parameters():
        optimizer = cg.optim.SGD([p], lr=0.1)

        def step(p, optimizer=optimizer):
            optimizer.step()
            p.grad = None
        p.register_post_accumulate_grad_hook(step)
    together = cg.optim.SGD(twin.parameters(), lr=0.1)
    for _ in range(3):
        (layer(x) ** 2).sum().backward()
        together.zero_grad()
        (twin(x) ** 2).sum().backward()
        together.step()
    for p, q in zip(layer.parameters(), twin.parameters()):
        assert p.grad is None
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-6)


def test_no_hook_for_grad_but_for_backward_with_inputs():
    x, w, seen = leaf(2.0), leaf(3.0), []
    x.register_post_accumulate_grad_hook(lambda x: seen.append(x.grad.item()))
    assert cg.autograd.grad(x * w, x)[0].item() == 3.0 and not seen
    (x * w).backward(inputs=[w])
    assert not seen
    (x * w).backward(inputs=[x])
    assert seen == [3.0] and w.grad.item() == 2.0


def test_a_leaf_that_is_itself_the_result():
    x, seen = leaf(2.0), []
    x.register_post_accumulate_grad_hook(lambda x: seen.append(x.grad.item()))
    x.backward()
    cg.autograd.backward([x * 2.0, x])
    assert seen == [1.0, 4.0]


def test_a_function_that_hooks_return_is_called_once_at_the_end():
    x, w, seen = leaf(2.0), leaf(3.0), []

    def end():
        seen.append(("end", x.grad.item(), w.grad.item()))
    for leaf_ in (x, w):
        leaf_.register_post_accumulate_grad_hook(lambda x: seen.append(x.grad.item()) or end)
    (x * w).backward()
    assert sorted(seen[:2]) == [2.0, 3.0] and seen[2:] == [("end", 3.0, 2.0)]
    cg.autograd.backward([x * w], inputs=[x, w])
    assert seen[3:] == [6.0, 4.0, ("end", 6.0, 4.0)]
    cg.autograd.backward([x * w], inputs=[w])
    assert seen[6:] == [6.0, ("end", 6.0, 6.0)]


def test_a_backward_that_fails_does_not_call_what_hooks_return():
    class Fails(cg.Op):
        def forward(self, x):
            return x * 1.0

        def backward(self, g):
            raise ValueError("no")
    x, w, seen = leaf(2.0), leaf(3.0), []
    w.register_post_accumulate_grad_hook(lambda w: lambda: seen.append("end"))
    with pytest.raises(ValueError, match="no"):
        (Fails()(x) * w).backward()
    assert not seen


def test_order_and_removal_also_by_a_hook():
    x, seen = leaf(1.0), []
    handles = [x.register_post_accumulate_grad_hook(lambda x, k=k: seen.append(k)) for k in range(3)]

    def remove(x):
        seen.append("remove")
        handles[2].remove()
        own.remove()
    own = x.register_post_accumulate_grad_hook(remove)
    (x * 1.0).backward()
    assert seen == [0, 1, 2, "remove"]
    handles[0].remove()
    handles[0].remove()
    (x * 1.0).backward()
    assert seen[4:] == [1]
    with x.register_post_accumulate_grad_hook(lambda x: seen.append("within")):
        (x * 1.0).backward()
    (x * 1.0).backward()
    assert seen[5:] == [1, "within", 1]


def test_a_failing_hook_leaves_the_rest_as_it_was():
    early, late = leaf(2.0), leaf(3.0)
    late_use = late * 1.0
    z = late_use * early

    def fail(x):
        raise KeyError("on purpose")
    handle = early.register_post_accumulate_grad_hook(fail)
    with pytest.raises(KeyError):
        z.backward(retain_graph=True)
    assert early.grad.item() == 3.0 and late.grad is None and cg.is_grad_enabled()
    handle.remove()
    early.grad = None
    z.backward()
    assert early.grad.item() == 3.0 and late.grad.item() == 2.0


def test_a_failing_backward_keeps_what_was_handed_out():
    early, late, other = leaf(2.0), leaf(3.0), leaf(4.0)
    z = (failing()(late) + other) * early
    seen = []
    early.register_post_accumulate_grad_hook(lambda x: seen.append(x.grad.item()))
    late.register_post_accumulate_grad_hook(lambda x: seen.append(x.grad))
    with pytest.raises(KeyError):
        z.backward()
    assert seen == [7.0] and early.grad.item() == 7.0 and late.grad is None and other.grad is None


def test_recording_is_off_but_under_create_graph():
    x, seen = leaf(2.0), []
    x.register_post_accumulate_grad_hook(lambda x: seen.append((cg.is_grad_enabled(), x.grad.requires_grad)))
    (x * x).backward()
    x.grad = None
    (x * x * x).backward(create_graph=True)
    assert seen == [(False, False), (True, True)]
    g = x.grad
    x.grad = None
    g.backward()
    assert x.grad.item() == 12.0
    x.grad = None


def test_through_checkpoints():
    w, x, seen = leaf(3.0), leaf(2.0), []
    w.register_post_accumulate_grad_hook(lambda w: seen.append(w.grad.item()))
    y = cg.checkpoint(lambda x: cg.checkpoint(lambda x: x * w, x) * w, x)
    (y + w).backward()
    assert seen == [13.0]


def test_who_may_have_one():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="does not require grad"):
        cg.ones(2).register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="a leaf accumulates"):
        (x * 2.0).register_post_accumulate_grad_hook(print)
    with pytest.raises(TypeError, match="got int"):
        x.register_post_accumulate_grad_hook(3)
    x.register_post_accumulate_grad_hook(lambda x: x.grad * 2.0)
    with pytest.raises(RuntimeError, match="a hook returned a value"):
        (x * 2.0).backward()


def test_a_leaf_with_a_hook_that_knows_it_is_collected():
    def make():
        x = leaf(1.0)
        x.register_post_accumulate_grad_hook(lambda _: x.grad)
        return weakref.ref(x)
    ref = make()
    gc.collect()
    assert ref() is None


def test_a_long_chain():
    x, seen = leaf(1.0), []
    x.register_post_accumulate_grad_hook(lambda x: seen.append(x.grad.item()))
    y = x
    for _ in range(200_000):
        y = y + 1.0
    y.backward()
    assert seen == [1.0]


# ------------------------------------------------------------------ on gradients
def test_hooks_are_removed_by_handle_by_context_and_by_a_hook():
    x, seen = leaf(1.0), []

    def once(g):
        seen.append("once")
        handle.remove()
    handle = x.register_hook(once)
    x.register_hook(lambda g: seen.append("always"))
    with x.register_hook(lambda g: seen.append("within")):
        (x * 1.0).backward()
    (x * 1.0).backward()
    assert seen == ["once", "always", "within", "always"]


def test_a_changed_gradient_is_what_is_retained_and_handed_on():
    x, seen = leaf(3.0), []
    y = x * 2.0
    y.retain_grad()
    y.register_hook(lambda g: g * 10.0)
    y.register_hook(lambda g: seen.append(g.item()))
    (y + y * y).backward()
    assert seen == [130.0] and y.grad.item() == 130.0 and x.grad.item() == 260.0


def test_under_create_graph_a_hook_is_differentiated():
    x = leaf(3.0)
    y = x * x
    y.register_hook(lambda g: g * g)
    (g,) = cg.autograd.grad(y * y, x, create_graph=True)          # (2 y)**2 * 2 x = 8 x**5
    assert g.item() == 8.0 * 3.0 ** 5
    # Here the hook squares d/dy (8 y**2 x) on its way through y = x**2; d/dx (8 y**2 x) with y held goes past it.
    assert cg.autograd.grad(g, x)[0].item() == (16.0 * 9.0 * 3.0) ** 2 * 6.0 + 8.0 * 81.0


def test_one_of_several_results_has_its_own_hook():
    x, seen = leaf([1.0, 2.0, 3.0]), []
    first, second, third = cg.unstack(x, 0)
    second.register_hook(lambda g: seen.append(g.item()) or g * 2.0)
    third.register_hook(lambda g: seen.append("never"))
    (first * 4.0 + second * 5.0).backward()
    assert seen == [5.0] and x.grad.tolist() == [4.0, 10.0, 0.0]


def test_a_hook_stays_with_what_the_tensor_was_before_a_write():
    x, seen = leaf(3.0), []
    y = x * 2.0
    y.register_hook(lambda g: seen.append(("before", g.item())))
    y *= 5.0
    y.register_hook(lambda g: seen.append(("after", g.item())))
    (y * 1.0).backward()
    assert seen == [("after", 1.0), ("before", 5.0)] and x.grad.item() == 10.0
