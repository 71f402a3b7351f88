"""``out=``: which functions take it, and that what they write is right, recorded and refused where it must be."""
import inspect
import sys
from pathlib import Path

import numpy as np
import pytest

import cgrad as cg
from cgrad.core.door import Door
from cgrad.func import grad, hessian, jvp, vmap
from cgrad.ops.out import NO_OUT

sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "ops")]
from network_cases import ROWS  # noqa: E402
from test_completeness import public, resolve  # noqa: E402
from test_ops import array, as_tuple, call_cgrad, constant, cotangents_of, rng_for, scalar, split  # noqa: E402


def takes_out(f):
    return f.takes_out if isinstance(f, Door) else hasattr(f, "primitive")


FUNCTIONS = {name: f for name, f in public() if (isinstance(f, Door) and f.knows_out or hasattr(f, "primitive")) and not name.startswith("Tensor.")}
TAKERS = [row for row in ROWS if takes_out(resolve(row.name)) and row.function in (None, resolve(row.name))]
OTHERS = [row for row in ROWS if getattr(resolve(row.name), "knows_out", False) and not takes_out(resolve(row.name)) and not row.function]


def by_name(rows):
    return pytest.mark.parametrize("row", rows, ids=[row.name for row in rows])


# ------------------------------------------------------------------------------------------------------------------- rule
def test_every_function_of_tensors_takes_out_or_says_why_not():
    for name, f in FUNCTIONS.items():
        shown = "out" in inspect.signature(f).parameters
        assert shown == takes_out(f) == (f.__name__ not in NO_OUT), name
        if shown:
            out = inspect.signature(f).parameters["out"]
            assert out.default is None and out.kind is out.KEYWORD_ONLY, name
            assert "\nout : Tensor, optional\n" in inspect.getdoc(f), name
    assert not set(NO_OUT) - {f.__name__ for f in FUNCTIONS.values()}, "a reason is given for what is no function"


def test_nothing_else_takes_out():
    for name, f in public():
        if name not in FUNCTIONS and getattr(cg, name.removeprefix("Tensor."), None) is not f:
            assert "out" not in inspect.signature(f).parameters, name


@by_name(TAKERS)
def test_the_result_is_written_with_its_gradient(row):
    f = resolve(row.name)
    for sample in row.samples[:3]:
        values, put = split(sample, rng_for(row))
        xs = [cg.tensor(v, requires_grad=row.differentiable) for v in values]
        want = call_cgrad(row, sample, xs, put)
        outs = tuple([cg.ones(y.shape, dtype=y.dtype) for y in want])
        several = isinstance(f(*put(xs, constant), **sample.kwargs), tuple)
        back = f(*put(xs, constant), **sample.kwargs, out=outs if several else outs[0])
        assert all(a is b for a, b in zip(as_tuple(back), outs, strict=True))
        for a, b in zip(outs, want):
            np.testing.assert_array_equal(array(a), array(b))
            assert a.requires_grad == b.requires_grad and a._version == 1
        if row.differentiable:
            cotangents = cotangents_of(want, rng_for(row, 1))
            if any(y.requires_grad for y in want):
                for a, b in zip(cg.autograd.grad(scalar(outs, cotangents), xs, allow_unused=True),
                                cg.autograd.grad(scalar(want, cotangents), xs, allow_unused=True)):
                    assert (a is None) == (b is None)
                    if a is not None:
                        np.testing.assert_array_equal(array(a), array(b))


@by_name(OTHERS)
def test_the_reason_is_true(row):
    reason = NO_OUT[resolve(row.name).__name__]
    seen = set()
    for sample in row.samples:
        values, put = split(sample, rng_for(row))
        xs = [cg.tensor(v) for v in values]
        operands = put(xs, constant)
        flat = [x for a in operands for x in (a if isinstance(a, list) else [a]) if isinstance(x, cg.Tensor)]
        for y in as_tuple(row.call(*operands, **sample.kwargs)):
            shared = isinstance(y, cg.Tensor) and any(y.size and np.shares_memory(y.numpy(), x.numpy()) for x in flat)
            seen.add("view" if shared else "new" if isinstance(y, cg.Tensor) else "none")
    wanted = {"gives a view": "view", "gives no tensor": "none", "writes into": "new", "is a copy": "new", "makes a tensor": "new"}
    assert next(word for start, word in wanted.items() if reason.startswith(start)) in seen
    with pytest.raises(TypeError, match=f"{resolve(row.name).__name__}: takes no out=, since it"):
        row.call(*operands, **sample.kwargs, out=cg.zeros(1))


