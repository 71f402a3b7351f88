"""Tensors that leave and come back: DLPack, pickles, copies, other processes, shared memory."""
import copy
import gc
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, shared_memory

import numpy as np
import pytest

import cgrad as cg

A = np.arange(6.0).reshape(2, 3)


# ------------------------------------------------------------------------------------------------------------------ DLPack
@pytest.mark.parametrize("tensor", [cg.tensor(A), cg.tensor(A).mT, cg.tensor(A)[:, ::2], cg.broadcast_to(cg.tensor(A[0]), (4, 3)), cg.tensor(2.5),
                                    cg.zeros(0, 3), cg.tensor([True, False]), cg.tensor([1, -2], dtype=cg.int8)],
                         ids=["plain", "transposed", "sliced", "broadcast", "0-d", "empty", "bool", "int8"])
def test_memory_goes_out_and_comes_back_without_a_copy(tensor):
    out = np.from_dlpack(tensor)
    back = cg.from_dlpack(out)
    np.testing.assert_array_equal(out, tensor.numpy())
    assert back.shape == tensor.shape and back.dtype is tensor.dtype
    if tensor.size:
        assert out.ctypes.data == tensor.numpy().ctypes.data == back.numpy().ctypes.data and out.strides == tensor.numpy().strides
    assert not tensor.size or not np.shares_memory(np.from_dlpack(tensor, copy=True), tensor.numpy())
    assert tensor.__dlpack_device__() == (1, 0)


def test_whoever_dies_first_leaves_the_memory_to_the_other():
    values = np.arange(1000.0)
    out = np.from_dlpack(cg.tensor(values))
    x = cg.from_dlpack(values.copy())
    x.__dlpack__(max_version=(1, 0))                # a capsule that nobody takes
    capsule = cg.tensor(values).__dlpack__()
    gc.collect()
    for _ in range(3):                              # what is freed would be used again
        cg.full((1000,), 7.0, dtype=cg.float64)
    assert np.array_equal(out, values) and np.array_equal(x.numpy(), values)
    again = cg.from_dlpack(capsule)
    del capsule
    gc.collect()
    cg.full((1000,), 7.0, dtype=cg.float64)
    assert np.array_equal(again.numpy(), values)


def test_writes_are_seen_on_both_sides_and_read_only_memory_stays_so():
    x = cg.tensor(A)
    out = np.from_dlpack(x)
    out[0, 0] = 9
    x[0, 1] = 8
    assert x[0, 0].item() == 9 and out[0, 1] == 8
    frozen = A.copy()
    frozen.flags.writeable = False
    y = cg.from_dlpack(frozen)
    with pytest.raises(ValueError, match="read-only"):
        y.add_(1)
    assert not np.from_dlpack(y).flags.writeable
    with pytest.raises(BufferError, match="readonly"):     # a capsule without a version cannot say so
        y.__dlpack__()
    assert cg.from_dlpack(frozen, copy=True).add_(1)[0, 0].item() == 1


