"""Results written over an operand that dies with the call: only where nobody can tell."""
import functools
import itertools
import operator
import weakref

import numpy as np
import pytest

import cgrad as cg

LARGE = 1 << 19          # elements; from 1 << 18 on operands are looked at


def ones():
    return cg.ones(LARGE)


def blocks(function):
    """How many blocks a call takes from the allocator."""
    function()
    before = cg.memory.stats()
    function()
    after = cg.memory.stats()
    return sum(after[k] - before[k] for k in ("reused_blocks", "new_blocks"))


def test_a_temporary_gives_its_memory_to_the_result():
    a, b = ones(), ones()
    assert blocks(lambda: a * b + a * 2.0 - b / 3.0) <= 5
    if blocks(lambda: a * b + 1.0) == 1:              # where the stack can be read
        assert blocks(lambda: a * b + a * 2.0 - b / 3.0) == 3
        assert blocks(lambda: 2.0 - (a + b)) == 1


def test_values_are_those_of_single_steps():
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(LARGE, np.float32) for _ in range(2))
    x, y = cg.tensor(a), cg.tensor(b)
    assert np.array_equal((x * y + x * 2.0 - 3.0 / (y * y)).numpy(), a * b + a * np.float32(2) - np.float32(3) / (b * b))
    assert np.array_equal(((x + y) * (x + y)[::-1]).numpy(), (a + b) * (a + b)[::-1])
    assert np.array_equal(((x + y) > (x * y)).numpy(), (a + b) > (a * b))


@pytest.mark.parametrize("hold", [
    lambda x: functools.partial(operator.mul, x),
    lambda x: x.__mul__,
    lambda x: (lambda y: x * y),
    lambda x: functools.partial(cg.multiply, x),
], ids=["partial of an operator", "bound method", "closure", "partial of a function"])
def test_what_something_else_holds_is_left_alone(hold):
    held = hold(ones())
    assert float(held(2.0)[0]) == 2.0
    assert float(held(2.0)[0]) == 2.0


def test_folds_and_running_sums():
    assert float(functools.reduce(operator.add, [ones() for _ in range(4)])[0]) == 4.0
    assert [float(x[-1]) for x in itertools.accumulate(ones() for _ in range(4))] == [1.0, 2.0, 3.0, 4.0]
    assert [float(x[-1]) for x in list(itertools.accumulate(ones() for _ in range(4)))] == [1.0, 2.0, 3.0, 4.0]
    assert float(sum(ones() for _ in range(3))[0]) == 3.0


def test_views_aliases_and_borrowed_memory_are_left_alone():
    array = np.ones(LARGE, np.float32)
    cg.from_numpy(array) * 2.0 + 1.0
    assert np.all(array == 1)
    x = ones()
    assert float((x.detach() * 2.0)[0]) == 2.0
    assert float((x.reshape(2, -1) + 1.0)[0, 0]) == 2.0
    assert float(x[0]) == 1.0
    kept = []

    def keep(y):
        kept.append(y.detach())
        return y
    assert float((keep(x * 3.0) + 1.0)[0]) == 4.0
    assert float(kept[0][0]) == 3.0
    assert float((keep(x * 3.0).numpy() + 1)[0]) == 4.0


def test_a_weak_reference_sees_no_overwriting():
    seen = []

    def watch(x):
        seen.append(weakref.ref(x, lambda _: seen.append("dead")))
        return x
    assert float((watch(ones() * 2.0) + 1.0)[0]) == 3.0
    assert seen[1:] == ["dead"]


def test_what_the_tape_keeps_is_left_alone():
    x = ones().requires_grad_()
    y = ((x * 3.0) * (x * 5.0)).sum()                 # both factors are saved
    y.backward()
    assert float(x.grad[0]) == 30.0
    x.grad = None
    (x * 3.0 + 1.0).exp().sum().backward()
    assert float(x.grad[0]) == pytest.approx(3 * np.exp(4.0), rel=1e-6)
    x.grad = None
    y = x * 3.0
    (y * y + y * 2.0).sum().backward()
    assert float(x.grad[0]) == 3 * (6 + 2)


@pytest.mark.parametrize("times", [1, 3])
def test_gradients_that_nobody_holds_are_written_over(times):
    x = ones().requires_grad_()
    seed = ones()

    def chain():
        y = x
        for _ in range(times):
            y = (y * 0.5).tanh()
        return y
    chain().backward(seed)
    y, first = chain(), x.grad.clone()
    x.grad = None
    before = cg.memory.stats()
    y.backward(seed)
    after = cg.memory.stats()
    assert sum(after[k] - before[k] for k in ("reused_blocks", "new_blocks")) == 1
    assert bool((seed == 1).all())
    assert bool((x.grad == first).all())


def test_a_gradient_that_a_hook_keeps_is_left_alone():
    x = ones().requires_grad_()
    y = x * 2.0
    kept = []
    y.register_hook(kept.append)
    ((y * 3.0) * 5.0).sum().backward()
    assert float(kept[0][0]) == 15.0
    assert float(x.grad[0]) == 30.0


def test_borrowed_memory_does_not_become_a_gradient():
    array = np.ones(4, np.float32)
    x = cg.zeros(4, requires_grad=True)
    for _ in range(2):
        (x + 0.0).backward(cg.from_numpy(array))
    assert x.grad.tolist() == [2.0] * 4
    assert array.tolist() == [1.0] * 4
