"""Every row of cases.py against NumPy, finite differences, the other mode, and itself in other layouts and dtypes."""
import functools
import warnings
import zlib

import numpy as np
import pytest
from cases import Draw, Pick
from network_cases import ROWS

import cgrad as cg

DIFFERENTIABLE = [r for r in ROWS if r.differentiable]
ELEMENTWISE = [r for r in ROWS if r.elementwise]


def by_name(rows):
    return pytest.mark.parametrize("row", rows, ids=[r.name for r in rows])


def rng_for(row, salt=0):
    return np.random.default_rng(zlib.crc32(row.name.encode()) + salt)


# ---------------------------------------------------------------------------------------------------- arguments of a call
def draw(value, rng, dtype=np.float64):
    """An argument with arrays in place of draws."""
    if isinstance(value, Draw):
        return value.make(rng, dtype)
    if isinstance(value, Pick):
        return value.make(rng)
    if isinstance(value, list):
        return [draw(v, rng, dtype) for v in value]
    return value


def split(sample, rng, dtype=np.float64, picks=False):
    """(operands to differentiate, and with `picks` indices, too; a function that puts operands back into the full arguments)."""
    places = []
    args = [a.make(rng) if isinstance(a, Pick) and not picks else a for a in sample.args]
    for i, arg in enumerate(args):
        if isinstance(arg, (Draw, Pick)):
            places.append((i, None))
        elif isinstance(arg, list) and any(isinstance(a, Draw) for a in arg):
            places += [(i, j) for j, a in enumerate(arg) if isinstance(a, Draw)]
    values = [draw(args[i] if j is None else args[i][j], rng, dtype) for i, j in places]

    def put(operands, wrap):
        full = [[wrap(a) for a in arg] if isinstance(arg, list) and any(isinstance(a, Draw) for a in arg) else wrap(arg) for arg in args]
        for (i, j), value in zip(places, operands):
            if j is None:
                full[i] = value
            else:
                full[i][j] = value
        return full
    return values, put


def constant(value):
    """Arrays among the arguments are tensors for cgrad."""
    return cg.tensor(value) if isinstance(value, np.ndarray) else value


def same(value):
    return value


def as_tuple(result):
    return tuple(result) if isinstance(result, (tuple, list)) and not (result and isinstance(result[0], int)) else (result,)


def array(x):
    if isinstance(x, cg.Tensor):
        x = x.detach()
        return np.array((x.float() if x.dtype is cg.bfloat16 else x).numpy())
    return np.asarray(x)


def scalar(outs, cotangents):
    """The sum of all results times fixed cotangents."""
    total = None
    for out, c in zip(outs, cotangents):
        if c is None:
            continue
        term = (out * c).sum()
        total = term if total is None else total + term
    return total


def cotangents_of(outs, rng):
    return [rng.standard_normal(array(o).shape) if np.issubdtype(array(o).dtype, np.floating) else None for o in outs]


def call_numpy(row, sample, values, put):
    if row.reference is None:
        return tuple([array(y) for y in call_cgrad(row, sample, [cg.tensor(v) for v in values], put)])
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return as_tuple(row.reference(*put(values, same), **sample.kwargs))


def call_cgrad(row, sample, tensors, put):
    return as_tuple(row.call(*put(tensors, constant), **sample.kwargs))


def close(got, want, row, rtol=1e-12, atol=1e-13):
    got, want = array(got), np.asarray(want)
    assert got.shape == want.shape, f"{row.name}: shape {got.shape}, expected {want.shape}"
    np.testing.assert_allclose(got, want, rtol=rtol * row.tolerance, atol=atol * row.tolerance, equal_nan=True, err_msg=row.name)


