"""Indexing against NumPy: random keys on random layouts, reading, writing, accumulating; derivatives; errors that change nothing."""
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import cgrad as cg
from cgrad.core.forward import index as core


# ------------------------------------------------------------------------------------------------------------ random keys
@st.composite
def arrays(draw):
    """A small array of any layout: flipped, transposed, with a step, empty."""
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=4)))
    dtype = draw(st.sampled_from([np.float32, np.float64, np.int8, np.int16, np.int64, np.bool_]))
    a = np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)
    for axis in range(a.ndim):
        how = draw(st.sampled_from(["plain", "plain", "flip", "step"]))
        if how == "flip":
            a = np.flip(a, axis)
        elif how == "step":
            a = np.repeat(a, 2, axis)[(slice(None),) * axis + (slice(None, None, 2),)]
    return a.T if draw(st.booleans()) else a


@st.composite
def keys(draw, shape):
    """A valid key for an array of that shape; arrays come as NumPy arrays, lists or Tensors."""
    parts, axis, dots = [], 0, False
    common = draw(st.sampled_from([(), (3,), (2, 3), (1,), (0,)]))
    stop = draw(st.integers(0, len(shape)))
    while axis < stop:
        kind = draw(st.sampled_from(["int", "slice", "slice", "array", "mask", "none", "dots", "bool"]))
        n = shape[axis]
        if kind == "int" and n:
            value = draw(st.integers(-n, n - 1))
            parts.append(draw(st.sampled_from([value, np.int32(value), np.array(value), cg.tensor(value)])))
            axis += 1
        elif kind == "slice":
            bound = st.none() | st.integers(-n - 2, n + 2)
            parts.append(slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, -1, -2, 3]))))
            axis += 1
        elif kind == "array":
            size = draw(st.sampled_from([common, common[-1:], (1,) + common]))
            count = int(np.prod(size))
            if n == 0 and count:
                continue
            values = draw(st.lists(st.integers(-n, max(n - 1, -n)), min_size=count, max_size=count))
            index = np.array(values, draw(st.sampled_from([np.int64, np.int32, np.int8]))).reshape(size)
            if index.ndim:
                parts.append(draw(st.sampled_from([index, cg.tensor(index)] + ([index.tolist()] if count else []))))
                axis += 1
        elif kind == "mask":
            m = draw(st.integers(1, 2))
            if axis + m <= len(shape):
                size = int(np.prod(shape[axis:axis + m]))
                mask = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool).reshape(shape[axis:axis + m])
                parts.append(draw(st.sampled_from([mask, cg.tensor(mask)])))
                axis += m
        elif kind == "none" and len(parts) < 8:
            parts.append(None)
        elif kind == "bool" and len(parts) < 8:
            parts.append(draw(st.sampled_from([True, False, np.True_])))
        elif kind == "dots" and not dots:
            dots = True
            parts.append(Ellipsis)
            axis, stop = axis + len(shape) - stop, len(shape)
    return parts[0] if len(parts) == 1 and draw(st.booleans()) else tuple(parts)


def plain(key):
    """The key as NumPy takes it."""
    def one(part):
        return part.numpy() if isinstance(part, cg.Tensor) else part
    return tuple(map(one, key)) if isinstance(key, tuple) else one(key)


def outcome(function):
    try:
        return function(), None
    except Exception as error:
        return None, error


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_reading_agrees_with_numpy(data):
    a = data.draw(arrays())
    key = data.draw(keys(a.shape))
    want, error = outcome(lambda: a[plain(key)])
    x = cg.from_numpy(a)
    if error is not None:
        with pytest.raises(type(error)):
            x[key]
        return
    got = x[key]
    assert got.dtype == a.dtype and got.shape == np.shape(want)
    np.testing.assert_array_equal(got.numpy(), want)


