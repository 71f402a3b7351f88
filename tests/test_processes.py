"""cgrad's objects in other processes: what travels, what it weighs, what is shared, and what memory that is shared refuses."""
import copy
import multiprocessing
import pickle
import sys
from multiprocessing import shared_memory

import numpy as np
import pytest

import cgrad as cg

CONTEXTS = multiprocessing.get_all_start_methods()


def learner():
    cg.manual_seed(0)
    model = cg.nn.Sequential(cg.nn.Linear(3, 8), cg.nn.BatchNorm1d(8), cg.nn.Tanh(), cg.nn.Linear(8, 1))
    return model, cg.optim.Adam(model.parameters(), lr=0.1), cg.Generator(1)


def train(objects):
    model, optimizer, stream = objects
    for _ in range(3):
        x = cg.randn(16, 3, generator=stream)
        loss = (model(x) - x.sum(axis=1, keepdims=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return objects


def numbers(objects):
    return [v.tolist() for v in objects[0].state_dict().values()] + [objects[2].get_state().tolist()]


def refused(call, *arguments):
    with pytest.raises(ValueError, match="memory is read-only"):
        call(*arguments)


def out_of_band(value):
    """What arrives, with its memory read-only and beside the pickle, as from a store that processes share."""
    buffers = []
    data = pickle.dumps(value, 5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[bytes(memoryview(b)) for b in buffers])


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_learner_goes_to_a_process_and_back(context):
    big = cg.ones(2_000_000).sum()                          # the parent has used its threads
    start = train(learner())
    with multiprocessing.get_context(context).Pool(1) as pool:
        there = pool.apply(train, (start,))
        assert pool.apply(cg.sum, (cg.ones(2_000_000),)).item() == big.item()
    assert numbers(there) == numbers(train(start))
    assert all(p is q for p, q in zip(there[0].parameters(), there[1].param_groups[0]["params"]))
    assert numbers(train(there)) == numbers(train(start))


def test_joblib_gets_all_by_value_and_large_tensors_as_mapped_files(run_python):
    pytest.importorskip("joblib")                           # it starts threads that stay, so in an interpreter of its own
    run_python("""
        import joblib, numpy as np
        import cgrad as cg

        def learner():
            cg.manual_seed(0)
            model = cg.nn.Linear(300_000, 2)
            return model, cg.optim.Adam(model.parameters(), lr=0.1), cg.Generator(1)

        def train(objects, x):
            model, optimizer, stream = objects
            for _ in range(2):
                optimizer.zero_grad()
                (model(x) - cg.randn(2, 2, generator=stream)).square().mean().backward()
                optimizer.step()
            return objects

        def look(x):
            try:
                x.zero_()
            except ValueError as error:
                return isinstance(x.numpy().base, np.memmap), str(error)

        def numbers(objects):
            return [objects[0].weight.tolist(), objects[2].get_state().tolist()]

        x, scale, run = cg.ones(2, 300_000), cg.tensor(3.0), joblib.Parallel(2)
        once = train(learner(), x)
        there = run(joblib.delayed(train)(learner(), x) for _ in range(2))
        assert numbers(there[0]) == numbers(there[1]) == numbers(once)
        (there,) = run([joblib.delayed(train)(once, x)])    # the state of the optimizer is large, too, and is written there
        assert numbers(there) == numbers(train(once, x))
        for mapped, error in run(joblib.delayed(look)(x) for _ in range(2)):
            assert mapped and "zero_: the tensor's memory is read-only" in error
        assert run(joblib.delayed(lambda x: (x * scale).item())(cg.tensor(v)) for v in (1.0, 2.0)) == [3.0, 6.0]
        assert joblib.hash(cg.ones(3)) == joblib.hash(cg.ones(3)) != joblib.hash(cg.zeros(3))
    """)


def test_dask_weighs_and_knows_tensors():
    sizeof = pytest.importorskip("dask.sizeof").sizeof
    tokenize = pytest.importorskip("dask.base").tokenize
    assert sizeof(cg.zeros(1000)) >= 4000
    assert tokenize(cg.ones(3)) == tokenize(cg.ones(3)) != tokenize(cg.zeros(3))


def test_pickles_weigh_little_more_than_the_numbers():
    assert sys.getsizeof(cg.zeros(1000)) > 4000
    assert len(pickle.dumps(cg.zeros(1_000_000)[:100])) < 400 + 300
    objects = train(learner())
    assert len(pickle.dumps(objects[0])) < 4 * sum(v.size for v in objects[0].state_dict().values()) + 3000
    buffers = []
    assert len(pickle.dumps(cg.zeros(1000, 1000).T, 5, buffer_callback=buffers.append)) < 300
    assert [len(memoryview(b).cast("B")) for b in buffers] == [4_000_000]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_parameters_of_all_dtypes(dtype):
    p = cg.nn.Parameter(cg.tensor([1.0, 2.0], dtype=dtype))
    p.note = "mine"
    q = pickle.loads(pickle.dumps(p))
    assert type(q) is cg.nn.Parameter and q.requires_grad and q.dtype is p.dtype and q.tolist() == [1.0, 2.0] and q.note == "mine"
    assert not pickle.loads(pickle.dumps(cg.nn.Buffer(p, persistent=False))).persistent


def test_memory_from_outside_is_kept_for_data_and_copied_for_what_is_trained():
    data = out_of_band(cg.arange(4.0))
    refused(data.add_, 1)
    assert data.sum().item() == 6
    objects = out_of_band(train(learner()))
    assert numbers(train(objects)) == numbers(train(train(learner())))
    assert out_of_band(cg.ones(3, requires_grad=True)).detach().zero_().tolist() == [0.0] * 3


def test_memory_from_outside_need_not_be_aligned():
    buffers = []
    data = pickle.dumps(cg.arange(4.0), 5, buffer_callback=buffers.append)
    shifted = bytearray(1) + bytes(memoryview(buffers[0]))
    assert pickle.loads(data, buffers=[memoryview(shifted)[1:]]).tolist() == [0, 1, 2, 3]


@pytest.fixture
def mapped(tmp_path):
    np.save(tmp_path / "numbers.npy", np.arange(12.0).reshape(3, 4))
    return np.load(tmp_path / "numbers.npy", mmap_mode="r")


def writes(x):
    row = cg.tensor([0])
    return [lambda: x.add_(1), lambda: x[0].fill_(2), lambda: x.T.mul_(2), lambda: x.__setitem__(0, 1.0), x.zero_, lambda: x.copy_(cg.ones(3, 4)),
            x.normal_, lambda: x.index_add_(0, row, cg.ones(1, 4, dtype="float64")), lambda: x.index_fill_(0, row, 1.0),
            lambda: x.scatter_(0, cg.tensor([[0]]), 1.0), lambda: x.masked_fill_(x > 0, 1.0), lambda: x.clamp_(0, 1), lambda: x.sigmoid_()]


@pytest.mark.parametrize("make", [cg.from_numpy, cg.asarray])
def test_read_only_arrays_are_shared_and_never_written(make, mapped):
    fixed = np.array(mapped)
    fixed.flags.writeable = False
    for array in (mapped, fixed):
        x = make(array)
        assert np.shares_memory(x.numpy(), array) and not x.numpy().flags.writeable and memoryview(x).readonly
        for write in writes(x):
            refused(write)
        assert x.tolist() == np.arange(12.0).reshape(3, 4).tolist()
        w = cg.nn.Parameter(x)
        w.sum().backward()
        refused(cg.optim.SGD([w], lr=0.1).step)
        refused(cg.optim.Adam([w], lr=0.1).step)
        assert copy.deepcopy(w).detach().zero_().sum().item() == 0


def test_a_mapped_file_stays_one(mapped):
    x = cg.asarray(mapped)
    assert isinstance(x.numpy().base, np.memmap)            # by which joblib sends the name of the file
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()


def test_shared_memory():
    block = shared_memory.SharedMemory(create=True, size=96)
    try:
        array = np.ndarray((3, 4), buffer=block.buf)
        x = cg.from_numpy(array)
        array[:] = 2
        x[0, 0] = 5.0
        assert x.sum().item() == 27 and array[0, 0] == 5
        del array, x
    finally:
        block.close()
        block.unlink()


def test_what_has_a_graph_does_not_travel():
    x = cg.tensor([1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match=r"pickle: the tensor was made by <MultiplyBackward> and its graph cannot be pickled; use x\.detach\(\)"):
        pickle.dumps(x * 2)
    assert pickle.loads(pickle.dumps((x * 2).detach())).tolist() == [2.0]
    (x * x).backward()
    assert pickle.loads(pickle.dumps(x)).requires_grad and pickle.loads(pickle.dumps(x)).grad is None


def test_views_of_one_memory_arrive_apart():
    x = cg.zeros(4)
    y, view, again = pickle.loads(pickle.dumps((x, x[:2], x)))
    view.fill_(1)
    assert y.tolist() == [0.0] * 4 and again is y