# ----------------------------------------------------------------------------------------------------------------- values
@by_name(ROWS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_agree_with_the_reference(row, dtype):
    rng = rng_for(row)
    for sample in row.samples:
        values, put = split(sample, rng, dtype)
        if dtype == np.float32 and not values:
            continue
        want = call_numpy(row, sample, [v.astype(np.float64) for v in values], put)
        got = call_cgrad(row, sample, [cg.tensor(v) for v in values], put)
        assert len(got) == len(want)
        for g, w in zip(got, want):
            tight = dict(rtol=1e-12, atol=1e-14) if dtype == np.float64 else dict(rtol=2e-5, atol=2e-6)
            close(g, w, row, **tight)
            if values and isinstance(g, cg.Tensor) and not row.own_dtype:
                kind = np.asarray(w).dtype.kind
                assert g.dtype == {"f": dtype, "b": np.bool_, "i": np.int64}[kind], f"{row.name}: dtype {g.dtype}"


# -------------------------------------------------------------------------------------------------------------- gradients
def gradients(row, sample, values, put, cotangents, create_graph=False):
    leaves = [cg.tensor(v, requires_grad=True) for v in values]
    outs = call_cgrad(row, sample, leaves, put)
    total = scalar(outs, cotangents_as_tensors(cotangents))
    found = cg.autograd.grad(total, leaves, create_graph=create_graph, allow_unused=True)
    return leaves, [cg.zeros_like(x) if g is None else g for x, g in zip(leaves, found)]


def directional(function, values, directions, eps):
    """Central difference of a scalar function along a direction, of fourth order."""
    def at(step):
        return function([v + step * d for v, d in zip(values, directions)])
    return (8 * (at(eps) - at(-eps)) - (at(2 * eps) - at(-2 * eps))) / (12 * eps)


def finite(x):
    return np.where(np.isfinite(x), x, 0)


def dot(xs, ys):
    return sum(float((array(x) * array(y)).sum()) for x, y in zip(xs, ys))


def cotangents_as_tensors(cotangents, requires_grad=False):
    return [None if c is None else cg.tensor(c, requires_grad=requires_grad) for c in cotangents]


def check_first_order(row, sample, rng):
    """Backward against central differences, and forward mode against backward, along one random direction."""
    values, put = split(sample, rng)
    if not values:
        return
    outs = call_numpy(row, sample, values, put)
    cotangents = cotangents_of(outs, rng)
    directions = [rng.standard_normal(v.shape) for v in values]
    leaves, found = gradients(row, sample, values, put, cotangents)
    for x, g in zip(leaves, found):
        assert g.shape == x.shape and g.dtype == x.dtype
    backward = dot(found, directions)

    def value(operands):
        return sum(float((finite(o) * c).sum()) for o, c in zip(call_numpy(row, sample, operands, put), cotangents) if c is not None)
    size = sum(np.abs(finite(o)).sum() for o in outs) + abs(backward) + 1
    difference = directional(value, values, directions, 3e-4)
    assert backward == pytest.approx(difference, rel=1e-8, abs=1e-9 * size * row.tolerance), f"{row.name}{sample.kwargs}"

    _, tangents = cg.func.jvp(lambda *xs: call_cgrad(row, sample, xs, put), tuple(cg.tensor(v) for v in values),
                              tuple(cg.tensor(d) for d in directions))
    forward = sum(float((array(t) * c).sum()) for t, c in zip(as_tuple(tangents), cotangents) if c is not None)
    assert forward == pytest.approx(backward, rel=1e-11, abs=1e-12 * size), f"{row.name}: forward mode"


@by_name(DIFFERENTIABLE)
def test_gradients_agree_with_central_differences_and_forward_mode(row):
    rng = rng_for(row)
    for sample in row.samples:
        check_first_order(row, sample, rng)


def check_second_order(row, sample, rng):
    """Backward through backward against central differences of the first, and against forward through backward."""
    values, put = split(sample, rng)
    if not sum(v.size for v in values):
        return
    cotangents = cotangents_of(call_numpy(row, sample, values, put), rng)
    along = [rng.standard_normal(v.shape) for v in values]
    directions = [rng.standard_normal(v.shape) for v in values]
    moved = [None if c is None else rng.standard_normal(c.shape) for c in cotangents]

    leaves = [cg.tensor(v, requires_grad=True) for v in values]
    seeds = cotangents_as_tensors(cotangents, requires_grad=True)
    found = cg.autograd.grad(scalar(call_cgrad(row, sample, leaves, put), seeds), leaves, create_graph=True, allow_unused=True)
    total = scalar([g for g in found if g is not None], [cg.tensor(a) for a, g in zip(along, found) if g is not None])
    got = 0.0
    if total is not None and total.requires_grad:
        operands = leaves + [c for c in seeds if c is not None]
        second = cg.autograd.grad(total, operands, allow_unused=True)
        got = sum(float((array(s) * d).sum()) for s, d in zip(second, directions + [m for m in moved if m is not None]) if s is not None)

    def slope(operands):
        n = len(values)
        return dot(gradients(row, sample, operands[:n], put, operands[n:])[1], along)
    everything = values + [np.zeros(0) if c is None else c for c in cotangents]
    steps = directions + [np.zeros(0) if m is None else m for m in moved]
    size = sum(np.abs(array(g)).sum() for g in found if g is not None) + abs(got) + 1
    want = directional(lambda operands: slope([None if not o.size and c is None else o for o, c in
                                               zip(operands, values + cotangents)]), everything, steps, 3e-4)
    assert got == pytest.approx(want, rel=1e-8, abs=1e-9 * size * row.tolerance), f"{row.name}{sample.kwargs}"

    def gradient(*operands):
        xs, cs = operands[:len(values)], iter(operands[len(values):])
        outs = call_cgrad(row, sample, xs, put)
        return scalar(outs, [None if c is None else next(cs) for c in cotangents])
    primals = tuple(cg.tensor(x) for x in everything[:len(values)] + [c for c in cotangents if c is not None])
    tangents = tuple(cg.tensor(x) for x in directions + [m for m in moved if m is not None])
    _, pushed = cg.func.jvp(cg.func.grad(gradient, argnums=tuple(range(len(values)))), primals, tangents)
    assert dot(as_tuple(pushed), along) == pytest.approx(got, rel=1e-10, abs=1e-11 * size), f"{row.name}: forward over backward"


@by_name(DIFFERENTIABLE)
def test_second_derivatives(row):
    rng = rng_for(row, 1)
    for sample in row.samples:
        check_second_order(row, sample, rng)


@by_name([r for r in ELEMENTWISE if r.differentiable and sum(isinstance(a, Draw) for a in r.samples[1].args) == 1])
def test_third_derivatives_of_both_modes_agree(row):
    """Three times backward, three times forward; nothing but the rules themselves is common to the two ways."""
    x = cg.tensor(row.samples[1].args[0].make(rng_for(row, 5)), requires_grad=True)
    backward = row.call(x)
    for _ in range(3):
        if not backward.requires_grad:
            backward = cg.zeros_like(x)
            break
        (backward,) = cg.autograd.grad(backward.sum(), (x,), create_graph=True)
    ones = cg.ones_like(x.detach())

    def pushed(function):
        return lambda t: cg.func.jvp(function, (t,), (ones,))[1]
    forward = pushed(pushed(pushed(row.call)))(x.detach())
    close(forward, array(backward), row, 1e-11, 1e-11)


@by_name(DIFFERENTIABLE)
def test_fused_rules_equal_the_written_ones(row):
    """Under create_graph the engine runs the Python rule, otherwise the kernel, if there is one."""
    rng = rng_for(row, 2)
    for dtype, rtol in ((np.float64, 1e-12), (np.float32, 1e-5)):
        for sample in row.samples[:8]:
            values, put = split(sample, rng, dtype)
            if not values:
                continue
            cotangents = cotangents_of(call_numpy(row, sample, values, put), rng)
            _, fused = gradients(row, sample, values, put, cotangents)
            _, written = gradients(row, sample, values, put, cotangents, create_graph=True)
            for a, b in zip(fused, written):
                close(a, array(b), row, rtol, rtol)


# ---------------------------------------------------------------------------------------------------------------- layouts
def transposed(v):
    return cg.tensor(np.ascontiguousarray(v.T)).permute(*range(v.ndim - 1, -1, -1))


def backwards(v):
    return cg.flip(cg.tensor(np.ascontiguousarray(v[(slice(None, None, -1),) * v.ndim])))


def offset(v):
    big = np.full(tuple(n + 3 for n in v.shape), 7.0)
    inside = tuple(slice(2, n + 2) for n in v.shape)
    big[inside] = v
    return cg.tensor(big)[inside]


def spaced(v):
    big = np.full(tuple(3 * n for n in v.shape), 7.0)
    every = (slice(None, None, 3),) * v.ndim
    big[every] = v
    return cg.tensor(big)[every]


@by_name(ROWS)
@pytest.mark.parametrize("layout", [transposed, backwards, offset, spaced])
def test_layout_does_not_matter(row, layout):
    rng = rng_for(row, 3)
    for sample in row.samples:
        values, put = split(sample, rng)
        if not any(v.ndim for v in values) or row.name in ("view", "view_as"):
            continue
        want = call_cgrad(row, sample, [cg.tensor(v) for v in values], put)
        laid = [layout(v) if v.ndim else cg.tensor(v) for v in values]
        for x, v in zip(laid, values):
            np.testing.assert_array_equal(array(x), v)
            x.requires_grad_(row.differentiable)
        outs = call_cgrad(row, sample, laid, put)
        for g, w in zip(outs, want):
            close(g, array(w), row, 1e-13, 1e-13)
        if row.differentiable:
            cotangents = cotangents_of(want, rng)
            total = scalar(outs, [None if c is None else layout(c) if c.ndim else cg.tensor(c) for c in cotangents])
            found = cg.autograd.grad(total, laid, allow_unused=True)
            for g, w in zip(found, gradients(row, sample, values, put, cotangents)[1]):
                close(np.zeros(w.shape) if g is None else g, array(w), row, 1e-12, 1e-12)


@by_name([r for r in ELEMENTWISE if r.differentiable])
def test_a_broadcast_operand_gets_its_gradient_summed(row):
    rng = rng_for(row, 4)
    for sample in row.samples:
        values, put = split(sample, rng)
        if [v.shape for v in values] != [(4,)] * len(values):
            continue
        leaves = [cg.tensor(v, requires_grad=True) for v in values]
        call_cgrad(row, sample, [cg.broadcast_to(x, (3, 4)) for x in leaves], put)[0].sum().backward()
        once = gradients(row, sample, values, put, [np.ones(4)])[1]
        for x, g in zip(leaves, once):
            close(x.grad, 3 * array(g), row)


# ----------------------------------------------------------------------------------------------------------------- dtypes
RESULT = {"float": "float32", "bool": "bool"}


@by_name([r for r in ROWS if r.integers and (r.elementwise or r.result != "same")])
def test_integers(row):
    for dtype in row.integers:
        values = [np.array([[3, 1, 2], [2, 5, 1]], dtype), np.array([2, 1, 3], dtype)]
        sample = next(s for s in row.samples if any(isinstance(a, Draw) for a in s.args))
        n = sum(isinstance(a, Draw) for a in sample.args)
        tensors = [cg.tensor(v) for v in values[:n]]
        got = row.call(*tensors)
        with np.errstate(all="ignore"):
            wide = [v.astype(np.float64) for v in values[:n]]
            want = row.reference(*(wide if row.result == "float" else values[:n]))
        summed = "uint64" if dtype.startswith("u") else "int64"
        assert got.dtype == (summed if row.result == "sum" else RESULT.get(row.result, dtype)), f"{row.name}({dtype}) gave {got.dtype}"
        assert not got.requires_grad
        close(got, want, row, 1e-5, 1e-6)


@by_name([r for r in ROWS if r.half])
@pytest.mark.parametrize("dtype", [cg.float16, cg.bfloat16])
def test_half_precision(row, dtype):
    """Computed in float32 and rounded: within a few units of the last place of the largest number around; gradients keep the dtype."""
    rng = rng_for(row, 6)
    unit = cg.finfo(dtype).eps * min(row.tolerance, 10) / row.tolerance
    for sample in row.samples:
        values, put = split(sample, rng)
        leaves = [cg.tensor(v, dtype=dtype, requires_grad=row.differentiable) for v in values]
        if not leaves:
            continue
        exact = [array(x.detach().double()) for x in leaves]
        outs = call_cgrad(row, sample, leaves, put)
        wants = call_numpy(row, sample, exact, put)
        for out, want in zip(outs, wants):
            kind = np.asarray(want).dtype.kind
            if kind != "f" or not isinstance(out, cg.Tensor):
                close(out, want, row)
                continue
            assert row.own_dtype or out.dtype is dtype, f"{row.name}: {out.dtype}"
            close(out.detach().double(), want, row, 4 * unit, 4 * unit * (1 + np.abs(finite(want)).max(initial=0)))
        if not row.differentiable:
            continue
        cotangents = [None if c is None else array(cg.tensor(c, dtype=dtype).double()) for c in cotangents_of(wants, rng)]
        _, wide = gradients(row, sample, exact, put, cotangents)
        seeds = [None if c is None else cg.tensor(c, dtype=out.dtype) for c, out in zip(cotangents, outs)]
        shown = [(out, c) for out, c in zip(outs, seeds) if c is not None and out.requires_grad]
        found = cg.autograd.grad([out for out, _ in shown], leaves, [c for _, c in shown], allow_unused=True) if shown else [None] * len(leaves)
        for g, want in zip(found, wide):
            want = array(want)
            assert g is None or g.dtype is dtype, f"{row.name}: gradient {g.dtype}"
            got = np.zeros(want.shape) if g is None else array(g.double())
            size = np.abs(finite(want)).max(initial=1) + sum(np.abs(finite(c)).max(initial=0) for c in cotangents if c is not None)
            close(got, want, row, 16 * unit, 16 * unit * size)


@by_name([r for r in ELEMENTWISE if any(sum(isinstance(a, Draw) for a in s.args) == 2 for s in r.samples)])
def test_promotion(row):
    """Two dtypes meet in the larger one; Python numbers are weak; each gradient has the dtype of its operand."""
    x = cg.tensor(np.array([0.5, 0.75], np.float32), requires_grad=row.differentiable)
    y = cg.tensor(np.array([1.5, 1.25]), requires_grad=row.differentiable)
    out = row.call(x, y)
    assert out.dtype == (cg.bool if row.result == "bool" else cg.float64)
    assert row.call(x, 2.0).dtype == row.call(2, x).dtype == (cg.bool if row.result == "bool" else cg.float32)
    if row.differentiable:
        out.sum().backward()
        assert x.grad.dtype == cg.float32 and y.grad.dtype == cg.float64


# --------------------------------------------------------------------------------------------------------- special values
SPECIAL = [(r, *entry) for r in ROWS for entry in r.special]


@pytest.mark.parametrize(("row", "arguments", "value", "slopes"), SPECIAL, ids=[f"{r.name}{a}" for r, a, *_ in SPECIAL])
@pytest.mark.parametrize("n", [None, 1, 9])
@pytest.mark.parametrize("written", [False, True], ids=["fused", "written"])
def test_special_values_and_kinks(row, arguments, value, slopes, n, written):
    """At poles, kinks, infinities and NaN; alone, and along a row, where vector loops have a body and a tail."""
    def tensor(a, grad):
        full = np.array(a) if n is None else np.full(n, a)
        return cg.tensor(full, requires_grad=grad and full.dtype.kind == "f")
    leaves = [tensor(a, row.differentiable) for a in arguments]
    out = row.call(*leaves)
    assert out.shape == leaves[0].shape
    want = np.broadcast_to(value, out.shape)
    np.testing.assert_array_max_ulp(array(out).astype(float), want.astype(float), 4)
    if not row.differentiable and value is not True:
        return
    if value == 0 and row.differentiable and np.signbit(value):
        assert np.signbit(array(out)).all()
    if slopes is not None:
        wanted = [x for x, s in zip(leaves, slopes) if s is not None]
        found = cg.autograd.grad(out.sum(), wanted, create_graph=written, allow_unused=True)
        for g, s in zip(found, [s for s in slopes if s is not None]):
            np.testing.assert_allclose(array(g), np.full(out.shape, s), rtol=1e-13, atol=1e-300)


def test_an_extreme_that_is_reached_more_than_once_shares_its_gradient():
    for function, data in ((cg.max, [1.0, 3.0, 3.0, 2.0]), (cg.min, [3.0, 1.0, 1.0, 2.0])):
        x = cg.tensor(np.array([data, data[::-1]]), requires_grad=True)
        function(x, axis=1).backward(cg.tensor(np.array([1.0, 10.0])))
        np.testing.assert_array_equal(array(x.grad), [[0, 0.5, 0.5, 0], [0, 5, 5, 0]])
        _, tangent = cg.func.jvp(functools.partial(function, axis=1), (x.detach(),), (cg.tensor(np.arange(8.0).reshape(2, 4)),))
        np.testing.assert_array_equal(array(tangent), [1.5, 5.5])


def test_a_product_with_zeros_has_exact_derivatives():
    for data, first in (([2.0, 0.0, 4.0], [0.0, 8.0, 0.0]), ([2.0, 0.0, 0.0], [0.0, 0.0, 0.0]), ([0.0], [1.0])):
        x = cg.tensor(np.array(data), requires_grad=True)
        (g,) = cg.autograd.grad(cg.prod(x), (x,), create_graph=True)
        np.testing.assert_array_equal(array(g), first)
    x = cg.tensor(np.array([2.0, 0.0, 0.0]), requires_grad=True)
    hessian = cg.func.hessian(cg.prod)(x.detach())
    np.testing.assert_array_equal(array(hessian), [[0, 0, 0], [0, 0, 2], [0, 2, 0]])


def test_a_running_product_with_zeros_has_exact_derivatives():
    for data, first in (([2.0, 0.0, 3.0, 4.0], [1.0, 32.0, 0.0, 0.0]), ([0.0, 2.0, 3.0], [9.0, 0.0, 0.0]), ([2.0, 0.0, 0.0, 3.0], [1.0, 2.0, 0.0, 0.0])):
        x = cg.tensor(np.array(data), requires_grad=True)
        (g,) = cg.autograd.grad(cg.cumprod(x).sum(), (x,))
        np.testing.assert_array_equal(array(g), first)
    hessian = cg.func.hessian(lambda x: cg.cumprod(x)[2])(cg.tensor(np.array([2.0, 0.0, 0.0])))
    np.testing.assert_array_equal(array(hessian), [[0, 0, 0], [0, 0, 2], [0, 2, 0]])


def test_sums_and_products_have_the_dtype_that_is_asked_for():
    data = np.array([[200, 100], [3, 0]], np.uint8)
    x = cg.tensor(data)
    for name in ("sum", "prod"):
        for dtype in ("uint8", "int16", "float32"):
            got = getattr(cg, name)(x, axis=0, dtype=dtype)
            assert got.dtype == dtype
            np.testing.assert_array_equal(array(got), getattr(np, name)(data, axis=0, dtype=dtype))
            for initial in (False, True):
                got = getattr(cg, f"cumulative_{name}")(x, 0, dtype, initial)
                assert got.dtype == dtype
                np.testing.assert_array_equal(array(got), getattr(np, f"cumulative_{name}")(data, axis=0, dtype=dtype, include_initial=initial))
    assert cg.cumulative_sum(x[:0], 0, "uint8", True).tolist() == [[0, 0]]


def test_constant_data_have_no_slope_in_var_and_std():
    for function in (cg.var, cg.std):
        for correction in (0, 1):
            x = cg.tensor(np.full(7, 0.1), requires_grad=True)
            y = function(x, correction=correction)
            y.backward()
            assert y.item() == 0
            np.testing.assert_allclose(array(x.grad), 0, atol=1e-16)
        with pytest.warns(RuntimeWarning, match="1 elements"):
            assert np.isnan(function(cg.tensor([5.0]), correction=1).item())


def test_rows_of_minus_infinity():
    x = cg.tensor(np.array([[0.0, -np.inf, np.log(3.0)], [-np.inf] * 3]), requires_grad=True)
    y = cg.logsumexp(x, axis=1)
    np.testing.assert_allclose(array(y), [np.log(4), -np.inf])
    y.backward(cg.tensor(np.array([1.0, 1.0])))
    np.testing.assert_allclose(array(x.grad), [[0.25, 0, 0.75], [0, 0, 0]], rtol=1e-14)
    z = cg.softmax(x, axis=1)[0, 0]
    (g,) = cg.autograd.grad(z, (x,))
    np.testing.assert_allclose(array(g)[0], [0.1875, 0, -0.1875], rtol=1e-14)


def test_the_zero_vector_has_a_norm_with_slope_zero():
    x = cg.tensor(np.array([[3.0, 4.0], [0.0, 0.0]]), requires_grad=True)
    for ord_, first in ((2, [0.6, 0.8]), (3, None)):
        (g,) = cg.autograd.grad(cg.vector_norm(x, ord_, axis=1).sum(), (x,))
        np.testing.assert_array_equal(array(g)[1], [0, 0])
        if first:
            np.testing.assert_allclose(array(g)[0], first, rtol=1e-15)
    assert cg.vector_norm(cg.tensor(np.array([3e200, 4e200]))).item() == pytest.approx(5e200, rel=1e-15)


def test_mixed_second_derivative_of_a_power():
    """d2/dxdy x**y = x**(y-1) * (1 + y * log x), also where the first one vanishes."""
    for x0, y0 in ((2.0, 0.0), (2.0, 1.0), (3.0, 2.0), (0.5, 0.5)):
        x, y = (cg.tensor(np.array(v), requires_grad=True) for v in (x0, y0))
        (gx,) = cg.autograd.grad(x ** y, (x,), create_graph=True)
        (gxy,) = cg.autograd.grad(gx, (y,))
        assert gxy.item() == pytest.approx(x0 ** (y0 - 1) * (1 + y0 * np.log(x0)), rel=1e-14)


# ----------------------------------------------------------------------------------------------------------------- errors
X = np.arange(24.0).reshape(2, 3, 4)
ERRORS = [
    (lambda x: cg.sum(x, axis=3), "sum: axis 3 is out of range for a tensor with 3 axes"),
    (lambda x: cg.mean(x, axis=(0, -3)), "mean: axis 0 is named twice"),
    (lambda x: cg.max(x, axis=-4), "max: axis -4 is out of range"),
    (lambda x: cg.sum(x, axis=1.0), "sum: axis must be an integer, got 1.0"),
    (lambda x: cg.sum(x, axis=True), "sum: axis must be an integer, got the bool True"),
    (lambda x: cg.argmax(x, axis=(0, 1)), "argmax: axis must be an integer"),
    (lambda x: cg.softmax(x, axis=5), "softmax: axis 5 is out of range"),
    (lambda x: cg.var(x, correction="1"), "var: correction must be a number"),
    (lambda x: cg.max(x[:, :0]), "max"),
    (lambda x: cg.reshape(x, (5, -1)), r"reshape: 24 elements of shape \(2, 3, 4\) do not fit into \(5, -1\)"),
    (lambda x: cg.reshape(x, (-1, -1)), "reshape: only one"),
    (lambda x: cg.reshape(x, (2, -3, -4)), "reshape"),
    (lambda x: cg.reshape(x, (2.0, 12)), "reshape: a length must be an integer, got 2.0"),
    (lambda x: cg.reshape(x[:, :0], (-1, 0)), "reshape: -1"),
    (lambda x: x.permute(2, 0, 1).view(24), "view: .* use reshape"),
    (lambda x: cg.permute_dims(x, (0, 1)), "permute_dims: 2 axes given for a tensor of shape"),
    (lambda x: cg.permute_dims(x, (0, 1, 1)), "permute_dims: an axis is named twice"),
    (lambda x: cg.squeeze(x, 0), "squeeze: axis 0 .* has length 2, not 1"),
    (lambda x: cg.expand_dims(x, 5), "expand_dims: axis 5 is out of range"),
    (lambda x: cg.expand_dims(x, (0, 0)), "expand_dims: axis 0 is named twice"),
    (lambda x: cg.broadcast_to(x, (2, 3, 5)), "broadcast_to: shape .* does not broadcast"),
    (lambda x: cg.broadcast_to(x, (4,)), "broadcast_to: shape .* has more axes"),
    (lambda x: cg.broadcast_to(x[0, 0, 0], (-1,)), "broadcast_to: .* negative"),
    (lambda x: cg.flip(x, (0, 0)), "flip: axis 0 is named twice"),
    (lambda x: cg.moveaxis(x, (0, 1), 0), "moveaxis: source .* differ in number"),
    (lambda x: cg.flatten(x, 2, 1), "flatten: start_dim 2 comes after"),
    (lambda x: cg.unflatten(x, 2, (3, 2)), "unflatten: axis 2"),
    (lambda x: cg.matmul(x, x), "matmul"),
    (lambda x: cg.matmul(x, 2.0), "matmul"),
    (lambda x: cg.mm(x, x), "mm: x must be 2-d"),
    (lambda x: cg.dot(x[0, 0], x[0, :, 0]), "matmul"),
    (lambda x: cg.bmm(x, x[:1]), "bmm: the batches differ"),
    (lambda x: cg.linear(x, x[0, :, :2]), "linear: x of shape"),
    (lambda x: cg.linear(x, x[0], x[0, 0]), "linear: a bias of shape"),
    (lambda x: cg.tensordot(x, x, 2), "tensordot: axes"),
    (lambda x: x + x[:, :2], r"add: shapes \(2, 3, 4\), \(2, 2, 4\) do not broadcast"),
    (lambda x: x & x, "bitwise_and"),
    (lambda x: cg.gelu(x, approximate="x"), "gelu: approximate must be"),
    (lambda x: cg.hardtanh(x, 2, 1), "hardtanh: min_val 2 exceeds"),
    (lambda x: cg.sum(object()), "sum"),
    (lambda x: x.long() ** -1, "power: integers have no negative powers"),
    (lambda x: x.long() ** cg.tensor([2, -1, 1, 0]), "power: integers have no negative powers"),
    (lambda x: cg.add(x, x, alpha=1, beta=2), "beta"),
    (lambda x: cg.divide(x, x, rounding_mode="up"), 'divide: rounding_mode must be None, "floor" or "trunc"'),
    (lambda x: cg.multiply(x, x, other=x), "multiply: multiple values for argument 'y'"),
    (lambda x: cg.where(x > 0, x), "where: takes a condition and two values, or a condition alone, got 2"),
    (lambda x: cg.cumsum(x), "cumulative_sum: name the axis"),
    (lambda x: cg.cumprod(x, 3), "cumulative_prod: axis 3 is out of range"),
    (lambda x: cg.diff(x, -1), "diff: n cannot be negative"),
    (lambda x: cg.einsum("ijk->ii", x), "einsum: 'i' is twice in the result"),
    (lambda x: cg.einsum("ijk->l", x), "einsum: 'l' of the result 'l' is in no operand"),
    (lambda x: cg.einsum("ij->i", x), "einsum: operand 'ij' names 2 axes, but the tensor has 3"),
    (lambda x: cg.einsum("ijk,i->i", x), "einsum: 'ijk,i->i' describes 2 operands, got 1"),
    (lambda x: cg.einsum("ijk,i", x, x[0, :, 0]), "einsum: index 'i' has length 2 in one place and 3 in another"),
    (lambda x: cg.einsum("i.k", x), "einsum: operand 'i.k' has a stray"),
    (lambda x: cg.einsum(x), "einsum: needs at least one operand"),
    (lambda x: cg.sort(x, 3), "sort: axis 3 is out of range"),
    (lambda x: cg.argsort(x[0, 0, 0], 1), "argsort: axis 1 is out of range"),
    (lambda x: cg.topk(x, 5), "topk: k must be between 0 and 4, the length of axis 2 of shape .*, got 5"),
    (lambda x: cg.topk(x, 1.0), "topk: k must be an integer"),
    (lambda x: cg.kthvalue(x, 0), "kthvalue: k must be between 1 and 4"),
    (lambda x: cg.mode(x[:, :0], 1), "mode: there is no element to choose from"),
    (lambda x: cg.median(x[:, :0], 1), "median: there is no element to choose from"),
    (lambda x: cg.quantile(x, 1.5), "quantile: q must lie between 0 and 1, got 1.5"),
    (lambda x: cg.nanquantile(x, [0.5, float("nan")]), "nanquantile: q must lie between 0 and 1"),
    (lambda x: cg.quantile(x, 0.5, interpolation="cubic"), "quantile: interpolation must be one of linear, lower"),
    (lambda x: cg.searchsorted(x, x[0]), "searchsorted: x must be one row, or have the shape of y"),
    (lambda x: cg.searchsorted(x, x, side="middle"), 'searchsorted: side must be "left" or "right"'),
    (lambda x: cg.searchsorted(x, x, side="left", right=True), "searchsorted: side must be .* together with right=True"),
    (lambda x: cg.searchsorted(x, x, sorter=x[0].long()), "searchsorted: sorter must have the shape of x"),
    (lambda x: cg.bucketize(x, x), "bucketize: boundaries must be one row"),
    (lambda x: cg.digitize(x, x), "digitize: bins must be one row"),
    (lambda x: cg.digitize(x, [0.0, 2.0, 1.0]), "digitize: bins must rise or fall"),
    (lambda x: cg.unique(x, axis=3), "unique: axis 3 is out of range"),
    (lambda x: cg.bincount(x[0, 0]), "bincount: x must hold integers, got float64"),
    (lambda x: cg.bincount(x.long()), "bincount: x must be 1-d"),
    (lambda x: cg.bincount(-x[0, 0].long()), "bincount: x cannot hold negative numbers, got -3"),
    (lambda x: cg.bincount(x[0, 0].long(), x[0, 0, :2]), "bincount: weights must have the shape of x"),
    (lambda x: cg.histc(x, 0), "histc: needs at least one bin"),
    (lambda x: cg.histc(x, 3, 2, 1), "histc: the range must be finite and not reversed"),
    (lambda x: cg.histogram(x, x[0, 0].flip()), "histogram: the edges must be at least two numbers in order"),
    (lambda x: cg.histogram(x, weights=x[0]), "histogram: weights must have the shape of x"),
    (lambda x: cg.cummax(x, 3), "cummax: axis 3 is out of range"),
    (lambda x: cg.logcumsumexp(x, -4), "logcumsumexp: axis -4 is out of range"),
    (lambda x: cg.trapezoid(x, x[0, 0, :2]), "trapezoid: x has 2 places, but y of shape .* has 4 along axis 2"),
    (lambda x: cg.cumulative_trapezoid(x[0, 0, 0]), "cumulative_trapezoid: needs at least one axis"),
    (lambda x: cg.scatter_reduce(x, 0, x.long(), x, "median"), "scatter_reduce: reduce must be one of sum, prod"),
    (lambda x: cg.scatter(x, 0, x.long(), x, reduce="mean"), 'scatter: reduce must be None, "add" or "multiply"'),
    (lambda x: cg.scatter_reduce(x, 0, cg.full((1, 3, 4), 2), x, "prod"), "scatter_reduce: index 2 is out of bounds for axis 0 with size 2"),
    (lambda x: cg.index_reduce(x, 0, cg.tensor([0]), x, "amax"), "index_reduce: needs a vector of indices and as many slices along axis 0"),
    (lambda x: cg.index_add(x, 0, cg.tensor([[0]]), x), "index_add: index must be a vector"),
    (lambda x: cg.put(x, cg.tensor([0, 1]), cg.ones(3)), "put: needs as many numbers as indices"),
    (lambda x: cg.put(x, cg.tensor([24]), cg.ones(1)), "index 24 is out of bounds"),
    (lambda x: cg.masked_scatter(x, x > 1, cg.ones(3)), "masked_scatter: the mask is true at 22 places, but source has 3 elements"),
    (lambda x: cg.masked_scatter(x, x, x), "masked_scatter: the mask must be of dtype bool"),
    (lambda x: cg.select_scatter(x, x, 0, 1), r"select_scatter: src must have the shape \(3, 4\) of the part"),
    (lambda x: cg.slice_scatter(x, x, 0, 1), r"slice_scatter: src must have the shape \(1, 3, 4\) of the part"),
    (lambda x: cg.rot90(x, 1, (0, 0)), "rot90: needs two different axes"),
    (lambda x: cg.fliplr(x[0, 0]), "fliplr: needs at least two axes"),
    (lambda x: cg.flipud(x[0, 0, 0]), "flipud: needs at least one axis"),
    (lambda x: cg.cov(x), "cov: x must have one variable a row"),
    (lambda x: cg.cov(x[0], fweights=x[0, 0]), "cov: fweights must hold integers"),
    (lambda x: cg.cov(x[0], aweights=-x[0, 0]), "cov: aweights cannot be negative"),
    (lambda x: cg.cov(x[0], aweights=x[0, 0, :2]), "cov: aweights must have one number for each of the 4 observations"),
    (lambda x: cg.nanvar(x, 4), "nanvar: axis 4 is out of range"),
    (lambda x: cg.broadcast_shapes((2,), (3,)), "broadcast_shapes: shapes .* do not broadcast"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=[str(i) for i in range(len(ERRORS))])
def test_errors_name_the_operation_and_the_values(call, message):
    with pytest.raises((TypeError, ValueError, IndexError), match=message):
        call(cg.tensor(X))


# ----------------------------------------------------------------------------------------------------------------- names
def test_other_spellings_are_the_same_functions():
    from cgrad.ops import aliases
    for name, spellings in aliases.NAMES.items():
        for spelling in spellings:
            assert getattr(cg, spelling) is getattr(cg, name), spelling
            if hasattr(cg.Tensor, name):
                assert hasattr(cg.Tensor, spelling), spelling


def test_other_keywords_are_accepted():
    x = cg.tensor(X)
    np.testing.assert_array_equal(array(cg.sum(input=x, dim=1, keepdim=True)), X.sum(1, keepdims=True))
    np.testing.assert_array_equal(array(x.mean(dim=(0, 1))), X.mean((0, 1)))
    np.testing.assert_array_equal(array(cg.add(x, other=x, alpha=2)), 3 * X)
    np.testing.assert_array_equal(array(cg.matmul(input=x, other=x.mT)), X @ X.swapaxes(1, 2))
    np.testing.assert_array_equal(array(cg.negative(input=x)), -X)
    np.testing.assert_array_equal(array(cg.where(x > 3, input=x, other=0)), np.where(X > 3, X, 0))
    with pytest.raises(TypeError):
        cg.sum(x, axis=0, dim=1)
