"""Threads: how many, and a split of [0, n) whose chunks depend on n alone.

Owns: the number of threads; the only file that names OpenMP.  Callers: every kernel that runs long enough to gain.
Rules: no GIL needed.  A body must not raise, must not take the GIL and must not depend on which thread runs it.
Built without OpenMP everything runs serially.  Read next: iterate.pyx.
"""
from cython.parallel cimport prange

import os

cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    #else
    #define omp_in_parallel() 0
    #endif
    """
    bint omp_in_parallel() noexcept nogil

# A region with two threads costs about 10 us; below this many float additions it cannot pay.
cdef double BREAK_EVEN = 65536.0

cdef int n_threads = 1


cdef void parallel_for(body_t body, void* context, Py_ssize_t n, Py_ssize_t chunk, double cost) noexcept nogil:
    cdef Py_ssize_t start, i, n_chunks
    cdef int threads = n_threads
    if n <= 0:
        return
    if chunk < 1:
        chunk = 1
    n_chunks = (n - 1) // chunk + 1
    if n_chunks < threads:
        threads = <int>n_chunks
    if threads < 2 or cost < BREAK_EVEN or omp_in_parallel():
        start = 0
        while start < n:
            body(context, start, min(start + chunk, n))
            start += chunk
        return
    for i in prange(n_chunks, schedule="dynamic", num_threads=threads):
        body(context, i * chunk, min(i * chunk + chunk, n))


cdef int get_threads() noexcept nogil:
    return n_threads


cdef void set_threads(int n) noexcept nogil:
    global n_threads
    n_threads = max(n, 1)


set_threads(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def get_num_threads():
    """How many threads a large operation uses."""
    return n_threads


def set_num_threads(int n):
    """Use up to `n` threads for large operations.

    Raises ValueError if `n` is below 1.
    """
    if n < 1:
        raise ValueError(f"set_num_threads: the number of threads must be at least 1, got {n}")
    set_threads(n)
