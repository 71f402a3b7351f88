"""DataLoader: workers of both kinds, errors, endings, and going on in the middle of a pass."""
import copy
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import cgrad as cg
from cgrad.data import DataLoader, TensorDataset
from samples import AllNoise, Noise, Squares, Stream, Wrong, divide_by_zero, set_seed

KINDS = ["thread", "process"]


def as_list(batches):
    return [[x.tolist() if isinstance(x, cg.Tensor) else x for x in (batch.values() if isinstance(batch, dict) else batch)] for batch in batches]


def children():
    return [p for p in multiprocessing.active_children() if "DataLoader" in p.name]


@pytest.fixture(autouse=True)
def no_process_stays(monkeypatch):
    """And processes don't load pytest's main module, which takes them longer than all the rest."""
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "__spec__", None)
    monkeypatch.delattr(main, "__file__", raising=False)
    yield
    assert not children()


# ------------------------------------------------------------------------------------------------------------------ batches
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_batches_for_any_number_of_workers(kind):
    several = {"batch_size": 3, "shuffle": True}, {"batch_size": None, "shuffle": True}, {"batch_size": 4, "drop_last": True}, {}
    for options in several[:2] if kind == "process" else several:
        expected = as_list(DataLoader(Squares(10), seed=1, **options))
        for n, prefetch in ((2, 3),) if kind == "process" else ((1, 1), (3, 2), (7, 5)):
            loader = DataLoader(Squares(10), seed=1, num_workers=n, prefetch_factor=prefetch, workers=kind, **options)
            assert as_list(loader) == expected and len(loader) == len(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_tensors_arrive_whole(kind):
    data = TensorDataset(cg.randn(40, 1000), cg.arange(40), cg.zeros((40, 0)), cg.arange(40) % 2 == 0, cg.arange(40).bfloat16())
    for shuffle in (False, True):
        batches = list(DataLoader(data, batch_size=16, shuffle=shuffle, seed=0, num_workers=2, workers=kind))
        for batch, expected in zip(batches, DataLoader(data, batch_size=16, shuffle=shuffle, seed=0)):
            assert all(x.dtype is y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in zip(batch, expected))
        batches[0][0].zero_()                               # writable
    assert data.tensors[0].abs().min().item() > 0 or kind == "thread"


def test_random_numbers_depend_on_the_batch_alone():
    def drawn(data, **options):
        cg.manual_seed(5)
        loader = DataLoader(data, batch_size=4, shuffle=True, **options)
        return as_list(loader) + as_list(loader)

    one = drawn(Noise(), num_workers=1)
    values = [x for _, batch in one for x in batch]
    assert len(set(values)) == 24
    assert drawn(Noise(), num_workers=3) == one == drawn(Noise(), num_workers=2, workers="process")
    assert drawn(AllNoise(), num_workers=1, workers="process") == drawn(AllNoise(), num_workers=2, workers="process")


def test_workers_leave_the_generators_of_the_process_alone():
    def after(**options):
        cg.manual_seed(1)
        random.seed(1)
        np.random.seed(1)       # noqa: NPY002
        list(DataLoader(Squares(4), num_workers=2, **options))
        return cg.rand(()).item(), random.random(), np.random.rand()       # noqa: NPY002

    cg.manual_seed(1)
    random.seed(1)
    np.random.seed(1)       # noqa: NPY002
    expected = cg.rand(()).item(), random.random(), np.random.rand()       # noqa: NPY002
    assert after() == expected


@pytest.mark.parametrize("kind", KINDS)
def test_streams(kind):
    assert as_list([b] for b in DataLoader(Stream(7), batch_size=3)) == [[[0, 1, 2]], [[3, 4, 5]], [[6]]]
    two = [b.tolist() for b in DataLoader(Stream(11), batch_size=2, num_workers=2, workers=kind, worker_init_fn=set_seed)]
    assert two == [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9]]
    if kind == "thread":
        assert [b.tolist() for b in DataLoader(Stream(11), batch_size=2, drop_last=True, num_workers=2)] == two[:-1]
        assert list(DataLoader(Stream(3), batch_size=None, num_workers=2)) == [0, 1, 2]
        assert list(DataLoader(Stream(1), batch_size=None, num_workers=3)) == [0]
    loader = DataLoader(Stream(11), batch_size=2, num_workers=2, workers=kind, persistent_workers=True)
    assert [b.tolist() for b in loader] == two == [b.tolist() for b in loader]
    loader._pool.close()


