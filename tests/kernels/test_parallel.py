"""Threads: how many there are by default, who may change it, and what a fork leaves of them."""
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

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


def test_the_wait_policy_is_not_left_in_the_environment():
    code = "import os; from cgrad.kernels import parallel; print(os.environ.get('OMP_WAIT_POLICY'))"
    environ = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"} | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "None", done.stderr
    assert python(code, OMP_WAIT_POLICY="active") == "active"


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


def test_python_threads_may_compute_at_once(threads):
    threads(2)
    x = np.linspace(-3, 3, BIG)
    expected = doors.apply("tanh", np.empty_like(x), x)
    results = [np.empty_like(x) for _ in range(4)]
    workers = [threading.Thread(target=doors.apply, args=("tanh", out, x)) for out in results]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(np.array_equal(out, expected) for out in results)
