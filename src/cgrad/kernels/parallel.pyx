"""Threads: how many, and a split of [0, n) whose chunks depend on n alone.

Owns: the number of threads and the pool of workers; the only file that names OpenMP.  Callers: every kernel that runs long enough
to gain.  Rules: no GIL needed.  A body must not raise, must not take the GIL and must not depend on which thread runs it.

OpenMP makes the threads, and they stay in one parallel region for good: a region for each job costs two barriers, 8 to 50 us where
threads sleep in them, and on a busy machine milliseconds whether they sleep or spin.  Here a job is one word, the gate, which the
caller opens and closes.  Workers that see it open walk in and take chunks.  When no chunk is left the caller closes it and waits for
those inside, not for those who never came: a worker without a core holds nobody up.  With workers awake this costs 0.4 us.

Each thread first takes a share of the chunks that is the same in every job of that size, so that data stays in its core's cache,
then helps the others (float32 gelu of 100 000 elements, forward and backward: 110 us, with one queue for all 141 us).  What keeps a
busy machine from harm: threads spin for SPIN at most, and workers only if their last wait was that short; a worker that finds itself
on the caller's core moves away; and after waiting for a worker that had lost its core the caller works alone for a while.

Everything runs on the caller below the break-even, while the pool serves another Python thread or the body that calls, in a process
made by fork(), which threads do not survive, and in a build without OpenMP.
Read next: iterate.pyx.
"""
from cython.parallel cimport parallel, threadid
from libc.stdint cimport int64_t, uint64_t

import os

