"""MultiheadAttention and transformers, written out in NumPy; bilinear forms; bags of rows."""
from itertools import pairwise

import numpy as np
import pytest

import cgrad as cg
import cgrad.nn.functional as F
from cgrad import nn


def drawn(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def heads_of(x, heads):
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def multihead(layer, q, k, v, bias=0.0):
    """(result, weights of each head) of float64 arrays (batch, length, width); `bias` is added to the scores."""
    p = {name: x.numpy() for name, x in layer.state_dict().items()}
    e = layer.embed_dim
    if "in_proj_weight" in p:
        weights = np.split(p["in_proj_weight"], 3)
    else:
        weights = [p[name + "_proj_weight"] for name in "qkv"]
    biases = np.split(p.get("in_proj_bias", np.zeros(3 * e)), 3)
    q, k, v = (x @ w.T + b for x, w, b in zip((q, k, v), weights, biases, strict=True))
    if "bias_k" in p:
        k, v = (np.concatenate([x, np.broadcast_to(p[name], (len(x), 1, e))], 1) for x, name in ((k, "bias_k"), (v, "bias_v")))
    if layer.add_zero_attn:
        k, v = (np.concatenate([x, np.zeros((len(x), 1, e))], 1) for x in (k, v))
    q, k, v = (heads_of(x, layer.num_heads) for x in (q, k, v))
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    scores[..., :np.shape(bias)[-1] if np.ndim(bias) else None] += bias
    w = softmax(scores)
    out = (w @ v).transpose(0, 2, 1, 3).reshape(len(q), q.shape[2], e)
    return out @ p["out_proj.weight"].T + p.get("out_proj.bias", 0.0), w


def close(found, want, **options):
    np.testing.assert_allclose(found.detach().numpy(), want, **(options or dict(rtol=1e-11, atol=1e-12)))


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"kdim": 5, "vdim": 3}, {"add_bias_kv": True}, {"add_zero_attn": True, "add_bias_kv": True},
                                     {"batch_first": True}])
@pytest.mark.parametrize("kind", ["plain", "bool masks", "float masks", "mixed masks"])
def test_multihead_attention(options, kind):
    layer = nn.MultiheadAttention(8, 2, dtype=cg.float64, **options)
    for name in ("in_proj_bias", "bias_k"):
        if getattr(layer, name) is not None:
            nn.init.normal_(getattr(layer, name))
    q, k, v = drawn((3, 4, 8)), drawn((3, 6, layer.kdim), seed=1), drawn((3, 6, layer.vdim), seed=2)
    rng = np.random.default_rng(3)
    masks, bias = {}, 0.0
    if kind != "plain":
        padding, attn = rng.random((3, 6)) < 0.3, rng.random((4, 6)) < 0.3
        padding[:, 0] = attn[:, 0] = False
        bias = np.where(padding[:, None, None] | attn, -np.inf, 0.0)
        if kind == "float masks":
            padding, attn = drawn((3, 6), seed=4), drawn((6, 4, 6), seed=5)
            bias = padding[:, None, None] + attn.reshape(3, 2, 4, 6)
        elif kind == "mixed masks":
            attn = np.where(attn, -np.inf, 0.0)
        masks = {"key_padding_mask": cg.tensor(padding), "attn_mask": cg.tensor(attn)}
    want, weights = multihead(layer, q, k, v, bias)
    inputs = [cg.tensor(x if layer.batch_first else x.swapaxes(0, 1)) for x in (q, k, v)]
    for more, w in (({}, weights.mean(1)), ({"average_attn_weights": False}, weights), ({"need_weights": False}, None)):
        out, found = layer(*inputs, **masks, **more)
        close(out, want if layer.batch_first else want.swapaxes(0, 1))
        assert (found is None) == (w is None)
        if w is not None:
            close(found, w)


def test_self_attention_and_shared_keys_use_the_packed_projection():
    layer = nn.MultiheadAttention(8, 2, batch_first=True, dtype=cg.float64)
    x, y = drawn((3, 4, 8)), drawn((3, 5, 8), seed=1)
    xs, ys = cg.tensor(x, requires_grad=True), cg.tensor(y)
    close(layer(xs, xs, xs)[0], multihead(layer, x, x, x)[0])
    close(layer(xs, ys, ys)[0], multihead(layer, x, y, y)[0])
    close(layer(xs[0], xs[0], xs[0])[0], multihead(layer, x, x, x)[0][0])
    causal = nn.Transformer.generate_square_subsequent_mask(4, dtype=cg.float64)
    want = multihead(layer, x, x, x, causal.numpy())[0]
    for need_weights in (True, False):
        close(layer(xs, xs, xs, attn_mask=causal, is_causal=True, need_weights=need_weights)[0], want)
    layer(xs, xs, xs, need_weights=False)[0].sum().backward()
    assert xs.grad.shape == x.shape and layer.in_proj_weight.grad.shape == (24, 8)
    assert list(layer.state_dict()) == ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"]


