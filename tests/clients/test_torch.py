"""PyTorch and tensors share memory by DLPack, both ways."""
import gc

import numpy as np
import pytest

import cgrad as cg

torch = pytest.importorskip("torch")

A = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int8", "int16", "int32", "int64", "bool"])
def test_there_and_back_without_a_copy(dtype):
    x = cg.tensor(A.astype(dtype)).mT
    y = torch.from_dlpack(x)
    assert y.data_ptr() == x.numpy().ctypes.data and y.stride() == x.strides and str(y.dtype) == f"torch.{dtype}"
    z = cg.from_dlpack(y)
    assert z.dtype is x.dtype and np.array_equal(z.numpy(), x.numpy()) and z.numpy().ctypes.data == y.data_ptr()


def test_writes_and_lifetimes():
    y = torch.arange(4.0)
    x = cg.from_dlpack(y)
    x[0] = 9
    assert y[0].item() == 9
    del y
    gc.collect()
    assert x.tolist() == [9, 1, 2, 3]
    y = torch.from_dlpack(cg.arange(3))
    gc.collect()
    assert y.tolist() == [0, 1, 2]


def test_what_is_refused():
    with pytest.raises(BufferError, match="requires grad"):
        torch.from_dlpack(cg.ones(2, requires_grad=True))
    with pytest.raises(BufferError, match="negative strides"):       # PyTorch would end the process
        torch.from_dlpack(cg.arange(3).flip(0))
    with pytest.raises(BufferError):
        cg.from_dlpack(torch.ones(2, requires_grad=True))
    with pytest.raises(TypeError):
        cg.ones(2) + torch.ones(2)


def test_copies_and_capsules():
    assert cg.tensor(torch.ones(2)).tolist() == [1, 1] and torch.tensor(cg.ones(2)).tolist() == [1, 1]
    assert cg.from_dlpack(torch.utils.dlpack.to_dlpack(torch.arange(2))).tolist() == [0, 1]
    assert torch.utils.dlpack.from_dlpack(cg.arange(2).__dlpack__()).tolist() == [0, 1]
