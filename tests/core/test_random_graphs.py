"""Random graphs: the tape against an automatic differentiation of forty lines that anyone can check by eye."""
import math
import random

import numpy as np
import pytest

import cgrad as cg


class Value:
    """A number that remembers which numbers it was made of, and the slope in each."""

    def __init__(self, number, *parts):
        self.number, self.parts, self.slope = number, parts, 0.0

    def __add__(self, other):
        return Value(self.number + other.number, (self, 1.0), (other, 1.0))

    def __sub__(self, other):
        return Value(self.number - other.number, (self, 1.0), (other, -1.0))

    def __mul__(self, other):
        return Value(self.number * other.number, (self, other.number), (other, self.number))

    def __truediv__(self, other):
        return Value(self.number / other.number, (self, 1 / other.number), (other, -self.number / other.number ** 2))

    def tanh(self):
        t = math.tanh(self.number)
        return Value(t, (self, 1 - t * t))

    def sin(self):
        return Value(math.sin(self.number), (self, math.cos(self.number)))

    def exp(self):
        e = math.exp(self.number)
        return Value(e, (self, e))

    def square(self):
        return Value(self.number ** 2, (self, 2 * self.number))


def backward(history):
    """Slopes of the last number of a history in all earlier ones."""
    history[-1].slope = 1.0
    for value in reversed(history):
        for part, slope in value.parts:
            part.slope += slope * value.slope


def grow(rng, leaves, n_steps, guard):
    """The same random steps on any kind of number: a list of everything made, the result last."""
    made = list(leaves)
    for _ in range(n_steps):
        step = rng.choice(["+", "-", "*", "/", "tanh", "sin", "exp", "square"])
        x, y = rng.choice(made), rng.choice(made)
        if step == "+":
            z = x + y
        elif step == "-":
            z = x - y
        elif step == "*":
            z = (x * y).tanh()
        elif step == "/":
            z = x / guard(y)
        elif step == "exp":
            z = x.tanh().exp()
        elif step == "square":
            z = x.tanh().square()
        else:
            z = getattr(x, step)()
        made.append(z)
    total = made[0]
    for z in made[1:]:
        total = total + z.tanh()
    return made + [total]


def all_values(result):
    """Everything a result was made of, in an order in which parts come first."""
    order, seen, stack = [], set(), [(result, False)]
    while stack:
        value, expanded = stack.pop()
        if expanded:
            order.append(value)
        elif id(value) not in seen:
            seen.add(id(value))
            stack.append((value, True))
            stack += [(part, False) for part, _ in value.parts]
    return order


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs(seed):
    rng = random.Random(seed)
    numbers = [rng.uniform(-2, 2) for _ in range(rng.randint(1, 4))]
    n_steps = rng.randint(1, 40)
    steps = rng.randrange(1 << 30)
    plain = [Value(x) for x in numbers]
    result = grow(random.Random(steps), plain, n_steps, lambda y: y.square() + Value(1.0))[-1]
    backward(all_values(result))

    leaves = [cg.tensor(x, dtype=cg.float64, requires_grad=True) for x in numbers]
    out = grow(random.Random(steps), leaves, n_steps, lambda y: y.square() + 1.0)[-1]
    assert out.item() == pytest.approx(result.number, rel=1e-13)
    out.backward()
    for x, value in zip(leaves, plain):
        assert x.grad.item() == pytest.approx(value.slope, rel=1e-10, abs=1e-13)

    # The same graph on rows: every element is a graph of its own.
    rows = [cg.tensor(np.full(5, x), requires_grad=True) for x in numbers]
    grow(random.Random(steps), rows, n_steps, lambda y: y.square() + 1.0)[-1].sum().backward()
    for x, value in zip(rows, plain):
        np.testing.assert_allclose(x.grad.numpy(), value.slope, rtol=1e-10, atol=1e-13)
