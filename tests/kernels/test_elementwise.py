"""Elementwise kernels: values to 2 ulp, special values, integer edge cases, casts, layouts; for every dtype and ISA shell."""
import itertools
import math
import os
import subprocess
import sys

import mpmath
import numpy as np
import pytest

from cgrad.kernels import dispatch, doors
from cgrad.kernels.parallel import get_num_threads, set_num_threads

ISAS = dispatch.isa_available()
NAMES = dispatch.kernel_names()
FLOATS = [np.float32, np.float64]
INTS = [np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.int64]
DTYPES = [np.bool_, *INTS, *FLOATS]
BOOLEAN = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
           "logical_not", "isnan", "isinf", "isfinite", "signbit"}
NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
         "atan2": "arctan2", "round": "rint", "bitwise_not": "invert", "bitwise_left_shift": "left_shift",
         "bitwise_right_shift": "right_shift"}

EXACT = {     # the function in mpmath
    "exp": mpmath.exp, "exp2": lambda x: mpmath.power(2, x), "expm1": mpmath.expm1, "log": mpmath.log,
    "log2": lambda x: mpmath.log(x, 2), "log10": mpmath.log10, "log1p": mpmath.log1p, "sqrt": mpmath.sqrt,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), "rsqrt": lambda x: 1 / mpmath.sqrt(x), "reciprocal": lambda x: 1 / x, "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan,
    "asin": mpmath.asin, "acos": mpmath.acos, "atan": mpmath.atan, "sinh": mpmath.sinh, "cosh": mpmath.cosh, "tanh": mpmath.tanh,
    "asinh": mpmath.asinh, "acosh": mpmath.acosh, "atanh": mpmath.atanh, "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "logsigmoid": lambda x: -mpmath.log1p(mpmath.exp(-x)), "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "silu": lambda x: x / (1 + mpmath.exp(-x)), "gelu": lambda x: x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "gelu_tanh": lambda x: x / (1 + mpmath.exp(-2 * mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3))),
    "erf": mpmath.erf, "erfc": mpmath.erfc, "power": mpmath.power, "hypot": mpmath.hypot, "atan2": mpmath.atan2,
    "logaddexp": lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)), "divide": lambda x, y: x / y,
    "addcmul": lambda x, y, z: x + y * z,
    "lgamma": mpmath.loggamma, "digamma": mpmath.digamma, "i0": lambda x: mpmath.besseli(0, x), "i1": lambda x: mpmath.besseli(1, x),
    "i0e": lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(0, x), "i1e": lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(1, x),
    "erfinv": mpmath.erfinv, "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x), "ndtr": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "log_ndtr": lambda x: mpmath.log1p(-mpmath.erfc(x / mpmath.sqrt(2)) / 2) if x > 0 else mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2),
    "ndtri": lambda x: mpmath.sqrt(2) * mpmath.erfinv(2 * x - 1), "entr": lambda x: -x * mpmath.log(x), "logit": lambda x: mpmath.log(x / (1 - x)),
    "xlogy": lambda x, y: x * mpmath.log(y), "xlog1py": lambda x, y: x * mpmath.log1p(y),
    "exponent": lambda x: mpmath.mpf(mpmath.frexp(x)[1]),
}
GRADIENTS = {     # (g, saved values) -> gradient; within a few ulp of the largest term
    "tanh_backward": lambda g, out: g * (1 - out * out), "sigmoid_backward": lambda g, out: g * out * (1 - out),
    "relu_backward": lambda g, out: g * (out > 0), "sqrt_backward": lambda g, out: g / (2 * out), "square_backward": lambda g, x: 2 * g * x,
    "reciprocal_backward": lambda g, out: -g * out * out, "absolute_backward": lambda g, x: g * np.sign(x),
    "sin_backward": lambda g, x: g * np.cos(x), "cos_backward": lambda g, x: -g * np.sin(x),
    "softplus_backward": lambda g, x: g * s(x), "silu_backward": lambda g, x: g * (s(x) + x * s(x) * s(-x)),
    "gelu_backward": lambda g, x: g * (phi(x) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)),
    "maximum_backward": lambda g, x, y: g * np.heaviside(x - y, 0.5), "minimum_backward": lambda g, x, y: g * np.heaviside(y - x, 0.5),
    "gelu_tanh_backward": lambda g, x: g * gelu_tanh_slope(x), "divide_backward_y": lambda g, x, y: -g * (x / y) / y,
    "power_backward_x": lambda g, x, y: np.where(y == 0, 0, g * y * np.power(x, y - 1)),
}
COVERED_BY_NUMPY = {name for name in NAMES if isinstance(getattr(np, NUMPY.get(name, name), None), np.ufunc)}
COVERED_ELSEWHERE = {"zeta", "relu", "where", "clip", "lerp"}


def s(x):
    return 1 / (1 + np.exp(-x))


def phi(x):
    return np.array([float(mpmath.ncdf(v)) for v in x.ravel()]).reshape(x.shape)


