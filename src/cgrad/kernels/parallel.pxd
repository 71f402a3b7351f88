"""The only module that names OpenMP: how many threads, and a split whose chunks depend on the shape alone."""

ctypedef void (*body_t)(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil

cdef double BREAK_EVEN        # cost in float additions below which nothing is ever split

# Call body(context, start, stop) for consecutive chunks of [0, n).  `cost` = total work in units of one float addition;
# below the break-even everything runs on the caller without entering a parallel region.  Chunk borders are multiples of `chunk`
# and never depend on the number of threads.
cdef void parallel_for(body_t body, void* context, Py_ssize_t n, Py_ssize_t chunk, double cost) noexcept nogil
cdef int get_threads() noexcept nogil
cdef void set_threads(int n) noexcept nogil
