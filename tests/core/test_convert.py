"""Python objects into tensors and back: dtypes, layouts, sharing, and what is refused with which words."""
import array
import gc
import mmap
import pickle

import numpy as np
import pytest

import cgrad as cg

# ------------------------------------------------------------------------------------------------------------ inference
DTYPES = [
    (True, "bool"), (3, "int64"), (2.5, "float32"), ([True, False], "bool"), ([1, True], "int64"), ([1, 2.5], "float32"), ([], "float32"),
    ([[], []], "float32"), (range(3), "int64"), (np.float64(1), "float64"), (np.float32(1), "float32"), (np.int8(1), "int8"),
    (np.bool_(True), "bool"), ([np.float64(1), 2], "float64"), ([np.int8(1), 2], "int8"), ([np.int8(1), 2.5], "float32"),
    ([np.float32(1), np.float64(2)], "float64"), (np.zeros(2, np.uint8), "uint8"), (np.zeros(2, np.uint16), "uint16"), (np.zeros(2, np.ulonglong), "uint64"), (np.zeros(2, np.float16), "float16"),
    (np.zeros(2, ">u4"), "uint32"), (np.zeros(2, ">f8"), "float64"), (np.zeros(2, ">i4"), "int32"),
    (bytearray(b"ab"), "uint8"), (b"ab", "uint8"), (array.array("d", [1.0]), "float64"), (array.array("i", [1]), "int32"), (memoryview(b"x"), "uint8"),
    ([np.zeros(2, np.float32), np.zeros(2)], "float64"), ([np.zeros(2, np.int32), [1, 2]], "int64"),
]


@pytest.mark.parametrize(("data", "dtype"), DTYPES, ids=[repr(d).split(" at 0x")[0][:40] for d, _ in DTYPES])
def test_dtype_of_data(data, dtype):
    assert cg.tensor(data).dtype == dtype


def test_default_dtype_is_that_of_python_floats():
    cg.set_default_dtype(cg.float64)
    try:
        assert cg.tensor(1.5).dtype is cg.float64 and cg.tensor([1, 0.1])[1].item() == 0.1
        assert cg.tensor(np.float32(1)).dtype is cg.float32
    finally:
        cg.set_default_dtype(cg.float32)


def test_nested_lists_and_tuples():
    assert cg.tensor([[1, 2], (3, 4)]).tolist() == [[1, 2], [3, 4]]
    assert cg.tensor([[[1.5]], [[2.5]]]).shape == (2, 1, 1)
    assert cg.tensor([[], []]).shape == (2, 0)
    x = cg.tensor([1.0, 2.0])
    assert cg.tensor([x, x * 2]).tolist() == [[1, 2], [2, 4]]
    assert cg.tensor([x[0], 5, np.float32(7)]).tolist() == [1, 5, 7]
    assert cg.tensor([[np.arange(2), np.arange(2)]]).shape == (1, 2, 2)
    deep = 1
    for _ in range(64):
        deep = [deep]
    assert cg.tensor(deep).ndim == 64


RAGGED = [
    ([[1, 2], [3]], r"data\[1\] is a sequence of length 1, but data\[0\] is a sequence of length 2"),
    ([[1], 2], r"data\[1\] is a number \(int\), but data\[0\] is a sequence of length 1"),
    ([1, [2]], r"data\[1\] is a sequence of length 1, but data\[0\] is a number"),
    ([[[1, 2], [3, 4]], [[5, 6], [7]]], r"data\[1\]\[1\] is a sequence of length 1"),
    ([np.zeros(2), np.zeros(3)], r"data\[1\] is an array of shape \(3,\)"),
    ([[], [1]], r"data\[1\] is a sequence of length 1, but data\[0\] is a sequence of length 0"),
]


@pytest.mark.parametrize(("data", "message"), RAGGED)
def test_ragged_lists_are_refused_with_the_place(data, message):
    with pytest.raises(ValueError, match=message):
        cg.tensor(data)


def test_lists_that_hold_themselves():
    loop = []
    loop += [loop, loop]
    with pytest.raises(ValueError, match="64 levels"):
        cg.tensor(loop)
    loop = [1]
    loop.append(loop)
    with pytest.raises(ValueError, match="ragged"):
        cg.tensor(loop)