def gelu_tanh_slope(x):
    c = math.sqrt(2 / math.pi)
    w = 2 * c * (x + 0.044715 * x**3)
    return s(w) * (1 + x * s(-w) * 2 * c * (1 + 3 * 0.044715 * x * x))


def has(name, dtype):
    return np.dtype(dtype).name in doors.dtypes_of(name)


def run(name, *inputs, isa=None):
    dtype = np.bool_ if name in BOOLEAN else inputs[-1].dtype
    return doors.apply(name, np.empty(inputs[-1].shape, dtype), *inputs, isa=isa)


def same(a, b):
    """Equal, NaN equal to NaN, zeros of the same sign."""
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f") and (a.dtype.kind != "f" or np.array_equal(np.signbit(a[a == 0]), np.signbit(b[b == 0])))


def edges(dtype):
    """Awkward values of an integer type, and some ordinary ones."""
    info = np.iinfo(dtype)
    return np.array(sorted({info.min, info.min + 1, info.max, info.max - 1, info.max // 2, 0, 1, 2, 3, 5, 7, 8, 13, 31, 63, 100} |
                           ({-1, -2, -3, -7, -8} if info.min else set())), dtype)


def pairs(values):
    x, y = np.meshgrid(values, values)
    return np.ascontiguousarray(x.ravel()), np.ascontiguousarray(y.ravel())


def points(name, dtype):
    """Arguments over the function's whole range, dense where it is delicate."""
    info, rng = np.finfo(dtype), np.random.default_rng(7)
    top = math.log(info.max)
    n = 40
    whole = np.ldexp(rng.uniform(1, 2, n), rng.integers(info.minexp - 10, info.maxexp - 1, n))
    tiny = 10.0 ** rng.uniform(-12, 0, n)
    ordinary = rng.uniform(-10, 10, n)
    edge = np.array([info.max, info.max / 1.5, info.max / 4, info.tiny, info.smallest_subnormal, info.tiny / 3])
    if name == "power":
        x = np.concatenate([np.abs(ordinary), np.exp(rng.uniform(-top / 4, top / 4, n)), 1 + rng.uniform(-1e-3, 1e-3, n), edge, edge, ordinary])
        return x, np.concatenate([ordinary[::-1], rng.uniform(-3, 3, n), rng.uniform(-1e4, 1e4, n), np.full(6, 0.7), np.full(6, -0.7),
                                  rng.integers(-9, 9, n)])
    if name == "hypot":
        return np.concatenate([ordinary, info.max / 4 * tiny, info.tiny * 8 * tiny]), np.concatenate([ordinary[::-1], info.max / 4 * tiny[::-1], info.tiny * 8 * tiny[::-1]])
    if name == "logaddexp":
        return np.concatenate([ordinary, rng.uniform(-top, top, n), rng.uniform(-1.7, 0.3, n)]), np.concatenate([ordinary[::-1], rng.uniform(-top, top, n), rng.uniform(-1.7, 0.3, n)])
    if name == "atan2":
        y = np.concatenate([ordinary, tiny, -tiny, whole, 1e-3 * edge, np.repeat(edge, 6)])
        return y, np.concatenate([ordinary[::-1], tiny[::-1], -ordinary, whole * rng.uniform(-3, 3, n), ordinary[:6], np.tile(edge, 6)])
    if name in ("lgamma", "digamma"):
        return (np.concatenate([np.abs(ordinary), tiny, 1 + tiny, 3 * tiny, 16 + tiny, 10.0 ** rng.uniform(1, 36, n)]),)
    if name in ("i0", "i1", "i0e", "i1e"):
        return (np.concatenate([ordinary, tiny, -tiny, 8 + 0.1 * tiny, rng.uniform(8, 80 if dtype == np.float32 else 700, n)]),)
    if name in ("erfinv", "ndtri", "logit"):
        x = np.concatenate([0.999 * tiny, rng.uniform(0, 1, 2 * n), 0.25 + 0.1 * tiny, 0.75 - 0.1 * tiny, 1 - tiny / 3])
        return (np.concatenate([x, -x]) if name == "erfinv" else x[(x != 0.5) & (x < 0.999999)],)
    if name == "erfcx":
        return (np.concatenate([ordinary, tiny, -tiny, rng.uniform(-9 if dtype == np.float32 else -26, 40, 2 * n), 27 + tiny, whole[whole < 1e30]]),)
    if name in ("ndtr", "log_ndtr"):
        return (np.concatenate([ordinary, tiny, -tiny, rng.uniform(-12 if dtype == np.float32 else -37, 12, 2 * n), 0.7 + 0.01 * tiny]),)
    if name == "entr":
        return (np.concatenate([np.abs(ordinary), tiny, 1 + 1e-2 * tiny, 1 - 1e-2 * tiny]),)
    if name in ("xlogy", "xlog1py"):
        return np.concatenate([ordinary, tiny]), np.abs(np.concatenate([tiny, ordinary[::-1]]))
    if name == "exponent":
        return (np.concatenate([ordinary, whole, edge]),)
    if name == "divide":
        return np.concatenate([ordinary, tiny]), np.concatenate([ordinary[::-1], tiny[::-1]])
    if name == "addcmul":
        return np.abs(ordinary), np.abs(ordinary[::-1]), tiny
    if name in ("log", "log2", "log10", "sqrt", "rsqrt"):
        return (np.concatenate([np.abs(ordinary), tiny, whole, 1 + 1e-2 * tiny, 1 - 1e-2 * tiny]),)
    if name == "cbrt":
        return (np.concatenate([ordinary, tiny, whole, -whole, rng.uniform(1, 8, 3 * n), [info.max, info.tiny, info.smallest_subnormal, 27, 1e-3]]),)
    if name == "log1p":
        return (np.concatenate([np.abs(ordinary), tiny, -0.999 * tiny, whole, edge]),)
    if name == "acosh":
        return (1 + np.concatenate([tiny, np.abs(ordinary), 1e6 * tiny, whole, edge]),)
    if name in ("atan", "asinh"):
        return (np.concatenate([tiny, -ordinary, 0.4 + 0.1 * tiny, 2.4 + 0.1 * tiny, whole, -whole, edge]),)
    if name in ("asin", "acos", "atanh"):
        return (np.concatenate([0.999 * tiny, -0.999 * tiny, rng.uniform(-0.999, 0.999, n), 0.5 - 0.1 * tiny, 0.17 + 0.05 * tiny, 1 - tiny, edge[3:]]),)
    if name in ("sin", "cos", "tan"):
        x = np.concatenate([ordinary, tiny, rng.integers(1, 2000, n) * (math.pi / 2), 10.0 ** rng.uniform(2, 7 if dtype == np.float32 else 12, n)])
        return (np.concatenate([x, -x]),)
    if name == "reciprocal":
        return (np.concatenate([ordinary, whole[(whole > 1e-37) & (whole < 1e37)]]),)
    low = {"exp2": info.minexp - info.nmant, "gelu": -38.5 if dtype == np.float64 else -14.1, "gelu_tanh": -21.5 if dtype == np.float64 else -10.1}
    low = low.get(name, -745 if dtype == np.float64 else -103.9)
    high = {"erfc": 26.5 if dtype == np.float64 else 10, "exp2": info.maxexp}.get(name, top)
    small = np.array([info.eps, info.tiny, info.smallest_subnormal, 3 * info.smallest_subnormal, 0.5, 1.0, 20.0])
    return (np.concatenate([ordinary, tiny, -tiny, small, -small, rng.uniform(low if name != "erfc" else -6, high, 3 * n), rng.uniform(-3, 3, 2 * n)]),)


def ulps(got, args, function, dtype):
    """Errors in units of the spacing of dtype at the exact result."""
    info, errors = np.finfo(dtype), []
    with mpmath.workprec(250):
        for value, *a in zip(got, *args):
            exact = function(*[mpmath.mpf(float(v)) for v in a])
            size = abs(exact)
            if size > mpmath.mpf(float(info.max)):
                errors.append(0.0 if math.isinf(value) else math.inf)
                continue
            exponent = max(mpmath.frexp(size)[1] - 1 if size else info.minexp, info.minexp)
            errors.append(float(abs(mpmath.mpf(float(value)) - exact) / mpmath.ldexp(1, int(exponent) - info.nmant)) if math.isfinite(value) else math.inf)
    return np.array(errors)


def test_every_kernel_is_tested():
    assert set(NAMES) - set(EXACT) - set(GRADIENTS) - COVERED_BY_NUMPY - COVERED_ELSEWHERE == set()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", EXACT)
def test_accuracy(name, dtype):
    args = [a.astype(dtype) for a in points(name, dtype)]
    results = {isa: run(name, *args, isa=isa) for isa in ISAS}
    distinct = {}
    for isa, got in results.items():
        distinct.setdefault(got.tobytes(), isa)
    for isa in distinct.values():
        errors = ulps(results[isa], args, EXACT[name], dtype)
        worst = int(np.argmax(errors))
        assert errors[worst] <= 2, (isa, name, [a[worst] for a in args], results[isa][worst], errors[worst])


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 1e-40, -1e-40, 1e30, -1e30, math.inf, -math.inf, math.nan])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", sorted(n for n in COVERED_BY_NUMPY if doors.inputs_of(n) == 1 and has(n, np.float64)))
def test_special_values_of_unary_kernels(name, dtype):
    x = np.tile(SPECIAL.astype(dtype), 5)        # long enough for the vector part of the loop
    with np.errstate(all="ignore"):
        expected = getattr(np, NUMPY.get(name, name))(x)
    for isa in ISAS:
        got = run(name, x, isa=isa)
        assert got.dtype == expected.dtype
        if got.dtype.kind == "f":
            finite = np.isfinite(expected)
            np.testing.assert_allclose(got[finite], expected[finite], rtol=4 * np.finfo(dtype).eps, atol=0)
            assert same(got[~finite], expected[~finite])
            if name != "rsqrt":
                zero = (x == 0) & (expected == 0)
                assert same(got[zero], expected[zero])
        else:
            assert same(got, expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("name", "at"), [
    ("sigmoid", {-math.inf: 0, math.inf: 1, 0: 0.5}), ("logsigmoid", {-math.inf: -math.inf, math.inf: 0}),
    ("softplus", {-math.inf: 0, math.inf: math.inf}), ("relu", {-math.inf: 0, math.inf: math.inf, -0.0: 0, -1: 0}),
    ("gelu", {-math.inf: 0, math.inf: math.inf, 0: 0, -1e30: 0}), ("gelu_tanh", {-math.inf: 0, math.inf: math.inf, 0: 0, -1e30: 0, 1e30: 1e30}),
    ("silu", {-math.inf: 0, math.inf: math.inf, 0: 0, -1e30: 0, 1e30: 1e30}), ("erf", {-math.inf: -1, math.inf: 1, -0.0: -0.0}),
    ("erfc", {-math.inf: 2, math.inf: 0, 0: 1}), ("rsqrt", {0: math.inf, math.inf: 0}),
    ("lgamma", {-0.0: math.inf, -3: math.inf, math.inf: math.inf, -math.inf: math.inf, 1: 0.0, 2: 0.0, -1e30: math.inf}),
    ("digamma", {0: -math.inf}), ("digamma", {-0.0: math.inf, -3: math.nan, math.inf: math.inf, -math.inf: math.nan}),
    ("i0", {0: 1, math.inf: math.inf, -math.inf: math.inf, 1e30: math.inf}), ("i0e", {0: 1, math.inf: 0, -math.inf: 0}),
    ("i1", {-0.0: -0.0, math.inf: math.inf, -math.inf: -math.inf}), ("i1e", {-0.0: -0.0, math.inf: 0, -math.inf: -0.0}),
    ("erfinv", {-0.0: -0.0, 1: math.inf, -1: -math.inf, 1.5: math.nan, -math.inf: math.nan}), ("erfcx", {0: 1, math.inf: 0, -math.inf: math.inf}),
    ("ndtr", {-math.inf: 0, math.inf: 1, 0: 0.5}), ("log_ndtr", {-math.inf: -math.inf, math.inf: 0}),
    ("ndtri", {0: -math.inf, 1: math.inf, 0.5: 0, -0.5: math.nan, 1.5: math.nan}), ("entr", {0: 0, 1: 0, -1: -math.inf, math.inf: -math.inf}),
    ("logit", {0: -math.inf, 1: math.inf, 0.5: 0, -1: math.nan, 2: math.nan}),
])
def test_special_values_of_activations(name, at, dtype):
    x = np.array([*at, math.nan], dtype)
    expected = np.array([*at.values(), math.nan], dtype)
    for isa in ISAS:
        np.testing.assert_array_equal(run(name, x, isa=isa), expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", sorted(n for n in COVERED_BY_NUMPY if doors.inputs_of(n) == 2 and has(n, np.float64)))
def test_special_values_of_binary_kernels(name, dtype):
    x, y = pairs(SPECIAL.astype(dtype))
    function = getattr(np, NUMPY.get(name, name))
    with np.errstate(all="ignore"):
        expected = function(x, y)
    for isa in ISAS:
        got = run(name, x, y, isa=isa)
        if got.dtype.kind == "f":
            np.testing.assert_allclose(got, expected, rtol=4 * np.finfo(dtype).eps, atol=0)
        else:
            assert same(got, expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_division_of_floats_follows_python(dtype):
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.uniform(-100, 100, 500), rng.integers(-50, 50, 300), 10.0 ** rng.uniform(-30, 30, 300)]).astype(dtype)
    y = np.concatenate([rng.uniform(-7, 7, 500), rng.integers(1, 9, 300) * rng.choice([-1, 1], 300), 10.0 ** rng.uniform(-30, 30, 300)]).astype(dtype)
    exact = [divmod(float(a), float(b)) for a, b in zip(x, y)]
    for isa in ISAS:
        assert same(run("fmod", x, y, isa=isa), np.array([math.fmod(a, b) for a, b in zip(x.astype(float), y.astype(float))]).astype(dtype))
        if dtype == np.float64:
            assert same(run("remainder", x, y, isa=isa), np.array([r for _, r in exact]))
            assert same(run("floor_divide", x, y, isa=isa), np.array([q for q, _ in exact]))
        else:
            with np.errstate(all="ignore"):
                assert same(run("remainder", x, y, isa=isa), np.remainder(x, y))
                np.testing.assert_allclose(run("floor_divide", x, y, isa=isa), np.floor_divide(x, y), rtol=2e-7)


