"""Rows of a table picked by index, sums of them in bags, and the gradient of the table.

Owns shapes and the checks of indices; the loops are in kernels/embedding.pyx.  Called by ops/embedding.py.  Needs the GIL, which it
lets go while long loops run.  Next: kernels/embedding.pyx.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from cgrad.core.dtype cimport ITEMSIZE, dtype_object
from cgrad.core.forward.ordered cimport as_index
from cgrad.core.tensor cimport Tensor, contiguous_tensor, empty_tensor, readable, shape_of, shape_text, strides_of
from cgrad.kernels.embedding cimport find_bad_index, run_bag_products, run_pick_rows, run_spread_rows, run_sum_bags, spread_scratch
from cgrad.kernels.table cimport FLOAT32, INT64, MAX_DIMS, UINT8

cdef enum:
    LONG_LOOP = 16384      # elements from which releasing the GIL (about 50 ns) is lost in the loop


cdef Tensor checked_indices(Tensor index, Py_ssize_t n_rows):
    """The indices as contiguous int64, all in range."""
    cdef int64_t bad = 0
    if index.dtype_id < UINT8 or index.dtype_id > INT64:
        raise TypeError(f"embedding: the indices must be integers, got {dtype_object(index.dtype_id).name}")
    index = contiguous_tensor(as_index(index))
    if find_bad_index(<const int64_t*> index.data, index.count, n_rows, &bad):
        raise IndexError(f"embedding: index {bad} is out of range for a table of {n_rows} rows; indices lie in [0, {n_rows})")
    return index


def check_indices(Tensor index not None, Py_ssize_t n_rows):
    """IndexError if an index is not in [0, n_rows)."""
    checked_indices(index, n_rows)


def pick(Tensor table not None, Tensor index not None):
    """Row index[...] of the table (n_rows, width), for each index: shape (*index.shape, width)."""
    cdef Py_ssize_t[MAX_DIMS] shape
    cdef Py_ssize_t size, stride
    cdef Tensor out
    if table.rank != 2 or index.rank >= MAX_DIMS:
        raise ValueError(f"embedding: the weight must have shape (num_embeddings, embedding_dim), got {shape_text(table.rank, shape_of(table))}")
    index = checked_indices(index, shape_of(table)[0])
    table = with_unit_columns(table)
    memcpy(shape, shape_of(index), index.rank * sizeof(Py_ssize_t))
    shape[index.rank] = shape_of(table)[1]
    out = empty_tensor(table.dtype_id, index.rank + 1, shape)
    size = shape_of(table)[1] * ITEMSIZE[table.dtype_id]
    stride = strides_of(table)[0] * ITEMSIZE[table.dtype_id]
    if out.count < LONG_LOOP:
        run_pick_rows(table.data, stride, size, <const int64_t*> index.data, index.count, out.data)
    else:
        with nogil:
            run_pick_rows(table.data, stride, size, <const int64_t*> index.data, index.count, out.data)
    return out


def spread(Tensor g not None, Tensor index not None, Py_ssize_t n_rows, int64_t skipped):
    """Zeros (n_rows, width) to which the rows of g (*index.shape, width) are added where `index` says; those at `skipped` are left out."""
    cdef int i
    cdef bint fits = g.rank == index.rank + 1
    for i in range(index.rank):
        fits = fits and shape_of(g)[i] == shape_of(index)[i]
    if not fits or g.dtype_id < FLOAT32:
        raise ValueError(f"embedding: a gradient of shape {shape_text(g.rank, shape_of(g))} does not fit indices of shape "
                         f"{shape_text(index.rank, shape_of(index))}")
    return spread_parts(contiguous_tensor(g), checked_indices(index, n_rows), None, None, n_rows, skipped)


cdef Tensor spread_parts(Tensor g, Tensor index, Tensor source, Tensor factor, Py_ssize_t n_rows, int64_t skipped):
    """Zeros to which factor[i] * g[source[i]] is added in row index[i]; all contiguous, None as in run_spread_rows."""
    cdef Py_ssize_t[2] shape
    cdef Py_ssize_t size
    cdef Tensor out, scratch
    cdef const int64_t* sources = NULL
    cdef const char* factors = NULL
    if source is not None:
        sources = <const int64_t*> source.data
    if factor is not None:
        factors = factor.data
    shape[0], shape[1] = n_rows, shape_of(g)[g.rank - 1]
    out = empty_tensor(g.dtype_id, 2, shape)
    size = spread_scratch(g.dtype_id, index.count, n_rows, shape[1])
    scratch = empty_tensor(INT64, 1, &size)
    with nogil:
        run_spread_rows(g.dtype_id, g.data, <const int64_t*> index.data, sources, factors, index.count, n_rows, shape[1], skipped, out.data,
                        <int64_t*> scratch.data)
    return out


# ---- bags --------------------------------------------------------------------------------------------------------------------------

def bag_starts(Tensor offsets, Py_ssize_t n_bags, Py_ssize_t n, bint include_last):
    """Where each bag of n indices starts, and where the last one ends: (n_bags + 1,) int64.  Offsets None: bags of equal length."""
    cdef Py_ssize_t i, length = n // n_bags if n_bags else 0, size = n_bags + 1
    cdef int64_t* given
    cdef int64_t* start
    cdef bint fits = True
    cdef Tensor out = empty_tensor(INT64, 1, &size)
    start = <int64_t*> out.data
    if offsets is None:
        for i in range(size):
            start[i] = i * length
        return out
    readable(offsets, "embedding_bag")
    if offsets.dtype_id < UINT8 or offsets.dtype_id > INT64:
        raise TypeError(f"embedding_bag: the offsets must be integers, got {dtype_object(offsets.dtype_id).name}")
    offsets = contiguous_tensor(as_index(offsets))
    given = <int64_t*> offsets.data
    for i in range(offsets.count):
        start[i] = given[i]
        fits = fits and (given[i] == 0 if i == 0 else given[i - 1] <= given[i]) and given[i] <= n
    if not include_last:
        start[n_bags] = n if n_bags else 0
    if not fits:
        raise ValueError(f"embedding_bag: offsets must start at 0, not fall, and be at most {n}, the number of indices; got {offsets.tolist()}")
    return out


def bag_facts(Tensor index not None, Tensor starts not None, int64_t skipped, bint mean, Tensor like not None):
    """(the bag of each index, what its row counts for): 1, with `mean` one by the number of rows in the bag, 0 where it is `skipped`."""
    cdef Py_ssize_t n_bags = shape_of(starts)[0] - 1, bag, i, count, n
    cdef const int64_t* start = <const int64_t*> starts.data
    cdef int64_t* bags
    cdef double factor
    cdef int dtype = like.dtype_id
    cdef Tensor source, factors
    n = start[n_bags]
    source, factors = empty_tensor(INT64, 1, &n), empty_tensor(dtype, 1, &n)
    index = contiguous_tensor(as_index(index))
    bags = <int64_t*> source.data
    for bag in range(n_bags):
        count = 0
        for i in range(start[bag], start[bag + 1]):
            count += (<const int64_t*> index.data)[i] != skipped
        factor = 1.0 / count if mean and count else 1.0
        for i in range(start[bag], start[bag + 1]):
            bags[i] = bag
            if dtype == FLOAT32:
                (<float*> factors.data)[i] = <float> (factor if (<const int64_t*> index.data)[i] != skipped else 0.0)
            else:
                (<double*> factors.data)[i] = factor if (<const int64_t*> index.data)[i] != skipped else 0.0
    return source, factors


cdef Tensor with_unit_columns(Tensor table):
    return table if strides_of(table)[1] == 1 or shape_of(table)[1] == 1 else contiguous_tensor(table)


def sum_bags(Tensor table not None, Tensor index not None, Tensor starts not None, Tensor factor, int64_t skipped, bint mean):
    """The sums of the rows of the table (n_rows, width) in each bag, times their factors (n,) if given; or means."""
    cdef Py_ssize_t[2] shape
    cdef const char* factors = NULL
    cdef Py_ssize_t stride
    cdef Tensor out
    if table.rank != 2 or table.dtype_id < FLOAT32 or starts.rank != 1 or starts.dtype_id != INT64 \
            or (factor is not None and factor.dtype_id != table.dtype_id):
        raise TypeError(f"embedding_bag: the weight must have shape (num_embeddings, embedding_dim) and per_sample_weights its floating dtype, got shape "
                        f"{shape_text(table.rank, shape_of(table))} and {dtype_object(table.dtype_id).name}")
    index, table = checked_indices(index, shape_of(table)[0]), with_unit_columns(table)
    if factor is not None:
        factor = contiguous_tensor(factor)
        factors = factor.data
    shape[0], shape[1] = shape_of(starts)[0] - 1, shape_of(table)[1]
    out = empty_tensor(table.dtype_id, 2, shape)
    stride = strides_of(table)[0]
    with nogil:
        run_sum_bags(table.dtype_id, table.data, stride, shape[1], <const int64_t*> index.data, factors,
                     <const int64_t*> starts.data, shape[0], skipped, mean, out.data)
    return out


def spread_bags(Tensor g not None, Tensor index not None, Tensor source not None, Tensor factor not None, Py_ssize_t n_rows, int64_t skipped):
    """The gradient of the table: zeros (n_rows, width) to which factor[i] * g[source[i]] is added in row index[i]."""
    return spread_parts(contiguous_tensor(g), checked_indices(index, n_rows), source, contiguous_tensor(factor), n_rows, skipped)


def bag_products(Tensor g not None, Tensor table not None, Tensor index not None, Tensor starts not None, int64_t skipped):
    """The gradient of the factors: for each index the product of its row and the gradient of its bag."""
    cdef Tensor out
    cdef Py_ssize_t n_bags = shape_of(starts)[0] - 1, stride, width
    index, table, g = checked_indices(index, shape_of(table)[0]), with_unit_columns(table), contiguous_tensor(g)
    out = empty_tensor(table.dtype_id, 1, shape_of(index))
    stride, width = strides_of(table)[0], shape_of(table)[1]
    with nogil:
        run_bag_products(table.dtype_id, g.data, table.data, stride, width, <const int64_t*> index.data,
                         <const int64_t*> starts.data, n_bags, skipped, out.data)
    return out
