"""At kinks, zeros, infinities and NaN: backward, backward with a graph and forward mode give one slope."""
import math

import mpmath as mp
import numpy as np
import pytest

import cgrad as cg
import cgrad.nn.functional as F
from cgrad.ops import PUBLIC

INF = math.inf
SELU = (1.0507009873554804934193349852946, 1.6732632423543772848170429916717)
ONE_SIDED = {"sqrt", "rsqrt", "log", "log2", "log10", "logit", "digamma", "lgamma"}      # defined on one side of 0 alone, where -0.0 is another matter
TOLERANCE = {"special.erfcx": 1e-10}
ABSOLUTE = {"gelu": 1e-18, "sigmoid": 1e-16, "tanh": 1e-15, "tanhshrink": 1e-15}        # from a result that was rounded to 1
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


# name: (derivative by mpmath, its limits at -infinity and infinity); None where there is no derivative, or no limit
def _inside(f, test):
    return lambda x: f(x) if test(x) else None


def _sech2(x):
    return mp.sech(x) ** 2


def _step(low, high, at, inner=lambda x: 1, below=0, above=0):
    """A function in pieces; `at`: its value at the ends."""
    return lambda x: at if x in (low, high) else below if x < low else above if x > high else inner(x)


def _i1_slope(x):
    return (mp.besseli(0, x) + mp.besseli(2, x)) / 2