def layer_norm(x, layer):
    m = x.mean(-1, keepdims=True)
    return (x - m) / np.sqrt(((x - m) ** 2).mean(-1, keepdims=True) + layer.eps) * layer.weight.detach().numpy() + layer.bias.detach().numpy()


def affine(x, layer):
    return x @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()


@pytest.mark.parametrize("norm_first", [False, True])
def test_transformer(norm_first):
    model = nn.Transformer(8, 2, 2, 2, 12, dropout=0.0, norm_first=norm_first, batch_first=True, dtype=cg.float64)

    def run(layer, x, memory=None, bias=0.0):
        blocks = [lambda x: multihead(layer.self_attn, x, x, x, bias)[0]]
        if memory is not None:
            blocks.append(lambda x: multihead(layer.multihead_attn, x, memory, memory)[0])
        blocks.append(lambda x: affine(np.maximum(affine(x, layer.linear1), 0), layer.linear2))
        for i, block in enumerate(blocks, 1):
            norm = getattr(layer, f"norm{i}")
            x = x + block(layer_norm(x, norm)) if norm_first else layer_norm(x + block(x), norm)
        return x

    src, tgt = drawn((3, 7, 8)), drawn((3, 5, 8), seed=1)
    causal = model.generate_square_subsequent_mask(5, dtype=cg.float64)
    memory = src
    for layer in model.encoder.layers:
        memory = run(layer, memory)
    memory = layer_norm(memory, model.encoder.norm)
    want = tgt
    for layer in model.decoder.layers:
        want = run(layer, want, memory, causal.numpy())
    want = layer_norm(want, model.decoder.norm)
    for is_causal in (False, True):
        out = model(cg.tensor(src), cg.tensor(tgt), tgt_mask=causal, tgt_is_causal=is_causal)
        close(out, want, rtol=1e-9, atol=1e-10)
    out.sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    names = [name for name in model.state_dict() if name.startswith("decoder.layers.1.")]
    assert names[:2] == ["decoder.layers.1.self_attn.in_proj_weight", "decoder.layers.1.self_attn.in_proj_bias"] and len(names) == 18


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: nn.MultiheadAttention(7, 2), ValueError, "embed_dim=7.*num_heads=2"),
    (lambda: nn.MultiheadAttention(8, 2)(*[cg.ones(8)] * 3), ValueError, r"2 axes.*\(8,\)"),
    (lambda: nn.MultiheadAttention(8, 2)(*[cg.ones((4, 3, 8))] * 3, is_causal=True), ValueError, "needs it"),
    (lambda: nn.MultiheadAttention(8, 2)(*[cg.ones((4, 3, 8))] * 3, key_padding_mask=cg.ones((4, 3))), ValueError, r"key_padding_mask.*\(3, 4\).*\(4, 3\)"),
    (lambda: nn.MultiheadAttention(8, 2)(*[cg.ones((4, 3, 8))] * 3, attn_mask=cg.ones((4, 3))), ValueError, r"attn_mask.*\(4, 4\)"),
    (lambda: nn.TransformerEncoderLayer(8, 2, activation="tanh"), ValueError, "'relu' or 'gelu'"),
    (lambda: F.bilinear(cg.ones((2, 3)), cg.ones((3, 4)), cg.ones((5, 3, 4))), ValueError, "bilinear"),
    (lambda: nn.Bilinear(0, 3, 4), ValueError, "in1_features"),
    (lambda: F.embedding_bag(cg.tensor([1, 2]), cg.ones((3, 2))), ValueError, "offsets"),
    (lambda: F.embedding_bag(cg.tensor([[1, 2]]), cg.ones((3, 2)), cg.tensor([0])), ValueError, "offsets must be None"),
    (lambda: F.embedding_bag(cg.tensor([1, 2]), cg.ones((3, 2)), cg.tensor([1])), ValueError, r"start at 0.*\[1\]"),
    (lambda: F.embedding_bag(cg.tensor([1, 2]), cg.ones((3, 2)), cg.tensor([0, 3])), ValueError, "at most 2"),
    (lambda: F.embedding_bag(cg.tensor([1, 5]), cg.ones((3, 2)), cg.tensor([0])), IndexError, "index 5"),
    (lambda: F.embedding_bag(cg.tensor([[1, 2]]), cg.ones((3, 2)), mode="median"), ValueError, "'median'"),
    (lambda: F.embedding_bag(cg.tensor([[1, 2]]), cg.ones((3, 2)), per_sample_weights=cg.ones((1, 2))), ValueError, "mode 'sum'"),
])
def test_errors_say_what_was_wrong(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("batch", [(), (4,), (2, 3), (0,)])
def test_bilinear(batch):
    x, y, w, b = drawn((*batch, 3)), drawn((*batch, 2), seed=1), drawn((4, 3, 2), seed=2), drawn(4, seed=3)
    leaves = [cg.tensor(a, requires_grad=True) for a in (x, y, w, b)]
    close(F.bilinear(*leaves), np.einsum("...i,oij,...j->...o", x, w, y) + b)
    close(F.bilinear(*leaves[:3]), np.einsum("...i,oij,...j->...o", x, w, y))
    cg.autograd.gradcheck(F.bilinear, leaves, check_forward_ad=True)
    cg.autograd.gradgradcheck(F.bilinear, leaves)
    layer = nn.Bilinear(3, 2, 4, dtype=cg.float64)
    assert list(layer.state_dict()) == ["weight", "bias"] and abs(layer.weight.detach().numpy()).max() <= 3**-0.5
    assert layer(leaves[0], leaves[1]).shape == (*batch, 4) and nn.Bilinear(3, 2, 4, bias=False).bias is None


INDEX, OFFSETS = [1, 4, 0, 2, 2, 5, 1, 3], [0, 3, 3, 7]
BAGS = [INDEX[0:3], [], INDEX[3:7], INDEX[7:]]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2, -2])
@pytest.mark.parametrize("last", [False, True])
def test_bags_with_offsets(mode, padding, last):
    table = drawn((6, 3))
    left = [[i for i in bag if padding is None or i != padding % 6] for bag in BAGS]
    want = [getattr(table[bag], mode)(0) if bag else np.zeros(3) for bag in left]
    weight = cg.tensor(table, requires_grad=True)
    offsets = cg.tensor(OFFSETS + [8] * last)

    def function(weight):
        return F.embedding_bag(cg.tensor(INDEX), weight, offsets, mode=mode, include_last_offset=last, padding_idx=padding)
    close(function(weight), want)
    cg.autograd.gradcheck(function, [weight], check_forward_ad=True)
    cg.autograd.gradgradcheck(function, [weight])


