"""One row per operation: what it is called with, what NumPy or SciPy says, where it has kinks.

test_ops.py drives everything from here: values, gradients, forward mode, second order, layouts, dtypes, special values.  To add an
operation, add a row; a test fails for a public operation without one.
"""
import ctypes
import functools
import itertools
import operator
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.integrate
import scipy.linalg as sl
import scipy.special as sp
import scipy.stats

import cgrad as cg

INF, NAN = np.inf, np.nan


@dataclass
class Draw:
    """A floating-point operand, drawn anew for each test: uniform in [low, high], away from the kinks."""

    shape: tuple = ()
    low: float = -2.0
    high: float = 2.0
    kinks: tuple = ()
    distinct: bool = False        # all elements far apart, for maxima and the like

    def make(self, rng, dtype=np.float64):
        x = rng.uniform(self.low, self.high, self.shape)
        if self.distinct:
            n = x.size
            x = (rng.permutation(n) / max(n, 1) * (self.high - self.low) + self.low).reshape(self.shape)
        for kink in self.kinks:
            x = np.where(np.abs(x - kink) < 0.05, kink + np.where(x < kink, -0.1, 0.1), x)
        return np.asarray(x, dtype)


@dataclass
class Pick:
    """Whole numbers below `n`, drawn anew for each test: indices, which may differ between the examples of a batch."""

    shape: tuple
    n: int

    def make(self, rng):
        return rng.integers(0, self.n, self.shape)


class Sample:
    """The arguments of one call.  Draws (also inside lists) are what gradients are taken of; arrays are constants."""

    def __init__(self, *args, **kwargs):
        self.args, self.kwargs = args, kwargs


@dataclass
class Row:
    """What the tests know of one operation."""

    name: str
    reference: object                            # the NumPy function, called with the sample's arguments; None: the function itself
    samples: list
    function: object = None                      # how to call it; cgrad.<name> by default
    differentiable: bool = True
    mapped: bool = True                          # whether it is compared with a loop inside vmap: not what draws random numbers
    elementwise: bool = False
    result: str = "same"                         # dtype for integer operands: "same", "float", "bool", "sum" (int64, or uint64 for unsigned ones)
    integers: tuple = ("int32", "int64", "uint8", "uint16", "uint32", "uint64")  # integer dtypes it takes
    tolerance: float = 1.0                       # factor on all tolerances
    half: bool = True                            # whether float16 and bfloat16 are tried: not where numbers leave their range
    own_dtype: bool = False                      # whether the result's dtype has nothing to do with the operands'
    special: list = field(default_factory=list)  # (arguments, value, gradients or None)

    def call(self, *args, **kwargs):
        return (self.function or getattr(cg, self.name))(*args, **kwargs)


ROWS = []


def row(name, reference, samples, **options):
    ROWS.append(Row(name, reference, list(samples), **options))


SHAPES = ((), (5,), (2, 3), (0, 3))
PAIRS = (((), ()), ((4,), (4,)), ((2, 3), (3,)), ((3, 1), (1, 4)), ((2, 3), ()), ((0, 1), (2,)))


def unary(name, reference, low=-2.0, high=2.0, kinks=(), **options):
    options.setdefault("integers", ())
    row(name, reference, [Sample(Draw(shape, low, high, kinks)) for shape in SHAPES], elementwise=True, **options)


def binary(name, reference, x=(-2.0, 2.0), y=(-2.0, 2.0), y_kinks=(), numbers=True, **options):
    samples = [Sample(Draw(a, *x), Draw(b, *y, y_kinks)) for a, b in PAIRS]
    if numbers:
        samples += [Sample(Draw((3,), *x), float(y[1])), Sample(float(x[1]), Draw((3,), *y, y_kinks))]
    row(name, reference, samples, elementwise=True, **options)


# ------------------------------------------------------------------------------------------------------------- arithmetic
binary("add", lambda x, y, alpha=1: x + y * alpha)
binary("subtract", lambda x, y, alpha=1: x - y * alpha)
for _name in ("add", "subtract"):
    ROWS.append(Row(_name, {"add": lambda x, y, alpha: x + alpha * y, "subtract": lambda x, y, alpha: x - alpha * y}[_name],
                    [Sample(Draw((2, 3)), Draw((3,)), alpha=2.5)]))
binary("multiply", np.multiply)
binary("divide", np.divide, y=(0.5, 2.0), result="float",
       special=[((1.0, 0.0), INF, (INF, -INF)), ((-1.0, INF), -0.0, (0.0, 0.0))])
row("divide", lambda x, y, rounding_mode: {"floor": np.floor, "trunc": np.trunc}[rounding_mode](x / y),
    [Sample(Draw((4,), 0.1, 0.9), Draw((4,), 1.1, 1.9), rounding_mode=mode) for mode in ("floor", "trunc")])
unary("negative", np.negative, integers=("int32", "int64", "uint16", "uint32", "uint64"))
unary("positive", np.positive, integers=("int32", "uint8", "uint16", "uint32", "uint64"))
unary("absolute", np.absolute, kinks=(0,), integers=("int32", "int64", "uint16", "uint32", "uint64"),
      special=[((0.0,), 0.0, (0.0,)), ((-0.0,), 0.0, (0.0,)), ((-INF,), INF, (-1.0,)), ((NAN,), NAN, None)])
unary("sign", np.sign, kinks=(0,), integers=("int32", "uint16", "uint32", "uint64"), special=[((0.0,), 0.0, (0.0,)), ((NAN,), NAN, None)])
unary("square", np.square, integers=("int32", "int64", "uint16", "uint32", "uint64"))
unary("reciprocal", np.reciprocal, 0.5, 2.0, special=[((0.0,), INF, (-INF,)), ((-0.0,), -INF, (-INF,)), ((INF,), 0.0, (-0.0,))])
binary("power", np.power, x=(0.5, 2.0), y=(-2.0, 2.0), integers=(),
       special=[((0.0, 0.0), 1.0, (0.0, 0.0)), ((0.0, 1.0), 0.0, (1.0, 0.0)), ((0.0, 2.0), 0.0, (0.0, 0.0)),
                ((0.0, 0.5), 0.0, (INF, 0.0)), ((-2.0, 3.0), -8.0, (12.0, None)), ((-2.0, 2.0), 4.0, (-4.0, None)),
                ((-2.0, -1.0), -0.5, (-0.25, None)), ((-2.0, 0.5), NAN, None), ((0.0, -1.0), INF, (-INF, None)),
                ((1.0, NAN), 1.0, None)])
row("power", np.power, [Sample(Draw((3,), -2.0, -0.5), n) for n in (0, 1, 2, 3, -1, -2, 5)] + [Sample(Draw((3,), 0.5, 2.0), 0.5)])
row("rsub", lambda x, y, alpha=1: y - alpha * x, [Sample(Draw((2, 3)), Draw((3,))), Sample(Draw((3,)), 2.5), Sample(Draw((3,)), Draw((2, 1)), alpha=0.5)])
row("float_power", np.float_power, [Sample(Draw((3,), 0.5, 2.0), Draw((2, 1))), Sample(Draw((3,), 0.5, 2.0), 3)], own_dtype=True)
binary("floor_divide", np.floor_divide, x=(0.1, 0.9), y=(1.1, 1.9), numbers=False)
binary("remainder", np.remainder, x=(0.6, 0.8), y=(0.45, 0.55), numbers=False,
       special=[((-7.0, 2.0), 1.0, (1.0, 4.0)), ((7.0, -2.0), -1.0, (1.0, 4.0))])
binary("fmod", np.fmod, x=(0.6, 0.8), y=(0.45, 0.55), numbers=False,
       special=[((-7.0, 2.0), -1.0, (1.0, 3.0)), ((7.0, -2.0), 1.0, (1.0, 3.0))])
for _name, _reference in (("maximum", np.maximum), ("minimum", np.minimum), ("fmax", np.fmax), ("fmin", np.fmin)):
    _nan = NAN if _name.startswith("m") else 2.0
    binary(_name, _reference, x=(-2.0, 0.9), y=(1.0, 2.0),
           special=[((3.0, 3.0), 3.0, (0.5, 0.5)), ((NAN, 2.0), _nan, None), ((2.0, NAN), _nan, None)])
binary("hypot", np.hypot, x=(0.5, 2.0), y=(-2.0, -0.5), integers=(),
       special=[((0.0, 0.0), 0.0, (0.0, 0.0)), ((3e200, 4e200), 5e200, (0.6, 0.8)), ((INF, NAN), INF, None)])
binary("atan2", np.arctan2, x=(0.5, 2.0), y=(-2.0, -0.5), integers=(),
       special=[((0.0, 0.0), 0.0, (0.0, 0.0)), ((0.0, -1.0), np.pi, (-1.0, 0.0)), ((3e200, 4e200), np.arctan2(3, 4), (1.6e-201, -1.2e-201))])
binary("copysign", np.copysign, x=(0.5, 2.0), y=(-2.0, -0.5), integers=(),
       special=[((0.0, -1.0), -0.0, (0.0, 0.0)), ((2.0, -0.0), -2.0, (-1.0, 0.0))])
binary("logaddexp", np.logaddexp, integers=(),
       special=[((-INF, -INF), -INF, (0.0, 0.0)), ((INF, INF), INF, (0.5, 0.5)), ((1000.0, 1000.0), 1000.0 + np.log(2), (0.5, 0.5)),
                ((-INF, 1.0), 1.0, (0.0, 1.0))])
row("lerp", lambda x, y, w: x + w * (y - x),
    [Sample(Draw((2, 3)), Draw((3,)), Draw(())), Sample(Draw((3,)), Draw((3,)), 0.25), Sample(Draw((0,)), Draw((0,)), Draw(()))])
row("addcmul", lambda x, y, z, value=1: x + value * y * z,
    [Sample(Draw((2, 3)), Draw((3,)), Draw(())), Sample(Draw((3,)), Draw((3,)), Draw((3,)), value=0.5)])
row("addcdiv", lambda x, y, z, value=1: x + value * y / z,
    [Sample(Draw((2, 3)), Draw((3,)), Draw((), 0.5, 2.0)), Sample(Draw((3,)), Draw((3,)), Draw((3,), 0.5, 2.0), value=0.5)])

