"""embedding against NumPy's indexing and np.add.at."""
import numpy as np
import pytest

import cgrad as cg
import cgrad.nn.functional as F
from cgrad import nn


def drawn(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def summed(g, index, n_rows, skipped=()):
    out = np.zeros((n_rows, g.shape[-1]))
    np.add.at(out, index, g.astype(np.float64))
    out[list(skipped)] = 0
    return out


# 3000 rows of 200 elements make several chunks of the gradient and more than one thread's work.
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("integer", [np.int64, np.int32, np.uint8])
@pytest.mark.parametrize(("rows", "width", "shape"), [(5, 3, (4,)), (7, 1, (2, 3)), (3, 4, ()), (4, 2, (0,)), (3000, 200, (40, 50)), (2, 0, (3,)), (1, 5, (9,))])
def test_values_and_gradients(dtype, integer, rows, width, shape):
    table = drawn((rows, width), dtype)
    index = np.random.default_rng(1).integers(0, min(rows, 255), shape).astype(integer)
    weight = cg.tensor(table, requires_grad=True)
    y = F.embedding(cg.tensor(index), weight)
    np.testing.assert_array_equal(y.detach().numpy(), table[index])
    g = drawn((*shape, width), dtype, 2)
    y.backward(cg.tensor(g))
    np.testing.assert_allclose(weight.grad.numpy(), summed(g, index, rows), rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-6 if dtype == np.float32 else 1e-13)
    assert y.dtype == weight.grad.dtype == dtype
    assert y.grad_fn.name == "embedding"


def test_any_order_and_direction():
    index = cg.tensor([[0, 3], [3, 1]])
    weight = cg.tensor(drawn((4, 3)), requires_grad=True)
    for options in ({}, {"padding_idx": 3}):
        function = lambda w, options=options: F.embedding(index, w * w, **options)
        cg.autograd.gradgradcheck(function, weight)
    cg.autograd.gradcheck(lambda w: F.embedding(index, w), weight, check_forward_ad=True)


@pytest.mark.parametrize("padding_idx", [0, 2, -1])
def test_the_padding_row_is_a_constant(padding_idx):
    table, index = drawn((4, 2)), np.array([0, 2, 3, 2, 1])
    weight = cg.tensor(table, requires_grad=True)
    y = F.embedding(cg.tensor(index), weight, padding_idx=padding_idx)
    np.testing.assert_array_equal(y.detach().numpy(), table[index])
    y.sum().backward()
    np.testing.assert_array_equal(weight.grad.numpy(), summed(np.ones((5, 2)), index, 4, [padding_idx]))
    _, tangent = cg.func.jvp(lambda w: F.embedding(cg.tensor(index), w, padding_idx=padding_idx), (cg.tensor(table),), (cg.ones((4, 2), dtype=cg.float64),))
    np.testing.assert_array_equal(tangent.numpy(), np.repeat(index != padding_idx % 4, 2).reshape(5, 2))


def test_gradients_by_frequency():
    index = np.array([[0, 2, 2], [2, 3, 0]])
    weight = cg.tensor(drawn((5, 3)), requires_grad=True)
    g = drawn((2, 3, 3), seed=1)
    F.embedding(cg.tensor(index), weight, scale_grad_by_freq=True).backward(cg.tensor(g))
    counts = np.maximum(np.bincount(index.ravel(), minlength=5), 1)
    np.testing.assert_allclose(weight.grad.numpy(), summed(g, index, 5) / counts[:, None], rtol=1e-14)


@pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf")])
def test_long_rows_are_scaled_down_in_place(norm_type):
    table = np.array([[3.0, 4.0], [0.3, 0.4], [6.0, -8.0], [30.0, 40.0]])
    weight = cg.tensor(table, requires_grad=True)
    y = F.embedding(cg.tensor([0, 1, 2, 0]), weight, max_norm=2.0, norm_type=norm_type)
    want = table.copy()
    for i in (0, 2):
        want[i] *= 2.0 / (np.linalg.norm(table[i], norm_type) + 1e-7)
    np.testing.assert_allclose(weight.detach().numpy(), want, rtol=1e-14)      # row 3 was not picked
    np.testing.assert_allclose(y.detach().numpy(), want[[0, 1, 2, 0]], rtol=1e-14)
    y.sum().backward()
    assert weight.grad[:, 0].tolist() == [2.0, 1.0, 1.0, 0.0]


def test_layouts():
    table = drawn((6, 4))
    index = np.array([[0, 5, 2], [2, 2, 1]])
    for view, reference in ((lambda t: t[::-1, ::-1], table[::-1, ::-1]), (lambda t: t[::2], table[::2]), (lambda t: t.T, table.T),
                            (lambda t: t[:, :1], table[:, :1])):
        weight = cg.tensor(table, requires_grad=True)
        places = np.minimum(index, len(reference) - 1)
        y = F.embedding(cg.tensor(places.T.copy()).T, view(weight))
        np.testing.assert_array_equal(y.detach().numpy(), reference[places])
        y.sum().backward()                    # a gradient that is one number stretched to the shape
        want = np.zeros_like(reference)
        np.add.at(want, places, 1.0)
        np.testing.assert_array_equal(view(weight.grad).numpy(), want)
    assert F.embedding(cg.tensor([1]), cg.tensor([[1, 2], [3, 4]])).tolist() == [[3, 4]]


def test_threads_do_not_change_bits():
    before = cg.get_num_threads()
    index = cg.tensor(np.random.default_rng(3).integers(0, 900, 20000))
    g = cg.tensor(drawn((20000, 90), np.float32))
    found = []
    try:
        for threads in (1, 2, 3):
            cg.set_num_threads(threads)
            weight = cg.tensor(drawn((900, 90), np.float32, 1), requires_grad=True)
            F.embedding(index, weight).backward(g)
            found.append(weight.grad.numpy())
    finally:
        cg.set_num_threads(before)
    assert (found[0] == found[1]).all() and (found[0] == found[2]).all()


def test_backward_makes_one_gradient():
    weight = cg.zeros((5000, 100), requires_grad=True)
    y = F.embedding(cg.tensor([1, 2]), weight).sum()
    cg.memory.reset_peak()
    before = cg.memory.stats()["live_bytes"]
    y.backward()
    assert cg.memory.stats()["peak_bytes"] - before < 2.6e6      # one gradient has 2.0 MB, in blocks of at most a quarter more


@pytest.mark.parametrize("in_dims", [(0, None), (None, 0), (0, 0), (1, 1)])
@pytest.mark.parametrize("options", [{}, {"padding_idx": 1}, {"scale_grad_by_freq": True}])
def test_a_batch_of_calls(in_dims, options):
    index = np.array([[0, 2, 2], [1, 1, 3]]) if in_dims[0] is not None else np.array([2, 1, 2])
    table = drawn((2, 4, 3)) if in_dims[1] is not None else drawn((4, 3))
    pairs = [(index[k] if in_dims[0] is not None else index, table[k] if in_dims[1] is not None else table) for k in range(2)]
    arguments = [cg.tensor(np.moveaxis(a, 0, d) if d else a) for a, d in zip((index, table), in_dims, strict=True)]
    y = cg.func.vmap(lambda i, w: F.embedding(i, w, **options), in_dims=in_dims)(*arguments)
    np.testing.assert_array_equal(y.numpy(), [w[i] for i, w in pairs])
    g = cg.func.vmap(cg.func.grad(lambda w, i: (F.embedding(i, w, **options) ** 2).sum()), in_dims=in_dims[::-1])(*arguments[::-1])
    for k, (i, w) in enumerate(pairs):
        leaf = cg.tensor(w, requires_grad=True)
        (F.embedding(cg.tensor(i), leaf, **options) ** 2).sum().backward()
        np.testing.assert_allclose(g[k].numpy(), leaf.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: F.embedding(cg.tensor([0, 5]), cg.ones((5, 2))), IndexError, "index 5 .*5 rows"),
    (lambda: F.embedding(cg.tensor([0, -1]), cg.ones((5, 2))), IndexError, "index -1 .*5 rows"),
    (lambda: F.embedding(cg.tensor([2**62]), cg.ones((5, 2))), IndexError, str(2**62)),
    (lambda: F.embedding(cg.tensor([9]), cg.ones((5, 2)), max_norm=1.0), IndexError, "index 9"),
    (lambda: F.embedding(cg.tensor([0]), cg.ones((0, 2))), IndexError, "0 rows"),
    (lambda: F.embedding(cg.tensor([0.0]), cg.ones((5, 2))), TypeError, "integers.*float32"),
    (lambda: F.embedding(cg.tensor([True]), cg.ones((5, 2))), TypeError, "integers.*bool"),
    (lambda: F.embedding(cg.tensor([0]), cg.ones(5)), ValueError, r"\(5,\)"),
    (lambda: F.embedding(cg.tensor([0]), cg.ones((5, 2)), padding_idx=5), ValueError, "padding_idx.*5"),
    (lambda: nn.Embedding(3, 2, padding_idx=-4), ValueError, "padding_idx.*-4"),
    (lambda: nn.Embedding(-1, 2), ValueError, "num_embeddings"),
    (lambda: nn.Embedding.from_pretrained(cg.ones(3)), ValueError, r"\(3,\)"),
])
def test_errors_name_index_and_size(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_an_overwritten_index_is_noticed():
    index = cg.tensor([0, 1])
    y = F.embedding(index, cg.ones((3, 2), requires_grad=True))
    index[0] = 2
    with pytest.raises(RuntimeError, match="changed in place"):
        y.sum().backward()


def test_the_layer():
    cg.manual_seed(0)
    layer = nn.Embedding(1000, 20, padding_idx=-2)
    weight = layer.weight.detach().numpy()
    assert layer.padding_idx == 998 and not weight[998].any()
    assert abs(weight.mean()) < 0.03 and abs(weight.std() - 1) < 0.03
    assert list(layer.state_dict()) == ["weight"]
    assert repr(layer) == "Embedding(1000, 20, padding_idx=998)"
    layer(cg.tensor([998, 3])).sum().backward()
    assert not layer.weight.grad[998].any() and layer.weight.grad[3].all()
    table = cg.tensor(drawn((3, 2)))
    layer = nn.Embedding.from_pretrained(table, padding_idx=0)
    assert not layer.weight.requires_grad and (layer.weight == table).all()
    assert nn.Embedding.from_pretrained(table, freeze=False).weight.requires_grad
    layer = nn.Embedding(3, 2, max_norm=1.0, dtype=cg.float64)
    layer(cg.tensor([0, 1, 2]))
    assert (np.linalg.norm(layer.weight.detach().numpy(), axis=1) <= 1).all()
