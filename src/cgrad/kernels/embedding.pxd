"""Rows of a table picked by index, and the sums that flow back; indices in [0, n_rows), everything but the table contiguous."""
from libc.stdint cimport int64_t

# The first index that is not in [0, n_rows) into *bad, and True; else False.
cdef bint find_bad_index(const int64_t* index, Py_ssize_t n, Py_ssize_t n_rows, int64_t* bad) noexcept nogil

# out[i] = table[index[i]] for i < n: rows of row_bytes each, those of the table `stride` bytes apart.
cdef void run_pick_rows(const char* table, Py_ssize_t stride, Py_ssize_t row_bytes, const int64_t* index, Py_ssize_t n, char* out) noexcept nogil

# out = 0, then out[index[i]] += factor[i] * g[source[i]] for i < n in this order, but where the index is `skipped`: float32 or float64, rows of
# `width` elements; factor NULL: 1, source NULL: i.  `scratch` has spread_scratch(...) elements.
cdef void run_spread_rows(int dtype, const char* g, const int64_t* index, const int64_t* source, const char* factor, Py_ssize_t n, Py_ssize_t n_rows,
                          Py_ssize_t width, int64_t skipped, char* out, int64_t* scratch) noexcept nogil
cdef Py_ssize_t spread_scratch(int dtype, Py_ssize_t n, Py_ssize_t n_rows, Py_ssize_t width) noexcept nogil

# out[b] = the sum of factor[i] * table[index[i]] for starts[b] <= i < starts[b + 1], but where the index is `skipped`, or with `mean` that by their
# number.  Float32 or float64, rows of `width` elements, those of the table `stride` elements apart; factor NULL: 1.
cdef void run_sum_bags(int dtype, const char* table, Py_ssize_t stride, Py_ssize_t width, const int64_t* index, const char* factor,
                       const int64_t* starts, Py_ssize_t n_bags, int64_t skipped, bint mean, char* out) noexcept nogil
# out[i] = the sum of g[b] * table[index[i]] for i in bag b; 0 where the index is `skipped`.
cdef void run_bag_products(int dtype, const char* g, const char* table, Py_ssize_t stride, Py_ssize_t width, const int64_t* index,
                           const int64_t* starts, Py_ssize_t n_bags, int64_t skipped, char* out) noexcept nogil
