"""float16 and bfloat16, stored in 16 bits and computed as float32; uint16, uint32 and uint64 beyond what signed types hold."""
import copy
import operator
import pickle

import numpy as np
import pytest

import cgrad as cg

HALVES = [cg.float16, cg.bfloat16]
UNSIGNED = [np.uint16, np.uint32, np.uint64]
ALL_BITS = np.arange(1 << 16, dtype=np.uint32)


def half_tensor(bits, dtype):
    """A tensor of the given bit patterns."""
    bits = np.asarray(bits, np.uint16)
    if dtype is cg.float16:
        return cg.from_numpy(bits.view(np.float16))
    (out,) = pickle.loads(pickle.dumps((cg.zeros(bits.shape, dtype=cg.bfloat16),)))
    out_bits(out)[...] = bits
    return out


class Renamed:
    """A bfloat16 tensor's memory for NumPy: its DLPack capsule says uint16."""

    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **options):
        import ctypes
        capsule = self.x.__dlpack__(max_version=(1, 0))
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        code = ctypes.c_uint8.from_address(get(capsule, b"dltensor_versioned") + 52)          # see dlpack.h
        assert code.value == 4                            # kDLBfloat
        code.value = 1                                    # kDLUInt
        return capsule

    def __dlpack_device__(self):
        return (1, 0)


def out_bits(x):
    """The bits of a half tensor, on its own memory."""
    return x.numpy().view(np.uint16) if x.dtype is cg.float16 else np.from_dlpack(Renamed(x))


def wide(bits, dtype):
    """The numbers that bit patterns stand for, by NumPy, or by the definition of bfloat16: the upper half of a float32."""
    bits = np.asarray(bits, np.uint32)
    return bits.astype(np.uint16).view(np.float16).astype(np.float32) if dtype is cg.float16 else (bits << 16).view(np.float32)


