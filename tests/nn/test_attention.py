"""scaled_dot_product_attention against its definition in float64."""
import subprocess
import sys

import numpy as np
import pytest

import cgrad as cg
import cgrad.nn.functional as F


def drawn(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def weights(q, k, mask=None, causal=False, scale=None):
    """softmax(q @ k.T * scale + mask), 0 in a row that sees nothing."""
    scores = q @ np.swapaxes(k, -1, -2) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    largest = scores.max(-1, keepdims=True)
    p = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    total = p.sum(-1, keepdims=True)
    return p / np.where(total > 0, total, 1)


def expected(q, k, v, g, **options):
    """The result and the gradients of q, k and v, from the derivative of the definition."""
    q, k, v, g = (a.astype(np.float64) for a in (q, k, v, g))
    p = weights(q, k, **options)
    scale = options.get("scale") or 1 / np.sqrt(q.shape[-1])
    slopes = g @ np.swapaxes(v, -1, -2)
    slopes = p * (slopes - (slopes * p).sum(-1, keepdims=True)) * scale
    return p @ v, slopes @ k, np.swapaxes(slopes, -1, -2) @ q, np.swapaxes(p, -1, -2) @ g


# Sizes around a block of 128 queries and 256 keys and 256 columns, fewer and more problems than 16, few queries.
SHAPES = [((), 1, 1, 1, 1), ((2,), 3, 5, 4, 6), ((17,), 7, 9, 3, 2), ((2, 3), 130, 300, 16, 20), ((1,), 300, 520, 10, 300), ((2,), 2, 600, 260, 5),
          ((18,), 129, 257, 8, 3)]
OPTIONS = {"plain": {}, "causal": {"causal": True}, "scale": {"scale": 0.3}, "negative scale": {"scale": -0.7}, "bool mask": {"mask": "bool"},
           "float mask": {"mask": "float"}}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_values_and_all_gradients(shape, option, dtype):
    batch, n, m, width, out_width = shape
    options = dict(OPTIONS[option])
    if "mask" in options:
        options["mask"] = np.random.default_rng(5).random((n, m)) < 0.5 if options["mask"] == "bool" else drawn((n, m), dtype, 5)
    arrays = [drawn((*batch, *s), dtype, i) for i, s in enumerate([(n, width), (m, width), (m, out_width)])]
    g = drawn((*batch, n, out_width), dtype, 4)
    leaves = [cg.tensor(a, requires_grad=True) for a in arrays]
    mask = options.get("mask")
    y = F.scaled_dot_product_attention(*leaves, None if mask is None else cg.tensor(mask), is_causal=options.get("causal", False),
                                       scale=options.get("scale"))
    y.backward(cg.tensor(g))
    close = dict(rtol=2e-4, atol=3e-5) if dtype == np.float32 else dict(rtol=1e-11, atol=1e-12)
    for found, want in zip([y.detach(), *(x.grad for x in leaves)], expected(*arrays, g, **options), strict=True):
        np.testing.assert_allclose(found.numpy(), want, **close)
        assert found.dtype == dtype


MASK = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [0, 1, 1, 0, 1]], bool)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"attn_mask": MASK}, {"scale": -0.4}, {"enable_gqa": True}])
def test_derivatives_of_all_orders(options):
    options = {name: cg.tensor(value) if isinstance(value, np.ndarray) else value for name, value in options.items()}
    heads = ((4,), (2,), (2,)) if "enable_gqa" in options else ((2,), (2,), (2,))
    leaves = [cg.tensor(drawn((*h, *s), seed=i), requires_grad=True) for i, (h, s) in enumerate(zip(heads, [(3, 4), (5, 4), (5, 2)], strict=True))]
    function = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options)       # noqa: E731
    cg.autograd.gradcheck(function, leaves, check_forward_ad=True)
    cg.autograd.gradgradcheck(function, leaves)
    g = cg.tensor(drawn((heads[0][0], 3, 2), seed=9))
    for wanted in [(0,), (1,), (2,), (0, 2), (1, 2)]:
        some = [cg.tensor(x.detach(), requires_grad=i in wanted) for i, x in enumerate(leaves)]
        function(*some).backward(g)
        for i, (x, want) in enumerate(zip(some, cg.autograd.grad(function(*leaves), leaves, g, create_graph=True), strict=True)):
            if i in wanted:
                np.testing.assert_allclose(x.grad.numpy(), want.detach().numpy(), rtol=1e-11, atol=1e-12)
            else:
                assert x.grad is None