# ------------------------------------------------------------------------------------------------ functions of one number
unary("sqrt", np.sqrt, 0.5, 2.0, special=[((0.0,), 0.0, (INF,)), ((-1.0,), NAN, None), ((INF,), INF, (0.0,))])
unary("rsqrt", lambda x: 1 / np.sqrt(x), 0.5, 2.0, special=[((0.0,), INF, (-INF,)), ((INF,), 0.0, (-0.0,))])
unary("exp", np.exp, special=[((-INF,), 0.0, (0.0,)), ((INF,), INF, (INF,)), ((1000.0,), INF, (INF,)), ((NAN,), NAN, None)])
unary("exp2", np.exp2)
unary("expm1", np.expm1, special=[((1e-20,), 1e-20, (1.0,)), ((-INF,), -1.0, (0.0,))])
unary("log", np.log, 0.5, 2.0, special=[((0.0,), -INF, (INF,)), ((-1.0,), NAN, None), ((INF,), INF, (0.0,))])
unary("log2", np.log2, 0.5, 2.0, special=[((0.0,), -INF, (INF,))])
unary("log10", np.log10, 0.5, 2.0, special=[((0.0,), -INF, (INF,))])
unary("log1p", np.log1p, -0.5, 2.0, special=[((1e-20,), 1e-20, (1.0,)), ((-1.0,), -INF, (INF,))])
unary("sin", np.sin)
unary("cos", np.cos)
unary("tan", np.tan, -1.0, 1.0)
unary("asin", np.arcsin, -0.8, 0.8, special=[((1.0,), np.pi / 2, (INF,)), ((2.0,), NAN, None)])
unary("acos", np.arccos, -0.8, 0.8, special=[((1.0,), 0.0, (-INF,)), ((2.0,), NAN, None)])
unary("atan", np.arctan, special=[((INF,), np.pi / 2, (0.0,))])
unary("sinh", np.sinh)
unary("cosh", np.cosh)
unary("tanh", np.tanh, special=[((INF,), 1.0, (0.0,)), ((-40.0,), -1.0, (0.0,))])
unary("asinh", np.arcsinh)
unary("acosh", np.arccosh, 1.5, 3.0, special=[((1.0,), 0.0, (INF,)), ((0.5,), NAN, None)])
unary("atanh", np.arctanh, -0.8, 0.8, special=[((1.0,), INF, (INF,))])
unary("erf", sp.erf, special=[((INF,), 1.0, (0.0,))])
unary("erfc", sp.erfc, special=[((INF,), 0.0, (-0.0,)), ((20.0,), sp.erfc(20.0), None)])
for _name, _reference in (("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc), ("round", np.round)):
    row(_name, _reference, [Sample(Draw(s, 1.1, 1.4)) for s in SHAPES] + [Sample(Draw((3,), -1.4, -1.1))], elementwise=True,
        integers=("int32", "int64", "uint16", "uint32", "uint64"), special=[((NAN,), NAN, None), ((-INF,), -INF, (0.0,))])
row("round", np.round, [Sample(Draw((3,), 1.26, 1.34), 1), Sample(Draw((3,), 1130, 1160), -2)],
    special=[((0.5,), 0.0, (0.0,)), ((1.5,), 2.0, (0.0,)), ((2.5,), 2.0, (0.0,))])
unary("frac", lambda x: x - np.trunc(x), 1.1, 1.9)
unary("deg2rad", np.deg2rad, -180, 180)
unary("rad2deg", np.rad2deg)

# ------------------------------------------------------------------------------------------------------ special functions
unary("lgamma", sp.gammaln, 0.3, 4.0, special=[((0.0,), INF, None), ((-2.0,), INF, None), ((1.0,), 0.0, (-np.euler_gamma,)), ((INF,), INF, None)])
unary("lgamma", sp.gammaln, -2.8, -2.2)
unary("digamma", sp.digamma, 0.3, 4.0, special=[((0.0,), -INF, (INF,)), ((1.0,), -np.euler_gamma, (np.pi ** 2 / 6,))])
unary("digamma", sp.digamma, -2.8, -2.2)
row("polygamma", sp.polygamma, [Sample(n, Draw((2, 3), 0.4, 3.0)) for n in (0, 1, 2, 5)] + [Sample(2, Draw((3,), 10.0, 40.0))])
row("mvlgamma", lambda x, p: np.vectorize(lambda v: sp.multigammaln(v, p))(x), [Sample(Draw((2, 3), 1.6, 4.0), p) for p in (1, 2, 4)])
row("zeta", sp.zeta, [Sample(2.5, Draw((2, 3), 0.4, 3.0)), Sample(Draw((2, 1), 1.5, 4.0), Draw((3,), 0.4, 30.0))], function=cg.special.zeta, own_dtype=True)
for _name, _reference in (("igamma", sp.gammainc), ("igammac", sp.gammaincc)):
    row(_name, _reference, [Sample(Draw((2, 1), 0.3, 2.0), Draw((3,), 0.1, 4.0)), Sample(1.5, Draw((3,), 0.1, 2.0)), Sample(Draw((), 40.0, 50.0), Draw((3,), 35.0, 60.0))], own_dtype=True)
for _name in ("i0", "i0e", "i1", "i1e"):
    _even = _name[1] == "0"
    unary(_name, getattr(sp, _name), -3.0, 3.0, kinks=(0,) if _name[-1] == "e" else (), function=getattr(cg.special, _name),
          special=[((0.0,), float(_even), (0.0 if _even else 0.5,)), ((30.0,), getattr(sp, _name)(30.0), None)])
unary("erfinv", sp.erfinv, -0.9, 0.9, special=[((1.0,), INF, (INF,)), ((1.5,), NAN, None), ((-0.0,), -0.0, (np.sqrt(np.pi) / 2,))])
unary("erfcx", sp.erfcx, function=cg.special.erfcx, special=[((INF,), 0.0, None), ((-30.0,), INF, None)])
unary("ndtr", sp.ndtr, function=cg.special.ndtr, special=[((INF,), 1.0, (0.0,)), ((-INF,), 0.0, (0.0,))])
unary("ndtri", sp.ndtri, 0.1, 0.9, function=cg.special.ndtri, special=[((0.0,), -INF, (INF,)), ((1.0,), INF, (INF,)), ((0.5,), 0.0, (np.sqrt(2 * np.pi),))])
unary("log_ndtr", sp.log_ndtr, -3.0, 3.0, function=cg.special.log_ndtr, special=[((-100.0,), sp.log_ndtr(-100.0), (100.00999800099926,)), ((50.0,), 0.0, (0.0,))])
unary("entr", sp.entr, 0.2, 2.0, function=cg.special.entr, special=[((0.0,), 0.0, (INF,)), ((-1.0,), -INF, None)])
binary("xlogy", sp.xlogy, y=(0.3, 2.0), integers=(),
       special=[((0.0, 0.0), 0.0, (0.0, 0.0)), ((0.0, NAN), NAN, None), ((0.0, 2.0), 0.0, (np.log(2), 0.0)), ((0.0, INF), 0.0, (INF, 0.0))])
binary("xlog1py", sp.xlog1py, y=(-0.6, 2.0), integers=(), function=cg.special.xlog1py,
       special=[((0.0, -1.0), 0.0, (0.0, 0.0)), ((0.0, NAN), NAN, None), ((2.0, 1e-20), 2e-20, (1e-20, 2.0))])
row("logit", lambda x, eps=None: sp.logit(x if eps is None else np.clip(x, eps, 1 - eps)),
    [Sample(Draw((2, 3), 0.1, 0.9)), Sample(Draw((4,), 0.01, 0.99, kinks=(0.2, 0.8)), eps=0.2), Sample(Draw((), 0.1, 0.9))],
    special=[((0.0,), -INF, (INF,)), ((1.0,), INF, (INF,)), ((0.5,), 0.0, (4.0,)), ((2.0,), NAN, None)])
binary("logaddexp2", np.logaddexp2, integers=(), special=[((-INF, -INF), -INF, (0.0, 0.0)), ((2000.0, 2000.0), 2001.0, (0.5, 0.5))])
unary("sinc", np.sinc, -3.0, 3.0, special=[((0.0,), 1.0, (0.0,))], tolerance=10)
binary("heaviside", np.heaviside, x=(0.5, 2.0), integers=("int32", "int64", "uint16", "uint32", "uint64"),
       special=[((0.0, 3.0), 3.0, (0.0, 1.0)), ((-1.0, 3.0), 0.0, (0.0, 0.0)), ((NAN, 1.0), NAN, None)])
row("ldexp", np.ldexp, [Sample(Draw((2, 3)), np.array([1, -2, 5])), Sample(Draw((3,)), 2)])
row("frexp", np.frexp, [Sample(Draw((2, 3), 0.55, 0.95)), Sample(Draw((3,), 17.0, 30.0))], own_dtype=True)
binary("nextafter", lambda x, y: x + np.sign(y - x) * np.spacing(x), x=(0.6, 0.9), y=(1.0, 2.0), numbers=False, integers=())
for _name in ("gcd", "lcm"):
    row(_name, getattr(np, _name), [Sample(np.array([12, -9, 0, 7]), np.array([[18], [0], [6]])), Sample(np.array([5, 6]), 4)], differentiable=False)

# ------------------------------------------------------------------------------------------------------------ activations
unary("sigmoid", sp.expit, special=[((-1000.0,), 0.0, (0.0,)), ((1000.0,), 1.0, (0.0,))])
unary("logsigmoid", sp.log_expit, special=[((-1000.0,), -1000.0, (1.0,)), ((1000.0,), 0.0, (0.0,))])
unary("relu", lambda x: np.maximum(x, 0), kinks=(0,), integers=("int32", "uint16", "uint32", "uint64"),
      special=[((0.0,), 0.0, (0.0,)), ((NAN,), NAN, None), ((-INF,), 0.0, (0.0,)), ((INF,), INF, (1.0,))])
unary("gelu", lambda x: x * sp.ndtr(x), special=[((0.0,), 0.0, (0.5,)), ((-50.0,), 0.0, (0.0,)), ((50.0,), 50.0, (1.0,))])
row("gelu", lambda x, approximate: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3))),
    [Sample(Draw((2, 3)), approximate="tanh")])
unary("silu", lambda x: x * sp.expit(x), special=[((-1000.0,), 0.0, (0.0,)), ((1000.0,), 1000.0, (1.0,))])
unary("softplus", lambda x: np.logaddexp(x, 0), special=[((-1000.0,), 0.0, (0.0,)), ((1000.0,), 1000.0, (1.0,))])
row("softplus", lambda x, beta: np.logaddexp(x * beta, 0) / beta, [Sample(Draw((2, 3)), beta=2.0)])
row("softplus", lambda x, beta, threshold: np.where(x * beta > threshold, x, np.logaddexp(x * beta, 0) / beta),
    [Sample(Draw((2, 3), kinks=(0.5,)), 2.0, 1.0)])
row("leaky_relu", lambda x, slope=0.01: np.where(x > 0, x, slope * x),
    [Sample(Draw((2, 3), kinks=(0,))), Sample(Draw((4,), kinks=(0,)), 0.2)], special=[((0.0,), 0.0, (0.01,)), ((NAN,), NAN, None)])
row("elu", lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(x)),
    [Sample(Draw((2, 3), kinks=(0,))), Sample(Draw((4,), kinks=(0,)), 0.5)],
    special=[((0.0,), 0.0, (1.0,)), ((1000.0,), 1000.0, (1.0,)), ((-1000.0,), -1.0, (0.0,)), ((NAN,), NAN, None)])
row("celu", lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(x / alpha)),
    [Sample(Draw((2, 3), kinks=(0,))), Sample(Draw((4,), kinks=(0,)), 0.5)])
unary("selu", lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)), kinks=(0,))
row("hardtanh", lambda x, low=-1, high=1: np.clip(x, low, high),
    [Sample(Draw((2, 3), kinks=(-1, 1))), Sample(Draw((4,), kinks=(-0.5, 1.5)), -0.5, 1.5)],
    special=[((1.0,), 1.0, (0.0,)), ((-1.0,), -1.0, (0.0,)), ((NAN,), NAN, None)])
unary("relu6", lambda x: np.clip(x, 0, 6), 0.2, 8.0, kinks=(6,))
unary("hardsigmoid", lambda x: np.clip(x + 3, 0, 6) / 6, -4.0, 4.0, kinks=(-3, 3))
unary("hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6, -4.0, 4.0, kinks=(-3, 3))
unary("mish", lambda x: x * np.tanh(np.logaddexp(x, 0)))
unary("softsign", lambda x: x / (1 + np.abs(x)), kinks=(0,))
unary("tanhshrink", lambda x: x - np.tanh(x))
row("softshrink", lambda x, lambd=0.5: np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, 0)),
    [Sample(Draw((2, 3), kinks=(-0.5, 0.5))), Sample(Draw((4,), kinks=(-1, 1)), 1.0)])
row("hardshrink", lambda x, lambd=0.5: np.where(np.abs(x) > lambd, x, 0),
    [Sample(Draw((2, 3), kinks=(-0.5, 0.5))), Sample(Draw((4,), kinks=(-1, 1)), 1.0)])
row("threshold", lambda x, t, v: np.where(x > t, x, v), [Sample(Draw((2, 3), kinks=(0.5,)), 0.5, -1.0)])
row("prelu", lambda x, w: np.where(x > 0, x, x * (w if w.size == 1 else w.reshape((1, -1) + (1,) * (x.ndim - 2)))),
    [Sample(Draw((2, 3), kinks=(0,)), Draw((1,))), Sample(Draw((2, 3, 4), kinks=(0,)), Draw((3,)))])

# ---------------------------------------------------------------------------------------------- comparison, logic, choice
for _name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
    binary(_name, getattr(np, _name), differentiable=False, result="bool",
           special=[((NAN, NAN), _name == "not_equal", None), ((0.0, -0.0), _name in ("equal", "less_equal", "greater_equal"), None)])
for _name in ("logical_and", "logical_or", "logical_xor"):
    binary(_name, getattr(np, _name), differentiable=False, result="bool", special=[((NAN, 0.0), _name != "logical_and", None)])
unary("logical_not", np.logical_not, differentiable=False, result="bool", integers=("int32", "uint8", "uint16", "uint32", "uint64"))
_integers = [Sample(np.array([5, -7, 100]), np.array([3, 6, -1])), Sample(np.array([[5], [6]], np.uint8), np.array([1, 2], np.uint8)),
             Sample(np.array([5, 6]), 3)]
_bools = [Sample(np.array([True, True, False, False]), np.array([True, False, True, False]))]
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    row(_name, getattr(np, _name), _integers + _bools, differentiable=False)
for _name in ("left", "right"):
    row(f"bitwise_{_name}_shift", getattr(np, f"{_name}_shift"),
        [Sample(np.array([5, -7, 100]), np.array([0, 1, 3])), Sample(np.array([5, 6]), 2)], differentiable=False)
row("bitwise_not", np.invert, [Sample(np.array([5, -7])), Sample(np.array([True, False])), Sample(np.array([1], np.uint8))], differentiable=False)
for _name in ("isnan", "isinf", "isfinite", "signbit", "isposinf", "isneginf"):
    unary(_name, getattr(np, _name), differentiable=False, result="bool",
          special=[((x,), bool(getattr(np, _name)(x)), None) for x in (NAN, INF, -INF, 0.0, -0.0)])
_choice = np.array([[True, False, True], [False, False, True]])
row("where", np.where,
    [Sample(_choice, Draw((2, 3)), Draw((2, 3))), Sample(_choice, Draw((3,)), Draw(())), Sample(_choice[0], Draw((2, 1)), Draw((3,))),
     Sample(_choice, Draw((2, 3)), 0.5), Sample(np.array(True), 1.5, Draw((2,))), Sample(np.zeros((0, 1), bool), Draw((3,)), Draw((1,)))],
    special=[((True, 1.0, NAN), 1.0, (None, 1.0, 0.0)), ((False, INF, 2.0), 2.0, (None, 0.0, 1.0))])
row("where_fn", lambda c, x, y: np.where(c, np.sin(x) * y, np.cos(x)), function=lambda c, x, y: cg.where_fn(c, lambda x, y: cg.sin(x) * y, lambda x, y: cg.cos(x), x, y),
    samples=[Sample(_choice, Draw((2, 3)), Draw((2, 3))), Sample(_choice, Draw((3,)), Draw(())), Sample(_choice[0], Draw((2, 1)), 0.5),
             Sample(np.array(True), Draw(()), Draw((2,))), Sample(np.zeros((0, 1), bool), Draw((3,)), Draw((1,)))], integers=())