@pytest.mark.parametrize("order", [2, 3, 4, 2.5, 12, 60])
def test_zeta(order):
    """Hurwitz' zeta function; for negative arguments it is what a derivative of digamma makes of it."""
    rng = np.random.default_rng(3)
    q = np.concatenate([rng.uniform(0.01, 30, 30), 10.0 ** rng.uniform(-3, 6 if order < 20 else 1.5, 20)])      # mpmath errs for large both
    with mpmath.workdps(60):
        want = np.array([float(mpmath.zeta(order, mpmath.mpf(float(v)))) for v in q])
    if order == int(order):
        q = np.concatenate([q, -np.arange(0.25, 12, 1)])
        want = np.concatenate([want, [float((-1)**order * mpmath.polygamma(order - 1, float(v)) / mpmath.factorial(order - 1)) for v in q[50:]]])
    for dtype in FLOATS:
        x = q.astype(dtype)
        with np.errstate(over="ignore"):
            got, expected = run("zeta", np.full_like(x, order), x), want.astype(dtype)
        rtol = 2e-15 if dtype == np.float64 else 1e-6 * order
        finite = np.isfinite(expected)
        np.testing.assert_allclose(got[finite], expected[finite], rtol=rtol, atol=0)
        assert np.isinf(got[~finite]).all()
    special = np.array([[1.0, 2.0, np.inf], [0.5, 2.0, np.nan], [2.0, 0.0, np.inf], [2.0, -3.0, np.inf], [2.5, -0.5, np.nan], [2.0, np.inf, 0.0],
                        [np.nan, 1.0, np.nan], [2.0, np.nan, np.nan], [2.0, -1e300, np.inf]])
    np.testing.assert_array_equal(run("zeta", np.ascontiguousarray(special[:, 0]), np.ascontiguousarray(special[:, 1])), special[:, 2])


