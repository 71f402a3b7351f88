"""Threads: how many, and a split of [0, n) whose chunks depend on n alone.

Owns: the number of threads; the only file that names OpenMP.  Callers: every kernel that runs long enough to gain.
Rules: no GIL needed.  A body must not raise, must not take the GIL and must not depend on which thread runs it.  Inside a
parallel region, and in a process made by fork(), everything runs on the caller: OpenMP's threads do not survive a fork, and
waiting for them would hang.  Built without OpenMP everything runs serially.
Read next: iterate.pyx.
"""
from cython.parallel cimport prange

import os

cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    #else
    #define omp_in_parallel() 0
    #define omp_get_max_threads() 1   /* Cython's prange asks for it */
    #endif

    static int cgrad_forked = 0;
    #if defined(_WIN32)
    static void cgrad_watch_forks(void) {}
    #else
    #include <pthread.h>
    static void cgrad_after_fork(void) { cgrad_forked = 1; }
    static void cgrad_watch_forks(void) { pthread_atfork(NULL, NULL, cgrad_after_fork); }
    #endif
    """
    bint omp_in_parallel() noexcept nogil
    int cgrad_forked
    void cgrad_watch_forks() noexcept nogil

# Waking sleeping threads and meeting at the end costs about 10 us; 200 000 float additions take 25 us in cache, so that two
# threads begin to gain here (measured: 17 us on one and 22 us on two threads at 2**17 additions, 50 and 35 at 2**18).
BREAK_EVEN = 200000.0

cdef int n_threads = 1


cdef void parallel_for(body_t body, void* context, Py_ssize_t n, Py_ssize_t chunk, double cost) noexcept nogil:
    cdef Py_ssize_t start, i, n_chunks
    cdef int threads = n_threads
    if n <= 0:
        return
    if chunk < 1:
        chunk = 1
    n_chunks = (n - 1) // chunk + 1
    if cost < BREAK_EVEN or cgrad_forked:
        threads = 1
    elif cost < BREAK_EVEN * threads:
        threads = min(threads, <int>(2 * cost / BREAK_EVEN))      # half a break-even for each at least
    if n_chunks < threads:
        threads = <int>n_chunks
    if threads < 2 or omp_in_parallel():
        start = 0
        while start < n:
            body(context, start, min(start + chunk, n))
            start += chunk
        return
    # Dynamic: a thread that the system has put to sleep holds up one chunk only.
    for i in prange(n_chunks, schedule="dynamic", num_threads=threads):
        body(context, i * chunk, min(i * chunk + chunk, n))


cdef int get_threads() noexcept nogil:
    return 1 if cgrad_forked else n_threads


cdef void set_threads(int n) noexcept nogil:
    global n_threads
    n_threads = max(n, 1)


def get_num_threads():
    """How many threads a large operation uses (1 in a process made by fork)."""
    return get_threads()


def set_num_threads(int n):
    """Use up to `n` threads for large operations; the results do not depend on it.

    Raises ValueError if `n` is below 1.
    """
    if n < 1:
        raise ValueError(f"set_num_threads: the number of threads must be at least 1, got {n}")
    set_threads(n)


def _read(path):
    try:
        with open(path) as file:
            return file.read().split()
    except OSError:
        return []


def _quota():
    """CPUs that the control groups of this process grant it, or None."""
    found = []
    for line in _read("/proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        unified = controllers == ""
        if not unified and "cpu" not in controllers.split(","):
            continue
        while True:
            if unified:
                quota, period = (_read(f"/sys/fs/cgroup{path}/cpu.max") + ["max", "max"])[:2]
            else:
                folder = f"/sys/fs/cgroup/cpu{path}"
                quota, period = (_read(folder + "/cpu.cfs_quota_us") or ["-1"])[0], (_read(folder + "/cpu.cfs_period_us") or ["-1"])[0]
            if quota.isdigit() and period.isdigit() and int(period):
                found.append(int(quota) / int(period))
            if path in ("/", ""):
                break
            path = path.rpartition("/")[0]
    return min(found, default=None)


def default_threads(environ=os.environ):
    """OMP_NUM_THREADS if it is a positive number (the first of a list), else the CPUs this process may use."""
    wanted = environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if wanted.isdigit() and int(wanted):
        return int(wanted)
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota()
    return usable if quota is None else max(1, min(usable, round(quota)))


set_threads(default_threads())
cgrad_watch_forks()