def test_the_gradient_of_a_mask():
    leaves = [cg.tensor(drawn(s, seed=i), requires_grad=True) for i, s in enumerate([(2, 3, 4), (2, 5, 4), (2, 5, 2), (3, 5)])]
    cg.autograd.gradcheck(F.scaled_dot_product_attention, leaves, check_forward_ad=True)
    cg.autograd.gradgradcheck(F.scaled_dot_product_attention, leaves)


@pytest.mark.parametrize("kind", ["bool", "float", "float with gradient"])
@pytest.mark.parametrize("order", [1, 2])
def test_a_query_that_sees_no_key_gives_zero(kind, order):
    q, k, v = (cg.tensor(drawn(s, seed=i), requires_grad=True) for i, s in enumerate([(3, 4), (5, 4), (5, 2)]))
    mask = cg.tensor(MASK) if kind == "bool" else cg.tensor(np.where(MASK, 0.0, -np.inf), requires_grad=kind != "float")
    y = F.scaled_dot_product_attention(q, k, v, mask)
    found = cg.autograd.grad((y * cg.tensor(drawn((3, 2), seed=3))).sum(), [q, k, v], create_graph=order == 2)
    for x, want in zip([y, *found], expected(*(a.detach().numpy() for a in (q, k, v)), drawn((3, 2), seed=3), mask=MASK), strict=True):
        np.testing.assert_allclose(x.detach().numpy(), want, rtol=1e-11, atol=1e-12)
    assert y[1].tolist() == [0.0, 0.0] and found[0][1].tolist() == [0.0] * 4


def test_a_nan_stays_in_its_row_and_is_not_lost():
    q, k, v = (drawn((300, 4), seed=i) for i in range(3))
    want = weights(q, k) @ v
    q[3, 1] = np.nan
    y = F.scaled_dot_product_attention(*map(cg.tensor, (q, k, v))).numpy()
    assert np.isnan(y[3]).all()
    np.testing.assert_allclose(np.delete(y, 3, 0), np.delete(want, 3, 0), rtol=1e-11)
    q[3, 1], k[0, 0] = 0.0, np.nan                      # in the first of two blocks of keys
    assert np.isnan(F.scaled_dot_product_attention(*map(cg.tensor, (q, k, v))).numpy()).all()


def test_large_scores_do_not_overflow():
    q, k, v = (drawn(s, np.float32, i) for i, s in enumerate([(3, 8), (600, 8), (600, 2)]))
    want = weights(q.astype(np.float64) * 300, k.astype(np.float64) * 30) @ v
    np.testing.assert_allclose(F.scaled_dot_product_attention(cg.tensor(q * 300), cg.tensor(k * 30), cg.tensor(v)).numpy(), want, rtol=1e-2, atol=1e-2)