@pytest.mark.parametrize("dtype", [np.bool_, *INTS])
@pytest.mark.parametrize("name", sorted(n for n in COVERED_BY_NUMPY if any(has(n, d) for d in [np.bool_, *INTS])))
def test_integers_as_numpy(name, dtype):
    if not has(name, dtype):
        pytest.skip("no such loop")
    function = getattr(np, NUMPY.get(name, name))
    values = np.array([False, True]) if dtype == np.bool_ else edges(dtype)
    values = np.resize(values, 70)
    inputs = (values,) if doors.inputs_of(name) == 1 else pairs(values)
    if name == "power":
        inputs = (inputs[0], inputs[1] & 7)
    if "shift" in name:
        inputs = (inputs[0], np.abs(inputs[1] & 127) % (8 * values.itemsize))
    if name in ("floor_divide", "remainder", "fmod"):      # NumPy's result for the smallest number by -1 differs between builds
        keep = inputs[1] != 0
        if np.dtype(dtype).kind == "i":
            keep &= (inputs[1] != -1) | (inputs[0] != np.iinfo(dtype).min)
        inputs = (inputs[0][keep], inputs[1][keep])
    if name in ("round", "floor", "ceil", "trunc") or (name in ("sign", "positive") and dtype == np.bool_):
        expected = values
    else:
        with np.errstate(all="ignore"):
            expected = function(*inputs)
    for isa in ISAS:
        got = run(name, *inputs, isa=isa)
        np.testing.assert_array_equal(got, expected.astype(got.dtype))