LIMITS = {
    "abs": (mp.sign, -1, 1), "negative": (lambda x: -1, -1, -1), "square": (lambda x: 2 * x, -INF, INF), "sign": (lambda x: 0, 0, 0),
    "reciprocal": (lambda x: -1 / x**2 if x else -INF, 0, 0), "floor": (lambda x: 0, 0, 0), "frac": (lambda x: 1, 1, 1),
    "sqrt": (_inside(lambda x: 1 / (2 * mp.sqrt(x)), lambda x: x > 0), None, 0), "rsqrt": (_inside(lambda x: -x**mp.mpf(-1.5) / 2, lambda x: x > 0), None, 0),
    "cbrt": (lambda x: abs(x) ** (mp.mpf(-2) / 3) / 3 if x else INF, 0, 0),
    "exp": (mp.exp, 0, INF), "exp2": (lambda x: mp.power(2, x) * mp.log(2), 0, INF), "expm1": (mp.exp, 0, INF),
    **{name: (_inside(lambda x, base=base: 1 / (x * mp.log(base)), lambda x: x > 0), None, 0) for name, base in (("log", mp.e), ("log2", 2), ("log10", 10))},
    "log1p": (_inside(lambda x: 1 / (1 + x), lambda x: x > -1), None, 0),
    "sin": (mp.cos, None, None), "cos": (lambda x: -mp.sin(x), None, None), "tan": (lambda x: mp.sec(x) ** 2, None, None),
    "asin": (_inside(lambda x: 1 / mp.sqrt(1 - x * x) if abs(x) < 1 else INF, lambda x: abs(x) <= 1), None, None),
    "acos": (_inside(lambda x: -1 / mp.sqrt(1 - x * x) if abs(x) < 1 else -INF, lambda x: abs(x) <= 1), None, None),
    "atan": (lambda x: 1 / (1 + x * x), 0, 0), "sinh": (mp.cosh, INF, INF), "cosh": (mp.sinh, -INF, INF), "tanh": (_sech2, 0, 0),
    "asinh": (lambda x: 1 / mp.sqrt(1 + x * x), 0, 0),
    "acosh": (_inside(lambda x: 1 / mp.sqrt(x * x - 1) if x > 1 else INF, lambda x: x >= 1), None, 0),
    "atanh": (_inside(lambda x: 1 / (1 - x * x) if abs(x) < 1 else x * INF, lambda x: abs(x) < 1), None, None),
    "sigmoid": (lambda x: _sech2(x / 2) / 4, 0, 0), "logsigmoid": (lambda x: 1 / (1 + mp.exp(x)), 1, 0),
    "erf": (lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x), 0, 0), "erfc": (lambda x: -2 / mp.sqrt(mp.pi) * mp.exp(-x * x), 0, 0),
    "special.erfcx": (lambda x: 2 * x * erfcx(x) - 2 / mp.sqrt(mp.pi), -INF, 0),
    "erfinv": (_inside(lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(mp.erfinv(x) ** 2) if x else mp.sqrt(mp.pi) / 2, lambda x: abs(x) < 1), None, None),
    "special.ndtr": (mp.npdf, 0, 0),
    "special.log_ndtr": (lambda x: mp.npdf(x) / mp.ncdf(x) if x > -1e6 else -x, INF, 0),
    "special.entr": (_inside(lambda x: -mp.log(x) - 1 if x else INF, lambda x: x >= 0), None, -INF),
    "logit": (_inside(lambda x: 1 / (x * (1 - x)), lambda x: 0 < x < 1), None, None),
    "digamma": (_inside(lambda x: mp.psi(1, x), lambda x: x > 0), None, 0), "lgamma": (_inside(mp.digamma, lambda x: x > 0), None, INF),
    "i0": (lambda x: mp.besseli(1, x) if abs(x) < 1e4 else x * INF, -INF, INF), "special.i1": (lambda x: _i1_slope(x) if abs(x) < 1e4 else INF, INF, INF),
    "special.i0e": (lambda x: _scaled_bessel(x, lambda x: mp.besseli(1, x) - mp.sign(x) * mp.besseli(0, x)), 0, 0),
    "special.i1e": (lambda x: _scaled_bessel(x, lambda x: _i1_slope(x) - mp.sign(x) * mp.besseli(1, x)), 0, 0),
    "sinc": (lambda x: (mp.cospi(x) - mp.sinpi(x) / (mp.pi * x)) / x if x else 0, 0, 0),
    "deg2rad": (lambda x: mp.pi / 180, mp.pi / 180, mp.pi / 180), "rad2deg": (lambda x: 180 / mp.pi, 180 / mp.pi, 180 / mp.pi),
    "relu": (_step(0, 0, 0, above=1), 0, 1), "relu6": (_step(0, 6, 0), 0, 0), "leaky_relu": (_step(0, 0, 0.01, below=0.01, above=1), 0.01, 1),
    "elu": (lambda x: mp.exp(x) if x <= 0 else 1, 0, 1), "celu": (lambda x: mp.exp(x) if x <= 0 else 1, 0, 1),
    "selu": (lambda x: SELU[0] * (SELU[1] * mp.exp(x) if x <= 0 else 1), 0, SELU[0]),
    "gelu": (lambda x: mp.ncdf(x) + x * mp.npdf(x) if abs(x) < 1e4 else x > 0, 0, 1), "silu": (lambda x: mp.diff(lambda x: x / (1 + mp.exp(-x)), x) if abs(x) < 1e4 else x > 0, 0, 1),
    "mish": (lambda x: mp.diff(lambda x: x * mp.tanh(mp.log1p(mp.exp(x))), x) if abs(x) < 1e4 else x > 0, 0, 1),
    "softplus": (lambda x: 1 / (1 + mp.exp(-x)), 0, 1), "softsign": (lambda x: 1 / (1 + abs(x)) ** 2, 0, 0), "tanhshrink": (lambda x: mp.tanh(x) ** 2, 1, 1),
    "hardtanh": (_step(-1, 1, 0), 0, 0), "hardsigmoid": (_step(-3, 3, 0, lambda x: mp.mpf(1) / 6), 0, 0),
    "hardswish": (lambda x: 0 if x <= -3 else 1 if x >= 3 else x / 3 + 0.5, 0, 1),
    "hardshrink": (_step(-0.5, 0.5, 0, lambda x: 0, 1, 1), 1, 1), "softshrink": (_step(-0.5, 0.5, 0, lambda x: 0, 1, 1), 1, 1),
}
SAME_AS = {                  # by another name, or with no slope to speak of
    "ceil": "floor", "trunc": "floor", "round": "floor", "angle": "floor", "special.ndtri": None, "nan_to_num": None, "clip": None, "positive": None,
}
VALUES = {"mish": (0, INF), "softsign": (-1, 1), "sinc": (0, 0), "softplus": (0, INF), "gelu": (0, INF), "silu": (0, INF), "hardswish": (0, INF),
          "tanhshrink": (-INF, INF), "atan": (-math.pi / 2, math.pi / 2), "logsigmoid": (-INF, 0), "special.erfcx": (INF, 0), "erf": (-1, 1)}
SIZES = [5e-324, 1e-310, 1e-300, 1e-160, 1e-20, 1e-8, 1e-3, 0.02, 0.3, 0.5, 1.0, 2.5, 3.0, 6.0, 12.0, 49.0, 51.0, 300.0, 700.0, 720.0, 1e4, 1e8, 1e15, 1e30, 1e100, 1e160, 1e300, 1.7e308]


def erfcx(x):
    return mp.exp(x * x) * mp.erfc(x) if x < 100 else mp.nsum(lambda n: (-1) ** n * mp.fac2(2 * n - 1) / (2 * x * x) ** n, [0, 8]) / (x * mp.sqrt(mp.pi))