def test_layouts_and_broadcasting():
    x = drawn((2, 6, 3, 4, 5))                          # batch, sequence, (q, k, v), heads, width: as a fused projection gives them
    xs = cg.tensor(x, requires_grad=True)
    y = F.scaled_dot_product_attention(*xs.permute(2, 0, 3, 1, 4))
    g = drawn((2, 6, 4, 5), seed=1)
    want = expected(*x.transpose(2, 0, 3, 1, 4), g.transpose(0, 2, 1, 3))
    np.testing.assert_allclose(y.detach().numpy(), want[0], rtol=1e-11, atol=1e-13)
    y.permute(0, 2, 1, 3).backward(cg.tensor(g))
    np.testing.assert_allclose(xs.grad.numpy(), np.stack(want[1:], 0).transpose(1, 3, 0, 2, 4), rtol=1e-11, atol=1e-13)
    q, k, v = drawn((3, 1, 6, 4)), drawn((2, 5, 4), seed=1), drawn((5, 3), seed=2)
    ks = cg.tensor(k, requires_grad=True)
    y = F.scaled_dot_product_attention(cg.tensor(q)[..., ::-1, ::-1], ks, cg.tensor(np.asfortranarray(v)))
    np.testing.assert_allclose(y.detach().numpy(), weights(q[..., ::-1, ::-1], k) @ v, rtol=1e-11, atol=1e-13)
    y.sum().backward()
    assert ks.grad.shape == k.shape
    for mask in (np.array([True, False, True, True, False]), np.arange(6)[:, None] > 1, drawn((2, 1, 1)), drawn((3, 1, 6, 5))):
        y = F.scaled_dot_product_attention(cg.tensor(q), cg.tensor(k), cg.tensor(v), cg.tensor(mask))
        np.testing.assert_allclose(y.numpy(), weights(q, k, mask) @ v, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(("heads", "key_heads", "value_heads"), [(6, 2, 2), (6, 1, 1), (6, 2, 3), (4, 4, 2)])
def test_grouped_queries(heads, key_heads, value_heads):
    q, k, v = drawn((2, heads, 3, 4)), drawn((2, key_heads, 5, 4), seed=1), drawn((2, value_heads, 5, 3), seed=2)
    for mask in (None, drawn((heads, 1, 5), seed=3), drawn((3, 5), seed=3), drawn((2, 1, 3, 5), seed=3)):
        y = F.scaled_dot_product_attention(cg.tensor(q), cg.tensor(k), cg.tensor(v), None if mask is None else cg.tensor(mask), enable_gqa=True)
        want = weights(q, k.repeat(heads // key_heads, 1), mask) @ v.repeat(heads // value_heads, 1)
        np.testing.assert_allclose(y.numpy(), want, rtol=1e-11, atol=1e-13)


def test_dropout_scales_what_it_keeps():
    q, k, v = (cg.tensor(drawn(s, seed=i), requires_grad=True) for i, s in enumerate([(50, 4), (40, 4), (40, 40)]))
    y = F.scaled_dot_product_attention(q, k, cg.eye(40, dtype=cg.float64), dropout_p=0.25)
    want = weights(q.detach().numpy(), k.detach().numpy())
    kept = y.detach().numpy() != 0
    np.testing.assert_allclose(y.detach().numpy()[kept], want[kept] / 0.75, rtol=1e-11)
    assert 0.65 < kept.mean() < 0.85
    F.scaled_dot_product_attention(q, k, v, dropout_p=0.25).sum().backward()
    assert q.grad.shape == q.shape


@pytest.mark.parametrize("sizes", [(0, 3, 4, 2), (3, 0, 4, 2), (3, 5, 0, 2), (3, 5, 4, 0)])
def test_empty_operands(sizes):
    n, m, width, out_width = sizes
    q, k, v = (cg.tensor(drawn(s), requires_grad=True) for s in [(2, n, width), (2, m, width), (2, m, out_width)])
    for mask in (None, cg.ones((n, m), dtype=cg.bool)):
        y = F.scaled_dot_product_attention(q, k, v, mask)
        want = np.broadcast_to(v.detach().numpy().mean(1, keepdims=True), (2, n, out_width)) if not width else np.zeros((2, n, out_width))
        np.testing.assert_allclose(y.detach().numpy(), want, rtol=1e-12)
        y.sum().backward()


@pytest.mark.parametrize("axes", [(0, 0, 0, 0), (0, None, None, None), (None, 0, 1, None), (None, None, None, 0)])
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_a_batch_of_calls(axes, kind):
    arrays = [drawn((2, 3, 4)), drawn((2, 5, 4), seed=1), drawn((2, 5, 3), seed=2), drawn((3, 5), seed=3)]
    arrays = [a if axis is None else np.stack([a, a + 1, a * 2], axis) for a, axis in zip(arrays, axes, strict=True)]
    if kind == "bool":
        arrays[3] = arrays[3] < 0.5
    function = lambda *a: F.scaled_dot_product_attention(*a)       # noqa: E731
    y = cg.func.vmap(function, in_dims=axes)(*map(cg.tensor, arrays))
    g = cg.func.vmap(cg.func.grad(lambda *a: (function(*a) ** 2).sum(), argnums=(0, 1, 2)), in_dims=axes)(*map(cg.tensor, arrays))
    for i in range(3):
        *one, mask = [a if axis is None else np.take(a, i, axis) for a, axis in zip(arrays, axes, strict=True)]
        out = weights(one[0], one[1], mask) @ one[2]
        np.testing.assert_allclose(y[i].numpy(), out, rtol=1e-11, atol=1e-12)
        for found, want in zip(g, expected(*one, 2 * out, mask=mask)[1:], strict=True):
            np.testing.assert_allclose(found[i].numpy(), want, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("batch", [1, 20])
def test_threads_do_not_change_bits(batch):
    before, found = cg.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            cg.set_num_threads(threads)
            leaves = [cg.tensor(drawn((batch, 300, 24), np.float32, i), requires_grad=True) for i in range(3)]
            y = F.scaled_dot_product_attention(*leaves, is_causal=True)
            y.backward(cg.tensor(drawn((batch, 300, 24), np.float32, 5)))
            found.append([y.detach().numpy(), *(x.grad.numpy() for x in leaves)])
    finally:
        cg.set_num_threads(before)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_scores_are_never_whole_in_memory():
    """Forward and backward of 5000 queries and keys, whose scores would take 100 MB, need a few."""
    code = """if True:
        import re
        import cgrad as cg
        def resident(field):
            return int(re.search(field + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
        q, k, v = (cg.randn(5000, 16, requires_grad=True) for _ in range(3))
        attend = cg.nn.functional.scaled_dot_product_attention
        attend(q[:300], k[:300], v[:300]).sum().backward()
        before = resident("VmRSS")
        attend(q, k, v).sum().backward()
        print(resident("VmHWM") - before)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 25


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda f, x: f(x, x[:, :3], x), ValueError, r"same last axis.*\(5, 4\).*\(5, 3\)"),
    (lambda f, x: f(x, x, x[:4]), ValueError, r"second-last.*\(4, 4\)"),
    (lambda f, x: f(x[0], x, x), ValueError, r"two axes.*\(4,\)"),
    (lambda f, x: f(cg.ones((2, 5, 4)), cg.ones((3, 5, 4)), x), ValueError, r"do not broadcast"),
    (lambda f, x: f(x, x, x, cg.ones((4, 5), dtype=cg.bool)), ValueError, r"attn_mask must broadcast to the shape \(5, 5\).*\(4, 5\)"),
    (lambda f, x: f(x, x, x, cg.ones((2, 5, 5))), ValueError, "attn_mask must broadcast"),
    (lambda f, x: f(x, x, x, cg.ones((5, 5), dtype=cg.int64)), TypeError, "bool or floating point, got .*int64"),
    (lambda f, x: f(x, x, x, cg.ones((5, 5)), is_causal=True), ValueError, "is_causal=True"),
    (lambda f, x: f(x, x, cg.ones((5, 4), dtype=cg.int32)), TypeError, "floating point, got .*int32"),
    (lambda f, x: f(cg.ones((3, 5, 4)), cg.ones((2, 5, 4)), cg.ones((2, 5, 4)), enable_gqa=True), ValueError, "multiple"),
])
def test_errors_name_the_shapes(call, error, words):
    with pytest.raises(error, match=f"scaled_dot_product_attention.*{words}"):
        call(F.scaled_dot_product_attention, cg.ones((5, 4)))