# ----------------------------------------------------------------------------------------------------------------- writing
def leaf(*values):
    return cg.tensor(list(values), dtype=cg.float64, requires_grad=True)


@pytest.mark.parametrize("tracked", [False, True])
def test_operands_in_the_memory_of_out(tracked):
    """Everything is read before anything is written, and rules keep what it was."""
    def check(write, want):
        x = leaf(1, 2, 3, 4, 5)
        y = x * 1 if tracked else x.detach().clone()
        got = write(y)
        np.testing.assert_allclose(array(got), want(np.arange(1.0, 6)), rtol=1e-15)
        if tracked:
            weights = np.arange(1.0, got.size + 1).reshape(got.shape)
            g, = cg.autograd.grad((got * weights).sum(), x)
            steps = np.eye(5) * 1e-20j
            np.testing.assert_allclose(g.numpy(), [np.imag((want(np.arange(1.0, 6) + s) * weights).sum()) / 1e-20 for s in steps], rtol=1e-14)

    check(lambda y: cg.multiply(y, y, out=y), lambda x: x * x)
    check(lambda y: cg.exp(y, out=y), np.exp)
    check(lambda y: cg.divide(1.0, y, out=y), lambda x: 1 / x)
    check(lambda y: cg.multiply(y[1:], y[:-1], out=y[1:]), lambda x: x[1:] * x[:-1])
    check(lambda y: cg.multiply(y[:-1], y[1:], out=y[1:]), lambda x: x[1:] * x[:-1])
    check(lambda y: cg.sin(y[::-1], out=y), lambda x: np.sin(x[::-1]))
    check(lambda y: cg.concat([y[2:], y[:2]], out=y), lambda x: np.concatenate([x[2:], x[:2]]))
    check(lambda y: cg.cumulative_prod(y, out=y), np.cumprod)
    check(lambda y: cg.outer(y[:2], y[3:], out=y[:4].reshape(2, 2)), lambda x: np.outer(x[:2], x[3:]))
    check(lambda y: cg.where(cg.tensor([True, False, True, False, True]), y[::-1], y, out=y), lambda x: np.where([1, 0, 1, 0, 1], x[::-1], x))
    check(lambda y: cg.addcmul(y, y, y, value=0.5, out=y), lambda x: x + 0.5 * x * x)
    check(lambda y: np.multiply(y, y, out=y), lambda x: x * x)
    check(lambda y: np.multiply(y, y, out=y, where=np.array([True, False, True, True, False])), lambda x: np.where([1, 0, 1, 1, 0], x * x, x))
    check(lambda y: np.prod(y, axis=0, keepdims=True, out=y[:1]), lambda x: x.prod(keepdims=True))


def test_a_view_as_out_writes_into_its_base():
    x = leaf(2, 3)
    buffer = cg.zeros(2, 2, dtype=cg.float64)
    row = buffer[1]
    assert cg.multiply(x, x, out=row) is row
    assert buffer.tolist() == [[0, 0], [4, 9]] and buffer.requires_grad
    buffer.sum().backward()
    assert x.grad.tolist() == [4, 6]


def test_out_takes_the_history_of_the_result_and_leaves_its_own():
    x, y = leaf(1, 2), leaf(3, 4)
    out = y * 2
    cg.square(x, out=out)
    gx, gy = cg.autograd.grad(out.sum(), (x, y), allow_unused=True, retain_graph=True)
    assert gx.tolist() == [2, 4] and gy is None
    cg.square(cg.tensor([1.0, 2.0], dtype=cg.float64), out=out)       # no slope either
    gx, gy = cg.autograd.grad(out.sum(), (x, y), allow_unused=True)
    assert all(g is None or g.tolist() == [0, 0] for g in (gx, gy))


def test_a_value_saved_from_out_is_known_to_be_overwritten():
    x = leaf(1, 2)
    out = x * 2
    y = out * out
    cg.exp(x, out=out)
    assert out._version == 1
    with pytest.raises(RuntimeError, match=r"multiply: a tensor of shape \(2,\) that was saved for backward .* changed in place by exp in"):
        y.sum().backward()