def test_bags_in_rows_weights_and_the_layer():
    table, index, factors = drawn((6, 3)), np.array([[1, 2, 2], [0, 5, 1]]), drawn((2, 3), seed=1)
    leaves = [cg.tensor(table, requires_grad=True), cg.tensor(factors, requires_grad=True)]
    function = lambda table, factors: F.embedding_bag(cg.tensor(index), table, mode="sum", per_sample_weights=factors)      # noqa: E731
    close(function(*leaves), (table[index] * factors[..., None]).sum(1))
    cg.autograd.gradcheck(function, leaves, check_forward_ad=True)
    cg.autograd.gradgradcheck(function, leaves)
    for mode in ("sum", "mean", "max"):
        layer = nn.EmbeddingBag(6, 3, mode=mode, dtype=cg.float64, padding_idx=-1)
        assert layer.weight[5].tolist() == [0.0] * 3
        numbers = layer.weight.detach().numpy()
        close(layer(cg.tensor(index[:1])), getattr(numbers[index[:1]], mode)(1))
    assert repr(layer) == "EmbeddingBag(6, 3, mode='max')"
    assert F.embedding_bag(cg.zeros((0, 4), dtype=cg.int64), leaves[0]).shape == (0, 3)
    assert F.embedding_bag(cg.zeros((2, 0), dtype=cg.int64), leaves[0]).tolist() == [[0.0] * 3] * 2


def test_weighted_bags_skip_padding_even_where_it_is_not_finite():
    table, factors = drawn((6, 3)), drawn(8, seed=1)
    table[2] = np.nan
    leaves = [cg.tensor(table, requires_grad=True), cg.tensor(factors, requires_grad=True)]
    out = F.embedding_bag(cg.tensor(INDEX), leaves[0], cg.tensor(OFFSETS), mode="sum", per_sample_weights=leaves[1], padding_idx=2)
    kept = [[(i, factors[k]) for k, i in enumerate(INDEX) if i != 2 and start <= k < stop] for start, stop in zip(OFFSETS, [*OFFSETS[1:], 8])]
    close(out, [sum((f * table[i] for i, f in bag), np.zeros(3)) for bag in kept])
    g = drawn((4, 3), seed=2)
    want = np.zeros((6, 3))
    for row, bag in zip(g, kept):
        for i, f in bag:
            want[i] += f * row
    for create_graph in (False, True):
        of_table, of_factors = cg.autograd.grad(out, leaves, cg.tensor(g), retain_graph=True, create_graph=create_graph)
        close(of_table, want)
        close(of_factors, [0 if i == 2 else g[next(b for b in range(4) if k < [*OFFSETS[1:], 8][b])] @ table[i] for k, i in enumerate(INDEX)])