cdef extern from *:
    """
    #if defined(_OPENMP) && !defined(_WIN32)
    #include <omp.h>
    #include <pthread.h>
    #include <sched.h>
    #include <signal.h>
    #include <time.h>

    /* The names of stdatomic.h, which Cython may include, belong to types of its own. */
    #define cgrad_load(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
    #define cgrad_store(p, x) __atomic_store_n(p, x, __ATOMIC_SEQ_CST)
    #define cgrad_add(p, x) __atomic_fetch_add(p, x, __ATOMIC_SEQ_CST)
    #define cgrad_and(p, x) __atomic_fetch_and(p, x, __ATOMIC_SEQ_CST)
    #define cgrad_swap(p, x) __atomic_exchange_n(p, x, __ATOMIC_SEQ_CST)
    static inline int cgrad_replace(uint64_t* p, uint64_t old, uint64_t x) {
        return __atomic_compare_exchange_n(p, &old, x, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }

    static inline void relax(void) {
    #if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
    #elif defined(__aarch64__)
        __asm__ volatile("isb");          /* yield does nothing on most of them */
    #endif
    }

    #define give_way() sched_yield()

    static inline int64_t nanoseconds(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    }

    #if defined(__linux__)
    #define this_core() sched_getcpu()
    static void leave_core(int core) {
        cpu_set_t allowed, others;
        if (sched_getaffinity(0, sizeof allowed, &allowed)) return;
        others = allowed;
        CPU_CLR(core, &others);
        if (CPU_COUNT(&others) && !sched_setaffinity(0, sizeof others, &others)) sched_setaffinity(0, sizeof allowed, &allowed);
    }
    #else
    #define this_core() -1                /* unknown */
    #define leave_core(core)
    #endif

    /* Where a thread sleeps: it lies down, looks once more for what it waits for, and sleeps.  wake() is a load if nobody does. */
    typedef struct { pthread_mutex_t mutex; pthread_cond_t cond; int occupied; } Bed;
    static void make_bed(Bed* bed) {
        pthread_mutex_init(&bed->mutex, NULL);
        pthread_cond_init(&bed->cond, NULL);
    }
    static void lie_down(Bed* bed) { cgrad_store(&bed->occupied, 1); }
    static void get_up(Bed* bed) { cgrad_store(&bed->occupied, 0); }
    static void sleep_in(Bed* bed) {
        pthread_mutex_lock(&bed->mutex);
        while (cgrad_load(&bed->occupied)) pthread_cond_wait(&bed->cond, &bed->mutex);
        pthread_mutex_unlock(&bed->mutex);
    }
    static void wake(Bed* bed) {
        if (!cgrad_load(&bed->occupied)) return;
        pthread_mutex_lock(&bed->mutex);
        cgrad_store(&bed->occupied, 0);
        pthread_cond_signal(&bed->cond);
        pthread_mutex_unlock(&bed->mutex);
    }

    /* A thread for OpenMP's threads to gather round, since the caller has other things to do.  Signals stay with the others. */
    static int start_thread(void* (*run)(void*), void* argument) {
        pthread_t thread;
        sigset_t all, before;
        int failed;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        failed = pthread_create(&thread, NULL, run, argument);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (!failed) pthread_detach(thread);
        return failed;
    }

    #else       /* no thread can be started, so that what follows is compiled and never does anything */
    #define omp_get_max_threads() 1
    #define omp_get_thread_num() 0
    #define cgrad_load(p) (*(p))
    #define cgrad_store(p, x) (*(p) = (x))
    #define cgrad_add(p, x) ((*(p) += (x)) - (x))
    #define cgrad_and(p, x) (*(p) &= (x))
    #define cgrad_swap(p, x) (*(p) ? 1 : (*(p) = (x), 0))
    #define cgrad_replace(p, old, x) (*(p) = (x), 1)
    #define relax()
    #define give_way()
    #define nanoseconds() 0
    #define this_core() -1
    #define leave_core(core)
    typedef struct { int occupied; } Bed;
    #define make_bed(bed) ((void)(bed))
    #define lie_down(bed)
    #define get_up(bed)
    #define sleep_in(bed)
    #define wake(bed)
    #define start_thread(run, argument) ((void)(run), 1)
    #endif

    static int forked = 0;
    #if defined(_WIN32)
    static void watch_forks(void) {}
    #else
    #include <pthread.h>
    static void after_fork(void) { forked = 1; }
    static void watch_forks(void) { pthread_atfork(NULL, NULL, after_fork); }
    #endif
    """
    uint64_t atomic_load "cgrad_load" (uint64_t* p) noexcept nogil
    void atomic_store "cgrad_store" (uint64_t* p, uint64_t x) noexcept nogil
    uint64_t atomic_add "cgrad_add" (uint64_t* p, uint64_t x) noexcept nogil          # these three return what was there before
    uint64_t atomic_and "cgrad_and" (uint64_t* p, uint64_t x) noexcept nogil
    uint64_t atomic_swap "cgrad_swap" (uint64_t* p, uint64_t x) noexcept nogil
    bint atomic_replace "cgrad_replace" (uint64_t* p, uint64_t old, uint64_t x) noexcept nogil
    void relax() noexcept nogil
    void give_way() noexcept nogil
    int64_t nanoseconds() noexcept nogil
    int this_core() noexcept nogil
    void leave_core(int core) noexcept nogil
    ctypedef struct Bed:
        pass
    void make_bed(Bed* bed) noexcept nogil
    void lie_down(Bed* bed) noexcept nogil
    void get_up(Bed* bed) noexcept nogil
    void sleep_in(Bed* bed) noexcept nogil
    void wake(Bed* bed) noexcept nogil
    int start_thread(void* (*run)(void*) noexcept nogil, void* argument) noexcept nogil
    bint forked
    void watch_forks() noexcept nogil

cdef enum:
    MAX_THREADS = 512
    SPIN = 30_000            # ns that a thread looks for what it waits for before it sleeps
    LATE = 100_000           # ns of waiting for workers inside after which one must have lost its core
    CROWDED = 1_000_000      # ns to work alone after a worker was put onto the caller's core

# Two threads begin to gain here while the workers are awake (measured in us on one and two threads: 1.1 and 0.9 at 16 000 additions,
# 2.5 and 2.0 at 50 000, 9.3 and 3.4 at 100 000, which no longer fit into one core's cache).
BREAK_EVEN = 16_000.0

# From here on (30 to 90 us) it pays to wake sleepers, who need up to 50 us to come.  Smaller jobs do so when one follows another.
cdef double WORTH_WAKING = 1_000_000.0

cdef int n_threads = 1


# ---- the pool ------------------------------------------------------------------------------------------------------------------

