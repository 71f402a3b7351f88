"""Switches of recording, grad and backward, gradcheck, checkpoint."""
import asyncio
import threading

import numpy as np
import pytest

import cgrad as cg
from cgrad.autograd import GradcheckError, gradcheck, gradgradcheck


def leaf(values):
    return cg.tensor(np.array(values, dtype=np.float64), requires_grad=True)


# ------------------------------------------------------------------ switches
def test_modes_nest_and_survive_exceptions():
    x = leaf(1.0)
    with cg.no_grad():
        assert not (x * 2).requires_grad
        with cg.enable_grad():
            assert (x * 2).requires_grad
            try:
                with cg.set_grad_enabled(False):
                    assert not cg.is_grad_enabled()
                    raise KeyError
            except KeyError:
                pass
            assert cg.is_grad_enabled()
        assert not cg.is_grad_enabled()
    assert cg.is_grad_enabled()


def test_one_mode_object_may_be_entered_inside_itself():
    off = cg.no_grad()
    with off:
        with cg.enable_grad():
            with off:
                assert not cg.is_grad_enabled()
            assert cg.is_grad_enabled()
        assert not cg.is_grad_enabled()
    assert cg.is_grad_enabled()


def test_set_grad_enabled_acts_at_once():
    switch = cg.set_grad_enabled(False)
    assert not cg.is_grad_enabled()
    cg.set_grad_enabled(True)
    assert cg.is_grad_enabled()
    del switch
    with cg.set_grad_enabled(False) as mode:
        assert not cg.is_grad_enabled()
    assert cg.is_grad_enabled()
    with mode:
        assert not cg.is_grad_enabled()
    assert cg.is_grad_enabled()


@pytest.mark.parametrize("decorate", [cg.no_grad, cg.no_grad(), cg.set_grad_enabled], ids=["bare", "called", "set"])
def test_decorated_functions(decorate):
    if decorate is cg.set_grad_enabled:
        decorate = cg.set_grad_enabled(False)

    @decorate
    def f(x, depth=2):
        """Doubles."""
        assert not cg.is_grad_enabled()
        return f(x, depth - 1) if depth else x * 2

    x = leaf(1.0)
    assert cg.is_grad_enabled()
    assert not f(x).requires_grad and cg.is_grad_enabled()
    assert f.__name__ == "f" and f.__doc__ == "Doubles."
    with cg.no_grad():
        f(x)
        assert not cg.is_grad_enabled()


def test_a_decorated_function_that_raises_restores_the_mode():
    @cg.no_grad()
    def fail():
        raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert cg.is_grad_enabled()


def test_decorated_methods():
    class Model:
        @cg.no_grad()
        def predict(self, x):
            return x * 2

    assert not Model().predict(leaf(1.0)).requires_grad


def test_decorated_generators_switch_only_while_they_run():
    log = []

    @cg.no_grad()
    def steps(x):
        try:
            got = yield x * 1
            log.append((got, cg.is_grad_enabled()))
            yield x * 2
        except ValueError:
            log.append(("caught", cg.is_grad_enabled()))
            yield x * 3
        finally:
            log.append(("closed", cg.is_grad_enabled()))

    x = leaf(1.0)
    it = steps(x)
    assert not next(it).requires_grad and cg.is_grad_enabled()
    assert it.send("hello").item() == 2.0 and cg.is_grad_enabled()
    assert it.throw(ValueError).item() == 3.0 and cg.is_grad_enabled()
    it.close()
    assert log == [("hello", False), ("caught", False), ("closed", False)] and cg.is_grad_enabled()

    @cg.no_grad()
    def returns():
        yield 1
        return 7

    def outer():
        assert (yield from returns()) == 7

    assert list(outer()) == [1]


def test_decorated_coroutines():
    @cg.no_grad()
    async def predict(x):
        await asyncio.sleep(0)
        assert not cg.is_grad_enabled()
        return x * 2

    async def train(x):
        await asyncio.sleep(0)
        assert cg.is_grad_enabled()
        return x * 2

    async def both():
        return await asyncio.gather(predict(leaf(1.0)), train(leaf(1.0)))

    a, b = asyncio.run(both())
    assert not a.requires_grad and b.requires_grad


def test_classes_and_values_cannot_be_decorated():
    with pytest.raises(TypeError, match="methods"):
        @cg.no_grad()
        class Model:
            pass
    with pytest.raises(TypeError, match="int"):
        cg.no_grad()(3)


