"""Threads: how many there are by default, who may change it, and what a fork leaves of them."""
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import cgrad as cg
from cgrad.config import find_openblas
from cgrad.kernels import doors
from cgrad.kernels.parallel import default_threads, get_num_threads, set_num_threads

BIG = 1_000_000


@pytest.fixture
def threads():
    before = get_num_threads()
    yield set_num_threads
    set_num_threads(before)


def usable():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def python(code, **environ):
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environ}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_omp_num_threads_is_honoured():
    assert default_threads({"OMP_NUM_THREADS": "5"}) == 5
    assert default_threads({"OMP_NUM_THREADS": " 3,2"}) == 3
    for nonsense in ("", "0", "-4", "many"):
        assert 1 <= default_threads({"OMP_NUM_THREADS": nonsense}) <= usable()
    assert python("from cgrad.kernels import parallel; print(parallel.get_num_threads())", OMP_NUM_THREADS="3") == "3"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no CPU affinity here")
def test_affinity_is_honoured():
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); from cgrad.kernels import parallel; print(parallel.get_num_threads())"
    environ = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"} | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "1", done.stderr


def test_number_of_threads_can_be_set(threads):
    threads(3)
    assert get_num_threads() == 3
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="at least 1"):
            threads(wrong)
    assert get_num_threads() == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_computes_on_one_thread():
    # In a process of its own: pytest's may have threads that a fork does not like.
    code = f"""
import os, numpy as np
from cgrad.kernels import doors, parallel
parallel.set_num_threads(2)
x = np.ones({BIG}); doors.apply("exp", out := np.empty_like(x), x)
pid = os.fork()
if pid == 0:
    doors.apply("exp", again := np.empty_like(x), x)
    parallel.set_num_threads(2)
    doors.apply("exp", again, x)
    os._exit(0 if parallel.get_num_threads() == 1 and (again == out).all() else 3)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), parallel.get_num_threads())
"""
    assert python(code) == "0 2"


@pytest.mark.parametrize("n", [2, 5])
def test_python_threads_may_compute_at_once(threads, n):
    # One of them gets the workers at a time, the others do without.
    threads(n)
    x = np.linspace(-3, 3, BIG)
    expected = doors.apply("tanh", np.empty_like(x), x)
    results = [np.empty_like(x) for _ in range(4)]
    workers = [threading.Thread(target=doors.apply, args=("tanh", out, x)) for out in results]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(np.array_equal(out, expected) for out in results)


def test_workers_are_called_again_and_again(threads):
    # Sizes and numbers of threads change from job to job; each chunk is done once.
    sizes = [16_001, 100_000, 33_333, BIG]
    for round in range(200):
        threads(1 + round % 4)
        x = np.zeros(sizes[round % 3], dtype="float32")
        assert (doors.apply("add", x, x, np.ones_like(x)) == 1).all()
    x = np.zeros(sizes[3])
    threads(3)
    for _ in range(20):
        doors.apply("add", x, x, np.ones_like(x))
    assert (x == 20).all()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no CPU affinity here")
def test_more_threads_than_cores():
    code = f"""
import os; os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}})
import numpy as np
from cgrad.kernels import doors, parallel
parallel.set_num_threads(8)
x = np.zeros({BIG})
for _ in range(50):
    doors.apply("add", x, x, np.ones_like(x))
parallel.meet_all_workers(True)
for _ in range(3):
    doors.apply("add", x, x, np.ones_like(x))
print((x == 53).all())
"""
    assert python(code) == "True"


def test_a_process_ends_while_workers_wait():
    code = f"""
import numpy as np
from cgrad.kernels import doors, parallel
parallel.set_num_threads(4)
parallel.meet_all_workers(True)
x = np.ones({BIG})
doors.apply("exp", x, x)
"""
    assert python(code) == ""


def test_threads_for_a_block(threads):
    threads(2)
    openblas = find_openblas()
    with cg.threads(3):
        assert cg.get_num_threads() == 3
        with cg.threads(1):
            assert cg.get_num_threads() == 1
            assert openblas is None or openblas[0]() == 1
        assert cg.get_num_threads() == 3
    with pytest.raises(ZeroDivisionError), cg.threads(1):
        1 / 0
    with pytest.raises(ValueError, match="at least 1, got 0"), cg.threads(0):
        pass
    assert cg.get_num_threads() == 2


@pytest.mark.skipif("openblas" not in np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"] or os.name == "nt", reason="NumPy has another BLAS")
def test_the_number_of_threads_reaches_openblas(threads):
    get, _ = find_openblas()
    before = get()
    cg.set_num_threads(1)
    assert get() == 1
    cg.set_num_threads(before)
    assert get() == before