row("clip", lambda x, min=None, max=None: np.clip(x, min, max),
    [Sample(Draw((2, 3), kinks=(-1, 1)), -1.0, 1.0), Sample(Draw((4,), kinks=(0.5,)), min=0.5), Sample(Draw((4,), kinks=(0.5,)), max=0.5),
     Sample(Draw((2, 3)), Draw((3,), -5, -3), Draw((3,), 3, 5)), Sample(Draw((2, 3)), Draw((3,), 3, 4), Draw((), 5, 6)),
     Sample(Draw((2, 3)), Draw((3,), 3, 4), None), Sample(Draw((3,)), None, Draw((2, 1), -4, -3))],
    special=[((1.0, 1.0, 2.0), 1.0, (1.0, 0.0, 0.0)), ((2.0, 1.0, 2.0), 2.0, (1.0, 0.0, 0.0)), ((NAN, 0.0, 1.0), NAN, None),
             ((0.0, 3.0, 1.0), 1.0, (0.0, 0.0, 1.0)), ((9.0, 0.0, 1.0), 1.0, (0.0, 0.0, 1.0)), ((-9.0, 0.0, 1.0), 0.0, (0.0, 1.0, 0.0))])
row("clamp_min", np.maximum, [Sample(Draw((4,), kinks=(0.5,)), 0.5), Sample(Draw((2, 3)), Draw((3,), 3, 4))], special=[((1.0, 1.0), 1.0, (1.0, 0.0))])
row("clamp_max", np.minimum, [Sample(Draw((4,), kinks=(0.5,)), 0.5), Sample(Draw((2, 3)), Draw((3,), -4, -3))], special=[((1.0, 1.0), 1.0, (1.0, 0.0))])
row("nan_to_num", np.nan_to_num, [Sample(Draw((2, 3))), Sample(Draw((3,)), nan=1.0, posinf=2.0, neginf=3.0)],
    special=[((NAN,), 0.0, (0.0,)), ((INF,), np.finfo(float).max, (0.0,)), ((-INF,), np.finfo(float).min, (0.0,))])
_near = np.array([1.0, 2.0, INF, NAN, 0.0]), np.array([1.0 + 1e-7, 2.1, INF, NAN, 1e-9])
row("isclose", np.isclose, [Sample(*_near), Sample(*_near, equal_nan=True), Sample(*_near, rtol=0.1, atol=0.0)], differentiable=False)
row("allclose", np.allclose, [Sample(*_near), Sample(*_near, equal_nan=True), Sample(np.ones(3), np.ones(3))], differentiable=False)
row("array_equal", np.array_equal, [Sample(np.ones(3), np.ones(3)), Sample(np.ones(3), np.ones((1, 3))), Sample(np.ones(3), np.zeros(3))],
    differentiable=False)

# ------------------------------------------------------------------------------------------------------------- reductions
AXES = [dict(), dict(axis=0), dict(axis=-1, keepdims=True), dict(axis=(0, 2)), dict(axis=(1, -1), keepdims=True), dict(axis=()),
        dict(axis=None, keepdims=True)]


def reduction(name, reference, low=-2.0, high=2.0, empty=True, extra=(), distinct=False, **options):
    samples = [Sample(Draw((2, 3, 4), low, high, distinct=distinct), **axes, **more) for axes in AXES for more in (extra or ({},))]
    samples += [Sample(Draw((), low, high), **more) for more in (extra or ({},))] + [Sample(Draw((5,), low, high, distinct=distinct))]
    if empty:
        samples += [Sample(Draw((0, 3)), axis=0), Sample(Draw((2, 0, 3))), Sample(Draw((2, 0)), axis=1, keepdims=True)]
    samples += [Sample(Draw((0, 3), distinct=distinct), axis=1)]
    row(name, reference, samples, **options)


def _axes(function):
    """A NumPy reduction that takes ``axis=()``, which leaves things as they are."""
    def reference(x, axis=None, keepdims=False, **options):
        return function(x, axis=axis, keepdims=keepdims, **options)
    return reference


def _logsumexp(x, axis=None, keepdims=False):
    return x.copy() if axis == () else np.asarray(sp.logsumexp(x, axis=axis, keepdims=keepdims))


def _spread(function):
    def reference(x, axis=None, keepdims=False, correction=0):
        with np.errstate(all="ignore"):
            return function(x, axis=axis, keepdims=keepdims, ddof=correction)
    return reference


reduction("sum", _axes(np.sum), result="sum", integers=("int32", "uint8", "uint16", "uint32", "uint64", "bool"))
reduction("mean", _axes(np.mean), empty=False, result="float", integers=("int32", "uint16", "uint32", "uint64"))
reduction("prod", _axes(np.prod), result="sum", integers=("int32", "uint16", "uint64"))
row("sum_to_size", lambda x, shape: x.sum(tuple(k for k in range(x.ndim) if k < x.ndim - len(shape) or shape[k - x.ndim] != x.shape[k]), keepdims=True).reshape(shape),
    [Sample(Draw((2, 3, 4)), (3, 1)), Sample(Draw((2, 3)), (2, 3)), Sample(Draw((2, 3)), ()), Sample(Draw((3, 0)), (1, 1))])
row("prod", np.prod, [Sample(Draw((n,), 0.5, 1.5)) for n in (1, 2, 3, 4, 5, 7, 8, 9)])
reduction("max", _axes(np.max), empty=False, distinct=True, integers=("int32", "uint8", "uint16", "uint32", "uint64"))
reduction("min", _axes(np.min), empty=False, distinct=True, integers=("int32", "uint8", "uint16", "uint32", "uint64"))
row("amax", np.max, [Sample(Draw((2, 3), distinct=True), axis=1), Sample(Draw((2, 3), distinct=True))])
row("amin", np.min, [Sample(Draw((2, 3), distinct=True), axis=1), Sample(Draw((2, 3), distinct=True))])
for _name in ("argmax", "argmin"):
    row(_name, _axes(getattr(np, _name)),
        [Sample(Draw((2, 3, 4)), axis=1), Sample(Draw((2, 3, 4)), axis=-1, keepdims=True), Sample(Draw((2, 3))), Sample(Draw(())),
         Sample(np.array([1, 3, 3])), Sample(np.array([2.0, NAN, -INF])), Sample(Draw((2, 3)), axis=None, keepdims=True)], differentiable=False)
for _name in ("any", "all"):
    row(_name, _axes(getattr(np, _name)),
        [Sample(np.array([[0, 1], [2, 3]])), Sample(np.array([[0.0, 0.0], [NAN, 3]]), axis=1), Sample(np.zeros((0, 2))),
         Sample(np.array([[True, False], [True, True]]), axis=(0, 1), keepdims=True), Sample(np.zeros((2, 0)), axis=1)], differentiable=False)
row("count_nonzero", np.count_nonzero, [Sample(np.array([[0, 1], [2, 3]])), Sample(np.array([[0.0, -0.0], [NAN, 3]]), axis=1)],
    differentiable=False)
_gaps = np.array([[1.0, NAN, 3.0], [NAN, 5.0, 6.0]])
row("nansum", np.nansum, [Sample(_gaps), Sample(_gaps, axis=1), Sample(Draw((2, 3)), axis=0, keepdims=True)])
row("nanmean", np.nanmean, [Sample(_gaps), Sample(_gaps, axis=1), Sample(Draw((2, 3)), axis=0, keepdims=True)])
reduction("var", _spread(np.var), empty=False, extra=({}, dict(correction=1)), result="float", integers=("int32", "uint16", "uint32", "uint64"))
reduction("std", _spread(np.std), empty=False, extra=({}, dict(correction=1)), result="float", integers=("int32", "uint16", "uint32", "uint64"))
for _row in ROWS[-2:]:      # one element, or a divisor of 0: nothing to compare a slope with
    _row.samples = [s for s in _row.samples if s.kwargs.get("axis") != () and s.args[0].shape != ()]
row("var_mean", lambda x, axis=None, correction=0: (np.var(x, axis=axis, ddof=correction), np.mean(x, axis=axis)),
    [Sample(Draw((2, 3)), axis=1), Sample(Draw((4,)), correction=1)])
row("std_mean", lambda x, axis=None, correction=0: (np.std(x, axis=axis, ddof=correction), np.mean(x, axis=axis)),
    [Sample(Draw((2, 3)), axis=1), Sample(Draw((4,)), correction=1)])
reduction("logsumexp", _logsumexp, empty=False)
row("softmax", lambda x, axis: sp.softmax(x, axis=axis if x.ndim else None),
    [Sample(Draw((2, 3, 4)), 1), Sample(Draw((5,)), axis=-1), Sample(Draw((2, 3)), 0), Sample(Draw(()), 0), Sample(Draw((0, 3)), 1)])
row("log_softmax", lambda x, axis: sp.log_softmax(x, axis=axis if x.ndim else None),
    [Sample(Draw((2, 3, 4)), 1), Sample(Draw((5,)), axis=-1), Sample(Draw((2, 3)), 0), Sample(Draw(()), 0), Sample(Draw((0, 3)), 1)])
row("softmin", lambda x, axis: sp.softmax(-x, axis=axis), [Sample(Draw((2, 3)), 1)])
row("vector_norm", lambda x, ord=2, axis=None, keepdims=False: np.linalg.vector_norm(x, ord=ord, axis=axis, keepdims=keepdims),
    [Sample(Draw((2, 3), 0.5, 2.0)), Sample(Draw((2, 3, 4), -2.0, -0.5), axis=(0, 2)), Sample(Draw((2, 3)), axis=1, keepdims=True),
     Sample(Draw((2, 3), 0.5, 2.0), ord=1, axis=1), Sample(Draw((2, 3), 0.5, 2.0), ord=3), Sample(Draw((0,))),
     Sample(Draw((4,), 0.5, 2.0, distinct=True), ord=INF), Sample(Draw((4,), 0.5, 2.0, distinct=True), ord=-INF),
     Sample(Draw((2, 3)), ord=0, axis=1), Sample(Draw((2, 3), 0.5, 2.0), ord=0.5, axis=0), Sample(Draw((3,), 0.5, 2.0), ord=-1.5)])

# ------------------------------------------------------------------------------------------------------------------ shape
row("reshape", lambda x, *shape: np.reshape(x, shape[0] if len(shape) == 1 else shape),
    [Sample(Draw((2, 3, 4)), (4, 6)), Sample(Draw((2, 3, 4)), -1), Sample(Draw((6,)), 2, 3), Sample(Draw(()), (1, 1)), Sample(Draw((1,)), ()),
     Sample(Draw((0, 3)), (3, 0, 2)), Sample(Draw((2, 3)), (2, 3))])
row("view", lambda x, *shape: np.reshape(x, shape[0] if len(shape) == 1 else shape),
    [Sample(Draw((2, 3, 4)), (6, 4)), Sample(Draw((6,)), 2, -1)])
row("view_as", lambda x, y: np.reshape(x, y.shape), [Sample(Draw((2, 3)), np.zeros(6))])
row("reshape_as", lambda x, y: np.reshape(x, y.shape), [Sample(Draw((2, 3)), np.zeros(6))])
row("ravel", np.ravel, [Sample(Draw((2, 3))), Sample(Draw(())), Sample(Draw((0, 2)))])
row("flatten", lambda x, start_dim=0, end_dim=-1: x.reshape(x.shape[:start_dim] + (-1,) + x.shape[x.ndim + end_dim + 1:] if x.ndim else (1,)),
    [Sample(Draw((2, 3, 4))), Sample(Draw((2, 3, 4)), 1), Sample(Draw((2, 3, 4)), 0, -2), Sample(Draw(()))])
row("unflatten", lambda x, axis, sizes: x.reshape(x.shape[:axis] + sizes + x.shape[axis + 1:]),
    [Sample(Draw((2, 6)), 1, (2, 3)), Sample(Draw((6, 2)), 0, (-1, 3))])
row("permute_dims", lambda x, *axes: np.transpose(x, axes[0] if len(axes) == 1 else axes),
    [Sample(Draw((2, 3, 4)), (2, 0, 1)), Sample(Draw((2, 3, 4)), 0, -1, 1), Sample(Draw(()), ())])
row("transpose", lambda x, *axes: np.swapaxes(x, *axes) if len(axes) == 2 else np.transpose(x, *axes),
    [Sample(Draw((2, 3, 4)), 0, 2), Sample(Draw((2, 3, 4))), Sample(Draw((2, 3, 4)), (1, 2, 0)), Sample(Draw((2, 3)), -1, 0)])
row("swapaxes", np.swapaxes, [Sample(Draw((2, 3, 4)), 0, -1)])
row("matrix_transpose", lambda x: np.swapaxes(x, -1, -2), [Sample(Draw((2, 3, 4))), Sample(Draw((2, 3)))])
row("t", np.transpose, [Sample(Draw((2, 3))), Sample(Draw((3,))), Sample(Draw(()))])
row("moveaxis", np.moveaxis, [Sample(Draw((2, 3, 4)), 0, -1), Sample(Draw((2, 3, 4)), (0, 1), (2, 0)), Sample(Draw((2, 3, 4)), (-1, 0), (0, 1))])
row("fliplr", np.fliplr, [Sample(Draw((2, 3))), Sample(Draw((2, 3, 2)))])
row("flipud", np.flipud, [Sample(Draw((2, 3))), Sample(Draw((4,)))])
row("rot90", np.rot90, [Sample(Draw((2, 3)), k) for k in range(-1, 4)] + [Sample(Draw((2, 3, 4)), 1, (2, 0)), Sample(Draw((2, 3, 2)), 3, axes=(-1, 1))])
row("flip", lambda x, axis=None: np.flip(x, axis),
    [Sample(Draw((2, 3))), Sample(Draw((2, 3, 4)), (0, -1)), Sample(Draw((3,)), 0), Sample(Draw((0, 2)), 0), Sample(Draw(()))])