@pytest.mark.parametrize("width", [1, 3, 4, 8, 15, 16, 17, 63, 64, 67, 130])
@pytest.mark.parametrize("dtype", [cg.float32, cg.float64])
@pytest.mark.parametrize("padding", [None, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_bags_of_any_width(width, dtype, padding, weighted):
    rng = np.random.default_rng(0)
    table, index, offsets = rng.normal(size=(9, width)), rng.integers(0, 9, 40), np.array([0, 0, 1, 3, 20, 40])
    weights = rng.normal(size=40) if weighted else np.ones(40)
    found = F.embedding_bag(cg.tensor(index), cg.tensor(table, dtype=dtype), cg.tensor(offsets), mode="sum", padding_idx=padding,
                            include_last_offset=True, per_sample_weights=cg.tensor(weights, dtype=dtype) if weighted else None)
    rows = table[index] * (weights * (index != padding))[:, None]
    want = [rows[start:stop].sum(0) for start, stop in pairwise(offsets)]
    np.testing.assert_allclose(found.numpy(), want, rtol=0, atol=2e-5 if dtype == cg.float32 else 1e-13)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_examples_and_gradients_by_frequency(mode):
    tables, index = drawn((3, 6, 2)), np.random.default_rng(1).integers(0, 6, (3, 4, 5))
    found = cg.func.vmap(lambda table, index: F.embedding_bag(index, table, mode=mode))(cg.tensor(tables), cg.tensor(index))
    for k in range(3):
        close(found[k], getattr(tables[k][index[k]], mode)(1))
    if mode == "max":
        return
    weight = cg.tensor(tables[0], requires_grad=True)
    out = F.embedding_bag(cg.tensor(index[0]), weight, mode=mode, scale_grad_by_freq=True)
    counts = np.maximum(np.bincount(index[0].ravel(), minlength=6), 1)[:, None]
    want = np.zeros((6, 2))
    np.add.at(want, index[0], 1.0 if mode == "sum" else 0.2)
    close(cg.autograd.grad(out.sum(), weight, create_graph=True)[0], want / counts)
    close(cg.autograd.grad(out.sum(), weight)[0], want / counts)


@pytest.mark.parametrize("kdim", [None, 3])
def test_the_function_is_the_layer_with_weights_that_are_given(kdim):
    layer = nn.MultiheadAttention(4, 2, kdim=kdim, vdim=kdim, add_bias_kv=True, add_zero_attn=True, dropout=0.5, dtype=cg.float64).eval()
    q, k = drawn((5, 2, 4)), drawn((3, 2, kdim or 4), seed=1)
    padding = np.array([[False, False, True], [False, True, False]])
    separate = {} if kdim is None else {"use_separate_proj_weight": True, **{f"{x}_proj_weight": getattr(layer, f"{x}_proj_weight") for x in "qkv"}}

    def call(q, k, **options):
        return F.multi_head_attention_forward(cg.tensor(q), cg.tensor(k), cg.tensor(k), 4, 2, layer.in_proj_weight, layer.in_proj_bias, layer.bias_k,
                                              layer.bias_v, True, 0.5, layer.out_proj.weight, layer.out_proj.bias, False, **options, **separate)

    out, weights = call(q, k, key_padding_mask=cg.tensor(padding))
    bias = np.where(padding, -np.inf, 0.0)[:, None, None]
    want, each = multihead(layer, *(x.transpose(1, 0, 2) for x in (q, k, k)), bias)
    close(out, want.transpose(1, 0, 2))
    close(weights, each.mean(1))
    out, weights = call(q[:, 0], k[:, 0], key_padding_mask=cg.tensor(padding[0]), average_attn_weights=False)
    close(out, want[0])
    close(weights, each[0])
    with pytest.raises(ValueError, match="multi_head_attention_forward: the last axis of query"):
        call(q[..., :3], k)
    with pytest.raises(ValueError, match="key_padding_mask must have shape"):
        call(q[:, :1], k[:, :1], key_padding_mask=cg.tensor(padding[0]))
    with pytest.raises(ValueError, match="static_k"):
        call(q, k, static_k=cg.tensor(k))