def test_each_thread_has_its_mode():
    seen = []
    with cg.no_grad():
        thread = threading.Thread(target=lambda: seen.append(cg.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


# ------------------------------------------------------------------ grad and backward
def test_grad_returns_and_leaves_grad_alone():
    x, y, z = leaf([1.0, 2.0]), leaf([3.0, 4.0]), leaf(0.0)
    gx, gy = cg.autograd.grad((x * y).sum(), (x, y))
    assert gx.tolist() == [3.0, 4.0] and gy.tolist() == [1.0, 2.0] and x.grad is None
    out = (x * x).sum()
    with pytest.raises(RuntimeError, match=r"input 1 of shape \(\)"):
        cg.autograd.grad(out, (x, z), retain_graph=True)
    assert cg.autograd.grad(out, (x, z), retain_graph=True, allow_unused=True, only_inputs=True)[1] is None
    assert cg.autograd.grad(out, (x, z), materialize_grads=True)[1].item() == 0.0


def test_grad_of_several_outputs_with_given_gradients():
    x = leaf([1.0, 2.0])
    (g,) = cg.autograd.grad([x * 2, (x * 3).sum()], [x], [cg.tensor([1.0, 10.0], dtype=cg.float64), None])
    assert g.tolist() == [5.0, 23.0]


def test_grad_refuses_what_does_not_fit():
    x = leaf([1.0, 2.0])
    for bad, error, text in [
        (lambda: cg.autograd.grad(x * 2, x), RuntimeError, "scalar"),
        (lambda: cg.autograd.grad(x * 2, x, cg.ones(3, dtype=cg.float64)), RuntimeError, r"\(3,\)"),
        (lambda: cg.autograd.grad([x * 2], [x], [None, None]), RuntimeError, "grad_outputs"),
        (lambda: cg.autograd.grad(3.0, x), TypeError, "float"),
        (lambda: cg.autograd.grad([3.0], x), TypeError, "float"),
        (lambda: cg.autograd.grad(x.sum(), cg.ones(2)), RuntimeError, "require"),
        (lambda: cg.autograd.grad(cg.ones(()), x), RuntimeError, "require"),
        (lambda: cg.autograd.grad(x.sum(), x, is_grads_batched=True), ValueError, "batched"),
        (lambda: cg.autograd.grad(x.sum(), x, allow_unused=False, materialize_grads=True), ValueError, "allow_unused"),
        (lambda: cg.autograd.grad(x.sum(), x, only_inputs=False), ValueError, "only_inputs=False"),
        (lambda: cg.autograd.backward(x.sum(), inputs=[]), RuntimeError, "inputs"),
    ]:
        with pytest.raises(error, match=text):
            bad()


def test_backward_to_some_inputs_only():
    x, y = leaf(2.0), leaf(3.0)
    cg.autograd.backward(x * y, inputs=[x])
    assert x.grad.item() == 3.0 and y.grad is None
    cg.autograd.backward(x * y, inputs=x)
    assert x.grad.item() == 6.0


# ------------------------------------------------------------------ gradcheck
class wrong_sine(cg.Op):
    def forward(self, x):
        self.x = x
        return cg.sin(x)

    def backward(self, grads):
        return grads * cg.cos(self.x) * 1.01


class right_sine(wrong_sine):
    def backward(self, grads):
        return grads * cg.cos(self.x)


class once_sine(right_sine):
    """Right, but its derivative has none."""

    def backward(self, grads):
        return grads * cg.cos(self.x).detach()


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck_finds_a_wrong_rule(fast):
    x = leaf([[0.5, 1.0], [1.5, -2.0]])
    assert gradcheck(right_sine(), x, fast_mode=fast) and gradgradcheck(right_sine(), x, fast_mode=fast)
    with pytest.raises(GradcheckError, match=r"output 0\[0, 0\].*input 0\[0, 0\].*rule 0\.886.*difference 0\.877"):
        gradcheck(wrong_sine(), x, fast_mode=fast)
    assert not gradcheck(wrong_sine(), x, raise_exception=False, fast_mode=fast)
    assert gradcheck(once_sine(), x, fast_mode=fast)
    assert not gradgradcheck(once_sine(), x, raise_exception=False, fast_mode=fast)


def test_gradcheck_checks_forward_mode_on_its_own():
    class bad_jvp(right_sine):
        def jvp(self, t):
            return t * 2

    x = leaf([0.5])
    assert gradcheck(bad_jvp(), x)
    with pytest.raises(GradcheckError, match="forward mode"):
        gradcheck(bad_jvp(), x, check_forward_ad=True)
    assert gradcheck(right_sine(), x, check_forward_ad=True)


def test_gradcheck_of_batches():
    x, y = leaf([[0.5, 1.0], [1.5, -2.0]]), leaf([0.3, 0.7])
    everything = dict(check_batched_grad=True, check_forward_ad=True, check_batched_forward_grad=True)
    assert gradcheck(lambda x, y: (x * y.sin(), x.sum(), cg.tensor([1.0])), (x, y), **everything)
    assert gradgradcheck(lambda x, y: cg.softmax(x @ y, 0), (x, y), check_batched_grad=True, check_fwd_over_rev=True)
    for check, options, text in [(gradcheck, dict(check_batched_grad=True, check_backward_ad=False, check_forward_ad=True), "check_backward_ad=True"),
                                 (gradcheck, dict(check_batched_forward_grad=True), "check_forward_ad=True"),
                                 (gradgradcheck, dict(check_batched_grad=True, check_rev_over_rev=False), "check_rev_over_rev=True")]:
        with pytest.raises(ValueError, match=text):
            check(cg.sin, x, **options)

    wrong = cg.op(lambda x: x * 2, vjp=lambda g, x: g * 2, batch=lambda axes, x: x * 2 + x[:1] * 1e-3)     # mixes the examples
    with pytest.raises(GradcheckError, match=r"gradcheck: batched backward is wrong: element \[0, 0\] of the gradient of input 0 from output 0, number 0 of the "
                                             r"batch: batched -?[\d.]+, alone -?[\d.]+ \(12 of 12 are wrong\)"):
        gradcheck(SelfDual(wrong), x, check_batched_grad=True)
    with pytest.raises(GradcheckError, match=r"batched forward mode is wrong: element \[0, 0\] of the tangent of output 0 from input 0, number 0"):
        gradcheck(SelfDual(wrong), x, **everything | {"check_batched_grad": False})


class SelfDual(cg.Op):
    """A linear function that is its own pullback and pushforward."""

    def __init__(self, function):
        self.function = function

    def forward(self, x):
        return x * 2

    def backward(self, grads):
        return self.function(grads)

    def jvp(self, t):
        return self.function(t)


def test_gradcheck_of_several_inputs_and_outputs():
    x, y, k = leaf([1.0, 2.0]), leaf([[0.5], [2.0]]), cg.tensor([2, 3])
    assert gradcheck(lambda x, y, k: (x * y * k, (x / y).sum(), k), (x, y, k), check_forward_ad=True)
    assert gradgradcheck(lambda x, y, k: (x * y * k, (x / y).sum()), (x, y, k), check_fwd_over_rev=True)
    assert gradgradcheck(lambda x, y, k: x * y, (x, y, k), gen_non_contig_grad_outputs=True)


def test_gradcheck_finds_a_missing_dependence():
    with pytest.raises(GradcheckError, match="rule 0, difference 1"):
        gradcheck(lambda x: x.detach(), leaf([1.0]))


def test_gradcheck_finds_what_is_not_deterministic():
    class shaky(cg.Op):
        def forward(self, x):
            return x * 2

        def backward(self, grads):
            return grads * 2 * (1 + 1e-5 * cg.rand(()).item())

    with pytest.raises(GradcheckError, match="deterministic"):
        gradcheck(shaky(), leaf([1.0]))
    assert gradcheck(shaky(), leaf([1.0]), nondet_tol=1e-3)


def test_gradcheck_leaves_its_inputs_unchanged():
    v = np.array([[0.1, 0.2], [0.3, 0.7]])
    x = leaf(v).T.detach().requires_grad_()
    gradcheck(lambda x: x.exp(), x)
    np.testing.assert_array_equal(x.detach().numpy(), v.T)
    assert x.grad is None


def test_gradcheck_says_what_it_cannot_check():
    with pytest.raises(ValueError, match="requires grad"):
        gradcheck(cg.sin, cg.ones(2))
    with pytest.raises(ValueError, match="share memory"):
        gradcheck(cg.sin, leaf([1.0]).expand(3).detach().requires_grad_())
    with pytest.raises(ValueError, match="float"):
        gradcheck(lambda x: 3.0, leaf([1.0]))
    with pytest.warns(UserWarning, match="float64"):
        gradcheck(cg.sin, cg.tensor([0.0], requires_grad=True), eps=1e-2, atol=1e-2)


# ------------------------------------------------------------------ checkpoint
def block(x, w):
    return cg.tanh(cg.sin(x) * w + x)


def test_a_checkpoint_gives_the_same_gradients():
    x, w = leaf(np.linspace(-1, 1, 5)), leaf(1.3)
    want = cg.autograd.grad(block(x, w).sum(), (x, w))
    got = cg.autograd.grad(cg.checkpoint(block, x, w=w).sum(), (x, w))
    for a, b in zip(got, want):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert gradcheck(lambda x, w: cg.checkpoint(block, x, w), (x, w), check_forward_ad=True)
    assert gradgradcheck(lambda x, w: cg.checkpoint(block, x, w), (x, w))


def test_a_checkpoint_keeps_only_inputs_and_outputs():
    kept = []

    def watch(x):
        y = x.exp()
        kept.append(__import__("weakref").ref(y))
        return y.sin()

    x = leaf([1.0, 2.0])
    y = cg.checkpoint(watch, x)
    assert kept[0]() is None
    y.sum().backward()
    assert len(kept) == 1                   # the second call ends before it gets there: exp has been computed
    np.testing.assert_allclose(x.grad.numpy(), np.cos(np.exp([1, 2])) * np.exp([1, 2]), rtol=1e-14)


def test_parameters_that_the_function_reaches_get_their_gradients():
    net = cg.nn.Sequential(cg.nn.Linear(2, 3), cg.nn.Tanh(), cg.nn.Linear(3, 1))
    data = cg.randn(4, 2)
    net(data).sum().backward()
    want = [p.grad.numpy().copy() for p in net.parameters()]
    net.zero_grad()
    cg.checkpoint(net, data).sum().backward()          # no argument requires grad, the parameters do
    for p, g in zip(net.parameters(), want):
        np.testing.assert_allclose(p.grad.numpy(), g, rtol=1e-6)
    for g, h in zip(cg.autograd.grad(cg.checkpoint(net, data).sum(), list(net.parameters())), want):
        np.testing.assert_allclose(g.numpy(), h, rtol=1e-6)


def test_nested_checkpoints_and_several_outputs():
    calls = []

    def inner(x):
        calls.append("inner")
        return x.sin()

    def outer(x, options):
        calls.append("outer")
        a = cg.checkpoint(inner, x * options["scale"])
        return {"a": a, "b": [a.exp(), 3], "c": x.detach()}

    x = leaf([0.3, 0.6])
    out = cg.checkpoint(outer, x, {"scale": leaf(2.0)})
    assert out["b"][1] == 3 and not out["c"].requires_grad
    (out["a"].sum() + out["b"][0].sum()).backward()
    assert calls.count("outer") == 2 and calls.count("inner") == 2      # sin needs its input alone, so it is not computed a third time
    s = np.sin([0.6, 1.2])
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.cos([0.6, 1.2]) * (1 + np.exp(s)), rtol=1e-13)


def test_one_of_several_outputs_may_be_used():
    x = leaf([0.5])
    a, _ = cg.checkpoint(lambda x: (x.sin(), x.exp()), x)
    a.sum().backward()
    assert x.grad.item() == pytest.approx(np.cos(0.5))


def test_both_calls_draw_the_same_random_numbers():
    x = leaf(np.ones(1000))
    cg.manual_seed(3)
    y = cg.checkpoint(lambda x: cg.nn.functional.dropout(x, 0.5), x)
    after = cg.rand(()).item()
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.detach().numpy())
    cg.manual_seed(3)
    cg.nn.functional.dropout(x, 0.5)
    assert cg.rand(()).item() == after
    before = cg.rand(()).item()
    assert before != after