row("squeeze", np.squeeze, [Sample(Draw((1, 3, 1))), Sample(Draw((1, 3, 1)), 0), Sample(Draw((1, 3, 1)), (0, -1)), Sample(Draw((2, 3)))])
row("expand_dims", np.expand_dims, [Sample(Draw((2, 3)), 0), Sample(Draw((2, 3)), -1), Sample(Draw((2, 3)), (0, -1)), Sample(Draw(()), 0)])
row("broadcast_to", np.broadcast_to, [Sample(Draw((3,)), (2, 3)), Sample(Draw((2, 1)), (4, 2, 3)), Sample(Draw(()), (2,)), Sample(Draw((1,)), (0,))])
row("expand", lambda x, *shape: np.broadcast_to(x, (2, 3)), [Sample(Draw((3,)), 2, -1), Sample(Draw((2, 1)), (-1, 3))])
row("expand_as", lambda x, y: np.broadcast_to(x, y.shape), [Sample(Draw((3,)), np.zeros((2, 3)))])
for _name in ("broadcast_tensors", "broadcast_arrays"):
    row(_name, np.broadcast_arrays, [Sample(Draw((3, 1)), Draw((2,))), Sample(Draw(()), Draw((2, 2)), Draw((1, 2)))])
row("broadcast_shapes", np.broadcast_shapes, [Sample((3, 1), (4,)), Sample(()), Sample((0, 1), (1, 5))], differentiable=False)

# ------------------------------------------------------------------------------------------------------- copies and dtypes
row("astype", lambda x, dtype: x.astype(np.float64), [Sample(Draw((2, 3)), np.float64), Sample(Draw((0,)), np.float64)], own_dtype=True)
row("clone", np.copy, [Sample(Draw((2, 3))), Sample(Draw(()))])
row("real", np.real, [Sample(Draw((2, 3))), Sample(Draw(()))])
row("imag", np.imag, [Sample(Draw((2, 3))), Sample(Draw(()))], differentiable=False)
row("conj", np.conj, [Sample(Draw((2, 3))), Sample(Draw(()))])
row("contiguous", np.ascontiguousarray, [Sample(Draw((2, 3))), Sample(Draw((3,)))])

# ------------------------------------------------------------------------------------------------------ along an axis in turn
for _name, _function in (("cumulative_sum", np.cumsum), ("cumulative_prod", np.cumprod)):
    row(_name, lambda x, axis=None, include_initial=False, f=_function: f(x, axis=axis) if not include_initial
        else np.insert(f(x, axis=axis), 0, 0 if f is np.cumsum else 1, axis=axis or 0),
        [Sample(Draw((2, 3, 4)), axis=1), Sample(Draw((5,))), Sample(Draw((2, 3)), axis=-1), Sample(Draw((0, 2)), axis=0), Sample(Draw((2, 0)), axis=0),
         Sample(Draw((2, 3)), axis=0, include_initial=True), Sample(Draw((1,))),
         Sample(np.array([[3, 1], [2, 5]], np.uint8), axis=1), Sample(np.array([100, 100, 100], np.int8))])
row("diff", np.diff, [Sample(Draw((5,))), Sample(Draw((2, 4)), n=2), Sample(Draw((3, 4)), axis=0), Sample(Draw((2, 3)), n=3), Sample(Draw((2, 3)), n=0)])

# ----------------------------------------------------------------------------------------------------------------- matmul
MATMUL_SHAPES = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3,)), ((3,), (5, 3, 2)), ((5, 2, 3), (3, 4)),
                 ((2, 3), (5, 3, 4)), ((5, 1, 2, 3), (4, 3, 2)), ((1, 2, 3), (5, 3, 1)), ((2, 0), (0, 3)), ((0, 3), (3, 2)), ((0, 2, 3), (3,)),
                 ((2, 1, 2, 3), (3, 2))]
row("matmul", np.matmul, [Sample(Draw(a), Draw(b)) for a, b in MATMUL_SHAPES])
row("mm", np.matmul, [Sample(Draw((2, 3)), Draw((3, 4)))])
row("mv", np.matmul, [Sample(Draw((2, 3)), Draw((3,)))])
row("bmm", np.matmul, [Sample(Draw((5, 2, 3)), Draw((5, 3, 4)))])
row("dot", np.dot, [Sample(Draw((3,)), Draw((3,))), Sample(Draw((0,)), Draw((0,)))])
row("vdot", np.vdot, [Sample(Draw((3,)), Draw((3,)))])
row("vecdot", lambda x, y, axis=-1: (x * y).sum(axis), [Sample(Draw((2, 3)), Draw((3,))), Sample(Draw((3, 2)), Draw((3, 1)), axis=-2),
                                                      Sample(Draw((3,)), Draw((3,)))])
row("inner", np.inner, [Sample(Draw((2, 3)), Draw((3,))), Sample(Draw((2, 3)), Draw((4, 3))), Sample(Draw(()), Draw((3,)))])
row("outer", np.outer, [Sample(Draw((2,)), Draw((3,)))])
row("addmm", lambda x, y, z, beta=1, alpha=1: beta * x + alpha * (y @ z),
    [Sample(Draw((2, 4)), Draw((2, 3)), Draw((3, 4))), Sample(Draw((4,)), Draw((2, 3)), Draw((3, 4)), beta=0.5, alpha=2.0)])
row("tensordot", np.tensordot, [Sample(Draw((2, 3, 4)), Draw((3, 4, 5))), Sample(Draw((2, 3)), Draw((3, 2)), axes=((0, 1), (1, 0))),
                               Sample(Draw((2,)), Draw((3,)), axes=0), Sample(Draw((2, 3)), Draw((3,)), axes=1)])
row("tensordot", lambda x, y, axes: np.tensordot(np.broadcast_to(x, (2, 3)), y, axes), [Sample(Draw((2, 1)), Draw((3, 2)), axes=((1,), (0,)))])
row("einsum", lambda spec, *xs: np.einsum(spec, *xs),
    [Sample(spec, *[Draw(shape) for shape in shapes]) for spec, *shapes in (
        ("ij,jk->ik", (2, 3), (3, 4)), ("bij,bkj->bik", (2, 3, 4), (2, 5, 4)), ("i,j->ij", (2,), (3,)), ("ii->i", (3, 3)), ("ii", (3, 3)),
        ("ij->", (2, 3)), ("ba", (2, 3)), ("...ij,...jk->...ik", (2, 1, 3, 2), (4, 2, 3)), ("...,...->...", (2, 1), (3,)), ("i,i->", (1,), (3,)),
        ("nd,nn->d", (4, 2), (4, 4)), ("ij,jk,kl,lm->im", (2, 3), (3, 4), (4, 5), (5, 2)), ("i,i,i->", (3,), (3,), (3,)), (",i->i", (), (3,)),
        ("ij,ij->ij", (0, 3), (0, 3)), ("ij,kl->", (2, 3), (3, 2)), ("abc,cd,bd->a", (2, 3, 4), (4, 5), (3, 5)))])
row("linear", lambda x, w, b=0.0: x @ w.T + b,
    [Sample(Draw((5, 3)), Draw((4, 3)), Draw((4,))), Sample(Draw((2, 5, 3)), Draw((4, 3)), Draw((4,))), Sample(Draw((3,)), Draw((4, 3)), Draw((4,))),
     Sample(Draw((2, 3)), Draw((4, 3))), Sample(Draw((2, 3)), Draw((3,)), Draw(())), Sample(Draw((0, 3)), Draw((4, 3)), Draw((4,)))])


# ------------------------------------------------------------------------------------------------------------------ norms
def _normalized(x, shape, weight=1.0, bias=0.0, eps=1e-5, centred=True):
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    if centred:
        x = x - x.mean(axes, keepdims=True)
    return x / np.sqrt((x * x).mean(axes, keepdims=True) + eps) * weight + bias


row("nn.functional.layer_norm", _normalized,
    [Sample(Draw((3, 4)), (4,)), Sample(Draw((5, 7)), (7,), Draw((7,)), Draw((7,))), Sample(Draw((11, 2, 3)), (2, 3), Draw((2, 3)), Draw((2, 3))),
     Sample(Draw((2, 35)), (35,), Draw((35,))), Sample(Draw((6,)), (6,), Draw((6,)), Draw((6,)), 0.5), Sample(Draw((0, 3)), (3,), Draw((3,)), Draw((3,)))],
    function=cg.nn.functional.layer_norm, tolerance=10)
row("nn.functional.rms_norm", lambda x, shape, weight=1.0, eps=1e-5: _normalized(x, shape, weight, 0.0, eps, False),
    [Sample(Draw((3, 4)), (4,), eps=1e-5), Sample(Draw((11, 2, 3)), (2, 3), Draw((2, 3)), 0.1),
     Sample(Draw((2, 35)), (35,), Draw((35,)), 1e-5), Sample(Draw((0, 3)), (3,), Draw((3,)), 1e-5)],
    function=cg.nn.functional.rms_norm, tolerance=10)

# --------------------------------------------------------------------------------------------------------------- indexing
def _put(x, key, value):
    out = np.array(x)
    out[key] = value
    return out


def _set(x, key, value):
    """Recorded assignment into a copy."""
    out = x * 1
    out[key] = value
    return out


def _along(x, axis, index, src, add):
    out = np.array(x)
    src = np.broadcast_to(src, index.shape) if np.ndim(src) == 0 else src
    for place in np.ndindex(index.shape):
        target = list(place)
        target[axis] = index[place]
        out[tuple(target)] = out[tuple(target)] + src[place] if add else src[place]
    return out


def _added(x, axis, index, source, alpha=1):
    out = np.array(x)
    np.add.at(out, (slice(None),) * (axis % x.ndim) + (index,), alpha * source)
    return out


_KEYS = [0, (1, -1), slice(None, None, -2), (Ellipsis, 1), (None, slice(1, 3)), np.array([2, 0, 2, -1]), [1, 1],
         (np.array([[0, 1]]), np.array([[1], [2]])), (slice(None), [0, 0, 3]), (0, slice(None), ) , ([0, 2, 0], slice(None), None),
         np.array([[True, False, True, True], [False] * 4, [True] * 4]), np.array([True, False, True]), (slice(1, 1),)]
row("getitem", lambda x, key: x[key], [Sample(Draw((3, 4)), key) for key in _KEYS] + [Sample(Draw(()), ()), Sample(Draw(()), None)] +
    [Sample(Draw((2, 3, 4)), (0, slice(None), [1, 1])), Sample(Draw((2, 3, 4)), ([0, 1], slice(None), 2))], function=lambda x, key: x[key])
_PUTS = [(0, (4,)), ((1, -1), ()), (slice(None, None, -2), (2, 1)), (slice(0, 2), (1, 1, 4)), ((Ellipsis, 1), (3,)), ((slice(None), [0, 3]), (2,)),
         (np.array([2, 0, 2]), (3, 4)), (np.array([True, False, True]), ()), ((slice(1, 1),), (4,))]
for _name, _function in (("index_put", None), ("setitem", _set)):
    row(_name, _put, [Sample(Draw((3, 4)), key, Draw(shape)) for key, shape in _PUTS] + [Sample(Draw((3,)), 1, 2.5), Sample(Draw(()), (), Draw(()))],
        function=_function)
_index = np.array([[2, 0, -1], [1, 1, 2]])
row("gather", lambda x, axis, index: np.take_along_axis(x, index, axis),
    [Sample(Draw((2, 3)), 1, _index), Sample(Draw((3, 3)), -2, _index), Sample(Draw((4,)), 0, np.array([3, 3, 0, 1, 2]))])
row("take_along_axis", lambda x, index, axis=-1: np.take_along_axis(x, index, axis),
    [Sample(Draw((2, 3)), _index), Sample(Draw((1, 3)), _index, axis=1), Sample(Draw((2, 3)), np.array([[1, 0, 1]]), axis=0),
     Sample(Draw((2, 3)), np.array([5, 0]), axis=None)])
for _name, _sum in (("scatter", False), ("scatter_add", True)):
    row(_name, lambda x, axis, index, src, add=_sum: _along(x, axis, index, src, add),
        [Sample(Draw((2, 3)), 1, _index, Draw((2, 3))), Sample(Draw((4, 3)), 0, _index, Draw((2, 4))), Sample(Draw((2, 3)), 1, _index[:1, :2], 1.5),
         Sample(Draw((3,)), 0, np.array([], int), Draw((2,)))])
row("take", lambda x, indices, axis=None: np.take(x, indices, axis),
    [Sample(Draw((3, 4)), np.array([2, 0, 2]), axis=0), Sample(Draw((3, 4)), np.array([[1, -1]]), axis=1), Sample(Draw((3, 4)), np.array([11, 0])),
     Sample(Draw((3, 4)), 1, axis=0)])
row("nn.functional.embedding", lambda index, weight, **options: weight[index],
    [Sample(np.array([2, 0, 2]), Draw((3, 4))), Sample(np.array([[1], [4]]), Draw((5, 2)), padding_idx=None), Sample(np.array(1), Draw((2, 3))),
     Sample(np.array([], int), Draw((2, 3)))], function=cg.nn.functional.embedding)
row("index_select", lambda x, axis, index: np.take(x, index, axis), [Sample(Draw((3, 4)), 0, np.array([2, 0, 2])), Sample(Draw((3, 4)), -1, np.array([1]))])
row("index_add", _added, [Sample(Draw((3, 4)), 0, np.array([2, 0, 2]), Draw((3, 4))), Sample(Draw((3, 4)), -1, np.array([1, 1]), Draw((1,)), alpha=0.5)])
row("index_copy", lambda x, axis, index, source: _put(x, (slice(None),) * axis + (index,), source),
    [Sample(Draw((3, 4)), 0, np.array([2, 0, 2]), Draw((3, 4))), Sample(Draw((3, 4)), 1, np.array([1, 3]), Draw((3, 1)))])
row("index_fill", lambda x, axis, index, value: _put(x, (slice(None),) * axis + (index,), value),
    [Sample(Draw((3, 4)), 1, np.array([1, 3]), 2.5), Sample(Draw((3, 4)), 0, np.array([1]), Draw(()))])