REFUSED = ["abc", None, 1j, [1j], {1: 2}, {1}, object(), ["a"], [None], np.array(["a"]), np.array([1, None]), np.array([1j]),
           np.array(["2020-01-01"], "M8[D]"), np.zeros(1, [("a", "i4")]), np.longdouble(1), np.ma.array([1, 2], mask=[0, 1])]


@pytest.mark.parametrize("data", REFUSED, ids=[type(d).__name__ + str(k) for k, d in enumerate(REFUSED)])
def test_what_is_not_numbers_is_a_type_error(data):
    with pytest.raises(TypeError, match=r"cannot make a tensor|not supported"):
        cg.tensor(data)


def test_integers_beyond_the_dtype_overflow_with_their_value():
    assert cg.tensor(-2 ** 63).item() == -2 ** 63 and cg.tensor([2 ** 63 - 1]).tolist() == [2 ** 63 - 1]
    for data in (2 ** 63, [1, 2 ** 63], -2 ** 63 - 1):
        with pytest.raises(OverflowError, match=r"922337203685477580[89] does not fit int64"):
            cg.tensor(data)
    with pytest.raises(OverflowError, match="300 does not fit uint8, which holds 0 to 255"):
        cg.tensor([300], dtype=cg.uint8)
    with pytest.raises(OverflowError, match="-1 does not fit uint8"):
        cg.tensor(-1, dtype=cg.uint8)
    with pytest.raises(OverflowError, match="bits"):
        cg.tensor(10 ** 400)
    with pytest.raises(OverflowError, match="too large for float32"):
        cg.tensor(10 ** 400, dtype=cg.float32)
    with pytest.raises(ValueError, match="nan"):
        cg.tensor([float("nan")], dtype=cg.int64)


def test_arrays_convert_on_the_way():
    assert cg.tensor(np.array([70], np.uint16), dtype=cg.int32).tolist() == [70]
    assert cg.tensor(np.array([1.5], np.float16), dtype=cg.float32).tolist() == [1.5]
    assert cg.tensor(np.array([70000, -1]), dtype=cg.uint16).tolist() == np.array([70000, -1]).astype(np.uint16).tolist()
    assert cg.tensor(np.array([2.5, 1e9], ">f8"), dtype=cg.bfloat16).tolist() == [2.5, 998244352.0]


# ------------------------------------------------------------------------------------------------------------ layouts
def layouts():
    a = np.arange(24).reshape(2, 3, 4)
    yield a
    yield a[::-1, :, ::-2]
    yield a.transpose(2, 0, 1)
    yield np.asfortranarray(a)
    yield np.broadcast_to(a[0, 0], (3, 4))
    yield a[:, :0]
    yield np.array(7)
    yield a[1, ::2, 1:]


@pytest.mark.parametrize("dtype", ["?", "u1", "i1", "<i2", ">i2", "<i4", "<i8", ">i8", "<f4", ">f4", "<f8", ">f8"])
def test_every_layout_is_copied_and_shared_right(dtype):
    for a in layouts():
        base = a.astype(dtype, order="K") if a.size and 0 not in a.strides else a.astype(dtype)
        x = cg.tensor(base)
        assert x.shape == base.shape and np.array_equal(x.numpy(), base) and x.is_contiguous()
        y = cg.asarray(base)
        assert np.array_equal(y.numpy(), base)
        if base.dtype.isnative and base.size:
            assert np.shares_memory(y.numpy(), base) and y.numpy().strides == base.strides
            assert np.array_equal(cg.from_numpy(base).numpy(), base)


def test_unaligned_and_structured_fields():
    raw = np.frombuffer(bytearray(b"\0" * 17), np.uint8)[1:].view("<f8")
    assert not raw.flags.aligned and cg.tensor(raw).tolist() == [0, 0]
    packed = np.zeros(3, [("a", "i1"), ("b", "<f8")])["b"]
    assert cg.tensor(packed).tolist() == [0, 0, 0] and cg.asarray(packed).tolist() == [0, 0, 0]
    for a in (raw, packed, np.zeros(2, ">f4")):
        with pytest.raises(ValueError, match="cannot be shared"):
            cg.from_numpy(a)
        with pytest.raises(ValueError, match="copy=False"):
            cg.asarray(a, copy=False)


