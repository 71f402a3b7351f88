"""Elementwise kernels through their doors: accuracy, special values, integers, casts, layouts, for every build of the kernels."""
import math
import subprocess
import sys

import mpmath as mp
import numpy as np
import pytest
import scipy.special as sp

from cgrad.kernels import dispatch, doors
from cgrad.kernels.parallel import get_num_threads, set_num_threads

ISAS = dispatch.isa_available()
INTEGERS = [np.uint8, np.int8, np.int16, np.int32, np.int64]
FLOATS = [np.float32, np.float64]

EXACT = {
    "exp": mp.exp, "exp2": lambda x: mp.power(2, x), "expm1": mp.expm1, "log": mp.log, "log2": lambda x: mp.log(x, 2), "log10": mp.log10,
    "log1p": mp.log1p, "sqrt": mp.sqrt, "rsqrt": lambda x: 1 / mp.sqrt(x), "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "asin": mp.asin,
    "acos": mp.acos, "atan": mp.atan, "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh, "asinh": mp.asinh, "acosh": mp.acosh,
    "atanh": mp.atanh, "sigmoid": lambda x: 1 / (1 + mp.exp(-x)), "logsigmoid": lambda x: -mp.log1p(mp.exp(-x)),
    "softplus": lambda x: mp.log1p(mp.exp(x)), "gelu": lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2, "silu": lambda x: x / (1 + mp.exp(-x)),
    "erf": mp.erf, "erfc": mp.erfc, "reciprocal": lambda x: 1 / x,
}
EXACT_BINARY = {"power": mp.power, "hypot": mp.hypot, "atan2": mp.atan2, "logaddexp": lambda x, y: mp.log(mp.exp(x) + mp.exp(y))}
POSITIVE = {"log", "log2", "log10", "sqrt", "rsqrt"}
UNIT = {"asin", "acos", "atanh"}


def run(name, *inputs, isa=None, out_dtype=None):
    inputs = [np.asarray(x) for x in inputs]
    out = np.empty(inputs[0].shape, out_dtype or inputs[-1].dtype)
    doors.apply(name, out, *inputs, isa=isa)
    return out


def points(name, dtype):
    rng = np.random.default_rng(3)
    f = np.finfo(dtype)
    top = math.log(f.max)
    x = np.concatenate([rng.uniform(-10, 10, 60), 10.0 ** rng.uniform(-12, 0, 30), -(10.0 ** rng.uniform(-12, 0, 30)),
                        [0.5, 1.0, -1.0, f.eps, -f.eps, f.tiny, f.smallest_subnormal, 20.0, -20.0, 0.99 * top, -0.99 * top]])
    if name in POSITIVE:
        x = np.concatenate([np.abs(x), np.ldexp(rng.uniform(1, 2, 30), rng.integers(f.minexp + 1, f.maxexp - 1, 30)), 1 + x[60:90]])
    elif name in UNIT:
        x = np.concatenate([rng.uniform(-0.999, 0.999, 60), x[60:120] * 0.99])
    elif name == "acosh":
        x = 1 + np.abs(x)
    elif name == "log1p":
        x = np.concatenate([np.abs(x), x[60:120] * 0.99])
    elif name in ("sin", "cos", "tan"):
        x = np.concatenate([x, rng.integers(1, 2000, 30) * (math.pi / 2), 10.0 ** rng.uniform(2, 6, 20)])
    return x.astype(dtype)


def ulps(got, exact, dtype):
    f = np.finfo(dtype)
    worst = 0.0
    for g, e in zip(got.tolist(), exact):
        if abs(e) > float(f.max):
            assert math.isinf(g)
            continue
        scale = mp.mpf(2) ** (math.floor(math.log2(max(abs(float(e)), float(f.tiny)))) - f.nmant)
        worst = max(worst, float(abs(mp.mpf(g) - e) / scale))
    return worst


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", EXACT)
def test_functions_are_right_to_two_units_in_the_last_place(name, dtype, isa):
    x = points(name, dtype)
    if name == "reciprocal":
        x = x[np.abs(x) > np.finfo(dtype).tiny]
    with mp.workprec(400):
        exact = [EXACT[name](mp.mpf(v)) for v in x.tolist()]
        assert ulps(run(name, x, isa=isa), exact, dtype) <= 2


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", EXACT_BINARY)
def test_functions_of_two_numbers(name, dtype, isa):
    rng = np.random.default_rng(5)
    x, y = rng.uniform(-10, 10, 150).astype(dtype), rng.uniform(-10, 10, 150).astype(dtype)
    x = np.abs(x) if name == "power" else x
    with mp.workprec(400):
        exact = [EXACT_BINARY[name](mp.mpf(a), mp.mpf(b)) for a, b in zip(x.tolist(), y.tolist())]
        assert ulps(run(name, x, y, isa=isa), exact, dtype) <= 2


SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -2.5, 1e30, -1e30, 5e-324, 1e-40])
NUMPY = {"negative": np.negative, "absolute": np.abs, "sign": np.sign, "square": np.square, "sqrt": np.sqrt, "exp": np.exp, "expm1": np.expm1,
         "log": np.log, "log2": np.log2, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "atan": np.arctan, "sinh": np.sinh,
         "cosh": np.cosh, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint, "reciprocal": np.reciprocal,
         "sigmoid": sp.expit, "erf": sp.erf, "relu": lambda x: np.where(np.isnan(x), x, np.maximum(x, 0))}


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", NUMPY)
def test_special_values(name, dtype, isa):
    with np.errstate(all="ignore"):
        x = SPECIAL.astype(dtype)
        want = NUMPY[name](x)
    # long enough for the vector body and the tail
    got = run(name, np.tile(x, 5), isa=isa)
    np.testing.assert_allclose(got, np.tile(want, 5), rtol=3 * np.finfo(dtype).eps, atol=0)
    plain = ~np.isnan(np.tile(want, 5))
    np.testing.assert_array_equal(np.signbit(got)[plain], np.signbit(np.tile(want, 5))[plain])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_wins_in_maximum_minimum_and_clip(dtype, isa):
    x = np.tile(np.array([np.nan, 1.0, np.nan, 2.0, -0.0], dtype), 7)
    y = np.tile(np.array([0.0, np.nan, np.nan, 3.0, 0.5], dtype), 7)
    np.testing.assert_array_equal(run("maximum", x, y, isa=isa), np.maximum(x, y))
    np.testing.assert_array_equal(run("minimum", x, y, isa=isa), np.minimum(x, y))
    low, high = np.full_like(x, 0.25), np.full_like(x, 1.5)
    np.testing.assert_array_equal(run("clip", x, low, high, isa=isa), np.clip(x, low, high))