row("select", lambda x, axis, index: np.take(x, index, axis), [Sample(Draw((3, 4)), 1, -1), Sample(Draw((3,)), 0, 1)])
row("narrow", lambda x, axis, start, length: np.take(x, range(start, start + length), axis),
    [Sample(Draw((3, 4)), 1, 1, 2), Sample(Draw((3, 4)), 0, 3, 0)])
_mask = np.array([[True, False, True], [False, False, True]])
row("masked_select", lambda x, mask: np.broadcast_arrays(x, mask)[0][np.broadcast_arrays(x, mask)[1]],
    [Sample(Draw((2, 3)), _mask), Sample(Draw((3,)), _mask), Sample(Draw((2, 3)), _mask[0])])
row("masked_fill", lambda x, mask, value: np.where(mask, value, x),
    [Sample(Draw((2, 3)), _mask, -1.0), Sample(Draw((3,)), _mask, Draw(())), Sample(Draw((2, 3)), _mask[0], -INF)])
row("take_along_dim", lambda x, index, axis=None: np.take_along_axis(x, index.ravel() if axis is None else index, axis),
    [Sample(Draw((2, 3)), np.array([[5, 0]])), Sample(Draw((2, 3)), np.array([[1, 0, 1]]), axis=0)])


def _folded(x, axis, index, src, reduce, include_self=True):
    """Place by place: what is there, if it counts, and what comes from src."""
    src = np.broadcast_to(src, index.shape) if np.ndim(src) == 0 else src
    fold = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}[reduce]
    met = {}
    for place in np.ndindex(index.shape):
        target = list(place)
        target[axis] = index[place] % x.shape[axis]
        met.setdefault(tuple(target), []).append(src[place])
    out = np.array(x)
    for place, values in met.items():
        out[place] = fold(([x[place]] if include_self else []) + values)
    return out


for _reduce in ("sum", "prod", "mean", "amax", "amin"):
    row("scatter_reduce", lambda x, axis, index, src, reduce=_reduce, **options: _folded(x, axis, index, src, reduce, **options),
        [Sample(Draw((2, 3)), 1, _index, Draw((2, 3))), Sample(Draw((4, 3)), 0, _index, Draw((2, 4)), include_self=False),
         Sample(Draw((3,)), 0, np.array([], int), Draw((2,)))],
        function=lambda x, axis, index, src, reduce=_reduce, **options: cg.scatter_reduce(x, axis, index, src, reduce, **options))
    row("index_reduce", lambda x, axis, index, src, reduce=_reduce, **options: _folded(
            x, axis, np.broadcast_to(index.reshape((-1,) + (1,) * (x.ndim - 1 - axis % x.ndim)), src.shape), src, reduce, **options),
        [Sample(Draw((3, 2)), 0, np.array([0, 2, 0, 0]), Draw((4, 2))), Sample(Draw((2, 3)), -1, np.array([1, 1]), Draw((2, 2)), include_self=False)],
        function=lambda x, axis, index, src, reduce=_reduce, **options: cg.index_reduce(x, axis, index, src, reduce, **options))


def _flat_put(x, index, source, accumulate=False):
    out = np.array(x)
    if accumulate:
        np.add.at(out.reshape(-1), index.ravel(), source.ravel())
    else:
        np.put(out, index, source)
    return out


def _slice_put(x, src, axis=0, start=None, end=None, step=1):
    return _put(x, (slice(None),) * (axis % x.ndim) + (slice(start, end, step),), src)


row("index_put", lambda x, key, value, accumulate: _put(np.zeros_like(x), key, 0) + x + np.bincount(key % 4, value, 4),
    [Sample(Draw((4,)), np.array([2, 0, 2, -1]), Draw((4,)), True)])
row("put", _flat_put, [Sample(Draw((2, 3)), np.array([[5, 0]]), Draw((2,))), Sample(Draw((2, 3)), np.array([1, 1, -1]), Draw((3, 1)), accumulate=True)])
row("masked_scatter", lambda x, mask, source: _put(np.broadcast_arrays(x, mask)[0], np.broadcast_to(mask, np.broadcast_shapes(x.shape, mask.shape)),
                                                   source.ravel()[:np.broadcast_to(mask, np.broadcast_shapes(x.shape, mask.shape)).sum()]),
    [Sample(Draw((2, 3)), _mask, Draw((2, 2))), Sample(Draw((3,)), _mask, Draw((5,))), Sample(Draw((2, 3)), _mask[0] & False, Draw((0,)))])
row("select_scatter", lambda x, src, axis, index: _put(x, (slice(None),) * (axis % x.ndim) + (index,), src),
    [Sample(Draw((2, 3)), Draw((2,)), 1, -1), Sample(Draw((3,)), Draw(()), 0, 1)])
row("slice_scatter", _slice_put, [Sample(Draw((4, 2)), Draw((2, 2)), 0, 1, 3), Sample(Draw((2, 5)), Draw((2, 2)), axis=-1, end=-1, step=2)])
row("argwhere", np.argwhere, [Sample(np.array([[0, 1], [2, 0]])), Sample(np.array([NAN, 0.0, -0.0]))], differentiable=False)
row("nonzero", np.nonzero, [Sample(np.array([[0, 1], [2, 0]])), Sample(np.zeros((0, 2)))], differentiable=False)
for _name in ("tril", "triu"):
    row(_name, getattr(np, _name), [Sample(Draw((3, 4))), Sample(Draw((2, 4, 3)), 1), Sample(Draw((3, 3)), k=-1), Sample(Draw((3, 3)), 9),
                                    Sample(Draw((0, 2)))])

# ------------------------------------------------------------------------------------------------------------- statistics
row("cov", lambda x, correction=1, **options: np.cov(x, ddof=correction, **options),
    [Sample(Draw((3, 5))), Sample(Draw((5,)), correction=0), Sample(Draw((1, 4))), Sample(Draw((2, 4)), fweights=np.array([1, 3, 0, 1])),
     Sample(Draw((2, 4)), fweights=np.array([1, 3, 2, 1]), aweights=np.array([0.5, 1.0, 0.2, 2.0]))], tolerance=10)
row("corrcoef", np.corrcoef, [Sample(Draw((3, 5))), Sample(Draw((5,)))], tolerance=10)
for _name, _spread in (("nanvar", np.nanvar), ("nanstd", np.nanstd)):
    row(_name, lambda x, axis=None, keepdims=False, correction=0, function=_spread: function(x, axis, keepdims=keepdims, ddof=correction),
        [Sample(Draw((2, 5))), Sample(Draw((2, 5)), axis=1, keepdims=True, correction=1), Sample(Draw((2, 3, 2)), axis=(0, 2))])

# ----------------------------------------------------------------------------------------------------------- sorting, sets
def _top(x, k, axis=-1, largest=True):
    index = np.take(np.argsort(-x if largest else x, axis, kind="stable"), range(k), axis)
    return np.take_along_axis(x, index, axis), index


def _kth(x, k, axis=-1):
    return np.take(np.sort(x, axis), k - 1, axis), np.take(np.argsort(x, axis), k - 1, axis)


def _median(x, axis=None, keepdims=False, function=np.quantile):
    return function(x, 0.5, axis=axis, keepdims=keepdims, method="lower")


def _mode(x, axis=-1, keepdims=False):
    value = scipy.stats.mode(x, axis, keepdims=True).mode
    last = x.shape[axis] - 1 - np.argmax(np.flip(x == value, axis), axis, keepdims=True)
    return (value, last) if keepdims else (value.squeeze(axis), last.squeeze(axis))


def _far(shape):
    return Draw(shape, distinct=True)


def _so_far(x, axis, function):
    values = function.accumulate(x, axis)
    index = np.where(values == x, np.arange(x.shape[axis]).reshape((-1,) + (1,) * (x.ndim - 1 - axis % x.ndim)), 0)
    return values, np.maximum.accumulate(index, axis)


row("sort", lambda x, axis=-1, descending=False: np.flip(np.sort(x, axis), axis) if descending else np.sort(x, axis),
    [Sample(_far((2, 3))), Sample(_far((3, 4)), axis=0), Sample(_far((2, 3, 4)), 1, descending=True), Sample(Draw((0, 3))), Sample(Draw((1,)))])
row("argsort", lambda x, axis=-1, descending=False: np.argsort(-x if descending else x, axis, kind="stable"),
    [Sample(_far((2, 3))), Sample(_far((3, 4)), axis=0), Sample(_far((5,)), descending=True), Sample(np.array([1, 0, 1, 0, 1]))], differentiable=False)
row("msort", lambda x: np.sort(x, 0), [Sample(_far((4, 3))), Sample(_far((3,)))])
row("topk", _top, [Sample(_far((6,)), 3), Sample(_far((3, 5)), 2, axis=0), Sample(_far((2, 4)), 4), Sample(_far((2, 5)), 2, -1, False), Sample(_far((3,)), 0),
                   Sample(_far((2, 4, 3)), 1, axis=1)])
row("kthvalue", _kth, [Sample(_far((6,)), 3), Sample(_far((3, 5)), 1, axis=0), Sample(_far((2, 5)), 5)])
row("mode", _mode, [Sample(np.array([[2.0, 3.0, 3.0, 1.0], [1.0, 5.0, 5.0, 1.0]])), Sample(np.array([[2, 2], [2, 1], [1, 1]]), axis=0, keepdims=True),
                    Sample(_far((2, 3)))])
_ORDERS = [Sample(_far((6,))), Sample(_far((2, 5)), axis=1), Sample(_far((2, 4, 3)), axis=(0, 2), keepdims=True), Sample(_far(()))]
row("median", _median, _ORDERS)
row("nanmedian", lambda *args, **options: _median(*args, **options, function=np.nanquantile), _ORDERS)
for _name, _quantile in (("quantile", np.quantile), ("nanquantile", np.nanquantile)):
    row(_name, lambda x, q, interpolation="linear", function=_quantile, **options: function(x, q, method=interpolation, **options),
        [Sample(_far((6,)), 0.3), Sample(_far((2, 5)), np.array([0.0, 0.45, 1.0]), axis=1), Sample(_far((2, 4, 3)), 0.7, axis=(0, 2), keepdims=True),
         Sample(_far((5,)), np.array([[0.1, 0.6]]), axis=0), Sample(_far((4, 2)), Draw((2,), 0.1, 0.3), axis=0)] +
        [Sample(_far((6,)), np.array([0.3, 0.55, 0.4]), interpolation=kind) for kind in ("lower", "higher", "midpoint", "nearest")])
row("aminmax", lambda x, axis=None, keepdims=False: (np.min(x, axis, keepdims=keepdims), np.max(x, axis, keepdims=keepdims)),
    [Sample(_far((6,))), Sample(_far((2, 5)), axis=1, keepdims=True)])
_sorted = np.array([1.0, 2.0, 2.0, 5.0])
row("searchsorted", lambda x, y, side="left": np.searchsorted(x, y, side),
    [Sample(_sorted, np.array([[0.0, 2.0], [3.0, 9.0]])), Sample(_sorted, np.array([2.0, NAN, 5.0]), side="right"), Sample(_sorted, 2.0),
     Sample(np.array([1, 3], np.int32), np.array([2.5])), Sample(_sorted[:0], np.array([1.0]))], differentiable=False)
row("bucketize", lambda x, y, right=False: np.searchsorted(y, x, "right" if right else "left"),
    [Sample(Draw((2, 3)), np.array([-1.0, 0.0, 1.0])), Sample(np.array([1, 2]), np.array([1, 2]), right=True)], differentiable=False)
row("digitize", np.digitize, [Sample(Draw((2, 3)), np.array([-1.0, 0.0, 1.0])), Sample(np.array([1.0, 2.0, 0.0]), np.array([2.0, 1.0, 1.0]), right=True),
                              Sample(np.array([1.0, 2.0]), np.array([2.0, 1.0]))], differentiable=False)
row("flatnonzero", np.flatnonzero, [Sample(np.array([[0, 5], [7, 0]])), Sample(np.array(3.0))], differentiable=False)
_repeated = np.array([[3, 1, 3], [2, 1, 3]])
row("unique", lambda x, **options: np.unique(x, **options),
    [Sample(_far((2, 3))), Sample(_repeated, return_inverse=True, return_counts=True, return_index=True), Sample(_repeated, axis=1)])
row("unique_all", lambda x: np.unique(x, True, True, True), [Sample(_repeated), Sample(_repeated[:0])], differentiable=False)
row("unique_counts", lambda x: np.unique(x, return_counts=True), [Sample(_repeated)], differentiable=False)
row("unique_inverse", lambda x: np.unique(x, return_inverse=True), [Sample(_repeated)], differentiable=False)
row("unique_values", np.unique, [Sample(_repeated), Sample(_far((3,)))])
row("unique_consecutive", lambda x: (x[[0, 2, 3]], np.array([0, 0, 1, 2]), np.array([2, 1, 1])), [Sample(np.array([1.0, 1.0, 2.0, 1.0]))],
    function=lambda x: cg.unique_consecutive(x, True, True), differentiable=False)
row("isin", np.isin, [Sample(_repeated, np.array([1, 2])), Sample(Draw((3,)), 0.5, invert=True), Sample(np.array([1, 2]), np.array([1.0, 2.5]))],
    differentiable=False)
row("bincount", np.bincount, [Sample(np.array([0, 3, 3, 1])), Sample(np.array([2, 0]), minlength=5), Sample(np.array([0, 2, 2]), Draw((3,))),
                              Sample(np.array([], int))])