def test_a_leaf_that_requires_grad_is_refused_while_operations_are_recorded():
    x = leaf(1, 2)
    for write in (lambda: cg.exp(cg.ones(2), out=x), lambda: cg.exp(x, out=x), lambda: cg.exp(cg.ones(1), out=x[:1]), lambda: cg.sum(x, out=x[0])):
        with pytest.raises(RuntimeError, match="leaf tensor that requires grad cannot be changed in place while operations are recorded"):
            write()
    assert x.tolist() == [1, 2] and x._version == 0
    with cg.no_grad():
        assert cg.multiply(x, 3, out=x) is x
    assert x.tolist() == [3, 6] and x.is_leaf and x.requires_grad


def test_an_operand_handed_back_keeps_its_history():
    x = leaf(1, 2)
    for f in (cg.positive, lambda x, out: cg.nan_to_num(x, out=out), lambda x, out: cg.einsum("i->i", x, out=out), lambda x, out: cg.diag(x[None], out=out)):
        y = x.exp()
        out = cg.zeros_like(f(y, out=None)).detach()
        f(y, out=out)
        np.testing.assert_array_equal(cg.autograd.grad(out.sum(), x, retain_graph=True)[0].numpy(),
                                      cg.autograd.grad(f(y, out=None).sum(), x)[0].numpy())
        f(x, out=out)
        assert out.requires_grad and out.grad_fn is not None


def test_what_differentiates_maps_and_watches_goes_through_it():
    x = cg.tensor([1.0, 2.0], dtype=cg.float64)

    def f(x):
        return cg.multiply(x, x * x, out=cg.zeros_like(x))
    np.testing.assert_allclose(jvp(f, (x,), (cg.ones_like(x),))[1].numpy(), [3, 12])
    np.testing.assert_allclose(grad(lambda x: f(x).sum())(x).numpy(), [3, 12])
    np.testing.assert_allclose(hessian(lambda x: f(x).sum())(x).numpy(), [[6, 0], [0, 12]])
    np.testing.assert_allclose(vmap(f)(x).numpy(), [1, 8])
    np.testing.assert_allclose(vmap(grad(f))(x).numpy(), [3, 12])
    with pytest.raises(RuntimeError, match="vmap: a batched value cannot be written in place into a tensor of shape"):
        vmap(lambda v: cg.exp(v, out=cg.zeros((), dtype=cg.float64)))(x)


def test_methods_take_it_and_methods_in_place_do_not():
    x, out = cg.tensor([1.0, 2.0]), cg.zeros(2)
    assert x.add(1, out=out) is out and x.cumulative_sum(axis=0, out=out) is out and out.tolist() == [1, 3]
    for method in ("add_", "exp_", "clip_", "index_add_"):
        assert "out" not in inspect.signature(getattr(x, method)).parameters
    with pytest.raises(TypeError, match="add_: takes no out=, since it writes into the tensor itself"):
        x.add_(1, out=out)


def test_other_spellings_beside_it():
    x, out = cg.tensor([[1.0, 2.0], [3.0, 4.0]]), cg.zeros(2)
    assert cg.sum(x, dim=0, out=out).tolist() == [4, 6]
    assert cg.sum(input=x, dim=1, out=out).tolist() == [3, 7]
    assert cg.add(input=x[0], other=x[1], alpha=2, out=out).tolist() == [7, 10]
    assert cg.divide(x[1], x[0], rounding_mode="floor", out=out).tolist() == [3, 2]
    assert cg.lerp(x[0], x[1], 0.5, out=out).tolist() == [2, 3]
    assert cg.sum(x, axis=0, out=None).tolist() == [4, 6] and cg.where(x > 2, x, 0, out=None).tolist() == [[0, 0], [3, 4]]


# ----------------------------------------------------------------------------------------------------------------- dtypes
DTYPES = [cg.bool, cg.uint8, cg.uint16, cg.uint32, cg.uint64, cg.int8, cg.int16, cg.int32, cg.int64, cg.float16, cg.float32, cg.float64]


