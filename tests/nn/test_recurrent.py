"""Recurrent networks against the recurrence written in NumPy, step by step and sequence by sequence."""
import warnings

import numpy as np
import pytest

import cgrad as cg
from cgrad import nn
from cgrad.nn import functional as F
from cgrad.nn.utils import rnn as sequences
from cgrad.ops import recurrent

CELLS = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def drawn(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(mode, x, states, w_ih, w_hh, b_ih=0.0, b_hh=0.0, w_hr=None):
    """The states after one step."""
    a, r = x @ w_ih.T + b_ih, states[0] @ w_hh.T + b_hh
    if mode == "LSTM":
        i, f, g, o = np.split(a + r, 4, -1)
        c = sigmoid(f) * states[1] + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        return h if w_hr is None else h @ w_hr.T, c
    if mode == "GRU":
        (ar, az, an), (rr, rz, rn) = np.split(a, 3, -1), np.split(r, 3, -1)
        z = sigmoid(az + rz)
        return (1 - z) * np.tanh(an + sigmoid(ar + rr) * rn) + z * states[0],
    return np.tanh(a + r) if mode == "RNN_TANH" else np.maximum(a + r, 0),


def run(net, x, states):
    """(outputs, last states) of one sequence (steps, features); states (layers and directions, size) each."""
    last, k = [], 0
    for layer in range(net.num_layers):
        outs = []
        for ending in ("", "_reverse")[:1 + net.bidirectional]:
            weights = {name: getattr(net, f"{name}_l{layer}{ending}", None) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")}
            w = [None if p is None else p.detach().numpy() for p in weights.values()]
            w[2:4] = [0.0 if b is None else b for b in w[2:4]]
            s, out = tuple(state[k] for state in states), []
            for row in x[::-1] if ending else x:
                s = step(net.mode, row, s, *w)
                out.append(s[0])
            last.append(s)
            outs.append(np.array(out[::-1] if ending else out))
            k += 1
        x = np.concatenate(outs, 1)
    return x, [np.array(parts) for parts in zip(*last)]


def made(mode, *args, **options):
    cg.manual_seed(0)
    if mode.startswith("RNN"):
        return nn.RNN(*args, nonlinearity=mode[4:].lower(), **options)
    return getattr(nn, mode)(*args, **options)


def close(found, want):
    np.testing.assert_allclose(found.detach().numpy(), want, rtol=1e-11, atol=1e-12)


def last_of(out):
    return list(out[1]) if isinstance(out[1], tuple) else [out[1]]


OPTIONS = [{}, {"bias": False}, {"num_layers": 2}, {"bidirectional": True}, {"num_layers": 2, "bidirectional": True, "batch_first": True}]


@pytest.mark.parametrize("mode", CELLS)
@pytest.mark.parametrize("options", OPTIONS)
def test_layers(mode, options):
    check_layer(made(mode, 3, 4, dtype=cg.float64, **options))


@pytest.mark.parametrize("options", OPTIONS)
def test_projection(options):
    check_layer(made("LSTM", 3, 4, proj_size=2, dtype=cg.float64, **options))


def check_layer(net):
    lines, width = net.num_layers * (1 + net.bidirectional), net.proj_size or 4
    x = drawn((5, 2, 3))
    first = [drawn((lines, 2, n), seed=i + 1) for i, n in enumerate((width, 4)[:1 + (net.mode == "LSTM")])]
    for states in (first, None):
        given = [np.zeros_like(s) for s in first] if states is None else states
        want = [run(net, x[:, i], [s[:, i] for s in given]) for i in range(2)]
        hx = None if states is None else tuple(cg.tensor(s) for s in states)
        hx = hx[0] if hx is not None and net.mode != "LSTM" else hx
        out = net(cg.tensor(x.swapaxes(0, 1) if net.batch_first else x), hx)
        close(out[0].transpose(0, 1) if net.batch_first else out[0], np.stack([w[0] for w in want], 1))
        for k, found in enumerate(last_of(out)):
            close(found, np.stack([w[1][k] for w in want], 1))
    hx = tuple(cg.tensor(s[:, 1]) for s in first)
    out = net(cg.tensor(x[:, 1]), hx if net.mode == "LSTM" else hx[0])
    want = run(net, x[:, 1], [s[:, 1] for s in first])
    close(out[0], want[0])
    for found, w in zip(last_of(out), want[1]):
        close(found, w)


@pytest.mark.parametrize("mode", CELLS)
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}])
def test_packed_sequences_equal_sequences_one_by_one(mode, options):
    net, lengths = made(mode, 3, 4, dtype=cg.float64, **options), [2, 5, 1, 5]
    xs = [drawn((n, 3), seed=n + i) for i, n in enumerate(lengths)]
    lines = net.num_layers * (1 + net.bidirectional)
    first = [drawn((lines, 4, 4), seed=i + 1) for i in range(1 + (mode == "LSTM"))]
    packed = sequences.pack_sequence([cg.tensor(x) for x in xs], enforce_sorted=False)
    hx = tuple(cg.tensor(s) for s in first)
    out = net(packed, hx if mode == "LSTM" else hx[0])
    want = [run(net, x, [s[:, i] for s in first]) for i, x in enumerate(xs)]
    for found, w in zip(sequences.unpack_sequence(out[0]), want, strict=True):
        close(found, w[0])
    for k, found in enumerate(last_of(out)):
        close(found, np.stack([w[1][k] for w in want], 1))
    if mode == "LSTM" and not options:
        projected = made(mode, 3, 4, proj_size=2, dtype=cg.float64)
        for found, x in zip(sequences.unpack_sequence(projected(packed)[0]), xs):
            close(found, run(projected, x, [np.zeros((1, 2)), np.zeros((1, 4))])[0])