def test_basic_keys_give_views_and_arrays_copies():
    a = np.arange(24).reshape(2, 3, 4)
    x = cg.from_numpy(a)
    for key in (0, (1, -1), slice(None, None, -1), (Ellipsis, None, 2), (), np.int64(1), cg.tensor(1), np.array(0), (slice(5, 2),)):
        assert np.shares_memory(x[key].numpy(), a) or x[key].size == 0
    for key in ([0], np.array([0, 1]), a > 5, (0, [1, 2]), True, cg.tensor([True, False])):
        assert not np.shares_memory(x[key].numpy(), a)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_writing_and_accumulating_agree_with_numpy(data):
    a = np.array(data.draw(arrays()))
    key = data.draw(keys(a.shape))
    shape, error = outcome(lambda: np.shape(a[plain(key)]))
    if error is not None:
        return
    size = data.draw(st.sampled_from([(), shape, tuple(1 if k % 2 else n for k, n in enumerate(shape)), shape[1:]]))
    value = np.arange(int(np.prod(size))).reshape(size).astype(a.dtype)
    want = a.copy()
    _, error = outcome(lambda: want.__setitem__(plain(key), value))
    if error is not None and ("boolean array indexing assignment" in str(error) or "setting an array" in str(error)):
        return
    x = cg.tensor(a)
    if error is not None:
        with pytest.raises(type(error)):
            x[key] = value
        np.testing.assert_array_equal(x.numpy(), a)
        return
    before = x._version
    x[key] = cg.tensor(value)
    np.testing.assert_array_equal(x.numpy(), want)
    assert x._version > before or 0 in shape          # where nothing was written, nothing changed
    if a.dtype != bool:
        g = np.ones(shape, a.dtype) * 2
        want = np.zeros_like(a)
        np.add.at(want, plain(key), g)
        np.testing.assert_array_equal(core.index_scatter(cg.tensor(g), key, a.shape).numpy(), want)
        want = a.copy()
        np.add.at(want, plain(key), g)
        np.testing.assert_array_equal(core.scatter_add_into(cg.tensor(a), key, cg.tensor(g)).numpy(), want)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_gradient_of_reading_is_the_adjoint(data):
    a = np.array(data.draw(arrays()), np.float64)
    key = data.draw(keys(a.shape))
    shape, error = outcome(lambda: np.shape(a[plain(key)]))
    if error is not None:
        return
    x = cg.tensor(a, requires_grad=True)
    y = x[key]
    g = np.arange(1.0, 1 + int(np.prod(shape))).reshape(shape)
    want = np.zeros_like(a)
    np.add.at(want, plain(key), g)
    np.testing.assert_array_equal(cg.autograd.grad(y, x, cg.tensor(g))[0].numpy(), want)


# ------------------------------------------------------------------------------------------------------------ errors
def table():
    return cg.arange(12).reshape(3, 4)


BAD_KEYS = [
    ((0, 7), IndexError, "index 7 is out of bounds for axis 1 with size 4"),
    (3, IndexError, "index 3 is out of bounds for axis 0 with size 3"),
    (-4, IndexError, "index -4 is out of bounds for axis 0 with size 3"),
    (2 ** 70, IndexError, "index 1180591620717411303424 is out of bounds"),
    ((0, 2 ** 70), IndexError, "index 1180591620717411303424 is out of bounds"),
    ([0, 3], IndexError, "index 3 is out of bounds for axis 0 with size 3"),
    ((slice(None), [[-5]]), IndexError, "index -5 is out of bounds for axis 1 with size 4"),
    (np.array([2 ** 63], np.uint64), IndexError, "9223372036854775808"),
    ((0, 0, 0), IndexError, "too many indices: 3 for 2 axes"),
    ((Ellipsis, Ellipsis), IndexError, "single ellipsis"),
    (1.0, IndexError, r"got a float \(1.0\)"),
    (np.array([0.0]), IndexError, "must hold integers or bools, not float64"),
    ([0.5], IndexError, "must hold integers or bools"),
    ("a", IndexError, "valid indices, got str"),
    (["a"], IndexError, "valid indices"),
    ({}, IndexError, "valid indices, got dict"),
    (np.ones((2, 4), bool), IndexError, "its axis 0 has length 2, axis 0 of the tensor 3"),
    ((np.ones(3, bool), np.ones(3, bool)), IndexError, "axis 1 of the tensor 4"),
    (([0, 1], [0, 1, 2]), IndexError, r"shapes \(2,\), \(3,\) cannot be broadcast"),
    (slice(None, None, 0), ValueError, "step cannot be zero"),
    (slice(1.5, None), TypeError, "slice indices must be integers"),
    ((None,) * 63, IndexError, "more than 64 axes"),
]


@pytest.mark.parametrize(("key", "kind", "message"), BAD_KEYS, ids=[str(k)[:30] for k, _, _ in BAD_KEYS])
@pytest.mark.parametrize("tracked", [False, True])
def test_bad_keys_raise_and_change_nothing(key, kind, message, tracked):
    x = table().astype(cg.float32).requires_grad_(tracked) * 1
    with pytest.raises(kind, match=f"getitem: .*{message}.*; the tensor has shape .3, 4."):
        x[key]
    version = x._version
    with pytest.raises(kind, match=f"setitem: .*{message}.*; the tensor has shape .3, 4."):
        x[key] = 5
    assert x._version == version and x.tolist() == table().tolist()


def test_scalars_cannot_be_indexed_by_numbers():
    with pytest.raises(IndexError, match="0 axes"):
        cg.tensor(1)[0]
    assert cg.tensor(1)[()].item() == 1 and cg.tensor(1)[...].shape == () and cg.tensor(1)[None].shape == (1,)


