"""What cgrad is made of, seen from the outside: operators with two sides, the tape, modules, derivatives in both directions.

Every number follows from a formula: g = exp(a*b + c*d) with (a, b, c, d) = (2, 3, 2, 2), squares, products, sums.
"""

import math
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import cgrad as cg
from cgrad import Op

G = math.exp(10.0)  # exp(2*3 + 2*2)
PARTIALS = (3 * G, 2 * G, 2 * G, 2 * G)


# The user's own operators: plain Python, state kept on the instance.
class add(Op):
    def forward(self, x, y):
        self.x, self.y = x, y
        return x + y

    def backward(self, grads):
        return grads, grads


class multiply(Op):
    def forward(self, x, y):
        self.x, self.y = x, y
        return x * y

    def backward(self, grads):
        return grads * self.y, grads * self.x


class exponential(Op):
    def forward(self, x):
        self.x = x
        return math.exp(x)

    def backward(self, grads):
        return grads * math.exp(self.x)


# ------------------------------------------------------------------ operators
def test_the_base_class_fixes_how_to_call_and_what_to_implement():
    op = Op()
    for call in (lambda: op(1), lambda: op.forward(1), lambda: op.backward(1)):
        with pytest.raises(NotImplementedError):
            call()


def test_operators_work_alone_on_plain_numbers():
    plus, times, e = add(), multiply(), exponential()
    assert plus(1, 4) == 5 and plus.backward(grads=1) == (1, 1)
    assert times(2, 3) == 6 and times.backward(1) == (3, 2)
    assert type(plus(1, 4)) is int
    assert e(1.0) == math.e and e.backward(2.0) == 2.0 * math.e


def test_composition_prints_the_value_of_exp_of_ten():
    a, b, c, d = 2, 3, 2, 2
    times, plus, e = multiply(), add(), exponential()
    g = e(plus(times(a, b), times(c, d)))
    assert str(g) == "22026.465794806718"


def test_walking_back_by_hand_gives_the_four_partials():
    m1, m2, plus, e = multiply(), multiply(), add(), exponential()
    e(plus(m1(2, 3), m2(2, 2)))
    z1, z2 = plus.backward(e.backward(1))
    got = m1.backward(z1) + m2.backward(z2)
    assert got == pytest.approx(PARTIALS, rel=1e-15)
    assert got[0] / got[1] == 1.5


@pytest.mark.parametrize("reuse", [False, True], ids=["own instances", "one instance used twice"])
def test_the_same_operators_record_themselves_when_given_tensors(reuse):
    """One stateful instance called twice must keep each call's own inputs."""
    a, b, c, d = (cg.tensor(v, dtype=cg.float64, requires_grad=True) for v in (2.0, 3.0, 2.0, 2.0))
    m1 = multiply()
    m2 = m1 if reuse else multiply()
    g = exponential()(add()(m1(a, b), m2(c, d)))
    assert isinstance(g, cg.Tensor) and g.requires_grad
    assert g.item() == 22026.465794806718
    g.backward()
    got = [t.grad.item() for t in (a, b, c, d)]
    assert got == pytest.approx(PARTIALS, rel=1e-14)


def test_user_operators_mix_with_built_in_ones_and_broadcast():
    x = cg.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    w = cg.tensor(np.array([1.0, 2.0, 3.0]), requires_grad=True)
    (multiply()(x, w).sum() * 2).backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.broadcast_to([2.0, 4.0, 6.0], (2, 3)))
    np.testing.assert_array_equal(w.grad.numpy(), 2 * np.array([3.0, 5.0, 7.0]))


def test_a_wrong_number_of_gradients_is_a_clear_error():
    class broken(Op):
        def forward(self, x, y):
            return x + y

        def backward(self, grads):
            return grads

    x, y = (cg.tensor(1.0, requires_grad=True) for _ in range(2))
    with pytest.raises((TypeError, ValueError, RuntimeError), match="broken"):
        broken()(x, y).backward()


# ------------------------------------------------------------ the tape (ledger)
def test_three_rules_of_the_ledger():
    a = cg.tensor(2.0, requires_grad=True)
    b = cg.tensor(5.0, requires_grad=False)
    c = a * b
    assert a.grad is None and c.grad_fn is not None and "mul" in type(c.grad_fn).__name__.lower() + repr(c.grad_fn).lower()
    assert a.grad_fn is None and b.grad_fn is None
    assert a.is_leaf and b.is_leaf and not c.is_leaf
    c.backward()
    assert str(a.grad) == "tensor(5.)"
    assert b.grad is None
    with pytest.warns(UserWarning, match="no leaf but a result of multiply"):
        assert c.grad is None


def test_retain_grad_keeps_an_intermediate_gradient():
    a = cg.tensor(2.0, requires_grad=True)
    c = a * 5.0
    c.retain_grad()
    (c * 3.0).backward()
    assert c.grad.item() == 3.0 and a.grad.item() == 15.0