def operation(mode, sizes, reverse):
    if mode == "LSTM":
        return lambda x, h, c, w: recurrent.lstm(x, h, c, w, sizes, reverse)
    if mode == "GRU":
        return lambda x, h, w, b: recurrent.gru(x, h, w, b, sizes, reverse)
    return lambda x, h, w: recurrent.rnn(x, h, w, mode == "RNN_RELU", sizes, reverse)


def operands(mode, rows, n_batch, n):
    parts = CELLS[mode]
    shapes = [(rows, parts * n), (n_batch, n), (n_batch, n), (parts * n, n), (parts * n,)]
    keep = {"LSTM": (0, 1, 2, 3), "GRU": (0, 1, 3, 4)}.get(mode, (0, 1, 3))
    return [cg.tensor(drawn(shapes[i], seed=i), requires_grad=True) for i in keep]


@pytest.mark.parametrize("mode", CELLS)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("sizes", [None, (3, 2, 2, 1)])
def test_derivatives(mode, reverse, sizes):
    leaves = operands(mode, 9 if sizes is None else 8, 3, 2)
    function, n = operation(mode, sizes, reverse), 3 if mode == "LSTM" else 2
    cg.autograd.gradcheck(function, leaves)          # with respect to all results, so that the rule composed of recorded operations is used
    cg.autograd.gradcheck(lambda *xs: function(*xs)[:n], leaves, check_forward_ad=True)
    cg.autograd.gradgradcheck(lambda *xs: function(*xs)[:n], leaves)
    out = function(*leaves)[0]
    seeds = cg.tensor(drawn((3, *out.shape), seed=7))
    many = cg.autograd.grad(out, leaves, seeds, is_grads_batched=True, retain_graph=True, allow_unused=True)
    for k in range(3):
        for a, b in zip(many, cg.autograd.grad(out, leaves, seeds[k], retain_graph=True)):
            close(a[k], b.numpy())


@pytest.mark.parametrize("mode", CELLS)
@pytest.mark.parametrize(("n_batch", "n"), [(1, 8), (33, 5), (40, 64), (70, 20)])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [cg.float32, cg.float64])
def test_kernels_and_composed_rules_agree(mode, n_batch, n, reverse, dtype):
    leaves = [x.detach().astype(dtype).requires_grad_() / n ** 0.5 for x in operands(mode, 3 * n_batch, n_batch, n)]
    out = operation(mode, None, reverse)(*leaves)[:3 if mode == "LSTM" else 2]
    seeds = [cg.tensor(drawn(tuple(y.shape), seed=9), dtype=dtype) for y in out]
    found = cg.autograd.grad(out, leaves, seeds, retain_graph=True)
    for a, b in zip(found, cg.autograd.grad(out, leaves, seeds, create_graph=True)):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-4 if dtype == cg.float32 else 1e-12, atol=1e-5 if dtype == cg.float32 else 1e-12)


