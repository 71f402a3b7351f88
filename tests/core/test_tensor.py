"""Tensor: layout, Python's protocols, numbers, buffers, copies and pickles."""
import copy
import pickle

import numpy as np
import pytest

import cgrad as cg


def test_layout_of_views():
    x = cg.arange(24.0).reshape(2, 3, 4)
    assert (x.shape, x.strides, x.ndim, x.size, x.nbytes) == ((2, 3, 4), (12, 4, 1), 3, 24, 96)
    y = x.permute(2, 0, 1)[::-1]
    assert y.shape == (4, 2, 3) and y.strides == (-1, 12, 4) and not y.is_contiguous()
    assert y.data_ptr() == x.data_ptr() + 3 * 4


def test_many_axes():
    x = cg.ones((1,) * 40)
    y = cg.broadcast_to(x, (1,) * 38 + (2, 3))
    assert y.ndim == 40 and (y + 1).sum().item() == 12
    with pytest.raises(ValueError, match="64 axes"):
        cg.ones((1,) * 65)


def test_numbers():
    assert float(cg.tensor(1.5)) == 1.5 and int(cg.tensor([[7]])) == 7 and complex(cg.tensor(2.0)) == 2
    assert [10, 20, 30][cg.tensor(1)] == 20 and round(cg.tensor(1.26, dtype=cg.float64), 1) == 1.3
    assert bool(cg.tensor([True])) and not cg.tensor(0.0)
    for wrong in (lambda: float(cg.ones(2)), lambda: [1, 2][cg.tensor(1.0)]):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError, match="ambiguous"):
        bool(cg.ones(2))
    with pytest.raises(ValueError, match=r"shape \(2, 1\)"):
        cg.ones(2, 1).item()
    assert cg.arange(6).reshape(2, 3).item(1, -1) == 5
    with pytest.raises(IndexError, match="out of bounds for axis 1 with size 3"):
        cg.arange(6).reshape(2, 3).item(0, 3)


def test_containers():
    x = cg.arange(6.0).reshape(3, 2)
    assert len(x) == 3 and [row.tolist() for row in x] == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert 3.0 in x and 7.0 not in x
    for call in (len, iter):
        with pytest.raises(TypeError, match="0-d"):
            call(cg.tensor(1.0))
    assert len({x: 1, x.clone(): 2}) == 2
    with pytest.raises(TypeError):
        del x[0]


def test_rows_of_a_tracked_tensor_keep_the_graph():
    x = cg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    total = 0.0
    for k, row in enumerate(x):
        total = total + (k + 1) * row.sum()
    total.backward()
    assert x.grad.tolist() == [[1.0, 1.0], [2.0, 2.0]]


def test_operands_of_other_types():
    x = cg.tensor([1.0, 2.0], requires_grad=True)
    for y in (np.float64(2) * x, np.float32(2) * x, np.array([2.0, 2.0], dtype=np.float32) * x, x * np.int64(2), np.ones(2) + x, 2 - x, 2 / x, 2**x):
        assert isinstance(y, cg.Tensor) and y.requires_grad
    for wrong in ("a", None, [1.0], object()):
        with pytest.raises(TypeError):
            x + wrong
    assert (x == "a") is False and (x != None) is True  # noqa: E711


def test_weak_numbers_and_promotion():
    half = cg.tensor([1.0], dtype=cg.float32)
    assert (half * 2.5).dtype == cg.float32 and (half + cg.tensor([1.0], dtype=cg.float64)).dtype == cg.float64
    assert (cg.tensor([1], dtype=cg.int8) + 1).dtype == cg.int8 and (cg.tensor([1]) * 0.5).dtype == cg.float32
    assert (cg.tensor([True]) + 1).dtype == cg.int64 and (cg.tensor([1], dtype=cg.uint8) + cg.tensor([1], dtype=cg.int8)).dtype == cg.int16
    with pytest.raises(OverflowError, match="300"):
        cg.tensor([1], dtype=cg.int8) + 300


def test_buffers():
    x = cg.arange(6.0).reshape(2, 3)
    view = memoryview(x)
    assert view.format == "f" and view.shape == (2, 3) and view.readonly and view.tolist() == x.tolist()
    assert memoryview(x.T).strides == (4, 12)
    array = np.asarray(x)
    assert not array.flags.writeable and np.shares_memory(array, x.numpy())
    tracked = cg.tensor([1.0], requires_grad=True)
    assert np.asarray(tracked * 2).tolist() == [2.0]
    with pytest.raises(RuntimeError, match="detach"):
        (tracked * 2).numpy()