@pytest.mark.parametrize(("value", "kind", "message"), [
    (cg.ones(3), ValueError, r"shape \(3,\) does not broadcast to the indexed shape \(2, 4\)"),
    (cg.ones(1, 3, 4), ValueError, "does not broadcast"),
    (1.5, TypeError, "1.5 cannot be stored in a tensor of int64 without loss"),
    (float("nan"), TypeError, "nan cannot be stored"),
    (cg.ones(4) / 2, TypeError, "float32 cannot be stored in a tensor of int64"),
    (2 ** 64, OverflowError, "does not fit int64"),
    ("a", TypeError, "cannot make a tensor from str"),
    ([1, [2]], ValueError, "ragged"),
])
def test_bad_values_raise_and_change_nothing(value, kind, message):
    for key in (slice(0, 2), [0, 1]):
        x = table()
        if isinstance(value, cg.Tensor) and "broadcast" in message:
            value = value.astype(cg.int64)
        with pytest.raises(kind, match=message):
            x[key] = value
        assert x._version == 0 and x.tolist() == table().tolist()


def test_values_that_lose_nothing_are_taken():
    x = cg.zeros(3, dtype=cg.int64)
    x[0] = 2.0
    x[1] = True
    x[2] = [7]
    assert x.tolist() == [2, 1, 7]
    b = cg.zeros(2, dtype=cg.bool)
    b[0] = 1
    assert b.tolist() == [True, False]
    with pytest.raises(TypeError):
        b[0] = 2
    y = cg.zeros(2, dtype=cg.float64)
    y[0] = 0.1
    y[1:] = [0.1]
    assert y.tolist() == [0.1, 0.1]
    y[:] = np.float32(0.5)
    assert y.tolist() == [0.5, 0.5]


def test_broadcast_memory_is_not_written():
    x = cg.zeros(1).expand(3)
    for key in (0, slice(None), [0, 1]):
        with pytest.raises((ValueError, RuntimeError), match=r"one place|one of"):
            x[key] = 1
    assert x.tolist() == [0, 0, 0]


# ------------------------------------------------------------------------------------------------------------ overlap and repeats
def test_overlapping_sources():
    x = cg.arange(6)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3, 4]
    x = cg.arange(6)
    x[::-1] = x
    assert x.tolist() == [5, 4, 3, 2, 1, 0]
    x = cg.arange(4)
    x[x] = x.flip(0)
    assert x.tolist() == [3, 2, 1, 0]
    x = cg.arange(6)
    x[[1, 2, 3, 4, 5]] = x[:5]
    assert x.tolist() == [0, 0, 1, 2, 3, 4]
    a = np.arange(6)
    x, y = cg.from_numpy(a), cg.from_numpy(a)      # two storages, one memory
    x[1:] = y[:-1]
    assert a.tolist() == [0, 0, 1, 2, 3, 4]


def test_repeated_indices_all_count():
    n = 100_000
    table_ = cg.zeros(3, 4, requires_grad=True)
    index = cg.tensor(np.arange(n) % 3)
    table_[index].sum().backward()
    assert table_.grad.tolist() == [[np.ceil((n - k) / 3)] * 4 for k in range(3)]
    x = cg.zeros(2, dtype=cg.float64)
    out = cg.scatter_add(x, 0, cg.zeros(n, dtype=cg.int64), cg.ones(n, dtype=cg.float64))
    assert out.tolist() == [n, 0]


def test_large_reads_are_right_for_any_number_of_threads():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((5000, 33)).astype(np.float32)
    index = rng.integers(0, 5000, 20000)
    for n in (1, 2):
        before = cg.get_num_threads()
        cg.set_num_threads(n)
        try:
            assert np.array_equal(cg.tensor(a)[cg.tensor(index)].numpy(), a[index])
            assert np.array_equal(cg.tensor(a)[:, index[:40] % 33].numpy(), a[:, index[:40] % 33])
        finally:
            cg.set_num_threads(before)