def _scaled_bessel(x, f):
    """exp(-|x|) f(x) for differences of Bessel functions, which only differ in far digits: what they are asymptotically beyond."""
    return mp.exp(-abs(x)) * f(x) if abs(x) < 1e4 else None


def test_every_elementwise_function_stands_in_the_table():
    known = {id(FUNCTIONS[name]) for name in [*LIMITS, *SAME_AS]}
    moves = {"asarray", "as_tensor", "tensor", "array", "atleast_1d", "cartesian_prod", "clone", "copy", "conj", "contiguous", "flatten", "flip", "flipud", "ravel",
             "real", "squeeze", "t", "transpose", "matrix_transpose", "F.gumbel_softmax", "F.rrelu"}
    own = [n for n in NAMES if not n.startswith("F.") and id(FUNCTIONS[n]) not in known and getattr(FUNCTIONS[n], "__name__", n) not in moves]
    assert not own, f"add their derivatives to LIMITS: {own}"


@pytest.mark.parametrize("name", LIMITS)
def test_slopes_are_the_limits(name):
    f = FUNCTIONS[name]
    slope, low, high = LIMITS[name]
    points, want = [], []
    with mp.workdps(700):
        for x in [*SIZES, *[-x for x in SIZES], 0.0]:
            exact = slope(mp.mpf(x)) if x or name not in ONE_SIDED else None
            if exact is not None:
                points.append(x)
                want.append(exact if mp.isinf(exact) else float(exact) if abs(exact) < 1.7976931348623157e308 else math.copysign(INF, exact))
    want = [float(w) for w in want]
    points += [x for x, limit in ((-INF, low), (INF, high)) if limit is not None]
    want += [float(limit) for limit in (low, high) if limit is not None]
    for found in slopes(f, np.array(points)):
        np.testing.assert_allclose(found, want, rtol=TOLERANCE.get(name, 1e-12), atol=ABSOLUTE.get(name, 1e-307))
    for found in slopes(lambda x: f(x.double()).float(), np.array([x for x in points if abs(x) == INF], np.float32)):
        np.testing.assert_array_equal(found, np.array([w for x, w in zip(points, want) if abs(x) == INF], np.float32))


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_values_at_infinity_are_the_limits(name, dtype):
    found = FUNCTIONS[name](cg.tensor([-INF, INF], dtype=getattr(cg, dtype)))
    assert found.tolist() == cg.tensor(VALUES[name], dtype=getattr(cg, dtype)).tolist()


def second_derivatives(f, x):
    """Backward and forward mode over either."""
    def backward(x):
        return cg.func.grad(lambda x: f(x).sum())(x)

    def forward(x):
        return cg.func.jvp(f, (x,), (cg.ones_like(x),))[1]

    x = cg.tensor(x)
    for first in (backward, forward):
        yield cg.func.grad(lambda x, first=first: first(x).sum())(x).numpy()
        yield cg.func.jvp(first, (x,), (cg.ones_like(x),))[1].numpy()


@pytest.mark.parametrize("name", LIMITS)
def test_second_derivatives_are_the_limits(name):
    slope, low, high = LIMITS[name]
    sizes = [1e-20, 1e-8, 1e-3, 0.02, 0.3, 0.7, 2.5, 7.0, 12.0, 51.0, 300.0, 720.0, 1e15, 1e100, 1e300]
    points, want = [], []
    for x in [*sizes, *[-x for x in sizes]]:
        with mp.workdps(700 if abs(x) > 1e4 and "gamma" not in name else 60):
            at = slope(mp.mpf(x))
            if at is not None and not mp.isinf(at):
                exact = mp.diff(slope, mp.mpf(x), relative=True)
                points.append(x)
                want.append(float(exact) if abs(exact) < 1.7976931348623157e308 else math.copysign(INF, exact))
    flat = [x for x, limit in ((-INF, low), (INF, high)) if limit is not None and abs(limit) != INF]      # where the slope has a limit, its own vanishes
    points, want = [*points, *flat], [*want, *[0.0] * len(flat)]
    rounded = name in {*ABSOLUTE, "sinc", "silu", "mish", "softplus", "logsigmoid", "special.erfcx"}
    for found in second_derivatives(FUNCTIONS[name], np.array(points)):
        np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-12 if rounded else 1e-24)