def test_anything_that_iterates_is_a_stream():
    assert [b.tolist() for b in DataLoader((i * i for i in range(3)), batch_size=2)] == [[0, 1], [4]]
    with pytest.raises(TypeError):
        len(DataLoader(Stream(3)))
    for options in ({"shuffle": True}, {"sampler": [0]}, {"batch_sampler": [[0]]}):
        with pytest.raises(ValueError, match="Stream is a stream"):
            DataLoader(Stream(3), **options)


@pytest.mark.parametrize("options", [{"num_workers": 1.0}, {"num_workers": True}, {"timeout": 1}, {"prefetch_factor": 2}, {"persistent_workers": True},
                                     {"num_workers": 1, "prefetch_factor": 0}, {"num_workers": 1, "timeout": -1}, {"workers": "fiber"},
                                     {"workers": "thread", "multiprocessing_context": "spawn"}, {"batch_sampler": [[0]], "batch_size": 2},
                                     {"batch_sampler": [[0]], "shuffle": True}])
def test_options_that_make_no_sense(options):
    with pytest.raises(ValueError, match="DataLoader"):
        DataLoader(Squares(3), **options)


@pytest.mark.parametrize("kind", KINDS)
def test_persistent_workers_stay(kind):
    loader = DataLoader(Squares(8), batch_size=2, num_workers=2, workers=kind, persistent_workers=True)
    expected = as_list(DataLoader(Squares(8), batch_size=2))
    assert as_list(loader) == expected
    workers = loader._pool.workers
    assert as_list(pickle.loads(pickle.dumps(loader))) == as_list(copy.deepcopy(loader)) == expected
    for batch in loader:                # broken off: what was made ahead is thrown away
        assert batch["i"].tolist() == [0, 1]
        break
    assert as_list(loader) == expected and loader._pool.workers is workers
    thread = getattr(workers[0], "thread", None)
    del loader, workers
    assert thread is None or not thread.is_alive()


@pytest.mark.parametrize("method", ["spawn", "fork", multiprocessing.get_context("forkserver")])
def test_ways_to_start_processes(method):
    with pytest.MonkeyPatch.context() as patch:
        if method == "fork" and sys.version_info >= (3, 12):
            import warnings
            patch.setattr(warnings, "filters", [])
        loader = DataLoader(Squares(4), batch_size=2, num_workers=2, multiprocessing_context=method)
        assert loader.workers == "process" and as_list(loader) == as_list(DataLoader(Squares(4), batch_size=2))


def test_processes_have_the_default_dtype():
    cg.set_default_dtype(cg.float64)
    try:
        assert next(iter(DataLoader([0.1], num_workers=1, workers="process"))).dtype is cg.float64
    finally:
        cg.set_default_dtype(cg.float32)


# ------------------------------------------------------------------------------------------------------------------ errors
@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"num_workers": 2, "workers": "process"}])
def test_errors_come_with_sample_and_traceback(options):
    got = []
    with pytest.raises(KeyError, match="no file 4") as caught:
        for batch in DataLoader(Wrong("error"), sampler=[0, 1, 2, 4, 5], **options):
            got.append(batch.item())
    notes = "".join(caught.value.__notes__)
    assert got == [0, 1, 2] and "sample 4" in notes
    if options:
        assert "worker 1" in notes
    if "workers" in options:
        assert "in __getitem__" in notes and "samples.py" in notes
    else:
        assert any("__getitem__" in str(entry.name) for entry in caught.traceback)


