"""Pooling of tensors: windows over the last one to three axes, their largest elements and their means.

Owns the shapes of results and the tables that say which elements a window holds; the numbers come from kernels/pool.pyx.  Called by
ops/pool.py.  All leading axes count as one batch of planes.  `windows` is a tuple of one (n, n_out, kernel, stride, padding, dilation)
for each axis, which even_windows and adaptive_windows make and check; a kernel of 0 stands for adaptive ones.  Needs the GIL, which it
lets go while long loops run.  Next: kernels/pool.pyx.
"""
from libc.stdint cimport INT32_MAX, int32_t
from libc.string cimport memcpy

from cgrad.core.dtype cimport KIND, KIND_BOOL, KIND_FLOAT, dtype_object, promote
from cgrad.core.forward.ordered cimport in_order, out_of_order
from cgrad.core.tensor cimport Tensor, cast_tensor, contiguous_tensor, empty_tensor, shape_of, shape_text
from cgrad.kernels.pool cimport (
    Axis, run_average_pool, run_average_spread, run_max_pool, run_pick, run_place, run_sample, run_sample_spread, run_sample_weights)
from cgrad.kernels.table cimport FLOAT32, FLOAT64, INT32, INT64, MAX_DIMS

from operator import index

cdef enum:
    LONG_LOOP = 4096       # elements from which releasing the GIL (about 50 ns) is lost in the loop


# ---- windows -------------------------------------------------------------------------------------------------------------------------

cdef int integers(str name, str what, object given, int n, Py_ssize_t* values) except -1:
    """One integer for each of n axes into `values`, from one for all or a sequence."""
    cdef int k, count = 1
    cdef tuple several = None
    if isinstance(given, (tuple, list)):
        several = tuple(given)
        count = len(several)
        if count != 1 and count != n:
            raise ValueError(f"{name}: {what} must be one integer or {n}, got {given}")
    for k in range(n):
        try:
            values[k] = index(given if several is None else several[0 if count == 1 else k])
        except TypeError:
            raise TypeError(f"{name}: {what} must be one integer or {n}, got {given!r}") from None
        if not -INT32_MAX <= values[k] <= INT32_MAX:
            raise ValueError(f"{name}: {what} is out of range, got {given}")
    return 0


cdef int spatial(str name, Tensor x, int n, bint channels) except -1:
    """ValueError if x is not (N, C, *n axes) or (C, *n axes) with elements in all but the batch."""
    cdef int k
    cdef str text
    cdef bint fits = x.rank == n + 1 or x.rank == n + 2
    for k in range(x.rank - n - channels if fits else 0, x.rank if fits else 0):
        fits = fits and shape_of(x)[k] > 0
    if not fits:
        text = ("C, L", "C, H, W", "C, D, H, W")[n - 1]
        raise ValueError(f"{name}: needs an input of shape (N, {text}) or ({text}) that is empty along N at most, got {shape_text(x.rank, shape_of(x))}")
    return 0


def even_windows(str name, Tensor x not None, int n_axes, kernel_size, stride, padding, dilation, bint ceil_mode):
    """Windows of one size at even distances over the last axes of x, one (n, n_out, kernel, stride, padding, dilation) for each."""
    cdef Py_ssize_t[3] kernels, strides, paddings, dilations
    cdef Py_ssize_t n, n_out, room
    cdef list found = []
    cdef int k
    if stride is None or stride == () or stride == []:
        stride = kernel_size
    integers(name, "kernel_size", kernel_size, n_axes, kernels)
    integers(name, "stride", stride, n_axes, strides)
    integers(name, "padding", padding, n_axes, paddings)
    integers(name, "dilation", dilation, n_axes, dilations)
    for k in range(n_axes):
        if kernels[k] < 1 or strides[k] < 1 or dilations[k] < 1:
            raise ValueError(f"{name}: kernel_size, stride and dilation must be at least 1, got {kernel_size}, {stride} and {dilation}")
        if not 0 <= 2 * paddings[k] <= kernels[k]:
            raise ValueError(f"{name}: padding must lie between 0 and half of the kernel, got padding {padding} for kernel_size {kernel_size}")
    spatial(name, x, n_axes, True)
    for k in range(n_axes):
        n = shape_of(x)[x.rank - n_axes + k]
        room = n + 2 * paddings[k] - dilations[k] * (kernels[k] - 1) - 1
        n_out = (room + (strides[k] - 1 if ceil_mode else 0)) // strides[k] + 1 if room >= 0 or ceil_mode and room > -strides[k] else 0
        if ceil_mode and (n_out - 1) * strides[k] >= n + paddings[k]:         # the last window starts inside or in the padding before
            n_out -= 1
        if n_out < 1:
            raise ValueError(f"{name}: a kernel of {kernels[k]} with dilation {dilations[k]} does not fit into the {n} elements of axis "
                             f"{x.rank - n_axes + k} with padding {paddings[k]}; the input has shape {shape_text(x.rank, shape_of(x))}")
        found.append((n, n_out, kernels[k], strides[k], paddings[k], dilations[k]))
    return tuple(found)