@pytest.mark.parametrize(("name", "x", "second"), [
    ("asin", 1.0, INF), ("asin", -1.0, -INF), ("acos", 1.0, -INF), ("acos", -1.0, INF), ("atanh", 1.0, INF), ("atanh", -1.0, -INF), ("logit", 0.0, -INF),
    ("logit", 1.0, INF), ("logit", 1e-200, -INF), ("logit", 0.5, 0), ("cbrt", 0.0, -INF), ("cbrt", -0.0, INF), ("reciprocal", 0.0, INF),
    ("special.i1", INF, INF), ("special.i1", -INF, -INF), ("special.i1", 800.0, INF), ("special.log_ndtr", -1e200, -1), ("special.log_ndtr", -INF, -1),
    ("special.i1e", 0.0, 0), ("sinc", 0.0, -math.pi ** 2 / 3)])
def test_second_derivatives_at_ends_and_poles(name, x, second):
    for found in second_derivatives(FUNCTIONS[name], np.array([x])):
        np.testing.assert_allclose(found, [second], rtol=1e-14)


@pytest.mark.parametrize(("f", "x", "y", "dx", "dy"), [
    (cg.hypot, INF, 2.0, 1, 0), (cg.hypot, -INF, 2.0, -1, 0), (cg.hypot, 2.0, -INF, 0, -1), (cg.hypot, 0.0, 0.0, 0, 0), (cg.hypot, 3e300, 4e300, 0.6, 0.8),
    (cg.hypot, 3e-320, 4e-320, 0.6, 0.8), (cg.atan2, INF, 2.0, 0, 0), (cg.atan2, 2.0, -INF, 0, 0), (cg.atan2, -INF, INF, 0, 0), (cg.atan2, 0.0, 0.0, 0, 0),
    (cg.atan2, 1e-200, 1e-200, 5e199, -5e199), (cg.atan2, 1e200, 1e200, 5e-201, -5e-201), (cg.power, 2.0, -INF, 0, 0), (cg.power, 0.5, INF, 0, 0),
    (cg.power, INF, -2.0, 0, 0), (cg.power, INF, 2.0, INF, INF), (cg.power, 0.0, 0.0, 0, 0), (cg.power, 0.0, 2.0, 0, 0), (cg.power, 0.0, 1.0, 1, 0),
    (cg.power, math.nan, 0.0, 0, math.nan), (cg.logaddexp, INF, 2.0, 1, 0), (cg.logaddexp, -INF, 2.0, 0, 1), (cg.logaddexp, 1e300, -1e300, 1, 0),
    (cg.divide, 2.0, INF, 0, 0), (cg.divide, 1e-100, 1e-200, 1e200, -1e300), (cg.copysign, INF, -1.0, -1, 0), (cg.maximum, INF, 1.0, 1, 0),
    (cg.xlogy, 0.0, 2.0, math.log(2), 0), (cg.xlogy, 2.0, INF, INF, 0), (cg.special.xlog1py, 0.0, INF, INF, 0),
])
def test_slopes_in_two_operands_are_the_limits(f, x, y, dx, dy):
    for make in (lambda x: cg.tensor([x], dtype=cg.float64, requires_grad=True), lambda x: cg.tensor([x] * 40, dtype=cg.float64, requires_grad=True)):
        a, b = make(x), make(y)
        for create_graph in (False, True):
            gx, gy = cg.autograd.grad(f(a, b).sum(), (a, b), create_graph=create_graph)
            np.testing.assert_allclose(gx.detach().numpy(), [dx] * a.size, rtol=1e-14)
            np.testing.assert_allclose(gy.detach().numpy(), [dy] * a.size, rtol=1e-14)
        one = cg.ones(a.shape, dtype=cg.float64)
        a, b = a.detach(), b.detach()
        np.testing.assert_allclose(cg.func.jvp(lambda a: f(a, b), (a,), (one,))[1].numpy(), [dx] * a.size, rtol=1e-14)
        np.testing.assert_allclose(cg.func.jvp(lambda b: f(a, b), (b,), (one,))[1].numpy(), [dy] * a.size, rtol=1e-14)


@pytest.mark.parametrize("dtype", [cg.float64, cg.float32])
@pytest.mark.parametrize("n", [1, 40])
def test_anything_to_the_power_of_zero(n, dtype):
    """1 with slope 0, in whatever way it is written and differentiated."""
    for value in (math.nan, INF, -INF, 0.0, -0.0, 3.0):
        for power in (lambda x: x ** 0, lambda x: x ** 0.0, lambda x: cg.power(x, cg.zeros((), dtype=dtype)), lambda x: cg.power(x, cg.zeros(n, dtype=dtype)),
                      lambda x: x.pow(0), lambda x: cg.float_power(x, 0).astype(dtype), lambda x: cg.power(x, cg.zeros(n, 1, dtype=dtype))[0]):
            x = cg.tensor([value] * n, dtype=dtype)
            assert power(x).tolist() == [1.0] * n
            assert all((found == 0).all() for found in slopes(power, x.numpy()))