def test_gradients_accumulate_until_cleared():
    x = cg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (x**2).sum().backward()
    assert str(x.grad) == "tensor([2., 4., 6.])"
    (x**2).sum().backward()
    assert str(x.grad) == "tensor([ 4.,  8., 12.])"
    x.grad.zero_()
    (x**2).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_small_batches_add_up_to_the_large_batch():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(32, 5))
    w = cg.tensor(rng.normal(size=(5,)), requires_grad=True)
    ((cg.tensor(data) @ w) ** 2).sum().backward()
    whole = w.grad.numpy().copy()
    w.grad = None
    for part in np.split(data, 4):
        ((cg.tensor(part) @ w) ** 2).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), whole, rtol=1e-12)


def test_no_grad_and_detach_close_the_ledger():
    x = cg.tensor([1.0, 2.0], requires_grad=True)
    with cg.no_grad():
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad
    y = x * 3
    z = y.detach()
    assert not z.requires_grad and z.grad_fn is None
    assert np.shares_memory(z.numpy(), y.detach().numpy())

    @cg.no_grad()
    def predict(t):
        return t * 2

    assert not predict(x).requires_grad


def test_a_second_backward_without_retain_graph_is_a_clear_error():
    x = cg.tensor(2.0, requires_grad=True)
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward()


def test_backward_needs_a_scalar_or_a_gradient():
    x = cg.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="scalar"):
        (x * 2).backward()
    (x * 2).backward(cg.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2.0, 20.0]


# -------------------------------------------------------------- modules, training
def test_a_module_needs_only_forward():
    class Net(cg.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = cg.nn.Linear(2, 16)
            self.fc2 = cg.nn.Linear(16, 1)

        def forward(self, x):
            return self.fc2(cg.nn.functional.relu(self.fc1(x)))

    cg.manual_seed(0)
    net = Net()
    assert len(list(net.parameters())) == 4 and all(p.is_leaf and p.requires_grad for p in net.parameters())
    opt = cg.optim.SGD(net.parameters(), lr=0.1)
    x = cg.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    t = cg.tensor([[0.0], [1.0], [1.0], [0.0]])
    first = None
    for _ in range(2000):
        opt.zero_grad()
        loss = ((net(x) - t) ** 2).mean()
        loss.backward()
        opt.step()
        first = loss.item() if first is None else first
    assert loss.item() < 0.01 < first


# ------------------------------------ both directions, any order, recomputation
def test_both_directions_of_differentiation_agree():
    def f(x):
        return (x.sin() * x).sum()

    x = cg.tensor(np.array([0.5, 1.5, -2.0]))
    v = cg.tensor(np.array([1.0, -1.0, 2.0]))
    _, tangent = cg.func.jvp(f, (x,), (v,))
    gradient = cg.func.grad(f)(x)
    assert tangent.item() == pytest.approx(float(np.dot(gradient.numpy(), v.numpy())), rel=1e-12)


def test_second_derivatives():
    x = cg.tensor(np.array(2.0), requires_grad=True)
    y = x**3
    (g,) = cg.autograd.grad(y, (x,), create_graph=True)
    (h,) = cg.autograd.grad(g, (x,))
    assert (g.item(), h.item()) == (12.0, 12.0)
    H = cg.func.hessian(lambda t: (t**3).sum())(cg.tensor(np.array([1.0, 2.0])))
    np.testing.assert_allclose(H.numpy(), [[6.0, 0.0], [0.0, 12.0]])


def test_second_derivatives_through_a_user_operator():
    x, y = (cg.tensor(np.array(v), requires_grad=True) for v in (2.0, 5.0))
    (gx,) = cg.autograd.grad(multiply()(x, y) * x, (x,), create_graph=True)
    assert gx.item() == 20.0
    gxx, gxy = cg.autograd.grad(gx, (x, y))
    assert (gxx.item(), gxy.item()) == (10.0, 4.0)


def test_recomputation_trades_time_for_memory():
    calls = []

    def block(t):
        calls.append(1)
        return (t.exp() + 1).log()

    x = cg.tensor(np.linspace(-1, 1, 7), requires_grad=True)
    block(x).sum().backward()
    direct = x.grad.numpy().copy()
    x.grad = None
    calls.clear()
    cg.checkpoint(block, x).sum().backward()
    assert len(calls) == 2
    np.testing.assert_allclose(x.grad.numpy(), direct, rtol=1e-14)


def test_a_long_chain_overflows_nothing():
    code = textwrap.dedent(
        """
        import cgrad as cg
        x = cg.tensor(1.0, requires_grad=True)
        y = x
        for _ in range(1_000_000):
            y = y * 1.0
        y.backward()
        assert x.grad.item() == 1.0
        y = x
        for _ in range(1_000_000):
            y = y + 0.0
        del y
        print("done")
        """
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert out.stdout.strip() == "done", out.stderr[-2000:]