def test_what_other_libraries_could_not_take():
    x = cg.tensor(A)
    with pytest.raises(BufferError, match="requires grad"):
        x.clone().requires_grad_(True).__dlpack__()
    with pytest.raises(BufferError, match="negative strides"):
        x.flip(0).__dlpack__()
    assert np.array_equal(np.from_dlpack(x.flip(0), copy=True), A[::-1])
    with pytest.raises(BufferError, match=r"device \(1, 0\); device \(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="stream"):
        x.__dlpack__(stream=1)
    with pytest.raises(TypeError, match="no __dlpack__"):
        cg.from_dlpack([1.0])
    with pytest.raises(ValueError, match="cuda"):
        cg.from_dlpack(A, device="cuda")


# ----------------------------------------------------------------------------------------------------------------- pickles
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_keep_values_dtype_and_wish_for_gradients(protocol):
    for x in (cg.tensor(A, requires_grad=True), cg.tensor(A).mT, cg.tensor(A).flip(1), cg.tensor(3), cg.zeros(0, 2, dtype=cg.int8), cg.tensor([True])):
        y = pickle.loads(pickle.dumps(x, protocol))
        assert np.array_equal(y.numpy(force=True), x.numpy(force=True))
        assert y.dtype is x.dtype and y.requires_grad == x.requires_grad
        y.detach().fill_(1)                          # whoever made it may write
    assert pickle.loads(pickle.dumps(cg.float32, protocol)) is cg.float32


def test_only_what_a_view_shows_is_pickled():
    assert len(pickle.dumps(cg.zeros(100_000)[:2])) < 1000


def test_protocol_5_carries_the_memory_outside_of_the_pickle():
    x, buffers = cg.zeros(100_000), []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    assert len(data) < 1000 and len(buffers) == 1
    y = pickle.loads(data, buffers=buffers)
    assert np.shares_memory(y.numpy(), x.numpy())
    frozen = pickle.loads(data, buffers=[bytes(buffers[0])])
    with pytest.raises(ValueError, match="read-only"):
        frozen.add_(1)


def test_graphs_are_not_pickled():
    x = cg.tensor(A, requires_grad=True)
    with pytest.raises(RuntimeError, match="detach"):
        pickle.dumps(x * 2)
    x.sum().backward()
    assert pickle.loads(pickle.dumps(x)).grad is None


class Half(cg.Op):
    def forward(self, x):
        self.x = x
        return x / 2

    def backward(self, g):
        return g / 2


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_operations_are_pickled_by_name_and_ops_with_their_state(protocol):
    for function in (cg.exp, cg.sum, cg.linalg.inv, cg.special.zeta, cg.special.erf, cg.nn.functional.relu, cg.func.grad, Half, cg.exp.op, cg.special.ndtr.op):
        assert pickle.loads(pickle.dumps(function, protocol)) is function
    half, exp = Half(), cg.exp.op()
    half(cg.tensor([4.0], requires_grad=True))
    exp(1.0)
    for make in (lambda op: pickle.loads(pickle.dumps(op, protocol)), copy.deepcopy, copy.copy):
        assert make(half).x.tolist() == [4.0] and make(exp).backward(1.0).item() == pytest.approx(np.e)


def test_copies():
    x = cg.tensor(A, requires_grad=True)
    x.sum().backward()
    y, z = copy.copy(x), copy.deepcopy(x)
    assert np.shares_memory(y.numpy(force=True), x.numpy(force=True)) and y.is_leaf and y.requires_grad
    assert not np.shares_memory(z.numpy(force=True), x.numpy(force=True)) and z.requires_grad and np.array_equal(z.grad.numpy(), x.grad.numpy())
    one, two = copy.deepcopy([x, x])
    assert one is two
    with pytest.raises(RuntimeError, match="leaves"):
        copy.deepcopy(x * 2)


# --------------------------------------------------------------------------------------------------------- other processes
def doubled(x):
    return cg.func.grad(lambda x: (x * x).sum())(x)


def test_tensors_go_through_processes():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(doubled, [cg.tensor(A), cg.tensor(A + 1)]))
    assert np.array_equal(found[0].numpy(), 2 * A) and np.array_equal(found[1].numpy(), 2 * A + 2)


def test_shared_memory_between_processes():
    block = shared_memory.SharedMemory(create=True, size=A.nbytes)
    try:
        ours = cg.from_numpy(np.ndarray(A.shape, A.dtype, buffer=block.buf))
        ours.copy_(cg.tensor(A))
        other = shared_memory.SharedMemory(block.name)
        theirs = cg.frombuffer(other.buf, dtype=cg.float64, count=A.size)
        theirs.mul_(2)
        assert np.array_equal(ours.numpy(), 2 * A)
        del theirs, ours
        gc.collect()
        other.close()
    finally:
        block.close()
        block.unlink()