def rounded(x, dtype):
    """float64 numbers rounded once, half to even: the bits."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if dtype is cg.float16:
            return np.asarray(x, np.float64).astype(np.float16).view(np.uint16)
    x = np.asarray(x, np.float64)
    mantissa, exponent = np.frexp(x)
    unit = np.exp2(np.maximum(exponent - 8, -133).astype(np.float64))          # 8 bits; subnormals are multiples of 2**-133
    with np.errstate(over="ignore", invalid="ignore"):
        y = np.where(np.isfinite(x), np.rint(x / unit) * unit, x).astype(np.float32)
        return np.where(np.abs(x) >= 2.0**128 - 2.0**119, np.where(x < 0, 0xFF80, 0x7F80), y.view(np.uint32) >> 16).astype(np.uint16)


# ------------------------------------------------------------------------------------------------------------ conversions
@pytest.mark.parametrize("dtype", HALVES)
def test_every_half_widens_exactly_and_comes_back(dtype):
    x = half_tensor(ALL_BITS, dtype)
    want = wide(ALL_BITS, dtype)
    nan = np.isnan(want)
    for target, numpy in ((cg.float32, np.float32), (cg.float64, np.float64)):
        y = x.astype(target)
        with np.errstate(invalid="ignore"):                        # of signalling NaN
            np.testing.assert_array_equal(y.numpy(), want.astype(numpy))
        assert np.array_equal(np.signbit(y.numpy()), np.signbit(want))
        back = out_bits(y.astype(dtype))
        np.testing.assert_array_equal(back[~nan], ALL_BITS[~nan])
        quiet = 0x0200 if dtype is cg.float16 else 0x0040
        np.testing.assert_array_equal(back[nan] | quiet, ALL_BITS[nan] | quiet)         # sign and payload stay


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_floats_are_rounded_once_half_to_even(dtype, source):
    rng = np.random.default_rng(0)
    finite = wide(ALL_BITS, dtype)
    finite = np.unique(finite[np.isfinite(finite)]).astype(np.float64)
    middle = (finite[1:] + finite[:-1]) / 2
    near = [np.nextafter(middle.astype(source), source(s)) for s in (-np.inf, np.inf)]
    info = cg.finfo(dtype)
    edge = np.array([0.0, -0.0, np.inf, -np.inf, info.max, -info.max, info.max * 1.0009, info.max * (1 + info.eps / 4), 1e39, -1e300, 1e-45, 1e-300])
    with np.errstate(over="ignore", under="ignore"):
        x = np.concatenate([middle, *near, edge, rng.standard_normal(3000) * 10.0 ** rng.integers(-9, 6, 3000)]).astype(source)
    np.testing.assert_array_equal(out_bits(cg.tensor(x).astype(dtype)), rounded(x, dtype))
    strided = cg.tensor(np.repeat(x, 3))[::3]
    np.testing.assert_array_equal(out_bits(strided.astype(dtype)), rounded(x, dtype))


def test_float64_does_not_round_twice():
    """1 + 2**-11 is halfway between two numbers of float16; a little more must go up, though float32 cannot see it."""
    for step, dtype in ((2.0**-11, cg.float16), (2.0**-8, cg.bfloat16)):
        x = cg.tensor([1 + step, 1 + step + 2.0**-40, 1 + 3 * step, 1 + 3 * step - 2.0**-40], dtype=cg.float64)
        assert x.astype(dtype).tolist() == [1.0, 1 + 2 * step, 1 + 4 * step, 1 + 2 * step]


@pytest.mark.parametrize("dtype", HALVES)
def test_integers_and_bools_convert(dtype):
    x = np.array([0, 1, 7, 255, 2049, 2051, 65519, 65520, 70000, 2**31 - 1])
    np.testing.assert_array_equal(out_bits(cg.tensor(x).astype(dtype)), rounded(x, dtype))
    for numpy in (np.uint16, np.uint32, np.uint64, np.int32):
        y = x.astype(numpy)
        np.testing.assert_array_equal(out_bits(cg.tensor(y).astype(dtype)), rounded(y, dtype))
    assert cg.tensor([True, False]).astype(dtype).tolist() == [1, 0]
    y = cg.tensor([-1.5, 0.0, 300.0, float("nan"), float("inf")], dtype=dtype)
    assert y.astype(cg.int32).tolist() == [-1, 0, 300, 0, 2**31 - 1] and y.astype(cg.bool).tolist() == [True, False, True, True, True]
    assert y.astype(cg.uint8).tolist() == [0, 0, 255, 0, 255] and y.astype(cg.uint16).tolist() == [0, 0, 300, 0, 65535]
    assert cg.tensor([1.0, 3.140625, 1e6], dtype=cg.bfloat16).astype(cg.float16).tolist() == [1.0, 3.140625, np.inf]


# --------------------------------------------------------------------------------------------------------- half: arithmetic
def operands(dtype, rng, n=4000):
    bits = rng.integers(0, 1 << 16, n).astype(np.uint32)
    special = np.array([0, 0x8000, 0x7C00, 0x3C00, 0x0001, 0x8001, 0x7BFF, 0x7F80, 0xFF80, 0x7FC0], np.uint32)
    bits[:10] = special
    return bits


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv, np.maximum, np.minimum, np.copysign], ids=lambda f: f.__name__)
def test_arithmetic_is_that_of_float32_rounded(dtype, op):
    rng = np.random.default_rng(1)
    a, b = operands(dtype, rng), rng.permutation(operands(dtype, rng))
    ours = {np.maximum: cg.maximum, np.minimum: cg.minimum, np.copysign: cg.copysign}.get(op, op)
    with np.errstate(all="ignore"):
        want = op(wide(a, dtype), wide(b, dtype))
        bits = rounded(want, dtype)
    nan = np.isnan(want)
    for layout in (lambda x: x, lambda x: x.reshape(80, 50).T.contiguous().T.reshape(-1), lambda x: x.flip(0).contiguous().flip(0)):
        got = ours(layout(half_tensor(a, dtype)), layout(half_tensor(b, dtype)))
        assert got.dtype is dtype
        np.testing.assert_array_equal(out_bits(got)[~nan], bits[~nan])
        assert bool(cg.isnan(got).numpy()[nan].all())


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", ["sqrt", "square", "negative", "absolute", "reciprocal", "floor", "ceil", "trunc", "round", "sign", "positive"])
def test_unary_functions_are_those_of_float32_rounded(dtype, name):
    x = half_tensor(ALL_BITS, dtype)
    with np.errstate(all="ignore"):
        want = getattr(np, {"round": "rint"}.get(name, name))(wide(ALL_BITS, dtype))
        bits = rounded(want, dtype)
    got, nan = getattr(cg, name)(x), np.isnan(want)
    np.testing.assert_array_equal(out_bits(got)[~nan], bits[~nan])
    assert bool(cg.isnan(got).numpy()[nan].all())


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "expm1", "log1p"])
def test_transcendental_functions_are_within_one_unit(dtype, name):
    x = wide(ALL_BITS, dtype)
    x = x[np.isfinite(x) & (np.abs(x) < 80) & (x > {"log": 0, "log1p": -0.9}.get(name, -80))]
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x.astype(np.float64))
    got = getattr(cg, name)(cg.tensor(x, dtype=dtype))
    assert (rounded(want, dtype) == out_bits(got)).mean() > 0.999
    np.testing.assert_allclose(got.double().numpy(), wide(rounded(want, dtype), dtype), rtol=cg.finfo(dtype).eps, atol=1e-7 if dtype is cg.float16 else 1e-40)


@pytest.mark.parametrize("dtype", HALVES)
def test_comparisons(dtype):
    rng = np.random.default_rng(2)
    a, b = operands(dtype, rng), rng.permutation(operands(dtype, rng))
    b[::3] = a[::3]
    for op in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
        got = op(half_tensor(a, dtype), half_tensor(b, dtype))
        np.testing.assert_array_equal(got.numpy(), op(wide(a, dtype), wide(b, dtype)))
    x = cg.tensor([0.1, 0.2], dtype=dtype)
    assert (x == 0.1).tolist() == [True, False] and (0.2 == x).tolist() == [False, True] and 0.1 in x       # compared as what the tensor could hold
    for name in ("isnan", "isinf", "isfinite", "signbit"):
        np.testing.assert_array_equal(getattr(cg, name)(half_tensor(a, dtype)).numpy(), getattr(np, name)(wide(a, dtype)))


@pytest.mark.parametrize("dtype", HALVES)
def test_numbers_are_weak_and_not_rounded_first(dtype):
    x = cg.tensor([1.0, 2.0, 1e-3], dtype=dtype)
    assert (x + 1).dtype is dtype and (2.0 * x).dtype is dtype and (x / 3).dtype is dtype and (x ** 2).dtype is dtype
    assert (x * 1e5 / 1e5).dtype is dtype and (cg.tensor(0.25, dtype=dtype) * 1e5).item() == (24992.0 if dtype is cg.float16 else 24960.0)
    assert (x + cg.ones(3)).dtype is cg.float32 and (x + cg.ones(3, dtype=cg.float64)).dtype is cg.float64 and (x + cg.tensor([1, 2, 3])).dtype is dtype
    assert (cg.ones(1, dtype=cg.float16) + cg.ones(1, dtype=cg.bfloat16)).dtype is cg.float32


@pytest.mark.parametrize("dtype", HALVES)
def test_large_and_in_place(dtype):
    rng = np.random.default_rng(3)
    a, b = rng.integers(0x3000, 0x4000, (2, 300_000)).astype(np.uint32)
    x, y = half_tensor(a, dtype), half_tensor(b, dtype)
    want = rounded(wide(a, dtype) + wide(b, dtype), dtype)
    np.testing.assert_array_equal(out_bits(x + y), want)
    x += y
    np.testing.assert_array_equal(out_bits(x), want)
    x[::2] *= 2.0
    np.testing.assert_array_equal(out_bits(x)[::2], rounded(2 * wide(want[::2], dtype), dtype))
    x.fill_(3)
    assert x.dtype is dtype and bool((x == 3).all())


@pytest.mark.parametrize("dtype", HALVES)
def test_reductions_are_summed_in_float32(dtype):
    x = cg.full((10_000,), 1.0, dtype=dtype)
    assert x.sum().item() == (10_000.0 if dtype is cg.float16 else 9984.0) and x.mean().item() == 1.0 and x.sum().dtype is dtype
    assert cg.full((100_000,), 1.0, dtype=cg.float16).mean().item() == 1.0          # the sum itself would be infinite
    assert x.cumsum(0)[4095].item() == 4096.0 and x.max().item() == 1.0 and x.argmax().item() == 0 and x.var().item() == 0
    y = cg.tensor([3.0, -1.0, float("nan"), 2.0], dtype=dtype)
    assert np.isnan(y.max().item()) and y.argmax().item() == 2 and bool(y.any()) and y.sort()[:3].tolist() == [-1, 2, 3]
    values, places = cg.topk(y[:2], 1)
    assert values.dtype is dtype and values.tolist() == [3] and places.tolist() == [0]


@pytest.mark.parametrize("dtype", HALVES)
def test_derivatives_keep_the_dtype(dtype):
    x = cg.tensor([[0.5, -1.0], [2.0, 0.25]], dtype=dtype, requires_grad=True)
    b = cg.tensor([1.0, 2.0], dtype=dtype, requires_grad=True)
    y = ((x @ x + b).tanh() * 0.5 + cg.softmax(x, axis=1)).sum()
    assert y.dtype is dtype
    y.backward()
    assert x.grad.dtype is dtype and b.grad.dtype is dtype and b.grad.shape == (2,)
    w = x.detach().double().requires_grad_()
    c = b.detach().double().requires_grad_()
    ((w @ w + c).tanh() * 0.5 + cg.softmax(w, axis=1)).sum().backward()
    np.testing.assert_allclose(x.grad.double().numpy(), w.grad.numpy(), atol=8 * cg.finfo(dtype).eps)
    np.testing.assert_allclose(b.grad.double().numpy(), c.grad.numpy(), atol=8 * cg.finfo(dtype).eps)
    (second,) = cg.autograd.grad(cg.autograd.grad((x * x * x).sum(), (x,), create_graph=True)[0].sum(), (x,))
    assert second.dtype is dtype and second.tolist() == [[3, -6], [12, 1.5]]
    _, tangent = cg.func.jvp(lambda v: (v * v).sum(), (x.detach(),), (cg.ones(2, 2, dtype=dtype),))
    assert tangent.dtype is dtype and tangent.item() == 3.5
    assert cg.func.vmap(lambda v: cg.softmax(v, axis=0))(x.detach()).dtype is dtype
    mixed = cg.ones(2, requires_grad=True)
    (x.detach() * mixed).sum().backward()
    assert mixed.grad.dtype is cg.float32
    with pytest.raises(TypeError, match=r"gradcheck: input 0 is cgrad\..*float16.*float64"):
        cg.autograd.gradcheck(lambda v: v * 2, (x,))


# ----------------------------------------------------------------------------------------------------------- half: around
@pytest.mark.parametrize("dtype", HALVES)
def test_views_stay_views_and_bits_stay_bits(dtype):
    x = half_tensor([0x3C00, 0x7C01, 0xFE55, 0x8000], dtype)
    y = x.reshape(2, 2).T
    assert y.data_ptr() == x.data_ptr() and out_bits(y.contiguous()).tolist() == [[0x3C00, 0xFE55], [0x7C01, 0x8000]]
    parts = cg.split(x, 2)
    parts[0][0] = 2.0
    assert x[0].item() == 2.0
    bits = out_bits(x).tolist()
    for z in (x.clone(), x[[0, 1, 2, 3]], cg.concat([x[:2], x[2:]]), x.flip(0).flip(0), x.gather(0, cg.arange(4)), cg.where(cg.tensor(True), x, x),
              cg.stack([x])[0], cg.roll(cg.roll(x, 1), -1), x.expand(2, 4)[1], copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert z.dtype is dtype and out_bits(z.contiguous()).tolist() == bits
    z = cg.zeros(4, dtype=dtype)
    z[cg.tensor([1, 1])] = cg.tensor(5.0)
    assert z.tolist() == [0, 5, 0, 0] and cg.scatter_add(z, 0, cg.tensor([0, 0]), cg.tensor([1.0, 2.0], dtype=dtype)).tolist() == [3, 5, 0, 0]


def test_numpy_shares_float16():
    a = np.array([[1.5, 2.0], [3.0, 4.0]], np.float16)
    x = cg.from_numpy(a.T)
    assert x.dtype is cg.float16 and np.shares_memory(x.numpy(), a) and x.numpy().dtype == np.float16
    a[0, 0] = 7
    assert x[0, 0].item() == 7 and cg.as_tensor(a).data_ptr() == a.ctypes.data and np.asarray(x).dtype == np.float16
    assert memoryview(x).format == "e" and np.shares_memory(np.from_dlpack(x), a) and np.shares_memory(cg.from_dlpack(a).numpy(), a)
    assert cg.tensor(np.float16(1.5)).dtype is cg.float16 and (np.float16(2) * x).dtype is cg.float16


def test_bfloat16_for_numpy():
    x = cg.tensor([1.0, 2.5], dtype=cg.bfloat16)
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(x)
    assert x.tobytes() == b"\x80\x3f\x20\x40" and x.tolist() == [1.0, 2.5] and x.float().numpy().tolist() == [1.0, 2.5]
    y = cg.from_dlpack(x)
    assert y.dtype is cg.bfloat16 and y.data_ptr() == x.data_ptr()
    shared = np.from_dlpack(Renamed(x))
    assert shared.dtype == np.uint16 and shared.ctypes.data == x.data_ptr()


class Lender:
    """What another library hands over for a bfloat16 tensor: a capsule of its own."""

    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **options):
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0)


def test_bfloat16_of_other_libraries():
    x = cg.tensor([[1.0, 2.5], [3.0, -4.0]], dtype=cg.bfloat16)
    y = cg.from_dlpack(Lender(x))
    assert y.dtype is cg.bfloat16 and y.data_ptr() == x.data_ptr() and y.tolist() == x.tolist()
    y[0, 0] = 9
    assert x[0, 0].item() == 9 and cg.as_tensor(Lender(x)).dtype is cg.bfloat16


def test_bfloat16_without_ml_dtypes(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    for ask in (lambda x: x.numpy(), np.asarray):
        with pytest.raises(TypeError, match=r"NumPy has no bfloat16; take x.float\(\).numpy\(\)"):
            ask(cg.ones(2, dtype=cg.bfloat16))


def test_bfloat16_with_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = cg.tensor([1.0, 2.5], dtype=cg.bfloat16)
    a = x.numpy()
    assert a.dtype == ml_dtypes.bfloat16 and a.ctypes.data == x.data_ptr() and a.astype(np.float32).tolist() == [1.0, 2.5]
    y = cg.from_numpy(a)
    assert y.dtype is cg.bfloat16 and y.data_ptr() == x.data_ptr() and cg.tensor(a[::-1]).tolist() == [2.5, 1.0]
    assert cg.dtype.__eq__(cg.bfloat16, np.dtype(ml_dtypes.bfloat16)) and cg.zeros(1, dtype=ml_dtypes.bfloat16).dtype is cg.bfloat16


@pytest.mark.parametrize("dtype", HALVES)
def test_made_drawn_and_shown(dtype):
    assert cg.arange(5, dtype=dtype).tolist() == [0, 1, 2, 3, 4] and cg.arange(0, 1, 0.25, dtype=dtype).dtype is dtype
    assert cg.linspace(0, 1, 5, dtype=dtype).tolist() == [0, 0.25, 0.5, 0.75, 1] and cg.eye(2, dtype=dtype).tolist() == [[1, 0], [0, 1]]
    assert cg.tensor([1, 2.5], dtype=dtype).dtype is dtype and cg.full((2,), 1e-3, dtype=dtype)[0].item() == pytest.approx(1e-3, rel=cg.finfo(dtype).eps)
    g = cg.Generator(0)
    x = cg.rand(20_000, dtype=dtype, generator=g)
    assert x.dtype is dtype and x.max().item() < 1 and x.min().item() >= 0 and abs(x.float().mean().item() - 0.5) < 0.01
    y = cg.uniform(-2.0, -1.0, (20_000,), dtype=dtype, generator=g)
    assert y.max().item() < -1 and y.min().item() >= -2
    z = cg.randn(20_000, dtype=dtype, generator=g)
    assert abs(z.float().mean().item()) < 0.03 and abs(z.float().std().item() - 1) < 0.03
    assert cg.randint(0, 10, (100,), dtype=dtype).dtype is dtype
    assert repr(cg.tensor([1.5, -2.0], dtype=dtype)) == f"tensor([ 1.5000, -2.0000], dtype={dtype!r})"
    assert f"{cg.tensor(0.5, dtype=dtype):.2f}" == "0.50" and float(cg.tensor(0.1, dtype=dtype)) == cg.tensor(0.1, dtype=dtype).item()
    assert cg.ones(1).astype(dtype).to(cg.float64).dtype is cg.float64 and cg.half is cg.float16
    assert cg.ones(1).half().dtype is cg.float16 and cg.ones(1).bfloat16().dtype is cg.bfloat16
    cg.set_default_dtype(dtype)
    try:
        assert cg.tensor(1.5).dtype is dtype and cg.ones(2).dtype is dtype and cg.sqrt(cg.tensor([4])).dtype is dtype
    finally:
        cg.set_default_dtype(cg.float32)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("optimizer", [cg.optim.SGD, cg.optim.Adam, cg.optim.AdamW, cg.optim.NAdam, cg.optim.Adamax, cg.optim.RMSprop])
def test_a_network_in_half_learns(dtype, optimizer):
    cg.manual_seed(0)
    net = cg.nn.Sequential(cg.nn.Linear(3, 16), cg.nn.ReLU(), cg.nn.LayerNorm(16), cg.nn.Linear(16, 2))
    net = net.half() if dtype is cg.float16 else net.bfloat16()
    assert all(p.dtype is dtype for p in net.parameters())
    x = cg.randn(64, 3, dtype=dtype)
    target = (x[:, 0] > 0).long()
    opt = optimizer(net.parameters(), lr=0.05, **({"momentum": 0.9} if optimizer is cg.optim.SGD else {}))
    losses = []
    for _ in range(25):
        opt.zero_grad()
        loss = cg.nn.functional.cross_entropy(net(x), target)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    assert loss.dtype is dtype and losses[-1] < 0.5 * losses[0]
    for state in opt.state.values():                       # kept in float32: steps of 16 bits would be lost
        assert all(v.dtype is cg.float32 for v in state.values() if isinstance(v, cg.Tensor))
    again = optimizer(net.parameters(), lr=0.05)
    again.load_state_dict(opt.state_dict())
    again.step()


# --------------------------------------------------------------------------------------------------------------- unsigned
def edges(dtype):
    top = int(np.iinfo(dtype).max)
    return np.array(sorted({0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 63, 64, 255, top // 2, top // 2 + 1, top // 2 + 2, top - 1, top}), dtype)


BINARY = ["add", "subtract", "multiply", "floor_divide", "remainder", "fmod", "maximum", "minimum", "equal", "not_equal", "less", "less_equal", "greater",
          "greater_equal", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "logical_and", "logical_or",
          "logical_xor", "gcd", "power"]


@pytest.mark.parametrize("dtype", UNSIGNED)
@pytest.mark.parametrize("name", BINARY)
def test_unsigned_arithmetic(dtype, name):
    x, y = (v.ravel() for v in np.meshgrid(edges(dtype), edges(dtype)))
    if name in ("floor_divide", "remainder", "fmod"):
        x, y = x[y != 0], y[y != 0]
    if "shift" in name:
        x, y = x[y < 8 * x.itemsize], y[y < 8 * x.itemsize]
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x, y)
    for tile in (1, 40):                                  # a few, and enough for vectors, blocks and threads
        got = getattr(cg, name)(cg.tensor(np.tile(x, tile)), cg.tensor(np.tile(y, tile)))
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got.numpy(), np.tile(want, tile))
    a, b = np.tile(x, 3)[::3], np.repeat(y, 2)[::2]
    got = getattr(cg, name)(cg.from_numpy(a), cg.from_numpy(b[::-1]))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got.numpy(), getattr(np, name)(a, b[::-1]))


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_unsigned_unary_numbers_and_errors(dtype):
    x, top = edges(dtype), int(np.iinfo(dtype).max)
    t = cg.tensor(x)
    for name in ("negative", "positive", "absolute", "sign", "square", "floor", "ceil", "trunc", "round", "bitwise_not", "signbit", "isnan", "isfinite", "logical_not"):
        with np.errstate(all="ignore"):
            want = getattr(np, {"round": "rint", "bitwise_not": "invert", "signbit": "isnan"}.get(name, name))(x)
        got = getattr(cg, name)(t)
        np.testing.assert_array_equal(got.numpy(), want)
        assert got.dtype == (bool if want.dtype == bool else dtype)
    assert (t + 1).dtype == dtype and (t + top).tolist() == (x + dtype(top)).tolist() and (t < top).sum().item() == x.size - 1
    assert cg.clip(t, 3, top - 1).tolist() == np.clip(x, 3, top - 1).tolist() and cg.where(t > 5, t, 0).dtype == dtype
    for bad in (-1, top + 1):
        with pytest.raises(OverflowError):
            t + bad
        with pytest.raises(OverflowError, match=f"does not fit {np.dtype(dtype).name}, which holds 0 to {top}"):
            cg.tensor(bad, dtype=dtype)
    assert cg.tensor([0, top], dtype=dtype).tolist() == [0, top] and cg.tensor(top, dtype=dtype).item() == top
    assert cg.sqrt(t).dtype is cg.float32 and (t / 2).dtype is cg.float32 and (t * 1.5).dtype is cg.float32
    np.testing.assert_allclose(cg.sqrt(t).numpy(), np.sqrt(x.astype(np.float64)), rtol=1e-6)


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_unsigned_casts(dtype):
    x = edges(dtype)
    for target in (np.bool_, np.uint8, *UNSIGNED, np.int8, np.int16, np.int32, np.int64, np.float32, np.float64):
        np.testing.assert_array_equal(cg.tensor(x).astype(target).numpy(), x.astype(target))
    for source in (np.uint8, *UNSIGNED, np.int8, np.int16, np.int32, np.int64):
        y = np.array([0, 1, 5, 100, np.iinfo(source).max, np.iinfo(source).min, np.iinfo(source).max // 2 + 1], source)
        np.testing.assert_array_equal(cg.tensor(y).astype(dtype).numpy(), y.astype(dtype))
    top = int(np.iinfo(dtype).max)
    for source in (np.float32, np.float64):
        y = np.array([0.0, 1.9, 254.5, 65535.0, top // 2 + 1.0, -0.9], source)
        inside = y <= top
        np.testing.assert_array_equal(cg.tensor(y).astype(dtype).numpy()[inside], y.astype(dtype)[inside])
        assert cg.tensor(np.array([-5.0, np.nan, np.inf, 1e30], source)).astype(dtype).tolist() == [0, 0, top, top]


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_unsigned_reductions_order_and_places(dtype):
    rng = np.random.default_rng(4)
    top = np.iinfo(dtype).max
    x = rng.integers(0, top, (40, 30), dtype, endpoint=True)
    x[3, 4], x[5, 6] = top, 0
    t = cg.tensor(x)
    for axis in (None, 0, 1):
        for name in ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin"):
            want = getattr(np, name)(x, axis=axis)
            got = getattr(cg, name)(t, axis=axis)
            np.testing.assert_array_equal(got.numpy(), want, err_msg=name)
            assert got.dtype == want.dtype
    for name in ("sort", "argsort"):
        for axis in (0, 1):
            np.testing.assert_array_equal(getattr(cg, name)(t, axis=axis).numpy(), getattr(np, name)(x, axis=axis))
            np.testing.assert_array_equal(getattr(cg, name)(t.T, axis=axis, descending=True).numpy(), np.flip(getattr(np, name)(np.flip(x.T, axis), axis), axis)
                                          if name == "sort" else x.shape[1 - axis] - 1 - np.flip(np.argsort(np.flip(x.T, axis), axis, kind="stable"), axis))
    for name in ("cumulative_sum", "cumulative_prod"):
        got = getattr(cg, name)(t, axis=1)
        want = getattr(np, name)(x, axis=1)
        np.testing.assert_array_equal(got.numpy(), want)
        assert got.dtype == want.dtype
    np.testing.assert_array_equal(cg.cummax(t, 0)[0].numpy(), np.maximum.accumulate(x, 0))
    np.testing.assert_array_equal(cg.topk(t, 3)[0].numpy(), np.sort(x, 1)[:, :-4:-1])
    np.testing.assert_array_equal(cg.topk(t, 25)[0].numpy(), np.sort(x, 1)[:, :-26:-1])
    row = np.sort(x[0])
    np.testing.assert_array_equal(cg.searchsorted(cg.tensor(row), t).numpy(), np.searchsorted(row, x))
    np.testing.assert_array_equal(cg.unique_values(t).numpy(), np.unique(x))
    np.testing.assert_array_equal((t.T @ t).numpy(), x.T @ x)
    np.testing.assert_array_equal(t[cg.tensor([1, 5]), :].numpy(), x[[1, 5]])
    index = cg.tensor(rng.integers(0, 40, (40, 30)))
    want = np.zeros_like(x)
    np.add.at(want, (index.numpy(), np.arange(30)), x)
    np.testing.assert_array_equal(cg.scatter_add(cg.zeros_like(t), 0, index, t).numpy(), want)
    want = np.zeros_like(x)
    np.maximum.at(want, (index.numpy(), np.arange(30)), x)
    np.testing.assert_array_equal(cg.scatter_reduce(cg.zeros_like(t), 0, index, t, "amax").numpy(), want)
    assert cg.arange(5, dtype=dtype).dtype == dtype and cg.arange(int(top) - 3, int(top), dtype=dtype).tolist() == list(range(int(top) - 3, int(top)))
    assert t[cg.tensor([1, 2], dtype=dtype)].tolist() == x[[1, 2]].tolist()
    assert memoryview(t).tolist() == x.tolist() and np.from_dlpack(t).dtype == dtype and cg.from_dlpack(x).dtype == dtype


def test_an_index_that_only_uint64_holds_is_out_of_bounds():
    x = cg.arange(3.0)
    for use in (lambda i: x[i], lambda i: x.gather(0, i), lambda i: cg.nn.functional.embedding(i, cg.ones(3, 2))):
        with pytest.raises(IndexError, match="18446744073709551615 is out of bounds"):
            use(cg.tensor([2**64 - 1], dtype=cg.uint64))


def test_printing_of_unsigned():
    assert repr(cg.tensor([2**64 - 1, 0], dtype=cg.uint64)) == "tensor([18446744073709551615,                    0], dtype=cgrad.uint64)"