@pytest.mark.parametrize("dtype", INTS)
def test_integer_division_never_traps(dtype):
    low, zero = np.iinfo(dtype).min, np.zeros(40, dtype)
    x = np.resize(edges(dtype), 40)
    for isa in ISAS:
        for name in ("floor_divide", "remainder", "fmod"):
            assert not run(name, x, zero, isa=isa).any()
        if low:
            minus = np.full(40, -1, dtype)
            assert (run("floor_divide", np.full(40, low, dtype), minus, isa=isa) == low).all()      # wraps
            assert not run("remainder", x, minus, isa=isa).any()
            assert not run("fmod", x, minus, isa=isa).any()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_every_pair_of_bytes_divides_as_in_python(dtype):
    info = np.iinfo(dtype)
    x, y = pairs(np.arange(info.min, info.max + 1).astype(dtype))
    q = [a // b if b else 0 for a, b in zip(x.tolist(), y.tolist())]
    r = [a % b if b else 0 for a, b in zip(x.tolist(), y.tolist())]
    for isa in ISAS:
        np.testing.assert_array_equal(run("floor_divide", x, y, isa=isa), np.array(q).astype(dtype))
        np.testing.assert_array_equal(run("remainder", x, y, isa=isa), np.array(r).astype(dtype))


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64])
def test_wide_integers_divide_as_in_python(dtype):
    info, rng = np.iinfo(dtype), np.random.default_rng(11)
    x = np.concatenate([pairs(edges(dtype))[0], rng.integers(info.min, info.max, 2000, dtype=dtype)])
    y = np.concatenate([pairs(edges(dtype))[1], rng.integers(info.min, info.max, 1000, dtype=dtype), rng.integers(1, 50, 1000, dtype=dtype)])
    wrap = lambda v: (v - info.min) % (info.max - info.min + 1) + info.min
    q = np.array([wrap(a // b) if b else 0 for a, b in zip(x.tolist(), y.tolist())], dtype)
    r = np.array([a % b if b else 0 for a, b in zip(x.tolist(), y.tolist())], dtype)
    for isa in ISAS:
        np.testing.assert_array_equal(run("floor_divide", x, y, isa=isa), q)
        np.testing.assert_array_equal(run("remainder", x, y, isa=isa), r)


@pytest.mark.parametrize("dtype", INTS)
def test_shift_counts_outside_the_type(dtype):
    bits = 8 * np.dtype(dtype).itemsize
    counts = [bits, bits + 1, 100] + ([-1, -bits, np.iinfo(dtype).min] if np.iinfo(dtype).min else [200])
    x, y = np.meshgrid(edges(dtype), np.array(counts).astype(dtype))
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    for isa in ISAS:
        assert not run("bitwise_left_shift", x, y, isa=isa).any()
        np.testing.assert_array_equal(run("bitwise_right_shift", x, y, isa=isa), np.where(x < 0, -1, 0).astype(dtype))


@pytest.mark.parametrize("dtype", INTS)
def test_integer_powers_wrap(dtype):
    x, y = pairs(np.arange(12).astype(dtype))
    bits = 8 * np.dtype(dtype).itemsize
    expected = np.array([pow(a, b, 2**bits) for a, b in zip(x.tolist(), y.tolist())], np.uint64).astype(f"u{bits // 8}").view(dtype) \
        if bits == 64 else np.array([pow(a, b, 2**bits) for a, b in zip(x.tolist(), y.tolist())]).astype(dtype)
    for isa in ISAS:
        np.testing.assert_array_equal(run("power", x, y, isa=isa), expected)


def test_booleans_are_or_and_and():
    x, y = pairs(np.array([False, True]))
    for isa in ISAS:
        np.testing.assert_array_equal(run("add", x, y, isa=isa), x | y)
        np.testing.assert_array_equal(run("multiply", x, y, isa=isa), x & y)
        np.testing.assert_array_equal(run("bitwise_not", x, isa=isa), ~x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_where_and_clip(dtype):
    rng = np.random.default_rng(5)
    x, y = (rng.integers(0, 2 if dtype == np.bool_ else 100, 67).astype(dtype) for _ in range(2))
    cond = rng.random(67) < 0.5
    for isa in ISAS:
        for a, b in itertools.product((x, np.broadcast_to(x[:1], x.shape)), (y, np.broadcast_to(y[:1], y.shape))):
            np.testing.assert_array_equal(run("where", cond, a, b, isa=isa), np.where(cond, a, b))
        if dtype == np.bool_:
            continue
        for low, high in ((np.full_like(x, 20), np.full_like(x, 60)), (np.broadcast_to(dtype(20), x.shape), np.broadcast_to(dtype(60), x.shape)), (y, y)):
            np.testing.assert_array_equal(run("clip", x, low, high, isa=isa), np.clip(x, low, high))


@pytest.mark.parametrize("dtype", FLOATS)
def test_lerp_ends_exactly(dtype):
    rng = np.random.default_rng(6)
    x, y, w = rng.normal(size=91).astype(dtype), rng.normal(size=91).astype(dtype), rng.random(91).astype(dtype)
    for isa in ISAS:
        assert same(run("lerp", x, y, np.zeros_like(w), isa=isa), x)
        assert same(run("lerp", x, y, np.ones_like(w), isa=isa), y)
        np.testing.assert_allclose(run("lerp", x, y, w, isa=isa), x + w * (y - x), atol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_wins(dtype):
    x, y = pairs(np.array([math.nan, 1, -math.inf, math.inf], dtype))
    for isa in ISAS:
        assert same(run("maximum", x, y, isa=isa), np.maximum(x, y))
        assert same(run("minimum", x, y, isa=isa), np.minimum(x, y))
        assert same(run("clip", x, np.full_like(x, -1), y, isa=isa), np.clip(x, -1, y))
        assert np.isnan(run("relu", x, isa=isa)[np.isnan(x)]).all()
        assert np.isnan(run("sign", x, isa=isa)[np.isnan(x)]).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient_loops(name, dtype):
    rng = np.random.default_rng(1)
    n = doors.inputs_of(name)
    inputs = [rng.uniform(-4, 4, 203).astype(dtype) for _ in range(n)]
    if name in ("sqrt_backward", "power_backward_x"):
        inputs[1] = np.abs(inputs[1]) + dtype(0.1)
    if name in ("tanh_backward", "sigmoid_backward"):
        inputs[1] = np.abs(np.tanh(inputs[1]))
    if name == "power_backward_x":
        inputs[2][::4] = 0
    expected = GRADIENTS[name](*[a.astype(np.float64) for a in inputs])
    for isa in ISAS:
        np.testing.assert_allclose(run(name, *inputs, isa=isa), expected, rtol=6e-6 if dtype == np.float32 else 2e-14, atol=1e-6 if dtype == np.float32 else 1e-15)


@pytest.mark.parametrize("dtype", FLOATS)
def test_gradient_loops_at_the_ends(dtype):
    g = np.ones(6, dtype)
    x = np.array([-math.inf, -1e30, -500, 500, 1e30, math.inf], dtype)
    step = np.array([0, 0, 0, 1, 1, 1], dtype)
    for isa in ISAS:
        for name in ("gelu_backward", "gelu_tanh_backward", "silu_backward", "softplus_backward", "relu_backward"):
            np.testing.assert_allclose(run(name, g, x, isa=isa), step, atol=1e-200, err_msg=name)
        zero = np.zeros(6, dtype)
        assert not run("absolute_backward", g, zero, isa=isa).any()
        assert not run("relu_backward", g, zero, isa=isa).any()
        assert not run("power_backward_x", g, zero, zero, isa=isa).any()
        np.testing.assert_array_equal(run("maximum_backward", g, zero, -zero, isa=isa), g / 2)
        np.testing.assert_array_equal(run("minimum_backward", g, zero, -zero, isa=isa), g / 2)
        nan = np.full(6, math.nan, dtype)
        for name in ("gelu_backward", "gelu_tanh_backward", "silu_backward", "softplus_backward", "sin_backward"):
            assert np.isnan(run(name, g, nan, isa=isa)).all()
        for name in ("maximum_backward", "minimum_backward"):       # what is no number passes the gradient on to both
            np.testing.assert_array_equal(run(name, g, nan, x, isa=isa), g)
            np.testing.assert_array_equal(run(name, g, x, nan, isa=isa), g)


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_casts(source, target):
    if np.dtype(source).kind == "f":
        x = np.array([0.0, -0.0, 1, -1, 0.49, 2.5, -2.5, 99.99, 127, -128, 255])
        info = np.iinfo(target) if np.dtype(target).kind in "iu" else None
        if info:
            x = x[(x > info.min - 1) & (x < info.max + 1)]
        x = np.resize(x.astype(source), 75)
    else:
        x = np.array([False, True] * 40) if source == np.bool_ else np.resize(edges(source), 75)
    expected = (x != 0) if target == np.bool_ else x.astype(target)
    for isa in ISAS:
        got = doors.cast(np.empty(x.shape, target), x, isa=isa)
        assert same(got, expected), (isa, got, expected)
        assert same(doors.cast(np.empty(2 * len(x), target)[::2], x[::-1], isa=isa), expected[::-1])


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", INTS)
def test_casts_out_of_range_saturate(source, target):
    info = np.iinfo(target)
    x = np.resize(np.array([math.nan, math.inf, -math.inf, 1e30, -1e30, 2.0**63, -(2.0**63), 2.0**31, -(2.0**32)], source), 75)
    expected = np.array([0 if math.isnan(v) else info.max if v >= info.max else info.min if v <= info.min else int(v) for v in x.tolist()], target)
    for isa in ISAS:
        np.testing.assert_array_equal(doors.cast(np.empty(75, target), x, isa=isa), expected)


def layouts(rng, shape, dtype, broadcast):
    """A view of this shape with random order, steps, signs, gaps and (for inputs) repeated axes."""
    order = rng.permutation(len(shape))
    base, keys = [], []
    for axis in order:
        n = shape[axis]
        kind = rng.integers(0, 5 if broadcast else 4)
        base.append({0: n, 1: n, 2: 2 * n, 3: n + 2, 4: 1}[int(kind)])
        keys.append({0: slice(None), 1: slice(None, None, -1), 2: slice(None, None, 2), 3: slice(1, n + 1), 4: slice(None)}[int(kind)])
    view = rng.integers(-50, 50, base).astype(dtype)[(*keys, ...)].transpose(np.argsort(order))
    return np.broadcast_to(view, shape) if broadcast else view


@pytest.mark.parametrize("seed", range(60))
def test_layouts(seed):
    rng = np.random.default_rng(seed)
    for _ in range(5):
        ndim = int(rng.integers(0, 6))
        shape = tuple(rng.integers(1, [1, 400, 60, 20, 9, 6][ndim] + 1, ndim).tolist())
        dtype = rng.choice([np.int8, np.int32, np.float32, np.float64])
        x, y = layouts(rng, shape, dtype, True), layouts(rng, shape, dtype, True)
        out = layouts(rng, shape, dtype, False)
        expected = x - y
        doors.apply("subtract", out, x, y)
        np.testing.assert_array_equal(out, expected)
        doors.apply("negative", out, out)                      # in place
        np.testing.assert_array_equal(out, -expected)
        low = np.broadcast_to(np.zeros((), dtype), shape)
        doors.apply("clip", out, out, low, y)
        np.testing.assert_array_equal(out, np.clip(-expected, low, y))


@pytest.mark.parametrize("shape", [(70, 90, 3), (3, 300, 500), (1000, 300), (2, 3, 4, 5, 6, 7), (100_000, 3), (3, 100_000), (400_000,), (5, 0, 3), ()])
def test_large_and_odd_shapes(shape):
    rng = np.random.default_rng(2)
    x = rng.normal(size=shape)
    for y in (np.asarray(x.T.copy().T), x, np.broadcast_to(np.float64(2.0), shape)):
        np.testing.assert_array_equal(doors.apply("add", np.empty(shape), x, y), x + y)
        np.testing.assert_array_equal(doors.apply("add", np.empty(shape[::-1]).T, x, y), x + y)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", [n for n in NAMES if has(n, np.float64) and n != "where"])
def test_an_element_does_not_depend_on_its_neighbours(name, isa):
    """Vector body, remainder, strided loop and scalar operands give the same bits, in place or not."""
    rng = np.random.default_rng(9)
    for dtype in FLOATS:
        inputs = [rng.uniform(0.1, 3, 101).astype(dtype) for _ in range(doors.inputs_of(name))]
        inputs[0][[3, 50]] = dtype(1e9)                        # beyond the reduction of sin and cos
        whole = run(name, *inputs, isa=isa)
        shifted = run(name, *[a[7:] for a in inputs], isa=isa)
        assert same(shifted, whole[7:])
        strided = [np.repeat(a, 3)[::3] for a in inputs]
        assert same(run(name, *strided, isa=isa), whole)
        if len(inputs) > 1:
            last = np.broadcast_to(inputs[-1][:1], (101,))
            a = run(name, *inputs[:-1], last, isa=isa)
            if name not in ("power", "power_backward_x"):      # those have short cuts for a constant exponent
                assert same(a, run(name, *inputs[:-1], last.copy(), isa=isa))
        if name not in BOOLEAN:
            for k in range(len(inputs)):
                place = [a.copy() for a in inputs]
                doors.apply(name, place[k], *place, isa=isa)
                assert same(place[k], whole)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("y", [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 7.0])
def test_constant_exponents(y, dtype):
    x = np.concatenate([np.linspace(-3, 3, 77), [math.inf, -math.inf, math.nan, 0.0, -0.0, 1e38, 1e-38]]).astype(dtype)
    with np.errstate(all="ignore"):
        expected = np.power(x, dtype(y))
    if y == 0.5:
        expected[x == -math.inf] = math.inf                    # C's pow; NumPy takes the square root
    for isa in ISAS:
        np.testing.assert_allclose(run("power", x, np.broadcast_to(dtype(y), x.shape), isa=isa), expected, rtol=4 * np.finfo(dtype).eps)


def test_refusals():
    x = np.ones(3)
    with pytest.raises(KeyError, match="no elementwise kernel named 'frobnicate'"):
        doors.apply("frobnicate", x, x)
    with pytest.raises(TypeError, match="add takes 2 inputs, got 1"):
        doors.apply("add", x.copy(), x)
    with pytest.raises(ValueError, match="shape of the result"):
        doors.apply("add", x.copy(), x, np.ones(4))
    with pytest.raises(TypeError, match="exp has no loop for int32"):
        doors.apply("exp", np.ones(3, np.int32), np.ones(3, np.int32))
    with pytest.raises(TypeError, match="equal needs dtypes"):
        doors.apply("equal", x.copy(), x, x)
    with pytest.raises(TypeError, match="no dtype for buffers of format"):
        doors.apply("negative", np.ones(3, complex), np.ones(3, complex))
    with pytest.raises(RuntimeError, match="unknown; choose one of baseline, avx2, avx512"):
        doors.apply("exp", x.copy(), x, isa="mmx")


def test_every_shell_has_the_same_loops():
    for name in NAMES:
        for dtype in doors.dtypes_of(name):
            inputs = [np.ones(9, dtype) for _ in range(doors.inputs_of(name))]
            if name == "where":
                inputs[0] = np.ones(9, np.bool_)
            for isa in ISAS:
                run(name, *inputs, isa=isa)


@pytest.mark.parametrize("isa", [*ISAS, "mmx", "unfit"])
def test_choice_of_the_shell(isa):
    unfit = [name for name in ("avx2", "avx512") if name not in ISAS]
    if isa == "unfit":
        if not unfit:
            pytest.skip("this CPU runs every shell")
        isa = unfit[-1]
    code = "import sys; from cgrad.kernels import dispatch; print(dispatch.isa(), [m for m in sys.modules if m.startswith('cgrad.kernels._')])"
    environ = {**os.environ, "CGRAD_ISA": isa, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)
    if isa in ISAS:
        shells = ["avx2", isa] if isa == "avx512" else [isa]          # what has no gain from AVX-512 is built for AVX2 alone
        assert done.stdout == f"{isa} {[f'cgrad.kernels._{name}' for name in shells]}\n", done.stderr
    else:
        assert "RuntimeError" in done.stderr and isa in done.stderr and "baseline" in done.stderr


@pytest.mark.parametrize("name", ["add", "exp", "sin", "gelu", "power", "less"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_thread_count_does_not_change_a_bit(name, dtype):
    rng = np.random.default_rng(4)
    shape = (700, 611)
    inputs = [rng.normal(size=shape).astype(dtype) * 4 for _ in range(doors.inputs_of(name))]
    inputs[0] = np.asfortranarray(inputs[0])
    before = get_num_threads()
    try:
        results = []
        for n in (1, 2, 3, 7):
            set_num_threads(n)
            results.append(run(name, *inputs).tobytes())
    finally:
        set_num_threads(before)
    assert len(set(results)) == 1
