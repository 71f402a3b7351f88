"""Rows of a table picked by index, and the sums that flow back; indices in [0, n_rows), everything but the table contiguous."""
from libc.stdint cimport int64_t

# The first index that is not in [0, n_rows) into *bad, and True; else False.
cdef bint find_bad_index(const int64_t* index, Py_ssize_t n, Py_ssize_t n_rows, int64_t* bad) noexcept nogil

# out[i] = table[index[i]] for i < n: rows of row_bytes each, those of the table `stride` bytes apart.
cdef void run_pick_rows(const char* table, Py_ssize_t stride, Py_ssize_t row_bytes, const int64_t* index, Py_ssize_t n, char* out) noexcept nogil

# out = 0, then out[index[i]] += g[i] for i < n in this order, but where the index is `skipped`: float32 or float64, rows of `width` elements.
# `scratch` has spread_scratch(...) elements.
cdef void run_spread_rows(int dtype, const char* g, const int64_t* index, Py_ssize_t n, Py_ssize_t n_rows, Py_ssize_t width, int64_t skipped,
                          char* out, int64_t* scratch) noexcept nogil
cdef Py_ssize_t spread_scratch(int dtype, Py_ssize_t n, Py_ssize_t n_rows, Py_ssize_t width) noexcept nogil