def test_detach_shares_and_clone_copies():
    x = cg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    assert np.shares_memory(y.detach().numpy(), y.detach().numpy())
    c = y.clone()
    assert c.requires_grad and not np.shares_memory(c.detach().numpy(), y.detach().numpy())


@pytest.mark.parametrize("dtype", ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"])
def test_pickles_and_copies(dtype):
    x = cg.tensor([[0, 1], [1, 0]], dtype=dtype).T
    for y in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert y.dtype == x.dtype and y.tolist() == x.tolist() and y.shape == x.shape
    assert copy.deepcopy(x).data_ptr() != x.data_ptr()


SPECIMENS = {
    "columns": lambda: cg.arange(12.0).reshape(3, 4)[:, ::2], "reversed": lambda: cg.arange(5).flip(0), "transposed": lambda: cg.arange(6.0).reshape(2, 3).T,
    "0-d": lambda: cg.tensor(3.0), "empty": lambda: cg.zeros(0, 3), "repeated": lambda: cg.ones(1, 3).expand(4, 3), "bool": lambda: cg.tensor([True]),
    "tracked": lambda: cg.ones(4, requires_grad=True), "parameter": lambda: cg.nn.Parameter(cg.ones(2)),
}


@pytest.mark.parametrize("name", SPECIMENS)
@pytest.mark.parametrize("protocol", [0, 2, 5, None])
def test_pickles_and_deep_copies_are_independent(name, protocol):
    x = SPECIMENS[name]()
    before = x.tolist()
    y = copy.deepcopy(x) if protocol is None else pickle.loads(pickle.dumps(x, protocol))
    assert type(y) is type(x) and y.shape == x.shape and y.dtype is x.dtype and y.requires_grad == x.requires_grad and y.tolist() == before
    y.detach().fill_(0)             # writable, and on its own memory
    assert x.tolist() == before


def test_a_pickled_view_leaves_its_base_behind():
    assert len(pickle.dumps(cg.zeros(100_000)[:2])) < 1000
    x = cg.ones(2)
    one, other = pickle.loads(pickle.dumps((x, x)))
    assert one is other


def test_copies_of_leaves_and_results():
    x = cg.tensor([1.0], requires_grad=True)
    (x * 3).backward()
    y = copy.deepcopy(x)
    assert y.requires_grad and y.grad.tolist() == [3.0] and y.grad is not x.grad
    assert pickle.loads(pickle.dumps(x)).requires_grad
    for call in (copy.deepcopy, pickle.dumps):
        with pytest.raises(RuntimeError, match="detach"):
            call(x * 2)


def test_gradients_are_checked_when_set():
    x = cg.ones(2, requires_grad=True)
    for wrong in (cg.ones(3), cg.ones(2, dtype=cg.float64)):
        with pytest.raises(RuntimeError, match="shape .* dtype"):
            x.grad = wrong
    with pytest.raises(TypeError):
        x.grad = 1.0
    x.grad = cg.ones(2)
    del x.grad
    assert x.grad is None


def test_requires_grad_belongs_to_floating_leaves():
    for dtype in (cg.bool, cg.int64, cg.uint8):
        with pytest.raises(RuntimeError, match="floating"):
            cg.zeros(1, dtype=dtype).requires_grad_()
    y = cg.ones(1, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="leaf"):
        y.requires_grad = False
    assert not (y > 1).requires_grad and not y.long().requires_grad


def test_there_is_no_tensor_without_memory():
    for call in (lambda: cg.Tensor([1.0]), lambda: cg.Tensor.__new__(cg.Tensor), lambda: type("Own", (cg.Tensor,), {})()):
        with pytest.raises(TypeError, match="cgrad.tensor"):
            call()
    with pytest.raises(TypeError):
        object.__new__(cg.Tensor)


def test_sizes_are_numbers_and_functions_for_any_number_of_shapes():
    for n in range(2100):
        x = cg.empty(n % 7, n)
        assert x.size == n % 7 * n and x.size() == x.shape and x.size(1) == x.size(axis=-1) == n
    assert pickle.loads(pickle.dumps(x.size)) == x.size and type(pickle.loads(pickle.dumps(x.size))) is int and copy.copy(x.size) == x.size