# ------------------------------------------------------------------------------------------------------------ sharing
def test_from_numpy_shares_and_keeps_the_array_alive():
    a = np.arange(6.0)
    x = cg.from_numpy(a[::-2])
    a[5] = 50
    assert x.tolist() == [50, 3, 1]
    x[1] = -3
    assert a[3] == -3
    del a
    gc.collect()
    assert x.tolist() == [50, -3, 1]
    with pytest.raises(TypeError, match=r"expected a numpy.ndarray, got list"):
        cg.from_numpy([1])


def test_read_only_memory_cannot_be_written():
    a = np.arange(3.0)
    a.flags.writeable = False
    x = cg.from_numpy(a)
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1
    assert not x.numpy().flags.writeable and a[0] == 0
    cg.tensor(a)[0] = 1
    assert cg.asarray(b"abc").numpy().flags.writeable is False


def test_numpy_shares_both_ways_and_outlives_the_tensor():
    for shape in ((3,), (40,)):                # inside the storage object, and in a block of its own
        x = cg.zeros(shape)
        a = x.numpy()
        a[1] = 5
        assert x[1].item() == 5
        x[2] = 7
        assert a[2] == 7
        del x
        gc.collect()
        assert a[1] == 5 and a.base is not None
    t = cg.arange(6).reshape(2, 3)
    assert np.array_equal(t.T.numpy(), np.arange(6).reshape(2, 3).T) and t.T.numpy().strides == (8, 24)


def test_asarray_returns_tensors_as_they_are():
    x = cg.tensor([1.0], requires_grad=True)
    assert cg.asarray(x) is x
    y = cg.asarray(x, dtype=cg.float64)
    y.sum().backward()
    assert x.grad.tolist() == [1]
    z = cg.asarray(x, copy=True)
    assert z is not x and z.requires_grad
    with pytest.raises(ValueError, match="copy=False"):
        cg.asarray(x, dtype=cg.float64, copy=False)


def test_tensor_copies_out_of_the_graph():
    x = cg.tensor([1.0], requires_grad=True)
    y = cg.tensor((x * 2).detach())
    assert y.is_leaf and not y.requires_grad and y.tolist() == [2]
    a = np.zeros(2)
    cg.tensor(a)[0] = 1
    assert a[0] == 0


def test_buffers():
    x = cg.frombuffer(bytearray(np.arange(4, dtype=np.float32).tobytes()))
    assert x.tolist() == [0, 1, 2, 3]
    assert cg.frombuffer(b"\1\0\2\0", dtype=cg.int16).tolist() == [1, 2]
    with pytest.raises(ValueError, match="frombuffer"):
        cg.frombuffer(b"abc", dtype=cg.float32)
    with mmap.mmap(-1, 16) as m:
        y = cg.frombuffer(m, dtype=cg.uint8)
        y[0] = 9
        assert m[0] == 9
        del y
        gc.collect()
    assert bytes(memoryview(cg.tensor([1, 2], dtype=cg.uint8))) == b"\1\2"


class Foreign:
    """An object that only has `__array__`."""

    def __array__(self, dtype=None, copy=None):
        return np.arange(3.0)


class Capsule:
    """An object that only has DLPack."""

    def __init__(self, a):
        self.a = a

    def __dlpack__(self, **options):
        return self.a.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.a.__dlpack_device__()


def test_array_protocols():
    assert cg.tensor(Foreign()).tolist() == [0, 1, 2]
    a = np.arange(3)
    assert cg.tensor(Capsule(a)).tolist() == [0, 1, 2]
    x = cg.from_dlpack(Capsule(a))
    a[0] = 9
    assert x[0].item() == 9
    assert cg.from_dlpack(a, copy=True).numpy().base is not a
    with pytest.raises(TypeError, match="no __dlpack__"):
        cg.from_dlpack([1])


def test_scalars_out():
    assert cg.tensor([[5]]).item() == 5 and isinstance(cg.tensor([True]).item(), bool)
    for shape in ((0,), (2,), (1, 2)):
        with pytest.raises(ValueError, match="one element"):
            cg.zeros(shape).item()
    assert cg.tensor(5).tolist() == 5
    assert cg.zeros(2, 0).tolist() == [[], []]
    flipped = np.arange(6, dtype=np.int16).reshape(2, 3)[::-1].T
    assert cg.from_numpy(flipped).tolist() == flipped.tolist()


def test_pickle_round_trip():
    again = pickle.loads(pickle.dumps(cg.tensor([1.5, 2.5])))
    assert again.tolist() == [1.5, 2.5]