def test_infinity_stays_out_of_the_slope_of_the_weight():
    x = cg.tensor([math.inf, 1.0, -2.0], requires_grad=True)
    w = cg.tensor([0.5], requires_grad=True)
    cg.prelu(x, w).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 0.5] and w.grad.tolist() == [-2.0]
    w = cg.tensor([math.inf], requires_grad=True)
    y = cg.tensor([1.0, 2.0], requires_grad=True)
    cg.prelu(y, w).sum().backward()
    assert y.grad.tolist() == [1.0, 1.0] and w.grad.tolist() == [0.0]


@pytest.mark.parametrize("f", [
    cg.linalg.vector_norm, cg.linalg.norm, lambda x: cg.hypot(x[0], x[1]), lambda x: cg.std(x), lambda x: cg.cdist(x[None], cg.zeros(1, 2, dtype=cg.float64)).sum()])
def test_lengths_have_no_slope_of_any_order_at_the_origin(f):
    x = cg.zeros(2, dtype=cg.float64)
    assert (cg.func.grad(f)(x) == 0).all() and (cg.func.hessian(f)(x) == 0).all()


def test_negative_orders_of_infinite_vectors():
    assert cg.linalg.vector_norm(cg.tensor([INF, -INF]), -1).item() == INF and cg.linalg.vector_norm(cg.tensor([0.0, INF]), -2).item() == 0


def test_interpolation_beyond_all_points_leaves_the_gradients_alone():
    fp = cg.tensor([1.0, 2.0, 5.0], requires_grad=True)
    xp = cg.tensor([0.0, 1.0, 2.0], requires_grad=True)
    x = cg.tensor([INF, -INF, 1.5], requires_grad=True)
    y = cg.interp(x, xp, fp)
    y.sum().backward()
    assert y.tolist() == [5.0, 1.0, 3.5] and fp.grad.tolist() == [1.0, 0.5, 1.5] and x.grad.tolist() == [0.0, 0.0, 3.0] and xp.grad.tolist() == [0.0, -1.5, -1.5]


@pytest.mark.parametrize("dtype", [cg.float16, cg.bfloat16, cg.float32, cg.float64])
def test_largest_numbers_take_the_place_of_infinities(dtype):
    assert cg.nan_to_num(cg.tensor([INF, -INF, math.nan], dtype=dtype)).tolist() == [cg.finfo(dtype).max, -cg.finfo(dtype).max, 0.0]


def test_exponents_beyond_all_numbers():
    x = cg.tensor([1.0, -1.0, 0.0, 1.5])
    for dtype, low in ((cg.float16, -24), (cg.float32, -149), (cg.float64, -1074)):
        smallest = cg.tensor(2.0 ** low, dtype=dtype)
        assert cg.ldexp(smallest, 15 - low).item() == 2.0 ** 15 and cg.ldexp(cg.tensor(2.0 ** 15, dtype=dtype), low - 15) == smallest
    assert cg.ldexp(x, cg.tensor([INF, INF, INF, -INF])).tolist() == [INF, -INF, 0.0, 0.0] and cg.ldexp(x, cg.tensor(10 ** 9)).tolist() == [INF, -INF, 0.0, INF]


def test_integers_are_rounded_exactly():
    x = [123456785, 123456795, 15, -15, -25, -5, 4, 2 ** 53 + 3, -(2 ** 53) - 1, 10 ** 18 * 5, 0]
    for decimals in (-1, -2, -9, -18):
        step = 10 ** -decimals
        want = [round(value, decimals) for value in x]
        assert cg.round(cg.tensor(x), decimals=decimals).tolist() == want, step
    assert cg.round(cg.tensor(x), decimals=-30).tolist() == [0] * len(x) and cg.round(cg.tensor(x), decimals=3).tolist() == x
    assert cg.round(cg.tensor([-128, 125, 15], dtype=cg.int8), decimals=-2).tolist() == [-100, 100, 0]
    assert cg.round(cg.tensor([255, 150, 250], dtype=cg.uint8), decimals=-3).tolist() == [0, 0, 0]
    assert cg.round(cg.tensor([1255.0, 15.0]), decimals=-1).tolist() == [1260.0, 20.0]