row("histc", lambda x, bins, min, max: np.histogram(x, bins, (min, max))[0].astype(float),
    [Sample(Draw((2, 5)), 4, -1.0, 1.0), Sample(np.array([0.0, 1.0, 2.0]), 2, 0, 2)], differentiable=False)
row("histogram", np.histogram, [Sample(Draw((2, 5)), 4, (-1.0, 1.0)), Sample(Draw((6,)), np.array([-1.0, 0.0, 2.0])), Sample(Draw((6,)), 3, (-2.0, 2.0), density=True),
                                Sample(Draw((3,)), 2, (-1, 1), weights=np.array([0.5, 1.0, 2.0]))], differentiable=False,
    own_dtype=True)

def _as_list(x, *spacing, **options):
    slopes = np.gradient(x, *spacing, **options)
    return slopes if isinstance(slopes, tuple) else (slopes,)


row("gradient", _as_list, [Sample(Draw((5,))), Sample(Draw((3, 4))), Sample(Draw((3, 4)), 0.5, 2.0, edge_order=2), Sample(Draw((3, 4)), axis=1, edge_order=2), Sample(Draw((2, 3)), 0.5)])
row("gradient", _as_list, [Sample(Draw((4, 5)), np.array([0.0, 0.5, 2.0, 2.25]), 0.5), Sample(Draw((4,)), np.array([0.0, 0.5, 2.0, 2.25]), edge_order=2),
                           Sample(Draw((2,)), np.array([0.0, 0.5]))], own_dtype=True)
row("cummax", lambda x, axis=-1: _so_far(x, axis, np.maximum), [Sample(_far((2, 5))), Sample(_far((4, 3)), axis=0), Sample(_far((2, 4, 3)), 1), Sample(Draw((0, 2)))])
row("cummin", lambda x, axis=-1: _so_far(x, axis, np.minimum), [Sample(_far((2, 5))), Sample(_far((4, 3)), axis=0), Sample(_far((1,)))])
row("logcumsumexp", lambda x, axis=-1: np.log(np.cumsum(np.exp(x), axis)), [Sample(Draw((2, 5))), Sample(Draw((4, 3)), axis=0), Sample(Draw((0,)))])
for _name in ("trapezoid", "cumulative_trapezoid"):
    row(_name, getattr(scipy.integrate, _name),
        [Sample(Draw((5,))), Sample(Draw((2, 4)), dx=0.5), Sample(Draw((4, 2)), Draw((4,)), axis=0), Sample(Draw((2, 3)), Draw((2, 3)))])

# ---------------------------------------------------------------------------------------------------------------- joining
row("concat", lambda xs, axis=0: np.concatenate(xs, axis),
    [Sample([Draw((2, 3)), Draw((1, 3))]), Sample([Draw((2, 3)), Draw((2, 0)), Draw((2, 2))], axis=1), Sample([Draw((2, 2)), Draw((3,))], axis=None),
     Sample([Draw((2,))], -1)])
row("stack", lambda xs, axis=0: np.stack(xs, axis),
    [Sample([Draw((2, 3)), Draw((2, 3))]), Sample([Draw((2, 3))] * 3, axis=1), Sample([Draw(()), Draw(())], axis=-1)])
row("hstack", np.hstack, [Sample([Draw((2, 3)), Draw((2, 1))]), Sample([Draw((2,)), Draw((1,))]), Sample([Draw(()), Draw((1,))])])
row("vstack", np.vstack, [Sample([Draw((2, 3)), Draw((1, 3))]), Sample([Draw((2,)), Draw((2,))])])
row("split", lambda x, sizes, axis=0: np.split(x, np.cumsum(sizes)[:-1] if isinstance(sizes, list) else range(sizes, x.shape[axis], sizes), axis),
    [Sample(Draw((5, 2)), 2), Sample(Draw((2, 5)), [1, 0, 4], axis=1), Sample(Draw((4,)), 2)])