cdef struct Job:                      # written by the caller while nobody is inside; a cache line
    uint64_t gate                     # the job's number (32 bits), threads it wants (16; 0: closed), workers inside (16)
    uint64_t opened                   # when
    uint64_t core                     # where the caller was then
    body_t body
    void* context
    Py_ssize_t n, chunk
    uint64_t padding

cdef struct Share:                    # the chunks that a thread takes first
    uint64_t next
    uint64_t stop
    uint64_t[6] padding

cdef struct Worker:
    Bed bed
    bint spins                        # its last wait was short
    uint64_t[8] padding

cdef struct Caller:
    uint64_t busy                     # somebody has the pool
    Bed bed
    int64_t closed                    # when the last job was
    int64_t alone_until
    uint64_t crowded                  # a worker was on its core
    uint64_t[8] padding

cdef Job job
cdef Share[MAX_THREADS] shares
cdef Worker[MAX_THREADS] workers      # worker i is thread i + 1 of a job, the caller is thread 0
cdef Caller caller
cdef int n_workers = 0
cdef bint all_hands = False           # see meet_all_workers


cdef inline int threads_wanted(uint64_t gate) noexcept nogil:
    return <int> (gate >> 16 & 0xffff)


cdef inline int workers_inside(uint64_t gate) noexcept nogil:
    return <int> (gate & 0xffff)


cdef void take_chunks(int thread, int threads) noexcept nogil:
    """Do the chunks of the thread's own share, then of the next one's, until none is left."""
    cdef Share* share
    cdef uint64_t i
    cdef Py_ssize_t start
    cdef int turn
    for turn in range(threads):
        share = &shares[(thread + turn) % threads]
        while atomic_load(&share.next) < share.stop:
            i = atomic_add(&share.next, 1)
            if i < share.stop:
                start = <Py_ssize_t> i * job.chunk
                job.body(job.context, start, min(start + job.chunk, job.n))


cdef inline bint calls(uint64_t gate, int worker, uint64_t last) noexcept nogil:
    """Whether a job later than `last` is open that wants this worker."""
    return gate >> 32 != last and threads_wanted(gate) > worker + 1


cdef uint64_t wait_for_job(int worker, uint64_t last) noexcept nogil:
    """The gate of the next job after `last` that wants this worker."""
    cdef int64_t start = nanoseconds()
    cdef uint64_t gate
    cdef int _
    while workers[worker].spins and nanoseconds() - start < SPIN:
        for _ in range(16):
            gate = atomic_load(&job.gate)
            if calls(gate, worker, last):
                return gate
            relax()
    while True:
        lie_down(&workers[worker].bed)
        gate = atomic_load(&job.gate)
        if calls(gate, worker, last):
            break
        sleep_in(&workers[worker].bed)
    get_up(&workers[worker].bed)
    workers[worker].spins = <int64_t> atomic_load(&job.opened) - start < SPIN
    return gate


cdef void work(int worker) noexcept nogil:
    """The life of a worker."""
    cdef uint64_t gate, last = 0
    cdef int core
    while True:
        gate = wait_for_job(worker, last)
        last = gate >> 32
        core = this_core()
        if core >= 0 and <int> atomic_load(&job.core) == core and not all_hands:
            # Where the kernel puts a sleeper that is woken, though another core be idle.  Here we only keep the caller from working.
            leave_core(core)
            atomic_store(&caller.crowded, 1)
            continue
        while threads_wanted(gate) and gate >> 32 == last:
            if atomic_replace(&job.gate, gate, gate + 1):
                take_chunks(worker + 1, threads_wanted(gate))
                gate = atomic_add(&job.gate, <uint64_t> -1)
                if threads_wanted(gate) == 0 and workers_inside(gate) == 1:
                    wake(&caller.bed)
                break
            gate = atomic_load(&job.gate)


cdef void* gather(void* argument) noexcept nogil:
    """Make this thread and more of OpenMP's the workers first <= i < stop."""
    cdef int first = <int> (<size_t> argument >> 16), count = <int> (<size_t> argument & 0xffff) - first
    if count > 0:
        with parallel(num_threads=count):
            work(first + threadid())
    return NULL