@pytest.mark.parametrize("isa", ISAS)
def test_powers_at_the_edges(isa):
    x = np.array([0.0, 0.0, -8.0, -8.0, -2.0, 2.0, np.nan, 1.0, np.inf, 0.0, -0.0, -np.inf])
    y = np.array([0.0, 2.0, 3.0, 1 / 3, -2.0, 0.5, 0.0, np.nan, -1.0, -1.0, -3.0, 3.0])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(run("power", x, y, isa=isa), np.power(x, y), rtol=1e-15)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype, isa):
    info = np.iinfo(dtype)
    rng = np.random.default_rng(7)
    x = np.concatenate([rng.integers(info.min, info.max, 60, dtype=dtype, endpoint=True), np.array([info.min, info.max, 0, 1], dtype)])
    y = np.concatenate([rng.integers(info.min, info.max, 60, dtype=dtype, endpoint=True), np.array([info.max, 1, 3, 0], dtype)])
    with np.errstate(all="ignore"):
        for name, function in (("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("maximum", np.maximum),
                               ("minimum", np.minimum), ("bitwise_and", np.bitwise_and), ("bitwise_xor", np.bitwise_xor),
                               ("floor_divide", np.floor_divide), ("remainder", np.remainder)):
            np.testing.assert_array_equal(run(name, x, y, isa=isa), function(x, y), err_msg=name)
    for name, function in (("less", np.less), ("greater_equal", np.greater_equal), ("equal", np.equal)):
        np.testing.assert_array_equal(run(name, x, y, isa=isa, out_dtype=np.bool_), function(x, y), err_msg=name)
    small = rng.integers(0, 5, 20).astype(dtype)
    np.testing.assert_array_equal(run("power", x[:20], small, isa=isa), np.power(x[:20], small))
    if info.min < 0:      # what traps in C
        lowest, minus_one, zero = np.array([info.min], dtype), np.array([-1], dtype), np.array([0], dtype)
        assert run("floor_divide", lowest, minus_one, isa=isa)[0] == info.min and run("remainder", lowest, minus_one, isa=isa)[0] == 0
        assert run("floor_divide", lowest, zero, isa=isa)[0] == 0
    far = np.array([8 * dtype().itemsize, 100], dtype)
    assert run("bitwise_left_shift", np.array([1, 1], dtype), far, isa=isa).tolist() == [0, 0]
    assert run("bitwise_right_shift", np.array([info.max, info.min], dtype), far, isa=isa).tolist() == [0, -1 if info.min < 0 else 0]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("source", [np.bool_, *INTEGERS, *FLOATS])
@pytest.mark.parametrize("target", [np.bool_, *INTEGERS, *FLOATS])
def test_casts(source, target, isa):
    x = np.array([0, 1, 1, 0, 1] if source is np.bool_ else [0, 1, 2, 100, 127], source)
    out = np.empty(5, target)
    doors.cast(out, x, isa=isa)
    np.testing.assert_array_equal(out, x.astype(target))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("target", INTEGERS)
def test_floats_out_of_range_become_the_nearest_integer_and_nan_zero(target, isa):
    info = np.iinfo(target)
    x = np.array([1e30, -1e30, np.inf, -np.inf, np.nan, 2.9, -2.9])
    out = np.empty(7, target)
    doors.cast(out, x, isa=isa)
    assert out.tolist() == [info.max, info.min, info.max, info.min, 0, 2, -2 if info.min < 0 else 0]


@pytest.mark.parametrize("isa", ISAS)
def test_layouts(isa):
    rng = np.random.default_rng(11)
    a = rng.standard_normal((37, 41))
    for x in (a, a.T, a[::-1, ::2], a[:, ::-1], np.broadcast_to(a[:1], a.shape), np.broadcast_to(a[:, :1], a.shape)):
        for y in (np.ones(x.shape), np.asfortranarray(rng.standard_normal(x.shape)), np.broadcast_to(np.float64(3.0), x.shape)):
            for out in (np.empty(x.shape), np.empty(x.shape[::-1]).T, np.empty((x.shape[0], 2 * x.shape[1]))[:, ::-2]):
                doors.apply("multiply", out, x, y, isa=isa)
                np.testing.assert_array_equal(out, x * y)
    for shape in ((0,), (3, 0), ()):
        out = np.empty(shape)
        doors.apply("exp", out, np.zeros(shape), isa=isa)
        np.testing.assert_array_equal(out, np.ones(shape))


def test_typed_memoryviews_at_the_door():
    x = np.random.default_rng(0).standard_normal((5, 8))
    out = np.empty((8, 5)).T
    doors.unary("negative", x, out)
    np.testing.assert_array_equal(out, -x)
    doors.binary("add", x[::-1], x, out)
    np.testing.assert_array_equal(out, x[::-1] + x)
    with pytest.raises(ValueError, match="negative"):
        doors.unary("negative", x, np.empty((5, 7)))
    with pytest.raises((KeyError, TypeError)):
        doors.unary("no_such_kernel", x, out)


def test_the_same_bits_for_any_number_of_threads():
    before = get_num_threads()
    x = np.random.default_rng(0).standard_normal(300_001)
    try:
        results = []
        for n in (1, 2, 3, 8):
            set_num_threads(n)
            results.append(run("tanh", x).tobytes())
        assert len(set(results)) == 1
    finally:
        set_num_threads(before)


def test_every_kernel_has_loops_in_every_build():
    for name in dispatch.kernel_names():
        for dtype in doors.dtypes_of(name):
            for isa in ISAS:
                inputs = [np.ones(9, dtype) for _ in range(doors.inputs_of(name))]
                if name == "where":
                    inputs[0] = np.ones(9, np.bool_)
                try:
                    doors.apply(name, np.empty(9, dtype), *inputs, isa=isa)
                except TypeError:      # it writes bool
                    doors.apply(name, np.empty(9, np.bool_), *inputs, isa=isa)


@pytest.mark.parametrize("isa", ISAS)
def test_the_environment_chooses_the_build(isa):
    code = "from cgrad.kernels import dispatch; print(dispatch.isa())"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"CGRAD_ISA": isa, "PATH": "", "PYTHONPATH": ":".join(sys.path)})
    assert out.stdout.strip() == isa, out.stderr


def test_an_unknown_build_is_refused():
    out = subprocess.run([sys.executable, "-c", "import cgrad"], capture_output=True, text=True,
                         env={"CGRAD_ISA": "mmx", "PATH": "", "PYTHONPATH": ":".join(sys.path)})
    assert out.returncode != 0 and "CGRAD_ISA" in out.stderr and "baseline" in out.stderr