row("chunk", lambda x, n, axis=0: np.split(x, range(-(-x.shape[axis] // n), x.shape[axis], -(-x.shape[axis] // n)), axis),
    [Sample(Draw((5, 2)), 2), Sample(Draw((2, 4)), 2, axis=-1), Sample(Draw((3,)), 5)])
row("tensor_split", lambda x, where, axis=0: np.array_split(x, where, axis),
    [Sample(Draw((5, 2)), 3), Sample(Draw((2, 5)), [1, 3], axis=1), Sample(Draw((2,)), 3), Sample(Draw((4,)), [-1, 9])])
row("unstack", lambda x, axis=0: [np.take(x, k, axis) for k in range(x.shape[axis])], [Sample(Draw((2, 3))), Sample(Draw((2, 3)), axis=-1)])
row("roll", lambda x, shift, axis=None: np.roll(x, shift, axis),
    [Sample(Draw((5,)), 2), Sample(Draw((2, 3)), -1), Sample(Draw((2, 3)), (1, -4), axis=(0, 1)), Sample(Draw((2, 3)), 7, axis=1), Sample(Draw((0, 2)), 1)])
for _name in ("repeat", "repeat_interleave"):
    row(_name, lambda x, repeats, axis=None: np.repeat(x, repeats, axis),
        [Sample(Draw((2, 3)), 2), Sample(Draw((2, 3)), 3, axis=0), Sample(Draw((2, 3)), np.array([2, 0, 1]), axis=1), Sample(Draw((2,)), 0),
     Sample(Draw(()), 2)])
row("tile", np.tile, [Sample(Draw((2, 3)), 2), Sample(Draw((2, 3)), (2, 2)), Sample(Draw((3,)), (2, 1, 2)), Sample(Draw((3,)), 0), Sample(Draw(()), (2,))])
row("pad", lambda x, widths, mode="constant", **options: np.pad(x, widths, mode, **options),
    [Sample(Draw((2, 3)), 1), Sample(Draw((2, 3)), ((1, 0), (0, 2)), constant_values=1.5), Sample(Draw((4,)), (1, 2)), Sample(Draw((0,)), 1)] +
    [Sample(Draw((2, 3)), ((2, 5), (1, 0)), mode=mode) for mode in ("reflect", "symmetric", "edge", "wrap")] + [Sample(Draw((1,)), 3, mode="reflect")])
row("dstack", np.dstack, [Sample([Draw((2, 3)), Draw((2, 3))]), Sample([Draw((2,)), Draw((2,))]), Sample([Draw((2, 3, 2)), Draw((2, 3))])])
row("column_stack", np.column_stack, [Sample([Draw((2,)), Draw((2, 3))]), Sample([Draw(()), Draw((1,))])])
for _name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    row(_name, getattr(np, _name), [Sample(Draw(shape)) for shape in ((), (3,), (2, 3), (2, 1, 3), (0,))] + [Sample(Draw(()), Draw((2, 2)))])
for _axis, _name in enumerate(("vsplit", "hsplit", "dsplit")):
    row(_name, getattr(np, _name), [Sample(Draw((2, 4, 6)), 2), Sample(Draw((4, 3, 2)), [1, 2])])
row("hsplit", np.hsplit, [Sample(Draw((4,)), 2)])
row("split_with_sizes", lambda x, sizes, axis=0: np.split(x, np.cumsum(sizes)[:-1], axis), [Sample(Draw((4, 2)), [1, 3]), Sample(Draw((2, 5)), (0, 5), axis=1)])
row("constant_pad_nd", lambda x, pad, value=0: np.pad(x, ((0, 0), pad[2:], pad[:2]), constant_values=value), [Sample(Draw((2, 3, 4)), (1, 0, 2, 3)), Sample(Draw((1, 2, 2)), (0, 1, 1, 0), 1.5)])
row("unfold", lambda x, axis, size, step: np.lib.stride_tricks.sliding_window_view(x, size, axis)[(slice(None),) * (axis % x.ndim) + (slice(None, None, step),)],
    [Sample(Draw((7,)), 0, 3, 2), Sample(Draw((2, 5)), -1, 2, 1), Sample(Draw((4, 3)), 0, 4, 9), Sample(Draw((4, 2)), 0, 2, 2), Sample(Draw((3, 0)), 0, 1, 1)])
row("as_strided", lambda x, shape, strides, offset=0: np.lib.stride_tricks.as_strided(np.ascontiguousarray(x).reshape(-1)[offset:], shape, [x.itemsize * s for s in strides]),
    [Sample(Draw((3, 4)), (2, 3), (4, 1)), Sample(Draw((8,)), (3, 3), (2, 1), 1), Sample(Draw((4,)), (2, 3), (0, 1)), Sample(Draw((2, 3)), (2,), (-3,), 4), Sample(Draw((2,)), (), ()),
     Sample(Draw((3,)), (0, 2), (1, 1))],
    function=lambda x, *layout: cg.as_strided(x.clone(), *layout))
row("meshgrid", lambda *xs, indexing="xy": np.meshgrid(*xs, indexing=indexing),
    [Sample(Draw((2,)), Draw((3,))), Sample(Draw((2,)), Draw((3,)), Draw((4,)), indexing="ij"), Sample(Draw((2,))), Sample(Draw(()), Draw((2,)))])

# --------------------------------------------------------------------------------------------------------- linear algebra
def _symmetric(x):
    return x + x.mT


def _as_is(array, x):
    """A constant beside x: a tensor of its dtype for a tensor."""
    return cg.tensor(array, dtype=x.dtype) if isinstance(x, cg.Tensor) else array.astype(x.dtype)


def _definite(x):
    return x @ x.mT + _as_is(np.eye(x.shape[-1]), x)


def _of(make, function):
    """function(make(x)), for functions of special matrices."""
    return lambda x, *args, **kwargs: function(make(x), *args, **kwargs)


def _without_signs(function):
    """Eigen- or singular values, and functions of the vectors that do not depend on their signs."""
    def call(x, *args, **kwargs):
        found = function(x, *args, **kwargs)
        if len(found) == 2:
            return found[0], found[1] ** 2
        u, s, vt = found
        return u[..., :s.shape[-1]] ** 2, s, vt[..., :s.shape[-1], :] ** 2, u[..., :s.shape[-1]] @ vt[..., :s.shape[-1], :]
    return call


def _rows_apart(x):
    """Matrices whose singular values are apart and not 0, so that vectors are determined."""
    m, n = x.shape[-2:]
    return x + _as_is(np.diag(np.arange(4.0, 4.0 + 3 * max(m, n), 3.0))[:m, :n], x)


def _regular(x):
    n = round(np.prod(x.shape) ** 0.5)
    return x + _as_is((8 * np.eye(n)).reshape(x.shape), x)


def linear(name, reference, samples, make=None, **options):
    """A row of cgrad.linalg."""
    function = getattr(cg.linalg, name)
    if make is not None:
        reference, function = _of(make, reference), _of(make, function)
    row("linalg." + name, reference, samples, function=options.pop("function", function), **{"tolerance": 100, **options})


SQUARE = [Sample(Draw(shape)) for shape in ((3, 3), (2, 3, 3), (1, 1), (0, 0), (0, 2, 2), (2, 1, 4, 4))]
RECTANGLES = [Sample(Draw(shape)) for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 2), (0, 2, 2), (2, 0), (1, 1))]
linear("cholesky", np.linalg.cholesky, SQUARE, _definite)
linear("cholesky", lambda x, upper: np.linalg.cholesky(x).mT, [Sample(Draw((3, 3)), upper=True)], _definite)
linear("cholesky_ex", lambda x: (np.linalg.cholesky(x), np.zeros(x.shape[:-2], np.int32)), SQUARE[:3], _definite,
       function=lambda x: cg.linalg.cholesky_ex(_definite(x)), own_dtype=True)
linear("eigh", _without_signs(np.linalg.eigh), SQUARE, function=_without_signs(_of(lambda x: _symmetric(_rows_apart(x)), cg.linalg.eigh)))
ROWS[-1].reference = _without_signs(_of(lambda x: _symmetric(_rows_apart(x)), np.linalg.eigh))
linear("eigvalsh", np.linalg.eigvalsh, SQUARE, lambda x: _symmetric(_rows_apart(x)))
linear("qr", lambda x: tuple(np.linalg.qr(x)), RECTANGLES, _rows_apart)
linear("svd", None, RECTANGLES[:-2] + [Sample(Draw((3, 3)), full_matrices=False), Sample(Draw((4, 2)), full_matrices=False)],
       function=_without_signs(_of(_rows_apart, cg.linalg.svd)))
ROWS[-1].reference = _without_signs(_of(_rows_apart, np.linalg.svd))
linear("svdvals", np.linalg.svdvals, RECTANGLES, _rows_apart)
linear("inv", np.linalg.inv, SQUARE, _rows_apart)
linear("inv_ex", lambda x: (np.linalg.inv(x), np.zeros(x.shape[:-2], np.int32)), SQUARE[:3], _rows_apart, own_dtype=True)
linear("det", np.linalg.det, SQUARE)
linear("slogdet", lambda x: tuple(np.linalg.slogdet(x)), SQUARE)
linear("logdet", lambda x: np.linalg.slogdet(x)[1], SQUARE, _definite)
linear("solve", np.linalg.solve,
       [Sample(Draw(a, 0.1, 1), Draw(b)) for a, b in (((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 1)),
                                                     ((4, 1, 2, 2), (3, 2, 2)), ((0, 0), (0,)), ((2, 0, 0), (0, 3)), ((2, 2), (2, 0)))], _rows_apart)
linear("solve", lambda x, y, left=True: np.linalg.solve(x, y[..., None])[..., 0] if left else np.linalg.solve(x.mT, y.mT).mT,
       [Sample(Draw((2, 3, 3), 0.1, 1), Draw((2, 3))), Sample(Draw((3, 3), 0.1, 1), Draw((2, 3)), left=False)], _rows_apart)
for _upper in (False, True):
    _part = np.triu if _upper else np.tril
    linear("solve_triangular", lambda x, y, upper, part=_part: np.linalg.solve(part(x), y),
           [Sample(Draw(a, 0.5, 1), Draw(b), upper=_upper) for a, b in (((3, 3), (3,)), ((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 1)), ((0, 0), (0, 2)))])
    linear("solve_triangular", lambda x, y, upper, unitriangular=False, left=False, part=_part: np.linalg.solve(
        np.tril(part(x), -1) + np.triu(part(x), 1) + np.eye(3), y) if unitriangular else np.linalg.solve(part(x).mT, y.mT).mT,
        [Sample(Draw((3, 3), 0.5, 1), Draw((3, 2)), upper=_upper, unitriangular=True),
         Sample(Draw((2, 3, 3), 0.5, 1), Draw((2, 3)), upper=_upper, left=False)])
    row("cholesky_solve", lambda x, y, upper, part=_part: np.linalg.solve(part(y).mT @ part(y) if upper else part(y) @ part(y).mT, x),
        [Sample(Draw((3, 2)), Draw((3, 3), 0.5, 1), _upper), Sample(Draw((2, 3, 1)), Draw((3, 3), 0.5, 1), _upper)], tolerance=1000)
    row("cholesky_inverse", lambda x, upper, part=_part: np.linalg.inv(part(x).mT @ part(x) if upper else part(x) @ part(x).mT),
        [Sample(Draw((3, 3), 0.5, 1), _upper), Sample(Draw((2, 2, 2), 0.5, 1), _upper), Sample(Draw((0, 0)), _upper)], tolerance=1000)
linear("lu", sl.lu, RECTANGLES[:4] + RECTANGLES[6:])
linear("lu_factor", lambda x: (np.tril((lu := sl.lu(x))[1], -1) + lu[2], (sl.lapack.dgetrf(x)[1] + 1).astype(np.int32)), [Sample(Draw((3, 3))), Sample(Draw((1, 1)))],
       own_dtype=True)
linear("lu_solve", lambda x, y, adjoint=False, left=True: np.linalg.solve(x.mT if adjoint else x, y) if left else np.linalg.solve(x if adjoint else x.mT, y.mT).mT,
       [Sample(Draw((3, 3)), Draw((3,))), Sample(Draw((2, 3, 3)), Draw((3, 2)), adjoint=True), Sample(Draw((3, 3)), Draw((2, 3)), left=False),
        Sample(Draw((2, 2)), Draw((2, 2)), left=False, adjoint=True), Sample(Draw((0, 0)), Draw((0, 2)))],
       function=lambda x, y, **kwargs: cg.linalg.lu_solve(*cg.linalg.lu_factor(x), y, **kwargs), tolerance=1000)
linear("pinv", np.linalg.pinv, RECTANGLES, _rows_apart)
linear("pinv", lambda x, hermitian: np.linalg.pinv(x), [Sample(*s.args, hermitian=True) for s in SQUARE[:3]], lambda x: _symmetric(_rows_apart(x)))
row("pinverse", np.linalg.pinv, [Sample(Draw((3, 2)))], tolerance=100)
linear("lstsq", lambda x, y: np.linalg.lstsq(x, y)[:1], [Sample(Draw((4, 2)), Draw((4,))), Sample(Draw((2, 4)), Draw((2, 3))), Sample(Draw((3, 3)), Draw((3, 1)))],
       function=lambda x, y: cg.linalg.lstsq(x, y)[:1], tolerance=1000)
linear("matrix_rank", np.linalg.matrix_rank, [Sample(np.ones((3, 2))), Sample(np.stack([np.eye(3), np.diag([1, 1e-20, 0])])), Sample(np.zeros((2, 0, 3))),
                                             Sample(np.diag([1.0, 0.1]), rtol=0.5)], differentiable=False)
linear("tensorinv", np.linalg.tensorinv, [Sample(Draw((2, 3, 6))), Sample(Draw((4, 2, 2)), ind=1)], _regular)
linear("tensorsolve", np.linalg.tensorsolve, [Sample(Draw((2, 3, 6)), Draw((2, 3))), Sample(Draw((2, 4, 2)), Draw((4,)), axes=(0,))], _regular)
for _name in ("matrix_norm", "norm"):
    linear(_name, lambda x, ord=None, axis=(-2, -1), keepdims=False: np.linalg.norm(x, ord, axis, keepdims),
           [Sample(Draw((3, 4), 0.5, 2.0, distinct=True), ord, axis=(-2, -1)) for ord in ("fro", "nuc", 1, -1, 2, -2, INF, -INF)] +
           [Sample(Draw((2, 3, 4), 0.5, 2.0), ord, axis=(2, 0), keepdims=True) for ord in ("fro", "nuc", 1, 2, INF)] +
           [Sample(Draw((0, 2)), "fro", axis=(0, 1)), Sample(Draw((2, 0)), "nuc", axis=(0, 1))])
linear("norm", np.linalg.norm, [Sample(Draw((2, 3))), Sample(Draw((2, 3)), axis=1), Sample(Draw((4,)), 3), Sample(Draw((2, 3)), 1, 0, True), Sample(Draw((3, 2)), "nuc")])
row("norm", lambda x, p="fro", axis=None, keepdims=False: np.linalg.norm(x, "nuc", (-2, -1), keepdims) if p == "nuc" else
    np.linalg.vector_norm(x, ord=2 if p == "fro" else p, axis=axis, keepdims=keepdims),
    [Sample(Draw((2, 3))), Sample(Draw((2, 3)), 1, (0, 1)), Sample(Draw((2, 3)), 3, 1, True), Sample(Draw((2, 3)), "nuc"), Sample(Draw((2, 3, 4)), axis=(0, 2))], tolerance=10)
row("dist", lambda x, y, p=2: np.linalg.vector_norm(x - y, ord=p), [Sample(Draw((2, 3)), Draw((3,))), Sample(Draw((4,)), Draw((4,), 3, 4), 1), Sample(Draw((4,)), Draw((4,), 3, 4), 3)])
row("cdist", lambda x, y, p=2: np.linalg.vector_norm(x[..., :, None, :] - y[..., None, :, :], ord=p, axis=-1),
    [Sample(Draw((2, 3)), Draw((4, 3))), Sample(Draw((5, 2, 3)), Draw((4, 3), 3, 4), 1.0), Sample(Draw((0, 3)), Draw((2, 3))), Sample(Draw((2, 3)), Draw((2, 3)), 3)])
row("renorm", lambda x, p, axis, maxnorm: x * np.where((n := np.linalg.vector_norm(x, ord=p, axis=tuple(k for k in range(x.ndim) if k != axis), keepdims=True)) > maxnorm,
                                                       maxnorm / (n + 1e-7), 1), [Sample(Draw((3, 4)), 2, 0, 2.5), Sample(Draw((2, 3, 4)), 1, 1, 5.0)])
linear("cond", np.linalg.cond, [Sample(Draw((3, 3)), p) for p in (None, 2, -2, 1, -1, INF, -INF, "fro")] + [Sample(Draw((2, 4, 2)))], _rows_apart, tolerance=1000)
linear("matrix_power", np.linalg.matrix_power, [Sample(Draw((3, 3), 0.5, 1), n) for n in (1, 2, 3, 5, -1, -3)] + [Sample(Draw((2, 2, 2)), 7), Sample(Draw((0, 0)), 2)],
       _rows_apart, tolerance=1000, half=False)       # beyond float16
linear("matrix_power", np.linalg.matrix_power, [Sample(Draw((3, 3)), 0), Sample(Draw((2, 3, 3)), 0)])
linear("matrix_exp", sl.expm, [Sample(Draw((3, 3))), Sample(Draw((2, 2, 2), -8, 8)), Sample(Draw((1, 1))), Sample(Draw((0, 2, 2))), Sample(Draw((3, 3), -1e-3, 1e-3))])
linear("multi_dot", np.linalg.multi_dot, [Sample([Draw((2, 3)), Draw((3, 4)), Draw((4, 2)), Draw((2, 5))]), Sample([Draw((3,)), Draw((3, 4)), Draw((4,))]),
                                         Sample([Draw((2, 3)), Draw((3, 1))])])
linear("cross", np.cross, [Sample(Draw((3,)), Draw((3,))), Sample(Draw((2, 3)), Draw((3,))), Sample(Draw((4, 1, 3)), Draw((2, 3)))])
linear("cross", lambda x, y, axis: np.linalg.cross(x, y, axis=axis), [Sample(Draw((3, 2)), Draw((3, 2)), axis=0), Sample(Draw((2, 3, 4)), Draw((2, 3, 4)), axis=1)])
linear("vander", lambda x, N=None: x[..., None] ** np.arange(x.shape[-1] if N is None else N),
       [Sample(Draw((3,))), Sample(Draw((2, 3)), 5), Sample(Draw((2,)), 1), Sample(Draw((2,)), 0), Sample(Draw((0,)))])
linear("vander", lambda x: np.ones((1, 1)), [Sample(Draw(()))])
linear("householder_product", lambda x, tau: sl.lapack.dorgqr(x, tau)[0], [Sample(Draw((4, 2)), Draw((2,))), Sample(Draw((3, 3)), Draw((2,)))])
linear("diagonal", lambda x, **kwargs: np.linalg.diagonal(x, **kwargs), [Sample(Draw((3, 4))), Sample(Draw((2, 3, 4)), offset=-1), Sample(Draw((2, 3)), offset=9)])
for _name in ("inv", "det", "slogdet", "logdet", "cholesky", "matrix_power", "matrix_exp", "multi_dot", "cross"):
    ROWS.append(replace(next(r for r in ROWS if r.name == "linalg." + _name), name=_name))
row("trace", lambda x, offset=0: np.linalg.trace(x, offset=offset), [Sample(Draw((3, 3))), Sample(Draw((2, 3, 4)), 1), Sample(Draw((0, 0))), Sample(Draw((2, 3)), -5),
                                                                   Sample(np.array([[200, 1], [1, 200]], np.uint8))])
row("diagonal", np.diagonal, [Sample(Draw((3, 4))), Sample(Draw((3, 4)), 1), Sample(Draw((3, 4)), -2), Sample(Draw((2, 3, 4)), 0, 2, 0), Sample(Draw((2, 3)), 5),
                              Sample(Draw((0, 3)))])


def _embedded(x, offset=0, axis1=-2, axis2=-1):
    n = x.shape[-1] + abs(offset)
    out = np.zeros(x.shape[:-1] + (n, n), x.dtype)
    out[..., np.arange(x.shape[-1]) + max(-offset, 0), np.arange(x.shape[-1]) + max(offset, 0)] = x
    return np.moveaxis(out, (-2, -1), (axis1, axis2))


def _with_diagonal(x, src, offset=0, axis1=0, axis2=1):
    out = np.moveaxis(x.copy(), (axis1, axis2), (-2, -1))
    n = src.shape[-1]
    out[..., np.arange(n) + max(-offset, 0), np.arange(n) + max(offset, 0)] = src
    return np.moveaxis(out, (-2, -1), (axis1, axis2))


row("diag_embed", _embedded, [Sample(Draw((3,))), Sample(Draw((2, 3)), 1), Sample(Draw((2, 3)), -2, 0, 2), Sample(Draw((2, 0))), Sample(Draw((2, 3)), 0, 1, 0)])
row("diag", np.diag, [Sample(Draw((3,))), Sample(Draw((3,)), 1), Sample(Draw((3, 4)), k=-1), Sample(Draw((2, 3))), Sample(Draw((0,)))])
row("diagflat", np.diagflat, [Sample(Draw((2, 3))), Sample(Draw(())), Sample(Draw((2,)), -1)])
row("diagonal_scatter", _with_diagonal, [Sample(Draw((3, 4)), Draw((3,))), Sample(Draw((3, 4)), Draw((2,)), -1), Sample(Draw((2, 3, 4)), Draw((3, 2)), 0, 2, 0)])
row("block_diag", sl.block_diag, [Sample(Draw((2, 3)), Draw((1, 2))), Sample(Draw((2,)), Draw(()), Draw((2, 2))), Sample(Draw((0, 2)), Draw((2, 1)))])
row("kron", np.kron, [Sample(Draw((2, 3)), Draw((3, 2))), Sample(Draw((2,)), Draw((3, 2))), Sample(Draw(()), Draw((2,))), Sample(Draw((2, 1, 2)), Draw((3,))),
                      Sample(Draw((0, 2)), Draw((2, 2)))])
for _name, _product, _shapes in (("addmv", np.matmul, ((2,), (2, 3), (3,))), ("addr", np.outer, ((2, 3), (2,), (3,))),
                                 ("baddbmm", np.matmul, ((5, 2, 4), (5, 2, 3), (5, 3, 4))),
                                 ("addbmm", lambda y, z: (y @ z).sum(0), ((2, 4), (5, 2, 3), (5, 3, 4)))):
    row(_name, lambda x, y, z, beta=1, alpha=1, product=_product: beta * x + alpha * product(y, z),
        [Sample(*[Draw(s) for s in _shapes]), Sample(Draw(()), *[Draw(s) for s in _shapes[1:]], beta=0.5, alpha=2.0),
         Sample(*[Draw(s) for s in _shapes], beta=0)])
for _name in ("fftshift", "ifftshift"):
    row("fft." + _name, getattr(np.fft, _name), [Sample(Draw((5,))), Sample(Draw((2, 3))), Sample(Draw((2, 4, 3)), axes=(0, 2)), Sample(Draw((4, 3)), axes=1),
                                               Sample(Draw((0, 2)))], function=getattr(cg.fft, _name))
for _name in ("fftfreq", "rfftfreq"):
    row("fft." + _name, getattr(np.fft, _name), [Sample(n, d) for n in (1, 2, 5, 8) for d in (1.0, 0.1)], differentiable=False,
        function=lambda n, d, name=_name: getattr(cg.fft, name)(n, d, dtype="float64"))

row("cartesian_prod", lambda *xs: np.stack([g.ravel() for g in np.meshgrid(*xs, indexing="ij")], 1) if len(xs) > 1 else xs[0],
    [Sample(Draw((2,)), Draw((3,))), Sample(Draw((2,)), Draw((1,)), Draw((3,))), Sample(Draw((4,))), Sample(Draw((0,)), Draw((2,)))])
row("combinations", lambda x, r=2, with_replacement=False: x[np.array(list((itertools.combinations_with_replacement if with_replacement else
                                                                            itertools.combinations)(range(x.size), r)), int).reshape(-1, r)],
    [Sample(Draw((4,))), Sample(Draw((3,)), 2, with_replacement=True), Sample(Draw((4,)), 3), Sample(Draw((2,)), 3)])

# ------------------------------------------------------------------------------------------------- NumPy's names of the rest
def _written(function):
    """A function that writes into its first argument, as one that returns a copy."""
    def call(x, *args, **kwargs):
        x = x.copy()
        function(x, *args, **kwargs)
        return x
    return call


def _holes(x):
    """x with NaN at two places."""
    return cg.where(cg.tensor([[False, True, False], [True, False, False]]), NAN, x)


for _name, _more in (("nanmax", ()), ("nanmin", ()), ("nanprod", ()), ("nancumsum", ()), ("nancumprod", ()), ("nanargmax", ()), ("nanargmin", ()), ("nanpercentile", (30,))):
    _ours, _numpys = getattr(cg, _name), getattr(np, _name)
    row(_name, lambda x, *args, function=_numpys, **options: function(np.where([[False, True, False], [True, False, False]], NAN, x), *args, **options),
        [Sample(_far((2, 3)), *_more), Sample(_far((2, 3)), *_more, axis=1), Sample(_far((2, 3)), *_more, axis=0)], differentiable="arg" not in _name,
        function=lambda x, *args, function=_ours, **options: function(_holes(x), *args, **options))
row("percentile", np.percentile, [Sample(_far((6,)), 30), Sample(_far((2, 5)), np.array([0.0, 45.0, 100.0]), axis=1), Sample(_far((2, 4)), 70.0, axis=0, keepdims=True)])
row("ptp", np.ptp, [Sample(_far((6,))), Sample(_far((2, 5)), axis=1), Sample(_far((2, 5)), axis=0, keepdims=True)])
row("average", np.average, [Sample(Draw((2, 3))), Sample(Draw((2, 3)), axis=1), Sample(Draw((2, 3)), 0, np.array([1.0, 3.0])),
                            Sample(Draw((2, 3)), 1, np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]]), keepdims=True), Sample(Draw((3,)), None, np.array([1.0, 2.0, 3.0]), True)], own_dtype=True)