def adaptive_windows(str name, Tensor x not None, int n_axes, output_size):
    """Windows that cover the last axes of x evenly, as many along each as `output_size` says; None there stands for the length of the axis."""
    cdef Py_ssize_t[3] sizes
    cdef Py_ssize_t n, n_out, kernel
    cdef list found = []
    cdef int k
    cdef tuple given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,)
    spatial(name, x, n_axes, False)
    integers(name, "output_size", tuple([0 if m is None else m for m in given]), n_axes, sizes)
    for k in range(n_axes):
        n = shape_of(x)[x.rank - n_axes + k]
        n_out = n if given[k if len(given) > 1 else 0] is None else sizes[k]
        if n_out < 0:
            raise ValueError(f"{name}: output_size must not be negative, got {output_size}")
        kernel = n // n_out if n_out and n % n_out == 0 else 0
        found.append((n, n_out, kernel, kernel, 0, 1))
    return tuple(found)


cdef bint joined(Py_ssize_t[6]* numbers) noexcept:
    """Windows over whole rows become windows of one axis less: their elements lie in one stretch."""
    cdef Py_ssize_t* rows = numbers[1]
    cdef Py_ssize_t* row = numbers[2]
    cdef Py_ssize_t n = row[0]
    if row[1] != 1 or row[2] != n or row[4] or rows[2] == 0 or rows[5] != 1 or rows[0] == 1:
        return False
    row[0], row[1], row[2], row[3], row[4], row[5] = rows[0] * n, rows[1], rows[2] * n, rows[3] * n, rows[4] * n, 1
    memcpy(numbers[1], numbers[0], sizeof(numbers[0]))
    numbers[0][0] = numbers[0][1] = numbers[0][2] = numbers[0][3] = numbers[0][5] = 1
    numbers[0][4] = 0
    return True