@pytest.mark.parametrize("made", DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("there", DTYPES, ids=lambda d: d.name)
def test_dtypes_are_cast_within_their_kind(made, there):
    x, out = cg.tensor([1, 0]).astype(made), cg.zeros(2, dtype=there)
    for compute in (lambda out: cg.maximum(x, x, out=out), lambda out: cg.roll(x, 1, out=out)):
        if np.can_cast(made.name, there.name, "same_kind"):
            assert compute(out) is out and out.tolist() == compute(None).tolist() and out.dtype is there
        else:
            with pytest.raises(TypeError, match=f": a result of {made.name} cannot be written into out= of {there.name}"):
                compute(out)


def test_a_cast_is_recorded():
    x = leaf(1, 2)
    out = cg.zeros(2)
    cg.square(x, out=out)
    out.sum().backward()
    assert out.dtype is cg.float32 and x.grad.dtype is cg.float64 and x.grad.tolist() == [2, 4]


# ----------------------------------------------------------------------------------------------------------------- refusals
def test_what_does_not_fit_is_named_and_nothing_is_written():
    x, out = cg.tensor([[1.0, 2.0, 3.0]]), cg.full((3,), 7.0)
    for call, error, words in [
        (lambda: cg.exp(x, out=out), ValueError,
         r"exp: the result has shape \(1, 3\), out= has \(3,\); give a tensor of the result's shape, such as cgrad.empty\(\(1, 3\), dtype=cgrad.float32\)"),
        (lambda: cg.add(x, x, out=cg.zeros(2, 3)), ValueError, r"add: the result has shape \(1, 3\), out= has \(2, 3\)"),
        (lambda: cg.sum(x, out=out), ValueError, r"sum: the result has shape \(\), out= has \(3,\)"),
        (lambda: cg.exp(x, out=np.zeros((1, 3))), TypeError, r"exp: out= must be a Tensor, got ndarray; cgrad.from_numpy\(array\)"),
        (lambda: cg.sum(x, out=3), TypeError, "sum: out= must be a Tensor, got int"),
        (lambda: cg.sum(x, out=()), TypeError, "sum: gives one result, so out= must be one tensor, got a tuple of 0"),
        (lambda: cg.aminmax(x, out=out), TypeError, "aminmax: gives 2 results, so out= must be a tuple of as many tensors, got one tensor"),
        (lambda: cg.topk(x, 2, out=(out,)), TypeError, "topk: gives 2 results, so out= must be a tuple of as many tensors, got a tuple of 1"),
        (lambda: cg.std_mean(x, out=(cg.zeros(()), out)), ValueError, r"std_mean: the result has shape \(\), out= has \(3,\)"),
        (lambda: cg.exp(cg.ones(3), out=cg.zeros(1).expand(3)), RuntimeError, "exp: the tensor has several elements in one place"),
        (lambda: cg.exp(cg.ones(3), out=cg.from_numpy(np.broadcast_to(np.ones(3), 3))), Exception, "read-only"),
        (lambda: cg.exp(x, 1, out=out), TypeError, "argument"),
        (lambda: cg.sum(x, nothing=1, out=out), TypeError, "nothing"),
        (lambda: cg.add(cg.ones(2), cg.ones(5), out=out), ValueError, "do not broadcast"),
    ]:
        with pytest.raises(error, match=words):
            call()
    assert out.tolist() == [7, 7, 7] and out._version == 0


def test_several_results():
    x = leaf(3, 1, 2)
    values, places = cg.zeros(2, dtype=cg.float64), cg.zeros(2, dtype=cg.int64)
    found = cg.topk(x, 2, out=(values, places))
    assert type(found) is type(cg.topk(x, 2)) and found.values is values and found.indices is places
    assert values.tolist() == [3, 2] and places.tolist() == [0, 2]
    (values * cg.tensor([10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [10, 0, 100]
    buffer = cg.zeros(2, 2, 2, dtype=cg.float64)
    matrix = leaf(2, 1, 1, 3)
    q, r = cg.linalg.qr(matrix.reshape(2, 2), out=(buffer[0], buffer[1]))
    np.testing.assert_allclose((q @ r).detach().numpy(), [[2, 1], [1, 3]])
    g, = cg.autograd.grad((q @ r).sum(), matrix)
    np.testing.assert_allclose(g.numpy(), np.ones(4), atol=1e-14)


def test_large_results_are_computed_in_place():
    """No block of the size of the result is taken where the operation can write at once."""
    x, out = cg.ones(1 << 20), cg.zeros(1 << 20)
    cg.memory.trim()
    before = cg.memory.stats()["live_bytes"]
    cg.memory.reset_peak()
    cg.add(x, x, out=out)
    cg.exp(x, out=out)
    cg.multiply(out, 2.0, out=out)
    assert cg.memory.stats()["peak_bytes"] - before < x.nbytes and out._version == 3