def test_backward_does_not_disturb_the_random_numbers():
    x = leaf(np.ones(10))
    cg.manual_seed(3)
    y = cg.checkpoint(lambda x: x * cg.rand(10, dtype=cg.float64), x)
    want = cg.rand(3).tolist()
    cg.manual_seed(3)
    y = cg.checkpoint(lambda x: x * cg.rand(10, dtype=cg.float64), x)
    y.sum().backward()
    assert cg.rand(3).tolist() == want


def test_a_checkpoint_that_is_not_recorded_is_a_plain_call():
    x, calls = leaf([1.0]), []

    def f(x):
        calls.append(1)
        return x * 2

    with cg.no_grad():
        assert not cg.checkpoint(f, x).requires_grad
    assert not cg.checkpoint(f, cg.ones(1)).requires_grad
    assert len(calls) == 2


def test_results_from_elsewhere_must_be_arguments():
    w = leaf(2.0) * 3
    with pytest.raises(RuntimeError, match="argument"):
        cg.checkpoint(lambda x: x * w, leaf(1.0))


def test_an_argument_changed_in_place_is_an_error():
    x = leaf([1.0])
    y = x * 1
    z = cg.checkpoint(lambda y: y.exp(), y)
    y += 1
    with pytest.raises(RuntimeError, match="in place"):
        z.sum().backward()


def test_a_function_that_answers_otherwise_the_second_time_is_an_error():
    calls = []

    def f(x):
        calls.append(1)
        return x.exp() if len(calls) == 1 else x.detach()

    y = cg.checkpoint(f, leaf([1.0]))
    with pytest.raises(RuntimeError, match="called again"):
        y.sum().backward()


def test_the_identity_can_be_checkpointed():
    x = leaf([1.0, 2.0])
    cg.checkpoint(lambda x: x, x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_gradcheck_of_empty_tensors(shape, fast):
    x = cg.zeros(shape, dtype=cg.float64, requires_grad=True)
    assert cg.autograd.gradcheck(lambda x: x * x, (x,), fast_mode=fast, check_forward_ad=True)
    assert cg.autograd.gradcheck(lambda x: x.sum() + 1.0, (x,), fast_mode=fast)
    assert cg.autograd.gradgradcheck(lambda x: x.exp(), (x,))