@pytest.mark.parametrize("kind", KINDS)
def test_errors_in_the_wrong_places(kind):
    with pytest.raises((RuntimeError, StopIteration)):
        list(DataLoader(Wrong("stop"), num_workers=2, workers=kind))
    with pytest.raises(ZeroDivisionError):
        list(DataLoader(Squares(3), num_workers=1, workers=kind, collate_fn=divide_by_zero))
    with pytest.raises(ZeroDivisionError):
        list(DataLoader(Squares(3), num_workers=1, workers=kind, worker_init_fn=divide_by_zero))
    with pytest.raises(TimeoutError, match=r"worker 0 .*0\.3 s"):
        list(DataLoader(Wrong("slow"), num_workers=1, workers=kind, timeout=0.3)) if kind == "process" else list(
            DataLoader(Squares(3), num_workers=1, timeout=0.3, collate_fn=lambda samples: time.sleep(1)))
    if kind == "process":
        with pytest.raises(RuntimeError, match="OddError: 3 and more"):
            list(DataLoader(Wrong("odd error"), num_workers=1, workers=kind))
        with pytest.raises(RuntimeError, match="exit code 3"):
            list(DataLoader(Wrong("exit"), num_workers=2, workers=kind))
        with pytest.raises(RuntimeError, match="cannot be sent"):
            list(DataLoader(Wrong("cannot be sent"), num_workers=1, workers=kind, collate_fn=list))
        with pytest.raises(TypeError, match="cannot be sent to a process.*workers='thread'"):
            list(DataLoader(Squares(3), num_workers=2, workers=kind, collate_fn=lambda samples: samples))


# ------------------------------------------------------------------------------------------------------------------ endings
@pytest.mark.parametrize("kind", KINDS)
def test_leaving_the_loop_early_ends_the_workers(kind):
    before = threading.active_count()
    for _ in DataLoader(Squares(100), num_workers=2, workers=kind):
        break
    assert threading.active_count() == before and not children()
    with pytest.raises(ZeroDivisionError):
        for _ in DataLoader(Squares(100), num_workers=2, workers=kind):
            1 / 0
    passing = iter(DataLoader(Squares(100), num_workers=2, workers=kind))
    next(passing)
    assert threading.active_count() > before or children()
    del passing
    assert threading.active_count() == before and not children()
    unused = iter(DataLoader(Squares(100), num_workers=2, workers=kind))
    del unused
    assert threading.active_count() == before and not children()


SCRIPT = """
import os, signal, sys, time
import cgrad as cg

class Slow(cg.data.Dataset):
    def __len__(self):
        return 1000
    def __getitem__(self, i):
        time.sleep(0.02)
        return i, os.getpid()

if __name__ == "__main__":
    loader = cg.data.DataLoader(Slow(), num_workers=2, workers=KIND, persistent_workers=True)
    passing = iter(loader)
    print(*sorted({int(next(passing)[1]) for _ in range(4)}), flush=True)
    END
"""


def script(tmp_path, kind, end):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(SCRIPT).replace("KIND", repr(kind)).replace("END", end))
    return subprocess.Popen([sys.executable, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=os.environ | {"PYTHONPATH": str(Path(cg.__file__).parents[1])})


def gone(pid):
    for _ in range(100):
        try:
            os.kill(pid, 0)
            if "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]:
                return True                             # a zombie of a parent that is not ours
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("end", "code", "words"), [
    ("pass", 0, ""), ("sys.exit(4)", 4, ""), ("1 / 0", 1, "ZeroDivisionError"), ("os.kill(os.getpid(), signal.SIGKILL)", -9, ""),
    ("os.kill(os.getpid(), signal.SIGINT); [None for _ in passing]", -2, "KeyboardInterrupt"),
])
def test_the_end_of_the_program(kind, end, code, words, tmp_path):
    process = script(tmp_path, kind, end)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, bool(words)) == (code, bool(err)), err
    assert words in err
    assert all(gone(int(pid)) for pid in out.split())


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupt_while_waiting(kind, tmp_path):
    process = script(tmp_path, kind, "[None for _ in passing]")
    pids = process.stdout.readline().split()
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == -2 and "KeyboardInterrupt" in err, err
    assert all(gone(int(pid)) for pid in pids)