cdef int ask_for_workers(int wanted) noexcept nogil:
    """Start those that are missing; returns how many there are."""
    global n_workers
    cdef int i
    if wanted > n_workers:
        for i in range(n_workers, wanted):
            make_bed(&workers[i].bed)
        if start_thread(gather, <void*> (<size_t> n_workers << 16 | <size_t> wanted)) == 0:
            n_workers = wanted
    return min(wanted, n_workers)


cdef void close_gate() noexcept nogil:
    """No worker comes in any more; wait for those inside."""
    cdef uint64_t gate = atomic_and(&job.gate, ~<uint64_t> 0xffff0000)
    cdef int64_t start = nanoseconds(), waited = 0
    cdef int _
    while workers_inside(gate) and waited < SPIN:
        for _ in range(16):
            gate = atomic_load(&job.gate)
            if workers_inside(gate) == 0:
                break
            relax()
        waited = nanoseconds() - start
    while workers_inside(gate):
        lie_down(&caller.bed)
        gate = atomic_load(&job.gate)
        if workers_inside(gate):
            sleep_in(&caller.bed)
            gate = atomic_load(&job.gate)
        get_up(&caller.bed)
        waited = nanoseconds() - start
    caller.closed = start + waited
    if atomic_swap(&caller.crowded, 0):
        caller.alone_until = caller.closed + CROWDED
    elif waited > LATE and waited > start - <int64_t> job.opened:       # chunks may be long; this is longer than all of the job
        caller.alone_until = caller.closed + 8 * waited                 # so that at most an eighth of the time is lost like this


cdef bint share_out(body_t body, void* context, Py_ssize_t n, Py_ssize_t chunk, Py_ssize_t n_chunks, int threads,
                    double cost) noexcept nogil:
    """Do a job together with the workers; False if it has to be done alone."""
    cdef int64_t now
    cdef int i
    if atomic_swap(&caller.busy, 1):
        return False
    now = nanoseconds()
    if (now < caller.alone_until or (cost < WORTH_WAKING and now - caller.closed > SPIN)) and not all_hands:
        threads = 1
    else:
        threads = 1 + ask_for_workers(threads - 1)
    if threads == 1:
        caller.closed = now
    else:
        for i in range(threads):
            shares[i].next = n_chunks * i // threads
            shares[i].stop = n_chunks * (i + 1) // threads
        job.body, job.context, job.n, job.chunk = body, context, n, chunk
        atomic_store(&job.opened, now)
        atomic_store(&job.core, this_core())
        atomic_store(&job.gate, ((job.gate >> 32) + 1) << 32 | <uint64_t> threads << 16)
        for i in range(threads - 1):
            wake(&workers[i].bed)
        while all_hands and workers_inside(atomic_load(&job.gate)) < threads - 1 and nanoseconds() - now < 2_000_000:
            give_way()
        take_chunks(0, threads)
        close_gate()
    atomic_store(&caller.busy, 0)
    return threads > 1


cdef void parallel_for(body_t body, void* context, Py_ssize_t n, Py_ssize_t chunk, double cost) noexcept nogil:
    cdef Py_ssize_t start = 0, n_chunks
    cdef int threads = n_threads
    if n <= 0:
        return
    if chunk < 1:
        chunk = 1
    n_chunks = (n - 1) // chunk + 1
    if cost < BREAK_EVEN or forked:
        threads = 1
    elif cost < BREAK_EVEN * threads:
        threads = min(threads, <int>(2 * cost / BREAK_EVEN))      # half a break-even for each at least
    if n_chunks < threads:
        threads = <int>n_chunks
    if threads > 1 and share_out(body, context, n, chunk, n_chunks, threads, cost):
        return
    while start < n:
        body(context, start, min(start + chunk, n))
        start += chunk


def meet_all_workers(bint wanted):
    """For tests: every job waits (up to 2 ms) until all its workers have come, wherever they are."""
    global all_hands
    all_hands = wanted


def jobs_shared():
    """For tests: how many jobs were done together with workers so far."""
    return job.gate >> 32


# ---- how many ------------------------------------------------------------------------------------------------------------------

cdef int get_threads() noexcept nogil:
    return 1 if forked else n_threads


cdef void set_threads(int n) noexcept nogil:
    global n_threads
    n_threads = min(max(n, 1), MAX_THREADS)


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
make_bed(&caller.bed)
watch_forks()