# ------------------------------------------------------------------------------------------------------------ recorded writes
def test_recorded_assignment():
    x = cg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    v = cg.tensor([10.0, 20.0], requires_grad=True)
    y = x * 2
    y[1:] = v
    assert y.tolist() == [2, 10, 20] and y.requires_grad
    (y * cg.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [2, 0, 0] and v.grad.tolist() == [10, 100]


def test_assignment_into_a_plain_buffer_is_recorded():
    x = cg.tensor(3.0, requires_grad=True)
    out = cg.zeros(4)
    for k in range(4):
        out[k] = x ** k
    out.sum().backward()
    assert out.tolist() == [1, 3, 9, 27] and x.grad.item() == 1 + 6 + 27


def test_of_repeated_writes_only_the_last_gets_the_gradient():
    v = cg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = cg.zeros(2)
    x[[0, 1, 0]] = v
    assert x.tolist() == [3, 2]
    x.sum().backward()
    assert v.grad.tolist() == [0, 1, 1]


def test_assignment_through_a_view_reaches_the_base():
    x = cg.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    v = cg.tensor(7.0, requires_grad=True)
    y = x * 1
    y[1:][0] = 5.0
    y[2:][1] = v
    (y * y).sum().backward()
    assert y.tolist() == [1, 5, 3, 7] and x.grad.tolist() == [2, 0, 6, 0] and v.grad.item() == 14


def test_tracked_leaves_are_not_overwritten():
    x = cg.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        x[0] = 1
    with cg.no_grad():
        x[0] = 1
    assert x.tolist() == [1, 0, 0]


def test_overwriting_a_saved_value_is_found():
    x = cg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    z = y * y
    y[0] = 5.0
    with pytest.raises(RuntimeError):
        z.sum().backward()


def test_index_arrays_are_kept_as_they_were():
    x = cg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for index in (cg.tensor([0, 0]), np.array([0, 0])):
        x.grad = None
        y = x[index]
        index[0] = 2
        y.sum().backward()
        assert x.grad.tolist() == [2, 0, 0]
    mask = cg.tensor([True, False, True])
    y = x[mask]
    mask[0] = False
    x.grad = None
    y.sum().backward()
    assert x.grad.tolist() == [1, 0, 1]


# ------------------------------------------------------------------------------------------------------------ along an axis
def test_gather_and_scatter_check_everything_first():
    x = cg.arange(6).reshape(2, 3)
    with pytest.raises(IndexError, match="gather: index 3 is out of bounds for axis 1 with size 3"):
        x.gather(1, cg.tensor([[0, 3]]))
    with pytest.raises(ValueError, match="must not be larger"):
        x.gather(1, cg.zeros(3, 1, dtype=cg.int64))
    with pytest.raises(ValueError, match="as many axes"):
        x.gather(1, cg.tensor([0]))
    with pytest.raises(IndexError, match="must hold integers"):
        x.gather(1, cg.zeros(2, 2))
    with pytest.raises(ValueError, match="larger than src"):
        x.scatter(1, cg.tensor([[0, 1]]), cg.tensor([[1]]))
    with pytest.raises(TypeError, match="without loss"):
        x.scatter(1, cg.tensor([[0, 1]]), cg.ones(1, 2))
    with pytest.raises(IndexError):
        x.scatter_(1, cg.tensor([[9]]), 1)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.scatter_(1, cg.tensor([[2], [0]]), 9) is x and x.tolist() == [[0, 1, 9], [9, 4, 5]]


def test_repeated_scatter_gives_the_gradient_to_the_last():
    src = cg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = cg.tensor([5.0, 6.0], requires_grad=True)
    out = cg.scatter(x, 0, cg.tensor([0, 0, 0]), src)
    out.sum().backward()
    assert out.tolist() == [3, 6] and src.grad.tolist() == [0, 0, 1] and x.grad.tolist() == [0, 1]


def test_nonzero_of_scalars_and_matrices():
    with pytest.raises(ValueError, match="0-d"):
        cg.nonzero(cg.tensor(1))
    assert cg.argwhere(cg.tensor(1)).shape == (1, 0) and cg.argwhere(cg.tensor(0)).shape == (0, 0)
    assert cg.nonzero(cg.tensor([[0, 1]]), as_tuple=False).tolist() == [[0, 1]]


def test_iterating_and_rows():
    x = cg.arange(6).reshape(3, 2)
    assert [r.tolist() for r in x] == [[0, 1], [2, 3], [4, 5]]
    assert x[2, 1].item() == 5 and x[-1].tolist() == [4, 5] and x[1, -1].shape == ()
    x[1, 0] = -1
    assert x[1].tolist() == [-1, 3]


def test_rows_one_after_another_are_views_and_follow_history():
    a = np.arange(12.0).reshape(3, 4)[::-1, ::2]
    x = cg.tensor(a)[::-1]
    rows = iter(x)
    assert len(list(rows)) == 3 and not list(rows)
    for row, expected in zip(x, a[::-1]):
        np.testing.assert_array_equal(row.numpy(), expected)
    for row in x:
        row.fill_(7.0)
    assert (x == 7.0).all()
    assert [v.item() for v in cg.arange(3)] == [0, 1, 2] and not list(cg.zeros((0, 2))) and [r.shape for r in cg.zeros((2, 0))] == [(0,), (0,)]
    leaf = cg.tensor(a, requires_grad=True)
    base = leaf * 1
    view, rows = base[1:], None
    rows = iter(view)
    first = next(rows)
    base *= 3                                  # the view's rows know of it from here on
    (first.sum() + next(rows).sum()).backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), [[0, 0], [3, 3], [3, 3]])