cdef Tensor fill_axes(Axis* axes, tuple windows, bint padded, double divisor):
    """Three axes filled in, and the memory in which their tables lie; means divide by the elements of a window, padding included or not."""
    cdef Py_ssize_t[3][6] numbers
    cdef Py_ssize_t size = 0, n, n_out, kernel, stride, pad, gap, o, t, start, stop
    cdef int k, j, missing = 3 - <int> len(windows)
    cdef Py_ssize_t* table
    cdef double* divisors
    cdef Tensor memory
    cdef tuple window
    for k in range(3):
        window = (1, 1, 1, 1, 0, 1) if k < missing else windows[k - missing]
        for j in range(6):
            numbers[k][j] = window[j]
    while joined(numbers):
        pass
    for k in range(3):
        size += 3 * numbers[k][1] + 3 * numbers[k][2]
    memory = empty_tensor(INT64, 1, &size)
    table = <Py_ssize_t*> memory.data
    divisors = <double*> memory.data + size
    for k in range(3):
        n, n_out, kernel, stride, pad, gap = numbers[k][0], numbers[k][1], numbers[k][2], numbers[k][3], numbers[k][4], numbers[k][5]
        divisors -= n_out
        axes[k].n, axes[k].n_out, axes[k].step, axes[k].stride = n, n_out, gap, stride
        axes[k].n_taps = kernel if kernel else (n - 1) // max(1, n_out) + 2
        axes[k].first, axes[k].count, axes[k].divisor = table, table + n_out, divisors
        for o in range(n_out):
            if kernel == 0:
                start = o * n // n_out
                stop = ((o + 1) * n + n_out - 1) // n_out
                divisors[o] = stop - start
            else:
                start = o * stride - pad
                stop = min(start + (kernel - 1) * gap + 1, n + pad)
                divisors[o] = stop - start
                if start < 0:
                    start += (-start + gap - 1) // gap * gap
                stop = min(stop, n)
            table[o] = start
            table[n_out + o] = (stop - start + gap - 1) // gap if stop > start else 0
            if not padded:
                divisors[o] = table[n_out + o]
            if divisor:
                divisors[o] = divisor if k == 0 else 1
        table += 2 * n_out
        axes[k].low, axes[k].high, axes[k].shift = table, table + kernel, table + 2 * kernel
        for t in range(kernel):
            start = t * gap - pad
            table[t] = min(n_out, (-start + stride - 1) // stride if start < 0 else 0)
            table[kernel + t] = min(n_out, (n - 1 - start) // stride + 1 if start < n else 0)
            table[2 * kernel + t] = start
        table += 3 * kernel
    return memory


cdef Tensor pooled(Tensor x, int dtype, tuple windows, int which):
    """An empty tensor with the leading axes of x and, after them, item `which` of the windows: 0 the input's lengths, 1 the result's."""
    cdef Py_ssize_t[MAX_DIMS] shape
    cdef int k, n_axes = len(windows), lead = x.rank - n_axes
    for k in range(x.rank):
        shape[k] = shape_of(x)[k] if k < lead else windows[k - lead][which]
    return empty_tensor(dtype, x.rank, shape)


cdef Py_ssize_t extent(Tensor x, int start, int stop) noexcept:
    cdef Py_ssize_t n = 1
    cdef int k
    for k in range(start, stop):
        n *= shape_of(x)[k]
    return n


# ---- the largest element -------------------------------------------------------------------------------------------------------------

def max_pool(str name, Tensor x not None, tuple windows not None):
    """The largest element of each window, and its place in its plane (int32)."""
    cdef Axis[3] axes
    cdef int dtype = x.dtype_id, computed, lead = x.rank - len(windows)
    cdef Py_ssize_t planes = extent(x, 0, lead)
    cdef Tensor _tables, out, places
    if KIND[dtype] == KIND_BOOL or KIND[dtype] > KIND_FLOAT:
        raise TypeError(f"{name}: needs numbers that have an order, got {dtype_object(dtype).name}")
    if extent(x, lead, x.rank) > INT32_MAX:
        raise ValueError(f"{name}: planes of more than {INT32_MAX} elements are too large, got shape {shape_text(x.rank, shape_of(x))}")
    x = contiguous_tensor(in_order(x))
    computed = x.dtype_id
    out, places = pooled(x, computed, windows, 1), pooled(x, INT32, windows, 1)
    _tables = fill_axes(axes, windows, True, 0)
    if x.count < LONG_LOOP:
        run_max_pool(computed, planes, axes, x.data, out.data, <int32_t*> places.data)
    else:
        with nogil:
            run_max_pool(computed, planes, axes, x.data, out.data, <int32_t*> places.data)
    return out_of_order(out, dtype), places


cdef Tensor at_places(Tensor x, Tensor places, tuple windows, bint back):
    cdef Py_ssize_t planes = extent(x, 0, x.rank - len(windows))
    cdef int dtype = x.dtype_id, computed = FLOAT64 if x.dtype_id == FLOAT64 else FLOAT32
    cdef Tensor out
    if places.dtype_id != INT32 or places.rank != x.rank or KIND[dtype] != KIND_FLOAT:
        raise ValueError(f"max_pool: places of shape {shape_text(places.rank, shape_of(places))} do not fit {shape_text(x.rank, shape_of(x))}")
    out = pooled(x, computed, windows, 0 if back else 1)
    x, places = contiguous_tensor(cast_tensor(x, computed)), contiguous_tensor(places)
    with nogil:
        if not planes:
            pass
        elif back:
            run_place(computed, planes, out.count // planes, x.count // planes, x.data, <const int32_t*> places.data, out.data)
        else:
            run_pick(computed, planes, x.count // planes, out.count // planes, x.data, <const int32_t*> places.data, out.data)
    return cast_tensor(out, dtype)


def pick(Tensor x not None, Tensor places not None, tuple windows not None):
    """The elements of x at places in their planes; 0 where the place is -1."""
    return at_places(x, places, windows, False)


def place(Tensor g not None, Tensor places not None, tuple windows not None):
    """Zeros to which g is added at places in their planes."""
    return at_places(g, places, windows, True)


# ---- means ---------------------------------------------------------------------------------------------------------------------------

cdef Tensor averaged(Tensor x, tuple windows, bint padded, object divisor, bint back):
    cdef Axis[3] axes
    cdef int dtype = x.dtype_id, computed = FLOAT64 if x.dtype_id == FLOAT64 else FLOAT32
    cdef Py_ssize_t planes = extent(x, 0, x.rank - len(windows))
    cdef Tensor out, _tables
    if KIND[dtype] != KIND_FLOAT:
        raise TypeError(f"avg_pool: the input must be floating point, got {dtype_object(dtype).name}; convert it first")
    out = pooled(x, computed, windows, 0 if back else 1)
    _tables = fill_axes(axes, windows, padded, 0 if divisor is None else divisor)
    x = contiguous_tensor(cast_tensor(x, computed))
    with nogil:
        if back:
            run_average_spread(computed, planes, axes, x.data, out.data)
        else:
            run_average_pool(computed, planes, axes, x.data, out.data)
    return cast_tensor(out, dtype)


def average(Tensor x not None, tuple windows not None, bint padded, divisor):
    """The sum over each window by `divisor`, or by the elements of the window, those in the padding included or not."""
    return averaged(x, windows, padded, divisor, False)


def average_spread(Tensor g not None, tuple windows not None, bint padded, divisor):
    """The transpose of `average`."""
    return averaged(g, windows, padded, divisor, True)


# ---- weighted sums of elements at places ---------------------------------------------------------------------------------------------
# Shapes: x (*, channels, n), weights and places (*, taps, k), out (*, channels, k).  Each of the three is linear in two of the others.

cdef Tensor sampled(int which, Tensor x, Tensor y, Tensor places, Py_ssize_t n):
    """0: out from x and weights; 1: x (of n elements) from out and weights; 2: weights from out and x."""
    cdef Py_ssize_t[MAX_DIMS] shape
    cdef Py_ssize_t images, channels, n_taps, k
    cdef int rank = places.rank, i, dtype = promote(x.dtype_id, y.dtype_id)
    cdef Tensor out
    cdef bint fits = rank >= 2 and x.rank == rank and y.rank == rank and places.dtype_id == INT32
    for i in range(rank - 2 if fits else 0):
        fits = fits and shape_of(x)[i] == shape_of(places)[i] == shape_of(y)[i]
    if not fits:
        raise ValueError(f"grid_sample: shapes {shape_text(x.rank, shape_of(x))}, {shape_text(y.rank, shape_of(y))} and places "
                         f"{shape_text(rank, shape_of(places))} do not fit together")
    images, channels = extent(places, 0, rank - 2), shape_of(x)[rank - 2]
    n_taps, k = shape_of(places)[rank - 2], shape_of(places)[rank - 1]
    for i in range(rank - 2):
        shape[i] = shape_of(places)[i]
    shape[rank - 2] = n_taps if which == 2 else channels
    shape[rank - 1] = n if which == 1 else k
    n = n if which == 1 else shape_of(y)[rank - 1] if which == 2 else shape_of(x)[rank - 1]
    if KIND[dtype] != KIND_FLOAT:
        raise TypeError(f"grid_sample: the input must be floating point, got {dtype_object(dtype).name}")
    out = empty_tensor(FLOAT64 if dtype == FLOAT64 else FLOAT32, rank, shape)
    x, y, places = contiguous_tensor(cast_tensor(x, out.dtype_id)), contiguous_tensor(cast_tensor(y, out.dtype_id)), contiguous_tensor(places)
    with nogil:
        if which == 0:
            run_sample(out.dtype_id, images, channels, n, n_taps, k, x.data, y.data, <const int32_t*> places.data, out.data)
        elif which == 1:
            run_sample_spread(out.dtype_id, images, channels, n, n_taps, k, x.data, y.data, <const int32_t*> places.data, out.data)
        else:
            run_sample_weights(out.dtype_id, images, channels, n, n_taps, k, x.data, y.data, <const int32_t*> places.data, out.data)
    return cast_tensor(out, dtype)


def sample(Tensor x not None, Tensor weights not None, Tensor places not None):
    """Sums over taps of weights times the elements of x at the places; an element at the place -1 is 0."""
    return sampled(0, x, weights, places, 0)


def sample_spread(Tensor g not None, Tensor weights not None, Tensor places not None, Py_ssize_t n):
    """The adjoint of `sample` in x, of n elements."""
    return sampled(1, g, weights, places, n)


def sample_weights(Tensor g not None, Tensor x not None, Tensor places not None):
    """The adjoint of `sample` in the weights."""
    return sampled(2, g, x, places, 0)