@pytest.mark.parametrize(("dtype", "error"), [("float32", 2e-7), ("float64", 4e-16)])
@pytest.mark.parametrize("n", [1, 31, 32, 33, 75])
@pytest.mark.parametrize("scale", [1e-6, 1, 30])
def test_gates(dtype, error, n, scale):
    """Gates by themselves (the states' weight is 0), near 0 and far out, in slices and what is left of them."""
    x, c, h, w = (drawn((3, 4 * n)) * scale).astype(dtype), drawn((3, n), 1).astype(dtype), np.zeros((3, n), dtype), np.zeros((4 * n, n), dtype)
    i, f, g, o = (y.astype("float64") for y in np.split(x, 4, 1))
    i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
    _, _, last_c, gates, _ = recurrent.lstm(*map(cg.tensor, (x, h, c, w)), None, False)
    np.testing.assert_allclose(gates.numpy(), np.concatenate([i, f, g, o], 1), rtol=4 * error, atol=2e-38)
    np.testing.assert_allclose(last_c.numpy(), f * c + i * g, atol=8 * error)
    _, last, gates = recurrent.gru(*map(cg.tensor, (x[:, :3 * n], c, w[:3 * n])), None, None, False)
    n_gate = np.tanh(x[:, 2 * n:3 * n].astype("float64"))
    np.testing.assert_allclose(gates.numpy(), np.concatenate([i, f, np.zeros_like(i), n_gate], 1), rtol=4 * error, atol=2e-38)
    np.testing.assert_allclose(last.numpy(), n_gate + f * (c - n_gate), atol=8 * error)


def test_gates_at_infinity_and_nan():
    x = cg.tensor([[np.inf] * 4, [-np.inf] * 4, [1e9, -1e9, -1e9, 1e9], [np.nan, 1, 1, 1], [0.0, 0.0, 0.0, np.nan]])
    h, c, _, gates, cells = recurrent.lstm(x, cg.zeros(5, 1), cg.ones(5, 1), cg.zeros(4, 1), None, False)
    np.testing.assert_array_equal(gates.numpy()[:3], [[1, 1, 1, 1], [0, 0, -1, 0], [1, 0, -1, 1]])
    np.testing.assert_array_equal(cells.numpy()[:, 0], [2, 0, -1, np.nan, 0.5])
    np.testing.assert_allclose(h.numpy()[:, 0], [np.tanh(2), 0, -np.tanh(1), np.nan, np.nan], rtol=1e-6)


@pytest.mark.parametrize("mode", CELLS)
def test_vmap(mode):
    leaves = operands(mode, 6, 2, 3)
    function = operation(mode, None, True)
    plain = [x.detach() for x in leaves]
    stacked = [cg.stack([x, -x, 2 * x]) for x in plain]
    for batched in ((0,), (1,), (0, 1), tuple(range(len(plain)))):
        in_dims = tuple(0 if i in batched else None for i in range(len(plain)))
        found = cg.func.vmap(function, in_dims)(*[stacked[i] if i in batched else x for i, x in enumerate(plain)])
        for k in range(3):
            want = function(*[stacked[i][k] if i in batched else x for i, x in enumerate(plain)])
            for a, b in zip(found, want):
                close(a[k], b.numpy())
    packed = cg.func.vmap(operation(mode, (2, 2, 1, 1), False), (0,) + (None,) * (len(plain) - 1))(stacked[0], *plain[1:])
    close(packed[0][1], operation(mode, (2, 2, 1, 1), False)(stacked[0][1], *plain[1:])[0].numpy())


@pytest.mark.parametrize("mode", CELLS)
@pytest.mark.parametrize("n_batch", [None, 3, 0])
def test_cells(mode, n_batch):
    name = {"LSTM": "LSTMCell", "GRU": "GRUCell"}.get(mode, "RNNCell")
    options = {"nonlinearity": mode[4:].lower()} if name == "RNNCell" else {}
    for bias in (True, False):
        cell = getattr(nn, name)(3, 4, bias=bias, dtype=cg.float64, **options)
        assert list(cell.state_dict()) == ["weight_ih", "weight_hh", "bias_ih", "bias_hh"][:4 if bias else 2]
        x, h = drawn((3,) if n_batch is None else (n_batch, 3)), [drawn((4,) if n_batch is None else (n_batch, 4), seed=i) for i in (1, 2)]
        for states in ([np.zeros_like(s) for s in h], h):
            hx = None if states is not h else tuple(map(cg.tensor, h)) if mode == "LSTM" else cg.tensor(h[0])
            found = cell(cg.tensor(x), hx)
            weights = [p.detach().numpy() for p in cell.parameters()]
            for a, b in zip(found if mode == "LSTM" else [found], step(mode, x, states, *weights)):
                close(a, b)