row("average", lambda x, weights: np.average(x, weights=weights), [Sample(Draw((3,)), Draw((3,), 0.5, 1.0))], function=lambda x, weights: cg.average(x, weights=weights))
row("append", np.append, [Sample(Draw((2, 3)), Draw((2,))), Sample(Draw((2, 3)), Draw((1, 3)), axis=0)])
row("insert", np.insert, [Sample(Draw((4,)), 1, Draw(())), Sample(Draw((4,)), [0, 4, 2, 2], Draw((4,))), Sample(Draw((2, 3)), 1, Draw((2,)), axis=1), Sample(Draw((2, 3)), [1, 1], Draw((2, 1)), axis=1),
                          Sample(Draw((2, 3)), -1, Draw((3, 1)), axis=0), Sample(Draw((2, 3)), slice(0, 3, 2), Draw(()), axis=1), Sample(Draw((2, 3)), 2, Draw((2,)))])
row("delete", np.delete, [Sample(Draw((4,)), 1), Sample(Draw((2, 3)), [0, -1], axis=1), Sample(Draw((2, 3)), slice(1, None, 2)), Sample(Draw((3,)), np.array([True, False, True]))])
row("resize", np.resize, [Sample(Draw((3,)), (2, 4)), Sample(Draw((2, 3)), 4), Sample(Draw((2,)), (0, 3)), Sample(np.zeros(0), (2,))])
row("trim_zeros", np.trim_zeros, [Sample(np.array([0.0, 0.0, 1.0, 0.0, 2.0, 0.0]), trim) for trim in ("fb", "f", "b")] + [Sample(np.zeros(2))], differentiable=False)
row("ediff1d", np.ediff1d, [Sample(Draw((2, 3))), Sample(Draw((4,)), Draw(()), Draw((2,))), Sample(Draw((0,)))])
row("put_along_axis", _written(np.put_along_axis), [Sample(Draw((2, 3)), np.array([[2], [0]]), Draw(()), 1), Sample(Draw((2, 3)), np.array([[1, 0, 1]]), Draw((1, 3)), 0),
                                                    Sample(Draw((2, 3)), np.array([4, 0]), Draw((2,)), None)],
    function=lambda x, index, values, axis: cg.put_along_axis(x + 0 * cg.sum(values), index, values, axis))
row("fill_diagonal", _written(np.fill_diagonal), [Sample(Draw((3, 2)), Draw(())), Sample(Draw((2, 4)), Draw((2,))), Sample(Draw((7, 2)), Draw(()), True), Sample(Draw((2, 2, 2)), 3.0)],
    function=lambda x, value, *wrap: cg.fill_diagonal(x + 0 * (cg.sum(value) if isinstance(value, cg.Tensor) else value), value, *wrap))
row("convolve", np.convolve, [Sample(Draw((n,)), Draw((m,)), mode) for n, m in ((5, 3), (2, 4), (3, 3), (4, 1)) for mode in ("full", "same", "valid")])
row("correlate", np.correlate, [Sample(Draw((n,)), Draw((m,)), mode) for n, m in ((5, 3), (2, 4), (3, 6), (5, 2), (1, 4)) for mode in ("full", "same", "valid")])
row("interp", np.interp, [Sample(Draw((2, 3), -1.9, 5.9, kinks=(-1, 0.5, 2, 4)), np.array([-1.0, 0.5, 2.0, 4.0]), Draw((4,))), Sample(Draw((3,), -3, -2), np.array([0.0, 1.0]), np.ones(2), 7.0, 8.0),
                          Sample(Draw((4,), 3, 6.9, kinks=(4, 5, 6)), np.array([3.0, 1.0, 2.0]), Draw((3,)), period=3.0), Sample(0.5, np.array([0.0, 1.0]), Draw((2,)))], own_dtype=True)
row("interp", lambda x, fp, *xp: np.interp(x, np.stack(xp), fp), [Sample(Draw((3,), 0.1, 2.9, kinks=(1, 2)), Draw((4,)), Draw((), -0.1, 0.0), Draw((), 0.97, 1.03), Draw((), 1.97, 2.03), Draw((), 3, 3.1))],
    function=lambda x, fp, *xp: cg.interp(x, cg.stack(xp), fp))
row("unwrap", np.unwrap, [Sample(Draw((2, 5), -9, 9)), Sample(Draw((5, 2), -9, 9), axis=0), Sample(Draw((6,), -9, 9), 5.0, period=4.0)])
row("vander", np.vander, [Sample(Draw((3,))), Sample(Draw((2,)), 4), Sample(Draw((3,)), 2, True), Sample(Draw((0,)))])
row("polyval", np.polyval, [Sample(Draw((3,)), Draw((2, 2))), Sample(Draw((4,)), Draw(())), Sample(np.zeros(0), np.ones(2))])
row("polyfit", lambda x, y, deg, w=None: np.polyfit(x, y, deg, w=w), [Sample(_far((5,)), Draw((5,)), 2), Sample(_far((4,)), Draw((4, 2)), 1), Sample(_far((5,)), Draw((5,)), 1, w=np.array([1.0, 2, 1, 3, 1]))],
    tolerance=1000, own_dtype=True)
for _name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
    row(_name, getattr(np, _name), [Sample(_repeated, np.array([1, 5, 2, 5])), Sample(_repeated[:0], np.array([2, 1]))], differentiable=False)
row("unravel_index", np.unravel_index, [Sample(np.array([[0, 5], [23, 7]]), (2, 3, 4)), Sample(np.array(3), (5,))], differentiable=False)
row("ravel_multi_index", np.ravel_multi_index, [Sample((np.array([0, 1]), np.array([[2], [1]])), (2, 3))], differentiable=False,
    function=lambda parts, shape: cg.ravel_multi_index(tuple(cg.asarray(p) for p in parts), shape))
unary("cbrt", np.cbrt, 0.2, 3.0, special=[((-8.0,), -2.0, (1 / 12,)), ((0.0,), 0.0, (INF,)), ((-0.0,), -0.0, (INF,)), ((INF,), INF, (0.0,)), ((NAN,), NAN, None), ((1e-300,), np.cbrt(1e-300), None)],
      result="float")
unary("angle", np.angle, kinks=(0,), special=[((-0.0,), 0.0, (0.0,)), ((NAN,), NAN, None)])
unary("isreal", np.isreal, differentiable=False, result="bool")
row("divmod", np.divmod, [Sample(Draw((2, 3), 0.6, 0.8), Draw((3,), 0.45, 0.55))])
row("modf", np.modf, [Sample(Draw((3,), 1.1, 1.9)), Sample(Draw((2,), -1.9, -1.1)), Sample(np.array([-2.0, INF, NAN]))])
row("narrow_copy", lambda x, axis, start, n: np.take(x, range(start, start + n), axis), [Sample(Draw((5, 2)), 0, 1, 3), Sample(Draw((2, 3)), 1, 0, 0)])

# --------------------------------------------------------------------------------- made of tensors, attributes, own operations
row("full", lambda shape, value: np.full(shape, value), [Sample((2, 3), Draw(())), Sample((0,), Draw(())), Sample((), Draw(()))])
row("full_like", lambda x, value: np.full_like(x, value), [Sample(np.zeros((2, 3)), Draw(()))], own_dtype=True)
for _name, _reference, _samples in (
        ("linspace", np.linspace, [Sample(Draw(()), Draw(()), 5), Sample(Draw(()), 3.0, 4, endpoint=False), Sample(1.0, Draw(()), 1)]),
        ("logspace", np.logspace, [Sample(Draw(()), Draw(()), 4), Sample(0.5, Draw(()), 3, base=2.0)]),
        ("geomspace", np.geomspace, [Sample(Draw((), 0.5, 1.0), Draw((), 2.0, 3.0), 4), Sample(Draw((), 0.5, 1.0), 8.0, 3)])):
    row(_name, _reference, _samples, function=functools.partial(getattr(cg, _name), dtype="float64"), own_dtype=True, tolerance=10, half=False)


def seeded(function):
    """A function that draws random numbers, with the same ones in each call."""
    def call(*args, **kwargs):
        with cg.random.fork_rng(0):
            return function(*args, **kwargs)
    return call


row("normal", None, [Sample(Draw((2, 3)), Draw((3,), 0.5, 2.0))], function=seeded(cg.normal), mapped=False, half=False)
for _name, _reference in (("T", np.transpose), ("mT", np.matrix_transpose), ("H", np.transpose), ("mH", np.matrix_transpose)):
    row("Tensor." + _name, _reference, [Sample(Draw((2, 3))), Sample(Draw((0, 2)))], function=operator.attrgetter(_name))
row("Tensor.fill_", lambda x, value: np.full_like(x, value), [Sample(Draw((2, 3)), Draw(()))], function=lambda x, value: (x + 0 * value).fill_(value), own_dtype=True)
row("Tensor.copy_", lambda x, y: np.broadcast_to(y, x.shape), [Sample(Draw((2, 3)), Draw((3,))), Sample(Draw((2,)), Draw(()))], function=lambda x, y: (x + 0 * y).copy_(y), own_dtype=True)
row("Tensor.zero_", np.zeros_like, [Sample(Draw((2, 3)))], function=lambda x: x.clone().zero_())
row("checkpoint", lambda x, y: np.sin(x) * y, [Sample(Draw((2, 3)), Draw((3,)))], function=lambda x, y: cg.checkpoint(lambda x, y: cg.sin(x) * y, x, y))
_chain = [cg.sin, cg.exp, cg.sin, cg.exp]
row("checkpoint_sequential", lambda x: np.exp(np.sin(np.exp(np.sin(x)))), [Sample(Draw((2, 3))), Sample(Draw(()))], tolerance=10,
    function=lambda x: cg.checkpoint_sequential(_chain, 2, x))
row("checkpoint_budget", lambda x: np.exp(np.sin(np.exp(np.sin(x)))), [Sample(Draw((2, 3)))], function=lambda x: cg.checkpoint_budget(_chain, 1 << 20)(x), tolerance=10)
_atan2 = cg.foreign_op(ctypes.CFUNCTYPE(*[ctypes.c_double] * 3)(("atan2", ctypes.CDLL(None))), partials=(
    lambda y, x: x / (x * x + y * y), lambda y, x: -y / (x * x + y * y)), name="atan2")
row("foreign_op", np.arctan2, [Sample(Draw((2, 3)), Draw((3,), low=0.5)), Sample(Draw(()), Draw((), low=0.5))], function=_atan2)
row("op", lambda x, y: np.sin(x) * y, [Sample(Draw((2, 3)), Draw((3,))), Sample(Draw(()), Draw(()))],
    function=cg.op(lambda x, y: cg.sin(x) * y, vjp=lambda g, out, x, y: (g * cg.cos(x) * y, g * cg.sin(x))))

# ------------------------------------------------------------------------------- other families below