def test_a_script_without_the_guard_is_told(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("import cgrad as cg\nlist(cg.data.DataLoader([1, 2], num_workers=1, workers='process'))\n")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60, check=False,
                          env=os.environ | {"PYTHONPATH": str(Path(cg.__file__).parents[1])})
    assert done.returncode == 1 and "__name__ == '__main__'" in done.stderr


# ------------------------------------------------------------------------------------------------------------------ going on
def loaders():
    data = TensorDataset(cg.arange(20).reshape(10, 2))
    numbers = list(range(10))
    for options in ({}, {"shuffle": True}, {"shuffle": True, "seed": 3}, {"drop_last": True, "shuffle": True}):
        yield lambda options=options: DataLoader(data, batch_size=3, **options)
    yield lambda: DataLoader(numbers, batch_size=None, shuffle=True)
    yield lambda: DataLoader(numbers, batch_size=2, sampler=cg.data.WeightedRandomSampler([1.0] * 10, 7, generator=cg.Generator(2)))
    yield lambda: DataLoader(numbers, batch_sampler=cg.data.BatchSampler(cg.data.RandomSampler(numbers), 3, False))
    yield lambda: DataLoader(numbers, batch_size=3, shuffle=True, num_workers=2)
    yield lambda: DataLoader(Noise(), batch_size=3, shuffle=True, num_workers=2)
    yield lambda: DataLoader(Stream(10), batch_size=3)
    yield lambda: DataLoader(Stream(10), batch_size=3, num_workers=2)


@pytest.mark.parametrize("make", list(loaders()))
def test_going_on_anywhere(make, tmp_path):
    """Three passes, stopped after every batch and between passes: a new loader gives the rest, and what is drawn beside it is the same too."""
    cg.manual_seed(0)
    loader, trace, stops = make(), [], []

    def stop():
        stops.append((len(trace), loader.state_dict(), cg.random.get_rng_state()))

    for _ in range(3):
        for batch in loader:
            trace.append(repr(batch) + repr(cg.rand(())))
            stop()
        trace.append("end")
        stop()
    for done, state, rng in stops:
        cg.save({"loader": state, "rng": rng}, tmp_path / "state.npz")
        saved = cg.load(tmp_path / "state.npz")
        cg.manual_seed(99)
        again = make()
        again.load_state_dict(saved["loader"])
        assert repr(again.state_dict()) == repr(state)          # before the first batch it can be saved once more
        cg.random.set_rng_state(saved["rng"])
        rest = []
        for _ in range(3 - trace[:done].count("end")):
            rest += [repr(batch) + repr(cg.rand(())) for batch in again]
            rest.append("end")
        assert rest == trace[done:]


def test_states_that_do_not_fit():
    one, other = DataLoader([1, 2], shuffle=True, seed=0), DataLoader([1, 2])
    passing = iter(one)
    next(passing)
    for loader, state in [(other, one.state_dict()), (one, other.state_dict()), (one, {}), (one, None), (one, {"epoch": 1})]:
        with pytest.raises(ValueError, match="load_state_dict"):
            loader.load_state_dict(state)
    assert len(list(passing)) == 1


def test_a_later_pass_is_the_one_that_counts():
    loader = DataLoader([1, 2, 3])
    first = iter(loader)
    next(first)
    second = iter(loader)
    next(first)
    assert loader.state_dict()["position"] == 0
    next(second)
    list(first)
    assert loader.state_dict()["position"] == 1


def test_progress(capsys, monkeypatch):
    from cgrad.data import progress
    assert list(progress(range(3), desc="x")) == [0, 1, 2]
    bar = progress([1, 2])
    bar.set_postfix(loss=1.0)
    bar.set_description("train")
    bar.close()
    assert len(bar) == 2 and capsys.readouterr() == ("", "")
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert list(progress([1, 2], disable=False)) == [1, 2]