def test_names_shapes_and_repr():
    net = nn.LSTM(3, 4, num_layers=2, bidirectional=True, proj_size=2, dropout=0.5)
    assert [(name, tuple(p.shape)) for name, p in net.state_dict().items()][:12] == [
        (f"{kind}_l0{ending}", shape) for ending in ("", "_reverse") for kind, shape in (
            ("weight_ih", (16, 3)), ("weight_hh", (16, 2)), ("bias_ih", (16,)), ("bias_hh", (16,)), ("weight_hr", (2, 4)))
    ] + [("weight_ih_l1", (16, 4)), ("weight_hh_l1", (16, 2))]
    assert repr(net) == "LSTM(3, 4, proj_size=2, num_layers=2, dropout=0.5, bidirectional=True)"
    assert repr(nn.RNNCell(3, 4, False, "relu")) == "RNNCell(3, 4, bias=False, nonlinearity=relu)"
    assert [len(weights) for weights in nn.GRU(3, 4, 2, bias=False).all_weights] == [2, 2]
    assert all(abs(p.detach().numpy()).max() <= 0.5 for p in nn.GRU(3, 4).parameters())
    with pytest.warns(UserWarning, match="num_layers=1"):
        nn.GRU(3, 4, dropout=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.GRU(3, 4, 2, dropout=0.5)


def test_dropout_acts_between_layers_in_training():
    net, x = made("GRU", 3, 4, num_layers=2, dropout=1.0, dtype=cg.float64), drawn((5, 2, 3))
    out, last = net(cg.tensor(x))
    second = nn.GRU(4, 4, dtype=cg.float64)
    second.load_state_dict({name.replace("l1", "l0"): p for name, p in net.state_dict().items() if "l1" in name})
    close(out, second(cg.zeros((5, 2, 4), dtype=cg.float64))[0].detach().numpy())


@pytest.mark.parametrize("dtype", [cg.float16, cg.bfloat16])
def test_half(dtype):
    net, x = made("LSTM", 3, 4).to(dtype), cg.randn(5, 2, 3).astype(dtype)
    out, (h, c) = net(x)
    assert out.dtype == h.dtype == c.dtype == dtype
    want = net.float()(x.float())[0].detach().numpy()
    np.testing.assert_allclose(out.detach().float().numpy(), want, atol=2e-2)
    out.float().sum().backward()


def test_states_get_gradients_and_extents_may_be_zero():
    for mode in CELLS:
        net = made(mode, 3, 4, dtype=cg.float64)
        h = cg.tensor(drawn((1, 2, 4)), requires_grad=True)
        hx = (h, h * 2) if mode == "LSTM" else h
        out, last = net(cg.zeros((0, 2, 3), dtype=cg.float64), hx)       # no step: the first states are the last ones
        assert out.shape == (0, 2, 4)
        close(last_of((out, last))[0], h.detach().numpy())
        sum(x.sum() for x in last_of((out, last))).backward()
        close(h.grad, np.full((1, 2, 4), 3.0 if mode == "LSTM" else 1.0))
        out, last = net(cg.zeros((5, 0, 3), dtype=cg.float64))
        assert out.shape == (5, 0, 4) and last_of((out, last))[0].shape == (1, 0, 4)
        out.sum().backward()
        assert (net.weight_hh_l0.grad.numpy() == 0).all()


def test_layouts_and_dtypes_meet():
    net, x = made("LSTM", 3, 4, dtype=cg.float64), drawn((5, 2, 3))
    want = net(cg.tensor(x))[0].detach().numpy()
    close(net(cg.tensor(x[::-1].copy()).flip(0))[0], want)
    close(net(cg.tensor(np.asfortranarray(x)))[0], want)
    assert made("GRU", 3, 4)(cg.tensor(x))[0].dtype == cg.float64
    h = cg.tensor(drawn((4, 2, 1)).astype(np.float32)).permute(2, 1, 0)
    assert net(cg.tensor(x), (h, h))[0].dtype == cg.float64


# ---------------------------------------------------------------------- sequences
def test_pad_and_pack():
    xs = [drawn((n, 2), seed=n) for n in (3, 1, 4)]
    tensors = [cg.tensor(x) for x in xs]
    padded = sequences.pad_sequence(tensors, padding_value=7.0)
    assert padded.shape == (4, 3, 2) and (padded.numpy()[1:, 1] == 7).all()
    left = sequences.pad_sequence(tensors, batch_first=True, padding_side="left")
    np.testing.assert_array_equal(left.numpy()[1], np.concatenate([np.zeros((3, 2)), xs[1]]))
    packed = sequences.pack_padded_sequence(padded, [3, 1, 4], enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 2, 2, 1] and packed.sorted_indices.tolist() == [2, 0, 1] and packed.unsorted_indices.tolist() == [1, 2, 0]
    np.testing.assert_array_equal(packed.data.numpy(), [xs[2][0], xs[0][0], xs[1][0], xs[2][1], xs[0][1], xs[2][2], xs[0][2], xs[2][3]])
    again, lengths = sequences.pad_packed_sequence(packed, batch_first=True, padding_value=7.0, total_length=5)
    assert lengths.tolist() == [3, 1, 4] and again.shape == (3, 5, 2)
    np.testing.assert_array_equal(again.numpy()[:, :4], padded.numpy().swapaxes(0, 1))
    assert (again.numpy()[:, 4] == 7).all()
    for x, y in zip(xs, sequences.unpad_sequence(padded, cg.tensor([3, 1, 4]))):
        np.testing.assert_array_equal(y.numpy(), x)
    assert packed.double().data.dtype == cg.float64 and isinstance(packed.float(), sequences.PackedSequence)
    ints = sequences.pack_sequence([cg.tensor([1, 2]), cg.tensor([3])])
    assert sequences.pad_packed_sequence(ints)[0].tolist() == [[1, 3], [2, 0]]


def test_packing_is_differentiable():
    x = cg.tensor(drawn((4, 3, 2)), requires_grad=True)

    def function(x):
        packed = sequences.pack_padded_sequence(x, [2, 4, 1], enforce_sorted=False)
        return packed.data, sequences.pad_packed_sequence(packed)[0]
    cg.autograd.gradcheck(function, [x], check_forward_ad=True)


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: nn.LSTM(0, 4), ValueError, "input_size"),
    (lambda: nn.RNN(3, 4, nonlinearity="sigmoid"), ValueError, "'tanh' or 'relu'"),
    (lambda: nn.LSTM(3, 4, proj_size=4), ValueError, "proj_size"),
    (lambda: nn.GRU(3, 4, dropout=2), ValueError, "dropout"),
    (lambda: nn.GRU(3, 4)(cg.ones((5, 2, 4))), ValueError, r"input_size=3.*\(10, 4\)"),
    (lambda: nn.GRU(3, 4)(cg.ones(3)), ValueError, r"3 axes.*\(3,\)"),
    (lambda: nn.GRU(3, 4)(cg.ones((5, 2, 3)), cg.ones((1, 3, 4))), ValueError, r"h_0 must have shape \(1, 2, 4\), got \(1, 3, 4\)"),
    (lambda: nn.LSTM(3, 4)(cg.ones((5, 2, 3)), cg.ones((1, 2, 4))), ValueError, r"two tensors \(h_0, c_0\)"),
    (lambda: nn.LSTMCell(3, 4)(cg.ones((2, 1, 3))), ValueError, r"\(batch, input_size\)"),
    (lambda: F.gru_cell(cg.ones((2, 3)), cg.ones((1, 4)), cg.ones((12, 3)), cg.ones((12, 4))), ValueError, r"\(2, 4\), got \(1, 4\)"),
    (lambda: recurrent.rnn(cg.ones((4, 2)), cg.ones((2, 2)), cg.ones((2, 2)), False, (1, 2, 1), False), ValueError, "must not rise"),
    (lambda: recurrent.rnn(cg.ones((4, 2)), cg.ones((3, 2)), cg.ones((2, 2)), False, None, False), ValueError, "4 rows"),
    (lambda: recurrent.gru(cg.ones((4, 6)), cg.ones((2, 2)), cg.ones((5, 2)), None, None, False), ValueError, r"3 \* hidden"),
    (lambda: sequences.pack_padded_sequence(cg.ones((4, 2)), [1, 2]), ValueError, "enforce_sorted=False"),
    (lambda: sequences.pack_padded_sequence(cg.ones((4, 2)), [5, 2]), ValueError, r"\[1, 4\]"),
    (lambda: sequences.pack_padded_sequence(cg.ones((4, 2)), [3, 0]), ValueError, r"\[1, 4\]"),
    (lambda: sequences.pack_padded_sequence(cg.ones((4, 2)), [3]), ValueError, "batch of 2"),
    (lambda: sequences.pad_packed_sequence(sequences.pack_sequence([cg.ones(3)]), total_length=2), ValueError, "total_length=2"),
    (lambda: sequences.pad_sequence([]), ValueError, "at least one"),
    (lambda: sequences.pad_sequence([cg.ones(2)], padding_side="top"), ValueError, "'top'"),
])
def test_errors_say_what_was_wrong(call, error, words):
    with pytest.raises(error, match=words):
        call()
