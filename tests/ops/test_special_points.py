"""At kinks, zeros, infinities and NaN: backward, backward with a graph and forward mode give one slope."""
import math

import numpy as np
import pytest

import cgrad as cg
import cgrad.nn.functional as F
from cgrad.ops import PUBLIC

POINTS = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 6.0, 1e-300, 1e300, -1e300, math.inf, -math.inf, math.nan])
FUNCTIONS = {**{n: f for n, f in PUBLIC.items() if callable(f)}, **{"special." + n: getattr(cg.special, n) for n in dir(cg.special)},
             **{"F." + n: getattr(F, n) for n in dir(F)}}


def is_elementwise(f):
    """Whether f takes one tensor, element by element, and can be differentiated."""
    try:
        x = cg.tensor(POINTS, requires_grad=True)
        y, turned = f(x), f(cg.flip(x, axis=0))
        return y.shape == x.shape and y.requires_grad and np.array_equal(cg.flip(turned, axis=0).detach().numpy(), y.detach().numpy(), equal_nan=True)
    except Exception:  # noqa: BLE001
        return False


NAMES = sorted(n for n, f in FUNCTIONS.items() if callable(f) and not n.startswith(("F._", "special._")) and "dropout" not in n and is_elementwise(f))


def slopes(f, x):
    """By backward, backward with a graph, forward mode."""
    found = []
    for create_graph in (False, True):
        t = cg.tensor(x, requires_grad=True)
        y = f(t)
        found.append(cg.autograd.grad(y, t, cg.ones_like(y), create_graph=create_graph)[0].detach().numpy())
    t = cg.tensor(x)
    return [*found, cg.func.jvp(f, (t,), (cg.ones_like(t),))[1].numpy()]


def test_there_are_functions_to_look_at():
    assert {"abs", "exp", "sqrt", "relu", "silu", "gelu", "sign", "log1p", "F.hardswish", "F.mish", "F.selu"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_three_ways_give_one_slope(name, dtype):
    with np.errstate(over="ignore", under="ignore"):
        points = POINTS.astype(dtype)
    backward, recorded, forward = slopes(FUNCTIONS[name], points)
    tolerance = 1e-9 if dtype is np.float64 else 1e-4
    np.testing.assert_allclose(recorded, backward, rtol=tolerance, atol=tolerance, err_msg="with a graph")
    np.testing.assert_allclose(forward, backward, rtol=tolerance, atol=tolerance, err_msg="forward mode")


@pytest.mark.parametrize(("f", "low", "high"), [
    (cg.gelu, 0, 1), (lambda x: cg.gelu(x, "tanh"), 0, 1), (cg.silu, 0, 1), (F.hardswish, 0, 1), (cg.softplus, 0, 1), (cg.sigmoid, 0, 0),
    (cg.tanh, 0, 0), (cg.relu, 0, 1), (F.elu, 0, 1), (F.logsigmoid, 1, 0), (cg.erf, 0, 0), (cg.expm1, 0, math.inf),
    (cg.atan, 0, 0), (F.relu6, 0, 0), (F.celu, 0, 1), (F.hardsigmoid, 0, 0)])
def test_slopes_at_infinity_are_the_limits(f, low, high):
    for found in slopes(f, np.array([-math.inf, math.inf])):
        np.testing.assert_array_equal(found + 0.0, [low, high])
    for n in (1, 9, 40):                                   # in the body of a vector loop and in what is left over
        for found in slopes(f, np.tile([-math.inf, math.inf, 0.25], n)):
            np.testing.assert_array_equal(found[:2] + 0.0, [low, high])


def test_infinity_stays_out_of_the_slope_of_the_weight():
    x = cg.tensor([math.inf, 1.0, -2.0], requires_grad=True)
    w = cg.tensor([0.5], requires_grad=True)
    cg.prelu(x, w).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 0.5] and w.grad.tolist() == [-2.0]
    w = cg.tensor([math.inf], requires_grad=True)
    y = cg.tensor([1.0, 2.0], requires_grad=True)
    cg.prelu(y, w).sum().backward()
    assert y.grad.tolist() == [1.0, 1.0] and w.grad.tolist() == [0.0]
